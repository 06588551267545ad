"""Learner: a growing tally and the model that follows it; every change can be taken back until it is kept."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import banbury as bb
from banbury.learner import LabelSettings, Learner, ModelSettings, settings_of
from banbury.service.rows import JsonRows

TEXTS, CLASSES = ["red round", "blue flat", "red flat heavy"], ["x", "y", "x"]
TALLY = bb.count(TEXTS, target=CLASSES)


def part(text: str, label: str) -> Any:
    return JsonRows(TALLY.schema).part(text, label)


@pytest.mark.parametrize("how", ["mean", "predictive", "gibbs"])
def test_the_current_model_is_that_of_the_tally(how: str) -> None:
    learner = Learner(TALLY, settings_of(bb.estimate(TALLY, how=how, class_prior=0.5)))  # type: ignore[arg-type]
    for change in (
        lambda it: it.learn(part("blue new", "y")),
        lambda it: it.learn(part("old", "z")),
        lambda it: it.forget(part("old", "z")),
        lambda it: it.forget(part("blue flat", "y")),
    ):
        learner = change(learner)
        fresh = learner.settings.model(learner.tally).posterior(TEXTS)
        np.testing.assert_allclose(learner.current.posterior(TEXTS), fresh, rtol=1e-12)
        np.testing.assert_allclose(learner.model.posterior(TEXTS), fresh, rtol=1e-12)
    assert learner.tally == bb.count(["red round", "red flat heavy", "blue new"], ["x", "x", "y"], schema=TALLY.schema)


def test_a_change_that_is_not_kept_never_was() -> None:
    before = Learner(TALLY, ModelSettings())
    answers = before.current.posterior(TEXTS)
    assert before.learn(part("blue new", "y")).classes == ("x", "y")
    assert before.tally == TALLY
    assert np.array_equal(before.current.posterior(TEXTS), answers)


def test_a_tally_is_one_object_until_the_next_change() -> None:
    learner = Learner(TALLY, ModelSettings())
    assert learner.tally is learner.tally
    assert learner.under(ModelSettings(class_prior="uniform")).tally is learner.tally
    assert learner.learn(part("red", "x")).tally != learner.tally


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_learns_apart(copied: Callable[[Any], Any]) -> None:
    sets = [["grain"], ["fuel"], ["fuel", "grain"]]
    for clf, y in ((bb.NaiveBayesClassifier(), CLASSES), (bb.MultiLabelClassifier(), sets)):
        clf.fit(TEXTS, y)
        other = copied(clf)
        before = clf.tally_
        assert other.tally_ == before
        other.partial_fit(["new"], y[:1])
        clf.predict(TEXTS)
        assert clf.tally_ == before != other.tally_


def test_settings_derive_the_model_they_were_taken_from() -> None:
    model = bb.estimate(TALLY, alpha=0.3, class_prior="uniform")
    assert np.array_equal(settings_of(model).model(TALLY).posterior(TEXTS), model.posterior(TEXTS))
    sets = bb.count(TEXTS, target=[["grain"], ["fuel"], ["fuel", "grain"]])
    labels = bb.LabelModel.of(sets, alpha=0.3)
    for thing in (labels, sets):
        settings = settings_of(thing)
        assert isinstance(settings, LabelSettings) and not settings.follows
    assert np.array_equal(settings_of(labels).model(sets).posterior(TEXTS), labels.posterior(TEXTS))
