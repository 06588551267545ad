"""ARFF, Weka's format: it declares the type of each column; rows are dense or sparse and may have weights.

All numbers are read as floats. Nominal columns may contain only their declared values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from banbury import errors
from banbury.reading.arrow import BLANKS, Strings, arrow, from_arrow, texts
from banbury.reading.batches import Batch, Source, distinct
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
from banbury.reading.tables import names_for

NUMBERS = ("numeric", "real", "integer")
KINDS = (*NUMBERS, "string", "date")
WEIGHT = "instance weight"
SPECIAL = re.compile(rb"['\"\\{%\t]")
MOST_CELLS = 1 << 22  # cells of a batch: sparse rows are stored with all their zeros

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
    """A declared column: its name, its kind ("numeric", "string", "date" or "nominal"), and the values of a nominal
    one.
    """

    name: str
    kind: str
    values: tuple[str, ...] = ()


class BadRow(Exception):
    """A row that does not fit the declared columns. Arguments: its number in the block, and what is wrong."""


def from_arff(path: str, options: Options) -> Source:
    """A source for the ARFF file at ``path``, which need not fit in memory; where rows have weights, the source names
    their column. ``options``: only ``columns`` is used.
    """
    file = _ArffFile(path, options)
    return Source(file.batches, path, weights=file.weight)


class _ArffFile(BlockFile):
    """An ARFF file: its columns, where its rows begin, and whether they have weights."""

    def __init__(self, path: str, options: Options) -> None:
        """Reads the header of the file at ``path``, and looks through the file for weights. ``options``: only
        ``columns`` is used, other names for the columns.
        """
        self.path = path
        self.attributes, self.start = self._header()  # the declared columns; the byte at which the rows begin
        declared_names = [attribute.name for attribute in self.attributes]
        self.names = names_for(distinct(declared_names, path), options.columns, path)
        weight_name = WEIGHT
        while weight_name in self.names:
            weight_name += "_"
        self.weight = weight_name if self._has_weights() else None  # the column of weights; None if all rows weigh 1

    def _header(self) -> tuple[list[Attribute], int]:
        """Reads the header. Returns the declared columns, and the byte at which the rows begin."""
        attributes: list[Attribute] = []
        line_number = 0
        for block in split_into_blocks(self.path, start=0):
            offset = block.offset  # the byte at which the next line begins
            for line_bytes in bytes(block.data).removesuffix(b"\n").split(b"\n"):
                offset += len(line_bytes) + 1
                line_number += 1
                line = decode_bytes(line_bytes).strip(BLANKS)
                keyword = line.split(None, 1)[0].lower() if line else ""
                if keyword == "@data":
                    if not attributes:
                        raise errors.bad_file(self.path, "it has no @attribute before @data.")
                    return attributes, offset
                if keyword == "@attribute":
                    attributes.append(self._attribute(line, line_number))
                elif line and line[0] != "%" and keyword != "@relation":
                    raise self.bad_line(line_number, f"{errors.shortened(line)!r} is not part of an ARFF header")
            if offset > LONGEST_RECORD:
                break
        raise errors.bad_file(self.path, "it has no @data, so it is not an ARFF file, or it is incomplete.")

    def _attribute(self, line: str, number: int) -> Attribute:
        """The column that an @attribute line declares. ``number``: its line number, for errors."""
        declaration = _DECLARED.match(line)
        if declaration is None:
            syntax = "an attribute is a name followed by numeric, string, date or {its values}"
            raise self.bad_line(number, f"{errors.shortened(line)!r} cannot be read: {syntax}")
        name = declaration[1]  # perhaps in quotation marks
        kind = declaration[2]  # a type such as "numeric", or the values of a nominal column in braces
        try:
            name = _unescape(name[1:-1]) if name[0] in "'\"" else name
            if kind.startswith("{"):
                return Attribute(name, "nominal", tuple(value for value, _ in _values(kind[1:-1])[0]))
        except UnicodeDecodeError:
            raise self.bad_line(number, f"{errors.shortened(line)!r} has {HALF_A_CHARACTER}") from None
        if kind.lower() not in KINDS:
            advice = f"{errors.listed(KINDS)} and {{its values}} are supported. Remove the attribute"
            raise self.bad_line(number, f"attribute {name!r} is {errors.shortened(kind)}, and {advice}")
        return Attribute(name, kind.lower())

    def _has_weights(self) -> bool:
        """Whether some row has a weight; rows without one weigh 1."""
        return any(b"{" in bytes(block.data) and _WEIGHS.search(block.data) for block in super().blocks())

    def blocks(self) -> Iterator[Block]:
        """The rows in blocks that fit in memory as dense tables, which a block of sparse rows may not."""
        max_rows = max(MOST_CELLS // len(self.attributes), 1)
        for block in super().blocks():  # each is cut after every ``max_rows`` lines
            cuts = np.flatnonzero(np.frombuffer(block.data, np.uint8) == ord("\n"))[max_rows - 1 :: max_rows] + 1
            bounds = sorted({0, *cuts.tolist(), len(block.data)})  # bytes at which parts of the block begin and end
            for start, stop in pairwise(bounds):
                yield Block(block.data[start:stop], block.offset + start)

    def infer(self, block: Block) -> Any:
        """Parses the first block like any other, since all types are declared."""
        return self.parse(block)

    def parse(self, block: Block) -> Any:
        """Parses a block, fast if it has no quotes, comments or braces. A row that does not fit the declared columns
        raises BadFile.
        """
        try:
            return self._parse_plain(block) if SPECIAL.search(block.data) is None else self._parse_rows(block)
        except BadRow as bad_row:
            raise self._blame_row(bad_row, block) from None

    def _blame_row(self, bad_row: BadRow, block: Block) -> errors.BadFile:
        """The error of a row of the block, with its line number in the file, 0 if that is not known. ``bad_row``: has
        the number of the row in the block, and what is wrong with it.
        """
        row, fault = bad_row.args
        return self.bad_line(self.line(block, row) or 0, fault)

    def records(self, block: Block) -> Iterator[tuple[int, str]]:
        """The rows of a block as text, each with its line number in the file; without blank lines and comments."""
        n_lines_before = lines_before(self.path, block.offset)
        for number, line in enumerate(bytes(block.data).split(b"\n"), n_lines_before + 1):
            text = decode_bytes(line).strip(BLANKS)
            if text and text[0] != "%":
                yield number, text

    def explain_failure(self, error: Exception, block: Block) -> Exception:
        """The error of the row of the block that Arrow could not parse (``error``)."""
        try:
            self._parse_rows(block)
        except BadRow as bad_row:
            return self._blame_row(bad_row, block)
        return errors.bad_file(self.path, reason(error))

    def _parse_plain(self, block: Block) -> Batch:
        """The batch of a block of rows without quotes, comments or braces, which Arrow reads as CSV."""
        pa = arrow()
        # The Arrow type of each declared column, in order.
        types = {
            attribute.name: pa.float64() if attribute.kind in NUMBERS else pa.string() for attribute in self.attributes
        }
        table = read_csv(block.data, list(types), types, missing=["?", " ?", "? ", " ? "])
        columns = [column.combine_chunks() for column in table.columns]
        trimmed = [
            arrow("compute").ascii_trim_whitespace(column) if column.type == pa.string() else column
            for column in columns
        ]
        return self._batch(table.num_rows, trimmed, weights=None)

    def _parse_rows(self, block: Block) -> Batch:
        """The batch of a block of rows of any form, parsed one by one: dense or sparse, quoted, with weights."""
        rows = [self._row(line, row) for row, (_, line) in enumerate(self.records(block))]  # (cells, weight)
        pa = arrow()
        columns = list[Any]()  # arrays of numbers, and Arrow arrays of texts
        for column_number, attribute in enumerate(self.attributes):
            cells = [row_cells[column_number] for row_cells, _ in rows]  # of this column; None: missing
            if attribute.kind not in NUMBERS:
                columns.append(pa.array(cells, pa.string()))
                continue
            numbers = np.empty(len(cells))
            for row, cell in enumerate(cells):
                try:
                    numbers[row] = np.nan if cell is None else float(cell)
                except ValueError:
                    raise BadRow(
                        row, f"column {attribute.name!r} contains {cell!r}, but is declared {attribute.kind}"
                    ) from None
            columns.append(numbers)
        return self._batch(len(rows), columns, [weight for _, weight in rows])

    def _row(self, line: str, row: int) -> tuple[Sequence[Any], float]:
        """The cells of the row on a line (texts, 0.0 where a sparse row omits a number, None where missing), and its
        weight. ``row``: its number in the block, for errors.
        """
        try:
            return self._cells(line, row)
        except UnicodeDecodeError:
            raise BadRow(row, f"{errors.shortened(line, 80)!r} has {HALF_A_CHARACTER}") from None

    def _cells(self, line: str, row: int) -> tuple[Sequence[Any], float]:
        """The cells of the dense or sparse row on a line (texts, 0.0 where a sparse row omits a number, None where
        missing), and its weight. Raises BadRow, with the number of the row in the block (``row``), if it does not fit
        the declared columns.
        """
        if not line.startswith("{"):
            values, remainder = _values(line)  # each value with whether it was quoted; what follows them
            if len(values) != len(self.attributes):
                raise BadRow(
                    row,
                    f"{errors.many(len(values), 'value')} but {len(self.attributes):,} attributes are declared: "
                    f"{errors.shortened(line, 80)!r}",
                )
            dense_cells = [None if value == "?" and not is_quoted else value for value, is_quoted in values]
            return dense_cells, self._weight(remainder, row)
        # A sparse row: pairs of a column's position and its value; the other cells have a default.
        cells: list[Any] = [
            0.0 if attribute.kind in NUMBERS else attribute.values[0] if attribute.values else None
            for attribute in self.attributes
        ]
        start = 1  # of the next pair in the line
        # Groups of a pair: 1 the position, 2 and 3 the value in single or double quotes, 4 the value without quotes.
        while (pair := _PAIR.match(line, start)) is not None:
            position = int(pair[1])
            start = pair.end()
            if position >= len(cells):
                raise BadRow(
                    row, f"attribute {position:,} does not exist: attributes are numbered from 0 to {len(cells) - 1:,}"
                )
            value = pair[4] if pair[4] is not None else _unescape(pair[2] or pair[3] or "")
            cells[position] = None if pair[4] == "?" else value
        closing_brace = re.compile(r"\s*\}", re.ASCII).match(line, start)
        if closing_brace is None:
            fault = "is not a pair of a number and a value, or the row has no closing }"
            raise BadRow(row, f"{errors.shortened(line[start:])!r} {fault}")
        return cells, self._weight(line[closing_brace.end() :], row)

    def _weight(self, remainder: str, row: int) -> float:
        """The weight in ``remainder``, the text after the values of a row; 1 if there is none. ``row``: its number in
        the block, for errors.
        """
        if not remainder.strip() or remainder.lstrip().startswith("%"):
            return 1.0
        braces = _WEIGHT.match(remainder)  # group 1 is the text in braces
        try:
            return float(braces[1] if braces else "")
        except ValueError:
            raise BadRow(
                row, f"{errors.shortened(remainder)!r} after the values is not a weight, such as {{2}}"
            ) from None

    def _batch(self, n_rows: int, arrays: Sequence[Any], weights: list[float] | None) -> Batch:
        """The batch of ``n_rows`` rows from their parsed columns, and of the weights if some row of the file has one.
        ``arrays``: for each attribute an array of numbers or an Arrow array of texts; ``weights``: one per row, None if
        all are 1.
        """
        named_attributes = zip(self.names, self.attributes, arrays, strict=True)
        columns = {name: _column(attribute, array) for name, attribute, array in named_attributes}
        if self.weight is None:
            return Batch(self.names, n_rows, columns, named=True, source=self.path)
        columns[self.weight] = Numbers(np.ones(n_rows) if weights is None else np.array(weights))
        batch = Batch((*self.names, self.weight), n_rows, columns, named=True, source=self.path)
        batch.non_features = frozenset([self.weight])
        return batch


def _column(attribute: Attribute, cells: Any) -> Column:
    """The column of an attribute. ``cells``: an array of numbers, or an Arrow array of texts; nominal ones become codes
    of the declared values, in their order. Raises BadRow for a value that is not declared.
    """
    if isinstance(cells, np.ndarray):
        return Numbers(cells)
    if attribute.kind == "date":
        return Strings(cells, declared="date")
    if attribute.kind != "nominal":
        return from_arrow(cells)
    code_by_value = {value: code for code, value in enumerate(attribute.values)}
    dictionary_array = cells.dictionary_encode()  # the distinct texts, and for each row the index of its text
    code_of_text = []  # one for each distinct text
    for value in texts(dictionary_array.dictionary):
        if value not in code_by_value:
            row = next(row for row, cell in enumerate(texts(cells)) if cell == value)
            suggestion = errors.did_you_mean(value, attribute.values)
            fault = f"which is not one of its declared values ({errors.listed(attribute.values, 6)})"
            raise BadRow(
                row, f"column {attribute.name!r} contains {value!r}, {fault}" + (f".{suggestion}" if suggestion else "")
            )
        code_of_text.append(code_by_value[value])
    indices = dictionary_array.indices.fill_null(len(code_of_text)).to_numpy()  # for each row one in ``code_of_text``
    row_codes = np.array([*code_of_text, -1], dtype=np.int32)[indices]  # −1: missing
    return Codes(row_codes, low=0, values=list(attribute.values), categorical=True)


def _values(text: str) -> tuple[list[tuple[str, bool]], str]:
    """The values of a dense row, whose line is ``text``, each with whether it was quoted; and the rest of the line,
    which may be a weight or a comment.
    """
    values: list[tuple[str, bool]] = []
    position = 0  # in the line, of the next value
    # Groups of a cell: 1 and 2 its text in single or double quotes, 3 its text without quotes, 4 the separator.
    while (cell := _VALUE.match(text, position)) is not None:
        is_quoted = cell[3] is None
        if text[cell.start() : cell.end()].strip(BLANKS) == "" and text[cell.end() : cell.end() + 1] in ("{", "%"):
            return values, text[cell.end() :]
        value = _unescape(cell[1] or cell[2] or "") if is_quoted else (cell[3] or "").strip(BLANKS)
        values.append((value, is_quoted))
        position = cell.end()
        if cell[4] not in (",", "\t"):
            break
    return values, text[position:]


def _unescape(text: str) -> str:
    """The text with escape sequences replaced by what they stand for; two may make one character. Raises
    UnicodeDecodeError for half a character.
    """

    def plain(match: re.Match[str]) -> str:
        """The character that an escape sequence stands for."""
        return chr(int(match[1][1:], 16)) if len(match[1]) == 5 else _ESCAPES.get(match[1], match[1])

    text = _ESCAPED.sub(plain, text) if "\\" in text else text
    return text.encode("utf-16", "surrogatepass").decode("utf-16") if LONE_SURROGATE.search(text) else text
