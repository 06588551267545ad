"""Rows as they are weighed: a cell for each column, a class, a weight; in an order that what they hold decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.families.bags.lexicon import Bags
from banbury.families.cells import Cells, codes_of
from banbury.reading import Batch
from banbury.rows.sampling import group_names, hash_names
from banbury.tally.schema import Schema
from banbury.tally.table import MIX, Table, mixed, numbered
from banbury.tally.tally import Tally
from banbury.weighing.columns import WeighedColumns, counted

MANY_ROWS = 10_000  # from which on three folds will do
FEW_CLASSES = 20  # of more, what grows with their square is not done


@dataclass(frozen=True)
class OtherRows:
    """What rows that are not here add to counts, where those here are a sample: evidence is that of all, as it will be asked."""

    rows: Real  # of each class
    cells: tuple[Real, ...]  # of each column, (cells, classes)
    documents: tuple[Real, ...]  # of each column of texts, (words, classes)

    @classmethod
    def of(cls, tally: Tally, weighed: WeighedColumns, here: WeighedRows) -> OtherRows:
        k = len(tally.classes)
        every = counted(tally, weighed.cells)
        own = np.split(here.counted(np.array([len(rows) for rows in every]), k, 1), np.cumsum([*map(len, every)])[:-1])
        cells = tuple(np.maximum(rows - mine, 0.0) for rows, mine in zip(every, own, strict=True))
        sets = np.arange(len(here.labels) + 1), here.labels
        texts = zip(weighed.texts, here.bags, strict=True)
        documents = tuple(np.maximum(own.documents() - bags.count(sets, here.weights, k), 0.0) for own, bags in texts)
        return cls(np.maximum(tally.rows.value - here.class_weights(k), 0.0), cells, documents)


@dataclass(frozen=True)
class WeighedRows:
    """Rows of cells, (rows, columns), with classes and weights; ``groups`` are numbers of rows that stay together, or None.

    ``bags`` has the words of each column of texts; ``given`` what is said of each row by evidence that is no cell, (rows,
    pieces of evidence, classes).
    """

    codes: NDArray[np.uint32]
    labels: NDArray[np.int32]
    weights: Real
    groups: NDArray[np.uint64] | None
    bags: tuple[Bags, ...]
    given: Real
    others: OtherRows | None = None

    @classmethod
    def of(cls, table: Table, tally: Tally, weighed: WeighedColumns) -> WeighedRows:
        """The rows of a table that a tally counted, merged where they are equal, in an order that depends on them alone."""
        schema = tally.schema
        classes = {label: c for c, label in enumerate(tally.classes)}
        threads = table.labels.threads
        k = len(tally.classes)
        parts: list[WeighedRows] = []
        for batch in table.batches("weighing"):
            batch = table.aligned(batch, schema)
            codes = codes_of(weighed.cells, batch, threads)
            groups = _groups(table, batch)
            bags = tuple(words.bags(batch, tally.of(words.feature.name), threads) for words in weighed.texts)
            for labels, weights in _labels(table, batch, schema, classes):
                there = np.flatnonzero((labels >= 0) & (weights > 0))
                rows = cls(codes, labels, weights, groups, bags, np.zeros((len(labels), 0, k))).take(there)
                given = weighed.left_out(tally, batch.take(there), rows.labels, rows.weights, threads)
                parts.append(replace(rows, given=given))
        return cls._together(parts)._merged()

    @classmethod
    def _together(cls, parts: Sequence[WeighedRows]) -> WeighedRows:
        if len(parts) == 1:
            return parts[0]
        arrays = ("codes", "labels", "weights", "given")
        codes, labels, weights, given = (np.concatenate([getattr(part, name) for part in parts]) for name in arrays)
        groups = None if parts[0].groups is None else np.concatenate([part.groups for part in parts])
        bags = tuple(Bags.together(each) for each in zip(*(part.bags for part in parts), strict=True))
        return cls(codes, labels, weights, groups, bags, given)

    def _merged(self) -> WeighedRows:
        """Equal rows as one, in the order of a hash of what they hold."""
        hashes = mixed(self.labels.astype(np.uint64) + np.uint64(1))
        numbers = np.ascontiguousarray(self.given).view(np.uint64)
        given = (numbers[:, g, c] for g in range(numbers.shape[1]) for c in range(numbers.shape[2]))
        for column in (*self.codes.T, *given, *(bags.hashes for bags in self.bags)):
            hashes = mixed(hashes * MIX + column.astype(np.uint64))
        if self.groups is not None:
            hashes = mixed(hashes * MIX + self.groups)
        first, _, weights = merge_equal(hashes, self.weights)
        return replace(self.take(first), weights=weights)

    def without_twins(self, columns: Sequence[Cells]) -> tuple[WeighedRows, list[int]]:
        """The rows without columns that say what an earlier one says, cell by cell and by its trend; and the columns left."""
        first: dict[bytes, int] = {}
        for j, (column, cells) in enumerate(zip(np.ascontiguousarray(self.codes.T), columns, strict=True)):
            there = np.zeros(int(column.max(initial=0)) + 1, dtype=np.uint32)
            there[column] = 1
            trend = (cells.places.round(6) + 0.0).tobytes() if cells.has_trend else b""
            first.setdefault(np.cumsum(there, dtype=np.uint32)[column].tobytes() + trend, j)
        kept = sorted(first.values())
        if len(kept) == self.codes.shape[1]:
            return self, kept
        others = self.others and replace(self.others, cells=tuple(self.others.cells[j] for j in kept))
        return replace(self, codes=self.codes[:, kept], others=others)._merged(), kept

    def take(self, at: Int) -> WeighedRows:
        groups = None if self.groups is None else self.groups[at]
        bags = tuple(bags.take(at) for bags in self.bags)
        codes = np.ascontiguousarray(self.codes[at])
        return WeighedRows(codes, self.labels[at], self.weights[at], groups, bags, self.given[at], self.others)

    def weighing(self, weights: Real) -> WeighedRows:
        """The rows that weigh something, of these weights; their texts stay behind."""
        return replace(self, weights=weights, bags=()).take(np.flatnonzero(weights > 0))

    @property
    def n_folds(self) -> int:
        """In how many parts rows are dealt where something is chosen."""
        return 3 if len(self.labels) >= MANY_ROWS else 5

    def counted(self, sizes: Int, n_classes: int, threads: int) -> Real:
        """What rows of each class weigh in the cells of all columns, which have so many, (cells, classes)."""
        if not len(sizes):
            return np.zeros((0, n_classes))
        found = _core.count_cells(self.codes, sizes, self.labels, self.weights, n_classes, threads)
        return found if self.others is None else found + np.concatenate(self.others.cells)

    def every_class(self, n_classes: int) -> Real:
        """What rows of each class weigh, with those that are not here."""
        here = self.class_weights(n_classes)
        return here if self.others is None else here + self.others.rows

    def class_weights(self, n_classes: int) -> Real:
        return np.asarray(np.bincount(self.labels, self.weights, n_classes), dtype=np.float64)

    def folds(self, n: int) -> Real:
        """What each row weighs in each fold, (rows, folds), evenly in each class: a weight of 2 is dealt as two rows are.

        Rows of a group are in one fold.
        """
        shares = np.zeros((len(self.labels), n))
        if self.groups is not None:
            names, group = np.unique(self.groups, return_inverse=True)
            weight = np.bincount(group, self.weights)
            load = np.zeros(n)
            fold = np.zeros(len(names), dtype=np.int64)
            for each in np.argsort(-weight, kind="stable").tolist():
                fold[each] = np.argmin(load)
                load[fold[each]] += weight[each]
            shares[np.arange(len(group)), fold[group]] = self.weights
            return shares
        for label in np.unique(self.labels):
            rows = np.flatnonzero(self.labels == label)
            end = np.cumsum(self.weights[rows])
            start = np.concatenate([[0.0], end[:-1]])
            for k in range(n):  # of the line from 0 to the class's weight, the units k, k + n, k + 2 n, …
                shares[rows, k] = _covered(end, k, n) - _covered(start, k, n)
        return np.maximum(shares, 0.0)


def _covered(x: Real, k: int, n: int) -> Real:
    """How much of the units k, k + n, k + 2 n, … of a line lies before x."""
    whole = np.floor(x / n)
    return np.asarray(whole + np.clip(x - whole * n - k, 0.0, 1.0))


def _labels(
    table: Table, batch: Batch, schema: Schema, classes: dict[Any, int]
) -> list[tuple[NDArray[np.int32], Real]]:
    """Classes and weights of a batch's rows; of soft labels, those of each class in turn."""
    weights = table.labels.weights_of(batch)
    if weights is not None and weights.ndim == 2:
        each = ((classes.get(name, -1), weights[:, c]) for c, name in enumerate(table.labels.classes or ()))
        return [(np.full(batch.n_rows, label, dtype=np.int32), own) for label, own in each]
    numbers, names, _ = numbered(batch, schema, table.labels)
    place = np.array([*(classes.get(name, -1) for name in names), -1], dtype=np.int32)
    return [(place[numbers], np.ones(batch.n_rows) if weights is None else weights)]


def _groups(table: Table, batch: Batch) -> NDArray[np.uint64] | None:
    """A hash of the group of each row, by its name alone."""
    names = group_names(table, batch)
    if names is None:
        return None
    return hash_names(names.tolist())


def merge_equal(hashes: NDArray[np.uint64], weights: Real) -> tuple[Int, Int, Real]:
    """Rows of equal hashes as one, in the order of these: one of each, which of these every row is, and what they weigh."""
    order = np.lexsort((weights, hashes))
    ordered = hashes[order]
    is_new = np.ones(len(order), dtype=np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(is_new) - 1
    return order[is_new], place, np.add.reduceat(weights[order], np.flatnonzero(is_new))
