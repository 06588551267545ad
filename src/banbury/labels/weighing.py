"""Weighed evidence of multi-label models: counted evidence of words and cells, plus corrections learned from rows."""

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
from banbury.families.family import ColumnReader, Parameters
from banbury.labels.calibration import Flags, honest_loss
from banbury.labels.cells import CellEvidence, CellWords
from banbury.labels.words import lexicon_of
from banbury.model.naive_bayes import Model
from banbury.reading import Batch
from banbury.tally.label_sets import EVERY
from banbury.tally.tally import Label, Tally
from banbury.weighing.corrections import (
    COMMON_WORD_VALUE,
    LabelLearner,
    Reals32,
    ScoreByStrength,
    StrengthSearch,
    WordValues,
    choose,
    least_loss,
)
from banbury.weighing.texts import Setting, WordEvidence
from banbury.weighing.words import word_scores

SETTINGS = tuple(
    Setting(use_counts=True, idf_power=1.0, variance_by_evidence=0.5, evidence_weight=evidence_weight)
    for evidence_weight in (0.125, 0.5, 0.25, 1.0)
)
STRENGTHS = (100.0, 300.0)  # values of C to try: how far corrections may go
STRENGTHS_OF_FEW_TEXTS = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)  # for fewer than FEW_TEXTS texts, with two settings
FEW_TEXTS = 2_000
STRENGTHS_OF_TABLES = (0.3, 1.0, *STRENGTHS_OF_FEW_TEXTS)  # if columns have cells, with all settings
PASSES = 4  # over the rows, for each C that is tried
LAST_PASSES = 6  # over the rows, for the chosen C
FEWEST_ROWS = 100  # with fewer, evidence is not weighed and thresholds are not chosen
MOST_CELLS = 1 << 26  # words × labels, or rows × labels: with more, evidence cannot be weighed


@dataclass(frozen=True)
class LabelRows:
    """Rows with sets of labels: their texts, by column, and their cell numbers in columns that have cells.

    ``codes`` are the cell numbers (rows × columns), and ``weights`` has one number per row. ``extra_scores`` is what
    all other columns add to the log-odds of each row (rows × labels), from models that left the row out.
    """

    bags: tuple[Bags, ...]  # the words of the rows, one per text column
    cells: CellWords  # the columns that have cells
    codes: NDArray[np.uint32]  # the cell numbers (rows, columns)
    sets: _core.LabelSets  # where each row's labels start (rows + 1,), and the label numbers
    weights: Real  # (rows,)
    n_labels: int
    extra_scores: Real | None = None  # (rows, labels)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.weights)

    def take(self, row_numbers: Int) -> LabelRows:
        """Returns the rows with these numbers, in this order."""
        offsets, label_codes = self.sets  # where each row's labels start (rows + 1,), and the label numbers
        n_row_labels = np.diff(offsets)[row_numbers]  # the number of labels of each row
        new_offsets = np.concatenate([[0], np.cumsum(n_row_labels)]).astype(np.int64)
        # How far the labels of each row move from where they are to where they will be.
        shifts = np.repeat(offsets[:-1][row_numbers] - new_offsets[:-1], n_row_labels)
        code_positions = shifts + np.arange(new_offsets[-1])  # where the labels of these rows are in ``label_codes``
        bags = tuple(column_bags.take(row_numbers) for column_bags in self.bags)
        extra_scores = None if self.extra_scores is None else self.extra_scores[row_numbers]
        sets = (new_offsets, label_codes[code_positions])
        weights = self.weights[row_numbers]
        return LabelRows(bags, self.cells, self.codes[row_numbers], sets, weights, self.n_labels, extra_scores)

    @cached_property
    def flags(self) -> Flags:
        """Whether each row has each label (rows × labels)."""
        offsets, label_codes = self.sets  # where each row's labels start (rows + 1,), and the label numbers
        flags = np.zeros((len(self), self.n_labels), dtype=np.bool_)
        flags[np.repeat(np.arange(len(self)), np.diff(offsets)), label_codes] = True
        return flags

    @cached_property
    def evidence(self) -> tuple[WordEvidence, ...]:
        """The evidence of the words of each text column, from the counts of these rows."""
        return tuple(self._evidence(bags) for bags in self.bags)

    def _evidence(self, bags: Bags) -> WordEvidence:
        """Returns the evidence of the words in ``bags``, the words of these rows in one column."""
        one_class_each = np.arange(len(self) + 1), np.zeros(len(self), dtype=np.int32)  # sets with label 0 alone
        documents = bags.count(self.sets, self.weights, self.n_labels)  # rows that have each word (words × labels)
        texts_with_word = bags.count(one_class_each, self.weights, 1)[:, 0]  # (words,)
        return WordEvidence(documents, self.rows_by_label, texts_with_word, float(self.weights.sum()))

    @cached_property
    def rows_by_label(self) -> Real:
        """The number of rows with each label (labels,)."""
        offsets, label_codes = self.sets  # where each row's labels start (rows + 1,), and the label numbers
        pair_weights = np.repeat(self.weights, np.diff(offsets))  # of each pair of row and label
        return np.asarray(np.bincount(label_codes, pair_weights, self.n_labels), dtype=np.float64)

    @cached_property
    def log_prior(self) -> Real:
        """The log prior odds of each label (labels,)."""
        return log_prior_odds(self.rows_by_label, float(self.weights.sum()))

    @cached_property
    def words_of_cells(self) -> Bags:
        """The words that stand for the cells of each row."""
        return self.cells.bags(self.codes)

    @cached_property
    def evidence_of_cell_words(self) -> WordEvidence:
        """The evidence of the words that stand for cells."""
        return self._evidence(self.words_of_cells)

    @cached_property
    def evidence_of_cells(self) -> CellEvidence:
        """The evidence of the cells of each column, from the counts of the words that stand for them."""
        word_evidence = self.evidence_of_cell_words  # ``documents`` has the rows with each word (words × labels)
        label_counts = self.cells.of_cells(word_evidence.documents)  # rows of each column's cells (cells × labels)
        all_counts = self.cells.of_cells(word_evidence.texts_with_word)  # (cells,)
        return CellEvidence(self.cells, label_counts, all_counts, self.rows_by_label, float(self.weights.sum()))


def log_prior_odds(rows_by_label: Real, n_rows: float) -> Real:
    """Returns log P(label) / P(not the label) for each label (labels,), from the number of rows with it and of all
    rows, with half a row added with the label and half a row without it.
    """
    return np.asarray(np.log((rows_by_label + 0.5) / (n_rows - rows_by_label + 0.5)))


def _join_columns(column_bags: Sequence[Bags], column_values: Sequence[Real]) -> tuple[Bags, Real]:
    """Joins the words of the same rows in several columns. Words are numbered through: those of the first column, then
    of the second and so on.

    ``column_values`` is what each word of each row counts, by column. Returns the joined bags and what each of their
    words counts, row by row.
    """
    if len(column_bags) == 1:
        return column_bags[0], column_values[0]
    first_words = np.concatenate([[0], np.cumsum([bags.n_words for bags in column_bags])])  # of each column
    # The row of each word, column by column.
    row_numbers = np.concatenate([np.repeat(np.arange(len(bags)), np.diff(bags.offsets)) for bags in column_bags])
    words = np.concatenate(
        [bags.words + np.uint32(first) for bags, first in zip(column_bags, first_words, strict=False)]
    )
    order = np.argsort(row_numbers, kind="stable")  # row by row, in each row column by column
    offsets = np.asarray(sum(bags.offsets for bags in column_bags), dtype=np.int64)
    times = np.concatenate([bags.times for bags in column_bags])[order]
    joined_values = np.concatenate(column_values)[order]
    return Bags(offsets, words[order], times, column_bags[0].hashes, int(first_words[-1])), joined_values


def _learner(texts: LabelRows, setting: Setting, seed: int, threads: int) -> LabelLearner:
    """Returns a learner of corrections for the rows ``texts``. It starts from the log-odds of each row by the counted
    evidence of all other rows.

    ``setting`` says how words count, ``seed`` decides the order in which rows are visited, and ``threads`` says how
    many to use.
    """
    bags_and_evidence = list(zip(texts.bags, texts.evidence, strict=True))  # of each text column, then of the cells
    # What each word of each row counts, an array for each column.
    word_values = [evidence.values(bags, setting, threads) for bags, evidence in bags_and_evidence]
    log_odds = np.tile(texts.log_prior, (len(texts), 1))  # rows × labels
    for bags, evidence in bags_and_evidence:
        log_odds += setting.evidence_weight * evidence.leave_each_out(bags, setting, texts.sets, threads)
    if len(texts.cells):
        log_odds += setting.evidence_weight * texts.evidence_of_cells.leave_each_out(texts.codes, texts.flags)
        bags_and_evidence.append((texts.words_of_cells, texts.evidence_of_cell_words))
        word_values.append(texts.cells.word_values[texts.words_of_cells.words])
    if texts.extra_scores is not None:
        log_odds += texts.extra_scores
    log_ratios = np.concatenate([evidence.log_ratios for _, evidence in bags_and_evidence])  # words × labels
    joined_bags, joined_values = _join_columns([bags for bags, _ in bags_and_evidence], word_values)
    words = WordValues.of(joined_bags, joined_values, log_ratios, setting.variance_by_evidence)
    return LabelLearner(words, texts.flags, log_odds, texts.weights, seed, threads)


def _scores(texts: LabelRows, training: LabelRows, corrections: Reals32, setting: Setting, threads: int) -> Real:
    """Returns the log-odds of ``texts`` (rows × labels) by the counted evidence of ``training`` texts and the
    ``corrections`` learned from them (words + 1, labels), of which the last row is added to every text. ``setting``
    says how words count; ``threads``: how many to use.
    """
    scores = np.tile(training.log_prior + COMMON_WORD_VALUE * corrections[-1].astype(np.float64), (len(texts), 1))
    first_word = 0  # of the column, among the words of all columns
    for bags, evidence in zip(texts.bags, training.evidence, strict=True):
        column_corrections = corrections[first_word : first_word + bags.n_words]
        word_table = np.float32(setting.evidence_weight) * evidence.log_ratios + column_corrections  # words × labels
        scores += bags.scores(evidence.values(bags, setting, threads), word_table, threads)
        first_word += bags.n_words
    if len(texts.cells):
        # What each cell of each column adds (cells + 1, labels).
        cell_tables = tables_of_cells(training.evidence_of_cells, corrections[first_word:-1], setting)
        scores += texts.cells.scores(texts.codes, cell_tables, threads)
    return scores if texts.extra_scores is None else scores + texts.extra_scores


def tables_of_cells(evidence: CellEvidence, corrections: Reals32, setting: Setting) -> list[Real]:
    """Returns what the cells of each column add to the log-odds of each label (cells + 1, labels): their evidence,
    times the setting's weight, plus the corrections of their words (words × labels). The last row is for values in no
    cell.
    """
    tables_and_corrections = zip(evidence.plain, evidence.words.add_up_cells(corrections), strict=True)
    return [setting.evidence_weight * log_odds + correction for log_odds, correction in tables_and_corrections]


@dataclass(frozen=True)
class LearnedLabels:
    """The setting and C with the least loss, the corrections learned under them, and the out-of-fold log-odds of each row.

    ``corrections`` are (words + 1, labels). ``losses`` are pairs of C and the loss of held-out rows.
    """

    setting: Setting  # how words count
    strength: float  # C: how far corrections may go
    corrections: Reals32
    scores: Real  # (rows, labels)
    losses: tuple[tuple[float, float], ...]


class _LabelFold:
    """One fold: texts to learn from, and held-out texts. It offers the attributes that ``choose`` needs: ``truth``
    (held-out texts × labels), ``held_out_weights`` and ``correct``.
    """

    def __init__(self, texts: LabelRows, is_held_out: Flags, seed: int) -> None:
        """Divides the texts: those that are held out (``is_held_out``, one per text), and those to learn from. ``seed``
        decides the order in which texts are visited.
        """
        self.training_texts = texts.take(np.flatnonzero(~is_held_out))
        self.test_texts = texts.take(np.flatnonzero(is_held_out))
        self.truth = self.test_texts.flags
        self.held_out_weights = self.test_texts.weights
        self.seed = seed

    def correct(self, setting: Setting) -> ScoreByStrength:
        """Returns a function from C to the log-odds of the held-out texts (texts × labels). Each call learns further
        from where the last one stopped. ``setting`` says how words count.
        """
        learner = _learner(self.training_texts, setting, self.seed, threads=1)

        def score_by_strength(strength: float) -> Reals32:
            """Learns corrections with this C (``strength``) from the training texts, and returns log-odds (held-out
            texts × labels). ``setting`` says how words count.
            """
            learner.improve(strength, PASSES)
            log_odds = _scores(self.test_texts, self.training_texts, learner.corrections(), setting, threads=1)
            return log_odds.astype(np.float32)

        return score_by_strength


def learn_labels(texts: LabelRows, folds: Int, seed: int, threads: int) -> LearnedLabels:
    """Returns corrections learned from texts with sets of labels; ``folds`` has the fold of each text, ``seed`` decides
    the order in which texts are visited, and ``threads`` says how many to use.

    The setting is the one with the least loss on the first fold; for many texts, it is the first setting. C has the
    least loss on all held-out texts, or for many texts, on those of the first fold. The loss is the log loss after
    calibration by a slope and a shift.
    """
    is_few = len(texts) < FEW_TEXTS
    strengths: Sequence[float] = STRENGTHS_OF_FEW_TEXTS if is_few else STRENGTHS  # values of C to try
    settings = SETTINGS[:2] if is_few else SETTINGS[:1]  # how words may count
    if len(texts.cells):
        strengths = STRENGTHS_OF_TABLES
        settings = SETTINGS
    search = StrengthSearch(strengths, honest_loss, patience=1)
    fold_numbers = np.unique(folds).tolist()
    is_many = not is_few and not len(texts.cells)  # then the first fold decides C
    label_folds = [_LabelFold(texts, folds == fold, seed) for fold in fold_numbers]
    # The best setting, and what each C led to: the loss of held-out texts, and their scores by fold.
    setting, steps = choose(label_folds, settings, search, n_kept=1, threads=threads, keeps_first_strength=is_many)
    best_step = least_loss(steps)
    scores = np.zeros((len(texts), texts.n_labels))  # out-of-fold log-odds
    for fold, fold_scores in zip(fold_numbers, best_step.scores, strict=True):
        scores[folds == fold] = fold_scores
    learner = _learner(texts, setting, seed, threads)
    learner.improve(best_step.strength, LAST_PASSES)
    losses = tuple((step.strength, step.loss) for step in steps)
    return LearnedLabels(setting, best_step.strength, learner.corrections(), scores, losses)


@dataclass(frozen=True, eq=False)
class LabelWeighing:
    """What was learned from rows with sets of labels: corrections of words.

    ``words`` are those of each text column, and ``cells`` are of the other columns. ``corrections`` are (words of all
    text columns, then words of cells, then 1; labels); the last row is added to every row. ``digest`` identifies the
    tally that the rows were counted into, and ``losses`` are pairs of C and the loss of held-out rows.
    """

    labels: tuple[Label, ...]
    columns: tuple[str, ...]  # the names of the text columns
    words: tuple[tuple[str, ...], ...]  # of each text column
    setting: Setting  # how words count
    strength: float  # C: how far corrections may go
    corrections: Reals32
    digest: str
    losses: tuple[tuple[float, float], ...]
    cells: CellWords

    def is_stale(self, tally: Tally) -> bool:
        """Whether rows have been learned or forgotten since the corrections were learned."""
        return tally.digest() != self.digest

    def __str__(self) -> str:
        """Returns how many words, columns and labels there are, and C."""
        counted_nouns = [errors.many(sum(map(len, self.words)), "word")] * bool(self.columns)
        counted_nouns += [errors.many(len(self.cells.cells), "column")] * bool(self.cells.cells)
        return f"{' and '.join(counted_nouns)} × {errors.many(len(self.labels), 'label')}, corrected with C = {self.strength:g}"

    __repr__ = __str__

    def of(self, lexicon: Lexicon, column: int, labels: Sequence[Label]) -> Reals32:
        """Returns the corrections of the text column with the number ``column`` for the words of ``lexicon`` (words of
        the lexicon × ``labels``). They are 0 for words and labels that are new.
        """
        first_word = sum(len(words) for words in self.words[:column])  # of this column, among all words
        # Of the words that were learned (words × labels).
        corrections = self._of_labels(slice(first_word, first_word + len(self.words[column])), labels)
        corrections_of_lexicon = np.zeros((len(lexicon), len(labels)), dtype=np.float32)
        corrections_of_lexicon[lexicon.positions(self.words[column])] = corrections
        return corrections_of_lexicon

    def of_cells(self, labels: Sequence[Label]) -> Reals32:
        """Returns the corrections of the words of cells (words × ``labels``), 0 for labels that are new."""
        return self._of_labels(slice(-1 - len(self.cells), -1), labels)

    def common(self, labels: Sequence[Label]) -> Real:
        """Returns what is added to the log-odds of every row for each of these ``labels``, 0 for new ones."""
        return np.asarray(COMMON_WORD_VALUE * self._of_labels(slice(-1, None), labels)[0].astype(np.float64))

    def _of_labels(self, word_numbers: slice, labels: Sequence[Label]) -> Reals32:
        """Returns the corrections of the words ``word_numbers`` (words × ``labels``), 0 for labels that are new."""
        known_corrections = self.corrections[word_numbers]  # words × learned labels
        if tuple(labels) == self.labels:
            return known_corrections
        number_of_label = {label: number for number, label in enumerate(self.labels)}
        label_numbers = np.array([number_of_label.get(label, -1) for label in labels], dtype=np.int64)  # −1: new
        is_known = label_numbers >= 0
        corrections = np.zeros((len(known_corrections), len(labels)), dtype=np.float32)
        corrections[:, is_known] = known_corrections[:, label_numbers[is_known]]
        return corrections

    def _without_forgotten(self, tally: Tally) -> LabelWeighing:
        """Returns the weighing without the words, values and labels that no row of the tally has any more. ``words``
        has the words of each column, and ``corrections`` a row for each word of all columns and cells, and one for all
        rows.
        """
        remains_by_column = []  # whether each word of a column remains
        for name, words in zip(self.columns, self.words, strict=True):
            words_in_tally = set(lexicon_of(tally, name).words)
            remains_by_column.append(np.array([word in words_in_tally for word in words], dtype=np.bool_))
        cells, cell_remains = self.cells.without_forgotten(tally)  # and whether each word of the cells remains
        remains = np.concatenate([*remains_by_column, cell_remains, [True]])  # of each row of ``corrections``
        labels = tuple(label for label in self.labels if label in set(tally.classes))
        if labels == self.labels and remains.all():
            return self
        remaining_words = tuple(
            tuple(compress(words, column_remains))
            for words, column_remains in zip(self.words, remains_by_column, strict=True)
        )
        corrections = self._of_labels(slice(None), labels)[remains]
        return replace(self, labels=labels, words=remaining_words, cells=cells, corrections=corrections)


class LabelTables:
    """The tables by which weighed columns of a tally score rows, and explain them label by label.

    ``all_rows_class`` is the number of the tally's class of all rows, and ``class_of_label`` has the class number of each label.
    ``word_tables`` (words × labels) and ``cell_tables`` (cells + 1, labels) have an array for each column: what its words or
    cells add to log-odds. ``cell_counts`` has the rows in each cell of each column (cells × classes).
    """

    def __init__(self, tally: Tally, labels: Sequence[Label], weighing: LabelWeighing) -> None:
        """Computes the tables of all weighed columns from the counts of the tally and the corrections in ``weighing``.
        ``labels`` are those of the tally, in the order of the columns of scores.
        """
        self.tally = tally
        self.labels = tuple(labels)
        self.weighing = weighing
        self.all_rows_class = tally.classes.index(EVERY)  # the number of the class that all rows have
        class_numbers = {label: number for number, label in enumerate(tally.classes)}
        self.class_of_label = np.array([class_numbers[label] for label in labels], dtype=np.int64)  # class numbers
        self.text_features = tuple(tally.schema[name] for name in weighing.columns)
        self.lexicons = tuple(lexicon_of(tally, name) for name in weighing.columns)
        self.evidence = tuple(self._evidence(lexicon) for lexicon in self.lexicons)  # of the words of each text column
        evidence_weight = np.float32(weighing.setting.evidence_weight)
        # What each word adds to log-odds (words × labels), by text column.
        self.word_tables = tuple(
            evidence_weight * evidence.log_ratios + weighing.of(lexicon, column, labels)
            for column, (evidence, lexicon) in enumerate(zip(self.evidence, self.lexicons, strict=True))
        )
        rows_by_label = tally.rows.value[self.class_of_label]
        n_rows = float(tally.rows.value[self.all_rows_class])
        self.log_prior = log_prior_odds(rows_by_label, n_rows) + weighing.common(labels)  # log-odds (labels,)
        self.cell_counts = weighing.cells.counts(tally)  # rows of each cell (cells × classes), by column
        for counts, name in zip(self.cell_counts, weighing.cells.names, strict=True):
            self._check(counts, name)
        # Of each column: rows of each cell with each label (cells × labels), and all rows of each cell (cells,).
        label_counts = [counts[:, self.class_of_label] for counts in self.cell_counts]
        all_counts = [counts[:, self.all_rows_class] for counts in self.cell_counts]
        cell_evidence = CellEvidence(weighing.cells, label_counts, all_counts, rows_by_label, n_rows)
        self.cell_tables: list[Real] = []  # what each cell adds to log-odds (cells + 1, labels), by column
        if self.cell_counts:
            self.cell_tables = tables_of_cells(cell_evidence, weighing.of_cells(labels), weighing.setting)

    @cached_property
    def is_stale(self) -> bool:
        """Whether rows have been learned or forgotten since the corrections were learned."""
        return self.weighing.is_stale(self.tally)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns that are weighed."""
        return *self.weighing.columns, *self.weighing.cells.names

    def _evidence(self, lexicon: Lexicon) -> WordEvidence:
        """Returns the evidence of the words of a column's lexicon, from the tally's counts."""
        table = self.tally.of(lexicon.feature.name).table  # the counts of words by class: each label, and all rows
        # Where the pairs of each word start, and the class and the number of documents of each pair.
        starts, classes, _, pair_documents = table.pairs(lexicon.used.ids, np.arange(table.n_classes, dtype=np.int64))
        documents = np.zeros((len(lexicon), table.n_classes))  # rows of each class that have each word
        documents[np.repeat(np.arange(len(lexicon)), np.diff(starts)), classes] = pair_documents
        self._check(documents, lexicon.feature.name)
        rows_by_class = self.tally.rows.value  # by class number of the tally: labels, and all rows
        return WordEvidence(
            documents=np.ascontiguousarray(documents[:, self.class_of_label]),
            texts=rows_by_class[self.class_of_label],
            texts_with_word=documents[:, self.all_rows_class].copy(),
            n_texts=float(rows_by_class[self.all_rows_class]),
        )

    def _check(self, documents: Real, column: str) -> None:
        """Raises if more rows with a label have a word or cell of a column than rows at all have it.

        ``documents`` has how many rows of each class have each word or cell (words or cells × classes). Classes are
        those of the tally: each label, and one of all rows.
        """
        has_too_many = (documents[:, self.class_of_label] > documents[:, [self.all_rows_class]]).any(axis=0)  # labels
        if has_too_many.any():
            raise errors.impossible_sums(self.labels[int(np.argmax(has_too_many))], column)

    def scores(self, rows: ColumnReader, threads: int) -> Real:
        """Returns what the words and cells of rows add to the log-odds of each label (rows × labels), from the tables
        of each text column and of each column with cells. ``threads``: how many to use.
        """
        scores = np.zeros((rows.n_rows, len(self.labels)))
        setting = self.weighing.setting  # how words count
        for word_table, evidence, lexicon in zip(self.word_tables, self.evidence, self.lexicons, strict=True):
            bags = lexicon.bags(rows, self.tally.of(lexicon.feature.name), threads)  # the words of each row
            scores += bags.scores(evidence.values(bags, setting, threads), word_table, threads)
        if not self.cell_tables:
            return scores
        cells = self.weighing.cells  # the columns that have cells
        return scores + cells.scores(cells.codes(rows, threads), self.cell_tables, threads)

    def parameters(self, label: Label, plain: Model) -> tuple[Parameters, ...]:
        """Returns the parameters of a yes/no model of one label, by group of features: those of columns that are not
        weighed, taken from ``plain``, the unweighed yes/no model; those of each text column; and those of columns with
        cells.
        """
        parameters = list[Parameters]()
        for group in plain.parameters:
            unweighed = [  # positions of features in the group
                position for position, name in enumerate(group.features.names) if name not in self.column_names
            ]
            parameters += [group.select(unweighed)] if unweighed else []
        for column, feature in enumerate(self.text_features):
            parameters.append(self._word_parameters(label, column, plain.tally.of(feature.name)))
        if self.cell_tables:
            label_number = self.labels.index(label)
            # What each cell adds to the score of each class (cells + 1, without the label and with it).
            tables = [np.stack([np.zeros(len(table)), table[:, label_number]], axis=1) for table in self.cell_tables]
            counts_of_columns = []  # cells × (rows without the label, rows with it)
            for cell_counts in self.cell_counts:
                counts_with_label = cell_counts[:, self.class_of_label[label_number]]
                counts_without_label = cell_counts[:, self.all_rows_class] - counts_with_label
                counts_of_columns.append(np.stack([counts_without_label, counts_with_label], axis=1))
            parameters.append(self.weighing.cells.parameters(tables, counts_of_columns))
        return tuple(parameters)

    def _word_parameters(self, label: Label, column: int, sums: Any) -> Parameters:
        """Returns the parameters of the text column with the number ``column`` in the yes/no model of one label, whose
        counts of this column are ``sums``.
        """
        label_number = self.labels.index(label)
        setting = self.weighing.setting  # how words count
        evidence = self.evidence[column]  # of the column's words about all labels
        lexicon = Lexicon.of(self.text_features[column], sums)
        word_scores_of_label = self.word_tables[column][:, label_number]
        # Words × (without the label, with it), as ``documents``.
        scores = np.stack([np.zeros(len(lexicon), dtype=np.float32), word_scores_of_label], axis=1)
        documents_with_label = evidence.documents[:, label_number]
        documents = np.stack([evidence.texts_with_word - documents_with_label, documents_with_label], axis=1)
        n_texts = np.array([evidence.n_texts - evidence.texts[label_number], evidence.texts[label_number]])
        word_scales = evidence.scale(setting.idf_power)  # the inverse document frequency of each word
        return word_scores(lexicon, sums, word_scales, scores, setting.use_counts, documents, n_texts)


def words_of(tally: Tally) -> tuple[tuple[str, ...], CellWords]:
    """Returns what can be weighed in a tally of label sets: the names of text columns, and the columns that have cells."""
    features = tally.schema.features
    text_columns = features.take(features.where(lambda feature: feature.counter.words)).names
    return text_columns, CellWords.of(tally)


def can_weigh(tally: Tally, n_rows: int) -> bool:
    """Whether a tally of label sets has anything to weigh, and not more words × labels or rows × labels than
    MOST_CELLS. ``n_rows``: the number of rows to learn from.
    """
    text_columns, cells = words_of(tally)  # the names of text columns; the columns that have cells
    n_words = sum(int(tally.of(name).table.n_words) for name in text_columns) + len(cells)
    return n_words > 0 and max(n_words, n_rows) * len(tally.classes) <= MOST_CELLS


def bags_of(tally: Tally, names: Sequence[str], batches: Sequence[Batch], threads: int) -> tuple[Bags, ...]:
    """Returns the words of the rows of all batches, one ``Bags`` for each of the tally's text columns ``names``.
    ``threads``: how many to use.
    """
    column_bags = []
    for name in names:
        lexicon = lexicon_of(tally, name)
        column_bags.append(Bags.together([lexicon.bags(batch, tally.of(name), threads) for batch in batches]))
    return tuple(column_bags)
