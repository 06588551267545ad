"""What a user gives: hypotheses, their prior, labels, noise, and rows in any of the usual shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, log
from numbers import Number
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real

Array = NDArray[Any]
Likelihood = Literal["noise_free", "label_noise", "gaussian", "bernoulli"]
Chosen = NDArray[np.intp] | None  # numbers of hypotheses; None: all of them

LIKELIHOODS = ("noise_free", "label_noise", "gaussian", "bernoulli")
MOST = 10_000_000  # hypotheses that are held
ROUNDING = 1e-6  # by which a prior may miss one: single precision does


class GivenRows:
    """Rows as they come: a frame, a mapping of columns or of one row's values, a matrix, or any rows one after another."""

    def __init__(self, data: Any, target: Any = None) -> None:
        self._target = target if is_scalar(target) else None  # a column's name, or the targets themselves
        self._rows: Any = None
        self.columns: dict[Any, Array] = {}
        names = getattr(data, "column_names", getattr(data, "columns", None))  # Arrow's, or pandas' and Polars'
        if names is not None or isinstance(data, Mapping):
            self._read_columns(data, list(data if names is None else names))
        elif is_scalar(data) or (isinstance(data, np.ndarray) and not data.ndim):
            raise errors.bad_setting("rows", data, "a frame, a mapping of columns, a list of rows or an array")
        else:
            self._read_rows(data)

    def _read_columns(self, data: Any, names: list[Any]) -> None:
        if len(set(names)) < len(names):
            raise errors.duplicate_column(next(name for name in names if names.count(name) > 1))
        if isinstance(data, Mapping):
            scalars = [name for name in names if is_scalar(data[name])]
            if len(scalars) == len(names):  # one row
                data = {name: [data[name]] for name in names}
            elif scalars:
                raise errors.scalar_for_column(str(scalars[0]), data[scalars[0]])
        self.columns = {name: vector(data[name]) for name in names}
        self._length = len(self.columns[names[0]]) if names else 0
        for name, column in self.columns.items():
            if len(column) != self._length:
                raise errors.uneven_columns(str(names[0]), self._length, str(name), len(column))

    def _read_rows(self, data: Iterable[Any]) -> None:
        self._rows = data if isinstance(data, np.ndarray) else list(data)
        self._length = len(self._rows)
        if isinstance(data, np.ndarray) and data.ndim == 2:
            self.columns = {j: data[:, j] for j in range(data.shape[1])}
        elif self._length and all(isinstance(row, Mapping) for row in self._rows):
            self.columns = {name: vector([row.get(name) for row in self._rows]) for name in self._rows[0]}

    def __len__(self) -> int:
        return self._length

    @cached_property
    def each(self) -> Any:
        """The rows one by one, for functions of a row; a row of a table is a mapping, without the target's column."""
        if self._rows is not None:
            return self._rows
        columns = {name: column.tolist() for name, column in self.columns.items() if name != self._target}
        return [{name: values[row] for name, values in columns.items()} for row in range(len(self))]

    def column(self, name: Any) -> Array:
        if not len(self) and not self.columns:
            return vector([])  # an empty list has no columns, and every one
        if name not in self.columns:
            raise errors.unknown_column(name, list(self.columns))
        return self.columns[name]

    def target(self, given: Any) -> Array:
        """The targets: a column by its name, or one for each row, as they are given."""
        column = self.column(given) if is_scalar(given) else vector(given)
        if len(column) != len(self):
            raise errors.length_mismatch("targets", len(column), len(self))
        return column

    def features(self, named: Iterable[Any] | None, target: Any) -> list[Any]:
        """The columns that hypotheses are about: all but the target, by its own name too where it was taken from the table."""
        if not self.columns:
            wanted = "a frame, a mapping of columns, a list of records or a 2-D array"
            raise errors.bad_setting("the table", "rows without columns", wanted)
        own = None
        if target is not None:
            self.target(target)
            own = target if is_scalar(target) else getattr(target, "name", None)
        chosen = [name for name in self.columns if name != own] if named is None else vector(named, "features").tolist()
        for name in chosen:
            self.column(name)
        if not chosen or len(set(chosen)) < len(chosen):
            raise errors.bad_setting("features", chosen, "columns of the table, one at least and each once")
        return chosen


@runtime_checkable
class Askable(Protocol):
    """Hypotheses that can be asked about rows."""

    def on(self, rows: GivenRows) -> Said:
        """What they say of these rows."""


@dataclass(frozen=True)
class Said:
    """What hypotheses say of rows.

    ``mistakes``, where hypotheses can count them themselves: how many rows each gets wrong, given the numbers of the right
    labels; they then answer with numbers of labels.
    """

    n_rows: int
    of: Callable[[slice, Chosen], Array]  # predictions of some rows by some hypotheses, rows × hypotheses
    mistakes: Callable[[slice, Array, Chosen], Array] | None = None
    at_once: int = 8  # rows that cost little more than one
    counted_at_once: int = 0  # the same where mistakes are counted, if it is more


class Functions:
    """Hypotheses that are functions of a row."""

    def __init__(self, functions: list[Any]) -> None:
        self.functions = functions

    def on(self, rows: GivenRows) -> Said:
        def said(part: slice, chosen: Chosen) -> Array:
            asked = self.functions if chosen is None else [self.functions[h] for h in chosen.tolist()]
            return objects([function(row) for row in rows.each[part] for function in asked]).reshape(-1, len(asked))

        return Said(len(rows), said)


def named(hypotheses: Any) -> tuple[Sequence[Any], Askable | None]:
    """The names of the hypotheses, and what can be asked about rows, if anything can."""
    if isinstance(hypotheses, Askable) and isinstance(hypotheses, Sequence):  # as a generator makes them
        return hypotheses, hypotheses
    if isinstance(hypotheses, (int, np.integer)) and not isinstance(hypotheses, bool):
        if not 1 <= hypotheses <= MOST:
            raise errors.bad_setting("hypotheses", hypotheses, f"a number from 1 to {MOST:,}")
        return range(int(hypotheses)), None
    if isinstance(hypotheses, (str, bytes)) or not isinstance(hypotheses, Iterable):
        raise errors.bad_setting("hypotheses", hypotheses, "a list of functions or of names, or how many there are")
    given = dict(hypotheses) if isinstance(hypotheses, Mapping) else [plain(each) for each in hypotheses]
    things = list(given.values()) if isinstance(given, dict) else given
    if not things:
        raise errors.bad_setting("hypotheses", given, "one at least")
    callables = sum(map(callable, things))
    if callables != len(things) and (callables or isinstance(given, dict)):
        odd = next(thing for thing in things if not callable(thing))
        raise errors.bad_setting("hypotheses", odd, "all functions of a row, or all names")
    names = list(given) if isinstance(given, dict) else _function_names(things) if callables else things
    _check_different(names)
    return names, Functions(things) if callables else None


def _function_names(functions: Sequence[Any]) -> list[str]:
    """Their own names if these tell them apart, else h1, h2, …"""
    names = [getattr(function, "__name__", "") for function in functions]
    if len(set(names)) == len(names) and not {"", "<lambda>"} & set(names):
        return names
    return [f"h{i}" for i in range(1, len(names) + 1)]


def _check_different(names: Sequence[Any]) -> None:
    seen = set()
    for name in names:
        if not is_hashable(name):
            raise errors.bad_setting("hypotheses", name, "functions of a row, or names such as texts and numbers")
        if name in seen:
            raise errors.bad_setting("hypotheses", name, "different from each other: this name is there twice")
        seen.add(name)


def log_prior(names: Sequence[Any], prior: Any, lengths: Any) -> Real:
    """log P(h), which sums to one."""
    by_length = isinstance(prior, str) and prior == "description_length"
    if by_length != (lengths is not None):
        wanted = "the bits of each hypothesis, together with prior='description_length'"
        raise errors.bad_setting("lengths", lengths, wanted)
    if by_length:
        bits = _of_each("length", lengths, names)
        shares = -(bits - bits.min()) * log(2)
        return np.asarray(shares - np.log(np.exp(shares).sum()))
    if isinstance(prior, str):
        if prior != "uniform":
            raise errors.unknown_choice("prior", prior, ("uniform", "description_length"))
        return np.full(len(names), -log(len(names)))
    shares = _of_each("prior", prior, names)
    total = float(shares.sum())
    if abs(total - 1.0) > ROUNDING:
        raise errors.bad_prior(total)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(shares / total))


def _of_each(what: str, given: Any, names: Sequence[Any]) -> Real:
    """A number from 0 up for each hypothesis."""
    array = matrix(by_name(f"the {what}", given, names) if isinstance(given, Mapping) else given)
    if array.ndim == 0:
        raise errors.bad_setting(f"the {what}", given, "a number for each hypothesis")
    if array.shape != (len(names),):
        raise errors.unlike_hypotheses(f"the {what}", array.shape, len(names))
    values = floats(array)
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        h = int(wrong.argmax())
        raise errors.bad_number(what, plain(array[h]), names[h], "a finite number from 0 up")
    return values


def by_name(what: str, given: Mapping[Any, Any], names: Sequence[Any]) -> list[Any]:
    """Numbers in the order of the hypotheses."""
    known = set(names)
    lacking, extra = [name for name in names if name not in given], [name for name in given if name not in known]
    if lacking or extra:
        raise errors.unknown_hypothesis(what, lacking, extra, names)
    return [given[name] for name in names]


def checked_noise(likelihood: Any, noise: Any) -> float:
    if not isinstance(likelihood, str) or likelihood not in LIKELIHOODS:
        raise errors.unknown_choice("likelihood", likelihood, LIKELIHOODS)
    if likelihood in ("noise_free", "bernoulli"):
        if noise is not None:
            raise errors.bad_setting("noise", noise, f"left out when likelihood={likelihood!r}")
        return 0.0
    number = isinstance(noise, (int, float, np.integer, np.floating)) and not isinstance(noise, bool)
    if likelihood == "label_noise" and not (number and 0 <= noise < 1):
        raise errors.bad_setting("noise", noise, "the probability of a wrong label: from 0 up, and below 1")
    if likelihood == "gaussian" and not (number and isfinite(noise) and noise > 0):
        raise errors.bad_setting("noise", noise, "the standard deviation of the numbers, above 0")
    return float(noise)


def checked_labels(labels: Any, likelihood: str) -> tuple[Any, ...]:
    found = tuple(vector(labels, "labels").tolist())
    usable = all(is_hashable(label) and not is_missing(label) for label in found)
    if not usable or len(set(found)) < max(len(found), 2) or (likelihood == "bernoulli" and len(found) != 2):
        how_many = "two" if likelihood == "bernoulli" else "two at least"
        raise errors.bad_setting("labels", list(found), f"texts, numbers or booleans, {how_many}, each once")
    return found


def codes(values: Array, labels: Sequence[Any]) -> Array:
    """The number of each value among the labels; −1 for others."""
    if values.dtype == np.bool_ and tuple(labels) == (False, True):
        return values.view(np.uint8)
    if values.dtype != object:
        found = np.full(values.shape, -1, dtype=np.int32)
        for k, label in enumerate(labels):
            found[values == label] = k
        return found
    numbers = {label: k for k, label in enumerate(labels)}
    each = (numbers.get(value, -1) if is_hashable(value) else -1 for value in values.ravel().tolist())
    return np.fromiter(each, np.int32, values.size).reshape(values.shape)


def matrix(given: Any) -> Array:
    """An array of numbers, texts or objects; ragged ones are refused."""
    if hasattr(given, "__array__") or is_scalar(given):
        return np.asarray(given)
    given = list(given)
    try:
        array = np.array(given)
        return np.array(given, dtype=object) if array.dtype.kind in "US" else array  # numbers are not made texts
    except ValueError:
        lengths = [len(row) if hasattr(row, "__len__") else 1 for row in given]
        row = next((r for r, length in enumerate(lengths) if length != lengths[0]), 0)
        raise errors.ragged_rows(row, lengths[row], lengths[0]) from None


def vector(values: Any, setting: str | None = None) -> Array:
    """One value per row, or those of a setting. A list stays what it is: numbers among texts are not made texts."""
    if is_scalar(values) or isinstance(values, Mapping):
        raise errors.not_a_column(values) if setting is None else errors.bad_setting(setting, values, "a list")
    array = np.asarray(values) if hasattr(values, "__array__") else objects(list(values))
    if array.ndim != 1:
        raise errors.not_one_column(array.shape)
    return array.astype("datetime64[us]").astype(str) if array.dtype.kind == "M" else array  # dates are texts


def objects(values: list[Any]) -> Array:
    """The values as they are; those of one plain type in an array of that type."""
    kinds = set(map(type, values))
    if len(kinds) == 1 and kinds <= {bool, float, str}:
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def floats(values: Array) -> Real:
    """As numbers; NaN where there is none."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64, copy=False)
    return np.array([_float(value) for value in values.ravel().tolist()], dtype=np.float64).reshape(values.shape)


def _float(value: Any) -> float:
    try:
        return float(value) if isinstance(value, (Number, np.bool_)) else np.nan  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):  # too large a number, or a complex one
        return np.nan


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def is_scalar(value: Any) -> bool:
    return isinstance(value, (str, bytes)) or not isinstance(value, Iterable)


def is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def is_missing(value: Any) -> bool:
    """None, NaN, and what cannot say whether it equals itself."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def check_whole(name: str, value: Any, least: int = 0) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise errors.bad_setting(name, value, f"a whole number from {least} up")
