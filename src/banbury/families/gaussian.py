"""Gaussian: a mean and a variance per class, or one variance for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Real
from banbury.families.evidence import Comparison, TellingValues, stretches
from banbury.families.family import (
    Choice,
    ColumnReader,
    Counter,
    Curve,
    Family,
    Feature,
    HeldOutRows,
    How,
    NumberColumn,
    NumericParameters,
    Parameters,
    check_finite,
    check_positive,
    check_settings,
    columns_of,
    line_by_line,
)
from banbury.families.moments import MOMENTS, PRODUCTS, log_rising, one_by_one
from banbury.sums import Counts, Moments, Products

COVARIANCES = ("full", "tied", "shrunk")
LARGEST = 2.0**400  # in units of z: a prior farther away is as far as this
NARROWEST = 2.0**-200  # a prior's variance of z: the square of LARGEST over it is still a number
WIDEST = 2.0**900  # no variance of z is larger
FLOOR = 1e-9  # of the column's pooled variance: the least a class's variance can be
NEAR = 4.0  # a variance below so many times the least one may be raised to it
NARROW = 1e-6  # of a column's variance: a density of less stands on one value
EXACT = 1e-4  # of the sum of squares at least must be left for a difference to be exact
MIXED_IN = 1e-6  # of the columns' variances, mixed into a covariance that rows do not settle
SHARES = (1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 2.0 * 64)  # of its diagonal, for a covariance that has no root by rounding
NARROW_BLOCK = 1e-12  # a covariance is not settled if its smallest eigenvalue is less than this share of its largest


@dataclass(frozen=True)
class NormalInverseGamma:
    """The conjugate prior of a Gaussian: ``kappa`` pseudo-rows for the mean and ``nu`` for the variance.

    ``mean`` and ``variance`` are its centre; those of the column over all classes unless given.
    """

    kappa: float = 1e-3
    nu: float = 1.0
    mean: float | None = None
    variance: float | None = None

    def __post_init__(self) -> None:
        check_positive("kappa", self.kappa)
        check_positive("nu", self.nu)
        if self.mean is not None:
            check_finite("mean", self.mean)
        if self.variance is not None:
            check_positive("variance", self.variance)

    def place(self, origin: Real, unit: Real, centre: Real, variance: Real) -> tuple[Real, Real]:
        """Where it is centred, in units of z: where it says, or else there."""
        with np.errstate(over="ignore"):
            if self.mean is not None:
                centre = np.clip((self.mean - origin) / unit, -LARGEST, LARGEST)
            if self.variance is not None:
                variance = np.clip(self.variance / unit / unit, NARROWEST, LARGEST)
        return centre, variance


@dataclass(frozen=True, repr=False)
class Gaussian(Family):
    """Numbers with a normal distribution per class.

    Args:
        prior: The conjugate prior. Without one, "mle", "map" and "mean" use the mean and the 1/n variance, with a
            minimum of 1e-9 times the variance of the column over all classes. "predictive" (Student's t) and "gibbs"
            always have a prior, by default a weak one at the column's mean and variance.
        variance: "shared" uses the same variance for all classes, which makes the decision boundary linear.
        smoothing: Adds this share of the largest variance of all columns to every variance, as in scikit-learn's
            GaussianNB, instead of the minimum.
        covariance: For a block of columns or a column of lists of numbers: "full" (a covariance matrix per class:
            quadratic discriminant analysis), "tied" (the same for all classes: linear discriminant analysis) or
            "shrunk" (tied, with correlations that are shrunk more the fewer rows there are, by oracle-approximating
            shrinkage; "mle" does not shrink).

    A class without any value in the column gets the mean and variance of the column.

    >>> import banbury as bb
    >>> tally = bb.count({"length": [1.0, 3.0, 6.0, 8.0], "kind": ["a", "a", "b", "b"]}, target="kind")
    >>> bb.estimate(tally).predict({"length": [2.5, 6.5]}).tolist()
    ['a', 'b']
    """

    variance: Literal["per class", "shared"] = "per class"
    prior: NormalInverseGamma | None = None
    smoothing: float | None = None
    covariance: Literal["full", "tied", "shrunk"] | None = None

    name: ClassVar[str] = "gaussian"

    @property
    def block(self) -> bool:  # type: ignore[override]
        return self.covariance is not None

    def counter(self, feature: Feature) -> Counter:
        return MOMENTS if self.covariance is None else PRODUCTS

    def counting_key(self) -> tuple[Any, ...]:
        return ("moments" if self.covariance is None else "products",)

    def __post_init__(self) -> None:
        if self.variance not in ("per class", "shared"):
            raise errors.unknown_choice("variance", self.variance, ["per class", "shared"])
        if self.covariance not in (None, *COVARIANCES):
            raise errors.unknown_choice("covariance", self.covariance, [None, *COVARIANCES])
        if self.covariance is not None and (self.smoothing is not None or self.variance != "per class"):
            expected = "given without smoothing and variance, which are for single columns"
            raise errors.bad_setting("covariance", self.covariance, expected)
        if self.prior is not None and not isinstance(self.prior, NormalInverseGamma):
            raise errors.bad_setting("prior", self.prior, "a bb.NormalInverseGamma, or None")
        check_settings(self, "smoothing", zero=True)

    def estimate(
        self, features: tuple[Feature, ...], sums: Any, choice: Choice, rng: np.random.Generator
    ) -> GaussianParameters | GaussianBlockParameters:
        if self.covariance is not None:
            return self._estimate_block(features[0], sums, choice.how, rng)
        if self._without_prior(choice.how):
            return _normal(features, *self._plain(features, sums))
        posterior = self._posterior(features, sums)
        if choice.how == "predictive":
            return _student(features, posterior)
        if choice.how == "gibbs":
            return _normal(features, *posterior.draw(self.variance == "shared", rng))
        return _normal(features, posterior.mean, posterior.mode() if choice.how == "map" else posterior.expectation())

    def _estimate_block(
        self, feature: Feature, sums: Products, how: How, rng: np.random.Generator
    ) -> GaussianBlockParameters:
        tied = self._tied
        shrink = self.covariance == "shrunk" and how != "mle"
        if sums.n.is_zero().all():
            _warn_of_gaps(feature)
        if self._without_prior(how):
            return normal_block((feature,), *block_without_prior(sums, tied, shrink, feature))
        posterior = block_posterior(sums, self._block_prior(feature, sums), tied, shrink)
        if how == "predictive":
            return student_block((feature,), posterior)
        if how == "gibbs":
            return normal_block((feature,), *posterior.draw(tied, rng))
        covariance = posterior.mode() if how == "map" else posterior.expectation()
        return normal_block((feature,), posterior.mean, covariance)

    @property
    def _tied(self) -> bool:
        return self.covariance in ("tied", "shrunk")

    def _block_prior(self, feature: Feature, sums: Products) -> BlockPrior:
        """The prior of one column's mean and variance, for each of them apart."""
        family_prior, (rows, centre, scatter) = self.prior or NormalInverseGamma(), sums.pool()
        variance = np.diagonal(scatter) / max(rows, 1e-300)
        variance = np.where(variance > 0, variance, 1.0)
        origin, unit = np.array(feature.scales).T
        centre, variance = family_prior.place(origin, unit, centre, variance)
        return BlockPrior(family_prior.kappa, family_prior.nu, centre, np.diag(variance))

    def _without_prior(self, how: How) -> bool:
        return how == "mle" or (self.prior is None and how in ("map", "mean"))

    def _plain(self, features: tuple[Feature, ...], sums: Moments) -> tuple[Real, Real]:
        n, spread, (all_mean, all_variance) = sums.n.value, sums.spread, pool_classes(sums)
        if self.variance == "shared":
            rows = n.sum(axis=1, keepdims=True)
            variance = np.broadcast_to(spread.sum(axis=1, keepdims=True) / np.where(rows > 0, rows, 1.0), n.shape)
        else:
            variance = np.where(n > 0, spread / np.where(n > 0, n, 1.0), all_variance)
        least = FLOOR * all_variance
        if self.smoothing is not None:
            rows, _, apart = sums.pool()
            every = apart / np.where(rows > 0, rows, 1.0)  # 0 where there is none: such a column tells no classes apart
            variance = np.where(n > 0, variance, every)
            with np.errstate(over="ignore"):
                variance = np.minimum(variance + self._smoothing_of_z(features, sums), WIDEST)
            least = np.where(variance > 0, 0.0, least)
        return np.where(n > 0, sums.mean, all_mean), np.maximum(variance, least)

    def smoothing_variance(self, features: tuple[Feature, ...], sums: Moments) -> float:
        """What smoothing adds to every variance: its share of the widest column's."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.square(np.sqrt(self.smoothing or 0.0) * self._widest(features, sums)))

    def _widest(self, features: tuple[Feature, ...], sums: Moments) -> float:
        n, _, spread = sums.pool()
        deviation = np.sqrt(spread / np.where(n > 0, n, 1.0))[:, 0]
        with np.errstate(over="ignore", under="ignore"):
            return min(float((_scales(features)[1] * deviation).max(initial=0.0)), float(np.finfo(float).max))

    def _smoothing_of_z(self, features: tuple[Feature, ...], sums: Moments) -> Real:
        """The same in units of z, (features, 1): deviations are divided before they are squared, so that none vanishes."""
        deviation = np.sqrt(self.smoothing or 0.0) * self._widest(features, sums) / _scales(features)[1]
        return np.asarray(np.square(deviation)[:, None])

    def _posterior(self, features: tuple[Feature, ...], sums: Moments) -> _Posterior:
        prior = self.prior or NormalInverseGamma()
        n = sums.n.value
        mean = sums.mean
        spread = sums.spread
        centre, variance = self._centre(prior, features, sums)
        kappa = prior.kappa + n
        extra = np.maximum(spread, 0.0) + prior.kappa * n / kappa * (mean - centre) ** 2
        if self.variance == "shared":
            n, extra = (np.broadcast_to(x.sum(axis=1, keepdims=True), kappa.shape) for x in (n, extra))
        nu = prior.nu + n
        centres = (prior.kappa * centre + sums.n.value * mean) / kappa
        return _Posterior(centres, kappa, nu, (prior.nu * variance + extra) / nu, self._n_means(sums))

    def _n_means(self, sums: Moments) -> Real:
        """How many means have a variance in common, (features, 1): of all classes that have values, or one."""
        n = sums.n.value
        counts = (n > 0).sum(axis=1, keepdims=True) if self.variance == "shared" else np.ones((len(n), 1))
        return np.asarray(counts, dtype=np.float64)

    def _centre(self, prior: NormalInverseGamma, features: tuple[Feature, ...], sums: Moments) -> tuple[Real, Real]:
        """The prior's mean and variance of z, (features, 1)."""
        origin, unit = _scales(features)
        return prior.place(origin[:, None], unit[:, None], *pool_classes(sums))

    def log_prior(self, parameters: Any, sums: Any, choice: Choice) -> float:
        if self.prior is None or choice.how == "mle":
            return 0.0
        if isinstance(parameters, GaussianBlockParameters):
            prior = self._block_prior(parameters.features[0], sums)
            d = parameters.mean.shape[1]
            rows = prior.nu + 2.0 * d + n_means_of_block(sums, self._tied) if choice.how == "map" else prior.nu - 2.0
            return parameters.log_prior(prior, rows, self._tied)
        centre, variance = self._centre(self.prior, parameters.features, sums)
        precision = parameters.precision  # 1 / (2 · variance)
        rows = self.prior.nu + 2.0 + self._n_means(sums) if choice.how == "map" else self.prior.nu - 2.0
        of_means = self.prior.kappa * precision * (parameters.mean - centre) ** 2
        of_variances = self.prior.nu * variance * precision - 0.5 * rows * np.log(2.0 * precision)
        return -float(of_means.sum()) - float(of_variances[:, : 1 if self.variance == "shared" else None].sum())

    def n_parameters(self, features: tuple[Feature, ...], sums: Counts | Moments) -> list[tuple[int, int]]:
        if self.covariance is not None:
            d = len(features[0].scales)
            cells = d * (d + 1) // 2
            return [(d, cells) if self._tied else (d + cells, 0)]
        return [(1, 1) if self.variance == "shared" else (2, 0)] * len(features)

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        return (self,) if column.n_values > 2 else ()

    def can_leave_one_out(self, features: tuple[Feature, ...], choice: Choice, weighted: bool) -> bool:
        alone = self.covariance is None and self.smoothing is None
        return alone and super().can_leave_one_out(features, choice, weighted)

    def leave_one_out(self, features: tuple[Feature, ...], sums: Any, choice: Choice, held_out: HeldOutRows) -> Real:
        """Only the row's own class changes, by the formula for one value less, but where little would be left of the variance.

        There, and in columns where some class has next to no variance, every row's sums are estimated by themselves.
        """
        plain = self.variance == "per class" and self.smoothing is None and self.covariance is None
        if not plain or not self._without_prior(choice.how):
            return one_by_one(self, features, sums, choice, held_out)
        floor = FLOOR * pool_classes(sums)[1]
        n = sums.n.value
        low = ((n <= 0) | (sums.spread < NEAR * floor * n)).any(axis=1)  # a class without values has those of all
        slow = np.flatnonzero(low).tolist()
        quick = np.flatnonzero(~low).tolist()
        slow_features = tuple(features[f] for f in slow)
        if not quick:
            return one_by_one(self, slow_features, sums.select(slow), choice, held_out)
        quick_parameters = _normal(features, *self._plain(features, sums)).select(quick)
        quick_sums = sums.select(quick)
        total = held_out.scores(quick_parameters)
        if slow:
            total += one_by_one(self, slow_features, sums.select(slow), choice, held_out)
        gains = _gains(quick_parameters, quick_sums, floor[quick][:, 0], held_out)
        total[np.arange(len(gains)), held_out.labels] += gains
        doubtful = np.flatnonzero(np.isnan(gains))
        if len(doubtful):
            doubtful_rows = held_out.take(doubtful)
            total[doubtful] = one_by_one(self, quick_parameters.features, quick_sums, choice, doubtful_rows)
            total[doubtful] += one_by_one(self, slow_features, sums.select(slow), choice, doubtful_rows)
        return total


def _warn_of_gaps(block: Feature) -> None:
    what = f"{len(block.scales):,} numbers" if block.holds_lists else errors.listed(block.columns)
    text = f"no row has all of {what}, so block {block.name!r} cannot separate the classes. Fill the gaps, or remove the columns "
    errors.warn(errors.BanburyWarning(f"{text}with the most gaps."))


@dataclass(frozen=True)
class _Posterior:
    """Normal-inverse-gamma: mean and variance where it is centred, kappa and nu its strength, (features, classes)."""

    mean: Real
    kappa: Real
    nu: Real
    variance: Real
    n_means: Real  # that have a variance in common, (features, 1)

    def draw(self, shared: bool, rng: np.random.Generator) -> tuple[Real, Real]:
        """One draw of means and variances."""
        chi = rng.chisquare(self.nu[:, :1] if shared else self.nu)
        variance = self.nu * self.variance / np.maximum(chi, np.finfo(float).tiny)
        return self.mean + rng.standard_normal(self.nu.shape) * np.sqrt(variance / self.kappa), variance

    def mode(self) -> Real:
        """The variance at the joint mode of it and its means."""
        return self.nu * self.variance / (self.nu + 2.0 + self.n_means)

    def expectation(self) -> Real:
        """The variance's mean, which exists only above two degrees of freedom; below, the mode."""
        proper = self.nu > 2.0
        return np.where(proper, self.nu * self.variance / np.where(proper, self.nu - 2.0, 1.0), self.mode())


def pool_classes(sums: Moments) -> tuple[Real, Real]:
    """Mean and variance of z over all classes, (features, 1); variance 1 where there is none."""
    n, mean, spread = sums.pool()
    variance = spread / np.where(n > 0, n, 1.0)
    return mean, np.where(variance > 0, variance, 1.0)


def _scales(features: tuple[Feature, ...]) -> tuple[Real, Real]:
    """Origins and units."""
    return np.array([f.origin for f in features]), np.array([f.unit for f in features])


def _normal(features: tuple[Feature, ...], mean: Real, variance: Real) -> GaussianParameters:
    origin, unit = _scales(features)
    constant = -0.5 * np.log(2.0 * np.pi * variance) - np.log(unit)[:, None]
    return GaussianParameters(features, origin, unit, mean, 0.5 / variance, constant, None)


def _student(features: tuple[Feature, ...], posterior: _Posterior) -> GaussianParameters:
    origin, unit = _scales(features)
    nu = posterior.nu
    variance = posterior.variance * (posterior.kappa + 1.0) / posterior.kappa
    constant = log_rising(nu / 2.0, 0.5) - 0.5 * np.log(nu * np.pi * variance) - np.log(unit)[:, None]
    return GaussianParameters(features, origin, unit, posterior.mean, 1.0 / (nu * variance), constant, (nu + 1.0) / 2.0)


def _gains(kept: GaussianParameters, sums: Moments, floor: Real, held_out: HeldOutRows) -> Real:
    """What one value less changes in the log density of that value in its own class, summed over features.

    Without weight w, n becomes n − w, and the sum of squares S becomes S · (1 − t), t = w n / (n − w) · gap² / S. NaN where next
    to nothing would be left of S, so that the difference is not exact.
    """
    columns = held_out.rows.numbers([feature.name for feature in kept.features])
    tables = (kept.mean, kept.precision, sums.n.value, sums.spread)
    curves = (*(np.ascontiguousarray(table, dtype=np.float64) for table in tables), np.ascontiguousarray(floor))
    labels = np.ascontiguousarray(held_out.labels, dtype=np.int32)
    weights = None if held_out.weights is None else np.ascontiguousarray(held_out.weights)
    return _core.one_less(columns, kept.origin, kept.unit, labels, curves, weights, (EXACT, NEAR), held_out.threads)  # type: ignore[arg-type]


@dataclass(frozen=True)
class GaussianParameters(NumericParameters):
    """Normal densities, or Student t where ``power`` is given, in units of z; all but the scales are (features, classes).

    Normal: constant − precision · (z − mean)². Student: constant − power · log1p(precision · (z − mean)²).
    """

    features: tuple[Feature, ...]
    origin: Real
    unit: Real
    mean: Real
    precision: Real
    constant: Real
    power: Real | None

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        columns = rows.numbers([feature.name for feature in self.features])
        curves = (self.mean, self.precision, self.constant, self.power)
        return [_core.NormalPart(columns, self.origin, self.unit, *curves)]

    def curve(self, f: int) -> Curve | None:
        if self.power is not None:
            return None
        nothing = np.zeros(self.mean.shape[1])
        scale = float(self.origin[f]), float(self.unit[f])
        return Curve(*scale, self.mean[f], nothing + 1.0, self.constant[f], nothing, -self.precision[f], nothing)

    def log_probability(self, x: Real) -> Real:
        """log P(value | class) of each value, (values, classes), where every value has a feature of its own."""
        z = np.clip((x - self.origin) / self.unit, -LARGEST, LARGEST)[:, None]
        square = self.precision * (z - self.mean) ** 2
        return np.asarray(self.constant - (square if self.power is None else self.power * np.log1p(square)))

    def sample(self, classes: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[Any]]:
        columns = []
        for f in range(len(self.features)):
            mean = self.mean[f, classes]
            precision = self.precision[f, classes]
            if self.power is None:
                z = mean + rng.standard_normal(len(classes)) * np.sqrt(0.5 / precision)
            else:
                nu = self._nu(f)[classes]
                z = mean + rng.standard_t(nu) / np.sqrt(precision * nu)
            columns.append(self.origin[f] + self.unit[f] * z)
        return columns

    def spread(self, f: int) -> tuple[Real, Real]:
        variance = 0.5 / self.precision[f] if self.power is None else 1.0 / (self.precision[f] * self._nu(f))
        return self.origin[f] + self.unit[f] * self.mean[f], self.unit[f] * np.sqrt(variance)

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        z = ((cuts - self.origin[f]) / self.unit[f])[:, None] - self.mean[f]
        nu = None if self.power is None else self._nu(f)
        return normal_tails(z * np.sqrt(self.precision[f] * (2.0 if nu is None else nu)), nu)

    def _nu(self, f: int) -> Real:
        assert self.power is not None
        return np.asarray(2.0 * self.power[f] - 1.0)


def find_narrow_classes(parameters: Parameters, sums: Any) -> list[tuple[int, int, float]]:
    """Where a class's bell curve is so narrow, beside its column, that it stands on one value: feature, class and value."""
    if not isinstance(parameters, GaussianParameters):
        return []
    rows, _, spread = sums.pool()
    narrow = 0.5 / parameters.precision < NARROW * spread / np.maximum(rows, 1e-300)
    there = np.argwhere(narrow & (sums.n.value > 0)).tolist()
    return [(f, c, float(parameters.spread(f)[0][c])) for f, c in there]


# Blocks of columns: one normal distribution per class, or one covariance for all ------------------------------------------------


@dataclass(frozen=True)
class BlockPrior:
    """Normal-inverse-Wishart: ``kappa`` pseudo-rows for the mean, ``nu`` for the covariance, which is centred on the columns'
    own variances."""

    kappa: float
    nu: float
    mean: Real
    scale: Real  # (columns, columns)


@dataclass(frozen=True)
class BlockPosterior:
    """Where it is centred and how strong it is, per class; ``scale`` is a sum of products."""

    mean: Real  # (classes, columns)
    kappa: Real
    nu: Real
    scale: Real  # (classes, columns, columns)
    n_means: int  # that have a covariance in common

    def expectation(self) -> Real:
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


def block_without_prior(sums: Products, tied: bool, shrink: bool, feature: Feature) -> tuple[Real, Real]:
    """Means and 1/n covariances; a class without rows has those of all, and what rows do not settle is mended."""
    n, (rows, centre, scatter) = sums.n.value, sums.pool()
    every = scatter / max(rows, 1e-300)
    if tied:
        within = (shrink_scatter(sums) if shrink else sums.scatter.sum(axis=0)) / max(rows, 1e-300)
        if shrink:  # of many numbers some are the same in all rows, and tell nothing
            within = within + MIXED_IN * np.diag(np.diagonal(every) <= 0)
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
    loose = ~(values[:, 0] > NARROW_BLOCK * np.maximum(values[:, -1], 1.0))
    if loose.any() and n.any():
        tied = getattr(feature.family, "covariance", None) != "full"
        columns = errors.many(len(variance), "column")
        rows = errors.many(int(n[loose].min()), "row")
        too_few = rows if tied else f"a class of {rows}"
        advice = "" if tied else "covariance='tied', "
        text = f"block {feature.name!r} of {columns} has {too_few}, so its covariance has no inverse and a little "
        errors.warn(f"{text}of each column's variance is added. Use fewer columns, {advice}or a prior.")
    return np.where(loose[:, None, None], (1.0 - MIXED_IN) * covariance + MIXED_IN * diagonal, covariance)


def block_posterior(sums: Products, prior: BlockPrior, tied: bool, shrink: bool) -> BlockPosterior:
    n = sums.n.value
    kappa = prior.kappa + n
    shift = sums.mean - prior.mean
    scatter = (prior.kappa * n / kappa)[:, None, None] * np.einsum("ci,cj->cij", shift, shift)
    n_rows = n
    if not tied:
        scatter = sums.scatter + scatter
    else:
        within = shrink_scatter(sums) if shrink else sums.scatter.sum(axis=0)
        scatter = np.broadcast_to(within + scatter.sum(axis=0), scatter.shape)
        n_rows = np.full(len(n), n.sum())
    mean = (prior.kappa * prior.mean + n[:, None] * sums.mean) / kappa[:, None]
    return BlockPosterior(
        mean, kappa, prior.nu + n_rows, prior.nu * prior.scale + scatter, n_means_of_block(sums, tied)
    )


def n_means_of_block(sums: Products, tied: bool) -> int:
    """How many means have a covariance in common: of all classes that have rows, or one."""
    return int(np.count_nonzero(sums.n.value)) if tied else 1


def normal_block(features: tuple[Feature, ...], mean: Real, covariance: Real) -> GaussianBlockParameters:
    d = mean.shape[1]
    covariance, roots = _cholesky(covariance)
    constant = -0.5 * d * np.log(2.0 * np.pi) - _log_volume(roots)
    return GaussianBlockParameters(features, mean, covariance, constant, None)


def student_block(features: tuple[Feature, ...], posterior: BlockPosterior) -> GaussianBlockParameters:
    """The predictive distribution: Student t of ``nu`` degrees of freedom."""
    scale = posterior.scale * ((posterior.kappa + 1.0) / (posterior.kappa * posterior.nu))[:, None, None]
    return _student_t_block(features, posterior.mean, scale, posterior.nu)


def _student_t_block(features: tuple[Feature, ...], mean: Real, scale: Real, nu: Real) -> GaussianBlockParameters:
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

    def log_prior(self, prior: BlockPrior, rows: float, tied: bool) -> float:
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
            return normal_block((marginal_feature,), self.mean[:, columns], covariance)
        return _student_t_block((marginal_feature,), self.mean[:, columns], covariance, self.nu)

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
