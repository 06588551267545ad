"""Parts of data that are given here, to be worked on elsewhere: files, tables one after the other, or a table that is cut."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from typing import Any

from banbury import errors
from banbury.engines.counting import filesystem_of
from banbury.reading import read
from banbury.reading.batches import Batch
from banbury.reading.files import near


def parts_of(data: Any, partitions: int) -> tuple[Sequence[Any], Sequence[str] | None]:
    """The parts, and their names where they are files.

    A path or pattern, or a list of them, is a part per file. A list, tuple or iterator of tables is a part per table. Any other
    table is cut into so many parts.
    """
    if isinstance(data, (str, os.PathLike)):
        files = matching(os.fspath(data))
        return files, files
    if hasattr(data, "__next__"):
        data = list(data)
    if not isinstance(data, (list, tuple)):
        return split_table(data, partitions), None
    if not data:
        raise errors.empty_data(None, "there are no parts")
    if all(isinstance(part, (str, os.PathLike)) and _is_file(os.fspath(part)) for part in data):
        files = [file for part in data for file in matching(os.fspath(part))]
        if len(set(files)) < len(files):
            raise errors.part_twice(file for file in set(files) if files.count(file) > 1)
        return files, files
    cells = data[0].values() if isinstance(data[0], Mapping) else [()]
    columns = any(hasattr(column, "__len__") and not isinstance(column, (str, bytes)) for column in cells)
    if isinstance(data[0], (str, bytes)) or not columns:
        size = -(-len(data) // partitions)
        return [data[at : at + size] for at in range(0, len(data), size)], None
    return data, None


def _is_file(path: str) -> bool:
    return "://" in path or glob.has_magic(path) or os.path.isfile(os.path.expanduser(path))


def matching(path: str) -> list[str]:
    """The files that a path or pattern stands for, in order; ``s3://…`` and the like are asked of their file system."""
    if "://" in path:
        filesystem, inside = filesystem_of(path)
        protocol = path.partition("://")[0]
        try:
            paths = sorted(filesystem.glob(inside)) if glob.has_magic(inside) else [inside]
        except OSError as problem:
            raise errors.bad_file(path, str(problem)) from None
        files = [file_path if "://" in file_path else f"{protocol}://{file_path}" for file_path in paths]
    else:
        path = os.path.expanduser(path)
        files = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) and not os.path.exists(path) else [path]
        if files == [path] and not os.path.isfile(path):
            allowed = "a file, a pattern such as 'parts/*.parquet', or a list of these, when engine= is given"
            folder = os.path.isdir(path)
            raise errors.bad_setting("data", path, allowed) if folder else errors.missing_file(path, near(path))
    if not files:
        raise errors.missing_file(path, [], "no file matches this pattern")
    return files


def split_table(data: Any, partitions: int) -> list[Batch]:
    """A table in memory in so many parts of about as many rows."""
    batches = list(read(data))
    n_rows = sum(batch.n_rows for batch in batches)
    size = max(-(-n_rows // partitions), 1)
    return [batch.slice(at, at + size) for batch in batches for at in range(0, max(batch.n_rows, 1), size)]
