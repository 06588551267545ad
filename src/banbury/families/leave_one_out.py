"""What families of keys and of moments share when a row is left out: for every row at once, from the sums of all.

Sums without one row differ from the sums of all in one cell, so that most of what is estimated stays. Prior, smoothing and the
values there are follow exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.families import dirichlet
from banbury.families.family import UNUSED, Choice, Family, Feature, HeldOutRows, How, Parameters, RowsToCount, at_least
from banbury.sums import weighed

CELLS = 1 << 18  # rows × classes, or rows × bins, that are looked at together


# Keys ----------------------------------------------------------------------------------------------------------------


def by_cells(numbered: Parameters, held_out: HeldOutRows, shares: Callable[[int], Shares | None]) -> Real:
    """log P(key | class) of each row, (rows, classes), summed over features, each without the row.

    ``numbered`` has the numbers of cells, from 1 on, in place of log-probabilities of one class, so that the kernel looks up
    the cell of every value; 0 is none. ``shares`` has the cells of each feature.
    """
    rows = held_out.rows
    numbers = _core.score(rows.n_rows, np.zeros(1), numbered.parts(rows), "parts", held_out.threads)[0]
    places = np.rint(numbers[:, :, 0].T).astype(np.int64) - 1
    total = np.zeros((len(held_out.labels), held_out.n_classes))
    for f, place in enumerate(places):
        table = shares(f)
        if table is None:
            continue
        if int(place.min(initial=0)) >= 0:
            total += table.of_rows(place, held_out.labels, held_out.weights)
            continue
        there = np.flatnonzero(place >= 0)
        weights = None if held_out.weights is None else held_out.weights[there]
        total[there] += table.of_rows(place[there], held_out.labels[there], weights)
    return total


@dataclass(frozen=True)
class Shares:
    """One feature's cells, (keys, classes), under a Dirichlet prior. Keys that do not stay are gone with their last row.

    ``spread``: the prior's strength is spread evenly over whatever keys there are. The first cell has the number ``start``;
    ``log_width`` is taken off.
    """

    cells: Real
    alpha: Real
    how: How
    stays: NDArray[np.bool_]
    spread: bool = False
    start: int = 0
    log_width: float = 0.0

    def of_rows(self, keys: Int, labels: Int, weights: Real | None) -> Real:
        """log P(key | class), (rows, classes), each without the row's own weight."""
        keys = keys - self.start
        if weights is not None:
            return self._each(keys, labels, weights) - self.log_width
        keys, labels, row = different_rows(keys, labels, self.cells.shape)
        return (self._each(keys, labels, np.ones(len(keys))) - self.log_width)[row]

    def _each(self, keys: Int, labels: Int, weights: Real) -> Real:
        at, n_keys = np.arange(len(keys)), len(self.cells)
        pseudo = _pseudo_counts(self.alpha, self.how)
        counts = self.cells[keys]
        every = np.broadcast_to(self.cells.sum(axis=0), counts.shape).copy()
        parts = np.maximum(self.cells + pseudo[:, None], 0.0)
        whole = np.broadcast_to(parts.sum(axis=0), counts.shape).copy()
        mine = np.maximum(counts[at, labels] - weights, 0.0)
        part = parts[keys]
        left = np.maximum(mine + pseudo[keys], 0.0)
        whole[at, labels] += left - part[at, labels]
        part[at, labels] = left
        every[at, labels] -= counts[at, labels] - mine
        counts[at, labels] = mine
        if pseudo.min() >= 0:  # of whole numbers the sum is exact, and next to no smoothing is not lost in a difference
            whole = np.maximum(every, 0.0) + pseudo.sum()
        share = np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 1.0 / n_keys)
        result = dirichlet.log(np.maximum(share, 0.0))
        gone = ~self.stays[keys] & ~counts.any(axis=1)
        if gone.any():
            result[gone] = self._unseen(keys[gone], np.maximum(every[gone], 0.0))
        return result

    def _unseen(self, keys: Int, every: Real) -> Real:
        """The same of keys that no other row has."""
        if self.how == "mle":
            return np.zeros(every.shape)
        size = len(self.cells) - 1
        rest = self.alpha.sum() - (0.0 if self.spread else self.alpha[keys])
        strength = np.broadcast_to(rest / max(size, 1), keys.shape)
        strength = np.maximum(strength - 1.0, 0.0) if self.how == "map" else at_least(strength)
        rows = every + (strength * size)[:, None]
        skip = (strength == 0)[:, None] | (rows <= 0) | (size == 0)
        return np.where(skip, 0.0, np.log(np.where(skip, 1.0, strength[:, None] / np.where(skip, 1.0, rows))))


def different_rows(cells: Int, labels: Int, shape: tuple[int, ...]) -> tuple[Int, Int, Int]:
    """The different pairs of cell and label that rows have, (cells, labels), and which of them each row is."""
    n_cells, n_classes = shape
    pairs = cells * n_classes + labels
    if n_cells * n_classes > 4 * len(pairs):
        each, row = np.unique(pairs, return_inverse=True)
        return each // n_classes, each % n_classes, row.reshape(-1)
    there = np.zeros(n_cells * n_classes, dtype=np.bool_)
    there[pairs] = True
    each = np.flatnonzero(there)
    return each // n_classes, each % n_classes, (np.cumsum(there) - 1)[pairs]


def _pseudo_counts(alpha: Real, how: How) -> Real:
    if how == "mle":
        return np.zeros_like(alpha)
    return alpha - 1.0 if how == "map" else at_least(alpha)


# Moments -------------------------------------------------------------------------------------------------------------


def one_by_one(family: Family, features: tuple[Feature, ...], sums: Any, choice: Choice, held_out: HeldOutRows) -> Real:
    """Of sums of numbers: what is left without each row is estimated as if it were the sums of a feature of its own.

    Sums have ``as_features``, and the family's parameters ``log_probability``.
    """
    n_rows, n_classes = len(held_out.labels), held_out.n_classes
    numbers, weights = weighed(np.arange(n_rows, dtype=np.int32), held_out.weights)
    alone = RowsToCount(held_out.rows, range(n_rows), numbers, weights, held_out.threads)
    total = np.zeros((n_rows, n_classes))
    for f, feature in enumerate(features):
        x = np.asarray(held_out.rows.numbers([feature.name])[0], dtype=np.float64).reshape(-1)
        _, row_sums = feature.counter.count([feature], alone)
        there = np.flatnonzero(~np.isnan(x) & (held_out.weight > 0))
        for some in np.array_split(there, max(1, len(there) * n_classes // CELLS)):
            of_rows = row_sums.take(some).as_features(held_out.labels[some], n_classes)
            parameters: Any = family.estimate(
                (feature,) * len(some), sums.select([f] * len(some)) - of_rows, choice, UNUSED
            )
            total[some] += parameters.log_probability(x[some])
    return total
