"""Lexicon: the words of a column in the order of their names, and the bags of rows, which number words by that order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.families.bags.bag_of_words import bag_of_words
from banbury.families.bags.vocabulary import Vocabulary
from banbury.families.family import ColumnReader, Feature

NOT_LISTED = 2**32 - 1  # the rank of a word that the lexicon does not have
TEXTS_TOGETHER = 1 << 14  # texts whose words are processed at a time
WORDS_TOGETHER = 1 << 20


class Bags(_core.Bags):
    """The bags of many rows: ``words`` (ranks in a lexicon) and ``times`` (how much each counts) of row i are at
    ``offsets[i]`` to ``offsets[i + 1]``. The core counts and scores them.
    """

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.offsets) - 1

    def take(self, texts: Int) -> Bags:
        """Returns the bags of the texts with these numbers, in this order. The words of text i are ``offsets[i]`` to
        ``offsets[i + 1]`` of ``self.words`` and ``self.times``.
        """
        if np.array_equal(texts, np.arange(len(self))):
            return self
        sizes = np.diff(self.offsets)[texts]  # how many words each text has
        offsets = np.concatenate([[0], np.cumsum(sizes)])  # of the new bags, as ``words`` and ``times``
        words = np.empty(offsets[-1], dtype=self.words.dtype)
        times = np.empty(offsets[-1], dtype=self.times.dtype)
        shift = self.offsets[:-1][texts] - offsets[:-1]  # how far each text's words are from their new place
        for some_texts in slices_of_length(len(texts)):
            start = offsets[some_texts.start]
            end = offsets[some_texts.stop]
            # Where the words from ``start`` to ``end`` are in the old bags.
            positions = np.repeat(shift[some_texts], sizes[some_texts]) + np.arange(start, end)
            words[start:end] = self.words[positions]
            times[start:end] = self.times[positions]
        # ``hashes`` are those of the texts, and ``n_words`` is the number of words of the lexicon.
        return Bags(offsets, words, times, self.hashes[texts], self.n_words)

    @classmethod
    def together(cls, batches: Sequence[Bags]) -> Bags:
        """Returns the bags of several batches one after the other."""
        if len(batches) == 1:
            return batches[0]
        starts = np.concatenate([[0], np.cumsum([len(bags.words) for bags in batches])])  # where each batch starts
        offsets = [bags.offsets[1:] + start for bags, start in zip(batches, starts, strict=False)]
        words = np.concatenate([bags.words for bags in batches])  # ranks in the lexicon
        times = np.concatenate([bags.times for bags in batches])  # how much each of them counts
        hashes = np.concatenate([bags.hashes for bags in batches])  # of the texts
        return cls(np.concatenate([[0], *offsets]), words, times, hashes, batches[0].n_words)

    def sums(self, numbers: Any) -> Real:
        """Returns the sum of ``numbers``, one for each word of each text, over the words of each text (texts). The
        words of text i are at ``offsets[i]`` to ``offsets[i + 1]``.
        """
        sums = np.zeros(len(self))
        sizes = np.diff(self.offsets)  # how many words each text has
        for texts in slices_of_length(len(self)):
            n_texts = texts.stop - texts.start
            text_of_word = np.repeat(np.arange(n_texts), sizes[texts])
            words = slice(self.offsets[texts.start], self.offsets[texts.stop])
            sums[texts] = np.bincount(text_of_word, numbers[words], n_texts)
        return sums

    def squares(self, values: Real) -> Real:
        """Returns for each word of the lexicon the sum of the squares of ``values``, which say how much each word of
        each text counts (words of the lexicon). ``self.words`` has the places of the words of all texts in the lexicon.
        """
        sums = np.zeros(self.n_words)  # words of the lexicon
        for words in slices_of_length(len(self.words), WORDS_TOGETHER):
            sums += np.bincount(self.words[words], np.square(values[words]), self.n_words)
        return sums


def slices_of_length(n: int, most: int = TEXTS_TOGETHER) -> list[slice]:
    """Returns slices of at most ``most`` that together cover n texts or words, so that temporary arrays stay small."""
    return [slice(start, min(start + most, n)) for start in range(0, n, most)]


@dataclass(frozen=True)
class Lexicon:
    """The words of a column that an estimate uses, in the order of their names, and where a table has them now."""

    feature: Feature  # the column
    used: Vocabulary  # the words, with their ids in a table

    @classmethod
    def of(cls, feature: Feature, sums: Any) -> Lexicon:
        """Returns the words that an estimate of this feature uses; ``sums`` are its counted words."""
        return cls(feature, bag_of_words(feature).words_in_use(feature, sums))

    def __len__(self) -> int:
        """Returns the number of words."""
        return len(self.used.ids)

    @property
    def words(self) -> list[str]:
        """The words in order, as people read them."""
        return bag_of_words(self.feature).names(self.feature, self.used)

    @cached_property
    def ranks(self) -> NDArray[np.uint32]:
        """For each id of the table the word's place in this list (ids); NOT_LISTED if the list does not have the word."""
        ranks = np.full(self.used.table.n_ids, NOT_LISTED, dtype=np.uint32)
        # ``used.ids`` has the id of each word of the list.
        ranks[self.used.ids] = np.arange(len(self), dtype=np.uint32)
        return ranks

    def documents(self) -> Real:
        """Returns how many texts of each class have each word (words × classes). ``used`` are the words in their table."""
        tables = [pairs.cells(pairs.documents, self.used.n_classes) for pairs in self.used]  # for some words each
        return np.concatenate(tables) if tables else np.zeros((0, self.used.n_classes))

    def bags(self, rows: ColumnReader, sums: Any, threads: int) -> Bags:
        """Returns the bags of rows, with words as their places in this list, which ``ranks`` has for each word id.
        ``sums`` are the counted words, which decide which words are known.
        """
        # The words of row i, and how much each counts, are offsets[i] to offsets[i + 1] of ``ids`` and ``amounts``.
        offsets, ids, amounts = bag_of_words(self.feature).bags(rows, self.feature, sums, threads)
        arrays = (  # as the kernel takes them
            np.asarray(offsets, dtype=np.int64),
            np.ascontiguousarray(ids, dtype=np.int32),
            np.ascontiguousarray(amounts, dtype=np.float64),
        )
        return Bags(*Bags.ranked(*arrays, self.ranks, threads), len(self))

    def positions(self, words: Sequence[str]) -> Int:
        """Returns the place of each of these words in the list (words), which has all of them."""
        names = self.words
        if names == list(words):
            return np.arange(len(names))
        position_of = {word: position for position, word in enumerate(names)}
        return np.array([position_of[word] for word in words], dtype=np.int64)
