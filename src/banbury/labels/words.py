"""What words say of labels: of each word the labels it occurs with, and one number for all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Int, Real
from banbury.families.bags.lexicon import Bags, Lexicon
from banbury.families.bags.text import label_words
from banbury.families.bags.text_parameters import weigh_texts
from banbury.families.bags.vocabulary import AllBut, Vocabulary, of_one_class
from banbury.families.family import Choice, Feature, Parameters
from banbury.sums import Words

SOME_WORDS = 1 << 16  # whose pairs are looked at together


def lexicon_of(feature: Feature, sums: Words, every: int) -> Lexicon:
    """The words of a column that an estimate uses, by the counts of all rows, which are class ``every``."""
    if isinstance(sums.table, AllBut):
        return Lexicon.of(feature, Words(sums.table.of_class(every)))
    return Lexicon.of(feature, Words(of_one_class(sums.table, every)))  # type: ignore[arg-type]


def _drop_other_words(lexicon: Lexicon) -> Lexicon:
    """Of all words those that will be asked for."""
    table = lexicon.used.table
    if not isinstance(table, AllBut) or table.asked is None:
        return lexicon
    there = np.zeros(table.n_ids, dtype=np.bool_)
    there[table.asked] = True
    ids = lexicon.used.ids
    return Lexicon(lexicon.feature, Vocabulary(table, ids[there[ids]], True, lexicon.used.n_words))


@dataclass(frozen=True)
class LabelPairs:
    """Some words: how often all rows have each, and the labels of rows that have it, ``starts[i]`` to ``starts[i + 1]``."""

    occurrences_of_all: Real
    documents_of_all: Real
    starts: Int
    labels: NDArray[np.uint32]
    occurrences: Real
    documents: Real

    @classmethod
    def of(cls, table: Any, ids: NDArray[np.uint32], every: int) -> LabelPairs:
        """From a table whose class ``every`` has all rows."""
        starts, classes, occurrences, documents = table.pairs(ids)
        of_all = classes == every
        before = np.concatenate([[0], np.cumsum(of_all)])[starts]
        all_rows = np.zeros((2, len(ids)))
        all_rows[:, np.diff(before) > 0] = occurrences[of_all], documents[of_all]
        rest = ~of_all
        labels = classes[rest]
        labels = (labels - (labels > every)).astype(np.uint32)
        counts = occurrences[rest].astype(np.float64), documents[rest].astype(np.float64)
        return cls(all_rows[0], all_rows[1], starts - before, labels, *counts)


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
    def of(cls, feature: Feature, sums: Words, every: int, choice: Choice) -> LabelWords:
        """From the counts of labels and of all rows, where the family needs no more than those of its own words."""
        settings = label_words(feature.family, choice)
        assert settings is not None
        once, a = settings
        lexicon = lexicon_of(feature, sums, every)
        table = sums.table
        n_words = len(lexicon)
        n_labels = table.n_classes - 1
        if complete := lexicon.used.complete:  # all words are used, and what they sum to is known
            sums_of_all = (table.documents() if once else table.occurrences()).value
            everything = float(sums_of_all[every])
            label_totals = np.delete(sums_of_all, every)
            lexicon = _drop_other_words(lexicon)
        else:
            everything = 0.0
            label_totals = np.zeros(n_labels)
        ids = lexicon.used.ids
        total = np.zeros(len(lexicon))
        parts: list[tuple[Int, NDArray[np.uint32], Real]] = []
        for start in range(0, len(ids), SOME_WORDS):
            some = slice(start, start + SOME_WORDS)
            pairs_of_some = LabelPairs.of(table, ids[some], every)
            total[some] = pairs_of_some.documents_of_all if once else pairs_of_some.occurrences_of_all
            counted = pairs_of_some.documents if once else pairs_of_some.occurrences
            sizes = np.diff(pairs_of_some.starts)
            if not complete:
                label_totals += np.bincount(pairs_of_some.labels, counted, n_labels)
                everything += float(total[some].sum())
            rest = np.repeat(total[some], sizes)
            parts.append(
                (sizes, pairs_of_some.labels, np.log1p(counted / a) - np.log((rest - counted + a) / (rest + a)))
            )
        sizes, pairs, says = (np.concatenate(arrays) for arrays in zip(*parts, strict=True)) if parts else NO_PAIRS
        smoothing = a * n_words
        slopes = (
            np.log((everything - label_totals + smoothing) / (label_totals + smoothing))
            if n_words
            else np.zeros(n_labels)
        )
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(lexicon, sums, once, starts, pairs, says, np.log(a / (total + a)), slopes)

    def scores(self, bags: Bags, threads: int) -> Real:
        """The log-odds that each text adds, (rows, labels)."""
        times = np.ones(len(bags.words)) if self.once else bags.times
        index: Any = (self.starts, self.labels, self.says, self.base)
        return bags.label_scores(times, index, self.slopes, threads)


@dataclass(frozen=True)
class TellingWords:
    """A column of texts by the words that tell most of each label, so many at most, in texts whose length is one.

    A word says log P(word | label) / P(word | not the label), each drawn towards how often it occurs at all as if BELIEVED more
    words had been read. So a label of few rows is judged by few words, and not by all that its texts happen to lack.
    """

    lexicon: Lexicon
    sums: Words
    starts: Int
    labels: NDArray[np.uint32]
    says: Real
    documents: Real  # of each pair, texts with the label that have the word
    n_labels: int

    @classmethod
    def of(cls, feature: Feature, sums: Words, every: int, rows: Real, n_rows: float, n: int) -> TellingWords:
        """From the counts of labels and of all rows; ``rows`` have each label."""
        lexicon = lexicon_of(feature, sums, every)
        table = sums.table
        ids = lexicon.used.ids
        n_labels = table.n_classes - 1
        pairs = LabelPairs.of(table, ids, every)
        total = pairs.occurrences_of_all
        having = pairs.documents_of_all
        labels = pairs.labels
        occurrences = pairs.occurrences
        documents = pairs.documents
        words = np.repeat(np.arange(len(ids)), np.diff(pairs.starts))
        label_totals = np.bincount(labels, occurrences, n_labels)
        everything = max(float(total.sum()), 1.0)
        kept = _telling(labels, documents, having[words], rows, n_rows, n)
        words = words[kept]
        labels = labels[kept]
        occurrences = occurrences[kept]
        documents = documents[kept]
        prior = BELIEVED * total[words] / everything
        says = np.log((occurrences + prior) / (label_totals[labels] + BELIEVED))
        says -= np.log((total[words] - occurrences + prior) / (everything - label_totals[labels] + BELIEVED))
        starts = np.searchsorted(words, np.arange(len(ids) + 1)).astype(np.int64)
        return cls(lexicon, sums, starts, labels, says, documents, n_labels)

    def scores(self, bags: Bags, threads: int) -> Real:
        """The log-odds that each text adds, (rows, labels)."""
        values = bags.values(True, np.ones(len(self.lexicon), dtype=np.float32), threads)
        index: Any = (self.starts, self.labels, self.says, np.zeros(len(self.lexicon)))
        return bags.label_scores(values, index, np.zeros(self.n_labels), threads)

    def parameters(self, label: int, sums: Words, feature: Feature, n_texts: Real) -> Parameters:
        """Of one label, what words say for and against it; ``n_texts`` have it not, and have it."""
        pairs = np.flatnonzero(self.labels == label)
        words = np.searchsorted(self.starts, pairs, side="right") - 1
        lexicon = Lexicon.of(feature, sums)
        table, documents = np.zeros((2, len(lexicon), 2))
        table[words, 1], documents[words, 1] = self.says[pairs], self.documents[pairs]
        documents[:, 0] = np.maximum(lexicon.documents().sum(axis=1) - documents[:, 1], 0.0)
        ones = np.ones(len(lexicon), dtype=np.float32)
        return weigh_texts(lexicon, ones, table, True, documents, n_texts)


def _telling(labels: Any, documents: Real, having: Real, rows: Real, n_rows: float, n: int) -> Int:
    """The pairs of word and label that tell most of each label, n of each at most, by the likelihood ratio of presence."""
    n_own = rows[labels]
    cells = documents, having - documents, n_own - documents, n_rows - n_own - having + documents
    expected = (
        having * n_own,
        having * (n_rows - n_own),
        (n_rows - having) * n_own,
        (n_rows - having) * (n_rows - n_own),
    )
    ratio = np.zeros(len(labels))
    for cell, product in zip(cells, expected, strict=True):
        there = (cell > 0) & (product > 0)
        ratio[there] += cell[there] * np.log(cell[there] * n_rows / product[there])
    order = np.lexsort((np.arange(len(labels)), -ratio, labels))
    first = np.searchsorted(labels[order], labels[order])
    return np.sort(order[np.arange(len(order)) - first < n])


BELIEVED = 1000.0  # words of which each label has as many of each as all texts have on average
NO_PAIRS = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint32), np.zeros(0)
