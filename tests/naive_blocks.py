"""Blocks of columns again, slow and obvious: a part of naive.py. A block's value is a list, with None for what is missing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy.stats import multivariate_t

import by_shape
import naive

ZERO = Fraction(0)
Cell = tuple[Any, ...]


def key_of(feature: Any, value: Sequence[Any]) -> Cell | None:
    """The combination of values, or of the numbers of their bins; a row that lacks one of them has none."""
    if any(naive.missing(part) for part in value):
        return None
    if by_shape.shape(feature.family) == "keys":
        return tuple(value)
    places = zip(value, feature.scales, strict=True)
    return tuple(math.floor((Fraction(x) - Fraction(start)) / Fraction(width)) for x, (start, width) in places)


def score(tally: Any, feature: Any, value: Sequence[Any], label: Any, how: str, alpha: float) -> float:
    """log P(value | class), by the columns that are there."""
    there = [j for j, part in enumerate(value) if not naive.missing(part)]
    if not there:
        return 0.0
    by_family = {"joint": _joint, "histogram": _histogram, "kernel_density": _kernel_density, "gaussian": _gaussian}
    return by_family[feature.family.name](tally, feature, value, there, label, how, alpha)


Sums = tuple[Fraction, list[Fraction], list[list[Fraction]]]


def add_products(sums: dict[Any, Sums], feature: Any, value: Sequence[Any], label: Any, w: Fraction) -> None:
    """n, Σx and Σxxᵀ of the rows that have all values."""
    if any(naive.missing(part) for part in value):
        return
    x = [naive.on_grid(part, *scale) for part, scale in zip(value, feature.scales, strict=True)]
    d = len(x)
    n, first, second = sums.get(label, (ZERO, [ZERO] * d, [[ZERO] * d for _ in x]))
    more = [[second[i][j] + w * x[i] * x[j] for j in range(d)] for i in range(d)]
    sums[label] = n + w, [a + w * b for a, b in zip(first, x, strict=True)], more


def _moments(sums: Sums) -> tuple[list[Fraction], list[list[Fraction]]]:
    """The mean, and the sums of products about it."""
    n, first, second = sums
    mean = [a / n for a in first]
    return mean, [[s - n * mean[i] * mean[j] for j, s in enumerate(row)] for i, row in enumerate(second)]


def shrunk(within: list[list[Fraction]], rows: Sequence[Fraction]) -> list[list[Fraction]]:
    """Sums of products whose correlations are shrunk, by the share of Chen, Wiesel, Eldar and Hero (2010)."""
    there = [i for i, row in enumerate(within) if row[i] > 0]
    p, n = len(there), sum(rows) - sum(min(each, Fraction(1)) for each in rows)
    squares = sum((within[i][j] ** 2 / within[i][i] / within[j][j] for i in there for j in there), ZERO)
    share = Fraction(1)
    if p > 1 and squares > p and n + 1 > Fraction(2, p):
        share = min(((1 - Fraction(2, p)) * squares + p * p) / ((n + 1 - Fraction(2, p)) * (squares - p)), share)
    return [[s if i == j else (1 - share) * s for j, s in enumerate(row)] for i, row in enumerate(within)]


def _gaussian(tally: Any, feature: Any, value: Any, there: list[int], label: Any, how: str, _: float) -> float:
    """Means and covariances of exact sums, in units of the columns' own deviations; the rest is linear algebra."""
    family, d, sums = feature.family, len(feature.scales), tally.sums[feature.name]
    if not sums:
        origins = [Fraction(origin) for origin, _ in feature.scales]
        every: Sums = (Fraction(1), origins, [[a * b for b in origins] for a in origins])
    else:
        add = [list(map(sum, zip(*(first for _, first, _ in sums.values()), strict=True)))]
        both = [[sum(s[i][j] for _, _, s in sums.values()) for j in range(d)] for i in range(d)]
        every = (sum(n for n, _, _ in sums.values()), add[0], both)
    centre, scatter = _moments(every)
    variance = [scatter[i][i] / every[0] or Fraction(unit) ** 2 for i, (_, unit) in enumerate(feature.scales)]
    unit = np.sqrt(np.array([float(v) for v in variance]))
    per_class = {c: (n, *_moments((n, first, second))) for c, (n, first, second) in sums.items()}
    own = per_class.get(label, (ZERO, centre, [[ZERO] * d for _ in range(d)]))
    within = [[sum((s[i][j] for _, _, s in per_class.values()), ZERO) for j in range(d)] for i in range(d)]
    tied, n = family.covariance in ("tied", "shrunk"), own[0]
    if family.covariance == "shrunk" and how != "mle":
        within = shrunk(within, [rows for rows, _, _ in per_class.values()])
    total = every[0] if sums else ZERO

    def scaled(matrix: Any, by: Fraction) -> Any:
        return np.array([[float(s / by) for s in row] for row in matrix]) / unit[:, None] / unit

    x, m = np.array([value[j] if j in there else 0.0 for j in range(d)], dtype=object), own[1]
    z = np.array([float(Fraction(x[j]) - m[j]) / unit[j] for j in range(d)])[there]
    if how != "predictive":
        covariance = (
            scaled(within, total or Fraction(1)) if tied else scaled(own[2], n) if n else scaled(scatter, every[0])
        )
        if family.covariance == "shrunk" and how != "mle":
            covariance = covariance + 1e-6 * np.diag([float(scatter[i][i] <= 0) for i in range(d)])
        values = np.linalg.eigvalsh(covariance)
        if not values[0] > 1e-12 * max(values[-1], 1.0):
            covariance = (1.0 - 1e-6) * covariance + 1e-6 * np.eye(d)
        few = covariance[np.ix_(there, there)]
        square = float(z @ np.linalg.solve(few, z))
        found = -0.5 * (square + len(there) * math.log(2 * math.pi) + np.linalg.slogdet(few)[1])
        return float(found - np.log(unit[there]).sum())
    kappa, nu, strength = 1e-3, 1.0, float(total if tied else n)
    groups = per_class.values() if tied else [own]
    spread = np.eye(d) * nu + scaled(within if tied else own[2], Fraction(1))
    for rows, mean, _ in groups:
        apart = np.array([float(a - b) for a, b in zip(mean, centre, strict=True)]) / unit
        spread += kappa * float(rows) / (kappa + float(rows)) * np.outer(apart, apart)
    rows = float(n)
    degrees, weight = nu + strength, kappa + rows
    shift = np.array([float(a - b) for a, b in zip(centre, own[1], strict=True)]) / unit * kappa / weight
    few = (spread * (weight + 1.0) / (weight * degrees))[np.ix_(there, there)]
    return float(multivariate_t(shift[there], few, df=degrees).logpdf(z) - np.log(unit[there]).sum())


def rows_of(tally: Any, feature: Any, label: Any) -> dict[Cell, Fraction]:
    return {key: w for (key, c), w in tally.keys[feature.name].items() if c == label}


def together(tally: Any, feature: Any) -> dict[Cell, Fraction]:
    found: dict[Cell, Fraction] = {}
    for (key, _), w in sorted(tally.keys[feature.name].items(), key=lambda item: item[0][0]):
        found[key] = found.get(key, ZERO) + w
    return found


def _shares(rows: Mapping[Cell, Fraction], cells: Sequence[Cell], prior: Fraction, how: str) -> dict[Cell, Fraction]:
    weights = {cell: naive.weight(rows.get(cell, ZERO), prior, how) for cell in cells}
    total = sum(weights.values())
    return {cell: naive.share(own, total, len(cells)) for cell, own in weights.items()}


def _joint(tally: Any, feature: Any, value: Any, there: list[int], label: Any, how: str, alpha: float) -> float:
    seen = [sorted({key[j] for key in together(tally, feature)}) for j in range(len(value))]
    prior = Fraction(alpha if feature.family.alpha is None else feature.family.alpha)
    rows, cells = rows_of(tally, feature, label), list(product(*seen))
    if any(value[j] not in seen[j] for j in there):  # never seen: like a cell without rows, if that has any share
        if how == "mle":
            return 0.0
        total = sum(naive.weight(rows.get(cell, ZERO), prior, how) for cell in cells)
        own = naive.weight(ZERO, prior, how)
        share = own / total if total else Fraction(1, max(len(cells), 1))
        beside = math.prod(len(seen[j]) for j in there if value[j] in seen[j])  # all of these are as likely
        return naive.log(share) - (math.log(beside) if share < 1 else 0.0) if share else 0.0
    shares = _shares(rows, cells, prior, how)
    return naive.log(sum(shares[cell] for cell in cells if all(cell[j] == value[j] for j in there)))


def _axis(tally: Any, feature: Any, j: int) -> tuple[int, list[tuple[int, int]]]:
    """How many fine bins are a step of column j, and the bins from step to step, one more on either side than rows have."""
    steps: dict[int, dict[Any, Fraction]] = {}
    for (key, c), w in sorted(tally.keys[feature.name].items(), key=lambda item: item[0][0][j]):
        each = steps.setdefault(key[j], {})
        each[c] = each.get(c, ZERO) + w
    all_classes = {code: sum(each.values()) for code, each in steps.items()}
    size = 2 ** naive.doublings(feature.family, all_classes, len(feature.columns))
    joined: dict[int, dict[Any, Fraction]] = {}
    for code, each in steps.items():
        own = joined.setdefault(code // size, {})
        for c, w in each.items():
            own[c] = own.get(c, ZERO) + w
    codes = list(joined) or [0]
    if feature.family.bins == "mdl":
        cuts = ((a + b + 1) // 2 for a, b in naive.fayyad_irani(list(joined.items())))
        return size, list(pairwise([codes[0] - 1, *cuts, codes[-1] + 2]))
    return size, list(pairwise(range(codes[0] - 1, codes[-1] + 3)))


def _histogram(tally: Any, feature: Any, value: Any, there: list[int], label: Any, how: str, alpha: float) -> float:
    axes = [_axis(tally, feature, j) for j in range(len(value))]

    def place(j: int, code: int) -> tuple[int, int]:
        """The bin of column j, and how many steps beyond it."""
        size, bins = axes[j]
        step = code // size
        inside = min(max(step, bins[0][0]), bins[-1][1] - 1)
        return next(i for i, (a, b) in enumerate(bins) if a <= inside < b), min(abs(step - inside), 2**20)

    counts: dict[Cell, Fraction] = {}
    for key, w in rows_of(tally, feature, label).items():
        cell = tuple(place(j, code)[0] for j, code in enumerate(key))
        counts[cell] = counts.get(cell, ZERO) + w
    prior = Fraction(alpha if feature.family.alpha is None else feature.family.alpha)
    found, size = 0.0, Fraction(1)
    mine = {}
    for j in there:
        start, width = feature.scales[j]
        code = math.floor((Fraction(value[j]) - Fraction(start)) / Fraction(width))
        mine[j], beyond = place(j, code)
        step, bins = axes[j]
        a, b = bins[mine[j]]
        size *= Fraction(width) * step * (b - a + (mine[j] == 0) + (mine[j] == len(bins) - 1))
        found -= beyond * math.log(2)
    n_bins = [len(bins) for _, bins in axes]
    beside = {cell: n for cell, n in counts.items() if all(cell[j] == mine[j] for j in there)}
    n_cells, n_beside = math.prod(n_bins), math.prod(n for j, n in enumerate(n_bins) if j not in there)
    own, total = (
        sum(naive.weight(n, prior, how) for n in some.values()) + (n - len(some)) * naive.weight(ZERO, prior, how)
        for some, n in ((beside, n_beside), (counts, n_cells))
    )
    return found + naive.log((own / total if total else Fraction(n_beside, n_cells)) / size)


def _deviation(rows: Mapping[Cell, Fraction], j: int) -> tuple[float, float]:
    own: dict[int, Fraction] = {}
    for cell, w in rows.items():
        own[cell[j]] = own.get(cell[j], ZERO) + w
    return naive.deviation(own)


def bandwidths(feature: Any, rows: Mapping[Cell, Fraction]) -> list[float]:
    """In bins; never less than one."""
    family, d = feature.family, len(feature.columns)
    if not isinstance(family.bandwidth, str):
        given = family.bandwidth if isinstance(family.bandwidth, tuple) else (family.bandwidth,) * d
        return [max(h / width, 1.0) for h, (_, width) in zip(given, feature.scales, strict=True)]
    n = float(sum(rows.values()))
    factor = (n * (d + 2) / 4 if family.bandwidth == "silverman" else n) ** (-1 / (d + 4))
    rule = [_deviation(rows, j)[1] / naive.DEVIATIONS[family.kernel] * factor for j in range(d)]
    if family.bandwidth != "leave-one-out" or len(rows) < 2:
        return [max(h, 1.0) for h in rule]
    least = [_least(family.kernel, rows, j) for j in range(d)]
    best = [max(h, least[j]) for j, h in enumerate(rule)]
    tried = [[max(h * 2 ** (k / 2), least[j]) for j, h in enumerate(rule)] for k in range(-8, 5)]
    for h in tried:
        best = h if left_out(family.kernel, rows, h) > left_out(family.kernel, rows, best) else best
    for finer in (1.0, 0.5, 0.25, 0.125):
        for _ in range(8):
            before = best
            for j, way in product(range(d), (-finer, finer)):
                h = [max(x * 2**way, least[j]) if i == j else x for i, x in enumerate(best)]
                best = h if left_out(family.kernel, rows, h) > left_out(family.kernel, rows, best) else best
            if best == before:
                break
    return best


def _least(kernel: str, rows: Mapping[Cell, Fraction], j: int) -> float:
    column: dict[int, Fraction] = {}
    for cell, w in rows.items():
        column[cell[j]] = column.get(cell[j], ZERO) + w
    return max(0.5 * naive.rounding(column) / naive.DEVIATIONS[kernel], 1.0)


def left_out(name: str, rows: Mapping[Cell, Fraction], h: Sequence[float]) -> float:
    """The log-likelihood of the rows, each under the kernels of the others."""
    if min(h) >= 16:
        joined: dict[Cell, Fraction] = {}
        for cell, w in rows.items():
            half = tuple(b // 2 for b in cell)
            joined[half] = joined.get(half, ZERO) + w
        apart = float(sum(rows.values())) * len(h) * math.log(2)
        return left_out(name, joined, [x / 2 for x in h]) - apart
    found, n = 0.0, float(sum(rows.values()))
    for cell, w in rows.items():
        density = 0.0
        for other, v in rows.items():
            each = [naive.kernel(name, (a - b) / x) / x for a, b, x in zip(cell, other, h, strict=True)]
            density += max(float(v) - (other == cell), 0.0) * math.prod(each)
        without = n - min(float(w), 1.0)
        without = without if without > 1e-12 * n else 1.0
        found += float(w) * (math.log(max(density, 2.2250738585072014e-308)) - math.log(without))
    return found


def _kernel_density(tally: Any, feature: Any, value: Any, there: list[int], label: Any, how: str, _: float) -> float:
    family, every = feature.family, together(tally, feature)
    rows = rows_of(tally, feature, label) or every
    if not rows:
        return 0.0
    h, n = bandwidths(feature, rows), float(sum(rows.values()))
    z = {
        j: float((Fraction(value[j]) - Fraction(feature.scales[j][0])) / Fraction(feature.scales[j][1])) for j in there
    }
    units = sum(naive.log(Fraction(feature.scales[j][1])) for j in there)
    if family.kernel == "normal":
        logs = [
            naive.log(w) - sum(0.5 * ((z[j] - cell[j] - 0.5) / h[j]) ** 2 for j in there) for cell, w in rows.items()
        ]
        sum_of = max(logs) + math.log(sum(math.exp(each - max(logs)) for each in logs)) - math.log(n)
        return sum_of - sum(math.log(h[j]) + math.log(2 * math.pi) / 2 for j in there) - units
    near = 0.0
    for cell, w in rows.items():
        near += (
            float(w) * math.prod(naive.kernel(family.kernel, (z[j] - cell[j] - 0.5) / h[j]) / h[j] for j in there) / n
        )
    far = math.log(1e-6)
    for j in there:
        mean, spread = _deviation(every, j)
        spread = max(spread, 1.0)
        far -= 0.5 * ((z[j] - mean - 0.5) / spread) ** 2 + math.log(spread) + math.log(2 * math.pi) / 2
    both = [far] if near == 0 else [far, math.log((1 - 1e-6) * near)]
    return max(both) + math.log(sum(math.exp(each - max(both)) for each in both)) - units
