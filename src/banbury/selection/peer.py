"""Another learner on the same rows: what scikit-learn's classifiers are given, and what they answer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Int, Real
from banbury.distributions import Bernoulli, Occurrences, Text
from banbury.distributions.categorical import values_of
from banbury.distributions.family import Feature
from banbury.readers import Batch
from banbury.selection.dataset import Dataset
from banbury.tally import Tally

LOGISTIC_REGRESSION = "logistic_regression"
WIDEST_ARRAY = 1000  # columns; more are given as a sparse matrix
MOST_STEPS = 10_000
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)  # of logistic regression: the inverse of what its L2 penalty weighs
FOLDS = 3  # by which it chooses among them


@dataclass(frozen=True, eq=False)
class Peer:
    """A scikit-learn classifier, to be fitted anew each time; ``choices`` are settings that it tries before."""

    name: str
    classifier: Any
    choices: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, beside: Any) -> Peer:
        if isinstance(beside, str):
            if beside != LOGISTIC_REGRESSION:
                raise errors.unknown_choice("beside", beside, [LOGISTIC_REGRESSION])
            from sklearn.linear_model import LogisticRegression

            return cls("logistic regression", LogisticRegression(max_iter=MOST_STEPS), {"C": STRENGTHS})
        able = all(hasattr(beside, verb) for verb in ("get_params", "fit", "predict_proba"))
        if isinstance(beside, type) or not able:
            wanted = f"{LOGISTIC_REGRESSION!r} or a scikit-learn classifier with predict_proba, such as RandomForestClassifier()"
            raise errors.bad_setting("beside", beside, wanted)
        return cls(type(beside).__name__, beside)

    def posteriors(self, learned: Any, tested: Any, labels: Any, weights: Real | None, n_classes: int) -> Real:
        """P(class | row) of the rows tested, after fitting to the others."""
        from sklearn.exceptions import ConvergenceWarning
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn brings it along

        classifier = self._fresh(labels)
        # Products of small matrices take longer with threads, many times so where the processors are busy.
        with warnings.catch_warnings(), threadpool_limits(1, "blas"):
            warnings.simplefilter("ignore", ConvergenceWarning)
            classifier.fit(learned, labels, **self._weighed(weights))
            found = np.asarray(classifier.predict_proba(tested), dtype=np.float64)
        wide = np.zeros((len(found), n_classes))
        wide[:, np.asarray(classifier.classes_, dtype=np.int64)] = found
        return wide

    def _fresh(self, labels: Any) -> Any:
        """One not fitted yet; it chooses its settings by cross-validation where every class has rows enough for that."""
        from sklearn.base import clone
        from sklearn.model_selection import GridSearchCV

        folds = min(FOLDS, int(np.unique(labels, return_counts=True)[1].min()))
        if not self.choices or folds < 2:
            return clone(self.classifier)
        return GridSearchCV(clone(self.classifier), dict(self.choices), cv=folds, scoring="neg_log_loss")

    def _weighed(self, weights: Real | None) -> dict[str, Real]:
        """The weights of rows as the classifier takes them, or the last step of a pipeline."""
        from sklearn.utils.validation import has_fit_parameter

        if weights is None:
            return {}
        name, last = self.classifier.steps[-1] if hasattr(self.classifier, "steps") else ("", self.classifier)
        if not has_fit_parameter(last, "sample_weight"):
            raise errors.bad_setting(
                "beside", self.name, "a classifier that takes sample_weight, since rows have weights"
            )
        return {f"{name}__sample_weight" if name else "sample_weight": weights}


@dataclass(frozen=True, eq=False)
class PeerArrays:
    """A data set as arrays: numbers, NaN where missing; categories by number, −1 where missing; how often texts have words."""

    numbers: Real  # (rows, columns)
    categories: Int  # (rows, columns)
    words: tuple[Any, ...] = ()  # a sparse matrix of rows × words for each column of text, or block of occurrences

    @classmethod
    def of(cls, rows: Dataset) -> PeerArrays:
        """All columns but those of text; those of blocks one by one."""
        numeric = [name for f in rows.schema.features if _is_number(f) for name in f.inputs]
        valued = [f for f in rows.schema.features if f.family.shape == "keys" and not _is_number(f)]
        others = [column for feature in valued for column in _one_by_one(feature)]
        numbers = np.concatenate([_numbers(batch, numeric) for batch in rows.batches])
        columns = [_categories(rows, feature)[:, None] for feature in others]
        return cls(numbers, np.concatenate([np.zeros((rows.n_rows, 0), dtype=np.int64), *columns], axis=1))

    def with_words(self, rows: Dataset, counted: Tally) -> PeerArrays:
        """The columns of text too, by the ids that words have in a tally."""
        texts = zip(rows.schema.texts, counted.words, strict=True)
        return replace(self, words=tuple(_occurrences(rows, feature, sums.table) for feature, sums in texts))

    def matrices(self, learned: Int, tested: Int, tally: Tally) -> tuple[Any, Any]:
        """What to fit and what to answer, scaled and weighed by the rows learned from: arrays, or sparse matrices if wide.

        ``tally`` is that of the rows learned from: its words are those that are used.
        """
        from scipy import sparse

        blocks = [
            (way.fit_transform(columns[learned]), way.transform(columns[tested]))
            for way, columns in self._blocks(tally)
            if columns.shape[1]
        ]
        sides: Any = list(zip(*blocks, strict=True)) if blocks else [[np.zeros((len(x), 1))] for x in (learned, tested)]
        if self.words or sum(part.shape[1] for part in sides[0]) > WIDEST_ARRAY:
            fitted, answered = ([sparse.csr_matrix(part) for part in side] for side in sides)
            return sparse.hstack(fitted, format="csr"), sparse.hstack(answered, format="csr")
        plain = [[part.toarray() if sparse.issparse(part) else part for part in side] for side in sides]
        return np.hstack(plain[0]), np.hstack(plain[1])

    def _blocks(self, tally: Tally) -> list[tuple[Any, Any]]:
        """Columns of each kind, and what scikit-learn makes of them."""
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        scaled = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
        blocks = [(scaled, self.numbers), (OneHotEncoder(handle_unknown="ignore"), self.categories)]
        for feature, sums, matrix in zip(tally.schema.texts, tally.words, self.words, strict=True):
            if isinstance(feature.family, Text):
                kept = feature.family.words(sums.table).ids
                matrix = matrix[:, np.sort(kept[kept < matrix.shape[1]])]
            blocks.append((TfidfTransformer(), matrix))
        return blocks


def _is_number(feature: Feature) -> bool:
    flag = isinstance(feature.family, Bernoulli) and feature.family.yes is None and feature.kind != "string"
    return feature.family.shape in ("bins", "moments", "products") or flag


def _one_by_one(feature: Feature) -> list[Feature]:
    """A column of values; of a joint table its columns."""
    if not feature.columns:
        return [feature]
    return [Feature(name, feature.family, kind=kind) for name, kind in zip(feature.columns, feature.kinds, strict=True)]


def _numbers(batch: Batch, names: Sequence[str]) -> Real:
    columns = [column.reshape(batch.n_rows, -1) for column in batch.numbers(names)] if names else []
    return np.concatenate([np.zeros((batch.n_rows, 0)), *columns], axis=1, dtype=np.float64)


def _categories(rows: Dataset, feature: Feature) -> Int:
    """Numbers of a column's values, the same in all batches; −1 where missing."""
    place: dict[Any, int] = {}
    found = []
    for batch in rows.batches:
        column = values_of(batch, feature)
        used, inverse = np.unique(np.asarray(column.codes, dtype=np.int64), return_inverse=True)
        at = (used - column.low).tolist()
        values = [column.values[k] if 0 <= k < len(column.values) else None for k in at]
        numbers = [-1 if value is None else place.setdefault(value, len(place)) for value in values]
        found.append(np.array(numbers, dtype=np.int64)[inverse.reshape(-1)])
    return np.concatenate(found)


def _occurrences(rows: Dataset, feature: Feature, table: Any) -> Any:
    """How often each text has each word of a table: a sparse matrix, rows × words; of a block rows × columns."""
    from scipy import sparse

    parts = []
    if isinstance(feature.family, Occurrences):
        return sparse.vstack([_counts(feature.family, feature, batch) for batch in rows.batches], format="csr")
    assert isinstance(feature.family, Text)
    for batch in rows.batches:
        texts = feature.family.texts(batch, feature.name)
        offsets, ids = table.encode(feature.family.tokeniser, texts, rows.threads)
        known = ids >= 0
        starts = np.append(0, np.cumsum(known))[offsets]
        part = sparse.csr_matrix((np.ones(int(starts[-1])), ids[known], starts), shape=(batch.n_rows, table.n_ids))
        part.sum_duplicates()
        parts.append(part)
    return sparse.vstack(parts, format="csr")


def _counts(family: Occurrences, feature: Feature, batch: Batch) -> Any:
    """A block's numbers as they are counted."""
    from scipy import sparse

    cells = batch.occurrences(feature.inputs)
    if isinstance(cells, tuple):
        offsets, columns, values = cells
        matrix = sparse.csr_matrix((values, columns, offsets), shape=(batch.n_rows, len(feature.inputs)))
    else:
        matrix = sparse.csr_matrix(np.asarray(cells))
    matrix = matrix.astype(np.float64)
    matrix.data = np.nan_to_num(matrix.data)
    if family.threshold is not None:
        matrix.data = (matrix.data > family.threshold).astype(np.float64)
    return matrix
