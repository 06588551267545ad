"""Values counted by key: how many rows of each class have each value, combination of values, or bin; and families of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.families.dirichlet import Shares
from banbury.families.family import (
    Choice,
    ColumnReader,
    Counter,
    Family,
    Feature,
    HeldOutRows,
    Kind,
    Reads,
    RowsToCount,
    Stored,
    side_by_side,
)
from banbury.reading import Batch, Codes
from banbury.sums import Counts, Keys, as_index, in_order, rows_of, some

FARTHEST = 2.0**52  # bins from the origin
ListedCounts = list[tuple[Keys, Integers]]  # of each column its keys, and the rows of each

WIDEST_LOOKUP = 1 << 20  # bins in a narrower range are looked up as they are
MOST_CELLS = 2**28  # of a table of values and classes: two gigabytes
LOWEST = int(np.iinfo(np.int64).min)  # stands for a missing value
KEY_TYPES: dict[Kind, type] = {"boolean": bool, "integer": int, "float": float, "string": str}


class KeyCounter(Counter):
    """The rows of each key and class."""

    def reads(self, feature: Feature) -> Reads | None:
        return None

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        return feature.kind, feature.kinds

    def describe_scale(self, feature: Feature) -> str:
        return ""

    def settle(self, features: Sequence[Feature], batch: Batch) -> Sequence[Feature]:
        return [feature._replace(kind=kind_of(batch, feature.name)) for feature in features]

    def key(self, feature: Feature, key: Any) -> str:
        return f"value {key!r}"

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        """The keys of a feature out of a file; raises unless they are such, in order and each once."""
        return scalar_keys(feature, keys)

    def check(self, features: Sequence[Feature], sums: Counts, rows: Integers, classes: Sequence[Any]) -> None:
        for row, label in np.argwhere(sums.cells.is_negative()):
            f = int(np.searchsorted(sums.offsets, row, side="right")) - 1
            key = sums.keys[f][row - sums.offsets[f]]
            name = features[f].name
            shown = self.key(features[f], key)
            raise errors.negative_count(rows_of(sums.cells)[row, label], classes[label], name, shown, key=key)
        super().check(features, sums, rows, classes)

    def summary(self, feature: Feature, sums: Counts, missing: str) -> str:
        often = [repr(sums.keys[0][k]) for k in np.argsort(-sums.cells.value.sum(axis=1), kind="stable")]
        what = errors.many(len(often), "combination" if feature.columns else "value")
        return f"{what}{missing}: {errors.listed(often, 6)}"

    def restore(self, features: Sequence[Feature], stored: Stored, n_classes: int) -> Counts:
        keys = stored.keys(features, self.check_keys)
        counts = Counts(keys, stored.integers("cells", (sum(map(len, keys)), n_classes)))
        if counts.without_empty(feature.family.permanent_keys() for feature in features) is not counts:
            raise ValueError("a value has no rows")
        return counts


def count_values(features: Sequence[Feature], kinds: Sequence[Kind | None], rows: RowsToCount) -> ListedCounts:
    """For each column of the batch the values that occur, in order, and the rows of each."""
    columns = zip(features, kinds, strict=True)
    return count_codes(
        features, [narrow(rows.batch.codes(feature.name, kind), rows) for feature, kind in columns], rows
    )


def count_codes(features: Sequence[Feature], columns: Sequence[Codes], rows: RowsToCount) -> ListedCounts:
    """For each column the values that occur, in order, and the rows of each."""
    if not columns:
        return []
    low = np.array([column.low for column in columns], dtype=np.int64)
    size = np.array([len(column.values) for column in columns], dtype=np.int64)
    if int(size.sum()) * len(rows.labels) * (1 if rows.has_whole_weights else 2) > MOST_CELLS:
        widest = int(size.argmax())
        name = features[widest].name
        n_values = int(size[widest])
        n_classes = len(rows.labels)
        text = f"column {name!r} has {n_values:,} values and there are {n_classes:,} classes, and a table of all pairs would not "
        text += f"fit in memory. Leave the column out with features={{{name!r}: None}}, or join its rare values first."
        raise errors.TooManyCells(text, column=name)
    names = [feature.name for feature in features]
    codes = side_by_side([column.codes for column in columns])
    cells: Integers
    cells, _ = rows.run_kernel(_core.count_codes, names, codes, low, size)
    occupied = np.asarray(some(cells).any(axis=1))
    counted = []
    start = 0
    for column in columns:
        used = np.flatnonzero(occupied[start : start + len(column.values)])
        keys = [column.values[k] for k in used.tolist()]
        order = in_order(keys)
        if order != tuple(keys):
            position: dict[Any, int] = dict(zip(keys, used.tolist(), strict=True))
            used = np.array([position[key] for key in order])
        counted.append((order, cells.take(as_index(start + used), 0)))
        start += len(column.values)
    return counted


def narrow(column: Codes, rows: RowsToCount) -> Codes:
    """Codes whose table over the classes is not much larger than the column: a wide range is numbered by what occurs."""
    if not isinstance(column.values, range) or len(column.values) * len(rows.labels) <= max(2**20, len(column.codes)):
        return column
    return dense(column, rows.threads)


def dense(column: Codes, threads: int) -> Codes:
    """Integers numbered by those that occur: a range may be wide and hold few of them."""
    if not isinstance(column.values, range):
        return column
    plain = np.ascontiguousarray(column.codes)
    if len(column.values) <= 64:
        return Codes(_core.shifted(plain, column.low, len(column.values), threads), 0, list(column.values))
    codes, first, _ = _core.encode_records(plain.view(np.uint8).reshape(len(plain), plain.itemsize), threads)
    values = plain[first].tolist()
    if LOWEST in values:
        missing = values.index(LOWEST)
        codes = np.where(codes == missing, -1, codes - (codes > missing)).astype(np.int32)
        del values[missing]
    return Codes(codes, 0, values)


def look_up(column: Any, places: Callable[[Sequence[Any]], Sequence[int]], absent: int = -1) -> Int:
    """Of a column of codes the place of each row's value, as ``places`` has those of values; ``absent`` where it is missing."""
    codes = np.subtract(column.codes, column.low - 1, dtype=np.int64)
    values = column.values
    if len(values) > len(codes):  # a wide range, of which few values occur
        inside = (codes > 0) & (codes <= len(values))
        used, at = np.unique(codes[inside], return_inverse=True)
        codes[inside], codes[~inside], values = at + 1, 0, [values[k - 1] for k in used.tolist()]
    place_of_code = np.full(len(values) + 2, absent, dtype=np.int64)  # of one before all values, and one after
    place_of_code[1:-1] = places(values)
    return np.asarray(place_of_code.take(codes, mode="clip"))


def places_of(codes: Codes | None, keys: Keys) -> Int:
    """Of rows that have these codes the place of each one's key among some keys, −1 where it is none of them."""
    assert codes is not None
    if isinstance(codes.values, range):  # the numbers of bins, in order
        bins = np.array(keys, dtype=np.int64)
        size = codes.values.stop - codes.low
        if size < WIDEST_LOOKUP:
            lookup = np.full(size + 1, -1, dtype=np.int32)
            inside = (bins >= codes.low) & (bins < codes.low + size)
            lookup[bins[inside] - codes.low] = np.flatnonzero(inside)
            return lookup[np.where(codes.codes == LOWEST, size, codes.codes - codes.low)].astype(np.int64)
        at = np.minimum(np.searchsorted(bins, codes.codes), max(len(bins) - 1, 0))
        return np.where(bins[at] == codes.codes, at, -1) if len(bins) else np.full(len(codes.codes), -1)
    place = {key: k for k, key in enumerate(keys)}
    if len(codes.values) > len(codes.codes):
        return look_up(codes, lambda values: [place.get(value, -1) for value in values])
    return np.array([*(place.get(value, -1) for value in codes.values), -1], dtype=np.int64).take(codes.codes)


def kind_of(batch: Batch, name: str) -> Kind:
    kind = batch.kind(name)
    return kind if kind in ("boolean", "integer", "float", "string") else "string"


def scalars(what: str, names: Any) -> tuple[Any, ...]:
    """Labels or keys out of a file: scalars, each once."""
    if not all(name is None or isinstance(name, (bool, int, float, str)) for name in names):
        raise TypeError(f"{what} are not all scalars")
    if any(isinstance(name, float) and math.isnan(name) for name in names):
        raise ValueError(f"{what} are not all numbers")
    if len(set(names)) < len(names):
        raise ValueError(f"{what} are not all different")
    return tuple(names)


def names_of(what: str, names: Any) -> tuple[Any, ...]:
    """The same, in order."""
    if in_order(scalars(what, names)) != tuple(names):
        raise ValueError(f"{what} are not in order")
    return tuple(names)


def scalar_keys(feature: Feature, keys: Any) -> Keys:
    return names_of(f"the keys of {feature.name!r}", keys)


def dense_numbers(codes: Codes, threads: int) -> tuple[NDArray[np.int32], Sequence[Any]]:
    """The number of each row's value among those that occur, −1 where it is missing; and the values."""
    codes_in_use = dense(codes, threads)
    return code_numbers(codes_in_use, threads), codes_in_use.values


def code_numbers(codes: Codes, threads: int = 1) -> NDArray[np.int32]:
    """The number of each row's value among all that may occur, −1 where it is missing."""
    if codes.low == 0 and codes.codes.dtype == np.int32:
        return np.ascontiguousarray(codes.codes)
    return _core.shifted(np.ascontiguousarray(codes.codes), codes.low, len(codes.values), threads)


def finite_numbers(rows: ColumnReader, name: str) -> Real:
    """A column of numbers, NaN where one is missing; raises where one is infinite."""
    numbers = rows.numbers([name])[0].reshape(-1).astype(np.float64)
    for row in np.flatnonzero(np.isinf(numbers)).tolist():
        raise errors.bad_value("infinite", float(numbers[row]), name, rows.first_row + row, rows.source)
    return numbers


# Families that are counted by key -------------------------------------------------------------------------------------


class KeyedFamily(Family):
    """The base of families whose sums are counts by key."""

    keyed: ClassVar[bool] = True

    def has_density(self) -> bool:
        return False

    def shares(self, feature: Feature, keys: Keys, cells: Real, choice: Choice) -> tuple[Shares, Int]:
        """The cells of a feature, from which each row is left out, and which of them has each key."""
        declared = self.permanent_keys() or frozenset()
        stays = np.array([key in declared for key in keys], dtype=np.bool_)
        return Shares(cells, self.pseudo_counts(keys, choice.alpha), choice.how, stays), np.arange(len(keys))

    def leave_one_out(self, features: tuple[Feature, ...], sums: Counts, choice: Choice, held_out: HeldOutRows) -> Real:
        """Only one cell has a row less: prior, smoothing and the keys that there are follow exactly."""
        total = np.zeros((len(held_out.labels), held_out.n_classes))
        for f, feature in enumerate(features):
            keys, rows = sums.feature(f)
            if keys:
                shares, cell_of_key = self.shares(feature, keys, rows.value, choice)
                places = places_of(self.keys_of(held_out.rows, feature, held_out.threads), keys)
                total += shares.log_leave_one_out(np.append(cell_of_key, -1)[places], held_out)
        return total


class BinnedFamily(KeyedFamily):
    """The base of families whose keys are the numbers of fine bins; of a block, of the bins of each column."""

    def has_density(self) -> bool:
        return True

    def keys_of(self, rows: ColumnReader, feature: Feature, threads: int = 1, strict: bool = True) -> Codes | None:
        if feature.columns:
            return None
        numbers = rows.numbers([feature.name])[0].reshape(-1)
        try:
            bins = _core.bins(numbers, feature.origin, feature.unit, threads)
        except _core.BadValue:  # of a row that is counted at the farthest bin, or not at all
            near = within_reach(numbers, feature)
            middle = feature.origin
            near = np.nan_to_num(near, nan=np.nan, posinf=middle, neginf=middle)
            bins = _core.bins(near, feature.origin, feature.unit, threads)
        return bin_codes(bins)


def bin_codes(bins: Int) -> Codes:
    """The numbers of bins as codes; where a value is missing they are LOWEST."""
    there = bins if int(bins.min(initial=0)) > LOWEST else bins[bins != LOWEST]
    low, high = (int(there.min()), int(there.max())) if len(there) else (0, -1)
    return Codes(bins, low, range(low, high + 1))


def within_reach(numbers: NDArray[Any], feature: Feature) -> Real:
    """The numbers, those too far away for their bins to be numbered brought to where they can be; infinite ones as they are."""
    reach = FARTHEST * feature.unit
    numbers = numbers.astype(np.float64)
    return np.where(np.isinf(numbers), numbers, np.clip(numbers, feature.origin - reach, feature.origin + reach))
