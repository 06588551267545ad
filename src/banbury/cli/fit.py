"""fit: counts, estimates and cross-validates."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from banbury import progress
from banbury.cli import about, inputs, judging, labels, output, settings
from banbury.errors import many
from banbury.files import save
from banbury.model.naive_bayes import Model
from banbury.quality import CrossValidation, SummedValidation
from banbury.quality.recipes import Plain
from banbury.quality.results import Mean
from banbury.quality.validation import FEW_FOLDS
from banbury.reports.alternatives import alternatives
from banbury.rows.labelled import LabelledRows, MemoryRows
from banbury.tally.schema import WHOLE

OVERRIDES_SHOWN = 4  # columns that are named as one would override their families


@dataclass(frozen=True)
class Fitted:
    """A model, how good it is, and what is to be said of both."""

    model: Model
    validation: CrossValidation | SummedValidation | None = None
    notes: tuple[str, ...] = ()
    rows: LabelledRows | None = None

    def to_dict(self, path: str | None) -> dict[str, Any]:
        """What was learned, as JSON can hold it; every measure that takes no other library."""
        facts: dict[str, Any] = {"model": path, **about.summary(self.model)}
        if self.validation is not None:
            validation = self.validation
            facts |= {
                "held": not isinstance(validation, SummedValidation),
                "folds": validation.n_folds,
                "accuracy": validation.accuracy.value,
                "standard_error": validation.accuracy.error,
                "majority": validation.majority,
                "log_loss": validation.log_loss,
            }
        return {**facts, "notes": list(self.notes)}


def fit(args: Namespace) -> None:
    """Counts, estimates and cross-validates; chooses and calibrates where asked; keeps the model."""
    inputs.check_output(args)
    args.folds = settings.folds(args.folds, "; `banbury cross-validate` also accepts loo")
    n_folds = args.folds if isinstance(args.folds, int) else FEW_FOLDS
    with inputs.open_labelled(args) as data, progress.Steps() as steps:
        steps.begin("", (n_folds - 1.0) / n_folds if n_folds > 1 else 1.0)  # each fold learns from all other folds
        judged = judging.judge(args, data, compares=args.cross_validate)
        steps.begin("all rows", 1.0)
        if judged.rows.has_sets:
            return labels.fit(args, judged.learn(), judged.validation, judged.notes)  # type: ignore[arg-type]
        fitted = Fitted(judged.learn(), judged.validation, judged.notes, judged.rows)  # type: ignore[arg-type]
        fitted = replace(fitted, notes=(*_advice(args, fitted), *fitted.notes))
    fitted = replace(fitted, notes=(*fitted.notes, *_doubts(fitted.model)))
    if args.output is not None:
        save(fitted.model, args.output)
    output.result(args, fitted.to_dict(args.output), _text(args, fitted))


def _doubts(model: Model) -> tuple[str, ...]:
    """What is odd about the classes."""
    fractions = any(isinstance(c, float) and c % 1 for c in model.classes)  # of which it has been said
    if fractions or not judging.look_like_measurements(model.target_kind, model.classes):
        return ()
    return (f"{model.target!r} looks numeric: cut it into a few classes, such as low and high, and predict those",)


# What is said of it --------------------------------------------------------------------------------------------------


def _text(args: Namespace, fitted: Fitted) -> str:
    facts = about.summary(fitted.model)
    name = "standard input" if args.input == ["-"] else " ".join(args.input[:3]) + " …" * (len(args.input) > 3)
    target = "" if facts["target"] is None else f" of {facts['target']!r}"
    lines = [f"{name}: {about.rows(args, facts)}, {about.classes(facts, target)}", ""]
    lines += [about.columns(facts), *about.columns_left_out(facts), *_otherwise(facts), ""]
    good = _accuracy(fitted.validation) if fitted.validation is not None else []
    good += [f"  {note}" for note in fitted.notes]
    if facts.get("calibration") is not None:
        good.append(f"  calibrated: {facts['calibration']}")
    return "\n".join([*lines, *good, *([""] if good else []), _keeping(args)])


def _otherwise(facts: Mapping[str, Any]) -> list[str]:
    """How to have whole numbers of another family than the one they were given."""
    whys = {feature["name"]: feature["why"] for feature in facts.get("features", ())}
    few_valued = [name for name, why in whys.items() if why.startswith(f"{WHOLE},")]
    numbers = [name for name, why in whys.items() if why == "integers"]
    lines = []
    if few_valued:
        these = " ".join(f"--features {shlex.quote(f'{name}=gaussian')}" for name in few_valued[:OVERRIDES_SHOWN])
        more = f" … ({len(few_valued) - OVERRIDES_SHOWN:,} more)" if len(few_valued) > OVERRIDES_SHOWN else ""
        taken = "Columns with few distinct whole numbers are treated as categories"
        lines.append(f"{taken}. To treat them as numbers, add: {these}{more}")
    if numbers:
        count, code = (f"--features {shlex.quote(f'{numbers[0]}={family}')}" for family in ("poisson", "categorical"))
        taken = "Whole numbers are treated as amounts"
        lines.append(f"{taken}. If they are counts, add {count}; if they are codes, {code}")
    return ["", *lines] if lines else []


def _accuracy(validation: CrossValidation | SummedValidation) -> list[str]:
    return [
        f"  accuracy  {validation.accuracy}  by {validation.what}",
        f"  log loss  {validation.log_loss:.4f}",
        f"  majority  {validation.majority:.4f}           always answering with the most frequent class",
    ]


def _advice(args: Namespace, fitted: Fitted) -> list[str]:
    """What helps where answers are no better than the most frequent class: what else was tried, and how good it was."""
    validation = fitted.validation
    if validation is None:
        return []
    if len(validation.classes) == 1:
        return ["There is only one class, so there is nothing to predict."]
    if _beats(validation.accuracy.value, validation.accuracy.error, validation.majority):
        return []
    no_better = "This is no better than always answering with the most frequent class"
    tried = None
    if isinstance(fitted.rows, MemoryRows):
        weighed = any(note.startswith("weighed ") for note in fitted.notes)
        measured = judging.look_like_measurements(fitted.model.target_kind, fitted.model.classes)
        but = ["--calibrate temperature", *["--tan"] * args.tan, *["--weigh"] * (weighed or measured)]
        but += ["--features choose"] * settings.chooses(args)
        tried = alternatives(fitted.rows, Plain(seed=args.seed), validation, but=but, seed=args.seed)
    if tried is None or not tried.others:
        return [f"{no_better}."]
    figures = {o.option: f"{o.option} {Mean(o.accuracy, o.standard_error)}" for o in tried.others}
    of = f"in {tried.folds}-fold cross-validation on {many(tried.n_rows, 'row')}"
    helps = [o.option for o in tried.others if _beats(o.accuracy, o.standard_error, validation.majority)]
    if helps:
        return [f"{no_better}. These are, {of}: {'; '.join(figures[option] for option in helps)}"]
    return [f"{no_better}. Neither are the alternatives, {of}: {'; '.join(figures.values())}"]


def _beats(accuracy: float, error: float | None, majority: float) -> bool:
    """Whether answers are better than the most frequent class, beyond chance."""
    return accuracy - majority > 2.0 * (error or 0.0)


def _keeping(args: Namespace) -> str:
    if args.output is not None:
        return f"Saved to {args.output} ({output.size(args.output)})."
    stem = os.path.basename(os.path.normpath(args.input[0])).partition(".")[0] if args.input != ["-"] else "model"
    return f"The model was not saved. To save it, add: -o {stem or 'model'}.banbury"
