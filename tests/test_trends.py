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
from banbury.distributions.cells import NumberCells
from banbury.distributions.trees import flat
from banbury.weighing.trends import Trends

ROWS = st.sampled_from([0.0, 0.0, 1.0, 2.0, 7.0, 0.1, 1e-9, 1e12])
CUTS = st.sampled_from([0.0, -0.5, 0.1, 1.0, 3.0, 40.0, -999.0, 1e12, 1e-300, 5e-324, 1.7e308, -1.7e308])


def cells_between(cuts: Any) -> NumberCells:
    tree, one = flat(len(cuts) + 1), (1.0, 1.0)
    feature: Any = None
    return NumberCells(feature, tree, one, tree, one, np.sort(np.array(cuts, dtype=np.float64)))


@given(st.lists(st.lists(st.tuples(ROWS, ROWS, ROWS), min_size=3, max_size=9), min_size=1, max_size=4), st.data())
def test_trends_are_those_of_the_slow_twin(columns: Any, data: st.DataObject) -> None:
    """Of columns together as of each, plain and without any row; but for the rounding of sums that one term is taken off of."""
    lengths = np.array([len(column) for column in columns])
    places = np.array(data.draw(st.lists(st.floats(-4, 4), min_size=int(lengths.sum()), max_size=int(lengths.sum()))))
    counts = np.concatenate([np.array(column) for column in columns])
    trends = Trends(places, lengths)
    plain, left_out = trends.told(counts, False), trends.told(counts, True)
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
    places = cells_between(cuts).places
    assert len(places) == len(cuts) + 1 and np.isfinite(places).all() and np.abs(places).max() <= 4.0
    assert (np.diff(places) >= 0).all()


def test_places_do_not_depend_on_units() -> None:
    cuts = np.random.default_rng(0).normal(size=100)
    wanted = cells_between(cuts).places
    assert 1.5 < wanted.max() <= 4.0 and (np.diff(wanted) > 0).all()
    for factor, shift in ((1e-200, 0.0), (1e200, 0.0), (3.0, 1e3)):
        np.testing.assert_allclose(cells_between(cuts * factor + shift).places, wanted, rtol=1e-9, atol=1e-9)
    far = cells_between([*cuts, 1e12]).places  # one number far away moves none of the others
    np.testing.assert_allclose(far[:-2], wanted[:-1], rtol=0, atol=0.1)


def along(n: int, seed: int) -> tuple[Any, Any]:
    """Twenty numbers, each of which goes with the class a little, all along."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    return X, (X.sum(axis=1) / 3.0 + rng.logistic(size=n) > 0).astype(int)


def without_trends(monkeypatch: Any) -> None:
    monkeypatch.setattr(NumberCells, "places", np.zeros(0))


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
    for trends in ([0, 1, 2], [0, 1, 2, 9], [-1, 0, 1, 2], [0, 1, 2, 3, 3]):
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
