"""Observed: rows that are counted and scored again and again, with other soft labels each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.families.bags.text import LookedUpTexts
from banbury.families.family import Feature
from banbury.families.keys import places_of
from banbury.model.naive_bayes import Model
from banbury.reading import Batch, Codes
from banbury.rows.labelled import Encoded
from banbury.sums import Counts, Keys, Words, as_index, in_parts, kernel_weights
from banbury.tally.schema import Schema
from banbury.tally.tally import Label, Tally, count_rows, plus
from banbury.threads import LimitThreads

Parts = NDArray[np.uint64]
SMALL = 1e-9  # a class with less of a row is left out when the row is counted
PIECE = 1 << 20  # rows that are counted together


@dataclass(frozen=True)
class RowCells:
    """Of every feature that is counted by key its keys, and which of them each row has: 0 is none, 1 the first."""

    schema: Schema  # of these features alone
    keys: tuple[Keys, ...]
    places: tuple[NDArray[np.int64], ...]
    threads: int

    @classmethod
    def of(cls, batch: Batch, schema: Schema, weights: Real, threads: int) -> RowCells | None:
        """None where bins are so many that how wide they are depends on the rows that are counted."""
        keyed = tuple(f for f in schema.features if f.family.keyed and (f.kinds or not f.columns))
        schema = replace(schema, features=keyed)
        if not keyed:
            return cls(schema, (), (), threads)
        one = Codes(np.zeros(batch.n_rows, dtype=np.int32), 0, [0])
        counted = count_rows(batch, schema, one, np.ascontiguousarray(weights), threads)
        if counted.schema != schema:
            return None
        keys_of = {f.name: sums.keys[k] for _, group, sums in counted.groups for k, f in enumerate(group)}
        codes_and_keys = ((f.family.keys_of(batch, f, threads), keys_of[f.name]) for f in keyed)
        places = tuple(places_of(codes, keys).astype(np.int64) + 1 for codes, keys in codes_and_keys)
        return cls(schema, tuple(keys_of[feature.name] for feature in keyed), places, threads)

    def count(self, shares: Real) -> Counts:
        """The rows of each key and class, of which each class has these shares, rows × classes."""
        parts = in_parts(shares)
        n_classes = shares.shape[1]
        low = np.ones(len(self.keys), dtype=np.int64)
        size = as_index([len(keys) for keys in self.keys])
        cells_of_classes = []
        for c in range(n_classes):
            rows, mine = kernel_weights(np.zeros(len(parts), dtype=np.int32), parts[:, c])
            cells, _ = _core.count_codes(list(self.places), low, size, rows, 1, mine, self.threads)
            cells_of_classes.append(cells.arranged([1, int(size.sum())]))
        turned = np.arange(n_classes * size.sum()).reshape(n_classes, -1).T
        cells = Integers.join(cells_of_classes).arranged([int(size.sum()), n_classes], as_index(turned.reshape(-1)))
        return Counts(self.keys, cells).without_empty([f.family.permanent_keys() for f in self.schema.features])


@dataclass(frozen=True)
class Observed:
    """The rows of a table under one schema: what is slow to find out about them, the words of texts above all, is found once."""

    schema: Schema
    batch: Batch
    texts: tuple[LookedUpTexts, ...]
    cells: RowCells | None  # of columns that are counted by key, where no column is text
    threads: int
    _repeats: dict[int, Batch] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, batch: Batch, schema: Schema, weights: Real, threads: int) -> Observed:
        """``weights``: one for each row; they say which words are too rare, where a family asks that."""
        texts = tuple(LookedUpTexts.of(f, batch, weights, threads) for f in schema.features if f.reads_text)
        names = [name for f in schema.features if not f.reads_text for name in f.inputs]
        strings = [name for name in names if batch.kind(name) == "string"]
        batch = batch.with_codes(strings) if strings else batch
        cells = None if texts else RowCells.of(batch, schema, weights, threads)
        return cls(schema, batch, texts, cells, threads)

    @property
    def n_rows(self) -> int:
        return self.batch.n_rows

    @cached_property
    def n_words(self) -> Real:
        return sum((text.lengths for text in self.texts), np.zeros(self.n_rows))

    def log_joint(self, model: Model) -> Real:
        """log P(class) + log P(row | class) under a model of ``tally``; of a row that every class rules out the log prior."""
        texts = {t.feature.name: Encoded(t.offsets, t.ids, t.times, t.missing) for t in self.texts}
        batch = self.batch.with_columns(texts) if texts else self.batch
        with LimitThreads(self.threads):
            joint: Real = model._kernel(batch, model.parameters, "log_joint")[0]
        impossible = np.isneginf(joint)
        if impossible.any():
            joint[impossible.all(axis=1)] = model.log_prior
        return joint

    def tally(self, classes: tuple[Label, ...], soft: Real) -> Tally:
        """The rows counted with soft labels, rows × classes; words of texts have numbers for names."""
        if self.cells is not None:
            shares = _shares(soft)
            return self._join(self._count_rest(self.cells.schema, classes, shares), self.cells.count(shares), {})
        n_classes, (rows, numbers, weights) = len(classes), _repeat_by_class(soft)
        words = {t.feature.name: t.count(rows, numbers, weights, n_classes, self.threads) for t in self.texts}
        rest = tuple(feature for feature in self.schema.features if feature.name not in words)
        if rest:
            counted = self._count(replace(self.schema, features=rest), classes, rows, numbers, weights)
        else:
            counted = _no_features(self.schema, classes, _core.count_classes(numbers, n_classes, weights, self.threads))
        return self._join(counted, None, words)

    def _join(self, rest: Tally, keyed: Counts | None, words: Mapping[str, Words]) -> Tally:
        """One tally of what was counted apart: features that are counted by key, looked-up words, and the rest."""
        counted = (*(text.feature for text in self.texts), *rest.schema.features)  # bins may have become wider
        features = {feature.name: feature for feature in counted}
        schema = replace(self.schema, features=tuple(features.get(f.name, f) for f in self.schema.features))
        places = {} if keyed is None or self.cells is None else self.cells.schema.index

        def sums_of(features: Sequence[Feature]) -> Any:
            names = [feature.name for feature in features]
            if names[0] in words:
                return words[names[0]]
            if keyed is None or not places.keys() & names:
                return rest.group_of(names[0])
            parts = ((keyed, places[name]) if name in places else (rest.of(name), 0) for name in names)
            return Counts.join([counts.feature(at) for counts, at in parts], len(rest.classes))

        return replace(rest, schema=schema, sums=tuple(sums_of(group.features) for group in schema.groups))

    def tally_by_name(self, classes: tuple[Label, ...], soft: Real) -> Tally:
        """The same as ``bb.count`` counts it, words by name."""
        return self._count(self.schema, classes, *_repeat_by_class(soft))

    def _count_rest(self, keyed: Schema, classes: tuple[Label, ...], shares: Real) -> Tally:
        """What is not counted by key: all rows once for every class, so that none has to be looked for."""
        schema = replace(self.schema, features=tuple(f for f in self.schema.features if f.name not in keyed.index))
        if not schema.features:
            every = np.tile(np.arange(len(classes), dtype=np.int32), self.n_rows)
            numbers, parts = kernel_weights(every, in_parts(shares).reshape(-1, 2))
            return _no_features(schema, classes, _core.count_classes(numbers, len(classes), parts, self.threads))
        together = max(PIECE // max(self.n_rows, 1), 1)
        total: Tally | None = None
        parts = in_parts(shares)
        for first in range(0, len(classes), together):
            some = classes[first : first + together]
            weights = np.ascontiguousarray(parts[:, first : first + together].swapaxes(0, 1)).reshape(-1, 2)
            numbers = np.repeat(np.arange(len(some), dtype=np.int32), self.n_rows)
            n = len(some)
            if n > 1 and n not in self._repeats:  # those that were asked for last are kept
                self._repeats.clear()
                self._repeats[n] = self.batch.take(np.tile(np.arange(self.n_rows), n))
            part = self._repeats[n] if n > 1 else self.batch
            total = plus(total, count_rows(part, schema, Codes(numbers, 0, list(some)), weights, self.threads))
        assert total is not None
        return total.with_classes(classes)

    def _count(
        self, schema: Schema, classes: tuple[Label, ...], rows: Int, numbers: NDArray[np.int32], weights: Parts
    ) -> Tally:
        total: Tally | None = None
        for start in range(0, max(len(rows), 1), PIECE):
            some = slice(start, start + PIECE)
            part = self.batch.take(rows[some])
            labels = Codes(numbers[some], 0, list(classes))
            total = plus(total, count_rows(part, schema, labels, weights[some], self.threads))
        assert total is not None
        return total.with_classes(classes)


def _no_features(schema: Schema, classes: tuple[Label, ...], rows: Integers) -> Tally:
    return Tally(replace(schema, features=()), classes, rows, ())


def _repeat_by_class(soft: Real) -> tuple[Int, NDArray[np.int32], Parts]:
    """Each row once for every class that has a share of it: its number, its class, and its weight there, in parts."""
    parts = in_parts(_shares(soft))
    rows, numbers = np.nonzero(parts.any(axis=2))
    return rows, numbers.astype(np.int32), parts[rows, numbers]


def _shares(soft: Real) -> Real:
    """What each class has of each row: shares too small to matter are left out, and the others make up for them."""
    totals = soft.sum(axis=1, keepdims=True)
    kept = np.where(soft > SMALL * totals, soft, 0.0)
    left = kept.sum(axis=1, keepdims=True)
    return np.asarray(kept * (totals / np.where(left > 0, left, 1.0)))
