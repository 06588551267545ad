"""Work on a partition, done where its rows are: taking its first rows, or counting all of them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from banbury import errors
from banbury.engines.engine import FAN_IN
from banbury.engines.parcels import Parcel, add_up
from banbury.families.moments import SAMPLE
from banbury.reading import Batch, Source, read
from banbury.reading.batches import join_batches
from banbury.tally.schema import NO_VALUE, ONE_VALUE, ColumnFacts, FamilyOption, Missing, Schema, Trees
from banbury.tally.table import Table, fractional_among
from banbury.tally.tally import Tally, add_tally, empty_tally, tallies_of_batch

GROUPS_PER_WORKER = 4  # fewest groups of files per worker, so that no worker waits for another's last group


@contextmanager
def at_partition(partition: int, name: str | None = None) -> Iterator[None]:
    """Adds the partition number (and the partition's name, if it has one) to the message of errors raised meanwhile,
    unless they have one already.
    """
    try:
        yield
    except errors.BanburyError as error:
        if hasattr(error, "partition"):
            raise
        location = f"partition {partition:,}" + ("" if name is None else f" ({name})")
        # ``_parts`` has the error's attributes by name.
        located_error = type(error)(f"{location}: {error}", **{**error._parts, "partition": partition})
        raise located_error from None


@contextmanager
def as_local(rows: Any) -> Iterator[Any]:
    """Gives the rows of a partition in a form that the readers accept: a remote file becomes the path of a local copy,
    which is deleted afterwards, and a tuple or an iterator becomes a list. Anything else, including Arrow streams,
    stays as it is.
    """
    if isinstance(rows, str) and "://" in rows:
        with local_copy(rows) as path:
            yield path
    elif isinstance(rows, tuple) or (hasattr(rows, "__next__") and not hasattr(rows, "__arrow_c_stream__")):
        yield list(rows)
    else:
        yield rows


@contextmanager
def local_copy(address: str) -> Iterator[str]:
    """Gives the path of a temporary local copy of the remote file at ``address``, with the same name; it is deleted
    afterwards. Raises BadFile if the file cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="banbury-") as folder:
        path = os.path.join(folder, os.path.basename(address))
        filesystem, remote_path = filesystem_of(address)
        try:
            filesystem.get_file(remote_path, path)
        except OSError as error:
            raise errors.bad_file(address, error.strerror or str(error) or type(error).__name__) from None
        yield path


def filesystem_of(address: str) -> tuple[Any, str]:
    """Returns the fsspec file system of an address such as s3://bucket/rows.parquet, and the path in it. Raises an
    error if fsspec or the library for this protocol is missing.
    """
    protocol = address.partition("://")[0]
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise errors.MissingLibrary(
            f"files of {protocol}:// are read through fsspec, which is not installed. Install it with: pip install fsspec"
        ) from None
    try:
        return url_to_fs(address)  # type: ignore[no-any-return]
    except (ImportError, ValueError) as error:
        raise errors.bad_file(address, f"{error}") from None


def has_no_rows(rows: Any) -> bool:
    """Whether a partition is certainly empty; a file must be read to know."""
    return not isinstance(rows, (str, os.PathLike)) and hasattr(rows, "__len__") and len(rows) == 0


@dataclass(frozen=True)
class Sampled:
    """The first rows of a partition, and the name of their source, its columns of classes and weights, and its reading
    options.
    """

    batch: Batch
    name: str | None
    target: str | None  # a column, if the source itself names it
    weights: str | None  # likewise
    reading: Mapping[str, Any]


@dataclass(frozen=True)
class CountSettings:
    """How the rows of partitions are counted: the settings of ``bb.count``."""

    target: Any
    schema: Schema | None = None
    features: FamilyOption = "auto"
    weights: Any = None
    classes: Any = None
    groups: Any = None  # a column that says which rows belong together; not a feature
    missing: Missing = "skip"
    threads: int = 1
    trees: Trees = "many"  # whether columns of numbers are quantile trees
    reading: Mapping[str, Any] = field(default_factory=dict)
    target_delimiter: str | None = None

    def table(self, rows: Any) -> Table:
        """Returns a table of these rows, read and counted with these settings."""
        settings = dict(vars(self))
        return Table.of(rows, **settings.pop("reading"), **settings)


@dataclass(frozen=True)
class FileGroup:
    """Files by their partition numbers, which one worker counts into a single tally."""

    files: Mapping[int, str]


def group_files(files: Sequence[str], n_workers: int) -> dict[int, FileGroup]:
    """Returns files in groups of at most eight, by the number of the first file, which stands for the group; in a group
    they are by partition number, which is their index in ``files``. There are enough groups to keep ``n_workers`` busy.
    """
    size = max(1, min(FAN_IN, len(files) // (GROUPS_PER_WORKER * n_workers)))  # files in a group
    starts = range(0, len(files), size)  # the number of each group's first file
    return {start: FileGroup(dict(enumerate(files[start : start + size], start))) for start in starts}


def files_in(partition: int, rows: Any) -> Mapping[int, Any]:
    """Returns the rows of a partition, or each file of a ``FileGroup``, by partition number. ``partition`` is the
    number of this partition, which is ignored for a group.
    """
    return rows.files if isinstance(rows, FileGroup) else {partition: rows}


class EachPart:
    """Work that makes a value of each partition. The files of a group are processed one by one, and their values are
    added. Subclasses define ``value_of``.
    """

    def __call__(self, partition: int, rows: Any) -> Parcel | None:
        """Returns the parcel of a partition, or of a group of files; None if there is no value. ``rows`` is a
        ``FileGroup``, or the rows of a partition in any form that ``bb.count`` reads.
        """
        return add_up(self._parcel(number, rows_of_file) for number, rows_of_file in files_in(partition, rows).items())

    def _parcel(self, partition: int, rows: Any) -> Parcel | None:
        """Returns the parcel of one partition, with its number and the value of its rows; None if there is no value.
        Errors name the partition.
        """
        # A file that has no rows raises EmptyData.
        with at_partition(partition), as_local(rows) as local_rows, suppress(errors.EmptyData):
            if not has_no_rows(local_rows) and (value := self.value_of(local_rows)) is not None:
                return Parcel((partition,), value)
        return None

    def value_of(self, rows: Any) -> Any:
        """Returns the value of the rows of a partition, which is added to those of other partitions; None if there is
        none.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class TakeFirst(EachPart):
    """Takes the first ``SAMPLE`` rows of a partition, joined to one batch; None if it is empty."""

    reading: Mapping[str, Any]  # options for reading files
    kinds: Mapping[str, Any] = field(
        default_factory=dict
    )  # column kinds for files, where later rows have shown wider ones

    def value_of(self, rows: Any) -> Sampled | None:
        """Returns the first rows of a partition; None if it has none. ``kinds`` has the kinds of columns, and
        ``reading`` the options, with which files are read.
        """
        batches = list[Batch]()
        n_rows = 0
        source = rows.source if isinstance(rows, Table) else read(rows, kinds=self.kinds or None, **self.reading)
        for batch in source:
            batches.append(batch.slice(0, SAMPLE - n_rows))
            n_rows += batches[-1].n_rows
            if n_rows >= SAMPLE:
                break
        return (
            Sampled(join_batches(batches), source.name, source.target, source.weights, source.reading)
            if n_rows
            else None  # an empty partition
        )


@dataclass(frozen=True)
class CountPlan:
    """The schema and settings for counting, and what a worker must check in its rows.

    A worker checks the columns that were inferred as integers, and those that were left out because they had a single
    value or none.
    """

    settings: CountSettings
    schema: Schema
    are_files: bool  # whether partitions are files
    integer_columns: frozenset[str] = frozenset()  # names
    constant_values: Mapping[str, Any] = field(default_factory=dict)  # the single value of each such column
    columns_without_values: frozenset[str] = frozenset()
    is_inferred: bool = False  # whether the schema was inferred

    def new_facts(self, batch: Batch) -> ColumnFacts:
        """Returns what a batch shows that the first rows did not: fractions in ``integer_columns``, other values in the
        columns of ``constant_values`` (which has the one value of each), or values in ``columns_without_values``. If
        this is not empty, all rows must be counted again.
        """
        if not (self.integer_columns or self.constant_values or self.columns_without_values):
            return ColumnFacts()
        constant_columns = [name for name in self.constant_values if name in batch.names]
        varied_columns = {name for name in constant_columns if self._varies(batch, name, self.constant_values[name])}
        names_and_kinds = [(name, batch.kind(name)) for name in self.columns_without_values if name in batch.names]
        kinds = {name: str(kind) for name, kind in names_and_kinds if kind != "empty"}  # of columns that have values
        return ColumnFacts(frozenset(fractional_among(batch, self.integer_columns)), frozenset(varied_columns), kinds)

    def _varies(self, batch: Batch, name: str, value: Any) -> bool:
        """Returns whether the column ``name`` of a batch contains another value than ``value``, or missing values that
        count as a category.
        """
        codes = batch.codes(name)  # of each row the index of its value, after ``low``
        values_in_use = {
            codes.values[code] for code in set((codes.codes - codes.low).tolist()) if 0 <= code < len(codes.values)
        }
        has_gaps = self.settings.missing == "category" and len(batch.head(name, batch.n_rows)) < batch.n_rows
        return has_gaps or bool(values_in_use - {value})


@dataclass(frozen=True)
class CountedRows:
    """The tally of some rows and their number. If they show that all rows must be counted differently, ``new_facts``
    says so and there is no tally. ``warnings`` are those of workers.
    """

    n_rows: int
    tally: Tally | None  # None also before the first row
    new_facts: ColumnFacts = field(default_factory=ColumnFacts)
    warnings: tuple[str, ...] = ()

    def __add__(self, other: CountedRows) -> CountedRows:
        """Returns the count of these and of the ``other`` rows; without a tally if either shows that counting must
        start again.
        """
        new_facts = self.new_facts | other.new_facts
        warnings = tuple(dict.fromkeys(self.warnings + other.warnings))
        can_add = not new_facts and self.tally is not None and other.tally is not None
        tally = self.tally + other.tally if can_add else None  # type: ignore[operator]
        return CountedRows(self.n_rows + other.n_rows, tally, new_facts, warnings)


@dataclass(frozen=True)
class CountPart:
    """Counts the rows of a partition."""

    plan: CountPlan

    def __call__(self, partition: int, rows: Any) -> Parcel:
        """Returns the count of a partition, or of a group of files into one tally. ``rows`` is a ``FileGroup``, or the
        rows of a partition in any form that ``bb.count`` reads.
        """
        rows_by_partition = files_in(partition, rows)
        counts = CountedRows(n_rows=0, tally=None)  # of the rows so far
        with errors.collect_warnings() as warnings:
            for number, rows_of_file in rows_by_partition.items():
                file_name = rows_of_file if isinstance(rows_of_file, str) else None
                with at_partition(number, file_name), as_local(rows_of_file) as local_rows:
                    counts = self._add_rows(counts, local_rows)
        if counts.new_facts:
            counts = replace(counts, tally=None)
        elif not counts.n_rows:
            counts = replace(counts, tally=empty_tally(self.plan.schema))
        return Parcel(tuple(rows_by_partition), replace(counts, warnings=tuple(warnings)))

    def count_batch(self, schema: Schema, table: Table, batch: Batch) -> Iterator[Tally]:
        """Yields the tallies of a batch under the schema, which the caller adds up. ``table`` says how its rows are
        labelled and weighted.
        """
        return tallies_of_batch(table.align(batch, schema), schema, table.labels)

    def _add_rows(self, counts: CountedRows, rows: Any) -> CountedRows:
        """Returns the counts with the rows of a partition added; or, if a batch shows what the first rows did not, up
        to this batch, with what it shows in ``new_facts``. A text where files had numbers is such a fact, too. ``plan``
        says how rows are counted.
        """
        if has_no_rows(rows):
            return counts
        try:
            table = self.plan.settings.table(rows)  # which reads the rows in batches
            for batch in table.batches("counting"):
                if new_facts := self.plan.new_facts(batch):
                    return replace(counts, new_facts=counts.new_facts | new_facts)
                tally = counts.tally  # of the rows so far; None before the first
                schema = self.plan.schema if tally is None else tally.schema
                for batch_tally in self.count_batch(schema, table, batch):
                    tally = add_tally(tally, batch_tally)
                counts = replace(counts, n_rows=counts.n_rows + batch.n_rows, tally=tally)
        except errors.EmptyData:  # a file that has no rows
            return counts
        except errors.BadValue as error:  # which names the column and the value
            column = getattr(error, "column", None)
            is_text = isinstance(getattr(error, "value", None), str)
            if not (self.plan.is_inferred and self.plan.are_files and is_text and column is not None):
                raise
            return replace(counts, new_facts=counts.new_facts | ColumnFacts(kinds={column: "string"}))
        return counts


def plan_count(
    sample: Sequence[Sampled], new_facts: ColumnFacts, settings: CountSettings, are_files: bool
) -> CountPlan:
    """Returns how rows are counted: the settings, and the schema that they have or that is inferred from the first rows
    (``sample``, from one or more partitions) and from what other rows have shown (``new_facts``). ``are_files`` says
    whether partitions are files.
    """
    batch = join_batches([sampled.batch for sampled in sample])  # all first rows
    first_sampled = sample[0]  # the first rows of the first partition
    source = Source.of([batch], first_sampled.name, target=first_sampled.target, reading=first_sampled.reading)
    weights = first_sampled.weights if settings.weights is None else settings.weights  # the name of a column, or None
    facts = replace(new_facts, whole_numbers=set())  # settling the schema notes in it which columns are whole numbers
    # Of the first rows, which have been read already.
    table = replace(replace(settings, weights=weights, reading={}).table(source), facts=facts)
    table.labels.weights_of(batch)  # a column that is not there is missed here
    if table.labels.name is not None:
        batch.column(table.labels.name)
    schema = table.settle_schema(batch)
    label_target = table.labels.sets_from  # where sets of labels are; None if each row has one class
    # ``left_out`` has the reason for each column that is not counted.
    constant_values = {
        name: next(iter(batch.head(name, n=1)), None) for name, why in schema.left_out.items() if why == ONE_VALUE
    }
    columns_without_values = frozenset(name for name, why in schema.left_out.items() if why == NO_VALUE)
    target = table.labels.name if label_target is None else label_target
    settled: dict[str, Any] = {"schema": schema, "features": "auto", "target": target, "weights": weights}
    settings = replace(settings, groups=None, target_delimiter=None, **settled)
    return CountPlan(
        settings,
        schema,
        are_files,
        frozenset(facts.whole_numbers),
        constant_values,
        columns_without_values,
        table.schema is None,
    )
