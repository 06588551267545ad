"""Dask: a real cluster of two processes; the same count in any partitions, with a worker killed and with tasks run twice."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pandas
import pytest

import banbury as bb
from banbury import cli, errors
from banbury.engines.partitions import Partitions
from banbury.files import FORMAT, to_bytes
from engine_rows import DieOnce, brought_here, parts, rows, written

dask = pytest.importorskip("dask", reason="Dask is not installed: make test-engines installs it")
distributed = pytest.importorskip("distributed", reason="Dask is not installed: make test-engines installs it")
dd = pytest.importorskip("dask.dataframe")
db = pytest.importorskip("dask.bag")
on_dask = pytest.importorskip("banbury.engines.dask")

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*(port|Port) .*:UserWarning"),
]


@pytest.fixture(scope="module")
def client() -> Any:
    """A cluster of two worker processes, which are started again when they die."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        with cluster, distributed.Client(cluster) as client:
            yield client


@pytest.fixture(scope="module")
def frame() -> pandas.DataFrame:
    return rows(1500)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_any_partitions_are_counted_as_one_process_counts(client: Any, frame: pandas.DataFrame, n: int) -> None:
    whole = bb.count(frame, "label", weights="weight")
    collection = dd.from_pandas(frame, npartitions=n)
    found = bb.count(collection, "label", weights="weight")
    assert found == whole and found.digest() == whole.digest()
    assert len(found.parts) == n
    assert whole.count(collection, weights="weight") == whole
    with pytest.raises(errors.PartTwice):
        found + bb.count(collection, "label", weights="weight", schema=found.schema)


def test_a_thousand_partitions_most_of_them_empty(
    client: Any, frame: pandas.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = frame[["grade", "colour", "label"]]
    pieces = [dask.delayed(part) for part in parts(table, 30)]
    empty = dask.delayed(table.iloc[:0])
    spread = [empty] * 400 + pieces[:15] + [empty] * 500 + pieces[15:] + [empty] * 70
    assert len(spread) == 1000
    sums = brought_here(monkeypatch, on_dask.Dask)
    assert bb.count(spread, "label") == bb.count(table, "label")
    assert len(sums) == 1  # the driver holds one tally, not a thousand


def test_validation_is_that_of_one_process(client: Any, frame: pandas.DataFrame) -> None:
    table = frame.iloc[:500].assign(user=[f"user {number % 31}" for number in range(500)])
    collection = dd.from_pandas(table, npartitions=4)
    for settings in ({"features": {"user": None}}, {"id": "user"}):
        whole = bb.cross_validate(table, "label", folds=3, deal="content", **settings)
        found = bb.cross_validate(collection, "label", folds=3, **settings)
        assert (found.accuracy, found.log_loss, found.brier) == (whole.accuracy, whole.log_loss, whole.brier)
        assert found.confusion.tolist() == whole.confusion.tolist()
    model = bb.estimate(bb.count(frame.iloc[500:], "label"))
    found, whole = bb.evaluate(model, collection.drop(columns="user")), bb.evaluate(model, table.drop(columns="user"))
    assert (found.accuracy, found.log_loss, found.macro_f1) == (whole.accuracy, whole.log_loss, whole.macro_f1)
    found = bb.tune(collection, "label", alpha=[0.1, 1.0], folds=3)
    assert found.best == bb.tune(table, "label", alpha=[0.1, 1.0], folds=3, deal="content").best


def test_bags_of_records_and_files_on_workers(client: Any, frame: pandas.DataFrame, tmp_path: Path) -> None:
    table = frame[["length", "colour", "text", "label"]]
    bag = db.from_sequence(table.to_dict("records"), npartitions=3)
    assert bb.count(bag, "label") == bb.count(table, "label")
    pattern = written(tmp_path, parts(frame, 4), "parquet")
    whole = bb.count(frame, "label")
    assert bb.count(pattern, "label", engine=client) == whole
    address = client.scheduler.address.removeprefix("tcp://")
    assert bb.count(pattern, "label", engine=f"dask://{address}") == whole
    out = tmp_path / "tally.banbury"
    assert (
        cli.main(["tally", "count", pattern, "--target", "label", "--engine", f"dask://{address}", "-o", str(out)]) == 0
    )
    assert bb.load(out) == whole
    assert bb.count(frame, "label", engine=client, partitions=3) == whole


def test_the_command_line_at_the_address_of_a_scheduler(frame: pandas.DataFrame, tmp_path: Path) -> None:
    """A scheduler and a worker in processes of their own, as `dask scheduler` and `dask worker` start them."""
    pattern, out, place = written(tmp_path, parts(frame, 3), "parquet"), tmp_path / "tally.banbury", tmp_path / "place"
    settings = ["--no-dashboard", "--scheduler-file", str(place)]
    kinds = (["scheduler", "--host", "127.0.0.1", "--port", "0"], ["worker", "--nthreads", "1", "--no-nanny"])
    processes = list[subprocess.Popen[bytes]]()
    try:
        for kind in kinds:
            command = [sys.executable, "-m", "dask", *kind, *settings]
            processes.append(subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=tmp_path))
            _wait(lambda: place.exists() and place.read_text().endswith("}"))
        address = json.loads(place.read_text())["address"].replace("tcp://", "dask://")
        command = [sys.executable, "-m", "banbury", "tally", "count", pattern, "--target", "label", "--engine", address]
        done = subprocess.run([*command, "-o", out], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        assert bb.load(out) == bb.count(frame, "label")
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(20)


def test_columns_that_show_more_later(client: Any) -> None:
    late = rows(2000, late=True)
    whole = bb.count(late, "label")
    with pytest.warns(errors.BanburyWarning, match="counting starts again"):
        assert bb.count(dd.from_pandas(late, npartitions=5), "label") == whole


def test_answers_are_columns_beside_the_rows_and_lazy(client: Any, frame: pandas.DataFrame) -> None:
    table = frame.iloc[:200].assign(grade=lambda rows: rows["grade"] + 1)
    model = bb.estimate(bb.count(frame.assign(grade=frame["grade"] + 1), "label"))
    collection = dd.from_pandas(table, npartitions=3)
    predicted = model.predict(collection)
    assert isinstance(predicted, dd.DataFrame) and list(predicted.columns) == [*table.columns, "class"]
    answers = predicted.compute()
    assert answers["class"].tolist() == model.predict(table).tolist()
    assert answers["text"].tolist() == table["text"].tolist()
    again = model.predict(predicted)
    assert list(again.columns)[-2:] == ["class", "class_"]
    posterior = model.posterior(collection).compute()
    columns = [f"P({name})" for name in model.classes]
    assert (posterior[columns].to_numpy() == model.posterior(table)).all()
    told = model.explain(collection.partitions[0]).compute()
    evidence = told[[name for name in told.columns if name.startswith("evidence of")]].sum(axis=1)
    assert (told["prior"] + evidence - told["decibans"]).abs().max() < 1e-9
    first = model.explain(table.iloc[[0]])
    assert told["class"].iloc[0] == first.winner and told["decibans"].iloc[0] == first.decibans
    unsure = model.predict(collection, unsure=0.9).compute()["class"]
    assert unsure.isna().sum() == sum(label is None for label in model.predict(table, unsure=0.9)) > 0
    bag = db.from_sequence(table.to_dict("records"), npartitions=2)
    assert [record["class"] for record in model.predict(bag).compute()] == answers["class"].tolist()


def test_the_model_is_that_of_scikit_learn(client: Any, frame: pandas.DataFrame) -> None:
    from sklearn.naive_bayes import GaussianNB

    table = frame[["grade", "weight", "label"]].assign(grade=frame["grade"] + frame["weight"] / 7)
    tally = bb.count(dd.from_pandas(table, npartitions=5), "label", features="gaussian")
    theirs = GaussianNB(var_smoothing=0.0).fit(table[["grade", "weight"]], table["label"])
    ours = bb.estimate(tally, how="mle").posterior(table[["grade", "weight"]])
    assert abs(ours - theirs.predict_proba(table[["grade", "weight"]])).max() < 1e-9


def test_several_labels_as_columns(client: Any) -> None:
    table = pandas.DataFrame({"text": ["a b c d", "b c d e", "c d e f"] * 9, "tags": ["x;y", "y", "x;z"] * 9})
    collection = dd.from_pandas(table, npartitions=2)
    tally = bb.count(collection, "tags", target_delimiter=";")
    assert tally == bb.count(table, "tags", target_delimiter=";")
    model = bb.LabelModel.of(tally)
    assert list(map(tuple, model.predict(collection).compute()["labels"])) == model.predict(table)
    assert bb.evaluate(model, collection).micro_f1 == bb.evaluate(model, table).micro_f1
    posterior = model.posterior(collection).compute()
    assert (posterior[[f"P({label})" for label in model.labels]].to_numpy() == model.posterior(table)).all()


def test_weights_learned_from_a_sample(client: Any, frame: pandas.DataFrame) -> None:
    table = frame.iloc[:400].drop(columns="weight")
    counted = bb.count(table, "label", missing="category")
    for settings in ({}, {"sample": 150}):
        whole = to_bytes(bb.weigh(counted, table, "label", **settings))
        for n in (1, 7):
            collection = dd.from_pandas(table, npartitions=n)
            assert to_bytes(bb.weigh(counted, collection, "label", **settings)) == whole
        fitted = bb.EvidenceClassifier(**settings).fit(collection, "label")
        here = bb.EvidenceClassifier(**settings).fit(table.drop(columns="label"), table["label"])
        plain = table.drop(columns="label")
        assert (fitted.predict_proba(plain) == here.predict_proba(plain)).all()
        assert fitted.classes_.tolist() == here.classes_.tolist()
        assert fitted.feature_names_in_.tolist() == here.feature_names_in_.tolist()
    answers = fitted.predict(collection).compute()
    assert answers["class"].tolist() == here.predict(plain).tolist()
    assert list(fitted.predict_proba(collection).columns[-3:]) == ["P(p)", "P(q)", "P(r)"]
    honest = bb.NaiveBayesClassifier(calibrate="temperature").fit(collection, "label")
    assert honest.calibration_.temperature > 0 and honest.tally_ == bb.count(table, "label")


def test_a_worker_that_is_killed(
    client: Any, frame: pandas.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = on_dask.Dask
    added = adapter.add_up_parts
    monkeypatch.setattr(adapter, "add_up_parts", lambda self, work: added(self, DieOnce(work, tmp_path / "died")))
    found = bb.count(dd.from_pandas(frame, npartitions=6), "label")
    assert (tmp_path / "died").exists() and found == bb.count(frame, "label")
    client.wait_for_workers(2, timeout=600)


def test_tasks_that_run_twice(client: Any, frame: pandas.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers lose what they have made while sums are being added up, so that tasks are run again."""
    adapter = on_dask.Dask
    added, lost = adapter.add_up_parts, list[str]()

    def losing(self: Any, work: Any) -> Any:
        for n_done, value in added(self, work):
            if n_done == 3 and not lost:
                lost.extend(client.nthreads())
                pid = client.run(os.getpid, workers=lost[:1])[lost[0]]
                os.kill(pid, signal.SIGKILL)
            yield n_done, value

    monkeypatch.setattr(adapter, "add_up_parts", losing)
    assert bb.count(dd.from_pandas(frame, npartitions=20), "label") == bb.count(frame, "label")
    assert lost
    client.wait_for_workers(2, timeout=600)


def test_nothing_is_left_running_after_an_error_or_an_interrupt(client: Any, frame: pandas.DataFrame) -> None:
    collection = dd.from_pandas(frame, npartitions=10)
    slow = collection.map_partitions(_slowly, meta=frame.iloc[:0])
    schema = bb.count(frame, "label").schema
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            bb.count(slow, "label", schema=schema)
    finally:
        timer.cancel()
    _wait(lambda: not any(client.processing().values()))
    assert client.status == "running"
    with pytest.raises(errors.UnknownColumn, match=r"partition \d: no column 'length'"):
        bb.count(collection.rename(columns={"length": "nothing"}), "label", schema=bb.count(frame, "label").schema)
    _wait(lambda: not any(client.processing().values()))


def _slowly(part: pandas.DataFrame) -> pandas.DataFrame:
    time.sleep(2)
    return part


def _wait(done: Any) -> None:
    until = time.monotonic() + 600
    while not done() and time.monotonic() < until:
        time.sleep(0.1)
    assert done()


def test_what_cannot_be_done_is_said(client: Any, frame: pandas.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_dask, "CONNECT_TIMEOUT", "1s")
    with pytest.raises(errors.EngineError, match=r"no Dask scheduler responds at 127.0.0.1:1 "):
        bb.count(frame, "label", engine="dask://127.0.0.1:1")
    monkeypatch.setattr(on_dask, "_current_client", lambda: None)
    with pytest.raises(errors.EngineError, match=r"there is no Dask client\. Start one with .*engine=client"):
        bb.count(frame, "label", engine="dask")
    monkeypatch.undo()
    with distributed.Client(client.scheduler.address, set_as_default=False) as closed:
        pass
    with pytest.raises(errors.EngineError, match="the Dask client is closed"):
        bb.count(frame, "label", engine=closed)
    with pytest.raises(errors.UnknownColumn, match="no column 'lable'"):
        bb.count(dd.from_pandas(frame, npartitions=2), "lable")
    array = pytest.importorskip("dask.array").ones((4, 4), chunks=(2, 2))
    with pytest.raises(errors.BadSetting, match="Dask data must be a dataframe"):
        bb.count(array, "label")


def test_a_worker_without_banbury(client: Any, frame: pandas.DataFrame) -> None:
    client.run(_hide_banbury, workers=list(client.nthreads())[:1])
    try:
        with pytest.raises(errors.EngineError, match=r"the package 'banbury'.* pip install banbury=="):
            bb.count(dd.from_pandas(frame, npartitions=2), "label")
    finally:
        client.run(lambda: sys.modules.pop("banbury") if sys.modules.get("banbury", sys) is None else None)
    assert bb.count(dd.from_pandas(frame, npartitions=2), "label") == bb.count(frame, "label")


def test_a_worker_with_another_format(client: Any, frame: pandas.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused by the format's number before it is given work; what one has counted that came later, when it is opened."""
    collection, refused = dd.from_pandas(frame, npartitions=20), r"tallies have format \d, .* pip install banbury=="
    schema = bb.count(frame, "label").schema
    client.run(_count_in_format, 2, workers=list(client.nthreads())[:1])
    try:
        with pytest.raises(errors.EngineError, match=refused):
            bb.count(collection, "label", schema=schema)
        monkeypatch.setattr(on_dask, "_check_workers", lambda client: None)
        with pytest.raises(errors.EngineError, match=refused):
            bb.count(collection, "label", schema=schema)
    finally:
        client.run(_count_in_format, FORMAT)


def _count_in_format(number: int) -> None:
    from banbury.engines import parcels  # the module of now: it may have been hidden and loaded again

    parcels.FORMAT = number


def _hide_banbury() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "banbury"]:
        del sys.modules[name]
    sys.modules["banbury"] = None  # type: ignore[assignment]


def test_without_a_cluster_the_scheduler_that_is_set_does_the_work(frame: pandas.DataFrame) -> None:
    engine = on_dask.Dask
    collection = dd.from_pandas(frame, npartitions=3)
    graph = dict(collection.optimize().__dask_graph__())
    keys = [on_dask.TaskRef(key) for key in collection.optimize().__dask_keys__()]
    partitions = Partitions(engine(keys, None, None, graph))
    assert partitions.table("label").count_all() == bb.count(frame, "label")
