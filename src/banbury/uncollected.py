"""Python's search for cycles, put off while a great many objects are made: it would go through all of them again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 100_000  # objects, from which on it takes long to go through them once


@contextmanager
def uncollected() -> Iterator[None]:
    """Puts the search off meanwhile, as a ``with`` or as a decorator. For what makes no cycles, and ends soon."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > MANY and not gc.get_freeze_count():
            gc.freeze()  # what was made is old at once ...
            gc.unfreeze()  # ... so that the next search, for young cycles, does not go through it
        gc.enable()
