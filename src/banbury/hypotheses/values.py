"""Values as arrays of numbers, texts or objects; and properties of single values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real

Array = NDArray[Any]


def codes(values: Array, labels: Sequence[Any]) -> Array:
    """Returns the index in ``labels`` of each value, as an array of the same shape; −1 for values that are no label."""
    if values.dtype == np.bool_ and tuple(labels) == (False, True):
        return values.view(np.uint8)
    if values.dtype != object:
        numbers = np.full(values.shape, -1, dtype=np.int32)
        for code, label in enumerate(labels):
            numbers[values == label] = code
        return numbers
    code_by_label = {label: code for code, label in enumerate(labels)}
    value_codes = (code_by_label.get(value, -1) if is_hashable(value) else -1 for value in values.ravel().tolist())
    return np.fromiter(value_codes, np.int32, values.size).reshape(values.shape)


def matrix(values: Any) -> Array:
    """Returns the values (an array, a scalar or an iterable of rows) as an array of numbers, strings or objects. Raises
    LengthMismatch if rows differ in length.
    """
    if hasattr(values, "__array__") or is_scalar(values):
        return np.asarray(values)
    rows = list(values)
    try:
        array = np.array(rows)
        return np.array(rows, dtype=object) if array.dtype.kind in "US" else array  # numbers are not made texts
    except ValueError:
        text = "the rows contain sequences of different lengths. Use one number or text per cell."
        lengths = [len(row) if hasattr(row, "__len__") else 1 for row in rows]
        for row, length in enumerate(lengths):
            if length != lengths[0]:
                raise errors.LengthMismatch(
                    f"row {row:,} has {length:,} cells but row 0 has {lengths[0]:,}. All rows must have the same length.",
                    row=row,
                ) from None
        raise errors.LengthMismatch(text) from None


def vector(values: Any, setting: str | None = None) -> Array:
    """Returns one value per row as an array. A list keeps its types: numbers among strings do not become strings.
    ``setting`` is the name of a setting for messages, if the values are not a column.
    """
    if is_scalar(values) or isinstance(values, Mapping):
        raise errors.no_column(values) if setting is None else errors.bad_setting(setting, values, "a list")
    array = np.asarray(values) if hasattr(values, "__array__") else objects(list(values))
    if array.ndim != 1:
        raise errors.no_column(array)
    return array.astype("datetime64[us]").astype(str) if array.dtype.kind == "M" else array  # dates are texts


def objects(values: list[Any]) -> Array:
    """Returns the values as an array of booleans, floats or strings if they all are that, otherwise of objects."""
    types = set(map(type, values))
    if len(types) == 1 and types <= {bool, float, str}:
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        array[position] = value
    return array


def floats(values: Array) -> Real:
    """Returns the values as floats, in an array of the same shape; NaN where a value is not a number."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64, copy=False)

    def number(value: Any) -> float:
        """Returns a single value as a float; NaN if it is not a number."""
        try:
            return float(value) if isinstance(value, (Number, np.bool_)) else np.nan  # type: ignore[arg-type]
        except (OverflowError, TypeError, ValueError):  # too large a number, or a complex one
            return np.nan

    return np.array([*map(number, values.ravel().tolist())], dtype=np.float64).reshape(values.shape)


def is_scalar(value: Any) -> bool:
    """Returns whether a value is a text or not iterable."""
    return isinstance(value, (str, bytes)) or not isinstance(value, Iterable)


def is_hashable(value: Any) -> bool:
    """Returns whether a value can be in a set."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def is_missing(value: Any) -> bool:
    """Returns whether a value is None, NaN, or not equal to itself."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True
