"""Corrections of cells and of words, for classes and for labels, and the choice of C, the strength of the corrections.

A learner starts from the weighed scores of its rows. It visits one row after the other and adds C · (y − μ) of the row to the
corrections of its terms: dual coordinate ascent. C is chosen by held-out loss. Values of C are tried in ascending order, and
each search starts from the corrections of the one before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Real
from banbury.families.bags.lexicon import Bags
from banbury.progress import Steps
from banbury.weighing.rows import WeighedRows

S = TypeVar("S")
Reals32 = NDArray[np.float32]

# Of many rows, a pass visits so many neighbours one after another, so that the processor reads them ahead: of 133,334 rows with
# 64 cells, a visit takes 0.47 µs with runs of 1, 0.28 with 16 and 0.25 with 64. Fewer rows stay in its cache.
ROWS_PER_RUN = 16
ROWS_IN_CACHE = 1 << 15
LEAST_CHANGE = 1e-3  # passes end when the mean change of μ is smaller
COMMON_WORD_VALUE = 0.3  # the value of the bias feature, which all texts share
IMPOSSIBLE_LOG_ODDS = -100.0  # offsets of the labels that fill up the last lane


class CorrectionLearner(ABC):
    """Learns corrections from rows by dual coordinate ascent, starting from zero.

    ``offsets`` are the scores that rows start from (rows × classes), and ``weights`` the weight of each row. Passes
    change the corrections in ``table`` (terms × classes). ``strength`` is C. ``seed`` decides the order in which passes
    visit rows.
    """

    def __init__(self, offsets: Real, weights: Real, table: Any, seed: int) -> None:
        """Starts with corrections of 0.

        Args:
            offsets: The scores that rows start from (rows × classes), perhaps laid out in lanes of labels.
            weights: The weight of each row.
            table: Where the corrections are stored (terms × classes), all 0; passes change them in place.
            seed: Decides the order in which passes visit rows.
        """
        self.offsets = offsets
        self.weights = weights
        self.table = table
        self.seed = seed
        self.strength = 0.0  # C of the last passes; 0 before the first

    def improve(self, strength: float, n_passes: int) -> None:
        """Runs at most ``n_passes`` passes with C = ``strength``, starting from the current corrections, until a pass
        changes almost nothing. Changes the corrections in ``table``.
        """
        if self.strength:  # C of the passes before
            self.table *= strength / self.strength
        self.strength = strength
        rng = np.random.default_rng(self.seed)
        orders = [_shuffle_rows(len(self.weights), rng) for _ in range(n_passes)]  # row numbers, one array per pass
        offsets = self.offsets.reshape(-1, self.offsets.shape[-1])  # rows × classes; of labels, lane after lane
        self.run(_core.Passes(strength * self.weights, offsets, orders, LEAST_CHANGE))

    @abstractmethod
    def run(self, passes: _core.Passes) -> None:
        """Runs passes over the rows, which change μ, P(class | row), and the corrections in place."""

    @abstractmethod
    def corrections(self) -> Any:
        """Returns the corrections of all terms (terms × classes or labels)."""


def _shuffle_rows(n_rows: int, rng: np.random.Generator) -> NDArray[np.uint32]:
    """Returns the numbers of all ``n_rows`` rows in a random order, drawn with ``rng``; of many rows, runs of
    neighbours stay together.
    """
    run_length = ROWS_PER_RUN if n_rows > ROWS_IN_CACHE else 1
    first_rows = rng.permutation(-(-n_rows // run_length)) * run_length  # of each run
    row_numbers = (first_rows[:, None] + np.arange(run_length)).ravel()  # the last run may go beyond the last row
    return row_numbers[row_numbers < n_rows].astype(np.uint32)


class CellLearner(CorrectionLearner):
    """Learns corrections of cells from rows with one class each.

    ``truth`` is 1 for the class of a row, and ``mu`` is P(class | row) (both rows × classes). Passes change ``mu`` until
    it agrees with the corrections. If there are more terms than rows, ``shared_cells`` has the number of cells that any two
    rows share (rows × rows); passes then work on pairs of rows, and the corrections of cells are computed at the end.
    """

    def __init__(
        self, terms: _core.Terms, rows: WeighedRows, offsets: Real, shared_cells: Real | None, seed: int
    ) -> None:
        """Starts with corrections of 0.

        Args:
            terms: Says which cells of a row are corrected.
            rows: The rows to learn from, with the cell of each in each column.
            offsets: The scores that rows start from (rows × classes).
            shared_cells: The number of cells that any two rows share (rows × rows) if passes work on pairs of rows;
                None if they work on cells.
            seed: Decides the order in which passes visit rows.
        """
        n_cells = 0 if shared_cells is not None else terms.n_cells  # 0: corrections are computed at the end
        n_classes = offsets.shape[1]
        super().__init__(offsets, rows.weights, np.zeros((n_cells, n_classes)), seed)
        self.terms = terms
        self.rows = rows
        self.shared_cells = shared_cells
        self.truth = np.eye(n_classes)[rows.labels]  # 1 for the class of each row (rows × classes)
        self.mu = self.truth.copy()  # P(class | row), which passes change

    def run(self, passes: _core.Passes) -> None:
        """Runs passes over the rows, which change ``mu``, P(class | row), and, unless they work on pairs of rows
        (``shared_cells``), the corrections in ``table``.
        """
        if self.shared_cells is None:
            self.terms.correct(self.rows.codes, passes, self.mu, self.table)
        else:
            _core.correct_alike(self.shared_cells, self.rows.labels, passes, self.mu)

    @property
    def scaled_residuals(self) -> Real:
        """C (y − μ) of each row, times its weight (rows × classes): y is 1 for its class, and μ is P(class | row)."""
        return (self.strength * self.weights)[:, None] * (self.truth - self.mu)

    def corrections(self) -> Real:
        """Returns the corrections of all cells (cells × classes). If passes worked on pairs of rows, they are computed
        now, as the sums of the scaled residuals of the rows in each cell.
        """
        return self.table if self.shared_cells is None else self.terms.spread(self.rows.codes, self.scaled_residuals)


@dataclass(frozen=True)
class WordValues:
    """The value of each word in its text, and the prior variances of the corrections ((words + 1) × classes). The last
    row is for the bias feature that all texts share.
    """

    bags: Bags  # the words of each text
    values: Real  # of each word in each text, text by text
    variances: Reals32

    @classmethod
    def of(cls, bags: Bags, values: Real, evidence: Reals32, variance_by_evidence: float) -> WordValues:
        """Returns these values with the variances (1 − β) + β · evidence² / mean evidence², so that the corrections of
        words with strong evidence vary more.

        Args:
            bags: The words of each text.
            values: The value of each word in its text.
            evidence: The evidence of each word (words × classes).
            variance_by_evidence: β, from 0 to 1.
        """
        squares = evidence**2  # words × classes
        squared_values = bags.squares(values)  # summed over texts, by word
        mean_square = float((squared_values @ squares).mean()) / max(float(squared_values.sum()), 1e-300)
        variances = np.ones((bags.n_words + 1, evidence.shape[1]), dtype=np.float32)
        if mean_square > 0:
            variances[:-1] = (1.0 - variance_by_evidence) + np.float32(variance_by_evidence / mean_square) * squares
        return cls(bags, values, variances)


class WordLearner(CorrectionLearner):
    """Learns corrections of words from texts with one class each. ``mu`` is P(class | text) (texts × classes), which
    passes change until it agrees with the corrections.
    """

    def __init__(
        self, words: WordValues, truth: NDArray[Any], offsets: Real, weights: Real, seed: int, threads: int
    ) -> None:
        """Starts with corrections of 0.

        Args:
            words: The values and variances of words.
            truth: 1 for the class, or for each label, of a text (texts × classes or labels).
            offsets: The scores that texts start from (texts × classes), or their log-odds (texts × labels).
            weights: The weight of each text.
            seed: Decides the order in which passes visit texts.
            threads: How many threads to use.
        """
        # The variance that the corrections give to the score of each text (texts × classes).
        text_variances = words.bags.scores(words.values**2, words.variances[:-1], threads) + COMMON_WORD_VALUE**2
        word_variances = self.lay_out(words.variances, padding=1.0)  # words + 1, the last for all texts
        # For each word, its corrections (row 0) and their variances (row 1), side by side in memory.
        self.corrections_and_variances = np.stack([np.zeros_like(word_variances), word_variances], axis=-2)
        super().__init__(
            self.lay_out(offsets, padding=IMPOSSIBLE_LOG_ODDS),
            weights,
            self.corrections_and_variances[..., 0, :],
            seed,
        )
        self.bags = words.bags
        self.values = words.values.astype(np.float32)
        self.n_classes = truth.shape[1]
        self.threads = threads
        laid_out_variances = self.lay_out(text_variances.astype(np.float32), padding=1.0)
        self.text_variances = laid_out_variances.reshape(-1, laid_out_variances.shape[-1])
        self.mu = self.lay_out(truth.astype(np.float32), padding=0.0)

    def lay_out(self, table: Any, padding: float) -> Any:
        """Returns a table of words or texts (n × classes) as passes need it: unchanged. ``padding``, which fills up
        labels, is not used for classes.
        """
        return table

    def run(self, passes: _core.Passes) -> None:
        """Runs passes over the texts, which change ``mu`` and the corrections in ``corrections_and_variances``."""
        self.bags.correct(
            self.values, COMMON_WORD_VALUE, self.text_variances, passes, self.mu, self.corrections_and_variances
        )

    def corrections(self) -> Reals32:
        """Returns the corrections of words and, in the last row, of the bias feature ((words + 1) × classes)."""
        return np.ascontiguousarray(self.table)


class LabelLearner(WordLearner):
    """Learns corrections of words from texts with several labels, 8 or 16 labels at a time."""

    def lay_out(self, table: Any, padding: float) -> Any:
        """Returns a table (n × labels) arranged for vector instructions, as lanes of 8 or 16 labels (lanes × n × labels
        of a lane). ``padding`` fills up the last lane.
        """
        n_rows, n_labels = table.shape
        lane_width = 8 if n_labels <= 8 else 16
        padded = np.full((n_rows, -(-n_labels // lane_width) * lane_width), padding, dtype=table.dtype)
        padded[:, :n_labels] = table
        return np.ascontiguousarray(padded.reshape(n_rows, -1, lane_width).transpose(1, 0, 2))

    def run(self, passes: _core.Passes) -> None:
        """Runs passes over the texts, several lanes of labels in parallel. They change ``mu`` and the corrections in
        ``corrections_and_variances``.
        """
        self.bags.correct_labels(
            self.values,
            COMMON_WORD_VALUE,
            self.text_variances,
            passes,
            self.mu,
            self.corrections_and_variances,
            self.threads,
        )

    def corrections(self) -> Reals32:
        """Returns the corrections of words and, in the last row, of the bias feature ((words + 1) × labels)."""
        # The table has lanes × (words + 1) × labels of a lane; the last lane may be padded.
        all_lanes = self.table.transpose(1, 0, 2).reshape(self.bags.n_words + 1, -1)
        return np.ascontiguousarray(all_lanes[:, : self.n_classes])


# The choice of C ------------------------------------------------------------------------------------------------------


ScoreByStrength = Callable[[float], Any]  # from C to the scores of the held-out rows; called with ascending values of C
Loss = Callable[[Any, Any, Real], float]  # from scores, true classes or labels, and weights of rows to the loss


class Fold(Protocol):
    """The training rows and the held-out rows of a fold. ``truth`` has the classes or labels of the held-out rows, and
    ``held_out_weights`` their weights.
    """

    @property
    def truth(self) -> Any:
        """The class number of each held-out row, or which labels it has (rows × labels)."""

    @property
    def held_out_weights(self) -> Real:
        """The weight of each held-out row."""

    def correct(self, setting: Any) -> ScoreByStrength:
        """Returns a function of C that scores the held-out rows (rows × classes or labels) with corrections of that C,
        under a setting, which says how words count.
        """


@dataclass(frozen=True)
class TriedStrength:
    """The scores and the loss of held-out rows for one C."""

    strength: float  # C
    loss: float  # of the held-out rows
    scores: Any  # rows × classes or labels; a list of such arrays if several folds were joined


@dataclass(frozen=True)
class StrengthSearch:
    """Tries values of C in turn until the held-out loss has not improved for ``patience`` steps. ``loss`` computes it
    from scores, the truth and weights.
    """

    strengths: Sequence[float]  # values of C, ascending
    loss: Loss
    patience: int = 2

    def follow(self, score_by_strength: ScoreByStrength, truth: Any, weights: Real) -> list[TriedStrength]:
        """Tries one C after another and returns the scores and the loss of each that was tried, in order.

        ``score_by_strength`` computes the scores of held-out rows for a C, ``truth`` has their classes or labels, and ``weights``
        their weights.
        """
        tried = list[TriedStrength]()
        least_so_far = np.inf  # loss
        n_worse = 0  # the last values of C, one after another, whose loss was not the least so far
        for strength in self.strengths:
            scores = score_by_strength(strength)
            loss = self.loss(scores, truth, weights)
            tried.append(TriedStrength(strength, loss, scores))
            n_worse = 0 if loss < least_so_far else n_worse + 1
            least_so_far = min(least_so_far, loss)
            if n_worse == self.patience:
                break
        return tried

    def join_folds(self, folds: Sequence[Fold], paths: Sequence[list[TriedStrength]]) -> list[TriedStrength]:
        """Returns each C that all folds tried, with the scores of each fold (a list) and the loss of all together.
        ``paths`` has what ``follow`` returned for each fold.
        """
        truth = np.concatenate([fold.truth for fold in folds])  # of the held-out rows of all folds
        weights = np.concatenate([fold.held_out_weights for fold in folds])
        joined = list[TriedStrength]()
        for steps in zip(*paths, strict=False):  # one step of each fold, all with the same C
            scores = [step.scores for step in steps]
            joined.append(TriedStrength(steps[0].strength, self.loss(np.concatenate(scores), truth, weights), scores))
        return joined


def least_loss(steps: Sequence[TriedStrength]) -> TriedStrength:
    """Returns the first of the steps with the lowest loss."""
    return min(steps, key=lambda step: step.loss)


def choose(
    folds: Sequence[Fold],
    settings: Sequence[S],
    search: StrengthSearch,
    n_kept: int,
    threads: int,
    keeps_first_strength: bool = False,
) -> tuple[S, list[TriedStrength]]:
    """Returns the setting with the lowest held-out loss, each with its best C, and every C that all folds tried with
    it, with the scores of each fold and their loss.

    All settings are tried on the first fold, and the ``n_kept`` best on all folds.

    Args:
        folds: The training rows and held-out rows of each fold.
        settings: The settings to choose from, which say how words count.
        search: Says which values of C are tried.
        n_kept: How many settings are tried on all folds.
        threads: How many threads to use.
        keeps_first_strength: Whether the first fold also decides C.
    """
    first_fold, *other_folds = folds
    n_runs_left = n_kept * len(other_folds)
    with ThreadPoolExecutor(max(1, threads)) as pool, Steps() as steps:  # ``steps`` shows the progress
        steps.begin("", len(settings) / (len(settings) + n_runs_left))
        # For each setting, what each C led to.
        first_paths = _follow_each(pool, search, [(setting, first_fold) for setting in settings], steps)
        order_by_loss = np.argsort([least_loss(path).loss for path in first_paths], kind="stable")
        kept_numbers = sorted(order_by_loss[:n_kept].tolist())  # of the settings that are tried on all folds
        if keeps_first_strength:
            first_paths = [[least_loss(path)] for path in first_paths]
            search = StrengthSearch([first_paths[kept_numbers[0]][0].strength], search.loss)
        steps.begin("", 1.0)
        jobs = [(settings[number], fold) for number in kept_numbers for fold in other_folds]
        other_paths = iter(_follow_each(pool, search, jobs, steps))
    tried = [
        (settings[number], search.join_folds(folds, [first_paths[number], *islice(other_paths, len(other_folds))]))
        for number in kept_numbers
    ]
    return min(tried, key=lambda setting_and_steps: least_loss(setting_and_steps[1]).loss)


def _follow_each(
    pool: ThreadPoolExecutor, search: StrengthSearch, jobs: list[tuple[Any, Fold]], steps: Steps
) -> list[list[TriedStrength]]:
    """Tries values of C, as ``search`` says, for each job, a setting and a fold, in the threads of ``pool``. Returns
    what each job tried, in the order of the jobs, and reports progress to ``steps``.
    """

    def follow(job: tuple[Any, Fold]) -> list[TriedStrength]:
        """Returns each C that was tried for one job (a setting and a fold), with the scores and the loss of the
        held-out rows.
        """
        setting, fold = job
        return search.follow(fold.correct(setting), fold.truth, fold.held_out_weights)

    paths = []
    for path in pool.map(follow, jobs):
        paths.append(path)
        steps.advance(len(paths) / len(jobs))
    return paths
