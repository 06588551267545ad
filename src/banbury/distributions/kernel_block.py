"""Kernel density of several columns together: on every row a product of kernels, one per column, each with its bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury._core import Integers
from banbury.arrays import Real
from banbury.distributions import grid
from banbury.distributions.family import Choice, ColumnReader, Feature, Parameters, by_class
from banbury.distributions.kernels import DEVIATION, MIXED_IN, WIDEST, least_bandwidth, means_and_deviations, noise
from banbury.sums import ROUNDING
from banbury.threads import n_threads

Bandwidth = float | tuple[float, ...] | str  # one, one for each column, or the name of a rule

FINER = (1.0, 0.5, 0.25, 0.125)  # doublings from the best bandwidth of a column to the next
SWEEPS = 8  # over the columns at most, with each of these steps
MANY = 8  # bins to a bandwidth; more hardly change its likelihood
SOME = 2048  # cells whose rows are left out; of more, every second, third, ...


@dataclass(frozen=True)
class ProductBumps:
    """The kernels of one block, in bins; ``floor`` has means and deviations of the normals mixed into compact kernels."""

    kernel: str
    centres: Real  # (cells, columns)
    weights: Real  # (cells, classes)
    bandwidth: Real  # (classes, columns)
    floor: Real  # (2, columns)


def product_bumps(
    kernel: str,
    bandwidth: Bandwidth,
    feature: Feature,
    keys: Any,
    rows: Integers,
    choice: Choice,
    rng: np.random.Generator,
) -> ProductBumps:
    d, cells, n_classes = len(feature.inputs), rows.value, rows.shape[1]
    if not keys:
        nothing = np.zeros((1, d)), np.zeros((1, n_classes)), np.ones((n_classes, d))
        return ProductBumps(kernel, *nothing, np.array([np.zeros(d), np.ones(d)]))
    together = cells.sum(axis=1, keepdims=True)
    cells = np.where(cells.sum(axis=0) > 0, cells, together)  # a class without rows here: all classes together
    centres = np.array(keys, dtype=np.float64).reshape(len(keys), d) + 0.5
    widths = np.clip(_bandwidths(kernel, bandwidth, feature, centres, cells), 1.0, WIDEST)
    if choice.how == "gibbs":
        drawn = rng.standard_gamma(cells)
        cells = np.where(drawn.sum(axis=0) > 0, drawn, cells)
    mean, deviation = means_and_deviations(centres, together[:, 0])
    floor = np.array([mean, np.maximum(deviation, 1.0)])
    return ProductBumps(kernel, centres, cells / cells.sum(axis=0), widths, floor)


def _bandwidths(kernel: str, bandwidth: Bandwidth, feature: Feature, centres: Real, cells: Real) -> Real:
    """Per class and column, in bins."""
    if not isinstance(bandwidth, str):
        given = np.broadcast_to(np.asarray(bandwidth, dtype=np.float64), centres.shape[1:])
        return np.tile(given / grid.widths(feature), (cells.shape[1], 1))
    return np.array([_by_rule(bandwidth, kernel, centres, rows) for rows in cells.T])


def _by_rule(rule: str, kernel: str, centres: Real, rows: Real) -> Real:
    """Scott's or Silverman's, or from Scott's on the one under which rows are most likely, each without its own kernel."""
    d, n = centres.shape[1], rows.sum()
    deviation = means_and_deviations(centres, rows)[1] / DEVIATION[kernel]
    bandwidths = deviation * (n * (d + 2.0) / 4.0 if rule == "silverman" else n) ** (-1.0 / (d + 4.0))
    return _leave_one_out(kernel, centres, rows, bandwidths) if rule == "leave-one-out" else bandwidths


def _leave_one_out(kernel: str, centres: Real, rows: Real, rule: Real) -> Real:
    """First all bandwidths together, then each of them, in smaller and smaller steps."""
    used = rows > 0
    centres, rows = centres[used], rows[used]
    if len(centres) < 2:
        return rule
    found: dict[tuple[float, ...], float] = {}

    def better(tried: Real, best: Real) -> Real:
        for h in (tried, best):
            if tuple(h) not in found:
                found[tuple(h)] = _likelihood(kernel, centres, rows, h)
        return tried if found[tuple(tried)] > found[tuple(best)] else best

    least = np.array([_least(kernel, column, rows) for column in centres.T])
    best = np.maximum(rule, least)
    for k in range(-8, 5):
        best = better(np.maximum(rule * 2.0 ** (k / 2.0), least), best)
    for finer in FINER:
        for _ in range(SWEEPS):
            before = best
            for j, way in product(range(len(rule)), (-finer, finer)):
                best = better(np.maximum(best * 2.0 ** (way * (np.arange(len(rule)) == j)), least), best)
            if best is before:
                break
    return np.asarray(best)


def _least(kernel: str, column: Real, rows: Real) -> float:
    values, where = np.unique(column, return_inverse=True)
    return least_bandwidth(kernel, values, np.asarray(np.bincount(where, rows), dtype=np.float64))


def _likelihood(kernel: str, centres: Real, rows: Real, bandwidth: Real) -> float:
    """The mean log-likelihood of the rows, each under the kernels of the others."""
    times = max(int(np.floor(np.log2(bandwidth.min() / MANY))), 0)
    if times:
        cells, where = np.unique(np.floor(centres / 2.0**times), axis=0, return_inverse=True)
        rows = np.asarray(np.bincount(where.reshape(-1), rows), dtype=np.float64)
        centres, bandwidth = cells + 0.5, bandwidth / 2.0**times
    some = np.arange(0, len(rows), -(-len(rows) // SOME))
    centres = np.ascontiguousarray(centres)
    logs = _core.kernels_left_out(kernel, centres, rows, bandwidth, some, n_threads(None))
    least, n, own = np.finfo(float).tiny, rows.sum(), np.minimum(rows[some], 1.0)
    logs = np.maximum(logs, np.log(least)) - np.log(np.maximum(n - own, least))
    logs = np.where(n - own > ROUNDING * n, logs, np.log(least))
    return float(rows[some] @ logs / rows[some].sum()) - times * len(bandwidth) * float(np.log(2.0))


@dataclass(frozen=True)
class KernelBlockParameters(Parameters):
    """The kernels of some blocks."""

    features: tuple[Feature, ...]
    bumps: tuple[ProductBumps, ...]

    def parts(self, rows: ColumnReader) -> list[tuple[Any, ...]]:
        parts = []
        for feature, bump in zip(self.features, self.bumps, strict=True):
            width = grid.widths(feature)
            unit = 2.0 ** np.floor(np.log2(width))  # the kernel's unit is a power of two; a bin need not be
            bins = width / unit
            shape = (bump.centres * bins, bump.weights, bump.bandwidth * bins, bump.floor * bins)
            columns = rows.numbers(feature.inputs)
            parts.append(("product", columns, grid.starts(feature), unit, bump.kernel, *shape))
        return parts

    def bandwidths(self) -> list[dict[str, float]]:
        each = self.bumps[0].bandwidth * grid.widths(self.features[0])
        return [dict(zip(self.features[0].columns, of_class, strict=True)) for of_class in each.tolist()]

    def axes(self, f: int) -> tuple[str, ...]:
        return self.features[f].inputs

    def sample(self, classes: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[Any]]:
        columns: list[NDArray[Any]] = []
        for feature, bump in zip(self.features, self.bumps, strict=True):
            z = np.empty((len(classes), len(feature.inputs)))
            for c, rows in enumerate(by_class(classes, bump.weights.shape[1])):
                if not len(rows):
                    continue
                share = bump.weights[:, c] if bump.weights[:, c].any() else np.full(len(bump.weights), 1.0)
                centre = bump.centres[rng.choice(len(share), size=len(rows), p=share / share.sum())]
                z[rows] = centre + bump.bandwidth[c] * noise(bump.kernel, centre.shape, rng)
                stray = (rng.random(len(rows)) < MIXED_IN) & (bump.kernel != "normal")
                z[rows[stray]] = rng.normal(bump.floor[0], bump.floor[1], (int(stray.sum()), z.shape[1]))
            columns += list((grid.starts(feature) + grid.widths(feature) * z).T)
        return columns
