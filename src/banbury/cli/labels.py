"""Rows with sets of labels on the command line: fit, cross-validate, predict, explain, evaluate, show."""

from __future__ import annotations

import csv
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from banbury import errors, quality
from banbury.cli import about, inputs, output, settings
from banbury.cli.wording import printable
from banbury.explain.page import percent
from banbury.files import save
from banbury.labels import HeldRows, LabelEvaluation, LabelModel, fitted, validated
from banbury.labels import cross_validate as validate_labels
from banbury.labels.weighing import FEWEST_ROWS, can_weigh
from banbury.readers import Source, read
from banbury.rows.labelled import has_sets
from banbury.table import Table


def wanted(args: Namespace, data: Any) -> bool:
    """Whether the target is one of sets of labels: lists, texts with a delimiter, or several columns of flags."""
    if args.target is None:
        return False
    args.target = target(args, data)
    return has_sets(data, args.target, reading(args))


def target(args: Namespace, data: Any) -> Any:
    """The target; several columns where it is a list of them, and no column is named like the list."""
    if isinstance(args.target, str) and "," in args.target:
        names = next(iter(read(data, **settings.reading(args)))).names
        parts = [part.strip() for part in args.target.split(",")]
        if args.target not in names and not set(parts).isdisjoint(names):
            for part in parts:
                if part not in names:
                    raise errors.unknown_column(part, names)
            return parts
    return args.target


def reading(args: Namespace) -> dict[str, Any]:
    """How the input is read, and its labels."""
    return {**settings.reading(args), **_delimiter(args)}


def _delimiter(args: Namespace) -> dict[str, Any]:
    given = getattr(args, "target_delimiter", None)
    return {} if given is None else {"target_delimiter": given}


def _refuse(args: Namespace, *names: str) -> None:
    for name in names:
        value = getattr(args, name.replace("-", "_"), None)
        errors.require(value in (None, False, []), f"--{name}", value, "left out where rows have sets of labels")


def fit(args: Namespace, data: Any) -> None:
    """Counts, chooses thresholds on rows held out, weighs where that is better, and keeps the model."""
    _refuse(args, "tan", "class-prior", "bins")
    model, validation, notes = _judge(args, data)
    if args.output is not None:
        save(model, args.output)
    facts = {"model": args.output, **about.summary(model)}
    facts |= {} if validation is None else {"validation": validation.to_dict()}
    lines = [str(model), *notes, *([] if validation is None else [str(validation)])]
    lines += [] if args.output is None else ["", f"Kept in {args.output} ({output.size(args.output)})."]
    output.result(args, {**facts, "notes": notes}, "\n".join(lines))


def _judge(args: Namespace, data: Any) -> tuple[LabelModel, LabelEvaluation | None, list[str]]:
    """The model that is kept, how good it is on rows held out, and what is to be said of the choice."""
    counting, estimating = settings.counting(args, data), settings.estimating(args, data)
    table = partial(Table.of, data, args.target, threads=args.threads, **counting, **_delimiter(args))
    rows = HeldRows.of(table())
    tally, notes = rows.count(), list[str]()
    enough = int(rows.known.sum()) >= FEWEST_ROWS
    alpha = "auto" if enough and not settings.alpha_given(args) else estimating.get("alpha", 1.0)
    chosen = {"how": args.how, "seed": args.seed, "threads": args.threads, "threshold": "f1" if enough else None}
    chosen["calibrate"] = args.calibrate
    model, found = fitted(rows, tally, alpha=alpha, **chosen)
    if found is None and not enough and getattr(args, "cross_validate", True) and int(rows.known.sum()) > 1:
        validation: LabelEvaluation | None = validate_labels(table(), min(10, rows.n_rows), threshold=None)
    else:
        validation = None if found is None else validated(found, chosen["threshold"], args.calibrate)
    if not args.plain and (args.weigh or (enough and can_weigh(tally, rows.n_rows))):
        other, weighed = fitted(rows, tally, weigh=True, **chosen)
        assert weighed is not None
        said = validated(weighed, chosen["threshold"], args.calibrate)
        notes += [_compared("plain  ", validation), _compared("weighed", said)]
        if args.weigh or validation is None or said.log_loss < validation.log_loss:
            model, validation = other, said
        notes.append(about.kept("weighed" if model is other else "plain", args.weigh))
    if args.folds is not None and validation is not None:
        how = {"how": args.how, "alpha": alpha, "weigh": model.weighing is not None, "seed": args.seed}
        rest = {"threshold": chosen["threshold"], "calibrate": args.calibrate}
        validation = validate_labels(rows, args.folds, **how, **rest)
    if not enough:
        notes.append(f"thresholds are one half: choosing them takes {FEWEST_ROWS} rows at least")
    return model, validation, notes


def _compared(name: str, found: LabelEvaluation | None) -> str:
    if found is None:
        return f"{name}  not validated"
    return f"{name}  micro F1 {found.micro_f1:.4f}  macro F1 {found.macro_f1:.4f}  log loss {found.log_loss:.4f}"


def cross_validate(args: Namespace, data: Any) -> None:
    """How good the labels of the model that `fit` keeps are on rows that were not counted; or over as many folds as are asked."""
    _refuse(args, "class-prior", "groups")
    wanted = "a whole number from 2 up where rows have sets of labels"
    errors.require(args.folds != "loo", "--folds", args.folds, wanted)
    _, found, notes = _judge(args, data)
    if found is None:
        raise errors.empty_data(None, "one row only, so there is nothing to validate it on")
    found = replace(found, notes=(*found.notes, *notes))
    output.result(args, facts := found.to_dict(), str(found), facts["labels"])


def evaluate(args: Namespace, model: LabelModel) -> None:
    """Scores a model of labels on rows that have them."""
    with inputs.opened(args) as data:
        given = None if args.target is None else target(args, data)
        found = quality.evaluate(model, data, given, **reading(args))
    output.result(args, facts := found.to_dict(), str(found), facts["labels"])


def predict(args: Namespace, model: LabelModel) -> None:
    """The labels of each row with their probabilities, as soon as they are known."""
    _refuse(args, "of", "costs", "unsure")
    kind, first = output.kind(args), True
    writer = csv.writer(output.Shown(), lineterminator="\n")
    encoded = output.encoder()
    with _rows(args, model) as source:
        for batch, posterior in model.stream(source):
            chosen = model.chosen(posterior, args.top, args.at_least_one)
            place = {label: k for k, label in enumerate(model.labels)}
            for row, labels in enumerate(chosen):
                own = [float(posterior[row, place[label]]) for label in labels]
                record: dict[str, Any] = {"row": batch.first_row + row + 1}
                if batch.row_names:
                    record["file"] = batch.row_names[row]
                record |= {"labels": list(labels), "probabilities": own}
                if args.posteriors:
                    record["posteriors"] = dict(zip(map(str, model.labels), posterior[row].tolist(), strict=True))
                if kind == "json":
                    print(encoded(output.plain(record)))
                elif kind == "csv":
                    names = [name for name in record if name not in ("labels", "probabilities", "posteriors")]
                    if first:
                        writer.writerow([*names, "labels", "probabilities"])
                    joined = "; ".join(map(str, labels)), "; ".join(f"{p:.6g}" for p in own)
                    writer.writerow([*(record[name] for name in names), *joined])
                else:
                    if first:
                        print("    row  labels")
                    said = ", ".join(f"{label} {percent(p)}" for label, p in zip(labels, own, strict=True)) or "(none)"
                    print(printable(f"{record['row']:7,}  {said}  {record.get('file', '')}".rstrip()))
                first = False
            sys.stdout.flush()


def explain(args: Namespace, model: LabelModel) -> None:
    """Why a row has a label, or has it not: the one that is asked for, or the most probable."""
    _refuse(args, "of", "against")
    row = inputs.wanted_row(args, model.as_answering())
    if args.label is None:
        label: Any = model.labels[int(np.argmax(model.posterior(row)[0]))]
    else:
        label = settings.as_label(args.label, model.labels)
    told = model.explain(row, label)
    output.result(args, facts := {"label": label, **told.to_dict()}, str(told), facts["evidence"])


@contextmanager
def _rows(args: Namespace, model: LabelModel) -> Iterator[Source]:
    """The input as a model of labels reads it: lines of text where it says so, or files."""
    with inputs.rows(args, model.as_answering()) as data:
        yield data if isinstance(data, Source) else model.read(data, settings.reading(args))


def show(args: Namespace, model: LabelModel) -> None:
    """What a file of a model of labels holds."""
    if args.informative is not None:
        every = [model.informative(label, args.informative) for label in model.labels]
        ratios = (own.to_dict()["classes"][0]["ratios"] for own in every)
        told = [{"label": n, "ratios": r} for n, r in zip(model.labels, ratios, strict=True)]
        return output.result(args, {"labels": told}, "\n".join(map(str, every)))
    each = zip(model.labels, model.n_rows.tolist(), model.thresholds.probabilities.tolist(), strict=True)
    rows = sorted(each, key=lambda row: -row[1])
    width = max(len(str(label)) for label, *_ in rows)
    lines = [str(model), f"  {'label':{width}}        rows  threshold"]
    lines += [f"  {label!s:{width}}  {n:10,.6g}  {threshold:9.3f}" for label, n, threshold in rows[:40]]
    facts = {"file": args.file, "kind": about.kind(model), **about.summary(model), "digest": model.tally.digest()}
    return output.result(args, facts, "\n".join([*lines, "", str(model.tally.schema)]))
