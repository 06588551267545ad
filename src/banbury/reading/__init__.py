"""Reads anything as batches of columns: files, folders, mail, frames, arrays, mappings, records, texts, and lists of these."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, tee
from typing import Any, Literal

import numpy as np

from banbury import errors
from banbury.reading import tables
from banbury.reading.arrow import arrow, kind_of_type
from banbury.reading.batches import (
    Batch,
    Matrix,
    ParserWork,
    Source,
    Sparse,
    Widened,
    number_rows,
    other_columns,
    row_of_cells,
)
from banbury.reading.columns import Codes, Kind, Scalar, Texts, is_missing, kind_of
from banbury.reading.documents import from_messages
from banbury.reading.files import are_paths, from_path, from_paths
from banbury.reading.options import (
    FOLDER_SETTINGS,
    MISSING_VALUES,
    SUBJECT,
    TEXT_TABLE_SETTINGS,
    Format,
    Headers,
    Options,
    check_names,
    header_columns,
)
from banbury.reading.tables import column, encode, from_texts, library
from banbury.threads import n_threads

__all__ = [
    "MISSING_VALUES",
    "SUBJECT",
    "Batch",
    "Codes",
    "Format",
    "Headers",
    "Kind",
    "ParserWork",
]
__all__ += ["Scalar", "Source", "Sparse", "Texts", "Widened", "encode", "from_texts", "header_columns", "is_texts"]
__all__ += ["n_threads", "read", "read_row"]

POLARS_STRINGS = ("String", "Categorical", "Enum")

STREAM_BATCH = 4096  # texts of a stream that make one batch, unless the user says how many


def read(
    data: Any,
    *,
    kinds: Mapping[str, Literal["number", "string", "text", "list"]] | None = None,
    batch_rows: int | None = None,
    remembered: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Source:
    """Opens a table and returns a source, which yields it in batches of columns.

    Args:
        data: The path of a CSV, Parquet or newline-delimited JSON file, a pandas or Polars frame, any object with the
            Arrow interface, a mapping of columns, a two-dimensional array, a list of rows or records, or an iterable of
            any of these. Texts are a list or one-dimensional array of strings (a table with the single column "text");
            a folder with one sub-folder per class (its rows are the files, with the columns "class" and "text"); or a
            folder of files, a list of files or a pattern such as "mail/*.eml". Each file is one text, or one per
            message (.eml, .mbox, or a file that starts like delivered mail). HTML files (.html) are converted to text.
            Files are read in blocks and arrays are not copied.
        kinds: The types of columns of text files, instead of inferring them.
        batch_rows: The most rows of a batch; chosen by the reader unless given.
        remembered: How other files were read, from ``Schema.reading``. A file of the same kind is read in the same way,
            except for the options given here.
        **settings: Options for reading files, as listed below.

    - ``columns``: the names of columns that have none. A CSV file then has no header.
    - ``header``: False if a CSV file has no header; its columns are then named "1", "2" and so on. True if the first
      line is the header even if it looks like a row; ``columns`` replaces it.
    - ``delimiter``: the character between fields, instead of detecting it.
    - ``missing_values``: the texts that mean a missing value.
    - ``quote``: the quotation mark, or "none". The default is ", except in tab-separated text without quotes in its
      header.
    - ``comment``: lines that start with it are skipped, as are the first ``skip_lines``.
    - ``format``: "text", "mail" or "html" if all files are of this kind, whatever their names; "lines" if each line is
      a text. With "lines", several files are one class each, named after the file.
    - ``headers``: the mail headers that are read with the text: "keep" for all, "drop" for none, or a list of names.
      "columns" makes a text column of each of subject, from, to and organization, next to the column "body";
      ["columns", "subject"] only of those named. News articles are then read as messages too.
    - ``classes_at``: the level of folders that names the classes, such as 2.
    - ``class_from``: the class of each file by its name, as "spm*=spam,*=ham" or a mapping. The first matching pattern
      counts; a pattern with a slash is matched against the path.

    >>> [batch] = read({"length": [1.5, 2.5], "colour": ["red", None]})
    >>> batch.kind("colour"), batch.head("length", 1), batch.codes("colour").values
    ('string', [1.5], ['red'])
    >>> [batch] = read(["a text", "and another"])
    >>> batch.names, batch.texts("text")
    (('text',), ['a text', 'and another'])
    """
    check_names(settings)
    settings = {name: value for name, value in settings.items() if value is not None}
    if type(data) is np.ndarray and data.ndim == 2 and settings.keys() <= {"columns"}:
        return tables.from_numpy(data, settings.get("columns"), batch_rows)
    if isinstance(data, (Batch, Source)):
        return data if isinstance(data, Source) else Source.of([data])
    options = Options.of(settings, kinds, batch_rows, remembered or {})
    source = _read(os.fsdecode(data) if isinstance(data, bytes) else data, options)
    makes_columns = "headers" in settings and header_columns(options.headers)
    return _with_headers(source, options.headers) if makes_columns else source


def _with_headers(source: Source, headers: Headers) -> Source:
    """The source, which raises BadSetting for rows that are not messages, since they have no headers to make columns
    of. ``headers``: the mail headers that the user wants as columns.
    """

    def batches(parser_work: ParserWork[Any] | None) -> Iterator[Batch]:
        """The batches of the source; raises BadSetting for one whose columns are not those of the mail headers that the
        user wants (``headers``) and the body. ``parser_work``: what threads that parse a batch do with it; None:
        nothing.
        """
        for batch in source.start(parser_work):
            if sum(map(batch.is_text, batch.names)) != len(header_columns(headers)) + 1:  # 1 for the body
                are_texts = len(batch.names) == 1 and batch.is_text(batch.names[0])
                location = errors.where(source.name)
                fact = (
                    f"the rows{location} are plain texts"
                    if are_texts
                    else f"the data{location} are a table with {errors.listed(batch.names)}"
                )
                raise errors.BadSetting(
                    f"headers={headers!r} turns mail headers into columns, but {fact}. "
                    "If each text or file is a message, pass format='mail'; otherwise omit headers=.",
                    setting="headers",
                    value=headers,
                )
            yield batch

    return replace(source, start=batches)


def _read(data: Any, options: Options) -> Source:
    """A source for data of any kind that ``read`` accepts, by its type. Raises an error for options that do not apply
    to it.
    """
    if isinstance(data, Mapping) or library(data) in ("numpy", "pandas", "polars", "pyarrow", "scipy"):
        options.refuse(TEXT_TABLE_SETTINGS, f"text files, but this is a {type(data).__name__}")
        options.refuse(FOLDER_SETTINGS, f"files of texts, but this is a {type(data).__name__}")
    if type(data) is np.ndarray:
        return _read_array(data, options)
    if isinstance(data, (str, os.PathLike)):
        source = from_path(data, options)
        return source if isinstance(source, Source) else _chain_tables(source, options)
    if hasattr(data, "toarray") and hasattr(data, "nnz"):
        return tables.from_sparse(data, options.columns, options.batch_rows)
    if library(data) == "pandas" and not hasattr(data, "columns") and hasattr(data, "index"):
        is_row = len(data) and all(isinstance(name, str) for name in data.index)  # taken out of a frame
        data = data.to_dict() if is_row else data
    if options.missing_values != MISSING_VALUES and _is_table(data):
        raise errors.BadSetting(
            "missing_values= is only for text files. In a table, replace missing values with None or NaN, "
            "for instance with frame.replace('?', None)."
        )
    if isinstance(data, Mapping):
        if data and _is_record(data, options.kinds or {}):
            data = {name: [value] for name, value in data.items()}
        return tables.from_mapping(data, options.columns, options.batch_rows)
    if isinstance(data, (list, tuple)):
        return _read_list(data, options)
    return _read_frame(data, options) or _read_stream(data, options)


def _read_frame(data: Any, options: Options) -> Source | None:
    """A source for ``data`` if it is a frame or array, which its interface shows; otherwise None. ``options``: how to
    read it.
    """
    if library(data) == "polars" and hasattr(data, "collect"):
        data = data.collect()
    names = options.columns
    batch_rows = options.batch_rows
    is_frame = hasattr(data, "columns")
    if library(data) == "pandas" and is_frame:
        return tables.from_frame(data, names, batch_rows)
    if library(data) == "pyarrow":
        pa = arrow()
        if isinstance(data, pa.RecordBatch):
            data = pa.Table.from_batches([data])
        if isinstance(data, pa.Table):
            return tables.from_arrow_table(data, names, batch_rows)
        if hasattr(data, "to_batches"):
            schema = getattr(data, "projected_schema", None) or data.schema
            return tables.from_arrow_batches(schema, lambda: tables.translate_stream_errors(data.to_batches()), names)
    if not is_frame and (source := _read_series(data, options)):
        return source
    is_array = library(data) in ("numpy", "pandas", "polars", "pyarrow")  # even if it has an Arrow interface
    if hasattr(data, "__array__") and not is_frame and (is_array or not hasattr(data, "__arrow_c_stream__")):
        return _read_array(data, options)
    if hasattr(data, "__arrow_c_stream__"):
        return tables.from_arrow_stream(data, names)
    if hasattr(data, "__arrow_c_array__"):
        return tables.from_arrow_table(arrow().table(arrow().record_batch(data)), names, batch_rows)
    return None


def _read_array(data: Any, options: Options) -> Source:
    """A source for an array or what NumPy can convert to one (``data``); a 1-D array of strings is texts. ``options``:
    how to read it.
    """
    array = data if isinstance(data, np.ma.MaskedArray) else np.asarray(data)  # a np.matrix becomes an array
    if array.ndim == 1 and array.dtype.kind in "OUST" and array.dtype.names is None:
        if array.dtype.kind != "O":
            return _read_texts(array, options)
        if kind_of(values := array.tolist()) == "string":
            return _read_texts(values, options)
    return tables.from_numpy(array, options.columns, options.batch_rows)


def _read_series(data: Any, options: Options) -> Source | None:
    """A source for ``data`` if it is a series or array of texts of pandas, Polars or Arrow; otherwise None.
    ``options``: how to read it.
    """
    module = library(data)  # its name
    if module == "pandas" and hasattr(data, "dtype"):
        is_text = type(data.dtype).__name__ == "StringDtype" or column(data).kind() == "string"
        return _read_texts(data, options) if is_text else None
    if module == "polars" and str(getattr(data, "dtype", "")).partition("(")[0] in POLARS_STRINGS:
        return _read_texts(arrow().chunked_array([data.to_arrow()]), options)
    if module == "pyarrow" and hasattr(data, "type") and kind_of_type(data.type) == "string":
        return _read_texts(data if hasattr(data, "chunks") else arrow().chunked_array([data]), options)
    return None


def _read_texts(values: Any, options: Options) -> Source:
    """A source for texts, or for messages or HTML pages if the options say so. ``values``: a list, array or series of
    texts, None where missing.
    """
    if options.format in ("mail", "html"):
        return from_messages(np.asarray(values, dtype=object).tolist(), options)
    if library(values) == "pyarrow":
        table = arrow().table([values], [tables.TEXT])
        return tables.from_arrow_table(table, options.columns, options.batch_rows, text=True)
    return from_texts(values, options.columns, options.batch_rows)


def _read_list(data: Sequence[Any], options: Options) -> Source:
    """A source for a list of texts, paths, records, rows or tables (``data``); the first entry decides which these are.
    ``options``: how to read them.
    """
    if not data:
        raise errors.empty_data(why="the list is empty")
    first_entry = data[0]
    if isinstance(first_entry, (str, os.PathLike)) and are_paths(data, options):
        return _read_paths(data, options)
    if isinstance(first_entry, (str, bytes)) or (is_missing(first_entry) and kind_of(data) == "string"):
        return _read_texts(data if type(data) is list else list(data), options)
    if isinstance(first_entry, Mapping) and (
        _is_record(first_entry, options.kinds or {})
        or any(map(_is_cell, first_entry.values()))  # no column of a table, so it is a row
        or not any(map(_is_column, first_entry.values()))
    ):
        names = dict.fromkeys(name for record in data for name in record)  # of the columns that any record has
        columns = {name: [record.get(name) for record in data] for name in names}
        return tables.from_mapping(columns, options.columns, options.batch_rows)
    is_table = isinstance(first_entry, (str, os.PathLike)) or _is_table(first_entry) or _speaks_arrow(first_entry)
    if first_entry.ndim == 2 if hasattr(first_entry, "ndim") else is_table:
        return _chain_tables(data, options)
    return tables.from_rows(data, options.columns, options.batch_rows)


def is_texts(data: Any) -> bool:
    """Whether ``data`` is a list or tuple whose first entry is a string."""
    return isinstance(data, (list, tuple)) and len(data) > 0 and isinstance(data[0], str)


def _read_paths(data: Sequence[Any], options: Options) -> Source:
    """A source for several documents, tables or folders, one after another. If all folders have one target column, the
    source has it, too. ``data``: their paths; ``options``: how to read them.
    """
    source_or_paths = from_paths([os.fspath(path) for path in data], name=None, options=options)
    if isinstance(source_or_paths, Source):
        return source_or_paths
    if not all(map(os.path.isdir, source_or_paths)):
        return _chain_tables(source_or_paths, options)
    sources = [_read(folder, options) for folder in source_or_paths]
    [target, *other_targets] = {source.target for source in sources}
    target = None if other_targets else target
    reading = sources[0].reading  # the options with which the first was read
    return Source(lambda _: _align_batches(chain.from_iterable(sources)), target=target, reading=reading)


def _is_record(cells: Mapping[Any, Any], kinds: Mapping[str, str]) -> bool:
    """Whether a mapping is one row: its values are scalars, or lists of numbers in columns that hold lists. ``cells``:
    maps names to values; ``kinds``: what the model needs in each column, such as "list".
    """

    def is_list(name: Any, value: Any) -> bool:
        """Whether the value is a list of numbers in a column that holds lists. ``name``: that of the column; ``kinds``:
        what the model needs in each column.
        """
        may_be_list = kinds.get(name) == "list" and _is_column(value)
        return may_be_list and all(isinstance(member, (int, float, np.number)) for member in value)

    return all(_is_cell(value) or is_list(name, value) for name, value in cells.items())


def _is_cell(value: Any) -> bool:
    """Whether ``value`` is a scalar or None."""
    return value is None or isinstance(value, (str, int, float, np.generic))


def _speaks_arrow(value: Any) -> bool:
    """Whether ``value`` has Arrow's C interface."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def _is_column(value: Any) -> bool:
    """Whether ``value`` is a list or an array of any dimension rather than a scalar; a text is a scalar."""
    if _speaks_arrow(value):
        return True
    return np.ndim(value) > 0 if hasattr(value, "__array__") else isinstance(value, (list, tuple, range))


def _is_table(value: Any) -> bool:
    """Whether ``value`` is a mapping or a frame of columns."""
    return isinstance(value, Mapping) or hasattr(value, "columns") or hasattr(value, "schema")


def _read_stream(data: Any, options: Options) -> Source:
    """A source for an iterator or iterable of texts, paths or tables (``data``); the first entry of an iterator is
    taken at once. Texts of an iterator can be read only once. Raises TypeError for anything else. ``options``: how to
    read them.
    """
    if hasattr(data, "fetchmany") and hasattr(data, "description"):
        raise TypeError(
            f"{type(data).__name__} is a database cursor, whose rows have no column names. Pass its results as a table: "
            "cursor.fetch_record_batch() (ADBC), a DuckDB relation, or pandas.read_sql(...)."
        )
    if isinstance(data, Iterator):
        remaining_entries = data
        first_entry = next(remaining_entries, None)
        data = remaining_entries if first_entry is None else chain([first_entry], remaining_entries)
        if isinstance(first_entry, str) and not are_paths([first_entry], options):

            def batches() -> Iterator[Batch]:
                """Yields batches of consecutive texts of the iterator ``data``."""
                while texts := list(islice(data, options.batch_rows or STREAM_BATCH)):
                    yield from from_texts(texts, options.columns)

            return Source(lambda _: number_rows(batches()), again=False)
        if isinstance(first_entry, (str, os.PathLike)):
            data = _Repeatable(data)
    if isinstance(data, Iterable) and not hasattr(data, "columns"):
        return _chain_tables(data, options)
    raise TypeError(
        f"cannot read rows from {type(data).__name__}. Pass the path of a file or folder, a frame, a mapping of "
        "columns, a 2-D array, a list of rows, records or texts, or batches of any of these."
    )


class _Repeatable:
    """The entries of an iterator, buffered so that it can be iterated again: file names, which may have to be read
    twice.
    """

    def __init__(self, entries: Iterator[Any]) -> None:
        """``entries``: file names, which are taken only once and then buffered."""
        self._entries = entries

    def __iter__(self) -> Iterator[Any]:
        """The entries from the first on."""
        self._entries, entries = tee(self._entries)
        return entries


def _chain_tables(data: Iterable[Any], options: Options) -> Source:
    """A source for the batches of several tables one after another, with one table in memory at a time. ``data``: the
    tables, or the paths of files; the source can be read again unless they are iterators. ``options``: how to read
    each.
    """
    # By path; kept, because a file's source remembers the types that it had to widen.
    source_of_file: dict[str, Source] = {}

    def open_table(table: Any) -> Source:
        """The source of a table or of a file at a path; that of a file is opened only once and kept in
        ``source_of_file``. ``options``: how to read it.
        """
        if not isinstance(table, (str, os.PathLike)):
            return _read(table, options)
        path = os.fspath(table)
        if path not in source_of_file:
            source_of_file[path] = _read(table, options)
        return source_of_file[path]

    is_single_pass = iter(data) is data or (
        isinstance(data, (list, tuple)) and any(hasattr(table, "__next__") for table in data)
    )
    are_files = isinstance(data, (list, tuple)) and isinstance(data[0], (str, os.PathLike))
    # The options with which the first file was read, as the source remembers them.
    reading = open_table(data[0]).reading if are_files else {}  # type: ignore[index]
    if reading.get("header") is False and options.header is None:
        options = replace(options, header=False)  # the other files are like the first

    def batches(parser_work: ParserWork[Any] | None) -> Iterator[Batch]:
        """The batches of all tables, in order. ``data``: the tables or paths; ``parser_work``: what threads that parse a
        batch do with it.
        """
        return _align_batches(batch for table in data for batch in open_table(table).start(parser_work))

    return Source(batches, again=not is_single_pass, reading=reading)


def _align_batches(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yields the batches, changed in place, with consecutive row numbers and with their columns in the order of the
    first batch. Raises an error if a batch has other columns, or if there is none.
    """
    names: tuple[str, ...] | None = None  # of the first batch
    for batch in number_rows(batches):
        names = batch.names if names is None else names
        if batch.names != names and set(batch.names) != set(names):
            raise other_columns(
                batch.names,
                names,
                f"the batch that begins at row {batch.first_row:,}{errors.where(batch.source)}",
                "batch",
            )
        batch.names = names
        batch.share = None  # how much of all tables has been read is not known
        yield batch
    if names is None:
        raise errors.empty_data(why="the iterable yielded no batches")


def read_row(row: Any, names: Sequence[str], named: bool) -> Batch:
    """Returns one row as a batch. It can be a mapping of values, a pandas Series, values in the order of ``names``, or
    a table with one row.

    A column that a mapping does not have is missing. ``names``: those of the columns; ``named``: False if they are made
    up, such as "x0". Raises an error if ``row`` is not one row, or lacks all columns.

    >>> batch = read_row({"length": 2.5, "colour": "red"}, ("length", "colour"), named=True)
    >>> batch.numbers(["length"]), batch.head("colour", 1)
    ([array([[2.5]])], ['red'])
    """
    names = tuple(names)
    if type(row) is np.ndarray and row.ndim == 1 and row.dtype.kind in "biuf":
        return Matrix(row.reshape(1, -1), tables.check_column_names(names, len(row)), named)
    if library(row) == "pandas" and not hasattr(row, "columns"):
        row = row.tolist() if not named and len(row) == len(names) else row.to_dict()
    if isinstance(row, Mapping) and not any(map(_is_column, row.values())):
        cells = {str(name): value for name, value in row.items()}
        if names and not any(name in cells for name in names):
            raise errors.unknown_column(names[0], list(cells))
        return row_of_cells(cells, names, named)
    is_list = isinstance(row, (list, tuple, np.ndarray))  # of the values of a row, or of one row or record
    if is_list and not any(_is_column(cell) or isinstance(cell, Mapping) for cell in row):
        return row_of_cells(dict(zip(tables.check_column_names(names, len(row)), row, strict=True)), names, named)
    batches = list(read(row, columns=names if is_list and not isinstance(row[0], Mapping) else None))
    if len(batches) != 1 or batches[0].n_rows != 1:
        raise errors.not_one_row(sum(batch.n_rows for batch in batches))
    [batch] = batches
    column_names = frozenset(batch.names)
    for name in names:
        if name not in column_names:
            raise errors.unknown_column(name, batch.names)
    batch.named = named
    return batch
