"""suspicious, next: rows whose labels look wrong, and rows to label next."""

from __future__ import annotations

from argparse import Namespace

from banbury.cli import inputs, judging, output, settings
from banbury.files.checking import JsonObject
from banbury.insight.next_labels import NextToLabel, next_to_label
from banbury.insight.wrong_labels import Suspicious, find_suspicious


def suspicious(args: Namespace) -> None:
    """Prints the rows whose labels look wrong, each with the evidence for another label."""
    with inputs.open_labelled(args) as data:  # the opened input
        outcome = judging.decide(args, data)  # the recipe, its rows, its validation and notes
        n_folds = None if outcome.validation is None else outcome.validation.n_folds
        # The rows, the most suspicious first.
        ranking = find_suspicious(outcome.rows, outcome.recipe, args.n, args.by, n_folds)  # type: ignore[arg-type]
    _print(args, ranking, outcome.notes)


def next(args: Namespace) -> None:
    """Prints the unlabelled rows from which a model would learn most."""
    model = inputs.model(args.model)
    with inputs.rows(args, model) as data:  # the opened input
        options = {"n": args.n, "share": args.share, "seed": args.seed, "labelled": args.labelled}
        ranking = next_to_label(model, data, **options, **settings.reading(args))
    _print(args, ranking)


def _print(args: Namespace, ranking: Suspicious | NextToLabel, notes: tuple[str, ...] = ()) -> None:
    """Prints a ranking of rows, which are numbered from 1 here, as `explain --row` expects. ``notes``: for the user,
    below the table.
    """
    # As JSON, for CSV.
    rows = [{**record, "row": record["row"] + 1} for record in (row.to_dict() for row in ranking.rows)]
    text = ""
    facts: JsonObject = {}
    if output.kind(args) == "table":
        table = output.table(ranking._header, ranking._lines(first=1), right=(0, 2, 4))
        text = "\n".join([ranking._first_line, table, *(f"  {line}" for line in (*ranking._last_lines, *notes))])
    elif output.kind(args) == "json":
        facts = {**ranking.to_dict(), **({"notes": list(notes)} if notes else {})}
        facts["rows"] = [{**row, "row": row["row"] + 1} for row in facts["rows"]]
    output.result(args, facts, text, rows)
