"""Zip archives: a table in one is read where it lies, under the name ``archive.zip/table.csv``."""

from __future__ import annotations

import os
import zipfile
from typing import Any

from banbury import errors

ZIP = b"PK\x03\x04"
OFFICE = ("[Content_Types].xml", "mimetype")  # what an office document has, which is a zip archive, too
LISTED = 12  # names of files in an error message


def split_archive_path(path: str) -> tuple[str, str] | None:
    """The paths of the archive and of the member in it to which a path leads; the member is empty for the archive
    itself. None if no archive is on the path.

    >>> split_archive_path("tables/no.zip/a.csv") is None  # there is no such archive
    True
    """
    if os.path.isfile(path):
        return (path, "") if path.lower().endswith(".zip") else None
    suffix_start = path.lower().find(f".zip{os.sep}")
    while suffix_start >= 0:
        archive = path[: suffix_start + 4]
        member = path[suffix_start + 5 :]
        if os.path.isfile(archive):
            return archive, member.replace(os.sep, "/")
        suffix_start = path.lower().find(f".zip{os.sep}", suffix_start + 1)
    return None


def table_in(path: str, endings: tuple[str, ...], compressed: tuple[str, ...]) -> str | None:
    """The path of a table in a zip archive, such as ``archive.zip/table.csv``: the named member, or the only table.
    None if the path does not lead to an archive. Raises BadFile if there is no such member, or not exactly one table.

    ``endings``: file extensions of tables; ``compressed``: those of compressed files.
    """
    archive_and_member = split_archive_path(path)
    if archive_and_member is None:
        return None
    archive, member = archive_and_member
    with _open_archive(archive) as file:
        names = [member_info.filename for member_info in file.infolist() if not member_info.is_dir()]
    names = [name for name in names if not name.startswith("__MACOSX/") and not os.path.basename(name).startswith(".")]
    if any(name in OFFICE for name in names):
        raise errors.bad_file(archive, "it is an office document. Save the sheet as CSV.")
    if member:
        if member not in names:
            suggestion = errors.did_you_mean(member, names)
            raise errors.bad_file(
                path, f"{archive} does not contain {member!r}.{suggestion} It contains {errors.listed(names, LISTED)}."
            )
        return path
    split_names = [(name, *os.path.splitext(name.lower())) for name in names]  # name, stem, suffix
    tables = [
        name
        for name, stem, suffix in split_names
        if (os.path.splitext(stem)[1] if suffix in compressed else suffix) in endings
    ]
    tables = tables or names  # a single file is taken for a table, whatever its ending
    if len(tables) != 1:
        contents = f"the {len(tables):,} files {errors.listed(tables, LISTED)}" if tables else "no file"
        advice = f" Name one: {os.path.join(archive, tables[0])}" if tables else ""
        raise errors.bad_file(archive, f"it contains {contents}, but one table is needed.{advice}")
    return os.path.join(archive, tables[0])


def _open_archive(archive: str) -> zipfile.ZipFile:
    """Opens a zip archive. Raises BadFile if that fails."""
    try:
        return zipfile.ZipFile(archive)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise errors.bad_file(archive, f"it is not a zip archive, or it is damaged ({error}).") from None


def open_member(archive: str, member: str) -> tuple[Any, int]:
    """A member of an archive as a stream of bytes, and its compressed size in bytes. ``archive``: the path of the zip
    file; ``member``: the path in it.
    """
    zip_file = _open_archive(archive)
    try:
        with zip_file:  # it is closed with its last member
            return zip_file.open(member), zip_file.getinfo(member).compress_size
    except (RuntimeError, NotImplementedError, zipfile.BadZipFile, KeyError) as error:
        raise errors.bad_file(f"{archive}/{member}", f"it cannot be unpacked ({error}).") from None
