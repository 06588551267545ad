"""How weights, pairs and corrections are learned from rows that were counted; everything is chosen on the rows themselves."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np

from banbury import _core
from banbury.arrays import Real
from banbury.families.cells import Cells
from banbury.progress import Steps
from banbury.weighing.corrections import CellLearner, StrengthSearch, least_loss
from banbury.weighing.evidence import EvidenceTables, PairedColumns, WeighedPair, most_pair_cells
from banbury.weighing.minimum import minimise
from banbury.weighing.rows import FEW_CLASSES, WeighedRows
from banbury.weighing.texts import LearnedTexts, learn_words

RIDGE = 5.0  # of a column's weight, towards the one that all share
PAIR_RIDGE = 10.0  # of a pair's, towards nothing; of a trend's, towards the one that all trends share
SHARED = np.array([1.0, 0.0])  # what the shared weights of columns and of trends are pulled towards
TEXTS_SHARE = 0.8  # of the time that weighing takes, where there are columns beside them
MOST_PAIRS = 5_000  # that are looked at; of many columns those that gain most are paired
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # C: how far corrections may go
PASSES = 2
LAST_PASSES = 10
MOST_ALIKE = 4096  # rows of which any two are compared
FLAT = 1e-4  # slope of the loss, by the root of the rows, at which passes for weights end
CURVATURE_CELLS = 1 << 17  # of rows that the curvature is learned from; of many classes fewer
GAIN = 1.0  # nats that a temperature must gain
COOLEST = 0.1  # temperature


@dataclass(frozen=True)
class Weights:
    """What was learned: the weights of columns, trends, pairs and texts; the intercepts; and the corrections.

    The score of a row is ``temperature`` · (intercepts + Σ weight · evidence + Σ correction). The intercepts include
    log P(class).
    """

    columns: tuple[Cells, ...]
    trends: tuple[int, ...]  # the columns whose trend is weighed too
    pairs: tuple[WeighedPair, ...]
    weights: Real
    intercepts: Real
    corrections: tuple[Real, ...]  # of each column and pair: (cells, classes)
    strength: float  # C, 0 for none
    temperature: float
    losses: tuple[tuple[float, float], ...]  # C, and the mean log loss of rows held out
    texts: tuple[LearnedTexts, ...] = ()

    @property
    def strengths(self) -> list[float]:
        """The regularisation strength C of the corrections of cells and of words."""
        return [c for c in (self.strength, *(text.strength for text in self.texts)) if c]


def learn_weights(
    columns: tuple[Cells, ...],
    rows: WeighedRows,
    n_classes: int,
    *,
    pairs: bool = True,
    correct: bool = True,
    seed: int = 0,
    threads: int = 1,
) -> tuple[Weights, tuple[Real, ...]]:
    """Learns the weights of columns and trends, adds the pairs that help, and then learns corrections.

    It also returns the evidence of the cells of each pair beyond that of its two columns (cells × classes).
    """
    with Steps() as steps:
        steps.begin("", TEXTS_SHARE if columns else 1.0)
        texts, rows = _learn_texts(rows, n_classes, correct, seed, threads)
    trends = tuple(j for j, cells in enumerate(columns) if cells.has_trend)
    evidence = EvidenceTables(PairedColumns(columns, trends, ()), rows, n_classes, threads)
    weights, intercepts = _fit_weights(evidence, None)
    if pairs and len(columns) > 1:
        chosen = _choose_pairs(evidence, weights, intercepts)
        if chosen:
            evidence = evidence.with_pairs(chosen)
            begun = np.insert(weights, len(columns) + len(trends), np.zeros(len(chosen)))
            start = np.concatenate([begun, intercepts - np.log(evidence.prior), SHARED])
            weights, intercepts = _fit_weights(evidence, start)
    terms = evidence.layout.corrections
    strength = 0.0
    temperature = 1.0
    table = np.zeros((terms.n_cells, n_classes))
    losses: tuple[tuple[float, float], ...] = ()
    if correct and columns:
        wide = len(rows.labels) <= min(len(terms), MOST_ALIKE)
        alike = terms.alike(rows.codes, threads) if wide else None
        strength, temperature, losses = _choose_strength(evidence, (weights, intercepts), alike, seed)
        if strength:
            offsets = _scores(evidence, weights, intercepts, rows, without_own_row=True)
            learner = CellLearner(terms, rows, offsets, alike, seed)
            learner.improve(strength, LAST_PASSES)
            table = learner.corrections()
    folded = tuple(terms.folded(table))
    settings = weights, intercepts, folded, strength, temperature, losses, texts
    return Weights(columns, trends, evidence.pairs, *settings), tuple(plain for plain, _ in evidence.pair_tables)


def _learn_texts(
    rows: WeighedRows, n_classes: int, correct: bool, seed: int, threads: int
) -> tuple[tuple[LearnedTexts, ...], WeighedRows]:
    """Learns each text column; also gives the rows with its out-of-fold scores as extra evidence."""
    if not rows.bags:
        return (), rows
    shares = rows.folds(rows.n_folds)
    shares = shares[:, shares.any(axis=0)]
    learned = []
    evidence = []
    for t, bags in enumerate(rows.bags):
        documents_elsewhere = None if rows.elsewhere is None else (rows.elsewhere.documents[t], rows.elsewhere.rows)
        texts, says = learn_words(
            bags,
            rows.labels,
            rows.weights,
            shares,
            n_classes,
            documents_elsewhere,
            correct=correct,
            seed=seed,
            threads=threads,
        )
        learned.append(texts)
        evidence.append(says)
    return tuple(learned), replace(rows, extra=np.concatenate([np.stack(evidence, axis=1), rows.extra], axis=1))


# Weights --------------------------------------------------------------------------------------------------------------


Fitted = tuple[Real, Real]  # weights and intercepts


def _fit_weights(evidence: EvidenceTables, start: Real | None) -> Fitted:
    """The weights, none below zero, and intercepts that make rows likeliest, each left out; under a ridge."""
    rows = evidence.rows
    k = evidence.n_classes
    sizes = len(evidence.columns), len(evidence.layout.trends), len(evidence.pairs), rows.extra.shape[1]
    n = sum(sizes)
    ridge = np.repeat([RIDGE, PAIR_RIDGE, PAIR_RIDGE, RIDGE], sizes)
    sharing = np.repeat([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0]], sizes, axis=0)  # what they are pulled towards
    prior = np.log(evidence.prior)
    says = _says(evidence)

    def loss(z: Real) -> tuple[float, Real]:
        weights = z[:n]
        extra = z[n : n + k]
        shared = z[n + k :]
        value, slope = _core.weighed_slope(says, weights, prior + extra, rows.labels, rows.weights, evidence.threads)
        off = weights - sharing @ shared
        apart = shared - SHARED
        value += 0.5 * float(ridge @ off**2) + 0.5 * float(extra @ extra) + 0.5 * float(apart @ apart)
        slope[:n] += ridge * off
        slope[n:] += extra
        return value, np.concatenate([slope, apart - (ridge * off) @ sharing])

    if start is None:
        start = np.concatenate([0.7 * sharing @ SHARED, np.zeros(k), 0.7 * SHARED])

    def curvature() -> Real:
        matrix: Real = np.diag(np.concatenate([ridge, np.ones(k), 1.0 + ridge @ sharing]))
        matrix[:n, n + k :] = -ridge[:, None] * sharing
        matrix[n + k :, :n] = matrix[:n, n + k :].T
        matrix[: n + k, : n + k] += _curvature(says, rows.weights, start[:n], prior + start[n : n + k])
        return matrix

    bounded = np.repeat([True, False, True], [n, k, len(SHARED)])
    flat = FLAT * max(1.0, float(rows.weights.sum()) ** 0.5)
    minimum = minimise(loss, start, bounded, curvature, flat)
    return minimum[:n], minimum[n : n + k] + prior


def _curvature(says: Any, row_weights: Real, weights: Real, intercepts: Real) -> Real:
    """The Hessian of the loss by weights and intercepts, from the first rows, whose order is random."""
    n = len(weights)
    k = len(intercepts)
    n_rows = CURVATURE_CELLS // max(n, 1) * FEW_CLASSES // max(k, FEW_CLASSES)
    sampled_evidence = says[: max(n_rows, 1)].astype(np.float64)
    sampled_weights = row_weights[: len(sampled_evidence)] * (len(says) / max(len(sampled_evidence), 1))
    scores = np.zeros((len(sampled_evidence), k)) + intercepts
    scores[:, :-1] += sampled_evidence @ weights
    shares = _softmax(scores)
    mean = np.einsum("rc,rcn->rn", shares[:, :-1], sampled_evidence)
    weighted_shares = sampled_weights[:, None] * shares
    matrix = np.zeros((n + k, n + k))
    evidence_rows = sampled_evidence.reshape(len(sampled_evidence) * (k - 1), n)
    matrix[:n, :n] = (evidence_rows * weighted_shares[:, :-1].reshape(-1, 1)).T @ evidence_rows - (
        mean * sampled_weights[:, None]
    ).T @ mean
    matrix[:n, n:-1] = np.einsum("rc,rcn->nc", weighted_shares[:, :-1], sampled_evidence)
    matrix[:n, n:] -= mean.T @ weighted_shares
    matrix[n:, :n] = matrix[:n, n:].T
    matrix[n:, n:] = np.diag(weighted_shares.sum(axis=0)) - shares.T @ weighted_shares
    return matrix


def _says(evidence: EvidenceTables) -> Any:
    """What each column, pair and given evidence says of each row left out, beyond the last class: (rows, classes − 1, terms)."""
    rows = evidence.rows
    k = evidence.n_classes
    n_extra = evidence.rows.extra.shape[1]
    terms = evidence.layout.terms
    if evidence.columns and not evidence.goes_by_rows:
        table = evidence.table(without_own_row=True)
        says = terms.evidence(rows.codes, table, k, rows.labels, n_extra, evidence.threads)
    else:
        says = np.zeros((len(rows.labels), k - 1, len(terms) + n_extra), dtype=np.float32)
        for t, of_rows in enumerate(evidence.each_row_left_out()):
            says[:, :, t] = of_rows[:, :-1] - of_rows[:, -1:]
    if n_extra:
        says[:, :, -n_extra:] = (rows.extra[:, :, :-1] - rows.extra[:, :, -1:]).transpose(0, 2, 1)
    return says


def _scores(
    evidence: EvidenceTables, weights: Real, intercepts: Real, rows: WeighedRows, without_own_row: bool
) -> Real:
    """Weighed scores of rows, (rows, classes): of those that were counted each left out (``own``), or of others."""
    n_extra = rows.extra.shape[1]
    column_scores = np.einsum("rgc,g->rc", rows.extra, weights[len(weights) - n_extra :])
    if not evidence.columns:
        return np.asarray(intercepts + column_scores)
    weights = weights[: len(weights) - n_extra]
    if without_own_row and evidence.goes_by_rows:
        evidence_by_weight = zip(weights, evidence.each_row_left_out(), strict=True)
        return np.asarray(sum((w * says for w, says in evidence_by_weight), intercepts + column_scores))
    labels = rows.labels if without_own_row else None
    table = evidence.table(without_own_row)
    terms = evidence.layout.terms
    scores = terms.scores(rows.codes, table, weights, intercepts, labels, evidence.threads)
    return scores + column_scores if n_extra else scores


# Pairs ----------------------------------------------------------------------------------------------------------------


def _choose_pairs(evidence: EvidenceTables, weights: Real, intercepts: Real) -> list[WeighedPair]:
    """The pairs that say more than both columns, by a score test of their weight."""
    columns = evidence.columns
    n = len(evidence.columns)
    usable = [j for j in range(n) if columns[j].n_fine > 2]
    if n_columns_to_pair(len(usable)) < len(usable):
        best = np.argsort(-evidence.gains()[usable], kind="stable")[: n_columns_to_pair(len(usable))]
        usable = sorted(usable[k] for k in best.tolist())
    most = most_pair_cells(evidence.n_classes)
    every = [(a, b) for a, b in combinations(usable, 2) if columns[a].n_fine * columns[b].n_fine <= most]
    if not every:
        return []
    scores = _scores(evidence, weights, intercepts, evidence.rows, without_own_row=True)
    gain, strength, slope, curvature = evidence.pair_gains(every, _softmax(scores)).T
    test_statistic = np.where(slope > 0, slope**2 / (2.0 * curvature + 1e-9), 0.0)
    kept = np.flatnonzero((gain > 0) & (test_statistic > np.log(len(every))))
    kept = kept[np.argsort(-test_statistic[kept], kind="stable")][: 2 * n]
    return [WeighedPair(*every[k], float(strength[k])) for k in kept.tolist()]


def n_columns_to_pair(n_columns: int) -> int:
    """Returns how many columns to pair with each other, so that at most MOST_PAIRS pairs are examined."""
    return min(n_columns, int((1.0 + (1.0 + 8.0 * MOST_PAIRS) ** 0.5) / 2.0))


def _softmax(scores: Real) -> Real:
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))


# Corrections ----------------------------------------------------------------------------------------------------------


class _TableFold:
    """A fold: rows to count and correct, and rows held out with their scores so far; ``across`` is what both have in common."""

    def __init__(
        self, evidence: EvidenceTables, fitted: Fitted, inside: Real, outside: Real, alike: Real | None, seed: int
    ) -> None:
        rows, self.held_out = evidence.rows.weighing(inside), evidence.rows.weighing(outside)
        counted, self.across = evidence.of_rows(rows), None
        if alike is not None:
            learned = np.flatnonzero(inside > 0)
            tested = np.flatnonzero(outside > 0)
            alike, self.across = alike[np.ix_(learned, learned)], alike[np.ix_(tested, learned)]
        offsets = _scores(counted, *fitted, rows, without_own_row=True)
        self.plain = _scores(counted, *fitted, self.held_out, without_own_row=False)
        self.learner = CellLearner(evidence.layout.corrections, rows, offsets, alike, seed)

    def scores(self, strength: float, threads: int) -> Real:
        """The scores of rows held out, with corrections of this strength."""
        if not strength:
            return self.plain
        learner = self.learner
        learner.improve(strength, PASSES)
        if self.across is not None:
            return np.asarray(self.plain + np.einsum("ij,jc->ic", self.across, learner.surprise))
        ones = np.ones(len(learner.terms))
        none = np.zeros(self.plain.shape[1])
        return self.plain + learner.terms.scores(self.held_out.codes, learner.table.ravel(), ones, none, None, threads)


def _choose_strength(
    evidence: EvidenceTables, fitted: Fitted, alike: Real | None, seed: int
) -> tuple[float, float, tuple[tuple[float, float], ...]]:
    """Chooses C by out-of-fold log loss, with the temperature of those scores; cuts, pairs and weights stay."""
    rows = evidence.rows
    threads = evidence.threads
    shares = [share for share in rows.folds(rows.n_folds).T if share.any() and (rows.weights - share).any()]
    if len(shares) < 2:
        return 0.0, 1.0, ()
    with ThreadPoolExecutor(max(1, min(threads, len(shares)))) as pool:

        def fold_of(share: Real) -> _TableFold:
            return _TableFold(evidence, fitted, rows.weights - share, share, alike, seed)

        folds = list(pool.map(fold_of, shares))
        weights = np.concatenate([fold.held_out.weights for fold in folds])
        labels = np.concatenate([fold.held_out.labels for fold in folds])
        threads_each = max(1, threads // len(folds))  # passes take one, and scoring what is left

        def scores(strength: float) -> Real:
            return np.concatenate(list(pool.map(lambda fold: fold.scores(strength, threads_each), folds)))

        steps = StrengthSearch((0.0, *STRENGTHS), _loss).follow(scores, labels, weights)
    best = least_loss(steps)
    total = float(weights.sum())
    losses = tuple((step.strength, step.loss / total) for step in steps)
    return best.strength, _temperature(best.scores, labels, weights, best.loss), losses


def _loss(scores: Real, labels: Any, weights: Real) -> float:
    highest = reduce(np.maximum, scores.T)
    total = highest + np.log(np.exp(scores - highest[:, None]).sum(axis=1))
    return float(weights @ (total - scores[np.arange(len(labels)), labels]))


def _temperature(scores: Real, labels: Any, weights: Real, loss: float) -> float:
    """What scores are multiplied by to lose least, 1 at most: weights were learned with these rows in view, so that they look
    better than they are; and 1 where less gains next to nothing."""
    least_tempered_loss, temperature = _core.tempered(scores.astype(np.float32), labels, weights, 0.0, 1.0)
    return max(temperature, COOLEST) if loss - least_tempered_loss > GAIN else 1.0
