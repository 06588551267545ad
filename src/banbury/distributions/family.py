"""What a feature's distribution must do: name what is counted, and turn sums into parameters that score and sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.distributions.information import ColumnTest, bits_of_draws
from banbury.distributions.vocabulary import Vocabulary
from banbury.sums import Counts, Key, Keys

How = Literal["mle", "map", "mean", "predictive", "gibbs"]
HOWS: tuple[How, ...] = ("mle", "map", "mean", "predictive", "gibbs")
Shape = Literal["keys", "bins", "moments", "products", "words"]
Kind = Literal["boolean", "integer", "float", "string"]

LARGEST_SETTING = 1e100
MOST_BINS = 4096  # of a column that are occupied
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
    def codes(self, name: str, wanted: Any = None) -> Any: ...
    def integers(self, name: str) -> NDArray[Any] | None: ...
    def whole(self, names: Sequence[str]) -> NDArray[Any] | None: ...
    def kind(self, name: str) -> Any: ...
    def texts(self, name: str) -> Any: ...
    def occurrences(self, names: Sequence[str]) -> Any: ...
    def take(self, rows: NDArray[np.int64]) -> ColumnReader: ...


class Feature(NamedTuple):
    """A column or a block of columns, its family, and what the first rows settled about counting it.

    ``origin`` and ``unit`` are those of moments, or the start and width of bins; ``kind`` is the type of the values.
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

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it is counted from."""
        return self.columns or (self.name,)


@dataclass(frozen=True, slots=True)
class Choice:
    """The estimating half: how, and the prior's strength for families that do not say their own."""

    how: How = "mean"
    alpha: float = 1.0
    seed: int = 0


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
        """The same parameters of some of the features."""
        raise NotImplementedError

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        """A value of each feature for rows of these classes."""
        raise NotImplementedError

    def log_cells(self, f: int, values: Real) -> Real | None:
        """log P of the unit cell of whole numbers of a feature, (values, classes); None or NaN where the density says it."""
        return None

    def collapsed(self, sums: Any) -> list[tuple[int, int, float]]:
        """Where a class's density is so narrow, beside its column, that it stands on one value: feature, class and value."""
        return []

    def listed_values(self, f: int, column: str) -> Keys | None:
        """The values of a feature's column, where they are listed: those that rows had."""
        return None

    def never_seen(self, rows: ColumnReader) -> NDArray[np.bool_] | None:
        """Which rows have a value of each feature that no row counted had, (rows, features); None where none is listed."""
        return None


class Family:
    """The base of every family: a frozen dataclass whose fields are its settings.

    ``counting`` names the settings that decide what is counted; all others belong to estimation, and changing them
    never needs a recount.
    """

    name: ClassVar[str]
    shape: ClassVar[Shape]
    counting: ClassVar[tuple[str, ...]] = ()
    block: ClassVar[bool] = False  # whether it takes several columns together
    blocks: ClassVar[bool] = False  # whether it may: where several are given

    def counted(self) -> tuple[Any, ...]:
        """What two families must share for their sums to add."""
        return self.shape, *(getattr(self, setting) for setting in self.counting)

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

    def empty_share(self, feature: Feature, keys: Any, rows: Real) -> float | None:
        """Of a block's table the share of cells that no row has; None where there is no table."""
        return None

    def n_parameters(self, features: tuple[Feature, ...], sums: Any) -> list[tuple[int, int]]:
        """Per feature: free parameters per class, and those shared by all classes."""
        raise NotImplementedError

    # What is chosen, tuned, and given to others

    def suits(self, least: float, whole: bool) -> bool:
        """Whether it may be chosen for a column of numbers, of which this is the least, and all are whole or not."""
        return False

    def text_settings(self) -> tuple[str, ...]:
        """The settings that ``bb.tune(text=...)`` may try."""
        return ()

    def encoded(self, rows: ColumnReader, features: Sequence[Feature], sums: Any, threads: int) -> Encoding:
        """The features' values as another learner takes them. Here: numbers as they are, all else as categories."""
        names = [name for feature in features for name in feature.inputs]
        numeric = [name for name in names if rows.kind(name) in ("boolean", "integer", "float", "empty")]
        columns = [column.reshape(rows.n_rows, -1) for column in rows.numbers(numeric)] if numeric else []
        others = set(names).difference(numeric)
        return Encoding(columns, [rows.codes(name) for name in names if name in others])

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
            raise errors.BadSetting(
                f"column {column!r} is a number of family {self.name!r}, which has a density: densities of several values do "
                "not sum to a probability. Ask for one number at a time, or count the column as bb.Categorical(), whose "
                "values have probabilities.",
                column=column,
            )

    def counts_missing(self) -> bool:
        """Whether a missing value is a value."""
        return False

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

    # Leave-one-out

    def can_leave_one_out(self, features: tuple[Feature, ...], choice: Choice, weighted: bool) -> bool:
        """Whether ``leave_one_out`` says what refitting without each row would; otherwise every row has to be refitted."""
        return choice.how != "gibbs"

    def leave_one_out(self, features: tuple[Feature, ...], sums: Any, choice: Choice, held_out: HeldOutRows) -> Real:
        """log P(values | class) of each row, (rows, classes), under what all rows but itself add up to.

        Here each row's own sums are subtracted, and the rest is estimated: slow, and right for all sums that subtract.
        """
        own, found = held_out.own_sums(features), [np.zeros((0, held_out.n_classes))]
        for row, label in enumerate(held_out.labels.tolist()):
            left = sums - own.take([row]).merge([label], held_out.n_classes)
            if isinstance(left, Counts):
                left = left.without_empty((self.declared(),) * len(features))
            parameters = self.estimate(features, left, choice, UNUSED)
            found.append(held_out.take(np.array([row])).scores(parameters))
        return np.concatenate(found)

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


def log_between(below: Real, above: Real) -> Real:
    """The logarithm of what lies between two cuts, from what lies below each."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(above - below, 0.0)))


def columns_of(rows: ColumnReader, feature: Feature) -> list[Real]:
    """The numbers of a block to be scored, column by column; none of them may be infinite."""
    matrices = [_matrix(column) for column in rows.numbers(feature.inputs)]
    columns = list(np.concatenate(matrices, axis=1).T)
    for name, column in zip(feature.inputs, columns, strict=True):
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


def check_positive(setting: str, value: Any, *, zero: bool = False) -> None:
    """Raises unless ``value`` is a number above zero (or zero, if allowed) that no sum makes infinite."""
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    number: Any = (value if isinstance(value, int) else float(value)) if real else np.nan
    if not 0 <= number <= LARGEST_SETTING or (number == 0 and not zero):
        wanted = "a finite number from 0 up" if zero else "a finite number above 0"
        large = LARGEST_SETTING < number < np.inf
        raise errors.bad_setting(setting, value, f"{wanted}, {LARGEST_SETTING:g} at most" if large else wanted)


def check_finite(setting: str, value: Any) -> None:
    """Raises unless ``value`` is a finite number."""
    number: Any = value if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) else np.nan
    if not -np.inf < number < np.inf:
        raise errors.bad_setting(setting, value, "a finite number")


def by_class(classes: NDArray[np.integer[Any]], n_classes: int) -> list[NDArray[np.int64]]:
    """The row numbers of each class, in order; −1 is none."""
    order, starts = _core.by_class(np.ascontiguousarray(classes, dtype=np.int32), n_classes)
    return [order[a:b] for a, b in pairwise(starts.tolist())]
