"""One column, whatever holds it: its kind, its numbers, its distinct values as codes.

A column does not know its name: what does not fit is raised as ``Unfit``, and the batch says where that was.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.threads import n_threads

Kind = Literal["boolean", "integer", "float", "string", "date", "empty", "other"]
Wanted = Literal["boolean", "integer", "float", "string"]
Scalar = bool | int | float | str
# Texts as the kernels take them: a list, or offsets, bytes, validity bitmap and its offset as Arrow keeps them.
Texts = list[str | None] | tuple[NDArray[Any], NDArray[np.uint8], NDArray[np.uint8] | None, int]

SMALL_SPAN = 65536
PARALLEL_ROWS = 65536
LOWEST = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Codes:
    """A column as whole numbers: ``codes[i] == low + k`` means ``values[k]``; any other code means missing.

    ``values`` may hold entries that no row has.
    """

    codes: NDArray[Any]
    low: int
    values: Sequence[Scalar]


class Unfit(Exception):
    """A value, at a row of the column, that is not what was asked for."""

    def __init__(self, value: Any, row: int, needed: str) -> None:
        super().__init__(value, row, needed)
        self.value, self.row, self.needed = value, row, needed


class Column(Protocol):
    """What every kind of column can do.

    ``categorical``: its maker declared it a choice among values. ``text``: it was given as texts, not as words.
    """

    categorical: bool
    text: bool

    def __len__(self) -> int: ...
    def kind(self) -> Kind: ...
    def numbers(self) -> NDArray[Any]: ...
    def codes(self, wanted: Wanted | None, threads: int) -> Codes: ...
    def texts(self) -> Texts: ...
    def head(self, n: int) -> list[Scalar]: ...
    def cut(self, start: int, stop: int) -> Column: ...
    def take(self, rows: NDArray[np.int64]) -> Column: ...


def threads_for(n_rows: int, threads: int | None) -> int:
    """Threads for a pass over so many rows; starting them does not pay for a small batch."""
    return n_threads(threads) if n_rows >= PARALLEL_ROWS else 1


class Numbers:
    """A NumPy array of booleans, integers or floats, kept as it is."""

    categorical = False
    text = False

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def kind(self) -> Kind:
        kind = self.array.dtype.kind
        if kind == "f":
            return "empty" if len(self.array) and all_nan(self.array) else "float"
        return "boolean" if kind == "b" else "integer"

    def numbers(self) -> NDArray[Any]:
        return ready(self.array)

    def codes(self, wanted: Wanted | None, threads: int) -> Codes:
        kind = self.array.dtype.kind
        if kind == "b":
            return converted(Codes(self.array.view(np.uint8), 0, [False, True]), "boolean", wanted)
        if kind == "f":
            return converted(_float_codes(self.array, threads), "float", wanted)
        return converted(integer_codes(ready(self.array), threads, wanted), "integer", wanted)

    def texts(self) -> Texts:
        return [None if value != value else to_string(value) for value in self.array.tolist()]

    def head(self, n: int) -> list[Scalar]:
        def present(start: int, stop: int) -> list[Scalar]:
            part = self.array[start:stop]
            kept: list[Scalar] = (part[part == part] if part.dtype.kind == "f" else part).tolist()
            return kept

        return first_present(present, len(self.array), n)

    def cut(self, start: int, stop: int) -> Column:
        return Numbers(self.array[start:stop])

    def take(self, rows: NDArray[np.int64]) -> Column:
        return Numbers(self.array.take(rows))


class FixedWidth:
    """A NumPy array of fixed-width strings or bytes."""

    categorical = False

    def __init__(self, array: NDArray[Any], text: bool = False) -> None:
        self.array = array
        self.text = text

    def __len__(self) -> int:
        return len(self.array)

    def kind(self) -> Kind:
        return "string"

    def numbers(self) -> NDArray[Any]:
        return no_numbers(self)

    def codes(self, wanted: Wanted | None, threads: int) -> Codes:
        codes, first = encode_bytes(self.array, threads)
        found = Codes(codes, 0, [])
        return converted(regrouped(found, self._natural(self.array[first])), "string", wanted)

    def texts(self) -> Texts:
        return self._natural(self.array)

    def _natural(self, array: NDArray[Any]) -> list[Any]:
        texts: list[Any] = array.tolist()
        return texts if array.dtype.kind == "U" else [decoded(text) for text in texts]

    def head(self, n: int) -> list[Scalar]:
        return self._natural(self.array[:n])

    def cut(self, start: int, stop: int) -> Column:
        return FixedWidth(self.array[start:stop], self.text)

    def take(self, rows: NDArray[np.int64]) -> Column:
        return FixedWidth(self.array.take(rows), self.text)


class Dates:
    """A NumPy array of instants or durations. Its values, where they are wanted, are ISO texts."""

    categorical = False
    text = False

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def kind(self) -> Kind:
        return "empty" if len(self.array) and bool(np.isnat(self.array).all()) else "date"

    def numbers(self) -> NDArray[Any]:
        return no_numbers(self)

    def codes(self, wanted: Wanted | None, threads: int) -> Codes:
        codes, first = encode_bytes(self.array, threads)
        values = [None if np.isnat(value) else str(value) for value in self.array[first]]
        return converted(regrouped(Codes(codes, 0, []), values), "string", wanted)

    def texts(self) -> Texts:
        return [None if np.isnat(value) else str(value) for value in self.array]

    def head(self, n: int) -> list[Scalar]:
        def present(start: int, stop: int) -> list[Scalar]:
            return [str(value) for value in self.array[start:stop] if not np.isnat(value)]

        return first_present(present, len(self.array), n)

    def cut(self, start: int, stop: int) -> Column:
        return Dates(self.array[start:stop])

    def take(self, rows: NDArray[np.int64]) -> Column:
        return Dates(self.array.take(rows))


class Objects:
    """A list of Python objects: texts, and what a table holds when its cells are not of one type."""

    categorical = False

    def __init__(self, values: list[Any], text: bool = False) -> None:
        self.values = values
        self.text = text
        self._kind: Kind | None = None

    def __len__(self) -> int:
        return len(self.values)

    def kind(self) -> Kind:
        if self._kind is None:
            self._kind = kind_of(self.values)
        return self._kind

    def numbers(self) -> NDArray[Any]:
        if self.kind() not in ("boolean", "integer", "float", "empty"):
            return no_numbers(self)
        present = [None if missing(value) else value for value in self.values]
        return np.array(present, dtype=np.float64)

    def codes(self, wanted: Wanted | None, threads: int) -> Codes:
        found = _core.encode_objects(self.values)
        if found is None:
            codes, values = _numbered(self.values)
            return converted(Codes(codes, 0, values), None, wanted)
        return converted(Codes(found[0], 0, [str(self.values[row]) for row in found[1].tolist()]), "string", wanted)

    def texts(self) -> Texts:
        """The list itself where it holds texts, None and NaN only."""
        types = set(map(type, self.values))
        if types <= PLAIN_TEXTS and (float not in types or not any(map(_is_number, self.values))):
            return self.values
        return [_text(value, row) for row, value in enumerate(self.values)]

    def head(self, n: int) -> list[Scalar]:
        def present(start: int, stop: int) -> list[Scalar]:
            cells = enumerate(self.values[start:stop], start)
            return [as_scalar(value, row) for row, value in cells if not missing(value)]

        as_scalar = (lambda value, row: str(value)) if self.kind() == "other" else natural
        found = first_present(present, len(self.values), n)
        return [to_string(value) for value in found] if self.kind() == "string" else found

    def cut(self, start: int, stop: int) -> Column:
        return Objects(self.values[start:stop], self.text)

    def take(self, rows: NDArray[np.int64]) -> Column:
        return Objects([self.values[row] for row in rows.tolist()], self.text)


PLAIN_TEXTS = {str, float, type(None)}


def _is_number(value: Any) -> bool:
    return type(value) is float and value == value


def _text(value: Any, row: int) -> str | None:
    if value is None or type(value) is str:
        return value
    return None if missing(value) else to_string(natural(value, row))


class Coded:
    """A column that came as codes already: a categorical, a dictionary array."""

    def __init__(self, codes: Codes, categorical: bool = True, text: bool = False) -> None:
        self.coded = codes
        self.categorical = categorical
        self.text = text

    def __len__(self) -> int:
        return len(self.coded.codes)

    def kind(self) -> Kind:
        if len(self) and not _is_present(self.coded, self.coded.codes).any():
            return "empty"
        return kind_of(self.coded.values)

    def numbers(self) -> NDArray[Any]:
        if self.kind() not in ("boolean", "integer", "float", "empty"):
            return no_numbers(self)
        lookup = np.array([*self.coded.values, np.nan], dtype=np.float64)
        return lookup[_positions(self.coded)]

    def codes(self, wanted: Wanted | None, threads: int) -> Codes:
        return converted(self.coded, None, wanted)

    def texts(self) -> Texts:
        values = [*map(to_string, self.coded.values), None]
        return [values[k] for k in _positions(self.coded).tolist()]

    def head(self, n: int) -> list[Scalar]:
        def present(start: int, stop: int) -> list[Scalar]:
            part = self.coded.codes[start:stop]
            return [self.coded.values[int(code) - self.coded.low] for code in part[_is_present(self.coded, part)]]

        return first_present(present, len(self), n)

    def cut(self, start: int, stop: int) -> Column:
        return self._with(self.coded.codes[start:stop])

    def take(self, rows: NDArray[np.int64]) -> Column:
        return self._with(self.coded.codes.take(rows))

    def _with(self, codes: NDArray[Any]) -> Column:
        return Coded(Codes(codes, self.coded.low, self.coded.values), self.categorical, self.text)


class Empty:
    """A column without a single value."""

    categorical = False

    def __init__(self, n_rows: int, text: bool = False) -> None:
        self.n_rows = n_rows
        self.text = text

    def __len__(self) -> int:
        return self.n_rows

    def kind(self) -> Kind:
        return "empty"

    def numbers(self) -> NDArray[Any]:
        return np.full(self.n_rows, np.nan)

    def codes(self, wanted: Wanted | None, threads: int) -> Codes:
        return Codes(np.full(self.n_rows, -1, dtype=np.int32), 0, [])

    def texts(self) -> Texts:
        return [None] * self.n_rows

    def head(self, n: int) -> list[Scalar]:
        return []

    def cut(self, start: int, stop: int) -> Column:
        return Empty(len(range(self.n_rows)[start:stop]), self.text)

    def take(self, rows: NDArray[np.int64]) -> Column:
        return Empty(len(rows), self.text)


def from_array(array: NDArray[Any]) -> Column:
    """The column of a 1-D NumPy array."""
    kind = array.dtype.kind
    if kind in "biuf":
        return Numbers(array)
    if kind in "US":
        return FixedWidth(array)
    if kind in "Mm":
        return Dates(array)
    if kind == "c":
        raise ValueError("Complex data not supported. Give the real and the imaginary part as two columns.")
    return Objects(array.tolist())


def from_list(values: list[Any]) -> Column:
    """The column of a list: an array where all its cells are numbers of one type, else the list itself."""
    types = set(map(type, values))
    if types == {int} or types == {bool} or types == {float} or types == {int, float}:
        array = np.array(values)
        exact = types != {int, float} or all(abs(value) <= 2**53 for value in values if type(value) is int)
        if array.dtype.kind in ("bi" if types == {int} else "bif") and exact:
            return Numbers(array)
    return Objects(values)


def ready(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in a type that the kernels read: the array itself wherever they can."""
    dtype = array.dtype
    if dtype.char in "dfbBhHiIlLqQ" and dtype.isnative and array.flags.aligned:
        return array
    if dtype.kind == "b":
        return array.view(np.uint8)
    return array.astype(np.float64 if dtype.kind == "f" and dtype.itemsize not in (4, 8) else dtype.newbyteorder("="))


def no_numbers(column: Column) -> NDArray[Any]:
    """Raises Unfit with the column's first value that is no number; a column without rows has no such value."""
    if len(column) == 0:
        return np.empty(0)
    row, value = first_not_number(column)
    raise Unfit(value, row, "a number")


def first_not_number(column: Column) -> tuple[int, Any]:
    if isinstance(column, Objects):
        cells: Iterable[Any] = column.values
    else:
        codes = column.codes(None, 1)
        cells = (codes.values[k] if k < len(codes.values) else None for k in _positions(codes).tolist())
    for row, value in enumerate(cells):
        if not missing(value) and kind_of([value]) not in ("boolean", "integer", "float"):
            return row, value
    raise AssertionError("a column without numbers must hold a value that is none")


def all_nan(array: NDArray[Any]) -> bool:
    return bool(array[0] != array[0]) and bool(np.isnan(array).all())


def first_present(present: Callable[[int, int], list[Scalar]], n_rows: int, n: int) -> list[Scalar]:
    """The first n of the values that ``present`` gives for ever longer stretches of rows."""
    found: list[Scalar] = []
    start, step = 0, 2 * n
    while start < n_rows and len(found) < n:
        found += present(start, start + step)
        start, step = start + step, 4 * step
    return found[:n]


def small_span(n_rows: int) -> int:
    """Integers from a range narrower than this are used as codes as they are."""
    return max(SMALL_SPAN, n_rows)


def integer_codes(array: NDArray[Any], threads: int, wanted: Wanted | None = None) -> Codes:
    """Integers of a small range are their own codes, without a copy; others are numbered as they occur.

    A conversion of the values would have to visit the whole range, so it is given the values that occur.
    """
    if len(array) == 0:
        return Codes(array, 0, [])
    if wanted in (None, "integer") and (array.dtype != np.uint64 or int(array.max()) < 2**63):
        lows, highs = _core.span([array], threads)
        low, high = int(lows[0]), int(highs[0])
        if high - low < small_span(len(array)):
            return Codes(array, low, range(low, high + 1))
    codes, first = encode_bytes(array, threads)
    return _without(Codes(codes, 0, array[first].tolist()), array[first] == LOWEST)


def _float_codes(array: NDArray[Any], threads: int) -> Codes:
    # Adding 0.0 turns -0.0 into 0.0, so that the two have the same bytes.
    array = ready(array) + array.dtype.type(0)
    codes, first = encode_bytes(array, threads)
    return _without(Codes(codes, 0, array[first].tolist()), np.isnan(array[first]))


def _without(codes: Codes, gaps: NDArray[np.bool_]) -> Codes:
    """The codes with some of their values taken for missing."""
    if not gaps.any():
        return codes
    return regrouped(codes, [None if gap else value for value, gap in zip(codes.values, gaps, strict=True)])


def encode_bytes(array: NDArray[Any], threads: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Numbers the distinct bytes of the array's cells; also the row at which each first occurs."""
    n_rows, width = len(array), array.dtype.itemsize
    if n_rows == 0 or width == 0:
        return np.zeros(n_rows, dtype=np.int32), np.zeros(min(n_rows, 1), dtype=np.int64)
    records = np.ascontiguousarray(array).view(np.uint8).reshape(n_rows, width)
    codes, first, _ = _core.encode_records(records, threads)
    return codes, first


def _numbered(values: list[Any]) -> tuple[NDArray[np.int32], list[Scalar]]:
    """Numbers any hashable scalars as a Python dict does: 1, 1.0 and True are one value."""
    numbering: dict[Scalar, int] = {}
    codes = np.empty(len(values), dtype=np.int32)
    for row, value in enumerate(values):
        codes[row] = -1 if missing(value) else numbering.setdefault(natural(value, row), len(numbering))
    return codes, list(numbering)


def converted(codes: Codes, kind: Wanted | None, wanted: Wanted | None) -> Codes:
    """The same rows with values of the wanted kind. Costs the number of distinct values, not of rows."""
    if wanted is None or wanted == kind:
        return codes
    return regrouped(codes, [_converted_value(codes, k, wanted) for k in range(len(codes.values))])


def _converted_value(codes: Codes, k: int, wanted: Wanted) -> Scalar | None:
    value = codes.values[k]
    try:
        return CONVERSIONS[wanted](value)
    except (ValueError, KeyError, OverflowError):
        rows = np.flatnonzero(codes.codes == codes.low + k)
        if len(rows) == 0:
            return None
        raise Unfit(value, int(rows[0]), NEEDED[wanted]) from None


BOOLEANS: dict[Scalar, bool] = {"true": True, "false": False, 0: False, 1: True}


def to_boolean(value: Scalar) -> bool:
    return BOOLEANS[value.lower() if isinstance(value, str) else value]


def to_integer(value: Scalar) -> int:
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return to_integer(float(value))
    if value != int(value):
        raise ValueError
    return int(value)


def to_string(value: Scalar) -> str:
    """A whole float is written as the integer it is: pandas makes floats of integers that have gaps."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


CONVERSIONS: dict[Wanted, Callable[[Scalar], Scalar]] = {
    "boolean": to_boolean,
    "integer": to_integer,
    "float": float,
    "string": to_string,
}
NEEDED: dict[Wanted, str] = {
    "boolean": "a yes or no (True, False, 0 or 1)",
    "integer": "a whole number",
    "float": "a number",
    "string": "a text",
}


def regrouped(codes: Codes, values: Sequence[Scalar | None]) -> Codes:
    """The same rows with ``values`` in place of their values; None and NaN become missing, equal values one."""
    numbering: dict[Scalar, int] = {}
    lookup = [
        -1 if value is None or value != value else numbering.setdefault(value, len(numbering)) for value in values
    ]
    if len(numbering) == len(values):
        return Codes(codes.codes, codes.low, list(numbering))
    table = np.array([*lookup, -1], dtype=np.int32)
    whole = Codes(codes.codes, codes.low, range(len(values)))
    return Codes(table[_positions(whole)], 0, list(numbering))


def _is_present(codes: Codes, part: NDArray[Any]) -> NDArray[np.bool_]:
    present: NDArray[np.bool_] = (part >= codes.low) & (part < codes.low + len(codes.values))
    return present


def _positions(codes: Codes) -> NDArray[np.int64]:
    """Which of the values each row has; one past the last where it is missing."""
    positions = codes.codes.astype(np.int64) - codes.low
    positions[(positions < 0) | (positions >= len(codes.values))] = len(codes.values)
    return positions


def missing(value: Any) -> bool:
    """Whether a cell is None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    if isinstance(value, (float, np.floating, np.datetime64, np.timedelta64, decimal.Decimal)):
        return bool(value != value)
    return type(value).__name__ in ("NAType", "NaTType")


def natural(value: Any, row: int) -> Scalar:
    """The cell as a bool, int, float or str; dates as ISO texts."""
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64, np.void)):
        value = value.item()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):
        return decoded(value)
    if isinstance(value, (bool, int, float)):
        return value
    return _natural_rarity(value, row)


def _natural_rarity(value: Any, row: int) -> Scalar:
    kind = _kind_of_type(type(value))
    if kind == "float":
        return float(value)
    if kind == "date":
        return value.isoformat() if hasattr(value, "isoformat") else str(value)
    raise Unfit(value, row, "a text, a number or a yes or no")


def decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1")


KINDS: tuple[tuple[tuple[type, ...], Kind], ...] = (
    ((bool, np.bool_), "boolean"),
    ((np.datetime64, np.timedelta64, datetime.date, datetime.time, datetime.timedelta), "date"),
    ((int, np.integer), "integer"),
    ((float, np.floating, decimal.Decimal), "float"),
    ((str, bytes), "string"),
)


def _kind_of_type(kind: type) -> Kind:
    for types, name in KINDS:
        if issubclass(kind, types):
            return name
    return "other"


def kind_of(values: Sequence[Any]) -> Kind:
    """The narrowest kind that holds all the values: integers among floats are floats, numbers among texts texts."""
    if isinstance(values, range):
        return "integer"
    types = set(map(type, values))
    if len(types) > 1 or types - {str, int, bool}:
        types = {type(value) for value in values if not missing(value)}
    kinds = {_kind_of_type(each) for each in types}
    if len(kinds) <= 1:
        return kinds.pop() if kinds else "empty"
    if kinds <= {"boolean", "integer", "float"}:
        return "float" if "float" in kinds else "integer"
    return "string" if kinds <= {"boolean", "integer", "float", "string"} else "other"
