"""Weighed labels: what words say of each label, corrected by what texts surprised by; one pass over the texts for all labels."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.distributions.bags import Bags, Lexicon
from banbury.distributions.family import ColumnReader, Feature, Parameters
from banbury.label_sets import EVERY
from banbury.labels.thresholds import Flags, honest_loss
from banbury.labels.words import lexicon_of
from banbury.readers import Batch
from banbury.tally import Label, Tally
from banbury.weighing.texts import COMMON, ENOUGH, Reals32, Setting, WordEvidence

SETTINGS = tuple(Setting(True, 1.0, 0.5, trust) for trust in (0.125, 0.5))
STRENGTHS = (100.0, 300.0)  # C: how far corrections may go
OF_FEW, FEW_TEXTS = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0), 2_000  # of fewer texts than so many, and both settings
PASSES, LAST_PASSES = 4, 6
MOST_CELLS = 1 << 26  # words × labels, or rows × labels, that are weighed


class LabelEvidence(WordEvidence):
    """What words say of labels, from how many texts with each have them, (words, labels), and how many texts have them at all."""

    def __init__(self, documents: Real, texts: Real, having: Real, n_texts: float) -> None:
        super().__init__(documents, texts)
        self.having, self.n_texts = having, n_texts

    @property
    def _having(self) -> Real:
        return self.having

    @property
    def _halved(self) -> float:
        return 1.0

    @property
    def _every_text(self) -> float:
        return self.n_texts

    @cached_property
    def log_prior(self) -> Real:
        """log P(label) / P(not the label), as if half a text more had it and half a one had not."""
        return np.asarray(np.log((self.texts + 0.5) / (self.n_texts - self.texts + 0.5)))

    @cached_property
    def _totals(self) -> tuple[Real, Real]:
        own, words = self.documents.sum(axis=0), float((self.having > 0).sum())
        return own + words, self.having.sum() - own + words

    def left_out_sets(self, bags: Bags, setting: Setting, sets: _core.LabelSets, threads: int) -> Real:
        """What the words of each text say of each label when that text was not counted, (texts, labels)."""
        values = bags.values(setting.often, self.scale(setting.power, alone=False), threads)
        says = _core.left_out_bags(bags.parts, values, sets, *self._without, threads)
        words, lengths = np.diff(bags.offsets).astype(np.float64), bags.sums(values)
        alone = bags.sums(self.having[bags.words] <= 1.0)
        mine, others = (each - alone[:, None] for each in self._totals)
        at = np.repeat(np.arange(len(bags)), np.diff(sets[0])), sets[1]
        kept = others[at].copy()
        others -= words[:, None]
        others[at] = kept
        mine[at] -= words[at[0]]
        says += lengths[:, None] * np.log(np.maximum(others, 1.0) / np.maximum(mine, 1.0))
        return np.asarray(says)


@dataclass(frozen=True)
class LabelTexts:
    """Texts with sets of labels, by column; ``given`` is what other columns say of each row where it was held out."""

    bags: tuple[Bags, ...]
    sets: _core.LabelSets
    weights: Real
    n_labels: int
    given: Real | None = None

    def __len__(self) -> int:
        return len(self.weights)

    def take(self, rows: Int) -> LabelTexts:
        offsets, codes = self.sets
        sizes = np.diff(offsets)[rows]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        at = np.repeat(offsets[:-1][rows] - starts[:-1], sizes) + np.arange(starts[-1])
        bags = tuple(each.take(rows) for each in self.bags)
        given = None if self.given is None else self.given[rows]
        return LabelTexts(bags, (starts, codes[at]), self.weights[rows], self.n_labels, given)

    @cached_property
    def flags(self) -> Flags:
        flags = np.zeros((len(self), self.n_labels), dtype=np.bool_)
        flags[np.repeat(np.arange(len(self)), np.diff(self.sets[0])), self.sets[1]] = True
        return flags

    @cached_property
    def evidence(self) -> tuple[LabelEvidence, ...]:
        """What the words of each column say."""
        once = np.arange(len(self) + 1), np.zeros(len(self), dtype=np.int32)
        texts = np.bincount(self.sets[1], np.repeat(self.weights, np.diff(self.sets[0])), self.n_labels)
        return tuple(
            LabelEvidence(
                bags.count(self.sets, self.weights, self.n_labels),
                np.asarray(texts, dtype=np.float64),
                bags.count(once, self.weights, 1)[:, 0],
                float(self.weights.sum()),
            )
            for bags in self.bags
        )


def _together(every: Sequence[Bags], values: Sequence[Reals32]) -> tuple[Bags, Reals32]:
    """Several columns of texts as one, whose words are those of the first column, then of the second and so on."""
    if len(every) == 1:
        return every[0], values[0]
    firsts = np.concatenate([[0], np.cumsum([bags.n_words for bags in every])])
    rows = np.concatenate([np.repeat(np.arange(len(bags)), np.diff(bags.offsets)) for bags in every])
    words = np.concatenate([bags.words + np.uint32(first) for bags, first in zip(every, firsts, strict=False)])
    order = np.argsort(rows, kind="stable")
    offsets = np.asarray(sum(bags.offsets for bags in every), dtype=np.int64)
    times, joined = (np.concatenate(each)[order] for each in ([bags.times for bags in every], values))
    return Bags(offsets, words[order], times, every[0].hashes, int(firsts[-1])), joined


class _Learner:
    """Texts that are learned from: the scores they start from, and corrections so far."""

    def __init__(self, texts: LabelTexts, setting: Setting, threads: int) -> None:
        self.texts, k = texts, texts.n_labels
        both = list(zip(texts.bags, texts.evidence, strict=True))
        values = [bags.values(setting.often, evidence.scale(setting.power), threads) for bags, evidence in both]
        says = [setting.trust * evidence.left_out_sets(bags, setting, texts.sets, threads) for bags, evidence in both]
        self.offsets = texts.evidence[0].log_prior + sum(says)
        if texts.given is not None:
            self.offsets += texts.given
        self.bags, self.values = _together(texts.bags, values)
        squares = np.concatenate([evidence.says for evidence in texts.evidence]) ** 2
        share = np.bincount(self.bags.words, self.values.astype(np.float64) ** 2, self.bags.n_words)
        mean = float((share @ squares).mean()) / max(float(share.sum()), 1e-300)
        self.table = np.ones(
            (self.bags.n_words + 1, 2 * k), dtype=np.float32
        )  # corrections, and how much each may vary
        self.table[:, :k] = 0.0
        if mean > 0:
            self.table[:-1, k:] = (1.0 - setting.telling) + np.float32(setting.telling / mean) * squares
        vary = np.ascontiguousarray(self.table[:-1, k:])
        self.own = (_core.score_bags(self.bags.parts, self.values**2, vary, threads) + COMMON**2).astype(np.float32)
        self.mu = texts.flags.astype(np.float32)
        self.strength, self.n_labels = 0.0, k

    def corrected(self, strength: float, passes: int, seed: int) -> Reals32:
        """The corrections with this C, begun from those of the one before."""
        corrections = self.table[:, : self.n_labels]
        if self.strength:
            corrections *= np.float32(strength / self.strength)
        self.strength = strength
        rng = np.random.default_rng(seed)
        for _ in range(passes):
            order = [rng.permutation(len(self.texts)).astype(np.uint32)]
            strengths = strength * self.texts.weights
            rest = self.offsets, COMMON, self.own, order, self.mu, self.table, True
            moved = _core.correct_bags(self.bags.parts, self.values, strengths, *rest)
            if moved < ENOUGH:
                break
        return np.ascontiguousarray(corrections)


class WeighedColumn:
    """A column of texts as it is scored: what words say of each label with their corrections, and how much each counts."""

    def __init__(self, evidence: LabelEvidence, corrections: Reals32, setting: Setting) -> None:
        self.often, self.scale = setting.often, evidence.scale(setting.power)
        self.table = np.float32(setting.trust) * evidence.says + corrections

    def scores(self, bags: Bags, threads: int) -> Real:
        values = bags.values(self.often, self.scale, threads)
        return _core.score_bags(bags.parts, values, self.table, threads)


def _scores(
    texts: LabelTexts, learned: Sequence[LabelEvidence], corrections: Reals32, setting: Setting, threads: int
) -> Real:
    """The log-odds of texts that were not learned from."""
    scores = learned[0].log_prior + COMMON * corrections[-1].astype(np.float64)
    scores = np.tile(scores, (len(texts), 1))
    start = 0
    for bags, evidence in zip(texts.bags, learned, strict=True):
        column = WeighedColumn(evidence, corrections[start : start + bags.n_words], setting)
        scores += column.scores(bags, threads)
        start += bags.n_words
    return scores if texts.given is None else scores + texts.given


@dataclass(frozen=True)
class LearnedLabels:
    """The setting and C that lose least, the corrections, and the log-odds of each text by what other folds taught."""

    setting: Setting
    strength: float
    corrections: Reals32
    scores: Real
    losses: tuple[tuple[float, float], ...]


class _Fold:
    """Texts to learn from, and texts held out."""

    def __init__(self, texts: LabelTexts, outside: Flags) -> None:
        self.inside, self.outside = texts.take(np.flatnonzero(~outside)), texts.take(np.flatnonzero(outside))

    def path(self, setting: Setting, strengths: Sequence[float], seed: int) -> list[tuple[float, Reals32]]:
        """The loss and the log-odds of texts held out, with corrections of each C in turn; it ends where they become worse."""
        learner, found = _Learner(self.inside, setting, 1), list[tuple[float, Reals32]]()
        for strength in strengths:
            corrections = learner.corrected(strength, PASSES, seed)
            scores = _scores(self.outside, self.inside.evidence, corrections, setting, 1)
            loss = honest_loss(scores, self.outside.flags, self.outside.weights)
            found.append((loss, scores.astype(np.float32)))
            if len(found) > 1 and loss > found[-2][0]:
                break
        return found


def learned_labels(texts: LabelTexts, folds: Int, seed: int, threads: int) -> LearnedLabels:
    """What is learned of texts with sets of labels.

    Of few texts the setting is the one that loses least on the first fold, of many the first. C is that whose log-odds lose
    least on all texts held out, when two numbers make them honest.
    """
    strengths, settings = (OF_FEW, SETTINGS) if len(texts) < FEW_TEXTS else (STRENGTHS, SETTINGS[:1])
    every = [_Fold(texts, folds == fold) for fold in np.unique(folds).tolist()]
    with ThreadPoolExecutor(max(1, threads)) as pool:
        raced = list(pool.map(lambda setting: every[0].path(setting, strengths, seed), settings))
        best = int(np.argmin([min(loss for loss, _ in path) for path in raced]))
        setting = settings[best]
        paths = [raced[best], *pool.map(lambda fold: fold.path(setting, strengths, seed), every[1:])]
    tried = []
    for level in range(min(map(len, paths))):
        scores = np.zeros((len(texts), texts.n_labels))
        for fold, path in zip(np.unique(folds).tolist(), paths, strict=True):
            scores[folds == fold] = path[level][1]
        tried.append((honest_loss(scores, texts.flags, texts.weights), scores))
    at = int(np.argmin([loss for loss, _ in tried]))
    corrections = _Learner(texts, setting, threads).corrected(strengths[at], LAST_PASSES, seed)
    losses = tuple((strength, loss) for strength, (loss, _) in zip(strengths, tried, strict=False))
    return LearnedLabels(setting, strengths[at], corrections, tried[at][1], losses)


@dataclass(frozen=True, eq=False)
class LabelWeighing:
    """What was learned of rows with sets of labels: corrections of words, with the digest of the tally they were counted into.

    ``corrections`` are (all words of all columns of texts + 1, labels); the last row is what all texts have in common.
    """

    labels: tuple[Label, ...]
    columns: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    setting: Setting
    strength: float
    corrections: Reals32
    digest: str
    losses: tuple[tuple[float, float], ...] = ()

    def is_stale(self, tally: Tally) -> bool:
        """Whether rows were learned or forgotten since."""
        return tally.digest() != self.digest

    def __str__(self) -> str:
        words = sum(map(len, self.words))
        return f"{errors.many(words, 'word')} × {errors.many(len(self.labels), 'label')}, corrected with C = {self.strength:g}"

    __repr__ = __str__

    def of(self, lexicon: Lexicon, column: int, labels: Sequence[Label], stale: bool) -> Reals32:
        """The corrections of a column's words as they are now, (words, labels); nothing of what is new."""
        start = sum(len(words) for words in self.words[:column])
        own = self.corrections[start : start + len(self.words[column])]
        if tuple(labels) != self.labels:
            own = _of_labels(own, self.labels, labels)
        if not stale:
            return own
        place = lexicon.places(self.words[column])
        table = np.zeros((len(lexicon), len(labels)), dtype=np.float32)
        table[place[place >= 0]] = own[place >= 0]
        return table

    def common(self, labels: Sequence[Label]) -> Real:
        own = self.corrections[-1:].astype(np.float64)
        return np.asarray(COMMON * _of_labels(own, self.labels, labels)[0])

    def kept(self, tally: Tally) -> LabelWeighing:
        """The same without corrections of words and labels that no row of the tally has any more."""
        every = tally.classes.index(EVERY)
        words, parts, start = [], [], 0
        for name, own in zip(self.columns, self.words, strict=True):
            there = set(lexicon_of(tally.schema[name], tally.of(name), every).words)
            at = [k for k, word in enumerate(own) if word in there]
            words.append(tuple(own[k] for k in at))
            parts.append(self.corrections[start : start + len(own)][at])
            start += len(own)
        labels = tuple(label for label in self.labels if label in set(tally.classes))
        corrections = np.concatenate([*parts, self.corrections[-1:]])
        corrections = _of_labels(corrections, self.labels, labels)
        return replace(self, labels=labels, words=tuple(words), corrections=corrections)


def _of_labels(table: Any, old: Sequence[Label], new: Sequence[Label]) -> Any:
    place = {label: k for k, label in enumerate(old)}
    at = np.array([place.get(label, -1) for label in new], dtype=np.int64)
    return np.where(at >= 0, table[:, at], 0).astype(table.dtype)


class WeighedLabels:
    """A tally's columns of texts under what was learned of them: they score rows, and explain them label by label."""

    def __init__(self, tally: Tally, labels: Sequence[Label], weighing: LabelWeighing) -> None:
        self.tally, self.labels, self.weighing = tally, tuple(labels), weighing
        self.stale = weighing.is_stale(tally)
        self.every = tally.classes.index(EVERY)
        self.features = tuple(tally.schema[name] for name in weighing.columns)
        self.lexicons = tuple(lexicon_of(f, tally.of(f.name), self.every) for f in self.features)
        self.evidence = tuple(self._evidence(lexicon) for lexicon in self.lexicons)
        self.columns = tuple(
            WeighedColumn(evidence, weighing.of(lexicon, k, labels, self.stale), weighing.setting)
            for k, (evidence, lexicon) in enumerate(zip(self.evidence, self.lexicons, strict=True))
        )
        self.log_prior = self._evidence_of_rows().log_prior + weighing.common(labels)

    def _evidence_of_rows(self) -> LabelEvidence:
        return self.evidence[0]

    def _evidence(self, lexicon: Lexicon) -> LabelEvidence:
        table = self.tally.of(lexicon.feature.name).table
        place = {label: c for c, label in enumerate(self.tally.classes)}
        at = np.array([place[label] for label in self.labels], dtype=np.int64)
        index = np.full(table.n_classes, -1, dtype=np.int64)
        index[at] = np.arange(len(at))
        index[self.every] = len(at)
        starts, classes, _, documents = table.pairs(lexicon.used.ids, index)
        cells = np.zeros((len(lexicon), len(at) + 1))
        cells[np.repeat(np.arange(len(lexicon)), np.diff(starts)), classes] = documents
        rows = self.tally.rows.value
        if (more := (cells[:, :-1] > cells[:, -1:]).any(axis=0)).any():
            raise errors.impossible_sums(self.labels[int(np.argmax(more))], lexicon.feature.name)
        return LabelEvidence(
            np.ascontiguousarray(cells[:, :-1]), rows[at], cells[:, -1].copy(), float(rows[self.every])
        )

    def scores(self, rows: ColumnReader, threads: int) -> Real:
        """What the words of rows say of each label, (rows, labels)."""
        scores = np.zeros((rows.n_rows, len(self.labels)))
        for column, lexicon in zip(self.columns, self.lexicons, strict=True):
            scores += column.scores(lexicon.bags(rows, self.tally.of(lexicon.feature.name), threads), threads)
        return scores

    def parameters(self, label: Label, sums: Any, feature: Feature) -> Parameters:
        """Of one label, what words say for and against it."""
        column = self.weighing.columns.index(feature.name)
        own, k, evidence = self.columns[column], self.labels.index(label), self.evidence[column]
        lexicon = Lexicon.of(feature, sums)
        table = np.stack([np.zeros(len(lexicon), dtype=np.float32), own.table[:, k]], axis=1)
        documents = np.stack([evidence.having - evidence.documents[:, k], evidence.documents[:, k]], axis=1)
        texts = np.array([evidence.n_texts - evidence.texts[k], evidence.texts[k]])
        found: Parameters = feature.family.weighed_words(lexicon, own.scale, table, own.often, documents, texts)
        return found


def bags_of(tally: Tally, names: Sequence[str], batches: Sequence[Batch], threads: int) -> tuple[Bags, ...]:
    """The texts of rows, by column."""
    every = tally.classes.index(EVERY)
    found = []
    for name in names:
        lexicon = lexicon_of(tally.schema[name], tally.of(name), every)
        found.append(Bags.together([lexicon.bags(batch, tally.of(name), threads) for batch in batches]))
    return tuple(found)
