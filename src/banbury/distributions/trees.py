"""Cells within wider cells: what each says of the classes, shrunk towards the cell it is part of; with any row left out.

A tree has levels: on each, every finest cell belongs to one node. The share of a class in a node is
p = (n + m · p of the wider node) / (N + m), from the share of the class among all rows down.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from banbury import _core
from banbury.arrays import Int, Real

MOST_LEAVES = 128  # of a column of numbers
SMALLEST = 1e-300
HALF_ROW = 0.5  # of each class, and of each leaf, that was never seen


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
        return [grouped(cells, level) for level in self.levels]

    def strength(self, strengths: tuple[float, float], depth: int) -> float:
        return strengths[0] if depth == 0 else strengths[1]

    def shares(self, cells: Real, strengths: tuple[float, float], prior: Real) -> list[Real]:
        """P(class | node) of each level, (nodes, classes)."""
        return _core.tree_shares(self.levels, cells, strengths, prior, False)

    def left_out(self, cells: Real, strengths: tuple[float, float], prior: Real) -> list[Real]:
        """The same without one row of each class in turn, (nodes, own class, classes)."""
        return _core.tree_shares(self.levels, cells, strengths, prior, True)

    def of_rows(
        self, cells: Real, strengths: tuple[float, float], prior: Real, at: Int, own: Int, weights: Real
    ) -> Real:
        """P(class | cell) of rows in these cells, (rows, classes), each without its own weight."""
        rows_at = np.arange(len(at))
        share = np.broadcast_to(prior, (len(at), len(prior)))
        for depth, (rows, level) in enumerate(zip(self.sums(cells), self.levels, strict=True)):
            less = rows[level[at]]
            less[rows_at, own] = np.maximum(less[rows_at, own] - weights, 0.0)
            share = _shrunk(less, self.strength(strengths, depth), share)
        return share

    def chosen(self, cells: Real, prior: Real) -> tuple[tuple[float, float], float]:
        """The strengths under which rows, each left out, are likeliest, and how much likelier than by the prior alone."""
        return _core.tree_strengths(self.levels, cells, prior, self.told_apart)

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


def grouped(cells: Real, nodes: Int) -> Real:
    """Rows per class of nodes, from those of cells; added in order."""
    n, n_classes = int(nodes.max(initial=-1)) + 1, cells.shape[1]
    places = nodes[:, None] * n_classes + np.arange(n_classes)
    sums = np.bincount(places.ravel(), cells.ravel(), n * n_classes)
    return np.asarray(sums, dtype=np.float64).reshape(n, n_classes)


def _shrunk(rows: Real, m: float, base: Real) -> Real:
    total = rows.sum(axis=-1, keepdims=True) + m
    return np.asarray((rows + m * base) / np.where(total > 0, total, 1.0) + (total <= 0) * base)


def flat(n_cells: int) -> Tree:
    """Cells that are part of nothing wider: values without an order."""
    return Tree((np.arange(n_cells),))


def quantiles(rows: Real, most: int = MOST_LEAVES) -> Int:
    """The leaf of each bin of numbers, in order: bins as they are where they are few, or joined to leaves of equal size."""
    if len(rows) <= most:
        return np.arange(len(rows))
    below = np.cumsum(rows)
    ends = np.searchsorted(below, below[-1] * np.arange(1, most) / most)
    begins = np.zeros(len(rows), dtype=np.int64)
    begins[ends[ends < len(rows) - 1] + 1] = 1
    return np.cumsum(begins)


def halved(rows: Real, first: Int | None = None) -> Tree:
    """A tree over leaves of so many rows, each node halved by count; below a first level, if there is one."""
    return Tree(tuple(_core.tree_levels(rows, first)), first is not None)


Strengths = tuple[float, float]  # m of the first level, and of the others


def tree_of(cells: Real, prior: Real) -> tuple[tuple[Tree, Strengths], tuple[Tree, Strengths]]:
    """The tree of a column of numbers, from rows per leaf and class, and its strengths; and the same of halves alone.

    Leaves are joined by count; first by cuts that tell the classes apart where these gain more than it costs to name them.
    """
    rows = cells.sum(axis=1)
    plain = halved(rows)
    strengths, gain = plain.chosen(cells, prior)
    cuts = _core.cuts_of(cells)
    if cuts:
        first = np.zeros(len(cells), dtype=np.int64)
        first[cuts] = 1
        told = halved(rows, np.cumsum(first))
        own, more = told.chosen(cells, prior)
        if more - gain > len(cuts) * np.log(max(len(cells) - 1, 2)):
            return (told, own), (plain, strengths)
    return (plain, strengths), (plain, strengths)
