"""What a family says of a row when that row is not counted: for every row at once, from the sums of all.

Sums without one row differ from the sums of all in one cell, so that most of what is estimated stays. Prior, smoothing and the
values there are follow exactly. Of what depends on all rows in a way that no formula follows, the bins of histograms and the
bandwidths of kernels stay those of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.distributions import dirichlet
from banbury.distributions.bernoulli import Bernoulli, BernoulliParameters
from banbury.distributions.categorical import Categorical, CategoricalParameters
from banbury.distributions.family import Choice, ColumnReader, Family, Feature, How, at_least
from banbury.distributions.gaussian import FLOOR, Gaussian, GaussianParameters, pooled
from banbury.distributions.histogram import Histogram, HistogramParameters
from banbury.distributions.kernel_density import Bumps, KernelDensity, KernelDensityParameters
from banbury.distributions.kernels import MIXED_IN, kernel_height
from banbury.distributions.poisson import PoissonParameters
from banbury.sums import Counts, Moments, weighed

NEAR = 4.0  # a variance below so many times the least one may be raised to it
EXACT = 1e-4  # of the sum of squares at least must be left for a difference to be exact
CELLS = 1 << 18  # rows × classes, or rows × bins, that are looked at together
UNUSED = np.random.default_rng(0)


@dataclass(frozen=True)
class HeldOutRows:
    """Rows that were counted: of each the number of its class, and its weight; None for ones."""

    rows: ColumnReader
    labels: Int
    weights: Real | None
    threads: int

    @property
    def weight(self) -> Real:
        return np.ones(len(self.labels)) if self.weights is None else self.weights


def left_one_out(family: Family, features: tuple[Feature, ...], sums: Any, choice: Choice, own: HeldOutRows) -> Real:
    """log P(values | class) of each row, (rows, classes), under what all rows but itself add up to."""
    parameters = family.estimate(features, sums, choice, UNUSED)
    if isinstance(parameters, (CategoricalParameters, BernoulliParameters)):
        return _keyed(family, parameters, sums, choice, own)
    if isinstance(parameters, HistogramParameters):
        assert isinstance(family, Histogram)
        return _histograms(family, parameters, sums, choice, own)
    if isinstance(parameters, KernelDensityParameters):
        assert isinstance(family, KernelDensity)
        return _kernels(family, parameters, sums, own)
    if isinstance(family, Gaussian) and isinstance(parameters, GaussianParameters) and family.is_plain(choice.how):
        return _gaussian(family, parameters, sums, choice, own)
    return _measured(family, features, sums, choice, own)


# Keys ----------------------------------------------------------------------------------------------------------------


def _cells(parts: list[tuple[Any, ...]], own: HeldOutRows) -> Int:
    """Which cell each value fell into, (rows, features), −1 where it is missing: the kernel looks up tables of cell numbers."""
    found = _core.score(own.rows.n_rows, np.zeros(1), parts, "parts", own.threads)[0]
    return np.asarray(np.rint(found[:, :, 0]).astype(np.int64) - 1)


def _keyed(
    family: Family,
    parameters: CategoricalParameters | BernoulliParameters,
    sums: Counts,
    choice: Choice,
    own: HeldOutRows,
) -> Real:
    n_cells = sums.cells.shape[0]
    numbers = np.arange(1.0, n_cells + 1.0)[:, None]
    if isinstance(parameters, CategoricalParameters):
        unseen = np.zeros((len(parameters.features), 1))
        numbered: CategoricalParameters | BernoulliParameters = replace(
            parameters, table=np.concatenate([numbers, unseen])
        )
    else:
        pairs = numbers.reshape(-1, 2)
        numbered = replace(parameters, no=pairs[:, :1].copy(), yes=pairs[:, 1:].copy())
    places = _cells(numbered.parts(own.rows), own)
    cells, total = sums.cells.value, np.zeros((len(own.labels), sums.cells.shape[1]))
    declared = family.declared() or frozenset()
    for f, (start, stop) in enumerate(zip(sums.offsets, sums.offsets[1:], strict=False)):
        keys, there = sums.keys[f], np.flatnonzero(places[:, f] >= 0)
        if not keys:
            continue
        if isinstance(family, Categorical):
            alpha = family.pseudo_counts(keys, choice.alpha)
            spread = family.m is not None and family.p is None
        else:
            assert isinstance(family, Bernoulli)
            alpha, spread = family.pseudo_counts(choice.alpha), False
        stays = np.array([key in declared for key in keys], dtype=np.bool_)
        table = _Shares(cells[start:stop], alpha, choice.how, stays, spread)
        total[there] += table.of_rows(places[there, f] - start, own.labels[there], _some(own.weights, there))
    return total


def _some(weights: Real | None, rows: Int) -> Real | None:
    return None if weights is None else weights[rows]


@dataclass(frozen=True)
class _Shares:
    """One feature's cells, (keys, classes), under a Dirichlet prior. Keys that do not stay are gone with their last row.

    ``spread``: the prior's strength is spread evenly over whatever keys there are.
    """

    cells: Real
    alpha: Real
    how: How
    stays: NDArray[np.bool_]
    spread: bool

    def of_rows(self, keys: Int, labels: Int, weights: Real | None) -> Real:
        """log P(key | class), (rows, classes), each without the row's own weight."""
        if weights is not None:
            return self._each(keys, labels, weights)
        n_classes = self.cells.shape[1]
        pairs, inverse = np.unique(keys * n_classes + labels, return_inverse=True)
        found = self._each(pairs // n_classes, pairs % n_classes, np.ones(len(pairs)))
        return found[inverse.reshape(-1)]

    def _each(self, keys: Int, labels: Int, weights: Real) -> Real:
        at, n_keys = np.arange(len(keys)), len(self.cells)
        pseudo = _pseudo_counts(self.alpha, self.how)
        counts = self.cells[keys]
        every = np.broadcast_to(self.cells.sum(axis=0), counts.shape).copy()
        parts = np.maximum(self.cells + pseudo[:, None], 0.0)
        whole = np.broadcast_to(parts.sum(axis=0), counts.shape).copy()
        mine = np.maximum(counts[at, labels] - weights, 0.0)
        mine[mine <= _rounding(self.cells, weights)] = 0.0
        part = parts[keys]
        left = np.maximum(mine + pseudo[keys], 0.0)
        whole[at, labels] += left - part[at, labels]
        part[at, labels] = left
        every[at, labels] -= counts[at, labels] - mine
        counts[at, labels] = mine
        if pseudo.min() >= 0:  # of whole numbers the sum is exact, and next to no smoothing is not lost in a difference
            whole = np.maximum(every, 0.0) + pseudo.sum()
        share = np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 1.0 / n_keys)
        result = dirichlet.log(np.maximum(share, 0.0))
        gone = ~self.stays[keys] & ~counts.any(axis=1)
        if gone.any():
            result[gone] = self._unseen(keys[gone], np.maximum(every[gone], 0.0))
        return result

    def _unseen(self, keys: Int, every: Real) -> Real:
        """The same of keys that no other row has."""
        if self.how == "mle":
            return np.zeros(every.shape)
        size = len(self.cells) - 1
        rest = self.alpha.sum() - (0.0 if self.spread else self.alpha[keys])
        strength = np.broadcast_to(rest / max(size, 1), keys.shape)
        strength = np.maximum(strength - 1.0, 0.0) if self.how == "map" else at_least(strength)
        rows = every + (strength * size)[:, None]
        skip = (strength == 0)[:, None] | (rows <= 0) | (size == 0)
        return np.where(skip, 0.0, np.log(np.where(skip, 1.0, strength[:, None] / np.where(skip, 1.0, rows))))


def _rounding(cells: Real, weights: Real) -> Real:
    """What may be left of a cell for no other reason than that sums are rounded; those of whole numbers are not."""
    whole = bool((weights == np.rint(weights)).all()) and bool((cells == np.rint(cells)).all())
    return 0.0 * weights if whole else 1e-12 * weights


def _pseudo_counts(alpha: Real, how: How) -> Real:
    if how == "mle":
        return np.zeros_like(alpha)
    return alpha - 1.0 if how == "map" else at_least(alpha)


# Bins ----------------------------------------------------------------------------------------------------------------


def _histograms(
    family: Histogram, parameters: HistogramParameters, sums: Counts, choice: Choice, own: HeldOutRows
) -> Real:
    """As for keys: every bin stays."""
    alpha = choice.alpha if family.alpha is None else family.alpha
    total = np.zeros((len(own.labels), sums.cells.shape[1]))
    numbered = replace(
        parameters, tables=tuple(np.arange(1.0, len(table) + 1.0)[:, None] for table in parameters.tables)
    )
    places = _cells(numbered.parts(own.rows), own)
    for f, width in enumerate(parameters.widths):
        keys, rows = sums.feature(f)
        cells = family.joined(keys, rows.value).cells
        there = np.flatnonzero(places[:, f] >= 0)
        table = _Shares(cells, np.full(len(cells), alpha), choice.how, np.ones(len(cells), dtype=np.bool_), False)
        found = table.of_rows(places[there, f], own.labels[there], _some(own.weights, there))
        total[there] += found - np.log(width)
    return total


def _kernels(family: KernelDensity, parameters: KernelDensityParameters, sums: Counts, own: HeldOutRows) -> Real:
    """Only the row's own class changes, by the row's own kernel."""
    found = _core.score(
        own.rows.n_rows, np.zeros(sums.cells.shape[1]), parameters.parts(own.rows), "parts", own.threads
    )[0]
    for f, (feature, bump) in enumerate(zip(parameters.features, parameters.bumps, strict=True)):
        keys, rows = sums.feature(f)
        if not keys:
            continue
        x = np.asarray(own.rows.numbers([feature.name])[0], dtype=np.float64).reshape(-1)
        there = np.flatnonzero(~np.isnan(x))
        z = (x[there] - feature.origin) / feature.unit
        codes = _core.bins(np.ascontiguousarray(x[there]), feature.origin, feature.unit, own.threads)
        bins = np.searchsorted(np.array(keys, dtype=np.int64), codes)
        labels, weights = own.labels[there], own.weight[there]
        empty = rows.value.sum(axis=0) <= 0  # such a class has the kernels of all classes, the row's own among them
        for c in range(len(empty)):
            mine = np.flatnonzero((labels == c) | empty[c])
            for some in np.array_split(mine, max(1, len(mine) * len(keys) // CELLS)):
                density = _density_without(bump, rows.value, c, z[some], bins[some], weights[some])
                found[there[some], f, c] = density - np.log(feature.unit)
    return np.asarray(found.sum(axis=1))


def _density_without(bump: Bumps, cells: Real, c: int, z: Real, bins: Int, weights: Real) -> Real:
    """Log density, in bins, of values of class c, each without its own weight in its own bin."""
    counts = np.broadcast_to(cells[:, c], (len(z), len(cells))).copy()
    at = np.arange(len(z))
    counts[at, bins] = np.maximum(counts[at, bins] - weights, 0.0)
    counts[at, bins] *= counts[at, bins] > _rounding(counts, weights)
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
        logs = dirichlet.log(share) - 0.5 * u * u - 0.5 * np.log(2.0 * np.pi)
        top = np.where(nothing, 0.0, logs.max(axis=1))
        result = top + np.log(np.where(nothing, 1.0, np.exp(logs - top[:, None]).sum(axis=1))) - np.log(bandwidth)
        return np.where(nothing, 0.0, result)
    density = (share * kernel_height(bump.kernel, u)).sum(axis=1) / bandwidth
    mean, deviation = bump.floor
    floor = np.exp(-0.5 * ((z - mean) / deviation) ** 2) / (deviation * np.sqrt(2.0 * np.pi))
    mixed = (1.0 - MIXED_IN) * density + MIXED_IN * floor
    far = np.log(MIXED_IN) - 0.5 * ((z - mean) / deviation) ** 2 - np.log(deviation * np.sqrt(2.0 * np.pi))
    return np.where(nothing, 0.0, np.where(mixed > 0, np.log(np.where(mixed > 0, mixed, 1.0)), far))


# Moments -------------------------------------------------------------------------------------------------------------


def _gaussian(
    family: Gaussian, parameters: GaussianParameters, sums: Moments, choice: Choice, own: HeldOutRows
) -> Real:
    """Only the row's own class changes, by the formula for one value less, but where little would be left of the variance.

    There, and in columns where some class has next to no variance, every row's sums are estimated by themselves.
    """
    floor = FLOOR * pooled(sums)[1]
    low = (sums.n.value <= 0) | (sums.spread < NEAR * floor * sums.n.value)  # a class without values has those of all
    slow = np.flatnonzero(low.any(axis=1)).tolist()
    quick = np.flatnonzero(~low.any(axis=1)).tolist()
    total = np.zeros((len(own.labels), sums.n.shape[1]))
    if slow:
        chosen = tuple(parameters.features[f] for f in slow)
        total += _measured(family, chosen, sums.select(slow), choice, own)
    if not quick:
        return total
    kept, alone = parameters.select(quick), sums.select(quick)
    total += _core.score(len(own.labels), np.zeros(total.shape[1]), kept.parts(own.rows), "log_joint", own.threads)[0]
    gains = _gains(kept, alone, floor[quick][:, 0], own)
    total[np.arange(len(gains)), own.labels] += gains
    doubtful = np.flatnonzero(np.isnan(gains))
    if len(doubtful):
        some = HeldOutRows(own.rows.take(doubtful), own.labels[doubtful], _some(own.weights, doubtful), own.threads)
        total[doubtful] = _measured(family, kept.features, alone, choice, some)
        if slow:
            total[doubtful] += _measured(family, chosen, sums.select(slow), choice, some)
    return total


def _gains(kept: GaussianParameters, sums: Moments, floor: Real, own: HeldOutRows) -> Real:
    """What one value less changes in the log density of that value in its own class, summed over features.

    Without weight w, n becomes n − w, and the sum of squares S becomes S · (1 − t), t = w n / (n − w) · gap² / S. NaN where next
    to nothing would be left of S, so that the difference is not exact.
    """
    columns = own.rows.numbers([feature.name for feature in kept.features])
    tables = (kept.mean, kept.precision, sums.n.value, sums.spread)
    curves = (*(np.ascontiguousarray(table, dtype=np.float64) for table in tables), np.ascontiguousarray(floor))
    labels = np.ascontiguousarray(own.labels, dtype=np.int32)
    weights = None if own.weights is None else np.ascontiguousarray(own.weights)
    return _core.one_less(columns, kept.origin, kept.unit, labels, curves, weights, (EXACT, NEAR), own.threads)  # type: ignore[arg-type]


def _measured(family: Family, features: tuple[Feature, ...], sums: Moments, choice: Choice, own: HeldOutRows) -> Real:
    """Each row's sums are estimated as if they were those of a feature of its own."""
    n_classes = sums.n.shape[1]
    total, weight = np.zeros((len(own.labels), n_classes)), own.weight
    for f, feature in enumerate(features):
        x = np.asarray(own.rows.numbers([feature.name])[0], dtype=np.float64).reshape(-1)
        there = np.flatnonzero(~np.isnan(x) & (weight > 0))
        alone = sums.select([f])
        for some in np.array_split(there, max(1, len(there) * n_classes // CELLS)):
            left = _without(alone, feature, x[some], own.labels[some], _some(own.weights, some))
            parameters = family.estimate((feature,) * len(some), left, choice, UNUSED)
            total[some] += each(parameters, x[some])
    return total


def _without(sums: Moments, feature: Feature, x: Real, labels: Int, weights: Real | None) -> Moments:
    """One feature's sums, once for each row, without that row, which is counted as a class of its own."""
    n, n_classes, numbers = len(x), sums.n.shape[1], np.arange(len(x), dtype=np.int32)
    origin, unit = np.array([feature.origin]), np.array([feature.unit])
    alone, parts = weighed(numbers, weights)
    rows, mine = _core.count_moments([x], origin, unit, alone, n, parts, 1)
    place = numbers * n_classes + labels
    gone = rows.arranged([n]).merge(place, n * n_classes, 0).arranged([n, n_classes])
    own = mine.arranged([n, 2]).merge(place, n * n_classes, 0).arranged([n, n_classes, 2])
    return sums.take(np.zeros(n), 0) - Moments(gone, own)


def each(parameters: Any, x: Real) -> Real:
    """log P(value | class) of each value, (values, classes), where every value has a feature of its own."""
    if isinstance(parameters, PoissonParameters):
        return parameters.log_probability_of_each(x)
    assert isinstance(parameters, GaussianParameters)
    z = np.clip((x - parameters.origin) / parameters.unit, -(2.0**400), 2.0**400)[:, None]
    square = parameters.precision * (z - parameters.mean) ** 2
    if parameters.power is None:
        return np.asarray(parameters.constant - square)
    return np.asarray(parameters.constant - parameters.power * np.log1p(square))


def notes(features: Sequence[Feature]) -> list[str]:
    """What stays that of all rows."""
    shapes = {feature.family.name for feature in features}
    kept = [("histogram", "the bins of histograms"), ("kernel_density", "the bandwidths of kernels")]
    return [what for name, what in kept if name in shapes]
