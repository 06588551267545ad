"""Answers: what a model says of rows of JSON, in the words of the library; and what is served, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from banbury import __version__, errors
from banbury.arrays import Real
from banbury.service.learner import ServedLearner
from banbury.service.state import ServedState
from banbury.sums import rows_of
from banbury.tally.label_sets import EVERY


def posteriors(learner: ServedLearner, rows: Sequence[Any]) -> tuple[Any, Real, int]:
    """P(class | row) or P(label | row), the model that says so, and the change as of which it does."""
    if not rows:
        raise errors.EmptyData("the request has no rows. Send at least one.")
    batch = learner.rows.batch(rows)
    with learner.lock:
        model, as_of = learner.answering()
        if learner.follows:  # in place: nobody may learn meanwhile
            return model, model.posterior(batch), as_of
    return model, model.posterior(batch), as_of


def predict(learner: ServedLearner, rows: Sequence[Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Predict the class of each row, or its labels, with probabilities. ``asked``: posteriors, unsure, top, at_least_one."""
    model, posterior, as_of = posteriors(learner, rows)
    predictions = (
        _classes(model, posterior, settings) if model.schema.labels is None else _labels(model, posterior, settings)
    )
    if settings.get("posteriors", False):
        names = list(map(str, model.names))
        for prediction, row in zip(predictions, posterior.tolist(), strict=True):
            prediction["posteriors"] = dict(zip(names, row, strict=True))
    return {"predictions": predictions, "as_of": as_of}


def _classes(model: Any, posterior: Real, settings: dict[str, Any]) -> list[dict[str, Any]]:
    _refuse_settings(settings, ("top", "at_least_one"), "a multi-label model")
    unsure = settings.get("unsure")
    if unsure is not None and not (type(unsure) in (int, float) and 0 <= unsure <= 1):
        raise errors.bad_setting("unsure", unsure, "a probability from 0 to 1")
    records: list[dict[str, Any]] = model.records(posterior, unsure)
    return records


def _labels(model: Any, posterior: Real, settings: dict[str, Any]) -> list[dict[str, Any]]:
    _refuse_settings(settings, ("unsure",), "a single-label model")
    top = settings.get("top")
    at_least_one = bool(settings.get("at_least_one", False))
    if top is not None:
        errors.check_whole("top", top, 1)
    records: list[dict[str, Any]] = model.records(posterior, top, at_least_one)
    return records


def _refuse_settings(settings: dict[str, Any], names: Sequence[str], of: str) -> None:
    for name in names:
        if settings.get(name) not in (None, False):
            raise errors.bad_setting(name, settings[name], f"omitted, because it applies only to {of}")


def explain(learner: ServedLearner, row: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Why a row gets its class, or a label. ``asked``: against, of classes; label, of labels."""
    batch = learner.rows.batch([row])
    with learner.lock:
        model, as_of = learner.answering()
        if model.schema.labels is not None:
            _refuse_settings(settings, ("against",), "a single-label model")
            label = settings.get("label")
            if label is None:
                label = model.labels[int(np.argmax(model.posterior(batch)[0]))]
            return {"label": label, **model.explain(batch, label).to_dict(), "as_of": as_of}
        _refuse_settings(settings, ("label",), "a multi-label model")
        return {**model.explain(batch, settings.get("against")).to_dict(), "as_of": as_of}


def describe(state: ServedState) -> dict[str, Any]:
    """The model as it stands, and the change as of which it does."""
    (digest, change), learner = state.digest(), state.learner
    tally = learner.tally()
    settings = learner.settings
    several = tally.schema.labels is not None
    class_rows = zip(tally.classes, rows_of(tally.rows).tolist(), strict=True)
    name = "label" if several else "class"
    weighing = settings.weighing
    classes = [{name: class_name, "rows": n} for class_name, n in class_rows if not (several and class_name == EVERY)]
    description: dict[str, Any] = {
        "kind": "model of labels" if several else "model",
        "rows": tally.n_rows,
        "target": tally.schema.target,
        "labels" if several else "classes": classes,
        "features": [{"name": f.name, "family": str(f.family), "why": f.why} for f in tally.schema.features],
        "how": settings.choice.how,
        "alpha": settings.choice.alpha,
        "weighed": weighing is not None,
        "calibrated": settings.calibration is not None,
        "digest": digest,
        "change": change,
        "learns": state.folder is not None,
        "version": __version__,
    }
    if weighing is not None:
        description["weights"] = {"stale": weighing.is_stale(tally), "learned_at": learner.weighed_at}
    return description
