"""The most memory that learning takes, each engine in a process of its own: numbers, texts, and CSV files of any size."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import synthetic
from benchmarks.measure import Figure, Setting, WrongAnswer, say

FILES = (100_000_000, 1_000_000_000)  # bytes


def figures(setting: Setting) -> Iterator[Figure]:
    rows = setting.rows(2_000_000)
    ours, peer = (in_child(f"numbers, {engine}", rows, setting) for engine in ("ours", "GaussianNB"))
    sizes = [1.0 + report["peak"] / report["data"] for report in (ours, peer)]
    yield Figure("memory", "fit, with the data", f"{rows:,} × 20 float64", *sizes, "GaussianNB", unit="× data")

    documents = setting.rows(synthetic.DOCUMENTS)
    ours, peer = (in_child(f"texts, {engine}", documents, setting) for engine in ("ours", "CountVectorizer"))
    data = f"Zipf, {ours['data'] / 1e6:.1f} MB, {documents:,} documents"
    sizes = [report["peak"] / 1e6 for report in (ours, peer)]
    yield Figure("memory", "fit, above the texts", data, *sizes, "CountVectorizer, MultinomialNB", unit="MB")

    with tempfile.TemporaryDirectory() as folder:
        for size in FILES:
            yield count_file(Path(folder) / "big.csv", size // 50 if setting.small else size, setting)


def count_file(path: Path, size: int, setting: Setting) -> Figure:
    import pyarrow.csv as pa_csv

    block = synthetic.mixed_table(20_000)
    n_rows = 0
    with path.open("wb") as file:
        while file.tell() < size:
            pa_csv.write_csv(block, file, pa_csv.WriteOptions(include_header=n_rows == 0, quoting_style="none"))
            n_rows += len(block)
    report = in_child("file", str(path), setting)
    if report["rows"] != n_rows:
        raise WrongAnswer(f"{report['rows']:,} rows were counted of {n_rows:,}")
    data = f"CSV of {size / 1e6:,.0f} MB, {n_rows:,} rows"
    return Figure("memory", "count a file", data, report["peak"] / 1e6, answers=f"{report['seconds']:.2g} s", unit="MB")


# In a process of its own ----------------------------------------------------------------------------------------------


def in_child(task: str, argument: int | str, setting: Setting) -> dict[str, Any]:
    say(f"memory: {task}")
    command = [sys.executable, "-m", "benchmarks.memory", task, str(argument)]
    threads = str(setting.threads)
    environment = os.environ | {"BANBURY_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def measure(task: str, argument: str) -> dict[str, Any]:
    """What a task adds to the memory of this process, which has already imported and used the library once."""
    import banbury as bb

    if task == "file":
        path = Path(argument)
        start = time.perf_counter()
        tally = bb.count(path, target="side")
        return {"rows": tally.n_rows, "seconds": time.perf_counter() - start, "peak": peak()}
    kind, _, engine = task.partition(", ")
    learner = make_learner(engine, kind)
    make_data = synthetic.numbers if kind == "numbers" else synthetic.texts
    learner.fit(*make_data(1000))
    X, y = make_data(int(argument))
    gc.collect()
    forget_peak()
    before = peak()
    learner.fit(X, y)
    return {"peak": peak() - before, "data": X.nbytes if kind == "numbers" else sum(map(len, X))}


def make_learner(engine: str, kind: str) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import GaussianNB, MultinomialNB
    from sklearn.pipeline import make_pipeline

    import banbury as bb

    if engine == "ours":
        return bb.NaiveBayesClassifier(features="gaussian" if kind == "numbers" else "auto")
    return GaussianNB() if kind == "numbers" else make_pipeline(CountVectorizer(), MultinomialNB())


def peak() -> int:
    """The most memory this process has held, in bytes."""
    # Linux starts a child's ru_maxrss at its parent's, so prefer the process's own high-water mark.
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def forget_peak() -> None:
    """Start the high-water mark again from what is held now, where Linux allows it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
