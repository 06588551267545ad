"""Leave-one-out: each row is scored by the model of all other rows, in one pass, if the families have a closed formula."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.family import Choice, Features, HeldOutRows, estimates_without_each
from banbury.model.naive_bayes import Model
from banbury.reading import Batch
from banbury.rows.labelled import MemoryRows
from banbury.sums import kernel_weights
from banbury.tally.tally import sums_of_rows

FAR = 131_072.0  # nats; sums of scores so far from 0 are rounded by more than 1e-11
OUTWEIGHS = 1024.0  # how many times the rest of its class a row may weigh: without a heavier row, sums lose digits
DECISIVE_LEAD = 750.0  # nats between two classes: the smallest double is e^-745, so the lesser one has probability 0


class WithoutEach(NamedTuple):
    """The scores of labelled rows, each from a model without that row.

    ``scores`` are log P(class, row) (rows × classes), up to a constant for each row. If every class is impossible they
    are the log prior; ``n_impossible`` is the number of such rows. ``learned_from_all`` lists, in words, what is still
    learned from all rows.
    """

    row_numbers: Int  # of the labelled rows, ascending
    scores: Real
    n_impossible: int
    learned_from_all: list[str]

    @property
    def notes(self) -> tuple[str, ...]:
        """A note for users that names what the models still learned from the rows left out; empty if nothing."""
        note = f"learned from all rows, the one left out included: {', '.join(self.learned_from_all)}"
        return (note,) * bool(self.learned_from_all)


def can_leave_one_out(rows: MemoryRows, choice: Choice) -> bool:
    """Returns whether every family has a closed formula for leaving one row out. ``choice`` says how parameters are
    estimated.
    """
    # One feature for each family, and another for its blocks.
    one_feature_per_family = {(feature.family, bool(feature.columns)): feature for feature in rows.schema.features}
    return all(
        feature.family.can_leave_one_out(Features.of([feature]), choice, rows.weights is not None)
        for feature in one_feature_per_family.values()
    )


def leave_each_out(rows: MemoryRows, model: Model) -> WithoutEach:
    """Scores every labelled row with the model of all other rows; ``model`` is that of all rows. The scores have a
    column for each class of ``rows``, which may have more than the model. Raises an error for a single row.
    """
    if np.count_nonzero(rows.counts) < 2:  # rows with a label and a weight
        raise errors.bad_setting("folds", "loo", "used with at least two rows; there is one")
    tally = model.tally
    tested_rows = np.flatnonzero(rows.labels >= 0)
    # Of each class: its number among those of the tally, −1 if it is not one of them.
    number_in_tally = np.array(
        [tally.classes.index(name) if name in tally.classes else -1 for name in rows.classes], dtype=np.int64
    )
    class_numbers = number_in_tally[rows.labels[tested_rows]]  # in the tally, of each tested row
    weights = None if rows.weights is None else rows.weights[tested_rows]
    scores, n_impossible = _score_batches(model, rows, tested_rows, class_numbers, weights)
    if tally.classes != rows.classes:
        all_scores = np.full((len(tested_rows), len(rows.classes)), -np.inf)
        all_scores[:, np.flatnonzero(number_in_tally >= 0)] = scores
        scores = all_scores
    notes = [note for family, _, _ in tally.groups for note in family.leave_one_out_notes()]
    return WithoutEach(tested_rows, scores, n_impossible, list(dict.fromkeys(notes)))


def _score_batches(
    model: Model, rows: MemoryRows, tested_rows: Int, labels: Int, weights: Real | None
) -> tuple[Real, int]:
    """Returns log P(class, row) (tested rows × the model's classes) of the rows with these numbers, each from a model
    without it, and how many are impossible in every class. ``labels`` (the model's class numbers) and ``weights`` are
    of the tested rows.
    """
    scores = np.empty((len(tested_rows), len(model.classes)))
    start = 0  # the position of the next batch among the tested rows
    n_impossible = 0
    for batch in rows.take(tested_rows):
        batch_rows = slice(start, start + batch.n_rows)
        batch_weights = None if weights is None else weights[batch_rows]
        scores[batch_rows], n_batch_impossible = _score_batch(
            model, batch, labels[batch_rows], batch_weights, rows.threads
        )
        n_impossible += n_batch_impossible
        start = batch_rows.stop
    return scores, n_impossible


def _score_batch(model: Model, batch: Batch, labels: Int, weights: Real | None, threads: int) -> tuple[Real, int]:
    """Returns log P(class, row) of a batch (rows × classes), each row from ``model`` without it, and how many rows are
    impossible in every class. ``labels`` has the class number of each row, and ``weights`` its weight, or None if all
    are 1. Rows whose scores would be imprecise are scored again by models that are estimated without them. ``threads``
    compute the scores.
    """
    if weights is not None and not weights.all():  # rows of weight 0 were not counted, so nothing is left out for them
        log_joints = np.empty((batch.n_rows, len(model.classes)))
        weightless = np.flatnonzero(weights == 0)  # rows of the batch
        weighted = np.flatnonzero(weights > 0)
        log_joints[weightless], n_impossible = model._score_features(
            batch.take(weightless), model.parameters, "log_posterior"
        )
        if len(weighted):
            weighted_batch = batch.take(weighted)
            log_joints[weighted], n_more_impossible = _score_batch(
                model, weighted_batch, labels[weighted], weights[weighted], threads
            )
            n_impossible += n_more_impossible
        return log_joints, n_impossible
    held_out = _pack_held_out_rows(model, batch, labels, weights, threads)
    # Without each row: the log prior (rows × classes), and whether the row outweighs the rest of its class by far.
    log_prior, outweighs_class = _log_prior_without(model, held_out)
    log_joints = log_prior.copy()
    for family, features, sums in model.tally.groups:
        # Adds log P(value | class) of these features.
        log_joints += family.leave_one_out(features, sums, model.choice, held_out)
    n_impossible = 0
    imprecise = np.flatnonzero(  # rows of the batch
        outweighs_class | _lose_precision(log_joints, len(model.schema.features))
    )
    if len(imprecise):
        imprecise_weights = None if weights is None else weights[imprecise]
        imprecise_rows = _pack_held_out_rows(
            model, batch.take(imprecise), labels[imprecise], imprecise_weights, threads
        )
        log_joints[imprecise], n_impossible = _refit_without_each(model, imprecise_rows, log_prior[imprecise])
    if not np.isneginf(log_joints.min(initial=0.0)):
        return log_joints, n_impossible
    is_impossible = np.asarray(np.isneginf(log_joints).all(axis=1))  # whether each row is, in every class
    return np.where(is_impossible[:, None], log_prior, log_joints), n_impossible + int(is_impossible.sum())


def _pack_held_out_rows(model: Model, batch: Batch, labels: Int, weights: Real | None, threads: int) -> HeldOutRows:
    """Returns a batch with what families need to leave out each of its rows, which ``model`` has counted. ``labels``
    has the class number of each row, and ``weights`` its weight, or None if all are 1. ``threads`` count and score
    them.
    """
    sums_of_each_row = partial(sums_of_rows, model.schema, batch, weights, threads)
    return HeldOutRows(batch, labels, weights, len(model.classes), threads, sums_of_each_row)


def _lose_precision(scores: Real, n_features: int) -> NDArray[np.bool_]:
    """Returns for each row whether it is so far from every class that the rounding of its log scores (rows × classes),
    each a sum over ``n_features`` features, may decide between the two best classes.
    """
    best_scores = scores.max(axis=1)  # of each row
    is_far = np.asarray((np.abs(best_scores) > FAR) & np.isfinite(best_scores))
    if is_far.any():
        # Of the rows that are far: the score of the second class.
        runner_up = np.partition(scores[is_far], -2, axis=1)[:, -2] if scores.shape[1] > 1 else -np.inf
        rounding = np.abs(best_scores[is_far]) * (n_features + 2) * 2.0**-50  # at most, in nats
        is_far[is_far] = best_scores[is_far] - runner_up <= DECISIVE_LEAD + rounding
    return is_far


def _refit_without_each(model: Model, held_out: HeldOutRows, log_prior: Real) -> tuple[Real, int]:
    """Estimates a model without each held-out row and scores the row with it, in exact arithmetic. Returns log P(class,
    row) (rows × classes) and how many rows are impossible in every class. ``model`` has counted all rows, and
    ``log_prior`` is that of the classes without each row (rows × classes).
    """
    scores = np.empty_like(log_prior)
    n_impossible = 0
    # For each group of features of one family: an iterator of the parameters without each row.
    parameters_by_family = [
        estimates_without_each(family, features, sums, model.choice, held_out)
        for family, features, sums in model.tally.groups
    ]
    for row_number, parameters_without_row in enumerate(zip(*parameters_by_family, strict=True)):
        single_row = held_out.rows.take(np.array([row_number]))
        kernel_parts = [kernel_part for group in parameters_without_row for kernel_part in group.parts(single_row)]
        scores[row_number], n_row_impossible = _core.score(
            1, log_prior[row_number], kernel_parts, "log_posterior", held_out.threads
        )
        n_impossible += n_row_impossible
    return scores, n_impossible


def _log_prior_without(model: Model, held_out: HeldOutRows) -> tuple[Real, NDArray[np.bool_]]:
    """Returns the log prior of the classes without each held-out row (rows × classes), −∞ for a class that has no other
    row; and whether each row outweighs the rest of its class by far, which is False without weights. ``model`` has
    counted all rows.
    """
    rows_by_class = model.tally.rows.value  # their weight
    labels = held_out.labels  # the class number of each row
    n_classes = len(rows_by_class)
    n_held_out = len(labels)
    # Without weights, leaving out any row of a class has the same effect, so there is one entry for each class. With weights,
    # there is one for each row.
    if held_out.weights is None:
        entry_classes = np.arange(n_classes)  # the class of each entry
        # One row of each class, without weights, on one thread.
        left_out = _core.count_classes(entry_classes.astype(np.int32), n_classes, None, 1)
        rows_without = model.tally.rows - left_out
    else:
        entry_classes = labels
        # Row numbers, −1 for rows of weight 0, and the weights as the kernels take them.
        entries, unit_weights = kernel_weights(np.arange(n_held_out, dtype=np.int32), held_out.weights)
        left_out = _core.count_classes(entries, n_held_out, unit_weights, 1)  # on one thread
        rows_without = model.tally.rows.take(labels, 0) - left_out  # of each row's own class
    # One per entry, as the log prior of its class without the row.
    is_emptied = rows_without.is_zero() | rows_without.is_negative()
    log_prior = model.log_prior
    log_prior_without = model.log_prior[entry_classes]
    class_prior = model.class_prior
    if class_prior is None or (isinstance(class_prior, (int, float)) and not isinstance(class_prior, bool)):
        alpha = float(class_prior or 0.0)  # the prior is counted, so that it changes when a row is left out
        with np.errstate(divide="ignore"):
            log_prior = np.log(rows_by_class + alpha)
            log_prior_without = np.log(np.where(is_emptied, 0.0, rows_without.value) + alpha)
    log_prior_without = np.where(is_emptied, -np.inf, log_prior_without)
    log_priors = np.broadcast_to(log_prior, (n_held_out, n_classes)).copy()
    own_cells = np.arange(n_held_out), labels  # the class of each row, from which alone it is left out
    if held_out.weights is None:
        log_priors[own_cells] = log_prior_without[labels]
        return log_priors, np.zeros(n_held_out, dtype=np.bool_)
    log_priors[own_cells] = log_prior_without
    return log_priors, ~is_emptied & (rows_without.value * OUTWEIGHS < held_out.weights)
