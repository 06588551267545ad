"""Rows that count for more or less than one: 500,000 × 20 float64, 5 classes, fractional and whole weights, beside GaussianNB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.naive_bayes import GaussianNB

import banbury as bb
from benchmarks.gaussian import CLASSES, COLUMNS, data, parameters
from benchmarks.measure import Setting, Task, same_numbers
from benchmarks.yardstick import call, loops, reading, shared

ROWS = 500_000


def tasks(setting: Setting) -> Iterator[Task]:
    X, y = data(setting.rows(ROWS))
    rng = np.random.default_rng(5)
    yield of_weights("fractional", rng.uniform(0.1, 2.0, len(y)), X, y, setting)
    yield of_weights("whole", rng.integers(1, 5, len(y)).astype(np.float64), X, y, setting)


def of_weights(
    kind: str, weights: NDArray[np.float64], X: NDArray[np.float64], y: NDArray[np.int64], setting: Setting
) -> Task:
    def same_parameters(answers: Any) -> str:
        found = {"ours": parameters(answers["ours"]), "peer": (answers["peer"].theta_, answers["peer"].var_)}
        if "C loop" in answers:
            n = np.bincount(y, weights, minlength=CLASSES)[:, None]
            mean, square = (answers["C loop"][:, part] / n for part in (0, 1))
            found["C loop"] = mean, square - mean**2
        return same_numbers(found, within=1e-6)

    def c_loop() -> NDArray[np.float64]:
        sums, name = np.zeros((setting.threads, CLASSES, 2, COLUMNS)), "gaussian_fit_weighted"
        run = lambda part, start, end: call(name, X, y, weights, start, end, COLUMNS, sums[part])  # noqa: E731
        shared(len(X), setting.threads, run)
        return sums.sum(axis=0)

    return Task(
        "weighted",
        f"fit, {kind} weights",
        f"{len(X):,} × {COLUMNS} float64, {CLASSES} classes",
        lambda: bb.NaiveBayesClassifier(features="gaussian").fit(X, y, weights),
        same_parameters,
        lambda: GaussianNB(var_smoothing=0.0).fit(X, y, weights),
        "GaussianNB",
        c_loop if loops() else None,
        reading(X, setting.threads),
    )
