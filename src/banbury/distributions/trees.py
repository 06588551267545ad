"""Cells within wider cells: what each says of the classes, shrunk towards the cell it is part of; with any row left out.

A tree has levels: on each, every finest cell belongs to one node. The share of a class in a node is
p = (n + m · p of the wider node) / (N + m), from the share of the class among all rows down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from banbury import _core
from banbury.arrays import Int, Real

Strengths = tuple[float, float]  # m of the first level, and of the others

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

    def strength(self, strengths: Strengths, depth: int) -> float:
        return strengths[0] if depth == 0 else strengths[1]

    def shares(self, cells: Real, strengths: Strengths, prior: Real) -> list[Real]:
        """P(class | node) of each level, (nodes, classes)."""
        return self._alone().shares_by_level(cells, strengths, prior, False)

    def left_out(self, cells: Real, strengths: Strengths, prior: Real) -> list[Real]:
        """The same without one row of each class in turn, (nodes, own class, classes)."""
        return self._alone().shares_by_level(cells, strengths, prior, True)

    def of_rows(self, cells: Real, strengths: Strengths, prior: Real, at: Int, own: Int, weights: Real) -> Real:
        """P(class | cell) of rows in these cells, (rows, classes), each without its own weight."""
        rows_at = np.arange(len(at))
        share = np.broadcast_to(prior, (len(at), len(prior)))
        for depth, (rows, level) in enumerate(zip(self.sums(cells), self.levels, strict=True)):
            less = rows[level[at]]
            less[rows_at, own] = np.maximum(less[rows_at, own] - weights, 0.0)
            total = less.sum(axis=1, keepdims=True) + (m := self.strength(strengths, depth))
            share = (less + m * share) / np.where(total > 0, total, 1.0) + (total <= 0) * share
        return share

    def chosen(self, cells: Real, prior: Real) -> tuple[tuple[float, float], float]:
        """The strengths under which rows, each left out, are likeliest, and how much likelier than by the prior alone."""
        ((first, others),), (gain,) = self._alone().strengths(cells, [self.told_apart], prior, 1)
        return (first, others), float(gain)

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


def grouped(cells: Real, nodes: Int) -> Real:
    """Rows per class of nodes, from those of cells; added in order."""
    n, n_classes = int(nodes.max(initial=-1)) + 1, cells.shape[1]
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
    every, sizes = np.concatenate(cells), np.array([len(each) for each in cells], dtype=np.int64)
    priors = np.array([prior_of(each) for each in cells])
    found = []
    for (levels, strengths), told in _core.Trees.grown(every, every.sum(axis=1), sizes, priors, threads):
        plain = Tree(tuple(levels)), strengths
        found.append((plain if told is None else (Tree(tuple(told[0]), True), told[1]), plain))
    return found
