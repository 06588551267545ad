"""Counts, Words, Moments and Products: the shapes of sums that serve every family. They add, subtract and scale.

Words are counts too, keyed by the tokens of a text; they are kept in the core by the pairs of word and class that occur.

Whole numbers are int64 and exact. Real sums are *expansions*: three float64 on the last axis, largest first, whose exact
sum is the value, about 48 digits. Two would not do: forgetting an outlier of 1e12 among unit values leaves an error of
1e24 * 2**-106 = 1e-8 in the sum of squares, and tallies compare to 1e-12.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors

Key = bool | int | float | str | None
Keys = tuple[Key, ...]
Int = NDArray[np.int64]
Real = NDArray[np.float64]

ROUNDING = 1e-12  # tallies compare to this share of their sums
NOISE = 1e-12  # of Σz²: less than this about the mean is no spread
FAINT = 1e-13  # in units of z²: what a sum of products of numbers up to 16 may be off by, per row
IMPOSSIBLE = 1e-9  # a sum below zero by more than this share of what was there cannot be rounding


# Expansions ----------------------------------------------------------------------------------------------------------


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum and what rounding took away; exact (Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def _halves(a: Any) -> tuple[Any, Any]:
    big = a * 134217729.0  # 2**27 + 1 (Veltkamp)
    high = big - (big - a)
    return high, a - high


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded product and what rounding took away; exact below 2**996 (Dekker)."""
    product = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def _add(a: list[Any], x: Any) -> None:
    a[0], x = _two_sum(a[0], x)
    a[1], x = _two_sum(a[1], x)
    a[2] = a[2] + x


def _normalised(a: list[Any]) -> Real:
    for _ in range(2):
        a[1], a[2] = _two_sum(a[1], a[2])
        a[0], a[1] = _two_sum(a[0], a[1])
    return np.stack(a, axis=-1)


def plus(a: Real, b: Real) -> Real:
    """The sum of two arrays of expansions."""
    parts = [a[..., 0], a[..., 1], a[..., 2]]
    for i in range(3):
        _add(parts, b[..., i])
    return _normalised(parts)


def times(a: Real, factor: Any) -> Real:
    """An array of expansions times an array of float64."""
    first, rest = _two_product(a[..., 0], factor)
    parts = [first, np.zeros_like(first), np.zeros_like(first)]
    _add(parts, rest)
    for x in _two_product(a[..., 1], factor):
        _add(parts, x)
    _add(parts, a[..., 2] * factor)
    return _normalised(parts)


def total(a: Real, axis: int) -> Real:
    """The sum of expansions along an axis, in order."""
    moved = np.moveaxis(a, axis, 0)
    result = np.zeros(moved.shape[1:])
    for part in moved:
        result = plus(result, part)
    return result


def expansion(a: Any) -> Real:
    """Float64 numbers as expansions."""
    a = np.asarray(a, dtype=np.float64)
    zero = np.zeros_like(a)
    return np.stack([a, zero, zero], axis=-1)


def exact_product(a: Real, b: Real) -> Real:
    """Products of float64 numbers as expansions, exact below 2**996."""
    product, rest = _two_product(a, b)
    return np.stack([product, rest, np.zeros_like(product)], axis=-1)


def value(a: Real) -> Real:
    """Expansions rounded to float64. (NumPy's sum over the last axis would add in another order.)"""
    result: Real = a[..., 0] + (a[..., 1] + a[..., 2])
    return result


# Numbers of rows -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """How many rows fell into each cell, and the sum of their weights once one of them is fractional.

    While weights are whole, ``rows`` is their sum. Among fractional ones each row adds one: ``rows`` then says when a cell is
    empty again, which a sum of fractions cannot.
    """

    rows: Int
    weights: Real | None = None

    @property
    def value(self) -> Real:
        return self.rows.astype(np.float64) if self.weights is None else value(self.weights)

    @property
    def exact(self) -> Real:
        return expansion(self.rows) if self.weights is None else self.weights

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> Rows:
        return cls(np.zeros(shape, dtype=np.int64))

    def __add__(self, other: Rows) -> Rows:
        rows = self.rows + other.rows
        if rows.min(initial=0) < 0:
            raise errors.too_many_rows()
        if self.weights is None and other.weights is None:
            return Rows(rows)
        return Rows(rows, plus(self.exact, other.exact))

    def __sub__(self, other: Rows) -> Rows:
        """The difference, cells below zero included: ``below_zero`` finds them.

        Once weights are fractional they decide: a cell with weight left is not empty, whatever its rows were scaled to.
        """
        rows = self.rows - other.rows
        if self.weights is None and other.weights is None:
            return Rows(rows)
        weights = plus(self.exact, -other.exact)
        slack = IMPOSSIBLE * (self.value + other.value)
        left = value(weights)
        nothing = np.abs(left) <= slack
        weights[np.asarray(nothing & ((rows <= 0) | (left < 0)))] = 0.0
        # A row adds its weight while all weights are whole, and one otherwise: no weight is no row, whatever was added.
        gone = ~weights.any(axis=-1)
        return Rows(np.where(gone, 0, np.maximum(rows, np.where(nothing, 0, 1))), weights)

    def below_zero(self) -> NDArray[np.bool_]:
        """Cells that hold less than nothing."""
        wrong: NDArray[np.bool_] = self.rows < 0 if self.weights is None else value(self.weights) < 0.0
        return wrong

    def __mul__(self, factor: float) -> Rows:
        if factor == int(factor) and factor * max(float(self.rows.max(initial=0)), 1.0) < 2.0**53:
            rows = self.rows * int(factor)
            return Rows(rows, None if self.weights is None else times(self.weights, float(factor)))
        return Rows(self.rows, times(self.exact, factor))

    def same(self, other: Rows) -> bool:
        if self.weights is None and other.weights is None:
            return np.array_equal(self.rows, other.rows)
        if not np.array_equal(self.rows > 0, other.rows > 0):
            return False
        gap = np.abs(value(plus(self.exact, -other.exact)))
        return bool(np.all(gap <= ROUNDING * np.maximum(self.value, other.value)))

    def take(self, index: Any, axis: int) -> Rows:
        weights = None if self.weights is None else np.take(self.weights, index, axis)
        return Rows(np.take(self.rows, index, axis), weights)

    def place(self, index: Int, size: int, axis: int) -> Rows:
        """The same cells at new positions along ``axis``; positions not named are empty."""
        return Rows(
            placed(self.rows, index, size, axis),
            None if self.weights is None else placed(self.weights, index, size, axis),
        )

    def merged(self, index: Int, size: int, axis: int) -> Rows:
        """The same cells at new positions along ``axis``; those that meet are added up."""
        weights = None if self.weights is None else gathered(self.weights, index, size, axis, plus)
        return Rows(gathered(self.rows, index, size, axis, np.add), weights)

    def merge(self, starts: Int) -> Rows:
        """Sums of consecutive runs along the first axis, each run beginning at one of ``starts``."""
        rows = np.add.reduceat(self.rows, starts, axis=0)
        if self.weights is None:
            return Rows(rows)
        ends = np.append(starts[1:], len(self.rows))
        runs = [total(self.weights[a:b], 0) for a, b in zip(starts, ends, strict=True)]
        return Rows(rows, np.stack(runs))

    @staticmethod
    def concatenate(parts: Sequence[Rows]) -> Rows:
        rows = np.concatenate([part.rows for part in parts])
        if all(part.weights is None for part in parts):
            return Rows(rows)
        return Rows(rows, np.concatenate([part.exact for part in parts]))


def placed(cells: NDArray[Any], index: Int, size: int, axis: int) -> NDArray[Any]:
    shape = (*cells.shape[:axis], size, *cells.shape[axis + 1 :])
    result = np.zeros(shape, dtype=cells.dtype)
    result[(slice(None),) * axis + (index,)] = cells
    return result


def gathered(cells: NDArray[Any], index: Int, size: int, axis: int, add: Any) -> NDArray[Any]:
    """Cells at new positions along an axis, where those that meet are added in order."""
    shape = (*cells.shape[:axis], size, *cells.shape[axis + 1 :])
    result = np.zeros(shape, dtype=cells.dtype)
    before = (slice(None),) * axis
    order = np.argsort(index, kind="stable")
    turn = np.arange(len(index)) - np.searchsorted(
        index[order], index[order]
    )  # the how-manieth that comes to its place
    for t in range(int(turn.max(initial=-1)) + 1):
        at = order[turn == t]
        result[(*before, index[at])] = add(result[(*before, index[at])], cells[(*before, at)])
    return result


# Counts --------------------------------------------------------------------------------------------------------------


def in_order(keys: Any) -> Keys:
    """Keys in the one order that does not depend on where they were met: by type, then by value, None last."""
    keys = list(keys)
    try:
        return tuple(sorted(keys))
    except TypeError:
        return tuple(sorted(keys, key=_rank))


def _rank(key: Key) -> tuple[int, Any]:
    if key is None:
        return 3, 0
    if isinstance(key, str):
        return 2, key
    return int(not isinstance(key, bool)), key


@dataclass(frozen=True, eq=False)
class Counts:
    """(key, class) → rows, for every keyed feature: one table, feature below feature.

    ``keys[f]`` are feature f's keys in order; its cells are rows ``offsets[f]`` to ``offsets[f + 1]`` of ``cells``.
    """

    keys: tuple[Keys, ...]
    cells: Rows  # (keys of all features, classes)

    @cached_property
    def offsets(self) -> Int:
        return np.cumsum([0, *map(len, self.keys)], dtype=np.int64)

    @cached_property
    def index(self) -> tuple[dict[Key, int], ...]:
        return tuple({key: k for k, key in enumerate(keys)} for keys in self.keys)

    @classmethod
    def join(cls, parts: Sequence[tuple[Keys, Rows]], n_classes: int) -> Counts:
        if not parts:
            return cls((), Rows.zeros((0, n_classes)))
        return cls(tuple(keys for keys, _ in parts), Rows.concatenate([cells for _, cells in parts]))

    def feature(self, f: int) -> tuple[Keys, Rows]:
        return self.keys[f], self.cells.take(np.arange(self.offsets[f], self.offsets[f + 1]), 0)

    def select(self, features: Sequence[int]) -> Counts:
        if list(features) == list(range(len(self.keys))):
            return self
        return Counts.join([self.feature(f) for f in features], self.cells.rows.shape[1])

    def with_keys(self, keys: tuple[Keys, ...]) -> Counts:
        """The same counts in a table that has at least these keys, given in order."""
        if keys == self.keys:
            return self
        offsets = np.cumsum([0, *map(len, keys)])
        index = np.empty(len(self.cells.rows), dtype=np.int64)
        for f, (old, new) in enumerate(zip(self.keys, keys, strict=True)):
            start = self.offsets[f]
            if old == new:
                index[start : start + len(old)] = np.arange(offsets[f], offsets[f + 1])
            else:
                position = {key: k for k, key in enumerate(new, offsets[f])}
                index[start : start + len(old)] = [position[key] for key in old]
        return Counts(keys, self.cells.place(index, int(offsets[-1]), 0))

    def union(self, other: Counts) -> tuple[Counts, Counts]:
        """Both with the keys of either."""
        if self.keys == other.keys:
            return self, other
        keys = tuple(
            a if a is b or a == b else in_order(set(a).union(b)) for a, b in zip(self.keys, other.keys, strict=True)
        )
        return self.with_keys(keys), other.with_keys(keys)

    def without_empty(self, declared: Sequence[frozenset[Key] | None]) -> Counts:
        """Without the keys that no row has, unless they are declared."""
        if not self.keys:
            return self
        used: NDArray[np.bool_] = np.asarray(self.cells.rows.any(axis=1))
        for f, names in enumerate(declared):
            if names:
                start = self.offsets[f]
                used[start : start + len(self.keys[f])] |= [key in names for key in self.keys[f]]
        if used.all():
            return self
        parts = np.split(used, self.offsets[1:-1])
        keys = tuple(
            tuple(k for k, u in zip(ks, us, strict=True) if u) for ks, us in zip(self.keys, parts, strict=True)
        )
        return Counts(keys, self.cells.take(np.flatnonzero(used), 0))

    def coarsen(self, f: int, times: int | Int) -> Counts:
        """Feature f's integer keys halved, rounding down, so many times; of keys of several numbers each so many."""
        parts = [self.feature(g) for g in range(len(self.keys))]
        keys, cells = parts[f]
        if keys and not isinstance(times, int):
            merged, where = np.unique(np.array(keys, dtype=np.int64) >> times, axis=0, return_inverse=True)
            coarser: Any = tuple(tuple(key) for key in merged.tolist())
            parts[f] = coarser, cells.merged(where.reshape(-1), len(merged), 0)
            return Counts.join(parts, self.cells.rows.shape[1])
        coarse = np.array(keys, dtype=np.int64) >> times
        starts = np.flatnonzero(np.diff(coarse, prepend=coarse[:1] - 1))
        if len(coarse):
            parts[f] = tuple(coarse[starts].tolist()), cells.merge(starts)
        return Counts.join(parts, self.cells.rows.shape[1])

    def same(self, other: Counts) -> bool:
        return self.keys == other.keys and self.cells.same(other.cells)


# Words ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Words:
    """(word, class) → occurrences and documents, of one column of text; and the texts of each class.

    ``needed``: the only words that will be asked for; None for all. ``waits``: an estimate is to be made word by word, as
    texts ask for them; so a large file answers at once.
    """

    table: _core.Words
    needed: NDArray[np.uint32] | None = None
    waits: bool = False

    @property
    def texts(self) -> Rows:
        """Texts per class, those without a single word included."""
        return Rows(*self.table.texts())

    @property
    def occurrences(self) -> Rows:
        """Occurrences per class, over all words."""
        return Rows(*self.table.occurrences())

    def __add__(self, other: Words) -> Words:
        try:
            return Words(self.table.plus(other.table))
        except ValueError:
            raise errors.too_many_rows() from None

    def __sub__(self, other: Words) -> Words:
        """The difference; raises NotThere where it is below zero."""
        return Words(self.table.minus(other.table))

    def __mul__(self, factor: float) -> Words:
        try:
            return Words(self.table.times(factor))
        except ValueError:
            raise errors.too_many_rows() from None

    def same(self, other: Words) -> bool:
        return self.table.same(other.table)

    def take(self, classes: Any) -> Words:
        return Words(self.table.take(np.asarray(classes, dtype=np.int64)))

    def place(self, index: Int, size: int) -> Words:
        return Words(self.table.place(index, size))

    def frozen(self, keep: bool = False) -> Words:
        """The same, apart from a table that goes on growing; without the words that no text has any more, unless all are kept."""
        if not keep and self.table.n_ids != self.table.n_words:
            return self.take(np.arange(self.table.n_classes))
        return Words(self.table.copy())

    def most_frequent(self, n: int) -> list[str]:
        """The n words of most occurrences, most first; equals by name."""
        best: list[tuple[float, int]] = []
        for ids in word_chunks(self.table.n_ids, max(1, (1 << 21) // max(self.table.n_classes, 1))):
            starts, _, occurrences, _, weights = self.table.pairs(ids)
            each = np.append(np.cumsum(occurrences if weights is None else value(weights[:, 0])), 0.0)
            totals = each[starts[1:] - 1] - each[starts[:-1] - 1]
            top = np.argsort(-totals, kind="stable")[: n + 1]
            best += [(-float(totals[k]), int(ids[k])) for k in top.tolist() if starts[k] < starts[k + 1]]
        best.sort()
        limit = best[min(n, len(best)) - 1][0] if best else 0.0
        kept = [pair for pair in best if pair[0] <= limit]
        names = self.table.words(np.array([k for _, k in kept], dtype=np.uint32))
        return [name for _, name in sorted(zip((count for count, _ in kept), names, strict=True))][:n]

    def __reduce__(self) -> Any:
        return _words, (self.table.n_classes, self.table.buckets, self.table.state())


def _words(n_classes: int, buckets: int, state: Any) -> Words:
    return Words(_core.Words.from_state(n_classes, buckets, state))


def word_chunks(n_ids: int, size: int = 1 << 16) -> Iterator[NDArray[np.uint32]]:
    """The ids of words, some at a time, so that no temporary array is as long as all the pairs."""
    for start in range(0, n_ids, size):
        yield np.arange(start, min(start + size, n_ids), dtype=np.uint32)


# Moments -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Moments:
    """n, Σz and Σz² per (feature, class), z = (x − origin) / unit."""

    n: Rows  # (features, classes)
    sums: Real  # (features, classes, 2, 3)

    @classmethod
    def zeros(cls, n_features: int, n_classes: int) -> Moments:
        return cls(Rows.zeros((n_features, n_classes)), np.zeros((n_features, n_classes, 2, 3)))

    def __add__(self, other: Moments) -> Moments:
        if not self.sums.size:
            return self
        return Moments(self.n + other.n, plus(self.sums, other.sums))

    def __sub__(self, other: Moments) -> Moments:
        """The difference; ``below_zero`` finds what cannot be."""
        if not self.sums.size:
            return self
        n = self.n - other.n
        sums = plus(self.sums, -other.sums)
        slack = IMPOSSIBLE * (np.abs(value(self.sums)) + np.abs(value(other.sums)))
        gone = np.asarray(np.abs(value(sums)) <= slack) & np.asarray(n.rows == 0)[..., None]
        sums[gone] = 0.0
        return Moments(n, sums)

    def below_zero(self, before: Moments) -> NDArray[np.bool_]:
        if not self.sums.size:
            return np.zeros(self.n.rows.shape, dtype=np.bool_)
        squares, was = value(self.sums[..., 1, :]), value(before.sums[..., 1, :])
        spread = self.spread
        impossible: NDArray[np.bool_] = (
            self.n.below_zero()
            | (np.minimum(squares, spread) < -IMPOSSIBLE * was)
            | ((self.n.rows == 1) & (self.n.weights is None) & (spread > IMPOSSIBLE * was))  # one row has no spread
            | ((self.n.rows == 0) & value(self.sums).any(axis=-1))
        )
        return impossible

    def __mul__(self, factor: float) -> Moments:
        return Moments(self.n * factor, times(self.sums, factor))

    def same(self, other: Moments) -> bool:
        """Within 1e-12 of the sums: Σz² of itself, Σz of √(n Σz²), the largest it could be; both of n at least."""
        if not self.n.same(other.n):
            return False
        gap = np.abs(value(plus(self.sums, -other.sums)))
        n, squares = self.n.value, value(self.sums[..., 1, :])
        size = np.maximum(n, np.maximum(squares, value(other.sums[..., 1, :])))
        return bool(np.all(gap <= ROUNDING * size[..., None]))

    def take(self, index: Any, axis: int) -> Moments:
        return Moments(self.n.take(index, axis), np.take(self.sums, index, axis))

    def place(self, index: Int, size: int, axis: int) -> Moments:
        return Moments(self.n.place(index, size, axis), placed(self.sums, index, size, axis))

    def merged(self, index: Int, size: int, axis: int) -> Moments:
        return Moments(self.n.merged(index, size, axis), gathered(self.sums, index, size, axis, plus))

    def select(self, features: Sequence[int]) -> Moments:
        if list(features) == list(range(len(self.n.rows))):
            return self
        return self.take(np.asarray(features, dtype=np.int64), 0)

    def shift(self, shift: Real, scale: Real) -> Moments:
        """About another origin and unit, (features,) each: z becomes scale · (z + shift)."""
        first, second, n = self.sums[..., 0, :], self.sums[..., 1, :], self.n.exact
        by, factor = shift[:, None], scale[:, None]
        moved = plus(first, times(n, by))
        squares = plus(second, plus(times(first, 2.0 * by), times(times(n, by), by)))
        return Moments(self.n, np.stack([times(moved, factor), times(squares, factor**2)], axis=-2))

    @cached_property
    def mean(self) -> Real:
        """Mean of z; 0 where there are no rows."""
        n = self.n.value
        mean: Real = value(self.sums[..., 0, :]) / np.where(n > 0, n, 1.0)
        return np.where(n > 0, mean, 0.0)

    def pooled(self) -> tuple[Real, Real, Real]:
        """n, mean and Σ(z − mean)² over all classes, (features, 1): within the classes plus between them, nothing cancels."""
        return self._pooled

    @cached_property
    def _pooled(self) -> tuple[Real, Real, Real]:
        n, mean = self.n.value, self.mean
        rows = n.sum(axis=1, keepdims=True)
        centre = (n * mean).sum(axis=1, keepdims=True) / np.where(rows > 0, rows, 1.0)
        between = (n * (mean - centre) ** 2).sum(axis=1, keepdims=True)
        spread = np.maximum(self.spread, 0.0).sum(axis=1, keepdims=True) + between
        return rows, centre, _beyond_noise(spread, rows, centre)

    @cached_property
    def spread(self) -> Real:
        """Σ(z − m)² about the rounded mean m, as (Σz² − m·Σz) − m·(Σz − n·m).

        The first difference is taken of exact products, so that what cancels leaves no noise; in the second all that is
        left is rounding.
        """
        first, second, n, mean = self.sums[..., 0, :], self.sums[..., 1, :], self.n.exact, self.mean
        product, lost = _two_product(first[..., 0], mean)
        gap, rest = _two_sum(second[..., 0], -product)
        near, under = _two_product(n[..., 0], mean)
        residual = (first[..., 0] - near) + (first[..., 1] - under - n[..., 1] * mean)
        spread = gap + (rest + (second[..., 1] - lost - first[..., 1] * mean) - mean * residual)
        return _beyond_noise(spread, self.n.value, mean)


def _beyond_noise(spread: Real, n: Real, mean: Real) -> Real:
    """0 where a sum of squares about the mean is no more than what rounding leaves of a constant.

    Squares of z up to 16 are summed in plain float64 within a block of rows; those of larger z exactly, but the mean that
    they are taken about is rounded.
    """
    noise = NOISE * np.minimum(mean * mean, 256.0) + (2.0**-51 * mean) ** 2
    return np.where(np.abs(spread) <= n * noise, 0.0, spread)


# Products ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Products:
    """n, Σz and Σzzᵀ per class of a block of columns; of rows that have all of them.

    The cells of ``sums`` are the columns, then the pairs (i, j), j ≤ i, i by i.
    """

    n: Rows  # (classes,)
    sums: Real  # (classes, columns + pairs, 3)

    @classmethod
    def zeros(cls, n_columns: int, n_classes: int) -> Products:
        cells = n_columns + n_columns * (n_columns + 1) // 2
        return cls(Rows.zeros((n_classes,)), np.zeros((n_classes, cells, 3)))

    @cached_property
    def n_columns(self) -> int:
        cells = self.sums.shape[1]
        return int(np.rint(((9 + 8 * cells) ** 0.5 - 3) / 2))

    @cached_property
    def pairs(self) -> tuple[Int, Int]:
        """The columns of each pair."""
        first, second = np.tril_indices(self.n_columns)
        return first, second

    def __add__(self, other: Products) -> Products:
        return Products(self.n + other.n, plus(self.sums, other.sums))

    def __sub__(self, other: Products) -> Products:
        """The difference; ``below_zero`` finds what cannot be."""
        n, sums = self.n - other.n, plus(self.sums, -other.sums)
        slack = IMPOSSIBLE * (np.abs(value(self.sums)) + np.abs(value(other.sums)))
        gone = np.asarray(np.abs(value(sums)) <= slack) & np.asarray(n.rows == 0)[:, None]
        sums[gone] = 0.0
        return Products(n, sums)

    def __mul__(self, factor: float) -> Products:
        return Products(self.n * factor, times(self.sums, factor))

    def below_zero(self, before: Products) -> NDArray[np.bool_]:
        """The classes whose sums no rows can have."""
        squares, was = self._squares, before._squares
        spread = np.diagonal(self.scatter, axis1=1, axis2=2)
        negative = (np.minimum(squares, spread) < -IMPOSSIBLE * was).any(axis=1)
        left = (self.n.rows == 0) & value(self.sums).any(axis=1)
        return np.asarray(self.n.below_zero() | negative | left)

    @property
    def _squares(self) -> Real:
        d = self.n_columns
        return value(self.sums[:, d + np.arange(d) * (np.arange(d) + 3) // 2])

    def same(self, other: Products) -> bool:
        """Within 1e-12 of the largest that a sum of so many rows could be."""
        if not self.n.same(other.n):
            return False
        first, second = self.pairs
        size = np.maximum(np.maximum(self._squares, other._squares), self.n.value[:, None])
        both = np.sqrt(size[:, first] * size[:, second])
        gap = np.abs(value(plus(self.sums, -other.sums)))
        return bool(np.all(gap <= ROUNDING * np.concatenate([size, both], axis=1)))

    def take(self, index: Any) -> Products:
        return Products(self.n.take(index, 0), np.take(self.sums, index, 0))

    def place(self, index: Int, size: int) -> Products:
        return Products(self.n.place(index, size, 0), placed(self.sums, index, size, 0))

    def merged(self, index: Int, size: int) -> Products:
        return Products(self.n.merged(index, size, 0), gathered(self.sums, index, size, 0, plus))

    def shift(self, shift: Real, scale: Real) -> Products:
        """About other origins and units, (columns,) each: z becomes scale · (z + shift)."""
        d, (i, j) = self.n_columns, self.pairs
        first, second, n = self.sums[:, :d], self.sums[:, d:], self.n.exact[:, None]
        moved = plus(first, times(n, shift))
        cross = plus(times(first[:, i], shift[j]), times(first[:, j], shift[i]))
        both = plus(second, plus(cross, times(times(n, shift[i]), shift[j])))
        return Products(self.n, np.concatenate([times(moved, scale), times(both, scale[i] * scale[j])], axis=1))

    @cached_property
    def mean(self) -> Real:
        """Mean of z, (classes, columns); 0 where there are no rows."""
        n = self.n.value[:, None]
        return np.where(n > 0, value(self.sums[:, : self.n_columns]) / np.where(n > 0, n, 1.0), 0.0)

    @cached_property
    def scatter(self) -> Real:
        """Σ(z − m)(z − m)ᵀ about the rounded mean m, (classes, columns, columns); what cancels leaves no noise."""
        d, (i, j), m = self.n_columns, self.pairs, self.mean
        first, second, n = self.sums[:, :d], self.sums[:, d:], self.n.exact[:, None]
        less = plus(times(first[:, j], m[:, i]), times(first[:, i], m[:, j]))
        found = value(plus(plus(second, -less), times(times(n, m[:, i]), m[:, j])))
        result = np.zeros((len(found), d, d))
        result[:, i, j] = result[:, j, i] = found
        return _scatter_beyond_noise(result, self.n.value, m)

    def pooled(self) -> tuple[float, Real, Real]:
        """n, mean and Σ(z − mean)(z − mean)ᵀ over all classes."""
        n = self.n.value
        rows = float(n.sum())
        centre = (n[:, None] * self.mean).sum(axis=0) / (rows if rows > 0 else 1.0)
        apart = self.mean - centre
        every = self.scatter.sum(axis=0) + np.einsum("c,ci,cj->ij", n, apart, apart)
        return rows, centre, _scatter_beyond_noise(every[None], np.array([rows]), centre[None])[0]


def _scatter_beyond_noise(scatter: Real, n: Real, mean: Real) -> Real:
    """The same for products: 0 in the rows and columns of what does not vary; rows taken out again may leave some noise."""
    spread = np.diagonal(scatter, axis1=1, axis2=2)
    varies = _beyond_noise(spread, n[:, None], mean) > FAINT * n[:, None]
    return np.where(varies[:, :, None] & varies[:, None, :], scatter, 0.0)
