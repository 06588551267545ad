"""Label sets: rows that have any number of labels, or none."""

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
from banbury.arrays import Int, plain, positions_in_slices
from banbury.reading import Batch, Scalar, Source
from banbury.reading.batches import number_rows
from banbury.reading.columns import Objects, Unfit, is_missing, to_scalar

FOLDERS = "folders"  # the target of files whose labels are the folders that they lie in
EVERY = ""  # the class of all rows, which is counted beside the labels
SET_TYPES = (list, tuple, set, frozenset)
EXACT_SET_TYPES = frozenset(SET_TYPES)


@dataclass(frozen=True)
class LabelTarget:
    """Where the labels of rows are: in a column of sets or of texts with a delimiter, in columns of flags, or in an
    array given apart.
    """

    columns: tuple[str, ...] = ()  # empty if the labels are given apart
    delimiter: str | None = None  # between the labels in a text; None if cells are sets
    flags: bool = False  # each column is a label, and its cells say which rows have it
    folders: bool = False  # the labels are the folders that a file lies in

    def to_dict(self) -> dict[str, Any]:
        """Returns the target for JSON."""
        settings = {"columns": list(self.columns), "delimiter": self.delimiter, "flags": self.flags}
        return {**settings, "folders": True} if self.folders else settings

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> LabelTarget:
        """Returns the target of a ``description`` that ``to_dict`` returned; raises ValueError if it is malformed."""
        columns = description["columns"]
        delimiter = description["delimiter"]  # between the labels in a text; None if cells are sets
        flags = description["flags"]  # whether each column is a label, with flags that say which rows have it
        folders = description.get("folders", False)  # whether labels are the folders that a file lies in
        if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
            raise ValueError("the columns of the labels are not a list of names")
        if not (delimiter is None or (isinstance(delimiter, str) and delimiter)) or not isinstance(flags, bool):
            raise ValueError("the delimiter of the labels is not a text")
        if not isinstance(folders, bool):
            raise ValueError("folders is neither true nor false")
        return cls(tuple(columns), delimiter, flags, folders)

    def of_batch(self, batch: Batch) -> LabelSets:
        """Returns the sets of labels of a batch's rows, one per row, from the columns that this target names. Raises an
        error if a cell cannot be labels.
        """
        if self.flags:
            return self._flags(batch)
        (name,) = self.columns
        try:
            return LabelSets.of_cells(batch.column(name).cells(), self.delimiter)
        except BadLabel as bad:
            raise bad.at(batch.first_row, name, batch.source) from None

    def _flags(self, batch: Batch) -> LabelSets:
        """Returns the sets of labels that the batch's columns of flags hold; each column is a label."""
        for name in self.columns:
            if name not in batch.names:
                raise errors.unknown_column(name, batch.names, batch.source)
        flags = np.stack([_flags_of(batch, name) for name in self.columns], axis=1)
        return LabelSets.of_flags(flags, self.columns)


YES_OR_NO = {True: True, False: False, "true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


def _flags_of(batch: Batch, name: str) -> NDArray[np.bool_]:
    """Returns the column ``name`` of yes and no, true and false, or 1 and 0 as booleans, one per row; missing values are
    false. Raises an error for any other value.
    """
    flags = np.zeros(batch.n_rows, dtype=np.bool_)
    for row, value in enumerate(batch.column(name).cells()):
        flag = None if is_missing(value) else plain(value)
        flag = flag.strip().lower() if isinstance(flag, str) else flag
        try:
            flags[row] = flag is not None and YES_OR_NO[flag]
        except (KeyError, TypeError):
            row = batch.first_row + row
            expected = "yes or no, since it is a label"
            raise errors.wrong_type(value, name, expected, row, batch.source) from None
    return flags


class BadLabel(Exception):
    """Raised for a value that cannot be a label. Its arguments are the row, the value, and what is wrong with it."""

    def of(self, row: int) -> BadLabel:
        """Returns the same error for another row number."""
        return BadLabel(row, *self.args[1:])

    def at(self, first_row: int, column: str | None = None, source: str | None = None) -> errors.BadValue:
        """Returns the error that users see, which names the row, the column and the file (``source``). ``first_row`` is
        the number of the first row of the batch, from which the row of this error is counted.
        """
        row, value, problem = self.args
        row += first_row
        where = "" if column is None else f" of column {column!r}"
        return errors.BadValue(
            f"row {row:,}{where}{errors.where(source)} has the label {errors.shortened(repr(value))}, which is {problem}. "
            "Labels must be texts, numbers or booleans in a list or set per row, which is empty if a row has no labels.",
            row=row,
            value=value,
            column=column,
        )


@dataclass(frozen=True)
class LabelSets:
    """Row i has the labels ``names[codes[offsets[i]]]`` to ``names[codes[offsets[i + 1] - 1]]``, each once.

    ``has_target`` says which rows have a target: an empty set is a target, a missing one is not. ``from_flags`` says
    whether the labels were given as a matrix of flags (rows × labels), in which labels without rows have names too.
    """

    offsets: Int  # (rows + 1,)
    codes: NDArray[np.int32]  # indices in ``names``, row after row
    names: tuple[Scalar, ...]
    has_target: NDArray[np.bool_]  # (rows,)
    from_flags: bool = False

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.offsets) - 1

    @classmethod
    def of(cls, labels: Any) -> LabelSets:
        """Returns labels in any common form (a list or set of labels per row, or flags, rows × labels) as LabelSets.
        Flags without names get the labels 0, 1 and so on.
        """
        if isinstance(labels, LabelSets):
            return labels
        if hasattr(labels, "toarray"):
            return cls.of_flags(labels, tuple(range(labels.shape[1])))
        if hasattr(labels, "column_names"):  # of Arrow
            flags = np.stack([column.to_numpy() for column in labels.columns], axis=1)
            return cls.of_flags(flags, tuple(labels.column_names))
        columns = getattr(labels, "columns", None)
        if columns is not None and hasattr(labels, "to_numpy"):
            return cls.of_flags(labels.to_numpy(), tuple(to_scalar(name, row=0) for name in columns))
        if isinstance(labels, np.ndarray) and labels.ndim == 2:
            return cls.of_flags(labels, tuple(range(labels.shape[1])))
        if _are_flags(labels):
            return cls.of_flags(np.array(labels), tuple(range(len(labels[0]))))
        try:
            return cls.of_cells(_cells(labels), delimiter=None)
        except BadLabel as bad:
            raise bad.at(first_row=0) from None

    @classmethod
    def of_cells(cls, cells: Iterable[Any], delimiter: str | None) -> LabelSets:
        """Returns the label sets of one cell per row: a set, a list, or a text with ``delimiter`` between labels. A
        missing cell is no target, or no labels if there is a delimiter. Warns of labels that a row has twice, and
        raises BadLabel with the row for a value that cannot be a label.
        """
        cells = list(cells)
        has_target = np.ones(len(cells), dtype=np.bool_)
        if delimiter is not None or not EXACT_SET_TYPES.issuperset(map(type, cells)):
            has_target, cells = _split_cells(cells, delimiter)
        # Each cell is now a sequence or set of labels; those of row i are offsets[i] to offsets[i + 1] of all labels.
        offsets = np.concatenate([[0], np.cumsum(np.fromiter(map(len, cells), np.int64, len(cells)))])
        values = list(chain.from_iterable(cells))  # the labels of all rows, one row after the other
        number_of_name: dict[Scalar, int] = {}  # label → code
        number_of_value: dict[Any, int] = {}  # label as it was given → code
        for value in _different(values):
            try:
                number_of_value[value] = number_of_name.setdefault(_label(value), len(number_of_name))
            except BadLabel as bad:
                label_index = next(index for index, candidate in enumerate(values) if candidate is value)
                raise bad.of(int(np.searchsorted(offsets, label_index, side="right")) - 1) from None
        # Of the labels of all rows.
        codes = np.fromiter(map(number_of_value.__getitem__, values), np.int64, len(values))
        # A number for each pair of row and label, so that sorting finds the labels that a row repeats.
        pair_numbers = np.sort(np.repeat(np.arange(len(cells)), np.diff(offsets)) * max(len(number_of_name), 1) + codes)
        is_first = np.diff(pair_numbers, prepend=-1) > 0  # of each pair, whether it is no repetition
        if n_repeated := int(np.count_nonzero(~is_first)):
            verb = "occurs twice in its row and counts" if n_repeated == 1 else "occur twice in their row and count"
            errors.warn(f"{errors.many(n_repeated, 'label')} {verb} once")
            offsets = np.concatenate([[0], np.cumsum(is_first)])[offsets]
        # Row after row, ascending within a row.
        sorted_codes = (pair_numbers[is_first] % max(len(number_of_name), 1)).astype(np.int32)
        return cls(offsets.astype(np.int64), sorted_codes, tuple(number_of_name), has_target)

    @classmethod
    def of_flags(cls, flags: Any, names: Sequence[Scalar]) -> LabelSets:
        """Returns the label sets of a dense or sparse matrix of flags, rows × labels. ``names`` are the labels of its
        columns. Raises an error if an entry is neither 0 nor 1, or a label occurs twice.

        Row i has the labels of ``codes[offsets[i]]`` to ``codes[offsets[i + 1] - 1]``; a code is a number of a column.
        """
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
        return cls(
            offsets, codes.astype(np.int32), tuple(names), np.ones(len(offsets) - 1, dtype=np.bool_), from_flags=True
        )

    @classmethod
    def of_batches(cls, sets_of_batches: Sequence[LabelSets]) -> LabelSets:
        """Returns the sets of several batches, one after the other, as one object. ``names`` of the result are in the
        order of their first occurrence; offsets are those of each batch, moved by the codes before it.
        """
        if len(sets_of_batches) == 1:
            return sets_of_batches[0]
        names = tuple(dict.fromkeys(name for sets in sets_of_batches for name in sets.names))
        offsets_and_codes = [sets.codes_of(names) for sets in sets_of_batches]  # of each batch; codes index ``names``
        starts = np.cumsum([0, *(len(batch_codes) for _, batch_codes in offsets_and_codes)])  # of batches in ``codes``
        offsets = [
            batch_offsets[1:] + start for (batch_offsets, _), start in zip(offsets_and_codes, starts, strict=False)
        ]
        codes = np.concatenate([batch_codes for _, batch_codes in offsets_and_codes])
        has_target = np.concatenate([sets.has_target for sets in sets_of_batches])
        return cls(np.concatenate([[0], *offsets]).astype(np.int64), codes, names, has_target)

    def names_in_use(self, is_selected: NDArray[np.bool_]) -> set[Scalar]:
        """Returns the labels that at least one of the selected rows has; ``is_selected`` has a boolean per row."""
        return {self.names[code] for code in np.unique(self.codes[is_selected[self.rows]]).tolist()}

    def take(self, rows: Int) -> LabelSets:
        """Returns the sets of the rows with these numbers, in this order."""
        # Where each row begins in the new codes, and for each of these its position in the old ones.
        offsets, label_positions = positions_in_slices(self.offsets[:-1][rows], np.diff(self.offsets)[rows])
        return LabelSets(offsets, self.codes[label_positions], self.names, self.has_target[rows])

    def rows_between(self, start: int, stop: int) -> LabelSets:
        """Returns the sets of the rows from ``start`` up to ``stop``, exclusive."""
        return self.take(np.arange(start, min(stop, len(self))))

    @cached_property
    def rows(self) -> Int:
        """The number of the row that each entry of ``codes`` belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def codes_of(self, names: Sequence[Scalar]) -> tuple[Int, NDArray[np.int32]]:
        """Returns offsets (rows + 1) and codes for other names: a code is an index in ``names``, and the codes of a row
        ascend. Labels that are not among them are left out. ``self.codes`` has an index in ``self.names`` for each
        label of each row, ``self.rows`` the number of that row.
        """
        code_of = {name: code for code, name in enumerate(names)}
        # The new code of each label of each row; −1: it is not among ``names``.
        codes = np.array([*(code_of.get(name, -1) for name in self.names), -1], dtype=np.int32)[self.codes]
        is_named = codes >= 0
        offsets = np.concatenate([[0], np.cumsum(np.bincount(self.rows[is_named], minlength=len(self)))]).astype(
            np.int64
        )
        codes = codes[is_named]
        order = np.lexsort((codes, self.rows[is_named]))  # sorts by row, then by code
        return offsets, codes[order]

    def flags(self, names: Sequence[Scalar]) -> NDArray[np.bool_]:
        """Returns whether each row has each of these labels: booleans, rows × ``names``."""
        offsets, codes = self.codes_of(names)  # row i has the labels of codes[offsets[i]:offsets[i + 1]]
        flags = np.zeros((len(self), len(names)), dtype=np.bool_)
        flags[np.repeat(np.arange(len(self)), np.diff(offsets)), codes] = True
        return flags

    @property
    def single(self) -> bool:
        """Whether there are rows and every one with a target has exactly one label. Row i has ``offsets[i + 1] −
        offsets[i]`` labels.
        """
        return len(self) > 0 and bool((np.diff(self.offsets)[self.has_target] == 1).all())


def _cells(labels: Any) -> Any:
    """Returns labels as an iterable of Python objects, one per row. Columns of Arrow and Polars become lists."""
    return (
        labels.to_pylist()
        if hasattr(labels, "to_pylist")
        else labels.to_list()
        if hasattr(labels, "to_list")
        else labels
    )


def _are_flags(rows: Any) -> bool:
    """Whether ``rows`` is a list of rows of flags: all of the same length, at least two, and only 0 and 1."""
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], (list, np.ndarray)):
        return False
    width = len(rows[0])
    scalar_types = (bool, int, float, np.generic)

    def is_row(row: Any) -> bool:
        """Whether ``row`` is a list or array of ``width`` entries that are 0 or 1."""
        has_width = isinstance(row, (list, np.ndarray)) and len(row) == width
        return has_width and all(isinstance(value, scalar_types) and value in (0, 1) for value in row)

    return width > 1 and all(map(is_row, rows))


def _split_cells(cells: list[Any], delimiter: str | None) -> tuple[NDArray[np.bool_], list[Any]]:
    """Returns a boolean per row that says whether it has a target, and ``cells``, in which the labels of each row
    replace the cell in place. Raises BadLabel for a cell that is no set of labels.

    With a delimiter, texts are split at it, a number is one label, and a missing cell is no labels; without one, a
    missing cell is no target.
    """
    has_target = np.ones(len(cells), dtype=np.bool_)
    labels_of_text = dict[str, list[str]]()  # by the text of a cell
    for row, cell in enumerate(cells):
        if delimiter is not None and isinstance(cell, str):
            if cell not in labels_of_text:
                labels_of_text[cell] = [label.strip() for label in cell.split(delimiter) if label.strip()]
            cells[row] = labels_of_text[cell]
        elif delimiter is not None and is_missing(cell):  # an empty cell of a text file: no labels
            cells[row] = ()
        elif delimiter is not None and isinstance(cell, (bool, int, float, np.generic)):  # a text that is a number
            cells[row] = (str(cell).lower() if isinstance(cell, (bool, np.bool_)) else str(to_scalar(cell, row)),)
        elif not isinstance(cell, SET_TYPES) and not (isinstance(cell, np.ndarray) and cell.ndim == 1):
            if not is_missing(cell):
                raise BadLabel(row, cell, "no set of labels")
            has_target[row] = False
            cells[row] = ()
    return has_target, cells


def _different(values: list[Any]) -> Iterable[Any]:
    """Returns each value once, in order, or all of them if they cannot be dictionary keys."""
    try:
        return dict.fromkeys(values)
    except TypeError:  # one that is no label cannot be a key
        return values


def _label(value: Any) -> Scalar:
    """Returns a value as a label; raises BadLabel, with 0 in place of the row, if it cannot be one. Equal numbers, such
    as 1, 1.0 and True, are one label.
    """
    if is_missing(value):
        raise BadLabel(0, value, "missing")
    try:
        name = to_scalar(value, row=0)
    except Unfit:
        raise BadLabel(0, value, "not a text, a number or a boolean") from None
    if isinstance(name, float) and np.isinf(name):
        raise BadLabel(0, value, "infinite")
    if name == EVERY:
        raise BadLabel(0, value, "an empty text")
    return name


def _check_flags(flags: NDArray[Any]) -> None:
    """Raises an error if ``flags``, an array (1-D or rows × labels), holds anything but 0 and 1."""
    if flags.ndim not in (1, 2) or flags.dtype.kind not in "biufO":
        raise errors.bad_setting("the target", f"an array of {flags.dtype}", "flags, rows × labels, or sets of labels")
    try:
        is_no_flag = ~np.isin(flags.astype(np.float64), (0.0, 1.0))
    except (TypeError, ValueError):
        expected = "flags, rows × labels, or sets of labels"
        raise errors.bad_setting("the target", "an array of objects", expected) from None
    if is_no_flag.any():
        first_bad = flags[is_no_flag].ravel()[:1].tolist()[0]
        raise errors.bad_setting("the target", first_bad, "flags, 0 or 1 for each row and label")


def join_same_files(source: Source) -> Source:
    """Returns a source in which files that lie in several folders, with the same name and contents, are one row. Its
    target column holds lists of labels, one for each folder.
    """
    assert source.target is not None
    name = source.target  # the column of folder names

    def names_and_digests(batch: Batch) -> list[tuple[str, bytes]]:
        """Returns the file name of each row and a digest of its other columns; equal pairs are the same file."""
        names = [os.path.basename(path) for path in batch.row_names or [""] * batch.n_rows]
        cells = zip(  # of each row, a tuple
            *(batch.column(column_name).cells() for column_name in batch.names if column_name != name), strict=True
        )
        digests = (blake2b(repr(row).encode(), digest_size=16).digest() for row in cells)
        return list(zip(names, digests, strict=True))

    def batches() -> Iterator[Batch]:
        """Reads the rows twice: to collect the labels of each file, and to yield it where it comes first. A file is its
        name and a digest of its contents.
        """
        labels: dict[tuple[str, bytes], list[Any]] = {}  # by file
        for batch in source:
            for file, label in zip(names_and_digests(batch), batch.column(name).cells(), strict=True):
                row_labels = labels.setdefault(file, [])
                row_labels += [] if label in row_labels else [label]
        for batch in source:
            rows_with_labels = [
                (row_number, labels.pop(file))
                for row_number, file in enumerate(names_and_digests(batch))
                if file in labels
            ]
            # Rows of this batch in which a file comes for the first time.
            first_rows = np.array([row_number for row_number, _ in rows_with_labels], dtype=np.int64)
            label_lists = [row_labels for _, row_labels in rows_with_labels]
            if len(first_rows):
                first_files = batch.take(first_rows)
                first_files.row_names = (
                    None
                    if batch.row_names is None
                    else [batch.row_names[row_number] for row_number in first_rows.tolist()]
                )
                yield first_files.with_columns({name: Objects(label_lists)})

    return Source(lambda _: number_rows(batches()), source.name, source.again, source.target, reading=source.reading)


def holds_sets(batch: Batch, name: str) -> bool:
    """Whether the column ``name`` holds a list or set of labels for each row."""
    if name not in batch.names or batch.kind(name) not in ("other", "list"):
        return False
    return isinstance(_first(batch.column(name).cells()), (*SET_TYPES, np.ndarray))


def _first(cells: Iterable[Any]) -> Any:
    """Returns the first cell that is not missing, or None."""
    return next((cell for cell in cells if isinstance(cell, (*SET_TYPES, np.ndarray)) or not is_missing(cell)), None)


def are_sets(target: Any) -> bool:
    """Whether labels given as one object per row, or as a matrix, are sets of labels. ``target`` is whatever the user
    passes as the target; the name of a column is no set.
    """
    if isinstance(target, LabelSets):
        return True
    if isinstance(target, str) or target is None or hasattr(target, "__next__"):  # an iterator would lose its first row
        return False
    if hasattr(target, "tocsr"):
        return True
    shape = getattr(target, "shape", None)
    if isinstance(shape, tuple) and len(shape) == 2:
        return bool(shape[1] != 1)
    dtype = getattr(target, "dtype", None)
    if getattr(dtype, "kind", "O") != "O":
        return False
    try:
        first = _first(_cells(target))
    except TypeError:
        return False
    return isinstance(first, SET_TYPES) or (isinstance(first, np.ndarray) and first.ndim == 1)
