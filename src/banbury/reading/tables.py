"""Tables in memory as sources, and anything one-dimensional as a column: NumPy, pandas, Polars, Arrow, lists, mappings."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from banbury import _core, errors
from banbury.arrays import Array
from banbury.reading.arrow import arrow, from_arrow
from banbury.reading.batches import (
    Batch,
    Matrix,
    ParserWork,
    Source,
    Sparse,
    distinct,
    no_rows,
    number_names,
    number_rows,
)
from banbury.reading.by_name import Columns
from banbury.reading.columns import (
    Codes,
    Column,
    Lists,
    Objects,
    Unfit,
    from_array,
    from_list,
    ready,
    regroup,
)
from banbury.threads import n_threads

POLARS_128_BITS = ("Int128", "UInt128")
SMALL_CHUNK = 16384  # rows: smaller chunks of an Arrow table are joined
SMALL_FRAME = 16384  # cells: a smaller numeric frame is converted as one matrix
TEXT = "text"

Names = Sequence[str] | None  # those that the user gave to columns; None: their own


def single(batch: Batch, batch_rows: int | None) -> Source:
    """A source of one batch, divided into batches of at most ``batch_rows`` rows."""
    if batch_rows is None or batch.n_rows <= batch_rows:
        return Source.of([batch])
    starts = range(0, batch.n_rows, batch_rows)
    return Source(lambda _: (batch.slice(start, min(start + batch_rows, batch.n_rows)) for start in starts))


def check_column_names(names: Names, n_columns: int) -> tuple[str, ...]:
    """The ``names`` of ``n_columns`` columns as a tuple; if they are None, x0, x1 and so on. Raises LengthMismatch if
    they are fewer or more.
    """
    if names is None:
        return number_names(n_columns)
    if len(names) != n_columns:
        names_in_words = errors.many(len(names), "entry", "entries")
        columns_in_words = errors.many(n_columns, "column")
        raise errors.LengthMismatch(
            f"columns= names {names_in_words}, but the data have {columns_in_words}. Name each column once."
        )
    return distinct(names)


def names_for(own_names: Sequence[Any], names: Names, source: str | None = None) -> tuple[str, ...]:
    """The names of columns as texts: ``names`` if the user gave any, otherwise their own. Raises an error if two are
    equal or their number differs. ``source``: the file, for errors.
    """
    return distinct(own_names, source) if names is None else check_column_names(names, len(own_names))


def from_numpy(array: Array, names: Names, batch_rows: int | None) -> Source:
    """A source for an array: a numeric matrix stays as it is, other 2-D arrays are split into columns, structured ones
    into fields. ``names``: of the columns, None for x0, x1 and so on; ``batch_rows``: the most rows of a batch, or
    None.
    """
    if array.dtype.names is not None:
        return from_mapping({name: array[name] for name in array.dtype.names}, names, batch_rows)
    if array.ndim != 2:
        raise _not_a_table(array)
    if isinstance(array, np.ma.MaskedArray):
        array = np.ma.filled(array.astype(np.float64), np.nan)
    column_names = check_column_names(names, array.shape[1])
    if array.dtype.kind in "biuf":
        return single(Matrix(array, column_names, names is not None), batch_rows)
    columns = {name: from_array(array[:, position]) for position, name in enumerate(column_names)}
    return single(Batch(column_names, array.shape[0], columns, names is not None), batch_rows)


def _not_a_table(array: Any) -> errors.BanburyError:
    """The error for an array that is not 2-D. The wording is scikit-learn's, so that its checks recognise it."""
    if array.ndim > 2:
        return errors.BanburyError(
            f"Found array with dim {array.ndim}, while dim <= 2 is required. Pass a 2-D array of rows and columns."
        )
    kind_of_array = "1D array" if array.ndim == 1 else "scalar array"
    array_text = repr(array if array.size <= 20 else array[:20])  # as printed, shortened
    return errors.BanburyError(
        f"Expected 2D array, got {kind_of_array} instead:\narray={array_text}.\n"
        "Reshape your data either using array.reshape(-1, 1) if your data has a single feature "
        "or array.reshape(1, -1) if it contains a single sample."
    )


def from_sparse(matrix: Any, names: Names, batch_rows: int | None) -> Source:
    """A source for a SciPy sparse matrix or array, converted to CSR format; duplicate entries are added. ``names``: of
    the columns, None for x0, x1 and so on; ``batch_rows``: the most rows of a batch, or None.
    """
    if matrix.ndim != 2:
        raise _not_a_table(matrix)
    if matrix.dtype.kind not in "biuf" or matrix.dtype.itemsize > 8:
        raise TypeError(f"a sparse matrix of {matrix.dtype} cannot be counted. Use integers, float32 or float64.")
    csr_matrix = matrix.tocsr()
    if has_twins(csr_matrix):
        csr_matrix = csr_matrix.copy() if csr_matrix is matrix else csr_matrix
        csr_matrix.sum_duplicates()
    if csr_matrix.dtype.kind == "b" or csr_matrix.dtype == np.float16:
        csr_matrix = csr_matrix.astype(np.uint8 if csr_matrix.dtype.kind == "b" else np.float32)
    return single(Sparse(csr_matrix, check_column_names(names, csr_matrix.shape[1]), names is not None), batch_rows)


def has_twins(csr_matrix: Any) -> bool:
    """Whether some row of a sparse matrix in CSR format has two entries for one column."""
    if csr_matrix.has_canonical_format:  # SciPy looks once, and remembers
        return False
    offsets = csr_matrix.indptr.astype(np.int64, copy=False)  # where the entries of each row begin
    columns = csr_matrix.indices.astype(np.int32, copy=False)  # the column of each entry
    return _core.has_twins(offsets, columns, csr_matrix.shape[1], n_threads(None))


def from_frame(frame: Any, names: Names, batch_rows: int | None) -> Source:
    """A source for a pandas DataFrame, which converts each column only when it is first used. ``names``: other names
    for its columns, or None; ``batch_rows``: the most rows of a batch, or None.

    A small numeric frame is converted as one matrix, which is faster.
    """
    frame_names = frame.columns.tolist()
    column_names = names_for(frame_names, names)
    frame_name_of = dict(zip(column_names, frame_names, strict=True))  # our name → the frame's

    def numbers_of(columns: Sequence[str]) -> Array | None:
        """The matrix (rows × columns) of a small numeric frame if ``columns`` are all its columns (``column_names``);
        otherwise None.
        """
        matrix = frame.to_numpy() if frame.size <= SMALL_FRAME and tuple(columns) == column_names else None
        return ready(matrix) if matrix is not None and matrix.dtype.kind in "iuf" else None

    lazy_columns = Columns(lambda name: from_pandas(frame[frame_name_of[name]]), numbers_of=numbers_of)
    return single(Batch(column_names, len(frame), lazy_columns), batch_rows)


def from_mapping(table: Mapping[Any, Any], names: Names, batch_rows: int | None) -> Source:
    """A source for ``table``, a mapping of column names to sequences of one length. ``names``: other names for the
    columns, or None; ``batch_rows``: the most rows of a batch, or None.
    """
    column_names = names_for(distinct(list(table)), names)
    columns: dict[str, Column] = {}
    for name, values in zip(column_names, table.values(), strict=True):
        if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__"):
            raise errors.BanburyError(
                f"column {name!r} is {values!r}, but a column must be a list or an array with one value per row. "
                "For a single row, pass a list that contains one mapping.",
                column=name,
            )
        columns[name] = _matrix(values) or column(values)
    n_rows = len(columns[column_names[0]]) if column_names else 0
    for name, own_column in columns.items():
        if len(own_column) != n_rows:
            raise errors.LengthMismatch(
                f"column {column_names[0]!r} has {n_rows:,} rows and column {name!r} has {len(own_column):,}. All columns "
                "must have the same length.",
                column=name,
            )
    return single(Batch(column_names, n_rows, columns), batch_rows)


def _matrix(values: Any) -> Column | None:
    """A column of lists if ``values`` are a 2-D numeric array, whose rows are the lists; otherwise None."""
    if getattr(values, "ndim", 1) != 2 or not hasattr(values, "__array__") or hasattr(values, "columns"):
        return None
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or array.shape[1] == 0:
        return None
    is_masked = isinstance(values, np.ma.MaskedArray)
    return Lists(np.ma.filled(values.astype(np.float64), np.nan) if is_masked else array)


def from_rows(rows: Sequence[Any], names: Names, batch_rows: int | None) -> Source:
    """A source for a list of rows of one length, each a list, a tuple or an array. Raises LengthMismatch if their
    lengths differ. ``names``: of the columns, None for x0, x1 and so on; ``batch_rows``: the most rows of a batch, or
    None.
    """
    try:
        array = np.asarray(rows)
    except ValueError:
        lengths = [np.size(row) if np.ndim(row) == 0 else len(row) for row in rows]
        for row_number, length in enumerate(lengths):
            if length != lengths[0]:
                raise errors.LengthMismatch(
                    f"row {row_number:,} has {length:,} cells but row 0 has {lengths[0]:,}. All rows must have the same "
                    "length.",
                    row=row_number,
                ) from None
        raise errors.LengthMismatch(
            "the rows contain sequences of different lengths. Use one number or text per cell."
        ) from None
    if array.ndim == 2 and array.dtype.kind not in "biufc":
        # NumPy would make texts of the numbers that stand beside texts.
        array = np.array(rows, dtype=object)
    return from_numpy(array, names, batch_rows)


def from_texts(values: Any, names: Names = None, batch_rows: int | None = None) -> Source:
    """A source for plain texts (``values``): a table whose only column is "text" and does not count as named.
    ``names``: another name for it, or None; ``batch_rows``: the most rows of a batch, or None.

    >>> [batch] = from_texts(["cheap meds", None])
    >>> batch.names, batch.named, batch.texts("text")
    (('text',), False, ['cheap meds', None])
    """
    column_names = names_for((TEXT,), names)
    text_column = column(values)
    text_column.text = True
    batch = Batch(column_names, len(text_column), {column_names[0]: text_column}, names is not None)
    return single(batch, batch_rows)


def from_arrow_table(table: Any, names: Names, batch_rows: int | None, text: bool = False) -> Source:
    """A source for an Arrow table, a batch for each chunk; many small chunks are joined first. ``names``: other names
    for its columns, or None; ``batch_rows``: the most rows of a batch, or None; ``text``: its only column holds texts.
    """
    n_chunks = table.column(0).num_chunks if table.num_columns else 1  # pieces in which Arrow stores the rows
    if n_chunks > 1 and table.num_rows < SMALL_CHUNK * n_chunks:
        table = table.combine_chunks()
    source = from_arrow_batches(
        table.schema, lambda: iter(table.to_batches(max_chunksize=batch_rows)), names, n_rows=table.num_rows
    )

    def texts(_: ParserWork[Any] | None) -> Iterator[Batch]:
        """The batches, whose only column is declared as texts."""
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
    """A source for Arrow record batches of one Arrow schema. ``start`` opens a new iterator over them.

    ``names``: other names for the columns, or None. ``again``: whether it can be iterated more than once. ``source``:
    the file, for errors. ``declared``: the positions of columns that are declared as categorical, None for all
    dictionary columns. ``n_rows``: how many rows there are in all, if known. Without any batch the source has one batch
    without rows.
    """
    column_names = names_for(distinct(schema.names, source), names)

    def batches(_: ParserWork[Any] | None) -> Iterator[Batch]:
        """Yields the batches in order, each with the share of the rows read so far (None if ``n_rows``, the number of
        all, is unknown); one empty batch if there are none.
        """
        n_read = 0
        for batch in number_rows(arrow_batch(column_names, record_batch, source, declared) for record_batch in start()):
            n_read += batch.n_rows
            batch.share = n_read / n_rows if n_rows else None
            yield batch
        if n_read == 0:
            yield no_rows(column_names, source)

    return Source(batches, source, again)


def arrow_batch(
    names: tuple[str, ...], record_batch: Any, source: str | None, declared: Collection[int] | None
) -> Batch:
    """The batch of an Arrow record batch or table. Columns at the positions in ``declared`` are categorical, or all if
    it is None. ``names``: of the columns, in order; ``source``: the file, for errors.
    """
    positions = {name: position for position, name in enumerate(names)}

    def make(name: str) -> Column:
        """The column of this name, converted from Arrow; ``declared`` has the positions of categorical ones, or is
        None if all are.
        """
        position = positions[name]
        return from_arrow(record_batch.column(position), categorical=declared is None or position in declared)

    return Batch(names, record_batch.num_rows, Columns(make), named=True, source=source)


def from_arrow_stream(data: Any, names: Names) -> Source:
    """A source for ``data``, any object with Arrow's stream protocol. Iterators, and objects that give only one stream,
    can be read only once. ``names``: other names for the columns, or None.
    """
    data = without_128_bits(data)
    reader = _open_stream(data)
    schema = reader.schema
    open_readers = [reader]  # at most one, for the next pass
    again = not (hasattr(data, "__next__") or hasattr(data, "read_next_batch"))  # whether it can be read twice
    if again:
        try:
            open_readers = [_open_stream(data)]
        except errors.BanburyError:
            again = False
    return from_arrow_batches(
        schema,
        lambda: translate_stream_errors(open_readers.pop() if open_readers else _open_stream(data)),
        names,
        again,
    )


def _open_stream(data: Any) -> Any:
    """A reader of the record batches of ``data``, an object with Arrow's stream protocol. Errors of the object's
    library are raised as ours.
    """
    reader_class = arrow().RecordBatchReader
    name = f"this {type(data).__name__}"  # of the object, for errors
    try:
        return data if isinstance(data, reader_class) else reader_class.from_stream(data)
    except arrow().ArrowException as error:
        if _is_single_column(data):
            raise errors.BadValue(
                f"{name} is a single column, but a table is needed. Pass {{'name': column}}."
            ) from None
        raise errors.BadValue(
            f"a column of {name} has a type that Arrow does not support ({error}). "
            "Convert it to numbers or texts, or remove it."
        ) from None
    except Exception as error:  # of a database, say
        reason = f"{type(error).__name__}: {(str(error).splitlines() or ['no reason given'])[0]}"
        raise errors.BanburyError(f"{name} does not provide a stream of batches ({reason}).") from error


def _is_single_column(data: Any) -> bool:
    """Whether the Arrow stream of ``data`` is one of a column rather than of a table."""
    try:
        return not arrow().types.is_struct(arrow().chunked_array(data).type)
    except Exception:  # whatever its maker raises
        return False


def without_128_bits(data: Any) -> Any:
    """A Polars frame or series (``data``) with 128-bit integers, which Arrow does not have, cast to 64 bits, or to
    floats if they do not fit. Anything else is returned as it is.
    """
    if library(data) != "polars":
        return data
    if hasattr(data, "columns"):
        wide_columns = [name for name, dtype in data.schema.items() if str(dtype) in POLARS_128_BITS]
        return data.with_columns(without_128_bits(data[name]) for name in wide_columns) if wide_columns else data
    if str(data.dtype) not in POLARS_128_BITS:
        return data
    polars = importlib.import_module("polars")
    integers = data.cast(polars.Int64, strict=False)  # null where they do not fit
    return integers if integers.null_count() == data.null_count() else data.cast(polars.Float64)


def translate_stream_errors(batches: Any) -> Iterator[Any]:
    """The record batches; an Arrow error while reading them is raised as one of ours."""
    try:
        yield from batches
    except arrow().ArrowException as error:
        reason = (str(error).splitlines() or ["no reason was given"])[0]
        raise errors.BanburyError(f"the stream of batches ended early: {reason}") from None


def encode(values: Any, threads: int = 1) -> Codes:
    """The labels of rows (``values``) as codes of their distinct values; None and NaN are missing. ``threads``: how
    many may be used.

    >>> encode(["spam", "ham", None, "spam"])
    Codes(codes=array([ 0,  1, -1,  0], dtype=int32), low=0, values=['spam', 'ham'])
    """
    try:
        return column(values).to_codes(value_kind=None, threads=threads)
    except Unfit as unfit:
        value, row, needed = unfit.args
        raise errors.wrong_type(value, "labels", needed, row) from None


def column(values: Any) -> Column:
    """The column of a one-dimensional object (``values``): a list, an array, a series, an iterable. Raises an error for
    other objects.
    """
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
    """The column of ``values``, a 1-D array; masked cells are missing."""
    if values.ndim != 1:
        raise errors.no_column(values)
    if isinstance(values, np.ma.MaskedArray) and values.mask.any():
        return Objects(values.tolist())
    return from_array(np.asarray(values))


def from_pandas(values: Any) -> Column:
    """The column of ``values``, a pandas Series, Index or array. Plain NumPy types are not copied."""
    if hasattr(values, "columns"):
        raise errors.no_column(values)
    array = getattr(values, "array", values)  # pandas' own array of the cells
    if hasattr(array, "to_timestamp"):
        array = values = array.to_timestamp()
    if isinstance(values.dtype, np.dtype):
        return from_array(values.to_numpy())
    if hasattr(array, "categories") and hasattr(array, "codes"):
        categories = column(array.categories)  # the value of each code
        return regroup(Codes(array.codes, low=0, values=[]), categories.head(len(categories)), categorical=True)
    try:
        return from_arrow(arrow().array(array))
    except (TypeError, OverflowError, UnicodeEncodeError, arrow().ArrowException):
        return Objects(np.asarray(values, dtype=object).tolist())


def library(values: Any) -> str:
    """The name of the library that defines an object's type, such as pandas, polars or pyarrow."""
    return type(values).__module__.partition(".")[0]
