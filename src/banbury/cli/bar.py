"""Progress as a bar that Rich draws on stderr, in the place of the library's plain line."""

from __future__ import annotations

import time
from typing import Any

from banbury import progress


class Bar(progress.Line):
    """A bar as long as what is read, where that is known. It comes and goes as the plain line does."""

    _drawn: Any = None

    def _tell(self) -> bool:
        try:
            if self._drawn is None:
                self._drawn = _begun()
                self._task = self._drawn.add_task(self.title, total=None, said="")
            known = {} if self.share is None else {"total": 1.0, "completed": self.share}
            took = time.monotonic() - self._start
            left = "" if not self.share else f", {took / self.share - took:.0f} s to go"
            self._drawn.update(self._task, said=f"{self.n_rows:,} {self.unit} in {took:.0f} s{left}", **known)
            self._drawn.refresh()
        except (OSError, ValueError):  # stderr was closed
            return False
        return True

    def _gone(self) -> None:
        if self._drawn is not None:
            self._drawn.stop()
            self._drawn = None


def _begun() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = [TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[said]}")]
    console = Console(stderr=True)
    drawn = Progress(*columns, console=console, transient=True, auto_refresh=False, redirect_stdout=False)
    drawn.start()
    return drawn
