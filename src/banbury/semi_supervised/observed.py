"""Observed: rows that are counted and scored again and again, with other soft labels each time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.distributions import Text
from banbury.distributions.bag import missing_texts
from banbury.distributions.family import Feature
from banbury.distributions.occurrences import UNREAD
from banbury.naive_bayes import Model
from banbury.readers import Batch, Codes
from banbury.schema import Schema
from banbury.selection.dataset import Encoded
from banbury.semi_supervised.cells import RowCells
from banbury.sums import Counts, Words, in_parts, weighed
from banbury.tally import Growing, Label, Tally, count_rows

Parts = NDArray[np.uint64]
UNPRUNED: dict[str, Any] = {
    "min_count": 0,
    "min_share": 0,
    "max_share": 1.0,
    "drop_most_frequent": 0,
    "max_words": None,
}
SMALL = 1e-9  # a class with less of a row is left out when the row is counted
PIECE = 1 << 20  # rows that are counted together


@dataclass(frozen=True)
class Bags:
    """A column of text, its words looked up once; a word's number is its column in a matrix of occurrences."""

    feature: Feature  # whose words are named by their numbers
    encoded: Encoded
    values: Real  # what each word of each text counts
    n_words: int

    @classmethod
    def of(cls, feature: Feature, batch: Batch, weights: Real, threads: int) -> Bags:
        family: Any = feature.family
        if family.max_words is not None and family.choose_by == "mutual_information":
            raise errors.bad_setting("choose_by", family.choose_by, "'count' where rows have no label")
        texts = family.texts(batch, feature.name)
        there, parts = weighed(np.zeros(batch.n_rows, dtype=np.int32), weights)
        table = _core.Words(1, family.buckets or 0)
        table.count(family.tokeniser, texts, there, parts, threads)
        kept = family.words(table) if family.vocabulary is not None or family.pruning.any else None
        table = table if kept is None else kept.table
        offsets, ids, times = table.bags(family.tokeniser, texts, threads)
        n_words, vocabulary = table.n_ids, None
        all_count = (
            family.length or family.vocabulary is not None
        )  # lengths are those of all words; some are in no text
        if kept is not None and len(kept.ids) and all_count:
            vocabulary = tuple(f"#{i}" for i in kept.ids.tolist())
        elif kept is not None:
            n_words = len(kept.ids)
            offsets, ids, times = _only(kept.ids, table.n_ids, offsets, ids, times)
        encoded = Encoded(offsets, ids, times, missing_texts(texts, batch.n_rows))
        numbered = replace(family, vocabulary=vocabulary, buckets=None, **UNPRUNED)
        return cls(feature._replace(family=numbered), encoded, _counted(family, offsets, times), n_words)

    def count(self, rows: Int, classes: NDArray[np.int32], weights: Parts, n_classes: int, threads: int) -> Words:
        """The words of these rows, some of them more than once, each in one class."""
        size = np.diff(self.encoded.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(size)])
        at = np.arange(offsets[-1]) + np.repeat(self.encoded.offsets[rows] - offsets[:-1], size)
        cells = offsets, self.encoded.ids[at], self.values[at]
        numbers = np.where(self.encoded.missing[rows], np.int32(-1), classes)
        table = _core.Words(n_classes, 1 << max(1, (self.n_words - 1).bit_length())).with_columns(self.n_words)
        matrix: Any = ("matrix", cells, self.n_words, None, True)
        table.count(UNREAD, matrix, numbers, weights, threads)
        return Words(table)


def _only(
    kept: NDArray[np.uint32], n_ids: int, offsets: Int, ids: NDArray[np.int32], times: NDArray[np.int32]
) -> tuple[Int, NDArray[np.int32], NDArray[np.int32]]:
    """Bags without the words that are not kept, which are numbered anew in order."""
    number = np.full(n_ids, -1, dtype=np.int32)
    number[np.sort(kept)] = np.arange(len(kept))
    there = number[ids] >= 0
    ends = np.concatenate([[0], np.cumsum(there)])
    return ends[offsets], number[ids][there], times[there]


def _counted(family: Text, offsets: Int, times: NDArray[np.int32]) -> Real:
    """What a word counts that a text has so many times, as the tokeniser would have it."""
    values = np.log1p(times) if family.damping == "log" else times.astype(np.float64)
    if family.length and len(values):
        owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        lengths = np.sqrt(np.bincount(owners, values**2, len(offsets) - 1))
        values = values / lengths[owners]
    return np.asarray(values)


@dataclass(frozen=True)
class Observed:
    """The rows of a table under one schema: what is slow to find out about them, the words of texts above all, is found once."""

    schema: Schema
    batch: Batch
    bags: tuple[Bags, ...]
    cells: RowCells | None  # of columns that are counted by key, where no column is text
    threads: int
    _repeats: dict[int, Batch] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, batch: Batch, schema: Schema, weights: Real, threads: int) -> Observed:
        """``weights``: one for each row; they say which words are too rare, where a family asks that."""
        keyed = [name for f in schema.keyed if f.family.shape == "keys" for name in f.inputs]
        strings = [name for name in keyed if batch.kind(name) == "string"]
        batch = batch.coded(strings) if strings else batch
        texts = [feature for feature in schema.texts if isinstance(feature.family, Text)]
        bags = tuple(Bags.of(each, batch, weights, threads) for each in texts)
        cells = None if schema.texts else RowCells.of(batch, _only_keyed(schema), weights, threads)
        return cls(schema, batch, bags, cells, threads)

    @property
    def n_rows(self) -> int:
        return self.batch.n_rows

    @cached_property
    def n_words(self) -> Real:
        """How many words each row has."""
        found = np.zeros(self.n_rows)
        for bags in self.bags:
            offsets = bags.encoded.offsets
            owners = np.repeat(np.arange(self.n_rows), np.diff(offsets))
            found += np.bincount(owners, bags.values, self.n_rows)
        return found

    def log_joint(self, model: Model) -> Real:
        """log P(class) + log P(row | class) under a model of ``tally``; of a row that every class rules out the log prior."""
        batch = self.batch
        if self.bags:
            batch = batch.with_columns({bags.feature.name: bags.encoded for bags in self.bags})
        batch.threads = self.threads
        found: Real = model._kernel(batch, model.parameters, "log_joint")[0]
        impossible = np.isneginf(found)
        if impossible.any():
            found[impossible.all(axis=1)] = model.log_prior
        return found

    def tally(self, classes: tuple[Label, ...], soft: Real) -> Tally:
        """The rows counted with soft labels, rows × classes; words of texts have numbers for names."""
        if self.cells is not None:
            shares = _shares(soft)
            return _joined(self.schema, self._count_numbers(classes, shares), self.cells.count(shares))
        names = {bags.feature.name for bags in self.bags}
        rest = tuple(feature for feature in self.schema.features if feature.name not in names)
        rows, numbers, weights = _repeated(soft)
        if rest:
            found = self._count(replace(self.schema, features=rest), classes, rows, numbers, weights)
        else:
            per_class = _core.count_classes(numbers, len(classes), weights, self.threads)
            found = Tally(replace(self.schema, features=()), classes, per_class, ())
        bags = {
            each.feature.name: (each.feature, each.count(rows, numbers, weights, len(classes), self.threads))
            for each in self.bags
        }
        counted = {feature.name: feature for feature in found.schema.features}  # bins may have become wider
        features = tuple(bags[f.name][0] if f.name in bags else counted[f.name] for f in self.schema.features)
        schema = replace(self.schema, features=features)
        others = iter(found.sums)
        firsts = (group.features[0].name for group in schema.groups)
        sums = tuple(bags[name][1] if name in bags else next(others) for name in firsts)
        return replace(found, schema=schema, sums=sums)

    def named(self, classes: tuple[Label, ...], soft: Real) -> Tally:
        """The same as ``bb.count`` counts it, words by name."""
        return self._count(self.schema, classes, *_repeated(soft))

    def _count_numbers(self, classes: tuple[Label, ...], shares: Real) -> Tally:
        """Columns of numbers: all rows once for every class, so that none has to be looked for."""
        schema = _without_keyed(self.schema)
        if not schema.features:
            every = np.tile(np.arange(len(classes), dtype=np.int32), self.n_rows)
            numbers, parts = weighed(every, in_parts(shares).reshape(-1, 2))
            rows = _core.count_classes(numbers, len(classes), parts, self.threads)
            return Tally(schema, classes, rows, ())
        together = max(PIECE // max(self.n_rows, 1), 1)
        growing, parts = Growing(schema, classes), in_parts(shares)
        for first in range(0, len(classes), together):
            some = classes[first : first + together]
            weights = np.ascontiguousarray(parts[:, first : first + together].swapaxes(0, 1)).reshape(-1, 2)
            numbers = np.repeat(np.arange(len(some), dtype=np.int32), self.n_rows)
            part = self._times(len(some))
            growing.add(count_rows(part, schema, Codes(numbers, 0, list(some)), weights, self.threads))
        return growing.frozen()

    def _times(self, n: int) -> Batch:
        """The rows so many times over; those that were asked for last are kept."""
        if n == 1:
            return self.batch
        if n not in self._repeats:
            self._repeats.clear()
            self._repeats[n] = self.batch.take(np.tile(np.arange(self.n_rows), n))
            self._repeats[n].threads = self.threads
        return self._repeats[n]

    def _count(
        self,
        schema: Schema,
        classes: tuple[Label, ...],
        rows: Int,
        numbers: NDArray[np.int32],
        weights: Parts,
    ) -> Tally:
        growing = Growing(schema, classes)
        for start in range(0, max(len(rows), 1), PIECE):
            some = slice(start, start + PIECE)
            part = self.batch.take(rows[some])
            part.threads = self.threads
            labels = Codes(numbers[some], 0, list(classes))
            growing.add(count_rows(part, schema, labels, weights[some], self.threads))
        return growing.frozen()


def _joined(schema: Schema, numbers: Tally, keyed: Counts) -> Tally:
    """The sums of all groups, from those of columns of numbers and of keys."""
    place = {feature.name: f for f, feature in enumerate(schema.keyed)}
    others = iter(numbers.sums)
    sums = (
        keyed.select([place[f.name] for f in features]) if features[0].name in place else next(others)
        for _, features, _ in schema.groups
    )
    return replace(numbers, schema=schema, sums=tuple(sums))


def _only_keyed(schema: Schema) -> Schema:
    return replace(schema, features=schema.keyed)


def _without_keyed(schema: Schema) -> Schema:
    return replace(schema, features=tuple(f for f in schema.features if f not in schema.keyed))


def _repeated(soft: Real) -> tuple[Int, NDArray[np.int32], Parts]:
    """Each row once for every class that has a share of it: its number, its class, and its weight there, in parts."""
    parts = in_parts(_shares(soft))
    rows, numbers = np.nonzero(parts.any(axis=2))
    return rows, numbers.astype(np.int32), parts[rows, numbers]


def _shares(soft: Real) -> Real:
    """What each class has of each row: shares too small to matter are left out, and the others make up for them."""
    whole = soft.sum(axis=1, keepdims=True)
    kept = np.where(soft > SMALL * whole, soft, 0.0)
    left = kept.sum(axis=1, keepdims=True)
    kept *= whole / np.where(left > 0, left, 1.0)
    return kept
