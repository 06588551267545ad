"""CategoricalNB, for columns of categories."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import naive_bayes as sklearn_nb
from sklearn.utils.validation import check_non_negative, validate_data

from banbury.arrays import Real
from banbury.estimators.drop_in.base import MISSING, Settings, model_attribute
from banbury.estimators.drop_in.discrete import Discrete
from banbury.families import Categorical
from banbury.families.categorical import CategoricalParameters
from banbury.families.family import Family, Features
from banbury.model.naive_bayes import Model
from banbury.reading import Batch, Codes
from banbury.reading.batches import Matrix
from banbury.sums import Counts, Keys
from banbury.tally.schema import Schema, of_one_family

CODE_LIMIT = 2**31  # codes must be below


class CategoricalNB(Discrete, sklearn_nb.CategoricalNB):  # type: ignore[misc]
    """scikit-learn's CategoricalNB, computed by Banbury. A category that was never seen gets the probability of its
    pseudo-count.

    ``missing="skip"`` ignores missing values. For categories that are strings, use ``bb.NaiveBayesClassifier``.

    >>> import banbury as bb
    >>> clf = bb.CategoricalNB().fit([[0], [1], [1]], ["out", "in", "in"])
    >>> clf.predict([[0], [2]]).tolist()
    ['out', 'in']
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**sklearn_nb.CategoricalNB._parameter_constraints, **MISSING}
    _sparse = False

    def __init__(
        self,
        *,
        alpha: Any = 1.0,  # the pseudo-count, or one per column
        force_alpha: bool = True,  # whether a tiny alpha is kept, not raised to 1e-10
        fit_prior: bool = True,  # whether the class prior is learned
        class_prior: Any = None,  # P(class), one per class; None: learned or uniform
        min_categories: Any = None,  # the smallest number of categories, or one per column
        missing: str = "error",  # "skip" or "error" for a missing number
    ) -> None:
        """Stores the parameters as they are; ``fit`` checks them."""
        prior = {"fit_prior": fit_prior, "class_prior": class_prior}
        super().__init__(alpha=alpha, force_alpha=force_alpha, min_categories=min_categories, **prior)
        self.missing = missing

    def _family(self, alpha: Any) -> Family | tuple[Family, ...]:
        """Returns the family of all columns, or one per column if ``min_categories`` differs between them. ``alpha``:
        the pseudo-count.
        """
        # The smallest number of categories: of all columns, or of each.
        min_categories = np.array(0 if self.min_categories is None else self.min_categories)
        if self.min_categories is not None and not np.issubdtype(min_categories.dtype, np.signedinteger):
            raise ValueError(f"'min_categories' should have integral type. Got {min_categories.dtype} instead.")
        if min_categories.ndim and min_categories.shape != (self.n_features_in_,):
            raise ValueError(
                f"'min_categories' should have shape ({self.n_features_in_},) when an array-like is provided. Got "
                f"{min_categories.shape} instead."
            )
        if min_categories.ndim:
            return tuple(Categorical(alpha=alpha, codes=max(int(n_categories), 0)) for n_categories in min_categories)
        return Categorical(alpha=alpha, codes=max(int(min_categories), 0))

    def _schema(self, batch: Batch, settings: Settings) -> Schema:
        """Returns the schema of a batch: one feature per column, with its family in the settings; categories are
        integers.
        """
        families = settings.families(len(batch.names))  # one per column
        schema = of_one_family(batch, families[0])
        are_integers = all(template.kind == "integer" for template in schema.features.templates)
        if are_integers and not isinstance(settings.family, tuple):
            return schema
        pairs = zip(schema.features, families, strict=True)  # codes are integers even if there are no rows yet
        return replace(
            schema, features=Features.of(feature._replace(family=family, kind="integer") for feature, family in pairs)
        )

    def _is_plain(self, X: Any) -> bool:
        """Whether the rows are an integer array that needs no conversion."""
        return super()._is_plain(X) and X.dtype.kind in "iu"

    @property
    def _accepted_dtype(self) -> Any:
        """The type to which scikit-learn converts rows: integers, which cannot be missing."""
        return "int" if self.missing == "error" else "numeric"

    def _rows(self, X: Any, y: Any, reset: bool) -> Batch:
        """Returns the rows X as a batch of category codes, checked. ``y``: their labels, or UNLABELLED; ``reset``:
        whether these are the first rows.
        """
        if y is None or self.missing == "skip" or self._is_plain(X):
            batch = super()._rows(X, y, reset)
        else:  # numbers are checked before they are converted to integers
            batch = self._batch(validate_data(self, X, dtype="int", reset=reset))
        if isinstance(batch, Matrix):
            self._check_codes(batch, X)
        if self.missing == "skip" and isinstance(batch, Matrix):
            batch = _to_codes(batch)
        return batch

    def _check_codes(self, batch: Matrix, X: Any) -> None:
        """Raises an error for numbers that are not codes: negative, infinite or too large. ``X``: the rows of the batch
        as the user gave them.
        """
        array = batch.numbers(batch.names)[0]  # rows × columns
        if array.dtype.kind == "f":
            self._check_with_sklearn(X)
        if _all_codes(array):
            return
        # The smallest and the largest number that is not missing.
        low = np.fmin.reduce(array, axis=None)
        high = np.fmax.reduce(array, axis=None)
        if low < 0:
            check_non_negative(np.asarray(X), "CategoricalNB (input X)")
            raise ValueError("Negative values in data passed to CategoricalNB (input X).")
        if high >= CODE_LIMIT:
            raise ValueError(
                f"CategoricalNB (input X) has the code {high:g}; codes must be numbers from 0 to 2**31 - 1."
            )

    @model_attribute
    def category_count_(self, model: Model) -> list[Real]:
        """For each column, the number of rows of each class in each category (classes × categories)."""
        return [np.ascontiguousarray(counts.T) for _, counts in _tables(model)]

    @model_attribute
    def feature_log_prob_(self, model: Model) -> list[Real]:
        """For each column, log P(category | class) (classes × categories)."""
        tables: dict[str, Real] = {}  # by column: classes × categories
        for group in model.parameters:
            assert isinstance(group, CategoricalParameters)
            # The table is (categories of one column after another) × classes; offsets say where each column's begin.
            for feature, (start, end) in zip(group.features, pairwise(group.offsets.tolist()), strict=True):
                tables[feature.name] = np.ascontiguousarray(group.table[start:end].T)
        return [tables[feature] for feature in model.tally.schema.features.names]

    @model_attribute
    def n_categories_(self, model: Model) -> NDArray[np.int64]:
        """The number of categories of each column."""
        return np.array([len(keys) for keys, _ in _tables(model)], dtype=np.int64)


def _all_codes(array: NDArray[Any]) -> bool:
    """Whether all numbers of ``array`` (rows × columns) are codes: integers from 0 to CODE_LIMIT, a power of two. False
    means that they need a closer look.
    """
    if array.dtype.kind not in "iu" or array.itemsize < 4:
        return False
    all_bits = np.bitwise_or.reduce(array, axis=None)  # negative if a number is, and as large as the largest
    return bool(0 <= all_bits < CODE_LIMIT)


def _tables(model: Model) -> list[tuple[Keys, Real]]:
    """Returns for each column its categories, and the number of rows of each category and class (categories × classes)."""
    tables: dict[str, tuple[Keys, Real]] = {}  # by column
    for family, features, counts in model.tally.groups:
        assert isinstance(family, Categorical) and isinstance(counts, Counts)
        if family.codes is not None:
            # A family with a minimum number of categories has all of them, also those without rows.
            counts = counts.with_keys(tuple(family._all_codes(keys) for keys in counts.keys))
        # Cells are categories of one column after another × classes, cut at the offsets of the columns.
        counts_by_column = np.split(counts.cells.value, counts.offsets[1:-1])
        tables |= {
            feature.name: (keys, column_counts)
            for feature, keys, column_counts in zip(features, counts.keys, counts_by_column, strict=True)
        }
    return [tables[feature] for feature in model.tally.schema.features.names]


def _to_codes(batch: Matrix) -> Batch:
    """Returns the batch with its floats as integer codes; −1, which is no category, stands for a missing value. A batch
    of other numbers is returned as it is.
    """
    array = batch.numbers(batch.names)[0]  # rows × columns
    if array.dtype.kind != "f":
        return batch
    columns = {}
    for name, column in zip(batch.names, array.T, strict=True):
        codes = np.where(np.isnan(column), -1, column).astype(np.int64)
        columns[name] = Codes(codes, low=0, values=range(int(codes.max(initial=-1)) + 1), categorical=True)
    codes_batch = Batch(batch.names, batch.n_rows, columns, batch.named)
    codes_batch.first_row = batch.first_row
    return codes_batch
