"""Ray: a real node of two processes; the same count of a dataset's blocks, with a worker killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pandas
import pytest

import banbury as bb
from banbury import errors
from engine_rows import parts, rows

ray = pytest.importorskip("ray", reason="Ray is not installed: make test-engines installs it")
on_ray = pytest.importorskip("banbury.engines.ray")

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def node() -> Any:
    """A node of two processors, in processes of its own, which find what this one finds."""
    found = os.pathsep.join(map(str, (Path(bb.__file__).parents[1], Path(__file__).parent)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", found)  # so that workers can be started before they are asked for
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        yield
        ray.shutdown()


@pytest.fixture(scope="module")
def frame() -> pandas.DataFrame:
    return rows(1500)


def dataset(pieces: list[pandas.DataFrame]) -> Any:
    return ray.data.from_pandas(pieces)


def test_any_blocks_are_counted_as_one_process_counts(frame: pandas.DataFrame) -> None:
    whole = bb.count(frame, "label", weights="weight")
    by_class = [frame[frame["label"] == label] for label in ("p", "q", "r")]
    for pieces in ([frame], [frame.iloc[:0], *by_class], parts(frame, 7)):
        found = bb.count(dataset(pieces), "label", weights="weight", schema=whole.schema)
        assert found == whole and found.digest() == whole.digest()
    assert bb.count(dataset(parts(frame, 7)), "label", weights="weight").n_rows == whole.n_rows
    assert whole.count(dataset([frame]), weights="weight") == whole


def test_answers_are_columns_beside_the_rows_and_validation_agrees(frame: pandas.DataFrame) -> None:
    table = frame.iloc[:300].drop(columns="weight")
    model, data = bb.estimate(bb.count(table, "label")), dataset([table])
    answers = model.predict(data)
    assert isinstance(answers, ray.data.Dataset)
    assert [row["class"] for row in answers.take_all()] == model.predict(table).tolist()
    found, whole = bb.evaluate(model, data), bb.evaluate(model, table)
    assert (found.accuracy, found.log_loss) == (whole.accuracy, whole.log_loss)
    found, whole = bb.cross_validate(data, "label", folds=3), bb.cross_validate(table, "label", folds=3, deal="content")
    assert (found.accuracy, found.log_loss) == (whole.accuracy, whole.log_loss)


def test_a_worker_that_is_killed(frame: pandas.DataFrame, tmp_path: Path) -> None:
    mark = tmp_path / "died"

    def die_once(table: Any) -> Any:
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return table

    data = dataset(parts(frame, 4)).map_batches(die_once, batch_format="pyarrow", batch_size=None)
    assert bb.count(data, "label", schema=bb.count(frame, "label").schema) == bb.count(frame, "label")
    assert mark.exists()


def test_nothing_is_left_running_after_an_interrupt(frame: pandas.DataFrame, tmp_path: Path) -> None:
    def slowly(table: Any) -> Any:
        (tmp_path / str(time.monotonic_ns())).touch()
        time.sleep(1)
        return table

    def interrupt() -> None:
        until = time.monotonic() + 60
        while not any(tmp_path.iterdir()) and time.monotonic() < until:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    data = dataset(parts(frame, 20)).map_batches(slowly, batch_format="pyarrow", batch_size=None)
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        bb.count(data, "label")
    begun = len(list(tmp_path.iterdir()))
    time.sleep(2)
    assert len(list(tmp_path.iterdir())) <= begun + 2 < 20


def test_what_cannot_be_done_is_said(frame: pandas.DataFrame, tmp_path: Path) -> None:
    data = dataset(parts(frame, 2))
    with pytest.raises(errors.UnknownColumn, match="no column 'lable'"):
        bb.count(data, "lable")
    schema = bb.count(frame, "label").schema
    with pytest.raises(errors.UnknownColumn, match="a block of Ray's: no column 'length'"):
        bb.count(data.rename_columns({"length": "nothing"}), "label", schema=schema)
    with pytest.raises(errors.BadSetting, match="parts_folder must be left out for data of Ray"):
        bb.count(data, "label", parts_folder=tmp_path)
    with pytest.raises(errors.BadSetting, match=r"data of Ray must be a ray\.data\.Dataset"):
        bb.count(data, "label", partitions=3)
    with pytest.raises(errors.EmptyData, match="all partitions are empty"):
        bb.count(dataset([frame.iloc[:0]]), "label")
    failing = dataset([frame])
    failing.context.max_errored_blocks = 1
    with pytest.raises(errors.BadSetting, match="max_errored_blocks of the dataset must be 0"):
        bb.count(failing, "label")
