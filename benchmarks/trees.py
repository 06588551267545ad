"""Quantile trees, which numbers are by themselves, beside our own bell curves: 2,000,000 × 20 float64, 2 classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import banbury as bb
from benchmarks.measure import Setting, Task, WrongAnswer, floored
from benchmarks.yardstick import reading

ROWS, COLUMNS = 2_000_000, 20
CHECKED = 10_000  # rows scored again by NumPy


def data(rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Normal, lognormal and few-valued columns in turns; of most the mean differs a little by class."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, rows)
    X = np.empty((rows, COLUMNS))
    for j in range(COLUMNS):
        x = rng.standard_normal(rows) + 0.1 * (j % 4) * y
        X[:, j] = (x, np.exp(x), np.round(20.0 * x) / 10.0)[j % 3]
    return X, y


def tasks(setting: Setting) -> Iterator[Task]:
    X, y = data(setting.rows(ROWS))
    what = f"{len(X):,} × {COLUMNS} float64, 2 classes"
    trees, bells = (bb.NaiveBayesClassifier(features=name).fit(X, y) for name in ("quantile_tree", "gaussian"))
    slow = looked_up(trees.model_, X[:CHECKED])

    def counted(answers: Mapping[str, Any]) -> str:
        ours = answers["ours"].model_.tally
        if any(ours.of(name).cells.value.sum() != len(X) for name in trees.model_.tally.schema.columns):
            raise WrongAnswer("rows are missing from the leaves of a column")
        return "every row in a leaf"

    def same(answers: Mapping[str, Any]) -> str:
        share = float(np.mean(answers["ours"][:CHECKED] == trees.classes_[slow]))
        if share < 1.0:
            raise WrongAnswer(f"tables looked up by NumPy agree on {share:.4%} of the classes")
        return f"{floored(share)} same classes as by tables looked up in NumPy"

    def task(name: str, ours: Any, peer: Any, check: Any, at_least: float) -> Task:
        memory = reading(X, setting.threads)
        return Task("trees", name, what, ours, check, peer, "our bell curves", None, memory, at_least)

    fitted = lambda name: lambda: bb.NaiveBayesClassifier(features=name).fit(X, y)  # noqa: E731
    yield task("fit", fitted("quantile_tree"), fitted("gaussian"), counted, 0.5)
    yield task("predict", lambda: trees.predict(X), lambda: bells.predict(X), same, 0.66)


def looked_up(model: bb.Model, X: NDArray[np.float64]) -> NDArray[np.int64]:
    """The likelier class of each row, by tables of log densities."""
    (trees,) = model.parameters
    total = np.tile(model.log_prior, (len(X), 1))
    for x, edges, table in zip(X.T, trees.edges, trees.tables, strict=True):
        total += table[np.searchsorted(edges, x, side="right")]
    return np.asarray(total.argmax(axis=1))
