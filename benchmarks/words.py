"""The C loops over words, given the very strings that the other engines are given; compiled as those of yardstick.c are."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.yardstick import call, shared

SLACK = 80  # bytes that a loop may read or write beyond the end of a text
TOKEN, SLOT = 32, 16  # bytes


@dataclass(frozen=True)
class Table:
    """Words and their numbers, as words.c keeps them."""

    slots: NDArray[np.uint8]
    store: NDArray[np.uint8]
    used: NDArray[np.int64]

    @classmethod
    def empty(cls, words: int) -> Table:
        """Room for so many words of up to 28 letters on average, at most half full."""
        slots = np.zeros((_power_of_two(2 * words), SLOT), dtype=np.uint8)
        return cls(slots, np.empty(32 * words + SLACK, dtype=np.uint8), np.zeros(2, dtype=np.int64))

    def arguments(self) -> tuple[Any, ...]:
        return self.slots, len(self.slots), self.store, self.used

    def words(self) -> list[str]:
        """In the order of their numbers, which is that of the store."""
        store, place, found = self.store.tobytes(), 8, []
        for _ in range(int(self.used[0])):
            length = int.from_bytes(store[place : place + 4], "little")
            found.append(store[place + 4 : place + 4 + length].decode("ascii"))
            place += 4 + length
        return found


@dataclass(frozen=True)
class Rows:
    """What learning by dense rows found: (classes, most, 2), occurrences and documents per class and word."""

    table: Table
    rows: NDArray[np.uint32]

    def occurrences(self) -> NDArray[np.int64]:
        """(classes, words)."""
        return self.rows[:, : int(self.table.used[0]), 0].astype(np.int64)


class Loops:
    """The loops over one list of texts, on so many threads; ``most`` is a number of words that is enough."""

    def __init__(self, texts: Sequence[str], classes: NDArray[np.int64], n_classes: int, most: int) -> None:
        self.texts = texts  # kept, because the loops read them where they stand
        self.classes, self.n_classes, self.most = np.ascontiguousarray(classes, dtype=np.int64), n_classes, most
        self.pointers, self.lengths = _addresses(texts)
        self.order = np.arange(len(texts))

    def only(self, threads: int) -> tuple[int, int]:
        """Tokens, and the sum of their hashes modulo 2^64."""
        found = np.zeros((threads, 8), dtype=np.uint64)
        self._shared("words_only", threads, lambda part: (found[part],))
        return int(found[:, 0].sum()), int(found[:, 1].sum())

    def total(self, threads: int) -> Table:
        """One table of counts; each thread has its own, and they are added."""
        parts = [Table.empty(self.most) for _ in range(threads)]
        self._shared("words_total", threads, lambda part: parts[part].arguments())
        for other in parts[1:]:
            call("words_add", *parts[0].arguments(), other.slots, other.store)
        return parts[0]

    def tables(self, threads: int) -> NDArray[np.int64]:
        """A table of counts per class; threads have classes of their own. Gives the number of words of each class."""
        size = _power_of_two(2 * self.most)
        slots = np.zeros((self.n_classes, size, SLOT), dtype=np.uint8)
        store = np.empty((self.n_classes, 32 * self.most + SLACK), dtype=np.uint8)
        used = np.zeros((self.n_classes, 2), dtype=np.int64)
        order, cuts = self._by_class(threads)
        given = self.classes, slots, size, store, store.shape[1], used
        self._shared("words_tables", threads, lambda _: given, order, cuts)
        return used[:, 0]

    def rows(self, threads: int) -> Rows:
        """Words numbered by one table, and a dense row per class; threads have classes and a table of their own."""
        parts = [Table.empty(self.most) for _ in range(threads)]
        rows = np.zeros((self.n_classes, self.most, 2), dtype=np.uint32)
        now = np.zeros((threads, self.most, 4), dtype=np.uint32)
        order, cuts = self._by_class(threads)

        def given(part: int) -> tuple[Any, ...]:
            return self.classes, *parts[part].arguments(), rows, self.most, now[part]

        self._shared("words_rows", threads, given, order, cuts)
        for part in range(1, threads):
            self._join(parts[0], parts[part], rows, self.classes[order[cuts[part] : cuts[part + 1]]], threads)
        return Rows(parts[0], rows)

    def predict(self, table: Table, weights: NDArray[np.float64], prior: NDArray[np.float64], threads: int) -> Any:
        """The class of each text; weights (words, classes)."""
        best = np.zeros(len(self.texts), dtype=np.int32)
        given = *table.arguments(), weights, prior, self.n_classes, best
        self._shared("words_predict", threads, lambda _: given)
        return best

    def _join(
        self, table: Table, other: Table, rows: NDArray[np.uint32], classes: NDArray[np.int64], threads: int
    ) -> None:
        """Numbers the other's words as the first table does, in the rows of the other's classes."""
        words = int(other.used[0])
        numbers = np.empty(words, dtype=np.uint32)
        call("words_join", *table.arguments(), other.store, other.used, numbers)
        if not len(classes):
            return
        first, end = int(classes[0]), int(classes[-1]) + 1
        spare = np.zeros((threads, self.most, 2), dtype=np.uint32)

        def reorder(part: int, start: int, stop: int) -> None:
            call("words_reorder", rows, first + start, first + stop, self.most, numbers, words, spare[part])

        shared(end - first, threads, reorder)

    def _by_class(self, threads: int) -> tuple[NDArray[np.int64], list[int]]:
        """Texts class by class, and cuts between classes that give each thread about as many bytes."""
        order = np.argsort(self.classes, kind="stable")
        bytes_before = np.concatenate([[0], self.lengths[order].cumsum()])
        ends = np.concatenate([[0], np.bincount(self.classes, minlength=self.n_classes).cumsum()])
        wanted = bytes_before[-1] * np.arange(1, threads) / threads
        nearest = np.abs(bytes_before[ends][:, None] - wanted).argmin(axis=0)
        return order, [0, *(int(ends[k]) for k in nearest), len(order)]

    def _shared(
        self,
        name: str,
        threads: int,
        given: Callable[[int], tuple[Any, ...]],
        order: NDArray[np.int64] | None = None,
        cuts: list[int] | None = None,
    ) -> None:
        """Calls a loop with what all of them take, and with what it is given, on every thread's texts."""
        order = self.order if order is None else order
        longest = int(self.lengths.max(initial=0))
        lower = np.empty((threads, longest + SLACK), dtype=np.uint8)
        tokens = np.empty((threads, longest // 2 + 1, TOKEN), dtype=np.uint8)

        def work(part: int, start: int, end: int) -> None:
            call(name, self.pointers, self.lengths, order, start, end, lower[part], tokens[part], *given(part))

        shared(len(order), threads, work, cuts)


def _addresses(texts: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Where the UTF-8 bytes of each text stand, and how many there are."""
    bytes_of = ctypes.pythonapi.PyUnicode_AsUTF8AndSize
    bytes_of.restype, bytes_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.POINTER(ctypes.c_ssize_t)]
    size = ctypes.c_ssize_t()
    found = [(bytes_of(text, ctypes.byref(size)) or 0, size.value) for text in texts]
    places, lengths = zip(*found, strict=True)
    return np.array(places, dtype=np.uint64), np.array(lengths, dtype=np.int64)


@functools.cache
def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()
