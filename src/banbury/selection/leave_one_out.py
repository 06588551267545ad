"""Leave-one-out: every row scored by what all others add up to, in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from banbury import _core
from banbury.arrays import Int, Real
from banbury.distributions import Text, leave_one_out, leave_one_text_out
from banbury.distributions.family import Choice
from banbury.distributions.leave_one_out import HeldOutRows
from banbury.naive_bayes import Model, estimate
from banbury.readers import Batch
from banbury.selection.dataset import Dataset
from banbury.selection.groups import Groups
from banbury.sums import weighed
from banbury.tally import Tally


def supported(rows: Dataset, choice: Choice) -> bool:
    """Whether every family has a formula."""
    if choice.how == "gibbs":
        return False
    own = HeldOutRows(rows.batches[0], np.zeros(0, dtype=np.int64), rows.weights, 1)
    if any(feature.columns for feature in rows.schema.features):
        return False
    families = {feature.family for feature in rows.schema.features if feature.family.shape in ("keys", "moments")}
    if any(
        getattr(family, "codes", None) is not None or getattr(family, "smoothing", None) is not None
        for family in families
    ):
        return False
    if any(getattr(feature.family, "bins", None) == "mdl" for feature in rows.schema.keyed):  # a row may move every cut
        return False
    texts = (feature.family for feature in rows.schema.texts)
    return all(isinstance(family, Text) and leave_one_text_out.supported(family, choice, own) for family in texts)


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
    found, start, impossible = [], 0, 0
    for batch in rows.take(tested):
        part = slice(start, start + batch.n_rows)
        scores, lost = _of_batch(model, batch, labels[part], None if weights is None else weights[part], rows.threads)
        found.append(scores)
        impossible += lost
        start = part.stop
    every = found[0] if len(found) == 1 else np.concatenate(found)
    if total.classes != rows.classes:
        wide = np.full((len(tested), len(rows.classes)), -np.inf)
        wide[:, [c for c, at in enumerate(place.tolist()) if at >= 0]] = every
        every = wide
    return tested, every, impossible, _notes(total)


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
    own = HeldOutRows(batch, labels, weights, threads)
    prior = _log_prior(model, own)
    result = prior.copy()
    for family, features, sums in model.tally.groups:
        if isinstance(family, Text):
            result += leave_one_text_out.left_one_out(family, features[0], sums, model.choice, own)
        else:
            result += leave_one_out.left_one_out(family, features, sums, model.choice, own)
    if not np.isneginf(result.min(initial=0.0)):
        return result, 0
    hopeless = np.asarray(np.isneginf(result).all(axis=1))
    return np.where(hopeless[:, None], prior, result), int(hopeless.sum())


def _log_prior(model: Model, own: HeldOutRows) -> Real:
    """The class prior without each row; −inf where its class has no other."""
    rows, at = model.tally.rows.value, np.arange(len(own.labels))
    alone, parts = weighed(at.astype(np.int32), own.weights)
    mine = _core.count_classes(alone, len(at), parts, 1)
    others = model.tally.rows.take(own.labels, 0) - mine
    gone, left = others.is_zero() | others.is_negative(), others.value
    result = np.broadcast_to(model.log_prior, (len(at), len(rows))).copy()
    prior = model.class_prior
    if prior is None or (isinstance(prior, (int, float)) and not isinstance(prior, bool)):
        alpha = float(prior or 0.0)
        with np.errstate(divide="ignore"):
            result[:] = np.log(rows + alpha)
            result[at, own.labels] = np.log(np.where(gone, 0.0, left) + alpha)
    result[at[gone], own.labels[gone]] = -np.inf
    return result


def _notes(tally: Tally) -> list[str]:
    kept = leave_one_out.notes(tally.schema.features)
    for feature in tally.schema.texts:
        kept += leave_one_text_out.notes(feature.family)  # type: ignore[arg-type]
    return list(dict.fromkeys(kept))
