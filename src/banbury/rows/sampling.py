"""A sample of rows, selected by their content, so that neither their order nor their place matters.

Each row has a hash of its columns, its class, its weight and its group. The sample has the rows with the lowest hashes, and the
row with the lowest hash of every class or label. Identical rows have the same hash, so that all or none of them are sampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.reading import Batch, Codes, Source, encode
from banbury.reading.batches import join_batches
from banbury.sums import sort_keys
from banbury.tally.label_sets import LabelSets, LabelTarget
from banbury.tally.schema import Schema
from banbury.tally.table import (
    HASH_FACTOR,
    Labels,
    Table,
    content_hashes,
    hash_texts,
    mix,
    number_classes,
)
from banbury.tally.tally import Tally

MOST_ROWS = 100_000  # rows of a sample, unless given
ABOVE_ALL_HASHES = float(2**64)  # hashes have 64 bits


@dataclass(frozen=True, eq=False)
class RowSample:
    """Distinct rows in the order of their hashes, how many copies each has, and how many rows they were sampled from.

    They are the ``n`` rows with the lowest hashes, and the first of every class, so that samples of parts combine to
    the sample of the whole. ``chosen`` are those that are used.
    """

    n: int  # the largest number of distinct rows, unless there are more classes
    n_rows: int  # rows with a class and a weight that were sampled from
    hashes: NDArray[np.uint64]  # of the rows, ascending; rows with equal hashes are copies
    times: Int  # the number of copies of each row
    batch: Batch  # the rows
    labels: NDArray[Any]  # for each row the name of its class, or a tuple of its labels
    weights: Real | None  # (rows,)
    groups: NDArray[Any] | None  # the name of each row's group

    @classmethod
    def of(
        cls, table: Table, schema: Schema, n: int, below: float = ABOVE_ALL_HASHES, also: Sequence[str] = ()
    ) -> RowSample:
        """Returns a sample of the rows of a table: those with the lowest hashes, if these are at most ``below``, and
        the first of every class. ``n`` is the largest number of distinct rows, unless there are more classes. Rows come
        with the columns in ``also`` that ``schema`` does not count.
        """
        errors.check_whole("sample", n, 2)
        inputs = set(schema.features.inputs).union(also)  # columns whose content selects rows
        uncounted = [name for name in also if name not in schema.columns]
        hashed_columns = [*(name for name in schema.columns if name in inputs), *uncounted]
        kept_columns = [*schema.columns, *uncounted]
        sample: RowSample | None = None
        for batch in table.batches("sampling"):
            # Of all rows of the batch; below, ``class_numbers`` and ``hashes`` are those of the usable rows.
            class_numbers, class_names, weights = _number_rows(table, batch, schema)
            if weights is not None and weights.ndim == 2:
                raise errors.bad_setting("sample", n, "omitted with soft labels")
            groups = group_names(table, batch)
            usable_rows = np.flatnonzero(
                class_numbers >= 0 if weights is None else (class_numbers >= 0) & (weights > 0)
            )
            aligned_batch = table.align(batch, schema)
            aligned_batch = aligned_batch.only([name for name in kept_columns if name in aligned_batch.names])
            class_numbers = class_numbers[usable_rows]
            hashes = content_hashes(aligned_batch, hashed_columns)[usable_rows]
            hashes = mix(hashes * HASH_FACTOR + hash_texts([repr(name) for name in class_names])[class_numbers])
            if weights is not None:
                hashes = mix(hashes * HASH_FACTOR + weights[usable_rows].view(np.uint64))
            if groups is not None:
                hashes = mix(hashes * HASH_FACTOR + hash_texts(groups[usable_rows].tolist()))
            hashes = mix(hashes * HASH_FACTOR)
            # Only rows that may enter the sample are copied.
            largest_hash = below
            if sample is not None and len(sample.hashes) >= n:
                largest_hash = min(below, float(sample.hashes[n - 1]))
            lowest_of_class = np.full(len(class_names), np.iinfo(np.uint64).max)
            np.minimum.at(lowest_of_class, class_numbers, hashes)
            may_enter = (hashes.astype(np.float64) <= largest_hash) | (hashes == lowest_of_class[class_numbers])
            rows = usable_rows[may_enter]  # numbers in the batch
            labels = np.empty(len(rows), dtype=object)
            labels[:] = [class_names[class_number] for class_number in class_numbers[may_enter].tolist()]
            batch_sample = cls(
                n=n,
                n_rows=len(usable_rows),
                hashes=hashes[may_enter],
                times=np.ones(len(rows), dtype=np.int64),
                batch=aligned_batch.take(rows),
                labels=labels,
                weights=None if weights is None else weights[rows],
                groups=None if groups is None else groups[rows],
            )
            sample = batch_sample._trim() if sample is None else sample + batch_sample
        assert sample is not None  # a table without rows has raised an error
        return sample

    def __add__(self, other: RowSample) -> RowSample:
        """Returns the sample of the rows that both were sampled from."""
        samples = [sample for sample in (self, other) if len(sample.hashes)] or [self]
        combined = replace(samples[0], n_rows=self.n_rows + other.n_rows)
        if len(samples) == 1:
            return combined._trim()

        def join(arrays: Sequence[Any]) -> Any:
            """Concatenates the arrays of both samples; None if the samples have none."""
            return None if arrays[0] is None else np.concatenate(arrays)

        return replace(
            combined,
            hashes=join([sample.hashes for sample in samples]),
            times=join([sample.times for sample in samples]),
            batch=join_batches([sample.batch for sample in samples]),
            labels=join([sample.labels for sample in samples]),
            weights=join([sample.weights for sample in samples]),
            groups=join([sample.groups for sample in samples]),
        )._trim()

    def _trim(self) -> RowSample:
        """Returns the sample in the order of hashes, with rows of equal hashes merged, and without those that are
        neither among the ``n`` lowest hashes nor the first row of a class.
        """
        # The distinct hashes, the first row with each, and for each row the index of its hash among them.
        hashes, first_copies, hash_numbers = np.unique(self.hashes, return_index=True, return_inverse=True)
        times = np.zeros(len(hashes), dtype=np.int64)
        np.add.at(times, hash_numbers, self.times)
        first_rows = list(_first_rows(self.labels[first_copies]).values())  # of each class, as indices of hashes
        kept_positions = np.union1d(np.arange(min(self.n, len(hashes))), np.array(first_rows, dtype=np.int64))
        rows = first_copies[kept_positions]
        return replace(
            self,
            hashes=hashes[kept_positions],
            times=times[kept_positions],
            batch=self.batch.take(rows),
            labels=self.labels[rows],
            weights=None if self.weights is None else self.weights[rows],
            groups=None if self.groups is None else self.groups[rows],
        )

    @cached_property
    def chosen(self) -> Int:
        """The positions in this sample, ascending, of the rows to use: the first row of every class, and as many others
        with the lowest hashes as fit into ``n``.
        """
        is_first = np.zeros(len(self.hashes), dtype=np.bool_)  # whether each row is the first of a class
        is_first[list(_first_rows(self.labels).values())] = True
        later_rows = np.flatnonzero(~is_first)[: max(self.n - int(is_first.sum()), 0)]
        return np.sort(np.concatenate([np.flatnonzero(is_first), later_rows]))

    def is_complete(self, below: float) -> bool:
        """Whether a sample of rows with hashes up to ``below`` is that of all rows, because no row with a higher hash
        could be among the ``n`` lowest.
        """
        return below >= ABOVE_ALL_HASHES or int(np.count_nonzero(self.hashes.astype(np.float64) <= below)) >= self.n

    @property
    def n_sampled(self) -> int:
        """The number of sampled rows, including copies: ``times`` has the copies of each row, ``chosen`` the positions
        of the rows that are used.
        """
        return int(self.times[self.chosen].sum())

    @property
    def has_too_many_alike(self) -> bool:
        """Whether ``table`` merges copies into one row, because there would be more rows than ``n``, the largest number
        requested.
        """
        return self.n_sampled > max(self.n, len(self.chosen))

    def check_subtractable(self) -> None:
        """Raises an error if merged copies have fractional weights, because their sums would not be exact to the last
        bit.
        """
        allowed = f"{self.n_sampled:,} at least, because so many rows are identical and have weights"
        errors.require(not self.has_too_many_alike or self.weights is None, "sample", self.n, allowed)

    @property
    def is_whole(self) -> bool:
        """Whether the sample contains every row."""
        return self.n_sampled == self.n_rows

    def table(self, schema: Schema, threads: int) -> Table:
        """Returns the sampled rows (those in ``chosen``, with their copies) as a table under a schema. If there are too
        many, copies are merged into one row with their total weight. ``times`` has the number of copies of each row.
        """
        if not len(self.hashes):
            raise errors.empty_data(None, "no row has a class and a weight")
        merges_copies = self.has_too_many_alike
        # In this sample, of the rows of the table.
        positions = self.chosen if merges_copies else np.repeat(self.chosen, self.times[self.chosen])
        weights = None if self.weights is None else self.weights[positions]
        if merges_copies:
            weights = self.times[positions].astype(np.float64) * (1.0 if weights is None else weights)
        groups = None if self.groups is None else self.groups[positions]
        batch = self.batch.take(positions)
        labels = Labels.of_arrays(codes=None, weights=weights, threads=threads, groups=groups)
        if schema.labels is not None:
            sets = LabelSets.of_cells(self.labels[positions].tolist(), delimiter=None)
            return Table(Source.of([batch]), replace(labels, sets_from=LabelTarget(), sets=sets), schema)
        names: Any = sort_keys(set(self.labels.tolist()))
        number_of = {name: number for number, name in enumerate(names)}  # class → number
        codes = np.array([number_of[name] for name in self.labels[positions].tolist()], dtype=np.int32)
        return Table(Source.of([batch]), replace(labels, codes=Codes(codes, low=0, values=list(names))), schema)


@singledispatch
def sample_rows(table: Any, tally: Tally, n: int) -> RowSample:
    """Returns a sample of at most ``n`` distinct rows of a table, all of which the tally counted."""
    return RowSample.of(table, tally.schema, n)


def _number_rows(table: Table, batch: Batch, schema: Schema) -> tuple[NDArray[np.int32], Sequence[Any], Real | None]:
    """Returns three things: the class number of each row of a batch, −1 for none; the class of each number; and the
    weights of the rows, None if all are 1. With several labels per row, sets of labels (sorted tuples) take the place
    of classes. ``table.labels`` says where the labels and weights of the batch are.
    """
    if table.labels.sets_from is None:
        return number_classes(table.align(batch, schema), schema, table.labels)
    sets = table.labels.sets_of(batch)
    number_of_set = dict[tuple[Any, ...], int]()  # set of labels → number
    code_ranges = zip(sets.offsets.tolist(), sets.offsets[1:].tolist(), strict=False)  # of ``sets.codes``, by row
    label_sets = (
        tuple(sorted((sets.names[label] for label in sets.codes[start:end].tolist()), key=repr))
        for start, end in code_ranges
    )
    set_numbers = np.array(
        [number_of_set.setdefault(label_set, len(number_of_set)) for label_set in label_sets], dtype=np.int32
    )
    return (
        np.where(sets.has_target, set_numbers, -1).astype(np.int32),
        list(number_of_set),
        table.labels.weights_of(batch),
    )


def _first_rows(labels: NDArray[Any]) -> dict[Any, int]:
    """Returns for each class or label the position of the first row that has it. ``labels`` has a class, or a tuple of
    labels, for each row.
    """
    positions = range(len(labels))
    # A cell is a class, or a tuple of labels.
    first_row_of_cell = dict(zip(reversed(labels.tolist()), reversed(positions), strict=True))
    first_row_of: dict[Any, int] = {}
    for cell, row in first_row_of_cell.items():
        for name in cell if isinstance(cell, tuple) else (cell,):
            first_row_of[name] = min(row, first_row_of.get(name, row))
    return first_row_of


def group_names(table: Table, batch: Batch) -> NDArray[Any] | None:
    """Returns the name of the group of each row of a batch, as text, "" if it has none; None if rows have no groups.
    ``table.labels`` says where the groups of the batch are: in a column, or in an array.
    """
    labels = table.labels.of_rows(batch)
    if labels.group_name is not None:
        codes = batch.codes(labels.group_name)
    elif labels.groups is not None:
        if len(labels.groups) != batch.n_rows:
            raise errors.length_mismatch("groups", len(labels.groups), batch.n_rows)
        codes = encode(labels.groups, labels.threads)
    else:
        return None
    names = np.array([*map(str, codes.values), ""], dtype=object)
    # Code ``low + k`` stands for name k. A missing group has the position −1, which is that of the empty name.
    return names[np.asarray(codes.codes).astype(np.int64) - codes.low]
