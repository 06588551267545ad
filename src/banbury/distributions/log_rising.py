"""The gamma function where its argument is large: what the predictive distributions of many rows need."""

from __future__ import annotations

from typing import Any

import numpy as np

from banbury.arrays import Real

LARGE = 1e5  # from here on Stirling's series is exact to a double


def log_rising(a: Any, b: Any) -> Real:
    """log Γ(a + b) − log Γ(a), also where both are so large that their difference is lost."""
    from scipy.special import gammaln  # a third of a second to import; few need it

    a, b = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    large = np.maximum(a, LARGE)
    series = (large + b - 0.5) * np.log1p(b / large) - b + b * np.log(large)
    series += (1.0 / (large + b) - 1.0 / large) / 12.0
    few = np.minimum(a, LARGE)
    return np.asarray(np.where(a > LARGE, series, gammaln(few + b) - gammaln(few)))
