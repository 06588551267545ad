"""fit: counts, estimates and cross-validates."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from banbury import progress
from banbury.cli import about, inputs, judging, labels, output, settings
from banbury.errors import many
from banbury.files import save
from banbury.files.checking import JsonObject
from banbury.model.naive_bayes import Model
from banbury.quality import CrossValidation, SummedValidation
from banbury.quality.recipes import Plain
from banbury.quality.results import Mean
from banbury.quality.validation import FOLDS_IF_SLOW
from banbury.reports.alternatives import try_alternatives
from banbury.rows.labelled import LabelledRows, MemoryRows
from banbury.tally.schema import WHOLE_NUMBERS

MOST_OVERRIDES = 4  # columns that are named as one would override their families


@dataclass(frozen=True)
class Fitted:
    """A learned model, its validation, its rows, and notes for the user."""

    model: Model
    validation: CrossValidation | SummedValidation | None = None  # None if the model was not validated
    notes: tuple[str, ...] = ()  # for the user
    rows: LabelledRows | None = None  # that the model was learned from

    def to_dict(self, path: str | None) -> JsonObject:
        """Returns the summary of the model, its validation and the notes, as a dictionary for JSON. ``path``: where the
        model was saved, or None.
        """
        facts: JsonObject = {"model": path, **about.summary(self.model)}
        if self.validation is not None:
            validation = self.validation
            facts |= {
                "in_memory": not isinstance(validation, SummedValidation),
                "folds": validation.n_folds,
                "accuracy": validation.accuracy.value,
                "standard_error": validation.accuracy.error,
                "majority": validation.majority,
                "log_loss": validation.log_loss,
            }
        return {**facts, "notes": list(self.notes)}


def fit(args: Namespace) -> None:
    """Reads rows, chooses and validates a recipe, learns a model from all rows, saves it if ``--output`` is given, and
    prints a summary.
    """
    inputs.check_output(args)
    args.folds = settings.folds(args.folds, "; `banbury cross-validate` also accepts loo")
    # How many, only to estimate the progress; ``args.folds`` is None if they are chosen.
    n_folds = args.folds if isinstance(args.folds, int) else FOLDS_IF_SLOW
    with inputs.open_labelled(args) as data, progress.Steps() as steps:  # the opened input
        # Each of n folds learns from all other folds, together n − 1 times all rows; the model learns once from all
        # rows.
        steps.begin(title="", share_of_rest=(n_folds - 1.0) / n_folds if n_folds > 1 else 1.0)
        # The recipe, its rows, its validation and notes for the user.
        outcome = judging.judge(args, data, compares=args.cross_validate)
        steps.begin("all rows", share_of_rest=1.0)
        if outcome.rows.has_sets:
            return labels.fit(args, outcome.learn(), outcome.validation, outcome.notes)  # type: ignore[arg-type]
        # ``fitted`` has the learned model, its validation, notes for the user and the rows.
        fitted = Fitted(outcome.learn(), outcome.validation, outcome.notes, outcome.rows)  # type: ignore[arg-type]
        fitted = replace(fitted, notes=(*_advice(args, fitted), *fitted.notes))
    fitted = replace(fitted, notes=(*fitted.notes, *_class_notes(fitted.model)))
    if args.output is not None:
        save(fitted.model, args.output)
    output.result(args, fitted.to_dict(args.output), _text(args, fitted))


def _class_notes(model: Model) -> tuple[str, ...]:
    """Returns a note for the user, in a tuple, if the classes look like measurements; otherwise none."""
    # Fractions among the classes have already caused a warning.
    has_fractions = any(isinstance(label, float) and label % 1 for label in model.classes)
    if has_fractions or not judging.look_like_measurements(model._target_kind, model.classes):
        return ()
    return (f"{model.target!r} looks numeric: cut it into a few classes, such as low and high, and predict those",)


# Printing -----------------------------------------------------------------------------------------------------------


def _text(args: Namespace, fitted: Fitted) -> str:
    """Returns the printed summary of a fitted model: rows, classes, columns, accuracy, notes, and where it was saved."""
    facts = about.summary(fitted.model)  # for JSON
    # Of the data.
    name = "standard input" if args.input == ["-"] else " ".join(args.input[:3]) + " …" * (len(args.input) > 3)
    target = "" if facts["target"] is None else f" of {facts['target']!r}"
    lines = [f"{name}: {about.rows(args, facts)}, {about.classes(facts, target)}", ""]
    lines += [about.columns(facts), *about.columns_left_out(facts), *_family_hints(facts), ""]
    # With the measures, the notes and the calibration.
    quality_lines = _accuracy(fitted.validation) if fitted.validation is not None else []
    quality_lines += [f"  {note}" for note in fitted.notes]
    if facts.get("calibration") is not None:
        quality_lines.append(f"  calibrated: {facts['calibration']}")
    return "\n".join([*lines, *quality_lines, *([""] if quality_lines else []), _keeping(args)])


def _family_hints(facts: Mapping[str, Any]) -> list[str]:
    """Returns lines that say how to give integer columns another family than the inferred one; none if there are no
    such columns. ``facts``: the summary of the model.
    """
    # Why each column has its family, by column; then names of columns of few different integers, and of other integers.
    reasons = {feature["name"]: feature["why"] for feature in facts.get("features", ())}
    few_valued = [name for name, reason in reasons.items() if reason.startswith(f"{WHOLE_NUMBERS},")]
    counts = [name for name, reason in reasons.items() if reason == "integers"]
    lines = []
    if few_valued:
        # As the user would type them.
        options = " ".join(f"--features {shlex.quote(f'{name}=gaussian')}" for name in few_valued[:MOST_OVERRIDES])
        # How many more there are, in words.
        omitted = f" … ({len(few_valued) - MOST_OVERRIDES:,} more)" if len(few_valued) > MOST_OVERRIDES else ""
        lines.append(
            "Columns with few distinct whole numbers are treated as categories. "
            f"To treat them as numbers, add: {options}{omitted}"
        )
    if counts:
        as_counts, as_codes = (  # the option for the first of these columns, with either family
            f"--features {shlex.quote(f'{counts[0]}={family}')}" for family in ("poisson", "categorical")
        )
        lines.append(
            f"Whole numbers are treated as amounts. If they are counts, add {as_counts}; if they are codes, {as_codes}"
        )
    return ["", *lines] if lines else []


def _accuracy(validation: CrossValidation | SummedValidation) -> list[str]:
    """Returns three lines: with the accuracy, the log loss and the share of the most frequent class."""
    return [
        f"  accuracy  {validation.accuracy}  by {validation.what}",
        f"  log loss  {validation.log_loss:.4f}",
        f"  majority  {validation.majority:.4f}           always answering with the most frequent class",
    ]


def _advice(args: Namespace, fitted: Fitted) -> list[str]:
    """Returns a list with at most one note for the user if predictions are no better than the most frequent class:
    alternatives that were tried, with their accuracies.
    """
    validation = fitted.validation
    if validation is None:
        return []
    if len(validation.classes) == 1:
        return ["There is only one class, so there is nothing to predict."]
    if _beats(validation.accuracy.value, validation.accuracy.error, validation.majority):
        return []
    no_better = "This is no better than always answering with the most frequent class"
    comparison = None  # of the alternatives; None if none can be tried
    if isinstance(fitted.rows, MemoryRows):
        weighed = any(note.startswith("weighed ") for note in fitted.notes)  # whether weighed evidence has been tried
        # Whether the classes look like measurements.
        is_numeric = judging.look_like_measurements(fitted.model._target_kind, fitted.model.classes)
        # Options of alternatives that need not be tried.
        excluded = ["--calibrate temperature", *["--tan"] * args.tan, *["--weigh"] * (weighed or is_numeric)]
        excluded += ["--features choose"] * settings.chooses(args)
        comparison = try_alternatives(
            fitted.rows, Plain(seed=args.seed), validation, excluded_options=excluded, seed=args.seed
        )
    if comparison is None or not comparison.tried:
        return [f"{no_better}."]
    figures = {  # the accuracy of each alternative as a text, by its option
        alternative.option: f"{alternative.option} {Mean(alternative.accuracy, alternative.standard_error)}"
        for alternative in comparison.tried
    }
    where = f"in {comparison.folds}-fold cross-validation on {many(comparison.n_rows, 'row')}"
    better_options = [
        alternative.option
        for alternative in comparison.tried
        if _beats(alternative.accuracy, alternative.standard_error, validation.majority)
    ]
    if better_options:
        return [f"{no_better}. These are, {where}: {'; '.join(figures[option] for option in better_options)}"]
    return [f"{no_better}. Neither are the alternatives, {where}: {'; '.join(figures.values())}"]


def _beats(accuracy: float, error: float | None, majority: float) -> bool:
    """Returns whether the accuracy (from 0 to 1) exceeds ``majority``, the share of the most frequent class, by more
    than two standard errors. ``error``: the standard error of the accuracy, or None.
    """
    return accuracy - majority > 2.0 * (error or 0.0)


def _keeping(args: Namespace) -> str:
    """Returns a line that says where the model was saved, or how to save it."""
    if args.output is not None:
        return f"Saved to {args.output} ({output.size(args.output)})."
    # The name of the input without folder and endings.
    stem = os.path.basename(os.path.normpath(args.input[0])).partition(".")[0] if args.input != ["-"] else "model"
    return f"The model was not saved. To save it, add: -o {stem or 'model'}.banbury"
