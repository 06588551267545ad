"""Rows with sets of labels, held: their scores by models that have not counted them, from one count of each part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.distributions.family import Feature
from banbury.distributions.vocabulary import AllBut
from banbury.label_calibration import FARTHEST, Flags
from banbury.label_sets import EVERY, LabelSets
from banbury.labels.model import LabelModel, labels_of, of_features
from banbury.readers import Batch
from banbury.schema import Schema
from banbury.sums import Words, in_order
from banbury.table import Table, content_hashes
from banbury.tally import Growing, Label, Tally, count_sets
from banbury.threads import each_done

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

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The labels that some row has that counts."""
        found: set[Label] = set() if self.others is None else set(labels_of(self.others))
        for sets, start in zip(self.sets, self.starts.tolist(), strict=False):
            there = self.known[start : start + len(sets)][sets.rows]
            found.update(sets.names[code] for code in np.unique(sets.codes[there]).tolist())
        labels: Any = in_order(found)
        return tuple(labels)

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
            growing = growing + count_sets(batch, growing.schema, sets, weights, self.threads)
        return growing.frozen()

    def dealt(self, n: int) -> Int:
        """The fold of each row, by what it holds; equal rows are in one, and the others not all in the same."""
        hashes = self.hashes()
        folds = (hashes >> np.uint64(11)).astype(np.int64) % n
        if len(np.unique(folds[self.known])) < 2:
            folds = np.unique(hashes, return_inverse=True)[1].reshape(-1) % n
        return folds

    @property
    def differ(self) -> bool:
        """Whether some can be held out, since not all are alike."""
        return len(np.unique(self.hashes()[self.known])) > 1


@singledispatch
def label_rows(table: Any, n: int | None = None) -> HeldRows:
    """The rows of a table with sets of labels, in memory; a sample of ``n`` where they are in partitions."""
    errors.require(n is None, "sample", n, "left out where rows are in memory")
    return HeldRows.of(table)


def refuse_of_sets(**settings: Any) -> None:
    """Raises where a setting is given that rows with sets of labels do not have."""
    for name, value in settings.items():
        errors.require(value is None, name, value, "left out where rows have sets of labels")


@dataclass(frozen=True)
class HeldOut:
    """What models that have not counted each row say of it: log-odds, (rows, labels); the rows, their labels and folds."""

    labels: tuple[Label, ...]
    rows: Int
    scores: Real
    flags: Flags
    weights: Real | None
    folds: Int


@dataclass(frozen=True, eq=False)
class CountedFolds:
    """Rows counted fold by fold, of which any may be left out: what is left is what all add up to, minus the fold's own."""

    rows: HeldRows
    labels: tuple[Label, ...]
    tested: Int
    folds: Int  # of each row that is tested, its number
    counted: Tally  # class ``label * n_folds + fold``; label 0 is that of all rows
    n_folds: int

    @classmethod
    def of(cls, rows: HeldRows, labels: tuple[Label, ...], folds: Int, some: Int | None = None) -> CountedFolds:
        """``some`` of the rows will be scored, or all that have a target."""
        known = np.flatnonzero(rows.known)
        used, numbers = np.unique(folds[known], return_inverse=True)
        if len(used) < 2:
            raise errors.bad_setting("folds", "one fold with all rows", "two folds or more with rows in each")
        of_row = np.zeros(rows.n_rows, dtype=np.int64)
        of_row[known] = numbers.reshape(-1)
        growing, tested = Growing(replace(rows.schema, labels=None)), known if some is None else some
        n_folds = len(used) + (rows.others is not None)
        for batch, sets, weights, at in rows.some(known):
            own = LabelSets(*sets.numbered(labels), labels, sets.known)
            groups = of_row[known[at]], n_folds
            growing = growing + count_sets(batch, growing.schema, own, weights, rows.threads, groups)
        counted = growing.frozen()
        if rows.others is not None:  # a fold of their own, the last, of which no row is tested
            place = {name: k for k, name in enumerate((EVERY, *labels))}
            names = tuple(place[name] * n_folds + n_folds - 1 for name in rows.others.classes)
            plain = replace(rows.others, schema=counted.schema)
            order = sorted(range(len(names)), key=names.__getitem__)
            counted = counted + plain.of_classes(order, tuple(sorted(names)))
        return cls(rows, labels, tested, of_row[tested], counted, n_folds)

    @cached_property
    def _numbers(self) -> tuple[Int, Int]:
        """Of each class of the tally its label, from 1 up, and its fold."""
        each = np.array(self.counted.classes, dtype=np.int64)
        return each // self.n_folds, each % self.n_folds

    def _summed(self, tally: Tally, kept: Int) -> Tally:
        """Some of the tally's classes, those of each label together."""
        used, index = np.unique(self._numbers[0][kept], return_inverse=True)
        names = tuple((EVERY, *self.labels)[k] for k in used.tolist())
        some = tally if len(kept) == len(tally.classes) else tally.of_classes(kept.tolist(), tuple(range(len(kept))))
        return some.merged(index.reshape(-1), names)

    @cached_property
    def total(self) -> Tally:
        """All folds together."""
        found = self._summed(self.counted, np.arange(len(self.counted.classes)))
        return replace(found, schema=self.rows.schema)

    def held_out(self, model: LabelModel) -> HeldOut:
        """The scores of rows, each by the model of all rows without its fold."""
        texts = {feature.name: feature for feature in model.texts}
        columns = {name: self._column(name) for name in texts}
        rest = [feature.name for feature in model.schema.features if feature.name not in texts]
        others = of_features(replace(self.counted, schema=model.schema), rest)
        whole = self._summed(others, np.arange(len(others.classes)))
        batches = [(batch, at) for batch, _, _, at in self.rows.some(self.tested)]
        bags = {name: self._bags(feature, columns[name], batches) for name, feature in texts.items()}
        scores, weights = np.zeros((len(self.tested), len(self.labels))), self.rows.each_weight
        workers = 1 if model.schema.runs_python else min(self.rows.threads, self.n_folds)
        threads = max(1, self.rows.threads // workers)
        place = {label: k for k, label in enumerate(self.labels)}

        def scored(fold: int) -> None:
            left = whole - self._summed(others, np.flatnonzero(self._numbers[1] == fold))
            n_rows, at = float(left.n_rows), np.flatnonzero(self.folds == fold)
            scores[at] = -np.log(2.0 * max(n_rows, 1.0) + 1.0)  # of labels that no other row has
            if not len(at) or not labels_of(left):
                return
            without = replace(model, tally=left, thresholds=model.thresholds.of(labels_of(left)), threads=threads)
            kept = np.array([place[label] for label in without.labels], dtype=np.int64)
            said_by_words, said_by_rest = np.zeros((2, len(at), len(kept)))
            rows = np.zeros(len(self.labels))
            rows[kept] = without.n_rows
            for name, feature in texts.items():
                words = model.words_of(feature, columns[name].without(fold), 0, rows, n_rows)
                ranked = words.lexicon.ranked(_taken(bags[name], at), threads)
                said_by_words += words.scores(ranked, threads)[:, kept]
            for batch, own in batches if rest else ():
                here = own[self.folds[own] == fold]
                if len(here):
                    taken = batch if len(here) == batch.n_rows else batch.take(here - own[0])
                    said_by_rest[np.searchsorted(at, here)] = without.of_rest(taken)
            found = without.add_up(said_by_words, said_by_rest if rest else None)
            scores[np.ix_(at, kept)] = np.clip(found, -FARTHEST, FARTHEST)

        each_done(scored, self.n_folds, workers)
        flags = self.rows.flags(self.labels)[self.tested]
        weights = None if weights is None else weights[self.tested]
        return HeldOut(self.labels, self.tested, scores, flags, weights, self.folds)

    def _column(self, name: str) -> FoldWords:
        table, (labels, folds) = self.counted.of(name).table, self._numbers
        groups = _core.Groups(table, labels, folds, self.n_folds, self.rows.threads)
        return FoldWords(table, labels, folds, self.total.of(name).table, groups, table.in_order())

    def _bags(self, feature: Feature, column: FoldWords, batches: list[tuple[Batch, Int]]) -> tuple[Int, Int, Real]:
        """The words of each row that is tested, by their ids."""
        sums, threads = Words(column.table), self.rows.threads
        found = [feature.family.bags(batch, feature, sums, threads) for batch, _ in batches]
        if len(found) == 1:
            return found[0]
        offsets, ids, times = zip(*found, strict=True)
        sizes = np.concatenate([np.diff(each) for each in offsets])
        return np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(ids), np.concatenate(times)


@dataclass(frozen=True, eq=False)
class FoldWords:
    """A column of texts, counted by label and fold: the words of all folds together, and of each."""

    table: _core.Words
    labels: Int
    folds: Int
    total: _core.Words
    groups: _core.Groups
    by_name: NDArray[np.uint32]

    def without(self, fold: int) -> Words:
        """The words of all folds but one, whose own will be asked for."""
        index = np.where(self.folds != fold, self.labels, -1)
        tested, by_name = self.groups.words(fold), lambda: self.by_name
        left = AllBut(self.table, index, self.total.n_classes, by_name, tested, self.total, self.groups, fold)
        return Words(left)  # type: ignore[arg-type]


def _taken(bags: tuple[Int, Int, Real], rows: Int) -> tuple[Int, Int, Real]:
    """Of some rows."""
    offsets, ids, times = bags
    if len(rows) == len(offsets) - 1:
        return bags
    sizes = np.diff(offsets)[rows]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    at = np.repeat(offsets[:-1][rows] - starts[:-1], sizes) + np.arange(starts[-1])
    return starts, ids[at], times[at]


def enough(rows: HeldRows, n_labels: int) -> Int:
    """The rows that thresholds are chosen on: all, or as many as are enough, by what they hold."""
    known = np.flatnonzero(rows.known)
    most = max(1, CELLS // max(n_labels, 1))
    if len(known) <= most:
        return known
    return np.sort(known[np.argsort(rows.hashes()[known], kind="stable")[:most]])
