"""The arrays that everything is made of, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]
Int = NDArray[np.int64]

FARTHEST = (
    4e307  # two numbers as far from 0 as this can be subtracted, and the stretch between them widened, without overflow
)


FEW = 32


def over_classes(join: Any, numbers: NDArray[Any]) -> NDArray[Any]:
    """A ufunc over the classes of each row; of few classes one after the other, which NumPy does faster."""
    if not 0 < numbers.shape[1] <= FEW:
        return np.asarray(join.reduce(numbers, axis=1))
    result = numbers[:, 0].copy()
    for c in range(1, numbers.shape[1]):
        join(result, numbers[:, c], out=result)
    return result


def plain(value: Any) -> Any:
    """A scalar of NumPy as one of Python; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value
