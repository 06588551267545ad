"""Tables in memory as sources: NumPy, pandas, Arrow and what speaks its protocol, mappings, records, rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.readers.arrow import arrow, from_arrow
from banbury.readers.batches import Batch, LazyColumns, Matrix, Source, Sparse, distinct, positions
from banbury.readers.columns import Column, Empty, from_array, from_list, ready
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


def given_names(names: Names, n_columns: int) -> tuple[str, ...]:
    """The names given, which must be as many as the columns, or else x0, x1 and so on."""
    if names is None:
        return positions(n_columns)
    if len(names) != n_columns:
        raise errors.wrong_number_of_names(len(names), n_columns)
    return distinct(names)


def from_numpy(array: NDArray[Any], names: Names, batch_rows: int | None) -> Source:
    """A matrix of numbers is kept as it is; other 2-D arrays are cut into columns, structured ones by field."""
    if array.dtype.names is not None:
        return from_mapping({name: array[name] for name in array.dtype.names}, names, batch_rows)
    if array.ndim != 2:
        raise errors.not_a_table(array)
    if isinstance(array, np.ma.MaskedArray):
        array = np.ma.filled(array.astype(np.float64), np.nan)
    given = given_names(names, array.shape[1])
    if array.dtype.kind in "biuf":
        return single(Matrix(array, given, names is not None), batch_rows)
    columns: dict[str, Column] = {name: _cells(array[:, j]) for j, name in enumerate(given)}
    return single(Batch(given, array.shape[0], columns, names is not None), batch_rows)


def from_sparse(matrix: Any, names: Names, batch_rows: int | None) -> Source:
    """A SciPy sparse matrix or array, in rows; numbers that stand in one place are added up."""
    if matrix.ndim != 2:
        raise errors.not_a_table(matrix)
    if matrix.dtype.kind not in "biuf" or matrix.dtype.itemsize > 8:
        raise errors.sparse_data(matrix.dtype)
    rows = matrix.tocsr()
    if has_twins(rows):
        rows = rows.copy() if rows is matrix else rows
        rows.sum_duplicates()
    if rows.dtype.kind == "b" or rows.dtype == np.float16:
        rows = rows.astype(np.uint8 if rows.dtype.kind == "b" else np.float32)
    return single(Sparse(rows, given_names(names, rows.shape[1]), names is not None), batch_rows)


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
    labels = frame.columns.tolist()
    given = distinct(labels) if names is None else given_names(names, len(labels))
    place = dict(zip(given, labels, strict=True))
    columns = LazyColumns(lambda name: from_pandas(frame[place[name]]))
    return single(Frame(frame, given, columns), batch_rows)


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
    labels = distinct(list(table))
    given = labels if names is None else given_names(names, len(labels))
    columns = {name: _listed(name, values) for name, values in zip(given, table.values(), strict=True)}
    return single(Batch(given, _common_length(columns), columns), batch_rows)


def _listed(name: str, values: Any) -> Column:
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__"):
        raise errors.scalar_for_column(name, values)
    return from_list(values) if type(values) is list else column(values)


def _common_length(columns: Mapping[str, Column]) -> int:
    lengths = {name: len(values) for name, values in columns.items()}
    first = next(iter(lengths.items()), ("", 0))
    for other in lengths.items():
        if other[1] != first[1]:
            raise errors.uneven_columns(*first, *other)
    return first[1]


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
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            return errors.ragged_rows(row, length, lengths[0])
    return errors.ragged_rows(0, lengths[0], lengths[0])


def from_texts(values: Any, names: Names, batch_rows: int | None) -> Source:
    """Plain texts: a table of one column, "text", which has no name of its own.

    >>> [batch] = from_texts(["cheap meds", None], None, None)
    >>> batch.names, batch.named, batch.texts("text")
    (('text',), False, ['cheap meds', None])
    """
    given = (TEXT,) if names is None else given_names(names, 1)
    cells = column(values)
    cells.text = True
    return single(Batch(given, len(cells), {given[0]: cells}, names is not None), batch_rows)


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
    labels = distinct(schema.names, source)
    given = labels if names is None else given_names(names, len(labels))

    def batches() -> Iterator[Batch]:
        first_row = 0
        for record_batch in start():
            batch = arrow_batch(given, record_batch, source, declared)
            batch.first_row, first_row = first_row, first_row + batch.n_rows
            batch.share = first_row / n_rows if n_rows else None
            yield batch
        if first_row == 0:
            yield Batch(given, 0, {name: Empty(0) for name in given}, True, source)

    return Source(batches, source, again)


def arrow_batch(
    names: tuple[str, ...], record_batch: Any, source: str | None, declared: Collection[int] | None
) -> Batch:
    place = {name: j for j, name in enumerate(names)}

    def make(name: str) -> Column:
        j = place[name]
        return from_arrow(record_batch.column(j), categorical=declared is None or j in declared)

    columns = LazyColumns(make)
    return Batch(names, record_batch.num_rows, columns, True, source)


def from_arrow_stream(data: Any, names: Names, batch_rows: int | None) -> Source:
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
        raise errors.broken_stream(str(error)) from None
