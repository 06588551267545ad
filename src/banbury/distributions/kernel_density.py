"""Kernel density: a bump on every row, added up; kept as fine bins, so that it adds and subtracts like everything else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.distributions import kernels
from banbury.distributions.dirichlet import log
from banbury.distributions.family import (
    UNUSED,
    Choice,
    ColumnReader,
    Family,
    Feature,
    HeldOutRows,
    NumberColumn,
    NumericParameters,
    by_class,
    check_positive,
)
from banbury.distributions.histogram import GridFamily, Histogram, several
from banbury.distributions.kernel_block import KernelBlockParameters, product_bumps
from banbury.distributions.kernels import Kernel, means_and_deviations
from banbury.distributions.leave_one_out import CELLS
from banbury.sums import ROUNDING, Counts, Keys, Moments

RULES = ("scott", "silverman", "leave-one-out")
FINER = (0.25, 0.125, 0.0625)  # doublings from the best bandwidth to the next; at first half of one
MANY = 32  # bins to a bandwidth; more do not change its likelihood
SPARSE = 16  # times as many bins as are occupied: then they are added pair by pair
NEAR = 9.0  # bandwidths: beyond, a normal kernel's height is below 1e-18 ...
LONELY = 1e-11  # ... and nothing to a density above this share of all rows
MOST_TRIED = 10_000  # rows of a column whose family is chosen: every row is scored by every bin
AROUND = 256  # occupied bins on either side of a lonely one


@dataclass(frozen=True, repr=False)
class KernelDensity(GridFamily):
    """A kernel on every row of the class.

    ``bandwidth`` is a number in the column's own unit, or a rule for each class: ``"scott"``, ``"silverman"`` (both set the
    kernel's standard deviation, as SciPy's do) or ``"leave-one-out"``, which maximises the likelihood of each row under the
    kernels of the others. Rows are kept as fine bins, so the bandwidth is at least one bin, and a row counts as its bin's
    centre. ``gibbs`` draws the bins' weights (the Bayesian bootstrap); mle, map, mean and predictive are one.

    A block of columns has on every row a product of kernels, one per column, each with its own bandwidth; ``bandwidth``,
    ``start`` and ``width`` may then be a number for each column.

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
        if not isinstance(self.kernel, str) or self.kernel not in kernels.DEVIATION:
            raise errors.unknown_choice("kernel", self.kernel, kernels.DEVIATION)
        if isinstance(self.bandwidth, str):
            if self.bandwidth not in RULES:
                raise errors.unknown_choice("bandwidth", self.bandwidth, RULES)
        else:
            for each in several(self.bandwidth) or (self.bandwidth,):
                check_positive("bandwidth", each)

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        return () if column.few or column.n_rows > MOST_TRIED else (self,)

    def estimate(
        self, features: tuple[Feature, ...], sums: Counts, choice: Choice, rng: np.random.Generator
    ) -> KernelDensityParameters | KernelBlockParameters:
        if features[0].columns:
            made = partial(product_bumps, self.kernel, self.bandwidth)
            blocks = (made(block, *sums.feature(f), choice, rng) for f, block in enumerate(features))
            return KernelBlockParameters(features, tuple(blocks))
        bumps = (self._one(feature, *sums.feature(f), choice, rng) for f, feature in enumerate(features))
        return KernelDensityParameters(features, tuple(bumps))

    def _one(self, feature: Feature, keys: Any, rows: Any, choice: Choice, rng: np.random.Generator) -> Bumps:
        cells, n = rows.value, rows.shape[1]
        if not keys:
            return Bumps(self.kernel, np.zeros(1), np.zeros((1, n)), np.ones(n), np.array([0.0, 1.0]))
        together = cells.sum(axis=1, keepdims=True)
        cells = np.where(cells.sum(axis=0) > 0, cells, together)  # a class without rows here: all classes together
        centres = np.array(keys, dtype=np.float64) + 0.5
        bandwidth = np.clip(self._bandwidths(centres, cells, feature.unit), 1.0, kernels.WIDEST)
        if choice.how == "gibbs":
            drawn = rng.standard_gamma(cells)
            cells = np.where(drawn.sum(axis=0) > 0, drawn, cells)
        mean, deviation = means_and_deviations(centres, together[:, 0])
        floor = np.array([mean, max(deviation, 1.0)])
        return Bumps(self.kernel, centres, cells / cells.sum(axis=0), bandwidth, floor)

    def _bandwidths(self, centres: Real, cells: Real, unit: float) -> Real:
        """Per class, in bins."""
        if not isinstance(self.bandwidth, str):
            (bandwidth,) = several(self.bandwidth)
            return np.full(cells.shape[1], bandwidth / unit)
        n = cells.sum(axis=0)
        deviation = np.array([means_and_deviations(centres, rows)[1] for rows in cells.T])
        deviation /= kernels.DEVIATION[self.kernel]
        rule = deviation * (n * 0.75 if self.bandwidth == "silverman" else n) ** -0.2
        if self.bandwidth != "leave-one-out":
            return np.asarray(rule)
        return np.array([self._leave_one_out(centres, cells[:, c], rule[c]) for c in range(len(n))])

    def _leave_one_out(self, centres: Real, rows: Real, rule: float) -> float:
        """The bandwidth under which the rows' likelihood, each without its own kernel, is highest."""
        tried, likelihoods = self._tried(centres, rows, rule)
        return float(tried[likelihoods.argmax()]) if len(tried) else rule

    def _tried(self, centres: Real, rows: Real, rule: float) -> tuple[Real, Real]:
        """Bandwidths, in bins, and the rows' log-likelihood under each; none where there is nothing to leave out."""
        centres, rows = centres[rows > 0], rows[rows > 0]
        if len(centres) < 2:
            return np.empty(0), np.empty(0)
        least = kernels.least_bandwidth(self.kernel, centres, rows)

        def likelihoods(tried: Iterable[float]) -> dict[float, float]:
            return {h: self._likelihood_left_out(centres, rows, h) for h in (max(h, least) for h in tried)}

        found = likelihoods(rule * 2.0 ** (k / 2.0) for k in range(-12, 7))
        for finer in FINER:
            best = max(found, key=lambda h: found[h])
            found |= likelihoods([best / 2.0**finer, best * 2.0**finer])
        tried = np.array(sorted(found))
        return tried, np.array([found[h] for h in tried.tolist()])

    def tried_bandwidths(self, feature: Feature, sums: Counts, f: int, c: int) -> tuple[Real, Real]:
        """In the column's own unit, with the mean log-likelihood of a row; none where there are no two values."""
        self.check_line(feature)
        keys, rows = sums.feature(f)
        centres, own = np.array(keys, dtype=np.float64) + 0.5, rows.value[:, c]
        if not own.any():
            return np.empty(0), np.empty(0)
        rule = replace(self, bandwidth="scott")._bandwidths(centres, own[:, None], 1.0)[0]
        tried, likelihoods = self._tried(centres, own, rule)
        return tried * feature.unit, likelihoods / own.sum() - np.log(feature.unit)

    def with_bandwidth(self, bandwidth: float) -> KernelDensity:
        return replace(self, bandwidth=float(bandwidth))

    def adjective(self) -> str:
        return "kernel"

    def _likelihood_left_out(self, centres: Real, rows: Real, bandwidth: float) -> float:
        centres, rows, h = _joined(centres, rows, bandwidth)
        own, n = np.minimum(rows, 1.0), rows.sum()  # one row of a bin; all of it where weights make it less
        density = _others(self.kernel, centres, rows, h) + (rows - own) * kernels.height(self.kernel, np.zeros(1))[0]
        least = np.finfo(float).tiny
        logs = np.log(np.maximum(density, least)) - np.log(np.maximum(n - own, least))
        return float(rows @ np.where(n - own > ROUNDING * n, logs, np.log(least))) - float(n * np.log(bandwidth))

    def n_parameters(self, features: tuple[Feature, ...], sums: Counts | Moments) -> list[tuple[int, int]]:
        assert isinstance(sums, Counts)
        sizes = zip(features, sums.keys, strict=True)
        return [(max(len(keys) - 1, 0) + len(feature.inputs), 0) for feature, keys in sizes]

    def joined_cells(self, feature: Feature, keys: Keys, cells: Real) -> Real:
        return Histogram().joined_cells(feature, keys, cells)

    def can_leave_one_out(self, features: tuple[Feature, ...], choice: Choice, weighted: bool) -> bool:
        return not features[0].columns and super().can_leave_one_out(features, choice, weighted)

    def leave_one_out(self, features: tuple[Feature, ...], sums: Counts, choice: Choice, held_out: HeldOutRows) -> Real:
        """Only the row's own class changes, by the row's own kernel; the bandwidths are those of all rows."""
        parameters = self.estimate(features, sums, choice, UNUSED)
        assert isinstance(parameters, KernelDensityParameters)
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
            labels, weights = held_out.labels[there], held_out.weight[there]
            empty = rows.value.sum(axis=0) <= 0  # such a class has the kernels of all classes, the row's own among them
            for c in range(len(empty)):
                mine = np.flatnonzero((labels == c) | empty[c])
                for some in np.array_split(mine, max(1, len(mine) * len(keys) // CELLS)):
                    density = _density_without(bump, rows.value, c, z[some], bins[some], weights[some])
                    scores[there[some], f, c] = density - np.log(feature.unit)
        return np.asarray(scores.sum(axis=1))

    def leave_one_out_notes(self) -> list[str]:
        return ["the bandwidths of kernels"]


def _joined(centres: Real, rows: Real, bandwidth: float) -> tuple[Real, Real, float]:
    """Bins joined in pairs, again and again, while the bandwidth is many of them; and the bandwidth in these bins."""
    times = max(int(np.floor(np.log2(bandwidth / MANY))), 0)
    if not times:
        return centres, rows, bandwidth
    joined, where = np.unique(np.floor(centres / 2.0**times), return_inverse=True)
    return joined, np.asarray(np.bincount(where, rows), dtype=np.float64), bandwidth / 2.0**times


def _others(kernel: str, centres: Real, rows: Real, bandwidth: float) -> Real:
    """Σ rows K((centre − other) / bandwidth) over the other bins: those near, and farther ones where they are all there is.

    Terms are added one by one: an FFT's rounding would decide how likely the loneliest rows are.
    """
    found = _near(kernel, centres, rows, bandwidth, NEAR if kernel == "normal" else 1.0)
    if kernel == "normal":
        lonely = np.flatnonzero(found < LONELY * rows.sum())
        for block in np.array_split(lonely, len(lonely) // 256 + 1):
            others = block[:, None] + np.concatenate([np.arange(-AROUND, 0), np.arange(1, AROUND + 1)])
            inside = (others >= 0) & (others < len(centres))
            others = np.clip(others, 0, len(centres) - 1)
            heights = kernels.height(kernel, (centres[block, None] - centres[others]) / bandwidth)
            found[block] = (heights * rows[others] * inside).sum(axis=1)
    return found


def _near(kernel: str, centres: Real, rows: Real, bandwidth: float, reach: float) -> Real:
    """The same over the other bins within reach, in bandwidths."""
    steps = int(reach * bandwidth) + 1
    if centres[-1] - centres[0] > SPARSE * len(centres):
        found = np.empty(len(centres))
        for block in np.array_split(np.arange(len(centres)), len(centres) // 64 + 1):
            low, high = np.searchsorted(centres, [centres[block[0]] - steps, centres[block[-1]] + steps + 1])
            heights = kernels.height(kernel, (centres[block, None] - centres[low:high]) / bandwidth)
            heights[block - block[0], block - low] = 0.0
            found[block] = heights @ rows[low:high]
        return found
    at = (centres - centres[0]).astype(np.int64)
    heights = kernels.height(kernel, np.arange(-steps, steps + 1) / bandwidth)
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
    bandwidth = bump.bandwidth[c]
    u = (z[:, None] - bump.centres) / bandwidth
    size = counts.sum(axis=1)
    nothing = size <= 0
    share = counts / np.where(nothing, 1.0, size)[:, None]
    if bump.kernel == "normal":
        logs = log(share) - 0.5 * u * u - 0.5 * np.log(2.0 * np.pi)
        top = np.where(nothing, 0.0, logs.max(axis=1))
        result = top + np.log(np.where(nothing, 1.0, np.exp(logs - top[:, None]).sum(axis=1))) - np.log(bandwidth)
        return np.where(nothing, 0.0, result)
    density = (share * kernels.height(bump.kernel, u)).sum(axis=1) / bandwidth
    mean, deviation = bump.floor
    floor = np.exp(-0.5 * ((z - mean) / deviation) ** 2) / (deviation * np.sqrt(2.0 * np.pi))
    mixed = (1.0 - kernels.MIXED_IN) * density + kernels.MIXED_IN * floor
    far = np.log(kernels.MIXED_IN) - 0.5 * ((z - mean) / deviation) ** 2 - np.log(deviation * np.sqrt(2.0 * np.pi))
    return np.where(nothing, 0.0, np.where(mixed > 0, np.log(np.where(mixed > 0, mixed, 1.0)), far))


@dataclass(frozen=True)
class Bumps:
    """The kernels of one feature, in bins; ``floor`` is the mean and deviation of the normal mixed into compact kernels."""

    kernel: str
    centres: Real
    weights: Real
    bandwidth: Real
    floor: Real


@dataclass(frozen=True)
class KernelDensityParameters(NumericParameters):
    """The kernels of each feature."""

    features: tuple[Feature, ...]
    bumps: tuple[Bumps, ...]

    def parts(self, rows: ColumnReader) -> list[tuple[Any, ...]]:
        parts = []
        for feature, bump in zip(self.features, self.bumps, strict=True):
            column = rows.numbers([feature.name])[0].reshape(-1)
            unit = float(2.0 ** np.floor(np.log2(feature.unit)))  # a power of two, which a bin need not be
            bin_ = feature.unit / unit
            constant = np.full(len(bump.bandwidth), -np.log(unit))
            shape = (bump.kernel, bump.centres * bin_, bump.weights, bump.bandwidth * bin_, constant, bump.floor * bin_)
            parts.append(("kernel", column, feature.origin, unit, *shape))
        return parts

    def sample(self, classes: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[Any]]:
        columns = []
        for feature, bump in zip(self.features, self.bumps, strict=True):
            z = np.empty(len(classes))
            for c, rows in enumerate(by_class(classes, bump.weights.shape[1])):
                share = bump.weights[:, c]
                share = share if share.any() else np.full(len(share), 1.0 / len(share))
                centre = rng.choice(bump.centres, size=len(rows), p=share)
                z[rows] = centre + bump.bandwidth[c] * kernels.noise(bump.kernel, len(rows), rng)
                stray = (rng.random(len(rows)) < kernels.MIXED_IN) & (bump.kernel != "normal")
                z[rows[stray]] = rng.normal(bump.floor[0], bump.floor[1], int(stray.sum()))
            columns.append(feature.origin + feature.unit * z)
        return columns

    def bandwidths(self) -> list[float]:
        return list((self.bumps[0].bandwidth * self.features[0].unit).tolist())

    def spread(self, f: int) -> tuple[Real, Real]:
        bump, feature = self.bumps[f], self.features[f]
        mean = bump.centres @ bump.weights
        variance = ((bump.centres[:, None] - mean) ** 2 * bump.weights).sum(axis=0)
        deviation = np.sqrt(variance + (bump.bandwidth * kernels.DEVIATION[bump.kernel]) ** 2)
        return feature.origin + feature.unit * mean, feature.unit * deviation

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        from scipy.special import ndtr  # a third of a second to import; few need it

        bump, z = self.bumps[f], (cuts - self.features[f].origin) / self.features[f].unit
        apart = z[:, None] - bump.centres
        found = []
        for sign in (1.0, -1.0):
            bumps = zip(bump.bandwidth, bump.weights.T, strict=True)
            mass = np.stack([kernels.area(bump.kernel, sign * apart / h) @ weights for h, weights in bumps], axis=1)
            if bump.kernel != "normal":
                floor = ndtr(sign * (z - bump.floor[0]) / bump.floor[1])
                mass = (1.0 - kernels.MIXED_IN) * mass + kernels.MIXED_IN * floor[:, None]
            found.append(mass)
        return found[0], found[1]
