"""What multinomial and presence models say of a text that is not counted: for every text at once, from the sums of all."""

from __future__ import annotations

from typing import Any

import numpy as np

from banbury.arrays import Real
from banbury.families.bags.text_settings import TextSettings
from banbury.families.bags.vocabulary import pairs_of
from banbury.families.family import Feature, HeldOutRows
from banbury.sums import Words

BLOCK = 1 << 23  # numbers of words × classes that are looked at together


def leave_each_text_out(family: TextSettings, feature: Feature, sums: Words, held_out: HeldOutRows, a: float) -> Real:
    """Σ x · (log(n + a) − log(N + aV)) over the words of each text, (texts, classes).

    n and N of the text's own class are without its words, and V is without words that no other text has.
    """
    from scipy.sparse import csr_matrix

    listed = None if family.vocabulary is None else family.vocabulary_words(sums.table)
    table: Any = sums.table if listed is None else listed.table
    n_texts = len(held_out.labels)
    n_words = int(table.n_ids)
    n_classes = int(table.n_classes)
    pairs = pairs_of(table, np.arange(n_words, dtype=np.uint32))
    documents = pairs.per_word(pairs.documents)
    is_word = documents > 0
    if listed is not None:
        is_word = np.zeros(n_words, dtype=np.bool_)
        is_word[listed.ids] = True

    texts = family.texts(held_out.rows, feature.name)
    offsets, ids, times = table.bags(family.tokeniser, texts, held_out.threads)
    text = np.repeat(np.arange(n_texts), np.diff(offsets))
    word = ids.astype(np.int64)
    x = np.ones(len(word)) if family.once else family.count_values(offsets, times)
    mine = held_out.weight[text] * x
    left = is_word[word] if listed is not None else documents[word] - held_out.weight[text] > 0

    def per_text(numbers: Real) -> Real:
        return np.bincount(text, numbers, n_texts).astype(np.float64, copy=False)

    n_left = float(is_word.sum()) - per_text(is_word[word] & ~left)
    length = per_text(np.where(left, x, 0.0))
    own_total = per_text(np.where(is_word[word], mine, 0.0))
    matrix = csr_matrix((np.where(left, x, 0.0), word, offsets), (n_texts, n_words))
    counts = (pairs.documents if family.once else pairs.occurrences).astype(np.float64)
    by_class = csr_matrix((counts, pairs.classes, pairs.starts), (n_words, n_classes)).tocsc()
    scores = np.zeros((n_texts, n_classes))
    step = max(1, BLOCK // max(n_words, 1))
    for start in range(0, n_classes, step):
        n = by_class[:, start : start + step].toarray()
        label = held_out.labels - start
        is_here = (label >= 0) & (label < n.shape[1])
        own = np.flatnonzero(is_here)
        total = np.broadcast_to(is_word @ n, (n_texts, n.shape[1])).copy()
        total[own, label[own]] = _minus(total[own, label[own]], own_total[own])
        logs = matrix @ np.log(n + a)
        of_own = np.flatnonzero(is_here[text] & left)
        n_own = n[word[of_own], label[text[of_own]]]
        change = x[of_own] * (np.log(_minus(n_own, mine[of_own]) + a) - np.log(n_own + a))
        logs[own, label[own]] += np.bincount(text[of_own], change, n_texts)[own]
        scores[:, start : start + step] = logs - length[:, None] * np.log(total + a * np.maximum(n_left, 1.0)[:, None])
    return scores


def _minus(total: Real, part: Real) -> Real:
    """The difference; 0 where no more is left than the rounding of the whole."""
    left = total - part
    return np.where(left <= 1e-12 * np.abs(total), 0.0, left)
