"""Spark: dataframes, classic or Connect, and files on the workers of a session.

Work is mapped over partitions with ``mapInArrow``; its parcels come as rows of cells. Tallies are sent and added on the workers;
rows stay where they are.
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
from banbury.engines.counting import at_partition, group_files
from banbury.engines.engine import FAN_IN, Answer, PartWork, Steps
from banbury.engines.parcels import Parcel, add_up, in_cells, lacking_package, parcels_in
from banbury.engines.parts import parts_of
from banbury.families.moments import SAMPLE

CELL_SCHEMA = "partition long, cell long, n_cells long, content binary"
SPARK_TYPE_BY_KIND = {
    "boolean": t.BooleanType(),
    "integer": t.LongType(),
    "float": t.DoubleType(),
    "string": t.StringType(),
    "list": t.ArrayType(t.StringType()),
}
ARROW_TYPE_BY_KIND = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "list": pa.list_(pa.string()),
}
LARGE_CELL_BYTES = 1 << 28  # bytes of a cell with first rows; Arrow allows fewer than 2**31
BYTES_TOGETHER = 1 << 25  # bytes of rows that a worker counts at once
LOCAL_PARTITIONS = 16  # parts into which a local table is cut
DEFAULT_PORTS = {"sc": "15002", "spark": "7077"}  # for addresses without a port, by protocol
CONNECT_SECONDS = 10.0  # how long Spark may take to respond at an address
EXAMPLE_ADDRESSES = ("spark://host:7077", "sc://host:15002", "local[2]")

Batches = Iterator[pa.RecordBatch]


def engine(data: Any, engine: Any, partitions: int | None) -> Spark:
    """Returns the partitions of a Spark frame, or the parts of other data. ``engine`` is a session, its address, or
    "spark" for the active session; ``partitions`` is the number of parts into which data on this machine are cut.
    """
    if type(data).__module__.partition(".")[0] == "pyspark":
        errors.require(hasattr(data, "mapInArrow"), "Spark data", type(data).__name__, "a dataframe")
        session = _running(data.sparkSession)
        if data.isStreaming:
            raise errors.bad_setting("Spark data", "an endless stream", "a batch dataframe")
        return Spark(data, session, partial(_rows_of, data.columns), columns=data.columns)
    session = session_of(engine)
    parts, files = parts_of(data, partitions or LOCAL_PARTITIONS)
    if files is not None:
        file_numbers = session.range(0, len(files), 1, len(files))  # a frame with a partition for each file
        return Spark(file_numbers, session, partial(_files_of, files), len(files), files)
    pickled_parts = [(number, pickle.dumps(part)) for number, part in enumerate(parts)]  # one row of a frame each
    parts_frame = session.createDataFrame(pickled_parts, "id long, rows binary")
    return Spark(parts_frame, session, _parts_of, len(parts))


def session_of(engine: Any) -> Any:
    """Returns the session that ``engine`` is, the one at the address that it is, or the active one if it is "spark"."""
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
                f"engine={errors.listed(map(repr, EXAMPLE_ADDRESSES), 3)}."
            )
        return _running(session)
    _check_reachable(engine)
    builder = SparkSession.builder.appName("banbury")
    builder = builder.remote(engine) if engine.startswith("sc://") else builder.master(engine)
    try:
        return _running(builder.getOrCreate())
    except errors.EngineError:
        raise
    except Exception as error:
        raise errors.EngineError(
            f"cannot get a Spark session at {engine} ({_first_line(error)}). Check that Spark runs there, and "
            f"that the address is one of {errors.listed(map(repr, EXAMPLE_ADDRESSES), 3)}.",
            address=engine,
        ) from error


def _check_reachable(address: str) -> None:
    """Raises EngineError if none of the hosts in an address responds; Spark itself would retry for minutes. An address
    without hosts, such as "local[2]", is not checked.
    """
    protocol, _, hosts = address.partition("://")
    last_error: OSError | ValueError | None = None
    # An address is protocol://host:port,host:port/path;parameters.
    for host_and_port in hosts.partition("/")[0].partition(";")[0].split(",") if hosts else ():
        host, _, port = (
            host_and_port.rpartition(":")
            if ":" in host_and_port.rpartition("]")[2]
            else (host_and_port, "", DEFAULT_PORTS.get(protocol, "0"))
        )
        try:
            with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS):
                return
        except (OSError, ValueError, OverflowError) as connection_error:
            last_error = (
                connection_error if isinstance(connection_error, OSError) else ValueError(f"{port!r} is not a port")
            )
    if last_error is not None:
        raise errors.EngineError(
            f"Spark does not respond at {address} ({last_error}). Check that it runs there, and that the address is one of "
            f"{errors.listed(map(repr, EXAMPLE_ADDRESSES), 3)}.",
            address=address,
        )


def _running(session: Any) -> Any:
    """Returns the session. Raises EngineError if it has been stopped."""
    try:
        if not getattr(session, "is_stopped", False):
            SparkSession.active()
            return session
    except PySparkException as error:
        raise _no_session() from error
    raise _no_session()


def _no_session() -> errors.EngineError:
    """Returns the error of a session that has been stopped."""
    return errors.EngineError(
        "the Spark session is stopped. Start another one with SparkSession.builder.getOrCreate() and read the frame "
        "again with it."
    )


class Spark:
    """Partitions that Spark computes where they are: the engine for ``Partitions``."""

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
        """Stores the frame and how its partitions are read. ``frame`` is the user's, or one with a row for each part.
        ``rows`` turns the Arrow batches of a task into pairs of partition number and rows, on the workers.
        ``n_partitions`` is None if unknown. ``names`` are the file names if parts are files. ``columns`` are the
        columns of the user's frame, empty for other data.
        """
        self.frame = frame
        # Column names with dots, or that occur twice, mean something else to Spark, so they are sent with the work.
        self.renamed_frame = frame.toDF(*(f"column_{position}" for position in range(len(frame.columns))))
        self.session = session
        self.rows_of_batches = rows
        self.n_partitions = n_partitions
        self.names = names
        self.columns = tuple(columns)
        self.are_files = names is not None
        self._stages: Stages = tuple  # a function that returns the tasks of the running job; () while there is none

    def first(self, take: PartWork) -> Steps[Parcel | None]:
        """Yields parcels that ``take`` makes of the first partitions, until there are no more or the consumer stops.
        From a user's frame (``self.columns`` has its columns), Spark itself takes the first rows, so no worker runs the
        work, and there is one parcel, or none without rows. Parcels of files and parts come as cells: one cell is
        fetched, then 8, 64 and so on.
        """
        if self.columns:
            with self._watch_job():
                rows = self.renamed_frame.take(SAMPLE)
                table = self.session.createDataFrame(rows, self.renamed_frame.schema).toArrow() if rows else None
            if table is not None:
                yield take(0, table.rename_columns(self.columns))
            return
        cells_frame = self._map_work(take, LARGE_CELL_BYTES)
        yielded_partitions = set[int]()
        n_cells = 1  # to fetch
        while True:
            with self._watch_job():
                cells = cells_frame.take(n_cells)
            for partition, parcel in parcels_in(map(tuple, cells)):
                if partition not in yielded_partitions:
                    yielded_partitions.add(partition)
                    yield parcel
            if len(cells) < n_cells:
                return
            n_cells *= FAN_IN

    def add_up_parts(self, work: PartWork) -> Steps[tuple[int, Parcel | None]]:
        """Adds the parcels that ``work`` makes of all partitions in a tree on the workers, each of which holds a sum
        and one more parcel. Yields pairs of how many partitions are done and the sum of some partitions, of which at
        most eight come here; the consumer adds these. ``self.names`` are the names of files, None for other parts.
        """
        sums = self._map_work(work)  # a lazy frame of cells: first of the parcels, then of their sums
        n_sums = self.n_partitions  # so far there is one for each; None if unknown
        if self.names is not None:
            groups = list(group_files(self.names, _n_workers(self.session)).values())
            n_sums = len(groups)
            files = partial(_files_of, groups)
            group_numbers = self.session.range(0, n_sums, 1, n_sums)
            sums = group_numbers.mapInArrow(partial(_cells_of, work, files, None), CELL_SCHEMA)
        # Where no more than eight tasks run at a time, no more than eight sums need be made at a time.
        for n_groups in (FAN_IN**2, FAN_IN):
            if (n_sums is not None and n_sums <= n_groups) or n_groups > FAN_IN >= _n_workers(self.session):
                continue
            grouped_cells = sums.repartition(f.col("partition") % n_groups).sortWithinPartitions("partition", "cell")
            sums = grouped_cells.mapInArrow(_add_parcels, CELL_SCHEMA)
        for n_done, (_, parcel) in enumerate(self._fetch_parcels(sums), 1):
            yield self.n_partitions or n_done, parcel

    def answer(self, work: Answer) -> Any:
        """Returns a lazy frame with the columns of the answer that ``work`` computes in addition to its own."""
        errors.require(self.columns, "engine", "Spark", "omitted here; to predict with Spark, pass a Spark dataframe")
        fields = [t.StructField(name, SPARK_TYPE_BY_KIND[kind]) for name, kind in work.columns.items()]
        schema = t.StructType([*self.frame.schema.fields, *fields])  # the frame's own columns come first
        return self.renamed_frame.mapInArrow(partial(_answer_batches, work, self.columns), schema)

    # Jobs

    def _map_work(self, work: PartWork, cell_size: int | None = None) -> Any:
        """Returns the lazy frame of cells, which hold the parcels that the work makes of all partitions. ``cell_size``
        is the size of a cell in bytes, None for the usual one.
        """
        return self.renamed_frame.mapInArrow(partial(_cells_of, work, self.rows_of_batches, cell_size), CELL_SCHEMA)

    def _fetch_parcels(self, cells: Any) -> Steps[tuple[int, Parcel]]:
        """Yields the number of a partition and its parcel, for all in a frame of cells, which Spark computes now."""
        with self._watch_job():
            yield from parcels_in(map(tuple, cells.toLocalIterator() if _is_connect(cells) else cells.collect()))

    @contextmanager
    def _watch_job(self) -> Iterator[None]:
        """Tags the Spark jobs begun meanwhile: if interrupted they are cancelled, and failures are explained.
        ``_stages`` meanwhile returns their tasks.
        """
        tag = f"banbury-{uuid4().hex}"
        _running(self.session).addTag(tag)
        try:
            with _connect_stages(self.session) if _is_connect(self.session) else _stages(self.session) as self._stages:
                yield
        except errors.BanburyError:
            raise
        except BaseException as error:
            with suppress(Exception):
                # Ctrl-C breaks classic Spark's connection to the thread that has the tag. Then all jobs of the session end, as
                # Spark's own handler of Ctrl-C means to have it.
                if not self.session.interruptTag(tag) and isinstance(error, KeyboardInterrupt):
                    self.session.interruptAll()
            if not isinstance(error, Exception):
                raise
            raise _explain_failure(error) from error
        finally:
            self._stages = tuple
            with suppress(Exception):
                self.session.removeTag(tag)

    def progress(self) -> tuple[int, float | None]:
        """Returns how many tasks are done and their share (None if unknown), of the stage with most tasks, in which
        rows are counted. ``_stages`` returns for each stage the number of all tasks and of those done.
        """
        try:
            n_tasks, n_done = max(self._stages(), default=(0, 0))
        except Exception:  # Spark may be gone, which fetching the parcels will report
            return 0, None
        return n_done, n_done / n_tasks if n_tasks else None


Stages = Callable[[], Iterable[tuple[int, int]]]  # for each known stage the number of all tasks and of those done


@contextmanager
def _stages(session: Any) -> Iterator[Stages]:
    """Gives a function that returns the stages of the jobs that classic Spark begins in this session meanwhile: for
    each the number of its tasks and of those done.
    """
    context = session.sparkContext
    job_group = context.getLocalProperty("spark.jobGroup.id")  # None if the user has set none
    tracker = context.statusTracker()
    earlier_jobs = set(tracker.getJobIdsForGroup(job_group))  # ids

    def stages() -> Iterator[tuple[int, int]]:
        """Yields for each stage of the jobs begun since, which are not among ``earlier_jobs`` (ids), the number of its
        tasks and of those done.
        """
        jobs = map(tracker.getJobInfo, set(tracker.getJobIdsForGroup(job_group)) - earlier_jobs)
        stage_ids = {stage_id for job in jobs if job is not None for stage_id in job.stageIds}
        for stage in map(tracker.getStageInfo, stage_ids):
            if stage is not None:
                yield stage.numTasks, stage.numCompletedTasks

    yield stages


@contextmanager
def _connect_stages(session: Any) -> Iterator[Stages]:
    """Gives a function that returns the stages of the jobs that Spark Connect begins in this session meanwhile, as it
    reports them: for each the number of its tasks and of those done.
    """
    last_stages: list[tuple[int, int]] = []

    def hear(stages: Any, **rest: Any) -> None:
        """Notes the stages that Spark Connect reports; if it reports none, the last ones stay."""
        last_stages[:] = [(stage.num_tasks, stage.num_completed_tasks) for stage in stages or ()] or last_stages

    session.registerProgressHandler(hear)
    try:
        yield lambda: list(last_stages)
    finally:
        with suppress(ValueError):  # a user may have cleared them
            session.removeProgressHandler(hear)


def _n_workers(session: Any) -> int:
    """Returns how many tasks run at a time; for Connect, which does not tell, more than eight."""
    return FAN_IN + 1 if _is_connect(session) else max(int(session.sparkContext.defaultParallelism), 1)


def _is_connect(session_or_frame: Any) -> bool:
    """Returns whether a session or frame belongs to Spark Connect."""
    return type(session_or_frame).__module__.startswith("pyspark.sql.connect")


# On workers: the rows of partitions


def _rows_of(names: Sequence[str], batches: Batches) -> Iterator[tuple[int, Any]]:
    """Yields one pair: the number of this task's partition, and its rows as an Arrow stream with the column names
    ``names``, or an empty list. ``batches`` are the rows.
    """
    partition = TaskContext.get().partitionId()
    first_batch = next(batches, None)
    if first_batch is None:
        yield partition, []
        return
    renamed_batches = (batch.rename_columns(names) for batch in _join_small_batches(chain([first_batch], batches)))
    yield partition, pa.RecordBatchReader.from_batches(first_batch.rename_columns(names).schema, renamed_batches)


def _join_small_batches(batches: Batches) -> Batches:
    """Joins consecutive batches into larger ones, since many texts are counted faster at once."""
    pending = list[pa.RecordBatch]()
    size = 0  # bytes of the pending batches
    for batch in batches:
        pending.append(batch)
        size += batch.nbytes
        if size >= BYTES_TOGETHER:
            yield _join_batches(pending)
            pending = []
            size = 0
    if pending:
        yield _join_batches(pending)


def _join_batches(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Returns several Arrow batches as one."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _files_of(files: Sequence[Any], batches: Batches) -> Iterator[tuple[int, Any]]:
    """Yields the number and the file name (or group of files) of each row of the batches, whose first column has an
    index in ``files``.
    """
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield number, files[number]


def _parts_of(batches: Batches) -> Iterator[tuple[int, Any]]:
    """Yields the number and the part of each row of the batches, whose columns are the number and the pickled part."""
    for batch in batches:
        for number, pickled_part in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            yield number, pickle.loads(pickled_part.as_py())


# On workers: parcels. A parcel, or an error instead, is sent as a table of cells.


def _cells_of(work: PartWork, rows: Any, cell_size: int | None, batches: Batches) -> Batches:
    """Does the work on the partitions of this task, and yields the parcels, or errors instead, as cells of
    ``cell_size`` bytes (None: the usual size). ``rows`` is a function that turns the task's batches into pairs of
    partition number and rows.
    """
    for partition, partition_rows in rows(batches):
        try:
            parcel_or_error: Parcel | errors.BanburyError | None = work(partition, partition_rows)
        except errors.BanburyError as error:
            parcel_or_error = error
        if parcel_or_error is not None:
            yield from in_cells(partition, parcel_or_error, cell_size)


def _add_parcels(batches: Batches) -> Batches:
    """Adds the parcels of this task and yields the sum, or the first error, as cells under the number of the first
    partition; nothing without parcels. ``batches`` have a cell in each row, in four columns: partition, cell number,
    number of cells and bytes.
    """
    cells = (cell for batch in batches for cell in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    first_cell = next(cells, None)
    if first_cell is not None:
        try:
            sum_or_error: Any = add_up(parcel for _, parcel in parcels_in(chain([first_cell], cells)))
        except errors.BanburyError as error:
            sum_or_error = error
        yield from in_cells(first_cell[0], sum_or_error)


def _answer_batches(work: Answer, names: Sequence[str], batches: Batches) -> Batches:
    """Yields the rows of this task's partition (``batches``) with the columns of the answer that ``work`` computes,
    batch by batch. ``names`` are the rows' own columns.
    """
    partition = TaskContext.get().partitionId()
    for batch in batches:
        with at_partition(partition):
            answers = _arrow_columns(work, batch.rename_columns(names))  # by name of the column
        yield pa.RecordBatch.from_arrays([*batch.columns, *answers.values()], [*names, *answers])


def _arrow_columns(work: Answer, rows: Any) -> dict[str, pa.Array]:
    """Returns the columns of the answer to these rows as Arrow arrays, by name. ``work`` computes the answer and has
    the kind of each column.
    """
    columns = {}
    for name, values in work(rows).items():
        if (kind := work.columns[name]) == "string":
            values = [None if value is None else str(value) for value in values]
        columns[name] = pa.array(values, ARROW_TYPE_BY_KIND[kind])
    return columns


# What goes wrong


def _first_line(error: BaseException) -> str:
    """Returns the type and the first line of an error, as text."""
    return f"{type(error).__name__}: {(str(error).splitlines() or ['no reason given'])[0]}"


def _explain_failure(error: Exception) -> Exception:
    """Returns a clearer error for a failure of Spark; errors of the user's own frame stay as they are. ``error`` is
    what Spark raised.
    """
    message = str(error)
    if (
        "stopped SparkContext" in message
        or "[SESSION_OR_CONTEXT_NOT_EXISTS]" in message
        or "[NO_ACTIVE_SESSION]" in message
    ):
        return _no_session()
    if install_error := lacking_package("Spark", message, ", in the environment that PYSPARK_PYTHON names there"):
        return install_error
    if "spark.driver.maxResultSize" in message:
        return errors.EngineError(
            f"eight tallies exceed what Spark can return to its driver ({_first_line(error)}). Start the session with a larger "
            "spark.driver.maxResultSize, or count fewer words: features=bb.Text(...)."
        )
    return error
