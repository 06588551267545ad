"""Kernel density: a bump on every row, added up; kept as fine bins, so that it adds and subtracts like everything else.

On a block of columns the bump is a product of kernels, one per column, each with its bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.families.bins import block_starts, block_widths, rounding
from banbury.families.dirichlet import log
from banbury.families.evidence import Comparison, TellingValues
from banbury.families.family import (
    UNUSED,
    Choice,
    ColumnReader,
    Family,
    Feature,
    HeldOutRows,
    NumberColumn,
    NumericParameters,
    Parameters,
    by_class,
    check_positive,
)
from banbury.families.histogram import GridFamily, Histogram, numbers_of_setting
from banbury.families.moments import CELLS
from banbury.sums import ROUNDING, Counts, Keys, Moments
from banbury.threads import n_threads

RULES = ("scott", "silverman", "leave-one-out")
FINER = (0.25, 0.125, 0.0625)  # doublings from the best bandwidth to the next; at first half of one
MANY = 32  # bins to a bandwidth; more do not change its likelihood
SPARSE = 16  # times as many bins as are occupied: then they are added pair by pair
NEAR = 9.0  # bandwidths: beyond, a normal kernel's height is below 1e-18 ...
LONELY = 1e-11  # ... and nothing to a density above this share of all rows
MOST_TRIED = 10_000  # rows of a column whose family is chosen: every row is scored by every bin
AROUND = 256  # occupied bins on either side of a lonely one
BLOCK_FINER = (1.0, 0.5, 0.25, 0.125)  # doublings from the best bandwidth of a block's column to the next
SWEEPS = 8  # over the columns at most, with each of these steps
BLOCK_MANY = 8  # bins of a block to a bandwidth; more hardly change its likelihood
SOME = 2048  # cells whose rows are left out; of more, every second, third, ...

Kernel = Literal["normal", "box", "triangle", "epanechnikov", "biweight", "triweight", "cosine"]

# The standard deviation of each kernel at bandwidth 1: box on [−½, ½), the others on [−1, 1].
DEVIATION: dict[str, float] = {
    "normal": 1.0,
    "box": 12.0**-0.5,
    "triangle": 6.0**-0.5,
    "epanechnikov": 5.0**-0.5,
    "biweight": 7.0**-0.5,
    "triweight": 1.0 / 3.0,
    "cosine": (1.0 - 8.0 / np.pi**2) ** 0.5,
}
WIDEST = 2.0**480  # bins that a bandwidth may be
MIXED_IN = 1e-6  # of a normal over all classes, so that a compact kernel makes nothing impossible


def means_and_deviations(centres: Real, rows: Real) -> tuple[Any, Any]:
    """Of centres, or of each column of them; the deviation with n − 1 as SciPy has it, below two rows' weight with n / 2."""
    n = max(float(rows.sum()), np.finfo(float).tiny)
    about = centres[rows.argmax()]  # far from 0 a sum would be rounded
    mean = about + rows @ (centres - about) / n
    return mean, np.sqrt(rows @ (centres - mean) ** 2 / max(n - 1.0, n / 2.0))


def least_bandwidth(kernel: str, centres: Real, rows: Real) -> float:
    """In bins: under it, the density would be a comb of the values that rows are rounded to."""
    return max(1.0, 0.5 * rounding(centres, rows) / DEVIATION[kernel])


def height(kernel: str, u: Real) -> Real:
    """K(u)."""
    inside = np.maximum(1.0 - u * u, 0.0)
    if kernel == "normal":
        return np.asarray(np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi))
    if kernel == "box":
        return ((u >= -0.5) & (u < 0.5)).astype(np.float64)
    if kernel == "triangle":
        return np.maximum(1.0 - np.abs(u), 0.0)
    if kernel == "cosine":
        return np.where(np.abs(u) <= 1.0, np.pi / 4.0 * np.cos(np.pi / 2.0 * u), 0.0)
    power, top = {"epanechnikov": (1, 0.75), "biweight": (2, 15.0 / 16.0), "triweight": (3, 35.0 / 32.0)}[kernel]
    return top * inside**power


def area(kernel: str, u: Real) -> Real:
    """The integral of K up to u."""
    if kernel == "normal":
        from scipy.special import ndtr  # a third of a second to import; few need it

        return np.asarray(ndtr(u))
    if kernel == "box":
        return np.clip(u + 0.5, 0.0, 1.0)
    u = np.clip(u, -1.0, 1.0)
    if kernel == "triangle":
        return 0.5 + u - 0.5 * u * np.abs(u)
    if kernel == "cosine":
        return 0.5 + 0.5 * np.sin(np.pi / 2.0 * u)
    if kernel == "epanechnikov":
        return 0.5 + 0.75 * (u - u**3 / 3.0)
    if kernel == "biweight":
        return 0.5 + 15.0 / 16.0 * (u - 2.0 * u**3 / 3.0 + u**5 / 5.0)
    return 0.5 + 35.0 / 32.0 * (u - u**3 + 3.0 * u**5 / 5.0 - u**7 / 7.0)


def noise(kernel: str, size: Any, rng: np.random.Generator) -> Real:
    """Draws from the kernel itself."""
    if kernel == "normal":
        return np.asarray(rng.standard_normal(size))
    if kernel == "box":
        return np.asarray(rng.random(size) - 0.5)
    if kernel == "triangle":
        return np.asarray(rng.random(size) - rng.random(size))
    if kernel == "cosine":
        return np.asarray(2.0 / np.pi * np.arcsin(2.0 * rng.random(size) - 1.0))
    shape = {"epanechnikov": 2.0, "biweight": 3.0, "triweight": 4.0}[kernel]
    return np.asarray(2.0 * rng.beta(shape, shape, size) - 1.0)


@dataclass(frozen=True, repr=False)
class KernelDensity(GridFamily):
    """Numbers whose density is a sum of normal kernels, one on every row of the class.

    ``bandwidth`` is a number in the units of the column, or a rule for each class: "scott", "silverman" (both set the
    standard deviation of the kernel, as in SciPy) or "leave-one-out", which maximises the likelihood of each row under
    the kernels of the others. Rows are kept as fine bins, so the bandwidth is at least one bin, and a row is placed at
    the centre of its bin. "gibbs" draws the weights of the bins (the Bayesian bootstrap); "mle", "map", "mean" and
    "predictive" are the same.

    A block of columns has a product of kernels on every row, each column with its own bandwidth. ``bandwidth``,
    ``start`` and ``width`` can then be given for each column.

    >>> import banbury as bb
    >>> waits = {"wait": [1.0, 1.2, 4.8, 5.0, 2.9, 3.1], "kind": ["a", "a", "a", "a", "b", "b"]}
    >>> tally = bb.count(waits, target="kind", features={"wait": bb.KernelDensity(bandwidth=0.3)})
    >>> bb.estimate(tally).predict({"wait": [1.1, 3.0, 4.9]}).tolist()
    ['a', 'b', 'a']
    """

    kernel: Kernel = "normal"
    bandwidth: float | tuple[float, ...] | Literal["scott", "silverman", "leave-one-out"] = "scott"
    start: float | tuple[float, ...] | None = None
    width: float | tuple[float, ...] | None = None

    name: ClassVar[str] = "kernel_density"
    per_column: ClassVar[tuple[str, ...]] = ("start", "width", "bandwidth")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.kernel, str) or self.kernel not in DEVIATION:
            raise errors.unknown_choice("kernel", self.kernel, DEVIATION)
        if isinstance(self.bandwidth, str):
            if self.bandwidth not in RULES:
                raise errors.unknown_choice("bandwidth", self.bandwidth, RULES)
        else:
            for number in numbers_of_setting(self.bandwidth) or (self.bandwidth,):
                check_positive("bandwidth", number)

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        return () if column.has_few_values or column.n_rows > MOST_TRIED else (self,)

    def estimate(
        self, features: tuple[Feature, ...], sums: Counts, choice: Choice, rng: np.random.Generator
    ) -> KernelDensityParameters:
        bumps = (self._bumps(feature, *sums.feature(f), choice, rng) for f, feature in enumerate(features))
        return KernelDensityParameters(features, tuple(bumps))

    def _bumps(self, feature: Feature, keys: Any, rows: Integers, choice: Choice, rng: np.random.Generator) -> Bumps:
        d = len(feature.inputs)
        cells = rows.value
        n_classes = rows.shape[1]
        if not keys:
            nothing = np.zeros((1, d)), np.zeros((1, n_classes)), np.ones((n_classes, d))
            return Bumps(self.kernel, *nothing, np.array([np.zeros(d), np.ones(d)]))
        together = cells.sum(axis=1, keepdims=True)
        cells = np.where(cells.sum(axis=0) > 0, cells, together)  # a class without rows here: all classes together
        centres = np.array(keys, dtype=np.float64).reshape(len(keys), d) + 0.5
        bandwidth = np.clip(self._bandwidths(feature, centres, cells), 1.0, WIDEST)
        if choice.how == "gibbs":
            drawn = rng.standard_gamma(cells)
            cells = np.where(drawn.sum(axis=0) > 0, drawn, cells)
        mean, deviation = means_and_deviations(centres, together[:, 0])
        floor = np.array([mean, np.maximum(deviation, 1.0)])
        return Bumps(self.kernel, centres, cells / cells.sum(axis=0), bandwidth, floor)

    def _bandwidths(self, feature: Feature, centres: Real, cells: Real) -> Real:
        """Per class and column, in bins."""
        if not isinstance(self.bandwidth, str):
            by_column = np.broadcast_to(np.asarray(self.bandwidth, dtype=np.float64), centres.shape[1:])
            return np.tile(by_column / _places(feature)[1], (cells.shape[1], 1))
        return np.array([self._by_rule(centres, rows, bool(feature.columns)) for rows in cells.T])

    def _by_rule(self, centres: Real, rows: Real, block: bool = False) -> Real:
        """Scott's or Silverman's, or from Scott's on the one under which rows are most likely, each without its own kernel."""
        d = centres.shape[1]
        n = rows.sum()
        deviation = means_and_deviations(centres, rows)[1] / DEVIATION[self.kernel]
        n = n * (d + 2.0) / 4.0 if self.bandwidth == "silverman" else n
        rule = deviation * n ** (-1.0 / (d + 4.0))
        if self.bandwidth != "leave-one-out":
            return np.asarray(rule)
        if block:
            return _leave_one_out(self.kernel, centres, rows, rule)
        tried, likelihoods = self._try_bandwidths(centres[:, 0], rows, float(rule[0]))
        return np.asarray(tried[[likelihoods.argmax()]] if len(tried) else rule)

    def _try_bandwidths(self, centres: Real, rows: Real, rule: float) -> tuple[Real, Real]:
        """Bandwidths, in bins, and the rows' log-likelihood under each; none where there is nothing to leave out."""
        centres = centres[rows > 0]
        rows = rows[rows > 0]
        if len(centres) < 2:
            return np.empty(0), np.empty(0)
        least = least_bandwidth(self.kernel, centres, rows)

        def likelihoods(tried: Iterable[float]) -> dict[float, float]:
            return {h: self._likelihood_left_out(centres, rows, h) for h in (max(h, least) for h in tried)}

        by_bandwidth = likelihoods(rule * 2.0 ** (k / 2.0) for k in range(-12, 7))
        for finer in FINER:
            best = max(by_bandwidth, key=lambda h: by_bandwidth[h])
            by_bandwidth |= likelihoods([best / 2.0**finer, best * 2.0**finer])
        tried = np.array(sorted(by_bandwidth))
        return tried, np.array([by_bandwidth[h] for h in tried.tolist()])

    def _likelihood_left_out(self, centres: Real, rows: Real, bandwidth: float) -> float:
        centres, rows, h = _join_bins(centres, rows, bandwidth)
        left_out = np.minimum(rows, 1.0)  # one row of a bin; all of it where weights make it less
        n = rows.sum()
        density = (
            _density_of_other_bins(self.kernel, centres, rows, h)
            + (rows - left_out) * height(self.kernel, np.zeros(1))[0]
        )
        least = np.finfo(float).tiny
        logs = np.log(np.maximum(density, least)) - np.log(np.maximum(n - left_out, least))
        return float(rows @ np.where(n - left_out > ROUNDING * n, logs, np.log(least))) - float(n * np.log(bandwidth))

    def n_parameters(self, features: tuple[Feature, ...], sums: Counts | Moments) -> list[tuple[int, int]]:
        assert isinstance(sums, Counts)
        sizes = zip(features, sums.keys, strict=True)
        return [(max(len(keys) - 1, 0) + len(feature.inputs), 0) for feature, keys in sizes]

    def join_cells(self, feature: Feature, keys: Keys, cells: Real) -> Real:
        return Histogram().join_cells(feature, keys, cells)

    def can_leave_one_out(self, features: tuple[Feature, ...], choice: Choice, weighted: bool) -> bool:
        return not features[0].columns and super().can_leave_one_out(features, choice, weighted)

    def leave_one_out(self, features: tuple[Feature, ...], sums: Counts, choice: Choice, held_out: HeldOutRows) -> Real:
        """Only the row's own class changes, by the row's own kernel; the bandwidths are those of all rows."""
        parameters = self.estimate(features, sums, choice, UNUSED)
        scores = held_out.scores(parameters, "parts")
        for f, (feature, bump) in enumerate(zip(features, parameters.bumps, strict=True)):
            keys, rows = sums.feature(f)
            if not keys:
                continue
            x = np.asarray(held_out.rows.numbers([feature.name])[0], dtype=np.float64).reshape(-1)
            there = np.flatnonzero(~np.isnan(x))
            z = (x[there] - feature.origin) / feature.unit
            codes = _core.bins(np.ascontiguousarray(x[there]), feature.origin, feature.unit, held_out.threads)
            bins = np.searchsorted(np.array(keys, dtype=np.int64), codes)
            labels = held_out.labels[there]
            weights = held_out.weight[there]
            empty = rows.value.sum(axis=0) <= 0  # such a class has the kernels of all classes, the row's own among them
            for c in range(len(empty)):
                mine = np.flatnonzero((labels == c) | empty[c])
                for some in np.array_split(mine, max(1, len(mine) * len(keys) // CELLS)):
                    density = _density_without(bump, rows.value, c, z[some], bins[some], weights[some])
                    scores[there[some], f, c] = density - np.log(feature.unit)
        return np.asarray(scores.sum(axis=1))

    def leave_one_out_notes(self) -> list[str]:
        return ["the bandwidths of kernels"]


def try_bandwidths(feature: Feature, sums: Any, f: int, c: int) -> tuple[Real, Real] | None:
    """Bandwidths of a column in class c, in its own unit, and the mean log-likelihood of a row under the kernels of the others.

    None where it is no kernel density; without any where there are no two values.
    """
    family = feature.family
    if not isinstance(family, KernelDensity):
        return None
    keys, rows = sums.feature(f)
    centres = np.array(keys, dtype=np.float64) + 0.5
    class_rows = rows.value[:, c]
    if not class_rows.any():
        return np.empty(0), np.empty(0)
    (rule,) = replace(family, bandwidth="scott")._by_rule(centres[:, None], class_rows)
    tried, likelihoods = family._try_bandwidths(centres, class_rows, float(rule))
    return tried * feature.unit, likelihoods / class_rows.sum() - np.log(feature.unit)


def _join_bins(centres: Real, rows: Real, bandwidth: float) -> tuple[Real, Real, float]:
    """Bins joined in pairs, again and again, while the bandwidth is many of them; and the bandwidth in these bins."""
    times = max(int(np.floor(np.log2(bandwidth / MANY))), 0)
    if not times:
        return centres, rows, bandwidth
    joined, where = np.unique(np.floor(centres / 2.0**times), return_inverse=True)
    return joined, np.asarray(np.bincount(where, rows), dtype=np.float64), bandwidth / 2.0**times


def _density_of_other_bins(kernel: str, centres: Real, rows: Real, bandwidth: float) -> Real:
    """Σ rows K((centre − other) / bandwidth) over the other bins: those near, and farther ones where they are all there is.

    Terms are added one by one: an FFT's rounding would decide how likely the loneliest rows are.
    """
    density = _near(kernel, centres, rows, bandwidth, NEAR if kernel == "normal" else 1.0)
    if kernel == "normal":
        lonely = np.flatnonzero(density < LONELY * rows.sum())
        for block in np.array_split(lonely, len(lonely) // 256 + 1):
            neighbours = block[:, None] + np.concatenate([np.arange(-AROUND, 0), np.arange(1, AROUND + 1)])
            inside = (neighbours >= 0) & (neighbours < len(centres))
            neighbours = np.clip(neighbours, 0, len(centres) - 1)
            heights = height(kernel, (centres[block, None] - centres[neighbours]) / bandwidth)
            density[block] = (heights * rows[neighbours] * inside).sum(axis=1)
    return density


def _near(kernel: str, centres: Real, rows: Real, bandwidth: float, reach: float) -> Real:
    """The same over the other bins within reach, in bandwidths."""
    steps = int(reach * bandwidth) + 1
    if centres[-1] - centres[0] > SPARSE * len(centres):
        density = np.empty(len(centres))
        for block in np.array_split(np.arange(len(centres)), len(centres) // 64 + 1):
            low, high = np.searchsorted(centres, [centres[block[0]] - steps, centres[block[-1]] + steps + 1])
            heights = height(kernel, (centres[block, None] - centres[low:high]) / bandwidth)
            heights[block - block[0], block - low] = 0.0
            density[block] = heights @ rows[low:high]
        return density
    at = (centres - centres[0]).astype(np.int64)
    heights = height(kernel, np.arange(-steps, steps + 1) / bandwidth)
    heights[steps] = 0.0
    return np.asarray(np.convolve(np.bincount(at, rows), heights)[steps + at])


def _density_without(bump: Bumps, cells: Real, c: int, z: Real, bins: Int, weights: Real) -> Real:
    """Log density, in bins, of values of class c, each without its own weight in its own bin."""
    counts = np.broadcast_to(cells[:, c], (len(z), len(cells))).copy()
    at = np.arange(len(z))
    counts[at, bins] = np.maximum(counts[at, bins] - weights, 0.0)
    alone = ~counts.any(axis=1)
    if alone.any():  # a class without rows: all classes together
        together = np.broadcast_to(cells.sum(axis=1), (int(alone.sum()), len(cells))).copy()
        together[np.arange(len(together)), bins[alone]] -= weights[alone]
        counts[alone] = np.maximum(together, 0.0)
    (bandwidth,) = bump.bandwidth[c]
    u = (z[:, None] - bump.centres[:, 0]) / bandwidth
    size = counts.sum(axis=1)
    nothing = size <= 0
    share = counts / np.where(nothing, 1.0, size)[:, None]
    if bump.kernel == "normal":
        logs = log(share) - 0.5 * u * u - 0.5 * np.log(2.0 * np.pi)
        top = np.where(nothing, 0.0, logs.max(axis=1))
        result = top + np.log(np.where(nothing, 1.0, np.exp(logs - top[:, None]).sum(axis=1))) - np.log(bandwidth)
        return np.where(nothing, 0.0, result)
    density = (share * height(bump.kernel, u)).sum(axis=1) / bandwidth
    mean, deviation = bump.floor[:, 0]
    floor = np.exp(-0.5 * ((z - mean) / deviation) ** 2) / (deviation * np.sqrt(2.0 * np.pi))
    mixed = (1.0 - MIXED_IN) * density + MIXED_IN * floor
    far = np.log(MIXED_IN) - 0.5 * ((z - mean) / deviation) ** 2 - np.log(deviation * np.sqrt(2.0 * np.pi))
    return np.where(nothing, 0.0, np.where(mixed > 0, np.log(np.where(mixed > 0, mixed, 1.0)), far))


# Blocks ---------------------------------------------------------------------------------------------------------------


def _leave_one_out(kernel: str, centres: Real, rows: Real, rule: Real) -> Real:
    """First all bandwidths together, then each of them, in smaller and smaller steps."""
    used = rows > 0
    centres = centres[used]
    rows = rows[used]
    if len(centres) < 2:
        return rule
    likelihoods: dict[tuple[float, ...], float] = {}

    def better(tried: Real, best: Real) -> Real:
        for h in (tried, best):
            if tuple(h) not in likelihoods:
                likelihoods[tuple(h)] = _likelihood(kernel, centres, rows, h)
        return tried if likelihoods[tuple(tried)] > likelihoods[tuple(best)] else best

    least = np.array([_least(kernel, column, rows) for column in centres.T])
    best = np.maximum(rule, least)
    for k in range(-8, 5):
        best = better(np.maximum(rule * 2.0 ** (k / 2.0), least), best)
    for finer in BLOCK_FINER:
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
    times = max(int(np.floor(np.log2(bandwidth.min() / BLOCK_MANY))), 0)
    if times:
        cells, where = np.unique(np.floor(centres / 2.0**times), axis=0, return_inverse=True)
        rows = np.asarray(np.bincount(where.reshape(-1), rows), dtype=np.float64)
        centres = cells + 0.5
        bandwidth = bandwidth / 2.0**times
    some = np.arange(0, len(rows), -(-len(rows) // SOME))
    centres = np.ascontiguousarray(centres)
    logs = _core.kernels_left_out(kernel, centres, rows, bandwidth, some, n_threads(None))
    least = np.finfo(float).tiny
    n = rows.sum()
    left_out = np.minimum(rows[some], 1.0)
    logs = np.maximum(logs, np.log(least)) - np.log(np.maximum(n - left_out, least))
    logs = np.where(n - left_out > ROUNDING * n, logs, np.log(least))
    return float(rows[some] @ logs / rows[some].sum()) - times * len(bandwidth) * float(np.log(2.0))


# Asking ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bumps:
    """The kernels of one feature, in bins; ``floor`` has means and deviations of the normals mixed into compact kernels."""

    kernel: str
    centres: Real  # (cells, columns)
    weights: Real  # (cells, classes)
    bandwidth: Real  # (classes, columns)
    floor: Real  # (2, columns)


def _places(feature: Feature) -> tuple[Real, Real]:
    """Where the bins of each column begin, and how wide they are."""
    if feature.columns:
        return block_starts(feature), block_widths(feature)
    return np.array([feature.origin]), np.array([feature.unit])


@dataclass(frozen=True)
class KernelDensityParameters(NumericParameters):
    """The kernels of columns, or of blocks."""

    features: tuple[Feature, ...]
    bumps: tuple[Bumps, ...]

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        parts: list[_core.Part] = []
        for feature, (kernel_part, *shape) in zip(self.features, self._shapes, strict=True):
            columns: Any = rows.numbers(feature.inputs)
            parts.append(kernel_part(columns if feature.columns else columns[0].reshape(-1), *shape))
        return parts

    @cached_property
    def _shapes(self) -> list[tuple[Any, ...]]:
        """The class of each part, and its arguments beside the columns."""
        shapes: list[tuple[Any, ...]] = []
        for feature, bump in zip(self.features, self.bumps, strict=True):
            starts, widths = _places(feature)
            units = 2.0 ** np.floor(np.log2(widths))  # powers of two, which a bin need not be
            bins = widths / units
            centres = bump.centres * bins
            bandwidth = bump.bandwidth * bins
            floor = bump.floor * bins
            if feature.columns:
                arrays = (centres, bump.weights, bandwidth, floor)
                shapes.append((_core.ProductPart, starts, units, bump.kernel, *arrays))
                continue
            constant = np.full(len(bandwidth), -np.log(units[0]))
            unit = float(units[0])
            shape = (bump.kernel, centres[:, 0], bump.weights, bandwidth[:, 0], constant, floor[:, 0])
            shapes.append((_core.KernelPart, feature.origin, unit, *shape))
        return shapes

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
            starts, widths = _places(feature)
            columns += list((starts + widths * z).T)
        return columns

    def telling(self, compared: Comparison) -> Iterator[TellingValues] | None:
        return None if self.features[0].columns else super().telling(compared)

    def spread(self, f: int) -> tuple[Real, Real]:
        bump = self.bumps[f]
        feature = self.features[f]
        mean = bump.centres[:, 0] @ bump.weights
        variance = ((bump.centres - mean) ** 2 * bump.weights).sum(axis=0)
        deviation = np.sqrt(variance + (bump.bandwidth[:, 0] * DEVIATION[bump.kernel]) ** 2)
        return feature.origin + feature.unit * mean, feature.unit * deviation

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        from scipy.special import ndtr  # a third of a second to import; few need it

        bump = self.bumps[f]
        z = (cuts - self.features[f].origin) / self.features[f].unit
        apart = z[:, None] - bump.centres[:, 0]
        tails = []
        for sign in (1.0, -1.0):
            bumps = zip(bump.bandwidth[:, 0], bump.weights.T, strict=True)
            mass = np.stack([area(bump.kernel, sign * apart / h) @ weights for h, weights in bumps], axis=1)
            if bump.kernel != "normal":
                floor = ndtr(sign * (z - bump.floor[0]) / bump.floor[1])
                mass = (1.0 - MIXED_IN) * mass + MIXED_IN * floor[:, None]
            tails.append(mass)
        return tails[0], tails[1]


def bandwidths_of(parameters: Parameters) -> list[Any] | None:
    """The bandwidth of the one feature's kernels in each class, or those of a block's columns; None: it has none."""
    if not isinstance(parameters, KernelDensityParameters):
        return None
    (feature,) = parameters.features
    bandwidths = (parameters.bumps[0].bandwidth * _places(feature)[1]).tolist()
    if not feature.columns:
        return [row for (row,) in bandwidths]
    return [dict(zip(feature.columns, row, strict=True)) for row in bandwidths]
