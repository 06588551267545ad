"""Arrow arrays as columns. Numbers and dictionary codes are used where they lie; pyarrow is imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.reading.columns import (
    EXACT,
    Codes,
    Column,
    Kind,
    Lists,
    Numbers,
    Objects,
    Texts,
    Wanted,
    convert_values,
    decode_bytes,
    empty_column,
    regroup,
    usual_width,
)

LONG_TEXT = 64  # bytes on average
BLANKS = " \t\n\r\f\v"


@cache
def arrow(module: str = "") -> Any:
    """pyarrow, or one of its modules."""
    return importlib.import_module(f"pyarrow.{module}" if module else "pyarrow")


def from_arrow(
    array: Any, strip: bool = False, missing_values: frozenset[str] = frozenset(), categorical: bool = True
) -> Column:
    """The column of an Arrow array. ``strip``, ``missing_values``: of a text file; ``categorical``: a dictionary is declared."""
    if hasattr(array, "combine_chunks"):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    array = _plain_layout(array)
    kind = kind_of_type(array.type)
    if kind == "empty" or (len(array) and array.null_count == len(array)):
        return empty_column(len(array))
    if kind == "list" and (lists := _lists(array)):
        return lists
    if kind in ("date", "list", "other"):
        write = _iso_texts if kind == "date" else texts
        return Objects(array, of_kind="date" if kind == "date" else "other", write=write)
    if arrow("types").is_dictionary(array.type):
        return _from_dictionary(array, categorical)
    if kind == "string":
        return Strings(array, strip, missing_values)
    if kind == "float":
        return Numbers(floats(array))
    return _from_nullable(array, kind) if array.null_count else Numbers(plain(array))


def _from_nullable(array: Any, kind: Kind) -> Column:
    """The column of booleans or integers with nulls: floats, which hold them exactly, or codes."""
    if kind == "boolean":
        return Codes(fill_nulls(array, 2, np.uint8), 0, [False, True], value_kind="boolean")
    numbers = fill_nulls(array, np.nan, np.float64)
    if np.fmax.reduce(np.abs(numbers)) <= EXACT:
        return Numbers(numbers, are_integers=True)
    return _from_dictionary(array.dictionary_encode(), False)


def _iso_texts(array: Any) -> list[str | None]:
    """Dates and times as Arrow writes them; lengths of time, which it does not write, as Python does."""
    dates = array.dictionary_decode() if hasattr(array, "dictionary") else array
    try:
        return list(dates.cast(arrow().string()).to_pylist())
    except arrow().ArrowNotImplementedError:
        return [None if value is None else str(value) for value in dates.to_pylist()]


def kind_of_type(data_type: Any) -> Kind:
    """The kind of an Arrow type."""
    types = arrow("types")
    if types.is_dictionary(data_type) or types.is_run_end_encoded(data_type):
        return kind_of_type(data_type.value_type)
    for kind, tests in _KINDS.items():
        if any(getattr(types, test)(data_type) for test in tests.split()):
            return kind
    lists = any(getattr(types, test)(data_type) for test in _LISTS.split())
    return "list" if lists and kind_of_type(data_type.value_type) in ("integer", "float") else "other"


def _plain_layout(array: Any) -> Any:
    """The array without what stands around its values: an extension, runs, views of lists, a dictionary of lists."""
    types = arrow("types")
    if hasattr(array, "storage"):
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
    """The column of an Arrow array of lists of numbers; None where they are of any length."""
    lengths = plain(arrow("compute").list_value_length(array).drop_null())
    width = usual_width(lengths.tolist()) if len(array) else getattr(array.type, "list_size", 0)
    if not width:
        return None
    if (lengths != width).any():
        return Lists(array.to_pylist(), width)
    inside = array.flatten()  # without what stands where a list is null
    numbers = plain(inside) if kind_of_type(inside.type) == "integer" and not inside.null_count else floats(inside)
    matrix = numbers.reshape(-1, width)
    if not array.null_count:
        return Lists(matrix)
    with_gaps = np.full((len(array), width), np.nan, dtype=numbers.dtype if numbers.dtype.kind == "f" else np.float64)
    with_gaps[_bits(array.buffers()[0], array)] = matrix
    return Lists(with_gaps)


def floats(array: Any) -> NDArray[Any]:
    """The numbers of an Arrow array, missing ones NaN; float32 and float64 without nulls are not copied."""
    if arrow("types").is_decimal(array.type):  # through texts, which are rounded once: 38.9 is the float of that name
        array = array.cast(arrow().string()).cast(arrow().float64())
    numbers = plain(array)
    return fill_nulls(array, np.nan, numbers.dtype if numbers.dtype.kind == "f" else np.float64)


def plain(array: Any) -> NDArray[Any]:
    """What lies in the buffer of a numeric or boolean array, anything where it is null; ``to_numpy`` would import pandas."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), dtype=array.type.to_pandas_dtype())
    if arrow("types").is_boolean(array.type):
        return _bits(buffer, array)
    return np.frombuffer(buffer, array.type.to_pandas_dtype())[array.offset : array.offset + len(array)]


def fill_nulls(array: Any, gap: float, dtype: Any) -> NDArray[Any]:
    """The numbers of an Arrow array with ``gap`` where it is null; the buffer itself if it has no nulls."""
    numbers = plain(array)
    if not array.null_count:
        return numbers
    numbers = numbers.astype(dtype)
    numbers[~_bits(array.buffers()[0], array)] = gap
    return numbers


def _bits(buffer: Any, array: Any) -> NDArray[np.bool_]:
    """The bits of a bitmap that belong to the array."""
    first, skipped = divmod(array.offset, 8)
    packed = np.frombuffer(buffer, np.uint8)[first : first + (skipped + len(array) + 7) // 8]
    return np.unpackbits(packed, count=skipped + len(array), bitorder="little")[skipped:].view(np.bool_)


def _from_dictionary(array: Any, categorical: bool) -> Column:
    return regroup(Codes(_indices(array), 0, []), texts(array.dictionary), categorical)


def _indices(array: Any) -> NDArray[Any]:
    """The codes of a dictionary array, -1 where it is null; its buffer itself where nothing is."""
    return fill_nulls(array.indices, -1, np.int32 if array.indices.type.bit_width <= 32 else np.int64)


def texts(array: Any) -> list[Any]:
    """The values of an Arrow array; a text that is not UTF-8 is taken for Latin-1."""
    try:
        return list(array.to_pylist())
    except UnicodeDecodeError:
        raw = array.cast(arrow().large_binary() if arrow("types").is_large_string(array.type) else arrow().binary())
        return [None if value is None else decode_bytes(value) for value in raw.to_pylist()]


class Strings(Column):
    """A column of texts. With ``strip`` it is from a text file: blanks around a text do not count."""

    _encoded: Codes | None = None

    def __init__(
        self, array: Any, strip: bool = False, missing_values: frozenset[str] = frozenset(), kind: Kind = "string"
    ) -> None:
        self.held = array
        self.strip = strip
        self.missing_values = missing_values
        self.declared = kind

    def kind(self) -> Kind:
        return self.declared

    def encode(self) -> Codes | None:
        """Numbers the texts now, in the thread that has just parsed them; long ones are hardly categories, and wait."""
        if len(self.held) and self.held.nbytes < LONG_TEXT * len(self.held):
            self._encoded = self._codes(1)
        return self._encoded

    def to_codes(self, value_kind: Wanted | None, threads: int) -> Codes:
        return convert_values(self._encoded or self._codes(threads), "string", value_kind)

    def _codes(self, threads: int) -> Codes:
        self.held = _narrow(self.held)
        buffers = offsets, data, _, _ = _buffers(self.held)
        codes, first, _ = _core.encode_strings(*buffers, self.strip, threads)
        raw = data.data
        bounds = zip(offsets[first].tolist(), offsets[first + 1].tolist(), strict=True)
        values = self._strip([decode_bytes(bytes(raw[start:end])) for start, end in bounds])
        return regroup(Codes(codes, 0, []), values)  # two spellings in bytes may be one text

    def cells(self) -> Iterable[Any]:
        return self._strip(texts(self.held))

    def _strip(self, values: list[Any]) -> list[Any]:
        if not self.strip:
            return values
        stripped = (value and value.strip(BLANKS) for value in values)
        return [None if value in self.missing_values else value for value in stripped]

    def texts(self) -> Texts:
        """The buffers of the array itself, unless a text is not UTF-8 or must be stripped of blanks."""
        self.held = array = _narrow(self.held)
        if self.strip and _any_blanks(*_buffers(array)[:2]):
            pa = arrow()
            compute = arrow("compute")
            array = compute.ascii_trim(array, BLANKS)
            gone = compute.is_in(array, pa.array(sorted(self.missing_values), array.type))
            array = compute.if_else(gone, pa.scalar(None, array.type), array)
        try:
            array.validate(full=True)
        except arrow().ArrowInvalid:
            return texts(array)
        return _core.ArrowTexts(*_buffers(array))

    def text_bytes(self) -> int:
        return int(self.held.nbytes)

    def take(self, rows: NDArray[np.int64]) -> Column:
        """Some of the strings; with 64-bit offsets, since 32-bit ones may not reach once rows are taken twice."""
        wide = self.held if self.held.type == arrow().large_string() else self.held.cast(arrow().large_string())
        return self._with(wide.take(_integers(rows)))


def join_strings(columns: Sequence[Strings]) -> Column | None:
    """Columns of texts as one; None where they are not all alike, or more than 32-bit offsets reach."""
    alike = len({(c.held.type, c.strip, c.missing_values, c.text) for c in columns}) == 1
    if not alike or sum(c.text_bytes() for c in columns) >= 2**31:
        return None
    return columns[0]._with(arrow().concat_arrays([c.held for c in columns]))


def _narrow(array: Any) -> Any:
    """The strings as offsets and bytes, which views of strings are not."""
    return array.cast(arrow().large_string()) if arrow("types").is_string_view(array.type) else array


def _buffers(array: Any) -> tuple[NDArray[Any], NDArray[np.uint8], NDArray[np.uint8] | None, int]:
    """Offsets, bytes and validity bitmap as the kernels take them, without a copy."""
    valid, offsets, data = array.buffers()
    wide = np.int64 if arrow("types").is_large_string(array.type) else np.int32
    bounds = np.frombuffer(offsets, wide)[array.offset : array.offset + len(array) + 1] if offsets else None
    return (
        np.zeros(1, wide) if bounds is None or len(array) == 0 else bounds,
        np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8),
        np.frombuffer(valid, np.uint8) if array.null_count else None,
        array.offset,
    )


def _any_blanks(offsets: NDArray[Any], data: NDArray[np.uint8]) -> bool:
    """Whether some text begins or ends with a blank."""
    held = offsets[1:] > offsets[:-1]
    ends = np.concatenate([data[offsets[:-1][held]], data[offsets[1:][held] - 1]])
    return bool(np.isin(ends, np.frombuffer(BLANKS.encode(), np.uint8)).any())


def _integers(array: NDArray[np.int64]) -> Any:
    """The array as an Arrow array. ``pyarrow.array`` would import pandas."""
    pa = arrow()
    buffer = pa.py_buffer(np.ascontiguousarray(array, dtype=np.int64))
    return pa.Array.from_buffers(pa.int64(), len(array), [None, buffer])
