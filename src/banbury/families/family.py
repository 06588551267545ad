"""Three protocols, each asked of a group of features at once: count, estimate, ask.

A ``Counter`` makes sums of rows, and answers for them; families whose sums are alike share one. A ``Family`` has settings, and
turns sums into ``Parameters``, which score, explain and draw. What another room needs it derives from these, and what one family
alone can say stands in that family's file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.families import evidence
from banbury.families.evidence import Comparison, TellingValues, Term
from banbury.reading import Batch, Codes
from banbury.sums import Key, Keys, is_all
from banbury.threads import n_threads

How = Literal["mle", "map", "mean", "predictive", "gibbs"]
HOWS: tuple[How, ...] = ("mle", "map", "mean", "predictive", "gibbs")
Reads = Literal["number", "string", "text", "list"]  # what a column is read as, where it may be read otherwise
Kind = Literal["boolean", "integer", "float", "string"]

LARGEST_SETTING = 1e100
MOST_BINS = 4096  # of a column that are occupied
MOST_CATEGORIES = 20  # different numbers, for a column to be one of categories ...
FEWEST_ROWS = 100  # ... and rows that have to show it
SMALLEST_ALPHA = 1e-10  # α = 0 asks for 0/0; scikit-learn raises it to the same value
UNUSED = np.random.default_rng(0)  # where an estimate draws nothing


def at_least(alpha: Any) -> Any:
    """The prior's α, of which none is 0."""
    if isinstance(alpha, np.ndarray):
        return np.where(alpha > 0, alpha, SMALLEST_ALPHA)
    return alpha if alpha > 0 else SMALLEST_ALPHA


class ColumnReader(Protocol):
    """Rows to score, column by column: the part of a reader's batch that families use."""

    n_rows: int
    first_row: int
    source: str | None

    def numbers(self, names: Sequence[str]) -> list[NDArray[Any]]: ...
    def lists(self, name: str, width: int) -> NDArray[Any]: ...
    def codes(self, name: str, kind: Any = None) -> Any: ...
    def integers(self, name: str) -> NDArray[Any] | None: ...
    def whole(self, names: Sequence[str]) -> NDArray[Any] | None: ...
    def kind(self, name: str) -> Any: ...
    def texts(self, name: str) -> Any: ...
    def occurrences(self, names: Sequence[str]) -> Any: ...
    def head(self, name: str, n: int) -> list[Any]: ...
    def first(self, names: Sequence[str]) -> list[Any]: ...
    def take(self, rows: NDArray[np.int64]) -> ColumnReader: ...


class Feature(NamedTuple):
    """A column or a block of columns, its family, and what the first rows settled about counting it.

    ``origin`` and ``unit`` are those of moments, or the start and width of bins; ``kind`` is the type of the values. A column of
    lists is a block of the numbers in them: it has one name, and a scale for each of them.
    """

    name: str
    family: Family
    origin: float = 0.0
    unit: float = 1.0
    kind: Kind = "string"
    why: str = "declared"
    columns: tuple[str, ...] = ()  # of a block
    scales: tuple[tuple[float, float], ...] = ()  # of a block of numbers: origin and unit of each
    kinds: tuple[Kind, ...] = ()  # of a block of values: their types
    holds_lists: bool = False  # whether it is a block of one column, of lists of numbers

    @property
    def declared(self) -> bool:
        """Whether someone named its family; others are inferred or chosen."""
        return self.why == "declared"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it is counted from."""
        return self.columns or (self.name,)

    def numbers(self, rows: ColumnReader) -> list[NDArray[Any]]:
        """Arrays that together hold its numbers in order, as the kernels read them; missing is NaN."""
        return [rows.lists(self.inputs[0], len(self.scales))] if self.holds_lists else rows.numbers(self.inputs)

    @property
    def reads_text(self) -> bool:
        """Whether a value is a text, so that a line of a file can be one."""
        return self.counter.reads(self) == "text"

    @property
    def counter(self) -> Counter:
        """What makes sums of its values."""
        return self.family.counter(self)

    def counting_key(self) -> tuple[Any, ...]:
        """What two features must share for their sums to add."""
        return self.family.counting_key(), *self.counter.scale(self)


class NumberColumn(NamedTuple):
    """A column of numbers whose family is to be chosen: what is known of the rows that have a value."""

    least: float
    greatest: float
    holds_whole_numbers: bool  # whether all are whole numbers
    n_values: int  # different ones
    n_rows: int

    @property
    def has_few_values(self) -> bool:
        """Whether the values are so few that each is known by itself."""
        return self.n_values <= (MOST_CATEGORIES if self.n_rows >= FEWEST_ROWS else 2)


@dataclass(frozen=True, slots=True)
class Choice:
    """The estimating half: how, and the prior's strength for families that do not say their own.

    ``n_folds``: over how many folds this choice was compared with others, so that every command judges the model over as many.
    ``waits``: words are weighed when texts ask for them, so that a large file answers at once.
    """

    how: How = "mean"
    alpha: float = 1.0
    seed: int = 0
    n_folds: int | None = field(default=None, compare=False, repr=False)
    waits: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True)
class HeldOutRows:
    """Rows that were counted, each to be left out: the number of its class, and its weight; None for ones.

    ``own_sums`` has the sums of features as if every row were a class of its own.
    """

    rows: Batch
    labels: Int
    weights: Real | None
    n_classes: int
    threads: int
    own_sums: Callable[[tuple[Feature, ...]], Any]

    @property
    def weight(self) -> Real:
        return np.ones(len(self.labels)) if self.weights is None else self.weights

    def take(self, rows: Int) -> HeldOutRows:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, rows=self.rows.take(rows), labels=self.labels[rows], weights=weights)

    def scores(self, parameters: Parameters, want: Literal["log_joint", "parts"] = "log_joint") -> Real:
        """log P(values | class), (rows, classes); "parts": feature by feature, (rows, features, classes)."""
        parts = parameters.parts(self.rows)
        n_rows = self.rows.n_rows
        return np.asarray(_core.score(n_rows, np.zeros(self.n_classes), parts, want, self.threads)[0])


class Curve(NamedTuple):
    """Coefficients in each class of 1, x, x² and log x, where x = ((number − origin) / unit − centre) / width."""

    origin: float
    unit: float
    centre: Real
    width: Real
    one: Real
    x: Real
    x2: Real
    log_x: Real

    @property
    def by_class(self) -> tuple[list[float], ...]:
        """Centres, widths and coefficients of the classes."""
        return tuple(column.tolist() for column in self[2:])

    def times(self, weight: float) -> Curve:
        """The same evidence, so many times as heavy."""
        return self._replace(one=weight * self.one, x=weight * self.x, x2=weight * self.x2, log_x=weight * self.log_x)


class LinearWords(NamedTuple):
    """Words, or columns of occurrences, that add up: a row scores intercepts + Σ a · weights.

    a is what a word counts in its row, times its ``scale`` where it has one; those rows are then divided by √Σ a² of their known
    words. ``reading`` says how a row is read: "count" ("count", "log", "root" or "presence"), "length" (what counts are divided
    by: "none", "all" words of the row or the "known" ones), and the settings of the tokeniser or the threshold.
    """

    words: list[str]
    weights: Real  # (words, classes)
    intercepts: Real  # (classes,)
    reading: Mapping[str, Any]
    scale: Real | None = None  # (words,)


class Parameters:
    """A group of features of one family with what was estimated for them: the base of every family's parameters."""

    features: tuple[Feature, ...]

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """The group's arguments to the scoring kernel, for these rows; feature after feature."""
        raise NotImplementedError

    def select(self, index: Sequence[int]) -> Self:
        """The same parameters of some of the features. Here: of each array its rows, of each tuple its members."""
        if is_all(index, len(self.features)):
            return self
        every = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        chosen = {name: _take(array, index) for name, array in every.items() if array is not None}
        return replace(self, **chosen)  # type: ignore[type-var]

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        """A value of each feature for rows of these classes."""
        raise NotImplementedError

    def follow(self, sums: Any) -> bool:
        """Brings the parameters up to date with other sums, in place, where that costs what changed; False: estimate anew."""
        return False

    def categories(self, f: int, column: str) -> Keys | None:
        """The values of a feature's column, where they are listed: those that rows had."""
        return None

    def never_seen(self, rows: ColumnReader) -> NDArray[np.bool_] | None:
        """Which rows have a value of each feature that no row counted had, (rows, features); None where none is listed."""
        return None

    def terms(self, rows: ColumnReader, log_likelihoods: Real) -> list[Term]:
        """What the first row says of each class, from the likelihoods of its features: a term for each, or for each word."""
        if any(feature.columns for feature in self.features):
            values = [first_value(rows, feature) for feature in self.features]
        else:
            values = rows.first([feature.name for feature in self.features])
        new = self.never_seen(rows)
        unseen = np.zeros(len(values), dtype=np.bool_) if new is None else new[0]
        evidence_of_features = zip(self.features, values, log_likelihoods, unseen.tolist(), strict=True)
        return [Term(f.name, value, says, bool(f.columns) or not new) for f, value, says, new in evidence_of_features]

    def telling(self, compared: Comparison) -> Iterator[TellingValues] | None:
        """Values that may tell classes apart, some at a time; None: columns speak together, and have none."""
        if any(feature.columns for feature in self.features):
            return None
        drawn = self.sample(np.repeat(np.arange(len(compared.rest)), evidence.DRAWN), np.random.default_rng(0))
        columns = ((self.select([f]), values) for f, values in enumerate(drawn))
        return (
            telling_values for column in columns for telling_values in evidence.telling_from_draws(*column, compared)
        )

    def cuts(self, column: str | None) -> list[float] | None:
        """The numbers at which the density of a column jumps, in order; None: it is no histogram."""
        return None

    def curve(self, f: int) -> Curve | None:
        """The log density of a feature, if it is a sum of 1, x, x² and log x but for what classes share; None: it is not."""
        return None

    def linear(self) -> LinearWords | None:
        """The words of a feature, where a row scores intercepts + counts @ weights; None: it does not."""
        return None


def _take(array: Any, index: Sequence[int]) -> Any:
    return tuple(array[f] for f in index) if isinstance(array, tuple) else array[np.asarray(index, dtype=np.int64)]


class NumericParameters(Parameters):
    """Parameters of columns of numbers that know their distribution functions."""

    def spread(self, f: int) -> tuple[Real, Real]:
        """Of a feature: its mean and deviation in each class."""
        raise NotImplementedError

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        """P(x < cut | class) and P(x ≥ cut | class), (cuts, classes)."""
        raise NotImplementedError

    def ends(self, f: int, near: Real, step: Real) -> Real:
        """Where a stretch may end, near each of the numbers wanted: at multiples of a round step."""
        return evidence.round_ends(self.features[f], near, step)

    def telling(self, compared: Comparison) -> Iterator[TellingValues] | None:
        return evidence.stretches(self, compared)


class KeyedParameters(Parameters):
    """Parameters of columns of named values, or of combinations of them, each with a probability."""

    def values(self) -> tuple[Real, list[tuple[int, Any]]]:
        """P(value | class) of all values, (values, classes), and the feature's number and value of each."""
        raise NotImplementedError

    def telling(self, compared: Comparison) -> Iterator[TellingValues] | None:
        share, names = self.values()
        return iter([TellingValues(share, share, lambda i: (self.features[names[i][0]].name, names[i][1]))])


def first_value(rows: ColumnReader, feature: Feature) -> Any:
    """The first row's value of a feature, None where it is missing; of a block a tuple of them."""
    values = tuple(next(iter(rows.head(name, 1)), None) for name in feature.inputs)
    return values if feature.columns and not feature.holds_lists else values[0]


@dataclass(frozen=True)
class RowsToCount:
    """Rows with their classes and weights, as the kernels take them."""

    batch: Batch
    labels: Sequence[Any]  # what the class numbers stand for
    classes: NDArray[np.int32]  # -1: not counted
    weights: NDArray[Any] | None  # whole numbers, or limbs of parts of a row
    threads: int
    several: tuple[Int, NDArray[np.int32]] | None = None  # further classes of each row: offsets and numbers
    skipped: int = 0  # rows without a target

    @property
    def has_whole_weights(self) -> bool:
        return self.weights is None or self.weights.ndim == 1

    @cached_property
    def per_class(self) -> Integers:
        return _core.count_classes(self.classes, len(self.labels), self.weights, self.threads)

    def run_kernel(self, kernel: Callable[..., Any], names: Sequence[str], *arguments: Any) -> Any:
        """What a counting kernel makes of these rows; a bad value gets its column's name and its row."""
        try:
            return kernel(*arguments, self.classes, len(self.labels), self.weights, self.threads)
        except _core.BadValue as bad:
            raise bad_value(bad, names, self.batch) from None


def bad_value(bad: _core.BadValue, names: Sequence[str], batch: Batch) -> errors.BadValue:
    """A value that cannot be counted, in a user's words."""
    what, feature, row, number = bad.args
    return errors.bad_value(what, number, names[feature], batch.first_row + row, batch.source)


class Counter:
    """How features are counted: a row adds whole numbers to their sums. Each question is asked of a group of features."""

    apart: ClassVar[bool] = False  # whether each feature has sums of its own; others share theirs
    words: ClassVar[bool] = False  # whether these are tables of words

    def reads(self, feature: Feature) -> Reads | None:
        """What the column of a text file is read as, where its first rows do not settle it."""
        return "number"

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        """Of what the first rows settled, that which two features must share for their sums to add."""
        return feature.origin, feature.unit, feature.scales, feature.kinds

    def describe_scale(self, feature: Feature) -> str:
        """The same, for people; after the family's name."""
        if feature.scales:
            places = (f"{start:g} in steps of {width * feature.unit:g}" for start, width in feature.scales)
            return f" about {errors.listed(places)}"
        return f" about {feature.origin:g} in units of {feature.unit:g}"

    def settle(self, features: Sequence[Feature], batch: Batch) -> Sequence[Feature]:
        """The features with what the first rows settle."""
        return features

    def has_valid_scale(self, feature: Feature) -> bool:
        """Whether a feature that was read from a file has a scale that could have been settled."""
        return not feature.scales and is_power(feature.unit)

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Any]:
        """The features, whose bins may have become wider, and the sums of these rows."""
        raise NotImplementedError

    def check(self, features: Sequence[Feature], sums: Any, rows: Integers, classes: Sequence[Any]) -> None:
        """Raises if these sums cannot be those of any rows: something below zero, or more rows than a class has."""
        overfull = sums.present.value > rows.value  # both are rounded alike: no larger number becomes the smaller one
        for f, label in np.argwhere(overfull):
            raise errors.impossible_sums(classes[label], features[f].name)

    def widen(self, features: Sequence[Feature], sums: Any) -> Sequence[Feature]:
        """The features with bins so wide that no more are occupied than may be: a function of the totals alone."""
        return features

    def adopt_scale(self, feature: Feature, other: Feature) -> Feature:
        """The feature with the other's scale, if sums can be moved from one to the other."""
        return feature

    def move_sums(self, old: Sequence[Feature], new: Sequence[Feature], sums: Any) -> Any:
        """The sums under features of another scale, or of wider bins."""
        return sums

    def summary(self, feature: Feature, sums: Any, missing: str) -> str:
        """What was counted of one feature, in a few words; ``missing`` says how many rows have no value."""
        return f"{errors.many(len(feature.inputs), 'column')}{missing}"

    def restore(self, features: Sequence[Feature], stored: Stored, n_classes: int) -> Any:
        """The sums out of a file; raises where they are not such sums, or are said to be exact and those of no rows."""
        raise NotImplementedError


class Stored(Protocol):
    """The sums of a group in a file."""

    @property
    def exact(self) -> bool: ...
    @property
    def arrays(self) -> dict[str, NDArray[Any]]: ...
    def integers(self, name: str, shape: tuple[int, ...], signed: bool = False) -> Integers: ...
    def keys(self, features: Sequence[Feature], check: Callable[[Feature, Any], Any]) -> tuple[Any, ...]: ...


def is_power(unit: float) -> bool:
    return math.frexp(unit)[0] == 0.5


class Family:
    """The base of every family: a frozen dataclass whose fields are its settings.

    ``counting`` names the settings that decide what is counted; all others belong to estimation, and changing them
    never needs a recount.
    """

    name: ClassVar[str]
    counting: ClassVar[tuple[str, ...]] = ()
    block: ClassVar[bool] = False  # whether it takes several columns together
    blocks: ClassVar[bool] = False  # whether it may: where several are given
    least: ClassVar[float] = -np.inf  # the least number that a column may hold
    keyed: ClassVar[bool] = False  # whether rows are counted by key, which ``keys_of`` says; a block of bins is not
    has_cells: ClassVar[bool] = False  # whether evidence of a column is weighed by ``cells``

    def counter(self, feature: Feature) -> Counter:
        """What makes sums of a feature's values."""
        raise NotImplementedError

    def counting_key(self) -> tuple[Any, ...]:
        """What two families must share for their sums to add: the name of what is counted, and the settings that decide it."""
        return self.name, *(getattr(self, setting) for setting in self.counting)

    def check_columns(self, feature: Feature) -> None:
        """Raises where settings do not fit the feature's columns."""

    def permanent_keys(self) -> frozenset[Key] | None:
        """The keys that stay in a tally even when no row has them."""
        return None

    def estimate(
        self, features: tuple[Feature, ...], sums: Any, choice: Choice, rng: np.random.Generator
    ) -> Parameters:
        """Parameters of features of this family, from their Counts, Moments or Words."""
        raise NotImplementedError

    def log_prior(self, parameters: Any, sums: Any, choice: Choice) -> float:
        """What the prior adds to the log-likelihood that "map" and "mean" maximise, but for a constant; 0 where it has no part.

        The mean under a Dirichlet, Beta or Gamma prior is the mode under one that is worth one more of each.
        """
        return 0.0

    def empty_share(self, feature: Feature, sums: Any) -> float | None:
        """Of a block's table the share of cells that no row has; None where there is no table."""
        return None

    def n_parameters(self, features: tuple[Feature, ...], sums: Any) -> list[tuple[int, int]]:
        """Per feature: free parameters per class, and those shared by all classes. Here: one per class."""
        return [(1, 0)] * len(features)

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        """What is tried of it where the family of a column of numbers is chosen: nothing where it cannot help, or is dear."""
        return ()

    def has_density(self) -> bool:
        """Whether a value has a density, and no probability."""
        return True

    # Keys

    def keys_of(self, rows: ColumnReader, feature: Feature, threads: int = 1, strict: bool = True) -> Codes | None:
        """Each row's key as the feature is counted, −1 for none; ``strict`` raises for a value of another kind than it has."""
        return None

    def join_cells(self, feature: Feature, keys: Keys, cells: Real) -> Real:
        """Rows per key and class, as an estimate takes them."""
        return cells

    def pseudo_counts(self, keys: Keys, alpha: float) -> Real:
        """The prior's pseudo-count of each key."""
        return np.full(len(keys), float(alpha))

    def cells(self, features: tuple[Feature, ...], sums: Any, missing: Real, threads: int) -> Sequence[Any]:
        """The cells of columns as their evidence is weighed (``Cells``); None where one is not counted by key.

        ``missing``: the rows of each column and class without a value.
        """
        return [None] * len(features)

    # Leave-one-out

    def can_leave_one_out(self, features: tuple[Feature, ...], choice: Choice, weighted: bool) -> bool:
        """Whether ``leave_one_out`` says what refitting without each row would; otherwise every row has to be refitted."""
        return choice.how != "gibbs"

    def leave_one_out(self, features: tuple[Feature, ...], sums: Any, choice: Choice, held_out: HeldOutRows) -> Real:
        """log P(values | class) of each row, (rows, classes), under what all rows but itself add up to.

        Here everything is estimated anew for every row: slow, and right for all sums that subtract.
        """
        scores = [np.zeros((0, held_out.n_classes))]
        for row, parameters in enumerate(estimates_without_each(self, features, sums, choice, held_out)):
            scores.append(held_out.take(np.array([row])).scores(parameters))
        return np.concatenate(scores)

    def leave_one_out_notes(self) -> list[str]:
        """What stays that of all rows where each is left out."""
        return []

    def settings(self) -> dict[str, Any]:
        """The settings that differ from the defaults."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) != f.default}  # type: ignore[arg-type]

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"{self.name}({inside})" if inside else self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.settings().items())})"


def estimates_without_each(
    family: Family, features: tuple[Feature, ...], sums: Any, choice: Choice, held_out: HeldOutRows
) -> Iterator[Parameters]:
    """Row by row the parameters that are estimated after the row's own sums were subtracted."""
    own_sums = held_out.own_sums(features)
    for row, label in enumerate(held_out.labels.tolist()):
        of_row = own_sums.take([row]).merge([label], held_out.n_classes)
        left = (sums - of_row).without_empty(feature.family.permanent_keys() for feature in features)
        yield family.estimate(features, left, choice, UNUSED)


def in_words(family: Family) -> str:
    """A family's name in a sentence."""
    words = family.name.replace("_", " ")
    return words.capitalize() if family.name in ("bernoulli", "gaussian", "poisson") else words


def columns_of(rows: ColumnReader, feature: Feature) -> list[Real]:
    """The numbers of a block to be scored, column by column; none of them may be infinite."""
    matrices = [_matrix(column) for column in feature.numbers(rows)]
    columns = list((matrices[0] if len(matrices) == 1 else np.concatenate(matrices, axis=1)).T)
    names = feature.inputs * len(columns) if feature.holds_lists else feature.inputs
    for name, column in zip(names, columns, strict=True):
        if (infinite := np.isinf(column)).any():
            row = int(infinite.argmax())
            raise errors.bad_value("infinite", float(column[row]), name, rows.first_row + row, rows.source)
    return columns


def _matrix(columns: NDArray[Any]) -> Real:
    """One column, or several side by side, as rows by columns; there may be no rows."""
    numbers = np.asarray(columns, dtype=np.float64)
    return numbers[:, None] if numbers.ndim == 1 else numbers


def side_by_side(columns: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """The columns as one matrix where they are the columns of one, so that a kernel reads each row once."""
    first = columns[0] if columns else np.empty(0)
    if len(columns) < 2 or len(first) < 2 or any(c.dtype != first.dtype or c.strides != first.strides for c in columns):
        return list(columns)
    places = [column.__array_interface__["data"][0] for column in columns]
    if any(b - a != first.itemsize for a, b in pairwise(places)):
        return list(columns)
    shape = (len(first), len(columns))
    strides = (first.strides[0], first.itemsize)
    return [np.lib.stride_tricks.as_strided(first, shape, strides, writeable=False)]


def line_by_line(lines: NDArray[Any], table: Real) -> _core.Part:
    """The scoring kernel's part of one feature whose rows each name their line of a table of log-likelihoods; −1: none."""
    lookup = np.arange(len(table), dtype=np.uint32)
    return _core.TablePart([lines], np.zeros(1, dtype=np.int64), [lookup], np.full(1, -1), table)


def check_positive(setting: str, value: Any, *, zero: bool = False) -> None:
    """Raises unless ``value`` is a number above zero (or zero, if allowed) that no sum makes infinite."""
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    number: Any = (value if isinstance(value, int) else float(value)) if real else np.nan
    if not 0 <= number <= LARGEST_SETTING or (number == 0 and not zero):
        expected = "a finite number of at least 0" if zero else "a finite number above 0"
        large = LARGEST_SETTING < number < np.inf
        raise errors.bad_setting(setting, value, f"{expected} and at most {LARGEST_SETTING:g}" if large else expected)


def check_settings(family: Family, *settings: str, zero: bool = False) -> None:
    """Raises unless those of its settings that are given are positive, or zero if allowed."""
    for setting in settings:
        if (value := getattr(family, setting)) is not None:
            check_positive(setting, value, zero=zero)


def check_finite(setting: str, value: Any) -> None:
    number: Any = value if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) else np.nan
    errors.require(-np.inf < number < np.inf, setting, value, "a finite number")


def by_class(classes: NDArray[np.integer[Any]], n_classes: int) -> list[NDArray[np.int64]]:
    """The row numbers of each class, in order; −1 is none."""
    order, starts = _core.by_class(np.ascontiguousarray(classes, dtype=np.int32), n_classes, n_threads(None))
    return [order[a:b] for a, b in pairwise(starts.tolist())]
