"""Files of belief networks: what is saved comes back and answers alike; what does not fit together is refused."""

from __future__ import annotations

import contextlib
import datetime
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine

import banbury as bb
import golden_files
import hostile
import naive_files
from banbury.errors import BadFile, BadSetting, BanburyError, CyclicStructure

DAYS = bb.datasets.play_tennis()
PLAY = {"play": ["outlook", "wind"], "humidity": ["outlook"]}
WEIGHTS = [0.1, 0.7, 1.3, 2.0, 0.1, 1.0, 1.0, 3.5, 0.25, 1.0, 1.0, 0.9, 1e-9, 1e9]
ROOMS: dict[str, Any] = {
    "door": ["open", None, "shut", "shut", "open", "ajar", "open", "shut"] * 5,
    "celsius": [12.5, 14.0, None, 21.0, 22.5, 13.0, 30.0, -5.0] * 5,
    "floor": [1, 2, 2, 3, None, 1, 4, 2] * 5,
    "lit": [True, False, None, True, True, False, True, False] * 5,
    "full": ["yes", "no", "yes", None, "yes", "no", "no", "no"] * 5,
}
ROOM = {"celsius": ["door", "lit"], "floor": ["celsius"], "full": ["floor"], "lit": []}
ODD: dict[str, Any] = {  # rows with what is missing, never seen, or beyond all that was
    "door": ["open", "never", None, "shut"],
    "celsius": [13.0, 1e6, None, -1e6],
    "floor": [2, 77, None, 1],
    "lit": [True, None, None, False],
    "full": ["yes", "no", None, "perhaps"],
}


def rooms(**settings: Any) -> bb.BeliefNetwork:
    return bb.BeliefNetwork.count(ROOMS, ROOM, **settings)


def many_parents() -> bb.BeliefNetwork:
    """A node of seven parents, whose table has more axes than any other array."""
    shares = np.random.default_rng(0).dirichlet(np.ones(3), (2,) * 7)
    tables = {"sum": np.moveaxis(shares, -1, 0), **{f"p{k}": [0.25, 0.75] for k in range(7)}}
    values: dict[str, Any] = {"sum": [2.5, -1.0, 7.0], **{f"p{k}": ["b", "a"] for k in range(7)}}
    return bb.BeliefNetwork.from_tables(tables, {"sum": [f"p{k}" for k in range(7)]}, values=values)


def chain() -> bb.BeliefNetwork:
    """Of 300 nodes, the children named first."""
    table = {True: {True: 0.9, False: 0.1}, False: {True: 0.2, False: 0.8}}
    tables: dict[str, Any] = {f"n{k}": table for k in range(299, 0, -1)} | {"n0": {True: 0.3, False: 0.7}}
    return bb.BeliefNetwork.from_tables(tables, {f"n{k}": [f"n{k - 1}"] for k in range(1, 300)})


def of_wine() -> bb.BeliefNetwork:
    X, y = load_wine(return_X_y=True)
    return bb.TANClassifier().fit(X, y).network_


GIVEN: dict[str, Callable[[], bb.BeliefNetwork]] = {
    "tables given": golden_files.lawn,
    "tables of many parents": many_parents,
    "a chain": chain,
    "one coin": lambda: bb.BeliefNetwork.from_tables({"coin": {"heads": 0.3, "tails": 0.7}}),
    "values of many types": lambda: bb.BeliefNetwork.from_tables({"x": {None: 0.25, True: 0.25, 2: 0.25, "ü": 0.25}}),
    "values of NumPy's": lambda: bb.BeliefNetwork.from_tables(
        {"x": {np.int64(1): 0.5, np.int64(2): 0.5}, "y": [[0.1, 0.2], [0.9, 0.8]]},
        {"y": ["x"]},
        values={"y": np.array([3.5, 2.5])},
    ),
}
COUNTED: dict[str, Callable[[], bb.BeliefNetwork]] = {
    **{how: lambda how=how: rooms(how=how, alpha=0.5, seed=7) for how in ("mle", "map", "mean", "predictive", "gibbs")},
    "weighted": lambda: bb.BeliefNetwork.count(DAYS, PLAY, weights=WEIGHTS),
    "weighted in whole numbers": lambda: bb.BeliefNetwork.count(DAYS, PLAY, weights=range(14)),
    "scaled": lambda: rooms() * 0.3,
    "scaled to the skies": lambda: bb.BeliefNetwork.count(DAYS, PLAY) * 2.0**50,
    "two together": lambda: rooms() + rooms().count_more(ROOMS | {"door": ["hatch"] * 40}, weights=[0.5] * 40),
    "of nothing": lambda: rooms() - rooms(),
    "missing as a value": lambda: rooms(missing="category"),
    "declared values": lambda: rooms(
        features={
            "door": bb.Categorical(alpha={"ajar": 1, "open": 2.0, "shut": 3.0}, values=["open", "shut", "ajar"]),
            "celsius": bb.Bernoulli(alpha=2, beta=3, threshold=20.0),
            "floor": bb.Categorical(m=2),
            "full": bb.Bernoulli(yes="yes"),
        }
    ),
    "bins of a width": lambda: rooms(features={"celsius": bb.Histogram(start=0.1, width=0.3, alpha=0.25)}),
    "few bins": lambda: rooms(bins=2),
    "a tree": lambda: bb.BeliefNetwork.tan(ROOMS, target="full", level=None),
    "a tree from a root": lambda: bb.BeliefNetwork.tan(ROOMS, target="full", level=None, root="floor", weights=[0.3] * 40),
    "a tree of equal shares": lambda: bb.BeliefNetwork.tan(ROOMS, target="full", bins=3),
    "a tree of labels apart": lambda: bb.BeliefNetwork.tan({"full": ROOMS["full"]}, target=[1, 2, 2, 1, 1, 2, 3, 3] * 5),
    "a tree of an array": of_wine,
    "a tree with columns left out": lambda: bb.BeliefNetwork.tan(
        DAYS | {"note": ["a long text of many words"] * 14, "same": [1] * 14}, target="play"
    ),
}  # fmt: skip
NETWORKS = GIVEN | COUNTED


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "network.banbury"


def saved_and_loaded(network: bb.BeliefNetwork, path: Path) -> bb.BeliefNetwork:
    bb.save(network, path)
    again = bb.load(path)
    assert isinstance(again, bb.BeliefNetwork)
    return again


def assert_the_same(again: bb.BeliefNetwork, network: bb.BeliefNetwork) -> None:
    """All that is counted and said, to the last bit."""
    assert again == network
    assert repr(again) == repr(network)
    assert again._variables == network._variables
    assert again.parents == network.parents
    assert (again.target, again.columns, again._named) == (network.target, network.columns, network._named)
    assert again.choice == network.choice
    types = [[[type(value) for value in values] for values in each.values.values()] for each in (again, network)]
    assert types[0] == types[1]


def answers(network: bb.BeliefNetwork, rows: Any) -> Any:
    """What a network says, of itself and of rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bb.BanburyWarning)
        drawn = network.sample(30, seed=5)
        said: list[Any] = [{name: table.tolist() for name, table in network.tables.items()}, network.posteriors()]
        said += [network.log_likelihood(rows).tolist(), {name: column.tolist() for name, column in drawn.items()}]
        for node in network.nodes[:5]:
            known = {
                name: drawn[name].tolist()[0]
                for name in network.nodes[-4:]
                if name != node and drawn[name][0] is not None
            }
            said += [
                network.query(node),
                network.posterior(rows, of=node).tolist(),
                network.predict(rows, of=node).tolist(),
            ]
            said += [network.log_joint(rows, of=node).tolist(), network.log_probability(known)]
        return said


def rows_for(network: bb.BeliefNetwork) -> Any:
    if not network._named:
        return load_wine(return_X_y=True)[0]
    if set(network.nodes) & set(ODD):
        return ODD
    return {name: [None, *column.tolist()] for name, column in network.sample(20, seed=1).items()}


# Round trips ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_every_kind_come_back_and_answer_alike(name: str, path: Path) -> None:
    network = NETWORKS[name]()
    again = saved_and_loaded(network, path)
    assert_the_same(again, network)
    if name == "of nothing":
        with pytest.raises(bb.errors.EmptyData):
            again.query("door")
        return
    rows = rows_for(network)
    assert answers(again, rows) == answers(network, rows)


@pytest.mark.parametrize("name", COUNTED)
def test_what_was_counted_is_all_there(name: str, path: Path) -> None:
    network = COUNTED[name]()
    again = saved_and_loaded(network, path)
    assert (again.n_rows, again.n_parameters, again.bic) == (network.n_rows, network.n_parameters, network.bic)
    assert again.information == network.information
    assert again + network == network * 2
    assert again.estimate("mle") == network
    assert again.left_out == network.left_out


@pytest.mark.parametrize("weights", [None, [0.3, 1.0, 0.2]], ids=["whole", "weighted"])
@pytest.mark.parametrize("tree", [False, True], ids=["structure", "tree"])
def test_a_loaded_network_counts_on_and_forgets(tree: bool, weights: Any, path: Path) -> None:
    full = None if weights is None else [1.0] * 11 + weights
    made = (
        bb.BeliefNetwork.tan(DAYS, target="play", weights=full)
        if tree
        else bb.BeliefNetwork.count(DAYS, PLAY, weights=full)
    )
    again = saved_and_loaded(made, path)
    last = {name: column[-3:] for name, column in DAYS.items()}
    less = again - again.count_more(last, weights=weights)
    assert less == made - made.count_more(last, weights=weights)
    assert less.n_rows == pytest.approx(11.0)
    assert less + made.count_more(last, weights=weights) == made
    hail = again + again.count_more(
        {name: ["hail" if name == "outlook" else column[0]] for name, column in DAYS.items()}
    )
    assert hail.values["outlook"] == ("hail", "overcast", "rain", "sunny")
    with pytest.raises(bb.errors.NegativeCount):
        again - hail


def test_tables_that_were_given_stay_given(path: Path) -> None:
    again = saved_and_loaded(golden_files.lawn(), path)
    with pytest.raises(BadSetting, match="were given rather than counted"):
        again.count_more({"rain": [True]})
    assert round(again.query("rain", {"wet": True})[True], 4) == 0.7079


LABELS: dict[str, Any] = {
    "texts": ["a", "ü"],
    "a lone surrogate": ["\ud800", "a"],
    "whole numbers": [1, -7],
    "larger numbers": [-(2**70), 10**30],
    "booleans": [True, False],
    "real numbers": [0.1, 1e300],
    "of many types": [True, "x"],
    "flags and numbers": [True, -1],
    "an array of int8": np.array([1, 2], dtype=np.int8),
    "an array of texts": np.array(["a", "b"]),
    "an array of objects": np.array([np.str_("a"), np.float64(2.5)], dtype=object),
    "dates": [datetime.date(2020, 2, 29), datetime.date(1999, 12, 31)],
    "an array of dates": np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
    "bytes": [b"a", b"b"],
}


@pytest.mark.parametrize("name", LABELS)
def test_classes_of_every_type_come_back(name: str, path: Path) -> None:
    labels = [LABELS[name][k] for k in (0, 1, 1, 0, 0, 1)]
    labels = np.array(labels, dtype=LABELS[name].dtype) if isinstance(LABELS[name], np.ndarray) else labels
    network = bb.BeliefNetwork.tan({"x": list("aabbab"), "n": [1.0, 2.0, 2.0, 1.0, 1.0, 7.0]}, target=labels)
    again = saved_and_loaded(network, path)
    assert_the_same(again, network)
    rows = {"x": ["a", "b"], "n": [None, None]}
    assert again.predict(rows).tolist() == network.predict(rows).tolist()


def test_a_value_that_no_file_can_hold_is_refused_before_anything_is_written(path: Path) -> None:
    network = bb.BeliefNetwork.from_tables({"x": {10**5000: 1.0}})
    with pytest.raises(BadFile, match="cannot be saved"):
        bb.save(network, path)
    assert not path.exists()


@pytest.mark.parametrize("data", ["house_votes", "mushroom"])
def test_trees_of_real_tables_predict_as_they_did(data: str, path: Path, request: pytest.FixtureRequest) -> None:
    frame: pd.DataFrame = request.getfixturevalue(data)
    target = {"house_votes": "party", "mushroom": "class"}[data]
    X, y = frame.drop(columns=target), frame[target]
    clf = bb.TANClassifier().fit(X[::2], y[::2])
    again = saved_and_loaded(clf.network_, path)
    assert_the_same(again, clf.network_)
    np.testing.assert_allclose(again.posterior(X), clf.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))
    bb.save(clf.model_, path)
    model: Any = bb.load(path)
    assert model.tally == clf.tally_
    np.testing.assert_array_equal(model.posterior(X), clf.predict_proba(X))
    holes = X.mask(np.random.default_rng(0).random(X.shape) < 0.3)
    holes.iloc[:20, 2] = "never seen"
    np.testing.assert_allclose(again.posterior(holes), clf.predict_proba(holes), rtol=1e-12)
    rest = frame[1::2].rename(columns={target: "class"})
    assert again + again.count_more(rest) == clf.network_ + clf.network_.count_more(rest)


def test_numbers_beyond_their_bins_and_files_of_them_are_answered_alike(path: Path) -> None:
    network = bb.BeliefNetwork.tan(ROOMS, target="full", level=None)
    again = saved_and_loaded(network, path)
    table = path.with_suffix(".csv")
    pd.DataFrame(ODD).to_csv(table, index=False)
    np.testing.assert_array_equal(again.posterior(table), network.posterior(table))
    np.testing.assert_array_equal(again.posterior(table), network.posterior(ODD))
    assert again.query("full", {"celsius": 1e9}) == network.query("full", {"celsius": 1e9})
    with pytest.raises(bb.errors.UnknownValue, match="'door' has no value 'never'"):
        again.query("full", {"door": "never"})


def test_saving_the_same_network_twice_writes_the_same_bytes_and_threads_are_not_in_them(path: Path) -> None:
    bb.save(rooms(threads=1), path)
    once = path.read_bytes()
    bb.save(saved_and_loaded(rooms(threads=2), path), path)
    assert path.read_bytes() == once
    assert naive_files.packed(*naive_files.unpacked(once)) == once


def test_a_loaded_network_does_not_need_its_file_any_more(path: Path) -> None:
    for network in (rooms(), golden_files.lawn()):
        again = saved_and_loaded(network, path)
        path.write_bytes(bytes(path.stat().st_size))
        path.unlink()
        assert_the_same(again, network)


def test_min_count_is_about_words_and_leaves_networks_alone(path: Path) -> None:
    bb.save(rooms(), path, min_count=100)
    assert bb.load(path) == rooms()


def test_no_byte_of_a_forgotten_rows_own_values_is_in_the_file(path: Path) -> None:
    table = {"a": ["kept", "kept", "SECRET"], "b": ["u", "v", "HIDDEN"]}
    network = bb.BeliefNetwork.count(table, {"b": ["a"]})
    bb.save(network, path)
    assert b"SECRET" in path.read_bytes()
    bb.save(network - network.count_more({"a": ["SECRET"], "b": ["HIDDEN"]}), path)
    assert b"kept" in path.read_bytes() and b"SECRET" not in path.read_bytes() and b"HIDDEN" not in path.read_bytes()


VALUE = st.one_of(
    st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.text(max_size=3), st.none()
)


@st.composite
def made_by_hand(draw: st.DrawFn) -> bb.BeliefNetwork:
    """Up to five nodes, each with some of those before it as parents; shares may be zero."""
    nodes = draw(st.lists(st.text(max_size=3), min_size=1, max_size=5, unique=True))
    values = {name: draw(st.lists(VALUE, min_size=1, max_size=3, unique=True)) for name in nodes}
    parents = {
        name: draw(st.lists(st.sampled_from(nodes[:k]), unique=True)) if k else [] for k, name in enumerate(nodes)
    }
    rng = np.random.default_rng(draw(st.integers(0, 1000)))

    def table(name: str) -> Any:
        weights = rng.integers(0, 4, (len(values[name]), *(len(values[p]) for p in parents[name]))).astype(float)
        weights[0] += weights.sum(axis=0) == 0
        return weights / weights.sum(axis=0)

    return bb.BeliefNetwork.from_tables({name: _mapped(table(name), name, parents, values) for name in nodes}, parents)


def _mapped(table: Any, name: str, parents: Any, values: Any) -> Any:
    """An array as mappings, which take any values."""
    if not parents[name]:
        return dict(zip(values[name], table.tolist(), strict=True))
    found = {}
    for cell in np.ndindex(table.shape[1:]):
        above = tuple(values[p][k] for p, k in zip(parents[name], cell, strict=True))
        found[above] = dict(zip(values[name], table[(slice(None), *cell)].tolist(), strict=True))
    return found


@given(made_by_hand())
def test_any_network_made_by_hand_comes_back(network: bb.BeliefNetwork) -> None:
    again = loaded(hostile.saved(network))
    assert_the_same(again, network)
    assert again.posteriors() == network.posteriors()
    for node in network.nodes:
        assert again.query(node) == network.query(node)
    np.testing.assert_equal(again.sample(5, seed=2), network.sample(5, seed=2))


CELLS = st.one_of(st.sampled_from(["a", "b", "ü", None]), st.sampled_from(["a", None]))
COLUMNS: dict[str, Any] = {
    "w": CELLS,
    "i": st.one_of(st.none(), st.integers(-5, 5)),
    "x": st.one_of(st.none(), st.floats(-1e300, 1e300)),
    "b": st.one_of(st.none(), st.booleans()),
}


@given(
    rows=st.lists(st.tuples(*COLUMNS.values()), min_size=2, max_size=20),
    more=st.lists(st.tuples(*COLUMNS.values()), min_size=1, max_size=5),
    how=st.sampled_from(["mle", "map", "mean", "predictive", "gibbs"]),
    weight=st.sampled_from([None, 0.3, 2.0]),
    parents=st.sampled_from(
        [{"x": ["w"], "b": ["x", "i"]}, {"w": ["i"], "i": ["b"], "x": ["b"]}, {"x": ["b", "w", "i"]}]
    ),
)
def test_any_network_that_was_counted_comes_back(rows: Any, more: Any, how: Any, weight: Any, parents: Any) -> None:
    families = {"w": "categorical", "i": "categorical", "x": bb.Histogram(), "b": "bernoulli"}
    table, others = ({name: [row[k] for row in each] for k, name in enumerate(COLUMNS)} for each in (rows, more))
    if any(all(cell is None for cell in column) for column in (*table.values(), *others.values())):
        return  # a column of nothing has no type
    weights = None if weight is None else [weight] * len(rows)
    network = bb.BeliefNetwork.count(table, parents, how=how, features=families, weights=weights)
    again = loaded(hostile.saved(network))
    assert_the_same(again, network)
    assert answers(again, table) == answers(network, table)
    assert again + again.count_more(others) - again.count_more(others) == network


def loaded(content: bytes) -> bb.BeliefNetwork:
    found = hostile.loaded(content)
    assert isinstance(found, bb.BeliefNetwork)
    return found


# What does not fit together -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("thing", ["network", None], ids=str)
def test_what_is_no_network_is_not_saved(thing: Any, path: Path) -> None:
    with pytest.raises(BadSetting, match="a BeliefNetwork or a fitted estimator"):
        bb.save(thing, path)
    assert not path.exists()


@pytest.mark.parametrize("network", [golden_files.lawn, lambda: bb.BeliefNetwork.count(DAYS, {"play": ["wind"]})])
def test_a_flipped_bit_is_found_in_every_byte(network: Any, path: Path) -> None:
    content = hostile.saved(network())
    for _ in hostile.flipped(content, (8 * at + at % 8 for at in range(len(content))), path):
        with pytest.raises(BadFile):
            bb.load(path)


def test_a_long_cycle_is_told_shortly_and_at_once(path: Path) -> None:
    content = hostile.saved(chain())

    def closed(about: Any) -> Any:
        nodes = [node | {"parents": node["parents"] or ["n299"]} for node in about["network"]["nodes"]]
        return about | {"network": about["network"] | {"nodes": nodes}}

    path.write_bytes(naive_files.rewritten(content, closed))
    with pytest.raises(BadFile, match="the parents make a cycle") as caught:
        bb.load(path)
    assert len(str(caught.value)) < 500
    with pytest.raises(CyclicStructure) as of_its_own:
        bb.BeliefNetwork.count({"a": [1], "b": [1]}, {f"n{k}": [f"n{(k + 1) % 30}"] for k in range(30)})
    assert len(of_its_own.value.cycle) == 31 and "…" in str(of_its_own.value)


def test_a_network_scaled_beyond_all_bounds_is_refused() -> None:
    with pytest.raises(BadSetting, match=r"fewer than 2\*\*63 rows"):
        rooms() * 1e100 * 1e100


def test_rows_that_were_never_counted_are_not_forgotten() -> None:
    """A row that has the value alone takes nothing from the rows that have it with their parents' values."""
    network = bb.BeliefNetwork.count({"a": ["u", "u", None], "b": ["s", "t", "t"]}, {"b": ["a"]})
    alone = network.count_more({"a": [None], "b": ["s"]})
    with pytest.raises(bb.errors.NegativeCount, match="'b' = 's'"):
        network - alone


def test_a_prior_next_to_nothing_underflows_nowhere() -> None:
    for unseen in ({"door": ["never"]}, {"floor": [77]}):
        network = rooms(alpha=5e-324)
        row = {name: unseen.get(name, [None]) for name in network.nodes}
        shares = network.posterior(row, of="celsius")
        assert np.isfinite(shares).all() and shares.sum() == pytest.approx(1.0)


STRANGE: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**63, 10**30, 0.5, -0.5, 1e308, -1e308, 5e-324, float("inf"), float("nan")),
    *("", "a", "door", "text", "histogram", "categorical", "bernoulli", "integer", "string", "\0", [], [[]], {}, [0]),
    *(["a"], ["door"], [1, 2], [1.0, 2.0], [-1e308, 1e308], ["celsius", "lit"], {"pairs": []}, {"alpha": 0}, {"a": 1}),
]  # fmt: skip


def places(tree: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all that is in a JSON text."""
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [way, *(each for key, value in inner for each in places(value, (*way, key)))]


def put(tree: Any, way: tuple[Any, ...], value: Any) -> Any:
    """The JSON text with another value in one place."""
    if not way:
        return value
    if isinstance(tree, list):
        return [put(each, way[1:], value) if i == way[0] else each for i, each in enumerate(tree)]
    return {key: put(each, way[1:], value) if key == way[0] else each for key, each in tree.items()}


FUZZED = {
    "rooms": lambda: rooms(missing="category"),
    "weighted": lambda: rooms(weights=[0.3] * 40),
    "tree": lambda: bb.BeliefNetwork.tan(ROOMS, target="full", level=None),
    "given": golden_files.lawn,
}


@cache
def fuzzed(name: str) -> bytes:
    """A file to be changed."""
    return hostile.saved(FUZZED[name]())


@settings(max_examples=400)
@given(data=st.data())
def test_contents_that_are_anything_are_loaded_or_refused(data: st.DataObject) -> None:
    """Rightly signed, so that nothing but what is in it can be the reason to refuse it; what is loaded answers."""
    about, arrays = naive_files.unpacked(fuzzed(data.draw(st.sampled_from(sorted(FUZZED)))))
    for _ in range(data.draw(st.integers(0, 2))):
        way = data.draw(st.sampled_from(sorted(places(about), key=str)))
        about = put(about, way, data.draw(st.sampled_from(STRANGE)))
    for _ in range(data.draw(st.integers(0, 2))):
        name = data.draw(st.sampled_from(sorted(arrays)))
        at, raw = data.draw(st.integers(0, arrays[name].size - 1)), data.draw(st.binary(min_size=8, max_size=8))
        arrays[name].flat[at] = np.frombuffer(raw, dtype=arrays[name].dtype)[0]
    with contextlib.suppress(BadFile):
        found = hostile.loaded(naive_files.packed(about, arrays))
        assert isinstance(found, bb.BeliefNetwork)
        assert_answers(found)


def assert_answers(network: bb.BeliefNetwork) -> None:
    """Probabilities, or a named error."""
    assert str(network)
    rows = ODD | {"rain": [True, None, None, False]}
    for node in network.nodes:
        with contextlib.suppress(BanburyError), warnings.catch_warnings():
            warnings.simplefilter("ignore", bb.BanburyWarning)
            shares = network.posterior(rows, of=node)
            np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-6)
            assert sum(network.query(node).values()) == pytest.approx(1.0)
    with contextlib.suppress(BanburyError):
        assert all(column.dtype.kind != "f" or np.isfinite(column).all() for column in network.sample(5).values())


def test_more_parents_than_an_array_has_axes_are_refused(path: Path) -> None:
    names = [f"p{k}" for k in range(70)]
    one = bb.BeliefNetwork.from_tables({name: {"a": 1.0} for name in (*names, "s")})

    def crowded(about: Any) -> Any:
        nodes = [node | {"parents": names if node["name"] == "s" else []} for node in about["network"]["nodes"]]
        return about | {"network": about["network"] | {"nodes": nodes}}

    path.write_bytes(naive_files.rewritten(hostile.saved(one), crowded))
    with pytest.raises(BadFile, match="do not fit together"):
        bb.load(path)
