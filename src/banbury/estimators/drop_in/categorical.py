"""CategoricalNB: which category each column has."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import naive_bayes as theirs
from sklearn.utils.validation import check_non_negative, validate_data

from banbury import _core
from banbury.arrays import Real
from banbury.estimators.drop_in.base import MISSING, Settings, read_off
from banbury.estimators.drop_in.discrete import Discrete
from banbury.families import Categorical
from banbury.families.categorical import CategoricalParameters
from banbury.families.family import Family
from banbury.model.naive_bayes import Model
from banbury.reading import Batch, Codes
from banbury.reading.batches import Matrix
from banbury.sums import Counts, Keys
from banbury.tally.schema import Schema, of_one_family
from banbury.threads import n_threads

LARGEST_CODE = 2**31


class CategoricalNB(Discrete, theirs.CategoricalNB):  # type: ignore[misc]
    """scikit-learn's CategoricalNB, computed by Banbury. A category that was never seen gets the probability of its
    pseudo-count.

    ``missing="skip"`` ignores missing values. For categories that are strings, use ``bb.NaiveBayesClassifier``.

    >>> import banbury as bb
    >>> clf = bb.CategoricalNB().fit([[0], [1], [1]], ["out", "in", "in"])
    >>> clf.predict([[0], [2]]).tolist()
    ['out', 'in']
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**theirs.CategoricalNB._parameter_constraints, **MISSING}
    _sparse = False

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        min_categories: Any = None,
        missing: str = "error",
    ) -> None:
        prior = {"fit_prior": fit_prior, "class_prior": class_prior}
        super().__init__(alpha=alpha, force_alpha=force_alpha, min_categories=min_categories, **prior)
        self.missing = missing

    def _family(self, alpha: Any) -> Family | tuple[Family, ...]:
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

    def _schema(self, batch: Batch, settings: Settings) -> Schema:
        families = settings.families(len(batch.names))
        schema = of_one_family(batch, families[0])
        are_integers = all(feature.kind == "integer" for feature in schema.features)
        if are_integers and not isinstance(settings.family, tuple):
            return schema
        pairs = zip(schema.features, families, strict=True)  # codes are whole numbers even before any came
        return replace(schema, features=tuple(f._replace(family=family, kind="integer") for f, family in pairs))

    def _plain(self, X: Any) -> bool:
        return super()._plain(X) and X.dtype.kind in "iu"

    @property
    def _dtype(self) -> Any:
        return "int" if self.missing == "error" else "numeric"

    def _rows(self, X: Any, y: Any, reset: bool) -> Batch:
        if y is None or self.missing == "skip" or self._plain(X):
            batch = super()._rows(X, y, reset)
        else:  # numbers are checked before they become whole
            batch = self._batch(validate_data(self, X, dtype="int", reset=reset))
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
        if _all_codes(array):
            return
        low = np.fmin.reduce(array, axis=None)
        high = np.fmax.reduce(array, axis=None)
        if low < 0:
            check_non_negative(np.asarray(X), "CategoricalNB (input X)")
            raise ValueError("Negative values in data passed to CategoricalNB (input X).")
        if high >= LARGEST_CODE:
            raise ValueError(
                f"CategoricalNB (input X) has the code {high:g}; codes must be numbers from 0 to 2**31 - 1."
            )

    @read_off
    def category_count_(self, model: Model) -> list[Real]:
        """For each column, the number of rows of each class in each category (classes × categories)."""
        return [np.ascontiguousarray(cells.T) for _, cells in _tables(model)]

    @read_off
    def feature_log_prob_(self, model: Model) -> list[Real]:
        """For each column, log P(category | class) (classes × categories)."""
        tables: dict[str, Real] = {}
        for group in model.parameters:
            assert isinstance(group, CategoricalParameters)
            for feature, (start, end) in zip(group.features, pairwise(group.offsets.tolist()), strict=True):
                tables[feature.name] = np.ascontiguousarray(group.table[start:end].T)
        return [tables[feature.name] for feature in model.tally.schema.features]

    @read_off
    def n_categories_(self, model: Model) -> NDArray[np.int64]:
        """The number of categories of each column."""
        return np.array([len(keys) for keys, _ in _tables(model)], dtype=np.int64)


def _all_codes(array: NDArray[Any]) -> bool:
    """Whether numbers of 32 or 64 bits are codes for sure; one below 0 is a large one without its sign."""
    if array.dtype.kind not in "iu" or array.itemsize < 4:
        return False
    try:
        _, high = _core.span([array.view(f"u{array.itemsize}")], n_threads(None))
    except _core.BadValue:
        return False
    return int(high.max(initial=0)) < LARGEST_CODE


def _tables(model: Model) -> list[tuple[Keys, Real]]:
    """Per column all its categories, and the rows that have each, (categories, classes)."""
    tables: dict[str, tuple[Keys, Real]] = {}
    for family, features, counts in model.tally.groups:
        assert isinstance(family, Categorical) and isinstance(counts, Counts)
        if family.codes is not None:
            counts = counts.with_keys(tuple(family._all_codes(keys) for keys in counts.keys))
        cells = np.split(counts.cells.value, counts.offsets[1:-1])
        tables |= {f.name: (keys, part) for f, keys, part in zip(features, counts.keys, cells, strict=True)}
    return [tables[feature.name] for feature in model.tally.schema.features]


def _whole(batch: Matrix) -> Batch:
    """Numbers with gaps as whole ones, and gaps."""
    array = batch.numbers(batch.names)[0]
    if array.dtype.kind != "f":
        return batch
    columns = {}
    for name, column in zip(batch.names, array.T, strict=True):
        codes = np.where(np.isnan(column), -1, column).astype(np.int64)
        columns[name] = Codes(codes, 0, range(int(codes.max(initial=-1)) + 1), categorical=True)
    codes_batch = Batch(batch.names, batch.n_rows, columns, batch.named)
    codes_batch.first_row = batch.first_row
    return codes_batch
