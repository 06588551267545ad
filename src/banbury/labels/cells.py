"""The values of columns as words: the cell that contains a value, and the wider cells that contain that cell."""

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
from banbury.families.cells import HALF_ROW, SMALLEST, Cells, encode_cells
from banbury.families.family import ColumnReader, Features
from banbury.tally.label_sets import EVERY
from banbury.tally.tally import Label, Tally
from banbury.threads import n_threads
from banbury.weighing.columns import cells_of, count_cells
from banbury.weighing.corrections import Reals32
from banbury.weighing.evidence import of_column
from banbury.weighing.model import WeighedParameters


def tally_of_all_rows(tally: Tally) -> Tally:
    """Returns the tally of all rows as one class (True), from a tally of label sets, whose class EVERY has all rows."""
    return as_one_class(tally, EVERY)


def as_one_class(tally: Tally, label: Label) -> Tally:
    """Returns the tally of the rows with a label as one class (True), from a tally of label sets."""
    # ``_of_classes`` takes the numbers of the classes to keep, and their new names.
    return replace(tally, schema=replace(tally.schema, labels=None))._of_classes([tally.classes.index(label)], (True,))


@dataclass(frozen=True)
class CellWords:
    """Columns whose values are in cells, and the words that stand for cells.

    The cells of a column are the leaves of a tree of intervals or groups of values. Every node of the tree is a word, so
    that a row has one word for each level of each column's tree.
    """

    cells: tuple[Cells, ...]  # one per column

    @classmethod
    def of(cls, tally: Tally) -> CellWords:
        """Returns the columns of a tally of label sets that have cells. Cells come from the counts of all rows."""
        cells_by_name = cells_of(tally_of_all_rows(tally), n_threads(None))  # of the columns that have cells
        return cls(
            tuple(cells_by_name[feature.name] for feature in tally.schema.features if feature.name in cells_by_name)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order of ``cells``."""
        return tuple(cells.feature.name for cells in self.cells)

    @cached_property
    def _first_words(self) -> list[int]:
        """The number of the first word of each column, and at the end the number of all words. Each level of a tree has
        the number of the node that contains each cell.
        """
        # The number of words of each column: the nodes of all levels.
        n_words = [sum(int(level.max(initial=-1)) + 1 for level in cells.tree.levels) for cells in self.cells]
        return [0, *accumulate(n_words)]

    @cached_property
    def _words(self) -> list[Int]:
        """The numbers of the words of each cell, by column: arrays (cells × levels), the narrowest last. The words of a
        column are numbered level by level.
        """
        words_by_column = []
        for cells, first_word in zip(self.cells, self._first_words, strict=False):
            n_nodes = [int(level.max(initial=-1)) + 1 for level in cells.tree.levels]  # of each level
            first_by_level = first_word + np.concatenate([[0], np.cumsum(n_nodes[:-1], dtype=np.int64)])
            words_by_column.append(np.stack(cells.tree.levels, axis=1) + first_by_level)
        return words_by_column

    def __len__(self) -> int:
        """The number of words of all columns."""
        return self._first_words[-1]

    @cached_property
    def word_values(self) -> Real:
        """What each word counts in a row (words,), so that a row without missing values is a vector of length one."""
        word_values = np.zeros(len(self))
        for cell_words in self._words:  # of one column: cells × levels
            word_values[cell_words.ravel()] = (cell_words.shape[1] * len(self.cells)) ** -0.5
        return word_values

    def codes(self, rows: ColumnReader, threads: int) -> NDArray[np.uint32]:
        """Returns the cell number of each row in each column (rows × columns). The number of cells stands for no cell.
        ``threads``: how many to use.
        """
        return encode_cells(self.cells, rows, threads)

    def bags(self, codes: NDArray[np.uint32]) -> Bags:
        """Returns the words of rows, each once, from their cell numbers ``codes`` (rows × columns). A value in no cell
        has no words.
        """
        words_by_column = []  # the words of each row (rows × levels)
        for column_number, cell_words in enumerate(self._words):  # cell_words: cells × levels
            no_words = np.full((1, cell_words.shape[1]), -1)  # the words of the code for no cell
            words_by_column.append(np.concatenate([cell_words, no_words])[codes[:, column_number]])
        row_words = np.hstack(words_by_column)  # rows × levels of all columns; -1 for no word
        # Where the words of each row start among the words of all rows.
        offsets = np.concatenate([[0], np.cumsum((row_words >= 0).sum(axis=1))]).astype(np.int64)
        present_words = row_words[row_words >= 0].astype(np.uint32)
        hashes = np.zeros(len(row_words), dtype=np.uint64)  # of texts, which these rows do not have
        return Bags(offsets, present_words, np.ones(len(present_words)), hashes, len(self))

    def counts(self, tally: Tally) -> list[Real]:
        """Returns the number of rows in each cell, by column: an array (cells × the tally's classes) each."""
        return count_cells(tally, self.cells)

    def of_cells(self, documents: Real) -> list[Real]:
        """Returns the number of rows in each column's cells, an array by column, from ``documents``, the number of rows
        that have each word.

        The cell is the narrowest word, which is the last. Axes after the first stay: (words, labels) gives (cells, labels).
        """
        return [documents[cell_words[:, -1]] for cell_words in self._words]

    def add_up_cells(self, corrections: Reals32) -> list[Real]:
        """Returns for each column a table (cells + 1, labels) of what each cell adds to the scores, given the corrections
        of words (words × labels). The last row is for values in no cell, and is 0.
        """
        word_scores = self.word_values[:, None] * corrections  # words × labels
        no_cell = np.zeros((1, corrections.shape[1]))  # the last row
        return [np.concatenate([word_scores[cell_words].sum(axis=1), no_cell]) for cell_words in self._words]

    @cached_property
    def terms(self) -> _core.Terms:
        """The core's description of the columns: one term each, with a place for each cell and one for no cell."""
        n_places = [cells.n_cells + 1 for cells in self.cells]
        return _core.Terms(
            [of_column(number, np.arange(size)[:, None], [size]) for number, size in enumerate(n_places)]
        )

    def scores(self, codes: NDArray[np.uint32], tables: Sequence[Real], threads: int) -> Real:
        """Returns what the cells of rows add to the log-odds of each label (rows × labels), from their cell numbers
        ``codes`` (rows × columns) and the table of each column (cells + 1, labels). ``threads``: how many to use.
        """
        # The tables of all columns, each cell by cell.
        joined_tables = np.concatenate([column_table.ravel() for column_table in tables])
        no_intercepts = np.zeros(tables[0].shape[1])
        return self.terms.scores(
            codes, joined_tables, weights=np.ones(len(tables)), intercepts=no_intercepts, own=None, threads=threads
        )

    def parameters(self, tables: Sequence[Real], counts: Sequence[Real]) -> WeighedParameters:
        """Returns the parameters of a model with two classes. ``tables`` have what the cells of each column add to the
        score of each class (cells + 1, classes), and ``counts`` how many rows they have (cells, classes).
        """
        features = Features.of(cells.feature for cells in self.cells)
        return WeighedParameters(features, self.cells, self.terms, tuple(tables), tuple(counts))

    def without_forgotten(self, tally: Tally) -> tuple[CellWords, NDArray[np.bool_]]:
        """Returns the columns without values that no row of the tally has any more, and whether each word remains
        (words,).
        """
        columns = []  # the remaining cells of each
        remains = np.ones(len(self), dtype=np.bool_)  # whether each word does
        for cells, cell_words in zip(self.cells, self._words, strict=True):  # cell_words: cells × levels
            # The numbers of the cells that remain, and these cells.
            cell_numbers, remaining_cells = cells.restrict(tally.of(cells.feature.name).keys[0])
            columns.append(remaining_cells)
            remains[np.delete(cell_words[:, -1], cell_numbers)] = False
        return (self if remains.all() else CellWords(tuple(columns))), remains


@dataclass(frozen=True, eq=False)
class CellEvidence:
    """The evidence of cells about labels, in log-odds, shrunk towards that of the wider cells that contain them. It can
    be computed without any one row.

    The rows of all labels do not add up to all rows, because a row may have several labels or none.
    """

    words: CellWords  # the columns that have cells
    label_counts: Sequence[Real]  # of each column: how many rows of each label are in each cell (cells, labels)
    all_counts: Sequence[Real]  # of each column: how many of all rows are in each cell (cells,)
    rows_by_label: Real  # (labels,)
    n_rows: float  # all rows

    @cached_property
    def _tables(self) -> list[Real]:
        """The log-odds of each column's cells, (cells + 1, 3, labels).

        The middle axis is: from all rows; without one row that lacks the label; without one row that has it. The last cell is
        for values in no cell, and is 0.
        """
        tables = []
        # Rows without the label and with it, plus half a row each: labels × (without, with).
        smoothed_rows = np.stack([self.n_rows - self.rows_by_label, self.rows_by_label], axis=1) + HALF_ROW
        priors = smoothed_rows / smoothed_rows.sum(axis=1, keepdims=True)  # labels × (without, with)
        for cells, label_counts, all_counts in zip(self.words.cells, self.label_counts, self.all_counts, strict=True):
            table = np.zeros((cells.n_cells + 1, 3, label_counts.shape[1]))
            for label_number, prior in enumerate(priors):
                # Rows of each cell: cells × (without the label, with it).
                counts = np.stack([all_counts - label_counts[:, label_number], label_counts[:, label_number]], axis=1)
                tree = cells.tree.with_likeliest_strengths(counts)
                shares = tree.shares(counts, prior)[-1]  # of the last level, the cells: cells × classes
                shares_left_out = tree.shares_left_out(counts, prior)[-1]  # cells × class of the row × classes
                table[:-1, 0, label_number] = _log_odds_ratio(shares, prior)
                table[:-1, 1:, label_number] = _log_odds_ratio(shares_left_out, prior)
            tables.append(table)
        return tables

    @property
    def plain(self) -> list[Real]:
        """The log-odds of each column's cells, from all rows: an array (cells + 1, labels) by column."""
        return [table[:, 0] for table in self._tables]

    def leave_each_out(self, codes: NDArray[np.uint32], flags: NDArray[np.bool_]) -> Real:
        """Returns the log-odds of each row's cells from all other rows (rows × labels), given the rows' cell numbers,
        ``codes`` (rows × columns), and which labels they have, ``flags`` (rows × labels).
        """
        log_odds = np.zeros(flags.shape)
        label_numbers = np.arange(flags.shape[1])
        for column_number, table in enumerate(self._tables):
            # 1 + flag: the entry without one row that lacks the label, or that has it.
            log_odds += table[codes[:, column_number][:, None], 1 + flags, label_numbers]
        return log_odds


def _log_odds_ratio(shares: Real, prior: Real) -> Real:
    """Returns the log-odds of the second class less its prior log-odds. ``shares`` are P(class | cell); their last axis,
    and the only one of ``prior``, P(class), is the two classes.
    """
    log_ratios = np.log(np.maximum(shares, SMALLEST) / prior)
    return np.asarray(log_ratios[..., 1] - log_ratios[..., 0])
