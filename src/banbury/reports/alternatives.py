"""Tries other recipes on the same rows and folds, so that a report suggests only what was measured to help."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Int
from banbury.families.column_tree import tree_of_columns
from banbury.files.checking import JsonObject
from banbury.quality.curves import spread
from banbury.quality.recipes import Calibrated, Plain, Recipe, Weighed
from banbury.quality.tuning import Tuned
from banbury.quality.validation import Validation, default_folds, validate
from banbury.rows.labelled import MemoryRows
from banbury.weighing import FEWEST_ROWS

MOST_ROWS = 10_000  # larger data are sampled, stratified by class
# Most rows × columns for which families are chosen within each fold; no limit for a single text column.
MOST_CELLS = 2_000
MIN_GAIN = 0.02  # share of the log loss by which a better alternative must be lower


@dataclass(frozen=True)
class Alternative:
    """Another way to learn from the rows: how to request it, and its score on held-out rows."""

    name: str
    option: str  # for `banbury fit`
    python: str
    accuracy: float
    standard_error: float | None
    log_loss: float

    def to_dict(self) -> JsonObject:
        """Returns the fields as a dictionary for JSON."""
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
            if alternative.log_loss < (1.0 - MIN_GAIN) * self.now.log_loss
            and alternative.accuracy >= self.now.accuracy - 2 * error
        )

    def to_dict(self) -> JsonObject:
        """Returns the fields as a dictionary for JSON."""
        return asdict(self)


def alternatives(
    rows: MemoryRows, now: Recipe, validation: Validation, *, but: Collection[str] = (), seed: int = 0
) -> Alternatives | None:
    """Tries other recipes than ``now`` on labelled rows; returns None if there are too few rows for folds.

    ``validation``: that of ``now``. The folds are the same, or fewer if weighing would take long. ``but``: options of
    `banbury fit` that are not tried; ``seed``: for drawing a sample and folds.
    """
    sample = np.flatnonzero(rows.labels >= 0)
    n_rows = len(sample)
    if n_rows > MOST_ROWS:
        sample = np.sort(spread(rows.labels, np.random.default_rng(seed))[:MOST_ROWS])
    folds = min(validation.n_folds, default_folds(len(sample), [Weighed()]))
    if folds < 2 or len(rows.classes) < 2:
        return None
    trial = _Trial(rows, sample, folds, seed)
    calibrated = Calibrated(now, "temperature") if isinstance(now, Plain) else None
    current_validation = validation if (len(sample), folds) == (n_rows, validation.n_folds) else trial.judge(now)
    plain = "bb.NaiveBayesClassifier"
    families_name = "families chosen for each column"
    candidates: tuple[tuple[str, str, str, Callable[[], Validation | None]], ...] = (
        ("weighed evidence", "--weigh", "bb.EvidenceClassifier()", trial.judge_weighing),
        (
            "the same, calibrated",
            "--calibrate temperature",
            f'{plain}(calibrate="temperature")',
            lambda: None if calibrated is None else trial.judge(calibrated),
        ),
        (families_name, "--features choose", f'{plain}(features="choose")', trial.judge_chosen_families),
        ("a tree of dependent columns", "--tan", "bb.TANClassifier()", trial.judge_tree),
    )
    scored = [
        alternative
        for name, option, python, validate_candidate in candidates
        if option not in but
        for alternative in _try_alternative((name, option, python), validate_candidate)
    ]
    current = _alternative(("as it is", "", ""), current_validation)
    return Alternatives(
        len(sample), folds, current, tuple(sorted(scored, key=lambda alternative: alternative.log_loss))
    )


def _alternative(texts: tuple[str, str, str], evaluation: Any) -> Alternative:
    """Returns an alternative from its name, option and Python call (``texts``), and its evaluation."""
    return Alternative(*texts, evaluation.accuracy.value, evaluation.accuracy.error, evaluation.log_loss)


def _try_alternative(
    texts: tuple[str, str, str], validate_candidate: Callable[[], Validation | None]
) -> Iterator[Alternative]:
    """Yields an alternative with its scores; nothing if the rows do not allow it. ``texts``: its name, option and
    Python call; ``validate_candidate``: computes its validation, or returns None.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            validation = validate_candidate()
    except errors.BanburyError:
        return
    if validation is not None:
        yield _alternative(texts, validation)


@dataclass(frozen=True)
class _Trial:
    """The rows with which alternatives are tried. ``sample``: the numbers of those rows; ``folds``: the number of
    folds.
    """

    rows: MemoryRows
    sample: Int
    folds: int
    seed: int

    def judge(self, recipe: Recipe) -> Validation:
        """Returns the cross-validation of a recipe on the sample."""
        rows = replace(recipe.under(self.rows).only(self.sample), table=None)  # the schema stays that of all rows
        return validate(rows, self.folds, [recipe], seed=self.seed)[0]

    def judge_weighing(self) -> Validation | None:
        """Returns the cross-validation of weighed evidence; None for too few rows."""
        return None if len(self.sample) < FEWEST_ROWS else self.judge(Weighed(seed=self.seed))

    def judge_chosen_families(self) -> Validation | None:
        """Returns the cross-validation of families chosen within each fold; None if that would take too long."""
        are_texts = [feature.reads_text for feature in self.rows.schema.features]
        if len(self.sample) * len(are_texts) > MOST_CELLS and are_texts != [True]:
            return None
        return self.judge(Tuned.of("auto", "mean", None, "choose", None, self.seed, None))

    def judge_tree(self) -> Validation | None:
        """Returns the cross-validation of a tree of dependent columns; None if the columns do not form one tree."""
        rows = self.rows.under({"features": tree_of_columns()}).only(self.sample)
        block, *other_features = rows.schema.features or (None,)
        if block is None or other_features or len(block.columns) < 2:
            return None
        return validate(replace(rows, table=None), self.folds, [Plain(seed=self.seed)], seed=self.seed)[0]
