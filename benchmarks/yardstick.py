"""The C loops, compiled on the spot, and the threads that share their rows."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Sums may be reordered, so that they use the whole width of the machine, as ours do.
FLAGS = "-O3 -march=native -fassociative-math -fno-signed-zeros -fno-trapping-math -fno-math-errno".split()


@functools.cache
def loops() -> ctypes.CDLL | None:
    """The compiled loops; None without gcc."""
    if shutil.which("gcc") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "yardstick.so"
        sources = [Path(__file__).with_name(name) for name in ("yardstick.c", "words.c")]
        subprocess.run(["gcc", *FLAGS, "-shared", "-fPIC", "-o", library, *sources], check=True)
        return ctypes.CDLL(str(library))


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def shared(
    rows: int, threads: int, work: Callable[[int, int, int], Any], cuts: Sequence[int] | None = None
) -> list[Any]:
    """``work(part, from, to)`` for as many parts of the rows as there are threads, at once; the answers in order."""
    cuts = cuts or [rows * part // threads for part in range(threads + 1)]
    if threads == 1:
        return [work(0, 0, rows)]
    return list(_pool(threads).map(work, range(threads), cuts[:-1], cuts[1:]))


def call(name: str, *arguments: Any) -> None:
    """Calls a loop: arrays as pointers, whole numbers as int64. The GIL is released."""
    converted = [
        ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_int64(int(a)) for a in arguments
    ]
    getattr(loops(), name)(*converted)


def reading(array: NDArray[Any], threads: int) -> Callable[[], None] | None:
    """A function that reads an array and does nothing with it."""
    if loops() is None:
        return None
    words = array.nbytes // 8
    return lambda: shared(words, threads, lambda _, start, end: call("read_all", array, start, end)) and None
