"""What numbers say by their trend: a normal curve for each class, all of one width, over where a column's stretches lie.

A tree follows whatever shape there is, stretch by stretch, and needs rows for each. A trend needs a mean for each class: where
more goes with one class all along, it says so from few rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from banbury.arrays import Int, Real
from banbury.families.cells import HALF_ROW

LEAST_VARIANCE = 0.01  # of places, none of which is more than four from the middle


@dataclass(frozen=True)
class Trends:
    """Columns of numbers, one after the other: where their stretches lie, and how many each has."""

    places: Real
    lengths: Int

    def evidence(self, counts: Real, left_out: bool) -> Real:
        """The evidence of each stretch, (stretches, classes), from its rows of each class; with ``left_out``, without one row of
        each class in turn, (stretches, own class, classes).

        log P(place | class) but for what all classes share: (z μ − μ² / 2) / σ². Half a row at 0 is added to each mean, and a
        row of width 1 to all, so that few rows say little.
        """
        if left_out:
            n, k = counts.shape
            left_out_rows = self.leave_out(counts, np.repeat(np.arange(n), k), np.tile(np.arange(k), n))
            return left_out_rows.reshape(n, k, k)
        curves = self._curves(counts)
        variance = _variance(curves.spread, curves.n.sum(axis=0))
        return np.asarray((self._numerators(curves) / variance[self._column]).T)

    def leave_out(self, counts: Real, at: Int, own_class: Any) -> Real:
        """The evidence of the stretches ``at`` these places without one row of the classes ``own_class``, (as many, classes)."""
        curves = self._curves(counts)
        z = self.places[at]
        column = self._column[at]
        gone = np.minimum(counts[at, own_class], 1.0)
        mean, by_mean = _curve(curves.n[own_class, column] - gone, curves.sums[own_class, column] - gone * z)
        spread = (curves.spread[column] + curves.by_means[own_class, column]) - gone * z**2 - by_mean
        variance = _variance(spread, curves.n.sum(axis=0)[column] - gone)
        says = self._numerators(curves).T[at] / variance[:, None]
        says[np.arange(len(at)), own_class] = (z * mean - mean**2 / 2.0) / variance
        return np.asarray(says)

    @property
    def _column(self) -> Int:
        """The column of each stretch."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def _curves(self, counts: Real) -> _Curves:
        firsts = np.cumsum(self.lengths) - self.lengths
        z = self.places
        counts = np.ascontiguousarray(counts.T)
        n = np.add.reduceat(counts, firsts, axis=1)
        sums = np.add.reduceat(counts * z, firsts, axis=1)
        mean, by_means = _curve(n, sums)
        squares = np.add.reduceat(counts.sum(axis=0) * z**2, firsts)
        return _Curves(n, sums, mean, by_means, squares - by_means.sum(axis=0))

    def _numerators(self, curves: _Curves) -> Real:
        """z μ − μ² / 2, (classes, stretches)."""
        column = self._column
        return np.asarray(self.places * curves.mean[:, column] - (curves.mean**2 / 2.0)[:, column])


class _Curves(NamedTuple):
    """Of each class and column: its rows, the sum of their places, their mean, what of the squares it tells; and what no mean
    of a column tells."""

    n: Real
    sums: Real
    mean: Real
    by_means: Real
    spread: Real


def _curve(n: Real, sums: Real) -> tuple[Real, Real]:
    """The mean of each class, and what of the squares is told by it."""
    mean = sums / (n + HALF_ROW)
    return mean, mean * (2.0 * sums - n * mean)


def _variance(spread: Real, rows: Real) -> Real:
    return np.maximum((spread + 1.0) / (rows + 1.0), LEAST_VARIANCE)
