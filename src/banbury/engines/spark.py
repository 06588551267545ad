"""Spark: dataframes, classic or of Connect, and files on the workers of a session.

Work is mapped over partitions with ``mapInArrow``, and what it makes comes as rows of cells. Tallies are moved and added on the
workers; the rows that they count stay where they are.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from banbury import __version__, errors
from banbury.engines.counting import at_partition, in_groups
from banbury.engines.engine import FAN_IN, Add, Answer, Parcel, PartWork, Steps
from banbury.engines.parts import parts_of

CELL = (
    1 << 17
)  # bytes; 10,000 of them, which Spark sends at a time, stay below the 2**31 that a column of Arrow can hold
CELLS = "partition long, place long, n_places long, content binary"
TYPES = {
    "boolean": (t.BooleanType(), pa.bool_()),
    "integer": (t.LongType(), pa.int64()),
    "float": (t.DoubleType(), pa.float64()),
    "string": (t.StringType(), pa.string()),
    "list": (t.ArrayType(t.StringType()), pa.list_(pa.string())),
}
PARTITIONS = 16  # of a table that is here
PORTS = {"sc": "15002", "spark": "7077"}  # where an address names none
WITHIN = 10.0  # seconds, Spark answers at its address
AT_ADDRESSES = ("spark://host:7077", "sc://host:15002", "local[2]")

Batches = Iterator[pa.RecordBatch]


def engine(data: Any, engine: Any, partitions: int | None) -> Spark:
    """The partitions of a frame of Spark, or the parts of other data, with the session that is given or is there."""
    if type(data).__module__.partition(".")[0] == "pyspark":
        if not hasattr(data, "mapInArrow"):
            raise errors.bad_setting("data of Spark", type(data).__name__, "a dataframe")
        session = _running(data.sparkSession)
        if data.isStreaming:
            raise errors.bad_setting("data of Spark", "a stream, which does not end", "a dataframe that is read whole")
        return Spark(data, session, partial(_rows_of, data.columns), columns=data.columns)
    session = session_of(engine)
    parts, files = parts_of(data, partitions or PARTITIONS)
    if files is not None:
        named = session.range(0, len(files), 1, len(files))
        return Spark(named, session, partial(_files_of, files), len(files), files)
    pickled = [(number, pickle.dumps(part)) for number, part in enumerate(parts)]
    sent = session.createDataFrame(pickled, "id long, rows binary")
    return Spark(sent, session, _parts_of, len(parts))


def session_of(engine: Any) -> Any:
    """The session that is meant: given, at an address, or the one that is there."""
    if not isinstance(engine, str):
        if not hasattr(engine, "createDataFrame"):
            raise errors.bad_setting("engine", type(engine).__name__, "a Spark session, as data are no frame of Spark")
        return _running(engine)
    if engine in ("spark", "spark://"):
        if (session := SparkSession.getActiveSession()) is None:
            text = "there is no Spark session. Start one, as in SparkSession.builder.getOrCreate(), and give it, or name one: "
            raise errors.EngineError(f"{text}engine={errors.listed(map(repr, AT_ADDRESSES), 3)}.")
        return _running(session)
    _check_reachable(engine)
    builder = SparkSession.builder.appName("banbury")
    builder = builder.remote(engine) if engine.startswith("sc://") else builder.master(engine)
    try:
        return _running(builder.getOrCreate())
    except errors.EngineError:
        raise
    except Exception as problem:
        text = f"no session of Spark could be had at {engine} ({_first_line(problem)}). Look whether Spark runs there, and "
        text += f"whether the address is one of {errors.listed(map(repr, AT_ADDRESSES), 3)}."
        raise errors.EngineError(text, address=engine) from problem


def _check_reachable(address: str) -> None:
    """Raises where nothing answers at an address: Spark itself would go on trying for minutes."""
    kind, _, places = address.partition("://")
    problem: OSError | ValueError | None = None
    for place in places.partition("/")[0].partition(";")[0].split(",") if places else ():
        host, _, port = place.rpartition(":") if ":" in place.rpartition("]")[2] else (place, "", PORTS.get(kind, "0"))
        try:
            with socket.create_connection((host.strip("[]"), int(port)), WITHIN):
                return
        except (OSError, ValueError, OverflowError) as found:
            problem = found if isinstance(found, OSError) else ValueError(f"{port!r} is no port")
    if problem is not None:
        text = (
            f"no Spark answers at {address} ({problem}). Look whether it runs there, and whether the address is one of "
        )
        raise errors.EngineError(f"{text}{errors.listed(map(repr, AT_ADDRESSES), 3)}.", address=address)


def _running(session: Any) -> Any:
    """The session, if it has not been stopped."""
    try:
        if not getattr(session, "is_stopped", False):
            SparkSession.active()
            return session
    except PySparkException as problem:
        raise _stopped() from problem
    raise _stopped()


def _stopped() -> errors.EngineError:
    text = "the session of Spark is stopped. Start another one, as in SparkSession.builder.getOrCreate(), and read the frame "
    return errors.EngineError(f"{text}anew with it.")


class Spark:
    """Partitions that Spark computes where they are."""

    name = "Spark"

    def __init__(
        self,
        frame: Any,
        session: Any,
        rows: Callable[[Batches], Iterator[tuple[int, Any]]],
        n_partitions: int | None = None,
        names: Sequence[str] | None = None,
        columns: Sequence[str] = (),
    ) -> None:
        # Names with points in them, or that are there twice, mean something else to Spark: they travel with the work.
        self.frame, self.plain = frame, frame.toDF(*(f"column_{n}" for n in range(len(frame.columns))))
        self.session, self.rows = session, rows
        self.n_partitions, self.names, self.columns = n_partitions, names, tuple(columns)
        self.are_files = names is not None

    def first(self, take: PartWork) -> Steps[Parcel]:
        """Spark takes cells from ever more partitions, in their order; ever more cells are taken."""
        taken, done, wanted = self._mapped(take, ()), set[int](), 1
        while True:
            with self._watched():
                cells = taken.take(wanted)
            for partition, parcel in _parcels(map(tuple, cells)):
                if partition not in done:
                    done.add(partition)
                    yield parcel
            if len(cells) < wanted:
                return
            wanted *= FAN_IN

    def each(self, work: PartWork, skip: Collection[int]) -> Steps[tuple[int, Parcel]]:
        """Spark Connect gives what is done in the order of partitions, classic Spark when all is done."""
        yield from self._brought(self._mapped(work, skip))

    def added(self, work: PartWork, add: Add) -> Steps[tuple[int, Parcel | None]]:
        """A tree of additions on the workers, each of which holds a sum and one more. Eight sums, or fewer, come here."""
        sums, n_sums = self._mapped(work, ()), self.n_partitions
        if self.names is not None:
            groups = in_groups(self.names, _n_workers(self.session))
            numbers, n_sums = list(groups), len(groups)
            spread = self.session.range(0, n_sums, 1, n_sums)
            files = partial(_files_of, [groups[number] for number in numbers])
            sums = spread.mapInArrow(partial(_cells_of, work, files, frozenset()), CELLS)
        for width in (FAN_IN**2, FAN_IN):
            if n_sums is not None and n_sums <= width:
                continue
            near = sums.repartition(f.col("partition") % width).sortWithinPartitions("partition", "place")
            sums = near.mapInArrow(partial(_added, add), CELLS)
        for n_done, (_, parcel) in enumerate(self._brought(sums), 1):
            yield self.n_partitions or n_done, parcel

    def answered(self, work: Answer) -> Any:
        if not self.columns:
            raise errors.bad_setting(
                "engine", "Spark", "left out here: give a dataframe of Spark, which answers as one"
            )
        fields = [t.StructField(name, TYPES[kind][0]) for name, kind in work.columns.items()]
        schema = t.StructType([*self.frame.schema.fields, *fields])
        return self.plain.mapInArrow(partial(_answered, work, self.columns), schema)

    # Jobs

    def _mapped(self, work: PartWork, skip: Collection[int]) -> Any:
        return self.plain.mapInArrow(partial(_cells_of, work, self.rows, frozenset(skip)), CELLS)

    def _brought(self, cells: Any) -> Steps[tuple[int, Parcel]]:
        with self._watched():
            yield from _parcels(map(tuple, cells.toLocalIterator() if _is_connect(cells) else cells.collect()))

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """A job of Spark. Where it is cut off, it is cancelled; what goes wrong is said in words."""
        tag = f"banbury-{uuid4().hex}"
        _running(self.session).addTag(tag)
        try:
            yield
        except errors.BanburyError:
            raise
        except BaseException as problem:
            with suppress(Exception):
                # Ctrl-C breaks classic Spark's line to the thread that has the tag. Then all jobs of the session end, as
                # Spark's own handler of Ctrl-C means to have it.
                if not self.session.interruptTag(tag) and isinstance(problem, KeyboardInterrupt):
                    self.session.interruptAll()
            if not isinstance(problem, Exception):
                raise
            raise _explained(problem) from problem
        finally:
            with suppress(Exception):
                self.session.removeTag(tag)


def _n_workers(session: Any) -> int:
    """How many tasks run at a time; of Connect, which does not tell, as many as are added up at a time."""
    context = None if type(session).__module__.startswith("pyspark.sql.connect") else session.sparkContext
    return FAN_IN if context is None else max(int(context.defaultParallelism), 1)


def _is_connect(frame: Any) -> bool:
    return type(frame).__module__.startswith("pyspark.sql.connect")


# On workers: the rows of partitions


def _rows_of(names: Sequence[str], batches: Batches) -> Iterator[tuple[int, Any]]:
    """The rows of this task's partition, read as they come."""
    partition = TaskContext.get().partitionId()
    first = next(batches, None)
    if first is None:
        yield partition, []
        return
    named = (batch.rename_columns(names) for batch in chain([first], batches))
    yield partition, pa.RecordBatchReader.from_batches(first.rename_columns(names).schema, named)


def _files_of(files: Sequence[Any], batches: Batches) -> Iterator[tuple[int, Any]]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield number, files[number]


def _parts_of(batches: Batches) -> Iterator[tuple[int, Any]]:
    for batch in batches:
        for number, part in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            yield number, pickle.loads(part.as_py())


# On workers: what is made of them. A parcel, or the error in its place, travels as a table of cells.


def _cells_of(work: PartWork, rows: Any, skip: Collection[int], batches: Batches) -> Batches:
    for partition, part in rows(batches):
        if partition not in skip:
            try:
                made: Parcel | errors.BanburyError = work(partition, part)
            except errors.BanburyError as problem:
                made = problem
            if made:
                yield from _cells(partition, made)


def _cells(partition: int, made: Parcel | errors.BanburyError) -> Batches:
    content = pickle.dumps(made)
    starts = range(0, len(content), CELL)
    for place, at in enumerate(starts):
        cell = {"partition": [partition], "place": [place], "n_places": [len(starts)]}
        yield pa.RecordBatch.from_pydict({**cell, "content": pa.array([content[at : at + CELL]], pa.binary())})


def _parcels(cells: Iterable[tuple[int, int, int, bytes]]) -> Iterator[tuple[int, Parcel]]:
    """Parcels, put together again as soon as their cells are complete, each partition once; raises where one is an error."""
    waiting, done = dict[int, dict[int, bytes]](), set[int]()
    for partition, place, n_places, content in cells:
        if partition in done:
            continue
        found = waiting.setdefault(partition, {})
        found[place] = content
        if len(found) == n_places:
            done.add(partition)
            made = pickle.loads(b"".join(content for _, content in sorted(waiting.pop(partition).items())))
            if isinstance(made, errors.BanburyError):
                raise made
            yield partition, made


def _added(add: Add, batches: Batches) -> Batches:
    """The sum of the parcels of this task, or the first error among them, called by the first of their partitions."""
    rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    first = next(rows, None)
    if first is not None:
        try:
            made: Parcel | errors.BanburyError = add(parcel for _, parcel in _parcels(chain([first], rows)))
        except errors.BanburyError as problem:
            made = problem
        yield from _cells(first[0], made)


def _answered(work: Answer, names: Sequence[str], batches: Batches) -> Batches:
    partition = TaskContext.get().partitionId()
    for batch in batches:
        with at_partition(partition):
            answers = work(batch.rename_columns(names))
        columns = [_column(values, work.columns[name]) for name, values in answers.items()]
        yield pa.RecordBatch.from_arrays([*batch.columns, *columns], [*names, *answers])


def _column(values: Any, kind: str) -> pa.Array:
    if kind == "string":
        values = [None if value is None else str(value) for value in values]
    return pa.array(values, TYPES[kind][1])


# What goes wrong


def _first_line(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {(str(problem).splitlines() or ['no reason given'])[0]}"


def _explained(problem: Exception) -> Exception:
    """What went wrong on Spark, in words; errors of a user's own frame stay as they are."""
    text = str(problem)
    if "stopped SparkContext" in text or "[SESSION_OR_CONTEXT_NOT_EXISTS]" in text or "[NO_ACTIVE_SESSION]" in text:
        return _stopped()
    for package in ("banbury", "pyarrow", "numpy", "scipy"):
        if f"No module named '{package}" in text:
            wanted = f"banbury=={__version__}" if package == "banbury" else package
            said = f"a worker of Spark has no package {package!r}. Install it on every worker, in the environment that "
            return errors.EngineError(f"{said}PYSPARK_PYTHON names there: pip install {wanted}", package=package)
    if "spark.driver.maxResultSize" in text:
        said = f"eight tallies are more than Spark brings to its driver ({_first_line(problem)}). Start the session with more "
        return errors.EngineError(f"{said}of spark.driver.maxResultSize, or count fewer words: features=bb.Text(...).")
    return problem
