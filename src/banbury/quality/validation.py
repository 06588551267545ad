"""validate: the only source of quality figures. Models score rows they have not seen, over the same folds for all recipes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.labels import LabelEvaluation, Thresholds
from banbury.model.naive_bayes import Model
from banbury.progress import Steps, each_step
from banbury.quality.label_recipes import PlainLabels
from banbury.quality.recipes import Calibrated, Plain, Recipe
from banbury.quality.results import CrossValidation, Outcomes, SummedValidation
from banbury.rows.folds import Round, SingleRows, n_folds
from banbury.rows.labelled import LabelledRows, MemoryRows, StreamedRows
from banbury.rows.scoring import PendingWarnings, leave_out
from banbury.tally.schema import Schema

Validation = CrossValidation | SummedValidation | LabelEvaluation
Keep = Literal["posteriors", "sums"]
FOLDS = 10
FEW_FOLDS = 3  # where the weighed model is a candidate and there are many rows
MANY_ROWS = 2_000
WEIGHING_WORK = 20.0  # times as long as counting: 17 on reviews, 25 on mail, 58 on census rows
MOST_MODELS = 100  # of folds that are read in passes: all are in memory at once


def default_folds(n_rows: int, recipes: Sequence[Recipe], n_folds: int | None = None) -> int:
    """How many folds so many rows are dealt to: ten; three from 2,000 rows on where the weighed model is a candidate.

    ``n_folds`` instead, if given: what a user asked for, or the folds over which a model's recipe was chosen.
    """
    if n_folds is not None:
        return min(n_folds, n_rows)
    takes_long = n_rows >= MANY_ROWS and any(recipe.weighs for recipe in recipes)
    return min(FEW_FOLDS if takes_long else FOLDS, n_rows)


def validate(
    rows: LabelledRows,
    folds: Any,
    recipes: Sequence[Recipe],
    *,
    seed: int = 0,
    keep: Keep = "posteriors",
    models: dict[int, Model] | None = None,
) -> list[Validation]:
    """How good each recipe is on rows that its models have not seen, all over the same folds.

    Recipes that count the same share one count and one encoding of texts. ``keep``: the posteriors of all rows, or only the sums
    that measures are made of; of rows that are read in passes always the sums. Models that were learned from the rows of each
    split are added to ``models``, if given, by the number of the split.
    """
    if isinstance(folds, str) and folds == "loo":
        _check_single_rows(rows, recipes)
    groups = _sharing_counts(rows, recipes, keep)
    rounds = rows.deal(folds, seed)
    n_splits = sum(len(splits.splits) for splits in rounds)
    if not isinstance(rows, MemoryRows):
        errors.require(
            n_splits <= MOST_MODELS, "folds", n_splits, f"at most {MOST_MODELS} when rows are not held in memory"
        )
    results: dict[int, Validation] = {}
    for members in each_step(groups, lambda _: ""):
        shared = [recipes[k] for k in members]
        recipe_rows = shared[0].under(rows)
        sinks = [_sink(recipe_rows, rounds, n_splits, keep, models) for _ in shared]
        pending = PendingWarnings()
        for splits in each_step(rounds, lambda k: f"round {k + 1} of {len(rounds)}" if len(rounds) > 1 else ""):
            for sink in sinks:
                sink.begin(splits)
            if len(shared) > 1 and all(isinstance(recipe, Plain) for recipe in shared):
                leave_out(recipe_rows, splits, shared, "posterior", sinks, pending)  # type: ignore[arg-type]
                continue
            for recipe, sink in zip(shared, sinks, strict=True):
                recipe.leave_out(recipe_rows, splits, "posterior", sink, pending)
        if keep == "posteriors":  # of many settings some may well be odd
            pending.warn(getattr(shared[0], "how", "mean"))
        for k, sink in zip(members, sinks, strict=True):
            result = sink.result(_what(recipe_rows, rounds, recipes[k]))
            results[k] = replace(result, notes=(*pending.notes, *result.notes)) if pending.notes else result
    return [results[k] for k in range(len(recipes))]


def _what(rows: LabelledRows, splits: Sequence[Round], recipe: Recipe) -> str:
    """What was judged, and how."""
    if isinstance(splits[0], SingleRows):
        return f"leave-one-out cross-validation of {recipe.describe_under(rows.schema)}"
    passes = "three" if len(splits) == 1 else f"{1 + 2 * len(splits):,}"
    in_passes = f" in {passes} passes" if isinstance(rows, StreamedRows) else ""
    return f"{n_folds(splits)}-fold cross-validation{in_passes} of {recipe.describe_under(rows.schema)}"


def _sharing_counts(rows: LabelledRows, recipes: Sequence[Recipe], keep: Keep) -> list[list[int]]:
    """The numbers of recipes that are counted together, group by group."""
    groups: dict[Any, list[int]] = {}
    for k, recipe in enumerate(recipes):
        shares = isinstance(recipe, (Plain, Calibrated, PlainLabels)) and keep == "sums"
        key = words_counting_key(recipe.under(rows).schema) if shares else ("alone", k)
        groups.setdefault(key, []).append(k)
    return list(groups.values())


def words_counting_key(schema: Schema) -> tuple[Any, ...]:
    """What recipes must share to be counted together: everything that changes the words of texts."""
    return tuple(feature.family.counting_key() for feature in schema.features if feature.reads_text)


def _check_single_rows(rows: LabelledRows, recipes: Sequence[Recipe]) -> None:
    """Raises unless single rows can be left out."""
    if not isinstance(rows, MemoryRows) or not all(isinstance(recipe, Plain) for recipe in recipes):
        requirement = (
            "a number of folds when settings are chosen, calibrated or weighed, or when rows are read in passes"
        )
        raise errors.bad_setting("folds", "loo", requirement)


def _cross_validation(
    rows: LabelledRows, tested: Int, folds: NDArray[np.int32], posteriors: Real, what: str
) -> CrossValidation:
    weights = None if rows.weights is None else rows.weights[tested]
    if weights is not None and not weights.any():
        raise errors.no_test_rows()
    notes = _sample_note(rows)
    return CrossValidation(rows.classes, tested, rows.labels[tested], posteriors, weights, what, notes, folds=folds)


def _sample_note(rows: LabelledRows) -> tuple[str, ...]:
    if rows.tally_of_rest is None:
        return ()
    return (f"tested on a sample; models also learn from {errors.many(rows.tally_of_rest.n_rows, 'other row')}",)


# Where scores go ------------------------------------------------------------------------------------------------------


def _sink(
    rows: LabelledRows, splits: Sequence[Round], n_splits: int, keep: Keep, models: dict[int, Model] | None
) -> Any:
    if rows.has_sets:
        return _LabelPosteriors(rows, len(splits), None)
    in_memory = keep == "posteriors" and isinstance(rows, MemoryRows)
    return _Posteriors(rows, len(splits), models) if in_memory else _Sums(rows, n_splits)


class _Posteriors:
    """The posteriors of all rows, round by round; a sink."""

    def __init__(self, rows: LabelledRows, n_rounds: int, models: dict[int, Model] | None) -> None:
        self.rows = rows
        self.n_rounds = n_rounds
        self.models = models
        self.rounds: list[tuple[Round, Real]] = []

    def begin(self, splits: Round) -> None:
        self.rounds.append((splits, np.empty((self.rows.n_rows, len(self.rows.names)))))

    def put(self, rows: Int | slice, splits: NDArray[np.int32], scores: Real) -> None:
        self.rounds[-1][1][rows] = scores

    def keep(self, split: int, model: Model) -> None:
        if self.models is not None:
            self.models[split] = model

    def result(self, what: str) -> Validation:
        """In the order of rows; the splits of several rounds one after the other."""
        tested, folds, posteriors = self._join_rounds()
        return _cross_validation(self.rows, tested, folds, posteriors, what)

    def _join_rounds(self) -> tuple[Int, NDArray[np.int32], Real]:
        parts: list[tuple[Int, NDArray[np.int32], Real]] = []
        start = 0
        for splits, posteriors in self.rounds:
            tested_by = splits.tested_by
            if self.n_rounds == 1 and int(tested_by.min(initial=0)) >= 0:
                parts.append((np.arange(len(tested_by)), tested_by, posteriors))
                break
            alone = self.n_rounds == 1
            tested = np.flatnonzero(tested_by >= 0) if alone else np.concatenate([s.test for s in splits.splits])
            parts.append((tested, tested_by[tested] + np.int32(start), posteriors[tested]))
            start += len(splits.splits)
        tested, folds, posteriors = (np.concatenate(x) if len(x) > 1 else x[0] for x in zip(*parts, strict=True))
        return tested, folds.astype(np.int32, copy=False), posteriors


class _LabelPosteriors(_Posteriors):
    """P(label | row) of all rows, and the thresholds of each split; a sink."""

    def __init__(self, rows: LabelledRows, n_rounds: int, models: dict[int, Model] | None) -> None:
        super().__init__(rows, n_rounds, models)
        self.thresholds: list[Real] = []

    def decide(self, split: int, thresholds: Thresholds) -> None:
        self.thresholds.append(thresholds.probabilities)

    def result(self, what: str) -> LabelEvaluation:
        tested, folds, posterior = self._join_rounds()
        rows = self.rows
        assert rows.sets is not None
        truth = rows.sets.take(tested).flags(rows.names)
        answers = np.zeros(truth.shape, dtype=np.bool_)
        for fold, thresholds in enumerate(self.thresholds):
            here = folds == fold
            answers[here] = posterior[here] >= thresholds
        weights = None if rows.weights is None else rows.weights[tested]
        return LabelEvaluation(rows.names, tested, truth, answers, posterior, weights, what, _sample_note(rows), folds)


class _Sums:
    """The sums that measures are made of, over all rounds; a sink."""

    def __init__(self, rows: LabelledRows, n_splits: int) -> None:
        self.rows = rows
        self.n_splits = n_splits
        self.start = self.next = 0
        self.outcomes: Outcomes | None = None
        self._lock = Lock()

    def begin(self, splits: Round) -> None:
        self.start = self.next
        self.next += len(splits.splits)

    def put(self, rows: Int | slice, splits: NDArray[np.int32], scores: Real) -> None:
        tested = splits >= 0
        weights = None if self.rows.weights is None else self.rows.weights[rows][tested]
        folds = splits[tested] + np.int32(self.start)
        self.add(Outcomes.of(scores[tested], self.rows.labels[rows][tested], folds, self.n_splits, weights))

    def add(self, outcomes: Outcomes) -> None:
        """Adds how some rows came out."""
        with self._lock:
            self.outcomes = outcomes if self.outcomes is None else self.outcomes + outcomes

    def keep(self, split: int, model: Model) -> None:
        pass

    def result(self, what: str) -> SummedValidation:
        if self.outcomes is None or not self.outcomes.weight > 0:
            raise errors.no_test_rows()
        weighted = self.rows.weights is not None
        return SummedValidation(self.rows.classes, self.outcomes, weighted, what, _sample_note(self.rows))


# The better of several ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RecipeComparison:
    """Recipes with the rows they learn from, and how good each is over the same folds; the best comes first in ``order``."""

    tried: tuple[tuple[Any, Recipe], ...]
    validations: tuple[Validation, ...]
    scoring: str = "log_loss"
    seconds: tuple[float, ...] = ()  # that each validation took

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        return tuple(recipe for _, recipe in self.tried)

    @property
    def scores(self) -> Real:
        """The measure by which recipes are compared, of each."""
        return np.array([float(getattr(validation, self.scoring)) for validation in self.validations])

    @property
    def order(self) -> list[int]:
        """The numbers of recipes, best first; of those that differ by rounding only, in the order they were given."""
        sign = 1.0 if self.scoring in ("log_loss", "brier", "hamming_loss") else -1.0
        return [int(k) for k in np.argsort(np.round(sign * self.scores, 12), kind="stable")]

    @property
    def best(self) -> int:
        return self.order[0]

    def without_rows(self) -> RecipeComparison:
        """The same without the rows, to be kept."""
        return replace(self, tried=tuple((None, recipe) for recipe in self.recipes))

    def learn(self) -> Any:
        """The model of all rows, by the best recipe."""
        rows, recipe = self.tried[self.best]
        return learn_judged(rows, recipe, self.validations[self.best])


def learn_judged(rows: Any, recipe: Recipe, validation: Validation | None) -> Any:
    """The model of all rows, which remembers over how many folds its recipe was validated."""
    model = recipe.learn(recipe.under(rows))
    return model if validation is None else replace(model, choice=replace(model.choice, n_folds=validation.n_folds))


def compare(
    tried: Sequence[tuple[LabelledRows, Recipe]],
    folds: Any,
    *,
    scoring: str = "log_loss",
    seed: int = 0,
    keep: Keep = "posteriors",
) -> RecipeComparison:
    """Validates recipes over the same folds, each with its rows: the one place where plain and weighed are compared."""
    validations = list[Validation]()
    seconds = list[float]()
    groups = list[tuple[LabelledRows, list[Recipe]]]()
    for rows in {id(rows): rows for rows, _ in tried}.values():
        recipes = [recipe for recipe_rows, recipe in tried if recipe_rows is rows]
        groups.append((rows, [recipe for recipe in recipes if not recipe.weighs]))
        groups += [(rows, [recipe]) for recipe in recipes if recipe.weighs]
    any_weighed = any(recipe.weighs for _, recipe in tried)
    work = [WEIGHING_WORK if any(recipe.weighs for recipe in together) else len(together) for _, together in groups]
    with Steps() as steps:
        for k, (rows, together) in enumerate(groups):
            is_short = any_weighed and work[k] < WEIGHING_WORK
            steps.begin("plain evidence" if is_short else "", work[k] / (sum(work[k:]) or 1.0), timed=not is_short)
            start = perf_counter()
            validations += validate(rows, folds, together, seed=seed, keep=keep)
            seconds += [perf_counter() - start] * len(together)
    return RecipeComparison(tuple(tried), tuple(validations), scoring, tuple(seconds))
