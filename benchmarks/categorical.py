"""Coded columns: 2,000,000 × 15 int64 codes of up to 1,000 values, 5 classes, beside CategoricalNB."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.naive_bayes import CategoricalNB

import banbury as bb
from benchmarks.measure import Setting, Task, same_classes, same_numbers
from benchmarks.yardstick import call, loops, reading, shared

ROWS, COLUMNS, CLASSES = 2_000_000, 15, 5
VALUES = np.geomspace(2, 1000, COLUMNS).astype(np.int64)  # 2 .. 1,000


def data(rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Codes whose distribution leans a little by class; every code occurs, as CategoricalNB takes all for possible."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, CLASSES, rows)
    lean = np.exp(0.15 * rng.standard_normal((CLASSES, COLUMNS)))
    X = np.empty((rows, COLUMNS), dtype=np.int64)
    for start in range(0, rows, 100_000):
        classes = y[start : start + 100_000]
        X[start : start + 100_000] = VALUES * rng.random((len(classes), COLUMNS)) ** lean[classes]
    X[: max(VALUES)] = np.arange(max(VALUES))[:, None] % VALUES
    return X, y


def tasks(setting: Setting) -> Iterator[Task]:
    rows = setting.rows(ROWS)
    X, y = data(rows)
    what = f"{rows:,} × {COLUMNS} int64 codes below 1,000, {CLASSES} classes"
    memory = reading(X, setting.threads)
    c_fit, c_predict = c_loops(X, y, setting.threads) if loops() else (None, None)

    def same_tables(answers: Any) -> str:
        found = {"ours": parameters(answers["ours"]), "peer": peer_parameters(answers["peer"])}
        if "C loop" in answers:
            found["C loop"] = c_parameters(answers["C loop"])
        return same_numbers(found, within=1e-9)

    fit = lambda: bb.NaiveBayesClassifier(features="categorical").fit(X, y)  # noqa: E731
    ours = fit()
    peer_fit = lambda: CategoricalNB().fit(X, y)  # noqa: E731
    peer = functools.cache(peer_fit)
    yield Task(
        "categorical",
        "fit",
        what,
        fit,
        same_tables,
        peer_fit,
        "CategoricalNB",
        c_fit,
        memory,
        at_least=60,
    )
    yield Task(
        "categorical",
        "predict",
        what,
        lambda: ours.predict(X),
        same_classes,
        lambda: peer().predict(X),
        "CategoricalNB",
        None if c_predict is None else lambda: c_predict(peer()),
        memory,
        at_least=18,
        prepare=peer,
    )


def parameters(ours: Any) -> tuple[NDArray[np.float64], ...]:
    """Log-probabilities of each column's values, (values, classes)."""
    table = ours.model_.parameters[0]
    return tuple(table.table[start:end] for start, end in zip(table.offsets[:-1], table.offsets[1:], strict=True))


def peer_parameters(peer: CategoricalNB) -> tuple[NDArray[np.float64], ...]:
    return tuple(logs.T for logs in peer.feature_log_prob_)


def c_parameters(counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], ...]:
    smoothed = [counts[column, :values] + 1.0 for column, values in enumerate(VALUES)]
    return tuple(np.log(table / table.sum(axis=0)) for table in smoothed)


def c_loops(X: NDArray[np.int64], y: NDArray[np.int64], threads: int) -> tuple[Any, Any]:
    rows, most = len(X), int(max(VALUES))
    shape = COLUMNS, most, CLASSES

    def fit() -> NDArray[np.int64]:
        counts = np.zeros((threads, *shape), dtype=np.int64)
        shared(rows, threads, lambda part, start, end: call("categorical_fit", X, y, start, end, *shape, counts[part]))
        return counts.sum(axis=0)

    def predict(model: CategoricalNB) -> NDArray[np.int32]:
        best, table = np.zeros(rows, dtype=np.int32), np.zeros(shape)
        for column, logs in enumerate(model.feature_log_prob_):
            table[column, : VALUES[column]] = logs.T
        tables = table, model.class_log_prior_, best
        shared(rows, threads, lambda _, start, end: call("categorical_predict", X, start, end, *shape, *tables))
        return best

    return fit, predict
