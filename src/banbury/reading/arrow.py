"""Arrow arrays as columns. Numbers and dictionary codes are used where they lie; pyarrow is imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Array, Int
from banbury.reading.columns import (
    EXACT,
    Codes,
    Column,
    Kind,
    Lists,
    Numbers,
    Objects,
    Texts,
    ValueKind,
    convert_values,
    decode_bytes,
    empty_column,
    regroup,
    usual_width,
)

LONG_TEXT = 64  # bytes: texts that are so long on average are hardly categories
BLANKS = " \t\n\r\f\v"


@cache
def arrow(module: str = "") -> Any:
    """The package pyarrow, or one of its modules, such as arrow("compute"). It is imported on first use."""
    return importlib.import_module(f"pyarrow.{module}" if module else "pyarrow")


def from_arrow(
    array: Any, strip: bool = False, missing_values: frozenset[str] = frozenset(), categorical: bool = True
) -> Column:
    """The column of an Arrow array or chunked array, by the kind of its type.

    ``strip``: whether to strip blanks from texts, as in text files. ``missing_values``: texts that then mean a missing
    value. ``categorical``: whether to declare a dictionary array as categorical.
    """
    if hasattr(array, "combine_chunks"):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    array = _plain_layout(array)
    kind = kind_of_type(array.type)
    if kind == "empty" or (len(array) and array.null_count == len(array)):
        return empty_column(len(array))
    if kind == "list" and (lists := _lists(array)):
        return lists
    if kind in ("date", "list", "other"):
        to_list = _iso_texts if kind == "date" else texts
        return Objects(array, known_kind="date" if kind == "date" else "other", to_list=to_list)
    if arrow("types").is_dictionary(array.type):
        return _from_dictionary(array, categorical)
    if kind == "string":
        return Strings(array, strip, missing_values)
    if kind == "float":
        return Numbers(floats(array))
    return _from_nullable(array, kind) if array.null_count else Numbers(numbers_of_buffer(array))


def _from_nullable(array: Any, kind: Kind) -> Column:
    """The column of a boolean or integer array with nulls: floats if they hold every integer exactly, otherwise codes.
    ``kind``: "boolean" or "integer".
    """
    if kind == "boolean":
        # A missing value has the code 2.
        return Codes(fill_nulls(array, gap=2, dtype=np.uint8), low=0, values=[False, True], value_kind="boolean")
    numbers = fill_nulls(array, np.nan, np.float64)
    if np.fmax.reduce(np.abs(numbers)) <= EXACT:
        return Numbers(numbers, are_integers=True)
    return _from_dictionary(array.dictionary_encode(), categorical=False)


def _iso_texts(array: Any) -> list[str | None]:
    """The dates and times of an Arrow array as ISO 8601 texts, None where null; durations, which Arrow cannot write as
    text, as Python writes them.
    """
    dates = array.dictionary_decode() if hasattr(array, "dictionary") else array
    try:
        return list(dates.cast(arrow().string()).to_pylist())
    except arrow().ArrowNotImplementedError:
        return [None if value is None else str(value) for value in dates.to_pylist()]


def kind_of_type(data_type: Any) -> Kind:
    """The kind of an Arrow type (``data_type``); that of the values for dictionaries, "list" for lists of numbers."""
    types = arrow("types")  # a module of predicates of Arrow types
    if types.is_dictionary(data_type) or types.is_run_end_encoded(data_type):
        return kind_of_type(data_type.value_type)
    for kind, predicates in _KINDS.items():
        if any(getattr(types, predicate)(data_type) for predicate in predicates.split()):
            return kind
    is_list = any(getattr(types, predicate)(data_type) for predicate in _LISTS.split())
    return "list" if is_list and kind_of_type(data_type.value_type) in ("integer", "float") else "other"


def _plain_layout(array: Any) -> Any:
    """The array decoded to a plain type: without extension types, run-end encoding, or dictionaries of lists and other
    values that cannot be counted.
    """
    types = arrow("types")  # a module of predicates of Arrow types
    if hasattr(array, "storage"):  # of an extension type
        return _plain_layout(array.storage)
    if types.is_run_end_encoded(array.type):
        return _plain_layout(arrow("compute").run_end_decode(array))
    if types.is_dictionary(array.type) and kind_of_type(array.type) in ("list", "other"):
        return _plain_layout(array.dictionary.take(array.indices))
    return array


_LISTS = "is_list is_large_list is_fixed_size_list is_list_view is_large_list_view"
_KINDS: dict[Kind, str] = {
    "float": "is_floating is_decimal",
    "integer": "is_integer",
    "string": "is_string is_large_string is_string_view",
    "boolean": "is_boolean",
    "date": "is_temporal",
    "empty": "is_null",
}


def _lists(array: Any) -> Column | None:
    """The column of an Arrow array of lists of numbers; None if most lists have no common length."""
    lengths = numbers_of_buffer(arrow("compute").list_value_length(array).drop_null())  # of lists that are not null
    # How many numbers most lists have; None or 0 if that is not known.
    width = usual_width(lengths.tolist()) if len(array) else getattr(array.type, "list_size", 0)
    if not width:
        return None
    if (lengths != width).any():
        return Lists(array.to_pylist(), width)
    flat_numbers = array.flatten()  # without the numbers of null lists
    numbers = (
        numbers_of_buffer(flat_numbers)
        if kind_of_type(flat_numbers.type) == "integer" and not flat_numbers.null_count
        else floats(flat_numbers)
    )
    matrix = numbers.reshape(-1, width)  # a row for each list that is not null
    if not array.null_count:
        return Lists(matrix)
    with_gaps = np.full((len(array), width), np.nan, dtype=numbers.dtype if numbers.dtype.kind == "f" else np.float64)
    with_gaps[_bits(array.buffers()[0], array)] = matrix  # the first buffer says which lists are not null
    return Lists(with_gaps)


def floats(array: Any) -> Array:
    """The numbers of an Arrow array as floats, NaN where null; float32 and float64 without nulls are not copied."""
    if arrow("types").is_decimal(array.type):  # through texts, which are rounded once: 38.9 is the float of that name
        array = array.cast(arrow().string()).cast(arrow().float64())
    numbers = numbers_of_buffer(array)
    return fill_nulls(array, np.nan, numbers.dtype if numbers.dtype.kind == "f" else np.float64)


def numbers_of_buffer(array: Any) -> Array:
    """The buffer of a numeric or boolean array as a NumPy array; nulls hold arbitrary numbers. ``to_numpy`` would
    import pandas.
    """
    buffer = array.buffers()[1]  # the values; the first buffer is the validity bitmap
    if buffer is None:
        return np.zeros(len(array), dtype=array.type.to_pandas_dtype())
    if arrow("types").is_boolean(array.type):
        return _bits(buffer, array)
    return np.frombuffer(buffer, array.type.to_pandas_dtype())[array.offset : array.offset + len(array)]


def fill_nulls(array: Any, gap: float, dtype: Any) -> Array:
    """The numbers of an Arrow array as the NumPy type ``dtype``, with ``gap`` where it is null; the buffer itself if it
    has no nulls.
    """
    numbers = numbers_of_buffer(array)
    if not array.null_count:
        return numbers
    numbers = numbers.astype(dtype)
    numbers[~_bits(array.buffers()[0], array)] = gap  # the first buffer says which entries are not null
    return numbers


def _bits(buffer: Any, array: Any) -> NDArray[np.bool_]:
    """The bits of a bitmap that belong to the array, as booleans, one per row. ``buffer``: its validity bitmap, or the
    bitmap of boolean values; ``array.offset`` bits of it come before the first row.
    """
    first_byte, first_bit = divmod(array.offset, 8)  # where the first row is
    packed = np.frombuffer(buffer, np.uint8)[first_byte : first_byte + (first_bit + len(array) + 7) // 8]
    return np.unpackbits(packed, count=first_bit + len(array), bitorder="little")[first_bit:].view(np.bool_)


def _from_dictionary(array: Any, categorical: bool) -> Column:
    """The column of a dictionary array, as codes of its values. ``categorical``: whether to declare it so."""
    return regroup(Codes(_indices(array), low=0, values=[]), texts(array.dictionary), categorical)


def _indices(array: Any) -> Array:
    """The codes of a dictionary array, -1 where it is null; its buffer itself if nothing is null."""
    return fill_nulls(array.indices, -1, np.int32 if array.indices.type.bit_width <= 32 else np.int64)


def texts(array: Any) -> list[Any]:
    """The values of an Arrow array as a list; texts that are not valid UTF-8 are read as Latin-1."""
    try:
        return list(array.to_pylist())
    except UnicodeDecodeError:
        binary_array = array.cast(
            arrow().large_binary() if arrow("types").is_large_string(array.type) else arrow().binary()
        )
        return [None if value is None else decode_bytes(value) for value in binary_array.to_pylist()]


@dataclass(eq=False)
class Strings(Column):
    """A column of texts stored as an Arrow array. ``strip``: they come from a text file, so blanks around a text do not
    count, and texts in ``missing_values`` are missing. ``declared``: "date" for dates written as texts.
    """

    storage: Any
    strip: bool = False
    missing_values: frozenset[str] = frozenset()
    declared: Kind = "string"
    _encoded: Codes | None = field(default=None, init=False)  # the texts as codes, if they were encoded already

    def kind(self) -> Kind:
        """ "string", or "date" if the texts are dates."""
        return self.declared

    def encode(self) -> Codes | None:
        """Encodes the texts now, in the thread that has just parsed them, and returns the codes, which are kept. Long
        texts are hardly categories, so they are left for later: then it returns None.
        """
        if len(self.storage) and self.storage.nbytes < LONG_TEXT * len(self.storage):
            self._encoded = self._codes(threads=1)
        return self._encoded

    def to_codes(self, value_kind: ValueKind | None, threads: int) -> Codes:
        """The texts as codes of their distinct values, converted to ``value_kind`` unless that is None. ``threads``:
        how many may be used.
        """
        return convert_values(self._encoded or self._codes(threads), "string", value_kind)

    def _codes(self, threads: int) -> Codes:
        """The texts as codes of their distinct values, numbered by the Rust kernel. Texts that mean a missing value are
        missing. ``threads``: how many may be used.
        """
        self.storage = _narrow(self.storage)
        buffers = offsets, data, _, _ = _buffers(self.storage)  # where each text begins in ``data``, their bytes
        # The code of each row, and the row in which each code first occurs.
        codes, first_rows, _ = _core.encode_strings(*buffers, self.strip, threads)
        text_bytes = data.data
        # Where the first text of each code begins and ends.
        bounds = zip(offsets[first_rows].tolist(), offsets[first_rows + 1].tolist(), strict=True)
        values = self._strip([decode_bytes(bytes(text_bytes[start:end])) for start, end in bounds])
        return regroup(Codes(codes, low=0, values=[]), values)  # two spellings in bytes may be one text

    def cells(self) -> Iterable[Any]:
        """The texts in order, None where missing."""
        return self._strip(texts(self.storage))

    def _strip(self, values: list[Any]) -> list[Any]:
        """The texts ``values`` (None if missing), stripped of blanks if the column says so; then those that mean a
        missing value are None.
        """
        if not self.strip:
            return values
        stripped = (value and value.strip(BLANKS) for value in values)
        return [None if value in self.missing_values else value for value in stripped]

    def texts(self) -> Texts:
        """The texts as the kernels take them: in the Arrow buffers themselves; in a list if one is not UTF-8; in a copy
        if they must be stripped of blanks.
        """
        self.storage = array = _narrow(self.storage)
        if self.strip and _any_blanks(*_buffers(array)[:2]):
            pa = arrow()
            compute = arrow("compute")
            array = compute.ascii_trim(array, BLANKS)
            is_missing = compute.is_in(array, pa.array(sorted(self.missing_values), array.type))
            array = compute.if_else(is_missing, pa.scalar(None, array.type), array)
        try:
            array.validate(full=True)
        except arrow().ArrowInvalid:
            return texts(array)
        return _core.ArrowTexts(*_buffers(array))

    def text_bytes(self) -> int:
        """How many bytes the buffers of the stored Arrow array take."""
        return int(self.storage.nbytes)

    def take(self, rows: Int) -> Column:
        """The column of the rows with these numbers (from 0). Uses 64-bit offsets, since rows taken twice may need more
        than 2 GB.
        """
        wide_texts = (
            self.storage if self.storage.type == arrow().large_string() else self.storage.cast(arrow().large_string())
        )
        return self._with(wide_texts.take(_integers(rows)))


def join_strings(columns: Sequence[Strings]) -> Column | None:
    """Concatenates columns of texts; None if their types differ or they have too many bytes for 32-bit offsets."""
    are_alike = (
        len({(column.storage.type, column.strip, column.missing_values, column.text) for column in columns}) == 1
    )
    if not are_alike or sum(column.text_bytes() for column in columns) >= 2**31:
        return None
    return columns[0]._with(arrow().concat_arrays([column.storage for column in columns]))


def _narrow(array: Any) -> Any:
    """The Arrow array of strings in a layout of offsets and bytes, which string views do not have."""
    return array.cast(arrow().large_string()) if arrow("types").is_string_view(array.type) else array


def _buffers(array: Any) -> tuple[Array, NDArray[np.uint8], NDArray[np.uint8] | None, int]:
    """The buffers of an array of strings as the kernels take them, without a copy: offsets (rows + 1), the bytes that
    they point into, the validity bitmap (None without nulls), and the position of the first row in the bitmap.
    """
    validity, offsets, data = array.buffers()
    offset_type = np.int64 if arrow("types").is_large_string(array.type) else np.int32
    row_offsets = np.frombuffer(offsets, offset_type)[array.offset : array.offset + len(array) + 1] if offsets else None
    return (
        np.zeros(1, offset_type) if row_offsets is None or len(array) == 0 else row_offsets,
        np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8),
        np.frombuffer(validity, np.uint8) if array.null_count else None,
        array.offset,
    )


def _any_blanks(offsets: Array, data: NDArray[np.uint8]) -> bool:
    """Whether some text begins or ends with a blank. ``data``: the bytes of all texts; ``offsets``: where each begins
    in them, and at the end where the last one ends.
    """
    is_not_empty = offsets[1:] > offsets[:-1]
    # The first bytes of all texts, and then the last.
    outer_bytes = np.concatenate([data[offsets[:-1][is_not_empty]], data[offsets[1:][is_not_empty] - 1]])
    return bool(np.isin(outer_bytes, np.frombuffer(BLANKS.encode(), np.uint8)).any())


def _integers(array: Int) -> Any:
    """The integers as an Arrow array. ``pyarrow.array`` would import pandas."""
    pa = arrow()
    buffer = pa.py_buffer(np.ascontiguousarray(array, dtype=np.int64))
    return pa.Array.from_buffers(pa.int64(), len(array), [None, buffer])
