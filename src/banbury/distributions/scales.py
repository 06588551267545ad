"""What the first rows settle of columns of numbers: an origin and a unit for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Real
from banbury.readers import Batch

SAMPLE = 1000  # rows that settle origins, units and types


def first_rows(batch: Batch, names: Sequence[str]) -> Real:
    """The first rows of some numeric columns, (rows, columns); infinite values as missing."""
    blocks = [c[:SAMPLE] if c.ndim == 2 else c[:SAMPLE, None] for c in batch.numbers(names)] if names else []
    if not blocks:
        return np.zeros((0, 0))
    return _finite(blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1))


def first_lists(batch: Batch, name: str) -> Real:
    """The same of a column of lists, (rows, numbers)."""
    return _finite(batch.lists(name, batch.width(name))[:SAMPLE])


def _finite(rows: NDArray[Any]) -> Real:
    rows = rows.astype(np.float64)
    rows[np.isinf(rows)] = np.nan
    return rows


def scales(sample: Real) -> tuple[Real, Real]:
    """Origin and power-of-two unit of each column: near its median and its interquartile range.

    Medians, because one far value among the first rows must not move the origin away from all the others. The origin
    is a multiple of the unit, so that whole numbers and short decimals are held without rounding.
    """
    if len(sample) == 0:
        return np.zeros(sample.shape[1]), np.ones(sample.shape[1])
    ordered = np.sort(sample, axis=0)  # missing values last
    n = len(ordered) - np.isnan(ordered).sum(axis=0)
    at = np.arange(len(n))
    low, middle, high = (ordered[n * quarter // 4, at] for quarter in (1, 2, 3)) if n.all() else _quartiles(ordered, n)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = high - low
        if not (spread > 0).all() or not np.isfinite(spread).all():
            deviations = np.nansum(np.abs(ordered - middle), axis=0) / np.maximum(n, 1)
            for fallback in (deviations, np.abs(middle), 1.0):
                spread = np.where((spread > 0) & np.isfinite(spread), spread, fallback)
        unit = np.ldexp(1.0, np.minimum(np.maximum(np.frexp(spread)[1] - 1, -1014), 1000))
        steps = np.rint(middle / unit)
        rounded = steps * unit
        return np.where((np.abs(steps) < 2.0**52) & np.isfinite(rounded), rounded, middle), unit


def scales_of_moments(sample: Real) -> tuple[Real, Real]:
    """The same; a column that has shown one value has it for its origin, since it may vary by little about it."""
    origins, units = scales(sample)
    if len(sample) == 0:
        return origins, units
    low, high = np.fmin.reduce(sample, axis=0), np.fmax.reduce(sample, axis=0)
    return np.where(low == high, low, origins), units


def _quartiles(ordered: Real, n: NDArray[Any]) -> tuple[Real, ...]:
    """The quartiles of columns some of which have no value: 0 there."""
    at = np.arange(len(n))
    places = (np.minimum(n * quarter // 4, len(ordered) - 1) for quarter in (1, 2, 3))
    return tuple(np.where(n > 0, ordered[place, at], 0.0) for place in places)
