"""ARFF, as Weka writes it: what columns hold is declared, rows are dense or sparse, and may have weights.

Numbers are floats, whatever their word. Nominal values are words, and those that are declared are all there may be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from banbury import errors
from banbury.reading.arrow import BLANKS, Strings, arrow, from_arrow, texts
from banbury.reading.batches import Batch, Beside, Source, distinct
from banbury.reading.blocks import (
    LONGEST_RECORD,
    Block,
    BlockFile,
    lines_before,
    read_csv,
    reason,
    split_into_blocks,
)
from banbury.reading.columns import Codes, Column, Numbers, decode_bytes
from banbury.reading.decoding import HALF_A_CHARACTER, LONE_SURROGATE
from banbury.reading.options import Options
from banbury.reading.tables import names_for, no_rows

NUMBERS = ("numeric", "real", "integer")
KINDS = (*NUMBERS, "string", "date")
WEIGHT = "instance weight"
SPECIAL = re.compile(rb"['\"\\{%\t]")
MOST_CELLS = 1 << 22  # of sparse rows that are written out together

_DECLARED = re.compile(
    r"@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s{]+)\s*(\{.*\}|\S+)", re.IGNORECASE | re.ASCII
)
_VALUE = re.compile(r"\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([^,\t{}%]*))\s*(,|\t|\Z|(?=[}%{]))", re.ASCII)
_PAIR = re.compile(r"\s*(\d+)\s+(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([^,{}%\s]+))\s*(,|(?=\}))", re.ASCII)
_WEIGHT = re.compile(r"\s*,?\s*\{\s*([^{}]*?)\s*\}\s*(?:%.*)?\Z", re.ASCII)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_WEIGHS = re.compile(rb"[^\s{,][ \t]*,?[ \t]*\{[^{}\n]*\}[ \t]*\r?$", re.MULTILINE)


class Attribute(NamedTuple):
    """A column that is declared: its name, what it holds, and the values of a nominal one."""

    name: str
    kind: str
    values: tuple[str, ...] = ()


class Broken(Exception):
    """What is wrong with a row, and which of the block it is."""


def from_arff(path: str, options: Options) -> Source:
    """An ARFF file, which need not fit in memory; where rows have weights, the source names their column."""
    file = _ArffFile(path, options)
    return Source(file.batches, path, weights=file.weight, parses=True)


class _ArffFile(BlockFile):
    """What is known of one file: its columns, where the rows begin, and whether they have weights."""

    def __init__(self, path: str, options: Options) -> None:
        self.path = path
        self.attributes, self.start = self._header()
        declared_names = [attribute.name for attribute in self.attributes]
        self.names = names_for(distinct(declared_names, path), options.columns, path)
        weight = WEIGHT
        while weight in self.names:
            weight += "_"
        self.weight = weight if self._weighs() else None

    def _header(self) -> tuple[list[Attribute], int]:
        """The columns, and where the rows begin."""
        attributes: list[Attribute] = []
        number = 0
        for block in split_into_blocks(self.path, 0):
            at = block.offset
            for raw in bytes(block.data).removesuffix(b"\n").split(b"\n"):
                at += len(raw) + 1
                number += 1
                line = decode_bytes(raw).strip(BLANKS)
                word = line.split(None, 1)[0].lower() if line else ""
                if word == "@data":
                    if not attributes:
                        raise errors.bad_file(self.path, "it has no @attribute before @data.")
                    return attributes, at
                if word == "@attribute":
                    attributes.append(self._attribute(line, number))
                elif line and line[0] != "%" and word != "@relation":
                    raise self._bad_line(number, f"{errors.shortened(line)!r} is not part of an ARFF header")
            if at > LONGEST_RECORD:
                break
        raise errors.bad_file(self.path, "it has no @data, so it is not an ARFF file, or it is incomplete.")

    def _attribute(self, line: str, number: int) -> Attribute:
        declared = _DECLARED.match(line)
        if declared is None:
            syntax = "an attribute is a name followed by numeric, string, date or {its values}"
            raise self._bad_line(number, f"{errors.shortened(line)!r} cannot be read: {syntax}")
        name = declared[1]
        kind = declared[2]
        try:
            name = _unescape(name[1:-1]) if name[0] in "'\"" else name
            if kind.startswith("{"):
                return Attribute(name, "nominal", tuple(value for value, _ in _values(kind[1:-1])[0]))
        except UnicodeDecodeError:
            raise self._bad_line(number, f"{errors.shortened(line)!r} has {HALF_A_CHARACTER}") from None
        if kind.lower() not in KINDS:
            choices = f"{errors.listed(KINDS)} and {{its values}} are supported. Remove the attribute"
            raise self._bad_line(number, f"attribute {name!r} is {errors.shortened(kind)}, and {choices}")
        return Attribute(name, kind.lower())

    def _bad_line(self, line: int, why: str) -> errors.BadFile:
        text = f"{self.path}, line {line:,}: {why}{'' if why[-1] == '?' else '.'}"
        return errors.BadFile(text, path=self.path, line=line)

    def _weighs(self) -> bool:
        """Whether some row has a weight: Weka writes those that are not 1, wherever they stand."""
        return any(
            b"{" in bytes(block.data) and _WEIGHS.search(block.data)
            for block in split_into_blocks(self.path, self.start)
        )

    def batches(self, beside: Beside[Any] | None = None) -> Iterator[Batch]:
        blocks = self._bound_blocks(split_into_blocks(self.path, self.start))
        first = next(blocks, None)
        return iter([no_rows(self.names, self.path)]) if first is None else self.read(first, blocks, beside)

    def _bound_blocks(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """The blocks, cut again where they have so many rows that these, written out, would not fit: sparse ones may."""
        most = max(MOST_CELLS // len(self.attributes), 1)
        for block in blocks:
            ends = np.flatnonzero(np.frombuffer(block.data, np.uint8) == ord("\n"))[most - 1 :: most] + 1
            bounds = sorted({0, *ends.tolist(), len(block.data)})
            for start, stop in pairwise(bounds):
                yield Block(block.data[start:stop], block.offset + start)

    def infer(self, block: Block) -> Any:
        return self.parse(block)

    def parse(self, block: Block) -> Any:
        try:
            return self._parse_plain(block) if SPECIAL.search(block.data) is None else self._parse_rows(block)
        except Broken as broken:
            raise self._blame_row(broken, block) from None

    def _blame_row(self, broken: Broken, block: Block) -> errors.BadFile:
        row, why = broken.args
        return self._bad_line(self.line(block, row) or 0, why)

    def records(self, block: Block) -> Iterator[tuple[int, str]]:
        """The rows of a block, each with its line of the file; blank lines and comments are none."""
        before = lines_before(self.path, block.offset)
        for number, line in enumerate(bytes(block.data).split(b"\n"), before + 1):
            text = decode_bytes(line).strip(BLANKS)
            if text and text[0] != "%":
                yield number, text

    def explain_failure(self, error: Exception, block: Block) -> Exception:
        """What Arrow could not parse, said of the row that is to blame."""
        try:
            self._parse_rows(block)
        except Broken as broken:
            return self._blame_row(broken, block)
        return errors.bad_file(self.path, reason(error))

    def _parse_plain(self, block: Block) -> Batch:
        """Rows without quotes, comments or braces, which Arrow reads as CSV."""
        pa = arrow()
        types = {a.name: pa.float64() if a.kind in NUMBERS else pa.string() for a in self.attributes}
        table = read_csv(block.data, list(types), types, ["?", " ?", "? ", " ? "])
        columns = [column.combine_chunks() for column in table.columns]
        trimmed = [arrow("compute").ascii_trim_whitespace(c) if c.type == pa.string() else c for c in columns]
        return self._batch(table.num_rows, trimmed, None)

    def _parse_rows(self, block: Block) -> Batch:
        """Rows of any kind, one by one."""
        read = [self._row(line, row) for row, (_, line) in enumerate(self.records(block))]
        pa = arrow()
        columns = list[Any]()
        for j, attribute in enumerate(self.attributes):
            cells = [values[j] for values, _ in read]
            if attribute.kind not in NUMBERS:
                columns.append(pa.array(cells, pa.string()))
                continue
            numbers = np.empty(len(cells))
            for row, cell in enumerate(cells):
                try:
                    numbers[row] = np.nan if cell is None else float(cell)
                except ValueError:
                    why = f"column {attribute.name!r} contains {cell!r}, but is declared {attribute.kind}"
                    raise Broken(row, why) from None
            columns.append(numbers)
        return self._batch(len(read), columns, [weight for _, weight in read])

    def _row(self, line: str, row: int) -> tuple[Sequence[Any], float]:
        """The cells of a row, None where one is missing, and its weight."""
        try:
            return self._cells(line, row)
        except UnicodeDecodeError:
            raise Broken(row, f"{errors.shortened(line, 80)!r} has {HALF_A_CHARACTER}") from None

    def _cells(self, line: str, row: int) -> tuple[Sequence[Any], float]:
        if not line.startswith("{"):
            values, rest = _values(line)
            if len(values) != len(self.attributes):
                what = f"{errors.many(len(values), 'value')} but {len(self.attributes):,} attributes are declared"
                raise Broken(row, f"{what}: {errors.shortened(line, 80)!r}")
            return [None if value == "?" and not quoted else value for value, quoted in values], self._weight(rest, row)
        cells: list[Any] = [0.0 if a.kind in NUMBERS else a.values[0] if a.values else None for a in self.attributes]
        at = 1
        while (pair := _PAIR.match(line, at)) is not None:
            place = int(pair[1])
            at = pair.end()
            if place >= len(cells):
                raise Broken(
                    row, f"attribute {place:,} does not exist: attributes are numbered from 0 to {len(cells) - 1:,}"
                )
            value = pair[4] if pair[4] is not None else _unescape(pair[2] or pair[3] or "")
            cells[place] = None if pair[4] == "?" else value
        closing = re.compile(r"\s*\}", re.ASCII).match(line, at)
        if closing is None:
            lacking = "is not a pair of a number and a value, or the row has no closing }"
            raise Broken(row, f"{errors.shortened(line[at:])!r} {lacking}")
        return cells, self._weight(line[closing.end() :], row)

    def _weight(self, rest: str, row: int) -> float:
        """The weight after the values of a row; 1 if there is none."""
        if not rest.strip() or rest.lstrip().startswith("%"):
            return 1.0
        weight = _WEIGHT.match(rest)
        try:
            return float(weight[1] if weight else "")
        except ValueError:
            raise Broken(row, f"{errors.shortened(rest)!r} after the values is not a weight, such as {{2}}") from None

    def _batch(self, n_rows: int, cells: Sequence[Any], weights: list[float] | None) -> Batch:
        attributes = zip(self.names, self.attributes, cells, strict=True)
        columns = {name: _column(attribute, its_cells) for name, attribute, its_cells in attributes}
        if self.weight is None:
            return Batch(self.names, n_rows, columns, True, self.path)
        columns[self.weight] = Numbers(np.ones(n_rows) if weights is None else np.array(weights))
        batch = Batch((*self.names, self.weight), n_rows, columns, True, self.path)
        batch.aside = frozenset([self.weight])
        return batch


def _column(attribute: Attribute, cells: Any) -> Column:
    """The column of what was read for an attribute: an array of numbers, or Arrow's of texts."""
    if isinstance(cells, np.ndarray):
        return Numbers(cells)
    if attribute.kind == "date":
        return Strings(cells, kind="date")
    if attribute.kind != "nominal":
        return from_arrow(cells)
    place = {value: k for k, value in enumerate(attribute.values)}
    encoded = cells.dictionary_encode()
    lookup = []
    for value in texts(encoded.dictionary):
        if value not in place:
            row = next(row for row, cell in enumerate(texts(cells)) if cell == value)
            near = errors.did_you_mean(value, attribute.values)
            declared = f"which is not one of its declared values ({errors.listed(attribute.values, 6)})"
            raise Broken(
                row, f"column {attribute.name!r} contains {value!r}, {declared}" + (f".{near}" if near else "")
            )
        lookup.append(place[value])
    indices = encoded.indices.fill_null(len(lookup)).to_numpy()
    codes = np.array([*lookup, -1], dtype=np.int32)[indices]
    return Codes(codes, 0, list(attribute.values), categorical=True)


def _values(text: str) -> tuple[list[tuple[str, bool]], str]:
    """The values of a row, each with whether it was quoted, and what is left after them: a weight, a comment."""
    values: list[tuple[str, bool]] = []
    at = 0
    while (cell := _VALUE.match(text, at)) is not None:
        quoted = cell[3] is None
        plain = (cell[3] or "").strip(BLANKS)
        if text[cell.start() : cell.end()].strip(BLANKS) == "" and text[cell.end() : cell.end() + 1] in ("{", "%"):
            return values, text[cell.end() :]
        values.append((_unescape(cell[1] or cell[2] or "") if quoted else plain, quoted))
        at = cell.end()
        if cell[4] not in (",", "\t"):
            break
    return values, text[at:]


def _unescape(text: str) -> str:
    """The text that is meant; two escapes may be one character. Raises UnicodeDecodeError where one is half of it."""

    def plain(match: re.Match[str]) -> str:
        return chr(int(match[1][1:], 16)) if len(match[1]) == 5 else _ESCAPES.get(match[1], match[1])

    text = _ESCAPED.sub(plain, text) if "\\" in text else text
    return text.encode("utf-16", "surrogatepass").decode("utf-16") if LONE_SURROGATE.search(text) else text
