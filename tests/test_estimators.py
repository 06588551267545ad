"""The scikit-learn face: its conventions, its streaming methods, and what it adds to them."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import warnings
from functools import cache
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import banbury as bb
import by_shape
import shell
from banbury import NaiveBayesClassifier, errors

# scikit-learn's own suite --------------------------------------------------------------------------------------------


CONFIGURATIONS = [
    NaiveBayesClassifier(),
    NaiveBayesClassifier(features="gaussian", how="predictive"),
    NaiveBayesClassifier(features=bb.Gaussian(variance="shared"), how="mle"),
    NaiveBayesClassifier(features="histogram", how="map", alpha=2.0, class_prior="uniform"),
    NaiveBayesClassifier(features="kernel_density", threads=1),
    NaiveBayesClassifier(class_weight="balanced"),
]


@parametrize_with_checks(CONFIGURATIONS)
def test_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.SkipTestWarning)
        check(estimator)


def test_scikit_learns_check_of_array_api_input():
    """It runs only where SCIPY_ARRAY_API was set before SciPy was imported."""
    script = """
import warnings; warnings.simplefilter("ignore")
from sklearn.utils.estimator_checks import estimator_checks_generator
from banbury import NaiveBayesClassifier
for estimator, check in estimator_checks_generator(NaiveBayesClassifier()):
    if "array_api" in str(check):
        check(estimator)
        print("checked")
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["checked"]


def test_tags_say_what_is_accepted():
    tags = get_tags(NaiveBayesClassifier())
    assert is_classifier(NaiveBayesClassifier())
    assert tags.input_tags.allow_nan
    assert tags.input_tags.string
    assert tags.input_tags.categorical
    assert tags.input_tags.sparse
    assert tags.target_tags.required
    assert tags.classifier_tags.multi_class
    assert not tags.classifier_tags.multi_label


# Parameters ----------------------------------------------------------------------------------------------------------


def test_nothing_is_checked_before_fit():
    clf = NaiveBayesClassifier(features="nonsense", how=3, alpha="x", missing=0, threads=-1, seed=None)
    assert clf.get_params()["alpha"] == "x"
    clone(clf)


@pytest.mark.parametrize(
    "parameters, said",
    [
        ({"how": "mode"}, "how must be one of 'mle', 'map', 'mean'"),
        ({"how": None}, "how must be one of"),
        ({"alpha": -1}, "alpha must be a finite number of at least 0. Got -1 instead"),
        ({"alpha": "1"}, "alpha must be a finite number of at least 0. Got '1' instead"),
        ({"alpha": np.nan}, "alpha must be a finite number"),
        ({"features": "gausian"}, "must be one of .* Did you mean 'gaussian'"),
        ({"features": {"x9": "poisson"}}, "no column 'x9'"),
        ({"features": {7: "poisson"}}, "no column 7"),
        ({"missing": "drop"}, "missing must be one of 'skip', 'category'"),
        ({"threads": 0}, "threads must be a whole number of at least 1"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_bad_parameter_is_named_when_fitting(method, parameters, said):
    clf = NaiveBayesClassifier(**parameters)
    with pytest.raises(bb.BanburyError, match=said):
        getattr(clf, method)([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    assert not clf.__sklearn_is_fitted__()


@pytest.mark.parametrize(
    "class_prior, said",
    [
        ([0.5, 0.6], r"sum to 1, one for each class \(these sum to 1.1\)"),
        ([1.0], "one probability for each of the 2 classes"),
        ({0: 0.5, 2: 0.5}, "no class 2"),
        ("flat", "class_prior must be one of 'uniform'"),
        (-1, "class_prior must be a finite number of at least 0"),
    ],
)
def test_a_bad_class_prior_is_named_when_fitting(class_prior, said):
    with pytest.raises(bb.BanburyError, match=said):
        NaiveBayesClassifier(class_prior=class_prior).fit([[0.0], [1.0]], [0, 1])


def test_a_failed_fit_leaves_what_was_learned():
    X, y = load_iris(return_X_y=True)
    clf = NaiveBayesClassifier().fit(X, y)
    before, found = clf.tally_, clf.predict_proba(X)
    with pytest.raises(bb.BanburyError):
        clf.set_params(how="nonsense").fit(X[:, :2], y)
    assert clf.tally_ is before
    assert clf.n_features_in_ == 4
    assert np.array_equal(clf.set_params(how="mean").predict_proba(X), found)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba"])
def test_an_estimator_that_is_not_fitted_says_so(method):
    with pytest.raises(NotFittedError, match="This NaiveBayesClassifier instance is not fitted yet"):
        getattr(NaiveBayesClassifier(), method)([[1.0]])
    with pytest.raises(NotFittedError):
        NaiveBayesClassifier().forget([[1.0]], [0])
    with pytest.raises(NotFittedError):
        NaiveBayesClassifier().model_  # noqa: B018


def test_threads_change_nothing_but_the_time():
    X, y = load_wine(return_X_y=True)
    one, many = (NaiveBayesClassifier(threads=threads).fit(X, y) for threads in (1, 8))
    assert one.model_.threads == 1
    assert np.array_equal(one.predict_joint_log_proba(X), many.predict_joint_log_proba(X))


# Working with scikit-learn's tools -----------------------------------------------------------------------------------


@pytest.fixture
def wine() -> tuple[np.ndarray, np.ndarray]:
    return load_wine(return_X_y=True)


@pytest.mark.parametrize("copy", [clone, lambda clf: pickle.loads(pickle.dumps(clf))], ids=["clone", "pickle"])
def test_copies_are_fitted_to_the_same(wine, copy):
    X, y = wine
    clf = NaiveBayesClassifier(features={0: bb.Gaussian(variance="shared")}, alpha=0.5, class_prior="uniform")
    again = copy(clf).fit(X, y)
    assert again.get_params() == clf.get_params()
    assert np.array_equal(again.predict_proba(X), clf.fit(X, y).predict_proba(X))


def test_a_pickle_answers_and_learns_on(wine):
    X, y = wine
    clf = NaiveBayesClassifier().partial_fit(X[:100], y[:100])
    again = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.partial_fit(X[100:], y[100:]).tally_ == clf.partial_fit(X[100:], y[100:]).tally_
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_pipelines_and_cross_validation(wine):
    X, y = wine
    plain = cross_val_score(NaiveBayesClassifier(), X, y, cv=5)
    scaled = cross_val_score(make_pipeline(StandardScaler(), NaiveBayesClassifier()), X, y, cv=5)
    assert plain.mean() > 0.95
    assert scaled == pytest.approx(plain)  # a Gaussian does not mind the scale
    found = cross_validate(NaiveBayesClassifier(), X, y, scoring=["accuracy", "neg_log_loss", "roc_auc_ovr"])
    assert found["test_roc_auc_ovr"].min() > 0.99
    assert cross_val_predict(NaiveBayesClassifier(), X, y, method="predict_proba").shape == (178, 3)


def test_grid_search_over_alpha_and_how():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 120)
    X = np.array(list("abcdefgh"))[(rng.integers(0, 4, (120, 5)) + y[:, None])]
    grid = {"alpha": [1.01, 2.0, 10.0], "how": ["mean", "map", "predictive", "gibbs"], "class_prior": [None, "uniform"]}
    search = GridSearchCV(NaiveBayesClassifier(), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    assert search.best_estimator_.alpha in grid["alpha"]
    assert len(search.cv_results_["params"]) == 24
    families = {"features": ["gaussian", "histogram", "kernel_density", bb.Gaussian(variance="shared")]}
    iris = load_iris(return_X_y=True)
    assert GridSearchCV(NaiveBayesClassifier(), families, cv=3).fit(*iris).best_score_ > 0.9


def test_ensembles_of_classifiers(wine):
    X, y = wine
    vote = VotingClassifier(
        [("a", NaiveBayesClassifier()), ("b", NaiveBayesClassifier(how="predictive"))], voting="soft"
    )
    assert vote.fit(X, y).score(X, y) > 0.95
    assert BaggingClassifier(NaiveBayesClassifier(), random_state=0).fit(X, y).score(X, y) > 0.95
    assert OneVsRestClassifier(NaiveBayesClassifier()).fit(X, y).score(X, y) > 0.9


def test_set_output_is_no_matter_for_a_classifier(wine):
    X, y = load_wine(return_X_y=True, as_frame=True)
    numbers = list(X.columns[:6])
    columns = ColumnTransformer([("scaled", StandardScaler(), numbers)], remainder="passthrough")
    expected = NaiveBayesClassifier().fit(*wine).predict(wine[0])
    with sklearn.config_context(transform_output="pandas"):
        pipe = make_pipeline(columns, NaiveBayesClassifier()).fit(X, y)
        found = pipe.predict_proba(X)
    assert type(found) is np.ndarray
    assert pipe[-1].feature_names_in_[0] == "scaled__alcohol"
    assert (found.argmax(axis=1) == expected).all()
    with sklearn.config_context(transform_output="polars"):
        again = make_pipeline(columns, NaiveBayesClassifier()).fit(X, y).predict_proba(X)
    assert again == pytest.approx(found, rel=1e-9)


def test_metadata_routing_brings_weights_to_fit_and_score(wine):
    X, y = wine
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        clf = NaiveBayesClassifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        cv = StratifiedKFold(3)
        found = cross_validate(clf, X, y, cv=cv, params={"sample_weight": weights}, return_estimator=True)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), clf).fit(
            X, y, sample_weight=weights
        )
        streaming = NaiveBayesClassifier().set_partial_fit_request(sample_weight=True, classes=True)
        request = streaming.get_metadata_routing().partial_fit.requests
    for fitted, (train, _) in zip(found["estimator"], cv.split(X, y), strict=True):
        assert fitted.tally_.n_rows == weights[train].sum()
    assert pipe[-1].tally_.n_rows == weights.sum()
    assert request == {"sample_weight": True, "classes": True}


def test_metadata_routing_refuses_weights_that_were_not_asked_for(wine):
    X, y = wine
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), NaiveBayesClassifier())
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match=r"for NaiveBayesClassifier\.fit"):
            pipe.fit(X, y, sample_weight=np.ones(len(y)))


def test_score_takes_weights(wine):
    X, y = wine
    clf = NaiveBayesClassifier(features="gaussian").fit(X, y)
    wrong = clf.predict(X) != y
    assert 0 < clf.score(X, y) < 1
    assert clf.score(X, y, sample_weight=np.where(wrong, 0.0, 1.0)) == 1.0


# Weights -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", ["auto", "gaussian", "histogram", "poisson", "categorical", "quantile_tree"])
def test_weights_are_repeated_rows(features):
    rng = np.random.default_rng(1)
    X, y, weights = rng.poisson(4, (120, 3)), rng.integers(0, 3, 120), rng.integers(0, 4, 120)
    clf = NaiveBayesClassifier(features=features).fit(X, y, sample_weight=weights)
    rows = np.repeat(np.arange(120), weights)
    schema = clf.tally_.schema
    assert clf.tally_ == bb.count(X[rows], target=y[rows], schema=schema)
    again = NaiveBayesClassifier(features=features).fit(X[rows], y[rows])
    if features != "histogram":  # whose bins the first rows settle
        assert clf.predict_proba(X) == pytest.approx(again.predict_proba(X), rel=1e-10)


def test_fractional_weights_scale_like_rows(wine):
    X, y = wine
    weights = np.random.default_rng(2).random(len(y))
    clf = NaiveBayesClassifier(features="gaussian").fit(X, y, sample_weight=weights)
    for factor in (1e-6, 3.7, 1e8):
        again = NaiveBayesClassifier(features="gaussian").fit(X, y, sample_weight=weights * factor)
        assert again.predict_joint_log_proba(X) == pytest.approx(clf.predict_joint_log_proba(X), rel=1e-10)


def test_a_single_weight_is_that_of_every_row(wine):
    X, y = wine
    assert NaiveBayesClassifier().fit(X, y, sample_weight=2).tally_.n_rows == 2 * len(y)


def test_a_class_and_a_category_of_weight_zero_are_not_there():
    X, y = [["a"], ["b"], ["c"]], ["x", "y", "z"]
    clf = NaiveBayesClassifier(features="categorical").fit(X, y, sample_weight=[1, 2, 0])
    assert clf.classes_.tolist() == ["x", "y"]
    assert by_shape.counts(clf.tally_).keys == (("a", "b"),)


def test_weights_of_zero_for_all_rows_are_refused():
    with pytest.raises(errors.EmptyData, match="missing label or a weight of zero"):
        NaiveBayesClassifier().fit([[1.0], [2.0]], [0, 1], sample_weight=[0, 0])


@pytest.mark.parametrize("weights", [[1.0], np.ones((3, 1)), np.ones((3, 2)), ["a", "b", "c"]])
def test_weights_of_another_shape_are_refused(weights):
    with pytest.raises(ValueError, match=r"[Ww]eight|convert"):
        NaiveBayesClassifier().fit([[1.0], [2.0], [3.0]], [0, 1, 1], sample_weight=weights)


# Streaming -----------------------------------------------------------------------------------------------------------


@cache
def mixed_frame(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, counts, words, categories and yes/no, with gaps in all but the counts."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["spam", "ham", "eggs"], n, p=[0.5, 0.3, 0.2])
    shift = np.array([{"spam": 0, "ham": 1, "eggs": 2}[name] for name in y])
    frame = pd.DataFrame(
        {
            "length": rng.normal(shift, 1.5),
            "links": rng.poisson(1 + shift),
            "sender": np.array(["ann", "bob", "cy", "dee", "eve"], dtype=object)[rng.integers(0, 3, n) + shift],
            "size": pd.Categorical(np.array(["S", "M", "L", "XL"])[np.minimum(rng.integers(0, 2, n) + shift, 3)]),
            "reply": rng.random(n) < 0.2 + 0.3 * shift,
            "score": rng.normal(-shift, 2).astype(np.float32),
        }
    )
    frame["opened"] = pd.array(np.where(rng.random(n) < 0.1, None, rng.random(n) < 0.5), dtype="boolean")
    frame.loc[rng.random(n) < 0.15, "length"] = np.nan
    frame.loc[rng.random(n) < 0.15, "sender"] = None
    frame.loc[rng.random(n) < 0.15, "size"] = np.nan
    return frame, y


FEATURES = {"links": "poisson", "score": "histogram"}


@given(seed=st.integers(0, 9), cuts=st.lists(st.integers(1, 119), max_size=6), shuffle=st.randoms())
def test_any_batches_in_any_order_are_one_fit(seed, cuts, shuffle):
    frame, y = mixed_frame(120, seed)
    first = NaiveBayesClassifier(features=FEATURES).fit(frame.head(30), y[:30])
    bounds = [30, *sorted({cut for cut in cuts if cut > 30}), 120]
    parts = [slice(a, b) for a, b in pairwise(bounds)]
    shuffle.shuffle(parts)
    for part in parts:
        first.partial_fit(frame.iloc[part], y[part])
    whole = bb.count(frame, target=y, schema=first.tally_.schema)
    assert first.tally_ == whole
    found = bb.estimate(whole).log_joint(frame)
    np.testing.assert_allclose(first.predict_joint_log_proba(frame), found, rtol=1e-12, atol=1e-12)
    assert first.classes_.tolist() == sorted(set(y))


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_partial_fit_alone_gives_what_fit_gives(order):
    """Where the first batch settles other origins the sums are the same numbers about another place."""
    X, y = load_breast_cancer(return_X_y=True)
    parts = np.array_split(np.random.default_rng(0).permutation(len(X)), 3)
    clf = NaiveBayesClassifier()
    for p in order:
        clf.partial_fit(X[parts[p]], y[parts[p]])
    whole = NaiveBayesClassifier().fit(X, y)
    assert clf.predict_joint_log_proba(X) == pytest.approx(whole.predict_joint_log_proba(X), rel=1e-10)


def test_partial_fit_needs_no_classes_and_takes_new_ones_at_any_time():
    clf = NaiveBayesClassifier(features="gaussian").partial_fit([[1.0], [2.0]], ["b", "b"])
    assert clf.classes_.tolist() == ["b"]
    assert clf.predict_proba([[1.0]]).tolist() == [[1.0]]
    clf.partial_fit([[5.0], [6.0]], ["a", "a"]).partial_fit([[9.0]], ["c"])
    assert clf.classes_.tolist() == ["a", "b", "c"]
    assert clf.predict([[1.5], [5.5], [9.0]]).tolist() == ["b", "a", "c"]
    assert np.exp(clf.model_.log_prior) == pytest.approx([2 / 5, 2 / 5, 1 / 5])


def test_partial_fit_takes_new_categories_at_any_time():
    clf = NaiveBayesClassifier().partial_fit([["sun"], ["rain"]], [0, 1])
    before = clf.predict_proba([["hail"]])
    clf.partial_fit([["hail"], ["hail"]], [1, 1])
    assert by_shape.counts(clf.tally_).keys == (("hail", "rain", "sun"),)
    assert clf.predict_proba([["hail"]])[0, 1] > before[0, 1]
    assert clf.model_.likelihood("x0", "hail") == pytest.approx({0: 1 / 4, 1: 3 / 6})


def test_classes_named_in_advance_have_probability_zero_until_seen():
    clf = NaiveBayesClassifier(features="gaussian").partial_fit([[1.0], [2.0]], [5, 7], classes=[7, 9, 5, 1])
    assert clf.classes_.tolist() == [1, 5, 7, 9]
    assert clf.predict_proba([[1.0]])[0, [0, 3]].tolist() == [0, 0]
    assert clf.predict_log_proba([[1.0]])[0, [0, 3]].tolist() == [-np.inf, -np.inf]
    assert clf.predict_joint_log_proba([[1.0]])[0, 3] == -np.inf
    assert clf.predict([[1.0], [2.0]]).tolist() == [5, 7]
    clf.partial_fit([[8.0]], [9])
    assert clf.classes_.tolist() == [1, 5, 7, 9]
    assert clf.predict([[8.0]]).tolist() == [9]
    # A new fit knows only what it is given.
    assert clf.fit([[1.0], [2.0]], [5, 7]).classes_.tolist() == [5, 7]


def test_partial_fit_after_fit_goes_on_from_it(wine):
    X, y = wine
    clf = NaiveBayesClassifier().fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    assert clf.tally_ == bb.count(X, target=y, schema=clf.tally_.schema)


@given(st.lists(st.tuples(st.sampled_from(["a b", "b c c", "", "d"]), st.sampled_from("xyz")), max_size=6))
def test_texts_learned_as_a_list_are_those_of_an_array(rows):
    """A list of texts of known classes is counted without a batch; all else goes the long way."""
    first = ["a", "b b", "c"], ["x", "y", "y"]
    short, long = (NaiveBayesClassifier().fit(*first) for _ in range(2))
    for text, label in rows:
        short.partial_fit([text], [label])
        long.partial_fit(np.array([text], dtype=object), np.array([label]))
        assert np.array_equal(short.predict_proba(["a b c d", "d"]), long.predict_proba(["a b c d", "d"]))
        assert np.array_equal(short.classes_, long.classes_)
    assert short.tally_ == long.tally_
    assert short.model_.log_joint(["a b c d"]).tolist() == long.model_.log_joint(["a b c d"]).tolist()


def test_fit_forgets_all_that_was_learned_before(wine):
    X, y = wine
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    clf = NaiveBayesClassifier().fit(frame, y)
    assert clf.feature_names_in_.tolist() == ["a", "b", "c"]
    clf.fit(frame.rename(columns={"a": "z"})[["c", "z"]], y)
    assert clf.feature_names_in_.tolist() == ["c", "z"]
    clf.fit(X, y == 0)
    assert not hasattr(clf, "feature_names_in_")
    assert clf.n_features_in_ == 13
    assert clf.classes_.tolist() == [False, True]
    assert np.array_equal(clf.predict_proba(X), NaiveBayesClassifier().fit(X, y == 0).predict_proba(X))


def test_a_failed_partial_fit_changes_nothing():
    clf = NaiveBayesClassifier(features="bernoulli").partial_fit([[0], [1]], ["a", "b"])
    before, found = clf.tally_, clf.predict_proba([[1]])
    for X, y, weights in (
        ([[7]], ["c"], None),
        ([[np.inf]], ["c"], None),
        ([[1, 0]], ["c"], None),
        ([[1]], ["c", "d"], None),
        ([[1]], ["c"], [-1.0]),
    ):
        with pytest.raises(ValueError):
            clf.partial_fit(X, y, classes=["q"], sample_weight=weights)
    assert clf.tally_ is before
    assert clf.classes_.tolist() == ["a", "b"]
    assert np.array_equal(clf.predict_proba([[1]]), found)


# Forgetting ----------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 9), start=st.integers(0, 100), length=st.integers(1, 60), weighted=st.booleans())
def test_forget_is_the_twin_of_partial_fit(seed, start, length, weighted):
    frame, y = mixed_frame(120, seed)
    weights = np.random.default_rng(seed).integers(1, 5, 120) / (4 if weighted else 1)
    clf = NaiveBayesClassifier(features=FEATURES).fit(frame, y, sample_weight=weights)
    gone = np.zeros(120, dtype=bool)
    gone[start : start + length] = True
    before = clf.tally_
    clf.forget(frame[gone], y[gone], sample_weight=weights[gone])
    kept = bb.count(frame[~gone], target=y[~gone], weights=weights[~gone], schema=clf.tally_.schema)
    assert clf.tally_ == kept
    assert clf.classes_.tolist() == list(kept.classes)
    found = bb.estimate(kept).log_joint(frame)
    np.testing.assert_allclose(clf.predict_joint_log_proba(frame), found, rtol=1e-9, atol=1e-9)
    assert clf.partial_fit(frame[gone], y[gone], sample_weight=weights[gone]).tally_ == before


def test_forgetting_the_last_row_of_a_class_or_category_removes_it():
    clf = NaiveBayesClassifier().fit([["sun"], ["rain"], ["hail"], ["sun"]], ["a", "b", "c", "b"])
    clf.forget([["hail"]], ["c"])
    assert clf.classes_.tolist() == ["a", "b"]
    assert by_shape.counts(clf.tally_).keys == (("rain", "sun"),)
    assert clf.predict_proba([["hail"]]).shape == (1, 2)


def test_forgetting_what_was_never_learned_raises_and_changes_nothing():
    clf = NaiveBayesClassifier().fit([["sun"], ["rain"]], ["a", "b"])
    before = clf.tally_
    for X, y in (([["sun"]], ["b"]), ([["hail"]], ["a"]), ([["sun"]], ["c"]), ([["sun"], ["sun"]], ["a", "a"])):
        with pytest.raises(errors.NegativeCount, match="nothing was changed"):
            clf.forget(X, y)
        assert clf.tally_ is before
        assert clf.classes_.tolist() == ["a", "b"]


def test_forgetting_everything_is_refused():
    clf = NaiveBayesClassifier().fit([["sun"], ["rain"]], ["a", "b"])
    with pytest.raises(errors.EmptyData, match="would leave no rows"):
        clf.forget([["sun"], ["rain"]], ["a", "b"])
    assert clf.tally_.n_rows == 2


def test_an_outlier_is_forgotten_without_a_trace(wine):
    X, y = wine
    clf = NaiveBayesClassifier().fit(X, y)
    found = clf.predict_joint_log_proba(X)
    outlier = np.full((1, 13), 1e12)
    clf.partial_fit(outlier, [0])
    assert not np.allclose(clf.predict_joint_log_proba(X), found)
    assert clf.forget(outlier, [0]).predict_joint_log_proba(X) == pytest.approx(found, rel=1e-9)


# Labels --------------------------------------------------------------------------------------------------------------


LABELS = {
    "int32": np.array([0, 1, 0, 1], dtype=np.int32),
    "uint8": np.array([3, 250, 3, 250], dtype=np.uint8),
    "int64": np.array([-5, 10**12, -5, 10**12]),
    "float32": np.array([1.0, 2.0, 1.0, 2.0], dtype=np.float32),
    "float64": np.array([1.0, 2.0, 1.0, 2.0]),
    "bool": np.array([False, True, False, True]),
    "<U3": np.array(["no", "yes", "no", "yes"]),
    "object, words": np.array(["no", "yes", "no", "yes"], dtype=object),
    "object, numbers": np.array([1, 2, 1, 2], dtype=object),
    "list": [0, 1, 0, 1],
    "list of words": ["a", "b", "a", "b"],
    "tuple": (False, True, False, True),
    "pandas int16": pd.Series([0, 1, 0, 1], dtype="int16", index=[7, 3, 1, 0]),
    "pandas words": pd.Series(["a", "b", "a", "b"]),
    "pandas category": pd.Series(["a", "b", "a", "b"], dtype="category"),
    "polars words": pl.Series(["a", "b", "a", "b"]),
    "polars Int8": pl.Series([0, 1, 0, 1], dtype=pl.Int8),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_classes_keep_the_labels_type(labels, method):
    clf = getattr(NaiveBayesClassifier(), method)([[0.0], [5.0], [0.5], [5.5]], labels)
    expected = np.unique(np.asarray(labels))
    assert clf.classes_.dtype == expected.dtype
    assert clf.classes_.tolist() == expected.tolist()
    found = clf.predict([[0.2], [5.2]])
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "first, then, classes",
    [
        (np.array([0, 1000]), np.array([1, 2], dtype=np.int8), [0, 1, 2, 1000]),
        (np.array([1, 2], dtype=np.int8), np.array([0, 1000]), [0, 1, 2, 1000]),
        (np.array(["a", "b"]), np.array(["longer", "b"]), ["a", "b", "longer"]),
        (np.array(["a", "b"], dtype=object), np.array(["c", "b"]), ["a", "b", "c"]),
        (np.array([0, 1]), np.array([2.0, 1.0]), [0.0, 1.0, 2.0]),
        (np.array([0, 1]), np.array(["a", "b"]), [0, 1, "a", "b"]),
    ],
    ids=str,
)
def test_labels_of_another_type_may_follow(first, then, classes):
    X = [[0.0], [1.0]]
    clf = NaiveBayesClassifier().partial_fit(X, first).partial_fit(X, then)
    assert clf.classes_.tolist() == classes
    assert set(clf.predict(X).tolist()) <= set(classes)


def test_rows_without_a_label_teach_nothing():
    plain = NaiveBayesClassifier().fit([["sun"], ["rain"]], ["a", "b"])
    for labels in (np.array(["a", "b", None], dtype=object), pd.Series(["a", "b", None])):
        with pytest.warns(bb.BanburyWarning, match=r"^1 row without a label \(None or NaN\) is skipped") as told:
            clf = NaiveBayesClassifier().fit([["sun"], ["rain"], ["hail"]], labels)
        assert len(told) == 1 and told[0].filename == __file__
        assert clf.classes_.tolist() == ["a", "b"]
        assert clf.tally_ == plain.tally_
        assert clf.tally_.skipped == 1


@pytest.mark.parametrize("made", [
    NaiveBayesClassifier(), NaiveBayesClassifier(alpha="auto"), NaiveBayesClassifier(calibrate="temperature"),
    bb.EvidenceClassifier(), bb.TANClassifier(),
], ids=str)  # fmt: skip
def test_rows_without_a_label_are_told(made):
    X, y = np.arange(120.0)[:, None] % 7, np.array([0.0, 1.0, np.nan] * 40)
    for method in {"fit", "partial_fit"}.intersection(dir(made)):
        if method == "fit" or made.get_params() == type(made)().get_params():
            with pytest.warns(bb.BanburyWarning, match=r"^40 rows without a label \(None or NaN\) are skipped") as told:
                clf = getattr(clone(made), method)(X, y)
            assert len(told) == 1 and clf.classes_.tolist() == [0.0, 1.0]


def test_a_column_vector_of_labels_is_flattened_with_a_warning():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed") as told:
        clf = NaiveBayesClassifier().fit([[0.0], [1.0]], [[0], [1]])
    assert told[0].filename == __file__
    assert clf.classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    "labels, kind, said",
    [
        (None, ValueError, "requires y to be passed, but the target y is None"),
        ([[0, 1], [1, 0]], ValueError, "y should be a 1d array"),
        ("play", ValueError, "y should be a 1d array"),
        ([0.5, 1.0], ValueError, "Unknown label type: continuous"),
        ([np.inf, 1.0], ValueError, "Input y contains infinity"),
        ([np.nan, np.nan], ValueError, "is missing in all 2 rows"),
        ([0], ValueError, "2 rows but 1 labels"),
        ([b"a", b"b"], TypeError, "labels of type .S1 are not supported"),
    ],
)
def test_labels_that_are_none_are_refused(labels, kind, said):
    with pytest.raises(kind, match=said):
        NaiveBayesClassifier().fit([[0.0], [1.0]], labels)


# Columns and their names ---------------------------------------------------------------------------------------------


def named(kind: str, columns: dict[str, list]) -> object:
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "mapping": dict}[kind](columns)


KINDS = ["pandas", "polars", "arrow", "mapping"]
COLUMNS = {"length": [1.0, 2.0, 5.0, 6.0], "colour": ["red", "red", "blue", "blue"], "big": [False, False, True, False]}


@pytest.mark.parametrize("kind", KINDS)
def test_named_columns_give_feature_names(kind):
    clf = NaiveBayesClassifier().fit(named(kind, COLUMNS), [0, 0, 1, 1])
    assert clf.feature_names_in_.tolist() == ["length", "colour", "big"]
    assert clf.feature_names_in_.dtype == object
    assert clf.n_features_in_ == 3
    assert clf.predict(named(kind, COLUMNS)).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("then", KINDS)
def test_every_kind_of_table_gives_the_same_answers(kind, then):
    expected = (
        NaiveBayesClassifier().fit(named("pandas", COLUMNS), [0, 0, 1, 1]).predict_proba(named("pandas", COLUMNS))
    )
    clf = NaiveBayesClassifier().fit(named(kind, COLUMNS), [0, 0, 1, 1])
    assert np.array_equal(clf.predict_proba(named(then, COLUMNS)), expected)


@pytest.mark.parametrize("table", [np.eye(3), np.eye(3).tolist(), pd.DataFrame(np.eye(3)), np.eye(3).astype(str)])
def test_columns_that_are_merely_numbered_have_no_names(table):
    clf = NaiveBayesClassifier().fit(table, [0, 1, 2])
    assert not hasattr(clf, "feature_names_in_")
    assert clf.n_features_in_ == 3
    clf.predict(np.eye(3))
    clf.predict(pd.DataFrame(np.eye(3)))
    clf.partial_fit(pd.DataFrame(np.eye(3), columns=[7, 8, 9]), [0, 1, 2])


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_matched_by_name_in_any_order(kind):
    clf = NaiveBayesClassifier().fit(named(kind, COLUMNS), [0, 0, 1, 1])
    turned = {name: COLUMNS[name] for name in reversed(COLUMNS)}
    expected = clf.predict_proba(named(kind, COLUMNS))
    assert np.array_equal(clf.predict_proba(named(kind, turned)), expected)
    clf.partial_fit(named(kind, turned), [0, 0, 1, 1])
    assert clf.tally_ == 2 * NaiveBayesClassifier().fit(named(kind, COLUMNS), [0, 0, 1, 1]).tally_


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba"])
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_an_absent_column_is_skipped_with_one_warning_that_names_it(kind, method):
    clf = NaiveBayesClassifier().fit(named(kind, COLUMNS), [0, 0, 1, 1])
    fewer = named(kind, {"length": COLUMNS["length"], "big": COLUMNS["big"]})
    with pytest.warns(
        bb.BanburyWarning, match="these rows have no column 'colour', which is treated as missing"
    ) as told:
        found = getattr(clf, method)(fewer)
    assert len(told) == 1
    assert told[0].filename == __file__
    without = NaiveBayesClassifier().fit(fewer, [0, 0, 1, 1])
    assert found == pytest.approx(getattr(without, method)(fewer), rel=1e-12)


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_an_extra_column_is_ignored_with_one_warning_that_names_it(kind, method):
    clf = NaiveBayesClassifier().fit(named(kind, COLUMNS), [0, 0, 1, 1])
    more = named(kind, {"note": ["x", "y", "z", "w"], **COLUMNS, "id": [1, 2, 3, 4]})
    with pytest.warns(bb.BanburyWarning, match="'id', 'note'.* ignored") as told:
        found = getattr(clf, method)(more)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert np.array_equal(found, getattr(clf, method)(named(kind, COLUMNS)))


def test_learning_more_rows_ignores_an_extra_column_and_needs_every_other():
    clf = NaiveBayesClassifier().fit(pd.DataFrame(COLUMNS), [0, 0, 1, 1])
    twice = 2 * clf.tally_
    with pytest.warns(bb.BanburyWarning, match="'note' .*ignored") as told:
        clf.partial_fit(pd.DataFrame({**COLUMNS, "note": list("wxyz")}), [0, 0, 1, 1])
    assert len(told) == 1
    assert told[0].filename == __file__
    assert clf.tally_ == twice
    with pytest.raises(errors.UnknownColumn, match="no column 'colour'"):
        clf.partial_fit(pd.DataFrame(COLUMNS).drop(columns="colour"), [0, 0, 1, 1])
    with pytest.raises(errors.UnknownColumn, match="no column 'colour'"):
        clf.forget(pd.DataFrame(COLUMNS).drop(columns="colour"), [0, 0, 1, 1])
    assert clf.tally_ == twice


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba"])
def test_an_array_of_another_width_raises_scikit_learns_error(width, method):
    clf = NaiveBayesClassifier().fit(np.eye(3), [0, 1, 2])
    said = f"X has {width} features, but NaiveBayesClassifier is expecting 3 features as input"
    with pytest.raises(ValueError, match=said):
        getattr(clf, method)(np.zeros((1, width)))
    for learn in (clf.partial_fit, clf.forget):
        with pytest.raises(ValueError, match=said):
            learn(np.zeros((1, width)), [0])


def test_names_on_one_side_only_are_told_in_scikit_learns_words(wine):
    X, y = wine
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(13)])
    with_names, without = NaiveBayesClassifier().fit(frame, y), NaiveBayesClassifier().fit(X, y)
    for method in ("predict", "predict_proba"):
        with pytest.warns(UserWarning, match="X does not have valid feature names, but .* was fitted with") as told:
            found = getattr(with_names, method)(X)
        assert [w.filename for w in told] == [__file__]
        assert np.array_equal(found, getattr(without, method)(X))
        with pytest.warns(UserWarning, match="X has feature names, but .* was fitted without feature names") as told:
            found = getattr(without, method)(frame)
        assert [w.filename for w in told] == [__file__]
        assert np.array_equal(found, getattr(without, method)(X))
    with pytest.warns(UserWarning, match="does not have valid feature names") as told:
        with_names.partial_fit(X, y)
    assert [w.filename for w in told] == [__file__]


# Tables of all sorts -------------------------------------------------------------------------------------------------


def test_a_mixed_frame_from_end_to_end():
    frame, y = mixed_frame(600, 5)
    clf = NaiveBayesClassifier(features=FEATURES).fit(frame, y)
    families = {feature.name: feature.family.name for feature in clf.tally_.schema.features}
    assert families == {
        "length": "quantile_tree",
        "links": "poisson",
        "sender": "categorical",
        "size": "categorical",
        "reply": "bernoulli",
        "score": "histogram",
        "opened": "bernoulli",
    }
    found = clf.predict_proba(frame)
    assert np.isfinite(found).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(600))
    assert cross_val_score(NaiveBayesClassifier(features=FEATURES), frame, y, cv=5).mean() > 0.7
    # A row full of gaps, and of values never seen.
    odd = frame.head(4).copy()
    odd["sender"] = ["zoe", None, "ann", np.nan]
    odd["size"] = pd.Categorical(["XXL", None, "S", None])
    odd.loc[:, ["length", "score"]] = np.nan
    odd["opened"] = pd.array([None] * 4, dtype="boolean")
    assert np.isfinite(clf.predict_proba(odd)).all()
    # The same table from Polars and from Arrow.
    for other in (pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)):
        assert clf.predict_proba(other) == pytest.approx(found, rel=1e-12)
        assert NaiveBayesClassifier(features=FEATURES).fit(other, y).tally_ == clf.tally_


def test_missing_as_a_category():
    frame = pd.DataFrame({"sender": ["ann", None, None, "bob"], "reply": [True, None, False, True]})
    clf = NaiveBayesClassifier(missing="category").fit(frame, [0, 1, 1, 0])
    assert by_shape.counts(clf.tally_).keys[0] == ("ann", "bob", None)
    assert clf.predict_proba(pd.DataFrame({"sender": [None], "reply": [None]}))[0, 1] > 0.6


def test_missing_numbers_are_skipped(wine):
    X, y = wine
    gaps = X.copy()
    gaps[np.random.default_rng(3).random(X.shape) < 0.3] = np.nan
    clf = NaiveBayesClassifier().fit(gaps, y)
    assert clf.score(gaps, y) > 0.9
    for j in range(13):
        seen = ~np.isnan(gaps[:, j])
        alone = NaiveBayesClassifier().fit(gaps[seen][:, [j]], y[seen])
        assert clf.model_.likelihood(f"x{j}", X[0, j]) == pytest.approx(
            alone.model_.likelihood("x0", X[0, j]), rel=1e-9
        )
    assert clf.predict_proba(np.full((1, 13), np.nan))[0] == pytest.approx(np.bincount(y) / len(y))


@pytest.mark.parametrize("rows", [3, 20_000])
def test_a_frame_in_pieces_is_read_whole(rows):
    one = pl.DataFrame(
        {"a": np.arange(rows, dtype=float), "b": ["x", "y", "z", "w"] * (rows // 4) + ["x"] * (rows % 4)}
    )
    pieces = pl.concat([one, one, one], rechunk=False)
    y = np.arange(3 * rows) % 2
    expected = bb.count({"a": pieces["a"].to_numpy(), "b": pieces["b"].to_list()}, target=y)
    in_arrow = pa.concat_tables([one.to_arrow()] * 3)
    for table in (pieces, pieces.lazy(), pieces.to_arrow(), in_arrow, in_arrow.to_reader()):
        clf = NaiveBayesClassifier().fit(table, y)
        assert clf.tally_.n_rows == 3 * rows
        assert clf.tally_.to(expected.schema) == expected
        assert clf.predict(in_arrow).shape == (3 * rows,)


def test_several_tables_are_not_one():
    with pytest.raises(bb.BanburyError, match=r"X must be one table\. Got '2 batches of rows' instead"):
        NaiveBayesClassifier().fit([np.eye(2), np.eye(2)], [0, 1, 0, 1])


def test_a_column_that_shows_one_value_in_the_first_batch_is_kept_for_what_follows():
    clf = NaiveBayesClassifier().partial_fit([["sun", 1.0, np.nan], ["sun", 1.0, np.nan]], [0, 1])
    clf.partial_fit([["rain", 2.0, 5.0], ["sun", 1.0, 4.0]] * 20, [1, 0] * 20)
    assert clf.predict([["rain", 2.0, 5.0], ["sun", 1.0, 4.0]]).tolist() == [1, 0]
    numbers = NaiveBayesClassifier().partial_fit(np.array([[1.0, np.nan]] * 2), [0, 1])
    numbers.partial_fit(np.array([[2.0, 5.0], [2.1, 5.2], [1.0, 4.0], [1.1, 4.1]]), [1, 1, 0, 0])
    assert numbers.predict(np.array([[np.nan, 5.1], [np.nan, 4.0]])).tolist() == [1, 0]


def test_nothing_to_learn_from_is_told_once():
    frame = pd.DataFrame({"day": pd.date_range("2020", periods=4), "same": [1.0] * 4})
    with pytest.warns(bb.BanburyWarning, match="there is no column to learn from.*'day'.*'same'") as told:
        clf = NaiveBayesClassifier().fit(frame, ["a", "a", "a", "b"])
    assert len(told) == 1
    assert told[0].filename == __file__
    assert clf.predict_proba(frame)[0] == pytest.approx([0.75, 0.25])


def test_a_frame_that_shares_no_column_is_refused():
    clf = NaiveBayesClassifier().fit(pd.DataFrame(COLUMNS), [0, 0, 1, 1])
    with pytest.raises(errors.UnknownColumn, match="no column 'length'"):
        clf.predict(pd.DataFrame({"a": [1.0]}))


@pytest.mark.parametrize(
    "X, said",
    [
        (np.empty((0, 3)), r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
        (np.empty((3, 0)), r"Found array with 0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
        (np.ones(3), "Expected 2D array, got 1D array instead"),
        (np.ones((2, 2, 2)), "Found array with dim 3"),
        ([[1.0, np.inf], [0.0, 1.0]], "row 0 of column 'x1' is infinite"),
        (pd.DataFrame(np.eye(2), columns=["a", "a"]), "two columns are named 'a'"),
    ],
)
def test_what_is_not_a_table_is_refused(X, said):
    with pytest.raises(ValueError, match=said):
        NaiveBayesClassifier().fit(X, [0, 1, 1][: len(X)])


def test_infinity_is_named_when_predicting(wine):
    X, y = wine
    clf = NaiveBayesClassifier().fit(X, y)
    rows = X[:3].copy()
    rows[2, 4] = -np.inf
    with pytest.raises(bb.BanburyError, match="row 2 of column 'x4' is infinite"):
        clf.predict(rows)


def test_the_caller_s_data_are_not_touched(wine):
    X, y = wine
    frame, labels = mixed_frame(50, 1)
    weights = np.ones(178)
    kept = X.copy(), y.copy(), weights.copy(), frame.copy(), labels.copy()
    clf = NaiveBayesClassifier().fit(X, y, sample_weight=weights)
    clf.partial_fit(X, y).forget(X, y).predict_proba(X)
    NaiveBayesClassifier(features=FEATURES).fit(frame, labels).predict(frame)
    assert np.array_equal(X, kept[0]) and np.array_equal(y, kept[1]) and np.array_equal(weights, kept[2])
    pd.testing.assert_frame_equal(frame, kept[3])
    assert np.array_equal(labels, kept[4])


def test_a_class_that_goes_and_comes_back_between_two_predictions() -> None:
    clf = bb.NaiveBayesClassifier().fit(["aa", "dd ee ee ii ii ii", "ff gg hh hh"], ["x", "y", "z"])
    clf.predict(["aa"])
    clf.forget(["aa"], ["x"]).partial_fit(["zz"], ["x"])
    np.testing.assert_array_equal(clf.predict_proba(["ii"]), bb.estimate(clf.tally_).posterior(["ii"]))


def test_threads_may_learn_and_ask_at_the_same_time() -> None:
    clf = bb.NaiveBayesClassifier().fit(["aa bb", "cc dd"], ["x", "y"])

    def work() -> None:
        for i in range(100):
            clf.partial_fit([f"w{i} aa"], ["x"]).predict_proba(["aa"])

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert clf.tally_.rows.value.tolist() == [301, 1]
    assert by_shape.words(clf.tally_)[0].texts.value.tolist() == [301, 1]


def test_a_row_learned_with_whole_weights_and_forgotten_among_fractions_is_gone() -> None:
    clf = bb.NaiveBayesClassifier().partial_fit(["aa", "bb", "ab"], ["x", "y", "y"], sample_weight=[2, 1, 1])
    clf.partial_fit(["cc"], ["y"], sample_weight=[0.5])
    clf.forget(["aa", "cc"], ["x", "y"], sample_weight=[2, 0.5])
    assert clf.classes_.tolist() == ["y"]
    assert by_shape.words(clf.tally_)[0].table.words(None) == ["bb", "ab"]


def test_a_text_is_never_taken_for_the_name_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("text\nsecret money\nother thing here\n")
    texts, kinds = ["free money now", "lunch at noon"], ["spam", "ham"]
    for features in ("auto", {"text": bb.Text(tokens=r"\w+")}):
        clf = bb.NaiveBayesClassifier(features=features).fit(texts, kinds)
        for rows in (["x.csv"], ("x.csv",), [np.str_("x.csv")]):
            assert clf.predict(rows).shape == (1,)
            assert clf.model_.posterior(rows).shape == (1, 2)
            assert clf.model_.log_likelihood(rows).shape == (1, 2)
        assert clf.tally_.count(["x.csv"], ["spam"]).n_rows == 1


def test_a_copy_learns_apart() -> None:
    clf = bb.NaiveBayesClassifier().fit(["aa", "bb"], ["x", "y"])
    other = copy.copy(clf).partial_fit(["rr"], ["new"])
    assert clf.tally_.classes == ("x", "y")
    assert clf.predict_proba(["rr"]).shape == (1, 2)
    assert other.predict(["rr"]).tolist() == ["new"]


@pytest.mark.parametrize("estimator", [bb.NaiveBayesClassifier, bb.TANClassifier, bb.SemiSupervisedClassifier])
def test_missing_labels_in_a_list_of_texts_are_missing(estimator):
    X = {"a": ["u", "v"] * 4, "b": ["u", "u", "v", "v"] * 2}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for labels in (["p", "q"] * 3 + [float("nan")] * 2, ["p", "q"] * 3 + [None] * 2):
            assert estimator().fit(X, labels).classes_.tolist() == ["p", "q"]
        flags = estimator().fit(X, [True, False] * 3 + [float("nan")] * 2)
    assert len(told) == (0 if estimator is bb.SemiSupervisedClassifier else 3)
    assert flags.classes_.tolist() == [False, True]
    assert all(type(answer) is bool for answer in flags.predict(X).tolist())


def test_a_long_stream_that_asks_for_nothing_keeps_little_and_answers_as_one_fit_does():
    texts = [f"word{i % 40} other{i % 7}" for i in range(600)]
    labels = ["ab"[i % 2] for i in range(600)]
    clf = bb.NaiveBayesClassifier().partial_fit(texts[:2], labels[:2])
    clf.predict(texts[:1])
    for text, label in zip(texts[2:], labels[2:], strict=True):
        clf.partial_fit([text], [label])
    gc.collect()
    n_objects = len(gc.get_objects())
    for text, label in zip(texts, labels, strict=True):
        clf.partial_fit([text], [label])
    gc.collect()
    assert len(gc.get_objects()) - n_objects < 256
    whole = bb.NaiveBayesClassifier().fit(texts * 2, labels * 2)
    assert np.array_equal(clf.predict_proba(texts[:50]), whole.predict_proba(texts[:50]))


# Starting -------------------------------------------------------------------------------------------------------------


def in_a_process(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(shell.SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip()


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = ("numpy", "scipy", "sklearn", "pandas", "pyarrow", "banbury._core")
    assert in_a_process(f"import sys, banbury; print(*(m for m in {heavy} if m in sys.modules))") == ""


@pytest.mark.slow
def test_a_first_fit_imports_no_statistics_and_no_frames_and_both_are_whole_when_asked_for() -> None:
    """scikit-learn imports both beside its base classes: most of the time that a first fit would take."""
    fit = (
        "import sys, banbury as bb; bb.NaiveBayesClassifier().fit(['good day', 'bad day'], [1, 0]).predict(['good']); "
    )
    unasked = ("scipy.stats", "pandas", "pyarrow")
    assert in_a_process(f"{fit}print(*(m for m in {unasked} if m in sys.modules))") == ""
    first_touch = (
        f"{fit}from sklearn.utils import fixes; held = fixes.pd.DataFrame; found = fixes.scipy.stats.mode([1, 1, 2]).mode; "
        "import pandas, scipy.stats, sklearn.ensemble; print(held is pandas.DataFrame, found == 1, pandas.__spec__.name, "
        "sys.modules['scipy.stats'] is scipy.stats, scipy.stats.norm.cdf(0))"
    )
    assert in_a_process(first_touch) == "True True pandas True 0.5"
    frames_first = "import pandas; before = pandas; import banbury as bb; bb.NaiveBayesClassifier; import sys; "
    assert in_a_process(f"{frames_first}print(sys.modules['pandas'] is before)") == "True"
    without = "import sys; sys.modules['pandas'] = None; import banbury as bb; "
    without += "print(*bb.NaiveBayesClassifier().fit([[1.0], [2.0]] * 9, [0, 1] * 9).predict([[1.0]]))"
    assert in_a_process(without) == "0"
