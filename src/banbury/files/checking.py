"""Numbers and names out of a file: each is what it should be, or an error says what is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury._core import Integers
from banbury.reading.options import SETTINGS, Options, class_patterns, is_mark

Arrays = dict[str, NDArray[Any]]


def check(fits: object, why: str) -> None:
    """Raises an error unless the contents of a file are consistent."""
    if not fits:
        raise ValueError(why)


def under(prefix: str, arrays: Arrays) -> Arrays:
    """Returns the arrays whose names have this prefix, without the prefix."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def texts(what: str, names: Any) -> tuple[str, ...]:
    """Names of columns."""
    check(isinstance(names, list) and all(isinstance(name, str) for name in names), f"{what} are not all texts")
    return tuple(names)


def reading_of(about: Mapping[str, Any]) -> dict[str, Any]:
    """Returns how files were read. Raises an error for invalid settings."""
    settings: dict[str, Any] = about.get("reading", {})
    are_settings = isinstance(settings, dict) and settings.keys() <= {*SETTINGS}
    check(are_settings, "the settings for reading files contain an unknown name")
    for name, value in settings.items():
        fits = value is not None and isinstance(value, dict) == (name == "class_from")
        check(fits, f"the setting {name} for reading files has the wrong type")
    texts("names of columns", settings.get("columns", []))
    texts("missing values", settings.get("missing_values", []))
    class_patterns(settings.get("class_from"))
    check(is_mark(settings.get("delimiter", ",")), "the delimiter has more than one character")
    Options(**settings).check()
    return settings


def integers_of(name: str, arrays: Arrays, digits: Any, shape: tuple[int, ...], signed: bool = False) -> Integers:
    """Returns whole numbers in as few limbs and digits as possible; none is negative unless ``signed``."""
    limbs = arrays[name]
    shaped = limbs.dtype == np.int64 and limbs.shape[:-1] == shape and limbs.shape[-1:] != (0,)
    check(shaped, f"{name} is not {shape} whole numbers")
    check(type(digits[name]) is int and digits[name] in (0, 18), f"{name} has neither 0 nor 18 decimal digits")
    integers = Integers.of(limbs, digits[name])
    short = integers.digits == digits[name] and integers.limbs().shape == limbs.shape
    check(short, f"{name} has more limbs or digits than it needs")
    check(signed or not integers.is_negative().any(), f"{name} has numbers below 0")
    return integers


def real(name: str, arrays: Arrays, shape: tuple[int, ...]) -> NDArray[np.float64]:
    numbers = arrays[name]
    fits = numbers.dtype == np.float64 and numbers.shape == shape and np.isfinite(numbers).all()
    check(fits, f"{name} is not {shape} finite numbers")
    return numbers.copy()
