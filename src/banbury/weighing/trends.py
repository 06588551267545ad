"""What numbers say by their trend: a normal curve for each class, all of one width, over where a column's stretches lie.

A tree follows whatever shape there is, stretch by stretch, and needs rows for each. A trend needs a mean for each class: where
more goes with one class all along, it says so from few rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from banbury.arrays import Int, Real
from banbury.distributions.trees import HALF_ROW

LEAST_VARIANCE = 0.01  # of places, none of which is more than four from the middle


@dataclass(frozen=True)
class Trends:
    """Columns of numbers, one after the other: where their stretches lie, and how many each has."""

    places: Real
    lengths: Int

    def told(self, counts: Real, left_out: bool) -> Real:
        """What each stretch says, (stretches, classes), from rows per stretch and class; or without one row of each class in
        turn, (stretches, own class, classes).

        log P(place | class) but for what all classes share: (z μ − μ² / 2) / σ². Half a row at 0 is added to each mean, and a
        row of width 1 to all, so that few rows say little.
        """
        column, firsts = np.repeat(np.arange(len(self.lengths)), self.lengths), np.cumsum(self.lengths) - self.lengths
        z, counts = self.places, np.ascontiguousarray(counts.T)
        n, sums = np.add.reduceat(counts, firsts, axis=1), np.add.reduceat(counts * z, firsts, axis=1)
        mean, by_means = _curve(n, sums)
        rows, squares = n.sum(axis=0), np.add.reduceat(counts.sum(axis=0) * z**2, firsts)
        spread = squares - by_means.sum(axis=0)
        says = z * mean[:, column] - (mean**2 / 2.0)[:, column]
        if not left_out:
            return np.asarray((says / _variance(spread, rows)[column]).T)
        found, each = np.empty((len(z), len(n), len(n))), np.ascontiguousarray(says.T)
        for c, gone in enumerate(np.minimum(counts, 1.0)):
            own, without = _curve(n[c, column] - gone, sums[c, column] - gone * z)
            less = (spread + by_means[c])[column] - gone * z**2 - without
            variance = _variance(less, rows[column] - gone)
            np.divide(each, variance[:, None], out=found[:, c])
            found[:, c, c] = (z * own - own**2 / 2.0) / variance
        return found


def _curve(n: Real, sums: Real) -> tuple[Real, Real]:
    """The mean of each class, and what of the squares is told by it."""
    mean = sums / (n + HALF_ROW)
    return mean, mean * (2.0 * sums - n * mean)


def _variance(spread: Real, rows: Real) -> Real:
    return np.maximum((spread + 1.0) / (rows + 1.0), LEAST_VARIANCE)
