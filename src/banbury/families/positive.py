"""Numbers from 0 up: what Poisson, exponential, gamma and log-normal share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.families.family import (
    Choice,
    ColumnReader,
    Curve,
    Family,
    Feature,
    HeldOutRows,
    NumberColumn,
    NumericParameters,
    RowsToCount,
    Stored,
    bad_value,
)
from banbury.families.moments import MOMENTS, MomentCounter, first_rows, names_of, one_by_one, scales
from banbury.reading import Batch, Codes
from banbury.sums import GRID, Keyless, Moments

EACH = slice(None)  # features, one for each number
FARTHEST = 2.0**400  # of z: what lies beyond is as far as this
SMALLEST_MEAN = 2.0**-200  # of z: keeps a column of zeros from making every other number impossible
TINY = float(np.finfo(np.float64).tiny)  # numbers below have too few digits


class PositiveCounter(MomentCounter):
    """Moments of numbers from 0 up, about 0."""

    def settle(self, features: Sequence[Feature], batch: Batch) -> Sequence[Feature]:
        units = scales(first_rows(batch, names_of(features, batch)))[1].tolist()
        return [Feature(f.name, f.family, 0.0, u, "float", f.why) for f, u in zip(features, units, strict=True)]

    def has_valid_scale(self, feature: Feature) -> bool:
        return feature.origin == 0.0 and super().has_valid_scale(feature)

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Any]:
        check_least(rows.batch, features)
        return super().count(features, rows)

    def check(self, features: Sequence[Feature], sums: Moments, rows: Integers, classes: Sequence[Any]) -> None:
        super().check(features, sums, rows, classes)
        for f, label in np.argwhere(sums.sums.is_negative()[..., 0]):
            raise errors.impossible_sums(classes[label], features[f].name)

    def adopt_scale(self, feature: Feature, other: Feature) -> Feature:
        return feature._replace(unit=other.unit)


def check_least(rows: Any, features: Sequence[Feature]) -> None:
    """Raises unless all numbers of columns of one family are the least that it takes, or more."""
    family = features[0].family
    least = family.least
    start = 0
    for block in rows.numbers(names_of(features, rows)):
        columns = block[:, None] if block.ndim == 1 else block
        below = columns < least
        if below.any():
            j = int(below.any(axis=0).argmax())
            row = int(below[:, j].argmax())
            column = features[start + j].name
            value = float(columns[row, j])
            place = f"row {rows.first_row + row:,} of column {column!r}{errors.where(rows.source)}"
            article = "an" if family.name[0] in "aeiou" else "a"
            limit = "above 0" if least > 0 else "of at least 0"
            text = f"{place} is {value:g}, but {article} {family.name} column can contain only numbers {limit}. "
            text += "Replace it, or use 'quantile_tree', 'gaussian', 'histogram' or 'kernel_density' instead."
            raise errors.BadValue(text, what="negative", value=value, column=column, row=rows.first_row + row)
        start += columns.shape[1]


POSITIVE = PositiveCounter()


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


class Positive(Family):
    """The base of families of numbers from 0 up, counted by moments about 0."""

    least: ClassVar[float] = 0.0

    def counter(self, feature: Feature) -> PositiveCounter:
        return POSITIVE

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        return (self,) if column.least >= self.least and not column.has_few_values else ()

    def leave_one_out(self, features: tuple[Feature, ...], sums: Any, choice: Choice, held_out: HeldOutRows) -> Real:
        return one_by_one(self, features, sums, choice, held_out)


class PositiveParameters(NumericParameters):
    """Parameters of columns of numbers from 0 up, each an array (features, classes), in units of z = x / unit.

    A family says what z is like under parameters of any shape that fits, which ``at`` takes out of these.
    """

    farthest: ClassVar[float] = FARTHEST

    def log_density(self, z: Real) -> Real:
        """The logarithm of the density of z."""
        raise NotImplementedError

    def curve_terms(self) -> tuple[Any, Any, Any, Any] | None:
        """The width of its curve, and its coefficients of 1, x and log x; None: it has no curve."""
        return None

    def draw(self, rng: np.random.Generator) -> Real:
        """A z for each parameter."""
        raise NotImplementedError

    def moments(self) -> tuple[Real, Real]:
        """The mean and the deviation of z."""
        raise NotImplementedError

    def tails_of(self, z: Real) -> tuple[Real, Real]:
        """What lies below z, and what lies above."""
        raise NotImplementedError

    def at(self, index: Any) -> Self:
        """The parameters of a feature, or those in any other place."""
        features, *arrays = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return type(self)(features, *(None if array is None else array[index] for array in arrays))  # type: ignore[call-arg]

    @cached_property
    def units(self) -> Real:
        """That of each feature."""
        return np.array([feature.unit for feature in self.features])

    def log_probability(self, x: Real, f: int | slice = EACH) -> Real:
        """Of numbers of a feature, or of numbers each of which has a feature of its own: (numbers, classes)."""
        unit = self.units[f]
        logs = self.at(f).log_density(np.minimum(x / unit, self.farthest)[:, None])
        return np.asarray(logs - np.reshape(np.log(unit), (-1, 1)))

    def codes(self, rows: ColumnReader, feature: Feature) -> Codes:
        """The different numbers of a column, or all, and which of them each row has."""
        check_least(rows, [feature])
        x = np.asarray(rows.numbers([feature.name])[0], dtype=np.float64).reshape(-1)
        there = ~np.isnan(x)
        return Codes(np.where(there, np.arange(len(x)), -1), 0, np.where(there, x, feature.unit))  # type: ignore[arg-type]

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        columns = [self.codes(rows, feature) for feature in self.features]
        tables = [self.log_probability(np.asarray(c.values, dtype=np.float64), f) for f, c in enumerate(columns)]
        ends = np.cumsum([len(table) for table in tables])
        lines = np.split(np.arange(ends[-1], dtype=np.uint32), ends[:-1])
        low = np.array([column.low for column in columns], dtype=np.int64)
        codes = [column.codes for column in columns]
        return [_core.TablePart(codes, low, lines, np.full(len(low), -1), np.concatenate(tables))]

    def curve(self, f: int) -> Curve | None:
        """But for what all classes share."""
        if (terms := self.at(f).curve_terms()) is None:
            return None
        width, one, x, log_x = np.broadcast_arrays(*terms)
        return Curve(0.0, float(self.units[f]), np.zeros_like(one), width, one, x, np.zeros_like(one), log_x)

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        columns = [unit * self.at((f, classes)).draw(rng) for f, unit in enumerate(self.units.tolist())]
        return [
            np.maximum(column, feature.family.least) for column, feature in zip(columns, self.features, strict=True)
        ]

    def spread(self, f: int) -> tuple[Real, Real]:
        """Of a predictive distribution, which may have neither, those of what it is made of."""
        mean, deviation = self.at(f).moments()
        unit = self.units[f]
        return unit * mean, unit * deviation

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        return self.at(f).tails_of(np.maximum(cuts, 0.0)[:, None] / self.units[f])

    def ends(self, f: int, near: Real, step: Real) -> Real:
        return np.maximum(super().ends(f, near, step), 0.0)


# Sums of logarithms, too --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LogMoments(Keyless):
    """Moments of z = x / unit and of log x, of the same rows."""

    values: Moments
    logs: Moments

    @property
    def present(self) -> Integers:
        return self.values.n

    def __add__(self, other: LogMoments) -> LogMoments:
        return LogMoments(self.values + other.values, self.logs + other.logs)

    def __sub__(self, other: LogMoments) -> LogMoments:
        return LogMoments(self.values - other.values, self.logs - other.logs)

    def times(self, factor: float) -> tuple[LogMoments, bool]:
        (values, exact), (logs, also) = self.values.times(factor), self.logs.times(factor)
        return LogMoments(values, logs), exact and also

    def same(self, other: LogMoments) -> bool:
        return self.values.same(other.values) and self.logs.same(other.logs)

    def take(self, classes: Any) -> LogMoments:
        return LogMoments(self.values.take(classes), self.logs.take(classes))

    def merge(self, index: Any, size: int) -> LogMoments:
        return LogMoments(self.values.merge(index, size), self.logs.merge(index, size))

    def select(self, features: Sequence[int]) -> LogMoments:
        return LogMoments(self.values.select(features), self.logs.select(features))

    def as_features(self, labels: Int, n_classes: int) -> LogMoments:
        return LogMoments(self.values.as_features(labels, n_classes), self.logs.as_features(labels, n_classes))

    def arrays(self) -> dict[str, Integers]:
        return {"n": self.values.n, "sums": self.values.sums, "logs": self.logs.sums}


class LogMomentCounter(PositiveCounter):
    """Moments of numbers above 0, about 0, and of their logarithms: all columns in one pass."""

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Any]:
        names = names_of(features, rows.batch)
        size = len(features)
        check_least(rows.batch, features)
        columns = rows.batch.numbers(names)
        units = np.concatenate([[feature.unit for feature in features], np.ones(size)])
        both = [*columns, *(logarithm(column) for column in columns)]
        every = Moments(*rows.run_kernel(_core.count_moments, (*names, *names), both, np.zeros(2 * size), units))
        return features, LogMoments(every.select(range(size)), every.select(range(size, 2 * size)))

    def check(self, features: Sequence[Feature], sums: Any, rows: Integers, classes: Sequence[Any]) -> None:
        super().check(features, sums.values, rows, classes)
        MOMENTS.check(features, sums.logs, rows, classes)

    def move_sums(self, old: Sequence[Feature], new: Sequence[Feature], sums: Any) -> Any:
        values = super().move_sums(old, new, sums.values)
        return sums if values is sums.values else LogMoments(values, sums.logs)

    def summary(self, feature: Feature, sums: Any, missing: str) -> str:
        return super().summary(feature, sums.values, missing)

    def restore(self, features: Sequence[Feature], stored: Stored, n_classes: int) -> Any:
        values = super().restore(features, stored, n_classes)
        logs = Moments(values.n, stored.integers("logs", (len(features), n_classes, 2), signed=True))
        if logs.below_zero().any() or not np.isfinite(logs.sums.values(-2 * GRID)).all():
            raise ValueError("there are sums of logarithms that no rows have")
        return LogMoments(values, logs)


def logarithm(x: NDArray[Any]) -> Real:
    """log x by additions, multiplications and divisions alone, so that every machine has the same bits; NaN stays.

    x = 2ᵏ m with m from √½ to √2; log m = 2 artanh(s), s = (m − 1) / (m + 1), by its series up to s²³.
    """
    m, k = np.frexp(np.asarray(x, dtype=np.float64))
    low = m < 0.7071067811865476
    m = np.where(low, 2.0 * m, m)
    k = np.where(low, k - 1, k)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    series = np.zeros(np.shape(s))
    for power in range(23, 0, -2):
        series = series * square + 1.0 / power
    return np.asarray(k * 0.6931471805599453 + 2.0 * s * series)


LOG_MOMENTS = LogMomentCounter()


class LogMomentFamily(Positive):
    """The base of families of numbers above 0, two parameters per class, counted by moments of numbers and logarithms."""

    least: ClassVar[float] = TINY

    def counter(self, feature: Feature) -> LogMomentCounter:
        return LOG_MOMENTS

    def counting_key(self) -> tuple[Any, ...]:
        return ("log moments",)

    def n_parameters(self, features: tuple[Feature, ...], sums: Any) -> list[tuple[int, int]]:
        return [(2, 0)] * len(features)


# One rate per class ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RateParameters(PositiveParameters):
    """Rates of z; where ``scale`` is given, they are uncertain: each is drawn from Gamma(rate · scale, scale)."""

    features: tuple[Feature, ...]
    rate: Real
    scale: Real | None

    def draw_rates(self, rng: np.random.Generator) -> Real:
        if self.scale is None:
            return self.rate
        return np.asarray(np.maximum(rng.standard_gamma(self.rate * self.scale), TINY) / self.scale)


class RateFamily(Positive):
    """The base of families of one rate per class, whose conjugate prior is Gamma(shape, scale)."""

    parameters: ClassVar[type[RateParameters]]
    least_shape: ClassVar[float] = 0.0  # less 1, of the posterior's mode

    def likeliest(self, sums: Moments) -> Real:
        """The rates of greatest likelihood."""
        raise NotImplementedError

    def prior(self, features: tuple[Feature, ...], sums: Moments) -> tuple[Any, Any]:
        """Shape and scale, numbers or (features, 1)."""
        raise NotImplementedError

    def posterior(self, shape: Any, scale: Any, n: Real, total: Real) -> tuple[Real, Real]:
        """The same after n rows that add up to a total."""
        raise NotImplementedError

    def estimate(
        self, features: tuple[Feature, ...], sums: Moments, choice: Choice, rng: np.random.Generator
    ) -> RateParameters:
        how = choice.how
        if how == "mle":
            return self.parameters(features, self.likeliest(sums), None)
        n = sums.n.value
        shape, scale = self.posterior(*self.prior(features, sums), n, np.maximum(n * sums.mean, 0.0))
        if how == "predictive":
            return self.parameters(features, shape / scale, scale)
        if how == "map":
            shape = np.maximum(shape - 1.0, self.least_shape)
        elif how == "gibbs":
            shape = np.maximum(rng.standard_gamma(shape), TINY)
        return self.parameters(features, np.asarray(shape / scale), None)

    def log_prior(self, parameters: RateParameters, sums: Moments, choice: Choice) -> float:
        if choice.how == "mle":
            return 0.0
        shape, scale = self.prior(parameters.features, sums)
        shape = np.maximum(shape - 1.0, 0.0) if choice.how == "map" else shape
        some = np.asarray(shape) > 0
        logs = np.where(some, np.log(np.where(some, parameters.rate, 1.0)), 0.0)
        return float((shape * logs - scale * parameters.rate).sum())
