"""Cells: the values of a column, or intervals of its numbers, whose evidence is weighed; and trees that join similar cells.

A tree has levels, from wide to fine. On each level, every cell belongs to one node. The share of a class in a node is
p = (n + m · p of the wider node) / (N + m); the widest node has the share of the class among all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real, divide
from banbury.families.evidence import name_interval
from banbury.families.family import ColumnReader, Feature, bad_value
from banbury.families.keys import key_positions
from banbury.sums import Keys
from banbury.threads import run_by_rows

Strengths = tuple[float, float]  # m of the first level, and of the others

MOST_LEAVES = 128  # of a column of numbers
SMALLEST = 1e-300  # smaller shares and widths count as this
HALF_ROW = 0.5  # of each class, and of each leaf, that was never seen
SIGN = np.int64(np.iinfo(np.int64).max)  # flips all bits but the sign, which puts negative floats in order
INFINITE = int(np.float64(np.inf).view(np.int64))  # the bits of infinity
NINE_TENTHS = 3.29  # standard deviations between the 5 % and the 95 % quantile of a normal distribution
OUTERMOST = 4.0  # standard deviations from the middle; positions beyond are clipped
FEW_NODES = 4  # of a column in the coarse table of a pair, at most
MANY_NODES = 16  # and in the fine one


@dataclass(frozen=True)
class Tree:
    """A tree over the cells of a column.

    ``levels`` has for each level, from the widest to the finest, the node of every cell. The nodes of the last level
    are the cells. ``strengths`` are those of the prior: of the first level, and of all others. ``cut_by_class``: whether
    the cuts of the first level depend on the classes; it then has a strength of its own.
    """

    levels: tuple[Int, ...]
    strengths: Strengths = (0.0, 0.0)
    cut_by_class: bool = False

    @property
    def n_cells(self) -> int:
        """The number of cells of the column."""
        return len(self.levels[-1])

    def sums(self, cells: Real) -> list[Real]:
        """Returns for each level the rows of its nodes (nodes × classes), from those of the cells (cells × classes).
        ``levels`` has for each level the node of every cell.
        """
        return [sum_by_node(cells, level) for level in self.levels]

    def strength(self, depth: int) -> float:
        """Returns the strength m of the prior on the level number ``depth``, which is 0 for the widest."""
        return self.strengths[min(depth, 1)]

    def shares(self, cells: Real, prior: Real) -> list[Real]:
        """Returns for each level P(class | node) (nodes × classes). ``cells`` has the rows of the cells (cells ×
        classes), and ``prior`` the share of each class at the root.
        """
        # ``strengths`` are those of the prior, in rows: of the first level, and of all others. False: no row is left out.
        return self._kernel_tree().shares_by_level(cells, self.strengths, prior, False)

    def shares_left_out(self, cells: Real, prior: Real) -> list[Real]:
        """Returns for each level P(class | node) without one row of each class in turn (nodes × class of the row ×
        classes). ``cells`` has the rows of the cells (cells × classes), and ``prior`` the share of each class at the
        root.
        """
        # ``strengths`` are those of the prior, in rows: of the first level, and of all others. True: a row is left out.
        return self._kernel_tree().shares_by_level(cells, self.strengths, prior, True)

    def shares_without_rows(self, cells: Real, prior: Real, row_cells: Int, labels: Int, weights: Real) -> Real:
        """Returns P(class | cell) for rows in the cells ``row_cells``, of the classes ``labels`` (class numbers), each
        computed without the row's own weight (rows × classes). ``cells`` has the rows of the cells (cells × classes),
        and ``prior`` the share of each class at the root.
        """
        row_numbers = np.arange(len(row_cells))
        share = np.broadcast_to(prior, (len(row_cells), len(prior)))  # in each row's node of the level above
        # ``counts`` has the rows of the level's nodes (nodes × classes), and ``node_of_cell`` the node of each cell.
        for depth, (counts, node_of_cell) in enumerate(zip(self.sums(cells), self.levels, strict=True)):
            others = counts[node_of_cell[row_cells]]  # other rows in the node that each row is in (rows × classes)
            others[row_numbers, labels] = np.maximum(others[row_numbers, labels] - weights, 0.0)
            strength = self.strength(depth)  # of the prior, in rows
            total = others.sum(axis=1, keepdims=True) + strength
            share = divide(others + strength * share, total, share)
        return share

    def with_likeliest_strengths(self, cells: Real) -> Tree:
        """Returns the tree with the strengths that maximise the leave-one-out likelihood of the rows (``cells``, cells
        × classes).
        """
        # The two strengths of this only tree, on one thread; ``cut_by_class``: whether the first level has its own.
        (strengths,), _ = self._kernel_tree().strengths(cells, [self.cut_by_class], class_shares(cells), 1)
        return replace(self, strengths=(strengths[0], strengths[1]))

    def _kernel_tree(self) -> _core.Trees:
        """Returns the kernel's form of this tree."""
        return join_trees([self])

    def _parents(self) -> list[Int]:
        """Returns for each level, from the widest, the node of the level above that each of its nodes belongs to
        (nodes); 0, the root, for those of the first level.
        """
        parents = [np.zeros(int(self.levels[0].max(initial=-1)) + 1, dtype=np.int64)]
        for wider_node, node in pairwise(self.levels):  # of each cell, on neighbouring levels
            parent = np.zeros(int(node.max(initial=-1)) + 1, dtype=np.int64)
            parent[node] = wider_node
            parents.append(parent)
        return parents

    def up_to(self, n: int) -> int:
        """Returns the number of the finest level with at most n nodes, or 0, the widest, if all have more."""
        # The numbers of the levels with more nodes; a level has the node of every cell.
        too_fine = (k for k, level in enumerate(self.levels) if level.max(initial=-1) >= n)
        return max(next(too_fine, len(self.levels)) - 1, 0)

    def with_missing(self) -> Tree:
        """Returns the tree with an additional cell for missing values, the last; on every level it is a node by itself."""
        levels = tuple(np.append(level, level.max(initial=-1) + 1) for level in self.levels)
        return replace(self, levels=levels)


def class_shares(cells: Real) -> Real:
    """Returns the share of each class among the rows (classes), with half a row added to each. ``cells`` has the rows
    of any cells (cells × classes).
    """
    rows_per_class = cells.sum(axis=0) + HALF_ROW
    return np.asarray(rows_per_class / rows_per_class.sum())


def sum_by_node(cells: Real, nodes: Int) -> Real:
    """Returns the rows of nodes (nodes × classes), from those of cells (cells × classes). ``nodes`` has the node of
    each cell; rows are added in the order of the cells.
    """
    n_classes = cells.shape[1]
    shape = int(nodes.max(initial=-1)) + 1, n_classes  # nodes × classes
    node_and_class = nodes[:, None] * n_classes + np.arange(n_classes)  # as one number (cells × classes)
    sums = np.bincount(node_and_class.ravel(), cells.ravel(), prod(shape))
    return np.asarray(sums, dtype=np.float64).reshape(shape)


def flat_tree(n_cells: int) -> Tree:
    """Returns the tree of ``n_cells`` values without an order: its only level has the cells, which are not joined."""
    return Tree((np.arange(n_cells),))


class Forest:
    """The trees of several columns, so that one call computes the shares of all."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        """Joins the trees of columns into one forest."""
        self._trees = join_trees(trees)  # as the kernel takes them
        # Of each tree: the prior's strength on the first level and on all others (trees × 2); and whether the cuts of
        # the first level depend on the classes.
        self._strengths = np.array([tree.strengths for tree in trees], dtype=np.float64)
        self._cut_by_class = [tree.cut_by_class for tree in trees]

    def shares(self, cells: Real, prior: Real, left_out: bool, threads: int) -> Real:
        """Returns P(class | cell) (cells × classes); or, if ``left_out``, without one row of each class in turn (cells
        × class of the row × classes).

        ``cells`` has the rows of the cells of all trees, one tree below the other (cells × classes), and ``prior`` the
        share of each class. Each tree gets one more cell in the result, for values in none of its cells, with the
        shares of the prior.
        """
        # ``_strengths`` has the two strengths of the prior of each tree.
        return self._trees.shares(cells, self._strengths, prior, left_out, threads)

    def gains(self, cells: Real, prior: Real, threads: int) -> Real:
        """Returns for each tree how much likelier its rows are than by ``prior`` alone, in nats. ``cells`` has the rows
        of the cells of all trees (cells × classes), and ``prior`` the share of each class. ``_cut_by_class``: whether
        the first level of each tree depends on the classes.
        """
        return self._trees.strengths(cells, self._cut_by_class, prior, threads)[1]


def join_trees(trees: Sequence[Tree]) -> _core.Trees:
    """Returns several trees, one after the other, as the kernel takes them."""
    return _core.Trees([tree.levels for tree in trees])


def grow_trees(cells: Sequence[Real], threads: int) -> list[tuple[Tree, Tree]]:
    """Returns two trees over the leaves of each column of numbers; the cuts of the second do not depend on the classes.

    Leaves are joined by count. The first level of the first tree is cut where the class frequencies change, if this
    gains more than it costs to describe the cuts; otherwise both are the same. ``cells`` has the rows of each column's
    leaves (leaves × classes).
    """
    all_leaves = np.concatenate(cells)  # rows (leaves of all columns × classes)
    sizes = np.array([len(column) for column in cells], dtype=np.int64)  # leaves of each column
    # Of each column, the rows and the share of each class (columns × classes).
    rows_per_class = np.add.reduceat(all_leaves, np.cumsum(sizes) - sizes, axis=0) + HALF_ROW
    priors = rows_per_class / rows_per_class.sum(axis=1, keepdims=True)
    trees = []
    # Two trees of each column, each a pair of levels and strengths; ``by_class`` is None if it gains nothing.
    for by_count, by_class in _core.Trees.grown(all_leaves, all_leaves.sum(axis=1), sizes, priors, threads):
        plain = Tree(tuple(by_count[0]), by_count[1])
        trees.append((plain if by_class is None else Tree(tuple(by_class[0]), by_class[1], cut_by_class=True), plain))
    return trees


def numbers_of_keys(keys: Int) -> Real:
    """Returns the numbers with these keys. A key is the bits of a number as an integer, flipped so that keys are in the
    order of numbers.
    """
    # Within those of finite numbers.
    keys = np.minimum(np.maximum(np.asarray(keys, dtype=np.int64), -INFINITE), INFINITE - 1)
    return np.where(keys < 0, keys ^ SIGN, keys).astype(np.int64).view(np.float64)


def bin_edges(keys: Int, unit: float | Real) -> Real:
    """Returns the lower edge of each bin of leading bits. A key is the bits of a number shifted right as often as
    ``unit`` (of each key, or of all) is 2.
    """
    shift = np.log2(unit).astype(np.int64)  # dropped bits
    farthest = (INFINITE >> shift) + 1  # no key is beyond ± this
    return numbers_of_keys(np.minimum(np.maximum(keys, -farthest), farthest - (shift > 0)) << shift)


def midpoints(low: Real, high: Real) -> Real:
    """Returns the middle of each interval from ``low`` to ``high``, in their shape."""
    return np.minimum(np.maximum(low / 2.0 + high / 2.0, low), high)


def n_nodes(level: Int) -> int:
    """Returns the number of nodes of a level, plus one for values in no cell. ``level`` has the node of each cell, from
    0 on.
    """
    return int(level.max(initial=-1)) + 2


class Nodes:
    """A column's coarse and fine nodes that pairs of columns use: how many there are, the fine node of each cell, and
    the coarse node of each fine one. The last of each is for values in no cell.
    """

    def __init__(self, tree: Tree) -> None:
        """Selects a coarse and a fine level of a column's tree."""
        coarse = tree.levels[tree.up_to(FEW_NODES)]  # the node of each cell on these levels
        fine = tree.levels[tree.up_to(MANY_NODES)]
        self.levels = tree.up_to(FEW_NODES), tree.up_to(MANY_NODES)  # the numbers of the two levels
        self.n_coarse = n_nodes(coarse)
        self.n_fine = n_nodes(fine)
        # The fine node of each cell, and of a value in none.
        self.fine = np.append(fine, self.n_fine - 1).astype(np.uint32)
        # The coarse node of each fine node.
        self.coarse = np.full(self.n_fine, self.n_coarse - 1, dtype=np.uint32)
        self.coarse[fine] = coarse


@dataclass(frozen=True)
class Cells:
    """The cells of a column, as they were when its weights were learned.

    The cuts of ``tree`` may depend on the classes; those of ``plain`` do not, and pairs of columns use its nodes. A
    value in no cell has the number of cells as its code.
    """

    feature: Feature
    tree: Tree
    plain: Tree

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return self.tree.n_cells

    @cached_property
    def nodes(self) -> Nodes:
        """The coarse and fine nodes that pairs of columns use, from the tree whose cuts do not depend on the classes."""
        return Nodes(self.plain)

    @property
    def n_fine(self) -> int:
        """The number of nodes in the fine table of a pair."""
        return self.nodes.n_fine

    def find(self, rows: ColumnReader, threads: int) -> Int:
        """Returns the cell of each row (rows). A value in no cell has the number of cells, or −1."""
        raise NotImplementedError

    def rows_by_cell(self, feature: Feature, keys: Keys, rows: Real, missing: Real) -> Real:
        """Returns the rows of each cell (cells × classes). ``keys`` and ``rows`` (keys × classes) are what ``feature``
        has counted now, and ``missing`` has the number of rows of each class without a value.
        """
        raise NotImplementedError

    def name(self, first: int, last: int) -> Any:
        """Returns the value of cell number ``first``, or the interval of neighbouring cells of numbers, from number
        ``first`` to number ``last``.
        """
        raise NotImplementedError

    @property
    def are_intervals(self) -> bool:
        """Whether the cells are intervals of numbers."""
        return self.cuts_if_numbers is not None

    @property
    def categories(self) -> Keys | None:
        """The values of the cells, in their order, if they are categories, otherwise None."""
        return None

    @property
    def cuts_if_numbers(self) -> list[float] | None:
        """The cuts between the cells, in ascending order, if they are intervals of numbers, otherwise None."""
        return None

    @cached_property
    def positions(self) -> Real:
        """The positions of the intervals of numbers, which are the first cells, on a standard scale (intervals); here
        there are none.
        """
        return np.zeros(0)

    @property
    def has_trend(self) -> bool:
        """Whether there are enough intervals of numbers for a trend."""
        return len(self.positions) > 2

    def restrict(self, keys: Keys) -> tuple[Int, Cells]:
        """Returns the numbers of the cells whose values are among these keys, and those cells alone, with new numbers
        from 0 on. Intervals of numbers all stay.
        """
        return np.arange(self.n_cells), self


@dataclass(frozen=True)
class NamedCells(Cells):
    """One cell for each category. Cells are not joined, so that any of them can be dropped."""

    keys: Keys  # the category of each cell

    def find(self, rows: ColumnReader, threads: int) -> Int:
        """Returns the cell of each row's category (rows); −1 for a category that has no cell."""
        return key_positions(self.feature.family.keys_of(rows, self.feature, threads), self.keys)

    def rows_by_cell(self, feature: Feature, keys: Keys, rows: Real, missing: Real) -> Real:
        """Returns the rows of each cell (cells × classes), from the categories ``keys`` that were counted and their
        ``rows`` (keys × classes). Missing values have no cell, so ``missing`` is not used.
        """
        line_of_key = {key: line for line, key in enumerate(keys)}
        lines = np.array([line_of_key.get(key, -1) for key in self.keys], dtype=np.int64)
        return np.vstack([rows, np.zeros(rows.shape[1])])[lines]  # −1 is the last line

    def name(self, first: int, last: int) -> Any:
        """Returns the category of cell ``first``; categories have no neighbours, so ``last`` is the same cell."""
        return self.keys[first]

    @property
    def categories(self) -> Keys:
        """The categories, in the order of the cells."""
        return self.keys

    def restrict(self, keys: Keys) -> tuple[Int, Cells]:
        """Returns the numbers of the cells whose categories are among these keys, and those cells alone, with new
        numbers from 0 on.
        """
        key_set = set(keys)
        cell_numbers = np.array([k for k, key in enumerate(self.keys) if key in key_set], dtype=np.int64)
        if len(cell_numbers) == self.n_cells:
            return cell_numbers, self
        tree = replace(flat_tree(len(cell_numbers)), strengths=self.tree.strengths)
        remaining_keys = tuple(self.keys[k] for k in cell_numbers.tolist())
        return cell_numbers, replace(self, tree=tree, plain=tree, keys=remaining_keys)


@dataclass(frozen=True)
class NumberCells(Cells):
    """The intervals between the cuts of a column of numbers, and a cell for missing values if there are any."""

    cuts: Real  # in ascending order

    def find(self, rows: ColumnReader, threads: int) -> Int:
        """Returns the number of the interval of each row's number (rows); the number of intervals if it is missing."""
        return _find_intervals([self], rows, threads)[:, 0].astype(np.int64)

    def rows_by_cell(self, feature: Feature, keys: Keys, rows: Real, missing: Real) -> Real:
        """Returns the rows of each cell (cells × classes), from the bins of leading bits ``keys`` that ``feature``
        counted, their ``rows`` (keys × classes), and the number of rows of each class without a value (``missing``).
        ``self.cuts`` are those between the cells.
        """
        bins = np.array(keys, dtype=np.int64)
        middles = midpoints(bin_edges(bins, feature.unit), bin_edges(bins + 1, feature.unit))
        # Of each bin, and of missing values, which are the cell after all intervals.
        cell_of_bin = np.append(np.searchsorted(self.cuts, middles, side="right"), len(self.cuts) + 1)
        return sum_by_node(np.vstack([rows, missing]), cell_of_bin)[: self.n_cells]

    def name(self, first: int, last: int) -> Any:
        """Returns the interval of the neighbouring cells from number ``first`` to number ``last``, in words; None for
        the cell of missing values. ``self.cuts`` are those between the intervals.
        """
        if first > len(self.cuts):
            return None
        ends = np.concatenate([[-np.inf], self.cuts, [np.inf]])  # of the intervals
        return name_interval(float(ends[first]), float(ends[last + 1]), whole_numbers=self.feature.kind == "integer")

    @property
    def cuts_if_numbers(self) -> list[float]:
        """The cuts between intervals, in ascending order."""
        return [float(cut) for cut in self.cuts]

    @cached_property
    def positions(self) -> Real:
        """The middles of the intervals, shifted and scaled so that a normal distribution would have mean 0 and variance
        1, and clipped at ±4. The outer intervals are as wide as their neighbours. ``self.cuts`` are those between them.
        """
        if len(self.cuts) < 2:
            return np.zeros(len(self.cuts) + 1)
        cuts = self.cuts / (np.abs(self.cuts).max() or 1.0)  # from −1 to 1, as the ends and middles of the intervals
        ends = np.concatenate([[2 * cuts[0] - cuts[1]], cuts, [2 * cuts[-1] - cuts[-2]]])
        middles = (ends[1:] + ends[:-1]) / 2.0
        n_intervals = len(cuts) + 1
        # The 5 %, 50 % and 95 % quantiles, if intervals have equally many rows.
        low, median, high = middles[[n_intervals // 20, n_intervals // 2, n_intervals - 1 - n_intervals // 20]]
        deviation = (high - low) / NINE_TENTHS
        if not deviation > 0:
            return np.zeros(n_intervals)
        return np.asarray(np.clip((middles - median) / deviation, -OUTERMOST, OUTERMOST))


def find_cells(columns: Sequence[Cells], rows: ColumnReader, threads: int) -> list[NDArray[Any]]:
    """Returns for each column the cell of each row (rows); if all columns hold numbers, one matrix (rows × columns) in
    a list. A value in no cell has the number of cells, or −1. One kernel call serves all columns of numbers.
    """
    # By the column's place among ``columns``.
    numeric_columns = {j: cells for j, cells in enumerate(columns) if isinstance(cells, NumberCells)}
    number_cells = np.zeros((rows.n_rows, 0), dtype=np.uint16)  # the cell of each row (rows × numeric columns)
    if numeric_columns:
        number_cells = _find_intervals(list(numeric_columns.values()), rows, threads)
    if len(numeric_columns) == len(columns):
        return [number_cells]
    cells_of_numbers = dict(zip(numeric_columns, number_cells.T, strict=True))
    return [
        cells_of_numbers[j] if j in cells_of_numbers else cells.find(rows, threads) for j, cells in enumerate(columns)
    ]


def encode_cells(columns: Sequence[Cells], rows: ColumnReader, threads: int) -> NDArray[np.uint32]:
    """Returns the cell of each row in each column (rows × columns). A value in no cell has the number of cells."""
    columns_of_cells = [  # rows × columns each
        column if column.ndim == 2 else column[:, None] for column in find_cells(columns, rows, threads)
    ]
    n_cells = np.array([cells.n_cells for cells in columns], dtype=np.uint32)
    codes = np.empty((rows.n_rows, len(columns)), dtype=np.uint32)

    def write_codes(slice_of_rows: slice) -> None:
        """Writes the cells of these rows to ``codes``."""
        cells_of_slice = [column[slice_of_rows] for column in columns_of_cells]
        np.concatenate(cells_of_slice, axis=1, out=codes[slice_of_rows], casting="unsafe")  # −1 becomes 2^32 − 1
        np.minimum(codes[slice_of_rows], n_cells, out=codes[slice_of_rows])

    run_by_rows(write_codes, rows.n_rows, threads)
    return codes


def _find_intervals(columns: Sequence[NumberCells], rows: ColumnReader, threads: int) -> NDArray[np.uint16]:
    """Returns the number of the interval in which each number is (rows × columns); of a missing one the number of
    intervals.
    """
    names = [cells.feature.name for cells in columns]
    try:
        return _core.steps(rows.numbers(names), [cells.cuts for cells in columns], threads)
    except _core.BadValue as bad:
        raise bad_value(bad, names, rows) from None  # type: ignore[arg-type]
