"""cross_validate: every fold is scored by the model of all other rows, from one count of each fold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from banbury.rows.labelled import chooses, open_rows, open_table_with_labels, refuse_for_sets, several
from banbury.tally.label_sets import LabelSets, are_sets
from banbury.tally.schema import Features, Missing, Schema

DEFAULTS: dict[str, Any] = {"how": "mean", "alpha": 1.0, "class_prior": None, "features": "auto", "schema": None}
DEFAULTS |= {"missing": None, "weigh": False, "calibrate": None}


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
    features: Features | Literal["choose"] = "auto",
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
    """Measures how good a model is on rows it has not seen, with one pass of counting and one of scoring.

    ``folds`` is a number (stratified by class, in an order that depends on ``seed``), a fold for each row, "loo" to leave out
    one row at a time, a scikit-learn splitter (which gets ``groups``), or pairs of row numbers for training and testing. Each
    fold is counted separately and scored by the model of all rows minus the fold, which is exactly the model of the other
    rows, including vocabulary, smoothing, bins and bandwidths.

    The first argument may be a Banbury estimator, fitted or not, as in ``bb.cross_validate(clf, X, y)``: its parameters then
    replace the settings below, and the result equals scikit-learn's ``cross_val_predict``, from one count.

    ``how``, ``alpha`` and ``class_prior`` are those of ``bb.estimate``; the rest is that of ``bb.count``. With several
    ``alpha``, "auto", or ``features="choose"``, ``bb.tune`` chooses within the training rows of each fold, so that the choice
    is validated as well. ``weigh`` (True, or settings of ``bb.weigh``) weighs the evidence within the training rows of each
    fold, as ``bb.EvidenceClassifier`` does. ``calibrate`` ("temperature", "platt" or "isotonic") calibrates each fold with
    the scores of the other folds.

    ``deal="content"`` assigns rows to folds by their contents, whatever their order, and ``id`` by the value of a column,
    which is then not a feature: identical rows, or rows with the same value, are in the same fold. Rows on Dask, Spark or
    other engines (``engine`` and ``partitions`` as in ``bb.count``) are always assigned in this way, in two passes and with
    the figures of one process. There ``weigh``, ``calibrate`` and the choice of ``alpha`` use a ``sample`` of rows (100,000,
    as in ``bb.weigh``) for learning and testing; the models count all rows.

    For a target of sets of labels (see ``bb.count``) the result is a ``LabelEvaluation``: F1 over all labels and label by
    label. ``threshold`` then says how probable a label must be ("f1" chooses it on the other folds), as in
    ``bb.MultiLabelClassifier``.

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
    settings: dict[str, Any] = {"how": how, "alpha": alpha, "class_prior": class_prior, "features": features}
    settings |= {"schema": schema, "missing": missing, "weigh": weigh, "calibrate": calibrate}
    rest = {"folds": folds, "groups": groups, "weights": weights, "seed": int(seed), "threads": threads}
    rest |= {
        "threshold": threshold,
        "id": id,
        "deal": deal,
        "sample": sample,
        "engine": engine,
        "partitions": partitions,
    }
    if is_estimator(data):
        for name, value in settings.items():
            same = value is DEFAULTS[name] or (isinstance(value, type(DEFAULTS[name])) and value == DEFAULTS[name])
            errors.require(same, name, "given", "omitted when an estimator is given, because the estimator has its own")
        data, target, estimator_settings = settings_of(data, target, y)
        rest |= {name: estimator_settings[name] for name in rest.keys() & estimator_settings}
        return _judge(data, target, {**settings, **estimator_settings}, rest, reading)
    errors.require(
        y is None, "y", "given", "omitted unless an estimator comes first, as in bb.cross_validate(clf, X, y)"
    )
    return _judge(data, target, settings, rest, reading)


def is_estimator(candidate: Any) -> bool:
    """Whether it is an estimator; raises where it is none of Banbury's that can be validated by counting once."""
    if isinstance(candidate, type) or not (hasattr(candidate, "get_params") and hasattr(candidate, "fit")):
        return False
    if not hasattr(candidate, "validation"):
        requirement = "a Banbury estimator, such as bb.MultinomialNB()"
        raise errors.bad_setting("estimator", f"{type(candidate).__module__}.{type(candidate).__name__}", requirement)
    return True


def settings_of(estimator: Any, data: Any, target: Any) -> tuple[Any, Any, dict[str, Any]]:
    """The rows, the target, and the settings by which an estimator counts and estimates."""
    data, settings = estimator.validation(data, target)
    if "threshold" in settings and not are_sets(target):
        target = LabelSets.of_cells([[label] for label in np.asarray(target).tolist()], None)
    return data, target, settings


def _judge(
    data: Any, target: Any, settings: Mapping[str, Any], rest: Mapping[str, Any], reading: Mapping[str, Any]
) -> Any:
    """Builds the rows and the recipe, and validates it."""
    folds = rest["folds"]
    seed = rest["seed"]
    dealt = {name: rest[name] for name in ("id", "deal")}
    counting = {name: settings[name] for name in ("schema", "features")}
    counting |= {name: rest[name] for name in ("weights", "threads", "engine", "partitions")}
    counting |= {"missing": settings["missing"] or "skip", "groups": rows_together(rest["groups"], **dealt)}
    table = open_table_with_labels(data, target, **counting, **reading)
    recipe: Recipe
    if table.has_sets:
        refuse_for_sets(settings["features"], class_prior=settings["class_prior"], groups=rest["groups"])
        recipe = label_recipe_from(settings, rest["threshold"], seed)
    else:
        recipe = recipe_from(settings, seed)
    rows = recipe.rows_from(open_rows(table, folds, seed, **dealt), rest["sample"])
    return validate(rows, folds, [recipe], seed=seed)[0]


def label_recipe_from(settings: Mapping[str, Any], threshold: Any, seed: int) -> LabelRecipe:
    """The same of rows with sets of labels."""
    weigh = settings["weigh"]
    flag = isinstance(weigh, (bool, np.bool_))
    errors.require(flag, "weigh", weigh, "True or False for multi-label data")
    common = settings["how"], threshold, settings["calibrate"], seed
    plain = PlainLabels(*common, alpha=settings["alpha"])
    plain.check()
    return WeighedLabels(*common) if weigh else plain


def recipe_from(settings: Mapping[str, Any], seed: int) -> Recipe:
    """The recipe that the settings of ``bb.cross_validate`` ask for."""
    how, alpha, prior, calibrate = (settings[name] for name in ("how", "alpha", "class_prior", "calibrate"))
    weigh = settings["weigh"]
    chosen = chooses(settings["features"])
    if weigh is not False:
        check_weighs_alone(weigh, how, alpha, chosen)
        requirement = "omitted for weighed evidence, which already has a temperature"
        errors.require(calibrate is None, "calibrate", calibrate, requirement)
        return Weighed.of(weigh, class_prior=prior, seed=seed, missing=settings["missing"] or "category")
    if chosen or several(alpha):
        has_schema = settings["schema"] is not None
        return Tuned.of(alpha, how, None, settings["features"], prior, seed, calibrate, has_schema=has_schema)
    plain = Plain(how, alpha, prior, seed)
    choice_of(how, alpha, seed)
    return plain if calibrate is None else Calibrated(plain, calibrate)
