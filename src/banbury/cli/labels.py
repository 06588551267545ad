"""Models of labels on the command line: what is special in showing them."""

from __future__ import annotations

import csv
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from banbury import errors
from banbury.cli import about, inputs, output, settings
from banbury.cli.wording import printable
from banbury.explain.page import percent
from banbury.files import save
from banbury.labels import LabelEvaluation, LabelModel
from banbury.readers import Source, read


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


def delimiter(args: Namespace) -> dict[str, Any]:
    """What divides labels in the target, if that is said."""
    given = getattr(args, "target_delimiter", None)
    return {} if given is None else {"target_delimiter": given}


def refuse(args: Namespace, *names: str) -> None:
    """Raises where an option is given that sets of labels do not have."""
    for name in names:
        value = getattr(args, name.replace("-", "_"), None)
        errors.require(value in (None, False, []), f"--{name}", value, "left out where rows have sets of labels")


def fit(args: Namespace, model: LabelModel, validation: LabelEvaluation | None, notes: Sequence[str]) -> None:
    """Keeps a model of labels and says how good it is."""
    if args.output is not None:
        save(model, args.output)
    facts = {"model": args.output, **about.summary(model)}
    facts |= {} if validation is None else {"validation": validation.to_dict()}
    lines = [str(model), *notes, *([] if validation is None else [str(validation)])]
    lines += [] if args.output is None else ["", f"Kept in {args.output} ({output.size(args.output)})."]
    output.result(args, {**facts, "notes": list(notes)}, "\n".join(lines))


def predict(args: Namespace, model: LabelModel) -> None:
    """The labels of each row with their probabilities, as soon as they are known."""
    refuse(args, "of", "costs", "unsure")
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
    refuse(args, "of", "against")
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
    facts = {"file": args.file, "kind": model.kind, **about.summary(model), "digest": model.tally.digest()}
    return output.result(args, facts, "\n".join([*lines, "", str(model.tally.schema)]))
