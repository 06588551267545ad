"""From nothing to the first answer, each in a process of its own: the first fit, and the command line."""

from __future__ import annotations

import compileall
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import banbury as bb
from benchmarks.measure import Figure, Setting, WrongAnswer, say

FRAME = (
    "import pandas as pd, banbury as bb; X = pd.DataFrame({'a': [1., 2., 3., 4.], 'b': list('xyxy')}); "
    "print(*bb.NaiveBayesClassifier().fit(X, list('pqpq')).predict(X))"
)
TEXTS = (
    "import banbury as bb; X = ['good day', 'bad day', 'good news', 'bad news']; "
    "print(*bb.NaiveBayesClassifier().fit(X, list('pqpq')).predict(X))"
)


def figures(setting: Setting) -> Iterator[Figure]:
    compileall.compile_dir(Path(bb.__file__).parent, quiet=1)  # as pip does when it installs
    with tempfile.TemporaryDirectory() as folder:
        write_models(Path(folder))
        predict = ["-m", "banbury", "predict"]
        commands: list[tuple[str, str, Sequence[str], str]] = [
            ("import banbury, first fit", "4 × 2, a pandas frame", ["-c", FRAME], "p q p q"),
            ("import banbury, first fit", "4 texts", ["-c", TEXTS], "p q p q"),
            ("banbury predict", "one row of CSV", [*predict, "rows.banbury", "row.csv"], '"row": 1'),
            ("banbury predict", "one text of CSV", [*predict, "texts.banbury", "text.csv"], '"row": 1'),
            ("banbury --help", "", ["-m", "banbury", "--help"], "banbury"),
        ]
        for task, data, arguments, output in commands:
            say(f"start: {task}, {data}")
            n_runs = 1 if setting.small else 3 * setting.repeats
            runs = [run_once([sys.executable, *arguments], output, folder) for _ in range(n_runs)]
            processor, wall = (min(times) for times in zip(*runs, strict=True))
            yield Figure("start", task, data, wall, answers=f"{processor:.2f} s of the processor")


def write_models(folder: Path) -> None:
    """A small model of rows and one of texts, and a row and a text for them."""
    rng = np.random.default_rng(5)
    y = [str(label) for label in rng.integers(0, 2, 500)]
    table = {"a": rng.standard_normal(500), "b": rng.choice(list("xyz"), 500).tolist()}
    texts = [" ".join(rng.choice(list("abcdefgh"), 20)) for _ in range(500)]
    bb.save(bb.estimate(bb.count(table, y)), folder / "rows.banbury")
    bb.save(bb.estimate(bb.count({"text": texts}, y, features={"text": "text"})), folder / "texts.banbury")
    (folder / "row.csv").write_text("a,b\n0.5,x\n", encoding="utf-8")
    (folder / "text.csv").write_text("text\na b c d e f g h\n", encoding="utf-8")


def run_once(command: Sequence[str], output: str, folder: str) -> tuple[float, float]:
    """Seconds of the processor and of the wall clock."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=folder)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if output not in done.stdout:
        raise WrongAnswer(f"{' '.join(command)} printed {done.stdout!r}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall
