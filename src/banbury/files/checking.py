"""Numbers and names out of a file: each is what it should be, or an error says what is not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury._core import Integers

Arrays = dict[str, NDArray[Any]]


def under(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays whose names begin so, without that beginning."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def texts(what: str, names: Any) -> tuple[str, ...]:
    """Names of columns."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{what} are not all texts")
    return tuple(names)


def whole(name: str, number: Any) -> int:
    if type(number) is not int or not 0 <= number < 2**63:
        raise ValueError(f"{name} is no whole number from 0 up")
    return number


def integers_of(name: str, arrays: Arrays, digits: Any, shape: tuple[int, ...], signed: bool = False) -> Integers:
    """Whole numbers, in as few limbs and digits as will do; none below 0 unless signed."""
    limbs = arrays[name]
    if limbs.dtype != np.int64 or limbs.shape[:-1] != shape or limbs.shape[-1:] == (0,):
        raise ValueError(f"{name} is not {shape} whole numbers")
    if type(digits[name]) is not int or digits[name] not in (0, 18):
        raise ValueError(f"{name} is not in rows, nor in parts of them")
    found = Integers.of(limbs, digits[name])
    if found.digits != digits[name] or found.limbs().shape != limbs.shape:
        raise ValueError(f"{name} has more limbs or digits than it needs")
    if not signed and found.is_negative().any():
        raise ValueError(f"{name} has numbers below 0")
    return found


def real(name: str, arrays: Arrays, shape: tuple[int, ...]) -> NDArray[np.float64]:
    numbers = arrays[name]
    if numbers.dtype != np.float64 or numbers.shape != shape or not np.isfinite(numbers).all():
        raise ValueError(f"{name} is not {shape} finite numbers")
    return numbers.copy()
