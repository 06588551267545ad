"""Columns of a table as words: of each row the cells that its values are in, and the wider ones that these are part of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.families.bags.lexicon import Bags
from banbury.families.cells import HALF_ROW, SMALLEST, Cells, codes_of, prior_of
from banbury.families.family import ColumnReader
from banbury.tally.label_sets import EVERY
from banbury.tally.tally import Tally
from banbury.threads import n_threads
from banbury.weighing.columns import cells_of, count_cells
from banbury.weighing.corrections import Reals32
from banbury.weighing.evidence import of_column
from banbury.weighing.model import WeighedParameters


@dataclass(frozen=True)
class CellWords:
    """Columns that have cells. The words of a column are the nodes of its tree, level by level; a row has one on each level."""

    cells: tuple[Cells, ...]

    @classmethod
    def of(cls, tally: Tally) -> CellWords:
        """Those of a tally of sets of labels, by the counts of all rows."""
        plain = replace(tally, schema=replace(tally.schema, labels=None))
        every = plain.of_classes([tally.classes.index(EVERY)], (True,))
        cells_by_name = cells_of(every, n_threads(None))
        return cls(tuple(cells_by_name[f.name] for f in tally.schema.features if f.name in cells_by_name))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(cells.feature.name for cells in self.cells)

    @cached_property
    def _starts(self) -> list[int]:
        """The first word of each column, then how many words there are."""
        sizes = [sum(int(level.max(initial=-1)) + 1 for level in cells.tree.levels) for cells in self.cells]
        return [0, *accumulate(sizes)]

    @cached_property
    def _words(self) -> list[Int]:
        """Of each column the words of its cells, (cells, levels)."""
        words = []
        for cells, start in zip(self.cells, self._starts, strict=False):
            sizes = [int(level.max(initial=-1)) + 1 for level in cells.tree.levels]
            firsts = start + np.concatenate([[0], np.cumsum(sizes[:-1], dtype=np.int64)])
            words.append(np.stack(cells.tree.levels, axis=1) + firsts)
        return words

    def __len__(self) -> int:
        return self._starts[-1]

    @cached_property
    def values(self) -> Real:
        """What each word counts in a row, whose length is one where no value is missing."""
        values = np.zeros(len(self))
        for words in self._words:
            values[words.ravel()] = (words.shape[1] * len(self.cells)) ** -0.5
        return values

    def codes(self, rows: ColumnReader, threads: int) -> NDArray[np.uint32]:
        """The cell of each row in each column, (rows, columns); the number of cells where a value is in none."""
        return codes_of(self.cells, rows, threads)

    def bags(self, codes: NDArray[np.uint32]) -> Bags:
        """The words of rows in these cells; none of a value that is in no cell."""
        words_by_column = []
        for j, cell_words in enumerate(self._words):
            words_by_column.append(np.concatenate([cell_words, np.full((1, cell_words.shape[1]), -1)])[codes[:, j]])
        words = np.hstack(words_by_column)
        offsets = np.concatenate([[0], np.cumsum((words >= 0).sum(axis=1))]).astype(np.int64)
        held = words[words >= 0].astype(np.uint32)
        hashes = np.zeros(len(words), dtype=np.uint64)
        return Bags(offsets, held, np.ones(len(held)), hashes, len(self))

    def counts(self, tally: Tally) -> list[Real]:
        """Rows of each cell of each column, (cells, classes), as they are counted now."""
        return count_cells(tally, self.cells)

    def of_cells(self, documents: Real) -> list[Real]:
        """Rows of the cells of each column, (cells, classes), from those of words."""
        return [documents[words[:, -1]] for words in self._words]

    def add_up_cells(self, corrections: Reals32) -> list[Real]:
        """Of each column what its cells add, (cells + 1, labels), from corrections of words; values in no cell add nothing."""
        scores = self.values[:, None] * corrections
        none = np.zeros((1, corrections.shape[1]))
        return [np.concatenate([scores[words].sum(axis=1), none]) for words in self._words]

    @cached_property
    def terms(self) -> _core.Terms:
        sizes = [cells.n_cells + 1 for cells in self.cells]
        return _core.Terms([of_column(j, np.arange(size)[:, None], [size]) for j, size in enumerate(sizes)])

    def scores(self, codes: NDArray[np.uint32], tables: Sequence[Real], threads: int) -> Real:
        """What the cells of rows add for each label, (rows, labels)."""
        table = np.concatenate([column_table.ravel() for column_table in tables])
        none = np.zeros(tables[0].shape[1])
        return self.terms.scores(codes, table, np.ones(len(tables)), none, None, threads)

    def parameters(self, tables: Sequence[Real], counts: Sequence[Real]) -> WeighedParameters:
        """Of two classes, what cells add to each, and the rows that they have."""
        features = tuple(cells.feature for cells in self.cells)
        return WeighedParameters(features, self.cells, self.terms, tuple(tables), tuple(counts))

    def without_forgotten(self, tally: Tally) -> tuple[CellWords, NDArray[np.bool_]]:
        """The same without values that no row of the tally has any more; and whether each word stays."""
        columns = []
        stays = np.ones(len(self), dtype=np.bool_)
        for cells, words in zip(self.cells, self._words, strict=True):
            places, rest = cells.restrict(tally.of(cells.feature.name).keys[0])
            columns.append(rest)
            stays[np.delete(words[:, -1], places)] = False
        return (self if stays.all() else CellWords(tuple(columns))), stays


class CellEvidence:
    """What cells say of labels in log-odds, shrunk towards the wider cells that they are part of; with any row left out."""

    def __init__(
        self, words: CellWords, label_counts: Sequence[Real], all_counts: Sequence[Real], n_own: Real, n_rows: float
    ) -> None:
        """From the rows of each cell with each label, (cells, labels), and of all, and how many rows have each label."""
        self.words = words
        self.own = label_counts
        self.every = all_counts
        self.n_own = n_own
        self.n_rows = n_rows

    @cached_property
    def _tables(self) -> list[Real]:
        """Of each column, (cells + 1, 3, labels): as counted, without a row that has not the label, without one that has."""
        tables = []
        rest = np.stack([self.n_rows - self.n_own, self.n_own], axis=1) + HALF_ROW
        prior = rest / rest.sum(axis=1, keepdims=True)
        for cells, label_counts, all_counts in zip(self.words.cells, self.own, self.every, strict=True):
            table = np.zeros((cells.n_cells + 1, 3, label_counts.shape[1]))
            for k in range(label_counts.shape[1]):
                rows = np.stack([all_counts - label_counts[:, k], label_counts[:, k]], axis=1)
                strengths = cells.tree.choose_strengths(rows, prior_of(rows))[0]
                for at, shares in (
                    (0, cells.tree.shares(rows, strengths, prior[k])[-1][:, None]),
                    (slice(1, None), cells.tree.shares_left_out(rows, strengths, prior[k])[-1]),
                ):
                    says = np.log(np.maximum(shares, SMALLEST) / prior[k])
                    table[:-1, at, k] = np.squeeze(says[..., 1] - says[..., 0], axis=1 if at == 0 else ())
            tables.append(table)
        return tables

    @property
    def plain(self) -> list[Real]:
        """What the cells of each column say, (cells + 1, labels)."""
        return [table[:, 0] for table in self._tables]

    def leave_each_out(self, codes: NDArray[np.uint32], flags: NDArray[np.bool_]) -> Real:
        """What the cells of each row say when that row was not counted, (rows, labels)."""
        says = np.zeros(flags.shape)
        labels = np.arange(flags.shape[1])
        for j, table in enumerate(self._tables):
            says += table[codes[:, j][:, None], 1 + flags, labels]
        return says
