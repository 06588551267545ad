"""The gamma function where its argument is large, and Gamma posteriors of rates: what Poisson and exponential share."""

from __future__ import annotations

from typing import Any

import numpy as np

from banbury.arrays import Real
from banbury.distributions.family import How

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


def rate_of(shape: Real, scale: Any, how: How, rng: np.random.Generator, least: float = 0.0) -> Real:
    """The mode, a draw, or the mean of Gamma(shape, scale); ``least`` is of the mode's shape less 1."""
    if how == "map":
        return np.asarray(np.maximum(shape - 1.0, least) / scale)
    drawn = np.maximum(rng.standard_gamma(shape), np.finfo(float).tiny) if how == "gibbs" else shape
    return np.asarray(drawn / scale)


def log_prior_of_rates(rates: Real, shape: Any, scale: Any, how: How) -> float:
    """What a prior of Gamma(shape, scale) adds to the log-likelihood, but for a constant."""
    if how == "mle":
        return 0.0
    shape = np.maximum(shape - 1.0, 0.0) if how == "map" else shape
    some = np.asarray(shape) > 0
    return float((shape * np.where(some, np.log(np.where(some, rates, 1.0)), 0.0) - scale * rates).sum())
