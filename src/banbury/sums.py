"""Counts, Words, Moments and Products: the kinds of sums that serve every family. They add, subtract and scale.

Every sum is a whole number (``_core.Integers``): of rows, of parts of a row (10⁻¹⁸) if weights are fractional, or of steps of a
column's grid. So subtracting removes rows exactly, equal sums are equal to the last bit, and a class without rows has sums of
zero. All four have one interface: ``+``, ``-``, ``times``, ``take``, ``merge``, ``same``, ``select``, ``present``,
``arrays``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from itertools import compress
from math import ceil, prod
from operator import add, sub
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Bool, Int, Real, divide, over_classes

Key = bool | int | float | str | None
Keys = tuple[Key, ...]

GRID = 57  # z is counted in steps of 2**-57, and its products in steps of 2**-114
MOST_ROWS = 2.0**63  # rows, or their weight, stay below this
ROUNDING = 1e-12  # sums that were rounded to doubles count as different if they differ by a larger share


# Whole numbers of any size -------------------------------------------------------------------------------------------


def as_index(numbers: Any) -> Int:
    """Returns a sequence of class, row or line numbers as a contiguous array of int64, of the same length."""
    return np.ascontiguousarray(numbers, dtype=np.int64)


def zeros(*shape: int) -> Integers:
    """Returns exact integers of this shape, all 0."""
    return Integers.zeros(list(shape))


def from_python_integers(numbers: NDArray[Any], digits: int) -> Integers:
    """Converts ``numbers``, an array of Python integers of any shape in units of 10**-``digits``, to exact integers of
    the same shape. An exact integer is stored as limbs of 64 bits, the lowest first.
    """
    flat_numbers = [int(number) for number in numbers.ravel()]
    n_limbs = 1 + max((number.bit_length() for number in flat_numbers), default=0) // 64
    packed_bytes = b"".join(number.to_bytes(8 * n_limbs, "little", signed=True) for number in flat_numbers)
    limbs = np.frombuffer(packed_bytes, dtype="<i8").astype(np.int64).reshape(*numbers.shape, n_limbs)
    return Integers.of(limbs, digits)


def to_python_integers(sums: Integers, digits: int) -> NDArray[Any]:
    """Converts exact integers to an array (of objects) of Python integers in units of 10**-``digits``, in the same
    shape. ``digits`` is at least that of the sums.
    """
    limbs = np.ascontiguousarray(sums.limbs()).astype("<i8")  # (… × limbs), 64 bits each, the lowest first
    n_bytes = 8 * limbs.shape[-1]  # of each number
    packed_bytes = limbs.tobytes()
    factor = 10 ** (digits - sums.digits)
    numbers = np.empty(limbs.size // limbs.shape[-1], dtype=object)  # flat
    for index in range(len(numbers)):
        number_bytes = packed_bytes[index * n_bytes : (index + 1) * n_bytes]
        numbers[index] = factor * int.from_bytes(number_bytes, "little", signed=True)
    return numbers.reshape(limbs.shape[:-1])


def readable_counts(numbers: Integers) -> NDArray[Any]:
    """Converts exact numbers of rows, of any shape, for people: to an array of integers if all are whole, otherwise of
    floats.
    """
    limbs = numbers.limbs()  # (… × limbs), 64 bits each, the lowest first
    return limbs[..., 0] if numbers.digits == 0 and limbs.shape[-1] == 1 else numbers.value


def encode_weights(weights: Real) -> NDArray[Any]:
    """Encodes weights, one per row, for the kernels: whole weights as int64 (rows), others in units of 10⁻¹⁸ of a row,
    as limbs of 64 bits (rows × limbs). Soft labels (rows × classes) are always encoded as limbs (rows × classes ×
    limbs). Raises if the sum is too large.
    """
    if not float(weights.sum()) < MOST_ROWS * (1.0 - 2.0**-40):  # so that the exact sum is below it too
        raise errors.too_many_rows()
    if weights.ndim == 1 and bool(np.all(weights == np.rint(weights))):
        return weights.astype(np.int64)
    return _core.parts(np.ascontiguousarray(weights, dtype=np.float64))


def decode_weights(weights: NDArray[Any]) -> Real:
    """Converts encoded weights (rows, or rows × limbs of units of 10⁻¹⁸) back to floats (rows)."""
    return weights.astype(np.float64) if weights.ndim == 1 else Integers.of(weights.view(np.int64), 18).value


def has_weight(weights: NDArray[Any]) -> Bool:
    """Returns whether each row has a positive weight; ``weights`` are encoded (rows, or rows × limbs)."""
    return np.asarray(weights > 0 if weights.ndim == 1 else weights.any(axis=1))


def kernel_weights(
    class_numbers: NDArray[np.int32], weights: NDArray[Any] | None
) -> tuple[NDArray[np.int32], NDArray[Any] | None]:
    """Returns class numbers (rows) and encoded weights as the kernels take them: rows of weight 0 get the class number
    −1. ``class_numbers`` are those of the rows, −1 for none; ``weights`` are one float per row, or encoded already (see
    ``encode_weights``), or None if all are 1.
    """
    if weights is None:
        return class_numbers, None
    encoded_weights = encode_weights(weights) if weights.dtype == np.float64 else np.ascontiguousarray(weights)
    return np.where(has_weight(encoded_weights), class_numbers, np.int32(-1)), encoded_weights


def sum_axis(sums: Integers, axis: int) -> Integers:
    """Returns the sums along an axis, which stays, with length 1."""
    # Every index of the axis becomes index 0 of 1.
    return sums.merge(np.zeros(sums.shape[axis], dtype=np.int64), 1, axis)


def is_nonzero(sums: Integers) -> NDArray[Any]:
    """Returns for each sum whether it is not 0, in the same shape."""
    return ~sums.is_zero()


def nonzero_lines(cells: Integers) -> Bool:
    """Returns for each line of a table (keys × classes) whether some cell of it is not 0."""
    limbs = cells.limbs()  # keys × classes × limbs; a cell is 0 if all its limbs are
    return np.asarray(over_classes(np.bitwise_or, limbs.reshape(len(limbs), limbs.shape[1] * limbs.shape[2])) != 0)


# Counts --------------------------------------------------------------------------------------------------------------


def is_all(numbers: Sequence[int], n: int) -> bool:
    """Whether these are the numbers from 0 to n − 1 in order. The length is compared first, which is cheap."""
    return len(numbers) == n and list(numbers) == list(range(n))


def sort_keys(keys: Any) -> Keys:
    """Returns keys as a tuple in an order that does not depend on the data: flags and numbers first, then strings, then
    None, then tuples.
    """
    keys = list(keys)
    try:
        return tuple(sorted(keys))
    except TypeError:
        return tuple(sorted(keys, key=_sort_key))


def _sort_key(key: Any) -> tuple[int, Any]:
    """Returns by what a key of any type is sorted: the number of its type, and its value, so that numbers come before
    strings, then None, then tuples.
    """
    if isinstance(key, tuple):
        return 3, tuple(map(_sort_key, key))
    if key is None:
        return 2, 0
    return int(isinstance(key, str)), key


class WholeKeys(Sequence[int]):
    """Keys that are whole numbers, in ascending order, as an array, because a tuple of many takes time and memory."""

    def __init__(self, numbers: Int) -> None:
        """``numbers`` are the keys, in ascending order."""
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers.tolist())

    def __contains__(self, key: object) -> bool:
        return key in self.numbers.tolist()

    def __getitem__(self, position: Any) -> Any:
        return tuple(self.numbers[position].tolist()) if isinstance(position, slice) else int(self.numbers[position])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.numbers.astype(dtype or np.int64, copy=bool(copy))

    def __eq__(self, other: object) -> bool:
        """Whether the other keys are the same, in the same order."""
        if isinstance(other, WholeKeys):
            return np.array_equal(self.numbers, other.numbers)
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))


class Combinations(Sequence[Any]):
    """Keys that are tuples of values, stored as the number of their cell in a table of all combinations of values.

    The tuples are created when they are needed, because there can be many. The values of each axis are in ascending order and
    of one type, and so are the cells; so the tuples are in ascending order too.
    """

    def __init__(self, axes: tuple[Keys, ...], cells: Int) -> None:
        """``axes`` has for each position of the tuples its values in order, ``cells`` for each key the number of its
        cell in the table of all combinations, in which the last axis varies fastest.
        """
        self.axes = axes
        self.cells = cells

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[tuple[Key, ...]]:
        """Yields the tuples, each with a value of each axis, in the order of their cells. A key's cell is the number of
        its combination of values.
        """
        axis_positions = np.unravel_index(self.cells, [len(axis) for axis in self.axes])  # by axis, one per key
        values = (  # by axis, one per key
            map(axis.__getitem__, positions.tolist()) for axis, positions in zip(self.axes, axis_positions, strict=True)
        )
        return zip(*values, strict=True)

    def __getitem__(self, position: Any) -> Any:
        return tuple(self)[position]

    def __eq__(self, other: object) -> bool:
        """Whether the other keys are the same, in the same order."""
        if isinstance(other, Combinations) and self.axes == other.axes:
            return np.array_equal(self.cells, other.cells)
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        """Returns how the keys are pickled: without values that no key has any more, so that nothing forgotten is kept.
        A key is the number of its cell in the table of all combinations of the axes' values.
        """
        axis_positions = np.unravel_index(self.cells, [len(axis) for axis in self.axes])  # by axis, one per key
        axes_in_use = zip(self.axes, map(np.unique, axis_positions), strict=True)  # with the positions in use
        axes = tuple(tuple(axis[position] for position in positions.tolist()) for axis, positions in axes_in_use)
        return Combinations, (axes, cells_of(self, axes))


def cells_of(keys: Sequence[Any], axes: Sequence[Keys]) -> Int:
    """Returns the number of each key's cell in the table of all combinations of the axes' values; the last axis varies
    fastest. The keys are tuples with one value of each axis. ``Combinations`` holds such keys as the numbers of their
    cells (``keys.cells``) in a table with axes of its own (``keys.axes``).
    """
    if isinstance(keys, Combinations) and keys.axes == axes:
        return keys.cells
    position_of_value = [{value: position for position, value in enumerate(axis)} for axis in axes]  # by axis
    positions = list[Int]()  # by axis, the position of each key's value
    if isinstance(keys, Combinations):
        old_positions = np.unravel_index(keys.cells, [len(axis) for axis in keys.axes])  # by axis, one per key
        for new_position_of, old_axis, old_axis_positions in zip(
            position_of_value, keys.axes, old_positions, strict=True
        ):
            new_positions = as_index([new_position_of.get(value, -1) for value in old_axis])  # −1: no key has it
            positions.append(new_positions[old_axis_positions])
    else:
        for new_position_of, axis_values in zip(position_of_value, zip(*keys, strict=True), strict=False):
            positions.append(as_index([new_position_of[value] for value in axis_values]))
    cell_numbers = np.zeros(len(keys), dtype=np.int64)
    for axis, axis_positions in zip(axes, positions, strict=False):
        cell_numbers = cell_numbers * len(axis) + axis_positions
    return cell_numbers


def unite_keys(first_keys: Sequence[Any], second_keys: Sequence[Any]) -> Any:
    """Returns the sorted union of two lists of sorted keys: as WholeKeys or Combinations if both are, otherwise as a
    tuple.
    """
    if isinstance(first_keys, WholeKeys) and isinstance(second_keys, WholeKeys):
        return WholeKeys(_merge_sorted(first_keys.numbers, second_keys.numbers))
    if isinstance(first_keys, Combinations) and isinstance(second_keys, Combinations):
        axes = tuple(
            first_axis if first_axis == second_axis else sort_keys({*first_axis, *second_axis})
            for first_axis, second_axis in zip(first_keys.axes, second_keys.axes, strict=True)
        )
        if all(len(set(map(type, axis))) < 2 for axis in axes) and prod(map(len, axes)) < 2**62:
            return Combinations(axes, _merge_sorted(cells_of(first_keys, axes), cells_of(second_keys, axes)))
    return sort_keys(set(first_keys).union(second_keys))


def _merge_sorted(first: Int, second: Int) -> Int:
    """Returns the sorted union of ``first`` and ``second``, two sorted arrays without duplicates. Usually few numbers of
    the shorter one are new, so these are inserted into the longer one.
    """
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    positions = np.searchsorted(longer, shorter)  # where the numbers of the shorter one are or belong in the longer
    is_new = longer[np.minimum(positions, len(longer) - 1)] != shorter if len(longer) else np.ones(0, dtype=np.bool_)
    return np.insert(longer, positions[is_new], shorter[is_new]) if is_new.any() else longer


def _select_keys(keys: Sequence[Any], is_used: Bool) -> Any:
    """Returns the keys for which ``is_used`` (a boolean per key) is true, in the same form: WholeKeys, Combinations or
    a tuple.
    """
    if isinstance(keys, WholeKeys):
        return WholeKeys(keys.numbers[is_used])
    return (
        Combinations(keys.axes, keys.cells[is_used])
        if isinstance(keys, Combinations)
        else tuple(compress(keys, is_used))
    )


@dataclass(frozen=True, eq=False)
class Counts:
    """The number of rows by key and class, for every keyed feature: one table, feature below feature.

    ``keys[f]`` are feature f's keys in order; its cells are lines ``offsets[f]`` to ``offsets[f + 1]`` of ``cells``.
    """

    keys: tuple[Keys, ...]  # of each feature
    cells: Integers  # the number of rows (keys of all features, classes)
    # The caches of the counts from which these features were selected, which both share; None: there are none yet.
    shared_caches: tuple[dict[Any, Any], ...] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def offsets(self) -> Int:
        """The first line of each feature in ``cells``, and the number of lines."""
        return np.cumsum([0, *map(len, self.keys)], dtype=np.int64)

    @cached_property
    def caches(self) -> tuple[dict[Any, Any], ...]:
        """A dictionary for each feature, in which families store what they compute from these counts, whatever the
        prior. A selection of features uses the same ones.
        """
        return tuple({} for _ in self.keys) if self.shared_caches is None else self.shared_caches

    @classmethod
    def join(cls, keys_and_cells: Sequence[tuple[Keys, Integers]], n_classes: int) -> Counts:
        """Joins the features of a list, each given by its keys and cells (rows by key and class, keys × classes), into
        one table.
        """
        if not keys_and_cells:
            return cls((), zeros(0, n_classes))
        feature_cells = [cells for _, cells in keys_and_cells]
        joined_cells = feature_cells[0] if len(feature_cells) == 1 else Integers.join(feature_cells)
        return cls(tuple(keys for keys, _ in keys_and_cells), joined_cells)

    def feature(self, number: int) -> tuple[Keys, Integers]:
        """Returns the keys of feature number ``number`` and its cells, which are the rows of each key (keys × classes).
        The cells of feature f are the lines ``offsets[f]`` to ``offsets[f + 1]``.
        """
        if len(self.keys) == 1:
            return self.keys[number], self.cells
        return self.keys[number], self.cells.take(np.arange(self.offsets[number], self.offsets[number + 1]), 0)

    def select(self, feature_numbers: Sequence[int]) -> Counts:
        """Returns the counts of the features with these numbers, in this order; they share ``caches``, in which families
        store what they compute from the counts of each feature.
        """
        if is_all(feature_numbers, len(self.keys)):
            return self
        n_classes = self.cells.shape[1]
        selection = Counts.join([self.feature(number) for number in feature_numbers], n_classes)
        return replace(selection, shared_caches=tuple(self.caches[number] for number in feature_numbers))

    @cached_property
    def present(self) -> Integers:
        """The number of rows that have a value of each feature (features × classes)."""
        feature_of_line = np.repeat(np.arange(len(self.keys)), np.diff(self.offsets))  # a line is a key of a feature
        return self.cells.merge(as_index(feature_of_line), len(self.keys), 0)

    def arrays(self) -> dict[str, Integers]:
        """Returns the sums by name, for a file."""
        return {"cells": self.cells}

    def state(self) -> dict[str, NDArray[Any]]:
        """Returns the other arrays for a file: none."""
        return {}

    def with_keys(self, keys: tuple[Keys, ...]) -> Counts:
        """Returns the counts in a table with these keys, a sorted sequence for each feature, which include all keys of
        this table. Lines of new keys are 0. The cells of feature f are the lines ``offsets[f]`` to ``offsets[f + 1]``
        of the table.
        """
        if keys == self.keys:
            return self
        new_offsets = np.cumsum([0, *map(len, keys)])  # the first line of each feature in the new table
        new_line_of_line = np.empty(self.cells.shape[0], dtype=np.int64)  # for each old line its new number
        for feature, (old_keys, new_keys) in enumerate(zip(self.keys, keys, strict=True)):
            lines = slice(self.offsets[feature], self.offsets[feature + 1])
            new_start = new_offsets[feature]
            if old_keys == new_keys:
                new_line_of_line[lines] = np.arange(new_start, new_offsets[feature + 1])
            elif isinstance(new_keys, Combinations):
                old_cells = cells_of(old_keys, new_keys.axes)  # the numbers by which combinations are sorted
                new_line_of_line[lines] = new_start + np.searchsorted(new_keys.cells, old_cells)
            elif isinstance(old_keys, WholeKeys) and isinstance(new_keys, WholeKeys):
                new_line_of_line[lines] = new_start + np.searchsorted(new_keys.numbers, old_keys.numbers)
            else:
                line_of_key = {key: line for line, key in enumerate(new_keys, new_start)}
                new_line_of_line[lines] = [line_of_key[key] for key in old_keys]
        return Counts(keys, self.cells.merge(new_line_of_line, int(new_offsets[-1]), 0))

    def union(self, other: Counts) -> tuple[Counts, Counts]:
        """Returns both counts in tables with the same keys: those that either has, sorted."""
        if self.keys == other.keys:
            return self, other
        united_keys = tuple(
            keys if keys is other_keys or keys == other_keys else unite_keys(keys, other_keys)
            for keys, other_keys in zip(self.keys, other.keys, strict=True)
        )
        return self.with_keys(united_keys), other.with_keys(united_keys)

    def without_empty(self, declared: Iterable[frozenset[Key] | None]) -> Counts:
        """Returns the counts without keys that no row has, unless they are declared. ``declared`` has for each feature
        the declared keys, or None. The cells of feature f are the lines from ``offsets[f]`` on, one for each key.
        """
        if not self.keys:
            return self
        is_used = nonzero_lines(self.cells)  # one for each line
        for feature, declared_keys in enumerate(declared):
            if declared_keys:
                start = self.offsets[feature]
                is_used[start : start + len(self.keys[feature])] |= [key in declared_keys for key in self.keys[feature]]
        return self.only(is_used)

    def only(self, is_used: Bool) -> Counts:
        """Returns the counts of the keys that are used; ``is_used`` has a boolean for each line of ``cells``, which is a
        key of a feature. The lines of feature f begin at ``offsets[f]``.
        """
        if is_used.all():
            return self
        used_by_feature = np.split(is_used, self.offsets[1:-1])  # a boolean for each key of the feature
        keys = tuple(
            _select_keys(feature_keys, is_used_key)
            for feature_keys, is_used_key in zip(self.keys, used_by_feature, strict=True)
        )
        return Counts(keys, self.cells.take(np.flatnonzero(is_used), 0))

    def coarsen(self, number: int, times: int | Int) -> Counts:
        """Returns the counts with the integer keys of feature number ``number`` halved ``times`` times, rounding down,
        and equal ones merged. For keys that are tuples, ``times`` has a number for each position.
        """
        keys_and_cells = [self.feature(feature) for feature in range(len(self.keys))]  # by feature
        keys, cells = keys_and_cells[number]  # cells: keys × classes
        if keys:
            are_tuples = not isinstance(times, int)
            halved_keys = np.array(keys, dtype=np.int64) >> times  # (keys), or keys × positions
            # The line of each key in the table of distinct halved keys.
            distinct_keys, new_line_of_line = np.unique(
                halved_keys, axis=0 if are_tuples else None, return_inverse=True
            )
            coarser_keys: Any = tuple(map(tuple, distinct_keys.tolist())) if are_tuples else WholeKeys(distinct_keys)
            keys_and_cells[number] = (
                coarser_keys,
                cells.merge(as_index(new_line_of_line.reshape(-1)), len(distinct_keys), 0),
            )
        return Counts.join(keys_and_cells, self.cells.shape[1])

    def __add__(self, other: Counts) -> Counts:
        """Returns the counts of both together."""
        first, second = self.union(other)
        return Counts(first.keys, first.cells + second.cells)

    def __sub__(self, other: Counts) -> Counts:
        """Returns these counts less the others. Cells may become negative."""
        first, second = self.union(other)
        return Counts(first.keys, first.cells - second.cells)

    def times(self, factor: float) -> tuple[Counts, bool]:
        """Returns the counts multiplied by a factor, and whether the product is exact."""
        cells, is_exact = self.cells.times(factor)
        return Counts(self.keys, cells), is_exact

    def take(self, classes: Any) -> Counts:
        """Returns the counts of the classes with these numbers, in this order."""
        return Counts(self.keys, self.cells.take(as_index(classes), 1))

    def merge(self, new_numbers: Any, n_classes: int) -> Counts:
        """Returns the counts with those of class c moved to class ``new_numbers[c]`` of ``n_classes`` classes; those
        that meet are added up.
        """
        return Counts(self.keys, self.cells.merge(as_index(new_numbers), n_classes, 1))

    def same(self, other: Counts) -> bool:
        """Whether keys and cells are equal."""
        return self.keys == other.keys and self.cells.same(other.cells)


class Keyless:
    """The sums that have no keys: those of words and of numbers."""

    keys: ClassVar[tuple[Keys, ...]] = ()

    def arrays(self) -> dict[str, Integers]:
        """Returns the sums by name, for a file; here none."""
        return {}

    def state(self) -> dict[str, NDArray[Any]]:
        """Returns the other arrays for a file by name; here none."""
        return {}

    def select(self, feature_numbers: Sequence[int]) -> Self:
        """Returns the sums of the features with these numbers. Here there is only one, so nothing is selected;
        subclasses with more select.
        """
        return self

    def without_empty(self, declared: Iterable[frozenset[Key] | None]) -> Self:
        """Returns these sums: without keys, none can be empty, whatever keys are declared."""
        return self


# Words ---------------------------------------------------------------------------------------------------------------

# The names of the arrays that a file has for words: for whole weights, or for fractional ones.
WORD_STATES = (
    {"bytes", "ends", "starts", "classes", "texts", "occurrences", "documents"},
    {"bytes", "ends", "starts", "classes", "texts.parts", "parts"},
)


class Words(Keyless):
    """The words of one text column: how often each occurs in each class, how many texts have it, and the number of texts."""

    def __init__(self, table: _core.Words) -> None:
        """``table`` is the table of words in the core."""
        self._table = table

    @property
    def table(self) -> _core.Words:
        """The table of words in the core."""
        return self._table

    def read_texts(self) -> Words:
        """Returns these words. Subclasses that delay reading texts read them now."""
        return self

    @property
    def texts(self) -> Integers:
        """The number of texts of each class (classes), including those without a single word."""
        return self.table.texts()

    @property
    def present(self) -> Integers:
        """The number of texts of each class (1 × classes)."""
        return self.texts.arranged([1, self.table.n_classes])

    def state(self) -> dict[str, NDArray[Any]]:
        """Returns the table as arrays by name, for a file."""
        return self.table.state()

    @property
    def occurrences(self) -> Integers:
        """The number of occurrences of all words together in each class (classes)."""
        return self.table.occurrences()

    def __add__(self, other: Words) -> Words:
        """Returns the words of both together."""
        return Words(other.add_to(self.table))

    def __sub__(self, other: Words) -> Words:
        """Returns these words less the others. Raises NotThere if a count would become negative."""
        return Words(other.take_from(self.table))

    def add_to(self, table: _core.Words) -> _core.Words:
        """Returns the table of words with these words added; raises if it would have too many rows."""
        try:
            return table.plus(self.table)
        except OverflowError:
            raise errors.too_many_rows() from None

    def take_from(self, table: _core.Words) -> _core.Words:
        """Returns the table of words with these words subtracted. Raises NotThere if it does not have them."""
        return table.minus(self.table)

    def times(self, factor: float) -> tuple[Words, bool]:
        """Returns the counts multiplied by a factor, and whether the product is exact."""
        try:
            table, is_exact = self.table.times(factor)
        except OverflowError:
            raise errors.too_many_rows() from None
        return Words(table), is_exact

    def same(self, other: Words) -> bool:
        """Whether all counts are equal."""
        return self.table.same(other.table)

    def take(self, classes: Any) -> Words:
        """Returns the words of the classes with these numbers, in this order."""
        return Words(self.table.take(as_index(classes)))

    def merge(self, new_numbers: Any, n_classes: int) -> Words:
        """Returns the words with those of class c moved to class ``new_numbers[c]`` of ``n_classes`` classes; those
        that meet are added up.
        """
        return Words(self.table.place(as_index(new_numbers), n_classes))

    def drop_absent_words(self) -> Words:
        """Returns the words in a table without the ids of words that no text contains any more. Columns of a matrix
        keep their ids. ``n_columns`` is 0 unless the words are such columns.
        """
        if self.table.n_columns or self.table.n_ids == self.table.n_words:
            return self
        return self.take(np.arange(self.table.n_classes))

    def most_frequent(self, n: int) -> list[str]:
        """Returns the names of the ``n`` words with most occurrences in all classes, most frequent first; ties by name,
        or by column number for columns of a matrix.
        """
        total_of_id = np.zeros(self.table.n_ids)  # occurrences in all classes, by the id of the word
        # About two million words × classes at a time, so that no temporary array is as long as all of them.
        ids_at_a_time = max(1, (1 << 21) // max(self.table.n_classes, 1))
        for start in range(0, len(total_of_id), ids_at_a_time):
            ids = np.arange(start, min(start + ids_at_a_time, len(total_of_id)), dtype=np.uint32)
            # Word ids[i] has the occurrences starts[i] to starts[i + 1], one for each class that has it.
            starts, _, occurrences, _ = self.table.pairs(ids)
            id_positions = np.repeat(np.arange(len(ids)), np.diff(starts))  # in ``ids``, of each occurrence
            total_of_id[ids] = np.bincount(id_positions, occurrences, len(ids))
        total_of_id = np.around(total_of_id, 9)  # decimals, so that sums of the same numbers are tied
        ids_in_order = self.table.in_order()  # sorted by the name of the word
        if self.table.n_columns:
            column_numbers = [int(name.removeprefix("#")) for name in self.table.words(ids_in_order)]
            ids_in_order = ids_in_order[np.argsort(column_numbers, kind="stable")]
        best_ids = ids_in_order[np.argsort(-total_of_id[ids_in_order], kind="stable")[:n]]
        return self.table.words(best_ids)

    def __reduce__(self) -> Any:
        return _unpickle_words, (self.table.n_classes, self.table.n_columns, self.table.state())


def _unpickle_words(n_classes: int, n_columns: int, state: Any) -> Words:
    """Builds words from a pickle: the number of classes, the number of columns of a matrix (0 for words of texts), and
    ``state``, the arrays of the table by name.
    """
    return Words(_core.Words.from_state(n_classes, n_columns, state))


# Moments -------------------------------------------------------------------------------------------------------------


def scale_sums(n: Integers, sums: Integers, factor: float, n_columns: int) -> tuple[Integers, Integers, bool]:
    """Returns numbers of rows ``n`` (…), and ``sums`` of z and of products of ``n_columns`` columns (… × sums),
    multiplied by a factor; and whether both are exact.

    If they are not, the sums are scaled as the rounded numbers of rows are, and rounded: sums of z towards zero and
    sums of squares upwards. So n Σz² ≥ (Σz)² still holds, and constant columns stay constant.
    """
    scaled_n, is_n_exact = n.times(factor)
    scaled_sums, are_sums_exact = sums.times(factor)
    if is_n_exact and are_sums_exact:
        return scaled_n, scaled_sums, True
    digits = max(n.digits, scaled_n.digits, sums.digits, 18)  # decimals of a unit that suits all
    # Python integers in this unit: numbers of rows before and after (…), and sums before (… × sums).
    old_rows, new_rows, old_sums = (to_python_integers(integers, digits) for integers in (n, scaled_n, sums))
    old_rows = np.where(old_rows == 0, 1, old_rows)[..., None]  # … × 1
    new_rows = new_rows[..., None]  # … × 1
    sums_times_rows = old_sums * new_rows
    toward_zero = np.where(sums_times_rows < 0, -(-sums_times_rows // old_rows), sums_times_rows // old_rows)
    rounded_sums = np.where(are_squares(n_columns), -(-sums_times_rows // old_rows), toward_zero)
    is_constant = _are_constant(old_sums, old_rows, n_columns)
    restored_sums = _restore_constants(rounded_sums, is_constant, old_sums[..., :n_columns] // old_rows)
    possible_sums = _limit_products(restored_sums, np.where(new_rows == 0, 1, new_rows))
    return scaled_n, from_python_integers(possible_sums, digits), False


def _are_constant(sums: NDArray[Any], rows: NDArray[Any], n_columns: int) -> Bool:
    """Returns whether each column (… × columns) has the same value z in all rows, a whole number of steps. ``sums`` are
    sums of the z of columns, then of products of pairs of columns (… × sums), ``rows`` the numbers of rows (… × 1).
    """
    sums_of_z = sums[..., :n_columns]
    return np.asarray((rows * sums[..., are_squares(n_columns)] == sums_of_z**2) & (sums_of_z % rows == 0))


def _restore_constants(sums: NDArray[Any], is_constant: Bool, values: NDArray[Any]) -> NDArray[Any]:
    """Returns the sums with those of products of constant columns computed anew: of a column and one that has the same
    z in all rows, it is the sum of the first times this z. Rounded sums would give constant columns a spread.
    ``sums`` are sums of the z of columns, then of products of pairs of columns (… × sums). ``is_constant`` and
    ``values`` (the z of constant columns) are … × columns.
    """
    n_columns = is_constant.shape[-1]
    i, j = np.tril_indices(n_columns)  # the columns of each pair
    sums_of_z = sums[..., :n_columns]
    products = np.where(is_constant[..., j], values[..., j] * sums_of_z[..., i], sums[..., n_columns:])
    restored_products = np.where(is_constant[..., i], values[..., i] * sums_of_z[..., j], products)
    return np.concatenate([sums_of_z, restored_products], axis=-1)


def are_squares(n_columns: int) -> Bool:
    """Returns for each sum of a block of columns whether it is a sum of squares. The sums are those of the columns,
    then those of the products of pairs (i, j), j ≤ i, ordered by i.
    """
    first_columns, second_columns = np.tril_indices(n_columns)
    return np.concatenate([np.zeros(n_columns, dtype=np.bool_), first_columns == second_columns])


def count_columns(n_sums: int) -> int:
    """Returns how many columns a block has whose columns and pairs of columns make ``n_sums`` sums."""
    return int(np.rint(((9 + 8 * n_sums) ** 0.5 - 3) / 2))


def _exceed_variances(sums: NDArray[Any], rows: NDArray[Any]) -> Bool:
    """Returns whether each pair of columns has a covariance larger than their variances allow (… × pairs). Exact,
    because the sums of columns, then of products of pairs (… × sums), and the numbers of rows (… × 1) are Python
    integers.
    """
    n_columns = count_columns(sums.shape[-1])
    i, j = np.tril_indices(n_columns)  # the columns of each pair
    # Those of the rows, times the square of their number.
    covariances = rows * sums[..., n_columns:] - sums[..., i] * sums[..., j]
    variances = covariances[..., i == j]
    return np.asarray((covariances**2 > variances[..., i] * variances[..., j]) & (i != j))


def _limit_products(sums: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Returns the sums with rounded products of pairs of columns that exceed their variances replaced by those of
    uncorrelated columns. If these are not whole numbers, they are rounded down and the squares of both columns are
    raised by one. ``sums``, of columns and then of products of pairs (… × sums), and the numbers of rows (… × 1) are
    Python integers.
    """
    is_excessive = _exceed_variances(sums, rows)
    n_columns = count_columns(sums.shape[-1])
    if not is_excessive.any():
        return sums
    i, j = np.tril_indices(n_columns)  # the columns of each pair
    sums_of_z = sums[..., :n_columns]
    uncorrelated_products = sums[..., i] * sums[..., j]
    products = np.where(is_excessive, uncorrelated_products // rows, sums[..., n_columns:])
    is_rounded = is_excessive & (uncorrelated_products % rows != 0)
    for column in range(n_columns):
        is_raised = (is_rounded & ((i == column) | (j == column))).any(axis=-1, keepdims=True)
        products = products + np.where((i == column) & (j == column) & is_raised, 1, 0)
    return np.concatenate([sums_of_z, products], axis=-1)


def shift_sums(n: Integers, sums: Integers, shift: Real, scale: Real) -> Integers:
    """Returns sums of z and of the products of pairs of columns for another origin and unit: z becomes scale · (z +
    shift).

    ``n`` has the numbers of rows (…), ``sums`` the sums of columns, then of products of pairs (… × sums); ``shift`` and
    ``scale`` have a number per column (… × columns).

    The shift is rounded to a step of z, which is 2⁻⁵⁷. If units become finer, nothing else is rounded. If they become
    coarser, sums of z are rounded towards zero and squares upwards, and constant columns stay constant.
    """
    digits = max(n.digits, sums.digits)
    n_columns = shift.shape[-1]
    rows = to_python_integers(n, digits)[..., None]  # … × 1
    old_sums = to_python_integers(sums, digits)  # the columns' sums, then those of products of pairs
    divisors = np.where(rows == 0, 1, rows)
    i, j = np.tril_indices(n_columns)  # the columns of each pair
    shift_in_steps = _each_number(lambda number: round(Fraction(number) * 2**GRID), shift)
    factors = _each_number(Fraction, scale)  # ``scale``, exactly
    sums_of_z = old_sums[..., :n_columns]  # … × columns
    sums_of_products = old_sums[..., n_columns:]  # … × pairs
    # The same sums, as fractions, for scale · (z + shift).
    moved_z = factors * (sums_of_z + rows * shift_in_steps)
    cross_terms = sums_of_z[..., i] * shift_in_steps[..., j] + sums_of_z[..., j] * shift_in_steps[..., i]
    moved_products = sums_of_products + cross_terms + rows * shift_in_steps[..., i] * shift_in_steps[..., j]
    moved_products = factors[..., i] * factors[..., j] * moved_products
    rounded_z = _each_number(int, moved_z)
    rounded_products = np.where(i == j, _each_number(ceil, moved_products), _each_number(int, moved_products))
    is_constant = _are_constant(old_sums, divisors, n_columns)
    constant_values = _each_number(round, moved_z / divisors)  # the new z of columns that are constant
    rounded_z = np.where(is_constant, rows * constant_values, rounded_z)
    new_sums = _restore_constants(np.concatenate([rounded_z, rounded_products], axis=-1), is_constant, constant_values)
    return from_python_integers(_limit_products(new_sums, divisors), digits)


def _each_number(operation: Callable[[Any], Any], numbers: NDArray[Any]) -> NDArray[Any]:
    """Returns an array with the result of the operation for each number, as Python objects, in the same shape."""
    return np.asarray(np.vectorize(operation, otypes=[object])(numbers))


def find_impossible(n: Integers, sums: Integers, spread: Real, n_columns: int) -> Bool:
    """Returns whether each class has sums that no rows can have (…): negative numbers of rows, sums without rows,
    negative variances, or covariances that exceed the variances.

    ``n`` has the numbers of rows (…), and ``sums`` those of ``n_columns`` columns and of products of their pairs (… ×
    sums). ``spread`` has the sums of products of deviations from the mean (… × pairs).
    """
    variances = spread[..., are_squares(n_columns)[n_columns:]]
    has_sums_without_rows = n.is_zero() & is_nonzero(sums).any(axis=-1)
    has_negative_square = sums.is_negative()[..., are_squares(n_columns)].any(axis=-1) | (variances < 0).any(axis=-1)
    is_impossible = np.asarray(n.is_negative() | has_sums_without_rows | has_negative_square)
    i, j = np.tril_indices(n_columns)  # the columns of each pair
    deviations = np.sqrt(np.maximum(variances, 0.0))
    # Pairs of columns whose covariance may exceed the variances; exact sums decide.
    is_doubtful = (np.abs(spread) > deviations[..., i] * deviations[..., j] * (1.0 - 1e-9)) & (i != j)
    digits = max(n.digits, sums.digits)
    # Only sums of several columns, whose only axis before the sums is the classes, are doubtful.
    for class_index in np.argwhere(is_doubtful.any(axis=-1) & ~is_impossible):  # an array of one class number
        rows, class_sums = (to_python_integers(integers.take(class_index, 0), digits) for integers in (n, sums))
        is_impossible[tuple(class_index)] = _exceed_variances(class_sums, rows[..., None]).any()
    return is_impossible


@dataclass(frozen=True, eq=False)
class SumsOfParts(Keyless):
    """Sums whose fields are sums: they are added, subtracted and compared field by field."""

    def _parts(self) -> Iterator[Any]:
        """Yields the values of the fields, in order; each is a kind of sums."""
        return (getattr(self, sums_field.name) for sums_field in fields(self))

    def __add__(self, other: Self) -> Self:
        """Returns the sums of both together."""
        return type(self)(*map(add, self._parts(), other._parts()))

    def __sub__(self, other: Self) -> Self:
        """Returns these sums less the others. ``below_zero`` says which classes then have sums that no rows can have."""
        return type(self)(*map(sub, self._parts(), other._parts()))

    def same(self, other: Self) -> bool:
        """Whether all sums are equal."""
        return all(part.same(other_part) for part, other_part in zip(self._parts(), other._parts(), strict=True))


@dataclass(frozen=True, eq=False)
class NumberSums(SumsOfParts):
    """The number of rows, and the sums of z and of products of columns, where z = (x − origin) / unit in steps of 2⁻⁵⁷.

    The last axis of ``sums`` has the columns, then the pairs (i, j), j ≤ i, ordered by i.
    """

    n: Integers  # numbers of rows (…)
    sums: Integers  # (… × sums)
    axis: ClassVar[int]  # the axis of the classes, in both

    def arrays(self) -> dict[str, Integers]:
        """Returns the sums by name, for a file."""
        return {"n": self.n, "sums": self.sums}

    @cached_property
    def n_columns(self) -> int:
        """The number of columns of the block."""
        return count_columns(self.sums.shape[-1])

    def times(self, factor: float) -> tuple[Self, bool]:
        """Returns the sums multiplied by a factor, and whether the product is exact. ``n`` are numbers of rows (…),
        ``sums`` the sums of columns and of products of pairs (… × sums).
        """
        n, sums, is_exact = scale_sums(self.n, self.sums, factor, self.n_columns)
        return type(self)(n, sums), is_exact

    def below_zero(self) -> Bool:
        """Returns whether each class has sums that no rows can have, after a subtraction; in the shape of ``n``."""
        return find_impossible(self.n, self.sums, self._deviations, self.n_columns)

    def take(self, classes: Any, axis: int | None = None) -> Self:
        """Returns the sums of the classes with these numbers, in this order; or if ``axis`` is given, of the indices
        ``classes`` along that axis, such as numbers of features.
        """
        index = as_index(classes)
        axis = self.axis if axis is None else axis
        return type(self)(self.n.take(index, axis), self.sums.take(index, axis))

    def merge(self, new_numbers: Any, n_classes: int) -> Self:
        """Returns the sums with those of class c moved to class ``new_numbers[c]`` of ``n_classes`` classes; those that
        meet are added up.
        """
        new_numbers = as_index(new_numbers)
        return type(self)(
            self.n.merge(new_numbers, n_classes, self.axis), self.sums.merge(new_numbers, n_classes, self.axis)
        )

    @cached_property
    def _pooled(self) -> Self:
        """The sums of all classes as one class."""
        return self.merge(np.zeros(self.n.shape[self.axis]), 1)

    @cached_property
    def _deviations(self) -> Real:
        """The sums of products of deviations from the mean, one for each pair of columns (… × pairs)."""
        return self.n.deviations(self.sums, self.n_columns)


class Moments(NumberSums):
    """The number of rows, Σz and Σz² by feature and class: ``n`` is (features × classes), ``sums`` (features × classes × 2)."""

    axis: ClassVar[int] = 1

    @property
    def present(self) -> Integers:
        """The number of rows that have a value of each feature (features, classes)."""
        return self.n

    def select(self, feature_numbers: Sequence[int]) -> Moments:
        """Returns the moments of the features with these numbers, in this order."""
        return self if is_all(feature_numbers, self.n.shape[0]) else self.take(feature_numbers, 0)

    def as_features(self, labels: Int, n_classes: int) -> Moments:
        """Turns the classes of a single feature, one per label, into features. Each has rows of one class only: feature
        k has the sums of the old class k, in class ``labels[k]`` of ``n_classes``.
        """
        n_features = len(labels)
        cell_numbers = np.arange(n_features) * n_classes + labels  # of each feature's cell in features × classes
        n = self.n.arranged([n_features]).merge(cell_numbers, n_features * n_classes, 0)
        sums = self.sums.arranged([n_features, 2]).merge(cell_numbers, n_features * n_classes, 0)
        return Moments(n.arranged([n_features, n_classes]), sums.arranged([n_features, n_classes, 2]))

    def shift(self, shift: Real, scale: Real) -> Moments:
        """Returns the moments for another origin and unit of each feature: z becomes scale · (z + shift). ``shift`` and
        ``scale`` have a number for each feature.
        """
        return Moments(self.n, shift_sums(self.n, self.sums, shift[:, None, None], scale[:, None, None]))

    @cached_property
    def mean(self) -> Real:
        """The mean of z (features, classes); 0 where there are no rows."""
        return divide(self.sums.values(-GRID)[..., 0], self.n.value)

    def pool(self) -> tuple[Real, Real, Real]:
        """Returns over all classes for each feature the number of rows n, the mean of z and Σ(z − mean)²: three arrays,
        features × 1.
        """
        return self._pooled.n.value, self._pooled.mean, self._pooled.spread

    @property
    def spread(self) -> Real:
        """Σ(z − mean)² (features, classes), exactly 0 if all values are equal."""
        return self._deviations[..., 0]


# Products ------------------------------------------------------------------------------------------------------------


class Products(NumberSums):
    """The number of rows, Σz and Σzzᵀ of a block of columns by class, over rows that have all columns.

    ``n`` is (classes,), ``sums`` (classes × (columns + pairs)).
    """

    axis: ClassVar[int] = 0

    @property
    def present(self) -> Integers:
        """The number of rows that have all columns (1, classes)."""
        return self.n.arranged([1, self.n.shape[0]])

    def shift(self, shift: Real, scale: Real) -> Products:
        """Returns the products for another origin and unit of each column: z becomes scale · (z + shift). ``shift`` and
        ``scale`` have a number for each column.
        """
        return Products(self.n, shift_sums(self.n, self.sums, shift, scale))

    @cached_property
    def mean(self) -> Real:
        """The mean of z (classes, columns); 0 where there are no rows."""
        return divide(self.sums.values(-GRID)[:, : self.n_columns], self.n.value[:, None])

    @cached_property
    def scatter(self) -> Real:
        """Σ(z − m)(z − m)ᵀ, where m is the mean of z (classes, columns, columns); exactly 0 for constant columns. Below
        the diagonal it is ``_deviations``, one for each pair of columns.
        """
        n_columns = self.n_columns
        i, j = np.tril_indices(n_columns)  # the columns of each pair
        scatters = np.zeros((len(self._deviations), n_columns, n_columns))
        scatters[:, i, j] = scatters[:, j, i] = self._deviations
        return scatters

    def pool(self) -> tuple[float, Real, Real]:
        """Returns over all classes the number of rows, the mean of z (columns) and Σ(z − mean)(z − mean)ᵀ (columns ×
        columns).
        """
        return float(self._pooled.n.value[0]), self._pooled.mean[0], self._pooled.scatter[0]
