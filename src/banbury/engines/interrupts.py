"""Repeats a Ctrl-C that Python has lost.

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

SECONDS_TO_LEAVE_CALLBACK = 0.02  # after which the main thread raises an interrupt again


@contextmanager
def hear_interrupts() -> Iterator[None]:
    """While active, sends a KeyboardInterrupt again if Python could not raise it, as in a finaliser."""
    old_hook = sys.unraisablehook  # Python calls it with an exception that it cannot raise

    def send_again(unraisable: Any) -> None:
        """Sends a lost KeyboardInterrupt again; passes other exceptions to the old hook. ``unraisable`` describes the
        exception, as Python calls the hook.
        """
        if unraisable.exc_type is not KeyboardInterrupt:
            old_hook(unraisable)
            return
        timer = threading.Timer(SECONDS_TO_LEAVE_CALLBACK, _send_interrupt)
        timer.daemon = True
        timer.start()

    sys.unraisablehook = send_again
    try:
        yield
    finally:
        if sys.unraisablehook is send_again:
            sys.unraisablehook = old_hook


def _send_interrupt() -> None:
    """Sends SIGINT to the main thread."""
    main_thread_id = threading.main_thread().ident
    if sys.platform == "win32" or main_thread_id is None:
        _thread.interrupt_main()
    else:
        signal.pthread_kill(main_thread_id, signal.SIGINT)
