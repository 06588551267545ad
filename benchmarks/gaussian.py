"""Normal columns: 2,000,000 × 20 float64, 5 classes, beside GaussianNB."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.naive_bayes import GaussianNB

import banbury as bb
from benchmarks.measure import Setting, Task, same_classes, same_numbers
from benchmarks.yardstick import call, loops, reading, shared

ROWS, COLUMNS, CLASSES = 2_000_000, 20, 5


def data(rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Columns of various scales whose means differ a little by class; nothing beside the answer is held."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, CLASSES, rows)
    X = np.empty((rows, COLUMNS))
    centres = 0.4 * rng.standard_normal((CLASSES, COLUMNS))
    scales = np.exp(rng.standard_normal((CLASSES, COLUMNS)) / 4.0)
    for start in range(0, rows, 10_000):
        part, classes = X[start : start + 10_000], y[start : start + 10_000]
        rng.standard_normal(out=part)
        part *= scales[classes]
        part += centres[classes]
        part *= 10.0 ** (np.arange(COLUMNS) % 4)
    return X, y


def tasks(setting: Setting) -> Iterator[Task]:
    rows = setting.rows(ROWS)
    X, y = data(rows)
    what = f"{rows:,} × {COLUMNS} float64, {CLASSES} classes"
    memory = reading(X, setting.threads)
    c_fit, c_predict = c_loops(X, y, setting.threads) if loops() else (None, None)

    def same_parameters(answers: Any) -> str:
        found = {"ours": parameters(answers["ours"]), "peer": (answers["peer"].theta_, answers["peer"].var_)}
        if "C loop" in answers:
            found["C loop"] = c_parameters(answers["C loop"], y)
        return same_numbers(found, within=1e-6)

    # Without smoothing: a billionth of the widest column's variance is not small beside the narrowest's.
    peer_fit = lambda: GaussianNB(var_smoothing=0.0).fit(X, y)  # noqa: E731
    fit = lambda: bb.NaiveBayesClassifier(features="gaussian").fit(X, y)  # noqa: E731
    ours = fit()
    peer = functools.cache(peer_fit)
    yield Task(
        "gaussian",
        "fit",
        what,
        fit,
        same_parameters,
        peer_fit,
        "GaussianNB",
        c_fit,
        memory,
        at_least=30,
    )
    yield Task(
        "gaussian",
        "predict",
        what,
        lambda: ours.predict(X),
        same_classes,
        lambda: peer().predict(X),
        "GaussianNB",
        None if c_predict is None else lambda: c_predict(peer()),
        memory,
        at_least=15,
        prepare=peer,
    )


def parameters(ours: Any) -> tuple[NDArray[np.float64], ...]:
    """Means and variances, (classes, columns)."""
    normal = ours.model_.parameters[0]
    mean = normal.origin[:, None] + normal.unit[:, None] * normal.mean
    return mean.T, (0.5 / normal.precision * normal.unit[:, None] ** 2).T


def c_parameters(sums: NDArray[np.float64], y: NDArray[np.int64]) -> tuple[NDArray[np.float64], ...]:
    n = np.bincount(y, minlength=CLASSES)[:, None]
    mean = sums[:, 0] / n
    return mean, sums[:, 1] / n - mean**2


def c_loops(X: NDArray[np.float64], y: NDArray[np.int64], threads: int) -> tuple[Any, Any]:
    rows, columns = X.shape

    def fit() -> NDArray[np.float64]:
        sums = np.zeros((threads, CLASSES, 2, columns))
        shared(rows, threads, lambda part, start, end: call("gaussian_fit", X, y, start, end, columns, sums[part]))
        return sums.sum(axis=0)

    def predict(model: GaussianNB) -> NDArray[np.int32]:
        best = np.zeros(rows, dtype=np.int32)
        constant = np.log(model.class_prior_) - 0.5 * np.log(2.0 * np.pi * model.var_).sum(axis=1)
        tables = model.theta_, 0.5 / model.var_, constant
        shared(
            rows,
            threads,
            lambda _, start, end: call("gaussian_predict", X, start, end, columns, CLASSES, *tables, best),
        )
        return best

    return fit, predict
