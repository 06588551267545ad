"""Arrays by name and one JSON text in a file: safetensors, with checksums of the header and of every array.

``docs/reference/format.md`` describes it. Reading maps the file, and trusts nothing in it.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from banbury import _core, errors
from banbury.files.checking import Arrays, check
from banbury.reading import n_threads
from banbury.reading.files import near
from banbury.reading.lines import each_once

try:
    import fcntl
except ImportError:  # Windows, which lets no open file be removed
    fcntl = None  # type: ignore[assignment]

O_BINARY = getattr(os, "O_BINARY", 0)
LONGEST_HEADER = 100_000_000  # bytes; safetensors' own limit
MOST_DIMENSIONS = 4
LARGEST = 2**40  # of a dimension, or bytes
KINDS = {"U8": "u1", "U32": "<u4", "I64": "<i8", "F32": "<f4", "F64": "<f8"}
DTYPES = {name: np.dtype(kind) for name, kind in KINDS.items()}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
MARK = b'"checksum":"'  # quotes inside a text are escaped, so that this stands in a header once
NOTHING = b"0" * 16  # stands for the header's checksum while it is summed
NAME = "banbury-1"  # the first entry of the metadata, which every file of this format has at its ninth byte
BEGINNING = re.compile(rb'\{"__metadata__":\{"banbury(?:-(\d{1,9}))?":')
NO_FILE_OF_OURS = "it is not a Banbury file, or its beginning is damaged"


def checksum(content: Any) -> str:
    """Returns the checksum of bytes or of an array (16 hexadecimal digits)."""
    raw = np.frombuffer(content, dtype=np.uint8) if memoryview(content).nbytes else np.zeros(0, dtype=np.uint8)
    return f"{_core.checksum(raw, n_threads(None)):016x}"


# Writing --------------------------------------------------------------------------------------------------------------


def write(target: Path, about: Mapping[str, Any], arrays: Arrays) -> None:
    """Writes the file completely or not at all."""
    content = contents(target, about, arrays)
    with replacing(target) as file:
        for part in content:
            file.write(part)


def contents(target: Path, about: Mapping[str, Any], arrays: Arrays) -> list[Any]:
    """Yields the contents of the file: its header, and then the arrays."""
    ordered = {name: arrays[name] for name in sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))}
    parts = [array.tobytes() if array.size == 0 else array.data for array in ordered.values()]
    return [_header(target, about, ordered), *parts]


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """Opens a temporary file that replaces the target when it is complete. If anything fails, the target does not
    change.
    """
    beside: Path | None = None
    try:
        place = Path(os.path.realpath(target))  # a link stays, and what it leads to is replaced
        if place.exists() and not place.is_file():
            raise errors.unwritable_file(target, "it is a folder" if place.is_dir() else "it is not a regular file")
        _remove_left_over(place)
        beside, file = _begun(place)
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if place.exists():
                os.chmod(beside, place.stat().st_mode)
            if fcntl is not None:  # elsewhere no open file is moved
                os.replace(beside, place)
                beside = None
        if beside is not None:
            os.replace(beside, place)
            beside = None
    except OSError as problem:
        raise errors.unwritable_file(target, problem.strerror or str(problem)) from None
    except errors.BanburyError:
        raise
    except (UnicodeError, ValueError) as problem:
        raise errors.bad_setting("path", str(target), f"the name of a file ({problem})") from None
    finally:
        if beside is not None:
            with suppress(OSError):
                os.unlink(beside)


def _begun(place: Path) -> tuple[Path, BinaryIO]:
    """A new file beside its place, locked as long as it is open: what is not locked was left over by a save that was killed."""
    while True:
        beside = place.with_name(f"{place.name}{secrets.token_hex(4)}.part")
        mode = 0o600 if place.exists() else 0o666  # less the umask; what replaces a file gets its mode in the end
        file = open(os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | O_BINARY, mode), "wb")  # noqa: SIM115
        if _lock(file.fileno(), wait=True) is False or beside.exists():
            return beside, file
        file.close()  # another save took it for left over in the moment before it was locked


def _remove_left_over(place: Path) -> None:
    """Removes what earlier saves to the same place left beside it when they were killed; not what one that runs is writing."""
    ours = re.compile(re.escape(place.name) + r"[a-z0-9_]{8}\.part")
    with suppress(OSError):
        for entry in os.scandir(place.parent):
            if ours.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    handle = os.open(entry.path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
                    try:
                        if _lock(handle, wait=False):  # so that no save that has just begun goes on with it
                            os.unlink(entry.path)
                    finally:
                        os.close(handle)
                    if fcntl is None:
                        os.unlink(entry.path)


def _lock(handle: int, wait: bool) -> bool:
    """Whether the open file could be locked. Where there are no locks, it cannot."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _header(target: Path, about: Mapping[str, Any], arrays: Arrays) -> bytes:
    """The length of the JSON text, and the text, filled up with spaces to a multiple of 8 bytes."""
    sums = {name: checksum(array) for name, array in arrays.items()}
    try:
        metadata = {NAME: json.dumps({**about, "checksums": sums}), "checksum": NOTHING.decode()}
    except (TypeError, ValueError) as problem:
        raise cannot_save(target, problem) from None
    table: dict[str, Any] = {"__metadata__": metadata}
    start = 0
    for name, array in arrays.items():
        offsets = [start, start + array.nbytes]
        table[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": offsets}
        start += array.nbytes
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST_HEADER:
        raise errors.BadFile(
            f"cannot write {target}: its names, classes and categories take {len(text):,} bytes, but the limit is "
            f"{LONGEST_HEADER:,}. Count columns of so many different values as text, or leave them out with "
            "features={...: None}.",
            path=str(target),
        )
    text = text.replace(MARK + NOTHING, MARK + checksum(text).encode())
    return len(text).to_bytes(8, "little") + text


def cannot_save(path: Path, why: Exception) -> errors.BadFile:
    return errors.BadFile(
        f"cannot write {path}: one of its labels, names or settings cannot be saved ({why}). Make it a text, a number "
        "or a boolean.",
        path=str(path),
    )


# Reading --------------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """The position, type and shape of an array in a file."""

    start: int
    end: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def read(path: str | os.PathLike[str], verify: bool) -> tuple[dict[str, Any], Arrays]:
    """Returns the JSON text and the arrays, which are views of the memory-mapped file."""
    return parse(path, _map_file(path), verify)


def parse(path: Any, content: mmap.mmap | bytes, verify: bool) -> tuple[dict[str, Any], Arrays]:
    """Returns the same for the contents of a file. ``path`` is its name in error messages."""
    length = int.from_bytes(content[:8], "little")
    if not 2 <= length <= min(LONGEST_HEADER, len(content) - 8) or length % 8:
        raise errors.bad_file(path, NO_FILE_OF_OURS)
    head = content[8 : 8 + length]
    _check_format(path, head)
    try:
        table = json.loads(head, object_pairs_hook=each_once)
        metadata = table.pop("__metadata__")
        about = json.loads(metadata[NAME], object_pairs_hook=each_once)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise errors.bad_file(path, NO_FILE_OF_OURS) from None
    if not isinstance(about, dict):
        raise errors.bad_file(path, NO_FILE_OF_OURS)
    if not _is_sound(head, metadata.get("checksum")):
        raise errors.damaged_file(path, "its header has changed since it was written")
    try:
        places = {name: _place(entry) for name, entry in table.items()}
        _check_gapless(list(places.values()), len(content) - 8 - length)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise errors.damaged_file(path, f"its arrays are not where they should be ({problem})") from None
    arrays: Arrays = {}
    for name, (start, end, dtype, shape) in places.items():
        flat = np.frombuffer(content, dtype, prod(shape), 8 + length + start) if start < end else np.zeros(0, dtype)
        arrays[name] = flat.reshape(shape)
    if verify:
        checksums = about.get("checksums")
        if not isinstance(checksums, dict) or checksums.keys() != arrays.keys():
            raise errors.damaged_file(path, "the checksum of an array is missing")
        for name, array in arrays.items():
            if checksum(array) != checksums[name]:
                raise errors.damaged_file(path, f"the array {name!r} has changed since it was written")
    return about, arrays


def _check_format(path: Any, head: bytes) -> None:
    """Raises unless the header begins as those of this format do."""
    beginning = BEGINNING.match(head)
    if beginning is None:
        raise errors.bad_file(path, NO_FILE_OF_OURS)
    if beginning[0].endswith(f'"{NAME}":'.encode()):
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
    """The file's bytes. A pipe is not waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | O_BINARY)
        try:
            kind = os.fstat(handle)
            if not stat.S_ISREG(kind.st_mode):
                raise errors.bad_file(path, "it is no file")
            return mmap.mmap(handle, 0, access=mmap.ACCESS_READ) if kind.st_size else b""
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise errors.missing_file(path, near(os.fsdecode(path)), otherwise="") from None
    except OSError as problem:
        raise errors.bad_file(path, problem.strerror or str(problem)) from None
    except errors.BanburyError:
        raise
    except (TypeError, ValueError) as problem:
        raise errors.bad_setting("path", path, f"the name of a file ({problem})") from None


def _is_sound(head: bytes, stated: Any) -> bool:
    """Whether the header has the checksum it states; the place of that is summed as zeros."""
    before, mark, rest = head.partition(MARK)
    digits = rest[: len(NOTHING)]
    rest = rest[len(NOTHING) :]
    actual = checksum(before + mark + NOTHING + rest)
    return isinstance(stated, str) and digits == stated.encode() and actual == stated


def _place(entry: Any) -> Place:
    start, end = entry["data_offsets"]
    dtype = DTYPES[entry["dtype"]]
    shape = tuple(entry["shape"])
    numbers = all(type(n) is int and 0 <= n <= LARGEST for n in (start, end, *shape))
    check(numbers and len(shape) <= MOST_DIMENSIONS, "a shape or an offset is not a list of whole numbers")
    sized = end - start == prod(shape) * dtype.itemsize and start % dtype.itemsize == 0
    check(sized, "the size of an array does not match its shape")
    return Place(start, end, dtype, shape)


def _check_gapless(places: list[Place], size: int) -> None:
    """Arrays lie one after the other, without a gap, up to the end of the file."""
    at = 0
    for place in sorted(places, key=lambda place: (place.start, place.end)):
        check(place.start == at, "two of them overlap or have a gap between them")
        at = place.end
    check(at == size, f"they take {at:,} bytes, but the file has {size:,}")
