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
LABELS_FOR_THREADS = 1 << 15  # fewer numbers are looked up faster by one thread
# Rows that a thread works on at a time. Hashing 800,000 rows of 16 cells took 69 ms of processor time with 2^13, 107 with
# 2^16 and 194 at once.
ROWS_OF_SLICE = 1 << 13
T = TypeVar("T")
_limit = local()  # .threads: the most that the work of this thread may use, where somebody limits it


class LimitThreads:
    """Meanwhile the work of this thread uses at most so many threads; the lowest of several limits holds; None is none."""

    def __init__(self, threads: int | None) -> None:
        """``threads``: the most that may be used; None sets no limit."""
        self.threads = threads

    def __enter__(self) -> None:
        """Sets the limit of this thread (None sets none), and remembers the one before."""
        self._before = getattr(_limit, "threads", None)
        if self.threads is not None:
            _limit.threads = n_threads(self.threads)

    def __exit__(self, *_: object) -> None:
        """Restores the limit before."""
        _limit.threads = self._before


def n_threads(threads: int | None) -> int:
    """Returns the number of threads to use: ``threads``, else the environment's BANBURY_THREADS, else the processors that
    this process may use; never above the limit that ``LimitThreads`` has set. Raises an error for an invalid number.
    """
    limit: int | None = getattr(_limit, "threads", None)
    if limit is None:
        return _n_threads(threads)
    return limit if threads is None else min(_n_threads(threads), limit)


def _n_threads(threads: int | None) -> int:
    """Returns the number of threads without regard to a limit: ``threads`` if given, or BANBURY_THREADS, or the number of
    processors. Raises an error for an invalid number.
    """
    if threads is None:
        setting = os.environ.get("BANBURY_THREADS", "")
        if not setting:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if not setting.isdecimal() or not 1 <= int(setting) <= MOST_THREADS:
            raise errors.bad_setting(
                "BANBURY_THREADS", setting, f"a whole number of at least 1 and at most {MOST_THREADS}"
            )
        return int(setting)
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or not 1 <= threads <= MOST_THREADS:
        raise errors.bad_setting(
            "threads", threads, f"a whole number of at least 1 and at most {MOST_THREADS}, or None for all processors"
        )
    return int(threads)


def look_up(labels: NDArray[Any], numbers: NDArray[Any], threads: int | None = None) -> NDArray[Any]:
    """Returns the entry of ``labels`` (or its row, if it is a matrix) with each of these numbers, as an array in their
    order; large arrays are looked up in ``threads`` threads, None for all processors.
    """
    if len(numbers) < LABELS_FOR_THREADS or numbers.dtype != np.int32 or labels.dtype.hasobject:
        return np.asarray(labels[numbers])
    records = np.ascontiguousarray(labels).view(np.uint8).reshape(len(labels), -1)  # entries × bytes
    rows = _core.decode_records(records, numbers, n_threads(threads)).view(labels.dtype)
    return rows.reshape(len(numbers), *labels.shape[1:])


def run_in_threads(work: Callable[[int], T], n_tasks: int, workers: int) -> list[T]:
    """Returns a list of ``work(0)`` to ``work(n_tasks - 1)``, computed by ``workers`` threads; a single worker is the
    calling thread, which Ctrl-C can stop.
    """
    if workers == 1:
        return [work(number) for number in range(n_tasks)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(errors.warn_at_callers_line(work), range(n_tasks)))


def run_by_rows(work: Callable[[slice], T], n_rows: int, threads: int) -> list[T]:
    """A list of ``work(rows)`` for slices of neighbouring rows, in order, computed by ``threads`` threads. The slices do
    not depend on the number of threads.
    """
    starts = range(0, max(n_rows, 1), ROWS_OF_SLICE)
    workers = max(1, min(threads, len(starts)))
    return run_in_threads(lambda k: work(slice(starts[k], starts[k] + ROWS_OF_SLICE)), len(starts), workers)


class OneBlasThread:
    """Limits BLAS to one thread meanwhile: its threads spin while waiting, and sums would depend on their number.

    If several overlap, the first sets the limit and the last lifts it.
    """

    _lock = Lock()
    _within = 0  # uses of this class that are active
    _limit: Any = None  # what lifts the limit again

    def __enter__(self) -> None:
        """Sets the limit if no other use of this class has set it."""
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn brings it along

        with self._lock:
            if not OneBlasThread._within:
                OneBlasThread._limit = threadpool_limits(1, "blas")
            OneBlasThread._within += 1

    def __exit__(self, *_: object) -> None:
        """Lifts the limit if no other use of this class is left."""
        with self._lock:
            OneBlasThread._within -= 1
            if not OneBlasThread._within:
                OneBlasThread._limit.restore_original_limits()


class BackgroundThread:
    """Runs one task at a time in a background thread. ``wait`` raises what the task raised."""

    def __init__(self) -> None:
        """Starts no thread yet."""
        self._pool: ThreadPoolExecutor | None = None
        self._work: Future[Any] | None = None  # the task in progress, or ended and not yet waited for

    def __enter__(self) -> BackgroundThread:
        return self

    def __exit__(self, *_: object) -> None:
        """Waits for the task and ends the thread; does not raise what the task raised."""
        if self._pool is not None:
            self._pool.shutdown()

    def start(self, work: Callable[[], Any]) -> None:
        """Starts a task (``work``, a function without arguments) in the background, after the one before has ended."""
        self.wait()
        self._pool = self._pool or ThreadPoolExecutor(1)
        # ``warn_at_callers_line`` takes a function of one argument; 0 is that, and is ignored.
        self._work = self._pool.submit(errors.warn_at_callers_line(lambda _: work()), 0)

    def wait(self) -> None:
        """Waits until the task has ended, and raises what it raised."""
        task = self._work
        self._work = None
        if task is not None:
            task.result()
