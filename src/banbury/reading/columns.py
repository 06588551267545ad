"""One column of a table, whatever stores it: its kind, its numbers, its distinct values as codes.

A column does not know its name, so it raises ``Unfit`` or ``Uneven`` with the row, and the batch adds the column and the file.
"""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Array, Int
from banbury.threads import n_threads

Kind = Literal["boolean", "integer", "float", "string", "date", "list", "empty", "other"]
ValueKind = Literal["boolean", "integer", "float", "string"]
Scalar = bool | int | float | str
Texts = list[str | None] | _core.ArrowTexts  # as the kernels take them

KINDS_OF_DTYPES: dict[str, Kind] = {"b": "boolean", "i": "integer", "u": "integer", "f": "float"}
NUMERIC = ("boolean", "integer", "float", "empty")
SMALL_SPAN = 65536  # integers from a narrower range are their own codes
PARALLEL_ROWS = 65536  # from so many rows on, several threads are worth their start
MISSING_INTEGER = np.iinfo(np.int64).min  # stands for a missing number among integers
EXACT = 2**53  # up to here doubles hold every whole number
FIRST_LISTS = 1000  # lists that decide how many numbers each list of a column has
NUMBERS_SHOWN = 2  # numbers of a long list that are printed


class Unfit(Exception):
    """A cell of the wrong kind. Arguments: the value, its row, and what is needed, such as "a number"."""


class Uneven(Exception):
    """A list of the wrong length. Arguments: its row, its length, and the length of the column's other lists."""


class NumberList(list[float]):
    """A cell that is a list of numbers; a long list is printed shortened."""

    def __str__(self) -> str:
        """The numbers with four digits, such as "[1, 2, … 300 numbers]" for a long list."""
        is_short = len(self) <= NUMBERS_SHOWN + 2
        shown_numbers = ", ".join(f"{number:.4g}" for number in (self if is_short else self[:NUMBERS_SHOWN]))
        return f"[{shown_numbers}]" if is_short else f"[{shown_numbers}, … {len(self):,} numbers]"

    __repr__ = __str__


class Column:
    """One column of a table. ``storage`` holds its cells: a NumPy array, a Python list or an Arrow array, depending on
    the subclass.

    ``categorical``: the source declares the column as categorical. ``text``: the source declares the column as texts
    rather than single words. ``width``: how many numbers each list has. ``are_integers``: the column holds floats that
    are all integers.
    """

    storage: Any
    categorical: bool = False
    text: bool = False
    width: int = 1
    are_integers: bool = False

    def __len__(self) -> int:
        return len(self.storage)

    def kind(self) -> Kind:
        """The kind of the column's values; "empty" if all are missing."""
        raise NotImplementedError

    def to_codes(self, value_kind: ValueKind | None, threads: int) -> Codes:
        """The column as integer codes, one for each distinct value. Values are converted to ``value_kind``, or keep
        their own kind if it is None; raises Unfit for one that cannot be converted. ``threads``: how many may be used.
        """
        raise NotImplementedError

    def slice(self, start: int, stop: int) -> Column:
        """The rows from ``start`` up to ``stop`` as a column of the same kind."""
        return self._with(self.storage[start:stop])

    def take(self, rows: Int) -> Column:
        """The rows with these numbers (from 0), in this order, as a column of the same kind."""
        storage = self.storage  # the cells: a list or an array
        return self._with(
            [storage[row] for row in rows.tolist()] if type(storage) is list else storage.take(rows, axis=0)
        )

    def _with(self, storage: Any) -> Column:
        """A copy with other cells. Attributes that begin with an underscore are caches of the old cells, so they are
        dropped. ``storage``: the new cells, in the form of the old ones (a list or an array).
        """
        column = object.__new__(type(self))
        column.__dict__.update((name, value) for name, value in self.__dict__.items() if name[0] != "_")
        column.storage = storage
        return column

    def text_bytes(self) -> int | None:
        """How many bytes the texts take if they lie in one immutable buffer; otherwise None."""
        return None

    def cells(self) -> Iterable[Any]:
        """The values in order; a missing one is None or NaN."""
        return list(self.storage.tolist())

    def refuse(self, needed: str, kinds: Collection[str] = ()) -> None:
        """Raises Unfit for the first value that is neither missing nor of one of these kinds. ``needed``: what the
        message asks for, such as "a number".
        """
        for row, value in enumerate(self.cells()):
            if not is_missing(value) and kind_of([value]) not in kinds:
                raise Unfit(value, row, needed)

    def numbers(self) -> Array:
        """The cells as a numeric array, NaN where missing. A column without numbers raises Unfit for its first value."""
        self.refuse("a number", NUMERIC)
        return np.full(len(self), np.nan)

    def lists(self, width: int) -> Array:
        """The lists as a matrix, rows × ``width``; the row of a missing list is NaN. A column without lists raises
        Unfit.
        """
        self.refuse(f"a list of {width:,} numbers")
        return np.full((len(self), width), np.nan)

    def texts(self) -> Texts:
        """The cells as texts, None where missing; numbers are written out."""
        return [None if is_missing(value) else to_string(value) for value in self.cells()]

    def present(self) -> list[Scalar]:
        """The values that are not missing, in order."""
        return [value for value in self.cells() if not is_missing(value)]

    def head(self, n: int) -> list[Scalar]:
        """The first n values that are not missing. Searches slices of rows, each four times as long as the one
        before.
        """
        values: list[Scalar] = []
        start = 0
        slice_length = 2 * n  # in rows
        while start < len(self) and len(values) < n:
            values += self.slice(start, min(start + slice_length, len(self))).present()
            start += slice_length
            slice_length = 4 * slice_length
        return values[:n]


def threads_for(n_rows: int) -> int:
    """How many threads to use for a pass over ``n_rows`` rows: one for a small batch, which is done before threads have
    started.
    """
    return n_threads(None) if n_rows >= PARALLEL_ROWS else 1


@dataclass(eq=False)
class Numbers(Column):
    """A column of booleans, integers or floats, stored as a 1-D array, NaN where missing. ``are_integers``: the floats
    are integers with missing values among them.
    """

    storage: Array
    are_integers: bool = False

    def kind(self) -> Kind:
        """The kind of the array's type ("integer" for floats that are integers); "empty" if all its floats are NaN."""
        numbers = self.storage
        kind = "integer" if self.are_integers else KINDS_OF_DTYPES[numbers.dtype.kind]
        is_float = numbers.dtype.kind == "f"
        return "empty" if is_float and len(numbers) and numbers[0] != numbers[0] and np.isnan(numbers).all() else kind

    def numbers(self) -> Array:
        return ready(self.storage)

    def cells(self) -> Iterable[Any]:
        """The numbers as Python objects; None where floats that are integers are missing."""
        cells = self.storage.tolist()
        return [None if cell != cell else int(cell) for cell in cells] if self.are_integers else cells

    def to_codes(self, value_kind: ValueKind | None, threads: int) -> Codes:
        """The numbers as codes of their distinct values, converted to ``value_kind`` unless that is None. Integers from
        a small range are their own codes. ``threads``: how many may be used.
        """
        dtype_kind = self.storage.dtype.kind  # "b": booleans, "f": floats, otherwise integers
        if dtype_kind == "b":
            return convert_values(Codes(self.storage.view(np.uint8), 0, [False, True]), "boolean", value_kind)
        if dtype_kind == "f" and value_kind == "integer" and (codes := _whole_codes(self.storage)) is not None:
            return codes
        if self.are_integers:  # floats that are integers, NaN where missing
            integers = np.where(np.isnan(self.storage), MISSING_INTEGER, self.storage).astype(np.int64)
            return convert_values(integer_codes(integers, threads, value_kind), "integer", value_kind)
        if dtype_kind == "f":  # adding 0.0 turns -0.0 into 0.0, so that the two have the same bytes
            return convert_values(
                _number_values(ready(self.storage) + self.storage.dtype.type(0), threads), "float", value_kind
            )
        return convert_values(integer_codes(ready(self.storage), threads, value_kind), "integer", value_kind)


@dataclass(eq=False)
class Objects(Column):
    """A column stored as a list of Python objects: texts, or cells of mixed types. ``text``: the source declares them
    as texts; ``known_kind``: their kind, if the caller knows it.

    Dates, and values that cannot be counted, are stored as an array, which ``to_list`` turns into a list when the cells
    are first needed.
    """

    storage: Any
    text: bool = False
    known_kind: Kind | None = None
    to_list: Callable[[Any], list[Any]] | None = None

    @property
    def _cells(self) -> list[Any]:
        """The cells as a list, which replaces the stored array on first use."""
        if self.to_list is not None:
            self.storage, self.to_list = self.to_list(self.storage), None
        return self.storage  # type: ignore[no-any-return]

    @cached_property
    def _types(self) -> set[type]:
        """The Python types of the cells."""
        return set(map(type, self._cells))

    @cached_property
    def _kind(self) -> Kind:
        """The kind of the values, found out once."""
        return self.known_kind or kind_of(self._cells, self._types)

    def kind(self) -> Kind:
        return self._kind

    def cells(self) -> Iterable[Any]:
        return self._cells

    def take(self, rows: Int) -> Column:
        """The rows with these numbers, in this order."""
        cells = self._cells
        return self._with([cells[row] for row in rows.tolist()])

    def numbers(self) -> Array:
        """The cells as floats, NaN where missing. A column of other kinds raises Unfit for its first value."""
        if self._kind not in NUMERIC:
            return super().numbers()
        return np.array([None if is_missing(value) else value for value in self._cells], dtype=np.float64)

    def lists(self, width: int) -> Array:
        return Lists(stack_lists(self._cells, width)).lists(width)

    def to_codes(self, value_kind: ValueKind | None, threads: int) -> Codes:
        """The cells as codes of their distinct values, converted to ``value_kind`` unless that is None. Texts are
        encoded in Rust; other cells compare as in a Python dict, so 1, 1.0 and True are one value. ``threads``: not
        used here.
        """
        # The codes, and the row in which each first occurs; None unless all cells are texts or missing.
        codes_and_rows = _core.encode_objects(self._cells)
        if codes_and_rows is not None:
            codes, first_rows, _ = codes_and_rows
            return convert_values(
                Codes(codes, low=0, values=[str(self._cells[row]) for row in first_rows.tolist()]), "string", value_kind
            )
        code_by_value: dict[Scalar, int] = {}
        code_iterator = (  # of each cell in order, −1 if it is missing
            -1 if is_missing(value) else code_by_value.setdefault(to_scalar(value, row), len(code_by_value))
            for row, value in enumerate(self._cells)
        )
        codes = np.fromiter(code_iterator, np.int32, len(self._cells))
        return convert_values(Codes(codes, low=0, values=list(code_by_value)), kind=None, value_kind=value_kind)

    def texts(self) -> Texts:
        """The cells as texts. A list that already holds only texts, None and NaN is returned itself."""
        cell_types = self._types
        # Floats among texts are allowed only if all are NaN, which is missing.
        if cell_types <= {str, float, type(None)} and (
            float not in cell_types or all(type(value) is not float or value != value for value in self._cells)
        ):
            return self._cells
        return [
            value if type(value) is str else None if is_missing(value) else to_string(to_scalar(value, row))
            for row, value in enumerate(self._cells)
        ]

    def head(self, n: int) -> list[Scalar]:
        """The first n values that are not missing, as texts if the column mixes kinds."""
        present_cells = ((row, value) for row, value in enumerate(self._cells) if not is_missing(value))
        if self._kind == "other":
            return [str(value) for _, value in islice(present_cells, n)]
        values = [to_scalar(value, row) for row, value in islice(present_cells, n)]
        return [to_string(value) for value in values] if self._kind == "string" else values


@dataclass(eq=False)
class Codes(Column):
    """A column as integer codes, one per row: ``codes[i] == low + k`` means ``values[k]``; any other code means
    missing. ``categorical``: the source declares the column so.

    ``values`` may contain entries that no row has. ``value_kind`` is set if all values are distinct and of that kind.
    """

    codes: Array
    low: int
    values: Sequence[Scalar]
    categorical: bool = False
    value_kind: ValueKind | None = None

    def __repr__(self) -> str:
        return f"Codes(codes={self.codes!r}, low={self.low}, values={self.values!r})"

    @property
    def storage(self) -> Array:
        """The codes: what ``slice`` and ``take`` change."""
        return self.codes

    @storage.setter
    def storage(self, codes: Array) -> None:
        self.codes = codes

    def kind(self) -> Kind:
        """The kind of the values; "empty" if every row is missing."""
        if len(self) and not ((self.codes >= self.low) & (self.codes < self.low + len(self.values))).any():
            return "empty"
        return kind_of(self.values)

    def numbers(self) -> Array:
        """The value of each row as a float, NaN where missing. Values that are not numbers raise Unfit."""
        if self.kind() not in NUMERIC:
            return super().numbers()
        return np.array([*self.values, np.nan], dtype=np.float64)[_value_indices(self)]

    def to_codes(self, value_kind: ValueKind | None, threads: int) -> Codes:
        return convert_values(self, self.value_kind, value_kind)

    def with_values(self, values: Sequence[Scalar]) -> Codes:
        """The same codes with other values: ``values[k]`` is that of code ``low + k``."""
        return Codes(self.codes, self.low, values)

    def as_categorical(self) -> Codes:
        """The same column, declared as categorical."""
        return Codes(self.codes, self.low, self.values, categorical=True)

    def cells(self) -> Iterable[Any]:
        return self._look_up([*self.values, None])

    def texts(self) -> Texts:
        return self._look_up([*map(to_string, self.values), None])

    def _look_up(self, values: list[Any]) -> list[Any]:
        """The value of each row. ``values``: one for each of ``self.values``, and last the one for missing rows."""
        return [values[index] for index in _value_indices(self).tolist()]


def empty_column(n_rows: int) -> Column:
    """A column without a single value."""
    return Codes(np.full(n_rows, -1, dtype=np.int32), 0, [])


class Lists(Column):
    """A column of lists of numbers, stored as a matrix with a row for each list; a list with a missing number counts as
    missing.

    If a few lists have another length the column is stored as a Python list, and asking for one of those raises Uneven.
    """

    def __init__(self, lists: Array | list[Any], width: int | None = None) -> None:
        """``lists``: a matrix with a row for each list, or a list of lists if some have another length; ``width``: the
        usual length in that case.
        """
        self.storage = lists
        self.width = int(lists.shape[1]) if isinstance(lists, np.ndarray) else width or 0

    @cached_property
    def _matrix(self) -> Array:
        """The stored matrix (rows × ``width``), or a copy in which each row that lacks some numbers is all NaN."""
        numbers = ready(self.storage)
        if numbers.dtype.kind != "f" or not (rows_with_gaps := np.isnan(numbers).any(axis=1)).any():
            return numbers
        numbers = numbers.copy()
        numbers[rows_with_gaps] = np.nan
        return numbers

    def kind(self) -> Kind:
        """ "list", or "empty" if every list is missing."""
        lists = self.storage
        if len(lists) == 0 or isinstance(lists, list) or lists.dtype.kind != "f" or not np.isnan(lists[0]).any():
            return "list"
        return "empty" if np.isnan(self._matrix[:, 0]).all() else "list"

    def lists(self, width: int) -> Array:
        """The lists as a matrix, rows × ``width``; the row of a missing list is NaN. Raises Uneven for a list of
        another length.
        """
        if isinstance(self.storage, list):
            return Lists(stack_lists(self.storage, width)).lists(width)
        if width == self.width:
            return self._matrix
        for row, numbers in enumerate(self.cells()):
            if numbers is not None:
                raise Uneven(row, self.width, width)  # ``self.width``: how many numbers this list has
        return np.full((len(self), width), np.nan)

    def cells(self) -> Iterable[Any]:
        """Yields each row as a NumberList, or None if the list or one of its numbers is missing."""
        lists = self.storage if isinstance(self.storage, list) else self.storage.tolist()
        return (
            None if is_missing(numbers) or any(number != number for number in numbers) else NumberList(numbers)
            for numbers in lists
        )

    def to_codes(self, value_kind: ValueKind | None, threads: int) -> Codes:
        """Codes of missing values only, since lists are not categories: raises Unfit unless all are missing.
        ``value_kind`` and ``threads`` are not used.
        """
        self.refuse("a text, a number or a yes or no")
        return Codes(np.full(len(self), -1, dtype=np.int32), 0, [])

    def texts(self) -> Texts:
        return self.to_codes(value_kind=None, threads=1).texts()


def usual_width(lengths: Iterable[int]) -> int | None:
    """The length that most of the first lists have; None if no length has a majority. Empty lists are not counted."""
    first_lengths = [length for length in islice(lengths, FIRST_LISTS) if length]
    [(width, frequency)] = Counter(first_lengths).most_common(1) or [(0, 0)]  # the commonest length, and how common
    return width if 2 * frequency > len(first_lengths) else None


def stack_lists(values: Sequence[Any], width: int) -> Array:
    """Stacks lists of ``width`` numbers (``values``, one per row, None or NaN if missing) into a matrix, rows ×
    ``width``, NaN for a missing list. Raises Uneven for another length, Unfit for other content.
    """
    for row, value in enumerate(values):
        if not is_missing(value) and not _is_list(value):
            raise Unfit(value, row, f"a list of {width:,} numbers")
        if not is_missing(value) and len(value) != width:
            raise Uneven(row, len(value), width)
    try:
        matrix = np.array([(None,) * width if is_missing(value) else value for value in values])
        if matrix.dtype.kind == "O" and all(map(_holds_numbers, values)):
            matrix = matrix.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        matrix = np.empty(0, dtype=object)
    if matrix.dtype.kind not in "biuf":
        row = next((row for row, value in enumerate(values) if not _holds_numbers(value)), 0)
        raise Unfit(values[row], row, f"a list of {width:,} numbers")
    return matrix.reshape(len(values), width)


def _is_list(value: Any) -> bool:
    """Whether a cell is a list, a tuple or a 1-D array."""
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)


def _holds_numbers(value: Any) -> bool:
    """Whether a cell is missing or a list of numbers."""
    return is_missing(value) or (_is_list(value) and kind_of(value) in NUMERIC)


def from_array(array: Array) -> Column:
    """The column of a 1-D NumPy array."""
    dtype_kind = array.dtype.kind  # NumPy's letter for the kind of type, such as "f" for floats
    if dtype_kind in "biuf":
        return Numbers(array)
    if dtype_kind in "US":
        codes, first_rows = encode_bytes(array, threads_for(len(array)))
        # The distinct texts, one for each code.
        words = [word if dtype_kind == "U" else decode_bytes(word) for word in array[first_rows].tolist()]
        return regroup(Codes(codes, low=0, values=[]), words)
    if dtype_kind in "Mm":
        return (
            empty_column(len(array)) if np.isnat(array).all() else Objects(array, known_kind="date", to_list=iso_texts)
        )
    if dtype_kind == "c":
        raise ValueError("Complex data not supported. Pass the real and the imaginary part as two columns.")
    return from_list(array.tolist())


def iso_texts(dates: Array) -> list[str | None]:
    """A NumPy array of dates or durations as ISO 8601 texts, None where missing."""
    return [None if np.isnat(date) else str(date) for date in dates]


def from_list(values: list[Any]) -> Column:
    """The column of a list of cells, ``values``: stored as an array if all cells are numbers of one type or lists of
    numbers, otherwise as the list itself.
    """
    if values and type(values[0]) is str:
        return Objects(values)
    cell_types = set(map(type, values))
    # Integers among floats become floats only if doubles hold them exactly.
    if cell_types == {int} or cell_types == {bool} or cell_types == {float} or cell_types == {int, float}:
        array = np.array(values)
        is_exact = cell_types != {int, float} or all(abs(value) <= EXACT for value in values if type(value) is int)
        if array.dtype.kind in ("bi" if cell_types == {int} else "bif") and is_exact:
            return Numbers(array)
    missing_types = (type(None), float, np.floating)
    present_values = (
        value for value in values if not isinstance(value, missing_types) and type(value).__name__ != "NAType"
    )
    first_present = next(present_values, None)
    is_of_lists = _is_list(first_present) and _holds_numbers(first_present)
    width = usual_width(map(len, filter(_is_list, values))) if is_of_lists else None  # how many numbers most lists have
    if width is None:
        return Objects(values)
    try:
        return Lists(stack_lists(values, width))
    except (Unfit, Uneven):
        return Lists(values, width)


def ready(array: Array) -> Array:
    """The array in a type that the Rust kernels read; the array itself, not copied, if it has one already."""
    dtype = array.dtype
    if dtype.char in "dfbBhHiIlLqQ" and dtype.isnative and array.flags.aligned:
        return array
    if dtype.kind == "b":
        return array.view(np.uint8)
    return array.astype(np.float64 if dtype.kind == "f" and dtype.itemsize not in (4, 8) else dtype.newbyteorder("="))


def small_span(n_rows: int) -> int:
    """The width (highest minus lowest) below which integers in ``n_rows`` rows need no numbering: they are their own
    codes.
    """
    return max(SMALL_SPAN, n_rows)


def integer_codes(array: Array, threads: int, value_kind: ValueKind | None = None) -> Codes:
    """An array of integers as codes. From a small range they are their own codes, without a copy; from a large one, or
    if they will be converted to another kind (``value_kind``; None: to none), they are numbered in order of first
    occurrence. ``threads``: how many may be used.
    """
    if len(array) == 0:
        return Codes(array, low=0, values=[])
    if value_kind in (None, "integer") and (array.dtype != np.uint64 or int(array.max()) < 2**63):
        lows, highs = _core.span([array], threads)  # of each array, here of one
        low = int(lows[0])
        high = int(highs[0])
        if high - low < small_span(len(array)):
            return Codes(array, low, range(low, high + 1))
    return _number_values(array, threads)


def _whole_codes(array: Array) -> Codes | None:
    """An array of floats as codes if they are integers from a small range, NaN as missing; otherwise None. The integers
    are their own codes.
    """
    if not len(array):
        return None
    array = np.ascontiguousarray(array)
    low = float(np.fmin.reduce(array))
    high = float(np.fmax.reduce(array))
    if not (abs(low) < 2**31 and abs(high) < 2**31 and high - low < small_span(len(array))):
        return None
    values = range(int(low), int(high) + 1)
    with np.errstate(invalid="ignore"):  # NaN, which is replaced below
        integers = array.astype(np.int64)
    if (is_integer := integers == array).all():
        return Codes(integers, int(low), values)
    is_missing = np.isnan(array)
    integers[is_missing] = MISSING_INTEGER
    return Codes(integers, int(low), values) if (is_integer | is_missing).all() else None


def _number_values(array: Array, threads: int) -> Codes:
    """An array of numbers as codes, which number the distinct values in order of first occurrence; NaN and
    ``MISSING_INTEGER`` are missing. ``threads``: how many may be used.
    """
    codes, first_rows = encode_bytes(array, threads)
    distinct_numbers = array[first_rows]
    is_missing = (
        np.isnan(distinct_numbers) if distinct_numbers.dtype.kind == "f" else distinct_numbers == MISSING_INTEGER
    )
    if not is_missing.any():
        return Codes(codes, low=0, values=distinct_numbers.tolist())
    numbers_or_none = distinct_numbers.astype(object)
    numbers_or_none[is_missing] = None
    return regroup(Codes(codes, low=0, values=[]), numbers_or_none.tolist())


def encode_bytes(array: Array, threads: int) -> tuple[NDArray[np.int32], Int]:
    """Numbers the distinct cells of a 1-D array by their bytes, in order of first occurrence. ``threads``: how many may
    be used.

    Returns the code of each row, and for each code the row at which it first occurs.
    """
    n_rows = len(array)
    cell_bytes = array.dtype.itemsize
    if n_rows == 0 or cell_bytes == 0:
        return np.zeros(n_rows, dtype=np.int32), np.zeros(min(n_rows, 1), dtype=np.int64)
    records = np.ascontiguousarray(array).view(np.uint8).reshape(n_rows, cell_bytes)  # the bytes of each cell
    codes, first_rows, _ = _core.encode_records(records, threads)
    return codes, first_rows


def convert_values(codes: Codes, kind: ValueKind | None, value_kind: ValueKind | None) -> Codes:
    """A column of codes with its values converted from ``kind`` (None: mixed) to ``value_kind`` (None: unchanged).
    Takes time for each distinct value, not for each row.

    Raises Unfit for a value that some row has and that cannot be converted.
    """
    if value_kind is None or value_kind == kind:
        return codes
    convert, needed = CONVERSIONS[value_kind]  # a function of a value, and what it needs, in words
    new_values: list[Scalar | None] = []
    for position, value in enumerate(codes.values):
        try:
            new_values.append(convert(value))
        except (ValueError, KeyError, OverflowError):
            rows = np.flatnonzero(codes.codes == codes.low + position)  # those that have the value
            if len(rows):
                raise Unfit(value, int(rows[0]), needed) from None
            new_values.append(None)
    return regroup(codes, new_values)


BOOLEANS: dict[Scalar, bool] = {"true": True, "false": False, 0: False, 1: True}


def to_integer(value: Scalar) -> int:
    """The value as an integer. Raises ValueError if it is not a whole number."""
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return to_integer(float(value))
    if value != int(value):
        raise ValueError
    return int(value)


def to_string(value: Scalar) -> str:
    """The value as text; an integral float is written as an integer, since pandas stores integers with gaps as floats."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


CONVERSIONS: dict[ValueKind, tuple[Callable[[Any], Scalar], str]] = {
    "boolean": (
        lambda value: BOOLEANS[value.lower() if isinstance(value, str) else value],
        "a boolean (True, False, 0 or 1)",
    ),
    "integer": (to_integer, "a whole number"),
    "float": (float, "a number"),
    "string": (to_string, "a text"),
}


def regroup(codes: Codes, values: Sequence[Scalar | None], categorical: bool = False) -> Codes:
    """A copy of the column in which ``values[k]`` replaces value k, that of code ``codes.low + k``. Rows whose new
    value is None or NaN become missing; codes with equal new values are merged. ``categorical``: whether the new column
    is declared so.
    """
    code_by_value: dict[Scalar, int] = {}
    new_codes = [  # one for each of ``values``
        -1 if value is None or value != value else code_by_value.setdefault(value, len(code_by_value))
        for value in values
    ]
    if len(code_by_value) == len(values):
        return Codes(codes.codes, codes.low, list(code_by_value), categorical)
    lookup = np.array([*new_codes, -1], dtype=np.int32)  # at the end −1 for rows that are missing already
    indices_as_values = Codes(codes.codes, codes.low, range(len(values)))
    return Codes(lookup[_value_indices(indices_as_values)], 0, list(code_by_value), categorical)


def _value_indices(codes: Codes) -> Int:
    """For each row the index of its value in ``codes.values``; one past the last where the row is missing."""
    indices = codes.codes.astype(np.int64) - codes.low
    indices[(indices < 0) | (indices >= len(codes.values))] = len(codes.values)
    return indices


def is_missing(value: Any) -> bool:
    """Whether the value of a cell is missing: None, NaN, NaT or pandas' NA."""
    if type(value) is str:
        return False
    if value is None:
        return True
    if isinstance(value, (float, np.floating, np.datetime64, np.timedelta64, decimal.Decimal)):
        return bool(value != value)
    return type(value).__name__ in ("NAType", "NaTType")


def to_scalar(value: Any, row: int) -> Scalar:
    """The value of a cell as a bool, int, float or str; dates as ISO texts. Raises Unfit for any other type. ``row``:
    the number of its row, for the error.
    """
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
    """The bytes as UTF-8 text, or as Latin-1 if they are not valid UTF-8."""
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


def _kind_of_type(value_type: type) -> Kind:
    """The kind of values of a Python or NumPy type; "other" if they cannot be counted."""
    return next((kind for types, kind in KINDS if issubclass(value_type, types)), "other")


def kind_of(values: Sequence[Any], value_types: set[type] | None = None) -> Kind:
    """The narrowest kind that holds all the values: integers among floats are floats, numbers among texts are texts.

    ``value_types``: the types of the values, if the caller knows them.
    """
    if isinstance(values, range):
        return "integer"
    value_types = set(map(type, values)) if value_types is None else value_types
    if not all(issubclass(value_type, NEVER_MISSING) for value_type in value_types):
        value_types = {type(value) for value in values if not is_missing(value)}
    kinds = {_kind_of_type(value_type) for value_type in value_types}
    if len(kinds) <= 1:
        return kinds.pop() if kinds else "empty"
    if kinds <= {"boolean", "integer", "float"}:
        return "float" if "float" in kinds else "integer"
    return "string" if kinds <= {"boolean", "integer", "float", "string"} else "other"
