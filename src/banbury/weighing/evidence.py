"""Evidence tables: the evidence of the cells of columns and of pairs of columns for each class, with all rows or one left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.families.cells import HALF_ROW, SMALLEST, Cells, Forest, Nodes, Tree
from banbury.weighing.rows import FEW_CLASSES, WeighedRows
from banbury.weighing.trends import Trends

MOST_PAIR_CELLS = 1 << 16  # a pair with more cells is not examined
MOST_PAIR_NUMBERS = 1 << 22  # cells × classes × classes of a pair with more than FEW_CLASSES: 32 MB
STRENGTHS: Real = 4.0 ** np.arange(6, dtype=np.float64)  # m of a pair: 1 to 1,024


@dataclass(frozen=True)
class WeighedPair:
    """Two columns, by number, and the strength of the prior that shrinks their joint evidence to the sum of their own."""

    first: int
    second: int
    strength: float  # in rows


def most_pair_cells(n_classes: int) -> int:
    """Returns how many cells a pair of columns may have if there are ``n_classes`` classes. The limit falls with the
    square of this number, as the pair's table grows with it.
    """
    return MOST_PAIR_CELLS if n_classes <= FEW_CLASSES else min(MOST_PAIR_CELLS, MOST_PAIR_NUMBERS // n_classes**2)


# Terms ----------------------------------------------------------------------------------------------------------------


NO_SECOND_COLUMN = np.zeros((1, 1), dtype=np.uint32)


def of_column(column: int, cells: Any, sizes: Sequence[int]) -> _core.Group:
    """Returns the term of the column with the number ``column`` for the kernels: the column, the cell of each of its
    codes on each level (``cells``, codes × levels), no second column (−1), and the number of cells of each level
    (``sizes``).
    """
    return column, np.ascontiguousarray(cells, dtype=np.uint32), -1, NO_SECOND_COLUMN, sizes


@dataclass(frozen=True)
class PairedColumns:
    """The columns, trends and pairs whose cells are weighed, and how rows find their cells."""

    columns: tuple[Cells, ...]  # the cells of each column
    trends: tuple[int, ...]  # the numbers of the columns whose trend is also evidence
    pairs: tuple[WeighedPair, ...]

    @cached_property
    def forest(self) -> Forest:
        """The trees of all columns, for kernels that compute their shares."""
        return Forest([cells.tree for cells in self.columns])

    @cached_property
    def sizes(self) -> Int:
        """The number of cells of each column (columns,), without that for unknown values."""
        return np.array([cells.n_cells for cells in self.columns], dtype=np.int64)

    @cached_property
    def starts(self) -> Int:
        """The number of each column's first cell among the cells of all columns; last, the number of cells."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @cached_property
    def scoring_terms(self) -> _core.Terms:
        """The terms that rows are scored by, for the kernels: one for each column, each trend and each pair. A column
        has one more cell, for unknown values.
        """
        sizes = enumerate((self.sizes + 1).tolist())
        terms = [of_column(column, np.arange(size, dtype=np.uint32)[:, None], [size]) for column, size in sizes]
        terms += [terms[column] for column in self.trends]
        return _core.Terms([*terms, *(self._of_pair(pair, [True]) for pair in self.pairs)])

    @cached_property
    def trend_intervals(self) -> tuple[Trends, NDArray[np.bool_], NDArray[np.bool_]]:
        """The trends of columns, and two masks.

        The cells of a column of numbers are intervals of its axis, and its trend is a normal curve per class over their
        positions. The first mask marks the intervals of columns with a trend among the cells of all columns. The second
        marks them among the cells of these columns only, where each column has one more cell, for unknown values.
        """
        columns = list(self.trends)  # the numbers of those with a trend
        positions = [self.columns[column].positions for column in columns]  # of the intervals of each
        lengths = np.array([len(positions_of_column) for positions_of_column in positions], dtype=np.int64)
        n_intervals = np.zeros(len(self.columns), dtype=np.int64)  # of every column; 0: it has no trend
        n_intervals[columns] = lengths
        in_all_cells = _mark_first(n_intervals, self.sizes)
        in_trend_cells = _mark_first(lengths, self.sizes[columns] + 1)
        return Trends(np.concatenate([[], *positions]), lengths), in_all_cells, in_trend_cells

    @cached_property
    def correction_terms(self) -> _core.Terms:
        """The terms that corrections are learned for, for the kernels: every level of each column and each pair."""
        columns = [_of_levels(column, cells.tree) for column, cells in enumerate(self.columns)]
        return _core.Terms([*columns, *(self._of_pair(pair, self._levels(pair)) for pair in self.pairs)])

    def _levels(self, pair: WeighedPair) -> list[bool]:
        """Returns for each level of a pair whether its cells are fine: a coarse level and then a fine one, or the fine
        one alone if both have the same cells.
        """
        first = self.columns[pair.first].nodes  # of the first column: fine and coarse ones
        second = self.columns[pair.second].nodes
        return [True] if (first.n_coarse, second.n_coarse) == (first.n_fine, second.n_fine) else [False, True]

    def _of_pair(self, pair: WeighedPair, fine: Sequence[bool]) -> _core.Group:
        """Returns the term of a pair for the kernels, with one level of cells for each flag in ``fine``: True for the
        fine cells of both columns, False for the coarse ones. It has for each column its number and what each of its
        codes adds to the number of the cell (codes × levels), and at the end the number of cells of each level.
        """
        first = self.columns[pair.first].nodes  # the fine node of each cell, and the coarse one of each fine node
        second = self.columns[pair.second].nodes

        def node_of_cell(nodes: Nodes) -> NDArray[np.uint32]:
            """Returns the node of each cell of a column (cells × levels), on one level for each flag in ``fine``: its
            fine node, or its coarse one.
            """
            return np.stack([nodes.fine if is_fine else nodes.coarse[nodes.fine] for is_fine in fine], axis=1)

        def n_nodes(nodes: Nodes) -> list[int]:
            """Returns the number of nodes of a column on each level: one for each flag in ``fine``."""
            return [nodes.n_fine if is_fine else nodes.n_coarse for is_fine in fine]

        widths = np.array(n_nodes(second), dtype=np.uint32)  # cells of the pair for one node of the first column
        n_cells = [n_first * n_second for n_first, n_second in zip(n_nodes(first), n_nodes(second), strict=True)]
        return pair.first, node_of_cell(first) * widths, pair.second, node_of_cell(second), n_cells


def _of_levels(column: int, tree: Tree) -> _core.Group:
    """Returns the term of the column with the number ``column`` for the kernels, with all levels of its tree; the last
    cell of each level is for unknown values.
    """
    levels = np.stack(tree.levels, axis=1)  # cells × levels: the node of each cell
    unknown = levels.max(axis=0, initial=-1) + 1  # the number of the node for unknown values, on each level
    return of_column(column, np.concatenate([levels, unknown[None]]), (unknown + 1).tolist())


def _mark_first(n: Int, sizes: Int) -> NDArray[np.bool_]:
    """Marks the first ``n[i]`` elements of block i, which has ``sizes[i]`` elements; blocks follow one another. Returns
    one boolean per element of all blocks.
    """
    position_in_block = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return position_in_block < np.repeat(n, sizes)


# Evidence -------------------------------------------------------------------------------------------------------------


class CountedEvidence:
    """The evidence of the cells of columns, trends and pairs, from counted rows; with all rows, or with one row left
    out. Trends are normal curves over the positions of a column's numbers.
    """

    def __init__(
        self, layout: PairedColumns, rows: WeighedRows, n_classes: int, threads: int, counts: Real | None = None
    ) -> None:
        """Counts the cells of the rows unless they are counted already.

        Args:
            layout: The columns, trends and pairs whose cells are weighed.
            rows: The rows, with the cell of each in each column.
            n_classes: The number of classes.
            threads: How many threads to use.
            counts: The number of rows in each cell of all columns (cells × classes).
        """
        self.layout = layout
        self.rows = rows
        self.n_classes = n_classes
        self.threads = threads
        self.columns = layout.columns
        self.pairs = layout.pairs
        self.counts = rows.count_cells(layout.sizes, n_classes, threads) if counts is None else counts

    def of_rows(self, rows: WeighedRows) -> CountedEvidence:
        """Returns the evidence of the same columns and pairs, counted from other rows."""
        return CountedEvidence(self.layout, rows, self.n_classes, self.threads)

    def with_pairs(self, pairs: Sequence[WeighedPair]) -> CountedEvidence:
        """Returns the evidence of the same columns, trends and rows with these pairs."""
        layout = replace(self.layout, pairs=tuple(pairs))
        return CountedEvidence(layout, self.rows, self.n_classes, self.threads, self.counts)

    @cached_property
    def prior(self) -> Real:
        """The share of each class among the rows (classes,), with half a row added to each."""
        rows_by_class = self.rows.count_classes(self.n_classes) + HALF_ROW
        return np.asarray(rows_by_class / rows_by_class.sum())

    # Columns

    @cached_property
    def by_all_rows(self) -> Real:
        """log P(class | cell) / P(class) for the cells of all columns, column by column, where the last cell of each is
        for unknown values: cells × classes.
        """
        return self._log_ratios(leave_out=False)

    @cached_property
    def by_other_rows(self) -> Real:
        """``by_all_rows`` without one row of each class in turn: cells × class of the row × classes."""
        return self._log_ratios(leave_out=True)

    def _log_ratios(self, leave_out: bool) -> Real:
        """Returns log P(class | cell) / P(class) of the cells of all columns (cells × classes). With ``leave_out``,
        without one row of each class in turn (cells × class of the row × classes).
        """
        if not self.columns:
            return np.zeros((0, self.n_classes))
        shares = self.layout.forest.shares(self.counts, self.prior, leave_out, self.threads)
        np.maximum(shares, SMALLEST, out=shares)
        shares /= self.prior
        return np.log(shares, out=shares)

    def gains(self) -> Real:
        """Returns how much each column raises the log likelihood of the classes above that of the prior (columns,)."""
        return self.layout.forest.gains(self.counts, self.prior, self.threads)

    def table(self, leave_out: bool) -> Real:
        """Returns the evidence of all cells as one flat array: cell by cell, one number per class, first those of
        columns, then of trends, then of pairs. With ``leave_out``, without one row of each class in turn: for each
        cell, one line of classes per class of the row.
        """
        of_columns = self.by_other_rows if leave_out else self.by_all_rows
        of_pairs = [left_out if leave_out else plain for plain, left_out in self.pair_tables]
        return np.concatenate([evidence.ravel() for evidence in (of_columns, self.trends(leave_out), *of_pairs)])

    def trends(self, leave_out: bool) -> Real:
        """Returns the evidence of the trends of columns for their cells (cells of these columns × classes); 0 for
        values that are not numbers. With ``leave_out``, without one row of each class in turn (cells × class of the row
        × classes).
        """
        # The trends; the cells that are intervals with a trend, among those of all columns and of columns with a trend.
        trends, in_all_cells, in_trend_cells = self.layout.trend_intervals
        evidence = np.zeros((len(in_trend_cells), *(self.n_classes,) * (2 if leave_out else 1)))
        if len(in_trend_cells):
            evidence[in_trend_cells] = trends.evidence(self.counts[in_all_cells], leave_out)
        return evidence

    # Rows

    @cached_property
    def leaves_out_row_by_row(self) -> bool:
        """Whether to compute evidence row by row, because a table for every cell and class of the row left out would be
        larger.
        """
        return self.n_classes > FEW_CLASSES and self.rows.codes.size < self.counts.size

    def each_row_left_out(self) -> Iterator[Real]:
        """Yields the evidence of each column, then of each trend, then of each pair for every row by all other rows: an
        array (rows × classes) each.
        """
        yield from map(self._column_of_rows, range(len(self.columns)))
        yield from map(self._trend_of_rows, self.layout.trends)
        codes = self.rows.codes  # the cell of each row in each column (rows × columns)
        for pair, (_, left_out) in zip(self.pairs, self.pair_tables, strict=True):
            first, second = (self.columns[column].nodes for column in (pair.first, pair.second))
            # The cell of each row in the pair's table: the fine nodes of both values.
            cells = first.fine[codes[:, pair.first]] * np.uint32(second.n_fine) + second.fine[codes[:, pair.second]]
            yield left_out[cells, self.rows.labels]

    def _column_of_rows(self, column: int) -> Real:
        """Returns the evidence of the column with this number for every row by all other rows (rows × classes); 0 for
        rows in no cell.
        """
        cells = self.columns[column]
        # Whether each row is in a cell; the cell and the class of those that are.
        has_cell, codes, labels = self._rows_in_first_cells(column, cells.n_cells)
        counts = self._counts_of(column)  # cells × classes
        shares = cells.tree.shares_without_rows(counts, self.prior, codes, labels, np.ones(len(codes)))
        row_evidence = np.zeros((len(has_cell), self.n_classes))
        row_evidence[has_cell] = np.log(np.maximum(shares, SMALLEST) / self.prior)
        return row_evidence

    def _trend_of_rows(self, column: int) -> Real:
        """Returns the evidence of the trend of the column with this number for every row by all other rows (rows ×
        classes).

        The trend is a normal curve per class over the positions of the column's intervals. Values without a position
        have no evidence.
        """
        positions = self.columns[column].positions  # of its intervals, which are its first cells
        # Whether each row has a position; the interval and the class of those that have.
        has_position, codes, labels = self._rows_in_first_cells(column, len(positions))
        trend = Trends(positions, lengths=np.array([len(positions)]))
        row_evidence = np.zeros((len(has_position), self.n_classes))
        row_evidence[has_position] = trend.leave_out(self._counts_of(column)[: len(positions)], codes, labels)
        return row_evidence

    def _rows_in_first_cells(self, column: int, n_cells: int) -> tuple[NDArray[np.bool_], Int, Int]:
        """Returns whether each row is in one of the first ``n_cells`` cells of the column with the number ``column``,
        and the cell numbers and class numbers of the rows that are.
        """
        codes = self.rows.codes[:, column].astype(np.int64)
        in_first_cells = codes < n_cells
        return in_first_cells, codes[in_first_cells], self.rows.labels[in_first_cells].astype(np.int64)

    def _counts_of(self, column: int) -> Real:
        """Returns the weight of the rows in each cell of the column with this number: cells × classes."""
        return self.counts[self.layout.starts[column] : self.layout.starts[column + 1]]

    # Pairs

    def _pair_arguments(
        self, pairs: Sequence[tuple[int, int]]
    ) -> tuple[Any, list[tuple[Any, ...]], list[tuple[int, int]]]:
        """Returns the arguments of the pair kernels: the rows, the tables of each column that is in a pair, and the
        pairs, as positions among these columns. ``pairs`` are pairs of column numbers.

        The tables of a column are its fine node of each cell and its coarse node of each fine node, then P(class |
        node) of both levels, with all rows and with one row of each class left out.
        """
        used_columns = sorted({column for pair in pairs for column in pair})
        node_tables = []  # of each of these columns
        position_of_column = {column: position for position, column in enumerate(used_columns)}
        for column in used_columns:
            cells = self.columns[column]
            nodes = cells.nodes
            counts = self._counts_of(column)  # cells × classes
            shares = cells.plain.shares(counts, self.prior)  # P(class | node), by level of the tree
            left_out = cells.plain.shares_left_out(counts, self.prior)  # the same with one row of each class left out
            tables = [
                self._with_unknown(shares_by_level[level])
                for shares_by_level in (shares, left_out)
                for level in nodes.levels  # of coarse nodes and of fine nodes
            ]
            node_tables.append((nodes.fine, nodes.coarse, *tables))
        uses_all_columns = len(used_columns) == self.rows.codes.shape[1]
        # The cell of each row in each of these columns.
        codes = self.rows.codes if uses_all_columns else self.rows.codes.take(used_columns, axis=1)
        rows_of_pairs = codes, self.rows.labels, self.rows.weights, self.prior
        return (
            rows_of_pairs,
            node_tables,
            [(position_of_column[first], position_of_column[second]) for first, second in pairs],
        )

    def _with_unknown(self, shares: Real) -> Real:
        """Returns shares (cells × … × classes) with those of one more cell, for unknown values: the shares of the
        classes among all rows.
        """
        shares_of_unknown = np.broadcast_to(self.prior, (1, *shares.shape[1:]))
        return np.ascontiguousarray(np.concatenate([shares, shares_of_unknown]))

    def pair_gains(self, pairs: Sequence[tuple[int, int]], posteriors: Real) -> Real:
        """Returns for each pair (pairs × 4) the nats that it gains over its columns apart, its best strength, and the
        slope and curvature of the log likelihood by its weight, given the posteriors of rows without it (rows ×
        classes). ``pairs`` are pairs of column numbers.
        """
        return _core.pair_gains(*self._pair_arguments(pairs), STRENGTHS, posteriors, self.threads)

    @cached_property
    def pair_tables(self) -> list[tuple[Real, Real]]:
        """The evidence of each pair beyond its two columns: cells × classes; and with a row left out: cells × class of
        the row × classes.
        """
        if not self.pairs:
            return []
        rows, node_tables, positions = self._pair_arguments([(pair.first, pair.second) for pair in self.pairs])
        strengths = np.array([pair.strength for pair in self.pairs])  # of the prior of each pair's shares, in rows
        n_classes = self.n_classes
        tables = _core.pair_tables(rows, node_tables, positions, strengths, self.threads)
        return [
            (plain.reshape(-1, n_classes), left_out.reshape(-1, n_classes, n_classes)) for plain, left_out in tables
        ]
