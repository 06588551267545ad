"""Evidence tables: what the cells of columns and of pairs of columns say of each class, and the same without one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.distributions.cells import Cells
from banbury.distributions.trees import HALF_ROW, SMALLEST
from banbury.weighing.rows import WeighedRows

MOST_PAIR_CELLS = 1 << 16  # a pair of more is not looked at
STRENGTHS: Real = 4.0 ** np.arange(6, dtype=np.float64)  # m of a pair: 1 to 1,024


@dataclass(frozen=True)
class Pair:
    """Two columns, and the strength of the prior by which what they say together is shrunk to what they say apart."""

    first: int
    second: int
    strength: float


class Evidence:
    """Columns and pairs under the rows of one count: their shares of the classes, plain and with a row left out."""

    def __init__(
        self,
        columns: Sequence[Cells],
        pairs: Sequence[Pair],
        rows: WeighedRows,
        counts: Sequence[Real],
        n_classes: int,
    ) -> None:
        self.columns, self.pairs, self.rows, self.counts = columns, pairs, rows, counts
        self.n_classes = n_classes

    @classmethod
    def of(cls, columns: Sequence[Cells], pairs: Sequence[Pair], rows: WeighedRows, n_classes: int) -> Evidence:
        """From rows, and those that are not here."""
        counts = [rows.counted(j, cells.n_cells, n_classes) for j, cells in enumerate(columns)]
        return cls(columns, pairs, rows, counts, n_classes)

    @cached_property
    def prior(self) -> Real:
        rows = self.rows.every_class(self.n_classes) + HALF_ROW
        return np.asarray(rows / rows.sum())

    # Columns

    def _told(self, shares: Real) -> Real:
        """log P(class | cell) / P(class); nothing of values in no cell."""
        says = np.log(np.maximum(shares, SMALLEST) / self.prior)
        return np.concatenate([says, np.zeros((1, *says.shape[1:]))])

    @cached_property
    def plain(self) -> list[Real]:
        """What each cell of each column says, (cells, classes)."""
        each = zip(self.columns, self.counts, strict=True)
        return [self._told(cells.tree.shares(rows, cells.strengths, self.prior)[-1]) for cells, rows in each]

    @cached_property
    def left_out(self) -> list[Real]:
        """The same without one row of each class, (cells, own class, classes)."""
        each = zip(self.columns, self.counts, strict=True)
        return [self._told(cells.tree.left_out(rows, cells.strengths, self.prior)[-1]) for cells, rows in each]

    # Pairs

    def _paired(self, pairs: Sequence[tuple[int, int]]) -> tuple[Any, list[tuple[Any, ...]], list[tuple[int, int]]]:
        """The rows of the columns that are in pairs, the nodes of these columns and the pairs, as the kernels take them."""
        used = sorted({j for pair in pairs for j in pair})
        every, place = [], {j: k for k, j in enumerate(used)}
        for j in used:
            cells, rows, nodes = self.columns[j], self.counts[j], self.columns[j].nodes
            shares = cells.plain.shares(rows, cells.plain_strengths, self.prior)
            left_out = cells.plain.left_out(rows, cells.plain_strengths, self.prior)
            tables = [self._with_unknown(each[level]) for each in (shares, left_out) for level in nodes.levels]
            every.append((nodes.fine, nodes.coarse, *tables))
        codes = np.ascontiguousarray(self.rows.codes[:, used])
        rows_of_pairs = codes, self.rows.labels, self.rows.weights, self.prior
        return rows_of_pairs, every, [(place[a], place[b]) for a, b in pairs]

    def _with_unknown(self, shares: Real) -> Real:
        last = np.broadcast_to(self.prior, (1, *shares.shape[1:]))
        return np.ascontiguousarray(np.concatenate([shares, last]))

    def gains(self, pairs: Sequence[tuple[int, int]], posteriors: Real, threads: int) -> Real:
        return _core.pair_gains(*self._paired(pairs), STRENGTHS, posteriors, threads)

    def pair_tables(self, threads: int) -> list[tuple[Real, Real]]:
        """What the cells of each pair say beyond both columns: (cells, classes), and (cells, own class, classes)."""
        if not self.pairs:
            return []
        paired = self._paired([(pair.first, pair.second) for pair in self.pairs])
        strengths, k = np.array([pair.strength for pair in self.pairs]), self.n_classes
        tables = _core.pair_tables(*paired, strengths, threads)
        return [(plain.reshape(-1, k), left_out.reshape(-1, k, k)) for plain, left_out in tables]


# Terms ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Terms:
    """Where rows find their cells: of each term its column, another or −1, the cells of codes, and how many there are."""

    columns: Int
    others: Int
    firsts: list[NDArray[np.uint32]]
    seconds: list[NDArray[np.uint32]]
    sizes: Int

    def lookups(self, codes: NDArray[np.uint32]) -> Any:
        return np.ascontiguousarray(codes), self.columns, self.others, self.firsts, self.seconds, self.sizes

    @property
    def n_cells(self) -> int:
        return int(self.sizes.sum())

    @classmethod
    def of(cls, terms: Sequence[tuple[int, Any, int, Any, int]]) -> Terms:
        columns, others = (np.array([term[k] for term in terms], dtype=np.int64) for k in (0, 2))
        firsts, seconds = ([np.ascontiguousarray(term[k], dtype=np.uint32) for term in terms] for k in (1, 3))
        return cls(columns, others, firsts, seconds, np.array([term[4] for term in terms], dtype=np.int64))


NONE = np.zeros(1, dtype=np.uint32)


def cell_terms(evidence: Evidence) -> Terms:
    """A term for each column, by its cells, and for each pair, by its fine ones."""
    terms = [(j, np.arange(c.n_cells + 1), -1, NONE, c.n_cells + 1) for j, c in enumerate(evidence.columns)]
    return Terms.of([*terms, *(_pair_term(evidence, pair, fine=True) for pair in evidence.pairs)])


def _pair_term(evidence: Evidence, pair: Pair, fine: bool) -> tuple[int, Any, int, Any, int]:
    a, b = evidence.columns[pair.first].nodes, evidence.columns[pair.second].nodes
    first, second = (a.fine, b.fine) if fine else (a.coarse[a.fine], b.coarse[b.fine])
    n_first, n_second = (a.n_fine, b.n_fine) if fine else (a.n_coarse, b.n_coarse)
    return pair.first, first * np.uint32(n_second), pair.second, second, n_first * n_second


def correction_terms(evidence: Evidence) -> tuple[Terms, Real, list[list[int]]]:
    """Terms for every level of each column and of each pair; what each may vary; and which of them make up each cell's term."""
    terms, variances, owners = list[tuple[int, Any, int, Any, int]](), list[float](), list[list[int]]()
    for j, cells in enumerate(evidence.columns):
        owners.append(list(range(len(terms), len(terms) + len(cells.tree.levels))))
        for level in cells.tree.levels:
            n_nodes = int(level.max(initial=-1)) + 2
            terms.append((j, np.append(level, n_nodes - 1), -1, NONE, n_nodes))
            variances.append(1.0 / len(cells.tree.levels))
    for pair in evidence.pairs:
        a, b = evidence.columns[pair.first].nodes, evidence.columns[pair.second].nodes
        levels = [True] if (a.n_coarse, b.n_coarse) == (a.n_fine, b.n_fine) else [False, True]
        owners.append(list(range(len(terms), len(terms) + len(levels))))
        terms += [_pair_term(evidence, pair, fine) for fine in levels]
        variances += [1.0 / len(levels)] * len(levels)
    return Terms.of(terms), np.array(variances), owners


def folded(evidence: Evidence, terms: Terms, owners: Sequence[Sequence[int]], table: Real) -> list[Real]:
    """Corrections of levels summed up: a number for each finest cell of every column and pair, and each class."""
    starts = np.concatenate([[0], np.cumsum(terms.sizes)])
    sums = []
    for own in owners:
        last = own[-1]
        total = np.zeros((int(terms.sizes[last]), table.shape[1]))
        codes = terms.firsts[last], terms.seconds[last]
        for t in own:
            deltas = table[starts[t] : starts[t + 1]]
            if terms.others[t] < 0:
                # Every finest cell has its own code, and the last level has them all.
                total[codes[0]] += deltas[terms.firsts[t]]
            else:
                fine = (codes[0][:, None] + codes[1]).ravel()
                wide = (terms.firsts[t][:, None] + terms.seconds[t]).ravel()
                cells, first = np.unique(fine, return_index=True)
                total[cells] += deltas[wide[first]]
        sums.append(total)
    return sums
