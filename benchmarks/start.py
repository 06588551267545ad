"""From nothing to the first answer, each in a process of its own: the first fit, and the command line's predict of one row.

Seconds are those of the processor, of all the process; the wall's stand beside them.
"""

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

FIRST_FIT, ONE_ANSWER, HELP = 1.0, 0.25, 0.1  # seconds of the processor
FRAME = (
    "import pandas as pd, banbury as bb; X = pd.DataFrame({'a': [1., 2., 3., 4.], 'b': list('xyxy')}); "
    "print(*bb.NaiveBayesClassifier().fit(X, list('pqpq')).predict(X))"
)
TEXTS = (
    "import banbury as bb; X = ['good day', 'bad day', 'good news', 'bad news']; "
    "print(*bb.NaiveBayesClassifier().fit(X, list('pqpq')).predict(X))"
)


def tasks(setting: Setting) -> Iterator[Figure]:
    compileall.compile_dir(Path(bb.__file__).parent, quiet=1)  # as pip does where it installs
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        rows, texts = write(here)
        run = [sys.executable, "-m", "banbury"]
        work: list[tuple[str, str, float, Sequence[str], str]] = [
            ("import banbury, first fit", "4 × 2, a pandas frame", FIRST_FIT, [sys.executable, "-c", FRAME], "p q p q"),
            ("import banbury, first fit", "4 texts", FIRST_FIT, [sys.executable, "-c", TEXTS], "p q p q"),
            ("banbury predict", "one row of CSV", ONE_ANSWER, [*run, "predict", rows, f"{here}/row.csv"], '"row": 1'),
            (
                "banbury predict",
                "one text of CSV",
                ONE_ANSWER,
                [*run, "predict", texts, f"{here}/text.csv"],
                '"row": 1',
            ),
            ("banbury --help", "", HELP, [*run, "--help"], "banbury"),
        ]
        for name, data, at_most, command, said in work:
            say(f"start: {name}, {data}")
            processor, wall = zip(*(once(command, said) for _ in range(3 * setting.repeats)), strict=True)
            aim = None if setting.small else at_most
            yield Figure("start", name, data, min(processor), None, "", f"wall {min(wall):.2f} s", at_most=aim)


def write(folder: Path) -> tuple[str, str]:
    """A small model of rows and one of texts, and a row and a text for them."""
    rng = np.random.default_rng(5)
    y = [str(label) for label in rng.integers(0, 2, 500)]
    table = {"a": rng.standard_normal(500), "b": rng.choice(list("xyz"), 500).tolist()}
    words = [" ".join(rng.choice(list("abcdefgh"), 20)) for _ in range(500)]
    bb.save(bb.estimate(bb.count(table, y)), folder / "rows.banbury")
    bb.save(bb.estimate(bb.count({"text": words}, y, features={"text": "text"})), folder / "texts.banbury")
    (folder / "row.csv").write_text("a,b\n0.5,x\n", encoding="utf-8")
    (folder / "text.csv").write_text("text\na b c d e f g h\n", encoding="utf-8")
    return str(folder / "rows.banbury"), str(folder / "texts.banbury")


def once(command: Sequence[str], said: str) -> tuple[float, float]:
    """Seconds of the processor and of the wall; what is imported is compiled, as an installed package is."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if said not in done.stdout:
        raise WrongAnswer(f"{' '.join(command)} said {done.stdout!r}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall
