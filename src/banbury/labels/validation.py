"""Rows with sets of labels, held: their scores by models that have not counted them, from one count of each part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.label_calibration import Flags
from banbury.label_sets import LabelSets
from banbury.labels.model import LabelModel, labels_of
from banbury.readers import Batch
from banbury.schema import Schema
from banbury.table import Table, content_hashes
from banbury.tally import Growing, Label, Tally, count_sets

CELLS = 1 << 24  # rows × labels that thresholds are chosen on


@dataclass(frozen=True)
class HeldRows:
    """Rows in batches, with their labels and weights, in the order of the table."""

    schema: Schema
    batches: tuple[Batch, ...]
    sets: tuple[LabelSets, ...]
    weights: tuple[Real | None, ...]
    threads: int
    others: Tally | None = None  # of rows that are not here: those here are a sample, and models count all

    @classmethod
    def of(cls, table: Table) -> HeldRows:
        """The rows of a table."""
        schema: list[Schema] = []
        kept: list[tuple[Batch, LabelSets, Real | None]] = []

        def anew() -> None:
            schema.clear()
            kept.clear()

        for batch in table.batches("reading", anew):
            if not schema:
                schema.append(table.settled(batch))
            batch = table.aligned(batch, schema[0])
            kept.append((batch, table.labels.sets_of(batch), table.labels.weights_of(batch)))
        if schema[0].labels is None:
            wanted = "sets of labels: lists, flags, or texts with target_delimiter="
            raise errors.bad_setting("the target", "one class for each row", wanted)
        batches, sets, weights = zip(*kept, strict=True)
        return cls(schema[0], batches, sets, weights, table.labels.threads)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of figures of these rows."""
        if self.others is None:
            return ()
        return (f"tested on a sample; models learn from {errors.many(self.others.n_rows, 'other row')} as well",)

    @property
    def n_rows(self) -> int:
        return sum(batch.n_rows for batch in self.batches)

    @cached_property
    def starts(self) -> Int:
        return np.concatenate([[0], np.cumsum([batch.n_rows for batch in self.batches])])

    @cached_property
    def known(self) -> Flags:
        """Which rows have a target, and weigh something."""
        each = zip(self.sets, self.weights, strict=True)
        return np.concatenate([sets.known if own is None else sets.known & (own > 0) for sets, own in each])

    @cached_property
    def each_weight(self) -> Real | None:
        if all(own is None for own in self.weights):
            return None
        return np.concatenate(
            [np.ones(len(s)) if own is None else own for s, own in zip(self.sets, self.weights, strict=True)]
        )

    def flags(self, labels: tuple[Label, ...]) -> Flags:
        """Which labels each row has, (rows, labels)."""
        return np.concatenate([sets.flags(labels) for sets in self.sets])

    def hashes(self) -> NDArray[np.uint64]:
        """Of each row what it holds, as a number: equal rows have the same."""
        return self._hashes

    @cached_property
    def _hashes(self) -> NDArray[np.uint64]:
        names = [name for feature in self.schema.features for name in feature.inputs]
        return np.concatenate([content_hashes(batch, names) for batch in self.batches])

    def only(self, rows: Int) -> HeldRows:
        """Some of the rows."""
        batches, sets, weights, _ = zip(*self.some(rows), strict=True)
        return HeldRows(self.schema, batches, sets, weights, self.threads)

    def some(self, rows: Int) -> Iterator[tuple[Batch, LabelSets, Real | None, Int]]:
        """Some rows, batch by batch, and where they are among these."""
        place = np.searchsorted(rows, self.starts)
        for k, batch in enumerate(self.batches):
            at = rows[place[k] : place[k + 1]] - self.starts[k]
            if len(at):
                own = self.weights[k]
                taken = batch if len(at) == batch.n_rows else batch.take(at)
                yield taken, self.sets[k].take(at), None if own is None else own[at], np.arange(place[k], place[k + 1])

    def count(self, rows: Int | None = None) -> Tally:
        """The tally of some rows, or of all."""
        growing = Growing(self.schema)
        every = np.arange(self.n_rows) if rows is None else rows
        for batch, sets, weights, _ in self.some(every):
            growing.add(count_sets(batch, growing.schema, sets, weights, self.threads))
        counted = growing.frozen()
        return counted if rows is not None or self.others is None else counted + self.others

    def dealt(self, n: int) -> Int:
        """The fold of each row, by what it holds; equal rows are in one."""
        return (self.hashes() >> np.uint64(11)).astype(np.int64) % n


@dataclass(frozen=True)
class HeldOut:
    """What models that have not counted each row say of it: log-odds, (rows, labels); the rows, their labels and folds."""

    labels: tuple[Label, ...]
    rows: Int
    scores: Real
    flags: Flags
    weights: Real | None
    folds: Int


def held_out(model: LabelModel, rows: HeldRows, folds: Int, some: Int | None = None) -> HeldOut:
    """The scores of rows, or of some, each by the model of all rows without its fold, which is a subtraction away."""
    labels = model.labels
    tested = np.flatnonzero(rows.known) if some is None else some
    scores = np.zeros((len(tested), len(labels)))
    for fold in np.unique(folds[tested]).tolist():
        part = rows.count(np.flatnonzero((folds == fold) & rows.known))
        rest = model.tally - part
        if not rest.classes:
            raise errors.bad_setting("folds", "one fold with all rows", "two folds or more with rows in each")
        without = replace(model, tally=rest, thresholds=model.thresholds.of(labels_of(rest)))
        at = np.flatnonzero(folds[tested] == fold)
        place = {label: k for k, label in enumerate(labels)}
        columns = np.array([place[label] for label in without.labels], dtype=np.int64)
        scores[at] = -np.log(2.0 * max(float(rest.n_rows), 1.0) + 1.0)  # of labels that no other row has
        for batch, _, _, own in rows.some(tested[at]):
            if len(columns):
                scores[np.ix_(at[own], columns)] = without.scores(batch)
    weights = rows.each_weight
    flags = rows.flags(labels)[tested]
    return HeldOut(labels, tested, scores, flags, None if weights is None else weights[tested], folds[tested])


def enough(rows: HeldRows, n_labels: int) -> Int:
    """The rows that thresholds are chosen on: all, or as many as are enough, by what they hold."""
    known = np.flatnonzero(rows.known)
    most = max(1, CELLS // max(n_labels, 1))
    if len(known) <= most:
        return known
    return np.sort(known[np.argsort(rows.hashes()[known], kind="stable")[:most]])
