"""The lock of an estimator that learns row by row."""

from __future__ import annotations

import threading
from typing import Any

MAKING = threading.Lock()


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
