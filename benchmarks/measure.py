"""The one way to measure: engines take turns, their answers must agree, and the least time of each is kept."""

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
from numpy.typing import NDArray

ENOUGH_SECONDS = 10.0  # an engine that has run for so long has no further turn: noise is small beside it


class WrongAnswer(Exception):
    """Two engines that must agree do not."""


@dataclass(frozen=True)
class Setting:
    """How to run: the turns of each engine, the threads of every engine, and whether on small data."""

    repeats: int = 3
    threads: int = 2
    small: bool = False

    @property
    def turn(self) -> float:
        """Seconds of a turn: an engine runs once, and again until so much time has passed."""
        return 0.01 if self.small else 0.25

    def rows(self, full: int) -> int:
        return min(full, max(full // 50, 1000)) if self.small else full


@dataclass(frozen=True)
class Peer:
    """How another library does the same work. If ``run`` does only a part of it, its time is multiplied by ``scale``."""

    name: str
    run: Callable[[], Any]
    scale: float = 1.0


@dataclass(frozen=True)
class Figure:
    """A row of a table. Times are in seconds unless ``unit`` says otherwise."""

    benchmark: str
    task: str
    data: str
    ours: float
    peer: float | None = None
    peer_name: str = ""
    answers: str = ""
    unit: str = "s"

    @property
    def ratio(self) -> float | None:
        """How many times as long as ours the peer takes."""
        return None if self.peer is None else self.peer / self.ours


Check = Callable[[Any, Any], str]  # takes our answer and the peer's; raises WrongAnswer, or says how well they agree


def compare(
    where: tuple[str, str, str],
    ours: Callable[[], Any],
    check: Check,
    setting: Setting,
    peer: Peer | None = None,
    threads: int | None = None,
) -> Figure:
    """Times ours beside the peer and checks the answers. ``where`` names the benchmark, the task and the data; ``threads`` are
    ours, if not those of the setting.
    """
    say(f"{where[0]}: {where[1]}, {where[2]}")
    with limit_threads(setting.threads):
        engines = {"ours": with_threads(threads or setting.threads, ours)}
        if peer is not None:
            engines["peer"] = peer.run
        times, answers = take_turns(engines, setting)
        agreement = check(answers["ours"], answers.get("peer"))
    if peer is None:
        return Figure(*where, times["ours"], answers=agreement)
    return Figure(*where, times["ours"], times["peer"] * peer.scale, peer.name, agreement)


def take_turns(
    engines: Mapping[str, Callable[[], Any]], setting: Setting, clock: Callable[[], float] = time.perf_counter
) -> tuple[dict[str, float], dict[str, Any]]:
    """Returns the least time and the last answer of each engine. Every engine has a turn before any has the next."""
    least_times = dict.fromkeys(engines, np.inf)
    total_times = dict.fromkeys(engines, 0.0)
    answers: dict[str, Any] = {}
    for _ in range(setting.repeats):
        for name, run in engines.items():
            if total_times[name] > ENOUGH_SECONDS:
                continue
            answers.pop(name, None)  # frees the memory of the engine's last answer
            end_of_turn = time.perf_counter() + setting.turn
            while name not in answers or time.perf_counter() < end_of_turn:
                start = clock()
                answers[name] = run()
                seconds = clock() - start
                least_times[name] = min(least_times[name], seconds)
                total_times[name] += seconds
    return least_times, answers


@contextmanager
def limit_threads(threads: int) -> Iterator[None]:
    """Give every engine so many threads: our kernels, NumPy's BLAS and Arrow's readers."""
    import pyarrow as pa

    arrow_threads = pa.cpu_count()
    pa.set_cpu_count(threads)
    try:
        with threadpoolctl.threadpool_limits(threads), our_threads(threads):
            yield
    finally:
        pa.set_cpu_count(arrow_threads)


@contextmanager
def our_threads(threads: int) -> Iterator[None]:
    """Give our kernels so many threads. This takes a microsecond, so it may be timed."""
    before = os.environ.get("BANBURY_THREADS")
    os.environ["BANBURY_THREADS"] = str(threads)
    try:
        yield
    finally:
        if before is None:
            del os.environ["BANBURY_THREADS"]
        else:
            os.environ["BANBURY_THREADS"] = before


def with_threads(threads: int, run: Callable[[], Any]) -> Callable[[], Any]:
    def run_limited() -> Any:
        with our_threads(threads):
            return run()

    return run_limited


# Checks ---------------------------------------------------------------------------------------------------------------


def same_classes(at_least: float = 0.99999) -> Check:
    """Both engines predict the same class for at least this share of the rows."""

    def check(ours: Any, peer: Any) -> str:
        share = float(np.mean(np.asarray(ours) == np.asarray(peer)))
        if not share >= at_least:
            raise WrongAnswer(f"ours and the peer agree on {share:.4%} of the classes, not on {at_least:.4%}")
        return f"{floor_percent(share)} same classes"

    return check


def same_posteriors(rows: Any, within: float = 1e-6) -> Check:
    """Both engines fitted a model that gives the same probabilities for these rows."""

    def check(ours: Any, peer: Any) -> str:
        gap = largest_gap(ours.predict_proba(rows), peer.predict_proba(rows), within)
        return f"probabilities within {gap:.0e}"

    return check


def largest_gap(ours: NDArray[np.float64], theirs: NDArray[np.float64], within: float) -> float:
    """How far apart two arrays are at most; raises WrongAnswer if that is too far, or not a number."""
    gap = float(np.max(np.abs(ours - theirs)))
    if not gap <= within:
        raise WrongAnswer(f"probabilities are {gap:.1e} apart, more than {within:.0e}")
    return gap


def floor_percent(share: float) -> str:
    """A share as per cent, never rounded up to 100."""
    return f"{np.floor(share * 1e6) / 1e4:.4f}".rstrip("0").rstrip(".") + " %"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
