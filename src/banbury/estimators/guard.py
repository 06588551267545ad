"""What estimators share that learn row by row: the lock, and what changed since the model was made."""

from __future__ import annotations

import threading
from typing import Any

from banbury.tally import Touched, together

MAKING = threading.Lock()
MOST_NOTED = 256  # batches whose columns and words are noted one by one, until the model is asked for


def noted(before: list[Touched], touched: Touched) -> list[Touched]:
    """The columns and words that changed, with those of a further batch; of many batches as one: a stream may never ask."""
    every = [*before, touched]
    return every if len(every) <= MOST_NOTED else [together(every)]


class Guarded:
    """One thread at a time: what is being learned is not half learned for another. A copy has a lock of its own."""

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
