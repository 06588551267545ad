"""Batch: some rows of a table, column by column. Source: the batches of one table, from first to last."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
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
    Wanted,
    from_list,
    ready,
    small_span,
    threads_for,
)
from banbury.threads import LimitThreads

T = TypeVar("T")
STRETCH = 1 << 20  # numbers that are looked at in one go


class Widened(Exception):
    """A later block of a file does not fit the type that the first showed: iterated again, the source reads the wider type."""

    def __init__(self, column: str, kind: Kind, line: int | None = None) -> None:
        super().__init__(f"column {column!r} is read as {kind} from line {line} on")
        self.column = column
        self.kind = kind
        self.line = line


class Batch:
    """Some rows of a table. ``first_row`` counts the rows of the source before it.

    ``named`` is false for arrays without names, whose columns are "x0", "x1" and so on, and for plain texts, whose
    only column is "text". ``row_names`` are the files that the rows came from, where each came from one. ``share`` is how
    much of the source is read with this batch, where that is known. ``aside`` are columns that are no features, whatever else
    is said: weights that came with the rows.
    """

    def __init__(
        self, names: tuple[str, ...], n_rows: int, columns: Mapping[str, Column], named: bool = True, source: Any = None
    ) -> None:
        self.names = names
        self.named = named
        self.n_rows = n_rows
        self.first_row = 0
        self._columns = columns
        self.source: str | None = source
        self.row_names: list[str] | None = None
        self.share: float | None = None
        self.aside: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"Batch({self.n_rows:,} rows from {self.first_row:,}; {errors.listed(self.names)})"

    def __reduce__(self) -> tuple[Any, ...]:
        columns = {name: self.column(name) for name in self.names}
        made = self.names, self.n_rows, columns, self.named, self.source
        return _unpickle, (Batch, made, self.names, self.first_row, self.row_names)

    def column(self, name: str) -> Column:
        try:
            return self._columns[name]
        except KeyError:
            raise errors.unknown_column(name, self.names, self.source) from None

    def kind(self, name: str) -> Kind:
        """What the column holds; "empty" when it has no value at all."""
        return self._try(name, lambda column: column.kind())

    def kinds(self, names: Sequence[str]) -> list[Kind]:
        """The same of several columns."""
        return [self.kind(name) for name in names]

    def categorical(self, name: str) -> bool:
        """Whether the column's maker declared it a choice among values (pandas, Polars and Arrow can)."""
        return self.column(name).categorical

    def is_text(self, name: str) -> bool:
        """Whether the column was given as texts: a plain list of them, documents, mail."""
        return self.column(name).text

    def numbers(self, names: Sequence[str]) -> list[NDArray[Any]]:
        """Arrays that together hold these columns in order, as the kernels read them; missing is NaN."""
        columns = self._columns
        pieces = columns.stretches(names) if isinstance(columns, Columns) else names
        return [self._try(x, lambda column: column.numbers()) if isinstance(x, str) else ready(x) for x in pieces]

    def width(self, name: str) -> int:
        """How many numbers the lists of a column have; 1 where it holds no lists."""
        return self.column(name).width

    def lists(self, name: str, width: int) -> NDArray[Any]:
        """A column of lists of so many numbers, (rows, numbers), as the kernels read them; a missing list is NaN."""
        return self._try(name, lambda column: column.lists(width))

    def codes(self, name: str, value_kind: Wanted | None = None) -> Codes:
        """The column as codes of its distinct values, which are of the ``wanted`` kind or else their own."""
        return self._try(name, lambda column: column.to_codes(value_kind, threads_for(self.n_rows)))

    def texts(self, name: str) -> Texts:
        """The column as texts, as the kernels take them. Numbers among them are written out."""
        return self._try(name, lambda column: column.texts())

    def text_bytes(self, names: Sequence[str]) -> int | None:
        """How many bytes these columns take, where they are texts side by side, and stay what they are."""
        if not set(self.names).issuperset(names):
            return None
        sizes = [self.column(name).text_bytes() for name in names]
        return None if None in sizes else sum(sizes)  # type: ignore[arg-type]

    def integers(self, name: str) -> NDArray[Any] | None:
        """The column itself where it is an array of whole numbers, none of them missing."""
        column = self.column(name)
        return column.numbers() if isinstance(column, Numbers) and fits_int64(column.held.dtype) else None

    def occurrences(self, names: Sequence[str]) -> Any:
        """These columns side by side, as the kernels take them: a matrix, or offsets, columns and values of a sparse one."""
        columns = self.numbers(names)
        if len(columns) == 1 and columns[0].ndim == 2:
            return columns[0]
        return np.column_stack([column.astype(np.float64) for column in columns])

    def whole(self, names: Sequence[str]) -> NDArray[Any] | None:
        """The matrix of these columns, where it is one of whole numbers and has no others."""
        return None

    def head(self, name: str, n: int) -> list[Scalar]:
        """The first n values that are not missing."""
        return self._try(name, lambda column: column.head(n))

    def first(self, names: Sequence[str]) -> list[Scalar | None]:
        """The first value of each of these columns that is not missing; None where all are."""
        return [next(iter(self.head(name, 1)), None) for name in names]

    def rename(self, names: tuple[str, ...]) -> Batch:
        """The same columns under other names, in the same order."""
        if names == self.names:
            return self
        old = dict(zip(names, self.names, strict=True))
        return self._with(names, Columns(lambda name: self._columns[old[name]]))

    def without(self, name: str) -> Batch:
        """The other columns."""
        return self._with(tuple(other for other in self.names if other != name), self._columns)

    def only(self, names: Sequence[str]) -> Batch:
        """These columns, in this order."""
        column_names = frozenset(self.names)
        for name in names:
            if name not in column_names:
                raise errors.unknown_column(name, self.names, self.source)
        return self._with(tuple(names), self._columns)

    def _with(self, names: tuple[str, ...], columns: Mapping[str, Column]) -> Batch:
        batch = Batch(names, self.n_rows, columns, self.named, self.source)
        batch.first_row = self.first_row
        batch.row_names = self.row_names
        batch.share = self.share
        batch.aside = self.aside
        return batch

    def slice(self, start: int, stop: int) -> Batch:
        """The rows from start up to stop."""
        columns = self._change_columns(lambda matrix: matrix[start:stop], lambda column: column.slice(start, stop))
        part = Batch(self.names, len(range(self.n_rows)[start:stop]), columns, self.named, self.source)
        part.first_row = self.first_row + start
        part.row_names = None if self.row_names is None else self.row_names[start:stop]
        return part

    def with_codes(self, names: Sequence[str]) -> Batch:
        """The same rows, with these columns as codes of their distinct values."""
        coded = {name: self.codes(name) for name in names}
        return self.with_columns(
            {name: codes.as_categorical() if self.categorical(name) else codes for name, codes in coded.items()}
        )

    def with_columns(self, columns: Mapping[str, Any]) -> Batch:
        """The same rows, with these columns in the place of those of their names."""
        old_columns = self._columns
        return self._with(self.names, Columns(lambda name: columns[name] if name in columns else old_columns[name]))

    def take(self, rows: NDArray[np.int64]) -> Batch:
        """These rows, in this order."""
        columns = self._change_columns(lambda matrix: matrix.take(rows, axis=0), lambda column: column.take(rows))
        return Batch(self.names, len(rows), columns, self.named, self.source)

    def _change_columns(
        self, matrix: Callable[[NDArray[Any]], NDArray[Any]], column: Callable[[Column], Column]
    ) -> Mapping[str, Column]:
        """The columns with each of them changed, matrices of packed ones as a whole."""
        columns = self._columns
        return columns.change(matrix, column) if isinstance(columns, Columns) else Columns(lambda n: column(columns[n]))

    def _try(self, name: str, ask: Callable[[Column], T]) -> T:
        column = self.column(name)
        try:
            return ask(column)
        except Unfit as unfit:
            value, row, needed = unfit.args
            row += self.first_row
            hint = errors.A_HEADER if row == 0 and self.source is not None and not self.named else ""
            raise errors.wrong_type(value, name, needed, row, self.source, hint) from None
        except Uneven as uneven:
            row, length, width = uneven.args
            row += self.first_row
            text = f"row {row:,} of column {name!r}{errors.where(self.source)} is a list of {length:,} numbers, but "
            text += f"the other lists in this column have {width:,}. Use lists of one length, with None for missing "
            raise errors.BadValue(
                f"{text}ones, or leave the column out with features={{{name!r}: None}}.", column=name, row=row
            ) from None
        except errors.BanburyError:
            raise
        except (ArithmeticError, NotImplementedError, TypeError, ValueError) as problem:
            text = f"column {name!r}{errors.where(self.source)} contains a value that cannot be counted ({type(problem).__name__}"
            text += f": {problem}). Convert it to numbers or texts, or leave it out with features={{{name!r}: None}}."
            raise errors.BadValue(text, column=name) from None


def _unpickle(kind: Callable[..., Batch], made: tuple[Any, ...], names: Any, first_row: int, row_names: Any) -> Batch:
    batch = kind(*made)
    batch.names = names
    batch.first_row = first_row
    batch.row_names = row_names
    return batch


def remember_answers(batch: Batch) -> Batch:
    """The same rows in a batch that keeps what it was asked for, since it is asked again for every model."""
    remembering = copy(batch)
    for question in ("numbers", "codes", "lists", "occurrences"):
        setattr(remembering, question, _answer_once(getattr(batch, question)))
    return remembering


def _answer_once(ask: Callable[..., Any]) -> Callable[..., Any]:
    answers: dict[Any, Any] = {}

    def answer(columns: Any, *more: Any) -> Any:
        key = columns if isinstance(columns, str) else tuple(columns), *more
        if key not in answers:
            answers[key] = ask(columns, *more)
        return answers[key]

    return answer


class Matrix(Batch):
    """Rows of nothing but numbers, held as one 2-D array, which is never copied."""

    def __init__(self, held: Any, names: tuple[str, ...], named: bool, source: str | None = None) -> None:
        super().__init__(names, held.shape[0], Columns(lambda name: Numbers(self._column(name))), named, source)
        self._held = held
        self._array = ready(held) if isinstance(held, np.ndarray) else held
        self._own_names = names

    def __reduce__(self) -> tuple[Any, ...]:
        made = self._held, self._own_names, self.named, self.source
        return _unpickle, (type(self), made, self.names, self.first_row, None)

    def _column(self, name: str) -> NDArray[Any]:
        return self._held[:, self._place[name]]  # type: ignore[no-any-return]

    def _first_row(self) -> NDArray[Any]:
        return self._held[0]  # type: ignore[no-any-return]

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self._own_names)}

    def _places(self, names: Sequence[str]) -> list[int] | None:
        """The positions of these columns; None if they are all of them, in order."""
        if names is self._own_names or tuple(names) == self._own_names:
            return None
        try:
            return [self._place[name] for name in names]
        except KeyError as error:
            raise errors.unknown_column(error.args[0], self.names, self.source) from None

    def categorical(self, name: str) -> bool:
        return False

    def is_text(self, name: str) -> bool:
        return False

    def rename(self, names: tuple[str, ...]) -> Batch:
        if names == self.names:
            return self
        batch = type(self)(self._held, names, self.named, self.source)
        batch.first_row = self.first_row
        return batch

    def slice(self, start: int, stop: int) -> Batch:
        part = type(self)(self._held[start:stop], self._own_names, self.named, self.source)
        part.first_row = self.first_row + start
        return part

    def take(self, rows: NDArray[np.int64]) -> Batch:
        return type(self)(self._held.take(rows, axis=0), self._own_names, self.named, self.source)

    def numbers(self, names: Sequence[str]) -> list[NDArray[Any]]:
        places = self._places(names)
        return [self._array] if places is None else [self._array[:, j] for j in places]

    def whole(self, names: Sequence[str]) -> NDArray[Any] | None:
        return self._array if fits_int64(self.dtype) and tuple(names) == self._own_names else None

    @property
    def dtype(self) -> Any:
        return self._held.dtype

    def first(self, names: Sequence[str]) -> list[Scalar | None]:
        if self.n_rows != 1 or isinstance(self._held, np.ma.MaskedArray):
            return super().first(names)
        places = self._places(names)
        row = self._first_row() if places is None else self._first_row()[places]
        return [None if value != value else value for value in row.tolist()]

    def kind(self, name: str) -> Kind:
        kind = self._kinds[self._place[name]]
        return super().kind(name) if kind == "empty" else kind  # empty in the first row: perhaps in all

    def kinds(self, names: Sequence[str]) -> list[Kind]:
        places = self._places(names)
        kinds = self._kinds if places is None else [self._kinds[place] for place in places]
        if "empty" not in kinds:
            return kinds
        return [self.kind(name) if kind == "empty" else kind for name, kind in zip(names, kinds, strict=True)]

    @cached_property
    def _kinds(self) -> list[Kind]:
        kind = KINDS_OF_DTYPES[self.dtype.kind]
        if kind != "float" or self.n_rows == 0:
            return [kind] * len(self._own_names)
        return ["empty" if missing else kind for missing in np.isnan(self._first_row()).tolist()]

    def codes(self, name: str, value_kind: Wanted | None = None) -> Codes:
        if value_kind in (None, "integer") and fits_int64(self._array.dtype):
            j = self._place[name]
            low = int(self.spans[0][j])
            high = int(self.spans[1][j])
            if high - low < small_span(self.n_rows):
                return Codes(self._array[:, j], low, range(low, high + 1))
        return super().codes(name, value_kind)

    @cached_property
    def spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lowest and highest of every column: one pass over the matrix serves them all."""
        return _core.span([self._array], threads_for(self.n_rows))


class Sparse(Matrix):
    """The same of a sparse matrix, row by row; what is not held is zero."""

    @property
    def matrix(self) -> Any:
        return self._held

    def _column(self, name: str) -> NDArray[Any]:
        return self._dense([name])[:, 0]

    def _first_row(self) -> NDArray[Any]:
        return np.asarray(self._held[:1].toarray())[0]  # type: ignore[no-any-return]

    def _dense(self, names: Sequence[str]) -> NDArray[Any]:
        return ready(np.asarray(self._choose_columns(names).toarray()))

    def _choose_columns(self, names: Sequence[str]) -> Any:
        places = self._places(names)
        return self._held if places is None else self._held[:, places]

    def take(self, rows: NDArray[np.int64]) -> Batch:
        return Sparse(self._held[rows], self._own_names, self.named, self.source)

    def numbers(self, names: Sequence[str]) -> list[NDArray[Any]]:
        return [self._dense(names)] if names else []

    def whole(self, names: Sequence[str]) -> NDArray[Any] | None:
        return None

    def codes(self, name: str, value_kind: Wanted | None = None) -> Codes:
        return Batch.codes(self, name, value_kind)

    def occurrences(self, names: Sequence[str]) -> Any:
        matrix = self._choose_columns(names)
        return matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False), matrix.data


def all_whole(batch: Batch, names: Sequence[str]) -> set[str]:
    """Those of these columns whose numbers are all whole; as floats, so small that each of them is one."""
    are_whole: list[bool] = []
    for block in batch.numbers(names) if names else []:
        columns = block[:, None] if block.ndim == 1 else block
        n_rows, n_columns = columns.shape
        column_is_whole = np.ones(n_columns, dtype=np.bool_)
        step = max(STRETCH // max(n_columns, 1), 1)
        for start in range(0, n_rows if columns.dtype.kind == "f" else 0, step):  # so that it takes little memory
            x = columns[start : start + step]
            odd = (x != np.rint(x)) | (np.abs(x) > EXACT)
            column_is_whole &= ~(odd & ~np.isnan(x) if odd.any() else odd).any(axis=0)
        are_whole += column_is_whole.tolist()
    return {name for name, is_whole in zip(names, are_whole, strict=True) if is_whole}


def fits_int64(dtype: np.dtype[Any]) -> bool:
    """Whether it is one of whole numbers all of which 64 bits hold with a sign."""
    return dtype.kind in "iu" and dtype != np.uint64


def row_of_cells(cells: Mapping[str, Any], names: tuple[str, ...], named: bool) -> Batch:
    """One row, as a mapping of scalars; a column that it does not name is missing."""

    def make(name: str) -> Column:
        if name not in cells and name not in names:
            raise KeyError(name)
        return from_list([cells.get(name)])

    def numbers_of(chosen: Sequence[str]) -> NDArray[Any] | None:
        values = [cells.get(name) for name in chosen]
        types = set(map(type, values))
        if not types <= {float, int, type(None)} or (type(None) in types and not {*cells, *names}.issuperset(chosen)):
            return None
        return np.array([values], dtype=np.float64)

    return Batch(names, 1, Columns(make, numbers_of=numbers_of), named)


class Beside(Generic[T]):
    """Work on the batches of a file, once it is set, that the threads which parse them do, with how many there may be.

    Where it fails or warns, whoever takes the batch does it again.
    """

    def __init__(self, threads: int | None, work: Callable[[Batch], T] | None = None) -> None:
        self.threads = threads
        self.work = work
        self._results: dict[Batch, T] = {}

    def __call__(self, batch: Batch) -> None:
        if self.work is None:
            return
        with LimitThreads(1), contextlib.suppress(errors.BanburyError), errors.collect_warnings() as warnings:
            result = self.work(batch)
            if not warnings:
                self._results[batch] = result

    def result(self, batch: Batch) -> T | None:
        return self._results.pop(batch, None)


@dataclass(frozen=True, eq=False)
class Source:
    """The batches of one table, in order. Where ``again`` holds, iterating again starts anew.

    ``target`` is the column of the classes, where the source itself says so: a folder does. ``weights`` is that of the weights.
    """

    start: Callable[..., Iterator[Batch]]
    name: str | None = None
    again: bool = True
    target: str | None = None
    weights: str | None = None
    holds_no_lists: bool = False  # whether its cells are texts and numbers, for sure
    peekable: bool = False  # whether its first batch with rows can be looked at, though it is read but once
    reading: Mapping[str, Any] = field(default_factory=dict)  # of files: the settings that are not the usual ones
    parses: bool = False  # whether batches are parsed on threads, which can do work beside it: ``start`` takes it

    def __iter__(self) -> Iterator[Batch]:
        return self.start()

    def each(self, beside: Beside[Any] | None) -> Iterator[Batch]:
        """The batches, with work done beside the parsing where there is any."""
        return self.start(beside) if self.parses else self.start()

    def peekable_source(self) -> Source:
        """The same, whose first batch with rows can be looked at before all are read."""
        if self.again or self.peekable:
            return self
        batches = iter(self)
        first = list[Batch]()

        def start() -> Iterator[Batch]:
            while not (first and first[-1].n_rows) and (batch := next(batches, None)) is not None:
                first.append(batch)
            yield from first
            first.clear()
            yield from batches

        return replace(self, start=start, peekable=True, parses=False)


def number_rows(batches: Iterable[Batch]) -> Iterator[Batch]:
    """The batches, each with the number of rows before it."""
    first_row = 0
    for batch in batches:
        batch.first_row = first_row
        first_row += batch.n_rows
        yield batch


def join_batches(batches: Sequence[Batch]) -> Batch:
    """Batches of the same columns, each of which begins where the one before ends, as one.

    Columns are made when they are asked for; nothing is left in them of larger ones that they were cut from.
    """
    first = batches[0]
    columns = Columns(lambda name: _join_columns([batch.column(name) for batch in batches]))
    batch = first._with(first.names, columns)
    batch.n_rows = sum(part.n_rows for part in batches)
    batch.row_names = None
    return batch


def _join_columns(columns: Sequence[Column]) -> Column:
    first = columns[0]
    strings = [column for column in columns if isinstance(column, Strings)]
    if 1 < len(strings) == len(columns) and (joined_strings := join_strings(strings)) is not None:
        return joined_strings
    arrays = [c for c in columns if isinstance(c, (Numbers, Lists)) and isinstance(c.held, np.ndarray)]
    if len(arrays) == len(columns) and len({(type(c), c.width, c.are_integers) for c in arrays}) == 1:
        return first._with(np.concatenate([column.held for column in arrays]))
    cells = [cell for column in columns for cell in column.cells()]
    if isinstance(first, Objects) and first.of_kind and all(isinstance(column, Objects) for column in columns):
        return Objects(cells, of_kind=first.of_kind)
    if any(column.text for column in columns):
        return Objects(cells, text=True)
    plain = from_list(cells)
    return plain.to_codes(None, 1).as_categorical() if any(column.categorical for column in columns) else plain


@lru_cache(maxsize=64)
def positions(n_columns: int) -> tuple[str, ...]:
    """The names of columns that have none: x0, x1 and so on."""
    return tuple(f"x{j}" for j in range(n_columns))


def as_name(column: Any) -> Any:
    """The name of a column that is named by a number, as frames may have it; anything else as it is.

    >>> as_name(20), as_name("age"), as_name([1, 0])
    ('20', 'age', [1, 0])
    """
    return str(column) if isinstance(column, (int, np.integer)) and not isinstance(column, bool) else column


def other_columns(names: Sequence[str], first: Sequence[str], what: str, kind: str) -> errors.SchemaMismatch:
    """The error of a part of a table that has other columns than the first part."""
    first_names = frozenset(first)
    there = frozenset(names)
    lacking = [name for name in first if name not in there]
    extra = [name for name in names if name not in first_names]
    parts = [f"lacks {errors.listed(map(repr, lacking))}"] * bool(lacking)
    parts += [f"adds {errors.listed(map(repr, extra))}"] * bool(extra)
    text = f"{what} {' and '.join(parts)}. Every {kind} must have the columns of the first."
    return errors.SchemaMismatch(text, lacking=lacking, extra=extra)


def distinct(names: Sequence[Any], source: str | None = None) -> tuple[str, ...]:
    """The names as texts; an error if two are the same."""
    texts = tuple(map(str, names))
    if len(set(texts)) < len(texts):
        times = Counter(texts)
        twice = next(name for name in texts if times[name] > 1)
        text = f"two columns are named {twice!r}{errors.where(source)}. Rename one of them."
        raise errors.DuplicateColumn(text, column=twice)
    return texts
