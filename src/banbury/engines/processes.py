"""Several processes of this machine, or whatever an executor of ``concurrent.futures`` stands for."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import Any

from banbury import errors
from banbury.engines.counting import in_groups
from banbury.engines.engine import Answer, PartWork, Steps
from banbury.engines.parcels import Parcel
from banbury.engines.parts import parts_of
from banbury.threads import n_threads

AT_A_TIME = 2  # partitions of each worker that are under way
MOST_BREAKS = 3  # pools that may break, one after the other, before that is an error


def engine(data: Any, engine: Any, partitions: int | None) -> Processes:
    """The parts of a table on a pool of processes, or on the executor that is given."""
    parts, names = parts_of(data, partitions or n_threads(None))
    return Processes(parts, names, engine if isinstance(engine, Executor) else None)


class Processes:
    """Parts of a table, each worked on by one of several processes."""

    name = "processes"
    progress = None
    columns: Sequence[str] = ()

    def __init__(self, parts: Sequence[Any], names: Sequence[str] | None, executor: Executor | None) -> None:
        self.parts = parts
        self.names = names
        self.given = executor
        self.n_partitions: int | None = len(parts)
        self.are_files = names is not None

    def first(self, take: PartWork) -> Steps[Parcel | None]:
        return (take(partition, rows) for partition, rows in enumerate(self.parts))

    def add_up_parts(self, work: PartWork) -> Steps[tuple[int, Parcel | None]]:
        """What each process makes is added here, as it comes: the sum and one more are held."""
        parts = dict(enumerate(self.parts)) if self.names is None else in_groups(self.names, self._n_workers)
        done = enumerate(self._each(work, parts), 1)
        return ((n_done * len(self.parts) // len(parts), parcel) for n_done, (_, parcel) in done)

    @property
    def _n_workers(self) -> int:
        return n_threads(None) if self.given is None else getattr(self.given, "_max_workers", None) or 1

    def _each(self, work: PartWork, parts: Mapping[int, Any]) -> Steps[tuple[int, Parcel | None]]:
        waiting = dict(parts)
        for _ in range(MOST_BREAKS):
            executor = self.given or pool()
            try:
                for partition, parcel in self._run(executor, work, waiting):
                    del waiting[partition]
                    yield partition, parcel
                return
            except BrokenProcessPool:
                if self.given is not None:
                    break
            finally:
                if self.given is None:
                    executor.shutdown(wait=False, cancel_futures=True)
        raise errors.EngineError(
            "a worker process died repeatedly. It may need more memory than there is: use smaller parts. A script "
            "that starts processes must begin its work under: if __name__ == '__main__':"
        )

    def _run(self, executor: Executor, work: PartWork, parts: Mapping[int, Any]) -> Steps[tuple[int, Parcel | None]]:
        """Some partitions at a time; what is done comes at once."""
        waiting = iter(list(parts.items()))
        running = dict[Future[Parcel | None], int]()
        at_a_time = AT_A_TIME * self._n_workers
        try:
            while True:
                for partition, rows in waiting:
                    running[executor.submit(work, partition, rows)] = partition
                    if len(running) >= at_a_time:
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
        raise errors.bad_setting(
            "engine",
            self.name,
            "Dask or Spark, which return frames; predict local parts one at a time",
        )


def pool() -> ProcessPoolExecutor:
    """A pool of as many processes as there are processors, none of them a copy of this one."""
    return ProcessPoolExecutor(n_threads(None), mp_context=get_context("spawn"), initializer=_begun)


def _begun() -> None:
    """A process of the pool is quiet, and ends when the one that began it does, however that ended."""

    def end_with_parent() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    os.environ["BANBURY_PROGRESS"] = "0"
    threading.Thread(target=end_with_parent, name="banbury parent", daemon=True).start()
