"""Log-normal: numbers above 0 whose logarithms are normal; what many small factors multiply to, such as incomes and sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Int, Real
from banbury.families.family import Choice, Feature
from banbury.families.gaussian import Gaussian, NormalInverseGamma, normal_tails
from banbury.families.positive import EACH, LogMomentFamily, LogMoments, PositiveParameters

LOWEST = np.log(np.finfo(np.float64).tiny)  # what is drawn is a number above 0
HIGHEST = np.log(np.finfo(np.float64).max)


@dataclass(frozen=True)
class LogNormalParameters(PositiveParameters):
    """Normal densities of log x, or Student t where ``power`` is given; as ``GaussianParameters`` has them."""

    features: tuple[Feature, ...]
    mean: Real
    precision: Real
    constant: Real
    power: Real | None

    def log_probability(self, x: Real, f: int | slice = EACH) -> Real:
        logs = np.log(x)[:, None]
        square = self.precision[f] * (logs - self.mean[f]) ** 2
        if self.power is not None:
            square = self.power[f] * np.log1p(square)
        return np.asarray(self.constant[f] - square - logs)

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        columns = []
        for f in range(len(self.features)):
            noise = rng.standard_normal(len(classes))
            if self.power is not None:
                noise = rng.standard_t(self._degrees(f)[classes])
            logs = self.mean[f, classes] + noise * self._deviation(f)[classes]
            columns.append(np.exp(np.clip(logs, LOWEST, HIGHEST)))
        return columns

    def spread(self, f: int) -> tuple[Real, Real]:
        """Of the predictive distribution, which has neither, those of a log-normal distribution of its scale."""
        variance = self._deviation(f) ** 2
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.exp(self.mean[f] + variance / 2.0)
            return mean, mean * np.sqrt(np.expm1(variance))

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(cuts, 0.0))
        z = (logs[:, None] - self.mean[f]) / self._deviation(f)
        return normal_tails(z, None if self.power is None else self._degrees(f))

    def _degrees(self, f: int) -> Real:
        """The degrees of freedom of Student's t."""
        assert self.power is not None
        return np.asarray(2.0 * self.power[f] - 1.0)

    def _deviation(self, f: int) -> Real:
        """Of log x, or the scale of Student's t."""
        degrees = 2.0 if self.power is None else self._degrees(f)
        return np.asarray(1.0 / np.sqrt(self.precision[f] * degrees))


@dataclass(frozen=True, repr=False)
class LogNormal(LogMomentFamily):
    """Numbers above 0 whose logarithms have a normal distribution per class.

    ``prior`` and every ``how`` are those of ``bb.Gaussian``, about the natural logarithms of the numbers. A tally of gamma
    columns is one of log-normal columns, too.

    >>> import banbury as bb
    >>> incomes = {"income": [21.0, 24.0, 60.0, 95.0], "job": ["clerk", "clerk", "owner", "owner"]}
    >>> tally = bb.count(incomes, target="job", features={"income": "log_normal"})
    >>> bb.estimate(tally).predict({"income": [23.0, 80.0]}).tolist()
    ['clerk', 'owner']
    """

    prior: NormalInverseGamma | None = None

    name: ClassVar[str] = "log_normal"

    def __post_init__(self) -> None:
        Gaussian(prior=self.prior)  # which refuses what is no prior

    def estimate(
        self, features: tuple[Feature, ...], sums: LogMoments, choice: Choice, rng: np.random.Generator
    ) -> LogNormalParameters:
        normal: Any = Gaussian(prior=self.prior).estimate(_of_logarithms(features), sums.logs, choice, rng)
        return LogNormalParameters(features, normal.mean, normal.precision, normal.constant, normal.power)

    def log_prior(self, parameters: Any, sums: LogMoments, choice: Choice) -> float:
        of_logarithms = replace(parameters, features=_of_logarithms(parameters.features))
        return Gaussian(prior=self.prior).log_prior(of_logarithms, sums.logs, choice)


def _of_logarithms(features: tuple[Feature, ...]) -> tuple[Feature, ...]:
    """Features as logarithms are counted: about 0, in units of 1."""
    return tuple(feature._replace(origin=0.0, unit=1.0) for feature in features)
