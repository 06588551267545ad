"""The arrays that everything is made of, by name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]
Int = NDArray[np.int64]
