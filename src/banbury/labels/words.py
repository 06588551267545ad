"""The evidence of words about labels: log-odds for each pair of a word and a label it occurs with, and one number for all
other labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury.arrays import Int, Real
from banbury.families.bags.lexicon import Lexicon
from banbury.families.bags.text import label_words
from banbury.families.bags.vocabulary import AllBut, Vocabulary, of_one_class
from banbury.families.bags.weighed_texts import weigh_texts
from banbury.families.family import Choice, ColumnReader, Feature, Parameters
from banbury.sums import Words
from banbury.tally.label_sets import EVERY
from banbury.tally.tally import Tally

PRIOR_WORDS = 1000.0  # words of average texts that each label is credited with
WORDS_PER_BATCH = 1 << 16  # whose pairs are read together


def lexicon_of(tally: Tally, column: str) -> Lexicon:
    """Returns the words of a text column that an estimate uses, by their counts in all rows. The tally is one of label
    sets, whose class EVERY has all rows.
    """
    table = tally.of(column).table  # the counts of words by class
    all_rows_class = tally.classes.index(EVERY)  # its number
    is_restricted = isinstance(table, AllBut)  # of all rows but those of a group
    table_of_all: Any = table.of_class(all_rows_class) if is_restricted else of_one_class(table, all_rows_class)
    return Lexicon.of(tally.schema[column], Words(table_of_all))


def _drop_unneeded_words(lexicon: Lexicon) -> Lexicon:
    """Returns the lexicon without words that the rows to score do not have, if its table says which words these have
    (``needed_ids``); otherwise the same lexicon. The new one says that it has as many words as before.
    """
    table = lexicon.used.table  # the counts of words
    if not isinstance(table, AllBut) or table.needed_ids is None:
        return lexicon
    is_needed = np.zeros(table.n_ids, dtype=np.bool_)
    is_needed[table.needed_ids] = True  # by the number of the word in the table
    ids = lexicon.used.ids  # where the table has each word of the lexicon
    return Lexicon(lexicon.feature, Vocabulary(table, ids[is_needed[ids]], complete=True, size=lexicon.used.n_words))


@dataclass(frozen=True)
class LabelPairs:
    """How often words occur, in all rows and in the rows of each label. There is a pair for each word and label that
    occur together; those of word i are ``starts[i]`` to ``starts[i + 1]``.
    """

    occurrences_of_all: Real  # how often each word occurs in all rows (words,)
    documents_of_all: Real  # how many rows have each word (words,)
    starts: Int  # (words + 1,)
    labels: NDArray[np.uint32]  # the label number of each pair (pairs,)
    occurrences: Real  # how often the word occurs in rows of the label (pairs,)
    documents: Real  # how many rows of the label have the word (pairs,)

    @classmethod
    def of(cls, table: Any, ids: NDArray[np.uint32], all_rows_class: int) -> LabelPairs:
        """Returns the pairs of some words from a table of counts, which has them at the positions ``ids``. Its class
        number ``all_rows_class`` has the counts of all rows, and its other classes are the labels.
        """
        # Where the pairs of each word start (words + 1,); the class, the occurrences and the documents of each pair.
        starts, classes, occurrences, documents = table.pairs(ids)
        is_all_rows = classes == all_rows_class
        # For each word, how many pairs before its first one are of all rows and are removed here.
        n_removed_before = np.concatenate([[0], np.cumsum(is_all_rows)])[starts]
        counts_of_all = np.zeros((2, len(ids)))  # occurrences and documents
        counts_of_all[:, np.diff(n_removed_before) > 0] = occurrences[is_all_rows], documents[is_all_rows]
        is_label = ~is_all_rows
        label_classes = classes[is_label]  # class numbers of the table, which has one more class than labels
        return cls(
            occurrences_of_all=counts_of_all[0],
            documents_of_all=counts_of_all[1],
            starts=starts - n_removed_before,
            labels=(label_classes - (label_classes > all_rows_class)).astype(np.uint32),
            occurrences=occurrences[is_label].astype(np.float64),
            documents=documents[is_label].astype(np.float64),
        )


@dataclass(frozen=True)
class LabelWords:
    """The evidence of a text column: log P(word | label) / P(word | not the label).

    Only pairs of a word and a label that occur together are stored; those of word i are ``starts[i]`` to ``starts[i + 1]``. With
    every other label, a word counts ``base`` plus a number that depends only on the label, ``slopes``. So scoring a text costs
    only the pairs of its words, however many labels there are.
    """

    lexicon: Lexicon  # the words
    sums: Words  # their counts in the tally
    once: bool  # whether a word counts once per text
    starts: Int  # (words + 1,)
    labels: NDArray[np.uint32]  # the label number of each pair (pairs,)
    log_ratios: Real  # what the pair adds to the evidence of ``base`` and ``slopes`` (pairs,)
    base: Real  # (words,)
    slopes: Real  # (labels,)

    @classmethod
    def of(cls, tally: Tally, column: str, choice: Choice) -> LabelWords:
        """Returns the evidence of the text column ``column``, estimated as ``choice`` says from a tally of label sets."""
        settings = label_words(tally.schema[column].family, choice)
        assert settings is not None
        counts_documents, alpha = settings  # whether a word counts once per text, and the pseudo-count of a word
        lexicon = lexicon_of(tally, column)
        all_rows_class = tally.classes.index(EVERY)  # its number
        sums = tally.of(column)
        table = sums.table  # the counts of words by class: each label, and all rows
        n_words = len(lexicon)
        n_labels = table.n_classes - 1
        uses_all_words = lexicon.used.complete  # all that the table has
        if uses_all_words:
            # The number of words in the texts of each class; then of all rows, and of each label.
            class_totals = (table.documents() if counts_documents else table.occurrences()).value
            total_of_all = float(class_totals[all_rows_class])
            label_totals = np.delete(class_totals, all_rows_class)
            lexicon = _drop_unneeded_words(lexicon)
        else:
            total_of_all = 0.0
            label_totals = np.zeros(n_labels)
        ids = lexicon.used.ids  # where the table has each word
        word_counts = np.zeros(len(ids))  # how often each word occurs in all rows
        n_pairs = np.zeros(len(ids), dtype=np.int64)  # the number of labels that each word occurs with
        label_batches = [np.zeros(0, dtype=np.uint32)]  # the label and the log-ratio of each pair, batch by batch
        log_ratio_batches = [np.zeros(0)]
        for start in range(0, len(ids), WORDS_PER_BATCH):
            batch = slice(start, start + WORDS_PER_BATCH)
            pairs = LabelPairs.of(table, ids[batch], all_rows_class)
            word_counts[batch] = pairs.documents_of_all if counts_documents else pairs.occurrences_of_all
            pair_counts = pairs.documents if counts_documents else pairs.occurrences  # of the word in rows of the label
            n_pairs[batch] = np.diff(pairs.starts)
            if not uses_all_words:
                label_totals += np.bincount(pairs.labels, pair_counts, n_labels)
                total_of_all += float(word_counts[batch].sum())
            # Of each pair: how often its word occurs in all rows.
            count_in_all = np.repeat(word_counts[batch], n_pairs[batch])
            smoothed_without_label = (count_in_all - pair_counts + alpha) / (count_in_all + alpha)
            label_batches.append(pairs.labels)
            log_ratio_batches.append(np.log1p(pair_counts / alpha) - np.log(smoothed_without_label))
        slopes = np.zeros(n_labels)
        if n_words:
            smoothing = alpha * n_words
            slopes = np.log((total_of_all - label_totals + smoothing) / (label_totals + smoothing))
        starts = np.concatenate([[0], np.cumsum(n_pairs)]).astype(np.int64)
        labels = np.concatenate(label_batches)
        log_ratios = np.concatenate(log_ratio_batches)
        return cls(
            lexicon,
            sums,
            counts_documents,
            starts,
            labels,
            log_ratios,
            base=np.log(alpha / (word_counts + alpha)),
            slopes=slopes,
        )

    def scores(self, rows: ColumnReader, threads: int) -> Real:
        """Returns what the words of each text add to the log-odds of each label (rows × labels), for the words and
        pairs in this object's fields. ``rows`` has the text column; ``threads``: how many to use.
        """
        bags = self.lexicon.bags(rows, self.sums, threads)  # the words of each row, and how often each occurs
        times = np.ones(len(bags.words)) if self.once else bags.times  # how often each word of a row counts
        # Where the pairs of each word start, the label and log-ratio of each pair, and the evidence of other labels.
        pair_index: Any = (self.starts, self.labels, self.log_ratios, self.base)
        return bags.label_scores(times, pair_index, self.slopes, threads)


@dataclass(frozen=True)
class InformativeWords:
    """The evidence of a text column by the most informative words of each label, in texts normalised to length one.

    A word counts log P(word | label) / P(word | not the label). Both probabilities are shrunk towards P(word), as if
    PRIOR_WORDS more words had been read, so that the words that a rare label's few texts happen to lack say little.
    """

    lexicon: Lexicon  # the words of the column
    sums: Words  # their counts in the tally
    starts: Int  # where the pairs of each word start (words + 1,)
    labels: NDArray[np.uint32]  # the label number of each pair of a word and a label (pairs,)
    log_ratios: Real  # log P(word | label) / P(word | not the label) (pairs,)
    documents: Real  # how many texts with the label have the word (pairs,)
    n_labels: int

    @classmethod
    def of(cls, tally: Tally, column: str, n_best: int) -> InformativeWords:
        """Returns the evidence of the ``n_best`` words of each label in the text column ``column`` of a tally of label
        sets.
        """
        lexicon = lexicon_of(tally, column)
        all_rows_class = tally.classes.index(EVERY)  # its number
        rows_by_label = np.delete(tally.rows.value, all_rows_class)
        n_rows = float(tally.n_rows)
        sums = tally.of(column)  # ``sums.table`` has the counts of words by class: each label, and all rows
        ids = lexicon.used.ids  # where the table has each word
        n_labels = sums.table.n_classes - 1
        pairs = LabelPairs.of(sums.table, ids, all_rows_class)
        word_counts = pairs.occurrences_of_all  # how often each word occurs in all rows
        words_total = max(float(word_counts.sum()), 1.0)
        label_totals = np.bincount(pairs.labels, pairs.occurrences, n_labels)  # words in the rows of each label
        pair_words = np.repeat(np.arange(len(ids)), np.diff(pairs.starts))  # the word of each pair
        word_documents = pairs.documents_of_all[pair_words]  # how many of all rows have the word of each pair
        best_pairs = _most_informative(pairs.labels, pairs.documents, word_documents, rows_by_label, n_rows, n_best)
        words = pair_words[best_pairs]  # this and what follows: one entry for each of the best pairs
        labels = pairs.labels[best_pairs]
        occurrences = pairs.occurrences[best_pairs]
        prior_counts = PRIOR_WORDS * word_counts[words] / words_total  # occurrences in average texts of so many words
        other_occurrences = word_counts[words] - occurrences  # in rows without the label
        other_totals = words_total - label_totals[labels]  # all words in rows without the label
        log_ratios = np.log((occurrences + prior_counts) / (label_totals[labels] + PRIOR_WORDS))
        log_ratios -= np.log((other_occurrences + prior_counts) / (other_totals + PRIOR_WORDS))
        starts = np.searchsorted(words, np.arange(len(ids) + 1)).astype(np.int64)
        return cls(lexicon, sums, starts, labels, log_ratios, pairs.documents[best_pairs], n_labels)

    def scores(self, rows: ColumnReader, threads: int) -> Real:
        """Returns what the words of each text add to the log-odds of each label (rows × labels): the log-ratios of the
        label's most informative words, in texts of length one. ``rows`` has the text column; ``threads``: how many to
        use.
        """
        bags = self.lexicon.bags(rows, self.sums, threads)  # the words of each row, and how often each occurs
        use_counts = True  # the root of how often a word occurs
        word_scales = np.ones(len(self.lexicon), dtype=np.float32)  # all words weigh the same
        word_values = bags.values(use_counts, word_scales, threads)  # of each word in each row
        base = np.zeros(len(self.lexicon))  # pairs that are not stored add nothing
        slopes = np.zeros(self.n_labels)  # nor does any word as such
        # Where the pairs of each word start, the label and log-ratio of each pair, and the evidence of other labels.
        pair_index: Any = (self.starts, self.labels, self.log_ratios, base)
        return bags.label_scores(word_values, pair_index, slopes, threads)

    def parameters(self, label_number: int, sums: Words, feature: Feature, n_texts: Real) -> Parameters:
        """Returns the parameters of a text column in the yes/no model of one label. ``feature`` is the column in that
        model, ``sums`` its counts, and ``n_texts`` the number of texts without and with the label.
        """
        pair_numbers = np.flatnonzero(self.labels == label_number)  # the label's pairs with its informative words
        words = np.searchsorted(self.starts, pair_numbers, side="right") - 1  # the word of each of these pairs
        lexicon = Lexicon.of(feature, sums)  # the same words, with their counts in the yes/no model
        word_scores = np.zeros((len(lexicon), 2))  # words × (without, with)
        word_scores[words, 1] = self.log_ratios[pair_numbers]
        documents = np.zeros((len(lexicon), 2))  # words × (without, with)
        documents[words, 1] = self.documents[pair_numbers]
        documents[:, 0] = np.maximum(lexicon.documents().sum(axis=1) - documents[:, 1], 0.0)
        word_scales = np.ones(len(lexicon), dtype=np.float32)  # all words weigh the same
        use_counts = True  # the root of how often a word occurs
        return weigh_texts(lexicon, word_scales, word_scores, use_counts, documents, n_texts)


def _most_informative(
    labels: Any, documents: Real, word_documents: Real, rows_by_label: Real, n_rows: float, n_best: int
) -> Int:
    """Returns the numbers of the most informative pairs of a word and a label, at most ``n_best`` of each label, by the
    likelihood ratio of presence.

    Args:
        labels: The label number of each pair.
        documents: How many rows of the label have the word, for each pair.
        word_documents: How many of all rows have the word, for each pair.
        rows_by_label: How many rows have each label.
        n_rows: The number of all rows.
        n_best: How many pairs of each label to return.
    """
    label_rows = rows_by_label[labels]  # of each pair, as everything below
    counts = (  # rows of each pair: with word and label, with the word alone, with the label alone, with neither
        documents,
        word_documents - documents,
        label_rows - documents,
        n_rows - label_rows - word_documents + documents,
    )
    products_of_margins = (  # divided by n_rows, what ``counts`` would be if word and label were independent
        word_documents * label_rows,
        word_documents * (n_rows - label_rows),
        (n_rows - word_documents) * label_rows,
        (n_rows - word_documents) * (n_rows - label_rows),
    )
    likelihood_ratios = np.zeros(len(labels))  # of each pair, in nats
    for count, product in zip(counts, products_of_margins, strict=True):
        is_positive = (count > 0) & (product > 0)
        likelihood_ratios[is_positive] += count[is_positive] * np.log(
            count[is_positive] * n_rows / product[is_positive]
        )
    order = np.lexsort((np.arange(len(labels)), -likelihood_ratios, labels))  # label by label, the best pair first
    first_of_label = np.searchsorted(labels[order], labels[order])  # position in ``order`` of the label's best pair
    rank_within_label = np.arange(len(order)) - first_of_label
    return np.sort(order[rank_within_label < n_best])
