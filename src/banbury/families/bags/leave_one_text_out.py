"""Leave-one-out scores of texts under multinomial and presence models, for all texts at once from the sums of all."""

from __future__ import annotations

from typing import Any

import numpy as np

from banbury.arrays import Real
from banbury.families.bags.vocabulary import pairs_of
from banbury.families.family import Feature, HeldOutRows
from banbury.sums import Words

CELLS_TOGETHER = 1 << 23  # words × classes that are processed together


def leave_each_text_out(family: Any, feature: Feature, sums: Words, held_out: HeldOutRows, a: float) -> Real:
    """Returns the score of each text without itself (texts × classes): Σ x · (log(n + a) − log(N + aV)) over its words.

    x is how much a word counts in the text, n its count in the class, N the sum of all counts there, V the number of
    words, and ``a`` the pseudo-count. n and N of the text's own class exclude its words, and V excludes words that no
    other text has. ``family`` is the family of the text column, ``sums`` are the counted words of all texts, and
    ``held_out`` are the texts with their classes and weights.
    """
    from scipy.sparse import csr_matrix

    vocabulary = None if family.vocabulary is None else family.vocabulary_words(sums.table)  # None: every word
    table: Any = sums.table if vocabulary is None else vocabulary.table
    n_texts = len(held_out.labels)
    n_words = int(table.n_ids)
    n_classes = int(table.n_classes)
    word_class_pairs = pairs_of(table, np.arange(n_words, dtype=np.uint32))
    documents = word_class_pairs.per_word(word_class_pairs.documents)  # texts with each word
    is_word = documents > 0  # whether each id is a word that counts
    if vocabulary is not None:
        is_word = np.zeros(n_words, dtype=np.bool_)
        is_word[vocabulary.ids] = True

    texts = family.kernel_input(held_out.rows, feature)
    # The words of text i, and how often it has them, are offsets[i] to offsets[i + 1] of the other two.
    offsets, ids, times = table.bags(family.tokeniser, texts, held_out.threads)
    # Of each word of each text: its text, its id, and how much it counts (x).
    text_of_word = np.repeat(np.arange(n_texts), np.diff(offsets))
    word_ids = ids.astype(np.int64)
    amounts = np.ones(len(word_ids)) if family.once else family.count_values(offsets, times)
    # What each word of each text added to the counts of its class, and whether it is a word without the text too.
    own_weights = held_out.weight[text_of_word] * amounts
    is_elsewhere = _minus(documents[word_ids], held_out.weight[text_of_word]) > 0
    stays = is_word[word_ids] if vocabulary is not None else is_elsewhere  # whether it counts

    def per_text(numbers: Real) -> Real:
        """Returns the sums of ``numbers``, one for each word of each text, over the words of each text (texts)."""
        return np.bincount(text_of_word, numbers, n_texts).astype(np.float64, copy=False)

    # Of each text: V, Σ x over its words, and what it added to N of its class.
    n_words_left = float(is_word.sum()) - per_text(is_word[word_ids] & ~stays)
    lengths = per_text(np.where(stays, amounts, 0.0))
    own_total = per_text(np.where(is_word[word_ids], own_weights, 0.0))
    # How much each word counts in each text (texts × words), and its counts in each class (words × classes).
    matrix = csr_matrix((np.where(stays, amounts, 0.0), word_ids, offsets), (n_texts, n_words))
    counts = (word_class_pairs.documents if family.once else word_class_pairs.occurrences).astype(np.float64)
    by_class = csr_matrix((counts, word_class_pairs.classes, word_class_pairs.starts), (n_words, n_classes)).tocsc()
    scores = np.zeros((n_texts, n_classes))
    n_together = max(1, CELLS_TOGETHER // max(n_words, 1))  # classes that are scored together
    for start in range(0, n_classes, n_together):
        some_classes = slice(start, start + n_together)
        counts_of_class = by_class[:, some_classes].toarray()  # words × these classes
        class_of_text = held_out.labels - start  # the place of each text's class among these, if it is one of them
        is_here = (class_of_text >= 0) & (class_of_text < counts_of_class.shape[1])
        texts_here = np.flatnonzero(is_here)
        own_cells = texts_here, class_of_text[texts_here]  # of tables texts × these classes
        # N of each class (texts × these classes), without the text in its own class.
        class_totals = np.broadcast_to(is_word @ counts_of_class, (n_texts, counts_of_class.shape[1])).copy()
        class_totals[own_cells] = _minus(class_totals[own_cells], own_total[texts_here])
        log_scores = matrix @ np.log(counts_of_class + a)  # Σ x · log(n + a) (texts × these classes)
        # The words of texts of these classes, whose counts there include the text's own; these counts, n; and by how
        # much x · log(n + a) changes without the text.
        own_words = np.flatnonzero(is_here[text_of_word] & stays)
        n_own = counts_of_class[word_ids[own_words], class_of_text[text_of_word[own_words]]]
        log_changes = amounts[own_words] * (np.log(_minus(n_own, own_weights[own_words]) + a) - np.log(n_own + a))
        log_scores[own_cells] += np.bincount(text_of_word[own_words], log_changes, n_texts)[texts_here]
        log_totals = np.log(class_totals + a * np.maximum(n_words_left, 1.0)[:, None])  # log(N + aV)
        scores[:, some_classes] = log_scores - lengths[:, None] * log_totals
    return scores


def _minus(total: Real, part: Real) -> Real:
    """Returns total − part, in the same shape; 0 if no more is left than rounding: weights are rounded to 10^-18 when
    they are counted, and totals to doubles.
    """
    difference = total - part
    return np.where(difference <= 1e-12 * np.abs(total) + 1e-18, 0.0, difference)
