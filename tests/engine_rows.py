"""Rows and work for the tests of engines: columns of every kind, in parts that anyone can make again."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from banbury import progress

# A short life needs no code that is optimised for a long one.
SPARK = {"PYSPARK_PYTHON": sys.executable, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

WORDS = np.array("red green blue sky tree house river stone".split())


def rows(n: int, seed: int = 0, late: bool = False) -> pandas.DataFrame:
    """A frame with columns of every kind, some of them with gaps; ``late`` ones show more after the first 1,000 rows."""
    r = np.random.default_rng(seed)
    frame = pandas.DataFrame(
        {
            "length": np.where(r.random(n) < 0.1, np.nan, r.normal(size=n) * 3),
            "grade": r.integers(0, 5, n),
            "colour": np.where(r.random(n) < 0.1, None, r.choice(["a", "b", "c"], n)),
            "flag": r.random(n) < 0.3,
            "text": [" ".join(r.choice(WORDS, 5)) for _ in range(n)],
            "weight": r.integers(1, 9, n) / 4,
            "label": r.choice(["p", "q", "r"], n, p=[0.6, 0.39, 0.01]),
        }
    )
    if late:
        after = np.arange(n) >= 1000
        frame["one"] = np.where(after, r.integers(0, 3, n), 0)
        frame["none"] = np.where(after, r.normal(size=n), np.nan)
        frame["whole"] = np.where(after, 0.5, r.integers(0, 4, n))
        frame["new"] = np.where(after, "later", r.choice(["x", "y"], n))
    return frame


def parts(frame: pandas.DataFrame, n: int) -> list[pandas.DataFrame]:
    """The frame in so many parts, of uneven lengths; of more parts than rows some are empty."""
    cuts = np.sort(np.random.default_rng(n).integers(0, len(frame) + 1, n - 1))
    return [frame.iloc[a:b] for a, b in zip([0, *cuts], [*cuts, len(frame)], strict=True)]


def written(folder: Path, parts: list[pandas.DataFrame], kind: str) -> str:
    """Writes parts to files of a kind, and gives the pattern that matches them."""
    for number, part in enumerate(parts):
        path = folder / f"{number:04}.{kind}"
        part.to_parquet(path) if kind == "parquet" else part.to_csv(path, index=False)
    return str(folder / f"*.{kind}")


def told_while_counting(monkeypatch: pytest.MonkeyPatch, count: Callable[[], Any]) -> list[tuple[str, str, int, float]]:
    """What the line of progress said while something was counted: its title, the unit, how many were done and their share."""
    said = list[tuple[str, str, int, float]]()

    class Kept(progress.Line):
        def write(self) -> bool:
            said.append((self.title, self.unit, self.n_rows or 0, self.share or 0.0))
            return True

    for name, value in (("display", Kept), ("SECONDS_BEFORE_FIRST", 0.05), ("SECONDS_BETWEEN_UPDATES", 0.05)):
        monkeypatch.setattr(progress, name, value)
    monkeypatch.setenv("BANBURY_PROGRESS", "1")
    count()
    return said


def brought_here(monkeypatch: pytest.MonkeyPatch, engine: Any) -> list[Any]:
    """Sums that come to the driver from an engine, from now on."""
    added, found = engine.add_up_parts, list[Any]()

    def kept(self: Any, work: Any) -> Any:
        for n_done, value in added(self, work):
            found.extend([] if value is None else [value])
            yield n_done, value

    monkeypatch.setattr(engine, "add_up_parts", kept)
    return found


class DieOnce:
    """Work whose process is killed at one partition, the first time."""

    def __init__(self, work: Any, mark: Path, partition: int = 2) -> None:
        self.work, self.mark, self.partition = work, mark, partition

    def __call__(self, partition: int, rows: Any) -> Any:
        if partition == self.partition and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.work(partition, rows)
