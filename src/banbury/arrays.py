"""The arrays that everything is made of, by name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]
Int = NDArray[np.int64]

FARTHEST = (
    4e307  # two numbers as far from 0 as this can be subtracted, and the stretch between them widened, without overflow
)
