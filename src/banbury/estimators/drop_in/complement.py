"""ComplementNB: how often each column occurs in the rows of all other classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn import naive_bayes as theirs

from banbury.arrays import Real
from banbury.distributions import Occurrences
from banbury.distributions.dirichlet import log
from banbury.distributions.family import Family
from banbury.estimators.drop_in.base import MISSING
from banbury.estimators.drop_in.discrete import Counting
from banbury.estimators.drop_in.state import Settings
from banbury.naive_bayes import Model


class ComplementNB(Counting, theirs.ComplementNB):  # type: ignore[misc]
    """scikit-learn's ComplementNB, counted by Banbury, with the class prior that it learns and does not use.

    ``fit_prior=False`` leaves the prior out, as theirs always does; so does ``norm=True``, whose weights are no probabilities.

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

    def _family(self, alpha: Any) -> Family:
        return Occurrences("complement", alpha=alpha, norm=bool(self.norm), missing=self.missing)  # type: ignore[arg-type]

    def _settings(self, n_classes: int) -> Settings:
        settings = super()._settings(n_classes)
        if self.class_prior is None and (self.norm or not self.fit_prior):
            return replace(settings, log_prior=np.zeros(n_classes))
        return settings

    @property
    def class_log_prior_(self) -> Real:
        """log P(class): of the rows, equal shares, or as given."""

        def shown(model: Model) -> Real:
            if self.class_prior is not None:
                return model.log_prior
            rows = model.tally.rows.value
            return log(rows) - np.log(rows.sum()) if self.fit_prior else np.full(len(rows), -np.log(len(rows)))

        return self._off("class_log_prior_", shown)

    @property
    def feature_all_(self) -> Real:
        """How often each column occurs."""
        return self._off("feature_all_", lambda _: self.feature_count_.sum(axis=0))
