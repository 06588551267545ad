"""Leave-one-out: every row scored by what all others add up to, in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from banbury import _core
from banbury.arrays import Int, Real
from banbury.distributions.family import Choice, Feature, HeldOutRows
from banbury.naive_bayes import Model, estimate
from banbury.readers import Batch, Codes
from banbury.schema import Schema
from banbury.selection.dataset import Dataset
from banbury.selection.groups import Groups
from banbury.sums import weighed
from banbury.tally import Growing, count_rows


def supported(rows: Dataset, choice: Choice) -> bool:
    """Whether every family can leave out all rows at once."""
    weighted = rows.weights is not None
    kinds = {(feature.family, bool(feature.columns)): feature for feature in rows.schema.features}
    return all(f.family.can_leave_one_out((f,), choice, weighted) for f in kinds.values())


def left_one_out(rows: Dataset, settings: Mapping[str, Any]) -> tuple[Int, Real, int, list[str]]:
    """The labelled rows, log P(class, row) of each without itself, (rows, classes), and what stays that of all rows.

    A row in which every class is impossible gets its log prior; how many there are is told, too.
    """
    groups = np.where(rows.labels >= 0, 0, -1).astype(np.int32)
    total = Groups.of(rows, groups, 1).total
    model = estimate(total, **settings)
    tested = np.flatnonzero(rows.labels >= 0)
    place = np.array([total.classes.index(c) if c in total.classes else -1 for c in rows.classes], dtype=np.int64)
    labels = place[rows.labels[tested]]
    weights = None if rows.weights is None else rows.weights[tested]
    joints, start, impossible = [], 0, 0
    for batch in rows.take(tested):
        part = slice(start, start + batch.n_rows)
        scores, lost = _of_batch(model, batch, labels[part], None if weights is None else weights[part], rows.threads)
        joints.append(scores)
        impossible += lost
        start = part.stop
    every = joints[0] if len(joints) == 1 else np.concatenate(joints)
    if total.classes != rows.classes:
        wide = np.full((len(tested), len(rows.classes)), -np.inf)
        wide[:, [c for c, at in enumerate(place.tolist()) if at >= 0]] = every
        every = wide
    notes = [note for family, _, _ in total.groups for note in family.leave_one_out_notes()]
    return tested, every, impossible, list(dict.fromkeys(notes))


def _of_batch(model: Model, batch: Batch, labels: Int, weights: Real | None, threads: int) -> tuple[Real, int]:
    if weights is not None and not weights.all():  # a row of no weight was not counted, and nothing is to be left out
        result = np.empty((batch.n_rows, len(model.classes)))
        idle, counted = np.flatnonzero(weights == 0), np.flatnonzero(weights > 0)
        scores, lost = model._kernel(batch.take(idle), model.parameters, "log_joint")
        result[idle] = np.where(np.isneginf(scores).all(axis=1, keepdims=True), model.log_prior, scores)
        if len(counted):
            part = batch.take(counted)
            result[counted], more = _of_batch(model, part, labels[counted], weights[counted], threads)
            lost += more
        return result, lost
    own_sums = partial(_own_sums, model.schema, batch, weights, threads)
    held_out = HeldOutRows(batch, labels, weights, len(model.classes), threads, own_sums)
    prior = _log_prior(model, held_out)
    result = prior.copy()
    for family, features, sums in model.tally.groups:
        result += family.leave_one_out(features, sums, model.choice, held_out)
    if not np.isneginf(result.min(initial=0.0)):
        return result, 0
    hopeless = np.asarray(np.isneginf(result).all(axis=1))
    return np.where(hopeless[:, None], prior, result), int(hopeless.sum())


def _own_sums(schema: Schema, batch: Batch, weights: Real | None, threads: int, features: tuple[Feature, ...]) -> Any:
    """The sums of some features, every row a class of its own."""
    numbers = tuple(range(batch.n_rows))
    growing = Growing(replace(schema, features=features), numbers)
    labels = Codes(np.arange(batch.n_rows, dtype=np.int32), 0, numbers)
    growing.add(count_rows(batch, growing.schema, labels, weights, threads))
    [(_, _, sums)] = growing.frozen().with_classes(numbers).groups
    return sums


def _log_prior(model: Model, held_out: HeldOutRows) -> Real:
    """The class prior without each row; −inf where its class has no other."""
    rows, at = model.tally.rows.value, np.arange(len(held_out.labels))
    alone, parts = weighed(at.astype(np.int32), held_out.weights)
    mine = _core.count_classes(alone, len(at), parts, 1)
    others = model.tally.rows.take(held_out.labels, 0) - mine
    gone, left = others.is_zero() | others.is_negative(), others.value
    result = np.broadcast_to(model.log_prior, (len(at), len(rows))).copy()
    prior = model.class_prior
    if prior is None or (isinstance(prior, (int, float)) and not isinstance(prior, bool)):
        alpha = float(prior or 0.0)
        with np.errstate(divide="ignore"):
            result[:] = np.log(rows + alpha)
            result[at, held_out.labels] = np.log(np.where(gone, 0.0, left) + alpha)
    result[at[gone], held_out.labels[gone]] = -np.inf
    return result
