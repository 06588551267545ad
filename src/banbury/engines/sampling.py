"""Samples the rows of all partitions, for learning that needs rows in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from banbury.engines.counting import CountPlan, EachPart
from banbury.reading.batches import join_batches
from banbury.rows.sampling import RowSample


@dataclass(frozen=True)
class SampleRows(EachPart):
    """Samples the rows of a partition: at most ``n`` with the lowest hashes below ``hash_limit``."""

    plan: CountPlan
    groups: str | None  # the column that says which rows belong together
    n: int
    hash_limit: float
    also: tuple[str, ...] = ()  # uncounted columns that come with the rows

    def value_of(self, rows: Any) -> RowSample:
        """Returns the sample of a partition's rows: at most ``n`` with the lowest hashes below ``hash_limit``, with
        their ``groups`` and the uncounted columns ``also``. Its columns are copied, so that the partition need not stay
        in memory.
        """
        table = replace(self.plan.settings, groups=self.groups).table(rows)
        sample = RowSample.of(table, self.plan.schema, self.n, self.hash_limit, self.also)
        return replace(sample, batch=join_batches([sample.batch]))
