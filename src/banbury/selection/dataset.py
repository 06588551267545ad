"""Dataset: a labelled table whose rows are counted and then scored, in memory or pass by pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.distributions.bag import missing_texts
from banbury.distributions.keys import dense_numbers
from banbury.label_sets import LabelTarget, are_sets
from banbury.progress import watched
from banbury.readers import Batch, Codes, Source
from banbury.readers.tables import library
from banbury.schema import Schema
from banbury.sums import in_order, some
from banbury.table import Labels, Table, doubt, label_target, numbered, opened, refuse_continuous, wants_folders
from banbury.tally import Growing, Label, Tally, counted_weights, parts

PIECE = 1 << 13  # rows that are copied at a time: a processor's cache holds them until they are scored


@dataclass(frozen=True, eq=False)
class Dataset:
    """The rows of a table under one schema, in batches; of each the number of its class, −1 where it has none, and its weight."""

    schema: Schema
    batches: tuple[Batch, ...]
    classes: tuple[Label, ...]
    labels: NDArray[np.int32]
    weights: NDArray[np.float64] | None
    threads: int
    name: str | None = None
    groups: Any = None  # what a splitter keeps together: one for each row
    skipped: int = 0  # rows without a label; those of classes that weigh nothing have one
    reread: Reread | None = None  # in the place of batches, where they are not held
    dealt: NDArray[np.int32] | None = None  # the fold of each row, where rows were dealt by what they hold
    others: Tally | None = None  # of rows that are not here: those here are a sample, and models count all

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @property
    def n_unlabelled(self) -> int:
        """How many rows have no class."""
        return int(np.count_nonzero(self.labels < 0))

    @property
    def held(self) -> bool:
        """Whether the rows are in memory; otherwise they are read for each pass."""
        return self.reread is None

    @cached_property
    def starts(self) -> Int:
        """The number of each batch's first row, and of all rows."""
        sizes = [batch.n_rows for batch in self.batches] if self.reread is None else self.reread.sizes
        return np.cumsum([0, *sizes], dtype=np.int64)

    def each(self, doing: str) -> Iterator[Batch]:
        """The batches of one pass, which may be told of."""
        return iter(watched(self.batches, doing, self.name) if self.reread is None else self.reread.each(doing))

    def count(self, groups: NDArray[np.int32], n_groups: int, schema: Schema | None = None) -> Tally:
        """The tally whose class ``class * n_groups + group`` has the rows of one class and group; group −1 is not counted."""
        n_classes, codes = len(self.classes), self.labels * np.int32(n_groups) + groups
        if int(self.labels.min(initial=0)) < 0 or int(groups.min(initial=0)) < 0:
            codes[(self.labels < 0) | (groups < 0)] = -1
        numbers = Codes(codes, 0, list(range(n_groups * n_classes)))
        labels = Labels(None, None, numbers, None, self.weights, None, self.threads)
        growing = Growing(self.schema if schema is None else schema)
        try:
            for batch in self.each("counting"):
                for part in parts(batch, growing.schema, labels):
                    growing = growing + part
        except errors.TooManyCells as many:
            column = getattr(many, "column", "")
            text = f"column {column!r} has too many values for {n_groups:,} folds × {n_classes:,} classes: there is a number for "
            raise errors.BadSetting(f"{text}each of them. Give fewer folds.", column=column) from None
        return growing.frozen()

    @cached_property
    def any_idle(self) -> bool:
        """Whether some rows weigh nothing: they are scored, and not counted."""
        return self.weights is not None and not bool(self.weights.all())

    def row_name(self, row: int) -> str | None:
        """The file that a row came from, where each came from one."""
        number = int(np.searchsorted(self.starts, row, side="right")) - 1
        names = self.batches[number].row_names
        return None if names is None else names[row - int(self.starts[number])]

    def take(self, rows: Int) -> Iterator[Batch]:
        """Rows by their numbers, which ascend: the part that each batch has, in order."""
        ends = np.searchsorted(rows, self.starts)
        for batch, start, a, b in zip(self.batches, self.starts, ends, ends[1:], strict=False):
            if b - a == batch.n_rows:
                yield batch
                continue
            for first in range(a, b, PIECE):
                part = batch.take(rows[first : min(first + PIECE, b)] - start)
                part.threads = 1
                yield part

    def only(self, rows: Int) -> Dataset:
        """Some rows, in the order of their numbers."""
        batches, first = [], 0
        for batch in self.take(rows):
            part = copy(batch)  # labels and weights are found by the number of a batch's first row
            part.first_row = first
            batches.append(part)
            first += part.n_rows
        weights = None if self.weights is None else self.weights[rows]
        groups = None if self.groups is None else np.asarray(self.groups)[rows]
        dealt = None if self.dealt is None else self.dealt[rows]
        changed = replace(self, weights=weights, groups=groups, dealt=dealt)
        return replace(changed, batches=tuple(batches), labels=self.labels[rows])

    def encoded(self, tables: Mapping[str, _core.Words]) -> Dataset:
        """The same rows, with the words of these columns of text looked up in tables."""
        if not tables:
            return self
        batches = []
        for batch in self.batches:
            columns: dict[str, Encoded] = {}
            for name, table in tables.items():
                feature = self.schema[name]
                family: Any = feature.family
                texts = family.kernel_input(batch, feature)
                bags = table.bags(family.tokeniser, texts, self.threads)
                columns[name] = Encoded(*bags, missing_texts(texts, batch.n_rows))
            batches.append(batch.with_columns(columns))
        return replace(self, batches=tuple(batches))


class Encoded:
    """A column of texts whose words were looked up: offsets, ids, how often each occurs, and which texts are missing."""

    categorical = False
    text = True

    def __init__(
        self, offsets: Int, ids: NDArray[np.int32], times: NDArray[np.int32], missing: NDArray[np.bool_]
    ) -> None:
        self.offsets, self.ids, self.times, self.missing = offsets, ids, times, missing

    def __len__(self) -> int:
        return len(self.missing)

    def texts(self) -> Any:
        return self.offsets, (self.ids, self.times), self.missing

    def take(self, rows: Int) -> Encoded:
        sizes = (self.offsets[1:] - self.offsets[:-1])[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        at = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], sizes)
        return Encoded(offsets, self.ids[at], self.times[at], self.missing[rows])


@dataclass(frozen=True, eq=False)
class Reread:
    """Batches that are not held but read again for each pass, with so many rows each."""

    table: Table
    schema: Schema
    sizes: Sequence[int]

    def each(self, doing: str) -> Iterator[Batch]:
        """The batches of one pass; raises if there are other rows than before."""
        sizes, rows = iter(self.sizes), f"the rows{errors.where(self.table.name)}"
        text = f"{rows} were not the same when they were read again. Hold them in memory, or validate a copy that"
        changed = errors.BanburyError(f"{text} nobody writes to.")
        for batch in self.table.batches(doing):
            if batch.n_rows != next(sizes, None):
                raise changed
            yield _fitting(self.table, batch, self.schema)
        if next(sizes, None) is not None:
            raise changed


def held(data: Any, target: Any, dealing: Any = None, **settings: Any) -> Dataset:
    """Reads a labelled table into memory; what it is counted as is inferred from the first batch, as ``bb.count`` does.

    The settings are those of ``Table.of``. Families that are still to be chosen are inferred. ``dealing`` deals rows to folds by
    what they hold.
    """
    return data if isinstance(data, Dataset) else _labelled(_table(data, target, **settings), True, dealing)


def streamed(data: Any, target: Any, dealing: Any = None, **settings: Any) -> Dataset:
    """The same rows, not held but read anew for each pass; of each the class, weight and group are known after the first."""
    return _labelled(_table(data, target, **settings).again(), False, dealing)


class Deals(Protocol):
    """What deals rows to folds by what they hold."""

    def folds(self, batch: Batch, schema: Schema) -> NDArray[np.int32]: ...


def _table(data: Any, target: Any, *, features: Any = "auto", weights: Any = None, **settings: Any) -> Table:
    errors.require(np.ndim(weights) <= 1, "weights", "a matrix", "one number per row")
    return Table.of(data, target, features="auto" if chooses(features) else features, weights=weights, **settings)


def chooses(features: Any) -> bool:
    """Whether families are to be chosen by what they say of rows that are held out."""
    return isinstance(features, str) and features == "choose"


def several(alpha: Any) -> bool:
    """Whether a setting is to be chosen: from those given, or "auto"."""
    return isinstance(alpha, Iterable) and not (isinstance(alpha, np.ndarray) and alpha.ndim == 0)


def _labelled(table: Table, hold: bool, dealing: Deals | None = None) -> Dataset:
    """The rows of a table, of each the number of its class among all classes, its weight and its group."""
    batches, sizes, schemas = list[Batch](), list[int](), list[Schema]()
    marks: list[tuple[NDArray[np.int32], Sequence[Label], Real | None]] = []
    groups: list[tuple[NDArray[np.int32], Sequence[Label]]] = []
    folds = list[NDArray[np.int32]]()

    def anew() -> None:
        for collected in (batches, sizes, schemas, marks, groups, folds):
            collected.clear()

    for batch in table.batches("reading", anew, quietly=hold):
        if not schemas:
            schemas.append(table.settled(batch))
        marks.append(numbered(batch, schemas[0], table.labels))
        refuse_continuous(marks[-1][1], batch.n_rows)
        sizes.append(batch.n_rows)
        if dealing is not None:
            folds.append(dealing.folds(table.aligned(batch, schemas[0]), schemas[0]))
        elif table.labels.group_name is not None:
            groups.append(dense_numbers(batch.codes(table.labels.group_name), table.labels.threads))
        if hold:
            batches.append(_encoded(_fitting(table, batch, schemas[0]), schemas[0]))
    numbers = used = [(names, numbers) for numbers, names, _ in marks]
    weights = None
    if marks[0][2] is not None:
        weights = counted_weights(np.concatenate([w for _, _, w in marks if w is not None]))
        each_weight = np.split(weights, np.cumsum(sizes)[:-1])
        used = [(names, np.where(w > 0, own, -1)) for (names, own), w in zip(numbers, each_weight, strict=True)]
    classes: Any = in_order(set[Label]().union(*(used_names(*each) for each in used)))
    if not classes and any(bool((each >= 0).any()) for _, each in numbers):
        raise errors.empty_data(table.name, "every row has a weight of zero or a missing label")
    if not classes:
        raise errors.no_target(sum(sizes), table.labels.name)
    doubt(classes)
    kept_together = table.labels.groups
    if table.labels.group_name is not None and dealing is None:
        every: Any = in_order(set[Label]().union(*(used_names(names, codes) for codes, names in groups)))
        kept_together = renumbered([(own, codes) for codes, own in groups], every)
    skipped = sum(int(np.count_nonzero(each < 0)) for _, each in numbers)
    reread, dealt = None if hold else Reread(table, schemas[0], sizes), np.concatenate(folds) if folds else None
    known = table.labels.threads, table.name, kept_together, skipped, reread, dealt
    return Dataset(schemas[0], tuple(batches), classes, renumbered(numbers, classes), weights, *known)


def _fitting(table: Table, batch: Batch, schema: Schema) -> Batch:
    """The columns of the schema alone."""
    fits = table.aligned(batch, schema)
    for name in [name for name in fits.names if name not in schema.columns]:
        fits = fits.without(name)
    return fits


def _encoded(batch: Batch, schema: Schema) -> Batch:
    """The batch with its words as codes: they are asked for many times."""
    values = (name for f in schema.features if f.counter.reads(f) != "text" for name in f.inputs)
    names = [name for name in values if batch.kind(name) == "string"]
    return batch.coded(names) if names else batch


def used_names(names: Sequence[Label], codes: NDArray[np.int32]) -> set[Label]:
    """The names that occur."""
    return {names[c] for c in np.flatnonzero(some(_core.count_classes(codes, len(names), None, 1))).tolist()}


def renumbered(parts: Sequence[tuple[Sequence[Label], NDArray[np.int32]]], names: Sequence[Label]) -> NDArray[np.int32]:
    """Numbers of batches, each with its own names, over all names; −1 for those that are not among them."""
    if all(list(own) == list(names) for own, _ in parts):
        return parts[0][1] if len(parts) == 1 else np.concatenate([codes for _, codes in parts])
    place = {name: c for c, name in enumerate(names)}
    lookups = [np.array([*(place.get(name, -1) for name in own), -1], dtype=np.int32) for own, _ in parts]
    return np.concatenate([lookup[codes] for lookup, (_, codes) in zip(lookups, parts, strict=True)])


def peeked(data: Any, schema: Schema | None, reading: Mapping[str, Any]) -> Any:
    """What may give its rows but once, as a source whose first rows can be looked at; other data as they are."""
    streams = hasattr(data, "__arrow_c_stream__") and library(data) not in ("pandas", "polars", "pyarrow")
    if not streams and not hasattr(data, "__next__"):
        return data
    return opened(data, schema, {name: value for name, value in reading.items() if name != "target_delimiter"}).peeked()


def has_sets(data: Any, target: Any, reading: Mapping[str, Any]) -> bool:
    """Whether the target is one of sets of labels."""
    if reading.get("target_delimiter") is not None or isinstance(target, LabelTarget) or are_sets(target):
        return True
    named = isinstance(target, str) or (isinstance(target, (list, tuple)) and all(type(name) is str for name in target))
    once = not (data.again or data.peekable) if isinstance(data, Source) else hasattr(data, "__next__")
    if not named or once or isinstance(data, (Dataset, Table)):
        return False
    source = opened(data, None, {name: value for name, value in reading.items() if name != "target_delimiter"})
    return wants_folders(source, target) or isinstance(label_target(source, target, None), LabelTarget)
