"""Learns how the words of a text column count, and their corrections.

The score of a text is a sum over its words: the value of the word in the text (tf · idf, L2-normalised) times its evidence,
log P(word | class) / P(word | other classes), plus its correction. Corrections are learned with the score of each text by the
evidence of all other texts as offset.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Real
from banbury.families.bags.lexicon import Bags, Lexicon, slices_of_length
from banbury.families.cells import HALF_ROW
from banbury.weighing.corrections import (
    COMMON_WORD_VALUE,
    Reals32,
    ScoreByStrength,
    StrengthSearch,
    WordLearner,
    WordValues,
    choose,
    least_loss,
)
from banbury.weighing.rows import FEW_CLASSES

TextCounts = tuple[Real, Real]  # the texts of each class that have each word (words × classes), and of each class

STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)  # values of C
FEWEST_TEXTS_TO_DROP = 10_000  # from so many texts on, the first fold drops settings; from fewer with many classes
SETTINGS_KEPT = 2  # settings that the first fold does not drop
PASSES = 2
LAST_PASSES = 5
RIDGE = 5.0  # pulls the factor by which scores are rescaled towards 1
MOST_FACTOR = 10.0  # the largest such factor


class Setting(NamedTuple):
    """How the words of a text count.

    ``use_counts``: the root of how often a word occurs, rather than whether it does. ``idf_power``: the power of the inverse
    document frequency. ``variance_by_evidence``: how much more the corrections of words with strong evidence may vary.
    ``evidence_weight``: the weight of the counted evidence. ``leave_out``: learn from evidence that leaves the text itself out.
    """

    use_counts: bool
    idf_power: float
    variance_by_evidence: float
    evidence_weight: float
    leave_out: bool = True


SETTINGS = (  # use_counts, idf_power, variance_by_evidence and evidence_weight of each
    Setting(True, 1.0, 0.5, 0.5),
    Setting(False, 0.5, 0.7, 0.3),
    Setting(False, 1.0, 0.5, 0.5),
    Setting(True, 1.0, 0.5, 1.0),
    Setting(False, 0.5, 0.7, 1.0),
    Setting(False, 0.5, 0.7, 0.3, leave_out=False),
)


@dataclass(frozen=True)
class LearnedTexts:
    """What was learned of a text column: how its words count, C, and the corrections of its ``words``.

    ``corrections`` are float32 (words + 1, classes); the last row is that of the bias feature.
    """

    column: str  # the name of the text column
    words: tuple[str, ...]
    setting: Setting  # how words count
    strength: float  # C, 0 for no corrections
    corrections: Reals32
    losses: tuple[tuple[float, float], ...]  # C, and the mean log loss of held-out texts, under this setting


@dataclass(frozen=True, eq=False)
class WordEvidence:
    """The evidence of words about classes or labels, from the texts that have them.

    ``factor`` multiplies the evidence: ½ for two classes, whose evidence is the same number with opposite signs and must not
    count twice.
    """

    documents: Real  # how many texts of each class or label have each word (words × classes)
    texts: Real  # how many texts each class or label has (classes,)
    texts_with_word: (
        Real  # how many texts have each word (words,); with several labels per text, not the sum over labels
    )
    n_texts: float  # the number of all texts
    factor: float = 1.0

    @classmethod
    def of_classes(cls, documents: Real, texts: Real) -> WordEvidence:
        """Returns the evidence of words about classes, of which each text has one. ``documents`` is the number of texts
        of each class that have each word (words × classes), and ``texts`` that of each class.
        """
        # Of the evidence: of two classes, each has that of the other with the opposite sign, and it must count once.
        factor = 0.5 if documents.shape[1] == 2 else 1.0
        return cls(documents, texts, np.asarray(documents.sum(axis=1)), float(texts.sum()), factor)

    @cached_property
    def log_prior(self) -> Real:
        """The log of each class's share of the texts (classes,), with half a text added to each."""
        smoothed_texts = self.texts + HALF_ROW
        return np.asarray(np.log(smoothed_texts / smoothed_texts.sum()))

    @cached_property
    def _word_totals(self) -> tuple[Real, Real]:
        """The number of words in the texts of each class, and in those of all other classes (classes,), with one added
        for each distinct word. A word counts once per text.
        """
        class_totals = self.documents.sum(axis=0)
        n_words = float((self.texts_with_word > 0).sum())
        return class_totals + n_words, self.texts_with_word.sum() - class_totals + n_words

    @cached_property
    def log_ratios(self) -> Reals32:
        """log P(word | class) / P(word | other classes) (words × classes), with one added to each count, times
        ``factor``; 0 for words that no text has.
        """
        class_totals, other_totals = self._word_totals  # words in the texts of each class, and of all other classes
        other_documents = self.texts_with_word[:, None] - self.documents  # texts of other classes (words × classes)
        log_ratios = np.log((self.documents + 1.0) / (other_documents + 1.0)) + np.log(
            np.maximum(other_totals, 1.0) / np.maximum(class_totals, 1.0)
        )
        return np.where(self.texts_with_word[:, None] > 0, self.factor * log_ratios, 0.0).astype(np.float32)

    @cached_property
    def _log_ratios_without_text(self) -> tuple[Reals32, Reals32]:
        """The evidence of each word (words × classes) if a text that has it is left out, without the totals of classes:
        for a class that is not the text's, and for one that is.
        """
        other_documents = self.texts_with_word[:, None] - self.documents  # texts of other classes (words × classes)
        of_other_class = np.log((self.documents + 1.0) / np.maximum(other_documents, 1.0))
        of_own_class = np.log(np.maximum(self.documents, 1.0) / (other_documents + 1.0))
        return of_other_class.astype(np.float32), of_own_class.astype(np.float32)

    def scale(self, power: float, keep_words_of_one_text: bool = True) -> Reals32:
        """Returns the inverse document frequency of each word to a ``power`` (words,). It is 0 for words of no text,
        and for words of one text unless ``keep_words_of_one_text``.
        """
        idf = np.log((1.0 + self.n_texts) / (1.0 + self.texts_with_word)) + 1.0  # inverse document frequency
        is_kept = self.texts_with_word > (0.0 if keep_words_of_one_text else 1.0)
        return np.where(is_kept, idf**power, 0.0).astype(np.float32)

    def values(self, bags: Bags, setting: Setting, threads: int) -> Real:
        """Returns the value (tf · idf, normalised) of each word in each text of ``bags``, text by text. ``setting``
        says how words count; ``threads``: how many to use.
        """
        return bags.values(setting.use_counts, self.scale(setting.idf_power), threads)

    def leave_each_out(self, bags: Bags, setting: Setting, labels: _core.LabelSets, threads: int) -> Real:
        """Returns the score of each text by the words of all other texts (texts × classes).

        Leaving a text out changes the counts of its words, and the totals: those of its own classes lose its words,
        those of the other classes lose them where the text counts as another, and a word that only this text has leaves
        the vocabulary.

        Args:
            bags: The words of all texts.
            setting: How words count.
            labels: Where the class numbers of each text start (texts + 1,), and the class numbers, text by text.
            threads: How many threads to use.
        """
        word_scales = self.scale(setting.idf_power, keep_words_of_one_text=False)
        word_values = bags.values(setting.use_counts, word_scales, threads)  # of each word in each text
        scores = bags.left_out(word_values, labels, *self._log_ratios_without_text, threads)  # without the totals
        n_words = np.diff(bags.offsets).astype(np.float64)  # of each text
        value_sums = bags.sums(word_values)  # of each text
        n_words_only_here = bags.sums((self.texts_with_word <= 1.0)[bags.words])  # of each text: words of no other text
        offsets, classes = labels
        for texts in slices_of_length(len(bags)):
            # Texts × classes: the words of the class, and of all other classes, without the text.
            totals_of_class, totals_of_others = (
                totals - n_words_only_here[texts, None] for totals in self._word_totals
            )
            n_labels = np.diff(offsets[texts.start : texts.stop + 1])  # of each text of the slice
            text_and_class = (  # the position in the slice and the class number of each label of a text
                np.repeat(np.arange(len(n_labels)), n_labels),
                classes[offsets[texts.start] : offsets[texts.stop]],
            )
            totals_of_own_classes = totals_of_others[text_and_class]
            totals_of_others -= n_words[texts, None]
            totals_of_others[text_and_class] = totals_of_own_classes
            totals_of_class[text_and_class] -= n_words[texts][text_and_class[0]]
            scores[texts] += value_sums[texts, None] * np.log(
                np.maximum(totals_of_others, 1.0) / np.maximum(totals_of_class, 1.0)
            )
        scores *= self.factor
        return scores


@dataclass(frozen=True)
class ClassifiedTexts:
    """The texts of a column, each with a class number and a weight.

    ``bags`` are the words of each text, by position in ``lexicon``. ``counts_outside`` are the counts of the texts outside
    a sample, if these texts are one.
    """

    lexicon: Lexicon
    bags: Bags
    labels: NDArray[np.int32]  # the class number of each text
    weights: Real  # of each text
    n_classes: int
    counts_outside: TextCounts | None

    def reweight(self, weights: Real) -> ClassifiedTexts:
        """Returns the texts with other weights (one per text), without those of weight 0."""
        texts = np.flatnonzero(weights > 0)
        return replace(self, bags=self.bags.take(texts), labels=self.labels[texts], weights=weights[texts])

    @cached_property
    def evidence(self) -> WordEvidence:
        """The evidence of words, counted from these texts and from those outside the sample."""
        # How many texts of each class have each word (words × classes), and how many texts each class has.
        documents = self.bags.count(one_label_each(self.labels), self.weights, self.n_classes)
        texts = np.asarray(np.bincount(self.labels, self.weights, self.n_classes), dtype=np.float64)
        if self.counts_outside is None:
            return WordEvidence.of_classes(documents, texts)
        documents_outside, texts_outside = self.counts_outside
        return WordEvidence.of_classes(documents + documents_outside, texts + texts_outside)

    def learner(self, setting: Setting, seed: int, threads: int) -> WordLearner:
        """Returns a learner of the corrections of words under a setting, which says how words count. ``seed`` decides
        the order in which texts are visited, and ``threads`` says how many to use.
        """
        evidence = self.evidence
        values = evidence.values(self.bags, setting, threads)  # of each word in each text
        # ``text_evidence``: the evidence of the words of each text (texts × classes).
        if setting.leave_out:
            text_evidence = evidence.leave_each_out(self.bags, setting, one_label_each(self.labels), threads)
        else:
            text_evidence = self.bags.scores(values, evidence.log_ratios, threads)
        offsets = evidence.log_prior + setting.evidence_weight * text_evidence
        words = WordValues.of(self.bags, values, evidence.log_ratios, setting.variance_by_evidence)
        return WordLearner(words, np.eye(self.n_classes)[self.labels], offsets, self.weights, seed, threads)


def learn_words(
    texts: ClassifiedTexts, fold_weights: Real, correct: bool, seed: int, threads: int
) -> tuple[LearnedTexts, Real]:
    """Returns how the words of a column count and their corrections, as learned from its texts, and the out-of-fold
    scores of the texts (texts × classes), without the prior.

    The setting and C with the least out-of-fold log loss after rescaling are chosen.

    Args:
        texts: The texts to learn from.
        fold_weights: The weight of each text in each fold (texts × folds).
        correct: Whether to learn corrections.
        seed: Decides the order in which texts are visited.
        threads: How many threads to use.
    """
    folds = [_TextFold(texts, held_out_weights, seed) for held_out_weights in fold_weights.T]
    search = StrengthSearch((0.0, *STRENGTHS) if correct else (0.0,), _log_loss_after_rescaling)  # values of C
    n_texts = len(texts.labels)
    drops_settings = (
        n_texts * max(texts.n_classes, FEW_CLASSES) >= FEWEST_TEXTS_TO_DROP * FEW_CLASSES and len(folds) > SETTINGS_KEPT
    )
    # The best setting, and for each C that was tried with it, the loss of held-out texts and their scores by fold.
    setting, tried = choose(folds, SETTINGS, search, SETTINGS_KEPT if drops_settings else len(SETTINGS), threads)
    best_step = least_loss(tried)
    out_of_fold_scores = np.zeros((n_texts, texts.n_classes))
    for fold, scores in zip(folds, best_step.scores, strict=True):  # held-out texts × classes
        share_in_fold = fold.held_out_weights / texts.weights[fold.row_numbers]  # the part of each text's weight
        out_of_fold_scores[fold.row_numbers] += share_in_fold[:, None] * (scores - fold.training.evidence.log_prior)
    corrections = np.zeros((texts.bags.n_words + 1, texts.n_classes), dtype=np.float32)
    if best_step.strength:
        learner = texts.learner(setting, seed, threads)
        learner.improve(best_step.strength, LAST_PASSES)
        corrections = learner.corrections()
    total_weight = float(texts.weights.sum())
    losses = tuple((step.strength, step.loss / total_weight) for step in tried)
    column = texts.lexicon.feature.name
    learned = LearnedTexts(column, tuple(texts.lexicon.words), setting, best_step.strength, corrections, losses)
    return learned, out_of_fold_scores


def _log_loss_after_rescaling(scores: Reals32, labels: NDArray[np.int32], weights: Real) -> float:
    """Returns the log loss of scores (texts × classes), summed over texts with their ``weights``, after rescaling them
    by the factor with the least loss. ``labels`` has the class number of each text.
    """
    return _core.tempered(scores, labels, weights, RIDGE, MOST_FACTOR, threads=1)[0]


def one_label_each(labels: NDArray[np.int32]) -> _core.LabelSets:
    """Returns one label per text as sets of labels: where the labels of each text start, then the labels."""
    return np.arange(len(labels) + 1), labels


class _TextFold:
    """One fold: texts to learn from, and held-out texts. ``row_numbers`` are the numbers of the held-out texts, and
    ``truth`` are their class numbers.
    """

    def __init__(self, texts: ClassifiedTexts, held_out_weights: Real, seed: int) -> None:
        """Divides the texts. ``held_out_weights`` is the part of each text's weight that is held out in this fold, and
        ``seed`` decides the order in which texts are visited.
        """
        self.texts = texts
        self.training_weights = texts.weights - held_out_weights
        self.row_numbers = np.flatnonzero(held_out_weights > 0)
        self.truth = texts.labels[self.row_numbers]
        self.held_out_weights = held_out_weights[self.row_numbers]
        self.seed = seed

    @cached_property
    def training(self) -> ClassifiedTexts:
        """The texts to learn from."""
        return self.texts.reweight(self.training_weights)

    def correct(self, setting: Setting) -> ScoreByStrength:
        """Returns a function of C that scores the held-out texts (texts × classes) with corrections of that C, under a
        setting, which says how words count. Each call learns further from where the last one stopped.
        """
        evidence = self.training.evidence
        learner = self.training.learner(setting, self.seed, threads=1)
        bags = self.texts.bags.take(self.row_numbers)  # the words of the held-out texts
        values = evidence.values(bags, setting, threads=1)  # of each word in each text
        uncorrected_scores = evidence.log_prior + setting.evidence_weight * bags.scores(values, evidence.log_ratios, 1)

        def score_by_strength(strength: float) -> Reals32:
            """Learns corrections with this C (``strength``; 0: none), and returns scores (held-out texts × classes).
            ``bags`` has the words of these texts, and ``values`` the value of each word.
            """
            if not strength:
                return uncorrected_scores.astype(np.float32)
            learner.improve(strength, PASSES)
            corrections = learner.corrections()  # words × classes; the last row is for all texts
            added_scores = bags.scores(values, corrections[:-1], 1)
            added_scores += COMMON_WORD_VALUE * corrections[-1].astype(np.float64)
            return np.asarray(uncorrected_scores + added_scores, dtype=np.float32)

        return score_by_strength
