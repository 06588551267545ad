"""Newline-delimited JSON: one object per line, read in blocks. A column or type that turns up late is widened."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from banbury import errors
from banbury.reading.arrow import arrow, kind_of_type
from banbury.reading.batches import Batch, Source, Widened
from banbury.reading.blocks import (
    BLOCK,
    MOST_COLUMNS,
    Block,
    BlockFile,
    head_of,
    lines_before,
    reason,
)
from banbury.reading.decoding import HALF_A_CHARACTER, LONE_SURROGATE
from banbury.reading.options import Options
from banbury.reading.tables import arrow_batch, names_for

_ARROW_MESSAGE = re.compile(r"JSON parse error: (.*) in row \d+")
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"')
_KEY = re.compile(rb'"((?:[^"\\]|\\.)*+)"\s*:')
DEEPEST = 64  # brackets within each other
MOST_CELLS = 20_000_000  # cells of a block: lines × keys
TYPES_IN_WORDS = {
    dict: "a mapping",
    list: "a list",
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "a boolean",
}


def from_lines(path: str, options: Options) -> Source:
    """A source for the file at ``path`` with one JSON object per line, which need not fit in memory. ``options``: how
    to read it.
    """
    first_byte = head_of(path).lstrip()[:1]
    if first_byte != b"{":
        hint = " It contains one JSON list; convert it with `jq -c '.[]'`." if first_byte == b"[" else ""
        raise errors.bad_file(path, f"it is not newline-delimited JSON: one {{...}} object per line.{hint}")
    return Source(_LinesFile(path, options).batches, path)


class _LinesFile(BlockFile):
    """A newline-delimited JSON file: the Arrow type of each column, in the order in which they first occur."""

    def __init__(self, path: str, options: Options) -> None:
        """``path``: that of the file; of the ``options``, ``columns`` renames the columns, and ``kinds`` says what the
        model needs in each.
        """
        self.path = path
        self.names = options.columns  # the user's names, or None
        kinds = options.kinds or {}
        self.numbers = frozenset(name for name, kind in kinds.items() if kind == "number")  # columns
        self.texts = frozenset(name for name, kind in kinds.items() if kind == "text")  # columns
        self.types: dict[str, Any] = {}  # the Arrow type of each column found so far

    def infer(self, block: Block) -> Any:
        """Parses the first block into an Arrow table, and adds its columns with their types to ``types``."""
        table = self.parse(block)
        for name, data_type in zip(table.schema.names, table.schema.types, strict=True):
            self.types.setdefault(name, self._fix_type(name, data_type, table, block))
        # Whether Arrow took texts for dates, which ``types`` now says are texts.
        any_dates = any(
            kind_of_type(table[name].type) == "date" for name in self.texts.intersection(table.column_names)
        )
        return self.parse(block) if any_dates else table

    def parse(self, block: Block) -> Any:
        """Parses a block into an Arrow table with the known column types, or with wider or further ones if it does not
        fit them.
        """
        self._refuse_depth(block)
        n_lines = int(np.count_nonzero(np.frombuffer(block.data, dtype=np.uint8) == ord("\n"))) + 1
        self._refuse_cells(n_lines, len(self.types))
        if self.types:
            with contextlib.suppress(arrow().ArrowException):  # the block has another key or a wider type
                return self._parse_as(block, list(self.types.items()), "error")
        self._refuse_cells(n_lines, len(set(_KEY.findall(block.data))))
        return self._parse_as(block, self._explicit_types(), "infer")

    def _parse_as(self, block: Block, known_columns: list[tuple[str, Any]], unexpected: str) -> Any:
        """Parses a block with Arrow into a table. ``known_columns``: columns with their types; ``unexpected``: what to
        do with others, "error" or "infer".
        """
        pa_json = arrow("json")
        return pa_json.read_json(
            arrow().BufferReader(block.data),
            pa_json.ReadOptions(use_threads=False, block_size=len(block.data) + 1024),
            pa_json.ParseOptions(
                explicit_schema=arrow().schema(known_columns) if known_columns else None,
                unexpected_field_behavior=unexpected,
            ),
        )

    def _refuse_cells(self, n_lines: int, n_keys: int) -> None:
        """Raises BadFile if a block has too many keys or cells: Arrow gives each key a cell in every line, even if each
        line has keys of its own. ``n_lines`` and ``n_keys``: how many lines and distinct keys the block has.
        """
        if n_keys > MOST_COLUMNS or n_lines * n_keys > MOST_CELLS:
            raise errors.bad_file(
                self.path,
                f"{errors.many(n_lines, 'line')} with {n_keys:,} keys make too wide a table. A table can have at "
                f"most {MOST_COLUMNS:,} keys, and {MOST_CELLS:,} cells in {BLOCK >> 20} MB. "
                "If the keys are words, combine them into one text column.",
            )

    def finish(self, table: Any, block: Block) -> Batch:
        """The batch of a parsed block, an Arrow table, with the columns found so far; missing where it lacks one. If a
        column is new or wider than known, notes its type in ``types`` and raises Widened to restart reading. Raises
        BadFile if no type holds both.
        """
        pa = arrow()
        wider_types = dict[str, Any]()  # the new type of each column that is new or wider than known
        for name, data_type in zip(table.schema.names, table.schema.types, strict=True):
            known_type = self.types.get(name)
            if data_type in (known_type, pa.null()):
                continue
            common_type = _wider(known_type, self._fix_type(name, data_type, table, block))
            if common_type is None:
                reason = _two_types(name, kind_of_type(data_type), kind_of_type(known_type))
                raise self.bad_line(lines_before(self.path, block.offset) + 1, reason)
            if common_type != known_type:
                wider_types[name] = common_type
        if wider_types:
            self.types |= wider_types
            name = next(iter(wider_types))
            raise Widened(name, kind_of_type(wider_types[name]))
        names = names_for(list(self.types), self.names)  # those of the user, or of the file
        columns = []
        positions = {name: position for position, name in enumerate(table.schema.names)}
        for name, known_type in self.types.items():
            column = table.column(positions[name]) if name in positions else pa.nulls(len(table))
            columns.append(column.cast(pa.float64()) if known_type == pa.float64() else column)
        return arrow_batch(names, pa.table(columns, names=list(self.types)), self.path, declared=())

    def _refuse_depth(self, block: Block) -> None:
        """Raises BadFile for a line of the block with too many nested brackets, which would overflow the stack of
        Arrow's parser.
        """
        block_bytes = np.frombuffer(block.data, dtype=np.uint8)
        # For each byte 1 if it opens a bracket, −1 if it closes one.
        depth_changes = ((block_bytes == ord("{")) | (block_bytes == ord("["))).astype(np.int8) - (
            (block_bytes == ord("}")) | (block_bytes == ord("]"))
        )
        if int(np.maximum.reduce(np.cumsum(depth_changes, dtype=np.int32), initial=0)) <= DEEPEST:
            return
        for line_number, line in self.records(block):  # brackets inside of texts do not count
            if line.count(b"{") + line.count(b"[") > DEEPEST and _depth(line) > DEEPEST:
                raise self.bad_line(
                    line_number, f"it is nested more than {DEEPEST} levels deep. Each column must have a plain value."
                )

    def _explicit_types(self) -> list[tuple[str, Any]]:
        """The columns, with their types, whose type is given to Arrow: floats, which take integers too, and texts,
        which Arrow could take for dates.
        """
        pa = arrow()
        return [(name, data_type) for name, data_type in self.types.items() if data_type in (pa.float64(), pa.string())]

    def _fix_type(self, name: str, data_type: Any, table: Any, block: Block) -> Any:
        """The Arrow type with which a column is read: float if the model needs numbers, text instead of a date if it
        needs texts, otherwise ``data_type``, its type in ``table``. Raises an error that names the line of ``block`` if
        the model needs numbers and the column has others.
        """
        if name in self.texts and kind_of_type(data_type) == "date":
            return arrow().string()
        if name not in self.numbers:
            return data_type
        if kind_of_type(data_type) in ("integer", "float", "empty"):
            return arrow().float64()
        row, value = next((row, value) for row, value in enumerate(table[name].to_pylist()) if value is not None)
        raise self.wrong_type(value, name, self.line(block, row))

    def explain_failure(self, error: Exception, block: Block) -> Exception:
        """The error of the first line of the block that Arrow could not parse (``error``): it is not JSON, or has a
        value of another type than before.
        """
        # In words; the kind of the first value of each further column is added below.
        kind_by_column = {
            name: "a number" if data_type == arrow().float64() else "a text"
            for name, data_type in self._explicit_types()
        }
        for line_number, line in self.records(block):
            try:
                cells = json.loads(line, object_pairs_hook=refuse_duplicate_names, parse_constant=_refuse_constant)
            except ValueError:
                cells = None
            if not isinstance(cells, dict):
                arrow_message = _ARROW_MESSAGE.search(str(error))
                cause = arrow_message[1].rstrip(".") if arrow_message else reason(error).rstrip(".")
                return self.bad_line(line_number, f"it is not one JSON object ({cause}).")
            for name, value in _values(cells, ""):
                if any(LONE_SURROGATE.search(text) for text in (name, value) if isinstance(text, str)):
                    return self.bad_line(
                        line_number, f"column {name!r} contains {errors.shortened(value)!r}, with {HALF_A_CHARACTER}."
                    )
                kind_in_words = TYPES_IN_WORDS[type(value)]
                if kind_by_column.setdefault(name, kind_in_words) == kind_in_words:
                    continue
                if name in self.numbers:
                    return self.wrong_type(value, name, line_number)
                return self.bad_line(line_number, _two_types(name, kind_in_words, kind_by_column[name]))
        return errors.bad_file(self.path, reason(error))

    def records(self, block: Block) -> Iterator[tuple[int, bytes]]:
        """The lines of the block that are not blank, each with its number in the file."""
        lines = enumerate(bytes(block.data).split(b"\n"), lines_before(self.path, block.offset) + 1)
        return ((number, line) for number, line in lines if line.strip())


def refuse_duplicate_names(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The JSON object with these pairs of name and value. Raises ValueError if a name occurs twice."""
    cells = dict(pairs)
    if len(cells) < len(pairs):
        raise ValueError("a name occurs twice")
    return cells


def _refuse_constant(constant: str) -> None:
    """Raises ValueError for NaN and Infinity, which Python accepts but JSON does not have."""
    raise ValueError(constant)


def _values(cells: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yields the path and the value of every value of a JSON object (``cells``) that is not null; paths are such as
    "a/b" or "a/[]" for those in nested objects and lists. ``prefix``: the path of the object, such as "a/"; "" at the top.
    """
    for name, value in cells.items():
        if value is not None:
            yield prefix + name, value
        if isinstance(value, dict):
            yield from _values(value, f"{prefix}{name}/")
        elif isinstance(value, list):
            for entry in value:
                yield from _values({"[]": entry}, f"{prefix}{name}/")


def _depth(line: bytes) -> int:
    """How deep brackets are nested in a line of JSON, without those in strings."""
    deepest = depth = 0  # so far, and at the current byte
    for byte in _TEXT.sub(b"", line):
        depth += (byte in b"{[") - (byte in b"}]")
        deepest = max(deepest, depth)
    return deepest


def _two_types(name: str, kind: str, earlier_kind: str) -> str:
    """The message for the column ``name`` with a value of another kind. ``kind``: its kind in words; ``earlier_kind``:
    that of earlier values.
    """
    return f"column {name!r} contains {kind} after {earlier_kind}. Use one type per column."


def _wider(known_type: Any, data_type: Any) -> Any | None:
    """The Arrow type that holds values of both Arrow types; ``known_type`` if neither is counted anyway, None if there
    is no such type. ``known_type``: None for a new column; ``data_type``: that of its values in a later block.
    """
    pa = arrow()
    if known_type is None or known_type == pa.null():
        return data_type
    if {known_type, data_type} == {pa.int64(), pa.float64()}:
        return pa.float64()
    kinds = {"other" if kind == "list" else kind for kind in map(kind_of_type, (known_type, data_type))}
    if kinds == {"date", "string"}:
        return pa.string()
    return known_type if len(kinds) == 1 else None
