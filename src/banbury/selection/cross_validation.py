"""Exact cross-validation: every fold's model is what all rows add up to, without the fold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.calibration import METHODS, Calibration, Method, calibrate
from banbury.distributions.family import Choice, HeldOutRows, How, check_positive
from banbury.label_sets import LabelSets, are_sets
from banbury.labels import cross_validate as validate_labels
from banbury.naive_bayes import ClassPrior, Model, check_seed, estimate
from banbury.partitioned import elsewhere, refuse_elsewhere
from banbury.readers import Batch
from banbury.schema import Features, Missing, Schema
from banbury.selection.dataset import Dataset, chooses, has_sets, held, peeked, several, streamed
from banbury.selection.folds import MOST_FOLDS, Deal, Dealing, Round, learned_from, n_folds, refuse_groups, rounds
from banbury.selection.groups import Groups
from banbury.selection.results import CrossValidation, Outcomes, Streamed
from banbury.selection.scoring import PendingWarnings, answer, model_maker, normalised, score_batch, score_round
from banbury.selection.tuning import tune
from banbury.selection.weighing import AS_WEIGHED, check_weighing, weighed, weighed_rows
from banbury.sums import weighed as weighed_numbers
from banbury.table import Table
from banbury.tally import Tally, sums_of_rows

INNER_FOLDS = 10
FAR = 131_072.0  # nats from every class: sums of such numbers are rounded by more than 1e-11
OUTWEIGHS = 1024.0  # times all others of its class: without such a row, which has no equal there, sums lose digits
SETTLED = 750.0  # nats between two classes: the smallest double is e^-745, so the lesser one has probability 0
MOST_MODELS = 100  # of folds that are not held: all are in memory at once


def cross_validate(
    data: Any,
    target: Any = None,
    *,
    folds: Any = 10,
    groups: Any = None,
    estimator: Any = None,
    how: How = "mean",
    alpha: float | Iterable[float] | Literal["auto"] = 1.0,
    class_prior: ClassPrior = None,
    features: Features | Literal["choose"] = "auto",
    schema: Schema | None = None,
    weights: Any = None,
    missing: Missing = "skip",
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
) -> CrossValidation:
    """How good the model is on rows it has not seen, for the price of one count and one scoring.

    ``folds``: a number (the rows of each class are dealt out in turn, in an order that ``seed`` settles), a fold for each row,
    "loo" to leave out one row at a time, a scikit-learn splitter (``groups`` are given to it), or pairs of row numbers to learn
    from and to test. The rows of each fold are counted apart, and a fold is scored by the model of all rows minus its own,
    which is exactly the model of the others: vocabulary, smoothing, bins and bandwidths too.

    ``estimator``: a classifier of Banbury, fitted or not, whose parameters then say all that follows; the answer is that of
    scikit-learn's ``cross_val_predict``, from one count. ``how``, ``alpha`` and ``class_prior`` are those of ``bb.estimate``; the
    rest is that of ``bb.count``. With several ``alpha``, "auto", or ``features="choose"``, ``bb.tune`` chooses anew within the
    rows that each fold learns from, so that the choice is validated as well. ``weigh``: the evidence is weighed anew within the
    rows that each fold learns from, as ``bb.EvidenceClassifier`` does; settings of ``bb.weigh``, or True.
    ``calibrate``: "temperature", "platt" or "isotonic" makes posteriors honest within the rows that each fold learns from.

    ``deal="content"`` deals rows to folds by what they hold, whatever their order, and ``id`` by the value of a column, which is
    then no feature: rows that are alike, or share the value, are in one fold. So a Dask dataframe (see ``bb.count``, which says
    what ``engine`` and ``partitions`` are) is always dealt: in two passes over its partitions, with the figures of one process.
    There ``weigh``, ``calibrate`` and an ``alpha`` to choose are learned from a ``sample`` of rows, as in ``bb.weigh`` (100,000),
    and tested on it; the models count all rows.

    A target of sets of labels (see ``bb.count``) is answered by a ``bb.LabelEvaluation``: F1 over all labels and label by label.
    ``threshold`` then says how probable a label must be ("f1": chosen on the rows of other folds), as in
    ``bb.MultiLabelClassifier``.

    >>> import banbury as bb
    >>> bb.cross_validate(bb.datasets.play_tennis(), target="play", folds=7)
    7-fold cross-validation: 14 rows, 2 classes
      accuracy           0.5714 ± 0.1304  (random guess 0.5000, majority 0.6429)
      log loss           0.7346
      Brier score        0.2516
      macro F1           0.4750
      AUC                0.5444
      calibration error  0.2090
      class  precision  recall      F1        rows  most often taken for
      'no'      0.3333  0.2000  0.2500           5  'yes' (4)
      'yes'     0.6364  0.7778  0.7000           9  'no' (2)
    """
    check_seed(seed)
    settings: dict[str, Any] = {"how": how, "alpha": alpha, "class_prior": class_prior, "seed": int(seed)}
    counting = {"schema": schema, "features": features, "weights": weights, "missing": missing, "threads": threads}
    of_labels: dict[str, Any] = {"how": how, "alpha": alpha, "threshold": threshold, "seed": seed}
    of_labels["calibrate"] = calibrate
    if (work := elsewhere(data, engine, partitions)) is not None:
        refuse_elsewhere(estimator=estimator, groups=groups, features=features if chooses(features) else None)
        if work.has_sets(target, **counting, **reading):
            refuse_elsewhere(class_prior=class_prior, id=id, weigh=weigh or None)
            return validate_labels(work.held_sets(target, sample, **counting, **reading), folds, **of_labels)  # type: ignore[return-value]
        dealing = Dealing.of(folds, int(seed), id)
        if weigh is not False or calibrate is not None or several(alpha):
            counting |= {} if weigh is False else AS_WEIGHED
            rows = work.held(target, dealing, sample, **counting, **reading)
            return cross_validate(rows, folds=rows.dealt, weigh=weigh, calibrate=calibrate, **settings)
        errors.require(sample is None, "sample", sample, "left out where all rows are validated")
        return work.validated(target, dealing, [settings], **counting, **reading)[0]  # type: ignore[no-any-return]
    errors.require(sample is None, "sample", sample, "left out where rows are here")
    if (dealt := Dealing.asked(folds, int(seed), id, deal)) is not None:
        for name, value in {"estimator": estimator, "groups": groups}.items():
            errors.require(value is None, name, value, "left out where rows are dealt by id= or by content")
        groups = id
    if estimator is not None:
        given = {"how": how != "mean", "alpha": not _is(alpha, 1.0), "class_prior": class_prior is not None}
        given |= {"features": not _is(features, "auto"), "schema": schema is not None, "missing": missing != "skip"}
        for name, said in given.items():
            errors.require(not said, name, "given", "left out when an estimator is given, which has its own")
        ours = not isinstance(estimator, type) and hasattr(estimator, "validation")
        given_one = f"{type(estimator).__module__}.{type(estimator).__name__}"
        errors.require(ours, "estimator", given_one, "one of Banbury's, such as bb.MultinomialNB()")
        data, own = estimator.validation(data, target)
        own = {"seed": seed, "threads": threads, **own}
        if "threshold" in own and not are_sets(target):
            target = LabelSets.of_cells([[label] for label in np.asarray(target).tolist()], None)
        return cross_validate(data, target, folds=folds, groups=groups, weights=weights, **own, **reading)
    data = peeked(data, schema, reading)
    if has_sets(data, target, reading):
        for name, value in {"class_prior": class_prior, "groups": groups}.items():
            errors.require(value is None, name, value, "left out where rows have sets of labels")
        flag = isinstance(weigh, (bool, np.bool_))
        errors.require(flag, "weigh", weigh, "True or False where rows have sets of labels")
        return validate_labels(Table.of(data, target, **counting, **reading), folds, weigh=bool(weigh), **of_labels)  # type: ignore[return-value]
    if weigh is not False:
        check_weighing(weigh, how, alpha, features)
        wanted = "left out where evidence is weighed, which has a temperature"
        errors.require(calibrate is None, "calibrate", calibrate, wanted)
        wanted = "a number of folds where evidence is weighed within each"
        errors.require(not isinstance(folds, str), "folds", folds, wanted)
        rows = weighed_rows(data, target, dealt, groups=groups, **counting, **reading)
        folds = folds if rows.dealt is None else rows.dealt
        return weighed_and_validated(rows, folds, seed=seed, class_prior=class_prior, weigh=weigh)[0]
    rows = held(data, target, dealt, groups=groups, **counting, **reading)
    folds = folds if rows.dealt is None else rows.dealt
    if calibrate is not None and calibrate not in tuple(METHODS):
        raise errors.unknown_choice("calibrate", calibrate, METHODS)
    tuned = chooses(features) or several(alpha) or calibrate is not None
    if isinstance(folds, str) and folds == "loo":
        wanted = "a number of folds, where settings are chosen or calibrated within each"
        errors.require(not tuned, "folds", folds, wanted)
        refuse_groups(groups)
        return _left_one_out(rows, settings)
    splits = rounds(folds, rows.labels, seed, rows.groups, rows.others is not None)
    what = f"{n_folds(splits)}-fold cross-validation"
    if tuned:
        settings |= {"features": "choose" if chooses(features) else "auto", "calibrate": calibrate}
        done = ["tuned"] * (chooses(features) or several(alpha)) + ["calibrated"] * (calibrate is not None)
        what += f", {' and '.join(done)} within each fold"
    return _validated(rows, splits, settings, what)


def _is(given: Any, default: Any) -> bool:
    """Whether a setting is the default."""
    return given is default or (isinstance(given, type(default)) and given == default)


def _left_one_out(rows: Dataset, settings: Mapping[str, Any]) -> CrossValidation:
    """By formula where every family has one, and row by row otherwise."""
    if not can_leave_one_out(rows, settings):
        n_rows = int(np.count_nonzero(rows.labels >= 0))
        if not 2 <= n_rows <= MOST_FOLDS:
            text = f"folds='loo' has no formula for these settings, and there are {n_rows:,} rows; row by row it can be done for "
            raise errors.BadSetting(f"{text}two to {MOST_FOLDS:,} of them. Give a number of folds, or how='mean'.")
        each = np.full(rows.n_rows, -1, dtype=np.int64)
        each[rows.labels >= 0] = np.arange(n_rows)
        splits = rounds(each, rows.labels, 0, None)
        return _validated(rows, splits, settings, "leave-one-out cross-validation")
    counted = rows.labels >= 0 if rows.weights is None else (rows.labels >= 0) & (rows.weights > 0)
    if np.count_nonzero(counted) < 2:
        raise errors.bad_setting("folds", "loo", "a way to leave out some of two rows at least; there is one")
    found = without_each(rows, settings)
    PendingWarnings(found.impossible).warn(settings["how"])
    notes = (f"of all rows, not of all but one: {', '.join(found.kept)}",) if found.kept else ()
    numbers = np.arange(len(found.tested), dtype=np.int32)
    posteriors, what = normalised(found.scores), "leave-one-out cross-validation"
    return _answered(rows, found.tested, numbers, posteriors, what, notes)


def leave_one_out(model: Model, data: Any, target: Any = None, **counting: Any) -> CrossValidation:
    """What a model says of rows that it has counted, perhaps among others, each as if it had not: exactly, in one pass.

    Evidence is as it was counted, though the model may weigh it; a calibration stays that of all rows.
    """
    rows = held(data, target, schema=model.schema, **counting)
    plain = replace(model.weighed(None), threads=rows.threads)
    for label in rows.classes:
        if label not in plain.classes:
            raise errors.unknown_class(label, plain.classes)
    choice = {"how": plain.choice.how, "alpha": plain.choice.alpha, "seed": plain.choice.seed}
    if not can_leave_one_out(rows, choice):
        raise errors.bad_setting("the model", plain.choice.how, "of families that can leave one row out by a formula")
    place = np.array([plain.classes.index(label) for label in rows.classes], dtype=np.int32)
    tested = np.flatnonzero(rows.labels >= 0)
    truth = place[rows.labels[tested]]
    weights = None if rows.weights is None else rows.weights[tested]
    scores, _ = _each_left_out(plain, rows, tested, truth.astype(np.int64), weights)
    posteriors = normalised(scores)
    if model.calibration is not None and model.weighing is None:
        with np.errstate(divide="ignore"):
            posteriors = model.calibration.apply(np.log(posteriors))
    what, folds = "leave-one-out cross-validation", np.arange(len(tested), dtype=np.int32)
    return CrossValidation(plain.classes, tested, truth, posteriors, weights, what, (), folds=folds)


def counted_and_validated(
    rows: Dataset, folds: Any, settings: Mapping[str, Any]
) -> tuple[Tally, CrossValidation | Streamed]:
    """The tally of all rows, and their cross-validation: one counting pass for both, of rows that are held or not."""
    splits = rounds(folds, rows.labels, int(settings["seed"]), None)
    if not rows.held:
        validation = _validated_stream(rows, splits, settings)
        return validation.tally, validation
    groups = Groups.of(rows, splits[0].groups, splits[0].n_groups)
    found = _validated(rows, splits, settings, f"{n_folds(splits)}-fold cross-validation", groups)
    return replace(groups.total, skipped=rows.skipped), found


def scored_and_validated(rows: Dataset, folds: Any, settings: Mapping[str, Any]) -> tuple[Tally, Real, CrossValidation]:
    """The tally of all rows, and their cross-validation with its log posteriors: one counting pass for all of it."""
    tally, scores, tested = left_out(rows, folds, settings)
    (each,) = rounds(folds, rows.labels, int(settings["seed"]), None)
    what = f"{len(each.splits)}-fold cross-validation"
    validation = _answered(rows, tested, each.groups[tested], normalised(scores), what)
    return replace(tally, skipped=rows.skipped), scores, validation


def calibrated_within(
    validation: CrossValidation, scores: Real, method: Method
) -> tuple[CrossValidation, list[Calibration]]:
    """The validation after calibration, and the calibration of each fold, learned from what was said of rows of other folds.

    ``scores`` are its log posteriors. Of more than ten folds some share a calibration, which knows the rows of none of them.
    """
    parts = validation.folds % INNER_FOLDS
    posteriors, found = np.empty_like(validation.posteriors), dict[int, Calibration]()
    for part in np.unique(parts).tolist():
        own = parts == part
        weights = None if validation.weights is None else validation.weights[~own]
        found[part] = calibrate(method, scores[~own], validation.truth[~own], weights)
        posteriors[own] = found[part].apply(scores[own])
    each = [found[fold % INNER_FOLDS] for fold in range(int(validation.folds.max()) + 1)]
    return replace(validation, posteriors=posteriors, what=f"{validation.what}, calibrated within each fold"), each


def left_out(rows: Dataset, folds: Any, settings: Mapping[str, Any]) -> tuple[Tally, Real, Int]:
    """The tally of all rows, and log P(class | row) of each by models that have not seen it: one counting pass for both.

    Also the rows that were scored.
    """
    (each,) = rounds(folds, rows.labels, int(settings["seed"]), None)
    groups = Groups.of(rows, each.groups, each.n_groups)
    scores, tested = np.empty((rows.n_rows, len(rows.classes))), np.flatnonzero(each.tested_by >= 0)
    score_round(rows, each, groups, settings, "log_posterior", scores, PendingWarnings())
    return groups.total, scores if len(tested) == rows.n_rows else scores[tested], tested


def weighed_and_validated(rows: Dataset, folds: Any, **settings: Any) -> tuple[CrossValidation, list[Model]]:
    """The cross-validation of models that are weighed anew for each fold, and these models."""
    models, others = list[Model](), rows.others is not None
    splits = rounds(folds, rows.labels, int(settings["seed"]), rows.groups, others)
    what = f"{n_folds(splits)}-fold cross-validation, weighed within each fold"
    return _validated(rows, splits, {"how": "mean", **settings}, what, models=models), models


def _validated(
    rows: Dataset,
    splits: Sequence[Round],
    settings: Mapping[str, Any],
    what: str,
    groups: Groups | None = None,
    models: list[Model] | None = None,
) -> CrossValidation:
    """What models say of rows that they have not seen, round by round; ``groups``: those of the one round, if counted.

    Models that are made of each split's rows anew are added to ``models``, if given.
    """
    answers: list[tuple[Int, NDArray[np.int32], Real]] = []
    told, start = PendingWarnings(), 0
    for each in splits:
        posteriors = np.empty((rows.n_rows, len(rows.classes)))
        if "features" in settings or "weigh" in settings:
            for split in each.splits:
                chosen = rows.only(learned_from(split, each))
                model, calibration = _made(chosen, settings)
                model = replace(model, threads=rows.threads)
                if models is not None:
                    models.append(model)
                want = "posterior" if calibration is None else "log_posterior"
                found, impossible = answer(rows, split.test, model, want)
                posteriors[split.test] = found if calibration is None else calibration.apply(found)
                told.impossible += impossible
        else:
            counted = groups or Groups.of(rows, each.groups, each.n_groups)
            score_round(rows, each, counted, settings, "posterior", posteriors, told)
        alone = len(splits) == 1  # in the order of rows; splits of several rounds one after the other
        if alone and int(each.tested_by.min(initial=0)) >= 0:
            answers.append((np.arange(rows.n_rows), each.tested_by, posteriors))
            continue
        tested = np.flatnonzero(each.tested_by >= 0) if alone else np.concatenate([split.test for split in each.splits])
        answers.append((tested, each.tested_by[tested] + start, posteriors[tested]))
        start += len(each.splits)
    told.warn(settings["how"])
    tested, folds, posteriors = (np.concatenate(x) if len(x) > 1 else x[0] for x in zip(*answers, strict=True))
    return _answered(rows, tested, folds.astype(np.int32, copy=False), posteriors, what)


def _answered(
    rows: Dataset, tested: Int, folds: NDArray[np.int32], posteriors: Real, what: str, notes: tuple[str, ...] = ()
) -> CrossValidation:
    weights = None if rows.weights is None else rows.weights[tested]
    if weights is not None and not weights.any():
        raise errors.tested_nothing()
    if rows.others is not None:
        n_others = errors.many(rows.others.n_rows, "other row")
        notes = (*notes, f"tested on a sample; models learn from {n_others} as well")
    return CrossValidation(rows.classes, tested, rows.labels[tested], posteriors, weights, what, notes, folds=folds)


def _made(rows: Dataset, settings: Mapping[str, Any]) -> tuple[Model, Calibration | None]:
    """The weighed model of these rows; or that of the settings that are best for them, by folds of them, and its calibration."""
    if "weigh" in settings:
        return weighed(rows, **{name: value for name, value in settings.items() if name != "how"}), None
    found = tune(replace(rows, groups=None), folds=min(INNER_FOLDS, rows.n_rows), **settings)
    return found.uncalibrated, found.calibration


# Leave-one-out: every row scored by what all others add up to, in one pass --------------------------------------------


class WithoutEach(NamedTuple):
    """What is said of labelled rows, each without itself, and the model of all of them.

    ``scores`` are log P(class, row), (rows, classes), but for a constant of each row. Where every class is impossible they are
    the log prior; ``impossible`` is how many such rows there are. ``kept`` is what stays that of all rows.
    """

    model: Model
    tested: Int
    scores: Real
    impossible: int
    kept: list[str]


def can_leave_one_out(rows: Dataset, settings: Mapping[str, Any]) -> bool:
    """Whether every family has a formula for what it says of a row that is left out."""
    check_positive("alpha", settings["alpha"], zero=True)
    choice = Choice(settings["how"], float(settings["alpha"]), int(settings["seed"]))
    kinds = {(f.family, bool(f.columns)): f for f in rows.schema.features}
    return all(f.family.can_leave_one_out((f,), choice, rows.weights is not None) for f in kinds.values())


def without_each(rows: Dataset, settings: Mapping[str, Any]) -> WithoutEach:
    """Every labelled row scored by what all others add up to."""
    groups = np.where(rows.labels >= 0, 0, -1).astype(np.int32)
    total = Groups.of(rows, groups, 1).total
    model = estimate(total, **settings)
    tested = np.flatnonzero(rows.labels >= 0)
    place = np.array([total.classes.index(c) if c in total.classes else -1 for c in rows.classes], dtype=np.int64)
    labels = place[rows.labels[tested]]
    weights = None if rows.weights is None else rows.weights[tested]
    every, impossible = _each_left_out(model, rows, tested, labels, weights)
    if total.classes != rows.classes:
        wide = np.full((len(tested), len(rows.classes)), -np.inf)
        wide[:, [c for c, at in enumerate(place.tolist()) if at >= 0]] = every
        every = wide
    notes = [note for family, _, _ in total.groups for note in family.leave_one_out_notes()]
    return WithoutEach(model, tested, every, impossible, list(dict.fromkeys(notes)))


def _each_left_out(model: Model, rows: Dataset, tested: Int, labels: Int, weights: Real | None) -> tuple[Real, int]:
    """Scores of these rows, each without itself, and how many are impossible in every class."""
    joints, start, impossible = [], 0, 0
    for batch in rows.take(tested):
        part = slice(start, start + batch.n_rows)
        scores, lost = _of_batch(model, batch, labels[part], None if weights is None else weights[part], rows.threads)
        joints.append(scores)
        impossible += lost
        start = part.stop
    return joints[0] if len(joints) == 1 else np.concatenate(joints), impossible


def _of_batch(model: Model, batch: Batch, labels: Int, weights: Real | None, threads: int) -> tuple[Real, int]:
    if weights is not None and not weights.all():  # a row of no weight was not counted, and nothing is to be left out
        result = np.empty((batch.n_rows, len(model.classes)))
        idle, counted = np.flatnonzero(weights == 0), np.flatnonzero(weights > 0)
        result[idle], lost = model._kernel(batch.take(idle), model.parameters, "log_posterior")
        if len(counted):
            part = batch.take(counted)
            result[counted], more = _of_batch(model, part, labels[counted], weights[counted], threads)
            lost += more
        return result, lost
    held_out = _held_out(model, batch, labels, weights, threads)
    prior, outweighs = _log_prior_without(model, held_out)
    result = prior.copy()
    for family, features, sums in model.tally.groups:
        result += family.leave_one_out(features, sums, model.choice, held_out)
    lost = 0
    imprecise = np.flatnonzero(outweighs | _are_swallowed(result, len(model.schema.features)))
    if len(imprecise):
        own = None if weights is None else weights[imprecise]
        some = _held_out(model, batch.take(imprecise), labels[imprecise], own, threads)
        result[imprecise], lost = _refitted(model, some, prior[imprecise])
    if not np.isneginf(result.min(initial=0.0)):
        return result, lost
    hopeless = np.asarray(np.isneginf(result).all(axis=1))
    return np.where(hopeless[:, None], prior, result), lost + int(hopeless.sum())


def _held_out(model: Model, batch: Batch, labels: Int, weights: Real | None, threads: int) -> HeldOutRows:
    own_sums = partial(sums_of_rows, model.schema, batch, weights, threads)
    return HeldOutRows(batch, labels, weights, len(model.classes), threads, own_sums)


def _are_swallowed(scores: Real, n_features: int) -> NDArray[np.bool_]:
    """Which rows are so far from every class that the rounding of their sums may decide between the two best."""
    best = scores.max(axis=1)
    far = np.asarray((np.abs(best) > FAR) & np.isfinite(best))
    if far.any():
        runner_up = np.partition(scores[far], -2, axis=1)[:, -2] if scores.shape[1] > 1 else -np.inf
        rounding = np.abs(best[far]) * (n_features + 2) * 2.0**-50
        far[far] = best[far] - runner_up <= SETTLED + rounding
    return far


def _refitted(model: Model, held_out: HeldOutRows, prior: Real) -> tuple[Real, int]:
    """log P(class | row), every row by a model without it, whose kernel adds exactly; and how many rows are impossible."""
    scores, impossible = np.empty_like(prior), 0
    groups = [
        family.estimates_without_each(features, sums, model.choice, held_out)
        for family, features, sums in model.tally.groups
    ]
    for row, parameters in enumerate(zip(*groups, strict=True)):
        rows = held_out.rows.take(np.array([row]))
        parts = [part for group in parameters for part in group.parts(rows)]
        scores[row], lost = _core.score(1, prior[row], parts, "log_posterior", held_out.threads)
        impossible += lost
    return scores, impossible


def _log_prior_without(model: Model, held_out: HeldOutRows) -> tuple[Real, NDArray[np.bool_]]:
    """The class prior without each row, −inf where its class has no other; and whether the row outweighs the others by far."""
    rows, labels, at = model.tally.rows.value, held_out.labels, np.arange(len(held_out.labels))
    if held_out.weights is None:  # then rows of a class are alike
        each = np.arange(len(rows))
        others = model.tally.rows - _core.count_classes(each.astype(np.int32), len(rows), None, 1)
    else:
        each = labels
        alone, parts = weighed_numbers(at.astype(np.int32), held_out.weights)
        others = model.tally.rows.take(labels, 0) - _core.count_classes(alone, len(at), parts, 1)
    gone, own, every = others.is_zero() | others.is_negative(), model.log_prior[each], model.log_prior
    prior = model.class_prior
    if prior is None or (isinstance(prior, (int, float)) and not isinstance(prior, bool)):
        alpha = float(prior or 0.0)
        with np.errstate(divide="ignore"):
            every, own = np.log(rows + alpha), np.log(np.where(gone, 0.0, others.value) + alpha)
    own = np.where(gone, -np.inf, own)
    result = np.broadcast_to(every, (len(at), len(rows))).copy()
    result[at, labels] = own[labels] if held_out.weights is None else own
    if held_out.weights is None:
        return result, np.zeros(len(at), dtype=np.bool_)
    return result, ~gone & (others.value * OUTWEIGHS < held_out.weights)


# Rows that are not held -----------------------------------------------------------------------------------------------


def cross_validate_stream(
    data: Any,
    target: Any = None,
    *,
    folds: Any = 10,
    groups: Any = None,
    how: How = "mean",
    alpha: float = 1.0,
    class_prior: ClassPrior = None,
    seed: int = 0,
    **counting: Any,
) -> Streamed:
    """Exact cross-validation of a file that does not fit in memory: a batch at a time is held.

    It is read three times: for the classes of the rows, which are dealt out to the folds as ``bb.cross_validate`` deals them;
    to count the folds apart; and to score each by the model of all rows minus its own. The settings are those of
    ``bb.cross_validate``, and so is every figure.

    >>> import banbury as bb
    >>> print(cross_validate_stream(bb.datasets.play_tennis(), target="play", folds=7))
    7-fold cross-validation in three passes: 14 rows, 2 classes
      accuracy           0.5714 ± 0.1304  (random guess 0.5000, majority 0.6429)
      log loss           0.7346
      Brier score        0.2516
      macro F1           0.4750
      calibration error  0.2090
      class  precision  recall      F1        rows  most often taken for
      'no'      0.3333  0.2000  0.2500           5  'yes' (4)
      'yes'     0.6364  0.7778  0.7000           9  'no' (2)
    """
    check_seed(seed)
    rows = streamed(data, target, groups=groups, **counting)
    settings: dict[str, Any] = {"how": how, "alpha": alpha, "class_prior": class_prior, "seed": seed}
    return _validated_stream(rows, rounds(folds, rows.labels, int(seed), rows.groups), settings)


def _validated_stream(rows: Dataset, splits: Sequence[Round], settings: Mapping[str, Any]) -> Streamed:
    """How answers to rows come out that models have not seen, round by round: two passes for each."""
    n_splits = sum(len(each.splits) for each in splits)
    errors.require(n_splits <= MOST_MODELS, "folds", n_splits, f"{MOST_MODELS} at most where rows are not held")
    told, start, tallies, outcomes = PendingWarnings(), 0, list[Tally](), list[Outcomes]()
    for each in splits:
        groups = Groups.of(rows, each.groups, each.n_groups)
        tallies = tallies or [replace(groups.total, skipped=rows.skipped)]
        models = [*map(model_maker(rows, each, groups, settings, told), range(len(each.splits)))]
        for batch, first in zip(rows.each("scoring"), rows.starts.tolist(), strict=False):
            at, which = slice(first, first + batch.n_rows), each.tested_by[first : first + batch.n_rows]
            tested, posteriors = which >= 0, np.empty((batch.n_rows, len(rows.classes)))
            told.impossible += score_batch(rows, models, batch, which, "posterior", posteriors)
            weights = None if rows.weights is None else rows.weights[at][tested]
            folds = which[tested] + np.int32(start)
            part = Outcomes.of(posteriors[tested], rows.labels[at][tested], folds, n_splits, weights)
            outcomes = [outcomes[0] + part if outcomes else part]
        start += len(each.splits)
    told.warn(settings["how"])
    if not outcomes[0].weight > 0:
        raise errors.tested_nothing()
    passes = "three" if len(splits) == 1 else f"{1 + 2 * len(splits):,}"
    what = f"{n_folds(splits)}-fold cross-validation in {passes} passes"
    return Streamed(tallies[0], rows.classes, outcomes[0], rows.weights is not None, what)
