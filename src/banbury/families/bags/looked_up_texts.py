"""Texts whose words are looked up once, so that the same rows can be counted again and again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real, positions_in_slices
from banbury.families.bags.occurrences import NO_TOKENISER
from banbury.families.bags.text import missing_texts
from banbury.families.family import ColumnReader, Feature
from banbury.sums import Words, kernel_weights

WITHOUT_PRUNING: Any = dict.fromkeys(("min_count", "min_share", "drop_most_frequent"), 0)
WITHOUT_PRUNING |= {"max_share": 1.0, "max_words": None}


@dataclass(frozen=True)
class LookedUpTexts:
    """A column of texts as a matrix of counts: a word's id is its column.

    The words of text i are at ``offsets[i]`` to ``offsets[i + 1]`` of ``ids``, ``times`` and ``values``.
    """

    feature: Feature  # whose words are named by their ids
    offsets: Int
    ids: NDArray[np.int32]
    times: NDArray[np.int32]  # how often the text has the word
    missing: NDArray[np.bool_]  # of each text
    values: Real  # how much the word counts in the text
    n_words: int

    @classmethod
    def look_up(cls, feature: Feature, rows: ColumnReader, weights: Real, threads: int) -> LookedUpTexts:
        """Looks up the words of all rows once. ``weights`` (rows) decide which words are too rare, if the family drops
        such words.
        """
        family: Any = feature.family  # of texts, with its settings
        if family.max_words is not None and family.choose_by == "mutual_information":
            raise errors.bad_setting("choose_by", family.choose_by, "'count' where rows have no label")
        texts = family.kernel_input(rows, feature)
        # Class 0 for every row (or −1), and the weights as the kernels take them.
        classes, unit_weights = kernel_weights(np.zeros(rows.n_rows, dtype=np.int32), weights)
        # All texts as one class, to see which words are too rare.
        table = _core.Words(1, 0).count(family.tokeniser, texts, classes, unit_weights, threads)
        # The words that count, None for all.
        used_words = family.words(feature, table) if family.vocabulary is not None or family.pruning.any else None
        table = table if used_words is None else used_words.table
        # The words of text i, and how often it has each, are offsets[i] to offsets[i + 1] of the other two.
        offsets, ids, times = table.bags(family.tokeniser, texts, threads)
        n_words = table.n_ids
        vocabulary = None  # the names of the words that count, None for all that are looked up
        needs_all_words = family.length or family.vocabulary is not None  # for lengths, and for words that no text has
        if used_words is not None and len(used_words.ids) and needs_all_words:
            vocabulary = tuple(f"#{word_id}" for word_id in used_words.ids.tolist())
        elif used_words is not None:
            n_words = len(used_words.ids)
            offsets, ids, times = _drop_other_words(used_words.ids, table.n_ids, offsets, ids, times)
        feature_of_ids = feature._replace(family=replace(family, vocabulary=vocabulary, **WITHOUT_PRUNING))
        missing = missing_texts(texts, rows.n_rows)  # of each text
        values = family.count_values(offsets, times)
        return cls(feature_of_ids, offsets, ids, times, missing, values, n_words)

    @property
    def lengths(self) -> Real:
        """How much the words of each text count together (texts). ``values`` says how much each word counts; those of
        text i are at ``offsets[i]`` to ``offsets[i + 1]``.
        """
        n_texts = len(self.missing)
        text_of_word = np.repeat(np.arange(n_texts), np.diff(self.offsets))
        return np.bincount(text_of_word, self.values, n_texts).astype(np.float64, copy=False)

    def count(self, rows: Int, classes: NDArray[np.int32], weights: Any, n_classes: int, threads: int) -> Words:
        """Returns the words of the rows with these numbers, each counted in its class of ``n_classes``; a row may come
        more than once. ``classes`` and ``weights`` (whole numbers, or limbs) have one for each of them.
        """
        # Where the words of each row begin, and the places of all of them in ``ids`` and ``values``; those of text i were
        # at offsets[i] to offsets[i + 1].
        offsets, positions = positions_in_slices(self.offsets[:-1][rows], np.diff(self.offsets)[rows])
        class_codes = np.where(self.missing[rows], np.int32(-1), classes)  # −1: there is no text to count
        table = _core.Words(n_classes, max(self.n_words, 1)).with_columns(self.n_words)  # with a column for each word
        # How much each word counts in each row (rows × words), sparse.
        matrix = _core.Matrix(self.values[positions], (offsets, self.ids[positions]), self.n_words, None, True)
        return Words(table.count(NO_TOKENISER, matrix, class_codes, weights, threads))


def _drop_other_words(
    word_ids: NDArray[np.uint32], n_ids: int, offsets: Int, ids: NDArray[np.int32], times: NDArray[np.int32]
) -> tuple[Int, NDArray[np.int32], NDArray[np.int32]]:
    """Returns bags (offsets, ids and times) of the words ``word_ids`` alone, with new ids from 0 on in the order of the
    old ones. The words of text i are ``offsets[i]`` to ``offsets[i + 1]``; ``n_ids`` is the number of old ids.
    """
    new_ids = np.full(n_ids, -1, dtype=np.int32)
    new_ids[np.sort(word_ids)] = np.arange(len(word_ids))
    stays = new_ids[ids] >= 0  # of each word of each text
    new_offsets = np.concatenate([[0], np.cumsum(stays)])[offsets]
    return new_offsets, new_ids[ids][stays], times[stays]
