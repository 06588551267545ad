"""Progress on stderr: one line per job that says what is being done, how far it is, and how long the rest will take.

Only one job at a time has a line; work in other threads has none, and the steps of a job share its line.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, Self, TypeVar

SECONDS_BEFORE_FIRST = 1.0  # before anything is written
SECONDS_BETWEEN_UPDATES = 0.2  # of the line
FEW_ROWS = 1000  # batches with fewer rows do not start the line
MIN_TIMED_SHARE = 0.02  # share of the job that must be done before its end is estimated


class RowBatch(Protocol):
    """A batch of rows. ``share``: how much of the source has been read up to it, or None."""

    n_rows: int
    share: float | None  # 0 to 1


B = TypeVar("B", bound=RowBatch)
T = TypeVar("T")
Ask = Callable[[], tuple[int, float | None]]  # returns how many are done, and their share of all if known


def watch(
    batches: Iterable[B], doing: str, name: str | None = None, unit: str = "rows", ask: Ask | None = None
) -> Iterator[B]:
    """Yields the batches while a line on stderr says how many rows are done: ``counting mail/: 12,345 rows, 41%, 3 s``.

    The line appears after a second if stderr is a terminal or BANBURY_PROGRESS is 1; with BANBURY_PROGRESS=0 never.
    ``doing``: what is being done; ``name``: the file that is read, None for rows in memory; ``unit``: what is counted
    if not rows. ``ask`` returns how many are done, and is called from another thread. Within a larger job, batches have
    no line of their own but advance that of the job if the step ``reads``.
    """
    job = Job.current or (Job() if is_shown() else None)
    if job is None or not job.is_mine:  # nothing is shown, or another thread does the job
        return iter(batches)
    if Job.current is None:
        return _watch_alone(job, batches, doing, name, unit, ask)
    return _watch_step(job, batches) if job.reads else iter(batches)


def _watch_step(job: Job, batches: Iterable[B]) -> Iterator[B]:
    """Yields the batches unchanged. After each it adds its rows to the line of the larger job, and advances the current
    step to the share of the source that has been read.
    """
    job.reads = False  # rows that are read again in this step are not counted again
    for batch in batches:
        yield batch
        if job.line.n_rows is not None:  # rows are counted in this step
            job.line.n_rows += batch.n_rows
        job.advance(batch.share)


def _watch_alone(
    job: Job, batches: Iterable[B], doing: str, name: str | None, unit: str, ask: Ask | None
) -> Iterator[B]:
    """Yields the batches unchanged, with a line of their own, that of ``job``, which says how many rows are done and what
    share. ``doing``: what is being done; ``name``: the file that is read, None for rows in memory; ``unit``: what is
    counted if not rows; ``ask`` returns how many are done and their share, None to count the rows of the batches.
    """
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
            if ask is None:  # otherwise the line asks itself
                line.n_rows = (line.n_rows or 0) + batch.n_rows
                line.share = batch.share


def each_step(items: Sequence[T], title: Callable[[int], str]) -> Iterator[T]:
    """Yields items, each a step of equal length of the job. ``title``: takes the number of a step, from 0 on, and
    returns its title.
    """
    with Steps() as steps:
        for number, item in enumerate(items):
            steps.begin(title(number), 1.0 / (len(items) - number))
            yield item


def is_shown() -> bool:
    """Returns whether progress is shown at all."""
    setting = os.environ.get("BANBURY_PROGRESS", "")
    try:
        return setting != "0" if setting else sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is no stderr, or it is closed
        return False


def printable(name: str) -> str:
    """Returns the name without characters that could control the terminal."""
    return "".join(character if character.isprintable() else "?" for character in name)


class Job:
    """A job with a line of its own, from when it is entered until it is left. ``low``, ``high``: the shares of the
    whole job (0 to 1) at which the current step begins and ends.
    """

    current: Job | None = None  # the job that has the line
    _one_at_a_time = threading.Lock()  # held while ``current`` changes

    def __init__(self, has_steps: bool = False) -> None:
        """A job of the calling thread. ``has_steps``: whether it is divided into steps by ``Steps``."""
        self.line = display()
        self.has_steps = has_steps
        self.reads = False  # whether batches of the current step advance the line
        self.low = 0.0  # share of the whole job at which the current step begins
        self.high = 1.0  # and at which it ends
        self._thread = threading.get_ident()  # the thread that does the job

    @property
    def is_mine(self) -> bool:
        """Whether the calling thread does this job; work in other threads is not shown."""
        return self._thread == threading.get_ident()

    def advance(self, share: float | None) -> None:
        """Sets the share of the current step that is done (0 to 1); None if unknown. The step itself is the share of
        the job from ``low`` to ``high``.
        """
        if share is not None:
            self.line.move(self.low + share * (self.high - self.low))

    def __enter__(self) -> Self:
        """Makes this job the one that has the line, ``Job.current``, unless another job has it."""
        with Job._one_at_a_time:
            if Job.current is None:
                Job.current = self
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the line of this job, so that another job may have one."""
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
        """Knows no job yet."""
        self._own: Job | None = None  # the job that these steps begin themselves, if they do
        self._job: Job | None = None  # the job that they belong to; None if none is shown

    def __enter__(self) -> Self:
        """Joins the job in progress in this thread, or begins one if there is none and progress is shown."""
        if Job.current is None and is_shown():
            self._own = Job(has_steps=True).__enter__()
        job = Job.current  # the job that has the line; it may be another thread's
        self._job = job if job is not None and job.is_mine and job.has_steps else None
        if self._job is not None:
            self._low = self._job.low  # shares of the whole job at which these steps begin
            self._high = self._job.high  # and end
            self._n_titles = len(self._job.line.titles)  # the titles of the job, before those of these steps
            self._next = self._low  # share of the whole job at which the next step begins
            self._job.line.begin()
        return self

    def begin(self, title: str, share_of_rest: float, timed: bool = True, reads: bool = False) -> None:
        """Begins the next step. ``title``: shown on the line; empty for none; ``share_of_rest``: the step's share (0 to
        1) of all that remains of these steps, which end at the share ``_high`` of the whole job.

        A step that is not ``timed`` says nothing about the duration of the others. One that ``reads`` is a pass over
        the rows, which are counted.
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
        """Sets the share of the current step that is done (0 to 1); None if unknown."""
        if self._job is not None:
            self._job.advance(share)

    def __exit__(self, *_: object) -> None:
        """Restores the job's current step (from the share ``low`` to ``high`` of the job) and the titles of its line as
        they were on entry, and ends the job if these steps began it.
        """
        if self._job is not None:
            self._job.low = self._low
            self._job.high = self._high
            self._job.reads = False
            self._job.line.n_rows = None
            del self._job.line.titles[self._n_titles :]
        if self._own is not None:
            self._own.__exit__()


class Line:
    """The progress line, written by a thread of its own, since a single batch may take long."""

    def __init__(self) -> None:
        """A line that nothing is written on yet. ``titles``: those of the job and its steps; ``n_rows``: how many are
        done, None if they are not counted; ``unit``: what is counted; ``share``: of the job that is done, None if
        unknown; ``ask``: returns ``n_rows`` and ``share``, if they are not set.
        """
        self.titles: list[str] = []
        self.n_rows: int | None = None
        self.unit = "rows"
        self.share: float | None = None
        self.ask: Ask | None = None
        self._width = 0  # characters that were written last
        self._start = self._timed_since = time.monotonic()  # seconds: when the job, and its timed part, began
        self._timed_from = 0.0  # share of the job after which its duration is timed
        self._done = threading.Event()  # set when the job has ended
        self._writing = threading.Lock()  # held while the line is written
        self._thread: threading.Thread | None = None  # writes the line; None before the line begins

    @property
    def title(self) -> str:
        """The titles of the job and its steps, as one text."""
        return ", ".join(self.titles) or "working"

    def move(self, share: float) -> None:
        """Advances ``self.share`` to this share of the job (0 to 1), never back. The time is measured anew until the
        timed part of the job begins.
        """
        if self.share is None and share == 0.0:  # it stays unknown
            return
        self.share = max(self.share or 0.0, share)
        if self.share <= self._timed_from:
            self._timed_since = time.monotonic()

    def estimate_from(self, share: float) -> None:
        """Bases the estimate of the end on the time that passes after this share of the job."""
        self._timed_from = max(self._timed_from, share)
        self._timed_since = time.monotonic()

    @property
    def seconds_left(self) -> float | None:
        """The estimated seconds for the rest of the job: what is done of its timed part (from the share ``_timed_from``
        on) has taken the time since ``_timed_since``. None while that part is too small.
        """
        timed_share = (self.share or 0.0) - self._timed_from
        if self.share is None or timed_share < MIN_TIMED_SHARE:
            return None
        return (time.monotonic() - self._timed_since) * max(1.0 - self.share, 0.0) / timed_share

    def facts(self, with_share: bool = True) -> str:
        """Returns the rows done, the share done, the time so far and the time left as one text, without what is
        unknown. ``with_share``: whether the share is named.
        """
        rows = [] if self.n_rows is None else [f"{self.n_rows:,} {self.unit}"]
        share = [f"{self.share:.0%}"] if with_share and self.share is not None else []
        seconds_left = self.seconds_left
        times = [
            f"{time.monotonic() - self._start:.0f} s",
            *([] if seconds_left is None else [f"about {seconds_left:.0f} s left"]),
        ]
        return ", ".join([*rows, *share, *times])

    def begin(self) -> None:
        """Starts the thread, which writes first after a second."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="banbury progress", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Has the thread stop writing, and clears the line."""
        with self._writing:
            self._done.set()
            self.wipe()

    def _run(self) -> None:
        """Runs in the thread: writes the line every ``SECONDS_BETWEEN_UPDATES`` until the job ends or stderr is closed."""
        delay = SECONDS_BEFORE_FIRST
        while not self._done.wait(delay):
            if self.ask is not None:
                self.n_rows, self.share = self.ask()
            with self._writing:
                if self._done.is_set() or not self.write():
                    return
            delay = SECONDS_BETWEEN_UPDATES

    def write(self) -> bool:
        """Writes the line; False if stderr is closed."""
        text = f"{self.title}: {self.facts()}"[: max(shutil.get_terminal_size().columns - 1, 20)]  # 20 at least
        padding = " " * (self._width - len(text))  # covers the rest of the line before
        self._width = len(text)
        return self._send(text + padding)

    def wipe(self) -> None:
        """Clears the line, unless nothing has been written."""
        if self._width:
            self._send(" " * self._width + "\r")

    def _send(self, text: str) -> bool:
        """Writes a text to stderr; False if it is closed."""
        try:
            sys.stderr.write("\r" + text)
            sys.stderr.flush()
        except (AttributeError, OSError, ValueError):  # stderr was closed
            return False
        return True


display: type[Line] = Line  # the class of lines; a program may replace it
