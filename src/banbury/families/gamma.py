"""Gamma: numbers above 0 about a mean, the wider the farther from it; waiting for several events, incomes, sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from banbury.arrays import Real
from banbury.families.family import Choice, Features, check_settings
from banbury.families.moments import LARGE, stirling_remainder
from banbury.families.positive import TINY, LogMomentFamily, LogMoments, PositiveParameters

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
        """Raises unless the strength of the prior is positive or None."""
        check_settings(self, "prior_rows")

    def estimate(self, features: Features, sums: LogMoments, choice: Choice, rng: Generator) -> GammaParameters:
        """Estimates the parameters of these features from their sums, as ``choice`` says; ``rng`` draws under "gibbs"."""
        if choice.how == "mle":
            # The means of z and of log z (features × classes each).
            _, mean, mean_log = sums.means(features.units, prior_rows=0.0)
            return GammaParameters(features, shape_of(np.log(mean) - mean_log), mean, strength=None)
        # The same with the prior's rows, and how many rows these are (features × classes).
        rows, mean, mean_log = sums.means(features.units, 1.0 if self.prior_rows is None else self.prior_rows)
        shape = shape_of(np.log(mean) - mean_log)  # of z's distribution, at its mode
        if choice.how == "map":
            return GammaParameters(features, shape, mean, strength=None)
        if choice.how == "gibbs":
            shape = _draw_shape(shape, rows, rng)
            rate = np.maximum(rng.standard_gamma(shape * rows + 1.0), TINY) / (rows * mean)
            return GammaParameters(features, shape, shape / rate, strength=None)
        strength = shape * rows + 1.0  # of the rate: Gamma(strength, rows · mean)
        mean = shape * rows * mean / strength
        return GammaParameters(features, shape, mean, strength if choice.how == "predictive" else None)


def shape_of(s: Real) -> Real:
    """Returns the shape k with log k − ψ(k) = s by Newton's method, where ``s`` is the log of the mean minus the mean
    of the logs; both have the same shape.
    """
    from scipy.special import digamma, polygamma  # a third of a second to import; few need it

    s = np.clip(s, 0.5 / NARROWEST, 1.0 / WIDEST)
    shape = (3.0 - s + np.sqrt((s - 3.0) ** 2 + 24.0 * s)) / (12.0 * s)
    for _ in range(6):  # the start is within 2 % (Minka 2002), and each step squares the error
        large_shape = np.maximum(shape, LARGE)
        # log k − ψ(k) and its derivative; for large shapes by series.
        series = 0.5 / large_shape + 1.0 / (12.0 * large_shape * large_shape)
        difference = np.where(shape < LARGE, np.log(shape) - digamma(shape), series)
        slope_of_small = 1.0 / shape - polygamma(1, np.minimum(shape, LARGE))
        slope = np.where(shape < LARGE, slope_of_small, -0.5 / large_shape**2 - 1.0 / (6.0 * large_shape**3))
        shape = np.clip(shape - (difference - s) / slope, shape / 2.0, shape * 2.0)
    return np.clip(shape, WIDEST, NARROWEST)


def _draw_shape(shape: Real, rows: Real, rng: Generator) -> Real:
    """Draws k from a normal distribution of log k about the log of its mode (``shape``), with the Fisher information of
    ``rows`` rows; all are features × classes.
    """
    from scipy.special import polygamma

    small = np.minimum(shape, LARGE)  # for larger shapes, the limit is used
    information = np.where(shape < LARGE, shape * (small * polygamma(1, small) - 1.0), 0.5)  # about log k, of one row
    drawn = shape * np.exp(np.clip(rng.standard_normal(shape.shape) / np.sqrt(rows * information), -50.0, 50.0))
    return np.clip(drawn, WIDEST, NARROWEST)


@dataclass(frozen=True)
class GammaParameters(PositiveParameters):
    """Gamma distributions of z with these shapes and means (features × classes).

    ``strength`` is None if shapes and means are fixed. For the predictive distribution, the rate has a Gamma
    distribution itself, and ``strength`` is the shape of that one.
    """

    features: Features
    shape: Real
    mean: Real
    strength: Real | None

    def log_density(self, z: Real) -> Real:
        """Returns the log density of z, written about the mean so that large shapes lose no digits: u = z / mean.

        ½ log(k / 2π) − δ(k) − log z + k (log u − u + 1), δ is Stirling's remainder; under a rate of strength a the last
        term is k log u − (a + k) log(1 + k (u − 1) / (a + k)) − ½ log(1 + k / a) + δ(a + k) − δ(a).
        """
        k = self.shape  # features × classes, or as indexed
        a = self.strength  # None: the rate is fixed
        u = z / self.mean
        log_u = np.where(u < 0.5, np.log(np.maximum(u, TINY)), np.log1p(np.maximum(u, 0.5) - 1.0))
        common = 0.5 * np.log(k / (2.0 * np.pi)) - stirling_remainder(k) - np.log(np.maximum(z, TINY))
        if a is None:
            return common + k * (log_u - (u - 1.0))
        log_of_sum = np.log1p(np.maximum(k * (u - 1.0) / (a + k), -a / (a + k)))
        remainders = stirling_remainder(a + k) - stirling_remainder(a)
        return common + k * log_u - (a + k) * log_of_sum - 0.5 * np.log1p(k / a) + remainders

    def curve_terms(self) -> tuple[Any, ...] | None:
        """Returns width, centre and the coefficients of 1, x and log of the log density of z (see ``Curve``); None if
        the rate is uncertain, because the density then has another form.
        """
        k = self.shape
        # The coefficient of 1.
        one = 0.5 * np.log(k / (2.0 * np.pi)) - stirling_remainder(k)
        return None if self.strength is not None else (self.mean, 1.0, one, 0.0, k)

    def draw(self, rng: Generator) -> Real:
        """Draws a z for each shape and mean of the distributions, in the shape of these arrays."""
        mean = self.mean
        if self.strength is not None:  # the rate has a Gamma distribution with this shape
            mean = mean * self.strength / np.maximum(rng.standard_gamma(self.strength), TINY)
        return mean * rng.standard_gamma(self.shape) / self.shape

    def moments(self) -> tuple[Real, Real]:
        """Returns the mean and the standard deviation of z, in the shape of the parameters; for the predictive
        distribution, those of a Gamma with the expected rate.
        """
        return self.mean, self.mean / np.sqrt(self.shape)

    def tails_of(self, z: Real) -> tuple[Real, Real]:
        """Returns the probabilities below and above each z (numbers × classes each). ``shape`` and ``mean`` are those
        of z; ``strength`` is the shape of the rate's own Gamma distribution, None if the rate is fixed.
        """
        from scipy.special import betainc, gammainc, gammaincc  # a third of a second to import; few need it

        shape = self.shape
        ratio = z / self.mean  # numbers × classes
        if self.strength is None:
            return gammainc(shape, shape * ratio), gammaincc(shape, shape * ratio)
        share = shape * ratio / (self.strength + shape * ratio)  # has a Beta distribution
        return betainc(shape, self.strength, share), betainc(self.strength, shape, 1.0 - share)
