"""What a report is about: everything is measured here, from one reading of the rows, before a page is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from banbury import errors, selection
from banbury.calibration import Calibration, Reliability, reliability
from banbury.dependence import Diagnosis, diagnose
from banbury.errors import many
from banbury.explain import Explanation, Informative
from banbury.naive_bayes import Model, estimate
from banbury.readers import Source
from banbury.reports.alternatives import Alternatives, alternatives
from banbury.selection import CrossValidation, LearningCurve
from banbury.selection.dataset import Dataset, held
from banbury.selection.groups import Groups
from banbury.selection.learning import spread
from banbury.selection.scoring import answer, fitting_prior
from banbury.tally import Label
from banbury.weighing import FEWEST_ROWS, Weighing

MOST_ROWS = 200_000  # of which learning curves are drawn and pairs compared
MOST_CLASSES = 100  # whose telling values are named
SMOOTH = 20_000  # rows from which fewer repeats draw a smooth curve
BINS = 10  # of confidence
BEST = 3  # alternatives that are recommended


@dataclass(frozen=True, eq=False)
class Mistake:
    """A row that was given another class than its own, by the model of its fold, which has not seen it.

    ``row`` is its number in the data, and ``name`` its file, where it has one. ``explanation`` weighs the answer against the true
    class; against the runner-up where the other folds have no row of the true class, and None where they have one class only.
    """

    row: int
    name: str | None
    truth: Label
    answer: Label
    probability_truth: float
    probability: float
    fold: int
    explanation: Explanation | None

    def to_dict(self) -> dict[str, Any]:
        """The mistake as JSON can hold it, with its strongest evidence."""
        strongest = () if self.explanation is None else self.explanation.evidence[:10]
        about = {name: value for name, value in vars(self).items() if name != "explanation"}
        return about | {"evidence": [[e.feature, e.value, e.decibans] for e in strongest]}


@dataclass(frozen=True, eq=False)
class Findings:
    """A model, and what was found with the rows that it was tried on."""

    model: Model
    n_rows: int  # with a label
    unlabelled: int
    own_rows: bool  # whether they are the very rows that the model has counted
    as_it_is: float | None  # of other rows, the share that the model itself gives the right class
    unknown: tuple[Label, ...]  # classes of the rows that the model has not counted
    cross_validation: CrossValidation  # after calibration, where the model is calibrated
    before_calibration: CrossValidation | None
    learning_curve: LearningCurve | None
    informative: Informative
    mistakes: tuple[Mistake, ...]
    diagnosis: Diagnosis
    n_sampled: int  # rows of the learning curve and of the pairs
    why_no_curve: str = ""
    alternatives: Alternatives | None = None
    source: str | None = None  # what the data are called

    @property
    def title(self) -> str:
        """The target and the data, as far as they have names."""
        target, source = self.model.schema.target, None if self.source is None else Path(self.source).name
        if target is not None:
            return target if source is None else f"{target}, told from {source}"
        return "Banbury report" if source is None else f"Classes of {source}"

    @property
    def more_rows(self) -> tuple[int, int, float, float] | None:
        """Two numbers of rows, the second about twice the first, what learning the second gained in accuracy, and its error."""
        curve = self.learning_curve
        if curve is None or len(curve.sizes) < 2:
            return None
        half = int(np.abs(np.log(curve.sizes / (curve.sizes[-1] / 2.0))).argmin())
        before = min(half, len(curve.sizes) - 2)
        gains = curve.accuracy[:, -1] - curve.accuracy[:, before]
        error = float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else np.inf
        return int(curve.sizes[before]), int(curve.sizes[-1]), float(gains.mean()), error

    @property
    def next_steps(self) -> tuple[str, ...]:
        """What was measured to help, a sentence each, the most helpful first."""
        steps = []
        if self.alternatives is not None:
            now = self.alternatives.now
            for each in self.alternatives.better[:BEST]:
                gain = f"log loss {each.log_loss:.4f} in place of {now.log_loss:.4f}"
                right = f"{each.accuracy:.1%} right in place of {now.accuracy:.1%}"
                steps.append(f"{each.name[0].upper()}{each.name[1:]}: {gain}, {right}.")
        if self.more_rows is not None:
            first, last, rise, error = self.more_rows
            if rise > 2.0 * error:
                points = f"{100 * rise:.1f} points (± {100 * error:.1f})"
                steps.append(f"More rows: from {first:,} to {last:,} of them accuracy rose by {points}.")
        return tuple(steps)

    @property
    def n_mistakes(self) -> int:
        """How many rows were given another class than their own."""
        return int(np.count_nonzero(self.cross_validation.best != self.cross_validation.truth))

    @cached_property
    def reliabilities(self) -> dict[str, Reliability]:
        """How honest posteriors are; of a calibrated model after calibration and before."""
        each = {"out of fold": self.cross_validation}
        if self.before_calibration is not None:
            each = {"calibrated": self.cross_validation, "before calibration": self.before_calibration}
        return {name: reliability(v.posteriors, v.truth, BINS, v.weights) for name, v in each.items()}


def measure(
    model: Model,
    data: Any,
    target: Any,
    *,
    folds: int,
    mistakes: int,
    telling: int,
    weights: Any,
    seed: int,
    threads: int | None,
    reading: dict[str, Any],
    tries: bool = True,
) -> Findings:
    """Everything that a report tells."""
    _check_classes("the model", model.classes)
    target = model.schema.target if target is None else target
    counting = {"weights": weights, "threads": threads, **reading}
    rows = held(data, target, schema=model.schema, **counting)
    _check_classes("the data", rows.classes)
    choice, prior = model.choice, _prior_over(model, rows.classes)
    settings: dict[str, Any] = {"how": choice.how, "alpha": choice.alpha, "class_prior": prior, "seed": seed}
    n_rows = int(np.count_nonzero(rows.labels >= 0))
    weighed: list[Model] | None = None
    if (weigh := _weighed_as(model)) is not None:
        settings = {"class_prior": prior, "seed": seed, "weigh": weigh}
        validated, weighed = selection.weighed_and_validated(rows, min(folds, n_rows), **settings)
        with np.errstate(divide="ignore"):
            scores = np.log(validated.posteriors)
    elif model.calibration is None:
        validated = selection.cross_validate(rows, folds=min(folds, n_rows), **settings)
    else:
        _, scores, validated = selection.scored_and_validated(rows, min(folds, n_rows), settings)
    calibrated = None
    if isinstance(model.calibration, Calibration):
        calibrated = selection.calibrated_within(validated, scores, model.calibration.method)
    before, validated = validated, validated if calibrated is None else calibrated[0]
    by_fold = np.full(rows.n_rows, -1, dtype=np.int32)
    by_fold[validated.rows] = validated.folds
    groups = Groups.of(rows, by_fold, int(validated.folds.max()) + 1)
    models = _LastFoldModel(rows, groups, settings, weighed, () if calibrated is None else calibrated[1])
    own_rows = groups.total == model.tally
    some = rows  # of very many some of each class alike
    if n_rows > MOST_ROWS:
        some = rows.only(np.sort(spread(rows.labels, np.random.default_rng(seed))[:MOST_ROWS]))
    why_no_curve, repeats = _why_no_curve(rows), 5 if n_rows <= SMOOTH else 3 if weighed is None else 2
    names = np.array([*some.classes, None], dtype=object)[some.labels]
    source = Source(lambda: iter(some.batches), some.name)
    shown = list(model.classes)  # or the most frequent of very many
    if len(shown) > MOST_CLASSES:
        often = np.argsort(-model.tally.rows.value, kind="stable")[:MOST_CLASSES]
        shown = [model.classes[c] for c in np.sort(often)]
    return Findings(
        model=model,
        n_rows=n_rows,
        unlabelled=rows.n_rows - n_rows,
        own_rows=own_rows,
        as_it_is=None if own_rows else _right(model, rows),
        unknown=tuple(name for name in rows.classes if name not in model.classes),
        cross_validation=validated,
        before_calibration=None if calibrated is None else before,
        learning_curve=None if why_no_curve else selection.learning_curve(some, repeats=repeats, **settings),
        informative=model.informative(telling, shown),
        mistakes=tuple(_mistakes(rows, validated, models, mistakes)),
        diagnosis=diagnose(source, names, schema=some.schema, weights=some.weights, threads=some.threads),
        n_sampled=int(np.count_nonzero(some.labels >= 0)),
        why_no_curve=why_no_curve,
        alternatives=_tried(model, data, target, prior, seed, counting) if tries else None,
        source=rows.name,
    )


def _tried(
    model: Model, data: Any, target: Any, prior: Any, seed: int, counting: dict[str, Any]
) -> Alternatives | None:
    """What else could be made of the rows than such a model."""
    weigh, choice = _weighed_as(model), model.choice
    method = model.calibration.method if isinstance(model.calibration, Calibration) else None
    but = ["--weigh"] * (weigh is not None)
    but += ["--calibrate temperature"] * (weigh is not None or method is not None)
    settings: dict[str, Any] = {"but": but, "weigh": weigh, "calibrate": method, "seed": seed, "counting": counting}
    settings["estimating"] = {"how": choice.how, "alpha": choice.alpha, "class_prior": prior}
    return alternatives(data, target, ("as it is", "", ""), schema=model.schema, **settings)


def _weighed_as(model: Model) -> dict[str, Any] | None:
    """The settings by which a model was weighed, if it was, few as its rows may be."""
    if not isinstance(model.weighing, Weighing):
        return None
    return {**model.weighing.settings, **({"fewest": 0} if model.tally.n_rows < FEWEST_ROWS else {})}


def _check_classes(what: str, classes: tuple[Label, ...]) -> None:
    if len(classes) < 2:
        text = f"{what} must have two classes at least to be reported on, and there is one only, {classes[0]!r}."
        raise errors.BadSetting(f"{text} Give rows of another class too, or check the target.", label=classes[0])


def _prior_over(model: Model, classes: tuple[Label, ...]) -> Any:
    """The model's class prior as folds take it: given probabilities by name, shared among the classes that the rows have."""
    prior = model.class_prior
    if prior is None or isinstance(prior, (str, int, float)):
        return prior
    known = [name for name in model.classes if name in classes]
    by_name = dict(zip(model.classes, model.class_shares.tolist(), strict=True))
    unknown = [name for name in classes if name not in by_name]
    if unknown:
        raise errors.unknown_class(unknown[0], model.classes)
    return fitting_prior({"class_prior": by_name}, model.classes, known)["class_prior"]


def _right(model: Model, rows: Dataset) -> float:
    """The share of the rows that a model gives their own class."""
    names = np.array([*rows.classes, None], dtype=object)[rows.labels]
    right = np.concatenate([model.predict(batch) for batch in rows.batches]) == names
    weights = np.where(rows.labels >= 0, 1.0 if rows.weights is None else rows.weights, 0.0)
    return float(np.average(right, weights=weights))


def _why_no_curve(rows: Dataset) -> str:
    """Why a learning curve cannot be drawn; nothing if it can."""
    counted = rows.labels >= 0 if rows.weights is None else (rows.labels >= 0) & (rows.weights > 0)
    n_rows, n_classes = int(np.count_nonzero(counted)), len(rows.classes)
    if n_rows - max(1, round(n_rows / 3)) >= n_classes:
        return ""
    return f"of {many(n_rows, 'row')}, two thirds cannot hold a row of each of the {n_classes:,} classes"


# The worst mistakes ---------------------------------------------------------------------------------------------------


def _mistakes(rows: Dataset, validated: CrossValidation, models: _LastFoldModel, most: int) -> list[Mistake]:
    """The mistakes that gave the true class the least probability, the worst first."""
    worst = _worst(rows, validated, models, most)
    by_fold = sorted(worst, key=lambda place: int(validated.folds[place]))
    explained = {place: _explained(rows, validated, models, place) for place in by_fold}
    return [explained[place] for place in worst]


@dataclass
class _LastFoldModel:
    """The model of each fold, of all rows but its own. A model of text is large: the last is kept, and no other.

    Those whose evidence was ``weighed`` on the fold's rows are given, and so is each fold's calibration.
    """

    rows: Dataset
    groups: Groups
    settings: dict[str, Any]
    weighed: list[Model] | None
    calibrations: Sequence[Calibration]
    _last: tuple[int, Model] | None = None

    def __getitem__(self, fold: int) -> Model:
        model = self._uncalibrated(fold)
        if not self.calibrations or model.classes != self.rows.classes:
            return model
        return model.calibrated(self.calibrations[fold])

    def _uncalibrated(self, fold: int) -> Model:
        if self.weighed is not None:
            return self.weighed[fold]
        if self._last is None or self._last[0] != fold:
            rest = self.groups.total - self.groups.only(np.arange(self.groups.n_groups) == fold)
            self._last = fold, estimate(rest, **fitting_prior(self.settings, self.rows.classes, rest.classes))
        return self._last[1]


def _worst(rows: Dataset, validated: CrossValidation, models: _LastFoldModel, most: int) -> list[int]:
    """Places of the worst mistakes in the answers. Where many probabilities are too small for a number, their logarithms tell."""
    wrong = np.flatnonzero(validated.best != validated.truth)
    if validated.weights is not None:
        wrong = wrong[validated.weights[wrong] > 0]
    if not most or not len(wrong):
        return []
    shares = validated.posteriors[wrong, validated.truth[wrong]]
    limit = np.partition(shares, most - 1)[most - 1] if len(wrong) > most else np.inf
    places, shares = wrong[shares <= limit], shares[shares <= limit]
    logs = np.log(np.maximum(shares, np.finfo(float).tiny))
    for fold in np.unique(validated.folds[places[shares == 0]]):
        at = np.flatnonzero((shares == 0) & (validated.folds[places] == fold))
        scores = answer(rows, validated.rows[places[at]], models[int(fold)], "log_posterior")[0]
        logs[at] = scores[np.arange(len(at)), validated.truth[places[at]]]
    return places[np.argsort(logs, kind="stable")[:most]].tolist()  # type: ignore[no-any-return]


def _explained(rows: Dataset, validated: CrossValidation, models: _LastFoldModel, place: int) -> Mistake:
    row, fold = int(validated.rows[place]), int(validated.folds[place])
    truth, best = int(validated.truth[place]), int(validated.best[place])
    of_truth, of_best = validated.posteriors[place, [truth, best]].tolist()
    (batch,) = rows.only(np.array([row])).batches
    model, label = models[fold], rows.classes[truth]
    weighed = None if len(model.classes) < 2 else model.explain(batch)
    if weighed is not None and label in model.classes and label not in (weighed.winner, weighed.against):
        weighed = model.explain(batch, against=label)
    return Mistake(row, rows.row_name(row), rows.classes[truth], rows.classes[best], of_truth, of_best, fold, weighed)
