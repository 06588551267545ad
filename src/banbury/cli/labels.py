"""Multi-label models on the command line."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from banbury import errors
from banbury.cli import about, inputs, output, settings
from banbury.files import save
from banbury.labels import LabelEvaluation, LabelModel
from banbury.reading import read


def target(args: Namespace, data: Any) -> Any:
    """Returns the target: the name of a column, or several names if it is a list of columns separated by commas.
    ``data``: the opened input.
    """
    if isinstance(args.target, str) and "," in args.target:
        names = next(iter(read(data, **settings.reading(args)))).names
        columns = [column.strip() for column in args.target.split(",")]
        if args.target not in names and not set(columns).isdisjoint(names):
            for column in columns:
                if column not in names:
                    raise errors.unknown_column(column, names)
            return columns
    return args.target


def delimiter(args: Namespace) -> settings.Keywords:
    """Returns the option for what separates labels in the target column, by name; empty if it is not given."""
    delimiter = getattr(args, "target_delimiter", None)
    return {} if delimiter is None else {"target_delimiter": delimiter}


def fit(args: Namespace, model: LabelModel, validation: LabelEvaluation | None, notes: Sequence[str]) -> None:
    """Saves a multi-label model if ``--output`` is given, and prints its summary and validation. ``notes``: for the
    user.
    """
    if args.output is not None:
        save(model, args.output)
    facts = {"model": args.output, **about.summary(model)}
    facts |= {} if validation is None else {"validation": validation.to_dict()}
    lines = [str(model), *notes, *([] if validation is None else [str(validation)])]
    lines += [] if args.output is None else ["", f"Saved to {args.output} ({output.size(args.output)})."]
    output.result(args, {**facts, "notes": list(notes)}, "\n".join(lines))


def explain(args: Namespace, model: LabelModel) -> None:
    """Prints why a row has a label or not: the one in ``--class``, or else the most probable."""
    inputs.refuse_for_sets(args, "of", "against")
    row = inputs.row_to_explain(args, model._reading_model())
    if args.label is None:
        label: Any = model.labels[int(np.argmax(model.posterior(row)[0]))]
    else:
        label = settings.as_label(args.label, model.labels)
    explanation = model.explain(row, label)
    output.result(args, facts := {"label": label, **explanation.to_dict()}, str(explanation), facts["evidence"])


def show(args: Namespace, model: LabelModel) -> None:
    """Prints the contents of a multi-label model's file; with ``--informative`` the features that tell its labels
    apart.
    """
    if args.informative is not None:
        # Of each label the values with the highest likelihood ratios; then the ratios alone, for JSON.
        informative_by_label = [model.informative(label, args.informative) for label in model.labels]
        ratios = (informative.to_dict()["classes"][0]["ratios"] for informative in informative_by_label)
        entries = [
            {"label": label, "ratios": label_ratios} for label, label_ratios in zip(model.labels, ratios, strict=True)
        ]
        return output.result(args, {"labels": entries}, "\n".join(map(str, informative_by_label)))
    # Each label, its number of rows and its threshold, a probability.
    label_facts = zip(model.labels, model.rows_by_label.tolist(), model.thresholds.probabilities.tolist(), strict=True)
    rows = sorted(label_facts, key=lambda row: -row[1])
    width = max(len(str(label)) for label, *_ in rows)
    lines = [str(model), f"  {'label':{width}}        rows  threshold"]
    # The 40 most frequent ones.
    lines += [f"  {label!s:{width}}  {n_rows:10,.6g}  {threshold:9.3f}" for label, n_rows, threshold in rows[:40]]
    facts = {"file": args.file, "kind": model.kind, **about.summary(model), "digest": model.tally.digest()}
    return output.result(args, facts, "\n".join([*lines, "", str(model.tally.schema)]))
