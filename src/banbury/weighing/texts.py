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
    """How words count: how often they occur (as a root) or whether; their rarity to a power; how much words that tell more may be
    corrected more; how much of the plain evidence is believed; and whether a text is left out of it as it is learned from."""

    often: bool
    power: float
    telling: float
    trust: float
    left_out: bool = True


SETTINGS = (
    Setting(True, 1.0, 0.5, 0.5),
    Setting(False, 0.5, 0.7, 0.3),
    Setting(False, 1.0, 0.5, 0.5),
    Setting(True, 1.0, 0.5, 1.0),
    Setting(False, 0.5, 0.7, 1.0),
    Setting(False, 0.5, 0.7, 0.3, left_out=False),
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
    """What words say, from how many texts of each class have them, (words, classes), and how many texts there are."""

    def __init__(self, documents: Real, texts: Real) -> None:
        self.documents, self.texts, self.n_classes = documents, texts, documents.shape[1]

    @classmethod
    def of(
        cls, bags: Bags, labels: NDArray[np.int32], weights: Real, n_classes: int, others: Documents | None
    ) -> WordEvidence:
        documents = bags.count(one_each(labels), weights, n_classes)
        texts = np.asarray(np.bincount(labels, weights, n_classes), dtype=np.float64)
        return cls(documents, texts) if others is None else cls(documents + others[0], texts + others[1])

    @cached_property
    def _having(self) -> Real:
        return np.asarray(self.documents.sum(axis=1))

    @property
    def _every_text(self) -> float:
        return float(self.texts.sum())

    @property
    def _halved(self) -> float:
        """Of two classes each says the opposite of the other, which must not count twice."""
        return 0.5 if self.n_classes == 2 else 1.0

    @cached_property
    def log_prior(self) -> Real:
        rows = self.texts + HALF_ROW
        return np.asarray(np.log(rows / rows.sum()))

    @cached_property
    def _totals(self) -> tuple[Real, Real]:
        """Of each class all its words, one of each kind added; and the same of all other classes."""
        own = self.documents.sum(axis=0)
        words = float((self._having > 0).sum())
        return own + words, own.sum() - own + words

    @cached_property
    def says(self) -> Reals32:
        """log P(word | class) / P(word | other classes), each count with one added; nothing where no text has the word."""
        own, others = self._totals
        rest = self._having[:, None] - self.documents
        says = np.log((self.documents + 1.0) / (rest + 1.0)) + np.log(np.maximum(others, 1.0) / np.maximum(own, 1.0))
        return np.where(self._having[:, None] > 0, self._halved * says, 0.0).astype(np.float32)

    @cached_property
    def _without(self) -> tuple[Reals32, Reals32]:
        """What a word says of other classes than its text's own, and of that, when the text is left out; but for totals."""
        rest = self._having[:, None] - self.documents
        elsewhere = np.log((self.documents + 1.0) / np.maximum(rest, 1.0))
        own = np.log(np.maximum(self.documents, 1.0) / (rest + 1.0))
        return elsewhere.astype(np.float32), own.astype(np.float32)

    def scale(self, power: float, alone: bool = True) -> Reals32:
        """How much a word counts for its rarity; nothing if no text has it, or if only one has and not ``alone``."""
        rarity = np.log((1.0 + self._every_text) / (1.0 + self._having)) + 1.0
        return np.where(self._having > (0.0 if alone else 1.0), rarity**power, 0.0).astype(np.float32)

    def left_out(self, bags: Bags, setting: Setting, labels: _core.LabelSets, threads: int) -> Real:
        """What the words of each text say when that text was not counted, (texts, classes)."""
        values = bags.values(setting.often, self.scale(setting.power, alone=False), threads)
        says = bags.left_out(values, labels, *self._without, threads)
        words = np.diff(bags.offsets).astype(np.float64)
        lengths = bags.sums(values)
        alone = bags.sums((self._having <= 1.0)[bags.words])
        offsets, classes = labels
        for some in stretches(len(bags)):
            mine, others = (each - alone[some, None] for each in self._totals)
            sizes = np.diff(offsets[some.start : some.stop + 1])
            at = np.repeat(np.arange(len(sizes)), sizes), classes[offsets[some.start] : offsets[some.stop]]
            kept = others[at]
            others -= words[some, None]
            others[at] = kept
            mine[at] -= words[some][at[0]]
            says[some] += lengths[some, None] * np.log(np.maximum(others, 1.0) / np.maximum(mine, 1.0))
        says *= self._halved
        return says


def learned_texts(
    bags: Bags,
    labels: NDArray[np.int32],
    weights: Real,
    shares: Real,
    n_classes: int,
    others: Documents | None = None,
    *,
    correct: bool = True,
    seed: int = 0,
    threads: int = 1,
) -> tuple[LearnedTexts, Real]:
    """What is learned of a column of texts, and what its words say of each text when others were learned from.

    ``shares`` has what each text weighs in each fold; ``others`` what texts that are not here have. The setting and C are those
    whose scores lose least on texts held out, when they are made honest.
    """
    folds = [_TextFold(bags, labels, weights, share, n_classes, others, seed) for share in shares.T]
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
        counted = WordEvidence.of(bags, labels, weights, n_classes, others)
        learner = _learner(bags, labels, weights, counted, setting, seed, threads)
        learner.improve(best.strength, LAST_PASSES)
        table = learner.corrections()
    total = float(weights.sum())
    losses = tuple((step.strength, step.loss / total) for step in steps)
    return LearnedTexts(setting, best.strength, table, losses), evidence


def _honest_loss(scores: Reals32, labels: NDArray[np.int32], weights: Real) -> float:
    """What scores lose when one number makes them honest."""
    return _core.tempered(scores, labels, weights, RIDGE, MOST_HONEST)[0]


def one_each(labels: NDArray[np.int32]) -> _core.LabelSets:
    """Labels of texts that have one each, as sets."""
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
    """Texts that are learned from under a setting."""
    values = bags.values(setting.often, counted.scale(setting.power), threads)
    if setting.left_out:
        says = counted.left_out(bags, setting, one_each(labels), threads)
    else:
        says = bags.scores(values, counted.says, threads)
    offsets = counted.log_prior + setting.trust * says
    words = WordValues.of(bags, values, counted.says, setting.telling)
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
        others: Documents | None,
        seed: int,
    ) -> None:
        self.inside, self.outside = np.flatnonzero(weights - share > 0), np.flatnonzero(share > 0)
        self.bags, self.labels, self.truth = bags, labels[self.inside], labels[self.outside]
        self.weights, self.held_out = (weights - share)[self.inside], share[self.outside]
        self.n_classes = n_classes
        self.others = others
        self.seed = seed

    @cached_property
    def _learned(self) -> Bags:
        return self.bags.take(self.inside)

    @cached_property
    def counted(self) -> WordEvidence:
        return WordEvidence.of(self._learned, self.labels, self.weights, self.n_classes, self.others)

    def corrected(self, setting: Setting) -> Scores:
        counted = self.counted
        learner = _learner(self._learned, self.labels, self.weights, counted, setting, self.seed, 1)
        tested = self.bags.take(self.outside)
        values = tested.values(setting.often, counted.scale(setting.power), 1)
        plain = counted.log_prior + setting.trust * tested.scores(values, counted.says, 1)

        def scores(strength: float) -> Reals32:
            if not strength:
                return plain.astype(np.float32)
            learner.improve(strength, PASSES)
            table = learner.corrections()
            added = tested.scores(values, table[:-1], 1) + COMMON * table[-1].astype(np.float64)
            return np.asarray(plain + added, dtype=np.float32)

        return scores
