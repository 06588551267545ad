"""Recipes: how rows become a model, and what models say of rows that they have not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from banbury import errors
from banbury.arrays import Int, Real
from banbury.families.column_tree import joining_family
from banbury.families.family import Choice, How
from banbury.model.naive_bayes import ClassPrior, Model, choice_of, estimate
from banbury.progress import each_step
from banbury.quality.calibration import METHODS, Calibration, Method, calibrate
from banbury.quality.leave_one_out import can_leave_one_out, leave_each_out
from banbury.rows.folds import Round, SingleRows
from banbury.rows.labelled import LabelledRows, MemoryRows
from banbury.rows.scoring import FoldModels, PendingWarnings, Sink, fitting_prior, leave_out, normalise, score_rows
from banbury.tally.schema import Missing, Schema
from banbury.tally.tally import Label, Tally
from banbury.weighing import FEWEST_ROWS, Weighing, learn

CALIBRATION_FOLDS = 10  # in so many parts rows are left out to learn a calibration
WEIGHING_SETTINGS = ("pairs", "correct", "fewest")
R = TypeVar("R", bound=LabelledRows)


class ModelSink(Sink, Protocol):
    """Receives scores, and the model of each split."""

    def keep(self, split: int, model: Model) -> None: ...


@dataclass(frozen=True)
class Recipe:
    """How rows become a model. By default, rows are left out by learning from all others."""

    name: ClassVar[str]
    weighs: ClassVar[bool] = False  # whether it weighs evidence, which takes longer than counting

    def under(self, rows: R) -> R:
        """Returns the rows under the schema with which this recipe counts."""
        return rows

    def rows_from(self, rows: Any, n: int | None = None) -> Any:
        """Returns the rows that this recipe needs: in memory, or a sample of ``n`` if they are not."""
        return self.under(rows).sample(n)

    def describe_under(self, schema: Schema) -> str:
        """Returns the name of the recipe for users, given a schema."""
        return self.name

    def learn(self, rows: MemoryRows) -> Any:
        """Learns a model from the rows."""
        raise NotImplementedError

    def leave_out(self, rows: Any, splits: Round, want: str, sink: ModelSink, pending: PendingWarnings) -> None:
        """Scores the rows of each split with a model that has not seen them, and puts the scores into a sink."""
        rows = replace(rows, schema=rows.tally.schema)  # all rows settle how finely numbers are kept
        n_splits = len(splits.splits)
        for number, split in enumerate(each_step(splits.splits, lambda k: f"fold {k + 1} of {n_splits}")):
            model = replace(self.learn(rows.training_rows(splits, number)), threads=rows.threads)
            scores, impossible = score_rows(rows, split.test, model, want)
            pending.impossible += impossible
            sink.put(split.test, np.full(len(split.test), number, dtype=np.int32), scores)
            sink.keep(number, model)


@dataclass(frozen=True)
class Plain(Recipe):
    """Plain naive Bayes. ``text`` has settings of ``bb.Text`` for all text columns."""

    how: How = "mean"
    alpha: float = 1.0
    class_prior: ClassPrior = None
    seed: int = 0
    text: Mapping[str, Any] | None = None
    name: ClassVar[str] = "plain naive Bayes"

    def describe_under(self, schema: Schema) -> str:
        is_tree = any(joining_family(feature.family) is not None for feature in schema.features)
        return "a tree of columns (TAN)" if is_tree else self.name

    @property
    def choice(self) -> Choice:
        """Returns how parameters are estimated. Raises an error if a setting is invalid."""
        return choice_of(self.how, self.alpha, self.seed)

    def under(self, rows: R) -> R:
        return rows.with_schema(with_text(rows.schema, self.text)) if self.text else rows

    def rows_from(self, rows: Any, n: int | None = None) -> Any:
        errors.require(n is None, "sample", n, "omitted when all rows are validated")
        return rows

    def estimate(self, tally: Tally, classes: Sequence[Label]) -> Model:
        """Estimates the model of a tally whose classes are among these."""
        if self.text:
            tally = replace(tally, schema=with_text(tally.schema, self.text))
        prior = fitting_prior(self.class_prior, classes, tally.classes)
        return estimate(tally, how=self.how, alpha=self.alpha, class_prior=prior, seed=self.seed)

    def reads_whole_tables(self, counted: Tally) -> bool:
        """Whether leaving out some rows needs the whole tables of words rather than their changes."""
        return False

    def learn(self, rows: LabelledRows) -> Model:
        return self.estimate(rows.tally, rows.classes)

    def leave_out(self, rows: Any, splits: Round, want: str, sink: ModelSink, pending: PendingWarnings) -> None:
        """Counts once for all splits, and uses the closed formula for single rows if every family has one."""
        if not isinstance(splits, SingleRows):
            leave_out(rows, splits, [self], want, [sink], pending)
        elif can_leave_one_out(rows, self.choice):
            left_out = leave_each_out(rows, self.learn(rows))
            pending.add(PendingWarnings(left_out.impossible, notes=left_out.notes))
            sink.put(left_out.tested, splits.groups[left_out.tested], normalise(left_out.scores))
        else:
            leave_out(rows, splits.split_up(), [self], want, [sink], pending)

    def to_dict(self) -> dict[str, Any]:
        """Returns the settings for JSON."""
        return {"alpha": self.alpha, "how": self.how, **({"text": dict(self.text)} if self.text else {})}


@dataclass(frozen=True)
class Weighed(Recipe):
    """Weighed evidence if there are at least ``fewest`` rows; otherwise plain naive Bayes under the same schema.

    Numbers are quantile trees, and missing values are values of their own unless ``missing`` says otherwise.
    """

    pairs: bool = True
    correct: bool = True
    fewest: int = FEWEST_ROWS
    class_prior: ClassPrior = None
    seed: int = 0
    missing: Missing = "category"
    settings: tuple[str, ...] = ()  # those that somebody gave, by name
    name: ClassVar[str] = "weighed evidence"
    weighs: ClassVar[bool] = True

    @classmethod
    def of(cls, weigh: Any, **more: Any) -> Weighed:
        """Returns the recipe for ``weigh=``: True, or settings of ``bb.weigh`` by name."""
        if weigh is not True and not isinstance(weigh, Mapping):
            raise errors.bad_setting("weigh", weigh, "True, False, or settings of bb.weigh such as {'pairs': False}")
        settings = {} if weigh is True else dict(weigh)
        for name in settings:
            if name not in WEIGHING_SETTINGS:
                raise errors.unknown_choice("a setting of weigh", name, WEIGHING_SETTINGS[:2])
        return cls(**settings, **more, settings=tuple(settings))

    def under(self, rows: R) -> R:
        return rows.under({"missing": self.missing, "trees": "all"})

    def learn(self, rows: MemoryRows) -> Model:
        tally = rows.tally
        prior = fitting_prior(self.class_prior, rows.classes, tally.classes)
        model = estimate(tally, class_prior=prior)
        if len(tally.classes) < 2 or float(tally.n_rows) < self.fewest:
            return model
        sample = None if rows.tally_of_rest is None else rows.n_labelled
        how: dict[str, Any] = {"pairs": self.pairs, "correct": self.correct, "seed": self.seed}
        return model.weighed(learn(tally, rows.as_table(tally.schema), sample=sample, **how))

    def to_dict(self) -> dict[str, Any]:
        """Returns the settings for JSON."""
        return {"weigh": {name: getattr(self, name) for name in self.settings} or True}


@dataclass(frozen=True)
class Calibrated(Recipe):
    """Another recipe whose posteriors are calibrated with its scores of held-out rows."""

    recipe: Plain
    method: Method

    def __post_init__(self) -> None:
        if self.method not in tuple(METHODS):
            raise errors.unknown_choice("calibrate", self.method, METHODS)

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.describe_under(None)

    def describe_under(self, schema: Schema | None) -> str:
        plain = self.recipe.name if schema is None else self.recipe.describe_under(schema)
        return f"{plain}, calibrated ({self.method})"

    def under(self, rows: R) -> R:
        return self.recipe.under(rows)

    def learn(self, rows: MemoryRows) -> Model:
        from sklearn.model_selection import GroupKFold

        n_rows = rows.n_labelled
        if n_rows < 2:
            raise errors.empty_data(rows.name, "calibrating needs at least two rows")
        folds: Any = min(CALIBRATION_FOLDS, n_rows)
        if rows.groups is not None:
            folds = GroupKFold(min(folds, len(set(np.asarray(rows.groups)[rows.labels >= 0].tolist()))))
        (splits,) = rows.deal(folds, self.recipe.seed)
        scores = LogScores.of(rows, splits, self.recipe, PendingWarnings())
        return self.recipe.learn(rows).calibrated(scores.calibrate(self.method))

    def leave_out(self, rows: Any, splits: Round, want: str, sink: ModelSink, pending: PendingWarnings) -> None:
        """Calibrates the scores of each split with those of the others; if there are more than ten, some share a
        calibration.
        """
        scores = LogScores.of(rows, splits, self.recipe, pending)
        for split, calibration in self.calibrations(scores).items():
            here = np.flatnonzero(scores.split == split)
            calibrated = calibration.apply if want == "posterior" else calibration.log_apply
            sink.put(scores.rows[here], scores.split[here], calibrated(scores.scores[here]))

    def calibrations(self, scores: LogScores) -> dict[int, Calibration]:
        """Returns the calibration of each split, learned from the others."""
        part = scores.split % CALIBRATION_FOLDS
        by_part = {k: scores.calibrate(self.method, np.flatnonzero(part != k)) for k in np.unique(part).tolist()}
        return {split: by_part[split % CALIBRATION_FOLDS] for split in np.unique(scores.split).tolist()}

    def to_dict(self) -> dict[str, Any]:
        """Returns the settings for JSON."""
        return self.recipe.to_dict()


class LogScores:
    """Collects log P(class | row) of held-out rows. A sink."""

    def __init__(self, rows: MemoryRows, splits: Round) -> None:
        self.truth, self.weights = rows.labels, rows.weights
        self.models: dict[int, Model] = {}
        self.rows: Int = np.flatnonzero(splits.tested_by >= 0)
        self.split = splits.tested_by[self.rows]
        self._every: Real = np.empty((rows.n_rows, len(rows.classes)))

    @classmethod
    def of(cls, rows: MemoryRows, splits: Round, recipe: Recipe, pending: PendingWarnings) -> LogScores:
        scores = cls(rows, splits)
        recipe.leave_out(rows, splits, "log_posterior", scores, pending)
        return scores

    @property
    def scores(self) -> Real:
        return self._every if len(self.rows) == len(self._every) else self._every[self.rows]

    def put(self, rows: Int | slice, splits: Any, scores: Real) -> None:
        self._every[rows] = scores

    def keep(self, split: int, model: Model) -> None:
        self.models[split] = model

    def calibrate(self, method: Method, some: Int | None = None) -> Calibration:
        """Learns a calibration from all or some of the scores."""
        at = self.rows if some is None else self.rows[some]
        weights = None if self.weights is None else self.weights[at]
        return calibrate(method, self._every[at], self.truth[at], weights)


@dataclass
class SplitModels:
    """The model of each split: one that was kept, or made again. A model of text is large: of those made again the last stays."""

    rows: MemoryRows
    splits: Round
    recipe: Recipe
    kept: Mapping[int, Model]
    _last: tuple[int, Model] | None = None

    def __getitem__(self, split: int) -> Model:
        if split in self.kept:
            return self.kept[split]
        if self._last is None or self._last[0] != split:
            self._last = split, self._make_again(split)
        return self._last[1]

    def _make_again(self, split: int) -> Model:
        if not isinstance(self.recipe, Plain):
            return self.recipe.learn(self.rows.training_rows(self.splits, split))  # type: ignore[no-any-return]
        groups = self.rows.count_round(self.splits)
        return FoldModels(self.rows, self.splits, groups, self.recipe, PendingWarnings())[split]  # type: ignore[no-any-return]


@singledispatch
def recipe_of(model: Any) -> Recipe:
    """Returns the recipe that made a model."""
    choice = model.choice
    weighing = model.weighing
    prior = model.class_prior
    if prior is not None and not isinstance(prior, (str, int, float)):
        prior = dict(zip(model.classes, model.class_shares.tolist(), strict=True))
    if isinstance(weighing, Weighing):
        settings: dict[str, Any] = {**weighing.settings, **({"fewest": 0} if model.tally.n_rows < FEWEST_ROWS else {})}
        return Weighed(**settings, class_prior=prior, seed=choice.seed)
    plain = Plain(choice.how, choice.alpha, prior, choice.seed)
    return Calibrated(plain, model.calibration.method) if isinstance(model.calibration, Calibration) else plain


def with_text(schema: Schema, settings: Mapping[str, Any] | None) -> Schema:
    """Returns the schema with these settings for all text columns."""
    if not settings:
        return schema
    changed = tuple(
        feature._replace(family=replace(feature.family, **settings)) if feature.reads_text else feature  # type: ignore[type-var]
        for feature in schema.features
    )
    return replace(schema, features=changed)
