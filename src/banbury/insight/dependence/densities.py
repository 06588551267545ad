"""The information of densities about the class, in bits, from distribution functions on a grid or from rows drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from banbury import _core
from banbury.arrays import Real
from banbury.families.information import BIT, bits_of, entropy, shares
from banbury.reading import read

NODES = 801  # of a density's grid, from −9 to 9 deviations
MOST_NODES = 1 << 21  # nodes of all grids, times the number of densities
ROWS_DRAWN = 1 << 12  # rows drawn for each class
CUTS_DRAWN = 1 << 8  # numbers drawn for each class, in addition to the grid
BLOCK_ROWS_DRAWN = 1 << 15  # rows drawn from each class's normal distribution
MOST_DENSITIES = 1 << 23  # all rows drawn, times the number of densities


def log_mixture(log_likelihood: Real, prior: Real) -> Real:
    """Returns log P(value) of the mixture of classes for each value, from log P(value | class) (values × classes) and
    the class prior (classes,).
    """
    largest = log_likelihood.max(axis=1, keepdims=True)  # of each value
    return np.asarray(largest[:, 0] + np.log(np.exp(log_likelihood - largest) @ prior))


def grid(mean: Real, deviation: Real) -> Real:
    """Returns the points at which densities are evaluated, ascending: from −9 to 9 standard deviations around each
    mean. ``mean`` and ``deviation`` have one number per density.

    The points of all densities are merged, so that a narrow density among wide ones is not missed.
    """
    max_nodes = MOST_NODES // len(mean)
    # In standard deviations from the mean.
    steps = np.linspace(-9.0, 9.0, int(np.clip(max_nodes // len(mean), 16, NODES)))
    nodes = np.unique(mean[:, None] + deviation[:, None] * steps)
    return nodes[:: -(-len(nodes) // max(max_nodes, 1))]


def bits_of_numbers(parameters: Any, feature_number: int, class_rows: Real) -> float:
    """Returns I(feature; class) in bits of a numeric column, which is number ``feature_number`` of the parameters;
    ``class_rows`` has the number of rows per class that have a value.

    It is computed from a table of cells between grid points and numbers drawn from the model, because most of a density
    without finite moments can lie between two points.
    """
    classes = np.flatnonzero(class_rows > 0)  # the numbers of those that have rows
    if len(classes) < 2:
        return 0.0
    mean, deviation = (moment[classes] for moment in parameters.spread(feature_number))  # (classes,) each
    [drawn_numbers] = parameters.select([feature_number]).sample(
        np.repeat(classes, CUTS_DRAWN), np.random.default_rng(0)
    )
    candidates = np.concatenate([grid(mean, deviation), drawn_numbers])
    is_integer = parameters.features[feature_number].kind == "integer"
    cuts = np.unique(np.rint(candidates) if is_integer else candidates[np.isfinite(candidates)])
    # The probability of a number below and above each cut, in each class: cuts × classes.
    lower_tails, upper_tails = (tail[:, classes] for tail in parameters.tails(feature_number, cuts))
    # The probabilities of the cells between cuts, from the tail that is smaller there, and of all: cells × classes.
    inner_masses = np.where(lower_tails[:-1] < 0.5, np.diff(lower_tails, axis=0), -np.diff(upper_tails, axis=0))
    cell_masses = np.concatenate([lower_tails[:1], np.maximum(inner_masses, 0.0), upper_tails[-1:]])
    return bits_of(cell_masses * shares(class_rows[classes]))


def bits_of_draws(parameters: Any, class_rows: Real) -> Real:
    """Returns I(feature; class) in bits of each feature of the ``parameters`` (features,): the mean of log P(value |
    class) − log P(value) over rows drawn from the model. ``class_rows`` has the number of rows per class.
    """
    used_classes = np.flatnonzero(class_rows > 0)  # the numbers of those that have rows
    features = parameters.features
    prior = shares(class_rows[used_classes])  # of these classes
    if len(used_classes) < 2:
        return np.zeros(len(features))
    # The drawn values of each feature, class after class.
    columns = parameters.sample(np.repeat(used_classes, ROWS_DRAWN), np.random.default_rng(0))
    [batch] = read(dict(zip(features.inputs, columns, strict=True)))
    kernel_parts = parameters.parts(batch)
    all_scores = _core.score(
        batch.n_rows, log_prior=np.zeros(len(class_rows)), parts=kernel_parts, want="parts", threads=1
    )[0]
    scores = all_scores[:, :, used_classes]  # log P(value | class): rows × features × classes
    bits = np.zeros(len(features))
    for feature_number in range(len(features)):
        true_classes = np.repeat(np.arange(len(used_classes)), ROWS_DRAWN)  # from which each row was drawn
        log_ratios = scores[np.arange(len(true_classes)), feature_number, true_classes] - log_mixture(
            scores[:, feature_number], prior
        )
        bits[feature_number] = prior @ log_ratios.reshape(len(used_classes), ROWS_DRAWN).mean(axis=1) / BIT
    return np.clip(bits, 0.0, entropy(prior))


def bits_of_normals(prior: Real, mean: Real, covariance: Real) -> float:
    """Returns I(block; class) in bits of normal distributions with these means (classes × columns) and covariances
    (classes × columns × columns): the mean of log P(row | class) − log P(row) over rows drawn from them. ``prior`` has
    the share of each class.
    """
    n_classes, n_columns = mean.shape
    if n_classes < 2:
        return 0.0
    cholesky_factors = np.linalg.cholesky(covariance)  # classes × columns × columns, as their inverses
    inverse_factors = np.linalg.solve(cholesky_factors, np.broadcast_to(np.eye(n_columns), cholesky_factors.shape))
    # Of each class: the log density at the mean, without a term that all classes share.
    log_constants = -np.log(np.diagonal(cholesky_factors, axis1=1, axis2=2)).sum(axis=1)
    n_drawn = int(np.clip(MOST_DENSITIES // (2 * n_classes * n_classes * n_columns), 16, BLOCK_ROWS_DRAWN // 2))
    half_of_noise = np.random.default_rng(0).standard_normal((n_drawn, n_columns))
    noise = np.concatenate([half_of_noise, -half_of_noise])  # rows × columns, of mean 0
    nats = 0.0  # the information so far
    for class_number in range(n_classes):
        # The rows drawn from this class, less the mean of each class: rows × classes × columns.
        differences = (mean[class_number] + noise @ cholesky_factors[class_number].T)[:, None] - mean
        # Of each drawn row in each class: rows × classes.
        log_densities = log_constants - 0.5 * np.square(np.einsum("cij,rcj->rci", inverse_factors, differences)).sum(
            axis=2
        )
        nats += float(prior[class_number] * (log_densities[:, class_number] - log_mixture(log_densities, prior)).mean())
    return min(max(nats / BIT, 0.0), entropy(prior))
