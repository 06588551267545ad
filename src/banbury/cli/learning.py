"""The verbs that learn: fit, count, merge, subtract, estimate."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, sub
from typing import TYPE_CHECKING, Any

import numpy as np

from banbury import errors
from banbury import naive_bayes as models
from banbury.calibration import calibrate
from banbury.cli import about, inputs, output, settings
from banbury.cli.about import Kept
from banbury.cli.inputs import labelled
from banbury.files import save
from banbury.naive_bayes import Model
from banbury.selection import (
    CrossValidation,
    Streamed,
    Tuning,
    counted_and_validated,
    held,
    scored_and_validated,
    streamed,
    tune,
)
from banbury.tally import Tally, many
from banbury.tally import count as counted

if TYPE_CHECKING:
    from banbury.networks import BeliefNetwork

MOST_NUMBERS = 50  # classes that are numbers, before it is doubted that they are classes
ONE_ROW = "one row only, so there is nothing to validate it on"


@dataclass(frozen=True)
class Fitted:
    """A model or a tree, how good it is, and what is to be said of both."""

    model: Model | BeliefNetwork
    validation: CrossValidation | Streamed | None
    notes: tuple[str, ...] = ()

    def to_dict(self, path: str | None) -> dict[str, Any]:
        """What was learned, as JSON can hold it; every measure that takes no other library."""
        found: dict[str, Any] = {"model": path, **about.summary(self.model)}
        if self.validation is not None:
            each = self.validation
            found |= {
                "held": not isinstance(each, Streamed),
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
    found = replace(found, notes=(*found.notes, *_doubts(found.model)))
    if given.output is not None:
        save(found.model, given.output)
    output.result(given, found.to_dict(given.output), _fit_text(given, found))


def _fitted(given: Namespace, data: Any) -> Fitted:
    if given.tan:
        return _fitted_tree(given, data)
    if given.bins is not None:
        raise errors.bad_setting("--bins", given.bins, "given with --tan; of a model say --features histogram,bins=20")
    counting, estimating = settings.counting(given, data), settings.estimating(given, data)
    tuned = settings.tunes({**counting, **estimating})
    if tuned or given.calibrate is not None:
        return _validated(given, data, counting, estimating)
    if not given.cross_validate:
        tally = counted(data, given.target, **counting)
        return Fitted(models.estimate(tally, **estimating), None)
    return _validated(given, data, counting, estimating, hold=inputs.size(given) <= given.hold)


def _validated(
    given: Namespace, data: Any, counting: dict[str, Any], estimating: dict[str, Any], hold: bool = True
) -> Fitted:
    rows = (held if hold else streamed)(data, given.target, **counting)
    n_rows = rows.n_rows - rows.n_unlabelled
    if n_rows < 2:
        tally = counted(data, given.target, **counting)
        return Fitted(models.estimate(tally, **estimating), None, (ONE_ROW,))
    folds = min(given.folds, n_rows)
    notes = [*_notes(given, folds)]
    if settings.tunes({**counting, **estimating}):
        tuning = tune(rows, features=_choose(counting), folds=folds, **estimating)
        rows, estimating = replace(rows, schema=tuning.tally.schema), {**estimating, "alpha": tuning.best["alpha"]}
        notes += _chosen(tuning)
    if given.calibrate is None:
        tally, validation = counted_and_validated(rows, folds, estimating)
        return Fitted(models.estimate(tally, **estimating), validation if given.cross_validate else None, tuple(notes))
    tally, scores, found = scored_and_validated(rows, folds, estimating)
    calibration = calibrate(given.calibrate, scores, found.truth, found.weights)
    notes.append(_gained(found, replace(found, posteriors=calibration.apply(scores))))
    model = models.estimate(tally, **estimating).calibrated(calibration)
    return Fitted(model, found if given.cross_validate else None, tuple(notes))


def _fitted_tree(given: Namespace, data: Any) -> Fitted:
    """A tree beside the class, and how good trees are over the same folds."""
    from banbury.networks import BeliefNetwork, checked_choice
    from banbury.networks.validation import cross_validated

    counting, estimating, bins = (
        settings.tree(given, data),
        settings.estimating_network(given),
        settings.bins(given.bins),
    )
    network = BeliefNetwork.tan(data, given.target, bins=bins, **counting, **estimating)
    if not given.cross_validate:
        return Fitted(network, None)
    if inputs.size(given) > given.hold:
        return Fitted(network, None, (f"larger than --hold {given.hold:g} MB, so it was not cross-validated",))
    rows = held(data, given.target, **counting)
    n_rows = int(np.count_nonzero(rows.labels >= 0))
    if n_rows < 2:
        return Fitted(network, None, (ONE_ROW,))
    folds = min(given.folds, n_rows)
    found = cross_validated(rows, folds, checked_choice(**estimating), bins)
    skipped = rows.n_rows - n_rows
    return Fitted(
        network, found, (*_notes(given, folds), *[f"{many(skipped, 'more row')} without a class"] * (skipped > 0))
    )


def _notes(given: Namespace, folds: int) -> tuple[str, ...]:
    return (f"{folds} folds: one for each row",) if folds < given.folds else ()


def _gained(before: CrossValidation, after: CrossValidation) -> str:
    """What a calibration does to the log loss."""
    return f"log loss {before.log_loss:.4f} before calibration, {after.log_loss:.4f} after it, on the rows it was learned from"


def _doubts(model: Model | BeliefNetwork) -> tuple[str, ...]:
    """What is odd about the classes."""
    if len(model.classes) <= MOST_NUMBERS or model.target_kind not in ("integer", "float"):
        return ()
    return (f"{model.target!r} looks like a number: cut it into a few classes, such as low and high, to learn those",)


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
    told = about.summary(found.model)
    name = "standard input" if given.input == ["-"] else " ".join(given.input[:3]) + " …" * (len(given.input) > 3)
    target = "" if told["target"] is None else f" of {told['target']!r}"
    lines = [f"{name}: {about.rows(given, told)}, {about.classes(told, target)}", ""]
    lines += [about.columns(told), *about.left_out(told), ""]
    exactly = "exact " if isinstance(found.model, Model) else ""
    good = _accuracy(found.validation, exactly) if found.validation is not None else []
    good += [f"  {note}" for note in found.notes]
    if told.get("calibration") is not None:
        good.append(f"  calibrated: {told['calibration']}")
    return "\n".join([*lines, *good, *([""] if good else []), _keeping(given)])


def _accuracy(found: CrossValidation | Streamed, exactly: str) -> list[str]:
    held_or_not = "in three passes over the file" if isinstance(found, Streamed) else "in memory"
    n = len(found.fold_accuracies)
    gain = found.accuracy.value - found.majority
    lines = [
        f"  accuracy  {found.accuracy}  by {exactly}{n}-fold cross-validation, {held_or_not}",
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


# Tallies and networks ------------------------------------------------------------------------------------------------


def count(given: Namespace) -> None:
    """Counts rows into a tally file, or under what another file counted where one is named."""
    inputs.check_output(given)
    with labelled(given, needs_target=given.like is None) as data:
        if given.like is None:
            _keep(given, counted(data, given.target, **settings.counting(given, data)))
            return
        reading = {"weights": given.weights, **_only_reading(given)}
        like = _sums(inputs.kept(given.like))
        if isinstance(like, Tally):
            _keep(given, like.count(data, given.target, **reading))
        else:
            _keep(given, like.count_more(data, **reading))


def _only_reading(given: Namespace) -> dict[str, Any]:
    if given.features or given.text or given.missing != "skip":
        raise errors.bad_setting(
            "--like", given.like, "given without --features, --text and --missing, which the file settles"
        )
    return settings.reading(given)


def merge(given: Namespace) -> None:
    """Adds up tallies, or networks."""
    _keep(given, _combined(given, add))


def subtract(given: Namespace) -> None:
    """Takes tallies out of the first one, or networks."""
    _keep(given, _combined(given, sub))


def _combined(given: Namespace, operation: Any) -> Kept:
    """The first file's sums with all the others; a model if the first file has one."""
    inputs.check_output(given)
    if len(given.files) < 2:
        raise errors.bad_setting("FILE", given.files[0], "two files at least")
    things = [inputs.kept(path) for path in given.files]
    for path, thing in zip(given.files, things, strict=True):
        if isinstance(_sums(thing), Tally) != isinstance(_sums(things[0]), Tally):
            raise errors.tally_beside_network(path, about.kind(thing), given.files[0], about.kind(things[0]))
    try:
        sums = reduce(operation, map(_sums, things))
    except errors.SchemaMismatch as problem:
        raise errors.counted_unlike(given.files[0], problem) from None
    return _as_first(things[0], sums, given.verb)


def _as_first(first: Kept, sums: Tally | BeliefNetwork, what: str) -> Kept:
    if not isinstance(first, Model):
        return sums
    if first.calibration is not None:
        errors.warn(errors.not_calibrated(what))
    chosen = {"how": first.choice.how, "alpha": first.choice.alpha, "seed": first.choice.seed}
    return models.estimate(sums, class_prior=first.class_prior, **chosen)  # type: ignore[arg-type]


def _sums(thing: Kept) -> Tally | BeliefNetwork:
    """What adds and subtracts: of a model its tally."""
    return thing.tally if isinstance(thing, Model) else thing


def estimate(given: Namespace) -> None:
    """Makes a model from a tally, or another one from a model's tally; of a network other tables."""
    inputs.check_output(given)
    sums = _sums(inputs.kept(given.tally))
    if isinstance(sums, Tally):
        chosen = settings.estimating_from(given, sums.classes)
        _keep(given, models.estimate(sums, features=settings.estimated_features(given, sums.schema), **chosen))
    elif given.features:
        raise errors.bad_setting(
            "--features", given.features, "left out for a network, whose nodes have values already"
        )
    else:
        _keep(given, sums.estimate(**settings.estimating_network(given)))


def _keep(given: Namespace, thing: Kept) -> None:
    save(thing, given.output)
    found = {"file": given.output, "kind": about.kind(thing), **about.summary(thing)}
    size = _bytes(os.path.getsize(given.output))
    text = f"{about.rows(given, found)}, {about.classes(found)}\nKept as a {found['kind']} in {given.output} ({size})."
    output.result(given, found, text)
