"""Converts command-line options into arguments of the library: numbers, lists, families and their settings."""

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

LIST_SETTINGS = ("stop_words", "values")  # settings of families that are lists
SETTINGS_WITH_COMMAS = ("ngrams", "stop_words", "vocabulary", "only")  # a single value may contain commas
Keywords = dict[str, Any]  # for functions of the library
TAB_WORDS = ("tab", "\\t")  # how users write a tab as the delimiter
JOINT_FAMILY = (
    "a family that models columns jointly, because + joins them: gaussian,covariance=full (or tied, shrunk), kernel_density, "
    "histogram or joint"
)


def reading(args: Namespace) -> Keywords:
    """Returns the reading options of a command by name, those that are not None; as "remembered" the options with which
    the model's data were read.
    """
    option_values = {**vars(args), "columns": args.names}  # by the library's name; None where not given
    # Those that are given.
    settings = {name: option_values[name] for name in (*SETTINGS, "remembered") if option_values[name] is not None}
    for name in ("columns", "missing_values", "headers"):
        if name in settings and not (name == "headers" and settings[name] in ("keep", "drop", "columns")):
            settings[name] = settings[name].split(",")
    if args.delimiter in TAB_WORDS:
        settings["delimiter"] = "\t"
    if args.format in ("csv", "json"):
        settings["format"] = "auto"
    return settings


def counting(args: Namespace, data: Any) -> Keywords:
    """Returns the options for counting by name: families, weights, missing values, and how to read. ``--text`` applies
    to the text columns of the data. ``data``: the opened input.
    """
    options = counting_any_text(args, data)
    text_options = text_settings(args.text)  # by name
    family_options = options["features"]  # families by column, or one for all
    errors.require(
        not text_options or family_options != "choose", "--text", args.text, "omitted with --features choose"
    )
    if text_options:
        schema = Schema.infer(
            data, args.target, features=family_options, missing=args.missing or "skip", **reading(args)
        )
        options["features"] = _with_text(family_options, schema, text_options)
    return options


def counting_any_text(args: Namespace, data: Any) -> Keywords:
    """Returns the options for counting by name without ``--text``, whose settings `tune` tries one by one. ``data``:
    the opened input.
    """
    return {
        "features": _features(args, data),
        "weights": args.weights,
        "missing": args.missing or "skip",
        **reading(args),
    }


def _features(args: Namespace, data: Any) -> Any:
    """Returns the families that ``--features`` gives: by column, or one family, "auto" or "choose" for all. ``data``:
    the opened input, of which column names are read only if needed.
    """

    def columns() -> Collection[str]:
        """Returns the names of all columns of the input; none if it is empty."""
        first_batch = next(iter(read(data, **reading(args))), None)
        return () if first_batch is None else first_batch.names

    return features(args.features, columns)


def _with_text(families: Any, schema: Schema, settings: Mapping[str, Any]) -> Keywords:
    """Returns the given ``families`` (by column, or one for all) by column, with ``settings`` for every text column.
    Columns of the schema that are not given keep their families unless these are inferred ("auto"). Raises BadSetting
    if no column is text.
    """
    text_features = [feature for feature in schema.features if feature.reads_text]
    # The family that each text column has, with these settings.
    text_families = {f.name: replace(f.family, **settings) for f in text_features}  # type: ignore[type-var]
    if not text_families:
        raise errors.bad_setting("--text", dict(settings), "omitted when no column is text")
    if isinstance(families, Mapping):
        return {**families, **text_families}
    inferred_families = {} if families == "auto" else {feature.name: feature.family for feature in schema.features}
    return {**inferred_families, **text_families}


def estimating(args: Namespace, data: Any, tunes: bool) -> Keywords:
    """Returns the options for estimating a model by name: how, alpha, class_prior and seed. ``alpha`` is a number, a
    list or "auto"; classes in a prior get the type of the target column. ``data``: the opened input; ``tunes``: whether
    ``--how`` may have several values, so that it is a list.
    """
    prior = _prior(args.class_prior)  # None, "uniform", a number, or probabilities by class
    if isinstance(prior, Mapping):  # names of classes are of the kind that the column is
        types = {"integer": int, "float": (int, float), "boolean": bool}  # of Python, by the kind of the target
        target_type: Any = types.get(Schema.infer(data, args.target, **reading(args)).target_kind or "", ())
        prior = {
            value if isinstance(value := _value(name), target_type) else name: probability
            for name, probability in prior.items()
        }
    how = args.how.split(",") if tunes else args.how
    return {"how": how, "alpha": _alpha(args.alpha), "class_prior": prior, "seed": args.seed}


def estimating_from(args: Namespace, classes: Sequence[Any]) -> Keywords:
    """Returns the options for estimating a model from a tally with these classes: how, alpha, class_prior and seed."""
    prior = _prior(args.class_prior)  # None, "uniform", a number, or probabilities by class
    if isinstance(prior, Mapping):
        prior = {as_label(name, classes): probability for name, probability in prior.items()}
    return {"how": args.how, "alpha": _alpha(args.alpha), "class_prior": prior, "seed": args.seed}


def estimating_network(args: Namespace) -> Keywords:
    """Returns the options for estimating the tables of a network: how, alpha and seed. Raises BadSetting for options
    that only models have.
    """
    alpha = _alpha(args.alpha)  # the pseudo-count
    errors.require(isinstance(alpha, float), "--alpha", args.alpha, "a single number for a network")
    if args.class_prior is not None:
        raise errors.bad_setting(
            "--class-prior", args.class_prior, "omitted for a network, because each node has its own"
        )
    errors.require(not args.text, "--text", args.text, "omitted for a network, because its nodes are not texts")
    return {"how": args.how, "alpha": alpha, "seed": args.seed}


def bins(text: str | None) -> Any:
    """Returns how ``--bins``, given as ``text``, cuts numbers for a tree: a number of bins, or "mdl", which cuts where
    the classes change.
    """
    return "mdl" if text is None else int(text) if text.isdecimal() else text


def new_estimation_settings(args: Namespace, schema: Schema) -> Keywords:
    """Returns families by column with other estimation settings, for a tally that has been counted, from ``--features``
    and ``--text``; empty without them. Raises BadSetting for a family without a column.
    """
    families = features(args.features, lambda: schema.columns)  # by column, one for all columns, or "auto"
    if families != "auto" and not isinstance(families, Mapping):
        raise errors.bad_setting(
            "--features", args.features[0], "COLUMN=FAMILY, because each column already has a family"
        )
    text_options = text_settings(args.text)  # by name
    return {
        **({} if families == "auto" else families),
        **(_with_text(families={}, schema=schema, settings=text_options) if text_options else {}),
    }


def folds(text: str | None, otherwise: str) -> int | None:
    """Returns the number of folds, or None if ``text``, the option, is not given. ``otherwise``: ends the error message
    with what else is allowed.
    """
    if text is None:
        return None
    errors.require(text.isdecimal() and int(text) >= 2, "--folds", text, f"a whole number of at least 2{otherwise}")
    return int(text)


def chooses(args: Namespace) -> bool:
    """Returns whether ``--features choose`` was given."""
    return list(args.features) == ["choose"]


def alpha_given(args: Namespace) -> bool:
    """Returns whether ``--alpha`` differs from 1, the default."""
    return bool(_alpha(args.alpha) != 1.0)


def features(words: Sequence[str], columns: Callable[[], Collection[str]]) -> Any:
    """Returns the families that the words after ``--features`` name: a dictionary from columns to families (None for a
    column to leave out), or one family, "auto" or "choose" for all columns.

    A word is ``FAMILY`` or ``COLUMN=FAMILY``, and a family may have settings: ``age=histogram,bins=20``. ``a+b=joint``
    is a block of columns, whose key is a tuple of names, unless a column has that name. ``columns``: returns the names
    of all columns. Raises BadSetting for invalid words.
    """
    for word in words:
        if "=" in word.partition(",")[0]:  # the family of one column; "=" after a comma belongs to a setting
            continue
        if len(words) > 1:
            raise errors.bad_setting(
                "--features", list(words), "one family for all columns, or COLUMN=FAMILY for single columns"
            )
        return word if word in ("auto", "choose") else _family(word)
    families: dict[Any, Any] = {}  # by column, or tuple of columns
    for word in words:
        column, _, family_name = word.partition("=")
        family = None if family_name == "none" else _family(family_name)
        if family is None or "+" not in column or column in columns():
            families[column] = family
        elif family.block or family.blocks:  # it models several columns jointly, always or if several are given
            families[tuple(name.strip() for name in column.split("+"))] = family
        else:
            raise errors.bad_setting("--features", word, JOINT_FAMILY)
    return families or "auto"


def _family(text: str) -> Any:
    """Returns the family that ``text`` describes, such as ``histogram,bins=20``. Raises BadSetting for an unknown
    one.
    """
    family_word, *settings = text.split(",")  # settings: such as "bins=20"
    name = family_word.replace("-", "_")
    if name not in FAMILIES and (known_name := name.partition("(")[0]) in FAMILIES:
        raise errors.bad_setting(
            "--features", text, f"a family and its settings, separated by commas: {known_name},SETTING=VALUE"
        )
    if name not in FAMILIES:
        raise errors.unknown_choice("a family", family_word, [*FAMILIES, "choose"])
    return FAMILIES[name](**_settings(settings, name))


def text_settings(words: Sequence[str]) -> Keywords:
    """Returns the settings of ``bb.Text`` as a dictionary from words such as ``min_count=2``. Raises an error for a
    combination that it refuses.
    """
    settings = _settings(words, "text")
    FAMILIES["text"](**settings)
    return settings


def several_texts(words: Sequence[str]) -> dict[str, list[Any]] | None:
    """Returns text settings to try: a dictionary from each setting to its values; None without any.
    ``words``: such as ``min_count=1,2``, where a comma separates values to try.
    """
    values_to_try: dict[str, list[Any]] = {}
    for word in words:
        [(name, value)] = _settings([word], "text").items()  # of the setting; several values are a tuple
        has_several = isinstance(value, tuple) and name not in SETTINGS_WITH_COMMAS
        values_to_try.setdefault(name, []).extend(value if has_several else [value])
    return values_to_try or None


def _settings(words: Sequence[str], family: str) -> Keywords:
    """Returns the settings of the family named ``family`` as a dictionary, from words such as ``bins=20``. Raises an
    error for an unknown setting.
    """
    setting_names = [setting.name for setting in fields(FAMILIES[family])]  # type: ignore[arg-type]
    settings = {}
    for word in words:
        setting_word, equals, value = word.partition("=")
        key = setting_word.replace("-", "_")
        if key not in setting_names:
            raise errors.unknown_choice(f"a setting of {family}", setting_word, setting_names)
        errors.require(equals, f"the setting {key!r}", word, f"given with a value: {key}=...")
        settings[key] = [_value(piece) for piece in value.split(",")] if key in LIST_SETTINGS else _value(value)
    return settings


def _value(text: str) -> Any:
    """Returns the value of a setting that the user wrote as ``text``: a number, a boolean, None, a tuple of values, or
    the text itself.
    """
    constants = {"true": True, "false": False, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    if "," in text:
        return tuple(_value(piece) for piece in text.split(","))
    for number_type in (int, float):
        try:
            return number_type(text)
        except ValueError:
            continue
    return text


def _alpha(text: str) -> Any:
    """Returns the value of ``--alpha``, given as ``text``: a number, a list of numbers, or "auto"."""
    if text == "auto":
        return text
    try:
        numbers = [float(piece) for piece in text.split(",")]
    except ValueError:
        raise errors.bad_setting("--alpha", text, "a number, a list such as 0.1,1,10, or auto") from None
    return numbers[0] if len(numbers) == 1 else numbers


def _prior(text: str | None) -> Any:
    """Returns the value of ``--class-prior``, given as ``text``: None, "uniform", a number, or a dictionary from names
    of classes to probabilities.
    """
    if text is None or text == "uniform":
        return text
    requirement = "uniform, a number, or CLASS=PROBABILITY for each class, as in spam=0.2,ham=0.8"
    try:
        if "=" not in text:
            return float(text)
        return {name: float(number) for name, _, number in (piece.rpartition("=") for piece in text.split(","))}
    except ValueError:
        raise errors.bad_setting("--class-prior", text, requirement) from None


def as_label(text: str, classes: Sequence[Any]) -> Any:
    """Returns the one of ``classes``, of any type, whose name is ``text``; the text itself if there is none."""
    return next((name for name in classes if str(name) == text), text)


def costs(words: Sequence[str], classes: Sequence[Any]) -> dict[Any, dict[Any, float]] | None:
    """Returns the costs of wrong answers as a dictionary: true class → predicted class → cost. ``words``: those after
    ``--costs``; without any, None; ``classes``: those of the model.
    """
    cost_by_classes: dict[Any, dict[Any, float]] = {}
    for word in words:
        pair, _, number = word.rpartition("=")  # "TRUE:PREDICTED" and the cost
        true_class, _, predicted_class = pair.rpartition(":")
        try:
            cost = float(number)
        except ValueError:
            cost = math.nan
        errors.require(math.isfinite(cost), "--costs", word, "TRUE:PREDICTED=NUMBER, as in ham:spam=10")
        cost_by_classes.setdefault(as_label(true_class, classes), {})[as_label(predicted_class, classes)] = cost
    return cost_by_classes or None


def sizes(text: str | None) -> Any:
    """Returns the numbers or shares of rows in ``--sizes``, given as ``text``; None if it is not given."""
    numbers = None if text is None else [_value(piece) for piece in text.split(",")]
    if numbers and not all(isinstance(size, (int, float)) for size in numbers):
        raise errors.bad_setting("--sizes", text, "numbers of rows such as 100,1000, or shares such as 0.1,1.0")
    return numbers
