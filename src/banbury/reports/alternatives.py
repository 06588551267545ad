"""What else could be made of the same rows, each tried over the same folds: a next step is told where it was measured."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Int
from banbury.families.column_tree import tree_of_columns
from banbury.quality.curves import spread
from banbury.quality.recipes import Calibrated, Plain, Recipe, Weighed
from banbury.quality.tuning import Tuned
from banbury.quality.validation import Validation, default_folds, validate
from banbury.rows.labelled import MemoryRows
from banbury.weighing import FEWEST_ROWS

MOST_ROWS = 10_000  # that are tried; of more, so many, every class alike
# Rows × columns for which families are chosen anew within each fold; of one column of text any number.
MOST_CELLS = 2_000
BETTER = 0.02  # of the log loss must be gained to speak of it


@dataclass(frozen=True)
class Alternative:
    """Another way to learn from the rows: how to request it, and its score on held-out rows."""

    name: str
    option: str  # of `banbury fit`
    python: str
    accuracy: float
    standard_error: float | None
    log_loss: float

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        return asdict(self)


@dataclass(frozen=True)
class Alternatives:
    """Recipes that were tried over the same folds: first the current one, then the others by log loss, best first."""

    n_rows: int
    folds: int
    now: Alternative
    others: tuple[Alternative, ...]

    @property
    def better(self) -> tuple[Alternative, ...]:
        """The recipes with a clearly lower log loss than the current one, whose accuracy is not significantly lower."""
        error = self.now.standard_error or 0.0
        return tuple(
            alternative
            for alternative in self.others
            if alternative.log_loss < (1.0 - BETTER) * self.now.log_loss
            and alternative.accuracy >= self.now.accuracy - 2 * error
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        return asdict(self)


def alternatives(
    rows: MemoryRows, now: Recipe, validation: Validation, *, but: Collection[str] = (), seed: int = 0
) -> Alternatives | None:
    """Tries other recipes on labelled rows; returns None if there are too few rows for folds.

    The folds are those of ``validation``, or fewer if weighing would take long. ``but`` lists options that are not
    tried.
    """
    some = np.flatnonzero(rows.labels >= 0)
    n_rows = len(some)
    if n_rows > MOST_ROWS:
        some = np.sort(spread(rows.labels, np.random.default_rng(seed))[:MOST_ROWS])
    folds = min(validation.n_folds, default_folds(len(some), [Weighed()]))
    if folds < 2 or len(rows.classes) < 2:
        return None
    trial = _Trial(rows, some, folds, seed)
    method = Calibrated(now, "temperature") if isinstance(now, Plain) else None
    first = validation if (len(some), folds) == (n_rows, validation.n_folds) else trial.judge(now)
    plain = "bb.NaiveBayesClassifier"
    named = "families chosen for each column"
    ways: tuple[tuple[str, str, str, Callable[[], Validation | None]], ...] = (
        ("weighed evidence", "--weigh", "bb.EvidenceClassifier()", trial.judge_weighing),
        (
            "the same, calibrated",
            "--calibrate temperature",
            f'{plain}(calibrate="temperature")',
            lambda: None if method is None else trial.judge(method),
        ),
        (named, "--features choose", f'{plain}(features="choose")', trial.judge_chosen_families),
        ("a tree of dependent columns", "--tan", "bb.TANClassifier()", trial.judge_tree),
    )
    tried = [
        alternative
        for name, option, python, way in ways
        if option not in but
        for alternative in _try_way((name, option, python), way)
    ]
    as_it_is = _alternative(("as it is", "", ""), first)
    return Alternatives(len(some), folds, as_it_is, tuple(sorted(tried, key=lambda alternative: alternative.log_loss)))


def _alternative(texts: tuple[str, str, str], evaluation: Any) -> Alternative:
    return Alternative(*texts, evaluation.accuracy.value, evaluation.accuracy.error, evaluation.log_loss)


def _try_way(texts: tuple[str, str, str], way: Callable[[], Validation | None]) -> Iterator[Alternative]:
    """How good a way is; nothing where the rows do not allow it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            validation = way()
    except errors.BanburyError:
        return
    if validation is not None:
        yield _alternative(texts, validation)


@dataclass(frozen=True)
class _Trial:
    """Some of the rows, dealt to folds."""

    rows: MemoryRows
    some: Int
    folds: int
    seed: int

    def judge(self, recipe: Recipe) -> Validation:
        rows = replace(recipe.under(self.rows).only(self.some), table=None)  # it counts as all rows settle
        return validate(rows, self.folds, [recipe], seed=self.seed)[0]

    def judge_weighing(self) -> Validation | None:
        return None if len(self.some) < FEWEST_ROWS else self.judge(Weighed(seed=self.seed))

    def judge_chosen_families(self) -> Validation | None:
        texts = [feature.reads_text for feature in self.rows.schema.features]
        if len(self.some) * len(texts) > MOST_CELLS and texts != [True]:
            return None
        return self.judge(Tuned.of("auto", "mean", None, "choose", None, self.seed, None))

    def judge_tree(self) -> Validation | None:
        rows = self.rows.under({"features": tree_of_columns()}).only(self.some)
        block, *beside = rows.schema.features or (None,)
        if block is None or beside or len(block.columns) < 2:
            return None
        return validate(replace(rows, table=None), self.folds, [Plain(seed=self.seed)], seed=self.seed)[0]
