"""Progress on stderr: a line that says how far long work has come, and is gone when the work is done."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

FIRST = 1.0  # seconds before anything is written
EVERY = 0.2
FEW_ROWS = 1000


class Counted(Protocol):
    """A batch of rows; ``share`` is how much of the whole is read with it, or None."""

    n_rows: int
    share: float | None


B = TypeVar("B", bound=Counted)
Ask = Callable[[], tuple[int, float | None]]  # how many are done, and what share of the whole that is


def watched(
    batches: Iterable[B], what: str, name: str | None = None, unit: str = "rows", ask: Ask | None = None
) -> Iterator[B]:
    """The batches, while a line on stderr says how many rows are done: ``counting mail/: 12,345 rows, 41%, 3 s``.

    The line appears after a second, where stderr is a terminal or BANBURY_PROGRESS is 1; with BANBURY_PROGRESS=0 never.
    ``name`` is the file or folder that is read; without it the rows are in memory already. ``unit``: what is counted, where
    it is something else than rows. ``ask`` tells how many are done before any batch comes; it is asked from another thread.
    """
    setting = os.environ.get("BANBURY_PROGRESS", "")
    try:
        wanted = setting != "0" if setting else sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        wanted = False
    return _told(batches, what, name, unit, ask) if wanted else iter(batches)


def _told(batches: Iterable[B], what: str, name: str | None, unit: str, ask: Ask | None) -> Iterator[B]:
    line = display(what, name)
    line.unit, line.ask = unit, ask
    try:
        if name is not None:
            line.begin()
        for batch in batches:
            if batch.n_rows >= FEW_ROWS or line.n_rows:
                line.begin()
            yield batch
            if ask is None:
                line.n_rows, line.share = line.n_rows + batch.n_rows, batch.share
    finally:
        line.end()


class Line:
    """The line, written by a thread of its own: a single batch may take long, too."""

    unit = "rows"
    ask: Ask | None = None

    def __init__(self, what: str, name: str | None) -> None:
        self.title = what if name is None else f"{what} {''.join(c if c.isprintable() else '?' for c in name)}"
        self.n_rows, self._width, self._start = 0, 0, time.monotonic()
        self.share: float | None = None
        self._done, self._writing = threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="banbury progress", daemon=True)
            self._thread.start()

    def end(self) -> None:
        with self._writing:
            self._done.set()
            self._gone()

    def _run(self) -> None:
        waiting = FIRST
        while not self._done.wait(waiting):
            if self.ask is not None:
                self.n_rows, self.share = self.ask()
            with self._writing:
                if self._done.is_set() or not self._tell():
                    return
            waiting = EVERY

    def _tell(self) -> bool:
        share = "" if self.share is None else f", {self.share:.0%}"
        text = f"{self.title}: {self.n_rows:,} {self.unit}{share}, {time.monotonic() - self._start:.0f} s"
        text = text[: max(shutil.get_terminal_size().columns - 1, 20)]
        padding, self._width = " " * (self._width - len(text)), len(text)
        return self._write(text + padding)

    def _gone(self) -> None:
        """Wipes the line."""
        if self._width:
            self._write(" " * self._width + "\r")

    def _write(self, text: str) -> bool:
        try:
            sys.stderr.write("\r" + text)
            sys.stderr.flush()
        except (AttributeError, OSError, ValueError):  # stderr was closed
            return False
        return True


display: type[Line] = Line  # what is shown; a program may have another
