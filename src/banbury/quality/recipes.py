"""Recipes: how rows become a model, and how the model's scores of held-out rows are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from banbury import errors
from banbury.arrays import Int, Real
from banbury.families.column_tree import joining_family
from banbury.families.family import Choice, Feature, How
from banbury.model.naive_bayes import ClassPrior, Model, choice_of, estimate
from banbury.progress import each_step
from banbury.quality.calibration import METHODS, Calibration, Method, calibrate
from banbury.quality.leave_one_out import can_leave_one_out, leave_each_out
from banbury.rows.folds import FoldSet, SingleRows
from banbury.rows.labelled import LabelledRows, MemoryRows
from banbury.rows.scoring import FoldModels, PendingWarnings, Sink, leave_out, normalise, restrict_prior, score_rows
from banbury.tally.schema import Missing, Schema
from banbury.tally.tally import Label, Tally
from banbury.weighing import FEWEST_ROWS, Weighing, learn

CALIBRATION_FOLDS = 10  # in which rows are held out to learn a calibration
WEIGHING_SETTINGS = ("pairs", "correct", "fewest")
R = TypeVar("R", bound=LabelledRows)


class ModelSink(Sink, Protocol):
    """A sink that receives the model of each fold too."""

    def keep(self, fold: int, model: Model) -> None:
        """Receives the model that did not learn from this fold."""


@dataclass(frozen=True)
class Recipe:
    """How rows become a model. By default, rows are left out by learning from all others."""

    name: ClassVar[str]
    weighs: ClassVar[bool] = False  # whether it weighs evidence, which takes longer than counting

    def under(self, rows: R) -> R:
        """Returns the rows under the schema with which this recipe counts: the same rows, unless a recipe says
        otherwise.
        """
        return rows

    def rows_from(self, rows: Any, n: int | None = None) -> Any:
        """Returns the rows that this recipe needs, under its schema: in memory, or a sample of ``n`` if they are not
        (None: the default).
        """
        return self.under(rows).sample(n)

    def describe_under(self, schema: Schema) -> str:
        """Returns the name of the recipe for users. Some recipes have a different name under some schemas, but not
        here.
        """
        return self.name

    def learn(self, rows: MemoryRows) -> Any:
        """Returns a model learned from the rows. Every recipe has its own way."""
        raise NotImplementedError

    def leave_out(self, rows: Any, fold_set: FoldSet, want: str, sink: ModelSink, pending: PendingWarnings) -> None:
        """Scores the test rows of each split of the fold set with a model that has not seen them, and puts the scores
        (rows × classes) and the models into ``sink``, which collects them. ``want`` is the kind of score, such as
        "posterior". Warnings are added to ``pending``, for the caller to issue.
        """
        rows = replace(rows, schema=rows.tally.schema)  # all rows settle how finely numbers are kept
        n_splits = len(fold_set.splits)
        for fold, split in enumerate(each_step(fold_set.splits, lambda k: f"fold {k + 1} of {n_splits}")):
            model = replace(self.learn(rows.training_rows(fold_set, fold)), threads=rows.threads)
            scores, n_impossible = score_rows(rows, split.test, model, want)
            pending.n_impossible += n_impossible
            sink.put(split.test, np.full(len(split.test), fold, dtype=np.int32), scores)
            sink.keep(fold, model)


@dataclass(frozen=True)
class Plain(Recipe):
    """Plain naive Bayes. ``text`` has settings of ``bb.Text`` for all text columns."""

    how: How = "mean"  # the estimator of ``bb.estimate``
    alpha: float = 1.0  # the pseudo-count
    class_prior: ClassPrior = None
    seed: int = 0
    text: Mapping[str, Any] | None = None
    name: ClassVar[str] = "plain naive Bayes"

    def describe_under(self, schema: Schema) -> str:
        """Returns the name of the recipe for users; columns joined in a tree have their own."""
        is_tree = any(joining_family(template.family) is not None for template in schema.features.templates)
        return "a tree of columns (TAN)" if is_tree else self.name

    @property
    def choice(self) -> Choice:
        """Returns how parameters are estimated: the estimator ``how``, the pseudo-count and the seed. Raises an error
        if one is invalid.
        """
        return choice_of(self.how, self.alpha, self.seed)

    def under(self, rows: R) -> R:
        """Returns the rows under a schema with this recipe's settings of ``bb.Text`` for all text columns, if it has
        any.
        """
        return rows.with_schema(with_text(rows.schema, self.text)) if self.text else rows

    def rows_from(self, rows: Any, n: int | None = None) -> Any:
        """Returns all rows unchanged. Raises an error if a sample of ``n`` rows was requested."""
        errors.require(n is None, "sample", n, "omitted when all rows are validated")
        return rows

    def estimate(self, tally: Tally, classes: Sequence[Label]) -> Model:
        """Estimates the model of a tally with this recipe's settings. ``classes`` has all classes of the data, of which
        the tally may have fewer.
        """
        if self.text:
            tally = replace(tally, schema=with_text(tally.schema, self.text))
        prior = restrict_prior(self.class_prior, classes, tally.classes)
        return estimate(tally, how=self.how, alpha=self.alpha, class_prior=prior, seed=self.seed)

    def reads_whole_tables(self, counted: Tally) -> bool:
        """Returns whether leaving out rows of the tally ``counted`` needs whole tables of words rather than their
        changes. Plain naive Bayes does not.
        """
        return False

    def learn(self, rows: LabelledRows) -> Model:
        """Estimates a model from the counts of the rows."""
        return self.estimate(rows.tally, rows.classes)

    def leave_out(self, rows: Any, fold_set: FoldSet, want: str, sink: ModelSink, pending: PendingWarnings) -> None:
        """Scores the test rows of all splits of the fold set from one count, and puts the scores (rows × classes) into
        ``sink``, which collects them. Single rows are left out by closed formulas, if every family has one; their
        scores are posteriors, whatever ``want`` names. Warnings are added to ``pending``.
        """
        if not isinstance(fold_set, SingleRows):
            leave_out(rows, fold_set, [self], want, [sink], pending)
        elif can_leave_one_out(rows, self.choice):
            left_out = leave_each_out(rows, self.learn(rows))
            pending.add(PendingWarnings(left_out.n_impossible, notes=left_out.notes))
            sink.put(left_out.row_numbers, fold_set.groups[left_out.row_numbers], normalise(left_out.scores))
        else:
            leave_out(rows, fold_set.split_up(), [self], want, [sink], pending)

    def to_dict(self) -> dict[str, Any]:
        """Returns the settings for JSON."""
        return {"alpha": self.alpha, "how": self.how, **({"text": dict(self.text)} if self.text else {})}


@dataclass(frozen=True)
class Weighed(Recipe):
    """Weighed evidence if there are at least ``fewest`` rows; otherwise plain naive Bayes under the same schema.

    Numbers are quantile trees, and missing values are values of their own unless ``missing`` says otherwise.
    """

    pairs: bool = True  # whether pairs of columns may get a weight
    correct: bool = True  # whether corrections are learned
    fewest: int = FEWEST_ROWS
    class_prior: ClassPrior = None
    seed: int = 0
    missing: Missing = "category"
    settings: tuple[str, ...] = ()  # those that somebody gave, by name
    name: ClassVar[str] = "weighed evidence"
    weighs: ClassVar[bool] = True

    @classmethod
    def of(cls, weigh: Any, **other_fields: Any) -> Weighed:
        """Returns the recipe for ``weigh=``: True, or settings of ``bb.weigh`` by name. ``other_fields`` are fields of
        the recipe. Raises an error for an unknown setting.
        """
        if weigh is not True and not isinstance(weigh, Mapping):
            raise errors.bad_setting("weigh", weigh, "True, False, or settings of bb.weigh such as {'pairs': False}")
        settings = {} if weigh is True else dict(weigh)
        for name in settings:
            if name not in WEIGHING_SETTINGS:
                raise errors.unknown_choice("a setting of weigh", name, WEIGHING_SETTINGS[:2])
        return cls(**settings, **other_fields, settings=tuple(settings))

    def under(self, rows: R) -> R:
        """Returns the rows under a schema in which numbers are quantile trees and missing values are handled as the
        setting ``missing`` of this recipe says.
        """
        return rows.under({"missing": self.missing, "trees": "all"})

    def learn(self, rows: MemoryRows) -> Model:
        """Returns a model with weighed evidence; a plain one for fewer rows than ``self.fewest`` or a single class."""
        tally = rows.tally
        prior = restrict_prior(self.class_prior, rows.classes, tally.classes)
        model = estimate(tally, class_prior=prior)
        if len(tally.classes) < 2 or float(tally.n_rows) < self.fewest:
            return model
        sample = None if rows.tally_of_rest is None else rows.n_labelled  # the number of rows drawn
        table = rows.as_table(tally.schema)
        return model.weighed(learn(tally, table, pairs=self.pairs, correct=self.correct, seed=self.seed, sample=sample))

    def to_dict(self) -> dict[str, Any]:
        """Returns the settings for JSON: those that somebody gave (``self.settings`` has their names), or True."""
        return {"weigh": {name: getattr(self, name) for name in self.settings} or True}


@dataclass(frozen=True)
class Calibrated(Recipe):
    """Another recipe whose posteriors are calibrated with its scores of held-out rows."""

    recipe: Plain
    method: Method

    def __post_init__(self) -> None:
        """Raises an error if the method is unknown."""
        if self.method not in tuple(METHODS):
            raise errors.unknown_choice("calibrate", self.method, METHODS)

    def describe_under(self, schema: Schema) -> str:
        """Returns the name of the recipe for users."""
        return f"{self.recipe.describe_under(schema)}, calibrated ({self.method})"

    def under(self, rows: R) -> R:
        """Returns the rows under the schema with which the calibrated recipe counts."""
        return self.recipe.under(rows)

    def learn(self, rows: MemoryRows) -> Model:
        """Returns a model of the rows by this recipe's plain ``recipe``, calibrated with the scores of held-out rows.
        Raises an error for fewer than two rows.
        """
        from sklearn.model_selection import GroupKFold

        n_rows = rows.n_labelled
        if n_rows < 2:
            raise errors.empty_data(rows.name, "calibrating needs at least two rows")
        folds: Any = min(CALIBRATION_FOLDS, n_rows)  # their number, or a splitter
        if rows.groups is not None:  # rows of the same group stay in the same fold
            folds = GroupKFold(min(folds, len(set(np.asarray(rows.groups)[rows.labels >= 0].tolist()))))
        (fold_set,) = rows.fold_sets(folds, self.recipe.seed)
        held_out_scores = LogScores.of(rows, fold_set, self.recipe, PendingWarnings())
        return self.recipe.learn(rows).calibrated(held_out_scores.calibrate(self.method))

    def leave_out(self, rows: Any, fold_set: FoldSet, want: str, sink: ModelSink, pending: PendingWarnings) -> None:
        """Puts the calibrated posteriors of each fold's rows into ``sink``. Each fold is calibrated with the scores of
        the others.

        Args:
            rows: The labelled rows.
            fold_set: One division of the rows into folds.
            want: The scores to put: "posterior" or "log_posterior".
            sink: Collects the scores of each fold.
            pending: Collects warnings, which are shown at the end.
        """
        log_scores = LogScores.of(rows, fold_set, self.recipe, pending)
        for fold, calibration in self.calibrations(log_scores).items():
            # Of the rows that this fold tests, among those that any fold tests.
            positions = np.flatnonzero(log_scores.folds == fold)
            apply = calibration.apply if want == "posterior" else calibration.log_apply
            sink.put(log_scores.rows[positions], log_scores.folds[positions], apply(log_scores.scores[positions]))

    def calibrations(self, scores: LogScores) -> dict[int, Calibration]:
        """Returns the calibration of each fold by its number, learned from the scores of other folds. Folds with the
        same number modulo ten share one, which is learned from all others. ``scores.folds`` has the fold of each tested
        row.
        """
        remainders = scores.folds % CALIBRATION_FOLDS  # of each row
        calibration_by_remainder = {
            remainder: scores.calibrate(self.method, np.flatnonzero(remainders != remainder))
            for remainder in np.unique(remainders).tolist()
        }
        return {fold: calibration_by_remainder[fold % CALIBRATION_FOLDS] for fold in np.unique(scores.folds).tolist()}

    def to_dict(self) -> dict[str, Any]:
        """Returns the settings for JSON."""
        return self.recipe.to_dict()


class LogScores:
    """Collects log P(class | row) of held-out rows, and the models that were learned without them: a sink.

    ``rows`` are the numbers of the tested rows, and ``folds`` the fold that tests each. ``truth`` and ``weights`` are
    of all rows.
    """

    def __init__(self, rows: MemoryRows, fold_set: FoldSet) -> None:
        """Prepares an array for the scores of the rows that a fold set tests."""
        self.truth = rows.labels  # class numbers, of all rows
        self.weights = rows.weights
        self.models: dict[int, Model] = {}  # by fold
        self.rows: Int = np.flatnonzero(fold_set.tested_by >= 0)  # numbers of the tested rows
        self.folds = fold_set.tested_by[self.rows]  # of each tested row
        self._scores_of_all_rows: Real = np.empty((rows.n_rows, len(rows.classes)))  # log P(class | row)

    @classmethod
    def of(cls, rows: MemoryRows, fold_set: FoldSet, recipe: Recipe, pending: PendingWarnings) -> LogScores:
        """Returns the scores of the test rows of every split of the fold set by the recipe's model of the split's
        training rows. Warnings are added to ``pending``.
        """
        log_scores = cls(rows, fold_set)
        recipe.leave_out(rows, fold_set, "log_posterior", log_scores, pending)
        return log_scores

    @property
    def scores(self) -> Real:
        """log P(class | row) of the tested rows (tested rows × classes)."""
        tests_all_rows = len(self.rows) == len(self._scores_of_all_rows)
        return self._scores_of_all_rows if tests_all_rows else self._scores_of_all_rows[self.rows]

    def put(self, rows: Int | slice, folds: Any, scores: Real) -> None:
        """Stores scores, which are log P(class | row) (rows × classes), of the rows with these numbers. Their folds are
        not needed: the fold set has them.
        """
        self._scores_of_all_rows[rows] = scores

    def keep(self, fold: int, model: Model) -> None:
        """Stores the model that did not learn from this fold."""
        self.models[fold] = model

    def calibrate(self, method: Method, positions: Int | None = None) -> Calibration:
        """Returns a calibration by this method learned from the scores of all tested rows, or of those at some
        positions in ``self.rows``, which has the numbers of the tested rows. ``_scores_of_all_rows`` (log P(class |
        row), rows × classes), ``truth`` (class numbers) and ``weights`` have an entry for each of all rows.
        """
        rows = self.rows if positions is None else self.rows[positions]
        weights = None if self.weights is None else self.weights[rows]
        return calibrate(method, self._scores_of_all_rows[rows], self.truth[rows], weights)


@dataclass
class SplitModels:
    """The model of each fold of a fold set: one that was stored, or one that is learned again.

    A model of text is large, so only the last of those learned again is cached, in ``last_learned``.
    """

    rows: MemoryRows
    fold_set: FoldSet
    recipe: Recipe
    stored: Mapping[int, Model]  # by fold
    last_learned: dict[int, Model] = field(default_factory=dict)  # by fold; at most one

    def __getitem__(self, fold: int) -> Model:
        """Returns the model that did not learn from a fold, by its number; it is learned again if ``stored`` does not
        have it. ``last_learned`` has the last of those, by the number of the fold.
        """
        if fold in self.stored:
            return self.stored[fold]
        if fold not in self.last_learned:
            self.last_learned = {fold: self._learn_again(fold)}
        return self.last_learned[fold]

    def _learn_again(self, fold: int) -> Any:
        """Returns the model that the recipe learns from the rows that a fold does not test. Plain models come from one
        count of all folds.
        """
        if not isinstance(self.recipe, Plain):
            return self.recipe.learn(self.rows.training_rows(self.fold_set, fold))
        groups = self.rows.count_fold_set(self.fold_set)  # the counts of the rows of each fold
        return FoldModels(self.rows, self.fold_set, groups, self.recipe, PendingWarnings())[fold]


@singledispatch
def recipe_of(model: Any) -> Recipe:
    """Returns the recipe that made a model: weighed, calibrated or plain, with the model's settings."""
    choice = model.choice
    weighing = model.weighing
    class_prior = model.class_prior
    if class_prior is not None and not isinstance(class_prior, (str, int, float)):  # P(class) was given
        class_prior = dict(zip(model.classes, model._class_shares.tolist(), strict=True))
    if isinstance(weighing, Weighing):
        fewest = 0 if model.tally.n_rows < FEWEST_ROWS else FEWEST_ROWS  # rows below which nothing is weighed
        settings = weighing.settings
        return Weighed(settings["pairs"], settings["correct"], fewest, class_prior, choice.seed)
    recipe = Plain(choice.how, choice.alpha, class_prior, choice.seed)
    is_calibrated = isinstance(model.calibration, Calibration)
    return Calibrated(recipe, model.calibration.method) if is_calibrated else recipe


def with_text(schema: Schema, settings: Mapping[str, Any] | None) -> Schema:
    """Returns the schema with these settings of ``bb.Text`` for all text columns; the schema itself without any."""
    if not settings:
        return schema
    text_positions = schema.features.where(lambda feature: feature.reads_text)

    def change(feature: Feature) -> Feature:
        """Returns a text column with the new ``settings`` of ``bb.Text``."""
        family: Any = feature.family
        return feature._replace(family=replace(family, **settings))

    return replace(schema, features=schema.features.change(change, text_positions))
