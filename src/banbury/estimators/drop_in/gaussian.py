"""GaussianNB: the normal distribution of each column."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn import naive_bayes as theirs
from sklearn.utils._array_api import get_namespace_and_device, move_to

from banbury.arrays import Real
from banbury.estimators.drop_in.base import MISSING, DropIn, LabelArray, Settings, read_off
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


class GaussianNB(DropIn, theirs.GaussianNB):  # type: ignore[misc]
    """scikit-learn's GaussianNB, computed by Banbury. Variance smoothing depends on all rows, not on the last batch.

    ``missing="skip"`` ignores missing numbers.

    >>> import banbury as bb
    >>> clf = bb.GaussianNB().partial_fit([[1.0]], ["a"], classes=["a", "b"]).partial_fit([[2.0], [4.0]], ["a", "b"])
    >>> clf.theta_.tolist(), clf.predict([[1.8]]).tolist()
    ([[1.5], [4.0]], ['a'])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**theirs.GaussianNB._parameter_constraints, **MISSING}
    _sparse = False
    _home: tuple[Any, Any] | None = None  # the namespace and device of the first rows, where they were no NumPy array

    def __init__(self, *, priors: Any = None, var_smoothing: float = 1e-9, missing: str = "error") -> None:
        super().__init__(priors=priors, var_smoothing=var_smoothing)
        self.missing = missing

    # Arrays of other libraries, where scikit-learn is told to dispatch: they come here as NumPy's, and answers go back.

    @in_one_step
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Learns from the rows and forgets everything learned before."""
        home = _home(X)
        super().fit(*((X, y, sample_weight) if home is None else _brought(X, y, sample_weight)))
        self._home = home

    @in_one_step
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> None:
        """Learns from more rows. The first call must name all ``classes``."""
        first = not self.__sklearn_is_fitted__()
        home = _home(X)
        if home is not None:
            X, y, sample_weight = _brought(X, y, sample_weight)
        super().partial_fit(X, y, classes, sample_weight)
        if first:
            self._home = home

    def predict(self, X: Any) -> LabelArray:
        """Returns the most probable class of each row."""
        home = _home(X)
        if home is None:
            return super().predict(X)
        labels = super().predict(_brought(X)[0])
        return labels if labels.dtype.kind in "OUST" else home[0].asarray(labels, device=home[1])

    def _sent(self, array: Real) -> Any:
        sent = super()._sent(array)
        home = self._home
        return sent if home is None else home[0].asarray(sent, device=home[1])

    def _settings(self, n_classes: int) -> Settings:
        prior: Real | None = None
        if self.priors is not None:
            shares = np.asarray(self.priors, dtype=np.float64)
            if shares.shape[0] != n_classes:
                raise ValueError("Number of priors must match number of classes.")
            if not np.isclose(shares.sum(), 1.0):
                raise ValueError("The sum of the priors should be 1.")
            if (shares < 0).any():
                raise ValueError("Priors must be non-negative.")
            prior = log(shares)
        return Settings(family=Gaussian(smoothing=float(self.var_smoothing)), log_prior=prior)

    def _schema(self, batch: Batch, settings: Settings) -> Schema:
        assert isinstance(settings.family, Gaussian)
        return of_one_family(batch, settings.family)

    def _float_dtype_of(self, batch: Batch) -> Any:
        return np.float32 if isinstance(batch, Matrix) and batch.dtype == np.float32 else np.float64

    def _check_sums(self, tally: Tally, X: Any) -> None:
        if self.missing == "error":
            ((_, _, moments),) = tally.groups
            if isinstance(moments, Moments) and (moments.n.value < tally.rows.value).any():
                self._refuse(X)

    def _score_rows(self, X: Any, want: str) -> NDArray[Any]:
        home = _home(X)
        if home is None:
            return super()._score_rows(X, want)
        return home[0].asarray(super()._score_rows(_brought(X)[0], want), device=home[1])  # type: ignore[no-any-return]

    def _score(self, model: Model, batch: Batch, X: Any, want: str) -> NDArray[Any]:
        if self.missing == "error" and isinstance(batch, Matrix) and batch.dtype.kind == "f":
            with np.errstate(over="ignore", invalid="ignore"):
                fine = np.isfinite(batch.numbers(batch.names)[0].sum())
            if not fine:
                self._refuse(X)
        scores = super()._score(model, batch, X, want)
        both = np.result_type(self._float_dtype, self._float_dtype_of(batch))
        return scores if want == "class" else scores.astype(both, copy=False)

    @read_off
    def class_prior_(self, model: Model) -> NDArray[Any]:
        """P(class)."""
        return self._sent(np.exp(model.log_prior))  # type: ignore[no-any-return]

    @read_off
    def epsilon_(self, model: Model) -> float:
        """The number that is added to every variance."""
        ((family, features, sums),) = model.tally.groups
        assert isinstance(family, Gaussian)
        return self._float_dtype(family.smoothing_variance(features, sums))  # type: ignore[no-any-return]

    @read_off
    def theta_(self, model: Model) -> NDArray[Any]:
        """The mean of each column in each class (classes × columns)."""
        (group,) = model.parameters
        assert isinstance(group, GaussianParameters)
        means = group.origin[:, None] + group.unit[:, None] * group.mean
        return self._sent(np.ascontiguousarray(means.T))  # type: ignore[no-any-return]

    @read_off
    def var_(self, model: Model) -> NDArray[Any]:
        """The variance of each column in each class, including ``epsilon_`` (classes × columns)."""
        (group,) = model.parameters
        assert isinstance(group, GaussianParameters)
        with np.errstate(over="ignore", under="ignore"):
            variances = np.square(group.unit[:, None] * np.sqrt(0.5 / group.precision))
        return self._sent(np.ascontiguousarray(variances.T))  # type: ignore[no-any-return]


def _home(X: Any) -> tuple[Any, Any] | None:
    """Where an array of another library than NumPy lives; None for all else, and unless scikit-learn is told to dispatch."""
    if type(X) is np.ndarray or not get_config()["array_api_dispatch"]:
        return None
    xp, is_array, device = get_namespace_and_device(X)
    return (xp, device) if is_array and not xp.__name__.endswith("numpy") else None


def _brought(*arrays: Any) -> tuple[Any, ...]:
    """The same as NumPy arrays."""
    return tuple(
        array if array is None or isinstance(array, (np.ndarray, list)) else move_to(array, xp=np, device="cpu")
        for array in arrays
    )
