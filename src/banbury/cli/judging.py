"""The model that `fit` keeps, and how good it is: every command that talks about a model of the data asks here."""

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
from banbury.quality.label_recipes import ALPHAS, TELLING, PlainLabels
from banbury.quality.recipes import Calibrated, Plain, Recipe
from banbury.quality.tuning import Tuned, Tuning
from banbury.quality.validation import (
    FOLDS,
    RecipeComparison,
    Validation,
    compare,
    default_folds,
    learn_judged,
    validate,
)
from banbury.rows.labelled import LabelledRows, MemoryRows, load_rows, stream_rows
from banbury.weighing import FEWEST_ROWS, MOST_ROWS

MOST_NUMBERS = 50  # classes that are numbers, before it is doubted that they are classes
READING_SHARE = 0.05  # of the bar
LONG = 10.0  # seconds of weighing, from which on the output offers --plain
ONLY_PLAIN = {"gibbs", "predictive"}  # ways to estimate that weighed evidence does not have
PLAIN_TEXT = {"model", "alpha", "damping", "length", "idf", "norm"}  # settings of texts that it does not have


@dataclass(frozen=True, eq=False)
class KeptRecipe:
    """The recipe that is kept, with its rows and how good it is; and what is to be said of the choice."""

    rows: LabelledRows
    recipe: Recipe
    validation: Validation | None
    notes: tuple[str, ...] = ()
    model: Any = None  # where it was learned already

    def learn(self) -> Any:
        """The model of all rows."""
        return self.model or learn_judged(self.rows, self.recipe, self.validation)


def read_rows(args: Namespace, data: Any, takes_sets: bool) -> LabelledRows:
    """The input, in memory or read in passes where it is larger than ``--hold``."""
    counting = settings.counting(args, data)
    if getattr(args, "tan", False):
        requirement = "omitted with --tan, or COLUMN=FAMILY"
        errors.require(not settings.chooses(args), "--features", "choose", requirement)
        tree = tree_of_columns(bins=settings.bins(args.bins), columns=counting["features"])
        counting["features"] = tree
    elif getattr(args, "bins", None) is not None:
        raise errors.bad_setting("--bins", args.bins, "used with --tan; without it, use --features histogram,bins=20")
    counting |= {"groups": getattr(args, "groups", None), "threads": args.threads, "takes_sets": takes_sets}
    counting |= labels.delimiter(args)
    target = labels.target(args, data)
    if inputs.size(args) > getattr(args, "hold", float("inf")):
        rows = stream_rows(data, target, **counting)
        if not rows.has_sets:  # of labels all rows are in memory
            return rows
    return load_rows(data, target, **counting)


def judge(args: Namespace, data: Any, compares: bool = True, takes_sets: bool = True) -> KeptRecipe:
    """Plain and weighed evidence over the same folds: the one that loses less, or the one that was asked for.

    Without comparing, weighed evidence is taken from 100 rows on. ``takes_sets``: rows may have sets of labels.
    """
    with Steps() as steps:
        steps.begin("reading", READING_SHARE, timed=False, reads=True)
        rows = read_rows(args, data, takes_sets)
        steps.begin("", 1.0)
        return _judge_rows(args, data, rows, compares)


def _judge_rows(args: Namespace, data: Any, rows: LabelledRows, compares: bool) -> KeptRecipe:
    """The recipe that is kept of those that these rows allow."""
    grid, notes = (label_grid if rows.has_sets else grid_of)(args, data, rows)
    if rows.n_labelled < 2:
        note = "there is only one row, so the model cannot be validated"
        return KeptRecipe(rows, grid.plain_recipes(rows)[0], None, (note,))
    if grid.weighings and not isinstance(rows, MemoryRows) and rows.n_rows <= MOST_ROWS:
        rows = rows.sample(MOST_ROWS)  # type: ignore[attr-defined]  # weighing would hold every row in memory anyway
    if not compares:
        return _recipe_without_comparison(args, rows, grid, notes)
    if not isinstance(rows, MemoryRows):
        return _judge_large(args, rows, grid, notes)
    folds, words = folds_of(args, rows, list(grid.weighings))
    notes = [*words, *notes]
    if folds == "loo":
        plain = grid.plain_recipes(rows)[0]
        (validation,) = validate(rows, "loo", [plain], seed=args.seed)
        return KeptRecipe(rows, plain, validation, tuple(notes))
    is_single_setting = len(grid.alphas) == 1 and not grid.chooses_families
    comparison, families = grid.compare(rows, folds, keep="posteriors" if is_single_setting else "sums")
    number = _kept(args, comparison)
    chosen_rows, recipe = comparison.tried[number]
    validation = comparison.validations[number]
    model = None
    if not is_single_setting:
        tuning = Tuning(comparison, comparison.learn(), families)
        model = tuning.model if number == comparison.best else None
        tuning.warn_of_edges()
        notes += _tuning_lines(tuning, comparison)
        if not rows.has_sets:
            (validation,) = validate(chosen_rows, folds, [recipe], seed=args.seed)
    if isinstance(recipe, Calibrated):
        (before,) = validate(chosen_rows, folds, [recipe.recipe], seed=args.seed)
        gained = f"log loss {before.log_loss:.4f} before calibration, {validation.log_loss:.4f} after it"
        notes.append(f"{gained}: each fold is calibrated on the other folds")
    notes += _comparison_lines(args, comparison, number)
    return KeptRecipe(chosen_rows, recipe, validation, tuple(notes), model)


def decide(args: Namespace, data: Any) -> KeptRecipe:
    """The recipe that is kept; where one is asked for, nothing is compared."""
    is_decided = args.plain or args.weigh
    kept = judge(args, data, compares=not is_decided, takes_sets=False)
    return replace(kept, notes=()) if is_decided else kept


def tune(args: Namespace, data: Any) -> Tuning:
    """The best of all settings that are asked for, of plain naive Bayes as `fit` has it, and of weighed evidence."""
    counting = {**settings.counting_any_text(args, data), **labels.delimiter(args)}
    rows = load_rows(data, labels.target(args, data), groups=args.groups, threads=args.threads, **counting)
    if rows.n_labelled < 2:
        raise errors.BadSetting("there is only one row, so settings cannot be validated. Give more rows.")
    grid, _ = (label_grid if rows.has_sets else grid_of)(args, data, rows, tunes=True)
    folds, _ = folds_of(args, rows, list(grid.weighings))
    tuning = grid.tune(rows, folds)
    tuning.warn_of_edges()
    return tuning


def _recipe_without_comparison(args: Namespace, rows: LabelledRows, grid: Tuned, notes: list[str]) -> KeptRecipe:
    """The recipe that is taken where nothing is compared."""
    if grid.weighings:
        if not isinstance(rows, MemoryRows):
            rows, words = _sample(rows, grid.weighings[0])
            notes = [*notes, words]
        return KeptRecipe(
            rows, grid.weighings[0], None, (*notes, "weighed, without comparing it with plain naive Bayes")
        )
    if len(grid.alphas) == 1 and not grid.chooses_families:
        return KeptRecipe(rows, grid.plain_recipes(rows)[0], None, tuple(notes))
    assert isinstance(rows, MemoryRows)
    return KeptRecipe(rows, grid, None, tuple(notes))


def _sample(rows: LabelledRows, recipe: Recipe) -> tuple[MemoryRows, str]:
    """A sample of rows that are not in memory, and a word about it."""
    sample = recipe.under(rows).sample(MOST_ROWS)  # type: ignore[attr-defined]
    return sample, f"weights are learned from a sample of {errors.many(sample.n_rows, 'row')}; models count all rows"


def _judge_large(args: Namespace, rows: LabelledRows, grid: Tuned, notes: list[str]) -> KeptRecipe:
    """Plain evidence over all rows, in passes; weighed evidence beside it over a sample, by models that count all rows."""
    for option, is_given in {
        "--features choose": grid.chooses_families,
        "--calibrate": grid.calibrate is not None,
    }.items():
        requirement = f"large enough to hold all rows in memory, which {option} needs"
        errors.require(not is_given, "--hold", f"{args.hold:g} MB", requirement)
    plains = [Plain(grid.hows[0], alpha, grid.class_prior, grid.seed) for alpha in grid.alphas]
    folds, words = folds_of(args, rows, list(grid.weighings))
    every = compare([(rows, recipe) for recipe in plains], folds, seed=args.seed, keep="sums")
    plain = plains[every.best]
    validation = every.validations[every.best]
    notes = [
        *words,
        *notes,
        *([f"α = {plain.alpha:g} is the best of {len(plains)} by log loss"] if len(plains) > 1 else []),
    ]
    if not grid.weighings:
        return KeptRecipe(rows, plain, validation, tuple(notes))
    sample, word = _sample(rows, grid.weighings[0])
    tried = [(rows.sample(MOST_ROWS), plain), (sample, grid.weighings[0])]  # type: ignore[attr-defined]
    comparison = compare(tried, folds, seed=args.seed)
    number = _kept(args, comparison)
    notes += [word, *(f"on the sample, {line}" for line in _comparison_lines(args, comparison, number))]
    if number == 0:
        return KeptRecipe(rows, plain, validation, tuple(notes))
    return KeptRecipe(sample, grid.weighings[0], comparison.validations[1], tuple(notes))


# What is compared -----------------------------------------------------------------------------------------------------


def grid_of(args: Namespace, data: Any, rows: LabelledRows, tunes: bool = False) -> tuple[Tuned, list[str]]:
    """The recipes that are compared, and what is to be said of those that are not; with `fit` beside what `tune` tries."""
    weighs, notes = _weighs(args, rows)
    estimating = _estimating(args, data, tunes)
    prior = estimating["class_prior"]
    seed = int(args.seed)
    calibrate = getattr(args, "calibrate", None)
    choose = "choose" if settings.chooses(args) else "auto"
    weighed = {"fewest": 0} if args.weigh and _weight(rows) < FEWEST_ROWS else True
    weigh_options = [False, weighed] if weighs else False
    tried = estimating["alpha"], estimating["how"], settings.several_texts(args.text) if tunes else None, choose
    scoring = args.scoring if tunes else "log_loss"
    grid = Tuned.of(*tried, prior, seed, calibrate, weigh_options, args.missing, scoring)
    return replace(grid, also=Plain(class_prior=prior, seed=seed)) if tunes else grid, notes


def label_grid(args: Namespace, data: Any, rows: LabelledRows, tunes: bool = False) -> tuple[Tuned, list[str]]:
    """The same where rows have sets of labels."""
    inputs.refuse_for_sets(args, "tan", "class-prior", "bins", "groups")
    requirement = "a whole number of at least 2 for multi-label data"
    errors.require(args.folds != "loo", "--folds", args.folds, requirement)
    errors.require(not args.weigh or not args.plain, "--weigh", "--plain", "used without the other")
    is_enough = rows.n_labelled >= FEWEST_ROWS
    estimating = _estimating(args, data, tunes)
    alpha = estimating["alpha"]
    seed = int(args.seed)
    threshold = "f1" if is_enough else None
    weighs = not args.plain and (args.weigh or (is_enough and can_weigh(rows.tally, rows.n_rows)))
    chooses_alpha = is_auto(alpha) if tunes else is_enough and not settings.alpha_given(args)
    tried = (
        ALPHAS if chooses_alpha and not tunes else alpha,
        estimating["how"],
        settings.several_texts(args.text) if tunes else None,
        "auto",
    )
    scoring = args.scoring if tunes else "log_loss"
    weigh_options = [False, True] if weighs else False
    sets: dict[str, Any] = {"scoring": scoring, "has_sets": True, "threshold": threshold}
    grid = Tuned.of(*tried, None, seed, args.calibrate, weigh_options, **sets)
    if chooses_alpha and any(feature.reads_text for feature in rows.schema.features):
        grid = replace(grid, also=PlainLabels(grid.hows[0], threshold, args.calibrate, seed, telling=TELLING))
    note = f"all thresholds are 0.5, because choosing them takes at least {FEWEST_ROWS} rows"
    return grid, [] if is_enough else [note]


def _estimating(args: Namespace, data: Any, tunes: bool) -> dict[str, Any]:
    return (settings.estimating_any if tunes else settings.estimating)(args, data)


def _weighs(args: Namespace, rows: LabelledRows) -> tuple[bool, list[str]]:
    """Whether weighed evidence is a candidate, and why not, or which options it does not use."""
    errors.require(not args.weigh or not args.plain, "--weigh", "--plain", "used without the other")
    if args.plain:
        return False, []
    if args.weigh and len(rows.classes) < 2:
        raise errors.bad_setting("--weigh", f"one class, {rows.classes[0]!r}", "omitted when there is only one class")
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
    unused = ["--alpha"] * settings.alpha_given(args) + [f"--how {args.how}"] * (args.how != "mean")
    unused += ["--calibrate"] * (getattr(args, "calibrate", None) is not None)
    unused += ["--features choose"] * settings.chooses(args)
    unused += [f"--text {name}" for name in settings.text_settings(args.text) if name in PLAIN_TEXT]
    return True, [f"weighed evidence does not use {', '.join(unused)}"] if unused else []


def _weight(rows: LabelledRows) -> float:
    """How many rows count, by weight."""
    counted = rows.counts
    return float(np.count_nonzero(counted)) if rows.weights is None else float(rows.weights[counted].sum())


def look_like_measurements(target_kind: str | None, classes: tuple[Any, ...]) -> bool:
    """Whether the classes look like numbers that were measured."""
    return len(classes) > MOST_NUMBERS and target_kind in ("integer", "float")


def folds_of(args: Namespace, rows: LabelledRows, recipes: list[Recipe]) -> tuple[Any, list[str]]:
    """How rows are dealt to folds, and a word where there are fewer than was asked for."""
    folds = getattr(args, "folds", None)
    if folds == "loo":
        return "loo", []
    if getattr(args, "groups", None) is not None:
        from sklearn.model_selection import GroupKFold

        return GroupKFold(default_folds(rows.n_labelled, recipes) if folds is None else int(folds)), []
    n_rows = rows.n_labelled
    words = [f"{n_rows} folds: one for each row"] if n_rows < (folds or FOLDS) else []
    return default_folds(n_rows, recipes, folds), words


# What is said of the choice -------------------------------------------------------------------------------------------


def _kept(args: Namespace, comparison: RecipeComparison) -> int:
    """The number of the recipe that is kept: the best, or the weighed one where that was asked for."""
    if not args.weigh:
        return comparison.best
    return next(k for k, recipe in enumerate(comparison.recipes) if recipe.weighs)


def _comparison_lines(args: Namespace, comparison: RecipeComparison, kept: int) -> list[str]:
    """A line each for plain and weighed evidence, and which is kept."""
    weighed = [k for k, recipe in enumerate(comparison.recipes) if recipe.weighs]
    if not weighed or len(comparison.recipes) == len(weighed):
        return []
    plain = next(k for k in comparison.order if k not in weighed)
    lines = []
    for name, k in (("plain", plain), ("weighed", weighed[0])):
        validation = comparison.validations[k]
        folds = f"{validation.n_folds} folds" if name == "plain" else "the same folds"
        lines.append(f"{name:8}  {validation.brief}, {folds}")
    name, other = ("weighed", "plain") if kept in weighed else ("plain", "weigh")
    why = "as requested" if args.weigh else "the better on these folds"
    lines.append(f"chose {name}, {why}; use --{other} for the other")
    long = comparison.seconds[weighed[0]] if comparison.seconds else 0.0
    if long > LONG:
        lines.append(f"weighing took {long:.0f} s; --plain takes {comparison.seconds[plain]:.1f} s")
    return lines


def _tuning_lines(tuning: Tuning, comparison: RecipeComparison) -> list[str]:
    """What was chosen among plain settings."""
    plain = [k for k in comparison.order if not comparison.recipes[k].weighs]
    settings_of = tuning.settings[plain[0]]
    text = "".join(f", {name}={value!r}" for name, value in settings_of.get("text", {}).items())
    calibrated = " after calibration" if isinstance(comparison.recipes[plain[0]], Calibrated) else ""
    optimistic = "chosen on these same rows, so the figures are slightly optimistic"
    if len(plain) == 1:
        return [optimistic]
    telling = settings_of.get("telling")
    best = f"α = {settings_of['alpha']:g}" if telling is None else f"the {telling} most informative words of each label"
    return [f"{best}{text} is the best of {len(plain)} by log loss{calibrated}", optimistic]


def with_notes(validation: Validation, notes: tuple[str, ...]) -> Validation:
    """The validation with what is to be said of the choice."""
    return replace(validation, notes=(*validation.notes, *notes))
