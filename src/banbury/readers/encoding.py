"""Anything one-dimensional as a column: lists, arrays, pandas, Polars and Arrow. Labels are encoded by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from banbury import errors
from banbury.readers.arrow import arrow, from_arrow
from banbury.readers.columns import Coded, Codes, Column, Objects, Unfit, from_array, from_list, regrouped


def encode(values: Any, threads: int = 1) -> Codes:
    """The labels as codes of their distinct values; None and NaN are missing.

    >>> encode(["spam", "ham", None, "spam"])
    Codes(codes=array([ 0,  1, -1,  0], dtype=int32), low=0, values=['spam', 'ham'])
    """
    try:
        return column(values).codes(None, threads)
    except Unfit as unfit:
        raise errors.wrong_type(unfit.value, "labels", unfit.needed, unfit.row) from None


def column(values: Any) -> Column:
    """The column of anything one-dimensional."""
    if type(values) is list:
        return Objects(values) if values and type(values[0]) is str else from_list(values)
    if isinstance(values, np.ndarray):
        return _from_numpy(values)
    if library(values) == "pandas":
        return from_pandas(values)
    if library(values) == "pyarrow":
        return from_arrow(values)
    if hasattr(values, "__arrow_c_stream__"):
        return from_arrow(arrow().chunked_array(values))
    if hasattr(values, "__arrow_c_array__"):
        return from_arrow(arrow().array(values))
    if hasattr(values, "__array__"):
        return _from_numpy(np.asarray(values))
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise errors.not_a_column(values)
    return column(list(values))


def _from_numpy(values: np.ndarray[Any, Any]) -> Column:
    if values.ndim != 1:
        raise errors.not_one_column(values.shape)
    if isinstance(values, np.ma.MaskedArray) and values.mask.any():
        return Objects(values.tolist())
    return from_array(np.asarray(values))


def from_pandas(values: Any) -> Column:
    """The column of a pandas Series, Index or array. Plain NumPy types are not copied."""
    if hasattr(values, "columns"):
        raise errors.not_one_column(values.shape)
    array = getattr(values, "array", values)
    if hasattr(array, "to_timestamp"):
        array = values = array.to_timestamp()
    if isinstance(values.dtype, np.dtype):
        return from_array(values.to_numpy())
    if hasattr(array, "categories") and hasattr(array, "codes"):
        categories = column(array.categories)
        return Coded(regrouped(Codes(array.codes, 0, []), categories.head(len(categories))))
    try:
        return from_arrow(arrow().array(array))
    except (TypeError, OverflowError, arrow().ArrowException):
        return Objects(np.asarray(values, dtype=object).tolist())


def library(values: Any) -> str:
    """The library that a thing is of: pandas, polars, pyarrow."""
    return type(values).__module__.partition(".")[0]
