"""Learns weights, pairs and corrections from counted rows. All choices are made on the rows themselves, each left out."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from banbury import _core
from banbury.arrays import Real
from banbury.families.bags.lexicon import Lexicon
from banbury.families.cells import Cells
from banbury.progress import Steps
from banbury.threads import n_threads, run_in_threads
from banbury.weighing.columns import WeighedColumns
from banbury.weighing.corrections import CellLearner, StrengthSearch, least_loss
from banbury.weighing.evidence import CountedEvidence, PairedColumns, WeighedPair, most_pair_cells
from banbury.weighing.minimum import minimise
from banbury.weighing.rows import FEW_CLASSES, WeighedRows
from banbury.weighing.texts import ClassifiedTexts, LearnedTexts, learn_words

RIDGE = 5.0  # pulls the weight of a column towards the shared weight of all columns
PAIR_RIDGE = 10.0  # pulls the weight of a pair towards 0, and of a trend towards the shared weight of all trends
SHARED_PRIOR = np.array([1.0, 0.0])  # what the shared weights of columns and of trends are pulled towards
START = 0.7  # weights start at this multiple of SHARED_PRIOR
TIME_SHARE_OF_TEXTS = 0.8  # of the time that weighing takes, if there are also other columns
MOST_PAIRS = 5_000  # that are examined; if there are more, only the columns with the highest gains are paired
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # values of C
PASSES = 2
LAST_PASSES = 10
MOST_ROWS_COMPARED = 4096  # with more rows, passes never work on pairs of rows
FLAT_SLOPE = 1e-4  # of the loss, divided by the root of the number of rows: fitting ends there
CURVATURE_CELLS = 1 << 17  # rows × weights that the curvature is estimated from; fewer with many classes
LEAST_GAIN = 1.0  # nats that a temperature must gain
LEAST_TEMPERATURE = 0.1
ROWS_PER_PIECE = 1 << 16  # rows whose loss a thread computes at a time


@dataclass(frozen=True)
class Weights:
    """What was learned: the weights of columns, trends, pairs and texts; the intercepts; and the corrections.

    The score of a row is ``temperature`` · (intercepts + Σ weight · evidence + Σ correction). The intercepts include
    log P(class).
    """

    columns: tuple[Cells, ...]  # those that have cells
    trends: tuple[int, ...]  # the numbers of the columns whose trend is weighed too
    pairs: tuple[WeighedPair, ...]
    weights: Real  # of columns, trends, pairs, texts and scored columns
    intercepts: Real  # (classes,)
    corrections: tuple[Real, ...]  # of each column and pair: (cells, classes)
    pair_tables: tuple[Real, ...]  # the evidence of each pair beyond its two columns: (cells, classes)
    strength: float  # C, 0 for no corrections
    temperature: float
    losses: tuple[tuple[float, float], ...]  # C, and the mean log loss of held-out rows
    texts: tuple[LearnedTexts, ...] = ()
    scored: tuple[str, ...] = ()  # the columns that their family scores

    @property
    def strengths(self) -> list[float]:
        """The values of C of the corrections of cells and of each text column, of those that have corrections."""
        return [strength for strength in (self.strength, *(text.strength for text in self.texts)) if strength]

    @property
    def by_kind(self) -> list[Real]:
        """Four arrays: the weights of columns, of trends, of pairs, and of texts and scored columns."""
        return np.split(self.weights, np.cumsum([len(self.columns), len(self.trends), len(self.pairs)]))


@dataclass(frozen=True)
class FittedEvidence:
    """Evidence with the weight of each column, trend, pair and column of ``rows.column_scores``, and the intercept of each
    class.
    """

    evidence: CountedEvidence
    weights: Real  # of columns, trends, pairs and columns of scores, in this order
    intercepts: Real  # (classes,), including the log prior

    def recount(self, rows: WeighedRows) -> FittedEvidence:
        """Returns the same weights and intercepts for evidence that is counted from other rows."""
        return replace(self, evidence=self.evidence.of_rows(rows))

    def scores(self, rows: WeighedRows, leave_out: bool) -> Real:
        """Returns the weighed scores of rows (rows × classes): intercepts, plus the weighed evidence of columns, trends,
        pairs, texts and columns that their family scores. With ``leave_out``, the rows are those that were counted, and
        each is left out of its own evidence.
        """
        evidence = self.evidence
        n_scored = rows.column_scores.shape[1]  # texts, and columns that their family scores
        # The weights of columns with cells, trends and pairs; and those of these texts and columns.
        cell_weights, scored_weights = np.split(self.weights, [len(self.weights) - n_scored])
        scores_without_cells = np.einsum("rgc,g->rc", rows.column_scores, scored_weights)  # rows × classes
        if not evidence.columns:
            return np.asarray(self.intercepts + scores_without_cells)
        if leave_out and evidence.leaves_out_row_by_row:
            scores = self.intercepts + scores_without_cells
            for weight, term_evidence in zip(cell_weights, evidence.each_row_left_out(), strict=True):
                scores = scores + weight * term_evidence  # rows × classes
            return np.asarray(scores)
        labels = rows.labels if leave_out else None  # the class of each row that is left out
        terms = evidence.layout.scoring_terms
        scores = terms.scores(
            rows.codes, evidence.table(leave_out), cell_weights, self.intercepts, labels, evidence.threads
        )
        return scores + scores_without_cells if n_scored else scores


def learn_weights(
    columns: WeighedColumns,
    rows: WeighedRows,
    n_classes: int,
    *,
    pairs: bool,
    correct: bool,
    seed: int,
    threads: int,
) -> Weights:
    """Learns the weights of columns, trends and texts, adds the pairs that help, and then learns corrections. Returns
    all of them.

    Args:
        columns: The columns that are weighed; ``rows.codes`` has the cell of each row in each column that has cells.
        rows: The rows to learn from.
        n_classes: The number of classes.
        pairs: Whether to look for pairs of columns.
        correct: Whether to learn corrections.
        seed: Decides the order in which rows are visited.
        threads: How many threads to use.
    """
    with Steps() as steps:
        steps.begin("", TIME_SHARE_OF_TEXTS if columns.cells else 1.0)
        texts, rows = _learn_texts(columns.texts, rows, n_classes, correct, seed, threads)
    trends = tuple(number for number, cells in enumerate(columns.cells) if cells.has_trend)  # the columns' numbers
    evidence = CountedEvidence(PairedColumns(columns.cells, trends, pairs=()), rows, n_classes, threads)
    fitted = _fit_weights(evidence, start=None)
    if pairs and len(columns.cells) > 1:
        pairs_to_add = _choose_pairs(fitted)
        if pairs_to_add:
            first_pair = len(columns.cells) + len(trends)  # where the weights of pairs begin among all weights
            start_weights = np.insert(fitted.weights, first_pair, np.zeros(len(pairs_to_add)))
            start = np.concatenate([start_weights, fitted.intercepts - np.log(evidence.prior), SHARED_PRIOR])
            fitted = _fit_weights(evidence.with_pairs(pairs_to_add), start)
    terms = fitted.evidence.layout.correction_terms  # for the kernels: the cells of columns and pairs
    chosen = ChosenStrength()  # no corrections
    corrections = np.zeros((terms.n_cells, n_classes))
    if correct and columns.cells:
        compares_rows = len(rows.labels) <= min(len(terms), MOST_ROWS_COMPARED)
        # The number of cells that any two rows share (rows × rows).
        shared_cells = terms.alike(rows.codes, threads) if compares_rows else None
        chosen = _choose_strength(fitted, shared_cells, seed)
        if chosen.strength:
            learner = CellLearner(terms, rows, fitted.scores(rows, leave_out=True), shared_cells, seed)
            learner.improve(chosen.strength, LAST_PASSES)
            corrections = learner.corrections()
    return Weights(
        columns=columns.cells,
        trends=trends,
        pairs=fitted.evidence.pairs,
        weights=fitted.weights,
        intercepts=fitted.intercepts,
        corrections=fold_levels(terms, corrections),
        pair_tables=tuple(by_all_rows for by_all_rows, _ in fitted.evidence.pair_tables),
        strength=chosen.strength,
        temperature=chosen.temperature,
        losses=chosen.losses,
        texts=texts,
        scored=columns.scored.names,
    )


def fold_levels(terms: _core.Terms, table: Real) -> tuple[Real, ...]:
    """Returns for each column and pair of ``terms`` what its cells of the last level have on all levels together (cells
    × classes). ``table`` has the numbers of the cells of all terms (cells × classes).
    """
    start = 0  # the first cell of the level
    folded_tables = []
    for _, first, second_column, second, sizes in terms.groups:
        # The cell on each level of every code, or of every pair of codes (codes × levels).
        cells = first if second_column < 0 else (first[:, None] + second).reshape(-1, len(sizes))
        last_cells = cells[:, -1]
        sums = np.zeros((sizes[-1], table.shape[1]))
        for level, size in enumerate(sizes):
            sums[last_cells] += table[start + cells[:, level]]  # codes of one cell share the cells of coarser levels
            start += size
        folded_tables.append(sums)
    return tuple(folded_tables)


def _learn_texts(
    lexicons: Sequence[Lexicon], rows: WeighedRows, n_classes: int, correct: bool, seed: int, threads: int
) -> tuple[tuple[LearnedTexts, ...], WeighedRows]:
    """Learns each text column. Returns what was learned, and the rows with the out-of-fold scores of their texts as
    additional evidence.

    Args:
        lexicons: The words of each text column.
        rows: The rows, with the bags of words of each text column.
        n_classes: The number of classes.
        correct: Whether to learn corrections of words, besides how words count.
        seed: Decides the order in which rows are visited.
        threads: How many threads to use.
    """
    if not rows.bags:
        return (), rows
    fold_weights = rows.folds(rows.n_folds)  # of each row in each fold (rows × folds)
    fold_weights = fold_weights[:, fold_weights.any(axis=0)]  # of few rows or groups, some folds have none
    learned_texts = []
    text_score_arrays = []  # of rows × classes
    outside = rows.outside_sample  # counts of other rows than these; None: there are none
    for text_number, (lexicon, bags) in enumerate(zip(lexicons, rows.bags, strict=True)):
        counts_outside = None if outside is None else (outside.documents[text_number], outside.rows)
        texts = ClassifiedTexts(lexicon, bags, rows.labels, rows.weights, n_classes, counts_outside)
        learned, text_scores = learn_words(texts, fold_weights, correct, seed, threads)
        learned_texts.append(learned)
        text_score_arrays.append(text_scores)
    # Rows × (texts, then other columns) × classes.
    column_scores = np.concatenate([np.stack(text_score_arrays, axis=1), rows.column_scores], axis=1)
    return tuple(learned_texts), replace(rows, column_scores=column_scores)


# Weights --------------------------------------------------------------------------------------------------------------


def _fit_weights(evidence: CountedEvidence, start: Real | None) -> FittedEvidence:
    """Returns the weights, none of them negative, and the intercepts that make the classes of rows most likely, with
    each row left out of its own evidence. A ridge penalty pulls weights towards shared ones.

    Args:
        evidence: The evidence of columns, trends and pairs; ``evidence.rows.column_scores`` has that of texts and of
            columns that their family scores.
        start: Where the search starts: weights, intercepts beyond the log prior, and the two shared weights; None for
            START times the weights of plain naive Bayes.
    """
    rows = evidence.rows
    n_classes = evidence.n_classes
    # How many weights there are of columns with cells, of trends, of pairs, and of texts and other columns.
    n_by_kind = len(evidence.columns), len(evidence.layout.trends), len(evidence.pairs), rows.column_scores.shape[1]
    n_weights = sum(n_by_kind)
    block_starts = [n_weights, n_weights + n_classes]  # where intercepts and shared weights begin among all variables
    # The penalty on each weight.
    ridge = np.repeat([RIDGE, PAIR_RIDGE, PAIR_RIDGE, RIDGE], n_by_kind)
    # Which of the two shared weights each weight is pulled towards (weights × 2); pairs are pulled towards 0.
    uses_shared = np.repeat([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0]], n_by_kind, axis=0)
    log_prior = np.log(evidence.prior)
    evidence_of_rows = _evidence_of_rows(evidence)  # rows × (classes − 1) × weights
    if start is None:
        start = np.concatenate([START * uses_shared @ SHARED_PRIOR, np.zeros(n_classes), START * SHARED_PRIOR])

    def loss(variables: Real) -> tuple[float, Real]:
        """Returns the penalised loss of ``variables`` (weights, intercepts beyond the log prior, and the two shared
        weights, one after the other, which begin at ``block_starts``), and its gradient. ``evidence_of_rows`` is rows ×
        (classes − 1) × weights, ``ridge`` the penalty on each weight, and ``uses_shared`` (weights × 2) says which
        shared weight it is pulled towards.
        """
        weights, intercepts, shared = np.split(variables, block_starts)
        log_loss, gradient = _core.weighed_slope(
            evidence_of_rows, weights, log_prior + intercepts, rows.labels, rows.weights, evidence.threads
        )
        distance_to_shared = weights - uses_shared @ shared  # of each weight
        distance_to_prior = shared - SHARED_PRIOR  # of each shared weight
        penalty = (
            0.5 * float(ridge @ distance_to_shared**2)
            + 0.5 * float(intercepts @ intercepts)
            + 0.5 * float(distance_to_prior @ distance_to_prior)
        )
        gradient[:n_weights] += ridge * distance_to_shared
        gradient[n_weights:] += intercepts
        slope_of_shared = distance_to_prior - (ridge * distance_to_shared) @ uses_shared  # of the two shared weights
        return log_loss + penalty, np.concatenate([gradient, slope_of_shared])

    def curvature() -> Real:
        """Returns the Hessian of the loss by all variables (variables × variables) at the start. ``block_starts`` are where
        intercepts and shared weights begin, ``ridge`` is the penalty on each weight, and ``uses_shared`` (weights × 2)
        says which shared weight it is pulled towards.
        """
        weights, intercepts, _ = np.split(start, block_starts)
        matrix: Real = np.diag(np.concatenate([ridge, np.ones(n_classes), 1.0 + ridge @ uses_shared]))
        matrix[:n_weights, block_starts[1] :] = -ridge[:, None] * uses_shared
        matrix[block_starts[1] :, :n_weights] = matrix[:n_weights, block_starts[1] :].T
        matrix[: block_starts[1], : block_starts[1]] += _curvature(
            evidence_of_rows, rows.weights, weights, log_prior + intercepts
        )
        return matrix

    # Weights and shared weights may not be negative.
    bounded = np.repeat([True, False, True], [n_weights, n_classes, len(SHARED_PRIOR)])
    flat = FLAT_SLOPE * max(1.0, float(rows.weights.sum()) ** 0.5)  # the slope at which the search ends
    weights, intercepts, _ = np.split(minimise(loss, start, bounded, curvature, flat), block_starts)
    return FittedEvidence(evidence, weights, intercepts + log_prior)


def _curvature(evidence_of_rows: Any, row_weights: Real, weights: Real, intercepts: Real) -> Real:
    """Returns the Hessian of the loss by weights, then intercepts, at these values of them, estimated from the first
    rows, whose order is random.

    ``evidence_of_rows`` is rows × (classes − 1) × weights, ``row_weights`` has one weight per row, and ``intercepts``
    (classes,) include the log prior.
    """
    n_weights = len(weights)
    n_classes = len(intercepts)
    n_rows = CURVATURE_CELLS // max(n_weights, 1) * FEW_CLASSES // max(n_classes, FEW_CLASSES)
    sampled_evidence = evidence_of_rows[: max(n_rows, 1)].astype(np.float64)  # of the first rows
    # The weights of these rows, so that they stand for all rows.
    sampled_weights = row_weights[: len(sampled_evidence)] * (len(evidence_of_rows) / max(len(sampled_evidence), 1))
    scores = np.zeros((len(sampled_evidence), n_classes)) + intercepts
    scores[:, :-1] += sampled_evidence @ weights
    posteriors = _softmax(scores)  # rows × classes, as ``scores``
    mean_evidence = np.einsum("rc,rcn->rn", posteriors[:, :-1], sampled_evidence)  # over classes (rows × weights)
    weighted_posteriors = sampled_weights[:, None] * posteriors  # rows × classes
    hessian = np.zeros((n_weights + n_classes, n_weights + n_classes))
    # One line for each row and class but the last: (rows · (classes − 1)) × weights.
    evidence_rows = sampled_evidence.reshape(len(sampled_evidence) * (n_classes - 1), n_weights)
    hessian[:n_weights, :n_weights] = (evidence_rows * weighted_posteriors[:, :-1].reshape(-1, 1)).T @ evidence_rows - (
        mean_evidence * sampled_weights[:, None]
    ).T @ mean_evidence
    hessian[:n_weights, n_weights:-1] = np.einsum("rc,rcn->nc", weighted_posteriors[:, :-1], sampled_evidence)
    hessian[:n_weights, n_weights:] -= mean_evidence.T @ weighted_posteriors
    hessian[n_weights:, :n_weights] = hessian[:n_weights, n_weights:].T
    hessian[n_weights:, n_weights:] = np.diag(weighted_posteriors.sum(axis=0)) - posteriors.T @ weighted_posteriors
    return hessian


def _evidence_of_rows(evidence: CountedEvidence) -> Any:
    """Returns the evidence of each column, trend and pair, and the scores of other columns, for each row with itself
    left out: rows × (classes − 1) × terms. It is relative to the last class.
    """
    rows = evidence.rows
    n_classes = evidence.n_classes
    column_scores = rows.column_scores  # of texts and other columns (rows × columns × classes)
    n_scored = column_scores.shape[1]
    terms = evidence.layout.scoring_terms  # for the kernels: columns with cells, trends and pairs
    if evidence.columns and not evidence.leaves_out_row_by_row:
        table = evidence.table(leave_out=True)
        evidence_of_terms = terms.evidence(rows.codes, table, n_classes, rows.labels, n_scored, evidence.threads)
    else:
        evidence_of_terms = np.zeros((len(rows.labels), n_classes - 1, len(terms) + n_scored), dtype=np.float32)
        for term, term_evidence in enumerate(evidence.each_row_left_out()):
            evidence_of_terms[:, :, term] = term_evidence[:, :-1] - term_evidence[:, -1:]
    if n_scored:
        evidence_of_terms[:, :, -n_scored:] = (column_scores[:, :, :-1] - column_scores[:, :, -1:]).transpose(0, 2, 1)
    return evidence_of_terms


# Pairs ----------------------------------------------------------------------------------------------------------------


def _choose_pairs(fitted: FittedEvidence) -> list[WeighedPair]:
    """Returns the pairs that add information to their two columns, by a score test of their weights, the strongest
    first. ``fitted`` is the model without pairs.
    """
    evidence = fitted.evidence
    columns = evidence.columns
    # The numbers of columns with more than one fine node, besides that for unknown values.
    pairable = [number for number, cells in enumerate(columns) if cells.n_fine > 2]
    n_paired = n_columns_to_pair(len(pairable))
    if n_paired < len(pairable):
        strongest = np.argsort(-evidence.gains()[pairable], kind="stable")[:n_paired]  # positions in ``pairable``
        pairable = sorted(pairable[position] for position in strongest.tolist())
    most_cells = most_pair_cells(evidence.n_classes)
    candidates = [
        (first, second)
        for first, second in combinations(pairable, 2)
        if columns[first].n_fine * columns[second].n_fine <= most_cells
    ]
    if not candidates:
        return []
    posteriors = _softmax(fitted.scores(evidence.rows, leave_out=True))
    # Of each candidate: the nats that it gains over its columns apart, its best strength, and the slope and curvature of
    # the log likelihood by its weight.
    gain, strength, slope, curvature = evidence.pair_gains(candidates, posteriors).T
    test_statistic = np.where(slope > 0, slope**2 / (2.0 * curvature + 1e-9), 0.0)
    chosen = np.flatnonzero((gain > 0) & (test_statistic > np.log(len(candidates))))  # numbers of candidates
    chosen = chosen[np.argsort(-test_statistic[chosen], kind="stable")][: 2 * len(columns)]
    return [WeighedPair(*candidates[number], float(strength[number])) for number in chosen.tolist()]


def n_columns_to_pair(n_columns: int) -> int:
    """Returns how many columns to pair with each other, so that at most MOST_PAIRS pairs are examined."""
    return min(n_columns, int((1.0 + (1.0 + 8.0 * MOST_PAIRS) ** 0.5) / 2.0))


def _softmax(scores: Real) -> Real:
    """Returns the posteriors, P(class | row), of log scores (rows × classes each)."""
    exp_scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(exp_scores / exp_scores.sum(axis=1, keepdims=True))


# Corrections ----------------------------------------------------------------------------------------------------------


class _TableFold:
    """One fold: a learner of corrections from the training rows, and the held-out rows with their scores.

    ``shared_with_training`` has the number of cells that each held-out row shares with each training row (held-out rows
    × training rows), if corrections are learned from pairs of rows.
    """

    def __init__(
        self,
        fitted: FittedEvidence,
        training_weights: Real,
        held_out_weights: Real,
        shared_cells: Real | None,
        seed: int,
    ) -> None:
        """Counts the evidence of the training rows.

        Args:
            fitted: The evidence of all rows, and the weights that were learned from them.
            training_weights: The weight of each row in the training part of the fold.
            held_out_weights: The weight of each row in the held-out part.
            shared_cells: The number of cells that any two rows share (rows × rows), or None.
            seed: Decides the order in which rows are visited.
        """
        all_rows = fitted.evidence.rows
        rows = all_rows.reweight(training_weights)  # the training rows
        self.held_out = all_rows.reweight(held_out_weights)
        fitted = fitted.recount(rows)  # the same weights, for evidence counted from the training rows
        self.shared_with_training: Real | None = None  # cells that rows share (held-out rows × training rows)
        if shared_cells is not None:
            training_rows = np.flatnonzero(training_weights > 0)
            held_out_rows = np.flatnonzero(held_out_weights > 0)
            self.shared_with_training = shared_cells[np.ix_(held_out_rows, training_rows)]
            shared_cells = shared_cells[np.ix_(training_rows, training_rows)]
        self.uncorrected_scores = fitted.scores(self.held_out, leave_out=False)  # held-out rows × classes
        offsets = fitted.scores(rows, leave_out=True)  # training rows × classes
        self.learner = CellLearner(fitted.evidence.layout.correction_terms, rows, offsets, shared_cells, seed)

    def scores(self, strength: float, threads: int) -> Real:
        """Returns the scores of the held-out rows (rows × classes) with corrections of this C (``strength``), computed
        by so many threads. Each call learns further from where the last one stopped.
        """
        if not strength:
            return self.uncorrected_scores
        learner = self.learner
        learner.improve(strength, PASSES)
        # What corrections add to the score of each row is rows × classes.
        if self.shared_with_training is not None:  # the cells that rows share (held-out rows × training rows)
            corrections = np.einsum("ij,jc->ic", self.shared_with_training, learner.scaled_residuals)
            return np.asarray(self.uncorrected_scores + corrections)
        unit_weights = np.ones(len(learner.terms))
        no_intercepts = np.zeros(self.uncorrected_scores.shape[1])
        table = learner.table.ravel()  # the corrections of all cells, cell by cell
        corrections = learner.terms.scores(
            self.held_out.codes, table, unit_weights, no_intercepts, own=None, threads=threads
        )
        return self.uncorrected_scores + corrections


class ChosenStrength(NamedTuple):
    """The C with the least out-of-fold log loss, the temperature of the scores with it, and the mean loss of each C that
    was tried. By default, there are no corrections.
    """

    strength: float = 0.0  # C
    temperature: float = 1.0
    losses: tuple[tuple[float, float], ...] = ()  # each C with its mean loss


def _choose_strength(fitted: FittedEvidence, shared_cells: Real | None, seed: int) -> ChosenStrength:
    """Returns the C with the least out-of-fold log loss, its temperature and the losses; no corrections if the rows do
    not make two folds.

    Args:
        fitted: The evidence of all rows, and the weights that were learned from them.
        shared_cells: The number of cells that any two rows share (rows × rows), or None.
        seed: Decides the order in which rows are visited.
    """
    rows = fitted.evidence.rows
    fold_weights = [  # for each fold the weight with which each row is held out
        held_out_weights
        for held_out_weights in rows.folds(rows.n_folds).T
        if held_out_weights.any() and (rows.weights - held_out_weights).any()
    ]
    if len(fold_weights) < 2:
        return ChosenStrength()
    threads = fitted.evidence.threads
    with ThreadPoolExecutor(max(1, min(threads, len(fold_weights)))) as pool:

        def make_fold(held_out_weights: Real) -> _TableFold:
            """Returns a fold: the ``rows`` divided by how much of the weight of each is held out (rows,), with the
            training rows counted. ``shared_cells`` has the number of cells that any two rows share, or is None.
            """
            return _TableFold(fitted, rows.weights - held_out_weights, held_out_weights, shared_cells, seed)

        folds = list(pool.map(make_fold, fold_weights))
        weights = np.concatenate([fold.held_out.weights for fold in folds])  # of held-out rows, fold after fold
        labels = np.concatenate([fold.held_out.labels for fold in folds])
        threads_per_fold = max(1, threads // len(folds))  # for scoring; passes use one thread

        def score_by_strength(strength: float) -> Real:
            """Returns the scores of the held-out rows of all ``folds`` with corrections of this C (rows × classes), each
            fold in a thread of ``pool``.
            """
            return np.concatenate(list(pool.map(lambda fold: fold.scores(strength, threads_per_fold), folds)))

        steps = StrengthSearch((0.0, *STRENGTHS), _log_loss).follow(score_by_strength, labels, weights)
    best_step = least_loss(steps)
    total_weight = float(weights.sum())
    losses = tuple((step.strength, step.loss / total_weight) for step in steps)
    temperature = _temperature(best_step.scores, labels, weights, best_step.loss, threads)
    return ChosenStrength(best_step.strength, temperature, losses)


def _log_loss(scores: Real, labels: Any, weights: Real) -> float:
    """Returns the log loss of scores (rows × classes) by the class number of each row (``labels``), summed over rows
    with their ``weights``; threads share the rows.
    """
    n_rows = len(labels)
    row_losses = np.empty(n_rows)

    def fill_piece(piece: int) -> None:
        """Computes the losses of the rows in the piece with this number from ``scores`` (rows × classes) and ``labels``
        (rows,), and writes them into ``row_losses``.
        """
        rows = slice(piece * ROWS_PER_PIECE, (piece + 1) * ROWS_PER_PIECE)
        piece_scores = scores[rows]
        highest_scores = reduce(np.maximum, piece_scores.T)  # of each row, as the next
        log_totals = highest_scores + np.log(np.exp(piece_scores - highest_scores[:, None]).sum(axis=1))
        row_losses[rows] = log_totals - piece_scores[np.arange(len(piece_scores)), labels[rows]]

    n_pieces = -(-n_rows // ROWS_PER_PIECE)
    run_in_threads(fill_piece, n_pieces, min(n_pieces, n_threads(None)) or 1)
    return float(weights @ row_losses)


def _temperature(scores: Real, labels: Any, weights: Real, loss: float, threads: int) -> float:
    """Returns the factor, at most 1, by which scores (rows × classes) have the least loss; 1 if the gain is negligible.

    Weights were learned with these rows in view, so their scores look better than they are. ``labels`` has the class
    number and ``weights`` the weight of each row; ``loss`` is the loss of the scores as they are; ``threads`` says how
    many to use.
    """
    lowest_loss, temperature = _core.tempered(
        scores.astype(np.float32), labels, weights, ridge=0.0, most=1.0, threads=threads
    )
    return max(temperature, LEAST_TEMPERATURE) if loss - lowest_loss > LEAST_GAIN else 1.0
