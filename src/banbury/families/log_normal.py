"""Log-normal: numbers above 0 whose logarithms are normal; what many small factors multiply to, such as incomes and sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from banbury.arrays import Real
from banbury.families.family import Choice, Features
from banbury.families.gaussian import Gaussian, NormalInverseGamma, normal_tails
from banbury.families.positive import LogMomentFamily, LogMoments, PositiveParameters

LOWEST = np.log(np.finfo(np.float64).tiny)  # what is drawn is a number above 0
HIGHEST = np.log(np.finfo(np.float64).max)


@dataclass(frozen=True)
class LogNormalParameters(PositiveParameters):
    """Normal densities of log x, or Student t if there is a ``power`` (features × classes each).

    Normal: constant − precision · (log x − mean)². Student t: constant − power · log1p(precision · (log x − mean)²).
    Both less log x.
    """

    features: Features
    mean: Real
    precision: Real
    constant: Real
    power: Real | None

    farthest: ClassVar[float] = np.inf

    @cached_property
    def units(self) -> Real:
        """1 for each feature (features), because the logarithms are those of the numbers themselves."""
        return np.ones(len(self.features))

    def log_density(self, z: Real) -> Real:
        """Returns the log density of z (numbers × 1) in each class (numbers × classes). Parameters are those of a
        normal density of log z, or of Student's t if ``power`` is not None.
        """
        log_z = np.log(z)
        square = self.precision * (log_z - self.mean) ** 2  # of the distance from the mean
        fall = square if self.power is None else self.power * np.log1p(square)  # of the log density, from its peak
        return self.constant - fall - log_z  # ``constant`` is the log density of log z at its peak

    def draw(self, rng: Generator) -> Real:
        """Draws a number for each mean and precision, of which there is one for each row to draw."""
        noise = rng.standard_normal(len(self.mean))  # in deviations from the mean of log x
        if self.power is not None:  # Student's t
            noise = rng.standard_t(self._degrees)
        return np.exp(np.clip(self.mean + noise * self._deviation, LOWEST, HIGHEST))

    def moments(self) -> tuple[Real, Real]:
        """Returns the mean and the standard deviation of numbers, in the shape of the parameters; for the predictive
        distribution, those of a log-normal distribution of the same scale.
        """
        variance = self._deviation**2  # of log x, about ``self.mean``
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.exp(self.mean + variance / 2.0)
            return mean, mean * np.sqrt(np.expm1(variance))

    def tails_of(self, z: Real) -> tuple[Real, Real]:
        """Returns the probabilities below and above each z (numbers × classes each)."""
        with np.errstate(divide="ignore"):
            distance = (np.log(z) - self.mean) / self._deviation  # of log z from its mean, in deviations
        # ``power`` is None for normal densities; ``_degrees`` are those of freedom of Student's t.
        return normal_tails(distance, None if self.power is None else self._degrees)

    @property
    def _degrees(self) -> Real:
        """The degrees of freedom of Student's t, in the shape of ``power``."""
        assert self.power is not None
        return 2.0 * self.power - 1.0

    @property
    def _deviation(self) -> Real:
        """The standard deviation σ of log x, or the scale s of Student's t, in the shape of ``precision``, which is
        1 / (2 σ²), or 1 / (ν s²) for Student t with ν degrees of freedom.
        """
        degrees = 2.0 if self.power is None else self._degrees
        return 1.0 / np.sqrt(self.precision * degrees)


@dataclass(frozen=True, repr=False)
class LogNormal(LogMomentFamily):
    """Positive numbers whose logarithms have a normal distribution per class.

    ``prior`` and every ``how`` are those of ``bb.Gaussian``, applied to natural logarithms. A tally of gamma columns
    can also be used for log-normal columns.

    >>> import banbury as bb
    >>> incomes = {"income": [21.0, 24.0, 60.0, 95.0], "job": ["clerk", "clerk", "owner", "owner"]}
    >>> tally = bb.count(incomes, target="job", features={"income": "log_normal"})
    >>> bb.estimate(tally).predict({"income": [23.0, 80.0]}).tolist()
    ['clerk', 'owner']
    """

    prior: NormalInverseGamma | None = None

    name: ClassVar[str] = "log_normal"

    def __post_init__(self) -> None:
        """Raises unless the prior is valid."""
        Gaussian(prior=self.prior)  # raises if the prior is not valid

    def estimate(self, features: Features, sums: LogMoments, choice: Choice, rng: Generator) -> LogNormalParameters:
        """Estimates the parameters of these features: those of a Gaussian, from the sums of the logarithms, as
        ``choice`` says; ``rng`` draws under "gibbs".
        """
        # The parameters of the logarithms (features × classes each).
        normal: Any = Gaussian(prior=self.prior).estimate(_of_logarithms(features), sums.logs, choice, rng)
        return LogNormalParameters(features, normal.mean, normal.precision, normal.constant, normal.power)

    def log_prior(self, parameters: Any, sums: LogMoments, choice: Choice) -> float:
        """Returns what the Gaussian prior of the logarithms adds to the log-likelihood of these parameters, over all
        features and classes; ``sums`` are those of the features.
        """
        of_logarithms = replace(parameters, features=_of_logarithms(parameters.features))
        return Gaussian(prior=self.prior).log_prior(of_logarithms, sums.logs, choice)


def _of_logarithms(features: Features) -> Features:
    """Returns features with the scale of their logarithms, which are counted about 0 in units of 1."""
    return replace(features, origins=np.zeros(len(features)), units=np.ones(len(features)))
