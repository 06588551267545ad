"""Expectation maximisation: against a slow twin, by its laws, and with what it must refuse."""

from __future__ import annotations

import math
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.exceptions
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import banbury as bb
import by_shape
import naive
from banbury.errors import BadSetting, EmptyData, LengthMismatch
from banbury.estimators.rows import one_batch
from banbury.semi_supervised import Task, climb, climb_from_starts, random_start, resume_climb
from banbury.semi_supervised.observed import Observed
from banbury.tally.schema import infer

TEXTS = [
    "cheap pills cheap",
    "lunch at noon",
    "cheap watches",
    "watches today",
    "noon walk",
    "a walk today",
    "",
    "pills",
]
SAID = ["spam", "ham", None, None, None, None, None, None]
IRIS, KINDS = load_iris(return_X_y=True)


def fallen(objectives: Any) -> float:
    """By how much the objective ever fell, as a share of itself."""
    return float(max(0.0, -np.diff(objectives).min(initial=0.0)) / abs(objectives[-1]))


# The slow twin -------------------------------------------------------------------------------------------------------


def slow_em(schema: Any, rows: list[dict[str, Any]], labels: list[Any], weight: float, how: str, n: int) -> Any:
    """n iterations, row by row: posteriors, and the log-likelihood under the last model."""
    classes = sorted({label for label in labels if label is not None})

    def model(soft: list[dict[Any, float]]) -> naive.Tally:
        repeated = [(row, c, w) for row, each in zip(rows, soft, strict=True) for c, w in each.items() if w]
        return naive.count(schema, [{**row, "y": c} for row, c, _ in repeated], "y", [w for _, _, w in repeated])

    def known(label: Any, w: float) -> dict[Any, float]:
        return {label: w} if label is not None else {}

    tally = model([known(label, 1.0) for label in labels])
    for _ in range(n):
        soft = []
        for row, label in zip(rows, labels, strict=True):
            joint = naive.log_joint(tally, schema, row, how)
            top = max(joint.values())
            total = sum(math.exp(x - top) for x in joint.values())
            soft.append({c: weight * math.exp(joint[c] - top) / total for c in classes} | known(label, 1.0))
            if label is not None:
                soft[-1] = {label: 1.0}
        tally = model(soft)
    likelihood = 0.0
    posteriors = []
    for row, label in zip(rows, labels, strict=True):
        joint = naive.log_joint(tally, schema, row, how)
        total = math.log(sum(math.exp(x) for x in joint.values()))
        likelihood += joint[label] if label is not None else weight * total
        posteriors.append([math.exp(joint[c] - total) for c in classes])
    return posteriors, likelihood


@pytest.mark.parametrize("how", ["map", "mean"])
@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_it_is_what_counting_row_by_row_comes_to(how: Any, weight: float) -> None:
    rows = [
        {"sky": sky, "wet": wet, "degrees": degrees}
        for sky, wet, degrees in zip(
            "aabbcabcab", [1, 1, 0, 0, 1, 1, 0, 0, 1, 0], [3, 4, 19, 21, 5, 2, 17, 4, 6, 22], strict=True
        )
    ]
    labels = ["x", "x", "y", "y", *[None] * 6]
    table = {name: [row[name] for row in rows] for name in rows[0]}
    families = {"sky": bb.Categorical(), "wet": bb.Bernoulli(), "degrees": bb.Poisson()}
    found = bb.SemiSupervisedClassifier(families, how=how, alpha=1.0, unlabelled_weight=weight, max_iter=4, tol=0).fit(
        table, labels
    )
    assert found.n_iter_ >= 2
    posteriors, likelihood = slow_em(found.model_.schema, rows, labels, weight, how, found.n_iter_)
    np.testing.assert_allclose(found.predict_proba(table), posteriors, rtol=1e-7, atol=1e-9)
    assert found.log_likelihoods_[-1] == pytest.approx(likelihood, rel=1e-9)


# Laws ----------------------------------------------------------------------------------------------------------------


FAMILIES = {
    "auto": "auto",
    "shared": bb.Gaussian("shared"),
    "prior": bb.Gaussian(prior=bb.NormalInverseGamma(1, 3)),
    "shared prior": bb.Gaussian("shared", bb.NormalInverseGamma(1, 3)),
    "histogram": bb.Histogram(bins=6),
    "poisson": bb.Poisson(),
    "categorical": bb.Categorical(),
    "bernoulli": bb.Bernoulli(threshold=2),
    "multinomial": bb.Occurrences(),
    "occurs": bb.Occurrences("bernoulli", threshold=0),
    "joint": {("x0", "x1"): bb.Joint()},
    "full": {("x0", "x1"): bb.Gaussian(covariance="full", prior=bb.NormalInverseGamma(1, 3))},
    "tied": {("x0", "x1"): bb.Gaussian(covariance="tied", prior=bb.NormalInverseGamma(1, 3))},
}


@pytest.mark.parametrize("name", FAMILIES)
@given(data=st.data())
def test_the_objective_never_falls(name: str, data: st.DataObject) -> None:
    choices = [("mle", 1.0), ("map", 1.5), ("mean", 0.5)]
    how, alpha = data.draw(
        st.sampled_from(choices[1:] if name in ("full", "tied") else choices)
    )  # few rows need the prior
    n = data.draw(st.integers(4, 14))
    cells = st.lists(st.integers(0, 6), min_size=2, max_size=2)
    X = np.array(data.draw(st.lists(cells, min_size=n, max_size=n)), dtype=float)
    X[0], X[1] = [0, 1], [6, 2]
    if name == "poisson":
        X += 1.0  # a prior of less than one event has no mode but 0
    y = ["a", "b", *data.draw(st.lists(st.sampled_from(["a", "b", None]), min_size=n - 2, max_size=n - 2))]
    weight = data.draw(st.sampled_from([1.0, 0.3]))
    prior = data.draw(st.sampled_from([None, "uniform", 2.0]))
    found = bb.SemiSupervisedClassifier(
        FAMILIES[name], how=how, alpha=alpha, class_prior=prior, unlabelled_weight=weight, max_iter=6, tol=0
    ).fit(X, y)
    assert np.isfinite(found.objectives_).all()
    assert fallen(found.objectives_) < 1e-8
    if how == "mle" and prior != 2.0:
        assert fallen(found.log_likelihoods_) < 1e-8


@pytest.mark.parametrize("how, alpha", [("mle", 1.0), ("map", 1.5), ("mean", 0.1)])
@pytest.mark.parametrize(
    "family",
    [bb.Text(), bb.Text(model="presence"), bb.Text(model="bernoulli"), bb.Text(damping="log", length=True),
     bb.Text(min_count=2), bb.Text(ngrams=2, drop_most_frequent=1)],
    ids=str,
)  # fmt: skip
def test_the_objective_of_texts_never_falls(family: Any, how: Any, alpha: float) -> None:
    found = bb.SemiSupervisedClassifier(family, how=how, alpha=alpha, tol=0, max_iter=30).fit(TEXTS, SAID)
    assert len(found.objectives_) > 2
    assert fallen(found.objectives_) < 1e-8


def test_rows_that_all_have_labels_are_counted_as_ever() -> None:
    found = bb.SemiSupervisedClassifier().fit(IRIS, KINDS)
    plain = bb.NaiveBayesClassifier(features="gaussian").fit(IRIS, KINDS)
    assert found.tally_ == plain.tally_
    np.testing.assert_allclose(found.predict_proba(IRIS), plain.predict_proba(IRIS), rtol=1e-12)
    assert found.transduction_.tolist() == KINDS.tolist()


def test_rows_that_weigh_nothing_teach_nothing() -> None:
    y = [None if i % 3 else kind for i, kind in enumerate(KINDS.tolist())]
    found = bb.SemiSupervisedClassifier(unlabelled_weight=0).fit(IRIS, y)
    labelled = bb.count(IRIS[::3], target=KINDS[::3], schema=found.model_.schema)
    assert found.tally_ == labelled


def test_none_nan_and_a_label_of_ones_own_mean_no_label() -> None:
    hidden = np.arange(150) % 10 > 0
    floats, whole = KINDS.astype(float), KINDS.copy()
    floats[hidden], whole[hidden] = np.nan, -1
    words = np.array(["setosa", "versicolor", "virginica"], dtype=object)[KINDS]
    words[hidden] = None
    first = bb.SemiSupervisedClassifier().fit(IRIS, floats)
    second = bb.SemiSupervisedClassifier(unlabelled=-1).fit(IRIS, whole)
    third = bb.SemiSupervisedClassifier().fit(IRIS, words)
    assert first.classes_.tolist() == second.classes_.tolist() == [0, 1, 2]
    assert second.classes_.dtype == KINDS.dtype
    assert third.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    for other in (second, third):
        np.testing.assert_array_equal(first.predict_proba(IRIS), other.predict_proba(IRIS))
    assert (first.transduction_[~hidden] == KINDS[~hidden]).all()


@pytest.mark.parametrize("dtype", [int, float, object])
def test_a_class_of_minus_one_is_warned_of_once(dtype: Any) -> None:
    y = np.where(np.arange(150) % 2, KINDS, -1).astype(dtype)
    with pytest.warns(bb.BanburyWarning, match="75 rows of label -1 are treated as a class.*unlabelled=-1") as caught:
        found = bb.SemiSupervisedClassifier().fit(IRIS, y)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert found.classes_.tolist() == [-1, 0, 1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bb.SemiSupervisedClassifier(unlabelled=-1).fit(IRIS, y)
        bb.SemiSupervisedClassifier().fit(IRIS, np.where(KINDS == 0, -1, 1))  # two classes, one of them -1
        bb.SemiSupervisedClassifier().fit(IRIS, np.where(KINDS == 0, "-1", "1"))


def test_unlabelled_rows_find_the_border() -> None:
    """Two rows are labelled at the same side of their clouds; the others show where the clouds are."""
    rng = np.random.default_rng(1)
    x = np.concatenate([[-1.0, 3.0], rng.normal(-4, 1, 300), rng.normal(4, 1, 300)])
    truth = np.array([0, 1, *[0] * 300, *[1] * 300])
    y = np.array([0, 1, *[-1] * 600])
    found = bb.SemiSupervisedClassifier(bb.Gaussian("shared"), unlabelled=-1).fit(x[:, None], y)
    assert found.score(x[:, None], truth) > 0.995


def test_rows_without_a_label_are_left_out_of_the_score() -> None:
    hidden = np.arange(150) % 3 > 0
    whole, words = KINDS.copy(), np.array(["setosa", "versicolor", "virginica"], dtype=object)[KINDS]
    whole[hidden], words[hidden] = -1, None
    for y, unlabelled in ((whole, -1), (words, None)):
        found = bb.SemiSupervisedClassifier(unlabelled=unlabelled).fit(IRIS, y)
        right = found.predict(IRIS[~hidden]) == y[~hidden]
        assert found.score(IRIS, y) == found.score(IRIS[~hidden], y[~hidden]) == np.mean(right) > 0.9
        weights = np.arange(150.0)
        assert found.score(IRIS, y, weights) == pytest.approx(np.average(right, weights=weights[~hidden]))
        with pytest.raises(EmptyData, match="none of the 100 rows to score has a label"):
            found.score(IRIS[hidden], y[hidden])


@pytest.mark.parametrize("unlabelled, folds", [(None, KFold(3, shuffle=True, random_state=0)), ("?", 3)])
def test_the_weight_of_unlabelled_rows_is_chosen_by_cross_validation(
    house_votes: Any, unlabelled: Any, folds: Any
) -> None:
    votes, party = house_votes.drop(columns="party"), house_votes["party"].to_numpy(dtype=object)
    party[np.arange(len(party)) % 10 > 0] = unlabelled
    shares = [0.0, 0.1, 1.0]
    search = GridSearchCV(bb.SemiSupervisedClassifier(unlabelled=unlabelled), {"unlabelled_weight": shares}, cv=folds)
    search.fit(votes, party)
    assert search.best_params_["unlabelled_weight"] in shares
    assert np.all(search.cv_results_["mean_test_score"] > 0.8)


def test_starts_repeat_with_their_seed_and_the_likeliest_is_kept() -> None:
    y = [kind if i % 15 == 0 else None for i, kind in enumerate(KINDS.tolist())]
    one, several, again = (bb.SemiSupervisedClassifier("histogram", starts=n, seed=3).fit(IRIS, y) for n in (1, 6, 6))
    np.testing.assert_array_equal(several.objectives_, again.objectives_)
    assert several.objectives_[-1] >= one.objectives_[-1]


def test_a_climb_that_rests_goes_on_as_if_it_had_not() -> None:
    batch = one_batch(IRIS)
    observed = Observed.of(batch, infer(batch, [], None, "auto", "skip"), np.ones(150), 1)
    task = Task(observed, (0, 1, 2), np.full(150, -1, dtype=np.int32), np.ones(150), {"how": "mean", "alpha": 1.0})
    start = random_start(task, np.random.default_rng(0))()
    whole = climb(task, start, 60, 1e-6)
    for first in (1, 7, 60):
        rested = resume_climb(task, climb(task, start, first, 1e-6), 60, 1e-6)
        assert rested.objectives == whole.objectives and rested.converged == whole.converged
        np.testing.assert_array_equal(rested.posteriors, whole.posteriors)
    assert fallen(whole.objectives) < 1e-12
    assert resume_climb(task, whole, 60, 1e-6) is whole


def test_of_several_starts_the_best_is_kept_whether_all_go_on_or_a_few() -> None:
    batch = one_batch(IRIS)
    observed = Observed.of(batch, infer(batch, [], None, "auto", "skip"), np.ones(150), 1)
    task = Task(observed, (0, 1, 2), np.full(150, -1, dtype=np.int32), np.ones(150), {"how": "mean", "alpha": 1.0})

    def starts() -> Any:
        rng = np.random.default_rng(2)
        return [random_start(task, rng) for _ in range(6)]

    each = [climb(task, start(), 100, 1e-6).objectives for start in starts()]
    assert climb_from_starts(task, starts(), 100, 1e-6).objectives == max(each, key=lambda objectives: objectives[-1])
    kept = sorted(each, key=lambda objectives: objectives[min(len(objectives), 5) - 1])[-3:]
    few = climb_from_starts(task, starts(), 100, 1e-6, trial=5)
    assert few.objectives == max(kept, key=lambda objectives: objectives[-1])


def test_rows_counted_in_pieces_are_those_counted_at_once(monkeypatch: Any) -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((150, 4)) < 0.1, np.nan, IRIS)
    batch = one_batch(X)
    soft = rng.dirichlet([0.1] * 5, 150) * rng.integers(0, 3, 150)[:, None]
    for features in ("auto", {("x0", "x1"): bb.Gaussian(covariance="full")}):
        observed = Observed.of(batch, infer(batch, [], None, features, "skip"), np.ones(150), 1)
        found = [observed.tally(tuple("abcde"), soft)]
        for piece in (1, 300):
            monkeypatch.setattr("banbury.semi_supervised.observed.ROWS_TOGETHER", piece)
            found.append(observed.tally(tuple("abcde"), soft))
        monkeypatch.undo()
        assert all(each == observed.tally_by_name(tuple("abcde"), soft) for each in found)


KEYED = {
    "auto": "auto",
    "a category of what is missing": {
        "by": bb.Categorical(missing="category"),
        "n": "categorical",
        "yes": "categorical",
    },
    "declared": {"by": bb.Categorical(values=[*"abcz"]), "n": bb.Categorical(values=range(9)), "size": "histogram"},
    "bins": {"size": "histogram", "n": "histogram", "far": bb.KernelDensity()},
    "own bins": {"size": bb.Histogram(start=0, width=0.25), "far": bb.Histogram(bins="mdl")},
    "flags": {
        "yes": bb.Bernoulli(),
        "n": bb.Bernoulli(threshold=2),
        "by": bb.Bernoulli(yes="a"),
        "flag": bb.Bernoulli(),
    },
    "joint": {("by", "n"): bb.Joint(), "size": "histogram"},
    "a block of bins": {("size", "far"): bb.Histogram(), "by": "categorical"},
    "a block of numbers": {("size", "far"): bb.Gaussian(covariance="full"), "by": "categorical", "n": "poisson"},
}


@pytest.mark.parametrize("features", KEYED.values(), ids=KEYED)
@pytest.mark.parametrize("labels", ["soft", "hard", "of few rows"])
def test_soft_labels_count_as_rows_repeated(features: Any, labels: str) -> None:
    rng = np.random.default_rng(0)
    n = 300
    table = {
        "by": rng.choice([*"abc", None], n),
        "n": rng.integers(0, 6, n),
        "yes": rng.random(n) < 0.3,
        "flag": rng.choice([0.0, 1.0, np.nan], n),
        "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(5, 2, n).clip(0)),
        "far": rng.normal(1e6, 1e3, n),
    }
    soft = rng.dirichlet([0.1] * 4, n).round(6) * rng.choice([0.0, 1.0, 2.5], n)[:, None]
    if labels == "hard":
        soft = np.eye(4)[rng.integers(0, 4, n)]
    if labels == "of few rows":
        soft[20:] = 0.0
    batch = one_batch(table)
    observed = Observed.of(batch, infer(batch, [], None, features, "skip"), np.ones(n), 1)
    found = observed.tally(tuple("abcd"), soft)
    named = bb.count(table, weights=soft, classes=[*"abcd"], schema=observed.schema)
    assert found == named and found.schema == named.schema and found.classes == named.classes
    assert by_shape.counts(found).keys == by_shape.counts(named).keys
    model, other = bb.estimate(found), bb.estimate(named)
    np.testing.assert_allclose(observed.log_joint(model), observed.log_joint(other), rtol=1e-12)


def test_bins_that_the_rows_widen_are_counted_as_ever() -> None:
    batch = one_batch({"x": np.arange(9_000.0), "by": ["foot", "bus", "car"] * 3_000})
    schema = infer(batch, [], None, {"x": bb.Histogram(start=0, width=1)}, "skip")
    observed = Observed.of(batch, schema, np.ones(9_000), 1)
    soft = np.random.default_rng(0).dirichlet([1, 1], 9_000)
    found, named = observed.tally((0, 1), soft), observed.tally_by_name((0, 1), soft)
    assert found == named and found.schema["x"].unit > 1
    mixture = bb.Mixture(2, {"x": bb.Histogram(start=0, width=1)}, starts=1, max_iter=3).fit({"x": np.arange(9_000.0)})
    assert mixture.log_likelihoods_[-1] == pytest.approx(9_000 * mixture.score({"x": np.arange(9_000.0)}), rel=1e-9)


@pytest.mark.parametrize(
    "family",
    [bb.Text(), bb.Text(model="presence"), bb.Text(model="bernoulli"), bb.Text(model="complement"), bb.Text(idf=True),
     bb.Text(damping="log", length=True), bb.Text(min_count=2), bb.Text(min_count=0.8, length=True),
     bb.Text(model="log_odds", damping="log", length=True),
     bb.Text(vocabulary=["noon", "cheap", "never"]), bb.Text(tokens=r"\w+", max_words=3)],
    ids=str,
)  # fmt: skip
def test_texts_encoded_once_count_as_texts_counted_by_name(family: Any) -> None:
    """Beside a missing text and another column."""
    table = {"said": [*TEXTS[:-1], None], "size": np.arange(8.0)}
    batch = one_batch(table)
    schema = infer(batch, [], None, {"said": family, "size": "gaussian"}, "skip")
    soft = np.random.default_rng(0).dirichlet([1, 1, 1], 8)
    observed = Observed.of(batch, schema, np.ones(8), 1)
    numbered = bb.estimate(observed.tally((0, 1, 2), soft))
    named = bb.estimate(observed.tally_by_name((0, 1, 2), soft))
    assert named.tally == bb.count(table, weights=soft, classes=[0, 1, 2], schema=schema)
    np.testing.assert_allclose(observed.log_joint(numbered), named.log_joint(table), rtol=1e-12)


def test_columns_of_every_kind_learn_together() -> None:
    table = {"said": TEXTS, "size": [1.0, 9.0, 1.5, None, 8.0, 9.5, 1.2, 2.0], "by": list("ababbbaa")}
    found = bb.SemiSupervisedClassifier().fit(table, SAID)
    assert found.predict(table).tolist()[:2] == ["spam", "ham"]
    assert found.transduction_[7] == "spam"
    assert "pills" in str(found.explain({"said": "pills", "size": 1.0, "by": "a"}))
    assert "spam : rest" in str(found.informative(1))
    assert found.tally_.n_rows == pytest.approx(8)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict_proba(table), found.predict_proba(table))


def test_a_model_of_unlabelled_rows_is_saved_and_loaded(tmp_path: Any) -> None:
    found = bb.SemiSupervisedClassifier().fit(TEXTS, SAID)
    bb.save(found.model_, tmp_path / "m.banbury")
    np.testing.assert_array_equal(bb.load(tmp_path / "m.banbury").posterior(TEXTS), found.predict_proba(TEXTS))


# Mixtures ------------------------------------------------------------------------------------------------------------


def test_a_mixture_of_bell_curves_is_scikit_learns() -> None:
    """Where EM has stopped, another EM that begins there stays."""
    found = bb.Mixture(3, tol=1e-12, max_iter=2000).fit(IRIS)
    (curves,) = found.model_.parameters
    means = curves.origin[:, None] + curves.unit[:, None] * curves.mean  # type: ignore[attr-defined]
    variances = np.square(curves.unit)[:, None] * 0.5 / curves.precision  # type: ignore[attr-defined]
    peer = GaussianMixture(
        3,
        covariance_type="diag",
        means_init=means.T,
        precisions_init=1 / variances.T,
        weights_init=np.exp(found.model_.log_prior),
        reg_covar=0,
        tol=1e-10,
        max_iter=2000,
    ).fit(IRIS)
    assert found.score(IRIS) == pytest.approx(peer.score(IRIS), rel=1e-6)
    np.testing.assert_allclose(found.score_samples(IRIS), peer.score_samples(IRIS), rtol=1e-3)
    assert found.bic(IRIS) == pytest.approx(peer.bic(IRIS), rel=1e-6)
    np.testing.assert_array_equal(found.predict(IRIS), peer.predict(IRIS))


@pytest.mark.parametrize("choose_by", ["bic", "held_out"])
def test_the_number_of_components_is_found(choose_by: str) -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(centre, 1, (120, 2)) for centre in (-10, 0, 10)])
    found = bb.Mixture([1, 2, 3, 4], choose_by=choose_by, starts=4).fit(X)
    assert found.n_components_ == 3
    assert set(found.scores_) == {1, 2, 3, 4}
    clusters = found.predict(X).reshape(3, 120)
    assert [len(set(each)) for each in clusters.tolist()] == [1, 1, 1]


def test_a_mixture_of_words_and_numbers() -> None:
    rng = np.random.default_rng(0)
    kinds = rng.integers(2, size=200)
    table = {
        "colour": np.where(rng.random(200) < 0.95, np.array(["red", "blue"])[kinds], "red"),
        "n": rng.poisson([2, 20], (200, 2))[np.arange(200), kinds],
    }
    found = bb.Mixture(2, {"n": "poisson"}).fit(table)
    clusters = found.predict(table)
    assert max(np.mean(clusters == kinds), np.mean(clusters != kinds)) > 0.97
    drawn = found.sample(500, seed=1)
    assert set(drawn) == {"colour", "n"} and len(drawn["n"]) == 500
    assert set(found.model_.sample(500, seed=1)["class"].tolist()) == {0, 1}


def test_only_the_model_that_is_kept_warns_and_at_the_callers_line() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 3)), rng.normal(size=(3, 3)) * 1e-3 + 50.0])
    block = {("x0", "x1", "x2"): bb.Gaussian(covariance="full")}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bb.Mixture([2, 3], block, starts=5).fit(X)
        bb.SemiSupervisedClassifier(block, starts=5).fit(X, [0, *[None] * 59, 1, 1, 1])
    assert 1 <= len(caught) <= 2  # once at most for each of the two
    assert {each.filename for each in caught} == {__file__}
    assert all("has a class of 3 rows" in str(each.message) for each in caught)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bb.Mixture(4, {("x0", "x1", "x2"): bb.Gaussian(covariance="tied")}, starts=3).fit(X)
    assert not caught


def test_a_bell_curve_on_a_single_value_is_named() -> None:
    rng = np.random.default_rng(0)
    hours = np.where(rng.random(400) < 0.5, 40.0, rng.normal(40, 12, 400))
    table = {"age": rng.normal(38, 10, 400), "hours": hours}
    with pytest.warns(bb.BanburyWarning, match=r"component \d at hours = 40\. Use a histogram") as caught:
        mixture = bb.Mixture(2).fit(table)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert mixture.predict({"age": [30.0, 30.0], "hours": [40.0, 41.0]}).tolist() in ([0, 1], [1, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "component 0 of 2 ended with less")  # one histogram fits all
        for family in ("histogram", bb.Gaussian(prior=bb.NormalInverseGamma(nu=3)), bb.Gaussian("shared")):
            bb.Mixture(2, {"hours": family}, starts=3).fit(table)
        bb.Mixture(2).fit({**table, "hours": rng.normal(size=400), "always": np.full(400, 7.0)})


def test_three_newsgroups_are_found_without_labels(archived: Any) -> None:
    files = archived("20news-bydate")
    folders = [f"20news-bydate-train/{group}/" for group in ("rec.autos", "sci.space", "talk.politics.mideast")]
    names = [name for folder in folders for name in sorted(n for n in files if n.startswith(folder))[:300]]
    posts, truth = [files[name].decode("latin-1") for name in names], np.repeat(np.arange(3), 300)
    settings: Any = {"features": bb.Text(min_count=3, drop_most_frequent=100), "alpha": 0.01}
    told = bb.SemiSupervisedClassifier(**settings).fit(posts, truth)
    found = bb.Mixture(3, **settings).fit(posts)
    assert found.objectives_[-1] > told.objectives_[-1] - 900 * 5.0  # cores of one post each come 20 lower a post
    alike = [np.bincount(truth[found.predict(posts) == c], minlength=3).max() for c in range(3)]
    assert sum(alike) > 750
    assert fallen(found.objectives_) < 1e-9


def test_texts_are_clustered() -> None:
    rng = np.random.default_rng(0)
    topics = np.array([["star", "moon", "orbit", "comet"], ["bread", "salt", "oven", "yeast"]])
    kinds = np.arange(60) % 2
    texts = [" ".join(rng.choice(topics[k], 8)) for k in kinds]
    found = bb.Mixture(2).fit(texts)
    assert len(set(zip(found.predict(texts).tolist(), kinds.tolist(), strict=True))) == 2


def test_one_component_is_a_density() -> None:
    found = bb.Mixture(1, "histogram").fit(IRIS[:, :1])
    plain = bb.estimate(bb.count(IRIS[:, :1], target=["all"] * 150, schema=found.model_.schema))
    np.testing.assert_allclose(found.score_samples(IRIS[:, :1]), plain.log_joint(IRIS[:, :1])[:, 0], rtol=1e-12)
    assert found.n_iter_ == 2 and found.converged_


def test_weights_stand_for_rows() -> None:
    rng = np.random.default_rng(0)
    X, times = np.concatenate([rng.normal(-9, 1, (20, 1)), rng.normal(9, 1, (20, 1))]), rng.integers(1, 4, 40)
    weighted = bb.Mixture(2, tol=1e-13).fit(X, sample_weight=times)
    repeated = bb.Mixture(2, tol=1e-13).fit(np.repeat(X, times, axis=0))
    assert weighted.score(X) == pytest.approx(repeated.score(X), rel=1e-6)


# scikit-learn's own suite --------------------------------------------------------------------------------------------


def unmet(estimator: Any) -> dict[str, str]:
    if not isinstance(estimator, bb.Mixture):
        return {}
    starts, four = "rows are drawn for starts", "the check takes it that there are four classes"
    return dict.fromkeys(
        ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"], starts
    ) | dict.fromkeys(["check_estimator_sparse_array", "check_estimator_sparse_matrix"], four)


@parametrize_with_checks([bb.SemiSupervisedClassifier(), bb.Mixture(starts=2)], expected_failed_checks=unmet)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.SkipTestWarning)
        warnings.simplefilter("ignore", bb.BanburyWarning)  # of rows so few that a component has one value
        check(estimator)


def test_settings_are_kept_by_clones() -> None:
    for estimator in (bb.SemiSupervisedClassifier(unlabelled=-1, tol=1e-3), bb.Mixture(5, choose_by="held_out")):
        assert clone(estimator).get_params() == estimator.get_params()


# What is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, y, sample_weight, error, words",
    [
        ({}, [None] * 4, None, EmptyData, "none of the 4 rows has a label.*bb.Mixture"),
        ({"unlabelled": -1}, [-1] * 4, None, EmptyData, "none of the 4 rows has a label"),
        ({}, [0, 1, None, None], [1, 0, 1, 1], EmptyData, "class 1 has no row to start from"),
        ({}, [0, 1, None], None, LengthMismatch, "3 labels"),
        ({"unlabelled_weight": 1.5}, [0, 1, None, None], None, BadSetting, "unlabelled_weight must be a number from 0 to 1"),
        ({"unlabelled_weight": -0.1}, [0, 1, None, None], None, BadSetting, "unlabelled_weight must be"),
        ({"unlabelled_weight": float("nan")}, [0, 1, None, None], None, BadSetting, "unlabelled_weight must be"),
        ({"starts": 0}, [0, 1, None, None], None, BadSetting, "starts must be a whole number of at least 1"),
        ({"max_iter": 1.5}, [0, 1, None, None], None, BadSetting, "max_iter must be a whole number of at least 1"),
        ({"tol": -1}, [0, 1, None, None], None, BadSetting, "tol must be a finite number of at least 0"),
        ({"how": "gibbs"}, [0, 1, None, None], None, BadSetting, "how must be one of 'mle', 'map', 'mean'"),
        ({"seed": -1}, [0, 1, None, None], None, BadSetting, "seed must be"),
    ],
)  # fmt: skip
def test_what_cannot_be_learned_is_refused_by_name(
    settings: Any, y: Any, sample_weight: Any, error: Any, words: str
) -> None:
    with pytest.raises(error, match=words):
        bb.SemiSupervisedClassifier(**settings).fit(np.arange(8.0).reshape(4, 2), y, sample_weight)


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"n_components": 0}, "n_components must be a whole number of at least 1"),
        ({"n_components": 5}, "n_components must be at most 4, the number of rows"),
        ({"n_components": []}, "n_components must be a number, or a list"),
        ({"choose_by": "aic"}, "choose_by must be one of 'bic', 'held_out'"),
    ],
)
def test_mixtures_that_cannot_be_are_refused(settings: Any, words: str) -> None:
    with pytest.raises(BadSetting, match=words):
        bb.Mixture(**settings).fit(np.arange(8.0).reshape(4, 2))


def test_negative_weights_are_refused() -> None:
    with pytest.raises(bb.BanburyError, match="row 1"):
        bb.SemiSupervisedClassifier().fit(np.arange(8.0).reshape(4, 2), [0, 1, None, None], [1, -1, 1, 1])


def test_words_chosen_by_class_need_labels() -> None:
    family = bb.Text(max_words=3, choose_by="mutual_information")
    with pytest.raises(BadSetting, match="choose_by must be 'count' where rows have no label"):
        bb.SemiSupervisedClassifier(family).fit(TEXTS, SAID)


def test_em_that_begins_with_an_empty_class_is_refused() -> None:
    batch = one_batch(IRIS)
    observed = Observed.of(batch, infer(batch, [], None, "auto", "skip"), np.ones(150), 1)
    task = Task(observed, ("a", "b"), np.full(150, -1, dtype=np.int32), np.ones(150), {})
    with pytest.raises(EmptyData, match="class 'b' has no row to start from"):
        climb(task, np.tile([1.0, 0.0], (150, 1)), 10, 1e-6)


def test_an_iteration_that_loses_is_not_kept():
    """Bins of a histogram may change from one model to the next: then nothing says that the objective grows."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=40) + 2 * rng.integers(0, 2, 40)
        labels = [("p" if value > 1 else "q") if i < 10 else None for i, value in enumerate(x)]
        clf = bb.SemiSupervisedClassifier(how="map", alpha=0.5, features={"c": bb.Histogram()}).fit({"c": x}, labels)
        assert np.diff(clf.objectives_).min(initial=0.0) >= -1e-9 * abs(clf.objectives_[-1])


def lost(name: str) -> list[bb.Mixture]:
    """Mixtures of families whose estimate maximises nothing, each from another start."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 3, 150)
    table = {"x": rng.normal(kinds * 3, 1), "y": rng.normal(kinds, 1)}
    families = {
        "a mean that need not be": bb.Gaussian(prior=bb.NormalInverseGamma()),
        "mended": {("x", "y"): bb.Gaussian(covariance="full")},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bb.BanburyWarning)
        return [bb.Mixture(6, families[name], starts=1, seed=seed).fit(table) for seed in range(6)]


@pytest.mark.parametrize("name", ["a mean that need not be", "mended"])
def test_a_climb_that_ends_with_a_loss_has_not_converged(name: str) -> None:
    found = lost(name)
    for each in found:
        gains = np.diff(each.objectives_)
        assert gains.min() >= -1e-9 * abs(each.objectives_[-1])  # what lost is not kept
        ended = gains[-1] <= 1e-6 * abs(each.objectives_[-1])
        assert each.converged_ <= ended or each.n_iter_ == 200
    assert not all(each.converged_ for each in found)
    assert min(each.n_iter_ for each in found) < 200


@pytest.mark.parametrize("nu, how", [(3.0, "mean"), (2.5, "mean"), (1.0, "map")])
@pytest.mark.parametrize("block", [False, True])
def test_a_prior_whose_mean_exists_is_climbed_to_the_end(nu: float, how: str, block: bool) -> None:
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 3, 150)
    table = {"x": rng.normal(kinds * 3, 1), "y": rng.normal(kinds, 1)}
    family = bb.Gaussian(prior=bb.NormalInverseGamma(nu=nu), covariance="full" if block else None)
    batch = one_batch(table)
    observed = Observed.of(
        batch, infer(batch, [], None, {("x", "y"): family} if block else family, "skip"), np.ones(150), 1
    )
    task = Task(observed, tuple(range(6)), np.full(150, -1, dtype=np.int32), np.ones(150), {"how": how, "alpha": 1.0})
    for seed in range(4):
        found = climb(task, random_start(task, np.random.default_rng(seed))(), 400, 1e-6)
        assert found.converged and not found.fell


def test_a_climb_that_fell_rests_where_it_was() -> None:
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 3, 150)
    batch = one_batch({"x": rng.normal(kinds * 3, 1), "y": rng.normal(kinds, 1)})
    family = bb.Gaussian(prior=bb.NormalInverseGamma())
    observed = Observed.of(batch, infer(batch, [], None, family, "skip"), np.ones(150), 1)
    task = Task(
        observed, tuple(range(6)), np.full(150, -1, dtype=np.int32), np.ones(150), {"how": "mean", "alpha": 1.0}
    )
    start = random_start(task, np.random.default_rng(1))()
    whole = climb(task, start, 200, 1e-6)
    assert whole.fell and not whole.converged
    assert resume_climb(task, whole, 400, 1e-6) is whole
    last = len(whole.objectives)
    rested = resume_climb(task, climb(task, start, last, 1e-6), 200, 1e-6)  # the very next iteration loses
    assert rested.fell and rested.objectives == whole.objectives
    assert climb(task, start, 200, 1e9).converged  # what is lost is less than that


@pytest.fixture(scope="module")
def emptied() -> tuple[bb.Mixture, dict[str, Any]]:
    rng = np.random.default_rng(0)
    table = {"age": rng.integers(17, 90, 400), "hours": np.where(rng.random(400) < 0.5, 40, rng.integers(1, 99, 400))}
    with pytest.warns(bb.BanburyWarning, match="ended with less than half a row") as caught:
        mixture = bb.Mixture(4, features="histogram", starts=1).fit(table)
    assert len(caught) == 1 and caught[0].filename == __file__
    rows = mixture.tally_.rows.value
    gone = [c for c, n in enumerate(rows.tolist()) if n < 0.5]
    assert gone and (rows == 0).any()
    assert f"components {', '.join(map(str, gone))} of 4" in str(caught[0].message)
    assert f"n_components={4 - len(gone)}" in str(caught[0].message)
    return mixture, table


def test_components_without_rows_are_named(emptied: tuple[bb.Mixture, dict[str, Any]]) -> None:
    mixture, table = emptied
    assert np.isfinite(mixture.score_samples(table)).all()
    np.testing.assert_allclose(mixture.predict_proba(table).sum(axis=1), 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bb.Mixture(2, starts=3).fit(IRIS)


def test_shares_that_are_given_are_no_parameters() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(np.repeat([0.0, 6.0, 12.0], 30))[:, None]
    for prior, n in ((None, 8), (1.0, 8), ("uniform", 6), ([0.2, 0.3, 0.5], 6)):
        mixture = bb.Mixture(3, class_prior=prior, starts=2).fit(X)
        likelihood = float(mixture.score_samples(X).sum())
        assert mixture.bic(X) == pytest.approx(n * np.log(90) - 2 * likelihood)
        assert mixture.aic(X) == pytest.approx(n * 2 - 2 * likelihood)
    chosen = bb.Mixture([2, 3], class_prior="uniform", starts=2).fit(X)
    assert chosen.scores_[3] == pytest.approx(chosen.bic(X))


def test_fit_predict_is_fit_and_then_predict() -> None:
    found = bb.Mixture(3, starts=2, seed=1).fit_predict(IRIS)
    np.testing.assert_array_equal(found, bb.Mixture(3, starts=2, seed=1).fit(IRIS).predict(IRIS))


def test_columns_that_were_not_counted_are_warned_of_wherever_rows_are_scored() -> None:
    table = {"x": np.arange(9.0), "y": np.arange(9.0) ** 2}
    more = {**table, "z": np.arange(9.0)}
    for density in (bb.Mixture(2, starts=1).fit(table), bb.Density().fit(table)):
        for asked in (density.score_samples, density.anomaly_scores, density.score):
            with pytest.warns(bb.BanburyWarning, match="column 'z' was not counted and is ignored") as caught:
                asked(more)
            assert len(caught) == 1 and caught[0].filename == __file__


def test_labels_that_pandas_says_are_missing_are_left_out_of_the_score() -> None:
    for dtype in ("string", "category", object):
        y = pd.Series([None, "p", "q", "p"], dtype=dtype)
        clf = bb.SemiSupervisedClassifier(bb.Gaussian("shared")).fit({"x": [1.0, 1.1, 9.0, 0.9]}, y)
        assert clf.score({"x": [1.0, 1.1, 9.0, 8.0]}, y) == pytest.approx(2 / 3)
    numbers = pd.Series([None, 1, 2, 1], dtype="Int64")
    clf = bb.SemiSupervisedClassifier(bb.Gaussian("shared")).fit({"x": [1.0, 1.1, 9.0, 0.9]}, numbers)
    assert clf.score({"x": [1.0, 1.1, 9.0, 8.0]}, numbers) == pytest.approx(2 / 3)
