"""Exponential: how long until, how far to; numbers from 0 up, the smaller the likelier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Int, Real
from banbury.families.family import Curve, Feature, check_settings
from banbury.families.positive import EACH, SMALLEST_MEAN, RateFamily, RateParameters
from banbury.sums import Moments


@dataclass(frozen=True)
class ExponentialParameters(RateParameters):
    """Exponential of these rates; where they are uncertain, Lomax."""

    def log_density(self, z: Real, f: int | slice = EACH) -> Real:
        rate = self.rate[f]
        if self.scale is None:
            return np.asarray(np.log(rate) - rate * z)
        scale = self.scale[f]
        return np.asarray(np.log(rate) - (rate * scale + 1.0) * np.log1p(z / scale))

    def curve(self, f: int) -> Curve | None:
        rate = self.rate[f]
        nothing = np.zeros_like(rate)
        unit = self.features[f].unit
        return (
            None
            if self.scale is not None
            else Curve(0.0, unit, nothing, nothing + 1.0, np.log(rate), -rate, nothing, nothing)
        )

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        columns = []
        for f, feature in enumerate(self.features):
            rate = self.draw_rates(f, classes, rng)
            columns.append(feature.unit * rng.standard_exponential(len(classes)) / rate)
        return columns

    def spread(self, f: int) -> tuple[Real, Real]:
        """Of Lomax, which may have neither, those of an exponential of the expected rate."""
        mean = self.features[f].unit / self.rate[f]
        return mean, mean

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        z = np.maximum(cuts, 0.0)[:, None] / self.features[f].unit
        above = -self.rate[f] * z
        if self.scale is not None:
            above = -self.rate[f] * self.scale[f] * np.log1p(z / self.scale[f])
        return -np.expm1(above), np.exp(above)


@dataclass(frozen=True, repr=False)
class Exponential(RateFamily):
    """Numbers from 0 up: waiting times, distances, amounts; the density falls by the same share from unit to unit.

    The prior of the rate is Gamma: ``prior_rows`` pseudo-rows that add up to ``prior_total``, by default one pseudo-row at the
    column's mean over all classes. ``predictive`` is the Lomax distribution, whose tail is heavier.

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
