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
from banbury.families.family import SMALLEST_ALPHA, How, raise_alpha
from banbury.sums import ROUNDING
from banbury.threads import n_threads

MOST_LOGS = 1 << 16  # counts whose logarithms are looked up
MOST_CELLS = 1 << 28  # words × classes of a table with a score for each pair
TINY = np.finfo(float).tiny
WEIGHING = ("complement", "log_odds")  # models that weigh words and give them no probability
CERTAIN = 2.0**400  # the row of a word that every text of a class has; no logarithm comes near it


@dataclass(eq=False)
class WordScores:
    """The scores that the kernel adds up; they may change in place.

    Args:
        weights: A row for each word, with a score for each class.
        base: What is added to the score of every word (classes).
        constant: What every row scores (classes).
        polya: The number of balls in Pólya's urn (classes), which replaces ``base`` if words are drawn from one.
        certain: How many words all texts of each class have under a Bernoulli model without smoothing. The rows of these words
            are CERTAIN, and they are not in the constant. None: there is no such word.
        margin: What log-odds are multiplied by.
    """

    weights: _core.Weights
    base: Real
    constant: Real
    polya: Real | None = None
    certain: Int | None = None
    margin: float = 1.0


@dataclass(frozen=True)
class WeighedWords:
    """The words that an estimate uses, with their counts.

    ``once``: whether documents are counted rather than occurrences; ``idf``: whether counts are multiplied by log(N /
    df).
    """

    words: Vocabulary
    once: bool
    idf: bool

    def __iter__(self) -> Iterator[tuple[WordClassPairs, NDArray[Any], Real | None]]:
        """Yields some words at a time: their word-class pairs, the counts of the pairs, and the scale of each word,
        which is None without ``idf``.
        """
        n_texts = float(self.words.texts.sum())  # of all classes
        for pairs in self.words:
            counts = pairs.documents if self.once else pairs.occurrences  # of each pair
            if self.idf:
                scale = inverse_document_frequency(pairs.per_word(pairs.documents), n_texts)
                yield pairs, counts * pairs.per_pair(scale), scale
            else:
                yield pairs, counts, None

    @cached_property
    def per_class(self) -> Real:
        """The sum of all counts in each class (classes)."""
        if self.words.complete and not self.idf:  # these are all words of the table
            table = self.words.table
            counts_of_classes: Integers = table.documents() if self.once else table.occurrences()
            return counts_of_classes.value
        sums = np.zeros(self.words.n_classes)
        for pairs, counts, _ in self:
            sums += pairs.per_class(counts, len(sums))
        return sums


def inverse_document_frequency(documents: NDArray[Any], n_texts: float) -> Real:
    """Returns log(N / df) of each word (words), or 0 if every text or no text has it. ``documents`` are the numbers of
    texts that have each word, of ``n_texts``.
    """
    is_informative = (documents > 0) & (n_texts - documents > ROUNDING * n_texts)  # weights add up in another order
    return np.log(np.where(is_informative, n_texts / np.where(is_informative, documents, 1.0), 1.0))


def pseudo_count(model: str, how: How, alpha: float | Real) -> Any:
    """Returns what is added to every count: one number, or one for each word, like the prior's ``alpha``. It is at
    least 1e-10, unless ``how`` is "mle" or "map" and the model is Bernoulli.

    Only Bernoulli keeps zeros and negative numbers under "mle" and "map", so that a class can require a word that all
    of its texts have. ``model`` is the name of the event model.
    """
    if how not in ("mle", "map"):
        return raise_alpha(alpha)
    pseudo_counts = np.asarray(alpha) - 1.0 if how == "map" else np.zeros(np.shape(alpha))  # (words), or one number
    if model != "bernoulli":
        pseudo_counts = np.maximum(pseudo_counts, SMALLEST_ALPHA)
    return pseudo_counts if pseudo_counts.ndim else float(pseudo_counts)


def alpha_of_words(a: float | Real, pairs: WordClassPairs) -> float | Real:
    """Returns the pseudo-counts of some words (``pairs``): one number if ``a`` is one, or one for each word if ``a``
    has one for each word id.
    """
    return a[pairs.ids] if isinstance(a, np.ndarray) else a


def total_alpha(a: float | Real, n_words: int) -> float:
    """Returns the sum of the pseudo-counts of all words, given one number for each of ``n_words`` words or one for each
    id (``a``).
    """
    return float(a.sum()) if isinstance(a, np.ndarray) else a * max(n_words, 1)


def log_prior(scores: WordScores, ids: Ids, pseudo_counts: Real, yes_and_no: bool) -> float:
    """Returns Σ a_w · log p_w over words and classes; with ``yes_and_no``, for Bernoulli, Σ a_w · (log p_w + log (1 −
    p_w)). ``ids`` are those of the words w, whose rows ``scores`` has.

    ``pseudo_counts`` (a) is one number, or one for each word id.
    """
    log_prior = 0.0
    n_together = max(1, CELLS // max(len(scores.base), 1))  # words that are added up at once
    for start in range(0, len(ids), n_together):
        some_ids = ids[start : start + n_together]
        logs = scores.weights.rows(some_ids)[1] + scores.base  # log p (words × classes); for Bernoulli log odds
        if yes_and_no:  # from log odds to log p + log (1 − p)
            logs = logs - 2.0 * np.logaddexp(0.0, logs)
        a_of_words = pseudo_counts[some_ids, None] if pseudo_counts.ndim else pseudo_counts  # words × 1, or a number
        log_prior += float((a_of_words * np.where(a_of_words > 0, logs, 0.0)).sum())
    return log_prior


def check_size(words: Vocabulary, column: str, why: str) -> None:
    """Raises if one number for every word and class would not fit in memory; ``column`` is the column's name for the
    message, and ``why`` the setting that needs them.
    """
    if words.n_words * words.n_classes > MOST_CELLS:
        text = (
            f"column {column!r} has {words.n_words:,} words and there are {words.n_classes:,} classes, and {why} needs "
        )
        text += "a number for every pair, more than fit in memory. Keep fewer words with bb.Text(min_count=..., max_words=...)."
        raise errors.BadSetting(text, column=column)


def estimate_scores(
    model: str,
    weighed_words: WeighedWords,
    how: How,
    alpha: float | Real,
    norm: bool,
    urn: bool,
    rng: np.random.Generator,
) -> WordScores:
    """Estimates the scores of words under an event model.

    Args:
        model: The name of the event model.
        weighed_words: The words and their counts.
        how: How they are estimated.
        alpha: The pseudo-count of the prior, one number or one for each word id.
        norm: Whether complement weights are normalised in each class.
        urn: Whether words are drawn from Pólya's urn.
        rng: Draws the scores under "gibbs".
    """
    if how == "gibbs":
        return draw_scores(model, weighed_words, alpha, norm, rng)
    a = pseudo_count(model, how, alpha)  # what is added to counts
    if model == "bernoulli":
        return bernoulli(weighed_words.words, a, weighed_words.once)
    return normalise_complement(weighed_words, a) if norm else count_scores(model, weighed_words, a, urn)


# Models that count: multinomial and presence; and a class against all others, complement and log-odds ----------------


def count_scores(model: str, weighed_words: WeighedWords, a: float | Real, urn: bool = False) -> WordScores:
    """Estimates the scores of words from counts: log P(word | class) = log (n + a) / (N + aV), or n + a and N + aV for
    Pólya's ``urn``. n is the word's count in the class, N that of all words, V the number of words.

    Complement is −log P(word | all other classes). Log-odds adds log P(word | class) to it and multiplies by the
    margin, which is that of ``log_odds_margin``. ``weighed_words`` are the words with their counts, ``a`` is the
    pseudo-count of all words, or one for each id, and ``model`` the name of the event model.
    """
    words = weighed_words.words
    zeros = np.zeros(words.n_classes)
    # Rows of words, which start from zeros, with room for all words.
    weights = _core.Weights(words.n_classes, zeros, len(words.ids))
    margin = log_odds_margin(words.texts)  # ``texts``: how many each class has
    scores = WordScores(weights, zeros, zeros, zeros if urn else None, margin=margin)
    change_base(scores, weighed_words.per_class, words.n_words, a, model)
    # Whether logarithms of whole counts with one pseudo-count are all that rows need.
    has_log_table = not (urn or weighed_words.idf or model == "log_odds" or isinstance(a, np.ndarray))
    # The words whose rows are still to be set, some at a time: their pairs of word and class, the count of each pair, and
    # the factor by which the scores of each word are multiplied (its idf; None without).
    words_left = set_whole_counts(weights, weighed_words, float(a), model) if has_log_table else weighed_words
    for pairs, counts, scale in words_left:
        set_rows(scores, pairs, counts, a, model, scale)
    return scores


def set_whole_counts(weights: _core.Weights, weighed_words: WeighedWords, a: float, model: str) -> WeighedWords:
    """Sets the rows (in ``weights``) of words whose counts are small whole numbers from a table of logarithms; returns
    those words (of ``weighed_words``, which have counts) whose rows are still to be set. ``a`` is the pseudo-count, and
    ``model`` the name of the event model.
    """
    words = weighed_words.words
    if (whole_table := whole_counts(words.table)) is None:
        return weighed_words
    # A table of whole counts, and what is subtracted from it: all groups and the number of one; None: nothing.
    table, left_out_group = whole_table
    of_other_classes = model == "complement"
    logs = logs_of_counts(a, model, min(len(words.ids) + 1, MOST_LOGS))  # log(n + a), by n
    # The ids of the words that the kernel leaves over.
    other_ids = weights.set_counted(
        table, words.ids, weighed_words.once, of_other_classes, logs, n_threads(None), left_out_group
    )
    return replace(weighed_words, words=Vocabulary(words.table, other_ids, complete=False))


@lru_cache(maxsize=4)
def logs_of_counts(a: float, model: str, size: int = MOST_LOGS) -> Real:
    """Returns log(n + a) of all counts n from 0 up to ``size`` − 1, with a minus sign for the model complement."""
    logs = np.log(np.arange(size, dtype=np.float64) + a)
    return -logs if model == "complement" else logs


def multinomial_rows(pairs: WordClassPairs, counts: NDArray[Any], a: float | Real) -> tuple[Real, Real]:
    """Returns log(n + a) for each word in the classes where it does not occur (words), and in those where it does
    (pairs). ``counts`` has n of each pair; ``a`` is one pseudo-count, or one for each word id.
    """
    pseudo_counts = alpha_of_words(a, pairs)  # one of each word, or one number
    if isinstance(pseudo_counts, np.ndarray):
        return np.log(pseudo_counts), np.log(counts + pairs.per_pair(pseudo_counts))
    return np.full(len(pairs.ids), np.log(a)), np.log(counts + a)


def change_base(scores: WordScores, per_class: Real, n_words: int, a: float | Real, model: str) -> None:
    """Updates in place the part of the scores that all words of a class share, from the sum of counts of each class
    (``per_class``) and the number of words (``n_words``). ``a`` is the pseudo-count of all words, or one for each id,
    and ``model`` the name of the event model.
    """
    totals = per_class + total_alpha(a, n_words)  # N + aV of each class
    if scores.polya is not None:
        scores.polya = totals
    elif model in WEIGHING:
        complement = complement_base(per_class, n_words, a)  # the same of all other classes, as logarithms
        scores.base = complement if model == "complement" else scores.margin * (complement - np.log(totals))
    elif model != "bernoulli":
        scores.base = -np.log(totals)


def set_rows(
    scores: WordScores,
    pairs: WordClassPairs,
    counts: NDArray[Any],
    a: float | Real,
    model: str,
    scale: Real | None = None,
) -> None:
    """Makes the rows of some words in place, from the counts of their pairs (``counts``). ``a`` is the pseudo-count of
    all words, or one for each id; ``model`` is the name of the event model; ``scale`` is what each word's row is
    multiplied by, None for 1.
    """
    # Scores of each word in the classes where it does not occur (words), and in those where it does (pairs).
    if model == "complement":
        absent_scores, present_scores = complement_rows(pairs, counts, a)
    elif model == "log_odds":
        absent_scores, present_scores = log_odds_rows(pairs, counts, a, scores.margin)
    elif scores.polya is not None:
        assert not isinstance(a, np.ndarray)
        absent_scores = np.full(len(pairs.ids), a)
        present_scores = counts + a
    else:
        absent_scores, present_scores = multinomial_rows(pairs, counts, a)
    scores.weights.set(pairs.ids, absent_scores, scale, pairs.starts, pairs.classes, present_scores, n_threads(None))


def set_cells(weights: _core.Weights, ids: Ids, cells: Real, scale: Real | None = None) -> None:
    """Sets in place the rows of words (by id) in ``weights`` that have a number for every class (``cells``, words ×
    classes). ``scale`` is what each word's row is multiplied by, None for 1.
    """
    n_words, n_classes = cells.shape
    # Every word is paired with every class: where the pairs of each word start, and the class of each pair.
    starts = np.arange(0, (n_words + 1) * n_classes, max(n_classes, 1), dtype=np.int64)
    classes = np.tile(np.arange(n_classes, dtype=np.int32), n_words)
    weights.set(ids, np.zeros(n_words), scale, starts, classes, np.ascontiguousarray(cells).ravel(), n_threads(None))


def log_odds_rows(pairs: WordClassPairs, counts: NDArray[Any], a: float | Real, margin: float) -> tuple[Real, Real]:
    """Returns the log-odds of each word for the classes where it does not occur (words), and for each pair where it
    does (pairs). ``counts`` has the count of each pair, ``a`` is the pseudo-count of all words, or one for each id, and
    ``margin`` is what they are multiplied by.
    """
    # log p in the class, and −log p in all other classes.
    absent_scores, present_scores = multinomial_rows(pairs, counts, a)
    absent_complement, present_complement = complement_rows(pairs, counts, a)
    return margin * (absent_scores + absent_complement), margin * (present_scores + present_complement)


def log_odds_margin(texts: Real) -> float:
    """Returns (K − 1) / K for K classes that have texts: a half for two, whose log-odds r and −r would count everything
    twice. 0 without texts.

    Classes of equal size that differ little in p from the mean of all then differ in their scores as in log p.
    ``texts`` has the number of texts of each class.
    """
    n_classes = int(np.count_nonzero(texts))
    return (n_classes - 1) / n_classes if n_classes else 0.0


def complement_rows(pairs: WordClassPairs, counts: NDArray[Any], a: float | Real) -> tuple[Real, Real]:
    """Returns −log(n + a), where n counts a word in all other classes: for the classes where the word is not (words),
    and for those where it is (pairs). ``counts`` has the count of each pair; ``a`` is one pseudo-count, or one for each
    word id.
    """
    word_totals = pairs.per_word(counts)  # over all classes
    counts_elsewhere = pairs.per_pair(word_totals) - counts  # of each pair's word, in all other classes
    if counts_elsewhere.dtype.kind == "f":  # whole numbers do not round
        # Of a class with most of a word's count, the difference would be of its rounding.
        is_majority = counts > 0.5 * pairs.per_pair(word_totals)
        sums_of_minorities = pairs.per_pair(pairs.per_word(np.where(is_majority, 0.0, counts)))
        counts_elsewhere = np.where(is_majority, sums_of_minorities, counts_elsewhere)
    pseudo_counts = alpha_of_words(a, pairs)  # one of each word, or one number
    per_pair = pairs.per_pair(pseudo_counts) if isinstance(pseudo_counts, np.ndarray) else pseudo_counts
    return -np.log(word_totals + pseudo_counts), -np.log(counts_elsewhere + per_pair)


def complement_base(per_class: Real, n_words: int, a: float | Real) -> Real:
    """Returns for each class log(N + aV), where N is the sum of counts of all other classes and V the number of words.
    ``per_class`` has the sum of counts of each class; ``a`` is one pseudo-count, or one for each word id. The other
    classes of a majority class are added up afresh, because a difference would be of its rounding.
    """
    total_of_all = per_class.sum()
    is_majority = per_class > 0.5 * total_of_all  # of each class: whether it has more than half
    other_classes = np.where(is_majority, np.where(is_majority, 0.0, per_class).sum(), total_of_all - per_class)
    return np.asarray(np.log(other_classes + total_alpha(a, n_words)))


def normalise_complement(weighed_words: WeighedWords, a: float | Real) -> WordScores:
    """Returns complement scores, divided in each class by the sum of their absolute values. ``weighed_words`` are the
    words with their counts, and ``a`` is the pseudo-count of all words, or one for each id.
    """
    words = weighed_words.words
    scores_of_words = []  # some words' pairs, scores (words × classes) and scales
    for pairs, counts, scale in weighed_words:
        # In the classes where the word is not (words), and in those where it is (pairs).
        absent_scores, present_scores = complement_rows(pairs, counts, a)
        # The scores of words in every class (words × classes).
        cells = np.broadcast_to(absent_scores[:, None], (len(absent_scores), words.n_classes)).copy()
        cells[pairs.per_pair(np.arange(len(absent_scores))), pairs.classes] = present_scores
        scores_of_words.append((pairs, cells, scale))
    return divide_by_size(scores_of_words, complement_base(weighed_words.per_class, words.n_words, a), words)


def divide_by_size(
    scores_of_words: list[tuple[WordClassPairs, Real, Real | None]], base: Real, words: Vocabulary
) -> WordScores:
    """Returns the scores of words divided by the sum of their absolute values in each class over the vocabulary.

    ``scores_of_words`` has some words at a time: their pairs, their scores (words × classes) and their scales. ``base``
    is the part of the scores that all words of a class share (classes). The only word of a vocabulary has scores of 0,
    which stay.
    """
    sizes = sum((cells.sum(axis=0) for _, cells, _ in scores_of_words), words.n_words * base)  # of each class
    sizes = np.ones_like(sizes) if words.n_words < 2 else sizes
    weights = _core.Weights(words.n_classes, np.zeros(words.n_classes))  # a row of scores for each word
    for pairs, cells, scale in scores_of_words:
        set_cells(weights, pairs.ids, cells / sizes, scale)
    return WordScores(weights, base / sizes, np.zeros(words.n_classes))


# A draw from the posterior -------------------------------------------------------------------------------------------


def draw_scores(
    model: str, weighed_words: WeighedWords, alpha: float | Real, norm: bool, rng: np.random.Generator
) -> WordScores:
    """Draws P(word | class), P(word | all other classes) or both from their posteriors, for all words and classes;
    returns the scores that they make. ``alpha`` is the prior's pseudo-count, or one for each word id, and ``model`` the
    name of the event model.

    Under Bernoulli it draws the probability that a text has the word. ``norm``: whether the scores are normalised in
    each class. ``weighed_words`` are the words with their counts.
    """
    words = weighed_words.words
    n_classes = words.n_classes
    is_bernoulli = model == "bernoulli"
    margin = log_odds_margin(words.texts) if model == "log_odds" else 1.0
    # What the logarithms of each share are multiplied by: of the class, and of all other classes (or of absence).
    signs = np.array([margin] * (model != "complement") + [-margin] * (is_bernoulli or model in WEIGHING))
    weights = _core.Weights(n_classes, np.zeros(n_classes))
    totals = np.zeros((n_classes, len(signs)))  # of the draws, over words
    constant = np.zeros(n_classes)  # under Bernoulli, log P(no word | class)
    scores_of_words = []  # if they are to be normalised: some words' pairs, scores (words × classes) and scales
    for pairs, counts, scale in weighed_words:
        cells = pairs.cells(counts, n_classes)  # the counts of each word in each class (words × classes)
        # In all other classes; under Bernoulli the texts of the class without the word (words × classes).
        counts_elsewhere = np.maximum((words.texts if is_bernoulli else cells.sum(axis=1, keepdims=True)) - cells, 0.0)
        # Words × classes × signs.
        gamma_shapes = np.stack(
            [cells, counts_elsewhere] if len(signs) == 2 else [counts_elsewhere if model == "complement" else cells],
            axis=-1,
        )
        pseudo_counts = np.reshape(raise_alpha(alpha_of_words(alpha, pairs)), (-1, 1, 1))
        gamma_draws = np.maximum(rng.standard_gamma(gamma_shapes + pseudo_counts), TINY)  # in proportion to the shares
        totals += gamma_draws.sum(axis=0)
        logs_of_draws = np.log(gamma_draws)
        if is_bernoulli:
            with_word = logs_of_draws[..., 0]
            without_word = logs_of_draws[..., -1]
            constant += (without_word - np.logaddexp(with_word, without_word)).sum(axis=0)
        if norm:
            scores_of_words.append((pairs, logs_of_draws @ signs, scale))
        else:
            set_cells(weights, pairs.ids, logs_of_draws @ signs, scale)
    # What is added to the score of every word (classes).
    base = constant * 0.0 if is_bernoulli else -np.log(np.where(totals > 0, totals, 1.0)) @ signs
    return divide_by_size(scores_of_words, base, words) if norm else WordScores(weights, base, constant, margin=margin)


# Bernoulli -----------------------------------------------------------------------------------------------------------


def bernoulli(words: Vocabulary, a: float | Real, once: bool = True) -> WordScores:
    """Estimates P(word in text | class) = (d + a) / (D + 2a) for d of D texts; a half if both are 0. Returns the
    scores. ``a`` is one number, or one for each word id.

    The constant is the log-likelihood of a text without any word, and the row of a word is what its presence adds: log
    p − log(1 − p). If ``once`` is False, d counts occurrences, at most one in each text.
    """
    n_classes = words.n_classes
    if isinstance(a, np.ndarray):
        return _bernoulli_each(words, a, once)
    # Of a word that no text of the class has (classes).
    log_present, log_absent = log_shares(np.zeros(n_classes), words.texts, a)
    weights = _core.Weights(n_classes, log_present - log_absent)
    alike_words = AlikeWords(n_classes)  # counts how many words have each count
    for pairs in words:
        counts = pairs.documents if once else pairs.occurrences  # d of each pair of a word and a class
        presence_rows = presence(counts, words.texts[pairs.classes], a)
        zeros = np.zeros(len(pairs.ids))
        # No scale; classes without the word have ``zeros`` added to what ``weights`` starts from.
        weights.set(pairs.ids, zeros, None, pairs.starts, pairs.classes, presence_rows, n_threads(None))
        alike_words.add(pairs, counts)
    # Of each class: the log-likelihood of a text without any word, and how many words all texts have.
    constant, n_certain = alike_words.absent(words.n_words, words.texts, a)
    return WordScores(weights, np.zeros(n_classes), constant, certain=n_certain if n_certain.any() else None)


def presence(documents: NDArray[Any], texts: Real, a: float | Real) -> Real:
    """Returns log p − log(1 − p) of a word's presence, if ``documents`` of the ``texts`` of a class have it and ``a``
    is the pseudo-count; CERTAIN where every text of the class has the word. The arguments broadcast.
    """
    log_present, log_absent = log_shares(documents, texts, a)  # log p and log(1 − p)
    is_certain = np.isneginf(log_absent)
    return np.where(is_certain, CERTAIN, log_present - np.where(is_certain, 0.0, log_absent))


class AlikeWords:
    """How many words of each class have each count. Absent words with equal counts say the same, so that few sums suffice."""

    def __init__(self, n_classes: int) -> None:
        """Starts without any word. ``self.n_words`` maps, for each class, a count to the number of words that have it."""
        self.n_words: list[dict[float, int]] = [{} for _ in range(n_classes)]

    def add(self, pairs: WordClassPairs, counts: NDArray[Any]) -> None:
        """Adds to ``self.n_words`` of each class how many of these words have each count; ``counts`` has the count of
        each pair.
        """
        n_classes = len(self.n_words)
        n_counts = int(counts.max(initial=0)) + 1  # possible counts, if they are whole numbers
        # Distinct combinations of a class and a count, and how many words have each.
        if n_classes * n_counts <= max(len(counts), 1 << 16) and (counts == np.rint(counts)).all():
            # By class · n_counts + count.
            table = np.bincount(pairs.classes * n_counts + counts.astype(np.int64), minlength=n_classes * n_counts)
            classes, distinct_counts = np.divmod(np.flatnonzero(table), n_counts)
            n_words = table[table > 0]
        else:
            class_and_count, n_words = np.unique(pairs.classes + 1j * counts, return_counts=True)
            classes = class_and_count.real.astype(int)
            distinct_counts = class_and_count.imag
        for c, count, n in zip(classes.tolist(), distinct_counts.tolist(), n_words.tolist(), strict=True):
            self.n_words[c][count] = self.n_words[c].get(count, 0) + n

    def absent(self, n_words: int, texts: Real, a: float) -> tuple[Real, Int]:
        """Returns for each class the log-likelihood of a text without any of the ``n_words`` words, and how many words
        all of its texts have (classes each). ``texts`` has the number of texts of each class, and ``a`` is the
        pseudo-count.
        """
        log_likelihood = np.zeros(len(texts))
        n_certain = np.zeros(len(texts), dtype=np.int64)
        for c, n_texts in enumerate(texts.tolist()):
            log_likelihood[c], n_certain[c] = self.absent_from(c, n_words, n_texts, a)
        return log_likelihood, n_certain

    def absent_from(self, c: int, n_words: int, n_texts: float, a: float) -> tuple[float, int]:
        """Returns for class c, with ``n_texts`` texts, the log-likelihood of a text without any of the ``n_words``
        words, and how many words all of its texts have. ``self.n_words[c]`` maps each count to its number of words;
        ``a`` is the pseudo-count. Words that all texts have count as 0 in the former.
        """
        counts = sorted(count for count in self.n_words[c] if count > 0)
        # The first number is that of the words that occur in no text of the class.
        words_with_count = np.array([0, *map(self.n_words[c].__getitem__, counts)])
        words_with_count[0] = n_words - words_with_count.sum()  # 0 before
        # For each count, log P(a word with this count is absent).
        _, log_absent = log_shares(np.array([0.0, *counts]), np.float64(n_texts), a)  # type: ignore[arg-type]
        is_certain = np.isneginf(log_absent)
        log_likelihood = float((words_with_count * np.where(is_certain, 0.0, log_absent)).sum())
        return log_likelihood, int(words_with_count[is_certain].sum())


class BernoulliGrowth:
    """The counts of all words of a Bernoulli model (ids × classes), kept so that one more text changes only the sums of
    its own class.
    """

    def __init__(self, words: Vocabulary) -> None:
        """Reads the counts of all ``words`` of the model."""
        self.counts = np.zeros((int(words.ids.max(initial=0)) + 1, words.n_classes))  # ids × classes
        self.like = AlikeWords(words.n_classes)  # how many words of each class have each count
        self.texts = words.texts  # the number of texts of each class
        self.n_words = words.n_words
        for pairs in words:  # of a word and a class
            self.like.add(pairs, pairs.occurrences)
            self.counts[pairs.per_pair(pairs.ids), pairs.classes] = pairs.occurrences

    def follow(self, pairs: WordClassPairs, texts: Real, a: float, constant: Real) -> Real:
        """Returns the model's constant (classes) after the counts of some words (``pairs``, which have the new ones)
        and the number of texts of each class (``texts``) changed; ``constant`` is the old one, and ``a`` the
        pseudo-count. Updates the counts kept here: ``self.counts`` (ids × classes), ``self.texts`` and, for each class,
        ``self.like.n_words``, which maps a count to the number of words that have it.
        """
        old_counts = self.counts[pairs.ids]  # words × classes
        new_counts = pairs.cells(pairs.occurrences, len(texts))  # words × classes
        is_changed = old_counts != new_counts
        _, classes = np.nonzero(is_changed)  # of each cell that changed
        changed_cells = (classes.tolist(), old_counts[is_changed].tolist(), new_counts[is_changed].tolist())
        for c, old_count, new_count in zip(*changed_cells, strict=True):
            words_with_count = self.like.n_words[c]  # the number of words, by count
            if old_count > 0:
                words_with_count[old_count] -= 1
                if not words_with_count[old_count]:
                    del words_with_count[old_count]
            words_with_count[new_count] = words_with_count.get(new_count, 0) + 1
        changed_classes = np.union1d(classes, np.flatnonzero(texts != self.texts)).tolist()
        self.counts[pairs.ids] = new_counts
        self.texts = texts
        constant = constant.copy()
        for c in changed_classes:
            constant[c], _ = self.like.absent_from(c, self.n_words, float(texts[c]), a)
        return constant


def _bernoulli_each(words: Vocabulary, a: Real, once: bool) -> WordScores:
    """Returns Bernoulli scores where each word has its own pseudo-count (``a``, by word id). ``once``: whether texts
    that have a word are counted, rather than its occurrences.
    """
    n_classes = words.n_classes
    weights = _core.Weights(n_classes, np.zeros(n_classes))
    constant = np.zeros(n_classes)  # the log-likelihood of a text without any word
    n_certain = np.zeros(n_classes, dtype=np.int64)  # words that all texts of the class have
    for pairs in words:
        cells = pairs.cells(pairs.documents if once else pairs.occurrences, n_classes)  # words × classes
        pseudo_counts = a[pairs.ids][:, None]
        set_cells(weights, pairs.ids, presence(cells, words.texts, pseudo_counts))
        _, log_absent = log_shares(cells, words.texts, pseudo_counts)  # words × classes
        is_certain = np.isneginf(log_absent)
        constant += np.where(is_certain, 0.0, log_absent).sum(axis=0)
        n_certain += is_certain.sum(axis=0)
    return WordScores(weights, np.zeros(n_classes), constant, certain=n_certain if n_certain.any() else None)


def log_shares(documents: NDArray[Any], texts: Real, a: float | Real) -> tuple[Real, Real]:
    """Returns the logarithms of the shares of texts with and without a word, both with the pseudo-count ``a``.
    ``documents`` of the ``texts`` have the word; the arguments broadcast.
    """
    documents_without = texts - documents
    documents_without = np.where(documents_without <= ROUNDING * texts, 0.0, documents_without)
    weight_with = np.maximum(documents + a, 0.0)
    weight_without = np.maximum(documents_without + a, 0.0)
    has_no_weight = weight_with + weight_without <= 0  # a half each
    weight_with = np.where(has_no_weight, 1.0, weight_with)
    weight_without = np.where(has_no_weight, 1.0, weight_without)
    total_weight = weight_with + weight_without
    return log(weight_with / total_weight), log(weight_without / total_weight)
