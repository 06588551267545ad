"""A sample of rows, chosen by what they hold: the same whatever their order, and wherever they are.

Each row has a hash of its columns, its class, its weight and its group. The sample are the rows of the lowest hashes, and of
every class or label the one row of the lowest hash; rows that are alike have one hash, and are in it together or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.reading import Batch, Codes, encode
from banbury.reading.batches import join_batches
from banbury.sums import in_order
from banbury.tally.label_sets import LabelSets, LabelTarget
from banbury.tally.schema import Schema
from banbury.tally.table import MIX, Held, Labels, Table, content_hashes, mix, number_classes
from banbury.tally.tally import Tally

MOST_ROWS = 100_000  # of a sample, where nothing else is said and rows are in partitions
LARGEST = float(2**64)  # above all hashes


@dataclass(frozen=True, eq=False)
class RowSample:
    """Distinct rows in the order of their hashes, how many copies each has, and how many rows they were sampled from.

    They are the ``n`` rows with the lowest hashes, and the first of every class, so that samples of parts combine to
    the sample of the whole. ``chosen`` are those that are used.
    """

    n: int  # rows that differ, at most, unless there are more classes
    n_rows: int  # that have a class and a weight
    hashes: NDArray[np.uint64]
    times: Int
    batch: Batch | None  # None where there is no row
    labels: NDArray[Any]  # names of classes, or of several labels in a tuple
    weights: Real | None
    groups: NDArray[Any] | None

    @classmethod
    def of(cls, table: Table, schema: Schema, n: int, below: float = LARGEST, also: Sequence[str] = ()) -> RowSample:
        """Samples the rows of a table whose hashes are lower than ``below``, including the columns in ``also`` that are
        not counted.
        """
        errors.check_whole("sample", n, 2)
        sample = cls(n, 0, np.zeros(0, np.uint64), np.zeros(0, np.int64), None, np.zeros(0, object), None, None)
        inputs = {name for feature in schema.features for name in feature.inputs}.union(also)
        beside = [name for name in also if name not in schema.columns]
        columns = [*(name for name in schema.columns if name in inputs), *beside]  # whose values choose the rows
        sampled = [*schema.columns, *beside]
        for batch in table.batches("sampling"):
            fits = table.align(batch, schema)
            numbers, names, weights = _number_rows(table, batch, schema)
            if weights is not None and weights.ndim == 2:
                raise errors.bad_setting("sample", n, "omitted with soft labels")
            there = np.flatnonzero(numbers >= 0 if weights is None else (numbers >= 0) & (weights > 0))
            groups = group_names(table, batch)
            of_classes = hash_names([repr(name) for name in names])
            of_groups = None if groups is None else hash_names(groups[there].tolist())
            fits = fits.only([name for name in sampled if name in fits.names])
            hashes = content_hashes(fits, columns)
            hashes = mix(hashes[there] * MIX + of_classes[numbers[there]])
            for more in (None if weights is None else weights[there].view(np.uint64), of_groups):
                hashes = hashes if more is None else mix(hashes * MIX + more)
            hashes = mix(hashes * MIX)
            last = min(below, LARGEST if len(sample.hashes) < n else float(sample.hashes[n - 1]))
            first = sample._may_be_first(hashes, numbers[there], names, last)
            low = np.flatnonzero((hashes.astype(np.float64) <= last) | first)
            kept = there[low]
            classes = np.empty(len(kept), dtype=object)
            classes[:] = [names[c] for c in numbers[kept].tolist()]
            row_weights = None if weights is None else weights[kept]
            one = np.ones(len(kept), dtype=np.int64)
            of = None if groups is None else groups[kept]
            sample += cls(n, len(there), hashes[low], one, fits.take(kept), classes, row_weights, of)
        return sample

    def __add__(self, other: RowSample) -> RowSample:
        """The sample of all rows that both are samples of."""
        some = [one for one in (self, other) if one.batch is not None and len(one.hashes)]
        n = self.n
        n_rows = self.n_rows + other.n_rows
        if not some:
            return replace(self, n_rows=n_rows)
        every_hash = np.concatenate([one.hashes for one in some])
        hashes, first, which = np.unique(every_hash, return_index=True, return_inverse=True)
        times = np.zeros(len(hashes), dtype=np.int64)
        np.add.at(times, which, np.concatenate([one.times for one in some]))
        all_labels = np.concatenate([one.labels for one in some])[first]
        lowest = _classes_of(all_labels[:n])
        more = [n + row for name, row in _first_rows(all_labels[n:]).items() if name not in lowest]
        kept = np.concatenate([np.arange(min(n, len(first))), np.unique(np.array(more, dtype=np.int64))])
        first = first[kept]
        batches = [one.batch for one in some if one.batch is not None]
        batch = (batches[0] if len(batches) == 1 else join_batches(batches)).take(first)
        weights = [one.weights for one in some if one.weights is not None]
        groups = [one.groups for one in some if one.groups is not None]
        row_weights, of = (np.concatenate(arrays)[first] if arrays else None for arrays in (weights, groups))
        return RowSample(n, n_rows, hashes[kept], times[kept], batch, all_labels[kept], row_weights, of)

    def _may_be_first(
        self, hashes: NDArray[np.uint64], numbers: NDArray[np.int32], names: Sequence[Any], last: float
    ) -> NDArray[np.bool_]:
        """Which of some more rows, whose classes have these numbers, may be the first of a class none of whose rows is below."""
        n_below = int(np.count_nonzero(self.hashes.astype(np.float64) <= last))
        highest = np.uint64(2**64 - 1)
        so_far = dict.fromkeys(_classes_of(self.labels[:n_below]), np.uint64(0))
        for name, row in _first_rows(self.labels[n_below:]).items():
            so_far.setdefault(name, self.hashes[n_below + row])
        highest_hashes = [
            max((so_far.get(class_name, highest) for class_name in _classes(name)), default=np.uint64(0))
            for name in names
        ]
        lowest = np.full(len(names), highest)
        np.minimum.at(lowest, numbers, hashes)
        return np.asarray(hashes <= np.minimum(lowest, np.array(highest_hashes, dtype=np.uint64))[numbers])

    @cached_property
    def chosen(self) -> Int:
        """The first row of every class, and as many rows with the lowest hashes as fit."""
        is_first = np.zeros(len(self.hashes), dtype=np.bool_)
        is_first[list(_first_rows(self.labels).values())] = True
        later_rows = np.flatnonzero(~is_first)[: max(self.n - int(is_first.sum()), 0)]
        return np.sort(np.concatenate([np.flatnonzero(is_first), later_rows]))

    def is_complete(self, below: float) -> bool:
        """Whether no row with a higher hash than this could be in the sample."""
        return below >= LARGEST or int(np.count_nonzero(self.hashes.astype(np.float64) <= below)) >= self.n

    @property
    def n_sampled(self) -> int:
        """The number of sampled rows, including copies."""
        return int(self.times[self.chosen].sum())

    @property
    def has_too_many_alike(self) -> bool:
        """Whether copies are merged into one row because there would be more rows than requested."""
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
        """Returns the sampled rows under a schema. If there are too many, copies are merged into one row with their
        total weight.
        """
        if self.batch is None:
            raise errors.empty_data(None, "no row has a class and a weight")
        alike = self.has_too_many_alike
        at = self.chosen if alike else np.repeat(self.chosen, self.times[self.chosen])
        weights = None if self.weights is None else self.weights[at]
        if alike:
            weights = self.times[at].astype(np.float64) * (1.0 if weights is None else weights)
        groups = None if self.groups is None else self.groups[at]
        batch = self.batch.take(at)
        plain = Labels(None, None, None, None, weights, None, threads, groups=groups)
        if schema.labels is not None:
            sets = LabelSets.of_cells(self.labels[at].tolist(), None)
            return Table(Held((batch,)), replace(plain, several=LabelTarget(), sets=sets), schema)
        names: Any = in_order(set(self.labels.tolist()))
        place = {name: c for c, name in enumerate(names)}
        codes = np.array([place[name] for name in self.labels[at].tolist()], dtype=np.int32)
        return Table(Held((batch,)), replace(plain, codes=Codes(codes, 0, list(names))), schema)


@singledispatch
def sample_rows(table: Any, tally: Tally, n: int, also: Sequence[str] = ()) -> RowSample:
    """Samples the rows of a table that a tally counted."""
    return RowSample.of(table, tally.schema, n, also=also)


def _number_rows(table: Table, batch: Batch, schema: Schema) -> tuple[NDArray[np.int32], Sequence[Any], Real | None]:
    """The number of each row's class, or of its set of labels, −1 where it has none; what numbers stand for; and weights."""
    if table.labels.several is None:
        return number_classes(table.align(batch, schema), schema, table.labels)
    sets = table.labels.sets_of(batch)
    number_of_set = dict[tuple[Any, ...], int]()
    ends = zip(sets.offsets.tolist(), sets.offsets[1:].tolist(), strict=False)
    label_sets = (tuple(sorted((sets.names[c] for c in sets.codes[a:b].tolist()), key=repr)) for a, b in ends)
    numbers = np.array(
        [number_of_set.setdefault(label_set, len(number_of_set)) for label_set in label_sets], dtype=np.int32
    )
    return np.where(sets.has_target, numbers, -1).astype(np.int32), list(number_of_set), table.labels.weights_of(batch)


def _classes(name: Any) -> tuple[Any, ...]:
    """The class of a row, or its labels."""
    return name if isinstance(name, tuple) else (name,)


def _classes_of(labels: NDArray[Any]) -> set[Any]:
    return set[Any]().union(*map(_classes, set(labels.tolist())))


def _first_rows(labels: NDArray[Any]) -> dict[Any, int]:
    """The first row of each class, or of each label."""
    rows: dict[Any, int] = {}
    for row, name in enumerate(labels.tolist()):
        for class_name in _classes(name):
            rows.setdefault(class_name, row)
    return rows


def group_names(table: Table, batch: Batch) -> NDArray[Any] | None:
    """Returns the name of the group of each row; None if rows have no groups."""
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
    return np.asarray(names[np.asarray(codes.codes).astype(np.int64) - codes.low])


def hash_names(names: Sequence[str]) -> NDArray[np.uint64]:
    """Returns a hash of each name of a group or class."""
    hash_of_name = {name: _hash_name(name) for name in set(names)}
    return np.array([hash_of_name[name] for name in names], dtype=np.uint64)


def _hash_name(name: str) -> int:
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
