"""Counts by key: the rows of each class with each value, combination of values, or bin; and the families based on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

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
    Features,
    HeldOutRows,
    Kind,
    Reads,
    RowsToCount,
    Stored,
    check_finite_column,
    number_column,
    permanent_keys,
    side_by_side,
)
from banbury.reading import Batch, Codes
from banbury.sums import Counts, Keys, as_index, is_nonzero, readable_counts, sort_keys

MOST_BINS_FROM_ORIGIN = 2.0**52  # numbers farther away are counted in the bin at this distance
MOST_CELLS = 2**28  # values × classes: a table of two gigabytes
MISSING_BIN = int(np.iinfo(np.int64).min)  # the number of the bin of a missing value
FEW_VALUES = 64  # a range of so few integers is not renumbered by what occurs

CountsByColumn = list[tuple[Keys, Integers]]  # the keys of each column, and the rows of each key and class
KEY_TYPES: dict[Kind, type] = {"boolean": bool, "integer": int, "float": float, "string": str}


class KeyCounter(Counter):
    """Counts the rows of each key and class."""

    def reads(self, feature: Feature) -> Reads | None:
        """Returns None: the first rows decide what a column of a text file is read as."""
        return None

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        """Returns what two features must have in common for their counts to be added: the types of their values
        (``kinds`` are those of a block).
        """
        return feature.kind, feature.kinds

    def describe_scale(self, feature: Feature) -> str:
        """Returns an empty phrase, because values have no origin and unit."""
        return ""

    def settle(self, features: Features, batch: Batch) -> Features:
        """Returns the features with the type (``kind``) of each column in the first rows, which are ``batch``."""
        return Features.of(feature._replace(kind=column_kind(batch, feature.name)) for feature in features)

    def key(self, feature: Feature, key: Any) -> str:
        """Returns a key in words, for messages."""
        return f"value {key!r}"

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        """Returns the keys of a feature from a file; raises an error unless they are valid, in order and distinct."""
        return check_key_order(feature, keys)

    def check(self, features: Features, sums: Counts, rows: Integers, classes: Sequence[Any]) -> None:
        """Raises an error if no rows can have these sums. ``rows`` has the number of rows of each class, and
        ``classes`` their labels.
        """
        for line, c in np.argwhere(sums.cells.is_negative()):  # the lines of feature f start at offsets[f]
            f = int(np.searchsorted(sums.offsets, line, side="right")) - 1
            key = sums.keys[f][line - sums.offsets[f]]
            name = features.names[f]
            key_in_words = self.key(features[f], key)
            raise errors.negative_count(readable_counts(sums.cells)[line, c], classes[c], name, key_in_words, key=key)
        super().check(features, sums, rows, classes)

    def summary(self, feature: Feature, sums: Counts, missing: str) -> str:
        """Describes how many values were counted for one feature (``sums`` are its own), and which are the most
        frequent; ``missing`` is a phrase to append about rows without a value.
        """
        keys_by_frequency = [repr(sums.keys[0][k]) for k in np.argsort(-sums.cells.value.sum(axis=1), kind="stable")]
        n_keys = errors.many(len(keys_by_frequency), "combination" if feature.columns else "value")
        return f"{n_keys}{missing}: {errors.listed(keys_by_frequency, most=6)}"

    def restore(self, features: Features, stored: Stored, n_classes: int) -> Counts:
        """Returns the counts of ``features`` in ``n_classes`` classes that a file holds (``stored``); raises an error
        if no rows can have them.
        """
        keys = stored.keys(features, self.check_keys)
        counts = Counts(keys, stored.integers("cells", (sum(map(len, keys)), n_classes)))
        if counts.without_empty(permanent_keys(features)) is not counts:
            raise ValueError("a value has no rows")
        return counts


class NumberedValues(NamedTuple):
    """A column as numbers of its values: row i has ``values[numbers[i]]``, or none if the number is −1."""

    numbers: NDArray[np.int32]
    values: Sequence[Any]


def count_values(names: Sequence[str], kinds: Sequence[Kind | None], rows: RowsToCount) -> CountsByColumn:
    """Counts the rows of each value and class of these columns. Returns for each column its distinct values, in order,
    and their counts (values × classes). ``kinds`` are the types that values are read as, None for the column's own.
    """
    names_and_kinds = zip(names, kinds, strict=True)
    columns = [renumber_wide_range(rows.batch.codes(name, kind), rows) for name, kind in names_and_kinds]
    return count_codes(names, columns, rows)


def count_codes(names: Sequence[str], columns: Sequence[Codes], rows: RowsToCount) -> CountsByColumn:
    """Counts the rows of each value and class of columns of codes. Returns for each column the values that occur, in
    order, and their counts (values × classes). ``names`` are those of the columns, for messages; raises if the table
    would be too large.
    """
    if not columns:
        return []
    # Of each column: its lowest code, and how many values it has.
    lowest_codes = np.array([column.low for column in columns], dtype=np.int64)
    n_values_of = np.array([len(column.values) for column in columns], dtype=np.int64)
    if int(n_values_of.sum()) * len(rows.labels) * (1 if rows.has_whole_weights else 2) > MOST_CELLS:
        largest = int(n_values_of.argmax())
        name = names[largest]
        n_values = int(n_values_of[largest])
        n_classes = len(rows.labels)
        text = f"column {name!r} has {n_values:,} values and there are {n_classes:,} classes, and a table of all pairs would not "
        text += f"fit in memory. Leave the column out with features={{{name!r}: None}}, or join its rare values first."
        raise errors.TooManyCells(text, column=name)
    codes = side_by_side([column.codes for column in columns])
    cells: Integers
    # The rows of each value of all columns, one column below the other (values × classes).
    cells, _ = rows.run_kernel(_core.count_codes, names, codes, lowest_codes, n_values_of)
    is_occupied = np.asarray(is_nonzero(cells).any(axis=1))  # of each line
    counts_by_column = []
    first_line = 0  # of the column
    for column in columns:
        used_codes = np.flatnonzero(is_occupied[first_line : first_line + len(column.values)])  # counted from 0
        keys = [column.values[k] for k in used_codes.tolist()]
        sorted_keys = sort_keys(keys)
        if sorted_keys != tuple(keys):
            code_of_key: dict[Any, int] = dict(zip(keys, used_codes.tolist(), strict=True))
            used_codes = np.array([code_of_key[key] for key in sorted_keys])
        counts_by_column.append((sorted_keys, cells.take(as_index(first_line + used_codes), 0)))
        first_line += len(column.values)
    return counts_by_column


def renumber_wide_range(column: Codes, rows: RowsToCount) -> Codes:
    """Returns a column of integers renumbered by what occurs if a table of its whole range and the classes would be
    much larger than the column; otherwise as it is.
    """
    if not isinstance(column.values, range) or len(column.values) * len(rows.labels) <= max(2**20, len(column.codes)):
        return column
    return renumber_range(column, rows.threads)


def renumber_range(column: Codes, threads: int) -> Codes:
    """Returns a column whose values are a range of integers renumbered from 0 by what occurs, because a wide range may
    hold few of them; other columns as they are.
    """
    if not isinstance(column.values, range):
        return column
    integers = np.ascontiguousarray(column.codes)  # of each row
    if len(column.values) <= FEW_VALUES:
        codes = _core.shifted(integers, column.low, len(column.values), threads)
        return Codes(codes, low=0, values=list(column.values))
    # Numbers distinct integers as they occur, from their bytes: the code of each row, and the first row of each code.
    codes, first_rows, _ = _core.encode_records(
        integers.view(np.uint8).reshape(len(integers), integers.itemsize), threads
    )
    values = integers[first_rows].tolist()
    if MISSING_BIN in values:
        code_of_missing = values.index(MISSING_BIN)
        codes = np.where(codes == code_of_missing, -1, codes - (codes > code_of_missing)).astype(np.int32)
        del values[code_of_missing]
    return Codes(codes, low=0, values=values)


def map_values(column: Codes, to_numbers: Callable[[Sequence[Any]], Sequence[int]], missing: int = -1) -> Int:
    """Returns a number for each row (rows): that of its value. ``to_numbers`` returns the numbers of a list of values,
    in its order; ``missing`` is the number of a missing value.
    """
    places = np.subtract(column.codes, column.low - 1, dtype=np.int64)  # of each row: 1 for the first value
    values = column.values
    if len(values) > len(places):  # few of the values occur
        has_value = (places > 0) & (places <= len(values))
        used_places, index_in_used = np.unique(places[has_value], return_inverse=True)
        places[:] = 0
        places[has_value] = index_in_used + 1
        values = [values[place - 1] for place in used_places.tolist()]
    # The number at each place; other places are clipped to the first or last.
    numbers = np.full(len(values) + 2, missing, dtype=np.int64)
    numbers[1:-1] = to_numbers(values)
    return np.asarray(numbers.take(places, mode="clip"))


def key_positions(codes: Codes | None, keys: Keys) -> Int:
    """Returns for each row the position of its key (``codes``) in ``keys``; −1 if it is none of them."""
    assert codes is not None
    if isinstance(codes.values, range) and codes.values.stop - codes.low > len(codes.codes):  # bins of wide numbers
        bins = np.array(keys, dtype=np.int64)
        # The place of the first of these bins that is not below the row's.
        nearest = np.minimum(np.searchsorted(bins, codes.codes), max(len(bins) - 1, 0))
        return np.where(bins[nearest] == codes.codes, nearest, -1) if len(bins) else np.full(len(codes.codes), -1)
    position_of_key = {key: position for position, key in enumerate(keys)}
    return map_values(codes, lambda values: [position_of_key.get(value, -1) for value in values])


def column_kind(batch: Batch, name: str) -> Kind:
    """Returns the type of the values of the column with this name; a column of any other type is read as strings."""
    kind = batch.kind(name)
    return kind if kind in ("boolean", "integer", "float", "string") else "string"


def check_scalars(description: str, names: Sequence[Any]) -> tuple[Any, ...]:
    """Returns labels or keys from a file as a tuple; raises unless they are distinct scalars. ``description`` names
    them in the message.
    """
    if not all(name is None or isinstance(name, (bool, int, float, str)) for name in names):
        raise TypeError(f"{description} are not all scalars")
    if any(isinstance(name, float) and math.isnan(name) for name in names):
        raise ValueError(f"{description} are not all numbers")
    if len(set(names)) < len(names):
        raise ValueError(f"{description} are not all different")
    return tuple(names)


def check_scalar_order(description: str, names: Sequence[Any]) -> tuple[Any, ...]:
    """Returns labels or keys from a file as a tuple; raises unless they are distinct scalars in order. ``description``
    names them in the message.
    """
    if sort_keys(check_scalars(description, names)) != tuple(names):
        raise ValueError(f"{description} are not in order")
    return tuple(names)


def check_key_order(feature: Feature, keys: Sequence[Any]) -> Keys:
    """Returns the keys of a feature from a file; raises unless they are distinct scalars in order."""
    return check_scalar_order(f"the keys of {feature.name!r}", keys)


def number_values(codes: Codes, threads: int) -> NumberedValues:
    """Returns the values of a column (``codes``) and the number of each row's value, from 0 on, −1 if it is missing.
    Values of a wide range are only those that occur.
    """
    renumbered = renumber_range(codes, threads)
    return NumberedValues(zero_based_codes(renumbered, threads), renumbered.values)


def zero_based_codes(codes: Codes, threads: int = 1) -> NDArray[np.int32]:
    """Returns for each row the index of its value in ``codes.values``, −1 if it is missing."""
    if codes.low == 0 and codes.codes.dtype == np.int32:
        return np.ascontiguousarray(codes.codes)
    return _core.shifted(np.ascontiguousarray(codes.codes), codes.low, len(codes.values), threads)


def finite_numbers(rows: ColumnReader, name: str) -> Real:
    """Returns the column of numbers with this name (rows), NaN where missing; raises if one is infinite."""
    numbers = number_column(rows, name).astype(np.float64)
    check_finite_column(numbers, name, rows)
    return numbers


# Families that are counted by key -------------------------------------------------------------------------------------


class KeyedFamily(Family):
    """The base of families whose sums are counts by key."""

    keyed: ClassVar[bool] = True

    def has_density(self) -> bool:
        """Returns False: values have probabilities, not densities."""
        return False

    def shares(self, feature: Feature, keys: Keys, cells: Real, choice: Choice) -> tuple[Shares, Int]:
        """Returns the shares of a feature's cells, from which rows can be left out, and for each key the number of its
        cell. ``cells`` has the rows of each key (keys × classes).
        """
        declared = self.permanent_keys() or frozenset()  # keys that stay without rows
        is_declared = np.array([key in declared for key in keys], dtype=np.bool_)
        return Shares(cells, self.pseudo_counts(keys, choice.alpha), choice.how, is_declared), np.arange(len(keys))

    def leave_one_out(self, features: Features, sums: Counts, choice: Choice, held_out: HeldOutRows) -> Real:
        """Returns log P(values | class) of each held-out row without itself (rows × classes). Only the row's own cell
        changes, and the formula is exact.
        """
        scores = np.zeros((len(held_out.labels), held_out.n_classes))
        for f, feature in enumerate(features):
            keys, counts = sums.feature(f)  # the rows of each key (keys × classes)
            if keys:
                shares, cell_of_key = self.shares(feature, keys, counts.value, choice)
                # The place of each row's key. A row whose place is −1 gets the last entry: it is in no cell.
                positions = key_positions(self.keys_of(held_out.rows, feature, held_out.threads), keys)
                scores += shares.log_leave_one_out(np.append(cell_of_key, -1)[positions], held_out)
        return scores


class BinnedFamily(KeyedFamily):
    """The base of families whose keys are the numbers of fine bins; of a block, of the bins of each column."""

    def has_density(self) -> bool:
        """Returns True: numbers in bins have densities."""
        return True

    def keys_of(self, rows: ColumnReader, feature: Feature, threads: int = 1, strict: bool = True) -> Codes | None:
        """Returns the number of each row's bin as codes; None for a block. ``strict`` makes no difference, because
        every number has a bin.
        """
        if feature.columns:
            return None
        numbers = number_column(rows, feature.name)
        try:
            bins = _core.bins(numbers, feature.origin, feature.unit, threads)
        except _core.BadValue:  # a number is infinite or too far from the origin
            clipped = clip_to_numbered_bins(numbers, feature)
            finite = np.where(np.isinf(clipped), feature.origin, clipped)
            bins = _core.bins(finite, feature.origin, feature.unit, threads)
        return encode_bins(bins)


def encode_bins(bins: Int) -> Codes:
    """Returns the numbers of the rows' bins (``bins``) as codes; MISSING_BIN is a missing value."""
    bins_of_values = bins if int(bins.min(initial=0)) > MISSING_BIN else bins[bins != MISSING_BIN]
    low, high = (int(bins_of_values.min()), int(bins_of_values.max())) if len(bins_of_values) else (0, -1)
    return Codes(bins, low, range(low, high + 1))


def clip_to_numbered_bins(numbers: NDArray[Any], feature: Feature) -> Real:
    """Returns numbers with those that are too far from the feature's origin moved to the farthest bin that has a
    number; infinite numbers stay.
    """
    farthest = MOST_BINS_FROM_ORIGIN * feature.unit
    numbers = numbers.astype(np.float64)
    return np.where(np.isinf(numbers), numbers, np.clip(numbers, feature.origin - farthest, feature.origin + farthest))
