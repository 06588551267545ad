"""Discrete, the base of the four classes that count, and Counting, of the three that count how often each column occurs."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_non_negative

from banbury.arrays import Real
from banbury.distributions.dirichlet import log
from banbury.distributions.family import Family
from banbury.distributions.occurrences import OccurrencesParameters
from banbury.distributions.vocabulary import pairs_of
from banbury.estimators.drop_in.base import DropIn
from banbury.estimators.drop_in.state import Settings
from banbury.naive_bayes import Model


class Discrete(DropIn):
    """The prior of the four classes that count."""

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
                raise ValueError(f"class_prior must have a finite sum above 0. Got {self.class_prior!r} instead.")
            prior = log(shares)
        elif not self.fit_prior:
            prior = np.full(n_classes, -np.log(n_classes))
        alpha = self._alpha()
        # Without pseudo-counts a zero stays zero.
        return Settings(self._family(alpha), "mle" if alpha == 0 else "mean", prior)

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

    @property
    def class_log_prior_(self) -> Real:
        """log P(class)."""
        return self._off("class_log_prior_", lambda model: model.log_prior)


class Counting(Discrete):
    """The three classes that count how often each column occurs."""

    def _occurring(self, model: Model) -> OccurrencesParameters:
        (group,) = model.parameters
        assert isinstance(group, OccurrencesParameters)
        return group

    @property
    def feature_count_(self) -> Real:
        """How often each column occurs in each class, (classes, columns)."""

        def counted(model: Model) -> Real:
            group = self._occurring(model)
            pairs = pairs_of(group.table, group.ids)
            return np.ascontiguousarray(pairs.cells(pairs.occurrences, group.table.n_classes).T)

        return self._off("feature_count_", counted)

    @property
    def feature_log_prob_(self) -> Real:
        """log P(column | class), (classes, columns); of complement its weights."""
        return self._off("feature_log_prob_", lambda model: np.ascontiguousarray(self._occurring(model).weights.T))
