"""What is in a file: a tally as arrays and a JSON text, the settings of a model, its calibration; and all of it checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from banbury import errors
from banbury._core import Integers
from banbury.calibration import Calibration
from banbury.distributions.family import Feature, Kind
from banbury.distributions.keys import names_of
from banbury.files import weighing
from banbury.files.checking import Arrays, integers_of, under, whole
from banbury.naive_bayes import Model, checked_choice, estimated
from banbury.schema import Schema
from banbury.sums import MOST_ROWS, some
from banbury.tally import Tally
from banbury.weighing import Weighing

SETTINGS = {"how", "alpha", "seed", "class_prior"}
CALIBRATION, WEIGHING = "calibration.", "weighing."  # how the names of their arrays begin


# Taken apart ----------------------------------------------------------------------------------------------------------


def about(thing: Model | Tally) -> dict[str, Any]:
    """All but the arrays, as JSON can hold it."""
    tally = thing.tally if isinstance(thing, Model) else thing
    sums = {
        "schema": tally.schema.to_dict(),
        "classes": [_key(label) for label in tally.classes],
        "keys": [[[_key(key) for key in keys] for keys in sums.keys] for sums in tally.sums],
        "skipped": tally.skipped,
        "digits": {name: numbers.digits for name, numbers in tally.numbers().items()},
        "rounded": tally.rounded,
    }
    model = _settings(thing) if isinstance(thing, Model) else None
    calibration = _calibration_of(thing)
    weighed = _weighing_of(thing)
    return {
        "tally": sums,
        "model": model,
        "calibration": None if calibration is None else calibration.method,
        **({} if weighed is None else {"weighing": weighing.about(weighed)}),
    }


def _key(key: Any) -> Any:
    """Zeros have no sign, so that equal keys are written alike."""
    if isinstance(key, tuple):
        return [_key(part) for part in key]
    return 0.0 if isinstance(key, float) and key == 0.0 else key


def arrays(thing: Model | Tally) -> Arrays:
    tally = thing.tally if isinstance(thing, Model) else thing
    found: Arrays = {name: numbers.limbs() for name, numbers in tally.numbers().items()} | tally.states()
    calibration = _calibration_of(thing)
    if calibration is not None:
        found |= {f"{CALIBRATION}{name}": array for name, array in calibration.state().items()}
    weighed = _weighing_of(thing)
    if weighed is not None:
        found |= {f"{WEIGHING}{name}": array for name, array in weighing.state_of(weighed).items()}
    return {name: np.ascontiguousarray(array) for name, array in found.items()}


def _settings(model: Model) -> dict[str, Any]:
    prior = model.class_prior
    if isinstance(prior, Mapping):
        prior = [prior[name] for name in model.classes]
    elif prior is not None and not isinstance(prior, (str, int, float)):
        prior = np.asarray(prior, dtype=np.float64).tolist()
    return {"how": model.choice.how, "alpha": model.choice.alpha, "seed": model.choice.seed, "class_prior": prior}


def _calibration_of(thing: Model | Tally) -> Calibration | None:
    calibration = thing.calibration if isinstance(thing, Model) else None
    if calibration is not None and not isinstance(calibration, Calibration):
        raise errors.bad_setting("the model's calibration", type(calibration).__name__, "one that bb.calibrate made")
    return calibration


def _weighing_of(thing: Model | Tally) -> Weighing | None:
    """Without the names of values that no row has any more."""
    if not isinstance(thing, Model) or thing.weighing is None:
        return None
    if not isinstance(thing.weighing, Weighing):
        raise errors.bad_setting("the model's weighing", type(thing.weighing).__name__, "one that bb.weigh made")
    return thing.weighing.kept(thing.tally)


def without_rare(thing: Model | Tally, min_count: float) -> Model | Tally:
    """The same without the words, of every column of text, that occur fewer times than this in all."""
    tally = thing.tally if isinstance(thing, Model) else thing
    groups = zip(tally.schema.groups, tally.sums, strict=True)
    common = tuple(group.counter.without_rare(sums, min_count) for group, sums in groups)
    if all(new is old for new, old in zip(common, tally.sums, strict=True)):
        return thing
    fewer = replace(tally, sums=common)
    if isinstance(thing, Tally):
        return fewer
    if thing.calibration is not None:
        raise errors.bad_setting(
            "min_count",
            min_count,
            "left out for a calibrated model: all its words had a part in the calibration (see model.calibrated(None))",
        )
    return replace(thing, tally=fewer)


# Put together ---------------------------------------------------------------------------------------------------------


def put_together(about: Mapping[str, Any], arrays: Arrays) -> Model | Tally:
    """The tally, or the model estimated anew from it; whatever does not fit raises some error or other."""
    tally = _tally(about["tally"], arrays)
    if about["model"] is None:
        return tally
    if about["model"].keys() != SETTINGS:
        raise ValueError("the model has other settings")
    how, alpha, class_prior, seed = (about["model"][name] for name in ("how", "alpha", "class_prior", "seed"))
    model = estimated(tally, checked_choice(how, alpha, seed, waits=True), class_prior)
    if "weighing" in about:
        model = model.weighed(weighing.put_together(about["weighing"], under(WEIGHING, arrays), tally))
    return model.calibrated(_calibration(about["calibration"], arrays))


def _calibration(method: Any, arrays: Arrays) -> Calibration | None:
    if method is None:
        return None
    return Calibration.from_state(method, {name: array.copy() for name, array in under(CALIBRATION, arrays).items()})


def _tally(about: Mapping[str, Any], arrays: Arrays) -> Tally:
    schema = _schema(about["schema"])
    classes = names_of("classes", about["classes"])
    if None in classes:
        raise TypeError("a class is missing")
    digits, n = about["digits"], len(classes)
    sums = tuple(
        group.counter.restored(group.features, StoredSums(f"{g}.", arrays, digits, keys), n)
        for g, (group, keys) in enumerate(zip(schema.groups, about["keys"], strict=True))
    )
    if type(about["rounded"]) is not bool:
        raise TypeError("sums were rounded or not")
    rows = integers_of("classes", arrays, digits, (n,))
    tally = Tally(schema, classes, rows, sums, whole("skipped", about["skipped"]), about["rounded"])
    beside = {name for name in arrays if name.startswith((CALIBRATION, WEIGHING))}
    known = tally.numbers().keys() | tally.states().keys()
    if digits.keys() != tally.numbers().keys() or known != arrays.keys() - beside:
        raise ValueError("there are arrays, or digits of arrays, that no tally has")
    if not float(tally.n_rows) < MOST_ROWS:
        raise ValueError("there are more rows than can be counted")
    (_check_rounded if tally.rounded else _check_exact)(tally)
    return tally


@dataclass(frozen=True)
class StoredSums:
    """The sums of a group of features in a file, whose arrays have names that begin alike."""

    prefix: str
    every: Arrays
    digits: Mapping[str, Any]
    names: Any

    @property
    def arrays(self) -> Arrays:
        return under(self.prefix, self.every)

    def integers(self, name: str, shape: tuple[int, ...], signed: bool = False) -> Integers:
        return integers_of(self.prefix + name, self.every, self.digits, shape, signed)

    def keys(self, features: Sequence[Feature], check: Callable[[Feature, Any], tuple[Any, ...]]) -> tuple[Any, ...]:
        return tuple(check(feature, names) for feature, names in zip(features, self.names, strict=True))


def _check_exact(tally: Tally) -> None:
    """Sums that are exact are those of rows, in all that can be told."""
    tally.checked()
    for group, sums in zip(tally.schema.groups, tally.sums, strict=True):
        group.counter.check_exact(group.features, sums)


def _check_rounded(tally: Tally) -> None:
    """Of sums that were rounded, each is one that rows can have; how they go together cannot be told.

    What is subtracted from such sums may be more than they have, by what was rounded: each is then cut off at zero by itself. So
    a feature may be left with more rows than its class, and sums of counts may be below zero. What holds on, whatever is added,
    scaled and subtracted: n Σz² ≥ (Σz)², and there is nothing where there are no rows.
    """
    for sums in tally.sums:
        if (some(sums.present) & tally.rows.is_zero()).any():
            raise ValueError("a class without rows has values")
        if not (sums.present.value < MOST_ROWS).all():
            raise ValueError("a feature has more rows than can be counted")


def _schema(about: Mapping[str, Any]) -> Schema:
    for feature in about["features"]:
        if not isinstance(feature["settings"].get("vocabulary"), (list, type(None))):
            raise TypeError("a vocabulary is no list of words")  # a name would be read as that of another file
    schema = Schema.from_dict(about)
    for feature in schema.features:
        if not _is_scale(feature):
            raise ValueError(f"feature {feature.name!r} has no origin or unit")
        if feature.kind not in get_args(Kind) or not set(feature.kinds) <= set(get_args(Kind)):
            raise ValueError(f"feature {feature.name!r} is of the kind {feature.kind!r}, and there is none")
    if not all(isinstance(feature.holds_lists, bool) for feature in schema.features):
        raise TypeError("whether a feature holds lists is neither true nor false")
    texts = [f.name for f in schema.features] + [f.why for f in schema.features] + list(schema.columns)
    texts += [name for feature in schema.features for name in feature.columns]
    texts += [text for pair in schema.left_out.items() for text in pair]
    texts += [text for text in (schema.target, schema.target_kind) if text is not None]
    if not all(isinstance(text, str) for text in texts) or not isinstance(schema.named, bool):
        raise TypeError("a name is no text")
    if len(schema.index) != len(schema.features):
        raise ValueError("two features have one name")
    if not {name for feature in schema.features for name in feature.inputs} <= set(schema.columns):
        raise ValueError("a feature is none of the columns")
    return schema


def _is_scale(feature: Feature) -> bool:
    """Whether a feature has an origin and a unit, as its counter settles them."""
    places = ((feature.origin, feature.unit), *feature.scales)
    if not all(type(part) is float and math.isfinite(part) for place in places for part in place):
        return False
    return all(unit >= 2.0**-1022 for _, unit in places) and feature.counter.is_settled(feature)
