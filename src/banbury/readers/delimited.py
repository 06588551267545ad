"""CSV and its kin: the delimiter is found, types come from the first block and widen when a later one differs."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from banbury import errors
from banbury.readers.arrow import Strings, arrow, from_arrow, kind_of_type
from banbury.readers.batches import Batch, Source, Widened, distinct
from banbury.readers.blocks import Block, cut, head_of, lines_before, parsed, reason, share
from banbury.readers.columns import Empty

DELIMITERS = ",;\t|"
SNIFFED_RECORDS = 50
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_CONVERSION = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to .*?: invalid value '(.*)'", re.S
)


def from_delimited(
    path: str,
    names: Sequence[str] | None,
    delimiter: str | None,
    missing_values: Sequence[str],
    kinds: Mapping[str, str] | None,
) -> Source:
    """A delimited text file, which need not fit in memory. With ``names`` it has no header."""
    if delimiter is not None and (
        not isinstance(delimiter, str) or len(delimiter.encode()) != 1 or delimiter in '\0\n\r"'
    ):
        raise errors.bad_setting("delimiter", delimiter, "one ASCII character, or None to have it found out")
    file = _DelimitedFile(path, names, delimiter, missing_values, kinds or {})
    return Source(file.batches, path)


class _DelimitedFile:
    """What is known of one file: its delimiter, its columns, and the types that they are read as."""

    def __init__(
        self,
        path: str,
        names: Sequence[str] | None,
        delimiter: str | None,
        missing_values: Sequence[str],
        kinds: Mapping[str, str],
    ) -> None:
        self.path = path
        self.missing_values = frozenset(missing_values)
        self.kinds = kinds
        self.types: dict[str, Any] = {}
        self.warned = False
        head = head_of(path)
        self.newline = b"\n" if b"\n" in head or b"\r" not in head else b"\r"
        self.start, header = self._header(head)
        self.delimiter = delimiter or sniffed(self._text(head[self.start - len(header) :]))
        # Programs that write tab-separated text seldom quote it, and a message may well begin with a quotation mark.
        self.quoted = self.delimiter != "\t" or (names is None and b'"' in header)
        self.names = self._named(header, names)
        self.start -= len(header) if names is not None else 0

    def _header(self, head: bytes) -> tuple[int, bytes]:
        """Where the first record ends, and its bytes; a byte order mark and blank lines before it are passed over."""
        begin = len(BYTE_ORDER_MARK) if head.startswith(BYTE_ORDER_MARK) else 0
        while head[begin : begin + 1] in (b"\n", b"\r"):
            begin += 1
        if not head[begin:].strip():
            raise errors.bad_file(self.path, "it is empty.")
        end = first_end = head.find(self.newline, begin) + 1 or len(head)
        while head.count(b'"', begin, end) % 2 and end < len(head):
            end = head.find(self.newline, end) + 1 or len(head)
        if head.count(b'"', begin, end) % 2:
            end = first_end
        return end, head[begin:end]

    def _named(self, header: bytes, names: Sequence[str] | None) -> tuple[str, ...]:
        try:
            fields: list[str] = next(self._records(header), [])
        except csv.Error as error:
            raise errors.bad_file(self.path, f"its header cannot be read ({error}).") from None
        if names is not None and len(names) != len(fields):
            line = lines_before(self.path, self.start - len(header), self.newline) + 1
            raise errors.names_unlike_line(self.path, line, len(names), fields, self.delimiter)
        if names is not None:
            return distinct(names)
        fields = [field.strip() or f"x{j}" for j, field in enumerate(fields)]
        if 2 * sum(map(is_number, fields)) > len(fields):
            _warn(errors.header_of_numbers(self.path))
        return distinct(fields, self.path)

    def _text(self, data: bytes) -> str:
        """The bytes as text, by the rule that the blocks follow too: UTF-8, or else Latin-1."""
        try:
            # Not final: the end of the head may cut a character in two.
            return codecs.getincrementaldecoder("utf-8")().decode(data)
        except UnicodeDecodeError:
            return data.decode("latin-1")

    def _records(self, data: bytes) -> Any:
        return records(self._text(data), self.delimiter, self.quoted)

    def batches(self) -> Iterator[Batch]:
        first_row = 0
        blocks = cut(self.path, self.start, self.newline, self.quoted)
        first = next(blocks, None)
        if first is not None:
            batch = self._inferred(first)
            first_row, batch.share = batch.n_rows, share(first, self.path)
            yield batch
            yield from self._following(blocks, first_row)
        else:
            yield Batch(self.names, 0, {name: Empty(0) for name in self.names}, True, self.path)

    def _inferred(self, block: Block) -> Batch:
        """The first block, whose types become those of the file, as far as none is known yet."""
        try:
            table = self._parse(block)
        except arrow().ArrowException as error:
            raise self._explained(error, block) from None
        self.types = dict(zip(self.names, table.schema.types, strict=True))
        return self._batch(table)

    def _following(self, blocks: Iterator[Block], first_row: int) -> Iterator[Batch]:
        for block, future in parsed(blocks, lambda block: self._batch(self._parse(block))):
            try:
                batch = future.result()
            except arrow().ArrowException as error:
                raise self._explained(error, block) from None
            batch.first_row, batch.share = first_row, share(block, self.path)
            first_row += batch.n_rows
            yield batch

    def _batch(self, table: Any) -> Batch:
        """The block's columns, texts already encoded: that way it is done beside the counting of the block before."""
        columns = {
            name: from_arrow(column, True, self.missing_values)
            for name, column in zip(self.names, table.columns, strict=True)
        }
        for name, column in columns.items():
            if isinstance(column, Strings) and self.kinds.get(name) != "text":
                column.encode()
        return Batch(self.names, table.num_rows, columns, True, self.path)

    def _parse(self, block: Block) -> Any:
        """The block as an Arrow table; a text that is not UTF-8 is taken for Latin-1 when it is looked at."""
        types = self._column_types()
        try:
            table = self._parse_as(block, types, check_utf8=True)
            if not any(map(arrow("types").is_binary, table.schema.types)):
                return table
        except arrow().ArrowInvalid as error:
            if "UTF8" not in str(error):
                raise
        if not self.warned:
            self.warned = True
            _warn(errors.not_utf8(self.path))
        texts = {name: arrow().string() for name in self.names if self.types.get(name, None) == arrow().string()}
        return self._parse_as(block, types | texts, check_utf8=False)

    def _parse_as(self, block: Block, types: Mapping[str, Any], check_utf8: bool) -> Any:
        pa_csv = arrow("csv")
        return pa_csv.read_csv(
            arrow().BufferReader(block.data),
            pa_csv.ReadOptions(use_threads=False, block_size=2 * len(block.data) + 1024, column_names=self.names),
            pa_csv.ParseOptions(
                delimiter=self.delimiter,
                quote_char='"' if self.quoted else False,
                newlines_in_values=self.quoted,
            ),
            pa_csv.ConvertOptions(
                null_values=_blanked(self.missing_values),
                true_values=_blanked(["true", "True", "TRUE"]),
                false_values=_blanked(["false", "False", "FALSE"]),
                strings_can_be_null=True,
                check_utf8=check_utf8,
                column_types=types,
            ),
        )

    def _column_types(self) -> dict[str, Any]:
        pa = arrow()
        forced = {"number": pa.float64(), "string": pa.string(), "text": pa.string()}
        return self.types | {name: forced[kind] for name, kind in self.kinds.items() if name in self.names}

    def _explained(self, error: Exception, block: Block) -> Exception:
        """What Arrow could not parse or convert, in our words; a type that proved too narrow is widened."""
        conversion = _CONVERSION.search(str(error))
        if conversion is None:
            return self._broken(error, block)
        column, row, value = self.names[int(conversion[1])], int(conversion[2] or 0), conversion[3]
        line = self._line(block, row)
        if column in self.kinds:
            return errors.wrong_type_in_line(value, column, "a number", line, self.path)
        self.types[column] = wider(self.types[column], value)
        return Widened(column, kind_of_type(self.types[column]), line)

    def _broken(self, error: Exception, block: Block) -> Exception:
        """The first record of the block that has not as many fields as the header."""
        reader = self._records(bytes(block.data))
        before = 0
        try:
            for fields in reader:
                if fields and len(fields) != len(self.names):
                    line = lines_before(self.path, block.offset, self.newline) + before + 1
                    return errors.broken_row(self.path, line, len(self.names), len(fields), self.delimiter.join(fields))
                before = reader.line_num
        except csv.Error:
            pass
        return errors.bad_file(self.path, reason(error))

    def _line(self, block: Block, row: int) -> int | None:
        """The line of the file on which the block's row begins; Arrow counts neither blank lines nor quoted breaks."""
        reader = self._records(bytes(block.data))
        before = 0
        try:
            for fields in reader:
                row -= bool(fields)
                if row == 0:
                    return lines_before(self.path, block.offset, self.newline) + before + 1
                before = reader.line_num
        except csv.Error:
            pass
        return None


def _warn(warning: Warning) -> None:
    errors.warn(warning)


def records(text: str, delimiter: str, quoted: bool) -> Any:
    """Python's own reader, which knows its line: for the header, for sniffing and for errors."""
    stream = io.StringIO(text, newline="")
    return (
        csv.reader(stream, delimiter=delimiter)
        if quoted
        else csv.reader(stream, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    )


def sniffed(text: str) -> str:
    """The delimiter on which header and first records agree best; a space only if no other divides the header."""
    scores = {delimiter: _agreement(text, delimiter) for delimiter in DELIMITERS}
    best = max(scores, key=lambda delimiter: scores[delimiter])
    if scores[best] == (0.0, 1):
        return " " if _agreement(text, " ")[0] == 1.0 else ","
    return best


def _agreement(text: str, delimiter: str) -> tuple[float, int]:
    """The share of records that have as many fields as the header, and that number; (0, 1) if it divides nothing."""
    counts = []
    try:
        for fields in records(text, delimiter, quoted=delimiter != "\t"):
            counts += [len(fields)] if fields else []
            if len(counts) > SNIFFED_RECORDS:
                break
    except csv.Error:
        pass
    if not counts or counts[0] < 2:
        return 0.0, 1
    # The last record may be cut off by the end of the head.
    judged = counts[:-1] if len(counts) > 2 else counts
    return sum(count == counts[0] for count in judged) / len(judged), counts[0]


def wider(data_type: Any, value: str) -> Any:
    """The next type that can hold the value too: integers become floats, anything becomes texts."""
    pa = arrow()
    types = arrow("types")
    if types.is_null(data_type) and re.fullmatch(r"\s*[+-]?\d{1,18}\s*", value):
        return pa.int64()
    if (types.is_null(data_type) or types.is_integer(data_type)) and is_number(value):
        return pa.float64()
    return pa.string()


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _blanked(texts: Any) -> list[str]:
    """Each text as it is, and with one blank before, after, and on both sides."""
    return [before + text + after for text in texts for before in ("", " ") for after in ("", " ")]
