"""Categorical: one of several values, as they come; and Bernoulli, its two-valued kin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.families import dirichlet
from banbury.families.cells import NamedCells, flat, prior_of
from banbury.families.dirichlet import Shares
from banbury.families.family import (
    Choice,
    ColumnReader,
    Family,
    Feature,
    KeyedParameters,
    NumberColumn,
    Reads,
    RowsToCount,
    check_positive,
    side_by_side,
)
from banbury.families.keys import KEY_TYPES, KeyCounter, KeyedFamily, count_values, dense_numbers, look_up
from banbury.reading import Codes
from banbury.sums import Counts, Key, Keys, Moments, as_index, in_order, total

WIDEST_LOOKUP = 1 << 20  # integer categories from a narrower range are looked up as they are
FARTHEST = 2**62  # whole numbers beyond are looked up by name


@dataclass(frozen=True, repr=False)
class Categorical(KeyedFamily):
    """A column with one of several values.

    Args:
        alpha: The pseudo-count of the Dirichlet prior: a number for every value, or a mapping from value to number.
        m: The strength of an m-estimate, an alternative to ``alpha``.
        p: The prior shares of an m-estimate as a mapping from value to share; equal unless given.
        values: The values that the column can have, seen or not.
        codes: Declares that values are numbers from 0 up, and that there are at least this many. All numbers below the
            highest one seen count as values.
        missing: "category" makes a missing value one of the values.

    >>> import banbury as bb
    >>> tally = bb.count({"sky": ["sun", "sun", "rain"], "play": ["yes", "yes", "no"]}, target="play",
    ...                  features={"sky": bb.Categorical(values=["sun", "rain", "cloud"])})
    >>> bb.estimate(tally, alpha=1).likelihood("sky", "cloud")
    {'no': 0.25, 'yes': 0.2}
    """

    alpha: float | Mapping[Key, float] | None = None
    m: float | None = None
    p: Mapping[Key, float] | None = None
    values: Sequence[Key] | None = None
    missing: Literal["skip", "category"] = "skip"
    codes: int | None = None

    name: ClassVar[str] = "categorical"
    counting: ClassVar[tuple[str, ...]] = ("values", "missing")
    has_cells: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.missing not in ("skip", "category"):
            raise errors.unknown_choice("missing", self.missing, ["skip", "category"])
        if self.values is not None:
            object.__setattr__(self, "values", scalar_values(self.values))
        if self.codes is not None and not (isinstance(self.codes, (int, np.integer)) and 0 <= self.codes < 2**31):
            raise errors.bad_setting("codes", self.codes, "None or a whole number of at least 0")
        check_prior(self.alpha, self.m, self.p)

    def counter(self, feature: Feature) -> ValueCounter:
        return VALUES

    def permanent_keys(self) -> frozenset[Key] | None:
        return None if self.values is None else frozenset(self.values)

    def pseudo_counts(self, keys: Keys, alpha: float) -> Real:
        if self.m is not None:
            return self.m * _shares(self.p, keys)
        pseudo_count = self.alpha if self.alpha is not None else alpha
        if isinstance(pseudo_count, Mapping):
            check_covers("alpha", pseudo_count, keys)
            return np.array([pseudo_count[key] for key in keys], dtype=np.float64)
        return np.full(len(keys), float(pseudo_count))

    def keys_of(self, rows: ColumnReader, feature: Feature, threads: int = 1, strict: bool = True) -> Codes:
        column = rows.codes(feature.name, feature.kind) if strict else values_of(rows, feature)
        numbers, names = dense_numbers(column, threads)
        if self.missing == "skip":
            return Codes(numbers, 0, names)
        with_none: Any = [*names, None]
        return Codes(np.where(numbers < 0, np.int32(len(names)), numbers), 0, with_none)

    def estimate(
        self, features: tuple[Feature, ...], sums: Counts, choice: Choice, rng: np.random.Generator
    ) -> CategoricalParameters:
        counted = sums.keys
        if self.codes is not None:
            sums = sums.with_keys(tuple(self._all_codes(keys) for keys in sums.keys))
        cells = sums.cells.value
        alpha = np.concatenate([self.pseudo_counts(keys, choice.alpha) for keys in sums.keys])
        seen = dirichlet.log(dirichlet.shares(cells, sums.offsets, alpha, choice.how, rng))
        new = dirichlet.unseen(cells, sums.offsets, alpha, choice.how)
        return CategoricalParameters(features, sums.keys, sums.offsets, np.concatenate([seen, new]), counted)

    def log_prior(self, parameters: CategoricalParameters, sums: Counts, choice: Choice) -> float:
        alpha = np.concatenate([self.pseudo_counts(keys, choice.alpha) for keys in parameters.keys])
        return dirichlet.log_prior(parameters.table[: len(alpha)], alpha, choice.how)

    def _all_codes(self, keys: Keys) -> Keys:
        """The numbers from 0 up to the highest seen, or to as many as there are said to be."""
        seen = [int(key) for key in keys if isinstance(key, (int, np.integer))]
        every = tuple(range(max(max(seen, default=-1) + 1, self.codes or 0)))
        return every if len(seen) == len(keys) and min(seen, default=0) >= 0 else in_order({*every, *keys})

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        return (self,) if column.has_few_values and column.n_values > 2 else ()

    def n_parameters(self, features: tuple[Feature, ...], sums: Counts | Moments) -> list[tuple[int, int]]:
        assert isinstance(sums, Counts)
        return [(max(len(keys) - 1, 0), 0) for keys in sums.keys]

    def cells(self, features: tuple[Feature, ...], sums: Counts, missing: Real, threads: int) -> Sequence[Any]:
        rows = sums.cells.value
        at = sums.offsets
        return [self._cells(feature, sums.keys[f], rows[at[f] : at[f + 1]]) for f, feature in enumerate(features)]

    def _cells(self, feature: Feature, keys: Keys, rows: Real) -> NamedCells | None:
        if not keys:
            return None
        tree = flat(len(keys))
        strengths = tree.choose_strengths(rows, prior_of(rows))[0]
        return NamedCells(feature, tree, strengths, tree, strengths, keys)

    def can_leave_one_out(self, features: tuple[Feature, ...], choice: Choice, weighted: bool) -> bool:
        return self.codes is None and super().can_leave_one_out(features, choice, weighted)

    def shares(self, feature: Feature, keys: Keys, cells: Real, choice: Choice) -> tuple[Shares, Int]:
        shares, cell_of_key = super().shares(feature, keys, cells, choice)
        return replace(shares, spread=self.m is not None and self.p is None), cell_of_key


class ValueCounter(KeyCounter):
    """The rows of each value; those declared stay, and missing is one where the family says so."""

    def reads(self, feature: Feature) -> Reads | None:
        return "string" if feature.kind == "string" else None

    def describe_scale(self, feature: Feature) -> str:
        return f" of {feature.kind}s"

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Counts]:
        counted = zip(features, count_values(features, [feature.kind for feature in features], rows), strict=True)
        parts = [_complete_keys(feature, keys, cells, rows.per_class) for feature, (keys, cells) in counted]
        return features, Counts.join(parts, len(rows.labels))

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        values = super().check_keys(feature, keys)
        declared = feature.family.permanent_keys() or frozenset()
        types = {type(value) for value in values if value not in declared}
        missing = {type(None)} if counts_missing(feature.family) else set()
        if not types <= {KEY_TYPES[feature.kind], *missing}:
            raise ValueError(f"the keys of {feature.name!r} do not all have the kind {feature.kind!r}")
        return values


def _complete_keys(feature: Feature, keys: Keys, cells: Integers, per_class: Integers) -> tuple[Keys, Integers]:
    """The keys that the family has: those declared, and missing as a value where it is one."""
    family = feature.family
    assert isinstance(family, Categorical)
    if family.missing == "category":
        rest = per_class.arranged([1, *per_class.shape]) - total(cells, 0)
        keys = (*keys, None)
        cells = Integers.join([cells, rest])
    declared = family.permanent_keys()
    if not declared:
        return keys, cells
    for key in keys:
        if key is not None and key not in declared:
            raise errors.unknown_value(key, feature.name, in_order(declared))
    all_keys = in_order(declared.union(keys))
    return all_keys, cells.merge(as_index([all_keys.index(key) for key in keys]), len(all_keys), 0)


VALUES = ValueCounter()


def counts_missing(family: Family) -> bool:
    """Whether a missing value is a value."""
    return isinstance(family, Categorical) and family.missing == "category"


def scalar_values(values: Any) -> Keys:
    """The values in order, each once; raises unless they are scalars."""
    expected = "a list of at least one value: texts, numbers or booleans"
    errors.require(not isinstance(values, (str, bytes)) and isinstance(values, Iterable), "values", values, expected)
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    if not plain or not all(isinstance(value, (bool, int, float, str)) and value == value for value in plain):
        raise errors.bad_setting("values", values, expected)
    return in_order(dict.fromkeys(plain))


def check_prior(alpha: Any, m: Any, p: Any) -> None:
    errors.require(m is None or alpha is None, "m", m, "omitted when alpha is given (alpha = m · p)")
    errors.require(p is None or m is not None, "p", p, "given together with m, the number of pseudo-rows")
    if m is not None:
        check_positive("m", m, zero=True)
    errors.require(p is None or isinstance(p, Mapping), "p", p, "a mapping from each value to its share")
    for share in p.values() if isinstance(p, Mapping) else ():
        check_positive("p", share, zero=True)
    if isinstance(p, Mapping) and abs(sum(p.values()) - 1.0) > 1e-9:
        raise errors.bad_setting("p", p, f"shares that sum to 1 (these sum to {sum(p.values()):g})")
    for number in alpha.values() if isinstance(alpha, Mapping) else () if alpha is None else (alpha,):
        check_positive("alpha", number, zero=True)


def check_covers(setting: str, shares: Mapping[Key, float], keys: Keys) -> None:
    absent = [key for key in keys if key not in shares]
    if absent:
        raise errors.bad_setting(setting, dict(shares), f"given for every value seen; {errors.listed(absent)} has none")


def _shares(p: Mapping[Key, float] | None, keys: Keys) -> Real:
    if p is None:
        return np.full(len(keys), 1.0 / max(len(keys), 1))
    check_covers("p", p, keys)
    return np.array([p[key] for key in keys], dtype=np.float64)


def values_of(rows: ColumnReader, feature: Feature) -> Any:
    """A column to be scored as codes: of the kind that was counted, or else as it is; what cannot be counted is unseen."""
    try:
        return rows.codes(feature.name, feature.kind)
    except errors.BadValue:
        column = rows.codes(feature.name)
        return column.with_values([_convert(value, feature.kind) for value in column.values])


def _convert(value: Any, kind: str) -> Any:
    try:
        if kind == "string":
            return str(value)
        number = float(value)
        return number if kind == "float" else int(number) if number == int(number) else value
    except (TypeError, ValueError, OverflowError):
        return value


@dataclass(frozen=True)
class CategoricalParameters(KeyedParameters):
    """Log-probabilities of every key: ``table`` has the keys of all features, then a row per feature for unseen values.

    ``counted`` are the keys that rows have or that were declared; codes may stand between them.
    """

    features: tuple[Feature, ...]
    keys: tuple[Keys, ...]
    offsets: NDArray[np.int64]
    table: Real
    counted: tuple[Keys, ...]

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        matrix = rows.whole([feature.name for feature in self.features]) if self._by_number is not None else None
        if matrix is not None:
            assert self._by_number is not None
            return [_core.TablePart([matrix], *self._by_number, self.table)]
        columns = [self._column(f, rows) for f in range(len(self.features))]
        codes, low, lookups, outside = zip(*columns, strict=True)
        arrays = np.array(low, dtype=np.int64), list(lookups), np.array(outside, dtype=np.int64)
        return [_core.TablePart(side_by_side(codes), *arrays, self.table)]

    @cached_property
    def _by_number(self) -> tuple[NDArray[np.int64], list[NDArray[np.uint32]], NDArray[np.int64]] | None:
        """Lowest codes, lookups and the rows of all other numbers, where every column holds whole numbers from a narrow range."""
        lows = []
        lookups = []
        for f in range(len(self.features)):
            span = self._span(f)
            if span is None:
                return None
            lows.append(span.start)
            lookups.append(self._lookup(f, span))
        outside = [self._unseen(f) for f in range(len(self.features))]
        return np.array(lows, dtype=np.int64), lookups, np.array(outside, dtype=np.int64)

    def _column(self, f: int, rows: ColumnReader) -> tuple[NDArray[Any], int, NDArray[np.uint32], int]:
        """A column's codes, the lowest of them, the table's row for each from there on, and the row for all others."""
        feature = self.features[f]
        integers = rows.integers(feature.name) if feature.kind == "integer" else None
        span = self._span(f) if integers is not None else None
        if integers is not None and span is not None:
            return integers, span.start, self._lookup(f, span), self._unseen(f)
        column = values_of(rows, feature)
        return column.codes, column.low, self._lookup(f, column.values), self._missing(f)

    def _span(self, f: int) -> range | None:
        """From the least of a feature's whole numbers to the greatest; None if it has others, or they are far apart or huge."""
        numbers = [key for key in self.keys[f] if key is not None] if self.features[f].kind == "integer" else []
        if not numbers or not all(isinstance(number, int) for number in numbers):
            return None
        low = int(numbers[0])
        high = int(numbers[-1])
        if high - low >= WIDEST_LOOKUP or not -FARTHEST <= low < FARTHEST:
            return None
        return range(low, high + 1)

    def _unseen(self, f: int) -> int:
        return len(self.table) - len(self.features) + f

    def _lookup(self, f: int, values: Sequence[Any]) -> NDArray[np.uint32]:
        """The table's row for each of a column's distinct values."""
        start = self.offsets[f]
        unseen = self._unseen(f)
        numbers = [key for key in self.keys[f] if key is not None] if isinstance(values, range) else []
        near = (isinstance(number, int) and -FARTHEST <= number < FARTHEST for number in (*numbers, *values[:1]))
        if numbers and isinstance(values, range) and all(near):
            lookup = np.full(len(values), unseen, dtype=np.uint32)
            at = np.array(numbers, dtype=np.int64) - values.start
            inside = (at >= 0) & (at < len(values))
            lookup[at[inside]] = (start + np.arange(len(numbers)))[inside]
            return lookup
        position = self._positions[f]
        return np.fromiter((position.get(v, unseen) for v in values), dtype=np.uint32, count=len(values))

    @cached_property
    def _positions(self) -> list[dict[Any, int]]:
        """The table's row of each key, feature by feature."""
        starts_of_keys = zip(self.keys, self.offsets.tolist(), strict=False)
        return [{key: k for k, key in enumerate(keys, start)} for keys, start in starts_of_keys]

    def _missing(self, f: int) -> int:
        if not counts_missing(self.features[f].family):
            return -1
        keys = self.keys[f]
        return int(self.offsets[f]) + keys.index(None) if None in keys else self._unseen(f)

    def select(self, index: Sequence[int]) -> CategoricalParameters:
        rows = [np.arange(self.offsets[f], self.offsets[f + 1]) for f in index]
        unseen = len(self.table) - len(self.features) + np.asarray(index, dtype=np.int64)
        keys = tuple(self.keys[f] for f in index)
        offsets = np.cumsum([0, *map(len, keys)], dtype=np.int64)
        table = self.table[np.concatenate([*rows, unseen])]
        counted = tuple(self.counted[f] for f in index)
        return CategoricalParameters(tuple(self.features[f] for f in index), keys, offsets, table, counted)

    def categories(self, f: int, column: str) -> Keys:
        return self.keys[f]

    def never_seen(self, rows: ColumnReader) -> NDArray[np.bool_]:
        def new(feature: Feature, seen_keys: set[Key]) -> Int:
            return look_up(values_of(rows, feature), lambda values: [value not in seen_keys for value in values], 0)

        return np.stack([*map(new, self.features, map(set, self.counted))], axis=1).astype(np.bool_)

    def values(self) -> tuple[Real, list[tuple[int, Any]]]:
        names = [(f, key) for f, keys in enumerate(self.keys) for key in keys]
        return np.exp(self.table[: len(names)]), names

    def sample(self, classes: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[Any]]:
        columns = []
        for f, keys in enumerate(self.keys):
            share = np.exp(self.table[self.offsets[f] : self.offsets[f + 1]])
            one = len({type(key) for key in keys}) == 1
            values = np.array(keys if keys else [None], dtype=None if one else object)
            drawn = dirichlet.draw_cells(share, classes, rng) if keys else np.zeros(len(classes), dtype=np.int64)
            columns.append(values[drawn])
        return columns
