"""Discrete, the base of the four classes that count, and the three that count how often each column occurs, or whether."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn import naive_bayes as theirs
from sklearn.utils.validation import check_non_negative

from banbury.arrays import Real
from banbury.estimators.drop_in.base import MISSING, DropIn, Settings, read_off
from banbury.families import Bernoulli, Occurrences
from banbury.families.bags.event_models import log_shares, pseudo_count
from banbury.families.bags.occurrences import OccurrencesParameters
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
    """The class prior of the four classes for discrete columns."""

    fit_prior: bool
    class_prior: Any
    alpha: Any

    def _settings(self, n_classes: int) -> Settings:
        prior: Real | None = None
        if self.class_prior is not None:
            if len(self.class_prior) != n_classes:
                raise ValueError("Number of priors must match number of classes.")
            shares = np.asarray(self.class_prior, dtype=np.float64)
            if not np.min(shares) >= 0:
                raise ValueError("Priors must be non-negative.")
            if not 0 < shares.sum() < np.inf:
                raise ValueError(f"class_prior must have a finite, positive sum. Got {self.class_prior!r} instead.")
            prior = log(shares)
        elif not self.fit_prior:
            prior = np.full(n_classes, -np.log(n_classes))
        alpha = self._alpha()
        # Without pseudo-counts a zero stays zero.
        return Settings(Choice("mle" if alpha == 0 else "mean"), family=self._family(alpha), log_prior=prior)

    def _family(self, alpha: Any) -> Family | tuple[Family, ...]:
        """How columns are counted, and how that is turned into probabilities."""
        raise NotImplementedError

    def _alpha(self) -> float | tuple[float, ...]:
        """The pseudo-counts as scikit-learn checks them."""
        alpha: Any = self._check_alpha()  # type: ignore[attr-defined]
        return float(alpha) if np.ndim(alpha) == 0 else tuple(np.asarray(alpha, dtype=np.float64).tolist())

    def _refuse(self, X: Any) -> Any:
        checked = super()._refuse(X)
        values = checked.data if hasattr(checked, "nnz") else checked
        check_non_negative(np.nan_to_num(values, nan=0.0), f"{type(self).__name__} (input X)")
        return checked

    @read_off
    def class_log_prior_(self, model: Model) -> Real:
        """log P(class)."""
        return model.log_prior


class Counting(Discrete):
    """The three classes for columns of counts."""

    @read_off
    def feature_count_(self, model: Model) -> Real:
        """The sum of each column in each class (classes × columns)."""
        return _how_often(model)

    @read_off
    def feature_log_prob_(self, model: Model) -> Real:
        """log P(column | class) (classes × columns); for ``ComplementNB``, its weights."""
        (group,) = model.parameters
        assert isinstance(group, OccurrencesParameters)
        return np.ascontiguousarray(group.weights.T)


def _how_often(model: Model) -> Real:
    (group,) = model.parameters
    assert isinstance(group, OccurrencesParameters)
    pairs = pairs_of(group.table, group.vocabulary.ids)
    return np.ascontiguousarray(pairs.cells(pairs.occurrences, group.table.n_classes).T)


class MultinomialNB(Counting, theirs.MultinomialNB):  # type: ignore[misc]
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {**theirs.MultinomialNB._parameter_constraints, **MISSING}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        missing: str = "error",
    ) -> None:
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.missing = missing

    _adds_up = True

    def _family(self, alpha: Any) -> Family:
        return Occurrences("multinomial", alpha=alpha, missing=self.missing)  # type: ignore[arg-type]


class ComplementNB(Counting, theirs.ComplementNB):  # type: ignore[misc]
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {**theirs.ComplementNB._parameter_constraints, **MISSING}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        norm: bool = False,
        missing: str = "error",
    ) -> None:
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior, norm=norm)
        self.missing = missing

    _adds_up = True

    def _family(self, alpha: Any) -> Family:
        return Occurrences("complement", alpha=alpha, norm=bool(self.norm), missing=self.missing)  # type: ignore[arg-type]

    def _settings(self, n_classes: int) -> Settings:
        settings = super()._settings(n_classes)
        if self.class_prior is None and (self.norm or not self.fit_prior):
            return replace(settings, log_prior=np.zeros(n_classes))
        return settings

    @read_off
    def class_log_prior_(self, model: Model) -> Real:
        """log P(class): the class frequencies, a uniform prior, or the given one."""
        if self.class_prior is not None:
            return model.log_prior
        rows = model.tally.rows.value
        return log(rows) - np.log(rows.sum()) if self.fit_prior else np.full(len(rows), -np.log(len(rows)))

    @read_off
    def feature_all_(self, model: Model) -> Real:
        """The sum of each column."""
        return np.asarray(_how_often(model).sum(axis=0))


class BernoulliNB(Counting, theirs.BernoulliNB):  # type: ignore[misc]
    """scikit-learn's BernoulliNB, computed by Banbury.

    ``missing="skip"`` ignores missing numbers. With ``binarize=None``, all numbers must be between 0 and 1.

    >>> import banbury as bb
    >>> clf = bb.BernoulliNB(missing="skip").fit([[1, 0], [1, None], [0, 1]], ["spam", "spam", "ham"])
    >>> clf.predict_proba([[1, 0]]).round(3).tolist()
    [[0.1, 0.9]]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**theirs.BernoulliNB._parameter_constraints, **MISSING}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
        missing: str = "error",
    ) -> None:
        super().__init__(
            alpha=alpha, force_alpha=force_alpha, binarize=binarize, fit_prior=fit_prior, class_prior=class_prior
        )
        self.missing = missing

    def _family(self, alpha: Any) -> Family:
        threshold = None if self.binarize is None else float(self.binarize)
        if self.missing != "skip":
            return Occurrences("bernoulli", threshold, alpha, missing="error")
        if isinstance(alpha, tuple):
            raise ValueError("alpha must be a single number when missing='skip'.")
        return Bernoulli(alpha=alpha, threshold=threshold)

    def _schema(self, batch: Batch, settings: Settings) -> Schema:
        if isinstance(settings.family, Bernoulli):
            return of_one_family(batch, settings.family)
        return super()._schema(batch, settings)

    def _rows(self, X: Any, y: Any, reset: bool) -> Batch:
        batch = super()._rows(X, y, reset)
        if self.missing == "skip":
            self._refuse(batch.matrix if isinstance(batch, Sparse) else X)  # infinity is no number
        if not reset and self.__sklearn_is_fitted__():
            batch = self._under_threshold(batch)
        if self.binarize is None:
            cells = batch.occurrences(batch.names)
            values = np.asarray(cells[2] if isinstance(cells, tuple) else cells)
            if values.size and not (np.nanmin(values) >= 0 and np.nanmax(values) <= 1):
                self._refuse(X)
                value = float(values[(values < 0) | (values > 1)].flat[0])
                raise ValueError(
                    f"BernoulliNB(binarize=None) takes numbers from 0 to 1, but X contains {value:g}. Use binarize=0.0 to count "
                    "values above 0 as present."
                )
        return batch

    def _under_threshold(self, batch: Batch) -> Batch:
        """The rows as the threshold they are counted under has them, where binarize was changed since."""
        settings = self._learner.settings
        counted = getattr(settings.counted or settings.family, "threshold", None)
        now = self.binarize if isinstance(self.binarize, (int, float, np.number)) else None
        if counted is None or now is None or now < 0 or counted == now:
            return batch
        if isinstance(batch, Sparse):
            matrix = batch.matrix.astype(np.float64)
            matrix.data = np.where(matrix.data > now, counted + 1.0, 0.0)
            return Sparse(matrix, batch.names, batch.named)
        array = np.asarray(batch.numbers(batch.names)[0], dtype=np.float64)
        present = np.where(array > now, counted + 1.0, 0.0)
        return Matrix(np.where(np.isfinite(array), present, array), batch.names, batch.named)

    def _refuse(self, X: Any) -> Any:
        return DropIn._refuse(self, X)  # what is below 0 is no error here

    @read_off
    def feature_count_(self, model: Model) -> Real:
        """The number of rows of each class in which each column is present (classes × columns)."""
        ((_, _, counts),) = model.tally.groups
        if isinstance(counts, Counts):  # no and yes of every column
            return np.ascontiguousarray(counts.cells.value[1::2].T)
        return _how_often(model)

    @read_off
    def feature_log_prob_(self, model: Model) -> Real:
        """log P(column present | class) (classes × columns)."""
        (group,) = model.parameters
        if isinstance(group, BernoulliParameters):
            return np.ascontiguousarray(group.yes.T)
        assert isinstance(group, OccurrencesParameters)
        alpha = group.family.column_counts(model.choice, group.n_words)
        a: Any = pseudo_count("bernoulli", model.choice.how, alpha)
        yes, _ = log_shares(self.feature_count_.T, self.class_count_, a[:, None] if np.ndim(a) else a)
        return np.ascontiguousarray(yes.T)
