"""Categorical: a column with one of several values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Bool, Int, Real
from banbury.families import dirichlet
from banbury.families.cells import NamedCells, flat_tree
from banbury.families.dirichlet import Shares
from banbury.families.family import (
    Choice,
    ColumnReader,
    Family,
    Feature,
    Features,
    KeyedParameters,
    NumberColumn,
    Reads,
    RowsToCount,
    check_positive,
    side_by_side,
)
from banbury.families.keys import KEY_TYPES, KeyCounter, KeyedFamily, count_values, map_values, number_values
from banbury.reading import Codes
from banbury.sums import Counts, Key, Keys, as_index, sort_keys, sum_axis

WIDEST_LOOKUP = 1 << 20  # integer categories in a narrower range are looked up in an array
LARGEST_INDEX = 2**62  # whole numbers beyond ± this are looked up in a dictionary


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
        """Raises unless the settings are valid and go together; declared values become a sorted tuple."""
        if self.missing not in ("skip", "category"):
            raise errors.unknown_choice("missing", self.missing, ["skip", "category"])
        if self.values is not None:
            object.__setattr__(self, "values", scalar_values(self.values))
        if self.codes is not None and not (isinstance(self.codes, (int, np.integer)) and 0 <= self.codes < 2**31):
            raise errors.bad_setting("codes", self.codes, "None or a whole number of at least 0")
        check_prior(self.alpha, self.m, self.p)

    def counter(self, feature: Feature) -> ValueCounter:
        """Returns the counter that turns the values of a feature of this family into sums."""
        return VALUES

    def permanent_keys(self) -> frozenset[Key] | None:
        """Returns the declared values, which stay in a tally even if no row has them; None if none are declared."""
        return None if self.values is None else frozenset(self.values)

    def pseudo_counts(self, keys: Keys, alpha: float) -> Real:
        """Returns the pseudo-count of each key (keys); ``alpha`` is for families that do not set their own. Raises if a
        setting is a mapping that lacks a key.
        """
        if self.m is not None:
            return self.m * _prior_shares(self.p, keys)
        pseudo_count = self.alpha if self.alpha is not None else alpha  # a number, or a mapping from key to number
        if isinstance(pseudo_count, Mapping):
            check_covers("alpha", pseudo_count, keys)
            return np.array([pseudo_count[key] for key in keys], dtype=np.float64)
        return np.full(len(keys), float(pseudo_count))

    def keys_of(self, rows: ColumnReader, feature: Feature, threads: int = 1, strict: bool = True) -> Codes:
        """Returns the value of each row as codes, −1 if it is missing, unless None is a value. ``strict`` raises for a
        value of another kind than the feature's; otherwise it is an unknown value.
        """
        column = rows.codes(feature.name, feature.kind) if strict else codes_to_score(rows, feature)
        numbers, values = number_values(column, threads)  # the number of each row's value among the distinct ``values``
        if self.missing == "skip":
            return Codes(numbers, low=0, values=values)
        with_none: Any = [*values, None]
        return Codes(np.where(numbers < 0, np.int32(len(values)), numbers), low=0, values=with_none)

    def estimate(self, features: Features, sums: Counts, choice: Choice, rng: Generator) -> CategoricalParameters:
        """Estimates the parameters of these features from their sums, as ``choice`` says; ``rng`` draws under "gibbs"."""
        counted_keys = sums.keys  # the values of each column that rows have or that were declared
        if self.codes is not None:
            sums = sums.with_keys(tuple(self._all_codes(keys) for keys in sums.keys))
        offsets = sums.offsets  # the line of ``cells`` at which each column starts
        cells = sums.cells.value  # rows (keys of all columns × classes)
        alpha = np.concatenate([self.pseudo_counts(keys, choice.alpha) for keys in sums.keys])  # of each line
        shares = dirichlet.shares(cells, offsets, alpha, choice.how, rng)  # in the shape of ``cells``
        log_shares_of_new = dirichlet.unseen(cells, offsets, alpha, choice.how)  # of unseen values (columns × classes)
        table = np.concatenate([dirichlet.log(shares), log_shares_of_new])
        return CategoricalParameters(features, sums.keys, offsets, table, counted_keys)

    def log_prior(self, parameters: CategoricalParameters, sums: Counts, choice: Choice) -> float:
        """Returns what the Dirichlet prior adds to the log-likelihood of these parameters, over all features and
        classes; ``sums`` make no difference.
        """
        # The pseudo-count of each value of each column; ``table`` has their log-shares, and then those of unseen values.
        alpha = np.concatenate([self.pseudo_counts(keys, choice.alpha) for keys in parameters.keys])
        return dirichlet.log_prior(parameters.table[: len(alpha)], alpha, choice.how)

    def _all_codes(self, keys: Keys) -> Keys:
        """Returns the whole numbers from 0 up to the highest key, or below the setting ``codes`` if that is more, and
        all other keys, in order.
        """
        whole_numbers = [int(key) for key in keys if isinstance(key, (int, np.integer))]
        all_numbers = tuple(range(max(max(whole_numbers, default=-1) + 1, self.codes or 0)))
        if len(whole_numbers) == len(keys) and min(whole_numbers, default=0) >= 0:  # no other keys
            return all_numbers
        return sort_keys({*all_numbers, *keys})

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        """Returns this family for a column of numbers that has few values, but more than two."""
        return (self,) if column.has_few_values and column.n_values > 2 else ()

    def n_parameters(self, features: Features, sums: Counts) -> list[tuple[int, int]]:
        """Returns a pair for each feature: the number of its values less one, which each class has, and 0 that classes
        share. ``sums`` has the values of each feature.
        """
        return [(max(len(keys) - 1, 0), 0) for keys in sums.keys]

    def cells(self, features: Features, sums: Counts, missing: Real, threads: int) -> Sequence[Any]:
        """Returns the cells by which the evidence of each column is weighed: one for each value, None for a column
        without values. ``sums`` are the counts of the columns. Missing values have no cell, so ``missing`` is not used.
        """
        rows_by_column = np.split(sums.cells.value, sums.offsets[1:-1])  # keys × classes each
        return list(map(self._cells, features, sums.keys, rows_by_column))

    def _cells(self, feature: Feature, keys: Keys, rows: Real) -> NamedCells | None:
        """Returns the cells of one column, one for each key, from the ``rows`` of the keys (keys × classes); None
        without keys.
        """
        if not keys:
            return None
        tree = flat_tree(len(keys)).with_likeliest_strengths(rows)
        return NamedCells(feature, tree, tree, keys)

    def can_leave_one_out(self, features: Features, choice: Choice, weighted: bool) -> bool:
        """Whether a formula leaves one row out; not with ``codes``, where the highest number may go."""
        return self.codes is None and super().can_leave_one_out(features, choice, weighted)

    def shares(self, feature: Feature, keys: Keys, cells: Real, choice: Choice) -> tuple[Shares, Int]:
        """Returns the shares of a feature's values, from which rows can be left out, and for each key the number of its
        share. ``cells`` has the rows of each key (keys × classes). Under an m-estimate without ``p``, the prior is
        spread evenly over the values that are left.
        """
        shares, cell_of_key = super().shares(feature, keys, cells, choice)
        return replace(shares, spread=self.m is not None and self.p is None), cell_of_key


class ValueCounter(KeyCounter):
    """Counts the rows of each value. Declared values stay without rows, and missing may count as a value."""

    def reads(self, feature: Feature) -> Reads | None:
        """Returns what a column of a text file is read as: strings if the first rows were strings, else what they
        decide.
        """
        return "string" if feature.kind == "string" else None

    def describe_scale(self, feature: Feature) -> str:
        """Describes for people what else features must have in common for their counts to be added: the type of values."""
        return f" of {feature.kind}s"

    def count(self, features: Features, rows: RowsToCount) -> tuple[Features, Counts]:
        """Counts the values of these rows. Returns the features as they are, and the rows of each value (keys ×
        classes).
        """
        counts = count_values(features.names, [feature.kind for feature in features], rows)
        complete_counts = [
            _complete_keys(feature, keys, cells, rows.per_class)
            for feature, (keys, cells) in zip(features, counts, strict=True)
        ]
        return features, Counts.join(complete_counts, len(rows.labels))

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        """Returns the keys of a feature from a file, as a tuple; raises unless they are valid, distinct and in order."""
        values = super().check_keys(feature, keys)
        declared = feature.family.permanent_keys() or frozenset()
        types = {type(value) for value in values if value not in declared}
        missing = {type(None)} if counts_missing(feature.family) else set()
        if not types <= {KEY_TYPES[feature.kind], *missing}:
            raise ValueError(f"the keys of {feature.name!r} do not all have the kind {feature.kind!r}")
        return values


def _complete_keys(feature: Feature, keys: Keys, cells: Integers, per_class: Integers) -> tuple[Keys, Integers]:
    """Returns the keys of a feature, with declared values and, if it counts, the missing value (None) added; and the
    rows of each. ``cells`` has the rows of ``keys`` (keys × classes), and ``per_class`` the number of rows of each
    class. Raises for a value that is not declared.
    """
    family = feature.family
    assert isinstance(family, Categorical)
    if family.missing == "category":
        missing_rows = per_class.arranged([1, *per_class.shape]) - sum_axis(cells, 0)  # 1 × classes
        keys = (*keys, None)
        cells = Integers.join([cells, missing_rows])
    declared = family.permanent_keys()
    if not declared:
        return keys, cells
    for key in keys:
        if key is not None and key not in declared:
            raise errors.unknown_value(key, feature.name, sort_keys(declared))
    all_keys = sort_keys(declared.union(keys))
    return all_keys, cells.merge(as_index([all_keys.index(key) for key in keys]), len(all_keys), 0)


VALUES = ValueCounter()


def counts_missing(family: Family) -> bool:
    """Whether a family counts a missing value as one of its values."""
    return isinstance(family, Categorical) and family.missing == "category"


def scalar_values(values: Any) -> Keys:
    """Returns the distinct values in order, as a tuple; raises unless they are scalars."""
    expected = "a list of at least one value: texts, numbers or booleans"
    errors.require(not isinstance(values, (str, bytes)) and isinstance(values, Iterable), "values", values, expected)
    # Without NumPy's own types.
    python_values = [value.item() if isinstance(value, np.generic) else value for value in values]
    are_scalars = all(isinstance(value, (bool, int, float, str)) and value == value for value in python_values)
    errors.require(bool(python_values) and are_scalars, "values", values, expected)
    return sort_keys(dict.fromkeys(python_values))


def check_prior(alpha: Any, m: Any, p: Any) -> None:
    """Raises unless the settings of a prior are valid and go together: the pseudo-count ``alpha``, or an m-estimate's
    strength ``m`` and prior shares ``p``.
    """
    errors.require(m is None or alpha is None, "m", m, "omitted when alpha is given (alpha = m · p)")
    errors.require(p is None or m is not None, "p", p, "given together with m, the number of pseudo-rows")
    if m is not None:
        check_positive("m", m, zero=True)
    errors.require(p is None or isinstance(p, Mapping), "p", p, "a mapping from each value to its share")
    for share in p.values() if isinstance(p, Mapping) else ():
        check_positive("p", share, zero=True)
    if isinstance(p, Mapping) and abs(sum(p.values()) - 1.0) > 1e-9:
        raise errors.bad_setting("p", p, f"shares that sum to 1 (these sum to {sum(p.values()):g})")
    pseudo_counts = alpha.values() if isinstance(alpha, Mapping) else () if alpha is None else (alpha,)
    for pseudo_count in pseudo_counts:
        check_positive("alpha", pseudo_count, zero=True)


def check_covers(setting: str, shares: Mapping[Key, float], keys: Keys) -> None:
    """Raises unless a setting that maps keys to numbers (``shares``) has a number for each of ``keys``. ``setting`` is
    its name.
    """
    absent = [key for key in keys if key not in shares]
    if absent:
        raise errors.bad_setting(setting, dict(shares), f"given for every value seen; {errors.listed(absent)} has none")


def _prior_shares(p: Mapping[Key, float] | None, keys: Keys) -> Real:
    """Returns the prior share of each key (keys): those of the mapping, or equal ones if ``p`` is None."""
    if p is None:
        return np.full(len(keys), 1.0 / max(len(keys), 1))
    check_covers("p", p, keys)
    return np.array([p[key] for key in keys], dtype=np.float64)


def codes_to_score(rows: ColumnReader, feature: Feature) -> Codes:
    """Returns a feature's column to be scored as codes of the kind that was counted. A value that cannot be converted
    stays as it is, and is unknown.
    """
    try:
        return rows.codes(feature.name, feature.kind)
    except errors.BadValue:
        column = rows.codes(feature.name)
        return column.with_values([_convert(value, feature.kind) for value in column.values])


def _convert(value: Any, kind: str) -> Any:
    """Returns a value as the kind that was counted ("string", "float", "integer" or "boolean"); as it is if that is
    impossible.
    """
    try:
        if kind == "string":
            return str(value)
        number = float(value)
        return number if kind == "float" else int(number) if number == int(number) else value
    except (TypeError, ValueError, OverflowError):
        return value


@dataclass(frozen=True)
class CategoricalParameters(KeyedParameters):
    """The log-probabilities of values.

    Args:
        features: The columns.
        keys: The values of each column.
        offsets: The line of ``table`` at which the values of each column begin.
        table: log P(value | class): a line per value of each column, then a line per column for unseen values (lines × classes).
        counted: The values of each column that rows have or that were declared; codes may stand between them.
    """

    features: Features
    keys: tuple[Keys, ...]
    offsets: Int
    table: Real
    counted: tuple[Keys, ...]

    @cached_property
    def _columns(self) -> list[Feature]:
        """The features as a list, which is faster to index."""
        return list(self.features)

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns the parts with which the kernel adds up log P(value | class) of the features for each of these rows."""
        columns = [self._column(f, feature, rows) for f, feature in enumerate(self._columns)]
        # Of each column: codes, lowest code, line of each code from there on, line of all other codes.
        codes, low, lookups, outside = zip(*columns, strict=True)
        lookup_arrays = np.array(low, dtype=np.int64), list(lookups), np.array(outside, dtype=np.int64)
        # ``table`` has a line of log-probabilities for each value (lines × classes).
        return [_core.TablePart(side_by_side(codes), *lookup_arrays, self.table)]

    def _column(
        self, f: int, feature: Feature, rows: ColumnReader
    ) -> tuple[NDArray[Any], int, NDArray[np.uint32], int]:
        """Returns for column number f the codes of its rows, the lowest code, the line of the table for each code from
        this one on, and the line for all others, −1 for none.
        """
        integers = rows.integers(feature.name) if feature.kind == "integer" else None
        key_range = self._key_range(f) if integers is not None else None
        if integers is not None and key_range is not None:
            return integers, key_range.start, self._lookup(f, key_range), self._unseen_line(f)
        column = codes_to_score(rows, feature)
        return column.codes, column.low, self._lookup(f, column.values), self._missing_line(f)

    def _key_range(self, f: int) -> range | None:
        """Returns the range from the lowest to the highest whole number among the values of feature f; None if it has
        other values, or its numbers are far apart or huge.
        """
        # The feature's values, in order.
        numbers = [key for key in self.keys[f] if key is not None] if self._columns[f].kind == "integer" else []
        if not numbers or not all(isinstance(number, int) for number in numbers):
            return None
        low = int(numbers[0])
        high = int(numbers[-1])
        if high - low >= WIDEST_LOOKUP or not -LARGEST_INDEX <= low < LARGEST_INDEX:
            return None
        return range(low, high + 1)

    def _unseen_line(self, f: int) -> int:
        """Returns the line of the table for values of feature f that no row had: the last lines are those of the
        features in order.
        """
        return len(self.table) - len(self.features) + f

    def _lookup(self, f: int, values: Sequence[Any]) -> NDArray[np.uint32]:
        """Returns the line of the table for each of these values of feature f, as an array."""
        start = self.offsets[f]  # the line of the feature's first key
        unseen = self._unseen_line(f)  # the line of values that no row had
        # Whole numbers are looked up in an array, if the feature's values and those asked for are such numbers.
        numbers = [key for key in self.keys[f] if key is not None] if isinstance(values, range) else []
        is_small = (
            isinstance(number, int) and -LARGEST_INDEX <= number < LARGEST_INDEX for number in (*numbers, *values[:1])
        )
        if numbers and isinstance(values, range) and all(is_small):
            lookup = np.full(len(values), unseen, dtype=np.uint32)
            places = np.array(numbers, dtype=np.int64) - values.start  # of the feature's values in the range
            inside = (places >= 0) & (places < len(values))
            lookup[places[inside]] = (start + np.arange(len(numbers)))[inside]
            return lookup
        line_of_key = self._line_of_key[f]  # by key
        return np.fromiter((line_of_key.get(value, unseen) for value in values), dtype=np.uint32, count=len(values))

    @cached_property
    def _line_of_key(self) -> list[dict[Any, int]]:
        """A dictionary for each feature, from each key to its line of the table; ``offsets`` has the line of its first
        key.
        """
        keys_and_starts = zip(self.keys, self.offsets.tolist(), strict=False)
        return [{key: line for line, key in enumerate(keys, start)} for keys, start in keys_and_starts]

    def _missing_line(self, f: int) -> int:
        """Returns the line of the table for a missing value of feature f; −1 if missing values say nothing."""
        if not counts_missing(self._columns[f].family):
            return -1
        keys = self.keys[f]  # the values of the feature, whose lines begin at ``offsets[f]``
        return int(self.offsets[f]) + keys.index(None) if None in keys else self._unseen_line(f)

    def select(self, index: Sequence[int]) -> CategoricalParameters:
        """Returns the parameters of the features with these numbers (``index``), in this order. The lines of feature f
        in ``table`` begin at ``offsets[f]``; after those of all features comes one line each for unseen values.
        """
        lines = [np.arange(self.offsets[f], self.offsets[f + 1]) for f in index]  # in the old table, of each feature
        unseen_lines = len(self.table) - len(self.features) + np.asarray(index, dtype=np.int64)
        # ``keys`` are the values of each feature, ``counted`` those that rows had or that were declared.
        keys = tuple(self.keys[f] for f in index)
        offsets = np.cumsum([0, *map(len, keys)], dtype=np.int64)
        table = self.table[np.concatenate([*lines, unseen_lines])]
        counted = tuple(self.counted[f] for f in index)
        return CategoricalParameters(self.features.take(index), keys, offsets, table, counted)

    def categories(self, f: int, column: str) -> Keys:
        """Returns the values of feature f in order; ``column`` is its only column."""
        return self.keys[f]

    def never_seen(self, rows: ColumnReader) -> Bool:
        """Returns whether each row has a value that no counted row had (rows × features). ``self.counted`` has the
        values of each feature that rows had or that were declared.
        """

        def is_unseen(feature: Feature, seen_keys: set[Key]) -> Int:
            """Returns for each row 1 if its value of this feature is not among the counted ones (``seen_keys``), else
            0.
            """
            codes = codes_to_score(rows, feature)
            return map_values(codes, lambda values: [value not in seen_keys for value in values], missing=0)

        return np.stack([*map(is_unseen, self._columns, map(set, self.counted))], axis=1).astype(np.bool_)

    def values(self) -> tuple[Real, list[tuple[int, Any]]]:
        """Returns P(value | class) of the values of all features (values × classes), and for each line the feature's
        number and the value. ``table`` has log-probabilities: those of values come first.
        """
        values_of_lines = [(f, key) for f, keys in enumerate(self.keys) for key in keys]
        return np.exp(self.table[: len(values_of_lines)]), values_of_lines

    def sample(self, classes: Int, rng: Generator) -> list[NDArray[Any]]:
        """Draws a value of each feature for a row of each of these ``classes`` (class numbers); returns an array per
        column. ``table`` has log P(value | class), the lines of feature f from ``offsets[f]`` on.
        """
        columns = []
        for f, keys in enumerate(self.keys):
            share = np.exp(self.table[self.offsets[f] : self.offsets[f + 1]])  # values × classes
            has_one_type = len({type(key) for key in keys}) == 1
            values = np.array(keys if keys else [None], dtype=None if has_one_type else object)
            drawn = dirichlet.draw_cells(share, classes, rng) if keys else np.zeros(len(classes), dtype=np.int64)
            columns.append(values[drawn])  # ``drawn``: the place of each row's value among ``values``
        return columns
