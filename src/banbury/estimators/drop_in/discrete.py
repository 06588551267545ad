"""Discrete, the base of the four classes for discrete columns, and the three classes for counts and flags."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn import naive_bayes as sklearn_nb
from sklearn.utils.validation import check_non_negative

from banbury.arrays import Real
from banbury.estimators.drop_in.base import MISSING, DropIn, Settings, model_attribute
from banbury.families import Bernoulli, Occurrences
from banbury.families.bags.event_models import log_shares, pseudo_count
from banbury.families.bags.parameters import BagParameters
from banbury.families.bags.vocabulary import pairs_of
from banbury.families.bernoulli import BernoulliParameters
from banbury.families.dirichlet import log
from banbury.families.family import Choice, Family
from banbury.model.naive_bayes import Model
from banbury.reading import Batch, Sparse
from banbury.reading.batches import Matrix
from banbury.sums import Counts
from banbury.tally.schema import Schema, of_one_family


class Discrete(DropIn):
    """The base of the four classes for discrete columns: their class prior and pseudo-count, from scikit-learn's
    parameters.
    """

    fit_prior: bool
    class_prior: Any
    alpha: Any

    def _settings(self, n_classes: int) -> Settings:
        """Returns the settings from the parameters, for ``n_classes`` classes. Raises ValueError for an invalid class
        prior.
        """
        log_prior: Real | None = None  # one per class; None for class frequencies
        if self.class_prior is not None:
            if len(self.class_prior) != n_classes:
                raise ValueError("Number of priors must match number of classes.")
            shares = np.asarray(self.class_prior, dtype=np.float64)
            if not np.min(shares) >= 0:
                raise ValueError("Priors must be non-negative.")
            if not 0 < shares.sum() < np.inf:
                raise ValueError(f"class_prior must have a finite, positive sum. Got {self.class_prior!r} instead.")
            log_prior = log(shares)
        elif not self.fit_prior:
            log_prior = np.full(n_classes, -np.log(n_classes))
        alpha = self._alpha()  # the pseudo-count, or a tuple of one per column
        # Without pseudo-counts zero probabilities stay zero.
        return Settings(Choice("mle" if alpha == 0 else "mean"), family=self._family(alpha), log_prior=log_prior)

    def _family(self, alpha: Any) -> Family | tuple[Family, ...]:
        """Returns the family of all columns, or a tuple with one per column. ``alpha``: the pseudo-count, or a tuple
        with one per column.
        """
        raise NotImplementedError

    def _alpha(self) -> float | tuple[float, ...]:
        """Returns the pseudo-count, or a tuple of one per column, as scikit-learn checks it."""
        alpha: Any = self._check_alpha()  # type: ignore[attr-defined]
        return float(alpha) if np.ndim(alpha) == 0 else tuple(np.asarray(alpha, dtype=np.float64).tolist())

    def _check_with_sklearn(self, X: Any) -> Any:
        """Checks rows with scikit-learn's functions, as ``DropIn`` does; also raises ValueError for negative numbers.
        Returns the checked rows.
        """
        checked = super()._check_with_sklearn(X)
        numbers = checked.data if hasattr(checked, "nnz") else checked  # of a sparse matrix the stored ones
        check_non_negative(np.nan_to_num(numbers, nan=0.0), f"{type(self).__name__} (input X)")
        return checked

    @model_attribute
    def class_log_prior_(self, model: Model) -> Real:
        """log P(class), one per class."""
        return model.log_prior


class Counting(Discrete):
    """The three classes for columns of counts."""

    @model_attribute
    def feature_count_(self, model: Model) -> Real:
        """The sum of each column in each class (classes × columns)."""
        return _column_sums(model)

    @model_attribute
    def feature_log_prob_(self, model: Model) -> Real:
        """log P(column | class) (classes × columns); for ``ComplementNB``, its weights."""
        (group,) = model.parameters
        assert isinstance(group, BagParameters)
        return np.ascontiguousarray(group.weights.T)


def _column_sums(model: Model) -> Real:
    """Returns the sum of each column in each class (classes × columns), from a model of counts."""
    (group,) = model.parameters
    assert isinstance(group, BagParameters)
    pairs = pairs_of(group.table, group.vocabulary.ids)  # of word and class, where a word stands for a column
    return np.ascontiguousarray(pairs.cells(pairs.occurrences, group.table.n_classes).T)


class MultinomialNB(Counting, sklearn_nb.MultinomialNB):  # type: ignore[misc]
    """scikit-learn's MultinomialNB, computed by Banbury. ``missing="skip"`` treats a missing number as 0.

    ``alpha=0`` is treated as 1e-10, where scikit-learn returns −∞ or NaN.

    >>> from scipy.sparse import csr_array
    >>> import banbury as bb
    >>> clf = bb.MultinomialNB().fit(csr_array([[2, 0], [1, 0], [0, 3]]), ["spam", "spam", "ham"])
    >>> clf.predict_proba([[1, 0]]).round(3).tolist()
    [[0.111, 0.889]]
    >>> clf.partial_fit([[3, 1]], ["ham"]).forget([[3, 1]], ["ham"]).predict_proba([[1, 0]]).round(3).tolist()
    [[0.111, 0.889]]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**sklearn_nb.MultinomialNB._parameter_constraints, **MISSING}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,  # the pseudo-count, or one per column
        force_alpha: bool = True,  # whether a tiny alpha is kept, not raised to 1e-10
        fit_prior: bool = True,  # whether the class prior is learned
        class_prior: Any = None,  # P(class), one per class; None: learned or uniform
        missing: str = "error",  # "skip" or "error" for a missing number
    ) -> None:
        """Stores the parameters as they are; ``fit`` checks them."""
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.missing = missing

    _sums_repeated_entries = True

    def _family(self, alpha: Any) -> Family:
        """Returns the family of all columns. ``alpha``: the pseudo-count, or a tuple with one per column."""
        return Occurrences("multinomial", alpha=alpha, missing=self.missing)  # type: ignore[arg-type]


class ComplementNB(Counting, sklearn_nb.ComplementNB):  # type: ignore[misc]
    """scikit-learn's ComplementNB, computed by Banbury, except that the class prior is used.

    ``fit_prior=False`` leaves the prior out, as scikit-learn always does; so does ``norm=True``, whose weights are not
    probabilities.

    >>> import banbury as bb
    >>> X, y = [[3, 1], [2, 1], [0, 3]], ["spam", "spam", "ham"]
    >>> bb.ComplementNB().fit(X, y).predict_proba([[0, 0]]).round(3).tolist()
    [[0.333, 0.667]]
    >>> bb.ComplementNB(fit_prior=False).fit(X, y).predict_proba([[0, 0]]).round(3).tolist()
    [[0.5, 0.5]]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**sklearn_nb.ComplementNB._parameter_constraints, **MISSING}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,  # the pseudo-count, or one per column
        force_alpha: bool = True,  # whether a tiny alpha is kept, not raised to 1e-10
        fit_prior: bool = True,  # whether the class prior is learned
        class_prior: Any = None,  # P(class), one per class; None: learned or uniform
        norm: bool = False,  # whether weights are normalised
        missing: str = "error",  # "skip" or "error" for a missing number
    ) -> None:
        """Stores the parameters as they are; ``fit`` checks them."""
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior, norm=norm)
        self.missing = missing

    _sums_repeated_entries = True

    def _family(self, alpha: Any) -> Family:
        """Returns the family of all columns. ``alpha``: the pseudo-count, or a tuple with one per column."""
        return Occurrences("complement", alpha=alpha, norm=bool(self.norm), missing=self.missing)  # type: ignore[arg-type]

    def _settings(self, n_classes: int) -> Settings:
        """Returns the settings from the parameters, for ``n_classes`` classes, with equal scores instead of a class
        prior if the parameters leave it out.
        """
        settings = super()._settings(n_classes)
        if self.class_prior is None and (self.norm or not self.fit_prior):
            return replace(settings, log_prior=np.zeros(n_classes))
        return settings

    @model_attribute
    def class_log_prior_(self, model: Model) -> Real:
        """log P(class): the class frequencies, a uniform prior, or the given one."""
        if self.class_prior is not None:
            return model.log_prior
        rows = model.tally.rows.value  # the number of rows of each class
        return log(rows) - np.log(rows.sum()) if self.fit_prior else np.full(len(rows), -np.log(len(rows)))

    @model_attribute
    def feature_all_(self, model: Model) -> Real:
        """The sum of each column."""
        return np.asarray(_column_sums(model).sum(axis=0))


class BernoulliNB(Counting, sklearn_nb.BernoulliNB):  # type: ignore[misc]
    """scikit-learn's BernoulliNB, computed by Banbury.

    ``missing="skip"`` ignores missing numbers. With ``binarize=None``, all numbers must be between 0 and 1.

    >>> import banbury as bb
    >>> clf = bb.BernoulliNB(missing="skip").fit([[1, 0], [1, None], [0, 1]], ["spam", "spam", "ham"])
    >>> clf.predict_proba([[1, 0]]).round(3).tolist()
    [[0.1, 0.9]]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**sklearn_nb.BernoulliNB._parameter_constraints, **MISSING}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,  # the pseudo-count, or one per column
        force_alpha: bool = True,  # whether a tiny alpha is kept, not raised to 1e-10
        binarize: float | None = 0.0,  # numbers above are present; None: all are 0 or 1
        fit_prior: bool = True,  # whether the class prior is learned
        class_prior: Any = None,  # P(class), one per class; None: learned or uniform
        missing: str = "error",  # "skip" or "error" for a missing number
    ) -> None:
        """Stores the parameters as they are; ``fit`` checks them."""
        super().__init__(
            alpha=alpha, force_alpha=force_alpha, binarize=binarize, fit_prior=fit_prior, class_prior=class_prior
        )
        self.missing = missing

    def _family(self, alpha: Any) -> Family:
        """Returns the family of all columns. ``alpha``: the pseudo-count, or a tuple with one per column."""
        threshold = None if self.binarize is None else float(self.binarize)
        if self.missing != "skip":
            return Occurrences("bernoulli", threshold, alpha, missing="error")
        if isinstance(alpha, tuple):
            raise ValueError("alpha must be a single number when missing='skip'.")
        return Bernoulli(alpha=alpha, threshold=threshold)

    def _schema(self, batch: Batch, settings: Settings) -> Schema:
        """Returns the schema of a batch with the family of the settings: a feature per column if missing values are
        skipped, otherwise a block.
        """
        if isinstance(settings.family, Bernoulli):
            return of_one_family(batch, settings.family)
        return super()._schema(batch, settings)

    def _rows(self, X: Any, y: Any, reset: bool) -> Batch:
        """Returns the rows X as a batch, checked. ``y``: their labels, or UNLABELLED; ``reset``: whether these are the
        first rows.

        The first rows keep their numbers: the family compares them with ``binarize`` while counting. Later rows are
        changed if ``binarize`` has been, since the family still compares with the first threshold.
        """
        batch = super()._rows(X, y, reset)
        if self.missing == "skip":
            # Raises an error for infinite numbers.
            self._check_with_sklearn(batch.matrix if isinstance(batch, Sparse) else X)
        if not reset and self.__sklearn_is_fitted__():
            batch = self._under_threshold(batch)
        if self.binarize is None:
            occurrences = batch.occurrences(batch.names)  # a matrix, or row offsets, column numbers and counts
            values = np.asarray(occurrences[2] if isinstance(occurrences, tuple) else occurrences)  # the numbers in X
            if values.size and not (np.nanmin(values) >= 0 and np.nanmax(values) <= 1):
                self._check_with_sklearn(X)
                value = float(values[(values < 0) | (values > 1)].flat[0])
                raise ValueError(
                    f"BernoulliNB(binarize=None) takes numbers from 0 to 1, but X contains {value:g}. Use binarize=0.0 to count "
                    "values above 0 as present."
                )
        return batch

    def _under_threshold(self, batch: Batch) -> Batch:
        """Returns the rows of ``batch`` with numbers such that the threshold with which earlier rows were counted gives
        the same flags as the current ``binarize``.
        """
        settings = self._learner.settings
        # Of the rows counted so far, and of ``binarize``; None for no number.
        counted_threshold = getattr(settings.counted or settings.family, "threshold", None)
        threshold = self.binarize if isinstance(self.binarize, (int, float, np.number)) else None
        if counted_threshold is None or threshold is None or threshold < 0 or counted_threshold == threshold:
            return batch
        if isinstance(batch, Sparse):
            matrix = batch.matrix.astype(np.float64)
            matrix.data = np.where(matrix.data > threshold, counted_threshold + 1.0, 0.0)  # above it, or not
            return Sparse(matrix, batch.names, batch.named)
        array = np.asarray(batch.numbers(batch.names)[0], dtype=np.float64)  # rows × columns
        flag_values = np.where(array > threshold, counted_threshold + 1.0, 0.0)
        return Matrix(np.where(np.isfinite(array), flag_values, array), batch.names, batch.named)

    def _check_with_sklearn(self, X: Any) -> Any:
        """Checks rows with scikit-learn's functions and returns them. Negative numbers are allowed, unlike in the other
        classes for discrete columns, since they are only compared with a threshold.
        """
        return DropIn._check_with_sklearn(self, X)

    @model_attribute
    def feature_count_(self, model: Model) -> Real:
        """The number of rows of each class in which each column is present (classes × columns)."""
        ((_, _, counts),) = model.tally.groups
        if isinstance(counts, Counts):  # cells × classes: no and yes of every column in turn
            return np.ascontiguousarray(counts.cells.value[1::2].T)
        return _column_sums(model)

    @model_attribute
    def feature_log_prob_(self, model: Model) -> Real:
        """log P(column present | class) (classes × columns)."""
        (group,) = model.parameters
        if isinstance(group, BernoulliParameters):
            return np.ascontiguousarray(group.yes.T)
        assert isinstance(group, BagParameters)
        alpha = group.family.alpha_of_columns(model.choice, group.n_words)
        # One for all columns, or one per column.
        pseudo_counts: Any = pseudo_count("bernoulli", model.choice.how, alpha)
        log_probabilities, _ = log_shares(
            self.feature_count_.T,
            self.class_count_,
            pseudo_counts[:, None] if np.ndim(pseudo_counts) else pseudo_counts,
        )
        return np.ascontiguousarray(log_probabilities.T)
