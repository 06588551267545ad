"""Spark: a real cluster of two executors; the same count in any partitions, with tasks that fail, die or are run twice."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
import pytest

import banbury as bb
from engine_rows import parts, rows

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
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.speculation.quantile": "0.4",
}


@pytest.fixture(scope="module")
def session() -> Any:
    """A cluster of two executors of one core each, in processes of their own, which run what is slow a second time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
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
    return spread(session, parts(frame, 5)).cache()


def test_any_partitions_are_counted_as_one_process_counts(session: Any, frame: pandas.DataFrame, data: Any) -> None:
    whole = bb.count(frame, "label", weights="weight")
    by_class = [frame[frame["label"] == label] for label in ("r", "q", "p")]
    pieces = [frame.iloc[:0], *by_class, frame.iloc[:0]]
    for several in (data, data.coalesce(1), spread(session, pieces)):
        found = bb.count(several, "label", weights="weight")
        assert found == whole and found.digest() == whole.digest()
    assert whole.count(data, weights="weight") == whole
