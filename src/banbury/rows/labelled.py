"""Labelled rows, in memory or read again for each pass: they are dealt to folds, counted fold by fold, and scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, singledispatch
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int
from banbury.families.bags.text_parameters import missing_texts
from banbury.progress import watch
from banbury.reading import Batch, Codes
from banbury.rows.folds import Dealing, Round, rounds, training_rows
from banbury.rows.groups import Groups
from banbury.rows.sampling import MOST_ROWS, RowSample
from banbury.sums import in_order
from banbury.tally.label_sets import EVERY, LabelSets
from banbury.tally.schema import ColumnFacts, Schema, infer
from banbury.tally.table import (
    Held,
    LabelledBatch,
    Labels,
    Table,
    doubt,
    fractional_among,
    open_table,
    row_hashes,
)
from banbury.tally.tally import Label, Tally, count_sets, of_no_rows, parts, plus, round_weights

CountBatch = Callable[[Batch, int, Schema], Iterator[Tally]]  # a batch, the number of its first row, and the schema
PIECE = 1 << 13  # rows that are copied at a time: a processor's cache holds them until they are scored


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The rows of a table under one schema, with the class number (−1 for none) and the weight of each.

    With ``sets`` of labels, every row with a target has the class ``EVERY``, and its labels are further classes.
    ``table`` says how rows are counted if the first batch settles the schema. ``fold`` is the fold of each row, if rows
    are assigned by content.
    """

    schema: Schema
    classes: tuple[Label, ...]
    labels: NDArray[np.int32]
    weights: NDArray[np.float64] | None
    threads: int
    name: str | None = None
    groups: Any = None  # what a splitter keeps together: one for each row
    skipped: int = 0  # rows without a label; those of classes that weigh nothing have one
    table: Table | None = None
    fold: NDArray[np.int32] | None = None
    tally_of_rest: Tally | None = None  # of rows that are not here: those here are a sample, and models count all
    sets: LabelSets | None = None  # the labels of each row, where it may have several
    _counted: dict[str, Any] = field(default_factory=dict, init=False)  # what was counted last

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @property
    def has_sets(self) -> bool:
        """Whether rows have sets of labels instead of one class each."""
        return self.sets is not None

    @cached_property
    def counts(self) -> NDArray[np.bool_]:
        """Which rows have a class and a positive weight."""
        labelled = self.labels >= 0
        return labelled if self.weights is None else labelled & (self.weights > 0)

    @cached_property
    def names(self) -> tuple[Label, ...]:
        """The classes or labels that models distinguish."""
        return self.classes if self.sets is None else tuple(name for name in self.classes if name != EVERY)

    @property
    def n_labelled(self) -> int:
        return int(np.count_nonzero(self.labels >= 0))

    @property
    def sizes(self) -> Sequence[int]:
        """The number of rows in each batch."""
        raise NotImplementedError

    @cached_property
    def starts(self) -> Int:
        """The number of the first row of each batch, and the total number of rows."""
        return np.cumsum([0, *self.sizes], dtype=np.int64)

    def each(self, doing: str) -> Iterator[Batch]:
        """Yields the batches in one pass."""
        raise NotImplementedError

    def deal(self, folds: Any, seed: int) -> list[Round]:
        """Returns the splits for ``folds``, round by round. Rows that were assigned by content keep their folds.

        Rows with sets of labels are assigned by content, because no label partitions the rows.
        """
        by_content = self.sets is not None and isinstance(folds, (int, np.integer))
        hashes = self.hashes if by_content and self.fold is None else None
        return rounds(folds, self.labels, seed, self.groups, self.tally_of_rest is not None, self.fold, hashes)

    def round_of(self, fold: NDArray[Any]) -> Round:
        """Returns the round in which each row is tested with its fold."""
        (splits,) = rounds(None, self.labels, 0, None, self.tally_of_rest is not None, fold)
        return splits

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """Returns a hash of the content of each row; identical rows have the same."""
        return np.concatenate([row_hashes(batch, self.schema) for batch in self.each("reading")])

    def count(self, groups: NDArray[np.int32], n_groups: int) -> Groups:
        """Counts the rows of each group separately, in one pass. Group −1 is not counted."""
        counted = self._count(groups, n_groups, self.schema)
        return Groups(counted, self.classes, n_groups, self.threads, self.schema.labels)

    def count_round(self, splits: Round) -> Groups:
        """Counts the groups of a round separately, and caches those of the last round."""
        if self._counted.get("splits") is not splits:
            self._counted.clear()
            self._counted.update(splits=splits, groups=self.count(splits.groups, splits.n_groups))
        return cast(Groups, self._counted["groups"])

    @property
    def tally(self) -> Tally:
        """The tally of all rows that count."""
        groups = self._counted.get("groups")
        if groups is None:
            groups = self.count(np.where(self.labels >= 0, 0, -1).astype(np.int32), 1)
        return replace(groups.total, skipped=self.skipped)

    def _count(self, groups: NDArray[np.int32], n_groups: int, schema: Schema) -> Tally:
        """The tally whose class ``class * n_groups + group`` has the rows of one class and group."""
        count_batch = self._counter(groups, n_groups) if self.sets is None else self._set_counter(groups, n_groups)
        total: Tally | None = None
        schema = replace(schema, labels=None)
        try:
            for batch, start in zip(self.each("counting"), self.starts.tolist(), strict=False):
                for part in count_batch(batch, start, schema):
                    total = plus(total, part)
                    schema = total.schema
        except errors.TooManyCells as many:
            column = getattr(many, "column", "")
            of_classes = f"{n_groups:,} folds × {len(self.classes):,} classes"
            text = f"column {column!r} has too many values for {of_classes}, because there is a number for "
            raise errors.BadSetting(f"{text}each of them. Use fewer folds.", column=column) from None
        counted = of_no_rows(schema) if total is None else total
        if self.tally_of_rest is None:
            return counted
        # The rows that are not here belong to the last group.
        names = tuple(self.classes.index(name) * n_groups + n_groups - 1 for name in self.tally_of_rest.classes)
        rest = replace(self.tally_of_rest, schema=replace(self.tally_of_rest.schema, labels=None))
        return counted + rest.of_classes(range(len(names)), names)

    def _counter(self, groups: NDArray[np.int32], n_groups: int) -> CountBatch:
        """What counts the rows of a batch, each for its class and group."""
        codes = self.labels * np.int32(n_groups) + groups
        if int(self.labels.min(initial=0)) < 0 or int(groups.min(initial=0)) < 0:
            codes[(self.labels < 0) | (groups < 0)] = -1
        numbers = Codes(codes, 0, list(range(n_groups * len(self.classes))))
        labels = Labels(None, None, numbers, None, self.weights, None, self.threads)
        return lambda batch, start, schema: parts(batch, schema, labels)

    def _set_counter(self, groups: NDArray[np.int32], n_groups: int) -> CountBatch:
        """What counts the rows of a batch, each for all rows, for each of its labels, and for its group."""
        assert self.sets is not None
        sets = self.sets
        place = {name: c * n_groups for c, name in enumerate(self.classes)}
        first_numbers = np.array([place.get(name, -1) for name in (EVERY, *sets.names)], dtype=np.int64)
        counted = (self.labels >= 0) & (groups >= 0)

        def count_batch(batch: Batch, start: int, schema: Schema) -> Iterator[Tally]:
            rows = start + np.flatnonzero(counted[start : start + batch.n_rows])
            if len(rows):
                some = batch if len(rows) == batch.n_rows else batch.take(rows - start)
                weights = None if self.weights is None else self.weights[rows]
                by_group = groups[rows], first_numbers
                yield count_sets(some, schema, sets.take(rows), weights, self.threads, by_group)

        return count_batch

    def count_only(self, rows: Int, schema: Schema) -> Tally:
        """Returns the tally of some rows."""
        chosen = np.full(self.n_rows, -1, dtype=np.int32)
        chosen[rows] = 0
        counted = replace(self, tally_of_rest=None)._count(chosen, 1, schema)
        return Groups(counted, self.classes, 1, label_target=self.schema.labels).total

    @cached_property
    def any_idle(self) -> bool:
        """Whether some rows have weight zero: they are scored but not counted."""
        return self.weights is not None and not bool(self.weights.all())

    def under(self, counting: Mapping[str, Any]) -> Self:
        """Returns the same rows and folds as another recipe counts them, without reading them again.

        ``counting`` has settings of ``bb.count``, such as ``missing``, that replace the original ones.
        """
        if self.table is None or not counting:
            return self
        table = replace(self.table, **counting)
        return replace(self, schema=self._settle(table), table=table)

    def with_schema(self, schema: Schema) -> Self:
        """Returns the same rows and folds under another schema."""
        return replace(self, schema=schema)

    def _settle(self, table: Table) -> Schema:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class MemoryRows(LabelledRows):
    """Rows in memory, in batches."""

    batches: tuple[Batch, ...] = ()

    @property
    def sizes(self) -> Sequence[int]:
        return [batch.n_rows for batch in self.batches]

    def each(self, doing: str) -> Iterator[Batch]:
        return iter(watch(self.batches, doing, self.name))

    def _settle(self, table: Table) -> Schema:
        """What the first batch settles; again where a later batch has fractions in a column that was taken for whole numbers."""
        if table.schema is not None:
            return table.schema
        first, *rest = self.batches
        fractional = table.facts.fractional
        while True:
            facts = ColumnFacts(fractional)
            schema = infer(first, {}, None, table.chosen, table.missing, trees=table.trees, facts=facts)
            shown = frozenset(name for batch in rest for name in fractional_among(batch, facts.whole_numbers))
            if not shown:
                kept = ("target", "target_kind", "labels", "reading")
                return replace(schema, **{name: getattr(self.schema, name) for name in kept})
            fractional |= shown

    def row_name(self, row: int) -> str | None:
        """Returns the file that a row was read from, if each row has its own."""
        number = int(np.searchsorted(self.starts, row, side="right")) - 1
        names = self.batches[number].row_names
        return None if names is None else names[row - int(self.starts[number])]

    def take(self, rows: Int) -> Iterator[Batch]:
        """Yields the part of each batch with these rows, whose numbers are in ascending order."""
        ends = np.searchsorted(rows, self.starts)
        for batch, start, a, b in zip(self.batches, self.starts, ends, ends[1:], strict=False):
            if b - a == batch.n_rows:
                yield batch
                continue
            for first in range(a, b, PIECE):
                yield batch.take(rows[first : min(first + PIECE, b)] - start)

    def only(self, rows: Int) -> MemoryRows:
        """Returns some rows, in the order of their numbers."""
        batches = []
        first = 0
        for batch in self.take(rows):
            part = copy(batch)  # labels and weights are found by the number of a batch's first row
            part.first_row = first
            batches.append(part)
            first += part.n_rows
        weights = None if self.weights is None else self.weights[rows]
        groups = None if self.groups is None else np.asarray(self.groups)[rows]
        fold = None if self.fold is None else self.fold[rows]
        sets = None if self.sets is None else self.sets.take(rows)
        chosen: dict[str, Any] = {"labels": self.labels[rows], "weights": weights, "groups": groups, "fold": fold}
        return replace(self, batches=tuple(batches), sets=sets, **chosen)

    def training_rows(self, splits: Round, number: int) -> MemoryRows:
        """Returns the rows that a split learns from."""
        return self.only(training_rows(splits.splits[number], splits))

    def as_table(self, schema: Schema) -> Table:
        """Returns the rows as a table under a schema."""
        codes = Codes(self.labels, 0, list(self.classes))
        labels = Labels(None, None, codes, None, self.weights, None, self.threads, groups=self.groups)
        return Table(Held(self.batches, self.name), labels, schema)

    def with_word_ids(self, tables: Mapping[str, _core.Words]) -> MemoryRows:
        """Returns the same rows with the words of these text columns looked up in tables."""
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

    def sample(self, n: int | None = None) -> MemoryRows:
        """Returns all rows, because they are already in memory."""
        errors.require(n is None, "sample", n, "omitted when rows are in memory")
        return self

    def among(self, tally: Tally) -> MemoryRows:
        """Returns the same rows as a sample of those that a tally counted, so that models also count all others."""
        labels = renumber([(self.classes, self.labels)], tally.classes)
        rows = replace(self, classes=tally.classes, labels=labels, skipped=0)
        return replace(
            rows, tally_of_rest=replace(tally, skipped=0, parts=frozenset()) - rows.tally, skipped=tally.skipped
        )


@dataclass(frozen=True, eq=False)
class StreamedRows(LabelledRows):
    """Rows that are read again in each pass, with one batch at a time in memory."""

    batch_sizes: tuple[int, ...] = ()

    @property
    def sizes(self) -> Sequence[int]:
        return self.batch_sizes

    def each(self, doing: str) -> Iterator[Batch]:
        """Yields the batches in one pass. Raises an error if the rows are not the same as before."""
        assert self.table is not None
        sizes = iter(self.batch_sizes)
        rows = f"the rows{errors.where(self.name)}"
        text = f"{rows} had changed when they were read again. Keep them in memory, or validate a copy that"
        changed = errors.BanburyError(f"{text} no one writes to.")
        for batch in self.table.batches(doing):
            if batch.n_rows != next(sizes, None):
                raise changed
            yield self.table.features_of(batch, self.schema)
        if next(sizes, None) is not None:
            raise changed

    def _settle(self, table: Table) -> Schema:
        schemas = list[Schema]()
        for batch in table.batches("reading", schemas.clear, quietly=True):
            if not schemas:
                schemas.append(table.settle_schema(batch))
        return schemas[0]

    def sample(self, n: int | None = None) -> MemoryRows:
        """Returns at most ``n`` distinct rows, selected by content, with every class. Models also count all other rows.

        If there are no more than ``n`` rows, it returns all of them in their order, so that they get the same folds.
        """
        assert self.table is not None
        n = MOST_ROWS if n is None else n
        if self.n_rows <= n:
            return replace(read_into_memory(self.table), schema=self.schema, fold=self.fold)
        sample = RowSample.of(self.table, self.schema, n, also=self.schema.columns)
        return rows_of_sample(sample, self.tally, self.threads)


def rows_of_sample(sample: RowSample, tally: Tally, threads: int, dealing: Dealing | None = None) -> MemoryRows:
    """Returns a sample of the rows that a tally counted, in memory, together with the tally of all other rows."""
    sample.check_subtractable()
    rows = read_into_memory(sample.table(tally.schema, threads), dealing)
    return rows if sample.is_whole else rows.among(tally)


class Encoded:
    """A text column whose words were looked up: offsets, word ids, how often each occurs, and which texts are missing."""

    categorical = False
    text = True

    def __init__(
        self, offsets: Int, ids: NDArray[np.int32], times: NDArray[np.int32], missing: NDArray[np.bool_]
    ) -> None:
        self.offsets = offsets
        self.ids = ids
        self.times = times
        self.missing = missing

    def __len__(self) -> int:
        return len(self.missing)

    def texts(self) -> Any:
        return _core.EncodedTexts(self.offsets, self.ids, self.times, self.missing)

    def take(self, rows: Int) -> Encoded:
        sizes = (self.offsets[1:] - self.offsets[:-1])[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        at = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], sizes)
        return Encoded(offsets, self.ids[at], self.times[at], self.missing[rows])


def load_rows(data: Any, target: Any, **settings: Any) -> MemoryRows:
    """Reads a labelled table into memory. The settings are those of ``Table.of``."""
    table = open_table_with_labels(data, target, **settings)
    if table.has_sets:
        refuse_for_sets(settings.get("features"), groups=settings.get("groups"))
    return read_into_memory(table)


@singledispatch
def open_rows(table: Any, folds: Any, seed: int, id: Any = None, deal: Any = "stratified") -> Any:
    """Opens the labelled rows of a table, which are assigned to folds by the column ``id``, by content, or by position."""
    return read_into_memory(table, Dealing.of_settings(folds, seed, id, deal))


def read_into_memory(table: Table, dealing: Dealing | None = None) -> MemoryRows:
    """Reads the rows of a table into memory. The first batch settles the schema, as in ``bb.count``."""
    fields, parts = _read_labels(table, dealing, keeps=True)
    return MemoryRows(**fields, batches=tuple(part.batch for part in parts))


def stream_rows(data: Any, target: Any, dealing: Dealing | None = None, **settings: Any) -> StreamedRows:
    """Opens rows that are read again in each pass. The class, weight and group of each row are read once and kept."""
    table = open_table_with_labels(data, target, **settings).again()
    fields, parts = _read_labels(table, dealing, keeps=False)
    return StreamedRows(**fields, batch_sizes=tuple(len(part.numbers) for part in parts))


def open_table_with_labels(
    data: Any, target: Any, *, features: Any = "auto", weights: Any = None, takes_sets: bool = True, **settings: Any
) -> Any:
    """Opens a table of rows with a class or labels. Families that are still to be chosen are inferred first."""
    errors.require(np.asarray(weights).ndim <= 1, "weights", "a matrix", "one number per row")
    families = "auto" if chooses(features) else features
    table = open_table(data, target, features=families, weights=weights, **settings)
    if not takes_sets and table.has_sets:
        table.labels.check_one_class()
    return table


def chooses(features: Any) -> bool:
    """Whether families are to be chosen on held-out rows."""
    return isinstance(features, str) and features == "choose"


def refuse_for_sets(features: Any, **settings: Any) -> None:
    """Raises an error for settings that do not apply to sets of labels."""
    for name, value in {**settings, "features": features if chooses(features) else None}.items():
        errors.require(value is None, name, value, "omitted for multi-label data")


def several(alpha: Any) -> bool:
    """Whether a setting is to be chosen: several values, or "auto"."""
    return isinstance(alpha, Iterable) and not (isinstance(alpha, np.ndarray) and alpha.ndim == 0)


def _read_labels(table: Table, dealing: Dealing | None, keeps: bool) -> tuple[dict[str, Any], list[LabelledBatch]]:
    """What ``LabelledRows`` knows of the rows of a table, after one pass; and the batches, of which ``keeps`` keeps the rows."""
    parts = list[LabelledBatch]()
    for part in table.batches_with_labels(parts.clear, keeps, dealing):
        parts.append(part if keeps else replace(part, batch=part.batch.slice(0, 0)))
    sizes = [len(part.numbers) for part in parts]
    numbers = used = [(part.names, part.numbers) for part in parts]
    weights = None
    if parts[0].weights is not None:
        weights = round_weights(np.concatenate([part.weights for part in parts if part.weights is not None]))
        each_weight = np.split(weights, np.cumsum(sizes)[:-1])
        used = [
            (names, np.where(w > 0, part_codes, -1))
            for (names, part_codes), w in zip(numbers, each_weight, strict=True)
        ]
    occurring = set[Label]().union(*(occurring_names(*part) for part in used))
    every_set = None
    if table.has_sets:
        every_set = LabelSets.of_batches([part.sets for part in parts if part.sets is not None])
        numbers = used
        occurring |= every_set.names_in_use(np.concatenate([part_codes >= 0 for _, part_codes in used]))
    classes: Any = in_order(occurring)
    groups = [(part.groups[1], part.groups[0]) for part in parts if part.groups is not None]
    group_names: Any = in_order(set[Label]().union(*(occurring_names(*part) for part in groups)))
    skipped = sum(int(np.count_nonzero(part.numbers < 0)) for part in parts)
    if not classes and skipped < sum(sizes):
        raise errors.empty_data(table.name, "every row has a missing label or a weight of zero")
    if not classes:
        raise errors.no_target(sum(sizes), table.labels.name)
    if every_set is None:
        doubt(classes)
    hashes = [part.hashes for part in parts if part.hashes is not None]
    fields = {
        "schema": parts[0].schema,
        "classes": classes,
        "labels": renumber(numbers, classes),
        "weights": weights,
        "threads": table.labels.threads,
        "name": table.name,
        "groups": renumber(groups, group_names) if groups else table.labels.groups,
        "skipped": skipped,
        "table": table,
        "fold": None if dealing is None else dealing.of_hashes(np.concatenate(hashes)),
        "sets": every_set,
    }
    return fields, parts


def occurring_names(names: Sequence[Label], codes: NDArray[np.int32]) -> set[Label]:
    """Returns the names that occur; number −1 is none."""
    return {names[c] for c in np.flatnonzero(np.bincount(codes + 1, minlength=len(names) + 1)[1:]).tolist()}


def renumber(parts: Sequence[tuple[Sequence[Label], NDArray[np.int32]]], names: Sequence[Label]) -> NDArray[np.int32]:
    """Converts the numbers of batches, each with its own names, to numbers among all names; −1 for names that are not
    among them.
    """
    if all(list(part_names) == list(names) for part_names, _ in parts):
        return parts[0][1] if len(parts) == 1 else np.concatenate([codes for _, codes in parts])
    place = {name: c for c, name in enumerate(names)}
    lookups = [np.array([*(place.get(name, -1) for name in part_names), -1], dtype=np.int32) for part_names, _ in parts]
    return np.concatenate([lookup[codes] for lookup, (_, codes) in zip(lookups, parts, strict=True)])
