"""The scikit-learn face: NaiveBayesClassifier. X and y live here only."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning, NotFittedError

from banbury import errors
from banbury.naive_bayes import Model, estimate
from banbury.readers import Batch, read
from banbury.tally import Tally, count

Real = NDArray[np.float64]


class NaiveBayesClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Naive Bayes for tables of mixed columns, as scikit-learn estimators are used.

    Strings, booleans and numbers are counted as they come, missing values are skipped, categories and classes may be new
    at any time. ``features`` chooses families ("auto", one for all columns, or a mapping by column), ``how``, ``alpha``,
    ``class_prior`` and ``seed`` are those of ``bb.estimate``, ``missing`` and ``threads`` those of ``bb.count``.

    After fitting: ``classes_``, ``n_features_in_``, ``feature_names_in_`` (if columns have names), ``tally_`` (the sums) and
    ``model_`` (what was derived from them).

    >>> import banbury as bb
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = bb.NaiveBayesClassifier().fit(X, y)
    >>> round(clf.score(X, y), 3)
    0.989
    >>> clf.forget(X[:10], y[:10]).partial_fit(X[:10], y[:10]).tally_ == bb.count(X, target=y, schema=clf.tally_.schema)
    True
    """

    tally_: Tally
    classes_: NDArray[Any]
    _model: Model | None

    def __init__(
        self,
        features: Any = "auto",
        how: str = "mean",
        alpha: float = 1.0,
        class_prior: Any = None,
        missing: str = "skip",
        threads: int | None = None,
        seed: int = 0,
    ) -> None:
        self.features = features
        self.how = how
        self.alpha = alpha
        self.class_prior = class_prior
        self.missing = missing
        self.threads = threads
        self.seed = seed

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NaiveBayesClassifier:
        """Counts the rows and forgets all that was learned before."""
        batch, labels = self._checked(X, y)
        tally = self._count(batch, labels, sample_weight, None)
        self._keep(tally, batch, labels, None)
        self._model = self._estimated()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> NaiveBayesClassifier:
        """Counts more rows. New classes and categories may come at any time; ``classes`` may name some in advance.

        The first call settles the schema; from then on any batches in any order give the tally of all rows at once.
        """
        if not hasattr(self, "tally_"):
            batch, labels = self._checked(X, y)
            tally = self._count(batch, labels, sample_weight, None)
        else:
            batch, labels = self._checked(X, y, known=True)
            tally = self.tally_ + self._count(batch, labels, sample_weight, self.tally_)
        self._keep(tally, batch, labels, classes)
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> NaiveBayesClassifier:
        """Takes rows out again: the twin of ``partial_fit``. Rows that were never learned raise, and change nothing."""
        self._check_fitted()
        batch, labels = self._checked(X, y, known=True)
        tally = self.tally_ - self._count(batch, labels, sample_weight, self.tally_)
        if not tally.classes:
            raise errors.empty_data(None, "forgetting these rows would leave no row at all")
        self._keep(tally, batch, labels, None)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        model, batch = self._ready(X)
        return np.asarray(self._labels_of(model)[model._scored(batch, "class", {})])

    def predict_proba(self, X: Any) -> Real:
        """P(class | row), in the order of ``classes_``."""
        return self._scores(X, "posterior", 0.0)

    def predict_log_proba(self, X: Any) -> Real:
        """log P(class | row)."""
        return self._scores(X, "log_posterior", -np.inf)

    def predict_joint_log_proba(self, X: Any) -> Real:
        """log P(class) + log P(row | class)."""
        return self._scores(X, "log_joint", -np.inf)

    @property
    def model_(self) -> Model:
        """The model of the tally as it stands; made when first asked for."""
        self._check_fitted()
        if self._model is None:
            self._model = self._estimated()
        return self._model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tally_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    # Keeping what was learned

    def _count(self, batch: Batch, labels: NDArray[Any], sample_weight: Any, known: Tally | None) -> Tally:
        weights = _sample_weight(sample_weight, batch.n_rows)
        if known is not None:
            return known.count(batch, labels, weights=weights, threads=self.threads)
        return count(batch, labels, features=self.features, weights=weights, missing=self.missing, threads=self.threads)  # type: ignore[arg-type]

    def _keep(self, tally: Tally, batch: Batch, labels: NDArray[Any], classes: Any) -> None:
        if not tally.classes:
            raise errors.empty_data(None, "every row has a weight of zero or a missing label")
        if not hasattr(self, "tally_") or self.tally_.schema is not tally.schema:
            self.n_features_in_ = len(tally.schema.columns)
            if batch.named and not hasattr(self, "feature_names_in_"):
                self.feature_names_in_ = np.array(tally.schema.columns, dtype=object)
        self.tally_ = tally
        declared = () if classes is None else np.asarray(classes).tolist()
        self._declared_classes: frozenset[Any] = getattr(self, "_declared_classes", frozenset()).union(declared)
        self._dtype = labels.dtype
        self.classes_ = _as_array(tally.classes, self._declared_classes, labels.dtype)
        self._model = None

    def _estimated(self) -> Model:
        return estimate(self.tally_, how=self.how, alpha=self.alpha, class_prior=self.class_prior, seed=self.seed)  # type: ignore[arg-type]

    # Checking what comes in

    def _check_fitted(self) -> None:
        if not hasattr(self, "tally_"):
            name = type(self).__name__
            raise NotFittedError(
                f"This {name} instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator."
            )

    def _checked(self, X: Any, y: Any, known: bool = False) -> tuple[Batch, NDArray[Any]]:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        batch = self._batch(X)
        if batch.n_rows == 0 or not batch.names:
            what, shape = ("sample", (0, len(batch.names))) if batch.n_rows == 0 else ("feature", (batch.n_rows, 0))
            raise ValueError(f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required.")
        if known:
            self._check_width(batch)
        labels = _labels(y)
        if len(labels) != batch.n_rows:
            raise errors.length_mismatch("labels", len(labels), batch.n_rows)
        return batch, labels

    def _batch(self, X: Any) -> Batch:
        batches = list(read(X))
        if len(batches) != 1:
            import pyarrow as pa

            return next(iter(read(pa.table(X)))) if hasattr(X, "__arrow_c_stream__") else _one_batch(batches)
        return batches[0]

    def _check_width(self, batch: Batch) -> None:
        known = hasattr(self, "feature_names_in_")
        if batch.named != known:
            said, was = ("has", "without") if batch.named else ("does not have valid", "with")
            warnings.warn(
                f"X {said} feature names, but {type(self).__name__} was fitted {was} feature names",
                UserWarning,
                stacklevel=5,
            )
        if not (batch.named and known) and len(batch.names) != self.n_features_in_:
            raise errors.wrong_width(len(batch.names), self.n_features_in_, type(self).__name__)

    def _ready(self, X: Any) -> tuple[Model, Batch]:
        model = self.model_
        batch = self._batch(X)
        if batch.n_rows == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape=(0, {len(batch.names)})) while a minimum of 1 is required."
            )
        self._check_width(batch)
        return model, batch

    def _labels_of(self, model: Model) -> NDArray[Any]:
        if len(self.classes_) == len(model.classes):
            return self.classes_
        return _as_array(model.classes, frozenset(), self._dtype)

    def _scores(self, X: Any, want: str, absent: float) -> Real:
        model, batch = self._ready(X)
        scores = model._scored(batch, want, {})
        if len(self.classes_) == len(model.classes):
            return scores
        wide = np.full((len(scores), len(self.classes_)), absent)
        known = set(model.classes)
        wide[:, [c for c, name in enumerate(self.classes_.tolist()) if name in known]] = scores
        return wide


def _one_batch(batches: list[Batch]) -> Batch:
    raise (
        errors.empty_data(None, "it has no batches")
        if not batches
        else errors.bad_setting("X", "several batches", "one table")
    )


def _as_array(classes: tuple[Any, ...], declared: frozenset[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The classes, declared ones included, in order and in the labels' own type."""
    from banbury.sums import in_order

    names = in_order(declared.union(classes)) if declared else classes
    if dtype.kind in "OUST" or len({type(name) for name in names}) > 1:
        return np.array(names, dtype=object if dtype.kind == "O" or len({type(n) for n in names}) > 1 else None)
    return np.array(names, dtype=dtype)


def _labels(y: Any) -> NDArray[Any]:
    """Labels as a 1-D array; scikit-learn's words for what is not."""
    labels = y if type(y) is np.ndarray else np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        text = (
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
        )
        warnings.warn(text + "for example using ravel().", DataConversionWarning, stacklevel=4)
        labels = labels.ravel()
    if labels.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {labels.shape} instead.")
    if labels.dtype.kind == "f" and not np.array_equal(labels, np.rint(labels), equal_nan=True):
        raise ValueError(
            "Unknown label type: continuous. Maybe you are trying to fit a classifier, which expects discrete classes on a "
            "regression target with continuous values."
        )
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError("Input y contains infinity or a value too large for dtype('float64').")
    return labels


def _sample_weight(sample_weight: Any, n_rows: int) -> Any:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        return np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    return weights
