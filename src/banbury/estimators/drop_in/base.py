"""DropIn, the base of the five drop-in classes: learns and forgets rows, checks its input, and predicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import _fit_context, clone
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from banbury import _core, errors
from banbury.arrays import Real
from banbury.estimators.guard import Guarded, in_one_step
from banbury.families.family import Family, Features
from banbury.families.keys import number_values
from banbury.learner import Learner, ModelSettings
from banbury.model.explain import Explanation, Informative
from banbury.model.naive_bayes import Model, estimate
from banbury.reading import Batch, Codes, Sparse, encode, n_threads, read
from banbury.reading.batches import Matrix, number_names
from banbury.reading.tables import has_twins
from banbury.sums import is_nonzero
from banbury.tally.schema import Schema, block
from banbury.tally.tally import Tally, count_rows
from banbury.threads import look_up

LabelArray = NDArray[Any]
T = TypeVar("T")

FEW_LABELS = 4096  # with at most so many labels, NumPy numbers them faster than the kernel
UNLABELLED = ()  # stands for the labels of rows to predict
MISSING = {"missing": [StrOptions({"error", "skip"})]}
SPARSE = ("csr", "csc", "coo")  # formats that are read without conversion


@dataclass(frozen=True, eq=False)
class Settings(ModelSettings):
    """The parameters when rows were last learned. ``family``: of all columns, or a tuple with one per column;
    ``log_prior``: None for class frequencies.
    """

    family: Any = None
    log_prior: Real | None = None
    counted: Any = None  # the family or families with which rows were counted, if they differ

    def families(self, n_features: int) -> tuple[Family, ...]:
        """Returns the family of each of the ``n_features`` columns, from the one of all columns or the tuple."""
        return self.family if isinstance(self.family, tuple) else (self.family,) * n_features

    def after(self, before: Settings) -> Settings:
        """Returns these settings for sums that were counted under the settings ``before``. Raises an error if they need
        other sums.
        """
        counted = before.family if before.counted is None else before.counted  # with which rows were counted
        counted_family, current_family = (  # of the first column, which stands for all
            family[0] if isinstance(family, tuple) else family for family in (counted, self.family)
        )
        if type(counted_family) is not type(current_family):
            raise ValueError(
                "missing was changed after the first rows were learned, which needs different sums. Call fit with all rows."
            )
        return self if self.family == counted else replace(self, counted=counted)

    def tally(self, tally: Tally) -> Tally:
        """Returns the tally with the families of these settings, from which parameters are estimated."""
        if self.counted is None:
            return tally
        schema = tally.schema
        # Of a feature and its family.
        pairs = zip(schema.features, self.families(len(schema.features)), strict=True)
        features = Features.of(feature._replace(family=family) for feature, family in pairs)
        return replace(tally, schema=replace(schema, features=features))

    def model(self, tally: Tally) -> Model:
        """Returns the model of a tally under these settings."""
        return self._with_prior(super().model(self.tally(tally)))

    def follow(self, model: Model, tally: Tally) -> Model:
        """Returns the model of a tally under these settings, made by updating ``model``, that of an earlier tally,
        which must not be used any more.
        """
        return self._with_prior(super().follow(model, self.tally(tally)))

    def _with_prior(self, model: Model) -> Model:
        """Returns the model with the class prior of these settings (``log_prior``, one per class), if they have one."""
        return model if self.log_prior is None else replace(model, log_prior=self.log_prior)

    def derives_like(self, other: Settings) -> bool:
        """Whether models of these settings and of ``other`` have the same parameters."""
        return bool(self.family == other.family)


def model_attribute(compute: Callable[[Any, Model], T]) -> T:
    """Makes a property of a fitted estimator from ``compute``, a function of the estimator and its model. It is
    computed on first access and does not exist before fitting.
    """
    name = compute.__name__  # of the attribute

    def get(self: DropIn) -> Any:
        """Returns the attribute, computed once per state of the learner."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with self._lock:
            model = self._learner.current
            cache = self._learner.notes  # attributes by name, of this state of the learner
            if name not in cache:
                cache[name] = compute(self, model)
            return cache[name]

    return cast(T, property(get, doc=compute.__doc__))


class CheckedRows(NamedTuple):
    """Rows with their labels. ``X`` are the rows as the user gave them, and ``batch`` the same rows, checked."""

    X: Any
    batch: Batch
    codes: Codes  # the label of each row
    classes: LabelArray  # those that occur, sorted
    weights: Real | None


class DropIn(Guarded):
    """The base of the five drop-in classes. Each says how its columns are counted and computes its attributes from the
    model.
    """

    classes_: LabelArray
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    missing: str
    _float_dtype: Any = np.float64  # the type of fitted attributes

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Returns the names of the parameters, cached: scikit-learn reads them off the signature each time, which takes
        a tenth of a small fit.
        """
        return super()._get_param_names()  # type: ignore[misc, no-any-return]

    # What subclasses define

    def _settings(self, n_classes: int) -> Settings:
        """Returns the settings from the parameters, for ``n_classes`` classes. Raises an error for invalid ones."""
        raise NotImplementedError

    def _schema(self, batch: Batch, settings: Settings) -> Schema:
        """Returns the schema of a batch: a block of all columns, with the family of the settings."""
        assert isinstance(settings.family, Family)
        return Schema(
            Features.of([block(batch.names, settings.family)]), target=None, columns=batch.names, named=batch.named
        )

    def _check_with_sklearn(self, X: Any) -> Any:
        """Checks rows with scikit-learn's functions, which raise an error for numbers that cannot be learned; returns
        the checked rows.
        """
        allowed_values = "allow-nan" if self.missing == "skip" else True
        return check_array(X, accept_sparse=True, ensure_all_finite=allowed_values, estimator=self, input_name="X")

    # Learning

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @in_one_step
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Learns from the rows and forgets everything learned before."""
        rows = self._read(X, y, sample_weight, reset=True)  # checked, with labels and weights
        classes = rows.classes  # that occur, sorted
        # For each class, whether it has only rows of weight 0.
        weightless = [] if rows.weights is None else np.bincount(rows.codes.codes, rows.weights, len(classes)) == 0
        declared = classes if self._has_class_prior else classes[weightless]  # which exist even without rows
        self._begin(rows, len(classes), declared)
        _ = self._learner.current  # derives the model, which may raise an error
        self.classes_ = classes

    def _begin(self, rows: CheckedRows, n_classes: int, declared_classes: LabelArray) -> None:
        """Learns from the first rows and stores the learner. ``n_classes``: the number of all classes;
        ``declared_classes``: those that exist even without rows.
        """
        settings = self._settings(n_classes)
        schema = self._schema(rows.batch, settings)
        self._float_dtype = self._float_dtype_of(rows.batch)
        make_learner = partial(Learner, declared=tuple(declared_classes.tolist()))
        self._learner = self._change(make_learner, schema, rows, settings)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @in_one_step
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> None:
        """Learns from more rows. The first call must name all ``classes``.

        Batches in any order give the same result as ``fit`` on all rows. The model is updated when it is next used.
        """
        is_first = not self.__sklearn_is_fitted__()  # whether these are the first rows
        all_classes = self._check_classes(classes, None if is_first else self.classes_)
        rows = self._read(X, y, sample_weight, is_first, all_classes)
        if is_first:
            self._begin(rows, len(all_classes), all_classes)
            self.classes_ = all_classes
            return
        learner = self._learner if classes is None else self._learner.declare(all_classes.tolist())
        settings = self._settings(len(all_classes)).after(learner.settings)
        self._learner = self._change(learner.learn, learner.schema, rows, settings)

    @in_one_step
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Removes rows that were learned, exactly.

        If it shows that the rows were never learned, an error is raised and nothing changes. A class disappears with
        its last row, unless ``classes`` of ``partial_fit`` or the class prior names it.
        """
        learner = self._learner_of_fit()
        rows = self._read(X, y, sample_weight, reset=False, all_classes=self.classes_)  # checked, with labels
        learner = self._change(learner.forget, learner.schema, rows)
        settings = learner.settings
        remaining_classes = set(learner.classes)
        if len(remaining_classes) < len(self.classes_):
            self.classes_ = self.classes_[[name in remaining_classes for name in self.classes_.tolist()]]
            if settings.log_prior is not None:  # it has a class prior, one number per class
                log_prior = self._settings(len(remaining_classes)).log_prior
                learner = learner.under(replace(settings, log_prior=log_prior))
        self._learner = learner

    @property
    def _has_class_prior(self) -> bool:
        """Whether the user gave a share for each class."""
        return any(getattr(self, name, None) is not None for name in ("class_prior", "priors"))

    def _rows_and_settings(self, X: Any, y: Any) -> tuple[Batch, dict[str, Any]]:
        """Returns the rows X as a batch, and the settings by name, with which ``bb.cross_validate`` counts and
        estimates as this class does. A copy does the work, so that nothing changes.
        """
        copy = clone(self)
        copy._validate_params()
        batch = copy._rows(X, y, reset=True)
        if self.missing == "error" and (not isinstance(batch, Matrix) or batch.dtype.kind == "f"):
            copy._check_with_sklearn(batch.matrix if isinstance(batch, Sparse) else X)
        _, classes = copy._labels(y, batch.n_rows)
        settings = copy._settings(len(classes))
        prior = None if settings.log_prior is None else shares_of(settings.log_prior)  # P(class), one per class
        has_one_family = isinstance(settings.family, Family)
        features = (  # the family of all columns, or families by column
            settings.family if has_one_family else dict(zip(batch.names, settings.families(n_features=0), strict=True))
        )
        return batch, {"features": features, "how": settings.choice.how, "class_prior": prior}

    def _change(
        self,
        change: Callable[..., Learner],
        schema: Schema,
        rows: CheckedRows,
        settings: Settings | None = None,
    ) -> Learner:
        """Returns the learner after learning or forgetting rows with ``change`` (a function of their tally and the
        settings). Numbers that cannot be counted raise scikit-learn's errors. ``schema``: under which rows are counted;
        ``settings``: None if they stay the same.
        """
        try:
            tally = count_rows(rows.batch, schema, rows.codes, rows.weights, n_threads(None))
            self._check_sums(tally, rows.X)
            return change(tally, settings)
        except errors.BadValue:
            self._check_with_sklearn(rows.X)
            raise

    def _check_sums(self, tally: Tally, X: Any) -> None:
        """Raises an error if the tally shows that a missing number was skipped in the rows X. Does nothing here."""

    def _float_dtype_of(self, batch: Batch) -> Any:
        """Returns the type of fitted attributes for a batch of the first rows: float64 here."""
        return np.float64

    # Checking what comes in

    def _read(
        self, X: Any, y: Any, sample_weight: Any, reset: bool, all_classes: LabelArray | None = None
    ) -> CheckedRows:
        """Checks and reads rows, labels and weights. ``reset``: whether these are the first rows; ``all_classes``: the
        classes named on the first call, or None if any class may occur. Raises ValueError for another class.
        """
        batch = self._rows(X, y, reset)
        codes, classes = self._labels(y, batch.n_rows)  # the class of each row, and the classes that occur
        if all_classes is not None and len(unknown_classes := classes[~np.isin(classes, all_classes)]):
            raise ValueError(
                f"The target label(s) {unknown_classes} in y do not exist in the initial classes {all_classes}"
            )
        return CheckedRows(X, batch, codes, classes, self._weights(sample_weight, batch))

    @property
    def _accepted_dtype(self) -> Any:
        """The type to which scikit-learn converts rows."""
        return "numeric"

    _sparse = True  # whether sparse matrices are accepted
    _sums_repeated_entries = False  # whether two entries for a cell of a sparse matrix are scored like their sum

    def _is_plain(self, X: Any) -> bool:
        """Whether the rows are an array that needs no conversion, so that the kernels check it while reading."""
        return type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub" and X.dtype.itemsize <= 8

    def _rows(self, X: Any, y: Any, reset: bool) -> Batch:
        """Returns the rows X as a batch, checked as scikit-learn does, except for what the kernels check. ``y``: their
        labels (None raises an error), or UNLABELLED for rows to predict; ``reset``: whether these are the first rows,
        which settle the columns. ``self._sparse``: whether sparse matrices are accepted.
        """
        if y is None:
            validate_data(self, X, y, reset=reset)  # it says that y is needed
        if (self._is_plain(X) or (self._sparse and _is_plain_sparse(X))) and X.shape[0] and X.shape[1]:
            if reset:
                self.__dict__.pop("feature_names_in_", None)
                self.n_features_in_ = X.shape[1]
            if X.shape[1] == self.n_features_in_ and "feature_names_in_" not in self.__dict__:
                if isinstance(X, np.ndarray):
                    return Matrix(X, number_names(X.shape[1]), named=False)
                # Twins are two entries for a cell; while scoring, some classes add them up themselves.
                if not (self._sums_repeated_entries and y is UNLABELLED) and has_twins(X):
                    X = X.copy()
                    X.sum_duplicates()
                return Sparse(X, number_names(X.shape[1]), named=False)
        sparse_formats: Any = SPARSE if self._sparse else False
        # Arguments of scikit-learn's function.
        checks = {"accept_sparse": sparse_formats, "ensure_all_finite": False, "dtype": self._accepted_dtype}
        return self._batch(validate_data(self, X, reset=reset, **checks))

    def _batch(self, checked: Any) -> Batch:
        """Returns ``checked``, an array or sparse matrix that scikit-learn has checked, as a batch, with the feature
        names if there are any.
        """
        has_names = "feature_names_in_" in self.__dict__
        names = tuple(self.feature_names_in_.tolist()) if has_names else number_names(checked.shape[1])
        if isinstance(checked, np.ndarray):
            return Matrix(checked if checked.dtype.kind in "fiub" else checked.astype(np.float64), names, has_names)
        [batch] = read(checked, columns=names if has_names else None)
        return batch

    def _labels(self, y: Any, n_rows: int) -> tuple[Codes, LabelArray]:
        """Returns the labels y of ``n_rows`` rows as codes, the class number of each row, and the classes that occur,
        sorted. Raises scikit-learn's errors for invalid labels.
        """
        labels = y if type(y) is np.ndarray and y.ndim == 1 else column_or_1d(y, warn=True)
        if len(labels) != n_rows:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[n_rows, len(labels)]}")
        if labels.dtype.kind in "fcO":
            assert_all_finite(labels, input_name="y", estimator_name=type(self).__name__)
            check_classification_targets(labels)
        if labels.dtype.kind in "mM" and np.isnat(labels).any():
            raise ValueError("Input y contains NaT.")
        # For each row the position of its label in ``labels``, which has one entry per row, or below one per name.
        positions_in_labels: Any = slice(None)
        if labels.dtype.kind in "iuU" and labels.dtype != np.uint64 and len(labels) > FEW_LABELS:
            threads = n_threads(None)
            # The number of each row's name, and the distinct names.
            name_numbers, names = number_values(encode(labels, threads), threads)
            is_used = is_nonzero(_core.count_classes(name_numbers, len(names), None, threads))  # without weights
            labels = np.array(names, dtype=labels.dtype)[is_used]
            positions_in_labels = (np.cumsum(is_used) - 1)[name_numbers]
        classes, class_numbers = np.unique(labels, return_inverse=True)  # class_numbers: of each entry of ``labels``
        if classes.dtype.kind in "OU":
            classes = np.array(classes.tolist())  # texts as wide as the longest
        return Codes(
            class_numbers.reshape(-1).astype(np.int32)[positions_in_labels], low=0, values=classes.tolist()
        ), classes

    def _check_classes(self, classes: Any, earlier: LabelArray | None) -> LabelArray:
        """Returns the classes that ``partial_fit`` names, or the ``earlier`` ones (None on the first call). Raises
        ValueError if they differ.
        """
        if earlier is None:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            return np.asarray(unique_labels(classes))
        are_same = classes is None or (len(classes) == len(earlier) and np.array_equal(earlier, unique_labels(classes)))
        if not are_same:
            raise ValueError(f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {earlier!r}")
        return earlier

    def _weights(self, sample_weight: Any, batch: Batch) -> Real | None:
        """Returns the sample weights, one per row of the batch; None if there are none. Raises ValueError for negative
        ones.
        """
        if sample_weight is None:
            return None
        # The rows matter only by their number.
        weights = _check_sample_weight(sample_weight, np.broadcast_to(0.0, (batch.n_rows, 1)), dtype=np.float64)
        if weights.size and weights.min() < 0:
            row = int(np.argmin(weights))
            where = f"data passed to {type(self).__name__} (sample_weight)"
            raise ValueError(f"Negative values in {where}: row {row} weighs {weights[row]:g}.")
        return np.asarray(weights)

    def __sklearn_tags__(self) -> Any:
        """Returns the tags of scikit-learn, which say whether sparse matrices and missing numbers are accepted."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = self._sparse
        tags.input_tags.allow_nan = self.missing == "skip"
        return tags

    # Answering

    def predict(self, X: Any) -> LabelArray:
        """Returns the most probable class of each row."""
        with self._lock:
            class_numbers = self._score_rows(X, "class")  # of each row
            return look_up(self.classes_, class_numbers)

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Returns P(class | row), rows × classes, in the order of ``classes_``."""
        return self._score_rows(X, "posterior")

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Returns log P(class | row), rows × classes, in the order of ``classes_``."""
        return self._score_rows(X, "log_posterior")

    def predict_joint_log_proba(self, X: Any) -> NDArray[Any]:
        """Returns log P(class) + log P(row | class), rows × classes, in the order of ``classes_``."""
        return self._score_rows(X, "log_joint")

    def _score_rows(self, X: Any, want: str) -> NDArray[Any]:
        """Returns the scores of the rows X: the class numbers for ``want="class"``, and rows × classes for "posterior",
        "log_posterior" or "log_joint".
        """
        with self._lock:
            learner = self._learner_of_fit()
            batch = self._rows(X, UNLABELLED, reset=False)
            return self._score(learner.current, batch, X, want)

    def _score(self, model: Model, batch: Batch, X: Any, want: str) -> NDArray[Any]:
        """Returns the scores of a batch by the kernel: the class numbers for ``want="class"``, and rows × classes for
        "posterior", "log_posterior" or "log_joint". Invalid
        numbers in X, the same rows as the user gave them, raise scikit-learn's errors; rows that are impossible in
        every class give a warning.
        """
        try:
            kernel_parts = [kernel_part for group in model.parameters for kernel_part in group.parts(batch)]
            # The second is the number of rows that are impossible in every class.
            scores, n_impossible = _core.score(batch.n_rows, model.log_prior, kernel_parts, want, n_threads(None))
        except (_core.BadValue, errors.BadValue):
            self._check_with_sklearn(X)
            raise
        if n_impossible and want != "log_joint":
            errors.warn(errors.all_impossible(n_impossible, "alpha=0", "alpha above 0"))
        return scores

    # What was learned

    @model_attribute
    def tally_(self, model: Model) -> Tally:
        """The tally of all rows learned so far."""
        return self._learner.settings.tally(self._learner.tally)  # type: ignore[no-any-return]

    @model_attribute
    def model_(self, model: Model) -> Model:
        """The current model as a ``bb.Model``, which can be explained, saved and compared."""
        return estimate(self.tally_, how=model.choice.how, class_prior=shares_of(model.log_prior))

    def explain(self, row: Any, against: Any = None, *, held_out: bool = False, label: Any = None) -> Explanation:
        """Explains why a row gets its class: the weight of evidence of every column, in decibans.

        ``against`` is the class to compare with, by default the runner-up. ``held_out`` explains a row of the training
        data, with the class ``label``, as if it had not been learned; the class prior does not change. See
        ``Model.explain``.
        """
        return self.model_.explain(row, against, held_out=held_out, label=label)

    def informative(self, n: int = 10, classes: Any = None) -> Informative:
        """Returns the ``n`` values that best tell each class from the others. See ``Model.informative``."""
        return self.model_.informative(n, classes)

    @model_attribute
    def class_count_(self, model: Model) -> NDArray[Any]:
        """The number of rows of each class, or their weight."""
        return self._like_input(model.tally.rows.value)  # type: ignore[no-any-return]

    def _like_input(self, array: Real) -> Any:
        """Returns ``array``, a fitted attribute, in the float type of the rows, and on their device."""
        return array.astype(self._float_dtype, copy=False)


def shares_of(log_prior: Real) -> list[float]:
    """Returns P(class), one per class, from ``log_prior``, log P(class) plus any constant."""
    shares = np.exp(log_prior)
    return (shares / shares.sum()).tolist()  # type: ignore[no-any-return]


def _is_plain_sparse(X: Any) -> bool:
    """Whether the rows are a sparse matrix that the kernels read without conversion."""
    if type(X) not in (csr_matrix, csr_array) or X.ndim != 2:
        return False
    return X.dtype.kind in "fiu" and X.dtype.itemsize in (4, 8) and bool(X.dtype.isnative)
