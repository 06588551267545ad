"""Trees of columns again, slow and obvious: a part of naive.py. A row counts once for each column, and for each two of them.

Which columns are nodes, and where the first rows cut their numbers, is read off the schema. What a row lacks is summed out by
writing down everything that it could be.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise, product
from typing import Any

from scipy.stats import chi2

import naive

ZERO = Fraction(0)
FEWEST_ROWS = 10  # of a class, for it to be tested
NEW, LACKING = object(), object()  # a value that no row had, and none at all
Pair = tuple[tuple[int, Any], tuple[int, Any]]


def keys_of(feature: Any, value: Sequence[Any]) -> list[Pair]:
    """Each value with itself, and with that of each column before it; a missing value is in no pair."""
    parts = [(k, key_of(node, x)) for k, (node, x) in enumerate(zip(feature.family.nodes, value, strict=True))]
    there = [part for part, x in zip(parts, value, strict=True) if is_there(feature.family.nodes[part[0]], x)]
    return [(upper, lower) for upper in there for lower in there if lower[0] <= upper[0]]


def is_there(node: Any, x: Any) -> bool:
    return not naive.missing(x) or getattr(node.family, "missing", "skip") == "category"


def key_of(node: Any, x: Any) -> Any:
    if node.cuts is None and node.kind == "string" and isinstance(x, float):  # no first row had a value
        return f"{x:.15g}"
    if node.cuts is None:
        return naive.key_of(node, x)
    return None if naive.missing(x) else sum(cut <= x for cut in node.cuts)


def in_order(keys: set[Pair]) -> list[Pair]:
    """By column and value; where missing is a category, it is the last."""
    return sorted(keys, key=lambda pair: [(k, x is None, 0 if x is None else x) for k, x in pair])


def score(tally: Any, feature: Any, value: Sequence[Any], label: Any, how: str, alpha: float) -> float:
    """log P(value | class)."""
    tree = Tree(tally, feature, how, alpha)
    places = [tree.place(k, x) for k, x in enumerate(value)]
    known = [k for k, values in enumerate(tree.values) if values]
    total = 0.0
    for several in product(*(tree.values[k] if places[k] in (LACKING, NEW) else [places[k]] for k in known)):
        world = dict(zip(known, several, strict=True))
        share = 1.0
        for k in known:
            parent = tree.parents[k]
            above = None if parent is None else world[parent]
            shares, new = tree.shares(k, above, label)
            share *= shares[world[k]] * (new if places[k] is NEW else 1.0)
        total += share
    return naive.log(total)


@dataclass
class Tree:
    """The tree that a tally's rows draw."""

    tally: naive.Tally
    feature: Any
    how: str
    alpha: float

    @property
    def nodes(self) -> Sequence[Any]:
        return self.feature.family.nodes  # type: ignore[no-any-return]

    @cached_property
    def groups(self) -> list[dict[Any, int]]:
        """Of each column the value that each key counts as: fine bins are joined where the classes do not change."""
        return [self._group(k, node) for k, node in enumerate(self.nodes)]

    def _group(self, k: int, node: Any) -> dict[Any, Any]:
        alone: dict[Any, dict[Any, Fraction]] = {}
        for ((upper, key), lower), label in self.tally.keys[self.feature.name]:
            if (upper, key) == lower and upper == k:
                cell = self.tally.keys[self.feature.name][(lower, lower), label]
                alone.setdefault(key, {})[label] = cell
        if node.cuts is None:
            return {key: key for key in {*alone, *(node.family.permanent_keys() or ())}}
        bins = range(len(node.cuts) + 1)
        if node.family.bins != "mdl" or node.family.width is not None:
            return {key: key for key in bins}
        assert len(alone) <= 10  # more would be cut into ten of about equal shares
        apart = naive.fayyad_irani(sorted(alone.items())) or list(pairwise(sorted(alone)))
        return {key: sum(key > (a + b) // 2 for a, b in apart) for key in bins}

    @cached_property
    def values(self) -> list[list[Any]]:
        return [
            sorted(set(group.values()), key=lambda x: (x is None, 0 if x is None else x)) if group else []
            for group in self.groups
        ]

    @cached_property
    def cells(self) -> dict[tuple[Pair, Any], Fraction]:
        """(pair of values, class) → rows; the pair may be named either way round."""
        cells: dict[tuple[Pair, Any], Fraction] = {}
        for (((k, x), (j, y)), label), w in self.tally.keys[self.feature.name].items():
            a, b = (k, self.groups[k][x]), (j, self.groups[j][y])
            for pair in {(a, b), (b, a)}:
                cells[pair, label] = cells.get((pair, label), ZERO) + w
        return cells

    def place(self, k: int, x: Any) -> Any:
        if not is_there(self.nodes[k], x):
            return LACKING
        return self.groups[k].get(key_of(self.nodes[k], x), NEW)

    def _prior(self, k: int) -> Mapping[Any, Fraction]:
        family, values = self.nodes[k].family, self.values[k]
        if family.name == "histogram":
            return dict.fromkeys(values, Fraction(self.alpha if family.alpha is None else family.alpha))
        return naive.pseudo_counts(family, values, self.alpha)

    def shares(self, k: int, above: Any, label: Any) -> tuple[dict[Any, float], float]:
        """P(value | class, the parent's value), and that of a value that no row had, 1 where that is no evidence."""
        parent = self.parents[k]
        if parent is None:
            return self._dirichlet(k, {x: self.cells.get((((k, x), (k, x)), label), ZERO) for x in self.values[k]})
        tables = {c: {u: self._beside(k, parent, u, c) for u in self.values[parent]} for c in self.tally.classes()}
        rows, of_class = tables[label][above], added(tables[label].values())
        of_parent = added(table[above] for table in tables.values())
        fewer, new_of_fewer = self._dirichlet(k, of_class)
        beside, new_beside = self._dirichlet(k, of_parent)
        alone, new_alone = self._dirichlet(k, added(added(table.values()) for table in tables.values()))
        lower = {x: fewer[x] * beside[x] / alone[x] if alone[x] else 0.0 for x in rows}
        whole = sum(lower.values()) or 1.0
        lower = {x: share / whole for x, share in lower.items()} if any(lower.values()) else fewer
        before = sum(entropy(added(table.values())) for table in tables.values())
        left = sum(entropy(rows) for table in tables.values() for rows in table.values()) / before if before else 1.0
        prior = self._prior(k)
        m = float(naive.weight(ZERO, sum(prior.values()) / len(prior), self.how)) * (1 + left**2 * sqrt(of_class))
        n = float(sum(rows.values()))
        new = m / (n + m) * new_of_fewer * new_beside / new_alone / whole if m else 1.0
        return {x: (float(w) + m * lower[x]) / (n + m) if n + m else lower[x] for x, w in rows.items()}, new

    def _beside(self, k: int, parent: int, above: Any, label: Any) -> dict[Any, Fraction]:
        return {x: self.cells.get((((k, x), (parent, above)), label), ZERO) for x in self.values[k]}

    def _dirichlet(self, k: int, rows: Mapping[Any, Fraction]) -> tuple[dict[Any, float], float]:
        prior = self._prior(k)
        weights = {x: naive.weight(n, prior[x], self.how) for x, n in rows.items()}
        shares = {x: float(naive.share(own, sum(weights.values()), len(weights))) for x, own in weights.items()}
        strength = naive.weight(ZERO, sum(prior.values()) / len(prior), self.how)
        return shares, float(strength / (sum(rows.values()) + strength * len(rows))) if strength else 1.0

    @cached_property
    def parents(self) -> list[int | None]:
        """Edges in the order of what they share, unless they close a cycle; they lead away from the root, or the first column."""
        family, several = self.feature.family, [k for k, values in enumerate(self.values) if len(values) > 1]
        weighed = {}
        pairs = list(combinations(several, 2))
        for pair in pairs:
            bits = self.shared(*pair)
            if family.level is not None:
                bits = self.beyond_chance(*pair, len(pairs))
            if family.level is None or bits > 0:
                weighed[pair] = round(bits, 9)  # so that ties are ties
        trees = [{k} for k in range(len(self.nodes))]
        edges = []
        for a, b in sorted(weighed, key=lambda pair: (-weighed[pair], pair)):
            here, there = (next(tree for tree in trees if k in tree) for k in (a, b))
            if here is not there:
                edges += [(a, b), (b, a)]
                trees.remove(there)
                here |= there
        parents: list[int | None] = [None] * len(self.nodes)
        first = 0 if family.root is None else self.feature.columns.index(family.root)
        for root in (first, *(min(tree) for tree in trees if first not in tree)):
            reached = [root]
            for a in reached:
                for _, b in (edge for edge in edges if edge[0] == a and edge[1] not in reached):
                    parents[b] = a
                    reached.append(b)
        return parents

    def _table(self, a: int, b: int, label: Any) -> dict[tuple[Any, Any], float]:
        each = product(self.values[a], self.values[b])
        cells = {(x, y): float(self.cells.get((((a, x), (b, y)), label), ZERO)) for x, y in each}
        return {pair: n for pair, n in cells.items() if n}

    def _tables(self, a: int, b: int, least: float) -> list[dict[tuple[Any, Any], float]]:
        """A table for each class that has enough rows."""
        tables = [self._table(a, b, label) for label in self.tally.classes()]
        return [table for table in tables if table and sum(table.values()) >= least]

    def shared(self, a: int, b: int, least: float = 0.0) -> float:
        """I(A; B | class) in bits."""
        tables = self._tables(a, b, least)
        n = sum(sum(table.values()) for table in tables)
        return sum(sum(table.values()) / n * mutual_information(table) for table in tables)

    def beyond_chance(self, a: int, b: int, n_pairs: int) -> float:
        """The bits less those that chance gives; 0 where the likelihood-ratio test, as Williams corrects it, is not passed."""
        tables = self._tables(a, b, FEWEST_ROWS * (1 - 1e-9))
        n = sum(sum(table.values()) for table in tables)
        freedom, excess = 0, 0.0
        for table in tables:
            rows = sum(table.values())
            firsts, seconds = (margin(table, side).values() for side in (0, 1))
            freedom += (own := (len(firsts) - 1) * (len(seconds) - 1))
            both = ((rows * sum(1 / m for m in margins) - 1) for margins in (firsts, seconds))
            excess += math.prod(both) / (6 * rows) if own else 0.0
        if not freedom:
            return 0.0
        bits = self.shared(a, b, FEWEST_ROWS * (1 - 1e-9))
        g = 2 * math.log(2) * n * bits * freedom / (freedom + excess)
        passed = chi2.sf(g, freedom) * n_pairs < self.feature.family.level
        return max(bits - freedom / (2 * n * math.log(2)), 0.0) if passed else 0.0


def added(tables: Iterable[Mapping[Any, Fraction]]) -> dict[Any, Fraction]:
    sums: dict[Any, Fraction] = {}
    for table in tables:
        for x, n in table.items():
            sums[x] = sums.get(x, ZERO) + n
    return sums


def entropy(rows: Mapping[Any, Fraction]) -> float:
    """In nats, times the number of rows."""
    n = sum(rows.values())
    return -sum(float(own) * math.log(own / n) for own in rows.values() if own)


def sqrt(rows: Mapping[Any, Fraction]) -> float:
    return math.sqrt(sum(rows.values()))


def margin(table: Mapping[tuple[Any, Any], float], side: int) -> dict[Any, float]:
    sums: dict[Any, float] = {}
    for pair, n in table.items():
        sums[pair[side]] = sums.get(pair[side], 0.0) + n
    return sums


def mutual_information(table: Mapping[tuple[Any, Any], float]) -> float:
    n, firsts, seconds = sum(table.values()), margin(table, 0), margin(table, 1)
    return sum(own / n * math.log2(own * n / (firsts[x] * seconds[y])) for (x, y), own in table.items())
