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
from banbury.families.family import How, at_least
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
    full: bool = True  # whether every class has a word
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
        return self.total(0.0)

    def total(self, a: float | Real) -> Real:
        """The sum of all counts in each class, each with ``a`` added; none below zero."""
        n_words = self.words.n_words
        n_classes = self.words.n_classes
        if isinstance(a, np.ndarray):
            return np.asarray(self.per_class + a[self.words.ids].sum())
        if a > 0 or (a == 0 and self.words.complete and not self.idf):
            return self.per_class + a * n_words
        result = np.zeros(n_classes)
        for pairs, counts, _ in self:
            result += pairs.per_class(np.maximum(counts + a, 0.0), n_classes)
        return result


def inverse_document_frequency(documents: NDArray[Any], n_texts: float) -> Real:
    """log(N / df) of each word; 0 where every text has it, and where none has."""
    some = (documents > 0) & (n_texts - documents > ROUNDING * n_texts)  # weights add up in another order
    return np.log(np.where(some, n_texts / np.where(some, documents, 1.0), 1.0))


def pseudo_count(how: How, alpha: float | Real) -> Any:
    """What is added to every count: one number, or one for each word.

    It is below zero only under map, where what falls below zero is taken as zero.
    """
    if how == "mle":
        return 0.0
    if isinstance(alpha, np.ndarray) and how == "map":
        return np.maximum(alpha - 1.0, 0.0)
    return alpha - 1.0 if how == "map" else at_least(alpha)


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
    """The scores under an event model by name. ``norm``: of complement; ``urn``: of the multinomial."""
    if model == "log_odds" and how == "gibbs":
        return draw_log_odds(weighed, alpha, rng)
    if model == "bernoulli":
        words = weighed.words
        once = weighed.once
        return draw_bernoulli(words, alpha, rng, once) if how == "gibbs" else bernoulli(words, how, alpha, once)
    if model == "complement" and how == "gibbs":
        return draw_complement(weighed, alpha, norm, rng)
    if model in WEIGHING:
        return normalise_complement(weighed, how, alpha) if norm else against_others(model, weighed, how, alpha)
    if how == "gibbs":
        return draw_multinomial(weighed, alpha, rng)
    return multinomial(weighed, how, alpha, urn)


# Multinomial and presence --------------------------------------------------------------------------------------------


def multinomial(weighed: WeighedWords, how: How, alpha: float | Real, urn: bool) -> WordScores:
    """P(word | class) = (n + a) / (N + aV); equal shares in a class without any word. ``urn``: Pólya's instead."""
    words = weighed.words
    a = pseudo_count(how, alpha)
    total = weighed.total(a)
    smooth = isinstance(a, np.ndarray) or a > 0
    if urn:
        weights = _core.Weights(words.n_classes, np.zeros(words.n_classes))
        for pairs, counts, _ in weighed:
            weights.set(pairs.ids, np.full(len(pairs.ids), a), None, pairs.starts, pairs.classes, counts + a)
        balls = np.where(total > 0, total, 1.0)  # without a word nothing is drawn
        return WordScores(weights, np.zeros(words.n_classes), np.zeros(words.n_classes), balls)
    empty = total <= 0
    weights = _core.Weights(words.n_classes, unseen(a, total), len(words.ids))
    plain = smooth and not isinstance(a, np.ndarray) and not weighed.idf
    for pairs, counts, scale in set_whole_counts(weights, weighed, a, "multinomial") if plain else weighed:
        if not smooth and scale is not None:  # a weight of 0 times −inf would be no number
            counts = counts[pairs.per_pair(scale > 0)]
            pairs = pairs.only(scale > 0)
            scale = scale[scale > 0]
        common, values = multinomial_rows(pairs, counts, a)
        if not smooth:
            values = np.where(empty[pairs.classes], 0.0, values)
        weights.set(pairs.ids, common, scale, pairs.starts, pairs.classes, values, n_threads(None))
    base = multinomial_base(total, words.n_words)
    return WordScores(weights, base, np.zeros(words.n_classes), full=not empty.any())


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
    if isinstance(a, np.ndarray):
        pseudo_counts = a[pairs.ids]
        return log(pseudo_counts), np.log(counts + pairs.per_pair(pseudo_counts))
    if a > 0:
        return np.full(len(pairs.ids), np.log(a)), np.log(counts + a)
    return np.zeros(len(pairs.ids)), log(np.maximum(counts + a, 0.0))


def unseen(a: float | Real, total: Real) -> Real:
    """Added for classes that a word does not occur in: without smoothing, −inf unless the class has no word at all."""
    smooth = isinstance(a, np.ndarray) or a > 0
    return np.zeros(len(total)) if smooth else np.where(total > 0, -np.inf, 0.0)


def multinomial_base(total: Real, n_words: int) -> Real:
    return -np.log(np.where(total > 0, total, max(n_words, 1)))


def change_base(scores: WordScores, counted: Real, n_words: int, a: float | Real, model: str) -> None:
    """Brings what all words of a class have in common up to date, after the sums of each class changed."""
    scores.full = True
    if model in WEIGHING:
        scores.base = against_others_base(model, counted, n_words, a, scores.margin)
        return
    total = np.maximum(counted + (a.sum() if isinstance(a, np.ndarray) else a * n_words), TINY)
    if scores.polya is not None:  # 0 only without a word, and then of no consequence
        scores.polya = total
    else:
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
    scores.weights.set(pairs.ids, common, scale, pairs.starts, pairs.classes, values)


def draw_multinomial(weighed: WeighedWords, alpha: float | Real, rng: np.random.Generator) -> WordScores:
    """One draw of P(word | class) from its Dirichlet posterior, for all words and classes."""
    words = weighed.words
    n_classes = weighed.words.n_classes
    weights = _core.Weights(n_classes, np.zeros(n_classes))
    total = np.zeros(n_classes)
    for pairs, counts, scale in weighed:
        drawn = _gamma(pairs.cells(counts, n_classes) + per_row(alpha, pairs), rng)
        total += drawn.sum(axis=0)
        set_cells(weights, pairs, np.log(drawn), scale)
    return WordScores(weights, multinomial_base(total, words.n_words), np.zeros(n_classes))


def per_row(alpha: float | Real, pairs: WordClassPairs) -> float | Real:
    """The pseudo-counts of words, to be added to a table of words × classes."""
    pseudo_counts = at_least(of_words(alpha, pairs))
    return np.asarray(pseudo_counts[:, None]) if isinstance(pseudo_counts, np.ndarray) else float(pseudo_counts)


def _gamma(shape: Real, rng: np.random.Generator) -> Real:
    return np.maximum(rng.standard_gamma(shape), TINY)


def set_cells(weights: _core.Weights, pairs: WordClassPairs, cells: Real, scale: Real | None) -> None:
    """Rows that have a number of their own for every class."""
    n, n_classes = cells.shape
    starts = np.arange(0, (n + 1) * n_classes, max(n_classes, 1), dtype=np.int64)
    classes = np.tile(np.arange(n_classes, dtype=np.int32), n)
    weights.set(pairs.ids, np.zeros(n), scale, starts, classes, np.ascontiguousarray(cells).ravel(), n_threads(None))


# Complement and log-odds: a class against all others -----------------------------------------------------------------


def against_others(model: str, weighed: WeighedWords, how: How, alpha: float | Real) -> WordScores:
    """Complement: −log P(word | all classes but this one). Log-odds: log P(word | class) more, times the margin.

    Without smoothing a zero would make a class certain: a is 1e-10 at least.
    """
    words = weighed.words
    a = complement_pseudo_count(how, alpha)
    margin = log_odds_margin(weighed.words.texts)
    base = against_others_base(model, weighed.per_class, words.n_words, a, margin)
    nothing = np.zeros(words.n_classes)
    scores = WordScores(_core.Weights(words.n_classes, nothing), base, nothing, margin=margin)
    plain = model == "complement" and not isinstance(a, np.ndarray) and not weighed.idf
    for pairs, counts, scale in set_whole_counts(scores.weights, weighed, a, model) if plain else weighed:
        set_rows(scores, pairs, counts, a, model, scale)
    return scores


def against_others_base(model: str, per_class: Real, n_words: int, a: float | Real, margin: float) -> Real:
    rest = complement_base(per_class, n_words, a)
    return rest if model == "complement" else margin * (rest - np.log(per_class + all_words(a, n_words)))


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


def complement_pseudo_count(how: How, alpha: float | Real) -> Any:
    return at_least(pseudo_count(how, alpha))


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
    every = per_class.sum()
    most = per_class > 0.5 * every
    elsewhere = np.where(most, np.where(most, 0.0, per_class).sum(), every - per_class)
    return np.asarray(np.log(elsewhere + all_words(a, n_words)))


def normalise_complement(weighed: WeighedWords, how: How, alpha: float | Real) -> WordScores:
    """The same weights, divided in each class by the sum of their absolute values over the vocabulary."""
    words = weighed.words
    a = complement_pseudo_count(how, alpha)
    n_classes = weighed.words.n_classes
    base = complement_base(weighed.per_class, words.n_words, a)
    size = words.n_words * base
    for pairs, counts, _ in weighed:
        common, values = complement_rows(pairs, counts, a)
        size = size + common.sum() + pairs.per_class(values - pairs.per_pair(common), n_classes)
    size = _divisor(size, words)
    weights = _core.Weights(n_classes, np.zeros(n_classes))
    for pairs, counts, scale in weighed:
        common, values = complement_rows(pairs, counts, a)
        cells = np.broadcast_to(common[:, None], (len(common), n_classes)).copy()
        cells[pairs.per_pair(np.arange(len(common))), pairs.classes] = values
        set_cells(weights, pairs, cells / size, scale)
    return WordScores(weights, base / size, np.zeros(n_classes))


def _divisor(size: Real, words: Vocabulary) -> Real:
    """The one word of a vocabulary is certain everywhere: its weights are 0, and so is their sum."""
    return np.ones_like(size) if words.n_words < 2 else size


def draw_complement(weighed: WeighedWords, alpha: float | Real, norm: bool, rng: np.random.Generator) -> WordScores:
    """One draw of P(word | all classes but this one) for every class."""
    words = weighed.words
    n_classes = weighed.words.n_classes
    weights = _core.Weights(n_classes, np.zeros(n_classes))
    total = np.zeros(n_classes)
    logs = np.zeros(n_classes)
    before = rng.bit_generator.state
    for _, drawn, _ in _elsewhere(weighed, alpha, rng):
        total += drawn.sum(axis=0)
        logs += np.log(drawn).sum(axis=0)
    base = -multinomial_base(total, words.n_words)
    size = _divisor(words.n_words * base - logs, words) if norm else np.ones(n_classes)
    rng.bit_generator.state = before  # the same draw once more, now that its sums are known
    for pairs, drawn, scale in _elsewhere(weighed, alpha, rng):
        set_cells(weights, pairs, -np.log(drawn) / size, scale)
    return WordScores(weights, base / size, np.zeros(n_classes))


def _elsewhere(
    weighed: WeighedWords, alpha: float | Real, rng: np.random.Generator
) -> Iterator[tuple[WordClassPairs, Real, Real | None]]:
    """Gamma variates for what is counted in all classes but each, words × classes."""
    for pairs, counts, scale in weighed:
        cells = pairs.cells(counts, weighed.words.n_classes)
        every = cells.sum(axis=1, keepdims=True)
        yield pairs, _gamma(np.maximum(every - cells, 0.0) + per_row(alpha, pairs), rng), scale


def draw_log_odds(weighed: WeighedWords, alpha: float | Real, rng: np.random.Generator) -> WordScores:
    """One draw of P(word | class) and one of P(word | all other classes), for all words and classes."""
    n_classes = weighed.words.n_classes
    margin = log_odds_margin(weighed.words.texts)
    weights = _core.Weights(n_classes, np.zeros(n_classes))
    totals = np.zeros((n_classes, 2))
    for pairs, counts, scale in weighed:
        cells = pairs.cells(counts, n_classes)
        a = per_row(alpha, pairs)
        rest = np.maximum(cells.sum(axis=1, keepdims=True) - cells, 0.0)
        drawn = _gamma(np.stack([cells + a, rest + a], axis=-1), rng)
        totals += drawn.sum(axis=0)
        set_cells(weights, pairs, -margin * np.diff(np.log(drawn))[..., 0], scale)
    base = margin * np.diff(-multinomial_base(totals, weighed.words.n_words))[..., 0]
    return WordScores(weights, base, np.zeros(n_classes), margin=margin)


# Bernoulli -----------------------------------------------------------------------------------------------------------


def bernoulli(words: Vocabulary, how: How, alpha: float | Real, once: bool = True) -> WordScores:
    """P(word in text | class) = (d + a) / (D + 2a) for d of D texts; a half where nothing is left to divide.

    The constant is that of a text without any word; a row is what a word's presence changes: log p − log(1 − p). Not ``once``:
    d are the occurrences, none of which is above one in a text.
    """
    a = pseudo_count(how, alpha)
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


def draw_bernoulli(words: Vocabulary, alpha: float | Real, rng: np.random.Generator, once: bool = True) -> WordScores:
    """One draw of P(word in text | class) from its Beta posterior, for all words and classes."""
    n_classes = words.n_classes
    weights = _core.Weights(n_classes, np.zeros(n_classes))
    constant = np.zeros(n_classes)
    for pairs in words:
        yes = pairs.cells(pairs.documents if once else pairs.occurrences, n_classes)
        a = per_row(alpha, pairs)
        no = np.maximum(words.texts - yes, 0.0)
        drawn = np.log(_gamma(np.stack([yes + a, no + a], axis=-1), rng))
        constant += (drawn[..., 1] - np.logaddexp(drawn[..., 0], drawn[..., 1])).sum(axis=0)
        set_cells(weights, pairs, drawn[..., 0] - drawn[..., 1], None)
    return WordScores(weights, np.zeros(n_classes), constant)
