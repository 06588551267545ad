"""Poisson: how many times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.families.family import (
    ColumnReader,
    Curve,
    Family,
    Feature,
    NumberColumn,
    RowsToCount,
    bad_value,
    check_settings,
)
from banbury.families.moments import MomentCounter, log_rising, names_of
from banbury.families.positive import EACH, PositiveCounter, RateFamily, RateParameters
from banbury.reading import Batch
from banbury.sums import GRID, Moments

SMALLEST_RATE = 1e-9  # of one pseudo-row: keeps a column of zeros from making every other count impossible


class WholeNumberCounter(PositiveCounter):
    """Moments of whole numbers from 0 up."""

    def settle(self, features: Sequence[Feature], batch: Batch) -> Sequence[Feature]:
        return [feature._replace(kind="integer") for feature in features]

    def has_valid_scale(self, feature: Feature) -> bool:
        return feature.unit == 1.0 and super().has_valid_scale(feature)

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Moments]:
        check_counts(rows.batch, names_of(features, rows.batch), rows.threads)
        return MomentCounter.count(self, features, rows)

    def check(self, features: Sequence[Feature], sums: Moments, rows: Integers, classes: Sequence[Any]) -> None:
        super().check(features, sums, rows, classes)
        uneven = sums.sums.values(-GRID)[..., 0] > sums.sums.values(-2 * GRID)[..., 1]  # Σx ≤ Σx²
        for f, label in np.argwhere(uneven):
            raise errors.impossible_sums(classes[label], features[f].name)


def check_counts(rows: Any, names: Sequence[str], threads: int = 1) -> None:
    """Raises unless the columns hold whole numbers from 0 up."""
    try:
        _core.not_counts(rows.numbers(names), threads)
    except _core.BadValue as bad:
        raise bad_value(bad, names, rows) from None


WHOLE_NUMBERS = WholeNumberCounter()


@dataclass(frozen=True)
class PoissonParameters(RateParameters):
    """Poisson of these means; where they are uncertain, negative binomial."""

    def log_density(self, z: Real, f: int | slice = EACH) -> Real:
        from scipy.special import gammaln, xlogy  # a third of a second to import; few need it

        rate = self.rate[f]
        if self.scale is None:
            return np.asarray(xlogy(z, rate) - rate - gammaln(z + 1.0))
        scale = self.scale[f]
        shape = rate * scale
        choose = log_rising(shape, z) - gammaln(z + 1.0)
        return np.asarray(choose - shape * np.log1p(1.0 / scale) - z * np.log1p(scale))

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """A table over the distinct counts in these rows."""
        columns = []
        low = []
        lookups = []
        tables = []
        start = 0
        for f, feature in enumerate(self.features):
            check_counts(rows, [feature.name])
            column = rows.codes(feature.name, "integer")
            values = np.asarray(column.values, dtype=np.float64)
            columns.append(column.codes)
            low.append(column.low)
            lookups.append(np.arange(start, start + len(values), dtype=np.uint32))
            tables.append(self.log_density(values[:, None], f))
            start += len(values)
        starts = np.array(low, dtype=np.int64)
        return [_core.TablePart(columns, starts, lookups, np.full(len(columns), -1), np.concatenate(tables))]

    def curve(self, f: int) -> Curve | None:
        """But for the factorial, which all classes share."""
        rate = self.rate[f]
        nothing = np.zeros_like(rate)
        log_rate = np.log(rate)
        return (
            None
            if self.scale is not None
            else Curve(0.0, 1.0, nothing, nothing + 1.0, -rate, log_rate, nothing, nothing)
        )

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        return [rng.poisson(self.draw_rates(f, classes, rng)) for f in range(len(self.features))]

    def spread(self, f: int) -> tuple[Real, Real]:
        mean = self.rate[f]
        return mean, np.sqrt(mean if self.scale is None else mean * (1.0 + 1.0 / self.scale[f]))

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        from scipy.special import betainc, gammainc, gammaincc  # a third of a second to import; few need it

        k = np.maximum(cuts, 0.0)[:, None]
        mean = self.rate[f]
        if self.scale is None:
            return gammaincc(k, mean), gammainc(k, mean)
        shape = mean * self.scale[f]
        p = self.scale[f] / (self.scale[f] + 1.0)
        return betainc(shape, k, p), betainc(k, shape, 1.0 - p)

    def ends(self, f: int, near: Real, step: Real) -> Real:
        step = np.maximum(step, 1.0)
        return np.maximum(np.round(near / step), 1.0) * step


@dataclass(frozen=True, repr=False)
class Poisson(RateFamily):
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
    parameters: ClassVar[type[RateParameters]] = PoissonParameters

    def __post_init__(self) -> None:
        check_settings(self, "prior_count", "prior_rows")

    def counter(self, feature: Feature) -> WholeNumberCounter:
        return WHOLE_NUMBERS

    def likeliest(self, sums: Moments) -> Real:
        n = sums.n.value
        none = ~(n > 0).any(axis=1, keepdims=True)  # no value in any class: no count is impossible
        return np.where(n > 0, np.maximum(sums.mean, 0.0), np.where(none, 1.0, sums.pool()[1]))

    def prior(self, features: tuple[Feature, ...], sums: Moments) -> tuple[Any, Any]:
        rows = 1.0 if self.prior_rows is None else self.prior_rows
        if self.prior_count is None:
            return rows * np.maximum(sums.pool()[1], SMALLEST_RATE), rows
        return self.prior_count, rows

    def posterior(self, shape: Any, scale: Any, n: Real, total: Real) -> tuple[Real, Real]:
        return shape + total, scale + n

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        return (self,) if column.holds_whole_numbers and column.least >= 0 and column.n_values > 2 else ()

    def has_density(self) -> bool:
        return False
