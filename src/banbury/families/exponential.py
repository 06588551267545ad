"""Exponential: waiting times and distances; numbers from 0 up, of which small ones are likelier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from banbury.arrays import Real
from banbury.families.family import Features, check_settings
from banbury.families.positive import SMALLEST_MEAN, RateFamily, RateParameters
from banbury.sums import Moments


@dataclass(frozen=True)
class ExponentialParameters(RateParameters):
    """Exponential distributions with these rates, or Lomax distributions if the rates are uncertain."""

    def log_density(self, z: Real) -> Real:
        """Returns the log density of z (numbers × 1) in each class (numbers × classes). Rates are Gamma-distributed
        about ``rate`` with the inverse scale ``scale``; None: they are fixed.
        """
        if self.scale is None:
            return np.log(self.rate) - self.rate * z
        return np.log(self.rate) - (self.rate * self.scale + 1.0) * np.log1p(z / self.scale)

    def curve_terms(self) -> tuple[Any, ...] | None:
        """Returns width, centre and the coefficients of 1, x and log of the log density of z (see ``Curve``); None for
        Lomax, whose rates have an inverse ``scale``, because it has another form. ``rate`` has the rates (classes).
        """
        return None if self.scale is not None else (1.0, 0.0, np.log(self.rate), -self.rate, 0.0)

    def draw(self, rng: Generator) -> Real:
        """Draws a z for each rate, of which there is one for each row to draw."""
        rate = self.draw_rates(rng)
        return rng.standard_exponential(len(rate)) / rate

    def moments(self) -> tuple[Real, Real]:
        """Returns the mean and the standard deviation of z, in the shape of the rates; for Lomax, those of an
        exponential distribution with the expected rate.
        """
        return 1.0 / self.rate, 1.0 / self.rate

    def tails_of(self, z: Real) -> tuple[Real, Real]:
        """Returns the probabilities below and above each z (numbers × classes each). Rates are Gamma-distributed about
        ``rate`` with the inverse scale ``scale``; None: they are fixed.
        """
        log_above = -self.rate * z if self.scale is None else -self.rate * self.scale * np.log1p(z / self.scale)
        return -np.expm1(log_above), np.exp(log_above)


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
        """Raises unless the settings of the prior are positive or None."""
        check_settings(self, "prior_rows", "prior_total")

    @property
    def least_shape(self) -> float:  # type: ignore[override]
        """The least shape of the posterior's mode, so that "map" never has a rate of 0."""
        return self._rows * 2.0**-30

    @property
    def _rows(self) -> float:
        """How many pseudo-rows the prior is worth; one by default."""
        return 1.0 if self.prior_rows is None else self.prior_rows

    def likeliest(self, sums: Moments) -> Real:
        """Returns the rates 1 / mean of z (features × classes), from the sums of the columns; a class without values
        has the mean of all classes.
        """
        # Of z (features × classes); ``pool`` has the mean over all classes.
        mean = np.where(sums.n.value > 0, sums.mean, sums.pool()[1])
        return 1.0 / np.maximum(mean, SMALLEST_MEAN)

    def prior(self, features: Features, sums: Moments) -> tuple[Any, Any]:
        """Returns the shape and the scale of the Gamma prior: a number of rows, and their total in units of z (features
        × 1), by default from the mean in ``sums`` over all classes.
        """
        if self.prior_total is None:
            return self._rows, self._rows * np.maximum(sums.pool()[1], SMALLEST_MEAN)
        return self._rows, (self.prior_total / features.units)[:, None]

    def posterior(self, shape: Any, scale: Any, n: Real, total: Real) -> tuple[Real, Real]:
        """Returns the shape and the scale of the Gamma posterior (features × classes each), given those of the prior: n
        rows are n events in the time ``total`` (features × classes each).
        """
        return shape + n, scale + total
