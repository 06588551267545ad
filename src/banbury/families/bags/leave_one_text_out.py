"""What a bag of words says of a text when that text is not counted: for every text at once, from the sums of all.

Smoothing, the words there are, thresholds of counts and shares, and IDF weights follow exactly; the ranks of words stay
those of all texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Int, Real
from banbury.families.bags import event_models
from banbury.families.bags.text_parameters import missing_texts
from banbury.families.bags.text_settings import TextSettings
from banbury.families.bags.vocabulary import pairs_of
from banbury.families.family import Feature, HeldOutRows
from banbury.sums import Words

Bools = NDArray[np.bool_]
BLOCK = 1 << 23  # numbers of words × classes that are looked at together
TABLES = 4  # so many different counts of a word in a text are looked up in tables of all words


@dataclass(frozen=True)
class _Entries:
    """Words of texts: text ``text[e]`` has word ``word[e]``, which counts ``x[e]`` there, and ``mine[e]`` in the sums.

    ``inside``: whether the word is in the vocabulary when the text is left out; ``outside``: whether it is when another text is,
    which does not have it.
    """

    text: Int
    word: Int
    x: Real
    mine: Real
    inside: Bools
    outside: Bools

    def only(self, kept: Bools) -> _Entries:
        if kept.all():
            return self
        return _Entries(*(getattr(self, field.name)[kept] for field in fields(self)))


class CountedTexts:
    """A column of texts that were all counted, and their sums."""

    def __init__(self, family: TextSettings, feature: Feature, sums: Words, held_out: HeldOutRows) -> None:
        self.family = family
        self.held_out = held_out
        table: Any = sums.table
        self.table = table if family.vocabulary is None else family.vocabulary_words(table).table
        table = self.table
        self.texts = family.texts(held_out.rows, feature.name)
        self.n_texts, self.n_classes, self.n_words = len(held_out.labels), int(table.n_classes), int(table.n_ids)
        self.there = ~missing_texts(self.texts, self.n_texts)
        self.per_class = table.texts().value

    # What there is

    @cached_property
    def counts(self) -> Any:
        """Occurrences, or documents, of every word in every class, words × classes."""
        from scipy.sparse import csr_matrix

        counts = (self.pairs.documents if self.family.once else self.pairs.occurrences).astype(np.float64)
        return csr_matrix((counts, self.pairs.classes, self.pairs.starts), (self.n_words, self.n_classes))

    @cached_property
    def pairs(self) -> Any:
        return pairs_of(self.table, np.arange(self.n_words, dtype=np.uint32))

    @cached_property
    def occurrences(self) -> Real:
        return np.asarray(self.pairs.per_word(self.pairs.occurrences), dtype=np.float64)

    @cached_property
    def documents(self) -> Real:
        return np.asarray(self.pairs.per_word(self.pairs.documents), dtype=np.float64)

    @cached_property
    def scale(self) -> Real:
        """What a token of each word counts when a text is left out that has the word."""
        return self._scale(self.documents - 1.0)

    @cached_property
    def other_scale(self) -> Real:
        """The same when a text is left out that does not have it."""
        return self._scale(self.documents)

    def _scale(self, documents: Real) -> Real:
        if not self.family.idf:
            return np.ones(self.n_words)
        return event_models.inverse_document_frequency(np.maximum(documents, 0.0), float(self.per_class.sum()) - 1.0)

    @cached_property
    def entries(self) -> _Entries:
        family = self.family
        weight = self.held_out.weight
        offsets, ids, times = self.table.bags(family.tokeniser, self.texts, self.held_out.threads)
        text = np.repeat(np.arange(self.n_texts), np.diff(offsets))
        word = ids.astype(np.int64)
        x = np.ones(len(word)) if family.once else self._damp(offsets, times)
        occurrences = weight[text] * (self._damp(offsets, times) if family.once else x)
        inside = self._is_in_vocabulary(self.occurrences[word] - occurrences, self.documents[word] - weight[text], word)
        every = np.arange(self.n_words)
        outside = self._is_in_vocabulary(self.occurrences, self.documents, every)
        x = x * self.scale[word]
        return _Entries(text, word, x, weight[text] * x, inside, outside[word]).only(inside | outside[word])

    @cached_property
    def scored(self) -> _Entries:
        return self.entries.only(self.entries.inside & (self.entries.x > 0))

    def _damp(self, offsets: Int, times: NDArray[np.int32]) -> Real:
        damped = np.log1p(times) if self.family.damping == "log" else times.astype(np.float64)
        if not self.family.length:
            return damped
        sizes = np.diff(offsets)
        squares = np.zeros(self.n_texts)
        filled = sizes > 0
        squares[filled] = np.add.reduceat(damped**2, offsets[:-1][filled]) if filled.any() else 0.0
        return np.asarray(damped / np.repeat(np.sqrt(np.where(filled, squares, 1.0)), sizes))

    def _is_in_vocabulary(self, occurrences: Real, documents: Real, word: Int) -> Bools:
        """Which words are in the vocabulary of all texts but one, in which they occur so often."""
        family = self.family
        pruning = self.family.pruning
        there = documents > 0
        if family.vocabulary is not None:
            there = self._given[word]
        if pruning.ranks:
            return np.asarray(there & self._ranked[word])
        n_texts = float(self.per_class.sum()) - (1.0 if self.held_out.weights is None else 0.0)
        slack = 1e-12
        kept = there & (occurrences >= pruning.min_count - slack) & (documents >= pruning.min_share * n_texts)
        return np.asarray(kept & (documents <= pruning.max_share * n_texts) if pruning.max_share < 1 else kept)

    @cached_property
    def _given(self) -> Bools:
        return self._flags(self.family.vocabulary_words(self.table).ids)

    @cached_property
    def _ranked(self) -> Bools:
        return self._flags(self.family.words(self.table, by_name=True).ids)

    def _flags(self, ids: Any) -> Bools:
        flags = np.zeros(self.n_words, dtype=np.bool_)
        flags[ids] = True
        return flags

    @cached_property
    def _always(self) -> Bools:
        """The vocabulary when a text is left out that has none of these words."""
        return self._is_in_vocabulary(self.occurrences, self.documents, np.arange(self.n_words))

    # Sums

    def _blocks(self) -> Iterator[tuple[slice, Real]]:
        """Some classes at a time, and the counts of all words in them."""
        size = max(1, BLOCK // max(self.n_words, 1))
        if size >= self.n_classes:
            yield slice(0, self.n_classes), np.asarray(self.counts.toarray(), dtype=np.float64)
            return
        by_class = self.counts.tocsc()
        for start in range(0, self.n_classes, size):
            classes = slice(start, min(start + size, self.n_classes))
            yield classes, np.asarray(by_class[:, classes].toarray(), dtype=np.float64)

    def _matrix(self, entries: _Entries, numbers: Real) -> Any:
        """Numbers of entries as a sparse matrix, texts × words."""
        from scipy.sparse import csr_matrix

        starts = np.searchsorted(entries.text, np.arange(self.n_texts + 1))
        return csr_matrix((numbers, entries.word, starts), (self.n_texts, self.n_words))

    def _per_text(self, entries: _Entries, numbers: Real) -> Real:
        return np.bincount(entries.text, weights=numbers, minlength=self.n_texts).astype(np.float64, copy=False)

    @cached_property
    def vocabulary(self) -> Real:
        """How many words there are when each text is left out."""
        e = self.entries
        change = e.inside.astype(np.float64) - e.outside
        return float(self._always.sum()) + self._per_text(e, change)

    def _totals(self, classes: slice, counts: Real) -> Real:
        """The sum of all counts in each class when each text is left out, but for the text's own."""
        e = self.entries
        scaled = self.other_scale[:, None] * counts
        base = self._always @ scaled
        moved = e if self.family.idf else e.only(e.inside != e.outside)
        if not len(moved.text):
            return np.broadcast_to(base, (self.n_texts, counts.shape[1])).copy()
        comes = self._matrix(moved, moved.inside * self.scale[moved.word])
        goes = self._matrix(moved, moved.outside * self.other_scale[moved.word])
        return _minus(base, (goes - comes) @ counts)

    def _labels(self, classes: slice, of: Int) -> tuple[Int, Int]:
        """Which of these labels are among the classes, and where there."""
        at = np.flatnonzero((of >= classes.start) & (of < classes.stop))
        return at, of[at] - classes.start

    def _answer(self) -> Real:
        return np.zeros((self.n_texts, self.n_classes))

    # Event models

    def multinomial(self, a: float) -> Real:
        """x · (log(n + a) − log(N + aV)), where n and N of the text's own class are without its words."""
        inside = self.scored
        labels = self.held_out.labels
        matrix = self._matrix(inside, inside.x)
        result = self._answer()
        length = self._per_text(inside, inside.x)
        mine = self._per_text(inside, inside.mine)
        for classes, counts in self._blocks():
            scaled = self.scale[:, None] * counts
            scores = matrix @ np.log(scaled + a)
            total = self._totals(classes, counts)
            at, c = self._labels(classes, labels)
            total[at, c] = _minus(total[at, c], mine[at])
            total += a * np.maximum(self.vocabulary, 1.0)[:, None]
            e, c = self._labels(classes, labels[inside.text])
            n = scaled[inside.word[e], c]
            change = inside.x[e] * (np.log(_minus(n, inside.mine[e]) + a) - np.log(n + a))
            text_changes = np.bincount(inside.text[e], weights=change, minlength=self.n_texts)
            at, c = self._labels(classes, labels)
            scores[at, c] += text_changes[at]
            result[:, classes] = scores - length[:, None] * np.log(total)
        return result

    def complement(self, a: float) -> Real:
        """x · (log(M + aV) − log(m + a)), m and M what all other classes have; the text's words are in none of them."""
        inside = self.scored
        labels = self.held_out.labels
        every = np.asarray(self.counts.sum(axis=1)).reshape(-1)
        length = self._per_text(inside, inside.x)
        mine = self._per_text(inside, inside.mine)
        result = self._answer()
        most = self.scale * every
        together = self._together()
        for classes, counts in self._blocks():
            elsewhere = self.scale[:, None] * _minus(every[:, None], counts)
            scores = self._elsewhere(inside, elsewhere, most, a)
            e, c = self._labels(classes, labels[inside.text])
            m = elsewhere[inside.word[e], c]  # of the text's own class, unchanged
            fewer = _minus(m, inside.mine[e], most[inside.word[e]])
            change = inside.x[e] * (np.log(fewer + a) - np.log(m + a))
            text_changes = np.bincount(inside.text[e], weights=change, minlength=self.n_texts)
            at, c = self._labels(classes, labels)
            scores[at, c] += text_changes[at]
            here = self._totals(classes, counts)
            here[at, c] = _minus(here[at, c], mine[at])
            total = _minus(together[:, None], here + mine[:, None]) + a * np.maximum(self.vocabulary, 1.0)[:, None]
            result[:, classes] = scores + length[:, None] * np.log(total)
        return result

    def log_odds(self, a: float) -> Real:
        """Both together, times (K − 1) / K of the K classes that have a text when each is left out."""
        weight = np.where(self.there, self.held_out.weight, 0.0)
        texts = self.per_class[self.held_out.labels]
        last = (texts > 0) & (_minus(texts, weight) <= 0)
        left = np.maximum(np.count_nonzero(self.per_class) - last, 1)
        return np.asarray(((left - 1) / left)[:, None] * (self.multinomial(a) + self.complement(a)))

    def _together(self) -> Real:
        """The counts of all classes when each text is left out, but for the text's own."""
        return sum((self._totals(classes, counts).sum(axis=1) for classes, counts in self._blocks()), np.zeros(1))

    def _elsewhere(self, entries: _Entries, elsewhere: Real, most: Real, a: float) -> Real:
        """−x · log(m + a) summed over each text's words, m without the text's own; ``most``: of all classes."""
        sizes, number, n_entries = np.unique(entries.mine, return_inverse=True, return_counts=True)
        scores = np.zeros((self.n_texts, elsewhere.shape[1]))
        often = np.argsort(-n_entries, kind="stable")[:TABLES]
        for size in often.tolist():
            some = entries.only(number == size)
            scores += self._matrix(some, some.x) @ -np.log(_minus(elsewhere, sizes[size], most[:, None]) + a)
        rest = entries.only(~np.isin(number, often))
        step = max(1, BLOCK // max(elsewhere.shape[1], 1))
        for start in range(0, len(rest.text), step):
            part = slice(start, start + step)
            word = rest.word[part]
            m = _minus(elsewhere[word], rest.mine[part, None], most[word, None])
            np.subtract.at(scores, rest.text[part], rest.x[part, None] * np.log(m + a))
        return scores

    def bernoulli(self, a: float) -> Real:
        """log p of words in the text, log(1 − p) of all others, p = (d + a) / (D + 2a); the text is not in d and D."""
        e = self.entries
        labels = self.held_out.labels
        result = self._answer()
        present = self._matrix(e, e.inside.astype(np.float64))
        counted = self._matrix(e, e.outside.astype(np.float64))
        for classes, d in self._blocks():
            texts = self.per_class[classes]
            yes, no = _logs(d, texts, a)
            scores = self._always @ no + present @ yes - counted @ no
            fewer = np.maximum(texts - 1.0, 0.0)
            _, without = _logs(d, fewer, a)  # of words that the text does not have
            base = self._always @ without
            of, c = self._labels(classes, labels[e.text])
            n = d[e.word[of], c]
            size = fewer[c]
            with_it = np.log((np.maximum(n - 1.0, 0.0) + a) / (size + 2.0 * a))
            change = e.inside[of] * with_it - e.outside[of] * without[e.word[of], c]
            text_changes = np.bincount(e.text[of], weights=change, minlength=self.n_texts)
            at, c = self._labels(classes, labels)
            scores[at, c] = base[c] + text_changes[at]
            result[:, classes] = np.where(self.there[:, None], scores, 0.0)
        return result


def _minus(total: Any, part: Any, of: Any = None) -> Real:
    """The difference; 0 where no more is left than the rounding of the whole, or of what that was a difference of."""
    left = total - part
    return np.where(left <= 1e-12 * np.abs(total if of is None else of), 0.0, left)


def _logs(d: Real, texts: Real, a: float) -> tuple[Real, Real]:
    divisor = texts + 2.0 * a
    return np.log((d + a) / divisor), np.log((np.maximum(texts - d, 0.0) + a) / divisor)
