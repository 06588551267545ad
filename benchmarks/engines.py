"""The same count on engines: 1 GB of text in 64 Parquet files, counted here and by Dask and Spark, where they are installed.

Beside each engine stands the time of one process plus the engine's own empty pass over the texts, which does nothing with them.
Peers: Spark ML on the texts, and dask-ml's GaussianNB on a table of numbers. Every tally must be that of one process.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import banbury as bb
from benchmarks import synthetic
from benchmarks.measure import Figure, Peer, Setting, WrongAnswer, compare, say

PARTS = 64
DIFFERENT = 8  # of the parts; the others repeat their texts
PART_DOCUMENTS = 17_800  # about 16 MB
BESIDE = "one process and an empty pass"


class Texts:
    """The files, and the tally of one process with its time."""

    def __init__(self, folder: str, setting: Setting) -> None:
        self.folder = folder
        self.setting = setting
        self.pattern = f"{folder}/*.parquet"
        self.size = write_parts(Path(folder), setting)
        self.data = f"{self.size / 1e9:.2f} GB of text, {PARTS} files"
        self.alone = compare(
            ("engines", "bb.count, one process", self.data),
            self.count,
            lambda tally, _: f"{tally.n_rows:,} rows",
            setting,
        )
        self.tally = self.count()

    def count(self, engine: Any = None) -> Any:
        return bb.count(self.pattern, "label", engine=engine)

    def check(self, tally: Any, _: Any) -> str:
        if tally != self.tally:
            raise WrongAnswer("the tally is not that of one process")
        return "same tally"

    def figure(self, task: str, run: Callable[[], Any], empty_pass: Callable[[], Any] | None = None) -> Figure:
        """The time of an engine beside one process, plus the engine's empty pass if it has one."""
        figure = compare(("engines", task, self.data), run, self.check, self.setting)
        if empty_pass is None:
            return replace(figure, peer=self.alone.ours, peer_name="one process")
        start = time.perf_counter()
        empty_pass()
        return replace(figure, peer=self.alone.ours + time.perf_counter() - start, peer_name=BESIDE)


def figures(setting: Setting) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        texts = Texts(folder, setting)
        yield texts.alone
        yield texts.figure("bb.count, engine='processes'", lambda: texts.count("processes"))
        if find_spec("distributed"):
            yield from on_dask(texts, setting)
        if find_spec("pyspark"):
            yield from on_spark(texts, setting)
        say("engines: Dask and Spark have rows where they are installed")


def write_parts(folder: Path, setting: Setting) -> int:
    tables = []
    for number in range(DIFFERENT):
        texts, labels = synthetic.texts(setting.rows(PART_DOCUMENTS) // (10 if setting.small else 1), seed=number)
        tables.append(pa.table({"text": texts, "label": labels.tolist()}))
    for number in range(PARTS):
        parquet.write_table(tables[number % DIFFERENT], folder / f"{number:03}.parquet")
    return sum(table["text"].nbytes for table in tables) * PARTS // DIFFERENT


def on_dask(texts: Texts, setting: Setting) -> Iterator[Figure]:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=setting.threads, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        files = sorted(str(path) for path in Path(texts.folder).glob("*.parquet"))
        read_all = lambda: client.gather(client.map(count_rows, files, pure=False))  # noqa: E731
        yield texts.figure("Dask: bb.count of the files", lambda: texts.count(client), read_all)
        frame = dd.read_parquet(files)
        length = lambda: frame.map_partitions(len).sum().compute()  # noqa: E731
        yield texts.figure("Dask: bb.count of the dataframe", lambda: bb.count(frame, "label"), length)
        if find_spec("dask_ml"):
            yield beside_dask_ml(setting)


def beside_dask_ml(setting: Setting) -> Figure:
    import dask.dataframe as dd
    import pandas as pd
    from dask_ml.naive_bayes import GaussianNB

    rng = np.random.default_rng(0)
    rows = setting.rows(2_000_000)
    columns = {f"x{j}": rng.normal(size=rows) for j in range(20)}
    frame = dd.from_pandas(pd.DataFrame({**columns, "label": rng.integers(0, 5, rows)}), npartitions=16).persist()
    X = frame.drop(columns="label").to_dask_array(lengths=True)
    y = frame["label"].to_dask_array(lengths=True)

    def theirs() -> Any:
        model = GaussianNB().fit(X, y)
        return np.asarray(model.theta_), np.asarray(model.sigma_)

    ours = lambda: bb.estimate(bb.count(frame, "label", features="gaussian"))  # noqa: E731
    where = ("engines", "Dask: fit", f"{rows:,} × 20 float64, 5 classes, 16 partitions")
    return compare(where, ours, lambda *_: "", setting, Peer("dask-ml GaussianNB", theirs))


def on_spark(texts: Texts, setting: Setting) -> Iterator[Figure]:
    """Spark ML hashes words into 2**18 buckets and learns from these."""
    from pyspark.ml import Pipeline
    from pyspark.ml.classification import NaiveBayes
    from pyspark.ml.feature import HashingTF, StringIndexer, Tokenizer
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{setting.threads}]").config("spark.driver.memory", "4g")
    session = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    try:
        frame = session.read.parquet(texts.folder)
        empty_pass = lambda: frame.mapInArrow(drain, "n long").collect()  # noqa: E731
        yield texts.figure("Spark: bb.count of the files", lambda: texts.count(session), empty_pass)
        count = lambda: bb.count(frame, "label")  # noqa: E731
        yield texts.figure("Spark: bb.count of the dataframe", count, empty_pass)
        steps = [
            StringIndexer(inputCol="label", outputCol="number"),
            Tokenizer(inputCol="text", outputCol="words"),
            HashingTF(inputCol="words", outputCol="features"),
            NaiveBayes(labelCol="number"),
        ]
        peer = Peer("Spark ML: Tokenizer, HashingTF, NaiveBayes", lambda: Pipeline(stages=steps).fit(frame))
        where = ("engines", "Spark: bb.count of the dataframe", texts.data)
        yield compare(where, count, texts.check, setting, peer)
    finally:
        session.stop()


def count_rows(path: str) -> int:
    return int(parquet.read_table(path).num_rows)


def drain(batches: Any) -> Any:
    """Read every batch, and give nothing."""
    for _ in batches:
        pass
    return iter(())
