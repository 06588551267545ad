"""Defects seen in other packages, by their number in the survey: ours must not have them.

Where scikit-learn has the defect, a test named for the peer shows it; when scikit-learn mends it, that test is skipped
and says so. It is there to tell whether the comparison still stands.
"""

from __future__ import annotations

import gc
import pickle
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB

import banbury as bb
import by_shape
from banbury import NaiveBayesClassifier
from banbury.families import Text
from banbury.tally.tally import Tally


def peer(has_defect: Callable[[], bool]) -> None:
    """Skips, with the version, when scikit-learn does not have the defect any more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not has_defect():
            pytest.skip(f"scikit-learn {sklearn.__version__} does not have this defect any more")


def raises(kind: type[Exception], call: Callable[[], object]) -> bool:
    try:
        call()
    except kind:
        return True
    return False


# 1. Smoothing kept in state: the result depends on how the rows are cut, on the last batch, on rows of weight zero


@pytest.fixture
def uneven_batches() -> list[tuple[np.ndarray, np.ndarray]]:
    """Batches of different sizes and scales."""
    rng = np.random.default_rng(1)
    sizes, scales = (40, 10, 4), (1.0, 300.0, 1e5)
    return [(rng.normal(0, s, (n, 3)), np.arange(n) % 2) for n, s in zip(sizes, scales, strict=True)]


def test_1_batches_in_any_order_give_the_same_model(uneven_batches):
    first = NaiveBayesClassifier()
    for X, y in uneven_batches:
        first.partial_fit(X, y)
    everything = np.vstack([X for X, _ in uneven_batches])
    schema = first.tally_.schema
    for order in permutations(uneven_batches):
        tally = sum(bb.count(X, target=y, schema=schema) for X, y in order)
        assert tally == first.tally_
        found = bb.estimate(tally).log_joint(everything)
        assert found == pytest.approx(first.predict_joint_log_proba(everything), rel=1e-12)


def test_1_a_schema_settled_by_another_batch_gives_the_same_probabilities(uneven_batches):
    """The schema decides where sums are taken about, not what they come to."""
    everything = np.vstack([X for X, _ in uneven_batches])
    found = []
    for order in permutations(uneven_batches):
        clf = NaiveBayesClassifier()
        for X, y in order:
            clf.partial_fit(X, y)
        found.append(clf.predict_joint_log_proba(everything))
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=1e-12)


def test_1_one_row_at_a_time_never_gives_nan():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 3
    clf = NaiveBayesClassifier(features="gaussian")
    for row in range(30):
        clf.partial_fit(X[[row]], y[[row]])
        found = clf.predict_proba(X)
        assert np.isfinite(found).all()
        assert found.sum(axis=1) == pytest.approx(np.ones(30))
    whole = NaiveBayesClassifier(features="gaussian").fit(X, y)
    assert clf.predict_joint_log_proba(X) == pytest.approx(whole.predict_joint_log_proba(X), rel=1e-12)


@pytest.mark.parametrize("place", [0, 2, 4])
def test_1_a_row_of_weight_zero_moves_nothing(place):
    X, y, weights = [[0.0], [1.0], [0.0], [1.0]], [0, 0, 1, 1], [1.0] * 4
    plain = NaiveBayesClassifier(features="gaussian").fit(X, y)
    X, y, weights = (np.insert(np.array(a), place, b, axis=0) for a, b in ((X, 1e9), (y, 1), (weights, 0)))
    weighted = NaiveBayesClassifier(features="gaussian").fit(X, y, sample_weight=weights)
    grid = np.linspace(-2, 3, 11)[:, None]
    assert weighted.predict_joint_log_proba(grid) == pytest.approx(plain.predict_joint_log_proba(grid), rel=1e-12)


def test_1_peer_depends_on_how_the_rows_are_cut(uneven_batches):
    """(Not on the batches' order, in fact: each class gets the mean of its batches' floors, weighted by their rows.)"""
    cut = GaussianNB()
    for X, y in uneven_batches:
        cut.partial_fit(X, y, classes=[0, 1])
    whole = GaussianNB().fit(*map(np.concatenate, zip(*uneven_batches, strict=True)))
    peer(lambda: np.abs(cut.var_ / whole.var_ - 1).max() > 1e-10)


def test_1_peer_reaches_variance_zero_and_nan():
    clf = GaussianNB().partial_fit([[1.0]], [0], classes=[0, 1]).partial_fit([[2.0], [3.0]], [1, 1])
    peer(lambda: bool(np.isnan(clf.predict_proba([[1.5]])).any()))


def test_1_peer_lets_a_row_of_weight_zero_set_the_floor():
    rows, y = [[0.0], [1.0], [0.0], [1.0], [1e9]], [0, 0, 1, 1, 1]
    peer(lambda: GaussianNB().fit(rows, y, sample_weight=[1, 1, 1, 1, 0]).var_.max() > 1e8)


# 2. A label that was not declared is counted as another class, or dropped


@pytest.mark.parametrize("declared", [[0, 1], [0, 1, 2], None])
@pytest.mark.parametrize("features", ["bernoulli", "categorical"])
def test_2_an_undeclared_label_is_a_new_class(declared, features):
    clf = NaiveBayesClassifier(features=features)
    clf.partial_fit([[1], [0]], [0, 1], classes=declared).partial_fit([[1], [1]], [7, 7])
    assert clf.classes_.tolist() == [*(declared or [0, 1]), 7]
    assert clf.tally_.classes == (0, 1, 7)
    assert clf.tally_.rows.value.tolist() == [1, 1, 2]
    assert clf.predict_proba([[1]])[0, -1] == clf.predict_proba([[1]]).max()


def test_2_peer_counts_an_undeclared_label_as_class_0():
    clf = BernoulliNB().partial_fit([[1], [0]], [0, 1], classes=[0, 1])
    peer(lambda: not raises(ValueError, lambda: clf.partial_fit([[1], [1]], [7, 7])) and clf.class_count_[0] == 3)


def test_2_peer_drops_an_undeclared_label():
    clf = BernoulliNB().partial_fit([[1], [0], [0]], [0, 1, 2], classes=[0, 1, 2])
    peer(lambda: not raises(ValueError, lambda: clf.partial_fit([[1]], [7])) and clf.class_count_.sum() == 3)


# 3. An unseen category is an IndexError; strings are refused; the number of categories is the last batch's


def test_3_an_unseen_category_is_scored():
    clf = NaiveBayesClassifier(features="categorical").fit([[0], [1], [1]], [0, 1, 1])
    # α / (n_c + αK): 1 / (1 + 2) and 1 / (2 + 2), times the class priors
    expected = np.array([1 / 3 * 1 / 3, 2 / 3 * 1 / 4])
    for value in (2, -5, 10**12):
        assert clf.predict_proba([[value]])[0] == pytest.approx(expected / expected.sum(), rel=1e-12)


def test_3_strings_are_categories():
    clf = NaiveBayesClassifier().fit([["red", "S"], ["green", "M"], ["red", "M"]], ["a", "b", "a"])
    assert clf.predict([["red", "S"], ["green", "M"], ["blue", "XL"]]).tolist() == ["a", "b", "a"]


def test_3_the_number_of_categories_is_that_of_all_batches():
    clf = NaiveBayesClassifier(features="categorical").partial_fit([[0], [4], [9]], [0, 1, 1])
    clf.partial_fit([[0], [1]], [0, 1])
    assert by_shape.counts(clf.tally_).keys == ((0, 1, 4, 9),)
    assert clf.model_.likelihood("x0", 9) == pytest.approx({0: 1 / (2 + 4), 1: 2 / (3 + 4)}, rel=1e-14)


def test_3_peer_has_no_answer_for_an_unseen_category():
    clf = CategoricalNB().fit([[0], [1]], [0, 1])
    peer(lambda: raises(IndexError, lambda: clf.predict([[2]])))


def test_3_peer_refuses_strings():
    peer(lambda: raises(ValueError, lambda: CategoricalNB().fit([["a"], ["b"]], [0, 1])))


def test_3_peer_reports_the_categories_of_the_last_batch():
    clf = CategoricalNB().partial_fit([[0], [4]], [0, 1], classes=[0, 1]).partial_fit([[0], [1]], [0, 1])
    peer(lambda: clf.n_categories_[0] == 2)


# 4. alpha=0 gives NaN; negative weights are accepted


@pytest.mark.parametrize("features", ["bernoulli", "categorical"])
@pytest.mark.parametrize("how", ["mean", "predictive", "gibbs"])
def test_4_alpha_zero_gives_probabilities(features, how):
    clf = NaiveBayesClassifier(features=features, how=how, alpha=0).fit([[0, 0], [1, 1]], [0, 1])
    found = clf.predict_proba([[0, 1], [1, 0], [0, 0]])
    assert np.isfinite(found).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(3))
    assert found[2, 0] > 0.999


@pytest.mark.parametrize("weight, said", [(-2.0, "negative"), (np.nan, "missing"), (np.inf, "infinite")])
@pytest.mark.parametrize("method", ["fit", "partial_fit", "forget"])
def test_4_a_weight_that_is_none_is_refused_and_changes_nothing(method, weight, said):
    X, y = [[0], [1], [1]], [0, 1, 1]
    clf = NaiveBayesClassifier(features="bernoulli").fit(X, y)
    before, found = clf.tally_, clf.predict_proba(X)
    with pytest.raises(bb.BanburyError, match=f"weight of row 1 is {said}"):
        getattr(clf, method)(X, y, sample_weight=[1.0, weight, 1.0])
    assert clf.tally_ is before
    assert np.array_equal(clf.predict_proba(X), found)


def test_4_peer_gives_nan_for_alpha_zero():
    clf = CategoricalNB(alpha=0)
    peer(lambda: bool(np.isnan(clf.fit([[0, 0], [1, 1]], [0, 1]).predict_proba([[0, 1]])).any()))


def test_4_peer_accepts_negative_weights():
    rows, y, weights = [[0], [1], [1]], [0, 1, 1], [1, -2, 1]
    peer(lambda: not np.isfinite(BernoulliNB().fit(rows, y, sample_weight=weights).class_log_prior_).all())


# 5. Counts where yes and no are meant give log-probabilities above 0


@pytest.mark.parametrize("value", [3, 0.5, -1])
def test_5_a_bernoulli_column_refuses_what_is_neither_0_nor_1(value):
    with pytest.raises(
        bb.BanburyError, match=r"row 0 of column 'x0' is .* a Bernoulli column can contain only 0 and 1"
    ):
        NaiveBayesClassifier(features="bernoulli").fit([[value], [0]], [0, 1])
    clf = NaiveBayesClassifier(features="bernoulli").fit([[1], [0]], [0, 1])
    with pytest.raises(bb.BanburyError, match=r"row 1 of column 'x0'"):
        clf.predict([[1], [value]])


def test_5_log_probabilities_are_never_above_0():
    clf = NaiveBayesClassifier(features=bb.Bernoulli(threshold=0)).fit([[3], [0]], [0, 1])
    assert (clf.predict_joint_log_proba([[3], [0]]) <= 0).all()


def test_5_peer_has_log_probabilities_above_0():
    clf = BernoulliNB(binarize=None)
    peer(lambda: clf.fit([[3], [0]], [0, 1]).feature_log_prob_.max() > 0)


# 6. A class prior is learned and ignored

UNEVEN = ["plum fig", "fig fig nut", "nut", "plum nut fig"], ["often", "often", "often", "rarely"]


def test_6_the_complement_model_honours_the_class_prior():
    texts, labels = UNEVEN
    clf = NaiveBayesClassifier(features=bb.Text(model="complement")).fit(texts, labels)
    assert clf.predict_proba(["", "unknown words"]) == pytest.approx(np.array([[0.75, 0.25]] * 2), rel=1e-14)
    uniform = NaiveBayesClassifier(features=bb.Text(model="complement"), class_prior="uniform").fit(texts, labels)
    assert uniform.predict_proba([""])[0] == pytest.approx([0.5, 0.5], rel=1e-14)
    given = clf.model_.with_class_prior({"often": 0.1, "rarely": 0.9})
    odds = [model.log_posterior(["plum nut"]) @ [1, -1] for model in (clf.model_, uniform.model_, given)]
    assert np.ravel(odds) - odds[1] == pytest.approx([np.log(3), 0.0, -np.log(9)], rel=1e-12)


def test_6_a_uniform_prior_gives_the_peers_answers():
    texts, labels = UNEVEN
    vectoriser = CountVectorizer()
    theirs = ComplementNB().fit(vectoriser.fit_transform(texts), labels)
    ours = NaiveBayesClassifier(features=bb.Text(model="complement"), class_prior="uniform").fit(texts, labels)
    rows = [*texts, "", "nut nut plum"]
    assert ours.predict_proba(rows) == pytest.approx(theirs.predict_proba(vectoriser.transform(rows)), rel=1e-12)


def test_6_peer_ignores_the_prior_it_has_learned():
    clf = ComplementNB().fit([[1, 0], [1, 1], [0, 1], [1, 2]], [0, 0, 0, 1])
    learned = np.exp(clf.class_log_prior_)
    peer(lambda: bool(np.allclose(learned, [0.75, 0.25]) and np.allclose(clf.predict_proba([[0, 0]]), 0.5)))


# 7. A batch that lacks a class updates another one's sums; weights are ignored (cuML)


@pytest.mark.parametrize("features", ["gaussian", "bernoulli", "categorical", "poisson", "histogram"])
def test_7_a_batch_that_lacks_a_class_updates_the_right_ones(features):
    rng = np.random.default_rng(7)
    X, y = rng.integers(0, 2, (60, 4)), np.repeat([0, 1, 2], 20)
    clf = NaiveBayesClassifier(features=features).fit(X, y)
    only_last = rng.integers(0, 2, (5, 4)), np.full(5, 2)
    clf.partial_fit(*only_last)
    whole = bb.count(np.vstack([X, only_last[0]]), target=np.append(y, only_last[1]), schema=clf.tally_.schema)
    assert clf.tally_ == whole
    assert clf.tally_.rows.value.tolist() == [20, 20, 25]


@pytest.mark.parametrize("features", ["gaussian", "bernoulli", "categorical", "poisson", "histogram", "kernel_density"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_7_weights_are_not_ignored(features, method):
    rng = np.random.default_rng(8)
    X, y = rng.integers(0, 2, (40, 3)), np.arange(40) % 2
    weights = rng.integers(1, 4, 40)
    weighted = getattr(NaiveBayesClassifier(features=features), method)(X, y, sample_weight=weights)
    rows = np.repeat(np.arange(40), weights)
    repeated = bb.count(X[rows], target=y[rows], schema=weighted.tally_.schema)
    assert weighted.tally_ == repeated
    plain = getattr(NaiveBayesClassifier(features=features), method)(X, y)
    assert not np.allclose(weighted.predict_proba(X), plain.predict_proba(X))


# 8. Unseen categories give NaN or an IndexError in mixed models, which have no partial_fit, no weights, no missing values


@pytest.fixture
def mixed() -> pd.DataFrame:
    rng = np.random.default_rng(9)
    n = 200
    frame = pd.DataFrame(
        {
            "colour": pd.Categorical(rng.choice(["red", "green", "blue"], n)),
            "size": rng.choice(["S", "M", "L"], n).astype(object),
            "weight": rng.normal(size=n),
            "visits": rng.poisson(3, n),
            "member": rng.random(n) < 0.4,
        }
    )
    frame.loc[::7, "weight"] = np.nan
    frame.loc[::11, "size"] = None
    frame.loc[::13, "colour"] = None
    return frame


def test_8_the_families_of_a_mixed_frame_are_found(mixed):
    clf = NaiveBayesClassifier(features={"visits": "poisson"}).fit(mixed, np.arange(200) % 2)
    assert [f.family.name for f in clf.tally_.schema.features] == [
        "categorical",
        "categorical",
        "quantile_tree",
        "poisson",
        "bernoulli",
    ]


@pytest.mark.parametrize("numbers", ["gaussian", "quantile_tree"])
def test_8_a_mixed_frame_learns_in_batches_with_weights_and_gaps(mixed, numbers):
    rng = np.random.default_rng(10)
    y, weights = rng.choice(["a", "b"], 200), rng.integers(1, 5, 200)
    features = {"visits": "poisson", "weight": numbers}
    whole = NaiveBayesClassifier(features=features).fit(mixed, y, sample_weight=weights)
    schema = whole.tally_.schema
    assert [f.family.name for f in schema.features] == [
        "categorical",
        "categorical",
        numbers,
        "poisson",
        "bernoulli",
    ]
    parts = NaiveBayesClassifier(features=features)
    for start in range(0, 200, 50):
        rows = slice(start, start + 50)
        parts.partial_fit(mixed.iloc[rows], y[rows], sample_weight=weights[rows])
    assert np.isfinite(whole.predict_proba(mixed)).all()
    assert parts.predict_proba(mixed) == pytest.approx(whole.predict_proba(mixed), rel=1e-12)


def test_8_an_unseen_category_in_a_mixed_frame_is_scored(mixed):
    clf = NaiveBayesClassifier().fit(mixed, np.arange(200) % 2)
    rows = mixed.head(3).assign(colour=["violet", None, "red"], size=["XXL", "M", None])
    found = clf.predict_proba(rows)
    assert np.isfinite(found).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(3))


def test_8_a_row_without_any_value_gets_the_class_prior(mixed):
    clf = NaiveBayesClassifier().fit(mixed, ["a"] * 50 + ["b"] * 150)
    nothing = pd.DataFrame({name: [None] for name in mixed})
    assert clf.predict_proba(nothing)[0] == pytest.approx([0.25, 0.75], rel=1e-12)


# 10. An update learns everything again; a model file is a thousand times as large as what it learned


@pytest.fixture
def messages(unpacked) -> tuple[list[str], list[str]]:
    lines = (unpacked("sms-spam") / "SMSSpamCollection").read_text().splitlines()[:1000]
    labels, texts = zip(*(line.split("\t", 1) for line in lines), strict=True)
    return list(texts), list(labels)


def test_10_the_model_of_a_thousand_messages_is_a_small_file(messages, tmp_path):
    texts, labels = messages
    clf = NaiveBayesClassifier().fit(texts, labels)
    learned = sum(len(text.encode()) for text in texts)
    for what in (clf.model_, clf.tally_):
        bb.save(what, tmp_path / "sms.banbury")
        assert (tmp_path / "sms.banbury").stat().st_size < 2 * learned
    assert len(pickle.dumps(clf)) < 2 * learned
    assert bb.load(tmp_path / "sms.banbury") == clf.tally_


def test_10_an_update_learns_the_new_messages_only(messages, monkeypatch):
    texts, labels = messages
    clf = NaiveBayesClassifier().fit(texts[:-1], labels[:-1])
    seen = []
    right, at_once = Text.kernel_input, Tally._add_texts
    monkeypatch.setattr(Text, "kernel_input", lambda *given: seen.append(right(*given)) or seen[-1])
    monkeypatch.setattr(Tally, "_add_texts", lambda *given: seen.append(given[1]) or at_once(*given))
    clf.partial_fit(texts[-1:], labels[-1:])
    assert seen == [texts[-1:]]
    assert clf.tally_ == bb.count(texts, target=labels)


# 12. One row costs classes × vocabulary


class Work:
    """What a call costs without a clock: the functions it calls, and the memory that arrays take up at most."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.calls = 0
        gc.disable()  # what it finds to do is not this call's work
        tracemalloc.start()
        sys.setprofile(self._called)
        try:
            call()
        finally:
            sys.setprofile(None)
            self.peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            gc.enable()

    def _called(self, frame: object, event: str, argument: object) -> None:
        self.calls += event in ("call", "c_call")


def one_at_a_time(n_words: int, **settings: Any) -> dict[str, Work]:
    """The work of learning, predicting and forgetting one short text beside 20 classes of so many words."""
    words = [f"word{i}" for i in range(n_words)]
    clf = NaiveBayesClassifier(features=bb.Text(**settings), threads=1)
    clf.fit([" ".join(words[c::2]) for c in range(20)], np.arange(20))
    text, steps = "word1 word2 word2 new", ("partial_fit", "predict", "forget", "predict_proba")
    found = {}
    for _ in range(3):  # what is made once, at the first call, is left out
        for step in steps:
            labels = [[7]] if step in ("partial_fit", "forget") else []
            found[step] = Work(lambda step=step, labels=labels: getattr(clf, step)([text], *labels))
    return found


@pytest.mark.parametrize(
    "settings", [{"model": "multinomial"}, {"model": "presence"}, {"model": "complement"}], ids=str
)
def test_12_one_text_costs_its_words_whatever_the_vocabulary(settings):
    few, many = one_at_a_time(200, **settings), one_at_a_time(20_000, **settings)
    for step, work in many.items():
        assert work.calls == few[step].calls, step
        assert work.peak < few[step].peak + 1000, step
        assert work.peak < 20_000, step  # not even a byte for each word


def test_12_the_parameters_of_other_words_stay_where_they_are():
    texts = [" ".join(f"word{i}" for i in range(c, 5000, 2)) for c in range(10)]
    clf = NaiveBayesClassifier().fit(texts, list(range(10)))
    (before,) = clf._learner.current.parameters
    for change in (clf.partial_fit, clf.forget):
        change(["word3 word4 word4"], [3])
        (after,) = clf._learner.current.parameters
        assert after.scores.weights is before.scores.weights
        assert after.table is by_shape.words(clf._learner.tally)[0].table
    assert np.array_equal(
        clf.predict_proba(texts), NaiveBayesClassifier().fit(texts, list(range(10))).predict_proba(texts)
    )


def test_12_peer_makes_every_log_probability_again():
    clf, row = MultinomialNB().fit(np.ones((20, 20_000)), np.arange(20)), np.ones((1, 20_000))
    peer(lambda: Work(lambda: clf.partial_fit(row, [7])).peak > 20 * 20_000 * 8)


# 13. Thousands of features underflow until every class is impossible


@pytest.mark.parametrize("features", ["gaussian", "bernoulli", "categorical"])
def test_13_five_thousand_features_leave_a_class_possible(features):
    rng = np.random.default_rng(13)
    X, y = rng.integers(0, 2, (30, 5000)), np.repeat(["a", "b", "c"], 10)
    clf = NaiveBayesClassifier(features=features).fit(X, y)
    far = 1 - X if features != "gaussian" else X + 1e6
    for rows in (X, far):
        found = clf.predict_proba(rows)
        assert np.isfinite(found).all()
        assert found.sum(axis=1) == pytest.approx(np.ones(30))
    assert np.isfinite(clf.predict_joint_log_proba(far)).all()
    assert clf.predict(X).tolist() == y.tolist()
