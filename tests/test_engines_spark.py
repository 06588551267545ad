"""Spark: a real cluster of two executors; the same count in any partitions, with tasks that fail, die or are run twice."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest

import banbury as bb
from banbury import cli, errors
from banbury.engines import counting, parcels
from banbury.engines.engine import FAN_IN
from banbury.files import to_bytes
from engine_rows import SPARK, brought_here, parts, rows, told_while_counting, written

pyspark = pytest.importorskip("pyspark", reason="Spark is not installed: make test-engines installs it")
on_spark = pytest.importorskip("banbury.engines.spark")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java 17 or newer, and there is none", allow_module_level=True)

from pyspark.sql import SparkSession  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.task.maxFailures": "2",
}


@pytest.fixture(scope="module")
def session() -> Any:
    """A cluster of two executors of one core each, in processes of their own."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SPARK.items():
            patch.setenv(name, value)
        builder = SparkSession.builder.master("local-cluster[2,1,512]").appName("tests")
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        files = Path(pyspark.__file__).parent / "work" / session.sparkContext.applicationId
        yield session
        session.stop()
        shutil.rmtree(files, ignore_errors=True)


@pytest.fixture(scope="module")
def frame() -> pandas.DataFrame:
    return rows(1500)


def spread(session: Any, pieces: Sequence[pandas.DataFrame]) -> Any:
    """A frame of Spark with the pieces one after the other, each in partitions of its own."""
    schema = pa.Schema.from_pandas(pandas.concat(pieces), preserve_index=False)
    tables = (pa.Table.from_pandas(piece, schema, preserve_index=False) for piece in pieces)
    return reduce(lambda a, b: a.union(b), map(session.createDataFrame, tables))


@pytest.fixture(scope="module")
def data(session: Any, frame: pandas.DataFrame) -> Any:
    return spread(session, parts(frame, 3)).cache()


def test_any_partitions_are_counted_as_one_process_counts(session: Any, frame: pandas.DataFrame, data: Any) -> None:
    whole = bb.count(frame, "label", weights="weight")
    by_class = [frame[frame["label"] == label] for label in ("r", "q", "p")]
    pieces = [frame.iloc[:0], *by_class, frame.iloc[:0]]
    for several in (data, spread(session, pieces)):
        found = bb.count(several, "label", weights="weight")
        assert found == whole and found.digest() == whole.digest()
    assert whole.count(data.coalesce(1), weights="weight") == whole


def test_columns_that_show_more_later(session: Any) -> None:
    late = rows(1400, late=True)
    with pytest.warns(errors.BanburyWarning, match="columns 'none', 'one', 'whole' .*counting starts again"):
        found = bb.count(spread(session, parts(late, 2)), "label")
    assert found == bb.count(late, "label")


def test_files_and_tables_with_a_session_and_tallies_of_many_cells(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [" ".join(f"word{500 * number + n}" for n in range(500)) for number in range(60)]
    table = pandas.DataFrame({"text": words, "label": ["a", "b", "c"] * 20})
    whole = bb.count(table, "label")
    assert len(to_bytes(whole)) > 2 * parcels.CELL_BYTES
    pattern = written(tmp_path, parts(table, 17), "parquet")
    sums = brought_here(monkeypatch, on_spark.Spark)
    found = bb.count(pattern, "label", engine=session)
    assert len(counting.group_files(range(17), 2)) > FAN_IN >= len(sums)  # the driver holds eight tallies, not more
    assert found == whole and {Path(part).name for part in found.parts} == {f"{n:04}.parquet" for n in range(17)}
    assert bb.count(table, "label", engine="spark", partitions=3) == whole
    out = tmp_path / "tally.banbury"
    for engine in ("spark", "local[2]"):  # the session that is there, either way
        assert cli.main(["tally", "count", pattern, "--target", "label", "--engine", engine, "-o", str(out)]) == 0
        assert bb.load(out) == whole


def test_answers_are_columns_beside_the_rows_and_lazy(session: Any, frame: pandas.DataFrame, data: Any) -> None:
    model = bb.estimate(bb.count(frame.rename(columns={"length": "how.long"}).drop(columns="weight"), "label"))
    table = frame.iloc[:90].rename(columns={"length": "how.long"}).drop(columns="weight")
    data = spread(session, [table.iloc[:40], table.iloc[40:]])
    predicted = model.predict(data)
    assert type(predicted) is type(data) and predicted.columns == [*table.columns, "class"]
    answers = predicted.toArrow().to_pandas()
    assert answers["class"].tolist() == model.predict(table).tolist()
    assert answers["text"].tolist() == table["text"].tolist()
    assert model.predict(predicted).columns[-2:] == ["class", "class_"]
    posterior = model.posterior(data).toArrow().to_pandas()[[f"P({name})" for name in model.classes]]
    assert (posterior.to_numpy() == model.posterior(table)).all()
    told, first = model.explain(data).toArrow().to_pandas(), model.explain(table.iloc[[0]])
    assert told["class"][0] == first.winner and told["decibans"][0] == first.decibans
    unsure = model.predict(data, unsure=0.9).toArrow().to_pandas()["class"]
    assert unsure.isna().sum() == sum(label is None for label in model.predict(table, unsure=0.9)) > 0


def test_several_labels_as_columns(session: Any) -> None:
    table = pandas.DataFrame({"text": ["a b c d", "b c d e", "c d e f"] * 9, "tags": ["x;y", "y", "x;z"] * 9})
    data = spread(session, [table])
    tally = bb.count(data, "tags", target_delimiter=";")
    assert tally == bb.count(table, "tags", target_delimiter=";")
    model = bb.LabelModel.of(tally)
    assert list(map(tuple, model.predict(data).toArrow().to_pandas()["labels"])) == model.predict(table)


def test_validation_agrees_with_that_of_one_process(session: Any, frame: pandas.DataFrame) -> None:
    table = frame.iloc[:300].assign(user=[f"user {number % 31}" for number in range(300)])
    data = spread(session, parts(table, 2)).cache()
    found = bb.cross_validate(data, "label", folds=3, id="user")
    whole = bb.cross_validate(table, "label", folds=3, id="user", deal="content")
    assert (found.accuracy, found.log_loss, found.brier) == (whole.accuracy, whole.log_loss, whole.brier)
    model = bb.estimate(bb.count(frame.iloc[500:], "label"))
    found, whole = bb.evaluate(model, data.drop("user")), bb.evaluate(model, table.drop(columns="user"))
    assert (found.accuracy, found.log_loss, found.macro_f1) == (whole.accuracy, whole.log_loss, whole.macro_f1)
    found = bb.tune(data, "label", alpha=[0.1, 1.0], folds=3)
    assert found.best == bb.tune(table, "label", alpha=[0.1, 1.0], folds=3, deal="content").best


def test_weights_learned_from_a_sample(session: Any, frame: pandas.DataFrame, data: Any) -> None:
    counted = bb.count(frame, "label", missing="category")
    assert to_bytes(bb.weigh(counted, data, "label")) == to_bytes(bb.weigh(counted, frame, "label"))
    fitted = bb.EvidenceClassifier(sample=150).fit(data, "label")
    table = frame.drop(columns="label")
    here = bb.EvidenceClassifier(sample=150).fit(table, frame["label"])
    assert (fitted.predict_proba(table) == here.predict_proba(table)).all()
    assert fitted.predict(data).columns[-1] == "class"


def test_the_model_is_that_of_spark_ml(session: Any, frame: pandas.DataFrame) -> None:
    ml, learners = pytest.importorskip("pyspark.ml.feature"), pytest.importorskip("pyspark.ml.classification")
    table = frame[["text", "label"]].iloc[:300]
    data = spread(session, [table])
    words = ml.RegexTokenizer(inputCol="text", outputCol="words", pattern=r"\W+").transform(data)
    counts = ml.CountVectorizer(inputCol="words", outputCol="features").fit(words).transform(words)
    numbered = ml.StringIndexer(inputCol="label", outputCol="number", stringOrderType="alphabetAsc").fit(counts)
    learner = learners.NaiveBayes(smoothing=1.0, labelCol="number")
    theirs = learner.fit(numbered.transform(counts)).transform(counts).select("probability").collect()
    ours = bb.estimate(bb.count(data, "label"), alpha=1.0, class_prior=1.0)
    assert ours.posterior(table) == pytest.approx(np.array([row[0].toArray() for row in theirs]), abs=1e-9)


def test_progress_moves_while_tasks_end(session: Any, frame: pandas.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(batches: Any) -> Any:
        import time

        for batch in batches:
            time.sleep(0.1)
            yield batch

    table = frame[["grade", "colour", "label"]]
    schema = bb.count(table, "label").schema
    data = session.createDataFrame(table).repartition(8)
    slow = data.mapInArrow(slowly, data.schema)
    said = told_while_counting(monkeypatch, lambda: bb.count(slow, "label", schema=schema))
    assert {(title, unit) for title, unit, _, _ in said} == {("counting on Spark", "tasks")}
    assert len({(n_done, share) for *_, n_done, share in said if 0 < share == n_done / 8 < 1}) > 1, said


# Each partition once ---------------------------------------------------------------------------------------------------


def counted_by(monkeypatch: pytest.MonkeyPatch, around: Callable[[int], None]) -> None:
    """Has a function called on the worker, with the number of the partition, before each that is counted."""
    adapter = on_spark.Spark
    added = adapter.add_up_parts

    def wrapped(self: Any, work: Any) -> Any:
        def run(partition: int, rows: Any) -> Any:
            around(partition)
            return work(partition, rows)

        return added(self, run)

    monkeypatch.setattr(adapter, "add_up_parts", wrapped)


def test_tasks_that_fail_or_die_the_first_time(
    session: Any, frame: pandas.DataFrame, data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_once(partition: int) -> None:
        from pyspark import TaskContext

        attempt = TaskContext.get().attemptNumber()
        if partition in (1, 3):
            (tmp_path / f"{partition} {attempt}").touch()
            if attempt == 0 and partition == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            if attempt == 0:
                raise RuntimeError("the first time")

    counted_by(monkeypatch, fail_once)
    assert bb.count(data, "label") == bb.count(frame, "label")
    assert {"1 0", "1 1", "3 0", "3 1"} <= {path.name for path in tmp_path.iterdir()}


def test_partitions_that_are_counted_twice(
    session: Any, frame: pandas.DataFrame, data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executor is killed while sums are added up, and tallies are lost with it: their partitions are counted again."""

    def tell(partition: int) -> None:
        (tmp_path / f"{partition} of {time.monotonic_ns()}").touch()

    add = on_spark._add_parcels

    def kill_once(batches: Any) -> Any:
        mark = tmp_path / "killed"
        if not mark.exists():
            mark.touch()
            stat = Path(
                f"/proc/{os.getppid()}/stat"
            ).read_text()  # of the daemon of Python, whose parent is the executor
            os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
            time.sleep(60)
        yield from add(batches)

    counted_by(monkeypatch, tell)
    monkeypatch.setattr(on_spark, "_add_parcels", kill_once)
    assert bb.count(data, "label") == bb.count(frame, "label")
    counted = [path.name.partition(" of ")[0] for path in tmp_path.iterdir() if path.name != "killed"]
    assert (tmp_path / "killed").exists() and len(counted) > len(set(counted)) == data.rdd.getNumPartitions()


def test_cells_that_come_twice_or_in_another_order_are_taken_once() -> None:
    sent = {partition: parcels.Parcel((partition,), bytes([partition]) * 300_000) for partition in range(3)}
    cells = list[tuple[int, int, int, bytes]]()
    for partition, parcel in sent.items():
        for batch in parcels.in_cells(partition, parcel):
            cells.extend(zip(*batch.to_pydict().values(), strict=True))
    assert len(cells) > 6
    twice = cells[::-1] + cells
    assert dict(parcels.parcels_in(twice)) == sent and len(list(parcels.parcels_in(twice))) == 3
    assert dict(parcels.parcels_in(cells[1:])) == {1: sent[1], 2: sent[2]}


# What goes wrong -------------------------------------------------------------------------------------------------------


def test_nothing_is_left_running_after_an_interrupt(session: Any, frame: pandas.DataFrame, data: Any) -> None:
    def slowly(batches: Any) -> Any:  # inside, so that workers need not find this file
        import time

        for batch in batches:
            time.sleep(60)
            yield batch

    slow = data.mapInArrow(slowly, data.schema)
    timer = threading.Timer(3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            bb.count(slow, "label")
    finally:
        timer.cancel()
    until = time.monotonic() + 600
    while (left := session.sparkContext.statusTracker().getActiveJobsIds()) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left and not session.getTags()


def test_a_worker_without_banbury(
    session: Any, frame: pandas.DataFrame, data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "banbury.py").write_text("raise ModuleNotFoundError(\"No module named 'banbury'\", name='banbury')")
    (tmp_path / "python").write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}:$PYTHONPATH exec {sys.executable} "$@"\n')
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(session.sparkContext, "pythonExec", str(tmp_path / "python"))
    wanted = rf"a Spark worker lacks the package 'banbury'\. .*pip install banbury=={bb.__version__}"
    with pytest.raises(errors.EngineError, match=wanted):
        bb.count(data, "label")


def test_what_cannot_be_done_is_said(session: Any, frame: pandas.DataFrame, data: Any) -> None:
    with pytest.raises(errors.UnknownColumn, match="no column 'lable'"):
        bb.count(data, "lable")
    with pytest.raises(errors.UnknownColumn, match=r"partition \d: no column 'length'"):
        bb.count(data.withColumnRenamed("length", "nothing"), "label", schema=bb.count(frame, "label").schema)
    with pytest.raises(errors.BadSetting, match="Spark data must be a dataframe"):
        bb.count(data.groupBy("label"), "label")
    with pytest.raises(errors.BadSetting, match="must be a batch dataframe"):
        bb.count(session.readStream.format("rate").load(), "value")
    with pytest.raises(errors.EmptyData):
        bb.count(data.where("1 = 0"), "label")
    for address in (
        "spark://127.0.0.1:1",
        "sc://127.0.0.1:1/;token=x",
        "spark://127.0.0.1:1,127.0.0.1:2",
        "sc://[::1]:x",
    ):
        with pytest.raises(
            errors.EngineError, match=rf"Spark does not respond at {re.escape(address)} \(.*'sc://host:15002'"
        ):
            bb.count(frame, "label", engine=address)
    with pytest.raises(errors.BadSetting, match="engine must be omitted here"):
        on_spark.engine(frame, session, 2).answer(None)


def test_a_session_that_is_stopped(session: Any, frame: pandas.DataFrame, data: Any) -> None:
    """The last test: the session is gone after it."""
    session.stop()
    for stopped, engine in ((data, None), (frame, session)):
        with pytest.raises(errors.EngineError, match="the Spark session is stopped"):
            bb.count(stopped, "label", engine=engine)
    with pytest.raises(errors.EngineError, match="there is no Spark session"):
        bb.count(frame, "label", engine="spark")
