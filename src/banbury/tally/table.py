"""Table: labelled rows, read once. The one way from any data to counting, validating and scoring."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from tempfile import SpooledTemporaryFile
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real, plain
from banbury.families.family import Kind
from banbury.families.keys import number_values
from banbury.progress import watch
from banbury.reading import Batch, Codes, ParserWork, Scalar, Source, Widened, encode, read
from banbury.reading.batches import Matrix, all_whole, as_name
from banbury.reading.columns import is_missing
from banbury.sums import MOST_ROWS
from banbury.tally.label_sets import EVERY, FOLDERS, LabelSets, LabelTarget, are_sets, holds_sets, join_same_files
from banbury.tally.partitioned import partitions_of
from banbury.tally.schema import ColumnFacts, FamilyOption, Missing, Schema, Trees, infer
from banbury.threads import n_threads

HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no two hashes times it are equal
MIX_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
HASH_OF_MISSING = np.uint64(0x7FF8000000000000)
COLUMNS_TOGETHER = 512  # columns of a sparse matrix that are made dense at a time
MOST_FRACTIONS = 20  # different numbers with fractions that are taken for classes without a word
LABEL_DELIMITERS = ";|,"  # labels of one row
BYTES_IN_MEMORY = 1 << 26  # bytes of rows that come only once, before they are kept in a file


@dataclass(frozen=True, eq=False)
class Table:
    """Rows in batches of columns, in memory or as a stream, and the labels, weights and groups that belong to them.

    If ``schema`` is None, the first batch decides it together with ``features`` and ``missing``.
    """

    source: Source
    labels: Labels  # where the labels, weights and groups of the rows are
    schema: Schema | None = None
    features: FamilyOption = "auto"
    missing: Missing = "skip"
    data: Any = None  # what the source was opened from
    reading: Mapping[str, Any] = field(default_factory=dict)  # the options with which it was opened
    trees: Trees = "many"  # whether inference takes columns of numbers for quantile trees
    facts: ColumnFacts = field(default_factory=ColumnFacts)  # what rows beyond the first have shown

    @classmethod
    def of(
        cls,
        data: Any,
        target: Any = None,
        *,
        schema: Schema | None = None,
        features: FamilyOption = "auto",
        weights: Any = None,
        classes: Sequence[Scalar] | None = None,
        groups: Any = None,
        missing: Missing = "skip",
        threads: int | None = None,
        trees: Trees = "many",
        target_delimiter: str | None = None,
        **reading: Any,
    ) -> Table:
        """Opens any data as a table; the arguments are those of ``bb.count``.

        Args:
            data: The rows, or a ``Table``, which is returned, under ``schema`` if that is given.
            missing: "category" makes a missing string, boolean or category a value of its own.
            target_delimiter: The text between several labels in one cell.
            groups: Which rows belong together: one name or number per row, or a column, which is then not a feature.
            trees: Whether columns of numbers become quantile trees if there are many rows, always ("all") or never ("none").
        """
        if isinstance(data, Table):
            return data if schema is None else data.under(schema)
        if schema is not None and not (isinstance(features, str) and features == "auto"):
            raise errors.bad_setting(
                "features", features, "omitted when a schema is given, because the schema has the families"
            )
        errors.require(schema is None or isinstance(schema, Schema), "schema", schema, "a Schema, such as tally.schema")
        source = open_source(data, schema, reading)
        weights = source.weights if weights is None else weights
        if target is None and classes is None and np.ndim(weights) < 2:
            target = source.target
        if wants_folders(source, target):
            source, target = join_same_files(source), LabelTarget((str(source.target),), folders=True)
        source = source.peekable()
        target = label_target(source, target, target_delimiter)
        labels = Labels.of(target, weights, classes, n_threads(threads), groups)
        return cls(source, labels, schema, features, missing, data, reading, trees)

    sample_size: ClassVar[int | None] = None  # rows that are sampled where they are needed in memory: None for all

    @property
    def has_sets(self) -> bool:
        """Whether each row has a set of labels."""
        return self.labels.sets_from is not None

    @property
    def name(self) -> str | None:
        """The name of what the rows are read from, such as a path, or None."""
        return self.source.name

    def batches(
        self,
        activity: str,
        restart: Callable[[], None] | None = None,
        quietly: bool = False,
        parser_work: ParserWork[Any] | None = None,
    ) -> Iterator[Batch]:
        """Yields the batches that have rows. If a column turns out to need a wider type than its first rows, all come
        again. Raises an error at the end if there are more or fewer labels or weights than rows.

        Args:
            activity: What is done with the rows, for the progress line.
            restart: Called before all batches come again because a column has changed type.
            quietly: Whether to omit the warning about that.
            parser_work: Work that the threads which parse the rows do with each batch.
        """
        n_rows = 0
        for batch in read_batches(
            self.source, activity, parser_work or ParserWork(self.labels.threads), restart, quietly, self.facts
        ):
            n_rows = batch.first_row + batch.n_rows
            if batch.n_rows:
                yield batch
        self.labels.check_length(n_rows)
        if not n_rows:
            raise errors.empty_data(self.name)

    def settle_schema(self, batch: Batch) -> Schema:
        """Returns the table's schema, or one inferred from ``batch``, the first. Inference adds to ``self.facts`` the
        columns that it takes for whole numbers.
        """
        if self.schema is not None:
            return self.schema
        reserved = self.labels.reserved_columns(batch.names)
        schema = infer(
            batch,
            reserved,
            self.labels.name,
            self.declared_families,
            self.missing,
            trees=self.trees,
            facts=self.facts,
        )
        return replace(schema, labels=self.labels.sets_from, reading=self.source.reading)

    @property
    def declared_families(self) -> FamilyOption:
        """The families that the user asked for: "auto", one for all columns, or a mapping by column, without the column
        of groups.
        """
        if not isinstance(self.features, Mapping):
            return self.features
        return {name: family for name, family in self.features.items() if as_name(name) != self.labels.group_name}

    def align(self, batch: Batch, schema: Schema) -> Batch:
        """Returns the batch with the column names of the schema, if either has columns without names. Raises an error
        if it lacks a column.
        """
        return align_names(batch, schema, self.labels.roles())

    def again(self) -> Table:
        """Returns the same rows as a table that can be read repeatedly. Rows that come only once (the source's
        ``again`` is False) are stored.
        """
        return self if self.source.again else replace(self, source=Spooled(self.source))

    def parts(self) -> Iterator[Table]:
        """Yields the rows in parts. Each part is a table that can be pickled and counted elsewhere with
        ``bb.count(part, schema=schema)``; under one schema, the parts' tallies add up to the tally of the table.
        """
        # If the table is a list of files, each file is a part; otherwise each batch.
        files = self.data if isinstance(self.data, (list, tuple)) and all(map(_is_file, self.data)) else ()
        if files and self.labels.by_column:
            yield from (replace(self, data=file, source=open_source(file, self.schema, self.reading)) for file in files)
            return
        for batch in self.batches("reading"):
            batch_copy = copy(batch)
            batch_copy.first_row = 0
            yield replace(self, source=Source.of([batch_copy], self.name), labels=self.labels.of_rows(batch), data=None)

    def under(self, schema: Schema) -> Table:
        """Returns the same rows as a table that is counted under a schema, and read as its files were."""
        source = self.source if self.data is None else open_source(self.data, schema, self.reading)
        return replace(self, source=source, schema=schema, features="auto")

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns how the table is pickled: a file is opened again where it is unpickled; other data are pickled."""
        other_fields = self.labels, self.schema, self.features, self.missing  # after the source, or path and options
        if _is_file(self.data):
            return _reopen, (self.data, self.reading, *other_fields)
        source = Source.of(self.source, self.name, target=self.source.target, reading=self.source.reading)
        return Table, (source, *other_fields)


def open_table(
    data: Any, target: Any = None, *, engine: Any = None, partitions: int | None = None, **settings: Any
) -> Any:
    """Returns any data opened as a ``Table``, or as a ``PartitionedTable`` if the rows are in partitions on an engine.

    ``engine`` and ``partitions`` are the user's choice of an engine and of a number of partitions, if any; the settings
    are those of ``Table.of``. Generic functions such as ``count_table`` work on both.
    """
    partitioned = partitions_of(data, engine, partitions)
    return Table.of(data, target, **settings) if partitioned is None else partitioned.table(target, **settings)


def wants_folders(source: Source, target: Any) -> bool:
    """Whether files have sets of labels, which are the names of the folders that they lie in: ``target`` is "folders",
    or the ``LabelTarget`` that this became earlier. ``source.target`` is the column of folder names, None if there is
    none.
    """
    if isinstance(target, LabelTarget):
        return target.folders and source.target is not None
    return isinstance(target, str) and target == FOLDERS and source.target is not None and target != source.target


def label_target(source: Source, target: Any, delimiter: str | None) -> Any:
    """Returns the target as it is, or a ``LabelTarget`` for label sets, which says in which columns the labels are.

    Args:
        source: The rows, whose first batch shows whether a column holds sets or flags. It must be ``peekable``.
        target: What the user passes as the target.
        delimiter: The text between several labels in one cell, if any.
    """
    if delimiter is not None and not (isinstance(delimiter, str) and delimiter and isinstance(target, str)):
        expected = "a text such as ';', together with a target that is a column of texts"
        raise errors.bad_setting("target_delimiter", delimiter, expected)
    if delimiter is not None:
        return LabelTarget((target,), delimiter)
    # Several columns, which may hold flags.
    names = target if isinstance(target, (list, tuple)) and target and all(type(name) is str for name in target) else ()
    if not (isinstance(target, str) or names) or (not names and source.holds_no_lists):
        return target
    for batch in source:
        if isinstance(target, str) and holds_sets(batch, target):
            return LabelTarget((target,))
        if names and len(set(names)) == len(names) and set(names).issubset(batch.names):
            return LabelTarget(tuple(names), flags=True)
        if batch.n_rows:
            break
    return target


def _is_file(data: Any) -> bool:
    """Whether ``data`` is the path of a file."""
    return isinstance(data, (str, os.PathLike)) and os.path.isfile(data)


def _reopen(
    data: Any,
    reading: Mapping[str, Any],
    labels: Labels,
    schema: Schema | None,
    features: FamilyOption,
    missing: Missing,
) -> Table:
    """Returns the table of a file, opened again after unpickling. ``data`` is its path, and ``reading`` has the options it
    was read with. The other arguments are fields of ``Table``: where the labels are, the schema (None: the first batch
    decides it), the families that the user asked for, and whether a missing value is a category.
    """
    return Table(open_source(data, schema, reading), labels, schema, features, missing, data, reading)


def open_source(data: Any, schema: Schema | None, reading: Mapping[str, Any]) -> Source:
    """Opens any data as a source of batches. Under a schema, files are read like those it was inferred from, unless
    ``reading`` says otherwise.
    """
    if isinstance(data, Source):
        return data
    if schema is None or isinstance(data, Batch):
        return read(data, **reading)
    return read(data, kinds=schema.kinds, **{"remembered": schema.reading, **reading})


def read_batches(
    source: Source,
    activity: str,
    parser_work: ParserWork[Any] | None = None,
    restart: Callable[[], None] | None = None,
    quietly: bool = False,
    facts: ColumnFacts | None = None,
) -> Iterator[Batch]:
    """Yields the batches of a source. If a column turns out to need a wider type than its first rows, reading starts
    again.

    A column that was taken for whole numbers and has a fraction in a later row also needs a wider type.

    Args:
        activity: What is done with the rows, for the progress line.
        parser_work: Work that the threads which parse the rows do with each batch.
        restart: Called before reading starts again, to discard what was made of the rows so far; a warning follows unless
            ``quietly``. Without it, the batches that were already yielded are skipped.
        facts: What is known about columns from other rows. Fractions that appear are added to it.
    """
    n_yielded = 0  # rows
    facts = ColumnFacts() if facts is None else facts
    while True:
        facts.whole_numbers.clear()
        try:
            for batch in watch(source.start(parser_work), activity, source.name):
                if batch.first_row >= n_yielded:
                    for name in fractional_among(batch, facts.whole_numbers):
                        raise Widened(name, "float")
                    n_yielded = batch.first_row + batch.n_rows
                    yield batch
            return
        except Widened as widened:  # its column has the wider kind from now on
            facts.fractional |= {widened.column}
            if not source.again:
                advice = f", name its family, as in features={{{widened.column!r}: 'gaussian'}}"
                raise errors.BadValue(
                    f"column {widened.column!r} changes type after its first rows. Counting again from the start, "
                    f"reading it as {widened.kind}s, needs data that can be read twice. Pass a list instead of an "
                    f"iterator{advice if widened.kind == 'float' else ''}, or a schema made from all of it.",
                    column=widened.column,
                ) from None
            if restart is not None:
                n_yielded = 0
                restart()
            if restart is not None and not quietly:
                errors.warn(
                    f"column {widened.column!r}{errors.where(source.name)} changes type after its first rows: "
                    f"counting again from the start, reading it as {widened.kind}s"
                )


def fractional_among(batch: Batch, columns: Collection[str]) -> set[str]:
    """Returns the names of those columns that hold other numbers than whole ones in this batch; columns that it lacks
    are ignored.
    """
    float_columns = [name for name in batch.names if name in columns and batch.kind(name) == "float"] if columns else []
    return set(float_columns) - all_whole(batch, float_columns)


class Spooled(Source):
    """Stores the batches of a source that can be read only once, in memory or in a temporary file, so that they can be
    read again.
    """

    def __init__(self, source: Source) -> None:
        """Reads and stores all batches of ``source``."""
        super().__init__(self._start, source.name, target=source.target, reading=source.reading)
        self._file = SpooledTemporaryFile(max_size=BYTES_IN_MEMORY)  # noqa: SIM115 (see __del__)
        self._starts = list[int]()  # the byte at which each batch starts in the file
        for batch in read_batches(source, "reading"):
            self._starts.append(self._file.tell())
            pickle.dump(batch, self._file, protocol=pickle.HIGHEST_PROTOCOL)

    def _start(self, _: ParserWork[Any] | None) -> Iterator[Batch]:
        """Yields the stored batches. ``_starts`` has the byte at which each begins in the file."""
        for start in self._starts:
            self._file.seek(start)
            yield pickle.load(self._file)

    def __del__(self) -> None:
        self._file.close()


def align_names(batch: Batch, schema: Schema, reserved: Collection[str] = ()) -> Batch:
    """Returns the batch with the schema's column names if either has columns without names.

    ``reserved`` has the columns of the batch that are not counted, such as the target: they keep their names, and the
    others get the schema's, in order. Raises an error if a column is missing, or their number differs.
    """
    if batch.named and schema.named:
        batch_names = frozenset(batch.names)
        for name in schema.features.inputs:
            if name not in batch_names:
                raise errors.unknown_column(name, batch.names, batch.source)
        return batch
    if batch.names == schema.columns:
        return batch
    other_names = [name for name in batch.names if name not in reserved]
    if len(other_names) != len(schema.columns):
        raise errors.schema_mismatch(
            f"{len(schema.columns)} columns were counted, but these rows have {len(other_names)}"
        )
    names = iter(schema.columns)  # the new names of the columns that are counted
    return batch.rename(tuple(name if name in reserved else next(names) for name in batch.names))


def features_only(batch: Batch, schema: Schema) -> Batch:
    """Returns the batch with the columns that the schema counts, without the target, weights and groups."""
    columns = frozenset(schema.columns)
    for name in [name for name in batch.names if name not in columns]:
        batch = batch.without(name)
    return batch


@dataclass(frozen=True, eq=False)
class LabelledBatch:
    """A batch of feature columns, with the class, weight, labels and group of each row.

    ``numbers`` has the number of each row's class in ``names``, −1 if it has none. ``groups`` has the number of each
    row's group, and the names of the groups. ``hashes`` has a hash of each row's contents if rows are assigned to folds
    by contents.
    """

    batch: Batch
    schema: Schema
    numbers: NDArray[np.int32]  # (rows,)
    names: Sequence[Any]  # of the classes
    weights: Real | None  # (rows,), None if all are 1
    sets: LabelSets | None  # the labels of each row, if it may have several; then ``names`` is [EVERY]
    hashes: NDArray[np.uint64] | None  # (rows,)
    groups: tuple[NDArray[np.int32], Sequence[Any]] | None

    @classmethod
    def of(cls, table: Table, batch: Batch, schema: Schema, content_folds: Any, codes_words: bool) -> LabelledBatch:
        """Returns a batch of a table split into features and labels. ``table.labels`` says where the labels, weights and
        groups of the rows are.

        Args:
            batch: The rows, with all columns of the table.
            schema: What is counted.
            content_folds: If given, rows get hashes of their contents, or of its column ``id``, and folds by these;
                the column of groups is then not read.
            codes_words: Whether strings become codes, because they will be read many times.
        """
        labels = table.labels
        sets = None
        # ``numbers`` has the class number of each row, −1 for none, and ``names`` the classes.
        if labels.sets_from is None:
            numbers, names, weights = number_classes(batch, schema, labels)
            refuse_continuous(names, batch.n_rows)
        else:
            sets = labels.sets_of(batch)
            numbers = np.where(sets.has_target, 0, -1).astype(np.int32)
            names = [EVERY]
            weights = labels.weights_of(batch)
        by_column = labels.group_name is not None and content_folds is None  # whether groups are in a column
        groups = number_values(batch.codes(str(labels.group_name)), labels.threads) if by_column else None
        batch = table.align(batch, schema)
        hashes = None if content_folds is None else row_hashes(batch, schema, content_folds.id)
        batch = features_only(batch, schema)
        if codes_words:
            non_text_features = schema.features.where(lambda feature: not feature.reads_text)  # their indices
            inputs = schema.features.take(non_text_features).inputs
            string_columns = [name for name in inputs if batch.kind(name) == "string"]
            batch = batch.with_codes(string_columns) if string_columns else batch
        return cls(batch, schema, numbers, names, weights, sets, hashes, groups)


# Labels and weights --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Labels:
    """Where the labels, weights and groups of rows come from: columns, arrays, or a matrix of soft labels."""

    name: str | None  # the target's column
    column: str | None  # the column that labels given as an array were taken from, if they say so
    codes: Codes | None  # labels given as an array, one per row
    weight_name: str | None  # the column of weights
    weights: Real | None  # weights given as an array: (rows,), or (rows × classes) for soft labels
    classes: tuple[Scalar, ...] | None  # of soft labels, or the one of all rows
    threads: int
    group_name: str | None = None  # the column of groups
    groups: Any = None  # groups given as an array, one per row
    sets_from: LabelTarget | None = None  # the columns of label sets; None unless rows have sets of labels
    sets: LabelSets | None = None  # label sets given apart from the table, one per row

    @classmethod
    def of(
        cls, target: Any, weights: Any, classes: Sequence[Scalar] | None, threads: int, groups: Any = None
    ) -> Labels:
        """Checks how the labels, weights and groups are given, and returns them. Raises an error if they do not fit
        together. ``target`` has one label per row, or names a column; so do ``weights`` and ``groups``. Weights may be
        soft labels (rows × classes), and ``classes`` then has the names of their columns.
        """
        target = as_name(target)
        groups = as_name(groups)
        weights_only = cls.without_target(weights, threads, soft=True)  # the ``Labels`` of weights without classes
        if isinstance(target, LabelTarget) or are_sets(target):
            return weights_only._with_sets(target, classes, groups)
        name = target if isinstance(target, str) else None
        has_soft_labels = weights_only.weights is not None and weights_only.weights.ndim == 2
        codes = None if target is None or name is not None else encode(target, threads)
        expected = "omitted, or a column to ignore, when weights are soft labels"
        errors.require(not has_soft_labels or codes is None, "target", "an array", expected)
        if has_soft_labels:
            assert weights_only.weights is not None
            n_classes = weights_only.weights.shape[1]
            classes = tuple(range(n_classes)) if classes is None else _class_names(classes)
            if len(classes) != n_classes or not classes:
                raise errors.bad_setting("classes", classes, f"one name for each of the {n_classes} columns of weights")
        elif classes is not None:
            classes = _class_names(classes)
            expected = "omitted unless weights are soft labels or all rows have one class"
            errors.require(target is None and len(classes) == 1, "classes", classes, expected)
        elif target is None:
            raise errors.bad_setting("target", target, "a column's name, one label per row, or soft labels in weights=")
        column = getattr(target, "name", None)  # the column that a series was taken from
        return replace(
            weights_only,
            name=name,
            column=column if isinstance(column, str) else None,
            codes=codes,
            classes=classes,
            **_group_fields(groups),
        )

    def _with_sets(self, target: Any, classes: Any, groups: Any) -> Labels:
        """Returns the same labels with a set of labels per row. ``target`` has the sets, or is a ``LabelTarget`` that
        says in which columns they are. ``groups`` has one name or number per row, or names a column; ``classes`` must
        be None.
        """
        if self.weights is not None and self.weights.ndim == 2:
            raise errors.bad_setting("weights", "soft labels", "one number per row for multi-label data")
        errors.require(classes is None, "classes", classes, "omitted for multi-label data, which name them")
        if isinstance(target, LabelTarget):
            # The only column of labels, if it is not a column of flags.
            name = None if target.flags or not target.columns else target.columns[0]
            return replace(self, name=name, sets_from=target, **_group_fields(groups))
        return replace(self, sets_from=LabelTarget(), sets=LabelSets.of(target), **_group_fields(groups))

    @classmethod
    def without_target(cls, weights: Any, threads: int, soft: bool = False) -> Labels:
        """Returns labels of rows that belong to no class: the weights alone, as one number per row or as the name of a
        column. ``soft`` allows a matrix of weights (rows × classes).
        """
        weights = as_name(weights)
        name = weights if isinstance(weights, str) else None  # of the column
        array = None if weights is None or name is not None else _weights(weights)
        if array is not None and array.ndim == 2 and not soft:
            raise errors.bad_setting("weights", f"an array of shape {array.shape}", "one number per row")
        return cls(name=None, column=None, codes=None, weight_name=name, weights=array, classes=None, threads=threads)

    @classmethod
    def of_arrays(cls, codes: Codes | None, weights: Real | None, threads: int, groups: Any = None) -> Labels:
        """Returns labels (``codes``), weights and groups that are arrays with one entry per row, or None if rows have
        none. ``threads`` is how many threads may count them.
        """
        return cls(
            name=None,
            column=None,
            codes=codes,
            weight_name=None,
            weights=weights,
            classes=None,
            threads=threads,
            groups=groups,
        )

    def roles(self) -> dict[str, str]:
        """Returns the columns of labels, weights and groups, which are not features, each with its role for messages,
        such as ``the target``.
        """
        roles = [(self.group_name, "named in groups="), (self.weight_name, "named in weights=")]  # name None: no column
        targets = (self.name, *(() if self.sets_from is None else self.sets_from.columns))
        return {
            name: role for name, role in (*roles, *((column, "the target") for column in targets)) if name is not None
        }

    def reserved_columns(self, names: Collection[str]) -> dict[str, str]:
        """Returns the ``roles``, with that of the column that labels were copied from if it is one of these names."""
        reserved = self.roles()
        if self.column is not None and self.column in names:
            reserved.setdefault(self.column, "the target")
        return reserved

    def check_length(self, n_rows: int) -> None:
        """Raises an error if labels or weights are given for more or fewer than ``n_rows`` rows."""
        for noun, one_per_row in (("labels", self.codes), ("labels", self.sets), ("weights", self.weights)):
            if one_per_row is not None and len(one_per_row) != n_rows:
                raise errors.length_mismatch(noun, len(one_per_row), n_rows)

    def check_one_class(self) -> None:
        """Raises an error if rows have sets of labels."""
        if self.sets_from is not None:
            expected = "one class per row here; for label sets use bb.MultiLabelClassifier or bb.cross_validate"
            raise errors.bad_setting("the target", "sets of labels", expected)

    @property
    def by_column(self) -> bool:
        """Whether labels, weights and groups all come from columns of the table, so that none is given as an array."""
        return self.codes is None and self.sets is None and self.weights is None and self.groups is None

    def of_rows(self, batch: Batch) -> Labels:
        """Returns these labels with the arrays cut to a batch's rows, which ``batch.first_row`` locates; column names
        stay.
        """
        start = batch.first_row
        stop = start + batch.n_rows
        # Arrays are None if labels, weights or groups come from a column, or rows have none.
        codes = None if self.codes is None else _slice_codes(self.codes, batch)
        weights = None if self.weights is None else self.weights[start:stop]
        groups = None if self.groups is None else np.asarray(self.groups)[start:stop]
        sets = None if self.sets is None else self.sets.rows_between(start, stop)
        return replace(self, codes=codes, weights=weights, groups=groups, sets=sets)

    def of_batch(self, batch: Batch, kind: Kind | None) -> tuple[Codes, Real | None]:
        """Returns the labels of a batch's rows as codes, and their weights: (rows,), (rows × classes) for soft labels,
        or None if all are 1. With soft labels there are no codes, only the class names. ``kind`` is the type that the
        first rows gave the target. Raises an error if rows have sets of labels.
        """
        self.check_one_class()
        weights = self.weights_of(batch)
        if self.classes is not None:
            has_soft_labels = weights is not None and weights.ndim == 2
            return Codes(np.zeros(0 if has_soft_labels else batch.n_rows, dtype=np.int32), 0, self.classes), weights
        if self.codes is None:
            assert self.name is not None
            return batch.codes(self.name, kind), weights
        return _slice_codes(self.codes, batch), weights

    def sets_of(self, batch: Batch) -> LabelSets:
        """Returns the sets of labels of a batch's rows, one per row: from its columns, or from ``sets``, which are
        those of all rows. Raises an error if these are too few.
        """
        assert self.sets_from is not None
        if self.sets is None:
            return self.sets_from.of_batch(batch)
        sets = self.sets.rows_between(batch.first_row, batch.first_row + batch.n_rows)
        if len(sets) != batch.n_rows:
            raise errors.length_mismatch("labels", len(self.sets), batch.first_row + batch.n_rows)
        return sets

    def weights_of(self, batch: Batch) -> Real | None:
        """Returns the weights of a batch's rows, (rows,) or (rows × classes) for soft labels; None if all are 1. Raises
        an error for an invalid weight.
        """
        if self.weight_name is not None:
            return _weights(batch.numbers([self.weight_name])[0].reshape(-1), batch.first_row)
        return None if self.weights is None else self.weights[batch.first_row : batch.first_row + batch.n_rows]


def _slice_codes(labels: Codes, batch: Batch) -> Codes:
    """Returns the labels of a batch's rows; ``labels`` are those of all rows."""
    return Codes(labels.codes[batch.first_row : batch.first_row + batch.n_rows], labels.low, labels.values)


def _group_fields(groups: Any) -> dict[str, Any]:
    """Returns the field of ``Labels`` for groups: the name of a column, or one name or number per row."""
    return {"group_name": groups} if isinstance(groups, str) else {"groups": groups}


def _class_names(classes: Any) -> tuple[Scalar, ...]:
    """Returns the names of the columns of soft labels; raises an error unless ``classes`` are distinct scalars."""
    names = tuple(map(plain, classes))
    are_scalars = all(isinstance(name, (bool, int, float, str)) and name == name for name in names)
    errors.require(
        are_scalars and len(set(names)) == len(names), "classes", names, "texts, numbers or booleans, each once"
    )
    return names


def _weights(weights: Any, first_row: int = 0) -> Real:
    """Returns weights as floats; raises an error if one is negative, too large or not a number. They are one number per
    row, or soft labels (rows × classes). ``first_row`` is the number of their first row, for messages.
    """
    try:
        # As they are, of any type; a masked weight is missing.
        numbers = np.asarray(weights.filled(np.nan) if isinstance(weights, np.ma.MaskedArray) else weights)
        if numbers.dtype.kind not in "biufO":
            raise TypeError
        array = numbers.astype(np.float64)
    except (TypeError, ValueError):
        raise errors.bad_setting("weights", type(weights).__name__, "numbers, one per row or rows × classes") from None
    # From 2**53 on doubles do not hold every whole number.
    may_be_rounded = numbers.dtype.kind in "iu" and array.size and array.max() >= 2.0**53
    if may_be_rounded and (array.astype(numbers.dtype) != numbers).any():
        expected = "whole numbers below 2**53"
        raise errors.bad_setting("weights", int(numbers.max()), expected)
    expected = "one number per row, or rows × classes"
    errors.require(array.ndim in (1, 2), "weights", f"an array of {array.ndim} dimensions", expected)
    if array.size and not (array.min() >= 0 and array.max() < MOST_ROWS):
        is_bad = ~(array >= 0) | (array >= MOST_ROWS)
        raise bad_weight(first_row + int(np.argwhere(is_bad)[0][0]), float(array[is_bad][0]))
    return array


# Numbers of classes --------------------------------------------------------------------------------------------------


def number_classes(
    batch: Batch, schema: Schema, labels: Labels
) -> tuple[NDArray[np.int32], Sequence[Scalar], Real | None]:
    """Returns three things: the number of each row's class, −1 if it has none; the classes that the numbers stand for;
    and the rows' weights, None if all are 1. ``labels`` says where the classes and weights of the batch's rows are.
    """
    codes, weights = labels.of_batch(batch, schema.target_kind)  # codes: of the classes, one per row
    if len(codes.codes) != batch.n_rows:
        raise errors.length_mismatch("labels", len(codes.codes), batch.n_rows)
    numbers, names = number_values(codes, labels.threads)
    return numbers, names, weights


def class_number(name: Any, classes: Sequence[Any]) -> int:
    """Returns the index of a class in ``classes``. The name may be any equal value, also a NumPy scalar. Raises an
    error for an unknown class.
    """
    plain_name = name.item() if isinstance(name, (np.generic, np.ndarray)) and name.ndim == 0 else name
    try:
        return tuple(classes).index(plain_name)
    except (TypeError, ValueError):  # no class is equal to it, or it is nothing that can be compared
        raise errors.unknown_class(plain_name, classes) from None


def refuse_continuous(values: Sequence[Any], n_rows: int) -> None:
    """Raises an error if labels look like a continuous measurement: fractional numbers that are nearly all different.
    ``values`` are the different labels of ``n_rows`` rows.
    """
    if len(values) > max(100, n_rows // 2) and all(isinstance(value, float) and value % 1 for value in values):
        raise errors.BadValue(
            f"the target has {len(values):,} different fractional numbers in {n_rows:,} rows: it looks continuous, "
            "but classes are needed. Cut it into classes first, for instance with pandas.cut(...).astype(str)."
        )


def warn_about_suspicious_classes(classes: Sequence[Any]) -> None:
    """Warns about classes that are probably a mistake: many fractional numbers, or several labels in one text."""
    _warn_about_fractions(classes)
    _warn_about_joined_labels([name for name in classes if isinstance(name, str)])


def _warn_about_joined_labels(names: Sequence[str]) -> None:
    """Warns if classes (``names``) look like several labels with a delimiter between them."""
    for delimiter in LABEL_DELIMITERS:
        with_delimiter = [name for name in names if delimiter in name]
        # Their labels that are also classes on their own.
        also_classes = {label.strip() for name in with_delimiter for label in name.split(delimiter)}.intersection(names)
        if len(with_delimiter) > 1 and len(also_classes) > 1:
            errors.warn(
                f"the class {with_delimiter[0]!r} looks like several labels with {delimiter!r} between them, "
                f"as do {len(with_delimiter):,} of {len(names):,} classes: "
                f"{errors.listed(map(repr, sorted(also_classes)), 3)} are classes on their own. "
                f"To predict each label separately, pass target_delimiter={delimiter!r}."
            )
            return


def _warn_about_fractions(classes: Sequence[Any]) -> None:
    """Warns if many classes are fractional numbers, which look like a measurement."""
    n_fractions = sum(isinstance(name, float) and not name.is_integer() for name in classes)
    if n_fractions > MOST_FRACTIONS:
        errors.warn(
            f"the target has {n_fractions:,} different fractional numbers, and each one becomes a class. With more than "
            f"{MOST_FRACTIONS} they look like measurements. Cut the target into a few classes, for instance with "
            "pandas.cut(...).astype(str), or convert it to texts if each number is meant to be a class."
        )


def bad_weight(row: int, weight: float) -> errors.BadWeight:
    """Returns an error that says what is wrong with the weight of the row with this number."""
    magnitude = "infinite" if weight == float("inf") else "too large"
    problem = "missing" if weight != weight else "negative" if weight < 0 else magnitude
    return errors.BadWeight(
        f"the weight of row {row:,} is {problem} ({weight}). Weights must be non-negative and below 2**63. To remove "
        "rows, subtract their tally.",
        row=row,
        value=weight,
    )


# What rows hold --------------------------------------------------------------------------------------------------------


def content_hashes(batch: Batch, names: Sequence[str]) -> NDArray[np.uint64]:
    """Returns a 64-bit hash of each row that depends only on what the columns ``names`` contain, not on the row's
    position or batch.

    Whole numbers and floats of the same value have the same hash, and so do equal texts and missing values of all
    types. Columns of a matrix, which can be many, are read in groups.
    """
    return _mix_columns(_column_hashes(batch, names), batch.n_rows)


def _column_hashes(batch: Batch, names: Sequence[str]) -> Iterator[NDArray[np.uint64]]:
    """Yields for each of the columns ``names``, in order, an array with a hash of each row's value."""
    if isinstance(batch, Matrix):  # which may have very many columns
        for start in range(0, len(names), COLUMNS_TOGETHER):
            # Arrays of the numbers of one or several columns.
            for numbers in batch.numbers(names[start : start + COLUMNS_TOGETHER]):
                yield from map(_bits, numbers.reshape(batch.n_rows, -1).T)
        return
    for name in names:
        if batch.kind(name) in ("integer", "float", "boolean"):
            yield _bits(batch.numbers([name])[0].reshape(batch.n_rows))
        elif batch.kind(name) == "list":
            # The bits of the numbers, rows × positions in the lists.
            lists = batch.lists(name, batch.width(name)).astype(np.float64).view(np.uint64)
            yield _mix_columns(lists.T, batch.n_rows)
        else:
            cells: Any = batch.column(name).cells()
            texts = [cell if type(cell) is str else None if is_missing(cell) else str(cell) for cell in cells]
            yield hash_texts(texts)


def row_hashes(batch: Batch, schema: Schema, column: str | None = None) -> NDArray[np.uint64]:
    """Returns a 64-bit hash of each row's contents (see ``content_hashes``) in all columns that ``schema`` counts, or in
    one ``column``.
    """
    inputs = schema.features.inputs
    return content_hashes(batch, inputs if column is None else [column])


def _bits(numbers: NDArray[Any]) -> NDArray[np.uint64]:
    """Returns numbers, as floats, as 64-bit integers with the same bits; 0 and −0 are the same, and so are all missing
    values.
    """
    floats = np.asarray(numbers, dtype=np.float64) + 0.0  # turns −0 into 0
    return np.where(np.isnan(floats), HASH_OF_MISSING, floats.view(np.uint64))


def hash_texts(texts: Sequence[str | None]) -> NDArray[np.uint64]:
    """Returns a 64-bit hash of each text; None, a missing value, has the hash of a missing number."""
    hash_of_text = {text: _hash_text(text) for text in dict.fromkeys(texts)}
    return np.array([hash_of_text[text] for text in texts], dtype=np.uint64)


def _hash_text(text: str | None) -> int:
    """Returns a 64-bit hash of a text, or the hash of a missing value."""
    if text is None:
        return int(HASH_OF_MISSING)
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _mix_columns(columns: Iterable[NDArray[np.uint64]], n_rows: int) -> NDArray[np.uint64]:
    """Returns one hash per row from columns of hashes, each of which has one per row."""
    hashes = np.zeros(n_rows, dtype=np.uint64)
    for column in columns:
        hashes = mix(hashes * HASH_FACTOR + column)
    return hashes


def mix(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mixes the bits of each hash, so that each bit depends on the others."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * MIX_FACTOR
    return np.asarray(hashes ^ (hashes >> np.uint64(27)))
