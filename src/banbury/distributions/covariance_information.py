"""What a block of normal distributions tells about the class: its bits, and the test of chance."""

from __future__ import annotations

import numpy as np

from banbury.arrays import Real
from banbury.distributions.information import BIT, ColumnTest, entropy, log_mixture, shares, untested
from banbury.sums import Products

SAME_PLANE = 1e-10  # of the widest direction: a narrower one is rounding
NARROWEST = 1e-12  # a class's variance in units of that of all rows
DRAWS = 1 << 15  # rows drawn of each class's density
MOST_DENSITIES = 1 << 23  # of all rows drawn, times the densities


def bits_of_normals(prior: Real, mean: Real, covariance: Real) -> float:
    """I(block; class) of normal distributions: the mean of log P(row | class) − log P(row) over rows drawn from them."""
    size, d = mean.shape
    if size < 2:
        return 0.0
    roots = np.linalg.cholesky(covariance)
    whiten = np.linalg.solve(roots, np.broadcast_to(np.eye(d), roots.shape))
    constant = -np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    half = int(np.clip(MOST_DENSITIES // (2 * size * size * d), 16, DRAWS // 2))
    drawn = np.random.default_rng(0).standard_normal((half, d))
    noise, nats = np.concatenate([drawn, -drawn]), 0.0
    for c in range(size):
        apart = (mean[c] + noise @ roots[c].T)[:, None] - mean
        densities = constant - 0.5 * np.square(np.einsum("cij,rcj->rci", whiten, apart)).sum(axis=2)
        nats += float(prior[c] * (densities[:, c] - log_mixture(densities, prior)).mean())
    return min(max(nats / BIT, 0.0), entropy(prior))


def block_test(sums: Products, tied: bool, scale: float) -> ColumnTest:
    """What a block of normal distributions tells beyond chance, if rows are enough to say.

    By the likelihood-ratio test that all classes have one mean, and one covariance unless it is tied. Where rows are few, G is
    higher on average than chi-square with its degrees of freedom: it is brought down by its expectation, which follows from the
    Wishart distribution. Where a class has fewer rows than its covariance needs, means are tested alone.
    """
    from scipy.special import chdtrc  # few need it

    n, mean, scatter = _whitened(sums)
    (size, d), rows = mean.shape, n * scale
    if size < 2 or d == 0 or rows.sum() - size < d:
        return ColumnTest(why=untested(float(rows.sum()), sums.n.shape[0], size, "too few rows, or one value only"))
    tied = tied or bool(rows.min() < d + 1)
    covariance = scatter / n[:, None, None]
    if tied:
        covariance = np.broadcast_to(scatter.sum(axis=0) / n.sum(), scatter.shape)
    values = np.maximum(np.linalg.eigvalsh(covariance), NARROWEST)  # one that is flat is as if it were not quite
    g = max(-float(rows @ np.log(values).sum(axis=-1)), 0.0)
    chance = _expected_g(rows, d, tied)
    freedom = (size - 1) * (d if tied else d + d * (d + 1) // 2)
    bits = bits_of_normals(shares(n), mean, covariance + NARROWEST * np.eye(d))
    beyond = max(bits - chance / (2.0 * float(rows.sum()) * BIT), 0.0)
    return ColumnTest(beyond, float(chdtrc(freedom, g * freedom / chance)))


def _whitened(sums: Products) -> tuple[Real, Real, Real]:
    """Rows, means and scatters of the classes that have rows, in directions in which all rows together vary by 1."""
    seen = sums.n.value > 0
    rows, centre, scatter = sums.pooled()
    every = scatter / max(rows, 1e-300)
    deviation = np.sqrt(np.maximum(np.diagonal(every), 0.0))
    safe = np.where(deviation > 0, deviation, 1.0)
    values, vectors = np.linalg.eigh(every / safe[:, None] / safe)
    kept = values > SAME_PLANE * max(float(values[-1]), 1e-300)
    directions = vectors[:, kept] / safe[:, None] / np.sqrt(values[kept])
    within = directions.T @ sums.scatter[seen] @ directions
    return sums.n.value[seen], (sums.mean[seen] - centre) @ directions, within


def _expected_g(rows: Real, d: int, tied: bool) -> float:
    """What G is on average where all classes are alike."""
    whole = float(rows.sum())
    if tied:
        return whole * (_log_scatter(whole - 1.0, d) - _log_scatter(whole - len(rows), d))
    each = np.array([_log_scatter(n - 1.0, d) - d * np.log(n) for n in rows.tolist()])
    return float(whole * (_log_scatter(whole - 1.0, d) - d * np.log(whole)) - rows @ each)


def _log_scatter(degrees: float, d: int) -> float:
    """E log |S| of a Wishart distribution in d directions, but for a constant."""
    from scipy.special import digamma  # few need it

    return float(digamma((degrees - np.arange(d)) / 2.0).sum())
