"""Tuning: settings compared by what they say of rows they have not seen. Rows are counted once, and encoded once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.families.bags.text import TEXT_CANDIDATES, TEXT_SETTINGS
from banbury.families.family import HOWS, Family, How, check_positive
from banbury.labels.calibration import METHODS as LABEL_METHODS
from banbury.model.naive_bayes import ClassPrior, check_seed, is_auto
from banbury.notebooks import Tabular, columns_of
from banbury.quality.calibration import METHODS, Calibration, Method
from banbury.quality.families import FamilyChoice, choose
from banbury.quality.label_recipes import ALPHAS, PlainLabels, WeighedLabels
from banbury.quality.recipes import Calibrated, Plain, Recipe, Weighed, with_text
from banbury.quality.validation import Keep, RecipeComparison, compare
from banbury.rows.folds import Deal, rows_together
from banbury.rows.labelled import (
    LabelledRows,
    MemoryRows,
    chooses,
    open_rows,
    open_table_with_labels,
    refuse_for_sets,
    several,
)
from banbury.tally.schema import Features, Missing, Schema
from banbury.tally.tally import Tally

Scoring = Literal["log_loss", "accuracy", "brier", "macro_f1"]
SCORINGS: tuple[Scoring, ...] = ("log_loss", "accuracy", "brier", "macro_f1")
LABEL_SCORINGS = ("log_loss", "micro_f1", "macro_f1", "subset_accuracy", "hamming_loss")
# α's from next to nothing to ten; those near 1 come first, and are taken where it makes no difference
AUTO = tuple(sorted((float(f"{x:.3g}") for x in np.logspace(-3.0, 1.0, 13)), key=lambda x: abs(float(np.log(x)))))
SHOWN = 10
FEWEST_ORDERED = 3  # numbers tried, for the best of them to have a side where none was tried
INNER_FOLDS = 10


def tune(
    data: Any,
    target: Any = None,
    *,
    alpha: float | Iterable[float] | Literal["auto"] = "auto",
    how: How | Iterable[How] = "mean",
    text: Mapping[str, Any] | None = None,
    scoring: Scoring = "log_loss",
    calibrate: Method | None = None,
    folds: Any = 10,
    groups: Any = None,
    class_prior: ClassPrior = None,
    features: Features | Literal["choose"] = "auto",
    schema: Schema | None = None,
    weights: Any = None,
    missing: Missing | None = None,
    weigh: Any = False,
    seed: int = 0,
    threads: int | None = None,
    id: str | None = None,
    deal: Deal = "stratified",
    sample: int | None = None,
    engine: Any = None,
    partitions: int | None = None,
    **reading: Any,
) -> Tuning:
    """Tries many settings by exact cross-validation and keeps the best. All settings share one count.

    Args:
        data: The rows, in any form that ``bb.count`` reads.
        target: The target, as for ``bb.count``.
        alpha: One or several pseudo-counts. "auto" tries thirteen from 0.001 to 10. For text columns whose family and
            ``text`` settings are not given, it combines each of them with five text models, with plain or damped
            counts.
        how: One or several estimators.
        text: Settings of ``bb.Text`` for all text columns, each a value or a list of values, as in ``{"model":
            ["multinomial", "log_odds"], "min_count": [1, 2, 5]}``. Texts are counted again only for settings that
            change the tokens.
        features: The families, as in ``bb.count``. "choose" tries all families that suit each numeric column (flags,
            categories, bins, trees, kernels and the named densities) and keeps the one that best predicts the class of
            held-out rows. For texts it tries the five models, whatever ``alpha`` is.
        scoring: "log_loss", "accuracy", "brier" or "macro_f1"; for several labels per row "log_loss", "micro_f1",
            "macro_f1", "subset_accuracy" or "hamming_loss".
        calibrate: "temperature", "platt" or "isotonic" calibrates each setting before it is scored, and calibrates the
            final model.
        weigh: True, or settings of ``bb.weigh``, each a value or a list of values, as in ``{"pairs": [True, False]}``,
            to tune weighed evidence, which has no ``alpha`` and no ``how``. ``[False, True]`` compares weighed evidence
            with all plain settings.
        **reading: All other options are those of ``bb.cross_validate``.

    A warning says when the best of three or more numbers is the smallest or the largest of them.

    >>> import banbury as bb
    >>> found = bb.tune(bb.datasets.play_tennis(), target="play", alpha=[0.1, 1.0], folds=7)
    >>> found.best
    {'alpha': 1.0, 'how': 'mean'}
    >>> found.model.choice.alpha
    1.0
    """
    check_seed(seed)
    if "estimator" in reading:
        requirement = "omitted, because alpha, how, text, features and weigh say what to try"
        raise errors.bad_setting("estimator", reading["estimator"], requirement)
    errors.require(not isinstance(folds, str), "folds", folds, "a number of folds, a fold for each row, or a splitter")
    counting = {"schema": schema, "features": features, "weights": weights, "threads": threads}
    counting |= {"missing": missing or "skip", "groups": rows_together(groups, id, deal)}
    table = open_table_with_labels(data, target, engine=engine, partitions=partitions, **counting, **reading)
    if table.has_sets:
        refuse_for_sets(features, class_prior=class_prior, groups=groups)
    rest = class_prior, seed, calibrate, weigh, missing, scoring, schema is not None, table.has_sets
    grid = Tuned.of(alpha, how, text, features, *rest)
    tuning = grid.tune(open_rows(table, folds, int(seed), id, deal), folds, sample)
    tuning.warn_of_edges()
    return tuning


@dataclass(frozen=True)
class Tuned(Recipe):
    """A recipe that tries many settings over folds of the rows and keeps the best."""

    alphas: tuple[float, ...]
    hows: tuple[How, ...] = ("mean",)
    text: Mapping[str, Any] | None = None
    chooses_families: bool = False
    proposes_texts: bool = False  # whether models of texts are tried where nobody declared one
    class_prior: ClassPrior = None
    seed: int = 0
    calibrate: Method | None = None
    plain: bool = True  # whether plain settings are tried at all
    weighings: tuple[Weighed | WeighedLabels, ...] = ()
    scoring: str = "log_loss"
    also: Plain | PlainLabels | None = None  # what is compared with all of these
    threshold: Any = "f1"  # of sets of labels

    @classmethod
    def of(
        cls,
        alpha: Any,
        how: Any,
        text: Any,
        features: Any,
        class_prior: ClassPrior,
        seed: int,
        calibrate: Any,
        weigh: Any = False,
        missing: Missing | None = None,
        scoring: str = "log_loss",
        has_schema: bool = False,
        has_sets: bool = False,
        threshold: Any = "f1",
    ) -> Tuned:
        """Returns the recipe for the settings of ``bb.tune``; with ``threshold``, for several labels per row."""
        scorings, methods = (LABEL_SCORINGS, LABEL_METHODS) if has_sets else (SCORINGS, METHODS)
        if scoring not in scorings:
            raise errors.unknown_choice("scoring", scoring, scorings)
        if calibrate not in (None, *methods):
            raise errors.unknown_choice("calibrate", calibrate, methods)
        plain, settings = _weighings(weigh)
        chosen = chooses(features)
        weighings: tuple[Weighed | WeighedLabels, ...]
        if has_sets:
            errors.require(all(one is True for one in settings), "weigh", weigh, "True, False or both")
            weighings = (WeighedLabels("mean", threshold, calibrate, int(seed)),) if settings else ()
        else:
            if settings and not plain:
                check_weighs_alone(weigh, how, 1.0 if is_auto(alpha) else alpha, chosen)
                requirement = "omitted for weighed evidence, which chooses how words count"
                errors.require(text is None, "text", text, requirement)
                errors.require(calibrate is None, "calibrate", calibrate, "omitted for weighed evidence")
            more: dict[str, Any] = {"class_prior": class_prior, "seed": int(seed), "missing": missing or "category"}
            weighings = tuple(Weighed.of(setting, **more) for setting in settings)
        proposes = not has_sets and (chosen or (not has_schema and is_auto(alpha)))
        rest = class_prior, int(seed), calibrate, plain, weighings, scoring
        return cls(_alphas(alpha), _hows(how), text, chosen, proposes, *rest, threshold=threshold)

    @property
    def name(self) -> str:  # type: ignore[override]
        done = "tuned" if self.calibrate is None else "tuned and calibrated"
        return f"{Plain.name if self.plain else Weighed.name}, {done} within each fold"

    def learn(self, rows: MemoryRows) -> Any:
        return self.tune(replace(rows, groups=None, fold=None), min(INNER_FOLDS, rows.n_labelled)).model

    def tune(self, rows: Any, folds: Any, n_sampled: int | None = None) -> Tuning:
        """Tries all settings over the same folds and learns the best model. The rows are not kept."""
        comparison, choice = self.compare(rows, folds, n_sampled=n_sampled)
        return Tuning(comparison.without_rows(), comparison.learn(), choice)

    def compare(
        self, rows: Any, folds: Any, keep: Keep = "sums", n_sampled: int | None = None
    ) -> tuple[RecipeComparison, FamilyChoice | None]:
        """Compares all settings over the same folds, including the families that were chosen.

        If a setting needs rows in memory and they are not, all settings are compared on a sample of ``n_sampled`` rows.
        """
        needs_rows = self.chooses_families or self.calibrate is not None or bool(self.weighings) or rows.has_sets
        requirement = "omitted when all rows are validated"
        errors.require(needs_rows or n_sampled is None, "sample", n_sampled, requirement)
        plain_rows = rows.sample(n_sampled) if needs_rows and self.plain else rows
        choice = None
        if self.chooses_families:
            sample = replace(plain_rows, tally_of_rest=None)  # all other rows are counted as other families
            first = sample.deal(folds, self.seed)[0]
            choice = choose(sample, first, Plain(self.hows[0], self.alphas[0], self.class_prior, self.seed))
            plain_rows = rows.with_schema(choice.schema).sample(n_sampled)
        tried: list[tuple[LabelledRows, Recipe]] = [(plain_rows, recipe) for recipe in self.plain_recipes(plain_rows)]
        if choice is not None and self.also is not None:
            tried.append((rows, self._complete_recipe(self.also, rows)))
        tried += [(recipe.rows_from(rows, n_sampled), recipe) for recipe in self.weighings]
        return compare(tried, folds, scoring=self.scoring, seed=self.seed, keep=keep), choice

    def plain_recipes(self, rows: LabelledRows) -> list[Recipe]:
        """Returns every combination of settings, without repeating settings that give the same model."""
        if not self.plain:
            return []
        recipes: dict[Any, Plain | PlainLabels] = {}
        for text, how, alpha in product(_texts(self.text, rows, self.proposes_texts), self.hows, self.alphas):
            recipe = Plain(how, alpha, self.class_prior, self.seed, text or None)
            recipes.setdefault(_same_model(recipe, rows), recipe)
        if self.also is not None and not self.chooses_families:
            recipes.setdefault(_same_model(self.also, rows), self.also)
        return [self._complete_recipe(recipe, rows) for recipe in recipes.values()]

    def _complete_recipe(self, recipe: Plain | PlainLabels, rows: LabelledRows) -> Recipe:
        """The recipe as it is asked for: calibrated, or of labels."""
        if isinstance(recipe, PlainLabels):
            return recipe
        if rows.has_sets:
            common = recipe.how, self.threshold, self.calibrate, self.seed
            return PlainLabels(*common, alpha=recipe.alpha, text=recipe.text)
        return recipe if self.calibrate is None else Calibrated(recipe, self.calibrate)


@dataclass(frozen=True, eq=False, repr=False)
class Tuning(Tabular):
    """The settings that were tried and their scores on held-out rows. ``best`` has the best settings and ``model`` the
    model they give on all rows.
    """

    comparison: RecipeComparison
    model: Any  # of all rows under the best settings, calibrated if that was asked for
    chosen: FamilyChoice | None = None

    @property
    def settings(self) -> tuple[dict[str, Any], ...]:
        return tuple(recipe.to_dict() for recipe in self.comparison.recipes)  # type: ignore[attr-defined]

    @property
    def scores(self) -> Real:
        """The score of each setting."""
        return self.comparison.scores

    @property
    def accuracies(self) -> Real:
        """The mean accuracy over folds of each setting."""
        return self._each("accuracy")

    def _each(self, measure: str) -> Real:
        return np.array([float(getattr(validation, measure)) for validation in self.comparison.validations])

    @property
    def _headline(self) -> str:
        """The measure that is told beside the one by which settings are compared."""
        return self.comparison.validations[0].headline

    @property
    def scoring(self) -> str:
        return self.comparison.scoring

    @property
    def order(self) -> list[int]:
        """The numbers of the settings, best first."""
        return self.comparison.order

    @property
    def best(self) -> dict[str, Any]:
        """The best settings."""
        return self.settings[self.order[0]]

    @property
    def tally(self) -> Tally:
        """The tally of all rows under the best settings."""
        tally: Tally = self.model.tally
        return tally

    @property
    def features(self) -> dict[str, Family]:
        """The family of every column under the best settings, which can be passed as ``features=``."""
        return {feature.name: feature.family for feature in self.tally.schema.features}

    @property
    def calibration(self) -> Calibration | None:
        """The calibration of the best settings, if one was requested."""
        calibration: Calibration | None = self.model.calibration
        return calibration

    @property
    def edges(self) -> dict[str, tuple[Any, str]]:
        """Settings with three or more numbers of which the best is the "least" or the "largest"."""
        best = _flat(self.best)
        edges = {}
        score = dict(zip(map(repr, map(_flat, self.settings)), np.round(self.scores, 12).tolist(), strict=True))
        for name, value in best.items():
            tried: list[Any] = [setting[name] for setting in map(_flat, self.settings) if name in setting]
            numbers = sorted({n for n in tried if isinstance(n, (int, float)) and not isinstance(n, bool)})
            if len(numbers) < FEWEST_ORDERED or value not in (numbers[0], numbers[-1]):
                continue
            side, next_one = ("least", numbers[1]) if value == numbers[0] else ("largest", numbers[-2])
            differs = score[repr(best)] != score[repr({**best, name: next_one})]
            if differs and self._goes_beyond(name, value, side):
                edges[name] = value, side
        return edges

    def _goes_beyond(self, name: str, value: float, side: str) -> bool:
        """Whether there are smaller numbers than the least, or larger ones than the largest, that a setting can have."""
        sign = -1 if side == "least" else 1
        beyond = value + sign if isinstance(value, int) else value * (1.0 + sign * 1e-3)
        try:
            check_positive("alpha", beyond, zero=True) if name == "alpha" else with_text(
                self.tally.schema, {name: beyond}
            )
        except errors.BanburyError:
            return False
        return beyond != value

    def warn_of_edges(self) -> None:
        """Warns if the best of the given numbers is the smallest or the largest, because better ones may lie beyond it."""
        for name, (value, side) in self.edges.items():
            if name == "alpha" and {setting["alpha"] for setting in self.settings if name in setting} in (
                set(AUTO),
                set(ALPHAS),
            ):
                continue
            further = "smaller" if side == "least" else "larger"
            text = f"the best {name} is {value:g}, the {side} value tried, and {further} values may be better. Widen the grid: "
            errors.warn(errors.BanburyWarning(f"{text}try some {further} values too."))

    def to_dict(self) -> dict[str, Any]:
        """Returns all settings and scores, best first, for JSON."""
        beside = self._each(self._headline)
        settings = [
            {**self.settings[i], self.scoring: float(self.scores[i]), self._headline: float(beside[i])}
            for i in self.order
        ]
        families = {} if self.chosen is None else {"families": self.chosen.names}
        folds = self.comparison.validations[0].n_folds
        return {"scoring": self.scoring, "folds": folds, "best": self.best, "settings": settings, **families}

    def _frame_columns(self) -> dict[str, list[Any]]:
        """A row for each setting, the best first."""
        beside = self._each(self._headline)
        measures = ({self.scoring: float(self.scores[i]), self._headline: float(beside[i])} for i in self.order)
        return columns_of({**_flat(self.settings[i]), **scores} for i, scores in zip(self.order, measures, strict=True))

    def __str__(self) -> str:
        shown = self.order[:SHOWN]
        texts = []
        for i in shown:
            values = {k: f"{v:g}" if isinstance(v, float) else repr(v) for k, v in _flat(self.settings[i]).items()}
            texts.append(", ".join(f"{name}={value}" for name, value in values.items()))
        width = max(len("settings"), *map(len, texts))
        tried = f"{len(self.settings):,} setting{'s' * (len(self.settings) != 1)}"
        method = getattr(self.calibration, "method", None)
        calibrated = "" if method is None else f", each calibrated ({method})"
        by = f"by {self.comparison.validations[0].n_folds}-fold cross-validation"
        head = f"{tried} tried on {self.tally.n_rows:,.6g} rows {by}{calibrated}, best first:"
        also = [] if self.scoring == self._headline else [self._headline]
        measures = [measure.replace("_", " ") for measure in (self.scoring, *also)]
        lines = [head, "  " + "  ".join([f"{'settings':{width}}", *measures])]
        beside = self._each(self._headline)
        for i, text in zip(shown, texts, strict=True):
            line = f"  {text:{width}}  {self.scores[i]:{max(8, len(self.scoring))}.4f}"
            lines.append(line + (f"  {beside[i]:8.4f}" if also else ""))
        hidden = len(self.settings) - len(shown)
        lines += [f"  … and {hidden:,} more"] if hidden else []
        if len(self.settings) > 1 and float(np.ptp(np.round(self.scores, 12))) == 0.0:
            lines.append("  (all equal: none of the settings affects these columns)")
        return "\n".join([*lines, *([] if self.chosen is None else str(self.chosen).splitlines())])

    __repr__ = __str__


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings, those of texts among them."""
    return {**{name: value for name, value in settings.items() if name != "text"}, **settings.get("text", {})}


# What is tried -------------------------------------------------------------------------------------------------------


def check_weighs_alone(weigh: Any, how: Any, alpha: Any, chooses_families: bool) -> None:
    """Raises an error if settings are given that weighed evidence does not have."""
    if several(alpha) or alpha != 1.0 or chooses_families or how != "mean":
        requirement = "omitted if how or alpha is given, or if families are chosen"
        raise errors.bad_setting("weigh", weigh, requirement)


def _same_model(recipe: Plain | PlainLabels, rows: LabelledRows) -> tuple[Any, ...]:
    """What recipes share that make the same model of the rows: "mle" has no α, and of two classes log-odds say what p does."""
    text = dict(recipe.text or {})
    if len(rows.classes) == 2 and not rows.has_sets and recipe.how == "mean" and text.get("model") == "log_odds":
        text["model"] = "multinomial"
    families = tuple(feature.family for feature in with_text(rows.schema, text).features)
    alpha = None if recipe.how == "mle" else recipe.alpha
    return families, recipe.how, alpha, getattr(recipe, "telling", None)


def _alphas(alpha: Any) -> tuple[float, ...]:
    if isinstance(alpha, (str, bytes)):
        errors.require(is_auto(alpha), "alpha", alpha, "a number, several of them, or 'auto'")
        return AUTO
    alphas = list(alpha) if several(alpha) else [alpha]
    errors.require(alphas, "alpha", alpha, "at least one number, or 'auto'")
    for number in alphas:
        check_positive("alpha", number, zero=True)
    return tuple(dict.fromkeys(float(number) for number in alphas))


def _hows(how: Any) -> tuple[How, ...]:
    hows: list[Any] = [how] if isinstance(how, str) else list(how) if isinstance(how, Iterable) else [how]
    for one in hows:
        if not isinstance(one, str) or one not in HOWS:
            raise errors.unknown_choice("how", one, HOWS)
    if not hows:
        raise errors.bad_setting("how", how, f"at least one of {errors.listed(HOWS)}")
    return tuple(dict.fromkeys(hows))


def _texts(text: Any, rows: LabelledRows, choosing: bool) -> list[dict[str, Any]]:
    """Every combination of the settings of texts; those that their families propose, where nobody declared one."""
    sampled = rows.tally_of_rest is not None  # which were counted under one setting
    errors.require(text is None or not sampled, "text", text, "omitted when settings are compared on a sample")
    if text is None:
        texts = [feature for feature in rows.schema.features if feature.reads_text]
        left = choosing and not sampled and texts and not any(feature.declared for feature in texts)
        return [dict(one) for one in TEXT_CANDIDATES] if left else [{}]
    requirement = "a mapping from settings of bb.Text to values, as in {'min_count': [1, 2]}"
    errors.require(isinstance(text, Mapping), "text", text, requirement)
    if not any(feature.reads_text for feature in rows.schema.features):
        raise errors.bad_setting("text", dict(text), "omitted when no column is text")
    for name in text:
        if name not in TEXT_SETTINGS:
            raise errors.unknown_choice("a setting of text", name, TEXT_SETTINGS)
    candidates = [[_plain(x) for x in (value if isinstance(value, list) else [value])] for value in text.values()]
    if [] in candidates:
        raise errors.bad_setting(f"text[{list(text)[candidates.index([])]!r}]", [], "at least one value")
    combinations = [dict(zip(text, values, strict=True)) for values in product(*candidates)]
    for one in combinations:
        with_text(rows.schema, one)  # raises what is wrong before anything is counted
    return combinations


def _plain(setting: Any) -> Any:
    """A setting as JSON can hold it."""
    if isinstance(setting, np.generic):
        return setting.item()
    return os.fspath(setting) if isinstance(setting, os.PathLike) else setting


def _weighings(weigh: Any) -> tuple[bool, list[Any]]:
    """Whether plain evidence is among what is to be tried, and the settings of weighing: of lists every combination."""
    choices = weigh if isinstance(weigh, (list, tuple)) else [weigh]
    settings: list[Any] = []
    for one in choices:
        if one is False:
            continue
        if one is True or (isinstance(one, Mapping) and not one):
            settings.append(True)
        elif isinstance(one, Mapping):
            values = [value if isinstance(value, (list, tuple)) else [value] for value in one.values()]
            settings += [dict(zip(one, combination, strict=True)) for combination in product(*values)]
        else:
            settings.append(one)  # the recipe says what is wrong with it
    if not choices or (not settings and any(one is not False for one in choices)):
        raise errors.bad_setting("weigh", weigh, "True, False, settings of bb.weigh, or a list of these")
    return any(one is False for one in choices), settings
