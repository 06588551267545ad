"""Quantile trees: what each stretch of a column's numbers says, shrunk towards the wider stretch it is part of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real, over_classes
from banbury.families import dirichlet
from banbury.families.bins import BinCounter
from banbury.families.cells import (
    HALF_ROW,
    INFINITE,
    MOST_LEAVES,
    SIGN,
    SMALLEST,
    Forest,
    NumberCells,
    Strengths,
    Tree,
    between,
    bin_edges,
    prior_of,
    trees_of,
)
from banbury.families.dirichlet import different_rows
from banbury.families.evidence import stretch
from banbury.families.family import (
    Choice,
    ColumnReader,
    Family,
    Feature,
    HeldOutRows,
    NumberColumn,
    NumericParameters,
    RowsToCount,
    check_settings,
    is_power,
)
from banbury.families.keys import LOWEST, BinnedFamily, KeyCounter, bin_codes, scalar_keys
from banbury.reading import Batch, Codes
from banbury.sums import Counts, Keys, WholeKeys

MOST_KEYS = 2048  # that a column may occupy
TAILS = 30  # stretches beyond the outer leaf, each twice as wide as the last and with half its rows
POWERS = 2.0 ** np.arange(TAILS) - 1.0
OUTSIDE = -np.log(2.0) * np.minimum(np.arange(TAILS) + 2.0, TAILS)  # a quarter in the next, an eighth beyond, …
LARGEST = float(np.finfo(np.float64).max)


def value_range(
    feature: Feature, keys: Keys, rows: Real | None = None, share: float = 0.0
) -> tuple[float, float] | None:
    """The least and the greatest number that was counted, or the ends of their bins; None in other families.

    A ``share`` of the ``rows`` of each key is left out at either end.
    """
    if not isinstance(feature.counter, LeadingBitsCounter) or not len(keys):
        return None
    bins = np.array(keys, dtype=np.int64)
    if rows is not None and rows.sum() > 0:
        below = np.cumsum(rows) / rows.sum()
        bins = bins[[int(np.searchsorted(below, share)), min(int(np.searchsorted(below, 1.0 - share)), len(bins) - 1)]]
    low, high = bin_edges(bins[[0, -1]] + np.array([0, feature.unit > 1.0]), feature.unit).tolist()
    return low, high


class LeadingBitsCounter(BinCounter):
    """The rows that share the leading bits of a number: bins of every magnitude, that need no scale.

    ``unit`` is 2 to the number of bits dropped: as few as leave no more bins occupied than may be.
    """

    most: ClassVar[int] = MOST_KEYS
    describe_scale = KeyCounter.describe_scale

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        return ()

    def settle(self, features: Sequence[Feature], batch: Batch) -> Sequence[Feature]:
        return [feature._replace(kind="float", origin=0.0, unit=1.0) for feature in features]

    def has_valid_scale(self, feature: Feature) -> bool:
        return not feature.scales and is_power(feature.unit) and 1.0 <= feature.unit < 2.0**63

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Counts]:
        names = [feature.name for feature in features]
        shifts = np.array([int(np.log2(feature.unit)) for feature in features], dtype=np.int64)
        counted = rows.run_kernel(_core.count_leading, names, rows.batch.numbers(names), shifts, MOST_KEYS)
        parts: Any = [(WholeKeys(keys), cells) for keys, cells, _ in counted]
        if shifts.tolist() != [shift for *_, shift in counted]:
            features = [f._replace(unit=2.0**shift) for f, (*_, shift) in zip(features, counted, strict=True)]
        return features, Counts.join(parts, len(rows.labels))

    def key(self, feature: Feature, key: Any) -> str:
        return f"{feature.name} {stretch(*bin_edges(np.array([key, key + 1]), feature.unit).tolist())}"

    def summary(self, feature: Feature, sums: Counts, missing: str) -> str:
        if not sums.keys[0]:
            return f"no value{missing}"
        keys = np.array(sums.keys[0], dtype=np.int64)
        low, high = bin_edges(keys[[0, -1]], feature.unit)
        return f"{len(keys):,} {'values' if feature.unit == 1.0 else 'bins'} from {low:.6g} to {high:.6g}{missing}"

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        most = INFINITE >> int(np.log2(feature.unit))
        if not all(type(key) is int and -most - 1 <= key <= most for key in scalar_keys(feature, keys)):
            raise ValueError(f"the keys of {feature.name!r} are not leading bits of numbers")
        return cast(Keys, WholeKeys(np.array(keys, dtype=np.int64)))


LEADING_BITS = LeadingBitsCounter()


@dataclass(frozen=True, repr=False)
class QuantileTree(BinnedFamily):
    """Numbers of any shape: each interval has the class frequencies of its rows, shrunk towards the wider interval
    around it.

    Counting keeps the leading bits of each number, so that a column has at most 2,048 different values, whatever their
    magnitude. Estimation merges them into at most 128 leaves with equally many rows, builds a binary tree over the
    leaves, and estimates it from the root, which has the class frequencies of all rows: the share of a class in a node
    is (n + m · its share in the parent) / (N + m). ``m`` is chosen from ½ to 1,024 to maximise the leave-one-out
    likelihood. Cuts that separate the classes are placed first if they gain more than they cost. Within a leaf, rows
    are spread uniformly over some intervals, the same in every class; beyond the outermost leaves, each interval is
    twice as wide as the one before and has half as many rows.

    >>> import banbury as bb
    >>> ages = {"age": [3.0, 4.0, 12.0, 13.0], "school": ["none", "none", "high", "high"]}
    >>> model = bb.estimate(bb.count(ages, target="school", features="quantile_tree"))
    >>> model.predict({"age": [1.0, 14.0]}).tolist()
    ['none', 'high']
    """

    m: float | None = None

    name: ClassVar[str] = "quantile_tree"
    has_cells: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self, "m", zero=True)

    def counter(self, feature: Feature) -> LeadingBitsCounter:
        return LEADING_BITS

    def counting_key(self) -> tuple[Any, ...]:
        return ("leading bits",)

    def estimate(
        self, features: tuple[Feature, ...], sums: Counts, choice: Choice, rng: np.random.Generator
    ) -> QuantileTreeParameters:
        leaves = self.leaves(features, sums)
        logs = dirichlet.log(_shares(leaves, choice, rng))
        starts = np.cumsum([0, *(len(column.cells) for column in leaves)])
        tables = tuple(
            logs[start + column.leaf] - column.log_widths[:, None] + column.log_tails[:, None]
            for start, column in zip(starts[:-1], leaves, strict=True)
        )
        edges = tuple(column.edges for column in leaves)
        cuts = tuple(column.cuts for column in leaves)
        return QuantileTreeParameters(features, edges, tables, cuts)

    def leaves(self, features: tuple[Feature, ...], sums: Counts, threads: int = 1) -> list[Leaves]:
        """The leaves of every column, and the rows of each class in them; no prior changes them."""
        made = [(type(self), self.m, feature.unit) for feature in features]
        new = [f for f, how in enumerate(made) if how not in sums.derived[f]]
        if new:
            rows = sums.cells.value
            at = sums.offsets
            counted = [(np.array(sums.keys[f], dtype=np.int64), rows[at[f] : at[f + 1]], features[f].unit) for f in new]
            for f, leaves in zip(new, Leaves.of(counted, self.m, threads), strict=True):
                sums.derived[f][made[f]] = leaves
        return [sums.derived[f][how] for f, how in enumerate(made)]

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        return () if column.has_few_values else (self,)

    def n_parameters(self, features: tuple[Feature, ...], sums: Counts) -> list[tuple[int, int]]:
        return [(max(len(column.cells) - 1, 0), 0) for column in self.leaves(features, sums)]

    def join_cells(self, feature: Feature, keys: Keys, cells: Real) -> Real:
        return _join_bins([cells], 1)[0][1] if len(cells) else cells

    def keys_of(self, rows: ColumnReader, feature: Feature, threads: int = 1, strict: bool = True) -> Codes:
        """The leading bits of numbers, in the order of numbers."""
        numbers = rows.numbers([feature.name])[0].reshape(-1).astype(np.float64) + 0.0  # −0 is no other number
        bits = numbers.view(np.int64)
        keys = np.where(bits < 0, bits ^ SIGN, bits) >> int(np.log2(feature.unit))
        return bin_codes(np.where(np.isnan(numbers), LOWEST, keys))

    def cells(self, features: tuple[Feature, ...], sums: Counts, missing: Real, threads: int) -> Sequence[NumberCells]:
        columns = zip(features, self.leaves(features, sums, threads), missing, strict=True)
        return [self._cells(feature, leaves, lacking) for feature, leaves, lacking in columns]

    def _cells(self, feature: Feature, leaves: Leaves, missing: Real) -> NumberCells:
        trees = [(leaves.tree, leaves.strengths), (leaves.plain, leaves.plain_strengths)]
        if missing.any():
            counts = np.vstack([leaves.cells, missing])
            two = trees if leaves.tree.told_apart else trees[:1] * 2
            trees = [self._with_missing(tree, counts) for tree, _ in two]
        (tree, strengths), (plain, plain_strengths) = trees
        return NumberCells(feature, tree, strengths, plain, plain_strengths, leaves.cuts)

    def _with_missing(self, tree: Tree, counts: Real) -> tuple[Tree, Strengths]:
        tree = tree.with_missing()
        return tree, tree.choose_strengths(counts, prior_of(counts))[0] if self.m is None else (self.m, self.m)

    def leave_one_out(self, features: tuple[Feature, ...], sums: Counts, choice: Choice, held_out: HeldOutRows) -> Real:
        """Leaves, strengths and the shares of the classes are those of all rows."""
        total = np.zeros((len(held_out.labels), held_out.n_classes))
        for feature, leaves in zip(features, self.leaves(features, sums), strict=True):
            column = held_out.rows.numbers([feature.name])
            cell = _core.steps(column, [leaves.edges], held_out.threads)[:, 0].astype(np.int64)
            there = np.flatnonzero((cell < len(leaves.leaf)) & (held_out.weight > 0))
            cell = cell[there]
            labels = held_out.labels[there]
            if held_out.weights is None:  # many rows are alike
                cell, labels, row = different_rows(cell, labels, (len(leaves.leaf), held_out.n_classes))
                weight = np.ones(len(cell))
            else:
                weight = held_out.weight[there]
                row = np.arange(len(there))
            share = leaves.shares_left_out(choice, leaves.leaf[cell], labels, weight)
            says = (dirichlet.log(share) + (leaves.log_tails - leaves.log_widths)[cell, None])[row]
            total[there if len(there) < len(total) else slice(None)] += says
        return total

    def leave_one_out_notes(self) -> list[str]:
        return ["the leaves and strengths of quantile trees"]


@dataclass(frozen=True)
class Leaves:
    """A column's leaves: the cuts between them, the tree over them and its strengths, and the rows of each class.

    ``edges`` cut the line into leaves and the stretches beyond; ``leaf`` has the leaf of each, ``log_widths`` their widths, and
    ``log_tails`` which part of the leaf's rows each has.
    """

    cells: Real
    tree: Tree
    strengths: Strengths
    plain: Tree
    plain_strengths: Strengths
    cuts: Real
    edges: Real
    leaf: Int
    log_widths: Real
    log_tails: Real

    @classmethod
    def of(cls, columns: Sequence[tuple[Int, Real, float]], m: float | None, threads: int) -> list[Leaves]:
        """Those of columns, from their keys, the rows of each and class, and units."""
        nothing = np.zeros(1, dtype=np.int64)
        counted = [(keys, rows) if len(keys) else (nothing, np.zeros((1, rows.shape[1]))) for keys, rows, _ in columns]
        joined = _join_bins([rows for _, rows in counted], threads)
        begins = [np.append(0, np.flatnonzero(leaf[1:] != leaf[:-1]) + 1) for leaf, _ in joined]
        keys_and_begins = zip((keys for keys, _ in counted), begins, strict=True)
        # Where all leaves but the last end, where they begin, and where the last one ends.
        outer = [np.concatenate([keys[at[1:] - 1] + 1, keys[at], keys[-1:] + 1]) for keys, at in keys_and_begins]
        sizes = np.array([len(keys) for keys in outer])
        edges = bin_edges(np.concatenate(outer), np.repeat([unit for *_, unit in columns], sizes))
        lines: list[tuple[Any, ...]] = [()] * len(columns)
        for size in set(sizes.tolist()):  # columns of as many leaves at once
            alike = np.flatnonzero(sizes == size)
            n = size // 2
            ends = edges[np.repeat(sizes == size, sizes)].reshape(-1, size)
            cuts = between(ends[:, : n - 1], ends[:, n:-1])
            for column, line in zip(alike.tolist(), _stretches(cuts, ends[:, n - 1], ends[:, -1]), strict=True):
                lines[column] = line
        strengths = None if m is None else (m, m)
        leaves = []
        for (_, cells), (tree, plain), line in zip(
            joined, trees_of([c for _, c in joined], threads), lines, strict=True
        ):
            leaves.append(cls(cells, tree[0], strengths or tree[1], plain[0], strengths or plain[1], *line))
        return leaves

    def shares(self, choice: Choice, rng: np.random.Generator) -> Real:
        """P(leaf | class), (leaves, classes)."""
        prior = prior_of(self.cells)
        n = len(self.cells)
        if choice.how == "mle":
            total = self.cells.sum(axis=0)
            return np.asarray(np.where(total > 0, self.cells / np.where(total > 0, total, 1.0), 1.0 / n))
        if choice.how == "gibbs":
            share = self._draw_shares(prior, rng)
        else:
            share = self.tree.shares(self.cells, self.strengths, prior)[-1]
        joint = share * self.overall_shares()[:, None]
        return np.asarray(joint / joint.sum(axis=0))

    @cached_property
    def _wider_stretches(self) -> tuple[Int, Real]:
        """The wider stretch of each leaf whose density it has, whatever the class, and the leaf's part of its width.

        Leaves have few rows each, so that their own densities would be mostly chance.
        """
        rows = self.cells.sum(axis=1)
        node = self.plain.levels[self.plain.up_to(max(2, int(2.0 * float(rows.sum()) ** (1.0 / 3.0))))]
        widths = np.exp(self.log_widths[TAILS : len(self.log_widths) - TAILS] - self.log_widths[TAILS:-TAILS].max())
        widths = np.maximum(widths, SMALLEST)
        return node, np.asarray(widths / np.bincount(node, widths)[node])

    def overall_shares(self) -> Real:
        """The share of all rows in each leaf: even within a wider stretch, in which half a row more is taken to be."""
        node, part = self._wider_stretches
        rows = np.bincount(node, self.cells.sum(axis=1)) + HALF_ROW
        return np.asarray((rows / rows.sum())[node] * part)

    def _draw_shares(self, prior: Real, rng: np.random.Generator) -> Real:
        """Shares of the classes in each leaf, drawn from Dirichlet distributions down the tree."""
        share = prior[None, :]
        for depth, (rows, parent) in enumerate(zip(self.tree.sums(self.cells), self.tree._parents(), strict=True)):
            strength = self.tree.strength(self.strengths, depth)
            drawn = rng.standard_gamma(np.maximum(rows + strength * share[parent], 1e-3))
            share = np.maximum(drawn, 1e-300) / np.maximum(drawn, 1e-300).sum(axis=1, keepdims=True)
        return share

    def shares_left_out(self, choice: Choice, leaf: Int, labels: Int, weight: Real) -> Real:
        """P(leaf | class) of rows in these leaves, (rows, classes), each without itself."""
        prior = prior_of(self.cells)
        n = len(self.cells)
        row_numbers = np.arange(len(leaf))
        if choice.how == "mle":
            cells = self.cells[leaf]
            total = np.broadcast_to(self.cells.sum(axis=0), cells.shape).copy()
            cells[row_numbers, labels] = np.maximum(cells[row_numbers, labels] - weight, 0.0)
            total[row_numbers, labels] = np.maximum(total[row_numbers, labels] - weight, 0.0)
            return np.asarray(np.where(total > 0, cells / np.where(total > 0, total, 1.0), 1.0 / n))
        share = self.tree.of_rows(self.cells, self.strengths, prior, leaf, labels, weight)
        expected_share = (self.tree.shares(self.cells, self.strengths, prior)[-1] * self.overall_shares()[:, None]).sum(
            axis=0
        )
        node, part = self._wider_stretches
        rows = np.bincount(node, self.cells.sum(axis=1))
        rows_left = np.maximum(rows[node[leaf]] - weight, 0.0) + HALF_ROW
        leaf_share = rows_left / (rows.sum() - weight + HALF_ROW * len(rows)) * part[leaf]
        return np.asarray(share * leaf_share[:, None] / expected_share)


def _shares(leaves: Sequence[Leaves], choice: Choice, rng: np.random.Generator) -> Real:
    """P(leaf | class) of columns, one below the other; where all have the same rows, their trees are gone through in one call."""
    priors = np.array([prior_of(column.cells) for column in leaves])
    if choice.how in ("mle", "gibbs") or (priors != priors[:1]).any():
        return np.concatenate([column.shares(choice, rng) for column in leaves])
    sizes = np.array([len(column.cells) for column in leaves])
    forest = Forest.of([(column.tree, column.strengths) for column in leaves])
    shares = forest.shares(np.concatenate([column.cells for column in leaves]), priors[0], False, 1)
    shares = np.delete(shares, np.cumsum(sizes + 1) - 1, axis=0)  # of values in no leaf
    joint = shares * np.concatenate([column.overall_shares() for column in leaves])[:, None]
    return np.concatenate([rows / rows.sum(axis=0) for rows in np.split(joint, np.cumsum(sizes)[:-1])])


def _join_bins(columns: Sequence[Real], threads: int) -> list[tuple[Int, Real]]:
    """Of each column the leaf of every bin, from rows per bin and class, and rows per leaf and class."""
    every = np.concatenate(columns)
    sizes = np.array([len(rows) for rows in columns], dtype=np.int64)
    return _core.Trees.leaves(every, over_classes(np.add, every), sizes, MOST_LEAVES, threads)


def _stretches(cuts: Real, low: Real, high: Real) -> Iterator[tuple[Real, Real, Int, Real, Real]]:
    """Of columns of as many leaves, whose cuts are lines of a table, each line; the edges of leaves and of the stretches beyond;
    and of each stretch the leaf, its log width, and its part of the rows."""
    n = cuts.shape[1] + 1
    first, last = (cuts[:, 0], cuts[:, -1]) if n > 1 else (high, low)
    least = np.maximum(np.abs(low), np.abs(high)) * 2.0**-40
    least = np.where(least > 0, least, 2.0**-1000)
    with np.errstate(over="ignore"):
        below = np.minimum(
            np.maximum(first - low, least), LARGEST
        )  # from the least number to the largest is more than the largest
        above = np.minimum(np.maximum(high - last, least), LARGEST)
        left = np.maximum(low[:, None] - below[:, None] * POWERS[::-1], -LARGEST)
        right = np.minimum(high[:, None] + above[:, None] * POWERS, LARGEST)
        edges = np.concatenate([left, cuts, right], axis=1)
        outermost = np.array([below, above]).T * 2.0 ** (TAILS - 1)
        widths = np.concatenate([outermost[:, :1], np.diff(edges), outermost[:, 1:]], axis=1)
    log_widths = np.log(np.minimum(np.maximum(widths, 2.0**-1060), LARGEST))
    leaf = np.concatenate([np.zeros(TAILS, np.int64), np.arange(n), np.full(TAILS, n - 1, np.int64)])
    part = np.zeros(len(leaf))
    part[:TAILS], part[-TAILS:] = OUTSIDE[::-1], OUTSIDE
    part[[TAILS, -TAILS - 1]] = -np.log(2.0)
    if n == 1:  # one leaf has both tails
        part[:TAILS] -= np.log(2.0)
        part[-TAILS:] -= np.log(2.0)
    return ((*line, leaf, widths, part) for *line, widths in zip(cuts, edges, log_widths, strict=True))


@dataclass(frozen=True)
class QuantileTreeParameters(NumericParameters):
    """Log densities of the stretches of each feature, (stretches, classes), and the edges between them; cuts between leaves."""

    features: tuple[Feature, ...]
    edges: tuple[Real, ...]
    tables: tuple[Real, ...]
    leaf_cuts: tuple[Real, ...]

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        columns = rows.numbers([feature.name for feature in self.features])
        return [_core.StepsPart(columns, list(self.edges), self._table)]

    @cached_property
    def _table(self) -> Real:
        return np.concatenate(self.tables)

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        columns = []
        for f in range(len(self.features)):
            ends = self._ends(f)
            mass = self._masses(f)
            drawn = dirichlet.draw_cells(mass, classes, rng)
            part = rng.random(len(classes))
            columns.append(np.clip(ends[drawn] * (1.0 - part) + ends[drawn + 1] * part, -LARGEST, LARGEST))
        return columns

    def spread(self, f: int) -> tuple[Real, Real]:
        """Of a feature: mean and deviation in each class, what lies beyond the outer leaves taken as at their ends."""
        ends = self._ends(f)
        mass = self._masses(f)
        inside = np.clip(ends, ends[TAILS], ends[-TAILS - 1])
        middle = inside[:-1] / 2.0 + inside[1:] / 2.0
        with np.errstate(over="ignore", invalid="ignore"):
            width = np.diff(inside)
            mean = np.asarray(middle @ mass)
            around = (middle[:, None] - mean) ** 2 + (width**2 / 12.0)[:, None]
            return mean, np.sqrt((around * mass).sum(axis=0))

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        ends = self._ends(f)
        mass = self._masses(f)
        mass = mass / mass.sum(axis=0)
        none = np.zeros((1, mass.shape[1]))
        below = np.concatenate([none, np.cumsum(mass, axis=0)])
        above = np.concatenate([np.cumsum(mass[::-1], axis=0)[::-1], none])
        return tuple(np.stack([np.interp(cuts, ends, column) for column in tail.T], axis=1) for tail in (below, above))  # type: ignore[return-value]

    def ends(self, f: int, near: Real, step: Real) -> Real:
        """The cuts between leaves that lie nearest."""
        cuts = self.leaf_cuts[f]
        if not len(cuts):
            return super().ends(f, near, step)
        right = np.clip(np.searchsorted(cuts, near), min(1, len(cuts) - 1), len(cuts) - 1)
        left = np.maximum(right - 1, 0)
        return np.asarray(np.where(near - cuts[left] < cuts[right] - near, cuts[left], cuts[right]))

    def cuts(self, column: str | None) -> list[float]:
        return [float(cut) for cut in self.leaf_cuts[0]]

    def _ends(self, f: int) -> Real:
        """Where stretches begin and end, the outermost as wide as it is taken to be."""
        edges = self.edges[f]
        with np.errstate(over="ignore"):
            out = edges[[0, -1]] + (edges[[0, -1]] - edges[[1, -2]]) * 2.0
        return np.concatenate([[max(out[0], -LARGEST)], edges, [min(out[1], LARGEST)]])

    def _masses(self, f: int) -> Real:
        with np.errstate(over="ignore"):
            widths = np.clip(np.diff(self._ends(f)), 2.0**-1060, LARGEST)
            return np.asarray(np.exp(self.tables[f] + np.log(widths)[:, None]))
