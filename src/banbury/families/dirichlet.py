"""Shares of keys under a Dirichlet prior: what Bernoulli, categorical, histograms and the nodes of networks have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Int, Real
from banbury.families.family import HeldOutRows, How, at_least, by_class


def prior_counts(alpha: Any, how: How) -> Any:
    """What the prior adds to the rows of each key; under map it may be less than nothing."""
    if how == "mle":
        return 0.0 * alpha
    return alpha - 1.0 if how == "map" else at_least(alpha)


def shares(cells: Real, offsets: Int, alpha: Real, how: How, rng: np.random.Generator) -> Real:
    """P(key | class), (keys, classes), for features whose keys begin at ``offsets``; ``alpha`` holds one number per key.

    A feature without rows in a class gets equal shares under mle, and under map when nothing is left to divide.
    """
    weights = np.maximum(cells + prior_counts(alpha, how)[:, None], 0.0)
    if how == "gibbs":
        weights = np.maximum(rng.standard_gamma(weights), np.finfo(float).tiny)
    return _divide(weights, offsets)


def log_prior(logs: Real, alpha: Real, how: How) -> float:
    """What the prior adds to the log-likelihood of all keys and classes: its pseudo-counts times their log-probabilities."""
    pseudo = np.maximum(prior_counts(alpha, how), 0.0)
    return float(pseudo @ np.where(pseudo[:, None] > 0, logs, 0.0).sum(axis=1))


def unseen(cells: Real, offsets: Int, alpha: Real, how: How) -> Real:
    """Log-probability of a key that is in no class, (features, classes): α / (n + αK); 0, no evidence, where it has no α.

    The keys' own probabilities sum to one already; this is what the next new key would have had.
    """
    size = np.diff(offsets)
    strength = per_feature(alpha[:, None], offsets)[:, 0] / np.maximum(size, 1)
    strength = np.maximum(prior_counts(strength, how), 0.0)
    rows = per_feature(cells, offsets) + (strength * size)[:, None]
    skip = (strength == 0)[:, None] | (size == 0)[:, None] | (rows <= 0)
    share = np.broadcast_to(strength[:, None], rows.shape) / np.where(skip, 1.0, rows)
    return np.where(skip, 0.0, np.log(np.where(skip, 1.0, np.maximum(share, np.finfo(float).tiny))))


def per_feature(cells: Real, offsets: Int) -> Real:
    """Sums over each feature's keys, (features, classes)."""
    sums = np.zeros((len(offsets) - 1, cells.shape[1]))
    has_keys = np.diff(offsets) > 0  # reduceat would give an empty feature its neighbour's first row
    if has_keys.any():
        sums[has_keys] = np.add.reduceat(cells, offsets[:-1][has_keys], axis=0)
    return sums


def _divide(weights: Real, offsets: Int) -> Real:
    size = np.diff(offsets)
    sums = np.repeat(per_feature(weights, offsets), size, axis=0)
    equal = 1.0 / np.repeat(size, size)[:, None]
    return np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), equal)


def draw_cells(share: Real, classes: Int, rng: np.random.Generator) -> Int:
    """A cell for each of these classes, from the shares of cells, (cells, classes)."""
    cells = np.zeros(len(classes), dtype=np.int64)
    for c, rows in enumerate(by_class(classes, share.shape[1])):
        cells[rows] = rng.choice(len(share), size=len(rows), p=share[:, c] / share[:, c].sum())
    return cells


def log(shares: Any) -> Real:
    """Logarithms, −inf for 0 without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(shares, dtype=np.float64))


# A node given its parents ---------------------------------------------------------------------------------------------


def conditional(cells: Real, alpha: Real, how: How, rng: np.random.Generator) -> tuple[Real, Real]:
    """P(value | values of the parents), and the log-probability of a value that was never counted, by the parents' values.

    ``cells`` are rows, (values, values of each parent); ``alpha`` is the prior's pseudo-count of each value. With one parent or
    none that is all. With several, the parents' values may never have been seen together, so the prior is what fewer parents
    say: P(x | all but the last) · P(x | the last) / P(x), as if the last and the others were independent given the node. It is
    worth α (1 + h² √n) rows: n rows have the values of all parents but the last, and h is the share of the node's entropy that
    the last one leaves. So a table that only repeats its last parent stays sharp, and any number of rows outgrows the prior.
    Under "mle", and under "map" with α up to 1, it answers only where there is no row at all.
    """
    if cells.ndim < 3:
        offsets = np.array([0, len(cells)])
        flat = cells.reshape(len(cells), -1)
        table = shares(flat, offsets, alpha, how, rng).reshape(cells.shape)
        return table, unseen(flat, offsets, alpha, how).reshape(cells.shape[1:])
    lower, new = _of_fewer_parents(cells, alpha, how, rng)
    rows_of_fewer = cells.sum(axis=(0, -1))[..., None]
    entropy_of_node = _entropy(cells.sum(axis=-1))
    mean_alpha = float(alpha.mean())
    left_open = (
        _entropy(cells) / entropy_of_node if entropy_of_node > 0 else 1.0
    )  # of the node's entropy given its other parents
    pseudo_count = 0.0 if how == "mle" else max(mean_alpha - 1.0, 0.0) if how == "map" else float(at_least(mean_alpha))
    strength = pseudo_count * (1.0 + left_open**2 * np.sqrt(rows_of_fewer))
    weights = cells + strength * lower
    if how == "gibbs":
        weights = np.maximum(rng.standard_gamma(weights), np.finfo(float).tiny)
    rows = weights.sum(axis=0)
    table = np.where(rows > 0, weights / np.where(rows > 0, rows, 1.0), lower)
    pulled = strength > 0
    logs = np.log(np.where(pulled, strength, 1.0)) - np.log(np.where(pulled, cells.sum(axis=0) + strength, 1.0))
    return table, np.where(pulled, logs + new, 0.0)


def _entropy(cells: Real) -> float:
    """H(node | parents) of all rows together, in nats."""
    share = cells / np.maximum(cells.sum(axis=0), np.finfo(float).tiny)
    return -float((cells * np.log(np.where(share > 0, share, 1.0))).sum())


def _of_fewer_parents(cells: Real, alpha: Real, how: How, rng: np.random.Generator) -> tuple[Real, Real]:
    """P(x | all parents but the last) · P(x | the last) / P(x), in shares; and the log-probability of a new value."""
    all_but_last, new_of_all_but_last = conditional(cells.sum(axis=-1), alpha, how, rng)
    between = tuple(range(1, cells.ndim - 1))
    last, new_of_last = conditional(cells.sum(axis=between), alpha, how, rng)
    alone, new_alone = conditional(cells.sum(axis=(*between, -1)), alpha, how, rng)
    shape = (len(cells), *(1 for _ in between), -1)
    ratio = np.where(alone[:, None] > 0, last / np.where(alone > 0, alone, 1.0)[:, None], 0.0)
    product = all_but_last[..., None] * ratio.reshape(shape)
    total = product.sum(axis=0)
    lower = np.where(total > 0, product / np.where(total > 0, total, 1.0), all_but_last[..., None])
    new = new_of_all_but_last[..., None] + (new_of_last - new_alone).reshape(shape[1:])
    return lower, new - np.log(np.where(total > 0, total, 1.0))


# Every row left out, from the sums of all: they differ in one cell, so that most of what is estimated stays -------------------


@dataclass(frozen=True)
class Shares:
    """One feature's cells, (cells, classes), under a Dirichlet prior. Those that do not stay are gone with their last row.

    ``spread``: the prior's strength is spread evenly over whatever cells there are. ``log_width`` is taken off.
    """

    cells: Real
    alpha: Real
    how: How
    stays: NDArray[np.bool_]
    spread: bool = False
    log_width: float = 0.0

    def log_leave_one_out(self, cells: Int, held_out: HeldOutRows) -> Real:
        """log P(cell | class) of rows in these cells, (rows, classes), each without its own weight; 0 for a row in none."""
        total = np.zeros((len(cells), held_out.n_classes))
        there = np.flatnonzero(cells >= 0)
        cells = cells[there]
        labels = held_out.labels[there]
        if held_out.weights is not None:
            total[there] = self._log_shares(cells, labels, held_out.weights[there]) - self.log_width
            return total
        cells, labels, row = different_rows(cells, labels, self.cells.shape)
        total[there] = (self._log_shares(cells, labels, np.ones(len(cells))) - self.log_width)[row]
        return total

    def _log_shares(self, keys: Int, labels: Int, weights: Real) -> Real:
        at = np.arange(len(keys))
        n_keys = len(self.cells)
        pseudo = prior_counts(self.alpha, self.how)
        counts = self.cells[keys]
        n_rows = np.broadcast_to(self.cells.sum(axis=0), counts.shape).copy()
        parts = np.maximum(self.cells + pseudo[:, None], 0.0)
        totals = np.broadcast_to(parts.sum(axis=0), counts.shape).copy()
        mine = np.maximum(counts[at, labels] - weights, 0.0)
        part = parts[keys]
        left = np.maximum(mine + pseudo[keys], 0.0)
        totals[at, labels] += left - part[at, labels]
        part[at, labels] = left
        n_rows[at, labels] -= counts[at, labels] - mine
        counts[at, labels] = mine
        if pseudo.min() >= 0:  # of whole numbers the sum is exact, and next to no smoothing is not lost in a difference
            totals = np.maximum(n_rows, 0.0) + pseudo.sum()
        share = np.where(totals > 0, part / np.where(totals > 0, totals, 1.0), 1.0 / n_keys)
        logs = log(np.maximum(share, 0.0))
        gone = ~self.stays[keys] & ~counts.any(axis=1)
        if gone.any():
            logs[gone] = self._unseen(keys[gone], np.maximum(n_rows[gone], 0.0))
        return logs

    def _unseen(self, keys: Int, n_rows: Real) -> Real:
        """The same of keys that no other row has."""
        size = len(self.cells) - 1
        rest = self.alpha.sum() - (0.0 if self.spread else self.alpha[keys])
        strength = np.broadcast_to(rest / max(size, 1), keys.shape)
        strength = np.maximum(prior_counts(strength, self.how), 0.0)
        rows = n_rows + (strength * size)[:, None]
        skip = (strength == 0)[:, None] | (rows <= 0) | (size == 0)
        return np.where(skip, 0.0, np.log(np.where(skip, 1.0, strength[:, None] / np.where(skip, 1.0, rows))))


def different_rows(cells: Int, labels: Int, shape: tuple[int, ...]) -> tuple[Int, Int, Int]:
    """The different pairs of cell and label that rows have, (cells, labels), and which of them each row is."""
    n_cells, n_classes = shape
    pairs = cells * n_classes + labels
    if n_cells * n_classes > 4 * len(pairs):
        distinct, row = np.unique(pairs, return_inverse=True)
        return distinct // n_classes, distinct % n_classes, row.reshape(-1)
    there = np.zeros(n_cells * n_classes, dtype=np.bool_)
    there[pairs] = True
    distinct = np.flatnonzero(there)
    return distinct // n_classes, distinct % n_classes, (np.cumsum(there) - 1)[pairs]
