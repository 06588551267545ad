"""The three protocols of families, each for a group of features at once: count, estimate and ask.

A ``Counter`` turns rows into sums and answers questions about them; families with the same kind of sums share one. A ``Family``
has settings and turns sums into ``Parameters``, which score, explain and draw. Other packages derive what they need from these
questions, and a question that only one family can answer stays in that family's file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import accumulate, chain, compress, pairwise
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, overload

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Bool, Int, Real
from banbury.families import evidence
from banbury.families.evidence import Comparison, InformativeValues, Term
from banbury.reading import Batch, Codes
from banbury.sums import Key, Keys, is_all
from banbury.threads import n_threads

How = Literal["mle", "map", "mean", "predictive", "gibbs"]
HOWS: tuple[How, ...] = ("mle", "map", "mean", "predictive", "gibbs")
Reads = Literal["number", "string", "text", "list"]  # what a column is read as, where it may be read otherwise
Kind = Literal["boolean", "integer", "float", "string"]

LARGEST_SETTING = 1e100
MOST_BINS = 4096  # occupied bins of a column
MOST_CATEGORIES = 20  # a column of numbers with at most so many distinct values is categorical ...
FEWEST_ROWS = 100  # ... if it has at least so many rows
SMALLEST_ALPHA = 1e-10  # α = 0 would give 0/0; scikit-learn raises it to the same value
UNUSED_GENERATOR = np.random.default_rng(0)  # passed to estimates that draw nothing


def raise_alpha(alpha: Any) -> Any:
    """Returns the pseudo-count ``alpha`` (a number or an array), raised to at least 1e-10."""
    if isinstance(alpha, np.ndarray):
        return np.where(alpha > 0, alpha, SMALLEST_ALPHA)
    return alpha if alpha > 0 else SMALLEST_ALPHA


class ColumnReader(Protocol):
    """Rows to score, column by column: the part of a reader's batch that families use."""

    n_rows: int
    first_row: int  # the number of its first row in the source
    source: str | None  # the file, if there is one

    def numbers(self, names: Sequence[str]) -> list[NDArray[Any]]: ...  # rows, or rows × columns; NaN: missing
    def lists(self, name: str, width: int) -> NDArray[Any]: ...  # rows × width; NaN: the list is missing
    def codes(self, name: str, kind: Any = None) -> Codes: ...
    def integers(self, name: str) -> NDArray[Any] | None: ...  # None unless stored as integers, none missing
    def kind(self, name: str) -> Any: ...
    def texts(self, name: str) -> Any: ...  # as the kernels take them
    def occurrences(self, names: Sequence[str]) -> Any: ...  # a matrix, or (offsets, columns, values)
    def head(self, name: str, n: int) -> list[Any]: ...  # the first n values that are not missing
    def first(self, names: Sequence[str]) -> list[Any]: ...  # the values of the first row, None where missing
    def take(self, rows: Int) -> ColumnReader: ...  # the rows with these numbers


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
    why: str = "declared"  # why it has this family, in words for people
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
        """The names of the columns that the feature is counted from. For a block these are its columns, otherwise the
        one that the feature is named after.
        """
        return self.columns or (self.name,)

    def numbers(self, rows: ColumnReader) -> list[NDArray[Any]]:
        """Returns the numbers of the feature's columns as the kernels read them, NaN where missing: arrays of rows, or
        of rows × columns. A column of lists is one array, with a number for each of the feature's ``scales``.
        """
        return [rows.lists(self.inputs[0], len(self.scales))] if self.holds_lists else rows.numbers(self.inputs)

    @property
    def reads_text(self) -> bool:
        """Whether a value is a text, so that a line of a file can be one."""
        return self.counter.reads(self) == "text"

    @property
    def counter(self) -> Counter:
        """The counter that turns its values into sums."""
        return self.family.counter(self)

    def counting_key(self) -> tuple[Any, ...]:
        """Returns what two features must have in common for their sums to be added: how the family counts, and the
        scale.
        """
        return self.family.counting_key(), *self.counter.scale(self)


@dataclass(frozen=True, eq=False, repr=False)
class Features(Sequence[Feature]):
    """Features in order, held as columns: their names, origins and units, and the number of the template that each
    follows.

    A template is a feature without a name, an origin and a unit, so a million columns of one family are a tuple of
    names, three arrays and one template. A ``Feature`` is made when somebody asks for it. No template is there twice or
    unused.

    Args:
        names: The name of each feature.
        origins: The origin of each feature.
        units: The unit of each feature.
        templates: What features can have in common: the family, the kind and the columns of a block.
        codes: The index in ``templates`` of each feature's template.
    """

    names: tuple[str, ...]
    origins: Real
    units: Real
    templates: tuple[Feature, ...]
    codes: NDArray[np.int32]

    @classmethod
    def of(cls, features: Iterable[Feature]) -> Features:
        """Turns single features, which may be of several families, into columns."""
        if isinstance(features, Features):
            return features
        feature_list = list(features)
        origins = np.array([feature.origin for feature in feature_list], dtype=np.float64)
        units = np.array([feature.unit for feature in feature_list], dtype=np.float64)
        return cls(tuple([feature.name for feature in feature_list]), origins, units, *_number_templates(feature_list))

    @classmethod
    def named(cls, names: Iterable[str], templates: Sequence[Feature]) -> Features:
        """Returns features with these names, the i-th after the i-th template, with origin 0 and unit 1."""
        n = len(templates)
        return cls(tuple(names), np.zeros(n), np.ones(n), *_number_templates(templates))

    @classmethod
    def join(cls, groups: Sequence[Features]) -> Features:
        """Returns groups of features one after the other, as one."""
        if len(groups) == 1:
            return groups[0]
        templates, new_code = _number_templates([template for group in groups for template in group.templates])
        # The place of each group's first template among those of all groups; ``new_code`` has its new number.
        first_templates = accumulate((len(group.templates) for group in groups), initial=0)
        # The new template number of each feature: an array per group.
        codes = [new_code[group.codes + first] for group, first in zip(groups, first_templates, strict=False)]
        return cls(
            tuple(chain.from_iterable(group.names for group in groups)),
            np.concatenate([np.zeros(0), *(group.origins for group in groups)]),
            np.concatenate([np.zeros(0), *(group.units for group in groups)]),
            templates,
            np.concatenate([np.zeros(0, dtype=np.int32), *codes]),
        )

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Feature]:
        """Makes the features one by one; ``codes`` has the number of each feature's template."""
        families = [template.family for template in self.templates]  # by template number, as ``other_fields``
        other_fields = [template[4:] for template in self.templates]  # all after name, family, origin and unit
        columns = zip(self.names, self.origins.tolist(), self.units.tolist(), self.codes.tolist(), strict=True)
        return (
            Feature(name, families[code], origin, unit, *other_fields[code]) for name, origin, unit, code in columns
        )

    @overload
    def __getitem__(self, index: int) -> Feature: ...
    @overload
    def __getitem__(self, index: slice) -> Features: ...
    def __getitem__(self, index: int | slice) -> Feature | Features:
        """Returns the feature with this number (``index``), or a slice of them. ``codes`` has the number of each
        feature's template.
        """
        if isinstance(index, slice):
            return self.take(range(len(self))[index])
        _, family, _, _, *other_fields = self.templates[self.codes[index]]  # without name, origin and unit
        return Feature(self.names[index], family, self.origins.item(index), self.units.item(index), *other_fields)

    def __eq__(self, other: object) -> bool:
        """Whether names, origins, units and templates are equal, feature by feature."""
        if not isinstance(other, Features):
            return NotImplemented
        same = self.names == other.names and np.array_equal(self.origins, other.origins)
        same = same and np.array_equal(self.units, other.units)
        return same and all(template == other_template for template, other_template, _ in self.pair_templates(other))

    def __hash__(self) -> int:
        """Hashes the names alone, which equal features have in common."""
        return hash(self.names)

    def __repr__(self) -> str:
        """Shows the features as a tuple."""
        return repr(tuple(self))

    def take(self, index: Sequence[int] | Int) -> Features:
        """Returns the features with these numbers (``index``), in this order; a number may come twice. ``codes`` has
        the place of each feature's template among ``templates``.
        """
        feature_numbers = np.asarray(index, dtype=np.int64)
        names = tuple(map(self.names.__getitem__, feature_numbers.tolist()))
        return Features(
            names,
            self.origins[feature_numbers],
            self.units[feature_numbers],
            *_drop_unused(self.templates, self.codes[feature_numbers]),
        )

    def put(self, groups: Iterable[tuple[Int, Features]]) -> Features:
        """Returns the features with some of them replaced. Each of ``groups`` has the numbers of the features to
        replace, and the new features, one for each of them.
        """
        index = np.arange(len(self))  # where each feature of the result is among those of ``joined``
        joined = [self]  # and then the new features of each group
        n_joined = len(self)  # the number of features in ``joined``
        for replaced, features in groups:
            index[replaced] = np.arange(n_joined, n_joined + len(features))
            joined.append(features)
            n_joined += len(features)
        return Features.join(joined).take(index)

    def where(self, test: Callable[[Feature], Any]) -> Int:
        """Returns the numbers of the features whose template passes ``test``, in order."""
        passes = np.array([bool(test(template)) for template in self.templates], dtype=np.bool_)  # of each template
        return np.flatnonzero(passes[self.codes])  # ``codes``: the template number of each feature

    def change(self, change: Callable[[Feature], Feature], at: Any = slice(None)) -> Features:
        """Returns the features with their templates changed by a function, to another family for example. ``at``
        selects the features by number or mask; by default all.
        """
        # The templates of the selected features, and the number of each one's template among them.
        changed, changed_codes = _drop_unused(self.templates, self.codes[at])
        # ``number_of_template``: where each of the old and then of the changed ones is in the new ``templates``.
        templates, number_of_template = _number_templates([*self.templates, *map(change, changed)])
        codes = self.codes.copy()  # of each feature: where its template is among the old and then the changed ones
        codes[at] = changed_codes + np.int32(len(self.templates))
        templates, codes = _drop_unused(templates, number_of_template[codes])
        return replace(self, templates=templates, codes=codes)

    def pair_templates(self, other: Features) -> Iterator[tuple[Feature, Feature, int]]:
        """Yields each distinct pair of templates of feature i here and feature i of ``other``, with the first such i."""
        # The two templates of each feature as one number: own · number of templates of ``other`` + that of ``other``.
        pair_of_feature = self.codes * np.int64(len(other.templates)) + other.codes
        pairs, first_features = np.unique(pair_of_feature, return_index=True)
        for pair, first_feature in zip(pairs.tolist(), first_features.tolist(), strict=True):
            code, other_code = divmod(pair, len(other.templates))
            yield self.templates[code], other.templates[other_code], first_feature

    @property
    def has_blocks(self) -> bool:
        """Whether some feature is a block of columns."""
        return any(template.columns for template in self.templates)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that the features are counted from, in order: a block has several."""
        if not self.has_blocks:
            return self.names
        columns = [template.columns for template in self.templates]  # of each template; empty: not a block
        names_and_codes = zip(self.names, self.codes.tolist(), strict=True)  # of each feature: name, template number
        return tuple([column for name, code in names_and_codes for column in columns[code] or (name,)])


Templates = tuple[tuple[Feature, ...], NDArray[np.int32]]  # templates, and the number of each feature's template


def _number_templates(features: Sequence[Feature]) -> Templates:
    """Returns the distinct templates of features, and the number of each feature's template.

    Templates with equal families share a number only if they hold one family object: 1 equals True, but a file writes
    them apart. A template is a feature without name, origin and unit.
    """
    feature_by_id = dict(zip(map(id, features), features, strict=True))
    numbers = dict[tuple[Any, ...], int]()  # of each template: the key is its family's id and its other fields
    templates = list[Feature]()
    number_of_id = dict[int, int]()  # the template number of each feature, by the feature's id
    for feature_id, feature in feature_by_id.items():
        # The fields from 4 on are all after unit.
        template_number = number_of_id[feature_id] = numbers.setdefault(
            (id(feature.family), *feature[4:]), len(templates)
        )
        if template_number == len(templates):
            templates.append(feature._replace(name="", origin=0.0, unit=1.0))
    return tuple(templates), np.array([number_of_id[feature_id] for feature_id in map(id, features)], dtype=np.int32)


def _drop_unused(templates: tuple[Feature, ...], codes: NDArray[np.int32]) -> Templates:
    """Returns the templates that some feature has, and the new number of each feature's template (``codes`` are the old
    ones).
    """
    is_used = np.bincount(codes, minlength=len(templates)) > 0  # of each template
    if is_used.all():
        return templates, codes
    new_numbers = np.cumsum(is_used, dtype=np.int32) - np.int32(1)  # of each template that is used
    return tuple(compress(templates, is_used.tolist())), new_numbers[codes]


class NumberColumn(NamedTuple):
    """Facts about a column of numbers from which its family is chosen, over the rows that have a value."""

    least: float
    greatest: float
    holds_whole_numbers: bool  # whether all are whole numbers
    n_values: int  # different ones
    n_rows: int

    @property
    def has_few_values(self) -> bool:
        """Whether there are so few different values that each can be a category."""
        return self.n_values <= (MOST_CATEGORIES if self.n_rows >= FEWEST_ROWS else 2)


@dataclass(frozen=True, slots=True)
class Choice:
    """How parameters are estimated, and the strength of the prior for families that do not set their own.

    Args:
        how: "mle" (maximum likelihood), "map" (the mode of the posterior), "mean" (its mean), "predictive" (the distribution of
            a new row under it) or "gibbs" (one draw from it).
        alpha: The pseudo-count of the prior.
        seed: Decides what "gibbs" draws.
        n_folds: The number of folds over which this choice was compared with others, so that every command uses as many.
        waits: Whether the rows of words are made only when texts need them, so that a large file can answer at once.
    """

    how: How = "mean"
    alpha: float = 1.0
    seed: int = 0
    n_folds: int | None = field(default=None, compare=False, repr=False)
    waits: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True)
class HeldOutRows:
    """Rows that were counted and are left out one at a time, with their class numbers (``labels``).

    ``weights`` are None if all are 1. ``own_sums`` returns the sums of features as if every row were a class of its
    own.
    """

    rows: Batch
    labels: Int
    weights: Real | None
    n_classes: int
    threads: int
    own_sums: Callable[[Features], Any]

    @property
    def weight(self) -> Real:
        """The weight of each row (rows)."""
        return np.ones(len(self.labels)) if self.weights is None else self.weights

    def take(self, rows: Int) -> HeldOutRows:
        """Returns the held-out rows with these numbers (``rows``), in this order. ``labels`` are the class numbers of
        all held-out rows, ``weights`` their weights, None if all are 1.
        """
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, rows=self.rows.take(rows), labels=self.labels[rows], weights=weights)

    def scores(self, parameters: Parameters, want: Literal["log_joint", "parts"] = "log_joint") -> Real:
        """Returns log P(values | class) of each row under some parameters (rows × classes), or with ``want="parts"``
        one for each feature (rows × features × classes).
        """
        parts = parameters.parts(self.rows)  # what the kernel adds up
        n_rows = self.rows.n_rows
        # The zeros are the log prior of the classes.
        return _core.score(n_rows, np.zeros(self.n_classes), parts, want, self.threads)[0]


class Curve(NamedTuple):
    """A log density as a sum: the coefficients, one for each class, of 1, x, x² and log (x + centre) − x, where
    x = (number − origin) / unit / width − centre.
    """

    origin: float
    unit: float
    width: Real
    centre: Real
    one: Real
    x: Real
    x2: Real
    log: Real

    def times(self, weight: float) -> Curve:
        """Returns the curve with all coefficients multiplied by a weight; origin, unit, width and centre stay."""
        return self._replace(one=weight * self.one, x=weight * self.x, x2=weight * self.x2, log=weight * self.log)


class LinearWords(NamedTuple):
    """A linear model of words or of columns of counts: a row scores intercepts + Σ a · weights.

    a is how much a word counts in the row, times its ``scale`` if words have one; then a is also divided by √Σ a² over the known
    words of the row. ``reading`` says how rows are read: "count" ("count", "log", "root" or "presence"), "length" (whether counts
    are divided by the length of "none", "all" or the "known" words of the row), and the tokeniser's settings or the threshold.
    """

    words: list[str]
    weights: Real  # (words, classes)
    intercepts: Real  # (classes,)
    reading: Mapping[str, Any]
    scale: Real | None = None  # (words,)


class Parameters:
    """The base of every family's parameters: a group of features and what was estimated for them."""

    features: Features

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns the parts with which the scoring kernel adds up log P(value | class) of these rows.

        They are in the order of the features.
        """
        raise NotImplementedError

    def select(self, index: Sequence[int]) -> Self:
        """Returns the parameters of the features with these numbers, in this order.

        By default these entries (``index``) of each field: ``features``, and arrays and tuples with one entry per
        feature.
        """
        if is_all(index, len(self.features)):
            return self
        fields_by_name = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        selected_fields = {name: _take(array, index) for name, array in fields_by_name.items() if array is not None}
        return replace(self, **selected_fields)  # type: ignore[type-var]

    def sample(self, classes: Int, rng: Generator) -> list[NDArray[Any]]:
        """Draws a value of each feature for a row of each of these ``classes``, which are class numbers.

        Returns one array per column, with an entry per row.
        """
        raise NotImplementedError

    def follow(self, sums: Any) -> bool:
        """Updates the parameters in place after the counts became ``sums``, if that is cheap.

        Returns whether it did; if False, they must be estimated anew.
        """
        return False

    def categories(self, f: int, column: str) -> Keys | None:
        """Returns the values that rows had in a column of feature number f; None if the family does not list values."""
        return None

    def never_seen(self, rows: ColumnReader) -> Bool | None:
        """Returns whether each row's value occurred in no counted row (rows × features).

        None if no feature lists its values.
        """
        return None

    def terms(self, rows: ColumnReader, log_likelihoods: Real) -> list[Term]:
        """Explains the first row from the log-likelihoods of its features (features × classes).

        Returns a term per feature, or per word of a text.
        """
        features = self.features
        has_blocks = features.has_blocks
        # The row's value of each feature; None: missing.
        values = [first_value(rows, feature) for feature in features] if has_blocks else rows.first(features.names)
        never_seen = self.never_seen(rows)  # rows × features, or None
        # The masks have an entry per feature.
        is_unseen = np.zeros(len(values), dtype=np.bool_) if never_seen is None else never_seen[0]
        # ``codes`` has the number of each feature's template.
        is_block = np.array([bool(template.columns) for template in features.templates], dtype=np.bool_)[features.codes]
        is_known = is_block | ~is_unseen
        return list(map(Term, features.names, values, log_likelihoods, is_known.tolist()))

    def informative_values(self, compared: Comparison) -> Iterator[InformativeValues] | None:
        """Yields values that may tell classes apart, for one column after the other.

        None if columns are modelled jointly and have none. ``compared`` says which classes are compared with which
        others. Here values are drawn, as many of each class.
        """
        if self.features.has_blocks:
            return None
        n_classes = len(compared.rest)
        # An array of values (rows) for each column; the rows of each class are adjacent.
        drawn = self.sample(np.repeat(np.arange(n_classes), evidence.DRAWS), np.random.default_rng(0))
        return (
            values_of_column
            for f, values in enumerate(drawn)
            for values_of_column in evidence.values_from_draws(self.select([f]), values, compared)
        )

    def cuts(self, column: str | None) -> list[float] | None:
        """Returns the numbers at which the density of a column jumps, in ascending order.

        None if it is not piecewise constant. ``column`` names one of a block; a single column needs no name.
        """
        return None

    def curve(self, f: int) -> Curve | None:
        """Returns the log density of feature number f as a curve: a sum of 1, x, x² and log x.

        It omits what all classes share; None if it is no such sum.
        """
        return None

    def linear(self) -> LinearWords | None:
        """Returns the words of the feature and their weights if a row scores intercepts + counts @ weights.

        None if it does not.
        """
        return None


def _take(array: Any, index: Sequence[int]) -> Any:
    """Returns the entries of ``array`` (features, a tuple or an array with one entry per feature) for the features with
    these numbers (``index``), in this order.
    """
    if isinstance(array, Features):
        return array.take(index)
    return tuple(array[f] for f in index) if isinstance(array, tuple) else array[np.asarray(index, dtype=np.int64)]


class NumericParameters(Parameters):
    """The base of parameters of columns of numbers whose distribution functions are known."""

    def spread(self, f: int) -> tuple[Real, Real]:
        """Returns the mean and the standard deviation of feature number f, in the column's own unit (classes each)."""
        raise NotImplementedError

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        """Returns P(x < cut | class) and P(x ≥ cut | class) of feature number f, for each of the numbers ``cuts``.

        Both are arrays of cuts × classes.
        """
        raise NotImplementedError

    def ends(self, f: int, near: Real, step: Real) -> Real:
        """Returns round numbers near the wanted ones (``near``), in the same shape.

        An interval of feature number f that is shown to people may end there. By default multiples of ``step``.
        """
        return evidence.round_ends(self.features[f], near, step)

    def informative_values(self, compared: Comparison) -> Iterator[InformativeValues] | None:
        """Yields the most informative interval of each column for each class that is ``compared``."""
        return evidence.informative_intervals(self, compared)


class KeyedParameters(Parameters):
    """The base of parameters that give each of a list of values, or combinations of values, a probability."""

    def values(self) -> tuple[Real, list[tuple[int, Any]]]:
        """Returns P(value | class) of all values (values × classes).

        Returns as well, for each line of it, the feature's number and the value.
        """
        raise NotImplementedError

    def informative_values(self, compared: Comparison) -> Iterator[InformativeValues] | None:
        """Yields all values at once, any of which may tell classes apart. The share of rows that had a value is taken
        to be its probability; ``compared`` is not used.
        """
        # P(value | class) (lines × classes), and the feature's number and the value of each line.
        probability, of_line = self.values()

        def name_line(line: int) -> tuple[str, Any]:
            """Returns the feature's name and the value of a line of ``probability``."""
            f, value = of_line[line]
            return self.features.names[f], value

        return iter([InformativeValues(probability, probability, name_line)])


def first_value(rows: ColumnReader, feature: Feature) -> Any:
    """Returns the value of a feature in the first row, None if missing; for a block, a tuple with that of each column;
    for a column of lists, the list.
    """
    values = tuple(rows.first(feature.inputs))  # one of each column
    return values if feature.columns and not feature.holds_lists else values[0]


@dataclass(frozen=True)
class RowsToCount:
    """Rows with their classes and weights, as the kernels take them."""

    batch: Batch
    labels: Sequence[Any]  # what the class numbers stand for
    classes: NDArray[np.int32]  # the class number of each row; -1: not counted
    weights: NDArray[Any] | None  # of each row: whole numbers, or limbs of parts of a row (10⁻¹⁸); None: all are 1
    threads: int
    several: tuple[Int, NDArray[np.int32]] | None = None  # further classes of each row: offsets and numbers
    skipped: int = 0  # rows without a target

    @property
    def has_whole_weights(self) -> bool:
        """Whether all weights are whole numbers, which have one axis; others are limbs (rows × 2)."""
        return self.weights is None or self.weights.ndim == 1

    @cached_property
    def per_class(self) -> Integers:
        """The number of rows of each class, or their weight (classes)."""
        return _core.count_classes(self.classes, len(self.labels), self.weights, self.threads)

    def run_kernel(self, kernel: Callable[..., Any], names: Sequence[str], *arguments: Any) -> Any:
        """Runs a counting kernel with ``arguments`` and then the rows' classes, the number of classes, the weights and
        the threads; returns what the kernel does. Its errors name the column (``names`` are those of the columns that
        it counts) and the row.
        """
        try:
            return kernel(*arguments, self.classes, len(self.labels), self.weights, self.threads)
        except _core.BadValue as bad:
            raise bad_value(bad, names, self.batch) from None


def bad_value(bad: _core.BadValue, names: Sequence[str], batch: Batch) -> errors.BadValue:
    """Returns the error for a value that a kernel could not count, with its column, row and file. ``names`` are the
    columns that the kernel was counting, and ``bad`` says what is wrong, the column's place in ``names``, the row of
    the batch, and the value.
    """
    what, column, row, value = bad.args
    return errors.bad_value(what, value, names[column], batch.first_row + row, batch.source)


class Counter:
    """The base of counters, which say how rows become sums: every row adds whole numbers to the sums of a group of
    features.
    """

    apart: ClassVar[bool] = False  # whether each feature has sums of its own, rather than one group sharing arrays
    words: ClassVar[bool] = False  # whether the sums are tables of words

    def reads(self, feature: Feature) -> Reads | None:
        """Returns what the column of a text file is read as; None if the first rows decide."""
        return "number"

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        """Returns what the first rows decided that two features must share for their sums to be added.

        Two results are compared by ==.
        """
        return feature.origin, feature.unit, feature.scales, feature.kinds

    def describe_scale(self, feature: Feature) -> str:
        """Describes the scale of a feature for people, as a phrase that follows the family's name.

        A block has the start of each column's bins and their width.
        """
        if feature.scales:
            # A phrase for each column of the block.
            grids = (f"{start:g} in steps of {width * feature.unit:g}" for start, width in feature.scales)
            return f" about {errors.listed(grids)}"
        return f" about {feature.origin:g} in units of {feature.unit:g}"

    def settle(self, features: Features, batch: Batch) -> Features:
        """Returns the features with what the first rows (``batch``) decide: origins, units and kinds."""
        return features

    def has_valid_scale(self, feature: Feature) -> bool:
        """Whether a feature from a file has a scale that ``settle`` could have given it."""
        return not feature.scales and is_power(feature.unit)

    def count(self, features: Features, rows: RowsToCount) -> tuple[Features, Any]:
        """Counts rows. Returns the features, whose bins may have become wider, and the sums of these rows."""
        raise NotImplementedError

    def check(self, features: Features, sums: Any, rows: Integers, classes: Sequence[Any]) -> None:
        """Raises if no rows can have these sums: something is negative, or a feature has more rows than a class.

        ``rows`` has the number of rows of each class, and ``classes`` their labels.
        """
        # Features × classes; ``present`` has the rows with a value. Rounding keeps the order of the exact numbers.
        has_too_many_rows = sums.present.value > rows.value
        for f, c in np.argwhere(has_too_many_rows):
            raise errors.impossible_sums(classes[c], features.names[f])

    def widen(self, features: Features, sums: Any) -> Features:
        """Returns the features with bins wide enough that not too many are occupied; depends on the total sums alone."""
        return features

    def adopt_scale(self, feature: Feature, other: Feature) -> Feature:
        """Returns the feature with the scale of ``other``, if its sums can be moved to that scale; otherwise as it is."""
        return feature

    def move_sums(self, old: Features, new: Features, sums: Any) -> Any:
        """Returns the sums moved from the features ``old`` to ``new``, which have another scale or wider bins."""
        return sums

    def summary(self, feature: Feature, sums: Any, missing: str) -> str:
        """Describes in a few words what was counted of one feature (``sums`` are its own).

        ``missing`` is a phrase to append about rows without a value.
        """
        return f"{errors.many(len(feature.inputs), 'column')}{missing}"

    def restore(self, features: Features, stored: Stored, n_classes: int) -> Any:
        """Returns the sums of ``features`` in ``n_classes`` classes that a file holds (``stored``).

        Raises an error if no rows can have them.
        """
        raise NotImplementedError


class Stored(Protocol):
    """The sums of a group of features in a file: whether they are ``exact``, the plain ``arrays``, whole numbers by
    name, and keys after a check.
    """

    @property
    def exact(self) -> bool: ...
    @property
    def arrays(self) -> dict[str, NDArray[Any]]: ...
    def integers(self, name: str, shape: tuple[int, ...], signed: bool = False) -> Integers: ...
    def keys(self, features: Features, check: Callable[[Feature, Any], Any]) -> tuple[Any, ...]: ...


def is_power(unit: float) -> bool:
    """Whether a number is a power of two."""
    return math.frexp(unit)[0] == 0.5


class Family:
    """The base of every family: a frozen dataclass whose fields are its settings.

    ``counting`` names the settings that decide what is counted; all others belong to estimation, and changing them
    never needs a recount.
    """

    name: ClassVar[str]
    counting: ClassVar[tuple[str, ...]] = ()
    block: ClassVar[bool] = False  # whether a feature of it is always a block: several columns together
    blocks: ClassVar[bool] = False  # whether a feature of it is a block if several columns are given, else one column
    least: ClassVar[float] = -np.inf  # the least number that a column may hold
    keyed: ClassVar[bool] = False  # whether rows are counted by key, which ``keys_of`` says; a block of bins is not
    has_cells: ClassVar[bool] = False  # whether evidence of a column is weighed by ``cells``

    def counter(self, feature: Feature) -> Counter:
        """Returns the counter that turns the feature's values into sums."""
        raise NotImplementedError

    def counting_key(self) -> tuple[Any, ...]:
        """Returns what two families must have in common for their sums to be added.

        That is their name, and the settings that decide what is counted.
        """
        return self.name, *(getattr(self, setting) for setting in self.counting)

    def check_columns(self, feature: Feature) -> None:
        """Raises if the settings do not fit the columns of the feature."""

    def permanent_keys(self) -> frozenset[Key] | None:
        """Returns the keys that stay in a tally even if no row has them; None if there are none."""
        return None

    def estimate(self, features: Features, sums: Any, choice: Choice, rng: Generator) -> Parameters:
        """Estimates the parameters of features of this family from their sums, as ``choice`` says.

        ``sums`` are Counts, Moments, Products or Words; ``rng`` draws for how="gibbs".
        """
        raise NotImplementedError

    def log_prior(self, parameters: Any, sums: Any, choice: Choice) -> float:
        """Returns the log prior that "map" and "mean" add to the log-likelihood of the parameters.

        It is known up to a constant; 0 without a prior. ``parameters`` were estimated from ``sums``. The mean under a
        Dirichlet, Beta or Gamma prior is the mode under one that is worth one more of each.
        """
        return 0.0

    def empty_share(self, feature: Feature, sums: Any) -> float | None:
        """Returns the share of the cells of a block's table that no row has, from 0 to 1; None if there is no table."""
        return None

    def n_parameters(self, features: Features, sums: Any) -> list[tuple[int, int]]:
        """Returns a pair for each feature: how many free parameters each class has, and how many all classes share."""
        return [(1, 0)] * len(features)

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        """Returns this family with the settings to try for a column of numbers, one entry for each.

        Returns none if it cannot fit or is too slow.
        """
        return ()

    def has_density(self) -> bool:
        """Whether values have a density rather than a probability."""
        return True

    # Keys

    def keys_of(self, rows: ColumnReader, feature: Feature, threads: int = 1, strict: bool = True) -> Codes | None:
        """Returns the key of each row's value as codes, −1 for none; None if the family has no keys.

        ``strict`` raises for a value of another kind than the feature's; otherwise it is an unknown key.
        """
        return None

    def join_cells(self, feature: Feature, keys: Keys, cells: Real) -> Real:
        """Returns the rows per key and class (keys × classes) as an estimate uses them, for example with bins joined.
        ``cells`` has the rows of each of ``keys`` and class as they were counted.
        """
        return cells

    def pseudo_counts(self, keys: Keys, alpha: float) -> Real:
        """Returns the pseudo-count of each key (keys); ``alpha`` is for families that do not set their own."""
        return np.full(len(keys), float(alpha))

    def cells(self, features: Features, sums: Any, missing: Real, threads: int) -> Sequence[Any]:
        """Returns for each column the cells by which its evidence is weighed (``Cells``).

        None for a column without keys. ``sums`` are the counts of the columns, and ``missing`` has the number of rows
        without a value (columns × classes).
        """
        return [None] * len(features)

    # Leave-one-out

    def can_leave_one_out(self, features: Features, choice: Choice, weighted: bool) -> bool:
        """Whether ``leave_one_out`` equals refitting without each row; otherwise rows are left out by folds.
        ``weighted``: whether rows have weights.
        """
        return choice.how != "gibbs"

    def leave_one_out(self, features: Features, sums: Any, choice: Choice, held_out: HeldOutRows) -> Real:
        """Returns log P(values | class) of each held-out row under the parameters of all other rows, rows × classes.
        ``sums`` are those of all rows.

        Here everything is estimated anew for every row, which is slow but right for all sums that can be subtracted.
        """
        # Arrays 1 × classes, after one without rows so that there is an array if there are no rows.
        scores_of_rows = [np.zeros((0, held_out.n_classes))]
        for row, parameters in enumerate(estimates_without_each(self, features, sums, choice, held_out)):
            scores_of_rows.append(held_out.take(np.array([row])).scores(parameters))
        return np.concatenate(scores_of_rows)

    def leave_one_out_notes(self) -> list[str]:
        """Returns what is still estimated from all rows when one is left out, as phrases for people; none here."""
        return []

    def settings(self) -> dict[str, Any]:
        """Returns the settings that differ from the defaults, by name."""
        settings = {}
        for setting in fields(self):  # type: ignore[arg-type]
            value = getattr(self, setting.name)
            if value != setting.default:
                settings[setting.name] = value
        return settings

    def __str__(self) -> str:
        """Returns the name of the family with the settings that differ from the defaults."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"{self.name}({arguments})" if arguments else self.name

    def __repr__(self) -> str:
        """Returns the family as Python code, with the settings that differ from the defaults."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.settings().items())})"


def estimates_without_each(
    family: Family, features: Features, sums: Any, choice: Choice, held_out: HeldOutRows
) -> Iterator[Parameters]:
    """Yields for each row of ``held_out`` the parameters of ``features`` estimated as ``choice`` says from ``sums`` (of
    all rows) less the row's own sums.
    """
    sums_by_row = held_out.own_sums(features)  # as if each row were a class
    for row, own_class in enumerate(held_out.labels.tolist()):
        sums_of_row = sums_by_row.take([row]).merge([own_class], held_out.n_classes)  # now of the real classes
        sums_of_others = (sums - sums_of_row).without_empty(permanent_keys(features))
        yield family.estimate(features, sums_of_others, choice, UNUSED_GENERATOR)


def permanent_keys(features: Features) -> Iterator[frozenset[Key] | None]:
    """Yields the keys of each feature that stay in a tally even when no row has them, None if it has none."""
    keys = [template.family.permanent_keys() for template in features.templates]
    return map(keys.__getitem__, features.codes.tolist())  # ``codes``: the template number of each feature


def in_words(family: Family) -> str:
    """Returns the name of a family as it stands in a sentence: "kernel density", "Gaussian"."""
    words = family.name.replace("_", " ")
    return words.capitalize() if family.name in ("bernoulli", "gaussian", "poisson") else words


def block_columns(rows: ColumnReader, feature: Feature) -> list[Real]:
    """Returns the numbers of a block to be scored, one array of rows per column, NaN where missing; raises if one is
    infinite.
    """
    matrices = [_matrix(column) for column in feature.numbers(rows)]  # rows × columns each
    columns = list((matrices[0] if len(matrices) == 1 else np.concatenate(matrices, axis=1)).T)
    names = feature.inputs * len(columns) if feature.holds_lists else feature.inputs
    for name, column in zip(names, columns, strict=True):
        check_finite_column(column, name, rows)
    return columns


def check_finite_column(numbers: Real, name: str, rows: ColumnReader) -> None:
    """Raises for the first infinite number of a column (``name``) of these rows."""
    for row in np.flatnonzero(np.isinf(numbers))[:1].tolist():
        raise errors.bad_value("infinite", float(numbers[row]), name, rows.first_row + row, rows.source)


def _matrix(columns: NDArray[Any]) -> Real:
    """Returns one column, or several side by side, as a float array (rows × columns)."""
    numbers = np.asarray(columns, dtype=np.float64)
    return numbers[:, None] if numbers.ndim == 1 else numbers


def number_column(rows: ColumnReader, name: str) -> NDArray[Any]:
    """Returns a column of numbers as the kernels read it, NaN where missing (rows)."""
    return rows.numbers([name])[0].reshape(-1)


def rows_by_columns_present(numbers: Real) -> Iterator[tuple[Int, Int]]:
    """Groups the rows of a block of ``numbers`` (rows × columns), NaN where missing, by the columns in which they have
    a number. Yields for each group the numbers of these columns, and those of its rows; rows without any number are in
    none.
    """
    # Which columns have a number (patterns × columns), and the number of each row's pattern.
    patterns, pattern_of_row = np.unique(~np.isnan(numbers), axis=0, return_inverse=True)
    for p, pattern in enumerate(patterns):
        if pattern.any():
            yield np.flatnonzero(pattern), np.flatnonzero(pattern_of_row.reshape(-1) == p)


def side_by_side(columns: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Returns columns that are adjacent in memory as one matrix (rows × columns), alone in a list, so that a kernel
    reads each row once; others as they are.
    """
    first = columns[0] if columns else np.empty(0)
    if len(columns) < 2 or len(first) < 2:
        return list(columns)
    if any(column.dtype != first.dtype or column.strides != first.strides for column in columns):
        return list(columns)
    addresses = [column.__array_interface__["data"][0] for column in columns]  # in memory, in bytes
    if any(next_address - address != first.itemsize for address, next_address in pairwise(addresses)):
        return list(columns)
    shape = (len(first), len(columns))
    strides = (first.strides[0], first.itemsize)
    return [np.lib.stride_tricks.as_strided(first, shape, strides, writeable=False)]


def line_by_line(lines: NDArray[Any], table: Real, low: int = 0) -> _core.Part:
    """Returns the kernel part of a feature whose rows each point to a line of ``table``, which has log-likelihoods
    (lines × classes). ``lines`` has the number of each row's line, counted from ``low``; any other number adds nothing
    to the row.
    """
    lookup = np.arange(len(table), dtype=np.uint32)  # the line of each number from ``low`` on
    # −1: numbers outside the lookup have no line.
    return _core.TablePart([lines], np.array([low]), [lookup], np.full(1, -1), table)


def check_positive(setting: str, value: Any, *, zero: bool = False) -> None:
    """Raises unless ``value`` is a number above zero (or zero, if ``zero``) that no sum makes infinite. ``setting`` is
    its name in the message.
    """
    is_real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    number: Any = (value if isinstance(value, int) else float(value)) if is_real else np.nan
    if not 0 <= number <= LARGEST_SETTING or (number == 0 and not zero):
        expected = "a finite number of at least 0" if zero else "a finite number above 0"
        is_too_large = LARGEST_SETTING < number < np.inf
        raise errors.bad_setting(
            setting, value, f"{expected} and at most {LARGEST_SETTING:g}" if is_too_large else expected
        )


def check_settings(family: Family, *settings: str, zero: bool = False) -> None:
    """Raises unless the named settings of a family are None or positive, or zero if ``zero``."""
    for setting in settings:
        if (value := getattr(family, setting)) is not None:
            check_positive(setting, value, zero=zero)


def check_finite(setting: str, value: Any) -> None:
    """Raises unless ``value`` is a finite number. ``setting`` is its name in the message."""
    number: Any = value if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) else np.nan
    errors.require(-np.inf < number < np.inf, setting, value, "a finite number")


def rows_by_class(classes: NDArray[np.integer[Any]], n_classes: int) -> list[Int]:
    """Returns for each of ``n_classes`` classes the numbers of its rows, in order; rows of class −1 are left out.
    ``classes`` has the class of each row.
    """
    # The row numbers sorted by class, and where each class starts among them; last, where the last class ends.
    order, starts = _core.by_class(np.ascontiguousarray(classes, dtype=np.int32), n_classes, n_threads(None))
    return [order[start:end] for start, end in pairwise(starts.tolist())]
