"""What is in a file: a tally as arrays and a JSON text, the settings of a model, its calibration; and all of it checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from banbury import _core, errors
from banbury._core import Integers
from banbury.calibration import Calibration
from banbury.distributions import Bernoulli, Occurrences, Poisson, Text
from banbury.distributions.bernoulli import KEYS as YES_OR_NO
from banbury.distributions.family import Feature, Kind
from banbury.distributions.vocabulary import Pruning, every_word
from banbury.files.checking import Arrays, integers_of, names_of, under, whole
from banbury.naive_bayes import Model, estimate
from banbury.readers import n_threads
from banbury.schema import Schema
from banbury.sums import GRID, MOST_ROWS, Counts, Moments, Products, Words, in_order, some
from banbury.tally import Tally

SETTINGS = {"how", "alpha", "seed", "class_prior"}
APART = ("words.", "calibration.")  # how the names of arrays begin that are not sums
LARGEST_BIN = 2**53
FARTHEST = 2.0**401  # that a value may be from its feature's origin, in units, and a little more


# Taken apart ----------------------------------------------------------------------------------------------------------


def about(thing: Model | Tally) -> dict[str, Any]:
    """All but the arrays, as JSON can hold it."""
    tally = thing.tally if isinstance(thing, Model) else thing
    keys = [[_key(key) for key in keys] for keys in tally.counts.keys]
    sums = {
        "schema": tally.schema.to_dict(),
        "classes": [_key(label) for label in tally.classes],
        "keys": keys,
        "skipped": tally.skipped,
        "digits": {name: numbers.digits for name, numbers in tally.sums().items()},
        "rounded": tally.rounded,
    }
    model = _settings(thing) if isinstance(thing, Model) else None
    calibration = _calibration_of(thing)
    return {"tally": sums, "model": model, "calibration": None if calibration is None else calibration.method}


def _key(key: Any) -> Any:
    """Zeros have no sign, so that equal keys are written alike."""
    if isinstance(key, tuple):
        return [_key(part) for part in key]
    return 0.0 if isinstance(key, float) and key == 0.0 else key


def arrays(thing: Model | Tally) -> Arrays:
    tally = thing.tally if isinstance(thing, Model) else thing
    found: Arrays = {name: numbers.limbs() for name, numbers in tally.sums().items()}
    for i, words in enumerate(tally.words):
        found |= {f"words.{i}.{name}": array for name, array in words.table.state().items()}
    calibration = _calibration_of(thing)
    if calibration is not None:
        found |= {f"calibration.{name}": array for name, array in calibration.state().items()}
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


def without_rare(thing: Model | Tally, min_count: float) -> Model | Tally:
    """The same without the words, of every column of text, that occur fewer times than this in all."""
    tally = thing.tally if isinstance(thing, Model) else thing
    words = tuple(_common(words, min_count) for words in tally.words)
    if all(new is old for new, old in zip(words, tally.words, strict=True)):
        return thing
    fewer = replace(tally, words=words)
    if isinstance(thing, Tally):
        return fewer
    if thing.calibration is not None:
        raise errors.bad_setting(
            "min_count",
            min_count,
            "left out for a calibrated model: all its words had a part in the calibration (see model.calibrated(None))",
        )
    return replace(thing, tally=fewer)


def _common(words: Words, min_count: float) -> Words:
    kept = Pruning(min_count, 0.0, 1.0, 0, None, "count").of(every_word(words.table, by_name=False))
    return words if kept.complete else Words(words.table.only(kept.ids))


# Put together ---------------------------------------------------------------------------------------------------------


def put_together(about: Mapping[str, Any], arrays: Arrays) -> Model | Tally:
    """The tally, or the model estimated anew from it; whatever does not fit raises some error or other."""
    tally = _tally(about["tally"], arrays)
    if about["model"] is None:
        return tally
    if about["model"].keys() != SETTINGS:
        raise ValueError("the model has other settings")
    return estimate(tally, **about["model"]).calibrated(_calibration(about["calibration"], arrays))


def _calibration(method: Any, arrays: Arrays) -> Calibration | None:
    if method is None:
        return None
    return Calibration.from_state(method, {name: array.copy() for name, array in under("calibration.", arrays).items()})


def _tally(about: Mapping[str, Any], arrays: Arrays) -> Tally:
    schema = _schema(about["schema"])
    classes = names_of("classes", about["classes"])
    if None in classes:
        raise TypeError("a class is missing")
    if len(about["keys"]) != len(schema.keyed):
        raise ValueError("keys and features differ in number")
    keys = tuple(_keys(feature, names) for feature, names in zip(schema.keyed, about["keys"], strict=True))
    digits, n = about["digits"], len(classes)
    counts = Counts(keys, integers_of("counts", arrays, digits, (sum(map(len, keys)), n)))
    if counts.without_empty(schema.declared) is not counts:
        raise ValueError("a key has no rows")
    shape = (len(schema.measured), n)
    moments = Moments(
        integers_of("moments.n", arrays, digits, shape),
        integers_of("moments.sums", arrays, digits, (*shape, 2), signed=True),
    )
    words = tuple(_words(f"words.{i}.", f, arrays, n) for i, f in enumerate(schema.texts))
    blocks = tuple(_products(f"products.{i}", f, arrays, digits, n) for i, f in enumerate(schema.blocks))
    if type(about["rounded"]) is not bool:
        raise TypeError("sums were rounded or not")
    rows = integers_of("classes", arrays, digits, (n,))
    skipped = whole("skipped", about["skipped"])
    tally = Tally(schema, classes, rows, counts, moments, words, blocks, skipped, about["rounded"])
    if not digits.keys() == tally.sums().keys() == {name for name in arrays if not name.startswith(APART)}:
        raise ValueError("there are arrays, or digits of arrays, that no tally has")
    if not float(tally.n_rows) < MOST_ROWS:
        raise ValueError("there are more rows than can be counted")
    (_check_rounded if tally.rounded else _check_exact)(tally)
    return tally


def _check_exact(tally: Tally) -> None:
    """Sums that are exact are those of rows, in all that can be told."""
    _check_sums(tally)
    tally.checked()
    check_reach("moments.sums", tally.moments, 1)
    check_counts(tally.schema, tally.moments)
    for i, block in enumerate(tally.products):
        check_reach(f"products.{i}.sums", block, block.n_columns)


def _check_rounded(tally: Tally) -> None:
    """Of sums that were rounded, each is one that rows can have; how they go together cannot be told.

    What is subtracted from such sums may be more than they have, by what was rounded: each is then cut off at zero by itself. So
    a feature may be left with more rows than its class, and sums of counts may be below zero. What holds on, whatever is added,
    scaled and subtracted: n Σz² ≥ (Σz)², and there is nothing where there are no rows.
    """
    _check_sums(tally)
    for present in _present(tally):
        if (some(present) & tally.rows.is_zero()).any():
            raise ValueError("a class without rows has values")
        if not (present.value < MOST_ROWS).all():
            raise ValueError("a feature has more rows than can be counted")


def _present(tally: Tally) -> list[Integers]:
    """Rows that have values, (..., classes), of all features."""
    texts, blocks = (words.texts for words in tally.words), (block.n for block in tally.products)
    return [tally.counts.present, tally.moments.n, *texts, *blocks]


def _check_sums(tally: Tally) -> None:
    """Sums of numbers are finite, and such as rows can have."""
    measured: list[Moments | Products] = [tally.moments, *tally.products]
    for sums in measured:
        if not np.isfinite(sums.sums.values(-2 * GRID)).all():
            raise ValueError("there are sums beyond what can be counted")
        if sums.below_zero().any():
            raise ValueError("there are sums that no rows have")


def _products(name: str, feature: Feature, arrays: Arrays, digits: Any, n_classes: int) -> Products:
    d = len(feature.inputs)
    shape = n_classes, d + d * (d + 1) // 2
    n = integers_of(f"{name}.n", arrays, digits, (n_classes,))
    return Products(n, integers_of(f"{name}.sums", arrays, digits, shape, signed=True))


def check_reach(name: str, sums: Moments | Products, columns: int) -> None:
    """No value is farther out than can be counted."""
    first, second = sums.sums.values(-GRID)[..., :columns], sums.sums.values(-2 * GRID)[..., columns:]
    n = sums.n.value[..., None]
    if (np.abs(first) > n * FARTHEST).any() or (np.abs(second) > n * FARTHEST**2).any():
        raise ValueError(f"{name} are beyond what can be counted")


def check_counts(schema: Schema, moments: Moments) -> None:
    """Counts are not below zero."""
    for f, feature in enumerate(schema.measured):
        if isinstance(feature.family, Poisson):
            n, total = moments.n.value[f], moments.sums.values(-GRID)[f, :, 0] * feature.unit
            if (total + n * feature.origin < -1e-6 * np.maximum(np.abs(n * feature.origin), 1.0)).any():
                raise ValueError(f"feature {feature.name!r} has counts below 0")


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
    """Whether a feature has an origin and a unit: of what is measured, a power of two."""
    if not type(feature.origin) is type(feature.unit) is float or not math.isfinite(feature.origin):
        return False
    shape, bins = feature.family.shape, feature.family.shape == "bins"
    power = shape != "moments" and not (bins and feature.columns)
    if not (power or math.frexp(feature.unit)[0] == 0.5) or not 2.0**-1022 <= feature.unit < math.inf:
        return False
    scaled = len(feature.columns) if bins or shape == "products" else 0
    return len(feature.scales) == scaled and all(_is_place(*scale, power=not bins) for scale in feature.scales)


def _is_place(origin: Any, unit: Any, power: bool) -> bool:
    """Of a block's column: where it begins, and its unit, a power of two, or the width of its bins."""
    if not type(origin) is type(unit) is float or not math.isfinite(origin):
        return False
    return 2.0**-1022 <= unit < math.inf and (not power or math.frexp(unit)[0] == 0.5)


def _words(prefix: str, feature: Feature, arrays: Arrays, n_classes: int) -> Words:
    state = under(prefix, arrays)
    if isinstance(feature.family, Occurrences):
        table = _core.Words.from_state(
            n_classes, feature.family.table(feature, n_classes).buckets, state, n_threads(None)
        )
        if table.n_ids > len(feature.columns):
            raise ValueError(f"{feature.name!r} has occurrences of more columns than it has")
        return Words(table)
    assert isinstance(feature.family, Text)
    buckets = feature.family.buckets or 0
    return Words(_core.Words.from_state(n_classes, buckets, state, n_threads(None)), waits=True)


def _combinations(feature: Feature, names: Any) -> tuple[Any, ...]:
    keys: Any = tuple(tuple(name) for name in names)
    width = len(feature.inputs)
    if len(feature.kinds) != width or not all(len(key) == width for key in keys):
        raise ValueError(f"the keys of {feature.name!r} are not combinations of its columns")
    for part in (part for key in keys for part in key):
        if not isinstance(part, (bool, int, float, str)) or part != part:
            raise TypeError(f"the keys of {feature.name!r} are not all combinations of values")
    if in_order(set(keys)) != keys:
        raise ValueError(f"the keys of {feature.name!r} are not in order, or not each once")
    return tuple(keys)


def _cells(feature: Feature, names: Any) -> tuple[Any, ...]:
    """The numbers of bins, one for each column of a block."""
    keys = tuple(tuple(name) for name in names)
    width = len(feature.inputs)
    fit = all(len(key) == width and all(type(b) is int and abs(b) <= LARGEST_BIN for b in key) for key in keys)
    if not fit or tuple(sorted(set(keys))) != keys:
        raise ValueError(f"the keys of {feature.name!r} are not the numbers of cells, in order and each once")
    return keys


def _keys(feature: Feature, names: Any) -> tuple[Any, ...]:
    if feature.columns and feature.family.shape == "bins":
        return _cells(feature, names)
    if feature.columns:
        return _combinations(feature, names)
    keys = names_of(f"the keys of {feature.name!r}", names)
    if feature.family.shape == "bins" and not all(type(key) is int and abs(key) <= LARGEST_BIN for key in keys):
        raise ValueError(f"the keys of {feature.name!r} are not the numbers of bins")
    if isinstance(feature.family, Bernoulli) and keys != YES_OR_NO:
        raise ValueError(f"the keys of {feature.name!r} are not False and True")
    return keys
