"""How good a learner is on rows that it has not seen, and how long it takes; shared by the tables of accuracies."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.datasets import Part


class Quality(NamedTuple):
    """Over all splits: the share of right answers, the log loss (None without probabilities), and seconds."""

    accuracy: float
    log_loss: float | None
    fit: float
    predict: float


def measure(make: Callable[[Any], Any], splits: Iterable[tuple[Part, Part]]) -> Quality:
    """Fit a learner, made for the rows of each split, and test it. All means are over the rows."""
    n_tested = n_judged = 0
    n_right = total_loss = fit_seconds = predict_seconds = 0.0
    for train, test in splits:
        learner = make(train.rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            learner.fit(train.rows, train.labels)
            fitted = time.perf_counter()
            posteriors = learner.predict_proba(test.rows) if hasattr(learner, "predict_proba") else None
            predictions = (
                learner.predict(test.rows) if posteriors is None else learner.classes_[posteriors.argmax(axis=1)]
            )
            predict_seconds += time.perf_counter() - fitted
        fit_seconds += fitted - start
        n_tested += len(test)
        n_right += len(test) * test.accuracy(predictions)
        # Few rows to learn from may lack a class of the test, which would make the log loss infinite.
        if posteriors is not None and set(test.labels) <= set(learner.classes_):
            total_loss += len(test) * log_loss(test.labels, posteriors, labels=learner.classes_)
            n_judged += len(test)
    loss = total_loss / n_judged if n_judged else None
    return Quality(n_right / n_tested, loss, fit_seconds, predict_seconds)


def encode_columns(rows: Any, sparse: bool = True) -> ColumnTransformer:
    """Scaled numbers, a column for each word, and a missing word as a word."""
    numeric = list(rows.select_dtypes("number"))
    words = [name for name in rows if name not in numeric]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=sparse)
    coded = make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), encoder)
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    return make_column_transformer((scaled, numeric), (coded, words))


def logistic_regression(rows: Any) -> Pipeline:
    return make_pipeline(encode_columns(rows), LogisticRegression(max_iter=2000))
