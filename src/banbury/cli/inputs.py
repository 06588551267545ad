"""Opens the input of a command: a path, a folder, a pattern, several files, or standard input."""

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
from banbury.reading.columns import decode_bytes, is_missing
from banbury.reading.files import PARQUET, find_similar_file, has_table_ending, is_document, kind_of_table
from banbury.reading.options import TABLE_SETTINGS
from banbury.reading.tables import from_texts
from banbury.tally.table import read_batches
from banbury.tally.tally import Tally

if TYPE_CHECKING:  # imported only when needed, so that short commands start fast
    from typing_extensions import TypeIs

    from banbury.labels import LabelModel
    from banbury.model.networks import BeliefNetwork

ENDING_OF_FORMAT = {"csv": ".csv", "json": ".ndjson", "parquet": ".parquet", "arff": ".arff"}
CHUNK_BYTES = 1 << 16  # most bytes of stdin that are read at once
TARGET_NAMES = ("class", "target", "label", "category", "outcome", "y")
MOST_CLASSES = 20  # distinct values of a column that is suggested as the target
UNPACKED_TO_PACKED = 5  # a compressed file is assumed to unpack to so many times its size


@contextmanager
def open_input(args: Namespace) -> Iterator[Any]:
    """Opens the input of a command (``args.input``: paths, or "-"): yields a path, a list of paths, or the path of a
    temporary file with standard input, ``args.spool``, which may be read twice.
    """
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
    paths = args.input if getattr(args, "engine", None) else [Path(path) for path in args.input]
    yield args.input[0] if len(args.input) == 1 else paths


def _remember(args: Namespace) -> None:
    """Sets ``args.remembered`` to how the data of the command's model (``args.model`` or ``args.like``) were read, if
    the input is opened before the model.
    """
    path = getattr(args, "model", None) or getattr(args, "like", None)  # of a model or tally
    if path is not None and args.remembered is None and ("-" in args.input or args.target):
        args.remembered = reading_of(load_kept(path))


def reading_of(loaded: Any) -> Mapping[str, Any]:
    """Returns the reading options by name that ``loaded``, a tally, a model or a network, remembers from its data."""
    tally_or_model = getattr(loaded, "network", loaded)
    return getattr(tally_or_model, "schema", tally_or_model).reading  # type: ignore[no-any-return]


def _format(args: Namespace) -> str:
    """Returns the format of the input: as given, else as remembered with the model; "auto" for a file whose name says
    that it is a table.
    """
    if args.format is not None or any(map(has_table_ending, args.input)):
        return args.format or "auto"
    return str(_settings(args).get("format", "auto"))


def _settings(args: Namespace) -> dict[str, Any]:
    """Returns the reading options by name: those remembered with the model (``args.remembered``, or None), overridden
    by those given.
    """
    return {**(args.remembered or {}), **reading(args)}


def _spool_stdin(args: Namespace, path: str) -> str:
    """Copies standard input to the file ``path``, adds the ending that fits its content, and returns the new path."""
    first_line = getattr(args, "first_line", b"")  # of standard input, if it was already read
    with open(path, "wb") as file:
        file.write(first_line)
        shutil.copyfileobj(_stdin(first_line), file)
    format = _format(args)
    if format == "auto" and not is_document(path) and not header_columns(_settings(args).get("headers", ())):
        format = kind_of_table(path)
    new_path = path + ENDING_OF_FORMAT.get(format.lower(), "")
    os.rename(path, new_path)
    return new_path


@contextmanager
def open_labelled(args: Namespace, needs_target: bool = True) -> Iterator[Any]:
    """Opens labelled input and yields what ``open_input`` yields. Sets ``args.target`` to the name of the last column
    for ``--target last``. ``needs_target``: whether to raise BadSetting if rows have neither a target column nor
    folders that name their classes.
    """
    errors.require(
        args.format != "lines" or "-" not in args.input,
        "--format",
        "lines",
        "given with files: each file is a class, so stdin would be a single class",
    )
    if args.format == "lines" and args.target is not None:
        raise errors.bad_setting("--target", args.target, "omitted with --format lines, because lines have no columns")
    with open_input(args) as data:  # the opened input
        if args.target == "last":
            names = next(iter(read(data, **reading(args)))).names
            args.target = args.target if args.target in names else names[-1]
        elif args.target is None and needs_target:
            _check_classes(args, read(data, **reading(args)))
        yield data


def _check_classes(args: Namespace, source: Source) -> None:
    """Raises BadSetting, with suggestions, if ``source``, the opened rows, has neither a target column nor folders or
    files that name the classes.
    """
    if source.target is not None:
        return
    first_batch = next(iter(source))
    location = errors.where(source.name)  # in words, such as " in adult.csv"
    if first_batch.names and all(map(first_batch.is_text, first_batch.names)):
        message = (
            f"the texts{location} have no class, because there are no sub-folders. Give the folder that contains one "
        )
        message += (
            "folder per class; or use --class-from 'spm*=spam,*=ham' if the file names show the class, or --format "
        )
        message += "lines if each line is a text and each of several files is a class."
    else:
        candidates = _likely_targets(first_batch)  # names of columns
        # What to type after --target.
        example = shlex.quote(candidates[0]) if len(candidates) == 1 else "COLUMN"
        # What to do if the columns have the wrong names.
        hint = errors.header_hint(source.name) if first_batch.named else errors.A_HEADER * (source.name is not None)
        column_list = f"{errors.listed(map(errors.shortened, first_batch.names), most=20)}"
        suggestion = (
            f"\n  Columns with few distinct values: {errors.listed(map(errors.shortened, candidates), most=20)}"
            * (len(candidates) > 1)
        )
        message = f"which column{location} should be predicted? Name it: --target {example}\n  Columns: {column_list}"
        message += f"{suggestion}{hint}"
        if len(first_batch.names) == 1 or all(path.lower().endswith(".txt") for path in args.input):
            message += "\n  If each line is a text and each of several files is a class, add --format lines."
    raise errors.BadSetting(message, setting="target", value=None)


def _likely_targets(first_batch: Batch) -> list[str]:
    """Returns the column named like a target, such as class or y; if there is none or several, the columns with few
    distinct values in the first batch.
    """
    named_like_target = [name for name in first_batch.names if name.lower() in TARGET_NAMES]
    if len(named_like_target) == 1:
        return named_like_target
    names = []  # of columns with few distinct values
    for name in first_batch.names:
        if first_batch.kind(name) not in ("string", "boolean", "integer") or len(name) > errors.MOST_NAME_CHARACTERS:
            continue
        n_values = len({cell for cell in first_batch.column(name).cells() if not is_missing(cell)})
        if 2 <= n_values <= min(MOST_CLASSES, max(first_batch.n_rows // 2, 2)):
            names.append(name)
    return names


def _check(path: str) -> None:
    """Raises BadFile if ``path`` is a Banbury file, which has no rows, or if it is neither a file, a pattern nor in an
    archive.
    """
    path = os.path.expanduser(path)
    if path.endswith(".banbury") and os.path.isfile(path):
        raise errors.bad_file(path, "it contains a tally, model or network, but rows are needed here.")
    if not os.path.exists(path) and not glob.has_magic(path) and split_archive_path(path) is None:
        raise errors.missing_file(path, find_similar_file(path), otherwise="")


def size(args: Namespace) -> float:
    """Returns about how many megabytes the input has when decompressed: files, folders, patterns, or the temporary file
    with standard input.
    """
    paths = [os.path.expanduser(path) for path in ([args.spool] if getattr(args, "spool", None) else args.input)]
    # An archive in place of the files in it.
    paths = [archive_path[0] if (archive_path := split_archive_path(path)) else path for path in paths]
    # For each path the files that it names, of which a pattern names several.
    path_groups = ([path] if os.path.exists(path) else glob.glob(path, recursive=True) for path in paths)
    return sum(map(_bytes, chain.from_iterable(path_groups))) / 1e6


def _bytes(path: str) -> int:
    """Returns about how many bytes a file or all files in a folder have when decompressed."""
    if os.path.isdir(path):
        return sum(_bytes(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)
    is_compressed = path.lower().endswith((*COMPRESSED, *PARQUET, ".zip"))
    try:
        return os.path.getsize(path) * (UNPACKED_TO_PACKED if is_compressed else 1)
    except OSError:
        return 0


def refuse_for_sets(args: Namespace, *names: str) -> None:
    """Raises BadSetting if one of the options ``names`` (without dashes), which multi-label data do not support, is
    given.
    """
    for name in names:
        value = getattr(args, name.replace("-", "_"), None)
        errors.require(value in (None, False, []), f"--{name}", value, "omitted for multi-label data")


def model(path: str) -> Model:
    """Returns the single-label model in a file. Raises BadFile for any other Banbury file."""
    return _model(path, load_kept(path))


def model_or_labels(path: str) -> Model | LabelModel:
    """Returns the single-label or multi-label model in a file. Raises BadFile for any other Banbury file."""
    loaded = load_kept(path)
    return loaded if is_labels(loaded) else _model(path, loaded)


def is_labels(model: Any) -> TypeIs[LabelModel]:
    """Returns whether ``model`` is a multi-label model."""
    return bool(model.kind == "model of labels")


def _model(path: str, loaded: Model | Tally | BeliefNetwork | LabelModel) -> Model:
    """Returns the object loaded from ``path`` if it is a single-label model; otherwise raises BadFile with advice."""
    if isinstance(loaded, Model):
        return loaded
    if is_labels(loaded):
        raise errors.BadFile(
            f"{path} contains a multi-label model, but this command needs a single-label model. Multi-label models "
            "work with predict, explain, evaluate, show, report and plot labels.",
            path=path,
        )
    if isinstance(loaded, Tally):
        raise errors.BadFile(
            f"{path} contains a tally, but a model is needed. Make one: banbury tally estimate {path} -o model.banbury",
            path=path,
        )
    raise errors.BadFile(
        f"{path} contains a belief network, but a model is needed. Fit one: banbury "
        f"fit rows.csv --target COLUMN --tan; or query the network in Python: bb.load({path!r}).query(node, given)",
        path=path,
    )


def load_kept(path: str) -> Model | Tally | BeliefNetwork | LabelModel:
    """Returns the tally, model or network in a file. Raises BadFile if there is none, or the path is a folder."""
    if not os.path.exists(path):
        _check(glob.escape(path) if glob.has_magic(path) else path)
    if os.path.isdir(path):
        raise errors.bad_file(path, "it is a folder, not a Banbury file.")
    return load(path)


def check_output(args: Namespace) -> None:
    """Raises an error, before any work, if the output file cannot be written or is also the input."""
    errors.require(args.output != "", "--output", "", "the name of a file")
    if args.output is not None:
        folder = os.path.dirname(args.output) or "."
        if not os.path.isdir(folder) or os.path.isdir(args.output):
            reason = f"the folder {folder} does not exist" if not os.path.isdir(folder) else "it is a folder"
            raise errors.unwritable_file(args.output, reason)
        if not os.access(folder, os.W_OK):
            raise errors.unwritable_file(args.output, "permission denied")
    for path in getattr(args, "input", []):
        both_exist = args.output is not None and os.path.exists(path) and os.path.exists(args.output)
        if both_exist and os.path.samefile(path, args.output):
            raise errors.bad_setting("--output", args.output, "a different file from the input")


# Lines ---------------------------------------------------------------------------------------------------------------


def text_column(model: Model) -> str | None:
    """Returns the name of the model's only column if that is a text column; otherwise None."""
    features = model.schema.features if isinstance(model, Model) else ()
    return features.names[0] if len(features) == 1 and features[0].reads_text else None


def are_lines(args: Namespace, model: Model) -> bool:
    """Returns whether each line of the input is a text of its own: with ``--format lines``; or, if no format is known,
    on standard input for a model that reads nothing but a text column. Then its first line is read into
    ``args.first_line``; if that is a JSON object with this column, the input is JSON, and not lines.
    """
    column = text_column(model)  # its name, or None
    is_only_column = isinstance(model, Model) and model.schema.columns == (column,)
    if not is_only_column or column is None or args.input != ["-"] or _format(args) != "auto":
        return _format(args) == "lines"
    args.first_line = _stdin().readline()
    line = args.first_line.removeprefix(BYTE_ORDER_MARK)
    try:
        record = json.loads(line) if line.startswith(b"{") else None  # None: the line is no JSON object
    except ValueError:
        return True
    return not (isinstance(record, dict) and column in record)


@contextmanager
def rows(args: Namespace, model: Model) -> Iterator[Any]:
    """Opens the rows for a model to predict: yields a source of lines that are texts, or what ``open_input`` yields.
    For a model of texts, a .txt file is one text. Sets ``args.remembered`` to how the model's data were read.
    """
    args.remembered = reading_of(model)
    if are_lines(args, model):
        yield lines_of(args)
        return
    may_be_texts = args.input and _format(args) == "auto" and _settings(args).keys().isdisjoint(TABLE_SETTINGS)
    if may_be_texts and all(_is_text(path, text_column(model)) for path in args.input):
        args.format = "text"
    with open_input(args) as data:  # the opened input
        yield data


def _is_text(path: str, column: str | None) -> bool:
    """Returns whether the file ``path`` is one text for a model whose only column is the text column ``column`` (None:
    it has others): a .txt file whose first line does not name that column.
    """
    path = os.path.expanduser(path)
    if column is None or not path.lower().endswith(".txt") or not os.path.isfile(path) or is_document(path):
        return False
    line = head_of(path).partition(b"\n")[0]  # the first
    return column not in re.split(r"[,;\t|]", _text(line).replace('"', ""))


def lines_of(args: Namespace) -> Source:
    """Returns a source of texts, one for each line of the input. Lines of stdin are passed on as soon as they arrive."""
    paths = args.input
    first_line = getattr(args, "first_line", b"")  # of stdin, if it was already read

    def batches() -> Iterator[Batch]:
        """Yields a batch for each file, and for stdin a batch of the lines that have arrived."""
        for path in paths:
            if path != "-":
                yield from read(path, format="lines")
                continue
            stream = _stdin(first_line)
            if line := first_line or stream.readline():
                yield from from_texts([_text(line.removeprefix(BYTE_ORDER_MARK))])
            for lines in _chunks(stream):
                yield from from_texts(lines)

    name = "standard input" if paths == ["-"] else paths[0]  # of the source, for messages
    return Source(lambda _: number_rows(batches()), name, again="-" not in paths)  # stdin can be read only once


def _chunks(stream: Any) -> Iterator[list[str]]:
    """Yields lists of complete lines of ``stream``, a byte stream, as texts, each of as many lines as can be read
    without waiting. A last line without a line break is a list of its own.
    """
    line_pieces: list[bytes] = []  # of an unfinished line
    while chunk := stream.read1(CHUNK_BYTES):
        complete_lines, newline, remainder = chunk.rpartition(b"\n")
        if newline:
            yield [_text(line) for line in b"".join([*line_pieces, complete_lines]).split(b"\n")]
            line_pieces = []
        line_pieces += [remainder] if remainder else []
    if line_pieces:
        yield [_text(b"".join(line_pieces))]


def _text(line: bytes) -> str:
    """Returns a line as text, without its line break."""
    return decode_bytes(line.removesuffix(b"\n").removesuffix(b"\r"))


def _stdin(already_read: bytes = b"") -> Any:
    """Returns standard input as a byte stream. Unless something was already read from it (``already_read``, which the
    stream no longer contains), a user at a terminal is told how to end the input.
    """
    if sys.stdin is None:
        raise errors.bad_file("standard input", "stdin is closed.")
    if sys.stdin.isatty() and not already_read:
        print("reading from the terminal; press Ctrl-D to finish", file=sys.stderr)
    return sys.stdin.buffer


# One row ----------------------------------------------------------------------------------------------------------------


def row_to_explain(args: Namespace, model: Model) -> Any:
    """Returns what a command is to explain: the text in ``--text`` as a dictionary with its column, or the row that
    ``--row`` names as a batch of one row.
    """
    if args.text is None:
        return _row(args, model)
    if args.input or args.row is not None:
        raise errors.bad_setting("--text", args.text, "used without INPUT and --row, because it is the text to explain")
    column = text_column(model)
    if column is None:
        columns = errors.listed(model.schema.features.names)
        raise errors.BadSetting(
            f"--text works only with models of a single text column, but this model uses {columns}. Give a file and --row.",
            setting="text",
            value=None,
        )
    return {column: [args.text]}


def _row(args: Namespace, model: Model) -> Batch:
    """Returns the row of the input that ``--row`` names, as a batch; by default the first."""
    if not args.input:
        raise errors.BadSetting(
            "nothing to explain. Give a text with --text, or an input file and --row.", setting="input", value=None
        )
    row_number = 1 if args.row is None else args.row  # counted from 1
    with rows(args, model) as data:  # the opened input
        source = data if isinstance(data, Source) else model._read(data, reading(args))
        n_rows = 0  # in all batches so far
        for batch in read_batches(source, "reading"):
            position = row_number - 1 - batch.first_row  # of the row in the batch; --row counts from 1
            if 0 <= position < batch.n_rows:
                return batch.slice(position, position + 1)
            n_rows = batch.first_row + batch.n_rows
        raise errors.BadSetting(
            f"row {row_number:,} does not exist: rows are numbered from 1 to {n_rows:,}.",
            setting="row",
            value=row_number,
        )
