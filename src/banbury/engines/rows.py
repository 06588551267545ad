"""Rows in partitions for cross-validation: one pass counts each fold, a second scores it on the workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.engines.counting import CountPlan
from banbury.engines.partitions import PartitionedTable
from banbury.engines.validation import CountFolds, FoldTallies, ScoreFolds, make_fold_set
from banbury.rows.folds import ContentFolds, FoldSet
from banbury.rows.groups import Groups
from banbury.rows.labelled import MemoryRows, open_rows, rows_of_sample
from banbury.rows.scoring import PendingWarnings, leave_out
from banbury.tally.schema import Schema
from banbury.tally.tally import Label, Tally, check_classes

MOST_MODELS = 200  # models, over folds and recipes, that a worker holds at once


@dataclass(frozen=True, eq=False)
class PartitionedRows:
    """Labelled rows in partitions, dealt to folds by their content or an id column."""

    table: PartitionedTable
    content_folds: ContentFolds
    tally_of_rest: Tally | None = None  # of counted rows that are not among these; none, since these are all rows

    @cached_property
    def _counted(self) -> tuple[CountPlan, FoldTallies]:
        """How rows are counted, and the tallies of the folds: counted once, in one pass."""
        plan, counts = self.table.count(lambda plan: CountFolds(plan, self.content_folds))
        assert counts.tally is not None
        check_classes(counts.tally, counts.n_rows, plan.schema.target)
        return plan, FoldTallies.of(counts.tally, counts.tally.skipped)

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
        """None if rows have no weights; otherwise an empty array, since the weights are on the workers."""
        return None if self.table.settings.weights is None else np.zeros(0)

    @property
    def tally(self) -> Tally:
        """The tally of all rows."""
        return self._counted[1].groups.total

    def fold_sets(self, folds: Any, seed: int) -> list[FoldSet]:
        """Returns one fold set, of the folds that have rows. It has no row numbers, since rows are on the workers.
        ``folds`` and ``seed`` are ignored, because ``content_folds`` decides.
        """
        return [make_fold_set(len(self._counted[1].used_folds))]

    def count_fold_set(self, fold_set: FoldSet) -> Groups:
        """Returns the tallies of the folds, which are the groups of ``fold_set``."""
        return self._counted[1].groups

    def under(self, counting: Mapping[str, Any]) -> PartitionedRows:
        """Returns the same rows and folds, counted with other settings: ``counting`` has fields of ``CountSettings`` by
        name.
        """
        settings = replace(self.table.settings, **counting)
        return replace(self, table=replace(self.table, settings=settings)) if counting else self

    def with_schema(self, schema: Schema) -> PartitionedRows:
        """Returns the same rows and folds under a schema."""
        return self.under({"schema": schema, "features": "auto"})

    def sample(self, n: int | None = None) -> MemoryRows:
        """Returns at most ``n`` distinct rows in memory, with every class, in the folds that ``content_folds`` gives
        them; models made of them also count all other rows. None means the usual size.
        """
        tally = self.table.count_all()
        id_columns = () if self.content_folds.id is None else (self.content_folds.id,)
        sample = self.table.draw_sample(tally, self.table.sample_size if n is None else n, id_columns)
        # Rows with label sets and without an id are assigned to folds later, as those in memory are.
        is_dealt_in_turn = tally.schema.labels is not None and self.content_folds.id is None
        return rows_of_sample(
            sample, tally, self.table.settings.threads, None if is_dealt_in_turn else self.content_folds
        )

    def score(self, recipes: Sequence[Any], sinks: Sequence[Any], pending: PendingWarnings) -> None:
        """Scores every row, for each recipe, with the model of all rows minus its fold. Adds the outcomes of each
        recipe to its sink (``sinks`` has one per recipe), and warnings to ``pending``, to be given later.
        """
        plan, fold_tallies = self._counted  # how rows are counted, and the tallies of the folds
        n_together = max(1, MOST_MODELS // len(fold_tallies.used_folds))  # recipes that are scored in one pass
        for start in range(0, len(recipes), n_together):
            batch_of_recipes = recipes[start : start + n_together]
            # The outcomes of each of these recipes, and warnings.
            scored = self.table.partitions.sum_of(
                ScoreFolds.of(plan, self.content_folds, fold_tallies, batch_of_recipes), "scoring on"
            )
            pending.add(scored.pending)
            for sink, outcomes in zip(sinks[start:], scored.outcomes, strict=False):
                sink.add(outcomes)


@open_rows.register
def _(table: PartitionedTable, folds: Any, seed: int, id: Any = None, deal: Any = "stratified") -> PartitionedRows:
    """Returns the rows of partitions, dealt to ``folds`` folds by their content and ``seed``, or by the column ``id``.
    ``deal`` is not needed here.
    """
    groups = table.settings.groups
    errors.require(
        groups == id, "groups", groups, "omitted when rows are in partitions, because id= decides their folds"
    )
    return PartitionedRows(table, ContentFolds.of(folds, seed, id))


@leave_out.register
def _(
    rows: PartitionedRows,
    fold_set: FoldSet,
    recipes: Sequence[Any],
    want: str,
    sinks: Sequence[Any],
    pending: PendingWarnings,
) -> None:
    """Scores the rows on the workers, and adds the outcomes of each recipe to its sink, and warnings to ``pending``.
    ``fold_set`` and ``want`` are not needed here.
    """
    rows.score(recipes, sinks, pending)
