"""Sums are whole numbers: whatever was learned, forgotten, merged and scaled, what is left is a fresh count, bit for bit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine

import banbury as bb
from banbury.errors import NegativeCount
from banbury.files import from_bytes, to_bytes
from test_laws import CASES, Case, every_family, law, parametrized, quietly, tables

Columns = dict[str, Any]
SEEDS = range(40)


def loaded(content: bytes) -> Any:
    with quietly():
        return from_bytes(content, "exact.banbury")


def assert_fresh(left: bb.Tally, fresh: bb.Tally, questions: Any) -> None:
    """Equal; with a model that answers with the same bytes, a file of the same bytes that can be loaded, and one digest."""
    assert left.classes == fresh.classes
    assert left == fresh
    assert fresh == left
    assert left.n_rows == fresh.n_rows
    with quietly():
        model, other = bb.estimate(left), bb.estimate(fresh)
        assert model.posterior(questions).tobytes() == other.posterior(questions).tobytes()
    content = to_bytes(model)
    again = loaded(content).tally
    assert again == fresh
    same = content == to_bytes(other)
    assert same, "the files differ"
    assert left.digest() == again.digest() == fresh.digest()


def pieces(rng: np.random.Generator, rows: np.ndarray) -> Iterator[np.ndarray]:
    """The rows in any order, some at a time."""
    shuffled = rng.permutation(rows)
    while len(shuffled):
        size = int(rng.integers(1, 4))
        yield shuffled[:size]
        shuffled = shuffled[size:]


def at(columns: Columns, index: Any) -> Columns:
    return {name: np.asarray(column)[index] for name, column in columns.items()}


# A model saved after forgetting can be loaded ------------------------------------------------------------------------

ZEROS = [0, 0, 2.9, 4, 0, 0, 0, 1, 2]
WHOSE = list("aaaabbbbb")
ORDERS = [[[2.9, 4.0]], [[2.9], [4.0]], [[4.0], [2.9]]]


@pytest.mark.parametrize("orders", ORDERS, ids=str)
@pytest.mark.parametrize("estimator", [bb.NaiveBayesClassifier, bb.GaussianNB])
def test_a_model_saved_after_forgetting_can_be_loaded(estimator: Any, orders: Any) -> None:
    clf = estimator().fit(np.array(ZEROS)[:, None], WHOSE)
    for gone in orders:
        clf.forget(np.array(gone)[:, None], ["a"] * len(gone))
    left = loaded(to_bytes(clf.model_)).tally
    kept = [i for i, x in enumerate(ZEROS) if x not in (2.9, 4)]
    rows = np.array(ZEROS)[kept, None]
    assert_fresh(left, left.count(rows, [WHOSE[i] for i in kept]), rows)


def zero_inflated(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(rng.random(n) < 0.7, 0.0, np.round(rng.exponential(3.0, n), 1))


def one_decimal(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.round(rng.normal(0.0, 1.0, n), 1)


def with_sentinels(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(rng.random(n) < 0.3, rng.choice([-9999.0, 1e8, -1e8, 1e18], n), one_decimal(rng, n))


def denormal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.choice([0.0, 5e-324, 1e-310, -2e-308], n)


def large(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(2**53, 2**60, n)


KINDS = [zero_inflated, one_decimal, with_sentinels, denormal, large]
FAMILIES = {
    "gaussian": bb.Gaussian(),
    "shared": bb.Gaussian(variance="shared"),
    "full": {("u", "v"): bb.Gaussian(covariance="full")},
    "tied": {("u", "v"): bb.Gaussian(covariance="tied")},
}


@pytest.mark.parametrize("features", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_forgotten_in_any_pieces(kind: Any, features: Any) -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(6, 24))
        columns, y = {"u": kind(rng, n), "v": kind(rng, n)}, rng.choice(["a", "b"], n)
        tally = bb.count(columns, y, features=features)
        kept = rng.random(n) < 0.4
        kept[0] = True
        for piece in pieces(rng, np.flatnonzero(~kept)):
            tally = tally - tally.count(at(columns, piece), y[piece])
        assert_fresh(tally, tally.count(at(columns, kept), y[kept]), at(columns, kept))


# Forgetting gives the posteriors of what is left ---------------------------------------------------------------------


@pytest.mark.parametrize("whose", ["aaabbb", "aaaaaa", "bbbbbb"])
def test_sentinels_that_were_forgotten_leave_the_posterior_of_the_rest(whose: str) -> None:
    rows, sentinels = [1.0, 2.0, 3.0, 6.0, 7.0, 8.0], [1e8, -1e8, 2e8] * 2
    tally = bb.count({"x": rows + sentinels}, list("aaabbb" + whose))
    left = tally - tally.count({"x": sentinels}, list(whose))
    assert bb.estimate(left).posterior({"x": [5.0]})[0] == pytest.approx([0.02297737, 0.97702263], abs=1e-6)
    assert_fresh(left, tally.count({"x": rows}, list("aaabbb")), {"x": [5.0, 1e8]})


@pytest.mark.parametrize("sentinel", [-9999.0, 1e8, 1e18, 0.7])
@pytest.mark.parametrize("constant", [0.3, 0.0, -1.1, 1.7e9 + 0.1, 5e-324])
def test_a_column_left_constant_by_forgetting_answers_as_if_it_had_been(constant: float, sentinel: float) -> None:
    """Of one class; the other varies."""
    rows = np.array([constant, sentinel, constant, constant, 1.0, 2.5, 4.0])[:, None]
    y, kept = np.array(list("aaaabbb")), [0, 2, 3, 4, 5, 6]
    left = bb.GaussianNB().fit(rows, y).forget(rows[[1]], y[[1]]).tally_
    assert_fresh(left, left.count(rows[kept], y[kept]), rows)


@pytest.mark.parametrize("sentinel", [-9999.0, 1e8, 1e18, 0.7])
@pytest.mark.parametrize("constant", [0.3, 0.0, -1.1, 1.7e9 + 0.1, 5e-324])
def test_a_constant_has_no_spread_and_two_values_have_some(constant: float, sentinel: float) -> None:
    """All that is left after forgetting, so that no other class lends it any."""
    x = np.array([constant, sentinel, constant, constant])[:, None]
    clf = bb.GaussianNB(var_smoothing=0).fit(x, np.zeros(4))
    assert clf.var_[0, 0] > 0
    with quietly():
        never = bb.GaussianNB(var_smoothing=0).fit(x, np.zeros(4), [1, 0, 1, 1])
        assert clf.forget(x[1:2], np.zeros(1)).var_[0, 0] == never.var_[0, 0]
    with pytest.raises(bb.BanburyError):
        clf.forget(x[1:2], np.zeros(1))


@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_a_block_left_constant_by_forgetting_answers_as_if_it_had_been(covariance: Any) -> None:
    columns = {"u": [0.3, 0.3, 1e8, 1.0, 2.0, 4.1], "v": [0.1, 0.2, -1e8, 0.1, 0.7, 0.4]}
    y, kept = np.array(list("aaabbb")), [0, 1, 3, 4, 5]
    tally = bb.count(columns, y, features={("u", "v"): bb.Gaussian(covariance=covariance)})
    left = tally - tally.count(at(columns, [2]), y[[2]])
    assert_fresh(left, tally.count(at(columns, kept), y[kept]), columns)


def moments(x: Sequence[float], weights: Sequence[str]) -> tuple[Fraction, Fraction]:
    """Mean and variance, in fractions."""
    pairs = [(Fraction(value), Fraction(weight)) for value, weight in zip(x, weights, strict=True)]
    n = sum(weight for _, weight in pairs)
    mean = sum((value * weight for value, weight in pairs), Fraction(0)) / n
    return mean, sum(((value - mean) ** 2 * weight for value, weight in pairs), Fraction(0)) / n


def test_mean_and_variance_are_those_of_exact_fractions_after_forgetting() -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        x, gone = 20.0 + one_decimal(rng, 12), np.array([1e8, -9999.0, 1e8])
        weights = rng.choice(["0.1", "0.7", "2", "0.001", "1000000"], 15).tolist()
        rows, w = np.concatenate([x, gone])[:, None], np.array([float(weight) for weight in weights])
        clf = bb.GaussianNB(var_smoothing=0).fit(rows, np.zeros(15), sample_weight=w)
        clf.forget(rows[12:], np.zeros(3), sample_weight=w[12:])
        mean, variance = moments(x.tolist(), weights[:12])
        assert clf.theta_[0, 0] == pytest.approx(float(mean), rel=1e-12)
        assert clf.var_[0, 0] == pytest.approx(float(variance), rel=1e-9)


# What was learned can be forgotten -----------------------------------------------------------------------------------


@pytest.mark.parametrize("x", list(permutations([-0.1, -0.2, 0.2])), ids=str)
@pytest.mark.parametrize("others", [[], [1.0, 2.5]], ids=["alone", "among others"])
def test_three_values_are_forgotten_one_and_then_two(x: Any, others: list[float]) -> None:
    labels, rest = ["a"] * 3, ["b"] * len(others)
    tally = bb.count({"x": [*x, *others]}, [*labels, *rest])
    two = tally - tally.count({"x": [x[0]]}, ["a"])
    none = two - tally.count({"x": x[1:]}, ["a", "a"])
    assert none.classes == tuple(sorted(set(rest)))
    assert_fresh(two, tally.count({"x": [*x[1:], *others]}, [*labels[1:], *rest]), {"x": [0.0, 1.0]})
    if others:
        assert_fresh(none, tally.count({"x": others}, rest), {"x": [0.0, 1.0]})
    else:
        assert none == tally * 0
        assert none.digest() == (tally * 0).digest()


@pytest.mark.parametrize("x", list(permutations([-0.1, -0.2, 0.2])), ids=str)
def test_an_estimator_forgets_three_values_one_and_then_two(x: Any) -> None:
    rows = np.array([*x, 1.0, 2.5])[:, None]
    y = list("aaabb")
    clf = bb.GaussianNB().fit(rows, y)
    clf.forget(rows[:1], y[:1]).forget(rows[1:3], y[1:3])
    assert (clf.classes_.tolist(), clf.class_count_.tolist()) == (["b"], [2.0])
    assert clf.tally_ == clf.tally_.count(rows[3:], y[3:])


def test_the_wine_is_forgotten_in_any_pieces() -> None:
    X, target = load_wine(return_X_y=True)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(X))
        gone, kept = order[:150], order[150:]
        tally = bb.count(X, target)
        clf = bb.GaussianNB().fit(X, target)
        for piece in pieces(rng, gone):
            tally = tally - tally.count(X[piece], target[piece])
            clf.forget(X[piece], target[piece])
        assert_fresh(tally, tally.count(X[kept], target[kept]), X)
        assert_fresh(clf.tally_, clf.tally_.count(X[kept], target[kept]), X)


@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_the_wine_is_forgotten_from_a_block_in_any_pieces(covariance: Any) -> None:
    X, target = load_wine(return_X_y=True)
    rng = np.random.default_rng(5)
    order = rng.permutation(len(X))
    tally = bb.count(X, target, features=bb.Gaussian(covariance=covariance))
    left = tally
    for piece in pieces(rng, order[:100]):
        left = left - tally.count(X[piece], target[piece])
    assert_fresh(left, tally.count(X[order[100:]], target[order[100:]]), X)


def test_a_histogram_that_has_widened_its_bins_forgets_exactly() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=9_000) * np.logspace(0, 6, 9_000), rng.choice(["a", "b"], 9_000)
    first = bb.count({"x": x[:20]}, y[:20], features="histogram")
    tally = first + first.count({"x": x[20:]}, y[20:])
    assert tally.schema != first.schema
    left = tally - first.count({"x": x[100:]}, y[100:])
    assert_fresh(left, tally.count({"x": x[:100]}, y[:100]), {"x": x[:200]})


# Weights -------------------------------------------------------------------------------------------------------------

HEAVY_AND_LIGHT = [(1e6, 1e-3), (1e9, 1e-3), (1e9, 1e-9), (1e-9, 1e9), (1e9, 0.1)]
ANY_FAMILY: dict[str, tuple[Any, list[Any]]] = {
    "gaussian": ("gaussian", [1.0, 2.1]),
    "poisson": ("poisson", [1, 4]),
    "categorical": ("categorical", ["u", "v"]),
    "histogram": ("histogram", [1.0, 2.1]),
    "kernel density": ("kernel_density", [1.0, 2.1]),
    "text": (bb.Text(), ["lunch today", "other words"]),
    "damped text": (bb.Text(damping="log", length=True), ["lunch today today", "other words"]),
}


@pytest.mark.parametrize("family, values", ANY_FAMILY.values(), ids=ANY_FAMILY)
@pytest.mark.parametrize("heavy, light", HEAVY_AND_LIGHT)
def test_weights_far_apart_lose_no_rows(family: Any, values: Any, heavy: float, light: float) -> None:
    tally = bb.count({"x": values}, ["a", "a"], weights=[heavy, light], features={"x": family})
    left = tally - tally.count({"x": values[:1]}, ["a"], weights=[heavy])
    assert left.n_rows == light
    assert left.classes == ("a",)
    assert_fresh(left, tally.count({"x": values[1:]}, ["a"], weights=[light]), {"x": values})


@pytest.mark.parametrize("family, values", ANY_FAMILY.values(), ids=ANY_FAMILY)
@pytest.mark.parametrize("heavy, light", HEAVY_AND_LIGHT)
def test_weights_far_apart_lose_no_classes(family: Any, values: Any, heavy: float, light: float) -> None:
    tally = bb.count({"x": values}, ["a", "b"], weights=[heavy, light], features={"x": family})
    left = tally - tally.count({"x": values[:1]}, ["a"], weights=[heavy])
    assert left.classes == ("b",)
    assert left.n_rows == light
    assert_fresh(left, tally.count({"x": values[1:]}, ["b"], weights=[light]), {"x": values})


@parametrized(CASES)
@law
@given(data=st.data())
def test_a_whole_number_of_times_a_decimal_is_the_decimal_it_comes_to(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case, weights=("none",), max_size=5))
    schema = table.schema(case)
    times, tenths = data.draw(st.sampled_from([2, 3, 5, 7, 10])), data.draw(st.integers(1, 9))

    def weighing(weight: float) -> bb.Tally:
        return replace(table, weights=(weight,) * len(table)).count(schema)

    once, at_once = weighing(tenths / 10), weighing(times * tenths / 10)
    assert times * once == at_once
    assert (times * once).n_rows == at_once.n_rows
    assert sum([once] * times) == at_once
    assert weighing((times - 1) * tenths / 10) == at_once - once
    assert (times * once).digest() == at_once.digest()


def test_five_tenths_are_a_half() -> None:
    tally = bb.count({"x": [0.1, 0.7]}, ["a", "b"], weights=[0.1, 0.1])
    halves = tally.count({"x": [0.1, 0.7]}, ["a", "b"], weights=[0.5, 0.5])
    assert 5 * tally == halves
    assert (5 * tally).n_rows == 1.0
    assert (5 * tally).digest() == halves.digest()


def test_ten_tenths_are_a_row() -> None:
    tally = bb.count({"x": [0.1, 0.7] * 10}, ["a", "b"] * 10, weights=[0.1] * 20)
    whole = tally.count({"x": [0.1, 0.7]}, ["a", "b"])
    assert tally == whole
    assert tally.n_rows == 2
    assert tally.digest() == whole.digest()


def test_three_tenths_are_three_tenths() -> None:
    tally = bb.count({"x": ["u"]}, ["a"], weights=[0.1])
    assert (3 * tally).n_rows == 0.3
    assert (tally + tally + tally).n_rows == 0.3
    assert tally.count({"x": ["u"] * 3}, ["a"] * 3, weights=[0.1] * 3).n_rows == 0.3


@pytest.mark.parametrize("n", [1, 3, 10, 1000])
def test_soft_labels_sum_to_the_weight_of_their_row(n: int) -> None:
    for shares in ([0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3]):
        soft = bb.count({"x": [0.1] * n}, weights=[shares] * n, classes=["a", "b", "c"], features="gaussian")
        assert soft.n_rows == n


@parametrized(CASES)
@law
@given(data=st.data())
def test_ten_rows_of_soft_labels_are_ten_rows(case: Case, data: st.DataObject) -> None:
    (row,) = data.draw(tables(case, weights=("none",), max_size=1)).rows
    ten, schema = [row] * 10, data.draw(tables(case, weights=("none",), width=len(row) - 1)).schema(case)
    columns = {f"x{j}": [each[j] for each in ten] for j in range(len(row) - 1)}
    soft = bb.count(columns, weights=[[0.1, 0.2, 0.7]] * 10, classes=["a", "b", "c"], schema=schema)
    hard = bb.count(columns, list("abbccccccc"), schema=schema)
    assert soft == hard
    assert soft.n_rows == hard.n_rows == 10
    assert soft.digest() == hard.digest()


# Words ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [["a", "a"], ["a", "b"]])
@pytest.mark.parametrize("settings", [{}, {"damping": "log", "length": True}, {"model": "presence"}], ids=str)
def test_a_forgotten_word_is_in_neither_the_tally_nor_the_file(settings: Any, labels: list[str]) -> None:
    texts = ["Жщюэя lunch", "plain lunch"]
    tally = bb.count({"text": texts}, labels, weights=[0.1, 0.7], features={"text": bb.Text(**settings)})
    left = 5 * tally - tally.count({"text": texts[:1]}, labels[:1], weights=[0.5])
    assert "щюэ" not in str(left)
    for thing in (left, bb.estimate(left)):
        content = to_bytes(thing)
        assert not any(part.encode() in content for part in ("жщ", "щю", "юэ", "эя", "Жщ", "\\u0449"))
    fresh = tally.count({"text": texts[1:]}, labels[1:], weights=[3.5])
    assert left.n_rows == 3.5
    assert_fresh(left, fresh, {"text": texts})


VOCABULARY = "ab cd ef gh Σίσυφος 中文".split()


@pytest.mark.parametrize(
    "settings",
    [{}, {"damping": "log", "length": True}, {"model": "bernoulli"}, {"ngrams": (1, 2)}],
    ids=str,
)
def test_texts_of_decimal_weights_are_forgotten_in_any_pieces(settings: Any) -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        n, factor = int(rng.integers(2, 9)), int(rng.integers(1, 8))
        texts = np.array([" ".join(rng.choice(VOCABULARY, rng.integers(0, 6))) for _ in range(n)])
        y, tenths = rng.choice(["a", "b"], n), rng.integers(1, 12, n)
        tally = bb.count({"text": texts}, y, weights=tenths / 10, features={"text": bb.Text(**settings)})
        kept = rng.random(n) < 0.4
        kept[0] = True
        left = factor * tally
        for piece in pieces(rng, np.flatnonzero(~kept)):
            left = left - tally.count({"text": texts[piece]}, y[piece], weights=factor * tenths[piece] / 10)
        fresh = tally.count({"text": texts[kept]}, y[kept], weights=factor * tenths[kept] / 10)
        assert_fresh(left, fresh, {"text": texts})


# Estimators ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[1], [2], [1, 1, 1], [500]], ids=str)
def test_a_first_batch_of_one_row_costs_no_precision(sizes: list[int]) -> None:
    X = 1.7e9 + np.random.default_rng(0).random((1000, 1))
    y = np.zeros(1000)
    clf = bb.GaussianNB(var_smoothing=0)
    for rows in np.split(np.arange(1000), np.cumsum(sizes)):
        clf.partial_fit(X[rows], y[rows], classes=[0])
    assert clf.var_[0, 0] == pytest.approx(np.var(X), rel=1e-9)
    assert clf.theta_[0, 0] == pytest.approx(X.mean(), rel=1e-15)


COUNTS = np.random.default_rng(1).integers(0, 4, (48, 3)).astype(float)
TILE = np.array([[-1.5, 0.1], [0.0, 0.2], [0.1, 0.7], [0.3, -0.4], [1.1, 3.0], [2.9, 0.3], [4.0, 1.3], [0.2, 0.9]])
ESTIMATORS: dict[str, tuple[Any, np.ndarray]] = {
    "gaussian": (bb.GaussianNB(), np.tile(TILE, (6, 1))),
    "multinomial": (bb.MultinomialNB(), COUNTS),
    "fractional multinomial": (bb.MultinomialNB(), COUNTS / 10),
    "bernoulli": (bb.BernoulliNB(binarize=1.5), COUNTS),
    "complement": (bb.ComplementNB(), COUNTS),
    "categorical": (bb.CategoricalNB(min_categories=4), COUNTS.astype(int)),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("estimator, X", ESTIMATORS.values(), ids=ESTIMATORS)
def test_partial_fit_in_any_batches_is_fit(estimator: Any, X: np.ndarray, weighted: bool) -> None:
    """Of numbers whole tiles come first, so that the first batch has the quartiles of the whole and settles the same schema."""
    rng = np.random.default_rng(2)
    y = np.tile([0, 1, 2], 16)
    weights = rng.choice([0.1, 0.7, 1.0, 2.0, 1e-9, 1e9], 48) if weighted else None
    whole = type(estimator)(**estimator.get_params()).fit(X, y, weights)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        start = 8 * int(rng.integers(1, 3)) if estimator is ESTIMATORS["gaussian"][0] else int(rng.integers(1, 20))
        rest = start + rng.permutation(48 - start)
        clf = type(estimator)(**estimator.get_params())
        for rows in [np.arange(start), *pieces(rng, rest)]:
            clf.partial_fit(
                X[rows], y[rows], classes=[0, 1, 2], sample_weight=None if weights is None else weights[rows]
            )
            if seed % 2:
                clf.predict(X[:1])  # so that the model is brought up to date step by step
        assert clf.tally_ == whole.tally_
        assert clf.predict_log_proba(X).tobytes() == whole.predict_log_proba(X).tobytes()
        assert clf.predict_proba(X).tobytes() == whole.predict_proba(X).tobytes()
        assert clf.tally_.digest() == whole.tally_.digest()


@pytest.mark.parametrize("start", [1, 2, 5, 13])
def test_partial_fit_of_numbers_is_a_count_of_all_rows_whatever_came_first(start: int) -> None:
    rng = np.random.default_rng(start)
    X, y = np.column_stack([one_decimal(rng, 40), with_sentinels(rng, 40)]), rng.integers(0, 2, 40)
    X[:start, 1] = one_decimal(rng, start)
    clf = bb.GaussianNB()
    for rows in [np.arange(start), *pieces(rng, np.arange(start, 40))]:
        clf.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert_fresh(clf.tally_, bb.count(X, y, schema=clf.tally_.schema), X)


# Threads, batches and orders -----------------------------------------------------------------------------------------


def table_of_everything(n: int) -> tuple[Columns, Any, np.ndarray]:
    rng = np.random.default_rng(9)
    y = rng.integers(0, 3, n)
    columns: Columns = {name: np.round(rng.normal(y, 1.0), 1) for name in ("normal", "bin", "kernel", "u", "v")}
    columns["normal"][rng.random(n) < 0.01] = -9999.0
    columns["u"][rng.random(n) < 0.01] = np.nan
    columns["rate"] = rng.poisson(y + 1)
    columns["word"] = rng.choice(["a", "b", "ü"], n)
    columns["text"] = np.array([" ".join(words) for words in rng.choice(VOCABULARY, (n, 4))])
    columns["damped"] = columns["text"]
    features = {
        "normal": bb.Gaussian(),
        "bin": bb.Histogram(),
        "kernel": bb.KernelDensity(),
        ("u", "v"): bb.Gaussian(covariance="full"),
        "rate": bb.Poisson(),
        "word": bb.Categorical(),
        "text": bb.Text(),
        "damped": bb.Text(damping="log", length=True),
    }
    return columns, features, y


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_threads_batches_and_orders_make_no_difference(weighted: bool) -> None:
    n = 30_000
    columns, features, y = table_of_everything(n)
    weights = np.random.default_rng(3).choice([0.1, 0.7, 2.0, 1e-9, 1e6, 1 / 3], n) if weighted else np.ones(n)
    first = bb.count(at(columns, slice(500)), y[:500], features=features)
    few = at(columns, slice(50))

    def counted(rows: np.ndarray, size: int, threads: int) -> bb.Tally:
        batches = [at(columns, rows[i : i + size]) for i in range(0, n, size)]
        return first.count(batches, y[rows], weights=weights[rows] if weighted else None, threads=threads)

    whole = counted(np.arange(n), n, 1)
    for threads, size in ((2, n), (3, n), (1, 7_777), (2, 1_001), (3, 10_000)):
        assert_fresh(counted(np.random.default_rng(size).permutation(n), size, threads), whole, few)


# Factors that are no whole numbers -----------------------------------------------------------------------------------


@every_family
@law
@given(data=st.data())
def test_a_tally_that_fades_has_no_negative_variance(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case))
    tally = table.count(table.schema(case))
    for factor in data.draw(st.lists(st.sampled_from([0.5, 0.1, 0.9, 1 / 3, 1e-3, 3.7]), min_size=1, max_size=5)):
        tally = tally * factor + data.draw(st.sampled_from([tally, tally * 0]))
    if tally.classes:
        with quietly():
            assert not np.isnan(bb.estimate(tally).posterior(table.columns(labelled=False))).any()
    content = to_bytes(tally)
    again = loaded(content)
    assert again == tally
    assert to_bytes(again) == content
    assert again.digest() == tally.digest()


@pytest.mark.parametrize("x", [0.3, 1e8, 1.7e9 + 0.1, -9999.0])
@pytest.mark.parametrize("factor", [0.1, 1 / 3, 0.9, 1e-6])
def test_a_constant_that_fades_has_no_variance_below_zero(x: float, factor: float) -> None:
    tally = bb.count({"x": [0.1, 4.0, x, x, x]}, list("bbaaa")) * factor
    for _ in range(20):
        tally = tally * 0.9
        posterior = bb.estimate(tally).posterior({"x": [x, 0.1]})
        assert np.isfinite(posterior).all()
        assert posterior[0, 0] > 0.5


# Too much ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family, values", ANY_FAMILY.values(), ids=ANY_FAMILY)
def test_weights_beyond_all_counting_are_refused(family: Any, values: Any) -> None:
    with pytest.raises(bb.BanburyError):
        bb.count({"x": values}, ["a", "b"], weights=[1.0, 1e300], features={"x": family})


@pytest.mark.parametrize("family, values", ANY_FAMILY.values(), ids=ANY_FAMILY)
def test_factors_beyond_all_counting_are_refused(family: Any, values: Any) -> None:
    tally = bb.count({"x": values}, ["a", "b"], features={"x": family})
    for factor in (1e30, 10**30, 1e300):
        with pytest.raises(bb.BanburyError):
            tally * factor


@pytest.mark.parametrize("family, values", ANY_FAMILY.values(), ids=ANY_FAMILY)
def test_sums_that_grow_too_large_are_refused_before_anything_changes(family: Any, values: Any) -> None:
    """Until then every one of them is right: never below zero, and half of its double."""
    tally = bb.count({"x": values}, ["a", "b"], features={"x": family})
    rows = 2.0
    for _ in range(200):
        before = tally.digest()
        try:
            doubled = tally + tally
        except bb.BanburyError:
            assert tally.digest() == before
            break
        rows *= 2
        assert doubled.n_rows == rows
        assert doubled == 2 * tally
        assert doubled - tally == tally
        tally = doubled
    else:
        pytest.fail("a tally of 2**200 rows is no integer that can be held")
    assert rows >= 2**50


@pytest.mark.parametrize("family, values", ANY_FAMILY.values(), ids=ANY_FAMILY)
def test_an_estimator_that_refuses_a_weight_has_learned_nothing_of_it(family: Any, values: Any) -> None:
    clf = bb.NaiveBayesClassifier(features={"x": family}).partial_fit({"x": values}, ["a", "b"])
    before, answers = clf.tally_.digest(), clf.predict_proba({"x": values}).tobytes()
    with pytest.raises(bb.BanburyError):
        clf.partial_fit({"x": values}, ["a", "new"], sample_weight=[1.0, 1e300])
    assert clf.tally_.digest() == before
    assert clf.classes_.tolist() == ["a", "b"]
    assert clf.predict_proba({"x": values}).tobytes() == answers


# Files and digests ---------------------------------------------------------------------------------------------------


@every_family
@law
@given(data=st.data())
def test_every_tally_can_be_saved_and_loaded(case: Case, data: st.DataObject) -> None:
    table = data.draw(tables(case))
    tally = table.count(table.schema(case))
    part = table.cut(0, data.draw(st.integers(1, len(table)))).count(tally.schema)
    for made in (tally, tally * 3, tally * 0.3, tally - part, tally + part, tally - tally):
        content = to_bytes(made)
        again = loaded(content)
        assert again == made
        assert again.n_rows == made.n_rows
        assert to_bytes(again) == content
        assert again.digest() == made.digest()


def test_a_digest_is_64_hexadecimal_digits() -> None:
    assert re.fullmatch("[0-9a-f]{64}", bb.count(bb.datasets.play_tennis(), "play").digest())


SCRIPT = """
import banbury as bb
texts = ["ab cd", "cd ef ef", "gh", "ab Σίσυφος"]
columns = {"text": texts, "word": list("uvwu"), "x": [0.1, 0.2, -0.4, 1e8]}
features = {"text": bb.Text(), "word": bb.Categorical(), "x": bb.Gaussian()}
print(bb.count(columns, ["yes", "no", "yes", "no"], features=features, weights=[0.1, 0.2, 1, 3]).digest())
"""


def test_a_digest_is_the_same_in_every_process() -> None:
    found = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert found[0] == found[1]
    assert len(found[0].strip()) == 64


BASE: Columns = {"x": [0.5, 1.5, 2.5], "word": ["u", "v", "u"], "text": ["ab cd", "cd", "ef"]}
LABELS = ["yes", "no", "yes"]


def one(columns: Columns = BASE, labels: list[str] = LABELS, weights: Any = None, **features: Any) -> bb.Tally:
    given = {"x": bb.Gaussian(), "word": bb.Categorical(), "text": bb.Text()} | features
    return bb.count(columns, labels, features=given, weights=weights)


DIFFERENT = {
    "a class": one(labels=["yes", "nay", "yes"]),
    "a word": one(BASE | {"text": ["ab cd", "cd", "eg"]}),
    "how often a word occurs": one(BASE | {"text": ["ab cd cd", "cd", "ef"]}),
    "a category": one(BASE | {"word": ["u", "w", "u"]}),
    "which class has a row": one(labels=["no", "yes", "yes"]),
    "a weight": one(weights=[1.0, 1.0, 1.000001]),
    "a light weight": one(weights=[1.0, 1.0, 1.000000000001]),
}


@pytest.mark.parametrize("other", DIFFERENT.values(), ids=DIFFERENT)
def test_tallies_that_differ_have_digests_that_differ(other: bb.Tally) -> None:
    assert one() != other
    assert one().digest() != other.digest()


def test_a_number_that_differs_is_another_digest() -> None:
    base, schema = one(), one().schema
    other = bb.count(BASE | {"x": [0.5, 1.5, 2.500000001]}, LABELS, schema=schema)
    assert base != other
    assert base.digest() != other.digest()


def test_the_same_rows_have_the_same_digest_however_they_came() -> None:
    base = one()
    rows = [{name: [column[i]] for name, column in BASE.items()} for i in range(3)]
    each = [base.count(row, [label]) for row, label in zip(rows, LABELS, strict=True)]
    for order in permutations(each):
        assert sum(order[1:], order[0]) == base
        assert sum(order[1:], order[0]).digest() == base.digest()
    assert base.count(BASE, LABELS, weights=[1.0, 1.0, 1.0]).digest() == base.digest()
    assert (base * 1).digest() == base.digest() == (base + base - base).digest()
    assert base.digest() != (base * 2).digest()


def test_another_width_of_bins_is_another_digest() -> None:
    narrow, wide = (one(x=bb.Histogram(start=0.0, width=width)) for width in (0.25, 0.5))
    assert narrow.digest() != wide.digest()


def test_fine_bins_of_another_width_are_another_digest() -> None:
    """Of tallies that could be added: the digest is equal exactly when they are."""
    x = [0.5, 1.5, 2.5]
    narrow = bb.count({"x": x}, LABELS, features="histogram")
    (feature,) = narrow.schema.features
    wider = replace(narrow.schema, features=(feature._replace(unit=feature.unit * 2),))
    wide = bb.count({"x": x}, LABELS, schema=wider)
    assert narrow.digest() != wide.digest()
    assert narrow != wide
    assert narrow.to(wider) == wide
    assert narrow.to(wider).digest() == wide.digest()


def test_another_origin_is_another_digest() -> None:
    base = bb.count({"x": BASE["x"]}, LABELS, features="gaussian")
    (feature,) = base.schema.features
    for moved in (feature._replace(origin=feature.origin + 1.0), feature._replace(unit=feature.unit * 2.0)):
        other = bb.count({"x": BASE["x"]}, LABELS, schema=replace(base.schema, features=(moved,)))
        assert base.digest() != other.digest()


# Numbers that a double does not hold, and schemas too far apart


def test_whole_weights_and_factors_that_no_double_holds_are_refused() -> None:
    tally = bb.count({"x": ["u", "v"], "y": ["a", "b"]}, "y")
    with pytest.raises(bb.BanburyError, match=r"below 2\*\*53"):
        tally.count({"x": ["u"], "y": ["a"]}, weights=[2**53 + 1])
    with pytest.raises(bb.BanburyError, match="that a double holds"):
        tally * (2**53 + 1)
    assert not (tally * (2**53 - 1)).rounded


def test_sums_that_cannot_be_moved_to_a_schema_are_refused_by_name() -> None:
    far, near = (bb.count({"x": x, "y": [0] * len(x)}, "y", features="gaussian") for x in ([1e8, 5e-324], [5e-324]))
    for here, there in ((far, near), (near, far)):
        with pytest.raises(bb.BanburyError, match="too far apart"):
            here.to(there.schema)


def test_two_halves_of_a_row_may_be_left() -> None:
    """A weight of one is no proof of one row: what is left has a spread."""
    tally = bb.count({"x": [1.0, 2.0, 5.0]}, list("ppp"), features="gaussian", weights=[0.5, 0.5, 1.0])
    left = tally - tally.count({"x": [5.0]}, ["p"])
    assert left == tally.count({"x": [1.0, 2.0]}, ["p", "p"], weights=[0.5, 0.5])


def test_columns_with_more_in_common_than_each_has_are_refused() -> None:
    block = {("u", "v"): bb.Gaussian(covariance="full")}
    tally = bb.count({"u": [0.0, 0.0, 1.0, 0.0], "v": [1.0, 1.0, 1.0, 0.0]}, list("pppp"), features=block)
    with pytest.raises(NegativeCount):
        tally - tally.count({"u": [0.0], "v": [1.0]}, ["p"], weights=[2.11])
