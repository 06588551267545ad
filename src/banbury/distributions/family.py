"""What a feature's distribution must do: name what is counted, and turn sums into parameters that score and sample."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
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

    def in_words(self) -> str:
        """Its name in a sentence."""
        return self.name.replace("_", " ")

    def reads_text(self) -> bool:
        """Whether a value is a text, so that a line of a file can be one, and ``strings`` has them."""
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

    def empty_share(self, feature: Feature, keys: Any, rows: Real) -> float | None:
        """Of a block's table the share of cells that no row has; None where there is no table."""
        return None

    def n_parameters(self, features: tuple[Feature, ...], sums: Any) -> list[tuple[int, int]]:
        """Per feature: free parameters per class, and those shared by all classes."""
        raise NotImplementedError

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


def check_whole(setting: str, value: Any, low: int, high: int | None = None) -> None:
    """Raises unless ``value`` is a whole number from ``low`` up, and to ``high`` if there is an end."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        end = "up" if high is None else f"to {high:,}"
        raise errors.bad_setting(setting, value, f"a whole number from {low:,} {end}")


def check_finite(setting: str, value: Any) -> None:
    """Raises unless ``value`` is a finite number."""
    number: Any = value if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) else np.nan
    if not -np.inf < number < np.inf:
        raise errors.bad_setting(setting, value, "a finite number")


def by_class(classes: NDArray[np.integer[Any]], n_classes: int) -> list[NDArray[np.int64]]:
    """The row numbers of each class, in order; −1 is none."""
    order, starts = _core.by_class(np.ascontiguousarray(classes, dtype=np.int32), n_classes)
    return [order[a:b] for a, b in pairwise(starts.tolist())]
