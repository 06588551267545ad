"""Zip archives: a table in one is read where it lies, under the name ``archive.zip/table.csv``."""

from __future__ import annotations

import os
import zipfile
from typing import Any

from banbury import errors

ZIP = b"PK\x03\x04"
OFFICE = ("[Content_Types].xml", "mimetype")  # what an office document has, which is a zip archive, too
LISTED = 12


def split_archive_path(path: str) -> tuple[str, str] | None:
    """The archive and the member that a path leads to, the member empty if it is the archive itself; None if it is neither.

    >>> split_archive_path("tables/no.zip/a.csv") is None  # there is no such archive
    True
    """
    if os.path.isfile(path):
        return (path, "") if path.lower().endswith(".zip") else None
    at = path.lower().find(f".zip{os.sep}")
    while at >= 0:
        archive = path[: at + 4]
        member = path[at + 5 :]
        if os.path.isfile(archive):
            return archive, member.replace(os.sep, "/")
        at = path.lower().find(f".zip{os.sep}", at + 1)
    return None


def table_in(path: str, endings: tuple[str, ...], packed: tuple[str, ...]) -> str | None:
    """The path of the table in an archive: the one that is named, or the only one; None where the path leads to no archive.

    ``endings`` are those of tables, ``packed`` those that tell how one is compressed.
    """
    place = split_archive_path(path)
    if place is None:
        return None
    archive, member = place
    with _open_archive(archive) as file:
        names = [member_info.filename for member_info in file.infolist() if not member_info.is_dir()]
    names = [name for name in names if not name.startswith("__MACOSX/") and not os.path.basename(name).startswith(".")]
    if any(name in OFFICE for name in names):
        raise errors.bad_file(archive, "it is an office document. Save the sheet as CSV.")
    if member:
        if member not in names:
            near = errors.did_you_mean(member, names)
            raise errors.bad_file(
                path, f"{archive} does not contain {member!r}.{near} It contains {errors.listed(names, LISTED)}."
            )
        return path
    split = [(name, *os.path.splitext(name.lower())) for name in names]
    tables = [name for name, stem, last in split if (os.path.splitext(stem)[1] if last in packed else last) in endings]
    tables = tables or names
    if len(tables) != 1:
        what = f"the {len(tables):,} files {errors.listed(tables, LISTED)}" if tables else "no file"
        advice = f" Name one: {os.path.join(archive, tables[0])}" if tables else ""
        raise errors.bad_file(archive, f"it contains {what}, but one table is needed.{advice}")
    return os.path.join(archive, tables[0])


def _open_archive(archive: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(archive)
    except (zipfile.BadZipFile, OSError, ValueError) as problem:
        raise errors.bad_file(archive, f"it is not a zip archive, or it is damaged ({problem}).") from None


def open_member(archive: str, member: str) -> tuple[Any, int]:
    """A member of an archive as a stream of bytes, and how many bytes it takes there."""
    file = _open_archive(archive)
    try:
        with file:  # the archive itself is closed with its last member
            return file.open(member), file.getinfo(member).compress_size
    except (RuntimeError, NotImplementedError, zipfile.BadZipFile, KeyError) as problem:
        raise errors.bad_file(f"{archive}/{member}", f"it cannot be unpacked ({problem}).") from None
