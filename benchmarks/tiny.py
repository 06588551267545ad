"""What a call costs when there is nothing to do: 10 rows × 20 columns, beside GaussianNB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.naive_bayes import GaussianNB

import banbury as bb
from benchmarks.gaussian import parameters
from benchmarks.measure import Setting, Task, same_classes, same_numbers


def tasks(setting: Setting) -> Iterator[Task]:
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((10, 20)), np.arange(10) % 2
    what = "10 × 20 float64, 2 classes"
    fit = lambda: bb.NaiveBayesClassifier().fit(X, y)  # noqa: E731
    ours, peer = fit(), GaussianNB().fit(X, y)

    def same_parameters(answers: Any) -> str:
        theirs = answers["peer"]
        return same_numbers({"ours": parameters(answers["ours"]), "peer": (theirs.theta_, theirs.var_)}, within=1e-6)

    yield Task("tiny", "fit", what, fit, same_parameters, lambda: GaussianNB().fit(X, y), "GaussianNB", at_least=2)
    predict = lambda: ours.predict(X)  # noqa: E731
    yield Task("tiny", "predict", what, predict, same_classes, lambda: peer.predict(X), "GaussianNB", at_least=2)
