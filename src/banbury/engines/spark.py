"""Spark: dataframes, classic or of Connect, and files on the workers of a session.

Work is mapped over partitions with ``mapInArrow``, and what it makes comes as rows of cells. Tallies are moved and added on the
workers; the rows that they count stay where they are.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
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

from banbury import errors
from banbury.engines.counting import at_partition, in_groups
from banbury.engines.engine import FAN_IN, Answer, PartWork, Steps
from banbury.engines.parcels import Parcel, add_up, in_cells, lacking_package, parcels_in
from banbury.engines.parts import parts_of
from banbury.families.moments import SAMPLE

CELLS = "partition long, place long, n_places long, content binary"
TYPES = {
    "boolean": t.BooleanType(),
    "integer": t.LongType(),
    "float": t.DoubleType(),
    "string": t.StringType(),
    "list": t.ArrayType(t.StringType()),
}
ARROW_TYPES = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "list": pa.list_(pa.string()),
}
CHUNK = 1 << 28  # bytes of a cell; binary cells of Arrow end at 2**31
TOGETHER = 1 << 25  # bytes of rows that a worker counts at a time
PARTITIONS = 16  # of a table that is here
PORTS = {"sc": "15002", "spark": "7077"}  # where an address names none
WITHIN = 10.0  # seconds, Spark answers at its address
AT_ADDRESSES = ("spark://host:7077", "sc://host:15002", "local[2]")

Batches = Iterator[pa.RecordBatch]


def engine(data: Any, engine: Any, partitions: int | None) -> Spark:
    """The partitions of a frame of Spark, or the parts of other data, with the session that is given or is there."""
    if type(data).__module__.partition(".")[0] == "pyspark":
        errors.require(hasattr(data, "mapInArrow"), "Spark data", type(data).__name__, "a dataframe")
        session = _running(data.sparkSession)
        if data.isStreaming:
            raise errors.bad_setting("Spark data", "an endless stream", "a batch dataframe")
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
            raise errors.bad_setting(
                "engine", type(engine).__name__, "a Spark session, because the data are not a Spark dataframe"
            )
        return _running(engine)
    if engine in ("spark", "spark://"):
        if (session := SparkSession.getActiveSession()) is None:
            raise errors.EngineError(
                "there is no Spark session. Start one with SparkSession.builder.getOrCreate() and pass it, or name one: "
                f"engine={errors.listed(map(repr, AT_ADDRESSES), 3)}."
            )
        return _running(session)
    _check_reachable(engine)
    builder = SparkSession.builder.appName("banbury")
    builder = builder.remote(engine) if engine.startswith("sc://") else builder.master(engine)
    try:
        return _running(builder.getOrCreate())
    except errors.EngineError:
        raise
    except Exception as problem:
        raise errors.EngineError(
            f"cannot get a Spark session at {engine} ({_first_line(problem)}). Check that Spark runs there, and "
            f"that the address is one of {errors.listed(map(repr, AT_ADDRESSES), 3)}.",
            address=engine,
        ) from problem


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
            problem = found if isinstance(found, OSError) else ValueError(f"{port!r} is not a port")
    if problem is not None:
        raise errors.EngineError(
            f"Spark does not respond at {address} ({problem}). Check that it runs there, and that the address is one of "
            f"{errors.listed(map(repr, AT_ADDRESSES), 3)}.",
            address=address,
        )


def _running(session: Any) -> Any:
    """The session, if it has not been stopped."""
    try:
        if not getattr(session, "is_stopped", False):
            SparkSession.active()
            return session
    except PySparkException as problem:
        raise _no_session() from problem
    raise _no_session()


def _no_session() -> errors.EngineError:
    return errors.EngineError(
        "the Spark session is stopped. Start another one with SparkSession.builder.getOrCreate() and read the frame "
        "again with it."
    )


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
        self.session = session
        self.rows = rows
        self.n_partitions, self.names, self.columns = n_partitions, names, tuple(columns)
        self.are_files = names is not None
        self._stages: Stages = tuple

    def first(self, take: PartWork) -> Steps[Parcel | None]:
        """Of a frame Spark takes rows from ever more partitions, in their order, and no worker is asked.

        Of files and parts it takes cells; ever more of them.
        """
        if self.columns:
            with self._watch_job():
                rows = self.plain.take(SAMPLE)
                table = self.session.createDataFrame(rows, self.plain.schema).toArrow() if rows else None
            if table is not None:
                yield take(0, table.rename_columns(self.columns))
            return
        taken = self._map_work(take, CHUNK)
        done = set[int]()
        n_cells = 1
        while True:
            with self._watch_job():
                cells = taken.take(n_cells)
            for partition, parcel in parcels_in(map(tuple, cells)):
                if partition not in done:
                    done.add(partition)
                    yield parcel
            if len(cells) < n_cells:
                return
            n_cells *= FAN_IN

    def add_up_parts(self, work: PartWork) -> Steps[tuple[int, Parcel | None]]:
        """A tree of additions on the workers, each of which holds a sum and one more. Eight sums, or fewer, come here."""
        sums = self._map_work(work)
        n_sums = self.n_partitions
        if self.names is not None:
            groups = list(in_groups(self.names, _n_workers(self.session)).values())
            n_sums = len(groups)
            files = partial(_files_of, groups)
            spread = self.session.range(0, n_sums, 1, n_sums)
            sums = spread.mapInArrow(partial(_cells_of, work, files, None), CELLS)
        # Where no more than eight tasks run at a time, no more than eight sums need be made at a time.
        for width in (FAN_IN**2, FAN_IN):
            if (n_sums is not None and n_sums <= width) or width > FAN_IN >= _n_workers(self.session):
                continue
            near = sums.repartition(f.col("partition") % width).sortWithinPartitions("partition", "place")
            sums = near.mapInArrow(_add_parcels, CELLS)
        for n_done, (_, parcel) in enumerate(self._brought(sums), 1):
            yield self.n_partitions or n_done, parcel

    def answer(self, work: Answer) -> Any:
        errors.require(self.columns, "engine", "Spark", "omitted here; to predict with Spark, pass a Spark dataframe")
        fields = [t.StructField(name, TYPES[kind]) for name, kind in work.columns.items()]
        schema = t.StructType([*self.frame.schema.fields, *fields])
        return self.plain.mapInArrow(partial(_answer_batches, work, self.columns), schema)

    # Jobs

    def _map_work(self, work: PartWork, cell: int | None = None) -> Any:
        return self.plain.mapInArrow(partial(_cells_of, work, self.rows, cell), CELLS)

    def _brought(self, cells: Any) -> Steps[tuple[int, Parcel]]:
        with self._watch_job():
            yield from parcels_in(map(tuple, cells.toLocalIterator() if _is_connect(cells) else cells.collect()))

    @contextmanager
    def _watch_job(self) -> Iterator[None]:
        """A job of Spark. Where it is cut off, it is cancelled; what goes wrong is said in words."""
        tag = f"banbury-{uuid4().hex}"
        _running(self.session).addTag(tag)
        try:
            with _connect_stages(self.session) if _is_connect(self.session) else _stages(self.session) as self._stages:
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
            raise _explain_failure(problem) from problem
        finally:
            self._stages = tuple
            with suppress(Exception):
                self.session.removeTag(tag)

    def progress(self) -> tuple[int, float | None]:
        """Tasks that are done, of the stage that has most: that is where rows are counted; sums are added up by fewer."""
        try:
            n_tasks, n_done = max(self._stages(), default=(0, 0))
        except Exception:  # Spark may be gone; who waits for the result hears of it
            return 0, None
        return n_done, n_done / n_tasks if n_tasks else None


Stages = Callable[[], Iterable[tuple[int, int]]]  # of each stage that is known, all tasks, and those that are done


@contextmanager
def _stages(session: Any) -> Iterator[Stages]:
    """The stages of the jobs that classic Spark begins meanwhile."""
    context = session.sparkContext
    group = context.getLocalProperty("spark.jobGroup.id")
    tracker = context.statusTracker()
    before = set(tracker.getJobIdsForGroup(group))

    def stages() -> Iterator[tuple[int, int]]:
        jobs = map(tracker.getJobInfo, set(tracker.getJobIdsForGroup(group)) - before)
        for stage in map(tracker.getStageInfo, {stage for job in jobs if job is not None for stage in job.stageIds}):
            if stage is not None:
                yield stage.numTasks, stage.numCompletedTasks

    yield stages


@contextmanager
def _connect_stages(session: Any) -> Iterator[Stages]:
    """The same of Spark Connect, which tells of itself while it works."""
    last_stages: list[tuple[int, int]] = []

    def hear(stages: Any, **rest: Any) -> None:
        last_stages[:] = [(stage.num_tasks, stage.num_completed_tasks) for stage in stages or ()] or last_stages

    session.registerProgressHandler(hear)
    try:
        yield lambda: list(last_stages)
    finally:
        with suppress(ValueError):  # a user may have cleared them
            session.removeProgressHandler(hear)


def _n_workers(session: Any) -> int:
    """How many tasks run at a time; of Connect, which does not tell, more than eight."""
    return FAN_IN + 1 if _is_connect(session) else max(int(session.sparkContext.defaultParallelism), 1)


def _is_connect(session_or_frame: Any) -> bool:
    return type(session_or_frame).__module__.startswith("pyspark.sql.connect")


# On workers: the rows of partitions


def _rows_of(names: Sequence[str], batches: Batches) -> Iterator[tuple[int, Any]]:
    """The rows of this task's partition, read as they come."""
    partition = TaskContext.get().partitionId()
    first = next(batches, None)
    if first is None:
        yield partition, []
        return
    named = (batch.rename_columns(names) for batch in _together(chain([first], batches)))
    yield partition, pa.RecordBatchReader.from_batches(first.rename_columns(names).schema, named)


def _together(batches: Batches) -> Batches:
    """Batches one after the other as larger ones: many texts are counted quicker at once than in turn."""
    held = list[pa.RecordBatch]()
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= TOGETHER:
            yield _join_batches(held)
            held = []
            size = 0
    if held:
        yield _join_batches(held)


def _join_batches(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _files_of(files: Sequence[Any], batches: Batches) -> Iterator[tuple[int, Any]]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield number, files[number]


def _parts_of(batches: Batches) -> Iterator[tuple[int, Any]]:
    for batch in batches:
        for number, part in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            yield number, pickle.loads(part.as_py())


# On workers: what is made of them. A parcel, or the error in its place, travels as a table of cells.


def _cells_of(work: PartWork, rows: Any, cell: int | None, batches: Batches) -> Batches:
    for partition, part in rows(batches):
        try:
            made: Parcel | errors.BanburyError | None = work(partition, part)
        except errors.BanburyError as problem:
            made = problem
        if made is not None:
            yield from in_cells(partition, made, cell)


def _add_parcels(batches: Batches) -> Batches:
    """The sum of the parcels of this task, or the first error among them, called by the first of their partitions."""
    rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    first = next(rows, None)
    if first is not None:
        try:
            made: Any = add_up(parcel for _, parcel in parcels_in(chain([first], rows)))
        except errors.BanburyError as problem:
            made = problem
        yield from in_cells(first[0], made)


def _answer_batches(work: Answer, names: Sequence[str], batches: Batches) -> Batches:
    partition = TaskContext.get().partitionId()
    for batch in batches:
        with at_partition(partition):
            answers = _arrow_columns(work, batch.rename_columns(names))
        yield pa.RecordBatch.from_arrays([*batch.columns, *answers.values()], [*names, *answers])


def _arrow_columns(work: Answer, rows: Any) -> dict[str, pa.Array]:
    """The columns of an answer to rows, as Arrow has them."""
    columns = {}
    for name, values in work(rows).items():
        if (kind := work.columns[name]) == "string":
            values = [None if value is None else str(value) for value in values]
        columns[name] = pa.array(values, ARROW_TYPES[kind])
    return columns


# What goes wrong


def _first_line(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {(str(problem).splitlines() or ['no reason given'])[0]}"


def _explain_failure(problem: Exception) -> Exception:
    """What went wrong on Spark, in words; errors of a user's own frame stay as they are."""
    text = str(problem)
    if "stopped SparkContext" in text or "[SESSION_OR_CONTEXT_NOT_EXISTS]" in text or "[NO_ACTIVE_SESSION]" in text:
        return _no_session()
    if lacking := lacking_package("Spark", text, ", in the environment that PYSPARK_PYTHON names there"):
        return lacking
    if "spark.driver.maxResultSize" in text:
        return errors.EngineError(
            f"eight tallies exceed what Spark can return to its driver ({_first_line(problem)}). Start the session with a larger "
            "spark.driver.maxResultSize, or count fewer words: features=bb.Text(...)."
        )
    return problem
