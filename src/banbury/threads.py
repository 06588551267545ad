"""How many threads do the work."""

from __future__ import annotations

import os

import numpy as np

from banbury import errors

MOST_THREADS = 1024


def n_threads(threads: int | None) -> int:
    """``threads``, else the environment's BANBURY_THREADS, else the processors this process may use."""
    if threads is None:
        setting = os.environ.get("BANBURY_THREADS", "")
        if not setting:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if not setting.isdecimal() or not 1 <= int(setting) <= MOST_THREADS:
            raise errors.bad_setting("BANBURY_THREADS", setting, f"a whole number from 1 up, {MOST_THREADS} at most")
        return int(setting)
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or not 1 <= threads <= MOST_THREADS:
        raise errors.bad_setting(
            "threads", threads, f"a whole number from 1 up, {MOST_THREADS} at most, or None for all processors"
        )
    return int(threads)
