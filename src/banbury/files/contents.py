"""What is in a file: a tally as arrays and a JSON text, the settings of a model, its calibration; and all of it checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from banbury import errors
from banbury._core import Integers
from banbury.families.bags.words import without_rare_words
from banbury.families.family import Choice, Feature, Kind
from banbury.families.keys import names_of
from banbury.files.checking import Arrays, check, integers_of, reading_of, under
from banbury.model.naive_bayes import Model, choice_of, model_under
from banbury.sums import MOST_ROWS, WORD_STATES, Words, some
from banbury.tally.label_sets import EVERY
from banbury.tally.schema import Schema
from banbury.tally.tally import Tally

if TYPE_CHECKING:  # few models have one: imported with the first
    from banbury.labels import LabelModel
    from banbury.quality.calibration import Calibration
    from banbury.weighing import Weighing

SETTINGS = {"how", "alpha", "seed", "class_prior"}
KINDS = set(get_args(Kind))
CALIBRATION = "calibration."  # how the names of their arrays begin
WEIGHING = "weighing."


# Taken apart ----------------------------------------------------------------------------------------------------------


def about(saved: Model | Tally) -> dict[str, Any]:
    """All but the arrays, as JSON can hold it."""
    tally = saved.tally if isinstance(saved, Model) else saved
    identity = {
        "schema": tally.schema.to_dict(),
        "classes": [_key(label) for label in tally.classes],
        "keys": [[[_key(key) for key in keys] for keys in sums.keys] for sums in tally.sums],
    }
    model = None
    calibration = calibration_of(saved)
    weighed = _weighing_of(saved)
    weighing_entry = {}
    if isinstance(saved, Model):
        prior = saved.class_prior
        choice = saved.choice
        if isinstance(prior, Mapping):
            prior = [prior[name] for name in saved.classes]
        elif prior is not None and not isinstance(prior, (str, int, float)):
            prior = np.asarray(prior, dtype=np.float64).tolist()
        model = {**about_choice(choice), "seed": choice.seed, "class_prior": prior}
    if weighed is not None:
        from banbury.files import weighing

        weighing_entry = {"weighing": weighing.about(weighed)}
    tally_entry = identity | about_sums(tally)
    return {"tally": tally_entry, "model": model, "calibration": calibration and calibration.method, **weighing_entry}


def about_choice(choice: Choice) -> dict[str, Any]:
    """How a model is estimated, and over how many folds that was chosen, if it was."""
    folds = {} if choice.n_folds is None else {"folds": choice.n_folds}
    return {"how": choice.how, "alpha": choice.alpha, **folds}


def restore_choice(about: Mapping[str, Any], seed: Any) -> Choice:
    """The choice that a file has."""
    n_folds = about.get("folds")
    check(n_folds is None or (type(n_folds) is int and n_folds >= 2), "the number of folds is less than two")
    return replace(choice_of(about["how"], about["alpha"], seed, waits=True), n_folds=n_folds)


def about_sums(tally: Tally) -> dict[str, Any]:
    """What a tally says beside what its sums are of."""
    return {
        "skipped": tally.skipped,
        "digits": {name: numbers.digits for name, numbers in tally.numbers().items()},
        "rounded": tally.rounded,
        **({"parts": sorted(tally.parts)} if tally.parts else {}),
    }


def _key(key: Any) -> Any:
    """Zeros have no sign, so that equal keys are written alike."""
    if isinstance(key, tuple):
        return [_key(part) for part in key]
    return 0.0 if isinstance(key, float) and key == 0.0 else key


def arrays(saved: Model | Tally) -> Arrays:
    tally = saved.tally if isinstance(saved, Model) else saved
    state: Arrays = {name: numbers.limbs() for name, numbers in tally.numbers().items()} | tally.states()
    if (calibration := calibration_of(saved)) is not None:
        state |= {f"{CALIBRATION}{name}": array for name, array in calibration.state().items()}
    if (weighed := _weighing_of(saved)) is not None:
        from banbury.files import weighing

        state |= {f"{WEIGHING}{name}": array for name, array in weighing.state_of(weighed).items()}
    return {name: np.ascontiguousarray(array) for name, array in state.items()}


def calibration_of(model: Any) -> Calibration | None:
    """Of a model or a network."""
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
    """Without the names of values that no row has any more."""
    if not isinstance(model, Model) or model.weighing is None:
        return None
    from banbury.weighing import Weighing

    if not isinstance(model.weighing, Weighing):
        raise errors.bad_setting("the model's weighing", type(model.weighing).__name__, "a weighing from bb.weigh")
    return model.weighing.without_forgotten(model.tally)


def without_rare(saved: Model | Tally | LabelModel, min_count: float) -> Model | Tally | LabelModel:
    """The same without the words, of every column of text, that occur fewer times than this in all rows."""
    if not min_count:
        return saved
    tally = saved if isinstance(saved, Tally) else saved.tally
    every = None if tally.schema.labels is None or not tally.classes else tally.classes.index(EVERY)
    common = tuple(
        without_rare_words(sums, min_count, every) if isinstance(sums, Words) else sums for sums in tally.sums
    )
    if all(new is old for new, old in zip(common, tally.sums, strict=True)):
        return saved
    fewer = replace(tally, sums=common)
    if isinstance(saved, Tally):
        return fewer
    errors.require(
        saved.calibration is None,
        "min_count",
        min_count,
        "omitted for a calibrated model, because all its words took part in the calibration (see model.calibrated(None))",
    )
    return replace(saved, tally=fewer)


# Put together ---------------------------------------------------------------------------------------------------------


def put_together(about: Mapping[str, Any], arrays: Arrays) -> Model | Tally:
    """The tally, or the model estimated anew from it; whatever does not fit raises some error or other."""
    tally = _tally(about["tally"], arrays)
    if about["model"] is None:
        return tally
    settings = about["model"]
    check(settings.keys() - {"folds"} == SETTINGS, "the model's settings are missing or unknown")
    model = model_under(tally, restore_choice(settings, settings["seed"]), settings["class_prior"])
    if "weighing" in about:
        from banbury.files import weighing

        model = model.weighed(weighing.put_together(about["weighing"], under(WEIGHING, arrays), tally))
    return restore_calibration(model, about, arrays)  # type: ignore[no-any-return]


def restore_calibration(model: Any, about: Mapping[str, Any], arrays: Arrays) -> Any:
    """The model or network with the calibration that the file has for it, if it has one."""
    state = {name: array.copy() for name, array in under(CALIBRATION, arrays).items()}
    if (method := about["calibration"]) is None:
        check(not state, "there are arrays of a calibration, but no calibration")
        return model
    from banbury.quality.calibration import Calibration

    return model.calibrated(Calibration.from_state(method, state))


def _is_state(sums: Any, names: set[str]) -> bool:
    """Whether sums have a state of these names. Of words it is not made to see: that would sort them all."""
    return names in WORD_STATES if isinstance(sums, Words) else names == sums.state().keys()


def _tally(about: Mapping[str, Any], arrays: Arrays) -> Tally:
    classes = names_of("classes", about["classes"])
    check(None not in classes, "a class is missing")
    return restore_tally(_schema(about["schema"]), classes, about, arrays)


def restore_tally(schema: Schema, classes: tuple[Any, ...], about: Mapping[str, Any], arrays: Arrays) -> Tally:
    """The tally of these features and classes; raises where the sums are not those of rows."""
    digits = about["digits"]
    n = len(classes)
    exact = about["rounded"] is False
    sums = tuple(
        group.counter.restore(group.features, StoredSums(f"{g}.", arrays, digits, keys, exact), n)
        for g, (group, keys) in enumerate(zip(schema.groups, about["keys"], strict=True))
    )
    rounded = about["rounded"]
    skipped = about["skipped"]
    rows = integers_of("classes", arrays, digits, (n,))
    check(type(rounded) is bool, "rounded is neither true nor false")
    check(type(skipped) is int and 0 <= skipped < 2**63, "skipped is not a non-negative whole number")
    held = about.get("parts", [])
    check(isinstance(held, list) and set(map(type, held)) <= {str}, "the names of parts are not texts")
    check(len(set(held)) == len(held), "two parts have the same name")
    tally = Tally(schema, classes, rows, sums, skipped, rounded, frozenset(held))
    beside = {name for name in arrays if name.startswith((CALIBRATION, WEIGHING))}
    rest = arrays.keys() - beside - tally.numbers().keys()
    states = ({name.removeprefix(f"{g}.") for name in rest if name.startswith(f"{g}.")} for g in range(len(sums)))
    complete = all(_is_state(group_sums, names) for group_sums, names in zip(sums, states, strict=True))
    alike = digits.keys() == tally.numbers().keys() and tally.numbers().keys() <= arrays.keys() and complete
    alike = alike and all(name.partition(".")[0] in map(str, range(len(sums))) for name in rest)
    check(alike, "there are arrays, or digits of arrays, that do not belong to the tally")
    check(float(tally.n_rows) < MOST_ROWS, "there are more rows than can be counted")
    if rounded:
        _check_rounding(tally)
    else:  # sums that are exact are those of rows, in all that can be told
        tally.verify()
    return tally


@dataclass(frozen=True)
class StoredSums:
    """The sums of a group of features in a file, whose arrays have names that begin alike."""

    prefix: str
    every: Arrays
    digits: Mapping[str, Any]
    names: Any
    exact: bool  # none of them was rounded

    @property
    def arrays(self) -> Arrays:
        return under(self.prefix, self.every)

    def integers(self, name: str, shape: tuple[int, ...], signed: bool = False) -> Integers:
        return integers_of(self.prefix + name, self.every, self.digits, shape, signed)

    def keys(self, features: Sequence[Feature], check: Callable[[Feature, Any], tuple[Any, ...]]) -> tuple[Any, ...]:
        return tuple(check(feature, names) for feature, names in zip(features, self.names, strict=True))


def _check_rounding(tally: Tally) -> None:
    """Raises where a class without rows has values, or a feature has too many rows: rounding leaves both as they were."""
    for sums in tally.sums:
        check(not (some(sums.present) & tally.rows.is_zero()).any(), "a class without rows has values")
        check((sums.present.value < MOST_ROWS).all(), "a feature has more rows than can be counted")


def _schema(about: Mapping[str, Any]) -> Schema:
    vocabularies = [feature["settings"].get("vocabulary") for feature in about["features"]]
    listed = all(isinstance(words, (list, type(None))) for words in vocabularies)
    check(listed, "a vocabulary is not a list of words")  # a name would be read as that of another file
    schema = Schema.from_dict({**about, "reading": reading_of(about)})
    start = 0
    for entry in about["features"]:
        stop = start + (len(entry["name"]) if isinstance(entry["name"], list) else 1)
        _check_alike(schema.features[start:stop])
        start = stop
    names = [f.name for f in schema.features]
    blocks = [f for f in schema.features if f.columns]
    texts = [name for block in blocks for name in block.columns]
    texts += [text for pair in schema.left_out.items() for text in pair]
    texts += [text for text in (schema.target, schema.target_kind) if text is not None]
    types = {type(text) for names_or_texts in (names, schema.columns, texts) for text in names_or_texts}
    types |= {type(f.why) for f in schema.features}
    check(types <= {str} and isinstance(schema.named, bool), "a name is not a text")
    distinct = set(names)
    columns = set(schema.columns)
    check(len(distinct) == len(names), "two features have the same name")
    if blocks:
        distinct = distinct.difference(block.name for block in blocks).union(*(block.columns for block in blocks))
    check(distinct <= columns, "a feature is not one of the columns")
    return schema


def _check_alike(features: Sequence[Feature]) -> None:
    """Raises unless features that differ in name, origin and unit alone are as their counter settles them."""
    lost = next((f.name for f in features if type(f.origin) is not float or not math.isfinite(f.origin)), None)
    check(lost is None, f"feature {lost!r} has no origin")
    for feature in {(type(f.unit), f.unit): f for f in features}.values():  # powers of two: of a million there are few
        places = ((feature.origin, feature.unit), *feature.scales)
        finite = all(type(part) is float and math.isfinite(part) for place in places for part in place)
        settled = finite and all(unit >= 2.0**-1022 for _, unit in places) and feature.counter.has_valid_scale(feature)
        check(settled, f"feature {feature.name!r} has no origin or unit")
        has_known_kind = {feature.kind, *feature.kinds} <= KINDS
        check(has_known_kind, f"feature {feature.name!r} is of the unknown kind {feature.kind!r}")
        check(isinstance(feature.holds_lists, bool), "holds_lists is neither true nor false")
