"""Corrections of cells and of words, for classes and for labels: how they are learned, and how far they may go.

A learner starts from the scores of its rows. It visits them one by one, and a row adds to its terms what it surprised by (dual
coordinate ascent). C says how far corrections may go. It is chosen by the loss of rows held out, C after C, each begun from the
corrections of the one before.
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
Orders = list[NDArray[np.uint32]]  # in which rows are visited, one for each pass

ENOUGH = 1e-3  # a change of μ, on average, at which passes end
COMMON = 0.3  # what all texts have in common counts so much in each
NEVER = -100.0  # log-odds of what fills up a lane


class CorrectionLearner(ABC):
    """Learns corrections from rows by dual coordinate ascent, starting from zero.

    ``offsets`` are the scores that rows start from. ``table`` has the corrections and changes in each pass.
    """

    def __init__(self, offsets: Real, weights: Real, table: Any, seed: int) -> None:
        self.offsets = offsets
        self.weights = weights
        self.table = table
        self.seed = seed
        self.strength = 0.0

    def improve(self, strength: float, passes: int) -> None:
        """Runs passes with this C, starting from the current corrections, until a pass changes almost nothing."""
        if self.strength:
            self.table *= strength / self.strength
        self.strength = strength
        rng = np.random.default_rng(self.seed)
        self.visit([rng.permutation(len(self.weights)).astype(np.uint32) for _ in range(passes)])

    @abstractmethod
    def visit(self, orders: Orders) -> None:
        """Runs passes over the rows."""

    @abstractmethod
    def corrections(self) -> Any:
        """Returns the corrections of all terms (terms × classes or labels)."""


class CellLearner(CorrectionLearner):
    """Learns corrections of cells from rows with one class each.

    ``alike`` is what any two rows have in common. It is used if there are more terms than rows: passes then work on
    rows and do not touch cells.
    """

    def __init__(self, terms: _core.Terms, rows: WeighedRows, offsets: Real, alike: Real | None, seed: int) -> None:
        n_cells = 0 if alike is not None else terms.n_cells
        n_classes = offsets.shape[1]
        super().__init__(offsets, rows.weights, np.zeros((n_cells, n_classes)), seed)
        self.terms = terms
        self.rows = rows
        self.alike = alike
        self.truth = np.eye(n_classes)[rows.labels]
        self.mu = self.truth.copy()

    def visit(self, orders: Orders) -> None:
        passes = _core.Passes(self.strength * self.weights, self.offsets, orders, ENOUGH)
        if self.alike is None:
            self.terms.correct(self.rows.codes, passes, self.mu, self.table)
        else:
            _core.correct_alike(self.alike, self.rows.labels, passes, self.mu)

    @property
    def surprise(self) -> Real:
        """Returns C (y − μ) of each row."""
        return np.asarray((self.strength * self.weights)[:, None] * (self.truth - self.mu))

    def corrections(self) -> Real:
        return np.asarray(self.table if self.alike is None else self.terms.spread(self.rows.codes, self.surprise))


@dataclass(frozen=True)
class WordValues:
    """The value of each word in its text, and how much its correction can vary ((words + 1) × classes).

    The last correction is common to all texts.
    """

    bags: Bags
    values: Real
    variances: Reals32

    @classmethod
    def of(cls, bags: Bags, values: Real, says: Reals32, telling: float) -> WordValues:
        """Lets the corrections of words with strong evidence vary more, by a share ``telling``."""
        squares = says**2
        share = bags.squares(values)
        mean = float((share @ squares).mean()) / max(float(share.sum()), 1e-300)
        variances = np.ones((bags.n_words + 1, says.shape[1]), dtype=np.float32)
        if mean > 0:
            variances[:-1] = (1.0 - telling) + np.float32(telling / mean) * squares
        return cls(bags, values, variances)


class WordLearner(CorrectionLearner):
    """Learns corrections of words from texts with one class each. ``truth`` is 1 for the class of a text (texts ×
    classes).
    """

    def __init__(
        self, words: WordValues, truth: NDArray[Any], offsets: Real, weights: Real, seed: int, threads: int
    ) -> None:
        own_variances = words.bags.scores(words.values**2, words.variances[:-1], threads) + COMMON**2
        variances = self.lay_out(words.variances, 1.0)
        self.both = np.stack([np.zeros_like(variances), variances], axis=-2)  # corrections, and how much each may vary
        super().__init__(self.lay_out(offsets, NEVER), weights, self.both[..., 0, :], seed)
        self.bags, self.values, self.threads = words.bags, words.values.astype(np.float32), threads
        self.own = self.lay_out(own_variances.astype(np.float32), 1.0)
        self.mu = self.lay_out(truth.astype(np.float32), 0.0)

    def visit(self, orders: Orders) -> None:
        width = self.own.shape[-1]
        offsets, own = self.offsets.reshape(-1, width), self.own.reshape(-1, width)
        self.visit_texts(own, _core.Passes(self.strength * self.weights, offsets, orders, ENOUGH))

    def lay_out(self, table: Any, rest: float) -> Any:
        """Arranges a table of classes (n × classes) for passes."""
        return table

    def visit_texts(self, own: Reals32, passes: _core.Passes) -> None:
        self.bags.correct(self.values, COMMON, own, passes, self.mu, self.both)

    def corrections(self) -> Reals32:
        return np.ascontiguousarray(self.table)


class LabelLearner(WordLearner):
    """Learns corrections of words from texts with several labels, 8 or 16 labels at a time."""

    def __init__(
        self, words: WordValues, truth: NDArray[Any], offsets: Real, weights: Real, seed: int, threads: int
    ) -> None:
        self.n_labels = truth.shape[1]
        super().__init__(words, truth, offsets, weights, seed, threads)

    def lay_out(self, table: Any, rest: float) -> Any:
        """Arranges a table as lanes of labels (lanes × n × labels of a lane). ``rest`` fills the last lane."""
        n, k = table.shape
        width = 8 if k <= 8 else 16
        wide = np.full((n, -(-k // width) * width), rest, dtype=table.dtype)
        wide[:, :k] = table
        return np.ascontiguousarray(wide.reshape(n, -1, width).transpose(1, 0, 2))

    def visit_texts(self, own: Reals32, passes: _core.Passes) -> None:
        self.bags.correct_labels(self.values, COMMON, own, passes, self.mu, self.both, self.threads)

    def corrections(self) -> Reals32:
        every = self.table.transpose(1, 0, 2).reshape(self.bags.n_words + 1, -1)
        return np.ascontiguousarray(every[:, : self.n_labels])


# The choice of C ------------------------------------------------------------------------------------------------------


Scores = Callable[[float], Any]  # of rows held out with corrections of this C, asked for C after C
Loss = Callable[[Any, Any, Real], float]  # of scores, from what is true of rows and what they weigh


class Fold(Protocol):
    """The training rows and the held-out rows of a fold, with the truth and the weights of the latter."""

    @property
    def truth(self) -> Any: ...
    @property
    def held_out(self) -> Real: ...
    def correct(self, setting: Any) -> Scores:
        """Returns the scores of held-out rows under a setting."""


@dataclass(frozen=True)
class TriedStrength:
    """The scores and the loss of held-out rows for one C."""

    strength: float
    loss: float
    scores: Any


@dataclass(frozen=True)
class StrengthSearch:
    """Tries values of C in turn until the held-out loss has not improved for several steps."""

    strengths: Sequence[float]
    loss: Loss
    patience: int = 2

    def follow(self, scores: Scores, truth: Any, weights: Real) -> list[TriedStrength]:
        """Yields a step for each C that is tried."""
        steps = list[TriedStrength]()
        best = np.inf
        worse = 0
        for strength in self.strengths:
            corrected = scores(strength)
            loss = self.loss(corrected, truth, weights)
            steps.append(TriedStrength(strength, loss, corrected))
            worse = 0 if loss < best else worse + 1
            best = min(best, loss)
            if worse == self.patience:
                break
        return steps

    def together(self, folds: Sequence[Fold], paths: Sequence[list[TriedStrength]]) -> list[TriedStrength]:
        """Merges the steps that every fold has taken, with the scores of all folds."""
        truth = np.concatenate([fold.truth for fold in folds])
        weights = np.concatenate([fold.held_out for fold in folds])
        joined = list[TriedStrength]()
        for steps in zip(*paths, strict=False):
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
    settle: bool = False,
) -> tuple[S, list[TriedStrength]]:
    """Chooses the setting with the lowest held-out loss, each with its best C; also returns every C that all folds
    tried with it.

    All settings are tried on the first fold, and the ``n_kept`` best on all folds. With ``settle``, the first fold also
    decides C.
    """
    first, *other_folds = folds
    n_left = n_kept * len(other_folds)
    with ThreadPoolExecutor(max(1, threads)) as pool, Steps() as steps:
        steps.begin("", len(settings) / (len(settings) + n_left))
        raced = _follow_each(pool, search, [(setting, first) for setting in settings], steps)
        order = np.argsort([least_loss(path).loss for path in raced], kind="stable")
        kept = sorted(order[:n_kept].tolist())
        if settle:
            raced = [[least_loss(path)] for path in raced]
            search = StrengthSearch([raced[kept[0]][0].strength], search.loss)
        steps.begin("", 1.0)
        rest_paths = iter(
            _follow_each(pool, search, [(settings[k], fold) for k in kept for fold in other_folds], steps)
        )
    tried = [(settings[k], search.together(folds, [raced[k], *islice(rest_paths, len(other_folds))])) for k in kept]
    return min(tried, key=lambda pair: least_loss(pair[1]).loss)


def _follow_each(
    pool: ThreadPoolExecutor, search: StrengthSearch, jobs: list[tuple[Any, Fold]], steps: Steps
) -> list[list[TriedStrength]]:
    """The strengths that are tried for each setting and fold; moves the progress on."""

    def follow(job: tuple[Any, Fold]) -> list[TriedStrength]:
        setting, fold = job
        return search.follow(fold.correct(setting), fold.truth, fold.held_out)

    paths = []
    for path in pool.map(follow, jobs):
        paths.append(path)
        steps.advance(len(paths) / len(jobs))
    return paths
