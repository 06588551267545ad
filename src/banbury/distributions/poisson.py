"""Poisson: how many times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Real
from banbury.distributions.family import (
    UNUSED,
    Choice,
    ColumnReader,
    Counter,
    Family,
    Feature,
    HeldOutRows,
    NumberColumn,
    NumericParameters,
)
from banbury.distributions.histogram import in_bins
from banbury.distributions.information import bits_of_densities, grid, shares
from banbury.distributions.leave_one_out import one_by_one
from banbury.distributions.log_rising import log_prior_of_rates, log_rising, rate_of
from banbury.distributions.moments import WHOLE_NUMBERS, check_counts
from banbury.sums import Moments

SMALLEST_RATE = 1e-9  # of one pseudo-row: keeps a column of zeros from making every other count impossible


@dataclass(frozen=True, repr=False)
class Poisson(Family):
    """Whole numbers from 0 up: how many times something happened.

    The prior is Gamma: ``prior_count`` events in ``prior_rows`` pseudo-rows, by default one pseudo-row at the column's
    mean over all classes. ``predictive`` is the negative binomial.

    >>> import banbury as bb
    >>> calls = {"calls": [2, 4, 9, 11], "day": ["sun", "sun", "mon", "mon"]}
    >>> tally = bb.count(calls, target="day", features={"calls": "poisson"})
    >>> bb.estimate(tally, how="mle").predict({"calls": [3, 12]}).tolist()
    ['sun', 'mon']
    """

    prior_count: float | None = None
    prior_rows: float | None = None

    name: ClassVar[str] = "poisson"

    def __post_init__(self) -> None:
        self.check_given("prior_count", "prior_rows")

    def counter(self, feature: Feature) -> Counter:
        return WHOLE_NUMBERS

    def in_words(self) -> str:
        return "Poisson"

    def estimate(
        self, features: tuple[Feature, ...], sums: Moments, choice: Choice, rng: np.random.Generator
    ) -> PoissonParameters:
        n, events = sums.n.value, np.maximum(sums.n.value * sums.mean, 0.0)
        pooled = sums.pooled()[1]
        count, rows = self._prior(pooled)
        shape, rate = events + count, n + rows
        if choice.how == "predictive":
            return PoissonParameters(features, shape, rate)
        if choice.how == "mle":
            none = ~(n > 0).any(axis=1, keepdims=True)  # no value in any class: no count is impossible
            rate = np.where(n > 0, events / np.where(n > 0, n, 1.0), np.where(none, 1.0, pooled))
            return PoissonParameters(features, rate, None)
        return PoissonParameters(features, rate_of(shape, rate, choice.how, rng), None)

    def _prior(self, pooled: Real) -> tuple[Real, float]:
        """The prior's events, for each feature, and rows."""
        rows = 1.0 if self.prior_rows is None else self.prior_rows
        if self.prior_count is None:
            return rows * np.maximum(pooled, SMALLEST_RATE), rows
        return np.full_like(pooled, self.prior_count), rows

    def log_prior(self, parameters: PoissonParameters, sums: Moments, choice: Choice) -> float:
        return log_prior_of_rates(parameters.mean, *self._prior(sums.pooled()[1]), choice.how)

    def measure(self) -> str:
        return "probability"

    def points(self, low: float, high: float, n: int) -> Real:
        low, high = max(np.floor(low), 0.0), np.ceil(high)
        return np.unique(np.round(np.linspace(low, high, min(int(high - low) + 1, n))))

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        return (self,) if column.whole and column.least >= 0 and column.n_values > 2 else ()

    def has_density(self) -> bool:
        return False

    def bits(self, features: tuple[Feature, ...], sums: Moments, rows: Real) -> Real:
        parameters = self.estimate(features, sums, Choice(), UNUSED)
        return np.array([parameters.bits(f, sums.n.value[f]) for f in range(len(features))])

    def compared(self, feature: Feature) -> tuple[Feature, ...]:
        return (in_bins(feature.name, feature.origin, feature.unit),)

    def check_values(self, rows: ColumnReader, feature: Feature, threads: int) -> None:
        check_counts(rows, [feature.name], threads)

    def leave_one_out(self, features: tuple[Feature, ...], sums: Any, choice: Choice, held_out: HeldOutRows) -> Real:
        return one_by_one(self, features, sums, choice, held_out)


@dataclass(frozen=True)
class PoissonParameters(NumericParameters):
    """Poisson with these means; or, where ``rate`` is given, negative binomial: Poisson under Gamma(mean, rate)."""

    features: tuple[Feature, ...]
    mean: Real
    rate: Real | None

    def log_probability(self, f: int, counts: Real) -> Real:
        """(counts, classes)."""
        return self.select([f]).log_probability_of_each(counts)

    def log_probability_of_each(self, counts: Real) -> Real:
        """The same where every count has a feature of its own."""
        from scipy.special import gammaln, xlogy  # a third of a second to import; few need it

        x, shape, rate = counts[:, None], self.mean, self.rate
        if rate is None:
            return np.asarray(xlogy(x, shape) - shape - gammaln(x + 1.0))
        choose = log_rising(shape, x) - gammaln(x + 1.0)
        return np.asarray(choose - shape * np.log1p(1.0 / rate) - x * np.log1p(rate))

    def parts(self, rows: ColumnReader) -> list[tuple[Any, ...]]:
        """A table over the distinct counts in these rows."""
        columns, low, lookups, tables, start = [], [], [], [], 0
        for f, feature in enumerate(self.features):
            check_counts(rows, [feature.name])
            column = rows.codes(feature.name, "integer")
            values = np.asarray(column.values, dtype=np.float64)
            columns.append(column.codes)
            low.append(column.low)
            lookups.append(np.arange(start, start + len(values), dtype=np.uint32))
            tables.append(self.log_probability(f, values))
            start += len(values)
        starts = np.array(low, dtype=np.int64)
        return [("table", columns, starts, lookups, np.full(len(columns), -1), np.concatenate(tables))]

    def sample(self, classes: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[Any]]:
        columns = []
        for f in range(len(self.features)):
            mean = self.mean[f, classes]
            columns.append(rng.poisson(mean if self.rate is None else rng.gamma(mean, 1.0 / self.rate[f, classes])))
        return columns

    def bits(self, f: int, rows: Real) -> float:
        """I(feature; class); ``rows`` per class that have a value."""
        seen = rows > 0
        mean = self.mean[f, seen]
        if len(mean) < 2:
            return 0.0
        near = np.rint(grid(mean, np.sqrt(mean)))  # whole numbers where any of the classes has some
        nodes = np.unique(np.concatenate([np.arange(64.0), near[near >= 0]]))
        gaps = np.diff(nodes, prepend=nodes[0] - 1.0, append=nodes[-1] + 1.0)
        gaps[gaps > 1.0 + 2.0 * float(np.sqrt(mean.max()))] = 1.0  # between the classes there is nothing
        widths = (gaps[1:] + gaps[:-1]) / 2.0  # how many each of them stands for: one, unless they are many
        return bits_of_densities(self.log_probability(f, nodes)[:, seen], widths, shares(rows[seen]))

    def spread(self, f: int) -> tuple[Real, Real]:
        if self.rate is None:
            return self.mean[f], np.sqrt(self.mean[f])
        mean = self.mean[f] / self.rate[f]
        return mean, np.sqrt(mean * (1.0 + 1.0 / self.rate[f]))

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        from scipy.special import betainc, gammainc, gammaincc  # a third of a second to import; few need it

        k, mean = cuts[:, None], self.mean[f]
        if self.rate is None:
            return gammaincc(k, mean), gammainc(k, mean)
        p = self.rate[f] / (self.rate[f] + 1.0)
        return betainc(mean, k, p), betainc(k, mean, 1.0 - p)

    def ends(self, f: int, wanted: Real, step: Real) -> Real:
        step = np.maximum(step, 1.0)
        return np.maximum(np.round(wanted / step), 1.0) * step
