"""fit: counts, estimates and cross-validates."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from banbury import errors
from banbury.calibration import calibrate
from banbury.cli import about, inputs, judging, labels, output, settings
from banbury.errors import many
from banbury.files import save
from banbury.naive_bayes import Model
from banbury.networks import BeliefNetwork, checked_choice
from banbury.networks.validation import cross_validated
from banbury.quality import CrossValidation, SummedValidation
from banbury.quality.recipes import Plain
from banbury.quality.results import Mean
from banbury.reports.alternatives import alternatives
from banbury.rows.labelled import LabelledRows, MemoryRows, load_rows
from banbury.schema import WHOLE

OVERRIDES_SHOWN = 4  # columns that are named as one would override their families


@dataclass(frozen=True)
class Fitted:
    """A model or a tree, how good it is, and what is to be said of both."""

    model: Model | BeliefNetwork
    validation: CrossValidation | SummedValidation | None = None
    notes: tuple[str, ...] = ()
    rows: LabelledRows | None = None

    def to_dict(self, path: str | None) -> dict[str, Any]:
        """What was learned, as JSON can hold it; every measure that takes no other library."""
        facts: dict[str, Any] = {"model": path, **about.summary(self.model)}
        if self.validation is not None:
            each = self.validation
            facts |= {
                "held": not isinstance(each, SummedValidation),
                "folds": len(each.fold_accuracies),
                "accuracy": each.accuracy.value,
                "standard_error": each.accuracy.error,
                "majority": each.majority,
                "log_loss": each.log_loss,
            }
        return {**facts, "notes": list(self.notes)}


def fit(args: Namespace) -> None:
    """Counts, estimates and cross-validates; chooses and calibrates where asked; keeps the model."""
    inputs.check_output(args)
    args.folds = settings.folds(args.folds, "; `banbury cross-validate` takes loo too")
    if args.tan:
        errors.require(not args.weigh, "--weigh", "--tan", "given without it: a tree is not weighed")
    with inputs.labelled(args) as data:
        if labels.wanted(args, data):
            return labels.fit(args, data)
        fitted = _fitted_tree(args, data) if args.tan else _fitted(args, data)
        fitted = replace(fitted, notes=(*_advice(args, fitted), *fitted.notes))
    fitted = replace(fitted, notes=(*fitted.notes, *_doubts(fitted.model)))
    if args.output is not None:
        save(fitted.model, args.output)
    output.result(args, fitted.to_dict(args.output), _text(args, fitted))


def _fitted(args: Namespace, data: Any) -> Fitted:
    if args.bins is not None:
        raise errors.bad_setting("--bins", args.bins, "given with --tan; of a model say --features histogram,bins=20")
    judged = judging.judge(args, data, compares=args.cross_validate)
    model = judged.learn() if judged.tuning is None else judged.tuning.model
    return Fitted(model, judged.validation, judged.notes, judged.rows)


def _fitted_tree(args: Namespace, data: Any) -> Fitted:
    """A tree beside the class, and how good trees are over the same folds."""
    counting, estimating = settings.tree(args, data), settings.estimating_network(args)
    bins = settings.bins(args.bins)
    network = BeliefNetwork.tan(data, args.target, bins=bins, **counting, **estimating)
    if not args.cross_validate and args.calibrate is None:
        return Fitted(network)
    if inputs.size(args) > args.hold and args.calibrate is None:
        return Fitted(network, None, (f"larger than --hold {args.hold:g} MB, so it was not cross-validated",))
    rows = load_rows(data, args.target, **counting)
    if rows.n_labelled < 2:
        return Fitted(network, None, ("one row only, so there is nothing to validate it on",))
    folds, notes = judging.folds_of(args, rows, [])
    if skipped := rows.n_rows - rows.n_labelled:
        notes.append(f"{many(skipped, 'more row')} without a class")
    validation, scores = cross_validated(rows, folds, checked_choice(**estimating), bins)
    fitted = Fitted(network, validation, tuple(notes), rows)
    return fitted if args.calibrate is None else _calibrated(args, fitted, scores, validation)


def _calibrated(args: Namespace, fitted: Fitted, scores: Any, validation: CrossValidation) -> Fitted:
    """A tree, calibrated by log posteriors of rows that were left out, and how good it is then."""
    model = fitted.model.calibrated(calibrate(args.calibrate, scores, validation.truth, validation.weights))
    if not args.cross_validate:
        return replace(fitted, model=model, validation=None)
    posteriors = np.empty_like(scores)
    for fold in np.unique(validation.folds).tolist():
        here = validation.folds == fold
        weights = None if validation.weights is None else validation.weights[~here]
        posteriors[here] = calibrate(args.calibrate, scores[~here], validation.truth[~here], weights).apply(
            scores[here]
        )
    after = replace(validation, posteriors=posteriors)
    gained = f"log loss {validation.log_loss:.4f} before calibration, {after.log_loss:.4f} after it"
    return Fitted(model, after, (*fitted.notes, f"{gained}: each fold by what the others taught"), fitted.rows)


def _doubts(model: Model | BeliefNetwork) -> tuple[str, ...]:
    """What is odd about the classes."""
    fractions = any(isinstance(c, float) and c % 1 for c in model.classes)  # of which it has been said
    if fractions or not judging.looks_measured(model.target_kind, model.classes):
        return ()
    return (f"{model.target!r} looks like a number: cut it into a few classes, such as low and high, to learn those",)


# What is said of it --------------------------------------------------------------------------------------------------


def _text(args: Namespace, fitted: Fitted) -> str:
    facts = about.summary(fitted.model)
    name = "standard input" if args.input == ["-"] else " ".join(args.input[:3]) + " …" * (len(args.input) > 3)
    target = "" if facts["target"] is None else f" of {facts['target']!r}"
    lines = [f"{name}: {about.rows(args, facts)}, {about.classes(facts, target)}", ""]
    lines += [about.columns(facts), *about.left_out(facts), *_otherwise(facts), ""]
    good = _accuracy(fitted.validation) if fitted.validation is not None else []
    good += [f"  {note}" for note in fitted.notes]
    if facts.get("calibration") is not None:
        good.append(f"  calibrated: {facts['calibration']}")
    return "\n".join([*lines, *good, *([""] if good else []), _keeping(args)])


def _otherwise(facts: Mapping[str, Any]) -> list[str]:
    """How to have whole numbers of another family than the one they were given."""
    whys = {each["name"]: each["why"] for each in facts.get("features", ())}
    few = [name for name, why in whys.items() if why.startswith(f"{WHOLE},")]
    numbers = [name for name, why in whys.items() if why == "integers"]
    lines = []
    if few:
        these = " ".join(f"--features {shlex.quote(f'{name}=gaussian')}" for name in few[:OVERRIDES_SHOWN])
        more = f" … ({len(few) - OVERRIDES_SHOWN:,} more)" if len(few) > OVERRIDES_SHOWN else ""
        lines.append(f"Few whole numbers are taken for categories. To have them as numbers, add: {these}{more}")
    if numbers:
        count, code = (f"--features {shlex.quote(f'{numbers[0]}={family}')}" for family in ("poisson", "categorical"))
        taken = "Whole numbers are taken for amounts"
        lines.append(f"{taken}. Where they count something, add {count}; where they are codes, {code}")
    return ["", *lines] if lines else []


def _accuracy(validation: CrossValidation | SummedValidation) -> list[str]:
    return [
        f"  accuracy  {validation.accuracy}  by {validation.what}",
        f"  log loss  {validation.log_loss:.4f}",
        f"  majority  {validation.majority:.4f}           answering with the most frequent class",
    ]


def _advice(args: Namespace, fitted: Fitted) -> list[str]:
    """What helps where answers are no better than the most frequent class: what else was tried, and how good it was."""
    validation = fitted.validation
    if validation is None:
        return []
    if len(validation.classes) == 1:
        return ["There is one class only, so there is nothing to tell apart."]
    if _beats(validation.accuracy.value, validation.accuracy.error, validation.majority):
        return []
    tried = None
    if isinstance(fitted.rows, MemoryRows):
        weighed = isinstance(fitted.model, Model) and fitted.model.weighing is not None
        but = ["--calibrate temperature", *["--tan"] * args.tan, *["--weigh"] * weighed]
        but += ["--features choose"] * settings.chooses(args)
        tried = alternatives(fitted.rows, Plain(seed=args.seed), but=but, seed=args.seed)
    if tried is None or not tried.others:
        return ["No better than that."]
    figures = {o.option: f"{o.option} {Mean(o.accuracy, o.standard_error)}" for o in tried.others}
    of = f"over {tried.folds} folds of {many(tried.n_rows, 'row')}"
    helps = [o.option for o in tried.others if _beats(o.accuracy, o.standard_error, validation.majority)]
    if helps:
        return [f"No better than that. What is, {of}: {'; '.join(figures[option] for option in helps)}"]
    return [f"No better than that, nor is what else was tried, {of}: {'; '.join(figures.values())}"]


def _beats(accuracy: float, error: float | None, majority: float) -> bool:
    """Whether answers are better than the most frequent class, beyond chance."""
    return accuracy - majority > 2.0 * (error or 0.0)


def _keeping(args: Namespace) -> str:
    if args.output is not None:
        return f"Kept in {args.output} ({output.size(args.output)})."
    stem = os.path.basename(os.path.normpath(args.input[0])).partition(".")[0] if args.input != ["-"] else "model"
    return f"Not kept. To keep it, add: -o {stem or 'model'}.banbury"
