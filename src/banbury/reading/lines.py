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
from banbury.reading.batches import Batch, Beside, Source, Widened
from banbury.reading.blocks import (
    BLOCK,
    MOST_COLUMNS,
    Block,
    BlockFile,
    head_of,
    lines_before,
    reason,
    split_into_blocks,
)
from banbury.reading.decoding import HALF_A_CHARACTER, LONE_SURROGATE
from banbury.reading.options import Options
from banbury.reading.tables import arrow_batch, names_for

_SAID = re.compile(r"JSON parse error: (.*) in row \d+")
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"')
_KEY = re.compile(rb'"((?:[^"\\]|\\.)*+)"\s*:')
DEEPEST = 64
MOST_CELLS = 20_000_000
WORDS = {dict: "a mapping", list: "a list", str: "a text", int: "a number", float: "a number", bool: "a boolean"}


def from_lines(path: str, options: Options) -> Source:
    """A file with one JSON object per line, which need not fit in memory."""
    begin = head_of(path).lstrip()[:1]
    if begin != b"{":
        hint = " It contains one JSON list; convert it with `jq -c '.[]'`." if begin == b"[" else ""
        raise errors.bad_file(path, f"it is not newline-delimited JSON: one {{...}} object per line.{hint}")
    return Source(_LinesFile(path, options).batches, path, parses=True)


class _LinesFile(BlockFile):
    """What is known of one file: the types of its columns, in the order in which they turned up."""

    def __init__(self, path: str, options: Options) -> None:
        self.path = path
        self.names = options.columns
        kinds = options.kinds or {}
        self.numbers = frozenset(name for name, kind in kinds.items() if kind == "number")
        self.texts = frozenset(name for name, kind in kinds.items() if kind == "text")
        self.types: dict[str, Any] = {}

    def batches(self, beside: Beside[Any] | None = None) -> Iterator[Batch]:
        blocks = split_into_blocks(self.path, 0)
        return self.read(next(blocks, Block(memoryview(b""), 0)), blocks, beside)

    def infer(self, block: Block) -> Any:
        table = self.parse(block)
        for name, data_type in zip(table.schema.names, table.schema.types, strict=True):
            self.types.setdefault(name, self._fix_type(name, data_type, table, block))
        dates = any(kind_of_type(table[name].type) == "date" for name in self.texts.intersection(table.column_names))
        return self.parse(block) if dates else table

    def parse(self, block: Block) -> Any:
        self._refuse_depth(block)
        n_lines = int(np.count_nonzero(np.frombuffer(block.data, dtype=np.uint8) == ord("\n"))) + 1
        self._refuse_cells(n_lines, len(self.types))
        if self.types:
            with contextlib.suppress(arrow().ArrowException):  # what is new: another key, a wider type
                return self._parse_as(block, list(self.types.items()), "error")
        self._refuse_cells(n_lines, len(set(_KEY.findall(block.data))))
        return self._parse_as(block, self._explicit(), "infer")

    def _parse_as(self, block: Block, fixed: list[tuple[str, Any]], unexpected: str) -> Any:
        pa_json = arrow("json")
        return pa_json.read_json(
            arrow().BufferReader(block.data),
            pa_json.ReadOptions(use_threads=False, block_size=len(block.data) + 1024),
            pa_json.ParseOptions(
                explicit_schema=arrow().schema(fixed) if fixed else None, unexpected_field_behavior=unexpected
            ),
        )

    def _refuse_cells(self, n_lines: int, n_keys: int) -> None:
        """Arrow makes a column of each key, with a cell for every line: of a few bytes in all, if each line has its own."""
        if n_keys > MOST_COLUMNS or n_lines * n_keys > MOST_CELLS:
            text = f"{errors.many(n_lines, 'line')} with {n_keys:,} keys make too wide a table. A table can have at "
            text += f"most {MOST_COLUMNS:,} keys, and {MOST_CELLS:,} cells in {BLOCK >> 20} MB. "
            text += "If the keys are words, combine them into one text column."
            raise errors.bad_file(self.path, text)

    def finish(self, table: Any, block: Block) -> Batch:
        """Notes what the first block did not show, and raises Widened so that reading begins again."""
        pa = arrow()
        wider = dict[str, Any]()
        for name, data_type in zip(table.schema.names, table.schema.types, strict=True):
            known_type = self.types.get(name)
            if data_type in (known_type, pa.null()):
                continue
            both = _wider(known_type, self._fix_type(name, data_type, table, block))
            if both is None:
                why = _two_types(name, kind_of_type(data_type), kind_of_type(known_type))
                raise self._bad_line(lines_before(self.path, block.offset) + 1, why)
            if both != known_type:
                wider[name] = both
        if wider:
            self.types |= wider
            name = next(iter(wider))
            raise Widened(name, kind_of_type(wider[name]), lines_before(self.path, block.offset) + 1)
        names = names_for(list(self.types), self.names)
        columns = []
        place = {name: j for j, name in enumerate(table.schema.names)}
        for name, known_type in self.types.items():
            column = table.column(place[name]) if name in place else pa.nulls(len(table))
            columns.append(column.cast(pa.float64()) if known_type == pa.float64() else column)
        return arrow_batch(names, pa.table(columns, names=list(self.types)), self.path, ())

    def _bad_line(self, line: int, why: str) -> errors.BadFile:
        return errors.BadFile(f"{self.path}, line {line:,}: {why}", path=self.path, line=line)

    def _refuse_depth(self, block: Block) -> None:
        """Arrow's reader goes as deep as brackets do, until the stack ends."""
        raw = np.frombuffer(block.data, dtype=np.uint8)
        steps = ((raw == ord("{")) | (raw == ord("["))).astype(np.int8) - ((raw == ord("}")) | (raw == ord("]")))
        if int(np.maximum.reduce(np.cumsum(steps, dtype=np.int32), initial=0)) <= DEEPEST:
            return
        for line, row in self.records(block):  # brackets inside of texts do not count
            if row.count(b"{") + row.count(b"[") > DEEPEST and _depth(row) > DEEPEST:
                raise self._bad_line(
                    line, f"it is nested more than {DEEPEST} levels deep. Each column must have a plain value."
                )

    def _explicit(self) -> list[tuple[str, Any]]:
        """The columns whose type is given to Arrow: floats take integers too, texts need not be dates."""
        pa = arrow()
        return [(name, data_type) for name, data_type in self.types.items() if data_type in (pa.float64(), pa.string())]

    def _fix_type(self, name: str, data_type: Any, table: Any, block: Block) -> Any:
        """The type a column is read as: floats where numbers are demanded, and no dates where texts are."""
        if name in self.texts and kind_of_type(data_type) == "date":
            return arrow().string()
        if name not in self.numbers:
            return data_type
        if kind_of_type(data_type) in ("integer", "float", "empty"):
            return arrow().float64()
        row, value = next((row, value) for row, value in enumerate(table[name].to_pylist()) if value is not None)
        raise self.wrong_type(value, name, self.line(block, row))

    def explain_failure(self, error: Exception, block: Block) -> Exception:
        kinds_so_far = {
            name: "a number" if data_type == arrow().float64() else "a text" for name, data_type in self._explicit()
        }
        for line, row in self.records(block):
            try:
                cells = json.loads(row, object_pairs_hook=each_once, parse_constant=_refuse_constant)
            except ValueError:
                cells = None
            if not isinstance(cells, dict):
                arrow_message = _SAID.search(str(error))
                why = arrow_message[1].rstrip(".") if arrow_message else reason(error).rstrip(".")
                return self._bad_line(line, f"it is not one JSON object ({why}).")
            for name, value in _values(cells, ""):
                if any(LONE_SURROGATE.search(text) for text in (name, value) if isinstance(text, str)):
                    cell = f"column {name!r} contains {errors.shortened(value)!r}"
                    return self._bad_line(line, f"{cell}, with {HALF_A_CHARACTER}.")
                word = WORDS[type(value)]
                if kinds_so_far.setdefault(name, word) == word:
                    continue
                if name in self.numbers:
                    return self.wrong_type(value, name, line)
                return self._bad_line(line, _two_types(name, word, kinds_so_far[name]))
        return errors.bad_file(self.path, reason(error))

    def records(self, block: Block) -> Iterator[tuple[int, bytes]]:
        """The lines of the block that are not blank, each with its number in the file."""
        lines = enumerate(bytes(block.data).split(b"\n"), lines_before(self.path, block.offset) + 1)
        return ((number, line) for number, line in lines if line.strip())


def each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The object of JSON that has these pairs; an error if it has a name twice."""
    cells = dict(pairs)
    if len(cells) < len(pairs):
        raise ValueError("a name occurs twice")
    return cells


def _refuse_constant(constant: str) -> None:
    """NaN and Infinity, which are Python's words and not JSON's."""
    raise ValueError(constant)


def _values(cells: dict[str, Any], place: str) -> Iterator[tuple[str, Any]]:
    """Every value that is not null by its name, as Arrow names it: those within mappings and lists too."""
    for name, value in cells.items():
        if value is not None:
            yield place + name, value
        if isinstance(value, dict):
            yield from _values(value, f"{place}{name}/")
        elif isinstance(value, list):
            for entry in value:
                yield from _values({"[]": entry}, f"{place}{name}/")


def _depth(line: bytes) -> int:
    """How deep brackets go, those inside of texts aside."""
    deepest = depth = 0
    for piece in _TEXT.sub(b"", line):
        depth += (piece in b"{[") - (piece in b"}]")
        deepest = max(deepest, depth)
    return deepest


def _two_types(name: str, after: str, before: str) -> str:
    return f"column {name!r} contains {after} after {before}. Use one type per column."


def _wider(known_type: Any, data_type: Any) -> Any | None:
    """The type that holds both; the known one for what is not counted anyway; None if there is none."""
    pa = arrow()
    if known_type is None or known_type == pa.null():
        return data_type
    if {known_type, data_type} == {pa.int64(), pa.float64()}:
        return pa.float64()
    kinds = {"other" if kind == "list" else kind for kind in map(kind_of_type, (known_type, data_type))}
    if kinds == {"date", "string"}:
        return pa.string()
    return known_type if len(kinds) == 1 else None
