"""Progress as a bar that Rich draws on stderr, in place of the library's plain line."""

from __future__ import annotations

from typing import Any

from banbury import progress


class Bar(progress.Line):
    """A bar as long as the whole job, where that is known. It comes and goes as the plain line does."""

    _drawn: Any = None

    def write(self) -> bool:
        try:
            if self._drawn is None:
                self._drawn = _start_bar()
                self._task = self._drawn.add_task("", total=None, facts="")
            completion = {} if self.share is None else {"total": 1.0, "completed": self.share}
            self._drawn.update(self._task, description=self.title, facts=self.facts(with_share=False), **completion)
            self._drawn.refresh()
        except (OSError, ValueError):  # stderr was closed
            return False
        return True

    def wipe(self) -> None:
        if self._drawn is not None:
            self._drawn.stop()
            self._drawn = None


def _start_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = [TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[facts]}")]
    console = Console(stderr=True)
    drawn = Progress(*columns, console=console, transient=True, auto_refresh=False, redirect_stdout=False)
    drawn.start()
    return drawn
