"""Table: labelled rows, read once. The one way from any data to counting, validating and scoring."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from tempfile import SpooledTemporaryFile
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.families.family import Kind
from banbury.families.keys import dense_numbers
from banbury.progress import watch
from banbury.reading import Batch, Beside, Codes, Scalar, Source, Widened, encode, read
from banbury.reading.batches import Matrix, all_whole, as_name
from banbury.reading.columns import missing as is_missing
from banbury.sums import MOST_ROWS
from banbury.tally.label_sets import EVERY, FOLDERS, LabelSets, LabelTarget, are_sets, holds_sets, join_same_files
from banbury.tally.partitioned import partitions_of
from banbury.tally.schema import ColumnFacts, Features, Missing, Schema, Trees, infer
from banbury.threads import n_threads

MIX = np.uint64(0x9E3779B97F4A7C15)
TURN = np.uint64(0xBF58476D1CE4E5B9)
MISSING = np.uint64(0x7FF8000000000000)
WIDE = 512  # columns that are made dense at a time
MOST_FRACTIONS = 20  # different numbers with fractions that are taken for classes without a word
DIVIDES = ";|,"  # labels of one row
IN_MEMORY = 1 << 26  # bytes of rows that come only once, before they are kept in a file


@dataclass(frozen=True, eq=False)
class Table:
    """Rows in batches of columns, with the labels, weights and groups that belong to them; held or streamed.

    ``schema`` is None where the first batch settles it, as ``features`` and ``missing`` say.
    """

    source: Source
    labels: Labels
    schema: Schema | None = None
    features: Features = "auto"
    missing: Missing = "skip"
    data: Any = None  # what the source was opened from, and how
    reading: Mapping[str, Any] = field(default_factory=dict)
    trees: Trees = "many"  # whether inference takes columns of numbers for quantile trees
    facts: ColumnFacts = field(default_factory=ColumnFacts)  # what rows beyond the first have shown

    @classmethod
    def of(
        cls,
        data: Any,
        target: Any = None,
        *,
        schema: Schema | None = None,
        features: Features = "auto",
        weights: Any = None,
        classes: Sequence[Scalar] | None = None,
        groups: Any = None,
        missing: Missing = "skip",
        threads: int | None = None,
        labelled: bool = True,
        trees: Trees = "many",
        target_delimiter: str | None = None,
        **reading: Any,
    ) -> Table:
        """The table of any data; the arguments are those of ``bb.count``. Not ``labelled``: the rows belong to no class.

        ``groups`` says which rows belong together: one for each row, or a column, which is then no feature.
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
        if not labelled:
            labels = Labels.without_target(weights, n_threads(threads))
            return cls(source, labels, schema, features, missing, data, reading, trees)
        if target is None and classes is None and np.ndim(weights) < 2:
            target = source.target
        if wants_folders(source, target):
            source, target = join_same_files(source), LabelTarget((str(source.target),), folders=True)
        source = source.peekable_source()
        target = label_target(source, target, target_delimiter)
        labels = Labels.of(target, weights, classes, n_threads(threads), groups)
        return cls(source, labels, schema, features, missing, data, reading, trees)

    n_held: ClassVar[int | None] = (
        None  # rows that are sampled where they are needed in memory: None, since all can be read
    )

    @property
    def has_sets(self) -> bool:
        """Whether the target is one of sets of labels."""
        return self.labels.several is not None

    @property
    def name(self) -> str | None:
        """What the rows are read from, where that has a name."""
        return self.source.name

    def batches(
        self,
        doing: str,
        anew: Callable[[], None] | None = None,
        quietly: bool = False,
        beside: Beside[Any] | None = None,
    ) -> Iterator[Batch]:
        """The batches that have rows, as ``batches`` of this module gives them; raises unless labels and weights fit them."""
        n_rows = 0
        for batch in batches(self.source, doing, beside or Beside(self.labels.threads), anew, quietly, self.facts):
            n_rows = batch.first_row + batch.n_rows
            if batch.n_rows:
                yield batch
        self.labels.check_length(n_rows)
        if not n_rows:
            raise errors.empty_data(self.name)

    def batches_with_labels(
        self, restart: Callable[[], None], quietly: bool, dealing: Any = None
    ) -> Iterator[LabelledBatch]:
        """The batches of one pass, with the label of each row; the first settles the schema.

        ``restart`` is called before all batches come again. ``dealing``: rows are dealt to folds by what they hold, or by its
        column ``id``.
        """
        schemas = list[Schema]()

        def anew() -> None:
            schemas.clear()
            restart()

        for batch in self.batches("reading", anew, quietly):
            if not schemas:
                schemas.append(self.settle_schema(batch))
            yield LabelledBatch.of(self, batch, schemas[0], dealing, codes_words=quietly)

    def settle_schema(self, batch: Batch, more_to_come: bool = False) -> Schema:
        """What is counted: as the schema says, or as the first batch, which this is, makes one think.

        ``more_to_come``: it may be of a few rows only.
        """
        if self.schema is not None:
            return self.schema
        aside = self.labels.aside(batch.names)
        schema = infer(batch, aside, self.labels.name, self.chosen, self.missing, more_to_come, self.trees, self.facts)
        return replace(schema, labels=self.labels.several, reading=self.source.reading)

    @property
    def chosen(self) -> Features:
        """The families that were asked for, without that of a column of groups."""
        if not isinstance(self.features, Mapping):
            return self.features
        return {name: family for name, family in self.features.items() if as_name(name) != self.labels.group_name}

    def align(self, batch: Batch, schema: Schema) -> Batch:
        """The batch with the schema's names of columns."""
        return align_names(batch, schema, self.labels.roles())

    def features_of(self, batch: Batch, schema: Schema) -> Batch:
        """The same without the target, weights and groups."""
        return features_only(self.align(batch, schema), schema)

    def again(self) -> Table:
        """The same rows, to be read as often as one likes: those that come only once are kept."""
        return self if self.source.again else replace(self, source=Spooled(self.source))

    def parts(self) -> Iterator[Table]:
        """The rows in parts, each a table that can be pickled and counted elsewhere: ``bb.count(part, schema=schema)``.

        The parts' tallies, under one schema, add up to that of the table.
        """
        files = self.data if isinstance(self.data, (list, tuple)) and all(map(_is_file, self.data)) else ()
        if files and self.labels.by_column:
            yield from (replace(self, data=file, source=open_source(file, self.schema, self.reading)) for file in files)
            return
        for batch in self.batches("reading"):
            part = copy(batch)
            part.first_row = 0
            yield replace(self, source=Held((part,), self.name), labels=self.labels.of_rows(batch), data=None)

    def under(self, schema: Schema) -> Table:
        """The same rows, counted as a schema says."""
        source = self.source if self.data is None else open_source(self.data, schema, self.reading)
        return replace(self, source=source, schema=schema, features="auto")

    def __reduce__(self) -> tuple[Any, ...]:
        rest = self.labels, self.schema, self.features, self.missing
        if _is_file(self.data):
            return _reopen, (self.data, self.reading, *rest)
        return Table, (Held(tuple(self.source), self.name, self.source.target, self.source.reading), *rest)


def open_table(
    data: Any, target: Any = None, *, engine: Any = None, partitions: int | None = None, **settings: Any
) -> Any:
    """The table of any data: a ``Table`` of rows that are here, a ``PartitionedTable`` of rows in partitions on an engine.

    The settings are those of ``Table.of``. Whoever works on either asks a generic function, such as ``counted``.
    """
    where = partitions_of(data, engine, partitions)
    return Table.of(data, target, **settings) if where is None else where.table(target, **settings)


def wants_folders(source: Source, target: Any) -> bool:
    """Whether the labels of files are the folders that they lie in."""
    if isinstance(target, LabelTarget):
        return target.folders and source.target is not None
    return isinstance(target, str) and target == FOLDERS and source.target is not None and target != source.target


def label_target(source: Source, target: Any, delimiter: str | None) -> Any:
    """The target; where it holds sets of labels, and is a column or several, as it says where these are."""
    if delimiter is not None and not (isinstance(delimiter, str) and delimiter and isinstance(target, str)):
        expected = "a text such as ';', together with a target that is a column of texts"
        raise errors.bad_setting("target_delimiter", delimiter, expected)
    if delimiter is not None:
        return LabelTarget((target,), delimiter)
    names = target if isinstance(target, (list, tuple)) and target and all(type(t) is str for t in target) else ()
    looked_at = source.again or source.peekable
    if not looked_at or not (isinstance(target, str) or names) or (not names and source.holds_no_lists):
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
    return isinstance(data, (str, os.PathLike)) and os.path.isfile(data)


def _reopen(
    data: Any, reading: Mapping[str, Any], labels: Labels, schema: Schema | None, features: Features, missing: Missing
) -> Table:
    return Table(open_source(data, schema, reading), labels, schema, features, missing, data, reading)


def open_source(data: Any, schema: Schema | None, reading: Mapping[str, Any]) -> Source:
    """The batches of any data. Under a schema, files are read as those were that it was inferred from, unless told otherwise."""
    if isinstance(data, Source):
        return data
    if schema is None or isinstance(data, Batch):
        return read(data, **reading)
    return read(data, kinds=schema.kinds, **{"remembered": schema.reading, **reading})


def batches(
    source: Source,
    doing: str,
    beside: Beside[Any] | None = None,
    anew: Callable[[], None] | None = None,
    quietly: bool = False,
    facts: ColumnFacts | None = None,
) -> Iterator[Batch]:
    """The batches of a source. Where a column turns out wider than its first rows were, reading begins again.

    Then ``anew`` is called, which forgets what was made of the rows so far, and all come again, with a warning unless
    ``quietly``; without it, those that came before are passed over. A column that was taken for whole numbers and turns out
    to have fractions is such a column, too.
    """
    n_done = 0
    facts = ColumnFacts() if facts is None else facts
    while True:
        facts.whole_numbers.clear()
        try:
            for batch in watch(source.each(beside), doing, source.name):
                if batch.first_row >= n_done:
                    for name in fractional_among(batch, facts.whole_numbers):
                        raise Widened(name, "float")
                    n_done = batch.first_row + batch.n_rows
                    yield batch
            return
        except Widened as wider:
            facts.fractional |= {wider.column}
            if not source.again:
                family = f", name its family, as in features={{{wider.column!r}: 'gaussian'}}"
                family = family if wider.kind == "float" else ""
                text = f"column {wider.column!r} changes type after its first rows. Counting again from the start, "
                text += f"reading it as {wider.kind}s, needs data that can be read twice. Pass a list instead of an "
                text += f"iterator{family}, or a schema made from all of it."
                raise errors.BadValue(text, column=wider.column) from None
            if anew is not None:
                n_done = 0
                anew()
            if anew is not None and not quietly:
                what = f"column {wider.column!r}{errors.where(source.name)} changes type after its first rows"
                again = f"counting again from the start, reading it as {wider.kind}s"
                errors.warn(errors.BanburyWarning(f"{what}: {again}"))


def fractional_among(batch: Batch, columns: Collection[str]) -> set[str]:
    """Those of these columns that are not of whole numbers alone."""
    floats = [name for name in batch.names if name in columns and batch.kind(name) == "float"] if columns else []
    return set(floats) - all_whole(batch, floats)


class Held(Source):
    """Batches in memory, which can be pickled."""

    def __init__(
        self,
        kept: Sequence[Batch],
        name: str | None = None,
        target: str | None = None,
        reading: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(self._each, name, target=target, reading=reading or {})
        self.kept = kept

    def _each(self) -> Iterator[Batch]:
        return iter(self.kept)


class Spooled(Source):
    """The batches of a source that can be read once, kept to be read again: in memory, or if many in a temporary file."""

    def __init__(self, source: Source) -> None:
        super().__init__(self._each, source.name, target=source.target, reading=source.reading)
        self._file, self._starts = SpooledTemporaryFile(max_size=IN_MEMORY), list[int]()  # noqa: SIM115 (see __del__)
        for batch in batches(source, "reading"):
            self._starts.append(self._file.tell())
            pickle.dump(batch, self._file, protocol=pickle.HIGHEST_PROTOCOL)

    def _each(self) -> Iterator[Batch]:
        for start in self._starts:
            self._file.seek(start)
            yield pickle.load(self._file)

    def __del__(self) -> None:
        self._file.close()


def align_names(batch: Batch, schema: Schema, reserved: Collection[str] = ()) -> Batch:
    """The batch with the schema's column names where either has positions only."""
    if batch.named and schema.named:
        batch_names = frozenset(batch.names)
        for feature in schema.features:
            for name in feature.inputs:
                if name not in batch_names:
                    raise errors.unknown_column(name, batch.names, batch.source)
        return batch
    if batch.names == schema.columns:
        return batch
    rest = [name for name in batch.names if name not in reserved]
    if len(rest) != len(schema.columns):
        raise errors.schema_mismatch(f"{len(schema.columns)} columns were counted, but these rows have {len(rest)}")
    names = iter(schema.columns)
    return batch.rename(tuple(name if name in reserved else next(names) for name in batch.names))


def features_only(batch: Batch, schema: Schema) -> Batch:
    """The batch without the target, weights and groups."""
    for name in [name for name in batch.names if name not in schema.columns]:
        batch = batch.without(name)
    return batch


@dataclass(frozen=True, eq=False)
class LabelledBatch:
    """Rows of features, their words as codes if rows are kept; and of each row the number of its class, −1 where it has none, its
    weight, its labels and its group.

    ``hashes`` say what rows hold, where they are dealt to folds by that.
    """

    batch: Batch
    schema: Schema
    numbers: NDArray[np.int32]
    names: Sequence[Any]
    weights: Real | None
    sets: LabelSets | None
    hashes: NDArray[np.uint64] | None
    groups: tuple[NDArray[np.int32], Sequence[Any]] | None

    @classmethod
    def of(cls, table: Table, batch: Batch, schema: Schema, dealing: Any, codes_words: bool) -> LabelledBatch:
        labels = table.labels
        sets = None
        if labels.several is None:
            numbers, names, weights = number_classes(batch, schema, labels)
            refuse_continuous(names, batch.n_rows)
        else:
            sets = labels.sets_of(batch)
            numbers = np.where(sets.has_target, 0, -1).astype(np.int32)
            names = [EVERY]
            weights = labels.weights_of(batch)
        by_column = labels.group_name is not None and dealing is None
        groups = dense_numbers(batch.codes(str(labels.group_name)), labels.threads) if by_column else None
        batch = table.align(batch, schema)
        hashes = None if dealing is None else row_hashes(batch, schema, dealing.id)
        batch = features_only(batch, schema)
        if codes_words:  # they are asked for many times
            inputs = (name for f in schema.features if f.counter.reads(f) != "text" for name in f.inputs)
            words = [name for name in inputs if batch.kind(name) == "string"]
            batch = batch.with_codes(words) if words else batch
        return cls(batch, schema, numbers, names, weights, sets, hashes, groups)


# Labels and weights --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Labels:
    """Where the labels, weights and groups of rows come from: columns, arrays, or soft labels."""

    name: str | None  # the target's column
    column: str | None  # the column that labels given as an array were taken from, if they say so
    codes: Codes | None  # labels given as an array
    weight_name: str | None
    weights: Real | None  # (rows,) or (rows, classes)
    classes: tuple[Scalar, ...] | None  # of soft labels, or the one of all rows
    threads: int
    group_name: str | None = None
    groups: Any = None  # one for each row
    several: LabelTarget | None = None  # where rows have sets of labels
    sets: LabelSets | None = None  # those given apart

    @classmethod
    def of(
        cls, target: Any, weights: Any, classes: Sequence[Scalar] | None, threads: int, groups: Any = None
    ) -> Labels:
        target = as_name(target)
        groups = as_name(groups)
        plain = cls.without_target(weights, threads, soft=True)
        if isinstance(target, LabelTarget) or are_sets(target):
            return plain._with_sets(target, classes, groups)
        name = target if isinstance(target, str) else None
        soft = plain.weights is not None and plain.weights.ndim == 2
        codes = None if target is None or name is not None else encode(target, threads)
        expected = "omitted, or a column to ignore, when weights are soft labels"
        errors.require(not soft or codes is None, "target", "an array", expected)
        if soft:
            assert plain.weights is not None
            n_classes = plain.weights.shape[1]
            classes = tuple(range(n_classes)) if classes is None else _class_names(classes)
            if len(classes) != n_classes or not classes:
                raise errors.bad_setting("classes", classes, f"one name for each of the {n_classes} columns of weights")
        elif classes is not None:
            classes = _class_names(classes)
            expected = "omitted unless weights are soft labels or all rows have one class"
            errors.require(target is None and len(classes) == 1, "classes", classes, expected)
        elif target is None:
            raise errors.bad_setting("target", target, "a column's name, one label per row, or soft labels in weights=")
        column = getattr(target, "name", None)
        column = column if isinstance(column, str) else None
        by = (groups, None) if isinstance(groups, str) else (None, groups)
        return cls(name, column, codes, plain.weight_name, plain.weights, classes, threads, *by)

    def _with_sets(self, target: Any, classes: Any, groups: Any) -> Labels:
        """The same with labels that are sets, given apart or found in columns."""
        if self.weights is not None and self.weights.ndim == 2:
            raise errors.bad_setting("weights", "soft labels", "one number per row for multi-label data")
        errors.require(classes is None, "classes", classes, "omitted for multi-label data, which name them")
        group_setting = {"group_name": groups} if isinstance(groups, str) else {"groups": groups}
        if isinstance(target, LabelTarget):
            name = None if target.flags or not target.columns else target.columns[0]
            return replace(self, name=name, several=target, **group_setting)
        return replace(self, several=LabelTarget(), sets=LabelSets.of(target), **group_setting)

    @classmethod
    def without_target(cls, weights: Any, threads: int, soft: bool = False) -> Labels:
        """Weights alone, of rows that belong to no class; ``soft`` labels or not."""
        weights = as_name(weights)
        name = weights if isinstance(weights, str) else None
        array = None if weights is None or name is not None else _weights(weights)
        if array is not None and array.ndim == 2 and not soft:
            raise errors.bad_setting("weights", f"an array of shape {array.shape}", "one number per row")
        return cls(None, None, None, name, array, None, threads)

    def roles(self) -> dict[str, str]:
        """The columns that are no features, each with what it is."""
        roles = [(self.group_name, "named in groups="), (self.weight_name, "named in weights=")]
        targets = (self.name, *(() if self.several is None else self.several.columns))
        return {name: role for name, role in (*roles, *((t, "the target") for t in targets)) if name is not None}

    def aside(self, names: Collection[str]) -> dict[str, str]:
        """The same, with the column among these names that labels were taken from: it would tell the answer."""
        reserved = self.roles()
        if self.column is not None and self.column in names:
            reserved.setdefault(self.column, "the target")
        return reserved

    def check_length(self, n_rows: int) -> None:
        if self.codes is not None and len(self.codes.codes) != n_rows:
            raise errors.length_mismatch("labels", len(self.codes.codes), n_rows)
        if self.sets is not None and len(self.sets) != n_rows:
            raise errors.length_mismatch("labels", len(self.sets), n_rows)
        if self.weights is not None and len(self.weights) != n_rows:
            raise errors.length_mismatch("weights", len(self.weights), n_rows)

    def check_one_class(self) -> None:
        if self.several is not None:
            expected = "one class per row here; for label sets use bb.MultiLabelClassifier or bb.cross_validate"
            raise errors.bad_setting("the target", "sets of labels", expected)

    @property
    def by_column(self) -> bool:
        """Whether all of them come with the rows."""
        return self.codes is None and self.sets is None and self.weights is None and self.groups is None

    def of_rows(self, batch: Batch) -> Labels:
        rows = slice(batch.first_row, batch.first_row + batch.n_rows)
        codes = None if self.codes is None else Codes(self.codes.codes[rows], self.codes.low, self.codes.values)
        weights = None if self.weights is None else self.weights[rows]
        groups = None if self.groups is None else np.asarray(self.groups)[rows]
        sets = None if self.sets is None else self.sets.rows_between(rows.start, rows.stop)
        return replace(self, codes=codes, weights=weights, groups=groups, sets=sets)

    def of_batch(self, batch: Batch, kind: Kind | None) -> tuple[Codes, Real | None]:
        """The batch's labels, of the kind that the first rows settled, and weights."""
        self.check_one_class()
        rows = slice(batch.first_row, batch.first_row + batch.n_rows)
        weights = self.weights_of(batch)
        if self.classes is not None:
            soft = weights is not None and weights.ndim == 2
            return Codes(np.zeros(0 if soft else batch.n_rows, dtype=np.int32), 0, self.classes), weights
        if self.codes is None:
            assert self.name is not None
            return batch.codes(self.name, kind), weights
        return Codes(self.codes.codes[rows], self.codes.low, self.codes.values), weights

    def sets_of(self, batch: Batch) -> LabelSets:
        assert self.several is not None
        if self.sets is None:
            return self.several.of_batch(batch)
        sets = self.sets.rows_between(batch.first_row, batch.first_row + batch.n_rows)
        if len(sets) != batch.n_rows:
            raise errors.length_mismatch("labels", len(self.sets), batch.first_row + batch.n_rows)
        return sets

    def weights_of(self, batch: Batch) -> Real | None:
        if self.weight_name is not None:
            return _weights(batch.numbers([self.weight_name])[0].reshape(-1), batch.first_row)
        return None if self.weights is None else self.weights[batch.first_row : batch.first_row + batch.n_rows]


def _class_names(classes: Any) -> tuple[Scalar, ...]:
    """Names of soft labels' columns: scalars, each once."""
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in classes)
    fit = all(isinstance(name, (bool, int, float, str)) and name == name for name in names)
    errors.require(fit and len(set(names)) == len(names), "classes", names, "texts, numbers or booleans, each once")
    return names


def _weights(weights: Any, first_row: int = 0) -> Real:
    try:
        numbers = np.asarray(weights.filled(np.nan) if isinstance(weights, np.ma.MaskedArray) else weights)
        if numbers.dtype.kind not in "biufO":
            raise TypeError
        array = numbers.astype(np.float64)
    except (TypeError, ValueError):
        raise errors.bad_setting("weights", type(weights).__name__, "numbers, one per row or rows × classes") from None
    large = numbers.dtype.kind in "iu" and array.size and array.max() >= 2.0**53
    if large and (array.astype(numbers.dtype) != numbers).any():
        expected = "whole numbers below 2**53"
        raise errors.bad_setting("weights", int(numbers.max()), expected)
    expected = "one number per row, or rows × classes"
    errors.require(array.ndim in (1, 2), "weights", f"an array of {array.ndim} dimensions", expected)
    if array.size and not (array.min() >= 0 and array.max() < MOST_ROWS):
        row = int(np.argwhere(~(array >= 0) | (array >= MOST_ROWS))[0][0])
        cells = array[row : row + 1].ravel()
        raise bad_weight(first_row + row, float(cells[~(cells >= 0) | (cells >= MOST_ROWS)][0]))
    return array


# Numbers of classes --------------------------------------------------------------------------------------------------


def number_classes(
    batch: Batch, schema: Schema, labels: Labels
) -> tuple[NDArray[np.int32], Sequence[Scalar], Real | None]:
    """The number of each row's class, −1 where it has none; what the numbers stand for; and the rows' weights."""
    codes, weights = labels.of_batch(batch, schema.target_kind)
    if len(codes.codes) != batch.n_rows:
        raise errors.length_mismatch("labels", len(codes.codes), batch.n_rows)
    numbers, names = dense_numbers(codes, labels.threads)
    return numbers, names, weights


def class_number(name: Any, classes: Sequence[Any]) -> int:
    """The number of a class among these, named as it is listed or by an equal value, of Python or of NumPy."""
    plain = name.item() if isinstance(name, (np.generic, np.ndarray)) and name.ndim == 0 else name
    try:
        return tuple(classes).index(plain)
    except (TypeError, ValueError):  # no class is equal to it, or it is nothing that can be compared
        raise errors.unknown_class(plain, classes) from None


def refuse_continuous(values: Sequence[Any], n_rows: int) -> None:
    """Labels that are nearly all different and fractional are no classes."""
    if len(values) > max(100, n_rows // 2) and all(isinstance(v, float) and v % 1 for v in values):
        text = f"the target has {len(values):,} different fractional numbers in {n_rows:,} rows: it looks continuous, "
        text += "but classes are needed. Cut it into classes first, for instance with pandas.cut(...).astype(str)."
        raise errors.BadValue(text)


def doubt(classes: Sequence[Any]) -> None:
    """Warns of classes that are hardly meant: many numbers with fractions, or several labels in one text."""
    _doubt_fractions(classes)
    _doubt_several_labels([name for name in classes if isinstance(name, str)])


def _doubt_several_labels(names: Sequence[str]) -> None:
    """Warns of classes that are put together of others: rows have several labels each, more likely."""
    for mark in DIVIDES:
        divided = [name for name in names if mark in name]
        alone = {part.strip() for name in divided for part in name.split(mark)}.intersection(names)
        if len(divided) > 1 and len(alone) > 1:
            text = f"the class {divided[0]!r} looks like several labels with {mark!r} between them, as do {len(divided):,} of "
            text += f"{len(names):,} classes: {errors.listed(map(repr, sorted(alone)), 3)} are classes on their own. To predict "
            errors.warn(f"{text}each label separately, pass target_delimiter={mark!r}.")
            return


def _doubt_fractions(classes: Sequence[Any]) -> None:
    """Warns of classes that are many numbers with fractions: a measurement, more likely, of which each value is rare."""
    n = sum(isinstance(name, float) and not name.is_integer() for name in classes)
    if n > MOST_FRACTIONS:
        text = f"the target has {n:,} different fractional numbers, and each one becomes a class. With more than "
        text += f"{MOST_FRACTIONS} they look like measurements. Cut the target into a few classes, for instance with "
        errors.warn(f"{text}pandas.cut(...).astype(str), or convert it to texts if each number is meant to be a class.")


def bad_weight(row: int, value: float) -> errors.BadWeight:
    large = "infinite" if value == float("inf") else "too large"
    what = "missing" if value != value else "negative" if value < 0 else large
    text = f"the weight of row {row:,} is {what} ({value}). Weights must be non-negative and below 2**63. To remove "
    return errors.BadWeight(f"{text}rows, subtract their tally.", row=row, value=value)


# What rows hold --------------------------------------------------------------------------------------------------------


def content_hashes(batch: Batch, names: Sequence[str]) -> NDArray[np.uint64]:
    """Of each row a number that these columns of it alone decide, wherever it stands and whatever it came in.

    Whole numbers and floats of one value are alike, and so are texts and what is missing, however they are held.
    """
    hashes = np.zeros(batch.n_rows, dtype=np.uint64)
    if isinstance(batch, Matrix):  # which may have very many columns
        for start in range(0, len(names), WIDE):
            for block in batch.numbers(names[start : start + WIDE]):
                for column in block.reshape(batch.n_rows, -1).T:
                    hashes = mix(hashes * MIX + _bits(column))
        return hashes
    for name in names:
        if batch.kind(name) in ("integer", "float", "boolean"):
            column_hashes = _bits(batch.numbers([name])[0].reshape(batch.n_rows))
        elif batch.kind(name) == "list":
            column_hashes = _mix_columns(batch.lists(name, batch.width(name)).astype(np.float64).view(np.uint64))
        else:
            cells: Any = batch.column(name).cells()
            texts = [cell if type(cell) is str else None if is_missing(cell) else str(cell) for cell in cells]
            text_hashes = {text: _hash_text(text) for text in dict.fromkeys(texts)}
            column_hashes = np.array([text_hashes[text] for text in texts], dtype=np.uint64)
        hashes = mix(hashes * MIX + column_hashes)
    return hashes


def row_hashes(batch: Batch, schema: Schema, column: str | None = None) -> NDArray[np.uint64]:
    """The same of all that is counted, or of one column."""
    inputs = [name for feature in schema.features for name in feature.inputs]
    return content_hashes(batch, inputs if column is None else [column])


def _bits(numbers: NDArray[Any]) -> NDArray[np.uint64]:
    """Numbers as hashes of themselves; 0 and −0 are alike, and so is all that is missing."""
    floats = np.asarray(numbers, dtype=np.float64) + 0.0
    return np.where(np.isnan(floats), MISSING, floats.view(np.uint64))


def _hash_text(text: str | None) -> int:
    if text is None:
        return int(MISSING)
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _mix_columns(columns: NDArray[np.uint64]) -> NDArray[np.uint64]:
    hashes = np.zeros(len(columns), dtype=np.uint64)
    for column in columns.T:
        hashes = mix(hashes * MIX + column)
    return hashes


def mix(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hashes whose bits depend on each other."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * TURN
    return np.asarray(hashes ^ (hashes >> np.uint64(27)))
