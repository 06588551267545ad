"""Validation where rows are: folds are counted apart in one pass, and scored in another by models of all rows minus the fold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.engines.counting import CountPart, EachPart, Settled
from banbury.families.keys import dense_numbers
from banbury.model.naive_bayes import Model
from banbury.quality.recipes import Plain
from banbury.quality.results import Outcomes
from banbury.reading import Batch, Codes
from banbury.rows.folds import Dealing, Round, Split
from banbury.rows.groups import Groups
from banbury.rows.labelled import MemoryRows, occurring_names, renumber
from banbury.rows.scoring import FoldModels, PendingWarnings, score_batch
from banbury.sums import in_order
from banbury.tally.schema import Schema
from banbury.tally.table import Table, number_classes
from banbury.tally.tally import Label, Tally, count_rows


@dataclass(frozen=True)
class CountFolds(CountPart):
    """The tally of a partition, each fold of each class a class of its own."""

    dealing: Dealing

    def count_batch(self, schema: Schema, table: Table, batch: Batch) -> Iterator[Tally]:
        fits = table.align(batch, schema)
        n_folds = self.dealing.n_folds
        numbers, names, weights = number_classes(fits, schema, table.labels)
        codes = np.where(numbers >= 0, numbers * np.int32(n_folds) + self.dealing.folds(fits, schema), -1)
        folded = [json.dumps([fold, name]) for name in names for fold in range(n_folds)]
        labels = Codes(codes.astype(np.int32), 0, folded)
        yield count_rows(fits, schema, labels, weights, table.labels.threads)


@dataclass(frozen=True, eq=False)
class Folded:
    """The folds of all rows, counted apart: ``groups`` has the number of a fold among those that have rows."""

    groups: Groups
    used: tuple[int, ...]  # the folds that have rows

    @classmethod
    def of(cls, counted: Tally, skipped: int) -> Folded:
        """The tally of ``CountFolds``, whose classes say what class and what fold they are."""
        places = [json.loads(str(name)) for name in counted.classes]
        used = tuple(sorted({fold for fold, _ in places}))
        errors.require(
            len(used) >= 2, "folds", f"{len(used)} that has rows", "at least two folds; identical rows share a fold"
        )
        classes: Any = in_order({name for _, name in places})
        numbers = [classes.index(name) * len(used) + used.index(fold) for fold, name in places]
        order = np.argsort(numbers)
        kept = counted.of_classes(order.tolist(), tuple(sorted(numbers)))
        return cls(Groups(replace(kept, skipped=skipped), classes, len(used)), used)


def each_fold(n_folds: int) -> Round:
    """Each fold scored by a model of all others; the rows, which are not here, are not numbered."""
    nothing = np.zeros(0, dtype=np.int64)
    splits = tuple(Split(nothing, learned) for learned in ~np.eye(n_folds, dtype=np.bool_))
    return Round(np.zeros(0, dtype=np.int32), n_folds, splits)


class _Models:
    """The models of folds that a worker has made, so that it makes them once for all partitions."""

    made: tuple[str, list[list[Model]], PendingWarnings] | None = None


@dataclass(frozen=True)
class Scored:
    """How the answers to the rows of some partitions came out, for each setting."""

    outcomes: tuple[Outcomes, ...]
    pending: PendingWarnings

    def __add__(self, other: Scored) -> Scored:
        sums = tuple(a + b for a, b in zip(self.outcomes, other.outcomes, strict=True))
        return Scored(sums, self.pending + other.pending)


@dataclass(frozen=True)
class ScoreFolds(EachPart):
    """How models of all rows minus the fold of each row answer those of a partition."""

    settled: Settled
    dealing: Dealing
    counted: Tally  # the folds, counted apart
    classes: tuple[Label, ...]
    used: tuple[int, ...]
    recipes: tuple[Plain, ...]
    digest: str

    @classmethod
    def of(cls, settled: Settled, dealing: Dealing, folded: Folded, recipes: Sequence[Plain]) -> ScoreFolds:
        counted = folded.groups.counted
        every = tuple(recipes)
        return cls(settled, dealing, counted, folded.groups.classes, folded.used, every, f"{counted.digest()} {every}")

    def _models(self) -> tuple[list[list[Model]], PendingWarnings]:
        """For each setting the models of all rows minus each fold."""
        if _Models.made is None or _Models.made[0] != self.digest:
            groups = Groups(self.counted, self.classes, len(self.used))
            pending = PendingWarnings()
            weights = None if self.settled.settings.weights is None else np.zeros(1)
            rows = self._dataset((), np.zeros(0, dtype=np.int32), weights)
            folds = each_fold(len(self.used))
            every = [FoldModels(rows, folds, groups, recipe, pending) for recipe in self.recipes]
            made = [[models[number] for number in range(len(self.used))] for models in every]
            _Models.made = self.digest, made, pending
        return _Models.made[1], _Models.made[2]

    def _dataset(self, batches: tuple[Batch, ...], labels: NDArray[np.int32], weights: Any) -> MemoryRows:
        threads = self.settled.settings.threads
        return MemoryRows(self.settled.schema, self.classes, labels, weights, threads, batches=batches)

    def value_of(self, rows: Any) -> Scored | None:
        models, noted = self._models()
        place = np.full(self.dealing.n_folds, -1, dtype=np.int32)
        place[list(self.used)] = np.arange(len(self.used))
        schema = self.settled.schema
        table = self.settled.settings.table(rows)
        scored: Scored | None = None
        for batch in table.batches("scoring"):
            fits = table.align(batch, schema)
            own_numbers, names, weights = number_classes(fits, schema, table.labels)
            numbers = renumber([(names, own_numbers)], self.classes)
            which = np.where(numbers >= 0, place[self.dealing.folds(fits, schema)], -1).astype(np.int32)
            part = self._dataset((fits,), numbers, weights)
            tested = which >= 0
            outcomes = list[Outcomes]()
            pending = PendingWarnings(0, dict(noted.wordless))
            for of_recipe in models:
                posteriors = np.empty((fits.n_rows, len(self.classes)))
                pending.impossible += score_batch(part, of_recipe, fits, which, "posterior", posteriors)
                tested_weights = None if weights is None else weights[tested]
                outcomes.append(
                    Outcomes.of(posteriors[tested], numbers[tested], which[tested], len(self.used), tested_weights)
                )
            of_batch = Scored(tuple(outcomes), pending)
            scored = of_batch if scored is None else scored + of_batch
        return scored


@dataclass(frozen=True)
class Evaluated:
    """How a model's answers to the rows of some partitions came out, over its classes and those it has not met."""

    classes: tuple[Label, ...]
    outcomes: Outcomes | None
    n_rows: int  # with a class or without

    def __add__(self, other: Evaluated) -> Evaluated:
        n_rows = self.n_rows + other.n_rows
        if self.outcomes is None or other.outcomes is None:
            one = self if other.outcomes is None else other
            return replace(one, n_rows=n_rows)
        new: Any = in_order({*self.classes, *other.classes}.difference(self.classes))
        every = (*self.classes, *new)
        both = self.outcomes.among(self.classes, every) + other.outcomes.among(other.classes, every)
        return Evaluated(every, both, n_rows)


@dataclass(frozen=True)
class Evaluate(EachPart):
    """How a model answers the rows of a partition."""

    model: Model
    target: str
    reading: Mapping[str, Any]

    def value_of(self, rows: Any) -> Evaluated:
        evaluated = Evaluated(self.model.classes, None, 0)
        for batch, posteriors in self.model.stream(self.model._read(rows, self.reading)):
            evaluated += self._of(batch, posteriors)
        return evaluated

    def _of(self, batch: Batch, posteriors: Any) -> Evaluated:
        model = self.model
        numbers, names = dense_numbers(batch.codes(self.target, model.target_kind), 1)
        new: Any = in_order(occurring_names(names, numbers).difference(model.classes))
        classes = (*model.classes, *new)
        truth = renumber([(names, numbers)], classes)
        has_class = truth >= 0
        if not has_class.any():
            return Evaluated(classes, None, batch.n_rows)
        scores = np.hstack([posteriors[has_class], np.zeros((int(has_class.sum()), len(new)))])
        folds = np.zeros(len(scores), dtype=np.int32)
        return Evaluated(classes, Outcomes.of(scores, truth[has_class], folds, 1, None), batch.n_rows)
