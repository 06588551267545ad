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


def plain(value: Any) -> Any:
    """A scalar of NumPy as one of Python; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value
