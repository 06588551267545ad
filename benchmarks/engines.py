"""The same count on engines: `python -m benchmarks.engines` makes 1 GB of text in 64 parts and counts it here and there.

Beside each engine stands its own cost of an empty pass over the same parts, which reads every text and does nothing with it.
Peers stand beside it where they are installed: GaussianNB of dask-ml on a table (pip install dask-ml), Spark ML on the texts.
`--megabytes 64` is a smaller run; every tally is checked to be that of one process.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import banbury as bb
from banbury.files import to_bytes
from benchmarks import zipf

PARTS, DIFFERENT, WORKERS = 64, 8, 2
PART_DOCUMENTS = 17_800  # about 16 MB
ROWS, COLUMNS = 2_000_000, 20
AIM = "1.5 at most"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--megabytes", type=float, default=1024.0)
    arguments.add_argument("--repeats", type=int, default=2)
    options = arguments.parse_args()
    warnings.simplefilter("ignore")
    share = min(options.megabytes / 1024.0, 1.0)
    with tempfile.TemporaryDirectory() as folder:
        size = written(Path(folder), share)
        pattern = f"{folder}/*.parquet"
        print(f"{size / 1e9:.2f} GB of text in {PARTS} parts; seconds, least of {options.repeats}:")
        here, whole = least(lambda: bb.count(pattern, "label", threads=WORKERS), options.repeats)
        said(here, f"bb.count in one process, {WORKERS} threads")
        processes, found = least(lambda: bb.count(pattern, "label", engine="processes"), options.repeats)
        checked(found, whole)
        said(processes, "bb.count, engine='processes'", here)
        on_dask(pattern, whole, here, options.repeats, int(ROWS * share))
        on_spark(folder, whole, here, options.repeats)
        every, one = len(to_bytes(whole)) / 1e6, part_bytes(folder) / 1e6
        print(f"  {every:.1f} MB are the tally of all parts; {one:.1f} MB that of one part")


def written(folder: Path, share: float) -> int:
    """Writes the parts; of some, the same texts under other names."""
    size, tables = 0, list[pa.Table]()
    for number in range(DIFFERENT):
        texts, labels = zipf.texts(max(int(PART_DOCUMENTS * share), 100), seed=number)
        tables.append(pa.table({"text": texts, "label": labels.tolist()}))
    for number in range(PARTS):
        parquet.write_table(tables[number % DIFFERENT], folder / f"{number:03}.parquet")
        size += tables[number % DIFFERENT]["text"].nbytes
    return size


def part_bytes(folder: str) -> int:
    return len(to_bytes(bb.count(f"{folder}/000.parquet", "label")))


def on_dask(pattern: str, whole: bb.Tally, here: float, repeats: int, n_rows: int) -> None:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        files = sorted(str(path) for path in Path(pattern).parent.glob("*.parquet"))
        empty_files, _ = least(lambda: client.gather(client.map(read_only, files, pure=False)), repeats)
        said(empty_files, "Dask, an empty pass over the files")
        counted, found = least(lambda: bb.count(pattern, "label", engine=client), repeats)
        checked(found, whole)
        said(counted, "bb.count, engine=client", here + empty_files, AIM)
        frame = dd.read_parquet(files)
        empty, _ = least(lambda: frame.map_partitions(len).sum().compute(), repeats)
        said(empty, "Dask, an empty pass over the dataframe")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        counted, found = least(lambda: bb.count(frame, "label"), repeats)
        checked(found, whole)
        said(counted, "bb.count of the dataframe", here + empty, AIM)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"  the driver's peak memory grew by {(after - before) / 1024:.0f} MB meanwhile")
        beside_dask_ml(dd, n_rows, repeats)


def read_only(path: str) -> int:
    return int(parquet.read_table(path).num_rows)


def beside_dask_ml(dd: Any, n_rows: int, repeats: int) -> None:
    """GaussianNB of dask-ml, and ours, on a table of numbers."""
    try:
        from dask_ml.naive_bayes import GaussianNB
    except Exception as why:  # it does not load beside every version of scikit-learn
        print(f"  dask-ml is not here ({type(why).__name__}: {why})")
        return
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=n_rows) for j in range(COLUMNS)}
    import pandas

    table = pandas.DataFrame({**columns, "label": rng.integers(0, 5, n_rows)})
    frame = dd.from_pandas(table, npartitions=16).persist()
    ours, _ = least(lambda: bb.estimate(bb.count(frame, "label", features="gaussian")), repeats)
    said(ours, f"bb.count of {n_rows:,} rows × {COLUMNS} numbers on Dask")
    X = frame.drop(columns="label").to_dask_array(lengths=True)
    y = frame["label"].to_dask_array(lengths=True)

    def theirs() -> Any:
        fitted = GaussianNB().fit(X, y)
        return [np.asarray(each) for each in (fitted.theta_, fitted.sigma_)]

    try:
        peer, _ = least(theirs, repeats)
        said(peer, "GaussianNB of dask-ml", ours)
    except Exception as why:
        print(f"  GaussianNB of dask-ml fails ({type(why).__name__}: {why})")


def on_spark(folder: str, whole: bb.Tally, here: float, repeats: int) -> None:
    """The same on Spark, and beside it Spark ML, which hashes words into 2**18 buckets and learns from these."""
    try:
        from pyspark.ml import Pipeline
        from pyspark.ml.classification import NaiveBayes
        from pyspark.ml.feature import HashingTF, StringIndexer, Tokenizer
        from pyspark.sql import SparkSession
    except ImportError as why:
        print(f"  Spark is not here ({why})")
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{WORKERS}]").config("spark.driver.memory", "4g")
    session = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    try:
        frame = session.read.parquet(folder)
        empty, _ = least(lambda: frame.mapInArrow(_drained, "n long").collect(), repeats)
        said(empty, "Spark, an empty pass over the dataframe")
        counted, found = least(lambda: bb.count(frame, "label"), repeats)
        checked(found, whole)
        said(counted, "bb.count of the dataframe", here + empty, AIM)
        on_files, found = least(lambda: bb.count(f"{folder}/*.parquet", "label", engine=session), repeats)
        checked(found, whole)
        said(on_files, "bb.count of the files, engine=session", here + empty, AIM)
        steps = [
            StringIndexer(inputCol="label", outputCol="number"),
            Tokenizer(inputCol="text", outputCol="words"),
            HashingTF(inputCol="words", outputCol="features"),
            NaiveBayes(labelCol="number"),
        ]
        peer, _ = least(lambda: Pipeline(stages=steps).fit(frame), 1)
        said(peer, "Spark ML: Tokenizer, HashingTF, NaiveBayes, once", counted, "10 at least")
    finally:
        session.stop()


def _drained(batches: Any) -> Any:
    """Reads every batch, and gives nothing."""
    for _ in batches:
        pass
    return iter(())


def least(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    times, found = list[float](), None
    for _ in range(repeats):
        start = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - start)
    return min(times), found


def said(seconds: float, what: str, beside: float | None = None, aim: str = "") -> None:
    ratio = "" if beside is None else f"   ({seconds / beside:.2f} of {beside:.2f}{aim and f'; aim: {aim}'})"
    print(f"  {seconds:8.2f}  {what}{ratio}", flush=True)


def checked(found: bb.Tally, whole: bb.Tally) -> None:
    if found != whole:
        raise SystemExit("WRONG ANSWER: the tally is not that of one process")


if __name__ == "__main__":
    main()
