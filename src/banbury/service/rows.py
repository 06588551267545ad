"""Rows and labels of JSON, as a schema has them. A text is a text here: no string is ever taken for a file's name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from banbury import errors
from banbury.reading import Batch, Codes
from banbury.reading.columns import Objects, missing
from banbury.reading.tables import from_mapping
from banbury.tally.label_sets import LabelSets
from banbury.tally.schema import Schema
from banbury.tally.table import Table, align_names, number_classes
from banbury.tally.tally import Tally, count_rows, count_sets

LARGEST = 2**63


class JsonRows:
    """Turns rows of JSON into batches: a text, an object by column, or an array in the order of the columns."""

    def __init__(self, schema: Schema) -> None:
        self.schema, self.kinds = schema, schema.kinds
        self.columns = schema.columns
        self._known = frozenset(schema.columns)
        aside = {schema.target, *schema.left_out} | set(schema.labels.columns if schema.labels is not None else ())
        self._aside = frozenset(name for name in aside if name is not None)
        alone = len(self.columns) == 1 and self.kinds.get(self.columns[0]) == "text"
        self.text = self.columns[0] if alone else None  # the one column, where it is a text

    def batch(self, rows: Sequence[Any]) -> Batch:
        """The rows as one batch, under the schema's names; what a row does not have is missing there."""
        if self.text is not None and all(type(row) is str for row in rows):
            return Batch((self.text,), len(rows), {self.text: Objects(list(rows), text=True)}, self.schema.named)
        cells = [self._cells(row, number) for number, row in enumerate(rows)]
        table = {name: [row.get(name) for row in cells] for name in self.columns}
        (batch,) = from_mapping(table, None, None)
        batch.named = self.schema.named
        return batch

    def _cells(self, row: Any, number: int) -> dict[str, Any]:
        """A row by column; raises where it is none, or holds what no column holds."""
        if type(row) is str and self.text is not None:
            return {self.text: row}
        if type(row) is list:
            if len(row) != len(self.columns):
                raise errors.wrong_width(len(row), len(self.columns), names=self.columns if self.schema.named else ())
            row = dict(zip(self.columns, row, strict=True))
        if type(row) is not dict or not row:
            requirement = f"an object with some of the columns {errors.listed(map(repr, self.columns), 6)}"
            requirement = f"a text, or {requirement}" if self.text is not None else requirement
            shown = errors.shortened(repr(row))
            raise errors.BadValue(f"row {number:,} is {shown}, but must be {requirement}.", row=number)
        cells: dict[str, Any] = row
        if not cells.keys() <= self._known:
            cells = {name: value for name, value in row.items() if name in self._known or name not in self._aside}
            for name in cells:
                if name not in self._known:
                    raise errors.unknown_column(name, self.columns)
        for name, value in cells.items():
            self._check(name, value, number)
        return cells

    def _check(self, name: str, value: Any, number: int) -> None:
        kind = self.kinds.get(name)
        if value is None:
            return
        if type(value) is list and kind == "list":
            if all(type(x) in (int, float) and abs(x) < LARGEST for x in value):
                return
            raise errors.wrong_type(value, name, "a list of numbers", number)
        if type(value) not in (str, int, float, bool) or (type(value) is int and not -LARGEST <= value < LARGEST):
            raise errors.wrong_type(value, name, "a text, a 64-bit number, true, false or null", number)
        if kind in ("string", "text") and type(value) is not str:
            raise errors.wrong_type(value, name, "a text", number)

    # Counting

    def part(self, row: Any, label: Any) -> Tally:
        """One row, counted apart."""
        batch = align_names(self.batch([row]), self.schema)
        if self.schema.labels is not None:
            return count_sets(batch, self.schema, LabelSets.of([label]), None, 1)
        return count_rows(batch, self.schema, Codes(np.zeros(1, dtype=np.int32), 0, [label]), None, 1)

    def check(self, row: Any) -> None:
        """Raises where a row could not be learned, whichever label it got."""
        self.part(row, [] if self.schema.labels is not None else "")

    def label(self, label: Any, classes: Sequence[Any], new_class: bool = False) -> Any:
        """A label as it is counted: a class, or of sets of labels a list of them, each once and in order."""
        if self.schema.labels is None:
            return _class_of(label, classes, new_class)
        requirement = "a list of labels, which may be empty, because rows can have several labels"
        errors.require(type(label) is list, "label", label, requirement)
        names: dict[str, Any] = {}
        for one in label:
            name = _class_of(one, [*classes, *names.values()], new_class)
            names[key(name)] = name
        return [names[text] for text in sorted(names)]


def key(value: Any) -> str:
    """Equal values of JSON as the same text; raises BadValue where JSON in UTF-8 cannot hold a value."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
        text.encode()
    except (TypeError, ValueError):
        shown = errors.shortened(ascii(value))
        raise errors.BadValue(
            f"{shown} cannot be written as JSON: numbers must be finite, and texts must be valid Unicode. Replace the value, "
            "or leave it out."
        ) from None
    return text


def _class_of(label: Any, classes: Sequence[Any], new_class: bool) -> Any:
    """The class with the same text as a label, so that "1" is class 1; a new class only where that is asked for."""
    if type(label) not in (str, int, float, bool) or (type(label) is int and not -LARGEST <= label < LARGEST):
        raise errors.bad_setting("label", label, "a text, a number, true or false")
    if type(label) is str and not label:
        raise errors.bad_setting("label", label, "a non-empty text, or null to keep a row without a label")
    key(label)  # raises where JSON cannot hold it
    named = {_text(name): name for name in classes if name != ""}
    if (text := _text(label)) in named:
        return named[text]
    kind = _kind(label)
    kinds = {_kind(name) for name in named.values()}
    if not new_class:
        how = 'To learn it as a new class, send "new_class": true.'
        advice = f"  Classes: {errors.listed(named.values())}. {how}" if named else f"  No class exists yet. {how}"
        raise errors.UnknownClass(f"no class {label!r}.\n{advice}", name=label, known=list(named.values()))
    if kinds and kind not in kinds:
        raise errors.bad_setting("label", label, f"a {errors.listed(sorted(kinds))}, as the other classes are")
    return label


def _text(label: Any) -> str:
    """A label as people write it, whichever type JSON gave it: 1, 1.0 and "1" are the same class."""
    if isinstance(label, bool):
        return str(label).lower()
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _kind(label: Any) -> str:
    return "text" if isinstance(label, str) else "boolean" if isinstance(label, bool) else "number"


def rows_of(table: Table) -> Iterator[tuple[Any, Any]]:
    """The rows of any labelled data as JSON holds them, each with its label; those without one are passed over."""
    schema = table.schema
    assert schema is not None
    alone = JsonRows(schema).text
    for batch in table.batches("reading"):
        aligned_batch = table.align(batch, schema)
        columns = {name: cells_of(aligned_batch, name) for name in schema.columns}
        for number, label in enumerate(_labels(table, batch, schema)):
            if label is not None:
                row = {name: cells[number] for name, cells in columns.items() if cells[number] is not None}
                yield (row[alone] if alone in row else row or {schema.columns[0]: None}), label


def _labels(table: Table, batch: Batch, schema: Schema) -> list[Any]:
    if schema.labels is not None:
        sets = table.labels.sets_of(batch)
        ends = zip(sets.offsets[:-1].tolist(), sets.offsets[1:].tolist(), sets.has_target.tolist(), strict=True)
        return [
            sorted((sets.names[k] for k in sets.codes[a:b].tolist()), key=key) if is_known else None
            for a, b, is_known in ends
        ]
    numbers, names, _ = number_classes(batch, schema, table.labels)
    return [None if number < 0 else plain(names[number]) for number in numbers.tolist()]


def cells_of(batch: Batch, name: str) -> list[Any]:
    """A column of a batch as JSON holds it."""
    return [plain(cell) for cell in batch.column(name).cells()]


def plain(cell: Any) -> Any:
    """A cell as JSON holds it; None where it is missing."""
    if missing(cell):
        return None
    value = cell.tolist() if hasattr(cell, "tolist") else cell
    return list(value) if isinstance(value, tuple) else value
