"""Old names of arguments and of methods: they work for this version, with a DeprecationWarning that says the new one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def takes_old(**new_names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: the function takes these arguments by their old names too, ``@takes_old(most="n")``."""

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            if not new_names.keys().isdisjoint(kwargs):
                return function(*args, **_by_new_names(function.__name__, kwargs, new_names))
            return function(*args, **kwargs)

        return called

    return decorated


def _by_new_names(function: str, given: dict[str, Any], new_names: dict[str, str]) -> dict[str, Any]:
    renamed = dict(given)
    for old in new_names.keys() & given.keys():
        new = new_names[old]
        if new in given:
            raise TypeError(f"{function}() takes {new}= or, as it was called before, {old}=; not both")
        warn(f"{old}=", f"{new}=", stacklevel=4)
        renamed[new] = renamed.pop(old)
    return renamed


def warn(old: str, new: str, stacklevel: int = 3) -> None:
    """Says that a name has changed, where the caller's caller stands."""
    warnings.warn(f"{old} is now called {new}", DeprecationWarning, stacklevel=stacklevel)
