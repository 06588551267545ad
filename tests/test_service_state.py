"""The state behind the service: what was acknowledged is there, exactly and after any crash; what was deleted is nowhere."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banbury as bb
import serving
from banbury import errors
from banbury.service.fields import fields
from banbury.service.inspection import Inspection
from banbury.service.log import DiskFull
from banbury.service.refitting import Refitting
from banbury.service.rows import rows_of
from banbury.service.state import Delete, NotKept, Put, ServedState, StateInUse, Together, Undo, UnknownRow
from banbury.tally.table import Table

INFINITY = float("inf")
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
MODELS: dict[str, Any] = {}


def model_of(kind: str) -> Any:
    if kind not in MODELS:
        MODELS[kind] = serving.KINDS[kind][0]()
    return MODELS[kind]


def naive(base: bb.Tally, rows: dict[str, tuple[Any, Any]], state: ServedState) -> bb.Tally:
    """The tally of a base and rows, by counting each as anyone would."""
    for row, label in rows.values():
        if label is not None:
            one: Any = [row] if isinstance(row, str) else row
            if isinstance(row, dict):
                one = {name: [row.get(name)] for name in base.schema.columns}
            elif isinstance(row, list):
                one = np.array([row])
            base = base + base.count(one, [label])
    return base.to(state.learner.tally().schema)


class Oracle:
    """What a state should hold: rows by id, and the changes that can be undone."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[Any, Any]] = {}
        self.stack: list[tuple[str, tuple[Any, Any] | None]] = []

    def put(self, id: str, row: Any, label: Any) -> None:
        before = self.rows.get(id)
        if before == (row, label):
            return
        if before is not None or label is not None:
            self.stack.append((id, before))
        self.rows[id] = (row, label)

    def delete(self, id: str) -> bool:
        self.stack = [(own, before) for own, before in self.stack if own != id]
        return self.rows.pop(id, None) is not None

    def undo(self) -> bool:
        if not self.stack:
            return False
        id, before = self.stack.pop()
        self.rows[id] = (self.rows[id][0], None) if before is None else before
        return True


def checked(state: ServedState, oracle: Oracle, base: bb.Tally) -> None:
    rows = {row["id"]: (row["row"], row["label"]) for row in state.rows(n=-1)}
    assert rows == oracle.rows
    tally = state.learner.tally()
    assert tally == naive(base, rows, state)
    assert state.verify()["equal"]
    given = state.learner.rows.batch([row for row, _ in rows.values()] or [serving.KINDS["texts"][1](random.Random(0))])
    if rows and tally.classes and any(label for _, label in rows.values()):
        said, _ = state.learner.current_model()
        fresh = state.learner.settings.model(tally)
        np.testing.assert_allclose(said.posterior(given), fresh.posterior(given), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("kind", serving.KINDS)
@settings(max_examples=40 if THOROUGH else 3)
@given(seed=st.integers(0, 2**32))
def test_any_changes_leave_what_counting_the_rows_anew_does(
    kind: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Learned, moved, replaced, unlabelled, undone, deleted, together, restarted, in any order: sums are those of the rows."""
    folder, rng = tmp_path_factory.mktemp("state"), random.Random(seed)
    model, oracle, (_, row_of, label_of) = model_of(kind), Oracle(), serving.KINDS[kind]
    known = [row_of(rng) for _ in range(3)]
    state = ServedState.of(model, folder)
    for _ in range(25):
        id, row = f"r{rng.randint(0, 4)}", rng.choice(known) if rng.random() < 0.5 else row_of(rng)
        label = None if rng.random() < 0.15 else label_of(rng)
        label = sorted(label) if isinstance(label, list) else label
        act = rng.choice(["put"] * 5 + ["delete", "undo", "undo", "together", "restart", "snapshot"])
        if act == "put":
            state.change(Put(id, row, label, new_class=True))
            oracle.put(id, row, label)
        elif act == "together":
            state.change(Together((Put(id, row, label, new_class=True), Put("z", row, label))))
            oracle.put(id, row, label)
            oracle.put("z", row, label)
        elif act == "delete":
            if oracle.delete(id):
                state.change(Delete(id))
            else:
                with pytest.raises(UnknownRow, match=id):
                    state.change(Delete(id))
        elif act == "undo":
            if oracle.undo():
                state.change(Undo())
            else:
                with pytest.raises(UnknownRow, match="no change to undo"):
                    state.change(Undo())
        elif act == "snapshot":
            state.snapshot()
        else:
            digest = state.digest()
            if rng.random() < 0.5:
                state.close()
            else:  # as if it had been killed: nothing is left behind in order
                kept = folder.with_name(f"{folder.name}-{rng.random()}")
                shutil.copytree(folder, kept)
                state.close()
                folder = kept
            state = ServedState.of(None, folder)
            assert state.digest() == digest
    checked(state, oracle, model.tally)
    state.close()


def test_the_same_again_changes_nothing(tmp_path: Path) -> None:
    with ServedState.of(serving.texts_model(), tmp_path / "state") as state:
        first = state.change(Put("1", "free money", "spam"))
        again = state.change(Put("1", "free money", "spam"))
        assert (first["action"], again["action"], first["change"]) == ("learned", "unchanged", again["change"])
        assert len(state.history()) == 1


def test_what_is_committed_together_can_be_undone_and_deleted_at_once(tmp_path: Path) -> None:
    """Changes that wait are committed in groups: one sees what those before it did."""
    with ServedState.of(serving.texts_model(), tmp_path / "state") as state:
        digest = state.digest()[0]
        put, other = Put("1", "free money", "spam"), Put("1", "free lunch", "ham")
        told = state.change(Together((put, other, Undo(), Undo("1"), put, Delete("1"))))["rows"]
        assert [each["action"] for each in told] == ["learned", "replaced", "undone", "undone", "learned", "deleted"]
        assert [each.get("label") for each in told] == ["spam", "ham", "spam", None, "spam", None]
        assert state.digest()[0] == digest


def test_all_rows_forgotten_leave_nothing_and_learning_goes_on(tmp_path: Path) -> None:
    model = bb.estimate(bb.count(["a b", "c"], target=["x", "y"]))
    empty = model.tally - model.tally
    with ServedState.of(empty, tmp_path / "state") as state:
        with pytest.raises(errors.EmptyData, match="has not learned any rows yet"):
            state.learner.current_model()
        for id, row, label in (("1", "a b", "x"), ("2", "c", "y")):
            state.change(Put(id, row, label, new_class=True))
        assert state.digest()[0] == model.tally.digest()
        state.change(Delete("1"))
        state.change(Delete("2"))
        assert state.digest()[0] == empty.digest()
    with ServedState.of(None, tmp_path / "state") as state:
        assert state.digest()[0] == empty.digest()
        state.change(Put("3", "a b", "x", new_class=True))
        assert state.learner.current_model()[0].classes == ("x",)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("classes", "label", "expected"),
    [([0, 1], "1", 1), (["0", "1"], 1, "1"), ([1.0, 2.5], "1", 1.0), ([True, False], "true", True)],
)
def test_a_label_is_the_class_with_the_same_text(classes: list[Any], label: Any, expected: Any) -> None:
    model = bb.estimate(bb.count({"x": [0.5, 1.5]}, target=classes))
    with ServedState.of(model) as state:
        assert state.learner.rows.label(label, state.learner.classes) == expected


def test_a_new_class_must_be_asked_for(tmp_path: Path) -> None:
    model = bb.estimate(bb.count({"x": [0.5, 1.5]}, target=[0, 1]))
    with ServedState.of(model, tmp_path / "state") as state:
        with pytest.raises(
            errors.UnknownClass, match=r'no class 7\.\n  Classes: 0, 1\. .* send "new_class": true'
        ) as raised:
            state.change(Put("1", {"x": 2.5}, 7))
        assert "Did you mean" not in str(raised.value) and state.learner.n_rows == 2
        assert state.change(Put("1", {"x": 2.5}, 7, new_class=True))["action"] == "learned"
        assert state.change(Put("2", {"x": 2.5}, "7"))["label"] == 7
        with pytest.raises(errors.BadSetting, match="label must be a number"):
            state.change(Put("3", {"x": 2.5}, "seven", new_class=True))


def test_the_page_names_numbers_that_rows_have(tmp_path: Path) -> None:
    rng = np.random.default_rng(46)
    table = {"siblings": rng.poisson(0.5, 300).astype(float), "age": rng.uniform(0.4, 80, 300).round(1)}
    schema = bb.Schema.infer(table, features={"siblings": "quantile_tree", "age": "quantile_tree"})
    model = bb.estimate(bb.count(table, target=["a", "b"] * 150, schema=schema))
    with ServedState.of(model, tmp_path / "state") as state:
        ranges = {field["name"]: (field["low"], field["high"]) for field in fields(state)["fields"]}
    assert ranges["siblings"] == (0.0, float(np.quantile(table["siblings"], 0.9, method="higher")))
    low, high = ranges["age"]
    assert low in table["age"] and high in table["age"] and 0.4 <= low < 12 and 68 < high <= 80
    sheet = bb.plots.NomogramDisplay.from_model(model, "a")
    for name, column in table.items():
        assert (sheet.scales[name].values[0], sheet.scales[name].values[-1]) == (column.min(), column.max())


def test_a_missing_value_that_tells_is_called_so(tmp_path: Path) -> None:
    table = {"cabin": [None, None, None, "C", "C", "C"] * 5, "y": ["a", "a", "a", "b", "b", "b"] * 5}
    model = bb.estimate(bb.count(table, target="y", missing="category"))
    with ServedState.of(model, tmp_path / "state") as state:
        informative = Inspection(state).overview()["informative"]
    assert {ratio["value"] for of_class in informative for ratio in of_class["ratios"]} == {"missing", "C"}


@pytest.mark.parametrize("shift", [0.0, 4.0])
def test_drift_is_reported_beyond_the_noise_only(shift: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(46)
    labels = ["a", "b"] * 100
    values = rng.normal(size=(200, 3)) + (np.arange(200) >= 180)[:, None] * shift
    model = bb.estimate(bb.count(values[:40], target=labels[:40]))
    with ServedState.of(model, tmp_path / "state") as state:
        for k in range(200):
            state.change(Put(f"{k:03}", values[k].tolist(), labels[k]))
        drift = Inspection(state).overview()["drift"]
    assert drift["message"].startswith("No drift detected" if not shift else "The last 20 rows differ")
    assert bool(drift["differences"]) == bool(shift)


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, row, label, words",
    [
        ("texts", 3, "ham", "row 0 is 3"),
        ("texts", "a b", {"x": 1}, "label must be"),
        ("texts", "a b", "", "non-empty"),
        ("texts", "a b", 1, "no class 1"),
        ("texts", {"txt": "a b"}, "ham", "no column 'txt'"),
        ("table", {"age": "old"}, "yes", "'age'"),
        ("table", {"ward": 3}, "yes", "must contain a text"),
        ("table", {"age": [1, 2]}, "yes", "'age'"),
        ("table", {"age": 2**70}, "yes", "64-bit"),
        ("table", {"aeg": 2}, "yes", "Did you mean 'age'"),
        ("table", {}, "yes", "some of the columns"),
        ("table", [1], "yes", "5 features"),
        ("labels", "a b", "grain", "a list of labels"),
        ("labels", "a b", [["grain"]], "label must be"),
        ("table", {"age": "old"}, None, "'age'"),
        ("table", {"fever": 1e300}, None, "'fever'"),
        ("families", {"poisson": -1}, None, "'poisson'"),
        ("numbers", [1e300, 2, 3], None, "'x0'"),
        ("numbers", [1, 2, 3], INFINITY, "finite"),
        ("numbers", [1, 2, INFINITY], None, "finite"),
        ("table", {"age": float("nan")}, None, "finite"),
        ("texts", "a \ud800", "ham", "valid Unicode"),
        ("texts", "a b", "\ud800", "valid Unicode"),
    ],
)
def test_what_cannot_be_learned_changes_nothing(kind: str, row: Any, label: Any, words: str, tmp_path: Path) -> None:
    with ServedState.of(model_of(kind), tmp_path / "state") as state:
        digest = state.digest()
        with pytest.raises(errors.BanburyError, match=words):
            state.change(Put("1", row, label))
        good = serving.KINDS[kind][1](random.Random(0))
        first = Put("0", good, serving.KINDS[kind][2](random.Random(0)), new_class=True)
        with pytest.raises(errors.BanburyError, match=words):  # nor does what comes together with it
            state.change(Together((first, Put("1", row, label))))
        assert state.digest() == digest
        assert state.rows() == []


@pytest.mark.parametrize("labels", [["grain", 1.5], [True, "grain"], [0, False]])
def test_the_first_labels_are_of_one_kind(labels: list[Any], tmp_path: Path) -> None:
    """In one set, and in rows that are learned together."""
    empty = model_of("labels").tally - model_of("labels").tally
    with ServedState.of(empty, tmp_path / "state") as state:
        for wanted in (
            Put("1", "a b", labels),
            Together(tuple(Put(str(n), "a", [label]) for n, label in enumerate(labels))),
        ):
            with pytest.raises(errors.UnknownClass):
                state.change(wanted)
        assert state.rows() == []


def test_a_model_that_json_cannot_name_is_not_served(tmp_path: Path) -> None:
    for data, target in (({"x": [1.0, 2.0]}, [0.0, INFINITY]), ({"\ud800": [1.0, 2.0]}, ["a", "b"])):
        with pytest.raises(errors.BadValue, match="written as JSON"):
            ServedState.of(bb.estimate(bb.count(data, target)), tmp_path / "state")


def test_a_change_without_a_response_is_not_made(tmp_path: Path) -> None:
    """Whatever fails in one change, nothing of it is stored, and those committed with it are."""

    def fail(answer: Any) -> Any:
        raise RecursionError(answer["action"])

    with ServedState.of(serving.texts_model(), tmp_path / "state") as state:
        state.change(Put("0", "cheap", "spam"))
        wanted = [
            Put("0", "cheap", "ham"),
            Put("1", "lunch", "ham"),
            Delete("0"),
            Undo(),
            Together((Delete("0"), Put("2", "a", "ham"))),
        ]
        futures = [
            state.submit(each, fail) if n % 2 else state.submit(Put(f"ok{n}", "noon", "ham"))
            for n, each in enumerate(wanted * 2)
        ]
        problems = [type(future.exception()) for future in futures]
        assert problems == [type(None), RecursionError] * 5
        rows = {row["id"]: row["label"] for row in state.rows()}
        assert rows == {"0": "spam"} | {f"ok{n}": "ham" for n in range(0, 10, 2)}
        assert state.verify()["equal"]
        digest = state.digest()
    with ServedState.of(None, tmp_path / "state") as state:
        assert state.digest() == digest


def test_nobody_sees_a_change_that_is_not_made(tmp_path: Path) -> None:
    """A digest that was asked for meanwhile would be remembered for the next change, which gets the same number."""
    digests: list[Any] = []

    def ask_and_fail(answer: Any) -> Any:
        reader.start()
        reader.join(0.1)
        raise ValueError("no response")

    with ServedState.of(serving.texts_model(), tmp_path / "state") as state:
        reader = threading.Thread(target=lambda: digests.append(state.digest()))
        with pytest.raises(ValueError, match="no response"):
            state.submit(Put("1", "cheap", "spam"), ask_and_fail).result()
        reader.join()
        assert digests == [(serving.texts_model().tally.digest(), 0)]
        state.change(Put("2", "lunch", "ham"))
        assert state.digest() == (state.learner.tally().digest(), 1)


@pytest.mark.parametrize("kind", ["texts", "weighed texts", "labels"])
def test_what_was_derived_from_sums_that_were_taken_back_is_forgotten(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServedState.of(model_of(kind), tmp_path / "state") as state:
        learner = state.learner
        digest = state.digest()
        posterior = learner.current_model()[0].posterior(["cheap lunch"])
        learn = learner.add
        seen: list[Any] = []

        def learn_one(part: Any) -> None:
            if learner.change == 0:
                return learn(part)
            seen.append(state.digest())
            learner.current_model()
            raise errors.BadValue("the second row cannot be learned")

        label: Any = ["grain"] if kind == "labels" else "ham"
        with monkeypatch.context() as patched:
            patched.setattr(learner, "add", learn_one)
            with pytest.raises(errors.BadValue, match="second row"):
                state.change(Together((Put("1", "cheap lunch", label), Put("2", "cheap", label))))
        assert seen[0][1] == 1
        assert state.digest() == digest
        np.testing.assert_allclose(learner.current_model()[0].posterior(["cheap lunch"]), posterior, rtol=1e-12)
        state.change(Put("3", "noon", label))
        assert state.digest() == (learner.tally().digest(), 1)
        fresh = learner.settings.model(learner.tally()).posterior(["cheap lunch"])
        np.testing.assert_allclose(learner.current_model()[0].posterior(["cheap lunch"]), fresh, rtol=1e-12)


def test_a_change_that_nobody_waits_for_any_more_is_not_made(tmp_path: Path) -> None:
    with ServedState.of(serving.texts_model(), tmp_path / "state") as state:
        begin = threading.Event()
        busy = threading.Thread(target=state._run_between_commits, args=(begin.wait,))
        busy.start()
        while state.waiting:
            time.sleep(0.001)
        cancelled = state.submit(Put("1", "cheap", "spam"))
        other = state.submit(Put("2", "cheap", "spam"))
        assert cancelled.cancel()
        begin.set()
        assert other.result()["action"] == "learned"
        assert [row["id"] for row in state.rows()] == ["2"]
        busy.join()


@pytest.mark.parametrize("id", ["", "a\0b", "a\nb", "x" * 600, "\ufffd", 3, None])
def test_an_id_is_a_text_that_can_be_printed(id: Any, tmp_path: Path) -> None:
    with (
        ServedState.of(serving.texts_model(), tmp_path / "state") as state,
        pytest.raises(errors.BadSetting, match="id must be"),
    ):
        state.change(Put(id, "a", "ham"))


def test_a_second_server_refuses(tmp_path: Path) -> None:
    with (
        ServedState.of(serving.texts_model(), tmp_path / "state"),
        pytest.raises(StateInUse, match="another server is using"),
    ):
        ServedState.of(None, tmp_path / "state")
    ServedState.of(None, tmp_path / "state").close()


def test_another_model_or_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.BadFile, match="state cannot be created there"):
        ServedState.of(None, tmp_path / "state")
    (tmp_path / "state").mkdir()
    with pytest.raises(errors.BadSetting, match="does not contain a state yet"):
        ServedState.of(None, tmp_path / "state")
    ServedState.of(serving.texts_model(), tmp_path / "state").close()
    ServedState.of(serving.texts_model(), tmp_path / "state").close()
    with pytest.raises(errors.BadSetting, match="created with another model"):
        ServedState.of(serving.plain_table(), tmp_path / "state")
    with ServedState.of(serving.texts_model()) as state, pytest.raises(NotKept, match="without a state"):
        state.change(Put("1", "a", "ham"))


def test_a_prior_that_lacks_a_class_refuses_it(tmp_path: Path) -> None:
    model = serving.texts_model().with_class_prior({"ham": 0.5, "spam": 0.5})
    with ServedState.of(model, tmp_path / "state") as state:
        digest = state.digest()
        with pytest.raises(errors.BadSetting, match="class_prior"):
            state.change(Put("1", "a b", "news", new_class=True))
        assert state.digest() == digest
        state.change(Put("1", "a b", "ham"))
        assert state.verify()["equal"]


# Purging --------------------------------------------------------------------------------------------------------------


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


@pytest.mark.parametrize("kind", ["texts", "weighed texts", "labels", "weighed table"])
def test_no_byte_of_a_deleted_row_is_left(kind: str, tmp_path: Path) -> None:
    """Moved, replaced, undone, snapshotted and long: once the answer is there, no file of the state has a word of it."""
    folder, secret = tmp_path / "state", "xyzzyplugh"
    label: Any = ["grain"] if kind == "labels" else "yes" if kind == "weighed table" else "ham"
    other: Any = ["fuel"] if kind == "labels" else "no" if kind == "weighed table" else "spam"
    long = f"{secret} " + " ".join(f"{secret}{n}" for n in range(2_000))
    row = {"note": long, "ward": f"{secret}-ward"} if kind == "weighed table" else long
    with ServedState.of(model_of(kind), folder) as state:
        before = state.digest()[0]
        state.change(Put("1", row, label, note=f"{secret} note"))
        assert secret.encode() in bytes_of(folder)
        state.change(Put("1", row, other))
        state.snapshot()
        state.change(Put("1", {"note": f"{secret} again"} if kind == "weighed table" else f"{secret} again", other))
        state.change(Undo())
        state.change(Put("2", serving.KINDS[kind][1](random.Random(0)), label))
        state.change(Delete("1"))
        assert secret.encode() not in bytes_of(folder)
        assert {frozenset(each) for each in state.history("1")} == {frozenset(["change", "time", "id", "action"])}
        state.change(Delete("2"))
        assert state.digest()[0] == before
    assert secret.encode() not in bytes_of(folder)
    with ServedState.of(None, folder) as state:
        assert state.digest()[0] == before


def test_snapshots_beside_the_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written while rows are learned and deleted: no deleted word is in one, a restart goes on from the last, and one is left."""
    monkeypatch.setattr("banbury.service.state.SNAPSHOT_EVERY", 7)
    folder, rng, there = tmp_path / "state", random.Random(0), dict[str, str]()
    state = ServedState.of(serving.texts_model(), folder)

    def at_rest(work: Any, *given: Any) -> Any:
        return state._run_between_commits(lambda: (state._wait_for_snapshot(), work(*given))[1])

    for n in range(120):
        id, word = str(rng.randint(0, 9)), f"secret{n}x"
        state.change(Put(id, f"{word} lunch", rng.choice(["ham", "spam"])))
        there[id] = word
        if rng.random() < 0.4:
            gone = rng.choice(list(there))
            state.change(Delete(gone))
            assert there.pop(gone).encode() not in at_rest(bytes_of, folder)
        if n % 40 == 39:
            digest, kept = state.digest(), folder.with_name(f"{folder.name}{n}")
            at_rest(shutil.copytree, folder, kept)  # as if it had been killed
            state.close()
            assert len(list(folder.glob("snapshot-*"))) == 1
            state, folder = ServedState.of(None, kept), kept
            assert state.digest() == digest
            assert state.verify()["equal"]
            assert state.snapshot_at > 0
    state.close()


def test_compaction_drops_history_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with ServedState.of(serving.texts_model(), folder) as state:
        for n in range(200):
            state.change(Put(str(n % 20), f"word{n} cheap lunch", ("ham", "spam")[n % 2]))
        state.change(Delete("3"))
        digest, rows, size = state.digest(), state.rows(), (folder / "log.sqlite").stat().st_size
        state.compact()
        assert (folder / "log.sqlite").stat().st_size < size
        assert (state.digest(), state.rows()) == (digest, rows)
        assert len(state.history()) == 20
        with pytest.raises(UnknownRow):
            state.change(Undo())
        state.change(Put("4", "once more", "ham"))
        assert state.change(Undo())["id"] == "4"
        assert state.verify()["equal"]
    with ServedState.of(None, folder) as state:
        assert state.verify()["equal"]


# Faults ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_killed_again_and_again(tmp_path: Path) -> None:
    """Eight clients, killed in the middle: every acknowledged change is there, and of others only one that was under way."""
    loops = 200 if THOROUGH else 20
    command = [sys.executable, serving.__file__, str(tmp_path / "state"), str(loops), "7"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows: dict[str, Any] = {}
    n_done = 0
    for line in done.stdout.splitlines():
        loop = json.loads(line)
        under_way: dict[str, Any] = {}
        for told in loop["told"]:
            if "begun" in told:
                under_way[told["begun"]] = told["to"]
            elif "done" in told:
                n_done += 1
                to = under_way.pop(told["done"])
                rows.pop(told["done"], None)
                rows |= {} if to is None else {told["done"]: to}
        found = loop["found"]
        assert found["equal"]
        for id in rows.keys() | found["rows"].keys():
            possible = [rows.get(id)] + ([under_way[id]] if id in under_way else [])
            assert found["rows"].get(id) in possible
        rows = found["rows"]
    assert n_done > 5 * loops


def test_a_log_cut_off_anywhere_is_a_prefix(tmp_path: Path) -> None:
    """Wherever the log's tail is cut: the rows are those after some number of changes, and the more the longer it is."""
    folder = tmp_path / "state"
    state = ServedState.of(serving.texts_model(), folder)
    state.log.scrub()
    histories = [{}]
    for n in range(6):
        state.change(Put(str(n % 4), f"text {n}", ("ham", "spam")[n % 2]))
        histories.append({row["id"]: (row["row"], row["label"]) for row in state.rows()})
    kept = tmp_path / "kept"
    shutil.copytree(folder, kept)
    state.close()
    wal = (kept / "log.sqlite-wal").read_bytes()
    step, frame = 1 if THOROUGH else 997, 24 + 4096
    ends = {*range(0, len(wal), step), *(at + off for at in range(32, len(wal), frame) for off in (-1, 0, 1)), len(wal)}
    cut, reached = tmp_path / "cut", 0
    for end in sorted(end for end in ends if end <= len(wal)):
        shutil.copytree(kept, cut, ignore=shutil.ignore_patterns("*-shm"))
        (cut / "log.sqlite-wal").write_bytes(wal[:end])
        with closing(sqlite3.connect(cut / "log.sqlite")) as connection:
            rows = connection.execute("SELECT id, row, label FROM rows JOIN contents USING (content, id)").fetchall()
        n = histories.index({id: (json.loads(row), json.loads(label)) for id, row, label in rows})
        assert n >= reached
        if n > reached:
            with ServedState.of(None, cut) as again:
                assert again.verify()["equal"]
        reached = n
        shutil.rmtree(cut)
    assert reached == 6


def test_a_snapshot_ahead_of_its_log_is_not_believed(tmp_path: Path) -> None:
    folder, kept = tmp_path / "state", tmp_path / "kept"
    with ServedState.of(serving.texts_model(), folder) as state:
        state.change(Put("1", "cheap", "spam"))
        digest = state.digest()
        state.log.scrub()
        shutil.copytree(folder, kept)
        state.change(Put("2", "lunch", "ham"))
        state.snapshot()
    for name in ("log.sqlite-wal", "log.sqlite-shm"):
        (folder / name).unlink(missing_ok=True)
    shutil.copy(kept / "log.sqlite", folder / "log.sqlite")
    with ServedState.of(None, folder) as state:
        assert state.digest() == digest


@pytest.mark.parametrize("snapshotted", [False, True])
def test_a_full_disk_changes_nothing_and_answers_go_on(snapshotted: bool, tmp_path: Path) -> None:
    with ServedState.of(serving.texts_model(), tmp_path / "state") as state:
        state.change(Put("1", "cheap", "spam"))
        if snapshotted:
            state.snapshot()
        digest, writing = state.digest(), state.log._write_connection
        said = state.learner.current_model()[0].posterior(["cheap lunch"])
        pages = writing.execute("PRAGMA page_count").fetchone()[0]
        writing.execute(f"PRAGMA max_page_count = {pages}")
        for _ in range(3):
            with pytest.raises(DiskFull, match="full"):
                state.change(Put("2", "long " * 5_000, "ham"))
        assert state.digest() == digest
        np.testing.assert_array_equal(said, state.learner.current_model()[0].posterior(["cheap lunch"]))
        writing.execute("PRAGMA max_page_count = 1000000")
        state.change(Put("2", "long " * 5_000, "ham"))
        assert state.verify()["equal"]


def test_clocks_that_move_change_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ServedState.of(serving.texts_model(), tmp_path / "state") as state:
        for n, now in enumerate([1e9, 5e8, 2e9, 0.0, 1.5e9]):
            monkeypatch.setattr("banbury.service.log.time.time", lambda now=now: now)
            state.change(Put("1", "cheap", ("ham", "spam")[n % 2]))
        assert [each["change"] for each in state.history()] == [5, 4, 3, 2, 1]
        assert state.change(Undo())["label"] == "spam"
        digest = state.digest()
    with ServedState.of(None, tmp_path / "state") as state:
        assert state.digest() == digest


@pytest.mark.parametrize("name", ["log.sqlite", "base.banbury"])
def test_a_damaged_state_says_so(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with ServedState.of(serving.texts_model(), folder) as state:
        state.change(Put("1", "cheap", "spam"))
    for path in folder.glob("snapshot*"):
        path.unlink()
    (folder / name).write_bytes(b"no such file" * 100)
    with pytest.raises(errors.BadFile, match=name):
        ServedState.of(None, folder)


def test_settings_are_kept(tmp_path: Path) -> None:
    """How a model is estimated, its prior and its calibration are as they were after a restart, too."""
    texts = ["cheap pills", "lunch", "cheap", "noon lunch"] * 5
    labels = ["spam", "ham", "spam", "ham"] * 5
    clf = bb.NaiveBayesClassifier(alpha=0.3, calibrate="temperature", class_prior=[0.4, 0.6]).fit(texts, labels)
    with ServedState.of(clf.model_, tmp_path / "state") as state:
        state.change(Put("1", "free lunch", "spam"))
        said = state.learner.current_model()[0].posterior(["cheap lunch"])
    with ServedState.of(None, tmp_path / "state") as state:
        np.testing.assert_array_equal(said, state.learner.current_model()[0].posterior(["cheap lunch"]))
        assert state.learner.settings.choice.alpha == 0.3
        assert state.learner.settings.calibration is not None
        assert state.learner.current_model()[0].class_prior == [0.4, 0.6]


# Rows that the model counted, and weights ----------------------------------------------------------------------------


def learned(data: Any, target: Any = None, **reading: Any) -> Any:
    return lambda tally: rows_of(Table.of(data, target, schema=tally.schema, **reading))


def test_a_state_begun_with_the_rows_of_its_model_forgets_those_too(tmp_path: Path) -> None:
    data = serving.table(60)
    data["age"][3], data["ward"][5], data["note"][7], data["flu"][9] = None, None, None, None
    model = bb.estimate(bb.count(data, target="flu"))
    with ServedState.of(model, tmp_path / "state", learned=learned(data, "flu")) as state:
        assert state.digest()[0] == model.tally.digest()
        assert len(state.rows(n=-1)) == 59
        assert state.verify()["equal"]
        state.change(Delete("0000001"))
        fewer = {name: values[1:] for name, values in data.items()}
        assert state.learner.tally() == bb.count(fewer, "flu", schema=model.schema)
    with ServedState.of(None, tmp_path / "state") as state:
        assert state.verify()["equal"]
    other = {name: values[1:] for name, values in data.items()}
    with pytest.raises(errors.SchemaMismatch, match="not the rows that the model counted"):
        ServedState.of(model, tmp_path / "other", learned=learned(other, "flu"))
    ServedState.of(model, tmp_path / "other").close()  # nothing was begun


@pytest.mark.parametrize("kind", ["texts", "table", "labels"])
def test_weights_are_learned_again_beside_the_answers(kind: str, tmp_path: Path) -> None:
    """The refitted model is the one that is fitted to the same rows anew, and is kept over a restart."""
    rng = random.Random(0)
    texts: Any = [serving.text(rng) for _ in range(80)]
    data: Any = serving.table(80) if kind == "table" else texts
    target: Any = "flu" if kind == "table" else [rng.choice(["ham", "spam"]) for _ in texts]
    if kind == "labels":
        target = [sorted(name for name in ("grain", "fuel") if rng.random() < 0.5) for _ in texts]
        model: Any = bb.MultiLabelClassifier(weigh=True).fit(texts, target).model_
    else:
        model = bb.weigh(bb.count(data, target=target), data, target)
    with ServedState.of(model, tmp_path / "state", learned=learned(data, target)) as state:
        more = serving.KINDS["table" if kind == "table" else "texts"][1](rng)
        label = ["grain"] if kind == "labels" else state.learner.classes[0]
        for n in range(5):
            state.change(Put(f"more{n}", more, label))
        settings = state.learner.settings
        assert settings.weighing.is_stale(state.learner.tally())
        refitting = Refitting(state)
        assert refitting.begin()["refitting"]
        refitting.wait()
        assert refitting.problem is None
        tally = state.learner.tally()
        assert not state.learner.settings.weighing.is_stale(tally)
        assert state.learner.weighed_at == state.change_number
        if kind == "texts":
            again = bb.weigh(tally, [*texts, *[more] * 5], [*target, *[label] * 5])
            said = state.learner.current_model()[0]
            np.testing.assert_allclose(said.posterior(texts), again.posterior(texts), rtol=1e-9)
        batch = state.learner.rows.batch([more])
        answer = state.learner.current_model()[0].posterior(batch)
    with ServedState.of(None, tmp_path / "state") as state:
        np.testing.assert_allclose(state.learner.current_model()[0].posterior(batch), answer, rtol=1e-12)
        assert state.learner.weighed_at == 85


def test_weights_are_not_learned_from_some_of_the_rows(tmp_path: Path) -> None:
    with (
        ServedState.of(serving.texts_model(True), tmp_path / "state") as state,
        pytest.raises(NotKept, match="40 of 40"),
    ):
        Refitting(state).begin()
    with ServedState.of(serving.texts_model(), tmp_path / "plain") as state, pytest.raises(NotKept, match="plain"):
        Refitting(state).begin()
