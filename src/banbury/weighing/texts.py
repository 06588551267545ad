"""Texts as they are weighed: what words say of each class where a text is left out, and what their corrections add.

A word counts its own share of its text's length, by how rare it is. Its evidence is the logarithm of how much more often texts
of a class have it than all others. Corrections are those of tables: a text adds to its words what it surprised by.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Real
from banbury.families.bags.lexicon import Bags, stretches
from banbury.families.cells import HALF_ROW
from banbury.weighing.corrections import (
    COMMON,
    Reals32,
    Scores,
    StrengthSearch,
    WordLearner,
    WordValues,
    choose,
    least_loss,
)
from banbury.weighing.rows import FEW_CLASSES

Documents = tuple[Real, Real]  # of each class that have each word, (words, classes), and of each class

STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)  # C: how far corrections may go
MANY_TEXTS = 10_000  # from which on settings are raced on one fold; of more than FEW_CLASSES, from fewer texts on
RACED = 2  # settings that stay after the first fold
PASSES = 2
LAST_PASSES = 5
RIDGE = 5.0  # of the one number that makes scores honest, towards 1
MOST_HONEST = 10.0  # and it is this at most


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


SETTINGS = (
    Setting(True, 1.0, 0.5, 0.5),
    Setting(False, 0.5, 0.7, 0.3),
    Setting(False, 1.0, 0.5, 0.5),
    Setting(True, 1.0, 0.5, 1.0),
    Setting(False, 0.5, 0.7, 1.0),
    Setting(False, 0.5, 0.7, 0.3, leave_out=False),
)


@dataclass(frozen=True)
class LearnedTexts:
    """What was learned of a column of texts: how words count, how far they are corrected, and the corrections.

    ``corrections`` are (words + 1, classes), float32; the last of them is what all texts have in common.
    """

    setting: Setting
    strength: float  # C, 0 for none
    corrections: Reals32
    losses: tuple[tuple[float, float], ...]  # C, and the mean log loss of texts held out, under this setting


class WordEvidence:
    """The evidence of words, from the number of texts of each class that have each word, (words, classes), and that there are."""

    def __init__(self, documents: Real, texts: Real) -> None:
        self.documents, self.texts, self.n_classes = documents, texts, documents.shape[1]

    @classmethod
    def of(
        cls, bags: Bags, labels: NDArray[np.int32], weights: Real, n_classes: int, documents_elsewhere: Documents | None
    ) -> WordEvidence:
        documents = bags.count(one_each(labels), weights, n_classes)
        texts = np.asarray(np.bincount(labels, weights, n_classes), dtype=np.float64)
        return (
            cls(documents, texts)
            if documents_elsewhere is None
            else cls(documents + documents_elsewhere[0], texts + documents_elsewhere[1])
        )

    @cached_property
    def _having(self) -> Real:
        return np.asarray(self.documents.sum(axis=1))

    @property
    def _every_text(self) -> float:
        return float(self.texts.sum())

    @property
    def _halved(self) -> float:
        """½ for two classes, whose evidence is one number with opposite signs and must not count twice."""
        return 0.5 if self.n_classes == 2 else 1.0

    @cached_property
    def log_prior(self) -> Real:
        rows = self.texts + HALF_ROW
        return np.asarray(np.log(rows / rows.sum()))

    @cached_property
    def _totals(self) -> tuple[Real, Real]:
        """The words in texts of each class, and of all other classes, with one added for each distinct word."""
        class_totals = self.documents.sum(axis=0)
        words = float((self._having > 0).sum())
        return class_totals + words, class_totals.sum() - class_totals + words

    @cached_property
    def says(self) -> Reals32:
        """log P(word | class) / P(word | other classes), each count with one added; nothing where no text has the word."""
        own_total, other_total = self._totals
        rest = self._having[:, None] - self.documents
        says = np.log((self.documents + 1.0) / (rest + 1.0)) + np.log(
            np.maximum(other_total, 1.0) / np.maximum(own_total, 1.0)
        )
        return np.where(self._having[:, None] > 0, self._halved * says, 0.0).astype(np.float32)

    @cached_property
    def _without(self) -> tuple[Reals32, Reals32]:
        """The evidence of a word for other classes, and for its text's own class, if the text is left out; without the totals."""
        rest = self._having[:, None] - self.documents
        other_classes = np.log((self.documents + 1.0) / np.maximum(rest, 1.0))
        own_class = np.log(np.maximum(self.documents, 1.0) / (rest + 1.0))
        return other_classes.astype(np.float32), own_class.astype(np.float32)

    def scale(self, power: float, alone: bool = True) -> Reals32:
        """The idf weight of each word; 0 if no text has it, or if only one has and ``alone`` is False."""
        rarity = np.log((1.0 + self._every_text) / (1.0 + self._having)) + 1.0
        return np.where(self._having > (0.0 if alone else 1.0), rarity**power, 0.0).astype(np.float32)

    def leave_each_out(self, bags: Bags, setting: Setting, labels: _core.LabelSets, threads: int) -> Real:
        """The score of each text by the words of all other texts, (texts, classes)."""
        values = bags.values(setting.use_counts, self.scale(setting.idf_power, alone=False), threads)
        says = bags.left_out(values, labels, *self._without, threads)
        words = np.diff(bags.offsets).astype(np.float64)
        lengths = bags.sums(values)
        alone = bags.sums((self._having <= 1.0)[bags.words])
        offsets, classes = labels
        for texts in stretches(len(bags)):
            own_totals, other_totals = (totals - alone[texts, None] for totals in self._totals)
            sizes = np.diff(offsets[texts.start : texts.stop + 1])
            at = np.repeat(np.arange(len(sizes)), sizes), classes[offsets[texts.start] : offsets[texts.stop]]
            unchanged = other_totals[at]
            other_totals -= words[texts, None]
            other_totals[at] = unchanged
            own_totals[at] -= words[texts][at[0]]
            says[texts] += lengths[texts, None] * np.log(np.maximum(other_totals, 1.0) / np.maximum(own_totals, 1.0))
        says *= self._halved
        return says


def learn_words(
    bags: Bags,
    labels: NDArray[np.int32],
    weights: Real,
    shares: Real,
    n_classes: int,
    documents_elsewhere: Documents | None = None,
    *,
    correct: bool = True,
    seed: int = 0,
    threads: int = 1,
) -> tuple[LearnedTexts, Real]:
    """Learns how the words of a column count and their corrections; also gives each text's out-of-fold score.

    ``shares`` has the weight of each text in each fold; ``documents_elsewhere`` counts the texts outside a sample. The
    setting and C are those with the least out-of-fold log loss after rescaling.
    """
    folds = [_TextFold(bags, labels, weights, share, n_classes, documents_elsewhere, seed) for share in shares.T]
    search = StrengthSearch((0.0, *STRENGTHS) if correct else (0.0,), _honest_loss)
    is_raced = len(labels) * max(n_classes, FEW_CLASSES) >= MANY_TEXTS * FEW_CLASSES and len(folds) > RACED
    setting, steps = choose(folds, SETTINGS, search, RACED if is_raced else len(SETTINGS), threads)
    best = least_loss(steps)
    evidence = np.zeros((len(labels), n_classes))
    for fold, scores in zip(folds, best.scores, strict=True):
        part = fold.held_out / weights[fold.outside]
        evidence[fold.outside] += part[:, None] * (scores - fold.counted.log_prior)
    table = np.zeros((bags.n_words + 1, n_classes), dtype=np.float32)
    if best.strength:
        counted = WordEvidence.of(bags, labels, weights, n_classes, documents_elsewhere)
        learner = _learner(bags, labels, weights, counted, setting, seed, threads)
        learner.improve(best.strength, LAST_PASSES)
        table = learner.corrections()
    total = float(weights.sum())
    losses = tuple((step.strength, step.loss / total) for step in steps)
    return LearnedTexts(setting, best.strength, table, losses), evidence


def _honest_loss(scores: Reals32, labels: NDArray[np.int32], weights: Real) -> float:
    """The log loss of scores, rescaled by the one number that suits them best."""
    return _core.tempered(scores, labels, weights, RIDGE, MOST_HONEST)[0]


def one_each(labels: NDArray[np.int32]) -> _core.LabelSets:
    """Labels of texts that have one each, as sets of labels."""
    return np.arange(len(labels) + 1), labels


def _learner(
    bags: Bags,
    labels: NDArray[np.int32],
    weights: Real,
    counted: WordEvidence,
    setting: Setting,
    seed: int,
    threads: int,
) -> WordLearner:
    """A learner of corrections for these texts, under a setting."""
    values = bags.values(setting.use_counts, counted.scale(setting.idf_power), threads)
    if setting.leave_out:
        says = counted.leave_each_out(bags, setting, one_each(labels), threads)
    else:
        says = bags.scores(values, counted.says, threads)
    offsets = counted.log_prior + setting.evidence_weight * says
    words = WordValues.of(bags, values, counted.says, setting.variance_by_evidence)
    return WordLearner(words, np.eye(counted.n_classes)[labels], offsets, weights, seed, threads)


class _TextFold:
    """A fold: texts to count and correct, and texts held out."""

    def __init__(
        self,
        bags: Bags,
        labels: NDArray[np.int32],
        weights: Real,
        share: Real,
        n_classes: int,
        documents_elsewhere: Documents | None,
        seed: int,
    ) -> None:
        self.inside, self.outside = np.flatnonzero(weights - share > 0), np.flatnonzero(share > 0)
        self.bags, self.labels, self.truth = bags, labels[self.inside], labels[self.outside]
        self.weights, self.held_out = (weights - share)[self.inside], share[self.outside]
        self.n_classes = n_classes
        self.elsewhere = documents_elsewhere
        self.seed = seed

    @cached_property
    def _learned(self) -> Bags:
        return self.bags.take(self.inside)

    @cached_property
    def counted(self) -> WordEvidence:
        return WordEvidence.of(self._learned, self.labels, self.weights, self.n_classes, self.elsewhere)

    def correct(self, setting: Setting) -> Scores:
        counted = self.counted
        learner = _learner(self._learned, self.labels, self.weights, counted, setting, self.seed, 1)
        tested = self.bags.take(self.outside)
        values = tested.values(setting.use_counts, counted.scale(setting.idf_power), 1)
        plain = counted.log_prior + setting.evidence_weight * tested.scores(values, counted.says, 1)

        def scores(strength: float) -> Reals32:
            if not strength:
                return plain.astype(np.float32)
            learner.improve(strength, PASSES)
            table = learner.corrections()
            added = tested.scores(values, table[:-1], 1) + COMMON * table[-1].astype(np.float64)
            return np.asarray(plain + added, dtype=np.float32)

        return scores
