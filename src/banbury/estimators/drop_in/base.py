"""DropIn, the base of the five classes: learning and forgetting rows, checking what comes in, answering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import _fit_context, clone
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from banbury import _core, errors
from banbury.arrays import Real
from banbury.estimators.guard import Guarded, in_one_step
from banbury.families.family import Family
from banbury.families.keys import dense_numbers
from banbury.learner import Learner, ModelSettings
from banbury.model.explain import Explanation, Informative
from banbury.model.naive_bayes import Model, estimate
from banbury.reading import Batch, Codes, Sparse, encode, n_threads, read
from banbury.reading.batches import Matrix, positions
from banbury.reading.tables import has_twins
from banbury.sums import some
from banbury.tally.schema import Schema, block
from banbury.tally.tally import Tally, count_rows
from banbury.threads import taken

LabelArray = NDArray[Any]
T = TypeVar("T")

FEW = 4096  # labels that NumPy numbers sooner than the kernel
UNLABELLED = ()  # labels of rows that are asked about
MISSING = {"missing": [StrOptions({"error", "skip"})]}
SPARSE = ("csr", "csc", "coo")  # formats that are read as they are


@dataclass(frozen=True, eq=False)
class Settings(ModelSettings):
    """The parameters at the time when rows were last learned."""

    family: Any = None  # of all columns, or a tuple with one for each
    log_prior: Real | None = None  # of the classes; None: by their rows
    counted: Any = None  # the family, or families, that the sums were counted under; None: the same

    def families(self, n_features: int) -> tuple[Family, ...]:
        return self.family if isinstance(self.family, tuple) else (self.family,) * n_features

    def after(self, before: Settings) -> Settings:
        """Returns these settings for sums that were counted under earlier ones. Raises an error if they need other
        sums.
        """
        counted = before.family if before.counted is None else before.counted
        first, second = (family[0] if isinstance(family, tuple) else family for family in (counted, self.family))
        if type(first) is not type(second):
            raise ValueError(
                "missing was changed after the first rows were learned, which needs different sums. Call fit with all rows."
            )
        return self if self.family == counted else replace(self, counted=counted)

    def tally(self, tally: Tally) -> Tally:
        """Returns the sums to estimate from under these settings."""
        if self.counted is None:
            return tally
        schema = tally.schema
        pairs = zip(schema.features, self.families(len(schema.features)), strict=True)
        features = tuple(feature._replace(family=family) for feature, family in pairs)
        return replace(tally, schema=replace(schema, features=features))

    def model(self, tally: Tally) -> Model:
        return self._with_prior(super().model(self.tally(tally)))

    def follow(self, model: Model, tally: Tally) -> Model:
        return self._with_prior(super().follow(model, self.tally(tally)))

    def _with_prior(self, model: Model) -> Model:
        return model if self.log_prior is None else replace(model, log_prior=self.log_prior)

    def derives_like(self, other: Settings) -> bool:
        return bool(self.family == other.family)


def read_off(make: Callable[[Any, Model], T]) -> T:
    """An attribute that is computed from the model on first access. It does not exist before fitting."""
    name = make.__name__

    def read(self: DropIn) -> Any:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with self._lock:
            model = self._learner.current
            notes = self._learner.notes
            if name not in notes:
                notes[name] = make(self, model)
            return notes[name]

    return cast(T, property(read, doc=make.__doc__))


class DropIn(Guarded):
    """The base of the five drop-in classes. Each says how its columns are counted and computes its attributes from the
    model.
    """

    classes_: LabelArray
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    missing: str
    _float_dtype: Any = np.float64  # of what is read off the model

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """scikit-learn reads them off the signature each time, which takes a tenth of a small fit."""
        return super()._get_param_names()  # type: ignore[misc, no-any-return]

    # What each class says

    def _settings(self, n_classes: int) -> Settings:
        """The parameters, checked."""
        raise NotImplementedError

    def _schema(self, batch: Batch, settings: Settings) -> Schema:
        """What is counted: a block of all columns."""
        assert isinstance(settings.family, Family)
        return Schema((block(batch.names, settings.family),), None, batch.names, batch.named)

    def _refuse(self, X: Any) -> Any:
        """Raises for numbers that cannot be learned, in scikit-learn's words; else rows as it checks them."""
        finite = "allow-nan" if self.missing == "skip" else True
        return check_array(X, accept_sparse=True, ensure_all_finite=finite, estimator=self, input_name="X")

    # Learning

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @in_one_step
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Learns from the rows and forgets everything learned before."""
        batch = self._rows(X, y, reset=True)
        codes, classes = self._labels(y, batch.n_rows)
        weights = self._weights(sample_weight, batch)
        weightless = [] if weights is None else np.bincount(codes.codes, weights, len(classes)) == 0
        named = classes if self._has_class_prior else classes[weightless]
        self._begin(X, batch, codes, len(classes), named, weights)
        _ = self._learner.current
        self.classes_ = classes

    def _begin(self, X: Any, batch: Batch, codes: Codes, n_classes: int, named: LabelArray, weights: Any) -> None:
        """Learns from the first rows; classes that were named stay, with rows or without."""
        settings = self._settings(n_classes)
        schema = self._schema(batch, settings)
        self._float_dtype = self._float_dtype_of(batch)
        declared = tuple(named.tolist())
        begin = partial(Learner, declared=declared)
        self._learner = self._change(begin, schema, X, batch, codes, weights, settings)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @in_one_step
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> None:
        """Learns from more rows. The first call must name all ``classes``.

        Batches in any order give the same result as ``fit`` on all rows. The model is updated when it is next used.
        """
        first = not self.__sklearn_is_fitted__()
        all_classes = self._check_classes(classes, None if first else self.classes_)
        batch = self._rows(X, y, reset=first)
        codes, batch_classes = self._labels(y, batch.n_rows)
        self._refuse_unknown(batch_classes, all_classes)
        weights = self._weights(sample_weight, batch)
        if first:
            self._begin(X, batch, codes, len(all_classes), all_classes, weights)
            self.classes_ = all_classes
            return
        learner = self._learner if classes is None else self._learner.declare(all_classes.tolist())
        settings = self._settings(len(all_classes)).after(learner.settings)
        self._learner = self._change(learner.learn, learner.schema, X, batch, codes, weights, settings)

    @in_one_step
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Removes rows that were learned, exactly.

        If it shows that the rows were never learned, an error is raised and nothing changes. A class disappears with
        its last row, unless ``classes`` of ``partial_fit`` or the class prior names it.
        """
        learner = self._learner_of_fit()
        batch = self._rows(X, y, reset=False)
        codes, batch_classes = self._labels(y, batch.n_rows)
        self._refuse_unknown(batch_classes, self.classes_)
        weights = self._weights(sample_weight, batch)
        learner = self._change(learner.forget, learner.schema, X, batch, codes, weights)
        settings = learner.settings
        still = set(learner.classes)
        if len(still) < len(self.classes_):
            self.classes_ = self.classes_[[name in still for name in self.classes_.tolist()]]
            if settings.log_prior is not None:
                log_prior = self._settings(len(still)).log_prior
                learner = learner.under(replace(settings, log_prior=log_prior))
        self._learner = learner

    @property
    def _has_class_prior(self) -> bool:
        """Whether the user gave a share for each class."""
        return any(getattr(self, name, None) is not None for name in ("class_prior", "priors"))

    def validation(self, X: Any, y: Any) -> tuple[Batch, dict[str, Any]]:
        """Returns the rows and settings with which ``bb.cross_validate`` counts and estimates as this class does."""
        other = clone(self)
        other._validate_params()
        batch = other._rows(X, y, reset=True)
        if self.missing == "error" and (not isinstance(batch, Matrix) or batch.dtype.kind == "f"):
            other._refuse(batch.matrix if isinstance(batch, Sparse) else X)
        _, classes = other._labels(y, batch.n_rows)
        settings = other._settings(len(classes))
        prior = None if settings.log_prior is None else shares_of(settings.log_prior)
        one = isinstance(settings.family, Family)
        features = settings.family if one else dict(zip(batch.names, settings.families(0), strict=True))
        return batch, {"features": features, "how": settings.choice.how, "class_prior": prior}

    def _change(
        self,
        change: Callable[..., Learner],
        schema: Schema,
        X: Any,
        batch: Batch,
        labels: Codes,
        weights: Any,
        settings: Settings | None = None,
    ) -> Learner:
        """Learns or forgets rows; numbers that cannot be counted raise in scikit-learn's words."""
        try:
            part = count_rows(batch, schema, labels, weights, n_threads(None))
            self._check_sums(part, X)
            return change(part, settings)
        except errors.BadValue:
            self._refuse(X)
            raise

    def _check_sums(self, tally: Tally, X: Any) -> None:
        """Raises where the sums show that a number was missing and passed over."""

    def _float_dtype_of(self, batch: Batch) -> Any:
        return np.float64

    # Checking what comes in

    @property
    def _dtype(self) -> Any:
        return "numeric"

    _sparse = True  # whether sparse matrices are taken
    _adds_up = False  # whether a column that a sparse row has twice is scored like the sum of both

    def _plain(self, X: Any) -> bool:
        """Whether rows are an array that needs no conversion: then the kernels check it while they read it."""
        return type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub" and X.dtype.itemsize <= 8

    def _rows(self, X: Any, y: Any, reset: bool) -> Batch:
        """The rows as a batch, checked as scikit-learn does but for what the kernels see for themselves."""
        if y is None:
            validate_data(self, X, y, reset=reset)  # it says that y is needed
        if (self._plain(X) or (self._sparse and _is_plain_sparse(X))) and X.shape[0] and X.shape[1]:
            if reset:
                self.__dict__.pop("feature_names_in_", None)
                self.n_features_in_ = X.shape[1]
            if X.shape[1] == self.n_features_in_ and "feature_names_in_" not in self.__dict__:
                if isinstance(X, np.ndarray):
                    return Matrix(X, positions(X.shape[1]), False)
                if not (self._adds_up and y is UNLABELLED) and has_twins(X):
                    X = X.copy()
                    X.sum_duplicates()
                return Sparse(X, positions(X.shape[1]), False)
        formats: Any = SPARSE if self._sparse else False
        checks = {"accept_sparse": formats, "ensure_all_finite": False, "dtype": self._dtype}
        return self._batch(validate_data(self, X, reset=reset, **checks))

    def _batch(self, checked: Any) -> Batch:
        named = "feature_names_in_" in self.__dict__
        names = tuple(self.feature_names_in_.tolist()) if named else positions(checked.shape[1])
        if isinstance(checked, np.ndarray):
            return Matrix(checked if checked.dtype.kind in "fiub" else checked.astype(np.float64), names, named)
        [batch] = read(checked, columns=names if named else None)
        return batch

    def _labels(self, y: Any, n_rows: int) -> tuple[Codes, LabelArray]:
        """The number of each row's label among those that occur, and these, in order."""
        numbers, classes = self._number_labels(y, n_rows)
        return Codes(numbers, 0, classes.tolist()), classes

    def _number_labels(self, y: Any, n_rows: int) -> tuple[NDArray[np.int32], LabelArray]:
        labels = y if type(y) is np.ndarray and y.ndim == 1 else column_or_1d(y, warn=True)
        if len(labels) != n_rows:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[n_rows, len(labels)]}")
        if labels.dtype.kind in "fcO":
            assert_all_finite(labels, input_name="y", estimator_name=type(self).__name__)
            check_classification_targets(labels)
        if labels.dtype.kind in "mM" and np.isnat(labels).any():
            raise ValueError("Input y contains NaT.")
        place: Any = slice(None)
        if labels.dtype.kind in "iuU" and labels.dtype != np.uint64 and len(labels) > FEW:
            threads = n_threads(None)
            place, names = dense_numbers(encode(labels, threads), threads)
            used = some(_core.count_classes(place, len(names), None, threads))
            labels = np.array(names, dtype=labels.dtype)[used]
            place = place if used.all() else (np.cumsum(used) - 1)[place]
        classes, numbers = np.unique(labels, return_inverse=True)
        if classes.dtype.kind in "OU":
            classes = np.array(classes.tolist())  # texts as wide as the longest
        return numbers.reshape(-1).astype(np.int32)[place], classes

    def _check_classes(self, classes: Any, earlier: LabelArray | None) -> LabelArray:
        if earlier is None:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            return np.asarray(unique_labels(classes))
        same = classes is None or (len(classes) == len(earlier) and np.array_equal(earlier, unique_labels(classes)))
        if not same:
            raise ValueError(f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {earlier!r}")
        return earlier

    def _refuse_unknown(self, batch_classes: LabelArray, all_classes: LabelArray) -> None:
        inside = np.isin(batch_classes, all_classes)
        if not inside.all():
            raise ValueError(
                f"The target label(s) {batch_classes[~inside]} in y do not exist in the initial classes {all_classes}"
            )

    def _weights(self, sample_weight: Any, batch: Batch) -> Real | None:
        if sample_weight is None:
            return None
        weights = _check_sample_weight(sample_weight, np.broadcast_to(0.0, (batch.n_rows, 1)), dtype=np.float64)
        if weights.size and weights.min() < 0:
            row = int(np.argmin(weights))
            where = f"data passed to {type(self).__name__} (sample_weight)"
            raise ValueError(f"Negative values in {where}: row {row} weighs {weights[row]:g}.")
        return np.asarray(weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = self._sparse
        tags.input_tags.allow_nan = self.missing == "skip"
        return tags

    # Answering

    def predict(self, X: Any) -> LabelArray:
        """Returns the most probable class of each row."""
        with self._lock:
            best = self._score_rows(X, "class")
            return taken(self.classes_, best)

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Returns P(class | row) in the order of ``classes_``."""
        return self._score_rows(X, "posterior")

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Returns log P(class | row)."""
        return self._score_rows(X, "log_posterior")

    def predict_joint_log_proba(self, X: Any) -> NDArray[Any]:
        """Returns log P(class) + log P(row | class)."""
        return self._score_rows(X, "log_joint")

    def _score_rows(self, X: Any, want: str) -> NDArray[Any]:
        with self._lock:
            learner = self._learner_of_fit()
            batch = self._rows(X, UNLABELLED, reset=False)
            return self._score(learner.current, batch, X, want)

    def _score(self, model: Model, batch: Batch, X: Any, want: str) -> NDArray[Any]:
        try:
            parts = [part for group in model.parameters for part in group.parts(batch)]
            scores, impossible = _core.score(batch.n_rows, model.log_prior, parts, want, n_threads(None))
        except (_core.BadValue, errors.BadValue):
            self._refuse(X)
            raise
        if impossible and want != "log_joint":
            errors.warn(errors.all_impossible(impossible, "alpha=0", "alpha above 0"))
        return scores

    # What was learned

    def __sklearn_is_fitted__(self) -> bool:
        return "_learner" in self.__dict__

    def _learner_of_fit(self) -> Learner:
        check_is_fitted(self)
        return self._learner

    @read_off
    def tally_(self, model: Model) -> Tally:
        """The tally of all rows learned so far."""
        return self._learner.settings.tally(self._learner.tally)  # type: ignore[no-any-return]

    @read_off
    def model_(self, model: Model) -> Model:
        """The current model as a ``bb.Model``, which can be explained, saved and compared."""
        return estimate(self.tally_, how=model.choice.how, class_prior=shares_of(model.log_prior))

    def explain(self, row: Any, against: Any = None, *, held_out: bool = False, label: Any = None) -> Explanation:
        """Explains why a row gets its class: the weight of evidence of every column, in decibans.

        ``held_out`` explains a row of the training data, with the class ``label``, as if it had not been learned; the
        class prior does not change. See ``Model.explain``.
        """
        return self.model_.explain(row, against, held_out=held_out, label=label)

    def informative(self, n: int = 10, classes: Any = None) -> Informative:
        """Returns the ``n`` values that best tell each class from the others. See ``Model.informative``."""
        return self.model_.informative(n, classes)

    @read_off
    def class_count_(self, model: Model) -> NDArray[Any]:
        """The number of rows of each class, or their weight."""
        return self._sent(model.tally.rows.value)  # type: ignore[no-any-return]

    def _sent(self, array: Real) -> Any:
        """Numbers, in the type of the rows and where they live."""
        return array.astype(self._float_dtype, copy=False)


def shares_of(log_prior: Real) -> list[float]:
    """Returns the probabilities of the classes."""
    shares = np.exp(log_prior)
    return (shares / shares.sum()).tolist()  # type: ignore[no-any-return]


def _is_plain_sparse(X: Any) -> bool:
    """Whether rows are a sparse matrix that the kernels read as it is."""
    if type(X) not in (csr_matrix, csr_array) or X.ndim != 2:
        return False
    return X.dtype.kind in "fiu" and X.dtype.itemsize in (4, 8) and bool(X.dtype.isnative)
