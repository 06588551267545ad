"""Tries other recipes on the same rows and folds, so that a report suggests only what was measured to help."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

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

MOST_ROWS_TRIED = 10_000  # larger data are sampled, stratified by class
# Most rows × columns for which families are chosen within each fold; no limit for a single text column.
MOST_CELLS_TRIED = 2_000
MIN_GAIN = 0.02  # share of the log loss by which a better alternative must be lower


@dataclass(frozen=True)
class Alternative:
    """Another way to learn from the rows: how to request it, and its score on held-out rows."""

    name: str
    option: str  # for `banbury fit`
    python: str  # code that makes such an estimator
    accuracy: float
    standard_error: float | None  # of the accuracy over folds; None for a single fold
    log_loss: float

    def to_dict(self) -> JsonObject:
        """Returns the fields as a dictionary for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Alternatives:
    """Recipes that were tried over the same folds: first the current one, then the alternatives by log loss, the best
    first.
    """

    n_rows: int  # that were tried
    folds: int  # how many
    current: Alternative
    tried: tuple[Alternative, ...]

    @property
    def better(self) -> tuple[Alternative, ...]:
        """The recipes with a clearly lower log loss than the current one, whose accuracy is not significantly lower."""
        error = self.current.standard_error or 0.0  # of the current accuracy; a loss of twice as much is significant
        return tuple(
            alternative
            for alternative in self.tried
            if alternative.log_loss < (1.0 - MIN_GAIN) * self.current.log_loss
            and alternative.accuracy >= self.current.accuracy - 2 * error
        )

    def to_dict(self) -> JsonObject:
        """Returns the fields as a dictionary for JSON."""
        return asdict(self)


class _UntriedAlternative(NamedTuple):
    """Another recipe to try, with what users are told about it. ``validate`` returns None if it cannot be tried."""

    name: str
    option: str  # for `banbury fit`
    python: str  # code that makes such an estimator
    validate: Callable[[], Validation | None]

    def try_it(self) -> Alternative | None:
        """Returns the recipe with its scores on held-out rows; None if the rows do not allow it, without warnings."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                validation = self.validate()
        except errors.BanburyError:
            return None
        return None if validation is None else self.with_scores(validation)

    def with_scores(self, validation: Any) -> Alternative:
        """Returns the recipe with the accuracy and log loss of its validation."""
        accuracy = validation.accuracy  # with its standard error
        return Alternative(self.name, self.option, self.python, accuracy.value, accuracy.error, validation.log_loss)


def try_alternatives(
    rows: MemoryRows,
    current_recipe: Recipe,
    validation: Validation,
    *,
    excluded_options: Collection[str] = (),
    seed: int = 0,
) -> Alternatives | None:
    """Tries other recipes than the current one, whose validation is given, on labelled rows. Returns them with the
    current one; None if there are too few rows for folds, or a single class.

    The folds are the same, or fewer if weighing would take long. Options of `banbury fit` in ``excluded_options`` are
    not tried. ``seed`` draws a sample and deals rows to folds.
    """
    sample = np.flatnonzero(rows.labels >= 0)  # the numbers of the rows to try them on: labelled ones
    n_rows = len(sample)
    if n_rows > MOST_ROWS_TRIED:
        sample = np.sort(spread(rows.labels, np.random.default_rng(seed))[:MOST_ROWS_TRIED])
    folds = min(validation.n_folds, default_folds(len(sample), [Weighed()]))  # how many
    if folds < 2 or len(rows.classes) < 2:
        return None
    trial = _Trial(rows, sample, folds, seed)  # validates recipes on the sample
    plain = "bb.NaiveBayesClassifier"
    candidates = [
        _UntriedAlternative("weighed evidence", "--weigh", "bb.EvidenceClassifier()", trial.validate_weighing),
        _UntriedAlternative(
            "the same, calibrated",
            "--calibrate temperature",
            f'{plain}(calibrate="temperature")',
            partial(trial.validate_calibrated, current_recipe),
        ),
        _UntriedAlternative(
            "families chosen for each column",
            "--features choose",
            f'{plain}(features="choose")',
            trial.validate_chosen_families,
        ),
        _UntriedAlternative("a tree of dependent columns", "--tan", "bb.TANClassifier()", trial.validate_tree),
    ]
    # With their scores; None for those that the rows do not allow.
    tried = [candidate.try_it() for candidate in candidates if candidate.option not in excluded_options]
    # Whether the current recipe was validated on the same rows and folds, and need not be again.
    same_folds = (len(sample), folds) == (n_rows, validation.n_folds)
    current = _UntriedAlternative("as it is", option="", python="", validate=lambda: None)
    # The current recipe with its scores.
    current_scores = current.with_scores(validation if same_folds else trial.validate(current_recipe))
    others = sorted((other for other in tried if other is not None), key=lambda alternative: alternative.log_loss)
    return Alternatives(len(sample), folds, current_scores, tuple(others))


@dataclass(frozen=True)
class _Trial:
    """The rows with which alternatives are tried. ``sample``: the numbers of those rows; ``folds``: the number of
    folds.
    """

    rows: MemoryRows
    sample: Int
    folds: int
    seed: int

    def validate(self, recipe: Recipe) -> Validation:
        """Returns the cross-validation of a recipe on the sample."""
        rows = replace(recipe.under(self.rows).only(self.sample), table=None)  # the schema stays that of all rows
        return validate(rows, self.folds, [recipe], seed=self.seed)[0]

    def validate_weighing(self) -> Validation | None:
        """Returns the cross-validation of weighed evidence; None for too few rows."""
        return None if len(self.sample) < FEWEST_ROWS else self.validate(Weighed(seed=self.seed))

    def validate_calibrated(self, recipe: Recipe) -> Validation | None:
        """Returns the cross-validation of a plain recipe with a calibration; None for other recipes."""
        return self.validate(Calibrated(recipe, "temperature")) if isinstance(recipe, Plain) else None

    def validate_chosen_families(self) -> Validation | None:
        """Returns the cross-validation of families chosen within each fold; None if that would take too long."""
        # One entry per feature.
        are_texts = [feature.reads_text for feature in self.rows.schema.features]
        if len(self.sample) * len(are_texts) > MOST_CELLS_TRIED and are_texts != [True]:
            return None
        return self.validate(Tuned.of(features="choose", seed=self.seed))

    def validate_tree(self) -> Validation | None:
        """Returns the cross-validation of a tree of dependent columns; None if the columns do not form one tree."""
        rows = self.rows.under({"features": tree_of_columns()}).only(self.sample)
        # The tree, and columns that are not in it.
        block, *other_features = rows.schema.features or (None,)  # a tree is one feature of several columns
        if block is None or other_features or len(block.columns) < 2:
            return None
        return validate(replace(rows, table=None), self.folds, [Plain(seed=self.seed)], seed=self.seed)[0]
