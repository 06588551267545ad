"""What incremental estimators share: a lock, atomic changes, and independent copies."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from banbury.learner import Learner
from banbury.scikit_learn import check_is_fitted

CREATING_LOCKS = threading.Lock()  # held while the lock of an estimator is created
DRAFT_FLAG = "_is_draft"  # an attribute that only the copies on which ``in_one_step`` works have
P = ParamSpec("P")
E = TypeVar("E", bound="Guarded")


def in_one_step(method: Callable[Concatenate[E, P], object]) -> Callable[Concatenate[E, P], E]:
    """Decorates a method that either changes an estimator completely or, if it fails or is interrupted, not at all.

    The method works on a shallow copy, and the estimator takes over all its attributes in a single assignment. So the
    method must replace attributes and never change their values in place.
    """

    @wraps(method)
    def change(self: E, /, *args: P.args, **kwargs: P.kwargs) -> E:
        """Calls the method on a draft and takes over its attributes; a draft is changed directly."""
        if DRAFT_FLAG in self.__dict__:
            method(self, *args, **kwargs)
            return self
        with self._lock:
            draft = object.__new__(type(self))  # a shallow copy
            draft.__dict__.update(self.__dict__)
            draft.__dict__[DRAFT_FLAG] = True
            method(draft, *args, **kwargs)
            del draft.__dict__[DRAFT_FLAG]
            self.__dict__ = draft.__dict__
        return self

    return change


class Guarded:
    """An estimator that only one thread can use at a time. A copy has its own lock."""

    # The tally and what models are derived with.
    _learner: Learner  # absent before fitting, and in estimators that do not learn incrementally

    @property
    def _lock(self) -> threading.RLock:
        """The lock of this estimator, created on first use."""
        lock = self.__dict__.get("_guard")
        if lock is None:
            with CREATING_LOCKS:
                lock = self.__dict__.setdefault("_guard", threading.RLock())
        return lock  # type: ignore[no-any-return]

    def __sklearn_is_fitted__(self) -> bool:
        """Whether rows were learned."""
        return "_learner" in self.__dict__

    def _learner_of_fit(self) -> Learner:
        """Returns the learner, which has the tally and derives models. Raises NotFittedError before ``fit``."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)
        return self._learner

    def __getstate__(self) -> Any:
        """Returns the attributes without the lock, which cannot be pickled."""
        state: dict[str, Any] = {**super().__getstate__()}  # type: ignore[dict-item]
        state.pop("_guard", None)
        return state

    def __copy__(self) -> Self:
        """Returns a copy that learns independently, with a lock and a learner of its own."""
        with self._lock:
            duplicate = type(self).__new__(type(self))
            duplicate.__dict__.update(self.__getstate__())
            if "_learner" in duplicate.__dict__:
                duplicate._learner = copy.copy(self._learner)
        return duplicate
