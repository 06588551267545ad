"""Predictions and explanations for rows of JSON, and the description of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from banbury import __version__, errors
from banbury.arrays import Real
from banbury.files.checking import JsonObject
from banbury.service.learner import ServedLearner
from banbury.service.state import ServedState
from banbury.sums import readable_counts
from banbury.tally.label_sets import EVERY


def posteriors(learner: ServedLearner, rows: Sequence[Any]) -> tuple[Any, Real, int]:
    """Returns the model, its posterior for ``rows``, rows of JSON (rows × classes or labels), and the number of the
    last change in the model.
    """
    if not rows:
        raise errors.EmptyData("the request has no rows. Send at least one.")
    batch = learner.rows.batch(rows)
    with learner.lock:
        model, change = learner.current_model()
        if learner.follows:  # the model changes in place, so the lock is needed
            return model, model.posterior(batch), change
    return model, model.posterior(batch), change


def predict(learner: ServedLearner, rows: Sequence[Any], settings: JsonObject) -> JsonObject:
    """Returns the predicted class or labels of each row, and as of which change, for JSON. ``settings``: posteriors,
    unsure, top, at_least_one, as the request gives them.
    """
    model, posterior, as_of = posteriors(learner, rows)  # as_of: the number of the last change in the model
    predictions = (
        _classes(model, posterior, settings) if model.schema.labels is None else _labels(model, posterior, settings)
    )
    if settings.get("posteriors", False):
        names = list(map(str, model._names))  # of classes or labels
        for prediction, probabilities in zip(predictions, posterior.tolist(), strict=True):
            prediction["posteriors"] = dict(zip(names, probabilities, strict=True))
    return {"predictions": predictions, "as_of": as_of}


def _classes(model: Any, posterior: Real, settings: JsonObject) -> list[JsonObject]:
    """Returns a record for each row with its class and probability. ``posterior``: rows × classes; ``settings``: those
    of the request.
    """
    _refuse_settings(settings, ("top", "at_least_one"), "a multi-label model")
    unsure = settings.get("unsure")  # below this probability there is no class; None for any
    if unsure is not None and not (type(unsure) in (int, float) and 0 <= unsure <= 1):
        raise errors.bad_setting("unsure", unsure, "a probability from 0 to 1")
    return model._records(posterior, unsure)  # type: ignore[no-any-return]


def _labels(model: Any, posterior: Real, settings: JsonObject) -> list[JsonObject]:
    """Returns a record for each row with its labels and their probabilities. ``posterior``: rows × labels;
    ``settings``: those of the request.
    """
    _refuse_settings(settings, ("unsure",), "a single-label model")
    top = settings.get("top")  # how many labels each row gets; None: those above their thresholds
    at_least_one = bool(settings.get("at_least_one", False))
    if top is not None:
        errors.check_whole("top", top, low=1)
    return model._records(posterior, top, at_least_one)  # type: ignore[no-any-return]


def _refuse_settings(settings: JsonObject, names: Sequence[str], model_kind: str) -> None:
    """Raises BadSetting if the request has one of the settings ``names``. ``settings``: those of the request;
    ``model_kind``: the kind of model that the refused ones are for.
    """
    for name in names:
        if settings.get(name) not in (None, False):
            raise errors.bad_setting(name, settings[name], f"omitted, because it applies only to {model_kind}")


def explain(learner: ServedLearner, row: Any, settings: JsonObject) -> JsonObject:
    """Returns why a row gets its class or a label, and as of which change, for JSON. ``settings``: against (a class) or
    label, as the request gives them.
    """
    batch = learner.rows.batch([row])  # of one row
    with learner.lock:
        model, as_of = learner.current_model()  # as_of: the number of the last change in it
        if model.schema.labels is not None:
            _refuse_settings(settings, ("against",), "a single-label model")
            label = settings.get("label")
            if label is None:
                label = model.labels[int(np.argmax(model.posterior(batch)[0]))]
            return {"label": label, **model.explain(batch, label).to_dict(), "as_of": as_of}
        _refuse_settings(settings, ("label",), "a multi-label model")
        return {**model.explain(batch, settings.get("against")).to_dict(), "as_of": as_of}


def describe(state: ServedState) -> JsonObject:
    """Returns the description of the model for JSON: classes, families, settings, digest, last change."""
    digest, change = state.digest()  # of all counts, as of this change
    learner = state.learner
    tally = learner.tally()
    settings = learner.settings  # with which models are derived
    has_labels = tally.schema.labels is not None
    # Pairs of a class or label and its number of rows.
    class_rows = zip(tally.classes, readable_counts(tally.rows).tolist(), strict=True)
    class_key = "label" if has_labels else "class"
    weighing = settings.weighing  # weights of the evidence; None for a plain model
    classes = [
        {class_key: label, "rows": n_rows} for label, n_rows in class_rows if not (has_labels and label == EVERY)
    ]
    description: JsonObject = {
        "kind": "model of labels" if has_labels else "model",
        "rows": tally.n_rows,
        "target": tally.schema.target,
        "labels" if has_labels else "classes": classes,
        "features": [
            {"name": feature.name, "family": str(feature.family), "why": feature.why}
            for feature in tally.schema.features
        ],
        "how": settings.choice.how,
        "alpha": settings.choice.alpha,
        "weighed": weighing is not None,
        "calibrated": settings.calibration is not None,
        "digest": digest,
        "change": change,
        "can_learn": state.folder is not None,
        "version": __version__,
    }
    if weighing is not None:
        description["weights"] = {"stale": weighing.is_stale(tally), "change": learner.weighed_at}
    return description
