"""Texts as they are weighed: what words say of each class where a text is left out, and what their corrections add.

A word counts its own share of its text's length, by how rare it is. Its evidence is the logarithm of how much more often texts
of a class have it than all others. Corrections are those of tables: a text adds to its words what it surprised by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Real
from banbury.distributions.bags import Bags, stretches
from banbury.distributions.trees import HALF_ROW
from banbury.progress import watched
from banbury.weighing.rows import FEW_CLASSES, shuffled

Reals32 = NDArray[np.float32]
Documents = tuple[Real, Real]  # of each class that have each word, (words, classes), and of each class

STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)  # C: how far corrections may go
MANY_TEXTS = 10_000  # from which on settings are raced on one fold; of more than FEW_CLASSES, from fewer texts on
RACED = 2  # settings that stay after the first fold
COMMON = 0.3  # what all texts have in common counts so much in each
PASSES, LAST_PASSES = 2, 5
ENOUGH = 1e-3  # a change of μ, on average, at which passes end
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
        own, words = self.documents.sum(axis=0), float((self._having > 0).sum())
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
        words, lengths = np.diff(bags.offsets).astype(np.float64), bags.sums(values)
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
    folds = [_TextFold(bags, labels, weights, shares[:, k], n_classes, others) for k in range(shares.shape[1])]
    strengths = (0.0, *STRENGTHS) if correct else (0.0,)
    settings: Sequence[Setting] = SETTINGS
    tried: dict[tuple[Setting, int], list[Reals32]] = {}
    found: dict[Setting, _Scored] = {}
    raced = len(labels) * max(n_classes, FEW_CLASSES) >= MANY_TEXTS * FEW_CLASSES and len(folds) > RACED
    with ThreadPoolExecutor(max(1, threads)) as pool:

        def done(jobs: list[tuple[Setting, int]]) -> Iterator[_Tried]:
            paths = pool.map(lambda job: folds[job[1]].path(job[0], strengths, seed), jobs)
            for k, (job, path) in enumerate(zip(jobs, paths, strict=True), 1):
                yield _Tried(len(folds[job[1]].outside), k / len(jobs), job, path)

        def try_out(jobs: list[tuple[Setting, int]]) -> None:
            for each in watched(done(jobs), "weighing words"):
                tried[each.job] = each.path
                if each.job[1] == len(folds) - 1:  # the last of its setting
                    found[each.job[0]] = _Scored.of(folds, [tried.pop((each.job[0], k)) for k in range(len(folds))])

        if raced:
            try_out([(setting, 0) for setting in settings])
            order = np.argsort([_Scored.of(folds[:1], [path]).loss for path in tried.values()], kind="stable")
            settings = [settings[k] for k in sorted(order[:RACED].tolist())]
            tried = {(setting, 0): tried[setting, 0] for setting in settings}
        try_out([(setting, k) for setting in settings for k in range(len(folds)) if (setting, k) not in tried])
    setting = min(settings, key=lambda each: found[each].loss)
    best = found[setting]
    strength = strengths[best.level]
    evidence = np.zeros((len(labels), n_classes))
    for k, fold in enumerate(folds):
        part = shares[fold.outside, k] / weights[fold.outside]
        evidence[fold.outside] += part[:, None] * (best.scores[k] - fold.counted.log_prior)
    table = np.zeros((bags.n_words + 1, n_classes), dtype=np.float32)
    if strength:
        counted = WordEvidence.of(bags, labels, weights, n_classes, others)
        table = _TextLearner(bags, labels, weights, counted, setting, threads).corrected(strength, LAST_PASSES, seed)
    curve = tuple(zip(strengths, (best.losses / weights.sum()).tolist(), strict=False))
    return LearnedTexts(setting, strength, table, curve), evidence


@dataclass
class _Tried:
    """The scores of the texts of a fold under a setting, and how much of the work is done with them."""

    n_rows: int
    share: float | None
    job: tuple[Setting, int]
    path: list[Reals32]


def one_each(labels: NDArray[np.int32]) -> _core.LabelSets:
    """Labels of texts that have one each, as sets."""
    return np.arange(len(labels) + 1), labels


@dataclass
class _Scored:
    """A setting: losses of texts held out, for all C that every fold has; the place of the best C; and its scores in folds."""

    losses: Real
    level: int
    scores: list[Reals32]

    @classmethod
    def of(cls, folds: Sequence[_TextFold], paths: Sequence[list[Reals32]]) -> _Scored:
        labels = np.concatenate([fold.labels[fold.outside] for fold in folds])
        weights = np.concatenate([fold.held_out for fold in folds])
        each = (np.concatenate([path[level] for path in paths]) for level in range(min(map(len, paths))))
        losses = np.array([_core.tempered(scores, labels, weights, RIDGE, MOST_HONEST)[0] for scores in each])
        level = int(np.argmin(losses))
        return cls(losses, level, [path[level] for path in paths])

    @property
    def loss(self) -> float:
        return float(self.losses[self.level])


def variances(bags: Bags, values: Real, says: Reals32, setting: Setting) -> Reals32:
    """How much the correction of each word, and of all texts, may vary, (words + 1, classes): of words that tell more, more."""
    squares, share = says**2, bags.squares(values)
    mean = float((share @ squares).mean()) / max(float(share.sum()), 1e-300)
    vary = np.ones((bags.n_words + 1, says.shape[1]), dtype=np.float32)
    if mean > 0:
        vary[:-1] = (1.0 - setting.telling) + np.float32(setting.telling / mean) * squares
    return vary


class _TextLearner:
    """Texts that are learned from under a setting: the scores they start from, and corrections so far."""

    def __init__(
        self, bags: Bags, labels: Any, weights: Real, counted: WordEvidence, setting: Setting, threads: int
    ) -> None:
        self.bags, self.labels, self.weights, self.counted, self.setting = bags, labels, weights, counted, setting
        values = bags.values(setting.often, counted.scale(setting.power), threads)
        if setting.left_out:
            says = counted.left_out(bags, setting, one_each(labels), threads)
        else:
            says = bags.scores(values, counted.says, threads)
        self.offsets = counted.log_prior + setting.trust * says
        n, k = self.offsets.shape
        varies = variances(bags, values, counted.says, setting)
        self.table = np.hstack([np.zeros_like(varies), varies])  # corrections, and how much each may vary
        own = bags.scores(values**2, varies[:-1], threads)
        self.values = values.astype(np.float32)
        self.own = (own + COMMON**2).astype(np.float32)
        self.mu = np.zeros((n, k), dtype=np.float32)
        self.mu[np.arange(n), labels] = 1.0
        self.strength, self.n_classes = 0.0, k

    def corrected(self, strength: float, passes: int, seed: int) -> Reals32:
        """The corrections with this C, begun from those of the one before."""
        corrections = self.table[:, : self.n_classes]
        if self.strength:
            corrections *= np.float32(strength / self.strength)
        self.strength = strength
        task = strength * self.weights, self.offsets, COMMON, self.own
        for order in shuffled(len(self.labels), passes, seed):
            if self.bags.correct(self.values, task, order, self.mu, self.table) < ENOUGH:
                break
        return np.ascontiguousarray(corrections)


class _TextFold:
    """A fold: texts to count and correct, and texts held out."""

    def __init__(
        self, bags: Bags, labels: Any, weights: Real, share: Real, n_classes: int, others: Documents | None = None
    ) -> None:
        self.inside, self.outside = np.flatnonzero(weights - share > 0), np.flatnonzero(share > 0)
        self.bags, self.labels = bags, labels
        self.weights, self.held_out = (weights - share)[self.inside], share[self.outside]
        self.n_classes, self.others = n_classes, others

    @cached_property
    def _learned(self) -> Bags:
        return self.bags.take(self.inside)

    @cached_property
    def counted(self) -> WordEvidence:
        return WordEvidence.of(self._learned, self.labels[self.inside], self.weights, self.n_classes, self.others)

    def path(self, setting: Setting, strengths: Sequence[float], seed: int) -> list[Reals32]:
        """The scores of texts held out, with corrections of each C in turn; it ends where they become worse."""
        counted = self.counted
        learner = _TextLearner(self._learned, self.labels[self.inside], self.weights, counted, setting, 1)
        tested = self.bags.take(self.outside)
        values = tested.values(setting.often, counted.scale(setting.power), 1)
        plain = counted.log_prior + setting.trust * tested.scores(values, counted.says, 1)
        scores, best, worse = [plain.astype(np.float32)], np.inf, 0
        labels = self.labels[self.outside]
        for strength in strengths[1:]:
            table = learner.corrected(strength, PASSES, seed)
            added = tested.scores(values, table[:-1], 1) + COMMON * table[-1].astype(np.float64)
            scores.append((plain + added).astype(np.float32))
            loss = _core.tempered(scores[-1], labels, self.held_out, RIDGE, MOST_HONEST)[0]
            worse = 0 if loss < best else worse + 1
            best = min(best, loss)
            if worse == 2:
                break
        return scores
