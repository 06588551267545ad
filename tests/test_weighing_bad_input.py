"""Weighed evidence of bad input: what is interrupted changes nothing, and what cannot be weighed is refused or says nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold

import banbury as bb
from banbury import _core, errors
from banbury.weighing import corrections, learning, model
from banbury.weighing.evidence import CountedEvidence

N = 300


def rows(n: int = N, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Two numbers and a word; the class depends on the numbers together."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.integers(0, 3, n).astype(float)
    labels = np.where((a > 0) ^ (b == 1) ^ (rng.random(n) < 0.1), "yes", "no")
    return pd.DataFrame({"a": a, "b": b, "word": rng.choice(["red", "green", "blue"], n)}), labels


DATA, LABELS = rows()


def answers(clf: bb.EvidenceClassifier, data: Any = DATA) -> Any:
    """Posteriors, which are probabilities."""
    posterior = clf.predict_proba(data)
    assert np.isfinite(posterior).all() and (posterior >= 0).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
    return posterior


def loss(clf: bb.EvidenceClassifier, data: Any, labels: Any) -> float:
    posterior = answers(clf, data)
    own = posterior[np.arange(len(labels)), np.searchsorted(clf.classes_, labels)]
    return float(-np.log(own).mean())


# Interrupted ----------------------------------------------------------------------------------------------------------

INSIDE: dict[str, tuple[Any, str]] = {
    "counting cells": (CountedEvidence, "__init__"),
    "weights": (_core, "weighed_slope"),
    "pairs": (learning, "_choose_pairs"),
    "the choice of C": (learning, "_choose_strength"),
    "corrections": (corrections.CellLearner, "improve"),
    "tables of the model": (model.Weighing, "parameters"),
}


def stop(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize("place", INSIDE)
@pytest.mark.parametrize("verb", ["fit", "refit", "forget"])
def test_what_is_interrupted_answers_as_before(place: str, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clf = bb.EvidenceClassifier().fit(DATA, LABELS)
    before, digest, weighing = answers(clf), clf.tally_.digest(), clf.weighing_
    other, labels = rows(200, seed=1)
    asked: dict[str, Callable[[], Any]] = {
        "fit": lambda: clf.fit(other, labels),
        "refit": lambda: clf.refit(DATA[::2], LABELS[::2]),
        "forget": lambda: clf.forget(DATA[:50], LABELS[:50], refit=(DATA[50:], LABELS[50:])),
    }
    with monkeypatch.context() as patch:
        patch.setattr(*INSIDE[place], stop)
        with pytest.raises(KeyboardInterrupt):
            asked[verb]()
    assert clf.weighing_ is weighing and clf.tally_.digest() == digest and not clf.weights_stale_
    assert np.array_equal(answers(clf), before)


@pytest.mark.parametrize("place", INSIDE)
def test_an_interrupted_first_fit_leaves_nothing(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clf = bb.EvidenceClassifier()
    with monkeypatch.context() as patch:
        patch.setattr(*INSIDE[place], stop)
        with pytest.raises(KeyboardInterrupt):
            clf.fit(DATA, LABELS)
    with pytest.raises(NotFittedError):
        clf.predict(DATA)
    answers(clf.fit(DATA, LABELS))


def test_an_interrupted_weigh_changes_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = bb.estimate(bb.EvidenceClassifier().fit(DATA, LABELS).tally_)
    before, digest = plain.posterior(DATA), plain.tally.digest()
    with monkeypatch.context() as patch:
        patch.setattr(corrections.CellLearner, "improve", stop)
        with pytest.raises(KeyboardInterrupt):
            bb.weigh(plain, DATA, LABELS)
    assert plain.weighing is None and plain.tally.digest() == digest and np.array_equal(plain.posterior(DATA), before)


# Rows that are not those that were counted ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "labels", "error", "message"),
    [
        (DATA[["a", "b"]], LABELS, errors.UnknownColumn, "no column 'word'"),
        (DATA.assign(a="x"), LABELS, errors.BadValue, "column 'a' contains 'x', but must contain a number"),
        (DATA[:0], LABELS[:0], errors.EmptyData, "0 sample"),
        (DATA, LABELS[:5], errors.LengthMismatch, "5"),
        (DATA, ["perhaps"] * N, errors.BadSetting, "no row with a weight and a class of the tally"),
        (DATA[LABELS == "yes"], LABELS[LABELS == "yes"], errors.BadSetting, "rows of 'yes' alone"),
        (DATA.assign(a=np.inf), LABELS, errors.BadValue, "infinite"),
    ],
)
def test_refit_refuses_rows_that_do_not_fit_and_changes_nothing(
    data: Any, labels: Any, error: Any, message: str
) -> None:
    clf = bb.EvidenceClassifier().fit(DATA, LABELS)
    before, weighing = answers(clf), clf.weighing_
    with pytest.raises(error, match=message):
        clf.refit(data, labels)
    assert clf.weighing_ is weighing and np.array_equal(answers(clf), before)


def test_a_number_without_end_is_refused_where_rows_are_answered() -> None:
    weighed = bb.EvidenceClassifier().fit(DATA, LABELS).model_
    with pytest.raises(errors.BadValue, match="row 7 of column 'a' is infinite"):
        weighed.predict(DATA.assign(a=np.where(np.arange(N) == 7, np.inf, DATA.a)))


def test_refit_takes_columns_in_any_order_and_leaves_others_aside() -> None:
    clf = bb.EvidenceClassifier().fit(DATA, LABELS)
    before = answers(clf)
    clf.refit(DATA[["word", "b", "a"]].assign(more=1), LABELS)
    assert np.array_equal(answers(clf), before)


def test_rows_of_no_weight_are_refused_or_no_rows() -> None:
    clf = bb.EvidenceClassifier().fit(DATA, LABELS)
    with pytest.raises(errors.BadSetting, match="no row with a weight"):
        clf.refit(DATA, LABELS, sample_weight=np.zeros(N))
    with pytest.raises(errors.EmptyData, match="weight of zero"):
        bb.EvidenceClassifier().fit(DATA, LABELS, sample_weight=np.zeros(N))
    half = np.arange(N) < 150
    alone = bb.EvidenceClassifier().fit(DATA[half], LABELS[half])
    weighed = bb.EvidenceClassifier(features=dict.fromkeys(["a", "b"], bb.QuantileTree())).fit(
        DATA, LABELS, half.astype(float)
    )
    assert weighed.weighing_ is not None and alone.weighing_ is not None
    assert weighed.weighing_.worth() == alone.weighing_.worth()
    none_of_a_class = bb.EvidenceClassifier(weigh=True).fit(DATA, LABELS, (LABELS == "no").astype(float))
    assert none_of_a_class.weighing_ is None and none_of_a_class.classes_.tolist() == ["no"]


# Classes, groups and columns ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", ["the classes", "one", "none"])
def test_groups_that_leave_a_fold_without_a_class(groups: str) -> None:
    """Nothing can be chosen by such folds, and nothing is made worse by them."""
    of = {"the classes": LABELS, "one": ["g"] * N, "none": [None] * N}[groups]
    clf = bb.EvidenceClassifier().fit(DATA, LABELS, groups=of)
    assert clf.weighing_ is not None and clf.weighing_.weights.strength == 0.0
    assert loss(clf, *rows(seed=2)) < np.log(2.0)


def test_a_rare_class_in_one_group_is_validated() -> None:
    labels = LABELS.astype(object)
    labels[:3] = "rare"
    groups = ["r"] * 3 + [str(i % 9) for i in range(N - 3)]
    answers(bb.EvidenceClassifier().fit(DATA, labels, groups=groups))
    found = bb.cross_validate(DATA, labels, weigh=True, folds=GroupKFold(3), groups=groups)
    np.testing.assert_allclose(found.posteriors.sum(axis=1), 1.0)
    assert found.accuracy.value > 0.7


def test_cross_validation_keeps_groups_together_where_something_is_chosen() -> None:
    """Each group of five is one row again and again, so that folds which part it find corrections that only remember."""
    rng = np.random.default_rng(3)
    data, labels = rows(80, seed=3)
    data, labels = data.loc[np.repeat(np.arange(80), 5)].reset_index(drop=True), np.repeat(labels, 5)
    groups = np.repeat(rng.permutation(80), 5)
    folds = GroupKFold(3)
    found = bb.cross_validate(data, labels, weigh=True, folds=folds, groups=groups)
    train, test = next(iter(folds.split(data, labels, groups)))
    features = dict.fromkeys(["a", "b"], bb.QuantileTree())
    clf = bb.EvidenceClassifier(features=features).fit(data.loc[train], labels[train], groups=groups[train])
    np.testing.assert_allclose(clf.predict_proba(data.loc[test]), found.posteriors[test], atol=1e-9)


def test_one_class_and_classes_of_one_row() -> None:
    alone = bb.EvidenceClassifier(weigh=True).fit(DATA, ["x"] * N)
    assert alone.weighing_ is None and alone.predict(DATA[:2]).tolist() == ["x", "x"]
    tally = bb.count(DATA, ["x"] * N)
    with pytest.raises(errors.BadSetting, match="at least two"):
        bb.weigh(tally, DATA, ["x"] * N)
    each = bb.EvidenceClassifier(weigh=True).fit(DATA[:120], [f"c{i}" for i in range(120)])
    assert answers(each).max() < 0.5  # one row of a class tells next to nothing
    rare = bb.EvidenceClassifier().fit(DATA, ["most"] * (N - 2) + ["p", "q"])
    assert (rare.predict(DATA) == "most").mean() > 0.98


def test_useless_columns_and_one_that_is_the_target() -> None:
    plain = bb.EvidenceClassifier().fit(DATA, LABELS)
    useless = DATA.assign(constant=1.0, empty=np.nan, same="same")
    assert np.array_equal(answers(bb.EvidenceClassifier().fit(useless, LABELS), useless), answers(plain))
    nothing = pd.DataFrame({"constant": np.ones(N)})
    clf = bb.EvidenceClassifier(features={"constant": bb.QuantileTree()}).fit(nothing, LABELS)
    np.testing.assert_allclose(answers(clf, nothing)[:, 1], (LABELS == "yes").mean(), atol=0.01)
    other, labels = rows(seed=4)
    told = bb.EvidenceClassifier().fit(DATA.assign(told=LABELS), LABELS)
    assert loss(told, other.assign(told=labels), labels) < 0.02
    assert told.weighing_ is not None and max(told.weighing_.worth(), key=told.weighing_.worth().__getitem__) == "told"
    names = pd.DataFrame({"id": [f"r{i}" for i in range(N)]})
    ids = bb.EvidenceClassifier(features={"id": bb.Categorical()}).fit(names, LABELS)
    new = answers(ids, pd.DataFrame({"id": ["unheard of"]}))
    np.testing.assert_allclose(new[0, 1], (LABELS == "yes").mean(), atol=0.01)


def test_stretches_of_duplicates() -> None:
    two = DATA.loc[[0] * 500 + [1] * 500].reset_index(drop=True)
    clf = bb.EvidenceClassifier().fit(two, ["yes"] * 500 + ["no"] * 500)
    assert answers(clf, two)[0, 1] > 0.99 and answers(clf, two)[-1, 1] < 0.01
    even = DATA.loc[[0] * 200 + [1] * 200].reset_index(drop=True)
    undecided = bb.EvidenceClassifier().fit(even, ["yes", "no"] * 200)
    np.testing.assert_allclose(answers(undecided, even), 0.5, atol=0.01)


def test_settings_that_are_none_are_refused_by_name() -> None:
    tally = bb.EvidenceClassifier().fit(DATA, LABELS).tally_
    with pytest.raises(errors.BadSetting, match="seed must be"):
        bb.weigh(tally, DATA, LABELS, seed="x")  # type: ignore[arg-type]
    with pytest.raises(errors.BanburyError, match="a setting of weigh must be one of 'pairs', 'correct'"):
        bb.cross_validate(DATA, LABELS, weigh={"pears": False})
    with pytest.raises(errors.BadSetting, match="weigh must be True, False, or settings"):
        bb.learning_curve(DATA, LABELS, weigh="yes")  # type: ignore[arg-type]
    with pytest.raises(
        errors.BadSetting, match="folds must be a number of folds when settings are chosen, calibrated or weighed"
    ):
        bb.cross_validate(DATA, LABELS, weigh=True, folds="loo")
    with pytest.raises(errors.BadSetting, match="estimator must be omitted"):
        bb.tune(DATA, LABELS, estimator=bb.EvidenceClassifier())
