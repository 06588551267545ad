"""Cross-validation on partitions: one pass counts each fold, a second scores it with a model of all other rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.engines.counting import CountPart, CountPlan, EachPart
from banbury.families.keys import number_values
from banbury.model.naive_bayes import Model
from banbury.quality.recipes import Plain
from banbury.quality.results import Outcomes
from banbury.reading import Batch, Codes
from banbury.rows.folds import ContentFolds, FoldSet, Split
from banbury.rows.groups import Groups
from banbury.rows.labelled import MemoryRows, occurring_names, renumber
from banbury.rows.scoring import FoldModels, PendingWarnings, score_batch
from banbury.sums import sort_keys
from banbury.tally.schema import Schema
from banbury.tally.table import Table, number_classes
from banbury.tally.tally import Label, Tally, count_rows


@dataclass(frozen=True)
class CountFolds(CountPart):
    """Counts a partition with a class for each pair of fold and class."""

    content_folds: ContentFolds

    def count_batch(self, schema: Schema, table: Table, batch: Batch) -> Iterator[Tally]:
        """Yields the tally of a batch under the schema. Its classes are JSON texts of a list of fold and class, such as
        ``[2, "spam"]``. ``table`` says how its rows are labelled and weighted.
        """
        aligned = table.align(batch, schema)
        n_folds = self.content_folds.n_folds
        # Of each row the class number, −1 for none, and the weight (None: all 1); and the names of the classes.
        class_numbers, names, weights = number_classes(aligned, schema, table.labels)
        # The number of each row's pair of class and fold, −1 for rows without a class.
        codes = np.where(
            class_numbers >= 0, class_numbers * np.int32(n_folds) + self.content_folds.folds(aligned, schema), -1
        )
        pair_names = [json.dumps([fold, name]) for name in names for fold in range(n_folds)]
        labels = Codes(codes.astype(np.int32), low=0, values=pair_names)
        yield count_rows(aligned, schema, labels, weights, table.labels.threads)


@dataclass(frozen=True, eq=False)
class FoldTallies:
    """The tallies of all folds."""

    groups: Groups  # group k has the rows of fold number ``used_folds[k]``
    used_folds: tuple[int, ...]  # the numbers of the folds that have rows

    @classmethod
    def of(cls, counted: Tally, skipped: int) -> FoldTallies:
        """Returns the folds of the tally ``counted``, which ``CountFolds`` made and whose classes are JSON texts of
        fold and class. ``skipped`` is the number of rows without a class, which were skipped.
        """
        pairs = [json.loads(str(name)) for name in counted.classes]  # [fold, class]
        used_folds = tuple(sorted({fold for fold, _ in pairs}))  # those that have rows
        errors.require(
            len(used_folds) >= 2,
            "folds",
            f"{len(used_folds)} that has rows",
            "at least two folds; identical rows share a fold",
        )
        classes: Any = sort_keys({name for _, name in pairs})
        # The number of each pair as ``Groups`` has it: class * number of folds + fold.
        group_numbers = [classes.index(name) * len(used_folds) + used_folds.index(fold) for fold, name in pairs]
        order = np.argsort(group_numbers)
        reordered = counted._of_classes(order.tolist(), tuple(sorted(group_numbers)))
        return cls(Groups(replace(reordered, skipped=skipped), classes, len(used_folds)), used_folds)


def make_fold_set(n_folds: int) -> FoldSet:
    """Returns a fold set in which each of ``n_folds`` folds is scored by a model of all others. Its rows are on the
    workers, so it has no row numbers. Fold k is group k and split k.
    """
    no_rows = np.zeros(0, dtype=np.int64)
    # Split k learns from every group but k.
    splits = tuple(Split(no_rows, is_learned) for is_learned in ~np.eye(n_folds, dtype=np.bool_))
    return FoldSet(np.zeros(0, dtype=np.int32), n_folds, splits)


class _ModelCache:
    """The models of the folds that a worker has made, cached for all its partitions."""

    models: tuple[str, list[list[Model]], PendingWarnings] | None = None  # digest, models by recipe and fold, warnings


@dataclass(frozen=True)
class Scored:
    """The outcomes of some rows for each recipe, and warnings to give later."""

    outcomes: tuple[Outcomes, ...]  # one per recipe
    pending: PendingWarnings

    def __add__(self, other: Scored) -> Scored:
        """Returns the outcomes of both, recipe by recipe, and the warnings of both."""
        outcomes = tuple(map(add, self.outcomes, other.outcomes))
        return Scored(outcomes, self.pending + other.pending)


@dataclass(frozen=True)
class ScoreFolds(EachPart):
    """Scores the rows of a partition with models of all rows minus the row's fold, for each recipe."""

    plan: CountPlan
    content_folds: ContentFolds
    groups: Groups
    used_folds: tuple[int, ...]  # the numbers of the folds that have rows, in the order of ``groups``
    recipes: tuple[Plain, ...]
    digest: str  # identifies the tally and the recipes

    @classmethod
    def of(
        cls, plan: CountPlan, content_folds: ContentFolds, fold_tallies: FoldTallies, recipes: Sequence[Plain]
    ) -> ScoreFolds:
        """Returns the work for these folds and recipes: it scores every row with the models of all rows minus its fold,
        which are made of ``fold_tallies``. ``plan`` says how rows are read, and ``content_folds`` gives each row its
        fold.
        """
        digest = f"{fold_tallies.groups.counted.digest()} {tuple(recipes)}"
        return cls(plan, content_folds, fold_tallies.groups, fold_tallies.used_folds, tuple(recipes), digest)

    def _models(self) -> tuple[list[list[Model]], PendingWarnings]:
        """Returns for each recipe the models of all rows minus each fold, in the order of ``used_folds``; and the
        warnings that making them gave. Both are made once per worker and cached under ``digest``.
        """
        if _ModelCache.models is None or _ModelCache.models[0] != self.digest:
            pending = PendingWarnings()
            # Models need no rows, but whether rows have weights.
            weights = None if self.plan.settings.weights is None else np.zeros(1)
            rows = self._dataset(batches=(), labels=np.zeros(0, dtype=np.int32), weights=weights)
            fold_set = make_fold_set(len(self.used_folds))
            fold_models = [FoldModels(rows, fold_set, self.groups, recipe, pending) for recipe in self.recipes]
            models_by_recipe = [[models[split] for split in range(len(self.used_folds))] for models in fold_models]
            _ModelCache.models = self.digest, models_by_recipe, pending
        return _ModelCache.models[1], _ModelCache.models[2]

    def _dataset(self, batches: tuple[Batch, ...], labels: NDArray[np.int32], weights: Any) -> MemoryRows:
        """Returns batches as rows in memory, under the schema of the plan. ``labels`` has the class number of each row,
        −1 for none, and ``weights`` its weight, or None if rows have none.
        """
        threads = self.plan.settings.threads
        return MemoryRows(self.plan.schema, self.groups.classes, labels, weights, threads, batches=batches)

    def value_of(self, rows: Any) -> Scored | None:
        """Returns the outcomes of a partition's rows, each scored with the models of all rows minus its fold; None if
        it has no rows.
        """
        models_by_recipe, model_warnings = self._models()  # the models: [recipe][position in ``used_folds``]
        # The position of each fold in ``used_folds``, −1 if it has no rows.
        position_of_fold = np.full(self.content_folds.n_folds, -1, dtype=np.int32)
        position_of_fold[list(self.used_folds)] = np.arange(len(self.used_folds))
        schema = self.plan.schema
        classes = self.groups.classes
        table = self.plan.settings.table(rows)
        scored: Scored | None = None  # the batches so far
        for batch in table.batches("scoring"):
            aligned = table.align(batch, schema)
            # Of each row the number of its class in ``names``, −1 for none, and its weight (None: all 1).
            label_codes, names, weights = number_classes(aligned, schema, table.labels)
            class_numbers = renumber([(names, label_codes)], classes)  # the same, in ``classes``
            positions = position_of_fold[self.content_folds.folds(aligned, schema)]
            # The number of the model that tests each row, −1 for rows without a class.
            fold_of_row = np.where(class_numbers >= 0, positions, -1).astype(np.int32)
            memory_rows = self._dataset((aligned,), class_numbers, weights)
            is_tested = fold_of_row >= 0
            outcomes = list[Outcomes]()  # one per recipe
            pending = PendingWarnings(n_impossible=0, wordless=dict(model_warnings.wordless))
            tested_weights = None if weights is None else weights[is_tested]
            # What outcomes need besides the posteriors, the same for each recipe.
            tested = class_numbers[is_tested], fold_of_row[is_tested], len(self.used_folds), tested_weights
            for fold_models in models_by_recipe:
                posteriors = np.empty((aligned.n_rows, len(classes)))
                pending.n_impossible += score_batch(
                    memory_rows, fold_models, aligned, fold_of_row, "posterior", posteriors
                )
                outcomes.append(Outcomes.of(posteriors[is_tested], *tested))
            scored_batch = Scored(tuple(outcomes), pending)
            scored = scored_batch if scored is None else scored + scored_batch
        return scored


@dataclass(frozen=True)
class Evaluated:
    """The outcomes of a model's predictions for some rows, over its classes and those that only the rows have."""

    classes: tuple[Label, ...]  # the model's, and then those that only the rows have
    outcomes: Outcomes | None  # None without labelled rows
    n_rows: int  # labelled or not

    def __add__(self, other: Evaluated) -> Evaluated:
        """Returns the outcomes of these and of the ``other`` rows, over the classes of both."""
        n_rows = self.n_rows + other.n_rows
        if self.outcomes is None or other.outcomes is None:
            non_empty = self if other.outcomes is None else other
            return replace(non_empty, n_rows=n_rows)
        new_classes: Any = sort_keys({*self.classes, *other.classes}.difference(self.classes))
        all_classes = (*self.classes, *new_classes)
        outcomes = self.outcomes.among(self.classes, all_classes) + other.outcomes.among(other.classes, all_classes)
        return Evaluated(all_classes, outcomes, n_rows)


@dataclass(frozen=True)
class Evaluate(EachPart):
    """Evaluates a model on the rows of a partition."""

    model: Model
    target: str
    reading: Mapping[str, Any]

    def value_of(self, rows: Any) -> Evaluated:
        """Returns the outcomes of a partition's rows, over the model's classes and those that only the rows have."""
        evaluated = Evaluated(self.model.classes, outcomes=None, n_rows=0)
        for batch, posteriors in self.model.stream(self.model._read(rows, self.reading)):
            evaluated += self._of(batch, posteriors)
        return evaluated

    def _of(self, batch: Batch, posteriors: Any) -> Evaluated:
        """Returns the outcomes of a batch's rows that have a class in the column ``target``. ``posteriors`` are rows ×
        classes of the model. Classes that only the rows have get posterior 0.
        """
        model = self.model
        # The number of each row's class in ``names``, −1 for none.
        codes, names = number_values(batch.codes(self.target, model._target_kind), threads=1)
        new_classes: Any = sort_keys(occurring_names(names, codes).difference(model.classes))
        classes = (*model.classes, *new_classes)
        true_classes = renumber([(names, codes)], classes)  # the class number of each row, −1 for none
        has_class = true_classes >= 0
        if not has_class.any():
            return Evaluated(classes, outcomes=None, n_rows=batch.n_rows)
        # Rows that have a class × all classes.
        all_posteriors = np.hstack([posteriors[has_class], np.zeros((int(has_class.sum()), len(new_classes)))])
        folds = np.zeros(len(all_posteriors), dtype=np.int32)  # all rows are in one fold
        return Evaluated(
            classes, Outcomes.of(all_posteriors, true_classes[has_class], folds, n_folds=1, weights=None), batch.n_rows
        )
