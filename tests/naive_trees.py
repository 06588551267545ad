"""Quantile trees, slowly: leading bits by arithmetic, trees by recursion, everything in loops and dictionaries."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

STRENGTHS = [2.0**k for k in range(-1, 11)]
FIRST = [0.5, 2.0, 8.0, 32.0]
Cells = list[dict[Any, float]]  # rows of each class, leaf by leaf


def key_of(x: float, unit: float) -> int:
    """The bits of a number, as whole numbers in the order of numbers; the lowest are dropped."""
    (bits,) = struct.unpack("<q", struct.pack("<d", float(x) + 0.0))
    return ((bits ^ (2**63 - 1)) if bits < 0 else bits) >> round(math.log2(unit))


def number(key: int, unit: float) -> float:
    """The least number of a key."""
    bits = key << round(math.log2(unit))
    infinite = 0x7FF0 << 48
    bits = max(min(bits, infinite - 1), -infinite)
    return float(struct.unpack("<d", struct.pack("<q", bits ^ (2**63 - 1) if bits < 0 else bits))[0])


def leaves_of(totals: Sequence[float], most: int = 128) -> list[int]:
    """The leaf of each key: as many as there are, or 128 of about equal size."""
    if len(totals) <= most:
        return list(range(len(totals)))
    below, ends, n = 0.0, set(), sum(totals)
    sums = [below := below + each for each in totals]
    for k in range(1, most):
        ends.add(next(i for i, s in enumerate(sums) if s >= n * k / most))
    leaf, found = 0, []
    for i in range(len(totals)):
        found.append(leaf)
        leaf += i in ends
    return found


def halves(totals: Sequence[float], first: Sequence[int]) -> list[list[tuple[int, int]]]:
    """Level by level the nodes, as stretches of leaves; ``first`` are cuts that come before all halving."""
    nodes = list(zip([0, *first], [*first, len(totals)], strict=True))
    levels = [nodes] if first else []
    for _ in range(9):
        if all(b - a < 2 for a, b in nodes):
            break
        nodes = [part for a, b in nodes for part in _halved(totals, a, b)]
        levels.append(nodes)
    finest = [(i, i + 1) for i in range(len(totals))]
    return levels if levels and levels[-1] == finest else [*levels, finest]


def _halved(totals: Sequence[float], a: int, b: int) -> list[tuple[int, int]]:
    if b - a < 2:
        return [(a, b)]
    middle = (sum(totals[:a]) + sum(totals[:b])) / 2
    cut = min(range(a + 1, b), key=lambda s: abs(sum(totals[:s]) - middle))
    return [(a, cut), (cut, b)]


def share(
    cells: Cells, levels: Sequence[Any], strengths: tuple[float, float], leaf: int, prior: Mapping[Any, float],
    own: Any = None, weight: float = 1.0,
) -> dict[Any, float]:  # fmt: skip
    """P(class | leaf), down the levels; without so much of a row of class ``own`` in this leaf."""
    p = dict(prior)
    for depth, nodes in enumerate(levels):
        a, b = next(node for node in nodes if node[0] <= leaf < node[1])
        m = strengths[0] if depth == 0 else strengths[1]
        rows = {c: sum(cells[i][c] for i in range(a, b)) for c in p}
        if own is not None:
            rows[own] = max(rows[own] - weight, 0.0)
        total = sum(rows.values()) + m
        p = {c: (rows[c] + m * p[c]) / total if total > 0 else p[c] for c in p}
    return p


def likelihood(
    cells: Cells, levels: Sequence[Any], strengths: tuple[float, float], prior: Mapping[Any, float]
) -> float:
    """Σ log P(own class) of all rows, each left out."""
    return sum(
        n * math.log(max(share(cells, levels, strengths, leaf, prior, own)[own], 1e-300))
        for leaf, rows in enumerate(cells)
        for own, n in rows.items()
        if n
    )


def tree(
    cells: Cells, prior: Mapping[Any, float], m: float | None, mdl: Callable[[Cells], list[int]]
) -> tuple[list[list[tuple[int, int]]], tuple[float, float]]:
    """The levels and strengths of a column."""
    totals = [sum(rows.values()) for rows in cells]
    plain = halves(totals, [])
    tried = [(likelihood(cells, plain, (s, s), prior), (s, s)) for s in STRENGTHS]
    best = max(tried, key=lambda each: each[0])
    levels, strengths = plain, best[1]
    cuts = mdl(cells)
    if cuts:
        told = halves(totals, cuts)
        tried = [(likelihood(cells, told, (f, s), prior), (f, s)) for f in FIRST for s in STRENGTHS]
        other = max(tried, key=lambda each: each[0])
        if other[0] - best[0] > len(cuts) * math.log(max(len(cells) - 1, 2)):
            levels, strengths = told, other[1]
    return levels, strengths if m is None else (m, m)


def density(
    keys: Mapping[tuple[int, Any], Any], classes: Sequence[Any], feature: Any, value: float, label: Any, how: str,
    mdl: Callable[[Cells], list[int]],
) -> float:  # fmt: skip
    """log P(value | class)."""
    unit = feature.unit
    every = sorted({key for key, _ in keys}) or [0]
    rows = [{c: float(keys.get((key, c), 0)) for c in classes} for key in every]
    leaf_of = leaves_of([sum(each.values()) for each in rows])
    n_leaves = leaf_of[-1] + 1
    cells = [{c: sum(r[c] for r, own in zip(rows, leaf_of, strict=True) if own == leaf) for c in classes}
             for leaf in range(n_leaves)]  # fmt: skip
    cuts = []
    for i in range(1, len(every)):
        if leaf_of[i] != leaf_of[i - 1]:
            low, high = number(every[i - 1] + 1, unit), number(every[i], unit)
            cuts.append(min(max(low / 2 + high / 2, low), high))
    leaf = sum(cut <= value for cut in cuts)
    totals, n = [sum(each.values()) for each in cells], sum(sum(each.values()) for each in cells)
    if how == "mle":
        own = sum(each[label] for each in cells)
        mass = cells[leaf][label] / own if own else 1 / n_leaves
    else:
        prior = {c: (sum(each[c] for each in cells) + 0.5) / (n + 0.5 * len(classes)) for c in classes}
        levels, strengths = tree(cells, prior, feature.family.m, mdl)
        wide = halves(totals, [])
        few = [nodes for nodes in wide if len(nodes) <= max(2, int(2.0 * n ** (1.0 / 3.0)))]
        nodes = few[-1] if few else wide[0]
        ends = [number(every[0], unit), *cuts, number(every[-1] + 1, unit)]
        joint = []
        for i in range(n_leaves):
            a, b = next(node for node in nodes if node[0] <= i < node[1])
            rows_in = (sum(totals[a:b]) + 0.5) / (n + 0.5 * len(nodes))
            part = float((Fraction(ends[i + 1]) - Fraction(ends[i])) / (Fraction(ends[b]) - Fraction(ends[a])))
            joint.append(share(cells, levels, strengths, i, prior)[label] * rows_in * part)
        mass = joint[leaf] / sum(joint)
    if mass <= 0:
        return -math.inf
    return math.log(mass) + _within(cuts, number(every[0], unit), number(every[-1] + 1, unit), value)


def _within(cuts: Sequence[float], low: float, high: float, value: float) -> float:
    """The logarithm of the density of a value within its leaf: even, and half as much in each stretch beyond the outer leaves,
    which are twice as wide each."""
    first, last = (cuts[0], cuts[-1]) if cuts else (high, low)
    least = max(abs(low), abs(high)) * 2.0**-40 or 2.0**-1000
    widths = max(first - low, least), max(high - last, least)
    if low <= value < high:
        leaf = sum(cut <= value for cut in cuts)
        ends = [low, *cuts, high]
        outer = leaf in (0, len(cuts))
        return (-math.log(2) if outer else 0.0) - math.log(max(ends[leaf + 1] - ends[leaf], 2.0**-1060))
    far, wide = (low - value, widths[0]) if value < low else (value - high, widths[1])
    # Stretch k is from wide · (2^k − 1) to wide · (2^(k + 1) − 1) away; the thirtieth has no end.
    k = next((k for k in range(29) if _inside(far, wide, k, value < low, low, high)), 29)
    halvings = min(k + 2, 30) + (0 if cuts else 1)
    return -halvings * math.log(2) - math.log(wide) - k * math.log(2)


def _inside(far: float, wide: float, k: int, left: bool, low: float, high: float) -> bool:
    return far <= wide * (2.0 ** (k + 1) - 1) if left else far < wide * (2.0 ** (k + 1) - 1)


def trend(cells: Cells, places: Sequence[float], leaf: int, own: Any = None) -> dict[Any, float]:
    """What a leaf says by its column's trend; without one row of class ``own`` in it, or as much of it as there is."""
    cells = [dict(rows) for rows in cells]
    if own is not None:
        cells[leaf][own] = max(cells[leaf][own] - 1.0, 0.0)
    each = list(zip(cells, places, strict=True))
    mean = {
        c: math.fsum(rows[c] * z for rows, z in each) / (math.fsum(rows[c] for rows in cells) + 0.5) for c in cells[0]
    }
    apart = math.fsum(rows[c] * (z - mean[c]) ** 2 for rows, z in each for c in mean)
    variance = max((apart + 1.0) / (math.fsum(n for rows in cells for n in rows.values()) + 1.0), 0.01)
    return {c: (places[leaf] * mean[c] - mean[c] ** 2 / 2.0) / variance for c in mean}
