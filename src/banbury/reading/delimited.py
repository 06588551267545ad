"""Delimited text: detects the delimiter, infers column types from the first block, and widens them when a later block differs."""

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

from banbury import _core, errors
from banbury.arrays import Int
from banbury.reading.arrow import BLANKS, Strings, arrow, from_arrow, kind_of_type
from banbury.reading.batches import Batch, Source, Widened, distinct
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
)
from banbury.reading.by_name import Columns, NamedMatrix, side_by_side
from banbury.reading.columns import Codes, Column, Numbers, decode_bytes, empty_column, regroup
from banbury.reading.decoding import LONE_SURROGATE
from banbury.reading.options import TABLE_SETTINGS, Options, is_mark

DELIMITERS = ",;\t|"
SNIFFED_RECORDS = 50
LEADING_ZERO = r"^[ \t]*[+-]?0([0-9]+|[xX].*)[ \t]*$"  # looks like a number but is a code, whose leading zeros matter
TABLE_ENDINGS = (".csv", ".tsv", ".tab", ".data", ".gz", ".zip")  # of files whose lines are most likely rows, not texts
HEADER_CELLS = 20_000  # cells of the first rows that are compared with the first line: a few milliseconds
ROWS_PER_WORD = 4  # a column with at least so many rows per distinct word is not a column of texts
COLUMNS_TOGETHER = 500  # that Arrow parses at once: it takes 27 KB for each while it does

TRUE = ("true", "True", "TRUE")
FALSE = ("false", "False", "FALSE")


def from_csv(path: str, options: Options) -> Source:
    """A source for the delimited text file at ``path``, which need not fit in memory. It has no header if
    ``options.columns`` is given or its first line looks like a row. ``options``: how to read it.
    """
    delimiter = options.delimiter
    is_valid = delimiter is None or (is_mark(delimiter) and delimiter != (options.quote or '"'))
    errors.require(
        is_valid, "delimiter", delimiter, "one ASCII character other than the quotation mark, or None to detect it"
    )
    file = _DelimitedFile(path, options)
    # The options other than the defaults, with which files of the same kind will be read.
    reading = options.settings(TABLE_SETTINGS) | ({"header": False} if file.row_evidence else {})
    return Source(file.batches, path, reading=reading, holds_no_lists=True)


class _DelimitedFile(BlockFile):
    """A delimited text file: its delimiter, its columns, and the Arrow types with which they are read."""

    def __init__(self, path: str, options: Options) -> None:
        """Reads the beginning of the file at ``path`` to detect its delimiter, quotation mark and header, unless
        ``options`` name them. Types are inferred later, from the first block.
        """
        self.path = path
        self.missing_values = frozenset(text for text in options.missing_values if not LONE_SURROGATE.search(text))
        self.kinds = options.kinds or {}  # what the model needs in each column: "number", "string", "text" or "list"
        # The Arrow type of each column, inferred from the first block and widened later.
        self.types: dict[str, Any] = {}
        self.has_warned_of_latin_1 = False
        self.has_warned_of_no_header = False
        self.kernel_letters = ""  # one for each column if the Rust parser can read most blocks
        self.known_words: list[list[str]] = []  # for each column the distinct words of the first block, sorted
        self.has_header = options.columns is None if options.header is None else options.header
        self.row_evidence = ""  # why the first line looks like a row, for a warning; empty if it is a header
        quote = '"' if options.quote is None else options.quote
        comment = b"" if options.comment in (None, "none") else options.comment.encode()
        self.layout = Layout(quote=b"" if quote == "none" else quote.encode(), comment=comment)
        file_head = first_lines_of(path)
        if b"\n" not in file_head and b"\r" in file_head:
            self.layout = replace(self.layout, newline=b"\r")
        file_head = first_lines_of(path, self.layout) if comment else file_head
        # The byte at which the rows begin, which is corrected below if there is no header; and the first record.
        self.start, header = self._header(file_head, options.skip_lines)
        sample = file_head[self.start - len(header) :][:HEAD]  # from the first record on
        self.delimiter = options.delimiter or sniff_delimiter(self._text(sample), self.quote)
        # Programs that write tab-separated text seldom quote it, and a message may well begin with a quotation mark.
        if options.quote is None and self.delimiter == "\t" and not (self.has_header and b'"' in header):
            self.layout = replace(self.layout, quote=b"")
        elif options.quote is None and _has_single_quotes(self._text(sample), self.delimiter):
            self.layout = replace(self.layout, quote=b"'")
            self.start, header = self._header(file_head, options.skip_lines)
        if options.header is None and options.columns is None:
            self.row_evidence = self._find_row_evidence(file_head[self.start - len(header) :])
            self.has_header = not self.row_evidence
        self.named = options.columns is not None or (self.has_header and not options.numbered)  # or numbered from 1
        self.names = self._read_names(header, options.columns)  # of the columns
        if not self.named and not set(self.names).issuperset(self.kinds):
            self.kinds = {}  # fewer columns than were counted, perhaps without the target: the names would be wrong
        self.start -= 0 if self.has_header else len(header)

    @property
    def quote(self) -> str:
        """The quotation mark; empty if there is none."""
        return self.layout.quote.decode()

    def _header(self, head: bytes, n_skipped: int) -> tuple[int, bytes]:
        """Where the header record ends in ``head`` (the first bytes of the file), and its bytes. Skips ``n_skipped``
        lines, then blank lines. Raises BadFile if nothing follows them. A line break between quotation marks does not
        end the record, unless they are unbalanced.
        """
        start = 0
        newline = self.layout.newline
        quote = self.layout.quote
        for n_lines in range(n_skipped):  # lines that have been skipped
            start = head.find(newline, start) + 1
            if not start:
                fact = f"but the file has only {errors.many(n_lines, 'line')}"
                raise errors.bad_file(self.path, f"skip_lines is {n_skipped:,}, {fact}.")
        while head[start : start + 1] in (b"\n", b"\r"):
            start += 1
        if not head[start:].strip():
            raise errors.bad_file(self.path, "it is empty." if not n_skipped else "nothing follows the skipped lines.")
        end = line_end = head.find(newline, start) + 1 or len(head)  # of the record, and of its first line
        while quote and head.count(quote, start, end) % 2 and end < len(head):
            end = head.find(newline, end) + 1 or len(head)
        if quote and head.count(quote, start, end) % 2:  # unbalanced
            end = line_end
        return end, head[start:end]

    def _find_row_evidence(self, head: bytes) -> str:
        """Why the first line of ``head``, the file's first bytes from the header on, looks like a row rather than a
        header, in words; empty if it is a header.
        """
        n_fields = head.partition(self.layout.newline)[0].count(self.delimiter.encode()) + 1
        try:
            rows = list(islice(self._records(head), max(HEADER_CELLS // n_fields, 2)))  # the fields of each
        except csv.Error:
            return ""
        first_fields, *later_rows = [[field.strip(BLANKS) for field in row] for row in rows if row] or [[]]
        if not self.kinds.keys().isdisjoint(first_fields):  # column names of the model that will predict these rows
            return ""
        return evidence_of_a_row(
            first_fields, [row for row in later_rows if len(row) == len(first_fields)], self.missing_values
        )

    def _read_names(self, header: bytes, names: Sequence[str] | None) -> tuple[str, ...]:
        """The column names: ``names`` if the user gave any, otherwise those in ``header``, the bytes of the header
        record, otherwise numbers from 1. Raises an error if they are not unique or do not match the fields.
        """
        if header.count(self.delimiter.encode()) >= MOST_COLUMNS:
            n_fields = header.count(self.delimiter.encode()) + 1
            most = f"a text table can have at most {MOST_COLUMNS:,}"
            raise errors.bad_file(
                self.path,
                f"its first line has {n_fields:,} columns separated by {self.delimiter!r}, but {most}. Pass the delimiter with "
                "delimiter= if it is a different one, or read the file as an array of numbers.",
            )
        try:
            fields: list[str] = next(self._records(header), [])  # of the first line, header or not
        except csv.Error as error:
            raise errors.bad_file(self.path, f"its header cannot be read ({error}).") from None
        if names is None and not self.named:
            return tuple(str(number + 1) for number in range(len(fields)))
        if names is None:
            fields = [field.strip(BLANKS) or f"x{position}" for position, field in enumerate(fields)]
            if len(set(fields)) < len(fields):
                duplicate = next(name for name in fields if fields.count(name) > 1)
                raise errors.DuplicateColumn(
                    f"two columns are named {duplicate!r}{errors.where(self.path)}. Rename one of them."
                    f"{errors.NO_HEADER}",
                    column=duplicate,
                )
            return tuple(fields)
        if len(names) != len(fields):
            line = lines_before(self.path, self.start - len(header), self.layout) + 1
            field_count = f"{len(fields):,} fields separated by {self.delimiter!r}" if len(fields) > 1 else "1 field"
            raise errors.LengthMismatch(
                f"{self.path}, line {line:,}: {field_count}, but there are {errors.many(len(names), 'column name')}: "
                f"{errors.shortened(self.delimiter.join(fields), 80)!r}. Name each field once; pass the delimiter "
                "with delimiter= if it is a different one; if the line is not a row, skip it with skip_lines=.",
                path=self.path,
                line=line,
            )
        for name in names:
            errors.require(
                not LONE_SURROGATE.search(str(name)),
                "columns",
                name,
                "names without lone surrogates, which the text reader does not support",
            )
        return distinct(names)

    def _text(self, data: bytes) -> str:
        """The bytes ``data`` as text: UTF-8, or Latin-1 if they are not valid UTF-8, as for the blocks."""
        try:
            # Not final: the end of the head may cut a character in two.
            return codecs.getincrementaldecoder("utf-8")().decode(data)
        except UnicodeDecodeError:
            return data.decode("latin-1")

    def _records(self, data: bytes) -> Any:
        """A csv.reader of the records in the bytes ``data``, which yields the fields of each as a list of texts."""
        return csv_reader(self._text(data), self.delimiter, self.quote)

    def infer(self, block: Block) -> Any:
        """Parses the first block into a batch. Sets ``types``, the Arrow type of each column, and what the Rust parser
        needs for the other blocks; warns if the file seems to have no header.
        """
        self.kernel_letters = ""
        types = dict[str, Any]()
        batch = self._batch(block, types)  # fills ``types``
        self.types = types
        if code_columns := self._leading_zero_columns(block):  # of codes such as 00130, which must be read as texts
            self.types |= dict.fromkeys(code_columns, arrow().string())
            batch = self._batch(block)
        if self.row_evidence and not self.has_warned_of_no_header:
            self.has_warned_of_no_header = True
            column_names = f"columns are numbered from 1 to {len(self.names):,}"
            errors.warn(
                f"{self.path} seems to have no header: its first line looks like a row ({self.row_evidence}), so "
                f"{column_names}. If it is a header, pass header=True."
            )
        self.kernel_letters = self._choose_kernel_letters(batch)
        return batch

    def _choose_kernel_letters(self, batch: Batch) -> str:
        """A letter for each column (f, i, s: floats, integers, words) if the Rust parser can read the file; otherwise
        an empty text.

        It can if all columns hold numbers or few distinct words. ``batch`` is the first block; ``known_words`` is set
        to the distinct words of each of its columns, sorted, so that blocks share their codes.
        """
        pa = arrow()
        types = self._column_types()
        letter_of_type = {pa.float64(): "f", pa.int64(): "i", pa.string(): "s"}
        column_letters = {name: letter_of_type.get(types.get(name), "") for name in self.names}  # "": another type
        if (
            len(self.names) > COLUMNS_TOGETHER
            or not all(column_letters.values())
            or self.layout.newline != b"\n"
            or {"text", "list"} & set(self.kinds.values())
        ):
            return ""
        words_by_column = {name: batch.codes(name).values for name, letter in column_letters.items() if letter == "s"}
        special_characters = {"\n", "\r", self.delimiter, self.quote} - {""}
        self.known_words = [
            sorted(word for word in map(str, words_by_column.get(name, ())) if special_characters.isdisjoint(word))
            for name in self.names
        ]
        has_few_words = all(len(words) * ROWS_PER_WORD <= batch.n_rows for words in words_by_column.values())
        return "".join(column_letters.values()) if has_few_words else ""

    def parse(self, block: Block) -> Any:
        """Parses a later block. Returns a batch, or the names of columns whose numbers turn out to be codes with
        leading zeros.
        """
        if (kernel_batch := self._kernel_batch(block)) is not None:
            return kernel_batch
        batch = self._batch(block)
        return self._leading_zero_columns(block) or batch

    def finish(self, parsed: Any, block: Block) -> Any:
        """Returns a parsed batch. ``parsed``: what ``parse`` returned; if it is a list of columns with leading zeros,
        they are read as texts from now on and Widened is raised.

        Called in the order of the blocks, whichever was parsed first.
        """
        if not isinstance(parsed, list):
            return parsed
        self.types |= dict.fromkeys(parsed, arrow().string())
        raise Widened(parsed[0], "string")

    def _kernel_batch(self, block: Block) -> Batch | None:
        """The block parsed by the Rust kernel; None if the kernel cannot read this file (``kernel_letters`` is empty),
        or if the block contains anything unusual, which Arrow must read or report.
        """
        if not self.kernel_letters:
            return None
        block_bytes = np.frombuffer(block.data, np.uint8)
        missing = [text.encode() for text in self.missing_values]
        delimiter = ord(self.delimiter)
        quote = ord(self.quote) if self.quote else None
        word_lines = ["".join(f"{word}\n" for word in words).encode() for words in self.known_words]  # one per column
        # For each column an array of numbers, or a tuple for words; empty if the block contains anything unusual.
        parsed_columns = _core.parse_fields(block_bytes, delimiter, quote, self.kernel_letters, missing, word_lines)
        if not parsed_columns:
            return None
        self._warn_about_latin_1(block)
        columns = {
            name: self._kernel_column(known_words, cells, block)
            for name, known_words, cells in zip(self.names, self.known_words, parsed_columns, strict=True)
        }
        return Batch(self.names, len(columns[self.names[0]]), columns, self.named, self.path)

    def _kernel_column(self, known_words: Sequence[str], cells: Any, block: Block) -> Column:
        """The column of what the Rust kernel parsed. ``known_words``: those of the column in the first block;
        ``cells``: an array of numbers; or a tuple of a code per row and, for words that are not known, pairs of where
        they start and end in the block. Codes count the missing values first, then known and new words.
        """
        if isinstance(cells, tuple):
            first_code = len(self.missing_values)  # lower codes are missing values
            words = [*known_words, *(decode_bytes(bytes(block.data[start:end])) for start, end in cells[1])]
            codes = Codes(cells[0], first_code, words)
            # Two byte sequences may decode to one text.
            if len({*self.missing_values, *words}) < first_code + len(words):
                codes = regroup(codes, [None if word in self.missing_values else word for word in words])
            codes.value_kind = "string"
            return codes
        is_empty = cells.dtype.kind == "f" and np.isnan(cells[:1]).all() and np.isnan(cells).all()
        return empty_column(len(cells)) if is_empty else Numbers(cells)

    def _leading_zero_columns(self, block: Block) -> list[str]:
        """The names of the columns that were inferred as numeric, but in this block contain codes with leading zeros,
        such as 00130 or 0x1F, which must be read as texts.
        """
        if not _core.any_leading_zero(np.frombuffer(block.data, np.uint8)):
            return []
        is_numeric = {
            data_type: kind_of_type(data_type) in ("integer", "float") for data_type in set(self.types.values())
        }
        number_columns = [
            name for name, data_type in self.types.items() if is_numeric[data_type] and name not in self.kinds
        ]
        if not number_columns:
            return []
        compute = arrow("compute")
        text_types = dict.fromkeys(number_columns, arrow().string())
        return [
            name
            for text_table in self._tables(block, text_types, only=number_columns)
            for name, column in zip(text_table.column_names, text_table.itercolumns(), strict=True)
            if compute.any(compute.match_substring_regex(column, LEADING_ZERO)).as_py()
        ]

    def _batch(self, block: Block, types: dict[str, Any] | None = None) -> Batch:
        """The batch of a block: parses it with Arrow and encodes its texts, in the same thread. Raises ArrowInvalid if
        a cell does not fit its column's type.

        ``types``: a dictionary to which the Arrow type of each column is added in place; None to discard them. Texts
        that are not UTF-8 are decoded as Latin-1 when they are used.
        """
        self._warn_about_latin_1(block)
        columns = dict[str, Column]()
        matrices = list[NamedMatrix]()  # numeric columns stored side by side, if there are many
        n_rows = 0
        known_types: dict[Any, Any] = {}  # type → one object for it, however many columns have it
        for table in self._tables(block, self._column_types()):  # several if there are many columns
            if types is not None:
                types.update((field.name, known_types.setdefault(field.type, field.type)) for field in table.schema)
            table_columns = dict(self._columns(table))
            n_rows = table.num_rows
            if len(self.names) > COLUMNS_TOGETHER:
                matrices += side_by_side(table_columns)  # removes them from ``table_columns``
            columns |= table_columns
        return Batch(
            self.names, n_rows, Columns(columns.__getitem__, matrices) if matrices else columns, self.named, self.path
        )

    def _warn_about_latin_1(self, block: Block) -> None:
        """Warns once per file if a block is not valid UTF-8."""
        # The second look is for another thread that has warned meanwhile.
        if not self.has_warned_of_latin_1 and not is_utf8(block.data) and not self.has_warned_of_latin_1:
            self.has_warned_of_latin_1 = True
            text = "is not UTF-8, so it was read as Latin-1. If characters look wrong, save it as UTF-8."
            errors.warn(f"{self.path} {text}")

    def _columns(self, table: Any) -> Iterator[tuple[str, Column]]:
        """Yields the name and the column of each array of an Arrow table; short texts are encoded at once."""
        for name, array in zip(table.column_names, table.itercolumns(), strict=True):
            column = from_arrow(array, strip=True, missing_values=self.missing_values)
            if isinstance(column, Strings) and self.kinds.get(name) != "text":
                codes = column.encode()
                if codes is not None and not codes.values:  # blanks alone
                    column = empty_column(len(column))
                elif codes is not None and len(self.names) > COLUMNS_TOGETHER:  # an Arrow array takes 1 KB
                    column = codes
            yield name, column

    def _tables(self, block: Block, types: Mapping[str, Any], only: Sequence[str] = ()) -> Iterator[Any]:
        """Yields the block's columns, or those named in ``only`` (empty: all), as Arrow tables of all its rows: one
        table, or several of at most ``COLUMNS_TOGETHER`` columns if there are many.

        ``types``: the Arrow type of each column; Arrow infers the others.
        """
        if len(self.names) <= COLUMNS_TOGETHER:
            yield self._parse_columns(block.data, self.names, types, only)
            return
        wanted_names = set(only or self.names)
        for data, names, table_names in self._split_columns(block):
            if columns := [name for name in table_names if name in wanted_names]:
                chosen_types = {name: types[name] for name in columns if name in types}
                yield self._parse_columns(data, names, chosen_types, columns)

    def _split_columns(self, block: Block) -> Iterator[tuple[Any, Sequence[str], Sequence[str]]]:
        """Divides a block with many columns into groups of columns. Yields for each group text with all records, the
        names of the columns in it, and the names of those to parse from it.

        If the fields cannot be located by delimiters alone, the text is the whole block each time.
        """
        n_columns = len(self.names)
        newline = self.layout.newline
        field_bounds = self._locate_fields(block)
        for first, end in pairwise(  # positions of columns
            np.linspace(0, n_columns, -(-n_columns // COLUMNS_TOGETHER) + 1).astype(int).tolist()
        ):
            names = self.names[first:end]
            if field_bounds is None:
                yield block.data, self.names, names
            else:
                # Where these fields of each record begin and end in the block.
                spans = zip((field_bounds[:, first] + 1).tolist(), field_bounds[:, end].tolist(), strict=True)
                yield newline.join(block.data[start:stop] for start, stop in spans), names, names

    def _locate_fields(self, block: Block) -> Int | None:
        """Where fields lie in a block, as byte offsets, records × (columns + 1): first the end of the line before, then
        the end of each field.

        None if delimiters alone do not tell, because quotation marks stand inside fields or records differ in length.
        """
        block_bytes = np.frombuffer(block.data, np.uint8)
        newline = ord(self.layout.newline)
        is_separator = (block_bytes == newline) | (block_bytes == ord(self.delimiter))
        if self.quote and (is_quote := block_bytes == ord(self.quote)).any():
            is_quoted = np.logical_xor.accumulate(is_quote)  # of each byte: after an odd number of quotation marks
            follows_mark = np.append(True, is_separator | is_quote)[:-1]  # a separator or a quotation mark
            if (is_quote & is_quoted & ~follows_mark).any():  # a quotation mark within a field is a letter
                return None
            is_separator &= ~is_quoted
        separators = np.flatnonzero(is_separator)  # byte offsets of delimiters and line ends outside quotations
        if block_bytes[-1] != newline or not is_separator[-1]:
            separators = np.append(separators, len(block_bytes))
        line_ends = np.flatnonzero(  # indices in ``separators``
            (separators == len(block_bytes)) | (block_bytes[np.minimum(separators, len(block_bytes) - 1)] == newline)
        )
        line_starts = np.append(-1, separators[line_ends[:-1]])  # byte offsets of the ends of the lines before
        n_fields = np.diff(line_ends, prepend=-1)  # of each line
        line_lengths = separators[line_ends] - line_starts - 1
        is_blank = (n_fields == 1) & (
            (line_lengths == 0) | ((line_lengths == 1) & (block_bytes[line_starts + 1] == ord("\r")))
        )
        if (n_fields[~is_blank] != len(self.names)).any():
            return None
        field_ends = separators[np.repeat(~is_blank, n_fields)].reshape(-1, len(self.names))
        return np.column_stack([line_starts[~is_blank], field_ends])

    def _parse_columns(self, data: Any, names: Sequence[str], types: Mapping[str, Any], only: Sequence[str]) -> Any:
        """Parses ``data``, whole records, with Arrow into a table of the columns ``only`` (empty: all). ``names``: the
        fields of a record; ``types``: Arrow types by name, without those that Arrow shall infer.
        """
        with_variants = (
            _pad_with_blanks if (np.frombuffer(data, np.uint8) == ord(" ")).any() else list
        )  # texts to recognise; Arrow takes time for each, so blanks are considered only if there are any
        settings = {"true_values": with_variants(TRUE), "false_values": with_variants(FALSE), "include_columns": only}
        return read_csv(data, names, types, with_variants(self.missing_values), self.delimiter, self.quote, **settings)

    def _column_types(self) -> dict[str, Any]:
        """The Arrow type of each column: inferred from the blocks so far, or required by the model."""
        pa = arrow()
        required_types = {"number": pa.float64(), "string": pa.string(), "text": pa.string(), "list": pa.string()}
        column_names = frozenset(self.names)
        return self.types | {name: required_types[kind] for name, kind in self.kinds.items() if name in column_names}

    def explain_failure(self, error: Exception, block: Block) -> Exception:
        """Returns, for an Arrow error in a block, an error that names the line, the value and the next step. If types
        inferred from the first block were too narrow, widens them in ``types`` and returns Widened.
        """
        if not self._parses(block, dict.fromkeys(self.names, arrow().string())):
            for line, fields in self.records(block):
                if len(fields) != len(self.names):
                    return self._wrong_length(line, fields)
            return errors.bad_file(self.path, reason(error))
        types = self._column_types()
        required_columns = [name for name in self.names if name in self.kinds]  # whose type the model determines
        if required_columns and not self._parses(block, types, required_columns):
            position = find_first_failure(  # in ``required_columns``
                len(required_columns), lambda columns: self._parses(block, types, required_columns[columns])
            )
            return self._wrong_value(block, required_columns[position])
        if widened_columns := self._widen(block):
            return Widened(widened_columns[0], kind_of_type(self.types[widened_columns[0]]))
        return errors.bad_file(self.path, reason(error))

    def _wrong_value(self, block: Block, name: str) -> errors.BadValue:
        """The error of the first value in the column ``name`` of the block that is not a number, although the model
        needs one.
        """
        texts = next(self._tables(block, {name: arrow().string()}, only=[name]))[name]
        row = find_first_failure(len(texts), lambda rows: _are_numbers(texts[rows]))
        value = next(iter(from_arrow(texts.slice(row, 1)).head(1)), None)
        is_first_of_file = row == 0 and block.offset == self.start
        hint = errors.A_HEADER * (is_first_of_file and not self.has_header)
        return self.wrong_type(value, name, self.line(block, row), hint)

    def _wrong_length(self, line: int, fields: Sequence[str]) -> errors.BadFile:
        """The error of the line with the number ``line``, which has more or fewer fields than the first."""
        line_text = self.delimiter.join(fields)
        sample = f"{line_text if len(line_text) <= 80 else line_text[:77] + '...'!r}"
        first_line = "header" if self.has_header else "first line"
        problem = f"{errors.many(len(fields), 'field')} but the {first_line} has {len(self.names)}: {sample}. "
        problem += "Fix the line, or pass the delimiter with delimiter=."
        if line == 2:
            problem += " If the first line is a title, skip it with skip_lines=1."
        if not self.path.lower().endswith(TABLE_ENDINGS):
            problem += " If each line is a text, pass format='lines'."
        return self.bad_line(line, problem)

    def _widen(self, block: Block) -> list[str]:
        """Widens in ``self.types`` the types of all columns whose values in this block do not fit, so that reading
        restarts once and not for each of them. Returns their names; none if the types fit. Columns in ``self.kinds``
        keep the type that the model needs.
        """
        widened_columns = []
        tables = self._tables(block, dict.fromkeys(self.kinds, arrow().string()))  # other types are inferred anew
        for name, inferred_type in ((field.name, field.type) for table in tables for field in table.schema):
            old_type = self.types[name]
            if name in self.kinds or inferred_type == old_type or self._parses(block, {name: old_type}, [name]):
                continue
            are_numbers = kind_of_type(old_type) in ("empty", "integer") and kind_of_type(inferred_type) in (
                "integer",
                "float",
            )
            self.types[name] = inferred_type if are_numbers else arrow().string()
            widened_columns.append(name)
        return widened_columns

    def _parses(self, block: Block, types: Mapping[str, Any], only: Sequence[str] = ()) -> bool:
        """Whether Arrow can parse the block's columns, or those in ``only``, as these types."""
        try:
            for _ in self._tables(block, types, only):
                pass
        except arrow().ArrowInvalid:
            return False
        return True

    def records(self, block: Block) -> Iterator[tuple[int, list[str]]]:
        """Yields the line number in the file and the fields of each record of the block, up to the first that the csv
        module cannot read.
        """
        reader = self._records(bytes(block.data))
        block_line = lines_before(self.path, block.offset, self.layout) + 1  # on which the block begins
        record_line = block_line
        with contextlib.suppress(csv.Error):
            for fields in reader:
                if fields:
                    yield record_line, fields
                record_line = block_line + reader.line_num


def is_utf8(data: memoryview) -> bool:
    """Whether the bytes ``data`` are valid UTF-8. Arrow checks without holding the interpreter lock."""
    pa = arrow()
    offsets = pa.py_buffer(np.array([0, len(data)], dtype=np.int64))  # of one text
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(data)]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def csv_reader(text: str, delimiter: str, quote: str) -> Any:
    """A csv.reader of the text, which knows its line number. It is used for headers, delimiter detection and errors;
    blocks are parsed by Arrow. ``quote``: empty if there is none.
    """
    quoting: Any = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, quotechar=quote or None)


def sniff_delimiter(text: str, quote: str) -> str:
    """The delimiter for which most records of ``text`` (the beginning of a file) have as many fields as the header; a
    space only if no other splits the header. ``quote``: the quotation mark, empty if there is none.
    """
    # By delimiter: the share of records that have as many fields as the header, and the number of these fields.
    agreements = {delimiter: _agreement(text, delimiter, quote) for delimiter in DELIMITERS}
    best_delimiter = max(agreements, key=lambda delimiter: agreements[delimiter])
    share_split_by_space, _ = _agreement(text, " ", quote)
    fallback = " " if share_split_by_space == 1.0 else ","
    splits_no_header = agreements[best_delimiter] == (0.0, 1)
    return fallback if splits_no_header else best_delimiter


def _agreement(text: str, delimiter: str, quote: str) -> tuple[float, int]:
    """The share (0 to 1) of the first records of ``text`` that ``delimiter`` splits into as many fields as the header,
    and the number of the header's fields; (0, 1) if it does not split the header. ``quote``: the quotation mark, empty
    if there is none.
    """
    field_counts: list[int] = []  # of each record
    with contextlib.suppress(csv.Error):
        records = csv_reader(text, delimiter, "" if delimiter == "\t" else quote)
        field_counts.extend(islice((len(fields) for fields in records if fields), SNIFFED_RECORDS + 1))
    if not field_counts or field_counts[0] < 2:
        return 0.0, 1
    # The last record may be cut off by the end of the text.
    complete_counts = field_counts[:-1] if len(field_counts) > 2 else field_counts
    return sum(count == field_counts[0] for count in complete_counts) / len(complete_counts), field_counts[0]


def _are_numbers(texts: Any) -> bool:
    """Whether all texts of an Arrow array can be converted to floats."""
    try:
        arrow("compute").ascii_trim(texts.drop_null(), " \t").cast(arrow().float64())
    except arrow().ArrowInvalid:
        return False
    return True


def evidence_of_a_row(first_line: Sequence[str], rows: Sequence[Sequence[str]], missing: frozenset[str]) -> str:
    """Why a file's first line looks like a row, in words; empty if it is a header.

    A row has numbers in columns of numbers, or words that occur again below. ``first_line``: the fields of the first
    line; ``rows``: the fields of each record after it; ``missing``: the texts that mean a missing value.
    """
    cells_below = [[cell for cell in column if cell not in missing] for column in zip(*rows, strict=True)]
    # Each field of the first line with the cells below it, where there are any.
    fields = [(field, column) for field, column in zip(first_line, cells_below, strict=False) if column]
    # Each field with whether all cells below it are numbers.
    are_numbers = [(field, all(map(is_number, column))) for field, column in fields]
    number_fields = [field for field, is_numeric in are_numbers if is_numeric and not (field and field in missing)]
    word_fields = [field for field, is_numeric in are_numbers if not is_numeric and not (field and field in missing)]
    repeated = [field for field, column in fields if field in word_fields and field in column]  # in their own columns
    # Fields of several words above such fields.
    text_fields = [
        field for field, column in fields if field not in repeated and _is_text(field) and any(map(_is_text, column))
    ]
    if number_fields:
        all_words_repeat = len(word_fields) == len(repeated) > 0
        if all(map(is_number, number_fields)) and (all_words_repeat or not _are_positions(number_fields)):
            return f"{errors.listed(number_fields, 3)} above numbers"
        return ""
    is_row = 2 * len(repeated) > max(len(word_fields), 2) or (
        repeated and len(repeated) + len(text_fields) == len(word_fields)
    )
    if not is_row:
        return ""
    words = dict.fromkeys(repeated)  # each once
    return f"{errors.listed(map(errors.shortened, words), 3)} also occur{'s' * (len(words) == 1)} below"


def _is_text(cell: str) -> bool:
    """Whether a cell has more than two words."""
    return len(cell.split()) > 2


def _are_positions(numbers: Sequence[str]) -> bool:
    """Whether texts of numbers are integers in equal steps or years, which also occur as column names."""
    if not all(number.isdecimal() for number in numbers):
        return False
    integers = [int(number) for number in numbers]
    steps = set(np.diff(integers).tolist())  # the distinct differences between neighbours
    return (
        integers == [0]
        or steps == {1}
        or (len(integers) > 2 and len(steps) == 1 and steps != {0})
        or all(1800 <= integer <= 2200 for integer in integers)
    )


def _has_single_quotes(text: str, delimiter: str) -> bool:
    """Whether the fields of ``text`` (the beginning of a file) are quoted with single quotes: each quotation fills a
    field on one line, and no field begins with a double quote. ``delimiter``: what separates fields.
    """
    field_start = rf"(?:^|[{re.escape(delimiter)}\n]) *"  # a regular expression
    is_cut = len(text) >= HEAD or not text.endswith(("\n", "\r"))  # in the last line
    lines = text.splitlines(keepends=True)
    whole_lines = "".join(lines[:-1] if is_cut and len(lines) > 2 else lines)
    if re.search(field_start + '"', whole_lines) or not re.search(field_start + "'", whole_lines):
        return False
    reader = csv.reader(io.StringIO(whole_lines, newline=""), delimiter=delimiter, quotechar="'", strict=True)
    try:
        rows = list(reader)
    except csv.Error:
        return False
    return len({len(fields) for fields in rows if fields}) == 1 and reader.line_num == len(rows)


def is_number(text: str) -> bool:
    """Whether Python can read the text as a float."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _pad_with_blanks(texts: Any) -> list[str]:
    """Each text unchanged, and with one blank before, after, and on both sides."""
    return [before + text + after for text in texts for before in ("", " ") for after in ("", " ")]
