"""Columns taken together: 200,000 × 20 float64, 5 classes, full and tied covariance, beside QDA and LDA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

import banbury as bb
from benchmarks import gaussian
from benchmarks.gaussian import CLASSES, COLUMNS
from benchmarks.measure import Setting, Task, same_numbers
from benchmarks.yardstick import call, loops, reading, shared

ROWS = 200_000
NAMES = tuple(f"x{j}" for j in range(COLUMNS))


def data(rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Normal columns, each with something of the last that has its scale."""
    X, y = gaussian.data(rows)
    X[:, 4:] += 0.5 * X[:, :-4]
    return X, y


def tasks(setting: Setting) -> Iterator[Task]:
    rows = setting.rows(ROWS)
    X, y = data(rows)
    what = f"{rows:,} × {COLUMNS} float64, {CLASSES} classes"
    memory = reading(X, setting.threads)
    c_fit = c_loop(X, y, setting.threads) if loops() else None
    # The solvers that are the same model; they are the peers' quickest too.
    peers = {
        "full": QuadraticDiscriminantAnalysis(solver="eigen", store_covariance=True),
        "tied": LinearDiscriminantAnalysis(solver="lsqr"),
    }
    for covariance, peer in peers.items():

        def same_parameters(answers: Any, tied: bool = covariance == "tied") -> str:
            theirs = answers["peer"].means_, np.array(answers["peer"].covariance_)
            found = {"ours": parameters(answers["ours"], tied), "peer": theirs}
            if "C loop" in answers:
                found["C loop"] = c_parameters(answers["C loop"], y, tied)
            return same_numbers(found, within=1e-6)

        block = {NAMES: bb.Gaussian(covariance=covariance)}
        yield Task(
            "blocks",
            f"fit, {covariance} covariance",
            what,
            lambda block=block: bb.NaiveBayesClassifier(features=block).fit(X, y),
            same_parameters,
            lambda peer=peer: peer.fit(X, y),
            type(peer).__name__,
            c_fit,
            memory,
        )


def parameters(ours: Any, tied: bool) -> tuple[NDArray[np.float64], ...]:
    """Means, (classes, columns), and covariances, one per class unless they are tied."""
    ellipses = ours.model_.parameters[0]
    origin, unit = np.array(ellipses.features[0].scales).T
    covariance = ellipses.covariance * unit[:, None] * unit
    return origin + unit * ellipses.mean, covariance[0] if tied else covariance


def c_parameters(sums: NDArray[np.float64], y: NDArray[np.int64], tied: bool) -> tuple[NDArray[np.float64], ...]:
    n = np.bincount(y, minlength=CLASSES)
    mean = sums[:, 0] / n[:, None]
    covariance = sums[:, 1:] / n[:, None, None] - mean[:, :, None] * mean[:, None, :]
    return mean, np.average(covariance, axis=0, weights=n) if tied else covariance


def c_loop(X: NDArray[np.float64], y: NDArray[np.int64], threads: int) -> Any:
    def fit() -> NDArray[np.float64]:
        sums = np.zeros((threads, CLASSES, 1 + COLUMNS, COLUMNS))
        run = lambda part, start, end: call("block_fit", X, y, start, end, COLUMNS, CLASSES, sums[part])  # noqa: E731
        shared(len(X), threads, run)
        return sums.sum(axis=0)

    return fit
