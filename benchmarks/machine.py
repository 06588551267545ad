"""What the figures were measured on: no names of hosts, no paths."""

from __future__ import annotations

import os
import platform
import re
import time
from pathlib import Path

import numpy as np
import sklearn

import banbury as bb
from benchmarks.yardstick import loops, reading


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def description() -> str:
    return f"{processor()}, {cores()} cores"


def slug() -> str:
    """The machine in a file's name."""
    words = re.sub(r"\(.*?\)|CPU|Processor|@.*", " ", processor())
    return "-".join([*re.findall(r"[a-z0-9]+", words.lower()), f"{cores()}-cores"])


class Neighbours:
    """How much of the machine other processes take, from now on; they make every figure worse, and ratios uncertain."""

    def __init__(self) -> None:
        self.start = _busy_and_all(), _own()

    def share(self) -> float | None:
        """From 0 to 1; None where the system does not say."""
        before, now = self.start[0], _busy_and_all()
        if before is None or now is None or now[1] == before[1]:
            return None
        others = (now[0] - before[0]) - (_own() - self.start[1])
        return max(0.0, others / (now[1] - before[1]))


def _busy_and_all() -> tuple[float, float] | None:
    """Processor seconds since the system started: those spent on anything, and all there were."""
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except OSError:
        return None
    idle, second = ticks[3] + ticks[4], os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - idle) / second, sum(ticks) / second


def _own() -> float:
    """Processor seconds of this process and of its children that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def versions() -> str:
    parts = [f"banbury {bb.__version__}", f"scikit-learn {sklearn.__version__}", f"NumPy {np.__version__}"]
    return ", ".join([*parts, f"Python {platform.python_version()}"])


def reading_speed(threads: int) -> float | None:
    """Bytes per second that so many threads read from memory; None without gcc."""
    if loops() is None:
        return None
    block = np.ones(1 << 25)  # 256 MiB: more than any cache
    read = reading(block, threads)
    assert read is not None
    least = np.inf
    for _ in range(5):
        start = time.perf_counter()
        read()
        least = min(least, time.perf_counter() - start)
    return block.nbytes / least
