"""Text files in blocks of whole lines: read and cut by one thread, parsed by several, handed on in order to whoever counts.

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
from typing import Any, Protocol

import numpy as np

from banbury import errors
from banbury.reading.archives import open_member, split_archive_path
from banbury.reading.arrow import arrow
from banbury.reading.batches import Batch, Beside, number_rows
from banbury.threads import n_threads

BLOCK = 4 << 20
LONGEST_RECORD = 64 << 20
HEAD = 1 << 20
MOST_COLUMNS = 200_000
MOST_THREADS = 16
MOST_UNPACKED = 1 << 28  # bytes that any packed file may come to
MOST_RATIO = 200  # times its size that a larger one may
CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
COMPRESSED = tuple(CODECS)
BYTE_ORDER_MARK = (
    codecs.BOM_UTF8
)  # skipped where a file begins with it; anywhere else U+FEFF is a character like any other


@dataclass(frozen=True, slots=True)
class Layout:
    """How the text of a file is laid out: what ends a line, what quotes, and what begins a line that is a comment.

    Each is one byte; without quotes or comments it is none.
    """

    newline: bytes = b"\n"
    quote: bytes = b'"'
    comment: bytes = b""


UNQUOTED = Layout(quote=b"")


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file, and how many bytes of it come before them (decompressed)."""

    data: memoryview
    offset: int


def ending(path: str) -> str:
    """The ending of a file's name in lower case; if that says how the file is compressed, the one before it."""
    stem, last = os.path.splitext(path.lower())
    return os.path.splitext(stem)[1] if last in COMPRESSED else last


def open_file(path: str, layout: Layout = UNQUOTED) -> Any:
    """The file as a stream of bytes, unpacked if its name says that it is packed; comments are empty lines."""
    return Uncommented(_unpack(path), layout) if layout.comment else _unpack(path)


def _unpack(path: str) -> FileBytes:
    """The bytes of a file, or of a member of a zip archive."""
    place = split_archive_path(path)
    try:
        if place is None:
            return FileBytes(arrow().input_stream(path, compression="detect"), path, os.path.getsize(path))
        stream, size = open_member(*place)
        if codec := CODECS.get(os.path.splitext(path.lower())[1]):
            stream = arrow().input_stream(arrow().PythonFile(stream), compression=codec)
        return FileBytes(stream, path, size)
    except (OSError, arrow().ArrowException) as error:
        raise errors.bad_file(path, reason(error)) from None


class FileBytes(io.RawIOBase):
    """The bytes of a file, unpacked and without a byte-order mark at their start.

    A packed file that comes to far more than files of its size do is refused.
    """

    def __init__(self, stream: Any, path: str, size: int) -> None:
        super().__init__()
        self._stream = stream
        self._path = path
        self._n_read = 0
        self._most = max(MOST_UNPACKED, MOST_RATIO * size)
        self._first: bytes | None = (
            None  # the first bytes, once they have been searched for a mark and until they are read
        )

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes more; fewer only at the end."""
        if self._first is None:
            self._first = self._fetch(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK)
        if not self._first:
            return self._fetch(size)
        first = self._first if size < 0 else self._first[:size]
        self._first = self._first[len(first) :]
        return first + self._fetch(size if size < 0 else size - len(first))

    def _fetch(self, size: int) -> bytes:
        try:
            data: bytes = self._stream.read(*([] if size < 0 else [size]))
        except (zipfile.BadZipFile, zlib.error, EOFError, lzma.LZMAError) as error:
            raise errors.bad_file(self._path, f"it is damaged ({reason(error)}).") from None
        self._n_read += len(data)
        if self._n_read > self._most:
            self.close()
            text = f"it unpacks to more than {self._most / 1e6:,.0f} MB, {MOST_RATIO} times its size, so it may be "
            raise errors.bad_file(
                self._path, f"{text}a decompression bomb. If it is a genuine table, unpack it yourself."
            )
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


class Uncommented:
    """A stream of bytes in which lines that begin as comments do are empty, so that lines keep their numbers."""

    def __init__(self, stream: Any, layout: Layout) -> None:
        self._stream = stream
        self._layout = layout
        self._ready = bytearray()
        self._in_comment = self._in_quotes = False
        self._at_start = True  # of a line

    def __enter__(self) -> Uncommented:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes more; fewer only at the end."""
        while len(self._ready) < size and (piece := self._stream.read(size)):
            self._take(piece)
        data = bytes(self._ready[:size])
        del self._ready[:size]
        return data

    def _take(self, piece: bytes) -> None:
        newline = self._layout.newline
        quote = self._layout.quote
        comment = self._layout.comment
        at = 0
        while at < len(piece):
            if self._at_start and not self._in_quotes and piece.startswith(comment, at):
                self._in_comment = True
            if self._in_comment:
                at = piece.find(newline, at)
                if at < 0:
                    self._at_start = False
                    return
                self._in_comment = False
            end = piece.find(newline + comment, at) + 1 or len(piece)
            kept = piece[at:end]
            at = end
            self._ready += kept
            self._in_quotes ^= bool(quote) and kept.count(quote) % 2 == 1
            self._at_start = kept.endswith(newline)


def fetch(stream: Any, size: int, path: str) -> bytes:
    """Up to ``size`` bytes more; fewer only at the end."""
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
    mark: str = ",",
    quote: str = "",
    **more: Any,
) -> Any:
    """The Arrow table of a block of delimited text, whose letters were looked at: what is not UTF-8 is Latin-1."""
    pa_csv = arrow("csv")
    marked = bytes(data[: len(BYTE_ORDER_MARK)]) == BYTE_ORDER_MARK  # Arrow drops one at the start of each block
    return pa_csv.read_csv(
        arrow().BufferReader(b"".join([BYTE_ORDER_MARK, data]) if marked else data),
        pa_csv.ReadOptions(use_threads=False, block_size=2 * len(data) + 1024, column_names=names),
        pa_csv.ParseOptions(delimiter=mark, quote_char=quote or False, newlines_in_values=bool(quote)),
        pa_csv.ConvertOptions(
            null_values=missing, strings_can_be_null=True, column_types=types, check_utf8=False, **more
        ),
    )


def head_of(path: str, layout: Layout = UNQUOTED, size: int = HEAD) -> bytes:
    """The first megabyte, or so many bytes."""
    with open_file(path, layout) as stream:
        return fetch(stream, size, path)


def first_lines_of(path: str, layout: Layout = UNQUOTED) -> bytes:
    """The first megabyte; where it has no line break, as much as may be one line."""
    head = head_of(path, layout)
    for size in (HEAD, LONGEST_RECORD):
        if len(head) < size or b"\n" in head or b"\r" in head:
            return head
        head = head_of(path, layout, LONGEST_RECORD)
    raise no_lines(path)


def reason(error: BaseException) -> str:
    """The first line of what a library said, as a sentence."""
    message = str(error).strip().partition("\n")[0]
    return f"{message[:200].rstrip('.')}."


def split_into_blocks(path: str, start: int, layout: Layout = UNQUOTED) -> Iterator[Block]:
    """The file from byte ``start`` on in blocks that end where a line ends and no quotation is open."""
    newline = layout.newline
    with open_file(path, layout) as stream:
        fetch(stream, start, path)
        rest = b""
        offset = start
        while piece := fetch(stream, BLOCK, path):
            refuse_zero_bytes(path, piece, offset + len(rest))
            data = rest + piece if rest else piece
            end = line_end(data, layout)
            if not end and len(data) >= LONGEST_RECORD:  # a stray quotation mark is borne with
                end = data.rfind(newline) + 1
                if not end:
                    raise no_lines(path)
            rest = data[end:]
            if end:
                yield Block(memoryview(data)[:end], offset)
                offset += end
        if rest:
            yield Block(memoryview(rest), offset)


def refuse_zero_bytes(path: str, data: bytes, offset: int = 0) -> None:
    """Raises where some bytes of a text file, which begin at ``offset``, are no text."""
    if b"\0" in data:
        place = f"byte {offset + data.index(0):,} is zero"
        raise errors.bad_file(path, f"it is not text ({place}). Save it as UTF-8 text without NUL characters.")


def no_lines(path: str) -> errors.BadFile:
    return errors.bad_file(path, f"it has no line break in {LONGEST_RECORD >> 20} MB, so it is not a table of lines.")


def line_end(data: bytes, layout: Layout) -> int:
    """Where the last record ends; 0 if none does. A line break inside quotation marks ends no record."""
    newline = layout.newline
    quote = layout.quote
    end = data.rfind(newline) + 1
    open_quotes = 0
    if quote and data.find(quote, 0, end) >= 0:  # faster than bytes.count where there are many
        open_quotes = int(np.count_nonzero(np.frombuffer(data, np.uint8, end) == ord(quote))) % 2
    while end and open_quotes:
        earlier = data.rfind(newline, 0, data.rfind(quote, 0, end)) + 1
        open_quotes = (open_quotes + data.count(quote, earlier, end)) % 2
        end = earlier
    return end


def lines_before(path: str, offset: int, layout: Layout = UNQUOTED) -> int:
    """How many lines end in the first ``offset`` bytes. Reads them again, so it is for errors only."""
    lines = 0
    with open_file(path, layout) as stream:
        while offset > 0 and (data := fetch(stream, min(offset, BLOCK), path)):
            lines += data.count(layout.newline)
            offset -= len(data)
    return lines


def find_first_failure(n: int, works: Callable[[slice], bool]) -> int:
    """Which of n things is the first that does not work, found by halving: a stretch works if each of its things does."""
    first = 0
    last = n - 1
    while first < last:
        middle = (first + last) // 2
        first, last = (middle + 1, last) if works(slice(first, middle + 1)) else (first, middle)
    return first


class BlockFile(Protocol):
    """A file that is read in blocks: the first is inferred from, the others are parsed on several threads.

    ``infer`` parses the first block, whose types become those of the file; ``parse`` another, on a thread of its own.
    ``finished`` makes a batch of what was parsed, ``records`` are the block's, each with its line of the file, and
    ``explained`` says in our words what Arrow could not parse.
    """

    path: str

    def infer(self, block: Block) -> Any: ...
    def parse(self, block: Block) -> Any: ...
    def records(self, block: Block) -> Iterator[tuple[int, Any]]: ...
    def explain_failure(self, error: Exception, block: Block) -> Exception: ...

    def finish(self, parsed: Any, block: Block) -> Any:
        return parsed

    def line(self, block: Block, row: int) -> int | None:
        """The line of the file on which the block's row begins; Arrow counts neither blank lines nor quoted breaks."""
        return next((line for line, _ in islice(self.records(block), row, None)), None)

    def wrong_type(self, value: Any, column: str, line: int | None, hint: str = "") -> errors.BadValue:
        """The error of a value in a column that must hold numbers."""
        text = f"{self.path}, {f'line {line:,}' if line else 'a line'}: column {column!r} contains {value!r}, but must contain a "
        text += "number. Fix the value, list it in missing_values=, or choose another family for the column in "
        text += f"features=.{hint}"
        return errors.BadValue(text, value=value, column=column, line=line, path=self.path)

    def read(self, first: Block, blocks: Iterator[Block], beside: Beside[Any] | None) -> Iterator[Batch]:
        return number_rows(self._read(first, blocks, beside or Beside(None)))

    def _read(self, first: Block, blocks: Iterator[Block], beside: Beside[Any]) -> Iterator[Batch]:
        yield self._try(lambda: self.infer(first), first)
        n_workers = min(n_threads(beside.threads), MOST_THREADS)
        parse = partial(self._parse, beside)
        if n_workers == 1:
            yield from (self._try(partial(parse, block), block) for block in blocks)
            return
        with ThreadPoolExecutor(n_workers) as pool, ThreadPoolExecutor(1) as reader:
            waiting: deque[tuple[Future[Any], Block]] = deque()  # a few are under way at any time
            try:
                coming: Future[Block | None] | None = reader.submit(next, blocks, None)
                while coming is not None or waiting:
                    block = None if coming is None else coming.result()
                    if block is not None:
                        waiting.append((pool.submit(parse, block), block))
                    coming = None if block is None else reader.submit(next, blocks, None)
                    if waiting and (block is None or len(waiting) > n_workers):
                        future, parsed = waiting.popleft()
                        yield self._try(future.result, parsed)
            finally:
                for future, _ in waiting:
                    future.cancel()

    def _parse(self, beside: Beside[Any], block: Block) -> Any:
        parsed = self.parse(block)
        if isinstance(parsed, Batch):
            beside(parsed)
        return parsed

    def _try(self, parse: Callable[[], Any], block: Block) -> Batch:
        try:
            batch: Batch = self.finish(parse(), block)
        except arrow().ArrowException as error:
            raise self.explain_failure(error, block) from None
        with contextlib.suppress(OSError):  # gone
            size = 0 if self.path.lower().endswith(COMPRESSED) else os.path.getsize(self.path)
            batch.share = min((block.offset + len(block.data)) / size, 1.0) if size else None
        return batch
