"""Cells: a column's values, or stretches of its numbers, as they are weighed; the trees over them say what each is part of.

A tree has levels: on each, every finest cell belongs to one node. The share of a class in a node is
p = (n + m · p of the wider node) / (N + m), from the share of the class among all rows down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.families.evidence import stretch
from banbury.families.family import ColumnReader, Feature, bad_value
from banbury.families.keys import places_of
from banbury.sums import Keys

Strengths = tuple[float, float]  # m of the first level, and of the others

MOST_LEAVES = 128  # of a column of numbers
SMALLEST = 1e-300
HALF_ROW = 0.5  # of each class, and of each leaf, that was never seen
SIGN = np.int64(np.iinfo(np.int64).max)
INFINITE = int(np.float64(np.inf).view(np.int64))
NINE_TENTHS = 3.29  # widths in which 90 % of a normal curve lie; and places from its middle, at most
OUTERMOST = 4.0
FEW_NODES = 4  # of a column, in the coarse and in the fine table of a pair
MANY_NODES = 16


@dataclass(frozen=True)
class Tree:
    """Of each level, from the widest to the finest, the node of every cell. The nodes of the last are the cells."""

    levels: tuple[Int, ...]
    told_apart: bool = False  # whether the first level's cuts were chosen by class: it has an m of its own then

    @property
    def n_cells(self) -> int:
        return len(self.levels[-1])

    def sums(self, cells: Real) -> list[Real]:
        """Rows per class of the nodes of each level, from those of the cells."""
        return [sum_by_node(cells, level) for level in self.levels]

    def strength(self, strengths: Strengths, depth: int) -> float:
        return strengths[0] if depth == 0 else strengths[1]

    def shares(self, cells: Real, strengths: Strengths, prior: Real) -> list[Real]:
        """P(class | node) of each level, (nodes, classes)."""
        return self._alone().shares_by_level(cells, strengths, prior, False)

    def shares_left_out(self, cells: Real, strengths: Strengths, prior: Real) -> list[Real]:
        """The same without one row of each class in turn, (nodes, own class, classes)."""
        return self._alone().shares_by_level(cells, strengths, prior, True)

    def of_rows(self, cells: Real, strengths: Strengths, prior: Real, at: Int, labels: Int, weights: Real) -> Real:
        """P(class | cell) of rows in these cells, (rows, classes), each without its own weight."""
        rows_at = np.arange(len(at))
        share = np.broadcast_to(prior, (len(at), len(prior)))
        for depth, (rows, level) in enumerate(zip(self.sums(cells), self.levels, strict=True)):
            less = rows[level[at]]
            less[rows_at, labels] = np.maximum(less[rows_at, labels] - weights, 0.0)
            total = less.sum(axis=1, keepdims=True) + (m := self.strength(strengths, depth))
            share = (less + m * share) / np.where(total > 0, total, 1.0) + (total <= 0) * share
        return share

    def choose_strengths(self, cells: Real, prior: Real) -> tuple[tuple[float, float], float]:
        """The strengths under which rows, each left out, are likeliest, and how much likelier than by the prior alone."""
        ((first, below),), (gain,) = self._alone().strengths(cells, [self.told_apart], prior, 1)
        return (first, below), float(gain)

    def _alone(self) -> _core.Trees:
        return trees_together([self])

    def _parents(self) -> list[Int]:
        """Of each level's nodes the node of the level above."""
        parents = [np.zeros(int(self.levels[0].max(initial=-1)) + 1, dtype=np.int64)]
        for wide, fine in pairwise(self.levels):
            parent = np.zeros(int(fine.max(initial=-1)) + 1, dtype=np.int64)
            parent[fine] = wide
            parents.append(parent)
        return parents

    def up_to(self, n: int) -> int:
        """The finest level of no more nodes than these; the widest if all have more."""
        finer = (k for k, level in enumerate(self.levels) if level.max(initial=-1) >= n)
        return max(next(finer, len(self.levels)) - 1, 0)

    def with_missing(self) -> Tree:
        """The tree with a cell more, of missing values, on every level."""
        levels = tuple(np.append(level, level.max(initial=-1) + 1) for level in self.levels)
        return Tree(levels, self.told_apart)


def prior_of(cells: Real) -> Real:
    """The share of each class among the rows, half a row of each added."""
    rows = cells.sum(axis=0) + HALF_ROW
    return np.asarray(rows / rows.sum())


def sum_by_node(cells: Real, nodes: Int) -> Real:
    """Rows per class of nodes, from those of cells; added in order."""
    n = int(nodes.max(initial=-1)) + 1
    n_classes = cells.shape[1]
    places = nodes[:, None] * n_classes + np.arange(n_classes)
    sums = np.bincount(places.ravel(), cells.ravel(), n * n_classes)
    return np.asarray(sums, dtype=np.float64).reshape(n, n_classes)


def flat(n_cells: int) -> Tree:
    """Cells that are part of nothing wider: values without an order."""
    return Tree((np.arange(n_cells),))


@dataclass(frozen=True)
class Forest:
    """The trees of columns and their strengths, one after the other, so that all are gone through in one call."""

    trees: _core.Trees
    sizes: Int  # the cells of each
    strengths: Real
    told_apart: list[bool]

    @classmethod
    def of(cls, trees: Sequence[tuple[Tree, Strengths]]) -> Forest:
        alone = [tree for tree, _ in trees]
        sizes = np.array([tree.n_cells for tree in alone], dtype=np.int64)
        strengths = np.array([strengths for _, strengths in trees], dtype=np.float64)
        return cls(trees_together(alone), sizes, strengths, [tree.told_apart for tree in alone])

    def shares(self, cells: Real, prior: Real, left_out: bool, threads: int) -> Real:
        """P(class | cell), (cells, classes), or without a row of each class, (cells, own class, classes).

        Each tree has a cell more, of values that are in none: there it is the prior.
        """
        return self.trees.shares(cells, self.strengths, prior, left_out, threads)

    def gains(self, cells: Real, prior: Real, threads: int) -> Real:
        """How much likelier the rows of each column are than by the prior alone."""
        return self.trees.strengths(cells, self.told_apart, prior, threads)[1]


def trees_together(trees: Sequence[Tree]) -> _core.Trees:
    levels = np.concatenate([level for tree in trees for level in tree.levels])
    sizes = np.array([(len(tree.levels), tree.n_cells) for tree in trees], dtype=np.int64).T
    return _core.Trees(levels, *np.ascontiguousarray(sizes))


def trees_of(cells: Sequence[Real], threads: int) -> list[tuple[tuple[Tree, Strengths], tuple[Tree, Strengths]]]:
    """The tree of each column of numbers, from rows per leaf and class, and its strengths; and the same of halves alone.

    Leaves are joined by count; first by cuts that tell the classes apart where these gain more than it costs to name them.
    """
    every = np.concatenate(cells)
    sizes = np.array([len(column) for column in cells], dtype=np.int64)
    rows = np.add.reduceat(every, np.cumsum(sizes) - sizes, axis=0) + HALF_ROW
    priors = rows / rows.sum(axis=1, keepdims=True)
    trees = []
    for (levels, strengths), by_class in _core.Trees.grown(every, every.sum(axis=1), sizes, priors, threads):
        plain = Tree(tuple(levels)), strengths
        trees.append((plain if by_class is None else (Tree(tuple(by_class[0]), True), by_class[1]), plain))
    return trees


def number_of(keys: Int) -> Real:
    """The numbers whose bits, in the order of numbers, are these keys."""
    keys = np.minimum(np.maximum(np.asarray(keys, dtype=np.int64), -INFINITE), INFINITE - 1)
    return np.where(keys < 0, keys ^ SIGN, keys).astype(np.int64).view(np.float64)


def bin_edges(keys: Int, unit: float | Real) -> Real:
    """Where the bins of these keys begin: their leading bits, the rest of them zero; of one unit, or each of its own."""
    shift = np.log2(unit).astype(np.int64)
    farthest = (INFINITE >> shift) + 1
    return number_of(np.minimum(np.maximum(keys, -farthest), farthest - (shift > 0)) << shift)


def between(low: Real, high: Real) -> Real:
    return np.asarray(np.minimum(np.maximum(low / 2.0 + high / 2.0, low), high))


def n_nodes(level: Int) -> int:
    """The nodes of a level, and one more for values in no cell."""
    return int(level.max(initial=-1)) + 2


class Nodes:
    """The nodes of a column that pairs use: few and many. The last of each is that of values in no cell."""

    def __init__(self, tree: Tree) -> None:
        coarse = tree.levels[tree.up_to(FEW_NODES)]
        fine = tree.levels[tree.up_to(MANY_NODES)]
        self.levels = tree.up_to(FEW_NODES), tree.up_to(MANY_NODES)
        self.n_coarse, self.n_fine = n_nodes(coarse), n_nodes(fine)
        self.fine = np.append(fine, self.n_fine - 1).astype(np.uint32)
        self.coarse = np.full(self.n_fine, self.n_coarse - 1, dtype=np.uint32)
        self.coarse[fine] = coarse


@dataclass(frozen=True)
class Cells:
    """A column's cells, as they were when its weights were learned, with the strength of each tree's prior.

    ``tree`` may begin with cuts that tell the classes apart; ``plain`` never does, and pairs of columns use its nodes. The code
    of a value that is in no cell is the number of cells.
    """

    feature: Feature
    tree: Tree
    strengths: tuple[float, float]
    plain: Tree
    plain_strengths: tuple[float, float]

    @property
    def n_cells(self) -> int:
        return self.tree.n_cells

    @cached_property
    def nodes(self) -> Nodes:
        return Nodes(self.plain)

    @cached_property
    def n_fine(self) -> int:
        """Nodes in the fine table of a pair."""
        return n_nodes(self.plain.levels[self.plain.up_to(MANY_NODES)])

    def find(self, rows: ColumnReader, threads: int) -> Int:
        """The cell of each row; of a value in none the number of cells, or −1."""
        raise NotImplementedError

    def rows_by_cell(self, feature: Feature, keys: Keys, rows: Real, missing: Real) -> Real:
        """Rows per cell and class, from what is counted now; ``missing``: rows of each class without a value."""
        raise NotImplementedError

    def name(self, first: int, last: int) -> Any:
        """The value of a cell, or where the numbers of several lie, one beside the other."""
        raise NotImplementedError

    @property
    def stretches(self) -> bool:
        """Whether they are stretches of numbers."""
        return False

    @property
    def categories(self) -> Keys | None:
        """The named values, if they are named."""
        return None

    @property
    def listed_cuts(self) -> list[float] | None:
        """The cuts between stretches of numbers, if they are such."""
        return None

    @cached_property
    def places(self) -> Real:
        """Where the stretches of numbers lie, which come first among the cells."""
        return np.zeros(0)

    @property
    def has_trend(self) -> bool:
        """Whether there is more to say of where they lie than that one is beside the other."""
        return len(self.places) > 2

    def restrict(self, keys: Keys) -> tuple[Int, Cells]:
        """The places of the cells whose values are among these keys, and those cells alone. Stretches of numbers all stay."""
        return np.arange(self.n_cells), self


@dataclass(frozen=True)
class NamedCells(Cells):
    """One cell for each named value; none is part of a wider one, so that any of them can be left out."""

    keys: Keys

    def find(self, rows: ColumnReader, threads: int) -> Int:
        return places_of(self.feature.family.keys_of(rows, self.feature, threads), self.keys)

    def rows_by_cell(self, feature: Feature, keys: Keys, rows: Real, missing: Real) -> Real:
        place = {key: k for k, key in enumerate(keys)}
        at = np.array([place.get(key, -1) for key in self.keys], dtype=np.int64)
        counts = np.zeros((len(at), rows.shape[1]))
        counts[at >= 0] = rows[at[at >= 0]]
        return counts

    def name(self, first: int, last: int) -> Any:
        return self.keys[first]

    @property
    def categories(self) -> Keys:
        return self.keys

    def restrict(self, keys: Keys) -> tuple[Int, Cells]:
        there = set(keys)
        places = np.array([k for k, key in enumerate(self.keys) if key in there], dtype=np.int64)
        if len(places) == self.n_cells:
            return places, self
        tree = flat(len(places))
        return places, replace(self, tree=tree, plain=tree, keys=tuple(self.keys[k] for k in places.tolist()))


@dataclass(frozen=True)
class NumberCells(Cells):
    """Of numbers: the stretches between cuts; and one more where some are missing."""

    cuts: Real

    def find(self, rows: ColumnReader, threads: int) -> Int:
        return _steps([self], rows, threads)[:, 0].astype(np.int64)

    def rows_by_cell(self, feature: Feature, keys: Keys, rows: Real, missing: Real) -> Real:
        k = len(missing)
        bins = np.array(keys, dtype=np.int64)
        middles = between(bin_edges(bins, feature.unit), bin_edges(bins + 1, feature.unit))
        places = np.searchsorted(self.cuts, middles, side="right")[:, None] * k + np.arange(k)
        counts = np.bincount(places.ravel(), rows.ravel(), (len(self.cuts) + 2) * k).reshape(-1, k)
        counts[-1] = missing
        return np.asarray(counts[: self.n_cells], dtype=np.float64)

    def name(self, first: int, last: int) -> Any:
        if first > len(self.cuts):
            return None
        ends = np.concatenate([[-np.inf], self.cuts, [np.inf]])
        return stretch(float(ends[first]), float(ends[last + 1]), whole_numbers=self.feature.kind == "integer")

    @property
    def stretches(self) -> bool:
        return True

    @property
    def listed_cuts(self) -> list[float]:
        return [float(cut) for cut in self.cuts]

    @cached_property
    def places(self) -> Real:
        """Their middles, the outer ones as wide as those beside them; from the middle one, in such units that a normal curve's
        would have width 1, and none farther than four."""
        if len(self.cuts) < 2:
            return np.zeros(len(self.cuts) + 1)
        cuts = self.cuts / (np.abs(self.cuts).max() or 1.0)
        ends = np.concatenate([[2 * cuts[0] - cuts[1]], cuts, [2 * cuts[-1] - cuts[-2]]])
        middles = (ends[1:] + ends[:-1]) / 2.0
        n = len(cuts) + 1
        low, middle, high = middles[[n // 20, n // 2, n - 1 - n // 20]]
        unit = (high - low) / NINE_TENTHS
        return np.clip((middles - middle) / unit, -OUTERMOST, OUTERMOST) if unit > 0 else np.zeros(n)


def cells_by_column(columns: Sequence[Cells], rows: ColumnReader, threads: int) -> list[NDArray[Any]]:
    """The cell of each row, column by column; of a value in none its number of cells, or −1. Numbers are found together."""
    numbers = {j: cells for j, cells in enumerate(columns) if isinstance(cells, NumberCells)}
    number_cells = (
        _steps(list(numbers.values()), rows, threads) if numbers else np.zeros((rows.n_rows, 0), dtype=np.uint16)
    )
    if len(numbers) == len(columns):
        return [number_cells]
    steps = iter(number_cells.T)
    return [next(steps) if j in numbers else cells.find(rows, threads) for j, cells in enumerate(columns)]


def codes_of(columns: Sequence[Cells], rows: ColumnReader, threads: int) -> NDArray[np.uint32]:
    """The cell of each row in each column, (rows, columns); the number of cells where a value is in none."""
    columns_of_cells = [
        column if column.ndim == 2 else column[:, None] for column in cells_by_column(columns, rows, threads)
    ]
    codes = np.concatenate(columns_of_cells, axis=1, dtype=np.uint32, casting="unsafe")
    return np.minimum(codes, np.array([cells.n_cells for cells in columns], dtype=np.uint32), out=codes)


def _steps(columns: Sequence[NumberCells], rows: ColumnReader, threads: int) -> NDArray[np.uint16]:
    """The stretches that numbers are in, (rows, columns)."""
    names = [cells.feature.name for cells in columns]
    try:
        return _core.steps(rows.numbers(names), [cells.cuts for cells in columns], threads)
    except _core.BadValue as bad:
        raise bad_value(bad, names, rows) from None  # type: ignore[arg-type]
