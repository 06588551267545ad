"""Trends: what numbers say by a normal curve for each class over where their stretches lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss

import banbury as bb
import naive_files
import naive_trees
from banbury import errors
from banbury.families.cells import NumberCells, flat_tree
from banbury.weighing.trends import Trends

ROWS = st.sampled_from([0.0, 0.0, 1.0, 2.0, 7.0, 0.1, 1e-9, 1e12])
CUTS = st.sampled_from([0.0, -0.5, 0.1, 1.0, 3.0, 40.0, -999.0, 1e12, 1e-300, 5e-324, 1.7e308, -1.7e308])


def cells_between(cuts: Any) -> NumberCells:
    tree = flat_tree(len(cuts) + 1)
    feature: Any = None
    return NumberCells(feature, tree, tree, np.sort(np.array(cuts, dtype=np.float64)))


@given(st.lists(st.lists(st.tuples(ROWS, ROWS, ROWS), min_size=3, max_size=9), min_size=1, max_size=4), st.data())
def test_trends_are_those_of_the_slow_twin(columns: Any, data: st.DataObject) -> None:
    """Of columns together as of each, plain and without any row; but for the rounding of sums that one term is taken off of."""
    lengths = np.array([len(column) for column in columns])
    places = np.array(data.draw(st.lists(st.floats(-4, 4), min_size=int(lengths.sum()), max_size=int(lengths.sum()))))
    counts = np.concatenate([np.array(column) for column in columns])
    trends = Trends(places, lengths)
    plain, left_out = trends.evidence(counts, False), trends.evidence(counts, True)
    first = 0
    for column in columns:
        own = slice(first, first + len(column))
        cells = [dict(enumerate(rows)) for rows in column]
        for leaf in range(len(column)):
            for gone, fast in ((None, plain[first + leaf]), *enumerate(left_out[first + leaf])):
                slow = naive_trees.trend(cells, places[own].tolist(), leaf, gone)
                np.testing.assert_allclose(fast, list(slow.values()), rtol=1e-9, atol=1e-9)
        first += len(column)


@given(st.lists(CUTS, min_size=0, max_size=12, unique=True))
def test_places_are_ordered_and_near(cuts: list[float]) -> None:
    places = cells_between(cuts).positions
    assert len(places) == len(cuts) + 1 and np.isfinite(places).all() and np.abs(places).max() <= 4.0
    assert (np.diff(places) >= 0).all()


def test_places_do_not_depend_on_units() -> None:
    cuts = np.random.default_rng(0).normal(size=100)
    wanted = cells_between(cuts).positions
    assert 1.5 < wanted.max() <= 4.0 and (np.diff(wanted) > 0).all()
    for factor, shift in ((1e-200, 0.0), (1e200, 0.0), (3.0, 1e3)):
        np.testing.assert_allclose(cells_between(cuts * factor + shift).positions, wanted, rtol=1e-9, atol=1e-9)
    far = cells_between([*cuts, 1e12]).positions  # one number far away moves none of the others
    np.testing.assert_allclose(far[:-2], wanted[:-1], rtol=0, atol=0.1)


def along(n: int, seed: int) -> tuple[Any, Any]:
    """Twenty numbers, each of which goes with the class a little, all along."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    return X, (X.sum(axis=1) / 3.0 + rng.logistic(size=n) > 0).astype(int)


def without_trends(monkeypatch: Any) -> None:
    monkeypatch.setattr(NumberCells, "positions", np.zeros(0))


def test_few_rows_tell_a_trend(monkeypatch: Any) -> None:
    (X, y), (more, truth) = along(250, 1), along(2000, 2)
    trends = bb.EvidenceClassifier().fit(X, y)
    assert trends.weighing_ is not None and len(trends.weighing_.weights.trends) == 20
    assert sum(name.endswith(", by trend") for name in trends.weighing_.worth()) == 20
    without_trends(monkeypatch)
    none = bb.EvidenceClassifier().fit(X, y)
    assert none.weighing_ is not None and none.weighing_.weights.trends == ()
    one, other = (log_loss(truth, clf.predict_proba(more)) for clf in (trends, none))
    assert one < other - 0.05


def test_evidence_of_a_column_has_its_trend() -> None:
    X, y = along(200, 3)
    clf = bb.EvidenceClassifier(correct=False, pairs=False).fit(X, y)
    for row in X[:20]:
        explained = clf.explain(row)
        assert {each.feature for each in explained.evidence} <= {f.name for f in clf.model_.schema.features}
        odds = clf.model_.log_posterior(row[None])[0]
        total = explained.prior + sum(each.decibans for each in explained.evidence)
        assert total == pytest.approx(10.0 / np.log(10.0) * abs(odds[1] - odds[0]), abs=1e-8)


def test_a_file_without_trends_answers_as_it_did_and_wrong_ones_are_refused(tmp_path: Path, monkeypatch: Any) -> None:
    X, y = load_iris(return_X_y=True)
    file, bad = tmp_path / "iris.banbury", tmp_path / "bad.banbury"
    clf = bb.EvidenceClassifier().fit(X, y)
    bb.save(clf.model_, file)

    def rewritten(change: Any) -> None:
        def changed(about: Any) -> Any:
            change(about["weighing"])
            return about

        bad.write_bytes(naive_files.rewritten(file.read_bytes(), changed))

    loaded: Any = bb.load(file)
    assert np.array_equal(loaded.posterior(X), clf.predict_proba(X))
    for trends in ([0, 1, 2], [0, 1, 2, 9], [-1, 0, 1, 2], [0, 1, 2, 3, 3], [1, 0, 2, 3], [0.5, 1, 2, 3], "0123"):
        rewritten(lambda about, trends=trends: about.update(trends=trends))
        with pytest.raises(errors.BadFile):
            bb.load(bad)
    without_trends(monkeypatch)
    plain = bb.EvidenceClassifier().fit(X, y)
    bb.save(plain.model_, file)
    monkeypatch.undo()
    rewritten(lambda about: about.pop("trends"))
    former: Any = bb.load(bad)
    assert np.array_equal(former.posterior(X), plain.predict_proba(X))
    assert not np.array_equal(former.posterior(X), clf.predict_proba(X))


def test_a_column_called_as_a_trend_keeps_its_weight() -> None:
    X, y = along(300, 4)
    rows = {"a": X[:, 0], "a, by trend": X[:, 1] + X[:, 0], "b": X[:, 2]}
    weighing = bb.EvidenceClassifier(pairs=False, correct=False).fit(rows, y).weighing_
    assert weighing is not None
    worth, weights = weighing.worth(), weighing.weights.weights.tolist()
    assert (
        list(worth.values()) == weights and worth["a, by trend"] == weights[1] and worth["a, by trend*"] == weights[3]
    )


def test_a_copy_in_other_units_is_left_out_and_one_that_bends_is_not() -> None:
    X, y = along(300, 5)
    x, rest = X[:, 0].round(1), X[:, 1:4]
    one = bb.EvidenceClassifier().fit(np.column_stack([x, rest]), y)
    other = np.column_stack([x, rest, 1.8 * x + 32.0])
    twice = bb.EvidenceClassifier().fit(other, y)
    assert np.array_equal(one.predict_proba(np.column_stack([x, rest])), twice.predict_proba(other))
    bent = bb.EvidenceClassifier().fit(np.column_stack([x, rest, np.exp(x)]), y).weighing_
    assert bent is not None and len(bent.columns) == 5


def test_numbers_far_beyond_weights_are_kept_and_no_column_is_none(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(240, 1)) * 1e307, np.arange(240) % 3
    clf = bb.EvidenceClassifier().fit(X, y)
    bb.save(clf.model_, tmp_path / "far.banbury")
    loaded: Any = bb.load(tmp_path / "far.banbury")
    assert np.array_equal(loaded.posterior(X), clf.predict_proba(X))
    with pytest.warns(errors.BanburyWarning, match="there is no column to learn from"):
        none = bb.EvidenceClassifier(weigh=True).fit(np.full((240, 1), 3.5), y)
    np.testing.assert_allclose(none.predict_proba([[3.5]]), 1.0 / 3.0)


def test_values_are_compared_however_loudly_they_speak() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    X = np.column_stack([rng.normal(size=240) + y, np.round(3.0 * rng.normal(size=240))])
    clf = bb.EvidenceClassifier().fit(X, y, np.full(240, 1e15))
    assert "x0" in str(clf.informative(5)) and np.isfinite(clf.predict_proba(X)).all()
