"""Bags of words: of each row its words, by their place in a list of words that does not depend on where they were met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.families.bags.vocabulary import Vocabulary
from banbury.families.bags.words import word_family
from banbury.families.family import ColumnReader, Feature

NOWHERE = 2**32 - 1  # the rank of a word that is left out
SOME_TEXTS = 1 << 14
SOME_WORDS = 1 << 20


class Bags(_core.Bags):
    """Texts, taken out and put together; what they count, score and correct is in the core."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, texts: Int) -> Bags:
        if np.array_equal(texts, np.arange(len(self))):
            return self
        sizes = np.diff(self.offsets)[texts]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        words, times = (np.empty(offsets[-1], dtype=array.dtype) for array in (self.words, self.times))
        shift = self.offsets[:-1][texts] - offsets[:-1]
        for some in stretches(len(texts)):
            start = offsets[some.start]
            end = offsets[some.stop]
            at = np.repeat(shift[some], sizes[some]) + np.arange(start, end)
            words[start:end], times[start:end] = self.words[at], self.times[at]
        return Bags(offsets, words, times, self.hashes[texts], self.n_words)

    @classmethod
    def together(cls, every: Sequence[Bags]) -> Bags:
        if len(every) == 1:
            return every[0]
        starts = np.concatenate([[0], np.cumsum([len(bags.words) for bags in every])])
        offsets = [bags.offsets[1:] + start for bags, start in zip(every, starts, strict=False)]
        parts = ([getattr(bags, name) for bags in every] for name in ("words", "times", "hashes"))
        words, times, hashes = map(np.concatenate, parts)
        return cls(np.concatenate([[0], *offsets]), words, times, hashes, every[0].n_words)

    def sums(self, numbers: Any) -> Real:
        """Sums over the words of each text."""
        sums = np.zeros(len(self))
        sizes = np.diff(self.offsets)
        for some in stretches(len(self)):
            texts = np.repeat(np.arange(some.stop - some.start), sizes[some])
            stretch = numbers[self.offsets[some.start] : self.offsets[some.stop]]
            sums[some] = np.bincount(texts, stretch, some.stop - some.start)
        return sums

    def squares(self, values: Real) -> Real:
        """Sums of the squares of what each word counts, over all texts."""
        sums = np.zeros(self.n_words)
        for some in stretches(len(self.words), SOME_WORDS):
            sums += np.bincount(self.words[some], np.square(values[some]), self.n_words)
        return sums


def stretches(n: int, some: int = SOME_TEXTS) -> list[slice]:
    """Texts, or words, that are looked at together, so that what is made of them on the way stays small."""
    return [slice(start, min(start + some, n)) for start in range(0, n, some)]


@dataclass(frozen=True)
class Lexicon:
    """The words of a column that an estimate uses, in the order of their names, and where a table has them now."""

    feature: Feature
    used: Vocabulary

    @classmethod
    def of(cls, feature: Feature, sums: Any) -> Lexicon:
        return cls(feature, word_family(feature).words_in_use(feature, sums))

    def __len__(self) -> int:
        return len(self.used.ids)

    @property
    def words(self) -> list[str]:
        return list(self.feature.inputs) if self.feature.columns else self.used.table.words(self.used.ids)

    @cached_property
    def ranks(self) -> NDArray[np.uint32]:
        """The place in the list of each id of the table; NOWHERE where it has none."""
        ranks = np.full(self.used.table.n_ids, NOWHERE, dtype=np.uint32)
        ranks[self.used.ids] = np.arange(len(self), dtype=np.uint32)
        return ranks

    def documents(self) -> Real:
        """How many texts of each class have each word, (words, classes)."""
        tables = [pairs.cells(pairs.documents, self.used.n_classes) for pairs in self.used]
        return np.concatenate(tables) if tables else np.zeros((0, self.used.n_classes))

    def bags(self, rows: ColumnReader, sums: Any, threads: int) -> Bags:
        """The texts of rows."""
        return self.rank_words(word_family(self.feature).bags(rows, self.feature, sums, threads), threads)

    def rank_words(self, bags: tuple[Int, Int, Real], threads: int) -> Bags:
        """Texts whose words are ids of the table."""
        offsets, ids, times = bags
        starts = np.asarray(offsets, dtype=np.int64)
        codes = np.ascontiguousarray(ids, dtype=np.int32)
        reals = np.ascontiguousarray(times, dtype=np.float64)
        return Bags(*Bags.ranked(starts, codes, reals, self.ranks, threads), len(self))

    def places(self, words: Sequence[str]) -> Int:
        """Where these words, all of which are in the list, are."""
        names = self.words
        if names == list(words):
            return np.arange(len(names))
        place = {word: k for k, word in enumerate(names)}
        return np.array([place[word] for word in words], dtype=np.int64)
