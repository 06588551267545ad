"""Progress on stderr: one line for a whole job, which says what is being done, how far it is and how long it will take.

Only one job at a time has a line. What another thread does meanwhile has none, and steps of a larger job share its line.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, Self, TypeVar

FIRST = 1.0  # seconds before anything is written
EVERY = 0.2
FEW_ROWS = 1000
LEAST_SHARE = 0.02  # of the job that must be done before its end is estimated


class RowBatch(Protocol):
    """A batch of rows; ``share`` is how much of the whole is read with it, or None."""

    n_rows: int
    share: float | None


B = TypeVar("B", bound=RowBatch)
T = TypeVar("T")
Ask = Callable[[], tuple[int, float | None]]  # how many are done, and what share of the whole that is


def watch(
    batches: Iterable[B], doing: str, name: str | None = None, unit: str = "rows", ask: Ask | None = None
) -> Iterator[B]:
    """Yields the batches while a line on stderr says how many rows are done: ``counting mail/: 12,345 rows, 41%, 3 s``.

    The line appears after a second, where stderr is a terminal or BANBURY_PROGRESS is 1; with BANBURY_PROGRESS=0 never.
    ``name`` is the file or folder that is read; without it the rows are in memory already. ``unit``: what is counted if not rows.
    ``ask`` returns how many are done, and is called from another thread before the first batch arrives. In a larger job there is
    no line for them; they move that of the job on in a step that ``reads``.
    """
    job = Job.current or (Job() if is_shown() else None)
    if job is None or not job.is_mine:
        return iter(batches)
    if Job.current is None:
        return _watch_alone(job, batches, doing, name, unit, ask)
    return _watch_step(job, batches) if job.reads else iter(batches)


def _watch_step(job: Job, batches: Iterable[B]) -> Iterator[B]:
    """Yields the batches of a step of a larger job."""
    job.reads = False  # rows that are read again in this step are not counted again
    for batch in batches:
        yield batch
        if job.line.n_rows is not None:
            job.line.n_rows += batch.n_rows
        job.advance(batch.share)


def _watch_alone(
    job: Job, batches: Iterable[B], doing: str, name: str | None, unit: str, ask: Ask | None
) -> Iterator[B]:
    line = job.line
    line.titles.append(doing if name is None else f"{doing} {printable(name)}")
    line.n_rows = 0
    line.unit = unit
    line.ask = ask
    with job:
        if name is not None:
            line.begin()
        for batch in batches:
            if batch.n_rows >= FEW_ROWS or line.n_rows:
                line.begin()
            yield batch
            if ask is None:
                line.n_rows = (line.n_rows or 0) + batch.n_rows
                line.share = batch.share


def each_step(items: Sequence[T], title: Callable[[int], str], work: Sequence[float] | None = None) -> Iterator[T]:
    """Yields items, each of which is a step of the job; of all of them each takes the share of time that ``work`` says."""
    left = [sum(work[k:]) if work else float(len(items) - k) for k in range(len(items))]
    with Steps() as steps:
        for k, step in enumerate(items):
            steps.begin(title(k), (work[k] if work else 1.0) / (left[k] or 1.0))
            yield step


def is_shown() -> bool:
    """Whether progress is written at all."""
    setting = os.environ.get("BANBURY_PROGRESS", "")
    try:
        return setting != "0" if setting else sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is no stderr, or it is closed
        return False


def printable(name: str) -> str:
    """A name that cannot write anything else to the terminal."""
    return "".join(c if c.isprintable() else "?" for c in name)


class Job:
    """A job with a line of its own, from when it is entered until it is left."""

    current: Job | None = None
    _one_at_a_time = threading.Lock()

    def __init__(self, has_steps: bool = False) -> None:
        self.line = display()
        self.has_steps = has_steps
        self.reads = False  # whether the current step reads rows, which move the line on
        self.low = 0.0  # where the bar is when the current step begins, and when it ends
        self.high = 1.0
        self._thread = threading.get_ident()

    @property
    def is_mine(self) -> bool:
        """Whether the calling thread does this job; what other threads do is not shown."""
        return self._thread == threading.get_ident()

    def advance(self, share: float | None) -> None:
        """So much of the current step is done."""
        if share is not None:
            self.line.move(self.low + share * (self.high - self.low))

    def __enter__(self) -> Self:
        with Job._one_at_a_time:
            if Job.current is None:
                Job.current = self
        return self

    def __exit__(self, *_: object) -> None:
        with Job._one_at_a_time:
            if Job.current is self:
                Job.current = None
        self.line.end()


class Steps:
    """The steps of a job, or of one of its steps; the outermost has a line written while it is entered.

    >>> with Steps() as steps:
    ...     steps.begin("reading", 0.1, timed=False)
    ...     steps.begin("fold 1 of 2", 0.5)
    ...     steps.begin("fold 2 of 2", 1.0)
    """

    def __init__(self) -> None:
        self._own: Job | None = None
        self._job: Job | None = None

    def __enter__(self) -> Self:
        if Job.current is None and is_shown():
            self._own = Job(has_steps=True).__enter__()
        job = Job.current
        self._job = job if job is not None and job.is_mine and job.has_steps else None
        if self._job is not None:
            self._low = self._job.low
            self._high = self._job.high
            self._n_titles = len(self._job.line.titles)
            self._next = self._low
            self._job.line.begin()
        return self

    def begin(self, title: str, share_of_rest: float, timed: bool = True, reads: bool = False) -> None:
        """Begins the next step, which is so large a share of all that is left.

        A step that is not ``timed`` is short: how long it takes says nothing about those that follow. One that ``reads`` is one
        pass over the rows, which are counted.
        """
        job = self._job
        if job is None:
            return
        job.low = self._next
        job.high = self._next = job.low + min(max(share_of_rest, 0.0), 1.0) * (self._high - job.low)
        line = job.line
        line.titles[self._n_titles :] = [title] * bool(title)
        line.n_rows = 0 if reads else None
        job.reads = reads
        line.move(job.low)
        if not timed:
            line.estimate_from(job.high)

    def advance(self, share: float | None) -> None:
        """So much of the current step is done."""
        if self._job is not None:
            self._job.advance(share)

    def __exit__(self, *_: object) -> None:
        if self._job is not None:
            self._job.low = self._low
            self._job.high = self._high
            self._job.reads = False
            self._job.line.n_rows = None
            del self._job.line.titles[self._n_titles :]
        if self._own is not None:
            self._own.__exit__()


class Line:
    """The line, written by a thread of its own, because a single batch may take long."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.n_rows: int | None = None
        self.unit = "rows"
        self.share: float | None = None
        self.ask: Ask | None = None
        self._width = 0
        self._start = self._timed_since = time.monotonic()
        self._timed_from = 0.0
        self._done, self._writing = threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def title(self) -> str:
        return ", ".join(self.titles) or "working"

    def move(self, share: float) -> None:
        """Moves on to this share of the job, never back."""
        if self.share is None and share == 0.0:
            return
        self.share = max(self.share or 0.0, share)
        if self.share <= self._timed_from:
            self._timed_since = time.monotonic()

    def estimate_from(self, share: float) -> None:
        """The end is estimated from the time that passes after this share of the job."""
        self._timed_from = max(self._timed_from, share)
        self._timed_since = time.monotonic()

    @property
    def seconds_left(self) -> float | None:
        """How long the rest will take if it goes on as it has; None while too little is done to tell."""
        timed = (self.share or 0.0) - self._timed_from
        if self.share is None or timed < LEAST_SHARE:
            return None
        return (time.monotonic() - self._timed_since) * max(1.0 - self.share, 0.0) / timed

    def facts(self, with_share: bool = True) -> str:
        """How many rows, how much of the job, how long so far, and how long the rest will take."""
        rows = [] if self.n_rows is None else [f"{self.n_rows:,} {self.unit}"]
        share = [f"{self.share:.0%}"] if with_share and self.share is not None else []
        left = self.seconds_left
        took = [f"{time.monotonic() - self._start:.0f} s", *([] if left is None else [f"about {left:.0f} s left"])]
        return ", ".join([*rows, *share, *took])

    def begin(self) -> None:
        """Starts to write, in a second."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="banbury progress", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Stops, and wipes what was written."""
        with self._writing:
            self._done.set()
            self.wipe()

    def _run(self) -> None:
        delay = FIRST
        while not self._done.wait(delay):
            if self.ask is not None:
                self.n_rows, self.share = self.ask()
            with self._writing:
                if self._done.is_set() or not self.write():
                    return
            delay = EVERY

    def write(self) -> bool:
        """Writes how far the job is; returns whether that was possible."""
        text = f"{self.title}: {self.facts()}"[: max(shutil.get_terminal_size().columns - 1, 20)]
        padding = " " * (self._width - len(text))
        self._width = len(text)
        return self._send(text + padding)

    def wipe(self) -> None:
        """Wipes the line."""
        if self._width:
            self._send(" " * self._width + "\r")

    def _send(self, text: str) -> bool:
        try:
            sys.stderr.write("\r" + text)
            sys.stderr.flush()
        except (AttributeError, OSError, ValueError):  # stderr was closed
            return False
        return True


display: type[Line] = Line  # what is shown; a program may have another
