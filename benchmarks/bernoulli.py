"""Flags: 1,000,000 × 100 as bytes and as doubles, 5 classes, beside BernoulliNB."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.naive_bayes import BernoulliNB

import banbury as bb
from benchmarks.measure import Setting, Task, same_classes, same_numbers
from benchmarks.yardstick import call, loops, reading, shared

ROWS, COLUMNS, CLASSES = 1_000_000, 100, 5


def data(rows: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Flags whose chances differ a little by class."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, CLASSES, rows)
    chance = np.clip(rng.random(COLUMNS) + 0.08 * rng.standard_normal((CLASSES, COLUMNS)), 0.02, 0.98)
    X = np.empty((rows, COLUMNS), dtype=np.uint8)
    for start in range(0, rows, 100_000):
        classes = y[start : start + 100_000]
        X[start : start + 100_000] = rng.random((len(classes), COLUMNS)) < chance[classes]
    return X, y


def tasks(setting: Setting) -> Iterator[Task]:
    flags, y = data(setting.rows(ROWS))
    yield from of_type(flags, y, setting, fit_at_least=100)
    yield from of_type(flags.astype(np.float64), y, setting, fit_at_least=20)


def of_type(X: NDArray[Any], y: NDArray[np.int64], setting: Setting, fit_at_least: float) -> Iterator[Task]:
    what = f"{len(X):,} × {COLUMNS} {X.dtype}, {CLASSES} classes"
    memory = reading(X, setting.threads)
    c_fit, c_predict = c_loops(X, y, setting.threads) if loops() else (None, None)

    def same_tables(answers: Any) -> str:
        found = {"ours": parameters(answers["ours"]), "peer": (answers["peer"].feature_log_prob_,)}
        if "C loop" in answers:
            found["C loop"] = c_parameters(answers["C loop"], y)
        return same_numbers(found, within=1e-9)

    fit = lambda: bb.NaiveBayesClassifier(features="bernoulli").fit(X, y)  # noqa: E731
    ours = fit()
    peer_fit = lambda: BernoulliNB().fit(X, y)  # noqa: E731
    peer = functools.cache(peer_fit)
    yield Task(
        "bernoulli",
        "fit",
        what,
        fit,
        same_tables,
        peer_fit,
        "BernoulliNB",
        c_fit,
        memory,
        at_least=fit_at_least,
    )
    yield Task(
        "bernoulli",
        "predict",
        what,
        lambda: ours.predict(X),
        same_classes,
        lambda: peer().predict(X),
        "BernoulliNB",
        None if c_predict is None else lambda: c_predict(peer()),
        memory,
        at_least=10,
        prepare=peer,
    )


def parameters(ours: Any) -> tuple[NDArray[np.float64], ...]:
    """Log-probabilities of yes, (classes, columns)."""
    return (ours.model_.parameters[0].yes.T,)


def c_parameters(ones: NDArray[Any], y: NDArray[np.int64]) -> tuple[NDArray[np.float64], ...]:
    return (np.log((ones + 1.0) / (np.bincount(y, minlength=CLASSES)[:, None] + 2.0)),)


def c_loops(X: NDArray[Any], y: NDArray[np.int64], threads: int) -> tuple[Any, Any]:
    rows, columns = X.shape
    suffix, total = ("bytes", np.int64) if X.dtype == np.uint8 else ("doubles", np.float64)

    def fit() -> NDArray[Any]:
        ones = np.zeros((threads, CLASSES, columns), dtype=total)
        name = f"bernoulli_fit_{suffix}"
        shared(rows, threads, lambda part, start, end: call(name, X, y, start, end, columns, ones[part]))
        return ones.sum(axis=0)

    def predict(model: BernoulliNB) -> NDArray[np.int32]:
        best, yes = np.zeros(rows, dtype=np.int32), model.feature_log_prob_
        no = np.log1p(-np.exp(yes))
        tables = yes - no, model.class_log_prior_ + no.sum(axis=1), best
        name = f"bernoulli_predict_{suffix}"
        shared(rows, threads, lambda _, start, end: call(name, X, start, end, columns, CLASSES, *tables))
        return best

    return fit, predict
