"""Tuning: settings are compared by their scores of held-out rows. Rows are counted once, and encoded once."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
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
from banbury.notebooks import Tabular, align_columns, columns_of
from banbury.quality.calibration import METHODS, Calibration, Method
from banbury.quality.families import FamilyChoice, choose_families
from banbury.quality.label_recipes import ALPHAS, PlainLabels, WeighedLabels
from banbury.quality.recipes import Calibrated, Plain, Recipe, Weighed, with_text
from banbury.quality.validation import Keep, RecipeComparison, compare
from banbury.rows.folds import Deal, rows_together
from banbury.rows.labelled import (
    LabelledRows,
    MemoryRows,
    chooses,
    has_several,
    open_rows,
    open_table_with_labels,
    refuse_for_sets,
)
from banbury.tally.schema import FamilyOption, Missing, Schema
from banbury.tally.tally import Tally

Scoring = Literal["log_loss", "accuracy", "brier", "macro_f1"]
SCORINGS: tuple[Scoring, ...] = ("log_loss", "accuracy", "brier", "macro_f1")
LABEL_SCORINGS = ("log_loss", "micro_f1", "macro_f1", "subset_accuracy", "hamming_loss")
# Values of α from 0.001 to 10. Those near 1 come first, so that they win ties.
AUTO = tuple(sorted((float(f"{x:.3g}") for x in np.logspace(-3.0, 1.0, 13)), key=lambda x: abs(float(np.log(x)))))
SHOWN = 10
FEWEST_ORDERED = 3  # with fewer numbers tried, nothing is said about the best being the smallest or largest
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
    features: FamilyOption | Literal["choose"] = "auto",
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

    Returns a ``Tuning``. A warning says when the best of three or more numbers is the smallest or the largest of them.

    >>> import banbury as bb
    >>> tuning = bb.tune(bb.datasets.play_tennis(), target="play", alpha=[0.1, 1.0], folds=7)
    >>> tuning.best
    {'alpha': 1.0, 'how': 'mean'}
    >>> tuning.model.choice.alpha
    1.0
    """
    check_seed(seed)
    if "estimator" in reading:
        requirement = "omitted, because alpha, how, text, features and weigh say what to try"
        raise errors.bad_setting("estimator", reading["estimator"], requirement)
    errors.require(not isinstance(folds, str), "folds", folds, "a number of folds, a fold for each row, or a splitter")
    counting_settings = {"schema": schema, "features": features, "weights": weights, "threads": threads}
    counting_settings |= {"missing": missing or "skip", "groups": rows_together(groups, id, deal)}
    table = open_table_with_labels(data, target, engine=engine, partitions=partitions, **counting_settings, **reading)
    settings: dict[str, Any] = {"alpha": alpha, "how": how, "text": text, "seed": seed, "calibrate": calibrate}
    settings |= {"weigh": weigh, "scoring": scoring}
    if table.has_sets:
        refuse_for_sets(features, class_prior=class_prior, groups=groups)
        tuned_recipe = Tuned.of_sets(**settings)
    else:
        settings |= {"features": features, "class_prior": class_prior, "missing": missing}
        tuned_recipe = Tuned.of(**settings, has_schema=schema is not None)
    tuning = tuned_recipe.tune(open_rows(table, folds, int(seed), id, deal), folds, sample)
    tuning._warn_of_edges()
    return tuning


@dataclass(frozen=True)
class Tuned(Recipe):
    """A recipe that tries many settings over folds of the rows and keeps the best."""

    alphas: tuple[float, ...]  # pseudo-counts to try
    hows: tuple[How, ...] = ("mean",)  # estimators to try
    text: Mapping[str, Any] | None = None  # settings of ``bb.Text``, each a value or a list of values to try
    chooses_families: bool = False
    proposes_texts: bool = False  # whether several text models are tried if no family was declared for text columns
    class_prior: ClassPrior = None
    seed: int = 0
    calibrate: Method | None = None
    tries_plain: bool = True  # whether plain settings are tried at all
    weighings: tuple[Weighed | WeighedLabels, ...] = ()  # recipes that weigh evidence, to be tried too
    scoring: str = "log_loss"
    extra_recipe: Plain | PlainLabels | None = None  # one more recipe to compare
    threshold: Any = "f1"  # for several labels per row

    @classmethod
    def of(
        cls,
        *,
        alpha: Any = "auto",
        how: Any = "mean",
        text: Any = None,
        features: Any = "auto",
        class_prior: ClassPrior = None,
        seed: int = 0,
        calibrate: Any = None,
        weigh: Any = False,
        missing: Missing | None = None,
        scoring: str = "log_loss",
        has_schema: bool = False,
    ) -> Tuned:
        """Returns the recipe for the settings of ``bb.tune``. ``has_schema`` says whether the user passed a schema.
        Raises an error for settings that are invalid or contradict each other.
        """
        _check_choices(scoring, SCORINGS, calibrate, METHODS)
        tries_plain, weighing_settings = _weighings(weigh)  # settings: True, or a mapping, of each weighing to try
        chooses_families = chooses(features)
        if weighing_settings and not tries_plain:
            check_weighs_alone(weigh, how, 1.0 if is_auto(alpha) else alpha, chooses_families)
            requirement = "omitted for weighed evidence, which chooses how words count"
            errors.require(text is None, "text", text, requirement)
            errors.require(calibrate is None, "calibrate", calibrate, "omitted for weighed evidence")
        return cls(
            _alphas(alpha),
            _hows(how),
            text=text,
            chooses_families=chooses_families,
            proposes_texts=chooses_families or (not has_schema and is_auto(alpha)),
            class_prior=class_prior,
            seed=int(seed),
            calibrate=calibrate,
            tries_plain=tries_plain,
            weighings=tuple(
                Weighed.of(setting, class_prior=class_prior, seed=int(seed), missing=missing or "category")
                for setting in weighing_settings
            ),
            scoring=scoring,
        )

    @classmethod
    def of_sets(
        cls,
        *,
        alpha: Any = "auto",
        how: Any = "mean",
        text: Any = None,
        seed: int = 0,
        calibrate: Any = None,
        weigh: Any = False,
        scoring: str = "log_loss",
        threshold: Any = "f1",
    ) -> Tuned:
        """Returns the recipe for rows with several labels, from the settings of ``bb.tune``. ``threshold`` is that of
        ``bb.MultiLabelClassifier``. Raises an error for invalid settings.
        """
        _check_choices(scoring, LABEL_SCORINGS, calibrate, LABEL_METHODS)
        tries_plain, weighing_settings = _weighings(weigh)
        are_flags = all(setting is True for setting in weighing_settings)
        errors.require(are_flags, "weigh", weigh, "True, False or both")
        weighed_recipe = WeighedLabels(threshold=threshold, calibrate=calibrate, seed=int(seed))
        return cls(
            _alphas(alpha),
            _hows(how),
            text=text,
            seed=int(seed),
            calibrate=calibrate,
            tries_plain=tries_plain,
            weighings=(weighed_recipe,) * bool(weighing_settings),
            scoring=scoring,
            threshold=threshold,
        )

    def describe_under(self, schema: Schema) -> str:
        """Returns the name of the recipe for users. ``schema`` does not matter."""
        process = "tuned" if self.calibrate is None else "tuned and calibrated"
        return f"{Plain.name if self.tries_plain else Weighed.name}, {process} within each fold"

    def learn(self, rows: MemoryRows) -> Any:
        """Returns a model with the settings that are best over folds of these rows."""
        return self.tune(replace(rows, groups=None, fold=None), min(INNER_FOLDS, rows.n_labelled)).model

    def tune(self, rows: Any, folds: Any, n_sampled: int | None = None) -> Tuning:
        """Tries all settings over the same folds and learns the best model. The rows are not kept. ``n_sampled`` is the
        number of rows to draw if a setting needs rows in memory and they are not; None for the default.
        """
        comparison, family_choice = self.compare(rows, folds, n_sampled=n_sampled)
        return Tuning(comparison.without_rows(), comparison.learn(), family_choice)

    def compare(
        self, rows: Any, folds: Any, keep: Keep = "sums", n_sampled: int | None = None
    ) -> tuple[RecipeComparison, FamilyChoice | None]:
        """Returns a comparison of all settings over the same folds, and the families that were chosen; None if none
        were to be chosen.

        If a setting needs rows in memory and they are not, all settings are compared on a sample of ``n_sampled`` rows.
        ``keep`` is that of ``validate``.
        """
        needs_rows = self.chooses_families or self.calibrate is not None or bool(self.weighings) or rows.has_sets
        requirement = "omitted when all rows are validated"
        errors.require(needs_rows or n_sampled is None, "sample", n_sampled, requirement)
        plain_rows = rows.sample(n_sampled) if needs_rows and self.tries_plain else rows
        family_choice = None
        if self.chooses_families:
            sample = replace(plain_rows, tally_of_rest=None)  # all other rows are counted as other families
            first_fold_set = sample.fold_sets(folds, self.seed)[0]
            recipe = Plain(self.hows[0], self.alphas[0], self.class_prior, self.seed)
            family_choice = choose_families(sample, first_fold_set, recipe)
            plain_rows = rows.with_schema(family_choice.schema).sample(n_sampled)
        # Each recipe, after the rows that it learns from.
        rows_and_recipes: list[tuple[LabelledRows, Recipe]] = [
            (plain_rows, recipe) for recipe in self.plain_recipes(plain_rows)
        ]
        if family_choice is not None and self.extra_recipe is not None:
            rows_and_recipes.append((rows, self._complete_recipe(self.extra_recipe, rows)))
        rows_and_recipes += [(recipe.rows_from(rows, n_sampled), recipe) for recipe in self.weighings]
        return compare(rows_and_recipes, folds, scoring=self.scoring, seed=self.seed, keep=keep), family_choice

    def plain_recipes(self, rows: LabelledRows) -> list[Recipe]:
        """Returns a recipe for every combination of plain settings, without repeating settings that give the same model
        of these rows; nothing if only weighed evidence is tried.
        """
        if not self.tries_plain:
            return []
        recipes: dict[Any, Plain | PlainLabels] = {}  # by what decides the model
        for text, how, alpha in product(_texts(self.text, rows, self.proposes_texts), self.hows, self.alphas):
            recipe = Plain(how, alpha, self.class_prior, self.seed, text or None)
            recipes.setdefault(_model_key(recipe, rows), recipe)
        if self.extra_recipe is not None and not self.chooses_families:
            recipes.setdefault(_model_key(self.extra_recipe, rows), self.extra_recipe)
        return [self._complete_recipe(recipe, rows) for recipe in recipes.values()]

    def _complete_recipe(self, recipe: Plain | PlainLabels, rows: LabelledRows) -> Recipe:
        """Returns a plain recipe as one for labels, with this recipe's threshold and calibration, if rows have several;
        otherwise with calibration, if requested.
        """
        if isinstance(recipe, PlainLabels):
            return recipe
        if rows.has_sets:
            shared_settings = recipe.how, self.threshold, self.calibrate, self.seed
            return PlainLabels(*shared_settings, alpha=recipe.alpha, text=recipe.text)
        return recipe if self.calibrate is None else Calibrated(recipe, self.calibrate)


@dataclass(frozen=True, eq=False, repr=False)
class Tuning(Tabular):
    """The settings that were tried and their scores on held-out rows. ``best`` has the best settings and ``model`` the
    model they give on all rows.
    """

    _comparison: RecipeComparison  # of one recipe for each setting
    model: Any  # of all rows under the best settings, calibrated if that was asked for
    family_choice: FamilyChoice | None = None

    @property
    def settings(self) -> tuple[dict[str, Any], ...]:
        """The settings that were tried, as one dictionary for each recipe."""
        return tuple(recipe.to_dict() for recipe in self._comparison.recipes)  # type: ignore[attr-defined]

    @property
    def scores(self) -> Real:
        """The score of each setting, by the measure ``scoring``."""
        return self._comparison.scores

    @property
    def accuracies(self) -> Real:
        """The mean accuracy over folds of each setting."""
        return np.array([self._measures(number, "accuracy")["accuracy"] for number in range(len(self.settings))])

    def _measures(self, i: int, *names: str) -> dict[str, float]:
        """Returns some measures of setting number ``i`` by name; by default the one by which settings are compared, and
        the one that is shown besides.
        """
        validation = self._comparison.validations[i]
        return {name: float(getattr(validation, name)) for name in names or (self.scoring, validation._headline)}

    @property
    def scoring(self) -> str:
        """The name of the measure by which settings are compared."""
        return self._comparison.scoring

    @property
    def order(self) -> list[int]:
        """The numbers of the settings, best first."""
        return self._comparison.order

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
        """The parameters whose best value lies at the end of the numbers tried, if a number beyond it may be better.

        Each has its best value, and whether this is the "least" or the "largest" of at least three numbers.
        """
        tried_settings = [_flat(settings) for settings in self.settings]
        scores = np.round(self.scores, 12).tolist()
        best_settings = tried_settings[self.order[0]]
        edges = {}  # by parameter
        for name, best_value in best_settings.items():
            tried_values: list[Any] = [settings[name] for settings in tried_settings if name in settings]
            # Those of the values that are numbers, ascending.
            numbers = sorted({x for x in tried_values if isinstance(x, (int, float)) and not isinstance(x, bool)})
            if len(numbers) < FEWEST_ORDERED or best_value not in (numbers[0], numbers[-1]):
                continue
            side, neighbour = ("least", numbers[1]) if best_value == numbers[0] else ("largest", numbers[-2])
            # If the neighbour gives the same model, it was not tried, and no number beyond the best is better.
            neighbour_settings = {**best_settings, name: neighbour}
            has_worse_neighbour = (
                neighbour_settings in tried_settings
                and scores[tried_settings.index(neighbour_settings)] != scores[self.order[0]]
            )
            if has_worse_neighbour and self._goes_beyond(name, best_value, side):
                edges[name] = best_value, side
        return edges

    def _goes_beyond(self, name: str, value: float, side: str) -> bool:
        """Returns whether the setting ``name`` allows numbers beyond ``value``: below it if ``side`` is "least", above
        it if it is "largest".
        """
        sign = -1 if side == "least" else 1
        number_beyond = value + sign if isinstance(value, int) else value * (1.0 + sign * 1e-3)
        try:
            if name == "alpha":
                check_positive("alpha", number_beyond, zero=True)
            else:
                with_text(self.tally.schema, {name: number_beyond})
        except errors.BanburyError:
            return False
        return number_beyond != value

    def _warn_of_edges(self) -> None:
        """Warns if the best of the given numbers is the smallest or the largest, because better ones may lie beyond it.
        ``edges`` has for each such parameter its best value, and "least" or "largest".
        """
        alphas = {settings.get("alpha") for settings in self.settings} - {None}
        for name, (best_value, side) in self.edges.items():
            if name == "alpha" and alphas in (set(AUTO), set(ALPHAS)):  # the user did not choose them
                continue
            direction = "smaller" if side == "least" else "larger"
            message = (
                f"the best {name} is {best_value:g}, the {side} value tried, and {direction} values may be better. "
            )
            message += f"Widen the grid: try some {direction} values too."
            errors.warn(errors.BanburyWarning(message))

    def to_dict(self) -> dict[str, Any]:
        """Returns all settings and scores, best first, and the chosen families if there are any, for JSON."""
        family_entry = {} if self.family_choice is None else {"families": self.family_choice.names}
        n_folds = self._comparison.validations[0].n_folds
        settings = [{**self.settings[number], **self._measures(number)} for number in self.order]
        return {"scoring": self.scoring, "folds": n_folds, "best": self.best, "settings": settings, **family_entry}

    def _frame_columns(self) -> dict[str, list[Any]]:
        """Returns the columns, by name, of a table with a row for each setting, the best first."""
        return columns_of({**_flat(self.settings[number]), **self._measures(number)} for number in self.order)

    def __str__(self) -> str:
        """Returns the best settings as a table of text, with their scores."""
        shown_settings = self.order[:SHOWN]  # numbers of settings
        setting_texts = []
        for i in shown_settings:
            values = _flat(self.settings[i]).items()
            setting_texts.append(
                ", ".join(f"{name}={x:g}" if isinstance(x, float) else f"{name}={x!r}" for name, x in values)
            )
        how_many = errors.many(len(self.settings), "setting")
        method = getattr(self.calibration, "method", None)
        calibration_text = "" if method is None else f", each calibrated ({method})"
        method_text = f"by {self._comparison.validations[0].n_folds}-fold cross-validation"
        title = f"{how_many} tried on {self.tally.n_rows:,.6g} rows {method_text}{calibration_text}, best first:"
        measure_names = [name.replace("_", " ") for name in self._measures(i=0)]
        table = [["settings", *measure_names]]
        for i, text in zip(shown_settings, setting_texts, strict=True):
            table.append([text, *(f"{measure:.4f}" for measure in self._measures(i).values())])
        lines = [title, *align_columns(table, right_aligned=range(1, len(table[0])))]
        n_hidden = len(self.settings) - len(shown_settings)
        lines += [f"  … and {n_hidden:,} more"] if n_hidden else []
        if len(self.settings) > 1 and float(np.ptp(np.round(self.scores, 12))) == 0.0:
            lines.append("  (all equal: none of the settings affects these columns)")
        return "\n".join([*lines, *([] if self.family_choice is None else str(self.family_choice).splitlines())])

    __repr__ = __str__


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings as one dictionary, in which the settings of texts stand beside the others."""
    return {**{name: value for name, value in settings.items() if name != "text"}, **settings.get("text", {})}


# What is tried -------------------------------------------------------------------------------------------------------


def check_weighs_alone(weigh: Any, how: Any, alpha: Any, chooses_families: bool) -> None:
    """Raises an error if settings are given that weighed evidence does not have: another ``how`` than "mean", another
    ``alpha`` than 1, or families to choose. ``weigh`` is for the message.
    """
    if has_several(alpha) or alpha != 1.0 or chooses_families or how != "mean":
        requirement = "omitted if how or alpha is given, or if families are chosen"
        raise errors.bad_setting("weigh", weigh, requirement)


def _model_key(recipe: Plain | PlainLabels, rows: LabelledRows) -> tuple[Any, ...]:
    """Returns a key that is equal for recipes that give the same model of these rows: the families, the estimator, the
    pseudo-count and the number of informative words (of labels). "mle" ignores α, and for two classes log-odds equal the
    multinomial model.
    """
    text_settings = dict(recipe.text or {})
    if (
        len(rows.classes) == 2
        and not rows.has_sets
        and recipe.how == "mean"
        and text_settings.get("model") == "log_odds"
    ):
        text_settings["model"] = "multinomial"
    families = tuple(feature.family for feature in with_text(rows.schema, text_settings).features)
    alpha = None if recipe.how == "mle" else recipe.alpha
    return families, recipe.how, alpha, getattr(recipe, "words_per_label", None)


def _check_choices(scoring: str, scorings: Collection[str], calibrate: Any, methods: Collection[str]) -> None:
    """Raises an error unless ``scoring`` is one of the ``scorings``, and ``calibrate`` one of the ``methods`` or None."""
    if scoring not in scorings:
        raise errors.unknown_choice("scoring", scoring, scorings)
    if calibrate not in (None, *methods):
        raise errors.unknown_choice("calibrate", calibrate, methods)


def _alphas(alpha: Any) -> tuple[float, ...]:
    """Returns the pseudo-counts to try, without duplicates, from ``alpha`` as the user passed it. Raises an error if
    one is invalid.
    """
    if isinstance(alpha, (str, bytes)):
        errors.require(is_auto(alpha), "alpha", alpha, "a number, several of them, or 'auto'")
        return AUTO
    alphas = list(alpha) if has_several(alpha) else [alpha]
    errors.require(alphas, "alpha", alpha, "at least one number, or 'auto'")
    for number in alphas:
        check_positive("alpha", number, zero=True)
    return tuple(dict.fromkeys(float(number) for number in alphas))


def _hows(how: Any) -> tuple[How, ...]:
    """Returns the estimators to try, without duplicates, from ``how`` as the user passed it. Raises an error if one is
    unknown.
    """
    hows: list[Any] = [how] if isinstance(how, str) else list(how) if isinstance(how, Iterable) else [how]
    for estimator in hows:
        if not isinstance(estimator, str) or estimator not in HOWS:
            raise errors.unknown_choice("how", estimator, HOWS)
    if not hows:
        raise errors.bad_setting("how", how, f"at least one of {errors.listed(HOWS)}")
    return tuple(dict.fromkeys(hows))


def _texts(text: Any, rows: LabelledRows, choosing: bool) -> list[dict[str, Any]]:
    """Returns every combination of text settings to try on the rows, as dictionaries; an empty one changes nothing.
    ``text`` is what the user passed; if that is None, ``choosing`` says whether to try the built-in candidates, unless
    a family of texts was declared. Raises an error for an invalid setting.
    """
    is_sample = rows.tally_of_rest is not None  # of rows that were counted under one setting
    errors.require(text is None or not is_sample, "text", text, "omitted when settings are compared on a sample")
    if text is None:
        text_features = [feature for feature in rows.schema.features if feature.reads_text]
        proposes = (
            choosing and not is_sample and text_features and not any(feature.declared for feature in text_features)
        )
        return [dict(combination) for combination in TEXT_CANDIDATES] if proposes else [{}]
    requirement = "a mapping from settings of bb.Text to values, as in {'min_count': [1, 2]}"
    errors.require(isinstance(text, Mapping), "text", text, requirement)
    if not any(feature.reads_text for feature in rows.schema.features.templates):
        raise errors.bad_setting("text", dict(text), "omitted when no column is text")
    for name in text:
        if name not in TEXT_SETTINGS:
            raise errors.unknown_choice("a setting of text", name, TEXT_SETTINGS)
    candidates = [  # the values to try, for each setting in ``text``
        [_as_json(setting) for setting in (value if isinstance(value, list) else [value])] for value in text.values()
    ]
    if [] in candidates:
        raise errors.bad_setting(f"text[{list(text)[candidates.index([])]!r}]", [], "at least one value")
    combinations = [dict(zip(text, values, strict=True)) for values in product(*candidates)]
    for combination in combinations:
        with_text(rows.schema, combination)  # raises what is wrong before anything is counted
    return combinations


def _as_json(setting: Any) -> Any:
    """Returns a setting as JSON can store it."""
    if isinstance(setting, np.generic):
        return setting.item()
    return os.fspath(setting) if isinstance(setting, os.PathLike) else setting


def _weighings(weigh: Any) -> tuple[bool, list[Any]]:
    """Returns whether plain evidence is to be tried, and every combination of weighing settings to try: True for the
    defaults, or settings of ``bb.weigh`` by name. ``weigh`` is what the user passed.
    """
    choices = weigh if isinstance(weigh, (list, tuple)) else [weigh]
    weighing_settings: list[Any] = []
    for weighing in choices:
        if weighing is False:
            continue
        if weighing is True or (isinstance(weighing, Mapping) and not weighing):
            weighing_settings.append(True)
        elif isinstance(weighing, Mapping):
            values_of_settings = [
                setting_value if isinstance(setting_value, (list, tuple)) else [setting_value]
                for setting_value in weighing.values()
            ]
            weighing_settings += [
                dict(zip(weighing, combination, strict=True)) for combination in product(*values_of_settings)
            ]
        else:
            weighing_settings.append(weighing)  # the recipe says what is wrong with it
    if not choices or (not weighing_settings and any(weighing is not False for weighing in choices)):
        raise errors.bad_setting("weigh", weigh, "True, False, settings of bb.weigh, or a list of these")
    return any(weighing is False for weighing in choices), weighing_settings
