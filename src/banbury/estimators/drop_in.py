"""Drop-in replacements of scikit-learn's five naive Bayes classes: its parameters, attributes and words; our sums."""

from __future__ import annotations

import copy
import math
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix
from sklearn import get_config
from sklearn import naive_bayes as theirs
from sklearn.base import _fit_context, clone
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils._array_api import get_namespace_and_device, move_to
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_non_negative,
    column_or_1d,
    validate_data,
)

from banbury import _core, errors
from banbury.distributions import Bernoulli, Categorical, Gaussian, Occurrences
from banbury.distributions.bernoulli import Flags
from banbury.distributions.categorical import Tables
from banbury.distributions.dirichlet import log
from banbury.distributions.event_models import log_shares, pseudo_count
from banbury.distributions.family import Family, How
from banbury.distributions.gaussian import Normals
from banbury.distributions.occurrences import Occurring
from banbury.distributions.vocabulary import pairs_of
from banbury.explain import Explanation, Informative
from banbury.naive_bayes import Model, estimate
from banbury.readers import Batch, Codes, Sparse, n_threads, read
from banbury.readers.batches import Matrix, positions
from banbury.readers.columns import Coded
from banbury.readers.tables import has_twins
from banbury.schema import Schema, block, of_one_family
from banbury.sums import Counts
from banbury.tally import Growing, Tally, Touched, count_rows

Real = NDArray[np.float64]
Labels = NDArray[Any]
T = TypeVar("T")

FEW = 4096  # labels that NumPy numbers sooner than the kernel
GROW = "grow"
MAKING = threading.Lock()
LARGEST_CODE = 2**31
MOST_NOTED = 256  # batches whose columns are noted one by one, until the model is asked for
NOTED = ("n_features_in_", "feature_names_in_")
MISSING = {"missing": [StrOptions({"error", "skip"})]}
SPARSE = ("csr", "csc", "coo")  # formats that are read as they are


@dataclass(frozen=True)
class _Settings:
    """The parameters as they stood when rows were last learned."""

    family: Family | tuple[Family, ...]  # of all columns, or of each
    how: How
    log_prior: Real | None  # of the classes; None: by their rows

    def families(self, n_features: int) -> tuple[Family, ...]:
        return self.family if isinstance(self.family, tuple) else (self.family,) * n_features


@dataclass
class _State:
    """What was learned: the sums, the model that was made of them, and what was read off both."""

    growing: Growing
    settings: _Settings
    counted_under: _Settings  # the settings that the schema was made with
    float_dtype: Any
    home: tuple[Any, Any] | None = None  # the namespace and device of rows that were no NumPy arrays
    model: Model | None = None
    touched: list[Touched] = field(default_factory=list)
    read: dict[str, Any] = field(default_factory=dict)

    def changed(self, touched: Touched, classes: tuple[Any, ...], settings: _Settings) -> None:
        """Notes the columns that changed; under other classes or settings the model is made anew."""
        self.touched.append(touched)
        if len(self.touched) > MOST_NOTED:  # a stream may never ask for the model
            self.touched = [[np.unique(np.concatenate(ids)) for ids in zip(*self.touched, strict=True)]]
        self.read = {}
        if self.growing.classes != classes or settings.family != self.settings.family:
            self.model, self.touched = None, []
        self.settings = settings

    def refuse_other_sums(self, settings: _Settings) -> None:
        """Raises where parameters were changed to some that need other sums than those there are."""
        then, now = self.counted_under.family, settings.family
        first, second = (given[0] if isinstance(given, tuple) else given for given in (then, now))
        coded = [getattr(given, "codes", None) is not None for given in (first, second)]
        if type(first) is not type(second) or coded[0] != coded[1]:
            raise ValueError(
                "missing, or categories, was changed since the first rows were learned, and needs other sums. "
                "Call fit with all rows."
            )

    def current(self) -> Model:
        """The model of what was counted, brought up to date."""
        if self.model is None:
            self.model = self._with_prior(estimate(self._seen(), how=self.settings.how))
        elif self.touched:
            self.model = self._with_prior(self.model.after(self._seen(), self.touched))
        self.touched = []
        return self.model

    def _seen(self) -> Tally:
        return self.under_settings(self.growing.seen)

    def under_settings(self, tally: Tally) -> Tally:
        """The sums, to be estimated as the settings say."""
        schema = tally.schema
        if self.settings is self.counted_under or self.settings.family == self.counted_under.family:
            return tally
        given = self.settings.families(len(schema.features))
        features = tuple(f._replace(family=family) for f, family in zip(schema.features, given, strict=True))
        return replace(tally, schema=replace(schema, features=features))

    def _with_prior(self, model: Model) -> Model:
        if self.settings.log_prior is None:
            return model
        return replace(model, log_prior=self.settings.log_prior)

    def __getstate__(self) -> dict[str, Any]:
        kept = ("growing", "settings", "counted_under", "float_dtype", "home")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


class _DropIn:
    """What the five have in common. A class says how its columns are counted, and reads its attributes off the model."""

    classes_: Labels
    n_features_in_: int
    _state: _State
    missing: str

    # What each class says

    def _settings(self, n_classes: int) -> _Settings:
        """The parameters, checked."""
        raise NotImplementedError

    def _schema(self, batch: Batch, settings: _Settings) -> Schema:
        """What is counted: a block of all columns."""
        assert isinstance(settings.family, Family)
        return Schema((block(batch.names, settings.family),), None, batch.names, batch.named)

    def _refuse(self, X: Any) -> Any:
        """Raises for numbers that cannot be learned, in scikit-learn's words; else rows as it checks them."""
        finite = "allow-nan" if self.missing == "skip" else True
        return check_array(X, accept_sparse=True, ensure_all_finite=finite, estimator=self, input_name="X")

    # Learning

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learns from rows, and forgets all that was learned before."""
        with self._lock, self._names_kept():
            batch = self._rows(X, y, reset=True)
            labels, classes = self._labels(y, batch.n_rows)
            weights = self._weights(sample_weight, batch)
            settings = self._settings(len(classes))
            growing = Growing(self._schema(batch, settings), tuple(classes.tolist()))
            self._add(growing, growing.add, X, batch, Codes(labels, 0, classes.tolist()), weights)
            state = _State(growing, settings, settings, self._float_dtype(batch))
            state.current()
            self.classes_, self._state = classes, state
        return self

    @property
    def _lock(self) -> threading.RLock:
        """One thread at a time: what is being learned is not half learned for another."""
        lock = self.__dict__.get("_guard")
        if lock is None:
            with MAKING:
                lock = self.__dict__.setdefault("_guard", threading.RLock())
        return lock  # type: ignore[no-any-return]

    def __getstate__(self) -> Any:
        state: dict[str, Any] = {**super().__getstate__()}  # type: ignore[dict-item]
        state.pop("_guard", None)
        return state

    def __copy__(self) -> Self:
        """A copy learns apart."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__getstate__())
        if self.__sklearn_is_fitted__():
            with self._lock:
                other._state = copy.deepcopy(self._state)
        return other

    @contextmanager
    def _names_kept(self) -> Iterator[None]:
        """What was noted of the columns stays as it was where rows are refused."""
        before = {name: self.__dict__[name] for name in NOTED if name in self.__dict__}
        try:
            yield
        except BaseException:
            for name in NOTED:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learns from more rows. The first call names all ``classes``; "grow" takes them as they come.

        Any batches in any order come to the same as ``fit`` on all rows. The model is brought up to date when it is next asked.
        """
        with self._lock, self._names_kept():
            self._learn(X, y, classes, sample_weight)
        return self

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        first = not self.__sklearn_is_fitted__()
        grow = isinstance(classes, str) and classes == GROW
        known = None if first else self.classes_
        if not grow:
            known = self._named_classes(classes, known)
        batch = self._rows(X, y, reset=first)
        labels, own = self._labels(y, batch.n_rows)
        merged = own if known is None else np.union1d(known, own) if grow else known
        if not grow:
            self._refuse_unknown(own, merged)
        weights, settings = self._weights(sample_weight, batch), self._settings(len(merged))
        codes = Codes(labels, 0, own.tolist())
        if first:
            growing = Growing(self._schema(batch, settings), tuple(merged.tolist()))
            self._add(growing, growing.add, X, batch, codes, weights)
            self.classes_, self._state = merged, _State(growing, settings, settings, self._float_dtype(batch))
            return
        state, growing = self._state, self._state.growing
        state.refuse_other_sums(settings)
        before = growing.classes
        if len(merged) != len(before):
            growing.declare(tuple(merged.tolist()))
        try:
            touched = self._add(growing, growing.add, X, batch, codes, weights)
        except BaseException:
            growing.declare(before)
            raise
        state.changed(touched, before, settings)
        self.classes_ = merged

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Takes rows out again, so that nothing of them is left: the twin of ``partial_fit``.

        Rows that were never learned raise, and change nothing, wherever it shows. A class that loses its last row stays, since it
        was named.
        """
        with self._lock:
            state = self._fitted()
            batch = self._rows(X, y, reset=False)
            labels, own = self._labels(y, batch.n_rows)
            self._refuse_unknown(own, self.classes_)
            weights, codes = self._weights(sample_weight, batch), Codes(labels, 0, own.tolist())
            before = state.growing.classes
            touched = self._add(state.growing, state.growing.forget, X, batch, codes, weights)
            state.changed(touched, before, state.settings)
        return self

    def validation(self, X: Any, y: Any) -> tuple[Batch, dict[str, Any]]:
        """The rows and settings by which ``bb.cross_validate`` counts and estimates as this class does."""
        other = clone(self)
        other._validate_params()
        batch = other._rows(X, y, reset=True)
        if self.missing == "error" and (not isinstance(batch, Matrix) or batch.dtype.kind == "f"):
            other._refuse(batch.matrix if isinstance(batch, Sparse) else X)
        _, classes = other._labels(y, batch.n_rows)
        settings = other._settings(len(classes))
        prior: Any = None
        if settings.log_prior is not None:
            share = np.exp(settings.log_prior)
            prior = (share / share.sum()).tolist()
        features = (
            settings.family
            if isinstance(settings.family, Family)
            else dict(zip(batch.names, settings.family, strict=True))
        )
        return batch, {"features": features, "how": settings.how, "class_prior": prior}

    def _add(
        self, growing: Growing, change: Callable[[Any], Touched], X: Any, batch: Batch, labels: Codes, weights: Any
    ) -> Touched:
        """Adds rows to the sums, or takes them away; numbers that cannot be counted raise in scikit-learn's words."""
        batch.threads = n_threads(None)
        try:
            part = count_rows(batch, growing.schema, labels, weights, batch.threads)
            self._check_counted(part.tally, X)
            return change(part)
        except errors.BadValue:
            self._refuse(X)
            raise

    def _check_counted(self, tally: Tally, X: Any) -> None:
        """Raises where the sums show that a number was missing and passed over."""

    def _float_dtype(self, batch: Batch) -> Any:
        return np.float64

    # Checking what comes in

    @property
    def _dtype(self) -> Any:
        return "numeric"

    _sparse = True  # whether sparse matrices are taken

    def _plain(self, X: Any) -> bool:
        """Whether rows are an array that needs no conversion: then the kernels check it while they read it."""
        return type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub" and X.dtype.itemsize <= 8

    def _rows(self, X: Any, y: Any, reset: bool) -> Batch:
        """The rows as a batch, checked as scikit-learn does but for what the kernels see for themselves."""
        if y is None:
            validate_data(self, X, y, reset=reset)  # it says that y is needed
        if self._plain(X) and X.shape[0] and X.shape[1]:
            if reset:
                self.__dict__.pop("feature_names_in_", None)
                self.n_features_in_ = X.shape[1]
                return Matrix(X, positions(X.shape[1]), False)
            if X.shape[1] == self.n_features_in_ and "feature_names_in_" not in self.__dict__:
                return Matrix(X, positions(X.shape[1]), False)
        if self._sparse and _is_plain_sparse(X):
            known = reset or (X.shape[1] == self.n_features_in_ and "feature_names_in_" not in self.__dict__)
            if known and X.shape[0] and X.shape[1]:
                if reset:
                    self.__dict__.pop("feature_names_in_", None)
                    self.n_features_in_ = X.shape[1]
                return Sparse(X if not has_twins(X) else _summed(X), positions(X.shape[1]), False)
        checked = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse=SPARSE if self._sparse else False,
            ensure_all_finite=False,
            dtype=self._dtype,
        )
        return self._batch(checked)

    def _batch(self, checked: Any) -> Batch:
        names = self.__dict__.get("feature_names_in_")
        given = positions(checked.shape[1]) if names is None else tuple(names.tolist())
        if isinstance(checked, np.ndarray):
            if checked.dtype == object or checked.dtype.kind not in "fiub":
                checked = checked.astype(np.float64)
            return Matrix(checked, given, names is not None)
        [batch] = read(checked, names=None if names is None else given)
        return batch

    def _ready(self, X: Any) -> tuple[_State, Model, Batch]:
        state = self._fitted()
        batch = self._rows(X, (), reset=False)
        return state, state.current(), batch

    def _labels(self, y: Any, n_rows: int) -> tuple[NDArray[np.int32], Labels]:
        """The number of each row's label among those that occur, and these, in order."""
        given = y if type(y) is np.ndarray and y.ndim == 1 else column_or_1d(y, warn=True)
        if len(given) != n_rows:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[n_rows, len(given)]}")
        if given.dtype.kind in "fcO":
            assert_all_finite(given, input_name="y", estimator_name=type(self).__name__)
            check_classification_targets(given)
        if given.dtype.kind in "mM" and np.isnat(given).any():
            raise ValueError("Input y contains NaT.")
        if given.dtype.kind in "iu" and given.dtype != np.uint64 and len(given) > FEW:
            threads = n_threads(None)
            low, high = (int(end[0]) for end in _core.span([np.ascontiguousarray(given)], threads))
            if high - low < len(given) // 4:
                codes = np.empty(len(given), dtype=np.int32)
                np.subtract(given, low, out=codes, dtype=np.int64, casting="unsafe")
                counts, _ = _core.count_classes(codes, high - low + 1, None, True, threads)
                used = np.flatnonzero(counts)
                if len(used) < len(counts):
                    codes = (np.cumsum(counts > 0, dtype=np.int32) - np.int32(1))[codes]
                return codes, (used + low).astype(given.dtype)
        classes, numbers = np.unique(given, return_inverse=True)
        if classes.dtype.kind in "OU":
            classes = np.array(classes.tolist())  # texts as wide as the longest
        return numbers.reshape(-1).astype(np.int32), classes

    def _named_classes(self, classes: Any, known: Labels | None) -> Labels:
        if known is None:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            return np.asarray(unique_labels(classes))
        same = classes is None or (len(classes) == len(known) and np.array_equal(known, unique_labels(classes)))
        if not same:
            raise ValueError(f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {known!r}")
        return known

    def _refuse_unknown(self, own: Labels, known: Labels) -> None:
        inside = np.isin(own, known)
        if not inside.all():
            raise ValueError(f"The target label(s) {own[~inside]} in y do not exist in the initial classes {known}")

    def _weights(self, sample_weight: Any, batch: Batch) -> Real | None:
        if sample_weight is None:
            return None
        weights = _check_sample_weight(sample_weight, np.broadcast_to(0.0, (batch.n_rows, 1)), dtype=np.float64)
        if weights.size and weights.min() < 0:
            row = int(np.argmin(weights))
            name = type(self).__name__
            raise ValueError(
                f"Negative values in data passed to {name} (sample_weight): row {row} weighs {weights[row]:g}."
            )
        return np.asarray(weights)

    # Answering

    def predict(self, X: Any) -> Labels:
        """The most probable class of each row."""
        with self._lock:
            best = self._scored(X, "class")
            return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """P(class | row), in the order of ``classes_``."""
        with self._lock:
            return self._scored(X, "posterior")

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """log P(class | row)."""
        with self._lock:
            return self._scored(X, "log_posterior")

    def predict_joint_log_proba(self, X: Any) -> NDArray[Any]:
        """log P(class) + log P(row | class)."""
        with self._lock:
            return self._scored(X, "log_joint")

    def _scored(self, X: Any, want: str) -> NDArray[Any]:
        return self._score(*self._ready(X), X, want)

    def _score(self, state: _State, model: Model, batch: Batch, X: Any, want: str) -> NDArray[Any]:
        try:
            parts = [part for group in model.parameters for part in group.parts(batch)]
            found, impossible = _core.score(batch.n_rows, model.log_prior, parts, want, n_threads(None))
        except (_core.BadValue, errors.BadValue):
            self._refuse(X)
            raise
        if impossible and want != "log_joint":
            warnings.warn(errors.all_impossible(impossible, "alpha=0", "alpha above 0"), stacklevel=4)
        return found

    # What was learned

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in self.__dict__

    def _fitted(self) -> _State:
        check_is_fitted(self)
        return self._state

    def _off(self, name: str, make: Callable[[Model], T]) -> T:
        """An attribute, read off the model when first asked for."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with self._lock:
            state = self._state
            model = state.current()
            if name not in state.read:
                state.read[name] = make(model)
            found: T = state.read[name]
            return found

    @property
    def tally_(self) -> Tally:
        """The sums of all rows as they stand."""
        return self._off("tally_", lambda _: self._state.under_settings(self._state.growing.frozen()))

    @property
    def model_(self) -> Model:
        """The same as a ``bb.Model``: to explain, save, merge, compare."""

        def made(model: Model) -> Model:
            prior = np.exp(model.log_prior)
            return estimate(self.tally_, how=self._state.settings.how, class_prior=(prior / prior.sum()).tolist())

        return self._off("model_", made)

    def explain(self, row: Any, against: Any = None) -> Explanation:
        """Why a row gets its class: the weight of evidence of every column, in decibans."""
        return self.model_.explain(row, against)

    def informative(self, n: int = 10, classes: Any = None) -> Informative:
        """The ``n`` values that best tell each class from the rest: see ``Model.informative``."""
        return self.model_.informative(n, classes)

    @property
    def class_count_(self) -> NDArray[Any]:
        """Rows of each class, weighted."""
        return self._off("class_count_", lambda model: model.tally.rows.value.astype(self._state.float_dtype))


def _is_plain_sparse(X: Any) -> bool:
    """Whether rows are a sparse matrix that the kernels read as it is."""
    kind = type(X)
    return (
        (kind is csr_matrix or kind is csr_array)
        and X.ndim == 2
        and X.dtype.kind in "fiu"
        and X.dtype.itemsize in (4, 8)
        and X.dtype.isnative
    )


def _summed(X: Any) -> Any:
    """The numbers that stand in one place as one."""
    X = X.copy()
    X.sum_duplicates()
    return X


class _Discrete(_DropIn):
    """The prior of the four classes that count."""

    fit_prior: bool
    class_prior: Any
    alpha: Any

    def _settings(self, n_classes: int) -> _Settings:
        prior: Real | None = None
        if self.class_prior is not None:
            if len(self.class_prior) != n_classes:
                raise ValueError("Number of priors must match number of classes.")
            given = np.asarray(self.class_prior, dtype=np.float64)
            if not np.min(given) >= 0:
                raise ValueError("Priors must be non-negative.")
            if not 0 < given.sum() < np.inf:
                raise ValueError(f"class_prior must have a finite sum above 0. Got {self.class_prior!r} instead.")
            prior = log(given)
        elif not self.fit_prior:
            prior = np.full(n_classes, -np.log(n_classes))
        alpha = self._alpha()
        # Without pseudo-counts a zero stays zero.
        return _Settings(self._family(alpha), "mle" if alpha == 0 else "mean", prior)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = self.missing == "skip"
        return tags

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


class _Counting(_Discrete):
    """The three classes that count how often each column occurs."""

    def _occurring(self, model: Model) -> Occurring:
        (group,) = model.parameters
        assert isinstance(group, Occurring)
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


class MultinomialNB(_Counting, theirs.MultinomialNB):  # type: ignore[misc]
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


class ComplementNB(_Counting, theirs.ComplementNB):  # type: ignore[misc]
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

    def _settings(self, n_classes: int) -> _Settings:
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


class BernoulliNB(_Counting, theirs.BernoulliNB):  # type: ignore[misc]
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

    def _schema(self, batch: Batch, settings: _Settings) -> Schema:
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
        return _DropIn._refuse(self, X)  # what is below 0 is no error here

    @property
    def feature_count_(self) -> Real:
        """How many rows of each class have each column, (classes, columns)."""

        def counted(model: Model) -> Real:
            yes = model.tally.counts.cells.value[1::2]  # no and yes of every column
            return np.ascontiguousarray(yes.T)

        if self.__sklearn_is_fitted__() and isinstance(self._state.settings.family, Bernoulli):
            return self._off("feature_count_", counted)
        return super().feature_count_

    @property
    def feature_log_prob_(self) -> Real:
        """log P(column present | class), (classes, columns)."""

        def shares(model: Model) -> Real:
            (group,) = model.parameters
            if isinstance(group, Flags):
                return np.ascontiguousarray(group.yes.T)
            assert isinstance(group, Occurring)
            alpha = group.family.pseudo_counts(model.choice, len(group.ids))
            a: Any = pseudo_count(model.choice.how, alpha)
            yes, _ = log_shares(self.feature_count_.T, self.class_count_, a[:, None] if np.ndim(a) else a)
            return np.ascontiguousarray(yes.T)

        return self._off("feature_log_prob_", shares)


class CategoricalNB(_Discrete, theirs.CategoricalNB):  # type: ignore[misc]
    """scikit-learn's CategoricalNB, counted by Banbury. A category that was never seen has the probability of its pseudo-count.

    ``categories="any"``: categories are texts, booleans or numbers as they come; ``categories_`` then names those that were seen.
    ``accept_sparse=True``: sparse matrices are taken, and what they do not hold is 0. ``missing="skip"``: a missing value says
    nothing.

    >>> import banbury as bb
    >>> clf = bb.CategoricalNB(categories="any").fit([["sun"], ["rain"], ["rain"]], ["out", "in", "in"])
    >>> clf.predict([["sun"], ["snow"]]).tolist(), clf.categories_[0].tolist()
    (['out', 'in'], ['rain', 'sun'])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **theirs.CategoricalNB._parameter_constraints,
        **MISSING,
        "categories": [StrOptions({"codes", "any"})],
        "accept_sparse": ["boolean"],
    }

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        min_categories: Any = None,
        categories: str = "codes",
        accept_sparse: bool = False,
        missing: str = "error",
    ) -> None:
        super().__init__(
            alpha=alpha,
            force_alpha=force_alpha,
            fit_prior=fit_prior,
            class_prior=class_prior,
            min_categories=min_categories,
        )
        self.categories = categories
        self.accept_sparse = accept_sparse
        self.missing = missing

    @property
    def _sparse(self) -> bool:  # type: ignore[override]
        return self.accept_sparse

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self.accept_sparse)
        tags.input_tags.string = self.categories == "any"
        tags.input_tags.positive_only = self.categories != "any"
        return tags

    def _family(self, alpha: Any) -> Family | tuple[Family, ...]:
        if self.categories == "any":
            return Categorical(alpha=alpha)
        least = np.array(0 if self.min_categories is None else self.min_categories)
        if self.min_categories is not None and not np.issubdtype(least.dtype, np.signedinteger):
            raise ValueError(f"'min_categories' should have integral type. Got {least.dtype} instead.")
        if least.ndim and least.shape != (self.n_features_in_,):
            raise ValueError(
                f"'min_categories' should have shape ({self.n_features_in_},) when an array-like is provided. Got "
                f"{least.shape} instead."
            )
        if least.ndim:
            return tuple(Categorical(alpha=alpha, codes=max(int(n), 0)) for n in least)
        return Categorical(alpha=alpha, codes=max(int(least), 0))

    def _schema(self, batch: Batch, settings: _Settings) -> Schema:
        families = settings.families(len(batch.names))
        schema = of_one_family(batch, families[0])
        plain = all(feature.kind == "integer" for feature in schema.features)
        if self.categories == "any" or (plain and not isinstance(settings.family, tuple)):
            return schema
        pairs = zip(schema.features, families, strict=True)  # codes are whole numbers even before any came
        return replace(schema, features=tuple(f._replace(family=family, kind="integer") for f, family in pairs))

    def _plain(self, X: Any) -> bool:
        return super()._plain(X) and X.dtype.kind in "iu" and self.categories == "codes"

    @property
    def _dtype(self) -> Any:
        return "int" if self.missing == "error" else "numeric"

    def _rows(self, X: Any, y: Any, reset: bool) -> Batch:
        if self.categories == "any":
            return self._any_rows(X, y, reset)
        if y is None or self.missing == "skip" or self._plain(X):
            batch = super()._rows(X, y, reset)
        else:  # numbers are checked before they become whole
            formats = SPARSE if self._sparse else False
            batch = self._batch(validate_data(self, X, dtype="int", accept_sparse=formats, reset=reset))
        if isinstance(batch, Sparse):
            batch = Matrix(batch._dense(batch.names), batch.names, batch.named)
        if isinstance(batch, Matrix):
            self._check_codes(batch, X)
        if self.missing == "skip" and isinstance(batch, Matrix):
            batch = _whole(batch)
        return batch

    def _check_codes(self, batch: Matrix, X: Any) -> None:
        """Raises for numbers that are no codes: below 0, infinite, or too large to be told apart."""
        array = batch.numbers(batch.names)[0]
        if array.dtype.kind == "f":
            self._refuse(X)
        low, high = np.fmin.reduce(array, axis=None), np.fmax.reduce(array, axis=None)
        if low < 0:
            check_non_negative(X if hasattr(X, "nnz") else np.asarray(X), "CategoricalNB (input X)")
            raise ValueError("Negative values in data passed to CategoricalNB (input X).")
        if high >= LARGEST_CODE:
            raise ValueError(
                f"CategoricalNB (input X) has the code {high:g}; codes are numbers from 0 up, below 2**31."
            )

    def _any_rows(self, X: Any, y: Any, reset: bool) -> Batch:
        if y is None:
            validate_data(self, X, y, reset=reset)
        if hasattr(X, "nnz"):
            X = check_array(X, accept_sparse=self._sparse, ensure_all_finite=False, estimator=self).toarray()
        [batch] = list(read(X))
        if not batch.n_rows or not batch.names:
            check_array(np.empty((batch.n_rows, len(batch.names))), estimator=self)  # it says what there must be
        validate_data(self, X, reset=reset, skip_check_array=True)
        if any(_is_infinite(value) for name in batch.names for value in batch.codes(name).values):
            raise ValueError("Input X contains infinity, which is no category.")
        if self.missing == "error" and any(_gaps(batch, name) for name in batch.names):
            raise ValueError(
                "Input X contains NaN.\nCategoricalNB does not accept missing values encoded as NaN natively unless "
                "missing='skip' is given."
            )
        return batch

    def _counts(self, model: Model) -> Counts:
        """The sums with all categories."""
        counts: Counts = model.tally.counts
        families = [feature.family for feature in model.tally.schema.keyed]
        return counts.with_keys(
            tuple(
                family._all_codes(keys) if isinstance(family, Categorical) and family.codes is not None else keys
                for family, keys in zip(families, counts.keys, strict=True)
            )
        )

    @property
    def category_count_(self) -> list[Real]:
        """Per column the rows of each class that have each category, (classes, categories)."""

        def counted(model: Model) -> list[Real]:
            counts = self._counts(model)
            cells, offsets = counts.cells.value, counts.offsets[1:-1]
            return [np.ascontiguousarray(part.T) for part in np.split(cells, offsets)]

        return self._off("category_count_", counted)

    @property
    def feature_log_prob_(self) -> list[Real]:
        """Per column log P(category | class), (classes, categories)."""

        def shares(model: Model) -> list[Real]:
            found: dict[str, Real] = {}
            for group in model.parameters:
                assert isinstance(group, Tables)
                ends = group.offsets.tolist()
                for f, feature in enumerate(group.features):
                    found[feature.name] = np.ascontiguousarray(group.table[ends[f] : ends[f + 1]].T)
            return [found[feature.name] for feature in model.tally.schema.features]

        return self._off("feature_log_prob_", shares)

    @property
    def n_categories_(self) -> NDArray[np.int64]:
        """How many categories each column has."""
        return self._off(
            "n_categories_", lambda model: np.array([len(keys) for keys in self._counts(model).keys], dtype=np.int64)
        )

    @property
    def categories_(self) -> list[NDArray[Any]]:
        """Per column its categories, in the order of ``category_count_``."""
        return self._off("categories_", lambda model: [np.array(keys) for keys in self._counts(model).keys])


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)


def _gaps(batch: Batch, name: str) -> bool:
    """Whether a column has a missing value."""
    codes = batch.codes(name)
    numbers = np.asarray(codes.codes).astype(np.int64) - codes.low
    return bool(((numbers < 0) | (numbers >= len(codes.values))).any())


def _whole(batch: Matrix) -> Batch:
    """Numbers with gaps as whole ones, and gaps."""
    array = batch.numbers(batch.names)[0]
    if array.dtype.kind != "f":
        return batch
    columns = {
        name: Coded(
            Codes(
                np.where(np.isnan(column), -1, column).astype(np.int64),
                0,
                range(int(np.nanmax(column, initial=-1)) + 1),
            )
        )
        for name, column in zip(batch.names, array.T, strict=True)
    }
    found = Batch(batch.names, batch.n_rows, columns, batch.named)
    found.first_row = batch.first_row
    return found


def _home(X: Any) -> tuple[Any, Any] | None:
    """Where an array of another library than NumPy lives; None for all else, and unless scikit-learn is told to dispatch."""
    if type(X) is np.ndarray or not get_config()["array_api_dispatch"]:
        return None
    xp, found, device = get_namespace_and_device(X)
    return (xp, device) if found and not xp.__name__.endswith("numpy") else None


def _brought(*arrays: Any) -> tuple[Any, ...]:
    """The same as NumPy arrays."""
    return tuple(
        array if array is None or isinstance(array, (np.ndarray, list)) else move_to(array, xp=np, device="cpu")
        for array in arrays
    )


class GaussianNB(_DropIn, theirs.GaussianNB):  # type: ignore[misc]
    """scikit-learn's GaussianNB, counted by Banbury: what smoothing adds follows from all rows, never from the last batch.

    ``missing="skip"``: a missing number says nothing. ``accept_sparse=True``: sparse matrices are taken, and what they do not
    hold is 0.

    >>> import banbury as bb
    >>> clf = bb.GaussianNB().partial_fit([[1.0]], ["a"], classes=["a", "b"]).partial_fit([[2.0], [4.0]], ["a", "b"])
    >>> clf.theta_.tolist(), clf.predict([[1.8]]).tolist()
    ([[1.5], [4.0]], ['a'])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **theirs.GaussianNB._parameter_constraints,
        **MISSING,
        "accept_sparse": ["boolean"],
    }

    def __init__(
        self,
        *,
        priors: Any = None,
        var_smoothing: float = 1e-9,
        accept_sparse: bool = False,
        missing: str = "error",
    ) -> None:
        super().__init__(priors=priors, var_smoothing=var_smoothing)
        self.accept_sparse = accept_sparse
        self.missing = missing

    @property
    def _sparse(self) -> bool:  # type: ignore[override]
        return self.accept_sparse

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self.accept_sparse)
        tags.input_tags.allow_nan = self.missing == "skip"
        return tags

    # Arrays of other libraries, where scikit-learn is told to dispatch: they come here as NumPy's, and answers go back.

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learns from rows, and forgets all that was learned before."""
        home = _home(X)
        super().fit(*((X, y, sample_weight) if home is None else _brought(X, y, sample_weight)))
        self._state.home = home
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learns from more rows. The first call names all ``classes``; "grow" takes them as they come."""
        first, home = not self.__sklearn_is_fitted__(), _home(X)
        if home is not None:
            X, y, sample_weight = _brought(X, y, sample_weight)
        super().partial_fit(X, y, classes, sample_weight)
        if first:
            self._state.home = home
        return self

    def predict(self, X: Any) -> Labels:
        """The most probable class of each row."""
        home = _home(X)
        if home is None:
            return super().predict(X)
        found = super().predict(_brought(X)[0])
        return found if found.dtype.kind in "OUST" else home[0].asarray(found, device=home[1])

    def _sent(self, array: Any) -> Any:
        home = self._state.home
        return array if home is None else home[0].asarray(array, device=home[1])

    @property
    def class_count_(self) -> NDArray[Any]:
        """Rows of each class, weighted."""
        return self._off(
            "class_count_", lambda model: self._sent(model.tally.rows.value.astype(self._state.float_dtype))
        )

    def _settings(self, n_classes: int) -> _Settings:
        prior: Real | None = None
        if self.priors is not None:
            given = np.asarray(self.priors, dtype=np.float64)
            if given.shape[0] != n_classes:
                raise ValueError("Number of priors must match number of classes.")
            if not np.isclose(given.sum(), 1.0):
                raise ValueError("The sum of the priors should be 1.")
            if (given < 0).any():
                raise ValueError("Priors must be non-negative.")
            prior = log(given)
        return _Settings(Gaussian(smoothing=float(self.var_smoothing)), "mean", prior)

    def _schema(self, batch: Batch, settings: _Settings) -> Schema:
        assert isinstance(settings.family, Gaussian)
        return of_one_family(batch, settings.family)

    def _float_dtype(self, batch: Batch) -> Any:
        return np.float32 if isinstance(batch, Matrix) and batch.dtype == np.float32 else np.float64

    def _rows(self, X: Any, y: Any, reset: bool) -> Batch:
        batch = super()._rows(X, y, reset)
        if not isinstance(batch, Sparse):
            return batch
        if self.missing == "error":
            self._refuse(batch.matrix)
        return Matrix(batch._dense(batch.names), batch.names, batch.named)

    def _check_counted(self, tally: Tally, X: Any) -> None:
        rows: Any = tally.rows.rows
        if self.missing == "error" and (tally.moments.n.rows < rows).any():
            self._refuse(X)

    def _scored(self, X: Any, want: str) -> NDArray[Any]:
        home = _home(X)
        if home is not None:
            found = self._scored(_brought(X)[0], want)
            return home[0].asarray(found, device=home[1])  # type: ignore[no-any-return]
        state, model, batch = self._ready(X)
        if self.missing == "error" and isinstance(batch, Matrix) and batch.dtype.kind == "f":
            with np.errstate(over="ignore", invalid="ignore"):
                fine = np.isfinite(batch.numbers(batch.names)[0].sum())
            if not fine:
                self._refuse(X)
        found = self._score(state, model, batch, X, want)
        both = np.result_type(state.float_dtype, self._float_dtype(batch))
        return found if want == "class" else found.astype(both, copy=False)

    @property
    def class_prior_(self) -> NDArray[Any]:
        """P(class)."""
        return self._off(
            "class_prior_", lambda model: self._sent(np.exp(model.log_prior).astype(self._state.float_dtype))
        )

    @property
    def epsilon_(self) -> float:
        """What is added to every variance."""

        def added(model: Model) -> float:
            (group,) = model.tally.groups
            given, features, sums = group
            assert isinstance(given, Gaussian)
            return self._state.float_dtype(given.added(features, sums))  # type: ignore[no-any-return, arg-type]

        return self._off("epsilon_", added)

    def _normals(self, model: Model) -> Normals:
        (group,) = model.parameters
        assert isinstance(group, Normals)
        return group

    @property
    def theta_(self) -> NDArray[Any]:
        """The mean of each column in each class, (classes, columns)."""

        def means(model: Model) -> NDArray[Any]:
            group = self._normals(model)
            return np.ascontiguousarray((group.origin[:, None] + group.unit[:, None] * group.mean).T)

        return self._off("theta_", lambda model: self._sent(means(model).astype(self._state.float_dtype, copy=False)))

    @property
    def var_(self) -> NDArray[Any]:
        """The variance of each column in each class, what is added included, (classes, columns)."""

        def variances(model: Model) -> NDArray[Any]:
            group = self._normals(model)
            with np.errstate(over="ignore", under="ignore"):
                return np.ascontiguousarray(np.square(group.unit[:, None] * np.sqrt(0.5 / group.precision)).T)

        return self._off("var_", lambda model: self._sent(variances(model).astype(self._state.float_dtype, copy=False)))
