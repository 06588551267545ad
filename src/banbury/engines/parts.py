"""Divides local data into parts for workers: files, a sequence of tables, or one table cut into pieces."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from typing import Any

from banbury import errors
from banbury.engines.counting import filesystem_of
from banbury.reading import read
from banbury.reading.batches import Batch
from banbury.reading.files import find_similar_file


def parts_of(data: Any, partitions: int) -> tuple[Sequence[Any], Sequence[str] | None]:
    """Returns the parts of data in order, and the file names if they are files, otherwise None. Raises an error without
    parts.

    Each file of a path, a pattern or a list of them is a part; so is each table of a list, tuple or iterator. Any other
    table is cut into ``partitions`` parts.
    """
    if isinstance(data, (str, os.PathLike)):
        files = matching_files(os.fspath(data))
        return files, files
    if hasattr(data, "__next__"):
        data = list(data)
    if not isinstance(data, (list, tuple)):
        return split_table(data, partitions), None
    if not data:
        raise errors.empty_data(None, "there are no parts")
    if all(isinstance(part_or_path, (str, os.PathLike)) and _is_file(os.fspath(part_or_path)) for part_or_path in data):
        files = [file for part_or_path in data for file in matching_files(os.fspath(part_or_path))]
        if len(set(files)) < len(files):
            raise errors.part_twice(file for file in set(files) if files.count(file) > 1)
        return files, files
    # A list of texts, or of records of single values, is one table. A list of tables has columns in each entry.
    first_values = data[0].values() if isinstance(data[0], Mapping) else [()]
    are_columns = any(hasattr(value, "__len__") and not isinstance(value, (str, bytes)) for value in first_values)
    if isinstance(data[0], (str, bytes)) or not are_columns:
        size = -(-len(data) // partitions)  # rows in a part, rounded up
        return [data[start : start + size] for start in range(0, len(data), size)], None
    return data, None


def _is_file(path: str) -> bool:
    """Whether a path is an address, a pattern or an existing file."""
    return "://" in path or glob.has_magic(path) or os.path.isfile(os.path.expanduser(path))


def matching_files(path: str) -> list[str]:
    """Returns the files that a path or pattern stands for, in order; addresses such as s3://… are looked up in their
    file system. Raises an error if there is none.
    """
    if "://" in path:
        filesystem, remote_path = filesystem_of(path)
        protocol = path.partition("://")[0]
        try:
            paths = sorted(filesystem.glob(remote_path)) if glob.has_magic(remote_path) else [remote_path]
        except OSError as problem:
            raise errors.bad_file(path, str(problem)) from None
        files = [file_path if "://" in file_path else f"{protocol}://{file_path}" for file_path in paths]
    else:
        path = os.path.expanduser(path)
        files = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) and not os.path.exists(path) else [path]
        if files == [path] and not os.path.isfile(path):
            allowed = "a file, a pattern such as 'parts/*.parquet', or a list of these, when engine= is given"
            is_folder = os.path.isdir(path)
            raise (
                errors.bad_setting("data", path, allowed)
                if is_folder
                else errors.missing_file(path, find_similar_file(path))
            )
    if not files:
        raise errors.missing_file(path, [], "no file matches this pattern")
    return files


def split_table(data: Any, partitions: int) -> list[Batch]:
    """Returns ``data``, a table in memory, cut into about ``partitions`` batches of similar size."""
    batches = list(read(data))
    n_rows = sum(batch.n_rows for batch in batches)
    size = max(-(-n_rows // partitions), 1)  # rows in a part, rounded up
    return [batch.slice(start, start + size) for batch in batches for start in range(0, max(batch.n_rows, 1), size)]
