"""Weighed evidence: weights, pairs and corrections are those of slow twins, and depend on what rows hold alone."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.utils.estimator_checks import check_estimator

import banbury as bb
import naive_files
import naive_trees
from banbury import errors
from banbury.families.cells import Forest, grow_trees
from banbury.families.quantile_tree import Leaves
from banbury.weighing.columns import WeighedColumns
from banbury.weighing.corrections import StrengthSearch, choose, least_loss
from banbury.weighing.evidence import MOST_PAIR_NUMBERS, CountedEvidence, PairedColumns, WeighedPair
from banbury.weighing.learning import Weights, fold_levels
from banbury.weighing.rows import WeighedRows

RNG = np.random.default_rng(5)


def banbury(*arguments: str) -> str:
    """What a command prints."""
    command = [sys.executable, "-m", "banbury", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def table(n: int = 300, seed: int = 0) -> tuple[dict[str, list[Any]], list[str]]:
    """Two numbers, two words and a flag; the class depends on some of them, and on two together."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.integers(0, 40, n).astype(float)
    word, other = rng.choice(["red", "green", "blue"], n), rng.choice(["x", "y"], n)
    flag = rng.random(n) < 0.5
    score = a + (word == "red") + 2.0 * ((other == "x") == flag) - 1.5 + 0.05 * (b - 20) + rng.normal(size=n)
    a[rng.random(n) < 0.1] = np.nan
    columns: dict[str, Any] = {"a": a, "b": b, "word": word, "other": other, "flag": flag}
    return {name: values.tolist() for name, values in columns.items()}, np.where(score > 0, "yes", "no").tolist()


def frame(rows: dict[str, list[Any]]) -> Any:
    import pandas as pd

    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def fitted() -> tuple[Any, Any, bb.EvidenceClassifier]:
    rows, labels = table()
    data = frame(rows)
    return data, labels, bb.EvidenceClassifier(threads=1).fit(data, labels)


# Trees ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_trees_are_those_of_the_slow_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.poisson(3.0, (rng.integers(2, 30), 3)).astype(float)
    prior = (cells.sum(axis=0) + 0.5) / (cells.sum() + 1.5)
    tree, _ = grow_trees([cells], 1)[0]
    strengths = tree.strengths
    slow = [dict(enumerate(row)) for row in cells.tolist()]
    levels, expected = naive_trees.tree(slow, dict(enumerate(prior.tolist())), None, lambda _: [])
    if not tree.cut_by_class:
        assert strengths == expected
        assert [sorted({(nodes.tolist().index(k), len(nodes) - nodes.tolist()[::-1].index(k)) for k in nodes.tolist()})
                for nodes in tree.levels] == [sorted(nodes) for nodes in levels]  # fmt: skip
    plain, left_out = tree.shares(cells, prior)[-1], tree.shares_left_out(cells, prior)[-1]
    levels = [sorted({(int(np.argmax(nodes == k)), len(nodes) - int(np.argmax(nodes[::-1] == k))) for k in nodes})
              for nodes in tree.levels]  # fmt: skip
    for leaf in range(len(cells)):
        every = naive_trees.share(slow, levels, strengths, leaf, dict(enumerate(prior.tolist())))
        np.testing.assert_allclose(plain[leaf], list(every.values()), rtol=1e-12)
        for own in range(3):
            less = naive_trees.share(slow, levels, strengths, leaf, dict(enumerate(prior.tolist())), own)
            np.testing.assert_allclose(left_out[leaf, own], list(less.values()), rtol=1e-12)
            if cells[leaf, own] >= 1:
                row = tree.shares_without_rows(cells, prior, np.array([leaf]), np.array([own]), np.ones(1))
                np.testing.assert_allclose(row[0], list(less.values()), rtol=1e-12)


def test_a_row_that_is_left_out_was_never_counted() -> None:
    cells = np.random.default_rng(1).poisson(2.0, (9, 2)).astype(float)
    prior, (_, tree) = np.array([0.4, 0.6]), grow_trees([cells], 1)[0]
    tree = replace(tree, strengths=(2.0, 2.0))
    left_out = tree.shares_left_out(cells, prior)[-1]
    for leaf, own in product(range(9), range(2)):
        if cells[leaf, own]:
            without = cells.copy()
            without[leaf, own] -= 1
            assert np.array_equal(left_out[leaf, own], tree.shares(without, prior)[-1][leaf])


def test_leaves_of_columns_together_are_those_of_each() -> None:
    rng = np.random.default_rng(2)
    bins = [rng.poisson(1.5, (n, 2)).astype(float) for n in (1, 7, 128, 129, 700, 0)]
    found = Leaves.of([(np.arange(len(rows)) << 50, rows, 1.0) for rows in bins], None, 3)
    for rows, leaves in zip(bins[:-1], found, strict=False):
        leaf = naive_trees.leaves_of(rows.sum(axis=1).tolist())
        expected = np.zeros((max(leaf) + 1, 2))
        for k, own in zip(leaf, rows, strict=True):
            expected[k] += own
        assert np.array_equal(leaves.cells, expected)
        tree, plain = grow_trees([leaves.cells], 1)[0]
        assert (tree.strengths, plain.strengths) == (leaves.tree.strengths, leaves.plain.strengths)
        for one, other in ((tree, leaves.tree), (plain, leaves.plain)):
            assert all(map(np.array_equal, one.levels, other.levels)) and one.cut_by_class == other.cut_by_class
    assert found[-1].cells.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("threads", [1, 3])
def test_columns_told_together_are_those_told_one_by_one(threads: int) -> None:
    evidence = evidence_of(threads=threads)
    rows, k, start = evidence.rows, 2, 0
    for j, cells in enumerate(evidence.columns):
        counts = np.zeros((cells.n_cells + 1, k))
        np.add.at(counts, (rows.codes[:, j], rows.labels), rows.weights)
        first = int(evidence.layout.starts[j])
        assert np.array_equal(evidence.counts[first : first + cells.n_cells], counts[:-1])
        for fast, slow in (
            (evidence.by_all_rows, cells.tree.shares),
            (evidence.by_other_rows, cells.tree.shares_left_out),
        ):
            shares = slow(counts[:-1], evidence.prior)[-1]
            own = fast[start : start + cells.n_cells + 1]
            assert np.array_equal(own[:-1], np.log(np.maximum(shares, 1e-300) / evidence.prior)) and not own[-1].any()
        (gain,) = Forest([cells.tree]).gains(counts[:-1], evidence.prior, 1)
        assert evidence.gains()[j] == gain
        start += cells.n_cells + 1
    assert start == len(evidence.by_all_rows) == len(evidence.by_other_rows)


# Pairs ----------------------------------------------------------------------------------------------------------------


def evidence_of(n: int = 300, threads: int = 1) -> CountedEvidence:
    rows, labels = table(n)
    tally = bb.count(frame(rows), labels, features={"a": bb.QuantileTree(), "b": bb.QuantileTree()}, missing="category")
    columns = WeighedColumns.of(tally, 1)
    weighed = WeighedRows.of(bb.tally.table.Table.of(frame(rows), labels, schema=tally.schema), tally, columns)
    pairs = (WeighedPair(0, 1, 4.0), WeighedPair(2, 3, 1.0), WeighedPair(0, 2, 16.0))
    return CountedEvidence(PairedColumns(columns.cells, (0, 1), pairs), weighed, 2, threads)


def slow_pair(
    evidence: CountedEvidence, pair: WeighedPair, own: int | None
) -> dict[tuple[int, int], np.ndarray[Any, Any]]:
    """δ of every fine cell, as formulas have it."""
    a, b = evidence.columns[pair.first].nodes, evidence.columns[pair.second].nodes
    columns = [evidence.columns[pair.first], evidence.columns[pair.second]]
    each = np.split(evidence.counts, evidence.layout.starts[1:-1])
    counts = [each[pair.first], each[pair.second]]
    prior = evidence.prior

    def shares(side: int, level: int, node: int) -> Any:
        cells, nodes = columns[side], (a, b)[side]
        last = (nodes.n_coarse, nodes.n_fine)[level] - 1
        if node == last:
            return prior
        depth = nodes.levels[level]
        if own is None:
            return cells.plain.shares(counts[side], prior)[depth][node]
        return cells.plain.shares_left_out(counts[side], prior)[depth][node, own]

    def apart(level: int, u: int, v: int) -> Any:
        p = shares(0, level, u) * shares(1, level, v) / prior
        return p / p.sum()

    def counted(level: int, u: int, v: int) -> Any:
        total = np.zeros(2)
        for codes, label, weight in zip(evidence.rows.codes, evidence.rows.labels, evidence.rows.weights, strict=True):
            i, j = int(a.fine[codes[pair.first]]), int(b.fine[codes[pair.second]])
            place = (i, j) if level else (int(a.coarse[i]), int(b.coarse[j]))
            total[label] += weight * (place == (u, v))
        if own is not None:
            total[own] = max(total[own] - 1.0, 0.0)
        return total

    found = {}
    coarser = (a.n_coarse, b.n_coarse) != (a.n_fine, b.n_fine)
    for u, v in product(range(a.n_fine), range(b.n_fine)):
        base, ratio = apart(1, u, v), np.ones(2)
        if coarser:
            wide = int(a.coarse[u]), int(b.coarse[v])
            n, p0 = counted(0, *wide), apart(0, *wide)
            ratio = (n + pair.strength * p0) / (n.sum() + pair.strength) / p0
        start = base * ratio / (base * ratio).sum()
        n = counted(1, u, v)
        found[u, v] = np.log((n + pair.strength * start) / (n.sum() + pair.strength)) - np.log(base)
    return found


def rows_of(evidence: CountedEvidence, pair: WeighedPair, label: int) -> Any:
    """The weight of the class's rows in each fine cell of a pair."""
    nodes, rows = [evidence.columns[j].nodes for j in (pair.first, pair.second)], evidence.rows
    found = np.zeros([own.n_fine for own in nodes])
    at = tuple(own.fine[rows.codes[:, j]] for own, j in zip(nodes, (pair.first, pair.second), strict=True))
    np.add.at(found, at, np.where(rows.labels == label, rows.weights, 0.0))
    return found


def test_pairs_are_those_of_the_slow_twin() -> None:
    evidence = evidence_of(80)
    for pair, (plain, left_out) in zip(evidence.pairs, evidence.pair_tables, strict=True):
        width = evidence.columns[pair.second].nodes.n_fine
        for own in (None, 0, 1):
            for (u, v), delta in slow_pair(evidence, pair, own).items():
                there = own is None or rows_of(evidence, pair, own)[u, v] > 0
                fast = plain[u * width + v] if own is None else left_out[u * width + v, own]
                delta = delta if there else np.zeros(2)  # no row is ever left out there
                np.testing.assert_allclose(fast, delta, rtol=1e-9, atol=1e-12)


def test_corrections_fold_to_the_sum_of_their_levels() -> None:
    evidence = evidence_of()
    terms, finest = evidence.layout.correction_terms, replace(evidence.layout, trends=()).scoring_terms
    table_of_levels = RNG.normal(size=(terms.n_cells, 2))
    each = fold_levels(terms, table_of_levels)
    assert [[len(own)] for own in each] == [sizes for *_, sizes in finest.groups]
    codes, none = evidence.rows.codes, np.zeros(2)
    slow = terms.scores(codes, table_of_levels.ravel(), np.ones(len(terms)), none, None, 1)
    fast = finest.scores(codes, np.concatenate(each).ravel(), np.ones(len(finest)), none, None, 1)
    np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=1e-12)


# The choice of C ------------------------------------------------------------------------------------------------------


class FoldOfLosses:
    """Two rows held out, whose scores are the loss of a C, or of none that was thought of."""

    truth, held_out_weights = np.zeros(2), np.ones(2)

    def __init__(self, losses: dict[str, dict[float, float]]) -> None:
        self.losses, self.asked = losses, list[tuple[str, float]]()

    def correct(self, setting: str) -> Any:
        def scores(strength: float) -> Any:
            self.asked.append((setting, strength))
            return np.full(2, self.losses[setting][strength])

        return scores


def search(patience: int = 2) -> StrengthSearch:
    return StrengthSearch((0.0, 1.0, 3.0, 10.0), lambda scores, truth, weights: float(scores.mean()), patience)


@pytest.mark.parametrize(("patience", "n"), [(1, 2), (2, 4), (3, 4)])
def test_strengths_are_tried_until_they_lose_more(patience: int, n: int) -> None:
    fold = FoldOfLosses({"a": {0.0: 3.0, 1.0: 4.0, 3.0: 2.0, 10.0: 5.0}})
    tried = search(patience).follow(fold.correct("a"), fold.truth, fold.held_out_weights)
    assert [step.strength for step in tried] == [0.0, 1.0, 3.0, 10.0][:n]
    assert least_loss(tried).strength == (0.0 if n == 2 else 3.0)


@pytest.mark.parametrize(
    ("n_kept", "settle", "expected"), [(1, False, ("b", 3.0)), (2, False, ("a", 1.0)), (1, True, ("b", 10.0))]
)
def test_settings_are_raced_on_the_first_fold(n_kept: int, settle: bool, expected: tuple[str, float]) -> None:
    """b wins the first fold, a wins both together; b's C is another where all folds have a say."""
    first = FoldOfLosses(
        {"a": {0.0: 6.0, 1.0: 5.0, 3.0: 5.5, 10.0: 5.6}, "b": {0.0: 6.0, 1.0: 5.0, 3.0: 4.5, 10.0: 4.0}}
    )
    second = FoldOfLosses(
        {"a": {0.0: 2.0, 1.0: 1.0, 3.0: 1.5, 10.0: 1.6}, "b": {0.0: 7.0, 1.0: 6.0, 3.0: 5.0, 10.0: 5.9}}
    )
    setting, tried = choose([first, second], ["a", "b"], search(), n_kept, 1, settle)
    best = least_loss(tried)
    assert (setting, best.strength) == expected and tried[-1].strength == 10.0
    assert [scores.tolist() for scores in best.scores] == [
        [fold.losses[setting][best.strength]] * 2 for fold in (first, second)
    ]
    assert {asked for asked, _ in second.asked} == ({"b"} if n_kept == 1 else {"a", "b"})
    assert len(second.asked) == (1 if settle else 4 * n_kept)


# Many classes ---------------------------------------------------------------------------------------------------------


def test_evidence_row_by_row_is_that_of_tables() -> None:
    evidence = evidence_of()
    codes, labels = evidence.rows.codes, evidence.rows.labels
    by_table = evidence.layout.scoring_terms.evidence(codes, evidence.table(leave_out=True), 2, labels, 0, 1)
    for term, says in enumerate(evidence.each_row_left_out()):
        np.testing.assert_array_equal(by_table[:, 0, term], (says[:, 0] - says[:, 1]).astype(np.float32))
    assert term == by_table.shape[2] - 1


@pytest.mark.slow
def test_no_table_grows_with_the_square_of_many_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a target that looks like a measurement every third row has a class of its own."""
    rng = np.random.default_rng(3)
    n, k = 594, 172
    shares = 1.0 / np.arange(1, k + 1)
    labels = np.concatenate([np.arange(k), rng.choice(k, n - k, p=shares / shares.sum())])
    columns = {"number": labels + rng.normal(size=n), "noise": rng.normal(size=n), "word": labels % 7}
    columns["ticket"] = rng.integers(0, 400, n)
    columns["cabin"] = rng.integers(0, 100, n)
    rows = frame(
        {name: (values if "n" in name[:1] else values.astype(str)).tolist() for name, values in columns.items()}
    )
    sizes = []
    paired = CountedEvidence._pair_arguments

    def note_sizes(self: CountedEvidence, pairs: Any) -> Any:
        sizes.extend(self.columns[a].n_fine * self.columns[b].n_fine * k * k for a, b in pairs)
        return paired(self, pairs)

    monkeypatch.setattr(CountedEvidence, "_pair_arguments", note_sizes)
    monkeypatch.delattr(CountedEvidence, "by_other_rows")
    clf = bb.EvidenceClassifier().fit(rows, labels)
    assert max(sizes) <= MOST_PAIR_NUMBERS
    looked_at, every = clf.weighing_._count_pairs()
    assert 0 < looked_at < every == 10
    probabilities = clf.predict_proba(rows)
    assert probabilities.shape == (n, k) and np.allclose(probabilities.sum(axis=1), 1.0)
    assert (probabilities.argmax(axis=1) == labels).mean() > 0.5


# What the answer depends on --------------------------------------------------------------------------------------------


def test_neither_the_order_of_rows_nor_the_threads_matter(fitted: Any) -> None:
    data, labels, clf = fitted
    order = np.random.default_rng(3).permutation(len(data))
    shuffled = data.iloc[order].reset_index(drop=True)
    for threads in (1, 2):
        other = bb.EvidenceClassifier(threads=threads).fit(shuffled, [labels[i] for i in order])
        assert np.array_equal(other.predict_proba(data), clf.predict_proba(data))
        assert other.weighing_ is not None and clf.weighing_ is not None
        assert other.weighing_.worth() == clf.weighing_.worth()


def test_a_weight_of_two_is_the_row_twice_and_of_none_no_row(fitted: Any) -> None:
    data, labels, _ = fitted
    weights = np.random.default_rng(4).integers(0, 3, len(data))
    weighed = bb.EvidenceClassifier().fit(data, labels, sample_weight=weights)
    at = np.repeat(np.arange(len(data)), weights)
    repeated = bb.EvidenceClassifier().fit(data.iloc[at].reset_index(drop=True), [labels[i] for i in at])
    assert np.array_equal(weighed.predict_proba(data), repeated.predict_proba(data))


def test_evidence_adds_up_to_the_log_odds_and_names_pairs(fitted: Any) -> None:
    data, _, clf = fitted
    model = clf.model_
    assert any(" with " in name for name in clf.weighing_.worth())
    for i in range(0, 300, 7):
        told = model.explain(data.iloc[[i]])
        posterior = dict(zip(model.classes, model.log_posterior(data.iloc[[i]])[0], strict=True))
        assert told.log_odds == pytest.approx(posterior[told.winner] - posterior[told.against], abs=1e-9)
        total = told.prior + sum(e.decibans for e in told.evidence)
        assert total == pytest.approx(told.decibans, abs=1e-9)
    assert "other with flag" in str(model.explain(data.iloc[[0]]))


def test_two_columns_together_are_found_where_neither_tells() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 2, (2, 400))
    rows, labels = np.stack([a, b], axis=1), (a ^ b).tolist()
    plain = bb.NaiveBayesClassifier().fit(rows, labels).score(rows, labels)
    clf = bb.EvidenceClassifier().fit(rows, labels)
    assert plain < 0.8 and clf.score(rows, labels) == 1.0
    assert bb.EvidenceClassifier(pairs=False, correct=False).fit(rows, labels).score(rows, labels) < 0.8


def test_a_column_twice_changes_nothing_and_a_useless_one_little() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, noise = X[:, :8], np.random.default_rng(0).normal(size=(len(X), 2))
    alone = bb.EvidenceClassifier().fit(X[::2], y[::2]).predict_proba(X[1::2])
    more = np.hstack([X, 3.0 * X[:, :3]])
    assert np.array_equal(bb.EvidenceClassifier().fit(more[::2], y[::2]).predict_proba(more[1::2]), alone)
    more = np.hstack([X, noise])
    noisy = bb.EvidenceClassifier().fit(more[::2], y[::2])
    assert np.abs(noisy.predict_proba(more[1::2]) - alone).mean() < 0.05
    assert noisy.weighing_ is not None and max(list(noisy.weighing_.worth().values())[8:10]) < 0.7


# How right it is -----------------------------------------------------------------------------------------------------


def loss(posterior: Any, truth: Any) -> float:
    return float(-np.log(posterior[np.arange(len(truth)), truth]).mean())


def test_weighed_loses_less_than_plain() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    plain = bb.NaiveBayesClassifier().fit(X[::2], y[::2])
    weighed = bb.EvidenceClassifier().fit(X[::2], y[::2])
    assert weighed.score(X[1::2], y[1::2]) >= 0.95 > plain.score(X[1::2], y[1::2]) - 0.02
    assert loss(weighed.predict_proba(X[1::2]), y[1::2]) < 0.15 < loss(plain.predict_proba(X[1::2]), y[1::2])


def test_cars_are_told_apart_by_what_their_columns_say_together(car: Any) -> None:
    rows, labels = car.drop(columns="class"), car["class"].to_numpy()
    order = np.random.default_rng(0).permutation(len(rows))
    train, test = order[:1400], order[1400:]
    clf = bb.EvidenceClassifier().fit(rows.iloc[train], labels[train])
    truth = np.searchsorted(clf.classes_, labels[test])
    posterior = clf.predict_proba(rows.iloc[test])
    assert (posterior.argmax(axis=1) == truth).mean() >= 0.96
    assert loss(posterior, truth) <= 0.1


# Learning and forgetting ----------------------------------------------------------------------------------------------


def test_the_tally_stays_exact_and_the_weights_are_said_to_be_stale() -> None:
    rows, labels = table(260, seed=7)
    data = frame(rows)
    clf = bb.EvidenceClassifier().fit(data, labels)
    before, posterior = clf.tally_, clf.predict_proba(data)
    assert not clf.weights_stale_
    clf.forget(data[:40], labels[:40])
    assert clf.weights_stale_ and "refit" in str(clf.explain(data.iloc[[0]]))
    clf.partial_fit(data[:40], labels[:40])
    assert clf.tally_ == before and not clf.weights_stale_
    assert np.array_equal(clf.predict_proba(data), posterior)
    clf.forget(data[:40], labels[:40], refit=(data[40:], labels[40:]))
    assert not clf.weights_stale_
    again = bb.EvidenceClassifier().fit(data[40:], labels[40:])
    np.testing.assert_allclose(clf.predict_proba(data), again.predict_proba(data), atol=1e-9)


def test_nothing_of_a_forgotten_value_is_left_in_a_file(tmp_path: Path) -> None:
    rows, labels = table(200, seed=8)
    rows["word"][17] = "Wednesbury"
    data = frame(rows)
    clf = bb.EvidenceClassifier().fit(data, labels)
    bb.save(clf.model_, tmp_path / "before.banbury")
    assert b"Wednesbury" in (tmp_path / "before.banbury").read_bytes()
    clf.forget(data.iloc[[17]], [labels[17]])
    bb.save(clf.model_, tmp_path / "after.banbury")
    assert b"Wednesbury" not in (tmp_path / "after.banbury").read_bytes()
    assert b"Wednesbury" not in pickle.dumps(clf)
    assert np.isfinite(bb.load(tmp_path / "after.banbury").posterior(data)).all()  # type: ignore[union-attr]


def test_a_class_that_comes_later_is_answered_plainly() -> None:
    rows, labels = table(200, seed=9)
    clf = bb.EvidenceClassifier().fit(frame(rows), labels)
    clf.partial_fit(frame(rows)[:20], ["perhaps"] * 20)
    assert clf.model_.weighing is None and clf.weights_stale_
    np.testing.assert_allclose(clf.predict_proba(frame(rows)).sum(axis=1), 1.0)
    clf.forget(frame(rows)[:20], ["perhaps"] * 20)
    assert clf.model_.weighing is not None and not clf.weights_stale_


def test_a_class_that_is_forgotten_whole_is_gone() -> None:
    X, y = load_wine(return_X_y=True)
    clf = bb.EvidenceClassifier().fit(X, y)
    clf.forget(X[y == 1], y[y == 1])
    assert clf.model_.weighing is not None and clf.weights_stale_ and clf.classes_.tolist() == [0, 2]
    answers = clf.predict_proba(X[y != 1])
    np.testing.assert_allclose(answers.sum(axis=1), 1.0)
    assert (clf.classes_[answers.argmax(axis=1)] == y[y != 1]).mean() > 0.9


def test_a_file_has_the_same_answers_and_a_damaged_one_is_refused(fitted: Any, tmp_path: Path) -> None:
    data, _, clf = fitted
    file = tmp_path / "weighed.banbury"
    bb.save(clf.model_, file)
    loaded: Any = bb.load(file)
    assert np.array_equal(loaded.posterior(data), clf.model_.posterior(data))
    assert str(loaded) == str(clf.model_) and "weighed: 5 columns" in str(loaded)
    assert np.array_equal(pickle.loads(pickle.dumps(clf)).predict_proba(data), clf.predict_proba(data))
    changes = [
        lambda w: w["pairs"].append([0, 99, 1.0]),
        lambda w: w.update(temperature=-1.0),
        lambda w: w["columns"][0].update(strengths=[1.0]),
        lambda w: w["columns"].pop(),
        lambda w: w["classes"].append("more"),
    ]
    check_refusals(file, changes)


def check_refusals(file: Path, changes: list[Any]) -> None:
    """Files whose weights were changed are refused, though they are rightly signed; one that was not is not."""
    bad, content = file.with_name("bad.banbury"), file.read_bytes()
    bad.write_bytes(naive_files.rewritten(content))
    assert bb.load(bad)
    for change in changes:

        def changed(about: Any, change: Any = change) -> Any:
            change(about["weighing"])
            return about

        bad.write_bytes(naive_files.rewritten(content, changed))
        with pytest.raises(errors.BadFile):
            bb.load(bad)


# Bad input -----------------------------------------------------------------------------------------------------------


def test_few_rows_one_class_and_rare_classes_are_answered() -> None:
    X, y = load_wine(return_X_y=True)
    assert bb.EvidenceClassifier().fit(X[::3], y[::3]).weighing_ is None
    assert bb.EvidenceClassifier(weigh=True).fit(X[::3], y[::3]).weighing_ is not None
    alone = bb.EvidenceClassifier(weigh=True).fit(X[:59], y[:59])
    assert alone.weighing_ is None and alone.predict(X[:3]).tolist() == [0, 0, 0]
    rare = y.copy()
    rare[5], rare[100] = 7, 8
    answers = bb.EvidenceClassifier().fit(X, rare).predict_proba(X)
    assert np.isfinite(answers).all() and answers.shape[1] == 5


def test_what_cannot_be_weighed_is_refused_by_name() -> None:
    rows, labels = table(200)
    with pytest.raises(errors.BanburyError, match="weigh must be one of"):
        bb.EvidenceClassifier(weigh="yes").fit(frame(rows), labels)
    with pytest.raises(errors.LengthMismatch):
        bb.EvidenceClassifier().fit(frame(rows), labels, groups=[1, 2, 3])
    with pytest.raises(errors.BadSetting, match="a Model or a Tally"):
        bb.weigh("model", rows, labels)  # type: ignore[arg-type]


def test_groups_stay_together_and_weights_are_dealt_as_rows_are() -> None:
    rng = np.random.default_rng(1)
    labels, weights = rng.integers(0, 2, 50).astype(np.int32), rng.integers(1, 4, 50).astype(float)
    codes = np.arange(50, dtype=np.uint32)[:, None]
    shares = WeighedRows(codes, labels, weights, None, (), np.zeros((len(labels), 0, 2))).folds(5)
    assert np.array_equal(shares.sum(axis=1), weights)
    for label in (0, 1):
        sizes = shares[labels == label].sum(axis=0)
        assert sizes.max() - sizes.min() <= 1
    groups = rng.integers(0, 9, 50).astype(np.uint64)
    grouped = WeighedRows(codes, labels, weights, groups, (), np.zeros((len(labels), 0, 2))).folds(3)
    for group in np.unique(groups):
        assert len(np.flatnonzero(grouped[groups == group].sum(axis=0))) == 1


@pytest.mark.parametrize("settings", [{}, {"weigh": True}, {"class_weight": "balanced"}])
def test_scikit_learns_checks_pass(settings: Any) -> None:
    check_estimator(bb.EvidenceClassifier(**settings, threads=1), on_skip=None)


# Faces ---------------------------------------------------------------------------------------------------------------


def test_cross_validation_weighs_within_each_fold() -> None:
    X, y = load_wine(return_X_y=True)
    weighed = bb.cross_validate(X, y, folds=3, weigh=True)
    same = bb.cross_validate(bb.EvidenceClassifier(), X, y, folds=3)
    assert np.array_equal(weighed.posteriors, same.posteriors) and weighed.accuracy.value > 0.93
    assert str(weighed).startswith("3-fold cross-validation of weighed evidence: 178 rows")
    fold = weighed.folds == 0
    clf = bb.EvidenceClassifier().fit(X[~fold], y[~fold])
    np.testing.assert_allclose(clf.predict_proba(X[fold]), weighed.posteriors[fold], atol=1e-9)
    with pytest.raises(errors.BadSetting, match="weigh must be omitted"):
        bb.cross_validate(X, y, weigh=True, how="mle")


@pytest.mark.slow
def test_fit_compares_plain_and_weighed_and_keeps_the_better(tmp_path: Path) -> None:
    rows, labels = table(240)
    file, model = tmp_path / "rows.csv", tmp_path / "model.banbury"
    frame({**rows, "class": labels}).to_csv(file, index=False)
    said = json.loads(banbury("fit", str(file), "--target", "class", "--folds", "3", "-o", str(model)))
    assert [note.split()[0] for note in said["notes"][:2]] == ["plain", "weighed"]
    assert "chose weighed, the better on these folds; use --plain" in said["notes"][2]
    assert isinstance(bb.load(model), bb.Model) and bb.load(model).weighing is not None  # type: ignore[union-attr]
    plain = json.loads(banbury("fit", str(file), "--target", "class", "--folds", "3", "--plain"))
    assert plain["notes"] == [] and plain["log_loss"] > said["log_loss"]
    forced = json.loads(banbury("fit", str(file), "--target", "class", "--folds", "3", "--weigh"))
    assert forced["log_loss"] == said["log_loss"]
    answers = banbury("predict", str(model), str(file)).splitlines()
    assert len(answers) == 240


def test_pictures_and_samples_of_a_weighed_model(fitted: Any) -> None:
    _, _, clf = fitted
    model = clf.model_
    drawn, plain = model.sample(50), bb.estimate(model.tally).sample(50)
    assert all(np.array_equal(drawn[name], plain[name]) for name in drawn)
    for feature in ("a", "word"):
        shown = bb.plots.LikelihoodDisplay.from_model(model, feature)
        same = bb.plots.LikelihoodDisplay.from_model(bb.estimate(model.tally), feature)
        assert np.array_equal(shown.likelihood, same.likelihood)


def test_a_weighed_model_has_shapes_in_place_of_a_nomogram(fitted: Any) -> None:
    _, _, clf = fitted
    with pytest.raises(errors.BadSetting, match=r"bb\.plots\.shapes\(model\)"):
        bb.plots.NomogramDisplay.from_model(clf.model_, "yes")
    assert bb.plots.NomogramDisplay.from_model(clf.model_.weighed(None), "yes").scales.keys() >= {"a", "b", "word"}


def test_a_column_that_repeats_another_is_told() -> None:
    rows, labels = table()
    data = frame({**rows, "twin": [2.0 * b for b in rows["b"]]})
    model = bb.EvidenceClassifier().fit(data, labels).model_
    assert "twin" not in {shape.feature for shape in bb.plots.shapes(model).shapes}
    with pytest.raises(errors.BadSetting, match="column 'twin' repeats another column"):
        model.log_likelihood(data, "twin")
    assert bb.plots.LikelihoodDisplay.from_model(model, "twin").likelihood.shape[1] == 2


def test_two_explanations_stand_side_by_side(fitted: Any) -> None:
    data, _, clf = fitted
    row, model = data.iloc[[0]], clf.model_
    plain, weighed = model.weighed(None).explain(row), model.explain(row)
    shown = bb.plots.ComparedEvidenceDisplay.from_explanations({"plain": plain, "weighed": weighed}, n=3)
    assert shown.labels[0] == "prior" and shown.labels[-1] == "sum" and "more" in shown.labels[-2]
    np.testing.assert_allclose(np.nansum(shown.weights[:-1], axis=0), shown.weights[-1], atol=1e-9)
    sign = 1.0 if weighed.winner == plain.winner else -1.0
    assert shown.weights[-1].tolist() == [plain.decibans, sign * weighed.decibans]
    pairs = bb.plots.ComparedEvidenceDisplay({"plain": plain, "weighed": weighed})
    at = [k for k, label in enumerate(pairs.labels) if label.startswith("other with flag")]
    assert np.isnan(pairs.weights[at, 0]).all() and np.isfinite(pairs.weights[at, 1]).all()
    swapped = bb.plots.ComparedEvidenceDisplay({"plain": plain, "other": model.explain(data.iloc[[1]])})
    assert np.isfinite(swapped.weights[-1]).all()
    with pytest.raises(errors.BadSetting, match="two of them by name"):
        bb.plots.ComparedEvidenceDisplay({"plain": plain})
    X, y = load_wine(return_X_y=True)
    wine = bb.NaiveBayesClassifier().fit(X, y).model_
    with pytest.raises(errors.BadSetting, match="of the same two classes"):
        bb.plots.ComparedEvidenceDisplay({"plain": plain, "wine": wine.explain(X[0])})


def test_weights_are_told(fitted: Any) -> None:
    _, _, clf = fitted
    weights: Weights = clf.weighing_.weights
    assert weights.weights.min() >= 0 and weights.losses[0][0] == 0.0
    assert set(clf.weighing_.worth()) >= {"a", "b", "word", "other", "flag"}
    told = str(clf.informative(3))
    assert "word = red" in told


@pytest.mark.parametrize("n_classes", [2, 3])
def test_corrections_by_rows_are_those_by_cells(n_classes: int, monkeypatch: Any) -> None:
    """Where columns are many, passes go by what rows have in common; the answers are the same."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes, 130)
    frame = rng.normal(size=(130, 24)).round(1)
    frame[:, :3] += labels[:, None]
    frame[:, 3] = frame[:, 0] * (labels - 1)
    weights = np.where(np.arange(130) % 5 == 0, 2.0, 1.0)
    by_rows = bb.EvidenceClassifier(pairs=False).fit(frame, labels, sample_weight=weights)
    monkeypatch.setattr("banbury.weighing.learning.MOST_ROWS_COMPARED", 0)
    by_cells = bb.EvidenceClassifier(pairs=False).fit(frame, labels, sample_weight=weights)
    one, other = (clf.weighing_.weights for clf in (by_rows, by_cells))
    assert one.strength == other.strength and len(one.losses) > 2
    np.testing.assert_allclose(one.losses, other.losses, rtol=1e-9)
    np.testing.assert_allclose(by_rows.predict_proba(frame), by_cells.predict_proba(frame), atol=1e-9)
