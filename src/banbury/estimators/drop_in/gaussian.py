"""GaussianNB, with a normal distribution for each column."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn import naive_bayes as sklearn_nb
from sklearn.utils._array_api import get_namespace_and_device, move_to

from banbury.arrays import Real
from banbury.estimators.drop_in.base import MISSING, DropIn, LabelArray, Settings, model_attribute
from banbury.estimators.guard import in_one_step
from banbury.families import Gaussian
from banbury.families.dirichlet import log
from banbury.families.gaussian import GaussianParameters
from banbury.model.naive_bayes import Model
from banbury.reading import Batch
from banbury.reading.batches import Matrix
from banbury.sums import Moments
from banbury.tally.schema import Schema, of_one_family
from banbury.tally.tally import Tally


class GaussianNB(DropIn, sklearn_nb.GaussianNB):  # type: ignore[misc]
    """scikit-learn's GaussianNB, computed by Banbury. Variance smoothing depends on all rows, not on the last batch.

    ``missing="skip"`` ignores missing numbers.

    >>> import banbury as bb
    >>> clf = bb.GaussianNB().partial_fit([[1.0]], ["a"], classes=["a", "b"]).partial_fit([[2.0], [4.0]], ["a", "b"])
    >>> clf.theta_.tolist(), clf.predict([[1.8]]).tolist()
    ([[1.5], [4.0]], ['a'])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**sklearn_nb.GaussianNB._parameter_constraints, **MISSING}
    _sparse = False
    # The array namespace and device of the first rows, if they were not NumPy arrays.
    _array_home: tuple[Any, Any] | None = None

    def __init__(self, *, priors: Any = None, var_smoothing: float = 1e-9, missing: str = "error") -> None:
        """Stores the parameters as they are; ``fit`` checks them."""
        super().__init__(priors=priors, var_smoothing=var_smoothing)
        self.missing = missing

    # With scikit-learn's array API dispatch, arrays of other libraries are converted to NumPy, and predictions back.

    @in_one_step
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Learns from the rows and forgets everything learned before."""
        home = _home_of(X)  # the namespace and device of another array library; None for NumPy
        super().fit(*((X, y, sample_weight) if home is None else _to_numpy(X, y, sample_weight)))
        self._array_home = home

    @in_one_step
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> None:
        """Learns from more rows. The first call must name all ``classes``."""
        is_first = not self.__sklearn_is_fitted__()
        home = _home_of(X)  # the namespace and device of another array library; None for NumPy
        if home is not None:
            X, y, sample_weight = _to_numpy(X, y, sample_weight)
        super().partial_fit(X, y, classes, sample_weight)
        if is_first:
            self._array_home = home

    def predict(self, X: Any) -> LabelArray:
        """Returns the most probable class of each row."""
        home = _home_of(X)  # the namespace and device of another array library; None for NumPy
        if home is None:
            return super().predict(X)
        namespace, device = home
        labels = super().predict(_to_numpy(X)[0])
        # Other libraries have no arrays of strings or objects.
        return labels if labels.dtype.kind in "OUST" else namespace.asarray(labels, device=device)

    def _like_input(self, array: Real) -> Any:
        """Returns the array in the float type, library and device of the first rows."""
        array_of_type = super()._like_input(array)
        if self._array_home is None:
            return array_of_type
        namespace, device = self._array_home
        return namespace.asarray(array_of_type, device=device)

    def _settings(self, n_classes: int) -> Settings:
        """Returns the settings from the parameters, for ``n_classes`` classes. Raises ValueError for an invalid class
        prior.
        """
        log_prior: Real | None = None  # one per class; None for class frequencies
        if self.priors is not None:
            shares = np.asarray(self.priors, dtype=np.float64)
            if shares.shape[0] != n_classes:
                raise ValueError("Number of priors must match number of classes.")
            if not np.isclose(shares.sum(), 1.0):
                raise ValueError("The sum of the priors should be 1.")
            if (shares < 0).any():
                raise ValueError("Priors must be non-negative.")
            log_prior = log(shares)
        return Settings(family=Gaussian(smoothing=float(self.var_smoothing)), log_prior=log_prior)

    def _schema(self, batch: Batch, settings: Settings) -> Schema:
        """Returns the schema of a batch: one feature per column, of the family of the settings."""
        assert isinstance(settings.family, Gaussian)
        return of_one_family(batch, settings.family)

    def _float_dtype_of(self, batch: Batch) -> Any:
        """Returns float32 for float32 rows, otherwise float64."""
        return np.float32 if isinstance(batch, Matrix) and batch.dtype == np.float32 else np.float64

    def _check_sums(self, tally: Tally, X: Any) -> None:
        """Raises an error if the tally shows that a missing number was skipped. ``X``: the rows as the user gave them."""
        if self.missing == "error":
            ((_, _, moments),) = tally.groups  # ``moments.n`` are the rows with a number (columns × classes)
            if isinstance(moments, Moments) and (moments.n.value < tally.rows.value).any():
                self._check_with_sklearn(X)

    def _score_rows(self, X: Any, want: str) -> NDArray[Any]:
        """Returns the scores of the rows X (class numbers, or rows × classes) in their array library. ``want``:
        "class", "posterior", "log_posterior" or "log_joint".
        """
        home = _home_of(X)  # the namespace and device of another array library; None for NumPy
        if home is None:
            return super()._score_rows(X, want)
        namespace, device = home
        return namespace.asarray(super()._score_rows(_to_numpy(X)[0], want), device=device)  # type: ignore[no-any-return]

    def _score(self, model: Model, batch: Batch, X: Any, want: str) -> NDArray[Any]:
        """Returns the scores of a batch (class numbers, or rows × classes) in the float type of the rows. ``X``: the
        same rows as the user gave them; ``want``: "class", "posterior", "log_posterior" or "log_joint".
        """
        if self.missing == "error" and isinstance(batch, Matrix) and batch.dtype.kind == "f":
            with np.errstate(over="ignore", invalid="ignore"):
                is_finite = np.isfinite(batch.numbers(batch.names)[0].sum())
            if not is_finite:
                self._check_with_sklearn(X)
        scores = super()._score(model, batch, X, want)
        float_dtype = np.result_type(self._float_dtype, self._float_dtype_of(batch))
        return scores if want == "class" else scores.astype(float_dtype, copy=False)

    @model_attribute
    def class_prior_(self, model: Model) -> NDArray[Any]:
        """P(class), one per class."""
        return self._like_input(np.exp(model.log_prior))  # type: ignore[no-any-return]

    @model_attribute
    def epsilon_(self, model: Model) -> float:
        """The number that is added to every variance."""
        ((family, features, sums),) = model.tally.groups
        assert isinstance(family, Gaussian)
        return self._float_dtype(family.smoothing_variance(features, sums))  # type: ignore[no-any-return]

    @model_attribute
    def theta_(self, model: Model) -> NDArray[Any]:
        """The mean of each column in each class (classes × columns)."""
        (group,) = model.parameters
        assert isinstance(group, GaussianParameters)
        means = group.origin[:, None] + group.unit[:, None] * group.mean  # columns × classes
        return self._like_input(np.ascontiguousarray(means.T))  # type: ignore[no-any-return]

    @model_attribute
    def var_(self, model: Model) -> NDArray[Any]:
        """The variance of each column in each class, including ``epsilon_`` (classes × columns)."""
        (group,) = model.parameters
        assert isinstance(group, GaussianParameters)
        with np.errstate(over="ignore", under="ignore"):
            # Columns × classes; ``precision`` is 1 / (2 variance), with numbers in the unit of the column.
            variances = np.square(group.unit[:, None] * np.sqrt(0.5 / group.precision))
        return self._like_input(np.ascontiguousarray(variances.T))  # type: ignore[no-any-return]


def _home_of(X: Any) -> tuple[Any, Any] | None:
    """Returns the namespace and device of an array of another library; None for NumPy, or if scikit-learn does not
    dispatch.
    """
    if type(X) is np.ndarray or not get_config()["array_api_dispatch"]:
        return None
    namespace, is_array, device = get_namespace_and_device(X)
    return (namespace, device) if is_array and not namespace.__name__.endswith("numpy") else None


def _to_numpy(*arrays: Any) -> tuple[Any, ...]:
    """Returns the arrays converted to NumPy, in their order; None and lists stay as they are."""
    return tuple(
        array if array is None or isinstance(array, (np.ndarray, list)) else move_to(array, xp=np, device="cpu")
        for array in arrays
    )
