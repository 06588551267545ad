"""Rows in partitions: on Dask or Spark, or in parts for several processes.

``banbury.engines`` says here how they are opened. All that stands below it asks ``partitions_of``, and knows no engine.
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
    """From now on, data are opened by this function of the data, the engine and the number of partitions, as far as it can."""
    _openers[:] = [opener]


def partitions_of(data: Any, engine: Any = None, partitions: int | None = None) -> Any:
    """The partitions that rows are in, as ``banbury.engines.Partitions``; None of rows that are here."""
    for opener in _openers:
        if (opened := opener(data, engine, partitions)) is not None:
            return opened
    errors.require(engine is None, "engine", engine, "omitted, because banbury.engines is not loaded")
    errors.require(partitions is None, "partitions", partitions, "used with engine= or with Dask or Spark data")
    return None


def or_in_partitions(method: Method) -> Method:
    """Decorates a function that answers rows by a model: of rows in partitions, their engine answers instead."""
    names = list(signature(method).parameters)[2:]

    @wraps(method)
    def answer(model: Any, rows: Any, *args: Any, **settings: Any) -> Any:
        where = partitions_of(rows, settings.pop("engine", None), settings.pop("partitions", None))
        if where is None:
            return method(model, rows, *args, **settings)
        settings |= dict(zip(names, args, strict=False))
        return getattr(where, method.__name__)(model, **settings)

    return cast(Method, answer)
