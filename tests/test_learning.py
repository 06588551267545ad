"""Learning curves: every size is what counting its rows at once gives; and what the lectures show with them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.datasets import decode_text
from benchmarks.newsgroups import PRUNED
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC

import banbury as bb
import by_shape
from banbury.quality.curves import Growth, LearningCurve, PeerArrays, learning_curve, spread
from banbury.rows.labelled import load_rows as held


def journeys(n: int = 120, seed: int = 0) -> pd.DataFrame:
    """A table with every kind of column, each of them with something missing."""
    rng = np.random.default_rng(seed)
    late = rng.random(n) < 0.4
    words = np.array(["rain", "signal", "delay", "queue", "sun", "empty", "quick", "calm"])
    notes = [" ".join(rng.choice(words[:5] if x else words[3:], 6)) for x in late]
    frame = pd.DataFrame(
        {
            "minutes": rng.normal(30 + 10 * late, 8),
            "stops": rng.poisson(3 + 2 * late).astype(float),
            "ticket": rng.choice(["day", "week", "year"], n),
            "rush": pd.array(rng.random(n) < 0.3 + 0.4 * late, dtype="boolean"),
            "notes": notes,
            "late": np.where(late, "yes", "no"),
        }
    )
    frame.loc[rng.random(n) < 0.1, ["minutes", "ticket", "rush", "notes"]] = None
    return frame


FAMILIES = {"stops": "poisson", "minutes": "histogram", "notes": bb.Text(min_count=2, drop_most_frequent=1)}


def orders(frame: pd.DataFrame, target: str, repeats: int, seed: int = 0) -> list[np.ndarray]:
    """The rows of each repeat, in the order in which they are learned from; the last of them are withheld."""
    labels = pd.Categorical(frame[target]).codes.astype(np.int32)
    return [spread(labels, np.random.default_rng([seed, number])) for number in range(repeats)]


# Every size is what counting its rows at once gives


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("features", ["auto", FAMILIES], ids=["auto", "declared"])
def test_each_size_is_the_tally_of_its_rows_counted_at_once(features: Any, weighted: bool) -> None:
    frame = journeys()
    weights = np.random.default_rng(1).integers(1, 4, len(frame)) if weighted else None
    rows = held(frame, "late", features=features, weights=weights)
    (order,) = orders(frame, "late", 1)
    ends = [7, 20, 33, 80]
    growth = Growth(rows, order, ends)
    for k, end in enumerate(ends):
        some = np.sort(order[:end])
        assert growth.rows_of(k).tolist() == some.tolist()
        once = bb.count(
            frame.iloc[some], "late", schema=rows.schema, weights=None if weights is None else weights[some]
        )
        grown = growth.groups.only(np.arange(len(ends)) <= k)
        assert grown == once
        assert grown.digest() == once.digest()
        for mine, theirs in zip(by_shape.words(grown), by_shape.words(once), strict=True):
            assert counts_of(mine.table) == counts_of(theirs.table)


def counts_of(table: Any) -> dict[str, Any]:
    """Of each word the classes that have it, with occurrences and texts."""
    ids = table.in_order()
    starts, classes, occurrences, documents = table.pairs(ids)
    cells = list(zip(classes.tolist(), occurrences.tolist(), documents.tolist(), strict=True))
    return {word: cells[a:b] for word, a, b in zip(table.words(ids), starts, starts[1:], strict=False)}


@pytest.mark.parametrize("how", ["mean", "predictive"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_curve_is_what_fitting_each_subset_anew_gives(how: Any, weighted: bool) -> None:
    frame = journeys()
    weights = np.random.default_rng(1).random(len(frame)) + 0.5 if weighted else None
    sizes = [7, 20, 80]
    curve = learning_curve(
        frame, "late", sizes=sizes, repeats=3, how=how, alpha=0.5, weights=weights, features=FAMILIES, seed=4
    )
    schema = bb.Schema.infer(frame, "late", features=FAMILIES)
    n_test = round(len(frame) / 3)
    for number, order in enumerate(orders(frame, "late", 3, seed=4)):
        test = np.sort(order[len(frame) - n_test :])
        truth = frame["late"].iloc[test].to_numpy()
        given = None if weights is None else weights[test]
        for k, size in enumerate(sizes):
            some = np.sort(order[:size])
            learned = bb.count(
                frame.iloc[some], "late", schema=schema, weights=None if weights is None else weights[some]
            )
            model = bb.estimate(learned, how=how, alpha=0.5)
            posterior = model.posterior(frame.iloc[test])
            right = np.array(model.classes)[posterior.argmax(axis=1)] == truth
            assert curve.accuracy[number, k] == pytest.approx(np.average(right, weights=given), abs=1e-12)
            loss = log_loss(truth, posterior, sample_weight=given)
            assert curve.log_loss[number, k] == pytest.approx(loss, rel=1e-9)


def test_rows_in_batches_are_the_rows_of_one_frame() -> None:
    frame = journeys()
    halves = [frame[:50], frame[50:]]
    whole = learning_curve(frame, "late", repeats=2, peer="logistic_regression", sizes=[10, 80])
    schema = bb.Schema.infer(frame, "late")
    parts = learning_curve(halves, "late", repeats=2, peer="logistic_regression", sizes=[10, 80], schema=schema)
    assert parts.accuracy.tolist() == whole.accuracy.tolist()
    assert parts.peer is not None and whole.peer is not None
    assert parts.peer.accuracy.tolist() == whole.peer.accuracy.tolist()


# Which rows


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=200), st.integers(0, 100))
def test_every_part_of_the_order_has_its_share_of_each_class(labels: list[int], seed: int) -> None:
    given = np.array(labels, dtype=np.int32)
    order = spread(given, np.random.default_rng(seed))
    assert sorted(order.tolist()) == np.flatnonzero(given >= 0).tolist()
    classes, sizes = np.unique(given[given >= 0], return_counts=True)
    assert sorted(given[order[: len(classes)]].tolist()) == classes.tolist()
    for name, size in zip(classes, sizes, strict=True):
        so_far = np.cumsum(given[order] == name)
        share = size * np.arange(1, len(order) + 1) / len(order)
        assert np.all(np.abs(so_far - share) <= len(classes) + 1)


def test_withheld_rows_are_never_learned_from_and_smaller_sizes_are_part_of_larger() -> None:
    frame = journeys()
    curve = learning_curve(frame, "late", sizes=[8, 16, 80], repeats=1)
    assert (curve.n_rows, curve.n_test, curve.sizes.tolist()) == (120, 40, [8, 16, 80])
    (order,) = orders(frame, "late", 1)
    growth = Growth(held(frame, "late"), order, [8, 16, 80])
    small, middle, large = (set(growth.rows_of(k).tolist()) for k in range(3))
    assert small < middle < large
    assert large.isdisjoint(order[80:].tolist())
    assert {frame["late"][row] for row in small} == {"no", "yes"}


def test_one_seed_gives_one_curve_and_another_another() -> None:
    frame = journeys()
    first, again, other = (learning_curve(frame, "late", seed=seed).to_dict() for seed in (1, 1, 2))
    assert first == again
    assert first != other
    more = learning_curve(frame, "late", seed=1, repeats=7)
    assert more.accuracy[:5].tolist() == first["accuracy"]  # repeats do not depend on how many follow
    assert learning_curve(frame, "late", seed=1, threads=1).to_dict() == first


def test_rows_without_a_label_or_with_a_weight_of_0_are_no_rows() -> None:
    frame = journeys()
    schema = bb.Schema.infer(frame, "late")
    plain = learning_curve(frame, "late", schema=schema).to_dict()
    extra = journeys(30, seed=9).assign(late=[None] * 30)
    assert learning_curve(pd.concat([frame, extra]), "late", schema=schema).to_dict() == plain
    extra = journeys(30, seed=9).assign(late=["never", "yes", "no"] * 10)
    weights = np.concatenate([np.ones(120), np.zeros(30)])
    assert learning_curve(pd.concat([frame, extra]), "late", schema=schema, weights=weights).to_dict() == plain


def test_a_class_of_one_row_is_always_learned_from() -> None:
    frame = {"x": np.arange(31.0), "y": ["a"] * 15 + ["b"] * 15 + ["rare"]}
    curve = learning_curve(frame, "y", repeats=10, peer="logistic_regression", sizes=[3, 20])
    assert curve.n_classes == 3
    assert np.isfinite(curve.log_loss).all()
    assert curve.peer is not None and np.isfinite(curve.peer.log_loss).all()


# Sizes


def sizes_of(**settings: Any) -> list[int]:
    return learning_curve(journeys(), "late", repeats=1, **settings).sizes.tolist()


def test_sizes_are_about_ten_on_a_logarithmic_scale_from_twenty_to_all() -> None:
    X, y = load_iris(return_X_y=True)
    found = learning_curve(X, y, repeats=1).sizes
    assert (found[0], found[-1], len(found)) == (20, 100, 10)
    steps = np.diff(np.log(found))
    assert steps.max() < 2 * steps.min()
    few = learning_curve(bb.datasets.play_tennis(), "play", repeats=1).sizes
    assert (few[0], few[-1]) == (4, 9)
    assert np.all(np.diff(few) > 0)


def test_sizes_may_be_shares_of_what_is_not_withheld() -> None:
    assert sizes_of(sizes=[0.1, 0.5, 1.0]) == [8, 40, 80]
    assert sizes_of(sizes=np.array([0.25, 0.75])) == [20, 60]
    assert sizes_of(sizes=(10, 0.5, np.int64(60))) == [10, 40, 60]
    assert sizes_of(sizes=[1.0], test=0.5) == [60]


@pytest.mark.parametrize(
    "sizes, got",
    [
        ([40, 20], r"\[40, 20\]"),
        ([20, 20], r"\[20, 20\]"),
        ([0.2, 0.201], r"\[16, 16\]"),
        ([20, 81], "81"),
        ([0, 20], "0"),
        ([1, 20], "1"),
        ([-5], "-5"),
        ([0.001], r"0.001 \(0 rows\)"),
        ([0.5, 1.5], "1.5"),
        ([20.0, 40.0], "20.0"),
        ([float("nan")], "nan"),
        ([True], "True"),
        (["all"], "'all'"),
        ([], r"\[\]"),
        ("all", "'all'"),
        (10, "10"),
    ],
)
def test_bad_sizes_are_named(sizes: Any, got: str) -> None:
    with pytest.raises(bb.BanburyError, match=rf"^sizes must be .* 2 .* 80 .* Got '?{got}'? instead"):
        sizes_of(sizes=sizes)


@pytest.mark.parametrize("test", [0, 1, 0.0, 1.0, -0.1, 2, 40, "third", None, True, float("nan")])
def test_a_bad_share_to_withhold_is_named(test: Any) -> None:
    with pytest.raises(bb.BanburyError, match=r"^test must be the share of rows to hold out, between 0 and 1"):
        sizes_of(test=test)


def test_something_is_left_to_learn_from_and_something_withheld() -> None:
    with pytest.raises(bb.BanburyError, match="test must be a share that leaves at least one of"):
        sizes_of(test=0.99)
    assert learning_curve(journeys(), "late", test=1e-9, repeats=1).n_test == 1


@pytest.mark.parametrize("repeats", [0, -1, 1.5, True, None])
def test_bad_repeats_are_named(repeats: Any) -> None:
    with pytest.raises(bb.BanburyError, match="repeats must be a whole number of at least 1"):
        learning_curve(journeys(), "late", repeats=repeats)


def test_one_class_has_no_learning_curve() -> None:
    with pytest.raises(bb.BanburyError, match=r"target must be at least two classes\. Got .one class, 'a'"):
        learning_curve({"x": [1.0, 2.0, 4.0], "y": ["a", "a", "a"]}, "y")
    with pytest.raises(bb.BanburyError, match="missing label or a weight of zero"):
        learning_curve({"x": [1.0, 2.0, 4.0], "y": ["a", "b", "a"]}, "y", weights=[0, 0, 0])


# A peer


def test_logistic_regression_learns_from_every_kind_of_column() -> None:
    frame = journeys(400)
    for column in ("minutes", "rush", "notes"):
        curve = learning_curve(frame[[column, "late"]], "late", repeats=3, sizes=[200], peer="logistic_regression")
        assert curve.peer is not None
        assert curve.peer.mean_accuracy[0] > curve.majority + 0.03
    curve = learning_curve(frame, "late", repeats=3, sizes=[200], peer="logistic_regression")
    assert curve.peer is not None
    assert curve.peer.name == "logistic regression"
    assert curve.peer.mean_accuracy[0] > 0.85


def test_what_scikit_learn_is_given_is_scaled_by_the_rows_learned_from_alone() -> None:
    frame = pd.DataFrame(
        {
            "x": [1.0, 3.0, np.nan, 100.0],
            "colour": ["red", "blue", None, "green"],
            "note": ["the cat sat there", "the dog sat there", "the cat and dog", "a bird flew away"],
            "y": ["a", "b", "a", "b"],
        }
    )
    rows = held(frame, "y", features={"x": "gaussian", "colour": "categorical", "note": "text"})
    growth = Growth(rows, np.arange(4), [3])
    table = PeerArrays.of(rows, growth.groups.counted)
    learned, tested = table.matrices(growth.rows_of(0), np.array([3]), growth.tally(0))
    assert learned.shape == (3, 1 + 3 + 6)  # blue, red and missing; and, cat, dog, sat, the, there
    assert learned.toarray()[:, 0] == pytest.approx([-np.sqrt(1.5), np.sqrt(1.5), 0.0])
    assert tested.toarray()[0, 0] == pytest.approx(98 * np.sqrt(1.5))
    assert tested.toarray()[0, 1:].tolist() == [0.0] * 9  # a colour and words never seen
    assert np.square(learned.toarray()[:, 4:]).sum(axis=1) == pytest.approx([1.0, 1.0, 1.0])
    plain = held(frame.drop(columns="note"), "y", features={"x": "gaussian", "colour": "categorical"})
    growth = Growth(plain, np.arange(4), [3])
    learned, _ = PeerArrays.of(plain, growth.groups.counted).matrices(growth.rows_of(0), np.array([3]), growth.tally(0))
    assert isinstance(learned, np.ndarray)
    assert learned.shape == (3, 4)


def test_words_that_naive_bayes_does_not_use_are_not_given_to_the_other() -> None:
    texts = ["cat cat dog", "dog cat emu", "owl cat dog", "fox cat"] * 3
    rows = held(texts, list("abab") * 3, features=bb.Text(vocabulary=["cat", "dog", "yak"]))
    growth = Growth(rows, np.arange(12), [12])
    table = PeerArrays.of(rows, growth.groups.counted)
    learned, _ = table.matrices(growth.rows_of(0), np.array([3]), growth.tally(0))
    assert learned.shape == (12, 2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "other",
    [RandomForestClassifier(10, random_state=0), make_pipeline(MaxAbsScaler(), LogisticRegression())],
    ids=["forest", "pipeline"],
)
def test_any_classifier_of_scikit_learn_may_stand_beside(other: Any, weighted: bool) -> None:
    weights = np.random.default_rng(0).random(120) + 0.5 if weighted else None
    curve = learning_curve(journeys(), "late", repeats=2, sizes=[10, 80], peer=other, weights=weights)
    assert curve.peer is not None
    assert curve.peer.name == type(other).__name__
    assert curve.peer.accuracy.shape == curve.peer.log_loss.shape == (2, 2)
    assert not hasattr(other, "classes_")  # the one given is left as it was


def test_weights_reach_the_learner_beside() -> None:
    rng = np.random.default_rng(0)
    frame = {"x": rng.normal(size=300), "y": rng.choice(["a", "b"], 300)}
    weights = np.where(np.array(frame["y"]) == "a", 99.0, 1.0)
    curve = learning_curve(frame, "y", repeats=1, sizes=[1.0], peer="logistic_regression", weights=weights)
    assert curve.peer is not None
    assert curve.majority > 0.95
    assert curve.peer.accuracy[0, 0] == pytest.approx(curve.majority)


@pytest.mark.parametrize("other", [LinearSVC(), LogisticRegression, object(), 3])
def test_a_learner_without_probabilities_is_refused(other: Any) -> None:
    with pytest.raises(bb.BanburyError, match="peer must be 'logistic_regression' or a scikit-learn classifier with"):
        learning_curve(journeys(), "late", peer=other)


def test_other_bad_learners_are_named() -> None:
    with pytest.raises(bb.BanburyError, match=r"'logistic_regresion' instead\. Did you mean 'logistic_regression'"):
        learning_curve(journeys(), "late", peer="logistic_regresion")
    with pytest.raises(bb.BanburyError, match="peer must be a classifier that accepts sample_weight"):
        learning_curve(journeys(), "late", peer=KNeighborsClassifier(), weights=np.ones(120))


def test_where_no_word_is_left_logistic_regression_answers_by_the_class_prior() -> None:
    texts = ["cat dog", "dog emu", "owl fox"] * 10
    with pytest.warns(bb.BanburyWarning, match="none of the 5 words"):
        curve = learning_curve(
            texts,
            ["a", "a", "b"] * 10,
            features=bb.Text(min_count=99),
            sizes=[1.0],
            repeats=1,
            peer="logistic_regression",
        )
    assert curve.peer is not None
    assert curve.accuracy.tolist() == curve.peer.accuracy.tolist() == [[curve.majority]]


# What is shown


def curve_of(repeats: int = 2, peer: Any = None) -> LearningCurve:
    return learning_curve(journeys(), "late", sizes=[10, 80], repeats=repeats, peer=peer)


def test_the_table_has_a_line_for_each_size() -> None:
    lines = str(curve_of(peer="logistic_regression")).splitlines()
    assert lines[0] == (
        "Learning curve of plain naive Bayes beside logistic regression: 2 repeats, 40 of 120 rows held out, 2 classes"
    )
    assert lines[1].split("  ")[-1].strip() == "logistic regression"
    assert lines[2].split() == ["rows", "accuracy", "log", "loss", "accuracy", "log", "loss"]
    assert [line.split()[0] for line in lines[3:5]] == ["10", "80"]
    assert len({len(line) for line in lines[1:5]}) == 1
    assert lines[5].startswith("  random guess 0.5000, majority 0.")


def test_one_repeat_has_no_standard_error() -> None:
    curve = curve_of(repeats=1)
    assert curve.standard_error is None
    assert "±" not in str(curve)
    assert "nan" not in str(curve)
    assert curve.to_dict()["standard_error"] is None
    three = learning_curve(journeys(), "late", sizes=[10], repeats=3)
    assert three.standard_error == pytest.approx(three.accuracy.std(axis=0, ddof=1) / np.sqrt(3))


@pytest.mark.parametrize("peer", [None, "logistic_regression"])
def test_a_curve_is_json(peer: Any) -> None:
    curve = curve_of(peer=peer)
    found = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
    assert found == curve.to_dict()
    assert found["sizes"] == [10, 80]
    assert np.mean(found["accuracy"], axis=0) == pytest.approx(found["mean_accuracy"])
    assert (found["peer"] is None) == (peer is None)


# Row 18 of the lectures


@pytest.mark.slow
def test_the_learning_curve_of_20_newsgroups_rises_to_the_lectures_89_percent(archived: Any, figure: Any) -> None:
    """A third withheld, words pruned as in row 17, full headers (of which Newsgroups: names the class)."""
    files = archived("20_newsgroups")
    texts = [decode_text(content) for content in files.values()]
    labels = np.array([name.split("/")[1] for name in files])
    curve = learning_curve(texts, labels, features=PRUNED, sizes=[100, 300, 1000, 3000, 1.0], repeats=2)
    print(curve)
    assert (curve.n_rows, curve.n_test, curve.sizes[-1]) == (19_997, 6_666, 13_331)
    assert np.all(np.diff(curve.accuracy, axis=1) > -0.01)  # noise: one figure's error is 0.005
    assert np.all(np.diff(curve.mean_accuracy) > 0)
    assert 0.88 <= curve.mean_accuracy[-1] <= 0.905  # row 17: 0.892
    assert curve.random_guess == 0.05
    assert curve.majority == pytest.approx(0.05, abs=0.001)
    figure(
        18,
        "learning curve of 20 Newsgroups, a third withheld: after 100, 1,000 and 13,331 posts",
        "rises to 89 %",
        ", ".join(f"{curve.mean_accuracy[i]:.1%}" for i in (0, 2, 4)),
        "bb.learning_curve(texts, labels, features=pruned)",
    )


# Row 34 of the lectures


def test_on_few_messages_naive_bayes_is_ahead_of_logistic_regression(unpacked: Any, figure: Any) -> None:
    """SMS spam, TF-IDF weights and a penalty chosen by cross-validation for logistic regression, which catches up later."""
    lines = (unpacked("sms-spam") / "SMSSpamCollection").read_text(encoding="utf-8").splitlines()
    kinds, texts = zip(*(line.split("\t", 1) for line in lines), strict=True)
    curve = learning_curve(list(texts), list(kinds), sizes=[20, 50, 100, 1000], repeats=5, peer="logistic_regression")
    print(curve)
    assert curve.peer is not None
    ahead = curve.accuracy - curve.peer.accuracy
    error = ahead.std(axis=0, ddof=1) / np.sqrt(len(ahead))
    assert np.all(ahead.mean(axis=0)[:3] > 0.02)
    assert np.all(ahead.mean(axis=0)[:3] > 2 * error[:3])
    assert abs(ahead.mean(axis=0)[3]) < 0.01
    both = zip(curve.mean_accuracy, curve.peer.mean_accuracy, strict=True)
    figure(
        34,
        "generative against discriminative: SMS spam after 20, 50, 100 and 1,000 messages, naive Bayes : logistic regression",
        "naive Bayes ahead on few rows",
        ", ".join(f"{ours:.0%} : {theirs:.0%}" for ours, theirs in both),
        'bb.learning_curve(texts, kinds, peer="logistic_regression")',
    )


@pytest.mark.slow
def test_on_votes_that_repeat_each_other_logistic_regression_is_ahead(house_votes: pd.DataFrame, figure: Any) -> None:
    sizes = [10, 50, 200]
    curve = learning_curve(house_votes, "party", sizes=sizes, repeats=10, peer="logistic_regression")
    print(curve)
    assert curve.peer is not None
    behind = curve.peer.mean_accuracy - curve.mean_accuracy
    assert np.all(behind > 0)
    assert np.all(behind[1:] > 0.03)
    both = zip(curve.mean_accuracy, curve.peer.mean_accuracy, strict=True)
    figure(
        34,
        "the same on sixteen votes of 1984 that repeat each other: after 10, 50 and 200 members",
        "naive Bayes ahead on few rows",
        ", ".join(f"{ours:.0%} : {theirs:.0%}" for ours, theirs in both) + "; not so where independence fails",
        'bb.learning_curve(votes, "party", peer="logistic_regression")',
    )
