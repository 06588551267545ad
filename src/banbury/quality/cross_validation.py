"""cross_validate: every fold is scored by the model of all other rows, from one count of each fold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import signature
from typing import Any, Literal

import numpy as np

from banbury import errors
from banbury.families.family import How
from banbury.model.naive_bayes import ClassPrior, check_seed, choice_of
from banbury.quality.calibration import Method
from banbury.quality.label_recipes import LabelRecipe, PlainLabels, WeighedLabels
from banbury.quality.recipes import Calibrated, Plain, Recipe, Weighed
from banbury.quality.tuning import Tuned, check_weighs_alone
from banbury.quality.validation import validate
from banbury.rows.folds import Deal, rows_together
from banbury.rows.labelled import chooses, has_several, open_rows, open_table_with_labels, refuse_for_sets
from banbury.tally.label_sets import LabelSets, are_sets
from banbury.tally.schema import FamilyOption, Missing, Schema


def cross_validate(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    folds: Any = 10,
    groups: Any = None,
    how: How = "mean",
    alpha: float | Iterable[float] | Literal["auto"] = 1.0,
    class_prior: ClassPrior = None,
    features: FamilyOption | Literal["choose"] = "auto",
    schema: Schema | None = None,
    weights: Any = None,
    missing: Missing | None = None,
    weigh: bool | Mapping[str, Any] = False,
    calibrate: Method | None = None,
    seed: int = 0,
    threads: int | None = None,
    threshold: Any = "f1",
    id: str | None = None,
    deal: Deal = "stratified",
    sample: int | None = None,
    engine: Any = None,
    partitions: int | None = None,
    **reading: Any,
) -> Any:
    """Cross-validates a model: every row is scored by a model that has not seen it, at the cost of counting once and
    scoring once.

    The rows of each fold are counted separately. A fold is then scored by the model of all rows minus that fold, which
    is exactly the model of the other rows, including vocabulary, smoothing, bins and bandwidths.

    An estimator of Banbury can be passed first, as in ``bb.cross_validate(clf, X, y)``. Its parameters then replace the
    settings below. The result equals that of scikit-learn's ``cross_val_predict``.

    Args:
        data: The rows, in any form that ``bb.count`` reads, or an estimator.
        target: The target, as for ``bb.count``; or the rows, if an estimator comes first.
        y: The target, if an estimator comes first.
        folds: The number of folds (the rows of each class are assigned to them in turn, in an order that depends on
            ``seed``), the fold of each row, "loo" to leave out one row at a time, a scikit-learn splitter, or pairs of
            training and test row numbers.
        groups: The group of each row, passed to the splitter.
        how: The estimator, as in ``bb.estimate``.
        alpha: The pseudo-count, as in ``bb.estimate``. With several values or "auto", ``bb.tune`` chooses one within
            the training rows of each fold, so that the choice is validated too.
        class_prior: The class prior, as in ``bb.estimate``.
        features: The families, as in ``bb.count``. "choose" chooses them within the training rows of each fold.
        weigh: True, or settings of ``bb.weigh``, to learn the weights of evidence within the training rows of each
            fold, as ``bb.EvidenceClassifier`` does.
        calibrate: "temperature", "platt" or "isotonic" calibrates the posteriors of each fold with those of the other
            folds.
        threads: The number of threads. It never changes the result.
        threshold: For several labels per row: how probable a label must be to be predicted. "f1" chooses thresholds on
            the rows of other folds, as ``bb.MultiLabelClassifier`` does.
        id: The name of a column, which is then not a feature. Rows with the same value in it go to the same fold.
        deal: "content" assigns rows to folds by their content, so that identical rows go to the same fold and the order
            of rows does not matter. Dask and Spark dataframes are always split this way, or by ``id``, in two passes
            over their partitions.
        sample: The number of rows in the sample from which weights, a calibration or alpha are learned when the rows
            are not in memory (100,000 unless given). The folds are also tested on that sample; models count all rows.
        **reading: All other options are those of ``bb.count``.

    Returns a ``CrossValidation``; its measures alone, without the posteriors, if the rows are not in memory; and a
    ``LabelEvaluation`` for several labels per row.

    >>> import banbury as bb
    >>> bb.cross_validate(bb.datasets.play_tennis(), target="play", folds=7)
    7-fold cross-validation of plain naive Bayes: 14 rows, 2 classes
      accuracy           0.5714 ± 0.1304  (random guess 0.5000, majority 0.6429)
      log loss           0.7346
      Brier score        0.2516
      macro F1           0.4750
      AUC                0.5444
      calibration error  0.2090
      class  precision  recall      F1        rows  most often mistaken for
      'no'      0.3333  0.2000  0.2500           5  'yes' (4)
      'yes'     0.6364  0.7778  0.7000           9  'no' (2)
    """
    check_seed(seed)
    # By name; below, those of an estimator replace them.
    settings: dict[str, Any] = {"how": how, "alpha": alpha, "class_prior": class_prior, "features": features}
    settings |= {"schema": schema, "missing": missing, "weigh": weigh, "calibrate": calibrate}
    if is_estimator(data):
        requirement = "omitted when an estimator is given, because the estimator has its own"
        for name, value in settings.items():
            default = signature(cross_validate).parameters[name].default
            is_default = value is default or (isinstance(value, type(default)) and value == default)
            errors.require(is_default, name, "given", requirement)
    settings |= {"weights": weights, "threads": threads, "threshold": threshold, "seed": int(seed)}
    data, target, settings = settle_settings(data, target, y, settings)
    table = open_table_with_labels(
        data,
        target,
        **{name: settings[name] for name in ("schema", "features", "weights", "threads")},
        missing=settings["missing"] or "skip",
        groups=rows_together(groups, id, deal),
        engine=engine,
        partitions=partitions,
        **reading,
    )
    seed = settings["seed"]
    recipe: Recipe
    if table.has_sets:
        refuse_for_sets(settings["features"], class_prior=settings["class_prior"], groups=groups)
        recipe = label_recipe_from(settings)
    else:
        recipe = recipe_from(settings, seed)
    rows = recipe.rows_from(open_rows(table, folds, seed, id, deal), sample)
    return validate(rows, folds, [recipe], seed=seed)[0]


def is_estimator(candidate: Any) -> bool:
    """Returns whether the candidate is an estimator. Raises an error for estimators that are not Banbury's."""
    if isinstance(candidate, type) or not (hasattr(candidate, "get_params") and hasattr(candidate, "fit")):
        return False
    if not hasattr(candidate, "_rows_and_settings"):
        requirement = "a Banbury estimator, such as bb.MultinomialNB()"
        raise errors.bad_setting("estimator", f"{type(candidate).__module__}.{type(candidate).__name__}", requirement)
    return True


def settle_settings(data: Any, target: Any, y: Any, settings: Mapping[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Returns the rows, the target and the settings for learning by name. If ``data`` is an estimator, its settings
    replace those passed, ``target`` has the rows and ``y`` the target; otherwise ``y`` must be None.
    """
    if not is_estimator(data):
        requirement = "omitted unless an estimator comes first, as in bb.cross_validate(clf, X, y)"
        errors.require(y is None, "y", "given", requirement)
        return data, target, dict(settings)
    rows, estimator_settings = data._rows_and_settings(target, y)  # ``data`` is the estimator
    if "threshold" in estimator_settings and not are_sets(y):
        y = LabelSets.of_cells([[label] for label in np.asarray(y).tolist()], None)  # one label per row
    return rows, y, {**settings, **estimator_settings}


def label_recipe_from(settings: Mapping[str, Any]) -> LabelRecipe:
    """Returns the recipe for rows with several labels that the settings of ``bb.cross_validate`` (by name) describe.
    Raises an error for an invalid one.
    """
    weigh = settings["weigh"]
    is_flag = isinstance(weigh, (bool, np.bool_))
    errors.require(is_flag, "weigh", weigh, "True or False for multi-label data")
    shared_settings = {name: settings[name] for name in ("how", "threshold", "calibrate", "seed")}
    plain = PlainLabels(**shared_settings, alpha=settings["alpha"])
    plain.check()
    return WeighedLabels(**shared_settings) if weigh else plain


def recipe_from(settings: Mapping[str, Any], seed: int) -> Recipe:
    """Returns the recipe that the settings of ``bb.cross_validate`` (by name) describe: weighed, tuned if there is
    something to choose, calibrated, or plain. ``seed`` decides its random choices. Raises an error for settings that
    contradict each other.
    """
    how = settings["how"]  # the estimator: "mle", "map", "mean", "predictive" or "gibbs"
    alpha = settings["alpha"]  # one pseudo-count, or several to choose from
    class_prior = settings["class_prior"]
    calibrate = settings["calibrate"]  # the method of calibration, or None
    weigh = settings["weigh"]  # whether to weigh evidence: False, True, or the settings of ``bb.weigh``
    chooses_families = chooses(settings["features"])
    if weigh is not False:
        check_weighs_alone(weigh, how, alpha, chooses_families)
        requirement = "omitted for weighed evidence, which already has a temperature"
        errors.require(calibrate is None, "calibrate", calibrate, requirement)
        return Weighed.of(weigh, class_prior=class_prior, seed=seed, missing=settings["missing"] or "category")
    if chooses_families or has_several(alpha):
        has_schema = settings["schema"] is not None
        return Tuned.of(
            alpha=alpha,
            how=how,
            features=settings["features"],
            class_prior=class_prior,
            seed=seed,
            calibrate=calibrate,
            has_schema=has_schema,
        )
    plain = Plain(how, alpha, class_prior, seed)
    choice_of(how, alpha, seed)  # raises an error if a setting is invalid
    return plain if calibrate is None else Calibrated(plain, calibrate)
