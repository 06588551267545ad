"""BernoulliNB: whether each column occurs."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn import naive_bayes as theirs

from banbury.arrays import Real
from banbury.distributions import Bernoulli, Occurrences
from banbury.distributions.bernoulli import BernoulliParameters
from banbury.distributions.event_models import log_shares, pseudo_count
from banbury.distributions.family import Family
from banbury.distributions.occurrences import OccurrencesParameters
from banbury.estimators.drop_in.base import MISSING, DropIn
from banbury.estimators.drop_in.discrete import Counting
from banbury.estimators.drop_in.state import Settings
from banbury.naive_bayes import Model
from banbury.readers import Batch, Sparse
from banbury.readers.batches import Matrix
from banbury.schema import Schema, of_one_family
from banbury.sums import Counts


class BernoulliNB(Counting, theirs.BernoulliNB):  # type: ignore[misc]
    """scikit-learn's BernoulliNB, counted by Banbury.

    ``missing="skip"``: a missing number is neither yes nor no, and its column says nothing of the row. ``binarize=None`` takes
    numbers from 0 to 1, and none outside.

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
            raise ValueError("alpha must be one number for all columns when missing='skip'.")
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
                    f"BernoulliNB(binarize=None) takes numbers from 0 to 1, and X has {value:g}. Give binarize=0.0 to count "
                    "what is above 0 as present."
                )
        return batch

    def _under_threshold(self, batch: Batch) -> Batch:
        """The rows as the threshold they are counted under has them, where binarize was changed since."""
        family = self._state.counted_under.family
        counted = getattr(family, "threshold", None)
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

    @property
    def feature_count_(self) -> Real:
        """How many rows of each class have each column, (classes, columns)."""

        def counted(model: Model) -> Real:
            ((_, _, counts),) = model.tally.groups
            assert isinstance(counts, Counts)
            return np.ascontiguousarray(counts.cells.value[1::2].T)  # no and yes of every column

        if self.__sklearn_is_fitted__() and isinstance(self._state.settings.family, Bernoulli):
            return self._off("feature_count_", counted)
        return super().feature_count_

    @property
    def feature_log_prob_(self) -> Real:
        """log P(column present | class), (classes, columns)."""

        def shares(model: Model) -> Real:
            (group,) = model.parameters
            if isinstance(group, BernoulliParameters):
                return np.ascontiguousarray(group.yes.T)
            assert isinstance(group, OccurrencesParameters)
            alpha = group.family.pseudo_counts(model.choice, len(group.ids))
            a: Any = pseudo_count(model.choice.how, alpha)
            yes, _ = log_shares(self.feature_count_.T, self.class_count_, a[:, None] if np.ndim(a) else a)
            return np.ascontiguousarray(yes.T)

        return self._off("feature_log_prob_", shares)
