"""Columns of numbers counted as moments, and blocks of them as products: sums of z = (x − origin) / unit and of its squares.

The first rows settle an origin and a unit for each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Real
from banbury.families.family import (
    UNUSED_GENERATOR,
    Choice,
    Counter,
    Family,
    Feature,
    Features,
    HeldOutRows,
    Reads,
    RowsToCount,
    Stored,
    is_power,
    number_column,
)
from banbury.reading import Batch
from banbury.sums import GRID, Moments, Products, kernel_weights, readable_counts

SAMPLE = 1000  # so many first rows settle origins, units and types
S = TypeVar("S", Moments, Products)

LARGE = 1e5  # from here on, Stirling's series is exact to a double
FARTHEST = 2.0**401  # that a value may be from its feature's origin, in units, and a little more


def first_rows(batch: Batch, names: Sequence[str]) -> Real:
    """Returns the first rows (up to 1,000) of the numeric columns with these names (rows × columns), with infinite
    values as NaN.
    """
    columns = batch.numbers(names) if names else []  # arrays of rows, or of rows × columns
    # Their first rows, all as rows × columns.
    matrices = [column[:SAMPLE] if column.ndim == 2 else column[:SAMPLE, None] for column in columns]
    if not matrices:
        return np.zeros((0, 0))
    return _finite(matrices[0] if len(matrices) == 1 else np.concatenate(matrices, axis=1))


def first_lists(batch: Batch, name: str) -> Real:
    """Returns the first rows (up to 1,000) of a column of lists of numbers (rows × places in the lists), with infinite
    values as NaN.
    """
    return _finite(batch.lists(name, batch.width(name))[:SAMPLE])


def _finite(numbers: NDArray[Any]) -> Real:
    """Returns the numbers as floats, in the same shape, with infinite values replaced by NaN."""
    numbers = numbers.astype(np.float64)
    numbers[np.isinf(numbers)] = np.nan
    return numbers


def scales(sample: Real) -> tuple[Real, Real]:
    """Returns an origin and a power-of-two unit for each column of a sample (rows × columns), near its median and
    interquartile range: two arrays (columns).

    It is the median, because one far value among the first rows must not move the origin away from all the others. The
    origin is a multiple of the unit, so that whole numbers and short decimals are held without rounding. Missing values
    are NaN.
    """
    if len(sample) == 0:
        return np.zeros(sample.shape[1]), np.ones(sample.shape[1])
    ordered = np.sort(sample, axis=0)  # missing values last
    n_values = len(ordered) - np.isnan(ordered).sum(axis=0)  # of each column, as all that follows
    # The lines of ``ordered`` that have the quartiles.
    indices = (np.minimum(n_values * quarter // 4, len(ordered) - 1) for quarter in (1, 2, 3))
    columns = np.arange(len(n_values))
    low_quartile, median, high_quartile = (np.where(n_values > 0, ordered[index, columns], 0.0) for index in indices)
    with np.errstate(over="ignore", invalid="ignore"):
        spreads = high_quartile - low_quartile
        if not (spreads > 0).all() or not np.isfinite(spreads).all():
            deviations = np.nansum(np.abs(ordered - median), axis=0) / np.maximum(n_values, 1)
            for fallback in (deviations, np.abs(median), 1.0):
                spreads = np.where((spreads > 0) & np.isfinite(spreads), spreads, fallback)
        # The largest power of two that is not above the spread, within what doubles can hold.
        units = np.ldexp(1.0, np.minimum(np.maximum(np.frexp(spreads)[1] - 1, -1014), 1000))
        origins_in_units = np.rint(median / units)
        rounded_origins = origins_in_units * units
        is_exact = (np.abs(origins_in_units) < 2.0**52) & np.isfinite(rounded_origins)
        return np.where(is_exact, rounded_origins, median), units


def scales_of_moments(sample: Real) -> tuple[Real, Real]:
    """Returns an origin and a unit for each column of a sample (rows × columns), as ``scales`` does (two arrays); but
    the origin of a column with a single value is that value, about which others may vary little.
    """
    origins, units = scales(sample)
    if len(sample) == 0:
        return origins, units
    low = np.fmin.reduce(sample, axis=0)  # the least and the greatest number of each column
    high = np.fmax.reduce(sample, axis=0)
    return np.where(low == high, low, origins), units


def as_number(feature: Feature) -> Feature:
    """Returns the feature as a column of numbers."""
    return feature._replace(kind="float")


class MomentCounter(Counter):
    """Counts n, Σz and Σz² of each column."""

    def settle(self, features: Features, batch: Batch) -> Features:
        """Returns the features with an origin and a unit near the centre and spread of the first rows, which are
        ``batch``.
        """
        origins, units = scales_of_moments(first_rows(batch, features.names))
        return replace(features.change(as_number), origins=origins, units=units)

    def count(self, features: Features, rows: RowsToCount) -> tuple[Features, Moments]:
        """Counts these rows. Returns the features as they are, and their sums n, Σz and Σz², where z = (x − origin) /
        unit.
        """
        columns = rows.batch.numbers(features.names)  # arrays of rows, or of rows × columns
        scales = features.origins, features.units  # of each feature
        n_rows, sums = rows.run_kernel(_core.count_moments, features.names, columns, *scales)
        return features, Moments(n_rows, sums)

    def check(self, features: Features, sums: Moments, rows: Integers, classes: Sequence[Any]) -> None:
        """Raises an error if no rows can have these sums. ``rows`` has the number of rows of each class, and
        ``classes`` their labels.
        """
        for f, c in np.argwhere(sums.n.is_negative()):
            raise errors.negative_count(readable_counts(sums.n)[f, c], classes[c], features.names[f])
        for f, c in np.argwhere(sums.below_zero()):
            raise errors.impossible_sums(classes[c], features.names[f])
        super().check(features, sums, rows, classes)

    def adopt_scale(self, feature: Feature, other: Feature) -> Feature:
        """Returns the feature with the origin and unit of ``other``."""
        return feature._replace(origin=other.origin, unit=other.unit)

    def move_sums(self, old: Features, new: Features, sums: Moments) -> Moments:
        """Returns the sums moved from the origins and units of the features ``old`` to those of ``new``."""
        if np.array_equal(old.origins, new.origins) and np.array_equal(old.units, new.units):
            return sums
        with np.errstate(over="ignore"):  # by how much z grows, in old units, and what it is then multiplied by
            return sums.shift((old.origins - new.origins) / old.units, old.units / new.units)

    def summary(self, feature: Feature, sums: Moments, missing: str) -> str:
        """Describes the mean and the deviation of one feature over all classes, in the column's own unit; ``sums`` are
        its own. ``missing`` is a phrase to append about rows without a value.
        """
        # Of the only feature, over all classes; squares are about the mean.
        n_rows, mean_of_z, sum_of_squares = (float(array[0, 0]) for array in sums.pool())
        if n_rows == 0:
            return "no values"
        mean = feature.origin + feature.unit * mean_of_z
        deviation = feature.unit * (sum_of_squares / n_rows) ** 0.5
        return f"mean {mean:g}, deviation {deviation:g}{missing}"

    def restore(self, features: Features, stored: Stored, n_classes: int) -> Any:
        """Returns the sums of ``features`` in ``n_classes`` classes that a file holds (``stored``); raises an error if
        no rows can have them.
        """
        shape = len(features), n_classes
        sums = Moments(stored.integers("n", shape), stored.integers("sums", (*shape, 2), signed=True))
        return _possible(sums, 1, stored.exact)


class ProductCounter(Counter):
    """Counts n, Σz and Σzzᵀ of a block of columns, over the rows that have all of them; each block has its own sums."""

    apart = True

    def settle(self, features: Features, batch: Batch) -> Features:
        """Returns the blocks with an origin and a unit for each column (their ``scales``), from the first rows, which
        are ``batch``.
        """
        return Features.of(_settle_block(batch, feature) for feature in features)

    def has_valid_scale(self, feature: Feature) -> bool:
        """Whether a block from a file has an origin and a unit for each of its numbers (its ``scales``), and every unit
        is a power of two. Lists, which are one column, have as many numbers as they have scales.
        """
        n_columns = len(feature.columns)
        n_scales = len(feature.scales)
        has_as_many_scales = n_columns == 1 <= n_scales if feature.holds_lists else n_columns == n_scales
        return has_as_many_scales and all(is_power(unit) for _, unit in feature.scales)

    def reads(self, feature: Feature) -> Reads:
        """Returns what the columns of a text file are read as: numbers, or one column of lists."""
        return "list" if feature.holds_lists else "number"

    def count(self, features: Features, rows: RowsToCount) -> tuple[Features, Products]:
        """Counts these rows. ``features`` is one block. Returns it as it is, and its sums by class: the number of rows
        that have all columns, Σz and Σzzᵀ.
        """
        (feature,) = features
        # For each column; a scale is an origin and a unit.
        origin, unit = (np.ascontiguousarray(numbers) for numbers in np.array(feature.scales).T)
        columns = feature.numbers(rows.batch)  # arrays of rows, or of rows × columns
        names = feature.inputs * len(feature.scales) if feature.holds_lists else feature.inputs
        n_rows, sums = rows.run_kernel(_core.count_products, names, columns, origin, unit)
        return features, Products(n_rows, sums)

    def check(self, features: Features, sums: Products, rows: Integers, classes: Sequence[Any]) -> None:
        """Raises an error if no rows can have these sums. ``rows`` has the number of rows of each class, and
        ``classes`` their labels.
        """
        for (c,) in np.argwhere(sums.below_zero()):
            raise errors.impossible_sums(classes[c], features.names[0])
        super().check(features, sums, rows, classes)

    def adopt_scale(self, feature: Feature, other: Feature) -> Feature:
        """Returns the block with the origins and units of the block ``other``, if both have as many numbers."""
        has_as_many = len(feature.scales) == len(other.scales)  # lists may differ in length
        return feature._replace(scales=other.scales) if has_as_many else feature

    def move_sums(self, old: Features, new: Features, sums: Products) -> Products:
        """Returns the sums of a block moved from the origins and units of ``old`` to those of ``new``; each of these is
        one feature.
        """
        if old[0].scales == new[0].scales:
            return sums
        origin, unit = np.array(old[0].scales).T  # of each column
        new_origin, new_unit = np.array(new[0].scales).T
        return sums.shift((origin - new_origin) / unit, unit / new_unit)

    def summary(self, feature: Feature, sums: Products, missing: str) -> str:
        """Describes in a few words how many rows were counted (``sums`` has their number); rows that lack a value are
        not, so ``missing`` is not shown.
        """
        n_rows = float(sums.n.value.sum())
        if feature.holds_lists:
            return f"lists of {errors.many(len(feature.scales), 'number')}, {n_rows:,.6g} rows that have one"
        return f"{errors.many(len(feature.inputs), 'column')} together, {n_rows:,.6g} rows that have all of them"

    def restore(self, features: Features, stored: Stored, n_classes: int) -> Products:
        """Returns the sums of the block in ``n_classes`` classes that a file holds (``stored``); raises an error if no
        rows can have them.
        """
        n_numbers = len(features[0].scales)
        # Σz of each number, then Σzzᵀ of each pair, of which each number is one with itself.
        n_sums = n_numbers + n_numbers * (n_numbers + 1) // 2
        n_rows = stored.integers("n", (n_classes,))
        sums = Products(n_rows, stored.integers("sums", (n_classes, n_sums), signed=True))
        return _possible(sums, n_numbers, stored.exact)


def _settle_block(batch: Batch, feature: Feature) -> Feature:
    """Returns the block with an origin and a unit for each of its numbers, from the first rows. A single column of
    lists is a block of the numbers in them.
    """
    if len(feature.inputs) == 1 and batch.kind(feature.inputs[0]) == "list":
        feature = feature._replace(holds_lists=True)
        sample = first_lists(batch, feature.inputs[0])  # rows × numbers
    else:
        sample = first_rows(batch, feature.inputs)
    origins, units = scales_of_moments(sample)
    return feature._replace(scales=tuple(zip(origins.tolist(), units.tolist(), strict=True)))


def _possible(sums: S, columns: int, exact: bool) -> S:
    """Returns sums of ``columns`` columns from a file as they are; raises unless they are finite and some rows can have
    them. ``exact``: whether the file says that they are exact, so that no value may be too far from its origin.
    """
    # Of each feature (if there are several) and class; the last axis has the columns, or their squares and products.
    sums_of_z = sums.sums.values(-GRID)[..., :columns]
    sums_of_squares = sums.sums.values(-2 * GRID)[..., columns:]
    n_rows = sums.n.value[..., None]
    is_far = (np.abs(sums_of_z) > n_rows * FARTHEST).any()
    are_squares_far = (np.abs(sums_of_squares) > n_rows * FARTHEST**2).any()
    is_too_far = exact and (is_far or are_squares_far)
    if is_too_far or not np.isfinite(sums.sums.values(-2 * GRID)).all():
        raise ValueError("there are sums beyond what can be counted")
    if sums.below_zero().any():
        raise ValueError("there are sums that no rows have")
    return sums


def log_rising(a: Any, b: Any) -> Real:
    """Returns log Γ(a + b) − log Γ(a) of numbers or arrays, which broadcast, by a series where a is so large that the
    difference would lose its digits.
    """
    from scipy.special import gammaln  # a third of a second to import; few need it

    a, b = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    large = np.maximum(a, LARGE)  # where the series is used
    series = (large + b - 0.5) * np.log1p(b / large) - b + b * np.log(large)
    series += (1.0 / (large + b) - 1.0 / large) / 12.0
    small = np.minimum(a, LARGE)  # where it is not
    return np.asarray(np.where(a > LARGE, series, gammaln(small + b) - gammaln(small)))


def stirling_remainder(x: Real) -> Real:
    """Returns for each x what Stirling's formula leaves of log Γ: log Γ(x) − (x − ½) log x + x − ½ log 2π."""
    from scipy.special import gammaln  # a third of a second to import; few need it

    small = np.minimum(x, LARGE)  # where log Γ is computed
    remainder = gammaln(small) - (small - 0.5) * np.log(small) + small - 0.5 * np.log(2.0 * np.pi)
    return np.where(x < LARGE, remainder, 1.0 / (12.0 * x))


CELLS = 1 << 18  # rows × classes, or rows × bins, that are processed together


def leave_out_one_by_one(family: Family, features: Features, sums: Any, choice: Choice, held_out: HeldOutRows) -> Real:
    """Returns log P(values | class) of each row of ``held_out`` without itself (rows × classes), for families that
    count sums of numbers.

    The sums left without each row are estimated as if they were those of a separate feature, many rows at once.
    ``sums`` are those of all rows; they must have ``as_features``, and the parameters that ``family`` estimates
    ``log_probability``.
    """
    n_rows = len(held_out.labels)
    n_classes = held_out.n_classes
    # Every row as a class of its own, so that its own sums are counted.
    row_classes, weights = kernel_weights(np.arange(n_rows, dtype=np.int32), held_out.weights)
    row_by_row = RowsToCount(held_out.rows, range(n_rows), row_classes, weights, held_out.threads)
    log_likelihoods = np.zeros((n_rows, n_classes))
    for f, feature in enumerate(features):
        numbers = number_column(held_out.rows, feature.name).astype(np.float64)
        _, row_sums = feature.counter.count(features.take([f]), row_by_row)  # the sums of each row
        scored_rows = np.flatnonzero(~np.isnan(numbers) & (held_out.weight > 0))
        # In pieces of about CELLS rows × classes.
        for some_rows in np.array_split(scored_rows, max(1, len(scored_rows) * n_classes // CELLS)):
            own_sums = row_sums.take(some_rows).as_features(held_out.labels[some_rows], n_classes)
            copies_of_feature = features.take([f] * len(some_rows))  # one for each of these rows
            sums_of_others = sums.select([f] * len(some_rows)) - own_sums
            parameters: Any = family.estimate(copies_of_feature, sums_of_others, choice, UNUSED_GENERATOR)
            log_likelihoods[some_rows] += parameters.log_probability(numbers[some_rows])
    return log_likelihoods


MOMENTS = MomentCounter()
PRODUCTS = ProductCounter()
