"""tune, evaluate, cross-validate, learning-curve: how good a model is, or the best of many settings."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from banbury import selection
from banbury.cli import inputs, labels, output, settings
from banbury.files import save
from banbury.labels import LabelModel

MEASURES = {"accuracy": "mean_accuracy", "standard_error": "standard_error", "log_loss": "mean_log_loss"}


def evaluate(args: Namespace) -> None:
    """Scores a model on labelled rows."""
    model = inputs.model_or_labels(args.model)
    if isinstance(model, LabelModel):
        return labels.evaluate(args, model)
    with inputs.labelled(args, needs_target=model.target is None) as data:
        evaluation = selection.evaluate(model, data, args.target, **settings.reading(args))
    output.result(args, evaluation.to_dict(), str(evaluation))


def cross_validate(args: Namespace) -> None:
    """How good a model of the data is on rows that it has not seen."""
    folds = "loo" if args.folds == "loo" else settings.folds(args.folds, ", or loo")
    with inputs.labelled(args) as data:
        if labels.wanted(args, data):
            return labels.cross_validate(args, data)
        chosen = {**settings.counting(args, data), **settings.estimating(args, data)}
        at_once = args.weigh or settings.tunes(chosen) or args.calibrate is not None or not isinstance(folds, int)
        large = inputs.size(args) > args.hold and not at_once
        validate: Any = selection.cross_validate_stream if large else selection.cross_validate
        chosen |= {"weigh": True} if args.weigh else {}
        chosen |= {"calibrate": args.calibrate} if args.calibrate is not None else {}
        validation = validate(data, args.target, **settings.dealt(args, folds), **chosen)
    output.result(args, validation.to_dict(), str(validation))


def learning_curve(args: Namespace) -> None:
    """How good a model is after so many rows."""
    with inputs.labelled(args) as data:
        chosen = {**settings.counting(args, data), **settings.estimating(args, data)}
        chosen |= {"repeats": args.repeats, "test": args.test, "beside": args.beside, "weigh": args.weigh}
        curve = selection.learning_curve(data, args.target, sizes=settings.sizes(args.sizes), **chosen)
    facts = curve.to_dict()
    curves = {"": facts} | ({f"{facts['beside']['name']} ": facts["beside"]} if facts.get("beside") else {})
    columns = {prefix + name: each[key] for prefix, each in curves.items() for name, key in MEASURES.items()}
    rows = []
    for i, size in enumerate(facts["sizes"]):
        rows.append({"rows": size} | {name: None if each is None else each[i] for name, each in columns.items()})
    output.result(args, facts, str(curve), rows)


def tune(args: Namespace) -> None:
    """Compares settings over the same folds; keeps the model of the best."""
    inputs.check_output(args)
    folds = settings.folds(args.folds, "")
    with inputs.labelled(args) as data:
        several = labels.wanted(args, data)
        chosen = {**settings.counting_any_text(args, data), **settings.estimating_any(args, data)}
        chosen |= {"text": settings.several_texts(args.text), "scoring": args.scoring, "calibrate": args.calibrate}
        chosen |= ({"weigh": [False, True]} if args.weigh else {}) | (labels.reading(args) if several else {})
        found = selection.tune(data, args.target, **settings.dealt(args, folds), **chosen)
    if args.output is not None:
        save(found.model, args.output)
    kept = "" if args.output is None else f"\n\nThe best is kept in {args.output} ({output.size(args.output)})."
    facts = {"model": args.output, **found.to_dict()}
    rows = [{**own.pop("text", {}), **own} for own in map(dict, facts["tried" if several else "settings"])]
    output.result(args, facts, f"{found}{kept}", rows)
