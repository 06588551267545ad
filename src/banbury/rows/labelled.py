"""Labelled rows, in memory or read again for each pass. They are assigned to folds, counted fold by fold, and scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, singledispatch
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, positions_in_slices
from banbury.families.bags.text import missing_texts
from banbury.progress import watch
from banbury.reading import Batch, Codes, Source
from banbury.rows.folds import (
    ContentFolds,
    FoldSet,
    SingleRows,
    fold_set_of_numbers,
    make_fold_sets,
    rank_folds,
    refuse_groups,
    training_rows,
)
from banbury.rows.groups import Groups
from banbury.rows.sampling import MOST_ROWS, RowSample
from banbury.sums import sort_keys
from banbury.tally.label_sets import EVERY, LabelSets
from banbury.tally.schema import ColumnFacts, Schema, infer
from banbury.tally.table import (
    LabelledBatch,
    Labels,
    Table,
    features_only,
    fractional_among,
    open_table,
    row_hashes,
    warn_about_suspicious_classes,
)
from banbury.tally.tally import Label, Tally, add_tally, count_sets, empty_tally, round_weights, tallies_of_batch
from banbury.threads import n_threads

CountBatch = Callable[[Batch, int, Schema], Iterator[Tally]]  # a batch, the number of its first row, and the schema
ROWS_PER_PIECE = 1 << 13  # are copied at a time, so that they stay in the processor's cache until they are scored


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The rows of a table under one schema, with the class number (−1 for none) and the weight of each.

    With ``sets`` of labels, every row with a target has the class ``EVERY``, and its labels are further classes.
    ``table`` says how rows are counted if the first batch settles the schema. ``fold`` is the fold of each row, if rows
    are assigned by content.
    """

    schema: Schema
    classes: tuple[Label, ...]  # the names that ``labels`` number
    labels: NDArray[np.int32]  # the class number of each row, −1 for none
    weights: NDArray[np.float64] | None  # one per row; None if all are 1
    threads: int
    name: str | None = None  # of the file or folder, for messages
    groups: Any = None  # the group of each row, which a splitter keeps together
    skipped: int = 0  # the number of rows without a label
    table: Table | None = None
    fold: NDArray[np.int32] | None = None
    tally_of_rest: Tally | None = None  # if these rows are a sample: that of all other rows, which models count too
    sets: LabelSets | None = None  # the labels of each row, if it may have several
    # The fold set that was counted last, and its groups; or nothing.
    _counted: list[tuple[FoldSet, Groups]] = field(default_factory=list, init=False)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.labels)

    @property
    def has_sets(self) -> bool:
        """Whether rows have sets of labels instead of one class each."""
        return self.sets is not None

    @cached_property
    def counts(self) -> NDArray[np.bool_]:
        """Whether each row has a class and a positive weight, so that it is counted."""
        is_labelled = self.labels >= 0
        return is_labelled if self.weights is None else is_labelled & (self.weights > 0)

    @cached_property
    def names(self) -> tuple[Label, ...]:
        """The classes or labels that models distinguish, without ``EVERY``, the class of all rows."""
        return self.classes if self.sets is None else tuple(name for name in self.classes if name != EVERY)

    @property
    def n_labelled(self) -> int:
        """The number of rows with a label."""
        return int(np.count_nonzero(self.labels >= 0))

    @property
    def sizes(self) -> Sequence[int]:
        """The number of rows in each batch."""
        raise NotImplementedError

    @cached_property
    def starts(self) -> Int:
        """The number of the first row of each batch, and last the total number of rows (batches + 1)."""
        return np.cumsum([0, *self.sizes], dtype=np.int64)

    def each_batch(self, activity: str) -> Iterator[Batch]:
        """Yields the batches in one pass. ``activity`` names the pass in progress messages."""
        raise NotImplementedError

    def fold_sets(self, folds: Any, seed: int) -> list[FoldSet]:
        """Returns the fold sets for ``folds``, as ``bb.cross_validate`` takes it: one set, or several if ``folds``
        tests rows repeatedly. The splits of a fold set test each labelled row at most once. ``seed`` decides which rows
        are in which fold.

        Rows that were assigned to folds by content (``self.fold`` has the fold of each row) keep them. Rows with sets
        of labels (``self.sets``) are assigned by content, because no label partitions the rows. In a sample, all splits
        also learn from the rows outside it. "loo" tests each labelled row by itself; it raises an error if
        ``self.groups`` has a group for each row.
        """
        if isinstance(folds, str) and folds == "loo":
            refuse_groups(self.groups)
            return [SingleRows.of(self.labels)]
        if self.fold is not None:
            return [self.fold_set_of(self.fold)]
        if self.sets is not None and isinstance(folds, (int, np.integer)):
            return [self.fold_set_of(rank_folds(self.hashes, self.labels, int(folds), seed))]
        return [self._with_rest(fold_set) for fold_set in make_fold_sets(folds, self.labels, seed, self.groups)]

    def fold_set_of(self, fold: NDArray[Any]) -> FoldSet:
        """Returns the fold set in which each row is tested once, in its ``fold``, −1 for none."""
        return self._with_rest(fold_set_of_numbers(fold, self.labels))

    def _with_rest(self, fold_set: FoldSet) -> FoldSet:
        """Returns the fold set; if these rows are a sample (``tally_of_rest`` has counted the other rows), with one
        more group, of the rows outside it, that all splits learn from.
        """
        return fold_set if self.tally_of_rest is None else fold_set.with_other_rows()

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """A hash of the content of each row; identical rows have the same."""
        return np.concatenate([row_hashes(batch, self.schema) for batch in self.each_batch("reading")])

    def count(self, group_numbers: NDArray[np.int32], n_groups: int) -> Groups:
        """Counts the rows of each group separately, in one pass, and returns the tallies as ``Groups``.
        ``group_numbers`` has the group of each row, from 0 to ``n_groups`` − 1; rows of group −1 are not counted. If
        these rows are a sample, the last group has all rows outside it.
        """
        counted_tally = self._count(group_numbers, n_groups, self.schema)
        return Groups(counted_tally, self.classes, n_groups, self.threads, self.schema.labels)

    def count_fold_set(self, fold_set: FoldSet) -> Groups:
        """Counts the groups of a fold set separately, and returns their tallies. ``_counted`` caches those of the last
        fold set.
        """
        if not self._counted or self._counted[0][0] is not fold_set:
            self._counted.clear()
            self._counted.append((fold_set, self.count(fold_set.groups, fold_set.n_groups)))
        return self._counted[0][1]

    @property
    def tally(self) -> Tally:
        """The tally of all rows with a class and a positive weight. ``_counted`` has the fold set that was counted last
        with its groups, or nothing.
        """
        if self._counted:
            groups = self._counted[0][1]
        else:
            groups = self.count(np.where(self.labels >= 0, 0, -1).astype(np.int32), 1)
        return replace(groups.total, skipped=self.skipped)

    def _count(self, groups: NDArray[np.int32], n_groups: int, schema: Schema) -> Tally:
        """Returns a tally under ``schema`` that counts every class and group separately: its class ``class * n_groups +
        group`` has the rows of one class and group. ``groups`` has the group of each row, −1 for none. Raises
        BadSetting if a column has too many values for so many classes.

        ``self.starts`` has the number of each batch's first row, ``self.sets`` the labels of each row if it may have
        several, and ``self.tally_of_rest`` the tally of all other rows if these are a sample.
        """
        count_batch = (
            self._class_counter(groups, n_groups) if self.sets is None else self._set_counter(groups, n_groups)
        )
        tally_so_far: Tally | None = None
        schema = replace(schema, labels=None)
        try:
            for batch, start in zip(self.each_batch("counting"), self.starts.tolist(), strict=False):
                for batch_tally in count_batch(batch, start, schema):
                    tally_so_far = add_tally(tally_so_far, batch_tally)
                    schema = tally_so_far.schema
        except errors.TooManyCells as error:
            column = getattr(error, "column", "")
            raise errors.BadSetting(
                f"column {column!r} has too many values for {n_groups:,} folds × {len(self.classes):,} classes, because "
                "there is a number for each of them. Use fewer folds.",
                column=column,
            ) from None
        tally = empty_tally(schema) if tally_so_far is None else tally_so_far
        if self.tally_of_rest is None:
            return tally
        # The rows outside the sample belong to the last group.
        class_numbers = tuple(self.classes.index(name) * n_groups + n_groups - 1 for name in self.tally_of_rest.classes)
        unread_rows = replace(self.tally_of_rest, schema=replace(self.tally_of_rest.schema, labels=None))
        return tally + unread_rows._of_classes(range(len(class_numbers)), class_numbers)

    def _class_counter(self, groups: NDArray[np.int32], n_groups: int) -> CountBatch:
        """Returns a function that counts the rows of a batch by class and group: class ``class * n_groups + group`` of
        its tallies has the rows of one class and group. ``groups`` has the group of each row, ``self.labels`` its
        class number, −1 for none.
        """
        is_counted = (self.labels >= 0) & (groups >= 0)
        class_and_group = np.where(is_counted, self.labels * np.int32(n_groups) + groups, np.int32(-1))
        class_codes = Codes(class_and_group, low=0, values=list(range(n_groups * len(self.classes))))
        labels = Labels.of_arrays(class_codes, self.weights, self.threads)
        return lambda batch, start, schema: tallies_of_batch(batch, schema, labels)

    def _set_counter(self, groups: NDArray[np.int32], n_groups: int) -> CountBatch:
        """Returns a function that counts the rows of a batch by label and group; number ``label * n_groups + group`` is
        one label and group. Every row also counts for the class of all rows. ``groups`` has the group of each row, −1
        for none.
        """
        assert self.sets is not None
        sets = self.sets
        first_number_of_class = {name: class_number * n_groups for class_number, name in enumerate(self.classes)}
        # That of the class of all rows, and of each label; −1 for labels that are not among the classes.
        first_number_of_label = np.array(
            [first_number_of_class.get(name, -1) for name in (EVERY, *sets.names)], dtype=np.int64
        )
        is_counted = (self.labels >= 0) & (groups >= 0)

        def count_batch(batch: Batch, start: int, schema: Schema) -> Iterator[Tally]:
            """Yields the tally of the batch's labelled rows with a group, if any. ``start`` is the number of its first
            row.
            """
            row_numbers = start + np.flatnonzero(is_counted[start : start + batch.n_rows])
            if len(row_numbers):
                rows = batch if len(row_numbers) == batch.n_rows else batch.take(row_numbers - start)
                weights = None if self.weights is None else self.weights[row_numbers]
                numbers = groups[row_numbers], first_number_of_label  # from which ``count_sets`` names classes
                yield count_sets(rows, schema, sets.take(row_numbers), weights, self.threads, numbers)

        return count_batch

    def count_only(self, row_numbers: Int, schema: Schema) -> Tally:
        """Returns the tally of the rows with these numbers under a schema, without the rows outside a sample."""
        groups = np.full(self.n_rows, -1, dtype=np.int32)
        groups[row_numbers] = 0
        tally = replace(self, tally_of_rest=None)._count(groups, n_groups=1, schema=schema)
        return Groups(tally, self.classes, n_groups=1, label_target=self.schema.labels).total

    @cached_property
    def any_idle(self) -> bool:
        """Whether some row has weight zero, so that it is scored but not counted."""
        return self.weights is not None and not bool(self.weights.all())

    def under(self, counting: Mapping[str, Any]) -> Self:
        """Returns the rows and folds under the schema that another recipe counts with, without reading them again.

        ``counting`` has settings of ``bb.count``, such as ``missing``, that replace the original ones.
        """
        if self.table is None:
            return self
        table = replace(self.table, **counting)
        return replace(self, schema=self._infer_schema(table), table=table)

    def with_schema(self, schema: Schema) -> Self:
        """Returns the same rows and folds under another schema."""
        return replace(self, schema=schema)

    def _infer_schema(self, table: Table) -> Schema:
        """Settles the schema of a table of these rows."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class MemoryRows(LabelledRows):
    """Rows in memory, in batches."""

    batches: tuple[Batch, ...] = ()

    @property
    def sizes(self) -> Sequence[int]:
        """The number of rows in each batch."""
        return [batch.n_rows for batch in self.batches]

    def each_batch(self, activity: str) -> Iterator[Batch]:
        """Yields the batches. ``activity`` names the pass in progress messages."""
        return iter(watch(self.batches, activity, self.name))

    def _infer_schema(self, table: Table) -> Schema:
        """Returns the table's schema, if it has one, or infers it from the first batch; again if a later batch has
        fractions in a column that looked like whole numbers.
        """
        if table.schema is not None:
            return table.schema
        first_batch, *later_batches = self.batches
        fractional_columns = table.facts.fractional  # columns that are known to have fractions
        while True:
            facts = ColumnFacts(fractional_columns)
            schema = infer(
                first_batch,
                reserved={},
                target=None,
                features=table.declared_families,
                missing=table.missing,
                trees=table.trees,
                facts=facts,
            )
            # Columns that inference took for whole numbers and that have fractions in a later batch.
            new_columns = set[str]().union(*(fractional_among(batch, facts.whole_numbers) for batch in later_batches))
            if not new_columns:
                unchanged_fields = ("target", "target_kind", "labels", "reading")  # these concern no features
                return replace(schema, **{name: getattr(self.schema, name) for name in unchanged_fields})
            fractional_columns |= new_columns

    def row_name(self, row: int) -> str | None:
        """Returns the file that the row with this number was read from; None unless each row is a file of its own.
        ``starts`` has the number of the first row of each batch.
        """
        batch_number = int(np.searchsorted(self.starts, row, side="right")) - 1
        names = self.batches[batch_number].row_names
        return None if names is None else names[row - int(self.starts[batch_number])]

    def take(self, row_numbers: Int) -> Iterator[Batch]:
        """Yields the rows with these numbers, which are in ascending order, in batches of limited size. ``starts`` has
        the number of the first row of each batch, and last that of all rows.
        """
        batch_ends = np.searchsorted(row_numbers, self.starts[1:])  # in ``row_numbers``, of the rows of each batch
        for batch, batch_start, rows in zip(self.batches, self.starts, np.split(row_numbers, batch_ends), strict=False):
            if len(rows) == batch.n_rows:
                yield batch
                continue
            for piece_start in range(0, len(rows), ROWS_PER_PIECE):
                yield batch.take(rows[piece_start : piece_start + ROWS_PER_PIECE] - batch_start)

    def only(self, row_numbers: Int) -> MemoryRows:
        """Returns the rows with these numbers, which are in ascending order, with their labels, weights, groups, folds
        and label sets.
        """
        batches = []
        first_row = 0  # rows before the next batch
        for batch in self.take(row_numbers):
            selected_batch = copy(batch)  # labels and weights are found by the number of a batch's first row
            selected_batch.first_row = first_row
            batches.append(selected_batch)
            first_row += selected_batch.n_rows
        return replace(
            self,
            batches=tuple(batches),
            labels=self.labels[row_numbers],
            weights=None if self.weights is None else self.weights[row_numbers],
            groups=None if self.groups is None else np.asarray(self.groups)[row_numbers],
            fold=None if self.fold is None else self.fold[row_numbers],
            sets=None if self.sets is None else self.sets.take(row_numbers),
        )

    def training_rows(self, fold_set: FoldSet, fold: int) -> MemoryRows:
        """Returns the rows that split number ``fold`` of a fold set learns from."""
        return self.only(training_rows(fold_set.splits[fold], fold_set))

    def as_table(self, schema: Schema) -> Table:
        """Returns the rows as a table under a schema."""
        codes = Codes(self.labels, low=0, values=list(self.classes))
        labels = Labels.of_arrays(codes, self.weights, self.threads, self.groups)
        return Table(Source.of(self.batches, self.name), labels, schema)

    def with_word_ids(self, tables: Mapping[str, _core.Words]) -> MemoryRows:
        """Returns the rows with the texts of some columns replaced by word ids. ``tables`` has the table of words of
        each of these columns.
        """
        if not tables:
            return self
        batches = []
        for batch in self.batches:
            columns: dict[str, WordIdColumn] = {}  # by column name
            for name, table in tables.items():
                feature = self.schema[name]
                family: Any = feature.family
                texts = family.kernel_input(batch, feature)
                bags = table.bags(family.tokeniser, texts, self.threads)  # offsets, word ids, and how often each occurs
                columns[name] = WordIdColumn(*bags, missing_texts(texts, batch.n_rows))
            batches.append(batch.with_columns(columns))
        return replace(self, batches=tuple(batches))

    def sample(self, n: int | None = None) -> MemoryRows:
        """Returns all rows, because they are already in memory. Raises an error if a number of rows was requested."""
        errors.require(n is None, "sample", n, "omitted when rows are in memory")
        return self

    def among(self, tally: Tally) -> MemoryRows:
        """Returns the rows as a sample of those that ``tally`` has counted, under its classes. Models made of the
        sample also count all other rows, whose tally is ``tally_of_rest``.
        """
        labels = renumber([(self.classes, self.labels)], tally.classes)
        sampled_rows = replace(self, classes=tally.classes, labels=labels, skipped=0)
        tally_of_rest = replace(tally, skipped=0, parts=frozenset()) - sampled_rows.tally
        return replace(sampled_rows, tally_of_rest=tally_of_rest, skipped=tally.skipped)


@dataclass(frozen=True, eq=False)
class StreamedRows(LabelledRows):
    """Rows that are read again in each pass, with one batch at a time in memory."""

    batch_sizes: tuple[int, ...] = ()

    @property
    def sizes(self) -> Sequence[int]:
        """The number of rows in each batch."""
        return self.batch_sizes

    def each_batch(self, activity: str) -> Iterator[Batch]:
        """Yields the batches, with features only, in one pass. Raises an error if their sizes differ from the first
        pass. ``activity`` names the pass in progress messages.
        """
        assert self.table is not None
        expected_sizes = iter(self.batch_sizes)
        change_error = errors.BanburyError(
            f"the rows{errors.where(self.name)} had changed when they were read again. Keep them in memory, or validate "
            "a copy that no one writes to."
        )
        for batch in self.table.batches(activity):
            if batch.n_rows != next(expected_sizes, None):
                raise change_error
            yield features_only(self.table.align(batch, self.schema), self.schema)
        if next(expected_sizes, None) is not None:
            raise change_error

    def _infer_schema(self, table: Table) -> Schema:
        """Returns the schema that the first batch of the table settles; reads all batches, because a later one may
        change the type of a column.
        """
        schemas = list[Schema]()  # one, or none before the first batch; a pass that starts again empties it
        for batch in table.batches("reading", schemas.clear, quietly=True):
            if not schemas:
                schemas.append(table.settle_schema(batch))
        return schemas[0]

    def sample(self, n: int | None = None) -> MemoryRows:
        """Returns in memory at most ``n`` distinct rows, selected by content, with every class. Models also count all
        other rows. None means ``MOST_ROWS``.

        If there are no more than ``n`` rows, it returns all of them in their order, so that they get the same folds.
        """
        assert self.table is not None
        n = MOST_ROWS if n is None else n
        if self.n_rows <= n:
            return replace(read_into_memory(self.table), schema=self.schema, fold=self.fold)
        sample = RowSample.of(self.table, self.schema, n, also=self.schema.columns)
        return rows_of_sample(sample, self.tally, self.threads)


def rows_of_sample(
    sample: RowSample, tally: Tally, threads: int, content_folds: ContentFolds | None = None
) -> MemoryRows:
    """Returns the sampled rows in memory, together with the tally of all other rows. ``tally`` has counted all rows,
    and ``content_folds`` says how rows are assigned to folds by content.
    """
    sample.check_subtractable()
    rows = read_into_memory(sample.table(tally.schema, threads), content_folds)
    return rows if sample.is_whole else rows.among(tally)


class WordIdColumn:
    """A text column whose words were looked up: offsets, word ids, how often each occurs, and which texts are missing."""

    categorical = False
    text = True

    def __init__(
        self, offsets: Int, ids: NDArray[np.int32], times: NDArray[np.int32], missing: NDArray[np.bool_]
    ) -> None:
        """Row i has the words ``ids[offsets[i] : offsets[i + 1]]``, each as often as the same slice of ``times`` says;
        ``missing`` has a boolean per row.
        """
        self.offsets = offsets
        self.ids = ids
        self.times = times
        self.missing = missing

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.missing)

    def texts(self) -> Any:
        """Returns the texts, encoded as ``__init__`` describes, as an object of the core."""
        return _core.EncodedTexts(self.offsets, self.ids, self.times, self.missing)

    def take(self, row_numbers: Int) -> WordIdColumn:
        """Returns the texts of the rows with these numbers. Row i has the words ``ids[offsets[i] : offsets[i + 1]]``,
        each as often as ``times`` says.
        """
        n_words = (self.offsets[1:] - self.offsets[:-1])[row_numbers]
        offsets, word_positions = positions_in_slices(self.offsets[row_numbers], n_words)
        return WordIdColumn(offsets, self.ids[word_positions], self.times[word_positions], self.missing[row_numbers])


def load_rows(data: Any, target: Any, **settings: Any) -> MemoryRows:
    """Returns the rows of a labelled table, read into memory. ``settings`` are those of ``Table.of``; some are refused
    for sets of labels.
    """
    table = open_table_with_labels(data, target, **settings)
    if table.has_sets:
        refuse_for_sets(settings.get("features"), groups=settings.get("groups"))
    return read_into_memory(table)


@singledispatch
def open_rows(table: Any, folds: Any, seed: int, id: Any = None, deal: Any = "stratified") -> Any:
    """Returns the labelled rows of a table, which are assigned to folds by the column ``id``, by content, or by
    position: ``MemoryRows``, or ``PartitionedRows`` if they are in partitions. ``folds`` is the number of folds, and
    ``deal`` is "content" or "stratified" (by position).
    """
    return read_into_memory(table, ContentFolds.of_settings(folds, seed, id, deal))


def read_into_memory(table: Table, content_folds: ContentFolds | None = None) -> MemoryRows:
    """Returns the rows of a table, read into memory. The first batch settles the schema, as in ``bb.count``.
    ``content_folds`` says how rows are assigned to folds by content, if they are.
    """
    # The fields of ``LabelledRows`` by name, and the batches with the labels of their rows.
    fields, labelled_batches = _read_labels(table, content_folds, keeps=True)
    return MemoryRows(**fields, batches=tuple(batch.batch for batch in labelled_batches))


def stream_rows(data: Any, target: Any, content_folds: ContentFolds | None = None, **settings: Any) -> StreamedRows:
    """Returns rows that are read again in each pass. The class, weight and group of each row are read once and kept in
    memory. ``content_folds`` says how rows are assigned to folds by content; the settings are those of ``Table.of``.
    """
    table = open_table_with_labels(data, target, **settings).again()
    # The fields of ``LabelledRows`` by name, and the labels of each batch, without its rows.
    fields, labelled_batches = _read_labels(table, content_folds, keeps=False)
    return StreamedRows(**fields, batch_sizes=tuple(len(batch.numbers) for batch in labelled_batches))


def open_table_with_labels(
    data: Any, target: Any, *, features: Any = "auto", weights: Any = None, takes_sets: bool = True, **settings: Any
) -> Any:
    """Returns a table of rows with a class or labels, opened but not read: a ``Table``, or a ``PartitionedTable``.
    ``features`` has the families that the user asks for; if they are to be chosen later ("choose"), they are inferred
    first. ``weights`` are one number per row, or name a column. Unless ``takes_sets``, several labels per row raise an
    error. The other settings are those of ``Table.of``.
    """
    errors.require(np.asarray(weights).ndim <= 1, "weights", "a matrix", "one number per row")
    families = "auto" if chooses(features) else features
    table = open_table(data, target, features=families, weights=weights, **settings)
    if not takes_sets and table.has_sets:
        table.labels.check_one_class()
    return table


def chooses(features: Any) -> bool:
    """Whether families are to be chosen on held-out rows: ``features`` is "choose"."""
    return isinstance(features, str) and features == "choose"


def refuse_for_sets(features: Any, **settings: Any) -> None:
    """Raises an error for settings that do not apply to sets of labels: those that are not None, and ``features`` if it
    is "choose".
    """
    for name, value in {**settings, "features": features if chooses(features) else None}.items():
        errors.require(value is None, name, value, "omitted for multi-label data")


def has_several(alpha: Any) -> bool:
    """Whether alpha is to be chosen: several values, or "auto"."""
    return isinstance(alpha, Iterable) and not (isinstance(alpha, np.ndarray) and alpha.ndim == 0)


def _read_labels(
    table: Table, content_folds: ContentFolds | None, keeps: bool
) -> tuple[dict[str, Any], list[LabelledBatch]]:
    """Reads the label, weight, group and set of labels of every row of a table in one pass. Returns the fields of
    ``LabelledRows`` by name, and the batches, which have their rows only if ``keeps``. ``content_folds`` says how rows
    are assigned to folds by content, if they are. Raises an error if no row has a label and a positive weight.
    """
    batches = list[LabelledBatch]()
    for batch in table.batches("reading", batches.clear, quietly=keeps):
        schema = batches[0].schema if batches else table.settle_schema(batch)
        labelled_batch = LabelledBatch.of(table, batch, schema, content_folds, codes_words=keeps)
        batches.append(labelled_batch if keeps else replace(labelled_batch, batch=batch.slice(0, 0)))
    batch_sizes = [len(batch.numbers) for batch in batches]
    # For each batch the names of its classes, and the number of each row's class among them, −1 for none; in the
    # weighted ones, also −1 for rows of weight zero.
    names_and_codes = names_and_weighted_codes = [(batch.names, batch.numbers) for batch in batches]
    weights = None
    if batches[0].weights is not None:
        weights = round_weights(np.concatenate([batch.weights for batch in batches if batch.weights is not None]))
        weights_of_batches = np.split(weights, np.cumsum(batch_sizes)[:-1])
        names_and_weighted_codes = [
            (names, np.where(batch_weights > 0, codes, -1))
            for (names, codes), batch_weights in zip(names_and_codes, weights_of_batches, strict=True)
        ]
    names_in_use = set[Label]().union(*(occurring_names(*batch) for batch in names_and_weighted_codes))
    label_sets = None
    if table.has_sets:
        label_sets = LabelSets.of_batches([batch.sets for batch in batches if batch.sets is not None])
        names_and_codes = names_and_weighted_codes
        names_in_use |= label_sets.names_in_use(np.concatenate([codes >= 0 for _, codes in names_and_weighted_codes]))
    classes: Any = sort_keys(names_in_use)
    # For each batch the names of its groups, and the number of each row's group among them.
    group_names_and_codes = [(batch.groups[1], batch.groups[0]) for batch in batches if batch.groups is not None]
    group_names: Any = sort_keys(set[Label]().union(*(occurring_names(*batch) for batch in group_names_and_codes)))
    skipped = sum(int(np.count_nonzero(batch.numbers < 0)) for batch in batches)
    if not classes and skipped < sum(batch_sizes):
        raise errors.empty_data(table.name, "every row has a missing label or a weight of zero")
    if not classes:
        raise errors.no_target(sum(batch_sizes), table.labels.name)
    if label_sets is None:
        warn_about_suspicious_classes(classes)
    hash_batches = [batch.hashes for batch in batches if batch.hashes is not None]
    fields = {
        "schema": batches[0].schema,
        "classes": classes,
        "labels": renumber(names_and_codes, classes),
        "weights": weights,
        "threads": table.labels.threads,
        "name": table.name,
        "groups": renumber(group_names_and_codes, group_names) if group_names_and_codes else table.labels.groups,
        "skipped": skipped,
        "table": table,
        "fold": None if content_folds is None else content_folds.of_hashes(np.concatenate(hash_batches)),
        "sets": label_sets,
    }
    return fields, batches


def occurring_names(names: Sequence[Label], codes: NDArray[np.int32]) -> set[Label]:
    """Returns the names whose indices occur among the codes; −1 stands for no name."""
    n_rows_with_name = _core.count_classes(codes, len(names), None, n_threads(None)).value
    return {names[number] for number in np.flatnonzero(n_rows_with_name).tolist()}


def renumber(
    names_and_codes: Sequence[tuple[Sequence[Label], NDArray[np.int32]]], names: Sequence[Label]
) -> NDArray[np.int32]:
    """Returns the index in ``names``, a common list, of each row's name, −1 for other names or none; the batches are
    concatenated. ``names_and_codes`` has for each batch the names that its codes refer to, and a code for each row, −1
    for none.
    """
    number_of = {name: number for number, name in enumerate(names)}
    numbers_by_batch = []  # of each batch an array with a number per row
    for batch_names, codes in names_and_codes:
        if list(batch_names) == list(names):
            numbers_by_batch.append(codes)
            continue
        number_of_code = np.array([*(number_of.get(name, -1) for name in batch_names), -1], dtype=np.int32)
        numbers_by_batch.append(number_of_code[codes])  # code −1 takes the last entry
    return np.concatenate(numbers_by_batch)
