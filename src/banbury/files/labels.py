"""Converts multi-label models to JSON and arrays and back: thresholds, and corrections of words and cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from banbury.families.keys import check_scalars
from banbury.files import contents, weighing
from banbury.files.checking import Arrays, JsonObject, check, real, under
from banbury.labels import LabelModel, LabelWeighing, Thresholds
from banbury.labels.calibration import LabelCalibration
from banbury.labels.cells import CellWords

PREFIX = "labels."  # prefixes of array names
CELLS = "cells."
# The fields of the model and of its weights.
SETTINGS = {"how", "alpha", "words_per_label", "labels", "common", "slope", "shift", "weighing"}
WEIGHING = {"labels", "columns", "cells", "setting", "strength", "digest", "losses"}


def about(model: LabelModel) -> JsonObject:
    """Returns the JSON object of a multi-label model: everything but the arrays."""
    thresholds = model.thresholds
    label_weighing = _weighing(model)
    weighing_entry = None
    if label_weighing is not None:
        weighing_entry = {
            "labels": list(label_weighing.labels),
            "columns": list(label_weighing.columns),
            "cells": [weighing.about_cells(cells) for cells in label_weighing.cells.cells],
            "setting": list(label_weighing.setting),
            "strength": label_weighing.strength,
            "digest": label_weighing.digest,
            "losses": [list(trial) for trial in label_weighing.losses],  # pairs of strength and loss
        }
    settings = {
        **contents.about_choice(model.choice),
        "words_per_label": model.words_per_label,  # how many words of each label count; None for all
        "labels": list(thresholds.labels),
        "common": thresholds.common,  # the threshold of new labels
        "slope": thresholds.calibration.slope,  # of the log-odds of new labels, and the shift
        "shift": thresholds.calibration.shift,
        "weighing": weighing_entry,
    }
    return {**contents.about(model.tally), "labels": settings}


def _weighing(model: LabelModel) -> LabelWeighing | None:
    """Returns the weights of the model without words and labels that no row has any more; None if it is not weighed."""
    return None if model.weighing is None else model.weighing._without_forgotten(model.tally)


def arrays(model: LabelModel) -> Arrays:
    """Returns the arrays of a multi-label model by name: those of its tally; and with a prefix its thresholds, its
    calibration unless all labels share one, and its weights.
    """
    state = contents.arrays(model.tally)
    state[f"{PREFIX}thresholds"] = model.thresholds.probabilities
    if not (calibration := model.thresholds.calibration).is_shared:
        state |= {f"{PREFIX}slopes": calibration.slopes, f"{PREFIX}shifts": calibration.shifts}
    return state | {f"{PREFIX}{name}": array for name, array in _state(_weighing(model)).items()}


def _state(label_weighing: LabelWeighing | None) -> Arrays:
    """Returns the arrays of the weights by name, none for None: corrections (words × labels), the words of each text
    column, and the cells of other columns.
    """
    if label_weighing is None:
        return {}
    state: Arrays = {"corrections": np.ascontiguousarray(label_weighing.corrections)}
    for column_number, words in enumerate(label_weighing.words):
        state |= weighing.state_of_words(column_number, words)
    return state | {
        f"{CELLS}{name}": array for name, array in weighing.state_of_cells(label_weighing.cells.cells).items()
    }


def from_json_and_arrays(about: JsonObject, arrays: Arrays) -> LabelModel:
    """Returns the multi-label model of a file: ``about`` is its JSON object, and ``arrays`` are its arrays by name.
    Raises some exception if the contents are inconsistent.
    """
    settings = about["labels"]
    label_arrays = under(PREFIX, arrays)
    check(settings.keys() - {"folds"} == SETTINGS, "the settings of the multi-label model are missing or unknown")
    tally_arrays = {name: array for name, array in arrays.items() if not name.startswith(PREFIX)}
    tally = contents.from_json_and_arrays({**about, "model": None, "calibration": None}, tally_arrays)
    model = LabelModel.of(tally, words_per_label=settings["words_per_label"])  # type: ignore[arg-type]
    model = replace(model, choice=replace(contents.restore_choice(settings, seed=0), waits=False))
    check(bool((model.rows_by_label <= float(tally.n_rows)).all()), "a label has more rows than the tally")
    labels = check_scalars("labels", settings["labels"])
    probabilities = label_arrays["thresholds"]  # one per label
    are_valid = probabilities.dtype == np.float64 and probabilities.shape == (len(labels),)
    check(are_valid and ((probabilities >= 0) & (probabilities <= 1)).all(), "thresholds are not probabilities")
    # Of new labels: the threshold, and the slope and the shift that calibrate their log-odds.
    common, slope, shift = (float(settings[name]) for name in ("common", "slope", "shift"))
    check(0 <= common <= 1, "the threshold of new labels is not a probability")
    # The same for all labels, unless each has its own.
    calibration = LabelCalibration.uniform(len(labels), slope, shift)
    calibration_names = {"slopes", "shifts"} & set(label_arrays)
    if calibration_names:
        slopes, shifts = (real(name, label_arrays, (len(labels),)) for name in ("slopes", "shifts"))
        calibration = LabelCalibration(slopes, shifts, slope, shift)
    thresholds = Thresholds(labels, probabilities.copy(), calibration, common)
    label_weighing = (
        None if settings["weighing"] is None else _restore_weighing(settings["weighing"], label_arrays, model)
    )
    check(
        set(label_arrays) == {"thresholds", *calibration_names, *_state(label_weighing)},
        "there are arrays that do not belong to the labels",
    )
    return model.weighed(label_weighing).with_thresholds(thresholds)


def _restore_weighing(about: JsonObject, arrays: Arrays, model: LabelModel) -> LabelWeighing:
    """Returns the weights in a file: ``about`` is their JSON object, and ``arrays`` are those of the multi-label model,
    without the prefix. ``model`` is this model without weights. Raises an error if they are inconsistent.
    """
    check(about.keys() | {"cells"} == WEIGHING, "the settings of the weights are missing or unknown")
    labels = check_scalars("labels of weights", about["labels"])
    columns = tuple(model.schema[name].name for name in about["columns"])
    for name in columns:
        check(weighing.is_text(model.tally, name), f"{name!r} has no words")
    words = tuple(weighing.words_of(column_number, arrays) for column_number in range(len(columns)))
    cell_arrays = under(CELLS, arrays)
    cells = CellWords(
        tuple(
            weighing.cells_of(entry, column_number, cell_arrays, model.tally)
            for column_number, entry in enumerate(about.get("cells", []))
        )
    )
    weighing.check_once([*columns, *cells.names])
    check(len(columns) + len(cells.cells) > 0, "no column is weighed")
    corrections = arrays["corrections"]
    # Words of texts, words of cells, and what all rows share; labels.
    shape = sum(map(len, words)) + len(cells) + 1, len(labels)
    check(
        corrections.dtype == np.float32 and corrections.shape == shape,
        "the number of corrections does not match the words",
    )
    return LabelWeighing(
        labels,
        columns,
        words,
        *weighing.read_setting(about, corrections),
        weighing.digest_of(about),
        weighing.losses_of(about),
        cells,
    )
