"""predict, explain: the class of each row, or how probable it is; and why."""

from __future__ import annotations

import csv
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from itertools import repeat
from typing import Any

import banbury
from banbury import errors
from banbury.arrays import Real
from banbury.cli import inputs, output, settings
from banbury.cli.wording import printable
from banbury.families.bags.text_settings import strings
from banbury.model.explain.explanation import Explanation, strict
from banbury.model.explain.page import name_class, percent, quote_class
from banbury.model.naive_bayes import Model, cost_matrix
from banbury.reading import Batch

MOST_COUNTED = 64  # megabytes that are counted to see whether they are what the model has counted
MAY = "the model may have been trained on this row, which would bias the explanation"
Record = dict[str, Any]  # of a row: its number, the file it came from, and the answer
Answered = Iterator[tuple[Batch, list[Record]]]
Records = Callable[[Batch, Real], list[Record]]  # of rows and their posteriors
Write = Callable[[Namespace, Any, Answered], None]


def predict(args: Namespace) -> None:
    """Classifies rows batch by batch, and says each answer as soon as it is known; of one class, how probable each row is."""
    model: Any = inputs.model_or_labels(args.model)
    records, write_table = _labels(args, model) if inputs.is_labels(model) else _classes(args, model)
    write = {"json": _write_json, "csv": _write_csv, "table": write_table}
    if sys.stdout.isatty():  # the answers themselves show how far it has come
        os.environ["BANBURY_PROGRESS"] = "0"
    with inputs.rows(args, model.as_answering()) as data:
        answers = model.stream(data, **settings.reading(args))
        write[output.kind(args)](args, model, ((batch, records(batch, posterior)) for batch, posterior in answers))


def _classes(args: Namespace, model: Model) -> tuple[Records, Write]:
    """The answers of a model of classes, and what writes them as a table."""
    if args.top is not None or args.at_least_one:
        raise errors.bad_setting("--top", args.top, "omitted, like --at-least-one, when each row has one class")
    errors.require(args.unsure is None or 0 <= args.unsure <= 1, "--unsure", args.unsure, "a probability from 0 to 1")
    costs = settings.costs(args.costs, model.classes)
    args.cost_matrix = None if costs is None else cost_matrix(costs, model.classes)
    if is_density(model):
        return _probabilities(args, model), _write_densities
    return _answers(args, model), _write_table


def _labels(args: Namespace, model: Any) -> tuple[Records, Write]:
    """The same of a model of labels."""
    inputs.refuse_for_sets(args, "of", "costs", "unsure")

    def records(batch: Batch, posterior: Real) -> list[Record]:
        answers = model.records(posterior, args.top, args.at_least_one)
        records = [{**place, **record} for place, record in zip(_places(args, batch), answers, strict=True)]
        if not args.posteriors:
            return records
        return [
            {**record, "posteriors": probabilities}
            for record, probabilities in zip(records, posterior.tolist(), strict=True)
        ]

    return records, _write_labels


def is_density(model: Model) -> bool:
    """Whether it was counted without a target, as one class."""
    return model.target is None and len(model.classes) == 1


def _answers(args: Namespace, model: Model) -> Records:
    """Of each row its class, None where it is unsure, the probability of that, and those of all classes where asked."""
    costs = args.cost_matrix
    classes = model.classes

    def records(batch: Batch, posterior: Real) -> list[Record]:
        best = posterior.argmax(axis=1) if costs is None else (posterior @ costs).argmin(axis=1)
        answered = []
        for record, number, probabilities in zip(_places(args, batch), best.tolist(), posterior.tolist(), strict=True):
            sure = args.unsure is None or probabilities[number] >= args.unsure
            record |= {"class": classes[number] if sure else None, "probability": probabilities[number]}
            answered.append(record | {"posteriors": probabilities} if args.posteriors else record)
        return answered

    return records


def _probabilities(args: Namespace, model: Model) -> Records:
    """log P(row) of each row, which says how unusual it is; the class, of which there is one, says nothing."""
    density = banbury.Density.from_model(model)

    def records(batch: Batch, _: Real) -> list[Record]:
        logs = density.score_samples(batch).tolist()
        return [{**r, "log_probability": strict(log)} for r, log in zip(_places(args, batch), logs, strict=True)]

    return records


def _places(args: Namespace, batch: Batch) -> Iterator[Record]:
    """The number of each row, and its file if each came from one; standard input is called so, wherever it is kept."""
    spool = getattr(args, "spool", None)
    for row in range(batch.n_rows):
        record: Record = {"row": batch.first_row + row + 1}
        if batch.row_names:
            name = batch.row_names[row]
            record["file"] = name.replace(spool, "stdin") if spool else name
        yield record


# Writing -------------------------------------------------------------------------------------------------------------


def _write_json(args: Namespace, model: Any, answered: Answered) -> None:
    encoded = output.encoder()
    names = [str(name) for name in model.names]
    for _, records in answered:
        for record in records:
            if "posteriors" in record:
                record["posteriors"] = dict(zip(names, record["posteriors"], strict=True))
        print("".join(f"{encoded(record)}\n" for record in records), end="", flush=True)


def _write_csv(args: Namespace, model: Any, answered: Answered) -> None:
    writer = csv.writer(output.Shown(), lineterminator="\n")
    begun = False
    for _, records in answered:
        for record in records:
            posteriors = record.pop("posteriors", ())
            if not begun:
                begun = True
                writer.writerow([*record, *(f"P({name})" for name in model.names if posteriors)])
            writer.writerow([*map(_cell, record.values()), *posteriors])
        sys.stdout.flush()


def _cell(value: Any) -> Any:
    """A value, or several in one text."""
    if not isinstance(value, list):
        return value
    return "; ".join(f"{one:.6g}" if isinstance(one, float) else str(one) for one in value)


def _write_labels(args: Namespace, model: Any, answered: Answered) -> None:
    for number, (_, records) in enumerate(answered):
        if not number:
            print("    row  labels")
        for record in records:
            label_probabilities = zip(record["labels"], record["probabilities"], strict=True)
            predicted_labels = ", ".join(f"{label} {percent(p)}" for label, p in label_probabilities) or "(none)"
            print(printable(f"{record['row']:7,}  {predicted_labels}  {record.get('file', '')}".rstrip()))
        sys.stdout.flush()


def _write_densities(args: Namespace, model: Any, answered: Answered) -> None:
    for number, (_, records) in enumerate(answered):
        if not number:
            print(f"{'row':>7}  log P(row)")
        for record in records:
            file = printable(record.get("file", ""))
            print(f"{record['row']:7,}  {float(record['log_probability']):10.4f}  {file}".rstrip())
        sys.stdout.flush()


def _write_table(args: Namespace, model: Any, answered: Answered) -> None:
    """A line for each row: its number, the answer, how sure it is, and where it came from or how it begins."""
    names = {name: printable(name_class(name, model.target)) for name in model.classes}
    columns = shutil.get_terminal_size((100, 24)).columns
    width = max(map(len, [*names.values(), *["unsure"] * (args.unsure is not None), "class"]))
    more_columns = "".join(f"  {name:>8}" for name in names.values()) if args.posteriors else "  probability"
    for number, (batch, records) in enumerate(answered):
        if not number:
            print(f"{'row':>7}  {'class':{width}}{more_columns}")
        for record, beginning in zip(records, _beginnings(batch, records, model), strict=False):
            predicted_class = "unsure" if record["class"] is None else names[record["class"]]
            shares = zip(record.get("posteriors", ()), names.values(), strict=False)
            numbers = "".join(f"  {p:{max(8, len(name))}.4f}" for p, name in shares)
            numbers = numbers or f"  {record['probability']:11.4f}"
            line = f"{record['row']:7,}  {predicted_class:{width}}{numbers}  {beginning}"
            print(line if len(line) <= columns else f"{line[: columns - 1]}…")
        sys.stdout.flush()


def _beginnings(batch: Batch, records: list[Record], model: Model) -> Iterator[str]:
    """How each row is recognised: its file, or the beginning of its text."""
    features = model.schema.features if isinstance(model, Model) and len(batch.names) <= 2 else ()
    texts = [feature for feature in features if feature.reads_text]
    if batch.row_names:
        yield from (printable(record["file"]) for record in records)
    elif len(texts) == 1:
        name = texts[0].name if batch.named else batch.names[0]
        for text in strings(batch.texts(name)):
            yield printable(" ".join(str(text)[:200].split()))
    yield from repeat("")


# Explaining ----------------------------------------------------------------------------------------------------------


def explain(args: Namespace) -> None:
    """Says why a text, or a row of the input, gets its class; of one class, what is unusual about it."""
    model = inputs.model_or_labels(args.model)
    if inputs.is_labels(model):
        import_module("banbury.cli.labels").explain(args, model)
        return
    requirement = "omitted when each row has one class; use --against to compare with another class"
    errors.require(args.label is None, "--label", args.label, requirement)
    density = is_density(model)
    if density and args.against is not None:
        raise errors.bad_setting("--against", args.against, "omitted for a density, because it has no classes")
    row = inputs.row_to_explain(args, model)
    if density:
        surprise = banbury.Density.from_model(model).surprise(row)
        output.result(args, facts := surprise.to_dict(), str(surprise), facts["evidence"])
        return
    against = None if args.against is None else settings.as_label(args.against, model.classes)
    truth = _truth(row, model) if isinstance(row, Batch) else None
    explanation, counted = _explain_row(args, model, row, against, truth)
    facts = explanation.to_dict()
    text = str(explanation)
    if truth is not None:  # a column of words may hold the class 0 as "0"
        right = truth == explanation.winner or str(truth) == str(explanation.winner)
        text += f"\nTrue class: {quote_class(truth, model.target)}{'' if right else ', so the prediction is wrong'}."
        facts |= {"truth": truth, "counted": counted}
    output.result(args, facts, text, facts["evidence"])


def _explain_row(args: Namespace, model: Model, row: Any, against: Any, truth: Any) -> tuple[Explanation, bool | None]:
    """The explanation, and whether the model has counted the row: None where that cannot be told.

    A row that was counted is left out, unless that is declined: it would speak for itself.
    """
    if args.held_out not in (choices := ("auto", "yes", "no")):
        raise errors.unknown_choice("--held-out", args.held_out, choices)
    counted = args.held_out == "yes" or (None if truth is None else _is_counted(args, model, row))
    if counted and args.held_out != "no":
        return model.explain(row, against, held_out=True), True
    explanation = model.explain(row, against)
    if truth is not None and counted is None:
        explanation = replace(explanation, remarks=(f"{MAY}: leave the row out with --held-out yes",))
    return explanation, counted


def _is_counted(args: Namespace, model: Model, row: Batch) -> bool | None:
    """Whether a row of the input is among those that a model has counted: if all of the input is."""
    try:
        model.explain(row, held_out=True)
    except (errors.NegativeCount, errors.RoundedTally):
        return False
    except errors.BanburyError:
        return None
    if inputs.size(args) > MOST_COUNTED:
        return None
    with inputs.rows(args, model) as data:
        return model.has_counted(data, **settings.reading(args)) or None


def _truth(row: Batch, model: Model) -> Any:
    """The class that the data give the row, if they have one."""
    if model.target is None or model.target not in row.names:
        return None
    return next(iter(row.head(model.target, 1)), None)
