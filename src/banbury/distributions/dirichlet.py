"""Shares of the keys of each feature under a Dirichlet prior: what Bernoulli, categorical and histogram have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from banbury.arrays import Int, Real
from banbury.distributions.family import How, at_least, by_class


def shares(cells: Real, offsets: Int, alpha: Real, how: How, rng: np.random.Generator) -> Real:
    """P(key | class), (keys, classes), for features whose keys begin at ``offsets``; ``alpha`` holds one number per key.

    A feature without rows in a class gets equal shares under mle, and under map when nothing is left to divide.
    """
    if how == "mle":
        return _divided(cells, offsets)
    if how == "map":
        return _divided(np.maximum(cells + alpha[:, None] - 1.0, 0.0), offsets)
    weights = cells + at_least(alpha)[:, None]
    if how == "gibbs":
        weights = np.maximum(rng.standard_gamma(weights), np.finfo(float).tiny)
    return _divided(weights, offsets)


def log_prior(logs: Real, alpha: Real, how: How) -> float:
    """What the prior adds to the log-likelihood of all keys and classes: its pseudo-counts times their log-probabilities."""
    if how == "mle":
        return 0.0
    pseudo = np.maximum(alpha - 1.0, 0.0) if how == "map" else at_least(alpha)
    return float(pseudo @ np.where(pseudo[:, None] > 0, logs, 0.0).sum(axis=1))


def unseen(cells: Real, offsets: Int, alpha: Real, how: How) -> Real:
    """Log-probability of a key that is in no class, (features, classes): α / (n + αK); 0, no evidence, where it has no α.

    The keys' own probabilities sum to one already; this is what the next new key would have had.
    """
    n_features = len(offsets) - 1
    size = np.diff(offsets)
    strength = per_feature(alpha[:, None], offsets)[:, 0] / np.maximum(size, 1)
    if how == "mle":
        return np.zeros((n_features, cells.shape[1]))
    strength = np.maximum(strength - 1.0, 0.0) if how == "map" else at_least(strength)
    rows = per_feature(cells, offsets) + (strength * size)[:, None]
    skip = (strength == 0)[:, None] | (size == 0)[:, None] | (rows <= 0)
    share = np.broadcast_to(strength[:, None], rows.shape) / np.where(skip, 1.0, rows)
    return np.where(skip, 0.0, np.log(np.where(skip, 1.0, np.maximum(share, np.finfo(float).tiny))))


def per_feature(cells: Real, offsets: Int) -> Real:
    """Sums over each feature's keys, (features, classes)."""
    result = np.zeros((len(offsets) - 1, cells.shape[1]))
    filled = np.diff(offsets) > 0  # reduceat would give an empty feature its neighbour's first row
    if filled.any():
        result[filled] = np.add.reduceat(cells, offsets[:-1][filled], axis=0)
    return result


def _divided(weights: Real, offsets: Int) -> Real:
    size = np.diff(offsets)
    sums = np.repeat(per_feature(weights, offsets), size, axis=0)
    equal = 1.0 / np.repeat(size, size)[:, None]
    return np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), equal)


def drawn(share: Real, classes: Int, rng: np.random.Generator) -> Int:
    """A cell for each of these classes, from the shares of cells, (cells, classes)."""
    cells = np.zeros(len(classes), dtype=np.int64)
    for c, rows in enumerate(by_class(classes, share.shape[1])):
        cells[rows] = rng.choice(len(share), size=len(rows), p=share[:, c] / share[:, c].sum())
    return cells


def log(shares: Any) -> Real:
    """Logarithms, −inf for 0 without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(shares, dtype=np.float64))
