"""Columns of numbers counted as moments, and blocks of them as products: sums of z = (x − origin) / unit and of its squares.

The first rows settle an origin and a unit for each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Real
from banbury.families.family import (
    UNUSED,
    Choice,
    Counter,
    Family,
    Feature,
    HeldOutRows,
    Reads,
    RowsToCount,
    Stored,
    is_power,
)
from banbury.reading import Batch
from banbury.sums import GRID, Moments, Products, kernel_weights, rows_of

SAMPLE = 1000  # rows that settle origins, units and types
S = TypeVar("S", Moments, Products)

LARGE = 1e5  # from here on Stirling's series is exact to a double
FARTHEST = 2.0**401  # that a value may be from its feature's origin, in units, and a little more


def first_rows(batch: Batch, names: Sequence[str]) -> Real:
    """The first rows of some numeric columns, (rows, columns); infinite values as missing."""
    blocks = [c[:SAMPLE] if c.ndim == 2 else c[:SAMPLE, None] for c in batch.numbers(names)] if names else []
    if not blocks:
        return np.zeros((0, 0))
    return _finite(blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1))


def first_lists(batch: Batch, name: str) -> Real:
    """The same of a column of lists, (rows, numbers)."""
    return _finite(batch.lists(name, batch.width(name))[:SAMPLE])


def _finite(rows: NDArray[Any]) -> Real:
    rows = rows.astype(np.float64)
    rows[np.isinf(rows)] = np.nan
    return rows


def scales(sample: Real) -> tuple[Real, Real]:
    """Origin and power-of-two unit of each column: near its median and its interquartile range.

    Medians, because one far value among the first rows must not move the origin away from all the others. The origin
    is a multiple of the unit, so that whole numbers and short decimals are held without rounding.
    """
    if len(sample) == 0:
        return np.zeros(sample.shape[1]), np.ones(sample.shape[1])
    ordered = np.sort(sample, axis=0)  # missing values last
    n = len(ordered) - np.isnan(ordered).sum(axis=0)
    at = np.arange(len(n))
    low, middle, high = (ordered[n * quarter // 4, at] for quarter in (1, 2, 3)) if n.all() else _quartiles(ordered, n)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = high - low
        if not (spread > 0).all() or not np.isfinite(spread).all():
            deviations = np.nansum(np.abs(ordered - middle), axis=0) / np.maximum(n, 1)
            for fallback in (deviations, np.abs(middle), 1.0):
                spread = np.where((spread > 0) & np.isfinite(spread), spread, fallback)
        unit = np.ldexp(1.0, np.minimum(np.maximum(np.frexp(spread)[1] - 1, -1014), 1000))
        steps = np.rint(middle / unit)
        rounded = steps * unit
        return np.where((np.abs(steps) < 2.0**52) & np.isfinite(rounded), rounded, middle), unit


def scales_of_moments(sample: Real) -> tuple[Real, Real]:
    """The same; a column that has shown one value has it for its origin, since it may vary by little about it."""
    origins, units = scales(sample)
    if len(sample) == 0:
        return origins, units
    low = np.fmin.reduce(sample, axis=0)
    high = np.fmax.reduce(sample, axis=0)
    return np.where(low == high, low, origins), units


def _quartiles(ordered: Real, n: NDArray[Any]) -> tuple[Real, ...]:
    """The quartiles of columns some of which have no value: 0 there."""
    at = np.arange(len(n))
    places = (np.minimum(n * quarter // 4, len(ordered) - 1) for quarter in (1, 2, 3))
    return tuple(np.where(n > 0, ordered[place, at], 0.0) for place in places)


def names_of(features: Sequence[Feature], batch: Batch) -> tuple[str, ...]:
    """The columns' names; those of the whole batch are its own, which are known at a glance."""
    names = tuple(feature.name for feature in features)
    return batch.names if names == batch.names else names


class MomentCounter(Counter):
    """n, Σz and Σz² of each column."""

    def settle(self, features: Sequence[Feature], batch: Batch) -> Sequence[Feature]:
        names = names_of(features, batch)
        origins, units = (scale.tolist() for scale in scales_of_moments(first_rows(batch, names)))
        scaled = zip(features, origins, units, strict=True)
        return [Feature(f.name, f.family, origin, unit, "float", f.why) for f, origin, unit in scaled]

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Moments]:
        names = names_of(features, rows.batch)
        origin = np.array([f.origin for f in features])
        unit = np.array([f.unit for f in features])
        return features, Moments(*rows.run_kernel(_core.count_moments, names, rows.batch.numbers(names), origin, unit))

    def check(self, features: Sequence[Feature], sums: Moments, rows: Integers, classes: Sequence[Any]) -> None:
        for f, label in np.argwhere(sums.n.is_negative()):
            raise errors.negative_count(rows_of(sums.n)[f, label], classes[label], features[f].name)
        for f, label in np.argwhere(sums.below_zero()):
            raise errors.impossible_sums(classes[label], features[f].name)
        super().check(features, sums, rows, classes)

    def adopt_scale(self, feature: Feature, other: Feature) -> Feature:
        return feature._replace(origin=other.origin, unit=other.unit)

    def move_sums(self, old: Sequence[Feature], new: Sequence[Feature], sums: Moments) -> Moments:
        if all(a.origin == b.origin and a.unit == b.unit for a, b in zip(old, new, strict=True)):
            return sums
        with np.errstate(over="ignore"):
            shift = np.array([(a.origin - b.origin) / a.unit for a, b in zip(old, new, strict=True)])
        return sums.shift(shift, np.array([a.unit / b.unit for a, b in zip(old, new, strict=True)]))

    def summary(self, feature: Feature, sums: Moments, missing: str) -> str:
        n, centre, spread = (float(x[0, 0]) for x in sums.pool())
        if n == 0:
            return "no values"
        mean = feature.origin + feature.unit * centre
        deviation = feature.unit * (spread / n) ** 0.5
        return f"mean {mean:g}, deviation {deviation:g}{missing}"

    def restore(self, features: Sequence[Feature], stored: Stored, n_classes: int) -> Any:
        shape = len(features), n_classes
        sums = Moments(stored.integers("n", shape), stored.integers("sums", (*shape, 2), signed=True))
        return _possible(sums, 1, stored.exact)


class ProductCounter(Counter):
    """n, Σz and Σzzᵀ of a block of columns, of the rows that have all of them; each block has sums of its own."""

    apart = True

    def settle(self, features: Sequence[Feature], batch: Batch) -> Sequence[Feature]:
        return [_settle_block(batch, feature) for feature in features]

    def has_valid_scale(self, feature: Feature) -> bool:
        n = len(feature.columns)
        n_scales = len(feature.scales)
        fit = n == 1 <= n_scales if feature.holds_lists else n == n_scales
        return fit and all(is_power(unit) for _, unit in feature.scales)

    def reads(self, feature: Feature) -> Reads:
        return "list" if feature.holds_lists else "number"

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Products]:
        (feature,) = features
        origin, unit = (np.ascontiguousarray(part) for part in np.array(feature.scales).T)
        columns = feature.numbers(rows.batch)
        names = feature.inputs * len(feature.scales) if feature.holds_lists else feature.inputs
        return features, Products(*rows.run_kernel(_core.count_products, names, columns, origin, unit))

    def check(self, features: Sequence[Feature], sums: Products, rows: Integers, classes: Sequence[Any]) -> None:
        for (label,) in np.argwhere(sums.below_zero()):
            raise errors.impossible_sums(classes[label], features[0].name)
        super().check(features, sums, rows, classes)

    def adopt_scale(self, feature: Feature, other: Feature) -> Feature:
        alike = len(feature.scales) == len(other.scales)  # lists may be of another length
        return feature._replace(scales=other.scales) if alike else feature

    def move_sums(self, old: Sequence[Feature], new: Sequence[Feature], sums: Products) -> Products:
        if old[0].scales == new[0].scales:
            return sums
        (origin, unit), (to, width) = np.array(old[0].scales).T, np.array(new[0].scales).T
        return sums.shift((origin - to) / unit, unit / width)

    def summary(self, feature: Feature, sums: Products, missing: str) -> str:
        n = float(sums.n.value.sum())
        if feature.holds_lists:
            return f"lists of {errors.many(len(feature.scales), 'number')}, {n:,.6g} rows that have one"
        return f"{errors.many(len(feature.inputs), 'column')} together, {n:,.6g} rows that have all of them"

    def restore(self, features: Sequence[Feature], stored: Stored, n_classes: int) -> Products:
        d = len(features[0].scales)
        n = stored.integers("n", (n_classes,))
        sums = Products(n, stored.integers("sums", (n_classes, d + d * (d + 1) // 2), signed=True))
        return _possible(sums, d, stored.exact)


def _settle_block(batch: Batch, feature: Feature) -> Feature:
    """The block with an origin and a unit for each of its numbers."""
    if len(feature.inputs) == 1 and batch.kind(feature.inputs[0]) == "list":
        feature = feature._replace(holds_lists=True)
        sample = first_lists(batch, feature.inputs[0])
    else:
        sample = first_rows(batch, feature.inputs)
    origins, units = scales_of_moments(sample)
    return feature._replace(scales=tuple(zip(origins.tolist(), units.tolist(), strict=True)))


def _possible(sums: S, columns: int, exact: bool) -> S:
    """Sums of numbers from a file; raises unless they are finite, and such as rows can have."""
    first = sums.sums.values(-GRID)[..., :columns]
    second = sums.sums.values(-2 * GRID)[..., columns:]
    n = sums.n.value[..., None]
    far = exact and ((np.abs(first) > n * FARTHEST).any() or (np.abs(second) > n * FARTHEST**2).any())
    if far or not np.isfinite(sums.sums.values(-2 * GRID)).all():
        raise ValueError("there are sums beyond what can be counted")
    if sums.below_zero().any():
        raise ValueError("there are sums that no rows have")
    return sums


def log_rising(a: Any, b: Any) -> Real:
    """log Γ(a + b) − log Γ(a), also where both are so large that their difference is lost."""
    from scipy.special import gammaln  # a third of a second to import; few need it

    a, b = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    large = np.maximum(a, LARGE)
    series = (large + b - 0.5) * np.log1p(b / large) - b + b * np.log(large)
    series += (1.0 / (large + b) - 1.0 / large) / 12.0
    small = np.minimum(a, LARGE)
    return np.asarray(np.where(a > LARGE, series, gammaln(small + b) - gammaln(small)))


CELLS = 1 << 18  # rows × classes, or rows × bins, that are looked at together


def one_by_one(family: Family, features: tuple[Feature, ...], sums: Any, choice: Choice, held_out: HeldOutRows) -> Real:
    """Of sums of numbers: what is left without each row is estimated as if it were the sums of a feature of its own.

    Sums have ``as_features``, and the family's parameters ``log_probability``.
    """
    n_rows = len(held_out.labels)
    n_classes = held_out.n_classes
    numbers, weights = kernel_weights(np.arange(n_rows, dtype=np.int32), held_out.weights)
    row_by_row = RowsToCount(held_out.rows, range(n_rows), numbers, weights, held_out.threads)
    total = np.zeros((n_rows, n_classes))
    for f, feature in enumerate(features):
        x = np.asarray(held_out.rows.numbers([feature.name])[0], dtype=np.float64).reshape(-1)
        _, row_sums = feature.counter.count([feature], row_by_row)
        scored_rows = np.flatnonzero(~np.isnan(x) & (held_out.weight > 0))
        for block_of_rows in np.array_split(scored_rows, max(1, len(scored_rows) * n_classes // CELLS)):
            block_sums = row_sums.take(block_of_rows).as_features(held_out.labels[block_of_rows], n_classes)
            parameters: Any = family.estimate(
                (feature,) * len(block_of_rows), sums.select([f] * len(block_of_rows)) - block_sums, choice, UNUSED
            )
            total[block_of_rows] += parameters.log_probability(x[block_of_rows])
    return total


MOMENTS = MomentCounter()
PRODUCTS = ProductCounter()
