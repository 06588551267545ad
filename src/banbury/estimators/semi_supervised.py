"""Expectation maximisation as scikit-learn estimators: a classifier that also learns from unlabelled rows, and a mixture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.errors import check_whole, many
from banbury.estimators.guard import in_one_step
from banbury.estimators.rows import TakesTables, as_array, one_batch, row_weights
from banbury.families.family import check_positive
from banbury.families.keys import number_values
from banbury.model.density import AsDensity, n_parameters
from banbury.model.explain import Explanation, Informative
from banbury.model.naive_bayes import Model, check_seed, log_sum
from banbury.reading import Batch, encode, n_threads
from banbury.scikit_learn import BaseEstimator, ClassifierMixin, check_is_fitted
from banbury.semi_supervised import (
    HOWS,
    TRIAL,
    Climb,
    Task,
    climb_from_starts,
    find_narrow_curves,
    random_start,
    starts_from_labels,
)
from banbury.semi_supervised.observed import Observed
from banbury.sums import sort_keys
from banbury.tally.table import align_names, refuse_continuous
from banbury.tally.tally import Label, Tally

HELD_OUT_FOLDS = 5  # folds, each of which is held out once
EMPTY_BELOW = 0.5  # a component with fewer rows than this counts as empty


class _Maximiser(TakesTables, BaseEstimator):  # type: ignore[misc]
    """What SemiSupervisedClassifier and Mixture share: parameters, fitted attributes, explanations and posteriors."""

    how: Any
    alpha: Any
    tol: Any  # the smallest gain for which iterations continue
    seed: Any
    threads: Any
    class_prior: Any
    model_: Model
    _trees = "none"
    log_likelihoods_: NDArray[np.float64]  # of all rows, one for each iteration
    objectives_: NDArray[np.float64]  # the same with the log prior
    n_iter_: int
    converged_: bool

    @property
    def tally_(self) -> Tally:
        """The tally of all rows, each divided among the classes by its posterior."""
        return self._model().tally

    def explain(self, row: Any, against: Any = None) -> Explanation:
        """Explains why a row gets its class rather than ``against`` (by default the runner-up): the weight of evidence
        of every column and word, in decibans.
        """
        return self._model().explain(row, against)

    def informative(self, n: int = 10, classes: Any = None) -> Informative:
        """Returns the ``n`` values that best tell each class from the rest, as likelihood ratios: see
        ``Model.informative``.
        """
        return self._model().informative(n, classes)

    def predict_proba(self, X: Any) -> Real:
        """Returns P(class | row), rows × classes."""
        return self._model().posterior(self._rows(X))

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a model."""
        return "model_" in self.__dict__

    def _model(self) -> Model:
        """Returns the fitted model. Raises NotFittedError before ``fit``."""
        check_is_fitted(self)
        return self.model_

    def _rows(self, X: Any) -> Batch:
        """Returns the rows X as one batch. Raises an error if their number of columns is wrong."""
        batch = one_batch(X)
        if not (batch.named and "feature_names_in_" in self.__dict__) and len(batch.names) != self.n_features_in_:
            raise errors.wrong_width(len(batch.names), self.n_features_in_, type(self).__name__)
        return batch

    def _check(self) -> None:
        """Raises an error for an invalid parameter."""
        if not isinstance(self.how, str) or self.how not in HOWS:
            raise errors.unknown_choice("how", self.how, HOWS)
        check_positive("alpha", self.alpha, zero=True)
        check_positive("tol", self.tol, zero=True)
        check_seed(self.seed)
        for name in ("starts", "max_iter"):
            check_whole(name, getattr(self, name), 1)

    def _observe(self, batch: Batch, weights: Real) -> Observed:
        """Returns the rows of ``batch`` in the form that expectation maximisation needs. ``weights``: one per row."""
        schema = self._schema(batch)
        return Observed.of(align_names(batch, schema), schema, weights, n_threads(self.threads))

    def _task(self, observed: Observed, classes: Sequence[Label], labels: NDArray[np.int32], weights: Real) -> Task:
        """Returns the maximisation problem for the rows ``observed``. ``classes``: all classes or components;
        ``labels``: for each row the index of its class, −1 for unlabelled rows; ``weights``: one per row.
        """
        # With which models are estimated.
        settings = {"how": self.how, "alpha": float(self.alpha), "class_prior": self.class_prior}
        return Task(observed, tuple(classes), labels, weights, settings)

    def _keep(self, climb: Climb) -> None:
        """Sets the fitted attributes from the best climb (a run of expectation maximisation): its model, its objectives
        (one for each iteration) and whether it converged. Gives its warnings.
        """
        self.model_ = climb.model
        self.log_likelihoods_ = np.array(climb.log_likelihoods)
        self.objectives_ = np.array(climb.objectives)
        self.n_iter_ = len(climb.objectives)
        self.converged_ = climb.converged
        self._note_columns(climb.model.schema)
        for warning in climb.warnings:
            errors.warn(warning)


class SemiSupervisedClassifier(ClassifierMixin, _Maximiser):  # type: ignore[misc]
    """Naive Bayes that also learns from rows without a label, by expectation maximisation (Nigam et al. 2000).

    A row has no label if ``y`` is None or NaN there, or equal to ``unlabelled``. The model of the labelled rows gives
    each other row a probability for each class. These rows are then counted with those probabilities as weights and the
    model is estimated again, until the likelihood of all rows stops growing.

    Args:
        unlabelled: A label that means none, such as −1 in scikit-learn.
        unlabelled_weight: How much a row without a label counts, from 0 to 1.
        starts: The number of starting points: the labelled rows as they are, and the same rows with random weights. The
            result with the highest likelihood is kept.
        max_iter: The maximum number of iterations.
        tol: The smallest gain, as a share of the objective, for which iterations continue.
        features: The families, as in ``NaiveBayesClassifier``.
        how: "mle", "map" or "mean".
        alpha: The pseudo-count, as in ``bb.estimate``.
        class_prior: The class prior, as in ``bb.estimate``.
        missing: What to do with missing values, as in ``bb.count``.
        threads: The number of threads. It never changes the result.
        seed: The seed for the random starting points.

    After fitting, these attributes are set: ``classes_``, ``model_``, ``tally_``, ``transduction_`` (the class of each
    row: its label, or the most probable class), ``log_likelihoods_`` and ``objectives_`` (for each iteration; the
    objective includes the log prior and never decreases), ``n_iter_`` and ``converged_``.

    >>> import banbury as bb
    >>> texts = ["cheap pills", "lunch at noon", "cheap watches", "gold watches", "noon walk", "a long walk"]
    >>> clf = bb.SemiSupervisedClassifier(alpha=0.1).fit(texts, ["spam", "ham", None, None, None, None])
    >>> clf.predict(["gold", "long"]).tolist()
    ['spam', 'ham']
    """

    classes_: NDArray[Any]
    transduction_: NDArray[Any]

    def __init__(
        self,
        features: Any = "auto",  # the families: "auto", one for all columns, or by column
        how: str = "mean",  # how parameters are estimated, such as "mle" or "mean"
        alpha: float = 1.0,  # the pseudo-count
        class_prior: Any = None,  # None for class frequencies, "uniform", or P(class)
        unlabelled: Any = None,  # the label that means none, besides None and NaN
        unlabelled_weight: float = 1.0,  # of a row without a label, from 0 to 1
        starts: int = 1,  # how many starting points
        max_iter: int = 100,  # the most iterations
        tol: float = 1e-6,  # the smallest gain, as a share of the objective, to go on
        missing: str = "skip",  # "skip" missing values, or count them as a "category"
        threads: int | None = None,  # how many; None for all processors
        seed: int = 0,  # of everything drawn at random
    ) -> None:
        """Stores the parameters as they are; ``fit`` checks them."""
        self.features = features
        self.missing = missing
        self.threads = threads
        self.how = how
        self.alpha = alpha
        self.class_prior = class_prior
        self.starts = starts
        self.max_iter = max_iter
        self.tol = tol
        self.seed = seed
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight

    @in_one_step
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Learns from all rows, with or without a label."""
        self._check()
        unlabelled_weight = self.unlabelled_weight
        is_number = isinstance(unlabelled_weight, (int, float, np.number)) and not isinstance(unlabelled_weight, bool)
        errors.require(
            is_number and 0 <= unlabelled_weight <= 1, "unlabelled_weight", unlabelled_weight, "a number from 0 to 1"
        )
        batch, target = self._read_rows_and_labels(X, y)  # target: the label of each row, as y gives it
        sample_weights = _weights(sample_weight, batch)  # one per row
        # Labels are the class number of each row, −1 for none.
        classes, labels = _number_classes(target, self.unlabelled, n_threads(self.threads))
        if self.unlabelled is None and target.dtype.kind in "ifO" and len(classes) > 2 and -1 in classes:
            n_negative = int(np.count_nonzero(labels == classes.index(-1)))
            errors.warn(
                f"{many(n_negative, 'row')} of label -1 {'is' if n_negative == 1 else 'are'} treated as a class named -1, among "
                "others. If these rows are unlabelled, as in scikit-learn, pass unlabelled=-1."
            )
        # Of each row in the maximisation.
        weights = np.where(labels >= 0, sample_weights, sample_weights * float(unlabelled_weight))
        # The maximisation problem.
        task = self._task(self._observe(batch, weights), classes, labels, weights)
        # The best of several runs of expectation maximisation.
        climb = climb_from_starts(
            task, starts_from_labels(task, int(self.starts), int(self.seed)), int(self.max_iter), self.tol
        )
        self._keep(climb)
        dtype = None if target.dtype.kind == "O" else target.dtype  # of the labels; None: mixed, perhaps with None
        if dtype is None and len({*map(type, classes)}) == 1:
            dtype = np.array(classes).dtype
        self.classes_ = as_array(tuple(classes), dtype)
        # ``climb.posteriors`` are rows × classes; those of a labelled row are certain.
        self.transduction_ = self.classes_[climb.posteriors.argmax(axis=1)]

    def predict(self, X: Any) -> NDArray[Any]:
        """Returns the most probable class of each row."""
        self._model()
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Returns the share of labelled rows that are predicted correctly."""
        self._model()
        batch, target = self._read_rows_and_labels(X, y)  # target: the label of each row, as y gives it
        # Of each row.
        is_labelled = _codes(target, self.unlabelled, n_threads(self.threads))[0] >= 0
        # Of each row; 0 without a label.
        weights = np.where(is_labelled, _weights(sample_weight, batch), 0.0)
        if not weights.any():
            raise errors.EmptyData(
                f"none of the {batch.n_rows:,} rows to score has a label and a positive weight. Score rows whose "
                "class is known; in cross-validation, use fewer folds or folds that all contain labelled rows."
            )
        # Of each labelled row.
        is_correct = self.predict(batch)[is_labelled].astype(object) == target[is_labelled].astype(object)
        return float(np.average(is_correct, weights=weights[is_labelled]))

    def predict_log_proba(self, X: Any) -> Real:
        """Returns log P(class | row), rows × classes, in the order of ``classes_``."""
        return self._model().log_posterior(self._rows(X))


class Mixture(AsDensity, _Maximiser):
    """A mixture of components, each with a family for every column: for clustering and density estimation.

    It is naive Bayes with unnamed classes, learned by expectation maximisation. As a density it offers probabilities,
    anomaly scores and samples, like ``bb.Density``.

    Args:
        n_components: The number of components, or several numbers to choose from.
        choose_by: How to choose the number of components: "bic" (the Bayesian information criterion) or "held_out" (the
            likelihood of held-out rows over five folds).
        starts: The number of random starting points. After 30 iterations the three with the highest likelihood
            continue, and the best of these is kept.
        max_iter: The maximum number of iterations.
        tol: The smallest gain, as a share of the objective, for which iterations continue.
        features: The families, as in ``NaiveBayesClassifier``.
        how: "mle", "map" or "mean".
        alpha: The pseudo-count, as in ``bb.estimate``.
        class_prior: The prior of the components, as in ``bb.estimate``.
        missing: What to do with missing values, as in ``bb.count``.
        threads: The number of threads. It never changes the result.
        seed: The seed for the random starting points.

    After fitting, these attributes are set: ``model_`` (its classes are 0, 1, 2 …), ``tally_``, ``n_components_``,
    ``scores_`` (for each number of components tried: its BIC, where lower is better, or its held-out log-likelihood per
    row), ``log_likelihoods_``, ``objectives_``, ``n_iter_`` and ``converged_``.

    >>> import banbury as bb
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> mixture = bb.Mixture(3).fit(X)
    >>> mixture.predict(X[[0, 1, 60, 149]]).shape, round(mixture.score(X), 2)
    ((4,), -2.05)
    """

    n_components_: int
    scores_: dict[int, float]

    def __init__(
        self,
        n_components: Any = 2,  # how many, or several numbers to choose from
        features: Any = "auto",  # the families: "auto", one for all columns, or by column
        how: str = "mean",  # how parameters are estimated, such as "mle" or "mean"
        alpha: float = 1.0,  # the pseudo-count
        class_prior: Any = None,  # None for class frequencies, "uniform", or P(class)
        choose_by: str = "bic",  # "bic" or "held_out": how the number is chosen
        starts: int = 10,  # how many starting points
        max_iter: int = 200,  # the most iterations
        tol: float = 1e-6,  # the smallest gain, as a share of the objective, to go on
        missing: str = "skip",  # "skip" missing values, or count them as a "category"
        threads: int | None = None,  # how many; None for all processors
        seed: int = 0,  # of everything drawn at random
    ) -> None:
        """Stores the parameters as they are; ``fit`` checks them."""
        self.features = features
        self.missing = missing
        self.threads = threads
        self.how = how
        self.alpha = alpha
        self.class_prior = class_prior
        self.starts = starts
        self.max_iter = max_iter
        self.tol = tol
        self.seed = seed
        self.n_components = n_components
        self.choose_by = choose_by

    @in_one_step
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> None:
        """Finds the components. ``y`` is ignored."""
        self._check()
        if self.choose_by not in ("bic", "held_out"):
            raise errors.unknown_choice("choose_by", self.choose_by, ["bic", "held_out"])
        batch = one_batch(X)
        weights = _weights(sample_weight, batch)  # one per row
        # The numbers of components to try; below only the best remains.
        sizes = self._sizes(int(np.count_nonzero(weights > 0)))
        observed = self._observe(batch, weights)  # the rows for expectation maximisation
        scores: dict[int, float] = {}  # the criterion of each number of components
        if len(sizes) > 1 and self.choose_by == "held_out":
            scores = {n_components: self._score_held_out(batch, weights, n_components) for n_components in sizes}
            sizes = [max(sizes, key=scores.__getitem__)]
        # The best run of expectation maximisation for each number of components.
        climbs = {n_components: self._climb(observed, weights, n_components) for n_components in sizes}
        if len(sizes) > 1:
            scores = {
                n_components: _bic(climb.model, climb.log_likelihoods[-1], weights)
                for n_components, climb in climbs.items()
            }
            sizes = [min(sizes, key=scores.__getitem__)]
        self.scores_ = scores
        [self.n_components_] = sizes
        self._keep(climbs[self.n_components_])
        self._warn_of_degenerate(weights)

    def _warn_of_degenerate(self, weights: Real) -> None:
        """Warns if a component has collapsed to a single value or is empty. ``weights``: those of the rows."""
        n_components = self.n_components_
        component_rows = self.model_.tally.rows.value  # the number of rows of each component, by weight
        if collapsed := find_narrow_curves(self.model_):  # the number, column and value of each
            descriptions = (f"component {number} at {column} = {value:.6g}" for number, column, value in collapsed)
            errors.warn(
                "a Gaussian component has collapsed to a single value: "
                f"{errors.listed(descriptions, 4)}. Use a histogram (features={{{collapsed[0][1]!r}: 'histogram'}}), a prior "
                "(bb.Gaussian(prior=bb.NormalInverseGamma(nu=3))), or fewer components."
            )
        if empty_components := np.flatnonzero(component_rows < EMPTY_BELOW * weights.mean()).tolist():
            what = f"component{'s' * (len(empty_components) > 1)} {errors.listed(empty_components)} of {n_components:,}"
            fewer = max(n_components - len(empty_components), 1)
            errors.warn(
                f"{what} ended with less than half a row. Use fewer components (n_components={fewer}), or try more "
                "starts= or another seed=."
            )

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int64]:
        """Finds the components and returns the most probable component of each row. ``y`` is ignored.

        >>> import banbury as bb
        >>> bb.Mixture(2, starts=3).fit_predict([[0.1], [0.2], [0.3], [9.1], [9.2]]).tolist()
        [1, 1, 1, 0, 0]
        """
        return self.fit(X, y, sample_weight).predict(X)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Returns the number of the most probable component of each row."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Returns the mean of log P(row), in nats. ``y`` is ignored."""
        return float(self.score_samples(X).mean())

    def bic(self, X: Any) -> float:
        """Returns the Bayesian information criterion: parameters × log(rows) − 2 log P(rows). Lower is better."""
        log_probabilities = self.score_samples(X)
        return _bic(self.model_, float(log_probabilities.sum()), np.ones(len(log_probabilities)))

    def aic(self, X: Any) -> float:
        """Returns Akaike's information criterion: 2 × parameters − 2 log P(rows). Lower is better."""
        return 2.0 * n_parameters(self.model_) - 2.0 * float(self.score_samples(X).sum())

    def _batches(self, X: Any) -> list[Batch]:
        """Returns the rows X as a list of one batch."""
        self._model()
        return [self._rows(X)]

    def _sizes(self, n_rows: int) -> list[int]:
        """Returns the numbers of components to try, ascending. Raises an error if one is invalid or exceeds ``n_rows``,
        the number of rows.
        """
        sizes = [self.n_components] if np.ndim(self.n_components) == 0 else list(self.n_components)
        errors.require(sizes, "n_components", self.n_components, "a number, or a list of at least one")
        for n in sizes:
            check_whole("n_components", n, 1)
            errors.require(n <= n_rows, "n_components", n, f"at most {n_rows:,}, the number of rows")
        return sorted({int(n) for n in sizes})

    def _climb(self, observed: Observed, weights: Real, n: int) -> Climb:
        """Returns the best of several climbs (runs of expectation maximisation) from random starts, for a mixture of
        ``n`` components of the rows ``observed``. ``weights``: one per row.
        """
        labels = np.full(observed.n_rows, -1, dtype=np.int32)  # no row has a label
        task = self._task(observed, range(n), labels, weights)  # the maximisation problem
        rng = np.random.default_rng(self.seed)
        # Where the climbs begin.
        starts = (random_start(task, rng) for _ in range(1 if n == 1 else int(self.starts)))
        # After TRIAL iterations only the best starts continue.
        return climb_from_starts(task, starts, int(self.max_iter), self.tol, TRIAL)

    def _score_held_out(self, batch: Batch, weights: Real, n: int) -> float:
        """Returns the mean log-likelihood per row, each row scored by a mixture of ``n`` components learned without its
        fold. ``weights``: one per row.
        """
        # Rows are assigned to folds at random, in equal numbers.
        fold_of_row = np.random.default_rng(self.seed).permutation(batch.n_rows) % min(HELD_OUT_FOLDS, batch.n_rows)
        schema = self._schema(batch)
        log_likelihood = 0.0
        threads = n_threads(self.threads)
        for fold in range(int(fold_of_row.max()) + 1):
            training_rows = np.flatnonzero(fold_of_row != fold)  # row numbers
            tested_rows = np.flatnonzero(fold_of_row == fold)
            observed = Observed.of(
                align_names(batch.take(training_rows), schema), schema, weights[training_rows], threads
            )
            has_enough_rows = np.count_nonzero(weights[training_rows] > 0) >= n
            errors.require(has_enough_rows, "n_components", n, "fewer than the rows left after holding some out")
            model = self._climb(observed, weights[training_rows], n).model
            log_likelihood += float(weights[tested_rows] @ log_sum(model.log_joint(batch.take(tested_rows))))
        return log_likelihood / float(weights.sum())


def _weights(sample_weight: Any, batch: Batch) -> Real:
    """Returns a weight for each row, checked as ``bb.count`` checks it; ones if ``sample_weight`` is None. Raises an
    error if all are zero.
    """
    weights = row_weights(sample_weight, batch)
    if not weights.any():
        raise errors.empty_data(None, "every row has a weight of zero")
    return weights


def _number_classes(target: NDArray[Any], unlabelled: Any, threads: int) -> tuple[tuple[Any, ...], NDArray[np.int32]]:
    """Returns the sorted classes, and for each row the index of its class, −1 if it has no label. ``target``: the label
    of each row; ``unlabelled``: a label that means none, or None. Raises an error if no row has a label.
    """
    codes, names = _codes(target, unlabelled, threads)  # of each row the index of its label among ``names``, or −1
    refuse_continuous(names, len(codes))
    used_names = {names[code] for code in np.unique(codes[codes >= 0]).tolist()}
    if not used_names:
        raise errors.EmptyData(
            f"none of the {len(target):,} rows has a label. Label a few rows of each class, or cluster unlabelled rows with "
            "bb.Mixture."
        )
    classes = sort_keys(used_names)
    class_index = {name: index for index, name in enumerate(classes)}
    # The class index by code; the last entry is that of code −1, no label.
    return classes, np.array([*(class_index.get(name, -1) for name in names), -1], dtype=np.int32)[codes]


def _codes(target: NDArray[Any], unlabelled: Any, threads: int) -> tuple[NDArray[np.int32], Sequence[Label]]:
    """Returns for each row the index of its label in the returned list of labels, −1 if it has none or the label
    ``unlabelled``, which means none. ``target``: the label of each row.
    """
    codes, names = number_values(encode(target, threads), threads)
    if unlabelled is not None:
        unlabelled_codes = [code for code, name in enumerate(names) if name == unlabelled]
        codes = np.where(np.isin(codes, unlabelled_codes), np.int32(-1), codes)
    return codes, names


def _bic(model: Model, log_likelihood: float, weights: Real) -> float:
    """Returns the Bayesian information criterion of a model for rows with these weights. ``log_likelihood``: of all
    these rows.
    """
    return n_parameters(model) * float(np.log(weights.sum())) - 2.0 * log_likelihood
