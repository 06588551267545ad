"""Exponential: how long until, how far to; numbers from 0 up, the smaller the likelier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from banbury.arrays import Real
from banbury.families.family import Feature, check_settings
from banbury.families.positive import SMALLEST_MEAN, RateFamily, RateParameters
from banbury.sums import Moments


@dataclass(frozen=True)
class ExponentialParameters(RateParameters):
    """Exponential of these rates; where they are uncertain, Lomax."""

    def log_density(self, z: Real) -> Real:
        if self.scale is None:
            return np.asarray(np.log(self.rate) - self.rate * z)
        return np.asarray(np.log(self.rate) - (self.rate * self.scale + 1.0) * np.log1p(z / self.scale))

    def curve_terms(self) -> tuple[Any, Any, Any, Any] | None:
        return None if self.scale is not None else (1.0, np.log(self.rate), -self.rate, 0.0)

    def draw(self, rng: np.random.Generator) -> Real:
        rate = self.draw_rates(rng)
        return np.asarray(rng.standard_exponential(len(rate)) / rate)

    def moments(self) -> tuple[Real, Real]:
        """Of Lomax those of an exponential of the expected rate."""
        return 1.0 / self.rate, 1.0 / self.rate

    def tails_of(self, z: Real) -> tuple[Real, Real]:
        above = -self.rate * z if self.scale is None else -self.rate * self.scale * np.log1p(z / self.scale)
        return -np.expm1(above), np.exp(above)


@dataclass(frozen=True, repr=False)
class Exponential(RateFamily):
    """Non-negative numbers with an exponential distribution per class: waiting times, distances, amounts.

    The prior of the rate is a Gamma distribution: ``prior_rows`` pseudo-rows with the sum ``prior_total``. By default,
    one pseudo-row with the mean of the column over all classes. "predictive" is the Lomax distribution, which has a
    heavier tail.

    >>> import banbury as bb
    >>> waits = {"minutes": [1.0, 2.0, 30.0, 50.0], "line": ["metro", "metro", "bus", "bus"]}
    >>> tally = bb.count(waits, target="line", features={"minutes": "exponential"})
    >>> bb.estimate(tally, how="mle").predict({"minutes": [3.0, 40.0]}).tolist()
    ['metro', 'bus']
    """

    prior_rows: float | None = None
    prior_total: float | None = None

    name: ClassVar[str] = "exponential"
    parameters: ClassVar[type[RateParameters]] = ExponentialParameters

    def __post_init__(self) -> None:
        check_settings(self, "prior_rows", "prior_total")

    @property
    def least_shape(self) -> float:  # type: ignore[override]
        return self._rows * 2.0**-30

    @property
    def _rows(self) -> float:
        return 1.0 if self.prior_rows is None else self.prior_rows

    def likeliest(self, sums: Moments) -> Real:
        n = sums.n.value
        mean = np.where(n > 0, sums.mean, sums.pool()[1])
        return np.asarray(1.0 / np.maximum(mean, SMALLEST_MEAN))

    def prior(self, features: tuple[Feature, ...], sums: Moments) -> tuple[Any, Any]:
        if self.prior_total is None:
            return self._rows, self._rows * np.maximum(sums.pool()[1], SMALLEST_MEAN)
        return self._rows, np.array([self.prior_total / feature.unit for feature in features])[:, None]

    def posterior(self, shape: Any, scale: Any, n: Real, total: Real) -> tuple[Real, Real]:
        return shape + n, scale + total
