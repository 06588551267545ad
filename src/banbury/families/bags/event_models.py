"""How a bag of words is scored: the event models, each a row of numbers per word and a few numbers per class.

Multinomial and presence share their formulas: occurrences in the one, documents in the other. A text that has word w
x_w times adds constant[c] + Σ x_w · scale_w · (row_w[c] + base[c]) for class c, over the words of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Int, Real
from banbury.families.bags.vocabulary import CELLS, Ids, Vocabulary, WordClassPairs, whole_counts
from banbury.families.dirichlet import log
from banbury.families.family import SMALLEST_ALPHA, How, at_least
from banbury.sums import ROUNDING
from banbury.threads import n_threads

MOST_LOGS = 1 << 16  # counts whose logarithms are looked up
MOST_CELLS = 1 << 28  # words × classes, where every one of them needs its own number
TINY = np.finfo(float).tiny
WEIGHING = ("complement", "log_odds")  # models that weigh words and give them no probability
CERTAIN = 2.0**400  # the row of a word that every text of a class has; no logarithm comes near it


@dataclass(eq=False)
class WordScores:
    """What the kernel adds up, which may change in place. ``polya`` stands for base where words are drawn from an urn.

    ``certain`` is how many words every text of a class has, under a Bernoulli model without smoothing; their rows are
    CERTAIN, and they are not in the constant. None: there is no such word.
    """

    weights: _core.Weights
    base: Real
    constant: Real
    polya: Real | None = None
    certain: Int | None = None
    margin: float = 1.0  # what log-odds are multiplied by


@dataclass(frozen=True)
class WeighedWords:
    """The words kept with their counts: occurrences, or documents if ``once``; times log(N / df) if ``idf``."""

    words: Vocabulary
    once: bool
    idf: bool

    def __iter__(self) -> Iterator[tuple[WordClassPairs, NDArray[Any], Real | None]]:
        """Chunk by chunk the pairs, their counts, and the words' scales."""
        n_texts = float(self.words.texts.sum())
        for pairs in self.words:
            counts = pairs.documents if self.once else pairs.occurrences
            if self.idf:
                scale = inverse_document_frequency(pairs.per_word(pairs.documents), n_texts)
                yield pairs, counts * pairs.per_pair(scale), scale
            else:
                yield pairs, counts, None

    @cached_property
    def per_class(self) -> Real:
        if self.words.complete and not self.idf:
            table = self.words.table
            counted: Integers = table.documents() if self.once else table.occurrences()
            return counted.value
        total = np.zeros(self.words.n_classes)
        for pairs, counts, _ in self:
            total += pairs.per_class(counts, len(total))
        return total


def inverse_document_frequency(documents: NDArray[Any], n_texts: float) -> Real:
    """log(N / df) of each word; 0 where every text has it, and where none has."""
    some = (documents > 0) & (n_texts - documents > ROUNDING * n_texts)  # weights add up in another order
    return np.log(np.where(some, n_texts / np.where(some, documents, 1.0), 1.0))


def pseudo_count(model: str, how: How, alpha: float | Real) -> Any:
    """What is added to every count, one number or one for each word: 1e-10 at least.

    Bernoulli alone keeps zeros under "mle" and "map", where what falls below zero is taken as zero: there a class can demand a
    word that all of its texts have.
    """
    if how not in ("mle", "map"):
        return at_least(alpha)
    mode = np.asarray(alpha) - 1.0 if how == "map" else np.zeros(np.shape(alpha))
    mode = mode if model == "bernoulli" else np.maximum(mode, SMALLEST_ALPHA)
    return mode if mode.ndim else float(mode)


def of_words(a: float | Real, pairs: WordClassPairs) -> float | Real:
    """The pseudo-count of some words: the same for all, or each its own."""
    return a[pairs.ids] if isinstance(a, np.ndarray) else a


def all_words(a: float | Real, n_words: int) -> float:
    return float(a.sum()) if isinstance(a, np.ndarray) else a * max(n_words, 1)


def sum_of_logs(scores: WordScores, ids: NDArray[np.uint32], yes_and_no: bool) -> float:
    """The log-probabilities of these words in all classes, added up; of each that it is in a text, and that it is not."""
    n_classes = len(scores.base)
    total = 0.0
    step = max(1, CELLS // max(n_classes, 1))
    for start in range(0, len(ids), step):
        rows = scores.weights.rows(ids[start : start + step])[1]
        total += float((rows - 2.0 * np.logaddexp(0.0, rows)).sum() if yes_and_no else rows.sum())
    return total if yes_and_no else total + len(ids) * float(scores.base.sum())


def check_size(words: Vocabulary, column: str, why: str) -> None:
    if words.n_words * words.n_classes > MOST_CELLS:
        text = (
            f"column {column!r} has {words.n_words:,} words and there are {words.n_classes:,} classes, and {why} needs "
        )
        text += "a number for every pair, more than fit in memory. Keep fewer words with bb.Text(min_count=..., max_words=...)."
        raise errors.BadSetting(text, column=column)


def estimate_scores(
    model: str, weighed: WeighedWords, how: How, alpha: float | Real, norm: bool, urn: bool, rng: np.random.Generator
) -> WordScores:
    """The scores under an event model by name. ``norm``: of complement; ``urn``: Pólya's, of multinomial and presence."""
    if how == "gibbs":
        return draw_scores(model, weighed, alpha, norm, rng)
    a = pseudo_count(model, how, alpha)
    if model == "bernoulli":
        return bernoulli(weighed.words, a, weighed.once)
    return normalise_complement(weighed, a) if norm else count_scores(model, weighed, a, urn and model not in WEIGHING)


# Models that count: multinomial and presence; and a class against all others, complement and log-odds ----------------


def count_scores(model: str, weighed: WeighedWords, a: float | Real, urn: bool = False) -> WordScores:
    """log P(word | class) = log (n + a) / (N + aV), or of an ``urn`` n + a and N + aV.

    Complement: −log P(word | all classes but this one). Log-odds: log P(word | class) more, times the margin.
    """
    words = weighed.words
    nothing = np.zeros(words.n_classes)
    weights = _core.Weights(words.n_classes, nothing, len(words.ids))
    margin = log_odds_margin(words.texts)
    scores = WordScores(weights, nothing, nothing, nothing if urn else None, margin=margin)
    change_base(scores, weighed.per_class, words.n_words, a, model)
    looked_up = not (urn or weighed.idf or model == "log_odds" or isinstance(a, np.ndarray))
    for pairs, counts, scale in set_whole_counts(weights, weighed, float(a), model) if looked_up else weighed:
        set_rows(scores, pairs, counts, a, model, scale)
    return scores


def set_whole_counts(weights: _core.Weights, weighed: WeighedWords, a: float, model: str) -> WeighedWords:
    """Sets the rows of words whose counts are whole and not too large for a table of logarithms; gives the other words."""
    words = weighed.words
    if (counted := whole_counts(words.table)) is None:
        return weighed
    table, without = counted
    of_other_classes = model == "complement"
    logs = logs_of_counts(a, min(len(words.ids) + 1, MOST_LOGS), model)
    left = weights.set_counted(table, words.ids, weighed.once, of_other_classes, logs, n_threads(None), without)
    return replace(weighed, words=Vocabulary(words.table, left, False))


def follow_whole_counts(weights: _core.Weights, table: _core.Words, ids: Ids, once: bool, a: float, model: str) -> Ids:
    """The same of rows that are to be brought up to date."""
    return weights.follow(table, ids, once, model == "complement", logs_of_counts(a, MOST_LOGS, model))


@lru_cache(maxsize=4)
def logs_of_counts(a: float, size: int, model: str) -> Real:
    """log(n + a) of all n below ``size``; of complement less than nothing."""
    logs = np.log(np.arange(size, dtype=np.float64) + a)
    return -logs if model == "complement" else logs


def multinomial_rows(pairs: WordClassPairs, counts: NDArray[Any], a: float | Real) -> tuple[Real, Real]:
    """What all classes have that a word does not occur in, and what each of the others has."""
    pseudo_counts = of_words(a, pairs)
    if isinstance(pseudo_counts, np.ndarray):
        return np.log(pseudo_counts), np.log(counts + pairs.per_pair(pseudo_counts))
    return np.full(len(pairs.ids), np.log(a)), np.log(counts + a)


def change_base(scores: WordScores, per_class: Real, n_words: int, a: float | Real, model: str) -> None:
    """Brings what all words of a class have in common up to date with the counts of each class."""
    total = per_class + all_words(a, n_words)
    if scores.polya is not None:
        scores.polya = total
    elif model in WEIGHING:
        rest = complement_base(per_class, n_words, a)
        scores.base = rest if model == "complement" else scores.margin * (rest - np.log(total))
    elif model != "bernoulli":
        scores.base = -np.log(total)


def set_rows(
    scores: WordScores,
    pairs: WordClassPairs,
    counts: NDArray[Any],
    a: float | Real,
    model: str,
    scale: Real | None = None,
) -> None:
    """Makes the rows of these words, which depend on their own counts alone; in place."""
    if model == "complement":
        common, values = complement_rows(pairs, counts, a)
    elif model == "log_odds":
        common, values = log_odds_rows(pairs, counts, a, scores.margin)
    elif scores.polya is not None:
        assert not isinstance(a, np.ndarray)
        common = np.full(len(pairs.ids), a)
        values = counts + a
    else:
        common, values = multinomial_rows(pairs, counts, a)
    scores.weights.set(pairs.ids, common, scale, pairs.starts, pairs.classes, values, n_threads(None))


def set_cells(weights: _core.Weights, pairs: WordClassPairs, cells: Real, scale: Real | None) -> None:
    """Rows that have a number of their own for every class."""
    n, n_classes = cells.shape
    starts = np.arange(0, (n + 1) * n_classes, max(n_classes, 1), dtype=np.int64)
    classes = np.tile(np.arange(n_classes, dtype=np.int32), n)
    weights.set(pairs.ids, np.zeros(n), scale, starts, classes, np.ascontiguousarray(cells).ravel(), n_threads(None))


def log_odds_rows(pairs: WordClassPairs, counts: NDArray[Any], a: float | Real, margin: float) -> tuple[Real, Real]:
    class_rows = multinomial_rows(pairs, counts, a)
    rest = complement_rows(pairs, counts, a)
    return margin * (class_rows[0] + rest[0]), margin * (class_rows[1] + rest[1])


def log_odds_margin(texts: Real) -> float:
    """(K − 1) / K for K classes that have a text: a half for two, whose log-odds r and −r would say everything twice.

    Classes of equal size that differ little in p from the mean of all then differ in their scores as in log p.
    """
    n_classes = int(np.count_nonzero(texts))
    return (n_classes - 1) / n_classes if n_classes else 0.0


def complement_rows(pairs: WordClassPairs, counts: NDArray[Any], a: float | Real) -> tuple[Real, Real]:
    every = pairs.per_word(counts)
    pseudo_counts = of_words(a, pairs)
    elsewhere = pairs.per_pair(every) - counts
    if elsewhere.dtype.kind == "f":  # whole numbers do not round
        most = counts > 0.5 * pairs.per_pair(every)  # one class at most; there the difference would be of its rounding
        elsewhere = np.where(most, pairs.per_pair(pairs.per_word(np.where(most, 0.0, counts))), elsewhere)
    per_pair = pairs.per_pair(pseudo_counts) if isinstance(pseudo_counts, np.ndarray) else pseudo_counts
    return -np.log(every + pseudo_counts), -np.log(elsewhere + per_pair)


def complement_base(per_class: Real, n_words: int, a: float | Real) -> Real:
    total = per_class.sum()
    is_majority = per_class > 0.5 * total
    other_classes = np.where(is_majority, np.where(is_majority, 0.0, per_class).sum(), total - per_class)
    return np.asarray(np.log(other_classes + all_words(a, n_words)))


def normalise_complement(weighed: WeighedWords, a: float | Real) -> WordScores:
    """Complement whose weights are divided by their size."""
    n_classes = weighed.words.n_classes
    rows = []
    for pairs, counts, scale in weighed:
        common, values = complement_rows(pairs, counts, a)
        cells = np.broadcast_to(common[:, None], (len(common), n_classes)).copy()
        cells[pairs.per_pair(np.arange(len(common))), pairs.classes] = values
        rows.append((pairs, cells, scale))
    return divide_by_size(rows, complement_base(weighed.per_class, weighed.words.n_words, a), weighed.words)


def divide_by_size(rows: list[tuple[WordClassPairs, Real, Real | None]], base: Real, words: Vocabulary) -> WordScores:
    """Weights divided in each class by the sum of their absolute values over the vocabulary.

    The one word of a vocabulary is certain everywhere: its weights are 0, and so is their sum.
    """
    size = sum((cells.sum(axis=0) for _, cells, _ in rows), words.n_words * base)
    size = np.ones_like(size) if words.n_words < 2 else size
    weights = _core.Weights(words.n_classes, np.zeros(words.n_classes))
    for pairs, cells, scale in rows:
        set_cells(weights, pairs, cells / size, scale)
    return WordScores(weights, base / size, np.zeros(words.n_classes))


# A draw from the posterior -------------------------------------------------------------------------------------------


def draw_scores(
    model: str, weighed: WeighedWords, alpha: float | Real, norm: bool, rng: np.random.Generator
) -> WordScores:
    """One draw of P(word | class) for all words and classes, of P(word | all other classes), or of both, from their posteriors.

    Under Bernoulli it is that a text has the word, and that it does not.
    """
    words = weighed.words
    n_classes = words.n_classes
    once = model == "bernoulli"
    factor = log_odds_margin(words.texts) if model == "log_odds" else 1.0
    signs = np.array([factor] * (model != "complement") + [-factor] * (once or model in WEIGHING))
    weights = _core.Weights(n_classes, np.zeros(n_classes))
    totals = np.zeros((n_classes, len(signs)))
    constant = np.zeros(n_classes)
    rows = []
    for pairs, counts, scale in weighed:
        cells = pairs.cells(counts, n_classes)
        rest = np.maximum((words.texts if once else cells.sum(axis=1, keepdims=True)) - cells, 0.0)
        shapes = np.stack([cells, rest] if len(signs) == 2 else [rest if model == "complement" else cells], axis=-1)
        pseudo_counts = np.reshape(at_least(of_words(alpha, pairs)), (-1, 1, 1))
        drawn = np.maximum(rng.standard_gamma(shapes + pseudo_counts), TINY)
        totals += drawn.sum(axis=0)
        logs = np.log(drawn)
        constant += (logs[..., -1] - np.logaddexp(logs[..., 0], logs[..., -1])).sum(axis=0) if once else 0.0
        if norm:
            rows.append((pairs, logs @ signs, scale))
        else:
            set_cells(weights, pairs, logs @ signs, scale)
    base = constant * 0.0 if once else -np.log(np.where(totals > 0, totals, 1.0)) @ signs
    return divide_by_size(rows, base, words) if norm else WordScores(weights, base, constant, margin=factor)


# Bernoulli -----------------------------------------------------------------------------------------------------------


def bernoulli(words: Vocabulary, a: float | Real, once: bool = True) -> WordScores:
    """P(word in text | class) = (d + a) / (D + 2a) for d of D texts; a half where nothing is left to divide.

    The constant is that of a text without any word; a row is what a word's presence changes: log p − log(1 − p). Not ``once``:
    d are the occurrences, none of which is above one in a text.
    """
    n_classes = words.n_classes
    if isinstance(a, np.ndarray):
        return _bernoulli_each(words, a, once)
    present, absent = log_shares(np.zeros(n_classes), words.texts, a)
    weights = _core.Weights(n_classes, present - absent)
    like = AlikeWords(n_classes)
    for pairs in words:
        counts = pairs.documents if once else pairs.occurrences
        presence_rows = presence(counts, words.texts[pairs.classes], a)
        nothing = np.zeros(len(pairs.ids))
        weights.set(pairs.ids, nothing, None, pairs.starts, pairs.classes, presence_rows, n_threads(None))
        like.add(pairs, counts)
    constant, certain = like.absent(words.n_words, words.texts, a)
    return WordScores(weights, np.zeros(n_classes), constant, None, certain if certain.any() else None)


def presence(documents: NDArray[Any], texts: Real, a: float) -> Real:
    yes, no = log_shares(documents, texts, a)
    sure = np.isneginf(no)
    return np.where(sure, CERTAIN, yes - np.where(sure, 0.0, no))


class AlikeWords:
    """How many words of each class have each count. Absent words say the same where counts are, so that few sums say it all."""

    def __init__(self, n_classes: int) -> None:
        self.n_words: list[dict[float, int]] = [{} for _ in range(n_classes)]

    def add(self, pairs: WordClassPairs, counts: NDArray[Any]) -> None:
        n_classes = len(self.n_words)
        most = int(counts.max(initial=0)) + 1
        if n_classes * most <= max(len(counts), 1 << 16) and (counts == np.rint(counts)).all():
            table = np.bincount(pairs.classes * most + counts.astype(np.int64), minlength=n_classes * most)
            classes, values = np.divmod(np.flatnonzero(table), most)
            every = zip(classes.tolist(), values.tolist(), table[table > 0].tolist(), strict=True)
        else:
            order = np.lexsort((counts, pairs.classes))
            both = np.stack([pairs.classes[order], counts[order]])
            firsts = np.flatnonzero(np.r_[True, (both[:, 1:] != both[:, :-1]).any(axis=0)][: len(order)])
            sizes = np.diff(np.r_[firsts, len(order)])
            every = zip(both[0, firsts].astype(int).tolist(), both[1, firsts].tolist(), sizes.tolist(), strict=True)
        for c, count, n in every:
            self.n_words[c][count] = self.n_words[c].get(count, 0) + n

    def absent(self, n_words: int, texts: Real, a: float) -> tuple[Real, Int]:
        """What a text without any word says of each class; and how many words each of its texts has."""
        both = [self.absent_from(c, n_words, float(texts[c]), a) for c in range(len(texts))]
        return np.array([says for says, _ in both]), np.array([sure for _, sure in both], dtype=np.int64)

    def absent_from(self, c: int, n_words: int, texts: float, a: float) -> tuple[float, int]:
        counts = sorted(count for count in self.n_words[c] if count > 0)
        n = np.array([0, *map(self.n_words[c].__getitem__, counts)])
        n[0] = n_words - n.sum()
        _, no = log_shares(np.array([0.0, *counts]), np.float64(texts), a)  # type: ignore[arg-type]
        sure = np.isneginf(no)
        return float((n * np.where(sure, 0.0, no)).sum()), int(n[sure].sum())


class BernoulliGrowth:
    """The counts of all words, so that a text more changes the sums of its own class alone."""

    def __init__(self, words: Vocabulary) -> None:
        self.counts = np.zeros((int(words.ids.max(initial=0)) + 1, words.n_classes))
        self.like, self.texts, self.n_words = AlikeWords(words.n_classes), words.texts, words.n_words
        for pairs in words:
            self.like.add(pairs, pairs.occurrences)
            self.counts[pairs.per_pair(pairs.ids), pairs.classes] = pairs.occurrences

    def follow(self, pairs: WordClassPairs, texts: Real, a: float, constant: Real) -> Real:
        """The constant after the counts of these words changed, and the texts of some classes."""
        before = self.counts[pairs.ids]
        after = pairs.cells(pairs.occurrences, len(texts))
        at = np.nonzero(before != after)
        for c, old, new in zip(at[1].tolist(), before[at].tolist(), after[at].tolist(), strict=True):
            like = self.like.n_words[c]
            if old > 0:
                like[old] -= 1
                if not like[old]:
                    del like[old]
            like[new] = like.get(new, 0) + 1
        changed = np.union1d(at[1], np.flatnonzero(texts != self.texts)).tolist()
        self.counts[pairs.ids], self.texts, constant = after, texts, constant.copy()
        for c in changed:
            constant[c], _ = self.like.absent_from(c, self.n_words, float(texts[c]), a)
        return constant


def _bernoulli_each(words: Vocabulary, a: Real, once: bool) -> WordScores:
    """The same where each word has its own pseudo-count, so that every word has its own numbers in all classes."""
    n_classes = words.n_classes
    weights = _core.Weights(n_classes, np.zeros(n_classes))
    constant = np.zeros(n_classes)
    certain = np.zeros(n_classes)
    for pairs in words:
        cells = pairs.cells(pairs.documents if once else pairs.occurrences, n_classes)
        yes, no = log_shares(cells, words.texts, a[pairs.ids][:, None])
        sure = np.isneginf(no)
        set_cells(weights, pairs, np.where(sure, CERTAIN, yes - np.where(sure, 0.0, no)), None)
        constant += np.where(sure, 0.0, no).sum(axis=0)
        certain += sure.sum(axis=0)
    n_certain = certain.astype(np.int64) if certain.any() else None
    return WordScores(weights, np.zeros(n_classes), constant, None, n_certain)


def log_shares(documents: NDArray[Any], texts: Real, a: float | Real) -> tuple[Real, Real]:
    """Logarithms of the shares of texts with and without a word, both with the pseudo-count ``a``."""
    without = texts - documents
    without = np.where(without <= ROUNDING * texts, 0.0, without)
    yes = np.maximum(documents + a, 0.0)
    no = np.maximum(without + a, 0.0)
    nothing = yes + no <= 0
    both = np.where(nothing, 2.0, yes + no)
    return log(np.where(nothing, 1.0, yes) / both), log(np.where(nothing, 1.0, no) / both)
