"""Options as the library takes them: numbers, lists, families and their settings."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from banbury import errors
from banbury.families import FAMILIES
from banbury.reading import read
from banbury.reading.options import SETTINGS
from banbury.tally.schema import Schema

LISTS = ("stop_words", "values")
WITH_COMMAS = ("ngrams", "stop_words", "vocabulary", "only")  # settings of a text whose one value may hold several
TABS = ("tab", "\\t")
TOGETHER = (
    "a family that models columns jointly, because + joins them: gaussian,covariance=full (or tied, shrunk), kernel_density, "
    "histogram or joint"
)


def reading(args: Namespace) -> dict[str, Any]:
    """How the input is read: what was said here, and how the data of the model were read."""
    words = {**vars(args), "columns": args.names}
    settings = {name: words[name] for name in (*SETTINGS, "remembered") if words[name] is not None}
    for name in ("columns", "missing_values", "headers"):
        if name in settings and not (name == "headers" and settings[name] in ("keep", "drop", "columns")):
            settings[name] = settings[name].split(",")
    if args.delimiter in TABS:
        settings["delimiter"] = "\t"
    if args.format in ("csv", "json"):
        settings["format"] = "auto"
    return settings


def counting(args: Namespace, data: Any) -> dict[str, Any]:
    """What is counted, and how it is read. The columns of text, which ``--text`` is about, are found out."""
    counted = counting_any_text(args, data)
    settings = text_settings(args.text)
    families = counted["features"]
    errors.require(not settings or families != "choose", "--text", args.text, "omitted with --features choose")
    if settings:
        schema = Schema.infer(data, args.target, features=families, missing=args.missing or "skip", **reading(args))
        counted["features"] = _with_text(families, schema, settings)
    return counted


def counting_any_text(args: Namespace, data: Any) -> dict[str, Any]:
    """The same where settings of texts are tried rather than counted."""
    return {
        "features": _features(args, data),
        "weights": args.weights,
        "missing": args.missing or "skip",
        **reading(args),
    }


def _features(args: Namespace, data: Any) -> Any:

    def columns() -> Collection[str]:
        first = next(iter(read(data, **reading(args))), None)
        return () if first is None else first.names

    return features(args.features, columns)


def _with_text(families: Any, schema: Schema, settings: Mapping[str, Any]) -> dict[str, Any]:
    texts = {f.name: replace(f.family, **settings) for f in schema.features if f.reads_text}  # type: ignore[type-var]
    if not texts:
        raise errors.bad_setting("--text", dict(settings), "omitted when no column is text")
    if isinstance(families, Mapping):
        return {**families, **texts}
    rest = {} if families == "auto" else {f.name: f.family for f in schema.features}
    return {**rest, **texts}


def estimating(args: Namespace, data: Any) -> dict[str, Any]:
    """How a model of the data is estimated; ``alpha`` is a number, several, or "auto"."""
    prior = _prior(args.class_prior)
    if isinstance(prior, Mapping):  # names of classes are of the kind that the column is
        kinds = {"integer": int, "float": (int, float), "boolean": bool}
        kind: Any = kinds.get(Schema.infer(data, args.target, **reading(args)).target_kind or "", ())
        prior = {value if isinstance(value := _value(name), kind) else name: p for name, p in prior.items()}
    return {"how": args.how, "alpha": _alpha(str(args.alpha)), "class_prior": prior, "seed": args.seed}


def estimating_any(args: Namespace, data: Any) -> dict[str, Any]:
    """The same where several ways may be tried."""
    return {**estimating(args, data), "how": args.how.split(",")}


def estimating_from(args: Namespace, classes: Sequence[Any]) -> dict[str, Any]:
    """The same, of a tally of these classes."""
    prior = _prior(args.class_prior)
    prior = {as_label(name, classes): p for name, p in prior.items()} if isinstance(prior, Mapping) else prior
    return {"how": args.how, "alpha": _alpha(str(args.alpha)), "class_prior": prior, "seed": args.seed}


def estimating_network(args: Namespace) -> dict[str, Any]:
    """How the tables of a network are estimated; raises where something is said that only a model has."""
    alpha = _alpha(args.alpha)
    errors.require(isinstance(alpha, float), "--alpha", args.alpha, "a single number for a network")
    if args.class_prior is not None:
        raise errors.bad_setting(
            "--class-prior", args.class_prior, "omitted for a network, because each node has its own"
        )
    errors.require(not args.text, "--text", args.text, "omitted for a network, because its nodes are not texts")
    return {"how": args.how, "alpha": alpha, "seed": args.seed}


def bins(text: str | None) -> Any:
    """How a tree cuts numbers: into so many bins, or where the classes change."""
    return "mdl" if text is None else int(text) if text.isdecimal() else text


def new_estimation_settings(args: Namespace, schema: Schema) -> dict[str, Any]:
    """The families of a tally's columns with other settings of how they are estimated."""
    named = features(args.features, lambda: schema.columns)
    if named != "auto" and not isinstance(named, Mapping):
        raise errors.bad_setting(
            "--features", args.features[0], "COLUMN=FAMILY, because each column already has a family"
        )
    settings = text_settings(args.text)
    return {**({} if named == "auto" else named), **(_with_text({}, schema, settings) if settings else {})}


def folds(text: str | None, otherwise: str) -> int | None:
    """A number of folds, if one was given; ``otherwise`` is what else may be said, or where."""
    if text is None:
        return None
    errors.require(text.isdecimal() and int(text) >= 2, "--folds", text, f"a whole number of at least 2{otherwise}")
    return int(text)


def chooses(args: Namespace) -> bool:
    """Whether families are to be chosen."""
    return list(args.features) == ["choose"]


def alpha_given(args: Namespace) -> bool:
    """Whether α is another than 1."""
    return bool(_alpha(str(args.alpha)) != 1.0)


def features(words: Sequence[str], columns: Callable[[], Collection[str]]) -> Any:
    """A mapping from column to family, or one word for all columns; ``a+b=joint`` is a block, unless a column is named so."""
    for word in words:
        if "=" in word.partition(",")[0]:
            continue
        if len(words) > 1:
            family_name = "one family for all columns, or COLUMN=FAMILY for single columns"
            raise errors.bad_setting("--features", list(words), family_name)
        return word if word in ("auto", "choose") else _family(word)
    families: dict[Any, Any] = {}
    for word in words:
        column, _, family_name = word.partition("=")
        family = None if family_name == "none" else _family(family_name)
        if family is None or "+" not in column or column in columns():
            families[column] = family
        elif family.block or family.blocks:
            families[tuple(name.strip() for name in column.split("+"))] = family
        else:
            raise errors.bad_setting("--features", word, TOGETHER)
    return families or "auto"


def _family(text: str) -> Any:
    """``histogram,bins=20``: a family and its settings."""
    typed, *settings = text.split(",")
    name = typed.replace("-", "_")
    if name not in FAMILIES and (called := name.partition("(")[0]) in FAMILIES:
        raise errors.bad_setting(
            "--features", text, f"a family and its settings, separated by commas: {called},SETTING=VALUE"
        )
    if name not in FAMILIES:
        raise errors.unknown_choice("a family", typed, [*FAMILIES, "choose"])
    return FAMILIES[name](**_settings(settings, name))


def text_settings(words: Sequence[str]) -> dict[str, Any]:
    """Settings of ``bb.Text``; raises for those that make no sense together."""
    settings = _settings(words, "text")
    FAMILIES["text"](**settings)
    return settings


def several_texts(words: Sequence[str]) -> dict[str, list[Any]] | None:
    """Settings of ``bb.Text``, each with the values to try: those between commas, or where a value has commas, each given one."""
    tried: dict[str, list[Any]] = {}
    for word in words:
        [(name, value)] = _settings([word], "text").items()
        several = isinstance(value, tuple) and name not in WITH_COMMAS
        tried.setdefault(name, []).extend(value if several else [value])
    return tried or None


def _settings(words: Sequence[str], family: str) -> dict[str, Any]:
    setting_names = [setting.name for setting in fields(FAMILIES[family])]  # type: ignore[arg-type]
    settings = {}
    for word in words:
        typed, equals, value = word.partition("=")
        key = typed.replace("-", "_")
        if key not in setting_names:
            raise errors.unknown_choice(f"a setting of {family}", typed, setting_names)
        errors.require(equals, f"the setting {key!r}", word, f"given with a value: {key}=...")
        settings[key] = [_value(part) for part in value.split(",")] if key in LISTS else _value(value)
    return settings


def _value(text: str) -> Any:
    """A setting's value: a number, a flag, nothing, several values, or a word."""
    plain = {"true": True, "false": False, "none": None}
    if text.lower() in plain:
        return plain[text.lower()]
    if "," in text:
        return tuple(_value(part) for part in text.split(","))
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _alpha(text: str) -> Any:
    if text == "auto":
        return text
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise errors.bad_setting("--alpha", text, "a number, a list such as 0.1,1,10, or auto") from None
    return numbers[0] if len(numbers) == 1 else numbers


def _prior(text: str | None) -> Any:
    if text is None or text == "uniform":
        return text
    requirement = "uniform, a number, or CLASS=PROBABILITY for each class, as in spam=0.2,ham=0.8"
    try:
        if "=" not in text:
            return float(text)
        return {name: float(number) for name, _, number in (part.rpartition("=") for part in text.split(","))}
    except ValueError:
        raise errors.bad_setting("--class-prior", text, requirement) from None


def as_label(text: str, classes: Sequence[Any]) -> Any:
    """The class that is written so."""
    return next((name for name in classes if str(name) == text), text)


def costs(words: Sequence[str], classes: Sequence[Any]) -> dict[Any, dict[Any, float]] | None:
    """What wrong answers cost, by the true class and the answer."""
    table: dict[Any, dict[Any, float]] = {}
    for word in words:
        pair, _, number = word.rpartition("=")
        true, _, predicted = pair.rpartition(":")
        try:
            cost = float(number)
        except ValueError:
            cost = math.nan
        errors.require(math.isfinite(cost), "--costs", word, "TRUE:PREDICTED=NUMBER, as in ham:spam=10")
        table.setdefault(as_label(true, classes), {})[as_label(predicted, classes)] = cost
    return table or None


def sizes(text: str | None) -> Any:
    """Numbers of rows, or shares."""
    numbers = None if text is None else [_value(part) for part in text.split(",")]
    if numbers and not all(isinstance(size, (int, float)) for size in numbers):
        raise errors.bad_setting("--sizes", text, "numbers of rows such as 100,1000, or shares such as 0.1,1.0")
    return numbers
