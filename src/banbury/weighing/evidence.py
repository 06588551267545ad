"""Evidence tables: what the cells of columns and of pairs of columns say of each class, and the same without one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.families.cells import HALF_ROW, SMALLEST, Cells, Forest, Tree
from banbury.weighing.rows import FEW_CLASSES, WeighedRows
from banbury.weighing.trends import Trends

MOST_PAIR_CELLS = 1 << 16  # a pair of more is not looked at
MOST_PAIR_NUMBERS = 1 << 22  # cells × classes × classes of a pair, where classes are more than few: 32 MB
STRENGTHS: Real = 4.0 ** np.arange(6, dtype=np.float64)  # m of a pair: 1 to 1,024


@dataclass(frozen=True)
class WeighedPair:
    """Two columns, and the strength of the prior by which what they say together is shrunk to what they say apart."""

    first: int
    second: int
    strength: float


def most_pair_cells(n_classes: int) -> int:
    """The cells that a pair of columns may have: its table has a number for each cell and any two classes."""
    return MOST_PAIR_CELLS if n_classes <= FEW_CLASSES else min(MOST_PAIR_CELLS, MOST_PAIR_NUMBERS // n_classes**2)


# Terms ----------------------------------------------------------------------------------------------------------------


NONE = np.zeros((1, 1), dtype=np.uint32)


def of_column(column: int, cells: Any, sizes: Sequence[int]) -> _core.Group:
    """The terms of one column, from the cells of its codes on each level, (codes, levels)."""
    return column, np.ascontiguousarray(cells, dtype=np.uint32), -1, NONE, sizes


@dataclass(frozen=True)
class PairedColumns:
    """Columns, their trends and pairs of them, as rows find their cells."""

    columns: tuple[Cells, ...]
    trends: tuple[int, ...]  # the columns whose trend is evidence beside their cells
    pairs: tuple[WeighedPair, ...]

    @cached_property
    def forest(self) -> Forest:
        return Forest.of([(cells.tree, cells.strengths) for cells in self.columns])

    @cached_property
    def sizes(self) -> Int:
        """The cells of each column."""
        return np.array([cells.n_cells for cells in self.columns], dtype=np.int64)

    @cached_property
    def starts(self) -> Int:
        """The first cell of each column among those of all, then their number."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @cached_property
    def terms(self) -> _core.Terms:
        """A term for each column and each trend, by its cells, and for each pair, by its fine ones."""
        sizes = enumerate((self.sizes + 1).tolist())
        terms = [of_column(j, np.arange(size, dtype=np.uint32)[:, None], [size]) for j, size in sizes]
        terms += [terms[j] for j in self.trends]
        return _core.Terms([*terms, *(self._of_pair(pair, [True]) for pair in self.pairs)])

    @cached_property
    def stretches(self) -> tuple[Trends, NDArray[np.bool_], NDArray[np.bool_]]:
        """Those of columns that have a trend; which they are of the cells of all columns; and of their own cells and one each."""
        trend_columns = list(self.trends)
        lengths = np.zeros(len(self.columns), dtype=np.int64)
        places = [self.columns[j].places for j in trend_columns]
        lengths[trend_columns] = [len(column_places) for column_places in places]
        trends = Trends(np.concatenate([[], *places]), lengths[trend_columns])
        return trends, _first(lengths, self.sizes), _first(lengths[trend_columns], self.sizes[trend_columns] + 1)

    @cached_property
    def corrections(self) -> _core.Terms:
        """The same with every level of each column, and of each pair."""
        columns = [_of_levels(j, cells.tree) for j, cells in enumerate(self.columns)]
        return _core.Terms([*columns, *(self._of_pair(pair, self._levels(pair)) for pair in self.pairs)])

    def _levels(self, pair: WeighedPair) -> list[bool]:
        """Whether the levels of a pair are fine: coarse ones come first, where they are others."""
        a = self.columns[pair.first].nodes
        b = self.columns[pair.second].nodes
        return [True] if (a.n_coarse, b.n_coarse) == (a.n_fine, b.n_fine) else [False, True]

    def _of_pair(self, pair: WeighedPair, fine: Sequence[bool]) -> _core.Group:
        a = self.columns[pair.first].nodes
        b = self.columns[pair.second].nodes
        widths = [b.n_fine if is_fine else b.n_coarse for is_fine in fine]
        first, second = (
            np.stack([nodes.fine if is_fine else nodes.coarse[nodes.fine] for is_fine in fine], axis=1)
            for nodes in (a, b)
        )
        sizes = [(a.n_fine if is_fine else a.n_coarse) * width for is_fine, width in zip(fine, widths, strict=True)]
        return pair.first, first * np.array(widths, dtype=np.uint32), pair.second, second, sizes


def _of_levels(column: int, tree: Tree) -> _core.Group:
    levels = np.stack(tree.levels, axis=1)
    last = levels.max(axis=0, initial=-1) + 1
    return of_column(column, np.concatenate([levels, last[None]]), (last + 1).tolist())


def _first(n: Int, sizes: Int) -> NDArray[np.bool_]:
    """Marks the first n elements of each block; the blocks, of these sizes, follow one another."""
    place = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray(place < np.repeat(n, sizes))


# Evidence -------------------------------------------------------------------------------------------------------------


class EvidenceTables:
    """Columns and pairs under the rows of one count: their shares of the classes, plain and with a row left out."""

    def __init__(
        self, layout: PairedColumns, rows: WeighedRows, n_classes: int, threads: int, counts: Real | None = None
    ) -> None:
        self.layout = layout
        self.rows = rows
        self.n_classes = n_classes
        self.threads = threads
        self.columns, self.pairs = layout.columns, layout.pairs
        self.counts = rows.count_cells(layout.sizes, n_classes, threads) if counts is None else counts

    def of_rows(self, rows: WeighedRows) -> EvidenceTables:
        """The same columns and pairs under other rows."""
        return EvidenceTables(self.layout, rows, self.n_classes, self.threads)

    def with_pairs(self, pairs: Sequence[WeighedPair]) -> EvidenceTables:
        layout = replace(self.layout, pairs=tuple(pairs))
        return EvidenceTables(layout, self.rows, self.n_classes, self.threads, self.counts)

    @cached_property
    def prior(self) -> Real:
        rows = self.rows.every_class(self.n_classes) + HALF_ROW
        return np.asarray(rows / rows.sum())

    # Columns

    @cached_property
    def plain(self) -> Real:
        """log P(class | cell) / P(class) of every cell, (cells and one for unknown values, classes)."""
        return self._log_ratios(False)

    @cached_property
    def left_out(self) -> Real:
        """``plain`` without one row of each class, (cells and one, own class, classes)."""
        return self._log_ratios(True)

    def _log_ratios(self, left_out: bool) -> Real:
        if not self.columns:
            return np.zeros((0, self.n_classes))
        shares = self.layout.forest.shares(self.counts, self.prior, left_out, self.threads)
        np.maximum(shares, SMALLEST, out=shares)
        shares /= self.prior
        return np.log(shares, out=shares)

    def gains(self) -> Real:
        """How much likelier rows are by each column than by the shares of classes alone."""
        return self.layout.forest.gains(self.counts, self.prior, self.threads)

    def table(self, without_own_row: bool) -> Real:
        """The evidence of the cells of columns, trends and pairs, as one flat array; plain or without the row itself."""
        pairs = (pair_evidence[1 if without_own_row else 0] for pair_evidence in self.pair_tables)
        columns = self.left_out if without_own_row else self.plain, self.trends(without_own_row)
        return np.concatenate([pair_evidence.ravel() for pair_evidence in (*columns, *pairs)])

    def trends(self, left_out: bool) -> Real:
        """The evidence of cells by the trends of their columns, plain or left out; 0 for values that are no number."""
        stretches, in_all_cells, in_own_cells = self.layout.stretches
        trend_evidence = np.zeros((len(in_own_cells), *(self.n_classes,) * (2 if left_out else 1)))
        if len(in_own_cells):
            trend_evidence[in_own_cells] = stretches.evidence(self.counts[in_all_cells], left_out)
        return trend_evidence

    # Rows

    @cached_property
    def goes_by_rows(self) -> bool:
        """Whether to leave rows out one by one: with many classes a table for every cell and own class would be larger."""
        return self.n_classes > FEW_CLASSES and self.rows.codes.size < self.counts.size

    def each_row_left_out(self) -> Iterator[Real]:
        """The evidence of each column, trend and pair for every row, by all other rows, (rows, classes)."""
        yield from map(self._column_of_rows, range(len(self.columns)))
        yield from map(self._trend_of_rows, self.layout.trends)
        codes = self.rows.codes
        for pair, (_, left_out) in zip(self.pairs, self.pair_tables, strict=True):
            first, second = (self.columns[j].nodes for j in (pair.first, pair.second))
            cells = first.fine[codes[:, pair.first]] * np.uint32(second.n_fine) + second.fine[codes[:, pair.second]]
            yield left_out[cells, self.rows.labels]

    def _column_of_rows(self, column: int) -> Real:
        cells = self.columns[column]
        has_cell, codes, labels = self._rows_below(column, cells.n_cells)
        counts = self._counts_of(column)
        one = np.ones(len(codes))
        shares = cells.tree.of_rows(counts, cells.strengths, self.prior, codes, labels, one)
        says = np.zeros((len(has_cell), self.n_classes))
        says[has_cell] = np.log(np.maximum(shares, SMALLEST) / self.prior)
        return says

    def _trend_of_rows(self, column: int) -> Real:
        places = self.columns[column].places
        has_place, codes, labels = self._rows_below(column, len(places))
        trend = Trends(places, np.array([len(places)]))
        says = np.zeros((len(has_place), self.n_classes))
        says[has_place] = trend.leave_out(self._counts_of(column)[: len(places)], codes, labels)
        return says

    def _rows_below(self, column: int, n: int) -> tuple[NDArray[np.bool_], Int, Int]:
        """Which rows are in the first n cells of a column, their cells and classes."""
        codes = self.rows.codes[:, column].astype(np.int64)
        in_first_cells = codes < n
        return in_first_cells, codes[in_first_cells], self.rows.labels[in_first_cells].astype(np.int64)

    def _counts_of(self, column: int) -> Real:
        return self.counts[self.layout.starts[column] : self.layout.starts[column + 1]]

    # Pairs

    def _pair_arguments(
        self, pairs: Sequence[tuple[int, int]]
    ) -> tuple[Any, list[tuple[Any, ...]], list[tuple[int, int]]]:
        """The arguments of the pair kernels: rows, the nodes of each column that is in a pair, and the pairs."""
        used = sorted({j for pair in pairs for j in pair})
        node_tables = []
        place = {j: k for k, j in enumerate(used)}
        for j in used:
            cells = self.columns[j]
            nodes = self.columns[j].nodes
            rows = self._counts_of(j)
            shares = cells.plain.shares(rows, cells.plain_strengths, self.prior)
            left_out = cells.plain.shares_left_out(rows, cells.plain_strengths, self.prior)
            tables = [
                self._with_unknown(shares_by_level[level])
                for shares_by_level in (shares, left_out)
                for level in nodes.levels
            ]
            node_tables.append((nodes.fine, nodes.coarse, *tables))
        every = len(used) == self.rows.codes.shape[1]
        codes = self.rows.codes if every else self.rows.codes.take(used, axis=1)
        rows_of_pairs = codes, self.rows.labels, self.rows.weights, self.prior
        return rows_of_pairs, node_tables, [(place[a], place[b]) for a, b in pairs]

    def _with_unknown(self, shares: Real) -> Real:
        last = np.broadcast_to(self.prior, (1, *shares.shape[1:]))
        return np.ascontiguousarray(np.concatenate([shares, last]))

    def pair_gains(self, pairs: Sequence[tuple[int, int]], posteriors: Real) -> Real:
        return _core.pair_gains(*self._pair_arguments(pairs), STRENGTHS, posteriors, self.threads)

    @cached_property
    def pair_tables(self) -> list[tuple[Real, Real]]:
        """The evidence of each pair beyond both columns: plain (cells, classes), left out (cells, own class, classes)."""
        if not self.pairs:
            return []
        paired = self._pair_arguments([(pair.first, pair.second) for pair in self.pairs])
        strengths = np.array([pair.strength for pair in self.pairs])
        k = self.n_classes
        tables = _core.pair_tables(*paired, strengths, self.threads)
        return [(plain.reshape(-1, k), left_out.reshape(-1, k, k)) for plain, left_out in tables]
