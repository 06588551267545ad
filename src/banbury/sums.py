"""Counts, Words, Moments and Products: the shapes of sums that serve every family. They add, subtract and scale.

Every sum is a whole number (``_core.Integers``): of rows, of parts of a row (10⁻¹⁸) where weights are fractional, of steps of a
column's grid. So what is subtracted is gone to the last bit, sums are equal or they are not, and a class without rows has sums
that are zero. All four have one interface: ``+``, ``-``, ``times``, ``take``, ``merge``, ``same``, ``select``, ``present``,
``arrays``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import compress
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int, Real, over_classes

Key = bool | int | float | str | None
Keys = tuple[Key, ...]

GRID = 57  # z is counted in steps of 2**-57, and its products in steps of 2**-114
MOST_ROWS = 2.0**63  # rows, or their weight, stay below this
ROUNDING = 1e-12  # sums of numbers that were rounded to doubles are told apart from this share of them on


# Whole numbers of any size -------------------------------------------------------------------------------------------


def as_index(index: Any) -> Int:
    return np.ascontiguousarray(index, dtype=np.int64)


def zeros(*shape: int) -> Integers:
    return Integers.zeros(list(shape))


def whole(numbers: Any) -> Integers:
    return Integers.of(np.asarray(numbers, dtype=np.int64)[..., None], 0)


def integers(numbers: NDArray[Any], digits: int) -> Integers:
    """An array of Python's whole numbers, in units of 10**-digits."""
    flat = [int(number) for number in numbers.ravel()]
    limbs = 1 + max((number.bit_length() for number in flat), default=0) // 64
    packed = b"".join(number.to_bytes(8 * limbs, "little", signed=True) for number in flat)
    return Integers.of(np.frombuffer(packed, dtype="<i8").astype(np.int64).reshape(*numbers.shape, limbs), digits)


def python_integers(sums: Integers, digits: int) -> NDArray[Any]:
    """The same numbers as Python's, in units of 10**-digits."""
    limbs = np.ascontiguousarray(sums.limbs()).astype("<i8")
    size = 8 * limbs.shape[-1]
    packed = limbs.tobytes()
    factor = 10 ** (digits - sums.digits)
    numbers = np.empty(limbs.size // limbs.shape[-1], dtype=object)
    for i in range(len(numbers)):
        numbers[i] = factor * int.from_bytes(packed[i * size : (i + 1) * size], "little", signed=True)
    return numbers.reshape(limbs.shape[:-1])


def rows_of(numbers: Integers) -> NDArray[Any]:
    """Numbers of rows as people read them: integers where all are whole."""
    limbs = numbers.limbs()
    return limbs[..., 0] if numbers.digits == 0 and limbs.shape[-1] == 1 else numbers.value


def in_parts(weights: Real) -> NDArray[Any]:
    """Weights as kernels take them: whole numbers, or limbs of parts of a row. Soft labels, (rows, classes), are parts always."""
    if not float(weights.sum()) < MOST_ROWS * (1.0 - 2.0**-40):  # so that the exact sum is below it too
        raise errors.too_many_rows()
    if weights.ndim == 1 and bool(np.all(weights == np.rint(weights))):
        return weights.astype(np.int64)
    return _core.parts(np.ascontiguousarray(weights, dtype=np.float64))


def in_rows(weights: NDArray[Any]) -> Real:
    """The same weights as doubles."""
    return weights.astype(np.float64) if weights.ndim == 1 else Integers.of(weights.view(np.int64), 18).value


def weighing(weights: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows weigh anything; ``weights`` as kernels take them."""
    return np.asarray(weights > 0 if weights.ndim == 1 else weights.any(axis=1))


def kernel_weights(
    numbers: NDArray[np.int32], weights: NDArray[Any] | None
) -> tuple[NDArray[np.int32], NDArray[Any] | None]:
    """Numbers of rows' classes, −1 where a row weighs nothing, and the weights, both as kernels take them."""
    if weights is None:
        return numbers, None
    parts = in_parts(weights) if weights.dtype == np.float64 else np.ascontiguousarray(weights)
    return np.where(weighing(parts), numbers, np.int32(-1)), parts


def total(sums: Integers, axis: int) -> Integers:
    """The sum along an axis, which stays with one cell."""
    return sums.merge(np.zeros(sums.shape[axis], dtype=np.int64), 1, axis)


def some(sums: Integers) -> NDArray[Any]:
    """Where there is anything."""
    return ~sums.is_zero()


def lines_with_some(cells: Integers) -> NDArray[np.bool_]:
    limbs = cells.limbs()
    return np.asarray(over_classes(np.bitwise_or, limbs.reshape(len(limbs), limbs.shape[1] * limbs.shape[2])) != 0)


# Counts --------------------------------------------------------------------------------------------------------------


def is_all(places: Sequence[int], n: int) -> bool:
    """Whether these are all of n places, in order; of one among many that is known at a glance."""
    return len(places) == n and list(places) == list(range(n))


def in_order(keys: Any) -> Keys:
    """Keys in the one order that does not depend on where they were met: flags and numbers, texts, None last."""
    keys = list(keys)
    try:
        return tuple(sorted(keys))
    except TypeError:
        return tuple(sorted(keys, key=_rank))


def _rank(key: Any) -> tuple[int, Any]:
    if isinstance(key, tuple):
        return 3, tuple(map(_rank, key))
    if key is None:
        return 2, 0
    return int(isinstance(key, str)), key


class WholeKeys(Sequence[int]):
    """Keys that are whole numbers, in order, held as an array: there are many, and as Python's they take time and memory."""

    def __init__(self, numbers: Int) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers.tolist())

    def __contains__(self, key: object) -> bool:
        return key in self.numbers.tolist()

    def __getitem__(self, k: Any) -> Any:
        return tuple(self.numbers[k].tolist()) if isinstance(k, slice) else int(self.numbers[k])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.numbers.astype(dtype or np.int64, copy=bool(copy))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, WholeKeys):
            return np.array_equal(self.numbers, other.numbers)
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))


class Combinations(Sequence[Any]):
    """Keys that are tuples of values: of each its cell in a table of all combinations. They are many, and made when asked for.

    The values of each axis are in order and of one type, and so are the cells; so the tuples are in order too.
    """

    def __init__(self, axes: tuple[Keys, ...], cells: Int) -> None:
        self.axes = axes
        self.cells = cells

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[tuple[Key, ...]]:
        places = np.unravel_index(self.cells, [len(axis) for axis in self.axes])
        parts = (map(axis.__getitem__, at.tolist()) for axis, at in zip(self.axes, places, strict=True))
        return zip(*parts, strict=True)

    def __getitem__(self, k: Any) -> Any:
        return tuple(self)[k]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Combinations) and self.axes == other.axes:
            return np.array_equal(self.cells, other.cells)
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        """Without the values that no key has: nothing of what was forgotten is kept."""
        places = np.unravel_index(self.cells, [len(axis) for axis in self.axes])
        used = zip(self.axes, map(np.unique, places), strict=True)
        axes = tuple(tuple(axis[k] for k in used_places.tolist()) for axis, used_places in used)
        return Combinations, (axes, cells_of(self, axes))


def cells_of(keys: Sequence[Any], axes: Sequence[Keys]) -> Int:
    """The cell of each combination in the table of these values."""
    if isinstance(keys, Combinations) and keys.axes == axes:
        return keys.cells
    places = [{value: k for k, value in enumerate(axis)} for axis in axes]
    if isinstance(keys, Combinations):
        numbers = np.unravel_index(keys.cells, [len(axis) for axis in keys.axes])
        moved = (as_index([place.get(v, -1) for v in axis]) for place, axis in zip(places, keys.axes, strict=True))
        columns = [new[old] for new, old in zip(moved, numbers, strict=True)]
    else:
        parts = zip(places, zip(*keys, strict=True), strict=False)
        columns = [as_index([*map(place.__getitem__, members)]) for place, members in parts]
    index = np.zeros(len(keys), dtype=np.int64)
    for axis, column in zip(axes, columns, strict=False):
        index = index * len(axis) + column
    return index


def unite(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """The keys of both, in order."""
    if isinstance(a, WholeKeys) and isinstance(b, WholeKeys):
        return WholeKeys(_in_either(a.numbers, b.numbers))
    if isinstance(a, Combinations) and isinstance(b, Combinations):
        axes = tuple(x if x == y else in_order({*x, *y}) for x, y in zip(a.axes, b.axes, strict=True))
        if all(len(set(map(type, axis))) < 2 for axis in axes) and prod(map(len, axes)) < 2**62:
            return Combinations(axes, _in_either(cells_of(a, axes), cells_of(b, axes)))
    return in_order(set(a).union(b))


def _in_either(a: Int, b: Int) -> Int:
    """The numbers of both, each in order: of two blocks of one file most are the same, so that few are put in between."""
    a, b = (a, b) if len(a) >= len(b) else (b, a)
    places = np.searchsorted(a, b)
    new = a[np.minimum(places, len(a) - 1)] != b if len(a) else np.ones(0, dtype=np.bool_)
    return np.insert(a, places[new], b[new]) if new.any() else a


def _select_keys(keys: Sequence[Any], used: NDArray[np.bool_]) -> Any:
    if isinstance(keys, WholeKeys):
        return WholeKeys(keys.numbers[used])
    return Combinations(keys.axes, keys.cells[used]) if isinstance(keys, Combinations) else tuple(compress(keys, used))


@dataclass(frozen=True, eq=False)
class Counts:
    """(key, class) → rows, for every keyed feature: one table, feature below feature.

    ``keys[f]`` are feature f's keys in order; its cells are rows ``offsets[f]`` to ``offsets[f + 1]`` of ``cells``.
    """

    keys: tuple[Keys, ...]
    cells: Integers  # (keys of all features, classes)
    shared: tuple[dict[Any, Any], ...] | None = field(default=None, compare=False, repr=False)  # as ``derived``

    @cached_property
    def offsets(self) -> Int:
        return np.cumsum([0, *map(len, self.keys)], dtype=np.int64)

    @cached_property
    def index(self) -> tuple[dict[Key, int], ...]:
        return tuple({key: k for k, key in enumerate(keys)} for keys in self.keys)

    @cached_property
    def derived(self) -> tuple[dict[Any, Any], ...]:
        """By feature, what families made of these counts that no prior changes: it is asked for again under each."""
        return tuple({} for _ in self.keys) if self.shared is None else self.shared

    @classmethod
    def join(cls, parts: Sequence[tuple[Keys, Integers]], n_classes: int) -> Counts:
        if not parts:
            return cls((), zeros(0, n_classes))
        cells = parts[0][1] if len(parts) == 1 else Integers.join([cells for _, cells in parts])
        return cls(tuple(keys for keys, _ in parts), cells)

    def feature(self, f: int) -> tuple[Keys, Integers]:
        if len(self.keys) == 1:
            return self.keys[f], self.cells
        return self.keys[f], self.cells.take(np.arange(self.offsets[f], self.offsets[f + 1]), 0)

    def select(self, features: Sequence[int]) -> Counts:
        if is_all(features, len(self.keys)):
            return self
        parts = Counts.join([self.feature(f) for f in features], self.cells.shape[1])
        return replace(parts, shared=tuple(self.derived[f] for f in features))

    @cached_property
    def present(self) -> Integers:
        """Rows that have a value of each feature, (features, classes)."""
        owner = np.repeat(np.arange(len(self.keys)), np.diff(self.offsets))
        return self.cells.merge(as_index(owner), len(self.keys), 0)

    def arrays(self) -> dict[str, Integers]:
        """The sums by name, as a file has them."""
        return {"cells": self.cells}

    def state(self) -> dict[str, NDArray[Any]]:
        """What else a file has of them."""
        return {}

    def with_keys(self, keys: tuple[Keys, ...]) -> Counts:
        """The same counts in a table that has at least these keys, given in order."""
        if keys == self.keys:
            return self
        offsets = np.cumsum([0, *map(len, keys)])
        index = np.empty(self.cells.shape[0], dtype=np.int64)
        for f, (old, new) in enumerate(zip(self.keys, keys, strict=True)):
            start = self.offsets[f]
            if old == new:
                index[start : start + len(old)] = np.arange(offsets[f], offsets[f + 1])
            elif isinstance(new, Combinations):
                cells = cells_of(old, new.axes)
                index[start : start + len(old)] = offsets[f] + np.searchsorted(new.cells, cells)
            elif isinstance(old, WholeKeys) and isinstance(new, WholeKeys):
                index[start : start + len(old)] = offsets[f] + np.searchsorted(new.numbers, old.numbers)
            else:
                position = {key: k for k, key in enumerate(new, offsets[f])}
                index[start : start + len(old)] = [position[key] for key in old]
        return Counts(keys, self.cells.merge(index, int(offsets[-1]), 0))

    def union(self, other: Counts) -> tuple[Counts, Counts]:
        if self.keys == other.keys:
            return self, other
        keys = tuple(a if a is b or a == b else unite(a, b) for a, b in zip(self.keys, other.keys, strict=True))
        return self.with_keys(keys), other.with_keys(keys)

    def without_empty(self, declared: Iterable[frozenset[Key] | None]) -> Counts:
        """Without the keys that no row has, unless they are declared."""
        if not self.keys:
            return self
        used = lines_with_some(self.cells)
        for f, names in enumerate(declared):
            if names:
                start = self.offsets[f]
                used[start : start + len(self.keys[f])] |= [key in names for key in self.keys[f]]
        return self.only(used)

    def only(self, used: NDArray[np.bool_]) -> Counts:
        """Without the keys that are not used."""
        if used.all():
            return self
        parts = np.split(used, self.offsets[1:-1])
        keys = tuple(_select_keys(ks, us) for ks, us in zip(self.keys, parts, strict=True))
        return Counts(keys, self.cells.take(np.flatnonzero(used), 0))

    def coarsen(self, f: int, times: int | Int) -> Counts:
        """Feature f's integer keys halved, rounding down, so many times; of keys of several numbers each so many."""
        parts = [self.feature(g) for g in range(len(self.keys))]
        keys, cells = parts[f]
        if keys:
            several = not isinstance(times, int)
            halved = np.array(keys, dtype=np.int64) >> times
            merged, where = np.unique(halved, axis=0 if several else None, return_inverse=True)
            coarser: Any = tuple(map(tuple, merged.tolist())) if several else WholeKeys(merged)
            parts[f] = coarser, cells.merge(as_index(where.reshape(-1)), len(merged), 0)
        return Counts.join(parts, self.cells.shape[1])

    def __add__(self, other: Counts) -> Counts:
        a, b = self.union(other)
        return Counts(a.keys, a.cells + b.cells)

    def __sub__(self, other: Counts) -> Counts:
        """The difference, cells below zero included."""
        a, b = self.union(other)
        return Counts(a.keys, a.cells - b.cells)

    def times(self, factor: float) -> tuple[Counts, bool]:
        cells, exact = self.cells.times(factor)
        return Counts(self.keys, cells), exact

    def take(self, classes: Any) -> Counts:
        return Counts(self.keys, self.cells.take(as_index(classes), 1))

    def merge(self, index: Any, size: int) -> Counts:
        return Counts(self.keys, self.cells.merge(as_index(index), size, 1))

    def same(self, other: Counts) -> bool:
        return self.keys == other.keys and self.cells.same(other.cells)


class Keyless:
    """Sums without keys: of words, which are in the state, and of numbers."""

    keys: ClassVar[tuple[Keys, ...]] = ()

    def arrays(self) -> dict[str, Integers]:
        return {}

    def state(self) -> dict[str, NDArray[Any]]:
        return {}

    def select(self, features: Sequence[int]) -> Self:
        return self

    def without_empty(self, declared: Iterable[frozenset[Key] | None]) -> Self:
        return self


# Words ---------------------------------------------------------------------------------------------------------------

# What a file has of words: of whole numbers, or of fractional weights.
WORD_STATES = (
    {"bytes", "ends", "starts", "classes", "texts", "occurrences", "documents"},
    {"bytes", "ends", "starts", "classes", "texts.parts", "parts"},
)


class Words(Keyless):
    """(word, class) → occurrences and documents, of one column of text; and the texts of each class."""

    def __init__(self, table: _core.Words) -> None:
        self._table = table

    @property
    def table(self) -> _core.Words:
        return self._table

    def read_texts(self) -> Words:
        """The same words, all of them counted: none waits for its texts to be read."""
        return self

    @property
    def texts(self) -> Integers:
        """Texts per class, those without a single word included."""
        return self.table.texts()

    @property
    def present(self) -> Integers:
        """The same, (1, classes)."""
        return self.texts.arranged([1, self.table.n_classes])

    def state(self) -> dict[str, NDArray[Any]]:
        """All that is counted, as arrays."""
        return self.table.state()

    @property
    def occurrences(self) -> Integers:
        """Occurrences per class, over all words."""
        return self.table.occurrences()

    def __add__(self, other: Words) -> Words:
        return Words(other.add_to(self.table))

    def __sub__(self, other: Words) -> Words:
        """The difference; raises NotThere where it is below zero."""
        return Words(other.take_from(self.table))

    def add_to(self, table: _core.Words) -> _core.Words:
        """A table with these words too."""
        try:
            return table.plus(self.table)
        except OverflowError:
            raise errors.too_many_rows() from None

    def take_from(self, table: _core.Words) -> _core.Words:
        """A table without these words; raises NotThere where it does not have them."""
        return table.minus(self.table)

    def times(self, factor: float) -> tuple[Words, bool]:
        try:
            table, exact = self.table.times(factor)
        except OverflowError:
            raise errors.too_many_rows() from None
        return Words(table), exact

    def same(self, other: Words) -> bool:
        return self.table.same(other.table)

    def take(self, classes: Any) -> Words:
        return Words(self.table.take(as_index(classes)))

    def merge(self, index: Any, size: int) -> Words:
        return Words(self.table.place(as_index(index), size))

    def drop_absent_words(self) -> Words:
        """The same without the ids of words that no text has any more; columns of a matrix keep theirs."""
        if self.table.n_columns or self.table.n_ids == self.table.n_words:
            return self
        return self.take(np.arange(self.table.n_classes))

    def most_frequent(self, n: int) -> list[str]:
        """The n words of most occurrences, most first; equals by name."""
        totals = np.zeros(self.table.n_ids)
        step = max(1, (1 << 21) // max(self.table.n_classes, 1))
        for start in range(0, len(totals), step):  # some at a time: no temporary array is as long as all the pairs
            ids = np.arange(start, min(start + step, len(totals)), dtype=np.uint32)
            starts, _, occurrences, _ = self.table.pairs(ids)
            owner = np.repeat(np.arange(len(ids)), np.diff(starts))
            totals[ids] = np.bincount(owner, occurrences, len(ids))
        totals = np.around(totals, 9)
        by_name = self.table.in_order()
        if self.table.n_columns:
            numbers = [int(name.removeprefix("#")) for name in self.table.words(by_name)]
            by_name = by_name[np.argsort(numbers, kind="stable")]
        best = by_name[np.argsort(-totals[by_name], kind="stable")[:n]]
        return self.table.words(best)

    def __reduce__(self) -> Any:
        return _words, (self.table.n_classes, self.table.n_columns, self.table.state())


def _words(n_classes: int, n_columns: int, state: Any) -> Words:
    return Words(_core.Words.from_state(n_classes, n_columns, state))


# Moments -------------------------------------------------------------------------------------------------------------


def scale_sums(n: Integers, sums: Integers, factor: float, columns: int) -> tuple[Integers, Integers, bool]:
    """Numbers of rows, and sums of z and of products on one more axis, times a factor; and whether that is exact.

    Where it is not, the sums are scaled as the rounded numbers of rows are, sums of z towards zero and of squares upwards: so
    n Σz² ≥ (Σz)² holds on, and what was constant stays so.
    """
    fewer, exact = n.times(factor)
    less, also = sums.times(factor)
    if exact and also:
        return fewer, less, True
    digits = max(n.digits, fewer.digits, sums.digits, 18)
    before, after, numbers = (python_integers(part, digits) for part in (n, fewer, sums))
    before = np.where(before == 0, 1, before)[..., None]
    after = after[..., None]
    product = numbers * after
    down = np.where(product < 0, -(-product // before), product // before)
    rounded_sums = np.where(squares(columns), -(-product // before), down)
    rounded_sums = _with_constant(rounded_sums, _constant(numbers, before, columns), numbers[..., :columns] // before)
    return fewer, integers(_within(rounded_sums, np.where(after == 0, 1, after)), digits), False


def _constant(sums: NDArray[Any], rows: NDArray[Any], columns: int) -> NDArray[np.bool_]:
    """Which columns have one value in all rows: a whole number of steps."""
    first = sums[..., :columns]
    return np.asarray((rows * sums[..., squares(columns)] == first**2) & (first % rows == 0))


def _with_constant(sums: NDArray[Any], constant: NDArray[np.bool_], value: NDArray[Any]) -> NDArray[Any]:
    """Sums that were rounded, with the products of constant columns as such a value makes them."""
    columns = constant.shape[-1]
    i, j = np.tril_indices(columns)
    first = sums[..., :columns]
    by_j = np.where(constant[..., j], value[..., j] * first[..., i], sums[..., columns:])
    both = np.where(constant[..., i], value[..., i] * first[..., j], by_j)
    return np.concatenate([first, both], axis=-1)


def squares(columns: int) -> NDArray[np.bool_]:
    """Which of the sums of a block are of squares: cells are the columns, then the pairs (i, j), j ≤ i, i by i."""
    first, second = np.tril_indices(columns)
    return np.concatenate([np.zeros(columns, dtype=np.bool_), first == second])


def n_columns(cells: int) -> int:
    """How many columns a block has whose sums have so many cells."""
    return int(np.rint(((9 + 8 * cells) ** 0.5 - 3) / 2))


def _beyond(sums: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Which pairs of columns have more in common than rows can have, exactly."""
    columns = n_columns(sums.shape[-1])
    i, j = np.tril_indices(columns)
    about = rows * sums[..., columns:] - sums[..., i] * sums[..., j]
    variances = about[..., i == j]
    return np.asarray((about**2 > variances[..., i] * variances[..., j]) & (i != j))


def _within(sums: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Sums that were rounded, with products of two columns that have no more in common than each has.

    Where they have, they get nothing in common, but for what is no whole number; there the squares are raised by one.
    """
    beyond = _beyond(sums, rows)
    columns = n_columns(sums.shape[-1])
    if not beyond.any():
        return sums
    i, j = np.tril_indices(columns)
    first = sums[..., :columns]
    alone = sums[..., i] * sums[..., j]
    second = np.where(beyond, alone // rows, sums[..., columns:])
    uneven = beyond & (alone % rows != 0)
    for column in range(columns):
        raised = (uneven & ((i == column) | (j == column))).any(axis=-1, keepdims=True)
        second = second + np.where((i == column) & (j == column) & raised, 1, 0)
    return np.concatenate([first, second], axis=-1)


def shift_sums(n: Integers, sums: Integers, shift: Real, scale: Real) -> Integers:
    """Sums of z and of the products of pairs of columns about another origin and unit: z becomes scale · (z + shift).

    The shift is rounded to a step, so that nothing else is while units become finer. Where they become coarser, sums of z are
    rounded towards zero and squares upwards, and what is constant stays so.
    """
    digits = max(n.digits, sums.digits)
    columns = shift.shape[-1]
    rows = python_integers(n, digits)[..., None]
    numbers = python_integers(sums, digits)
    there, (i, j) = np.where(rows == 0, 1, rows), np.tril_indices(columns)
    kinds = lambda x: round(Fraction(x) * 2**GRID), Fraction, int, lambda x: -int(-x // 1), round
    by, factor, down, up, near = (np.vectorize(f, otypes=[object]) for f in kinds)
    by = by(shift)
    factor = factor(scale)
    first = numbers[..., :columns]
    second = numbers[..., columns:]
    moved = factor * (first + rows * by)
    cross = first[..., i] * by[..., j] + first[..., j] * by[..., i]
    both = factor[..., i] * factor[..., j] * (second + cross + rows * by[..., i] * by[..., j])
    constant = _constant(numbers, there, columns)
    value = near(moved / there)
    moved_sums = [np.where(constant, rows * value, down(moved)), np.where(i == j, up(both), down(both))]
    return integers(_within(_with_constant(np.concatenate(moved_sums, axis=-1), constant, value), there), digits)


def negative(n: Integers, sums: Integers, spread: Real, columns: int) -> NDArray[np.bool_]:
    """Where no rows can have such sums: less than none, something of none, a spread below zero, more in common than each has."""
    variances = spread[..., squares(columns)[columns:]]
    left_over = n.is_zero() & some(sums).any(axis=-1)
    below = sums.is_negative()[..., squares(columns)].any(axis=-1) | (variances < 0).any(axis=-1)
    impossible = np.asarray(n.is_negative() | left_over | below)
    i, j = np.tril_indices(columns)
    size = np.sqrt(np.maximum(variances, 0.0))
    doubtful = (np.abs(spread) > size[..., i] * size[..., j] * (1.0 - 1e-9)) & (i != j)
    digits = max(n.digits, sums.digits)
    for at in np.argwhere(doubtful.any(axis=-1) & ~impossible):
        rows, row_sums = (python_integers(part.take(at, 0), digits) for part in (n, sums))
        impossible[tuple(at)] = _beyond(row_sums, rows[..., None]).any()
    return impossible


@dataclass(frozen=True, eq=False)
class NumberSums(Keyless):
    """n, and the sums of z and of the products of columns, z = (x − origin) / unit in steps of 2⁻⁵⁷; products are exact.

    The cells of ``sums`` are the columns, then the pairs (i, j), j ≤ i, i by i.
    """

    n: Integers
    sums: Integers
    axis: ClassVar[int]  # of the classes

    def arrays(self) -> dict[str, Integers]:
        return {"n": self.n, "sums": self.sums}

    @cached_property
    def n_columns(self) -> int:
        return n_columns(self.sums.shape[-1])

    def __add__(self, other: Self) -> Self:
        return type(self)(self.n + other.n, self.sums + other.sums)

    def __sub__(self, other: Self) -> Self:
        """The difference; ``below_zero`` finds what cannot be."""
        return type(self)(self.n - other.n, self.sums - other.sums)

    def times(self, factor: float) -> tuple[Self, bool]:
        n, sums, exact = scale_sums(self.n, self.sums, factor, self.n_columns)
        return type(self)(n, sums), exact

    def below_zero(self) -> NDArray[np.bool_]:
        """Where no rows can have such sums."""
        return negative(self.n, self.sums, self._deviations, self.n_columns)

    def same(self, other: Self) -> bool:
        return self.n.same(other.n) and self.sums.same(other.sums)

    def take(self, classes: Any, axis: int | None = None) -> Self:
        index = as_index(classes)
        axis = self.axis if axis is None else axis
        return type(self)(self.n.take(index, axis), self.sums.take(index, axis))

    def merge(self, index: Any, size: int) -> Self:
        index = as_index(index)
        return type(self)(self.n.merge(index, size, self.axis), self.sums.merge(index, size, self.axis))

    @cached_property
    def _every(self) -> Self:
        """All classes as one."""
        return self.merge(np.zeros(self.n.shape[self.axis]), 1)

    @cached_property
    def _deviations(self) -> Real:
        return self.n.deviations(self.sums, self.n_columns)


class Moments(NumberSums):
    """n, Σz and Σz² per (feature, class): n is (features, classes), and sums (features, classes, 2)."""

    axis: ClassVar[int] = 1

    @property
    def present(self) -> Integers:
        """Rows that have a value of each feature, (features, classes)."""
        return self.n

    def select(self, features: Sequence[int]) -> Moments:
        return self if is_all(features, self.n.shape[0]) else self.take(features, 0)

    def as_features(self, labels: Int, n_classes: int) -> Moments:
        """The classes of the one feature as features, each of which has rows of one class: the one with its label."""
        size = len(labels)
        places = np.arange(size) * n_classes + labels
        n = self.n.arranged([size]).merge(places, size * n_classes, 0)
        sums = self.sums.arranged([size, 2]).merge(places, size * n_classes, 0)
        return Moments(n.arranged([size, n_classes]), sums.arranged([size, n_classes, 2]))

    def shift(self, shift: Real, scale: Real) -> Moments:
        """About another origin and unit, (features,) each: z becomes scale · (z + shift)."""
        return Moments(self.n, shift_sums(self.n, self.sums, shift[:, None, None], scale[:, None, None]))

    @cached_property
    def mean(self) -> Real:
        """Mean of z; 0 where there are no rows."""
        n = self.n.value
        return np.where(n > 0, self.sums.values(-GRID)[..., 0] / np.where(n > 0, n, 1.0), 0.0)

    def pool(self) -> tuple[Real, Real, Real]:
        """n, mean and Σ(z − mean)² over all classes, (features, 1)."""
        return self._every.n.value, self._every.mean, self._every.spread

    @property
    def spread(self) -> Real:
        """Σ(z − mean)², 0 exactly where all values are one."""
        return self._deviations[..., 0]


# Products ------------------------------------------------------------------------------------------------------------


class Products(NumberSums):
    """n, Σz and Σzzᵀ per class of a block of columns, of rows that have all of them: sums are (classes, columns + pairs)."""

    axis: ClassVar[int] = 0

    @property
    def present(self) -> Integers:
        """Rows that have all columns, (1, classes)."""
        return self.n.arranged([1, self.n.shape[0]])

    def shift(self, shift: Real, scale: Real) -> Products:
        """About other origins and units, (columns,) each: z becomes scale · (z + shift)."""
        return Products(self.n, shift_sums(self.n, self.sums, shift, scale))

    @cached_property
    def mean(self) -> Real:
        """Mean of z, (classes, columns); 0 where there are no rows."""
        n = self.n.value[:, None]
        return np.where(n > 0, self.sums.values(-GRID)[:, : self.n_columns] / np.where(n > 0, n, 1.0), 0.0)

    @cached_property
    def scatter(self) -> Real:
        """Σ(z − m)(z − m)ᵀ, (classes, columns, columns); 0 exactly in the rows and columns of what is constant."""
        d, (i, j) = self.n_columns, np.tril_indices(self.n_columns)
        result = np.zeros((len(self._deviations), d, d))
        result[:, i, j] = result[:, j, i] = self._deviations
        return result

    def pool(self) -> tuple[float, Real, Real]:
        """n, mean and Σ(z − mean)(z − mean)ᵀ over all classes."""
        return float(self._every.n.value[0]), self._every.mean[0], self._every.scatter[0]
