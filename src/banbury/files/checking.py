"""Checks numbers and names from a file; raises ValueError for anything invalid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury._core import Integers
from banbury.reading.options import SETTINGS, Options, class_patterns, is_mark

Arrays = dict[str, NDArray[Any]]  # by name
JsonObject = dict[str, Any]  # as the json module reads and writes it


def check(is_valid: object, text: str) -> None:
    """Raises ValueError with this text unless ``is_valid`` is true."""
    if not is_valid:
        raise ValueError(text)


def under(prefix: str, arrays: Arrays) -> Arrays:
    """Returns the arrays whose names have this prefix, without the prefix."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def texts(what: str, names: Any) -> tuple[str, ...]:
    """Returns the names as a tuple. Raises ValueError unless they are a list of texts. ``what`` says what they are, for
    the message.
    """
    check(isinstance(names, list) and all(isinstance(name, str) for name in names), f"{what} are not all texts")
    return tuple(names)


def reading_of(about: JsonObject) -> JsonObject:
    """Returns the settings with which files were read, empty for the defaults. ``about`` is an object of a file, which
    has them as "reading". Raises an error for invalid ones.
    """
    settings: JsonObject = about.get("reading", {})
    are_settings = isinstance(settings, dict) and settings.keys() <= {*SETTINGS}
    check(are_settings, "the settings for reading files contain an unknown name")
    for name, value in settings.items():
        is_valid = value is not None and isinstance(value, dict) == (name == "class_from")
        check(is_valid, f"the setting {name} for reading files has the wrong type")
    texts("names of columns", settings.get("columns", []))
    texts("missing values", settings.get("missing_values", []))
    class_patterns(settings.get("class_from"))
    check(is_mark(settings.get("delimiter", ",")), "the delimiter has more than one character")
    Options(**settings).check()
    return settings


def integers_of(name: str, arrays: Arrays, digits: Any, shape: tuple[int, ...], signed: bool = False) -> Integers:
    """Returns the whole numbers of the array ``name``, which has an axis more than ``shape``: that of 64-bit limbs.
    Raises ValueError unless the shape is right and limbs and digits are as few as possible. ``digits`` has the decimal
    digits after the point of each array by name; ``signed`` says whether numbers may be negative.
    """
    limbs = arrays[name]
    has_shape = limbs.dtype == np.int64 and limbs.shape[:-1] == shape and limbs.shape[-1:] != (0,)
    check(has_shape, f"{name} is not {shape} whole numbers")
    check(type(digits[name]) is int and digits[name] in (0, 18), f"{name} has neither 0 nor 18 decimal digits")
    integers = Integers.of(limbs, digits[name])
    is_shortest = integers.digits == digits[name] and integers.limbs().shape == limbs.shape
    check(is_shortest, f"{name} has more limbs or digits than it needs")
    check(signed or not integers.is_negative().any(), f"{name} has numbers below 0")
    return integers


def real(name: str, arrays: Arrays, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Returns a copy of the array ``name`` of finite floats. Raises ValueError for another type or shape."""
    numbers = arrays[name]
    is_valid = numbers.dtype == np.float64 and numbers.shape == shape and np.isfinite(numbers).all()
    check(is_valid, f"{name} is not {shape} finite numbers")
    return numbers.copy()
