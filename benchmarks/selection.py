"""Model selection from one count: cross-validation, leave-one-out, tuning and calibration, beside scikit-learn's.

scikit-learn does only a part of what takes it minutes: two folds of ten, or two settings of twenty. The row says so, and its
time is multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import log_loss, make_scorer
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline

import banbury as bb
from benchmarks import datasets, synthetic
from benchmarks.datasets import Part
from benchmarks.measure import (
    Figure,
    Peer,
    Setting,
    WrongAnswer,
    compare,
    largest_gap,
    same_classes,
    say,
)
from benchmarks.text import megabytes

FOLDS = 10
ALPHAS = np.geomspace(1e-3, 10.0, 20).round(6).tolist()
CALIBRATIONS = {"temperature": "temperature", "platt": "sigmoid"}  # our name, and scikit-learn's
PIPELINE = "CountVectorizer, MultinomialNB"


@dataclass(frozen=True)
class Case:
    """Rows to validate on, our features, scikit-learn's model, and the number of folds that it is shown."""

    data: str
    rows: Part
    features: Any
    peer: Callable[[], Any]
    peer_name: str
    peer_folds: int


def figures(setting: Setting) -> Iterator[Figure]:
    texts = Part(*synthetic.texts(setting.rows(synthetic.DOCUMENTS)))
    data = f"Zipf, {megabytes(texts)} MB, {len(texts):,} documents, {synthetic.CLASSES} classes"
    pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
    yield from validate(Case(data, texts, "auto", lambda: clone(pipeline), PIPELINE, 2), setting)
    numbers = Part(*synthetic.numbers(setting.rows(2_000_000)))
    data = f"{len(numbers):,} × 20 float64, 5 classes"
    gaussian = lambda: GaussianNB(var_smoothing=0.0)  # noqa: E731
    yield from validate(Case(data, numbers, "gaussian", gaussian, "GaussianNB", FOLDS), setting)
    if not datasets.has_data("20news-bydate"):
        say(f"selection: tuning and calibration are left out; {datasets.UNSET}")
        return
    train, test = datasets.newsgroups(step=50 if setting.small else 1)
    data = f"20 Newsgroups, {megabytes(train)} MB, {len(train):,} documents, 20 classes"
    yield tune(data, train, setting)
    for method in CALIBRATIONS:
        yield calibrate(method, data, train, test, setting)


# Cross-validation -----------------------------------------------------------------------------------------------------


def validate(case: Case, setting: Setting) -> Iterator[Figure]:
    """Ten folds beside scikit-learn's, and leave-one-out beside our own ten folds."""
    rows = case.rows
    folds = run_folds(case, FOLDS).folds
    shown = folds < case.peer_folds

    def check(ours: Any, theirs: Any) -> str:
        agreement = same_classes(1.0 if case.features == "auto" else 0.99999)(ours.predictions[shown], theirs)
        return (
            f"{agreement}; posteriors {compare_with_refitted(case, ours)}; {rows.accuracy(ours.predictions):.1%} right"
        )

    def peer_folds() -> Any:
        predictions = np.empty_like(rows.labels)
        for fold in range(case.peer_folds):
            inside = np.flatnonzero(folds == fold)
            rest = rows.take(np.flatnonzero(folds != fold))
            predictions[inside] = case.peer().fit(rest.rows, rest.labels).predict(rows.take(inside).rows)
        return predictions[shown]

    part = "" if case.peer_folds == FOLDS else f": {case.peer_folds} folds, times {FOLDS / case.peer_folds:g}"
    peer = Peer(f"{case.peer_name}{part}", peer_folds, scale=FOLDS / case.peer_folds)
    ten = compare(("selection", f"{FOLDS} folds", case.data), lambda: run_folds(case, FOLDS), check, setting, peer)
    yield ten
    where = ("selection", "leave-one-out", case.data)
    leave_one_out = lambda: run_folds(case, "loo")  # noqa: E731
    yield compare(where, leave_one_out, lambda ours, _: f"posteriors {compare_with_refitted(case, ours)}", setting)


def run_folds(case: Case, folds: Any) -> Any:
    return bb.cross_validate(case.rows.rows, case.rows.labels, folds=folds, features=case.features)


def compare_with_refitted(case: Case, result: Any) -> str:
    """Compare the posteriors of the first and the last fold with those of models that were never shown them."""
    gaps = []
    for fold in (0, int(result.folds.max())):
        inside = np.flatnonzero(result.folds == fold)
        rest = case.rows.take(np.flatnonzero(result.folds != fold))
        model = bb.NaiveBayesClassifier(features=case.features).fit(rest.rows, rest.labels)
        posteriors = model.predict_proba(case.rows.take(inside).rows)
        gaps.append(largest_gap(result.posteriors[inside], posteriors, within=1e-9))
    return f"within {max(gaps):.0e} of refitted models"


# Tuning and calibration -----------------------------------------------------------------------------------------------


def tune(data: str, rows: Part, setting: Setting) -> Figure:
    """Twenty values of alpha over ten folds, beside GridSearchCV on two of the values."""
    folds = bb.cross_validate(rows.rows, rows.labels, folds=FOLDS).folds
    run = lambda: bb.tune(rows.rows, rows.labels, alpha=ALPHAS, folds=folds, scoring="log_loss")  # noqa: E731
    shown = [run().best["alpha"], ALPHAS[-1]]
    every = np.unique(rows.labels)  # a small fold may lack a class
    scoring = make_scorer(log_loss, greater_is_better=False, response_method="predict_proba", labels=every)
    pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
    grid = {"multinomialnb__alpha": shown}
    search = GridSearchCV(pipeline, grid, scoring=scoring, cv=PredefinedSplit(folds), refit=False)

    def check(ours: Any, theirs: Any) -> str:
        """scikit-learn gives every fold the same weight, so the mean of our folds is compared with its mean."""
        for alpha, loss in zip(shown, -theirs.cv_results_["mean_test_score"], strict=True):
            result = bb.cross_validate(rows.rows, rows.labels, folds=folds, alpha=alpha)
            by_fold = [
                log_loss(result.truth[folds == k], result.posteriors[folds == k], labels=range(len(every)))
                for k in range(FOLDS)
            ]
            if not abs(np.mean(by_fold) / loss - 1.0) <= 1e-6:
                raise WrongAnswer(f"for alpha {alpha:g} our log loss is {np.mean(by_fold)}, the peer's {loss}")
        return f"same log losses; best alpha {ours.best['alpha']:g}"

    scale = len(ALPHAS) / len(shown)
    name = f"GridSearchCV of {PIPELINE}: {len(shown)} values, times {scale:g}"
    peer = Peer(name, lambda: search.fit(rows.rows, rows.labels), scale)
    return compare(
        ("selection", f"tune, {len(ALPHAS)} values of alpha, {FOLDS} folds", data), run, check, setting, peer
    )


def calibrate(method: str, data: str, train: Part, test: Part, setting: Setting) -> Figure:
    """Learning with calibration; the log losses are those of the newer posts."""
    losses = {"before": loss(bb.NaiveBayesClassifier().fit(train.rows, train.labels), test)}

    def check(ours: Any, theirs: Any) -> str:
        losses["after"] = loss(ours, test)
        losses["the peer"] = loss(theirs, test)
        if not setting.small and not losses["after"] < losses["before"]:
            raise WrongAnswer(f"calibration by {method} raises the log loss: {losses}")
        return ", ".join(f"{name} {value:.3f}" for name, value in losses.items())

    peer_method = CALIBRATIONS[method]
    calibrated = CalibratedClassifierCV(make_pipeline(CountVectorizer(), MultinomialNB()), method=peer_method)
    name = f"CalibratedClassifierCV of {PIPELINE}, {peer_method}"
    peer = Peer(name, lambda: calibrated.fit(train.rows, train.labels))
    ours = bb.NaiveBayesClassifier(calibrate=method)
    where = ("selection", f"fit, calibrate={method!r}; log loss", data)
    return compare(where, lambda: ours.fit(train.rows, train.labels), check, setting, peer)


def loss(model: Any, test: Part) -> float:
    return float(log_loss(test.labels, model.predict_proba(test.rows), labels=model.classes_))
