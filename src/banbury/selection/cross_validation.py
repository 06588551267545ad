"""Exact cross-validation: every fold's model is what all rows add up to, without the fold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.distributions.family import Choice, How, check_positive
from banbury.naive_bayes import ClassPrior, Model, check_seed
from banbury.schema import Features, Missing, Schema
from banbury.selection import leave_one_out
from banbury.selection.dataset import Dataset, chooses, held
from banbury.selection.folds import MOST_FOLDS, Round, Split, n_folds, refuse_groups, rounds
from banbury.selection.groups import Groups
from banbury.selection.results import CrossValidation
from banbury.selection.scoring import PendingWarnings, answer, normalised, score_round
from banbury.selection.streaming import Streamed, validated_stream
from banbury.selection.tuning import several, tune
from banbury.tally import Tally

INNER_FOLDS = 10


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
    seed: int = 0,
    threads: int | None = None,
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
    rows that each fold learns from, so that the choice is
    validated as well.

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
    if estimator is not None:
        given = {"how": how != "mean", "alpha": not _is(alpha, 1.0), "class_prior": class_prior is not None}
        given |= {"features": not _is(features, "auto"), "schema": schema is not None, "missing": missing != "skip"}
        for name, said in given.items():
            if said:
                raise errors.bad_setting(name, "given", "left out when an estimator is given, which has its own")
        if isinstance(estimator, type) or not hasattr(estimator, "validation"):
            given_one = f"{type(estimator).__module__}.{type(estimator).__name__}"
            raise errors.bad_setting("estimator", given_one, "one of Banbury's, such as bb.MultinomialNB()")
        data, own = estimator.validation(data, target)
        own = {"seed": seed, "threads": threads, **own}
        return cross_validate(data, target, folds=folds, groups=groups, weights=weights, **own, **reading)
    counting = {"schema": schema, "features": features, "weights": weights, "missing": missing, "threads": threads}
    rows = held(data, target, groups=groups, **counting, **reading)
    settings: dict[str, Any] = {"how": how, "alpha": alpha, "class_prior": class_prior, "seed": seed}
    tuned = chooses(features) or several(alpha)
    if isinstance(folds, str) and folds == "loo":
        if tuned:
            raise errors.bad_setting("folds", folds, "a number of folds, where settings are chosen within each")
        refuse_groups(groups)
        return _left_one_out(rows, settings)
    splits = rounds(folds, rows.labels, seed, rows.groups)
    what = f"{n_folds(splits)}-fold cross-validation"
    if tuned:
        settings |= {"features": "choose" if chooses(features) else "auto"}
        what += ", tuned within each fold"
    return _validated(rows, splits, settings, what)


def _is(given: Any, default: Any) -> bool:
    """Whether a setting is the default."""
    return given is default or (isinstance(given, type(default)) and given == default)


def _left_one_out(rows: Dataset, settings: Mapping[str, Any]) -> CrossValidation:
    """By formula where every family has one, and row by row otherwise."""
    check_positive("alpha", settings["alpha"], zero=True)
    choice = Choice(settings["how"], float(settings["alpha"]), int(settings["seed"]))
    if not leave_one_out.supported(rows, choice):
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
    tested, scores, impossible, kept = leave_one_out.left_one_out(rows, settings)
    PendingWarnings(impossible).warn(settings["how"])
    notes = (f"of all rows, not of all but one: {', '.join(kept)}",) if kept else ()
    numbers = np.arange(len(tested), dtype=np.int32)
    return _answered(rows, tested, numbers, normalised(scores), "leave-one-out cross-validation", notes)


def counted_and_validated(
    rows: Dataset, folds: Any, settings: Mapping[str, Any]
) -> tuple[Tally, CrossValidation | Streamed]:
    """The tally of all rows, and their cross-validation: one counting pass for both, of rows that are held or not."""
    splits = rounds(folds, rows.labels, int(settings["seed"]), None)
    if not rows.held:
        validation = validated_stream(rows, splits, settings)
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


def left_out(rows: Dataset, folds: Any, settings: Mapping[str, Any]) -> tuple[Tally, Real, Int]:
    """The tally of all rows, and log P(class | row) of each by models that have not seen it: one counting pass for both.

    Also the rows that were scored.
    """
    (each,) = rounds(folds, rows.labels, int(settings["seed"]), None)
    groups = Groups.of(rows, each.groups, each.n_groups)
    scores, tested = np.empty((rows.n_rows, len(rows.classes))), np.flatnonzero(each.tested_by >= 0)
    score_round(rows, each, groups, settings, "log_posterior", scores, PendingWarnings())
    return groups.total, scores if len(tested) == rows.n_rows else scores[tested], tested


def _validated(
    rows: Dataset, splits: Sequence[Round], settings: Mapping[str, Any], what: str, groups: Groups | None = None
) -> CrossValidation:
    """What models say of rows that they have not seen, round by round; ``groups``: those of the one round, if counted."""
    answers: list[tuple[Int, NDArray[np.int32], Real]] = []
    told, start = PendingWarnings(), 0
    for each in splits:
        posteriors = np.empty((rows.n_rows, len(rows.classes)))
        if "features" in settings:
            for split in each.splits:
                model = replace(_tuned(rows, split, each, settings), threads=rows.threads)
                posteriors[split.test], impossible = answer(rows, split.test, model, "posterior")
                told.impossible += impossible
        else:
            counted = groups or Groups.of(rows, each.groups, each.n_groups)
            score_round(rows, each, counted, settings, "posterior", posteriors, told)
        alone = len(splits) == 1  # in the order of rows; splits of several rounds one after the other
        tested = np.flatnonzero(each.tested_by >= 0) if alone else np.concatenate([split.test for split in each.splits])
        whole = alone and len(tested) == rows.n_rows
        answers.append((tested, each.tested_by[tested] + start, posteriors if whole else posteriors[tested]))
        start += len(each.splits)
    told.warn(settings["how"])
    tested, folds, posteriors = (np.concatenate(x) if len(x) > 1 else x[0] for x in zip(*answers, strict=True))
    return _answered(rows, tested, folds.astype(np.int32), posteriors, what)


def _answered(
    rows: Dataset, tested: Int, folds: NDArray[np.int32], posteriors: Real, what: str, notes: tuple[str, ...] = ()
) -> CrossValidation:
    weights = None if rows.weights is None else rows.weights[tested]
    if weights is not None and not weights.any():
        raise errors.tested_nothing()
    return CrossValidation(rows.classes, tested, rows.labels[tested], posteriors, weights, what, notes, folds=folds)


def _tuned(rows: Dataset, split: Split, each: Round, settings: Mapping[str, Any]) -> Model:
    """The model of the settings that are best for the rows that a split learns from, by folds of those rows."""
    inside = each.groups >= 0
    chosen = split.rows
    if chosen is None:
        assert split.learned is not None
        chosen = np.flatnonzero(inside & split.learned[np.where(inside, each.groups, 0)])
    if len(chosen) < 2:
        raise errors.bad_setting("folds", "a split that learns from one row", "two rows at least to choose settings by")
    return tune(rows.only(chosen), folds=min(INNER_FOLDS, len(chosen)), **settings).model
