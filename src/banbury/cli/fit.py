"""fit: counts, estimates and cross-validates."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from banbury import errors, selection
from banbury import naive_bayes as models
from banbury.calibration import calibrate
from banbury.cli import about, inputs, labels, output, settings
from banbury.distributions.column_tree import tree_of_columns
from banbury.errors import many
from banbury.files import save
from banbury.naive_bayes import Model
from banbury.reports.alternatives import alternatives
from banbury.schema import WHOLE
from banbury.selection import CrossValidation, Streamed, Tuning
from banbury.selection.results import Mean
from banbury.tally import count
from banbury.weighing import FEWEST_ROWS

MANY_ROWS = 10_000  # from which on plain and weighed are compared on few folds
FEW_FOLDS = 3
MOST_NUMBERS = 50  # classes that are numbers, before it is doubted that they are classes
OVERRIDES_SHOWN = 4  # columns that are named as one would override their families
ONE_ROW = "one row only, so there is nothing to validate it on"


@dataclass(frozen=True)
class Fitted:
    """A model, how good it is, and what is to be said of both."""

    model: Model
    validation: CrossValidation | Streamed | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self, path: str | None) -> dict[str, Any]:
        """What was learned, as JSON can hold it; every measure that takes no other library."""
        facts: dict[str, Any] = {"model": path, **about.summary(self.model)}
        if self.validation is not None:
            each = self.validation
            facts |= {
                "held": not isinstance(each, Streamed),
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
    with inputs.labelled(args) as data:
        if labels.wanted(args, data):
            return labels.fit(args, data)
        fitted = _fitted(args, data)
        fitted = replace(fitted, notes=(*_advice(args, data, fitted), *fitted.notes))
    fitted = replace(fitted, notes=(*fitted.notes, *_doubts(fitted.model)))
    if args.output is not None:
        save(fitted.model, args.output)
    output.result(args, fitted.to_dict(args.output), _text(args, fitted))


def _fitted(args: Namespace, data: Any) -> Fitted:
    counting, estimating = _counting(args, data), settings.estimating(args, data)
    if settings.tunes({**counting, **estimating}) or args.calibrate is not None:
        return _validated(args, data, counting, estimating)
    errors.require(not args.weigh or not args.plain, "--weigh", "--plain", "one of the two")
    if not args.cross_validate:
        if args.weigh:
            rows = selection.weighed_rows(data, args.target, **counting)
            return Fitted(selection.weighed(rows, args.seed))
        return Fitted(models.estimate(count(data, args.target, **counting), **estimating))
    hold = inputs.size(args) <= args.hold
    plain = _validated(args, data, counting, estimating, hold)
    said = {"features": "auto", "missing": "skip", "how": "mean", "alpha": 1.0, "class_prior": None}
    as_it_comes = all({**counting, **estimating}.get(name, value) == value for name, value in said.items())
    if args.plain or plain.validation is None or not (args.weigh or (hold and as_it_comes)):
        return plain
    return _better(args, data, counting, estimating, plain)


def _counting(args: Namespace, data: Any) -> dict[str, Any]:
    """What is counted, columns in a tree where one is asked for, and how it is read."""
    counting = settings.counting(args, data)
    if not args.tan:
        wanted = "given with --tan; of a model say --features histogram,bins=20"
        errors.require(args.bins is None, "--bins", args.bins, wanted)
        return counting
    errors.require(counting["features"] != "choose", "--features", "choose", "left out with --tan, or COLUMN=FAMILY")
    errors.require(not args.weigh, "--weigh", "--tan", "one of the two")
    return {**counting, "features": tree_of_columns(bins=settings.bins(args.bins), columns=counting["features"])}


def _better(args: Namespace, data: Any, counting: dict[str, Any], estimating: dict[str, Any], plain: Fitted) -> Fitted:
    """Plain and weighed over the same folds: the one that loses less, or the weighed one if that was asked for."""
    validation = plain.validation
    assert validation is not None
    tally, folds = plain.model.tally, len(validation.fold_accuracies)
    if not args.weigh and (len(tally.classes) < 2 or not tally.schema.features):
        return plain
    if not args.weigh and float(tally.n_rows) < FEWEST_ROWS:
        return replace(plain, notes=(*plain.notes, f"not weighed: that takes {FEWEST_ROWS} rows at least"))
    if not args.weigh and _doubts(plain.model):
        return replace(plain, notes=(*plain.notes, "not weighed, which would take long: --weigh does it"))
    rows = selection.weighed_rows(data, args.target, **counting)
    if tally.n_rows >= MANY_ROWS and folds > FEW_FOLDS:
        few = _validated(Namespace(**{**vars(args), "folds": FEW_FOLDS}), data, counting, estimating).validation
        assert few is not None
        validation, folds = few, FEW_FOLDS
    other, _ = selection.weighed_and_validated(rows, folds, seed=args.seed, weigh=True)
    model = selection.weighed(rows, args.seed)
    said = (
        f"plain     {validation.accuracy}  log loss {validation.log_loss:.4f}, {folds} folds",
        f"weighed   {other.accuracy}  log loss {other.log_loss:.4f}, the same {folds}",
    )
    if args.weigh or other.log_loss < validation.log_loss:
        return Fitted(model, other, (*plain.notes, *said, about.kept("weighed", args.weigh)))
    return replace(plain, notes=(*plain.notes, *said, about.kept("plain", args.weigh)))


def _validated(
    args: Namespace, data: Any, counting: dict[str, Any], estimating: dict[str, Any], hold: bool = True
) -> Fitted:
    rows = (selection.held if hold else selection.streamed)(data, args.target, **counting)
    n_rows = rows.n_rows - rows.n_unlabelled
    if n_rows < 2:
        return Fitted(models.estimate(count(data, args.target, **counting), **estimating), None, (ONE_ROW,))
    folds, notes = _folds(args, n_rows)
    if settings.tunes({**counting, **estimating}):
        choose = "choose" if counting["features"] == "choose" else "auto"
        tuning = selection.tune(rows, features=choose, folds=folds, calibrate=args.calibrate, **estimating)
        tuning.warn_of_edges()
        rows, estimating = replace(rows, schema=tuning.tally.schema), {**estimating, "alpha": tuning.best["alpha"]}
        notes += _chosen(tuning)
    if args.calibrate is None:
        tally, figures = selection.counted_and_validated(rows, folds, estimating)
        return Fitted(models.estimate(tally, **estimating), figures if args.cross_validate else None, tuple(notes))
    tally, scores, validation = selection.scored_and_validated(rows, folds, estimating)
    model = models.estimate(tally, **estimating)
    return _calibrated(args, Fitted(model, validation, tuple(notes)), scores, validation)


def _calibrated(args: Namespace, fitted: Fitted, scores: Any, validation: CrossValidation) -> Fitted:
    """What was fitted, calibrated by log posteriors of rows that were left out, and how good it is then."""
    model = fitted.model.calibrated(calibrate(args.calibrate, scores, validation.truth, validation.weights))
    if not args.cross_validate:
        return replace(fitted, model=model, validation=None)
    after, _ = selection.calibrated_within(validation, scores, args.calibrate)
    gained = f"log loss {validation.log_loss:.4f} before calibration, {after.log_loss:.4f} after it"
    notes = (*fitted.notes, f"{gained}: each fold by what the others taught")
    return Fitted(model, after, notes)


def _folds(args: Namespace, n_rows: int) -> tuple[int, list[str]]:
    """How many folds so many rows can have, and a word where these are fewer than was asked for."""
    return (args.folds, []) if args.folds <= n_rows else (n_rows, [f"{n_rows} folds: one for each row"])


def _doubts(model: Model) -> tuple[str, ...]:
    """What is odd about the classes."""
    fractions = any(isinstance(c, float) and c % 1 for c in model.classes)  # of which it has been said
    if len(model.classes) <= MOST_NUMBERS or model.target_kind not in ("integer", "float") or fractions:
        return ()
    return (f"{model.target!r} looks like a number: cut it into a few classes, such as low and high, to learn those",)


def _chosen(tuning: Tuning) -> list[str]:
    """What was chosen, and what that does to the accuracy."""
    text = "".join(f", {name}={value!r}" for name, value in tuning.best.get("text", {}).items())
    best = f"α = {tuning.best['alpha']:g}{text} is the best of {len(tuning.settings)} by log loss"
    best += "" if tuning.calibration is None else " after calibration"
    optimistic = "chosen on these very rows, so a little optimistic: `banbury cross-validate` chooses within each fold"
    return [best, optimistic] if len(tuning.settings) > 1 else [optimistic]


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


def _accuracy(validation: CrossValidation | Streamed) -> list[str]:
    held_or_not = "in three passes over the file" if isinstance(validation, Streamed) else "in memory"
    how = f"exact {len(validation.fold_accuracies)}-fold cross-validation, {held_or_not}"
    return [
        f"  accuracy  {validation.accuracy}  by {how}",
        f"  majority  {validation.majority:.4f}           answering with the most frequent class",
    ]


def _advice(args: Namespace, data: Any, fitted: Fitted) -> list[str]:
    """What helps where answers are no better than the most frequent class: what else was tried, and how good it was."""
    validation = fitted.validation
    if validation is None:
        return []
    if len(validation.classes) == 1:
        return ["There is one class only, so there is nothing to tell apart."]
    if _beats(validation.accuracy.value, validation.accuracy.error, validation.majority):
        return []
    tried = None
    if not isinstance(validation, Streamed):
        counting = settings.counting(args, data)
        features = counting.pop("features")
        weighed = args.weigh or any(note.startswith("weighed ") for note in fitted.notes)
        but = ["--calibrate temperature", *["--tan"] * args.tan, *["--weigh"] * weighed]
        but += ["--features choose"] * (features == "choose")
        tried = alternatives(data, args.target, ("", "", ""), but=but, seed=args.seed, counting=counting)
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
