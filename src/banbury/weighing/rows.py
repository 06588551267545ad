"""Rows as they are weighed: a cell for each column, a class, a weight; in an order that what they hold decides."""

from __future__ import annotations

from collections import Counter
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
from banbury.tally.table import MIX, Table, mix, number_classes
from banbury.tally.tally import Tally
from banbury.weighing.columns import WeighedColumns, count_cells

MANY_ROWS = 10_000  # from which on three folds will do
FEW_ROWS = 1024  # that tell nearly all columns apart: looking at all rows took 0.04 of 2.4 s with 200,000 × 16
FEW_CLASSES = 20  # of more, what grows with their square is not done


@dataclass(frozen=True)
class CountsElsewhere:
    """The counts of the rows outside a sample. Weights are learned on the sample, with the evidence of all rows."""

    rows: Real  # of each class
    cells: tuple[Real, ...]  # of each column, (cells, classes)
    documents: tuple[Real, ...]  # of each column of texts, (words, classes)

    @classmethod
    def of(cls, tally: Tally, weighed: WeighedColumns, here: WeighedRows) -> CountsElsewhere:
        k = len(tally.classes)
        all_cells = count_cells(tally, weighed.cells)
        sizes = np.array([len(counts) for counts in all_cells])
        cells_here = np.split(here.count_cells(sizes, k, 1), np.cumsum(sizes)[:-1])
        cells = tuple(np.maximum(every - counts, 0.0) for every, counts in zip(all_cells, cells_here, strict=True))
        sets = np.arange(len(here.labels) + 1), here.labels
        texts = zip(weighed.texts, here.bags, strict=True)
        documents = tuple(
            np.maximum(lexicon.documents() - bags.count(sets, here.weights, k), 0.0) for lexicon, bags in texts
        )
        return cls(np.maximum(tally.rows.value - here.class_weights(k), 0.0), cells, documents)


@dataclass(frozen=True)
class WeighedRows:
    """The rows that weights are learned from: the cell of each column, (rows, columns), the class and the weight.

    ``groups`` numbers the rows that must stay in one fold, or is None. ``bags`` has the words of each text column. ``extra`` has
    the scores of columns without cells, (rows, columns, classes). ``elsewhere`` counts the rows outside a sample.
    """

    codes: NDArray[np.uint32]
    labels: NDArray[np.int32]
    weights: Real
    groups: NDArray[np.uint64] | None
    bags: tuple[Bags, ...]
    extra: Real
    elsewhere: CountsElsewhere | None = None

    @classmethod
    def of(cls, table: Table, tally: Tally, weighed: WeighedColumns) -> WeighedRows:
        """The rows of a table that a tally counted, merged where they are equal, in an order that depends on them alone."""
        schema = tally.schema
        classes = {label: c for c, label in enumerate(tally.classes)}
        threads = table.labels.threads
        k = len(tally.classes)
        parts: list[WeighedRows] = []
        for batch in table.batches("weighing"):
            batch = table.align(batch, schema)
            codes = codes_of(weighed.cells, batch, threads)
            groups = _groups(table, batch)
            bags = tuple(words.bags(batch, tally.of(words.feature.name), threads) for words in weighed.texts)
            for labels, weights in _labels(table, batch, schema, classes):
                there = np.flatnonzero((labels >= 0) & (weights > 0))
                rows, counted = cls(codes, labels, weights, groups, bags, np.zeros((len(labels), 0, k))), batch
                if len(there) < len(labels):
                    rows, counted = rows.take(there), batch.take(there)
                extra = weighed.leave_each_out(tally, counted, rows.labels, rows.weights, threads)
                parts.append(replace(rows, extra=extra))
        return cls._together(parts)._merge_equal()

    @classmethod
    def _together(cls, parts: Sequence[WeighedRows]) -> WeighedRows:
        if len(parts) == 1:
            return parts[0]
        arrays = ("codes", "labels", "weights", "extra")
        codes, labels, weights, extra = (np.concatenate([getattr(part, name) for part in parts]) for name in arrays)
        groups = None if parts[0].groups is None else np.concatenate([part.groups for part in parts])
        bags = tuple(
            Bags.together(bags_of_column) for bags_of_column in zip(*(part.bags for part in parts), strict=True)
        )
        return cls(codes, labels, weights, groups, bags, extra)

    def _merge_equal(self) -> WeighedRows:
        """Equal rows as one, in the order of a hash of what they hold."""
        hashes = mix(self.labels.astype(np.uint64) + np.uint64(1))
        bits = np.ascontiguousarray(self.extra).view(np.uint64)
        extra_columns = (bits[:, g, c] for g in range(bits.shape[1]) for c in range(bits.shape[2]))
        for column in (*self.codes.T, *extra_columns, *(bags.hashes for bags in self.bags)):
            hashes = mix(hashes * MIX + column.astype(np.uint64))
        if self.groups is not None:
            hashes = mix(hashes * MIX + self.groups)
        first, _, weights = merge_equal(hashes, self.weights)
        return replace(self.take(first), weights=weights)

    def without_twins(self, columns: Sequence[Cells]) -> tuple[WeighedRows, list[int]]:
        """The rows without columns that say what an earlier one says, cell by cell and by its trend; and the columns left."""
        trends = [(cells.places.round(6) + 0.0).tobytes() if cells.has_trend else b"" for cells in columns]
        # Columns that differ within a few rows are no twins.
        heads = list(zip(map(_ranks, self.codes[:FEW_ROWS].T), trends, strict=True))
        times = Counter(heads)
        first: dict[tuple[bytes, bytes], int] = {}
        for j, head in enumerate(heads):
            first.setdefault(head if times[head] == 1 else (_ranks(self.codes[:, j]), trends[j]), j)
        kept = sorted(first.values())
        if len(kept) == self.codes.shape[1]:
            return self, kept
        other_rows = self.elsewhere and replace(self.elsewhere, cells=tuple(self.elsewhere.cells[j] for j in kept))
        return replace(self, codes=self.codes[:, kept], elsewhere=other_rows)._merge_equal(), kept

    def take(self, at: Int) -> WeighedRows:
        groups = None if self.groups is None else self.groups[at]
        bags = tuple(bags.take(at) for bags in self.bags)
        codes = self.codes.take(at, axis=0)
        return WeighedRows(codes, self.labels[at], self.weights[at], groups, bags, self.extra[at], self.elsewhere)

    def weighing(self, weights: Real) -> WeighedRows:
        """The rows that weigh something, of these weights; their texts stay behind."""
        return replace(self, weights=weights, bags=()).take(np.flatnonzero(weights > 0))

    @property
    def n_folds(self) -> int:
        """In how many parts rows are dealt where something is chosen."""
        return 3 if len(self.labels) >= MANY_ROWS else 5

    def count_cells(self, sizes: Int, n_classes: int, threads: int) -> Real:
        """The weight of the rows in each cell, (cells, classes); ``sizes`` is the number of cells of each column."""
        if not len(sizes):
            return np.zeros((0, n_classes))
        cell_weights = _core.count_cells(self.codes, sizes, self.labels, self.weights, n_classes, threads)
        return cell_weights if self.elsewhere is None else cell_weights + np.concatenate(self.elsewhere.cells)

    def every_class(self, n_classes: int) -> Real:
        """The total weight of each class, including rows outside the sample."""
        here = self.class_weights(n_classes)
        return here if self.elsewhere is None else here + self.elsewhere.rows

    def class_weights(self, n_classes: int) -> Real:
        return np.asarray(np.bincount(self.labels, self.weights, n_classes), dtype=np.float64)

    def folds(self, n: int) -> Real:
        """Deals rows to folds, evenly in each class: the weight of each row in each fold, (rows, folds).

        A weight of 2 is dealt like two rows. Rows of a group go to one fold.
        """
        shares = np.zeros((len(self.labels), n))
        if self.groups is not None:
            names, group = np.unique(self.groups, return_inverse=True)
            weight = np.bincount(group, self.weights)
            load = np.zeros(n)
            fold = np.zeros(len(names), dtype=np.int64)
            for number in np.argsort(-weight, kind="stable").tolist():
                fold[number] = np.argmin(load)
                load[fold[number]] += weight[number]
            shares[np.arange(len(group)), fold[group]] = self.weights
            return shares
        for label in np.unique(self.labels):
            rows = np.flatnonzero(self.labels == label)
            end = np.cumsum(self.weights[rows])
            start = np.concatenate([[0.0], end[:-1]])
            for k in range(n):  # of the line from 0 to the class's weight, the units k, k + n, k + 2 n, …
                shares[rows, k] = _length_before(end, k, n) - _length_before(start, k, n)
        return np.maximum(shares, 0.0)


def _ranks(column: NDArray[np.uint32]) -> bytes:
    """The rank of each row's cell among those that occur: equal where columns say the same."""
    occurs = np.zeros(int(column.max(initial=0)) + 1, dtype=np.uint32)
    occurs[column] = 1
    return np.cumsum(occurs, dtype=np.uint32)[column].tobytes()


def _length_before(x: Real, k: int, n: int) -> Real:
    """How much of the line before x belongs to fold k, if units are dealt to n folds in turn."""
    full_rounds = np.floor(x / n)
    return np.asarray(full_rounds + np.clip(x - full_rounds * n - k, 0.0, 1.0))


def _labels(
    table: Table, batch: Batch, schema: Schema, classes: dict[Any, int]
) -> list[tuple[NDArray[np.int32], Real]]:
    """The class and weight of each row of a batch; with soft labels, a pair for each class."""
    weights = table.labels.weights_of(batch)
    if weights is not None and weights.ndim == 2:
        class_shares = ((classes.get(name, -1), weights[:, c]) for c, name in enumerate(table.labels.classes or ()))
        return [(np.full(batch.n_rows, label, dtype=np.int32), shares) for label, shares in class_shares]
    numbers, names, _ = number_classes(batch, schema, table.labels)
    place = np.array([*(classes.get(name, -1) for name in names), -1], dtype=np.int32)
    return [(place[numbers], np.ones(batch.n_rows) if weights is None else weights)]


def _groups(table: Table, batch: Batch) -> NDArray[np.uint64] | None:
    """A hash of the group of each row, by its name alone."""
    names = group_names(table, batch)
    if names is None:
        return None
    return hash_names(names.tolist())


def merge_equal(hashes: NDArray[np.uint64], weights: Real) -> tuple[Int, Int, Real]:
    """Merges rows with equal hashes, and sorts them by hash: the first row of each, the place of every row, and their weights."""
    order = np.lexsort((weights, hashes))
    ordered = hashes[order]
    is_new = np.ones(len(order), dtype=np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(is_new) - 1
    return order[is_new], place, np.add.reduceat(weights[order], np.flatnonzero(is_new))
