"""How many threads do the work."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock, local
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors

MOST_THREADS = 1024
MANY = 1 << 15  # labels that pay for threads
T = TypeVar("T")
_limit = local()  # .threads: the most that the work of this thread may use, where somebody limits it


class LimitThreads:
    """Meanwhile the work of this thread uses at most so many threads; the lowest of several limits holds; None is none."""

    def __init__(self, threads: int | None) -> None:
        self.threads = threads

    def __enter__(self) -> None:
        self._before = getattr(_limit, "threads", None)
        if self.threads is not None:
            _limit.threads = n_threads(self.threads)

    def __exit__(self, *_: object) -> None:
        _limit.threads = self._before


def n_threads(threads: int | None) -> int:
    """``threads``, else the environment's BANBURY_THREADS, else the processors this process may use; never above the limit."""
    limit: int | None = getattr(_limit, "threads", None)
    if limit is None:
        return _n_threads(threads)
    return limit if threads is None else min(_n_threads(threads), limit)


def _n_threads(threads: int | None) -> int:
    if threads is None:
        setting = os.environ.get("BANBURY_THREADS", "")
        if not setting:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if not setting.isdecimal() or not 1 <= int(setting) <= MOST_THREADS:
            raise errors.bad_setting(
                "BANBURY_THREADS", setting, f"a whole number of at least 1and at most {MOST_THREADS}"
            )
        return int(setting)
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or not 1 <= threads <= MOST_THREADS:
        raise errors.bad_setting(
            "threads", threads, f"a whole number of at least 1and at most {MOST_THREADS}, or None for all processors"
        )
    return int(threads)


def taken(labels: NDArray[Any], numbers: NDArray[Any], threads: int | None = None) -> NDArray[Any]:
    """The label of each number."""
    if len(numbers) < MANY or numbers.dtype != np.int32 or labels.dtype.hasobject:
        return np.asarray(labels[numbers])
    records = np.ascontiguousarray(labels).view(np.uint8).reshape(len(labels), labels.itemsize)
    return _core.decode_records(records, numbers, n_threads(threads)).view(labels.dtype)


def each_done(work: Callable[[int], T], n: int, workers: int) -> list[T]:
    """What the work makes of each number below n, on so many threads; one is this very thread, which Ctrl-C can end."""
    if workers == 1:
        return [work(number) for number in range(n)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(errors.warn_at_callers_line(work), range(n)))


class OneBlasThread:
    """Keeps NumPy's and SciPy's algebra to one thread meanwhile: its threads wait by turning round, on processors that ours use,
    and sums would depend on how many they are. Of several that overlap the first sets the limit and the last lifts it."""

    _lock = Lock()
    _within = 0
    _limit: Any = None

    def __enter__(self) -> None:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn brings it along

        with self._lock:
            if not OneBlasThread._within:
                OneBlasThread._limit = threadpool_limits(1, "blas")
            OneBlasThread._within += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            OneBlasThread._within -= 1
            if not OneBlasThread._within:
                OneBlasThread._limit.restore_original_limits()


class Behind:
    """Does one thing at a time on a thread of its own, while this one goes on; what it raises, ``wait`` raises."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._work: Future[Any] | None = None

    def __enter__(self) -> Behind:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def start(self, work: Callable[[], Any]) -> None:
        """Begins, once what was begun before is done."""
        self.wait()
        self._pool = self._pool or ThreadPoolExecutor(1)
        self._work = self._pool.submit(errors.warn_at_callers_line(lambda _: work()), 0)

    def wait(self) -> None:
        """Until what was begun is done."""
        work, self._work = self._work, None
        if work is not None:
            work.result()
