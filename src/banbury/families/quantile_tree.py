"""Quantile trees: the class frequencies of each interval of a column, shrunk towards those of the wider interval around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real, divide, over_classes
from banbury.families import dirichlet
from banbury.families.bins import BinCounter
from banbury.families.cells import (
    HALF_ROW,
    INFINITE,
    MOST_LEAVES,
    SIGN,
    SMALLEST,
    NumberCells,
    Tree,
    bin_edges,
    class_shares,
    grow_trees,
    midpoints,
)
from banbury.families.dirichlet import group_alike_rows
from banbury.families.evidence import name_interval
from banbury.families.family import (
    Choice,
    ColumnReader,
    Family,
    Feature,
    Features,
    HeldOutRows,
    NumberColumn,
    NumericParameters,
    RowsToCount,
    check_settings,
    is_power,
    number_column,
)
from banbury.families.keys import MISSING_BIN, BinnedFamily, KeyCounter, check_key_order, encode_bins
from banbury.families.moments import as_number
from banbury.reading import Batch, Codes
from banbury.sums import Counts, Keys, WholeKeys

MOST_KEYS = 2048  # that a column may occupy
TAILS = 30  # intervals beyond the outer leaf, each twice as wide as the last and with half its rows
DISTANCES = 2.0 ** np.arange(TAILS) - 1.0  # where they begin, in widths of the first
LOG_TAILS = -np.log(2.0) * np.minimum(
    np.arange(TAILS) + 2.0, TAILS
)  # of the leaf's rows: a quarter in the next, an eighth beyond, …
LARGEST = float(np.finfo(np.float64).max)  # finite number


def value_range(
    feature: Feature, keys: Keys, rows: Real | None = None, share: float = 0.0
) -> tuple[float, float] | None:
    """Returns the least and the greatest number that was counted, or the ends of their bins; None for other families,
    or without a number.

    ``keys`` are the feature's occupied bins, and ``rows`` the rows of each; with both, this ``share`` of the rows is
    left out at either end.
    """
    if not isinstance(feature.counter, LeadingBitsCounter) or not len(keys):
        return None
    bins = np.array(keys, dtype=np.int64)
    if rows is not None and rows.sum() > 0:
        cumulative = np.cumsum(rows) / rows.sum()  # the share of rows up to each bin
        first, last = np.searchsorted(cumulative, [share, 1.0 - share]).tolist()
        bins = bins[[first, min(last, len(bins) - 1)]]
    # The greatest number's bin ends where the next begins, unless it is a number by itself (unit 1).
    low, high = bin_edges(bins[[0, -1]] + np.array([0, feature.unit > 1.0]), feature.unit).tolist()
    return low, high


class LeadingBitsCounter(BinCounter):
    """Counts the rows that share the leading bits of a number: bins for every magnitude, which need no scale.

    ``unit`` is 2 to the number of bits that are dropped, which is as small as the maximum number of occupied bins
    allows.
    """

    most: ClassVar[int] = MOST_KEYS
    describe_scale = KeyCounter.describe_scale

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        """Returns no condition: bins of any width can be joined, so all counts can be added."""
        return ()

    def settle(self, features: Features, batch: Batch) -> Features:
        """Returns the features as columns of numbers with all of their bits (unit 1); the first rows (``batch``) decide
        nothing.
        """
        n = len(features)
        return replace(features.change(as_number), origins=np.zeros(n), units=np.ones(n))

    def has_valid_scale(self, feature: Feature) -> bool:
        """Whether a feature from a file drops from 0 to 62 bits."""
        return not feature.scales and is_power(feature.unit) and 1.0 <= feature.unit < 2.0**63

    def count(self, features: Features, rows: RowsToCount) -> tuple[Features, Counts]:
        """Counts these rows. Returns the features, whose bins may have become wider, and the rows of each bin that
        occurs.
        """
        names = features.names
        shifts = np.log2(features.units).astype(np.int64)  # how many bits of each column are dropped
        counted_columns = rows.run_kernel(_core.count_leading, names, rows.batch.numbers(names), shifts, MOST_KEYS)
        keys_and_cells: Any = [(WholeKeys(keys), cells) for keys, cells, _ in counted_columns]  # cells: bins × classes
        new_shifts = [shift for *_, shift in counted_columns]
        if shifts.tolist() != new_shifts:
            features = replace(features, units=np.exp2(new_shifts))
        return features, Counts.join(keys_and_cells, len(rows.labels))

    def key(self, feature: Feature, key: Any) -> str:
        """Returns the interval of numbers with these leading bits (``key``) in words, with the column's name, for
        messages.
        """
        return f"{feature.name} {name_interval(*bin_edges(np.array([key, key + 1]), feature.unit).tolist())}"

    def summary(self, feature: Feature, sums: Counts, missing: str) -> str:
        """Describes in a few words how many values or bins were counted for one feature (``sums`` are its own), and
        from which number to which; ``missing`` is a phrase to append about rows without a value.
        """
        if not sums.keys[0]:
            return f"no value{missing}"
        keys = np.array(sums.keys[0], dtype=np.int64)  # the leading bits that occur, in order
        low, high = bin_edges(keys[[0, -1]], feature.unit)  # numbers in the column's unit
        return f"{len(keys):,} {'values' if feature.unit == 1.0 else 'bins'} from {low:.6g} to {high:.6g}{missing}"

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        """Returns the keys of a feature from a file; raises an error unless they are distinct leading bits of numbers,
        in order. ``feature.unit`` is 2 to the number of bits dropped.
        """
        largest_key = INFINITE >> int(np.log2(feature.unit))
        if not all(
            type(key) is int and -largest_key - 1 <= key <= largest_key for key in check_key_order(feature, keys)
        ):
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
        """Raises unless the strength ``m`` is at least 0 or None."""
        check_settings(self, "m", zero=True)

    def counter(self, feature: Feature) -> LeadingBitsCounter:
        """Returns the counter that turns the values of a feature of this family into sums."""
        return LEADING_BITS

    def counting_key(self) -> tuple[Any, ...]:
        """Returns what two families must have in common for their sums to be added: the same kind of sums."""
        return ("leading bits",)

    def estimate(self, features: Features, sums: Counts, choice: Choice, rng: Generator) -> QuantileTreeParameters:
        """Estimates the log density of each interval of these features from their sums, as ``choice`` says; ``rng``
        draws under "gibbs".

        The share of a leaf is spread over its intervals, which are one, and more beyond the outer leaves.
        """
        leaves_of_columns = self.leaves(features, sums)
        # Of each column, intervals × classes; ``leaves.leaf`` has the number of each interval's leaf.
        tables = tuple(
            dirichlet.log(leaves.shares(choice, rng))[leaves.leaf]
            - leaves.log_widths[:, None]
            + leaves.log_tails[:, None]
            for leaves in leaves_of_columns
        )
        # Edges are between intervals, cuts between leaves.
        edges = tuple(leaves.edges for leaves in leaves_of_columns)
        cuts = tuple(leaves.cuts for leaves in leaves_of_columns)
        return QuantileTreeParameters(features, edges, tables, cuts)

    def leaves(self, features: Features, sums: Counts, threads: int = 1) -> list[Leaves]:
        """Returns one ``Leaves`` for each feature: its leaves and the intervals in them. They are cached with the sums,
        because no prior changes them.
        """
        units = features.units.tolist()
        cache_keys = [(type(self), self.m, unit) for unit in units]
        uncached_features = [f for f, cache_key in enumerate(cache_keys) if cache_key not in sums.caches[f]]
        if uncached_features:
            rows = sums.cells.value  # keys of all columns × classes
            offsets = sums.offsets  # where the keys of each column start
            # Of each column the keys, the rows of each key and class, and the unit.
            columns = [
                (np.array(sums.keys[f], dtype=np.int64), rows[offsets[f] : offsets[f + 1]], units[f])
                for f in uncached_features
            ]
            for f, leaves in zip(uncached_features, Leaves.of(columns, self.m, threads), strict=True):
                sums.caches[f][cache_keys[f]] = leaves
        return [sums.caches[f][cache_key] for f, cache_key in enumerate(cache_keys)]

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        """Returns this family for every column of numbers with many values."""
        return () if column.has_few_values else (self,)

    def n_parameters(self, features: Features, sums: Counts) -> list[tuple[int, int]]:
        """Returns a pair for each feature: the number of its leaves less one, which each class has, and 0 that classes
        share. ``sums`` are the counts from which leaves are made.
        """
        return [(max(len(leaves.cells) - 1, 0), 0) for leaves in self.leaves(features, sums)]

    def join_cells(self, feature: Feature, keys: Keys, cells: Real) -> Real:
        """Returns the rows per leaf and class, from those of the occupied bins (``cells``, bins × classes)."""
        return _join_bins([cells], threads=1)[0][1] if len(cells) else cells

    def keys_of(self, rows: ColumnReader, feature: Feature, threads: int = 1, strict: bool = True) -> Codes:
        """Returns the leading bits of each row's number as codes, in the order of the numbers; missing numbers have
        none. ``strict`` makes no difference.
        """
        numbers = number_column(rows, feature.name).astype(np.float64) + 0.0  # −0 is no other number
        bits = numbers.view(np.int64)
        # Flipped so that they are in order, without as many bits as ``unit`` is a power of 2.
        keys = np.where(bits < 0, bits ^ SIGN, bits) >> int(np.log2(feature.unit))
        return encode_bins(np.where(np.isnan(numbers), MISSING_BIN, keys))

    def cells(self, features: Features, sums: Counts, missing: Real, threads: int) -> Sequence[NumberCells]:
        """Returns for each column its leaves, made from the counts ``sums``, as cells; with one for missing values
        where ``missing`` (columns × classes) has rows without a value.
        """
        leaves_of_columns = self.leaves(features, sums, threads)
        return list(map(self._cells, features, leaves_of_columns, missing))

    def _cells(self, feature: Feature, leaves: Leaves, missing: Real) -> NumberCells:
        """Returns the cells of a column, with a cell for missing values if there are any; ``missing`` has the number of
        rows without a value in each class (classes).
        """
        trees = leaves.tree, leaves.plain  # the second one's cuts do not depend on the classes
        if missing.any():
            counts = np.vstack([leaves.cells, missing])  # rows (leaves and the missing value × classes)
            trees = self._with_missing(leaves.tree, counts), self._with_missing(leaves.plain, counts)
        return NumberCells(feature, *trees, leaves.cuts)

    def _with_missing(self, tree: Tree, counts: Real) -> Tree:
        """Returns the tree with a cell for missing values, and with new strengths unless they are set. ``counts`` are
        the rows of its cells (cells × classes), with the missing ones last.
        """
        tree = tree.with_missing()
        return tree.with_likeliest_strengths(counts) if self.m is None else tree

    def leave_one_out(self, features: Features, sums: Counts, choice: Choice, held_out: HeldOutRows) -> Real:
        """Returns log P(values | class) of each held-out row without itself (rows × classes). Leaves, strengths and the
        prior shares of the classes are those of all rows, whose counts are ``sums``.
        """
        scores = np.zeros((len(held_out.labels), held_out.n_classes))
        for feature, leaves in zip(features, self.leaves(features, sums), strict=True):
            column = held_out.rows.numbers([feature.name])  # an array of rows, in a list
            # The number of intervals if the value is missing.
            interval_of_row = _core.steps(column, [leaves.edges], held_out.threads)[:, 0].astype(np.int64)
            usable_rows = np.flatnonzero((interval_of_row < len(leaves.leaf)) & (held_out.weight > 0))
            # Rows with equal interval, class and weight are scored as one: these of each group, and each row's group.
            intervals, labels, weights, group_of_row = group_alike_rows(
                interval_of_row[usable_rows], usable_rows, held_out, len(leaves.leaf)
            )
            leaf_shares = leaves.shares_left_out(choice, leaves.leaf[intervals], labels, weights)  # groups × classes
            # Log densities, of the intervals of the leaves (groups × classes).
            group_scores = dirichlet.log(leaf_shares) + (leaves.log_tails - leaves.log_widths)[intervals, None]
            scores[usable_rows] += group_scores[group_of_row]
        return scores

    def leave_one_out_notes(self) -> list[str]:
        """Returns what is still estimated from all rows when one is left out, as phrases for people."""
        return ["the cut points and prior strengths of quantile trees"]


@dataclass(frozen=True)
class Leaves:
    """The leaves of a column, and the intervals that cut the whole line: one in each leaf, and ``TAILS`` beyond either
    end.

    Args:
        cells: The rows of each leaf (leaves × classes).
        tree: The tree over the leaves; its first level may be cut by class.
        plain: The tree over the leaves whose cuts do not depend on the classes.
        cuts: The cuts between leaves.
        edges: The cuts between intervals.
        leaf: The leaf of each interval.
        log_widths: The logarithm of each interval's width.
        log_tails: The logarithm of the share of the leaf's rows that are in each interval.
    """

    cells: Real
    tree: Tree
    plain: Tree
    cuts: Real
    edges: Real
    leaf: Int
    log_widths: Real
    log_tails: Real

    @classmethod
    def of(cls, columns: Sequence[tuple[Int, Real, float]], m: float | None, threads: int) -> list[Leaves]:
        """Returns the leaves of columns, each given by its keys, their rows (keys × classes), and its unit. ``m`` is
        the strength of the prior on all levels; None chooses it.
        """
        no_key = np.zeros(1, dtype=np.int64)  # stands for the keys of a column without any
        keys_and_rows = [  # of each column
            (keys, rows) if len(keys) else (no_key, np.zeros((1, rows.shape[1]))) for keys, rows, _ in columns
        ]
        # Of each column the leaf of every key, and the rows of each leaf.
        joined = _join_bins([rows for _, rows in keys_and_rows], threads)
        # Of each column the keys at which all leaves but the last end, all leaves begin, and the last one ends.
        edge_keys = list[Int]()
        for (keys, _), (leaf_of_key, _) in zip(keys_and_rows, joined, strict=True):
            first_places = np.append(0, np.flatnonzero(np.diff(leaf_of_key)) + 1)  # of each leaf's first key
            edge_keys.append(np.concatenate([keys[first_places[1:] - 1] + 1, keys[first_places], keys[-1:] + 1]))
        sizes = np.array([len(keys) for keys in edge_keys])  # 2 · leaves each
        edges = bin_edges(np.concatenate(edge_keys), np.repeat([unit for *_, unit in columns], sizes))
        intervals_of_column: list[tuple[Any, ...]] = [()] * len(columns)
        for size in set(sizes.tolist()):  # columns of as many leaves at once
            columns_of_size = np.flatnonzero(sizes == size).tolist()
            n_leaves = size // 2
            ends = edges[np.repeat(sizes == size, sizes)].reshape(-1, size)  # columns × the edges of their leaves
            cuts = midpoints(ends[:, : n_leaves - 1], ends[:, n_leaves:-1])  # columns × cuts
            cut_lines = _cut_line(cuts, ends[:, n_leaves - 1], ends[:, -1])
            for column, intervals in zip(columns_of_size, cut_lines, strict=True):
                intervals_of_column[column] = intervals
        # The two trees of each column: with a first level that may be cut by class, and without.
        trees = grow_trees([cells for _, cells in joined], threads)
        if m is not None:
            trees = [(replace(tree, strengths=(m, m)), replace(plain, strengths=(m, m))) for tree, plain in trees]
        return [
            cls(cells, tree, plain, *intervals)
            for (_, cells), (tree, plain), intervals in zip(joined, trees, intervals_of_column, strict=True)
        ]

    def shares(self, choice: Choice, rng: Generator) -> Real:
        """Returns P(leaf | class) (leaves × classes), estimated as ``choice`` says; ``rng`` draws under "gibbs". They
        are P(class | leaf), from the tree, times the share of all rows in the leaf, normalised in each class.
        ``self.cells`` has the rows of each leaf (leaves × classes).
        """
        prior = class_shares(self.cells)  # of each class among all rows
        if choice.how == "mle":
            return divide(self.cells, self.cells.sum(axis=0), 1.0 / len(self.cells))
        # P(class | leaf), leaves × classes.
        if choice.how == "gibbs":
            share_of_class = self._draw_shares(prior, rng)
        else:
            share_of_class = self.tree.shares(self.cells, prior)[-1]
        joint = share_of_class * self.overall_shares()[:, None]  # P(class, leaf)
        return np.asarray(joint / joint.sum(axis=0))

    @cached_property
    def _wider_intervals(self) -> tuple[Int, Real]:
        """For each leaf the number of the wider interval that it is part of, and its part of that interval's width
        (leaves each).

        Leaves have few rows each, so their own densities would be mostly chance. All leaves of a wider interval, which
        is a node of the tree, therefore share its density in every class. ``cells`` has the rows of each leaf (leaves ×
        classes), ``plain`` is the tree whose cuts do not depend on the classes, and ``log_widths`` has the log width of
        each interval.
        """
        n_rows = float(self.cells.sum(axis=1).sum())
        most_intervals = max(2, int(2.0 * n_rows ** (1.0 / 3.0)))
        interval_of_leaf = self.plain.levels[self.plain.up_to(most_intervals)]  # the nodes of one level of the tree
        # Of the leaves alone: intervals beyond the outer leaves are dropped.
        widths = np.exp(self.log_widths[TAILS : len(self.log_widths) - TAILS] - self.log_widths[TAILS:-TAILS].max())
        widths = np.maximum(widths, SMALLEST)
        return interval_of_leaf, np.asarray(widths / np.bincount(interval_of_leaf, widths)[interval_of_leaf])

    def overall_shares(self) -> Real:
        """Returns the share of all rows in each leaf (leaves); ``cells`` has the rows of leaves (leaves × classes).
        Rows are spread uniformly over a wider interval, to each of which half a row is added.
        """
        interval_of_leaf, part_of_interval = self._wider_intervals  # of each leaf, its number and its part
        rows_of_interval = np.bincount(interval_of_leaf, self.cells.sum(axis=1)) + HALF_ROW
        return np.asarray((rows_of_interval / rows_of_interval.sum())[interval_of_leaf] * part_of_interval)

    def _draw_shares(self, prior: Real, rng: Generator) -> Real:
        """Draws the shares of the classes in each leaf (leaves × classes) from Dirichlet distributions, level by level
        from the root of the tree down. ``prior`` has the share of each class at the root (classes), and ``self.cells``
        the rows of each leaf (leaves × classes). ``self.tree.sums`` returns the rows of each level's nodes (nodes ×
        classes).
        """
        share = prior[None, :]  # of each class in each node of the level above (nodes × classes)
        for depth, (rows, parent) in enumerate(zip(self.tree.sums(self.cells), self.tree._parents(), strict=True)):
            strength = self.tree.strength(depth)  # of the prior, in rows
            # ``parent`` has the wider node of each node of this level.
            drawn = rng.standard_gamma(np.maximum(rows + strength * share[parent], 1e-3))
            share = np.maximum(drawn, 1e-300) / np.maximum(drawn, 1e-300).sum(axis=1, keepdims=True)
        return share

    def shares_left_out(self, choice: Choice, leaf_of_row: Int, labels: Int, weights: Real) -> Real:
        """Returns P(leaf | class) of the leaf of each row (rows × classes), estimated without the row's own weight.
        ``leaf_of_row``, ``labels`` (class numbers) and ``weights`` have an entry per row, and ``self.cells`` has the
        rows of each leaf (leaves × classes).
        """
        if choice.how == "mle":
            row_numbers = np.arange(len(leaf_of_row))
            # The rows of each class in the row's leaf, and in all leaves (rows × classes), without the row itself.
            cells = self.cells[leaf_of_row]
            totals = np.broadcast_to(self.cells.sum(axis=0), cells.shape).copy()
            cells[row_numbers, labels] = np.maximum(cells[row_numbers, labels] - weights, 0.0)
            totals[row_numbers, labels] = np.maximum(totals[row_numbers, labels] - weights, 0.0)
            return divide(cells, totals, 1.0 / len(self.cells))
        prior = class_shares(self.cells)  # of each class among all rows
        # P(class | leaf) without each row (rows × classes), and P(class) from all rows (classes).
        share = self.tree.shares_without_rows(self.cells, prior, leaf_of_row, labels, weights)
        expected_share = (self.tree.shares(self.cells, prior)[-1] * self.overall_shares()[:, None]).sum(axis=0)
        # P(leaf): rows are spread uniformly over the wider intervals of which leaves are a part.
        interval_of_leaf, part_of_interval = self._wider_intervals
        rows_of_interval = np.bincount(interval_of_leaf, self.cells.sum(axis=1))
        rows_left = np.maximum(rows_of_interval[interval_of_leaf[leaf_of_row]] - weights, 0.0) + HALF_ROW
        rows_left_in_all = rows_of_interval.sum() - weights + HALF_ROW * len(rows_of_interval)
        leaf_share = rows_left / rows_left_in_all * part_of_interval[leaf_of_row]  # (rows)
        return np.asarray(share * leaf_share[:, None] / expected_share)


def _join_bins(columns: Sequence[Real], threads: int) -> list[tuple[Int, Real]]:
    """Returns for each column the leaf of every bin (bins), and the rows of each leaf (leaves × classes). ``columns``
    has the rows of each column's occupied bins (bins × classes), in order.
    """
    all_bins = np.concatenate(columns)  # rows (bins of all columns × classes)
    sizes = np.array([len(rows) for rows in columns], dtype=np.int64)  # bins of each column
    return _core.Trees.leaves(all_bins, over_classes(np.add, all_bins), sizes, MOST_LEAVES, threads)


def _cut_line(cuts: Real, low: Real, high: Real) -> Iterator[tuple[Real, Real, Int, Real, Real]]:
    """Yields for each of several columns with the same number of leaves the intervals that cut the line: cuts, edges,
    the leaf of each interval, its log width, and the log share of the leaf's rows in it (see ``Leaves``).

    ``cuts`` are those between the leaves of each column (columns × cuts), and ``low`` and ``high`` the least and
    greatest number of each.
    """
    n_leaves = cuts.shape[1] + 1
    first, last = (cuts[:, 0], cuts[:, -1]) if n_leaves > 1 else (high, low)  # the outer leaves' other ends (columns)
    smallest_width = np.maximum(np.abs(low), np.abs(high)) * 2.0**-40
    smallest_width = np.where(smallest_width > 0, smallest_width, 2.0**-1000)
    with np.errstate(over="ignore"):
        # The widths of the outer leaves (columns); from the least number to the largest is more than the largest.
        below = np.minimum(np.maximum(first - low, smallest_width), LARGEST)
        above = np.minimum(np.maximum(high - last, smallest_width), LARGEST)
        # Edges of the intervals beyond the outer leaves (columns × TAILS each).
        left = np.maximum(low[:, None] - below[:, None] * DISTANCES[::-1], -LARGEST)
        right = np.minimum(high[:, None] + above[:, None] * DISTANCES, LARGEST)
        edges = np.concatenate([left, cuts, right], axis=1)
        # The widths that the two endless intervals are taken to have (columns × 2).
        outermost = np.array([below, above]).T * 2.0 ** (TAILS - 1)
        widths = np.concatenate([outermost[:, :1], np.diff(edges), outermost[:, 1:]], axis=1)
    log_widths = np.log(np.minimum(np.maximum(widths, 2.0**-1060), LARGEST))  # columns × intervals
    # Of each interval, the same in every column: its leaf, and the log share of the leaf's rows in it.
    leaf = np.concatenate([np.zeros(TAILS, np.int64), np.arange(n_leaves), np.full(TAILS, n_leaves - 1, np.int64)])
    log_part = np.zeros(len(leaf))
    log_part[:TAILS] = LOG_TAILS[::-1]
    log_part[-TAILS:] = LOG_TAILS
    log_part[[TAILS, -TAILS - 1]] = -np.log(2.0)
    if n_leaves == 1:  # one leaf has both tails
        log_part[:TAILS] -= np.log(2.0)
        log_part[-TAILS:] -= np.log(2.0)
    return ((cuts[j], edges[j], leaf, log_widths[j], log_part) for j in range(len(cuts)))


@dataclass(frozen=True)
class QuantileTreeParameters(NumericParameters):
    """The densities of columns, each constant on intervals.

    ``tables`` has the log density of each feature's intervals (intervals × classes), ``edges`` the edges between them,
    and ``leaf_cuts`` the cuts between leaves.
    """

    features: Features
    edges: tuple[Real, ...]
    tables: tuple[Real, ...]
    leaf_cuts: tuple[Real, ...]

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns the parts with which the kernel adds up log P(value | class) of the features for each of these rows."""
        columns = rows.numbers(self.features.names)  # arrays of rows, or of rows × columns
        # ``edges`` are those between the intervals of each feature, and ``_table`` has the log densities of intervals.
        return [_core.StepsPart(columns, list(self.edges), self._table)]

    @cached_property
    def _table(self) -> Real:
        """The log densities of all features, one below the other (intervals of all features × classes)."""
        return np.concatenate(self.tables)

    def sample(self, classes: Int, rng: Generator) -> list[NDArray[Any]]:
        """Draws a value of each feature for a row of each of these ``classes`` (class numbers); returns an array per
        column.
        """
        columns = []
        for f in range(len(self.features)):
            ends = self._ends(f)  # of the intervals
            masses = self._masses(f)  # intervals × classes
            drawn_intervals = dirichlet.draw_cells(masses, classes, rng)  # of each row
            position = rng.random(len(classes))  # in the interval, from 0 to 1
            numbers = ends[drawn_intervals] * (1.0 - position) + ends[drawn_intervals + 1] * position
            columns.append(np.clip(numbers, -LARGEST, LARGEST))
        return columns

    def spread(self, f: int) -> tuple[Real, Real]:
        """Returns the mean and the standard deviation of feature f in each class (classes each). Mass beyond the outer
        leaves counts as at their ends.
        """
        ends = self._ends(f)  # of the intervals
        masses = self._masses(f)  # their probabilities (intervals × classes)
        clipped_ends = np.clip(ends, ends[TAILS], ends[-TAILS - 1])
        middle = clipped_ends[:-1] / 2.0 + clipped_ends[1:] / 2.0  # of each interval
        with np.errstate(over="ignore", invalid="ignore"):
            width = np.diff(clipped_ends)
            mean = np.asarray(middle @ masses)
            # The mean square of the distance between a number in the interval and the mean (intervals × classes).
            squares_about_mean = (middle[:, None] - mean) ** 2 + (width**2 / 12.0)[:, None]
            return mean, np.sqrt((squares_about_mean * masses).sum(axis=0))

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        """Returns P(value < cut) and P(value ≥ cut) of feature f in each class, for these numbers (cuts × classes
        each).
        """
        ends = self._ends(f)  # of the intervals
        masses = self._masses(f)  # their probabilities (intervals × classes)
        masses = masses / masses.sum(axis=0)
        nothing = np.zeros((1, masses.shape[1]))
        # The probabilities below and above each end (ends × classes).
        below = np.concatenate([nothing, np.cumsum(masses, axis=0)])
        above = np.concatenate([np.cumsum(masses[::-1], axis=0)[::-1], nothing])
        return tuple(np.stack([np.interp(cuts, ends, column) for column in tail.T], axis=1) for tail in (below, above))  # type: ignore[return-value]

    def ends(self, f: int, near: Real, step: Real) -> Real:
        """Returns for each of the wanted numbers (``near``) the nearest cut between leaves of feature f, in the same
        shape; multiples of ``step`` if there is only one leaf.
        """
        cuts = self.leaf_cuts[f]  # between leaves, in order
        if not len(cuts):
            return super().ends(f, near, step)
        # The places of the cuts on both sides of each number.
        right = np.clip(np.searchsorted(cuts, near), min(1, len(cuts) - 1), len(cuts) - 1)
        left = np.maximum(right - 1, 0)
        return np.where(near - cuts[left] < cuts[right] - near, cuts[left], cuts[right])

    def cuts(self, column: str | None) -> list[float]:
        """Returns the cuts between the leaves of the only feature, in ascending order; ``column`` is not needed."""
        return [float(cut) for cut in self.leaf_cuts[0]]

    def _ends(self, f: int) -> Real:
        """Returns where the intervals of feature f begin and end (intervals + 1 numbers); the outermost two, which are
        endless, as wide as they are taken to be. ``self.edges[f]`` are the finite ones.
        """
        edges = self.edges[f]
        with np.errstate(over="ignore"):
            outer_ends = edges[[0, -1]] + (edges[[0, -1]] - edges[[1, -2]]) * 2.0
        return np.concatenate([[max(outer_ends[0], -LARGEST)], edges, [min(outer_ends[1], LARGEST)]])

    def _masses(self, f: int) -> Real:
        """Returns the probability of each interval of feature f in each class (intervals × classes). ``self.tables[f]``
        has their log densities.
        """
        with np.errstate(over="ignore"):
            widths = np.clip(np.diff(self._ends(f)), 2.0**-1060, LARGEST)
            return np.exp(self.tables[f] + np.log(widths)[:, None])
