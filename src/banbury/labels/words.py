"""What words say of labels: of each word the labels it occurs with, and one number for all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.distributions.bags import Bags, Lexicon
from banbury.distributions.family import Choice, ColumnReader, Feature
from banbury.distributions.vocabulary import Learned
from banbury.sums import Words

SOME_WORDS = 1 << 16  # whose pairs are looked at together


def lexicon_of(feature: Feature, sums: Words, every: int) -> Lexicon:
    """The words of a column that an estimate uses, by the counts of all rows, which are class ``every``."""
    index = np.full(sums.table.n_classes, -1, dtype=np.int64)
    index[every] = 0
    return Lexicon.of(feature, Words(Learned(sums.table, index, 1, sums.table.in_order, None)))  # type: ignore[arg-type]


@dataclass(frozen=True)
class LabelWords:
    """A column of texts: log P(word | label) / P(word | not the label), by the pairs of word and label that occur.

    A word that no text of a label has says the same of all such labels, ``base``, but for a number that only depends on the
    label, ``slopes``. So a text costs the pairs of its own words, however many labels there are.
    """

    lexicon: Lexicon
    sums: Words
    once: bool
    starts: Int
    labels: NDArray[np.uint32]
    says: Real
    base: Real
    slopes: Real

    @classmethod
    def of(cls, feature: Feature, sums: Words, every: int, choice: Choice) -> LabelWords | None:
        """From the counts of labels and of all rows; None where the family needs more than those of its own words."""
        settings = feature.family.label_words(choice)
        if settings is None:
            return None
        once, a = settings
        lexicon, table = lexicon_of(feature, sums, every), sums.table
        ids, n_labels = lexicon.used.ids, table.n_classes - 1
        index = np.arange(n_labels + 1, dtype=np.int64) - (np.arange(n_labels + 1) > every)
        index[every] = -1
        total, own = np.zeros(len(ids)), np.zeros(n_labels)
        parts: list[tuple[Int, NDArray[np.uint32], Real]] = []
        column = 3 if once else 2
        only = np.full(n_labels + 1, -1, dtype=np.int64)
        only[every] = 0
        for start in range(0, len(ids), SOME_WORDS):
            some = ids[start : start + SOME_WORDS]
            words = table.pairs(some, only)
            total[start : start + len(some)][np.diff(words[0]) > 0] = words[column]
            starts, labels, *counts = table.pairs(some, index)
            counted, sizes = counts[column - 2].astype(np.float64), np.diff(starts)
            own += np.bincount(labels, counted, n_labels)
            rest = np.repeat(total[start : start + len(some)], sizes)
            counted = np.log1p(counted / a) - np.log((rest - counted + a) / (rest + a))
            parts.append((sizes, labels.astype(np.uint32), counted))
        sizes, pairs, says = (np.concatenate(each) for each in zip(*parts, strict=True)) if parts else NO_PAIRS
        smoothing, everything = a * len(ids), float(total.sum())
        slopes = np.log((everything - own + smoothing) / (own + smoothing)) if len(ids) else np.zeros(n_labels)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(lexicon, sums, once, starts, pairs, says, np.log(a / (total + a)), slopes)

    def bags(self, rows: ColumnReader, threads: int) -> Bags:
        return self.lexicon.bags(rows, self.sums, threads)

    def scores(self, rows: ColumnReader, threads: int) -> Real:
        """The log-odds that each text adds, (rows, labels)."""
        bags = self.bags(rows, threads)
        times = np.ones(len(bags.words), dtype=np.float32) if self.once else bags.times
        index: Any = (self.starts, self.labels, self.says, self.base)
        return _core.score_labels(bags.parts, times, index, self.slopes, threads)


NO_PAIRS = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint32), np.zeros(0)
