"""tune, evaluate, cross-validate, learning-curve: how good a model is, or the best of many settings."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

from banbury import errors, quality
from banbury.cli import inputs, judging, labels, output, settings
from banbury.files import save
from banbury.quality import LearningCurve
from banbury.quality.curves import learn_sizes
from banbury.quality.recipes import Weighed

# The name of each measure in the output, and its name in a learning curve.
MEASURES = {"accuracy": "mean_accuracy", "standard_error": "standard_error", "log_loss": "mean_log_loss"}


def evaluate(args: Namespace) -> None:
    """Scores a model on labelled rows and prints the measures."""
    model = inputs.model_or_labels(args.model)
    has_target = model.schema.target is not None or model.schema.labels is not None
    reading = {**settings.reading(args), **(labels.delimiter(args) if inputs.is_labels(model) else {})}
    with inputs.open_labelled(args, needs_target=not has_target) as data:  # the opened input
        evaluation = quality.evaluate(model, data, labels.target(args, data), **reading)
    facts = evaluation.to_dict()
    output.result(args, facts, str(evaluation), facts.get("labels"))


def cross_validate(args: Namespace) -> None:
    """Validates the model that `fit` would save and prints the measures."""
    args.folds = "loo" if args.folds == "loo" else settings.folds(args.folds, otherwise=", or loo")
    with inputs.open_labelled(args) as data:  # the opened input
        outcome = judging.judge(args, data)  # the recipe, its rows, its validation and notes
    if outcome.validation is None:
        raise errors.BadSetting(f"{outcome.notes[0]}. Give more rows.")
    validation = judging.with_notes(outcome.validation, outcome.notes)
    facts = validation.to_dict()
    output.result(args, facts, str(validation), facts.get("labels"))


def learning_curve(args: Namespace) -> None:
    """Prints how good the model that `fit` would save is after various numbers of rows."""
    curve = curve_of(args)
    facts = curve.to_dict()
    # The curve, and the one of ``--peer``, by the prefix of the columns; then a list of numbers for each column.
    curves = {"": facts} | ({f"{facts['peer']['name']} ": facts["peer"]} if facts.get("peer") else {})
    columns = {prefix + name: lists[key] for prefix, lists in curves.items() for name, key in MEASURES.items()}
    rows = []  # for CSV, one per size
    for index, size in enumerate(facts["sizes"]):  # numbers of training rows
        rows.append(
            {"rows": size} | {name: None if numbers is None else numbers[index] for name, numbers in columns.items()}
        )
    output.result(args, facts, str(curve), rows)


def curve_of(args: Namespace) -> LearningCurve:
    """Returns the learning curve of the recipe that is best on all rows. Weighed recipes are repeated once by default,
    others five times.
    """
    with inputs.open_labelled(args) as data:  # the opened input
        outcome = judging.decide(args, data)  # the recipe, its rows and notes
        repeats = args.repeats if args.repeats is not None else 1 if isinstance(outcome.recipe, Weighed) else 5
        sizes = settings.sizes(args.sizes)  # numbers or shares of training rows; None for the default
        curve = learn_sizes(outcome.rows, outcome.recipe, sizes, repeats, args.test, args.peer)  # type: ignore[arg-type]
        return replace(curve, notes=outcome.notes)


def tune(args: Namespace) -> None:
    """Compares settings on the same folds, saves the best model, and prints the comparison."""
    inputs.check_output(args)
    args.folds = settings.folds(args.folds, otherwise="")
    with inputs.open_labelled(args) as data:  # the opened input
        tuning = judging.tune(args, data)
    if args.output is not None:
        save(tuning.model, args.output)
    message = (
        "" if args.output is None else f"\n\nThe best model was saved to {args.output} ({output.size(args.output)})."
    )
    facts = {"model": args.output, **tuning.to_dict()}
    # One for each combination of settings, with those of texts as columns of their own.
    rows = [{**setting.pop("text", {}), **setting} for setting in map(dict, facts["settings"])]
    output.result(args, facts, f"{tuning}{message}", rows)
