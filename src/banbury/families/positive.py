"""Numbers from 0 up: what Poisson, exponential, gamma and log-normal have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
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
    Features,
    HeldOutRows,
    NumberColumn,
    NumericParameters,
    RowsToCount,
    Stored,
    bad_value,
    line_by_line,
    number_column,
)
from banbury.families.moments import MOMENTS, MomentCounter, as_number, first_rows, leave_out_one_by_one, scales
from banbury.reading import Batch, Codes
from banbury.sums import GRID, Moments, SumsOfParts

EVERY_FEATURE = slice(None)  # x has one number for each
FARTHEST = 2.0**400  # larger z are scored as this
SMALLEST_MEAN = 2.0**-200  # of z: keeps a column of zeros from making every other number impossible
TINY = float(np.finfo(np.float64).tiny)  # numbers below have too few digits


class PositiveCounter(MomentCounter):
    """Moments of numbers from 0 up, about 0."""

    def settle(self, features: Features, batch: Batch) -> Features:
        """Returns the features with origin 0 and a unit near the spread of the first rows (``batch``)."""
        _, units = scales(first_rows(batch, features.names))  # of each feature
        return replace(features.change(as_number), origins=np.zeros(len(features)), units=units)

    def has_valid_scale(self, feature: Feature) -> bool:
        """Whether a feature from a file is counted about 0, in a valid unit."""
        return feature.origin == 0.0 and super().has_valid_scale(feature)

    def count(self, features: Features, rows: RowsToCount) -> tuple[Features, Any]:
        """Counts these rows, after checking that no number is too small. Returns the features as they are, and the sums
        of these rows.
        """
        check_least(rows.batch, features.names, features.templates[0].family)
        return super().count(features, rows)

    def check(self, features: Features, sums: Moments, rows: Integers, classes: Sequence[Any]) -> None:
        """Raises an error if no rows can have these sums. ``rows`` has the number of rows of each class, and
        ``classes`` their labels.
        """
        super().check(features, sums, rows, classes)
        for f, c in np.argwhere(sums.sums.is_negative()[..., 0]):  # Σz (features × classes)
            raise errors.impossible_sums(classes[c], features.names[f])

    def adopt_scale(self, feature: Feature, other: Feature) -> Feature:
        """Returns the feature with the unit of ``other``; both are counted about 0."""
        return feature._replace(unit=other.unit)


def check_least(rows: Any, names: Sequence[str], family: Family) -> None:
    """Raises an error unless all numbers of the columns with these names in ``rows``, a batch, are at least as large as
    their family allows.
    """
    least = family.least
    start = 0  # the place of an array's first column among the names
    for array in rows.numbers(names):
        columns = array[:, None] if array.ndim == 1 else array  # rows × columns
        is_below = columns < least
        if is_below.any():  # the first number of the first such column
            column_of_array = int(is_below.any(axis=0).argmax())
            row = int(is_below[:, column_of_array].argmax())
            column = names[start + column_of_array]
            value = float(columns[row, column_of_array])
            position = f"row {rows.first_row + row:,} of column {column!r}{errors.where(rows.source)}"
            article = "an" if family.name[0] in "aeiou" else "a"
            limit = "above 0" if least > 0 else "of at least 0"
            text = f"{position} is {value:g}, but {article} {family.name} column can contain only numbers {limit}. "
            text += "Replace it, or use 'quantile_tree', 'gaussian', 'histogram' or 'kernel_density' instead."
            raise errors.BadValue(text, what="negative", value=value, column=column, row=rows.first_row + row)
        start += columns.shape[1]


POSITIVE = PositiveCounter()


class WholeNumberCounter(PositiveCounter):
    """Moments of whole numbers from 0 up."""

    def settle(self, features: Features, batch: Batch) -> Features:
        """Returns the features as columns of whole numbers, which are counted about 0 in units of 1."""
        return features.change(lambda feature: feature._replace(kind="integer"))

    def has_valid_scale(self, feature: Feature) -> bool:
        """Whether a feature from a file is counted about 0 in units of 1."""
        return feature.unit == 1.0 and super().has_valid_scale(feature)

    def count(self, features: Features, rows: RowsToCount) -> tuple[Features, Moments]:
        """Counts these rows, after checking that they have whole numbers from 0 up. Returns the features as they are,
        and the sums of these rows.
        """
        check_counts(rows.batch, features.names, rows.threads)
        return MomentCounter.count(self, features, rows)

    def check(self, features: Features, sums: Moments, rows: Integers, classes: Sequence[Any]) -> None:
        """Raises an error if no rows can have these sums. ``rows`` has the number of rows of each class, and
        ``classes`` their labels.
        """
        super().check(features, sums, rows, classes)
        # Σx > Σx² (features × classes); no whole number is greater than its square.
        is_impossible = sums.sums.values(-GRID)[..., 0] > sums.sums.values(-2 * GRID)[..., 1]
        for f, c in np.argwhere(is_impossible):
            raise errors.impossible_sums(classes[c], features.names[f])


def check_counts(rows: Any, names: Sequence[str], threads: int = 1) -> None:
    """Raises unless the columns with these names in ``rows``, a batch, hold whole numbers from 0 up."""
    try:
        _core.not_counts(rows.numbers(names), threads)
    except _core.BadValue as bad:
        raise bad_value(bad, names, rows) from None


WHOLE_NUMBERS = WholeNumberCounter()


class Positive(Family):
    """The base of families of numbers from 0 up, counted by moments about 0."""

    least: ClassVar[float] = 0.0

    def counter(self, feature: Feature) -> PositiveCounter:
        """Returns the counter that turns the values of a feature of this family into sums."""
        return POSITIVE

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        """Returns this family for a column with many values, none below the least that it allows."""
        return (self,) if column.least >= self.least and not column.has_few_values else ()

    def leave_one_out(self, features: Features, sums: Any, choice: Choice, held_out: HeldOutRows) -> Real:
        """Returns log P(values | class) of each row without itself (rows × classes)."""
        return leave_out_one_by_one(self, features, sums, choice, held_out)


class PositiveParameters(NumericParameters):
    """Parameters of columns of numbers from 0 up: each is an array, features × classes, about z = x / unit.

    A family declares the density, the distribution function and the moments of z, for parameters that broadcast with z.
    """

    farthest: ClassVar[float] = FARTHEST

    def log_density(self, z: Real) -> Real:
        """Returns the log density of z (numbers × classes), per unit of z. z broadcasts with the parameters."""
        raise NotImplementedError

    def curve_terms(self) -> tuple[Any, ...] | None:
        """Returns width, centre and the coefficients of 1, x and log of the log density of z (see ``Curve``), each an
        array like the parameters or a number; None if it is not such a sum.
        """
        return None

    def draw(self, rng: Generator) -> Real:
        """Draws one z for each parameter; used on parameters that were indexed by feature and class (``at``)."""
        raise NotImplementedError

    def moments(self) -> tuple[Real, Real]:
        """Returns the mean and the standard deviation of z, in the shape of the parameters."""
        raise NotImplementedError

    def tails_of(self, z: Real) -> tuple[Real, Real]:
        """Returns the probabilities below and above each z, which broadcasts with the parameters (numbers × classes
        each).
        """
        raise NotImplementedError

    def at(self, index: Any) -> Self:
        """Returns the parameters at an index of their arrays (features × classes): of a feature (classes), or of
        features and classes. ``features`` stay as they are.
        """
        features, *arrays = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return type(self)(features, *(None if array is None else array[index] for array in arrays))  # type: ignore[call-arg]

    @cached_property
    def units(self) -> Real:
        """The unit of each feature (features)."""
        return self.features.units

    def log_probability(self, x: Real, f: int | slice = EVERY_FEATURE) -> Real:
        """Returns the log density of numbers ``x`` in their own unit (numbers × classes): all of feature f, or by
        default one for each feature.
        """
        unit = self.units[f]  # of feature f, or of all
        with np.errstate(over="ignore"):  # z of the largest doubles, which is then the farthest that there is
            z = np.minimum(x / unit, self.farthest)
        log_densities = self.at(f).log_density(z[:, None])  # of z (numbers × classes)
        return np.asarray(log_densities - np.reshape(np.log(unit), (-1, 1)))

    def codes(self, rows: ColumnReader, f: int) -> Codes:
        """Returns the numbers of feature f as codes: the numbers to score, and the index of each row's number among
        them, −1 if it is missing.
        """
        check_least(rows, self.features.names[f : f + 1], self.features.templates[0].family)
        x = number_column(rows, self.features.names[f]).astype(np.float64)  # rows; NaN: missing
        is_present = ~np.isnan(x)
        codes = np.where(is_present, np.arange(len(x)), -1)
        numbers: Any = np.where(is_present, x, self.features.units[f])  # any number where none is present
        return Codes(codes, 0, numbers)

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns the parts with which the kernel adds up log P(value | class) of the features for each of these rows."""
        parts = []
        for f in range(len(self.features)):
            column = self.codes(rows, f)  # numbers, and the index of each row's number among them
            table = self.log_probability(np.asarray(column.values, dtype=np.float64), f)  # numbers × classes
            parts.append(line_by_line(column.codes, table, column.low))
        return parts

    def curve(self, f: int) -> Curve | None:
        """Returns the log density of feature number f as a curve, up to what all classes share; None if it is no such
        sum.
        """
        if (terms := self.at(f).curve_terms()) is None:
            return None
        # Of each class; the last three are the coefficients of 1, x and log.
        width, centre, one, x, log = np.broadcast_arrays(*terms)
        return Curve(0.0, float(self.units[f]), width, centre, one, x, x2=np.zeros_like(one), log=log)

    def sample(self, classes: Int, rng: Generator) -> list[NDArray[Any]]:
        """Draws a value of each feature for a row of each of these ``classes`` (class numbers); returns an array per
        column.
        """
        columns = [unit * self.at((f, classes)).draw(rng) for f, unit in enumerate(self.units.tolist())]
        return [np.maximum(column, self.features.templates[0].family.least) for column in columns]

    def spread(self, f: int) -> tuple[Real, Real]:
        """Returns the mean and the standard deviation of feature f in each class (classes each); for a predictive
        distribution, those of the distributions that it mixes. ``units`` has the unit of each feature.
        """
        mean, deviation = self.at(f).moments()  # of z in each class
        unit = self.units[f]
        return unit * mean, unit * deviation

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        """Returns P(x < cut | class) and P(x ≥ cut | class) of feature f (cuts × classes)."""
        return self.at(f).tails_of(np.maximum(cuts, 0.0)[:, None] / self.units[f])

    def ends(self, f: int, near: Real, step: Real) -> Real:
        """Returns round numbers near the wanted ones (``near``), multiples of ``step`` and none below 0, at which an
        interval may end.
        """
        return np.maximum(super().ends(f, near, step), 0.0)


# Sums of logarithms, too --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LogMoments(SumsOfParts):
    """Moments of the same rows: ``values`` are those of z = x / unit, and ``logs`` those of log x."""

    values: Moments
    logs: Moments

    @property
    def present(self) -> Integers:
        """The number of rows that have a value of each feature (features × classes)."""
        return self.values.n

    def times(self, factor: float) -> tuple[LogMoments, bool]:
        """Returns the sums multiplied by a factor, and whether the product is exact. ``values`` are the moments of the
        numbers, and ``logs`` those of their logarithms.
        """
        values, are_values_exact = self.values.times(factor)
        logs, are_logs_exact = self.logs.times(factor)
        return LogMoments(values, logs), are_values_exact and are_logs_exact

    def _change_both(self, change: Callable[[Moments], Moments]) -> LogMoments:
        """Returns the sums with both moments changed by a function."""
        return LogMoments(change(self.values), change(self.logs))

    def take(self, classes: Any) -> LogMoments:
        """Returns the sums of the classes with these numbers, in this order."""
        return self._change_both(lambda moments: moments.take(classes))

    def merge(self, index: Any, size: int) -> LogMoments:
        """Returns the sums with those of class c moved to class ``index[c]`` of ``size`` classes; those that meet are
        added up.
        """
        return self._change_both(lambda moments: moments.merge(index, size))

    def select(self, features: Sequence[int]) -> LogMoments:
        """Returns the sums of the features with these numbers, in this order."""
        return self._change_both(lambda moments: moments.select(features))

    def as_features(self, labels: Int, n_classes: int) -> LogMoments:
        """Turns the classes of a single feature, one per label, into features: feature k has the sums of the old class
        k, in class ``labels[k]`` of ``n_classes``.
        """
        return self._change_both(lambda moments: moments.as_features(labels, n_classes))

    def arrays(self) -> dict[str, Integers]:
        """Returns the arrays that a file holds, by name."""
        return {"n": self.values.n, "sums": self.values.sums, "logs": self.logs.sums}

    def means(self, units: Real, prior_rows: float) -> tuple[Real, Real, Real]:
        """Returns the number of rows, the mean of z and the mean of log z (features × classes each), with
        ``prior_rows`` average rows added.

        An average row has the means of the column over all classes. A class without rows has those means too. ``units``
        has the unit of each feature; ``values`` are the moments of z, and ``logs`` those of log x.
        """
        log_units = np.log(units[:, None])
        n_rows = self.values.n.value  # features × classes
        # Over all classes (features × 1): the number of rows, the mean of z, and the mean of log z.
        n_column, column_mean, _ = self.values.pool()
        has_rows = n_column > 0  # a column without any number has a mean of 1
        column_mean = np.maximum(np.where(has_rows, column_mean, 1.0), SMALLEST_MEAN)
        column_log = np.where(has_rows, self.logs.pool()[1] - log_units, 0.0)
        # Of each class (features × classes).
        mean = np.maximum(self.values.mean, SMALLEST_MEAN)
        mean_log = self.logs.mean - log_units
        if not prior_rows:
            return n_rows, np.where(n_rows > 0, mean, column_mean), np.where(n_rows > 0, mean_log, column_log)
        rows = n_rows + prior_rows
        mean = (n_rows * mean + prior_rows * column_mean) / rows
        return rows, mean, (n_rows * mean_log + prior_rows * column_log) / rows


class LogMomentCounter(PositiveCounter):
    """Moments of numbers above 0, about 0, and of their logarithms: all columns in one pass."""

    def count(self, features: Features, rows: RowsToCount) -> tuple[Features, Any]:
        """Counts these rows. Returns the features as they are, and the sums of the numbers and of their logarithms."""
        names = features.names
        n_features = len(features)
        check_least(rows.batch, features.names, features.templates[0].family)
        columns = rows.batch.numbers(names)  # arrays of rows, or of rows × columns
        # The columns, then their logarithms, which have origin 0 too, and units of 1.
        numbers_and_logs = [*columns, *(logarithm(column) for column in columns)]
        origins = np.zeros(2 * n_features)
        units = np.concatenate([features.units, np.ones(n_features)])
        n_rows, sums = rows.run_kernel(_core.count_moments, (*names, *names), numbers_and_logs, origins, units)
        moments = Moments(n_rows, sums)
        values = moments.select(range(n_features))
        return features, LogMoments(values, moments.select(range(n_features, 2 * n_features)))

    def check(self, features: Features, sums: Any, rows: Integers, classes: Sequence[Any]) -> None:
        """Raises if no rows can have these sums, of the numbers or of their logarithms. ``rows`` has the number of rows
        of each class, and ``classes`` their labels.
        """
        super().check(features, sums.values, rows, classes)
        MOMENTS.check(features, sums.logs, rows, classes)

    def move_sums(self, old: Features, new: Features, sums: Any) -> Any:
        """Returns the sums of numbers moved from the units of ``old`` to those of ``new``; sums of logarithms have
        none.
        """
        values = super().move_sums(old, new, sums.values)  # moments of the numbers
        return sums if values is sums.values else LogMoments(values, sums.logs)

    def summary(self, feature: Feature, sums: Any, missing: str) -> str:
        """Describes the mean and deviation of the numbers of one feature (``sums`` are its own); ``missing`` is a
        phrase to append about rows without a value.
        """
        return super().summary(feature, sums.values, missing)

    def restore(self, features: Features, stored: Stored, n_classes: int) -> Any:
        """Returns the sums of ``features`` in ``n_classes`` classes that a file holds (``stored``); raises an error if
        no rows can have them.
        """
        values = super().restore(features, stored, n_classes)  # moments of the numbers
        logs = Moments(values.n, stored.integers("logs", (len(features), n_classes, 2), signed=True))
        if logs.below_zero().any() or not np.isfinite(logs.sums.values(-2 * GRID)).all():
            raise ValueError("there are sums of logarithms that no rows have")
        return LogMoments(values, logs)


def logarithm(x: NDArray[Any]) -> Real:
    """Returns log x by additions, multiplications and divisions alone, so that all machines get the same bits; NaN
    stays NaN.

    x = 2ᵏ m with m from √½ to √2; log m = 2 artanh(s), s = (m − 1) / (m + 1), by its series up to s²³.
    """
    m, k = np.frexp(np.asarray(x, dtype=np.float64))  # m from ½ to 1 at first
    is_low = m < 0.7071067811865476  # √½
    m = np.where(is_low, 2.0 * m, m)
    k = np.where(is_low, k - 1, k)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    series = np.zeros(np.shape(s))
    for power in range(23, 0, -2):
        series = series * square + 1.0 / power
    return k * 0.6931471805599453 + 2.0 * s * series  # 0.693… is log 2


LOG_MOMENTS = LogMomentCounter()


class LogMomentFamily(Positive):
    """The base of families of numbers above 0, two parameters per class, counted by moments of numbers and logarithms."""

    least: ClassVar[float] = TINY

    def counter(self, feature: Feature) -> LogMomentCounter:
        """Returns the counter that turns the values of a feature of this family into sums."""
        return LOG_MOMENTS

    def counting_key(self) -> tuple[Any, ...]:
        """Returns what two families must have in common for their sums to be added: the same kind of sums."""
        return ("log moments",)

    def n_parameters(self, features: Features, sums: Any) -> list[tuple[int, int]]:
        """Returns a pair for each feature: two parameters per class, and 0 that classes share."""
        return [(2, 0)] * len(features)


# One rate per class ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RateParameters(PositiveParameters):
    """The rates of z (features × classes).

    ``scale`` is None if they are fixed. Otherwise rates are uncertain: each has a Gamma distribution with shape
    ``rate`` · ``scale`` and inverse scale ``scale``, so that ``rate`` is its mean.
    """

    features: Features
    rate: Real
    scale: Real | None

    def draw_rates(self, rng: Generator) -> Real:
        """Returns the rates (features × classes, or as they were indexed); if they are uncertain, draws each from its
        Gamma distribution, which has the mean ``self.rate`` and the inverse scale ``self.scale``.
        """
        if self.scale is None:
            return self.rate
        return np.maximum(rng.standard_gamma(self.rate * self.scale), TINY) / self.scale


class RateFamily(Positive):
    """The base of families of one rate per class, whose conjugate prior is Gamma(shape, scale)."""

    parameters: ClassVar[type[RateParameters]]
    least_shape: ClassVar[float] = 0.0  # less 1, of the posterior's mode

    def likeliest(self, sums: Moments) -> Real:
        """Returns the maximum likelihood estimates of the rates of z (features × classes)."""
        raise NotImplementedError

    def prior(self, features: Features, sums: Moments) -> tuple[Any, Any]:
        """Returns the shape and the scale of the Gamma prior: numbers, or arrays features × 1."""
        raise NotImplementedError

    def posterior(self, shape: Any, scale: Any, n: Real, total: Real) -> tuple[Real, Real]:
        """Returns the shape and the scale of the Gamma posterior (features × classes each), given those of the prior,
        after n rows whose sum of z is ``total`` (features × classes each).
        """
        raise NotImplementedError

    def estimate(self, features: Features, sums: Moments, choice: Choice, rng: Generator) -> RateParameters:
        """Estimates the rates of these features from their sums, as ``choice`` says; ``rng`` draws under "gibbs"."""
        how = choice.how
        if how == "mle":
            return self.parameters(features, self.likeliest(sums), scale=None)
        n_rows = sums.n.value  # features × classes
        # Of the Gamma posterior (features × classes each).
        shape, scale = self.posterior(*self.prior(features, sums), n_rows, np.maximum(n_rows * sums.mean, 0.0))
        if how == "predictive":
            return self.parameters(features, shape / scale, scale)
        if how == "map":
            shape = np.maximum(shape - 1.0, self.least_shape)
        elif how == "gibbs":
            shape = np.maximum(rng.standard_gamma(shape), TINY)
        return self.parameters(features, np.asarray(shape / scale), scale=None)

    def log_prior(self, parameters: RateParameters, sums: Moments, choice: Choice) -> float:
        """Returns what the prior adds to the log-likelihood of these parameters, over all features and classes;
        ``sums`` are those of the features.
        """
        if choice.how == "mle":
            return 0.0
        shape, scale = self.prior(parameters.features, sums)  # of the Gamma prior: numbers, or features × 1
        if choice.how == "map":
            shape = np.maximum(shape - 1.0, 0.0)
        has_shape = np.asarray(shape) > 0
        log_rates = np.where(has_shape, np.log(np.where(has_shape, parameters.rate, 1.0)), 0.0)  # features × classes
        return float((shape * log_rates - scale * parameters.rate).sum())
