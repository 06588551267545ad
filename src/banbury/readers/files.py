"""Files by their endings: delimited text, Parquet, newline-delimited JSON. The content is checked against the name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from banbury import errors
from banbury.readers.arrow import arrow, kind_of_type
from banbury.readers.batches import Source
from banbury.readers.blocks import head_of, reason
from banbury.readers.delimited import from_delimited
from banbury.readers.lines import from_lines
from banbury.readers.tables import from_arrow_batches

DELIMITED = (".csv", ".tsv", ".txt", ".data", ".dat", ".tab")
PARQUET = (".parquet", ".pq")
LINES = (".ndjson", ".jsonl", ".json")
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
PARQUET_ROWS = 131072

CONTENTS = (
    (b"PAR1", "Parquet", "Rename it to end in .parquet."),
    (b"\x1f\x8b", "gzip", "Rename it to end in .gz."),
    (b"PK\x03\x04", "a zip archive or a spreadsheet", "Unpack it, or save the sheet as CSV."),
    (b"\xff\xfe", "UTF-16 text", "Save it as UTF-8."),
    (b"\xfe\xff", "UTF-16 text", "Save it as UTF-8."),
)


def known_ending(path: str) -> bool:
    """Whether the name says what the file holds."""
    return _ending(path) in DELIMITED + PARQUET + LINES or path.lower().endswith(COMPRESSED)


def _ending(path: str) -> str:
    stem, ending = os.path.splitext(path.lower())
    return os.path.splitext(stem)[1] if ending in COMPRESSED else ending


def from_path(
    path: str | os.PathLike[str],
    names: Sequence[str] | None,
    delimiter: str | None,
    missing_values: Sequence[str],
    kinds: Mapping[str, str] | None,
    batch_rows: int | None,
) -> Source:
    """The table in a file."""
    path = os.path.expanduser(os.fspath(path))
    _check_readable(path)
    kind = _kind(path)
    if kind == "Parquet":
        return from_parquet(path, names, batch_rows)
    _check_text(path, kind)
    if kind == "JSON":
        return from_lines(path, names, kinds)
    return from_delimited(path, names, delimiter, missing_values, kinds)


def _check_readable(path: str) -> None:
    if os.path.isdir(path):
        raise errors.bad_file(path, "it is a folder. Give one of its files, or a list of them.")
    if not os.path.exists(path):
        raise errors.missing_file(path, _near(path))
    if not os.access(path, os.R_OK):
        raise errors.bad_file(path, "you have no permission to read it.")
    if os.path.getsize(path) == 0:
        raise errors.bad_file(path, "it is empty.")


def _near(path: str) -> list[str]:
    """The names in the same folder that are most like this one."""
    folder, name = os.path.split(path)
    try:
        there = os.listdir(folder or ".")
    except OSError:
        return []
    return [os.path.join(folder, other) for other in difflib.get_close_matches(name, there, n=1)]


def _kind(path: str) -> str:
    """Parquet, JSON or CSV: by the ending, or for an ending that says nothing by what the file begins with."""
    ending = _ending(path)
    for endings, kind in ((DELIMITED, "CSV"), (PARQUET, "Parquet"), (LINES, "JSON")):
        if ending in endings:
            return kind
    begin = head_of(path)[:64].lstrip()
    return "Parquet" if begin.startswith(b"PAR1") else "JSON" if begin.startswith(b"{") else "CSV"


def _check_text(path: str, kind: str) -> None:
    head = head_of(path)
    for begin, content, advice in CONTENTS:
        if head.startswith(begin):
            raise errors.bad_file(path, f"it holds {content}, not {kind}. {advice}")
    if b"\0" in head:
        raise errors.bad_file(path, f"it is not text (byte {head.index(0):,} is zero), so it is no {kind} file.")


def from_parquet(path: str, names: Sequence[str] | None, batch_rows: int | None) -> Source:
    """A Parquet file, some rows at a time. Texts are read as the codes that they are stored as."""
    pq = arrow("parquet")

    def reader(texts: list[str] | None = None) -> Any:
        try:
            return pq.ParquetFile(path, read_dictionary=texts, memory_map=True)
        except (OSError, arrow().ArrowException) as error:
            raise errors.bad_file(path, f"it is no Parquet file, or damaged ({reason(error)}).") from None

    schema = reader().schema_arrow
    texts = [field.name for field in schema if kind_of_type(field.type) == "string"]
    declared = [j for j, field in enumerate(schema) if arrow("types").is_dictionary(field.type)]

    def start() -> Iterator[Any]:
        try:
            with reader(texts) as file:
                yield from file.iter_batches(batch_size=batch_rows or PARQUET_ROWS)
        except (OSError, arrow().ArrowException) as error:
            raise errors.bad_file(path, f"it is damaged ({reason(error)}).") from None

    return from_arrow_batches(schema, start, names, source=path, declared=declared)
