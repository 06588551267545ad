"""Columns without a shape: histograms beside NumPy's, and kernel densities beside scikit-learn's on few rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KernelDensity

import banbury as bb
from benchmarks.measure import Figure, Setting, Task, WrongAnswer, in_turns, limited, same_classes, say

ROWS, COLUMNS, CLASSES = 1_000_000, 4, 3
WIDTH, BANDWIDTH = 0.125, 0.25
FEW = 10_000  # rows that scikit-learn's kernel densities are shown


def data(rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Columns of two bumps each, at places that differ by class."""
    rng = np.random.default_rng(6)
    y = rng.integers(0, CLASSES, rows)
    places = 3.0 * rng.standard_normal((CLASSES, 2, COLUMNS))
    which = rng.integers(0, 2, (rows, COLUMNS))
    return places[y[:, None], which, np.arange(COLUMNS)] + rng.standard_normal((rows, COLUMNS)), y


def tasks(setting: Setting) -> Iterator[Task | Figure]:
    rows = setting.rows(ROWS)
    X, y = data(rows)
    what = f"{rows:,} × {COLUMNS} float64, {CLASSES} classes"
    family = bb.Histogram(start=-32.0, width=WIDTH)
    fit = lambda: bb.NaiveBayesClassifier(features=family).fit(X, y)  # noqa: E731
    histogram = fit()
    tables = numpy_fit(X, y)

    def same_cells(answers: Mapping[str, Any]) -> str:
        cells, theirs = answers["ours"].tally_.sums[0].cells.value, answers["peer"][0]
        if not np.array_equal(cells[cells.any(axis=1)], theirs[theirs.any(axis=2)]):
            raise WrongAnswer("NumPy's histograms hold other counts than ours")
        return "same counts"

    yield Task("kernels", "histogram fit", what, fit, same_cells, lambda: numpy_fit(X, y), "NumPy by hand")
    yield Task(
        "kernels",
        "histogram predict",
        what,
        lambda: histogram.predict(X),
        same_classes,
        lambda: numpy_predict(X, *tables),
        "NumPy by hand",
    )
    yield from densities(X, y, setting, what)


def numpy_fit(X: NDArray[np.float64], y: NDArray[np.int64]) -> tuple[Any, Any]:
    """Rows per column, bin and class; and the log prior."""
    bins = 512
    codes = ((X + 32.0) / WIDTH).astype(np.int64)
    cells = [np.bincount(column * CLASSES + y, minlength=bins * CLASSES).reshape(bins, CLASSES) for column in codes.T]
    return np.stack(cells), np.log(np.bincount(y) / len(y))


def numpy_predict(X: NDArray[np.float64], cells: NDArray[np.int64], log_prior: NDArray[np.float64]) -> NDArray[Any]:
    scores = np.tile(log_prior, (len(X), 1))
    for j, counts in enumerate(cells):
        used = np.flatnonzero(counts.any(axis=1))
        first, last = used[0] - 1, used[-1] + 1
        smoothed = counts[first : last + 1] + 1.0
        logs = np.log(smoothed / smoothed.sum(axis=0))
        scores += np.take(logs, ((X[:, j] + 32.0) / WIDTH).astype(np.int64) - first, axis=0)
    return scores.argmax(axis=1)


def densities(X: NDArray[np.float64], y: NDArray[np.int64], setting: Setting, what: str) -> Iterator[Figure]:
    """Ours on all rows; scikit-learn's, which compares all pairs, on few rows, its time scaled in the rows it scores."""
    few = slice(0, min(FEW, len(X) // 10))
    scored = slice(0, len(X[few]) // 10)
    family = bb.KernelDensity(bandwidth=BANDWIDTH)
    fit = lambda: bb.NaiveBayesClassifier(features=family).fit(X, y)  # noqa: E731
    whole, part = fit(), bb.NaiveBayesClassifier(features=family).fit(X[few], y[few])
    theirs = [
        [KernelDensity(bandwidth=BANDWIDTH).fit(X[few][y[few] == c, j : j + 1]) for j in range(COLUMNS)]
        for c in range(CLASSES)
    ]
    say(f"kernels: kernel density, {what}")
    engines = {"fit": fit, "ours": lambda: whole.predict(X), "peer": lambda: scores(theirs, X[scored], y[few])}
    with limited(setting.threads):
        times, answers = in_turns(engines, setting)
    agreement = same_densities(part.predict_joint_log_proba(X[scored]), answers["peer"])
    yield Figure("kernels", "kernel density fit", what, times["fit"], None, "", agreement)
    scale = len(X) / len(X[scored])
    name = f"KernelDensity of {len(X[few]):,} rows, scaled"
    yield Figure("kernels", "kernel density predict", what, times["ours"], times["peer"] * scale, name, agreement)


def scores(theirs: Any, X: NDArray[np.float64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    columns = [sum(made.score_samples(X[:, j : j + 1]) for j, made in enumerate(row)) for row in theirs]
    return np.log(np.bincount(y) / len(y)) + np.column_stack(columns)


def same_densities(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> str:
    """Ours keeps rows as fine bins, so densities differ a little: by 1 % on average at most where there is density."""
    best = theirs.max(axis=1, keepdims=True)
    gap = float(np.abs(ours - theirs)[theirs > best - 5.0].mean())
    if not gap <= 0.01:
        raise WrongAnswer(f"log densities are {gap:.2g} apart on average")
    return f"log densities within {gap:.0e} on average"
