"""predict, explain: the class of each row, or the density of the row; and why."""

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
from banbury.families.bags.text import strings
from banbury.files.checking import JsonObject
from banbury.model.explain.explanation import Explanation, strict
from banbury.model.explain.page import name_class, percent, quote_class
from banbury.model.naive_bayes import Model, cost_matrix
from banbury.reading import Batch

MOST_MEGABYTES_COUNTED = 64  # input up to so many megabytes is counted again to see whether the model was trained on it
MAY_BE_TRAINED_ON = "the model may have been trained on this row, which would bias the explanation"
Record = JsonObject  # a row's number, its file if it has one, and the answer
Answers = Iterator[tuple[Batch, list[Record]]]  # each batch with a record for each row
MakeRecords = Callable[[Batch, Real], list[Record]]  # takes a batch and its posterior (rows × classes)
Write = Callable[[Namespace, Any, Answers], None]  # prints the answers of a model


def predict(args: Namespace) -> None:
    """Classifies rows batch by batch and prints each batch at once; with a density model prints how probable each row
    is.
    """
    model: Any = inputs.model_or_labels(args.model)
    # A function that makes the records of a batch, and one that prints them as a table.
    make_records, write_table = _labels(args, model) if inputs.is_labels(model) else _classes(args, model)
    # Functions that print records, by output format.
    write = {"json": _write_json, "csv": _write_csv, "table": write_table}
    if sys.stdout.isatty():  # the printed answers show the progress
        os.environ["BANBURY_PROGRESS"] = "0"
    with inputs.rows(args, model._reading_model()) as data:  # the opened input
        answers = model.stream(data, **settings.reading(args))  # pairs of a batch and its posteriors (rows × classes)
        write[output.kind(args)](args, model, ((batch, make_records(batch, posterior)) for batch, posterior in answers))


def _classes(args: Namespace, model: Model) -> tuple[MakeRecords, Write]:
    """Returns a function that makes records from the posteriors of a single-label model, and one that prints them as a
    table. Checks the options, and sets ``args.cost_matrix`` (true class × predicted class; None without costs).
    """
    if args.top is not None or args.at_least_one:
        raise errors.bad_setting("--top", args.top, "omitted, like --at-least-one, when each row has one class")
    errors.require(args.unsure is None or 0 <= args.unsure <= 1, "--unsure", args.unsure, "a probability from 0 to 1")
    costs = settings.costs(args.costs, model.classes)  # true class → predicted class → cost; None without costs
    args.cost_matrix = None if costs is None else cost_matrix(costs, model.classes)
    if is_density(model):
        return _probabilities(args, model), _write_densities
    return _answers(args, model), _write_table


def _labels(args: Namespace, model: Any) -> tuple[MakeRecords, Write]:
    """Returns a function that makes records from the posteriors of a multi-label model, and one that prints them as a
    table.
    """
    inputs.refuse_for_sets(args, "of", "costs", "unsure")

    def make_records(batch: Batch, posterior: Real) -> list[Record]:
        """Returns a record for each row of the batch: its number and file, its labels, and all probabilities if
        requested. ``posterior``: rows × labels.
        """
        answers = model._records(posterior, args.top, args.at_least_one)  # a dictionary with the labels of each row
        label_records = [
            {**row_record, **label_record}
            for row_record, label_record in zip(_row_records(args, batch), answers, strict=True)
        ]
        if not args.posteriors:
            return label_records
        return [
            {**label_record, "posteriors": probabilities}
            for label_record, probabilities in zip(label_records, posterior.tolist(), strict=True)
        ]

    return make_records, _write_labels


def is_density(model: Model) -> bool:
    """Returns whether the model was counted without a target, so that it estimates a density."""
    return model.target is None and len(model.classes) == 1


def _answers(args: Namespace, model: Model) -> MakeRecords:
    """Returns a function that makes records with the class of each row (None if unsure), its probability, and all
    probabilities if requested.
    """
    costs = args.cost_matrix  # true class × predicted class, or None
    classes = model.classes

    def make_records(batch: Batch, posterior: Real) -> list[Record]:
        """Returns a record for each row of the batch: its number and file, its class and the probability of that.
        ``posterior``: rows × classes; ``costs``: true class × predicted class, or None.
        """
        # The number of the most probable class of each row, or of the one with the lowest expected cost.
        best_classes = posterior.argmax(axis=1) if costs is None else (posterior @ costs).argmin(axis=1)
        answers = []  # a record for each row
        for record, best_class, probabilities in zip(
            _row_records(args, batch), best_classes.tolist(), posterior.tolist(), strict=True
        ):
            is_sure = args.unsure is None or probabilities[best_class] >= args.unsure
            record |= {"class": classes[best_class] if is_sure else None, "probability": probabilities[best_class]}
            answers.append(record | {"posteriors": probabilities} if args.posteriors else record)
        return answers

    return make_records


def _probabilities(args: Namespace, model: Model) -> MakeRecords:
    """Returns a function that makes records with log P(row) of each row, which says how unusual it is."""
    density = banbury.Density.from_model(model)  # scores rows

    def make_records(batch: Batch, _: Real) -> list[Record]:
        """Returns a record for each row of the batch; its posteriors are not used."""
        log_probabilities = density.score_samples(batch).tolist()
        return [
            {**record, "log_probability": strict(log_probability)}
            for record, log_probability in zip(_row_records(args, batch), log_probabilities, strict=True)
        ]

    return make_records


def _row_records(args: Namespace, batch: Batch) -> Iterator[Record]:
    """Yields a record for each row with its number, and its file if rows are files. The temporary file of standard
    input is called stdin.
    """
    temporary_path = getattr(args, "spool", None)  # of the file with standard input, if that is the input
    for row in range(batch.n_rows):
        record: Record = {"row": batch.first_row + row + 1}
        if batch.row_names:
            name = batch.row_names[row]
            record["file"] = name.replace(temporary_path, "stdin") if temporary_path else name
        yield record


# Writing -------------------------------------------------------------------------------------------------------------


def _write_json(args: Namespace, model: Any, answers: Answers) -> None:
    """Prints each record as a line of JSON. ``answers``: batches with their records, whose "posteriors", if they have
    them, are lists in the order of the model's classes or labels.
    """
    encode = output.encoder()  # returns a record as JSON text
    names = [str(name) for name in model._names]  # of classes or labels
    for _, records in answers:
        for record in records:
            if "posteriors" in record:
                record["posteriors"] = dict(zip(names, record["posteriors"], strict=True))
        print("".join(f"{encode(record)}\n" for record in records), end="", flush=True)


def _write_csv(args: Namespace, model: Any, answers: Answers) -> None:
    """Prints the records as CSV with a header. ``answers``: batches with their records."""
    writer = csv.writer(output.CsvStream(), lineterminator="\n")
    has_header = False  # whether it has been printed
    for _, records in answers:
        for record in records:
            posteriors = record.pop("posteriors", ())  # one per class or label; empty unless requested
            if not has_header:
                has_header = True
                writer.writerow([*record, *(f"P({name})" for name in model._names if posteriors)])
            writer.writerow([*map(_cell, record.values()), *posteriors])
        sys.stdout.flush()


def _cell(value: Any) -> Any:
    """Returns a value for CSV; several are joined with semicolons."""
    if not isinstance(value, list):
        return value
    return "; ".join(f"{element:.6g}" if isinstance(element, float) else str(element) for element in value)


def _write_labels(args: Namespace, model: Any, answers: Answers) -> None:
    """Prints a line for each row of a multi-label model: its number, its labels with their probabilities, its file.
    ``answers``: batches with their records.
    """
    for batch_number, (_, records) in enumerate(answers):
        if not batch_number:
            print("    row  labels")
        for record in records:
            # Pairs of each predicted label and its probability.
            label_probabilities = zip(record["labels"], record["probabilities"], strict=True)
            predicted_labels = (
                ", ".join(f"{label} {percent(probability)}" for label, probability in label_probabilities) or "(none)"
            )
            print(printable(f"{record['row']:7,}  {predicted_labels}  {record.get('file', '')}".rstrip()))
        sys.stdout.flush()


def _write_densities(args: Namespace, model: Any, answers: Answers) -> None:
    """Prints a line for each row: its number, log P(row), its file. ``answers``: batches with their records."""
    for batch_number, (_, records) in enumerate(answers):
        if not batch_number:
            print(f"{'row':>7}  log P(row)")
        for record in records:
            file = printable(record.get("file", ""))
            print(f"{record['row']:7,}  {float(record['log_probability']):10.4f}  {file}".rstrip())
        sys.stdout.flush()


def _write_table(args: Namespace, model: Any, answers: Answers) -> None:
    """Prints a line for each row: its number, its class, how sure that is, and its file or the beginning of its text.
    ``answers``: batches with their records.
    """
    names = {name: printable(name_class(name, model.target)) for name in model.classes}  # as they are printed, by class
    terminal_width = shutil.get_terminal_size((100, 24)).columns  # 100 if it is unknown
    # In characters.
    class_width = max(map(len, [*names.values(), *["unsure"] * (args.unsure is not None), "class"]))
    number_header = "".join(f"  {name:>8}" for name in names.values()) if args.posteriors else "  probability"
    for batch_number, (batch, records) in enumerate(answers):
        if not batch_number:
            print(f"{'row':>7}  {'class':{class_width}}{number_header}")
        for record, beginning in zip(records, _beginnings(batch, records, model), strict=False):
            predicted_class = "unsure" if record["class"] is None else names[record["class"]]
            # Pairs of the probability and the printed name of each class; none unless requested.
            class_probabilities = zip(record.get("posteriors", ()), names.values(), strict=False)
            # Probabilities as text, as wide as their headings.
            numbers = "".join(f"  {probability:{max(8, len(name))}.4f}" for probability, name in class_probabilities)
            numbers = numbers or f"  {record['probability']:11.4f}"
            line = f"{record['row']:7,}  {predicted_class:{class_width}}{numbers}  {beginning}"
            print(line if len(line) <= terminal_width else f"{line[: terminal_width - 1]}…")
        sys.stdout.flush()


def _beginnings(batch: Batch, records: list[Record], model: Model) -> Iterator[str]:
    """Yields for each row what helps to recognise it: its file, or the beginning of its text (200 characters); then, or
    if there is neither, empty texts without end.
    """
    # Empty if there are further columns, which the beginning of a text would not describe.
    features = model.schema.features if isinstance(model, Model) and len(batch.names) <= 2 else ()
    text_features = [feature for feature in features if feature.reads_text]
    if batch.row_names:
        yield from (printable(record["file"]) for record in records)
    elif len(text_features) == 1:
        name = text_features[0].name if batch.named else batch.names[0]  # of the text column
        for text in strings(batch.texts(name)):
            yield printable(" ".join(str(text)[:200].split()))
    yield from repeat("")


# Explaining ----------------------------------------------------------------------------------------------------------


def explain(args: Namespace) -> None:
    """Prints why a text or a row of the input gets its class; with a density model, what is unusual about it."""
    model = inputs.model_or_labels(args.model)
    if inputs.is_labels(model):
        import_module("banbury.cli.labels").explain(args, model)
        return
    errors.require(
        args.label is None,
        "--label",
        args.label,
        "omitted when each row has one class; use --against to compare with another class",
    )
    is_a_density = is_density(model)
    if is_a_density and args.against is not None:
        raise errors.bad_setting("--against", args.against, "omitted for a density, because it has no classes")
    row = inputs.row_to_explain(args, model)
    if is_a_density:
        surprise = banbury.Density.from_model(model).surprise(row)
        output.result(args, facts := surprise.to_dict(), str(surprise), facts["evidence"])
        return
    # Classes as the model has them, which need not be texts.
    against = None if args.against is None else settings.as_label(args.against, model.classes)
    truth = _truth(row, model) if isinstance(row, Batch) else None
    explanation, was_trained_on = _explain_row(args, model, row, against, truth)
    facts = explanation.to_dict()
    text = str(explanation)
    if truth is not None:  # a column of words may hold the class 0 as "0"
        is_correct = truth == explanation.winner or str(truth) == str(explanation.winner)
        text += (
            f"\nTrue class: {quote_class(truth, model.target)}{'' if is_correct else ', so the prediction is wrong'}."
        )
        facts |= {"truth": truth, "in_training_data": was_trained_on}
    output.result(args, facts, text, facts["evidence"])


def _explain_row(args: Namespace, model: Model, row: Any, against: Any, truth: Any) -> tuple[Explanation, bool | None]:
    """Returns the explanation of a row, and whether the model was trained on it (None if that cannot be told).

    A training row is left out of the model unless ``--held-out no`` is given, since its own counts would bias the
    explanation. ``against``: the class to compare with, or None; ``truth``: the true class, None if unknown.
    """
    if args.held_out not in (choices := ("auto", "yes", "no")):
        raise errors.unknown_choice("--held-out", args.held_out, choices)
    # Whether the model was trained on the row; None if that cannot be told.
    was_trained_on = args.held_out == "yes" or (None if truth is None else _was_trained_on(args, model, row))
    if was_trained_on and args.held_out != "no":
        return model.explain(row, against, held_out=True), True
    explanation = model.explain(row, against)
    if truth is not None and was_trained_on is None:
        explanation = replace(explanation, remarks=(f"{MAY_BE_TRAINED_ON}: leave the row out with --held-out yes",))
    return explanation, was_trained_on


def _was_trained_on(args: Namespace, model: Model, row: Batch) -> bool | None:
    """Returns True if the model was trained on exactly this input, and False if it cannot have been trained on this
    row; None if neither can be told.
    """
    try:
        model.explain(row, held_out=True)
    except (errors.NegativeCount, errors.RoundedTally):
        return False
    except errors.BanburyError:
        return None
    if inputs.size(args) > MOST_MEGABYTES_COUNTED:
        return None
    with inputs.rows(args, model) as data:  # the opened input
        # It may have been trained on these and other rows.
        return model.has_counted(data, **settings.reading(args)) or None


def _truth(row: Batch, model: Model) -> Any:
    """Returns the true class of the row if the input has a column of the target; otherwise None."""
    if model.target is None or model.target not in row.names:
        return None
    return next(iter(row.head(model.target, n=1)), None)  # its first value
