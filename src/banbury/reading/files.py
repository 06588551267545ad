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
from banbury.reading.options import FILE_SETTINGS, OF_FOLDERS, OF_TEXT_TABLES, TABLE_SETTINGS, Options, header_columns
from banbury.reading.tables import from_arrow_batches

DELIMITED = (".csv", ".tsv", ".txt", ".data", ".dat", ".tab")
MAYBE_TEXTS = (".txt", ".data", ".dat")  # endings of tables that other files have, too
PARQUET = (".parquet", ".pq")
LINES = (".ndjson", ".jsonl", ".json")
PARQUET_ROWS = 131072
LONGEST_PATH = 4096
SNIFFED = 65536
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
    """Whether the name says what the file holds."""
    return ending(path) in (*TABLES, *MAIL, *HTML, ".zip") or path.lower().endswith(COMPRESSED)


def are_paths(texts: Sequence[Any], options: Options) -> bool:
    """Whether a list names files or folders rather than being one of texts.

    Each entry must be a single word that ends as files do (so that one that is not there is missed), or the path of a file
    that is there and ends so or has a folder in it, or that of a folder with a slash at the end.
    """

    texts_only = options.are_texts()

    def is_path(text: Any) -> bool:
        if not isinstance(text, str) or texts_only or len(text) > LONGEST_PATH or "\n" in text:
            return isinstance(text, os.PathLike)
        if text.endswith(os.sep):
            return os.path.isdir(os.path.expanduser(text))
        word = has_known_ending(text) and len(text.split()) == 1
        return word or ((has_known_ending(text) or os.sep in text) and os.path.isfile(os.path.expanduser(text)))

    return all(map(is_path, texts))


def from_path(path: str | os.PathLike[str], options: Options) -> Source | list[str]:
    """What is in a file, in a folder, or in the files that a pattern matches; the paths if that is a table in parts."""
    path = os.path.expanduser(os.fspath(path))
    if os.path.isdir(path):
        return from_folder(path, options)
    if (inside := table_in(path, TABLES, COMPRESSED)) is not None:
        return from_table(inside, options)
    if not os.path.exists(path):
        if not glob.has_magic(path):
            raise errors.missing_file(path, near(path))
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
    """A table in a file, or in an archive."""
    options.refuse(OF_FOLDERS, f"files of texts, but {path} is a table")
    kind = kind_of_table(path)
    if kind == "CSV":
        options = options.recall(TABLE_SETTINGS)
    else:
        options.refuse(OF_TEXT_TABLES, f"CSV and similar files, but {path} is {kind}")
    if kind == "Parquet" and os.path.exists(path):
        return from_parquet(path, options)
    head = head_of(path)
    if head[257:262] == b"ustar":
        text = "it is a tar archive. Unpack it with tar xf and read the file or folder inside it."
        raise errors.bad_file(path, text)
    if _MARKUP.match(head) or ending(path) in MARKUP:
        text = "it contains markup (SGML or XML), not a table. Extract what you need into a table with one row per "
        raise errors.bad_file(
            path, f"{text}document, such as NDJSON with the text and its class, or into one folder of texts per class."
        )
    for begin, content, advice in CONTENTS:
        if head.startswith(begin):
            raise errors.bad_file(path, f"it contains {content}, not {kind}. {advice}")
    refuse_zero_bytes(path, head)
    if kind == "CSV":
        return from_csv(path, options)
    return from_lines(path, options) if kind == "JSON" else from_arff(path, options)


def has_table_ending(path: str) -> bool:
    """Whether the name says that a file is a table; of plain text it does not."""
    return ending(path) in TABLES and ending(path) not in MAYBE_TEXTS


def _recall(path: str, options: Options) -> Options:
    """The options with how documents were read, unless the name says that this is a table."""
    return options if has_table_ending(path) else options.recall(FILE_SETTINGS)


def _are_documents(path: str, options: Options) -> bool:
    """Whether a file holds documents: said so, or mail or HTML, or, to a model of a column of text alone, one text."""
    if options.format != "auto" or options.class_from is not None or is_document(path):
        return True
    kinds = options.kinds or {}
    if header_columns(options.headers) and not has_known_ending(path):
        return True
    if has_known_ending(path) or options.are_of_table():
        return False
    header = _begin(path).lstrip().partition(b"\n")[0]
    if list(kinds.values()) != ["text"] or header.startswith((b"{", b"PAR1")):
        return False
    names = {name.encode("utf-8", "surrogatepass") for name in kinds}
    return names.isdisjoint(field.strip(b' "\r') for field in re.split(rb"[,;\t|]", header))


def is_document(path: str) -> bool:
    """Whether a file is mail or HTML, by its ending; if that says nothing, by what the file begins with."""
    if has_known_ending(path):
        return ending(path) in MAIL + HTML
    return form_of(path, _begin(path)) != "text"


def _begin(path: str) -> bytes:
    """What a file begins with; nothing if it cannot be read."""
    try:
        return beginning(path, SNIFFED)[0]
    except (OSError, errors.BanburyError):
        return b""


def from_paths(paths: list[str], name: str | None, options: Options) -> Source | list[str]:
    """Documents, if the first of the files is one; the paths themselves if they are tables, or folders."""
    paths = [os.path.expanduser(path) for path in paths]
    options = _recall(paths[0], options)
    if os.path.isdir(paths[0]) or not _are_documents(paths[0], options):
        return paths
    return from_files(label_files(paths, options), name, options)


def near(path: str) -> list[str]:
    """The names in the same folder that are most like this one, and not in their ending alone."""
    folder, name = os.path.split(path)
    try:
        there = os.listdir(folder or ".")
    except OSError:
        return []
    stems = (difflib.SequenceMatcher(None, name.partition(".")[0], other.partition(".")[0]) for other in there)
    like = [other for other, stem in zip(there, stems, strict=True) if stem.ratio() >= 0.7]
    return [os.path.join(folder, other) for other in difflib.get_close_matches(name, like, n=1)]


def kind_of_table(path: str) -> str:
    """Parquet, JSON, ARFF or CSV: by the ending, or for an ending that says nothing by what the file begins with."""
    for endings, kind in ENDINGS:
        if ending(path) in endings:
            return kind
    head = b"" if ending(path) in SVMLIGHT else head_of(path)
    if ending(path) in SVMLIGHT or _SVMLIGHT.match(head):
        text = "it is a LIBSVM or SVMlight file (rows of index:value pairs), which Banbury does not read. Read it "
        text += "with scikit-learn: X, y = sklearn.datasets.load_svmlight_file(path), then bb.count(X, y)."
        raise errors.bad_file(path, text)
    begin = head[:64].lstrip()
    if begin.startswith((b"PAR1", b"{")):
        return "Parquet" if begin.startswith(b"PAR1") else "JSON"
    return "ARFF" if _RELATION.match(head) else "CSV"


def from_parquet(path: str, options: Options) -> Source:
    """A Parquet file, some rows at a time. Strings are read as the codes that they are stored as, but for texts."""
    pa = arrow()
    pq = arrow("parquet")

    def reader(coded: list[str] | None = None) -> Any:
        try:
            return pq.ParquetFile(path, read_dictionary=coded, memory_map=True)
        except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
            raise errors.bad_file(path, f"it is not a Parquet file, or it is damaged ({reason(error)}).") from None

    with reader() as file:
        schema = file.schema_arrow
        n_rows = file.metadata.num_rows
    stored_names = schema.names
    named = options.columns
    kinds = options.kinds or {}
    names = stored_names if named is None or len(named) != len(stored_names) else named
    strings = [field.name for field in schema if kind_of_type(field.type) == "string"]
    texts = {mine for mine, name in zip(stored_names, names, strict=True) if kinds.get(name) == "text"}
    declared = [j for j, field in enumerate(schema) if arrow("types").is_dictionary(field.type)]

    def start() -> Iterator[Any]:
        try:
            with reader([name for name in strings if name not in texts]) as file:
                yield from file.iter_batches(batch_size=options.batch_rows or PARQUET_ROWS)
        except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
            raise errors.bad_file(path, f"it is damaged ({reason(error)}).") from None

    return from_arrow_batches(schema, start, named, source=path, declared=declared, n_rows=n_rows)
