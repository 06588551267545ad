"""Documents → rows: one text a file or a line, one row a message; a folder with a sub-folder per class.

Files that cannot be read are named, skipped and counted; so are broken messages, of which what can be read is taken.
"""

from __future__ import annotations

import fnmatch
import io
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Literal

from banbury import errors
from banbury.reading.batches import Batch, Source, number_rows
from banbury.reading.blocks import BYTE_ORDER_MARK, COMPRESSED, ending, fetch, open_file
from banbury.reading.columns import Column, Objects, decode_bytes, missing
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
from banbury.reading.options import DOCUMENT_SETTINGS, FILE_SETTINGS, OF_TEXT_TABLES, SUBJECT, Options, header_columns
from banbury.reading.tables import TEXT, encode, from_texts, names_for, single
from banbury.threads import n_threads

Form = Literal["text", "mail", "html"]
Cells = Sequence[str | None]  # of a document: its text alone, or headers and the body

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

BATCH_ROWS = 4096
BATCH_CHARACTERS = 16 << 20
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
    """What a document is: by its ending, or for one that says nothing by what the file begins with.

    ``posts``: news articles are mail, too.
    """
    last = ending(path)
    silent = last not in (*MAIL, *HTML, *TEXT_ENDINGS)
    if last in MAIL or (silent and (begins_as_mail(begin) or (posts and begins_as_post(begin)))):
        return "mail"
    page = begin[:256].lstrip().lower().startswith((b"<!doctype html", b"<html"))
    return "html" if last in HTML or (silent and page) else "text"


def from_messages(values: list[Any], options: Options) -> Source:
    """Messages or pages that are in memory already."""
    form: Form = "html" if options.format == "html" else "mail"
    losses = Losses()
    apart = header_columns(options.headers)
    rows: list[Cells] = []
    for row, value in enumerate(values):
        if missing(value):
            rows.append([None] * (len(apart) + 1))
        elif isinstance(value, str) and form == "html":
            rows.append([*[None] * len(apart), html_text(value)])
        else:
            data = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
            rows.append(losses.cells(data.removeprefix(BYTE_ORDER_MARK), form, options, f"row {row:,}"))
    losses.tell_broken(None)
    if not apart:
        return from_texts([text for (text,) in rows], options.columns, options.batch_rows)
    losses.check_headers(options, None)
    names = names_for((*apart, BODY), options.columns)
    return single(Batch(names, len(rows), _columns(names, rows)), options.batch_rows)


def _columns(names: Sequence[str], rows: Sequence[Cells]) -> dict[str, Column]:
    return {name: Objects([cells[j] for cells in rows], text=True) for j, name in enumerate(names)}


@dataclass(frozen=True, slots=True)
class File:
    """A file of documents, and the class that they are of."""

    path: str
    label: str | None = None


@dataclass(slots=True)
class Losses:
    """What could not be read: files with the reason, and broken messages among all of them."""

    files: list[tuple[str, str]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    n_messages: int = 0
    headers: set[str] = field(default_factory=set)  # that messages have, where some are columns

    def cells(self, data: bytes, form: Form, options: Options, name: str, cut_off: bool = False) -> Cells:
        """The text of one document; of a message whose headers are columns these, and the body."""
        apart = header_columns(options.headers)
        broken = False
        cells: Cells
        if form == "mail" and apart:
            cells, there, broken = message_cells(data, apart)
            self.headers.update(there)
        elif form == "mail":
            text, broken = message_text(data, options.headers)
            cells = [text]
        else:
            text = html_text(decode_file(data, html_encoding(data))) if form == "html" else decode_file(data)
            cells = [*[None] * len(apart), text]
        self.n_messages += form == "mail"
        self.broken += [name] * (broken or cut_off)
        return cells

    def reasons(self) -> str:
        return errors.listed((f"{path} ({why})" for path, why in self.files), 5)

    def tell_broken(self, source: str | None) -> None:
        if self.broken:
            errors.warn(
                f"{len(self.broken):,} of {self.n_messages:,} messages{errors.where(source)} are broken (damaged, cut off, or in "
                f"an unknown encoding), so only their readable parts were used: {errors.listed(self.broken, 3)}"
            )

    def check_headers(self, options: Options, source: str | None) -> None:
        """Raises if headers are to be columns and there are no messages, or none has a header that one has misspelt.

        Of data to learn from, that is: a message to answer may lack anything.
        """
        where = errors.where(source)
        headers = options.headers
        if options.kinds is not None:
            return
        if not self.n_messages:
            text = f"headers={headers!r} turns mail headers into columns, but no file{where} was read as mail."
            text += " If the files are messages, pass format='mail'; otherwise omit headers=."
            raise errors.BadSetting(text, setting="headers", value=headers)
        header_names = set() if isinstance(headers, str) else {name.lower() for name in headers if name != "columns"}
        for name in sorted(header_names - self.headers):
            near = errors.did_you_mean(name, sorted(self.headers))
            there = errors.listed(sorted(self.headers), 20)
            if near:
                text = f"no message{where} has a header {name!r}.{near}\n  Headers: {there}"
                raise errors.BadSetting(text, setting="headers", value=name)
            errors.warn(f"no message{where} has a header {name!r}, so its column is empty. Headers: {there}")


def from_files(
    files: Sequence[File], name: str | None, options: Options, unreadable: Sequence[tuple[str, str]] = ()
) -> Source:
    """The documents in some files, in their order; with a column for the class where files have labels."""
    options.refuse(OF_TEXT_TABLES, "CSV and similar files, but these are texts")
    documents = _Documents(files, name, options, unreadable)
    target = documents.names[0] if documents.labelled else None
    reading = options.settings(DOCUMENT_SETTINGS)
    return Source(documents.batches, name, target=target, holds_no_lists=True, reading=reading)


class _Documents:
    """The documents in some files; ``name`` is the folder, pattern or file that they were found in."""

    def __init__(
        self, files: Sequence[File], name: str | None, options: Options, unreadable: Sequence[tuple[str, str]]
    ) -> None:
        self.files = files
        self.name = name
        self.options = options
        self.unreadable = unreadable
        self.warned = False
        self.labelled = any(file.label is not None for file in files)
        self.apart = header_columns(options.headers)
        texts = (*self.apart, BODY) if self.apart else (TEXT,)
        self.names = names_for((CLASS, *texts) if self.labelled else texts, options.columns)
        self.lines = options.format == "lines"

    def batches(self) -> Iterator[Batch]:
        losses = Losses(list(self.unreadable))
        n_rows = 0
        for batch in number_rows(_ahead(self._gather_batches(losses))):
            n_rows += batch.n_rows
            yield batch
        self._tell(losses, n_rows)
        if n_rows == 0:
            yield self._batch([], None)

    def _gather_batches(self, losses: Losses) -> Iterator[Batch]:
        """The documents in batches of bounded size."""
        most = self.options.batch_rows or BATCH_ROWS
        rows: list[tuple[str | None, str, Cells]] = []  # the class, the name and the cells of each
        size = 0
        for number, file in enumerate(self.files):
            for name, cells, within in self._documents(file, losses):
                rows.append((file.label, name, cells))
                size += sum(len(cell) for cell in cells if cell)
                if len(rows) == most or size >= BATCH_CHARACTERS:
                    yield self._batch(rows, (number + within) / len(self.files))
                    rows = []
                    size = 0
        if rows:
            yield self._batch(rows, 1.0)

    def _batch(self, rows: list[tuple[str | None, str, Cells]], share: float | None) -> Batch:
        """The batch of some documents: the class, name and cells of each."""
        columns = _columns(self.names[self.labelled :], [cells for _, _, cells in rows])
        if self.labelled:
            columns[self.names[0]] = encode([label for label, _, _ in rows])
        # Lines without a class are plain texts: their only column has no name of its own, and neither have they.
        batch = Batch(self.names, len(rows), columns, self.labelled or not self.lines, self.name)
        batch.row_names = None if self.lines else [name for _, name, _ in rows]
        batch.share = share
        return batch

    def _documents(self, file: File, losses: Losses) -> Iterator[tuple[str, Cells, float]]:
        """Name and cells of each document of a file, and how much of the file is read with it."""
        path = file.path
        shown = printable_path(file.path)
        last = ending(file.path)
        try:
            data, is_complete = beginning(path)
            if self.lines and not data.startswith(_BINARY_BEGINNINGS):
                yield from self._lines(path, shown)
                return
            form: Any = form_of(path, data, bool(self.apart)) if self.options.format == "auto" else self.options.format
            if form == "mail" and (last in MAILBOXES or (last not in MAIL and begins_as_mbox(data))):
                yield from self._messages(path, shown, data if is_complete else None, losses)
                return
            if not is_complete:
                data, is_complete = beginning(path, LONGEST_MESSAGE)
            if not is_complete:
                packed = ", unpacked," if path.lower().endswith(COMPRESSED) else ""
                why = f"it has{packed} more than {LONGEST_MESSAGE >> 20} MB, which is the limit for a text"
                losses.files.append((shown, why))
                return
            for begin, what in _BINARY:
                if data.startswith(begin):
                    losses.files.append((shown, f"it contains {what}, not text"))
                    return
            yield shown, losses.cells(data, form, self.options, shown), 1.0
        except (OSError, errors.BanburyError) as problem:
            losses.files.append((shown, _why(problem, path)))

    def _lines(self, path: str, shown: str) -> Iterator[tuple[str, Cells, float]]:
        """Each line of a file as a text."""
        with _stream(path) as stream:
            for line in stream:
                text = decode_bytes(line.removesuffix(b"\n").removesuffix(b"\r"))
                yield shown, [*[None] * len(self.apart), text], 0.0

    def _messages(
        self, path: str, shown: str, data: bytes | None, losses: Losses
    ) -> Iterator[tuple[str, Cells, float]]:
        """The messages of a mailbox: ``data``, or else the file, which is never held whole. One that is alone has no number."""
        size = 0 if data is not None or path.lower().endswith(COMPRESSED) else os.path.getsize(path)
        with _stream(path) if data is None else io.BytesIO(data) as stream:
            alone = data is not None and b"\nFrom " not in data and data.strip()
            lines = iter(lambda: stream.readline(LONGEST_MESSAGE), b"")
            mail = iter([(data or b"", False)]) if alone else messages(lines)
            first = list(islice(mail, 2))
            for number, (message, cut_off) in enumerate(chain(first, mail), 1):
                name = f"{shown}, message {number:,}" if len(first) > 1 else shown
                cells = losses.cells(message, "mail", self.options, name, cut_off)
                yield name, cells, min(stream.tell() / size, 1.0) if size else 0.0

    def _tell(self, losses: Losses, n_rows: int) -> None:
        """Says once what could not be read; an error if that is all."""
        if losses.files and n_rows == 0:
            path, why = losses.files[0]
            if len(losses.files) == 1:
                raise errors.bad_file(path, f"{why}.")
            several = f"none of the {len(losses.files):,} files can be read.\n  {losses.reasons()}"
            raise errors.bad_file(self.name or path, several)
        if self.warned:
            return
        self.warned = True
        if self.apart and n_rows:
            losses.check_headers(self.options, self.name)
        where = errors.where(self.name)
        if losses.files:
            n_files = len(self.files) + len(self.unreadable)
            errors.warn(
                f"{len(losses.files):,} of {n_files:,} files{where} cannot be read and were skipped: {losses.reasons()}. "
                "Fix or remove them, and count again if they matter."
            )
        losses.tell_broken(self.name)
        expects_mail = self.options.headers is not SUBJECT and "headers" not in self.options.remembered
        if expects_mail and not losses.n_messages and n_rows:
            text = f"no file{where} was read as mail, so headers= had no effect."
            errors.warn(f"{text} If the files are messages, pass format='mail'.")


def _ahead(items: Iterator[Batch]) -> Iterator[Batch]:
    """The items, each made while the one before is worked on."""
    if n_threads(None) == 1:
        yield from items
        return
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, items, None)
        while (batch := following.result()) is not None:
            following = pool.submit(next, items, None)
            yield batch


def _why(problem: Exception, path: str) -> str:
    """Why a file could not be read, without its name."""
    message = problem.strerror if isinstance(problem, OSError) else None
    return message or str(problem).removeprefix(f"cannot read {path}: ").rstrip(".")


def printable_path(path: str) -> str:
    """The path as text that can be printed, whatever bytes are in it."""
    return decode_bytes(os.fsencode(path))


def beginning(path: str, most: int = LARGE) -> tuple[bytes, bool]:
    """The first bytes of a document, without a byte-order mark, and whether they are all of it.

    Does not wait for what is no regular file.
    """
    if path.lower().endswith(COMPRESSED):
        with open_file(path) as stream:
            data = fetch(stream, most + 1, path)
        return data, len(data) <= most
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        size = min(status.st_size, most) + 1
        data = os.read(handle, size)
        while 0 < len(data) < size - 1 and (more := os.read(handle, size - len(data))):
            data += more
        return data.removeprefix(BYTE_ORDER_MARK), len(data) <= most
    finally:
        os.close(handle)


def _stream(path: str) -> io.BufferedReader:
    """The file as a stream of bytes, without a byte-order mark; one that is not packed can tell how far it is read."""
    if path.lower().endswith(COMPRESSED):
        return io.BufferedReader(open_file(path))
    stream = open(path, "rb")  # noqa: SIM115 (whoever reads it closes it)
    if stream.read(len(BYTE_ORDER_MARK)) != BYTE_ORDER_MARK:
        stream.seek(0)
    return stream


# Classes of files


def label_files(paths: Sequence[str], options: Options, folder: str = "") -> list[File]:
    """Files with the classes that their names tell: by patterns; or of several whose lines are texts, each its own.

    A file that no pattern fits is named, and left out; it has no class where the patterns are remembered.
    """
    if options.classes_at is not None and not folder:
        options.refuse(("classes_at",), "a folder, but these are files")
    if options.class_from is None:
        by_name = options.format == "lines" and len(paths) > 1
        return [File(path, _stem(path) if by_name else None) for path in paths]
    named = [(p, _class_of(os.path.relpath(p, folder) if folder else p, options.class_from)) for p in paths]
    remembered = "class_from" in options.remembered
    files = [File(path, label) for path, label in named if remembered or label is not None]
    if len(files) < len(paths):
        strays = [printable_path(path) for path, label in named if label is None]
        patterns = errors.listed(map(repr, options.class_from))
        what = f"{errors.many(len(strays), 'file')}{errors.where(folder)} {'fits' if len(strays) == 1 else 'fit'} no pattern in "
        what += f"class_from= ({patterns})"
        if not files:
            raise errors.empty_data(folder or None, f"{what}: {errors.listed(strays, 5)}")
        errors.warn(f"{what} and were left out: {errors.listed(strays, 5)}")
    return files


def _stem(path: str) -> str:
    """The name of a file without an ending that says that it is text, or how it is compressed."""
    name = os.path.basename(path)
    for endings in (COMPRESSED, TEXT_ENDINGS):
        stem, last = os.path.splitext(name)
        name = stem if last.lower() in endings else name
    return printable_path(name)


def _class_of(path: str, patterns: Mapping[str, str]) -> str | None:
    """The class of the first pattern that fits a file's name; or its path, where the pattern has a slash."""
    place = path.replace(os.sep, "/")
    name = os.path.basename(path)
    for pattern, label in patterns.items():
        tried = [(place, pattern), (place, f"*/{pattern}")] if "/" in pattern else [(name, pattern)]
        if any(fnmatch.fnmatchcase(*name_and_pattern) for name_and_pattern in tried):
            return label
    return None


# Folders


def from_folder(path: str, options: Options) -> Source | list[str]:
    """The documents in a folder, of the class that their sub-folder is named for; of a folder of tables alone their paths."""
    unreadable: list[tuple[str, str]] = []
    try:
        entries = _visible(path)
    except OSError as problem:
        raise errors.bad_file(path, f"{_why(problem, path)}.") from None
    folders = [name for name, is_folder in entries if is_folder]
    seen = {os.path.realpath(path)}
    beside = [os.path.join(path, name) for name, is_folder in entries if not is_folder]
    below = [file_path for name in folders for file_path in _below(os.path.join(path, name), seen.copy(), unreadable)]
    if not beside and not below and not unreadable:
        raise errors.empty_data(path, EMPTY_FOLDER)
    parts = [
        file_path for file_path in beside if not os.path.basename(file_path).startswith("_")
    ]  # Spark leaves _SUCCESS beside them
    are_tables = not below and parts and all(ending(part) in TABLES for part in parts)
    options = options if are_tables else options.recall(FILE_SETTINGS)
    if options.class_from is not None:
        return from_files(label_files([*beside, *below], options, path), path, options, unreadable)
    if below or unreadable:
        deepest = max((file_path[len(path) :].strip(os.sep).count(os.sep) for file_path in below), default=0)
        if options.remembered.get("classes_at", 0) <= deepest:
            options = options.recall(("classes_at",))
        files = _by_folder(path, [*beside, *below], folders, options)
        return from_files(files, path, options, unreadable)
    errors.require(options.classes_at is None, "classes_at", options.classes_at, f"omitted: {path} has no folders")
    if options.format == "auto" and are_tables:
        return parts
    return from_files(label_files(beside, options, path), path, options)


def _by_folder(path: str, paths: Sequence[str], folders: Sequence[str], options: Options) -> list[File]:
    """The files, each of the class that a folder above it is named for; those that lie too high are named, and left out."""
    if options.classes_at is None:
        _refuse_parts(path, paths, folders)
    level = options.classes_at or 1
    above = [os.path.relpath(file_path, path).split(os.sep)[:-1] for file_path in paths]
    pairs = list(zip(paths, above, strict=True))
    files = [File(file_path, printable_path(names[level - 1])) for file_path, names in pairs if len(names) >= level]
    strays = [printable_path(os.path.relpath(file_path, path)) for file_path, names in pairs if len(names) < level]
    if not files and strays:
        allowed = f"{max(map(len, above))} at most, because no file in {path} lies deeper"
        raise errors.bad_setting("classes_at", level, allowed)
    if strays:
        what = "has one sub-folder per class" if level == 1 else f"has the classes on level {level} of its folders"
        are, them, their = ("is", "it", "its") if len(strays) == 1 else ("are", "them", "their")
        n_files = errors.many(len(strays), "file")
        named = errors.listed(strays, 5)
        errors.warn(
            f"{path} {what}, so the {n_files} beside the folders {are} ignored: {named}. "
            f"To have {them} read, move {them} into the folder of {their} class."
        )
    return files


def _warn_of_one(path: str, paths: Sequence[str], folder: str) -> None:
    """Warns where all files lie in folders of one folder, as archives unpack: these may be the classes."""
    above = [os.path.relpath(file_path, path).split(os.sep)[:-1] for file_path in paths]
    inner = sorted({names[1] for names in above if len(names) > 1})
    if len(inner) > 1 and all(len(names) != 1 for names in above):
        text = f"{path} has only one folder, {folder}, so all files are in one class; the folders inside it are "
        text += f"{errors.listed(inner, 6)}. If these are the classes, read {os.path.join(path, folder)} or pass classes_at=2; "
        text += "otherwise pass classes_at=1."
        errors.warn(text)


def _refuse_parts(path: str, paths: Sequence[str], folders: Sequence[str]) -> None:
    """Raises where the folders are train and test, or parts, so that what stands below them may be the classes."""
    parts = [name for name in folders if PART.search(name)]
    if len(folders) == 1 and not parts:
        _warn_of_one(path, paths, folders[0])
    inner: dict[str, set[str]] = {name: set() for name in parts}
    for file_path in paths:
        outer, *within = os.path.relpath(file_path, path).split(os.sep)[:-1] or [""]
        if outer in inner and within:
            inner[outer].add(within[0])
    names = [name for name in inner.values() if name]
    shared = set.intersection(*names) if len(names) > 1 else set()
    if not parts or not (len(parts) == len(folders) or shared):
        return
    every = sorted(set().union(*names))
    alone = f"Read only one of them, such as {os.path.join(path, parts[-1])}; or pass "
    apart = f"classes_at=1 to predict {errors.listed(parts, 3)}"
    if every:
        text = f"{path} has the folders {errors.listed(folders, 4)}, which contain the folders "
        text += f"{errors.listed(every, 6)}. Which of the two are the classes? "
        text += f"{alone}classes_at=2 to predict {errors.listed(every, 3)} from all of them together, or {apart}."
    else:
        text = f"{path} has the folders {errors.listed(folders, 4)}, which look like parts of one collection rather "
        text += f"than classes. {alone}{apart}; or class_from='spm*=spam,*=ham' if the file names show the class."
    raise errors.BadSetting(text, setting="classes_at", value=None)


def _visible(folder: str) -> list[tuple[str, bool]]:
    """Names in a folder in order, hidden ones left out, and whether each is a folder itself."""
    return sorted((name, os.path.isdir(os.path.join(folder, name))) for name in os.listdir(folder) if name[0] != ".")


def _below(folder: str, seen: set[str], unreadable: list[tuple[str, str]]) -> list[str]:
    """All files below a folder, in order. No folder is looked into twice, so links that lead back end."""
    files = list[str]()
    waiting = [(folder, True)]
    while waiting:
        path, is_folder = waiting.pop()
        if not is_folder:
            files.append(path)
            continue
        place = os.path.realpath(path)
        try:
            entries = _visible(path) if place not in seen else []
            seen.add(place)
            waiting += [(os.path.join(path, name), inner) for name, inner in reversed(entries)]
        except OSError as problem:
            unreadable.append((printable_path(path), _why(problem, path)))
    return files
