"""tune: the best of many settings, and the model they make."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from banbury import selection
from banbury.cli import inputs, labels, output, settings
from banbury.files import save


def tune(args: Namespace) -> None:
    """Compares settings over the same folds; keeps the model of the best."""
    inputs.check_output(args)
    folds = settings.folds(args.folds, "")
    with inputs.labelled(args) as data:
        several = labels.wanted(args, data)
        chosen = {**settings.counting_any_text(args, data), **settings.estimating_any(args, data)}
        chosen |= {"text": settings.several_texts(args.text), "scoring": args.scoring, "calibrate": args.calibrate}
        chosen |= {"weigh": [False, True]} if args.weigh else {}
        if several:
            chosen |= labels.reading(args)
        found = selection.tune(data, args.target, **settings.dealt(args, folds), **chosen)
    if args.output is not None:
        save(found.model, args.output)
    kept = "" if args.output is None else f"\n\nThe best is kept in {args.output} ({output.size(args.output)})."
    facts = {"model": args.output, **found.to_dict()}
    output.result(args, facts, f"{found}{kept}", [_flat(each) for each in facts["tried" if several else "settings"]])


def _flat(facts: dict[str, Any]) -> dict[str, Any]:
    """One line of CSV: the settings of texts beside the others."""
    rest = {name: value for name, value in facts.items() if name != "text"}
    return {**facts.get("text", {}), **rest}
