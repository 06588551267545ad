"""A block of numeric columns cut into cells: the bins of each column, side by side.

A cell's key is the number of its bin in each column. When too many cells are occupied, bins are doubled in one column after the
other; ``unit`` of a block is 2 to how often that has happened, so that a finer grid always fits into a coarser one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.families.family import MOST_BINS, ColumnReader, Feature, columns_of
from banbury.sums import ROUNDING

FARTHEST = 1e300  # in bins
MOST_CELLS = 2**14
FEW = 0.05  # of the rows may have values that are not rounded as the others are


def most_cells(feature: Feature) -> int:
    """How many cells of a block may be occupied: twice as many with every column more."""
    return min(MOST_BINS << (len(feature.inputs) - 1), MOST_CELLS)


def doublings(feature: Feature) -> Int:
    """How often the bins of each column have been doubled."""
    n = len(feature.inputs)
    return (round(float(np.log2(feature.unit))) + np.arange(n - 1, -1, -1)) // n


def widths(feature: Feature) -> Real:
    return np.asarray(np.array([width for _, width in feature.scales]) * 2.0 ** doublings(feature))


def starts(feature: Feature) -> Real:
    """Where the bin 0 of each column begins."""
    return np.array([start for start, _ in feature.scales])


def rounding(codes: NDArray[Any], rows: Real) -> float:
    """How many bins a column's values are apart at least, as if rounded; the rarest, a twentieth of the rows, aside."""
    ordered = np.sort(rows)
    below = np.cumsum(ordered)
    rare = ordered[np.searchsorted(below, (FEW + ROUNDING) * below[-1], side="right")]
    kept = codes[(rows > 0) & (rows >= (1.0 - ROUNDING) * rare)]
    return float(np.diff(kept).min()) if len(kept) > 1 else 1.0


def distinct(codes: NDArray[Any], threads: int = 1) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """The number of each row's cell, and the cells in the order in which they first occur."""
    codes = np.ascontiguousarray(codes)
    records = codes.view(np.uint8).reshape(len(codes), codes.shape[1] * codes.itemsize)
    numbers, first, _ = _core.encode_records(records, threads)
    return numbers, codes[first]


def fitting(feature: Feature, cells: Int, threads: int = 1) -> Feature:
    """The block with bins doubled until no more of these cells are left than may be."""
    while len(cells) > most_cells(feature):
        wider = feature._replace(unit=feature.unit * 2.0)
        cells = distinct(cells >> (doublings(wider) - doublings(feature)), threads)[1]
        feature = wider
    return feature


def steps(rows: ColumnReader, feature: Feature, width: Real) -> Real:
    """The bins, of these widths, that rows to be scored fall into, (rows, columns); NaN where a value is missing."""
    found = np.empty((rows.n_rows, len(width)))
    for j, (column, start) in enumerate(zip(columns_of(rows, feature), starts(feature), strict=True)):
        with np.errstate(over="ignore", invalid="ignore"):
            z = np.floor(np.clip((column - start) / width[j], -FARTHEST, FARTHEST)) + 0.0  # −0 is no other number
            found[:, j] = np.where(np.isnan(z), np.nan, z)
    return found
