"""validate: the only source of quality figures. Models score held-out rows, over the same folds for all recipes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from time import perf_counter
from typing import Any, Literal, NamedTuple

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
from banbury.rows.folds import FoldSet, SingleRows, describe_n_folds
from banbury.rows.labelled import LabelledRows, MemoryRows, StreamedRows
from banbury.rows.scoring import PendingWarnings, leave_out
from banbury.tally.schema import Schema

Validation = CrossValidation | SummedValidation | LabelEvaluation
Keep = Literal["posteriors", "sums"]
FOLDS = 10
FOLDS_IF_SLOW = 3  # where the weighed model is a candidate and there are many rows
SLOW_ROWS = 2_000  # from which on weighing is slow
WEIGHING_WORK = 20.0  # times as long as counting: 17 on reviews, 25 on mail, 58 on census rows
MOST_MODELS = 100  # of folds that are read in passes: all are in memory at once


def default_folds(n_rows: int, recipes: Sequence[Recipe], n_folds: int | None = None) -> int:
    """Returns the default number of folds: ten, or three from 2,000 rows on if the weighed model is a candidate; never
    more than rows.

    ``n_folds`` instead, if given: what a user asked for, or the folds over which a model's recipe was chosen.
    """
    if n_folds is not None:
        return min(n_folds, n_rows)
    is_slow = n_rows >= SLOW_ROWS and any(recipe.weighs for recipe in recipes)
    return min(FOLDS_IF_SLOW if is_slow else FOLDS, n_rows)


def validate(
    rows: LabelledRows,
    folds: Any,
    recipes: Sequence[Recipe],
    *,
    seed: int = 0,
    keep: Keep = "posteriors",
    models: dict[int, Model] | None = None,
) -> list[Validation]:
    """Scores every row with models that have not seen it, and measures each recipe over the same folds.

    Returns the validation of each recipe, in their order. ``folds`` are those of ``bb.cross_validate``, and ``seed``
    decides which rows are in which fold. Recipes that count the same way share one count and one encoding of texts.
    ``keep`` says whether to keep the posteriors of all rows, or only the sums from which measures are computed, which
    are all that is kept of rows that are read in passes. The model of each fold is stored in ``models``, if it is a
    dictionary.
    """
    if isinstance(folds, str) and folds == "loo":
        _check_single_rows(rows, recipes)
    groups_of_recipes = _group_by_counts(rows, recipes, keep)  # of recipe numbers
    fold_sets = rows.fold_sets(folds, seed)  # one for each repeat
    n_splits = sum(len(fold_set.splits) for fold_set in fold_sets)
    if not isinstance(rows, MemoryRows):
        errors.require(
            n_splits <= MOST_MODELS, "folds", n_splits, f"at most {MOST_MODELS} when rows are not held in memory"
        )
    validations: dict[int, Validation] = {}  # by recipe number
    for recipe_numbers in each_step(groups_of_recipes, lambda _: ""):
        group_recipes = [recipes[k] for k in recipe_numbers]
        recipe_rows = group_recipes[0].under(rows)  # the rows as this group counts them
        # Each collects the scores of one recipe.
        sinks = [_sink(recipe_rows, n_splits, keep, models) for _ in group_recipes]
        pending = PendingWarnings()
        for fold_set in each_step(
            fold_sets, lambda k: f"repeat {k + 1} of {len(fold_sets)}" if len(fold_sets) > 1 else ""
        ):
            for sink in sinks:
                sink.begin(fold_set)
            if len(group_recipes) > 1 and all(isinstance(recipe, Plain) for recipe in group_recipes):
                leave_out(recipe_rows, fold_set, group_recipes, "posterior", sinks, pending)  # type: ignore[arg-type]
                continue
            for recipe, sink in zip(group_recipes, sinks, strict=True):
                recipe.leave_out(recipe_rows, fold_set, "posterior", sink, pending)
        if keep == "posteriors":  # of many settings some may well be odd
            pending.warn(getattr(group_recipes[0], "how", "mean"))
        for k, sink in zip(recipe_numbers, sinks, strict=True):
            validation = sink.validation(_describe_validation(recipe_rows, fold_sets, recipes[k]))
            validations[k] = replace(validation, notes=(*pending.notes, *validation.notes))
    return [validations[k] for k in range(len(recipes))]


def _describe_validation(rows: LabelledRows, fold_sets: Sequence[FoldSet], recipe: Recipe) -> str:
    """Returns a description of a validation for users: leave-one-out or the number of folds, and the recipe.
    ``fold_sets`` has the divisions of the rows into folds, one for each repeat.
    """
    if isinstance(fold_sets[0], SingleRows):
        return f"leave-one-out cross-validation of {recipe.describe_under(rows.schema)}"
    n_passes = "three" if len(fold_sets) == 1 else f"{1 + 2 * len(fold_sets):,}"
    in_passes = f" in {n_passes} passes" if isinstance(rows, StreamedRows) else ""
    return f"{describe_n_folds(fold_sets)}-fold cross-validation{in_passes} of {recipe.describe_under(rows.schema)}"


def _group_by_counts(rows: LabelledRows, recipes: Sequence[Recipe], keep: Keep) -> list[list[int]]:
    """Groups recipes that can share one count of the rows, which only those whose posteriors are not kept (``keep``)
    do. Returns the recipe numbers of each group.
    """
    groups: dict[Any, list[int]] = {}
    for recipe_number, recipe in enumerate(recipes):
        can_share = isinstance(recipe, (Plain, Calibrated, PlainLabels)) and keep == "sums"
        key = words_counting_key(recipe.under(rows).schema) if can_share else ("alone", recipe_number)
        groups.setdefault(key, []).append(recipe_number)
    return list(groups.values())


def words_counting_key(schema: Schema) -> tuple[Any, ...]:
    """Returns a key that is equal for schemas under which texts are counted the same way."""
    return tuple(feature.family.counting_key() for feature in schema.features if feature.reads_text)


def _check_single_rows(rows: LabelledRows, recipes: Sequence[Recipe]) -> None:
    """Raises an error unless the rows are in memory and all recipes can leave out single rows."""
    if not isinstance(rows, MemoryRows) or not all(isinstance(recipe, Plain) for recipe in recipes):
        requirement = (
            "a number of folds when settings are chosen, calibrated or weighed, or when rows are read in passes"
        )
        raise errors.bad_setting("folds", "loo", requirement)


def _sample_note(rows: LabelledRows) -> tuple[str, ...]:
    """Returns a note for users if models learned from more rows than the sample that was tested; otherwise empty."""
    if rows.tally_of_rest is None:
        return ()
    return (f"tested on a sample; models also learn from {errors.many(rows.tally_of_rest.n_rows, 'other row')}",)


# Where scores go ------------------------------------------------------------------------------------------------------


def _sink(rows: LabelledRows, n_splits: int, keep: Keep, models: dict[int, Model] | None) -> Any:
    """Returns the sink (which collects scores) of the rows for one recipe: of posteriors of labels, of posteriors of
    classes, or of sums only, as ``keep`` asks. ``n_splits`` is the number of splits of all fold sets, and ``models``
    takes the model of each fold, if it is given.
    """
    if rows.has_sets:
        return _LabelPosteriors(rows)
    in_memory = keep == "posteriors" and isinstance(rows, MemoryRows)
    return _Posteriors(rows, models) if in_memory else _Sums(rows, n_splits)


class _TestedRows(NamedTuple):
    """The number of each tested row, the fold that tested it, and its posteriors (tested rows × classes)."""

    row_numbers: Int
    folds: NDArray[np.int32]
    posteriors: Real


@dataclass(eq=False)
class _Posteriors:
    """Collects the posteriors of all rows, fold set by fold set: a sink. Models are stored in ``models``, if it is a
    dictionary.
    """

    rows: LabelledRows
    models: dict[int, Model] | None = None  # by fold
    fold_sets: list[tuple[FoldSet, Real]] = field(default_factory=list)  # with the posteriors (rows, classes)

    def begin(self, fold_set: FoldSet) -> None:
        """Starts a fold set with an empty array of posteriors (all rows × classes or labels)."""
        self.fold_sets.append((fold_set, np.empty((self.rows.n_rows, len(self.rows.names)))))

    def put(self, rows: Int | slice, folds: NDArray[np.int32], posteriors: Real) -> None:
        """Stores the posteriors (rows × classes or labels) of the rows with these numbers in the array of the current
        fold set, the last of ``self.fold_sets``. Their folds are not needed: the fold set has them.
        """
        fold_set, posteriors_of_set = self.fold_sets[-1]
        if isinstance(rows, slice) and len(posteriors) == self.rows.n_rows:  # all rows at once: nothing is copied
            self.fold_sets[-1] = (fold_set, posteriors)
        else:
            posteriors_of_set[rows] = posteriors

    def keep(self, fold: int, model: Model) -> None:
        """Stores the model that did not learn from this fold, if models are wanted."""
        if self.models is not None:
            self.models[fold] = model

    def validation(self, what: str) -> Validation:
        """Returns the validation of all tested rows; ``what`` describes it for users. Raises an error if they weigh
        nothing.
        """
        tested = self._join_fold_sets()  # the numbers, folds and posteriors of the tested rows
        rows = self.rows
        weights = None if rows.weights is None else rows.weights[tested.row_numbers]
        if weights is not None and not weights.any():
            raise errors.no_test_rows()
        return CrossValidation(
            rows.classes,
            tested.row_numbers,
            rows.labels[tested.row_numbers],
            tested.posteriors,
            weights,
            what,
            _sample_note(rows),
            folds=tested.folds,
        )

    def _join_fold_sets(self) -> _TestedRows:
        """Returns the tested rows of all fold sets together: their numbers, folds and posteriors. Folds are numbered on
        from one set to the next. ``self.fold_sets`` has each set with the posteriors of all rows.
        """
        if len(self.fold_sets) == 1:
            ((fold_set, posteriors_of_set),) = self.fold_sets
            fold_of_row = fold_set.tested_by.astype(np.int32, copy=False)  # −1: no fold tests the row
            if int(fold_of_row.min(initial=0)) >= 0:  # all rows are tested, so nothing is copied
                return _TestedRows(np.arange(len(fold_of_row)), fold_of_row, posteriors_of_set)
            test_rows = np.flatnonzero(fold_of_row >= 0)
            return _TestedRows(test_rows, fold_of_row[test_rows], posteriors_of_set[test_rows])
        row_numbers: list[Int] = []  # of each fold set, as the following lists
        folds: list[NDArray[np.int32]] = []
        posteriors: list[Real] = []
        first_fold = 0  # the number of the fold set's first fold among all
        for fold_set, posteriors_of_set in self.fold_sets:
            test_rows = np.concatenate([split.test for split in fold_set.splits])
            row_numbers.append(test_rows)
            folds.append(fold_set.tested_by[test_rows] + np.int32(first_fold))
            posteriors.append(posteriors_of_set[test_rows])
            first_fold += len(fold_set.splits)
        all_folds = np.concatenate(folds).astype(np.int32)
        return _TestedRows(np.concatenate(row_numbers), all_folds, np.concatenate(posteriors))


@dataclass(eq=False)
class _LabelPosteriors(_Posteriors):
    """Collects P(label | row) of all rows, and the thresholds of each fold: a sink."""

    thresholds: list[Real] = field(default_factory=list)  # by fold, (labels,)

    def decide(self, fold: int, thresholds: Thresholds) -> None:
        """Stores the thresholds of a fold. Folds come in order, so their number is not needed."""
        self.thresholds.append(thresholds.probabilities)

    def validation(self, what: str) -> LabelEvaluation:
        """Returns the evaluation of all tested rows, whose labels are predicted with the thresholds of their fold;
        ``what`` describes it for users.
        """
        test_rows, folds, posterior = self._join_fold_sets()  # one entry per tested row
        rows = self.rows
        assert rows.sets is not None
        truth = rows.sets.take(test_rows).flags(rows.names)  # rows × labels
        predicted = np.zeros(truth.shape, dtype=np.bool_)
        for fold, thresholds in enumerate(self.thresholds):  # one threshold per label
            is_in_fold = folds == fold
            predicted[is_in_fold] = posterior[is_in_fold] >= thresholds
        weights = None if rows.weights is None else rows.weights[test_rows]
        return LabelEvaluation(
            rows.names, test_rows, truth, predicted, posterior, weights, what, _sample_note(rows), folds
        )


@dataclass(eq=False)
class _Sums:
    """Sums the outcomes of all rows over all fold sets: a sink. Folds are numbered on from one set to the next."""

    rows: LabelledRows
    n_folds: int  # of all fold sets
    first_fold: int = 0  # of the current fold set
    next_fold: int = 0  # the first fold of the next fold set
    outcomes: Outcomes | None = None
    _lock: Lock = field(default_factory=Lock)

    def begin(self, fold_set: FoldSet) -> None:
        """Starts a fold set, whose folds are numbered on from the last one of the set before."""
        self.first_fold = self.next_fold
        self.next_fold += len(fold_set.splits)

    def put(self, rows: Int | slice, folds: NDArray[np.int32], posteriors: Real) -> None:
        """Adds the outcomes of the rows with these numbers, given their posteriors (rows × classes). ``folds`` has the fold
        of this fold set that tests each row, or −1; ``self.first_fold`` is the number of its first fold among all.
        """
        is_tested = folds >= 0
        weights = None if self.rows.weights is None else self.rows.weights[rows][is_tested]
        truth = self.rows.labels[rows][is_tested]
        folds_of_all_sets = folds[is_tested] + np.int32(self.first_fold)
        self.add(Outcomes.of(posteriors[is_tested], truth, folds_of_all_sets, self.n_folds, weights))

    def add(self, outcomes: Outcomes) -> None:
        """Adds outcomes to the sum. Several threads may call it."""
        with self._lock:
            self.outcomes = outcomes if self.outcomes is None else self.outcomes + outcomes

    def keep(self, fold: int, model: Model) -> None:
        """Ignores models: only sums are kept."""

    def validation(self, what: str) -> SummedValidation:
        """Returns the measures of all tested rows; ``what`` describes them for users. Raises an error if the rows weigh
        nothing.
        """
        if self.outcomes is None or not self.outcomes.weight > 0:
            raise errors.no_test_rows()
        weighted = self.rows.weights is not None
        return SummedValidation(self.rows.classes, self.outcomes, weighted, what, _sample_note(self.rows))


# The better of several ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RecipeComparison:
    """Recipes with the rows they learn from, and how good each is over the same folds; the best comes first in ``order``."""

    tried: tuple[tuple[Any, Recipe], ...]  # the rows of each recipe, and the recipe
    validations: tuple[Validation, ...]
    scoring: str = "log_loss"  # the name of the measure by which recipes are compared
    seconds: tuple[float, ...] = ()  # that each validation took

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """The recipes, without their rows."""
        return tuple(recipe for _, recipe in self.tried)

    @property
    def scores(self) -> Real:
        """The measure by which recipes are compared, one number per recipe."""
        return np.array([float(getattr(validation, self.scoring)) for validation in self.validations])

    @property
    def order(self) -> list[int]:
        """The numbers of the recipes, best first. Recipes whose scores differ only by rounding stay in the order
        given.
        """
        sign = 1.0 if self.scoring in ("log_loss", "brier", "hamming_loss") else -1.0
        return [int(k) for k in np.argsort(np.round(sign * self.scores, 12), kind="stable")]

    @property
    def best(self) -> int:
        """The number of the best recipe."""
        return self.order[0]

    def without_rows(self) -> RecipeComparison:
        """Returns the comparison without the rows, which are too large to keep: None stands beside each recipe."""
        return replace(self, tried=tuple((None, recipe) for recipe in self.recipes))

    def learn(self) -> Any:
        """Returns a model of all rows, learned with the best recipe; its rows are in ``self.tried``."""
        rows, recipe = self.tried[self.best]
        return learn_from_all_rows(rows, recipe, self.validations[self.best])


def learn_from_all_rows(rows: Any, recipe: Recipe, validation: Validation | None) -> Any:
    """Returns a model of all rows, learned with a validated recipe. The model remembers the number of folds; without a
    validation it remembers none.
    """
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
    """Validates recipes over the same folds and compares them by the measure ``scoring``. ``tried`` pairs each recipe
    with its rows, ``seed`` decides which rows are in which fold, and ``keep`` is that of ``validate``. Recipes without
    weighing that share rows are validated together.
    """
    groups = list[list[int]]()  # the numbers, in ``tried``, of the recipes that are validated together
    for rows_id in dict.fromkeys(id(rows) for rows, _ in tried):
        numbers = [number for number, (rows, _) in enumerate(tried) if id(rows) == rows_id]
        groups.append([number for number in numbers if not tried[number][1].weighs])
        groups += [[number] for number in numbers if tried[number][1].weighs]
    has_slow_recipe = any(recipe.weighs for _, recipe in tried)
    relative_costs = [  # of each group, in counts of one plain recipe
        WEIGHING_WORK if any(tried[number][1].weighs for number in numbers) else len(numbers) for numbers in groups
    ]
    validation_of = dict[int, Validation]()  # by the number of the recipe
    seconds_of = dict[int, float]()
    with Steps() as steps:
        for group_number, numbers in enumerate(groups):
            is_short = has_slow_recipe and relative_costs[group_number] < WEIGHING_WORK
            steps.begin(
                "plain evidence" if is_short else "",
                relative_costs[group_number] / (sum(relative_costs[group_number:]) or 1.0),
                timed=not is_short,
            )
            if not numbers:
                continue
            start_time = perf_counter()  # seconds
            recipes = [tried[number][1] for number in numbers]
            validations = validate(tried[numbers[0]][0], folds, recipes, seed=seed, keep=keep)
            validation_of |= zip(numbers, validations, strict=True)
            seconds_of |= dict.fromkeys(numbers, perf_counter() - start_time)
    all_numbers = range(len(tried))
    return RecipeComparison(
        tuple(tried), tuple(validation_of[k] for k in all_numbers), scoring, tuple(seconds_of[k] for k in all_numbers)
    )
