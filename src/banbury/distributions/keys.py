"""Values counted by key: how many rows of each class have each value, combination of values, or bin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Real
from banbury.distributions.family import ColumnReader, Counter, Feature, Kind, Reads, RowsToCount, Stored, side_by_side
from banbury.readers import Batch, Codes
from banbury.sums import Counts, Keys, as_index, in_order, rows_of, some

ListedCounts = list[tuple[Keys, Integers]]  # of each column its keys, and the rows of each

MOST_CELLS = 2**28  # of a table of values and classes: two gigabytes
LOWEST = int(np.iinfo(np.int64).min)  # stands for a missing value
KEY_TYPES: dict[Kind, type] = {"boolean": bool, "integer": int, "float": float, "string": str}


class KeyCounter(Counter):
    """The rows of each key and class."""

    def reads(self, feature: Feature) -> Reads | None:
        return None

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        return feature.kind, feature.kinds

    def described(self, feature: Feature) -> str:
        return ""

    def key(self, feature: Feature, key: Any) -> str:
        return f"value {key!r}"

    def checked_keys(self, feature: Feature, keys: Any) -> Keys:
        """The keys of a feature out of a file; raises unless they are such, in order and each once."""
        return scalar_keys(feature, keys)

    def check(self, features: Sequence[Feature], sums: Counts, rows: Integers, classes: Sequence[Any]) -> None:
        for row, label in np.argwhere(sums.cells.is_negative()):
            f = int(np.searchsorted(sums.offsets, row, side="right")) - 1
            key, name = sums.keys[f][row - sums.offsets[f]], features[f].name
            shown = self.key(features[f], key)
            raise errors.negative_count(rows_of(sums.cells)[row, label], classes[label], name, shown, key=key)
        super().check(features, sums, rows, classes)

    def trimmed(self, features: Sequence[Feature], sums: Counts) -> Counts:
        return sums.without_empty([feature.family.declared() for feature in features])

    def summary(self, feature: Feature, sums: Counts, missing: str) -> str:
        often = [repr(sums.keys[0][k]) for k in np.argsort(-sums.cells.value.sum(axis=1), kind="stable")]
        what = errors.many(len(often), "combination" if feature.columns else "value")
        return f"{what}{missing}: {errors.listed(often, 6)}"

    def table_cells(self, family: Any, features: tuple[Feature, ...], sums: Counts) -> list[int | None]:
        return [own + 1 for own, _ in family.n_parameters(features, sums)]

    def restored(self, features: Sequence[Feature], stored: Stored, n_classes: int) -> Counts:
        keys = stored.keys(features, self.checked_keys)
        counts = Counts(keys, stored.integers("cells", (sum(map(len, keys)), n_classes)))
        if self.trimmed(features, counts) is not counts:
            raise ValueError("a key has no rows")
        return counts


def count_values(features: Sequence[Feature], kinds: Sequence[Kind | None], rows: RowsToCount) -> ListedCounts:
    """For each column of the batch the values that occur, in order, and the rows of each."""
    each = zip(features, kinds, strict=True)
    return count_codes(features, [narrow(rows.batch.codes(feature.name, kind), rows) for feature, kind in each], rows)


def count_codes(features: Sequence[Feature], columns: Sequence[Codes], rows: RowsToCount) -> ListedCounts:
    """For each column the values that occur, in order, and the rows of each."""
    if not columns:
        return []
    low = np.array([column.low for column in columns], dtype=np.int64)
    size = np.array([len(column.values) for column in columns], dtype=np.int64)
    if int(size.sum()) * len(rows.labels) * (1 if rows.whole else 2) > MOST_CELLS:
        widest = int(size.argmax())
        name, n_values, n_classes = features[widest].name, int(size[widest]), len(rows.labels)
        text = f"column {name!r} has {n_values:,} values and there are {n_classes:,} classes: a table of all pairs would not "
        text += f"fit. Leave the column out with features={{{name!r}: None}}, or join its rare values first."
        raise errors.TooManyCells(text, column=name)
    names = [feature.name for feature in features]
    codes = side_by_side([column.codes for column in columns])
    cells: Integers
    cells, _ = rows.counted(_core.count_codes, names, codes, low, size)
    occupied, counted, start = np.asarray(some(cells).any(axis=1)), [], 0
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
        raise ValueError(f"{what} are not each once")
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
    few = dense(codes, threads)
    return code_numbers(few, threads), few.values


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
