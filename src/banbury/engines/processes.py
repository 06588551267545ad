"""Several processes on this machine, or any executor of ``concurrent.futures``."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import Any

from banbury import errors
from banbury.engines.counting import group_files
from banbury.engines.engine import Answer, PartWork, Steps
from banbury.engines.parcels import Parcel
from banbury.engines.parts import parts_of
from banbury.threads import n_threads

TASKS_PER_WORKER = 2  # partitions in progress for each worker process
MOST_BROKEN_POOLS = 3  # pools that are started in one pass; if the last one breaks too, that is an error


def engine(data: Any, engine: Any, partitions: int | None) -> Processes:
    """Returns the parts of ``data`` on a pool of processes, or on ``engine`` if that is an executor. ``partitions`` is
    the number of parts into which a table is cut; None means one per processor.
    """
    parts, names = parts_of(data, partitions or n_threads(None))
    return Processes(parts, names, engine if isinstance(engine, Executor) else None)


class Processes:
    """Parts of a table, each worked on by one of several processes."""

    name = "processes"
    progress = None
    columns: Sequence[str] = ()

    def __init__(self, parts: Sequence[Any], names: Sequence[str] | None, executor: Executor | None) -> None:
        """Stores the parts, and the executor that works on them. ``parts`` has for each partition its rows or a file
        name; ``names`` are the file names, None if parts are no files; ``executor`` is the user's, None to start a pool
        of processes for each pass.
        """
        self.parts = parts
        self.names = names
        self.user_executor = executor
        self.n_partitions: int | None = len(parts)
        self.are_files = names is not None

    def first(self, take: PartWork) -> Steps[Parcel | None]:
        """Returns an iterator of the parcels that ``take`` makes of the partitions, in order, None for an empty one;
        made in this process, each when the consumer asks for it.
        """
        return (take(partition, rows) for partition, rows in enumerate(self.parts))

    def add_up_parts(self, work: PartWork) -> Steps[tuple[int, Parcel | None]]:
        """Yields pairs of how many partitions are done and the parcel (or None) that ``work`` makes, as they are
        completed: of one partition, or of a group of files. The consumer adds the parcels. ``self.names`` are the names
        of files, None for other parts.
        """
        rows_by_partition = (
            dict(enumerate(self.parts)) if self.names is None else group_files(self.names, self._n_workers)
        )
        for n_done, (_, parcel) in enumerate(self._run_all(work, rows_by_partition), 1):
            yield n_done * len(self.parts) // len(rows_by_partition), parcel

    @property
    def _n_workers(self) -> int:
        """The number of worker processes."""
        return n_threads(None) if self.user_executor is None else getattr(self.user_executor, "_max_workers", None) or 1

    def _run_all(self, work: PartWork, rows_by_partition: Mapping[int, Any]) -> Steps[tuple[int, Parcel | None]]:
        """Yields the number of each partition and the parcel (or None) that ``work`` makes of it, as they are
        completed. A broken pool is replaced a few times, unless the executor is the user's; then EngineError is raised.
        ``rows_by_partition`` has the rows, a file name or a group of files for each partition number.
        """
        unfinished = dict(rows_by_partition)  # partitions without a parcel yet
        for _ in range(MOST_BROKEN_POOLS):
            executor = self.user_executor or pool()
            try:
                for partition, parcel in self._run(executor, work, unfinished):
                    del unfinished[partition]
                    yield partition, parcel
                return
            except BrokenProcessPool:
                if self.user_executor is not None:
                    break
            finally:
                if self.user_executor is None:
                    executor.shutdown(wait=False, cancel_futures=True)
        raise errors.EngineError(
            "a worker process died repeatedly. It may need more memory than there is: use smaller parts. A script "
            "that starts processes must begin its work under: if __name__ == '__main__':"
        )

    def _run(
        self, executor: Executor, work: PartWork, rows_by_partition: Mapping[int, Any]
    ) -> Steps[tuple[int, Parcel | None]]:
        """Yields the number of each partition and the parcel (or None) that ``work`` makes of it, as they are completed
        by the executor, with a limited number in progress. ``rows_by_partition`` has the rows, a file name or a group
        of files for each partition number.
        """
        unstarted = iter(list(rows_by_partition.items()))
        running = dict[Future[Parcel | None], int]()  # the number of the partition that each future works on
        most_running = TASKS_PER_WORKER * self._n_workers
        try:
            while True:
                for partition, rows in unstarted:
                    running[executor.submit(work, partition, rows)] = partition
                    if len(running) >= most_running:
                        break
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    partition = running.pop(future)
                    yield partition, future.result()
        finally:
            for future in running:
                future.cancel()

    def answer(self, work: Answer) -> Any:
        """Raises BadSetting, since local parts are not a frame."""
        raise errors.bad_setting(
            "engine",
            self.name,
            "Dask or Spark, which return frames; predict local parts one at a time",
        )


def pool() -> ProcessPoolExecutor:
    """Returns a pool with a process per processor, each spawned rather than forked."""
    return ProcessPoolExecutor(n_threads(None), mp_context=get_context("spawn"), initializer=_initialise_worker)


def _initialise_worker() -> None:
    """Makes a worker process quiet, and ends it when its parent ends."""

    def end_with_parent() -> None:
        """Waits until the parent process has ended, and then ends this one."""
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    os.environ["BANBURY_PROGRESS"] = "0"
    threading.Thread(target=end_with_parent, name="banbury parent", daemon=True).start()
