"""Dask: dataframes, bags and delayed parts, on a cluster or on the scheduler that is set; and files on a cluster."""

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
from banbury.engines.counting import in_groups
from banbury.engines.engine import FAN_IN, Answer, PartWork, Steps
from banbury.engines.interrupts import hear_interrupts
from banbury.engines.parcels import Parcel, add_up, check_format
from banbury.engines.parts import parts_of

WITHIN = "10s"  # a scheduler that is named answers
DTYPES = {"boolean": "boolean", "integer": "Int64", "float": "float64", "string": "string[pyarrow]", "list": "object"}


def engine(data: Any, engine: Any, partitions: int | None) -> Dask:
    """The partitions of a collection of Dask, or the parts of other data, with the client that is given or is there."""
    with hear_interrupts():
        return _engine(data, client_of(engine), partitions)


def _engine(data: Any, client: Any, partitions: int | None) -> Dask:
    _check_workers(client)
    if isinstance(data, Delayed):
        data = [data]
    if isinstance(data, (list, tuple)) and data and all(isinstance(part, Delayed) for part in data):
        graph = {key: task for part in data for key, task in dict(part.__dask_graph__()).items()}
        return Dask([TaskRef(part.key) for part in data], None, client, graph)
    if dask.is_dask_collection(data):
        if not hasattr(data, "to_delayed") or len(np.shape(data.__dask_keys__())) != 2:
            raise errors.bad_setting(
                "Dask data", type(data).__name__, "a dataframe, a series, a bag or a list of delayed parts"
            )
        keys = data.__dask_keys__()
        names = [f"{key[0]}/{key[1]}" for key in keys]
        best = data.optimize() if hasattr(data, "optimize") else data
        parts = list(map(TaskRef, best.__dask_keys__()))
        return Dask(parts, names, client, dict(best.__dask_graph__()), collection=data)
    if client is None:
        raise errors.EngineError(
            "there is no Dask client. Start one with client = distributed.Client('tcp://host:8786') and "
            "pass engine=client, or pass engine='processes' to count on this machine."
        )
    plain, files = parts_of(data, partitions or sum(client.nthreads().values()) or 1)
    return Dask(plain, files, client, are_files=files is not None)


_clients: dict[str, Any] = {}  # by address: a name stands for one client of this process
_lock = threading.Lock()


def client_of(engine: Any) -> Any:
    """The client that is meant: given, at an address, or the one that is there; None where there is none."""
    if isinstance(engine, str):
        address = engine.partition("://")[2]
        if not address:
            return _running(_there())
        with _lock:
            client = _clients.get(address)
            if client is None or client.status != "running":
                try:
                    client = _clients[address] = Client(f"tcp://{address}", timeout=WITHIN, set_as_default=False)
                except (OSError, ValueError) as problem:
                    raise errors.EngineError(
                        f"no Dask scheduler responds at {address} ({problem}). Start one with `dask scheduler`, or correct the "
                        "address: engine='dask://host:8786'.",
                        address=address,
                    ) from None
        return client
    return _running(_there() if engine is None else engine)


def _there() -> Any:
    with suppress(ValueError):
        return default_client()
    return None


def _running(client: Any) -> Any:
    if client is not None and getattr(client, "status", "running") != "running":
        raise errors.EngineError(
            f"the Dask client is {client.status}. Start another one with client = distributed.Client(...) and pass "
            "engine=client.",
            status=client.status,
        )
    return client


def _check_workers(client: Any) -> None:
    """Raises where a worker has no Banbury, or one of another format: it could not even read what it is to do."""

    def has_banbury() -> dict[str, Any] | None:
        try:
            from banbury.engines import parcels
        except ImportError:
            return None
        return parcels.this_library()

    if client is not None:
        libraries = client.run(has_banbury)
        without = [address for address, there in libraries.items() if there is None]
        if without:
            raise errors.EngineError(
                f"the Dask worker at {without[0]} does not have the package 'banbury'.  Install it on every worker: pip install "
                f"banbury=={__version__}",
                workers=without,
            )
        for there in libraries.values():
            check_format(there)


class Dask:
    """Partitions that Dask computes where they are."""

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
        self.parts = parts
        self.names = names
        self.client = client
        self._graph = graph or {}
        self.are_files = are_files
        self.collection = collection
        self.columns = tuple(map(str, getattr(collection, "columns", ())))
        self.n_partitions: int | None = len(parts)

    def first(self, take: PartWork) -> Steps[Parcel | None]:
        """Ever more partitions at a time, so that many empty ones are soon read through."""
        start = 0
        size = 1
        while start < len(self.parts):
            some = range(start, min(start + size, len(self.parts)))
            graph, keys = self._tasks(take, {partition: self.parts[partition] for partition in some})
            yield from self._compute(graph, keys)
            start = start + size
            size = 2 * size

    def add_up_parts(self, work: PartWork) -> Steps[tuple[int, Parcel | None]]:
        """A tree of additions on the workers: only its root comes here."""
        parts: dict[int, Any] = dict(enumerate(self.parts))
        if self.are_files and self.names is not None and self.client is not None:
            parts = in_groups(self.names, max(sum(self.client.nthreads().values()), 1))
        graph, leaves = self._tasks(work, parts)
        nodes = leaves
        name = f"banbury-sums-{uuid4().hex}"
        while len(nodes) > 1:
            groups = [nodes[at : at + FAN_IN] for at in range(0, len(nodes), FAN_IN)]
            nodes = [(name, len(graph) + number) for number in range(len(groups))]
            for node, group in zip(nodes, groups, strict=True):
                graph[node] = Task(node, add_up, List(*map(TaskRef, group)))
        if self.client is None:
            yield len(self.parts), self._compute(graph, nodes)[0]
            return
        with self._futures(graph, leaves if nodes is leaves else [*leaves, *nodes]) as futures:
            root = futures[-1]
            for n_done, future in enumerate(as_completed(futures, loop=self.client.loop), 1):
                if future.key == root.key:
                    break
                yield min(n_done * len(self.parts) // len(leaves), len(self.parts)), None
                if future.status == "error":
                    break
            yield len(self.parts), self._result(root)

    def answer(self, work: Answer) -> Any:
        errors.require(
            self.collection is not None,
            "Dask data",
            "delayed parts",
            "a dataframe, a series or a bag for predictions",
        )
        shared = dask.delayed(work, name=f"banbury-answers-{uuid4().hex}", traverse=False)
        meta = getattr(self.collection, "_meta", None)
        if meta is None:
            return self.collection.map_partitions(_records, shared)
        empty = _join_answers(meta, dict.fromkeys(work.columns, ()), work)
        return self.collection.map_partitions(_beside, shared, meta=empty)

    # Tasks

    def _tasks(self, work: PartWork, parts: Mapping[int, Any]) -> tuple[dict[Any, Any], list[Any]]:
        """A graph with the work on each of these partitions, and the keys of what it makes; the work is in the graph once."""
        shared = f"banbury-work-{uuid4().hex}"
        name = f"banbury-run-{uuid4().hex}"
        graph = {**self._graph, shared: DataNode(shared, _SharedWork(shared, work))}
        keys = [(name, partition) for partition in parts]
        for key in keys:
            graph[key] = Task(key, _run, TaskRef(shared), key[1], parts[key[1]])
        return graph, keys

    def _compute(self, graph: dict[Any, Any], keys: Sequence[Any]) -> list[Parcel | None]:
        if self.client is None:
            return list((get_scheduler() or threaded.get)(graph, list(keys)))
        with self._futures(graph, keys) as futures:
            made: list[Parcel | None] = self.client.gather(futures, errors="skip")  # in one message
            return made if len(made) == len(keys) else [self._result(future) for future in futures]

    @contextmanager
    def _futures(self, graph: dict[Any, Any], keys: Sequence[Any]) -> Iterator[list[Any]]:
        """What the cluster is to do; however this ends, none of it is left running."""
        _running(self.client)
        futures = self.client.get(graph, list(keys), sync=False)
        try:
            yield futures
        finally:
            # What nobody wants is not run. To cancel sums that only other sums are made of breaks a client's line to the
            # scheduler, which asserts that somebody wanted each of them.
            for future in futures:
                future.release()

    def _result(self, future: Any) -> Parcel | None:
        try:
            return future.result()  # type: ignore[no-any-return]
        except errors.BanburyError:
            raise
        except Exception as problem:
            raise _explain_failure(problem) from problem


@dataclass(frozen=True)
class _SharedWork:
    """Work under a name of its own, which is all that Dask hashes of it: a tally may be large."""

    name: str
    work: PartWork

    def __dask_tokenize__(self) -> str:
        return self.name


def _run(shared: _SharedWork, partition: int, rows: Any) -> Parcel | None:
    return shared.work(partition, rows)


def _beside(rows: Any, work: Answer) -> Any:
    return _join_answers(rows, work(rows), work)


def _join_answers(rows: Any, answers: Mapping[str, Any], work: Answer) -> Any:
    """Rows of pandas with the answers beside them."""
    import pandas

    frame = rows.to_frame() if hasattr(rows, "to_frame") and not hasattr(rows, "columns") else rows
    columns = ((name, list(values), DTYPES[work.columns[name]]) for name, values in answers.items())
    return frame.assign(**{name: pandas.Series(values, frame.index, dtype) for name, values, dtype in columns})


def _records(rows: Any, work: Answer) -> list[Any]:
    """Items of a bag, each a record with the answers in it; what is no record is its "text"."""
    items = list(rows)
    answers = work(items)
    answer_rows = zip(*answers.values(), strict=True) if items else ()
    records = (record if isinstance(record, Mapping) else {"text": record} for record in items)
    return [
        {**record, **dict(zip(answers, values, strict=True))}
        for record, values in zip(records, answer_rows, strict=True)
    ]


def _explain_failure(problem: Exception) -> Exception:
    """What went wrong on the cluster, in words; errors of a user's own partitions stay as they are."""
    kind = type(problem).__name__
    if kind == "KilledWorker":
        return errors.EngineError(
            f"Dask workers died repeatedly on the same partition ({problem}). It may need more memory than they have: use "
            "smaller partitions, or give workers more memory."
        )
    if kind in ("CancelledError", "FutureCancelledError", "CommClosedError", "FuturesCancelledError"):
        return errors.EngineError(f"the Dask job was cancelled or its scheduler is gone ({problem}). Start again.")
    return problem
