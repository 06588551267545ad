"""Tables in memory as sources: NumPy, pandas, Arrow and what speaks its protocol, mappings, records, rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.readers.arrow import arrow, from_arrow
from banbury.readers.batches import Batch, LazyColumns, Matrix, Source, Sparse, distinct, numbered, positions
from banbury.readers.columns import Column, Empty, Lists, from_array, from_list, ready
from banbury.readers.encoding import column, from_pandas
from banbury.threads import n_threads

SMALL_CHUNK = 16384
SMALL_FRAME = 16384
TEXT = "text"

Names = Sequence[str] | None


def single(batch: Batch, batch_rows: int | None) -> Source:
    """A source of one batch, or of its cuts of ``batch_rows`` rows."""
    if batch_rows is None or batch.n_rows <= batch_rows:
        return Source((batch,).__iter__)
    starts = range(0, batch.n_rows, batch_rows)
    return Source(lambda: (batch.cut(start, min(start + batch_rows, batch.n_rows)) for start in starts))


def checked_names(names: Names, n_columns: int) -> tuple[str, ...]:
    """These names, which must be as many as the columns; without any, x0, x1 and so on."""
    if names is None:
        return positions(n_columns)
    if len(names) != n_columns:
        raise errors.LengthMismatch(
            f"columns has {errors.many(len(names), 'entry', 'entries')}, and the data have {errors.many(n_columns, 'column')}. "
            "Name each column once."
        )
    return distinct(names)


def names_for(own: Sequence[Any], names: Names, source: str | None = None) -> tuple[str, ...]:
    """The names of columns that have names of their own: these, unless others are wanted."""
    return distinct(own, source) if names is None else checked_names(names, len(own))


def from_numpy(array: NDArray[Any], names: Names, batch_rows: int | None) -> Source:
    """A matrix of numbers is kept as it is; other 2-D arrays are cut into columns, structured ones by field."""
    if array.dtype.names is not None:
        return from_mapping({name: array[name] for name in array.dtype.names}, names, batch_rows)
    if array.ndim != 2:
        raise _not_a_table(array)
    if isinstance(array, np.ma.MaskedArray):
        array = np.ma.filled(array.astype(np.float64), np.nan)
    labels = checked_names(names, array.shape[1])
    if array.dtype.kind in "biuf":
        return single(Matrix(array, labels, names is not None), batch_rows)
    columns: dict[str, Column] = {name: _cells(array[:, j]) for j, name in enumerate(labels)}
    return single(Batch(labels, array.shape[0], columns, names is not None), batch_rows)


def _not_a_table(array: Any) -> errors.BanburyError:
    """The words are scikit-learn's, so that what looks for them finds them."""
    if array.ndim > 2:
        return errors.BanburyError(
            f"Found array with dim {array.ndim}, while dim <= 2 is required. Give rows by columns."
        )
    what = "1D array" if array.ndim == 1 else "scalar array"
    shown = repr(array if array.size <= 20 else array[:20])
    return errors.BanburyError(
        f"Expected 2D array, got {what} instead:\narray={shown}.\n"
        "Reshape your data either using array.reshape(-1, 1) if your data has a single feature "
        "or array.reshape(1, -1) if it contains a single sample."
    )


def from_sparse(matrix: Any, names: Names, batch_rows: int | None) -> Source:
    """A SciPy sparse matrix or array, in rows; numbers that stand in one place are added up."""
    if matrix.ndim != 2:
        raise _not_a_table(matrix)
    if matrix.dtype.kind not in "biuf" or matrix.dtype.itemsize > 8:
        raise TypeError(
            f"a sparse matrix of {matrix.dtype} cannot be counted. Give one of numbers: integers, float32 or float64."
        )
    rows = matrix.tocsr()
    if has_twins(rows):
        rows = rows.copy() if rows is matrix else rows
        rows.sum_duplicates()
    if rows.dtype.kind == "b" or rows.dtype == np.float16:
        rows = rows.astype(np.uint8 if rows.dtype.kind == "b" else np.float32)
    return single(Sparse(rows, checked_names(names, rows.shape[1]), names is not None), batch_rows)


def has_twins(rows: Any) -> bool:
    """Whether some row of a sparse matrix has a column twice."""
    if rows.has_canonical_format:  # SciPy looks once, and remembers
        return False
    offsets, columns = rows.indptr.astype(np.int64, copy=False), rows.indices.astype(np.int32, copy=False)
    return _core.has_twins(offsets, columns, rows.shape[1], n_threads(None))


def _cells(array: NDArray[Any]) -> Column:
    return from_list(array.tolist()) if array.dtype.kind == "O" else from_array(array)


def from_frame(frame: Any, names: Names, batch_rows: int | None) -> Source:
    """A pandas DataFrame, whose columns are looked at only when they are asked for."""
    own = frame.columns.tolist()
    labels = names_for(own, names)
    place = dict(zip(labels, own, strict=True))
    return single(Frame(frame, labels, LazyColumns(lambda name: from_pandas(frame[place[name]]))), batch_rows)


class Frame(Batch):
    """A pandas DataFrame. A small one of numbers gives them all at once, which pandas does faster than one column."""

    def __init__(self, frame: Any, names: tuple[str, ...], columns: LazyColumns) -> None:
        super().__init__(names, len(frame), columns)
        self._frame = frame
        self._own_names = names

    def numbers(self, names: Sequence[str]) -> list[NDArray[Any]]:
        if self._frame.size <= SMALL_FRAME and tuple(names) == self._own_names:
            matrix = self._frame.to_numpy()
            if matrix.dtype.kind in "iuf":
                return [ready(matrix)]
        return super().numbers(names)


def from_mapping(table: Mapping[Any, Any], names: Names, batch_rows: int | None) -> Source:
    """A mapping of column names to sequences of one length."""
    labels = names_for(distinct(list(table)), names)
    columns: dict[str, Column] = {}
    for name, values in zip(labels, table.values(), strict=True):
        if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__"):
            raise errors.scalar_for_column(name, values)
        columns[name] = from_list(values) if type(values) is list else _matrix(values) or column(values)
    n_rows = len(columns[labels[0]]) if labels else 0
    for name, values in columns.items():
        if len(values) != n_rows:
            raise errors.uneven_columns(labels[0], n_rows, name, len(values))
    return single(Batch(labels, n_rows, columns), batch_rows)


def _matrix(values: Any) -> Column | None:
    """The column of a 2-D array of numbers, which has a list of them in each row; None for anything else."""
    if getattr(values, "ndim", 1) != 2 or not hasattr(values, "__array__") or hasattr(values, "columns"):
        return None
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or array.shape[1] == 0:
        return None
    if isinstance(values, np.ma.MaskedArray):
        array = np.ma.filled(values.astype(np.float64), np.nan)
    return Lists(array)


def from_records(records: Sequence[Mapping[Any, Any]], names: Names, batch_rows: int | None) -> Source:
    """A list of mappings, one per row; a key that a row does not have is missing there."""
    keys = dict.fromkeys(key for record in records for key in record)
    return from_mapping({key: [record.get(key) for record in records] for key in keys}, names, batch_rows)


def from_rows(rows: Sequence[Any], names: Names, batch_rows: int | None) -> Source:
    """A list of rows of one length, each a list, a tuple or an array."""
    try:
        array = np.asarray(rows)
    except ValueError:
        raise _ragged(rows) from None
    if array.ndim == 2 and array.dtype.kind not in "biufc":
        # NumPy would make texts of the numbers that stand beside texts.
        array = np.array(rows, dtype=object)
    return from_numpy(array, names, batch_rows)


def _ragged(rows: Sequence[Any]) -> Exception:
    lengths = [np.size(row) if np.ndim(row) == 0 else len(row) for row in rows]
    row = next((row for row, length in enumerate(lengths) if length != lengths[0]), 0)
    return errors.ragged_rows(row, lengths[row], lengths[0])


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
    batches = from_arrow_batches(
        table.schema, lambda: iter(table.to_batches(max_chunksize=batch_rows)), names, n_rows=table.num_rows
    )
    return Source(lambda: (_as_texts(batch, names) for batch in batches)) if text else batches


def _as_texts(batch: Batch, names: Names) -> Batch:
    batch.named = names is not None
    batch.column(batch.names[0]).text = True
    return batch


def from_arrow_batches(
    schema: Any,
    start: Callable[[], Iterator[Any]],
    names: Names = None,
    again: bool = True,
    source: str | None = None,
    declared: Collection[int] | None = None,
    n_rows: int | None = None,
) -> Source:
    """Arrow record batches, as ``start`` gives them; without any, one batch of no rows.

    ``declared`` are the positions of the dictionary columns that were declared categorical; None means all. ``n_rows`` are
    the rows of all batches together, where that is known.
    """
    labels = names_for(distinct(schema.names, source), names)

    def batches() -> Iterator[Batch]:
        n_read = 0
        for batch in numbered(arrow_batch(labels, record_batch, source, declared) for record_batch in start()):
            n_read += batch.n_rows
            batch.share = n_read / n_rows if n_rows else None
            yield batch
        if n_read == 0:
            yield no_rows(labels, source)

    return Source(batches, source, again)


def no_rows(names: tuple[str, ...], source: str | None) -> Batch:
    """A batch of these columns without a row."""
    return Batch(names, 0, {name: Empty(0) for name in names}, True, source)


def arrow_batch(
    names: tuple[str, ...], record_batch: Any, source: str | None, declared: Collection[int] | None
) -> Batch:
    place = {name: j for j, name in enumerate(names)}

    def make(name: str) -> Column:
        j = place[name]
        return from_arrow(record_batch.column(j), categorical=declared is None or j in declared)

    return Batch(names, record_batch.num_rows, LazyColumns(make), True, source)


def from_arrow_stream(data: Any, names: Names) -> Source:
    """Anything with Arrow's stream protocol. What is an iterator itself can be read only once."""
    if hasattr(data, "__next__") or hasattr(data, "read_next_batch"):
        reader = _reader(data)
        return from_arrow_batches(reader.schema, lambda: tamed(reader), names, again=False)
    return from_arrow_batches(_reader(data).schema, lambda: tamed(_reader(data)), names)


def _reader(data: Any) -> Any:
    pa = arrow()
    return data if isinstance(data, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(data)


def tamed(batches: Any) -> Iterator[Any]:
    """The batches; what Arrow says when they break off comes as an error of ours."""
    try:
        yield from batches
    except arrow().ArrowException as error:
        why = (str(error).splitlines() or ["no reason given"])[0]
        raise errors.BanburyError(f"the stream of batches broke off: {why}") from None
