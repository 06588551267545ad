"""A block of numeric columns as one normal distribution: means, and a covariance per class or one for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Real
from banbury.families.evidence import Comparison, TellingValues, stretches
from banbury.families.family import ColumnReader, Feature, NumericParameters, Parameters, columns_of, line_by_line
from banbury.families.moments import log_rising
from banbury.sums import Products

LEAST = 1e-6  # of the columns' variances, mixed into a covariance that rows do not settle
SHARES = (1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 2.0 * 64)  # of its diagonal, for a covariance that has no root by rounding
NARROW = 1e-12  # a covariance is not settled if its smallest eigenvalue is less than this share of its largest


@dataclass(frozen=True)
class Prior:
    """Normal-inverse-Wishart: ``kappa`` pseudo-rows for the mean, ``nu`` for the covariance, which is centred on the columns'
    own variances."""

    kappa: float
    nu: float
    mean: Real
    scale: Real  # (columns, columns)


@dataclass(frozen=True)
class Posterior:
    """Where it is centred and how strong it is, per class; ``scale`` is a sum of products."""

    mean: Real  # (classes, columns)
    kappa: Real
    nu: Real
    scale: Real  # (classes, columns, columns)
    n_means: int  # that have a covariance in common

    def posterior_mean(self) -> Real:
        """The covariance's mean, which exists only above two degrees of freedom; below, the mode."""
        proper = self.nu > 2.0
        share = np.where(proper, 1.0 / np.where(proper, self.nu - 2.0, 1.0), 1.0 / self._mode)
        return np.asarray(share[:, None, None] * self.scale)

    def mode(self) -> Real:
        """The covariance at the joint mode of it and its means."""
        return self.scale / self._mode[:, None, None]

    @property
    def _mode(self) -> Real:
        return np.asarray(self.nu + 2.0 * self.mean.shape[1] + self.n_means)

    def draw(self, tied: bool, rng: np.random.Generator) -> tuple[Real, Real]:
        """One draw of means and covariances (Bartlett)."""
        size, d = self.mean.shape
        covariance = np.empty((size, d, d))
        for c in range(size):
            if tied and c:
                covariance[c] = covariance[0]
                continue
            degrees = float(self.nu[c]) + d - 1.0
            lower = np.tril(rng.standard_normal((d, d)), -1)
            lower[np.diag_indices(d)] = np.sqrt(rng.chisquare(degrees - np.arange(d)))
            root = _cholesky(self.scale[c : c + 1])[1][0] @ np.linalg.inv(lower).T
            covariance[c] = root @ root.T
        roots = _cholesky(covariance)[1]
        noise = np.einsum("cij,cj->ci", roots, rng.standard_normal((size, d)))
        return self.mean + noise / np.sqrt(self.kappa)[:, None], covariance


def shrink_scatter(sums: Products) -> Real:
    """The products about the means of their classes, summed, with a share of their correlations taken away.

    The share is that of the oracle-approximating shrinkage (Chen, Wiesel, Eldar and Hero, 2010, "Shrinkage algorithms for MMSE
    covariance estimation", IEEE Transactions on Signal Processing 58), which needs the sums alone. It is that of the correlations
    R, whose target is 1 on the diagonal, so that units have no part in it: of d columns that vary, and n rows less one for
    each class's mean, min(1, ((1 − 2/d) tr R² + d²) / ((n + 1 − 2/d) (tr R² − d))).
    """
    within = sums.scatter.sum(axis=0)
    variance = np.diagonal(within)
    deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
    correlation = within / deviation[:, None] / deviation
    degrees = float(sums.n.value.sum() - np.minimum(sums.n.value, 1.0).sum())  # rows, less one for each class's mean
    kept = 1.0 - shrinkage(float(np.square(correlation).sum()), int((variance > 0).sum()), degrees)
    return np.asarray(np.where(np.eye(len(within), dtype=np.bool_), within, kept * within))


def shrinkage(squares: float, d: int, n: float) -> float:
    """The share, where the correlations of d columns in n degrees of freedom have this sum of squares."""
    beyond = (n + 1.0 - 2.0 / max(d, 1)) * (squares - d)
    return min((((1.0 - 2.0 / d) * squares + d * d) / beyond), 1.0) if d > 1 and beyond > 0 else 1.0


def plain(sums: Products, tied: bool, shrink: bool, feature: Feature) -> tuple[Real, Real]:
    """Means and 1/n covariances; a class without rows has those of all, and what rows do not settle is mended."""
    n, (rows, centre, scatter) = sums.n.value, sums.pooled()
    every = scatter / max(rows, 1e-300)
    if tied:
        within = (shrink_scatter(sums) if shrink else sums.scatter.sum(axis=0)) / max(rows, 1e-300)
        if shrink:  # of many numbers some are the same in all rows, and tell nothing
            within = within + LEAST * np.diag(np.diagonal(every) <= 0)
        covariance = np.broadcast_to(within, sums.scatter.shape)
    else:
        some = (n > 0)[:, None, None]
        covariance = np.where(some, sums.scatter / np.where(n > 0, n, 1.0)[:, None, None], every)
    means = np.where((n > 0)[:, None], sums.mean, centre)
    return means, _make_invertible(covariance, every, n if not tied else np.full(len(n), rows), feature)


def _make_invertible(covariance: Real, every: Real, n: Real, feature: Feature) -> Real:
    """The covariances, with a little of the columns' own variances where they would have no inverse."""
    variance = np.diagonal(every)
    diagonal = np.diag(np.where(variance > 0, variance, 1.0))
    scale = np.sqrt(np.diagonal(diagonal))
    values = np.linalg.eigvalsh(covariance / scale[:, None] / scale)
    loose = ~(values[:, 0] > NARROW * np.maximum(values[:, -1], 1.0))
    if loose.any() and n.any():
        tied = getattr(feature.family, "covariance", None) != "full"
        columns = errors.many(len(variance), "column")
        rows = errors.many(int(n[loose].min()), "row")
        too_few = rows if tied else f"a class of {rows}"
        advice = "" if tied else "covariance='tied', "
        text = f"block {feature.name!r} of {columns} has {too_few}, whose covariance has no inverse; a little of each column's "
        errors.warn(f"{text}own variance is mixed into it. Take fewer columns, {advice}or a prior.")
    return np.where(loose[:, None, None], (1.0 - LEAST) * covariance + LEAST * diagonal, covariance)


def posterior(sums: Products, prior: Prior, tied: bool, shrink: bool) -> Posterior:
    n = sums.n.value
    kappa = prior.kappa + n
    apart = sums.mean - prior.mean
    extra = (prior.kappa * n / kappa)[:, None, None] * np.einsum("ci,cj->cij", apart, apart)
    strength = n
    if not tied:
        extra = sums.scatter + extra
    else:
        within = shrink_scatter(sums) if shrink else sums.scatter.sum(axis=0)
        extra = np.broadcast_to(within + extra.sum(axis=0), extra.shape)
        strength = np.full(len(n), n.sum())
    mean = (prior.kappa * prior.mean + n[:, None] * sums.mean) / kappa[:, None]
    return Posterior(mean, kappa, prior.nu + strength, prior.nu * prior.scale + extra, n_means(sums, tied))


def n_means(sums: Products, tied: bool) -> int:
    """How many means have a covariance in common: of all classes that have rows, or one."""
    return int(np.count_nonzero(sums.n.value)) if tied else 1


def normal(features: tuple[Feature, ...], mean: Real, covariance: Real) -> GaussianBlockParameters:
    d = mean.shape[1]
    covariance, roots = _cholesky(covariance)
    constant = -0.5 * d * np.log(2.0 * np.pi) - _log_volume(roots)
    return GaussianBlockParameters(features, mean, covariance, constant, None)


def student(features: tuple[Feature, ...], posterior: Posterior) -> GaussianBlockParameters:
    """The predictive distribution: Student t of ``nu`` degrees of freedom."""
    scale = posterior.scale * ((posterior.kappa + 1.0) / (posterior.kappa * posterior.nu))[:, None, None]
    return _student(features, posterior.mean, scale, posterior.nu)


def _student(features: tuple[Feature, ...], mean: Real, scale: Real, nu: Real) -> GaussianBlockParameters:
    d = mean.shape[1]
    scale, roots = _cholesky(scale)
    constant = log_rising(nu / 2.0, d / 2.0) - 0.5 * d * np.log(nu * np.pi) - _log_volume(roots)
    return GaussianBlockParameters(features, mean, scale, constant, nu)


def _cholesky(covariance: Real) -> tuple[Real, Real]:
    """Covariances and their lower triangular roots; more and more of their own diagonal is added to one that has none."""
    deviation = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), np.finfo(float).tiny))
    sides = deviation[:, :, None] * deviation[:, None, :]
    correlation = covariance / sides
    for share in (0.0, *SHARES):
        mended = correlation + share * np.eye(covariance.shape[1])
        try:
            roots = np.linalg.cholesky(mended)
        except np.linalg.LinAlgError:
            continue
        return mended * sides, roots * deviation[:, :, None]
    raise AssertionError("a correlation is no more than 1")


def _log_volume(roots: NDArray[Any]) -> Real:
    return np.asarray(np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1))


@dataclass(frozen=True)
class GaussianBlockParameters(Parameters):
    """Normal densities of a block, or Student t where ``nu`` is given, in units of z, per class."""

    features: tuple[Feature, ...]
    mean: Real  # (classes, columns)
    covariance: Real  # (classes, columns, columns)
    constant: Real  # of z
    nu: Real | None

    @property
    def names(self) -> tuple[str, ...]:
        return self.features[0].inputs

    @cached_property
    def _scales(self) -> tuple[Real, Real]:
        origin, unit = np.array(self.features[0].scales).T
        return np.ascontiguousarray(origin), np.ascontiguousarray(unit)

    @cached_property
    def _whiten(self) -> Real:
        """What turns z − mean into independent numbers of variance 1."""
        roots = _cholesky(self.covariance)[1]
        size, d, _ = roots.shape
        return np.ascontiguousarray(np.linalg.solve(roots, np.broadcast_to(np.eye(d), (size, d, d))))

    @cached_property
    def _constant(self) -> Real:
        """The constant of the columns as they are."""
        return np.asarray(self.constant - np.log(self._scales[1]).sum())

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        columns = self.features[0].numbers(rows)
        if any(column.dtype.kind == "f" and np.isnan(column).any() for column in columns):
            return [self._with_gaps(rows)]
        if self.features[0].holds_lists:
            columns_of(rows, self.features[0])
        return [self._part(columns)]

    def _part(self, columns: list[NDArray[Any]]) -> _core.Part:
        whiten = self._whiten
        power = None
        if self.nu is not None:
            whiten = whiten / np.sqrt(self.nu)[:, None, None]
            power = (self.nu + self.mean.shape[1]) / 2.0
        return _core.EllipsePart(columns, *self._scales, self.mean, whiten, self._constant, power)

    def _with_gaps(self, rows: ColumnReader) -> _core.Part:
        """The same where some rows lack some values: each by the marginal distribution of those that it has."""
        numbers = np.column_stack(columns_of(rows, self.features[0]))
        there = ~np.isnan(numbers)
        table = np.zeros((rows.n_rows, len(self.mean)))
        patterns, which = np.unique(there, axis=0, return_inverse=True)
        for p, pattern in enumerate(patterns):
            if pattern.any():
                at = np.flatnonzero(which.reshape(-1) == p)
                marginal = self if pattern.all() else self.of(np.flatnonzero(pattern))
                part = marginal._part([np.ascontiguousarray(numbers[np.ix_(at, pattern)])])
                table[at] = _core.score(len(at), np.zeros(len(self.mean)), [part], "log_joint", 1)[0]
        return line_by_line(np.where(there.any(axis=1), np.arange(rows.n_rows), -1), table)

    def log_prior(self, prior: Prior, rows: float, tied: bool) -> float:
        """What the prior, worth so many rows of the covariance, adds to the log-likelihood, but for a constant."""
        apart = np.einsum("cij,cj->ci", self._whiten, self.mean - prior.mean)
        spread = np.einsum("cij,jk,cik->c", self._whiten, prior.nu * prior.scale, self._whiten)
        of_covariances = spread - 2.0 * rows * _log_volume(self._whiten)
        if tied:
            of_covariances = of_covariances[:1]
        return -0.5 * (prior.kappa * float(np.square(apart).sum()) + float(of_covariances.sum()))

    def of(self, columns: NDArray[np.int64]) -> GaussianBlockParameters:
        """The marginal distribution of some of the columns."""
        (feature,) = self.features
        inputs = tuple(feature.inputs[j] for j in columns.tolist())
        marginal_feature = feature._replace(columns=inputs, scales=tuple(feature.scales[j] for j in columns.tolist()))
        covariance = self.covariance[:, columns[:, None], columns]
        if self.nu is None:
            return normal((marginal_feature,), self.mean[:, columns], covariance)
        return _student((marginal_feature,), self.mean[:, columns], covariance, self.nu)

    def telling(self, compared: Comparison) -> Iterator[TellingValues] | None:
        """The stretches of each column, as it is distributed whatever the others are."""
        return None if self.features[0].holds_lists else stretches(MarginalParameters(self), compared)

    def sample(self, classes: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[Any]]:
        roots = _cholesky(self.covariance)[1]
        z = np.einsum("rij,rj->ri", roots[classes], rng.standard_normal((len(classes), self.mean.shape[1])))
        if self.nu is not None:
            z /= np.sqrt(rng.chisquare(self.nu[classes]) / self.nu[classes])[:, None]
        origin, unit = self._scales
        numbers = origin + unit * (self.mean[classes] + z)
        return [numbers] if self.features[0].holds_lists else list(numbers.T)


class MarginalParameters(NumericParameters):
    """The columns of a Gaussian block, one by one."""

    def __init__(self, block: GaussianBlockParameters) -> None:
        self.features = tuple(block.features[0]._replace(name=name, columns=(), scales=()) for name in block.names)
        self._block, self._variance = block, np.diagonal(block.covariance, axis1=1, axis2=2)

    def spread(self, f: int) -> tuple[Real, Real]:
        origin, unit = (scales[f] for scales in self._block._scales)
        return origin + unit * self._block.mean[:, f], unit * np.sqrt(self._variance[:, f])

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        origin, unit = (scales[f] for scales in self._block._scales)
        z = ((cuts - origin) / unit)[:, None] - self._block.mean[:, f]
        return normal_tails(z / np.sqrt(self._variance[:, f]), self._block.nu)


def normal_tails(z: Real, nu: Real | None) -> tuple[Real, Real]:
    """What lies below z and what above, of the standard normal distribution, or of Student's t."""
    from scipy.special import ndtr, stdtr  # a third of a second to import; few need it

    return (ndtr(z), ndtr(-z)) if nu is None else (stdtr(nu, z), stdtr(nu, -z))
