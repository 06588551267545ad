"""Weighed labels: what words and cells say of each label, corrected by what rows surprised by, for all labels in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.bags.lexicon import Bags, Lexicon
from banbury.families.family import ColumnReader, Feature, Parameters
from banbury.labels.calibration import Flags, honest_loss
from banbury.labels.cells import CellEvidence, CellWords
from banbury.labels.words import lexicon_of
from banbury.model.naive_bayes import Model
from banbury.reading import Batch
from banbury.tally.label_sets import EVERY
from banbury.tally.tally import Label, Tally
from banbury.weighing.corrections import (
    COMMON,
    LabelLearner,
    Reals32,
    Scores,
    StrengthSearch,
    WordValues,
    choose,
    least_loss,
)
from banbury.weighing.texts import Setting, WordEvidence
from banbury.weighing.words import word_scores

SETTINGS = tuple(Setting(True, 1.0, 0.5, trust) for trust in (0.125, 0.5, 0.25, 1.0))
STRENGTHS = (100.0, 300.0)  # C: how far corrections may go
OF_FEW = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)  # of fewer texts than so many, and two settings
FEW_TEXTS = 2_000
OF_TABLES = (0.3, 1.0, *OF_FEW)  # where there are cells, and all settings
PASSES = 4
LAST_PASSES = 6
FEWEST_ROWS = 100  # from which on rows are weighed and thresholds chosen
MOST_CELLS = 1 << 26  # words × labels, or rows × labels, that are weighed


class LabelEvidence(WordEvidence):
    """What words say of labels, from how many texts with each have them, (words, labels), and how many texts have them at all."""

    def __init__(self, documents: Real, texts: Real, having: Real, n_texts: float) -> None:
        super().__init__(documents, texts)
        self.having = having
        self.n_texts = n_texts

    def values(self, bags: Bags, setting: Setting, threads: int) -> Real:
        """What each word counts in its text."""
        return bags.values(setting.use_counts, self.scale(setting.idf_power), threads)

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
    def _totals(self) -> tuple[Real, Real]:
        label_totals = self.documents.sum(axis=0)
        words = float((self.having > 0).sum())
        return label_totals + words, self.having.sum() - label_totals + words


@dataclass(frozen=True)
class LabelTexts:
    """Texts with sets of labels, by column, and the cells of rows in columns that have them, (rows, columns).

    ``extra_scores`` is what other columns say of each row where it was held out.
    """

    bags: tuple[Bags, ...]
    cells: CellWords
    codes: NDArray[np.uint32]
    sets: _core.LabelSets
    weights: Real
    n_labels: int
    extra_scores: Real | None = None

    def __len__(self) -> int:
        return len(self.weights)

    def take(self, rows: Int) -> LabelTexts:
        offsets, codes = self.sets
        sizes = np.diff(offsets)[rows]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        at = np.repeat(offsets[:-1][rows] - starts[:-1], sizes) + np.arange(starts[-1])
        bags = tuple(column_bags.take(rows) for column_bags in self.bags)
        extra_scores = None if self.extra_scores is None else self.extra_scores[rows]
        sets = (starts, codes[at])
        weights = self.weights[rows]
        return LabelTexts(bags, self.cells, self.codes[rows], sets, weights, self.n_labels, extra_scores)

    @cached_property
    def flags(self) -> Flags:
        flags = np.zeros((len(self), self.n_labels), dtype=np.bool_)
        flags[np.repeat(np.arange(len(self)), np.diff(self.sets[0])), self.sets[1]] = True
        return flags

    @cached_property
    def evidence(self) -> tuple[LabelEvidence, ...]:
        """What the words of each column say."""
        return tuple(self._evidence(bags) for bags in self.bags)

    def _evidence(self, bags: Bags) -> LabelEvidence:
        once = np.arange(len(self) + 1), np.zeros(len(self), dtype=np.int32)
        documents = bags.count(self.sets, self.weights, self.n_labels)
        having = bags.count(once, self.weights, 1)
        return LabelEvidence(documents, self.n_own, having[:, 0], float(self.weights.sum()))

    @cached_property
    def n_own(self) -> Real:
        """The rows of each label."""
        pair_weights = np.repeat(self.weights, np.diff(self.sets[0]))
        return np.asarray(np.bincount(self.sets[1], pair_weights, self.n_labels), dtype=np.float64)

    @cached_property
    def log_prior(self) -> Real:
        return log_prior_odds(self.n_own, float(self.weights.sum()))

    @cached_property
    def words_of_cells(self) -> Bags:
        return self.cells.bags(self.codes)

    @cached_property
    def of_words_of_cells(self) -> LabelEvidence:
        return self._evidence(self.words_of_cells)

    @cached_property
    def of_cells(self) -> CellEvidence:
        """What cells say."""
        words = self.of_words_of_cells
        label_counts = self.cells.of_cells(words.documents)
        all_counts = self.cells.of_cells(words.having)
        return CellEvidence(self.cells, label_counts, all_counts, self.n_own, float(self.weights.sum()))


def log_prior_odds(n_own: Real, n_rows: float) -> Real:
    """log P(label) / P(not the label), as if half a row more had it and half a one had not."""
    return np.asarray(np.log((n_own + 0.5) / (n_rows - n_own + 0.5)))


def _together(every: Sequence[Bags], values: Sequence[Real]) -> tuple[Bags, Real]:
    """Several columns of texts as one, whose words are those of the first column, then of the second and so on."""
    if len(every) == 1:
        return every[0], values[0]
    firsts = np.concatenate([[0], np.cumsum([bags.n_words for bags in every])])
    rows = np.concatenate([np.repeat(np.arange(len(bags)), np.diff(bags.offsets)) for bags in every])
    words = np.concatenate([bags.words + np.uint32(first) for bags, first in zip(every, firsts, strict=False)])
    order = np.argsort(rows, kind="stable")
    offsets = np.asarray(sum(bags.offsets for bags in every), dtype=np.int64)
    times, joined = (np.concatenate(arrays)[order] for arrays in ([bags.times for bags in every], values))
    return Bags(offsets, words[order], times, every[0].hashes, int(firsts[-1])), joined


def _learner(texts: LabelTexts, setting: Setting, seed: int, threads: int) -> LabelLearner:
    """Texts that are learned from under a setting."""
    both = list(zip(texts.bags, texts.evidence, strict=True))
    values = [evidence.values(bags, setting, threads) for bags, evidence in both]
    offsets = np.tile(texts.log_prior, (len(texts), 1))
    for bags, evidence in both:
        offsets += setting.evidence_weight * evidence.leave_each_out(bags, setting, texts.sets, threads)
    if len(texts.cells):
        offsets += setting.evidence_weight * texts.of_cells.leave_each_out(texts.codes, texts.flags)
        both.append((texts.words_of_cells, texts.of_words_of_cells))
        values.append(texts.cells.values[texts.words_of_cells.words])
    if texts.extra_scores is not None:
        offsets += texts.extra_scores
    says = np.concatenate([evidence.says for _, evidence in both])
    words = WordValues.of(*_together([bags for bags, _ in both], values), says, setting.variance_by_evidence)
    return LabelLearner(words, texts.flags, offsets, texts.weights, seed, threads)


def _scores(texts: LabelTexts, learned: LabelTexts, corrections: Reals32, setting: Setting, threads: int) -> Real:
    """The log-odds of texts that were not learned from."""
    scores = np.tile(learned.log_prior + COMMON * corrections[-1].astype(np.float64), (len(texts), 1))
    start = 0
    for bags, evidence in zip(texts.bags, learned.evidence, strict=True):
        table = np.float32(setting.evidence_weight) * evidence.says + corrections[start : start + bags.n_words]
        scores += bags.scores(evidence.values(bags, setting, threads), table, threads)
        start += bags.n_words
    if len(texts.cells):
        tables = tables_of_cells(learned.of_cells, corrections[start:-1], setting)
        scores += texts.cells.scores(texts.codes, tables, threads)
    return scores if texts.extra_scores is None else scores + texts.extra_scores


def tables_of_cells(evidence: CellEvidence, corrections: Reals32, setting: Setting) -> list[Real]:
    """What the cells of each column add for each label, (cells + 1, labels): what they say, and corrections."""
    plain_and_corrections = zip(evidence.plain, evidence.words.add_up_cells(corrections), strict=True)
    return [setting.evidence_weight * says + added for says, added in plain_and_corrections]


@dataclass(frozen=True)
class LearnedLabels:
    """The setting and C that lose least, the corrections, and the log-odds of each text by what other folds taught."""

    setting: Setting
    strength: float
    corrections: Reals32
    scores: Real
    losses: tuple[tuple[float, float], ...]


class _LabelFold:
    """Texts to learn from, and texts held out."""

    def __init__(self, texts: LabelTexts, outside: Flags, seed: int) -> None:
        self.inside, self.outside = texts.take(np.flatnonzero(~outside)), texts.take(np.flatnonzero(outside))
        self.truth, self.held_out, self.seed = self.outside.flags, self.outside.weights, seed

    def correct(self, setting: Setting) -> Scores:
        learner = _learner(self.inside, setting, self.seed, 1)

        def scores(strength: float) -> Reals32:
            learner.improve(strength, PASSES)
            return _scores(self.outside, self.inside, learner.corrections(), setting, 1).astype(np.float32)

        return scores


def learn_labels(texts: LabelTexts, folds: Int, seed: int, threads: int) -> LearnedLabels:
    """What is learned of texts with sets of labels.

    Of few texts, and of tables, the setting is the one that loses least on the first fold, of many texts the first. C is that
    whose log-odds lose least on all texts held out, of many texts on those of the first fold, when two numbers make them honest.
    """
    is_few = len(texts) < FEW_TEXTS
    strengths: Sequence[float] = OF_FEW if is_few else STRENGTHS
    settings = SETTINGS[:2] if is_few else SETTINGS[:1]
    if len(texts.cells):
        strengths = OF_TABLES
        settings = SETTINGS
    search = StrengthSearch(strengths, honest_loss, patience=1)
    every = np.unique(folds).tolist()
    is_many = not is_few and not len(texts.cells)
    trials = [_LabelFold(texts, folds == fold, seed) for fold in every]
    setting, steps = choose(trials, settings, search, 1, threads, settle=is_many)
    best = least_loss(steps)
    scores = np.zeros((len(texts), texts.n_labels))
    for fold, of_fold in zip(every, best.scores, strict=True):
        scores[folds == fold] = of_fold
    learner = _learner(texts, setting, seed, threads)
    learner.improve(best.strength, LAST_PASSES)
    losses = tuple((step.strength, step.loss) for step in steps)
    return LearnedLabels(setting, best.strength, learner.corrections(), scores, losses)


@dataclass(frozen=True, eq=False)
class LabelWeighing:
    """What was learned of rows with sets of labels: corrections of words, with the digest of the tally they were counted into.

    ``words`` are those of each column of texts, and ``cells`` are of the columns that are no texts.

    ``corrections`` are (all words of all columns of texts + words of cells + 1, labels); the last row is what all rows have in
    common.
    """

    labels: tuple[Label, ...]
    columns: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    setting: Setting
    strength: float
    corrections: Reals32
    digest: str
    losses: tuple[tuple[float, float], ...]
    cells: CellWords

    def is_stale(self, tally: Tally) -> bool:
        """Whether rows were learned or forgotten since."""
        return tally.digest() != self.digest

    def __str__(self) -> str:
        parts = [errors.many(sum(map(len, self.words)), "word")] * bool(self.columns)
        parts += [errors.many(len(self.cells.cells), "column")] * bool(self.cells.cells)
        return f"{' and '.join(parts)} × {errors.many(len(self.labels), 'label')}, corrected with C = {self.strength:g}"

    __repr__ = __str__

    def of(self, lexicon: Lexicon, column: int, labels: Sequence[Label]) -> Reals32:
        """The corrections of a column's words as they are now, (words, labels); nothing of what is new."""
        start = sum(len(words) for words in self.words[:column])
        corrections = self._of_labels(slice(start, start + len(self.words[column])), labels)
        table = np.zeros((len(lexicon), len(labels)), dtype=np.float32)
        table[lexicon.places(self.words[column])] = corrections
        return table

    def of_cells(self, labels: Sequence[Label]) -> Reals32:
        """The corrections of the words of cells, likewise."""
        return self._of_labels(slice(-1 - len(self.cells), -1), labels)

    def common(self, labels: Sequence[Label]) -> Real:
        return np.asarray(COMMON * self._of_labels(slice(-1, None), labels)[0].astype(np.float64))

    def _of_labels(self, rows: slice, labels: Sequence[Label]) -> Reals32:
        """Some rows of the corrections for these labels; nothing of labels that are new."""
        if tuple(labels) == self.labels:
            return self.corrections[rows]
        place = {label: k for k, label in enumerate(self.labels)}
        at = np.array([place.get(label, -1) for label in labels], dtype=np.int64)
        some = self.corrections[rows]
        table = np.zeros((len(some), len(labels)), dtype=np.float32)
        table[:, at >= 0] = some[:, at[at >= 0]]
        return table

    def without_forgotten(self, tally: Tally) -> LabelWeighing:
        """The same without corrections of words, values and labels that no row of the tally has any more."""
        every = tally.classes.index(EVERY)
        stays = []
        for name, words in zip(self.columns, self.words, strict=True):
            there = set(lexicon_of(tally.schema[name], tally.of(name), every).words)
            stays.append(np.array([word in there for word in words], dtype=np.bool_))
        cells, of_cells = self.cells.without_forgotten(tally)
        rows = np.concatenate([*stays, of_cells, [True]])
        labels = tuple(label for label in self.labels if label in set(tally.classes))
        if labels == self.labels and rows.all():
            return self
        used = tuple(tuple(compress(words, some)) for words, some in zip(self.words, stays, strict=True))
        corrections = self._of_labels(slice(None), labels)[rows]
        return replace(self, labels=labels, words=used, cells=cells, corrections=corrections)


class LabelTables:
    """A tally's columns under what was learned of them: they score rows, and explain them label by label."""

    def __init__(self, tally: Tally, labels: Sequence[Label], weighing: LabelWeighing) -> None:
        self.tally, self.labels, self.weighing = tally, tuple(labels), weighing
        self.every = tally.classes.index(EVERY)
        place = {label: c for c, label in enumerate(tally.classes)}
        self.at = np.array([place[label] for label in labels], dtype=np.int64)
        self.features = tuple(tally.schema[name] for name in weighing.columns)
        self.lexicons = tuple(lexicon_of(f, tally.of(f.name), self.every) for f in self.features)
        self.evidence = tuple(self._evidence(lexicon) for lexicon in self.lexicons)
        trust = np.float32(weighing.setting.evidence_weight)
        self.tables = tuple(
            trust * evidence.says + weighing.of(lexicon, k, labels)
            for k, (evidence, lexicon) in enumerate(zip(self.evidence, self.lexicons, strict=True))
        )
        n_own = tally.rows.value[self.at]
        n_rows = float(tally.rows.value[self.every])
        self.log_prior = log_prior_odds(n_own, n_rows) + weighing.common(labels)
        self.counts = weighing.cells.counts(tally)
        for counts, name in zip(self.counts, weighing.cells.names, strict=True):
            self._check(counts, name)
        mine, every = ([cell_counts[:, at] for cell_counts in self.counts] for at in (self.at, self.every))
        cells = CellEvidence(weighing.cells, mine, every, n_own, n_rows)
        self.of_cells = tables_of_cells(cells, weighing.of_cells(labels), weighing.setting) if self.counts else []

    @cached_property
    def stale(self) -> bool:
        """Whether rows were learned or forgotten since."""
        return self.weighing.is_stale(self.tally)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are weighed."""
        return *self.weighing.columns, *self.weighing.cells.names

    def _evidence(self, lexicon: Lexicon) -> LabelEvidence:
        table = self.tally.of(lexicon.feature.name).table
        starts, classes, _, documents = table.pairs(lexicon.used.ids, np.arange(table.n_classes, dtype=np.int64))
        cells = np.zeros((len(lexicon), table.n_classes))
        cells[np.repeat(np.arange(len(lexicon)), np.diff(starts)), classes] = documents
        self._check(cells, lexicon.feature.name)
        rows = self.tally.rows.value
        label_counts = np.ascontiguousarray(cells[:, self.at])
        return LabelEvidence(label_counts, rows[self.at], cells[:, self.every].copy(), float(rows[self.every]))

    def _check(self, documents: Real, name: str) -> None:
        """Raises where more rows of a word or cell have a label than there are."""
        if (more := (documents[:, self.at] > documents[:, [self.every]]).any(axis=0)).any():
            raise errors.impossible_sums(self.labels[int(np.argmax(more))], name)

    def scores(self, rows: ColumnReader, threads: int) -> Real:
        """What the words and cells of rows say of each label, (rows, labels)."""
        scores = np.zeros((rows.n_rows, len(self.labels)))
        setting = self.weighing.setting
        for table, evidence, lexicon in zip(self.tables, self.evidence, self.lexicons, strict=True):
            bags = lexicon.bags(rows, self.tally.of(lexicon.feature.name), threads)
            scores += bags.scores(evidence.values(bags, setting, threads), table, threads)
        cells = self.weighing.cells
        return scores + cells.scores(cells.codes(rows, threads), self.of_cells, threads) if self.of_cells else scores

    def parameters(self, label: Label, plain: Model) -> tuple[Parameters, ...]:
        """Of one label, what all columns say for and against it; ``plain`` has those that are not weighed."""
        parameters = list[Parameters]()
        for group in plain.parameters:
            kept = [f for f, feature in enumerate(group.features) if feature.name not in self.names]
            if kept:
                parameters.append(group if len(kept) == len(group.features) else group.select(kept))
        parameters += [self._of_words(label, plain.tally.of(f.name), f) for f in self.features]
        if self.of_cells:
            k = self.labels.index(label)
            tables = [np.stack([np.zeros(len(scores)), scores[:, k]], axis=1) for scores in self.of_cells]
            counts = [
                np.stack([rows[:, self.every] - rows[:, self.at[k]], rows[:, self.at[k]]], 1) for rows in self.counts
            ]
            parameters.append(self.weighing.cells.parameters(tables, counts))
        return tuple(parameters)

    def _of_words(self, label: Label, sums: Any, feature: Feature) -> Parameters:
        column = self.weighing.columns.index(feature.name)
        k = self.labels.index(label)
        setting = self.weighing.setting
        evidence = self.evidence[column]
        lexicon = Lexicon.of(feature, sums)
        table = np.stack([np.zeros(len(lexicon), dtype=np.float32), self.tables[column][:, k]], axis=1)
        documents = np.stack([evidence.having - evidence.documents[:, k], evidence.documents[:, k]], axis=1)
        texts = np.array([evidence.n_texts - evidence.texts[k], evidence.texts[k]])
        return word_scores(
            lexicon, sums, evidence.scale(setting.idf_power), table, setting.use_counts, documents, texts
        )


def words_of(tally: Tally) -> tuple[tuple[str, ...], CellWords]:
    """What can be weighed for sets of labels: columns of texts, and columns that have cells."""
    features = tally.schema.features
    texts = tuple(f.name for f in features if f.counter.words)
    return texts, CellWords.of(tally)


def can_weigh(tally: Tally, n_rows: int) -> bool:
    """Whether there is something to weigh, and not too much of it."""
    texts, cells = words_of(tally)
    words = sum(int(tally.of(name).table.n_words) for name in texts) + len(cells)
    return words > 0 and max(words, n_rows) * len(tally.classes) <= MOST_CELLS


def bags_of(tally: Tally, names: Sequence[str], batches: Sequence[Batch], threads: int) -> tuple[Bags, ...]:
    """The texts of rows, by column."""
    every = tally.classes.index(EVERY)
    bags = []
    for name in names:
        lexicon = lexicon_of(tally.schema[name], tally.of(name), every)
        bags.append(Bags.together([lexicon.bags(batch, tally.of(name), threads) for batch in batches]))
    return tuple(bags)
