"""Dask: dataframes, bags and delayed parts, on a cluster or on the current scheduler; and files on a cluster."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import dask
import numpy as np
from dask import threaded
from dask.base import get_scheduler
from dask.delayed import Delayed
from dask.task_spec import DataNode, List, Task, TaskRef
from distributed import Client, as_completed, default_client

from banbury import __version__, errors
from banbury.engines.counting import group_files
from banbury.engines.engine import FAN_IN, Answer, PartWork, Steps
from banbury.engines.interrupts import hear_interrupts
from banbury.engines.parcels import Parcel, add_up, check_format
from banbury.engines.parts import parts_of

CONNECT_TIMEOUT = "10s"  # for a scheduler at an address to respond
PANDAS_TYPE_BY_KIND = {
    "boolean": "boolean",
    "integer": "Int64",
    "float": "float64",
    "string": "string[pyarrow]",
    "list": "object",
}


@hear_interrupts()
def engine(data: Any, engine: Any, partitions: int | None) -> Dask:
    """Returns the partitions of a Dask collection, or the parts of other data. ``engine`` is a client, an address such
    as "dask://host:8786", or None for the current client; ``partitions`` is the number of parts into which data on this
    machine are cut.
    """
    client = client_of(engine)  # None: the current scheduler
    _check_workers(client)
    if isinstance(data, Delayed):
        data = [data]
    if isinstance(data, (list, tuple)) and data and all(isinstance(delayed, Delayed) for delayed in data):
        # The tasks, by key, that the delayed parts refer to.
        graph = {key: task for delayed in data for key, task in dict(delayed.__dask_graph__()).items()}
        return Dask([TaskRef(delayed.key) for delayed in data], names=None, client=client, graph=graph)
    if dask.is_dask_collection(data):
        if not hasattr(data, "to_delayed") or len(np.shape(data.__dask_keys__())) != 2:
            raise errors.bad_setting(
                "Dask data", type(data).__name__, "a dataframe, a series, a bag or a list of delayed parts"
            )
        names = [f"{name}/{number}" for name, number in data.__dask_keys__()]  # of the partitions
        optimised = data.optimize() if hasattr(data, "optimize") else data
        partition_refs = list(map(TaskRef, optimised.__dask_keys__()))
        return Dask(partition_refs, names, client, dict(optimised.__dask_graph__()), collection=data)
    if client is None:
        raise errors.EngineError(
            "there is no Dask client. Start one with client = distributed.Client('tcp://host:8786') and "
            "pass engine=client, or pass engine='processes' to count on this machine."
        )
    # The threads of all workers together decide the number of parts.
    parts, files = parts_of(data, partitions or sum(client.nthreads().values()) or 1)
    return Dask(parts, files, client, are_files=files is not None)


_clients: dict[str, Any] = {}  # by address, one for each in this process
_lock = threading.Lock()


def client_of(engine: Any) -> Any:
    """Returns the client that ``engine`` is or whose address it is, or the current one if it is None or "dask"; None if
    there is none.
    """
    if isinstance(engine, str):
        address = engine.partition("://")[2]
        if not address:
            return _running(_current_client())
        with _lock:
            client = _clients.get(address)
            if client is None or client.status != "running":
                try:
                    client = _clients[address] = Client(
                        f"tcp://{address}", timeout=CONNECT_TIMEOUT, set_as_default=False
                    )
                except (OSError, ValueError) as error:
                    raise errors.EngineError(
                        f"no Dask scheduler responds at {address} ({error}). Start one with `dask scheduler`, or correct the "
                        "address: engine='dask://host:8786'.",
                        address=address,
                    ) from None
        return client
    return _running(_current_client() if engine is None else engine)


def _current_client() -> Any:
    """Returns the current client of Dask; None if there is none."""
    with suppress(ValueError):
        return default_client()
    return None


def _running(client: Any) -> Any:
    """Returns the client, which may be None. Raises EngineError if it is closed."""
    if client is not None and getattr(client, "status", "running") != "running":
        raise errors.EngineError(
            f"the Dask client is {client.status}. Start another one with client = distributed.Client(...) and pass "
            "engine=client.",
            status=client.status,
        )
    return client


def _check_workers(client: Any) -> None:
    """Raises EngineError if a worker of this ``client`` lacks this library or has one of another format. None has no
    workers.
    """

    def has_banbury() -> dict[str, Any] | None:
        """Returns the version and the format of the library on a worker; None without it."""
        try:
            from banbury.engines import parcels
        except ImportError:
            return None
        return parcels.this_library()

    if client is not None:
        libraries = client.run(has_banbury)  # worker → its library's version and format, None without it
        addresses_without = [address for address, library in libraries.items() if library is None]
        if addresses_without:
            raise errors.EngineError(
                f"the Dask worker at {addresses_without[0]} does not have the package 'banbury'. Install it on every worker: "
                f"pip install banbury=={__version__}",
                workers=addresses_without,
            )
        for library in libraries.values():
            check_format(library)


class Dask:
    """Partitions that Dask computes where they are: the engine for ``Partitions``."""

    name = "Dask"
    progress = None

    def __init__(
        self,
        parts: Sequence[Any],
        names: Sequence[str] | None,
        client: Any,
        graph: dict[Any, Any] | None = None,
        are_files: bool = False,
        collection: Any = None,
    ) -> None:
        """Stores the partitions. ``parts`` has for each partition its rows, a file name, or the Dask task that makes
        the rows; ``names`` has stable names of the partitions, if they have any. ``client`` is None for the current
        scheduler. ``graph`` has the Dask tasks, by key, that ``parts`` refer to. ``are_files`` says whether parts are
        file names, which workers read. ``collection`` is the user's Dask collection, to which predictions are added and
        whose column names are ``columns``; None for other data.
        """
        self.parts = parts
        self.names = names
        self.client = client
        self._graph = graph or {}  # key → task
        self.are_files = are_files
        self.collection = collection
        self.columns = tuple(map(str, getattr(collection, "columns", ())))
        self.n_partitions: int | None = len(parts)

    def first(self, take: PartWork) -> Steps[Parcel | None]:
        """Yields what ``take`` makes of each partition, in order: a parcel (the partition's number with a value, such
        as its first rows), or None if the partition is empty. Ends after the last partition; a consumer that has enough
        closes it earlier.

        Computes one partition, then 2, 4, 8 and so on at a time, to skip empty ones quickly. ``self.parts`` has the
        rows of each partition, or where they come from.
        """
        start = 0  # the first partition of the next step
        size = 1  # partitions in a step
        while start < len(self.parts):
            partitions = range(start, min(start + size, len(self.parts)))
            graph, keys = self._tasks(take, {partition: self.parts[partition] for partition in partitions})
            yield from self._compute(graph, keys)
            start += size
            size *= 2

    def add_up_parts(self, work: PartWork) -> Steps[tuple[int, Parcel | None]]:
        """Adds the parcels that ``work`` makes of all partitions in a tree on the workers, whose leaves are partitions
        or groups of files; only its root comes here. Yields pairs of how many partitions are done and None, and finally
        the number of all with the sum (None without any parcel). Raises the error of a failed task.
        """
        rows_by_partition: dict[int, Any] = dict(enumerate(self.parts))  # rows, a task, a file name or a group of files
        if self.are_files and self.names is not None and self.client is not None:
            rows_by_partition = group_files(self.names, max(sum(self.client.nthreads().values()), 1))
        graph, leaf_keys = self._tasks(work, rows_by_partition)
        level_keys = leaf_keys  # the keys of one level of the tree, from the leaves to the root
        sums_name = f"banbury-sums-{uuid4().hex}"  # the first half of the keys of sums
        while len(level_keys) > 1:
            key_groups = [level_keys[start : start + FAN_IN] for start in range(0, len(level_keys), FAN_IN)]
            level_keys = [(sums_name, len(graph) + number) for number in range(len(key_groups))]
            for node_key, keys_to_add in zip(level_keys, key_groups, strict=True):
                graph[node_key] = Task(node_key, add_up, List(*map(TaskRef, keys_to_add)))
        if self.client is None:
            yield len(self.parts), self._compute(graph, level_keys)[0]
            return
        with self._futures(graph, leaf_keys if level_keys is leaf_keys else [*leaf_keys, *level_keys]) as futures:
            root = futures[-1]
            for n_done, future in enumerate(as_completed(futures, loop=self.client.loop), 1):
                if future.key == root.key:
                    break
                yield min(n_done * len(self.parts) // len(leaf_keys), len(self.parts)), None
                if future.status == "error":
                    break
            yield len(self.parts), self._result(root)

    def answer(self, work: Answer) -> Any:
        """Returns a lazy frame or bag of the user's collection with the columns that ``work`` adds. Raises BadSetting
        for delayed parts and other data.
        """
        errors.require(
            self.collection is not None,
            "Dask data",
            "delayed parts",
            "a dataframe, a series or a bag for predictions",
        )
        shared_work = dask.delayed(work, name=f"banbury-answers-{uuid4().hex}", traverse=False)
        empty_frame = getattr(self.collection, "_meta", None)  # with the columns of a frame; None for a bag
        if empty_frame is None:
            return self.collection.map_partitions(_records, shared_work)
        empty_answer = _join_answers(empty_frame, dict.fromkeys(work.columns, ()), work)
        return self.collection.map_partitions(_with_answers, shared_work, meta=empty_answer)

    # Tasks

    def _tasks(self, work: PartWork, rows_by_partition: Mapping[int, Any]) -> tuple[dict[Any, Any], list[Any]]:
        """Returns a Dask graph (key → task) with the work on each of these partitions, and the keys of their parcels,
        in order. The work itself, which may be large, is in the graph once. ``rows_by_partition`` has the rows of each
        partition number, or the task or file name that they come from.
        """
        work_key = f"banbury-work-{uuid4().hex}"
        run_name = f"banbury-run-{uuid4().hex}"  # the first half of the keys of parcels
        graph = {**self._graph, work_key: DataNode(work_key, _SharedWork(work_key, work))}
        keys = [(run_name, partition) for partition in rows_by_partition]
        for key in keys:
            graph[key] = Task(key, _run, TaskRef(work_key), key[1], rows_by_partition[key[1]])
        return graph, keys

    def _compute(self, graph: dict[Any, Any], keys: Sequence[Any]) -> list[Parcel | None]:
        """Returns the parcels with these keys of a graph (key → task), in order, None for empty partitions; computed on
        the cluster or, without a client, by the current scheduler. Raises the error of a failed task.
        """
        if self.client is None:
            return list((get_scheduler() or threaded.get)(graph, list(keys)))
        with self._futures(graph, keys) as futures:
            parcels: list[Parcel | None] = self.client.gather(futures, errors="skip")  # in one message
            return parcels if len(parcels) == len(keys) else [self._result(future) for future in futures]

    @contextmanager
    def _futures(self, graph: dict[Any, Any], keys: Sequence[Any]) -> Iterator[list[Any]]:
        """Begins computing these keys of a graph (key → task), and gives their futures, in order; they are released at
        the end, so that nothing is left running.
        """
        _running(self.client)
        futures = self.client.get(graph, list(keys), sync=False)
        try:
            yield futures
        finally:
            # Released futures are not run. Cancelling inner sums would break the client's connection to the scheduler, which
            # asserts that somebody wanted each of them.
            for future in futures:
                future.release()

    def _result(self, future: Any) -> Parcel | None:
        """Returns the parcel of a future, None for an empty partition; waits for it. Errors of the cluster are
        explained.
        """
        try:
            return future.result()  # type: ignore[no-any-return]
        except errors.BanburyError:
            raise
        except Exception as error:
            raise _explain_failure(error) from error


@dataclass(frozen=True)
class _SharedWork:
    """Work with a unique name, so that Dask hashes only the name: a tally may be large."""

    name: str
    work: PartWork

    def __dask_tokenize__(self) -> str:
        """Returns the name, which Dask hashes instead of the work."""
        return self.name


def _run(shared: _SharedWork, partition: int, rows: Any) -> Parcel | None:
    """Returns the parcel that the shared work makes of the rows of a partition, on a worker; None if it is empty."""
    return shared.work(partition, rows)


def _with_answers(rows: Any, work: Answer) -> Any:
    """Returns the rows of a partition with the columns of the answer."""
    return _join_answers(rows, work(rows), work)


def _join_answers(rows: Any, answers: Mapping[str, Any], work: Answer) -> Any:
    """Returns a pandas frame of the rows with the columns of the answers. ``answers`` has a value per row for each
    column; ``work`` says the kind of each column. The rows are a frame or a series.
    """
    import pandas

    frame = rows.to_frame() if hasattr(rows, "to_frame") and not hasattr(rows, "columns") else rows
    types = {name: PANDAS_TYPE_BY_KIND[work.columns[name]] for name in answers}
    columns = {name: pandas.Series(list(values), frame.index, types[name]) for name, values in answers.items()}
    return frame.assign(**columns)


def _records(rows: Any, work: Answer) -> list[Any]:
    """Returns the items of a bag's partition (``rows``) as records (mappings) with the columns of the answer; an item
    that is not a record becomes its "text". ``work`` computes the answers.
    """
    items = list(rows)
    answers = work(items)  # for each column a value per item
    answer_rows = zip(*answers.values(), strict=True) if items else ()  # the values of each item
    records = (record if isinstance(record, Mapping) else {"text": record} for record in items)
    return [
        {**record, **dict(zip(answers, values, strict=True))}
        for record, values in zip(records, answer_rows, strict=True)
    ]


def _explain_failure(error: Exception) -> Exception:
    """Returns a clearer error for a failure of the cluster; errors of the user's own tasks stay as they are."""
    error_name = type(error).__name__
    if error_name == "KilledWorker":
        return errors.EngineError(
            f"Dask workers died repeatedly on the same partition ({error}). It may need more memory than they have: use "
            "smaller partitions, or give workers more memory."
        )
    if error_name in ("CancelledError", "FutureCancelledError", "CommClosedError", "FuturesCancelledError"):
        return errors.EngineError(f"the Dask job was cancelled or its scheduler is gone ({error}). Start again.")
    return error
