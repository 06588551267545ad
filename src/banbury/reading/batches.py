"""Batch: some rows of a table, column by column. Source: the batches of one table, from first to last."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any, Generic, TypeVar

import numpy as np

from banbury import _core, errors
from banbury.arrays import Array, Int
from banbury.reading.arrow import Strings, join_strings
from banbury.reading.by_name import Columns
from banbury.reading.columns import (
    EXACT,
    KINDS_OF_DTYPES,
    Codes,
    Column,
    Kind,
    Lists,
    Numbers,
    Objects,
    Scalar,
    Texts,
    Uneven,
    Unfit,
    ValueKind,
    empty_column,
    from_list,
    ready,
    small_span,
    threads_for,
)
from banbury.threads import LimitThreads

T = TypeVar("T")
NUMBERS_AT_ONCE = 1 << 20  # cells that are checked together, to save memory


class Widened(Exception):
    """A later block of a file does not fit the column type inferred from the first block. Iterating the source again
    reads the wider type.
    """

    def __init__(self, column: str, kind: Kind) -> None:
        """``column``: its name; ``kind``: the wider kind."""
        super().__init__(f"column {column!r} is read as {kind} from now on")
        self.column = column
        self.kind = kind


@dataclass(eq=False)
class Batch:
    """Some rows of a table, column by column.

    ``named``: False for arrays without column names, whose columns are "x0", "x1" and so on, and for plain texts, whose
    only column is "text". ``source``: the file or folder, for errors. ``row_names``: the file of each row, if every row
    is a document. ``non_features``: columns that are never features, such as weights stored with the rows.
    """

    names: tuple[str, ...]
    n_rows: int
    _columns: Mapping[str, Column]  # by name
    named: bool = True
    source: str | None = None
    first_row: int = 0  # rows of the source before these
    row_names: list[str] | None = None
    share: float | None = None  # the share of the source that has been read up to here, if known
    non_features: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"Batch({self.n_rows:,} rows from {self.first_row:,}; {errors.listed(self.names)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the batch with all its columns, made now if they are lazy; without ``share``. Returns the class and
        the arguments that make it again.
        """
        columns = {name: self.column(name) for name in self.names}
        facts = self.named, self.source, self.first_row, self.row_names, None, self.non_features  # None: share
        return Batch, (self.names, self.n_rows, columns, *facts)

    def column(self, name: str) -> Column:
        """The column of this name. Raises an error if there is none."""
        try:
            return self._columns[name]
        except KeyError:
            raise errors.unknown_column(name, self.names, self.source) from None

    def kind(self, name: str) -> Kind:
        """The kind of the column's values; "empty" if all are missing."""
        return self._try(name, lambda column: column.kind())

    def kinds(self, names: Sequence[str]) -> list[Kind]:
        """The kind of the values of each of these columns, in their order; "empty" if all are missing."""
        return [self.kind(name) for name in names]

    def categorical(self, name: str) -> bool:
        """Whether the source declares the column as categorical, as pandas, Polars and Arrow can."""
        return self.column(name).categorical

    def is_text(self, name: str) -> bool:
        """Whether the column is declared as texts: a plain list of them, documents, mail."""
        return self.column(name).text

    def numbers(self, names: Sequence[str]) -> list[Array]:
        """The columns with these names as numeric arrays that the kernels read, NaN where missing: in order, an array
        (rows,) for a column, or a matrix (rows × columns) for several that are stored side by side.
        """
        columns = self._columns
        # Names of columns, and matrices of columns that are stored side by side.
        runs = columns.contiguous_runs(names) if isinstance(columns, Columns) else names
        return [self._try(run, lambda column: column.numbers()) if isinstance(run, str) else ready(run) for run in runs]

    def width(self, name: str) -> int:
        """How many numbers the lists of a column have; 1 where it holds no lists."""
        return self.column(name).width

    def lists(self, name: str, width: int) -> Array:
        """A column of lists as a matrix, rows × ``width``; the row of a missing list is NaN."""
        return self._try(name, lambda column: column.lists(width))

    def codes(self, name: str, value_kind: ValueKind | None = None) -> Codes:
        """The column of this name as integer codes, one for each distinct value. Values are converted to
        ``value_kind``; None keeps their kind.
        """
        return self._try(name, lambda column: column.to_codes(value_kind, threads_for(self.n_rows)))

    def texts(self, name: str) -> Texts:
        """The column as texts in the form the kernels take; numbers are written out."""
        return self._try(name, lambda column: column.texts())

    def text_bytes(self, names: Sequence[str]) -> int | None:
        """How many bytes the columns with these names take if all are texts in immutable buffers; otherwise None."""
        if not set(self.names).issuperset(names):
            return None
        sizes = [self.column(name).text_bytes() for name in names]  # in bytes; None: not in such a buffer
        return None if None in sizes else sum(sizes)  # type: ignore[arg-type]

    def integers(self, name: str) -> Array | None:
        """The column as an integer array if it is stored as one without missing values; otherwise None."""
        column = self.column(name)
        return column.numbers() if isinstance(column, Numbers) and fits_int64(column.storage.dtype) else None

    def occurrences(self, names: Sequence[str]) -> Any:
        """The columns with these names as a count matrix (rows × columns). A sparse matrix overrides this: it returns
        row offsets, column numbers and counts.
        """
        arrays = self.numbers(names)
        if len(arrays) == 1 and arrays[0].ndim == 2:
            return arrays[0]
        return np.column_stack([array.astype(np.float64) for array in arrays])

    def head(self, name: str, n: int) -> list[Scalar]:
        """The first n values that are not missing."""
        return self._try(name, lambda column: column.head(n))

    def first(self, names: Sequence[str]) -> list[Scalar | None]:
        """The values of the first row in the columns with these names, None where missing or if there are no rows."""
        first_row = self if self.n_rows <= 1 else self.slice(0, 1)
        return [next(iter(first_row.head(name, 1)), None) for name in names]

    def rename(self, names: tuple[str, ...]) -> Batch:
        """The same columns under other names, in the same order."""
        if names == self.names:
            return self
        old_name_by_new = dict(zip(names, self.names, strict=True))
        return self._with(names, Columns(lambda name: self._columns[old_name_by_new[name]]))

    def without(self, name: str) -> Batch:
        """The batch without this column."""
        return self._with(tuple(column for column in self.names if column != name), self._columns)

    def only(self, names: Sequence[str]) -> Batch:
        """The batch with only the columns of these names, in this order. Raises an error for an unknown name."""
        column_names = frozenset(self.names)
        for name in names:
            if name not in column_names:
                raise errors.unknown_column(name, self.names, self.source)
        return self._with(tuple(names), self._columns)

    def _with(self, names: tuple[str, ...], columns: Mapping[str, Column]) -> Batch:
        """A batch of the same rows, with all facts about them, under these names and with these columns."""
        return Batch(
            names,
            self.n_rows,
            columns,
            self.named,
            self.source,
            self.first_row,
            self.row_names,
            self.share,
            self.non_features,
        )

    def slice(self, start: int, stop: int) -> Batch:
        """The rows from ``start`` up to ``stop``, numbered in this batch, without ``share``."""
        columns = self._change_columns(lambda matrix: matrix[start:stop], lambda column: column.slice(start, stop))
        n_rows = len(range(self.n_rows)[start:stop])
        row_names = self.row_names and self.row_names[start:stop]
        first_row = self.first_row + start
        return Batch(
            self.names, n_rows, columns, self.named, self.source, first_row, row_names, non_features=self.non_features
        )

    def with_codes(self, names: Sequence[str]) -> Batch:
        """The same rows with the columns of these names replaced by codes of their distinct values."""
        codes_by_name = {name: self.codes(name) for name in names}
        return self.with_columns(
            {name: codes.as_categorical() if self.categorical(name) else codes for name, codes in codes_by_name.items()}
        )

    def with_columns(self, columns: Mapping[str, Any]) -> Batch:
        """The same rows with some columns replaced. ``columns``: maps names to new columns."""
        old_columns = self._columns
        return self._with(self.names, Columns(lambda name: columns[name] if name in columns else old_columns[name]))

    def take(self, rows: Int) -> Batch:
        """The rows with these numbers (from 0, in this batch), in this order; without row names and other facts about
        them.
        """
        columns = self._change_columns(lambda matrix: matrix.take(rows, axis=0), lambda column: column.take(rows))
        return Batch(self.names, len(rows), columns, self.named, self.source, non_features=self.non_features)

    def _change_columns(
        self, change_matrix: Callable[[Array], Array], change_column: Callable[[Column], Column]
    ) -> Mapping[str, Column]:
        """The columns by name, each replaced by ``change_column`` of it; columns stored side by side in a matrix are
        replaced together by ``change_matrix``.
        """
        columns = self._columns
        return (
            columns.change(change_matrix, change_column)
            if isinstance(columns, Columns)
            else Columns(lambda name: change_column(columns[name]))
        )

    def _try(self, name: str, ask: Callable[[Column], T]) -> T:
        """What ``ask`` returns for one column, such as its numbers. If it raises, because a cell is of the wrong kind,
        the error names the column, the row and the source.
        """
        column = self.column(name)
        try:
            return ask(column)
        except Unfit as unfit:
            value, row, needed = unfit.args  # needed: what the cell should be, in words
            row += self.first_row  # from here on its number in the source
            hint = errors.A_HEADER if row == 0 and self.source is not None and not self.named else ""
            raise errors.wrong_type(value, name, needed, row, self.source, hint) from None
        except Uneven as uneven:
            row, length, width = uneven.args  # length: of this list; width: of the column's other lists
            row += self.first_row
            raise errors.BadValue(
                f"row {row:,} of column {name!r}{errors.where(self.source)} is a list of {length:,} numbers, but "
                f"the other lists in this column have {width:,}. Use lists of one length, with None for missing "
                f"ones, or leave the column out with features={{{name!r}: None}}.",
                column=name,
                row=row,
            ) from None
        except errors.BanburyError:
            raise
        except (ArithmeticError, NotImplementedError, TypeError, ValueError) as error:
            raise errors.BadValue(
                f"column {name!r}{errors.where(self.source)} contains a value that cannot be counted ({type(error).__name__}: "
                f"{error}). Convert it to numbers or texts, or leave it out with features={{{name!r}: None}}.",
                column=name,
            ) from None


def remember_answers(batch: Batch) -> Batch:
    """A copy of the batch that caches its numbers, codes, lists and occurrences, which every model asks for again."""
    caching_batch = copy(batch)
    for method in ("numbers", "codes", "lists", "occurrences"):
        setattr(caching_batch, method, _answer_once(getattr(batch, method)))
    return caching_batch


def _answer_once(ask: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls ``ask``, a method of a batch whose first argument is a column name or several, and
    remembers its answers.
    """
    answers: dict[Any, Any] = {}  # by the arguments

    def answer(names: Any, *arguments: Any) -> Any:
        """What ``ask`` returns for a column name or several (``names``) and further arguments. It is computed the first
        time, and then kept in ``answers``.
        """
        key = names if isinstance(names, str) else tuple(names), *arguments
        if key not in answers:
            answers[key] = ask(names, *arguments)
        return answers[key]

    return answer


class Matrix(Batch):
    """Rows of numbers stored as one 2-D array or sparse matrix, which is never copied."""

    def __init__(self, matrix: Any, names: tuple[str, ...], named: bool, source: str | None = None) -> None:
        """``matrix``: the numbers, rows × columns; ``names``: those of its columns; ``named``: False if they are made
        up; ``source``: the file, for errors, None if there is none.
        """
        super().__init__(names, matrix.shape[0], Columns(lambda name: Numbers(self._column(name))), named, source)
        self._storage = matrix
        self._array = ready(matrix) if isinstance(matrix, np.ndarray) else matrix  # in a type that the kernels read
        self._own_names = names  # of all columns of the matrix; ``names`` may be fewer

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the matrix as it is stored."""
        arguments = self._storage, self._own_names, self.named, self.source
        return type(self), arguments, {"names": self.names, "first_row": self.first_row}

    def _column(self, name: str) -> Array:
        """The numbers of one column."""
        return self._storage[:, self._position_by_name[name]]  # type: ignore[no-any-return]

    def _first_row(self) -> Array:
        """The numbers of the first row, one per column of the matrix."""
        return self._storage[0]  # type: ignore[no-any-return]

    @cached_property
    def _position_by_name(self) -> dict[str, int]:
        """The position of each column by its name."""
        return {name: position for position, name in enumerate(self._own_names)}

    def _positions_of(self, names: Sequence[str]) -> list[int] | None:
        """The positions in the matrix of the columns with these names; None if they are all its columns in order."""
        if names is self._own_names or tuple(names) == self._own_names:
            return None
        try:
            return [self._position_by_name[name] for name in names]
        except KeyError as error:
            raise errors.unknown_column(error.args[0], self.names, self.source) from None

    def categorical(self, name: str) -> bool:
        return False

    def is_text(self, name: str) -> bool:
        return False

    def rename(self, names: tuple[str, ...]) -> Batch:
        """The same matrix with other column names."""
        if names == self.names:
            return self
        batch = type(self)(self._storage, names, self.named, self.source)
        batch.first_row = self.first_row
        return batch

    def slice(self, start: int, stop: int) -> Batch:
        """The rows from ``start`` up to ``stop``, numbered in this batch: a view of the matrix."""
        batch = type(self)(self._storage[start:stop], self._own_names, self.named, self.source)
        batch.first_row = self.first_row + start
        return batch

    def take(self, rows: Int) -> Batch:
        """The rows with these numbers (from 0, in this batch), in this order."""
        return type(self)(self._storage.take(rows, axis=0), self._own_names, self.named, self.source)

    def numbers(self, names: Sequence[str]) -> list[Array]:
        """The columns with these names as arrays of numbers (rows,) that the kernels read, NaN where missing; the
        matrix itself (rows × columns) if they are all its columns in order.
        """
        positions = self._positions_of(names)  # None: all columns in order
        return [self._array] if positions is None else [self._array[:, position] for position in positions]

    @property
    def dtype(self) -> Any:
        """The NumPy type of the numbers."""
        return self._storage.dtype

    def first(self, names: Sequence[str]) -> list[Scalar | None]:
        """The values of the first row in the columns with these names, None where missing or if there are no rows."""
        if self.n_rows == 0 or isinstance(self._storage, np.ma.MaskedArray):
            return super().first(names)
        positions = self._positions_of(names)  # None: all columns
        row = self._first_row() if positions is None else self._first_row()[positions]
        return [None if value != value else value for value in row.tolist()]

    def kind(self, name: str) -> Kind:
        """The kind of the column's values; "empty" if all are missing. Reads only the first row where that decides."""
        kind = self._kinds[self._position_by_name[name]]  # "empty": missing in the first row, so perhaps in all rows
        return super().kind(name) if kind == "empty" else kind

    def kinds(self, names: Sequence[str]) -> list[Kind]:
        """The kind of the values of each column with these names, in their order; "empty" if all are missing. The first
        row decides where it has a number; other rows are read only where it is NaN.
        """
        positions = self._positions_of(names)  # None: all columns in order
        kinds = self._kinds if positions is None else [self._kinds[position] for position in positions]
        if "empty" not in kinds:
            return kinds
        return [self.kind(name) if kind == "empty" else kind for name, kind in zip(names, kinds, strict=True)]

    @cached_property
    def _kinds(self) -> list[Kind]:
        """The kind of every column of the matrix, in order, by its NumPy type and first row: "empty" where that row is
        NaN, though later rows may have numbers.
        """
        kind = KINDS_OF_DTYPES[self.dtype.kind]
        if kind != "float" or self.n_rows == 0:
            return [kind] * len(self._own_names)
        return ["empty" if is_missing else kind for is_missing in np.isnan(self._first_row()).tolist()]

    def codes(self, name: str, value_kind: ValueKind | None = None) -> Codes:
        """The column of this name as integer codes, one for each distinct value; integers from a small range are their
        own codes, without a copy. Values are converted to ``value_kind``; None keeps their kind.
        """
        if value_kind in (None, "integer") and fits_int64(self._array.dtype):
            position = self._position_by_name[name]
            lows, highs = self.spans  # the lowest and the highest number of each column
            low = int(lows[position])
            high = int(highs[position])
            if high - low < small_span(self.n_rows):
                return Codes(self._array[:, position], low, range(low, high + 1))
        return super().codes(name, value_kind)

    @cached_property
    def spans(self) -> tuple[Int, Int]:
        """The lowest and the highest number of every column, two arrays from one pass over the matrix."""
        return _core.span([self._array], threads_for(self.n_rows))


class Sparse(Matrix):
    """Rows of numbers stored as a SciPy sparse matrix in CSR format; entries that are not stored are zero."""

    @property
    def matrix(self) -> Any:
        """The stored sparse matrix, rows × columns."""
        return self._storage

    def _column(self, name: str) -> Array:
        """The numbers of one column, with its zeros."""
        return self._dense([name])[:, 0]

    def _first_row(self) -> Array:
        """The numbers of the first row, with its zeros."""
        return np.asarray(self._storage[:1].toarray())[0]  # type: ignore[no-any-return]

    def _dense(self, names: Sequence[str]) -> Array:
        """The columns with these names as a dense matrix, rows × columns, in their order."""
        return ready(np.asarray(self._choose_columns(names).toarray()))

    def _choose_columns(self, names: Sequence[str]) -> Any:
        """The columns with these names as a sparse matrix (rows × columns); the stored one if they are all its columns
        in order.
        """
        positions = self._positions_of(names)  # None: all columns in order
        return self._storage if positions is None else self._storage[:, positions]

    def take(self, rows: Int) -> Batch:
        """The rows with these numbers (from 0, in this batch), in this order."""
        return Sparse(self._storage[rows], self._own_names, self.named, self.source)

    def numbers(self, names: Sequence[str]) -> list[Array]:
        """The columns with these names as one dense matrix, rows × columns, in a list; an empty list without names."""
        return [self._dense(names)] if names else []

    def codes(self, name: str, value_kind: ValueKind | None = None) -> Codes:
        """The column of this name as integer codes, one for each distinct value. Values are converted to
        ``value_kind``; None keeps their kind. ``Matrix.codes`` needs an array, so this is the method of ``Batch``.
        """
        return Batch.codes(self, name, value_kind)

    def occurrences(self, names: Sequence[str]) -> Any:
        """The columns with these names in CSR form: row offsets (rows + 1), and the column number and the count of each
        stored entry.
        """
        matrix = self._choose_columns(names)
        return matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False), matrix.data


def all_whole(batch: Batch, names: Sequence[str]) -> set[str]:
    """The names of those columns of the batch, among ``names``, whose numbers are all integers, small enough for
    doubles to hold exactly. Missing numbers do not count.
    """
    are_whole: list[bool] = []  # one for each of ``names``
    for array in batch.numbers(names) if names else []:
        matrix = array[:, None] if array.ndim == 1 else array  # rows × columns
        n_rows, n_columns = matrix.shape
        column_is_whole = np.ones(n_columns, dtype=np.bool_)
        chunk_rows = max(NUMBERS_AT_ONCE // max(n_columns, 1), 1)
        for start in range(0, n_rows if matrix.dtype.kind == "f" else 0, chunk_rows):  # in chunks, to save memory
            chunk = matrix[start : start + chunk_rows]  # rows × columns
            is_not_whole = (chunk != np.rint(chunk)) | (np.abs(chunk) > EXACT)
            column_is_whole &= ~(is_not_whole & ~np.isnan(chunk) if is_not_whole.any() else is_not_whole).any(axis=0)
        are_whole += column_is_whole.tolist()
    return {name for name, is_whole in zip(names, are_whole, strict=True) if is_whole}


def fits_int64(dtype: np.dtype[Any]) -> bool:
    """Whether ``dtype`` is an integer type whose numbers all fit into 64-bit signed integers."""
    return dtype.kind in "iu" and dtype != np.uint64


def row_of_cells(cells: Mapping[str, Any], names: tuple[str, ...], named: bool) -> Batch:
    """A batch of one row. ``cells``: maps columns to values; columns of ``names`` that it lacks are missing. ``named``:
    False if the names are made up. Columns are made when they are first used.
    """

    def make(name: str) -> Column:
        """The column of this name, which has one cell: its value in ``cells``, or missing. Raises KeyError for a name
        that is neither there nor in ``names``.
        """
        if name not in cells and name not in names:
            raise KeyError(name)
        return from_list([cells.get(name)])

    def numbers_of(columns: Sequence[str]) -> Array | None:
        """The ``cells`` of the columns with these names as a matrix of one row; None unless all are numbers, or missing
        in columns that the row has (``names``).
        """
        row = [cells.get(name) for name in columns]
        types = set(map(type, row))
        if not types <= {float, int, type(None)} or (type(None) in types and not {*cells, *names}.issuperset(columns)):
            return None
        return np.array([row], dtype=np.float64)

    return Batch(names, 1, Columns(make, numbers_of=numbers_of), named)


@dataclass(eq=False)
class ParserWork(Generic[T]):
    """Work that parser threads do with each batch of a file once it is parsed, such as counting it. ``threads``: how
    many may parse, None for all; ``work``: a function of a batch, None to do nothing.

    Results wait until ``result`` takes them. If the work fails or warns on a parser thread there is no result, and the
    consumer of the batch repeats it.
    """

    threads: int | None
    work: Callable[[Batch], T] | None = None
    _results: dict[Batch, T] = field(default_factory=dict)  # by batch, until they are taken

    def __call__(self, batch: Batch) -> None:
        """Does the work with a batch and stores its result for the consumer, unless it fails or warns."""
        if self.work is None:  # there is nothing to do
            return
        with LimitThreads(threads=1), contextlib.suppress(errors.BanburyError), errors.collect_warnings() as warnings:
            result = self.work(batch)
            if not warnings:
                self._results[batch] = result

    def result(self, batch: Batch) -> T | None:
        """The stored result for a batch, which is removed; None if the work was not done, failed or warned."""
        return self._results.pop(batch, None)


@dataclass(frozen=True, eq=False)
class Source:
    """The batches of one table, in order. ``start``: a function that begins a new pass; if threads parse the batches,
    they do the ``ParserWork`` that it takes, which other sources ignore.

    ``name``: the file or folder, for errors. ``again``: whether the source can be iterated more than once. ``target``:
    the column of the classes if the source itself names it, as a folder does. ``weights``: the column of the weights,
    likewise. ``holds_no_lists``: whether cells are certainly only texts and numbers. ``reading``: options other than
    the defaults with which a file is read.
    """

    start: Callable[[ParserWork[Any] | None], Iterator[Batch]]
    name: str | None = None
    again: bool = True
    target: str | None = None
    weights: str | None = None
    holds_no_lists: bool = False
    reading: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, batches: Iterable[Batch], name: str | None = None, **fields: Any) -> Source:
        """A source of batches in memory, which can be pickled. ``name``: the file or folder, for errors; ``fields``:
        further fields of ``Source``.
        """
        return cls(partial(_start_in_memory, tuple(batches)), name, **fields)

    def __iter__(self) -> Iterator[Batch]:
        """Begins a pass over the batches, without work for parser threads."""
        return self.start(None)

    def peekable(self) -> Source:
        """The source itself if it can be read again; otherwise one that buffers its first batches, so that iterating up
        to the first rows does not use them up.
        """
        if self.again:
            return self
        batches = iter(self)  # those not buffered yet
        buffered = list[Batch]()

        def start(_: ParserWork[Any] | None) -> Iterator[Batch]:
            """Yields the ``buffered`` batches and then the others, ``batches``; a pass that ends at the first batch with
            rows only fills the buffer. The argument, work for parser threads, is not used.
            """
            while not (buffered and buffered[-1].n_rows) and (batch := next(batches, None)) is not None:
                buffered.append(batch)
            yield from buffered
            buffered.clear()
            yield from batches

        return replace(self, start=start)


def _start_in_memory(batches: tuple[Batch, ...], _: ParserWork[Any] | None) -> Iterator[Batch]:
    """Begins a pass over batches in memory. The second argument, work for parser threads, is not used."""
    return iter(batches)


def no_rows(names: tuple[str, ...], source: str | None) -> Batch:
    """A batch without rows. ``names``: those of its columns; ``source``: the file, for errors, None if there is none."""
    return Batch(names, 0, {name: empty_column(n_rows=0) for name in names}, named=True, source=source)


def number_rows(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yields the batches, each with ``first_row`` set in place to the number of rows before it."""
    first_row = 0
    for batch in batches:
        batch.first_row = first_row
        first_row += batch.n_rows
        yield batch


def join_batches(batches: Sequence[Batch]) -> Batch:
    """Returns consecutive batches of the same columns as one, without row names.

    Each column is joined when it is first asked for, and copied, so that no larger array stays in memory.
    """
    first_batch = batches[0]
    columns = Columns(lambda name: _join_columns([batch.column(name) for batch in batches]))
    batch = first_batch._with(first_batch.names, columns)
    batch.n_rows = sum(joined_batch.n_rows for joined_batch in batches)
    batch.row_names = None
    return batch


def _join_columns(columns: Sequence[Column]) -> Column:
    """Returns columns concatenated to one: texts and arrays of one type in their own form, others as lists of cells."""
    first_column = columns[0]
    string_columns = [column for column in columns if isinstance(column, Strings)]
    if 1 < len(string_columns) == len(columns) and (joined_strings := join_strings(string_columns)) is not None:
        return joined_strings
    array_columns = [
        array_column
        for array_column in columns
        if isinstance(array_column, (Numbers, Lists)) and isinstance(array_column.storage, np.ndarray)
    ]
    if (
        len(array_columns) == len(columns)
        and len({(type(array_column), array_column.width, array_column.are_integers) for array_column in array_columns})
        == 1
    ):
        return first_column._with(np.concatenate([column.storage for column in array_columns]))
    joined_cells = [cell for column in columns for cell in column.cells()]
    if (
        isinstance(first_column, Objects)
        and first_column.known_kind
        and all(isinstance(column, Objects) for column in columns)
    ):
        return Objects(joined_cells, known_kind=first_column.known_kind)
    if any(column.text for column in columns):
        return Objects(joined_cells, text=True)
    joined_column = from_list(joined_cells)
    return (
        joined_column.to_codes(value_kind=None, threads=1).as_categorical()
        if any(column.categorical for column in columns)
        else joined_column
    )


@lru_cache(maxsize=64)
def number_names(n_columns: int) -> tuple[str, ...]:
    """The names of columns without names: x0, x1 and so on."""
    return tuple(f"x{position}" for position in range(n_columns))


def as_name(column: Any) -> Any:
    """The name of a column as text if it is a whole number, as data frames allow; anything else unchanged.

    >>> as_name(20), as_name("age"), as_name([1, 0])
    ('20', 'age', [1, 0])
    """
    return str(column) if isinstance(column, (int, np.integer)) and not isinstance(column, bool) else column


def other_columns(names: Sequence[str], first_columns: Sequence[str], subject: str, kind: str) -> errors.SchemaMismatch:
    """The error of a batch or partition whose columns (``names``) differ from those of the first (``first_columns``).
    ``subject``: which one, in words; ``kind``: "batch" or "partition".
    """
    first_names = frozenset(first_columns)
    own_names = frozenset(names)
    lacking = [name for name in first_columns if name not in own_names]
    extra = [name for name in names if name not in first_names]
    # At most two phrases, such as "lacks 'a'".
    differences = [f"lacks {errors.listed(map(repr, lacking))}"] * bool(lacking)
    differences += [f"adds {errors.listed(map(repr, extra))}"] * bool(extra)
    return errors.SchemaMismatch(
        f"{subject} {' and '.join(differences)}. Every {kind} must have the columns of the first.",
        lacking=lacking,
        extra=extra,
    )


def distinct(names: Sequence[Any], source: str | None = None) -> tuple[str, ...]:
    """The names as texts, in order. Raises DuplicateColumn if two are equal. ``source``: the file, for that error."""
    names_as_texts = tuple(map(str, names))
    if len(set(names_as_texts)) < len(names_as_texts):
        frequencies = Counter(names_as_texts)
        duplicate = next(name for name in names_as_texts if frequencies[name] > 1)
        raise errors.DuplicateColumn(
            f"two columns are named {duplicate!r}{errors.where(source)}. Rename one of them.", column=duplicate
        )
    return names_as_texts
