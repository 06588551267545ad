"""evaluate, cross-validate, learning-curve: how good a model is."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from banbury import errors, selection
from banbury.cli import inputs, output, settings

MEASURES = {"accuracy": "mean_accuracy", "standard_error": "standard_error", "log_loss": "mean_log_loss"}


def evaluate(args: Namespace) -> None:
    """Scores a model on labelled rows."""
    model = inputs.answering(args.model)
    with inputs.labelled(args, needs_target=model.target is None) as data:
        evaluation = selection.evaluate(model, data, args.target, **settings.reading(args))
    output.result(args, evaluation.to_dict(), str(evaluation))


def cross_validate(args: Namespace) -> None:
    """How good a model of the data is on rows that it has not seen."""
    folds = "loo" if args.folds == "loo" else settings.folds(args.folds, ", or loo")
    with inputs.labelled(args) as data:
        chosen = {**settings.counting(args, data), **settings.estimating(args, data)}
        large = inputs.size(args) > args.hold and isinstance(folds, int) and not settings.tunes(chosen)
        validate: Any = selection.cross_validate_stream if large else selection.cross_validate
        validation = validate(data, args.target, **_grouped(folds, args.groups), **chosen)
    output.result(args, validation.to_dict(), str(validation))


def _grouped(folds: int | str, groups: str | None) -> dict[str, Any]:
    if groups is None:
        return {"folds": folds}
    if not isinstance(folds, int):
        raise errors.bad_setting("--folds", folds, "a whole number from 2 up with --groups")
    from sklearn.model_selection import GroupKFold

    return {"folds": GroupKFold(folds), "groups": groups}


def learning_curve(args: Namespace) -> None:
    """How good a model is after so many rows."""
    with inputs.labelled(args) as data:
        curve = selection.learning_curve(
            data,
            args.target,
            sizes=settings.sizes(args.sizes),
            repeats=args.repeats,
            test=args.test,
            beside=args.beside,
            **settings.counting(args, data),
            **settings.estimating(args, data),
        )
    facts = curve.to_dict()
    output.result(args, facts, str(curve), _by_size(facts))


def _by_size(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each size."""
    curves = {"": facts, **({f"{facts['beside']['name']} ": facts["beside"]} if facts.get("beside") else {})}
    columns = {prefix + name: curve[key] for prefix, curve in curves.items() for name, key in MEASURES.items()}
    return [
        {"rows": size, **{name: None if column is None else column[i] for name, column in columns.items()}}
        for i, size in enumerate(facts["sizes"])
    ]
