"""Families that are counted by word: what texts and blocks of occurrences answer alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.distributions.family import Feature
from banbury.distributions.information import BIT, ColumnTest, expected, p_values, untested
from banbury.distributions.vocabulary import Vocabulary, mutual_information
from banbury.distributions.words import WordFamily
from banbury.sums import Words


class TellingWord(NamedTuple):
    """A word, or a column of a block of occurrences: its id in the table, its name, and what its presence tells."""

    number: int
    name: str
    bits: float


def most_telling(feature: Feature, words: Vocabulary, n: int) -> list[TellingWord]:
    """The words that tell most; equals by name, columns in their order."""
    each = [mutual_information(pairs, words.texts) / BIT for pairs in words]
    bits = np.concatenate(each) if each else np.zeros(0)
    best = np.argsort(-bits, kind="stable")[:n]
    ids = words.ids[best]
    names = [feature.columns[k] for k in best.tolist()] if feature.columns else words.table.words(ids)
    return [TellingWord(*word) for word in zip(ids.tolist(), names, bits[best].tolist(), strict=True)]


class TellingFamily(WordFamily):
    """The base of families whose sums are occurrences of words; a feature tells what its most telling word does."""

    def used_words(self, feature: Feature, sums: Words) -> Vocabulary:
        raise NotImplementedError

    def has_density(self) -> bool:
        return False

    def check_alternatives(self, column: str, values: Any) -> None:
        wanted = "one at a time: words that were never counted say nothing, so that texts have no sum"
        raise errors.bad_setting(f"the values of {column!r}", values, wanted)

    def bits(self, features: tuple[Feature, ...], sums: Words, rows: Real) -> Real:
        best = [most_telling(feature, self.used_words(feature, sums), 1) for feature in features]
        return np.array([words[0].bits if words else 0.0 for words in best])

    def joins(self, feature: Feature) -> bool:
        return False

    def compared(self, feature: Feature) -> tuple[Feature, ...]:
        return (feature,)

    def test(
        self, features: tuple[Feature, ...], sums: Words, scale: float, n: int, columns: Mapping[str, ColumnTest]
    ) -> list[ColumnTest]:
        """Of the word that tells most; p is that of the best of so many words."""
        (feature,) = features
        words, texts = self.used_words(feature, sums), sums.texts.value
        n_texts, classes = float(texts.sum()) * scale, int(np.count_nonzero(texts))
        freedom = max(classes - 1, 0) if words.n_words else 0
        best, chance = most_telling(feature, words, n), float(expected(freedom, n_texts))
        p = float(p_values(best[0].bits if best else 0.0, freedom, 0.0, n_texts)) * max(words.n_words, 1)
        beyond = {word.name: max(word.bits - chance, 0.0) for word in best}
        why = untested(n_texts, len(texts), classes, "" if words.n_words else "no words")
        return [ColumnTest(max(beyond.values(), default=0.0), min(p, 1.0), False, why, beyond)]
