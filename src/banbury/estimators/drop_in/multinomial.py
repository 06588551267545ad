"""MultinomialNB: how often each column occurs."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn import naive_bayes as theirs

from banbury.distributions import Occurrences
from banbury.distributions.family import Family
from banbury.estimators.drop_in.base import MISSING
from banbury.estimators.drop_in.discrete import Counting


class MultinomialNB(Counting, theirs.MultinomialNB):  # type: ignore[misc]
    """scikit-learn's MultinomialNB, counted by Banbury; ``missing="skip"`` takes a missing number for none.

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

    def _family(self, alpha: Any) -> Family:
        return Occurrences("multinomial", alpha=alpha, missing=self.missing)  # type: ignore[arg-type]
