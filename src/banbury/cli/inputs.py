"""Where the data come from: a path, a folder, a pattern, several files, or standard input."""

from __future__ import annotations

import glob
import json
import os
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from banbury import errors
from banbury.cli.settings import reading
from banbury.files import load
from banbury.naive_bayes import Model
from banbury.readers import Source, read
from banbury.readers.batches import Batch
from banbury.readers.blocks import COMPRESSED
from banbury.readers.files import PARQUET, is_document, kind_of_table, near
from banbury.readers.tables import from_texts
from banbury.tally import Tally

if TYPE_CHECKING:
    from banbury.networks import BeliefNetwork
    from banbury.networks.classifier import NetworkClassifier

ENDINGS = {"csv": ".csv", "json": ".ndjson", "CSV": ".csv", "JSON": ".ndjson", "Parquet": ".parquet"}
CHUNK = 1 << 16
PACKED = 5  # a compressed file is taken to hold so many times its size


@contextmanager
def opened(given: Namespace) -> Iterator[Any]:
    """The input as the readers take it. Standard input is kept in a temporary file meanwhile, since it may be read twice."""
    if "-" in given.input:
        if len(given.input) > 1:
            raise errors.bad_setting("INPUT", " ".join(given.input), "- alone, or files")
        with tempfile.TemporaryDirectory(prefix="banbury-") as folder:
            given.spool = _spooled(given, os.path.join(folder, "stdin"))
            yield given.spool
        return
    for path in given.input:
        _check(path)
    yield given.input[0] if len(given.input) == 1 else [Path(path) for path in given.input]


def _spooled(given: Namespace, path: str) -> str:
    """Standard input in a file, whose name ends as what it holds does."""
    first_line = getattr(given, "first_line", b"")
    with open(path, "wb") as file:
        file.write(first_line)
        shutil.copyfileobj(_stdin(first_line), file)
    held = given.format
    if held == "auto" and not is_document(path):
        held = kind_of_table(path)
    os.rename(path, path + ENDINGS.get(held, ""))
    return path + ENDINGS.get(held, "")


@contextmanager
def labelled(given: Namespace, needs_target: bool = True) -> Iterator[Any]:
    """The same, of rows that have classes: in the column that ``--target`` names, or by their folders."""
    if given.format == "lines":
        raise errors.bad_setting("--format", "lines", "csv, json, text, mail or html here: lines have no class")
    with opened(given) as data:
        if given.target is None and needs_target:
            source = read(data, **reading(given))
            if source.target is None:
                first = next(iter(source))
                if first.row_names is not None:
                    raise errors.texts_without_classes(source.name)
                raise errors.target_needed(first.names, source.name)
        yield data


def _check(path: str) -> None:
    path = os.path.expanduser(path)
    if not os.path.exists(path) and not glob.has_magic(path):
        raise errors.missing_file(path, near(path), otherwise="")


def size(given: Namespace) -> float:
    """Roughly how many megabytes the input has when it is unpacked."""
    paths = [given.spool] if getattr(given, "spool", None) else given.input
    found = [os.path.expanduser(path) for path in paths]
    matched = [
        match for path in found for match in ([path] if os.path.exists(path) else glob.glob(path, recursive=True))
    ]
    return sum(map(_bytes, matched)) / 1e6


def _bytes(path: str) -> int:
    if os.path.isdir(path):
        return sum(_bytes(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)
    packed = path.lower().endswith((*COMPRESSED, *PARQUET))
    try:
        return os.path.getsize(path) * (PACKED if packed else 1)
    except OSError:
        return 0


def model(path: str, verb: str) -> Model:
    """A model from its file, for a verb that takes no network."""
    found = kept(path)
    if isinstance(found, Tally):
        raise errors.only_a_tally(path)
    if not isinstance(found, Model):
        raise errors.only_a_network(path, verb)
    return found


def answering(path: str, of: str | None = None) -> Model | NetworkClassifier:
    """What predicts classes, from its file: a model, or a network with a target or with the node that is asked for."""
    found = kept(path)
    if isinstance(found, Tally):
        raise errors.only_a_tally(path)
    if isinstance(found, Model):
        if of is not None:
            raise errors.bad_setting("--of", of, f"left out: {path} holds a model, which predicts its target alone")
        return found
    node = found.target if of is None else of
    if node is None:
        raise errors.network_without_target(path, found.nodes)
    from banbury.networks.classifier import NetworkClassifier

    return NetworkClassifier(found, found.nodes[found._asked(node)])


def kept(path: str) -> Model | Tally | BeliefNetwork:
    """What a file keeps."""
    if not os.path.exists(path):
        _check(glob.escape(path) if glob.has_magic(path) else path)
    if os.path.isdir(path):
        raise errors.bad_file(path, "it is a folder, and a Banbury file is wanted.")
    return load(path)


def check_output(given: Namespace) -> None:
    """Raises, before the work is done, where its result could not be written or would take the place of the data."""
    if given.output == "":
        raise errors.bad_setting("--output", "", "the name of a file")
    if given.output is not None:
        folder = os.path.dirname(given.output) or "."
        if not os.path.isdir(folder) or os.path.isdir(given.output):
            why = f"there is no folder {folder}" if not os.path.isdir(folder) else "it is a folder"
            raise errors.unwritable_file(given.output, why)
        if not os.access(folder, os.W_OK):
            raise errors.unwritable_file(given.output, "you have no permission to write there")
    for path in getattr(given, "input", []):
        there = given.output is not None and os.path.exists(path) and os.path.exists(given.output)
        if there and os.path.samefile(path, given.output):
            raise errors.bad_setting("--output", given.output, "another file than the input")


# Lines ---------------------------------------------------------------------------------------------------------------


def are_lines(given: Namespace, to: Model | NetworkClassifier) -> bool:
    """Whether the input is lines, each a text: said so, or on stdin when the model knows one column of text and no other.

    A first line that is a JSON object with that column says that it is JSON.
    """
    alone = isinstance(to, Model) and len(to.schema.columns) == len(to.schema.texts) == 1
    if isinstance(to, Model) and given.input == ["-"] and given.format == "auto" and alone:
        given.first_line = _stdin().readline()
        return not _is_record(given.first_line, to.schema.columns[0])
    return bool(given.format == "lines")


def _is_record(line: bytes, column: str) -> bool:
    try:
        found = json.loads(line) if line.startswith(b"{") else None
    except ValueError:
        return False
    return isinstance(found, dict) and column in found


def lines_of(given: Namespace) -> Source:
    """Each line of some files as a text, a few at a time; of stdin as soon as they come."""
    paths, first_line = given.input, getattr(given, "first_line", b"")

    def batches() -> Iterator[Batch]:
        first_row = 0
        for path in paths:
            with _stdin(first_line) if path == "-" else _bytes_of(path) as stream:
                for lines in chain([[_text(first_line)]] if first_line else [], _chunks(stream)):
                    [batch] = from_texts(lines, None, None)
                    batch.first_row, first_row = first_row, first_row + batch.n_rows
                    yield batch

    return Source(batches, "standard input" if paths == ["-"] else paths[0], again="-" not in paths)


def _bytes_of(path: str) -> Any:
    try:
        return open(os.path.expanduser(path), "rb")
    except OSError as problem:
        raise errors.bad_file(path, f"{problem.strerror}.") from None


def _chunks(stream: Any) -> Iterator[list[str]]:
    """Whole lines, as many as are there to be read."""
    pending: list[bytes] = []  # of a line that has not ended
    while piece := stream.read1(CHUNK):
        whole, newline, rest = piece.rpartition(b"\n")
        if newline:
            yield [_text(line) for line in b"".join([*pending, whole]).split(b"\n")]
            pending = []
        pending += [rest] if rest else []
    if pending:
        yield [_text(b"".join(pending))]


def _text(line: bytes) -> str:
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _stdin(begun: bytes = b"") -> Any:
    """Standard input, of which something may have been read."""
    if sys.stdin is None:
        raise errors.bad_file("standard input", "it is closed.")
    if sys.stdin.isatty() and not begun:
        print("reading from the terminal; end with Ctrl-D", file=sys.stderr)
    return sys.stdin.buffer
