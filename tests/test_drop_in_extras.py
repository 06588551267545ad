"""The drop-in classes at home in scikit-learn, and what they have that the originals have not."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn import naive_bayes as theirs
from sklearn.base import clone, is_classifier
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.exceptions import SkipTestWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import banbury as bb

NAMES = ("BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB")
every_class = pytest.mark.parametrize("name", NAMES)
law = settings(max_examples=max(10, settings.default.max_examples // 5))

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 90)
X = RNG.poisson(1.0 + (Y[:, None] + np.arange(4)) % 3)
WEIGHTS = RNG.integers(1, 4, 90) / 2


def ours(name: str, **parameters: Any) -> Any:
    return getattr(bb, name)(**parameters)


def same_as_theirs(name: str, **parameters: Any) -> tuple[Any, Any]:
    """Ours and theirs, set so that they come to the same."""
    more = {"fit_prior": False} if name == "ComplementNB" else {"min_categories": 20} if name == "CategoricalNB" else {}
    return ours(name, **more, **parameters), getattr(theirs, name)(**more, **parameters)


# At home in scikit-learn ---------------------------------------------------------------------------------------------


@parametrize_with_checks(
    [ours(name) for name in NAMES]
    + [ours(name, missing="skip") for name in NAMES]
    + [
        bb.GaussianNB(accept_sparse=True),
        bb.CategoricalNB(accept_sparse=True),
        bb.CategoricalNB(categories="any"),
        bb.CategoricalNB(categories="any", missing="skip", accept_sparse=True),
    ]
)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        check(estimator)


@every_class
def test_it_is_one_of_theirs(name: str) -> None:
    mine, other = ours(name), getattr(theirs, name)()
    assert isinstance(mine, getattr(theirs, name))
    assert is_classifier(mine)
    assert get_tags(mine) == get_tags(other)
    assert set(other.get_params()) < set(mine.get_params())
    assert repr(mine) == repr(other)
    changed = "var_smoothing" if name == "GaussianNB" else "alpha"
    assert repr(mine.set_params(**{changed: 0.5})) == repr(other.set_params(**{changed: 0.5}))
    assert repr(ours(name, missing="skip")) == f"{name}(missing='skip')"
    assert mine.get_metadata_routing()._serialize() == other.get_metadata_routing()._serialize()


@every_class
def test_tags_follow_from_what_is_asked_for(name: str) -> None:
    assert get_tags(ours(name, missing="skip")).input_tags.allow_nan
    if name in ("GaussianNB", "CategoricalNB"):
        assert not get_tags(ours(name)).input_tags.sparse
        assert get_tags(ours(name, accept_sparse=True)).input_tags.sparse
    if name == "CategoricalNB":
        tags = get_tags(ours(name, categories="any")).input_tags
        assert (tags.string, tags.positive_only) == (True, False)


@every_class
def test_parameters_are_kept_as_they_are_given(name: str) -> None:
    prior = np.array([0.2, 0.3, 0.5])
    given_parameters = {"priors" if name == "GaussianNB" else "class_prior": prior, "missing": "skip"}
    clf = ours(name, **given_parameters).fit(X, Y)
    assert next(iter(given_parameters.values())) is prior
    for key, value in given_parameters.items():
        assert getattr(clf, key) is value
    twin = clone(clf)
    assert not hasattr(twin, "classes_")
    assert str(twin.get_params()) == str(clf.get_params())


@every_class
@pytest.mark.parametrize("way", ["pickle", "deepcopy", "copy"])
def test_a_copy_answers_and_learns_as_the_original(name: str, way: str) -> None:
    clf = ours(name).partial_fit(X[:40], Y[:40], [0, 1, 2], WEIGHTS[:40])
    for asked in (False, True):
        if asked:
            clf.predict(X)
        twin = {"pickle": lambda clf: pickle.loads(pickle.dumps(clf)), "deepcopy": copy.deepcopy, "copy": clone_state}[way](clf)
        np.testing.assert_array_equal(twin.predict_joint_log_proba(X), clf.predict_joint_log_proba(X))
        assert twin.tally_ == clf.tally_
        before = clf.predict_proba(X)
        twin.partial_fit(X[40:], Y[40:], sample_weight=WEIGHTS[40:])
        np.testing.assert_array_equal(clf.predict_proba(X), before)
        whole = ours(name).fit(X, Y, WEIGHTS)
        np.testing.assert_allclose(twin.predict_proba(X), whole.predict_proba(X), rtol=1e-10, atol=1e-12)


def clone_state(clf: Any) -> Any:
    """By the protocol of pickle, without bytes."""
    twin = type(clf).__new__(type(clf))
    twin.__setstate__(copy.deepcopy(clf.__getstate__()))
    return twin


@every_class
def test_new_parameters_hold_from_the_next_rows_on(name: str) -> None:
    key, value = ("var_smoothing", 0.5) if name == "GaussianNB" else ("alpha", 7.0)
    clf = ours(name).partial_fit(X[:50], Y[:50], [0, 1, 2])
    before = clf.predict_proba(X)
    clf.set_params(**{key: value})
    np.testing.assert_array_equal(clf.predict_proba(X), before)
    clf.partial_fit(X[50:], Y[50:])
    whole = ours(name, **{key: value}).fit(X, Y)
    np.testing.assert_allclose(clf.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-10)
    assert clf.model_.posterior(X) == pytest.approx(whole.predict_proba(X), abs=1e-10)


@every_class
def test_cross_validation_has_their_figures(name: str) -> None:
    mine, other = same_as_theirs(name)
    np.testing.assert_array_equal(cross_val_score(mine, X, Y, cv=3), cross_val_score(other, X, Y, cv=3))
    for method in ("predict", "predict_proba", "predict_log_proba"):
        found, wanted = (cross_val_predict(each, X, Y, cv=3, method=method) for each in (mine, other))
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


@every_class
def test_a_grid_search_finds_what_theirs_finds(name: str) -> None:
    key = "var_smoothing" if name == "GaussianNB" else "alpha"
    mine, other = (GridSearchCV(each, {key: [1e-3, 0.1, 2.0]}, cv=3).fit(X, Y) for each in same_as_theirs(name))
    assert mine.best_params_ == other.best_params_
    np.testing.assert_array_equal(mine.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(mine.predict(X), other.predict(X))


def before_it(name: str) -> Any:
    return KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf") if name == "CategoricalNB" else MinMaxScaler()


@every_class
def test_in_a_pipeline_a_bag_and_a_vote_it_is_theirs(name: str) -> None:
    found = []
    for each in same_as_theirs(name):
        pipeline = make_pipeline(before_it(name), each)
        vote = VotingClassifier([("one", pipeline), ("two", clone(each))], voting="soft")
        bag = BaggingClassifier(each, n_estimators=3, random_state=0)
        found.append([model.fit(X, Y).predict_proba(X) for model in (pipeline, vote, bag)])
    np.testing.assert_allclose(*found, rtol=1e-7, atol=1e-7)  # a bag weighs rows, and theirs smooths as if it did not


@pytest.mark.parametrize("name", ["BernoulliNB", "ComplementNB", "MultinomialNB"])
def test_words_come_from_a_vectoriser(name: str) -> None:
    texts = ["free money now", "free meeting", "meeting at noon", "money money", "noon at the meeting"]
    kinds = np.array(["spam", "spam", "ham", "spam", "ham"])
    found = []
    for each in same_as_theirs(name):
        pipeline = Pipeline([("count", CountVectorizer()), ("weigh", TfidfTransformer()), ("nb", each)]).fit(texts, kinds)
        found.append(pipeline.predict_proba([*texts, "", "free noon"]))
    np.testing.assert_allclose(*found, rtol=1e-10, atol=1e-10)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@every_class
@pytest.mark.usefixtures("routing")
def test_weights_are_routed_to_it(name: str) -> None:
    pipeline = make_pipeline(before_it(name), ours(name))
    if name == "CategoricalNB":
        pipeline[0].set_fit_request(sample_weight=False)
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match=f"{name}.fit"):
        pipeline.fit(X, Y, sample_weight=WEIGHTS)
    pipeline[-1].set_fit_request(sample_weight=True)
    pipeline.fit(X, Y, sample_weight=WEIGHTS)
    rows = pipeline[0].transform(X)
    direct = ours(name).fit(rows, Y, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(pipeline[-1].class_count_, direct.class_count_)
    np.testing.assert_array_equal(pipeline.predict_proba(X), direct.predict_proba(rows))
    asking = ours(name).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
    search = GridSearchCV(asking, {}, cv=2).fit(X, Y, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(
        search.best_estimator_.class_count_, ours(name).fit(X, Y, sample_weight=WEIGHTS).class_count_
    )


@every_class
@pytest.mark.usefixtures("routing")
def test_requests_are_those_of_theirs(name: str) -> None:
    for each in (ours(name), getattr(theirs, name)()):
        each.set_partial_fit_request(classes=True, sample_weight="weights").set_fit_request(sample_weight=False)
        each.set_score_request(sample_weight=True)
        asked = each.get_metadata_routing()._serialize()
        assert asked["partial_fit"] == {"classes": True, "sample_weight": "weights"}
        assert (asked["fit"], asked["score"]) == ({"sample_weight": False}, {"sample_weight": True})


def test_scikit_learns_array_api_test_of_the_gaussian() -> None:
    """It runs only where SCIPY_ARRAY_API was set before SciPy was imported."""
    pytest.importorskip("array_api_strict")
    tests = Path(__file__).parent / "test_scikit_learn_tests.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", str(tests), "-k", "array_api", "-p", "no:cacheprovider"],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
