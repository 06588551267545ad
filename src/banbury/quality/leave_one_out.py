"""Leave-one-out: every row scored by what all other rows add up to, in one pass, where the families have a formula for it."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.family import Choice, HeldOutRows, estimates_without_each
from banbury.model.naive_bayes import Model
from banbury.reading import Batch
from banbury.rows.labelled import MemoryRows
from banbury.sums import kernel_weights
from banbury.tally.tally import sums_of_rows

FAR = 131_072.0  # nats from every class: sums of such numbers are rounded by more than 1e-11
OUTWEIGHS = 1024.0  # times all others of its class: without such a row, which has no equal there, sums lose digits
SETTLED = 750.0  # nats between two classes: the smallest double is e^-745, so the lesser one has probability 0


class WithoutEach(NamedTuple):
    """The scores of labelled rows, each from a model without that row.

    ``scores`` are log P(class, row) (rows × classes), up to a constant for each row. If every class is impossible they
    are the log prior; ``impossible`` is the number of such rows. ``kept`` lists what is still learned from all rows.
    """

    tested: Int
    scores: Real
    impossible: int
    kept: list[str]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about rows left out: what is still learned from all rows."""
        return (f"also learned from the row left out: {', '.join(self.kept)}",) if self.kept else ()


def can_leave_one_out(rows: MemoryRows, choice: Choice) -> bool:
    """Whether every family has a closed formula for leaving one row out."""
    kinds = {(f.family, bool(f.columns)): f for f in rows.schema.features}
    return all(f.family.can_leave_one_out((f,), choice, rows.weights is not None) for f in kinds.values())


def leave_each_out(rows: MemoryRows, model: Model) -> WithoutEach:
    """Scores every labelled row with the model of all other rows."""
    if np.count_nonzero(rows.counts) < 2:
        raise errors.bad_setting("folds", "loo", "used with at least two rows; there is one")
    total = model.tally
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
    return WithoutEach(tested, every, impossible, list(dict.fromkeys(notes)))


def _each_left_out(model: Model, rows: MemoryRows, tested: Int, labels: Int, weights: Real | None) -> tuple[Real, int]:
    """Scores of these rows, each without itself, and how many are impossible in every class."""
    joints = []
    start = 0
    impossible = 0
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
        idle = np.flatnonzero(weights == 0)
        counted = np.flatnonzero(weights > 0)
        result[idle], lost = model._kernel(batch.take(idle), model.parameters, "log_posterior")
        if len(counted):
            part = batch.take(counted)
            result[counted], more = _of_batch(model, part, labels[counted], weights[counted], threads)
            lost += more
        return result, lost
    held_out = _rows_left_out(model, batch, labels, weights, threads)
    prior, outweighs = _log_prior_without(model, held_out)
    result = prior.copy()
    for family, features, sums in model.tally.groups:
        result += family.leave_one_out(features, sums, model.choice, held_out)
    lost = 0
    imprecise = np.flatnonzero(outweighs | _lose_precision(result, len(model.schema.features)))
    if len(imprecise):
        imprecise_weights = None if weights is None else weights[imprecise]
        some = _rows_left_out(model, batch.take(imprecise), labels[imprecise], imprecise_weights, threads)
        result[imprecise], lost = _refit_without_each(model, some, prior[imprecise])
    if not np.isneginf(result.min(initial=0.0)):
        return result, lost
    hopeless = np.asarray(np.isneginf(result).all(axis=1))
    return np.where(hopeless[:, None], prior, result), lost + int(hopeless.sum())


def _rows_left_out(model: Model, batch: Batch, labels: Int, weights: Real | None, threads: int) -> HeldOutRows:
    own_sums = partial(sums_of_rows, model.schema, batch, weights, threads)
    return HeldOutRows(batch, labels, weights, len(model.classes), threads, own_sums)


def _lose_precision(scores: Real, n_features: int) -> NDArray[np.bool_]:
    """Which rows are so far from every class that the rounding of their sums may decide between the two best."""
    best = scores.max(axis=1)
    far = np.asarray((np.abs(best) > FAR) & np.isfinite(best))
    if far.any():
        runner_up = np.partition(scores[far], -2, axis=1)[:, -2] if scores.shape[1] > 1 else -np.inf
        rounding = np.abs(best[far]) * (n_features + 2) * 2.0**-50
        far[far] = best[far] - runner_up <= SETTLED + rounding
    return far


def _refit_without_each(model: Model, held_out: HeldOutRows, prior: Real) -> tuple[Real, int]:
    """log P(class | row), every row by a model without it, whose kernel adds exactly; and how many rows are impossible."""
    scores = np.empty_like(prior)
    impossible = 0
    groups = [
        estimates_without_each(family, features, sums, model.choice, held_out)
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
    rows = model.tally.rows.value
    labels = held_out.labels
    at = np.arange(len(held_out.labels))
    if held_out.weights is None:  # then rows of a class are alike
        left_out_classes = np.arange(len(rows))
        rows_without = model.tally.rows - _core.count_classes(left_out_classes.astype(np.int32), len(rows), None, 1)
    else:
        left_out_classes = labels
        alone, parts = kernel_weights(at.astype(np.int32), held_out.weights)
        rows_without = model.tally.rows.take(labels, 0) - _core.count_classes(alone, len(at), parts, 1)
    gone = rows_without.is_zero() | rows_without.is_negative()
    class_prior_without = model.log_prior[left_out_classes]
    every = model.log_prior
    prior = model.class_prior
    if prior is None or (isinstance(prior, (int, float)) and not isinstance(prior, bool)):
        alpha = float(prior or 0.0)
        with np.errstate(divide="ignore"):
            every = np.log(rows + alpha)
            class_prior_without = np.log(np.where(gone, 0.0, rows_without.value) + alpha)
    class_prior_without = np.where(gone, -np.inf, class_prior_without)
    result = np.broadcast_to(every, (len(at), len(rows))).copy()
    result[at, labels] = class_prior_without[labels] if held_out.weights is None else class_prior_without
    if held_out.weights is None:
        return result, np.zeros(len(at), dtype=np.bool_)
    return result, ~gone & (rows_without.value * OUTWEIGHS < held_out.weights)
