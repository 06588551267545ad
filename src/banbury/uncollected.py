"""Python's search for cycles, put off while a great many objects are made: it would go through all of them again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
        gc.enable()
