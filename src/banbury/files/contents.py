"""Converts tallies and models to JSON and arrays and back, and checks everything that comes from a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from banbury import errors
from banbury._core import Integers
from banbury.families.bags.words import without_rare_words
from banbury.families.family import Choice, Feature, Features, Kind
from banbury.families.keys import check_scalar_order
from banbury.files.checking import Arrays, JsonObject, check, integers_of, reading_of, under
from banbury.model.naive_bayes import Model, choice_of, model_under
from banbury.sums import MOST_ROWS, WORD_STATES, Words, is_nonzero
from banbury.tally.label_sets import EVERY
from banbury.tally.schema import Schema
from banbury.tally.tally import Tally

if TYPE_CHECKING:  # imported only when needed
    from banbury.labels import LabelModel
    from banbury.quality.calibration import Calibration
    from banbury.weighing import Weighing

SETTINGS = {"how", "alpha", "seed", "class_prior"}  # of a model
KINDS = set(get_args(Kind))
CALIBRATION = "calibration."  # prefixes of array names
WEIGHING = "weighing."


# Taken apart ----------------------------------------------------------------------------------------------------------


def about(saved: Model | Tally) -> JsonObject:
    """Returns the JSON object of ``saved``, a tally or model: everything but the arrays."""
    tally = saved.tally if isinstance(saved, Model) else saved
    identity = {  # the keys are those of each group of features, of each feature in it
        "schema": tally.schema.to_dict(),
        "classes": [_key(label) for label in tally.classes],
        "keys": [[[_key(key) for key in keys] for keys in sums.keys] for sums in tally.sums],
    }
    model = None
    calibration = calibration_of(saved)
    current_weighing = _weighing_of(saved)
    weighing_entry = {}
    if isinstance(saved, Model):
        prior = saved.class_prior  # a name, a number, or probabilities in the order of the classes or by name
        choice = saved.choice  # how parameters are estimated
        if isinstance(prior, Mapping):
            prior = [prior[name] for name in saved.classes]
        elif prior is not None and not isinstance(prior, (str, int, float)):
            prior = np.asarray(prior, dtype=np.float64).tolist()
        model = {**about_choice(choice), "seed": choice.seed, "class_prior": prior}
    if current_weighing is not None:
        from banbury.files import weighing

        weighing_entry = {"weighing": weighing.about(current_weighing)}
    tally_entry = identity | about_sums(tally)
    return {"tally": tally_entry, "model": model, "calibration": calibration and calibration.method, **weighing_entry}


def about_choice(choice: Choice) -> JsonObject:
    """Returns how a model is estimated, its prior, and with how many folds that was chosen, for JSON."""
    folds = {} if choice.n_folds is None else {"folds": choice.n_folds}
    return {"how": choice.how, "alpha": choice.alpha, **folds}


def restore_choice(about: JsonObject, seed: Any) -> Choice:
    """Returns the estimation settings in a file. ``about`` is the JSON object that has them; ``seed`` is that of the
    choice.
    """
    n_folds = about.get("folds")
    check(n_folds is None or (type(n_folds) is int and n_folds >= 2), "the number of folds is less than two")
    return replace(choice_of(about["how"], about["alpha"], seed, waits=True), n_folds=n_folds)


def about_sums(tally: Tally) -> JsonObject:
    """Returns what a tally contains besides its arrays and the keys of its sums, for JSON: the number of rows without a
    class, the decimal digits of each array, whether sums were rounded, and the names of its parts.
    """
    return {
        "skipped": tally.skipped,
        "digits": {name: numbers.digits for name, numbers in tally.numbers().items()},
        "rounded": tally.rounded,
        **({"parts": sorted(tally.parts)} if tally.parts else {}),
    }


def _key(key: Any) -> Any:
    """Returns a key as JSON can hold it: a list for a tuple, and 0.0 for −0.0, so that equal keys are written alike."""
    if isinstance(key, tuple):
        return [_key(element) for element in key]
    return 0.0 if isinstance(key, float) and key == 0.0 else key


def arrays(saved: Model | Tally) -> Arrays:
    """Returns the arrays of ``saved``, a tally or model, by name."""
    tally = saved.tally if isinstance(saved, Model) else saved
    # Whole numbers as 64-bit limbs on the last axis, and what else the sums of each group need.
    state: Arrays = {name: numbers.limbs() for name, numbers in tally.numbers().items()} | tally._states()
    if (calibration := calibration_of(saved)) is not None:
        state |= {f"{CALIBRATION}{name}": array for name, array in calibration.state().items()}
    if (current_weighing := _weighing_of(saved)) is not None:
        from banbury.files import weighing

        state |= {f"{WEIGHING}{name}": array for name, array in weighing.state_of(current_weighing).items()}
    return {name: np.ascontiguousarray(array) for name, array in state.items()}


def calibration_of(model: Any) -> Calibration | None:
    """Returns the calibration of a model or network; None for a tally, or if there is none. Raises BadSetting for one
    that cannot be saved.
    """
    if isinstance(model, Tally) or model.calibration is None:
        return None
    from banbury.quality.calibration import Calibration

    if not isinstance(model.calibration, Calibration):
        raise errors.bad_setting(
            f"the {'model' if isinstance(model, Model) else 'network'}'s calibration",
            type(model.calibration).__name__,
            "a calibration from bb.calibrate",
        )
    return model.calibration


def _weighing_of(model: Model | Tally) -> Weighing | None:
    """Returns the weights of a model without values that no row has any more; None for a tally, or if it is not
    weighed. Raises BadSetting for weights that cannot be saved.
    """
    if not isinstance(model, Model) or model.weighing is None:
        return None
    from banbury.weighing import Weighing

    if not isinstance(model.weighing, Weighing):
        raise errors.bad_setting("the model's weighing", type(model.weighing).__name__, "a weighing from bb.weigh")
    return model.weighing._without_forgotten(model.tally)


def without_rare(saved: Model | Tally | LabelModel, min_count: float) -> Model | Tally | LabelModel:
    """Returns a copy of ``saved`` without the words that occur fewer than ``min_count`` times in all rows, in every
    text column; itself if there are none.
    """
    if not min_count:
        return saved
    tally = saved if isinstance(saved, Tally) else saved.tally
    # The number of the class that counts all rows, of a tally with several labels per row; else None.
    class_of_all = None if tally.schema.labels is None or not tally.classes else tally.classes.index(EVERY)
    trimmed_sums = tuple(
        without_rare_words(sums, min_count, class_of_all) if isinstance(sums, Words) else sums for sums in tally.sums
    )
    if all(trimmed is full for trimmed, full in zip(trimmed_sums, tally.sums, strict=True)):  # nothing was left out
        return saved
    trimmed_tally = replace(tally, sums=trimmed_sums)
    if isinstance(saved, Tally):
        return trimmed_tally
    errors.require(
        saved.calibration is None,
        "min_count",
        min_count,
        "omitted for a calibrated model, because all its words took part in the calibration (see model.calibrated(None))",
    )
    return replace(saved, tally=trimmed_tally)


# Put together ---------------------------------------------------------------------------------------------------------


def from_json_and_arrays(about: JsonObject, arrays: Arrays) -> Model | Tally:
    """Returns the tally, or the model derived from it, of a file: ``about`` is its JSON object, and ``arrays`` are its
    arrays by name. Raises some exception if the contents are inconsistent.
    """
    tally = _tally(about["tally"], arrays)
    if about["model"] is None:
        return tally
    settings = about["model"]
    check(settings.keys() - {"folds"} == SETTINGS, "the model's settings are missing or unknown")
    model = model_under(tally, restore_choice(settings, settings["seed"]), settings["class_prior"])
    if "weighing" in about:
        from banbury.files import weighing

        model = model.weighed(weighing.from_json_and_arrays(about["weighing"], under(WEIGHING, arrays), tally))
    return restore_calibration(model, about, arrays)  # type: ignore[no-any-return]


def restore_calibration(model: Any, about: JsonObject, arrays: Arrays) -> Any:
    """Returns the model or network with the calibration in the file, or unchanged if there is none. ``about`` and
    ``arrays`` are the JSON object and the arrays of the file.
    """
    state = {name: array.copy() for name, array in under(CALIBRATION, arrays).items()}
    if (method := about["calibration"]) is None:
        check(not state, "there are arrays of a calibration, but no calibration")
        return model
    from banbury.quality.calibration import Calibration

    return model.calibrated(Calibration.from_state(method, state))


def _is_state(sums: Any, names: set[str]) -> bool:
    """Returns whether ``names`` are those of the arrays that these sums need besides numbers. Does not ask Words for
    its state, which would sort them.
    """
    return names in WORD_STATES if isinstance(sums, Words) else names == sums.state().keys()


def _tally(about: JsonObject, arrays: Arrays) -> Tally:
    """Returns the tally in a file. ``about`` is its object there, and ``arrays`` are those of the file. Raises an error
    if they are inconsistent.
    """
    classes = check_scalar_order("classes", about["classes"])
    check(None not in classes, "a class is missing")
    return restore_tally(_schema(about["schema"]), classes, about, arrays)


def restore_tally(schema: Schema, classes: tuple[Any, ...], about: JsonObject, arrays: Arrays) -> Tally:
    """Returns the tally of a schema and classes. ``about`` and ``arrays`` are its JSON object and arrays in a file.

    Raises an error if the sums cannot be those of rows, or arrays are missing or do not belong to it.
    """
    digits = about["digits"]  # decimal digits after the point, by name of array
    n_classes = len(classes)
    is_exact = about["rounded"] is False
    # For each group of features of one family.
    sums = tuple(
        group.counter.restore(group.features, StoredSums(f"{group_number}.", arrays, digits, keys, is_exact), n_classes)
        for group_number, (group, keys) in enumerate(zip(schema.groups, about["keys"], strict=True))
    )
    rounded = about["rounded"]  # whether some sums are no longer exact
    skipped = about["skipped"]  # the number of rows without a class
    rows = integers_of("classes", arrays, digits, (n_classes,))  # the number of rows of each class
    check(type(rounded) is bool, "rounded is neither true nor false")
    check(type(skipped) is int and 0 <= skipped < 2**63, "skipped is not a non-negative whole number")
    parts = about.get("parts", [])  # the names of the partitions that were counted, if they had names
    check(isinstance(parts, list) and set(map(type, parts)) <= {str}, "the names of parts are not texts")
    check(len(set(parts)) == len(parts), "two parts have the same name")
    tally = Tally(schema, classes, rows, sums, skipped, rounded, frozenset(parts))
    model_arrays = {name for name in arrays if name.startswith((CALIBRATION, WEIGHING))}
    sum_arrays = arrays.keys() - model_arrays - tally.numbers().keys()
    state_names = (  # for each group the names of its arrays without its number
        {name.removeprefix(f"{group_number}.") for name in sum_arrays if name.startswith(f"{group_number}.")}
        for group_number in range(len(sums))
    )
    are_complete = all(_is_state(group_sums, names) for group_sums, names in zip(sums, state_names, strict=True))
    are_consistent = (
        digits.keys() == tally.numbers().keys() and tally.numbers().keys() <= arrays.keys() and are_complete
    )
    are_consistent = are_consistent and all(name.partition(".")[0] in map(str, range(len(sums))) for name in sum_arrays)
    check(are_consistent, "there are arrays, or digits of arrays, that do not belong to the tally")
    check(float(tally.n_rows) < MOST_ROWS, "there are more rows than can be counted")
    if rounded:
        _check_rounding(tally)
    else:  # sums that are exact are those of rows, in all that can be told
        tally._verify()
    return tally


@dataclass(frozen=True)
class StoredSums:
    """The stored sums of a group of features, whose array names begin with ``prefix``."""

    prefix: str
    all_arrays: Arrays  # of the file
    digits: JsonObject  # decimal digits after the point, by name of array
    json_keys: Any  # for each feature the keys of its sums, as JSON has them
    exact: bool  # whether none was rounded

    @property
    def arrays(self) -> Arrays:
        """The arrays of this group, without the prefix."""
        return under(self.prefix, self.all_arrays)

    def integers(self, name: str, shape: tuple[int, ...], signed: bool = False) -> Integers:
        """Returns the whole numbers of the array ``name`` (without the prefix), checked as in ``integers_of``."""
        return integers_of(self.prefix + name, self.all_arrays, self.digits, shape, signed)

    def keys(self, features: Features, check: Callable[[Feature, Any], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Returns the keys of each feature. ``check`` takes a feature and its keys as JSON has them, which
        ``json_keys`` has for each feature, and returns them checked.
        """
        return tuple(check(feature, json_keys) for feature, json_keys in zip(features, self.json_keys, strict=True))


def _check_rounding(tally: Tally) -> None:
    """Raises ValueError if the tally has values in a class without rows, or too many rows with a value of a feature,
    which rounding does not explain.
    """
    for sums in tally.sums:
        check(not (is_nonzero(sums.present) & tally.rows.is_zero()).any(), "a class without rows has values")
        check((sums.present.value < MOST_ROWS).all(), "a feature has more rows than can be counted")


def _schema(about: JsonObject) -> Schema:
    """Returns the schema that the object ``about`` of a file describes. Raises an error if it is inconsistent."""
    vocabularies = [feature["settings"].get("vocabulary") for feature in about["features"]]
    are_lists = all(isinstance(words, (list, type(None))) for words in vocabularies)
    check(are_lists, "a vocabulary is not a list of words")  # a text would be taken for the name of another file
    for entry in about["features"]:
        _check_numbers(entry)
    schema = Schema.from_dict({**about, "reading": reading_of(about)})
    _check_features(schema.features)
    names = schema.features.names
    blocks = [
        schema.features[feature_number] for feature_number in schema.features.where(lambda template: template.columns)
    ]
    texts = [name for block in blocks for name in block.columns]  # all that have to be texts, besides names
    texts += [text for pair in schema.left_out.items() for text in pair]
    texts += [text for text in (schema.target, schema.target_kind) if text is not None]
    types = {type(text) for names_or_texts in (names, schema.columns, texts) for text in names_or_texts}
    types |= {type(template.why) for template in schema.features.templates}
    check(types <= {str} and isinstance(schema.named, bool), "a name is not a text")
    distinct_names = set(names)
    columns = set(schema.columns)
    check(len(distinct_names) == len(names), "two features have the same name")
    if blocks:
        distinct_names = distinct_names.difference(block.name for block in blocks).union(
            *(block.columns for block in blocks)
        )
    check(distinct_names <= columns, "a feature is not one of the columns")
    return schema


def _check_numbers(entry: JsonObject) -> None:
    """Raises ValueError unless the origins and units of a feature, or of a group of features, are finite floats.
    ``entry`` is its JSON object.
    """
    is_group = isinstance(entry["name"], list)
    # One per feature.
    names, origins, units = (entry[field] if is_group else [entry[field]] for field in ("name", "origin", "unit"))
    for numbers, noun in ((origins, "origin"), (units, "origin or unit")):
        if not set(map(type, numbers)) <= {float} or not np.isfinite(numbers).all():
            feature_name = next(
                name
                for name, number in zip(names, numbers, strict=False)
                if type(number) is not float or not math.isfinite(number)
            )
            raise ValueError(f"feature {feature_name!r} has no {noun}")


def _check_features(features: Features) -> None:
    """Raises ValueError unless each feature is scaled as its counter requires. Units are powers of two, so a million
    columns have few.
    """
    # The units that occur, and the number of each feature's unit among them; ``codes`` has that of its template.
    units, unit_numbers = np.unique(features.units, return_inverse=True)
    # One number for each combination of template, unit and whether there is an origin; one feature of each is checked.
    scale_codes = (features.codes * np.int64(len(units)) + unit_numbers) * 2 + (features.origins != 0.0)
    for feature_number in np.unique(scale_codes, return_index=True)[1].tolist():
        feature = features[feature_number]
        scales = ((feature.origin, feature.unit), *feature.scales)  # pairs of origin and unit
        are_finite = all(type(number) is float and math.isfinite(number) for scale in scales for number in scale)
        is_valid = (
            are_finite and all(unit >= 2.0**-1022 for _, unit in scales) and feature.counter.has_valid_scale(feature)
        )
        check(is_valid, f"feature {feature.name!r} has no origin or unit")
        has_known_kind = {feature.kind, *feature.kinds} <= KINDS
        check(has_known_kind, f"feature {feature.name!r} is of the unknown kind {feature.kind!r}")
        check(isinstance(feature.holds_lists, bool), "holds_lists is neither true nor false")
