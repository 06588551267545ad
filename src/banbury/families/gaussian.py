"""Gaussian: a mean and a variance per class, or one variance for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real, divide
from banbury.families.evidence import Comparison, InformativeValues, informative_intervals
from banbury.families.family import (
    Choice,
    ColumnReader,
    Counter,
    Curve,
    Family,
    Feature,
    Features,
    HeldOutRows,
    How,
    NumberColumn,
    NumericParameters,
    Parameters,
    block_columns,
    check_finite,
    check_positive,
    check_settings,
    line_by_line,
    rows_by_columns_present,
)
from banbury.families.moments import MOMENTS, PRODUCTS, leave_out_one_by_one, log_rising
from banbury.sums import Moments, Products

COVARIANCES = ("full", "tied", "shrunk")
LARGEST = 2.0**400  # a prior's mean of z is clipped to ± this
NARROWEST = 2.0**-200  # the least variance of z of a prior: the square of LARGEST divided by it is still finite
WIDEST = 2.0**900  # no variance of z is larger
FLOOR = 1e-9  # a class's variance is at least this share of the column's variance over all classes
NEAR = 4.0  # without one row, a variance below so many times the least one may have to be raised to it
NARROW = 1e-6  # a density whose variance is a smaller share of the column's stands on one value
EXACT = 1e-4  # a difference of sums of squares is exact if at least this share is left
MIXED_IN = 1e-6  # the share of the columns' variances that is mixed into a covariance without an inverse
SHARES_OF_DIAGONAL = (1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 2.0 * 64)  # added to a covariance without a root
NARROW_BLOCK = 1e-12  # a covariance has no inverse if its smallest eigenvalue is a smaller share of its largest


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
        """Raises unless the strengths and the variance are positive and the mean is finite."""
        check_positive("kappa", self.kappa)
        check_positive("nu", self.nu)
        if self.mean is not None:
            check_finite("mean", self.mean)
        if self.variance is not None:
            check_positive("variance", self.variance)

    def centre_of_z(self, origin: Real, unit: Real, centre: Real, variance: Real) -> tuple[Real, Real]:
        """Returns the prior's mean and variance of z = (x − origin) / unit (features × 1, or one number per column of a
        block). ``centre`` and ``variance``, of z too, are returned in place of those that the prior does not set.
        """
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
        """Whether it takes several columns together: if it has a covariance."""
        return self.covariance is not None

    def counter(self, feature: Feature) -> Counter:
        """Returns the counter of single columns, or of blocks if the family has a covariance."""
        return MOMENTS if self.covariance is None else PRODUCTS

    def counting_key(self) -> tuple[Any, ...]:
        """Returns what two families must have in common for their sums to be added: the same kind of sums."""
        return ("moments" if self.covariance is None else "products",)

    def __post_init__(self) -> None:
        """Raises unless the settings are valid and go together."""
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
        self, features: Features, sums: Any, choice: Choice, rng: Generator
    ) -> GaussianParameters | GaussianBlockParameters:
        """Estimates the parameters of these features from their sums (Moments; Products of the only feature if it is a
        block), as ``choice`` says; ``rng`` draws under "gibbs".
        """
        how = choice.how
        if self.covariance is None:
            if self._without_prior(how):
                return density(features, *self._plain(features, sums))
            return density(features, *self._posterior(features, sums).estimate(how, rng))
        (feature,) = features
        shrink = self.covariance == "shrunk" and how != "mle"
        if sums.n.is_zero().all():
            _warn_of_gaps(feature)
        if self._without_prior(how):
            return block_density(features, *block_without_prior(sums, self._tied, shrink, feature))
        posterior = block_posterior(sums, self._block_prior(feature, sums), self._tied, shrink)
        return block_density(features, *posterior.estimate(how, rng))

    @property
    def _tied(self) -> bool:
        """Whether all classes of a block share a covariance matrix."""
        return self.covariance in ("tied", "shrunk")

    def _block_prior(self, feature: Feature, sums: Products) -> BlockPrior:
        """Returns the prior of a block, which gives each column the prior of a single column; ``sums`` are the block's."""
        family_prior = self.prior or NormalInverseGamma()
        # Over all classes: the number of rows, the mean of z (columns), and Σzzᵀ about it (columns × columns).
        n_rows, mean, scatter = sums.pool()
        variance = np.diagonal(scatter) / max(n_rows, 1e-300)
        variance = np.where(variance > 0, variance, 1.0)
        origin, unit = np.array(feature.scales).T  # of each column
        centre, variance = family_prior.centre_of_z(origin, unit, mean, variance)
        return BlockPrior(family_prior.kappa, family_prior.nu, centre, np.diag(variance))

    def _without_prior(self, how: How) -> bool:
        """Whether an estimate by this ``how`` uses no prior."""
        return how == "mle" or (self.prior is None and how in ("map", "mean"))

    def _plain(self, features: Features, sums: Moments) -> tuple[Real, Real]:
        """Returns the means and variances of z without a prior (features × classes each). A class without values has
        those of the column over all classes.
        """
        rows_of_class = sums.n.value  # features × classes, as ``sums_of_squares``
        sums_of_squares = sums.spread  # of z about the mean of its class
        mean_of_column, variance_of_column = pool_classes(sums)  # features × 1, as all of columns
        if self.variance == "shared":
            rows_of_column = rows_of_class.sum(axis=1, keepdims=True)
            shared_variance = divide(sums_of_squares.sum(axis=1, keepdims=True), rows_of_column)
            variance = np.broadcast_to(shared_variance, rows_of_class.shape)
        else:
            variance = divide(sums_of_squares, rows_of_class, variance_of_column)
        minimum = FLOOR * variance_of_column
        if self.smoothing is not None:
            rows_of_column, _, squares_of_column = sums.pool()  # ... about the mean of all classes
            # 0 where there is none: such a column tells no classes apart
            variance = np.where(rows_of_class > 0, variance, divide(squares_of_column, rows_of_column))
            with np.errstate(over="ignore"):
                variance = np.minimum(variance + self._smoothing_of_z(features, sums), WIDEST)
            minimum = np.where(variance > 0, 0.0, minimum)
        return np.where(rows_of_class > 0, sums.mean, mean_of_column), np.maximum(variance, minimum)

    def smoothing_variance(self, features: Features, sums: Moments) -> float:
        """Returns what smoothing adds to every variance, in the columns' own units: its share of the largest variance
        of all columns, whose sums are ``sums``.
        """
        with np.errstate(over="ignore", under="ignore"):
            return float(np.square(np.sqrt(self.smoothing or 0.0) * self._widest(features, sums)))

    def _widest(self, features: Features, sums: Moments) -> float:
        """Returns the largest standard deviation of all columns over all classes, in the columns' own units, from their
        sums.
        """
        n_rows, _, sums_of_squares = sums.pool()  # over all classes (features × 1 each); squares of z about the mean
        deviation = np.sqrt(divide(sums_of_squares, n_rows))[:, 0]  # of z (features)
        with np.errstate(over="ignore", under="ignore"):
            return min(float((features.units * deviation).max(initial=0.0)), float(np.finfo(float).max))

    def _smoothing_of_z(self, features: Features, sums: Moments) -> Real:
        """Returns what smoothing adds to the variance of z (features × 1), from the columns' sums. The deviation is
        divided by the unit before it is squared, so that it does not underflow.
        """
        # The square root of what is added (features).
        deviation = np.sqrt(self.smoothing or 0.0) * self._widest(features, sums) / features.units
        return np.asarray(np.square(deviation)[:, None])

    def _posterior(self, features: Features, sums: Moments) -> ColumnPosterior:
        """Returns the posterior of means and variances of z under the prior, whose ``kappa`` and ``nu`` are the
        pseudo-rows of mean and variance.
        """
        prior = self.prior or NormalInverseGamma()
        n_rows = sums.n.value  # features × classes, as all arrays but the prior's
        mean = sums.mean  # of z
        # The prior's mean and variance of z (features × 1).
        centre, variance = prior.centre_of_z(features.origins[:, None], features.units[:, None], *pool_classes(sums))
        kappa = prior.kappa + n_rows
        means = (prior.kappa * centre + n_rows * mean) / kappa  # of the posterior
        # Sums of squares: of z about its mean, and of this mean about the prior's.
        squares = np.maximum(sums.spread, 0.0) + prior.kappa * n_rows / kappa * (mean - centre) ** 2
        is_shared = self.variance == "shared"
        if is_shared:  # rows and squares of all classes, repeated for each
            n_rows = np.broadcast_to(n_rows.sum(axis=1, keepdims=True), kappa.shape)
            squares = np.broadcast_to(squares.sum(axis=1, keepdims=True), kappa.shape)
        nu = prior.nu + n_rows
        return ColumnPosterior(means, kappa, nu, is_shared, (prior.nu * variance + squares) / nu, self._n_means(sums))

    def _n_means(self, sums: Moments) -> Real:
        """Returns how many means share a variance (features × 1): as many as classes have values in ``sums`` if it is
        shared, else one.
        """
        n_rows = sums.n.value  # features × classes
        if self.variance != "shared":
            return np.ones((len(n_rows), 1))
        return np.asarray((n_rows > 0).sum(axis=1, keepdims=True), dtype=np.float64)

    def log_prior(self, parameters: Any, sums: Any, choice: Choice) -> float:
        """Returns what the prior adds to the log-likelihood of these parameters, over all features and classes, up to a
        constant; 0 without a prior. ``sums`` are those of the features.
        """
        if self.prior is None or choice.how == "mle":
            return 0.0
        if isinstance(parameters, GaussianBlockParameters):
            prior = self._block_prior(parameters.features[0], sums)
            n_columns = parameters.mean.shape[1]
            # How many rows the prior's covariance is worth.
            prior_rows = (
                prior.nu + 2.0 * n_columns + n_means_of_block(sums, self._tied)
                if choice.how == "map"
                else prior.nu - 2.0
            )
            return parameters.log_prior(prior, prior_rows, self._tied)
        features = parameters.features
        # The prior's mean and variance of z (features × 1).
        centre, variance = self.prior.centre_of_z(
            features.origins[:, None], features.units[:, None], *pool_classes(sums)
        )
        precision = parameters.precision  # 1 / (2 · variance of z), features × classes
        # How many rows the prior's variance is worth: of each feature, or one number.
        prior_rows = self.prior.nu + 2.0 + self._n_means(sums) if choice.how == "map" else self.prior.nu - 2.0
        # Minus the log prior of each mean and of each variance (features × classes).
        of_means = self.prior.kappa * precision * (parameters.mean - centre) ** 2
        of_variances = self.prior.nu * variance * precision - 0.5 * prior_rows * np.log(2.0 * precision)
        if self.variance == "shared":
            of_variances = of_variances[:, :1]
        return -float(of_means.sum()) - float(of_variances.sum())

    def n_parameters(self, features: Features, sums: Any) -> list[tuple[int, int]]:
        """Returns a pair for each feature: its number of parameters per class, and the number that all classes share;
        ``sums`` make no difference. ``self._tied``: the classes of a block share a covariance.
        """
        if self.covariance is not None:
            n_columns = len(features[0].scales)
            n_covariances = n_columns * (n_columns + 1) // 2  # different numbers in a covariance matrix
            return [(n_columns, n_covariances) if self._tied else (n_columns + n_covariances, 0)]
        return [(1, 1) if self.variance == "shared" else (2, 0)] * len(features)

    def candidates(self, column: NumberColumn) -> Sequence[Family]:
        """Returns this family for every column of numbers with more than two values."""
        return (self,) if column.n_values > 2 else ()

    def can_leave_one_out(self, features: Features, choice: Choice, weighted: bool) -> bool:
        """Whether ``leave_one_out`` applies: not to blocks, nor to smoothing, by which a row changes all columns."""
        has_formula = self.covariance is None and self.smoothing is None
        return has_formula and super().can_leave_one_out(features, choice, weighted)

    def leave_one_out(self, features: Features, sums: Any, choice: Choice, held_out: HeldOutRows) -> Real:
        """Returns log P(values | class) of each held-out row without itself (rows × classes). Only the parameters of
        the row's own class change.

        There is a formula for one value less. It is not exact where hardly anything would be left of the variance;
        there, and in columns where a class has almost no variance, the sums without the row are estimated one row at a
        time.
        """
        if self.variance == "shared" or not self._without_prior(choice.how):
            return leave_out_one_by_one(self, features, sums, choice, held_out)
        minimum = FLOOR * pool_classes(sums)[1]  # the least variance of z (features × 1)
        rows_of_class = sums.n.value  # features × classes
        # Features × classes. A class without values has the mean and variance of all.
        is_narrow = (rows_of_class <= 0) | (sums.spread < NEAR * minimum * rows_of_class)
        slow_columns = np.flatnonzero(is_narrow.any(axis=1)).tolist()  # feature numbers
        quick_columns = np.flatnonzero(~is_narrow.any(axis=1)).tolist()
        slow_features = features.take(slow_columns)
        slow_sums = sums.select(slow_columns)
        scores = leave_out_one_by_one(self, slow_features, slow_sums, choice, held_out)
        if not quick_columns:
            return scores
        quick_parameters = density(features, *self._plain(features, sums)).select(quick_columns)
        quick_sums = sums.select(quick_columns)
        scores += held_out.scores(quick_parameters)
        # What leaving each row out adds to its own class (rows); NaN: not exact.
        gains = _gains(quick_parameters, quick_sums, minimum[quick_columns][:, 0], held_out)
        scores[np.arange(len(gains)), held_out.labels] += gains
        inexact_rows = np.flatnonzero(np.isnan(gains))
        if len(inexact_rows):
            rows = held_out.take(inexact_rows)
            scores[inexact_rows] = leave_out_one_by_one(self, quick_parameters.features, quick_sums, choice, rows)
            scores[inexact_rows] += leave_out_one_by_one(self, slow_features, slow_sums, choice, rows)
        return scores


def _warn_of_gaps(block: Feature) -> None:
    """Warns that no row has a value in every column of a block, or in a list of numbers, so that nothing could be
    counted.
    """
    columns = f"{len(block.scales):,} numbers" if block.holds_lists else errors.listed(block.columns)
    text = f"no row has all of {columns}, so block {block.name!r} cannot separate the classes. "
    text += "Fill the gaps, or remove the columns with the most gaps."
    errors.warn(errors.BanburyWarning(text))


@dataclass(frozen=True)
class Posterior:
    """A normal-inverse-gamma posterior, or a normal-inverse-Wishart one for a block, one of each class.

    Args:
        mean: Its mean of z.
        kappa: The strength of the mean.
        nu: The strength of the variance or covariance.
        is_shared: Whether all classes share one variance or covariance, so that it is drawn once.
    """

    mean: Real
    kappa: Real
    nu: Real
    is_shared: bool

    def estimate(self, how: How, rng: Generator) -> tuple[Real, Real, Real | None]:
        """Returns means of z, variances or covariances of z, and degrees of freedom (``self.nu``), which are None if
        densities are normal; ``how`` says which of the posterior's, and ``rng`` draws them under "gibbs".
        """
        if how == "predictive":
            return self.mean, self.predictive(), self.nu
        if how == "gibbs":
            return *self.draw(rng), None
        return self.mean, self.mode() if how == "map" else self.expectation(), None

    def predictive(self) -> Real:
        """Returns the squared scale of Student's t of a new z, in the shape of variances or covariances."""
        raise NotImplementedError

    def draw(self, rng: Generator) -> tuple[Real, Real]:
        """Draws means and variances or covariances once; returns both."""
        raise NotImplementedError

    def mode(self) -> Real:
        """Returns the variance or covariance at the joint mode of it and the means, in the shape of variances or
        covariances.
        """
        raise NotImplementedError

    def expectation(self) -> Real:
        """Returns the mean of the variance or covariance, in the shape of variances or covariances, or its mode where
        the mean does not exist, up to two degrees of freedom.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class ColumnPosterior(Posterior):
    """The posterior of columns: all arrays are features × classes."""

    variance: Real  # its centre
    n_means: Real  # that have a variance in common, (features, 1)

    def predictive(self) -> Real:
        """Returns the squared scale of Student's t of a new z (features × classes). ``variance`` is the centre of the
        variance's posterior, and ``kappa`` the strength of the mean (features × classes each).
        """
        return self.variance * (self.kappa + 1.0) / self.kappa

    def draw(self, rng: Generator) -> tuple[Real, Real]:
        """Draws means and variances of z once, a shared variance once for all classes; returns both (features × classes
        each). Of the posterior's arrays, features × classes, ``mean`` and ``variance`` are its centre, and ``kappa``
        and ``nu`` their strengths.
        """
        chi_square = rng.chisquare(self.nu[:, :1] if self.is_shared else self.nu)
        variance = self.nu * self.variance / np.maximum(chi_square, np.finfo(float).tiny)
        return self.mean + rng.standard_normal(self.nu.shape) * np.sqrt(variance / self.kappa), variance

    def mode(self) -> Real:
        """Returns the variance at the joint mode of variance and means (features × classes). ``nu`` is the strength of
        the variance, and ``n_means`` how many means share it.
        """
        return self.nu * self.variance / (self.nu + 2.0 + self.n_means)

    def expectation(self) -> Real:
        """Returns the mean of the variance (features × classes), or its mode where the mean does not exist, up to two
        degrees of freedom. ``variance`` is the centre of its posterior, and ``nu`` the strength.
        """
        return divide(self.nu * self.variance, self.nu - 2.0, self.mode())


def pool_classes(sums: Moments) -> tuple[Real, Real]:
    """Returns the mean and variance of z over all classes (features × 1), from the sums; the variance is 1 if there is
    none.
    """
    n_rows, mean, sums_of_squares = sums.pool()  # squares of z about the mean
    variance = divide(sums_of_squares, n_rows)
    return mean, np.where(variance > 0, variance, 1.0)


def density(features: Features, mean: Real, variance: Real, nu: Real | None = None) -> GaussianParameters:
    """Returns densities of features with these means and variances of z (features × classes): normal, or Student t with
    ``nu`` degrees of freedom, whose squared scale is ``variance``.
    """
    log_unit = np.log(features.units)[:, None]  # turns densities of z into those of numbers
    # ``constant``: the log density at the mean.
    if nu is None:
        constant = -0.5 * np.log(2.0 * np.pi * variance) - log_unit
        return GaussianParameters(features, mean, 0.5 / variance, constant, power=None)
    constant = log_rising(nu / 2.0, 0.5) - 0.5 * np.log(nu * np.pi * variance) - log_unit
    return GaussianParameters(features, mean, 1.0 / (nu * variance), constant, (nu + 1.0) / 2.0)


def _gains(parameters: GaussianParameters, sums: Moments, least_variances: Real, held_out: HeldOutRows) -> Real:
    """Returns for each row how much the log density of its values in its own class changes if the row is left out,
    summed over features (rows).

    Without weight w, n becomes n − w, and the sum of squares S becomes S · (1 − t), t = w n / (n − w) · gap² / S. The
    result is NaN where hardly anything would be left of S, because the difference is then not exact. ``parameters`` and
    ``sums`` are those of all rows, and ``held_out`` are the rows to leave out. ``least_variances`` has the least
    variance of z of each feature.
    """
    columns = held_out.rows.numbers(parameters.features.names)  # arrays of rows, or of rows × columns
    # Features × classes each: mean and 1 / (2 · variance) of z, number of rows, sum of squares of z about the mean.
    tables_of_classes = (parameters.mean, parameters.precision, sums.n.value, sums.spread)
    tables = *map(np.ascontiguousarray, tables_of_classes), np.ascontiguousarray(least_variances)
    scales = parameters.origin, parameters.unit  # of each feature
    labels = held_out.labels.astype(np.int32)  # the class of each row
    weights = None if held_out.weights is None else np.ascontiguousarray(held_out.weights)  # of each row
    return _core.one_less(columns, *scales, labels, tables, weights, (EXACT, NEAR), held_out.threads)  # type: ignore[arg-type]


@dataclass(frozen=True)
class GaussianParameters(NumericParameters):
    """Normal densities, or Student t if ``power`` is given, in units of z. Arrays are features × classes.

    Normal: constant − precision · (z − mean)², where the precision is 1 / (2 σ²). Student t with ν degrees of freedom:
    constant − power · log1p(precision · (z − mean)²), where the power is (ν + 1) / 2 and the precision is 1 / (ν s²).
    """

    features: Features
    mean: Real
    precision: Real
    constant: Real
    power: Real | None

    @property
    def origin(self) -> Real:
        """The origin of each feature (features)."""
        return self.features.origins

    @property
    def unit(self) -> Real:
        """The unit of each feature (features)."""
        return self.features.units

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns the parts with which the kernel adds up log P(value | class) of the features for each of these rows."""
        columns = rows.numbers(self.features.names)  # arrays of rows, or of rows × columns
        curves = (self.mean, self.precision, self.constant, self.power)  # features × classes each; normal: no power
        # z = (number − origin) / unit, with one of each for every feature.
        return [_core.NormalPart(columns, self.origin, self.unit, *curves)]

    def curve(self, f: int) -> Curve | None:
        """Returns the log density of feature number f as a curve of 1, x, x² and log x, or None if it has another form,
        that of Student's t.
        """
        if self.power is not None:
            return None
        zeros = np.zeros(self.mean.shape[1])  # one for each class
        scale = float(self.origin[f]), float(self.unit[f])  # z = (number − origin) / unit
        # The width is 1, the centre the mean, and only 1 and x² have coefficients: constant and − precision.
        return Curve(*scale, zeros + 1.0, self.mean[f], self.constant[f], zeros, -self.precision[f], zeros)

    def log_probability(self, x: Real) -> Real:
        """Returns log P(value | class) (values × classes) of as many values (``x``) as there are features: value i
        belongs to feature i. Of the arrays, features × classes, ``mean``, ``precision`` and ``constant`` are those of z
        = (x − origin) / unit (see the class); ``power`` is None unless the densities are Student t.
        """
        z = np.clip((x - self.origin) / self.unit, -LARGEST, LARGEST)[:, None]  # values × 1
        square = self.precision * (z - self.mean) ** 2  # values × classes
        return self.constant - (square if self.power is None else self.power * np.log1p(square))

    def sample(self, classes: Int, rng: Generator) -> list[NDArray[Any]]:
        """Draws a value of each feature for a row of each of these ``classes`` (class numbers); returns an array per
        column.
        """
        columns = []
        for f in range(len(self.features)):  # z = (number − origin) / unit; ``power`` is None for normal densities
            mean = self.mean[f, classes]  # of z, of each row's class, as the next
            precision = self.precision[f, classes]  # 1 / (2 σ²), or 1 / (ν s²) for Student t
            if self.power is None:
                z = mean + rng.standard_normal(len(classes)) * np.sqrt(0.5 / precision)
            else:
                nu = self._nu(f)[classes]
                z = mean + rng.standard_t(nu) / np.sqrt(precision * nu)
            columns.append(self.origin[f] + self.unit[f] * z)
        return columns

    def spread(self, f: int) -> tuple[Real, Real]:
        """Returns the mean and the standard deviation of feature number f in each class (classes each), in its own
        unit; for Student t, which has a ``power``, the scale. The precision of z = (number − origin) / unit is 1 / (2
        σ²), or 1 / (ν s²) for Student t.
        """
        variance = 0.5 / self.precision[f] if self.power is None else 1.0 / (self.precision[f] * self._nu(f))
        return self.origin[f] + self.unit[f] * self.mean[f], self.unit[f] * np.sqrt(variance)

    def tails(self, f: int, cuts: Real) -> tuple[Real, Real]:
        """Returns P(value < cut) and P(value ≥ cut) of feature f in each class, for these numbers (cuts × classes
        each). The precision of z is 1 / (2 σ²), or 1 / (ν s²) for Student t, which has a ``power``.
        """
        z = ((cuts - self.origin[f]) / self.unit[f])[:, None] - self.mean[f]  # of each cut, from the class's mean
        nu = None if self.power is None else self._nu(f)  # degrees of freedom of each class
        return normal_tails(z * np.sqrt(self.precision[f] * (2.0 if nu is None else nu)), nu)

    def _nu(self, f: int) -> Real:
        """Returns the degrees of freedom of Student's t of feature number f in each class (classes). ``power`` is (ν +
        1) / 2.
        """
        assert self.power is not None
        return np.asarray(2.0 * self.power[f] - 1.0)


def find_narrow_classes(parameters: Parameters, sums: Any) -> list[tuple[int, int, float]]:
    """Returns for each class whose variance is so small, compared with that of the column, that the density stands on
    one value: the feature's number, the class number, and this value. Empty for other families. ``sums`` are those that
    the parameters were estimated from.
    """
    if not isinstance(parameters, GaussianParameters):
        return []
    n_rows, _, sums_of_squares = sums.pool()  # over all classes (features × 1 each); squares of z about the mean
    # Features × classes; 0.5 / precision is the variance of z.
    is_narrow = 0.5 / parameters.precision < NARROW * sums_of_squares / np.maximum(n_rows, 1e-300)
    features_and_classes = np.argwhere(is_narrow & (sums.n.value > 0)).tolist()
    return [(f, c, float(parameters.spread(f)[0][c])) for f, c in features_and_classes]


# Blocks of columns: one normal distribution per class, or one covariance for all ------------------------------------------------


@dataclass(frozen=True)
class BlockPrior:
    """A normal-inverse-Wishart prior: ``kappa`` pseudo-rows for the mean, and ``nu`` for the covariance, which is
    centred on the columns' variances.
    """

    kappa: float
    nu: float
    mean: Real  # of z (columns)
    scale: Real  # the covariance of z on which it is centred (columns, columns)


@dataclass(frozen=True)
class BlockPosterior(Posterior):
    """The posterior of a block: means are classes × columns, strengths one per class."""

    scale: Real  # a sum of products, (classes, columns, columns)
    n_means: int  # that have a covariance in common

    def predictive(self) -> Real:
        """Returns the squared scale of Student's t (classes × columns × columns). ``scale`` is the posterior's sum of
        products, and ``kappa`` and ``nu`` are the strengths of means and covariances (classes).
        """
        return self.scale * ((self.kappa + 1.0) / (self.kappa * self.nu))[:, None, None]

    def expectation(self) -> Real:
        """Returns the mean of the covariance (classes × columns × columns), or its mode where the mean does not exist.
        ``_mode`` is what ``scale`` (classes × columns × columns) is divided by at the mode, and ``nu`` − 2 at the mean.
        """
        return divide(1.0, self.nu - 2.0, 1.0 / self._mode)[:, None, None] * self.scale

    def mode(self) -> Real:
        """Returns the covariance at the joint mode of covariance and means (classes × columns × columns)."""
        return self.scale / self._mode[:, None, None]

    @property
    def _mode(self) -> Real:
        """What the scale is divided by to get the covariance at the mode (classes)."""
        return np.asarray(self.nu + 2.0 * self.mean.shape[1] + self.n_means)

    def draw(self, rng: Generator) -> tuple[Real, Real]:
        """Draws means (classes × columns) and covariances (classes × columns × columns) once, by Bartlett's
        decomposition; returns both. A shared covariance is drawn once. ``self.scale`` (classes × columns × columns) is
        a sum of products, worth ``nu`` rows; ``kappa`` is what means are worth.
        """
        n_classes, n_columns = self.mean.shape
        covariance = np.empty((n_classes, n_columns, n_columns))
        for c in range(n_classes):
            if self.is_shared and c:
                covariance[c] = covariance[0]
                continue
            degrees_of_freedom = float(self.nu[c]) + n_columns - 1.0
            triangle = np.tril(rng.standard_normal((n_columns, n_columns)), -1)  # the drawn factor of Bartlett
            triangle[np.diag_indices(n_columns)] = np.sqrt(rng.chisquare(degrees_of_freedom - np.arange(n_columns)))
            # ``root`` times its transpose is the covariance.
            root = _cholesky(self.scale[c : c + 1])[1][0] @ np.linalg.inv(triangle).T
            covariance[c] = root @ root.T
        roots = _cholesky(covariance)[1]  # lower triangular
        # Of the means from the posterior's, as if they were worth one row (classes × columns).
        noise = np.einsum("cij,cj->ci", roots, rng.standard_normal((n_classes, n_columns)))
        return self.mean + noise / np.sqrt(self.kappa)[:, None], covariance


def shrink_scatter(sums: Products) -> Real:
    """Returns Σzzᵀ about the class means, summed over classes (columns × columns), with correlations shrunk to zero.

    The factor is that of the oracle-approximating shrinkage (Chen, Wiesel, Eldar and Hero, 2010, "Shrinkage algorithms
    for MMSE covariance estimation", IEEE Transactions on Signal Processing 58), which needs only the sums. It is
    computed from the correlations R, so that units do not matter: with d columns that vary, and n rows less one for
    each class mean, min(1, ((1 − 2/d) tr R² + d²) / ((n + 1 − 2/d) (tr R² − d))).
    """
    scatter = sums.scatter.sum(axis=0)
    squares = np.diagonal(scatter)  # the sum of squares of each column
    lengths = np.sqrt(np.where(squares > 0, squares, 1.0))  # their roots
    correlation = scatter / lengths[:, None] / lengths
    degrees = float(sums.n.value.sum() - np.minimum(sums.n.value, 1.0).sum())  # rows, less one for each class's mean
    kept_share = 1.0 - shrinkage(float(np.square(correlation).sum()), int((squares > 0).sum()), degrees)
    return np.asarray(np.where(np.eye(len(scatter), dtype=np.bool_), scatter, kept_share * scatter))


def shrinkage(sum_of_squares: float, n_columns: int, degrees_of_freedom: float) -> float:
    """Returns which share of the correlations is taken away, from 0 to 1, given the sum of their squares over the whole
    matrix (``sum_of_squares``, with the ones of the diagonal), the number of columns, and the degrees of freedom of the
    sample.
    """
    denominator = (degrees_of_freedom + 1.0 - 2.0 / max(n_columns, 1)) * (sum_of_squares - n_columns)
    if n_columns <= 1 or not denominator > 0:
        return 1.0
    return min(((1.0 - 2.0 / n_columns) * sum_of_squares + n_columns * n_columns) / denominator, 1.0)


def block_without_prior(sums: Products, tied: bool, shrink: bool, feature: Feature) -> tuple[Real, Real]:
    """Returns means (classes × columns) and 1/n covariances (classes × columns × columns) of a block.

    ``tied``: the classes share a covariance, whose correlations are shrunk if ``shrink``. A class without rows gets the
    mean and covariance of all rows, and covariances are made invertible; the warning names the block, ``feature``.
    ``sums`` are those of the block.
    """
    rows_of_class = sums.n.value  # (classes)
    # Over all classes: the number of rows, the mean of z (columns), and Σzzᵀ about it (columns × columns).
    n_rows, mean_of_all, scatter_of_all = sums.pool()
    covariance_of_all = scatter_of_all / max(n_rows, 1e-300)
    if tied:
        # About the class means (columns × columns).
        shared_covariance = (shrink_scatter(sums) if shrink else sums.scatter.sum(axis=0)) / max(n_rows, 1e-300)
        if shrink:  # of many numbers some are the same in all rows, and tell nothing
            shared_covariance = shared_covariance + MIXED_IN * np.diag(np.diagonal(covariance_of_all) <= 0)
        covariance = np.broadcast_to(shared_covariance, sums.scatter.shape)
        rows_of_covariance = np.full(len(rows_of_class), n_rows)
    else:
        covariance = divide(sums.scatter, rows_of_class[:, None, None], covariance_of_all)
        rows_of_covariance = rows_of_class
    means = np.where((rows_of_class > 0)[:, None], sums.mean, mean_of_all)
    return means, _make_invertible(covariance, covariance_of_all, rows_of_covariance, feature)


def _make_invertible(covariance: Real, covariance_of_all: Real, n_rows: Real, feature: Feature) -> Real:
    """Returns covariances (classes × columns × columns) with a little of the columns' own variances added to those that
    have no inverse, with a warning that names the block (``feature``). ``covariance_of_all`` is that of all classes
    (columns × columns), and ``n_rows`` the number of rows that each covariance was computed from (classes).
    """
    variance = np.diagonal(covariance_of_all)  # of each column
    diagonal = np.diag(np.where(variance > 0, variance, 1.0))
    deviation = np.sqrt(np.diagonal(diagonal))  # of each column
    eigenvalues = np.linalg.eigvalsh(covariance / deviation[:, None] / deviation)  # classes × columns, ascending
    is_singular = ~(eigenvalues[:, 0] > NARROW_BLOCK * np.maximum(eigenvalues[:, -1], 1.0))  # of each class
    if is_singular.any() and n_rows.any():
        tied = getattr(feature.family, "covariance", None) != "full"  # whether classes share a covariance
        columns = errors.many(len(variance), "column")
        fewest_rows = errors.many(int(n_rows[is_singular].min()), "row")
        too_few = fewest_rows if tied else f"a class of {fewest_rows}"
        advice = "" if tied else "covariance='tied', "
        text = f"block {feature.name!r} of {columns} has {too_few}, so its covariance has no inverse and a little "
        errors.warn(f"{text}of each column's variance is added. Use fewer columns, {advice}or a prior.")
    return np.where(is_singular[:, None, None], (1.0 - MIXED_IN) * covariance + MIXED_IN * diagonal, covariance)


def block_posterior(sums: Products, prior: BlockPrior, tied: bool, shrink: bool) -> BlockPosterior:
    """Returns the posterior of a block's means and covariances under a prior. ``tied``: the classes share a covariance,
    whose correlations are shrunk towards zero if ``shrink``. ``sums`` are those of the block.
    """
    rows_of_class = sums.n.value  # (classes)
    kappa = prior.kappa + rows_of_class  # the strength of each mean
    shift = sums.mean - prior.mean  # of z (classes × columns)
    # Σzzᵀ (classes × columns × columns): first of the class means about the prior's, then of all rows too.
    scatter = (prior.kappa * rows_of_class / kappa)[:, None, None] * np.einsum("ci,cj->cij", shift, shift)
    n_rows = rows_of_class  # from which each covariance is computed
    if not tied:
        scatter = sums.scatter + scatter
    else:
        shared_scatter = shrink_scatter(sums) if shrink else sums.scatter.sum(axis=0)
        scatter = np.broadcast_to(shared_scatter + scatter.sum(axis=0), scatter.shape)
        n_rows = np.full(len(rows_of_class), rows_of_class.sum())
    mean = (prior.kappa * prior.mean + rows_of_class[:, None] * sums.mean) / kappa[:, None]
    scale = prior.nu * prior.scale + scatter  # the prior's covariance as a sum of ``nu`` rows, and the rows' own
    return BlockPosterior(mean, kappa, prior.nu + n_rows, tied, scale, n_means_of_block(sums, tied))


def n_means_of_block(sums: Products, tied: bool) -> int:
    """Returns how many means share a covariance: as many as classes have rows if ``tied``, otherwise one."""
    return int(np.count_nonzero(sums.n.value)) if tied else 1


def block_density(features: Features, mean: Real, covariance: Real, nu: Real | None = None) -> GaussianBlockParameters:
    """Returns the densities of a block with these means (classes × columns) and covariances (classes × columns ×
    columns): normal, or Student t with ``nu`` degrees of freedom (classes), whose scale the covariances are.
    """
    n_columns = mean.shape[1]
    covariance, roots = _cholesky(covariance)  # ``roots`` are lower triangular, in the same shape
    # The log density at the mean, but for the covariance's determinant (classes, or one number for all).
    if nu is None:
        constant = -0.5 * n_columns * np.log(2.0 * np.pi)
    else:
        constant = log_rising(nu / 2.0, n_columns / 2.0) - 0.5 * n_columns * np.log(nu * np.pi)
    return GaussianBlockParameters(features, mean, covariance, constant - _log_volume(roots), nu)


def _cholesky(covariance: Real) -> tuple[Real, Real]:
    """Returns two arrays classes × columns × columns: covariances, and their lower triangular roots. Where rounding
    leaves no root, more and more of the diagonal is added until there is one; the covariances returned have it too.
    """
    # Classes × columns.
    deviation = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), np.finfo(float).tiny))
    products_of_deviations = deviation[:, :, None] * deviation[:, None, :]
    correlation = covariance / products_of_deviations
    for share in (0.0, *SHARES_OF_DIAGONAL):
        with_diagonal = correlation + share * np.eye(covariance.shape[1])  # correlations that may have a root
        try:
            roots = np.linalg.cholesky(with_diagonal)
        except np.linalg.LinAlgError:
            continue
        return with_diagonal * products_of_deviations, roots * deviation[:, :, None]
    raise AssertionError("a correlation is no more than 1")


def _log_volume(roots: NDArray[Any]) -> Real:
    """Returns the log determinant of each of these triangular roots (classes × columns × columns): an array (classes)."""
    return np.asarray(np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1))


@dataclass(frozen=True)
class GaussianBlockParameters(Parameters):
    """Normal densities of a block per class, or Student t if ``nu`` is given, in units of z."""

    features: Features
    mean: Real  # (classes, columns)
    covariance: Real  # (classes, columns, columns)
    constant: Real  # of the log density of z (classes)
    nu: Real | None  # degrees of freedom (classes)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.features[0].inputs

    @cached_property
    def _scales(self) -> tuple[Real, Real]:
        """The origin and the unit of each column, as two arrays."""
        origin, unit = np.array(self.features[0].scales).T
        return np.ascontiguousarray(origin), np.ascontiguousarray(unit)

    @cached_property
    def _whiten(self) -> Real:
        """For each class the matrix that turns z − mean into independent numbers of variance 1 (classes × columns ×
        columns).
        """
        roots = _cholesky(self.covariance)[1]  # lower triangular; ``covariance`` is classes × columns × columns
        n_classes, n_columns, _ = roots.shape
        return np.ascontiguousarray(
            np.linalg.solve(roots, np.broadcast_to(np.eye(n_columns), (n_classes, n_columns, n_columns)))
        )

    @cached_property
    def _constant(self) -> Real:
        """The constant of the log density in the columns' own units (classes)."""
        return np.asarray(self.constant - np.log(self._scales[1]).sum())

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns the part with which the kernel adds log P(values of the block | class) of these rows; a missing value
        is summed out.
        """
        columns = self.features[0].numbers(rows)  # arrays of rows, or of rows × columns; NaN: missing
        if any(column.dtype.kind == "f" and np.isnan(column).any() for column in columns):
            return [self._with_gaps(rows)]
        if self.features[0].holds_lists:
            block_columns(rows, self.features[0])  # raises if a number is infinite
        return [self._part(columns)]

    def _part(self, columns: list[NDArray[Any]]) -> _core.Part:
        """Returns the kernel's part for rows without missing values; ``columns`` are arrays of rows, or of rows ×
        columns. ``self.nu`` has Student t's degrees of freedom (classes), None for normal densities.
        """
        whiten = self._whiten  # turns z − mean into independent numbers (classes × columns × columns)
        power = None  # of Student t: (ν + columns) / 2 (classes)
        if self.nu is not None:
            whiten = whiten / np.sqrt(self.nu)[:, None, None]
            power = (self.nu + self.mean.shape[1]) / 2.0
        return _core.EllipsePart(columns, *self._scales, self.mean, whiten, self._constant, power)

    def _with_gaps(self, rows: ColumnReader) -> _core.Part:
        """Returns the part for rows with missing values: each is scored by the marginal distribution of the values it
        has, and by none if it has none.
        """
        values = np.column_stack(block_columns(rows, self.features[0]))  # rows × columns; NaN: missing
        n_classes, n_columns = self.mean.shape  # ``mean`` has the means of z
        log_likelihoods = np.zeros((rows.n_rows, n_classes))
        # Rows that have values in the same columns are scored together.
        for column_numbers, rows_of_pattern in rows_by_columns_present(values):
            marginal = self if len(column_numbers) == n_columns else self.marginal(column_numbers)
            part = marginal._part([np.ascontiguousarray(values[np.ix_(rows_of_pattern, column_numbers)])])
            # Without a prior, on one thread; the first result has the scores (rows × classes).
            scores = _core.score(len(rows_of_pattern), np.zeros(n_classes), [part], "log_joint", 1)
            log_likelihoods[rows_of_pattern] = scores[0]
        return line_by_line(np.where(np.isnan(values).all(axis=1), -1, np.arange(rows.n_rows)), log_likelihoods)

    def log_prior(self, prior: BlockPrior, rows: float, tied: bool) -> float:
        """Returns what a prior adds to the log-likelihood of these parameters, over all classes, up to a constant.
        ``rows`` is how many rows its covariance is worth; ``tied``: the classes share a covariance, which counts once.
        ``self._whiten`` turns z − mean of each class into independent numbers of variance 1.
        """
        whitened_means = np.einsum("cij,cj->ci", self._whiten, self.mean - prior.mean)  # classes × columns
        # Per class: the trace of the prior's sum of products times the inverse covariance.
        trace = np.einsum("cij,jk,cik->c", self._whiten, prior.nu * prior.scale, self._whiten)
        of_covariances = trace - 2.0 * rows * _log_volume(self._whiten)  # −2 · log prior of each
        if tied:
            of_covariances = of_covariances[:1]
        return -0.5 * (prior.kappa * float(np.square(whitened_means).sum()) + float(of_covariances.sum()))

    def marginal(self, columns: Int) -> GaussianBlockParameters:
        """Returns the marginal distribution of the columns with these numbers, in this order. ``mean`` is classes ×
        columns, ``covariance`` classes × columns × columns, and ``nu`` the degrees of freedom of Student's t.
        """
        (feature,) = self.features  # the block
        names = tuple(feature.inputs[j] for j in columns.tolist())
        scales = tuple(feature.scales[j] for j in columns.tolist())  # the origin and unit of each
        marginal_features = Features.of([feature._replace(columns=names, scales=scales)])
        covariance = self.covariance[:, columns[:, None], columns]  # classes × columns × columns
        return block_density(marginal_features, self.mean[:, columns], covariance, self.nu)

    def informative_values(self, compared: Comparison) -> Iterator[InformativeValues] | None:
        """Yields the informative intervals of each column, by its marginal distribution; None for lists of numbers.
        ``compared`` says which classes are compared with which others.
        """
        return None if self.features[0].holds_lists else informative_intervals(self._marginals(), compared)

    def _marginals(self) -> GaussianParameters:
        """Returns the marginal distribution of each column, as that of a feature of its own, with the column's name.
        ``mean`` is classes × columns, ``covariance`` classes × columns × columns, and ``nu`` the degrees of freedom of
        Student's t (classes), None for normal densities.
        """
        columns = Features.named(self.names, [self.features[0]._replace(columns=(), scales=())] * len(self.names))
        origins, units = self._scales  # of each column
        # Of z (columns × classes).
        means = self.mean.T
        variances = np.diagonal(self.covariance, axis1=1, axis2=2).T
        nu = None if self.nu is None else np.broadcast_to(self.nu, means.shape)
        return density(replace(columns, origins=origins, units=units), means, variances, nu)

    def sample(self, classes: Int, rng: Generator) -> list[NDArray[Any]]:
        """Draws a row of the block for each of these ``classes`` (class numbers): one array of numbers per column; for
        lists, a single array rows × numbers.
        """
        roots = _cholesky(self.covariance)[1]  # of the covariance of z (classes × columns × columns)
        # Of z from its mean (rows × columns).
        deviation = np.einsum("rij,rj->ri", roots[classes], rng.standard_normal((len(classes), self.mean.shape[1])))
        if self.nu is not None:
            deviation /= np.sqrt(rng.chisquare(self.nu[classes]) / self.nu[classes])[:, None]
        origin, unit = self._scales  # of each column
        numbers = origin + unit * (self.mean[classes] + deviation)
        return [numbers] if self.features[0].holds_lists else list(numbers.T)


def normal_tails(z: Real, nu: Real | None) -> tuple[Real, Real]:
    """Returns the probabilities below and above each z, in its shape: of the standard normal distribution if ``nu`` is
    None, or of Student's t with ``nu`` degrees of freedom (which broadcast with z).
    """
    from scipy.special import ndtr, stdtr  # a third of a second to import; few need it

    return (ndtr(z), ndtr(-z)) if nu is None else (stdtr(nu, z), stdtr(nu, -z))
