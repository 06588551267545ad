"""A task, its engines and its figure: least times taken in turns, and answers that must agree."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import threadpoolctl


class WrongAnswer(Exception):
    """Two engines that must agree do not."""


@dataclass(frozen=True)
class Setting:
    """How to run: turns per engine, threads for every engine, and whether on small data."""

    repeats: int = 3
    threads: int = 2
    small: bool = False

    @property
    def turn(self) -> float:
        """Seconds: in each turn an engine runs once, and again until so much time is spent."""
        return 0.01 if self.small else 0.25

    def rows(self, full: int) -> int:
        return max(full // 50, 1000) if self.small else full


@dataclass(frozen=True)
class Task:
    """What is done to which data by whom, and what the answers must satisfy.

    ``check`` is given each engine's last answer by the engine's name; it raises WrongAnswer, or says how well they agree.
    """

    benchmark: str
    name: str
    data: str
    ours: Callable[[], Any]
    check: Callable[[Mapping[str, Any]], str]
    peer: Callable[[], Any] | None = None
    peer_name: str = "scikit-learn"
    c_loop: Callable[[], Any] | None = None
    memory: Callable[[], Any] | None = None  # reads the same bytes and does nothing with them
    at_least: float | None = None  # the ratio we aim at
    prepare: Callable[[], Any] | None = None  # what the others need first; not timed, and not done where only ours runs

    def engines(self) -> dict[str, Callable[[], Any]]:
        every = {"ours": self.ours, "peer": self.peer, "C loop": self.c_loop, "memory": self.memory}
        return {name: run for name, run in every.items() if run is not None}


@dataclass(frozen=True)
class Figure:
    """What came out: seconds, or multiples of the data's size where ``unit`` says so."""

    benchmark: str
    task: str
    data: str
    ours: float
    peer: float | None
    peer_name: str
    agreement: str
    at_least: float | None = None  # aim: peer / ours
    at_most: float | None = None  # aim: ours
    c_loop: float | None = None
    memory: float | None = None
    unit: str = "s"

    @property
    def ratio(self) -> float | None:
        return None if self.peer is None else self.peer / self.ours

    @property
    def met(self) -> bool | None:
        """Whether the aim is reached; None without one."""
        if self.at_most is not None:
            return self.ours <= self.at_most
        return None if self.at_least is None or self.ratio is None else self.ratio >= self.at_least


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measured(task: Task, setting: Setting) -> Figure:
    """Runs a task's engines in turns, compares their answers and keeps the least times."""
    say(f"{task.benchmark}: {task.name}, {task.data}")
    with limited(setting.threads):
        if task.prepare is not None:
            task.prepare()
        times, answers = in_turns(task.engines(), setting)
    agreement = task.check(answers)
    aim = None if setting.small else task.at_least
    limits = times.get("C loop"), times.get("memory")
    return Figure(
        task.benchmark,
        task.name,
        task.data,
        times["ours"],
        times.get("peer"),
        task.peer_name if task.peer else "",
        agreement,
        at_least=aim,
        c_loop=limits[0],
        memory=limits[1],
    )


def in_turns(engines: Mapping[str, Callable[[], Any]], setting: Setting) -> tuple[dict[str, float], dict[str, Any]]:
    """The least time and the last answer of each engine; every engine has a turn before any has the next."""
    times = dict.fromkeys(engines, np.inf)
    answers: dict[str, Any] = {}
    for _ in range(setting.repeats):
        for name, run in engines.items():
            answers.pop(name, None)  # two answers of one engine at once would be memory that it does not need
            until = time.perf_counter() + setting.turn
            while True:
                start = time.perf_counter()
                answer = run()
                end = time.perf_counter()
                times[name] = min(times[name], end - start)
                if end >= until:
                    break
            answers[name] = answer
    return times, answers


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """Every engine on so many threads: our kernels, NumPy's BLAS and Arrow's readers."""
    import pyarrow as pa

    before = os.environ.get("BANBURY_THREADS"), pa.cpu_count()
    os.environ["BANBURY_THREADS"] = str(threads)
    pa.set_cpu_count(threads)
    try:
        with threadpoolctl.threadpool_limits(threads):
            yield
    finally:
        pa.set_cpu_count(before[1])
        if before[0] is None:
            del os.environ["BANBURY_THREADS"]
        else:
            os.environ["BANBURY_THREADS"] = before[0]


def ours_on(threads: int, run: Callable[[], Any]) -> Callable[[], Any]:
    """The same on so many threads of ours; costs a microsecond, so that it may be timed."""

    def limited_run() -> Any:
        before = os.environ.get("BANBURY_THREADS")
        os.environ["BANBURY_THREADS"] = str(threads)
        try:
            return run()
        finally:
            if before is None:
                del os.environ["BANBURY_THREADS"]
            else:
                os.environ["BANBURY_THREADS"] = before

    return limited_run


def same_classes(answers: Mapping[str, Any], at_least: float = 0.99999) -> str:
    """The share of rows on which every engine says the same class as ours."""
    least = 1.0
    for name, answer in answers.items():
        if name in ("ours", "memory"):
            continue
        share = float(np.mean(np.asarray(answers["ours"]) == np.asarray(answer)))
        if share < at_least:
            raise WrongAnswer(f"{name} and ours agree on {share:.4%} of the classes, not on {at_least:.4%}")
        least = min(least, share)
    return f"{floored(least)} same classes"


def floored(share: float) -> str:
    """A share as per cent, never rounded up to 100."""
    return f"{np.floor(share * 1e6) / 1e4:.4f}".rstrip("0").rstrip(".") + " %"


def same_numbers(answers: Mapping[str, Any], within: float) -> str:
    """The largest relative gap between our parameters and any other engine's; answers are tuples of arrays."""
    widest = 0.0
    for name, answer in answers.items():
        if name in ("ours", "memory"):
            continue
        for mine, theirs in zip(answers["ours"], answer, strict=True):
            if mine.shape != theirs.shape:
                raise WrongAnswer(f"{name} has parameters of shape {theirs.shape}, ours {mine.shape}")
            gap = np.max(np.abs(mine - theirs) / np.maximum(np.abs(theirs), 1e-3))
            if not gap <= within:
                raise WrongAnswer(f"{name}'s parameters are {gap:.1e} away from ours, more than {within:.0e}")
            widest = max(widest, float(gap))
    return f"parameters within {widest:.0e}"
