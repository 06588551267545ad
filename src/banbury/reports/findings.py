"""What a report is about: everything is measured here, from one reading of the rows, before a page is made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from banbury import errors
from banbury.errors import many
from banbury.insight.dependence import Diagnosis, diagnose
from banbury.model.explain import Explanation, Informative
from banbury.model.explain.page import name_class
from banbury.model.naive_bayes import Model, add_unknown_classes
from banbury.quality import CrossValidation, Evaluation, LearningCurve
from banbury.quality.calibration import Calibration, Reliability, reliability
from banbury.quality.curves import learn_sizes, spread
from banbury.quality.recipes import Calibrated, LogScores, Plain, Recipe, SplitModels, Weighed, recipe_of
from banbury.quality.validation import default_folds, validate
from banbury.reading import Source
from banbury.reports.alternatives import Alternatives, alternatives
from banbury.rows.labelled import MemoryRows, load_rows, renumber
from banbury.rows.scoring import PendingWarnings, score_rows
from banbury.tally.tally import Label

MOST_ROWS = 200_000  # of which learning curves are drawn and pairs compared
MOST_CLASSES = 100  # whose telling values are named
SMOOTH = 20_000  # rows from which fewer repeats draw a smooth curve
BINS = 10  # of confidence
BEST = 3  # alternatives that are recommended


@dataclass(frozen=True, eq=False)
class Mistake:
    """A row that was predicted wrongly by the model of its fold, which has not seen it.

    ``row`` is its number in the data and ``name`` its file, if it has one. ``explanation`` compares the prediction with
    the true class; with the runner-up if the other folds have no row of the true class; it is None if they have only
    one class.
    """

    row: int
    name: str | None
    truth: Label
    answer: Label
    probability_truth: float
    probability: float
    fold: int
    explanation: Explanation | None

    def to_dict(self) -> dict[str, Any]:
        """The mistake as JSON can hold it, with its strongest evidence."""
        strongest = () if self.explanation is None else self.explanation.evidence[:10]
        about = {name: value for name, value in vars(self).items() if name != "explanation"}
        return about | {"evidence": [[e.feature, e.value, e.decibans] for e in strongest]}


@dataclass(frozen=True, eq=False)
class Findings:
    """A model and everything that a report says about it."""

    model: Model
    n_rows: int  # with a label
    unlabelled: int
    own_rows: bool  # whether they are the very rows that the model has counted
    unknown: tuple[Label, ...]  # classes of the rows that the model has not counted
    validation: Evaluation  # of own rows a cross-validation; after calibration, where the model is calibrated
    before_calibration: Evaluation | None
    learning_curve: LearningCurve | None
    informative: Informative
    mistakes: tuple[Mistake, ...]
    diagnosis: Diagnosis
    n_sampled: int  # rows of the learning curve and of the pairs
    why_no_curve: str = ""
    alternatives: Alternatives | None = None
    source: str | None = None  # what the data are called

    @property
    def title(self) -> str:
        """The names of the target and the data, as far as they have names."""
        target = self.model.schema.target
        source = None if self.source is None else Path(self.source).name
        if target is not None:
            return target if source is None else f"Predicting {target} from {source}"
        return "Banbury report" if source is None else f"Classes of {source}"

    def name_class(self, label: Label) -> str:
        """A class for people."""
        return name_class(label, self.model.schema.target)

    @property
    def more_rows(self) -> tuple[int, int, float, float] | None:
        """Two numbers of rows, the second about twice the first, the accuracy gained between them, and its standard
        error.
        """
        curve = self.learning_curve
        if curve is None or len(curve.sizes) < 2:
            return None
        half = int(np.abs(np.log(curve.sizes / (curve.sizes[-1] / 2.0))).argmin())
        before = min(half, len(curve.sizes) - 2)
        gains = curve.accuracy[:, -1] - curve.accuracy[:, before]
        error = float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else np.inf
        return int(curve.sizes[before]), int(curve.sizes[-1]), float(gains.mean()), error

    @property
    def next_steps(self) -> tuple[str, ...]:
        """Suggestions that were measured to help, one sentence each, the most helpful first."""
        steps = []
        if self.alternatives is not None:
            now = self.alternatives.now
            for alternative in self.alternatives.better[:BEST]:
                gain = f"log loss {alternative.log_loss:.4f} instead of {now.log_loss:.4f}"
                right = f"accuracy {alternative.accuracy:.1%} instead of {now.accuracy:.1%}"
                steps.append(f"{alternative.name[0].upper()}{alternative.name[1:]}: {gain}, {right}.")
        if self.more_rows is not None:
            first, last, rise, error = self.more_rows
            if rise > 2.0 * error:
                points = f"{100 * rise:.1f} points (± {100 * error:.1f})"
                steps.append(f"More rows: accuracy rose by {points} from {first:,} to {last:,} rows.")
        return tuple(steps)

    @property
    def n_folds(self) -> int:
        """The number of folds; 0 if the model itself was evaluated."""
        return len(self.validation.fold_accuracies) if isinstance(self.validation, CrossValidation) else 0

    @property
    def n_mistakes(self) -> int:
        """The number of rows that were predicted wrongly."""
        return int(np.count_nonzero(self.validation.best != self.validation.truth))

    @cached_property
    def reliabilities(self) -> dict[str, Reliability]:
        """The calibration curves; for a calibrated model, after and before calibration."""
        validations = {"out of fold" if self.own_rows else "these rows": self.validation}
        if self.before_calibration is not None:
            validations = {"calibrated": self.validation, "before calibration": self.before_calibration}
        return {name: reliability(v.posteriors, v.truth, BINS, v.weights) for name, v in validations.items()}


def measure(
    model: Model,
    data: Any,
    target: Any,
    *,
    folds: int | None,
    mistakes: int,
    telling: int,
    weights: Any,
    seed: int,
    threads: int | None,
    reading: dict[str, Any],
    tries: bool = True,
) -> Findings:
    """Measures everything that a report shows."""
    _check_classes("the model", model.classes)
    target = model.schema.target if target is None else target
    counting = {"weights": weights, "threads": threads, **reading}
    rows = load_rows(data, target, schema=model.schema, takes_sets=False, **counting)
    _check_classes("the data", rows.classes)
    own_rows = rows.tally == model.tally
    judged = _judge_by_folds(model, rows, folds, seed) if own_rows else _judge_as_it_is(model, rows)
    some = rows  # of very many some of each class alike
    if rows.n_labelled > MOST_ROWS:
        some = rows.only(np.sort(spread(rows.labels, np.random.default_rng(seed))[:MOST_ROWS]))
    why_no_curve = _why_no_curve(rows) if own_rows else "these are not the rows that the model was trained on"
    repeats = (5 if rows.n_labelled <= SMOOTH else 3) if isinstance(judged.recipe, Plain | Calibrated) else 1
    names = np.array([*some.classes, None], dtype=object)[some.labels]
    source = Source(lambda: iter(some.batches), some.name)
    shown = list(model.classes)  # or the most frequent of very many
    if len(shown) > MOST_CLASSES:
        often = np.argsort(-model.tally.rows.value, kind="stable")[:MOST_CLASSES]
        shown = [model.classes[c] for c in np.sort(often)]
    plain = judged.recipe.recipe if isinstance(judged.recipe, Calibrated) else judged.recipe
    diagnosis = diagnose(
        source,
        names,
        schema=some.schema,
        weights=some.weights,
        missing="category" if isinstance(plain, Weighed) else "skip",
        threads=some.threads,
    )
    return Findings(
        model=model,
        n_rows=rows.n_labelled,
        unlabelled=rows.n_rows - rows.n_labelled,
        own_rows=own_rows,
        unknown=tuple(name for name in rows.classes if name not in model.classes),
        validation=judged.validation,
        before_calibration=judged.before_calibration,
        learning_curve=None if why_no_curve else learn_sizes(some, plain, repeats=repeats),
        informative=model.informative(telling, shown),
        mistakes=tuple(_mistakes(rows, judged, mistakes)),
        diagnosis=diagnosis,
        n_sampled=some.n_labelled,
        why_no_curve=why_no_curve,
        alternatives=_try_alternatives(data, target, judged, seed, counting) if tries and own_rows else None,
        source=rows.name,
    )


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Answers to rows, and the models that gave them: the model itself, or those of folds."""

    recipe: Recipe
    validation: Evaluation
    before_calibration: Evaluation | None
    model_of: Callable[[int], Model]  # by the place of an answer


def _judge_by_folds(model: Model, rows: MemoryRows, folds: int | None, seed: int) -> JudgedRows:
    """The rows that a model has counted, each answered by a model of other folds that learns as it did."""
    recipe = recipe_of(model)
    n_folds = default_folds(rows.n_labelled, [recipe], folds or model.choice.n_folds)
    recipe = replace(recipe, seed=seed) if isinstance(recipe, Weighed) else recipe
    (splits,) = rows.deal(n_folds, seed)
    rows_of_folds = replace(rows, fold=splits.tested_by)
    models = dict[int, Model]()
    before = None
    plain: Recipe = recipe
    calibrations = dict[int, Calibration]()
    (validation,) = validate(rows_of_folds, None, [recipe], seed=seed, models=models)
    if isinstance(recipe, Calibrated):
        plain = recipe.recipe
        (before,) = validate(rows_of_folds, None, [plain], seed=seed)
        calibrations = recipe.calibrations(LogScores.of(rows_of_folds, splits, plain, PendingWarnings()))
    assert isinstance(validation, CrossValidation)
    folds_of = validation.folds
    by_fold = SplitModels(rows_of_folds, splits, plain, models)

    def model_of(place: int) -> Model:
        fold = int(folds_of[place])
        calibration = calibrations.get(fold)
        fits = calibration is not None and by_fold[fold].classes == rows.classes
        return by_fold[fold].calibrated(calibration) if fits else by_fold[fold]

    return JudgedRows(recipe, validation, before, model_of)  # type: ignore[arg-type]


def _judge_as_it_is(model: Model, rows: MemoryRows) -> JudgedRows:
    """Other rows, answered by the model itself; a class that it does not know is never answered."""
    classes, notes = add_unknown_classes(model.classes, set(rows.classes))
    notes = (
        *notes,
        "not exactly the rows that the model was trained on; if they include some of them, the figures are too optimistic",
    )
    truth = renumber([(rows.classes, rows.labels)], classes)
    tested = np.flatnonzero(truth >= 0)
    weights = None if rows.weights is None else rows.weights[tested]

    def evaluation(judge: Model) -> Evaluation:
        posteriors = np.concatenate([judge.posterior(batch) for batch in rows.batches])[tested]
        unknown = np.zeros((len(tested), len(classes) - posteriors.shape[1]))
        what = "Evaluation of this model as it is"
        return Evaluation(classes, tested, truth[tested], np.hstack([posteriors, unknown]), weights, what, notes)

    before = None if model.calibration is None else evaluation(model.calibrated(None))
    return JudgedRows(recipe_of(model), evaluation(model), before, lambda place: model)


def _try_alternatives(
    data: Any, target: Any, judged: JudgedRows, seed: int, counting: dict[str, Any]
) -> Alternatives | None:
    """What else could be made of the rows than such a model."""
    if hasattr(data, "__next__"):
        return None
    but = ["--weigh"] * isinstance(judged.recipe, Weighed)
    but += ["--calibrate temperature"] * (not isinstance(judged.recipe, Plain))
    rows = load_rows(data, target, **counting)
    assert isinstance(judged.validation, CrossValidation)  # of own rows
    return alternatives(rows, judged.recipe, judged.validation, but=but, seed=seed)


def _check_classes(what: str, classes: tuple[Label, ...]) -> None:
    if len(classes) < 2:
        text = f"{what} must have at least two classes for a report, but has only {classes[0]!r}."
        raise errors.BadSetting(f"{text} Add rows of another class, or check the target.", label=classes[0])


def _why_no_curve(rows: MemoryRows) -> str:
    """Why a learning curve cannot be drawn; nothing if it can."""
    counted = rows.labels >= 0 if rows.weights is None else (rows.labels >= 0) & (rows.weights > 0)
    n_rows = int(np.count_nonzero(counted))
    n_classes = len(rows.classes)
    if n_rows - max(1, round(n_rows / 3)) >= n_classes:
        return ""
    return f"of {many(n_rows, 'row')}, two thirds cannot contain a row of each of the {n_classes:,} classes"


# The worst mistakes ---------------------------------------------------------------------------------------------------


def _mistakes(rows: MemoryRows, judged: JudgedRows, most: int) -> list[Mistake]:
    """The mistakes that gave the true class the least probability, the worst first."""
    worst = _worst(rows, judged, most)
    explained = {
        place: _describe_mistake(rows, judged, place) for place in sorted(worst, key=lambda at: _fold(judged, at))
    }
    return [explained[place] for place in worst]


def _fold(judged: JudgedRows, place: int) -> int:
    """The fold of an answer; 0 where the model itself gave it."""
    validation = judged.validation
    return int(validation.folds[place]) if isinstance(validation, CrossValidation) else 0


def _worst(rows: MemoryRows, judged: JudgedRows, most: int) -> list[int]:
    """Places of the worst mistakes in the answers. Where many probabilities are too small for a number, their logarithms tell."""
    validation = judged.validation
    wrong = np.flatnonzero(validation.best != validation.truth)
    if validation.weights is not None:
        wrong = wrong[validation.weights[wrong] > 0]
    if not most or not len(wrong):
        return []
    shares = validation.posteriors[wrong, validation.truth[wrong]]
    limit = np.partition(shares, most - 1)[most - 1] if len(wrong) > most else np.inf
    places = wrong[shares <= limit]
    shares = shares[shares <= limit]
    logs = np.log(np.maximum(shares, np.finfo(float).tiny))
    folds = np.array([_fold(judged, place) for place in places.tolist()], dtype=np.int64)
    for fold in np.unique(folds[shares == 0]).tolist():
        at = np.flatnonzero((shares == 0) & (folds == fold))
        model = judged.model_of(int(places[at[0]]))
        tested = score_rows(rows, validation.rows[places[at]], replace(model, calibration=None), "log_posterior")[0]
        is_known = np.array([c in rows.classes for c in validation.classes])
        scores = np.full((len(at), len(validation.classes)), -np.inf)
        scores[:, is_known] = tested[:, [rows.classes.index(c) for c in validation.classes if c in rows.classes]]
        logs[at] = scores[np.arange(len(at)), validation.truth[places[at]]]
    return places[np.argsort(logs, kind="stable")[:most]].tolist()  # type: ignore[no-any-return]


def _describe_mistake(rows: MemoryRows, judged: JudgedRows, place: int) -> Mistake:
    validation = judged.validation
    row = int(validation.rows[place])
    fold = _fold(judged, place)
    classes = validation.classes
    truth = int(validation.truth[place])
    best = int(validation.best[place])
    of_truth, of_best = validation.posteriors[place, [truth, best]].tolist()
    (batch,) = rows.only(np.array([row])).batches
    model = judged.model_of(place)
    label = classes[truth]
    weighed = None if len(model.classes) < 2 else model.explain(batch)
    if weighed is not None and label in model.classes and label not in (weighed.winner, weighed.against):
        weighed = model.explain(batch, against=label)
    return Mistake(row, rows.row_name(row), label, classes[best], of_truth, of_best, fold, weighed)
