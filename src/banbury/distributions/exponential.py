"""Exponential: how long until, how far to; numbers from 0 up, the smaller the likelier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.distributions.family import (
    Choice,
    ColumnReader,
    Counter,
    Family,
    Feature,
    HeldOutRows,
    NumberColumn,
    NumericParameters,
    RowsToCount,
    line_by_line,
)
from banbury.distributions.leave_one_out import one_by_one
from banbury.distributions.log_rising import log_prior_of_rates, rate_of
from banbury.distributions.moments import MomentCounter, names_of
from banbury.distributions.scales import first_rows, scales
from banbury.readers import Batch
from banbury.sums import GRID, Moments

FARTHEST = 2.0**400  # of z: what lies beyond is as far as this
SMALLEST_MEAN = 2.0**-200  # of z: keeps a column of zeros from making every other number impossible


class PositiveCounter(MomentCounter):
    """Moments of numbers from 0 up, about 0."""

    def settled(self, features: Sequence[Feature], batch: Batch) -> Sequence[Feature]:
        units = scales(first_rows(batch, names_of(features, batch)))[1].tolist()
        return [Feature(f.name, f.family, 0.0, u, "float", f.why) for f, u in zip(features, units, strict=True)]

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Moments]:
        check_least(rows.batch, names_of(features, rows.batch), *PositiveParameters.refused)
        return super().count(features, rows)

    def check(self, features: Sequence[Feature], sums: Moments, rows: Integers, classes: Sequence[Any]) -> None:
        super().check(features, sums, rows, classes)
        for f, label in np.argwhere(sums.sums.is_negative()[..., 0]):
            raise errors.impossible_sums(classes[label], features[f].name)

    def rescaled(self, feature: Feature, other: Feature) -> Feature:
        return feature._replace(unit=other.unit)

    def check_exact(self, features: Sequence[Feature], sums: Moments) -> None:
        super().check_exact(features, sums)
        for f in np.flatnonzero((sums.sums.values(-GRID)[..., 0] < 0).any(axis=1)).tolist():
            raise ValueError(f"feature {features[f].name!r} has numbers below 0")


def check_least(rows: Any, names: Sequence[str], least: float, family: str, wanted: str) -> None:
    """Raises unless all numbers are the least, or more."""
    at = 0
    for block in rows.numbers(names):
        columns = block[:, None] if block.ndim == 1 else block
        below = columns < least
        if below.any():
            j = int(below.any(axis=0).argmax())
            row, column = int(below[:, j].argmax()), names[at + j]
            value = float(columns[row, j])
            place = f"row {rows.first_row + row:,} of column {column!r}{errors.where(rows.source)}"
            text = f"{place} is {value:g}, and {family} column holds numbers {wanted}. Replace it, or count the column "
            text += "as 'quantile_tree', 'gaussian', 'histogram' or 'kernel_density' instead."
            raise errors.BadValue(text, what="negative", value=value, column=column, row=rows.first_row + row)
        at += columns.shape[1]


POSITIVE = PositiveCounter()


@dataclass(frozen=True, repr=False)
class Exponential(Family):
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

    def __post_init__(self) -> None:
        self.check_given("prior_rows", "prior_total")

    def counter(self, feature: Feature) -> Counter:
        return POSITIVE

    def estimate(
        self, features: tuple[Feature, ...], sums: Moments, choice: Choice, rng: np.random.Generator
    ) -> ExponentialParameters:
        n, total = sums.n.value, np.maximum(sums.n.value * sums.mean, 0.0)
        every = np.maximum(sums.pooled()[1], SMALLEST_MEAN)
        rows, more = self._prior(features, every)
        shape, scale = n + rows, total + more
        if choice.how == "predictive":
            return ExponentialParameters(features, shape / scale, scale)
        if choice.how == "mle":
            mean = np.where(n > 0, total / np.where(n > 0, n, 1.0), every)
            return ExponentialParameters(features, 1.0 / np.maximum(mean, SMALLEST_MEAN), None)
        return ExponentialParameters(features, rate_of(shape, scale, choice.how, rng, rows * 2.0**-30), None)

    def _prior(self, features: tuple[Feature, ...], every: Real) -> tuple[float, Real]:
        """The prior's rows, and what they add up to in units of z, (features, 1)."""
        rows = 1.0 if self.prior_rows is None else self.prior_rows
        if self.prior_total is None:
            return rows, rows * every
        return rows, np.array([self.prior_total / feature.unit for feature in features])[:, None]

    def log_prior(self, parameters: ExponentialParameters, sums: Moments, choice: Choice) -> float:
        every = np.maximum(sums.pooled()[1], SMALLEST_MEAN)
        return log_prior_of_rates(parameters.rate, *self._prior(parameters.features, every), choice.how)

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        return (self,) if column.least >= 0 and not column.few else ()

    def leave_one_out(self, features: tuple[Feature, ...], sums: Any, choice: Choice, held_out: HeldOutRows) -> Real:
        return one_by_one(self, features, sums, choice, held_out)

    def points(self, low: float, high: float, n: int) -> Real:
        return np.linspace(max(low, 0.0), high, n)


class PositiveParameters(NumericParameters):
    """Parameters of columns of numbers from 0 up, or above it, whose density is computed in NumPy: that of z = x / unit."""

    refused: ClassVar[tuple[float, str, str]] = (0.0, "an exponential", "from 0 up")  # what is below, and of what

    def log_density(self, f: int, z: Real) -> Real:
        """Of numbers of a feature, (numbers, classes)."""
        raise NotImplementedError

    def parts(self, rows: ColumnReader) -> list[tuple[Any, ...]]:
        check_least(rows, [feature.name for feature in self.features], *self.refused)
        parts = []
        for f, feature in enumerate(self.features):
            x = np.asarray(rows.numbers([feature.name])[0], dtype=np.float64).reshape(-1)
            there = ~np.isnan(x)
            z = np.minimum(np.where(there, x, feature.unit)[:, None] / feature.unit, FARTHEST)
            table = self.log_density(f, z) - np.log(feature.unit)
            parts.append(line_by_line(np.where(there, np.arange(len(x)), -1), table))
        return parts

    def ends(self, f: int, wanted: Real, step: Real) -> Real:
        return np.maximum(super().ends(f, wanted, step), 0.0)


@dataclass(frozen=True)
class ExponentialParameters(PositiveParameters):
    """Exponential of these rates; or, where ``scale`` is given, Lomax: exponential under Gamma(rate · scale, scale).

    Rates and scales are those of z = x / unit, (features, classes).
    """

    features: tuple[Feature, ...]
    rate: Real
    scale: Real | None

    @property
    def _unit(self) -> Real:
        return np.array([feature.unit for feature in self.features])

    def log_probability_of_each(self, x: Real) -> Real:
        """log density of each number, (numbers, classes), where every number has a feature of its own."""
        unit = self._unit[:, None]
        return _log_density(x[:, None] / unit, self.rate, self.scale) - np.log(unit)

    def log_density(self, f: int, z: Real) -> Real:
        return _log_density(z, self.rate[f], None if self.scale is None else self.scale[f])

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        columns = []
        for f, feature in enumerate(self.features):
            rate = self.rate[f, classes]
            if self.scale is not None:
                scale = self.scale[f, classes]
                rate = np.maximum(rng.standard_gamma(rate * scale), np.finfo(float).tiny) / scale
            columns.append(feature.unit * rng.standard_exponential(len(classes)) / rate)
        return columns

    def spread(self, f: int) -> tuple[Real, Real]:
        """Of Lomax, which may have neither, those of an exponential of the expected rate."""
        mean = self.features[f].unit / self.rate[f]
        return mean, mean

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        z = np.maximum(cuts, 0.0)[:, None] / self.features[f].unit
        if self.scale is None:
            return -np.expm1(-self.rate[f] * z), np.exp(-self.rate[f] * z)
        above = -self.rate[f] * self.scale[f] * np.log1p(z / self.scale[f])
        return -np.expm1(above), np.exp(above)


def _log_density(z: Real, rate: Real, scale: Real | None) -> Real:
    """Of z: the logarithm of rate · exp(−rate · z), or of Lomax."""
    z = np.minimum(z, FARTHEST)
    if scale is None:
        return np.asarray(np.log(rate) - rate * z)
    return np.asarray(np.log(rate) - (rate * scale + 1.0) * np.log1p(z / scale))
