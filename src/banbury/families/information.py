"""Information in tables of counts, in bits, and whether it is significant; for single columns and for pairs given the class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from banbury.arrays import Bool, Int, Real, divide

LEVEL = 0.05  # of significance: the chance of taking noise for information
SAME = 1e-9  # entropies that differ by a smaller share are equal
NEARLY = 0.95  # a column duplicates another one if it shares so much of the other's information
BIT = float(np.log(2.0))
LEAST_SHARE = 2.0**-1000  # smaller shares add nothing to an entropy
FEWEST_ROWS = 10  # of a class, for it to be tested by itself


# Tables --------------------------------------------------------------------------------------------------------------


def shares(cells: Real) -> Real:
    """Returns cells divided by their sum, in the same shape; zeros if the sum is 0."""
    total = float(cells.sum())
    return np.asarray(cells / total) if total > 0 else np.zeros_like(cells)


def entropy_terms(share: Real) -> Real:
    """Returns −p log2 p of each share p, in the same shape; 0 for 0."""
    return -share * np.log2(np.maximum(share, LEAST_SHARE))


def entropy(share: Real) -> float:
    """Returns the entropy of shares, in bits."""
    return float(entropy_terms(share).sum())


def bits_of(cells: Real) -> float:
    """Returns the mutual information of rows and columns of a table of counts (``cells``, with two axes), in bits."""
    share = shares(cells)  # of all counts
    return max(entropy(share.sum(axis=0)) + entropy(share.sum(axis=1)) - entropy(share), 0.0)


def equal_groups(cells: Real, n_groups: Int) -> Int:
    """Returns the group of each line of each column of ``cells`` (lines × columns), numbered from 0: groups of about
    equal size, of neighbouring lines. A line as large as a group is a group by itself, numbered after the others.
    ``n_groups`` has the number of groups of each column.
    """
    is_large = cells * n_groups > cells.sum(axis=0)  # whether a line is as large as a group (lines × columns)
    other_cells = np.where(is_large, 0.0, cells)
    sums = other_cells.sum(axis=0)  # of each column
    n_other_groups = n_groups - is_large.sum(axis=0)
    # The share of the other lines that come before the middle of each (lines × columns).
    middle_of_share = divide(np.cumsum(other_cells, axis=0) - other_cells / 2.0, sums)
    group_of_others = np.clip((middle_of_share * n_other_groups).astype(np.int64), 0, n_other_groups - 1)
    return np.asarray(np.where(is_large, n_other_groups + np.cumsum(is_large, axis=0) - 1, group_of_others))


# Chance --------------------------------------------------------------------------------------------------------------


def bits_by_chance(freedom: Any, n: Any) -> Any:
    """Returns the bits of information that chance alone gives on average, with these degrees of freedom (``freedom``)
    and n rows.
    """
    return freedom / (2.0 * np.maximum(n, 1e-300) * BIT)


def p_values(bits: Any, freedom: Any, excess: Any, n: Any) -> Real:
    """Returns the chance of at least as many ``bits`` of n rows without any dependence, by the likelihood-ratio test;
    the arguments broadcast.

    If cells have few rows, G = 2 · rows · nats is higher on average than chi-square with its degrees of freedom
    (``freedom``). ``excess`` is the difference, and G is scaled down accordingly.
    """
    from scipy.special import chdtrc  # few need it

    has_freedom = np.asarray(freedom) > 0
    freedom = np.where(has_freedom, freedom, 1.0)
    # G, scaled down.
    g = 2.0 * BIT * np.asarray(n) * bits * freedom / (freedom + excess)
    return np.where(has_freedom, chdtrc(freedom, g), 1.0)


def excess(first: Any, second: Any, n: Any) -> Any:
    """Returns Williams' correction (1976), in degrees of freedom, of a table of n rows; ``first`` is Σ n / n_i over the
    lines of the table, n_i being the rows of line i, and ``second`` over its columns. The arguments broadcast.
    """
    return (first - 1.0) * (second - 1.0) / (6.0 * n)


# Every two columns, given the class -----------------------------------------------------------------------------------


class MeasuredPairs(NamedTuple):
    """The information that each pair of columns shares beyond chance; one entry per pair.

    Args:
        names: Returns the names of the columns of pair k.
        bits: I(A; B | class) beyond chance.
        share: ``bits`` as a share of the most that the pair could share.
        p: The p-value.
        rows: The number of rows that the pair was measured on.
        duplicated: Whether one column duplicates the other.
    """

    names: Callable[[int], tuple[str, str]]
    bits: Real
    share: Real
    p: Real
    rows: Real
    duplicated: Bool

    def beyond(self, level: float, n_pairs: int) -> Int:
        """Returns the numbers of the pairs with significant information, at a level that holds for all ``n_pairs``
        pairs that were examined. ``p`` has the p-value and ``bits`` the information of each pair.
        """
        return np.flatnonzero((self.p * n_pairs < level) & (self.bits > 0))


class PairInformation(NamedTuple):
    """I(A; B | class), H(A | class) and H(B | class) of the counts, and what the test needs; one entry per pair.

    ``repeated`` is I(A; B), regardless of the class, as a share of the smaller of H(A) and H(B). It is small if A and B
    depend on each other in different ways in different classes, so that together they tell more than alone.
    """

    joint: Real  # I(A; B | class), in bits
    first: Real  # H(A | class)
    second: Real  # H(B | class)
    freedom: Real  # Σ (values of A − 1)(values of B − 1) over the classes
    excess: Real  # of G over chi-square, times the rows
    rows: Real  # as shares of all rows
    repeated: Real

    def beyond_chance(self, names: Callable[[int], tuple[str, str]], total: float, scale: float) -> MeasuredPairs:
        """Returns for each pair the bits beyond chance, and the test. ``names`` returns the names of the columns of
        pair k. ``self.rows`` are shares of ``total``, which ``scale`` converts to numbers of rows; ``joint`` is I(A; B
        | class), ``first`` and ``second`` are H(A | class) and H(B | class), ``repeated`` is I(A; B) as a share of the
        smaller entropy, and ``freedom`` and ``excess`` are what the test needs.
        """
        rows = self.rows * total  # of each pair, as all that follows
        rows = np.where(np.abs(rows - np.rint(rows)) <= SAME * rows, np.rint(rows), rows)
        bits_of_chance = bits_by_chance(self.freedom, rows * scale)
        smaller_entropy = np.minimum(self.first, self.second)
        bits = np.maximum(self.joint - bits_of_chance, 0.0)
        share = np.minimum(divide(bits, smaller_entropy - bits_of_chance), 1.0)  # of the most beyond chance
        is_all = (self.joint >= smaller_entropy * (1.0 - SAME)) & (smaller_entropy > SAME) & (bits > 0)
        share = np.where(is_all, 1.0, share)
        duplicated = (share >= NEARLY) & (self.repeated >= NEARLY)
        p = p_values(np.maximum(self.joint, 0.0), self.freedom, self.excess / (total * scale), rows * scale)
        return MeasuredPairs(names, bits, share, p, rows, duplicated)


NO_PAIRS = (np.zeros(0),) * 7  # the columns of ``PairInformation``, for no pair


def pair_information(
    tables: Iterable[Real], sizes: Sequence[int], total: float, least: float
) -> tuple[Int, Int, PairInformation]:
    """Returns every pair of columns, as two arrays of column numbers, and the information they share.

    Args:
        tables: A table for each column but the first: values of all earlier columns, one below the other × its own values ×
            classes.
        sizes: The number of values of each column.
        total: The number of all rows.
        least: The share of all rows that a class must have to be examined.
    """
    measures = [PairInformation(*NO_PAIRS)]  # and then those of each column with all earlier ones
    starts = np.cumsum([0, *sizes])  # where the values of each column start, if all are numbered one after the other
    for column, table in enumerate(tables, 1):
        # Values of all earlier columns × classes × values of this one.
        shares = np.divide(table.transpose(0, 2, 1), total, order="C")
        measures.append(measure_column(shares, starts[:column], least))
    second, first = np.tril_indices(len(sizes), -1)
    return first, second, PairInformation(*(np.concatenate(arrays) for arrays in zip(*measures, strict=True)))


def measure_column(table: Real, starts: Int, least: float) -> PairInformation:
    """Returns the information that column B shares with each column A (one entry per A), in the classes with at least
    the share ``least`` of rows.

    ``table`` has the shares of rows, values of all A × classes × values of B; the values of each A begin at ``starts``.
    """
    if not len(starts):
        return PairInformation(*NO_PAIRS)
    # Rows, here and below, are shares of all rows.
    rows_of_class = np.add.reduceat(table.sum(axis=2), starts, axis=0)  # (A, classes)
    is_large = rows_of_class >= least * (1.0 - SAME)
    if not is_large.all():
        table = np.where(np.repeat(is_large, np.diff(starts, append=len(table)), axis=0)[:, :, None], table, 0.0)
        rows_of_class = np.where(is_large, rows_of_class, 0.0)
    rows_of_a = table.sum(axis=2)  # (values of all A, classes)
    rows_of_b = np.add.reduceat(table, starts, axis=0)  # (A, classes, values of B)
    rows = rows_of_class.sum(axis=1)  # (A)
    total = np.where(rows > 0, rows, 1.0)
    # Joint entropies with the class, not yet divided by the rows (A each): H(A, B, class), H(A, class), H(B, class),
    # and H(class).
    entropy_cells = np.add.reduceat(entropy_terms(table).sum(axis=(1, 2)), starts)
    entropy_a = np.add.reduceat(entropy_terms(rows_of_a).sum(axis=1), starts)
    entropy_b = entropy_terms(rows_of_b).sum(axis=(1, 2))
    entropy_class = entropy_terms(rows_of_class).sum(axis=1)
    # How many values occur in each class (A, classes).
    n_values_a = np.add.reduceat((rows_of_a > 0).astype(np.int64), starts, axis=0)
    n_values_b = np.count_nonzero(rows_of_b, axis=2)
    freedom = np.maximum(n_values_a - 1, 0) * np.maximum(n_values_b - 1, 0)  # (A, classes)
    # Σ rows of the class / rows of a value, over the values of A and of B (A, classes); and what Williams' correction
    # makes of them.
    rarity_a = rows_of_class * np.add.reduceat(divide(1.0, rows_of_a), starts, axis=0)
    rarity_b = rows_of_class * divide(1.0, rows_of_b).sum(axis=2)
    correction = excess(rarity_a, rarity_b, np.where(rows_of_class > 0, rows_of_class, 1.0))
    excess_of_g = np.where(freedom > 0, correction, 0.0)
    bits = (  # I(A; B | class), H(A | class), H(B | class)
        (entropy_a + entropy_b - entropy_cells - entropy_class) / total,
        (entropy_a - entropy_class) / total,
        (entropy_b - entropy_class) / total,
    )
    repeated = _repetition(table.sum(axis=1), starts)
    return PairInformation(*bits, freedom.sum(axis=1).astype(np.float64), excess_of_g.sum(axis=1), rows, repeated)


def _repetition(table: Real, starts: Int) -> Real:
    """Returns I(A; B) of B with each A as a share of the smaller entropy (one entry per A). ``table`` has the shares of
    rows, values of all A × values of B; the values of each A begin at ``starts``.
    """
    rows_of_b = np.add.reduceat(table, starts, axis=0)  # (A, values of B)
    # Entropies before shares are divided by their sum (A each): of A and B, of A, of B, and of the sum itself.
    entropy_cells = np.add.reduceat(entropy_terms(table).sum(axis=1), starts)
    entropy_a = np.add.reduceat(entropy_terms(table.sum(axis=1)), starts)
    entropy_b = entropy_terms(rows_of_b).sum(axis=1)
    entropy_rows = entropy_terms(rows_of_b.sum(axis=1))
    smaller_entropy = np.minimum(entropy_a, entropy_b) - entropy_rows
    bits = entropy_a + entropy_b - entropy_cells - entropy_rows
    return np.asarray(bits / np.where(smaller_entropy > 0, smaller_entropy, np.inf))
