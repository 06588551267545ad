"""What learning needs beside the data: 2,000,000 × 20 float64 held in memory, each engine in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import gaussian
from benchmarks.measure import Figure, Setting, same_numbers, say

AT_MOST = 1.10  # times the data


def tasks(setting: Setting) -> Iterator[Figure]:
    rows = setting.rows(gaussian.ROWS)
    what = f"{rows:,} × {gaussian.COLUMNS} float64"
    say(f"memory: peak of fit, {what}")
    found = {engine: in_child("memory", engine, str(rows), threads=setting.threads) for engine in ("ours", "peer")}
    parameters = {engine: tuple(np.array(x) for x in report["parameters"]) for engine, report in found.items()}
    agreement = same_numbers(parameters, within=1e-6)
    ours, peer = (1.0 + (report["peak"] - report["before"]) / report["data"] for report in found.values())
    aim = None if setting.small else AT_MOST
    yield Figure("memory", "peak of fit", what, ours, peer, "GaussianNB", agreement, at_most=aim, unit="× data")


def in_child(module: str, *arguments: str, threads: int) -> Any:
    """Runs a module of this folder by itself; what it prints is JSON."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    environment = os.environ | {"BANBURY_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout)


def peak() -> int:
    """The most memory this process has held, in bytes."""
    # Linux starts a child's ru_maxrss at its parent's, so ask for the process's own high-water mark where that exists.
    try:
        return next(
            int(line.split()[1]) * 1024
            for line in Path("/proc/self/status").read_text().splitlines()
            if line.startswith("VmHWM")
        )
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def forget_peak() -> None:
    """The high-water mark starts again from what is held now, where Linux allows it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def fit(engine: str, rows: int) -> dict[str, Any]:
    from sklearn.naive_bayes import GaussianNB

    import banbury as bb

    made = bb.NaiveBayesClassifier(features="gaussian") if engine == "ours" else GaussianNB(var_smoothing=0.0)
    made.fit(*gaussian.data(1000))  # libraries that are loaded at first use
    X, y = gaussian.data(rows)
    forget_peak()
    before = peak()
    made.fit(X, y)
    after = peak()
    parameters = gaussian.parameters(made) if engine == "ours" else (made.theta_, made.var_)
    return {"before": before, "peak": after, "data": X.nbytes, "parameters": [x.tolist() for x in parameters]}


if __name__ == "__main__":
    print(json.dumps(fit(sys.argv[1], int(sys.argv[2]))))
