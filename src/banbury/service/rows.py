"""Converts rows and labels from JSON to batches of a schema and back. Strings are texts here, never file names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from banbury import errors
from banbury.files.checking import JsonObject
from banbury.reading import Batch, Codes
from banbury.reading.columns import Objects, is_missing
from banbury.reading.tables import from_mapping
from banbury.tally.label_sets import LabelSets
from banbury.tally.schema import Schema
from banbury.tally.table import Table, align_names, number_classes
from banbury.tally.tally import Tally, count_rows, count_sets

INTEGER_LIMIT = 2**63  # integers must be below


class JsonRows:
    """Turns rows of JSON into batches. A row is a text, an object by column, or an array in the order of the columns."""

    def __init__(self, schema: Schema) -> None:
        """``schema``: that of the rows. Its target and columns that it leaves out are ignored in objects."""
        self.schema = schema
        self.kinds = schema.kinds  # the type of each column by name
        self.columns = schema.columns  # names, in order
        self._known = frozenset(schema.columns)
        ignored_names = {schema.target, *schema.left_out} | set(
            schema.labels.columns if schema.labels is not None else ()
        )
        # Names that objects may have besides, such as the target.
        self._ignored = frozenset(name for name in ignored_names if name is not None)
        is_single_text = len(self.columns) == 1 and self.kinds.get(self.columns[0]) == "text"
        self.text = self.columns[0] if is_single_text else None  # the name of the text column, if there is no other

    def batch(self, rows: Sequence[Any]) -> Batch:
        """Returns the rows as one batch with the schema's columns; columns that a row lacks are missing. Raises an
        error for an invalid row. ``text``: the name of the text column, if there is no other.
        """
        if self.text is not None and all(type(row) is str for row in rows):
            return Batch((self.text,), len(rows), {self.text: Objects(list(rows), text=True)}, self.schema.named)
        cells = [self._cells(row, number) for number, row in enumerate(rows)]  # of each row, by column
        table = {name: [row.get(name) for row in cells] for name in self.columns}  # a cell per row, by column
        (batch,) = from_mapping(table, names=None, batch_rows=None)
        batch.named = self.schema.named
        return batch

    def _cells(self, row: Any, number: int) -> JsonObject:
        """Returns the cells of ``row``, a row of JSON, by column. Raises an error if it is not a row or a
        value cannot be in its column. ``number``: that of the row, for messages; ``self._known``: the columns of the
        schema; ``self._ignored``: other names that objects may have.
        """
        if type(row) is str and self.text is not None:
            return {self.text: row}
        if type(row) is list:
            if len(row) != len(self.columns):
                raise errors.wrong_width(len(row), len(self.columns), names=self.columns if self.schema.named else ())
            row = dict(zip(self.columns, row, strict=True))
        if type(row) is not dict or not row:
            requirement = f"an object with some of the columns {errors.listed(map(repr, self.columns), most=6)}"
            requirement = f"a text, or {requirement}" if self.text is not None else requirement
            shown_value = errors.shortened(repr(row))
            raise errors.BadValue(f"row {number:,} is {shown_value}, but must be {requirement}.", row=number)
        cells: JsonObject = row  # by column
        if not cells.keys() <= self._known:
            cells = {name: value for name, value in row.items() if name in self._known or name not in self._ignored}
            for name in cells:
                if name not in self._known:
                    raise errors.unknown_column(name, self.columns)
        for name, value in cells.items():
            self._check(name, value, number)
        return cells

    def _check(self, name: str, value: Any, number: int) -> None:
        """Raises BadValue if a value cannot be in the column ``name``. ``number``: that of the row, for the message."""
        # The type of the column, such as "list".
        kind = self.kinds.get(name)
        if value is None:
            return
        if type(value) is list and kind == "list":
            if all(type(element) in (int, float) and abs(element) < INTEGER_LIMIT for element in value):
                return
            raise errors.wrong_type(value, name, "a list of numbers", number)
        if type(value) not in (str, int, float, bool) or (
            type(value) is int and not -INTEGER_LIMIT <= value < INTEGER_LIMIT
        ):
            raise errors.wrong_type(value, name, "a text, a 64-bit number, true, false or null", number)
        if kind in ("string", "text") and type(value) is not str:
            raise errors.wrong_type(value, name, "a text", number)

    # Counting

    def part(self, row: Any, label: Any) -> Tally:
        """Returns the tally of a single row with its label (a class, or a list of labels)."""
        batch = align_names(self.batch([row]), self.schema)  # of one row
        if self.schema.labels is not None:
            return count_sets(batch, self.schema, LabelSets.of([label]), weights=None, threads=1)
        return count_rows(
            batch, self.schema, Codes(np.zeros(1, dtype=np.int32), low=0, values=[label]), weights=None, threads=1
        )

    def check(self, row: Any) -> None:
        """Raises an error if a row could not be learned with any label."""
        self.part(row, [] if self.schema.labels is not None else "")

    def label(self, label: Any, classes: Sequence[Any], new_class: bool = False) -> Any:
        """Returns the label as it is counted: a class, or a sorted list of distinct labels. ``classes``: those that
        exist; ``new_class``: whether it may be another one. Raises an error otherwise.
        """
        if self.schema.labels is None:
            return _class_of(label, classes, new_class)
        errors.require(
            type(label) is list,
            "label",
            label,
            "a list of labels, which may be empty, because rows can have several labels",
        )
        name_by_key: dict[str, Any] = {}  # labels, by their canonical JSON texts
        for single_label in label:
            # The label as it is counted.
            name = _class_of(single_label, [*classes, *name_by_key.values()], new_class)
            name_by_key[key(name)] = name
        return [name_by_key[text] for text in sorted(name_by_key)]


def key(value: Any) -> str:
    """Returns a canonical JSON text, the same for equal values. Raises BadValue if JSON in UTF-8 cannot hold the value."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
        text.encode()
    except (TypeError, ValueError):
        value_text = errors.shortened(ascii(value))
        raise errors.BadValue(
            f"{value_text} cannot be written as JSON: numbers must be finite, and texts must be valid Unicode. "
            "Replace the value, or leave it out."
        ) from None
    return text


def _class_of(label: Any, classes: Sequence[Any], new_class: bool) -> Any:
    """Returns the class whose text equals that of the label, so that "1" is class 1. ``new_class``: whether it may be
    none of the existing ``classes``; it is then the label itself. Raises an error otherwise, or for an invalid label.
    """
    if type(label) not in (str, int, float, bool) or (
        type(label) is int and not -INTEGER_LIMIT <= label < INTEGER_LIMIT
    ):
        raise errors.bad_setting("label", label, "a text, a number, true or false")
    if type(label) is str and not label:
        raise errors.bad_setting("label", label, "a non-empty text, or null to keep a row without a label")
    key(label)  # raises where JSON cannot hold it
    # By its text; "" is the class of all rows with label sets.
    class_by_text = {_text(name): name for name in classes if name != ""}
    if (text := _text(label)) in class_by_text:
        return class_by_text[text]
    label_kind = _kind(label)
    class_kinds = {_kind(name) for name in class_by_text.values()}
    if not new_class:
        advice_on_new = 'To learn it as a new class, send "new_class": true.'
        advice = (
            f"  Classes: {errors.listed(class_by_text.values())}. {advice_on_new}"
            if class_by_text
            else f"  No class exists yet. {advice_on_new}"
        )
        raise errors.UnknownClass(f"no class {label!r}.\n{advice}", name=label, known=list(class_by_text.values()))
    if class_kinds and label_kind not in class_kinds:
        raise errors.bad_setting("label", label, f"a {errors.listed(sorted(class_kinds))}, as the other classes are")
    return label


def _text(label: Any) -> str:
    """Returns a label as people write it, whatever its JSON type: 1, 1.0 and "1" are the same class."""
    if isinstance(label, bool):
        return str(label).lower()
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _kind(label: Any) -> str:
    """Returns the type of a label in words: "text", "boolean" or "number"."""
    return "text" if isinstance(label, str) else "boolean" if isinstance(label, bool) else "number"


def rows_of(table: Table) -> Iterator[tuple[Any, Any]]:
    """Yields the labelled rows of a table as JSON holds them: pairs of row and label. Rows without a label are skipped."""
    schema = table.schema
    assert schema is not None
    text_column = JsonRows(schema).text  # its name, if there is no other column; such a row is a text
    for batch in table.batches("reading"):
        aligned_batch = table.align(batch, schema)
        columns = {name: cells_of(aligned_batch, name) for name in schema.columns}  # a cell per row, by name
        for index, label in enumerate(_labels(table, batch, schema)):
            if label is not None:
                row = {name: cells[index] for name, cells in columns.items() if cells[index] is not None}
                yield (row[text_column] if text_column in row else row or {schema.columns[0]: None}), label


def _labels(table: Table, batch: Batch, schema: Schema) -> list[Any]:
    """Returns for each row of a batch of the table its label, or sorted list of labels; None where there is none."""
    if schema.labels is not None:
        # ``codes`` has the label numbers of all rows, one row after the other, and ``offsets`` where each row's begin.
        sets = table.labels.sets_of(batch)
        # For each row the two ends of its label numbers, and whether it has a target.
        set_bounds = zip(sets.offsets[:-1].tolist(), sets.offsets[1:].tolist(), sets.has_target.tolist(), strict=True)
        return [
            sorted((sets.names[code] for code in sets.codes[start:end].tolist()), key=key) if has_target else None
            for start, end, has_target in set_bounds
        ]
    # The class number of each row (−1: none), and the classes.
    numbers, names, _ = number_classes(batch, schema, table.labels)
    return [None if number < 0 else plain(names[number]) for number in numbers.tolist()]


def cells_of(batch: Batch, name: str) -> list[Any]:
    """Returns the cells of the column ``name`` as JSON holds them, one per row, None where missing."""
    return [plain(cell) for cell in batch.column(name).cells()]


def plain(cell: Any) -> Any:
    """Returns a cell as JSON holds it; None where it is missing."""
    if is_missing(cell):
        return None
    python_cell = cell.tolist() if hasattr(cell, "tolist") else cell  # no longer of a NumPy type
    return list(python_cell) if isinstance(python_cell, tuple) else python_cell
