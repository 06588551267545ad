"""Shares of keys under a Dirichlet prior, for Bernoulli and categorical columns, histograms and the nodes of networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from banbury.arrays import Bool, Int, Real, divide
from banbury.families.family import HeldOutRows, How, raise_alpha, rows_by_class


def prior_counts(alpha: Any, how: How) -> Any:
    """Returns what the prior with the pseudo-counts ``alpha`` (a number or an array) adds to the rows of each key, in
    the same shape, if shares are estimated by ``how``. Under "map" this can be negative.
    """
    if how == "mle":
        return 0.0 * alpha
    return alpha - 1.0 if how == "map" else raise_alpha(alpha)


def shares(cells: Real, offsets: Int, alpha: Real, how: How, rng: Generator) -> Real:
    """Returns P(key | class) (keys × classes) from the rows of keys (``cells``, keys × classes). The keys of feature f
    are the lines ``offsets[f]`` to ``offsets[f + 1]``; the shares of each feature add up to 1. ``alpha`` has one
    pseudo-count per key, ``how`` says how shares are estimated, and ``rng`` draws under "gibbs".

    If a feature has no rows in a class, "mle" gives its keys equal shares, and so does "map" if nothing is left to
    divide.
    """
    weights = np.maximum(cells + prior_counts(alpha, how)[:, None], 0.0)  # in proportion to the shares
    if how == "gibbs":
        weights = np.maximum(rng.standard_gamma(weights), np.finfo(float).tiny)
    return _divide(weights, offsets)


def log_prior(logs: Real, alpha: Real, how: How) -> float:
    """Returns what the prior adds to the log-likelihood, as one number: the sum of its pseudo-counts (``alpha``, one
    per key, as ``how`` uses them) times the log-probabilities of keys (``logs``, keys × classes).
    """
    pseudo_counts = np.maximum(prior_counts(alpha, how), 0.0)
    return float(pseudo_counts @ np.where(pseudo_counts[:, None] > 0, logs, 0.0).sum(axis=1))


def unseen(cells: Real, offsets: Int, alpha: Real, how: How) -> Real:
    """Returns the log-probability of a key that was never counted (features × classes): α / (n + αK), with K keys and n
    rows; 0, which is no evidence, if there is no α.

    ``cells`` has the rows of keys (keys × classes); the keys of feature f are the lines ``offsets[f]`` to ``offsets[f +
    1]``; ``alpha`` has one pseudo-count per key, which counts as ``how`` says. The keys' own probabilities already sum
    to one; this is what the next new key would have had.
    """
    n_keys = np.diff(offsets)  # of each feature, as the next
    mean_alpha = sum_slices(alpha[:, None], offsets)[:, 0] / np.maximum(n_keys, 1)
    return _log_unseen(mean_alpha, n_keys, sum_slices(cells, offsets), how)


def _log_unseen(alpha: Real, n_keys: Any, n_rows: Real, how: How) -> Real:
    """Returns the log-probability of a key that was never counted, α / (n + αK) (lines × classes); 0 if there is no α.
    Each line has a mean pseudo-count (``alpha``, which counts as ``how`` says), a number of keys (``n_keys``; or all
    have the same), and the rows of each class (``n_rows``, lines × classes).
    """
    strength = np.maximum(prior_counts(alpha, how), 0.0)  # α of each line
    total = n_rows + (strength * n_keys)[:, None]  # n + αK (lines × classes)
    has_prior = ((strength > 0) & (n_keys > 0))[:, None] & (total > 0)
    share = np.maximum(divide(strength[:, None], total), np.finfo(float).tiny)
    return np.where(has_prior, np.log(share), 0.0)


def sum_slices(cells: Real, offsets: Int) -> Real:
    """Returns the sums of the lines of ``cells`` (lines × classes) in each slice, from one offset to the next (slices ×
    classes).
    """
    sums = np.zeros((len(offsets) - 1, cells.shape[1]))
    is_filled = np.diff(offsets) > 0  # reduceat would give an empty slice its neighbour's first line
    if is_filled.any():
        sums[is_filled] = np.add.reduceat(cells, offsets[:-1][is_filled], axis=0)
    return sums


def _divide(weights: Real, offsets: Int) -> Real:
    """Returns the weights of keys (keys × classes) divided by their sum in each feature and class; equal shares if the
    sum is 0. The keys of feature f begin at ``offsets[f]``.
    """
    n_keys = np.diff(offsets)  # of each feature
    sums = np.repeat(sum_slices(weights, offsets), n_keys, axis=0)  # of each key's feature (keys × classes)
    equal_shares = 1.0 / np.repeat(n_keys, n_keys)[:, None]
    return divide(weights, sums, equal_shares)


def draw_cells(share: Real, classes: Int, rng: Generator) -> Int:
    """Draws a cell for each of these ``classes`` (class numbers), from the shares of cells (``share``, cells ×
    classes); returns the numbers of the cells.
    """
    drawn_cells = np.zeros(len(classes), dtype=np.int64)
    for c, rows in enumerate(rows_by_class(classes, share.shape[1])):
        drawn_cells[rows] = rng.choice(len(share), size=len(rows), p=share[:, c] / share[:, c].sum())
    return drawn_cells


def log(shares: Any) -> Real:
    """Returns logarithms of shares, in the same shape; −∞ for 0, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(shares, dtype=np.float64))


# A node given its parents ---------------------------------------------------------------------------------------------


def conditional(cells: Real, alpha: Real, how: How, rng: Generator) -> tuple[Real, Real]:
    """Returns P(value | values of the parents), in the shape of ``cells``, and the log-probability of a value that was
    never counted (values of each parent).

    ``cells`` has the rows (values × values of each parent; the class may be one); ``alpha`` is the prior's pseudo-count
    of each value; ``how`` says how shares are estimated, and ``rng`` draws under "gibbs". With several parents, some
    combinations of their values may be rare, so the prior is the estimate with fewer parents: P(x | all but the last) ·
    P(x | the last) / P(x), as if the last parent and the others were independent given the node. The prior is worth α
    (1 + h² √n) rows, where n rows have the values of all parents but the last, and h is the share of the node's entropy
    that the last parent leaves. A table that only repeats its last parent therefore stays sharp, and enough rows
    outweigh the prior. Under "mle", and under "map" with α up to 1, the prior is used only where there is no row at
    all.
    """
    if cells.ndim < 3:  # at most one parent
        offsets = np.array([0, len(cells)])  # one feature
        matrix = cells.reshape(len(cells), -1)  # values × values of the parent
        table = shares(matrix, offsets, alpha, how, rng).reshape(cells.shape)
        return table, unseen(matrix, offsets, alpha, how).reshape(cells.shape[1:])
    # The prior's shares, in the shape of ``cells``, and its log-probability of a new value (values of each parent).
    prior_shares, log_new_under_prior = _estimate_from_fewer_parents(cells, alpha, how, rng)
    rows_of_fewer = cells.sum(axis=(0, -1))[..., None]  # n (values of each parent but the last × 1)
    entropy_of_node = _entropy(cells.sum(axis=-1))  # given its other parents
    share_left = _entropy(cells) / entropy_of_node if entropy_of_node > 0 else 1.0  # h
    pseudo_count = max(float(prior_counts(float(alpha.mean()), how)), 0.0)
    strength = pseudo_count * (1.0 + share_left**2 * np.sqrt(rows_of_fewer))  # in rows, in the shape of n
    weights = cells + strength * prior_shares
    if how == "gibbs":
        weights = np.maximum(rng.standard_gamma(weights), np.finfo(float).tiny)
    table = divide(weights, weights.sum(axis=0), prior_shares)
    has_prior = strength > 0
    rows_and_prior = np.where(has_prior, cells.sum(axis=0) + strength, 1.0)
    log_factor = np.log(np.where(has_prior, strength, 1.0)) - np.log(rows_and_prior)  # of the prior's part
    return table, np.where(has_prior, log_factor + log_new_under_prior, 0.0)


def _entropy(cells: Real) -> float:
    """Returns H(node | parents) times the number of rows, in nats, from the rows ``cells`` (values × values of each
    parent; a class is a parent).
    """
    share = cells / np.maximum(cells.sum(axis=0), np.finfo(float).tiny)  # P(value | parents)
    return -float((cells * np.log(np.where(share > 0, share, 1.0))).sum())


def _estimate_from_fewer_parents(cells: Real, alpha: Real, how: How, rng: Generator) -> tuple[Real, Real]:
    """Returns P(x | all parents but the last) · P(x | the last) / P(x), normalised, in the shape of ``cells``, which
    has the rows (values × values of each parent); and the log-probability of a new value (values of each parent).
    ``alpha`` is the pseudo-count of each value; ``how`` says how shares are estimated, and ``rng`` draws under "gibbs".
    """
    # Each of the three estimates comes with the log-probability of a new value.
    given_others, log_new_given_others = conditional(cells.sum(axis=-1), alpha, how, rng)
    other_axes = tuple(range(1, cells.ndim - 1))  # those of all parents but the last
    given_last, log_new_given_last = conditional(cells.sum(axis=other_axes), alpha, how, rng)
    without_parents, log_new_alone = conditional(cells.sum(axis=(*other_axes, -1)), alpha, how, rng)
    shape = (len(cells), *(1 for _ in other_axes), -1)  # values × 1 … × values of the last parent
    ratio = divide(given_last, without_parents[:, None])
    product = given_others[..., None] * ratio.reshape(shape)
    total = product.sum(axis=0)  # values of each parent
    normalised = divide(product, total, given_others[..., None])
    log_new = log_new_given_others[..., None] + (log_new_given_last - log_new_alone).reshape(shape[1:])
    return normalised, log_new - np.log(np.where(total > 0, total, 1.0))


# Leave-one-out: without a row only one cell changes, so most of the estimate stays ------------------------------------


@dataclass(frozen=True)
class Shares:
    """The cells of one feature under a Dirichlet prior, from which rows are left out.

    Args:
        cells: The rows of each cell (cells × classes).
        alpha: The pseudo-count of each cell.
        how: How shares are estimated: "mle", "map", "mean" or "predictive".
        stays: Whether each cell remains without rows; the others vanish with their last row.
        spread: Whether the prior's total strength is divided evenly among the cells that there are.
        log_width: What is subtracted from log shares to get densities.
    """

    cells: Real
    alpha: Real
    how: How
    stays: Bool
    spread: bool = False
    log_width: float = 0.0

    def log_leave_one_out(self, cells: Int, held_out: HeldOutRows) -> Real:
        """Returns log P(cell | class) for rows in these cells (rows × classes), each without its own weight; 0 for rows
        in no cell (−1). ``held_out`` has the labels and weights of the rows, in the same order. ``self.log_width``
        turns log-shares into log densities.
        """
        log_likelihoods = np.zeros((len(cells), held_out.n_classes))
        in_cell = np.flatnonzero(cells >= 0)  # the numbers of the rows that are in a cell
        # Rows with equal cell, label and weight are scored as one: these of each group, and each row's group.
        group_cells, labels, weights, group_of_row = group_alike_rows(
            cells[in_cell], in_cell, held_out, len(self.cells)
        )
        log_shares = self._log_shares(group_cells, labels, weights)  # groups × classes
        log_likelihoods[in_cell] = (log_shares - self.log_width)[group_of_row]
        return log_likelihoods

    def _log_shares(self, own_cells: Int, labels: Int, weights: Real) -> Real:
        """Returns log P(cell | class) for rows in these cells (rows × classes), each without its own weight.
        ``own_cells``, ``labels`` (class numbers) and ``weights`` have an entry per row. ``self.cells`` has the rows of
        each cell (cells × classes), ``self.alpha`` its pseudo-count, and ``self.stays`` whether it remains without
        rows.
        """
        pseudo_counts = prior_counts(self.alpha, self.how)  # of each cell; below 0 at some modes
        all_weights = np.maximum(self.cells + pseudo_counts[:, None], 0.0)  # cells × classes: in proportion to shares
        # For each row (rows × classes): the rows in its cell and in all cells, and the weights of its cell and of all.
        counts = self.cells[own_cells]
        n_rows = np.broadcast_to(self.cells.sum(axis=0), counts.shape).copy()
        cell_weights = all_weights[own_cells]
        totals = np.broadcast_to(all_weights.sum(axis=0), counts.shape).copy()
        # In the row's own class, its own weight is left out of all four.
        own = np.arange(len(own_cells)), labels
        count_left = np.maximum(counts[own] - weights, 0.0)
        weight_left = np.maximum(count_left + pseudo_counts[own_cells], 0.0)
        totals[own] += weight_left - cell_weights[own]
        cell_weights[own] = weight_left
        n_rows[own] -= counts[own] - count_left
        counts[own] = count_left
        if pseudo_counts.min() >= 0:  # the sum of whole numbers is exact, and next to no smoothing is not lost in it
            totals = np.maximum(n_rows, 0.0) + pseudo_counts.sum()
        log_shares = log(np.maximum(divide(cell_weights, totals, 1.0 / len(self.cells)), 0.0))
        is_gone = ~self.stays[own_cells] & ~counts.any(axis=1)  # of each row: whether its cell vanishes with it
        if is_gone.any():
            log_shares[is_gone] = self._unseen(own_cells[is_gone], np.maximum(n_rows[is_gone], 0.0))
        return log_shares

    def _unseen(self, own_cells: Int, n_rows: Real) -> Real:
        """Returns log P(cell | class) for rows whose cells no other row has (rows × classes). ``own_cells`` has each
        row's cell, and ``n_rows`` the number of other rows in each class (rows × classes). ``self.spread``: the prior's
        total strength is divided evenly among the cells that there are.
        """
        n_other_cells = len(self.cells) - 1
        # Of each row: the sum, and then the mean, of the other cells' pseudo-counts.
        other_alpha = self.alpha.sum() - (0.0 if self.spread else self.alpha[own_cells])
        mean_alpha = np.broadcast_to(other_alpha / max(n_other_cells, 1), own_cells.shape)
        return _log_unseen(mean_alpha, n_other_cells, n_rows, self.how)


def group_alike_rows(cells: Int, rows: Int, held_out: HeldOutRows, n_cells: int) -> tuple[Int, Int, Real, Int]:
    """Groups rows of weight 1 that have the same cell and label, because leaving out any of them gives the same scores.
    Rows with other weights are groups by themselves.

    Args:
        cells: The cell of each row.
        rows: The numbers of these rows among those that are held out.
        held_out: All rows that are held out.
        n_cells: The number of all cells.

    Returns:
        The cells, labels and weights of the groups, and the number of each row's group.
    """
    labels = held_out.labels[rows]
    if held_out.weights is not None:
        return cells, labels, held_out.weights[rows], np.arange(len(rows))
    n_classes = held_out.n_classes
    pairs = cells * n_classes + labels  # the cell and label of each row as one number; ``groups`` are those that occur
    if n_cells * n_classes > 4 * len(pairs):
        groups, group_of_row = np.unique(pairs, return_inverse=True)
    else:  # quicker, where there are few pairs
        occurs = np.zeros(n_cells * n_classes, dtype=np.bool_)  # of each possible pair
        occurs[pairs] = True
        groups = np.flatnonzero(occurs)
        group_of_row = (np.cumsum(occurs) - 1)[pairs]
    return groups // n_classes, groups % n_classes, np.ones(len(groups)), group_of_row.reshape(-1)
