"""suspicious, next: labels that look wrong, and rows to label next."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from banbury.cli import inputs, judging, output, settings
from banbury.insight.next_labels import NextToLabel, next_to_label
from banbury.insight.wrong_labels import Suspicious, find_suspicious


def suspicious(args: Namespace) -> None:
    """Rows whose labels look wrong, each with the evidence for another."""
    with inputs.open_labelled(args) as data:
        kept = judging.decide(args, data)
        n_folds = None if kept.validation is None else kept.validation.n_folds
        ranking = find_suspicious(kept.rows, kept.recipe, args.n, args.by, n_folds)  # type: ignore[arg-type]
    _print(args, ranking, kept.notes)


def next(args: Namespace) -> None:
    """Unlabelled rows that a model would learn most from."""
    model = inputs.model(args.model)
    with inputs.rows(args, model) as data:
        chosen = {"n": args.n, "share": args.share, "seed": args.seed, "labelled": args.labelled}
        ranking = next_to_label(model, data, **chosen, **settings.reading(args))
    _print(args, ranking)


def _print(args: Namespace, ranking: Suspicious | NextToLabel, notes: tuple[str, ...] = ()) -> None:
    """Here rows are numbered from 1, as `explain --row` takes them."""
    rows = [{**record, "row": record["row"] + 1} for record in (row.to_dict() for row in ranking.rows)]
    text = ""
    facts = dict[str, Any]()
    if output.kind(args) == "table":
        table = output.table(ranking.HEAD, ranking.lines(first=1), (0, 2, 4))
        text = "\n".join([ranking.head, table, *(f"  {line}" for line in (*ranking.feet, *notes))])
    elif output.kind(args) == "json":
        facts = {**ranking.to_dict(), **({"notes": list(notes)} if notes else {})}
        facts["rows"] = [{**row, "row": row["row"] + 1} for row in facts["rows"]]
    output.result(args, facts, text, rows)
