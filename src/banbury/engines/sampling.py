"""A sample of the rows of all partitions, brought here to learn from what only rows in memory can teach."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from banbury.engines.counting import EachPart, Settled
from banbury.reading.batches import join_batches
from banbury.rows.sampling import RowSample


@dataclass(frozen=True)
class SampleRows(EachPart):
    """The sample of a partition's rows, among those of lower hashes than ``below``."""

    settled: Settled
    groups: str | None
    n: int
    below: float
    also: tuple[str, ...] = ()  # columns that are not counted

    def value_of(self, rows: Any) -> RowSample:
        table = replace(self.settled.settings, groups=self.groups).table(rows)
        sample = RowSample.of(table, self.settled.schema, self.n, self.below, self.also)
        return replace(sample, batch=None if sample.batch is None else join_batches([sample.batch]))
