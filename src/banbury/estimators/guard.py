"""What estimators share that learn row by row: the lock, changes in one step, and copies that learn apart."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from banbury.learner import Learner

MAKING = threading.Lock()
DRAFT = "_is_draft"  # an attribute that only drafts have
P = ParamSpec("P")
E = TypeVar("E", bound="Guarded")


def in_one_step(method: Callable[Concatenate[E, P], object]) -> Callable[Concatenate[E, P], E]:
    """Decorates a method that either changes an estimator completely or, if it fails or is interrupted, not at all.

    The method works on a shallow copy, and the estimator takes over all its attributes in a single assignment. So the
    method must replace attributes and never change their values in place.
    """

    @wraps(method)
    def change(self: E, /, *args: P.args, **kwargs: P.kwargs) -> E:
        if DRAFT in self.__dict__:
            method(self, *args, **kwargs)
            return self
        with self._lock:
            draft = object.__new__(type(self))
            draft.__dict__.update(self.__dict__)
            draft.__dict__[DRAFT] = True
            method(draft, *args, **kwargs)
            del draft.__dict__[DRAFT]
            self.__dict__ = draft.__dict__
        return self

    return change


class Guarded:
    """An estimator that only one thread can use at a time. A copy has its own lock."""

    _learner: Learner  # what was learned; absent before fitting, and where nothing is learned row by row

    @property
    def _lock(self) -> threading.RLock:
        lock = self.__dict__.get("_guard")
        if lock is None:
            with MAKING:
                lock = self.__dict__.setdefault("_guard", threading.RLock())
        return lock  # type: ignore[no-any-return]

    def __getstate__(self) -> Any:
        state: dict[str, Any] = {**super().__getstate__()}  # type: ignore[dict-item]
        state.pop("_guard", None)
        return state

    def __copy__(self) -> Self:
        """A copy learns apart."""
        with self._lock:
            other = type(self).__new__(type(self))
            other.__dict__.update(self.__getstate__())
            if "_learner" in other.__dict__:
                other._learner = copy.copy(self._learner)
        return other
