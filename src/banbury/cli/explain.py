"""explain: why a row gets its class."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import banbury
from banbury import errors
from banbury.cli import inputs, output, settings
from banbury.cli.inputs import Answering
from banbury.cli.predict import is_density
from banbury.naive_bayes import Model
from banbury.readers import Batch, Source
from banbury.table import batches


def explain(args: Namespace) -> None:
    """Says why a text, or a row of the input, gets its class; of one class, what is unusual about it."""
    model = inputs.answering(args.model, args.of)
    if isinstance(model, Model) and is_density(model):
        _explain_surprise(args, model)
        return
    against = None if args.against is None else settings.as_label(args.against, model.classes)
    row = _wanted(args, model)
    explanation, truth = model.explain(row, against), _truth(row, model) if isinstance(row, Batch) else None
    facts, text = explanation.to_dict(), str(explanation)
    of_truth = {} if truth is None else {"truth": truth}
    if truth is not None:  # a column of words may hold the class 0 as "0"
        right = truth == explanation.winner or str(truth) == str(explanation.winner)
        text += f"\nIn the file: {truth!r}{'' if right else ', so the answer is wrong'}."
    output.result(args, {**facts, **of_truth}, text, facts["evidence"])


def _explain_surprise(args: Namespace, model: Model) -> None:
    if args.against is not None:
        raise errors.bad_setting("--against", args.against, "left out for a density: it has no classes")
    surprise = banbury.Density.from_model(model).surprise(_wanted(args, model))
    facts = surprise.to_dict()
    output.result(args, facts, str(surprise), facts["evidence"])


def _wanted(args: Namespace, model: Answering) -> Any:
    """The text, or the row of the input, that is asked for."""
    if args.text is None:
        return _row(args, model)
    if args.input or args.row is not None:
        raise errors.bad_setting("--text", args.text, "given without INPUT and --row: it is what is explained")
    column = inputs.text_column(model)
    if column is None:
        names = [f.name for f in model.schema.features] if isinstance(model, Model) else model.network.nodes
        known = errors.listed(name for name in names if name != model.target)
        raise errors.BadSetting(
            f"--text is for models of one column of text, and this one has learned {known}. Give a file and --row.",
            setting="text",
            value=None,
        )
    return {column: [args.text]}


def _row(args: Namespace, model: Answering) -> Batch:
    """The row that is asked for."""
    if not args.input:
        text = "what is to be explained? Give a text with --text, or an input and --row."
        raise errors.BadSetting(text, setting="input", value=None)
    wanted = 1 if args.row is None else args.row
    with inputs.rows(args, model) as data:
        source = data if isinstance(data, Source) else model._read(data, settings.reading(args))
        n_rows = 0
        for batch in batches(source, "reading"):
            at = wanted - 1 - batch.first_row
            if 0 <= at < batch.n_rows:
                return batch.cut(at, at + 1)
            n_rows = batch.first_row + batch.n_rows
        text = f"there is no row {wanted:,}: the first is 1 and the last {n_rows:,}."
        raise errors.BadSetting(text, setting="row", value=wanted)


def _truth(row: Batch, model: Answering) -> Any:
    """The class that the data give the row, if they have one."""
    if model.target is None or model.target not in row.names:
        return None
    value = next(iter(row.head(model.target, 1)), None)
    return value if isinstance(model, Model) else model.label(value)
