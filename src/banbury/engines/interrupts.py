"""Ctrl-C that Python loses is pressed again.

Python raises KeyboardInterrupt wherever its main thread happens to be. In a finaliser, or in a callback of the garbage
collector, the exception goes nowhere; and a signal that comes while the collector runs always meets such a callback, if
there is one. Dask's cluster in one process has one, and so have other libraries.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SOON = 0.02  # seconds, until the main thread has left the callback


@contextmanager
def hear_interrupts() -> Iterator[None]:
    """Meanwhile one press of Ctrl-C is enough."""
    before = sys.unraisablehook

    def again(lost: Any) -> None:
        if lost.exc_type is not KeyboardInterrupt:
            before(lost)
            return
        pressing = threading.Timer(SOON, _press)
        pressing.daemon = True
        pressing.start()

    sys.unraisablehook = again
    try:
        yield
    finally:
        if sys.unraisablehook is again:
            sys.unraisablehook = before


def _press() -> None:
    main = threading.main_thread().ident
    if sys.platform == "win32" or main is None:
        _thread.interrupt_main()
    else:
        signal.pthread_kill(main, signal.SIGINT)
