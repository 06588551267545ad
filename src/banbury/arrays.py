"""The arrays that everything is made of, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Real = NDArray[np.float64]
Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

FARTHEST = 4e307  # numbers up to this can be subtracted, and the interval between them widened, without overflow
FEW_CLASSES = 32  # up to so many classes a loop is faster than NumPy's reduction


def over_classes(ufunc: Any, numbers: NDArray[Any]) -> NDArray[Any]:
    """Returns numbers (rows × classes) reduced to one per row with ``ufunc``, such as np.add or np.maximum. A loop is
    faster for few classes.
    """
    if not 0 < numbers.shape[1] <= FEW_CLASSES:
        return np.asarray(ufunc.reduce(numbers, axis=1))
    reduced = numbers[:, 0].copy()  # (rows,): of the classes so far
    for class_number in range(1, numbers.shape[1]):
        ufunc(reduced, numbers[:, class_number], out=reduced)
    return reduced


def divide(numerator: Any, denominator: Any, otherwise: Any = 0.0) -> Real:
    """Returns numerator / denominator, and ``otherwise`` where the denominator is not above 0. All are numbers or arrays
    that broadcast.
    """
    is_positive = np.asarray(denominator) > 0
    return np.asarray(np.where(is_positive, numerator / np.where(is_positive, denominator, 1.0), otherwise))


def positions_in_slices(starts: Int, sizes: Int) -> tuple[Int, Int]:
    """Puts slices of an array one after the other: slice i has ``sizes[i]`` entries from ``starts[i]`` on. Returns the
    offsets of the slices in the new array (slices + 1), and for each of its entries the position in the old array.
    """
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return offsets, np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])


def plain(value: Any) -> Any:
    """Returns a NumPy scalar as a Python scalar; anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value
