"""A sample of the rows of all partitions, brought here to learn from what only rows in memory can teach."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from banbury import errors
from banbury.engines.counting import Settled, Several, at_partition, has_no_rows, here
from banbury.engines.engine import Parcel
from banbury.engines.parcels import in_chunks
from banbury.reading.batches import joined
from banbury.weighing import RowSample


@dataclass(frozen=True)
class SampleRows:
    """The sample of a partition's rows, among those of lower hashes than ``below``; an empty parcel where there is none."""

    settled: Settled
    groups: Any
    n: int
    below: float
    also: tuple[str, ...] = ()  # columns that are not counted

    def __call__(self, partition: int, rows: Any) -> Parcel:
        files = rows.files if isinstance(rows, Several) else {partition: rows}
        return add_samples(self._sampled(number, part) for number, part in files.items())

    def _sampled(self, partition: int, rows: Any) -> Parcel:
        with at_partition(partition), here(rows) as table:
            if has_no_rows(table):
                return []
            try:
                read = self.settled.table(table, self.groups)
                return _packed(RowSample.of(read, self.settled.schema, self.n, self.below, self.also))
            except errors.EmptyData:  # a file that has no rows
                return []


def add_samples(parcels: Iterable[Any]) -> Parcel:
    """The sample of the rows of several partitions."""
    found = [sample_in(parcel) for parcel in parcels if parcel]
    return _packed(RowSample.total(found)) if found else []


def sample_in(parcel: Parcel) -> RowSample:
    sample: RowSample = pickle.loads(b"".join(parcel))
    return sample


def _packed(sample: RowSample) -> Parcel:
    batch = None if sample.batch is None else joined([sample.batch])
    return in_chunks(pickle.dumps(replace(sample, batch=batch)))
