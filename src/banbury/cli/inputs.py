"""Where the data come from: a path, a folder, a pattern, several files, or standard input."""

from __future__ import annotations

import glob
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from banbury import errors
from banbury.cli.settings import reading
from banbury.files import load
from banbury.model.naive_bayes import Model
from banbury.reading import Source, header_columns, read
from banbury.reading.archives import split_archive_path
from banbury.reading.batches import Batch, number_rows
from banbury.reading.blocks import BYTE_ORDER_MARK, COMPRESSED, head_of
from banbury.reading.columns import decode_bytes, missing
from banbury.reading.files import PARQUET, has_table_ending, is_document, kind_of_table, near
from banbury.reading.options import TABLE_SETTINGS
from banbury.reading.tables import from_texts
from banbury.tally.table import batches
from banbury.tally.tally import Tally

if TYPE_CHECKING:  # what few files hold is imported with the first of them: a short command starts at once
    from typing_extensions import TypeIs

    from banbury.labels import LabelModel
    from banbury.model.networks import BeliefNetwork

ENDINGS = {"csv": ".csv", "json": ".ndjson", "parquet": ".parquet", "arff": ".arff"}
CHUNK = 1 << 16
TARGET_NAMES = ("class", "target", "label", "category", "outcome", "y")
MOST_CLASSES = 20  # values of a column that may be the target, where none is named
PACKED = 5  # a compressed file is taken to hold so many times its size


@contextmanager
def open_input(args: Namespace) -> Iterator[Any]:
    """The input as the readers take it. Standard input is kept in a temporary file meanwhile, since it may be read twice."""
    _remember(args)
    if "-" in args.input:
        if len(args.input) > 1:
            raise errors.bad_setting("INPUT", " ".join(args.input), "either - or files, not both")
        with tempfile.TemporaryDirectory(prefix="banbury-") as folder:
            args.spool = os.path.join(folder, "stdin")
            args.spool = _spool_stdin(args, args.spool)
            yield args.spool
        return
    for path in args.input:
        if not (getattr(args, "engine", None) and "://" in path):  # which workers read
            _check(path)
    several = args.input if getattr(args, "engine", None) else [Path(path) for path in args.input]
    yield args.input[0] if len(args.input) == 1 else several


def _remember(args: Namespace) -> None:
    """Says how the data of the model that a command names were read, where the input is looked at before the model reads it."""
    path = getattr(args, "model", None) or getattr(args, "like", None)
    if path is not None and args.remembered is None and ("-" in args.input or args.target):
        args.remembered = reading_of(load_kept(path))


def reading_of(kept: Any) -> Mapping[str, Any]:
    """How the data of a tally, a model or a network were read."""
    counted = getattr(kept, "network", kept)
    return getattr(counted, "schema", counted).reading  # type: ignore[no-any-return]


def _format(args: Namespace) -> str:
    """The format that was said, or that the data of the model had; a file whose name says that it is a table is one."""
    if args.format is not None or any(map(has_table_ending, args.input)):
        return args.format or "auto"
    return str(_settings(args).get("format", "auto"))


def _settings(args: Namespace) -> dict[str, Any]:
    """How the input is read, by what was said and what is remembered."""
    return {**(args.remembered or {}), **reading(args)}


def _spool_stdin(args: Namespace, path: str) -> str:
    """Standard input in a file, whose name ends as what it holds does."""
    first_line = getattr(args, "first_line", b"")
    with open(path, "wb") as file:
        file.write(first_line)
        shutil.copyfileobj(_stdin(first_line), file)
    held = _format(args)
    if held == "auto" and not is_document(path) and not header_columns(_settings(args).get("headers", ())):
        held = kind_of_table(path)
    named = path + ENDINGS.get(held.lower(), "")
    os.rename(path, named)
    return named


@contextmanager
def open_labelled(args: Namespace, needs_target: bool = True) -> Iterator[Any]:
    """The same, of rows that have classes: in the column that ``--target`` names, or by their folders."""
    requirement = "given with files: each file is a class, so stdin would be a single class"
    errors.require(args.format != "lines" or "-" not in args.input, "--format", "lines", requirement)
    if args.format == "lines" and args.target is not None:
        raise errors.bad_setting("--target", args.target, "omitted with --format lines, because lines have no columns")
    with open_input(args) as data:
        if args.target == "last":
            names = next(iter(read(data, **reading(args)))).names
            args.target = args.target if args.target in names else names[-1]
        elif args.target is None and needs_target:
            _check_classes(args, read(data, **reading(args)))
        yield data


def _check_classes(args: Namespace, source: Source) -> None:
    """Raises where no column was named as the target, and folders do not say the classes."""
    if source.target is not None:
        return
    first = next(iter(source))
    there = errors.where(source.name)
    if first.names and all(map(first.is_text, first.names)):
        message = f"the texts{there} have no class, because there are no sub-folders. Give the folder that contains one folder "
        message += "per class; or use --class-from 'spm*=spam,*=ham' if the file names show the class, or --format "
        message += "lines if each line is a text and each of several files is a class."
    else:
        likely = _likely_targets(first)
        example = shlex.quote(likely[0]) if len(likely) == 1 else "COLUMN"
        hint = errors.header_hint(source.name) if first.named else errors.A_HEADER * (source.name is not None)
        named = f"{errors.listed(map(errors.shortened, first.names), 20)}"
        suggestion = f"\n  Columns with few distinct values: {errors.listed(map(errors.shortened, likely), 20)}" * (
            len(likely) > 1
        )
        message = f"which column{there} should be predicted? Name it: --target {example}\n  Columns: {named}{suggestion}{hint}"
        if len(first.names) == 1 or all(path.lower().endswith(".txt") for path in args.input):
            message += "\n  If each line is a text and each of several files is a class, add --format lines."
    raise errors.BadSetting(message, setting="target", value=None)


def _likely_targets(first: Batch) -> list[str]:
    """The column that is named like a target; or else those of few values, which most rows share with others."""
    called = [name for name in first.names if name.lower() in TARGET_NAMES]
    if len(called) == 1:
        return called
    names = []
    for name in first.names:
        if first.kind(name) not in ("string", "boolean", "integer") or len(name) > errors.SHORT:
            continue
        n_values = len({cell for cell in first.column(name).cells() if not missing(cell)})
        if 2 <= n_values <= min(MOST_CLASSES, max(first.n_rows // 2, 2)):
            names.append(name)
    return names


def _check(path: str) -> None:
    path = os.path.expanduser(path)
    if path.endswith(".banbury") and os.path.isfile(path):
        raise errors.bad_file(path, "it contains a tally, model or network, but rows are needed here.")
    if not os.path.exists(path) and not glob.has_magic(path) and split_archive_path(path) is None:
        raise errors.missing_file(path, near(path), otherwise="")


def size(args: Namespace) -> float:
    """Roughly how many megabytes the input has when it is unpacked."""
    paths = [os.path.expanduser(path) for path in ([args.spool] if getattr(args, "spool", None) else args.input)]
    paths = [place[0] if (place := split_archive_path(path)) else path for path in paths]
    matched = ([path] if os.path.exists(path) else glob.glob(path, recursive=True) for path in paths)
    return sum(map(_bytes, chain.from_iterable(matched))) / 1e6


def _bytes(path: str) -> int:
    if os.path.isdir(path):
        return sum(_bytes(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)
    packed = path.lower().endswith((*COMPRESSED, *PARQUET, ".zip"))
    try:
        return os.path.getsize(path) * (PACKED if packed else 1)
    except OSError:
        return 0


def refuse_for_sets(args: Namespace, *names: str) -> None:
    """Raises where an option is given that sets of labels do not have."""
    for name in names:
        value = getattr(args, name.replace("-", "_"), None)
        errors.require(value in (None, False, []), f"--{name}", value, "omitted for multi-label data")


def model(path: str) -> Model:
    """A model of classes from its file."""
    return _model(path, load_kept(path))


def model_or_labels(path: str) -> Model | LabelModel:
    """The same, or a model of labels."""
    kept_model = load_kept(path)
    return kept_model if is_labels(kept_model) else _model(path, kept_model)


def is_labels(model: Any) -> TypeIs[LabelModel]:
    """Whether it is a model of labels."""
    return bool(model.kind == "model of labels")


def _model(path: str, kept_model: Model | Tally | BeliefNetwork | LabelModel) -> Model:
    if isinstance(kept_model, Model):
        return kept_model
    if is_labels(kept_model):
        text = f"{path} contains a multi-label model, but this command needs a single-label model. Multi-label models "
        raise errors.BadFile(text + "work with predict, explain, evaluate, show, report and plot labels.", path=path)
    if isinstance(kept_model, Tally):
        text = (
            f"{path} contains a tally, but a model is needed. Make one: banbury tally estimate {path} -o model.banbury"
        )
        raise errors.BadFile(text, path=path)
    text = f"{path} contains a belief network, but a model is needed. Fit one: banbury "
    text += f"fit rows.csv --target COLUMN --tan; or query the network in Python: bb.load({path!r}).query(node, given)"
    raise errors.BadFile(text, path=path)


def load_kept(path: str) -> Model | Tally | BeliefNetwork | LabelModel:
    """What a file keeps."""
    if not os.path.exists(path):
        _check(glob.escape(path) if glob.has_magic(path) else path)
    if os.path.isdir(path):
        raise errors.bad_file(path, "it is a folder, not a Banbury file.")
    return load(path)


def check_output(args: Namespace) -> None:
    """Raises, before the work is done, where its result could not be written or would take the place of the data."""
    errors.require(args.output != "", "--output", "", "the name of a file")
    if args.output is not None:
        folder = os.path.dirname(args.output) or "."
        if not os.path.isdir(folder) or os.path.isdir(args.output):
            why = f"the folder {folder} does not exist" if not os.path.isdir(folder) else "it is a folder"
            raise errors.unwritable_file(args.output, why)
        if not os.access(folder, os.W_OK):
            raise errors.unwritable_file(args.output, "permission denied")
    for path in getattr(args, "input", []):
        there = args.output is not None and os.path.exists(path) and os.path.exists(args.output)
        if there and os.path.samefile(path, args.output):
            raise errors.bad_setting("--output", args.output, "a different file from the input")


# Lines ---------------------------------------------------------------------------------------------------------------


def text_column(to: Model) -> str | None:
    """The one column that a model has learned from, if it is text."""
    features = to.schema.features if isinstance(to, Model) else ()
    return features[0].name if len(features) == 1 and features[0].reads_text else None


def are_lines(args: Namespace, to: Model) -> bool:
    """Whether the input is lines, each a text: said so, or on stdin when the model knows one column of text and no other.

    A first line that is a JSON object with that column says that it is JSON.
    """
    column = text_column(to)
    alone = isinstance(to, Model) and to.schema.columns == (column,)
    if not alone or column is None or args.input != ["-"] or _format(args) != "auto":
        return _format(args) == "lines"
    args.first_line = _stdin().readline()
    line = args.first_line.removeprefix(BYTE_ORDER_MARK)
    try:
        record = json.loads(line) if line.startswith(b"{") else None
    except ValueError:
        return True
    return not (isinstance(record, dict) and column in record)


@contextmanager
def rows(args: Namespace, to: Model) -> Iterator[Any]:
    """The input for a model to answer: lines, or as the readers take it; files of text are texts to a model of texts."""
    args.remembered = reading_of(to)
    if are_lines(args, to):
        yield lines_of(args)
        return
    may_be_texts = args.input and _format(args) == "auto" and _settings(args).keys().isdisjoint(TABLE_SETTINGS)
    if may_be_texts and all(_is_text(path, text_column(to)) for path in args.input):
        args.format = "text"
    with open_input(args) as data:
        yield data


def _is_text(path: str, column: str | None) -> bool:
    """Whether a file is a text for a model of one column of text: one of .txt whose first line does not name that column."""
    path = os.path.expanduser(path)
    if column is None or not path.lower().endswith(".txt") or not os.path.isfile(path) or is_document(path):
        return False
    line = head_of(path).partition(b"\n")[0]
    return column not in re.split(r"[,;\t|]", _text(line).replace('"', ""))


def lines_of(args: Namespace) -> Source:
    """Each line of some files as a text, a few at a time; of stdin as soon as they come."""
    paths = args.input
    first_line = getattr(args, "first_line", b"")

    def batches() -> Iterator[Batch]:
        for path in paths:
            if path != "-":
                yield from read(path, format="lines")
                continue
            stream = _stdin(first_line)
            if first := first_line or stream.readline():
                yield from from_texts([_text(first.removeprefix(BYTE_ORDER_MARK))])
            for lines in _chunks(stream):
                yield from from_texts(lines)

    name = "standard input" if paths == ["-"] else paths[0]
    return Source(lambda: number_rows(batches()), name, again="-" not in paths)


def _chunks(stream: Any) -> Iterator[list[str]]:
    """Whole lines, as many as are there to be read."""
    pending: list[bytes] = []  # of a line that has not ended
    while piece := stream.read1(CHUNK):
        complete_lines, newline, rest = piece.rpartition(b"\n")
        if newline:
            yield [_text(line) for line in b"".join([*pending, complete_lines]).split(b"\n")]
            pending = []
        pending += [rest] if rest else []
    if pending:
        yield [_text(b"".join(pending))]


def _text(line: bytes) -> str:
    return decode_bytes(line.removesuffix(b"\n").removesuffix(b"\r"))


def _stdin(begun: bytes = b"") -> Any:
    """Standard input, of which something may have been read."""
    if sys.stdin is None:
        raise errors.bad_file("standard input", "stdin is closed.")
    if sys.stdin.isatty() and not begun:
        print("reading from the terminal; press Ctrl-D to finish", file=sys.stderr)
    return sys.stdin.buffer


# One row ----------------------------------------------------------------------------------------------------------------


def row_to_explain(args: Namespace, model: Model) -> Any:
    """The text, or the row of the input, that is asked for."""
    if args.text is None:
        return _row(args, model)
    if args.input or args.row is not None:
        raise errors.bad_setting("--text", args.text, "used without INPUT and --row, because it is the text to explain")
    column = text_column(model)
    if column is None:
        columns = errors.listed(f.name for f in model.schema.features)
        text = f"--text works only with models of a single text column, but this model uses {columns}. Give a file and --row."
        raise errors.BadSetting(text, setting="text", value=None)
    return {column: [args.text]}


def _row(args: Namespace, model: Model) -> Batch:
    """The row that is asked for."""
    if not args.input:
        text = "nothing to explain. Give a text with --text, or an input file and --row."
        raise errors.BadSetting(text, setting="input", value=None)
    row_number = 1 if args.row is None else args.row
    with rows(args, model) as data:
        source = data if isinstance(data, Source) else model._read(data, reading(args))
        n_rows = 0
        for batch in batches(source, "reading"):
            at = row_number - 1 - batch.first_row
            if 0 <= at < batch.n_rows:
                return batch.slice(at, at + 1)
            n_rows = batch.first_row + batch.n_rows
        text = f"row {row_number:,} does not exist: rows are numbered from 1 to {n_rows:,}."
        raise errors.BadSetting(text, setting="row", value=row_number)
