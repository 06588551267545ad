"""Gamma: numbers above 0 about a mean, the wider the farther from it; waiting for several events, incomes, sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from banbury.arrays import Real
from banbury.families.family import Choice, Feature, check_settings
from banbury.families.moments import LARGE
from banbury.families.positive import (
    SMALLEST_MEAN,
    TINY,
    LogMomentFamily,
    LogMoments,
    PositiveParameters,
)

NARROWEST = 1e8  # no shape is larger: a deviation is a ten-thousandth of the mean at least
WIDEST = 1e-3  # no shape is smaller


@dataclass(frozen=True, repr=False)
class Gamma(LogMomentFamily):
    """Positive numbers with a Gamma distribution per class, given by its mean and shape. The standard deviation is the
    mean divided by the root of the shape.

    Shape 1 is the exponential distribution. "mle" is maximum likelihood, with a shape between 0.001 and 1e8. The
    conjugate prior is worth ``prior_rows`` rows (one by default) that are like the average row of the column. "map" is
    the mode of shape and rate under this prior; "mean" uses the mode of the shape and the mean of the rate given that
    shape; "predictive" integrates the rate out, which makes the tail heavier; "gibbs" draws the logarithm of the shape
    from a normal distribution around its mode, and then the rate.

    >>> import banbury as bb
    >>> incomes = {"income": [21.0, 24.0, 60.0, 95.0], "job": ["clerk", "clerk", "owner", "owner"]}
    >>> tally = bb.count(incomes, target="job", features={"income": "gamma"})
    >>> bb.estimate(tally).predict({"income": [23.0, 80.0]}).tolist()
    ['clerk', 'owner']
    """

    prior_rows: float | None = None

    name: ClassVar[str] = "gamma"

    def __post_init__(self) -> None:
        check_settings(self, "prior_rows")

    def estimate(
        self, features: tuple[Feature, ...], sums: LogMoments, choice: Choice, rng: np.random.Generator
    ) -> GammaParameters:
        unit = np.array([feature.unit for feature in features])[:, None]
        n = sums.values.n.value
        mean = sums.values.mean
        every = sums.values.pool()
        logs = sums.logs.mean - np.log(unit)
        every_log = sums.logs.pool()[1] - np.log(unit)
        some = every[0] > 0  # a column without any number has a mean of 1
        every_mean = np.where(some, every[1], 1.0)
        every_log = np.where(some, every_log, 0.0)
        mean = np.maximum(mean, SMALLEST_MEAN)
        every_mean = np.maximum(every_mean, SMALLEST_MEAN)
        if choice.how == "mle":
            mean = np.where(n > 0, mean, every_mean)
            logs = np.where(n > 0, logs, every_log)
            return GammaParameters(features, shape_of(np.log(mean) - logs), mean, None)
        m = 1.0 if self.prior_rows is None else self.prior_rows
        rows = n + m
        mean = (n * mean + m * every_mean) / rows
        logs = (n * logs + m * every_log) / rows
        shape = shape_of(np.log(mean) - logs)
        if choice.how == "map":
            return GammaParameters(features, shape, mean, None)
        if choice.how == "gibbs":
            shape = _draw_shape(shape, rows, rng)
            rate = np.maximum(rng.standard_gamma(shape * rows + 1.0), TINY) / (rows * mean)
            return GammaParameters(features, shape, shape / rate, None)
        strength = shape * rows + 1.0  # of the rate: Gamma(strength, rows · mean)
        mean = shape * rows * mean / strength
        return GammaParameters(features, shape, mean, strength if choice.how == "predictive" else None)


def shape_of(s: Real) -> Real:
    """The shape k with log k − ψ(k) = s, what the logarithm of the mean is above the mean of logarithms; by Newton's steps."""
    from scipy.special import digamma, polygamma  # a third of a second to import; few need it

    s = np.clip(s, 0.5 / NARROWEST, 1.0 / WIDEST)
    k = (3.0 - s + np.sqrt((s - 3.0) ** 2 + 24.0 * s)) / (12.0 * s)
    for _ in range(6):  # the start is within 2 % (Minka 2002), and each step squares the error
        large = np.maximum(k, LARGE)
        excess = np.where(k < LARGE, np.log(k) - digamma(k), 0.5 / large + 1.0 / (12.0 * large * large)) - s
        near = 1.0 / k - polygamma(1, np.minimum(k, LARGE))
        slope = np.where(k < LARGE, near, -0.5 / large**2 - 1.0 / (6.0 * large**3))
        k = np.clip(k - excess / slope, k / 2.0, k * 2.0)
    return np.asarray(np.clip(k, WIDEST, NARROWEST))


def _draw_shape(shape: Real, rows: Real, rng: np.random.Generator) -> Real:
    from scipy.special import polygamma

    small = np.minimum(shape, LARGE)
    information = np.where(shape < LARGE, shape * (small * polygamma(1, small) - 1.0), 0.5)  # about log k, of one row
    drawn = shape * np.exp(np.clip(rng.standard_normal(shape.shape) / np.sqrt(rows * information), -50.0, 50.0))
    return np.clip(drawn, WIDEST, NARROWEST)


@dataclass(frozen=True)
class GammaParameters(PositiveParameters):
    """Gamma of these shapes and means of z; or, where ``strength`` is given, under a rate of Gamma(strength, …) about its own."""

    features: tuple[Feature, ...]
    shape: Real
    mean: Real
    strength: Real | None

    def log_density(self, z: Real) -> Real:
        """About the mean, so that nothing is lost where shapes are large: u = z / mean.

        ½ log(k / 2π) − δ(k) − log z + k (log u − u + 1), δ the rest of Stirling's formula; under a rate of strength a the last
        term is k log u − (a + k) log(1 + k (u − 1) / (a + k)) − ½ log(1 + k / a) + δ(a + k) − δ(a).
        """
        k = self.shape
        a = self.strength
        u = z / self.mean
        log_u = np.where(u < 0.5, np.log(np.maximum(u, TINY)), np.log1p(np.maximum(u, 0.5) - 1.0))
        common = 0.5 * np.log(k / (2.0 * np.pi)) - _rest(k) - np.log(np.maximum(z, TINY))
        if a is None:
            return np.asarray(common + k * (log_u - (u - 1.0)))
        wide = np.log1p(np.maximum(k * (u - 1.0) / (a + k), -a / (a + k)))
        return np.asarray(common + k * log_u - (a + k) * wide - 0.5 * np.log1p(k / a) + _rest(a + k) - _rest(a))

    def curve_terms(self) -> tuple[Any, Any, Any, Any] | None:
        k = self.shape
        one = 0.5 * np.log(k / (2.0 * np.pi)) - _rest(k) + k
        return None if self.strength is not None else (self.mean, one, -k, k)

    def draw(self, rng: np.random.Generator) -> Real:
        mean = self.mean
        if self.strength is not None:
            mean = mean * self.strength / np.maximum(rng.standard_gamma(self.strength), TINY)
        return mean * rng.standard_gamma(self.shape) / self.shape

    def moments(self) -> tuple[Real, Real]:
        """Of the predictive distribution those of a Gamma of the expected rate."""
        return self.mean, self.mean / np.sqrt(self.shape)

    def tails_of(self, z: Real) -> tuple[Real, Real]:
        from scipy.special import betainc, gammainc, gammaincc  # a third of a second to import; few need it

        k = self.shape
        t = z / self.mean
        if self.strength is None:
            return gammainc(k, k * t), gammaincc(k, k * t)
        share = k * t / (self.strength + k * t)
        return betainc(k, self.strength, share), betainc(self.strength, k, 1.0 - share)


def _rest(x: Real) -> Real:
    """log Γ(x) − (x − ½) log x + x − ½ log 2π."""
    from scipy.special import gammaln  # a third of a second to import; few need it

    small = np.minimum(x, LARGE)
    near = gammaln(small) - (small - 0.5) * np.log(small) + small - 0.5 * np.log(2.0 * np.pi)
    return np.asarray(np.where(x < LARGE, near, 1.0 / (12.0 * x)))
