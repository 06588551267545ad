"""The trend of a column of numbers: a normal curve for each class, with one variance, over the positions of its intervals.

A tree can follow any shape, but it needs rows in each interval. A trend needs only a mean per class, so a few rows suffice to
show that larger numbers favour a class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from banbury.arrays import Int, Real
from banbury.families.cells import HALF_ROW

LEAST_VARIANCE = 0.01  # of positions, which are from −4 to 4


@dataclass(frozen=True)
class Trends:
    """The trends of columns of numbers, one after the other.

    ``positions`` has the position of each interval on a standard scale, and ``lengths`` the number of intervals of each
    column.
    """

    positions: Real  # of all intervals, column by column
    lengths: Int

    def evidence(self, counts: Real, left_out: bool) -> Real:
        """Returns the evidence of each interval (intervals × classes), from its rows in each class, ``counts``
        (intervals × classes); with ``left_out``, without one row of each class in turn (intervals × class of the row ×
        classes).

        It is log P(position | class) without what all classes share: (z μ − μ² / 2) / σ², for the position z of the
        interval, the mean μ of the class and the variance σ² of all. Half a row at 0 is added to each mean, and a row
        of variance 1 to all, so that a few rows have little evidence.
        """
        if left_out:
            n_intervals, n_classes = counts.shape
            evidence_left_out = self.leave_out(
                counts, np.repeat(np.arange(n_intervals), n_classes), np.tile(np.arange(n_classes), n_intervals)
            )
            return evidence_left_out.reshape(n_intervals, n_classes, n_classes)
        curves = self._curves(counts)
        variance = _variance(curves.residual_squares, curves.n_rows.sum(axis=0))  # of each column
        return (self._numerators(curves) / variance[self._column_of_interval]).T

    def leave_out(self, counts: Real, intervals: Int, own_class: Any) -> Real:
        """Returns the evidence of some intervals (intervals × classes), each without one row of a class: ``intervals``
        are their numbers, and ``own_class`` has the class of each row. ``counts`` has the rows of each interval in each
        class (intervals × classes).
        """
        curves = self._curves(counts)
        z = self.positions[intervals]  # the position of each of these intervals, as in the formula of ``evidence``
        column = self._column_of_interval[intervals]  # the column of each
        n_removed = np.minimum(
            counts[intervals, own_class], 1.0
        )  # a row of small weight is removed as far as it counts
        # Of the row's class, without the row: the number of rows, their mean, and the squares that it explains.
        n_left = curves.n_rows[own_class, column] - n_removed
        mean, explained_squares = _fit_means(n_left, curves.position_sums[own_class, column] - n_removed * z)
        # Of all rows: the squares that the means of the other classes do not explain; without the row, that no mean does.
        squares = curves.residual_squares[column] + curves.explained_squares[own_class, column]
        residual_squares = squares - n_removed * z**2 - explained_squares
        variance = _variance(residual_squares, curves.n_rows.sum(axis=0)[column] - n_removed)
        # Only the curve of the row's class changes, and the variance that all share.
        evidence = self._numerators(curves).T[intervals] / variance[:, None]
        evidence[np.arange(len(intervals)), own_class] = (z * mean - mean**2 / 2.0) / variance
        return evidence

    @property
    def _column_of_interval(self) -> Int:
        """The number of the column of each interval."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def _curves(self, counts: Real) -> _Curves:
        """Returns the normal curves of all classes and columns, fitted to ``counts``, the rows of each interval in each
        class (intervals × classes).
        """
        first_intervals = np.cumsum(self.lengths) - self.lengths  # of each column
        positions = self.positions
        counts = np.ascontiguousarray(counts.T)  # classes × intervals
        n_rows = np.add.reduceat(counts, first_intervals, axis=1)
        position_sums = np.add.reduceat(counts * positions, first_intervals, axis=1)
        mean, explained_squares = _fit_means(n_rows, position_sums)
        squares = np.add.reduceat(counts.sum(axis=0) * positions**2, first_intervals)  # of the positions of all rows
        residual_squares = squares - explained_squares.sum(axis=0)
        return _Curves(n_rows, position_sums, mean, explained_squares, residual_squares)

    def _numerators(self, curves: _Curves) -> Real:
        """Returns z μ − μ² / 2 of each class and interval (classes × intervals), where z is the position of the
        interval and μ the mean of the class in its column, which ``curves`` has (classes × columns).
        """
        column = self._column_of_interval  # of each interval
        return self.positions * curves.mean[:, column] - (curves.mean**2 / 2.0)[:, column]


class _Curves(NamedTuple):
    """Normal curves, one for each class and column: the number of rows, the sum and the mean of their positions, and the
    part of the sum of squared positions that the mean explains (classes × columns each); and for each column the part
    that no mean explains.
    """

    n_rows: Real  # (classes, columns), as all but the last
    position_sums: Real
    mean: Real
    explained_squares: Real
    residual_squares: Real  # (columns,)


def _fit_means(n_rows: Real, position_sums: Real) -> tuple[Real, Real]:
    """Returns the mean position of rows of a class, shrunk towards 0 by half a row, and the part of the sum of squared
    positions that it explains, from the number of rows (``n_rows``) and the sum of their positions. All arrays have one
    shape, with an entry for each class and column, or for each row that is left out.
    """
    mean = position_sums / (n_rows + HALF_ROW)
    return mean, mean * (2.0 * position_sums - n_rows * mean)


def _variance(residual_squares: Real, n_rows: Real) -> Real:
    """Returns the variance that all classes share (one number per column, or per row that is left out), from the sum of
    squares that means do not explain (``residual_squares``) and the number of rows (``n_rows``), with one row of
    variance 1 added.
    """
    return np.maximum((residual_squares + 1.0) / (n_rows + 1.0), LEAST_VARIANCE)
