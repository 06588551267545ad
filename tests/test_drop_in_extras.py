"""The drop-in classes at home in scikit-learn, and what they have that the originals have not."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
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
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneOut,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import banbury as bb
from banbury import errors

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


@parametrize_with_checks([ours(name) for name in NAMES] + [ours(name, missing="skip") for name in NAMES])
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
    assert set(mine.get_params()) == {*other.get_params(), "missing"}
    assert repr(mine) == repr(other)
    changed = "var_smoothing" if name == "GaussianNB" else "alpha"
    assert repr(mine.set_params(**{changed: 0.5})) == repr(other.set_params(**{changed: 0.5}))
    assert repr(ours(name, missing="skip")) == f"{name}(missing='skip')"
    assert mine.get_metadata_routing()._serialize() == other.get_metadata_routing()._serialize()


@every_class
def test_tags_follow_from_what_is_asked_for(name: str) -> None:
    assert get_tags(ours(name, missing="skip")).input_tags.allow_nan


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
        twin = {"pickle": lambda clf: pickle.loads(pickle.dumps(clf)), "deepcopy": copy.deepcopy, "copy": clone_state}[
            way
        ](clf)
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
    return (
        KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf")
        if name == "CategoricalNB"
        else MinMaxScaler()
    )


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
        pipeline = Pipeline([("count", CountVectorizer()), ("weigh", TfidfTransformer()), ("nb", each)]).fit(
            texts, kinds
        )
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


@pytest.mark.slow
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


# Missing values ------------------------------------------------------------------------------------------------------


def naive_joint(name: str, X: Any, y: Any, w: Any, rows: Any) -> np.ndarray:
    """What each class says of each row, column by column and cell by cell, gaps left out; α is 1."""
    classes, w = np.unique(y), np.ones(len(y)) if w is None else w
    there = ~np.isnan(X)
    joint = np.tile(np.log([w[y == c].sum() / w.sum() for c in classes]), (len(rows), 1))
    zeros = np.where(there, X, 0.0)
    spread = max(variance(X[there[:, j], j], w[there[:, j]]) for j in range(X.shape[1]))
    total = (w[:, None] * zeros).sum(axis=0)
    for i, row in enumerate(rows):
        for k, c in enumerate(classes):
            counts = (w[y == c, None] * zeros[y == c]).sum(axis=0)
            others = total - counts + 1
            for j, x in enumerate(row):
                if np.isnan(x):
                    continue
                own = there[:, j] & (y == c)
                n, values = w[own].sum(), X[own, j]
                if name == "MultinomialNB":
                    joint[i, k] += x * np.log((counts[j] + 1) / (counts + 1).sum())
                elif name == "ComplementNB":
                    joint[i, k] -= x * np.log(others[j] / others.sum())
                elif name == "BernoulliNB":
                    share = (w[own] @ (values > 0) + 1) / (n + 2)
                    joint[i, k] += np.log(share if x > 0 else 1 - share)
                elif name == "CategoricalNB":
                    K = np.nanmax(X[:, j]) + 1
                    joint[i, k] += np.log((w[own] @ (values == x) + 1) / (n + K))
                else:
                    mean, var = w[own] @ values / n, variance(values, w[own]) + 1e-9 * spread
                    joint[i, k] += -0.5 * np.log(2 * np.pi * var) - (x - mean) ** 2 / (2 * var)
    return joint


def variance(values: Any, w: Any) -> float:
    mean = w @ values / w.sum()
    return float(w @ (values - mean) ** 2 / w.sum())


@every_class
@law
@given(data=st.data())
def test_missing_values_are_skipped_as_the_naive_twin_skips_them(name: str, data: st.DataObject) -> None:
    n, k = data.draw(st.integers(4, 8)), data.draw(st.integers(1, 3))
    rows = data.draw(arrays.arrays(np.float64, (n, k), elements=st.integers(0, 3).map(float)))
    gaps = data.draw(arrays.arrays(bool, (n, k)))
    gaps[:4] = False  # every class has a number in every column, and no column is all of one number
    rows[:4, :] = np.array([[0.0], [1.0], [2.0], [2.0]])
    y = np.r_[[0, 0, 1, 1], data.draw(arrays.arrays(np.int64, n - 4, elements=st.integers(0, 1)))]
    w = data.draw(st.none() | arrays.arrays(np.float64, n, elements=st.sampled_from([0.5, 1.0, 2.0])))
    rows = np.where(gaps, np.nan, rows)
    expected = naive_joint(name, rows, y, w, rows)
    for dtype in ("float64", "float32"):
        given_rows = rows.astype(dtype)
        clf = ours(name, missing="skip").fit(given_rows, y, w)
        rtol = 1e-10 if dtype == "float64" or name != "GaussianNB" else 1e-4
        np.testing.assert_allclose(clf.predict_joint_log_proba(given_rows), expected, rtol=rtol, atol=rtol)
    parts = ours(name, missing="skip")
    for cut in (slice(0, 3), slice(3, None)):
        parts.partial_fit(rows[cut], y[cut], [0, 1], None if w is None else w[cut])
    np.testing.assert_allclose(parts.predict_joint_log_proba(rows), expected, rtol=1e-10, atol=1e-10)
    if name not in ("CategoricalNB", "GaussianNB"):
        clf = ours(name, missing="skip").fit(sp.csr_matrix(rows), y, w)
        np.testing.assert_allclose(clf.predict_joint_log_proba(sp.csc_array(rows)), expected, rtol=1e-10, atol=1e-10)


@every_class
def test_a_row_of_nothing_but_gaps_has_the_prior(name: str) -> None:
    clf = ours(name, missing="skip").fit(X.astype(float), Y)
    found = clf.predict_proba(np.full((1, 4), np.nan))
    np.testing.assert_allclose(found, [np.bincount(Y) / len(Y)], rtol=1e-12)


@pytest.mark.parametrize("name", ["BernoulliNB", "ComplementNB", "MultinomialNB"])
def test_what_is_refused_is_named_though_gaps_are_skipped(name: str) -> None:
    bad = np.array([[np.nan, -1.0], [1.0, 0.0]])
    chosen = {"binarize": None} if name == "BernoulliNB" else {}
    with pytest.raises(ValueError, match=r"Negative values|takes numbers from 0 to 1, but X contains -1"):
        ours(name, missing="skip", **chosen).fit(bad, [0, 1])
    with pytest.raises(ValueError, match="infinity"):
        ours(name, missing="skip", **chosen).fit(np.array([[np.nan, np.inf], [1.0, 0.0]]), [0, 1])


# Learning and forgetting ---------------------------------------------------------------------------------------------


@st.composite
def learned(draw: st.DrawFn, name: str) -> tuple[dict[str, Any], Any, Any, Any]:
    """Settings, rows, classes and weights."""
    n = draw(st.integers(3, 9))
    chosen: dict[str, Any] = draw(st.sampled_from([{}, {"missing": "skip"}]))
    if name == "CategoricalNB":
        chosen = draw(st.sampled_from([chosen, {**chosen, "min_categories": 3}]))
    missing, cell = "missing" in chosen, st.integers(0, 3).map(float)
    rows = draw(arrays.arrays(np.float64, (n, 3), elements=cell | st.just(np.nan) if missing else cell))
    weights = draw(st.none() | arrays.arrays(np.float64, n, elements=st.sampled_from([0.5, 1.0, 2.0, 0.1])))
    return chosen, rows, draw(arrays.arrays(np.int64, n, elements=st.integers(0, 2))), weights


def attributes(clf: Any) -> dict[str, Any]:
    names = """class_count_ class_log_prior_ class_prior_ feature_count_ feature_log_prob_ feature_all_ theta_ var_ epsilon_
        category_count_ n_categories_""".split()
    return {name: getattr(clf, name) for name in names if hasattr(clf, name)}


def assert_same(a: Any, b: Any) -> None:
    assert a.tally_ == b.tally_
    for name, found in attributes(a).items():
        for one, two in (
            zip(found, getattr(b, name), strict=True) if isinstance(found, list) else [(found, getattr(b, name))]
        ):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9, err_msg=name)


@every_class
@law
@given(data=st.data())
def test_forgetting_undoes_learning(name: str, data: st.DataObject) -> None:
    chosen, rows, y, weights = data.draw(learned(name))
    cut = data.draw(st.integers(1, len(y) - 1))
    first, then = ((rows[s], y[s], None if weights is None else weights[s]) for s in (slice(0, cut), slice(cut, None)))
    clf = ours(name, **chosen).partial_fit(*first[:2], [0, 1, 2], first[2])
    before = copy.deepcopy(clf)
    if data.draw(st.booleans()):
        clf.predict_proba(rows)
    clf.partial_fit(*then[:2], sample_weight=then[2])
    if data.draw(st.booleans()):
        clf.predict_proba(rows)
    assert clf.forget(*then) is clf
    assert_same(clf, before)
    np.testing.assert_allclose(clf.predict_proba(first[0]), before.predict_proba(first[0]), rtol=1e-8, atol=1e-8)
    clf.partial_fit(*then[:2], sample_weight=then[2]).forget(*first)  # and the other way round
    alone = ours(name, **chosen).partial_fit(*then[:2], [0, 1, 2], then[2])
    assert clf.tally_.to(alone.tally_.schema) == alone.tally_


@every_class
@pytest.mark.parametrize(
    "rows, labels, weights",
    [
        ([[9, 99, 999, 9999]], [0], None),
        ([[0, 0, 0, 0]] * 99, [0] * 99, None),
        (X[:3], Y[:3], [1e6] * 3),
        (X[:3], (Y[:3] + 1) % 3, [40.0] * 3),
    ],
    ids=["a row of its own", "too many rows", "too heavy", "other classes"],
)
def test_rows_that_were_never_learned_raise_and_change_nothing(name: str, rows: Any, labels: Any, weights: Any) -> None:
    if name == "BernoulliNB" and len(rows) == 1:
        weights = [91.0]  # a row of yeses is like any other
    clf = ours(name).fit(X, Y)
    before, tally = clf.predict_joint_log_proba(X), clf.tally_
    with pytest.raises(errors.NegativeCount, match="nothing was changed"):
        clf.forget(rows, labels, sample_weight=weights)
    assert clf.tally_ == tally
    np.testing.assert_array_equal(clf.predict_joint_log_proba(X), before)
    with pytest.raises(
        ValueError, match=r"The target label\(s\) \[8\] in y do not exist in the initial classes \[0 1 2\]"
    ):
        clf.forget(X[:1], [8])
    left = ours(name).fit(X[10:], Y[10:])
    np.testing.assert_allclose(clf.forget(X[:10], Y[:10]).predict_proba(X[10:]), left.predict_proba(X[10:]), rtol=1e-9)


# What stands behind it -----------------------------------------------------------------------------------------------

SETTINGS = [
    *[(name, {}) for name in NAMES],
    *[(name, {"missing": "skip"}) for name in NAMES],
    ("BernoulliNB", {"alpha": [0.5, 1.0, 2.0, 3.0], "binarize": 1.0}),
    ("MultinomialNB", {"alpha": [0.5, 1.0, 2.0, 3.0], "class_prior": [0.2, 0.3, 0.5]}),
    ("MultinomialNB", {"alpha": 0.0}),
    ("ComplementNB", {"norm": True}),
    ("ComplementNB", {"fit_prior": False}),
    ("CategoricalNB", {"min_categories": 30}),
    ("GaussianNB", {"priors": [0.2, 0.3, 0.5], "var_smoothing": 0.5}),
]


@pytest.mark.parametrize("name, chosen", SETTINGS, ids=str)
def test_its_model_answers_as_it_does_and_outlives_a_file(name: str, chosen: dict[str, Any], tmp_path: Path) -> None:
    clf = ours(name, **chosen).fit(X[:60], Y[:60]).partial_fit(X[60:], Y[60:], sample_weight=WEIGHTS[60:])
    bb.save(clf.model_, tmp_path / "model.banbury")
    bb.save(clf.tally_, tmp_path / "tally.banbury")
    loaded = bb.load(tmp_path / "model.banbury")
    assert isinstance(loaded, bb.Model)
    for model in (clf.model_, loaded):
        np.testing.assert_allclose(model.posterior(X), clf.predict_proba(X), rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(model.predict(X), clf.predict(X))
    assert bb.load(tmp_path / "tally.banbury") == clf.tally_
    before, n = clf.tally_, 60 + WEIGHTS[60:].sum()
    clf.partial_fit(X[:1], Y[:1])
    assert (before.n_rows, clf.tally_.n_rows) == (n, n + 1)


@pytest.mark.parametrize("name, chosen", SETTINGS, ids=str)
def test_it_explains_its_own_answers(name: str, chosen: dict[str, Any]) -> None:
    clf = ours(name, **chosen).fit(X, Y)
    joint = clf.predict_joint_log_proba(X)
    for row, scores, label in zip(X[:8], joint, clf.predict(X), strict=False):
        told = clf.explain(row)
        best, against = (int(np.flatnonzero(clf.classes_ == c)[0]) for c in (told.winner, told.against))
        assert told.winner == label
        if np.isfinite(scores[[best, against]]).all():
            assert told.log_odds == pytest.approx(scores[best] - scores[against], rel=1e-9, abs=1e-9)
    found = clf.informative(2)
    assert list(found.ratios) == [0, 1, 2]
    assert all(ratio.ratio > 1 for rows in found.ratios.values() for ratio in rows)
    assert list(clf.informative(1, classes=[0, 2]).ratios) == [0, 2]


@pytest.mark.parametrize("name", ["GaussianNB", "MultinomialNB", "BernoulliNB", "CategoricalNB"])
def test_a_row_left_out_is_explained_as_if_it_had_not_been_learned(name: str) -> None:
    X = np.random.default_rng(0).integers(0, 3, (40, 4))
    y, of = np.arange(40) % 2, getattr(bb, name)
    clf = of(**({"min_categories": 3} if name == "CategoricalNB" else {})).fit(X, y)
    rest = of(**clf.get_params()).fit(np.delete(X, 3, 0), np.delete(y, 3))
    found, expected = clf.explain(X[3], held_out=True, label=y[3]), rest.explain(X[3])
    assert found.held_out and found.winner == expected.winner
    for one in found.evidence:
        [other] = [each for each in expected.evidence if (each.feature, each.value) == (one.feature, one.value)]
        assert one.decibans == pytest.approx(other.decibans, abs=2e-6)  # var_smoothing is of all rows
    if name != "BernoulliNB":  # where 900 is as much as 1
        with pytest.raises(bb.errors.NegativeCount, match="not counted with class 1, so it cannot be left out"):
            clf.explain(X[3] + 900, held_out=True, label=1)


def test_columns_keep_their_names_in_what_is_explained() -> None:
    rows = pd.DataFrame({"free": [2, 1, 0, 0], "noon": [0, 0, 3, 1]})
    clf = bb.MultinomialNB().fit(rows, ["spam", "spam", "ham", "ham"])
    told = clf.explain({"free": 1, "noon": 0})
    assert (told.winner, [e.feature for e in told.evidence]) == ("spam", ["free"])
    assert {ratio.feature for rows in clf.informative(1).ratios.values() for ratio in rows} <= {"free", "noon"}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda clf: pickle.loads(pickle.dumps(clf))])
@pytest.mark.parametrize("make", [bb.GaussianNB, bb.MultinomialNB])
def test_a_class_goes_with_its_last_row_unless_it_was_named(make: Any, copied: Any) -> None:
    X, y = np.array([[1.0], [2.0], [5.0], [6.0]]), np.array(list("aabc"))
    prior = {"priors" if make is bb.GaussianNB else "class_prior": [0.2, 0.3, 0.5]}
    every, without = ["a", "b", "c"], ["a", "c"]
    for fit, left in (
        (lambda: make().fit(X, y), without),
        (lambda: make().partial_fit(X, y, classes=every), every),
        (lambda: make().fit(X, y).partial_fit(X, y, classes=every).forget(X, y), every),
        (lambda: make(**prior).fit(X, y), every),
    ):
        clf, other = fit(), copied(fit())
        for each in (clf, other):
            each.forget(X[2:3], y[2:3])
        assert other.classes_.tolist() == list(other.model_.classes) == left
        np.testing.assert_array_equal(clf.predict_proba(X), other.predict_proba(X))
    clf = make().fit(X, y).forget(X[2:3], y[2:3])
    np.testing.assert_array_equal(clf.predict_proba(X), make().fit(X[[0, 1, 3]], y[[0, 1, 3]]).predict_proba(X))


# Cross-validation ----------------------------------------------------------------------------------------------------

COUNTS = np.random.default_rng(5).poisson(0.5, (60, 8))
ESTIMATORS: dict[str, Any] = {
    "multinomial": (bb.MultinomialNB(alpha=0.4), COUNTS),
    "multinomial, sparse": (bb.MultinomialNB(), sp.csr_matrix(COUNTS)),
    "multinomial, fractions": (bb.MultinomialNB(class_prior=[0.2, 0.2, 0.6]), COUNTS * 0.3),
    "multinomial, uniform": (bb.MultinomialNB(fit_prior=False), COUNTS),
    "complement": (bb.ComplementNB(), COUNTS),
    "complement, norm": (bb.ComplementNB(norm=True), COUNTS),
    "bernoulli": (bb.BernoulliNB(), COUNTS),
    "bernoulli, sparse": (bb.BernoulliNB(alpha=0.5), sp.csr_array(COUNTS)),
    "bernoulli, gaps skipped": (bb.BernoulliNB(missing="skip"), COUNTS.astype(float)),
    "categorical": (bb.CategoricalNB(), COUNTS),
    "categorical, at least nine": (bb.CategoricalNB(min_categories=9), COUNTS),
    "gaussian": (bb.GaussianNB(), np.random.default_rng(6).normal(size=(60, 6))),
    "gaussian, priors": (bb.GaussianNB(priors=[0.2, 0.2, 0.6]), COUNTS),
    "any columns": (bb.NaiveBayesClassifier(features="gaussian"), COUNTS),
}


@pytest.mark.parametrize(("estimator", "X"), ESTIMATORS.values(), ids=ESTIMATORS.keys())
@pytest.mark.parametrize("cv", [StratifiedKFold(5), KFold(4, shuffle=True, random_state=1), LeaveOneOut()], ids=str)
def test_cross_validation_of_an_estimator_is_cross_val_predict(estimator, X, cv):
    y = np.arange(60) % 3 + 5
    wanted = cross_val_predict(estimator, X, y, cv=cv, method="predict_proba")
    found = bb.cross_validate(estimator, X, y, folds="loo" if isinstance(cv, LeaveOneOut) else cv)
    assert found.posteriors == pytest.approx(wanted, abs=1e-10)


def test_an_estimator_says_all_there_is_to_say():
    y = np.arange(60) % 3
    with pytest.raises(errors.BadSetting, match=r"alpha.*omitted when an estimator is given"):
        bb.cross_validate(bb.MultinomialNB(), COUNTS, y, alpha=0.5)
    with pytest.raises(errors.BadSetting, match="a Banbury estimator"):
        bb.cross_validate(theirs.MultinomialNB(), COUNTS, y)
