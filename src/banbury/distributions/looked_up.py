"""Texts whose words are looked up once, to be counted and scored again and again with other soft labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.distributions.bag import missing_texts
from banbury.distributions.family import ColumnReader, Feature
from banbury.distributions.occurrences import UNREAD
from banbury.sums import Words, weighed

UNPRUNED: dict[str, Any] = {
    "min_count": 0,
    "min_share": 0,
    "max_share": 1.0,
    "drop_most_frequent": 0,
    "max_words": None,
}


@dataclass(frozen=True)
class LookedUpTexts:
    """A column of text, its words looked up once; a word's number is its column in a matrix of occurrences."""

    feature: Feature  # whose words are named by their numbers
    offsets: Int
    ids: NDArray[np.int32]
    times: NDArray[np.int32]
    missing: NDArray[np.bool_]
    values: Real  # what each word of each text counts
    n_words: int

    @classmethod
    def of(cls, feature: Feature, rows: ColumnReader, weights: Real, threads: int) -> LookedUpTexts:
        """``weights``: one for each row; they say which words are too rare, where a family asks that."""
        family: Any = feature.family
        if family.max_words is not None and family.choose_by == "mutual_information":
            raise errors.bad_setting("choose_by", family.choose_by, "'count' where rows have no label")
        texts = family.texts(rows, feature.name)
        there, parts = weighed(np.zeros(rows.n_rows, dtype=np.int32), weights)
        table = _core.Words(1, family.buckets or 0)
        table.count(family.tokeniser, texts, there, parts, threads)
        kept = family.words(table) if family.vocabulary is not None or family.pruning.any else None
        table = table if kept is None else kept.table
        offsets, ids, times = table.bags(family.tokeniser, texts, threads)
        n_words, vocabulary = table.n_ids, None
        all_count = family.length or family.vocabulary is not None  # lengths are of all words; some are in no text
        if kept is not None and len(kept.ids) and all_count:
            vocabulary = tuple(f"#{i}" for i in kept.ids.tolist())
        elif kept is not None:
            n_words = len(kept.ids)
            offsets, ids, times = _only(kept.ids, table.n_ids, offsets, ids, times)
        numbered = feature._replace(family=replace(family, vocabulary=vocabulary, buckets=None, **UNPRUNED))
        missing, values = missing_texts(texts, rows.n_rows), _counted(family, offsets, times)
        return cls(numbered, offsets, ids, times, missing, values, n_words)

    @property
    def lengths(self) -> Real:
        owners = np.repeat(np.arange(len(self.missing)), np.diff(self.offsets))
        return np.bincount(owners, self.values, len(self.missing)).astype(np.float64, copy=False)

    def count(self, rows: Int, classes: NDArray[np.int32], weights: Any, n_classes: int, threads: int) -> Words:
        """The words of these rows, some of them more than once, each in one class."""
        size = np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(size)])
        at = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], size)
        cells = offsets, self.ids[at], self.values[at]
        numbers = np.where(self.missing[rows], np.int32(-1), classes)
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


def _counted(family: Any, offsets: Int, times: NDArray[np.int32]) -> Real:
    """What a word counts that a text has so many times, as the tokeniser would have it."""
    values = np.log1p(times) if family.damping == "log" else times.astype(np.float64)
    if family.length and len(values):
        owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        lengths = np.sqrt(np.bincount(owners, values**2, len(offsets) - 1))
        values = values / lengths[owners]
    return np.asarray(values)
