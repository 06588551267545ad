"""Explanations: the weight of evidence in decibans, feature by feature."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import banbury as bb
from banbury.errors import BadSetting, BanburyError, UnknownClass

ROW = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}


@pytest.fixture
def model() -> bb.Model:
    return bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))


def decibans(ratio: float) -> float:
    return 10 * math.log10(ratio)


def test_evidence_is_ten_times_the_logarithm_of_the_likelihood_ratio(model: bb.Model) -> None:
    told = model.explain(ROW)
    assert (told.winner, told.against) == ("no", "yes")
    assert told.prior == pytest.approx(decibans(5 / 9))
    assert {e.feature: e.decibans for e in told.evidence} == pytest.approx(
        {
            "outlook": decibans((4 / 8) / (3 / 12)),
            "humidity": decibans((5 / 7) / (4 / 11)),
            "wind": decibans((4 / 7) / (4 / 11)),
            "temperature": decibans((2 / 8) / (4 / 12)),
        }
    )


def test_the_strongest_evidence_comes_first(model: bb.Model) -> None:
    told = model.explain(ROW)
    assert [e.feature for e in told.evidence] == ["outlook", "humidity", "wind", "temperature"]
    assert [e.value for e in told.evidence] == ["sunny", "high", "strong", "cool"]


def test_probabilities_are_those_of_the_prediction(model: bb.Model) -> None:
    told = model.explain(ROW)
    assert [told.probability, told.probability_against] == pytest.approx(model.posterior(ROW)[0].tolist(), abs=1e-15)
    assert told.log_odds == pytest.approx(math.log(told.probability / told.probability_against), rel=1e-12)
    assert told.decibans == pytest.approx(decibans(told.probability / told.probability_against))


def test_missing_values_say_nothing_and_are_not_mentioned(model: bb.Model) -> None:
    """Orange's nomogram said 66 % where its prediction said 82 %: it took missing values for something else."""
    row = dict(ROW, outlook=None)
    told = model.explain(row)
    assert "outlook" not in [e.feature for e in told.evidence]
    assert told.probability == pytest.approx(model.posterior(row).max(), abs=1e-15)


def test_an_absent_value_is_missing(model: bb.Model) -> None:
    absent = {name: value for name, value in ROW.items() if name != "wind"}
    with pytest.warns(bb.BanburyWarning, match="no column 'wind' in these rows: skipped"):
        assert model.explain(absent) == model.explain(dict(ROW, wind=None))


def test_a_missing_value_that_is_a_category_speaks() -> None:
    table = {"x": ["a", "a", None, None, None], "y": ["p", "p", "p", "q", "q"]}
    told = bb.estimate(bb.count(table, "y", features=bb.Categorical(missing="category"))).explain({"x": None})
    assert [(e.feature, e.value) for e in told.evidence] == [("x", None)]
    assert told.evidence[0].decibans == pytest.approx(decibans((3 / 4) / (2 / 5)))
    assert "missing" in str(told)


THREE = {"x": [1.0, 2.0, 5.0, 6.0, 20.0, 21.0], "w": list("aabbcc"), "y": ["p", "p", "q", "q", "r", "r"]}


def test_the_winner_is_weighed_against_the_runner_up_or_any_other() -> None:
    model = bb.estimate(bb.count(THREE, "y"))
    row = {"x": 1.5, "w": "a"}
    assert model.explain(row).against == "q"
    told = model.explain(row, against="r")
    assert (told.winner, told.against) == ("p", "r")
    joint = model.log_joint(row)[0]
    assert told.log_odds == pytest.approx(joint[0] - joint[2], rel=1e-12)


def test_against_must_be_another_class() -> None:
    model = bb.estimate(bb.count(THREE, "y"))
    with pytest.raises(BadSetting, match=r"against must be another class than the most probable one. Got 'p' instead"):
        model.explain({"x": 1.5, "w": "a"}, against="p")
    with pytest.raises(UnknownClass, match="no class 's'"):
        model.explain({"x": 1.5, "w": "a"}, against="s")


def test_one_class_leaves_nothing_to_explain() -> None:
    model = bb.estimate(bb.count({"x": [1.0, 2.0], "y": ["a", "a"]}, "y"))
    with pytest.raises(BadSetting, match="two classes at least"):
        model.explain({"x": 1.0})


def test_one_row_is_explained_at_a_time(model: bb.Model) -> None:
    with pytest.raises(BanburyError, match="14"):
        model.explain(bb.datasets.play_tennis())


def test_a_row_comes_in_many_forms() -> None:
    X = np.array([[1.0, 10.0], [2.0, 12.0], [6.0, 30.0], [7.0, 29.0]])
    model = bb.estimate(bb.count(X, target=list("aabb")))
    wanted = model.explain(X[0])
    for row in (X[:1], X[0].tolist(), tuple(X[0].tolist()), {"x0": 1.0, "x1": 10.0}):
        assert model.explain(row) == wanted


def test_what_is_impossible_is_infinite_evidence() -> None:
    table = {"x": ["a", "a", "b"], "w": ["u", "v", "v"], "y": ["p", "p", "q"]}
    told = bb.estimate(bb.count(table, "y"), how="mle").explain({"x": "a", "w": "v"})
    assert told.winner == "p"
    assert told.decibans == math.inf
    assert told.evidence[0] == bb.explain.Evidence("x", "a", math.inf)  # type: ignore[attr-defined]
    assert "∞" in str(told)


def test_a_row_that_every_class_finds_impossible_is_explained_by_the_prior() -> None:
    table = {"x": ["a", "b"], "w": ["u", "v"], "y": ["p", "q"]}
    model = bb.estimate(bb.count(table, "y"), how="mle", class_prior={"p": 0.75, "q": 0.25})
    told = model.explain({"x": "a", "w": "v"})
    assert (told.winner, told.probability) == ("p", pytest.approx(0.75))
    assert not math.isnan(told.decibans)


def test_values_are_shown_as_they_came() -> None:
    model = bb.estimate(bb.count({"n": [3, 4, 9, 8], "b": [True, True, False, True], "y": list("ppqq")}, "y"))
    told = model.explain({"n": 3, "b": True})
    assert {e.feature: e.value for e in told.evidence} == {"n": 3, "b": True}


def test_an_explanation_is_json(model: bb.Model) -> None:
    told = model.explain(ROW).to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["winner"] == "no"
    assert [e["feature"] for e in told["evidence"]] == ["outlook", "humidity", "wind", "temperature"]
    assert told["decibans"] == pytest.approx(told["prior"] + sum(e["decibans"] for e in told["evidence"]))


def test_an_explanation_reads_as_a_table(model: bb.Model) -> None:
    told = model.explain(ROW)
    assert str(told) == repr(told) == EXPLANATION


EXPLANATION = """\
'no' 72.0% against 'yes' 28.0%, in decibans:
  prior                     -2.55  ---
  outlook      = sunny      +3.01  +++
  humidity     = high       +2.93  +++
  wind         = strong     +1.96  ++
  temperature  = cool       -1.25  -
  sum                       +4.10"""


def test_a_long_explanation_is_abridged_but_its_sum_is_whole() -> None:
    X = np.random.default_rng(0).normal(size=(20, 100)) + np.repeat([0, 1], 10)[:, None]
    told = bb.estimate(bb.count(X, target=np.repeat([0, 1], 10))).explain(X[0])
    lines = str(told).splitlines()
    assert len(told.evidence) == 100
    assert any("and 70 more" in line for line in lines)
    shown: Any = sum(float(line.split()[-2 if line.split()[-1].strip("+-") == "" else -1]) for line in lines[1:-1])
    assert shown == pytest.approx(told.decibans, abs=0.5)
