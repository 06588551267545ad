"""Sets of labels: of each row any number of them, none included."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int
from banbury.reading import Batch, Scalar, Source
from banbury.reading.batches import number_rows
from banbury.reading.columns import Objects, Unfit, missing, natural

FOLDERS = "folders"  # the target of files whose labels are the folders that they lie in
EVERY = ""  # the class of all rows, which is counted beside the labels
GATHERED = (list, tuple, set, frozenset)
PLAIN = frozenset(GATHERED)


@dataclass(frozen=True)
class LabelTarget:
    """Where the labels of rows are: a column of sets or of texts with a delimiter, columns of flags, or none: given apart."""

    columns: tuple[str, ...] = ()
    delimiter: str | None = None
    flags: bool = False  # each column is a label
    folders: bool = False  # those that a file lies in

    def to_dict(self) -> dict[str, Any]:
        kept = {"columns": list(self.columns), "delimiter": self.delimiter, "flags": self.flags}
        return {**kept, "folders": True} if self.folders else kept

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LabelTarget:
        columns = data["columns"]
        delimiter = data["delimiter"]
        flags = data["flags"]
        folders = data.get("folders", False)
        if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
            raise ValueError("the columns of the labels are not a list of names")
        if not (delimiter is None or (isinstance(delimiter, str) and delimiter)) or not isinstance(flags, bool):
            raise ValueError("the delimiter of the labels is not a text")
        if not isinstance(folders, bool):
            raise ValueError("folders is neither true nor false")
        return cls(tuple(columns), delimiter, flags, folders)

    def of_batch(self, batch: Batch) -> LabelSets:
        """The labels of a batch's rows."""
        if self.flags:
            return self._flags(batch)
        (name,) = self.columns
        try:
            return LabelSets.of_cells(batch.column(name).cells(), self.delimiter)
        except BadLabel as bad:
            raise bad.at(batch.first_row, name, batch.source) from None

    def _flags(self, batch: Batch) -> LabelSets:
        for name in self.columns:
            if name not in batch.names:
                raise errors.unknown_column(name, batch.names, batch.source)
        flags = np.stack([_flags_of(batch, name) for name in self.columns], axis=1)
        return LabelSets.of_flags(flags, self.columns)


YES_OR_NO = {True: True, False: False, "true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


def _flags_of(batch: Batch, name: str) -> NDArray[np.bool_]:
    flags = np.zeros(batch.n_rows, dtype=np.bool_)
    for row, value in enumerate(batch.column(name).cells()):
        flag = None if missing(value) else value.item() if isinstance(value, np.generic) else value
        flag = flag.strip().lower() if isinstance(flag, str) else flag
        try:
            flags[row] = flag is not None and YES_OR_NO[flag]
        except (KeyError, TypeError):
            row = batch.first_row + row
            expected = "yes or no, since it is a label"
            raise errors.wrong_type(value, name, expected, row, batch.source) from None
    return flags


class BadLabel(Exception):
    """What is no label, in some row: the row, and what is wrong."""

    def of(self, row: int) -> BadLabel:
        return BadLabel(row, *self.args[1:])

    def at(self, first_row: int, column: str | None = None, source: str | None = None) -> errors.BadValue:
        row, value, what = self.args
        row += first_row
        where = "" if column is None else f" of column {column!r}"
        text = f"row {row:,}{where}{errors.where(source)} has the label {errors.shortened(repr(value))}, which is {what}. Labels "
        text += "must be texts, numbers or booleans in a list or set per row, which is empty if a row has no labels."
        return errors.BadValue(text, row=row, value=value, column=column)


@dataclass(frozen=True)
class LabelSets:
    """Row i has the labels ``names[codes[offsets[i]]]`` to ``names[codes[offsets[i + 1] - 1]]``, each once.

    ``has_target`` says which rows have a target at all: an empty set is one, and a missing one is none.
    """

    offsets: Int
    codes: NDArray[np.int32]
    names: tuple[Scalar, ...]
    has_target: NDArray[np.bool_]
    from_flags: bool = False  # (rows, labels), so that labels without rows have names too

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, labels: Any) -> LabelSets:
        """Sets of labels as people have them: lists or sets of them, one for each row, or flags, (rows, labels)."""
        if isinstance(labels, LabelSets):
            return labels
        if hasattr(labels, "toarray"):
            return cls.of_flags(labels, tuple(range(labels.shape[1])))
        if hasattr(labels, "column_names"):  # of Arrow
            flags = np.stack([column.to_numpy() for column in labels.columns], axis=1)
            return cls.of_flags(flags, tuple(labels.column_names))
        columns = getattr(labels, "columns", None)
        if columns is not None and hasattr(labels, "to_numpy"):
            return cls.of_flags(labels.to_numpy(), tuple(natural(name, 0) for name in columns))
        if isinstance(labels, np.ndarray) and labels.ndim == 2:
            return cls.of_flags(labels, tuple(range(labels.shape[1])))
        if _are_flags(labels):
            return cls.of_flags(np.array(labels), tuple(range(len(labels[0]))))
        try:
            return cls.of_cells(_cells(labels), None)
        except BadLabel as bad:
            raise bad.at(0) from None

    @classmethod
    def of_cells(cls, cells: Iterable[Any], delimiter: str | None) -> LabelSets:
        """From what each row has: a set, a list, or a text with a delimiter between labels; what is missing is not known."""
        cells = list(cells)
        has_target = np.ones(len(cells), dtype=np.bool_)
        if delimiter is not None or not PLAIN.issuperset(map(type, cells)):
            has_target, cells = _split_cells(cells, delimiter)
        offsets = np.concatenate([[0], np.cumsum(np.fromiter(map(len, cells), np.int64, len(cells)))])
        values = list(chain.from_iterable(cells))
        names: dict[Scalar, int] = {}
        numbers: dict[Any, int] = {}
        for value in _different(values):
            try:
                numbers[value] = names.setdefault(_label(value), len(names))
            except BadLabel as bad:
                place = next(at for at, other in enumerate(values) if other is value)
                raise bad.of(int(np.searchsorted(offsets, place, side="right")) - 1) from None
        codes = np.fromiter(map(numbers.__getitem__, values), np.int64, len(values))
        row_labels = np.sort(np.repeat(np.arange(len(cells)), np.diff(offsets)) * max(len(names), 1) + codes)
        once = np.diff(row_labels, prepend=-1) > 0
        if repeated := int(np.count_nonzero(~once)):
            message = "occurs twice in its row and counts" if repeated == 1 else "occur twice in their row and count"
            errors.warn(errors.BanburyWarning(f"{errors.many(repeated, 'label')} {message} once"))
            offsets = np.concatenate([[0], np.cumsum(once)])[offsets]
        numbered = (row_labels[once] % max(len(names), 1)).astype(np.int32)
        return cls(offsets.astype(np.int64), numbered, tuple(names), has_target)

    @classmethod
    def of_flags(cls, flags: Any, names: Sequence[Scalar]) -> LabelSets:
        """From flags, (rows, labels), dense or sparse."""
        if hasattr(flags, "tocsr"):
            matrix = flags.tocsr()
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
            _check_flags(np.asarray(matrix.data))
            offsets = matrix.indptr.astype(np.int64)
            codes = matrix.indices.astype(np.int32)
        else:
            array = np.asarray(flags)
            _check_flags(array)
            rows, codes = np.nonzero(array)
            offsets = np.searchsorted(rows, np.arange(len(array) + 1)).astype(np.int64)
        errors.require(len(names), "the target", "a matrix without columns", "one with a column for each label")
        if len(set(names)) < len(names):
            description = f"labels {errors.listed(map(repr, names))}"
            raise errors.bad_setting("the target", description, "one that has each label once")
        return cls(offsets, codes.astype(np.int32), tuple(names), np.ones(len(offsets) - 1, dtype=np.bool_), True)

    @classmethod
    def of_batches(cls, parts: Sequence[LabelSets]) -> LabelSets:
        """The sets of several batches, one after the other."""
        if len(parts) == 1:
            return parts[0]
        names = tuple(dict.fromkeys(name for part in parts for name in part.names))
        numbered = [part.codes_of(names) for part in parts]
        starts = np.cumsum([0, *(len(codes) for _, codes in numbered)])
        offsets = [ends[1:] + start for (ends, _), start in zip(numbered, starts, strict=False)]
        codes = np.concatenate([part_codes for _, part_codes in numbered])
        has_target = np.concatenate([part.has_target for part in parts])
        return cls(np.concatenate([[0], *offsets]).astype(np.int64), codes, names, has_target)

    def names_in_use(self, rows: NDArray[np.bool_]) -> set[Scalar]:
        """The labels that some of these rows have."""
        return {self.names[code] for code in np.unique(self.codes[rows[self.rows]]).tolist()}

    def take(self, rows: Int) -> LabelSets:
        sizes = np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        at = np.repeat(self.offsets[:-1][rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return LabelSets(offsets, self.codes[at], self.names, self.has_target[rows])

    def rows_between(self, start: int, stop: int) -> LabelSets:
        return self.take(np.arange(start, min(stop, len(self))))

    @cached_property
    def rows(self) -> Int:
        """The row of each label."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def codes_of(self, names: Sequence[Scalar]) -> tuple[Int, NDArray[np.int32]]:
        """Offsets and codes by the places of these names; labels that are none of them are left out."""
        place = {name: k for k, name in enumerate(names)}
        codes = np.array([*(place.get(name, -1) for name in self.names), -1], dtype=np.int32)[self.codes]
        kept = codes >= 0
        offsets = np.concatenate([[0], np.cumsum(np.bincount(self.rows[kept], minlength=len(self)))]).astype(np.int64)
        codes = codes[kept]
        order = np.lexsort((codes, self.rows[kept]))
        return offsets, codes[order]

    def flags(self, names: Sequence[Scalar]) -> NDArray[np.bool_]:
        """Whether each row has each of these labels, (rows, labels)."""
        offsets, codes = self.codes_of(names)
        flags = np.zeros((len(self), len(names)), dtype=np.bool_)
        flags[np.repeat(np.arange(len(self)), np.diff(offsets)), codes] = True
        return flags

    @property
    def single(self) -> bool:
        """Whether every row has one label."""
        return len(self) > 0 and bool((np.diff(self.offsets)[self.has_target] == 1).all())


def _cells(labels: Any) -> Any:
    """What each row has, as Python holds it: Arrow and Polars make lists of their lists."""
    return (
        labels.to_pylist()
        if hasattr(labels, "to_pylist")
        else labels.to_list()
        if hasattr(labels, "to_list")
        else labels
    )


def _are_flags(rows: Any) -> bool:
    """Whether lists are rows of flags: all as long, two at least, and of 0 and 1 alone, as scikit-learn takes them."""
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], (list, np.ndarray)):
        return False
    width = len(rows[0])
    plain = (bool, int, float, np.generic)

    def is_row(row: Any) -> bool:
        wide = isinstance(row, (list, np.ndarray)) and len(row) == width
        return wide and all(isinstance(value, plain) and value in (0, 1) for value in row)

    return width > 1 and all(map(is_row, rows))


def _split_cells(cells: list[Any], delimiter: str | None) -> tuple[NDArray[np.bool_], list[Any]]:
    """Which rows have a target, and the labels of each."""
    has_target = np.ones(len(cells), dtype=np.bool_)
    splits = dict[str, list[str]]()
    for row, cell in enumerate(cells):
        if delimiter is not None and isinstance(cell, str):
            if cell not in splits:
                splits[cell] = [part.strip() for part in cell.split(delimiter) if part.strip()]
            cells[row] = splits[cell]
        elif delimiter is not None and missing(cell):  # an empty cell of a text file: no labels
            cells[row] = ()
        elif delimiter is not None and isinstance(cell, (bool, int, float, np.generic)):  # a text that is a number
            cells[row] = (str(cell).lower() if isinstance(cell, (bool, np.bool_)) else str(natural(cell, row)),)
        elif not isinstance(cell, GATHERED) and not (isinstance(cell, np.ndarray) and cell.ndim == 1):
            if not missing(cell):
                raise BadLabel(row, cell, "no set of labels")
            has_target[row], cells[row] = False, ()
    return has_target, cells


def _different(values: list[Any]) -> Iterable[Any]:
    try:
        return dict.fromkeys(values)
    except TypeError:  # one that is no label cannot be a key
        return values


def _label(value: Any) -> Scalar:
    """A label; 1.0 and True are 1, as in any Python dict."""
    if missing(value):
        raise BadLabel(0, value, "missing")
    try:
        name = natural(value, 0)
    except Unfit:
        raise BadLabel(0, value, "not a text, a number or a boolean") from None
    if isinstance(name, float) and np.isinf(name):
        raise BadLabel(0, value, "infinite")
    if name == EVERY:
        raise BadLabel(0, value, "an empty text")
    return name


def _check_flags(flags: NDArray[Any]) -> None:
    if flags.ndim not in (1, 2) or flags.dtype.kind not in "biufO":
        raise errors.bad_setting("the target", f"an array of {flags.dtype}", "flags, rows × labels, or sets of labels")
    try:
        odd = ~np.isin(flags.astype(np.float64), (0.0, 1.0))
    except (TypeError, ValueError):
        expected = "flags, rows × labels, or sets of labels"
        raise errors.bad_setting("the target", "an array of objects", expected) from None
    if odd.any():
        number = flags[odd].ravel()[:1].tolist()[0]
        raise errors.bad_setting("the target", number, "flags, 0 or 1 for each row and label")


def join_same_files(source: Source) -> Source:
    """Files that lie in several folders, under one name and with the same contents, as one row with a label for each."""
    assert source.target is not None
    name = source.target

    def places(batch: Batch) -> list[tuple[str, bytes]]:
        names = [os.path.basename(path) for path in batch.row_names or [""] * batch.n_rows]
        cells = zip(*(batch.column(other).cells() for other in batch.names if other != name), strict=True)
        digests = (blake2b(repr(row).encode(), digest_size=16).digest() for row in cells)
        return list(zip(names, digests, strict=True))

    def batches() -> Iterator[Batch]:
        labels: dict[tuple[str, bytes], list[Any]] = {}
        for batch in source:
            for place, label in zip(places(batch), batch.column(name).cells(), strict=True):
                row_labels = labels.setdefault(place, [])
                row_labels += [] if label in row_labels else [label]
        for batch in source:
            rows_with_labels = [(k, labels.pop(place)) for k, place in enumerate(places(batch)) if place in labels]
            first = np.array([k for k, _ in rows_with_labels], dtype=np.int64)
            sets = [row_labels for _, row_labels in rows_with_labels]
            if len(first):
                taken = batch.take(first)
                taken.row_names = None if batch.row_names is None else [batch.row_names[k] for k in first.tolist()]
                yield taken.with_columns({name: Objects(sets)})

    return Source(lambda: number_rows(batches()), source.name, source.again, source.target, reading=source.reading)


def holds_sets(batch: Batch, name: str) -> bool:
    """Whether a column holds a list or set of labels for each row."""
    if name not in batch.names or batch.kind(name) not in ("other", "list"):
        return False
    return isinstance(_first(batch.column(name).cells()), (*GATHERED, np.ndarray))


def _first(cells: Iterable[Any]) -> Any:
    """The first that is not missing."""
    return next((cell for cell in cells if isinstance(cell, (*GATHERED, np.ndarray)) or not missing(cell)), None)


def are_sets(target: Any) -> bool:
    """Whether labels that are given for each row are sets, or flags."""
    if isinstance(target, LabelSets):
        return True
    if isinstance(target, str) or target is None or hasattr(target, "__next__"):  # an iterator would lose its first row
        return False
    if hasattr(target, "tocsr"):
        return True
    shape = getattr(target, "shape", None)
    if isinstance(shape, tuple) and len(shape) == 2:
        return bool(shape[1] != 1)
    kind = getattr(target, "dtype", None)
    if getattr(kind, "kind", "O") != "O":
        return False
    try:
        first = _first(_cells(target))
    except TypeError:
        return False
    return isinstance(first, GATHERED) or (isinstance(first, np.ndarray) and first.ndim == 1)
