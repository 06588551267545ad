"""What a feature's distribution must do: say what is counted, and turn sums into parameters that score and sample.

A family has two halves. Its counter (``Counter``) makes sums of rows, and answers for them; families whose sums are alike share
one. The rest (``Family``, ``Parameters``) turns sums into probabilities. All of it is asked of a group of features at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.distributions import evidence
from banbury.distributions.evidence import Comparison, Drawn, NamedValues, TellingValues, Term
from banbury.distributions.information import ColumnTest, bits_of_draws
from banbury.distributions.vocabulary import Vocabulary
from banbury.readers import Batch
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
    def codes(self, name: str, wanted: Any = None) -> Any: ...
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
    def counter(self) -> Counter:
        """What makes sums of its values."""
        return self.family.counter(self)

    def counted(self) -> tuple[Any, ...]:
        """What two features must share for their sums to add."""
        return self.family.counted(), *self.counter.scale(self)


def alike(
    names: Sequence[str], like: Feature, origins: Sequence[float] | None = None, units: Sequence[float] | None = None
) -> list[Feature]:
    """Features that are like one but for their names, and where these are given their origins and units.

    Of a great many columns, this is done in half the time that making them one by one takes.
    """
    n, (_, family, origin, unit, *rest) = len(names), like
    origins, units = [origin] * n if origins is None else origins, [unit] * n if units is None else units
    same = ([part] * n for part in rest)
    return list(map(Feature._make, zip(names, [family] * n, origins, units, *same, strict=True)))


class NumberColumn(NamedTuple):
    """A column of numbers whose family is to be chosen: what is known of the rows that have a value."""

    least: float
    greatest: float
    whole: bool  # whether all are whole numbers
    n_values: int  # different ones
    n_rows: int

    @property
    def few(self) -> bool:
        """Whether the values are so few that each is known by itself."""
        return self.n_values <= (MOST_CATEGORIES if self.n_rows >= FEWEST_ROWS else 2)


@dataclass(frozen=True, slots=True)
class Choice:
    """The estimating half: how, and the prior's strength for families that do not say their own.

    ``waits``: words are weighed when texts ask for them, so that a large file answers at once.
    """

    how: How = "mean"
    alpha: float = 1.0
    seed: int = 0
    waits: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True)
class HeldOutRows:
    """Rows that were counted, each to be left out: the number of its class, and its weight; None for ones.

    ``own_sums`` has the sums of features as if every row were a class of its own.
    """

    rows: ColumnReader
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
        parts, n_rows = parameters.parts(self.rows), self.rows.n_rows
        return np.asarray(_core.score(n_rows, np.zeros(self.n_classes), parts, want, self.threads)[0])


class Encoding(NamedTuple):
    """Features' values as another learner takes them: numbers, NaN where missing; columns of codes; how often rows have words."""

    numbers: Sequence[Real] = ()  # each (rows, columns)
    categories: Sequence[Any] = ()
    words: Any = None  # a sparse matrix, rows × words


class Parameters:
    """A group of features of one family with what was estimated for them: the base of every family's parameters."""

    features: tuple[Feature, ...]

    def parts(self, rows: ColumnReader) -> list[tuple[Any, ...]]:
        """The group's arguments to the scoring kernel, for these rows; feature after feature."""
        raise NotImplementedError

    def select(self, index: Sequence[int]) -> Self:
        """The same parameters of some of the features. Here: of each array its rows, of each tuple its members."""
        if is_all(index, len(self.features)):
            return self
        every = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        chosen = {name: _chosen(each, index) for name, each in every.items() if each is not None}
        return replace(self, **chosen)  # type: ignore[type-var]

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        """A value of each feature for rows of these classes."""
        raise NotImplementedError

    # Scoring

    def check(self, rows: ColumnReader) -> None:
        """Raises for values that the kernel would score and that mean nothing."""

    def plain_part(self, texts: list[str]) -> tuple[Any, ...] | None:
        """The kernel's arguments for rows that are plain texts, of the one column there is; None: they need a reader."""
        return None

    def log_coefficient(self, rows: ColumnReader) -> Any:
        """What P(value | class) has beside the score, the same in every class: a number, or one for each row."""
        return 0.0

    def follow(self, sums: Any, touched: Mapping[str, NDArray[np.uint32]]) -> bool:
        """Brings the parameters up to date, in place, after the words of these ids changed, by feature; False: it is to be
        estimated anew."""
        return False

    def collapsed(self, sums: Any) -> list[tuple[int, int, float]]:
        """Where a class's density is so narrow, beside its column, that it stands on one value: feature, class and value."""
        return []

    def listed_values(self, f: int, column: str) -> Keys | None:
        """The values of a feature's column, where they are listed: those that rows had."""
        return None

    def never_seen(self, rows: ColumnReader) -> NDArray[np.bool_] | None:
        """Which rows have a value of each feature that no row counted had, (rows, features); None where none is listed."""
        return None

    def drawn_trees(self) -> Sequence[Any]:
        """The trees of columns that each depend on one other (``DrawnTree``); none where columns depend on the class alone."""
        return ()

    def lost_words(self, sums: Any) -> int:
        """How many words were counted, if the parameters are left with none of them."""
        return 0

    # Explaining

    def terms(self, rows: ColumnReader, log_likelihoods: Real) -> list[Term]:
        """What the first row says of each class, from the likelihoods of its features: a term for each, or for each word."""
        if any(feature.columns for feature in self.features):
            values = [first_value(rows, feature) for feature in self.features]
        else:
            values = rows.first([feature.name for feature in self.features])
        each = enumerate(zip(self.features, values, log_likelihoods, strict=True))
        return [Term(feature.name, value, says, self.is_seen(f, rows)) for f, (feature, value, says) in each]

    def is_seen(self, f: int, rows: ColumnReader) -> bool:
        """Whether any counted row has the value of the first of these rows; so it is of numbers, whichever they are."""
        return True

    def texts(self, rows: ColumnReader) -> dict[str, str]:
        """The texts of the first row, by feature, as they are read."""
        return {}

    def unknown_words(self, rows: ColumnReader) -> list[str]:
        """The words of the first row's texts that the parameters say nothing of."""
        return []

    def telling(self, compared: Comparison) -> Iterator[TellingValues] | None:
        """Values that may tell classes apart, some at a time; None: columns speak together, and have none."""
        if any(feature.columns for feature in self.features):
            return None
        drawn = self.sample(np.repeat(np.arange(len(compared.rest)), evidence.DRAWN), np.random.default_rng(0))
        columns = ((self.select([f]), values) for f, values in enumerate(drawn))
        return (each for column in columns for each in evidence.drawn_telling(*column, compared))

    def cuts(self, column: str | None) -> list[float] | None:
        """The numbers at which the density of a column jumps, in order; None: it is no histogram."""
        return None

    def bandwidths(self) -> list[Any] | None:
        """The bandwidth of the one feature's kernels in each class, or those of its columns; None: it has none."""
        return None

    def linear(self) -> tuple[list[str], Real, Real] | None:
        """Words, weights (words, classes) and intercepts, where a row scores intercepts + counts @ weights; None: it does not."""
        return None

    # Drawing pictures

    def axes(self, f: int) -> tuple[str, ...]:
        """The columns of a feature whose values are numbers; none where they are names."""
        drawn = self.select([f]).sample(np.zeros(1, dtype=np.int64), np.random.default_rng(0))
        return tuple(n for n, each in zip(self.features[f].inputs, drawn, strict=True) if each.dtype.kind in "iuf")

    def named_values(self, f: int, sums: Any, n: int | None, drawn: Drawn) -> NamedValues:
        """The values of a feature without axes, or the n that most rows have; ``drawn`` draws some."""
        values, rows = np.unique(np.array(list(map(str, drawn()[0]))), return_counts=True)
        called = values.tolist()
        return NamedValues(called, called, rows.astype(np.float64)).most_frequent(n)


def _chosen(each: Any, index: Sequence[int]) -> Any:
    return tuple(each[f] for f in index) if isinstance(each, tuple) else each[np.asarray(index, dtype=np.int64)]


class NumericParameters(Parameters):
    """Parameters of columns of numbers that know their distribution functions."""

    def spread(self, f: int) -> tuple[Real, Real]:
        """Of a feature: its mean and deviation in each class."""
        raise NotImplementedError

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        """P(x < cut | class) and P(x ≥ cut | class), (cuts, classes)."""
        raise NotImplementedError

    def ends(self, f: int, wanted: Real, step: Real) -> Real:
        """Where a stretch may end, near each of the numbers wanted: at multiples of a round step."""
        return evidence.round_ends(self.features[f], wanted, step)

    def telling(self, compared: Comparison) -> Iterator[TellingValues] | None:
        return evidence.stretches(self, compared)

    def axes(self, f: int) -> tuple[str, ...]:
        return self.features[f].inputs


class KeyedParameters(Parameters):
    """Parameters of columns of named values, or of combinations of them, each with a probability."""

    def values(self) -> tuple[Real, list[tuple[int, Any]]]:
        """P(value | class) of all values, (values, classes), and the feature's number and value of each."""
        raise NotImplementedError

    def telling(self, compared: Comparison) -> Iterator[TellingValues] | None:
        share, names = self.values()
        return iter([TellingValues(share, share, lambda i: (self.features[names[i][0]].name, names[i][1]))])

    def axes(self, f: int) -> tuple[str, ...]:
        return ()

    def named_values(self, f: int, sums: Any, n: int | None, drawn: Drawn) -> NamedValues:
        keys, rows = sums.feature(f)
        names = ["missing" if key is None else str(key) for key in keys]
        return NamedValues(list(keys), names, rows.value.sum(axis=1)).most_frequent(n)


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

    @property
    def whole(self) -> bool:
        return self.weights is None or self.weights.ndim == 1

    @cached_property
    def per_class(self) -> Integers:
        return _core.count_classes(self.classes, len(self.labels), self.weights, self.threads)

    def counted(self, kernel: Callable[..., Any], names: Sequence[str], *arguments: Any) -> Any:
        """What a counting kernel makes of these rows; a bad value gets its column's name and its row."""
        try:
            return kernel(*arguments, self.classes, len(self.labels), self.weights, self.threads)
        except _core.BadValue as bad:
            raise named(bad, names, self.batch) from None


def named(bad: _core.BadValue, names: Sequence[str], batch: Batch) -> errors.BadValue:
    """A value that cannot be counted, in a user's words."""
    what, feature, row, number = bad.args
    return errors.bad_value(what, number, names[feature], batch.first_row + row, batch.source)


class Counter:
    """How features are counted: a row adds whole numbers to their sums. Each question is asked of a group of features.

    Features of one counter and one ``group`` have their sums together, so that one call of a kernel counts them all.
    """

    def group(self, feature: Feature) -> Any:
        """Features of which this is equal are counted together."""
        return None

    def reads(self, feature: Feature) -> Reads | None:
        """What the column of a text file is read as, where its first rows do not settle it."""
        return "number"

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        """Of what the first rows settled, that which two features must share for their sums to add."""
        return feature.origin, feature.unit, feature.scales, feature.kinds

    def described(self, feature: Feature) -> str:
        """The same, for people; after the family's name."""
        if feature.scales:
            places = (f"{start:g} in steps of {width * feature.unit:g}" for start, width in feature.scales)
            return f" about {errors.listed(places)}"
        return f" about {feature.origin:g} in units of {feature.unit:g}"

    def settled(self, features: Sequence[Feature], batch: Batch) -> Sequence[Feature]:
        """The features with what the first rows settle."""
        return features

    def is_settled(self, feature: Feature) -> bool:
        """Whether a feature that was read from a file has a scale that could have been settled."""
        return not feature.scales and is_power(feature.unit)

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Any]:
        """The sums of these rows, UNCOUNTED where they grow in place; and the features, whose bins may have become wider."""
        raise NotImplementedError

    def growing(self, feature: Feature, n_classes: int, sums: Any = None) -> Any:
        """Sums that grow in place (``GrowingWords``), beginning with these; None where sums are added as tallies are."""
        return None

    def minus(self, features: Sequence[Feature], a: Any, b: Any, classes: Sequence[Any]) -> Any:
        """The difference of sums; ``check`` finds what cannot be."""
        return a - b

    def check(self, features: Sequence[Feature], sums: Any, rows: Integers, classes: Sequence[Any]) -> None:
        """Raises if these sums cannot be those of any rows: something below zero, or more rows than a class has."""
        overfull = sums.present.value > rows.value  # both are rounded alike: no larger number becomes the smaller one
        for f, label in np.argwhere(overfull):
            raise errors.impossible_sums(classes[label], features[f].name)

    def check_parts(
        self, features: Sequence[Feature], sums: Any, rest: Integers, every: int, classes: Sequence[Any]
    ) -> None:
        """Raises if class ``every`` has not all that each other class has; ``rest`` are its rows without those of each."""
        others = np.array([c for c in range(len(classes)) if c != every], dtype=np.int64)
        without = self.minus(features, sums.take(np.full(len(others), every)), sums.take(others), classes)
        self.check(features, without, rest, [classes[c] for c in others])

    def trimmed(self, features: Sequence[Feature], sums: Any) -> Any:
        """The sums without what no row has any more."""
        return sums

    def widened(self, features: Sequence[Feature], sums: Any) -> Sequence[Feature]:
        """The features with bins so wide that no more are occupied than may be: a function of the totals alone."""
        return features

    def coarsened(self, old: Sequence[Feature], new: Sequence[Feature], sums: Any) -> Any:
        """The sums under features whose bins may be wider."""
        return sums

    def rescaled(self, feature: Feature, other: Feature) -> Feature:
        """The feature with the other's scale, if sums can be moved from one to the other."""
        return feature

    def moved(self, old: Sequence[Feature], new: Sequence[Feature], sums: Any) -> Any:
        """The sums under features of another scale."""
        return sums

    def summary(self, feature: Feature, sums: Any, missing: str) -> str:
        """What was counted of one feature, in a few words; ``missing`` says how many rows have no value."""
        return f"{errors.many(len(feature.inputs), 'column')}{missing}"

    def table_cells(self, family: Family, features: tuple[Feature, ...], sums: Any) -> list[int | None]:
        """How many cells each feature has in a table of all; None for a column that is measured, and has a mean there."""
        return [None for feature in features for _ in feature.inputs]

    def restored(self, features: Sequence[Feature], stored: Stored, n_classes: int) -> Any:
        """The sums out of a file; raises where they are not such sums."""
        raise NotImplementedError

    def check_exact(self, features: Sequence[Feature], sums: Any) -> None:
        """Raises where sums from a file are not those of rows, though none of them was rounded."""

    def without_rare(self, sums: Any, min_count: float, every: int | None) -> Any:
        """The sums without words that occur fewer times than this: in the class ``every``, where that has all rows, or in all."""
        return sums


class Stored(Protocol):
    """The sums of a group in a file."""

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

    def counter(self, feature: Feature) -> Counter:
        """What makes sums of a feature's values."""
        raise NotImplementedError

    def counted(self) -> tuple[Any, ...]:
        """What two families must share for their sums to add: the name of what is counted, and the settings that decide it."""
        return self.name, *(getattr(self, setting) for setting in self.counting)

    def grid(self, fine: Real) -> tuple[tuple[float, float], ...]:
        """Start and width of each column's bins, where the family is counted by bins; ``fine`` are widths that will do."""
        return tuple((0.0, width) for width in fine.tolist())

    def check_columns(self, feature: Feature) -> None:
        """Raises where settings do not fit the feature's columns."""

    def column_families(self) -> Any:
        """What ``features`` says of columns that it joins where it is the family of all; None where it joins none."""
        return None

    def joined_features(self, features: Sequence[Feature], batch: Batch) -> list[Feature]:
        """The features that it makes of columns which were inferred from their first rows."""
        return list(features)

    def in_words(self) -> str:
        """Its name in a sentence."""
        return self.name.replace("_", " ")

    def reads_text(self) -> bool:
        """Whether a value is a text, so that a line of a file can be one, and ``strings`` has them."""
        return False

    def runs_python(self) -> bool:
        """Whether Python itself goes through every row, so that several threads are no faster, and only one hears Ctrl-C."""
        return False

    def strings(self, rows: ColumnReader, name: str) -> Iterable[Any]:
        """A column's texts one by one; those that are missing are no strings."""
        return ()

    def declared(self) -> frozenset[Key] | None:
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

    # Estimating

    def doubts(self, features: tuple[Feature, ...], sums: Any) -> Iterator[errors.BanburyWarning]:
        """What is to be said of features before they are estimated."""
        return iter(())

    def tried_bandwidths(self, feature: Feature, sums: Any, f: int, c: int) -> tuple[Real, Real] | None:
        """Bandwidths of a feature in class c, and how likely a row is under the kernels of the others; None: it has none."""
        return None

    def with_bandwidth(self, bandwidth: float) -> Family:
        """The same family with this bandwidth, where it has one."""
        return self

    # Scoring and drawing

    def optional_columns(self, feature: Feature) -> tuple[str, ...]:
        """The columns of a block that rows may lack, while they have others, and be scored by what they have."""
        return feature.columns

    def nothing_known(self) -> Any:
        """What a column holds in a row of which nothing is known."""
        return None

    def adjective(self) -> str:
        """What its densities are called in a title."""
        return self.in_words()

    def measure(self) -> str:
        """What a number has, given the class: a density, or a probability."""
        return "density"

    def points(self, low: float, high: float, n: int) -> Real:
        """Numbers to draw a column at, n at most."""
        return np.linspace(low, high, n)

    def check_line(self, feature: Feature) -> None:
        """Raises unless the values of a feature can stand along one line."""
        if len(feature.inputs) > 1 or feature.holds_lists:
            raise self.no_line(feature)

    def no_line(self, feature: Feature) -> errors.BadSetting:
        """That they cannot."""
        if feature.holds_lists:
            text = f"column {feature.name!r} holds lists of {len(feature.scales):,} numbers, which have no axis to be drawn on. "
            text += "Draw what one row says with bb.plots.EvidenceDisplay, or draw another column."
            return errors.BadSetting(text, feature=feature.name, family=self.name)
        text = f"block {feature.name!r} models {len(feature.inputs):,} columns together as {self.name}, so none of them has a "
        text += "line of its own to be drawn on. Draw the block with bb.plots.LikelihoodDisplay, or what one row says "
        return errors.BadSetting(f"{text}with bb.plots.EvidenceDisplay.", feature=feature.name, family=self.name)

    # What is chosen, tuned, and given to others

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        """What is tried of it where the family of a column of numbers is chosen: nothing where it cannot help, or is dear."""
        return ()

    def text_settings(self) -> tuple[str, ...]:
        """The settings that ``bb.tune(text=...)`` may try."""
        return ()

    def text_candidates(self) -> Sequence[Mapping[str, Any]]:
        """What is tried of them where the model of a text is chosen."""
        return ()

    def encoded(self, rows: ColumnReader, features: Sequence[Feature], sums: Any, threads: int) -> Encoding:
        """The features' values as another learner takes them. Here: numbers as they are, all else as categories."""
        lists = [np.asarray(numbers) for f in features if f.holds_lists for numbers in f.numbers(rows)]
        names = [name for feature in features if not feature.holds_lists for name in feature.inputs]
        numeric = [name for name in names if rows.kind(name) in ("boolean", "integer", "float", "empty")]
        columns = [column.reshape(rows.n_rows, -1) for column in rows.numbers(numeric)] if numeric else []
        others = set(names).difference(numeric)
        return Encoding(lists + columns, [rows.codes(name) for name in names if name in others])

    def encoded_words(self, sums: Any) -> Int | None:
        """The words among the encoded ones that an estimate uses; None for all."""
        return None

    # Values that are asked for

    def has_density(self) -> bool:
        """Whether a value has a density, and no probability."""
        return True

    def check_alternatives(self, column: str, values: Any) -> None:
        """Raises unless the probabilities of several values of a column have a sum."""
        if self.has_density():
            text = f"column {column!r} is a number of family {self.name!r}, which has a density: densities of several values do "
            text += "not sum to a probability. Ask for one number at a time, or count the column as bb.Categorical(), whose "
            raise errors.BadSetting(f"{text}values have probabilities.", column=column)

    def counts_missing(self) -> bool:
        """Whether a missing value is a value."""
        return False

    def node_codes(self, rows: ColumnReader, name: str, kind: Kind, threads: int) -> Any:
        """A column as int32 codes from 0 up of the keys it is counted by, −1 for none: a node of a network. Where values have a
        density, it is cut instead."""
        raise NotImplementedError

    def node_prior(self, keys: Keys, alpha: float) -> Real:
        """The prior's pseudo-count of each key of a node."""
        return np.full(len(keys), float(alpha))

    def meanings(self, rows: ColumnReader, feature: Feature, column: str) -> list[Any]:
        """A column's values as they are counted, None where one is missing: 1 and "1" may be the same."""
        return list(rows.numbers([column])[0].reshape(-1))

    # What a feature tells about the class

    def bits(self, features: tuple[Feature, ...], sums: Any, rows: Real) -> Real:
        """I(feature; class) of each feature, in bits; ``rows`` per class. Here: of rows drawn from the default estimate."""
        return bits_of_draws(self.estimate(features, sums, Choice(), UNUSED), rows)

    def used_words(self, feature: Feature, sums: Any) -> Vocabulary | None:
        """The words that an estimate uses, which tell one by one; None where values are no words."""
        return None

    def words_in_rows(self, rows: ColumnReader, feature: Feature, sums: Any, threads: int) -> tuple[Int, Int, Int]:
        """The rows that have a text, and the row and the number of every word in them."""
        raise NotImplementedError

    def label_words(self, choice: Choice) -> tuple[bool, float] | None:
        """Where what a word says of a label depends on how often both occur, and the label, alone: whether it counts once in a
        text, and the pseudo-count; None elsewhere."""
        return None

    def weighed_words(self, lexicon: Any, scale: Any, table: Any, often: bool, documents: Real, texts: Real) -> Any:
        """Parameters of weighed words (``WeighedTextParameters``); None where rows have no texts to score and explain."""
        return None

    def bags(self, rows: ColumnReader, feature: Feature, sums: Any, threads: int) -> tuple[Int, Int, Real]:
        """Where the words of each row begin, the ids of all, each once in a row, and how often it is there."""
        raise NotImplementedError

    def joins(self, feature: Feature) -> bool:
        """Whether several columns are modelled together, so that no independence is assumed among them."""
        return len(feature.columns) > 1

    def joined_by(self) -> str:
        """The family, as one writes it, that models two such columns together."""
        return "bb.Joint()"

    def check_values(self, rows: ColumnReader, feature: Feature, threads: int) -> None:
        """Raises for values that cannot be counted, where they are counted otherwise: in bins, to be compared."""

    def compared(self, feature: Feature) -> tuple[Feature, ...] | None:
        """The feature's columns as they are compared with others: as values, or in fine bins; None: whatever their type is."""
        return None

    def test(
        self, features: tuple[Feature, ...], sums: Any, scale: float, n: int, columns: Mapping[str, ColumnTest]
    ) -> list[ColumnTest]:
        """What each feature tells, beyond chance; of words the best n. A weight of 1 is worth ``scale`` rows.

        ``columns`` has the tests of a block's columns one by one. Here: what the best of them tells.
        """
        each = ([columns[name] for name in feature.inputs if name in columns] for feature in features)
        return [ColumnTest().at_least(own) if own else ColumnTest(why="not tested") for own in each]

    def key_finder(self, feature: Feature, keys: Keys, threads: int) -> Callable[[ColumnReader], Int] | None:
        """What says which of the keys each row has, −1 for none; None where rows are not counted by key."""
        return None

    def looked_up(self, feature: Feature, rows: ColumnReader, weights: Real, threads: int) -> Any:
        """Rows whose values are found out once, to be counted and scored many times (``LookedUpTexts``); None: they are quick."""
        return None

    # Weighing

    def has_cells(self) -> bool:
        """Whether evidence of a column is weighed: it is counted by key, and ``cells`` says how."""
        return False

    def cells(self, features: tuple[Feature, ...], sums: Any, missing: Real, threads: int) -> Sequence[Any]:
        """The cells of columns as their evidence is weighed (``Cells``); None where one is not counted by key.

        ``missing``: the rows of each column and class without a value.
        """
        return [None] * len(features)

    def middles(self, features: tuple[Feature, ...], sums: Any) -> Real | None:
        """A number within each bin of columns of numbers, column after column; None where they are no numbers."""
        return None

    # Leave-one-out

    def can_leave_one_out(self, features: tuple[Feature, ...], choice: Choice, weighted: bool) -> bool:
        """Whether ``leave_one_out`` says what refitting without each row would; otherwise every row has to be refitted."""
        return choice.how != "gibbs"

    def leave_one_out(self, features: tuple[Feature, ...], sums: Any, choice: Choice, held_out: HeldOutRows) -> Real:
        """log P(values | class) of each row, (rows, classes), under what all rows but itself add up to.

        Here everything is estimated anew for every row: slow, and right for all sums that subtract.
        """
        scores = [np.zeros((0, held_out.n_classes))]
        for row, parameters in enumerate(self.estimates_without_each(features, sums, choice, held_out)):
            scores.append(held_out.take(np.array([row])).scores(parameters))
        return np.concatenate(scores)

    def estimates_without_each(
        self, features: tuple[Feature, ...], sums: Any, choice: Choice, held_out: HeldOutRows
    ) -> Iterator[Parameters]:
        """Row by row the parameters that are estimated after the row's own sums were subtracted."""
        counter = features[0].counter
        own_sums = held_out.own_sums(features)
        for row, label in enumerate(held_out.labels.tolist()):
            of_row = own_sums.take([row]).merge([label], held_out.n_classes)
            left = counter.minus(features, sums, of_row, range(held_out.n_classes))
            yield self.estimate(features, counter.trimmed(features, left), choice, UNUSED)

    def leave_one_out_notes(self) -> list[str]:
        """What stays that of all rows where each is left out."""
        return []

    def check_given(self, *settings: str, zero: bool = False) -> None:
        """Raises unless those of its settings that are given are positive, or zero if allowed."""
        for setting in settings:
            if (value := getattr(self, setting)) is not None:
                check_positive(setting, value, zero=zero)

    def settings(self) -> dict[str, Any]:
        """The settings that differ from the defaults."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) != f.default}  # type: ignore[arg-type]

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"{self.name}({inside})" if inside else self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.settings().items())})"


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
    if len(columns) < 2 or any(c.dtype != first.dtype or c.strides != first.strides for c in columns):
        return list(columns)
    places = [column.__array_interface__["data"][0] for column in columns]
    if any(b - a != first.itemsize for a, b in pairwise(places)):
        return list(columns)
    shape, strides = (len(first), len(columns)), (first.strides[0], first.itemsize)
    return [np.lib.stride_tricks.as_strided(first, shape, strides, writeable=False)]


def line_by_line(lines: NDArray[Any], table: Real) -> tuple[Any, ...]:
    """The scoring kernel's part of one feature whose rows each name their line of a table of log-likelihoods; −1: none."""
    lookup = np.arange(len(table), dtype=np.uint32)
    return "table", [lines], np.zeros(1, dtype=np.int64), [lookup], np.full(1, -1), table


def check_positive(setting: str, value: Any, *, zero: bool = False) -> None:
    """Raises unless ``value`` is a number above zero (or zero, if allowed) that no sum makes infinite."""
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    number: Any = (value if isinstance(value, int) else float(value)) if real else np.nan
    if not 0 <= number <= LARGEST_SETTING or (number == 0 and not zero):
        wanted = "a finite number from 0 up" if zero else "a finite number above 0"
        large = LARGEST_SETTING < number < np.inf
        raise errors.bad_setting(setting, value, f"{wanted}, {LARGEST_SETTING:g} at most" if large else wanted)


def check_finite(setting: str, value: Any) -> None:
    number: Any = value if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) else np.nan
    errors.require(-np.inf < number < np.inf, setting, value, "a finite number")


def by_class(classes: NDArray[np.integer[Any]], n_classes: int) -> list[NDArray[np.int64]]:
    """The row numbers of each class, in order; −1 is none."""
    order, starts = _core.by_class(np.ascontiguousarray(classes, dtype=np.int32), n_classes, n_threads(None))
    return [order[a:b] for a, b in pairwise(starts.tolist())]
