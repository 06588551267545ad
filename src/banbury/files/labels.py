"""What is in a file of a model of labels beside its tally: thresholds, and corrections of words and cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from banbury.families.keys import scalars
from banbury.files import contents, weighing
from banbury.files.checking import Arrays, check, real, under
from banbury.labels import LabelModel, LabelWeighing, Thresholds
from banbury.labels.calibration import LabelCalibration
from banbury.labels.cells import CellWords

PREFIX = "labels."
CELLS = "cells."
SETTINGS = {"how", "alpha", "telling", "labels", "common", "slope", "shift", "weighing"}
WEIGHING = {"labels", "columns", "cells", "setting", "strength", "digest", "losses"}


def about(model: LabelModel) -> dict[str, Any]:
    """All but the arrays, as JSON can hold it."""
    thresholds = model.thresholds
    learned = _weighing(model)
    weighed = None
    if learned is not None:
        weighed = {
            "labels": list(learned.labels),
            "columns": list(learned.columns),
            "cells": [weighing.about_cells(cells) for cells in learned.cells.cells],
            "setting": list(learned.setting),
            "strength": learned.strength,
            "digest": learned.digest,
            "losses": [list(trial) for trial in learned.losses],
        }
    settings = {
        **contents.about_choice(model.choice),
        "telling": model.telling,
        "labels": list(thresholds.labels),
        "common": thresholds.common,
        "slope": thresholds.calibration.slope,
        "shift": thresholds.calibration.shift,
        "weighing": weighed,
    }
    return {**contents.about(model.tally), "labels": settings}


def _weighing(model: LabelModel) -> LabelWeighing | None:
    """Without the words and labels that no row has any more."""
    return None if model.weighing is None else model.weighing.without_forgotten(model.tally)


def arrays(model: LabelModel) -> Arrays:
    state = contents.arrays(model.tally)
    state[f"{PREFIX}thresholds"] = model.thresholds.probabilities
    if not (calibration := model.thresholds.calibration).is_shared:
        state |= {f"{PREFIX}slopes": calibration.slopes, f"{PREFIX}shifts": calibration.shifts}
    return state | {f"{PREFIX}{name}": array for name, array in _state(_weighing(model)).items()}


def _state(learned: LabelWeighing | None) -> Arrays:
    """The arrays of weights, by name."""
    if learned is None:
        return {}
    state: Arrays = {"corrections": np.ascontiguousarray(learned.corrections)}
    for t, words in enumerate(learned.words):
        state |= weighing.state_of_words(t, words)
    return state | {f"{CELLS}{name}": array for name, array in weighing.state_of_cells(learned.cells.cells).items()}


def put_together(about: Mapping[str, Any], arrays: Arrays) -> LabelModel:
    """The model; whatever does not fit raises some error or other."""
    settings = about["labels"]
    beside = under(PREFIX, arrays)
    check(settings.keys() - {"folds"} == SETTINGS, "the settings of the multi-label model are missing or unknown")
    rest = {name: array for name, array in arrays.items() if not name.startswith(PREFIX)}
    tally = contents.put_together({**about, "model": None, "calibration": None}, rest)
    model = LabelModel.of(tally, telling=settings["telling"])  # type: ignore[arg-type]
    model = replace(model, choice=replace(contents.restore_choice(settings, 0), waits=False))
    check(bool((model.n_rows <= float(tally.n_rows)).all()), "a label has more rows than the tally")
    labels = scalars("labels", settings["labels"])
    numbers = beside["thresholds"]
    fit = numbers.dtype == np.float64 and numbers.shape == (len(labels),)
    check(fit and ((numbers >= 0) & (numbers <= 1)).all(), "thresholds are not probabilities")
    common, slope, shift = (float(settings[name]) for name in ("common", "slope", "shift"))
    check(0 <= common <= 1, "the threshold of new labels is not a probability")
    calibration = LabelCalibration.uniform(len(labels), slope, shift)
    lines = {"slopes", "shifts"} & set(beside)
    if lines:
        slopes, shifts = (real(name, beside, (len(labels),)) for name in ("slopes", "shifts"))
        calibration = LabelCalibration(slopes, shifts, slope, shift)
    thresholds = Thresholds(labels, numbers.copy(), calibration, common)
    learned = None if settings["weighing"] is None else _put_weighing(settings["weighing"], beside, model)
    check(set(beside) == {"thresholds", *lines, *_state(learned)}, "there are arrays that do not belong to the labels")
    return model.weighed(learned).with_thresholds(thresholds)


def _put_weighing(about: Mapping[str, Any], arrays: Arrays, model: LabelModel) -> LabelWeighing:
    check(about.keys() | {"cells"} == WEIGHING, "the settings of the weights are missing or unknown")
    labels = scalars("labels of weights", about["labels"])
    columns = tuple(model.schema[name].name for name in about["columns"])
    for name in columns:
        check(weighing.is_text(model.tally, name), f"{name!r} has no words")
    words = tuple(weighing.words_of(t, arrays) for t in range(len(columns)))
    beside = under(CELLS, arrays)
    cells = CellWords(
        tuple(weighing.cells_of(cells, j, beside, model.tally) for j, cells in enumerate(about.get("cells", [])))
    )
    weighing.check_once([*columns, *cells.names])
    check(len(columns) + len(cells.cells) > 0, "no column is weighed")
    corrections = arrays["corrections"]
    shape = sum(map(len, words)) + len(cells) + 1, len(labels)
    check(
        corrections.dtype == np.float32 and corrections.shape == shape,
        "the number of corrections does not match the words",
    )
    learned = weighing.read_setting(about, corrections)
    return LabelWeighing(labels, columns, words, *learned, weighing.digest_of(about), weighing.losses_of(about), cells)
