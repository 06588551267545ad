"""Converts X, y and sample_weight to batches, labels and weights; checks the columns as scikit-learn does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.estimators.guard import Guarded
from banbury.reading import Batch, from_texts, is_texts, n_threads, read
from banbury.reading.batches import join_batches
from banbury.scikit_learn import DataConversionWarning
from banbury.sums import sort_keys
from banbury.tally.label_sets import are_sets
from banbury.tally.schema import Schema, Trees, infer
from banbury.tally.table import Labels
from banbury.tally.tally import Tally, tallies_of_batch

M = TypeVar("M")  # the class of an estimator's model


class TakesTables(Guarded):
    """An estimator that accepts texts and tables of numbers, strings and categories with missing values, also sparse
    ones.
    """

    features: Any
    missing: Any
    n_features_in_: int
    _trees: Trees = "many"  # whether columns of numbers become quantile trees

    def __sklearn_tags__(self) -> Any:
        """Returns the tags of scikit-learn, which say that missing values, sparse matrices and texts are accepted."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _batch(self, X: Any) -> Batch:
        """Returns the rows X as one batch."""
        return one_batch(X)

    @property
    def _families(self) -> Any:
        """The families, as ``bb.count`` takes them in ``features``."""
        return self.features

    def _schema(self, batch: Batch, more_to_come: bool = False) -> Schema:
        """Returns the schema inferred from a batch. ``more_to_come``: whether further rows follow, which may have other
        values.
        """
        # No column is dropped, and none is the target.
        return infer(batch, [], None, self._families, self.missing, more_to_come, self._trees)

    def _read_rows_and_labels(self, X: Any, y: Any) -> tuple[Batch, NDArray[Any]]:
        """Returns the rows X as one batch, and the labels y as an array of the same length, in which some may be
        missing. Raises an error if there are none, or another number.
        """
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        batch = self._batch(X)
        labels = labels_of(y, "y")
        if len(labels) != batch.n_rows:
            raise errors.length_mismatch("labels", len(labels), batch.n_rows)
        return batch, labels

    def _read_rows(self, X: Any) -> Batch:
        """Returns the rows X as one batch, whose columns are checked."""
        batch = self._batch(X)
        self._check_columns(batch)
        return batch

    def _check_columns(self, batch: Batch) -> None:
        """Raises an error if the rows of ``batch`` have another number of columns than the first, and warns if only one
        of both has names, with scikit-learn's wording. Named columns are matched by name, so a frame may have more or
        fewer.
        """
        has_names = "feature_names_in_" in self.__dict__
        if batch.named and has_names:
            return
        if batch.named != has_names:
            # Words of the warning.
            verb, fitted = ("has", "without") if batch.named else ("does not have valid", "with")
            errors.warn(
                UserWarning(f"X {verb} feature names, but {type(self).__name__} was fitted {fitted} feature names")
            )
        if len(batch.names) != self.n_features_in_:
            raise errors.wrong_width(len(batch.names), self.n_features_in_, type(self).__name__)

    def _note_columns(self, schema: Schema) -> None:
        """Sets ``n_features_in_`` and ``feature_names_in_`` from a schema."""
        self.n_features_in_ = len(schema.columns)
        self.__dict__.pop("feature_names_in_", None)
        if schema.named:
            self.feature_names_in_ = np.array(schema.columns, dtype=object)


class LearnsRows(TakesTables, Generic[M]):
    """An estimator that learns and forgets rows."""

    @property
    def tally_(self) -> Tally:
        """The tally of all rows learned so far."""
        with self._lock:
            return self._learner_of_fit().tally

    @property
    def model_(self) -> M:
        """The model of the current tally."""
        with self._lock:
            return self._learner_of_fit().model  # type: ignore[no-any-return]

    @property
    def alpha_(self) -> float:
        """The pseudo-count with which models are estimated."""
        return self._learner_of_fit().settings.choice.alpha  # type: ignore[no-any-return]


class WeighsEvidence(LearnsRows[M]):
    """An estimator that can weigh its evidence."""

    @property
    def weighing_(self) -> Any:
        """The weights of evidence; None if the evidence was not weighed."""
        return self._learner_of_fit().settings.weighing

    @property
    def weights_stale_(self) -> bool:
        """Whether rows were learned or forgotten since the evidence was weighed."""
        with self._lock:
            return self._learner_of_fit().weights_stale


def one_batch(X: Any) -> Batch:
    """Returns X as one batch. Raises an error unless it has at least one row and one column."""
    if hasattr(X, "read_all"):  # an Arrow stream, which can be read only once
        X = X.read_all()
    # Strings in a list are always texts, never file names.
    # Usually one.
    batches = list(from_texts(X, names=None, batch_rows=None) if is_texts(X) else read(X))
    if len(batches) > 1 and hasattr(X, "combine_chunks"):  # an Arrow table in pieces
        batches = list(read(X.combine_chunks()))
    if len(batches) > 1 and all(batch.is_text(name) for batch in batches for name in batch.names):  # documents
        batches = [join_batches(batches)]
    errors.require(len(batches) == 1, "X", f"{len(batches)} batches of rows", "one table")
    [batch] = batches
    if batch.n_rows == 0 or not batch.names:
        kind = "feature" if batch.n_rows else "sample"
        shape = (batch.n_rows, len(batch.names))
        raise errors.EmptyData(f"Found array with 0 {kind}(s) (shape={shape}) while a minimum of 1 is required.")
    if batch.named and type(X).__module__.startswith("pandas") and not any(isinstance(name, str) for name in X.columns):
        batch.named = False  # as in scikit-learn, columns that are merely numbered have no names
    return batch


def rows_to_validate(X: Any) -> Any:
    """Returns X for ``bb.cross_validate``: as one batch, or as it is if it names a file, which that reads itself."""
    return X if isinstance(X, (str, os.PathLike)) else one_batch(X)


def as_array(names: tuple[Any, ...], dtype: np.dtype[Any] | None) -> NDArray[Any]:
    """Returns ``names``, classes or labels, as an array of the type ``dtype``, that of the labels y; of objects if they
    have several types (``dtype`` is None).
    """
    if dtype is not None and dtype.kind in "biufmM":
        return np.array(names, dtype=dtype)
    one_type = len({type(name) for name in names}) == 1  # whether all have the same type in Python
    return np.array(names, dtype=None if one_type and dtype is not None and dtype.kind != "O" else object)


def sort_classes(names: Any, dtype: np.dtype[Any] | None) -> NDArray[Any]:
    """Returns the classes ``names`` in order as an array. Raises an error if one of them is not of the type ``dtype``
    of the labels y.
    """
    sorted_names = sort_keys(names)
    try:
        return as_array(sorted_names, dtype)
    except (TypeError, ValueError, OverflowError):
        raise errors.bad_setting("classes", list(sorted_names), f"labels of the type of y ({dtype})") from None


def _label_set_error(name: str) -> errors.BadSetting:
    """Returns the error of labels that are sets. ``name``: the parameter that contains them."""
    return errors.bad_setting(name, "sets of labels", "one class per row; use bb.MultiLabelClassifier for several")


def labels_of(y: Any, name: str) -> NDArray[Any]:
    """Returns the labels y as a one-dimensional array, in which missing ones are None or NaN. Raises an error for sets,
    numbers that are not whole and other types; errors use scikit-learn's wording and ``name``, that of the parameter.
    """
    if isinstance(y, np.ma.MaskedArray):
        is_masked = np.ma.getmaskarray(y)
        y = np.array(y.data, dtype=object)
        y[is_masked] = None
    try:
        labels = y if type(y) is np.ndarray else np.asarray(y)
    except ValueError:  # lists of several lengths
        raise _label_set_error(name) from None
    if labels.dtype.kind == "O" and labels.ndim == 1 and are_sets(labels):
        raise _label_set_error(name)
    if isinstance(y, (list, tuple)) and labels.ndim == 1:
        # NumPy would turn numbers and missing values into texts, or booleans into numbers.
        # Whether labels that were no texts have become texts.
        became_texts = labels.dtype.kind == "U" and not all(isinstance(label, str) for label in y)
        if became_texts or (labels.dtype.kind == "f" and any(isinstance(label, (bool, np.bool_)) for label in y)):
            labels = np.empty(len(y), dtype=object)
            labels[:] = y
    if labels.ndim == 2 and labels.shape[1] == 1:
        text = f"A column-vector {name} was passed when a 1d array was expected. Please change the shape of {name} to "
        errors.warn(DataConversionWarning(text + "(n_samples,), for example using ravel()."))
        labels = labels.ravel()
    if labels.ndim != 1:
        text = f"{name} should be a 1d array, got an array of shape {labels.shape} instead."
        hint = " For several labels per row, use bb.MultiLabelClassifier." if labels.ndim == 2 else ""
        raise ValueError(text + hint)
    dtype_kind = labels.dtype.kind
    if dtype_kind == "f":
        if np.isinf(labels).any():
            raise ValueError(f"Input {name} contains infinity or a value too large for {labels.dtype!r}.")
        if not np.array_equal(labels, np.rint(labels), equal_nan=True):
            raise ValueError(
                "Unknown label type: continuous. Maybe you are trying to fit a classifier, which expects discrete classes on "
                "a regression target with continuous values."
            )
    elif dtype_kind in "SVcmM":
        raise TypeError(f"labels of type {labels.dtype} are not supported. Use texts, numbers or booleans.")
    return labels


def count_batch(batch: Batch, schema: Schema, labels: Any, sample_weight: Any, threads: int | None) -> Tally:
    """Returns the tally of the rows of ``batch`` under a schema, with their labels (one per row, or label sets) and
    sample weights (one per row, or None).
    """
    weights = sample_weights(sample_weight, batch.n_rows)
    # The labels of the rows with their weights.
    target = Labels.of(labels, weights, classes=None, threads=n_threads(threads))
    target.check_length(batch.n_rows)
    [tally] = tallies_of_batch(batch, schema, target)
    return tally


def warn_of_missing_labels(skipped: int) -> None:
    """Warns about rows without a label, if there are any. ``skipped``: how many."""
    if skipped:
        errors.warn(
            f"{errors.many(skipped, 'row')} without a label (None or NaN) {'is' if skipped == 1 else 'are'} skipped. Label "
            "them, remove them, or use bb.SemiSupervisedClassifier, which learns from them too."
        )


def with_absent_columns(
    scores: NDArray[Any], names: Sequence[Any], all_names: NDArray[Any], absent: float = 0.0
) -> NDArray[Any]:
    """Returns scores (rows × ``names``) as rows × ``all_names``, with the number ``absent`` in the columns that are not
    in ``names``; the same array if both are the same names.
    """
    positions = {name: position for position, name in enumerate(all_names.tolist())}  # of the column of each name
    if tuple(positions) == tuple(names):
        return scores
    all_scores = np.full((len(scores), len(positions)), absent, scores.dtype)
    all_scores[:, [positions[name] for name in names]] = scores
    return all_scores


def row_weights(sample_weight: Any, batch: Batch) -> Real:
    """Returns a weight for each row, checked as ``bb.count`` checks it; ones if ``sample_weight`` is None."""
    rows_without_labels = Labels.without_target(sample_weights(sample_weight, batch.n_rows), threads=1)
    if rows_without_labels.weights is None:
        return np.ones(batch.n_rows)
    rows_without_labels.check_length(batch.n_rows)
    return rows_without_labels.weights


def sample_weights(sample_weight: Any, n_rows: int) -> Any:
    """Returns the sample weights, one per row; None if there are none. A single number counts for every row. Raises
    ValueError for a table of weights; the weights themselves are checked elsewhere.
    """
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.ndim == 0 and weights.dtype.kind in "biuf":
        return np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    return sample_weight
