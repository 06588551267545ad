"""Model files again, slow and obvious: the checksum word by word, and a file from its parts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

PIECE = 2**20
DTYPES = {"uint8": "U8", "uint32": "U32", "int64": "I64", "float32": "F32", "float64": "F64"}


def step(a: int, b: int) -> int:
    product = (a ^ b) * 0x9FB21C651E98DF25 % 2**64
    return product ^ product >> 32


@lru_cache(1000)  # most arrays of a file that is changed are as they were
def piece_sum(piece: bytes) -> int:
    padded = piece + bytes(-len(piece) % 64)
    lanes = [1, 2, 3, 4, 5, 6, 7, 8]
    for i in range(len(padded) // 8):
        lanes[i % 8] = step(lanes[i % 8], int.from_bytes(padded[8 * i : 8 * i + 8], "little"))
    total = len(piece)
    for lane in lanes:
        total = step(total, lane)
    return total


def checksum(content: bytes) -> str:
    pieces = [content[i : i + PIECE] for i in range(0, len(content), PIECE)]
    return f"{piece_sum(b''.join(piece_sum(piece).to_bytes(8, 'little') for piece in pieces)):016x}"


def signed(header: str) -> bytes:
    """The header's length and the header, with spaces to a multiple of 8 bytes and its checksum in the place of 16 zeros."""
    text = header.encode() + b" " * (-len(header.encode()) % 8)
    text = text.replace(b'"checksum":"' + b"0" * 16, b'"checksum":"' + checksum(text).encode(), 1)
    return len(text).to_bytes(8, "little") + text


def packed(about: Any, arrays: Mapping[str, np.ndarray], sums: bool = True, beginning: str = "banbury-1") -> bytes:
    """A whole file, right checksums included."""
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    if sums and isinstance(about, dict):
        about = about | {"checksums": {name: checksum(arrays[name].tobytes()) for name in names}}
    entries, start = {}, 0
    for name in names:
        offsets = [start, start := start + arrays[name].nbytes]
        dtype = DTYPES.get(arrays[name].dtype.name, arrays[name].dtype.name)
        entries[name] = {"dtype": dtype, "shape": list(arrays[name].shape), "data_offsets": offsets}
    metadata = {beginning: json.dumps(about), "checksum": "0" * 16}
    header = json.dumps({"__metadata__": metadata, **entries}, separators=(",", ":"))
    return signed(header) + b"".join(arrays[name].tobytes() for name in names)


def numbers(limbs: np.ndarray) -> np.ndarray:
    """Python's whole numbers from limbs of 64 bits on the last axis, two's complement, least first."""
    found = np.empty(limbs.shape[:-1], dtype=object)
    for at in np.ndindex(found.shape):
        found[at] = int.from_bytes(
            b"".join(int(limb).to_bytes(8, "little", signed=True) for limb in limbs[at]), "little", signed=True
        )
    return found


def limbs(numbers: np.ndarray, width: int = 0) -> np.ndarray:
    """The same numbers in as few limbs as will do, or in so many."""
    flat = [int(number) for number in numbers.reshape(-1)]
    width = width or next(
        n for n in range(1, 100) if all(-(2 ** (64 * n - 1)) <= number < 2 ** (64 * n - 1) for number in flat)
    )
    packed = b"".join(number.to_bytes(8 * width, "little", signed=True) for number in flat)
    return np.frombuffer(packed, dtype=np.int64).reshape(*numbers.shape, width).copy()


def header(content: bytes) -> dict[str, Any]:
    length = int.from_bytes(content[:8], "little")
    return dict(json.loads(content[8 : 8 + length]))


def unpacked(content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The JSON text without its checksums, and the arrays, which may be changed."""
    entries, start = header(content), 8 + int.from_bytes(content[:8], "little")
    about = json.loads(entries.pop("__metadata__")["banbury-1"])
    del about["checksums"]
    types = {name: dtype for dtype, name in DTYPES.items()}
    arrays = {}
    for name, entry in entries.items():
        a, b = entry["data_offsets"]
        flat = np.frombuffer(content[start + a : start + b], dtype=types[entry["dtype"]])
        arrays[name] = flat.reshape(entry["shape"]).copy()
    return about, arrays


def rewritten(
    content: bytes, change: Any = None, arrays: Mapping[str, Any] | None = None, drop: Iterable[str] = ()
) -> bytes:
    """The file again, rightly signed, with another JSON text or other arrays."""
    about, found = unpacked(content)
    found = {name: array for name, array in (found | dict(arrays or {})).items() if name not in drop}
    return packed(change(about) if change else about, found)
