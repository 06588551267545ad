"""One column, whatever holds it: its kind, its numbers, its distinct values as codes.

A column does not know its name: what does not fit is raised as ``Unfit``, and the batch says where that was.
"""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.threads import n_threads

Kind = Literal["boolean", "integer", "float", "string", "date", "list", "empty", "other"]
Wanted = Literal["boolean", "integer", "float", "string"]
Scalar = bool | int | float | str
Texts = list[str | None] | _core.ArrowTexts  # as the kernels take them

KINDS_OF_DTYPES: dict[str, Kind] = {"b": "boolean", "i": "integer", "u": "integer", "f": "float"}
NUMERIC = ("boolean", "integer", "float", "empty")
SMALL_SPAN = 65536
PARALLEL_ROWS = 65536
LOWEST = np.iinfo(np.int64).min
EXACT = 2**53  # up to here doubles hold every whole number
FIRST_LISTS = 1000  # that say how long those of a column are
SHOWN = 2  # numbers of a longer list, for people


class Unfit(Exception):
    """A value, at a row of the column, that is not what was asked for: value, row, what is needed."""


class Uneven(Exception):
    """A list that has not as many numbers as lists of the column have: its row, its length, theirs."""


class NumberList(list[float]):
    """A cell that is a list of numbers; a long one is shown short."""

    def __str__(self) -> str:
        is_short = len(self) <= SHOWN + 2
        first = ", ".join(f"{number:.4g}" for number in (self if is_short else self[:SHOWN]))
        return f"[{first}]" if is_short else f"[{first}, … {len(self):,} numbers]"

    __repr__ = __str__


class Column:
    """One column, whose cells lie in ``held``: what every kind of them can do, as far as it can be said of all.

    ``categorical``: its maker declared it a choice among values. ``text``: it was given as texts, not as words.
    """

    held: Any
    categorical: bool = False
    text: bool = False
    width: int = 1  # numbers of a list
    are_integers: bool = False  # floats that are integers

    def __len__(self) -> int:
        return len(self.held)

    def kind(self) -> Kind:
        raise NotImplementedError

    def to_codes(self, value_kind: Wanted | None, threads: int) -> Codes:
        """The cells as codes of their distinct values, which are of the ``wanted`` kind or else their own."""
        raise NotImplementedError

    def slice(self, start: int, stop: int) -> Column:
        return self._with(self.held[start:stop])

    def take(self, rows: NDArray[np.int64]) -> Column:
        held = self.held
        return self._with([held[row] for row in rows.tolist()] if type(held) is list else held.take(rows, axis=0))

    def _with(self, held: Any) -> Column:
        """The same kind of column with other cells; what begins with an underscore was worked out from these."""
        column = object.__new__(type(self))
        column.__dict__.update((name, value) for name, value in self.__dict__.items() if name[0] != "_")
        column.held = held
        return column

    def text_bytes(self) -> int | None:
        """How many bytes its texts take, where they lie side by side and nobody writes over them."""
        return None

    def cells(self) -> Iterable[Any]:
        """The values one by one, None or NaN where one is missing."""
        return list(self.held.tolist())

    def refuse(self, needed: str, kinds: Collection[str] = ()) -> None:
        """Raises for the first value that is not missing, nor of one of these kinds."""
        for row, value in enumerate(self.cells()):
            if not missing(value) and kind_of([value]) not in kinds:
                raise Unfit(value, row, needed)

    def numbers(self) -> NDArray[Any]:
        """The numbers, missing ones NaN. Here there are none: the first value that is no number is refused."""
        self.refuse("a number", NUMERIC)
        return np.full(len(self), np.nan)

    def lists(self, width: int) -> NDArray[Any]:
        """The lists of so many numbers, (rows, numbers); a row whose list is missing is NaN. Here there are none."""
        self.refuse(f"a list of {width:,} numbers")
        return np.full((len(self), width), np.nan)

    def texts(self) -> Texts:
        return [None if missing(value) else to_string(value) for value in self.cells()]

    def present(self) -> list[Scalar]:
        """The values that are not missing."""
        return [value for value in self.cells() if not missing(value)]

    def head(self, n: int) -> list[Scalar]:
        """The first n values that are not missing, from ever longer stretches of rows."""
        values: list[Scalar] = []
        start = 0
        step = 2 * n
        while start < len(self) and len(values) < n:
            values += self.slice(start, min(start + step, len(self))).present()
            start += step
            step = 4 * step
        return values[:n]


def threads_for(n_rows: int) -> int:
    """Threads for a pass over so many rows; starting them does not pay for a small batch."""
    return n_threads(None) if n_rows >= PARALLEL_ROWS else 1


class Numbers(Column):
    """Booleans, integers or floats, kept as they are. ``are_integers``: floats that are integers, with gaps."""

    def __init__(self, held: NDArray[Any], are_integers: bool = False) -> None:
        self.held = held
        self.are_integers = are_integers

    def kind(self) -> Kind:
        array = self.held
        kind = "integer" if self.are_integers else KINDS_OF_DTYPES[array.dtype.kind]
        is_float = array.dtype.kind == "f"
        return "empty" if is_float and len(array) and array[0] != array[0] and np.isnan(array).all() else kind

    def numbers(self) -> NDArray[Any]:
        return ready(self.held)

    def cells(self) -> Iterable[Any]:
        cells = self.held.tolist()
        return [None if cell != cell else int(cell) for cell in cells] if self.are_integers else cells

    def present(self) -> list[Scalar]:
        present = self.held[self.held == self.held]
        return list((present.astype(np.int64) if self.are_integers else present).tolist())

    def to_codes(self, value_kind: Wanted | None, threads: int) -> Codes:
        kind = self.held.dtype.kind
        if kind == "b":
            return convert_values(Codes(self.held.view(np.uint8), 0, [False, True]), "boolean", value_kind)
        if kind == "f" and value_kind == "integer" and (codes := _whole_codes(self.held)) is not None:
            return codes
        if self.are_integers:
            integers = np.where(np.isnan(self.held), LOWEST, self.held).astype(np.int64)
            return convert_values(integer_codes(integers, threads, value_kind), "integer", value_kind)
        if kind == "f":  # adding 0.0 turns -0.0 into 0.0, so that the two have the same bytes
            return convert_values(
                _number_values(ready(self.held) + self.held.dtype.type(0), threads), "float", value_kind
            )
        return convert_values(integer_codes(ready(self.held), threads, value_kind), "integer", value_kind)


class Objects(Column):
    """A list of Python objects: texts, and what a table holds when its cells are not of one type.

    Dates, and what cannot be counted, are an array ``of_kind``, of which ``write`` makes a list when somebody asks for it.
    """

    def __init__(
        self,
        held: Any,
        text: bool = False,
        of_kind: Kind | None = None,
        write: Callable[[Any], list[Any]] | None = None,
    ) -> None:
        self.held = held
        self.text = text
        self.of_kind = of_kind
        self.write = write

    @property
    def _cells(self) -> list[Any]:
        if self.write is not None:
            self.held, self.write = self.write(self.held), None
        return self.held  # type: ignore[no-any-return]

    @cached_property
    def _types(self) -> set[type]:
        return set(map(type, self._cells))

    @cached_property
    def _kind(self) -> Kind:
        return self.of_kind or kind_of(self._cells, self._types)

    def kind(self) -> Kind:
        return self._kind

    def cells(self) -> Iterable[Any]:
        return self._cells

    def take(self, rows: NDArray[np.int64]) -> Column:
        cells = self._cells
        return self._with([cells[row] for row in rows.tolist()])

    def numbers(self) -> NDArray[Any]:
        if self._kind not in NUMERIC:
            return super().numbers()
        return np.array([None if missing(value) else value for value in self._cells], dtype=np.float64)

    def lists(self, width: int) -> NDArray[Any]:
        return Lists(stack_lists(self._cells, width)).lists(width)

    def to_codes(self, value_kind: Wanted | None, threads: int) -> Codes:
        encoded = _core.encode_objects(self._cells)
        if encoded is not None:
            codes, first, _ = encoded
            return convert_values(
                Codes(codes, 0, [str(self._cells[row]) for row in first.tolist()]), "string", value_kind
            )
        numbering: dict[Scalar, int] = {}  # as a Python dict does: 1, 1.0 and True are one value
        places = (
            -1 if missing(value) else numbering.setdefault(natural(value, row), len(numbering))
            for row, value in enumerate(self._cells)
        )
        codes = np.fromiter(places, np.int32, len(self._cells))
        return convert_values(Codes(codes, 0, list(numbering)), None, value_kind)

    def texts(self) -> Texts:
        """The list itself where it holds texts, None and NaN only."""
        types = self._types
        if types <= {str, float, type(None)} and (
            float not in types or all(type(value) is not float or value != value for value in self._cells)
        ):
            return self._cells
        return [
            value if type(value) is str else None if missing(value) else to_string(natural(value, row))
            for row, value in enumerate(self._cells)
        ]

    def head(self, n: int) -> list[Scalar]:
        cells = ((row, value) for row, value in enumerate(self._cells) if not missing(value))
        if self._kind == "other":
            return [str(value) for _, value in islice(cells, n)]
        values = [natural(value, row) for row, value in islice(cells, n)]
        return [to_string(value) for value in values] if self._kind == "string" else values


class Codes(Column):
    """A column as whole numbers: ``codes[i] == low + k`` means ``values[k]``; any other code means missing.

    ``values`` may hold entries that no row has. ``value_kind``: the kind of all of them, where each is there once.
    """

    def __init__(
        self,
        codes: NDArray[Any],
        low: int,
        values: Sequence[Scalar],
        categorical: bool = False,
        value_kind: Wanted | None = None,
    ) -> None:
        self.codes = codes
        self.low = low
        self.values = values
        self.categorical = categorical
        self.value_kind = value_kind

    def __repr__(self) -> str:
        return f"Codes(codes={self.codes!r}, low={self.low}, values={self.values!r})"

    @property
    def held(self) -> NDArray[Any]:
        return self.codes

    @held.setter
    def held(self, codes: NDArray[Any]) -> None:
        self.codes = codes

    def kind(self) -> Kind:
        if len(self) and not ((self.codes >= self.low) & (self.codes < self.low + len(self.values))).any():
            return "empty"
        return kind_of(self.values)

    def numbers(self) -> NDArray[Any]:
        if self.kind() not in NUMERIC:
            return super().numbers()
        return np.array([*self.values, np.nan], dtype=np.float64)[_places(self)]

    def to_codes(self, value_kind: Wanted | None, threads: int) -> Codes:
        return convert_values(self, self.value_kind, value_kind)

    def with_values(self, values: Sequence[Scalar]) -> Codes:
        """The same codes, which mean other values."""
        return Codes(self.codes, self.low, values)

    def as_categorical(self) -> Codes:
        """The same column, declared a choice among its values."""
        return Codes(self.codes, self.low, self.values, categorical=True)

    def cells(self) -> Iterable[Any]:
        return self._look_up([*self.values, None])

    def texts(self) -> Texts:
        return self._look_up([*map(to_string, self.values), None])

    def _look_up(self, values: list[Any]) -> list[Any]:
        return [values[k] for k in _places(self).tolist()]


def empty_column(n_rows: int) -> Column:
    """A column without a single value."""
    return Codes(np.full(n_rows, -1, dtype=np.int32), 0, [])


class Lists(Column):
    """Lists of numbers, as rows of a matrix; a list that lacks a number is missing.

    Where only most of them have so many numbers they are a list, and raise where one of the others is asked for.
    """

    def __init__(self, held: NDArray[Any] | list[Any], width: int | None = None) -> None:
        self.held = held
        self.width = int(held.shape[1]) if isinstance(held, np.ndarray) else width or 0

    @cached_property
    def _matrix(self) -> NDArray[Any]:
        """The matrix itself, unless a list lacks some of its numbers: then it has none of them."""
        numbers = ready(self.held)
        if numbers.dtype.kind != "f" or not (gaps := np.isnan(numbers).any(axis=1)).any():
            return numbers
        numbers = numbers.copy()
        numbers[gaps] = np.nan
        return numbers

    def kind(self) -> Kind:
        held = self.held
        if len(held) == 0 or isinstance(held, list) or held.dtype.kind != "f" or not np.isnan(held[0]).any():
            return "list"
        return "empty" if np.isnan(self._matrix[:, 0]).all() else "list"

    def lists(self, width: int) -> NDArray[Any]:
        if isinstance(self.held, list):
            return Lists(stack_lists(self.held, width)).lists(width)
        if width == self.width:
            return self._matrix
        for row, value in enumerate(self.cells()):
            if value is not None:
                raise Uneven(row, self.width, width)
        return np.full((len(self), width), np.nan)

    def cells(self) -> Iterable[Any]:
        rows = self.held if isinstance(self.held, list) else self.held.tolist()
        return (None if missing(row) or any(x != x for x in row) else NumberList(row) for row in rows)

    def to_codes(self, value_kind: Wanted | None, threads: int) -> Codes:
        self.refuse("a text, a number or a yes or no")
        return Codes(np.full(len(self), -1, dtype=np.int32), 0, [])

    def texts(self) -> Texts:
        return self.to_codes(None, 1).texts()


def usual_width(lengths: Iterable[int]) -> int | None:
    """How many numbers lists have, if more than half of the first have as many; None where they are of any length."""
    first = [length for length in islice(lengths, FIRST_LISTS) if length]
    [(width, times)] = Counter(first).most_common(1) or [(0, 0)]
    return width if 2 * times > len(first) else None


def stack_lists(values: Sequence[Any], width: int) -> NDArray[Any]:
    """Lists of so many numbers as a matrix; raises where one has more or fewer, or what is no number."""
    for row, value in enumerate(values):
        if not missing(value) and not _is_list(value):
            raise Unfit(value, row, f"a list of {width:,} numbers")
        if not missing(value) and len(value) != width:
            raise Uneven(row, len(value), width)
    try:
        matrix = np.array([(None,) * width if missing(value) else value for value in values])
        if matrix.dtype.kind == "O" and all(map(_holds_numbers, values)):
            matrix = matrix.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        matrix = np.empty(0, dtype=object)
    if matrix.dtype.kind not in "biuf":
        row = next((row for row, value in enumerate(values) if not _holds_numbers(value)), 0)
        raise Unfit(values[row], row, f"a list of {width:,} numbers")
    return matrix.reshape(len(values), width)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)


def _holds_numbers(value: Any) -> bool:
    return missing(value) or (_is_list(value) and kind_of(value) in NUMERIC)


def from_array(array: NDArray[Any]) -> Column:
    """The column of a 1-D NumPy array."""
    kind = array.dtype.kind
    if kind in "biuf":
        return Numbers(array)
    if kind in "US":
        codes, first = encode_bytes(array, threads_for(len(array)))
        words = [word if kind == "U" else decode_bytes(word) for word in array[first].tolist()]
        return regroup(Codes(codes, 0, []), words)
    if kind in "Mm":
        return empty_column(len(array)) if np.isnat(array).all() else Objects(array, of_kind="date", write=iso_texts)
    if kind == "c":
        raise ValueError("Complex data not supported. Pass the real and the imaginary part as two columns.")
    return from_list(array.tolist())


def iso_texts(dates: NDArray[Any]) -> list[str | None]:
    """Instants or durations as they are written."""
    return [None if np.isnat(date) else str(date) for date in dates]


def from_list(values: list[Any]) -> Column:
    """The column of a list: an array where all its cells are numbers of one type, or lists of numbers; else the list itself."""
    if values and type(values[0]) is str:
        return Objects(values)
    types = set(map(type, values))
    if types == {int} or types == {bool} or types == {float} or types == {int, float}:
        array = np.array(values)
        exact = types != {int, float} or all(abs(value) <= EXACT for value in values if type(value) is int)
        if array.dtype.kind in ("bi" if types == {int} else "bif") and exact:
            return Numbers(array)
    gaps = (type(None), float, np.floating)
    named = (value for value in values if not isinstance(value, gaps) and type(value).__name__ != "NAType")
    first = next(named, None)
    width = usual_width(map(len, filter(_is_list, values))) if _is_list(first) and _holds_numbers(first) else None
    if width is None:
        return Objects(values)
    try:
        return Lists(stack_lists(values, width))
    except (Unfit, Uneven):
        return Lists(values, width)


def ready(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in a type that the kernels read: the array itself wherever they can."""
    dtype = array.dtype
    if dtype.char in "dfbBhHiIlLqQ" and dtype.isnative and array.flags.aligned:
        return array
    if dtype.kind == "b":
        return array.view(np.uint8)
    return array.astype(np.float64 if dtype.kind == "f" and dtype.itemsize not in (4, 8) else dtype.newbyteorder("="))


def small_span(n_rows: int) -> int:
    """Integers from a range narrower than this are used as codes as they are."""
    return max(SMALL_SPAN, n_rows)


def integer_codes(array: NDArray[Any], threads: int, value_kind: Wanted | None = None) -> Codes:
    """Integers of a small range are their own codes, without a copy; others, or to be converted, are numbered as met."""
    if len(array) == 0:
        return Codes(array, 0, [])
    if value_kind in (None, "integer") and (array.dtype != np.uint64 or int(array.max()) < 2**63):
        lows, highs = _core.span([array], threads)
        low = int(lows[0])
        high = int(highs[0])
        if high - low < small_span(len(array)):
            return Codes(array, low, range(low, high + 1))
    return _number_values(array, threads)


def _whole_codes(array: NDArray[Any]) -> Codes | None:
    """Floats that are whole numbers of a small range are their own codes; None where they are not."""
    if not len(array):
        return None
    array = np.ascontiguousarray(array)
    low = float(np.fmin.reduce(array))
    high = float(np.fmax.reduce(array))
    if not (abs(low) < 2**31 and abs(high) < 2**31 and high - low < small_span(len(array))):
        return None
    values = range(int(low), int(high) + 1)
    with np.errstate(invalid="ignore"):  # gaps, which are seen to below
        codes = array.astype(np.int64)
    if (same := codes == array).all():
        return Codes(codes, int(low), values)
    gaps = np.isnan(array)
    codes[gaps] = LOWEST
    return Codes(codes, int(low), values) if (same | gaps).all() else None


def _number_values(array: NDArray[Any], threads: int) -> Codes:
    """Any numbers, numbered as they occur; NaN and the lowest integer are missing."""
    codes, first = encode_bytes(array, threads)
    numbers = array[first]
    gaps = np.isnan(numbers) if numbers.dtype.kind == "f" else numbers == LOWEST
    if not gaps.any():
        return Codes(codes, 0, numbers.tolist())
    values = numbers.astype(object)
    values[gaps] = None
    return regroup(Codes(codes, 0, []), values.tolist())


def encode_bytes(array: NDArray[Any], threads: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Numbers the distinct bytes of the array's cells; also the row at which each first occurs."""
    n_rows = len(array)
    width = array.dtype.itemsize
    if n_rows == 0 or width == 0:
        return np.zeros(n_rows, dtype=np.int32), np.zeros(min(n_rows, 1), dtype=np.int64)
    records = np.ascontiguousarray(array).view(np.uint8).reshape(n_rows, width)
    codes, first, _ = _core.encode_records(records, threads)
    return codes, first


def convert_values(codes: Codes, kind: Wanted | None, value_kind: Wanted | None) -> Codes:
    """The same rows with values of the wanted kind. Costs the number of distinct values, not of rows."""
    if value_kind is None or value_kind == kind:
        return codes
    convert, needed = CONVERSIONS[value_kind]
    values: list[Scalar | None] = []
    for k, value in enumerate(codes.values):
        try:
            values.append(convert(value))
        except (ValueError, KeyError, OverflowError):
            rows = np.flatnonzero(codes.codes == codes.low + k)
            if len(rows):
                raise Unfit(value, int(rows[0]), needed) from None
            values.append(None)
    return regroup(codes, values)


BOOLEANS: dict[Scalar, bool] = {"true": True, "false": False, 0: False, 1: True}


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


CONVERSIONS: dict[Wanted, tuple[Callable[[Any], Scalar], str]] = {
    "boolean": (
        lambda value: BOOLEANS[value.lower() if isinstance(value, str) else value],
        "a boolean (True, False, 0 or 1)",
    ),
    "integer": (to_integer, "a whole number"),
    "float": (float, "a number"),
    "string": (to_string, "a text"),
}


def regroup(codes: Codes, values: Sequence[Scalar | None], categorical: bool = False) -> Codes:
    """The same rows with ``values`` in place of their values; None and NaN become missing, equal values one."""
    numbering: dict[Scalar, int] = {}
    lookup = [
        -1 if value is None or value != value else numbering.setdefault(value, len(numbering)) for value in values
    ]
    if len(numbering) == len(values):
        return Codes(codes.codes, codes.low, list(numbering), categorical)
    table = np.array([*lookup, -1], dtype=np.int32)
    positions = Codes(codes.codes, codes.low, range(len(values)))
    return Codes(table[_places(positions)], 0, list(numbering), categorical)


def _places(codes: Codes) -> NDArray[np.int64]:
    """Which of the values each row has; one past the last where it is missing."""
    places = codes.codes.astype(np.int64) - codes.low
    places[(places < 0) | (places >= len(codes.values))] = len(codes.values)
    return places


def missing(value: Any) -> bool:
    """Whether a cell is None, NaN, NaT or pandas' NA."""
    if type(value) is str:
        return False
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
        return decode_bytes(value)
    if isinstance(value, (bool, int, float)):
        return value
    kind = _kind_of_type(type(value))
    if kind == "float":
        return float(value)
    if kind == "date":
        return value.isoformat() if hasattr(value, "isoformat") else str(value)
    raise Unfit(value, row, "a text, a number or a boolean")


def decode_bytes(text: bytes) -> str:
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
NEVER_MISSING = (str, bytes, int, np.integer, np.bool_)


def _kind_of_type(kind: type) -> Kind:
    return next((name for types, name in KINDS if issubclass(kind, types)), "other")


def kind_of(values: Sequence[Any], types: set[type] | None = None) -> Kind:
    """The narrowest kind that holds all the values: integers among floats are floats, numbers among texts texts.

    ``types``: those of the values, if they are known.
    """
    if isinstance(values, range):
        return "integer"
    types = set(map(type, values)) if types is None else types
    if not all(issubclass(value_type, NEVER_MISSING) for value_type in types):
        types = {type(value) for value in values if not missing(value)}
    kinds = {_kind_of_type(value_type) for value_type in types}
    if len(kinds) <= 1:
        return kinds.pop() if kinds else "empty"
    if kinds <= {"boolean", "integer", "float"}:
        return "float" if "float" in kinds else "integer"
    return "string" if kinds <= {"boolean", "integer", "float", "string"} else "other"
