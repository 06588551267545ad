"""Chooses the model that `fit` saves and validates it. Every command that learns a model from rows decides here."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from banbury import errors
from banbury.cli import inputs, labels, settings
from banbury.families.column_tree import tree_of_columns
from banbury.labels.weighing import can_weigh
from banbury.model.naive_bayes import is_auto
from banbury.progress import Steps
from banbury.quality.label_recipes import ALPHAS, INFORMATIVE_WORDS, PlainLabels
from banbury.quality.recipes import Calibrated, Plain, Recipe
from banbury.quality.tuning import Tuned, Tuning
from banbury.quality.validation import (
    FOLDS,
    RecipeComparison,
    Validation,
    compare,
    default_folds,
    learn_from_all_rows,
    validate,
)
from banbury.rows.labelled import LabelledRows, MemoryRows, load_rows, stream_rows
from banbury.weighing import FEWEST_ROWS, MOST_ROWS

MOST_NUMERIC_CLASSES = 50  # more than this look like measurements
READING_SHARE = 0.05  # share of the progress bar for reading
LONG_WEIGHING = 10.0  # seconds, from which on, the output mentions --plain
ONLY_PLAIN = {"gibbs", "predictive"}  # values of --how that weighed evidence does not support
PLAIN_TEXT = {"model", "alpha", "damping", "length", "idf", "norm"}  # text settings that weighed evidence does not use


@dataclass(frozen=True, eq=False)
class KeptRecipe:
    """The chosen recipe, its rows and its validation; notes for the user about the choice; and the model, if it has
    been learned already.
    """

    rows: LabelledRows
    recipe: Recipe
    validation: Validation | None  # None if the recipe was not validated
    notes: tuple[str, ...] = ()
    model: Any = None  # learned from all rows; None if that has not been done

    def learn(self) -> Any:
        """Returns the model learned from all rows with the recipe; ``model`` if there is one."""
        return self.model or learn_from_all_rows(self.rows, self.recipe, self.validation)


def read_rows(args: Namespace, data: Any, takes_sets: bool) -> LabelledRows:
    """Reads and encodes the input and returns its rows: in memory, or in passes if it is larger than ``--hold``
    (megabytes). ``data``: the opened input, as ``inputs.open_labelled`` yields it; ``takes_sets``: whether rows may
    have several labels.
    """
    count_options = settings.counting(args, data)  # by name
    if getattr(args, "tan", False):
        errors.require(not settings.chooses(args), "--features", "choose", "omitted with --tan, or COLUMN=FAMILY")
        tree = tree_of_columns(bins=settings.bins(args.bins), columns=count_options["features"])
        count_options["features"] = tree
    elif getattr(args, "bins", None) is not None:
        raise errors.bad_setting("--bins", args.bins, "used with --tan; without it, use --features histogram,bins=20")
    count_options |= {"groups": getattr(args, "groups", None), "threads": args.threads, "takes_sets": takes_sets}
    count_options |= labels.delimiter(args)
    target = labels.target(args, data)
    if inputs.size(args) > getattr(args, "hold", float("inf")):
        rows = stream_rows(data, target, **count_options)
        if not rows.has_sets:  # multi-label rows are always held in memory
            return rows
    return load_rows(data, target, **count_options)


def judge(args: Namespace, data: Any, compares: bool = True, takes_sets: bool = True) -> KeptRecipe:
    """Compares plain with weighed naive Bayes on the same folds and chooses the one with the lower log loss, or the one
    requested.

    ``data``: the opened input, as ``inputs.open_labelled`` yields it; ``compares``: False chooses weighed evidence from
    100 rows on without comparing; ``takes_sets``: whether rows may have several labels.
    """
    with Steps() as steps:
        steps.begin("reading", share_of_rest=READING_SHARE, timed=False, reads=True)
        rows = read_rows(args, data, takes_sets)
        steps.begin(title="", share_of_rest=1.0)
        return _judge_rows(args, data, rows, compares)


def _judge_rows(args: Namespace, data: Any, rows: LabelledRows, compares: bool) -> KeptRecipe:
    """Chooses among the recipes that these rows allow, and returns the chosen one. ``rows``: the encoded rows of
    ``data``, the opened input; ``compares``: whether recipes are compared; otherwise weighed evidence is chosen if it
    can be.
    """
    # The recipes to compare: plain ones for every alpha, and weighed ones; and notes for the user.
    grid, notes = (label_grid if rows.has_sets else grid_of)(args, data, rows)
    if rows.n_labelled < 2:
        note = "there is only one row, so the model cannot be validated"
        return KeptRecipe(rows, grid.plain_recipes(rows)[0], validation=None, notes=(note,))
    if grid.weighings and not isinstance(rows, MemoryRows) and rows.n_rows <= MOST_ROWS:
        rows = rows.sample(MOST_ROWS)  # type: ignore[attr-defined]  # weighing would hold every row in memory anyway
    if not compares:
        return _recipe_without_comparison(args, rows, grid, notes)
    if not isinstance(rows, MemoryRows):
        return _judge_large(args, rows, grid, notes)
    folds, fold_notes = folds_of(args, rows, list(grid.weighings))  # their number, "loo" or a splitter
    notes = [*fold_notes, *notes]
    if folds == "loo":
        plain_recipe = grid.plain_recipes(rows)[0]
        (validation,) = validate(rows, "loo", [plain_recipe], seed=args.seed)
        return KeptRecipe(rows, plain_recipe, validation, tuple(notes))
    # If there is only one plain recipe, the posteriors of all rows are kept.
    is_single_setting = len(grid.alphas) == 1 and not grid.chooses_families
    # The validated recipes, and the families chosen for columns.
    comparison, families = grid.compare(rows, folds, keep="posteriors" if is_single_setting else "sums")
    chosen_index = _choose_index(args, comparison)  # among the compared recipes
    chosen_rows, recipe = comparison.tried[chosen_index]  # the recipe with the rows that it learns from
    validation = comparison.validations[chosen_index]
    model = None  # learned already while settings were tuned
    if not is_single_setting:
        tuning = Tuning(comparison, comparison.learn(), families)  # with the model of the best settings
        model = tuning.model if chosen_index == comparison.best else None
        tuning._warn_of_edges()
        notes += _tuning_lines(tuning, comparison)
        if not rows.has_sets:
            (validation,) = validate(chosen_rows, folds, [recipe], seed=args.seed)
    if isinstance(recipe, Calibrated):
        (uncalibrated_validation,) = validate(chosen_rows, folds, [recipe.recipe], seed=args.seed)
        notes.append(
            f"log loss {uncalibrated_validation.log_loss:.4f} before calibration, {validation.log_loss:.4f} after it: "
            "each fold is calibrated on the other folds"
        )
    notes += _comparison_lines(args, comparison, chosen_index)
    return KeptRecipe(chosen_rows, recipe, validation, tuple(notes), model)


def decide(args: Namespace, data: Any) -> KeptRecipe:
    """Returns the recipe that a command uses: compared as in ``judge``, unless ``--plain`` or ``--weigh`` decides.
    ``data``: the opened input, as ``inputs.open_labelled`` yields it.
    """
    is_decided = args.plain or args.weigh  # whether the options choose the recipe
    kept_recipe = judge(args, data, compares=not is_decided, takes_sets=False)
    return replace(kept_recipe, notes=()) if is_decided else kept_recipe


def tune(args: Namespace, data: Any) -> Tuning:
    """Validates all requested settings, next to the plain model that `fit` would use, and returns the comparison with
    the best model. ``data``: the opened input, as ``inputs.open_labelled`` yields it.
    """
    count_options = {**settings.counting_any_text(args, data), **labels.delimiter(args)}
    rows = load_rows(data, labels.target(args, data), groups=args.groups, threads=args.threads, **count_options)
    if rows.n_labelled < 2:
        raise errors.BadSetting("there is only one row, so settings cannot be validated. Give more rows.")
    grid, _ = (label_grid if rows.has_sets else grid_of)(args, data, rows, tunes=True)  # the settings to compare
    folds, _ = folds_of(args, rows, list(grid.weighings))
    tuning = grid.tune(rows, folds)
    tuning._warn_of_edges()
    return tuning


def _recipe_without_comparison(args: Namespace, rows: LabelledRows, grid: Tuned, notes: list[str]) -> KeptRecipe:
    """Returns the recipe if nothing is to be compared: weighed if the grid has weighed recipes, otherwise plain or
    tuned. ``notes``: those so far.
    """
    if grid.weighings:
        if not isinstance(rows, MemoryRows):
            rows, note = _sample(rows, grid.weighings[0])
            notes = [*notes, note]
        return KeptRecipe(
            rows, grid.weighings[0], None, (*notes, "weighed, without comparing it with plain naive Bayes")
        )
    if len(grid.alphas) == 1 and not grid.chooses_families:
        return KeptRecipe(rows, grid.plain_recipes(rows)[0], validation=None, notes=tuple(notes))
    assert isinstance(rows, MemoryRows)
    return KeptRecipe(rows, grid, validation=None, notes=tuple(notes))


def _sample(rows: LabelledRows, recipe: Recipe) -> tuple[MemoryRows, str]:
    """Returns a sample of ``rows`` in memory, from which the weights of the weighed ``recipe`` are learned, and a note
    for the user about it.
    """
    sample = recipe.under(rows).sample(MOST_ROWS)  # type: ignore[attr-defined]
    return sample, f"weights are learned from a sample of {errors.many(sample.n_rows, 'row')}; models count all rows"


def _judge_large(args: Namespace, rows: LabelledRows, grid: Tuned, notes: list[str]) -> KeptRecipe:
    """Chooses a recipe for rows that do not fit in memory: validates plain recipes on all rows in passes, and compares
    the best with weighed evidence on a sample, and returns the better. ``grid``: the recipes; ``notes``: those so far.
    """
    for option, is_given in {
        "--features choose": grid.chooses_families,
        "--calibrate": grid.calibrate is not None,
    }.items():
        errors.require(
            not is_given,
            "--hold",
            f"{args.hold:g} MB",
            f"large enough to hold all rows in memory, which {option} needs",
        )
    # Plain ones, one for each pseudo-count.
    recipes = [Plain(grid.hows[0], alpha, grid.class_prior, grid.seed) for alpha in grid.alphas]
    folds, fold_notes = folds_of(args, rows, list(grid.weighings))
    plain_comparison = compare([(rows, recipe) for recipe in recipes], folds, seed=args.seed, keep="sums")
    best_plain = recipes[plain_comparison.best]
    validation = plain_comparison.validations[plain_comparison.best]
    notes = [
        *fold_notes,
        *notes,
        *([f"α = {best_plain.alpha:g} is the best of {len(recipes)} by log loss"] if len(recipes) > 1 else []),
    ]
    if not grid.weighings:
        return KeptRecipe(rows, best_plain, validation, tuple(notes))
    sample, sample_note = _sample(rows, grid.weighings[0])
    # Plain and weighed, each with the rows that it learns from.
    candidates = [(rows.sample(MOST_ROWS), best_plain), (sample, grid.weighings[0])]  # type: ignore[attr-defined]
    comparison = compare(candidates, folds, seed=args.seed)
    chosen_index = _choose_index(args, comparison)  # 0: plain, 1: weighed
    notes += [sample_note, *(f"on the sample, {line}" for line in _comparison_lines(args, comparison, chosen_index))]
    if chosen_index == 0:
        return KeptRecipe(rows, best_plain, validation, tuple(notes))
    return KeptRecipe(sample, grid.weighings[0], comparison.validations[1], tuple(notes))


# What is compared -----------------------------------------------------------------------------------------------------


def grid_of(args: Namespace, data: Any, rows: LabelledRows, tunes: bool = False) -> tuple[Tuned, list[str]]:
    """Returns the grid of recipes to compare, and notes for the user on those left out. ``data``: the opened input, as
    ``inputs.open_labelled`` yields it; ``rows``: the same rows, encoded; ``tunes``: whether it is for `tune`, so that
    it includes the plain recipe of `fit`.
    """
    weighs, notes = _can_weigh(args, rows)  # whether weighed evidence is a candidate
    estimation = settings.estimating(args, data, tunes)  # how, alpha, class_prior and seed by name
    prior = estimation["class_prior"]
    # Options of the weighing; True for the defaults. ``fewest``: the rows from which on it weighs.
    weighing_options = {"fewest": 0} if args.weigh and _weight(rows) < FEWEST_ROWS else True
    grid = Tuned.of(
        alpha=estimation["alpha"],
        how=estimation["how"],
        text=settings.several_texts(args.text) if tunes else None,
        features="choose" if settings.chooses(args) else "auto",
        class_prior=prior,
        seed=args.seed,
        calibrate=getattr(args, "calibrate", None),
        weigh=[False, weighing_options] if weighs else False,  # plain, and weighed
        missing=args.missing,
        scoring=args.scoring if tunes else "log_loss",
    )
    return replace(grid, extra_recipe=Plain(class_prior=prior, seed=args.seed)) if tunes else grid, notes


def label_grid(args: Namespace, data: Any, rows: LabelledRows, tunes: bool = False) -> tuple[Tuned, list[str]]:
    """Returns the grid of recipes to compare for multi-label rows, and notes for the user. ``data``: the opened input;
    ``rows``: the same rows, encoded; ``tunes``: whether it is for `tune`, so that it includes the plain recipe of
    `fit`.
    """
    inputs.refuse_for_sets(args, "tan", "class-prior", "bins", "groups")
    errors.require(args.folds != "loo", "--folds", args.folds, "a whole number of at least 2 for multi-label data")
    errors.require(not args.weigh or not args.plain, "--weigh", "--plain", "used without the other")
    is_enough = rows.n_labelled >= FEWEST_ROWS  # whether thresholds, weights and a pseudo-count can be learned
    estimation = settings.estimating(args, data, tunes)  # how, alpha, class_prior and seed by name
    alpha = estimation["alpha"]
    threshold = "f1" if is_enough else None  # what the thresholds of labels maximise; None: all are 0.5
    # Whether weighed evidence is a candidate, and whether several pseudo-counts are.
    weighs = not args.plain and (args.weigh or (is_enough and can_weigh(rows.tally, rows.n_rows)))
    chooses_alpha = is_auto(alpha) if tunes else is_enough and not settings.alpha_given(args)
    grid = Tuned.of_sets(
        alpha=ALPHAS if chooses_alpha and not tunes else alpha,
        how=estimation["how"],
        text=settings.several_texts(args.text) if tunes else None,
        seed=args.seed,
        calibrate=args.calibrate,
        weigh=[False, True] if weighs else False,  # plain, and weighed
        scoring=args.scoring if tunes else "log_loss",
        threshold=threshold,
    )
    if chooses_alpha and any(feature.reads_text for feature in rows.schema.features.templates):
        grid = replace(
            grid,
            extra_recipe=PlainLabels(
                grid.hows[0], threshold, args.calibrate, args.seed, words_per_label=INFORMATIVE_WORDS
            ),
        )
    note = f"all thresholds are 0.5, because choosing them takes at least {FEWEST_ROWS} rows"
    return grid, [] if is_enough else [note]


def _can_weigh(args: Namespace, rows: LabelledRows) -> tuple[bool, list[str]]:
    """Returns whether weighed evidence is a candidate; and a list with at most one note for the user: why not, or which
    options it does not use. Raises BadSetting if ``--weigh`` contradicts the data or other options.
    """
    errors.require(not args.weigh or not args.plain, "--weigh", "--plain", "used without the other")
    if args.plain:
        return False, []
    if args.weigh and len(rows.classes) < 2:
        raise errors.bad_setting("--weigh", f"one class, {rows.classes[0]!r}", "omitted when there is only one class")
    # Options that imply --plain.
    options = [f"--how {args.how}"] * ONLY_PLAIN.issuperset(args.how.split(",")) + ["--tan"] * getattr(
        args, "tan", False
    )
    options += ["--folds loo"] * (getattr(args, "folds", None) == "loo")
    if options:
        option = options[0]
        errors.require(not args.weigh, "--weigh", option, f"used without {option}, which implies --plain")
        return False, [f"not weighed: {option} implies --plain"]
    if not args.weigh and (len(rows.classes) < 2 or not rows.schema.features):
        return False, []
    if not args.weigh and _weight(rows) < FEWEST_ROWS:
        return False, [f"not weighed, because weighing takes at least {FEWEST_ROWS} rows"]
    if not args.weigh and look_like_measurements(rows.schema.target_kind, rows.classes):
        return False, ["not weighed, because it would take long; add --weigh to do it anyway"]
    # Options that weighed evidence does not use.
    unused = ["--alpha"] * settings.alpha_given(args) + [f"--how {args.how}"] * (args.how != "mean")
    unused += ["--calibrate"] * (getattr(args, "calibrate", None) is not None)
    unused += ["--features choose"] * settings.chooses(args)
    unused += [f"--text {name}" for name in settings.text_settings(args.text) if name in PLAIN_TEXT]
    return True, [f"weighed evidence does not use {', '.join(unused)}"] if unused else []


def _weight(rows: LabelledRows) -> float:
    """Returns the total weight of the rows that are counted: without weights, their number."""
    is_counted = rows.counts  # of each row: it has a class and a positive weight
    return float(np.count_nonzero(is_counted)) if rows.weights is None else float(rows.weights[is_counted].sum())


def look_like_measurements(target_kind: str | None, classes: tuple[Any, ...]) -> bool:
    """Returns whether the classes are so many different numbers that they look like measurements. ``target_kind``: the
    type of the target column, such as "integer".
    """
    return len(classes) > MOST_NUMERIC_CLASSES and target_kind in ("integer", "float")


def folds_of(args: Namespace, rows: LabelledRows, recipes: list[Recipe]) -> tuple[Any, list[str]]:
    """Returns the folds for validation (a number, "loo" or a splitter of scikit-learn), and a list with a note for the
    user if there are fewer than requested. ``recipes``: the weighed ones, for which fewer folds are the default.
    """
    folds = getattr(args, "folds", None)  # their number, "loo", or None for the default
    if folds == "loo":
        return "loo", []
    if getattr(args, "groups", None) is not None:
        from sklearn.model_selection import GroupKFold

        return GroupKFold(default_folds(rows.n_labelled, recipes) if folds is None else int(folds)), []
    n_rows = rows.n_labelled
    notes = [f"{n_rows} folds: one for each row"] if n_rows < (folds or FOLDS) else []
    return default_folds(n_rows, recipes, folds), notes


# What is said of the choice -------------------------------------------------------------------------------------------


def _choose_index(args: Namespace, comparison: RecipeComparison) -> int:
    """Returns the index of the chosen recipe among those compared: the best, or the first weighed one with ``--weigh``."""
    if not args.weigh:
        return comparison.best
    return next(index for index, recipe in enumerate(comparison.recipes) if recipe.weighs)


def _comparison_lines(args: Namespace, comparison: RecipeComparison, chosen_index: int) -> list[str]:
    """Returns notes for the user: the figures of plain and weighed evidence, and which was chosen; none unless both
    were compared. ``chosen_index``: the index of the chosen recipe.
    """
    weighed_indices = [index for index, recipe in enumerate(comparison.recipes) if recipe.weighs]  # of recipes
    if not weighed_indices or len(comparison.recipes) == len(weighed_indices):
        return []
    plain_index = next(index for index in comparison.order if index not in weighed_indices)  # of the best plain one
    lines = []
    for name, index in (("plain", plain_index), ("weighed", weighed_indices[0])):
        validation = comparison.validations[index]
        folds = f"{validation.n_folds} folds" if name == "plain" else "the same folds"
        lines.append(f"{name:8}  {validation._brief}, {folds}")  # with the main figures of the validation
    # The chosen kind of evidence, and the option for the other kind.
    name, alternative = ("weighed", "plain") if chosen_index in weighed_indices else ("plain", "weigh")
    reason = "as requested" if args.weigh else "the better on these folds"
    lines.append(f"chose {name}, {reason}; use --{alternative} for the other")
    seconds = comparison.seconds[weighed_indices[0]] if comparison.seconds else 0.0
    if seconds > LONG_WEIGHING:
        lines.append(f"weighing took {seconds:.0f} s; --plain takes {comparison.seconds[plain_index]:.1f} s")
    return lines


def _tuning_lines(tuning: Tuning, comparison: RecipeComparison) -> list[str]:
    """Returns notes for the user on the best of the plain settings. ``comparison``: the recipes of ``tuning`` with
    their validations.
    """
    # The indices of plain recipes, best first.
    plain_indices = [index for index in comparison.order if not comparison.recipes[index].weighs]
    best_settings = tuning.settings[plain_indices[0]]
    # Its settings for texts, such as ", min_count=2".
    text = "".join(f", {name}={value!r}" for name, value in best_settings.get("text", {}).items())
    suffix = " after calibration" if isinstance(comparison.recipes[plain_indices[0]], Calibrated) else ""
    caveat = "chosen on these same rows, so the figures are slightly optimistic"
    if len(plain_indices) == 1:
        return [caveat]
    words_per_label = best_settings.get("words_per_label")  # how many words of each label count; None for all
    best = (
        f"α = {best_settings['alpha']:g}"
        if words_per_label is None
        else f"the {words_per_label} most informative words of each label"
    )
    return [f"{best}{text} is the best of {len(plain_indices)} by log loss{suffix}", caveat]


def with_notes(validation: Validation, notes: tuple[str, ...]) -> Validation:
    """Returns the validation with further notes for the user."""
    return replace(validation, notes=(*validation.notes, *notes))
