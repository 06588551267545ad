"""Files by their endings: delimited text, Parquet, NDJSON, ARFF, documents; zip archives, folders and patterns.

The content is checked against the name.
"""

from __future__ import annotations

import difflib
import glob
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from banbury import errors
from banbury.reading.archives import ZIP, table_in
from banbury.reading.arff import from_arff
from banbury.reading.arrow import arrow, kind_of_type
from banbury.reading.batches import Source
from banbury.reading.blocks import COMPRESSED, ending, head_of, reason, refuse_zero_bytes
from banbury.reading.delimited import from_csv
from banbury.reading.documents import HTML, MAIL, beginning, form_of, from_files, from_folder, label_files
from banbury.reading.lines import from_lines
from banbury.reading.options import (
    FILE_SETTINGS,
    FOLDER_SETTINGS,
    TABLE_SETTINGS,
    TEXT_TABLE_SETTINGS,
    Options,
    header_columns,
)
from banbury.reading.tables import from_arrow_batches

DELIMITED = (".csv", ".tsv", ".txt", ".data", ".dat", ".tab")
MAYBE_TEXTS = (".txt", ".data", ".dat")  # endings of tables that other files have, too
PARQUET = (".parquet", ".pq")
LINES = (".ndjson", ".jsonl", ".json")
PARQUET_ROWS = 131072  # rows of a batch
LONGEST_PATH = 4096  # characters; longer strings are texts
SNIFFED = 65536  # bytes that show what a file contains
ARFF = (".arff",)
SVMLIGHT = (".libsvm", ".svmlight", ".svm")  # refused by name
TABLES = (*DELIMITED, *PARQUET, *LINES, *ARFF, *SVMLIGHT)
ENDINGS = ((DELIMITED, "CSV"), (PARQUET, "Parquet"), (LINES, "JSON"), (ARFF, "ARFF"))
MARKUP = (".sgm", ".sgml", ".xml")
_MARKUP = re.compile(rb"\s*<(?:!DOCTYPE|\?xml|!--)", re.IGNORECASE)
_RELATION = re.compile(rb"(?:[ \t\r]*(?:%.*)?\n)*+[ \t]*@relation\b", re.IGNORECASE)
_NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_SVMLIGHT = re.compile(
    rb"(?:[ \t]*(?:#.*)?\r?\n)*[ \t]*" + _NUMBER + rb"(?:[ \t]+qid:\d+)?[ \t]+\d+:" + _NUMBER + rb"(?:\s|\Z)"
)

CONTENTS = (
    (b"PAR1", "Parquet", "Rename it to end in .parquet, or extract it from its archive."),
    (b"\x1f\x8b", "gzip", "Rename it to end in .gz."),
    (ZIP, "a zip archive or a spreadsheet", "Rename it to end in .zip, or save the sheet as CSV."),
    (b"\xff\xfe", "UTF-16 text", "Save it as UTF-8."),
    (b"\xfe\xff", "UTF-16 text", "Save it as UTF-8."),
)


def has_known_ending(path: str) -> bool:
    """Whether the file name says what kind of file it is."""
    return ending(path) in (*TABLES, *MAIL, *HTML, ".zip") or path.lower().endswith(COMPRESSED)


def are_paths(entries: Sequence[Any], options: Options) -> bool:
    """Whether all entries of a list are names of files or folders rather than texts. ``options``: may say that strings
    are texts.

    Every string must be a single word with a known file ending (so that a missing file is reported), the path of an
    existing file that has such an ending or contains a slash, or the path of an existing folder that ends in a slash.
    """

    strings_are_texts = options.are_texts()

    def is_path(entry: Any) -> bool:
        """Whether an entry names a file or folder; no string does if ``strings_are_texts``."""
        if not isinstance(entry, str) or strings_are_texts or len(entry) > LONGEST_PATH or "\n" in entry:
            return isinstance(entry, os.PathLike)
        if entry.endswith(os.sep):
            return os.path.isdir(os.path.expanduser(entry))
        looks_like_file = has_known_ending(entry) and len(entry.split()) == 1
        return looks_like_file or (
            (has_known_ending(entry) or os.sep in entry) and os.path.isfile(os.path.expanduser(entry))
        )

    return all(map(is_path, entries))


def from_path(path: str | os.PathLike[str], options: Options) -> Source | list[str]:
    """A source for the file or folder at ``path``, or for the files that it matches if it is a pattern. For a table in
    several files, their paths instead. ``options``: how to read it.
    """
    path = os.path.expanduser(os.fspath(path))
    if os.path.isdir(path):
        return from_folder(path, options)
    if (member_path := table_in(path, TABLES, COMPRESSED)) is not None:
        return from_table(member_path, options)
    if not os.path.exists(path):
        if not glob.has_magic(path):
            raise errors.missing_file(path, find_similar_file(path))
        paths = sorted(glob.glob(path, recursive=True))
        if not paths:
            raise errors.missing_file(path, [], "no file matches this pattern")
        return from_paths([file_path for file_path in paths if not os.path.isdir(file_path)] or paths, path, options)
    options = _recall(path, options)
    if not os.access(path, os.R_OK):
        raise errors.bad_file(path, "permission denied.")
    if not os.path.isfile(path):
        raise errors.bad_file(path, "it is not a regular file.")
    if os.path.getsize(path) == 0 and options.format == "auto":
        raise errors.bad_file(path, "it is empty.")
    if _are_documents(path, options):
        return from_files(label_files([path], options), path, options)
    return from_table(path, options)


def from_table(path: str, options: Options) -> Source:
    """A source for a table in a file or an archive at ``path``. Raises BadFile with advice if its content does not fit
    its name. ``options``: how to read it.
    """
    options.refuse(FOLDER_SETTINGS, f"files of texts, but {path} is a table")
    kind = kind_of_table(path)
    if kind == "CSV":
        options = options.recall(TABLE_SETTINGS)
    else:
        options.refuse(TEXT_TABLE_SETTINGS, f"CSV and similar files, but {path} is {kind}")
    if kind == "Parquet" and os.path.exists(path):
        return from_parquet(path, options)
    head = head_of(path)  # the first bytes
    if head[257:262] == b"ustar":  # where every tar archive says so
        raise errors.bad_file(path, "it is a tar archive. Unpack it with tar xf and read the file or folder inside it.")
    if _MARKUP.match(head) or ending(path) in MARKUP:
        raise errors.bad_file(
            path,
            "it contains markup (SGML or XML), not a table. Extract what you need into a table with one row per "
            "document, such as NDJSON with the text and its class, or into one folder of texts per class.",
        )
    for signature, content, advice in CONTENTS:  # first bytes, what they mean, and what to do
        if head.startswith(signature):
            raise errors.bad_file(path, f"it contains {content}, not {kind}. {advice}")
    refuse_zero_bytes(path, head)
    if kind == "CSV":
        return from_csv(path, options)
    return from_lines(path, options) if kind == "JSON" else from_arff(path, options)


def has_table_ending(path: str) -> bool:
    """Whether the file name says that it is a table; .txt, .data and .dat do not."""
    return ending(path) in TABLES and ending(path) not in MAYBE_TEXTS


def _recall(path: str, options: Options) -> Options:
    """The options, with those that are remembered for documents set, unless the file name says that this is a table."""
    return options if has_table_ending(path) else options.recall(FILE_SETTINGS)


def _are_documents(path: str, options: Options) -> bool:
    """Whether the file at ``path`` holds documents rather than a table: the options say so, it is mail or HTML, or the
    model has only a text column and the file has no header that names it.
    """
    if options.format != "auto" or options.class_from is not None or is_document(path):
        return True
    kinds = options.kinds or {}  # what the model needs in each column
    if header_columns(options.headers) and not has_known_ending(path):
        return True
    if has_known_ending(path) or options.has_table_settings():
        return False
    first_line = _begin(path).lstrip().partition(b"\n")[0]
    if list(kinds.values()) != ["text"] or first_line.startswith((b"{", b"PAR1")):
        return False
    names = {name.encode("utf-8", "surrogatepass") for name in kinds}
    return names.isdisjoint(field.strip(b' "\r') for field in re.split(rb"[,;\t|]", first_line))


def is_document(path: str) -> bool:
    """Whether the file at ``path`` is mail or HTML by its ending, or by its first bytes if the ending says nothing."""
    if has_known_ending(path):
        return ending(path) in MAIL + HTML
    return form_of(path, _begin(path)) != "text"


def _begin(path: str) -> bytes:
    """The first bytes of the file at ``path``; empty if it cannot be read."""
    try:
        return beginning(path, SNIFFED)[0]
    except (OSError, errors.BanburyError):
        return b""


def from_paths(paths: list[str], name: str | None, options: Options) -> Source | list[str]:
    """A source of documents if the first file is one; the paths themselves if they are tables or folders. ``name``: the
    pattern they matched, None if there is none; ``options``: how to read the files.
    """
    paths = [os.path.expanduser(path) for path in paths]
    options = _recall(paths[0], options)
    if os.path.isdir(paths[0]) or not _are_documents(paths[0], options):
        return paths
    return from_files(label_files(paths, options), name, options)


def find_similar_file(path: str) -> list[str]:
    """The path of the most similar file in the folder of ``path``, as a list of at most one. The names must resemble
    apart from their endings.
    """
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    stem = name.partition(".")[0]
    candidates = [
        candidate
        for candidate in names
        if difflib.SequenceMatcher(None, stem, candidate.partition(".")[0]).ratio() >= 0.7
    ]
    return [os.path.join(folder, candidate) for candidate in difflib.get_close_matches(name, candidates, n=1)]


def kind_of_table(path: str) -> str:
    """The kind of table in the file at ``path``: Parquet, JSON, ARFF or CSV. Decided by its ending or else its first
    bytes; raises BadFile for LIBSVM.
    """
    for endings, kind in ENDINGS:
        if ending(path) in endings:
            return kind
    head = b"" if ending(path) in SVMLIGHT else head_of(path)  # the first bytes
    if ending(path) in SVMLIGHT or _SVMLIGHT.match(head):
        raise errors.bad_file(
            path,
            "it is a LIBSVM or SVMlight file (rows of index:value pairs), which Banbury does not read. Read it "
            "with scikit-learn: X, y = sklearn.datasets.load_svmlight_file(path), then bb.count(X, y).",
        )
    start = head[:64].lstrip()
    if start.startswith((b"PAR1", b"{")):
        return "Parquet" if start.startswith(b"PAR1") else "JSON"
    return "ARFF" if _RELATION.match(head) else "CSV"


def from_parquet(path: str, options: Options) -> Source:
    """A source for the Parquet file at ``path``. Strings stored with a dictionary are read as codes, except those of
    text columns. ``options``: how to read it.
    """
    pa = arrow()
    pq = arrow("parquet")

    def reader(dictionary_columns: list[str] | None = None) -> Any:
        """Opens the file at ``path`` with pyarrow. ``dictionary_columns``: names of columns of texts to read as
        dictionary arrays.
        """
        try:
            return pq.ParquetFile(path, read_dictionary=dictionary_columns, memory_map=True)
        except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
            raise errors.bad_file(path, f"it is not a Parquet file, or it is damaged ({reason(error)}).") from None

    with reader() as file:
        schema = file.schema_arrow
        n_rows = file.metadata.num_rows
    stored_names = schema.names
    new_names = options.columns  # those that the user gave to the columns, or None
    kinds = options.kinds or {}  # what the model needs in each column
    names = stored_names if new_names is None or len(new_names) != len(stored_names) else new_names
    string_columns = [field.name for field in schema if kind_of_type(field.type) == "string"]
    text_columns = {
        stored_name for stored_name, name in zip(stored_names, names, strict=True) if kinds.get(name) == "text"
    }
    # Columns that the file itself declares as dictionaries.
    categorical_positions = [
        position for position, field in enumerate(schema) if arrow("types").is_dictionary(field.type)
    ]

    def start() -> Iterator[Any]:
        """Yields the record batches of the file, from the beginning. Strings (``string_columns``) are read as
        dictionary arrays, except in ``text_columns``.
        """
        try:
            with reader([name for name in string_columns if name not in text_columns]) as file:
                yield from file.iter_batches(batch_size=options.batch_rows or PARQUET_ROWS)
        except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
            raise errors.bad_file(path, f"it is damaged ({reason(error)}).") from None

    return from_arrow_batches(schema, start, new_names, source=path, declared=categorical_positions, n_rows=n_rows)
