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

MEASURES = {"accuracy": "mean_accuracy", "standard_error": "standard_error", "log_loss": "mean_log_loss"}


def evaluate(args: Namespace) -> None:
    """Scores a model on labelled rows."""
    model = inputs.model_or_labels(args.model)
    has_target = model.schema.target is not None or model.schema.labels is not None
    reading = {**settings.reading(args), **(labels.delimiter(args) if inputs.is_labels(model) else {})}
    with inputs.open_labelled(args, needs_target=not has_target) as data:
        evaluation = quality.evaluate(model, data, labels.target(args, data), **reading)
    facts = evaluation.to_dict()
    output.result(args, facts, str(evaluation), facts.get("labels"))


def cross_validate(args: Namespace) -> None:
    """How good the model that `fit` keeps is on rows that it has not seen."""
    args.folds = "loo" if args.folds == "loo" else settings.folds(args.folds, ", or loo")
    with inputs.open_labelled(args) as data:
        judged = judging.judge(args, data)
    if judged.validation is None:
        raise errors.BadSetting(f"{judged.notes[0]}. Give more rows.")
    validation = judging.with_notes(judged.validation, judged.notes)
    facts = validation.to_dict()
    output.result(args, facts, str(validation), facts.get("labels"))


def learning_curve(args: Namespace) -> None:
    """How good the model that `fit` keeps is after so many rows."""
    curve = curve_of(args)
    facts = curve.to_dict()
    curves = {"": facts} | ({f"{facts['beside']['name']} ": facts["beside"]} if facts.get("beside") else {})
    columns = {prefix + name: measures[key] for prefix, measures in curves.items() for name, key in MEASURES.items()}
    rows = []
    for i, size in enumerate(facts["sizes"]):
        rows.append(
            {"rows": size} | {name: None if measures is None else measures[i] for name, measures in columns.items()}
        )
    output.result(args, facts, str(curve), rows)


def curve_of(args: Namespace) -> LearningCurve:
    """The learning curve of the recipe that is best on all rows; one repeat where it is weighed, unless told otherwise."""
    with inputs.open_labelled(args) as data:
        kept = judging.decide(args, data)
        repeats = args.repeats if args.repeats is not None else 1 if isinstance(kept.recipe, Weighed) else 5
        sizes = settings.sizes(args.sizes)
        curve = learn_sizes(kept.rows, kept.recipe, sizes, repeats, args.test, args.beside)  # type: ignore[arg-type]
        return replace(curve, notes=kept.notes)


def tune(args: Namespace) -> None:
    """Compares settings over the same folds; keeps the model of the best."""
    inputs.check_output(args)
    args.folds = settings.folds(args.folds, "")
    with inputs.open_labelled(args) as data:
        tuning = judging.tune(args, data)
    if args.output is not None:
        save(tuning.model, args.output)
    kept = "" if args.output is None else f"\n\nThe best model was saved to {args.output} ({output.size(args.output)})."
    facts = {"model": args.output, **tuning.to_dict()}
    rows = [{**setting.pop("text", {}), **setting} for setting in map(dict, facts["settings"])]
    output.result(args, facts, f"{tuning}{kept}", rows)
