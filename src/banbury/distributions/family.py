"""What a feature's distribution must do: name what is counted, and turn sums into parameters that score and sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.distributions.evidence import (
    DRAWN,
    Comparison,
    Drawn,
    NamedValues,
    TellingValues,
    Term,
    drawn_telling,
    stretches,
)
from banbury.sums import Key

How = Literal["mle", "map", "mean", "predictive", "gibbs"]
HOWS: tuple[How, ...] = ("mle", "map", "mean", "predictive", "gibbs")
Shape = Literal["keys", "bins", "moments", "products", "words"]
Kind = Literal["boolean", "integer", "float", "string"]

LARGEST_SETTING = 1e100
MOST_BINS = 4096  # of a column that are occupied
SMALLEST_ALPHA = 1e-10  # α = 0 asks for 0/0; scikit-learn raises it to the same value


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
    def head(self, name: str, n: int) -> list[Any]: ...
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

    # Explaining

    def terms(self, rows: ColumnReader, log_likelihoods: Real) -> list[Term]:
        """What the first row says of each class, from the likelihoods of its features: a term for each, or for each word."""
        return [
            Term(feature.name, first_value(rows, feature), says, self.is_seen(f, rows))
            for f, (feature, says) in enumerate(zip(self.features, log_likelihoods, strict=True))
        ]

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
        drawn = self.sample(np.repeat(np.arange(len(compared.rest)), DRAWN), np.random.default_rng(0))
        columns = ((self.select([f]), values) for f, values in enumerate(drawn))
        return (each for column in columns for each in drawn_telling(*column, compared))

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
        return np.asarray(np.round(wanted / step) * step)

    def telling(self, compared: Comparison) -> Iterator[TellingValues] | None:
        return stretches(self, compared)

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
    return values if feature.columns else values[0]


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
        return self.name.replace("_", " ")

    def measure(self) -> str:
        """What a number has, given the class: a density, or a probability."""
        return "density"

    def points(self, low: float, high: float, n: int) -> Real:
        """Numbers to draw a column at, n at most."""
        return np.linspace(low, high, n)

    def check_line(self, feature: Feature) -> None:
        """Raises unless the values of a feature can stand along one line."""
        if len(feature.inputs) > 1:
            raise self.no_line(feature)

    def no_line(self, feature: Feature) -> errors.BadSetting:
        """That they cannot."""
        return errors.BadSetting(
            f"block {feature.name!r} models {len(feature.inputs):,} columns together as {self.name}, so none of them has a line "
            "of its own to be drawn on. Draw the block with bb.plots.LikelihoodDisplay, or what one row says with "
            "bb.plots.EvidenceDisplay.",
            feature=feature.name,
            family=self.name,
        )

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
