"""Old names of arguments and of methods: they work for this version, with a DeprecationWarning that says the new one.

And names that pickles of 0.1 have for what is elsewhere, or otherwise, today.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import wraps
from types import ModuleType
from typing import Any, NoReturn, ParamSpec, TypeVar

from banbury import errors

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


# Pickles of 0.1 ------------------------------------------------------------------------------------------------------


def old_class(name: str) -> type:
    """A class for pickles that have this name for one whose contents are others today: to load it says what to do."""

    def refused(*_: Any) -> NoReturn:
        raise _of_0_1(name)

    return type(name, (), {"__new__": refused, "__setstate__": refused})


def old_module(name: str, *gone: str, **here: type) -> None:
    """A module that is no more, for pickles that name it: it has what is elsewhere today, and old classes of what is gone."""
    module = sys.modules[name] = ModuleType(name, "For pickles of 0.1.")
    for each in gone:
        setattr(module, each, old_class(each))
    for each, today in here.items():
        setattr(module, each, today)


def check_pickled(kind: type, state: Mapping[str, Any]) -> None:
    """Raises where the pickle of a dataclass lacks what it has today."""
    needed = (each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING)
    if not all(name in state for name in needed):
        raise _of_0_1(kind.__name__)


def _of_0_1(name: str) -> errors.UnknownFormat:
    return errors.UnknownFormat(
        f"this pickle was made by Banbury 0.1 ({name}), and what it holds is kept otherwise since. Files are read by every "
        "version: with Banbury 0.1, bb.save(model, 'model.banbury') (of an estimator its model_, tally_ or network_); then here "
        "bb.load('model.banbury'). Or fit it again, for a pickle of today.",
        name=name,
    )
