"""Blocks of columns: their columns one by one, for pairs; and what a block of normal distributions tells about the class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from banbury.arrays import Real
from banbury.dependence.information import BIT, bits_of_normals, shares
from banbury.distributions import Categorical, Histogram, grid
from banbury.distributions.family import Feature
from banbury.schema import FINE_BINS, Schema
from banbury.sums import Products

SAME_PLANE = 1e-10  # of the widest direction: a narrower one is rounding
NARROWEST = 1e-12  # a class's variance in units of that of all rows
FINEST = 2.0**-1020


def is_joined(feature: Feature) -> bool:
    """Whether several columns are modelled together, so that no independence is assumed among them."""
    return len(feature.columns) > 1 and feature.family.shape != "words"


def block_of(schema: Schema) -> Mapping[str, str]:
    """The block of each column that is modelled together with others."""
    return {column: block.name for block in filter(is_joined, schema.features) for column in block.columns}


def one_by_one(feature: Feature) -> Iterator[Feature]:
    """A block's columns as features: numbers in fine bins, values as they are."""
    if feature.family.shape == "keys":
        for column, kind in zip(feature.columns, feature.kinds, strict=True):
            yield Feature(column, Categorical(), kind=kind)
        return
    widths = [unit * 2.0**-FINE_BINS for _, unit in feature.scales]
    if feature.family.shape == "bins":
        widths = grid.widths(feature).tolist()
    for column, (origin, _), width in zip(feature.columns, feature.scales, widths, strict=True):
        yield Feature(column, Histogram(), origin, max(width, FINEST), "float")


class BlockEvidence(NamedTuple):
    """What a block tells: bits of the model; the bits that chance alone gives, about; and how often it gives as many."""

    bits: float
    chance: float
    p: float


def told_by_normals(sums: Products, tied: bool, scale: float) -> BlockEvidence | None:
    """What a block of normal distributions tells; None where rows are too few to say.

    By the likelihood-ratio test that all classes have one mean, and one covariance unless it is tied. Where rows are few, G is
    higher on average than chi-square with its degrees of freedom: it is brought down by its expectation, which follows from the
    Wishart distribution. Where a class has fewer rows than its covariance needs, means are tested alone.
    """
    from scipy.special import chdtrc  # few need it

    n, mean, scatter = _whitened(sums)
    (size, d), rows = mean.shape, n * scale
    if size < 2 or d == 0 or rows.sum() - size < d:
        return None
    tied = tied or bool(rows.min() < d + 1)
    covariance = scatter / n[:, None, None]
    if tied:
        covariance = np.broadcast_to(scatter.sum(axis=0) / n.sum(), scatter.shape)
    g = max(-float(rows @ _log_volumes(covariance)), 0.0)
    chance = _expected_g(rows, d, tied)
    freedom = (size - 1) * (d if tied else d + d * (d + 1) // 2)
    bits = bits_of_normals(shares(n), mean, covariance + NARROWEST * np.eye(d))
    return BlockEvidence(bits, chance / (2.0 * float(rows.sum()) * BIT), float(chdtrc(freedom, g * freedom / chance)))


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


def _log_volumes(covariance: Real) -> Real:
    """log |covariance|; of one that is flat, as if it were not quite."""
    return np.asarray(np.log(np.maximum(np.linalg.eigvalsh(covariance), NARROWEST)).sum(axis=-1))


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
