"""Poisson: counts of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from banbury.arrays import Int, Real
from banbury.families.family import ColumnReader, Family, Feature, Features, NumberColumn, check_settings
from banbury.families.moments import log_rising
from banbury.families.positive import WHOLE_NUMBERS, RateFamily, RateParameters, WholeNumberCounter, check_counts
from banbury.reading import Codes
from banbury.sums import Moments

SMALLEST_RATE = 1e-9  # of one pseudo-row: keeps a column of zeros from making every other count impossible


@dataclass(frozen=True)
class PoissonParameters(RateParameters):
    """Poisson distributions with these means, or negative binomial ones if the means are uncertain."""

    def log_density(self, z: Real) -> Real:
        """Returns the log-probability of z (numbers × 1), which are counts, in each class (numbers × classes). Rates
        are Gamma-distributed about ``rate`` with the inverse scale ``scale``; None: they are fixed.
        """
        from scipy.special import gammaln, xlogy  # a third of a second to import; few need it

        if self.scale is None:
            return np.asarray(xlogy(z, self.rate) - self.rate - gammaln(z + 1.0))
        shape = self.rate * self.scale  # of the Gamma distribution
        log_binomial = log_rising(shape, z) - gammaln(z + 1.0)
        return np.asarray(log_binomial - shape * np.log1p(1.0 / self.scale) - z * np.log1p(self.scale))

    def codes(self, rows: ColumnReader, f: int) -> Codes:
        """Returns the counts of feature number f as codes; raises for a number that is no count."""
        check_counts(rows, [self.features.names[f]])
        return rows.codes(self.features.names[f], "integer")

    def curve_terms(self) -> tuple[Any, ...] | None:
        """Returns width, centre and the coefficients of 1, x and log of the log-probability (see ``Curve``); None for a
        negative binomial, whose rates have an inverse ``scale``. ``rate`` has the mean counts (classes).
        """
        return None if self.scale is not None else (1.0, 0.0, -self.rate, np.log(self.rate), 0.0)

    def sample(self, classes: Int, rng: Generator) -> list[NDArray[Any]]:
        """Draws a count of each feature for rows of these classes; returns one array per column."""
        return [rng.poisson(self.at((f, classes)).draw_rates(rng)) for f in range(len(self.features))]

    def moments(self) -> tuple[Real, Real]:
        """Returns the mean and the standard deviation of counts, in the shape of the rates; the latter is larger if the
        means are uncertain, with the inverse scale ``scale``.
        """
        return self.rate, np.sqrt(self.rate if self.scale is None else self.rate * (1.0 + 1.0 / self.scale))

    def tails_of(self, z: Real) -> tuple[Real, Real]:
        """Returns the probabilities below and above each z (numbers × classes each). Rates are Gamma-distributed about
        ``rate`` with the inverse scale ``scale``; None: they are fixed.
        """
        from scipy.special import betainc, gammainc, gammaincc  # a third of a second to import; few need it

        if self.scale is None:
            return gammaincc(z, self.rate), gammainc(z, self.rate)
        shape = self.rate * self.scale
        p = self.scale / (self.scale + 1.0)  # of the negative binomial distribution
        return betainc(shape, z, p), betainc(z, shape, 1.0 - p)

    def ends(self, f: int, near: Real, step: Real) -> Real:
        """Returns multiples of ``step``, at least 1, near the wanted numbers (``near``): counts are whole, and none is
        below 0.
        """
        step = np.maximum(step, 1.0)
        return np.maximum(np.round(near / step), 1.0) * step


@dataclass(frozen=True, repr=False)
class Poisson(RateFamily):
    """Counts (whole numbers from 0) with a Poisson distribution per class.

    The prior of the rate is a Gamma distribution: ``prior_count`` events in ``prior_rows`` pseudo-rows. By default, one
    pseudo-row with the mean of the column over all classes. "predictive" is the negative binomial distribution.

    >>> import banbury as bb
    >>> calls = {"calls": [2, 4, 9, 11], "day": ["sun", "sun", "mon", "mon"]}
    >>> tally = bb.count(calls, target="day", features={"calls": "poisson"})
    >>> bb.estimate(tally, how="mle").predict({"calls": [3, 12]}).tolist()
    ['sun', 'mon']
    """

    prior_count: float | None = None
    prior_rows: float | None = None

    name: ClassVar[str] = "poisson"
    parameters: ClassVar[type[RateParameters]] = PoissonParameters

    def __post_init__(self) -> None:
        """Raises unless the settings of the prior are positive or None."""
        check_settings(self, "prior_count", "prior_rows")

    def counter(self, feature: Feature) -> WholeNumberCounter:
        """Returns the counter that turns the values of a feature of this family into sums."""
        return WHOLE_NUMBERS

    def likeliest(self, sums: Moments) -> Real:
        """Returns the mean counts (features × classes), from the sums of the columns; a class without values has the
        mean of all classes.
        """
        n_rows = sums.n.value  # features × classes
        has_no_value = ~(n_rows > 0).any(axis=1, keepdims=True)  # no value in any class: no count is impossible
        mean_of_all = np.where(has_no_value, 1.0, sums.pool()[1])  # features × 1
        return np.where(n_rows > 0, np.maximum(sums.mean, 0.0), mean_of_all)

    def prior(self, features: Features, sums: Moments) -> tuple[Any, Any]:
        """Returns the shape and the scale of the Gamma prior: a number of events (or one for each feature, features ×
        1), and of rows in which they happened. ``sums`` are those of the columns.
        """
        n_rows = 1.0 if self.prior_rows is None else self.prior_rows  # ``prior_count`` is the number of events in them
        if self.prior_count is None:  # the mean over all classes
            return n_rows * np.maximum(sums.pool()[1], SMALLEST_RATE), n_rows
        return self.prior_count, n_rows

    def posterior(self, shape: Any, scale: Any, n: Real, total: Real) -> tuple[Real, Real]:
        """Returns the shape and the scale of the Gamma posterior (features × classes each), given those of the prior:
        ``total`` events in n rows (features × classes each).
        """
        return shape + total, scale + n

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        """Returns this family for a column of whole numbers from 0 up with more than two values."""
        return (self,) if column.holds_whole_numbers and column.least >= 0 and column.n_values > 2 else ()

    def has_density(self) -> bool:
        """Returns False: counts have probabilities, not densities."""
        return False
