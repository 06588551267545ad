"""State: a model with the log of all that it learned. Exactly the acknowledged changes survive any crash.

A state is a folder: ``base.banbury``, the model it was created with; ``log.sqlite``; and ``snapshot-N.banbury``, the model as of
change N, from which a restart replays the changes after it. Snapshots only save time: base and log suffice.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from banbury import errors
from banbury.files import load, save
from banbury.files.checking import JsonObject
from banbury.labels import LabelModel
from banbury.learner import ModelSettings, Settings, settings_of
from banbury.model.naive_bayes import Model, choice_of
from banbury.service.learner import ServedLearner
from banbury.service.log import FORMAT, Change, DiskFull, Log, StoredRow
from banbury.service.rows import key, plain
from banbury.tally.tally import Tally

try:
    import fcntl
except ImportError:  # pragma: no cover (elsewhere SQLite alone keeps others out)
    fcntl = None  # type: ignore[assignment]

MOST_CHANGES_PER_COMMIT = 256  # changes in one commit
SNAPSHOT_EVERY = 5_000  # changes, after which a snapshot is written
SNAPSHOT_NAME = re.compile(r"snapshot-(\d+)\.banbury")
LONGEST_ID = 512  # characters
Served: TypeAlias = Model | LabelModel | Tally


class StateInUse(errors.BanburyError):
    """Another server is using the state."""


class UnknownRow(errors.BanburyError):
    """The state has no row with the requested id."""


class NotKept(errors.BanburyError):
    """The request needs rows that the service does not have."""


@dataclass(frozen=True)
class Put:
    """A request to store a row under an id and learn it; without a label it is only stored. ``new_class``: whether the
    label may be a new class.
    """

    id: str
    row: Any  # as JSON: a text, a list or an object
    label: Any = None  # a class, or a list of labels
    note: str | None = None
    new_class: bool = False


@dataclass(frozen=True)
class Delete:
    """A request to forget a row and purge its contents."""

    id: str


@dataclass(frozen=True)
class Undo:
    """A request to undo the last change, of all rows or of one, that has not been undone."""

    id: str | None = None  # of the row; None for all


@dataclass(frozen=True)
class Together:
    """Several requests of which all are carried out or none."""

    changes: tuple[Put | Delete | Undo, ...]


ChangeRequest: TypeAlias = Put | Delete | Undo | Together


@dataclass(frozen=True)
class Pending:
    """A change waiting to be committed, the function that makes a response of its answer, and the future of that
    response.
    """

    change: ChangeRequest
    respond: Callable[[JsonObject], Any]
    future: Future[Any]


class Step(NamedTuple):
    """The number of a change, and the tallies of a row that it subtracts from and adds to the counts."""

    change: int
    old: Tally | None  # None: nothing is subtracted
    new: Tally | None  # None: nothing is added


class ServedState:
    """A model that learns and forgets rows by their ids, durably. Without a folder it only predicts.

    >>> import banbury as bb, tempfile
    >>> from banbury.service.state import Delete, Put
    >>> model = bb.estimate(bb.count(["cheap pills", "lunch at noon"], target=["spam", "ham"]))
    >>> with ServedState.of(model, tempfile.mkdtemp()) as state:
    ...     for label in ("spam", "spam", "ham"):
    ...         print(state.change(Put("1", "cheap watches", label))["action"])
    ...     state.change(Delete("1"))["action"], state.digest()[0] == model.tally.digest()
    learned
    unchanged
    moved
    ('deleted', True)
    """

    def __init__(
        self, learner: ServedLearner, folder: Path | None = None, log: Log | None = None, lock: Any = None
    ) -> None:
        """``learner``: learns and predicts; ``folder``, ``log``, ``lock``: the folder of the state, its log and its
        lock file, all None if it cannot learn.
        """
        self.learner = learner
        self.folder = folder
        self._log = log
        self._lock_file = lock
        about = {} if log is None else log.about  # facts by name
        learner.weighed_at = about.get("weighed_at")
        # The number of the last change in the last snapshot.
        self.snapshot_at = 0 if folder is None else max(_snapshots(folder), default=0)
        self.commits = 0  # so far
        # What the writer thread has to do: changes, functions to call, and None to end.
        self._queue: queue.SimpleQueue[Pending | Callable[[], None] | None] = queue.SimpleQueue()
        self._steps: list[Step] = []  # of the change in progress
        self._new_classes: dict[Any, None] = {}  # that the change in progress adds, in order
        self._reversals: list[Callable[[], None]] = []  # functions that revert uncommitted changes in memory
        self._snapshot_thread: threading.Thread | None = None  # writes a snapshot
        self._snapshot_thread_change = 0  # the change that this snapshot contains
        self._needs_scrub = False  # whether rows were deleted whose contents may still be in the log file
        self._needs_snapshot = False  # whether the last snapshot contains a deleted row
        self._digest: tuple[int, str] | None = None  # the number of the last change in it, and the digest
        self._closed = False
        self._handlers: dict[type, Callable[[Any], JsonObject]] = {  # what carries out each kind of change
            Put: self._put,
            Delete: self._delete,
            Undo: self._undo_change,
        }
        self._writer: threading.Thread | None = None  # makes all changes
        if log is not None:
            self._writer = threading.Thread(target=self._write, name="banbury-writer", daemon=True)
            self._writer.start()

    # Opening and closing

    @classmethod
    def of(
        cls,
        served: Served | Path | None,
        folder: str | os.PathLike[str] | None = None,
        *,
        learned: Callable[[Tally], Iterable[tuple[Any, Any]]] | None = None,
        threads: int | None = None,
    ) -> ServedState:
        """Returns the state in a folder. If there is none yet, it is created with ``served``: a model, or the file of
        one.

        ``learned``: yields the rows that the model was trained on, with their labels; they become rows of the state
        with the ids 0000001, 0000002 and so on. Without a folder the state is in memory and cannot learn.
        """
        if folder is None:
            if served is None:
                raise errors.BadSetting("nothing to serve. Give a model, or a state that was created with one.")
            loaded = _load_served(served)
            return cls(ServedLearner(_tally(loaded), settings_of(loaded, threads)))
        path = Path(folder)
        lock = _lock(path, begins=served is not None)  # the open lock file
        log = None  # not open yet
        try:
            for entry in path.glob("*.part"):  # left by a save that was killed
                entry.unlink()
            log = Log(path / "log.sqlite")
            if "begun" not in log.about:  # the log of a new state
                if served is None:
                    raise errors.BadSetting(f"{path} does not contain a state yet. Give the model to start from.")
                learner = _begin(path, log, served, learned, threads)
            else:
                learner = _restart(path, log, served, threads)
            return cls(learner, path, log, lock)
        except BaseException:
            if log is not None:
                log.close()
            _unlock(lock)
            raise

    def __enter__(self) -> ServedState:
        """Returns the state, to be closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the state."""
        self.close()

    def close(self) -> None:
        """Writes the waiting changes and a snapshot, so that the next start is quick, and closes all files."""
        if self._closed:
            return
        self._closed = True
        if self._writer is not None:
            self._queue.put(None)  # the writer ends
            self._writer.join()
            self._wait_for_snapshot()
            if self.learner.change > self.snapshot_at:  # if this fails, the log suffices
                with suppress(errors.BanburyError, OSError):
                    self._snapshot()
        self.learner.close()
        if self._log is not None:
            self._log.close()
        _unlock(self._lock_file)

    # Asking

    @property
    def log(self) -> Log:
        """The log. Raises NotKept if there is none."""
        if self._log is None:
            raise NotKept("the service runs without a state, so it cannot learn. Start it with --state DIR.")
        return self._log

    @property
    def change_number(self) -> int:
        """Number of the last change."""
        return self.learner.change

    @property
    def names(self) -> list[Any] | None:
        """Classes that users may choose although no row has them yet; None if they were never set."""
        return None if self._log is None else self._log.about.get("names")

    def row(self, id: str) -> JsonObject:
        """Returns the row with this id, with its label and last change, for JSON. Raises UnknownRow if there is none."""
        stored = self.log.row(check_id(id))  # labels and contents as JSON texts; None if there is no such row
        if stored is None:
            raise _unknown(id)
        return _as_answer(stored)

    def rows(self, after: str = "", n: int = 100, labelled: bool | None = None) -> list[JsonObject]:
        """Returns at most ``n`` rows for JSON in the order of their ids, from the one after ``after`` on. ``labelled``:
        True for rows with a label, False for those without, None for both.
        """
        return [_as_answer(stored) for stored in self.log.rows(after, n, labelled)]

    def history(self, id: str | None = None, before: int | None = None, n: int = 100) -> list[JsonObject]:
        """Returns the last ``n`` changes before change number ``before``, latest first; with an id those of one row."""
        return [_of_history(change) for change in self.log.history(id, 2**62 if before is None else before, n)]

    def digest(self) -> tuple[str, int]:
        """Returns the SHA-256 digest of all counts, and the number of the last change in them."""
        with self.learner.lock:
            change = self.learner.change
            if self._digest is not None and self._digest[0] == change:
                return self._digest[1], change
            tally = self.learner.tally()
        self._digest = (change, tally.digest())
        del tally
        give_back()
        return self._digest[1], change

    def verify(self) -> JsonObject:
        """Counts all rows of the log again and compares the digest with that of the state. Returns for JSON whether
        they are equal, both digests, the number of rows and that of the last change.
        """
        tally, rows, change = self.rows_with_labels()  # change: the number of the last one
        assert self.folder is not None
        recounted_tally = _recount(_tally(load(self.folder / BASE)), rows)
        if recounted_tally.schema != tally.schema:
            recounted_tally = recounted_tally.to(tally.schema)
        digest = tally.digest()
        recounted_digest = recounted_tally.digest()
        return {
            "equal": digest == recounted_digest,
            "digest": digest,
            "recounted_digest": recounted_digest,
            "rows": len(rows),
            "change": change,
        }

    def rows_with_labels(self) -> tuple[Tally, list[StoredRow], int]:
        """Returns the counts, the labelled rows, and the number of the last change in both. Raises NotKept without a
        log.
        """
        _ = self.log  # raises if there is none
        return self._run_between_commits(
            lambda: (self.learner.tally(), self.log.rows(labelled=True), self.learner.change)
        )

    # Changing

    def submit(
        self, change: ChangeRequest, respond: Callable[[JsonObject], Any] = lambda answer: answer
    ) -> Future[Any]:
        """Queues a change. Once it is durable, the future returns what ``respond`` makes of its answer.

        ``respond`` is called before the commit; a change for which it raises an error is not made.
        """
        _ = self.log  # raises if there is none
        if self._closed:
            raise errors.BanburyError("the service is shutting down and accepts no more changes.")
        future: Future[Any] = Future()
        self._queue.put(Pending(change, respond, future))
        return future

    def change(self, change: ChangeRequest) -> JsonObject:
        """Makes a change, waits until it is durable, and returns its answer, for JSON. Raises an error if it is not
        made.
        """
        return self.submit(change).result()  # type: ignore[no-any-return]

    @property
    def waiting(self) -> int:
        """How many changes wait to be written."""
        return self._queue.qsize()

    def offer(self, names: Sequence[Any]) -> None:
        """Sets ``names``, the classes that users may choose although no row has them yet."""

        key(list(names))  # raises where JSON cannot hold one

        def store_names() -> None:
            """Writes the names into the log, where ``self.names`` finds them."""
            with self.log.transaction():
                self.log.set_about(names=list(names))

        self._run_between_commits(store_names)

    def snapshot(self) -> int:
        """Writes a snapshot, from which the next start continues; returns the number of the last change in it."""
        self._run_between_commits(self._snapshot)
        return self.snapshot_at

    def weigh(self, settings: Settings, change: int) -> None:
        """Weighs evidence with these settings from now on. ``change``: the last change in the rows that they were
        learned from.
        """

        def use_settings() -> None:
            """Uses the settings, notes the change, and writes a snapshot."""
            self.learner.use(settings.without_forgotten(self.learner.tally()))  # rows may have been forgotten meanwhile
            self.learner.weighed_at = change
            with self.log.transaction():
                self.log.set_about(weighed_at=change)
            self._snapshot()

        self._run_between_commits(use_settings)

    def compact(self) -> None:
        """Deletes the history except the last change of each row, and contents that no row has any more. Earlier
        changes cannot be undone then.
        """

        def compact_log() -> None:
            """Writes a snapshot and shortens the log."""
            self._snapshot()  # first, since a restart needs all changes after the last snapshot
            with self.log.transaction():
                self.log.compact()
            self.log.scrub(vacuum=True)

        self._run_between_commits(compact_log)

    def _run_between_commits(self, work: Callable[[], T]) -> T:
        """Has the writer thread call ``work`` between two commits, and waits for the answer."""
        future: Future[T] = Future()

        def run() -> None:
            """Calls ``work`` and sets the future to what it returns or raises."""
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

        self._queue.put(run)
        return future.result()

    def _write(self) -> None:
        """Runs in the writer thread until it finds None in the queue: takes the waiting tasks, commits the changes
        among them together, calls the functions, and starts a snapshot when it is time.
        """
        while True:
            tasks = [self._queue.get()]  # changes, functions to call, and None for the end
            with suppress(queue.Empty):
                while len(tasks) < MOST_CHANGES_PER_COMMIT:
                    tasks.append(self._queue.get_nowait())
            changes = [task for task in tasks if isinstance(task, Pending)]
            if uncancelled := [task for task in changes if task.future.set_running_or_notify_cancel()]:
                self._commit(uncancelled)
            for task in tasks:
                if callable(task):
                    task()
            if None in tasks:
                return
            if self.learner.change - max(self.snapshot_at, self._snapshot_thread_change) >= SNAPSHOT_EVERY:
                self._start_snapshot()

    def _commit(self, pending_changes: Sequence[Pending]) -> None:
        """Makes the changes that are waiting, each completely or not at all, and responds when all are durable."""
        change_before = self.learner.change  # its number, as below
        snapshot_path = None  # of a snapshot that this commit needs, since rows were deleted
        try:
            with self.log.transaction():
                outcomes = [self._make(pending) for pending in pending_changes]  # responses or exceptions
                if self._needs_snapshot:
                    snapshot_path = self._write_snapshot()
        except BaseException as error:
            self._revert(n_reversals=0, change=change_before)
            self._needs_snapshot = False
            if snapshot_path is not None:
                snapshot_path.unlink(missing_ok=True)
            is_our_error = isinstance(error, errors.BanburyError)
            for pending in pending_changes:
                pending.future.set_exception(error if is_our_error else DiskFull(f"the change was not made: {error}."))
            return
        self.commits += 1
        self._reversals.clear()
        purge_error = self._purge_deleted_rows(snapshot_path)
        for pending, outcome in zip(pending_changes, outcomes, strict=True):
            if isinstance(outcome, Exception):
                pending.future.set_exception(outcome)
            elif purge_error is not None and isinstance(pending.change, Delete):
                pending.future.set_exception(purge_error)
            else:
                pending.future.set_result(outcome)

    def _purge_deleted_rows(self, snapshot_path: Path | None) -> errors.BanburyError | None:
        """Removes deleted rows from every file of the state. ``snapshot_path``: a new snapshot without them, None if
        none is needed. Returns the error if that fails, otherwise None.
        """
        try:
            if snapshot_path is not None:
                self._wait_for_snapshot()
                self._adopt_snapshot(snapshot_path)
            if self._needs_scrub:
                self.log.scrub()
            self._needs_scrub = self._needs_snapshot = False
        except errors.BanburyError as error:
            return error
        except OSError as error:
            return DiskFull(f"not purged yet: {error}.")
        return None

    def _make(self, pending: Pending) -> Any:
        """Makes one change and returns its response; if that fails, reverts it and returns the exception.

        The counts change last, when the log has the change and the response is built, so that hardly anything can fail
        after other threads have seen them.
        """
        self._steps.clear()  # what the change does to the counts
        self._new_classes.clear()
        n_reversals = len(self._reversals)  # of the changes before this one in the commit
        change_before = self.learner.change  # its number
        flags_before = self._needs_scrub, self._needs_snapshot  # whether files contain deleted rows
        try:
            with self.log.savepoint():
                response = pending.respond(self._answer(pending.change))
                for step in self._steps:
                    self._apply(step)
                return response
        except DiskFull:
            raise
        except Exception as error:
            self._revert(n_reversals, change_before)
            self._needs_scrub, self._needs_snapshot = flags_before
            return error

    def _answer(self, change: ChangeRequest) -> JsonObject:
        """Carries out a change in the log, plans what it does to the counts, and returns its answer for JSON: the
        action, and the number of the change; for several changes, the answer of each.
        """
        if isinstance(change, Together):
            return {
                "action": "together",
                "rows": [self._handlers[type(single_change)](single_change) for single_change in change.changes],
            }
        return self._handlers[type(change)](change)

    def _apply(self, step: Step) -> None:
        """Applies a step to the counts: subtracts its old tally and adds its new one. Appends to ``_reversals`` the
        functions that revert this.
        """
        with self.learner.lock:
            if (old_tally := step.old) is not None:
                self.learner.forget(old_tally)
                self._reversals.append(lambda: self.learner.add(old_tally))
            if (new_tally := step.new) is not None:
                self.learner.add(new_tally)
                self._reversals.append(lambda: self.learner.forget(new_tally))
            self.learner.change = step.change

    def _revert(self, n_reversals: int, change: int) -> None:
        """Reverts the counts to those of change number ``change`` and drops what was derived since, as the next change
        gets the same number. ``n_reversals``: how many of the functions in ``_reversals`` are to
        remain; the others are called, last first.
        """
        if len(self._reversals) == n_reversals and self.learner.change == change:
            return
        with self.learner.lock:
            while len(self._reversals) > n_reversals:
                self._reversals.pop()()
            self.learner.change = change
            # Models derived with the settings before are no longer used.
            self.learner.use(replace(self.learner.settings))
            self._digest = None

    def _put(self, put: Put) -> JsonObject:
        """Stores a row with its label in the log and plans the step that learns it, unless it is stored so already.
        Returns the answer for JSON: the action, the id, the label, the number of the change, and whether the row is
        new.
        """
        id = check_id(put.id)
        stored = self.log.row(put.id, in_transaction=True)  # the row as it was, or None
        row_text = key(put.row)  # as JSON
        is_same_row = stored is not None and stored.row == row_text
        # As it is counted; then as JSON text.
        label = None if put.label is None else self.learner.rows.label(put.label, self._classes(), put.new_class)
        label_text = None if label is None else key(label)
        if stored is not None and is_same_row and stored.label == label_text:
            return {"action": "unchanged", "id": id, "label": label, "change": stored.change}
        old_tally, new_tally = self._count(stored, put.row, label)  # of the row as it was and as it will be, or None
        content_number = stored.content if is_same_row and stored is not None else self.log.add_content(id, row_text)
        action = _action(stored, is_same_row, label)
        change = self.log.put(id, action, stored, label_text, content_number, note=put.note)  # its number
        self._plan(change, old_tally, new_tally)
        return {
            "action": action,
            "id": id,
            "label": label,
            "change": change,
            **({"new": True} if stored is None else {}),
        }

    def _delete(self, delete: Delete) -> JsonObject:
        """Deletes a row from the log and plans the step that forgets it. Returns the answer for JSON. Raises UnknownRow
        if there is no such row.
        """
        id = check_id(delete.id)
        stored = self.log.row(delete.id, in_transaction=True)  # the row as it was, or None
        if stored is None:
            raise _unknown(id)
        old_tally, _ = self._count(stored, row=None, label=None)  # None if the row had no label
        # If a snapshot contains the row, it has to be replaced.
        if self.log.first_change(id) <= max(self.snapshot_at, self._snapshot_thread_change):
            self._needs_snapshot = True
        self._needs_scrub = True
        change = self.log.purge(id, stored)  # its number
        self._plan(change, old_tally, new=None)
        return {"action": "deleted", "id": id, "change": change}

    def _undo_change(self, undo: Undo) -> JsonObject:
        """Restores the label and the content that the last change replaced, and plans the step for the counts. Returns
        the answer for JSON. Raises UnknownRow if there is nothing to undo.
        """
        # The change to undo and the row as it is, None if there is none.
        last_change = self.log.to_undo(None if undo.id is None else check_id(undo.id))
        stored = None if last_change is None else self.log.row(last_change.id, in_transaction=True)
        if last_change is None or stored is None:
            text = "there is no change" if undo.id is None else f"there is no change of {undo.id!r}"
            raise UnknownRow(f"{text} to undo.")
        # A new row stays, without a label.
        content_number = stored.content if last_change.content_before is None else last_change.content_before
        label = _label(last_change.label_before)
        old_tally, new_tally = self._count(
            stored, json.loads(self.log.content(content_number, in_transaction=True)), label
        )
        change = self.log.put(
            stored.id, "undone", stored, last_change.label_before, content_number, undoes=last_change.change
        )
        self._plan(change, old_tally, new_tally)
        return {"action": "undone", "id": stored.id, "label": label, "undoes": last_change.change, "change": change}

    def _classes(self) -> list[Any]:
        """Returns the classes of all rows, those that the change in progress adds, and those that users may choose."""
        return list(dict.fromkeys((*self.learner.classes, *self._new_classes, *(self.names or []))))

    def _plan(self, change: int, old: Tally | None, new: Tally | None) -> None:
        """Plans a step of the change in progress, whose number is ``change``: the tally ``old`` of a row is to be
        subtracted from the counts, and the tally ``new`` added to them; None for nothing.
        """
        self._steps.append(Step(change, old, new))
        if new is not None:
            self._new_classes.update(dict.fromkeys(new.classes))

    def _count(self, stored: StoredRow | None, row: Any, label: Any) -> tuple[Tally | None, Tally | None]:
        """Returns the tally of a row as it was learned before (``stored``), and the tally of ``row`` as it is to be
        learned with this label. A tally is None if the row was, or is to be, without a label; so are ``stored`` and
        ``row`` if there is none.
        """
        old_tally = None
        if stored is not None and stored.label is not None:
            old_tally = self.learner.part(json.loads(stored.row), json.loads(stored.label))
        if row is not None and label is None:
            self.learner.rows.check(row)
        return old_tally, None if label is None else self.learner.part(row, label)

    # Snapshots

    def _write_snapshot(self) -> Path:
        """Writes a snapshot as of the last change and returns its path. If rows were deleted (``_needs_snapshot``), the
        settings drop values that no row has any more.
        """
        with self.learner.lock:
            tally = self.learner.tally()
            if self._needs_snapshot:
                self.learner.use(self.learner.settings.without_forgotten(tally))
        return self._save(tally, self.learner.settings, self.learner.change)

    def _save(self, tally: Tally, settings: Settings, change: int) -> Path:
        """Writes a snapshot as of ``change``: a model with these settings, or a tally alone if no labelled row is left.
        Returns its path.
        """
        assert self.folder is not None
        path = self.folder / f"snapshot-{change}.banbury"
        model_or_tally = tally  # which of both is saved
        with suppress(errors.EmptyData):
            model_or_tally = settings.model(tally)  # type: ignore[assignment]
        save(model_or_tally, path)
        return path

    def _adopt_snapshot(self, path: Path) -> None:
        """Makes the snapshot at this path the current one and removes the others."""
        assert self.folder is not None
        self.snapshot_at = int(path.name[9:-8])  # N in snapshot-N.banbury
        _remove_snapshots(self.folder, but=self.snapshot_at)
        give_back()

    def _start_snapshot(self) -> None:
        """Starts a thread that writes a snapshot while changes go on. A deletion meanwhile waits for it and replaces
        it.
        """
        self._wait_for_snapshot()
        change = self._snapshot_thread_change = self.learner.change  # the last one in the snapshot
        tally = self.learner.tally()
        settings = self.learner.settings

        def write() -> None:
            """Writes the snapshot as of ``change`` and has the writer thread adopt it; the log suffices if this fails."""
            with suppress(errors.BanburyError, OSError):
                path = self._save(tally, settings, change)
                self._queue.put(lambda: self._finish(path, change))

        self._snapshot_thread = threading.Thread(target=write, name="banbury-snapshot")
        self._snapshot_thread.start()

    def _finish(self, path: Path, change: int) -> None:
        """Adopts the snapshot as of ``change`` that a thread has written, unless there is a later one."""
        with suppress(errors.BanburyError, OSError):
            if change > self.snapshot_at:
                self._adopt_snapshot(path)
            elif change < self.snapshot_at:
                path.unlink(missing_ok=True)

    def _wait_for_snapshot(self) -> None:
        """Waits until the thread that writes a snapshot has ended."""
        if self._snapshot_thread is not None:
            self._snapshot_thread.join()
            self._snapshot_thread = None

    def _snapshot(self) -> None:
        """Writes a snapshot and makes it the current one."""
        self._wait_for_snapshot()
        self._adopt_snapshot(self._write_snapshot())
        self._purge_deleted_rows(snapshot_path=None)


T = TypeVar("T")
BASE = "base.banbury"  # the file in the folder with the model that the state was created with


def check_id(id: str) -> str:
    """Returns the id if it is valid: a short printable text. Raises BadSetting otherwise."""
    is_valid = isinstance(id, str) and 0 < len(id) <= LONGEST_ID and id.isprintable() and "\ufffd" not in id
    if not is_valid or id in (".", ".."):  # which cannot be part of a URL
        raise errors.bad_setting("id", id, f"1 to {LONGEST_ID} printable characters, and not . or ..")
    return id


def _action(stored: StoredRow | None, is_same_row: bool, label: Any) -> str:
    """Returns what storing a row does, as the history names it: "kept", "learned", "replaced", "unlabelled" or "moved".
    ``stored``: the row as it was, None for a new one; ``is_same_row``: whether its content stays; ``label``: its new
    label, None for none.
    """
    if stored is None or (is_same_row and stored.label is None):
        return "kept" if label is None else "learned"
    if not is_same_row:
        return "replaced"
    return "unlabelled" if label is None else "moved"


def _as_answer(stored: StoredRow) -> JsonObject:
    """Returns a stored row as a dictionary for JSON: its id, label, content and last change."""
    return {"id": stored.id, "label": _label(stored.label), "row": json.loads(stored.row), "change": stored.change}


def _label(text: str | None) -> Any:
    """Returns the label that a JSON text holds; None for None."""
    return None if text is None else json.loads(text)


def _of_history(change: Change) -> JsonObject:
    """Returns a change as a dictionary for JSON: its number, time, row and action; unless the row was deleted, its
    label after and before; and what it undoes and its note, if it has them.
    """
    iso_time = datetime.fromtimestamp(change.time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    description: JsonObject = {"change": change.change, "time": iso_time, "id": change.id, "action": change.action}
    if change.content is None:  # a deletion, or a change of a row that was deleted later
        return description
    description |= {"label": _label(change.label), "label_before": _label(change.label_before)}
    description |= {} if change.undoes is None else {"undoes": change.undoes}
    return description if change.note is None else {**description, "note": change.note}


def _unknown(id: str) -> UnknownRow:
    """Returns the error of an id that no row has."""
    return UnknownRow(f"row {id!r} does not exist. Learn it first with PUT /rows/{{id}}.", id=id)


# Beginning and restarting ---------------------------------------------------------------------------------------------


def _tally(served: Any) -> Tally:
    """Returns the tally of ``served``, a model or a tally. Raises BadSetting if it is neither."""
    tally = served if isinstance(served, Tally) else getattr(served, "tally", None)
    if not isinstance(tally, Tally):
        raise errors.bad_setting("the served file", type(served).__name__, "a model, a multi-label model or a tally")
    return tally


def _begin(
    folder: Path,
    log: Log,
    served: Served | Path,
    learned: Callable[[Tally], Iterable[tuple[Any, Any]]] | None,
    threads: int | None,
) -> ServedLearner:
    """Creates a state in the folder ``folder`` with the model ``served``, and returns its learner. ``learned``: takes
    the model's tally and yields its training rows and their labels, if they are to become rows of the state; None
    otherwise. Raises an error if they are not the rows that were counted.
    """
    base = _load_served(served)  # the model or tally
    tally = _tally(base)
    settings = settings_of(base, threads)
    if tally.rounded:
        raise errors.forget_before_fading("the model to be served")
    learner = ServedLearner(tally, settings)
    choice = settings.choice  # how parameters are estimated
    choice_facts: JsonObject = {"how": choice.how, "alpha": choice.alpha, "seed": choice.seed}
    _remove_snapshots(folder)
    with log.transaction():
        log.set_about(format=FORMAT, settings=choice_facts, begun=time.time())
        log.set_about(model=_identity(served) if isinstance(served, Path) else None)
        if learned is None:
            save(base, folder / BASE)
            return learner
        recounting = ServedLearner(tally - tally, ModelSettings())  # counts the rows again, beginning without any
        for number, (row, label) in enumerate(learned(tally), 1):
            recounting.add(recounting.part(row, label))
            id = f"{number:07}"
            learner.change = log.put(
                id, "learned", before=None, label=key(label), content=log.add_content(id, key(row))
            )
        if recounting.tally() != tally:
            raise errors.SchemaMismatch(
                f"these are not the rows that the model counted: there are {recounting.n_rows:,g}, but it counted "
                f"{tally.n_rows:,g}. Give the training rows, read with the same options."
            )
        save(tally - tally, folder / BASE)
        save(base, folder / f"snapshot-{learner.change}.banbury")
    return learner


def _load_served(served: Served | Path) -> Served:
    """Returns the model or tally to serve, loaded if it is a path. Raises an error if JSON cannot hold its names."""
    loaded: Any = load(served) if isinstance(served, Path) else served  # a model or a tally
    tally = _tally(loaded)
    for names in (tally.classes, tally.schema.columns):
        key([plain(name) for name in names])  # raises where JSON cannot hold one
    return loaded  # type: ignore[no-any-return]


def _restart(folder: Path, log: Log, served: Served | Path | None, threads: int | None) -> ServedLearner:
    """Returns the learner of the state in a folder as of the last change in its log: from the latest valid snapshot and
    the changes after it, or else from the base and all rows. ``served``: the model that the state should have been
    created with, or None.
    """
    about = log.about  # facts by name
    last = log.last  # the number of the last change
    if served is not None and not _is_base(served, folder, about):
        raise errors.BadSetting(
            f"the state in {folder} was created with another model. Serve it without a model, or create another state."
        )
    # The numbers of the changes as of which there are snapshots that contain no deleted row.
    valid_snapshots = [change for change in _snapshots(folder) if log.last_purge <= change <= last]
    if not valid_snapshots:
        _remove_snapshots(folder)
        base = load(folder / BASE)  # the model or tally
        tally = _recount(_tally(base), log.rows(labelled=True))
        return ServedLearner(tally, settings_of(base, threads), last)  # type: ignore[arg-type]
    _remove_snapshots(folder, but=max(valid_snapshots))
    loaded: Any = load(folder / f"snapshot-{max(valid_snapshots)}.banbury")
    settings = settings_of(loaded, threads)
    if isinstance(loaded, Tally):
        choice_facts = about["settings"]
        settings = replace(settings, choice=choice_of(choice_facts["how"], choice_facts["alpha"], choice_facts["seed"]))
    learner = ServedLearner(_tally(loaded), settings, max(valid_snapshots))
    for change in log.changes(max(valid_snapshots)):
        # The row as it was is forgotten, and learned as it became; labels are JSON texts.
        for content_number, label, apply_tally in (
            (change.content_before, change.label_before, learner.forget),
            (change.content, change.label, learner.add),
        ):
            if content_number is not None and label is not None:
                apply_tally(learner.part(json.loads(log.content(content_number)), json.loads(label)))
        learner.change = change.change
    return learner


def _is_base(served: Served | Path, folder: Path, about: JsonObject) -> bool:
    """Returns whether the state in a folder was created with the model ``served``. Files are compared by their headers,
    which contain checksums of the rest, other models by their digests. ``about``: the facts in the log.
    """
    if isinstance(served, Path) and about["model"] is not None:
        return bool(_identity(served) == about["model"])
    model = load(served) if isinstance(served, Path) else served
    return _tally(model).digest() == _tally(load(folder / BASE)).digest()


def _identity(path: Path) -> str:
    """Returns a hash (hexadecimal) of the header of a Banbury file. Raises BadFile if it cannot be read."""
    try:
        with open(path, "rb") as file:  # its first 8 bytes are the length of the header
            # The mask keeps the number small if it is another file.
            return blake2b(file.read(int.from_bytes(file.read(8), "little") & 0xFFFFFFFF)).hexdigest()
    except OSError:
        load(path)  # which raises a clearer error
        raise


def _recount(base: Tally, rows: Sequence[StoredRow]) -> Tally:
    """Returns the sum of the tally ``base`` and the counts of these rows, each of which has a label."""
    learner = ServedLearner(base, ModelSettings())
    for stored in rows:
        assert stored.label is not None
        learner.add(learner.part(json.loads(stored.row), json.loads(stored.label)))
    return learner.tally()


def _snapshots(folder: Path) -> list[int]:
    """Returns for each snapshot in a folder the number of the last change in it, in no order."""
    return [int(match[1]) for name in os.listdir(folder) if (match := SNAPSHOT_NAME.fullmatch(name))]


def _remove_snapshots(folder: Path, but: int | None = None) -> None:
    """Removes the snapshots in a folder, except the one as of change number ``but`` (None: all)."""
    for change in _snapshots(folder):
        if change != but:
            (folder / f"snapshot-{change}.banbury").unlink()


def give_back() -> None:
    """Gives free memory back to the operating system, if the C library can; returns nothing."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)  # of this process (None), keeping 0 bytes at the end of the heap


def _lock(folder: Path, begins: bool) -> Any:
    """Locks the folder of a state for one server and returns the open lock file. ``begins``: whether to create the
    folder if it does not exist. Raises StateInUse if another server has locked it, BadFile if it cannot be used.
    """
    try:
        if begins:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = open(folder / "lock", "a+b")  # noqa: SIM115 (it is held as long as the state is open)
    except OSError as error:
        raise errors.bad_file(folder, f"a state cannot be created there ({error.strerror or error})") from None
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise StateInUse(
            f"another server is using the state in {folder}. Stop it first, or use another folder.",
            path=str(folder),
        ) from None
    return lock


def _unlock(lock: Any) -> None:
    """Unlocks the folder of a state. ``lock``: its lock file, or None."""
    if lock is not None:
        lock.close()
