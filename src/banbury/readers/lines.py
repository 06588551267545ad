"""Newline-delimited JSON: one object per line, read in blocks. A column or type that turns up late is widened."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from banbury import errors
from banbury.readers.arrow import arrow, kind_of_type
from banbury.readers.batches import Batch, Source, Widened
from banbury.readers.blocks import Block, cut, head_of, lines_before, parsed, reason, share
from banbury.readers.tables import arrow_batch, checked_names

_CHANGED = re.compile(r"Column\(/(.*?)\) changed from (\w+) to (\w+) in row (\d+)")
_ROW = re.compile(r"JSON parse error: (.*) in row (\d+)")
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"')
DEEPEST = 64
WORDS = {"object": "a mapping", "array": "a list", "string": "a text", "number": "a number", "boolean": "a boolean"}


def from_lines(path: str, names: Sequence[str] | None, kinds: Mapping[str, str] | None) -> Source:
    """A file with one JSON object per line, which need not fit in memory."""
    begin = head_of(path).lstrip()[:1]
    if begin != b"{":
        hint = " It holds one JSON list; `jq -c '.[]'` writes its entries line by line." if begin == b"[" else ""
        raise errors.bad_file(path, f"it is not newline-delimited JSON: one {{...}} object per line.{hint}")
    return Source(_LinesFile(path, names, kinds or {}).batches, path)


class _LinesFile:
    """What is known of one file: the types of its columns, in the order in which they turned up."""

    def __init__(self, path: str, names: Sequence[str] | None, kinds: Mapping[str, str]) -> None:
        self.path = path
        self.given = names
        self.numbers = frozenset(name for name, kind in kinds.items() if kind == "number")
        self.texts = frozenset(name for name, kind in kinds.items() if kind == "text")
        self.types: dict[str, Any] = {}

    def batches(self) -> Iterator[Batch]:
        blocks = cut(self.path, 0, quoted=False)
        first = next(blocks, Block(memoryview(b""), 0))
        table = self._tried(lambda: self._parse(first), first)
        for name, data_type in zip(table.schema.names, table.schema.types, strict=True):
            self.types.setdefault(name, self._fixed(name, data_type, table, first))
        if any(kind_of_type(table[name].type) == "date" for name in self.texts.intersection(table.column_names)):
            table = self._tried(lambda: self._parse(first), first)
        batch = self._batch(table, first, 0)
        first_row, batch.share = batch.n_rows, share(first, self.path)
        yield batch
        for block, future in parsed(blocks, self._parse):
            batch = self._batch(self._tried(future.result, block), block, first_row)
            batch.share = share(block, self.path)
            first_row += batch.n_rows
            yield batch

    def _parse(self, block: Block) -> Any:
        self._refuse_depth(block)
        pa_json = arrow("json")
        return pa_json.read_json(
            arrow().BufferReader(block.data),
            pa_json.ReadOptions(use_threads=False, block_size=len(block.data) + 1024),
            pa_json.ParseOptions(explicit_schema=self._explicit()),
        )

    def _refuse_depth(self, block: Block) -> None:
        """Arrow's reader goes as deep as brackets do, until the stack ends."""
        raw = np.frombuffer(block.data, dtype=np.uint8)
        steps = ((raw == ord("{")) | (raw == ord("["))).astype(np.int8) - ((raw == ord("}")) | (raw == ord("]")))
        if int(np.maximum.reduce(np.cumsum(steps, dtype=np.int32), initial=0)) <= DEEPEST:
            return
        for number, line in enumerate(bytes(block.data).split(b"\n")):  # brackets inside of texts do not count
            if line.count(b"{") + line.count(b"[") > DEEPEST and _depth(line) > DEEPEST:
                at = lines_before(self.path, block.offset) + number + 1
                raise errors.bad_line(
                    self.path, at, f"it is nested more than {DEEPEST} deep. Give each column a plain value."
                )

    def _explicit(self) -> Any:
        """The columns whose type is given to Arrow: floats take integers too, texts need not be dates."""
        pa = arrow()
        fixed = {name: each for name, each in self.types.items() if each in (pa.float64(), pa.string())}
        return pa.schema(fixed.items()) if fixed else None

    def _batch(self, table: Any, block: Block, first_row: int) -> Batch:
        self._check_types(table, block)
        names = tuple(self.types) if self.given is None else checked_names(self.given, len(self.types))
        pa = arrow()
        columns = [self._column(table, name) for name in self.types]
        batch = arrow_batch(names, pa.table(columns, names=list(names)), self.path, ())
        batch.first_row = first_row
        return batch

    def _column(self, table: Any, name: str) -> Any:
        pa = arrow()
        column = table[name] if name in table.column_names else pa.nulls(len(table))
        return column.cast(pa.float64()) if self.types[name] == pa.float64() else column

    def _fixed(self, name: str, found: Any, table: Any, block: Block) -> Any:
        """The type a column is read as: floats where numbers are demanded, and no dates where texts are."""
        if name in self.texts and kind_of_type(found) == "date":
            return arrow().string()
        if name not in self.numbers:
            return found
        if kind_of_type(found) in ("integer", "float", "empty"):
            return arrow().float64()
        row, value = next((row, value) for row, value in enumerate(table[name].to_pylist()) if value is not None)
        raise errors.wrong_type_in_line(value, name, "a number", self._line(block, row), self.path)

    def _check_types(self, table: Any, block: Block) -> None:
        """Notes what the first block did not show, and raises Widened so that reading begins again."""
        pa = arrow()
        for name, found in zip(table.schema.names, table.schema.types, strict=True):
            known = self.types.get(name)
            if found == known or found == pa.null():
                continue
            both = _wider(known, self._fixed(name, found, table, block))
            line = lines_before(self.path, block.offset) + 1
            if both is None:
                raise errors.bad_line(self.path, line, _two_types(name, kind_of_type(found), kind_of_type(known)))
            if both != known:
                self.types[name] = both
                raise Widened(name, kind_of_type(both), line)

    def _tried(self, parse: Any, block: Block) -> Any:
        try:
            return parse()
        except arrow().ArrowException as error:
            raise self._explained(str(error), block, error) from None

    def _explained(self, said: str, block: Block, error: Exception) -> Exception:
        changed = _CHANGED.search(said)
        if changed is not None:
            name, before, after = changed[1], WORDS.get(changed[2], changed[2]), WORDS.get(changed[3], changed[3])
            line = self._line(block, int(changed[4]))
            if name in self.numbers:
                value = self._value(block, int(changed[4]), name)
                return errors.wrong_type_in_line(value, name, "a number", line, self.path)
            return errors.bad_line(self.path, line, _two_types(name, after, before))
        broken = _ROW.search(said)
        if broken is not None:
            why = f"it is not one JSON object ({broken[1].rstrip('.')})."
            return errors.bad_line(self.path, self._line(block, int(broken[2])), why)
        return errors.bad_file(self.path, reason(error))

    def _line(self, block: Block, row: int) -> int | None:
        """The line of the file that holds the block's row; Arrow does not count blank lines."""
        found = _row_of(block, row)
        return lines_before(self.path, block.offset) + found[0] + 1 if found else None

    def _value(self, block: Block, row: int, name: str) -> Any:
        found = _row_of(block, row)
        return json.loads(found[1]).get(name) if found else None


def _depth(line: bytes) -> int:
    """How deep brackets go, those inside of texts aside."""
    deepest = depth = 0
    for piece in _TEXT.sub(b"", line):
        depth += (piece in b"{[") - (piece in b"}]")
        deepest = max(deepest, depth)
    return deepest


def _two_types(name: str, after: str, before: str) -> str:
    return f"column {name!r} holds {after}, and {before} before. Give it one type."


def _row_of(block: Block, row: int) -> tuple[int, bytes] | None:
    rows = ((number, line) for number, line in enumerate(bytes(block.data).split(b"\n")) if line.strip())
    return next(itertools.islice(rows, row, None), None)


def _wider(known: Any, found: Any) -> Any | None:
    """The type that holds both; the known one for what is not counted anyway; None if there is none."""
    pa = arrow()
    if known is None or known == pa.null():
        return found
    if {known, found} == {pa.int64(), pa.float64()}:
        return pa.float64()
    kinds = {kind_of_type(known), kind_of_type(found)}
    if kinds == {"date", "string"}:
        return pa.string()
    return known if len(kinds) == 1 else None
