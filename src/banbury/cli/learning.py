"""The verbs that learn: fit, count, merge, subtract, estimate."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, sub
from typing import Any

import numpy as np

from banbury import errors
from banbury import naive_bayes as models
from banbury.calibration import calibrate
from banbury.cli import inputs, output, settings
from banbury.cli.inputs import labelled
from banbury.files import save
from banbury.naive_bayes import Model
from banbury.schema import Schema
from banbury.selection import (
    CrossValidation,
    Streamed,
    Tuning,
    counted_and_validated,
    cross_validate_stream,
    held,
    tune,
)
from banbury.tally import Tally, many
from banbury.tally import count as counted

SHOWN = 40  # columns
CLASSES_SHOWN = 6
MOST_NUMBERS = 50  # classes that are numbers, before it is doubted that they are classes


@dataclass(frozen=True)
class Fitted:
    """A model, how good it is, and what is to be said of both."""

    model: Model
    validation: CrossValidation | Streamed | None
    notes: tuple[str, ...] = ()

    def to_dict(self, path: str | None) -> dict[str, Any]:
        """What was learned, as JSON can hold it; every measure that takes no other library."""
        found: dict[str, Any] = {"model": path, **summary(self.model.tally), **choices(self.model)}
        if self.validation is not None:
            each = self.validation
            found |= {
                "folds": len(each.fold_accuracies),
                "accuracy": each.accuracy.value,
                "standard_error": each.accuracy.error,
                "majority": each.majority,
                "log_loss": each.log_loss,
            }
        return {**found, "notes": list(self.notes)}


def fit(given: Namespace) -> None:
    """Counts, estimates and cross-validates; chooses and calibrates where asked; keeps the model."""
    inputs.check_output(given)
    given.folds = settings.folds(given.folds, "; `banbury cross-validate` takes loo too")
    with labelled(given) as data:
        found = _fitted(given, data)
    found = replace(found, notes=(*found.notes, *_doubts(found.model.tally)))
    if given.output is not None:
        save(found.model, given.output)
    output.result(given, found.to_dict(given.output), _fit_text(given, found))


def _fitted(given: Namespace, data: Any) -> Fitted:
    counting, estimating = settings.counting(given, data), settings.estimating(given, data)
    tuned = settings.tunes({**counting, **estimating})
    if tuned or given.calibrate is not None:
        return _fitted_in_memory(given, data, counting, estimating)
    if not given.cross_validate:
        tally = counted(data, given.target, **counting)
        return Fitted(models.estimate(tally, **estimating), None)
    if inputs.size(given) <= given.hold:
        return _fitted_in_memory(given, data, counting, estimating)
    found = cross_validate_stream(data, given.target, folds=given.folds, **counting, **estimating)
    return Fitted(models.estimate(found.tally, **estimating), found)


def _fitted_in_memory(given: Namespace, data: Any, counting: dict[str, Any], estimating: dict[str, Any]) -> Fitted:
    rows = held(data, given.target, **counting)
    n_rows = int(np.count_nonzero(rows.labels >= 0))
    notes: list[str] = []
    if n_rows < 2:
        tally = counted(data, given.target, **counting)
        return Fitted(
            models.estimate(tally, **estimating), None, ("one row only, so there is nothing to validate it on",)
        )
    folds = min(given.folds, n_rows)
    if folds < given.folds:
        notes.append(f"{folds} folds: one for each row")
    if settings.tunes({**counting, **estimating}):
        tuning = tune(rows, features=_choose(counting), folds=folds, **estimating)
        rows, estimating = replace(rows, schema=tuning.tally.schema), {**estimating, "alpha": tuning.best["alpha"]}
        notes += _chosen(tuning)
    tally, scores, found = counted_and_validated(rows, folds, estimating)
    model = models.estimate(tally, **estimating)
    if given.calibrate is not None:
        calibration = calibrate(given.calibrate, scores, found.truth, found.weights)
        model = model.calibrated(calibration)
        notes.append(_gained(found, replace(found, posteriors=calibration.apply(scores))))
    return Fitted(model, found if given.cross_validate else None, tuple(notes))


def _gained(before: CrossValidation, after: CrossValidation) -> str:
    """What a calibration does to the log loss."""
    return f"log loss {before.log_loss:.4f} before calibration, {after.log_loss:.4f} after it, on the rows it was learned from"


def _doubts(tally: Tally) -> tuple[str, ...]:
    """What is odd about the classes."""
    if len(tally.classes) <= MOST_NUMBERS or tally.schema.target_kind not in ("integer", "float"):
        return ()
    return (
        f"{tally.schema.target!r} looks like a number: cut it into a few classes, such as low and high, to learn those",
    )


def _choose(counting: dict[str, Any]) -> str:
    return "choose" if counting["features"] == "choose" else "auto"


def _chosen(tuning: Tuning) -> list[str]:
    """What was chosen, and what that does to the accuracy."""
    found = [f"α = {tuning.best['alpha']:g} is the best of {len(tuning.settings)} by log loss"] * (
        len(tuning.settings) > 1
    )
    return [
        *found,
        "chosen on these very rows, so a little optimistic: `banbury cross-validate` chooses within each fold",
    ]


# What is said of it --------------------------------------------------------------------------------------------------


def _fit_text(given: Namespace, found: Fitted) -> str:
    tally = found.model.tally
    name = "standard input" if given.input == ["-"] else " ".join(given.input[:3]) + " …" * (len(given.input) > 3)
    target = "" if tally.schema.target is None else f" of {tally.schema.target!r}"
    lines = [f"{name}: {_rows(given, tally)}, {many(len(tally.classes), 'class')}{target}: {_classes(tally)}", ""]
    lines += [_families(tally), *_left_out(tally.schema), ""]
    good = _accuracy(found.validation) if found.validation is not None else []
    good += [f"  {note}" for note in found.notes]
    if found.model.calibration is not None:
        good.append(f"  calibrated: {found.model.calibration}")
    return "\n".join([*lines, *good, *([""] if good else []), _keeping(given)])


def _rows(given: Namespace, tally: Tally) -> str:
    weighted = getattr(given, "weights", None) is not None or tally.rows.weights is not None
    skipped = f" ({tally.skipped:,} more without a class)" if tally.skipped else ""
    return f"{tally.n_rows:,.15g} row{'s' * (tally.n_rows != 1)}{' by weight' * weighted}{skipped}"


def _classes(tally: Tally) -> str:
    shares = tally.rows.value / tally.rows.value.sum()
    order = np.argsort(-shares, kind="stable")
    return errors.listed((f"{errors.shortened(tally.classes[c])} {shares[c]:.1%}" for c in order), CLASSES_SHOWN)


def _families(tally: Tally) -> str:
    """A line for each column; how many of its values are missing, if any column's are."""
    missing = tally.missing
    shown = {name: f"{n:,.6g}" if n else "" for name, n in missing.items()}
    rows = [(f.name, str(f.family), f.why, shown[f.name]) for f in tally.schema.features[:SHOWN]]
    more = len(tally.schema.features) - SHOWN
    rows += [("…", f"{more:,} more", "", "")] if more > 0 else []
    header = ["column", "family", "why", "missing"]
    n = 4 if any(missing.values()) else 3
    return output.table(header[:n], [row[:n] for row in rows], right=[3])


def _left_out(schema: Schema) -> list[str]:
    if not schema.left_out:
        return []
    return ["", output.table(["left out", "why"], list(schema.left_out.items())[:SHOWN])]


def _accuracy(found: CrossValidation | Streamed) -> list[str]:
    passes = "in two passes over the file, " if isinstance(found, Streamed) else ""
    n = len(found.fold_accuracies)
    gain = found.accuracy.value - found.majority
    lines = [
        f"  accuracy  {found.accuracy}  {passes}by exact {n}-fold cross-validation",
        f"  majority  {found.majority:.4f}           answering with the most frequent class",
    ]
    if len(found.classes) == 1:
        lines.append("  There is one class only, so there is nothing to tell apart.")
    elif not gain > (found.accuracy.error or 0.0):
        lines.append("  No better than that: too few rows, or columns that do not tell the classes apart.")
    return lines


def _keeping(given: Namespace) -> str:
    if given.output is None:
        stem = os.path.basename(os.path.normpath(given.input[0])).partition(".")[0] if given.input != ["-"] else "model"
        return f"Not kept. To keep it, add: -o {stem or 'model'}.banbury"
    return f"Kept in {given.output} ({_bytes(os.path.getsize(given.output))})."


def _bytes(n: int) -> str:
    size, unit = float(n), "bytes"
    for larger in ("kB", "MB", "GB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.3g} {unit}"


def summary(tally: Tally) -> dict[str, Any]:
    """What a tally has counted, as JSON can hold it."""
    rows = tally.rows.rows if tally.rows.weights is None else tally.rows.value
    return {
        "rows": tally.n_rows,
        "skipped": tally.skipped,
        "target": tally.schema.target,
        "classes": [{"class": name, "rows": n} for name, n in zip(tally.classes, rows.tolist(), strict=True)],
        "features": [
            {"name": f.name, "family": str(f.family), "why": f.why, "missing": tally.missing[f.name]}
            for f in tally.schema.features
        ],
        "left_out": dict(tally.schema.left_out),
    }


def choices(model: Model) -> dict[str, Any]:
    """How a model was estimated."""
    calibration = None if model.calibration is None else str(model.calibration)
    return {"how": model.choice.how, "alpha": model.choice.alpha, "seed": model.choice.seed, "calibration": calibration}


# Tallies -------------------------------------------------------------------------------------------------------------


def count(given: Namespace) -> None:
    """Counts rows into a tally file, under the schema of another file where one is named."""
    inputs.check_output(given)
    with labelled(given, needs_target=given.like is None) as data:
        if given.like is None:
            tally = counted(data, given.target, **settings.counting(given, data))
        else:
            tally = _tally(inputs.counted(given.like)).count(
                data, given.target, weights=given.weights, **_only_reading(given)
            )
    _keep(given, tally)


def _only_reading(given: Namespace) -> dict[str, Any]:
    if given.features or given.text or given.missing != "skip":
        raise errors.bad_setting(
            "--like", given.like, "given without --features, --text and --missing, which the file settles"
        )
    return settings.reading(given)


def merge(given: Namespace) -> None:
    """Adds up tallies."""
    _keep(given, _combined(given, add))


def subtract(given: Namespace) -> None:
    """Takes tallies out of the first one."""
    _keep(given, _combined(given, sub))


def _combined(given: Namespace, operation: Any) -> Model | Tally:
    """The first file's tally with all the others; a model if the first file has one."""
    inputs.check_output(given)
    if len(given.files) < 2:
        raise errors.bad_setting("FILE", given.files[0], "two files at least")
    first, *others = map(inputs.counted, given.files)
    try:
        tally = reduce(operation, map(_tally, others), _tally(first))
    except errors.SchemaMismatch as problem:
        raise errors.counted_unlike(given.files[0], problem) from None
    return _as_first(first, tally, given.verb)


def _as_first(first: Model | Tally, tally: Tally, what: str) -> Model | Tally:
    if isinstance(first, Tally):
        return tally
    if first.calibration is not None:
        errors.warn(errors.not_calibrated(what))
    chosen = first.choice
    return models.estimate(tally, how=chosen.how, alpha=chosen.alpha, class_prior=first.class_prior, seed=chosen.seed)


def _tally(thing: Model | Tally) -> Tally:
    return thing.tally if isinstance(thing, Model) else thing


def estimate(given: Namespace) -> None:
    """Makes a model from a tally, or another one from a model's tally."""
    inputs.check_output(given)
    tally = _tally(inputs.counted(given.tally))
    chosen = settings.estimating_from(given, tally.classes)
    _keep(given, models.estimate(tally, features=settings.estimated_features(given, tally.schema), **chosen))


def _keep(given: Namespace, thing: Model | Tally) -> None:
    save(thing, given.output)
    tally, size = _tally(thing), _bytes(os.path.getsize(given.output))
    what = "model" if isinstance(thing, Model) else "tally"
    found = {
        "file": given.output,
        "kind": what,
        **summary(tally),
        **(choices(thing) if isinstance(thing, Model) else {}),
    }
    classes = f"{many(len(tally.classes), 'class')}: {_classes(tally)}" if tally.classes else "no class"
    output.result(given, found, f"{_rows(given, tally)}, {classes}\nKept as a {what} in {given.output} ({size}).")
