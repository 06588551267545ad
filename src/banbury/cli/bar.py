"""Progress as a bar that Rich draws on stderr, in place of the library's plain line."""

from __future__ import annotations

from typing import Any

from banbury import progress


class Bar(progress.Line):
    """A progress bar in place of the plain progress line. Its length is the whole job, if that is known."""

    _bar: Any = None  # a Progress of Rich; None before it is drawn

    def write(self) -> bool:
        """Draws the bar with the title and facts of the job, filled to ``self.share`` (0 to 1, None if unknown).
        Returns False if stderr is closed.
        """
        try:
            if self._bar is None:
                self._bar = _start_bar()
                self._task = self._bar.add_task(description="", total=None, facts="")  # its number in the bar
            # In Rich's terms: how much of 1 is done.
            completion = {} if self.share is None else {"total": 1.0, "completed": self.share}
            self._bar.update(self._task, description=self.title, facts=self.facts(with_share=False), **completion)
            self._bar.refresh()
        except (OSError, ValueError):  # stderr was closed
            return False
        return True

    def wipe(self) -> None:
        """Removes the bar from the terminal."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _start_bar() -> Any:
    """Starts a bar of Rich on stderr that is redrawn only on request, and returns it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = [TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[facts]}")]
    console = Console(stderr=True)
    bar = Progress(*columns, console=console, transient=True, auto_refresh=False, redirect_stdout=False)
    bar.start()
    return bar
