"""The next labels: unsure rows that stand for others, and some at random; whatever the order of the pool."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import banbury as bb
import naive
from banbury import errors
from banbury.insight.next_labels import _choose_greedily
from test_wrong_labels import mail, table


def labelled_and_pool() -> tuple[bb.Model, pd.DataFrame]:
    """A model of few rows, and many others."""
    frame, kinds = table(150, ())
    frame = frame.assign(label=kinds)
    return bb.estimate(bb.count(frame[:20], target="label")), frame[20:].drop(columns="label").reset_index(drop=True)


def test_rows_are_chosen_as_the_twin_does() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        points = rng.random((12, 3)).round(1) + 0.05
        points /= np.sqrt((points**2).sum(axis=1, keepdims=True))
        alike, covered = points @ points.T, rng.random(12).round(1)
        assert _choose_greedily(alike, covered, 6).tolist() == naive.stands_for_others(
            alike.tolist(), covered.tolist(), 6
        )


def test_of_rows_that_are_alike_one_is_asked_about() -> None:
    model = bb.estimate(bb.count(["cheap pills", "lunch at noon"], target=["spam", "ham"]))
    pool = ["red green"] * 8 + ["blue sky"] * 8 + ["old song"] * 8
    found = bb.next_to_label(model, pool, n=3, share=0)
    assert {pool[row.row] for row in found.rows} == {"red green", "blue sky", "old song"}
    found = bb.next_to_label(model, pool, n=2, share=0, labelled=["red green"])
    assert {pool[row.row] for row in found.rows} == {"blue sky", "old song"}


def test_unsure_rows_come_before_sure_ones() -> None:
    model, pool = labelled_and_pool()
    found = bb.next_to_label(model, pool, n=5, share=0.0)
    odds = np.sort(model.log_posterior(pool), axis=1)
    margins = odds[:, -1] - odds[:, -2]
    assert margins[found.indices].max() <= np.sort(margins)[49]
    for row in found.rows:
        posterior = model.posterior(pool.iloc[[row.row]])[0]
        assert row.predicted == model.predict(pool.iloc[[row.row]])[0]
        assert row.probability == pytest.approx(posterior.max())
        assert row.margin == pytest.approx(np.diff(np.sort(posterior))[-1])


def test_a_labelled_row_is_not_asked_for() -> None:
    model, pool = labelled_and_pool()
    some: list[Any] = [None] * len(pool)
    some[:100] = ["c1"] * 100
    found = bb.next_to_label(model, pool.assign(label=some), n=6)
    assert found.indices.min() >= 100
    assert (found.n_rows, found.labelled) == (30, 100)


def test_the_order_of_the_pool_changes_nothing() -> None:
    model, pool = labelled_and_pool()
    found = bb.next_to_label(model, pool, n=8, share=0.25)
    order = np.random.default_rng(1).permutation(len(pool))
    again = bb.next_to_label(model, pool.iloc[order], n=8, share=0.25)
    assert order[again.indices].tolist() == found.indices.tolist()
    assert again.random.tolist() == found.random.tolist() == [False] * 6 + [True] * 2


def test_rows_at_random_are_drawn_evenly_and_by_seed() -> None:
    model = bb.estimate(bb.count(["cheap pills", "lunch at noon"], target=["spam", "ham"]))
    pool = [f"text {i // 2}" for i in range(40)]  # every text twice
    drawn = np.zeros(40)
    for seed in range(200):
        drawn[bb.next_to_label(model, pool, n=8, share=1, seed=seed).indices] += 1
    assert drawn.sum() == 1600
    pairs = drawn.reshape(20, 2).sum(axis=1)  # 80 each on average, with a deviation of about 8
    assert 40 < pairs.min() <= pairs.max() < 120


def test_a_pool_may_lack_a_column() -> None:
    model, pool = labelled_and_pool()
    with pytest.warns(errors.BanburyWarning, match="no columns 'size', 'note'"):
        found = bb.next_to_label(model, pool[["colour", "shape"]], n=4)
    assert len(set(found.indices.tolist())) == 4


def test_a_matrix_is_chosen_from_however_it_is_held() -> None:
    rng = np.random.default_rng(0)
    pool = (rng.random((90, 700)) < 0.05).astype(np.float64)
    model = bb.estimate(bb.count(pool[:30], rng.integers(2, size=30), features="bernoulli"))
    forms = pool, csr_matrix(pool), np.where(pool == 0, -0.0, pool)
    found = [bb.next_to_label(model, rows, n=6, share=0.5).indices.tolist() for rows in forms]
    assert found[0] == found[1] == found[2]


def test_a_small_pool_is_asked_about_whole_in_the_forms_there_are() -> None:
    texts, labels = mail(30, ())
    model = bb.estimate(bb.count(texts[:10], target=labels[:10]))
    found = bb.next_to_label(model, texts[10:14], n=9, share=0.2)
    assert sorted(found.indices.tolist()) == [0, 1, 2, 3]
    told = json.loads(json.dumps(found.to_dict()))
    assert [row["random"] for row in told["rows"]] == found.random.tolist()
    assert "at random" in str(found)
    assert str(found).startswith("4 rows to label next, of 4 without a label; 2 at random")


@pytest.mark.parametrize(
    "chosen, message",
    [
        ({"n": 0}, "n must be a whole number of at least 1"),
        ({"share": 1.5}, "share must be a share of the rows from 0 to 1"),
        ({"share": "all"}, "share must be"),
        ({"seed": -1}, "seed must be"),
        ({"pool": []}, "no rows|empty"),
        ({"pool": pd.DataFrame(columns=["colour", "shape", "size", "note"])}, "no rows|empty"),
        ({"pool": {"other": ["a", "b"]}}, "no column 'colour'"),
        ({"model": "spam"}, "the model must be a Model"),
        ({"model": {"x": [1]}}, "a Model, from bb.estimate, or an estimator"),
        ({"labelled": {"other": ["a"]}}, "no column 'colour'"),
    ],
)
def test_bad_input_is_named(chosen: dict[str, Any], message: str) -> None:
    model, pool = labelled_and_pool()
    given = {"model": model, "pool": pool} | chosen
    with pytest.raises(errors.BanburyError, match=message):
        bb.next_to_label(**given)


def test_models_that_are_never_unsure_and_pools_that_are_labelled_are_refused() -> None:
    one = bb.estimate(bb.count({"p": ["a", "b"]}, target=["x", "x"], features="categorical"))
    with pytest.raises(errors.BadSetting, match="a model with at least two classes"):
        bb.next_to_label(one, {"p": ["a"]})
    several = bb.LabelModel.of(bb.count(["a b", "b c"], target=[["x"], ["x", "y"]]))
    with pytest.raises(errors.BadSetting, match="Got 'LabelModel'"):
        bb.next_to_label(several, ["a"])  # type: ignore[arg-type]
    model, pool = labelled_and_pool()
    with pytest.raises(errors.EmptyData, match="130 rows already have a label in the column 'label'"):
        bb.next_to_label(model, pool.assign(label="c1"))


def test_every_row_says_why_it_is_asked_for_and_the_least_sure_come_first() -> None:
    rng = np.random.default_rng(46)
    kinds = rng.integers(2, size=300)
    table = {"a": rng.normal(kinds, 1.0), "b": rng.normal(kinds, 1.0)}
    model = bb.estimate(bb.count({name: column[:60] for name, column in table.items()}, kinds[:60].tolist()))
    found = bb.next_to_label(model, {name: column[60:] for name, column in table.items()}, n=10, share=0.2)
    margins = [row.margin for row in found.rows if not row.random]
    assert margins == sorted(margins)
    reasons = [row.why for row in found.rows]
    assert (
        set(reasons) == {"unsure", "similar to other uncertain rows", "at random"} and reasons.count("at random") == 2
    )
    assert reasons.index("similar to other uncertain rows") > reasons.index("unsure")
    assert all(row.why in str(found) for row in found.rows)
