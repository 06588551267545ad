"""Information in tables of counts, in bits, and the test of chance: of one column and the class, and of two given the class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Int, Real

LEVEL = 0.05  # the chance of taking noise for information that tests allow
SAME = 1e-9  # entropies closer than this share are equal
NEARLY = 0.95  # of what a column holds is also in another, which duplicates it
BIT = float(np.log(2.0))
LEAST_SHARE = 2.0**-1000  # whose terms of an entropy are told apart from 0
FEWEST_ROWS = 10  # of a class, for it to be tested by itself


# Tables --------------------------------------------------------------------------------------------------------------


def shares(cells: Real) -> Real:
    """Of the sum of all; zeros where there is none."""
    total = float(cells.sum())
    return np.asarray(cells / total) if total > 0 else np.zeros_like(cells)


def entropy_terms(share: Real) -> Real:
    """−p log2 p, 0 for 0."""
    return -share * np.log2(np.maximum(share, LEAST_SHARE))


def entropy(share: Real) -> float:
    return float(entropy_terms(share).sum())


def bits_of(cells: Real) -> float:
    """I(row; column) of a table of counts."""
    share = shares(cells)
    return max(entropy(share.sum(axis=0)) + entropy(share.sum(axis=1)) - entropy(share), 0.0)


def equal_groups(cells: Real, most: Int) -> Int:
    """Of each column of cells the places in groups of about equal size, ``most`` of them; a place as large is one by itself."""
    totals = cells.sum(axis=0)
    large = cells * most > totals
    rest = np.where(large, 0.0, cells)
    sums = rest.sum(axis=0)
    left = most - large.sum(axis=0)
    middle = (np.cumsum(rest, axis=0) - rest / 2.0) / np.where(sums > 0, sums, 1.0)
    shared = np.clip((middle * left).astype(np.int64), 0, left - 1)
    return np.asarray(np.where(large, left + np.cumsum(large, axis=0) - 1, shared))


# Chance --------------------------------------------------------------------------------------------------------------


def bits_by_chance(freedom: Any, n: Any) -> Any:
    """The bits that chance alone gives, about."""
    return freedom / (2.0 * np.maximum(n, 1e-300) * BIT)


def p_values(bits: Any, freedom: Any, excess: Any, n: Any) -> Real:
    """How often chance alone gives as many bits: the likelihood-ratio test.

    Where cells hold few rows, G = 2 · rows · nats is higher on average than chi-square with its degrees of freedom; ``excess`` is
    by how much, and G is brought down to it.
    """
    from scipy.special import chdtrc  # few need it

    some = np.asarray(freedom) > 0
    freedom = np.where(some, freedom, 1.0)
    g = 2.0 * BIT * np.asarray(n) * bits * freedom / (freedom + excess)
    return np.where(some, chdtrc(freedom, g), 1.0)


def excess(first: Any, second: Any, n: Any) -> Any:
    """Williams' correction (1976), in degrees of freedom, from Σ n / n_i over the rows of a table and over its columns."""
    return (first - 1.0) * (second - 1.0) / (6.0 * n)


def inverse_shares(cells: Real, total: Any) -> Real:
    """whole / cell, 0 for an empty cell."""
    some = cells > 0
    return np.where(some, total / np.where(some, cells, 1.0), 0.0)


# Every two columns, given the class -----------------------------------------------------------------------------------


class MeasuredPairs(NamedTuple):
    """What each pair shares beyond chance, one entry per pair."""

    names: Callable[[int], tuple[str, str]]
    bits: Real
    share: Real
    p: Real
    rows: Real
    duplicated: NDArray[np.bool_]

    def beyond(self, level: float, n_pairs: int) -> Int:
        """The pairs that share anything beyond chance, at a level for all ``n_pairs`` that were looked at."""
        return np.flatnonzero((self.p * n_pairs < level) & (self.bits > 0))


class PairInformation(NamedTuple):
    """I(A; B | class), H(A | class) and H(B | class) as they are in the counts; and what the test needs. One entry per pair.

    ``repeated`` is I(A; B) as a share of the smaller of H(A) and H(B), the classes together: small where A and B go together in
    one way in one class and in another way in another, so that the two tell more than each.
    """

    joint: Real
    first: Real
    second: Real
    freedom: Real  # Σ (values of A − 1)(values of B − 1) over the classes
    excess: Real  # of G over chi-square, times the rows
    rows: Real
    repeated: Real

    def beyond_chance(self, names: Callable[[int], tuple[str, str]], total: float, scale: float) -> MeasuredPairs:
        """Bits beyond chance, and the test. ``rows`` are shares of ``total``, of which ``scale`` makes numbers of rows."""
        rows = self.rows * total
        rows = np.where(np.abs(rows - np.rint(rows)) <= SAME * rows, np.rint(rows), rows)
        chance = bits_by_chance(self.freedom, rows * scale)
        smaller = np.minimum(self.first, self.second)
        bits = np.maximum(self.joint - chance, 0.0)
        room = smaller - chance
        share = np.where(room > 0, np.minimum(bits / np.where(room > 0, room, 1.0), 1.0), 0.0)
        share = np.where((self.joint >= smaller * (1.0 - SAME)) & (smaller > SAME) & (bits > 0), 1.0, share)
        duplicated = (share >= NEARLY) & (self.repeated >= NEARLY)
        p = p_values(np.maximum(self.joint, 0.0), self.freedom, self.excess / (total * scale), rows * scale)
        return MeasuredPairs(names, bits, share, p, rows, duplicated)


NOTHING = (np.zeros(0),) * 7


def pair_information(
    tables: Iterable[Real], sizes: Sequence[int], total: float, least: float
) -> tuple[Int, Int, PairInformation]:
    """Every two of some columns, and what they share.

    ``tables`` has a table for each column but the first: rows by the values of all columns before it, one below the other, its
    own values, and classes. ``sizes`` says how many values each column has, and ``least`` the share of the ``whole`` that a class
    must have to be looked at.
    """
    measures = [PairInformation(*NOTHING)]
    starts = np.cumsum([0, *sizes])
    for b, table in enumerate(tables, 1):
        shares = np.divide(table.transpose(0, 2, 1), total, order="C")
        measures.append(measure_column(shares, starts[:b], least))
    second, first = np.tril_indices(len(sizes), -1)
    return first, second, PairInformation(*(np.concatenate(arrays) for arrays in zip(*measures, strict=True)))


def measure_column(table: Real, starts: Int, least: float) -> PairInformation:
    """Of B with each A, whose groups begin at ``starts``, in the classes that have the least share of rows.

    ``table`` is (groups of all A, classes, groups of B).
    """
    if not len(starts):
        return PairInformation(*NOTHING)
    of_class = np.add.reduceat(table.sum(axis=2), starts, axis=0)  # (A, classes)
    enough = of_class >= least * (1.0 - SAME)
    if not enough.all():
        table = np.where(np.repeat(enough, np.diff(starts, append=len(table)), axis=0)[:, :, None], table, 0.0)
        of_class = np.where(enough, of_class, 0.0)
    of_a = table.sum(axis=2)  # (groups of A, classes)
    of_b = np.add.reduceat(table, starts, axis=0)  # (A, classes, groups of B)
    rows = of_class.sum(axis=1)
    total = np.where(rows > 0, rows, 1.0)
    e_cells = np.add.reduceat(entropy_terms(table).sum(axis=(1, 2)), starts)
    e_a = np.add.reduceat(entropy_terms(of_a).sum(axis=1), starts)
    e_b = entropy_terms(of_b).sum(axis=(1, 2))
    e_class = entropy_terms(of_class).sum(axis=1)
    groups_a = np.add.reduceat((of_a > 0).astype(np.int64), starts, axis=0)
    groups_b = np.count_nonzero(of_b, axis=2)
    freedom = np.maximum(groups_a - 1, 0) * np.maximum(groups_b - 1, 0)  # (A, classes)
    rare_a = of_class * np.add.reduceat(inverse_shares(of_a, 1.0), starts, axis=0)
    rare_b = of_class * inverse_shares(of_b, 1.0).sum(axis=2)
    above = np.where(freedom > 0, excess(rare_a, rare_b, np.where(of_class > 0, of_class, 1.0)), 0.0)
    bits = (e_a + e_b - e_cells - e_class) / total, (e_a - e_class) / total, (e_b - e_class) / total
    repeated = _repetition(table.sum(axis=1), starts)
    return PairInformation(*bits, freedom.sum(axis=1).astype(np.float64), above.sum(axis=1), rows, repeated)


def _repetition(table: Real, starts: Int) -> Real:
    """I(A; B) of B with each A as a share of the smaller entropy, from a ``table`` of (groups of all A, groups of B)."""
    of_b = np.add.reduceat(table, starts, axis=0)
    e_cells, e_a = (
        np.add.reduceat(terms, starts) for terms in (entropy_terms(table).sum(axis=1), entropy_terms(table.sum(axis=1)))
    )
    e_b = entropy_terms(of_b).sum(axis=1)
    e_rows = entropy_terms(of_b.sum(axis=1))
    smaller = np.minimum(e_a, e_b) - e_rows
    return np.asarray((e_a + e_b - e_cells - e_rows) / np.where(smaller > 0, smaller, np.inf))
