"""The machine that the figures were measured on; no host names and no paths."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import numpy as np
import sklearn

import banbury as bb


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe() -> str:
    """The processor, its cores, and the versions of what is compared."""
    versions = f"banbury {bb.__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}"
    return f"{processor()}, {cores()} cores; {versions}, Python {platform.python_version()}"


def slug() -> str:
    """The machine as a part of a file name."""
    words = re.sub(r"\(.*?\)|CPU|Processor|@.*", " ", processor())
    return "-".join([*re.findall(r"[a-z0-9]+", words.lower()), f"{cores()}-cores"])


class Neighbours:
    """The share of the machine that other processes take from now on: they make every figure worse."""

    def __init__(self) -> None:
        self.start = _processor_seconds()

    def share(self) -> float | None:
        """From 0 to 1; None where the system does not say."""
        now = _processor_seconds()
        if now is None or self.start is None or now[1] == self.start[1]:
            return None
        busy, total, ours = (after - before for after, before in zip(now, self.start, strict=True))
        return max(0.0, (busy - ours) / total)


def _processor_seconds() -> tuple[float, float, float] | None:
    """Seconds since the system started: spent by all processes, available, and spent by this one and its children."""
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except OSError:
        return None
    per_second = os.sysconf("SC_CLK_TCK")
    idle = ticks[3] + ticks[4]
    return (sum(ticks) - idle) / per_second, sum(ticks) / per_second, sum(os.times()[:4])
