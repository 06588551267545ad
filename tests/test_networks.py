"""Belief networks: beside a slow twin that enumerates, beside pyAgrum, and at the edges."""

from __future__ import annotations

import copy
import json
import math
import pickle
import warnings
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import banbury as bb
import naive_networks as naive
from banbury import errors
from banbury.cli import main
from banbury.families.nodes import intervals
from banbury.model.explain import Evidence
from banbury.model.networks import scoring

SPRINKLER = {
    "cloudy": {True: 0.5, False: 0.5},
    "sprinkler": {True: {True: 0.1, False: 0.9}, False: {True: 0.5, False: 0.5}},
    "rain": {True: {True: 0.8, False: 0.2}, False: {True: 0.2, False: 0.8}},
    "wet": {
        (True, True): {True: 0.99, False: 0.01},
        (True, False): {True: 0.9, False: 0.1},
        (False, True): {True: 0.9, False: 0.1},
        (False, False): {True: 0.0, False: 1.0},
    },
}
SPRINKLER_PARENTS = {"sprinkler": ["cloudy"], "rain": ["cloudy"], "wet": ["sprinkler", "rain"]}

ASIA_YES: dict[str, Any] = {  # P(yes), by the parents' values
    "asia": 0.01,
    "smoking": 0.5,
    "tuberculosis": {"yes": 0.05, "no": 0.01},
    "cancer": {"yes": 0.1, "no": 0.01},
    "bronchitis": {"yes": 0.6, "no": 0.3},
    "either": {("yes", "yes"): 1.0, ("yes", "no"): 1.0, ("no", "yes"): 1.0, ("no", "no"): 0.0},
    "xray": {"yes": 0.98, "no": 0.05},
    "dyspnoea": {("yes", "yes"): 0.9, ("yes", "no"): 0.8, ("no", "yes"): 0.7, ("no", "no"): 0.1},
}
ASIA_PARENTS = {
    "tuberculosis": ["asia"],
    "cancer": ["smoking"],
    "bronchitis": ["smoking"],
    "either": ["cancer", "tuberculosis"],
    "xray": ["either"],
    "dyspnoea": ["bronchitis", "either"],
}

# The shape of ALARM (Beinlich and others, 1989), which watches patients under anaesthesia: nodes, how many values each has,
# and parents. Its tables are made up here.
ALARM = """HYP 2; LVF 2; LVV 3 HYP LVF; STKV 3 HYP LVF; HIST 2 LVF; CVP 3 LVV; PCWP 3 LVV; APL 2; TPR 3 APL; ANES 2; PMB 2; INT 3;
    KINK 2; DISC 2; MVS 3; VMCH 4 MVS; VTUB 4 DISC VMCH; PRSS 4 INT KINK VTUB; VLNG 4 INT KINK VTUB; VALV 4 INT VLNG;
    MINV 4 INT VLNG; ACO2 3 VALV; ECO2 4 ACO2 VLNG; FIO2 2; PVS 3 FIO2 VALV; SHNT 2 INT PMB; SAO2 3 PVS SHNT; PAP 3 PMB;
    CCHL 2 ACO2 ANES SAO2 TPR; HR 3 CCHL; CO 3 HR STKV; BP 3 CO TPR; ERLO 2; HRBP 3 ERLO HR; ERCA 2; HREK 3 ERCA HR;
    HRSA 3 ERCA HR"""


def alarm() -> bb.BeliefNetwork:
    rng = np.random.default_rng(0)
    nodes = {words[0]: (int(words[1]), words[2:]) for words in (line.split() for line in ALARM.split(";"))}
    sizes = {name: size for name, (size, _) in nodes.items()}
    tables = {
        name: np.moveaxis(rng.dirichlet(np.ones(size), [sizes[p] for p in above]), -1, 0)
        for name, (size, above) in nodes.items()
    }
    values = {name: [f"v{k}" for k in range(size)] for name, size in sizes.items()}
    return bb.BeliefNetwork.from_tables(tables, {name: above for name, (_, above) in nodes.items()}, values=values)


def yes_no(share: float) -> dict[str, float]:
    return {"yes": share, "no": 1.0 - share}


def asia() -> bb.BeliefNetwork:
    tables = {
        node: yes_no(share) if isinstance(share, float) else {cell: yes_no(p) for cell, p in share.items()}
        for node, share in ASIA_YES.items()
    }
    return bb.BeliefNetwork.from_tables(tables, ASIA_PARENTS)


def sprinkler() -> bb.BeliefNetwork:
    return bb.BeliefNetwork.from_tables(SPRINKLER, SPRINKLER_PARENTS)


# Beside pyAgrum ------------------------------------------------------------------------------------------------------


def peer(network: bb.BeliefNetwork) -> Any:
    """The same network in pyAgrum."""
    gum = pytest.importorskip("pyagrum")
    made = gum.BayesNet()
    for node, values in network.values.items():
        made.add(gum.LabelizedVariable(node, node, [str(value) for value in values]))
    for parent, child in network.edges:
        made.addArc(parent, child)
    for node in network.nodes:
        made.cpt(node)[:] = as_theirs(network, node, made.cpt(node).names)
    return made


def as_theirs(network: bb.BeliefNetwork, node: str, names: Any) -> Any:
    """A table with pyAgrum's axes, the last of which is the first of its names."""
    mine = [node, *network.parents[node]]
    return np.ascontiguousarray(network.tables[node].transpose([mine.index(name) for name in reversed(names)]))


def asked(made: Any, node: str, evidence: dict[str, Any]) -> list[float]:
    import pyagrum as gum

    engine = gum.LazyPropagation(made)
    engine.setEvidence(evidence)
    engine.makeInference()
    return engine.posterior(node).tolist()


@pytest.mark.parametrize("made", [sprinkler, asia, alarm])
def test_every_answer_is_pyagrums(made):
    network = made()
    other = peer(network)
    rng = np.random.default_rng(1)
    world = network.sample(1, seed=3)
    for node in network.nodes:
        shown = [name for name in network.nodes if name != node and rng.random() < 0.3]
        evidence = {name: world[name][0].item() for name in shown}
        expected = asked(other, node, {name: str(value) for name, value in evidence.items()})
        assert list(network.query(node).values()) == pytest.approx(asked(other, node, {}), abs=1e-9)
        assert list(network.query(node, evidence).values()) == pytest.approx(expected, abs=1e-9)
        assert list(network.posteriors(evidence)[node].values()) == pytest.approx(expected, abs=1e-9)


def test_sets_of_values_and_soft_evidence_are_pyagrums():
    network = alarm()
    other = peer(network)
    soft = {"BP": {"v0": 0.2, "v1": 0.7, "v2": 0.1}, "HRBP": ["v1", "v2"], "CVP": "v1"}
    expected = asked(other, "LVF", {"BP": [0.2, 0.7, 0.1], "HRBP": [0, 1, 1], "CVP": "v1"})
    assert list(network.query("LVF", soft).values()) == pytest.approx(expected, abs=1e-9)


def test_the_shape_of_alarm_is_known():
    network = alarm()
    assert (len(network.nodes), len(network.edges), network.n_parameters) == (37, 46, 509)


def test_smoothed_tables_are_pyagrums():
    gum = pytest.importorskip("pyagrum")
    rows = pd.DataFrame(asia().sample(500, seed=0))
    mine = bb.BeliefNetwork.count(rows, ASIA_PARENTS)
    template = peer(asia())
    learner = gum.BNLearner(rows, template)
    learner.useSmoothingPrior(1)
    learned = learner.learnParameters(template.dag())
    for node in mine.nodes:
        theirs = learned.cpt(node)
        if len(mine.parents[node]) < 2:  # beyond that it is fewer parents that smooth, here alone
            np.testing.assert_allclose(as_theirs(mine, node, theirs.names), theirs[:], atol=1e-9)


# Beside enumeration --------------------------------------------------------------------------------------------------


@st.composite
def networks(draw: st.DrawFn) -> bb.BeliefNetwork:
    """A few nodes, each with some of those before it as parents; some shares are zero."""
    n = draw(st.integers(1, 5))
    names = [f"n{k}" for k in range(n)]
    sizes = [draw(st.integers(1, 3)) for _ in names]
    parents = {
        name: draw(st.lists(st.sampled_from(names[:k]), unique=True, max_size=3)) if k else []
        for k, name in enumerate(names)
    }
    tables = {}
    for k, name in enumerate(names):
        shape = (sizes[k], *(sizes[names.index(p)] for p in parents[name]))
        weights = np.array(
            draw(st.lists(st.integers(0, 4), min_size=math.prod(shape), max_size=math.prod(shape))), dtype=float
        )
        weights = weights.reshape(shape)
        weights[0] += weights.sum(axis=0) == 0
        tables[name] = weights / weights.sum(axis=0)
    values = {name: list(range(size)) for name, size in zip(names, sizes, strict=True)}
    return bb.BeliefNetwork.from_tables(tables, parents, values=values)


def in_words(network: bb.BeliefNetwork) -> naive.Tables:
    """Its tables, as the slow twin has them."""
    tables: dict[str, dict[tuple[Any, ...], dict[Any, float]]] = {}
    for node, table in network.tables.items():
        above = [network.values[parent] for parent in network.parents[node]]
        tables[node] = {}
        for cell in np.ndindex(*map(len, above)):
            key = tuple(values[k] for values, k in zip(above, cell, strict=True))
            tables[node][key] = {value: float(table[(k, *cell)]) for k, value in enumerate(network.values[node])}
    return tables


@st.composite
def evidence_about(draw: st.DrawFn, network: bb.BeliefNetwork) -> tuple[dict[str, Any], dict[str, dict[Any, float]]]:
    """What is known of some nodes, as a user says it and as weights of values."""
    said: dict[str, Any] = {}
    weights: dict[str, dict[Any, float]] = {}
    for node in draw(st.lists(st.sampled_from(network.nodes), unique=True)):
        values = network.values[node]
        kind = draw(st.sampled_from(["value", "set", "soft", "nothing"]))
        if kind == "nothing":
            said[node] = None
        elif kind == "value":
            said[node] = draw(st.sampled_from(values))
            weights[node] = {said[node]: 1.0}
        elif kind == "set":
            said[node] = draw(st.sets(st.sampled_from(values), min_size=1))
            weights[node] = dict.fromkeys(said[node], 1.0)
        else:
            said[node] = {value: draw(st.integers(0, 3)) / 3 for value in values}
            weights[node] = said[node]
    return said, weights


@given(st.data())
def test_elimination_is_enumeration(data):
    network = data.draw(networks())
    said, weights = data.draw(evidence_about(network))
    of = data.draw(st.lists(st.sampled_from(network.nodes), unique=True, min_size=1, max_size=2))
    about = network.values, network.parents, in_words(network)
    probability = naive.evidence(*about, weights)
    assert math.exp(network.log_probability(said)) == pytest.approx(probability, abs=1e-12)
    expected = naive.query(of, *about, weights)
    if expected is None:
        for ask in (lambda: network.query(of, said), lambda: network.posteriors(said)):
            with pytest.raises(errors.ImpossibleEvidence):
                ask()
    else:
        found = network.query(of, said)
        assert found == pytest.approx(expected, abs=1e-9)
        assert sum(found.values()) == pytest.approx(1.0, abs=1e-12)
        one = network.query(of[0], said)
        assert all(0.0 <= share <= 1.0 for share in one.values())
        assert one == pytest.approx({k: sum(v for key, v in expected.items() if key[0] == k) for k in one}, abs=1e-9)
        for node, shares in network.posteriors(said).items():
            assert shares == pytest.approx(network.query(node, said), abs=1e-9)


@given(st.data())
def test_rows_are_answered_as_questions_are(data):
    """Missing values, values never counted aside, and columns that are not there are summed out exactly."""
    network = data.draw(networks())
    n_rows = data.draw(st.integers(1, 6))
    some = {
        node: data.draw(st.lists(st.sampled_from([None, *values]), min_size=n_rows, max_size=n_rows))
        for node, values in network.values.items()
        if node == network.nodes[0] or data.draw(st.booleans())
    }
    of = data.draw(st.sampled_from(network.nodes))
    rows = [{node: column[k] for node, column in some.items()} for k in range(n_rows)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bb.BanburyWarning)
        likelihoods = network.log_likelihood(some)
        posteriors = network.posterior(some, of=of)
    assert np.all(np.isfinite(posteriors))
    np.testing.assert_allclose(posteriors.sum(axis=1), 1.0, atol=1e-12)
    for row, likelihood, posterior in zip(rows, likelihoods, posteriors, strict=True):
        assert math.exp(likelihood) == pytest.approx(math.exp(network.log_probability(row)), abs=1e-12)
        rest = {node: value for node, value in row.items() if node != of}
        if network.log_probability(rest) > -math.inf:
            assert posterior == pytest.approx(list(network.query(of, rest).values()), abs=1e-9)
        else:
            assert posterior == pytest.approx(list(network.query(of).values()), abs=1e-9)


def test_many_patterns_of_missing_values_are_answered_exactly(monkeypatch):
    network = asia()
    rng = np.random.default_rng(5)
    drawn = pd.DataFrame(network.sample(300, seed=2))
    rows = drawn.mask(rng.random(drawn.shape) < 0.4)
    together = network.posterior(rows, of="cancer")
    monkeypatch.setattr(scoring, "MOST_PATTERNS", 10_000)
    monkeypatch.setattr(scoring, "ROWS_PER_PATTERN", 1)
    np.testing.assert_allclose(network.posterior(rows, of="cancer"), together, atol=1e-12)
    monkeypatch.setattr(scoring, "MOST_NUMBERS", 1)
    np.testing.assert_allclose(network.posterior(rows[:40], of="cancer"), together[:40], atol=1e-12)


# Counting ------------------------------------------------------------------------------------------------------------

COLUMNS = {"a": ["x", "y", "z"], "b": ["p", "q"], "c": ["m", "n"], "d": ["k", "l"]}
STRUCTURES = [
    {"a": []},
    {"b": ["a"], "c": ["a", "b"]},
    {"a": ["d"], "b": ["d"], "c": ["d", "a"]},
    {"d": ["a", "b", "c"]},
]


@st.composite
def tables(draw: st.DrawFn, least: int = 1, gaps: bool = True) -> dict[str, list[Any]]:
    n = draw(st.integers(least, 25))
    kinds = {name: st.sampled_from([*values, None] if gaps else values) for name, values in COLUMNS.items()}
    return {name: draw(st.lists(kind, min_size=n, max_size=n)) for name, kind in kinds.items()}


def cut(table: dict[str, list[Any]], start: int, stop: int | None = None) -> dict[str, list[Any]]:
    return {name: column[start:stop] for name, column in table.items()}


FAMILIES = {name: bb.Categorical(values=values) for name, values in COLUMNS.items()}


@given(tables(), st.sampled_from(STRUCTURES), st.sampled_from([0.0, 0.5, 1.0]))
def test_tables_are_the_shares_of_rows(table, parents, alpha):
    network = bb.BeliefNetwork.count(
        table, parents, features=FAMILIES, alpha=alpha or 1.0, how="mean" if alpha else "mle"
    )
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    values = {node: network.values[node] for node in network.nodes}
    expected = naive.counted(rows, values, network.parents, alpha)
    found = in_words(network)
    for node in network.nodes:
        for cell, shares in expected[node].items():
            assert found[node][cell] == pytest.approx(shares, abs=1e-12)


@given(tables(least=2), st.sampled_from(STRUCTURES), st.data())
def test_networks_of_parts_add_up_and_subtract(table, parents, data):
    whole = bb.BeliefNetwork.count(table, parents, features=FAMILIES)
    at = data.draw(st.integers(1, len(table["a"]) - 1))
    first, second = (
        bb.BeliefNetwork.count(part, parents, features=FAMILIES) for part in (cut(table, 0, at), cut(table, at))
    )
    assert first + second == whole == second + first
    assert whole - second == first and sum([first, second]) == whole
    assert whole.count_more(cut(table, at)) == second
    assert whole * 2 == whole + whole
    assert bb.BeliefNetwork.count([cut(table, 0, at), cut(table, at)], parents, features=FAMILIES) == whole
    assert bb.BeliefNetwork.count(table, parents, features=FAMILIES, weights=[2] * len(table["a"])) == whole * 2


def test_values_may_come_and_go_with_rows():
    one = bb.BeliefNetwork.count({"sky": ["sun", "rain"], "coat": ["no", "yes"]}, {"coat": ["sky"]})
    more = one.count_more({"sky": ["hail", "sun"], "coat": ["thick", "no"]})
    both = one + more
    assert both.values == {"sky": ("hail", "rain", "sun"), "coat": ("no", "thick", "yes")}
    assert (both - more).values == one.values and both - more == one


def test_a_weight_of_zero_is_no_row():
    rows = {"sky": ["sun", "rain", "hail"], "coat": ["no", "yes", "thick"]}
    light = bb.BeliefNetwork.count(rows, {"coat": ["sky"]}, weights=[1, 1, 0])
    assert light == bb.BeliefNetwork.count(cut(rows, 0, 2), {"coat": ["sky"]})
    assert light.n_rows == 2


def test_bic_and_parameters_by_hand():
    network = bb.BeliefNetwork.count({"a": [True, True, True, False], "b": [True, True, False, False]}, {"b": ["a"]})
    assert (network.n_rows, network.n_parameters) == (4, 3)
    log_likelihood = 3 * math.log(3 / 4) + math.log(1 / 4) + 2 * math.log(2 / 3) + math.log(1 / 3)
    assert network.bic == pytest.approx(-2 * log_likelihood + 3 * math.log(4))
    same = network.estimate(how="mle").log_likelihood({"a": [True, True, True, False], "b": [True, True, False, False]})
    assert same.sum() == pytest.approx(log_likelihood)


def test_counts_are_estimated_anew_without_a_recount():
    network = bb.BeliefNetwork.count(bb.datasets.play_tennis(), {"play": ["outlook"]})
    assert network.estimate("mle").query("play", {"outlook": "overcast"}) == {"no": 0.0, "yes": 1.0}
    assert network.estimate(alpha=2).query("play", {"outlook": "overcast"}) == pytest.approx({"no": 0.25, "yes": 0.75})
    assert network.estimate("map", alpha=2).query("play", {"outlook": "overcast"})["yes"] == pytest.approx(5 / 6)
    drawn = [network.estimate("gibbs", seed=seed).query("play")["yes"] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_numbers_are_cut_into_bins_and_asked_for_by_number():
    rng = np.random.default_rng(0)
    low, high = rng.normal(0, 1, 500), rng.normal(10, 1, 500)
    rows = {"x": np.concatenate([low, high]), "kind": ["low"] * 500 + ["high"] * 500, "n": np.arange(1000) % 3}
    network = bb.BeliefNetwork.count(rows, {"x": ["kind"], "kind": [], "n": []}, bins=4)
    assert network.query("kind", {"x": 9.5})["high"] > 0.99 and network.query("kind", {"x": -1e9})["low"] > 0.99
    assert len(network.values["x"]) == 4 and network.values["n"] == (0, 1, 2)
    drawn = network.sample(2000, seed=1)
    assert set(drawn["n"].tolist()) == {0, 1, 2}
    assert low.min() <= drawn["x"].min() and drawn["x"].max() <= high.max()
    assert bb.BeliefNetwork.count({"x": [5, 5]}, {"x": []}).sample(3)["x"].tolist() == [5, 5, 5]
    again = network.count_more({**drawn, "x": drawn["x"]})
    assert again.query("kind", {"x": 9.5})["high"] > 0.99
    in_bins = bb.BeliefNetwork.count(rows, {"n": ["kind"]}, features={"n": bb.Histogram(bins=3)})
    assert in_bins.values["n"] == ("below 0.5", "0.5 to 1.5", "1.5 and above")
    grid = bb.BeliefNetwork.count(rows, {"x": ["kind"]}, features={"x": bb.Histogram(start=0, width=5)})
    assert grid.values["x"][0] == "below 0" and grid.values["x"][-1] == "10 and above"


@pytest.mark.parametrize("kind", [int, float])
def test_few_whole_numbers_are_values_as_they_are(kind):
    """As for any model: 0 and 1 however few rows there are, others from 100 rows on, and only while all are whole."""
    flags = {"a": [kind(k % 2) for k in range(20)], "b": [kind(k % 3 == 0) for k in range(20)]}
    answer = bb.BeliefNetwork.count(flags, {"b": ["a"]}).query("a", {"b": 1})
    assert list(answer) == [0, 1] and answer[0] == pytest.approx(5 / 9)
    later = {"a": [kind(2), None, kind(1)]}
    assert bb.BeliefNetwork.count([{"a": flags["a"]}, later], {"a": []}).values["a"] == (0, 1, 2)
    fractions = [{"a": flags["a"]}, {"a": [0.5, 1.0, 3.25]}]
    assert bb.BeliefNetwork.count(fractions, {"a": []}).values["a"] == ("below 0.5", "0.5 and above")


def test_bins_of_large_numbers_are_named_without_exponents():
    whole = bb.BeliefNetwork.count({"x": [12_285, 64_338, 106_648, 1_000_001, 1_000_003]}, {"x": []})
    assert whole.values["x"] == (
        "below 38311.5", "38311.5 to 85493", "85493 to 553324.5", "553324.5 to 1000002", "1000002 and above"
    )  # fmt: skip
    assert whole.query("x", {"x": 64_338})["38311.5 to 85493"] == 1.0
    real = bb.BeliefNetwork.count({"x": [0.123456, 64_337.4821, 64_337.4831, 9e14, 1.7e15]}, {"x": []})
    assert real.values["x"] == (
        "below 32168.8", "32168.8 to 64337.5", "64337.5 to 450000000032168.8", "450000000032168.8 to 1.3e+15",
        "1.3e+15 and above"
    )  # fmt: skip


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=8, unique=True))
def test_every_bin_has_a_name_of_its_own_which_is_a_number(cuts):
    cuts = sorted(cuts)
    names = intervals(cuts)
    assert len(set(names)) == len(cuts) + 1
    for name, cut in zip(names[1:], cuts, strict=True):
        number = name.split()[0]
        assert float(number) == pytest.approx(cut, rel=5.1e-4, abs=0)
        if 1 <= abs(cut) < 1e15:
            assert "e" not in number and float(number) == pytest.approx(cut, rel=0, abs=0.15)


def test_a_tree_cuts_numbers_where_the_classes_change_or_into_so_many_equal_shares():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 900)
    rows = {"told": y * 4.0 + rng.random(900), "noise": rng.random(900), "y": y}
    cut = bb.BeliefNetwork.tan(rows, "y")
    assert len(cut.values["told"]) == 2 and 1.0 < cut._variables[1].cuts[0] < 4.0
    assert len(cut.values["noise"]) == 10  # no cut pays
    shares = bb.BeliefNetwork.tan(rows, "y", bins=6)
    alone = bb.BeliefNetwork.count(rows, {"told": [], "noise": []}, bins=6)
    assert {name: shares.values[name] for name in ("told", "noise")} == alone.values
    assert np.ptp(shares._counts.value_counts[1].value) <= 2
    said = bb.BeliefNetwork.tan(
        rows, "y", bins=6, features={"told": bb.Histogram(bins="mdl"), "noise": bb.Histogram(bins=3)}
    )
    assert said.values["told"] == cut.values["told"] and len(said.values["noise"]) == 3
    X = np.column_stack([rows["told"], rows["noise"]])
    for network in (cut, shares):
        bins = "mdl" if network is cut else 6
        posteriors = bb.TANClassifier(bins=bins).fit(X, y).predict_proba(X)
        np.testing.assert_allclose(posteriors, network.posterior(rows), rtol=1e-12)
    with pytest.raises(errors.BadSetting, match='bins must be a whole number of at least 2, or "mdl"'):
        bb.BeliefNetwork.tan(rows, "y", bins="auto")
    with pytest.raises(errors.BadSetting, match=r"at least 2\. Got 'mdl'"):
        bb.BeliefNetwork.count(rows, {"told": []}, bins="mdl")


def test_a_grid_search_over_bins_compares_them():
    X, y = load_wine(return_X_y=True)
    search = GridSearchCV(bb.TANClassifier(), {"bins": ["mdl", 2, 5]}, cv=3).fit(X, y)
    assert len(set(search.cv_results_["mean_test_score"])) == 3


def test_a_file_is_counted_as_a_frame_is(tmp_path):
    frame = pd.DataFrame(bb.datasets.play_tennis())
    frame.to_csv(tmp_path / "days.csv", index=False)
    parents = {"play": ["outlook", "wind"]}
    assert bb.BeliefNetwork.count(tmp_path / "days.csv", parents) == bb.BeliefNetwork.count(frame, parents)


def test_samples_have_the_networks_frequencies():
    network = sprinkler()
    rows = network.sample(40_000, seed=4)
    counted = bb.BeliefNetwork.count(rows, SPRINKLER_PARENTS, how="mle")
    for node in network.nodes:
        assert counted.query(node) == pytest.approx(network.query(node), abs=0.012)
        assert counted.query(node, {"cloudy": True}) == pytest.approx(network.query(node, {"cloudy": True}), abs=0.015)
    again = network.sample(40_000, seed=4)
    assert all(np.array_equal(rows[node], again[node]) for node in rows)
    assert network.sample(0)["wet"].shape == (0,)


def test_nothing_underflows_however_long_the_chain():
    rng = np.random.default_rng(0)
    n = 800
    shares = {f"x{k}": rng.dirichlet([1, 1, 1], 3).T if k else rng.dirichlet([1, 1, 1]) for k in range(n)}
    parents = {f"x{k}": [f"x{k - 1}"] for k in range(1, n)}
    network = bb.BeliefNetwork.from_tables(shares, parents, values={node: ["a", "b", "c"] for node in shares})
    shown = {f"x{k}": "a" for k in range(1, n, 2)}
    forward = shares["x0"].copy()  # by hand, step by step, in logarithms
    log_scale = 0.0
    for k in range(1, n):
        forward = shares[f"x{k}"] @ forward
        if k % 2:
            forward = forward * [1, 0, 0]
        log_scale += math.log(forward.sum())
        forward = forward / forward.sum()
    assert network.log_probability(shown) == pytest.approx(log_scale, rel=1e-9)
    assert log_scale < -300
    row = {node: [shown.get(node)] for node in network.nodes}
    assert network.log_likelihood(row) == pytest.approx([log_scale], rel=1e-9)
    asked_for = network.query("x400", shown)
    assert sum(asked_for.values()) == pytest.approx(1.0)
    assert network.posteriors(shown)["x400"] == pytest.approx(asked_for, abs=1e-9)


# TAN -----------------------------------------------------------------------------------------------------------------


@given(tables(least=3))
def test_the_tree_is_the_best_of_all_trees(table):
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True) if row[3] is not None]
    columns = [name for name in "abc" if len({row[name] for row in rows} - {None}) > 1]
    if len(columns) < 3:
        return
    tally = bb.count(table, "d", features=bb.ColumnTree(None, columns=dict.fromkeys("abc", "categorical")))
    (family, (feature,), sums) = tally.groups[0]
    drawn = family.find_tree(feature, sums)
    names = [variable.name for variable in drawn.variables]
    weights = {
        frozenset(pair): naive.information(rows, *pair, "d") if _both(rows, *pair) else 0.0
        for pair in combinations(columns, 2)
    }
    for a, b, bits in drawn.pairs.rank_edges(None):
        assert bits == pytest.approx(weights[frozenset((names[a], names[b]))], abs=1e-9)
    tree = [frozenset((names[b], names[a])) for b, a in enumerate(drawn.parents) if a is not None]
    best = max(sum(weights[frozenset(edge)] for edge in edges) for edges in naive.spanning_trees(columns))
    assert len(tree) == 2 and sum(weights[edge] for edge in tree) == pytest.approx(best, abs=1e-9)


def _both(rows: list[dict[str, Any]], a: str, b: str) -> bool:
    return any(row[a] is not None and row[b] is not None for row in rows)


@given(tables(least=2), st.data())
def test_pairs_of_parts_add_up_and_subtract(table, data):
    table["d"] = ["k" if label is None else label for label in table["d"]]
    at = data.draw(st.integers(1, len(table["d"]) - 1))

    def counted(rows: Any) -> bb.Tally:
        return bb.count(rows, "d", features=bb.ColumnTree(columns=FAMILIES_BUT_TARGET))

    whole, first, second = counted(table), counted(cut(table, 0, at)), counted(cut(table, at))
    for found in (first + second, counted([cut(table, 0, at), cut(table, at)])):
        assert found == whole and found.digest() == whole.digest()
    assert whole - second == first and (whole - second).digest() == first.digest()


FAMILIES_BUT_TARGET = {name: family for name, family in FAMILIES.items() if name != "d"}


@given(tables(least=2, gaps=False), st.sampled_from([None, 1.0]), st.sampled_from(["mean", "mle"]))
def test_a_tan_network_is_the_network_of_its_structure(table, level, how):
    """Its tables, taken from pairs, are those of counting each node with its parents."""
    learned = bb.BeliefNetwork.tan(table, "d", level=level, how=how, features=FAMILIES_BUT_TARGET)
    counted = bb.BeliefNetwork.count(table, learned.parents, how=how, features=FAMILIES_BUT_TARGET)
    assert learned.nodes[0] == "d" and all(len(above) <= 2 for above in learned.parents.values())
    for node in learned.nodes[1:]:
        np.testing.assert_array_equal(learned.tables[node], counted.tables[node])
    assert learned.count_more(table) == learned


@given(
    st.lists(st.integers(1, 3), min_size=2, max_size=3),
    st.lists(st.integers(1, 3), min_size=2, max_size=3),
    st.integers(1, 4),
)
def test_without_dependence_tan_is_naive_bayes(left, right, times):
    """Within each class every value of one column stands beside those of the other in the same shares."""
    rows = [
        (f"a{i}", f"b{j}", label)
        for label, (first, second) in {"no": (left, right), "yes": (left[::-1], [*right[1:], right[0]])}.items()
        for i, n in enumerate(first)
        for j, m in enumerate(second)
        for _ in range(n * m * times)
    ]
    table = dict(zip(("a", "b", "y"), map(list, zip(*rows, strict=True)), strict=True))
    for how in ("mean", "mle", "map"):
        network = bb.BeliefNetwork.tan(table, "y", how=how)
        assert network.edges == [("y", "a"), ("y", "b")]
        model = bb.estimate(bb.count(table, "y"), how=how)
        asked_for = {"a": ["a0", "a1", None, "new"], "b": ["b1", None, None, "b0"]}
        np.testing.assert_allclose(network.posterior(asked_for), model.posterior(asked_for), atol=1e-12)
        np.testing.assert_allclose(network.log_joint(asked_for), model.log_joint(asked_for), atol=1e-12)


def test_what_is_said_twice_is_counted_once():
    """A column that repeats another pushes naive Bayes to 0 and 1; in the tree it adds nothing."""
    rng = np.random.default_rng(0)
    label = rng.random(2000) < 0.5
    told = np.where(rng.random(2000) < 0.7, label, ~label)
    rows = {"a": told, "b": told, "c": told, "y": np.where(label, "yes", "no")}
    alone = bb.estimate(bb.count({"a": told, "y": rows["y"]}, "y")).posterior({"a": [True]})
    network = bb.BeliefNetwork.tan(rows, "y")
    seen = {"a": [True], "b": [True], "c": [True]}
    assert network.edges == [("y", "a"), ("y", "b"), ("a", "b"), ("y", "c"), ("a", "c")]
    assert network.posterior(seen) == pytest.approx(alone, abs=0.005)
    assert bb.estimate(bb.count(rows, "y")).posterior(seen)[0, 1] > 0.9 > network.posterior(seen)[0, 1]


def test_a_value_never_counted_says_what_a_new_one_would_and_is_else_as_missing():
    rng = np.random.default_rng(1)
    first = rng.choice(["p", "q"], 300)
    rows = {
        "a": first,
        "b": np.where(rng.random(300) < 0.8, first, "r"),
        "y": rng.choice(["no", "yes"], 300, p=[0.3, 0.7]),
    }
    network = bb.BeliefNetwork.tan(rows, "y")
    assert ("a", "b") in network.edges
    missing = network.log_joint({"a": [None], "b": ["r"]})[0]
    n = np.array([np.sum(rows["y"] == label) for label in ("no", "yes")])
    new = np.log(1 / (n + 2))  # α / (n + αK)
    assert network.log_joint({"a": ["new"], "b": ["r"]})[0] == pytest.approx(missing + new, abs=1e-12)
    child = network.log_joint({"a": ["p"], "b": ["new"]})[0] - network.log_joint({"a": ["p"], "b": [None]})[0]
    assert child == pytest.approx([new_child(rows, label) for label in ("no", "yes")], abs=1e-12)
    with pytest.raises(errors.UnknownValue, match="no value 'new'"):
        network.query("y", {"a": "new"})


def new_child(rows: dict[str, Any], label: str) -> float:
    """log P(a value of b that is new | a = p, y = label): m r / (n + m), where r is what the class and a say apart."""
    records = [dict(zip(rows, map(str, row), strict=True)) for row in zip(*rows.values(), strict=True)]
    values = {"b": ["p", "q", "r"]}

    def new(given: dict[str, str]) -> float:
        return 1.0 / (len(naive.matching(records, given)) + 3)

    fewer, beside, alone = (naive.shares(records, values, "b", each, 1.0) for each in ({"y": label}, {"a": "p"}, {}))
    whole = sum(fewer[value] * beside[value] / alone[value] for value in values["b"])
    open_ = naive.entropy(records, "b", ["y", "a"]) / naive.entropy(records, "b", ["y"])
    m = 1 + open_**2 * math.sqrt(len(naive.matching(records, {"y": label})))
    share = m * new({"y": label}) * new({"a": "p"}) / new({}) / whole
    return math.log(share / (len(naive.matching(records, {"y": label, "a": "p"})) + m))


def test_probability_is_the_share_of_an_event_among_what_is_given():
    network = bb.BeliefNetwork.count(bb.datasets.play_tennis(), {"play": ["outlook", "wind"], "humidity": ["outlook"]})
    both = network.query(["play", "wind"], {"humidity": "high"})
    asked = network.probability({"play": "no", "wind": "weak"}, {"humidity": "high"})
    assert asked == pytest.approx(both["no", "weak"], rel=1e-12)
    assert network.probability({"play": ["no", "yes"]}) == pytest.approx(1.0)
    assert network.probability({"play": "no"}, {"play": "yes"}) == 0.0
    assert network.log_probability({"play": "no"}, {"play": "yes"}) == -math.inf
    assert network.probability({}, {"play": "no"}) == 1.0
    sure = bb.BeliefNetwork.from_tables({"a": {0: 1.0, 1: 0.0}})
    with pytest.raises(errors.ImpossibleEvidence, match="a = 1"):
        sure.probability({"a": 0}, {"a": 1})


def test_values_never_seen_together_are_answered_by_fewer_parents():
    rows = {"y": ["n"] * 4 + ["p"] * 4, "a": list("uuuuuvvv"), "b": list("ststssst")}
    tree = {"b": ["y", "a"], "a": ["y"]}
    for how in ("mle", "map", "mean", "predictive", "gibbs"):
        network = bb.BeliefNetwork.count(rows, tree, how=how)
        table = network.tables["b"]  # (s and t; n and p; u and v)
        np.testing.assert_allclose(table.sum(axis=0), 1.0)
        assert (table > 0).all() or how in ("mle", "map")
    by_rows = bb.BeliefNetwork.count(rows, tree, how="mle").tables["b"]
    assert by_rows[:, 0, 0].tolist() == [0.5, 0.5]
    product_ = np.array([1 / 2 * (2 / 3) / (5 / 8), 1 / 2 * (1 / 3) / (3 / 8)])  # P(b | n) P(b | v) / P(b)
    np.testing.assert_allclose(by_rows[:, 0, 1], product_ / product_.sum())


def test_a_tree_on_combinations_it_never_saw_is_not_far_below_naive_bayes(data_dir):
    table = pd.read_csv(data_dir / "car" / "car.data.gz", header=None, dtype=str)
    table.columns = [f"c{k}" for k in range(table.shape[1])]
    X, y = table.drop(columns="c6"), table["c6"]
    assert cross_val_score(bb.TANClassifier(), X, y, cv=5).mean() >= 0.72  # in the order of the file, which is sorted


def test_families_that_are_declared_are_kept():
    rows = {"n": [1, 2, 3, 4, 5, 6], "w": ["a", None, "b", "a", None, "b"], "s": ["on", "off", "dim"] * 2}
    features = {
        "n": bb.Bernoulli(threshold=3),
        "w": bb.Categorical(missing="category"),
        "s": bb.Bernoulli(yes="on", alpha=1, beta=3),
    }
    network = bb.BeliefNetwork.count(rows, {"n": [], "w": ["n"], "s": []}, features=features)
    assert network.values == {"n": (False, True), "s": (False, True), "w": ("a", "b", None)}
    assert network.query("n") == {False: 0.5, True: 0.5}
    assert network.query("s")[True] == pytest.approx((2 + 1) / (6 + 4))
    assert network.query("w", {"n": True})[None] == pytest.approx(2 / 6)
    assert network.query("n", {"w": None})[True] == pytest.approx(0.5)
    assert network.posterior({"w": [None, "a"], "s": [None, None]}, of="n").tolist() == [[0.5, 0.5], [0.5, 0.5]]
    declared = bb.Categorical(values=["a", "b", "c"], m=3)
    network = bb.BeliefNetwork.count({"w": ["a", "a", "b"]}, {"w": []}, features={"w": declared})
    assert network.query("w") == pytest.approx({"a": 3 / 6, "b": 2 / 6, "c": 1 / 6})
    with pytest.raises(errors.UnknownValue, match="'d'"):
        network.count_more({"w": ["d"]})


def test_rows_without_names_are_taken_in_order():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (60, 3))
    y = X[:, 0] % 2
    named = bb.BeliefNetwork.tan({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y}, "y", features="categorical")
    array = bb.BeliefNetwork.tan(X, y, features="categorical")
    np.testing.assert_array_equal(named.posterior(X), array.posterior(X))
    assert array.predict(X).tolist() == y.tolist()
    with pytest.raises(errors.WrongWidth):
        named.posterior(X[:, :2])


def scores(network: bb.BeliefNetwork, rows: Any) -> list[np.ndarray]:
    """log P(value, what each row shows) of every node, and without one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bb.BanburyWarning)
        return [*(network.log_joint(rows, of=node) for node in network.nodes), network.log_likelihood(rows)]


def the_slow_way(network: bb.BeliefNetwork, rows: Any) -> list[np.ndarray]:
    """The same by elimination."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring.Scorer, "_forest", lambda self, keep: None)
        return scores(network, rows)


@given(tables(least=3), st.data())
def test_in_a_tree_one_pass_finds_what_elimination_does(table, data):
    """Whatever rows lack, values that were never counted, and those that cannot be."""
    assume(any(table["d"]))
    how = data.draw(st.sampled_from(["mean", "mle", "predictive"]))
    network = bb.BeliefNetwork.tan(table, "d", level=None, how=how, features=dict.fromkeys("abc", "categorical"))
    n_rows = data.draw(st.integers(1, 12))
    rows = {
        name: data.draw(st.lists(st.sampled_from([None, "new", *values]), min_size=n_rows, max_size=n_rows))
        for name, values in COLUMNS.items()
    }
    for found, expected in zip(scores(network, rows), the_slow_way(network, rows), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_real_tree_with_gaps_is_answered_in_one_pass_as_by_elimination(adult_train, monkeypatch):
    network = bb.BeliefNetwork.tan(adult_train, "income")
    rng = np.random.default_rng(1)
    rows = adult_train[:600].mask(rng.random((600, 15)) < 0.3)
    found, expected = scores(network, rows), the_slow_way(network, rows)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    monkeypatch.setattr(scoring, "MOST_NUMBERS", 1)
    few = rows[:20]
    for one, other in zip(scores(network, few), found, strict=True):
        np.testing.assert_allclose(one, other[:20], rtol=1e-12, atol=1e-12)


def test_a_long_chain_with_gaps_does_not_underflow_in_one_pass():
    rng = np.random.default_rng(2)
    n, size = 900, 10
    shares = {f"x{k}": rng.dirichlet([1] * size, size).T if k else rng.dirichlet([1] * size) for k in range(n)}
    parents = {f"x{k}": [f"x{k - 1}"] for k in range(1, n)}
    network = bb.BeliefNetwork.from_tables(shares, parents, values={node: list(range(size)) for node in shares})
    rows = pd.DataFrame(network.sample(2, seed=3)).astype(object)
    rows = rows.mask(rng.random(rows.shape) < 0.5, None)
    found = network.log_likelihood(rows)
    assert found == pytest.approx([network.log_probability(dict(row)) for _, row in rows.iterrows()], rel=1e-12)
    assert found.max() < -800  # e to the power of −746 is zero


def test_edges_lead_away_from_the_root():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 400)
    rows = {"a": first, "b": first ^ (rng.random(400) < 0.1), "y": rng.integers(0, 2, 400)}
    assert ("a", "b") in bb.BeliefNetwork.tan(rows, "y", features="bernoulli").edges
    assert ("b", "a") in bb.BeliefNetwork.tan(rows, "y", features="bernoulli", root="b").edges
    with pytest.raises(errors.UnknownColumn, match="no column 'z'"):
        bb.BeliefNetwork.tan(rows, "y", root="z")


@parametrize_with_checks(
    [bb.TANClassifier(), bb.TANClassifier(level=None, how="mle", bins=8), bb.TANClassifier(class_weight="balanced")],
    expected_failed_checks=lambda tree: (
        {"check_class_weight_classifiers": "what never occurred in a class stays impossible, whatever it weighs"}
        if tree.how == "mle"
        else {}
    ),
)
def test_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def mixed(n: int = 400) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(3)
    label = rng.random(n) < 0.4
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n) + 15 * label,
            "ward": rng.choice(["a", "b", "c"], n),
            "smokes": rng.random(n) < np.where(label, 0.6, 0.3),
            "beds": rng.integers(1, 5, n),
        }
    )
    frame["old"] = frame["age"] > 50
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    return frame, pd.Series(np.where(label, "ill", "well"), name="state")


def test_mixed_columns_with_gaps_and_new_categories():
    X, y = mixed()
    clf = bb.TANClassifier().fit(X, y)
    assert clf.classes_.tolist() == ["ill", "well"] and clf.n_features_in_ == 5
    assert clf.feature_names_in_.tolist() == list(X) and clf.score(X, y) > 0.7
    edges = {frozenset(edge) for edge in clf.network_.edges}
    assert frozenset(("age", "old")) in edges
    X = X.assign(ward="never seen", age=np.nan)
    shares = clf.predict_proba(X)
    assert np.all(np.isfinite(shares)) and shares.sum(axis=1) == pytest.approx(1.0)
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(X)), shares)
    joint = clf.predict_joint_log_proba(X)
    np.testing.assert_allclose(shares, np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True), atol=1e-12)
    assert cross_val_score(clone(clf), *mixed(), cv=3).mean() > 0.7
    restored = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(restored.predict_proba(X), shares)


def test_a_row_the_network_rules_out_gets_the_answer_without_evidence():
    rows = {"a": ["x", "x", "y", "y"], "y": ["no", "no", "yes", "yes"], "b": ["p", "p", "q", "q"]}
    network = bb.BeliefNetwork.tan(rows, "y", how="mle")
    with pytest.warns(bb.BanburyWarning, match="1 row of probability zero"):
        assert network.posterior({"a": ["x"], "b": ["q"]}).tolist() == [[0.5, 0.5]]


def test_without_a_column_that_tells_the_answer_is_the_frequencies():
    X, y = np.ones((10, 2)), ["no", "no", "no", "yes", "yes"] * 2
    with pytest.warns(bb.BanburyWarning, match="one value only"):
        clf = bb.TANClassifier().fit(X, y)
    assert clf.predict_proba(X[:1]).tolist() == [[0.6, 0.4]]
    with pytest.raises(errors.BadSetting, match="a model without a tree"):
        _ = clf.network_
    texts = ["one text of words", "another of words"] * 5
    alone, beside = bb.NaiveBayesClassifier().fit(texts, y), bb.TANClassifier().fit(texts, y)
    np.testing.assert_array_equal(alone.predict_proba(texts), beside.predict_proba(texts))


def test_one_class_is_certain():
    network = bb.BeliefNetwork.tan({"a": ["x", "y", "x"], "y": ["only"] * 3}, "y")
    assert network.posterior({"a": ["x", None]}).tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("name, least", [("car", 0.05), ("house_votes", 0.03)])
def test_the_tree_is_right_more_often_where_columns_depend_on_each_other(name, least, request):
    frame = request.getfixturevalue(name)
    target = {"car": "class", "house_votes": "party"}[name]
    X, y = frame.drop(columns=target), frame[target]
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    naive_bayes, tree = (
        cross_val_score(made, X, y, cv=folds).mean() for made in (bb.NaiveBayesClassifier(), bb.TANClassifier())
    )
    assert tree > naive_bayes + least


# What is refused -----------------------------------------------------------------------------------------------------


def test_a_cycle_is_named():
    rows = {"a": ["x", "y"], "b": ["x", "y"], "c": ["x", "y"], "d": ["x", "y"]}
    with pytest.raises(errors.CyclicStructure) as caught:
        bb.BeliefNetwork.count(rows, {"a": ["c"], "b": ["a"], "c": ["b"], "d": ["a"]})
    cycle = caught.value.cycle
    assert cycle[0] == cycle[-1] and set(cycle) == {"a", "b", "c"} and "a → b" in str(caught.value)
    with pytest.raises(errors.CyclicStructure, match="a → a"):
        bb.BeliefNetwork.count(rows, {"a": ["a"]})


DAYS = bb.datasets.play_tennis()
TOO_MANY = {"a": {"x": 1.0}, "b": {"x": {"y": 1.0}, "z": {"y": 1.0}}}


@pytest.mark.parametrize(
    "make, kind, words",
    [
        (lambda: bb.BeliefNetwork.count(DAYS, {"play": ["outlok"]}), errors.UnknownColumn, "Did you mean 'outlook'"),
        (lambda: bb.BeliefNetwork.count(DAYS, {}), errors.BadSetting, "a mapping from each column"),
        (lambda: bb.BeliefNetwork.count(DAYS, {"play": 1}), errors.BadSetting, "which must be texts"),
        (lambda: bb.BeliefNetwork.from_tables({"a": {"x": "much"}}), errors.BadSetting, "has 'much' for 'x'"),
        (lambda: bb.BeliefNetwork.count(DAYS, {"play": ["wind", "wind"]}), errors.BadSetting, "each parent once"),
        (lambda: bb.BeliefNetwork.count({"a": [], "b": []}, {"a": ["b"]}), errors.EmptyData, "nothing to count"),
        (lambda: bb.BeliefNetwork.count({"a": [None, None], "b": ["x", "y"]}, {"a": ["b"]}), errors.BadSetting, "no value"),
        (lambda: bb.BeliefNetwork.count(DAYS, {"play": []}, how="best"), errors.BadSetting, "how"),
        (lambda: bb.BeliefNetwork.count(DAYS, {"play": []}, alpha=-1), errors.BadSetting, "alpha"),
        (lambda: bb.BeliefNetwork.count(DAYS, {"play": []}, bins=1), errors.BadSetting, "bins"),
        (lambda: bb.BeliefNetwork.count(DAYS, {"play": []}, weights=[1]), errors.LengthMismatch, "weights"),
        (lambda: bb.BeliefNetwork.count({"x": [1.0, 2.0]}, {"x": []}, weights=[1]), errors.LengthMismatch, "weights"),
        (lambda: bb.BeliefNetwork.tan({"x": [1.0, 2.0], "y": [0, 1]}, "y", weights=[1]), errors.LengthMismatch, "weights"),
        (lambda: bb.BeliefNetwork.tan(DAYS, "play", weights=[1]), errors.LengthMismatch, "weights"),
        (lambda: bb.BeliefNetwork.count({"x": [1.0, math.inf]}, {"x": []}), errors.BadValue, "row 1 of column 'x' is infinite"),
        (lambda: bb.BeliefNetwork.count({"x": [1.0, 2.0]}, {"x": []}, features="gaussian"), errors.BadSetting, "gaussian"),
        (lambda: bb.BeliefNetwork.count({"x": ["a text of many words"] * 3}, {"x": []}), errors.BadSetting, "texts"),
        (lambda: bb.BeliefNetwork.tan(DAYS, "plai"), errors.UnknownColumn, "Did you mean 'play'"),
        (lambda: bb.BeliefNetwork.tan(DAYS, "play", level=0), errors.BadSetting, "level"),
        (lambda: bb.BeliefNetwork.tan({"a": ["x", "y"], "y": [None, None]}, "y"), errors.EmptyData, "missing in all"),
        (lambda: bb.BeliefNetwork.tan({"a": [], "y": []}, "y"), errors.EmptyData, "nothing to count"),
        (lambda: asia().query("smoke"), errors.UnknownColumn, "Did you mean 'smoking'"),
        (lambda: asia().query([]), errors.BadSetting, "several different nodes"),
        (lambda: asia().query("asia", {"smoking": "often"}), errors.UnknownValue, "Values: 'no', 'yes'"),
        (lambda: asia().query("asia", {"smoking": {"yes": -1}}), errors.BadSetting, "smoking"),
        (lambda: asia().query("asia", ["smoking"]), errors.BadSetting, "a mapping"),
        (lambda: asia().query("asia", {"either": "no", "cancer": "yes"}), errors.ImpossibleEvidence, "either = 'no', cancer"),
        (lambda: asia().posterior({"smoking": ["yes"]}), errors.BadSetting, "of="),
        (lambda: asia().posterior({"other": ["yes"]}, of="asia"), errors.UnknownColumn, "asia"),
        (lambda: asia().sample(-1), errors.BadSetting, "n"),
        (lambda: asia() + asia(), errors.BadSetting, "given rather than counted"),
        (lambda: asia().bic, errors.BadSetting, "given rather than counted"),
        (lambda: bb.BeliefNetwork.from_tables({}), errors.BadSetting, "tables"),
        (lambda: bb.BeliefNetwork.from_tables({"a": {"x": 0.5, "y": 0.6}}), errors.BadSetting, "sum to 1.1"),
        (lambda: bb.BeliefNetwork.from_tables({"a": [0.5, 0.5]}), errors.BadSetting, "values="),
        (lambda: bb.BeliefNetwork.from_tables({"a": [0.5, 0.5]}, values={"a": [1, 2, 3]}), errors.BadSetting, "shape"),
        (lambda: bb.BeliefNetwork.from_tables(TOO_MANY, {"b": ["a"]}), errors.BadSetting, "row too many, for a = 'z'"),
        (lambda: bb.BeliefNetwork.from_tables({"a": {"x": 1.0}}, {"b": ["a"]}), errors.UnknownColumn, "no column 'b'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


@pytest.mark.parametrize(
    "call",
    [
        lambda: bb.BeliefNetwork(),
        lambda: bb.BeliefNetwork({"wet": ["rain"]}),
        lambda: bb.BeliefNetwork(DAYS, {"play": ["wind"]}),
        lambda: bb.BeliefNetwork(DAYS, parents={"play": ["wind"]}),
        lambda: bb.BeliefNetwork(parents={"play": ["wind"]}),
    ],
)
def test_a_network_that_is_made_by_hand_is_told_how_it_is_made(call):
    with pytest.raises(errors.BadSetting, match=r"bb\.BeliefNetwork\.count\(data, parents\)"):
        call()


def test_networks_are_copied_and_pickled():
    for network in (asia(), bb.BeliefNetwork.tan(DAYS, "play")):
        for again in (copy.copy(network), copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
            assert again == network and again.query(again.nodes[0]) == network.query(network.nodes[0])


def test_tables_that_would_be_too_large_say_how_large():
    rows = {name: [f"{name}{k}" for k in range(500)] for name in "abc"}
    rows["d"] = ["x", "y"] * 250
    families = dict.fromkeys("abc", "categorical")
    with pytest.raises(errors.TooManyCells, match=r"250,000,000 cells .* Use fewer parents"):
        bb.BeliefNetwork.count(rows, {"d": ["a", "b", "c"]}, features=families)
    wide = {f"c{k}": [f"v{i}" for i in range(2000)] for k in range(20)}
    with pytest.raises(errors.TooManyCells, match="pairs of columns"):
        bb.BeliefNetwork.tan({**wide, "y": [0, 1] * 1000}, "y", features=dict.fromkeys(wide, "categorical"))
    n = 28
    shares = {f"x{k}": np.array([0.5, 0.5]) for k in range(n)}
    network = bb.BeliefNetwork.from_tables(shares, values={node: [0, 1] for node in shares})
    with pytest.raises(errors.TooManyCells, match="268,435,456 cells"):
        network.query(list(shares))


def test_networks_that_do_not_count_the_same_do_not_add():
    one = bb.BeliefNetwork.count(DAYS, {"play": ["outlook"]})
    other = bb.BeliefNetwork.count(DAYS, {"play": ["wind"]})
    with pytest.raises(errors.SchemaMismatch, match="the other has no node 'outlook'") as problem:
        one + other
    assert "tally" not in str(problem.value) and "network.count_more(rows)" in str(problem.value)
    turned = bb.BeliefNetwork.count(DAYS, {"outlook": ["play"]})
    with pytest.raises(
        errors.SchemaMismatch, match="the parents of 'outlook' are none in one network and play in the other"
    ):
        one - turned
    apart = [bb.BeliefNetwork.count(DAYS, dict.fromkeys(names, ())) for names in (["wind", "play"], ["play", "wind"])]
    with pytest.raises(errors.SchemaMismatch, match="in a different order: wind, play and play, wind"):
        apart[0] + apart[1]
    with pytest.raises(errors.SchemaMismatch, match="this one has no node 'humidity'"):
        apart[0] + bb.BeliefNetwork.count(DAYS, dict.fromkeys(["wind", "play", "humidity"], ()))
    with pytest.raises(
        errors.SchemaMismatch, match="the parents of 'play' are none in one network and outlook in the other"
    ):
        bb.BeliefNetwork.count(DAYS, {"outlook": [], "play": []}) + one
    numbers = [bb.BeliefNetwork.count({"x": x}, {"x": []}) for x in ([1.0, 2.0], [3.0, 4.0])]
    with pytest.raises(errors.SchemaMismatch, match="have different edges"):
        numbers[0] + numbers[1]
    with pytest.raises(errors.NegativeCount, match="not part of this network"):
        one - (one + one)
    with pytest.raises(errors.NotATally):
        one + 1


def test_networks_that_count_different_things_are_not_equal():
    network = bb.BeliefNetwork.count(DAYS, {"play": ["outlook"]})
    assert network == bb.BeliefNetwork.count(DAYS, {"play": ["outlook"]})
    assert network != bb.BeliefNetwork.count(DAYS, {"outlook": ["play"]})
    assert network != bb.BeliefNetwork.count(DAYS, {"play": ["wind"]})
    columns = [bb.BeliefNetwork.count({"x": x}, {"x": []}) for x in ([1.0, 2.0], [3.0, 4.0])]
    assert columns[0] != columns[1]  # their bins differ


def test_what_cannot_be_a_node_is_left_out_of_the_tree_and_said():
    rows = {
        "words": ["one text of several words", "and another text of words"] * 2,
        "a": ["x", "y"] * 2,
        "same": [1] * 4,
        "y": ["no", "no", "yes", "yes"],
    }
    network = bb.BeliefNetwork.tan(rows, "y")
    assert network.nodes == ("y", "a")
    assert network.left_out == {"words": "texts, which have no table", "same": "one value only"}
    assert repr(network).endswith("\n  left out: same (one value only), words (texts, which have no table)")
    for ask in (
        lambda: network.query("same"),
        lambda: network.query("y", {"same": 1}),
        lambda: network.posterior(rows, of="same"),
    ):
        with pytest.raises(errors.UnknownColumn, match=r"'same' is not a node .* left out \(one value only\)"):
            ask()
    with pytest.raises(errors.UnknownColumn, match="no column 'same'"):
        bb.BeliefNetwork.tan(rows, "y", root="same")
    assert "same" in bb.BeliefNetwork.tan(rows, "y", features={"same": "categorical"}).nodes


NOTHING = {"None": None, "nan": math.nan, "float32": np.float32("nan"), "NA": pd.NA, "NaT": pd.NaT}


@pytest.mark.parametrize("nothing", NOTHING.values(), ids=list(NOTHING))
def test_what_is_missing_is_no_evidence(nothing):
    network = bb.BeliefNetwork.count(DAYS, {"play": ["outlook", "wind"], "humidity": ["outlook"]})
    given = {"play": "no", "outlook": nothing}
    assert network.query("wind", given) == network.query("wind", {"play": "no"})
    assert network.posteriors(given) == network.posteriors({"play": "no"})
    assert network.log_probability(given) == network.log_probability({"play": "no"})
    impossible = bb.BeliefNetwork.from_tables({"a": {0: 1.0, 1: 0.0}, "b": {0: 0.5, 1: 0.5}})
    with pytest.raises(errors.ImpossibleEvidence, match="the evidence a = 1 has"):
        impossible.query("b", {"a": 1, "b": nothing})


@pytest.mark.parametrize("nothing", NOTHING.values(), ids=list(NOTHING))
def test_where_missing_is_a_category_it_is_one_in_queries_as_in_rows(nothing):
    table = {"colour": ["red", None, None, "blue"], "ripe": [True, False, False, True]}
    network = bb.BeliefNetwork.count(table, {"ripe": ["colour"]}, missing="category")
    answer = network.query("ripe", {"colour": nothing})
    assert list(answer.values()) == pytest.approx(network.posterior({"colour": [None]}, of="ripe")[0])
    assert answer == network.query("ripe", {"colour": [None]}) != network.query("ripe")


def test_the_row_of_a_frame_is_evidence():
    frame = pd.DataFrame(DAYS).assign(
        celsius=np.linspace(10.0, 30.0, 14), one="same", humidity=[None, *DAYS["humidity"][1:]]
    )
    network = bb.BeliefNetwork.tan(frame, "play", level=None)
    assert "one" in network.left_out
    row = frame.iloc[0]
    given = {name: row[name] for name in network.nodes if name != "humidity"}
    assert network.posteriors(row) == network.posteriors(given)
    assert network.log_probability(row) == network.log_probability(given)
    asked = row.drop("play")
    assert list(network.query("play", asked).values()) == pytest.approx(
        network.posterior(frame.drop(columns="play")[:1])[0]
    )
    said = told(lambda: network.query("play", pd.Series({**asked, "Wind": "weak", "note": 1})))
    assert said == ["columns 'Wind', 'note' were not counted and are ignored"]
    with pytest.raises(errors.UnknownColumn, match="no column 'outlook'"):
        network.query("play", pd.Series({"Wind": "weak"}))
    with pytest.raises(errors.BadSetting, match="a mapping from nodes to known values, or a row"):
        network.query("play", ["weak"])


def test_soft_evidence_names_every_value():
    network = bb.BeliefNetwork.count(DAYS | {"celsius": list(range(14))}, {"play": ["outlook", "celsius"]}, bins=2)
    for known, lacking in (
        ({"outlook": {"rain": 0.7}}, "for 'overcast', 'sunny'"),
        ({"play": {}}, "for 'no', 'yes'"),
        ({"celsius": {3.0: 0.5}}, "for '6.5 and above'"),
    ):
        for ask in (network.posteriors, network.log_probability, partial(network.query, "play")):
            with pytest.raises(errors.BadSetting, match=lacking):
                ask(known)
    ruled_out = {"outlook": {"rain": 0.7, "overcast": 0, "sunny": 0}}
    assert list(network.query("play", ruled_out).values()) == pytest.approx(
        list(network.query("play", {"outlook": "rain"}).values())
    )
    assert network.query("play", {"celsius": {3.0: 1, 9.0: 0}}) == network.query("play", {"celsius": 3.0})


@pytest.mark.parametrize(
    ("parents", "n_rows", "expected"),
    [
        ({"play": []}, 1, "BeliefNetwork: 1 node, 0 edges, 1 row\n"),
        ({"play": ["wind"]}, 14, "BeliefNetwork: 2 nodes, 1 edge, 14 rows\n"),
    ],
)
def test_one_of_a_thing_is_one_when_a_network_is_printed(parents, n_rows, expected):
    table = {name: column[:n_rows] for name, column in DAYS.items()}
    network = bb.BeliefNetwork.count(table, parents, features=dict.fromkeys(DAYS, "categorical"))
    assert repr(network).startswith(expected)


def test_the_class_of_a_tree_has_its_frequencies_and_other_roots_are_smoothed():
    tree = bb.BeliefNetwork.tan(DAYS, "play", alpha=5.0)
    assert tree.tables["play"].tolist() == pytest.approx([5 / 14, 9 / 14])
    network = bb.BeliefNetwork.count(DAYS, {"wind": ["play"]}, alpha=5.0)
    assert network.tables["play"].tolist() == pytest.approx([10 / 24, 14 / 24])


@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
def test_trees_are_cross_validated_alike_however_the_rows_are_cut(weighted):
    """Over the folds that naive Bayes has, by the trees of the others' rows; a class that they lack has no share."""
    rng = np.random.default_rng(3)
    y = np.where(rng.random(90) < 0.5, "a", "b").astype(object)
    y[[5, 50]] = None, "c"
    x = np.where(rng.random(90) < 0.8, y == "a", rng.random(90) < 0.5)
    table = {"x": x, "z": np.where(rng.random(90) < 0.9, x, ~x), "y": y, "w": rng.integers(1, 4, 90)}
    weights = {"weights": "w"} if weighted else {}
    tree = bb.ColumnTree(columns="auto" if weighted else {"w": None})
    parts = [{name: column[rows] for name, column in table.items()} for rows in (slice(7), slice(7, 55), slice(55, 90))]
    whole, cut = (bb.cross_validate(data, "y", folds=4, features=tree, **weights) for data in (table, iter(parts)))
    naive_bayes = bb.cross_validate(table, "y", folds=4, **weights)
    assert whole.classes == cut.classes == ("a", "b", "c") and whole.rows.tolist() == naive_bayes.rows.tolist()
    assert whole.folds.tolist() == naive_bayes.folds.tolist() and 5 not in whole.rows
    np.testing.assert_array_equal(whole.posteriors, cut.posteriors)
    np.testing.assert_allclose(whole.posteriors.sum(axis=1), 1.0)
    fold = whole.folds[whole.rows == 50]
    tested = whole.rows[whole.folds == fold]
    learned = np.setdiff1d(whole.rows, tested)
    only = {name: column[learned] for name, column in table.items() if weighted or name != "w"}
    tree = bb.BeliefNetwork.tan(only, "y", **({"weights": "w"} if weighted else {}))
    answers = tree.posterior({name: table[name][tested] for name in ("x", "z")})
    np.testing.assert_allclose(whole.posteriors[whole.folds == fold], np.column_stack([answers, np.zeros(len(tested))]))


# Columns that were not counted, or are not there ----------------------------------------------------------------------

ASKING = {
    "posterior": lambda network, rows: network.posterior(rows, of="play"),
    "log_joint": lambda network, rows: network.log_joint(rows, of="play"),
    "predict": lambda network, rows: network.predict(rows, of="play"),
    "log_likelihood": lambda network, rows: network.log_likelihood(rows),
}


def told(ask: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ask()
    return [str(each.message) for each in found]


@pytest.mark.parametrize("way", ASKING)
@pytest.mark.parametrize("tree", [False, True], ids=["structure", "tree"])
def test_a_misspelt_column_is_named_once_as_one_too_many_and_as_one_that_is_not_there(way, tree):
    parents = {"play": ["outlook", "wind"], "humidity": ["outlook"]}
    network = bb.BeliefNetwork.tan(DAYS, "play") if tree else bb.BeliefNetwork.count(DAYS, parents)
    rows = {("Wind" if name == "wind" else name): column for name, column in DAYS.items()}
    expected = [
        "these rows have no column 'wind', which is treated as missing",
        "column 'Wind' was not counted and is ignored",
    ]
    assert told(lambda: ASKING[way](network, rows)) == expected
    assert told(lambda: ASKING[way](network, DAYS)) == []  # "temperature" was in the table, and is no node


def test_neither_the_node_that_is_asked_for_nor_the_target_is_missed():
    network = bb.BeliefNetwork.tan(DAYS, "play")
    rows = {name: column for name, column in DAYS.items() if name not in ("play", "wind")}
    assert told(lambda: network.posterior(rows, of="wind")) == []
    assert told(lambda: network.posterior(rows)) == ["these rows have no column 'wind', which is treated as missing"]
    assert told(lambda: network.posterior({**rows, "wind": [None] * 14})) == []
    given_by_hand = bb.BeliefNetwork.from_tables(SPRINKLER, SPRINKLER_PARENTS)
    rows = {"sprinkler": [True], "Rain": [True], "cloudy": [None]}
    assert told(lambda: given_by_hand.predict(rows, of="wet")) == [
        "these rows have no column 'rain', which is treated as missing",
        "column 'Rain' was not counted and is ignored",
    ]


def test_a_classifier_that_is_given_a_column_too_many_says_so():
    frame = pd.DataFrame(DAYS).drop(columns="play")
    classifier = bb.TANClassifier().fit(frame, DAYS["play"])
    assert told(lambda: classifier.predict(frame.assign(note=1))) == ["column 'note' was not counted and is ignored"]


# Explanations --------------------------------------------------------------------------------------------------------


def tree_model(rows: Any, target: str, level: float | None = 0.05, **estimating: Any) -> bb.Model:
    return bb.estimate(bb.count(rows, target, features=bb.ColumnTree(level)), **estimating)


def test_evidence_that_rounds_to_nothing_has_no_minus():
    table = {"x": ["a"] * 500 + ["b"] * 1500, "z": [True, False] * 1000, "y": ["u", "v"] * 1000}
    found = tree_model(table, "y").explain({"x": "a", "z": True})
    little = replace(found, prior=-0.002, evidence=(*found.evidence, Evidence("w", 1, -0.001)))
    assert found.decibans > 20 and str(little).count("+0.00") == 3
    assert "-0.00" not in str(little) and "−0.00" not in little._repr_html_()


def test_a_columns_evidence_is_that_of_its_own_table_given_its_parents():
    model = tree_model(DAYS, "play", level=None)
    network = bb.BeliefNetwork.from_model(model)
    for k in range(14):
        row = {name: column[k] for name, column in DAYS.items()}
        found = model.explain(row)
        posterior = network.posterior({name: [value] for name, value in row.items()})[0]
        assert found.winner == model.classes[posterior.argmax()]
        assert found.probability == pytest.approx(posterior.max(), abs=1e-12)
        assert found.log_odds == pytest.approx(math.log(posterior.max() / posterior.min()), abs=1e-12)
        rows = [model.classes.index(name) for name in (found.winner, found.against)]
        for each in found.evidence:
            cell = [network.values[parent].index(row[parent]) for parent in network.parents[each.feature][1:]]
            own = network.tables[each.feature][network.values[each.feature].index(each.value)]
            for_, against = (own[(c, *cell)] for c in rows)
            assert each.decibans == pytest.approx(10 * math.log10(for_ / against), abs=1e-9)
        assert {each.feature for each in found.evidence} == set(network.nodes) - {"play"}


@given(tables(least=6), st.data())
def test_the_evidence_and_the_prior_add_up_to_the_odds(table, data):
    """Whatever the row lacks."""
    assume(len(set(table["d"]) - {None}) == 2)
    how = data.draw(st.sampled_from(["mean", "predictive", "map"]))
    tally = bb.count(table, "d", features=bb.ColumnTree(None, columns=dict.fromkeys("abc", "categorical")))
    model = bb.estimate(tally, how=how, alpha=1.5)
    row = {name: data.draw(st.sampled_from([None, "new", *COLUMNS[name]])) for name in "abc"}
    posterior = dict(zip(model.classes, model.posterior([row])[0], strict=True))
    found = model.explain(row)
    assert found.probability == pytest.approx(posterior[found.winner], abs=1e-12)
    odds = math.log(posterior[found.winner]) - math.log(posterior[found.against])
    assert found.log_odds == pytest.approx(odds, abs=1e-9)
    added = found.prior + sum(each.decibans for each in found.evidence)
    assert added == pytest.approx(found.decibans, abs=1e-9)


@given(tables(least=8), st.sampled_from([None, 0.5]), st.sampled_from(["mean", "mle"]))
def test_cross_validation_by_subtraction_is_that_of_trees_drawn_anew(table, level, how):
    table["d"] = ["k" if label is None else label for label in table["d"]]
    folds = np.arange(len(table["d"])) % 3
    tree = bb.ColumnTree(level, columns=FAMILIES_BUT_TARGET)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bb.BanburyWarning)
        found = bb.cross_validate(table, "d", folds=folds, features=tree, how=how)
        for fold in range(3):
            rest = {name: [v for v, k in zip(own, folds, strict=True) if k != fold] for name, own in table.items()}
            test = {name: [v for v, k in zip(own, folds, strict=True) if k == fold] for name, own in table.items()}
            model = bb.estimate(bb.count(rest, "d", features=tree), how=how)
            columns = [found.classes.index(name) for name in model.classes]
            np.testing.assert_allclose(
                found.posteriors[found.folds == fold][:, columns], model.posterior(test), atol=1e-12
            )


def test_a_row_of_probability_zero_is_answered_by_the_prior():
    rows = {"a": ["u", "u", "v", "w"], "b": ["s", "t", "t", "t"], "y": ["k", "k", "k", "l"]}
    model = tree_model(rows, "y", how="mle", level=None)
    with pytest.warns(bb.BanburyWarning, match="impossible"):
        assert model.posterior({"a": ["w"], "b": ["s"]}).round(12).tolist() == [[0.75, 0.25]]
    assert model.explain({"a": "u", "b": "t"}).decibans == math.inf


def test_a_tree_without_edges_is_explained_as_naive_bayes():
    rng = np.random.default_rng(4)
    rows = {name: rng.choice(["u", "v", "w"], 60) for name in "ab"} | {"y": rng.choice(["k", "l"], 60)}
    tree, model = tree_model(rows, "y", level=1e-300), bb.estimate(bb.count(rows, target="y"))
    assert bb.BeliefNetwork.from_model(tree).edges == [("y", "a"), ("y", "b")]
    for row in ({"a": "u", "b": "w"}, {"a": None, "b": "v"}, {"a": "new", "b": "u"}):
        ours, theirs = tree.explain(row), model.explain(row)
        assert str(ours) == str(theirs)
        assert ours.decibans == pytest.approx(theirs.decibans, abs=1e-12)


@pytest.mark.parametrize("labels", [["no", "yes"], [0, "yes"]], ids=["texts", "mixed"])
def test_a_row_left_out_is_explained_as_if_it_had_not_been_counted(labels):
    table = bb.datasets.play_tennis()
    table["play"] = [labels[label == "yes"] for label in table["play"]]
    model = tree_model(table, "play", level=None)
    for row in (0, 5, 13):
        own = {name: column[row] for name, column in table.items()}
        others = {name: column[:row] + column[row + 1 :] for name, column in table.items()}
        expected = bb.estimate(bb.count(others, "play", schema=model.schema)).explain(own)
        found = model.explain(own, held_out=True)
        assert (found.evidence, found.log_odds, found.winner) == (
            expected.evidence,
            expected.log_odds,
            expected.winner,
        )
        assert found.held_out and f"this row is in the training data as {str(own['play'])!r}" in str(found)


def test_a_row_that_cannot_be_left_out_of_a_tree_is_refused_by_name():
    table = bb.datasets.play_tennis()
    model = tree_model(table, "play", level=None)
    row = {name: column[0] for name, column in table.items() if name != "play"}
    for label, error, words in (
        (None, errors.BadSetting, "class is needed .* include it in the row as column 'play'"),
        ("yes", errors.NegativeCount, "not counted with class 'yes', so it cannot be left out"),
        ("maybe", errors.UnknownClass, "'maybe'"),
    ):
        with pytest.raises(error, match=words):
            model.explain(row, held_out=True, label=label)


def test_a_tree_leaves_a_row_out_whatever_its_class_weighs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    for weight in (None, "balanced"):
        found = bb.TANClassifier(class_weight=weight).fit(X, y).explain(X[3], held_out=True, label=y[3])
        assert found.held_out and "training data as 0" in str(found)


def test_a_classifier_learns_on_and_forgets():
    X, y = load_wine(return_X_y=True)
    whole = bb.TANClassifier().fit(X, y)
    expected = whole.predict_proba(X)
    rest = whole.forget(X[:40], y[:40]).predict_proba(X[40:])
    again = bb.estimate(bb.count(X[40:], y[40:], schema=whole.tally_.schema))
    np.testing.assert_array_equal(rest, again.posterior(X[40:])[:, : rest.shape[1]])
    np.testing.assert_array_equal(whole.partial_fit(X[:40], y[:40]).predict_proba(X), expected)


def test_a_classifier_explains_rows_of_every_form():
    frame = pd.DataFrame(DAYS).drop(columns="play")
    classifier = bb.TANClassifier(level=None).fit(frame, DAYS["play"])
    expected = str(classifier.model_.explain(dict(frame.iloc[0])))
    for row in (frame.iloc[0], frame[:1], frame.iloc[0].tolist()):
        assert str(classifier.explain(row)) == expected
    with pytest.raises(errors.BanburyError, match="row"):
        classifier.explain(frame[:2])
    with pytest.raises(errors.WrongWidth):
        classifier.explain(["sunny"])
    with pytest.raises(errors.UnknownClass):
        classifier.explain(frame[:1], against="perhaps")
    winner = classifier.predict(frame[:1])[0]
    assert classifier.explain(frame[:1], against=winner) == classifier.explain(frame[:1])


# Streams -------------------------------------------------------------------------------------------------------------


def test_a_column_that_widens_and_is_no_node_is_read_again(tmp_path):
    """It begins as numbers and goes on as words; each row is answered once."""
    network = bb.BeliefNetwork.tan(bb.datasets.play_tennis(), target="play")
    n = 650_000
    path = tmp_path / "wide.csv"
    path.write_text("outlook,note\n" + "sunny,1\n" * n + "rain,word\n" * 2)
    with pytest.warns(bb.BanburyWarning, match="column 'note' was not counted|no columns 'temperature'"):
        found = network.posterior(path)
    assert found.shape == (n + 2, 2)
    rows = {"outlook": ["sunny", "rain"], **{name: [None, None] for name in ("temperature", "humidity", "wind")}}
    expected = network.posterior(rows)
    np.testing.assert_array_equal(found[[0, n - 1, n, n + 1]], expected[[0, 0, 1, 1]])


def test_tables_say_what_is_wrong_with_their_shares():
    with pytest.raises(errors.BanburyError, match=r"one is -0\.5"):
        bb.BeliefNetwork.from_tables({"a": {True: 1.5, False: -0.5}})
    with pytest.raises(errors.BanburyError, match=r"these sum to 1\.001"):
        bb.BeliefNetwork.from_tables({"a": {True: 0.5, False: 0.501}})
    for asked in (None, 5):
        with pytest.raises(errors.BadSetting, match="a node, or several different nodes"):
            sprinkler().query(asked)


# What tables and evidence may be --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({5: {1: 0.5, 2: 0.5}}, "the name of a node must be a text. Got 5"),
        ({None: {1: 0.5, 2: 0.5}}, "the name of a node must be a text. Got None"),
        ({"a": {(1, 2): 0.5, 3: 0.5}}, r"the table of 'a' must have texts, numbers, .* but has \(1, 2\)"),
        ({"a": {float("nan"): 0.5, 1: 0.5}}, "the table of 'a' must have texts, numbers, .* but has nan"),
        ({"a": {b"x": 0.5, 1: 0.5}}, "the table of 'a' must have texts, numbers, .* but has b'x'"),
        ({"a": {1: 1e308, 2: 1e308}}, "sum to 1; these sum to inf"),
    ],
)
def test_nodes_have_names_and_values_that_a_file_can_hold(tables, said):
    with pytest.raises(errors.BanburyError, match=said):
        bb.BeliefNetwork.from_tables(tables)


def test_what_is_said_of_a_network_does_not_change_it():
    network = bb.BeliefNetwork.count(bb.datasets.play_tennis(), parents={"play": ["wind"]})
    network.parents["play"] = ()
    assert network.edges == [("wind", "play")]


def test_evidence_is_read_as_rows_are():
    from datetime import date
    from decimal import Decimal

    days = [date(2024, 1, 1), date(2024, 1, 2)] * 10
    for column in (days, [Decimal("1.5"), Decimal("2.5")] * 10, [1, "x"] * 10):
        table = {"a": column, "b": ["u", "v"] * 10}
        network = bb.BeliefNetwork.count(table, parents={"b": ["a"]}, features={"a": "categorical"})
        for value in column[:2]:
            rows = network.posterior({"a": [value], "b": [None]}, of="b")[0]
            assert list(network.query("b", {"a": value}).values()) == pytest.approx(rows.tolist())
            assert network.query("b", {"a": np.array(str(value))}) == network.query("b", {"a": value})
        with pytest.raises(errors.UnknownValue, match="'a' has no value"):
            network.query("b", {"a": object()})


def test_evidence_names_a_bin_once_and_no_number_beyond_all():
    table = {"a": [1.0, 1.1, 3.0, 3.1] * 10, "b": ["u", "u", "v", "v"] * 10}
    network = bb.BeliefNetwork.tan(table, target="b")
    first = network.values["a"][0]
    with pytest.raises(errors.BadSetting, match="one number for each value, and each value once"):
        network.query("b", {"a": {first: 0.1, 1.0: 0.9, 3.0: 0.5}})
    with pytest.raises(errors.UnknownValue, match="'a' has no value inf"):
        network.query("b", {"a": np.inf})
    with pytest.raises(errors.BadSetting, match="10,000,000,000 at most"):
        network.sample(2**63)


# Calibrated ----------------------------------------------------------------------------------------------------------


def repeated(n: int = 400) -> dict[str, Any]:
    """Flags that say the same four times, so that posteriors are too sure."""
    rng = np.random.default_rng(8)
    label = rng.integers(0, 3, n)
    flags = {f"flag {k}": (rng.random(n) < 0.3 + 0.2 * label).tolist() for k in range(4)}
    return {**flags, "y": np.array(["a", "b", "c"])[label].tolist()}


def test_the_shell_calibrates_a_tree(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(repeated()).to_csv("rows.csv", index=False)
    words = ["fit", "rows.csv", "--target", "y", "--tan", "--calibrate", "temperature", "-o", "tree.banbury"]
    assert main(words) == 0
    facts = json.loads(capsys.readouterr().out)
    assert any("before calibration" in note for note in facts["notes"]) and facts["calibration"].startswith(
        "temperature"
    )
    tree = bb.load("tree.banbury")
    assert tree.calibration is not None and tree.tally == bb.count("rows.csv", "y", features=bb.ColumnTree())
    assert main(["predict", "tree.banbury", "rows.csv", "--json"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert first["probability"] == pytest.approx(tree.posterior("rows.csv")[0].max())
    assert main(["show", "tree.banbury", "--table"]) == 0
    assert "calibrated: temperature" in capsys.readouterr().out
