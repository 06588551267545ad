"""What is done with the rows of a partition, where they are: the first of them are taken, or all are counted."""

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
from banbury.reading import Batch, read
from banbury.reading.batches import join_batches
from banbury.tally.schema import NO_VALUE, STEADY, ColumnFacts, Features, Missing, Schema, Trees
from banbury.tally.table import Held, Table, fractional_among
from banbury.tally.tally import Tally, of_no_rows, parts, plus

GROUPS_EACH = 4  # groups of files that a worker gets, at least


@contextmanager
def at_partition(partition: int, name: str | None = None) -> Iterator[None]:
    """Errors say which partition they come from."""
    try:
        yield
    except errors.BanburyError as problem:
        if hasattr(problem, "partition"):
            raise
        place = f"partition {partition:,}" + ("" if name is None else f" ({name})")
        located = type(problem)(f"{place}: {problem}", **{**problem._parts, "partition": partition})
        raise located from None


@contextmanager
def here(rows: Any) -> Iterator[Any]:
    """The rows of a partition as the readers take them: of a file elsewhere, such as s3://…, a copy; of an iterator a list.

    A stream of Arrow's is read as it comes."""
    if isinstance(rows, str) and "://" in rows:
        with copy_here(rows) as path:
            yield path
    elif isinstance(rows, tuple) or (hasattr(rows, "__next__") and not hasattr(rows, "__arrow_c_stream__")):
        yield list(rows)
    else:
        yield rows


@contextmanager
def copy_here(address: str) -> Iterator[str]:
    """A file that is not on this machine, in a temporary one whose name ends alike."""
    with tempfile.TemporaryDirectory(prefix="banbury-") as folder:
        path = os.path.join(folder, os.path.basename(address))
        filesystem, inside = filesystem_of(address)
        try:
            filesystem.get_file(inside, path)
        except OSError as problem:
            raise errors.bad_file(address, problem.strerror or str(problem) or type(problem).__name__) from None
        yield path


def filesystem_of(address: str) -> tuple[Any, str]:
    """The file system of an address such as s3://bucket/rows.parquet, and the path there."""
    protocol = address.partition("://")[0]
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise errors.MissingLibrary(
            f"files of {protocol}:// are read through fsspec, which is not installed. Install it with: pip install fsspec"
        ) from None
    try:
        return url_to_fs(address)  # type: ignore[no-any-return]
    except (ImportError, ValueError) as problem:
        raise errors.bad_file(address, f"{problem}") from None


def has_no_rows(rows: Any) -> bool:
    """Whether a partition is empty; of a file only reading tells."""
    return not isinstance(rows, (str, os.PathLike)) and hasattr(rows, "__len__") and len(rows) == 0


@dataclass(frozen=True)
class Sampled:
    """The first rows of a partition, and what they were read from, where that has a name, a target or weights of its own."""

    batch: Batch
    name: str | None
    target: str | None
    weights: str | None
    reading: Mapping[str, Any]


@dataclass(frozen=True)
class CountSettings:
    """How the rows of partitions are counted: the settings of ``bb.count``."""

    target: Any
    schema: Schema | None = None
    features: Features = "auto"
    weights: Any = None
    classes: Any = None
    groups: Any = None  # a column that says which rows belong together, and is no feature
    missing: Missing = "skip"
    threads: int = 1
    trees: Trees = "many"  # whether columns of numbers are quantile trees
    reading: Mapping[str, Any] = field(default_factory=dict)
    target_delimiter: str | None = None

    def table(self, rows: Any) -> Table:
        """These rows as ``bb.count`` reads them."""
        settings = dict(vars(self))
        return Table.of(rows, **settings.pop("reading"), **settings)


@dataclass(frozen=True)
class Several:
    """Files that are counted one after the other, each with its number: their tallies need not be added then."""

    files: Mapping[int, str]


def in_groups(files: Sequence[str], n_workers: int) -> dict[int, Several]:
    """Files in groups of up to eight, by the number of the first; enough groups to keep all workers busy to the end."""
    size = max(1, min(FAN_IN, len(files) // (GROUPS_EACH * n_workers)))
    starts = range(0, len(files), size)
    return {at: Several(dict(enumerate(files[at : at + size], at))) for at in starts}


class EachPart:
    """Work on partitions one by one; of several files, what is made of them is added up."""

    def __call__(self, partition: int, rows: Any) -> Parcel | None:
        files = rows.files if isinstance(rows, Several) else {partition: rows}
        return add_up(self._parcel(number, part) for number, part in files.items())

    def _parcel(self, partition: int, rows: Any) -> Parcel | None:
        with at_partition(partition), here(rows) as part, suppress(errors.EmptyData):  # a file that has no rows
            if not has_no_rows(part) and (value := self.value_of(part)) is not None:
                return Parcel((partition,), value)
        return None

    def value_of(self, rows: Any) -> Any:
        """What is made of the rows of a partition, which can be added to that of others; None: nothing."""
        raise NotImplementedError


@dataclass(frozen=True)
class TakeFirst(EachPart):
    """The first rows of a partition, joined to one batch; None where there is none."""

    reading: Mapping[str, Any]
    kinds: Mapping[str, Any] = field(default_factory=dict)  # of columns of files, where they are known to be others

    def value_of(self, rows: Any) -> Sampled | None:
        first = list[Batch]()
        n_rows = 0
        source = rows.source if isinstance(rows, Table) else read(rows, kinds=self.kinds or None, **self.reading)
        for batch in source:
            first.append(batch.slice(0, SAMPLE - n_rows))
            n_rows += first[-1].n_rows
            if n_rows >= SAMPLE:
                break
        return (
            Sampled(join_batches(first), source.name, source.target, source.weights, source.reading) if n_rows else None
        )


@dataclass(frozen=True)
class Settled:
    """What is counted, and all that a worker must know of it."""

    settings: CountSettings
    schema: Schema
    are_files: bool
    # Of a schema that was inferred: columns taken for whole numbers, and those that had no or one value.
    taken_for_integers: frozenset[str] = frozenset()
    steady: Mapping[str, Any] = field(default_factory=dict)
    empty: frozenset[str] = frozenset()
    inferred: bool = False

    def wider(self, batch: Batch) -> ColumnFacts:
        """What a batch shows that the first rows did not."""
        if not (self.taken_for_integers or self.steady or self.empty):
            return ColumnFacts()
        there = [name for name in self.steady if name in batch.names]
        varied = {name for name in there if self._varies(batch, name, self.steady[name])}
        shown = [(name, batch.kind(name)) for name in self.empty if name in batch.names]
        kinds = {name: str(kind) for name, kind in shown if kind != "empty"}
        return ColumnFacts(frozenset(fractional_among(batch, self.taken_for_integers)), frozenset(varied), kinds)

    def _varies(self, batch: Batch, name: str, value: Any) -> bool:
        codes = batch.codes(name)
        used = {codes.values[c] for c in set((codes.codes - codes.low).tolist()) if 0 <= c < len(codes.values)}
        gaps = self.settings.missing == "category" and len(batch.head(name, batch.n_rows)) < batch.n_rows
        return gaps or bool(used - {value})


@dataclass(frozen=True)
class CountedRows:
    """The tally of rows and how many they are, or what they show that they must be counted with; and warnings of workers."""

    n_rows: int
    tally: Tally | None
    wider: ColumnFacts = field(default_factory=ColumnFacts)
    warnings: tuple[str, ...] = ()

    def __add__(self, other: CountedRows) -> CountedRows:
        wider = self.wider | other.wider
        warnings = tuple(dict.fromkeys(self.warnings + other.warnings))
        both = not wider and self.tally is not None and other.tally is not None
        tally = self.tally + other.tally if both else None  # type: ignore[operator]
        return CountedRows(self.n_rows + other.n_rows, tally, wider, warnings)


@dataclass(frozen=True)
class CountPart:
    """The tally of a partition, or what it shows that all must be counted with."""

    settled: Settled

    def __call__(self, partition: int, rows: Any) -> Parcel:
        """Several files are counted one after the other into one tally."""
        files = rows.files if isinstance(rows, Several) else {partition: rows}
        total: Tally | None = None
        n_rows = 0
        wider = ColumnFacts()
        with errors.collect_warnings() as warnings:
            for number, part in files.items():
                with at_partition(number, part if isinstance(part, str) else None), here(part) as table:
                    total, more, shown = self._count_batches(table, total)
                n_rows = n_rows + more
                wider = wider | shown
        if wider:
            return Parcel(tuple(files), CountedRows(0, None, wider))
        tally = total if total is not None and n_rows else of_no_rows(self.settled.schema)
        return Parcel(tuple(files), CountedRows(n_rows, tally, warnings=tuple(warnings)))

    def count_batch(self, schema: Schema, table: Table, batch: Batch) -> Iterator[Tally]:
        """The tallies of a batch of a partition."""
        return parts(table.align(batch, schema), schema, table.labels)

    def _count_batches(self, rows: Any, total: Tally | None) -> tuple[Tally | None, int, ColumnFacts]:
        """Counts a partition: the sums with its rows, how many they are, and what they show that the first did not."""
        n_rows = 0
        if has_no_rows(rows):
            return total, n_rows, ColumnFacts()
        try:
            table = self.settled.settings.table(rows)
            for batch in table.batches("counting"):
                if wider := self.settled.wider(batch):
                    return total, n_rows, wider
                schema = self.settled.schema if total is None else total.schema
                for part in self.count_batch(schema, table, batch):
                    total = plus(total, part)
                n_rows += batch.n_rows
        except errors.EmptyData:  # a file that has no rows
            return total, n_rows, ColumnFacts()
        except errors.BadValue as unfit:
            column = getattr(unfit, "column", None)
            of_words = isinstance(getattr(unfit, "value", None), str)
            if not (self.settled.inferred and self.settled.are_files and of_words and column is not None):
                raise
            return total, n_rows, ColumnFacts(kinds={column: "string"})
        return total, n_rows, ColumnFacts()


def settle(sample: Sequence[Sampled], wider: ColumnFacts, settings: CountSettings, are_files: bool) -> Settled:
    """What is counted, by the first rows and by what other rows are known to show."""
    batch = join_batches([part.batch for part in sample])
    first = sample[0]
    source = Held((batch,), first.name, first.target, first.reading)
    weights = first.weights if settings.weights is None else settings.weights
    facts = replace(wider, whole_numbers=set())
    table = replace(replace(settings, weights=weights, reading={}).table(source), facts=facts)
    table.labels.weights_of(batch)  # a column that is not there is missed here
    if table.labels.name is not None:
        batch.column(table.labels.name)
    schema = table.settle_schema(batch)
    several = table.labels.several
    steady = {name: batch.first([name])[0] for name, why in schema.left_out.items() if why == STEADY}
    empty = frozenset(name for name, why in schema.left_out.items() if why == NO_VALUE)
    target = table.labels.name if several is None else several
    counted_as: dict[str, Any] = {"schema": schema, "features": "auto", "target": target, "weights": weights}
    settings = replace(settings, groups=None, target_delimiter=None, **counted_as)
    return Settled(settings, schema, are_files, frozenset(facts.whole_numbers), steady, empty, table.schema is None)
