"""Reads and writes safetensors files: named arrays and one JSON text, with checksums of the header and of every array.

``docs/reference/format.md`` describes the format. Reading maps the file into memory and trusts nothing in it.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from banbury import _core, errors
from banbury.files.checking import Arrays, JsonObject, check
from banbury.reading import n_threads
from banbury.reading.files import find_similar_file
from banbury.reading.lines import refuse_duplicate_names

try:
    import fcntl
except ImportError:  # Windows, which lets no open file be removed
    fcntl = None  # type: ignore[assignment]

O_BINARY = getattr(os, "O_BINARY", 0)
LONGEST_HEADER = 100_000_000  # bytes; safetensors' own limit
MOST_DIMENSIONS = 4  # of an array
LARGEST = 2**40  # largest dimension, or number of bytes
# The names of types in the header, and NumPy's.
FORMAT_OF_TYPE = {"U8": "u1", "U32": "<u4", "I64": "<i8", "F32": "<f4", "F64": "<f8"}
DTYPES = {name: np.dtype(kind) for name, kind in FORMAT_OF_TYPE.items()}
TYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
CHECKSUM_MARK = b'"checksum":"'  # occurs only once in a header, since quotes inside texts are escaped
NO_CHECKSUM = b"0" * 16  # replaces the header's checksum while that is computed
FORMAT_NAME = "banbury-1"  # the first entry of the metadata, which every file of this format has at its ninth byte
BEGINNING = re.compile(rb'\{"__metadata__":\{"banbury(?:-(\d{1,9}))?":')
NOT_OUR_FILE = "it is not a Banbury file, or its beginning is damaged"


def checksum(content: Any) -> str:
    """Returns the checksum of the content, which is bytes or an array, as 16 hexadecimal digits."""
    # One byte per entry; ``frombuffer`` takes no empty buffer.
    raw = np.frombuffer(content, dtype=np.uint8) if memoryview(content).nbytes else np.zeros(0, dtype=np.uint8)
    return f"{_core.checksum(raw, n_threads(threads=None)):016x}"


# Writing --------------------------------------------------------------------------------------------------------------


def write(target: Path, about: JsonObject, arrays: Arrays) -> None:
    """Writes the file ``target`` completely or not at all. ``about`` is its JSON object, and ``arrays`` are its arrays
    by name.
    """
    buffers = contents(target, about, arrays)
    with replacing(target) as file:
        for buffer in buffers:
            file.write(buffer)


def contents(target: Path, about: JsonObject, arrays: Arrays) -> list[Any]:
    """Returns the contents of the file as bytes and buffers: its header, and then the arrays. ``target`` is its name in
    errors, ``about`` its JSON object, and ``arrays`` are its arrays by name.
    """
    # Large elements come first, so that each array is aligned.
    sorted_arrays = {name: arrays[name] for name in sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))}
    array_bytes = [array.tobytes() if array.size == 0 else array.data for array in sorted_arrays.values()]
    return [_header(target, about, sorted_arrays), *array_bytes]


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """Opens a temporary file, which is yielded, and replaces the target with it when it is complete. If anything fails,
    the target does not change.
    """
    temporary_path: Path | None = None
    try:
        real_path = Path(os.path.realpath(target))  # a link stays; its target is replaced
        if real_path.exists() and not real_path.is_file():
            raise errors.unwritable_file(target, "it is a folder" if real_path.is_dir() else "it is not a regular file")
        _remove_leftovers(real_path)
        temporary_path, file = _create_temporary(real_path)
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if real_path.exists():
                os.chmod(temporary_path, real_path.stat().st_mode)
            if fcntl is not None:  # Windows cannot move an open file
                os.replace(temporary_path, real_path)
        if fcntl is None:
            os.replace(temporary_path, real_path)
    except OSError as error:
        raise errors.unwritable_file(target, error.strerror or str(error)) from None
    except errors.BanburyError:
        raise
    except (UnicodeError, ValueError) as error:
        raise errors.bad_setting("path", str(target), f"the name of a file ({error})") from None
    finally:
        if temporary_path is not None:
            with suppress(OSError):  # it is gone if it has replaced the target
                os.unlink(temporary_path)


def _create_temporary(target: Path) -> tuple[Path, BinaryIO]:
    """Returns the path of a new temporary file next to the target, and the file, opened for writing and locked while it
    is open. Files without a lock are left over from saves that were killed.
    """
    while True:
        path = target.with_name(f"{target.name}{secrets.token_hex(nbytes=4)}.part")
        mode = 0o600 if target.exists() else 0o666  # minus the umask; at the end a replaced file's mode is kept
        file = open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | O_BINARY, mode), "wb")  # noqa: SIM115
        # Ours, if there are no locks here, or if nobody removed the file before it was locked.
        if _lock(file.fileno(), wait=True) is False or path.exists():
            return path, file
        file.close()  # another save took it for a leftover and removed it


def _remove_leftovers(target: Path) -> None:
    """Removes temporary files that killed saves to the same target left over; not those that are still being written."""
    pattern = re.compile(re.escape(target.name) + r"[a-z0-9_]{8}\.part")  # names of temporary files
    with suppress(OSError):
        for entry in os.scandir(target.parent):
            if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    handle = os.open(entry.path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
                    try:
                        if _lock(handle, wait=False):  # True: no save is writing it
                            os.unlink(entry.path)
                    finally:
                        os.close(handle)
                    if fcntl is None:  # no locks; Windows removes no open file
                        os.unlink(entry.path)


def _lock(handle: int, wait: bool) -> bool:
    """Locks an open file and returns whether that worked; False also if the platform has no locks. ``handle`` is the
    file's descriptor, and ``wait`` says whether to wait until nobody else has locked it.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _header(target: Path, about: JsonObject, arrays: Arrays) -> bytes:
    """Returns the beginning of a file: the length of the JSON text in 8 bytes, and the text, padded with spaces to a
    multiple of 8 bytes. The text describes the arrays in order, and has a checksum of itself and of each of them.
    ``target`` is the file's name in errors, and ``about`` the JSON object.
    """
    checksums = {name: checksum(array) for name, array in arrays.items()}
    try:
        metadata = {FORMAT_NAME: json.dumps({**about, "checksums": checksums}), "checksum": NO_CHECKSUM.decode()}
    except (TypeError, ValueError) as error:
        raise cannot_save(target, error) from None
    entries: JsonObject = {"__metadata__": metadata}
    start = 0  # bytes of the arrays before this one
    for name, array in arrays.items():
        offsets = [start, start + array.nbytes]
        entries[name] = {"dtype": TYPE_NAMES[array.dtype], "shape": list(array.shape), "data_offsets": offsets}
        start += array.nbytes
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST_HEADER:
        raise errors.BadFile(
            f"cannot write {target}: its names, classes and categories take {len(text):,} bytes, but the limit is "
            f"{LONGEST_HEADER:,}. Count columns of so many different values as text, or leave them out with "
            "features={...: None}.",
            path=str(target),
        )
    text = text.replace(CHECKSUM_MARK + NO_CHECKSUM, CHECKSUM_MARK + checksum(text).encode())
    return len(text).to_bytes(8, "little") + text


def cannot_save(path: Path, error: Exception) -> errors.BadFile:
    """Returns the error of something that JSON cannot hold, so that the file ``path`` cannot be written. ``error`` is
    the underlying error.
    """
    return errors.BadFile(
        f"cannot write {path}: one of its labels, names or settings cannot be saved ({error}). Make it a text, a number "
        "or a boolean.",
        path=str(path),
    )


# Reading --------------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """The position, type and shape of an array in a file."""

    start: int  # bytes after the header
    end: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def read(path: str | os.PathLike[str], verify: bool) -> tuple[JsonObject, Arrays]:
    """Returns the JSON object of the file at ``path`` and its arrays by name, which are views of the memory-mapped
    file. ``verify`` says whether to check the arrays' checksums.
    """
    return parse(path, _map_file(path), verify)


def parse(path: Any, content: mmap.mmap | bytes, verify: bool) -> tuple[JsonObject, Arrays]:
    """Returns the JSON object of a file's ``content`` and its arrays by name, which are views of it. ``path`` is its
    name in error messages, and ``verify`` says whether to check the arrays' checksums. Raises BadFile or DamagedFile
    for invalid contents.
    """
    length = int.from_bytes(content[:8], "little")  # bytes of the header, after these 8
    if not 2 <= length <= min(LONGEST_HEADER, len(content) - 8) or length % 8:
        raise errors.bad_file(path, NOT_OUR_FILE)
    head = content[8 : 8 + length]
    _check_format(path, head)
    try:
        entries = json.loads(head, object_pairs_hook=refuse_duplicate_names)  # one per array, by name
        metadata = entries.pop("__metadata__")
        about = json.loads(metadata[FORMAT_NAME], object_pairs_hook=refuse_duplicate_names)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise errors.bad_file(path, NOT_OUR_FILE) from None
    if not isinstance(about, dict):
        raise errors.bad_file(path, NOT_OUR_FILE)
    if not _is_sound(head, metadata.get("checksum")):
        raise errors.damaged_file(path, "its header has changed since it was written")
    try:
        place_by_name = {name: _place(entry) for name, entry in entries.items()}
        _check_gapless(list(place_by_name.values()), len(content) - 8 - length)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise errors.damaged_file(path, f"its arrays are not where they should be ({error})") from None
    arrays: Arrays = {}
    for name, (start, end, dtype, shape) in place_by_name.items():
        numbers = np.frombuffer(content, dtype, prod(shape), 8 + length + start) if start < end else np.zeros(0, dtype)
        arrays[name] = numbers.reshape(shape)
    if verify:
        checksums = about.get("checksums")
        if not isinstance(checksums, dict) or checksums.keys() != arrays.keys():
            raise errors.damaged_file(path, "the checksum of an array is missing")
        for name, array in arrays.items():
            if checksum(array) != checksums[name]:
                raise errors.damaged_file(path, f"the array {name!r} has changed since it was written")
    return about, arrays


def _check_format(path: Any, head: bytes) -> None:
    """Raises BadFile or UnknownFormat unless the header ``head`` is of this format. ``path`` is the file's name in
    errors.
    """
    beginning = BEGINNING.match(head)  # its group 1: the number of the format, None in an early version
    if beginning is None:
        raise errors.bad_file(path, NOT_OUR_FILE)
    if beginning[0].endswith(f'"{FORMAT_NAME}":'.encode()):
        return
    if beginning[1] is None:
        raise errors.UnknownFormat(
            f"cannot read {path}: an early version of Banbury wrote it, in a format that is no longer read. Train the model "
            "again and save it.",
            path=str(path),
        )
    number = int(beginning[1])
    raise errors.UnknownFormat(
        f"cannot read {path}: it has format {number}, and this version of Banbury reads format 1. Install the version that "
        "wrote it.",
        path=str(path),
        format=number,
    )


def _map_file(path: str | os.PathLike[str]) -> mmap.mmap | bytes:
    """Returns the contents of the file at ``path``, mapped into memory. Raises an error for anything but a regular
    file.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | O_BINARY)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise errors.bad_file(path, "it is not a regular file")
            # Length 0 maps all of it, but no empty file.
            return mmap.mmap(handle, 0, access=mmap.ACCESS_READ) if status.st_size else b""
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise errors.missing_file(path, find_similar_file(os.fsdecode(path)), otherwise="") from None
    except OSError as error:
        raise errors.bad_file(path, error.strerror or str(error)) from None
    except errors.BanburyError:
        raise
    except (TypeError, ValueError) as error:
        raise errors.bad_setting("path", path, f"the name of a file ({error})") from None


def _is_sound(head: bytes, stated: Any) -> bool:
    """Returns whether the header ``head`` contains the checksum ``stated`` and has it. It is computed with zeros in its
    place.
    """
    head_start, mark, head_end = head.partition(CHECKSUM_MARK)
    checksum_bytes = head_end[: len(NO_CHECKSUM)]
    head_end = head_end[len(NO_CHECKSUM) :]
    actual = checksum(head_start + mark + NO_CHECKSUM + head_end)
    return isinstance(stated, str) and checksum_bytes == stated.encode() and actual == stated


def _place(entry: Any) -> Place:
    """Returns the place of an array that ``entry``, an object of the header, describes. Raises an error if it is
    inconsistent.
    """
    start, end = entry["data_offsets"]  # bytes after the header
    dtype = DTYPES[entry["dtype"]]
    shape = tuple(entry["shape"])
    are_whole = all(type(n) is int and 0 <= n <= LARGEST for n in (start, end, *shape))
    check(are_whole and len(shape) <= MOST_DIMENSIONS, "a shape or an offset is not a list of whole numbers")
    has_size = end - start == prod(shape) * dtype.itemsize and start % dtype.itemsize == 0
    check(has_size, "the size of an array does not match its shape")
    return Place(start, end, dtype, shape)


def _check_gapless(places: list[Place], size: int) -> None:
    """Raises ValueError unless the arrays in these places follow each other without gaps up to the end of the file,
    which has ``size`` bytes after its header.
    """
    position = 0  # bytes after the header
    for place in sorted(places, key=lambda place: (place.start, place.end)):
        check(place.start == position, "two of them overlap or have a gap between them")
        position = place.end
    check(position == size, f"they take {position:,} bytes, but the file has {size:,}")
