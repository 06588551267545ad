"""Numbers and names out of a file: each is what it should be, or an error says what is not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury.sums import Rows, in_order

Arrays = dict[str, NDArray[Any]]
HEAVIEST = 2.0**600  # 2**63 rows of the greatest weight are lighter


def under(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays whose names begin so, without that beginning."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def scalars(what: str, names: Any) -> tuple[Any, ...]:
    """Labels or keys: scalars, each once."""
    if not all(name is None or isinstance(name, (bool, int, float, str)) for name in names):
        raise TypeError(f"{what} are not all scalars")
    if any(isinstance(name, float) and math.isnan(name) for name in names):
        raise ValueError(f"{what} are not all numbers")
    if len(set(names)) < len(names):
        raise ValueError(f"{what} are not each once")
    return tuple(names)


def names_of(what: str, names: Any) -> tuple[Any, ...]:
    """The same, in order."""
    if in_order(scalars(what, names)) != tuple(names):
        raise ValueError(f"{what} are not in order")
    return tuple(names)


def texts(what: str, names: Any) -> tuple[str, ...]:
    """Names of columns."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{what} are not all texts")
    return tuple(names)


def whole(name: str, number: Any) -> int:
    if type(number) is not int or not 0 <= number < 2**63:
        raise ValueError(f"{name} is no whole number from 0 up")
    return number


def rows_of(name: str, arrays: Arrays, shape: tuple[int, ...]) -> Rows:
    rows = arrays[f"{name}.rows"]
    if rows.dtype != np.int64 or rows.shape != shape or (rows < 0).any():
        raise ValueError(f"{name}.rows is not {shape} whole numbers from 0 up")
    weights = f"{name}.weights"
    if weights not in arrays:
        return Rows(rows.copy())
    sums = real(weights, arrays, (*shape, 3))
    if (sums[..., 0] < 0).any() or sums[rows == 0].any() or (np.abs(sums) > HEAVIEST).any():
        raise ValueError(f"{weights} has a weight below 0, one without rows, or one that no rows have")
    return Rows(rows.copy(), sums)


def real(name: str, arrays: Arrays, shape: tuple[int, ...]) -> NDArray[np.float64]:
    numbers = arrays[name]
    if numbers.dtype != np.float64 or numbers.shape != shape or not np.isfinite(numbers).all():
        raise ValueError(f"{name} is not {shape} finite numbers")
    return numbers.copy()
