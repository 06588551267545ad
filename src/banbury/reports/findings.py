"""Measures everything that a report shows, from one reading of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from banbury import errors
from banbury.errors import many
from banbury.files.checking import JsonObject
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
from banbury.reports.alternatives import Alternatives, try_alternatives
from banbury.rows.labelled import MemoryRows, load_rows, renumber
from banbury.rows.scoring import PendingWarnings, score_rows
from banbury.tally.tally import Label

MOST_ROWS_MEASURED = 200_000  # most rows for learning curves and pairs
MOST_CLASSES = 100  # most classes whose informative values are listed
MANY_ROWS = 20_000  # above so many rows, fewer repeats make a smooth curve
CONFIDENCE_BINS = 10  # bins of confidence
MOST_RECOMMENDED = 3  # most alternatives that are recommended


@dataclass(frozen=True, eq=False)
class Mistake:
    """A row that was predicted wrongly by the model of its fold, which has not seen it.

    ``row`` is its number in the data and ``name`` its file, if it has one. ``predicted`` is the predicted class.
    ``explanation`` compares the prediction with the true class; with the runner-up if the other folds have no row of
    the true class; it is None if they have only one class.
    """

    row: int
    name: str | None
    truth: Label
    predicted: Label
    probability_truth: float  # of the true class
    probability: float  # of the predicted class
    fold: int  # which tested the row; 0 if the model itself predicted it
    explanation: Explanation | None

    def to_dict(self) -> JsonObject:
        """Returns the mistake as JSON can hold it, with its strongest evidence."""
        # Pieces of evidence.
        strongest = () if self.explanation is None else self.explanation.evidence[:10]
        fields = {name: value for name, value in vars(self).items() if name != "explanation"}  # for JSON as they are
        return fields | {"evidence": [[evidence.feature, evidence.value, evidence.decibans] for evidence in strongest]}


class AccuracyGain(NamedTuple):
    """How much more accurate a model of ``n_after`` rows is than one of ``n_before`` (from 0 to 1), with the standard
    error, infinite for a single repeat.
    """

    n_before: int
    n_after: int
    gain: float
    error: float


@dataclass(frozen=True, eq=False)
class Findings:
    """A model and everything that a report says about it."""

    model: Model
    n_rows: int  # labelled rows
    unlabelled: int  # rows without a label
    on_training_rows: bool  # whether they are exactly the training rows of the model
    unknown: tuple[Label, ...]  # classes of the rows that the model does not have
    validation: (
        Evaluation  # a cross-validation for training rows; with calibrated posteriors if the model is calibrated
    )
    before_calibration: Evaluation | None  # None if the model is not calibrated
    learning_curve: LearningCurve | None
    informative: Informative
    mistakes: tuple[Mistake, ...]  # the worst ones, the worst first
    diagnosis: Diagnosis
    n_sampled: int  # rows used for the learning curve and the pairs
    why_no_curve: str = ""  # in words; empty if there is one
    alternatives: Alternatives | None = None
    source: str | None = None  # the name of the data

    @property
    def title(self) -> str:
        """The names of the target and the data, as far as they have names."""
        target = self.model.schema.target
        source = None if self.source is None else Path(self.source).name
        if target is not None:
            return target if source is None else f"Predicting {target} from {source}"
        return "Banbury report" if source is None else f"Classes of {source}"

    def name_class(self, label: Label) -> str:
        """Returns the name of the class ``label`` as the page shows it."""
        return name_class(label, self.model.schema.target)

    @property
    def more_rows(self) -> AccuracyGain | None:
        """The accuracy gained by the last doubling of the number of rows; None without a learning curve of two sizes.
        The curve's accuracies are repeats × sizes.
        """
        curve = self.learning_curve
        if curve is None or len(curve.sizes) < 2:
            return None
        # The index of the size nearest to half of the last.
        half_index = int(np.abs(np.log(curve.sizes / (curve.sizes[-1] / 2.0))).argmin())
        earlier_index = min(half_index, len(curve.sizes) - 2)
        # The gain in accuracy (from 0 to 1) of each repeat.
        gains = curve.accuracy[:, -1] - curve.accuracy[:, earlier_index]
        # The standard error of the mean gain.
        error = float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else np.inf
        return AccuracyGain(int(curve.sizes[earlier_index]), int(curve.sizes[-1]), float(gains.mean()), error)

    @property
    def next_steps(self) -> tuple[str, ...]:
        """Suggestions that were measured to help, one sentence each, the most helpful first."""
        steps = []
        if self.alternatives is not None:
            current = self.alternatives.current
            for alternative in self.alternatives.better[:MOST_RECOMMENDED]:
                # The figures of both in words.
                gain = f"log loss {alternative.log_loss:.4f} instead of {current.log_loss:.4f}"
                accuracies = f"accuracy {alternative.accuracy:.1%} instead of {current.accuracy:.1%}"
                steps.append(f"{alternative.name[0].upper()}{alternative.name[1:]}: {gain}, {accuracies}.")
        if self.more_rows is not None:
            n_before, n_after, gain_in_accuracy, error = self.more_rows  # rows, and accuracy from 0 to 1
            if gain_in_accuracy > 2.0 * error:
                points = f"{100 * gain_in_accuracy:.1f} points (± {100 * error:.1f})"
                steps.append(f"More rows: accuracy rose by {points} from {n_before:,} to {n_after:,} rows.")
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
        """The calibration curves by name; for a calibrated model, after and before calibration."""
        validations = {"out of fold" if self.on_training_rows else "these rows": self.validation}
        if self.before_calibration is not None:
            validations = {"calibrated": self.validation, "before calibration": self.before_calibration}
        return {
            name: reliability(validation.posteriors, validation.truth, CONFIDENCE_BINS, validation.weights)
            for name, validation in validations.items()
        }


def measure_model(
    model: Model,
    data: Any,
    target: Any,
    *,
    folds: int | None,
    mistakes: int,
    informative: int,
    weights: Any,
    seed: int,
    threads: int | None,
    reading: dict[str, Any],
    tries_alternatives: bool = True,
) -> Findings:
    """Measures everything that a report shows. ``folds``: their number, None for the default; ``mistakes``,
    ``informative``: how many mistakes, and informative values of each class; ``reading``: options for reading the data;
    ``tries_alternatives``: whether to try alternatives; ``target``, ``weights``: those of ``bb.count``; ``seed``: draws
    samples and assigns rows to folds.
    """
    _check_classes("the model", model.classes)
    target = model.schema.target if target is None else target
    count_options = {"weights": weights, "threads": threads, **reading}  # for reading and counting the rows
    rows = load_rows(data, target, schema=model.schema, takes_sets=False, **count_options)
    _check_classes("the data", rows.classes)
    on_training_rows = rows.tally == model.tally
    # The validation, its recipe, and which model predicted each row.
    validated = _cross_validate(model, rows, folds, seed) if on_training_rows else _evaluate(model, rows)
    sample = rows  # if there are too many, a stratified sample
    if rows.n_labelled > MOST_ROWS_MEASURED:
        sample = rows.only(np.sort(spread(rows.labels, np.random.default_rng(seed))[:MOST_ROWS_MEASURED]))
    why_no_curve = _why_no_curve(rows) if on_training_rows else "these are not the rows that the model was trained on"
    # How often the learning curve is repeated.
    repeats = (5 if rows.n_labelled <= MANY_ROWS else 3) if isinstance(validated.recipe, Plain | Calibrated) else 1
    # The class of each row; ``sample.labels`` are class numbers, and −1, no class, is the last entry.
    sample_labels = np.array([*sample.classes, None], dtype=object)[sample.labels]
    source = Source.of(sample.batches, sample.name)
    listed_classes = list(model.classes)  # if there are too many, the most frequent ones
    if len(listed_classes) > MOST_CLASSES:
        most_frequent = np.argsort(-model.tally.rows.value, kind="stable")[:MOST_CLASSES]  # class numbers
        listed_classes = [model.classes[class_index] for class_index in np.sort(most_frequent)]
    uncalibrated_recipe = validated.recipe.recipe if isinstance(validated.recipe, Calibrated) else validated.recipe
    diagnosis = diagnose(
        source,
        sample_labels,
        schema=sample.schema,
        weights=sample.weights,
        missing="category" if isinstance(uncalibrated_recipe, Weighed) else "skip",
        threads=sample.threads,
    )
    return Findings(
        model=model,
        n_rows=rows.n_labelled,
        unlabelled=rows.n_rows - rows.n_labelled,
        on_training_rows=on_training_rows,
        unknown=tuple(name for name in rows.classes if name not in model.classes),
        validation=validated.validation,
        before_calibration=validated.before_calibration,
        learning_curve=None if why_no_curve else learn_sizes(sample, uncalibrated_recipe, repeats=repeats),
        informative=model.informative(informative, listed_classes),
        mistakes=tuple(_mistakes(rows, validated, mistakes)),
        diagnosis=diagnosis,
        n_sampled=sample.n_labelled,
        why_no_curve=why_no_curve,
        alternatives=_try_alternatives(data, target, validated, seed, count_options)
        if tries_alternatives and on_training_rows
        else None,
        source=rows.name,
    )


@dataclass(frozen=True, eq=False)
class ValidatedRows:
    """The validation of some rows with a recipe, for a calibrated model also before calibration. ``model_of(position)``
    is the model that predicted the row at this position of the validation.
    """

    recipe: Recipe
    validation: Evaluation
    before_calibration: Evaluation | None
    model_of: Callable[[int], Model]


def _cross_validate(model: Model, rows: MemoryRows, folds: int | None, seed: int) -> ValidatedRows:
    """Returns the cross-validation of a model's recipe on its training rows. ``folds``: their number, or None for the
    default; ``seed``: assigns the rows to folds.
    """
    recipe = recipe_of(model)
    n_folds = default_folds(rows.n_labelled, [recipe], folds or model.choice.n_folds)
    recipe = replace(recipe, seed=seed) if isinstance(recipe, Weighed) else recipe
    (fold_set,) = rows.fold_sets(n_folds, seed)  # which fold tests each row
    rows_of_folds = replace(rows, fold=fold_set.tested_by)  # which have their folds, so that none are passed below
    models = dict[int, Model]()  # by fold, as far as the validation stores them
    uncalibrated_validation = None
    uncalibrated_recipe: Recipe = recipe
    calibrations = dict[int, Calibration]()  # by fold
    (validation,) = validate(rows_of_folds, folds=None, recipes=[recipe], seed=seed, models=models)
    if isinstance(recipe, Calibrated):
        uncalibrated_recipe = recipe.recipe
        (uncalibrated_validation,) = validate(rows_of_folds, folds=None, recipes=[uncalibrated_recipe], seed=seed)
        calibrations = recipe.calibrations(
            LogScores.of(rows_of_folds, fold_set, uncalibrated_recipe, PendingWarnings())
        )
    assert isinstance(validation, CrossValidation)
    fold_of_position = validation.folds  # the fold of each validated row
    # Uncalibrated models; one is learned again where the validation did not store it.
    model_by_fold = SplitModels(rows_of_folds, fold_set, uncalibrated_recipe, models)

    def model_of(position: int) -> Model:
        """Returns the model that predicted the row at this position of the validation."""
        fold = int(fold_of_position[position])
        calibration = calibrations.get(fold)  # learned from the other folds; None without one
        is_applicable = calibration is not None and model_by_fold[fold].classes == rows.classes
        return model_by_fold[fold].calibrated(calibration) if is_applicable else model_by_fold[fold]

    return ValidatedRows(recipe, validation, uncalibrated_validation, model_of)  # type: ignore[arg-type]


def _evaluate(model: Model, rows: MemoryRows) -> ValidatedRows:
    """Returns the evaluation of the model on other rows, for a calibrated model also before calibration. Classes that
    it does not know get probability zero.
    """
    # The classes of the model, then those that only the rows have; and notes for the user.
    classes, notes = add_unknown_classes(model.classes, set(rows.classes))
    notes = (
        *notes,
        "not exactly the rows that the model was trained on; if they include some of them, the figures are too optimistic",
    )
    truth = renumber([(rows.classes, rows.labels)], classes)  # of each row the class number, −1 without a class
    labelled_rows = np.flatnonzero(truth >= 0)
    weights = None if rows.weights is None else rows.weights[labelled_rows]

    def evaluate_with(scoring_model: Model) -> Evaluation:
        """Returns the evaluation of the rows by this model."""
        # Labelled rows × classes of the model; then zeros for classes that only the rows have.
        posteriors = np.concatenate([scoring_model.posterior(batch) for batch in rows.batches])[labelled_rows]
        zeros = np.zeros((len(labelled_rows), len(classes) - posteriors.shape[1]))
        return Evaluation(
            classes,
            labelled_rows,
            truth[labelled_rows],
            np.hstack([posteriors, zeros]),
            weights,
            "Evaluation of this model as it is",
            notes,
        )

    # The evaluation before calibration.
    uncalibrated = None if model.calibration is None else evaluate_with(model.calibrated(calibration=None))
    return ValidatedRows(recipe_of(model), evaluate_with(model), uncalibrated, lambda position: model)


def _try_alternatives(
    data: Any, target: Any, validated: ValidatedRows, seed: int, counting: dict[str, Any]
) -> Alternatives | None:
    """Tries other recipes on the same rows and returns them; None if the data can be read only once. ``validated``: the
    validation of these rows with the recipe of the model; ``counting``: options for reading and counting the data.
    """
    if hasattr(data, "__next__"):
        return None
    # Options of alternatives that are not tried.
    excluded = ["--weigh"] * isinstance(validated.recipe, Weighed)
    excluded += ["--calibrate temperature"] * (not isinstance(validated.recipe, Plain))
    rows = load_rows(data, target, **counting)
    assert isinstance(validated.validation, CrossValidation)  # of own rows
    return try_alternatives(rows, validated.recipe, validated.validation, excluded_options=excluded, seed=seed)


def _check_classes(what: str, classes: tuple[Label, ...]) -> None:
    """Raises BadSetting for a single class. ``what``: what has the classes, for the message."""
    if len(classes) < 2:
        raise errors.BadSetting(
            f"{what} must have at least two classes for a report, but has only {classes[0]!r}. "
            "Add rows of another class, or check the target.",
            label=classes[0],
        )


def _why_no_curve(rows: MemoryRows) -> str:
    """Returns why a learning curve, which holds out a third of the rows, cannot be drawn, in words; empty if it can."""
    # Whether each row has a class and a positive weight.
    is_counted = rows.labels >= 0 if rows.weights is None else (rows.labels >= 0) & (rows.weights > 0)
    n_rows = int(np.count_nonzero(is_counted))
    n_classes = len(rows.classes)
    if n_rows - max(1, round(n_rows / 3)) >= n_classes:
        return ""
    return f"of {many(n_rows, 'row')}, two thirds cannot contain a row of each of the {n_classes:,} classes"


# The worst mistakes ---------------------------------------------------------------------------------------------------


def _mistakes(rows: MemoryRows, validated: ValidatedRows, most: int) -> list[Mistake]:
    """Returns the ``most`` mistakes with the least probable true class, the worst first, each explained. ``validated``:
    the validation of ``rows``.
    """
    worst_positions = _find_worst(rows, validated, most)
    # Explained fold by fold, since the model of one fold at a time is at hand.
    mistake_by_position = {
        position: _describe_mistake(rows, validated, position)
        for position in sorted(worst_positions, key=lambda position: _fold_at(validated, position))
    }
    return [mistake_by_position[position] for position in worst_positions]


def _fold_at(validated: ValidatedRows, position: int) -> int:
    """Returns the fold of the row at this position of the validation, its position among the validated rows; 0 if the
    model itself predicted it.
    """
    validation = validated.validation
    return int(validation.folds[position]) if isinstance(validation, CrossValidation) else 0


def _find_worst(rows: MemoryRows, validated: ValidatedRows, most: int) -> list[int]:
    """Returns the positions in the validation of ``rows`` of the ``most`` mistakes whose true class is least probable,
    the worst first. Probabilities that underflow to zero are compared by their logarithms, which are computed again.
    """
    validation = validated.validation
    # Positions in the validation; ``best`` and ``truth`` are class numbers.
    mistakes = np.flatnonzero(validation.best != validation.truth)
    if validation.weights is not None:
        mistakes = mistakes[validation.weights[mistakes] > 0]
    if not most or not len(mistakes):
        return []
    # P(true class) of each mistake.
    truth_probabilities = validation.posteriors[mistakes, validation.truth[mistakes]]
    # The probability of the last one to return, so that ties with it are sorted below.
    limit = np.partition(truth_probabilities, most - 1)[most - 1] if len(mistakes) > most else np.inf
    positions = mistakes[truth_probabilities <= limit]
    truth_probabilities = truth_probabilities[truth_probabilities <= limit]
    truth_log_probabilities = np.log(np.maximum(truth_probabilities, np.finfo(float).tiny))
    # Of the rows at these positions.
    folds = np.array([_fold_at(validated, position) for position in positions.tolist()], dtype=np.int64)
    for fold in np.unique(folds[truth_probabilities == 0]).tolist():
        # The indices in ``positions`` of the rows of this fold whose true class has probability 0.
        underflowed = np.flatnonzero((truth_probabilities == 0) & (folds == fold))
        model = validated.model_of(int(positions[underflowed[0]]))
        # Underflowed rows × classes of the rows.
        log_posteriors = score_rows(
            rows, validation.rows[positions[underflowed]], replace(model, calibration=None), "log_posterior"
        )[0]
        # Classes of the validation that the rows have; the scores are in the order of the rows' classes.
        is_known = np.array([name in rows.classes for name in validation.classes])
        scores = np.full((len(underflowed), len(validation.classes)), -np.inf)  # log-posteriors
        scores[:, is_known] = log_posteriors[
            :, [rows.classes.index(name) for name in validation.classes if name in rows.classes]
        ]
        truth_log_probabilities[underflowed] = scores[
            np.arange(len(underflowed)), validation.truth[positions[underflowed]]
        ]
    return positions[np.argsort(truth_log_probabilities, kind="stable")[:most]].tolist()  # type: ignore[no-any-return]


def _describe_mistake(rows: MemoryRows, validated: ValidatedRows, position: int) -> Mistake:
    """Returns the mistake at ``position`` in the validation, with an explanation by the model that made it."""
    validation = validated.validation
    row = int(validation.rows[position])  # its number in the data
    fold = _fold_at(validated, position)
    classes = validation.classes
    truth = int(validation.truth[position])  # the number of the true class
    best = int(validation.best[position])  # the number of the predicted class
    probability_of_truth, probability_of_best = validation.posteriors[position, [truth, best]].tolist()
    (batch,) = rows.only(np.array([row])).batches  # of this row alone
    model = validated.model_of(position)
    label = classes[truth]  # the true class
    explanation = None if len(model.classes) < 2 else model.explain(batch)
    if explanation is not None and label in model.classes and label not in (explanation.winner, explanation.against):
        explanation = model.explain(batch, against=label)
    return Mistake(
        row, rows.row_name(row), label, classes[best], probability_of_truth, probability_of_best, fold, explanation
    )
