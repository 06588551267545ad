"""Tables of a node given its parents, estimated from counts: where there are several parents, they lean on fewer."""

from __future__ import annotations

import numpy as np

from banbury.arrays import Real
from banbury.distributions import dirichlet
from banbury.distributions.family import How, at_least


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
        offsets, flat = np.array([0, len(cells)]), cells.reshape(len(cells), -1)
        table = dirichlet.shares(flat, offsets, alpha, how, rng).reshape(cells.shape)
        return table, dirichlet.unseen(flat, offsets, alpha, how).reshape(cells.shape[1:])
    lower, new = _of_fewer_parents(cells, alpha, how, rng)
    rows_of_fewer = cells.sum(axis=(0, -1))[..., None]
    whole, each = _entropy(cells.sum(axis=-1)), float(alpha.mean())
    left_open = _entropy(cells) / whole if whole > 0 else 1.0  # of the node's entropy given its other parents
    pseudo_count = 0.0 if how == "mle" else max(each - 1.0, 0.0) if how == "map" else float(at_least(each))
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
    others, new_of_others = conditional(cells.sum(axis=-1), alpha, how, rng)
    between = tuple(range(1, cells.ndim - 1))
    last, new_of_last = conditional(cells.sum(axis=between), alpha, how, rng)
    alone, new_alone = conditional(cells.sum(axis=(*between, -1)), alpha, how, rng)
    shape = (len(cells), *(1 for _ in between), -1)
    ratio = np.where(alone[:, None] > 0, last / np.where(alone > 0, alone, 1.0)[:, None], 0.0)
    product = others[..., None] * ratio.reshape(shape)
    whole = product.sum(axis=0)
    lower = np.where(whole > 0, product / np.where(whole > 0, whole, 1.0), others[..., None])
    new = new_of_others[..., None] + (new_of_last - new_alone).reshape(shape[1:])
    return lower, new - np.log(np.where(whole > 0, whole, 1.0))
