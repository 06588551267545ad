"""Rows in partitions: on Dask or Spark, or in parts for several processes.

``banbury.engines`` registers the function that opens them. Modules below it ask ``partitions_of`` and know no engine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

from banbury import errors

Open = Callable[[Any, Any, int | None], Any]
Method = TypeVar("Method", bound=Callable[..., Any])
_openers: list[Open] = []


def open_by(opener: Open) -> None:
    """Registers ``opener``, the function that opens data on an engine. It takes the data, the engine and the number of
    partitions, and returns None for other data. It replaces the one before in the list ``_openers``.
    """
    _openers[:] = [opener]


def partitions_of(data: Any, engine: Any = None, partitions: int | None = None) -> Any:
    """Returns the rows as ``banbury.engines.Partitions`` if they are in partitions, and None if they are local. ``data``
    are the rows, ``engine`` and ``partitions`` the user's choice of an engine and a number of partitions, if any.
    """
    for opener in _openers:
        if (opened := opener(data, engine, partitions)) is not None:
            return opened
    errors.require(engine is None, "engine", engine, "omitted, because banbury.engines is not loaded")
    errors.require(partitions is None, "partitions", partitions, "used with engine= or with Dask or Spark data")
    return None


def or_in_partitions(method: Method) -> Method:
    """Decorates a method of a model that answers for rows: if the rows are in partitions, their engine computes the
    answers.
    """
    names = list(signature(method).parameters)[2:]  # of the parameters after the model and the rows

    @wraps(method)
    def answer(model: Any, rows: Any, *args: Any, **settings: Any) -> Any:
        """Returns the method's answers for local rows, or what the engine makes of rows in partitions. ``args`` and
        ``settings`` are the method's arguments after the rows, with ``engine`` and ``partitions`` among the settings.
        """
        partitioned_rows = partitions_of(rows, settings.pop("engine", None), settings.pop("partitions", None))
        if partitioned_rows is None:
            return method(model, rows, *args, **settings)
        settings |= dict(zip(names, args, strict=False))
        return getattr(partitioned_rows, method.__name__)(model, **settings)

    return cast(Method, answer)
