"""The rows that weights are learned from: cells, words, class and weight of each, in an order that depends on their content."""

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
from banbury.families.cells import Cells, encode_cells
from banbury.reading import Batch
from banbury.rows.sampling import group_names
from banbury.tally.schema import Schema
from banbury.tally.table import HASH_FACTOR, Table, hash_texts, mix, number_classes
from banbury.tally.tally import Tally
from banbury.threads import look_up, n_threads, run_by_rows
from banbury.weighing.columns import WeighedColumns, count_cells

MANY_ROWS = 10_000  # from so many rows on, three folds suffice
FIRST_ROWS = (
    1_024  # rows on which columns are compared first: 16 columns of 200,000 rows took 65 ms without, 1 ms with it
)
FEW_CLASSES = 20  # with more classes, tables that grow with their square are avoided


@dataclass(frozen=True)
class CountsOutsideSample:
    """The counts of the rows outside a sample. Weights are learned on the sample, with the evidence of all rows."""

    rows: Real  # the number of rows of each class
    cells: tuple[Real, ...]  # of each column with cells: the rows in each cell (cells, classes)
    documents: tuple[Real, ...]  # of each text column: the rows with each word (words, classes)

    @classmethod
    def of(cls, tally: Tally, columns: WeighedColumns, sample: WeighedRows) -> CountsOutsideSample:
        """Returns the counts of all rows, which a tally has, less those of the rows of a sample. ``columns`` are those
        that are weighed.
        """
        n_classes = len(tally.classes)
        all_cells = count_cells(tally, columns.cells)  # rows of each cell (cells × classes), an array per column
        sizes = np.array([len(cell_counts) for cell_counts in all_cells])  # cells of each column
        sample_cells = np.split(sample.count_cells(sizes, n_classes, threads=1), np.cumsum(sizes)[:-1])
        sets_of_one = np.arange(len(sample.labels) + 1), sample.labels  # the class of each row as a set of labels
        # Rows with each word (words × classes), an array per text column.
        all_documents = [lexicon.documents() for lexicon in columns.texts]
        sample_documents = [bags.count(sets_of_one, sample.weights, n_classes) for bags in sample.bags]

        def subtract(all_counts: Sequence[Real], sample_counts: Sequence[Real]) -> tuple[Real, ...]:
            """Returns the counts of all rows less those of the sample, column by column."""
            return tuple(
                np.maximum(counts - counts_in_sample, 0.0)
                for counts, counts_in_sample in zip(all_counts, sample_counts, strict=True)
            )

        (rows_outside,) = subtract([tally.rows.value], [sample.class_weights(n_classes)])
        return cls(rows_outside, subtract(all_cells, sample_cells), subtract(all_documents, sample_documents))


@dataclass(frozen=True)
class WeighedRows:
    """The rows that weights are learned from.

    ``codes`` is the cell of each row in each column (rows × columns), ``labels`` the class number of each row, and
    ``groups`` a hash of its group, if rows of a group must stay in one fold. ``bags`` are the words of each text column,
    and ``column_scores`` the scores of the columns without cells (rows × columns × classes). ``outside_sample`` has the counts of
    the rows outside a sample, if these rows are one.
    """

    codes: NDArray[np.uint32]
    labels: NDArray[np.int32]
    weights: Real  # of each row
    groups: NDArray[np.uint64] | None
    bags: tuple[Bags, ...]
    column_scores: Real
    outside_sample: CountsOutsideSample | None = None

    @classmethod
    def of(cls, table: Table, tally: Tally, weighed: WeighedColumns) -> WeighedRows:
        """Reads and returns the rows of a table that a tally counted. Equal rows are merged, and the order depends only
        on what rows contain. ``weighed`` are the columns that are weighed.
        """
        schema = tally.schema
        class_numbers = {label: number for number, label in enumerate(tally.classes)}
        threads = table.labels.threads
        n_classes = len(tally.classes)
        pieces: list[WeighedRows] = []  # one per batch; with soft labels, one per batch and class
        for batch in table.batches("weighing"):
            batch = table.align(batch, schema)
            codes = encode_cells(weighed.cells, batch, threads)  # the cell of each row in each column
            groups = _groups(table, batch)  # a hash of each row's group, or None
            bags = tuple(words.bags(batch, tally.of(words.feature.name), threads) for words in weighed.texts)
            for labels, weights in _labels(table, batch, schema, class_numbers):
                usable = np.flatnonzero((labels >= 0) & (weights > 0))  # numbers of rows
                rows = cls(codes, labels, weights, groups, bags, column_scores=np.zeros((len(labels), 0, n_classes)))
                rows_batch = batch
                if len(usable) < len(labels):
                    rows = rows.take(usable)
                    rows_batch = batch.take(usable)
                column_scores = weighed.leave_each_out(tally, rows_batch, rows.labels, rows.weights, threads)
                pieces.append(replace(rows, column_scores=column_scores))
        return cls._concatenate(pieces)._merge_equal()

    @classmethod
    def _concatenate(cls, pieces: Sequence[WeighedRows]) -> WeighedRows:
        """Returns the rows of all pieces together, one piece after the other."""
        if len(pieces) == 1:
            return pieces[0]
        names = ("codes", "labels", "weights", "column_scores")  # of fields with an entry for each row
        codes, labels, weights, column_scores = (
            np.concatenate([getattr(piece, name) for piece in pieces]) for name in names
        )
        groups = None if pieces[0].groups is None else np.concatenate([piece.groups for piece in pieces])
        bags = tuple(  # one ``Bags`` per text column
            Bags.together(bags_of_column) for bags_of_column in zip(*(piece.bags for piece in pieces), strict=True)
        )
        return cls(codes, labels, weights, groups, bags, column_scores)

    def _merge_equal(self) -> WeighedRows:
        """Returns the rows with equal ones merged (their weights are added), sorted by a hash of their contents. Rows
        are taken for equal if their 64-bit hashes are.
        """
        score_bits = np.ascontiguousarray(self.column_scores).view(np.uint64)  # rows × columns × classes
        n_columns, n_classes = score_bits.shape[1:]
        score_columns = score_bits.reshape(len(score_bits), n_columns * n_classes).T
        group_columns = [] if self.groups is None else [self.groups]
        columns = [*self.codes.T, *score_columns, *(bags.hashes for bags in self.bags), *group_columns]

        def hash_rows(rows: slice) -> NDArray[np.uint64]:
            """Returns a hash of the contents of each of these rows."""
            hashes = mix(self.labels[rows].astype(np.uint64) + np.uint64(1))
            for column in columns:
                hashes = mix(hashes * HASH_FACTOR + column[rows].astype(np.uint64))
            return hashes

        hashes = np.concatenate(run_by_rows(hash_rows, len(self.labels), n_threads(None)))
        first_rows, _, weights = merge_equal(hashes, self.weights)
        return replace(self.take(first_rows), weights=weights)

    def drop_duplicate_columns(self, columns: Sequence[Cells]) -> tuple[WeighedRows, list[int]]:
        """Drops columns with the same cells and trend as an earlier column. Returns the rows without them, merged where
        they are now equal, and the numbers of the columns that stay. ``columns`` has the cells of each column.
        """
        # The positions of the intervals of each column, as bytes that can be compared; empty without a trend.
        trends = [(cells.positions.round(6) + 0.0).tobytes() if cells.has_trend else b"" for cells in columns]
        # The first rows tell most columns apart; only columns that agree there are compared on all rows.
        keys = [(_ranks(self.codes[:FIRST_ROWS, column]), trend) for column, trend in enumerate(trends)]
        n_columns_with_key = Counter(keys)
        first_with_key: dict[tuple[bytes, bytes], int] = {}  # the first column with these ranks and this trend
        for column, key in enumerate(keys):
            if n_columns_with_key[key] > 1:
                key = (_ranks(self.codes[:, column]), trends[column])
            first_with_key.setdefault(key, column)
        columns_left = list(first_with_key.values())
        if len(columns_left) == self.codes.shape[1]:
            return self, columns_left
        outside_sample = self.outside_sample and replace(
            self.outside_sample, cells=tuple(self.outside_sample.cells[column] for column in columns_left)
        )
        return replace(
            self, codes=self.codes[:, columns_left], outside_sample=outside_sample
        )._merge_equal(), columns_left

    def take(self, row_numbers: Int) -> WeighedRows:
        """Returns the rows with these numbers, in this order."""
        groups = None if self.groups is None else self.groups[row_numbers]
        bags = tuple(bags.take(row_numbers) for bags in self.bags)
        codes = look_up(self.codes, row_numbers.astype(np.int32))
        labels = self.labels[row_numbers]
        weights = self.weights[row_numbers]
        return WeighedRows(codes, labels, weights, groups, bags, self.column_scores[row_numbers], self.outside_sample)

    def reweight(self, weights: Real) -> WeighedRows:
        """Returns the rows with other weights (one per row), without rows of weight 0 and without words of texts."""
        return replace(self, weights=weights, bags=()).take(np.flatnonzero(weights > 0))

    @property
    def n_folds(self) -> int:
        """The number of folds for choosing settings: fewer for many rows."""
        return 3 if len(self.labels) >= MANY_ROWS else 5

    def count_cells(self, sizes: Int, n_classes: int, threads: int) -> Real:
        """Returns the weight of the rows in each cell of all columns, column by column (cells × classes), including the
        rows outside a sample. ``sizes`` has the number of cells of each column, ``n_classes`` is the number of classes,
        and ``threads`` says how many to use.
        """
        if not len(sizes):
            return np.zeros((0, n_classes))
        cell_weights = _core.count_cells(self.codes, sizes, self.labels, self.weights, n_classes, threads)
        return cell_weights if self.outside_sample is None else cell_weights + np.concatenate(self.outside_sample.cells)

    def count_classes(self, n_classes: int) -> Real:
        """Returns the total weight of each class (classes,), including the rows outside a sample."""
        sample_weights = self.class_weights(n_classes)
        return sample_weights if self.outside_sample is None else sample_weights + self.outside_sample.rows

    def class_weights(self, n_classes: int) -> Real:
        """Returns the total weight of each class among these rows (classes,)."""
        return np.asarray(np.bincount(self.labels, self.weights, n_classes), dtype=np.float64)

    def folds(self, n_folds: int) -> Real:
        """Assigns rows to ``n_folds`` folds, evenly in each class. Returns the weight of each row in each fold (rows ×
        folds).

        A row of weight 2 is treated like two rows. Rows of a group are in one fold.
        """
        fold_weights = np.zeros((len(self.labels), n_folds))
        if self.groups is not None:
            distinct_groups, group_of_row = np.unique(self.groups, return_inverse=True)
            weight_of_group = np.bincount(group_of_row, self.weights)
            weight_of_fold = np.zeros(n_folds)
            fold_of_group = np.zeros(len(distinct_groups), dtype=np.int64)
            # The heaviest group first, each to the fold with the least weight so far.
            for heaviest in np.argsort(-weight_of_group, kind="stable").tolist():
                fold_of_group[heaviest] = np.argmin(weight_of_fold)
                weight_of_fold[fold_of_group[heaviest]] += weight_of_group[heaviest]
            fold_weights[np.arange(len(group_of_row)), fold_of_group[group_of_row]] = self.weights
            return fold_weights
        # The rows of a class are laid end to end on a line, each as long as its weight, and fold k gets the unit lengths
        # k, k + n, k + 2 n, … of the line.
        for label in np.unique(self.labels):
            rows = np.flatnonzero(self.labels == label)
            ends = np.cumsum(self.weights[rows])  # where each row ends on the line
            starts = np.concatenate([[0.0], ends[:-1]])
            for fold in range(n_folds):
                fold_weights[rows, fold] = _length_before(ends, fold, n_folds) - _length_before(starts, fold, n_folds)
        return np.maximum(fold_weights, 0.0)


def _ranks(cells_of_rows: NDArray[np.uint32]) -> bytes:
    """Returns the rank of each row's cell in one column among the cells that occur, as the bytes of an array (rows,).
    Equal ranks mean that two columns divide rows alike. ``cells_of_rows`` has the cell number of each row.
    """
    # Whether each cell occurs, as 1 or 0.
    occurs = np.zeros(int(cells_of_rows.max(initial=0)) + 1, dtype=np.uint32)
    occurs[cells_of_rows] = 1
    return np.cumsum(occurs, dtype=np.uint32)[cells_of_rows].tobytes()


def _length_before(x: Real, k: int, n: int) -> Real:
    """Returns how much of the line from 0 to each of the positions x belongs to fold k if its unit lengths are assigned
    to n folds in turn.
    """
    full_cycles = np.floor(x / n)  # before x: n unit lengths each, one of which is of fold k
    return np.asarray(full_cycles + np.clip(x - full_cycles * n - k, 0.0, 1.0))


def _labels(
    table: Table, batch: Batch, schema: Schema, class_numbers: dict[Any, int]
) -> list[tuple[NDArray[np.int32], Real]]:
    """Returns one pair of arrays: the class number (−1: none) and the weight of each of a batch's rows. With soft
    labels, returns a pair for each class. ``table`` says where the labels and weights are, ``schema`` how the labels
    are read, and ``class_numbers`` has the number of each class.
    """
    weights = table.labels.weights_of(batch)
    if weights is not None and weights.ndim == 2:
        class_shares = (  # the class number, and the weight of each row in this class
            (class_numbers.get(name, -1), weights[:, column]) for column, name in enumerate(table.labels.classes or ())
        )
        return [(np.full(batch.n_rows, class_number, dtype=np.int32), shares) for class_number, shares in class_shares]
    numbers_in_batch, names, _ = number_classes(batch, schema, table.labels)
    # The class number of each name of the batch, and at the end −1, for rows without a name (number −1).
    class_of_name = np.array([*(class_numbers.get(name, -1) for name in names), -1], dtype=np.int32)
    return [(class_of_name[numbers_in_batch], np.ones(batch.n_rows) if weights is None else weights)]


def _groups(table: Table, batch: Batch) -> NDArray[np.uint64] | None:
    """Returns a hash of the name of the group of each of a batch's rows (rows,), or None if rows have no groups.
    ``table`` says where the groups are.
    """
    names = group_names(table, batch)
    return None if names is None else hash_texts(names.tolist())


def merge_equal(hashes: NDArray[np.uint64], weights: Real) -> tuple[Int, Int, Real]:
    """Merges rows with equal hashes and sorts them by hash. Returns, for each distinct hash in order, the number of its
    first row; the new number of every row; and the summed weights by new number. ``hashes`` and ``weights`` have one
    entry per row.
    """
    by_hash = np.argsort(hashes)  # the numbers of the rows, sorted
    sorted_hashes = hashes[by_hash]
    is_new = np.ones(len(by_hash), dtype=np.bool_)  # whether each of the sorted rows differs from the one before
    is_new[1:] = sorted_hashes[1:] != sorted_hashes[:-1]
    # Equal rows are sorted by weight, then as they came. Where few are equal, sorting these alone takes 0.11 s of 800,000
    # rows instead of 0.29 s.
    equal_positions = np.flatnonzero(~is_new | np.append(~is_new[1:], False))  # in ``by_hash``
    if 2 * len(equal_positions) < len(by_hash):
        rows = by_hash[equal_positions]
        by_hash[equal_positions] = rows[np.lexsort((rows, weights[rows], hashes[rows]))]
    else:
        by_hash = np.lexsort((weights, hashes))
    new_number = np.empty(len(by_hash), dtype=np.int64)
    new_number[by_hash] = np.cumsum(is_new) - 1
    return by_hash[is_new], new_number, np.add.reduceat(weights[by_hash], np.flatnonzero(is_new))
