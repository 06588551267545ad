"""CSV and its kin: the delimiter is found, types come from the first block and widen when a later one differs."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.reading.arrow import BLANKS, Strings, arrow, from_arrow, kind_of_type
from banbury.reading.batches import Batch, Beside, Source, Widened, distinct
from banbury.reading.blocks import (
    HEAD,
    MOST_COLUMNS,
    Block,
    BlockFile,
    Layout,
    find_first_failure,
    first_lines_of,
    lines_before,
    read_csv,
    reason,
    split_into_blocks,
)
from banbury.reading.by_name import Columns, NamedMatrix, side_by_side
from banbury.reading.columns import Codes, Column, Numbers, decode_bytes, empty_column, regroup
from banbury.reading.decoding import LONE_SURROGATE
from banbury.reading.options import TABLE_SETTINGS, Options, is_mark
from banbury.reading.tables import no_rows

DELIMITERS = ",;\t|"
SNIFFED_RECORDS = 50
CODE = r"^[ \t]*[+-]?0([0-9]+|[xX].*)[ \t]*$"  # what looks like a number, and is none: its zeros say something
TABLE_ENDINGS = (".csv", ".tsv", ".tab", ".data", ".gz", ".zip")  # of files whose lines are no texts, most likely
HEADER_CELLS = 20_000  # cells of the first rows that are compared with the first line: a few milliseconds
FEW_WORDS = 4  # rows for each different word of a column, at least, where it is no column of texts
TOGETHER = 500  # columns that Arrow parses at once: it takes 27 KB for each while it does

TRUE = ("true", "True", "TRUE")
FALSE = ("false", "False", "FALSE")


def from_csv(path: str, options: Options) -> Source:
    """A delimited text file, which need not fit in memory. Without a header if columns are named or its first line is a row."""
    mark = options.delimiter
    fits = mark is None or (is_mark(mark) and mark != (options.quote or '"'))
    errors.require(fits, "delimiter", mark, "one ASCII character other than the quotation mark, or None to detect it")
    file = _DelimitedFile(path, options)
    reading = options.settings(TABLE_SETTINGS) | ({"header": False} if file.first_row else {})
    return Source(file.batches, path, reading=reading, holds_no_lists=True, parses=True)


class _DelimitedFile(BlockFile):
    """What is known of one file: its delimiter, its columns, and the types that they are read as."""

    def __init__(self, path: str, options: Options) -> None:
        self.path = path
        self.missing_values = frozenset(text for text in options.missing_values if not LONE_SURROGATE.search(text))
        self.kinds = options.kinds or {}
        self.types: dict[str, Any] = {}
        self.warned = self.told = False
        self.plain = ""  # a letter for each column, where blocks are likely to be plain
        self.words: dict[str, list[str]] = {}  # of the first block, column by column, in order
        self.known: list[bytes] = []  # the same, a text of lines for each column
        self.has_header = options.columns is None if options.header is None else options.header
        self.first_row = ""  # what shows that the first line is a row, where nobody said whether it is
        mark = '"' if options.quote is None else options.quote
        comment = b"" if options.comment in (None, "none") else options.comment.encode()
        self.layout = Layout(quote=b"" if mark == "none" else mark.encode(), comment=comment)
        head = first_lines_of(path)
        if b"\n" not in head and b"\r" in head:
            self.layout = replace(self.layout, newline=b"\r")
        head = first_lines_of(path, self.layout) if comment else head
        self.start, header = self._header(head, options.skip_lines)
        sample = head[self.start - len(header) :][:HEAD]
        self.delimiter = options.delimiter or sniff_delimiter(self._text(sample), self.quote)
        # Programs that write tab-separated text seldom quote it, and a message may well begin with a quotation mark.
        if options.quote is None and self.delimiter == "\t" and not (self.has_header and b'"' in header):
            self.layout = replace(self.layout, quote=b"")
        elif options.quote is None and _has_single_quotes(self._text(sample), self.delimiter):
            self.layout = replace(self.layout, quote=b"'")
            self.start, header = self._header(head, options.skip_lines)
        if options.header is None and options.columns is None:
            self.first_row = self._first_row(head[self.start - len(header) :])
            self.has_header = not self.first_row
        self.named = options.columns is not None or (self.has_header and not options.numbered)
        self.names = self._read_names(header, options.columns)
        if not self.named and not set(self.names).issuperset(self.kinds):
            self.kinds = {}  # there are fewer columns than were counted, perhaps without the target: they are told by place
        self.start -= 0 if self.has_header else len(header)

    @property
    def quote(self) -> str:
        return self.layout.quote.decode()

    def _header(self, head: bytes, skipped: int) -> tuple[int, bytes]:
        """Where the first record ends, and its bytes; lines to skip and blank lines are passed over."""
        begin = 0
        newline = self.layout.newline
        quote = self.layout.quote
        for number in range(skipped):
            begin = head.find(newline, begin) + 1
            if not begin:
                there = f"but the file has only {errors.many(number, 'line')}"
                raise errors.bad_file(self.path, f"skip_lines is {skipped:,}, {there}.")
        while head[begin : begin + 1] in (b"\n", b"\r"):
            begin += 1
        if not head[begin:].strip():
            raise errors.bad_file(self.path, "it is empty." if not skipped else "nothing follows the skipped lines.")
        end = first_end = head.find(newline, begin) + 1 or len(head)
        while quote and head.count(quote, begin, end) % 2 and end < len(head):
            end = head.find(newline, end) + 1 or len(head)
        if quote and head.count(quote, begin, end) % 2:
            end = first_end
        return end, head[begin:end]

    def _first_row(self, head: bytes) -> str:
        """What shows that the first line is a row rather than a header; empty if it is a header."""
        n_fields = head.partition(self.layout.newline)[0].count(self.delimiter.encode()) + 1
        try:
            rows = list(islice(self._records(head), max(HEADER_CELLS // n_fields, 2)))
        except csv.Error:
            return ""
        first, *later_rows = [[field.strip(BLANKS) for field in row] for row in rows if row] or [[]]
        if not self.kinds.keys().isdisjoint(first):  # the names of the columns of the model that is to answer
            return ""
        return evidence_of_a_row(first, [row for row in later_rows if len(row) == len(first)], self.missing_values)

    def _read_names(self, header: bytes, names: Sequence[str] | None) -> tuple[str, ...]:
        if header.count(self.delimiter.encode()) >= MOST_COLUMNS:
            n = header.count(self.delimiter.encode()) + 1
            most = f"a text table can have at most {MOST_COLUMNS:,}"
            text = (
                f"its first line has {n:,} columns separated by {self.delimiter!r}, but {most}. Pass the delimiter with"
            )
            raise errors.bad_file(
                self.path, f"{text} delimiter= if it is a different one, or read the file as an array of numbers."
            )
        try:
            fields: list[str] = next(self._records(header), [])
        except csv.Error as error:
            raise errors.bad_file(self.path, f"its header cannot be read ({error}).") from None
        if names is None and not self.named:
            return tuple(str(number + 1) for number in range(len(fields)))
        if names is None:
            fields = [field.strip(BLANKS) or f"x{j}" for j, field in enumerate(fields)]
            if len(set(fields)) < len(fields):
                twice = next(name for name in fields if fields.count(name) > 1)
                text = f"two columns are named {twice!r}{errors.where(self.path)}. Rename one of them."
                raise errors.DuplicateColumn(f"{text}{errors.NO_HEADER}", column=twice)
            return tuple(fields)
        if len(names) != len(fields):
            line = lines_before(self.path, self.start - len(header), self.layout) + 1
            what = f"{len(fields):,} fields separated by {self.delimiter!r}" if len(fields) > 1 else "1 field"
            text = f"{self.path}, line {line:,}: {what}, but columns= names {len(names):,}: "
            text += f"{errors.shortened(self.delimiter.join(fields), 80)!r}. Name each field once; pass the delimiter "
            text += "with delimiter= if it is a different one; remove the line if it is not a row."
            raise errors.LengthMismatch(text, path=self.path, line=line)
        for name in names:
            allowed = "names without lone surrogates, which the text reader does not support"
            errors.require(not LONE_SURROGATE.search(str(name)), "columns", name, allowed)
        return distinct(names)

    def _text(self, data: bytes) -> str:
        """The bytes as text, by the rule that the blocks follow too: UTF-8, or else Latin-1."""
        try:
            # Not final: the end of the head may cut a character in two.
            return codecs.getincrementaldecoder("utf-8")().decode(data)
        except UnicodeDecodeError:
            return data.decode("latin-1")

    def _records(self, data: bytes) -> Any:
        return records(self._text(data), self.delimiter, self.quote)

    def batches(self, beside: Beside[Any] | None = None) -> Iterator[Batch]:
        blocks = split_into_blocks(self.path, self.start, self.layout)
        first = next(blocks, None)
        return iter([no_rows(self.names, self.path)]) if first is None else self.read(first, blocks, beside)

    def infer(self, block: Block) -> Any:
        self.plain = ""
        batch = self._batch(block, types := dict[str, Any]())
        self.types = types
        if coded := self._codes_among(block):
            self.types |= dict.fromkeys(coded, arrow().string())
            batch = self._batch(block)
        if self.first_row and not self.told:
            self.told = True
            numbered = f"columns are numbered from 1 to {len(self.names):,}"
            text = f"{self.path} seems to have no header: its first line looks like a row ({self.first_row}), so"
            errors.warn(f"{text} {numbered}. If it is a header, pass header=True.")
        self.plain = self._plain_kinds(batch)
        return batch

    def _plain_kinds(self, batch: Batch) -> str:
        """A letter for each column, if all hold numbers or few words, which are most often plain; else none."""
        pa = arrow()
        types = self._column_types()
        letters = {pa.float64(): "f", pa.int64(): "i", pa.string(): "s"}
        kinds = [letters.get(types.get(name), "") for name in self.names]
        wide = len(kinds) > TOGETHER
        word_columns = [name for name, kind in zip(self.names, kinds, strict=True) if kind == "s"]
        if wide or not all(kinds) or self.layout.newline != b"\n" or {"text", "list"} & set(self.kinds.values()):
            return ""
        words_by_column = {name: batch.codes(name).values for name in word_columns}
        odd = {"\n", "\r", self.delimiter, self.quote} - {""}
        self.words = {
            name: sorted(w for w in map(str, words) if odd.isdisjoint(w)) for name, words in words_by_column.items()
        }
        self.known = ["".join(f"{word}\n" for word in self.words.get(name, ())).encode() for name in self.names]
        has_few_words = all(len(words) * FEW_WORDS <= batch.n_rows for words in words_by_column.values())
        return "".join(kinds) if has_few_words else ""

    def parse(self, block: Block) -> Any:
        if (plain := self._plain_batch(block)) is not None:
            return plain
        batch = self._batch(block)
        return self._codes_among(block) or batch

    def finish(self, parsed: Any, block: Block) -> Any:
        """Notes columns of codes in the order of blocks, whichever was parsed first; Widened has reading begin again."""
        if not isinstance(parsed, list):
            return parsed
        self.types |= dict.fromkeys(parsed, arrow().string())
        raise Widened(parsed[0], "string")

    def _plain_batch(self, block: Block) -> Batch | None:
        """The block's columns, where all is plain; None where Arrow is needed to read it, or to say what is wrong."""
        if not self.plain:
            return None
        raw = np.frombuffer(block.data, np.uint8)
        missing = [text.encode() for text in self.missing_values]
        mark = ord(self.delimiter)
        quote = ord(self.quote) if self.quote else None
        parsed_columns = _core.parse_fields(raw, mark, quote, self.plain, missing, self.known)
        if not parsed_columns:
            return None
        self._tell_latin_1(block)
        columns = {
            name: self._plain_column(name, parsed, block)
            for name, parsed in zip(self.names, parsed_columns, strict=True)
        }
        return Batch(self.names, len(columns[self.names[0]]), columns, self.named, self.path)

    def _plain_column(self, name: str, parsed: Any, block: Block) -> Column:
        if isinstance(parsed, tuple):
            known_words = self.words[name]
            low = len(self.missing_values)
            words = [*known_words, *(decode_bytes(bytes(block.data[start:end])) for start, end in parsed[1])]
            codes = Codes(parsed[0], low, words)
            if len({*self.missing_values, *words}) < low + len(words):  # two spellings in bytes may be one text
                codes = regroup(codes, [None if word in self.missing_values else word for word in words])
            codes.value_kind = "string"
            return codes
        empty = parsed.dtype.kind == "f" and np.isnan(parsed[:1]).all() and np.isnan(parsed).all()
        return empty_column(len(parsed)) if empty else Numbers(parsed)

    def _codes_among(self, block: Block) -> list[str]:
        """The columns that would be numbers, and hold codes that look like some: 00130, 0x1F. Their zeros are not to be lost."""
        if not _core.any_leading_zero(np.frombuffer(block.data, np.uint8)):
            return []
        numeric = {data_type: kind_of_type(data_type) in ("integer", "float") for data_type in set(self.types.values())}
        numbers = [name for name, data_type in self.types.items() if numeric[data_type] and name not in self.kinds]
        if not numbers:
            return []
        compute = arrow("compute")
        written = dict.fromkeys(numbers, arrow().string())
        return [
            name
            for texts in self._tables(block, written, only=numbers)
            for name, column in zip(texts.column_names, texts.itercolumns(), strict=True)
            if compute.any(compute.match_substring_regex(column, CODE)).as_py()
        ]

    def _batch(self, block: Block, types: dict[str, Any] | None = None) -> Batch:
        """The block's columns, texts already encoded: that way it is done beside the counting of the block before.

        ``types`` is filled with the Arrow type of each. A text that is not UTF-8 is taken for Latin-1 when it is looked at.
        """
        self._tell_latin_1(block)
        columns = dict[str, Column]()
        matrices = list[NamedMatrix]()
        n_rows = 0
        same: dict[Any, Any] = {}  # one object for each type, however many columns have it
        for table in self._tables(block, self._column_types()):
            if types is not None:
                types.update((field.name, same.setdefault(field.type, field.type)) for field in table.schema)
            table_columns = dict(self._columns(table))
            n_rows = table.num_rows
            if len(self.names) > TOGETHER:
                matrices += side_by_side(table_columns)
            columns |= table_columns
        return Batch(
            self.names, n_rows, Columns(columns.__getitem__, matrices) if matrices else columns, self.named, self.path
        )

    def _tell_latin_1(self, block: Block) -> None:
        if not self.warned and not is_utf8(block.data) and not self.warned:  # another thread may have, meanwhile
            self.warned = True
            how = "is not UTF-8, so it was read as Latin-1. If characters look wrong, save it as UTF-8."
            errors.warn(f"{self.path} {how}")

    def _columns(self, table: Any) -> Iterator[tuple[str, Column]]:
        for name, array in zip(table.column_names, table.itercolumns(), strict=True):
            column = from_arrow(array, True, self.missing_values)
            if isinstance(column, Strings) and self.kinds.get(name) != "text":
                codes = column.encode()
                if codes is not None and not codes.values:  # blanks alone
                    column = empty_column(len(column))
                elif codes is not None and len(self.names) > TOGETHER:  # an Arrow array takes 1 KB
                    column = codes
            yield name, column

    def _tables(self, block: Block, types: Mapping[str, Any], only: Sequence[str] = ()) -> Iterator[Any]:
        """The block's columns, or ``only`` some of them, as Arrow tables: all in one, or of many columns some at a time."""
        if len(self.names) <= TOGETHER:
            yield self._parse_columns(block.data, self.names, types, only)
            return
        wanted_names = set(only or self.names)
        for data, names, table_names in self._few_at_a_time(block):
            if chosen := [name for name in table_names if name in wanted_names]:
                some = {name: types[name] for name in chosen if name in types}
                yield self._parse_columns(data, names, some, chosen)

    def _few_at_a_time(self, block: Block) -> Iterator[tuple[Any, Sequence[str], Sequence[str]]]:
        """Fields of the block, the columns that they are of, and those that are wanted of them: some at a time.

        Where records cannot be told by their marks alone, all fields come each time, for Arrow to tell.
        """
        n = len(self.names)
        newline = self.layout.newline
        fields = self._fields(block)
        for a, b in pairwise(np.linspace(0, n, -(-n // TOGETHER) + 1).astype(int).tolist()):
            some = self.names[a:b]
            if fields is None:
                yield block.data, self.names, some
            else:
                spans = zip((fields[:, a] + 1).tolist(), fields[:, b].tolist(), strict=True)
                yield newline.join(block.data[start:end] for start, end in spans), some, some

    def _fields(self, block: Block) -> NDArray[np.int64] | None:
        """Where each record's fields end, and before them where the line before does; None if that is not seen by marks alone.

        A mark between quotation marks ends nothing.
        """
        raw = np.frombuffer(block.data, np.uint8)
        newline = ord(self.layout.newline)
        marks = (raw == newline) | (raw == ord(self.delimiter))
        if self.quote and (quotes := raw == ord(self.quote)).any():
            within = np.logical_xor.accumulate(quotes)
            before = np.append(True, marks | quotes)[:-1]
            if (quotes & within & ~before).any():  # a quotation mark within a field is a letter
                return None
            marks &= ~within
        ends = np.flatnonzero(marks)
        if raw[-1] != newline or not marks[-1]:
            ends = np.append(ends, len(raw))
        lines = np.flatnonzero((ends == len(raw)) | (raw[np.minimum(ends, len(raw) - 1)] == newline))
        before = np.append(-1, ends[lines[:-1]])
        n_fields = np.diff(lines, prepend=-1)
        text = ends[lines] - before - 1
        blank = (n_fields == 1) & ((text == 0) | ((text == 1) & (raw[before + 1] == ord("\r"))))
        if (n_fields[~blank] != len(self.names)).any():
            return None
        field_ends = ends[np.repeat(~blank, n_fields)].reshape(-1, len(self.names))
        return np.column_stack([before[~blank], field_ends])

    def _parse_columns(self, data: Any, names: Sequence[str], types: Mapping[str, Any], only: Sequence[str]) -> Any:
        spelt = (
            _pad_with_blanks if (np.frombuffer(data, np.uint8) == ord(" ")).any() else list
        )  # Arrow takes its time for each
        more = {"true_values": spelt(TRUE), "false_values": spelt(FALSE), "include_columns": only}
        return read_csv(data, names, types, spelt(self.missing_values), self.delimiter, self.quote, **more)

    def _column_types(self) -> dict[str, Any]:
        pa = arrow()
        forced = {"number": pa.float64(), "string": pa.string(), "text": pa.string(), "list": pa.string()}
        column_names = frozenset(self.names)
        return self.types | {name: forced[kind] for name, kind in self.kinds.items() if name in column_names}

    def explain_failure(self, error: Exception, block: Block) -> Exception:
        """What Arrow could not parse or convert, in our words; a type that proved too narrow is widened."""
        pa = arrow()
        types = self._column_types()
        if not self._parses(block, dict.fromkeys(self.names, pa.string())):
            expected = len(self.names)
            for line, fields in self.records(block):
                if len(fields) != expected:
                    text = self.delimiter.join(fields)
                    line_1 = "header" if self.has_header else "first line"
                    title = " If the first line is a title, skip it with skip_lines=1." if line == 2 else ""
                    message = f"{errors.many(len(fields), 'field')} but the {line_1} has {expected}"
                    shown = f"{text if len(text) <= 80 else text[:77] + '...'!r}"
                    lines = (
                        ""
                        if self.path.lower().endswith(TABLE_ENDINGS)
                        else " If each line is a text, pass format='lines'."
                    )
                    message += f": {shown}. Fix the line, or pass the delimiter with delimiter=.{title}{lines}"
                    return errors.BadFile(f"{self.path}, line {line:,}: {message}", path=self.path, line=line)
            return errors.bad_file(self.path, reason(error))
        first = find_first_failure(len(self.names), lambda part: self._parses(block, types, self.names[part]))
        column = self.names[first]
        if column not in types or self._parses(block, types, [column]):
            return errors.bad_file(self.path, reason(error))
        texts = next(self._tables(block, {column: pa.string()}, only=[column]))[column]
        try:
            row = find_first_failure(len(texts), lambda part: _fit(texts[part], types[column]))
            line_or_none = self.line(block, row)
        except pa.ArrowNotImplementedError:  # a time of day, which Arrow parses in a file alone
            row = 0
            line_or_none = None
        if column in self.kinds:
            value = next(iter(from_arrow(texts.slice(row, 1)).head(1)), None)
            is_first = row == 0 and block.offset == self.start
            return self.wrong_type(value, column, line_or_none, errors.A_HEADER * (is_first and not self.has_header))
        wider = [pa.int64(), pa.float64(), pa.string()]  # the narrowest first
        narrow = 0 if pa.types.is_null(types[column]) else 1 if pa.types.is_integer(types[column]) else 2
        self.types[column] = next(
            data_type for data_type in wider[narrow:] if self._parses(block, {column: data_type}, [column])
        )
        self._widen_others(block)
        return Widened(column, kind_of_type(self.types[column]), line_or_none)

    def _widen_others(self, block: Block) -> None:
        """Widens all columns that the block shows to be wider, so that reading begins again once and not for each of them."""
        pa = arrow()
        types = arrow("types")
        tables = self._tables(block, {name: pa.string() for name in self.kinds})
        for name, shown_type in ((field.name, field.type) for table in tables for field in table.schema):
            known_type = self.types[name]
            if name in self.kinds or shown_type in (known_type, pa.null()):
                continue
            if types.is_null(known_type) or (types.is_integer(known_type) and types.is_floating(shown_type)):
                self.types[name] = (
                    shown_type if types.is_integer(shown_type) or types.is_floating(shown_type) else pa.string()
                )
            elif types.is_integer(known_type) or types.is_boolean(known_type):
                self.types[name] = pa.string()

    def _parses(self, block: Block, types: Mapping[str, Any], only: Sequence[str] = ()) -> bool:
        """Whether the block's columns, or some of them, are of these types."""
        try:
            for _ in self._tables(block, types, only):
                pass
        except arrow().ArrowInvalid:
            return False
        return True

    def records(self, block: Block) -> Iterator[tuple[int, list[str]]]:
        """The records of the block, each with the line of the file on which it begins; as far as they can be read."""
        reader = self._records(bytes(block.data))
        begin = line = lines_before(self.path, block.offset, self.layout) + 1
        with contextlib.suppress(csv.Error):
            for fields in reader:
                if fields:
                    yield begin, fields
                begin = line + reader.line_num


def is_utf8(data: memoryview) -> bool:
    """Whether it is text in UTF-8. Arrow looks at it, which holds up no other thread."""
    pa = arrow()
    ends = pa.py_buffer(np.array([0, len(data)], dtype=np.int64))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, ends, pa.py_buffer(data)]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def records(text: str, delimiter: str, quote: str) -> Any:
    """Python's own reader, which knows its line: for the header, for sniffing and for errors."""
    quoting: Any = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, quotechar=quote or None)


def sniff_delimiter(text: str, quote: str) -> str:
    """The delimiter on which header and first records agree best; a space only if no other divides the header."""
    scores = {delimiter: _agreement(text, delimiter, quote) for delimiter in DELIMITERS}
    best = max(scores, key=lambda delimiter: scores[delimiter])
    nothing = " " if _agreement(text, " ", quote)[0] == 1.0 else ","
    return nothing if scores[best] == (0.0, 1) else best


def _agreement(text: str, delimiter: str, quote: str) -> tuple[float, int]:
    """The share of records that have as many fields as the header, and that number; (0, 1) if it divides nothing."""
    counts: list[int] = []
    with contextlib.suppress(csv.Error):
        lengths = (len(fields) for fields in records(text, delimiter, "" if delimiter == "\t" else quote) if fields)
        counts.extend(islice(lengths, SNIFFED_RECORDS + 1))
    if not counts or counts[0] < 2:
        return 0.0, 1
    # The last record may be cut off by the end of the head.
    judged = counts[:-1] if len(counts) > 2 else counts
    return sum(count == counts[0] for count in judged) / len(judged), counts[0]


def _fit(texts: Any, data_type: Any) -> bool:
    """Whether all of the texts are values of the type."""
    pa = arrow()
    compute = arrow("compute")
    types = arrow("types")
    texts = compute.ascii_trim(texts.drop_null(), " \t")
    if types.is_null(data_type):
        return len(texts) == 0
    if types.is_boolean(data_type):
        return all(text in TRUE + FALSE for text in texts.unique().to_pylist())
    try:
        texts.cast(data_type)
    except pa.ArrowInvalid:
        return False
    return True


def evidence_of_a_row(first: Sequence[str], rows: Sequence[Sequence[str]], missing: frozenset[str]) -> str:
    """What shows that a file's first line is a row: numbers above numbers, or words found below; else nothing."""
    columns = [[cell for cell in column if cell not in missing] for column in zip(*rows, strict=True)]
    fields = [(name, column) for name, column in zip(first, columns, strict=False) if column]
    numeric = [(name, all(map(is_number, column))) for name, column in fields]
    numbers = [name for name, is_numeric in numeric if is_numeric and not (name and name in missing)]
    words = [name for name, is_numeric in numeric if not is_numeric and not (name and name in missing)]
    repeated = [name for name, column in fields if name in words and name in column]
    texts = [name for name, column in fields if name not in repeated and _is_text(name) and any(map(_is_text, column))]
    if numbers:
        below = len(words) == len(repeated) > 0
        if all(map(is_number, numbers)) and (below or not _are_positions(numbers)):
            return f"{errors.listed(numbers, 3)} above numbers"
        return ""
    is_row = 2 * len(repeated) > max(len(words), 2) or (repeated and len(repeated) + len(texts) == len(words))
    return f"{errors.listed(map(errors.shortened, repeated), 3)} that also occur below" if is_row else ""


def _is_text(cell: str) -> bool:
    return len(cell.split()) > 2


def _are_positions(numbers: Sequence[str]) -> bool:
    """Whether they are whole numbers in equal steps, or years: columns may well be named so."""
    if not all(number.isdecimal() for number in numbers):
        return False
    integers = [int(number) for number in numbers]
    steps = set(np.diff(integers).tolist())
    return (
        integers == [0]
        or steps == {1}
        or (len(integers) > 2 and len(steps) == 1 and steps != {0})
        or all(1800 <= number <= 2200 for number in integers)
    )


def _has_single_quotes(text: str, delimiter: str) -> bool:
    """Whether fields stand in single quotes: every quotation ends where its field does, on the line where it began, and none
    is a double quote.
    """
    at_field = rf"(?:^|[{re.escape(delimiter)}\n]) *"
    is_cut = len(text) >= HEAD or not text.endswith(("\n", "\r"))
    lines = text.splitlines(keepends=True)
    whole_lines = "".join(lines[:-1] if is_cut and len(lines) > 2 else lines)
    if re.search(at_field + '"', whole_lines) or not re.search(at_field + "'", whole_lines):
        return False
    reader = csv.reader(io.StringIO(whole_lines, newline=""), delimiter=delimiter, quotechar="'", strict=True)
    try:
        rows = list(reader)
    except csv.Error:
        return False
    return len({len(fields) for fields in rows if fields}) == 1 and reader.line_num == len(rows)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _pad_with_blanks(texts: Any) -> list[str]:
    """Each text as it is, and with one blank before, after, and on both sides."""
    return [before + text + after for text in texts for before in ("", " ") for after in ("", " ")]
