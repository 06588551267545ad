"""What is in a file of a model of labels beside its tally: thresholds, and corrections of words."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from banbury.distributions.keys import scalars
from banbury.files import contents
from banbury.files.checking import Arrays, check, under
from banbury.labels import LabelModel, LabelWeighing, Thresholds
from banbury.naive_bayes import checked_choice
from banbury.weighing.texts import Setting

PREFIX = "labels."
SETTINGS = {"how", "alpha", "telling", "labels", "common", "slope", "shift", "weighing"}
WEIGHING = {"labels", "columns", "setting", "strength", "digest", "losses"}


def about(model: LabelModel) -> dict[str, Any]:
    """All but the arrays, as JSON can hold it."""
    thresholds, weighing = model.thresholds, _weighing(model)
    weighed = None
    if weighing is not None:
        losses = [list(each) for each in weighing.losses]
        weighed = {"labels": list(weighing.labels), "columns": list(weighing.columns), "strength": weighing.strength}
        weighed |= {"setting": list(weighing.setting), "digest": weighing.digest, "losses": losses}
    own = {
        "how": model.choice.how,
        "alpha": model.choice.alpha,
        "telling": model.telling,
        "labels": list(thresholds.labels),
        "common": thresholds.common,
        "slope": thresholds.slope,
        "shift": thresholds.shift,
        "weighing": weighed,
    }
    return {**contents.about(model.tally), "labels": own}


def _weighing(model: LabelModel) -> LabelWeighing | None:
    """Without the words and labels that no row has any more."""
    return None if model.weighing is None else model.weighing.kept(model.tally)


def arrays(model: LabelModel) -> Arrays:
    found = contents.arrays(model.tally)
    found[f"{PREFIX}thresholds"] = model.thresholds.probabilities
    weighing = _weighing(model)
    if weighing is not None:
        found[f"{PREFIX}corrections"] = np.ascontiguousarray(weighing.corrections)
        for t, words in enumerate(weighing.words):
            names = [word.encode("utf-8", "surrogatepass") for word in words]
            found[f"{PREFIX}{t}.words"] = np.frombuffer(b"".join(names), dtype=np.uint8)
            found[f"{PREFIX}{t}.ends"] = np.cumsum([len(name) for name in names], dtype=np.int64)
    return found


def put_together(about: Mapping[str, Any], arrays: Arrays) -> LabelModel:
    """The model; whatever does not fit raises some error or other."""
    own, beside = about["labels"], under(PREFIX, arrays)
    check(own.keys() == SETTINGS, "the model of labels has other settings")
    rest = {name: array for name, array in arrays.items() if not name.startswith(PREFIX)}
    tally = contents.put_together({**about, "model": None, "calibration": None}, rest)
    model = LabelModel.of(tally, how=own["how"], alpha=own["alpha"], telling=own["telling"])  # type: ignore[arg-type]
    checked_choice(own["how"], own["alpha"], 0)
    check(bool((model.n_rows <= float(tally.n_rows)).all()), "more rows have a label than there are")
    labels = scalars("labels", own["labels"])
    numbers = beside["thresholds"]
    fit = numbers.dtype == np.float64 and numbers.shape == (len(labels),) and np.isfinite(numbers).all()
    check(fit and ((numbers >= 0) & (numbers <= 1)).all(), "thresholds are no probabilities")
    common, slope, shift = (float(own[name]) for name in ("common", "slope", "shift"))
    check(0 <= common <= 1 and slope >= 0 and bool(np.isfinite([slope, shift]).all()), "labels have no such numbers")
    thresholds = Thresholds(labels, numbers.copy(), common, slope, shift)
    weighing = None if own["weighing"] is None else _put_weighing(own["weighing"], beside, model)
    expected = {"thresholds"} if weighing is None else {"thresholds", "corrections"}
    expected |= {
        f"{t}.{name}" for t in range(0 if weighing is None else len(weighing.columns)) for name in ("words", "ends")
    }
    check(set(beside) == expected, "there are other arrays than those of labels")
    return model.weighed(weighing).with_thresholds(thresholds)


def _put_weighing(about: Mapping[str, Any], arrays: Arrays, model: LabelModel) -> LabelWeighing:
    check(about.keys() == WEIGHING, "the weights of labels have other settings")
    labels = scalars("labels of weights", about["labels"])
    columns = tuple(model.schema[name].name for name in about["columns"])
    check(len(columns) > 0 and len(set(columns)) == len(columns), "no column is weighed, or one twice")
    for name in columns:
        feature = model.schema[name]
        check(feature.family.used_words(feature, model.tally.of(name)) is not None, f"{name!r} has no words")
    words = tuple(_words(arrays[f"{t}.words"], arrays[f"{t}.ends"]) for t in range(len(columns)))
    corrections = arrays["corrections"]
    shape = sum(map(len, words)) + 1, len(labels)
    check(corrections.dtype == np.float32 and corrections.shape == shape, "there is not a correction for each word")
    strength = float(about["strength"])
    check(bool(np.isfinite(corrections).all()) and 0 <= strength < np.inf, "corrections are not finite numbers")
    losses = tuple((float(a), float(b)) for a, b in about["losses"])
    setting = Setting(*about["setting"])
    numbers = [float(x) for x in (setting.power, setting.telling, setting.trust)]
    check(all(0 <= x <= 1e6 for x in numbers) and type(setting.often) is bool, "words have no such setting")
    learned = Setting(setting.often, *numbers), strength, corrections.copy()
    return LabelWeighing(labels, columns, words, *learned, str(about["digest"]), losses)


def _words(names: Any, ends: Any) -> tuple[str, ...]:
    plain = names.dtype == np.uint8 and ends.dtype == np.int64 and names.ndim == 1 and ends.ndim == 1
    check(plain, "words are not bytes and where they end")
    limits = [0, *ends.tolist()]
    check(all(a <= b for a, b in pairwise(limits)) and limits[-1] == len(names), "words do not end where they should")
    held = names.tobytes()
    return tuple(held[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(limits))
