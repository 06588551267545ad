"""The verbs that use a model: predict, explain, evaluate."""

from __future__ import annotations

import csv
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from banbury import errors, selection
from banbury.arrays import Real
from banbury.cli import inputs, output, settings
from banbury.cli.wording import printable
from banbury.explain.explanation import strict
from banbury.naive_bayes import Model, cost_matrix
from banbury.readers import Batch, Source
from banbury.table import batches

if TYPE_CHECKING:
    from banbury.networks.classifier import NetworkClassifier

Answering: TypeAlias = "Model | NetworkClassifier"
Write = Callable[[Batch, Real], None]


def predict(given: Namespace) -> None:
    """Classifies rows batch by batch, and says each answer as soon as it is known; of one class, how probable each row is."""
    model = inputs.answering(given.model, given.of)
    if given.unsure is not None and not 0 <= given.unsure <= 1:
        raise errors.bad_setting("--unsure", given.unsure, "a probability from 0 to 1")
    costs = settings.costs(given.costs, model.classes)
    given.cost_matrix = None if costs is None else cost_matrix(costs, model.classes)
    writers = PROBABLE if _is_density(model) else WRITERS
    write = writers[output.kind(given)](given, model)
    if sys.stdout.isatty():  # the answers themselves show how far it has come
        os.environ["BANBURY_PROGRESS"] = "0"
    with _rows(given, model) as data:
        for batch, posterior in model.stream(data, **settings.reading(given)):
            write(batch, posterior)
            sys.stdout.flush()


@contextmanager
def _rows(given: Namespace, model: Answering) -> Iterator[Any]:
    if inputs.are_lines(given, model):
        yield inputs.lines_of(given)
        return
    with inputs.opened(given) as data:
        yield data


def _answers(given: Namespace, model: Answering, posterior: Real) -> Iterator[tuple[Any, float, list[float]]]:
    """Of each row its class, None where it is unsure, the probability of that, and those of all classes."""
    costs = given.cost_matrix
    best = posterior.argmax(axis=1) if costs is None else (posterior @ costs).argmin(axis=1)
    for number, each in zip(best.tolist(), posterior.tolist(), strict=True):
        sure = given.unsure is None or each[number] >= given.unsure
        yield model.classes[number] if sure else None, each[number], each


def _as_json(given: Namespace, model: Answering) -> Write:
    encoded = output.encoder()

    def write(batch: Batch, posterior: Real) -> None:
        lines, files = [], _files(given, batch)
        for row, (name, probability, each) in enumerate(_answers(given, model, posterior)):
            found: dict[str, Any] = {"row": batch.first_row + row + 1, **({"file": files[row]} if files else {})}
            found |= {"class": name, "probability": probability}
            if given.posteriors:
                found["posteriors"] = dict(zip(map(str, model.classes), each, strict=True))
            lines.append(encoded(found) + "\n")
        sys.stdout.write("".join(lines))

    return write


def _as_csv(given: Namespace, model: Answering) -> Write:
    writer = csv.writer(output.Shown(), lineterminator="\n")
    begun = False

    def write(batch: Batch, posterior: Real) -> None:
        nonlocal begun
        files = _files(given, batch)
        if not begun:
            begun = True
            posteriors = [f"P({name})" for name in model.classes] if given.posteriors else []
            writer.writerow(["row", *(["file"] if files else []), "class", "probability", *posteriors])
        for row, (name, probability, each) in enumerate(_answers(given, model, posterior)):
            place = [batch.first_row + row + 1, *([files[row]] if files else [])]
            writer.writerow([*place, name, probability, *(each if given.posteriors else [])])

    return write


def _as_table(given: Namespace, model: Answering) -> Write:
    """A line for each row: its number, the answer, how sure it is, and where it came from or how it begins."""
    names = [printable(str(name)) for name in model.classes]
    unsure = [] if given.unsure is None else ["unsure"]
    width, columns = max(map(len, [*names, *unsure, "class"])), shutil.get_terminal_size((100, 24)).columns
    begun = False

    def write(batch: Batch, posterior: Real) -> None:
        nonlocal begun
        beginnings = _beginnings(given, batch, model)
        if not begun:
            begun = True
            others = "".join(f"  {name:>8}" for name in names) if given.posteriors else "  probability"
            print(f"{'row':>7}  {'class':{width}}{others}")
        for row, (name, probability, each) in enumerate(_answers(given, model, posterior)):
            said = "unsure" if name is None else printable(str(name))
            shares = [f"  {p:{max(8, len(other))}.4f}" for p, other in zip(each, names, strict=True)]
            numbers = "".join(shares) if given.posteriors else f"  {probability:11.4f}"
            line = f"{batch.first_row + row + 1:7,}  {said:{width}}{numbers}  {next(beginnings)}"
            print(line if len(line) <= columns else f"{line[: columns - 1]}…")

    return write


def _files(given: Namespace, batch: Batch) -> list[str]:
    """The files that the rows came from, if each came from one; standard input is called so, wherever it is kept."""
    spool = getattr(given, "spool", None)
    return [name.replace(spool, "stdin") if spool else name for name in batch.row_names or []]


def _beginnings(given: Namespace, batch: Batch, model: Answering) -> Iterator[str]:
    """How each row is recognised: its file, or the beginning of its text."""
    if files := _files(given, batch):
        yield from map(printable, files)
    elif isinstance(model, Model) and len(model.schema.texts) == 1 and len(batch.names) <= 2:
        name = model.schema.texts[0].name if batch.named else batch.names[0]
        for text in model.schema.texts[0].family.strings(batch, name):  # type: ignore[attr-defined]
            yield printable(" ".join(str(text)[:200].split()))
    while True:
        yield ""


WRITERS = {"json": _as_json, "csv": _as_csv, "table": _as_table}


def _is_density(model: Answering) -> bool:
    """Whether it was counted without a target, as one class."""
    return model.target is None and len(model.classes) == 1


def _probable(
    given: Namespace, model: Answering, begin: Callable[[list[str]], None], each: Callable[..., None]
) -> Write:
    """log P(row) of each row, which says how unusual it is; the class, of which there is one, says nothing."""
    from banbury.density import Density

    density = Density.from_model(model)  # type: ignore[arg-type]
    begun = False

    def write(batch: Batch, _: Real) -> None:
        nonlocal begun
        files = _files(given, batch)
        if not begun:
            begun = True
            begin(["row", *(["file"] if files else []), "log_probability"])
        for row, log in enumerate(density.score_samples(batch).tolist()):
            each(batch.first_row + row + 1, *([files[row]] if files else []), strict(log))

    return write


def _probable_as_json(given: Namespace, model: Answering) -> Write:
    encoded, names = output.encoder(), list[str]()

    def each(*values: Any) -> None:
        sys.stdout.write(encoded(dict(zip(names, values, strict=True))) + "\n")

    return _probable(given, model, names.extend, each)


def _probable_as_csv(given: Namespace, model: Answering) -> Write:
    writer = csv.writer(output.Shown(), lineterminator="\n")
    return _probable(given, model, writer.writerow, lambda *values: writer.writerow(values))


def _probable_as_table(given: Namespace, model: Answering) -> Write:
    def each(row: int, *values: Any) -> None:
        print(f"{row:7,}  {float(values[-1]):10.4f}  {' '.join(map(printable, values[:-1]))}".rstrip())

    return _probable(given, model, lambda _: print(f"{'row':>7}  log P(row)"), each)


PROBABLE = {"json": _probable_as_json, "csv": _probable_as_csv, "table": _probable_as_table}


def explain(given: Namespace) -> None:
    """Says why a text, or a row of the input, gets its class; of one class, what is unusual about it."""
    model = inputs.answering(given.model, given.of)
    if isinstance(model, Model) and _is_density(model):
        _explain_surprise(given, model)
        return
    against = None if given.against is None else settings.as_label(given.against, model.classes)
    row = _explained(given, model)
    found, truth = model.explain(row, against), _truth(row, model) if isinstance(row, Batch) else None
    of_truth = {} if truth is None else {"truth": truth}
    right = truth == found.winner or str(truth) == str(found.winner)  # a column of words may hold the class 0 as "0"
    wrong = "" if right else ", so the answer is wrong"
    text = str(found) if truth is None else f"{found}\nIn the file: {truth!r}{wrong}."
    as_dict = found.to_dict()
    output.result(given, {**as_dict, **of_truth}, text, as_dict["evidence"])


def _explain_surprise(given: Namespace, model: Model) -> None:
    from banbury.density import Density

    if given.against is not None:
        raise errors.bad_setting("--against", given.against, "left out for a density: it has no classes")
    found = Density.from_model(model).surprise(_explained(given, model))
    as_dict = found.to_dict()
    output.result(given, as_dict, str(found), as_dict["evidence"])


def _explained(given: Namespace, model: Answering) -> Any:
    """The text, or the row of the input, that is asked for."""
    if given.text is None:
        return _row(given, model)
    if given.input or given.row is not None:
        raise errors.bad_setting("--text", given.text, "given without INPUT and --row: it is what is explained")
    return {_one_text(model): [given.text]}


def _one_text(model: Answering) -> str:
    """The one column there is, which is text; raises where there are others, as a network's are."""
    if not isinstance(model, Model):
        raise errors.not_one_text([name for name in model.network.nodes if name != model.target])
    if not len(model.schema.features) == len(model.schema.texts) == 1:
        raise errors.not_one_text([feature.name for feature in model.schema.features])
    return model.schema.features[0].name


def _row(given: Namespace, model: Answering) -> Batch:
    """The row that is asked for."""
    if not given.input:
        raise errors.nothing_to_explain()
    wanted = 1 if given.row is None else given.row
    with _rows(given, model) as data:
        source = data if isinstance(data, Source) else model._read(data, settings.reading(given))
        n_rows = 0
        for batch in batches(source, "reading"):
            at = wanted - 1 - batch.first_row
            if 0 <= at < batch.n_rows:
                return batch.cut(at, at + 1)
            n_rows = batch.first_row + batch.n_rows
        raise errors.no_such_row(wanted, n_rows)


def _truth(row: Batch, model: Answering) -> Any:
    """The class that the data give the row, if they have one."""
    if model.target is None or model.target not in row.names:
        return None
    value = next(iter(row.head(model.target, 1)), None)
    return value if isinstance(model, Model) else model.label(value)


def evaluate(given: Namespace) -> None:
    """Scores a model on labelled rows."""
    model = inputs.answering(given.model)
    with inputs.labelled(given, needs_target=model.target is None) as data:
        found = selection.evaluate(model, data, given.target, **settings.reading(given))
    output.result(given, found.to_dict(), str(found))
