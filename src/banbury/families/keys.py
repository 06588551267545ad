"""Counts by key: the rows of each class with each value, combination of values, or bin; and the families based on them."""

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
    Features,
    HeldOutRows,
    Kind,
    Reads,
    RowsToCount,
    Stored,
    column_of,
    permanent_keys,
    side_by_side,
)
from banbury.reading import Batch, Codes
from banbury.sums import Counts, Keys, as_index, is_nonzero, readable_counts, sort_keys

FARTHEST = 2.0**52  # bins from the origin that a number may be
ListedCounts = list[tuple[Keys, Integers]]  # of each column its keys, and the rows of each

WIDEST_LOOKUP = 1 << 20  # bins in a narrower range are looked up as they are
MOST_CELLS = 2**28  # of a table of values and classes: two gigabytes
LOWEST = int(np.iinfo(np.int64).min)  # stands for a missing value
KEY_TYPES: dict[Kind, type] = {"boolean": bool, "integer": int, "float": float, "string": str}


class KeyCounter(Counter):
    """Counts the rows of each key and class."""

    def reads(self, feature: Feature) -> Reads | None:
        """Returns None: the first rows decide what a column of a text file is read as."""
        return None

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        """Returns what two features must have in common for their counts to be added: the types of their values."""
        return feature.kind, feature.kinds

    def describe_scale(self, feature: Feature) -> str:
        """Returns nothing, because values have no origin and unit."""
        return ""

    def settle(self, features: Features, batch: Batch) -> Features:
        """Returns the features with the type of each column in the first rows."""
        return Features.of(feature._replace(kind=kind_of(batch, feature.name)) for feature in features)

    def key(self, feature: Feature, key: Any) -> str:
        """Returns a key in words, for messages."""
        return f"value {key!r}"

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        """Returns the keys of a feature from a file; raises an error unless they are valid, in order and distinct."""
        return scalar_keys(feature, keys)

    def check(self, features: Features, sums: Counts, rows: Integers, classes: Sequence[Any]) -> None:
        """Raises an error if no rows can have these sums. ``rows`` has the rows of each class, and ``classes`` their
        labels.
        """
        for line, label in np.argwhere(sums.cells.is_negative()):
            f = int(np.searchsorted(sums.offsets, line, side="right")) - 1
            key = sums.keys[f][line - sums.offsets[f]]
            name = features.names[f]
            shown = self.key(features[f], key)
            raise errors.negative_count(readable_counts(sums.cells)[line, label], classes[label], name, shown, key=key)
        super().check(features, sums, rows, classes)

    def summary(self, feature: Feature, sums: Counts, missing: str) -> str:
        """Describes how many values were counted for a feature, and which are the most frequent; ``missing`` is a
        phrase to append about rows without a value.
        """
        by_frequency = [repr(sums.keys[0][k]) for k in np.argsort(-sums.cells.value.sum(axis=1), kind="stable")]
        n_keys = errors.many(len(by_frequency), "combination" if feature.columns else "value")
        return f"{n_keys}{missing}: {errors.listed(by_frequency, 6)}"

    def restore(self, features: Features, stored: Stored, n_classes: int) -> Counts:
        """Returns the sums that a file holds; raises an error if no rows can have them."""
        keys = stored.keys(features, self.check_keys)
        counts = Counts(keys, stored.integers("cells", (sum(map(len, keys)), n_classes)))
        if counts.without_empty(permanent_keys(features)) is not counts:
            raise ValueError("a value has no rows")
        return counts


def count_values(names: Sequence[str], kinds: Sequence[Kind | None], rows: RowsToCount) -> ListedCounts:
    """Returns for each of these columns its distinct values, in order, and the rows of each (values × classes).
    ``kinds`` are the types that values are read as, None for the column's own.
    """
    columns = zip(names, kinds, strict=True)
    return count_codes(names, [narrow(rows.batch.codes(name, kind), rows) for name, kind in columns], rows)


def count_codes(names: Sequence[str], columns: Sequence[Codes], rows: RowsToCount) -> ListedCounts:
    """Returns for each column of codes the distinct values, in order, and the rows of each (values × classes).
    ``names`` are those of the columns, for messages.
    """
    if not columns:
        return []
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
    cells, _ = rows.run_kernel(_core.count_codes, names, codes, lowest_codes, n_values_of)
    is_occupied = np.asarray(is_nonzero(cells).any(axis=1))
    counted = []
    first_line = 0
    for column in columns:
        used_codes = np.flatnonzero(is_occupied[first_line : first_line + len(column.values)])
        keys = [column.values[k] for k in used_codes.tolist()]
        order = sort_keys(keys)
        if order != tuple(keys):
            position: dict[Any, int] = dict(zip(keys, used_codes.tolist(), strict=True))
            used_codes = np.array([position[key] for key in order])
        counted.append((order, cells.take(as_index(first_line + used_codes), 0)))
        first_line += len(column.values)
    return counted


def narrow(column: Codes, rows: RowsToCount) -> Codes:
    """Returns the codes of a column such that their table over the classes is not much larger than the column: a wide
    range of integers is renumbered by what occurs.
    """
    if not isinstance(column.values, range) or len(column.values) * len(rows.labels) <= max(2**20, len(column.codes)):
        return column
    return dense(column, rows.threads)


def dense(column: Codes, threads: int) -> Codes:
    """Returns the codes of a column, with the integers of a range numbered by what occurs, because a wide range may
    hold few of them.
    """
    if not isinstance(column.values, range):
        return column
    integers = np.ascontiguousarray(column.codes)
    if len(column.values) <= 64:
        return Codes(_core.shifted(integers, column.low, len(column.values), threads), 0, list(column.values))
    codes, first_rows, _ = _core.encode_records(
        integers.view(np.uint8).reshape(len(integers), integers.itemsize), threads
    )
    values = integers[first_rows].tolist()
    if LOWEST in values:
        missing = values.index(LOWEST)
        codes = np.where(codes == missing, -1, codes - (codes > missing)).astype(np.int32)
        del values[missing]
    return Codes(codes, 0, values)


def look_up(column: Any, find_places: Callable[[Sequence[Any]], Sequence[int]], absent: int = -1) -> Int:
    """Returns the place of each row's value, or ``absent`` if it is missing. ``column`` is codes.

    ``find_places`` is a function that returns the places of a list of values.
    """
    codes = np.subtract(column.codes, column.low - 1, dtype=np.int64)
    values = column.values
    if len(values) > len(codes):  # a wide range, of which few values occur
        has_value = (codes > 0) & (codes <= len(values))
        used_codes, place_in_used = np.unique(codes[has_value], return_inverse=True)
        codes[:] = 0
        codes[has_value] = place_in_used + 1
        values = [values[k - 1] for k in used_codes.tolist()]
    place_of_code = np.full(len(values) + 2, absent, dtype=np.int64)  # of one before all values, and one after
    place_of_code[1:-1] = find_places(values)
    return np.asarray(place_of_code.take(codes, mode="clip"))


def places_of(codes: Codes | None, keys: Keys) -> Int:
    """Returns the place in ``keys`` of each row's key (``codes``), −1 if it is none of them."""
    assert codes is not None
    if isinstance(codes.values, range):  # the numbers of bins, in order
        bins = np.array(keys, dtype=np.int64)
        n_in_range = codes.values.stop - codes.low
        if n_in_range < WIDEST_LOOKUP:
            lookup = np.full(n_in_range + 1, -1, dtype=np.int32)
            inside = (bins >= codes.low) & (bins < codes.low + n_in_range)
            lookup[bins[inside] - codes.low] = np.flatnonzero(inside)
            return lookup[np.where(codes.codes == LOWEST, n_in_range, codes.codes - codes.low)].astype(np.int64)
        nearest = np.minimum(np.searchsorted(bins, codes.codes), max(len(bins) - 1, 0))
        return np.where(bins[nearest] == codes.codes, nearest, -1) if len(bins) else np.full(len(codes.codes), -1)
    place_of_key = {key: k for k, key in enumerate(keys)}
    if len(codes.values) > len(codes.codes):
        return look_up(codes, lambda values: [place_of_key.get(value, -1) for value in values])
    return np.array([*(place_of_key.get(value, -1) for value in codes.values), -1], dtype=np.int64).take(codes.codes)


def kind_of(batch: Batch, name: str) -> Kind:
    """Returns the type of a column; a column of any other type counts as strings."""
    kind = batch.kind(name)
    return kind if kind in ("boolean", "integer", "float", "string") else "string"


def scalars(what: str, names: Any) -> tuple[Any, ...]:
    """Returns labels or keys from a file; raises an error unless they are distinct scalars. ``what`` names them in the
    message.
    """
    if not all(name is None or isinstance(name, (bool, int, float, str)) for name in names):
        raise TypeError(f"{what} are not all scalars")
    if any(isinstance(name, float) and math.isnan(name) for name in names):
        raise ValueError(f"{what} are not all numbers")
    if len(set(names)) < len(names):
        raise ValueError(f"{what} are not all different")
    return tuple(names)


def names_of(what: str, names: Any) -> tuple[Any, ...]:
    """Returns labels or keys from a file; raises an error unless they are distinct scalars in order. ``what`` names
    them in the message.
    """
    if sort_keys(scalars(what, names)) != tuple(names):
        raise ValueError(f"{what} are not in order")
    return tuple(names)


def scalar_keys(feature: Feature, keys: Any) -> Keys:
    """Returns the keys of a feature from a file; raises an error unless they are distinct scalars in order."""
    return names_of(f"the keys of {feature.name!r}", keys)


def dense_numbers(codes: Codes, threads: int) -> tuple[NDArray[np.int32], Sequence[Any]]:
    """Returns the number of each row's value among those that occur, −1 if it is missing; and these values."""
    codes_in_use = dense(codes, threads)
    return code_numbers(codes_in_use, threads), codes_in_use.values


def code_numbers(codes: Codes, threads: int = 1) -> NDArray[np.int32]:
    """Returns the number of each row's value among all possible values, −1 if it is missing."""
    if codes.low == 0 and codes.codes.dtype == np.int32:
        return np.ascontiguousarray(codes.codes)
    return _core.shifted(np.ascontiguousarray(codes.codes), codes.low, len(codes.values), threads)


def finite_numbers(rows: ColumnReader, name: str) -> Real:
    """Returns a column of numbers, NaN where missing; raises an error if one is infinite."""
    numbers = column_of(rows, name).astype(np.float64)
    for row in np.flatnonzero(np.isinf(numbers)).tolist():
        raise errors.bad_value("infinite", float(numbers[row]), name, rows.first_row + row, rows.source)
    return numbers


# Families that are counted by key -------------------------------------------------------------------------------------


class KeyedFamily(Family):
    """The base of families whose sums are counts by key."""

    keyed: ClassVar[bool] = True

    def has_density(self) -> bool:
        """Values have probabilities, not densities."""
        return False

    def shares(self, feature: Feature, keys: Keys, cells: Real, choice: Choice) -> tuple[Shares, Int]:
        """Returns the shares of a feature's cells, from which rows can be left out, and the cell of each key. ``cells``
        has the rows of the keys (keys × classes).
        """
        declared = self.permanent_keys() or frozenset()
        is_declared = np.array([key in declared for key in keys], dtype=np.bool_)
        return Shares(cells, self.pseudo_counts(keys, choice.alpha), choice.how, is_declared), np.arange(len(keys))

    def leave_one_out(self, features: Features, sums: Counts, choice: Choice, held_out: HeldOutRows) -> Real:
        """Scores each row by all others. Only the row's own cell changes, and the formula is exact."""
        scores = np.zeros((len(held_out.labels), held_out.n_classes))
        for f, feature in enumerate(features):
            keys, rows = sums.feature(f)
            if keys:
                shares, cell_of_key = self.shares(feature, keys, rows.value, choice)
                places = places_of(self.keys_of(held_out.rows, feature, held_out.threads), keys)
                scores += shares.log_leave_one_out(np.append(cell_of_key, -1)[places], held_out)
        return scores


class BinnedFamily(KeyedFamily):
    """The base of families whose keys are the numbers of fine bins; of a block, of the bins of each column."""

    def has_density(self) -> bool:
        """Numbers in bins have densities."""
        return True

    def keys_of(self, rows: ColumnReader, feature: Feature, threads: int = 1, strict: bool = True) -> Codes | None:
        """Returns the number of the bin that each row's value is in, as codes; None for a block. ``strict`` makes no
        difference: every number has a bin.
        """
        if feature.columns:
            return None
        numbers = column_of(rows, feature.name)
        try:
            bins = _core.bins(numbers, feature.origin, feature.unit, threads)
        except _core.BadValue:  # of a row that is counted at the farthest bin, or not at all
            reachable = within_reach(numbers, feature)
            origin = feature.origin
            reachable = np.nan_to_num(reachable, nan=np.nan, posinf=origin, neginf=origin)
            bins = _core.bins(reachable, feature.origin, feature.unit, threads)
        return bin_codes(bins)


def bin_codes(bins: Int) -> Codes:
    """Returns the numbers of bins, one per row, as codes; LOWEST is a missing value."""
    present = bins if int(bins.min(initial=0)) > LOWEST else bins[bins != LOWEST]
    low, high = (int(present.min()), int(present.max())) if len(present) else (0, -1)
    return Codes(bins, low, range(low, high + 1))


def within_reach(numbers: NDArray[Any], feature: Feature) -> Real:
    """Returns the numbers of a feature, with those whose bins are too far away to be numbered moved to the farthest
    bin; infinite numbers stay.
    """
    reach = FARTHEST * feature.unit
    numbers = numbers.astype(np.float64)
    return np.where(np.isinf(numbers), numbers, np.clip(numbers, feature.origin - reach, feature.origin + reach))
