"""Engines: the same count on a user's Dask or Spark, or on several processes, exact with workers killed and tasks repeated.

A partition's tally is a value: the same whoever makes it, when, and how often. ``Work`` asks an engine for these values, and adds
each partition once. What an engine must do for that is little: see ``banbury.engines.engine``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from banbury.engines.work import Work

__all__ = ["Work"]


def __getattr__(name: str) -> Any:
    """Workers, which load a part of this package, need not load what the driver needs."""
    if name == "Work":
        from banbury.engines.work import Work

        return Work
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
