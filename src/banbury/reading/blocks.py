"""Text files in blocks of whole lines: one thread reads and cuts them, several parse them, and batches come out in order.

Arrow's own streaming reader parses on one core; cutting here and parsing blocks side by side takes a third of its time.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import lzma
import os
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np

from banbury import errors
from banbury.reading.archives import open_member, split_archive_path
from banbury.reading.arrow import arrow
from banbury.reading.batches import Batch, ParserWork, no_rows, number_rows
from banbury.threads import n_threads

T = TypeVar("T")
BLOCK = 4 << 20  # bytes that are read, and parsed by one thread, at a time
LONGEST_RECORD = 64 << 20  # bytes
HEAD = 1 << 20  # bytes at the beginning of a file from which its layout is inferred
MOST_COLUMNS = 200_000  # columns of a text table
MOST_THREADS = 16  # threads that parse one file
MOST_UNPACKED = 1 << 28  # bytes that any compressed file may unpack to
MOST_RATIO = 200  # a larger file may unpack to so many times its size
CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
COMPRESSED = tuple(CODECS)
# Skipped at the start of a file; anywhere else U+FEFF is a character like any other.
BYTE_ORDER_MARK = codecs.BOM_UTF8


@dataclass(frozen=True, slots=True)
class Layout:
    """How the text of a file is laid out: the bytes that end a line, quote a field and start a comment line. Each is
    one byte; quote and comment are empty if there are none.
    """

    newline: bytes = b"\n"
    quote: bytes = b'"'
    comment: bytes = b""


UNQUOTED = Layout(quote=b"")


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file, and how many bytes of the decompressed file come before them."""

    data: memoryview  # the bytes of these lines
    offset: int  # bytes before them


def ending(path: str) -> str:
    """The lower-case extension of a file name; if it names a compression format, the extension before it."""
    stem, suffix = os.path.splitext(path.lower())
    return os.path.splitext(stem)[1] if suffix in COMPRESSED else suffix


def open_file(path: str, layout: Layout = UNQUOTED) -> Any:
    """The file at ``path`` as a stream of bytes, decompressed if its name says so. ``layout``: says what begins a
    comment; comment lines come out empty.
    """
    return Uncommented(_unpack(path), layout) if layout.comment else _unpack(path)


def _unpack(path: str) -> FileBytes:
    """The decompressed bytes of the file, or of the member of a zip archive, at ``path``."""
    archive_and_member = split_archive_path(path)
    try:
        if archive_and_member is None:
            return FileBytes(arrow().input_stream(path, compression="detect"), path, os.path.getsize(path))
        stream, size = open_member(*archive_and_member)  # size: in the archive, in bytes
        if codec := CODECS.get(os.path.splitext(path.lower())[1]):
            stream = arrow().input_stream(arrow().PythonFile(stream), compression=codec)
        return FileBytes(stream, path, size)
    except (OSError, arrow().ArrowException) as error:
        raise errors.bad_file(path, reason(error)) from None


class FileBytes(io.RawIOBase):
    """The decompressed bytes of a file without the byte-order mark at its start. Refuses a file that unpacks to
    suspiciously many bytes.
    """

    def __init__(self, stream: Any, path: str, size: int) -> None:
        """``stream``: the decompressed bytes; ``path``: for errors; ``size``: of the compressed file in bytes, which
        limits what it may unpack to.
        """
        super().__init__()
        self._stream = stream
        self._path = path
        self._n_read = 0  # bytes
        self._max_bytes = max(MOST_UNPACKED, MOST_RATIO * size)
        # The first bytes after the mark until they are handed out; None before the first read.
        self._unread_start: bytes | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """The next ``size`` bytes, or all if it is negative; fewer only at the end of the file."""
        if self._unread_start is None:  # nothing has been read yet
            self._unread_start = self._fetch(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK)
        if not self._unread_start:
            return self._fetch(size)
        unread = self._unread_start if size < 0 else self._unread_start[:size]
        self._unread_start = self._unread_start[len(unread) :]
        return unread + self._fetch(size if size < 0 else size - len(unread))

    def _fetch(self, size: int) -> bytes:
        """The next ``size`` bytes of the stream, or all if it is negative. Raises BadFile if it is damaged or may be a
        decompression bomb.
        """
        try:
            data: bytes = self._stream.read(*([] if size < 0 else [size]))
        except (zipfile.BadZipFile, zlib.error, EOFError, lzma.LZMAError) as error:
            raise errors.bad_file(self._path, f"it is damaged ({reason(error)}).") from None
        self._n_read += len(data)
        if self._n_read > self._max_bytes:
            self.close()
            raise errors.bad_file(
                self._path,
                f"it unpacks to more than {self._max_bytes / 1e6:,.0f} MB, {MOST_RATIO} times its size, so it may be "
                "a decompression bomb. If it is a genuine table, unpack it yourself.",
            )
        return data

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer with the next bytes and returns how many; fewer than its length only at the end."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Closes the stream too."""
        self._stream.close()
        super().close()


class Uncommented:
    """A stream of bytes in which comment lines are empty, so that line numbers stay right."""

    def __init__(self, stream: Any, layout: Layout) -> None:
        """``stream``: the bytes of the file; ``layout``: says what begins a comment, ends a line and quotes a field."""
        self._stream = stream
        self._layout = layout
        self._ready = bytearray()  # bytes, without comments, that are not handed out yet
        # Where the last piece of the file ended:
        self._in_comment = False
        self._in_quotes = False
        self._at_line_start = True

    def __enter__(self) -> Uncommented:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes; fewer only at the end of the file."""
        while len(self._ready) < size and (piece := self._stream.read(size)):
            self._append_without_comments(piece)
        data = bytes(self._ready[:size])
        del self._ready[:size]
        return data

    def _append_without_comments(self, piece: bytes) -> None:
        """Appends a piece of the file without its comments to ``_ready``. Comments and quotations may continue from
        piece to piece: ``_in_comment``, ``_in_quotes`` and ``_at_line_start`` say where the piece before ended, and
        then where this one ends.
        """
        newline = self._layout.newline
        quote = self._layout.quote
        comment = self._layout.comment
        position = 0  # in the piece
        while position < len(piece):
            if self._at_line_start and not self._in_quotes and piece.startswith(comment, position):
                self._in_comment = True
            if self._in_comment:
                position = piece.find(newline, position)
                if position < 0:
                    self._at_line_start = False
                    return
                self._in_comment = False
            end = piece.find(newline + comment, position) + 1 or len(piece)  # where the next comment begins
            text = piece[position:end]
            position = end
            self._ready += text
            self._in_quotes ^= bool(quote) and text.count(quote) % 2 == 1
            self._at_line_start = text.endswith(newline)


def fetch(stream: Any, size: int, path: str) -> bytes:
    """The next ``size`` bytes of a stream; fewer only at the end. Raises BadFile, which names ``path``, if they cannot
    be decompressed.
    """
    try:
        return stream.read(size)  # type: ignore[no-any-return]
    except (OSError, arrow().ArrowException) as error:
        raise errors.bad_file(
            path, f"it is not compressed as its name suggests, or it is damaged ({reason(error)})."
        ) from None


def read_csv(
    data: Any,
    names: Sequence[str],
    types: Mapping[str, Any],
    missing: list[str],
    delimiter: str = ",",
    quote: str = "",
    **settings: Any,
) -> Any:
    """Parses the bytes of a block of delimited text (``data``) into an Arrow table with the columns ``names``.
    ``types``: the Arrow types by name; Arrow infers the others.

    Texts in ``missing`` become null; no column is checked for UTF-8. ``delimiter`` separates fields; ``quote``: the
    quotation mark, empty if there is none; ``settings``: further options of Arrow's CSV conversion.
    """
    pa_csv = arrow("csv")
    has_mark = bytes(data[: len(BYTE_ORDER_MARK)]) == BYTE_ORDER_MARK  # Arrow drops one at the start of each block
    return pa_csv.read_csv(
        arrow().BufferReader(b"".join([BYTE_ORDER_MARK, data]) if has_mark else data),
        pa_csv.ReadOptions(use_threads=False, block_size=2 * len(data) + 1024, column_names=names),
        pa_csv.ParseOptions(delimiter=delimiter, quote_char=quote or False, newlines_in_values=bool(quote)),
        pa_csv.ConvertOptions(
            null_values=missing, strings_can_be_null=True, column_types=types, check_utf8=False, **settings
        ),
    )


def head_of(path: str, layout: Layout = UNQUOTED, size: int = HEAD) -> bytes:
    """The first ``size`` bytes of the file at ``path``, decompressed. ``layout``: says what begins a comment."""
    with open_file(path, layout) as stream:
        return fetch(stream, size, path)


def first_lines_of(path: str, layout: Layout = UNQUOTED) -> bytes:
    """The first megabyte of the file at ``path``; if it has no line break, as much as one line may have
    (``LONGEST_RECORD`` bytes). Raises BadFile if that has none either. ``layout``: says what begins a comment.
    """
    head = head_of(path, layout)
    for size in (HEAD, LONGEST_RECORD):  # bytes that ``head`` has unless the file is shorter
        if len(head) < size or b"\n" in head or b"\r" in head:
            return head
        head = head_of(path, layout, LONGEST_RECORD)
    raise no_lines(path)


def reason(error: BaseException) -> str:
    """The first line of a library's error message, as a sentence."""
    message = str(error).strip().partition("\n")[0]
    return f"{message[:200].rstrip('.')}."


def split_into_blocks(path: str, start: int, layout: Layout = UNQUOTED) -> Iterator[Block]:
    """Yields the file at ``path`` from byte ``start`` on in blocks that end at a line end outside quotation marks, or
    at the end of the file. Raises BadFile for zero bytes and for a line of more than ``LONGEST_RECORD`` bytes.
    ``layout``: what ends a line, quotes a field and begins a comment.
    """
    newline = layout.newline
    with open_file(path, layout) as stream:
        fetch(stream, start, path)  # skips these bytes
        remainder = b""  # the beginning of a line whose end is not read yet
        offset = start  # where the next block begins
        while piece := fetch(stream, BLOCK, path):
            refuse_zero_bytes(path, piece, offset + len(remainder))
            data = remainder + piece if remainder else piece  # bytes from ``offset`` on
            end = line_end(data, layout)  # of the last complete record; 0: there is none
            if not end and len(data) >= LONGEST_RECORD:  # tolerate an unbalanced quote
                end = data.rfind(newline) + 1
                if not end:
                    raise no_lines(path)
            remainder = data[end:]
            if end:
                yield Block(memoryview(data)[:end], offset)
                offset += end
        if remainder:
            yield Block(memoryview(remainder), offset)


def read_ahead(entries: Iterator[T]) -> Iterator[T]:
    """Yields the entries, each prepared in a thread while the caller works on the one before. None ends them."""
    with ThreadPoolExecutor(1) as reader:
        next_entry = reader.submit(next, entries, None)
        while (entry := next_entry.result()) is not None:
            next_entry = reader.submit(next, entries, None)
            yield entry


def refuse_zero_bytes(path: str, data: bytes, offset: int = 0) -> None:
    """Raises BadFile if ``data``, bytes of the text file at ``path``, contain a zero. ``offset``: where in the file
    they begin.
    """
    if b"\0" in data:
        location = f"byte {offset + data.index(0):,} is zero"
        raise errors.bad_file(path, f"it is not text ({location}). Save it as UTF-8 text without NUL characters.")


def no_lines(path: str) -> errors.BadFile:
    """The error of a file whose first line never ends."""
    return errors.bad_file(path, f"it has no line break in {LONGEST_RECORD >> 20} MB, so it is not a table of lines.")


def line_end(data: bytes, layout: Layout) -> int:
    """Where the last complete record in the bytes ``data`` ends, as an offset; 0 if none does. Line breaks between
    quotation marks end no record. ``layout``: what ends a line and quotes a field.
    """
    newline = layout.newline
    quote = layout.quote
    end = data.rfind(newline) + 1  # of the last line
    open_quotes = 0  # 1 if the number of quotation marks before ``end`` is odd
    if quote and data.find(quote, 0, end) >= 0:  # faster than bytes.count where there are many
        open_quotes = int(np.count_nonzero(np.frombuffer(data, np.uint8, end) == ord(quote))) % 2
    while end and open_quotes:  # go back to the end of the line before the last quotation mark
        earlier_end = data.rfind(newline, 0, data.rfind(quote, 0, end)) + 1
        open_quotes = (open_quotes + data.count(quote, earlier_end, end)) % 2
        end = earlier_end
    return end


def lines_before(path: str, offset: int, layout: Layout = UNQUOTED) -> int:
    """How many lines end in the first ``offset`` bytes of the file at ``path``. Reads them again, so it is for error
    messages only. ``layout``: what ends a line.
    """
    n_lines = 0
    with open_file(path, layout) as stream:
        while offset > 0 and (data := fetch(stream, min(offset, BLOCK), path)):
            n_lines += data.count(layout.newline)
            offset -= len(data)  # bytes that are still to be read
    return n_lines


def find_first_failure(n_entries: int, all_work: Callable[[slice], bool]) -> int:
    """The index of the first of ``n_entries`` that fails, found by bisection; some entry must fail. ``all_work``: says
    whether all entries in a slice work.
    """
    low = 0
    high = n_entries - 1  # the first failure is from ``low`` to ``high``
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if all_work(slice(low, middle + 1)) else (low, middle)
    return low


class BlockFile(Protocol):
    """A file read in blocks: column types are inferred from the first; several threads parse the others.

    Subclasses define ``infer``, which parses the first block and sets the column types; ``parse``, which parses another
    block in a thread; ``finish``, which makes a batch of what was parsed; ``records``, which yields the records of a
    block with their line numbers; and ``explain_failure``, which turns Arrow's parse error into one of ours. ``start``:
    the byte at which the rows begin; ``names``: those of the columns.
    """

    path: str
    names: Any
    start: int = 0
    layout: Layout = UNQUOTED

    # What these return is described above.
    def infer(self, block: Block) -> Any: ...
    def parse(self, block: Block) -> Any: ...
    def records(self, block: Block) -> Iterator[tuple[int, Any]]: ...
    def explain_failure(self, error: Exception, block: Block) -> Exception: ...

    def finish(self, parsed: Any, block: Block) -> Any:
        """The batch of a block. ``parsed``: what ``parse`` or ``infer`` returned."""
        return parsed

    def line(self, block: Block, row: int) -> int | None:
        """The line of the file on which a row of the block begins. Arrow counts neither blank lines nor quoted line
        breaks.
        """
        return next((line for line, _ in islice(self.records(block), row, None)), None)

    def wrong_type(self, value: Any, column: str, line: int | None, hint: str = "") -> errors.BadValue:
        """The error of a value in the column of this name, which must hold numbers. ``line``: the number of its line,
        None if unknown; ``hint``: a sentence to append.
        """
        return errors.BadValue(
            f"{self.path}, {f'line {line:,}' if line else 'a line'}: column {column!r} contains {value!r}, but must contain a "
            "number. Fix the value, list it in missing_values=, or choose another family for the column in "
            f"features=.{hint}",
            value=value,
            column=column,
            line=line,
            path=self.path,
        )

    def bad_line(self, line: int, why: str) -> errors.BadFile:
        """The error of the line with this number. ``why``: what is wrong with it, as a sentence, which may lack its
        full stop.
        """
        text = f"{self.path}, line {line:,}: {why}{'' if why[-1] in '.?' else '.'}"
        return errors.BadFile(text, path=self.path, line=line)

    def blocks(self) -> Iterator[Block]:
        """The rows of the file in blocks."""
        return split_into_blocks(self.path, self.start, self.layout)

    def batches(self, parser_work: ParserWork[Any] | None) -> Iterator[Batch]:
        """The batches of the file; one without rows if there are none. ``parser_work``: what the threads that parse a
        batch do with it.
        """
        blocks = self.blocks()
        first_block = next(blocks, None)
        if first_block is None:
            return iter([no_rows(self.names, self.path)])
        return number_rows(self._read(first_block, blocks, parser_work or ParserWork(threads=None)))

    def _read(self, first_block: Block, blocks: Iterator[Block], parser_work: ParserWork[Any]) -> Iterator[Batch]:
        """Yields the batch of each block, in order. Infers the column types from the first block, then parses the
        others (``blocks``) in a thread pool while one thread reads ahead. ``parser_work``: what the threads of the pool
        do with a batch, and how many there are.
        """
        yield self._try(lambda: self.infer(first_block), first_block)
        n_workers = min(n_threads(parser_work.threads), MOST_THREADS)
        parse = partial(self._parse, parser_work)
        if n_workers == 1:
            yield from (self._try(partial(parse, block), block) for block in blocks)
            return
        with ThreadPoolExecutor(n_workers) as pool:
            parsing: deque[tuple[Future[Any], Block]] = deque()  # blocks under way, the oldest first

            def finish_oldest() -> Batch:
                """Waits for the block that has been parsing longest, and returns its batch."""
                parse_result, block = parsing.popleft()
                return self._try(parse_result.result, block)

            try:
                for block in read_ahead(blocks):
                    parsing.append((pool.submit(parse, block), block))
                    if len(parsing) > n_workers:
                        yield finish_oldest()
                while parsing:
                    yield finish_oldest()
            finally:
                for parse_result, _ in parsing:  # if the caller wants no more batches
                    parse_result.cancel()

    def _parse(self, parser_work: ParserWork[Any], block: Block) -> Any:
        """Parses a block in a worker thread, and does ``parser_work`` with what comes out if it is a batch. Returns
        what comes out, for ``finish``.
        """
        parsed = self.parse(block)
        if isinstance(parsed, Batch):
            parser_work(parsed)
        return parsed

    def _try(self, parse: Callable[[], Any], block: Block) -> Batch:
        """The batch of a block, with the share of the file read up to its end, if known. ``parse`` parses it; an Arrow
        error is replaced by one that names the line and the value.
        """
        try:
            batch: Batch = self.finish(parse(), block)
        except arrow().ArrowException as error:
            raise self.explain_failure(error, block) from None
        with contextlib.suppress(OSError):  # the file has been deleted
            # The size of a compressed file does not tell how many bytes it unpacks to.
            size = 0 if self.path.lower().endswith(COMPRESSED) else os.path.getsize(self.path)
            batch.share = min((block.offset + len(block.data)) / size, 1.0) if size else None
        return batch
