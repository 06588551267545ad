"""What estimators share that learn row by row: the lock, changes in one step, and what changed since the model was made."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from banbury.tally import Growing, Touched, together

MAKING = threading.Lock()
DRAFT = "_is_draft"  # an attribute that only drafts have
MOST_NOTED = 256  # batches whose columns and words are noted one by one, until the model is asked for


def noted(before: list[Touched], touched: Touched) -> list[Touched]:
    """The columns and words that changed, with those of a further batch; of many batches as one: a stream may never ask."""
    every = [*before, touched]
    return every if len(every) <= MOST_NOTED else [together(every)]


P = ParamSpec("P")
E = TypeVar("E", bound="Guarded")


def in_one_step(method: Callable[Concatenate[E, P], object]) -> Callable[Concatenate[E, P], E]:
    """A method that changes an estimator completely, or, where it raises or is interrupted, not at all.

    It works on a draft, a shallow copy, whose attributes the estimator takes over in a single assignment. So it must replace
    what an attribute holds, and never change that in place. Sums that grow are the exception: ``Growing`` undoes what was not
    kept. Methods that it calls work on the same draft.
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
            try:
                method(draft, *args, **kwargs)
                del draft.__dict__[DRAFT]
                self.__dict__ = draft.__dict__
            finally:
                if (growing := self._growth()) is not None:
                    growing.keep()
        return self

    return change


class Guarded:
    """One thread at a time: what is being learned is not half learned for another. A copy has a lock of its own."""

    def _growth(self) -> Growing | None:
        """The sums as they stand, if there are any yet."""
        return self.__dict__.get("_growing")

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
