"""Parts of a table on an executor: the seam, the schema, the manifest, and files; on threads, which are quick, and processes."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import banbury as bb
from banbury import cli, errors, progress
from banbury.engines import counting, parcels, processes
from banbury.engines.partitions import Partitions
from banbury.files import from_bytes, to_bytes
from banbury.rows.labelled import open_rows
from banbury.tally.table import open_table
from engine_rows import DieOnce, parts, rows, written

AGAIN = "not match the first 1,000 rows"


@pytest.fixture(scope="module")
def pool() -> Any:
    with ThreadPoolExecutor(2) as threads:
        yield threads


@pytest.fixture(scope="module")
def frame() -> pandas.DataFrame:
    return rows(2000)


@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_any_parts_are_counted_as_the_whole_is(pool: Any, frame: pandas.DataFrame, n: int) -> None:
    whole = bb.count(frame, "label")
    found = bb.count(parts(frame, n), "label", engine=pool)
    assert found == whole and found.digest() == whole.digest()
    assert bb.count(frame, "label", engine=pool, partitions=n) == whole


def test_weights_and_a_schema(pool: Any, frame: pandas.DataFrame) -> None:
    whole = bb.count(frame, "label", weights="weight", features={"text": None, "length": "kernel_density"})
    pieces = parts(frame, 5)
    found = bb.count(
        pieces, "label", weights="weight", features={"text": None, "length": "kernel_density"}, engine=pool
    )
    assert found == whole
    assert bb.count(pieces, "label", weights="weight", schema=whole.schema, engine=pool) == whole
    assert whole.count(pieces, engine=pool) == whole.count(frame)


def test_sets_of_labels(pool: Any) -> None:
    table = pandas.DataFrame({"text": ["a b c d", "b c d e", "c d e f"] * 9, "tags": ["x;y", "y", "x;z"] * 9})
    whole = bb.count(table, "tags", target_delimiter=";")
    assert bb.count(parts(table, 4), "tags", target_delimiter=";", engine=pool) == whole


@pytest.mark.parametrize("n", [1, 3, 40])
def test_columns_that_show_more_later_are_counted_again_and_that_is_said(pool: Any, n: int) -> None:
    late = rows(2000, late=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = bb.count(late, "label")
    assert {"one", "none", "whole", "new"} <= {feature.name for feature in whole.schema.features}
    with pytest.warns(errors.BanburyWarning, match=f"columns 'none', 'one', 'whole' .*{AGAIN}"):
        found = bb.count(parts(late, n), "label", engine=pool)
    assert found == whole


def test_files_where_the_work_is(pool: Any, frame: pandas.DataFrame, tmp_path: Path) -> None:
    whole = bb.count(frame, "label")
    for kind in ("parquet", "csv"):
        pattern = written(tmp_path, parts(frame, 5), kind)
        found = bb.count(pattern, "label", engine=pool)
        assert found == whole
        assert {Path(name).name for name in found.parts} == {f"{n:04}.{kind}" for n in range(5)}


def test_numbers_that_become_words_in_a_later_file(pool: Any, tmp_path: Path) -> None:
    table = pandas.DataFrame({"size": ["1", "2"] * 600 + ["big", "small"], "y": ["a", "b"] * 601})
    pattern = written(tmp_path, [table.iloc[:1100], table.iloc[1100:]], "csv")
    with pytest.warns(errors.BanburyWarning, match=f"column 'size' .*{AGAIN}"):
        found = bb.count(pattern, "y", engine=pool)
    assert found == bb.count(table, "y")


def test_files_of_another_file_system(pool: Any, frame: pandas.DataFrame) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for number, part in enumerate(parts(frame, 3)):
        with memory.open(f"/rows/{number}.parquet", "wb") as file:
            part.to_parquet(file)
    found = bb.count("memory://rows/*.parquet", "label", engine=pool)
    assert found == bb.count(frame, "label") and sorted(found.parts)[0] == "memory:///rows/0.parquet"
    with pytest.raises(errors.BadFile, match="no file matches"):
        bb.count("memory://rows/*.csv", "label", engine=pool)
    with pytest.raises(errors.BadFile, match="nosuch"):
        bb.count("nosuch://rows/0.csv", "label", engine=pool)


def test_a_tally_travels(frame: pandas.DataFrame) -> None:
    tally = bb.count(frame, "label")
    parcel = pickle.loads(pickle.dumps(parcels.Parcel((3,), tally)))
    assert parcel.partitions == (3,) and parcel.value == tally and parcel.value.schema == tally.schema


# Each partition once ---------------------------------------------------------------------------------------------------


def test_a_partition_that_comes_twice_counts_once(frame: pandas.DataFrame) -> None:
    class Twice(processes.Processes):
        def add_up_parts(self, work: Any) -> Any:
            for found in super().add_up_parts(work):
                yield found
                yield found

    with ThreadPoolExecutor(2) as threads:
        twice = Partitions(Twice(parts(frame, 5), None, threads))
        assert twice.table("label").count_all() == bb.count(frame, "label")


def test_what_a_tally_holds_is_not_added_twice(pool: Any, frame: pandas.DataFrame, tmp_path: Path) -> None:
    pattern = written(tmp_path, parts(frame, 3), "csv")
    whole = bb.count(pattern, "label", engine=pool)
    first = whole.count(str(tmp_path / "0000.csv"), engine=pool)
    assert len(whole.parts) == 3 and len(first.parts) == 1
    with pytest.raises(errors.PartTwice, match=r"0000.csv' would be counted twice.*subtract it") as raised:
        whole + first
    assert raised.value.parts == sorted(first.parts)
    rest = whole - first
    assert rest.parts == whole.parts - first.parts and (rest + first).parts == whole.parts
    assert rest + first == whole == bb.count(frame, "label")  # what they hold is no part of what they count
    assert whole.digest() == bb.count(frame, "label").digest()
    bb.save(whole, tmp_path / "whole.banbury")
    loaded = bb.load(tmp_path / "whole.banbury")
    assert isinstance(loaded, bb.Tally) and loaded.parts == whole.parts
    with pytest.raises(errors.PartTwice):
        loaded + first
    with pytest.raises(errors.PartTwice, match="0000"):
        bb.count([str(tmp_path / "0000.csv")] * 2, "label", engine=pool)


def test_many_files_are_counted_in_groups(pool: Any, frame: pandas.DataFrame, tmp_path: Path) -> None:
    pattern = written(tmp_path, parts(frame, 40), "parquet")
    frame.iloc[:0].to_parquet(tmp_path / "0007.parquet")
    frame.iloc[:300].to_parquet(tmp_path / "0008.parquet")
    here = pandas.concat(map(pandas.read_parquet, sorted(tmp_path.glob("*.parquet"))))
    whole = bb.count(here, "label", weights="weight")
    assert {len(group.files) for group in counting.group_files(range(40), 2).values()} == {5}
    assert [len(counting.group_files(range(n), 2)) for n in (1, 7, 16, 1000)] == [1, 7, 8, 125]
    found = bb.count(pattern, "label", weights="weight", engine=pool)
    assert found == whole and len(found.parts) == 40
    settings = {"weights": "weight", "sample": 200}
    weighed = bb.weigh(whole, pattern, "label", engine=pool, **settings)
    assert to_bytes(weighed) == to_bytes(bb.weigh(whole, here, "label", **settings))
    folds = bb.cross_validate(pattern, "label", folds=3, engine=pool)
    dealt = bb.cross_validate(here, "label", folds=3, deal="content")
    assert (folds.log_loss, folds.accuracy) == (dealt.log_loss, dealt.accuracy)
    frame.iloc[:50].assign(length="long").to_parquet(tmp_path / "0021.parquet")
    with pytest.raises(errors.BadValue, match=r"partition 21 \(.*0021.parquet\): row 0 of column 'length'"):
        bb.count(pattern, "label", schema=whole.schema, weights="weight", engine=pool)


# Processes -------------------------------------------------------------------------------------------------------------


def test_processes_and_one_that_dies(frame: pandas.DataFrame, tmp_path: Path) -> None:
    pattern = written(tmp_path, parts(frame, 4), "parquet")
    mark = tmp_path / "died"
    dying = Dying(*processes.parts_of(pattern, 2), None)
    dying.mark = mark
    assert Partitions(dying).table("label").count_all() == bb.count(frame, "label")
    assert mark.exists()


class Dying(processes.Processes):
    """Processes of which one is killed at a partition."""

    mark: Path

    def add_up_parts(self, work: Any) -> Any:
        return super().add_up_parts(DieOnce(work, self.mark))


def test_a_driver_that_is_killed_leaves_nothing_running(tmp_path: Path) -> None:
    mark = tmp_path / "begun"
    script = f"""
import pathlib, time
from banbury.engines import processes
pool = processes.pool()
pool.submit(pathlib.Path({str(mark)!r}).touch)
pool.submit(time.sleep, 60).result()
"""
    with subprocess.Popen([sys.executable, "-c", script], start_new_session=True) as driver:
        until = time.monotonic() + 600
        while not mark.exists() and time.monotonic() < until and driver.poll() is None:
            time.sleep(0.01)
        os.kill(driver.pid, signal.SIGKILL)
    assert mark.exists()
    until = time.monotonic() + 600
    while _runs(driver.pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert not _runs(driver.pid)


def test_files_are_counted_on_processes_from_the_command_line(tmp_path: Path) -> None:
    pieces = [rows(300, seed) for seed in range(3)]
    pattern, tally = written(tmp_path, pieces, "csv"), tmp_path / "all.banbury"
    command = ["--target", "label", "--engine", "processes", "-o", str(tally)]
    assert cli.main(["tally", "count", pattern, *command]) == 0
    assert bb.load(tally) == bb.count(pandas.concat(pieces), "label")
    assert cli.main(["tally", "count", "-", *command]) == 2


def _runs(group: int) -> bool:
    """Whether some process of a group of them is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_interrupt_that_python_loses_is_heard(pool: Any, frame: pandas.DataFrame) -> None:
    """It comes while garbage is collected, and is raised in the callback of a library that watches the collector."""

    def watching(phase: str, info: Any) -> None:
        if phase == "stop" and not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)

    pressed = list[bool]()
    engine = processes.Processes(parts(frame, 3), None, pool)
    engine.add_up_parts = lambda work: _slowly_collected(watching)  # type: ignore[method-assign]
    try:
        with pytest.raises(KeyboardInterrupt):
            Partitions(engine).table("label").count_all()
    finally:
        gc.callbacks.remove(watching)
    assert pressed
    assert sys.unraisablehook.__module__ != "banbury.engines.interrupts"


def _slowly_collected(watching: Any) -> Any:
    gc.callbacks.append(watching)
    gc.collect()
    time.sleep(5)
    yield 1, None


# Bad input -------------------------------------------------------------------------------------------------------------


def test_what_cannot_be_done_is_said(pool: Any, frame: pandas.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(errors.BadSetting, match="engine must be a Dask client"):
        bb.count(frame, "label", engine="horses")
    with pytest.raises(errors.BadSetting, match="engine must be"):
        bb.count(frame, "label", engine=3)
    with pytest.raises(errors.BadSetting, match="partitions must be used with engine="):
        bb.count(frame, "label", partitions=3)
    with pytest.raises(errors.BadSetting, match="partitions must be a whole number of at least 1"):
        bb.count(frame, "label", engine=pool, partitions=0)
    with pytest.raises(errors.UnknownColumn, match=r"no column 'lable'. Did you mean 'label'"):
        bb.count(parts(frame, 3), "lable", engine=pool)
    with pytest.raises(errors.UnknownColumn, match="no column 'wait'"):
        bb.count(parts(frame, 3), "label", weights="wait", engine=pool)
    with pytest.raises(errors.BadSetting, match="target must be the name of a column when rows are in partitions"):
        bb.count(parts(frame, 3), np.zeros(len(frame)), engine=pool)
    with pytest.raises(errors.EmptyData, match="all partitions are empty"):
        bb.count([frame.iloc[:0]] * 3, "label", engine=pool)
    with pytest.raises(errors.EmptyData, match="there are no parts"):
        bb.count([], "label", engine=pool)
    with pytest.raises(errors.EmptyData, match="is missing in all 30 rows"):
        bb.count(parts(frame.iloc[:30].assign(label=None), 3), "label", engine=pool)
    with pytest.raises(errors.BadFile, match="the file does not exist"):
        bb.count(str(tmp_path / "rows.csv"), "label", engine=pool)
    with pytest.raises(errors.BadSetting, match="data must be a file, a pattern"):
        bb.count(str(tmp_path), "label", engine=pool)


def test_a_partition_that_does_not_fit_is_named(pool: Any, frame: pandas.DataFrame) -> None:
    pieces = [frame.iloc[:1200], frame.iloc[1200:1500], frame.iloc[1500:]]
    lacks = [*pieces[:2], pieces[2].drop(columns="grade")]
    with pytest.raises(errors.UnknownColumn, match="partition 2: no column 'grade'") as raised:
        bb.count(lacks, "label", engine=pool)
    assert raised.value.partition == 2 and raised.value.column == "grade"
    words = [*pieces[:2], pieces[2].assign(length="long")]
    with pytest.raises(errors.BadValue, match="partition 2: row 0 of column 'length' contains 'long'"):
        bb.count(words, "label", engine=pool)
    early = [frame.iloc[:10], frame.iloc[10:30].drop(columns="grade")]
    with pytest.raises(errors.SchemaMismatch, match="a partition lacks 'grade'"):
        bb.count(early, "label", engine=pool)


def test_another_version_on_a_worker_is_refused(frame: pandas.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(parcels, "FORMAT", 2)
        older = pickle.dumps(parcels.Parcel((0,), bb.count(frame.iloc[:9], "label")))
    with pytest.raises(
        errors.EngineError, match=r"whose tallies have format 2, but this is Banbury .* pip install banbury=="
    ):
        pickle.loads(older)


def test_warnings_of_workers_are_given_here_once(pool: Any) -> None:
    table = pandas.DataFrame({"x": ["a", "b"] * 20, "w": [1e-30, 1.0] * 20, "y": ["p", "q"] * 20})
    with pytest.warns(errors.BanburyWarning, match="weigh less than 5e-19") as said:
        bb.count(parts(table, 2), "y", weights="w", engine=pool)
    assert said[0].filename == __file__


def test_progress_is_that_of_partitions(pool: Any, frame: pandas.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = list[progress.Line]()

    class Kept(progress.Line):
        def end(self) -> None:
            lines.append(self)
            super().end()

    monkeypatch.setattr(progress, "display", Kept)
    monkeypatch.setenv("BANBURY_PROGRESS", "1")
    bb.count(parts(frame, 5), "label", engine=pool)
    told = [line for line in lines if line.unit == "partitions"]
    assert [(line.title, line.n_rows, line.share) for line in told] == [("counting on processes", 5, 1.0)]


def test_rows_of_a_partition_are_of_any_kind() -> None:
    assert counting.has_no_rows([]) and not counting.has_no_rows("rows.csv")


# Validation ------------------------------------------------------------------------------------------------------------

FIGURES = ("log_loss", "brier", "macro_f1", "calibration_error")


def same(found: Any, whole: Any) -> None:
    """The same figures, to the last bit."""
    assert found.classes == whole.classes
    assert found.confusion.tolist() == whole.confusion.tolist()
    assert found.accuracy == whole.accuracy
    assert [getattr(found, name) for name in FIGURES] == [getattr(whole, name) for name in FIGURES]


@pytest.mark.parametrize("settings", [{}, {"weights": "weight"}, {"id": "user"}, {"how": "predictive", "alpha": 0.3}])
def test_cross_validation_agrees_with_that_of_one_process(pool: Any, settings: dict[str, Any]) -> None:
    table = rows(600).assign(user=[f"user {number % 37}" for number in range(600)])
    if "id" not in settings:
        settings = {**settings, "features": {"user": None}}
    whole = bb.cross_validate(table, "label", folds=4, seed=5, deal="content", **settings)
    for n in (1, 7):
        found = bb.cross_validate(parts(table, n), "label", folds=4, seed=5, engine=pool, **settings)
        same(found, whole)
        assert found.fold_accuracies.tolist() == whole.fold_accuracies.tolist()
        assert str(found).splitlines()[0] == str(whole).splitlines()[0]


def test_work_that_a_worker_has_done_can_be_sent_to_another(pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask moves it from worker to worker; what it has computed on the way stays behind."""
    table = rows(200)
    done = list[Any]()
    sum_of = Partitions.sum_of

    def keep(partitions: Partitions, work: Any, doing: str) -> Any:
        assert work(0, table) is not None  # in this process
        done.append(work)
        return sum_of(partitions, work, doing)

    monkeypatch.setattr(Partitions, "sum_of", keep)
    bb.cross_validate(parts(table, 2), "label", folds=2, engine=pool)
    assert [type(work).__name__ for work in done] == ["CountFolds", "ScoreFolds"]
    for work in done:
        assert len(pickle.dumps(work)) > 0
    (sent,) = pickle.loads(pickle.dumps(done[1]))(0, table).value.outcomes
    (own,) = done[1](0, table).value.outcomes
    assert sent.n_rows == own.n_rows == 200 and sent.confusion.same(own.confusion) and sent.sums.same(own.sums)


def test_rows_are_dealt_by_what_they_hold(pool: Any) -> None:
    table = pandas.concat([rows(300), rows(300)])  # every row twice
    validation = bb.cross_validate(table, "label", folds=5, deal="content")
    assert (validation.folds[:300] == validation.folds[300:]).all()
    order = np.random.default_rng(0).permutation(600)
    turned = bb.cross_validate(
        table.iloc[order], "label", folds=5, deal="content", schema=bb.count(table, "label").schema
    )
    assert (turned.folds == validation.folds[order]).all()
    sizes = np.bincount(validation.folds)
    assert len(sizes) == 5 and sizes.min() > 60
    other = bb.cross_validate(table, "label", folds=5, deal="content", seed=1)
    assert (other.folds != validation.folds).any()
    table["id"] = np.arange(600) % 20
    by_id = bb.cross_validate(table, "label", folds=5, id="id")
    assert all(len(set(by_id.folds[table["id"] == number])) == 1 for number in range(20))


def test_tuning_agrees_with_that_of_one_process(pool: Any, frame: pandas.DataFrame) -> None:
    table = frame.iloc[:400]
    for scoring in ("log_loss", "accuracy"):
        settings = {"alpha": [0.01, 1.0, 30.0], "how": ["mean", "map"], "folds": 3, "scoring": scoring}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = bb.tune(table, "label", deal="content", **settings)
            found = bb.tune(parts(table, 3), "label", engine=pool, **settings)
        assert found.best == whole.best and found.tally == whole.tally
        assert np.allclose(found.scores, whole.scores, rtol=1e-12) and np.allclose(found.accuracies, whole.accuracies)


def test_evaluation_agrees_with_that_of_one_process(pool: Any, frame: pandas.DataFrame) -> None:
    model = bb.estimate(bb.count(frame.iloc[:1000], "label"))
    tested = frame.iloc[1000:1600].copy()
    tested.loc[tested.index[:5], "label"] = "never met"
    tested.loc[tested.index[5:9], "label"] = None
    whole = bb.evaluate(model, tested)
    found = bb.evaluate(model, parts(tested, 6), engine=pool)
    same(found, whole)
    assert found.notes == whole.notes == ("the model does not know 'never met'",)
    own = bb.evaluate(model, parts(frame.iloc[:1000], 3), engine=pool)
    assert own.notes == bb.evaluate(model, frame.iloc[:1000]).notes


def test_what_cannot_be_validated_is_said(pool: Any, frame: pandas.DataFrame) -> None:
    pieces = parts(frame.iloc[:200], 3)
    with pytest.raises(errors.BadSetting, match="folds must be a whole number from 2 to 10,000"):
        bb.cross_validate(pieces, "label", folds="loo", engine=pool)
    with pytest.raises(
        errors.BadSetting, match="groups must be omitted when rows are in partitions, because id= decides their folds"
    ):
        bb.cross_validate(pieces, "label", groups="colour", engine=pool)
    with pytest.raises(errors.BadSetting, match="sample must be omitted when all rows are validated"):
        bb.cross_validate(pieces, "label", sample=100, engine=pool)
    with pytest.raises(errors.BadSetting, match="sample must be omitted when all rows are validated"):
        bb.cross_validate(frame, "label", sample=100)
    with pytest.raises(errors.BadSetting, match="sample must be a whole number of at least 2"):
        bb.weigh(bb.count(pieces[0], "label"), pieces, "label", sample=1, engine=pool)
    with pytest.raises(errors.BadSetting, match="sample must be omitted when rows are in memory"):
        bb.cross_validate(frame, "label", calibrate="platt", sample=100)
    with pytest.raises(errors.BadSetting, match="groups must be the name of a column"):
        bb.weigh(bb.count(pieces[0], "label"), pieces, "label", groups=[1, 2], engine=pool)
    with pytest.raises(errors.BadSetting, match="how must be one of"):
        bb.cross_validate(pieces, "label", how="best", engine=pool)
    with pytest.raises(errors.BadSetting, match="deal must be one of 'stratified', 'content'"):
        bb.cross_validate(frame, "label", deal="cards")
    with pytest.raises(errors.UnknownColumn, match="no column 'user'"):
        bb.cross_validate(pieces, "label", id="user", engine=pool)
    with pytest.raises(errors.UnknownColumn, match="no column 'user'"):
        bb.cross_validate(frame, "label", id="user")
    with pytest.raises(errors.BadSetting, match="at least two folds"):
        bb.cross_validate([frame.iloc[:1]] * 4, "label", folds=3, schema=bb.count(frame, "label").schema, engine=pool)


# What is learned from a sample of rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"weights": "weight", "groups": "user"}])
def test_weights_are_those_of_one_process_whatever_the_parts(pool: Any, settings: dict[str, Any]) -> None:
    table = rows(400).assign(user=[f"user {number % 37}" for number in range(400)])
    table = pandas.concat([table, table.iloc[:50]])  # some rows are alike
    counted = bb.count(table, "label", missing="category", features={"user": None}, weights=settings.get("weights"))
    whole = to_bytes(bb.weigh(counted, table, "label", **settings))
    some = bb.weigh(counted, table.iloc[::-1], "label", sample=120, **settings)
    assert whole != to_bytes(some) and 120 <= some.weighing.sample < 200
    assert f"learned from a sample of {some.weighing.sample} rows" in str(some)
    assert from_bytes(to_bytes(some), "").weighing.sample == some.weighing.sample
    for n in (1, 2, 7):
        pieces = parts(table.sample(frac=1, random_state=n), n)
        assert to_bytes(bb.weigh(counted, pieces, "label", engine=pool, **settings)) == whole
        found = bb.weigh(counted, pieces, "label", engine=pool, sample=120, **settings)
        assert to_bytes(found) == to_bytes(some)


def test_few_rows_that_are_alike_many_times_are_all_in_a_sample(pool: Any) -> None:
    r = np.random.default_rng(0)
    table = pandas.DataFrame({"a": r.choice(["x", "y"], 900), "b": r.choice(["x", "y", "z"], 900)})
    table["label"] = np.where(r.random(900) < 0.2, "p", table["a"])
    counted = bb.count(table, "label")
    found = bb.weigh(counted, parts(table, 4), "label", sample=40, engine=pool)  # of 18 that differ
    assert found.weighing.sample is None
    assert to_bytes(found) == to_bytes(bb.weigh(counted, table, "label"))


def test_evidence_and_prior_are_those_of_all_rows_though_a_sample_weighs_them() -> None:
    r = np.random.default_rng(0)
    label = np.where(r.random(4000) < 0.02, "rare", "common")
    table = pandas.DataFrame({"x": r.normal(size=4000) + 2 * (label == "rare"), "label": label})
    model = bb.weigh(bb.count(table, "label", features="quantile_tree"), table, "label", sample=300, correct=False)
    assert model.posterior(table)[:, 1].mean() == pytest.approx((label == "rare").mean(), rel=0.4)


@pytest.mark.parametrize(
    "n_rare, sample", [(1, 20), (3, 2), (40, 30)]
)  # of one row each; the last are more than the sample
def test_a_sample_has_every_class_whatever_the_order_and_the_parts(pool: Any, n_rare: int, sample: int) -> None:
    r = np.random.default_rng(0)
    table = pandas.DataFrame({"x": r.normal(size=600), "y": r.choice(list("abc"), 600), "label": "common"})
    table.loc[table.index[-n_rare:], "label"] = [f"rare {i}" for i in range(n_rare)]
    table = pandas.concat([table, table.iloc[-1:]])  # twice
    counted = bb.count(table, "label", features={"x": "gaussian"})
    here = bb.weigh(counted, table, "label", sample=sample, correct=False)
    assert here.weighing.sample == max(sample, n_rare + 1) + 1  # rows that differ, and the one twice
    assert to_bytes(bb.weigh(counted, table.iloc[::-1], "label", sample=sample, correct=False)) == to_bytes(here)
    for n in (1, 2, 7):
        pieces = parts(table.sample(frac=1, random_state=n), n)
        found = bb.weigh(counted, pieces, "label", sample=sample, correct=False, engine=pool)
        assert to_bytes(found) == to_bytes(here)
    X, y = table.drop(columns="label"), table["label"]
    assert len(bb.EvidenceClassifier(sample=sample).fit(X, y).classes_) == n_rare + 1


def test_a_sample_has_every_label(pool: Any) -> None:
    labels = [["common"], []] * 300
    labels[-2:] = [["common", "rare"], ["lone"]]
    table = pandas.DataFrame({"text": [f"a text of number{i}" for i in range(600)], "labels": labels})
    model = bb.LabelModel.of(bb.count(table, "labels"))
    found = [bb.evaluate(model, parts(table, n), "labels", engine=pool, sample=20) for n in (1, 5)]
    assert found[0].log_loss == found[1].log_loss
    assert all(found[0].truth.any(axis=0)) and found[0].notes == ("a sample of 20 of 600 rows",)


@pytest.mark.parametrize(
    "settings", [{"weigh": True}, {"calibrate": "platt", "weights": "weight", "id": "user"}, {"alpha": [0.1, 1.0]}]
)
def test_what_rows_in_memory_teach_is_validated_on_a_sample(pool: Any, settings: dict[str, Any]) -> None:
    table = rows(240).assign(user=[f"user {number % 37}" for number in range(240)])
    table = table if "id" in settings else table.drop(columns="user")
    whole = bb.cross_validate(table, "label", folds=3, deal="content", **settings)
    found = bb.cross_validate(parts(table, 4), "label", folds=3, engine=pool, **settings)
    assert (found.log_loss, found.accuracy) == (whole.log_loss, whole.accuracy) and not found.notes
    some = [
        bb.cross_validate(parts(table, n), "label", folds=3, engine=pool, sample=100, **settings) for n in (1, 2, 7)
    ]
    assert len({(each.log_loss, each.brier, each.accuracy.value) for each in some}) == 1
    assert len(some[0].rows) == 100 and "tested on a sample; models also learn from" in some[0].notes[0]


def test_models_of_a_sample_count_the_rows_that_are_not_in_it(pool: Any) -> None:
    """Each fold of the sample is scored by what all rows but its own add up to."""
    table = rows(200)[["grade", "colour", "label"]].assign(number=np.arange(200) * 1.5)
    held = open_rows(open_table(parts(table, 3), "label", engine=pool), 3, 0).sample(60)
    assert held.n_rows == 60 and held.tally_of_rest.n_rows == 140
    found = bb.cross_validate(parts(table, 5), "label", folds=3, calibrate="temperature", sample=60, engine=pool)
    assert len(found.rows) == 60
    everything = bb.count(table, "label")
    here = replace(held, tally_of_rest=None).count(held.fold, 3)
    (splits,) = held.fold_sets(None, 0)
    learned = held.count_fold_set(splits).only(splits.splits[1].is_learned)
    assert learned == everything - here.only(np.arange(3) == 1)


@pytest.mark.slow
def test_tuning_and_a_classifier_of_a_sample(pool: Any, frame: pandas.DataFrame) -> None:
    table = frame.iloc[:200]
    for settings in (
        {"weigh": {"pairs": [True, False]}},
        {"alpha": [0.1, 1.0], "calibrate": "temperature"},
        {"alpha": [0.1, 1.0], "weigh": [False, True]},
        {"features": {"text": bb.Text()}, "alpha": "auto", "calibrate": "temperature"},
    ):
        whole = bb.tune(table, "label", folds=3, deal="content", **settings)
        found = bb.tune(parts(table, 3), "label", folds=3, engine=pool, **settings)
        assert found.best == whole.best and found.tally == whole.tally
        assert np.allclose(found.scores, whole.scores, rtol=1e-12)
        some = bb.tune(parts(table, 3), "label", folds=3, engine=pool, sample=80, **settings)
        assert some.tally == whole.tally and some.model.n_rows == 200
    chosen = bb.tune(parts(table, 3), "label", folds=3, engine=pool, sample=80, features="choose", alpha=1.0)
    assert chosen.tally.n_rows == 200 and len(chosen.family_choice.names) > 0
    with pytest.raises(errors.BadSetting, match="text must be omitted when settings are compared on a sample"):
        bb.tune(
            parts(table, 3), "label", folds=3, engine=pool, sample=80, calibrate="platt", text={"min_count": [1, 2]}
        )
    some = bb.EvidenceClassifier(sample=80).fit(table.drop(columns="label"), table["label"])
    assert some.weighing_.sample == 80 and some.tally_.n_rows == 200


@pytest.fixture(scope="module")
def tagged() -> pandas.DataFrame:
    r = np.random.default_rng(0)
    words = [f"{letter}{number}" for letter in "abcdefgh" for number in range(6)]
    texts = [" ".join(r.choice(words, 6)) for _ in range(200)]
    tags = [";".join(sorted({word[0] for word in text.split()[:3]} & set("abc"))) for text in texts]
    return pandas.DataFrame({"text": texts, "tags": tags})


def test_sets_of_labels_are_validated_on_a_sample(pool: Any, tagged: pandas.DataFrame) -> None:
    settings = {"target_delimiter": ";", "folds": 3}
    whole = bb.cross_validate(tagged, "tags", **settings)
    found = bb.cross_validate(parts(tagged, 4), "tags", engine=pool, **settings)
    assert found.micro_f1 == whole.micro_f1 and found.log_loss == pytest.approx(whole.log_loss, rel=1e-12)
    named = tagged.assign(user=[f"user {n % 40}" for n in range(200)])
    by_user = bb.cross_validate(named, "tags", id="user", **settings)
    assert bb.cross_validate(parts(named, 4), "tags", id="user", engine=pool, **settings).micro_f1 == by_user.micro_f1
    some = [bb.cross_validate(parts(tagged, n), "tags", engine=pool, sample=90, **settings) for n in (1, 2, 7)]
    assert len({(each.micro_f1, each.log_loss) for each in some}) == 1 and len(some[0].rows) == 90
    assert some[0].notes == ("tested on a sample; models also learn from 110 other rows",)
    tuned = bb.tune(parts(tagged, 3), "tags", alpha=[0.1, 1.0], engine=pool, **settings)
    assert tuned.best == bb.tune(tagged, "tags", alpha=[0.1, 1.0], **settings).best
    some_tuned = bb.tune(parts(tagged, 3), "tags", alpha=[0.1, 1.0], engine=pool, sample=90, **settings)
    assert some_tuned.model.tally == tuned.model.tally == bb.count(tagged, "tags", target_delimiter=";")
    numbered = parts(tagged.assign(number=np.arange(200.0)), 2)
    for name, refused in {
        "weigh": {"weigh": True, "sample": 90},
        "class_prior": {"class_prior": "uniform"},
    }.items():
        with pytest.raises(errors.BadSetting, match=f"{name} must be omitted"):
            bb.cross_validate(numbered, "tags", engine=pool, **settings, **refused)
    of_all = tagged.assign(number=np.arange(200.0))
    for options in ({"id": "number"}, {"weigh": True}):
        there = bb.cross_validate(of_all, "tags", **settings, **options)
        assert bb.cross_validate(numbered, "tags", engine=pool, **settings, **options).micro_f1 == there.micro_f1


def test_sets_of_labels_are_evaluated_on_a_sample(pool: Any, tagged: pandas.DataFrame) -> None:
    model = bb.LabelModel.of(bb.count(tagged.iloc[:100], "tags", target_delimiter=";"))
    whole = bb.evaluate(model, tagged)
    found = bb.evaluate(model, parts(tagged, 3), engine=pool)
    assert (found.micro_f1, found.hamming_loss) == (whole.micro_f1, whole.hamming_loss) and not found.notes
    some = [bb.evaluate(model, parts(tagged, n), "tags", engine=pool, sample=80) for n in (1, 5)]
    assert some[0].log_loss == some[1].log_loss and some[0].notes == ("a sample of 80 of 200 rows",)
    with pytest.raises(errors.BadSetting, match="target must be sets of labels: lists, flags, or texts"):
        bb.evaluate(model, parts(tagged, 3), "tags", target_delimiter=None, engine=pool)


def test_a_sample_of_rows_that_are_alike_and_weigh_is_refused_where_it_is_subtracted(pool: Any) -> None:
    table = pandas.DataFrame({"a": ["x", "y"] * 50, "weight": 0.1, "label": ["p", "q"] * 50})
    with pytest.raises(errors.BadSetting, match="sample must be 100 at least, because so many rows are identical"):
        bb.cross_validate(parts(table, 2), "label", folds=2, weights="weight", calibrate="platt", sample=4, engine=pool)
