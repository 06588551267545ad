"""Tables in memory as sources, and anything one-dimensional as a column: NumPy, pandas, Polars, Arrow, lists, mappings."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.reading.arrow import arrow, from_arrow
from banbury.reading.batches import Batch, Matrix, Source, Sparse, distinct, number_rows, positions
from banbury.reading.by_name import Columns
from banbury.reading.columns import (
    Codes,
    Column,
    Lists,
    Objects,
    Unfit,
    empty_column,
    from_array,
    from_list,
    ready,
    regroup,
)
from banbury.threads import n_threads

POLARS_128_BITS = ("Int128", "UInt128")
SMALL_CHUNK = 16384
SMALL_FRAME = 16384
TEXT = "text"

Names = Sequence[str] | None


def single(batch: Batch, batch_rows: int | None) -> Source:
    """A source of one batch, or of its cuts of ``batch_rows`` rows."""
    if batch_rows is None or batch.n_rows <= batch_rows:
        return Source((batch,).__iter__)
    starts = range(0, batch.n_rows, batch_rows)
    return Source(lambda: (batch.slice(start, min(start + batch_rows, batch.n_rows)) for start in starts))


def check_column_names(names: Names, n_columns: int) -> tuple[str, ...]:
    """These names, which must be as many as the columns; without any, x0, x1 and so on."""
    if names is None:
        return positions(n_columns)
    if len(names) != n_columns:
        named = errors.many(len(names), "entry", "entries")
        there = errors.many(n_columns, "column")
        raise errors.LengthMismatch(f"columns= names {named}, but the data have {there}. Name each column once.")
    return distinct(names)


def names_for(own_names: Sequence[Any], names: Names, source: str | None = None) -> tuple[str, ...]:
    """The names of columns that have names of their own: these, unless others are wanted."""
    return distinct(own_names, source) if names is None else check_column_names(names, len(own_names))


def from_numpy(array: NDArray[Any], names: Names, batch_rows: int | None) -> Source:
    """A matrix of numbers is kept as it is; other 2-D arrays are cut into columns, structured ones by field."""
    if array.dtype.names is not None:
        return from_mapping({name: array[name] for name in array.dtype.names}, names, batch_rows)
    if array.ndim != 2:
        raise _not_a_table(array)
    if isinstance(array, np.ma.MaskedArray):
        array = np.ma.filled(array.astype(np.float64), np.nan)
    labels = check_column_names(names, array.shape[1])
    if array.dtype.kind in "biuf":
        return single(Matrix(array, labels, names is not None), batch_rows)
    columns = {name: from_array(array[:, j]) for j, name in enumerate(labels)}
    return single(Batch(labels, array.shape[0], columns, names is not None), batch_rows)


def _not_a_table(array: Any) -> errors.BanburyError:
    """The words are scikit-learn's, so that what looks for them finds them."""
    if array.ndim > 2:
        text = f"Found array with dim {array.ndim}, while dim <= 2 is required."
        return errors.BanburyError(f"{text} Pass a 2-D array of rows and columns.")
    what = "1D array" if array.ndim == 1 else "scalar array"
    shown = repr(array if array.size <= 20 else array[:20])
    text = f"Expected 2D array, got {what} instead:\narray={shown}.\n"
    text += "Reshape your data either using array.reshape(-1, 1) if your data has a single feature "
    return errors.BanburyError(f"{text}or array.reshape(1, -1) if it contains a single sample.")


def from_sparse(matrix: Any, names: Names, batch_rows: int | None) -> Source:
    """A SciPy sparse matrix or array, in rows; numbers that stand in one place are added up."""
    if matrix.ndim != 2:
        raise _not_a_table(matrix)
    if matrix.dtype.kind not in "biuf" or matrix.dtype.itemsize > 8:
        text = f"a sparse matrix of {matrix.dtype} cannot be counted."
        raise TypeError(f"{text}Use integers, float32 or float64.")
    rows = matrix.tocsr()
    if has_twins(rows):
        rows = rows.copy() if rows is matrix else rows
        rows.sum_duplicates()
    if rows.dtype.kind == "b" or rows.dtype == np.float16:
        rows = rows.astype(np.uint8 if rows.dtype.kind == "b" else np.float32)
    return single(Sparse(rows, check_column_names(names, rows.shape[1]), names is not None), batch_rows)


def has_twins(rows: Any) -> bool:
    """Whether some row of a sparse matrix has a column twice."""
    if rows.has_canonical_format:  # SciPy looks once, and remembers
        return False
    offsets = rows.indptr.astype(np.int64, copy=False)
    columns = rows.indices.astype(np.int32, copy=False)
    return _core.has_twins(offsets, columns, rows.shape[1], n_threads(None))


def from_frame(frame: Any, names: Names, batch_rows: int | None) -> Source:
    """A pandas DataFrame, whose columns are looked at only when they are asked for.

    A small one of numbers gives them all at once, which pandas does faster than one column.
    """
    frame_names = frame.columns.tolist()
    labels = names_for(frame_names, names)
    place = dict(zip(labels, frame_names, strict=True))

    def numbers_of(chosen: Sequence[str]) -> NDArray[Any] | None:
        matrix = frame.to_numpy() if frame.size <= SMALL_FRAME and tuple(chosen) == labels else None
        return ready(matrix) if matrix is not None and matrix.dtype.kind in "iuf" else None

    columns = Columns(lambda name: from_pandas(frame[place[name]]), numbers_of=numbers_of)
    return single(Batch(labels, len(frame), columns), batch_rows)


def from_mapping(table: Mapping[Any, Any], names: Names, batch_rows: int | None) -> Source:
    """A mapping of column names to sequences of one length."""
    labels = names_for(distinct(list(table)), names)
    columns: dict[str, Column] = {}
    for name, values in zip(labels, table.values(), strict=True):
        if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__"):
            text = f"column {name!r} is {values!r}, but a column must be a list or an array with one value per row. "
            raise errors.BanburyError(f"{text}For a single row, pass a list that contains one mapping.", column=name)
        columns[name] = _matrix(values) or column(values)
    n_rows = len(columns[labels[0]]) if labels else 0
    for name, values in columns.items():
        if len(values) != n_rows:
            text = f"column {labels[0]!r} has {n_rows:,} rows and column {name!r} has {len(values):,}. All columns "
            text += "must have the same length."
            raise errors.LengthMismatch(text, column=name)
    return single(Batch(labels, n_rows, columns), batch_rows)


def _matrix(values: Any) -> Column | None:
    """The column of a 2-D array of numbers, which has a list of them in each row; None for anything else."""
    if getattr(values, "ndim", 1) != 2 or not hasattr(values, "__array__") or hasattr(values, "columns"):
        return None
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or array.shape[1] == 0:
        return None
    masked = isinstance(values, np.ma.MaskedArray)
    return Lists(np.ma.filled(values.astype(np.float64), np.nan) if masked else array)


def from_rows(rows: Sequence[Any], names: Names, batch_rows: int | None) -> Source:
    """A list of rows of one length, each a list, a tuple or an array."""
    try:
        array = np.asarray(rows)
    except ValueError:
        lengths = [np.size(row) if np.ndim(row) == 0 else len(row) for row in rows]
        for row, length in enumerate(lengths):
            if length != lengths[0]:
                text = f"row {row:,} has {length:,} cells but row 0 has {lengths[0]:,}. All rows must have the same length."
                raise errors.LengthMismatch(text, row=row) from None
        different = "the rows contain sequences of different lengths. Use one number or text per cell."
        raise errors.LengthMismatch(different) from None
    if array.ndim == 2 and array.dtype.kind not in "biufc":
        # NumPy would make texts of the numbers that stand beside texts.
        array = np.array(rows, dtype=object)
    return from_numpy(array, names, batch_rows)


def from_texts(values: Any, names: Names = None, batch_rows: int | None = None) -> Source:
    """Plain texts: a table of one column, "text", which has no name of its own.

    >>> [batch] = from_texts(["cheap meds", None])
    >>> batch.names, batch.named, batch.texts("text")
    (('text',), False, ['cheap meds', None])
    """
    labels = names_for((TEXT,), names)
    texts = column(values)
    texts.text = True
    return single(Batch(labels, len(texts), {labels[0]: texts}, names is not None), batch_rows)


def from_arrow_table(table: Any, names: Names, batch_rows: int | None, text: bool = False) -> Source:
    """An Arrow table, chunk by chunk; many small chunks are joined first."""
    n_chunks = table.column(0).num_chunks if table.num_columns else 1
    if n_chunks > 1 and table.num_rows < SMALL_CHUNK * n_chunks:
        table = table.combine_chunks()
    source = from_arrow_batches(
        table.schema, lambda: iter(table.to_batches(max_chunksize=batch_rows)), names, n_rows=table.num_rows
    )

    def texts() -> Iterator[Batch]:
        for batch in source:
            batch.named = names is not None
            batch.column(batch.names[0]).text = True
            yield batch

    return Source(texts) if text else source


def from_arrow_batches(
    schema: Any,
    start: Callable[[], Iterator[Any]],
    names: Names = None,
    again: bool = True,
    source: str | None = None,
    declared: Collection[int] | None = None,
    n_rows: int | None = None,
) -> Source:
    """Arrow record batches, ``n_rows`` in all; without any, one of no rows. ``declared``: places of categoricals, None: all."""
    labels = names_for(distinct(schema.names, source), names)

    def batches() -> Iterator[Batch]:
        n_read = 0
        for batch in number_rows(arrow_batch(labels, record_batch, source, declared) for record_batch in start()):
            n_read += batch.n_rows
            batch.share = n_read / n_rows if n_rows else None
            yield batch
        if n_read == 0:
            yield no_rows(labels, source)

    return Source(batches, source, again)


def no_rows(names: tuple[str, ...], source: str | None) -> Batch:
    """A batch of these columns without a row."""
    return Batch(names, 0, {name: empty_column(0) for name in names}, True, source)


def arrow_batch(
    names: tuple[str, ...], record_batch: Any, source: str | None, declared: Collection[int] | None
) -> Batch:
    place = {name: j for j, name in enumerate(names)}

    def make(name: str) -> Column:
        j = place[name]
        return from_arrow(record_batch.column(j), categorical=declared is None or j in declared)

    return Batch(names, record_batch.num_rows, Columns(make), True, source)


def from_arrow_stream(data: Any, names: Names) -> Source:
    """Anything with Arrow's stream protocol. What is an iterator itself, or gives its stream but once, can be read only once."""
    data = without_128_bits(data)
    reader = _open_stream(data)
    schema = reader.schema
    waiting = [reader]
    again = not (hasattr(data, "__next__") or hasattr(data, "read_next_batch"))
    if again:
        try:
            waiting = [_open_stream(data)]
        except errors.BanburyError:
            again = False
    return from_arrow_batches(
        schema, lambda: translate_stream_errors(waiting.pop() if waiting else _open_stream(data)), names, again
    )


def _open_stream(data: Any) -> Any:
    """A reader of the batches; what the maker of the data raises comes as an error of ours."""
    readers = arrow().RecordBatchReader
    what = f"this {type(data).__name__}"
    try:
        return data if isinstance(data, readers) else readers.from_stream(data)
    except arrow().ArrowException as error:
        if _is_column(data):
            text = f"{what} is a single column, but a table is needed. Pass {{'name': column}}."
            raise errors.BadValue(text) from None
        why = f"a column of {what} has a type that Arrow does not support ({error})"
        raise errors.BadValue(f"{why}. Convert it to numbers or texts, or remove it.") from None
    except Exception as error:  # of a database, say
        why = f"{type(error).__name__}: {(str(error).splitlines() or ['no reason given'])[0]}"
        raise errors.BanburyError(f"{what} does not provide a stream of batches ({why}).") from error


def _is_column(data: Any) -> bool:
    """Whether it is a stream of one column, not of a table."""
    try:
        return not arrow().types.is_struct(arrow().chunked_array(data).type)
    except Exception:  # whatever its maker raises
        return False


def without_128_bits(data: Any) -> Any:
    """A frame or series of Polars with its integers of 128 bits, which Arrow does not have, in 64 bits; as floats if need be."""
    if library(data) != "polars":
        return data
    if hasattr(data, "columns"):
        wide = [name for name, dtype in data.schema.items() if str(dtype) in POLARS_128_BITS]
        return data.with_columns(without_128_bits(data[name]) for name in wide) if wide else data
    if str(data.dtype) not in POLARS_128_BITS:
        return data
    types = importlib.import_module("polars")
    integers = data.cast(types.Int64, strict=False)
    return integers if integers.null_count() == data.null_count() else data.cast(types.Float64)


def translate_stream_errors(batches: Any) -> Iterator[Any]:
    """The batches; what Arrow says when they break off comes as an error of ours."""
    try:
        yield from batches
    except arrow().ArrowException as error:
        why = (str(error).splitlines() or ["no reason was given"])[0]
        raise errors.BanburyError(f"the stream of batches ended early: {why}") from None


def encode(values: Any, threads: int = 1) -> Codes:
    """The labels as codes of their distinct values; None and NaN are missing.

    >>> encode(["spam", "ham", None, "spam"])
    Codes(codes=array([ 0,  1, -1,  0], dtype=int32), low=0, values=['spam', 'ham'])
    """
    try:
        return column(values).to_codes(None, threads)
    except Unfit as unfit:
        value, row, needed = unfit.args
        raise errors.wrong_type(value, "labels", needed, row) from None


def column(values: Any) -> Column:
    """The column of anything one-dimensional."""
    if type(values) is list:
        return from_list(values)
    if isinstance(values, np.ndarray):
        return _from_numpy(values)
    if library(values) == "pandas":
        return from_pandas(values)
    if library(values) == "pyarrow":
        return from_arrow(values)
    if hasattr(values, "__arrow_c_stream__"):
        return from_arrow(arrow().chunked_array(without_128_bits(values)))
    if hasattr(values, "__arrow_c_array__"):
        return from_arrow(arrow().array(values))
    if hasattr(values, "__array__"):
        return _from_numpy(np.asarray(values))
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise errors.no_column(values)
    return column(list(values))


def _from_numpy(values: np.ndarray[Any, Any]) -> Column:
    if values.ndim != 1:
        raise errors.no_column(values)
    if isinstance(values, np.ma.MaskedArray) and values.mask.any():
        return Objects(values.tolist())
    return from_array(np.asarray(values))


def from_pandas(values: Any) -> Column:
    """The column of a pandas Series, Index or array. Plain NumPy types are not copied."""
    if hasattr(values, "columns"):
        raise errors.no_column(values)
    array = getattr(values, "array", values)
    if hasattr(array, "to_timestamp"):
        array = values = array.to_timestamp()
    if isinstance(values.dtype, np.dtype):
        return from_array(values.to_numpy())
    if hasattr(array, "categories") and hasattr(array, "codes"):
        categories = column(array.categories)
        return regroup(Codes(array.codes, 0, []), categories.head(len(categories)), categorical=True)
    try:
        return from_arrow(arrow().array(array))
    except (TypeError, OverflowError, UnicodeEncodeError, arrow().ArrowException):
        return Objects(np.asarray(values, dtype=object).tolist())


def library(values: Any) -> str:
    """The library that a thing is of: pandas, polars, pyarrow."""
    return type(values).__module__.partition(".")[0]
