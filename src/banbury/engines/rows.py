"""Rows in partitions as validation asks for them: folds are counted apart in one pass, and scored in another where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.engines.counting import Settled
from banbury.engines.partitions import PartitionedTable
from banbury.engines.validation import CountFolds, Folded, ScoreFolds, each_fold
from banbury.rows.folds import Dealing, Round
from banbury.rows.groups import Groups
from banbury.rows.labelled import MemoryRows, open_rows, rows_of_sample
from banbury.rows.scoring import PendingWarnings, leave_out
from banbury.tally.schema import Schema
from banbury.tally.tally import Label, Tally, complete

MOST_MODELS = 200  # of folds and settings that are in a worker's memory at once


@dataclass(frozen=True, eq=False)
class PartitionedRows:
    """Labelled rows in partitions, dealt to folds by what they hold."""

    table: PartitionedTable
    dealing: Dealing
    tally_of_rest: Tally | None = None  # there are none: all rows are here

    @cached_property
    def _counted(self) -> tuple[Settled, Folded]:
        """What is counted, and the folds, counted apart."""
        settled, counts = self.table.count(lambda settled: CountFolds(settled, self.dealing))
        assert counts.tally is not None
        complete(counts.tally, counts.n_rows, settled.schema.target)
        return settled, Folded.of(counts.tally, counts.tally.skipped)

    @property
    def has_sets(self) -> bool:
        """Whether rows have sets of labels, which are validated on a sample."""
        return self.table.has_sets

    @property
    def schema(self) -> Schema:
        return self._counted[0].schema

    @property
    def classes(self) -> tuple[Label, ...]:
        return self._counted[1].groups.classes

    @property
    def weights(self) -> Real | None:
        """None where rows have no weights; those that they have are in the partitions."""
        return None if self.table.settings.weights is None else np.zeros(0)

    @property
    def tally(self) -> Tally:
        """All rows that count."""
        return self._counted[1].groups.total

    def deal(self, folds: Any, seed: int) -> list[Round]:
        """One round, of the folds that have rows."""
        return [each_fold(len(self._counted[1].used))]

    def count_round(self, splits: Round) -> Groups:
        """The folds, counted apart."""
        return self._counted[1].groups

    def under(self, counting: Mapping[str, Any]) -> PartitionedRows:
        """The same rows and folds as another recipe counts them."""
        settings = replace(self.table.settings, **counting)
        return replace(self, table=replace(self.table, settings=settings)) if counting else self

    def with_schema(self, schema: Schema) -> PartitionedRows:
        """The same rows and folds under a schema."""
        return self.under({"schema": schema, "features": "auto"})

    def sample(self, n: int | None = None) -> MemoryRows:
        """At most ``n`` rows that differ, in memory, with every class; models count all the other rows as well."""
        tally = self.table.count_all()
        also = () if self.dealing.id is None else (self.dealing.id,)
        sample = self.table.draw_sample(tally, self.table.n_held if n is None else n, also)
        in_turn = tally.schema.labels is not None and self.dealing.id is None  # as those in memory are dealt
        return rows_of_sample(sample, tally, self.table.settings.threads, None if in_turn else self.dealing)

    def score(self, recipes: Sequence[Any], sinks: Sequence[Any], pending: PendingWarnings) -> None:
        """Scores every row where it is by the models of all rows minus its fold, those of many recipes in one pass."""
        settled, folded = self._counted
        n_together = max(1, MOST_MODELS // len(folded.used))
        for start in range(0, len(recipes), n_together):
            some = recipes[start : start + n_together]
            result = self.table.partitions.sum_of(ScoreFolds.of(settled, self.dealing, folded, some), "scoring on")
            pending.add(result.pending)
            for sink, outcomes in zip(sinks[start:], result.outcomes, strict=False):
                sink.add(outcomes)


@open_rows.register
def _(table: PartitionedTable, folds: Any, seed: int, id: Any = None, deal: Any = "stratified") -> PartitionedRows:
    groups = table.settings.groups
    errors.require(
        groups == id, "groups", groups, "omitted when rows are in partitions, because id= decides their folds"
    )
    return PartitionedRows(table, Dealing.of(folds, seed, id))


@leave_out.register
def _(
    rows: PartitionedRows,
    splits: Round,
    recipes: Sequence[Any],
    want: str,
    sinks: Sequence[Any],
    pending: PendingWarnings,
) -> None:
    rows.score(recipes, sinks, pending)
