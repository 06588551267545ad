"""What densities tell about the class, in bits: from distribution functions on a grid, or from rows drawn from the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from banbury import _core
from banbury.arrays import Real
from banbury.families.information import BIT, bits_of, entropy, shares
from banbury.reading import read

NODES = 801  # of a density's grid, from −9 to 9 deviations
MOST_NODES = 1 << 21  # of all densities, times the densities
DRAWN = 1 << 12  # rows of each class
DRAWN_CUTS = 1 << 8  # numbers of each class, beside those of a grid
DRAWS_OF_BLOCK = 1 << 15  # rows drawn of each class's normal distribution
MOST_DENSITIES = 1 << 23  # of all rows drawn, times the densities


def log_mixture(log_likelihood: Real, prior: Real) -> Real:
    """Returns log P(value) of the mixture of classes, from log P(value | class) (values × classes)."""
    highest = log_likelihood.max(axis=1, keepdims=True)
    return np.asarray(highest[:, 0] + np.log(np.exp(log_likelihood - highest) @ prior))


def grid(mean: Real, deviation: Real) -> Real:
    """Returns the points at which densities are evaluated: from −9 to 9 standard deviations around each of them.

    The points of all densities are merged, so that a narrow density among wide ones is not missed.
    """
    most = MOST_NODES // len(mean)
    steps = np.linspace(-9.0, 9.0, int(np.clip(most // len(mean), 16, NODES)))
    nodes = np.unique(mean[:, None] + deviation[:, None] * steps)
    return nodes[:: -(-len(nodes) // max(most, 1))]


def bits_of_numbers(parameters: Any, f: int, rows: Real) -> float:
    """Returns I(feature; class) of a numeric column; ``rows`` has the number of rows per class that have a value.

    It is computed from a table of cells between grid points and numbers drawn from the model, because most of a density
    without finite moments can lie between two points.
    """
    classes = np.flatnonzero(rows > 0)
    if len(classes) < 2:
        return 0.0
    mean, deviation = (moment[classes] for moment in parameters.spread(f))
    [drawn] = parameters.select([f]).sample(np.repeat(classes, DRAWN_CUTS), np.random.default_rng(0))
    cuts = np.concatenate([grid(mean, deviation), drawn])
    cuts = np.unique(np.rint(cuts) if parameters.features[f].kind == "integer" else cuts[np.isfinite(cuts)])
    below, above = (tail[:, classes] for tail in parameters.tails(f, cuts))
    inside = np.where(below[:-1] < 0.5, np.diff(below, axis=0), -np.diff(above, axis=0))
    cells = np.concatenate([below[:1], np.maximum(inside, 0.0), above[-1:]])
    return bits_of(cells * shares(rows[classes]))


def bits_of_draws(parameters: Any, rows: Real) -> Real:
    """Returns I(feature; class) of each feature: the mean of log P(value | class) − log P(value) over rows drawn from
    the model.
    """
    seen = np.flatnonzero(rows > 0)
    features = parameters.features
    prior = shares(rows[seen])
    if len(seen) < 2:
        return np.zeros(len(features))
    columns = parameters.sample(np.repeat(seen, DRAWN), np.random.default_rng(0))
    [batch] = read(dict(zip((name for feature in features for name in feature.inputs), columns, strict=True)))
    scores = _core.score(batch.n_rows, np.zeros(len(rows)), parameters.parts(batch), "parts", 1)[0][:, :, seen]
    bits = np.zeros(len(features))
    for f in range(len(features)):
        label = np.repeat(np.arange(len(seen)), DRAWN)
        apart = scores[np.arange(len(label)), f, label] - log_mixture(scores[:, f], prior)
        bits[f] = prior @ apart.reshape(len(seen), DRAWN).mean(axis=1) / BIT
    return np.clip(bits, 0.0, entropy(prior))


def bits_of_normals(prior: Real, mean: Real, covariance: Real) -> float:
    """Returns I(block; class) of normal distributions: the mean of log P(row | class) − log P(row) over rows drawn from
    them.
    """
    size, d = mean.shape
    if size < 2:
        return 0.0
    roots = np.linalg.cholesky(covariance)
    whiten = np.linalg.solve(roots, np.broadcast_to(np.eye(d), roots.shape))
    constant = -np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    half = int(np.clip(MOST_DENSITIES // (2 * size * size * d), 16, DRAWS_OF_BLOCK // 2))
    drawn = np.random.default_rng(0).standard_normal((half, d))
    noise = np.concatenate([drawn, -drawn])
    nats = 0.0
    for c in range(size):
        apart = (mean[c] + noise @ roots[c].T)[:, None] - mean
        densities = constant - 0.5 * np.square(np.einsum("cij,rcj->rci", whiten, apart)).sum(axis=2)
        nats += float(prior[c] * (densities[:, c] - log_mixture(densities, prior)).mean())
    return min(max(nats / BIT, 0.0), entropy(prior))
