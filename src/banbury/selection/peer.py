"""Another learner on the same rows: what scikit-learn's classifiers are given, and what they answer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Int, Real
from banbury.distributions.key_families import looked_up
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
        from sklearn.base import clone
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.model_selection import GridSearchCV
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn brings it along

        classifier, folds = clone(self.classifier), min(FOLDS, int(np.unique(labels, return_counts=True)[1].min()))
        if self.choices and folds > 1:  # every class has rows enough to choose its settings by cross-validation
            classifier = GridSearchCV(classifier, dict(self.choices), cv=folds, scoring="neg_log_loss")
        # Products of small matrices take longer with threads, many times so where the processors are busy.
        with warnings.catch_warnings(), threadpool_limits(1, "blas"):
            warnings.simplefilter("ignore", ConvergenceWarning)
            classifier.fit(learned, labels, **self._weighed(weights))
            shares = np.asarray(classifier.predict_proba(tested), dtype=np.float64)
        wide = np.zeros((len(shares), n_classes))
        wide[:, np.asarray(classifier.classes_, dtype=np.int64)] = shares
        return wide

    def _weighed(self, weights: Real | None) -> dict[str, Real]:
        """The weights of rows as the classifier takes them, or the last step of a pipeline."""
        from sklearn.utils.validation import has_fit_parameter

        if weights is None:
            return {}
        name, last = self.classifier.steps[-1] if hasattr(self.classifier, "steps") else ("", self.classifier)
        if not has_fit_parameter(last, "sample_weight"):
            wanted = "a classifier that takes sample_weight, since rows have weights"
            raise errors.bad_setting("beside", self.name, wanted)
        return {f"{name}__sample_weight" if name else "sample_weight": weights}


@dataclass(frozen=True, eq=False)
class PeerArrays:
    """A data set as arrays: numbers, NaN where missing; categories by number, −1 where missing; how often texts have words."""

    numbers: Real  # (rows, columns)
    categories: Int  # (rows, columns)
    words: Mapping[str, Any]  # a sparse matrix of rows × words for each column of text, or block of occurrences

    @classmethod
    def of(cls, rows: Dataset, counted: Tally) -> PeerArrays:
        """All columns, those of blocks one by one; words by the ids that they have in a tally."""
        from scipy import sparse

        none = np.zeros((rows.n_rows, 0))
        numbers, categories, words = [none], [none.astype(np.int64)], {}
        for family, features, sums in counted.groups:
            batches = [family.encoded(batch, features, sums, rows.threads) for batch in rows.batches]
            columns = zip(*(batch.numbers for batch in batches), strict=True)
            numbers += [np.concatenate(column, dtype=np.float64) for column in columns]
            categories += [_numbered(column)[:, None] for column in zip(*(b.categories for b in batches), strict=True)]
            if batches[0].words is not None:
                words[features[0].name] = sparse.vstack([batch.words for batch in batches], format="csr")
        return cls(np.concatenate(numbers, axis=1), np.concatenate(categories, axis=1), words)

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
        for family, features, sums in tally.groups:
            for matrix in (self.words[feature.name] for feature in features if feature.name in self.words):
                kept = family.encoded_words(sums)
                blocks.append((TfidfTransformer(), matrix if kept is None else matrix[:, kept[kept < matrix.shape[1]]]))
        return blocks


def _numbered(batches: Sequence[Any]) -> Int:
    """Numbers of a column's values, the same in all batches; −1 where missing."""
    place: dict[Any, int] = {}

    def numbers(values: Sequence[Any]) -> list[int]:
        return [place.setdefault(value, len(place)) for value in values]

    return np.concatenate([looked_up(column, numbers) for column in batches])
