"""Documents → rows: one text a file or a line, one row a message; a folder with a sub-folder per class.

Files that cannot be read are counted, reported and skipped; of broken messages the readable part is used.
"""

from __future__ import annotations

import fnmatch
import io
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Literal

from banbury import errors
from banbury.reading.batches import Batch, ParserWork, Source, number_rows
from banbury.reading.blocks import BYTE_ORDER_MARK, COMPRESSED, ending, fetch, open_file, read_ahead
from banbury.reading.columns import Column, Objects, decode_bytes, is_missing
from banbury.reading.decoding import decode_file, html_encoding, html_text
from banbury.reading.mail import (
    LONGEST_MESSAGE,
    begins_as_mail,
    begins_as_mbox,
    begins_as_post,
    message_cells,
    message_text,
    messages,
)
from banbury.reading.options import (
    DOCUMENT_SETTINGS,
    FILE_SETTINGS,
    SUBJECT,
    TEXT_TABLE_SETTINGS,
    Options,
    header_columns,
)
from banbury.reading.tables import TEXT, encode, from_texts, names_for, single
from banbury.threads import n_threads

Form = Literal["text", "mail", "html"]
Cells = Sequence[str | None]  # of one document: its text, or the value of each header column and the body

MAILBOXES = (".mbox", ".mbx")
MAIL = (".eml", *MAILBOXES)
HTML = (".html", ".htm", ".xhtml")
TEXT_ENDINGS = (".txt", ".text", ".md", ".rst", ".log")
TABLES = (".csv", ".tsv", ".tab", ".parquet", ".pq", ".ndjson", ".jsonl")  # in a folder of nothing else
EMPTY_FOLDER = "it contains no files. Use a folder with one sub-folder of files per class, or a folder of files"
CLASS = "class"
BODY = "body"

# Names of folders that hold parts of a collection, not classes of it.
PART = re.compile(
    r"(?:^|[-_. ])(?:train(?:ing)?|test(?:ing)?|val(?:id(?:ation)?)?|dev(?:elopment)?|eval(?:uation)?|held[-_ ]?out|"
    r"unsup(?:ervised)?|unlabell?ed|(?:fold|split|part)(?=[-_. ]?\d))(?:[-_. ]?\d+)?$",
    re.IGNORECASE,
)

BATCH_ROWS = 4096  # documents that make a batch
BATCH_CHARACTERS = 16 << 20  # or so many characters, if that is fewer documents
LARGE = 16 << 20  # bytes: a mailbox above this is read message by message

# What no text begins with.
_BINARY = (
    (b"PAR1\x15", "Parquet"),
    (b"\x1f\x8b", "gzip"),
    (b"PK\x03\x04", "a zip archive or an office document"),
    (b"%PDF-", "a PDF"),
    (b"\x89PNG\r\n", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"\xd0\xcf\x11\xe0", "an office document"),
    (b"\x7fELF", "a program"),
)
_BINARY_BEGINNINGS = tuple(begin for begin, _ in _BINARY)


def form_of(path: str, begin: bytes, posts: bool = False) -> Form:
    """The form of the document at ``path``, "text", "mail" or "html": by the ending of its name, or else by its first
    bytes ``begin``.

    ``posts``: whether news articles count as mail.
    """
    suffix = ending(path)
    content_decides = suffix not in (*MAIL, *HTML, *TEXT_ENDINGS)
    if suffix in MAIL or (content_decides and (begins_as_mail(begin) or (posts and begins_as_post(begin)))):
        return "mail"
    begins_as_page = begin[:256].lstrip().lower().startswith((b"<!doctype html", b"<html"))
    return "html" if suffix in HTML or (content_decides and begins_as_page) else "text"


def from_messages(values: list[Any], options: Options) -> Source:
    """A source of messages, or of HTML pages if ``options`` say so, that are in memory (``values``): bytes, texts, or
    None.
    """
    form: Form = "html" if options.format == "html" else "mail"
    losses = Losses()
    header_names = header_columns(options.headers)
    rows: list[Cells] = []  # for each message the value of each header column, and the body
    for row, value in enumerate(values):
        if is_missing(value):
            rows.append([None] * (len(header_names) + 1))
        elif isinstance(value, str) and form == "html":
            rows.append([*[None] * len(header_names), html_text(value)])
        else:
            data = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
            rows.append(losses.cells(data.removeprefix(BYTE_ORDER_MARK), form, options, f"row {row:,}"))
    losses.warn_about_broken(source=None)
    if not header_names:
        return from_texts([text for (text,) in rows], options.columns, options.batch_rows)
    losses.check_headers(options, source=None)
    names = names_for((*header_names, BODY), options.columns)
    return single(Batch(names, len(rows), _columns(names, rows)), options.batch_rows)


def _columns(names: Sequence[str], rows: Sequence[Cells]) -> dict[str, Column]:
    """A text column for each name. ``rows``: the cells of each document in the order of the names."""
    return {name: Objects([cells[position] for cells in rows], text=True) for position, name in enumerate(names)}


@dataclass(frozen=True, slots=True)
class File:
    """A file of documents, and the class of its documents if known."""

    path: str
    label: str | None = None


@dataclass(slots=True)
class Losses:
    """What could not be read: ``files`` with the reason for each, and the names of ``broken`` messages among
    ``n_messages``.

    ``headers``: the mail headers that occur, if some become columns.
    """

    files: list[tuple[str, str]] = field(default_factory=list)  # (path, reason)
    broken: list[str] = field(default_factory=list)
    n_messages: int = 0
    headers: set[str] = field(default_factory=set)

    def cells(self, data: bytes, form: Form, options: Options, name: str, cut_off: bool = False) -> Cells:
        """The cells of one document with the bytes ``data``: its text; or the value of each header column (None if it
        lacks the header) and then the body. Notes in this object that a message was read, its headers, and whether it
        is broken.

        ``form``: "text", "mail" or "html"; ``options``: say which headers are read; ``name``: the name of the document
        for warnings; ``cut_off``: whether it was too long to be read completely.
        """
        header_names = header_columns(options.headers)
        is_broken = False
        cells: Cells
        if form == "mail" and header_names:
            cells, headers, is_broken = message_cells(data, header_names)
            self.headers.update(headers)
        elif form == "mail":
            text, is_broken = message_text(data, options.headers)
            cells = [text]
        else:
            text = html_text(decode_file(data, html_encoding(data))) if form == "html" else decode_file(data)
            cells = [*[None] * len(header_names), text]
        self.n_messages += form == "mail"
        self.broken += [name] * (is_broken or cut_off)
        return cells

    def reasons(self) -> str:
        """The first files that could not be read, each with the reason, as one text."""
        return errors.listed((f"{path} ({reason})" for path, reason in self.files), 5)

    def warn_about_broken(self, source: str | None) -> None:
        """Warns if messages were broken. ``source``: the folder, pattern or file that they are from."""
        if self.broken:
            errors.warn(
                f"{len(self.broken):,} of {self.n_messages:,} messages{errors.where(source)} are broken (damaged, cut off, or in "
                f"an unknown encoding), so only their readable parts were used: {errors.listed(self.broken, 3)}"
            )

    def check_headers(self, options: Options, source: str | None) -> None:
        """Checks training data whose mail headers become columns: raises an error if there are no messages or a header
        is misspelt, and warns if no message has a header. Messages to predict may lack anything, so they are not
        checked. ``options``: name the headers; ``source``: the folder, pattern or file of the messages, for errors.
        """
        where = errors.where(source)
        headers = options.headers
        if options.kinds is not None:  # a model that predicts knows what it needs
            return
        if not self.n_messages:
            raise errors.BadSetting(
                f"headers={headers!r} turns mail headers into columns, but no file{where} was read as mail. "
                "If the files are messages, pass format='mail'; otherwise omit headers=.",
                setting="headers",
                value=headers,
            )
        header_names = set() if isinstance(headers, str) else {name.lower() for name in headers if name != "columns"}
        for name in sorted(header_names - self.headers):
            suggestion = errors.did_you_mean(name, sorted(self.headers))
            headers_in_words = errors.listed(sorted(self.headers), 20)
            if suggestion:
                raise errors.BadSetting(
                    f"no message{where} has a header {name!r}.{suggestion}\n  Headers: {headers_in_words}",
                    setting="headers",
                    value=name,
                )
            errors.warn(f"no message{where} has a header {name!r}, so its column is empty. Headers: {headers_in_words}")


def from_files(
    files: Sequence[File], name: str | None, options: Options, unreadable: Sequence[tuple[str, str]] = ()
) -> Source:
    """A source of the documents in some files, in order; with a class column if files have labels. ``name``: the
    folder, pattern or file that the user gave; ``options``: how to read the files; ``unreadable``: paths with the
    reason.
    """
    options.refuse(TEXT_TABLE_SETTINGS, "CSV and similar files, but these are texts")
    documents = _Documents(files, name, options, unreadable)
    target = documents.names[0] if documents.has_classes else None  # the name of the column of classes
    reading = options.settings(DOCUMENT_SETTINGS)  # by name, those that are not the defaults
    return Source(documents.batches, name, target=target, holds_no_lists=True, reading=reading)


@dataclass
class _Documents:
    """The documents in some files, in order."""

    files: Sequence[File]
    name: str | None  # of the folder, pattern or file that the user gave
    options: Options
    unreadable: Sequence[tuple[str, str]]  # paths that could not be searched, with the reason
    has_warned: bool = False

    def __post_init__(self) -> None:
        """Names the columns: the class if files have one, the header columns, and the text."""
        options = self.options
        self.has_classes = any(file.label is not None for file in self.files)  # if so, in the first column
        self.header_names = header_columns(options.headers)
        text_columns = (*self.header_names, BODY) if self.header_names else (TEXT,)
        self.names = names_for((CLASS, *text_columns) if self.has_classes else text_columns, options.columns)
        self.reads_lines = options.format == "lines"  # whether each line is a document

    def batches(self, _: ParserWork[Any] | None) -> Iterator[Batch]:
        """The documents in batches, read one batch ahead. Warns at the end of the first pass about what could not be
        read.
        """
        losses = Losses(list(self.unreadable))
        n_rows = 0
        batches = self._gather_batches(losses)
        for batch in number_rows(batches if n_threads(None) == 1 else read_ahead(batches)):
            n_rows += batch.n_rows
            yield batch
        self._report_losses(losses, n_rows)
        if n_rows == 0:
            yield self._batch(rows=[], share=None)

    def _gather_batches(self, losses: Losses) -> Iterator[Batch]:
        """The documents in batches of bounded size. Notes in ``losses`` what could not be read."""
        max_rows = self.options.batch_rows or BATCH_ROWS
        rows: list[tuple[str | None, str, Cells]] = []  # the class, the name and the cells of each
        n_characters = 0  # of these rows
        for n_files_read, file in enumerate(self.files):
            for name, cells, share in self._documents(file, losses):  # share: how much of the file has been read
                rows.append((file.label, name, cells))
                n_characters += sum(len(cell) for cell in cells if cell)
                if len(rows) == max_rows or n_characters >= BATCH_CHARACTERS:
                    yield self._batch(rows, (n_files_read + share) / len(self.files))
                    rows = []
                    n_characters = 0
        if rows:
            yield self._batch(rows, share=1.0)

    def _batch(self, rows: list[tuple[str | None, str, Cells]], share: float | None) -> Batch:
        """A batch of documents (``rows``), each a tuple of class, name and cells. ``share``: how much of all files has
        been read.
        """
        columns = _columns(self.names[self.has_classes :], [cells for _, _, cells in rows])  # without the class column
        if self.has_classes:
            columns[self.names[0]] = encode([label for label, _, _ in rows])
        # Lines without a class are plain texts, so neither the column nor the rows have names.
        batch = Batch(self.names, len(rows), columns, self.has_classes or not self.reads_lines, self.name)
        batch.row_names = None if self.reads_lines else [name for _, name, _ in rows]
        batch.share = share
        return batch

    def _documents(self, file: File, losses: Losses) -> Iterator[tuple[str, Cells, float]]:
        """Yields the name and the cells of each document of a file, and the share of the file that has been read (0 to
        1). Notes in ``losses`` a file that cannot be read, and broken messages.
        """
        path = file.path
        printable = printable_path(path)  # the document's name, if the file holds only one
        suffix = ending(path)
        try:
            data, is_complete = beginning(path)  # the first bytes, and whether they are the whole file
            if self.reads_lines and not data.startswith(_BINARY_BEGINNINGS):
                yield from self._lines(path, printable)
                return
            form: Any = (  # "text", "mail" or "html"
                form_of(path, data, bool(self.header_names)) if self.options.format == "auto" else self.options.format
            )
            if form == "mail" and (suffix in MAILBOXES or (suffix not in MAIL and begins_as_mbox(data))):
                yield from self._messages(path, printable, data if is_complete else None, losses)
                return
            if not is_complete:
                data, is_complete = beginning(path, LONGEST_MESSAGE)
            if not is_complete:
                unpacked = ", unpacked," if path.lower().endswith(COMPRESSED) else ""
                reason = f"it has{unpacked} more than {LONGEST_MESSAGE >> 20} MB, which is the limit for a text"
                losses.files.append((printable, reason))
                return
            for signature, content in _BINARY:  # first bytes, and what they mean in words
                if data.startswith(signature):
                    losses.files.append((printable, f"it contains {content}, not text"))
                    return
            yield printable, losses.cells(data, form, self.options, printable), 1.0
        except (OSError, errors.BanburyError) as error:
            losses.files.append((printable, _reason(error, path)))

    def _lines(self, path: str, shown: str) -> Iterator[tuple[str, Cells, float]]:
        """Yields each line of a file as a document: the file's name, its cells (the line is the body), and 0 as the
        share read. ``shown``: the path as printed.
        """
        with _stream(path) as stream:
            for line in stream:
                text = decode_bytes(line.removesuffix(b"\n").removesuffix(b"\r"))
                yield shown, [*[None] * len(self.header_names), text], 0.0

    def _messages(
        self, path: str, shown: str, data: bytes | None, losses: Losses
    ) -> Iterator[tuple[str, Cells, float]]:
        """Yields each message of a mailbox: its name, its cells, and the share of the file that has been read.

        ``data``: the mailbox if it is in memory; if None, ``path`` is read as a stream. ``shown``: the path as printed.
        ``losses`` gets what is broken.
        """
        # Bytes of the file; 0 if the share read is not known.
        size = 0 if data is not None or path.lower().endswith(COMPRESSED) else os.path.getsize(path)
        with _stream(path) if data is None else io.BytesIO(data) as stream:
            is_single = data is not None and b"\nFrom " not in data and data.strip()
            lines = iter(lambda: stream.readline(LONGEST_MESSAGE), b"")
            # The bytes of each message, and whether it was cut off for its length.
            message_iterator = iter([(data or b"", False)]) if is_single else messages(lines)
            first_messages = list(islice(message_iterator, 2))
            for number, (message, cut_off) in enumerate(chain(first_messages, message_iterator), 1):
                name = f"{shown}, message {number:,}" if len(first_messages) > 1 else shown
                cells = losses.cells(message, "mail", self.options, name, cut_off)
                yield name, cells, min(stream.tell() / size, 1.0) if size else 0.0

    def _report_losses(self, losses: Losses, n_rows: int) -> None:
        """Warns about what could not be read (``losses``), in the first pass only. Raises an error if nothing could be
        read. ``n_rows``: how many documents were read.
        """
        if losses.files and n_rows == 0:
            path, reason = losses.files[0]
            if len(losses.files) == 1:
                raise errors.bad_file(path, f"{reason}.")
            raise errors.bad_file(
                self.name or path, f"none of the {len(losses.files):,} files can be read.\n  {losses.reasons()}"
            )
        if self.has_warned:
            return
        self.has_warned = True
        if self.header_names and n_rows:
            losses.check_headers(self.options, self.name)
        where = errors.where(self.name)
        if losses.files:
            n_files = len(self.files) + len(self.unreadable)
            errors.warn(
                f"{len(losses.files):,} of {n_files:,} files{where} cannot be read and were skipped: {losses.reasons()}. "
                "Fix or remove them, and count again if they matter."
            )
        losses.warn_about_broken(self.name)
        expects_mail = self.options.headers is not SUBJECT and "headers" not in self.options.remembered
        if expects_mail and not losses.n_messages and n_rows:
            errors.warn(
                f"no file{where} was read as mail, so headers= had no effect. "
                "If the files are messages, pass format='mail'."
            )


def _reason(error: Exception, path: str) -> str:
    """Why a file could not be read, in words without its name and without a full stop."""
    message = error.strerror if isinstance(error, OSError) else None
    return message or str(error).removeprefix(f"cannot read {path}: ").rstrip(".")


def printable_path(path: str) -> str:
    """The path as text that can be printed, whatever bytes are in it."""
    return decode_bytes(os.fsencode(path))


def beginning(path: str, max_bytes: int = LARGE) -> tuple[bytes, bool]:
    """The first ``max_bytes`` bytes of the document at ``path``, decompressed and without a byte-order mark, and
    whether they are all of it.

    Raises OSError for anything but a regular file, instead of waiting for a pipe.
    """
    if path.lower().endswith(COMPRESSED):
        with open_file(path) as stream:
            data = fetch(stream, max_bytes + 1, path)
        return data, len(data) <= max_bytes
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        n_bytes = min(status.st_size, max_bytes) + 1  # one more, to see whether more follow
        data = os.read(handle, n_bytes)
        while 0 < len(data) < n_bytes - 1 and (next_bytes := os.read(handle, n_bytes - len(data))):
            data += next_bytes
        return data.removeprefix(BYTE_ORDER_MARK), len(data) <= max_bytes
    finally:
        os.close(handle)


def _stream(path: str) -> io.BufferedReader:
    """The file at ``path`` as a stream of bytes, unpacked and without a byte-order mark. A file that is not packed also
    reports its position.
    """
    if path.lower().endswith(COMPRESSED):
        return io.BufferedReader(open_file(path))
    stream = open(path, "rb")  # noqa: SIM115 (whoever reads it closes it)
    if stream.read(len(BYTE_ORDER_MARK)) != BYTE_ORDER_MARK:
        stream.seek(0)
    return stream


# Classes of files


def label_files(paths: Sequence[str], options: Options, folder: str = "") -> list[File]:
    """The files at these paths, each with the class that its name tells: by the patterns in ``class_from``; or, of
    several files with one text per line, the file name. Others have no class. ``options``: how to read the files;
    ``folder``: the folder that they lie in, if the user named one; patterns are matched below it.

    Files that no pattern matches are reported and left out; if the patterns are only remembered from other data they
    get no class.
    """
    if options.classes_at is not None and not folder:
        options.refuse(("classes_at",), "a folder, but these are files")
    if options.class_from is None:
        are_classes = options.format == "lines" and len(paths) > 1
        return [File(path, _stem(path) if are_classes else None) for path in paths]
    paths_and_classes = [
        (path, _class_of(os.path.relpath(path, folder) if folder else path, options.class_from)) for path in paths
    ]
    is_remembered = "class_from" in options.remembered
    files = [File(path, label) for path, label in paths_and_classes if is_remembered or label is not None]
    if len(files) < len(paths):
        strays = [printable_path(path) for path, label in paths_and_classes if label is None]
        patterns = errors.listed(map(repr, options.class_from))
        verb = "matches" if len(strays) == 1 else "match"
        message = (
            f"{errors.many(len(strays), 'file')}{errors.where(folder)} {verb} no pattern in class_from= ({patterns})"
        )
        if not files:
            raise errors.empty_data(folder or None, f"{message}: {errors.listed(strays, 5)}")
        errors.warn(f"{message} and were left out: {errors.listed(strays, 5)}")
    return files


def _stem(path: str) -> str:
    """The file name at the end of ``path`` without endings such as .txt and .gz."""
    name = os.path.basename(path)
    for endings in (COMPRESSED, TEXT_ENDINGS):
        stem, suffix = os.path.splitext(name)
        name = stem if suffix.lower() in endings else name
    return printable_path(name)


def _class_of(path: str, patterns: Mapping[str, str]) -> str | None:
    """The class of the first pattern that matches the file name, or the path if the pattern has a slash; None if none
    matches. ``patterns``: maps patterns to classes.
    """
    posix_path = path.replace(os.sep, "/")
    name = os.path.basename(path)
    for pattern, label in patterns.items():
        candidates = [(posix_path, pattern), (posix_path, f"*/{pattern}")] if "/" in pattern else [(name, pattern)]
        if any(fnmatch.fnmatchcase(*name_and_pattern) for name_and_pattern in candidates):
            return label
    return None


# Folders


def from_folder(path: str, options: Options) -> Source | list[str]:
    """A source of the documents in the folder at ``path``, classified by its sub-folders; or the paths of its tables if
    it contains nothing else. Raises an error if it has no files. ``options``: how to read the files.
    """
    unreadable: list[tuple[str, str]] = []  # folders that cannot be listed, with the reason
    try:
        entries = _visible(path)  # the names in it, and whether each is a folder
    except OSError as error:
        raise errors.bad_file(path, f"{_reason(error, path)}.") from None
    folders = [name for name, is_folder in entries if is_folder]
    visited = {os.path.realpath(path)}  # folders whose links to themselves are not followed
    top_files = [os.path.join(path, name) for name, is_folder in entries if not is_folder]
    nested_files = [
        file_path for name in folders for file_path in _below(os.path.join(path, name), visited.copy(), unreadable)
    ]
    if not top_files and not nested_files and not unreadable:
        raise errors.empty_data(path, EMPTY_FOLDER)
    # Spark leaves _SUCCESS beside its tables.
    visible_files = [file_path for file_path in top_files if not os.path.basename(file_path).startswith("_")]
    are_tables = not nested_files and visible_files and all(ending(file_path) in TABLES for file_path in visible_files)
    options = options if are_tables else options.recall(FILE_SETTINGS)
    if options.class_from is not None:
        return from_files(label_files([*top_files, *nested_files], options, path), path, options, unreadable)
    if nested_files or unreadable:
        # The largest number of folders between the folder and a file.
        max_depth = max((file_path[len(path) :].strip(os.sep).count(os.sep) for file_path in nested_files), default=0)
        if options.remembered.get("classes_at", 0) <= max_depth:
            options = options.recall(("classes_at",))
        files = _label_by_folder(path, [*top_files, *nested_files], folders, options)
        return from_files(files, path, options, unreadable)
    errors.require(options.classes_at is None, "classes_at", options.classes_at, f"omitted: {path} has no folders")
    if options.format == "auto" and are_tables:
        return visible_files
    return from_files(label_files(top_files, options, path), path, options)


def _label_by_folder(path: str, paths: Sequence[str], folders: Sequence[str], options: Options) -> list[File]:
    """The files, each with the class named by the folder above it on level ``classes_at``. Files that lie higher are
    reported and left out.

    ``path``: the folder; ``paths``: all files in it; ``folders``: the names of its sub-folders; ``options``: give the
    level.
    """
    if options.classes_at is None:
        _refuse_parts(path, paths, folders)
    level = options.classes_at or 1
    folder_names = [os.path.relpath(file_path, path).split(os.sep)[:-1] for file_path in paths]
    pairs = list(zip(paths, folder_names, strict=True))  # a file, and the names of the folders above it, below ``path``
    files = [File(file_path, printable_path(names[level - 1])) for file_path, names in pairs if len(names) >= level]
    strays = [printable_path(os.path.relpath(file_path, path)) for file_path, names in pairs if len(names) < level]
    if not files and strays:
        raise errors.bad_setting(
            "classes_at", level, f"{max(map(len, folder_names))} at most, because no file in {path} lies deeper"
        )
    if strays:
        fact = "has one sub-folder per class" if level == 1 else f"has the classes on level {level} of its folders"
        verb, them, their = ("is", "it", "its") if len(strays) == 1 else ("are", "them", "their")
        n_files = errors.many(len(strays), "file")
        names = errors.listed(strays, 5)
        errors.warn(
            f"{path} {fact}, so the {n_files} beside the folders {verb} ignored: {names}. "
            f"To have {them} read, move {them} into the folder of {their} class."
        )
    return files


def _warn_about_single_folder(path: str, paths: Sequence[str], folder: str) -> None:
    """Warns if all files lie in sub-folders of a single folder, as archives unpack: these may be the classes. ``path``:
    the folder that the user named; ``paths``: all files in it; ``folder``: the name of its only sub-folder.
    """
    # For each file the names of the folders above it, below ``path``.
    folder_names = [os.path.relpath(file_path, path).split(os.sep)[:-1] for file_path in paths]
    inner_folders = sorted({names[1] for names in folder_names if len(names) > 1})
    if len(inner_folders) > 1 and all(len(names) != 1 for names in folder_names):
        errors.warn(
            f"{path} has only one folder, {folder}, so all files are in one class; the folders inside it are "
            f"{errors.listed(inner_folders, 6)}. If these are the classes, read {os.path.join(path, folder)} "
            "or pass classes_at=2; otherwise pass classes_at=1."
        )


def _refuse_parts(path: str, paths: Sequence[str], folders: Sequence[str]) -> None:
    """Raises BadSetting if the sub-folders look like parts of a collection, such as train and test, so that the folders
    in them may be the classes; warns if there is a single sub-folder. ``path``: the folder; ``paths``: all files in it;
    ``folders``: the names of its sub-folders.
    """
    part_folders = [name for name in folders if PART.search(name)]
    if len(folders) == 1 and not part_folders:
        _warn_about_single_folder(path, paths, folders[0])
    inner_folders: dict[str, set[str]] = {name: set() for name in part_folders}  # the folders in each part
    for file_path in paths:
        top_folder, *folders_below = os.path.relpath(file_path, path).split(os.sep)[:-1] or [""]
        if top_folder in inner_folders and folders_below:
            inner_folders[top_folder].add(folders_below[0])
    folder_sets = [names for names in inner_folders.values() if names]
    shared_names = set.intersection(*folder_sets) if len(folder_sets) > 1 else set()
    if not part_folders or not (len(part_folders) == len(folders) or shared_names):
        return
    all_inner = sorted(set().union(*folder_sets))  # the names of folders in the parts
    read_one = f"Read only one of them, such as {os.path.join(path, part_folders[-1])}; or pass "
    predict_outer = f"classes_at=1 to predict {errors.listed(part_folders, 3)}"
    if all_inner:
        message = f"{path} has the folders {errors.listed(folders, 4)}, which contain the folders "
        message += f"{errors.listed(all_inner, 6)}. Which of the two are the classes? "
        message += f"{read_one}classes_at=2 to predict {errors.listed(all_inner, 3)} from all of them together, "
        message += f"or {predict_outer}."
    else:
        message = f"{path} has the folders {errors.listed(folders, 4)}, which look like parts of one collection rather "
        message += f"than classes. {read_one}{predict_outer}; or class_from='spm*=spam,*=ham' if the file names show the class."
    raise errors.BadSetting(message, setting="classes_at", value=None)


def _visible(folder: str) -> list[tuple[str, bool]]:
    """The names in a folder in order, without hidden ones, and whether each is a folder."""
    return sorted((name, os.path.isdir(os.path.join(folder, name))) for name in os.listdir(folder) if name[0] != ".")


def _below(folder: str, visited: set[str], unreadable: list[tuple[str, str]]) -> list[str]:
    """The paths of all files below a folder in order. ``visited``: gets the real paths of the folders, so that cyclic
    links end; ``unreadable``: gets the folders that cannot be listed, with the reason.
    """
    files = list[str]()
    stack = [(folder, True)]  # (path, whether it is a folder) of what is still to visit, the next last
    while stack:
        path, is_folder = stack.pop()
        if not is_folder:
            files.append(path)
            continue
        real_path = os.path.realpath(path)
        try:
            entries = _visible(path) if real_path not in visited else []
            visited.add(real_path)
            stack += [(os.path.join(path, name), is_inner_folder) for name, is_inner_folder in reversed(entries)]
        except OSError as error:
            unreadable.append((printable_path(path), _reason(error, path)))
    return files
