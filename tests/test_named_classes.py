"""Every class listed in ``classes_`` may be named as it is listed there or as a plain value, wherever a class is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import banbury as bb
from banbury import errors
from banbury.tally.table import class_number

X = np.random.default_rng(0).integers(0, 3, (12, 2))
LABELS: dict[str, Any] = {
    "texts": np.array(["a", "b", "c"] * 4),
    "objects": np.array(["a", "b", "c"] * 4, dtype=object),
    "categories": pd.Categorical(["a", "b", "c"] * 4, categories=["a", "b", "c", "unused"]),
    "digits": np.array(["0", "1", "10"] * 4),
    "integers": np.array([0, 1, -2] * 4, dtype=np.int8),
    "large integers": np.array([0, 1, 2**63 + 1] * 4, dtype=np.uint64),
    "whole floats": np.array([0.0, 1.0, 2.0] * 4, dtype=np.float32),
    "booleans": np.array([True, False] * 6),
    "dates": np.array(["2020-01-01", "2021-01-01"] * 6, dtype="datetime64[D]"),
}
CLASSIFIERS = [
    bb.NaiveBayesClassifier,
    bb.EvidenceClassifier,
    bb.TANClassifier,
    bb.GaussianNB,
    bb.MultinomialNB,
    bb.CategoricalNB,
    bb.BernoulliNB,
    bb.ComplementNB,
]
DATES_TOO = CLASSIFIERS[3:]  # the others refuse dates as labels


def as_named(listed: np.ndarray) -> list[Any]:
    """Each class as it is listed, and as a plain value."""
    return [*listed, *listed.tolist()]


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_class_is_named_as_it_is_listed_or_plainly(classifier: Any, kind: str) -> None:
    if kind == "dates" and classifier not in DATES_TOO:
        return
    y = LABELS[kind]
    clf = classifier().fit(X, y)
    usual = clf.explain(X[:1])
    for name in as_named(clf.classes_):
        told = clf.explain(X[:1], name)
        assert (told.winner, told.against) == (usual.winner, usual.against if name == usual.winner else name)
        row = np.flatnonzero(clf.classes_[np.searchsorted(clf.classes_, y)] == name)[:1]
        assert clf.explain(X[row], held_out=True, label=name).held_out
        if classifier is bb.TANClassifier:
            continue
        assert list(clf.informative(2, classes=[name]).ratios) == [name]
        model = clf.model_
        matrix = 1.0 - np.eye(len(model.classes))
        matrix[class_number(name, model.classes), 0] = 5.0
        costs = {name: {model.classes[0]: 5.0}}
        assert model.predict(X, costs=costs).tolist() == model.predict(X, costs=matrix).tolist()


@pytest.mark.parametrize("kind", [kind for kind in LABELS if kind != "dates"])
@pytest.mark.parametrize("classifier", [bb.NaiveBayesClassifier, bb.EvidenceClassifier])
def test_priors_and_weights_name_classes_likewise(classifier: Any, kind: str) -> None:
    y = LABELS[kind]
    listed = classifier().fit(X, y).classes_
    weights = [2.0, 1.0, 3.0][: len(listed)]
    answers = []
    for names in (list(listed), listed.tolist()):
        fitted = [classifier(class_weight=dict(zip(names, weights, strict=True))).fit(X, y)]
        if classifier is bb.NaiveBayesClassifier:
            prior = dict(zip(names, np.array(weights) / sum(weights), strict=True))
            fitted.append(classifier(class_prior=prior).fit(X, y))
        answers.append([clf.predict_proba(X).tolist() for clf in fitted])
    assert answers[0] == answers[1]


@pytest.mark.parametrize("classifier", [each for each in CLASSIFIERS if each is not bb.TANClassifier])
@pytest.mark.parametrize("classes", [["a", "b", "later"], [0, 1, 2]], ids=["texts", "numbers"])
def test_a_class_named_in_advance_is_explained_without_rows(classifier: Any, classes: list[Any]) -> None:
    clf = classifier().partial_fit(X, classes[:2] * 6, classes=classes)
    for name in as_named(clf.classes_):
        told = clf.explain(X[:1], name)
        assert told.probability_against == pytest.approx(
            clf.predict_proba(X[:1])[0][list(clf.classes_).index(told.against)]
        )
        assert str(told) and list(clf.informative(2, classes=[name]).ratios) == [name]
    later = clf.explain(X[:1], classes[2])
    assert (later.against, later.probability_against, later.prior) == (classes[2], 0.0, np.inf)
    assert clf.explain(X[:1], held_out=True, label=classes[0]).held_out
    with pytest.raises(errors.BanburyError, match=r"no rows of class|not counted with class"):
        clf.explain(X[:1], held_out=True, label=classes[2])


def test_a_prior_of_a_class_without_rows_is_shared_among_the_others() -> None:
    y, prior = ["a", "b"] * 6, {"a": 0.5, "b": 0.3, "later": 0.2}
    found = bb.NaiveBayesClassifier(class_prior=prior).partial_fit(X, y, classes=["a", "b", "later"])
    expected = bb.NaiveBayesClassifier(class_prior={"a": 0.625, "b": 0.375}).fit(X, y)
    np.testing.assert_allclose(found.predict_proba(X)[:, :2], expected.predict_proba(X), rtol=1e-12)
    assert not found.predict_proba(X)[:, 2].any()
    with pytest.raises(errors.UnknownClass, match="no class 'later'"):
        bb.NaiveBayesClassifier(class_prior=prior).fit(X, y).predict(X)


@pytest.mark.parametrize("names", [["a", "b", "c"], [3, 4, 2**63 + 1], [True, False]], ids=str)
def test_labels_of_sets_are_named_likewise(names: list[Any]) -> None:
    sets = [[names[i % len(names)]] if i % 4 else [] for i in range(12)]
    clf = bb.MultiLabelClassifier().fit(X, sets)
    assert clf.classes_.tolist() == sorted(names)
    for name in as_named(clf.classes_):
        assert name in (clf.explain(X[:1], name).winner, clf.explain(X[:1], name).against)
        assert list(clf.informative(name).ratios) == [name]


def test_a_flag_that_no_row_has_is_explained_by_its_prior() -> None:
    clf = bb.MultiLabelClassifier().fit(X, np.array([[1, 0, 0], [0, 1, 0]] * 6))
    told = clf.explain(X[:1], clf.classes_[2])
    assert (told.winner, told.against, told.probability_against) == ("not 2", 2, clf.predict_proba(X[:1])[0, 2])
    assert clf.informative(2).ratios == {2: ()}


@pytest.mark.parametrize("name", ["d", None, ["a"], np.array(["a", "b"]), pd.NA, float("nan"), np.str_("d")], ids=repr)
def test_what_is_no_class_is_refused_by_name(name: Any) -> None:
    with pytest.raises(errors.UnknownClass, match="no class"):
        class_number(name, ("a", "b"))
