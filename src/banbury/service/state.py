"""State: a model with the log of all that it learned. What it acknowledged is there after any crash, and nothing else.

A state is a folder: ``base.banbury``, the model it was begun with; ``log.sqlite``; and ``snapshot-N.banbury``, the model as of
change N, from which a restart goes on with the changes behind it. A snapshot is never needed: base and log make it again.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import re
import shutil
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
from banbury.labels import LabelModel
from banbury.learner import ModelSettings, Settings, settings_of
from banbury.model.naive_bayes import Model, choice_of
from banbury.service.learner import ServedLearner
from banbury.service.log import FORMAT, Change, DiskFull, Kept, Log
from banbury.service.rows import key, plain
from banbury.tally.tally import Tally

try:
    import fcntl
except ImportError:  # pragma: no cover (elsewhere SQLite alone keeps others out)
    fcntl = None  # type: ignore[assignment]

MOST_TOGETHER = 256  # changes that are committed at once
SNAPSHOT_EVERY = 5_000  # changes
SNAPSHOT = re.compile(r"snapshot-(\d+)\.banbury")
LONGEST_ID = 512
Served: TypeAlias = Model | LabelModel | Tally


class StateInUse(errors.BanburyError):
    """Another server runs on the state."""


class UnknownRow(errors.BanburyError):
    """A row was asked for that the state does not have."""


class NotKept(errors.BanburyError):
    """The request needs rows that the service does not have."""


@dataclass(frozen=True)
class Put:
    """Learn a row under an id; a label of None keeps it without one. Only ``new_class`` lets a label be a new class."""

    id: str
    row: Any
    label: Any = None
    note: str | None = None
    new_class: bool = False


@dataclass(frozen=True)
class Delete:
    """Forget a row, and purge what it held."""

    id: str


@dataclass(frozen=True)
class Undo:
    """Take the last change back, of all rows or of one, that was not taken back yet."""

    id: str | None = None


@dataclass(frozen=True)
class Together:
    """Several changes: all of them, or none."""

    changes: tuple[Put | Delete | Undo, ...]


Wanted: TypeAlias = Put | Delete | Undo | Together
Answer: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Pending:
    """A change that waits to be committed, what makes a response of its answer, and the future of that response."""

    wanted: Wanted
    respond: Callable[[Answer], Any]
    future: Future[Any]


class Step(NamedTuple):
    """What a change takes out of the sums and adds to them."""

    change: int
    old: Tally | None
    new: Tally | None


class ServedState:
    """A model that learns and forgets rows by their ids, durably; without a folder it only answers.

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
        self.learner = learner
        self.folder = folder
        self._log = log
        self._lock_file = lock
        about = {} if log is None else log.about
        learner.weighed_at = about.get("weighed_at")
        self.snapshot_at = 0 if folder is None else max(_snapshots(folder), default=0)  # the last one's change
        self.commits = 0
        self._queue: queue.SimpleQueue[Pending | Callable[[], None] | None] = queue.SimpleQueue()
        self._steps: list[Step] = []  # of the change that is being made
        self._new_classes: dict[Any, None] = {}  # those of its rows, in order
        self._undo: list[Callable[[], None]] = []  # what takes back, in memory, that which was not committed
        self._beside: threading.Thread | None = None  # writes a snapshot, as of this change
        self._beside_at = 0
        self._scrub = self._renew = False  # whether contents went, and whether the snapshot holds any of them
        self._digest: tuple[int, str] | None = None
        self._closed = False
        self._makes: dict[type, Callable[[Any], Answer]] = {Put: self._put, Delete: self._delete, Undo: self._undone}
        self._writer: threading.Thread | None = None
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
        """The state in a folder, which is begun with a model, or with the file of one, where there is none yet.

        ``learned`` gives the rows that the model counted, each with its label: they are then rows of the state as all others
        are, with the ids 0000001, 0000002 and so on.
        """
        if folder is None:
            if served is None:
                raise errors.BadSetting("nothing to serve. Give a model, or a state that was created with one.")
            kept = _load_served(served)
            return cls(ServedLearner(_tally(kept), settings_of(kept, threads)))
        place = Path(folder)
        lock = _lock(place, begins=served is not None)
        log = None
        try:
            for entry in place.glob("*.part"):  # of a save that was killed
                entry.unlink()
            log = Log(place / "log.sqlite")
            if "begun" not in log.about:
                if served is None:
                    raise errors.BadSetting(f"{place} does not contain a state yet. Give the model to start from.")
                learner = _begin(place, log, served, learned, threads)
            else:
                learner = _restart(place, log, served, threads)
            return cls(learner, place, log, lock)
        except BaseException:
            if log is not None:
                log.close()
            _unlock(lock)
            raise

    def __enter__(self) -> ServedState:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends in order: what waits is written, and a snapshot is left, so that the next start is quick."""
        if self._closed:
            return
        self._closed = True
        if self._writer is not None:
            self._queue.put(None)
            self._writer.join()
            self._wait_beside()
            if self.learner.change > self.snapshot_at:  # where it cannot be written, the log has all
                with suppress(errors.BanburyError, OSError):
                    self._snapshot()
        self.learner.close()
        if self._log is not None:
            self._log.close()
        _unlock(self._lock_file)

    # Asking

    @property
    def log(self) -> Log:
        if self._log is None:
            raise NotKept("the service runs without a state, so it cannot learn. Start it with --state DIR.")
        return self._log

    @property
    def change_number(self) -> int:
        """Number of the last change."""
        return self.learner.change

    @property
    def names(self) -> list[Any] | None:
        """Classes that rows may be given though none has them yet; None where that was never said."""
        return None if self._log is None else self._log.about.get("names")

    def row(self, id: str) -> Answer:
        """A row with its label, as they stand."""
        kept = self.log.row(check_id(id))
        if kept is None:
            raise _unknown(id)
        return _as_answer(kept)

    def rows(self, after: str = "", n: int = 100, labelled: bool | None = None) -> list[Answer]:
        """List rows in the order of their ids."""
        return [_as_answer(kept) for kept in self.log.rows(after, n, labelled)]

    def history(self, id: str | None = None, before: int | None = None, n: int = 100) -> list[Answer]:
        """The last changes, the latest first. Of a row that was deleted only ids and times are left."""
        return [_of_history(change) for change in self.log.history(id, 2**62 if before is None else before, n)]

    def digest(self) -> tuple[str, int]:
        """The SHA-256 of all that is counted, and the change as of which it is."""
        with self.learner.lock:
            change = self.learner.change
            if self._digest is not None and self._digest[0] == change:
                return self._digest[1], change
            tally = self.learner.tally()
        self._digest = (change, tally.digest())
        del tally
        give_back()
        return self._digest[1], change

    def verify(self) -> Answer:
        """Counts all rows again, and says whether their sums are those of the state, to the last bit."""
        tally, rows, change = self.standing()
        assert self.folder is not None
        again = _recount(_tally(load(self.folder / BASE)), rows)
        again = again if again.schema == tally.schema else again.to(tally.schema)
        digest = tally.digest()
        recount = again.digest()
        return {"equal": digest == recount, "digest": digest, "recount": recount, "rows": len(rows), "change": change}

    def standing(self) -> tuple[Tally, list[Kept], int]:
        """The sums, the rows that have labels, and the change as of which both are."""
        _ = self.log
        return self._in_turn(lambda: (self.learner.tally(), self.log.rows(labelled=True), self.learner.change))

    # Changing

    def submit(self, change: Wanted, respond: Callable[[Answer], Any] = lambda answer: answer) -> Future[Any]:
        """Queues a change; the future has its answer, as ``respond`` returns it, once the change is durable.

        ``respond`` is called before the change is committed, and a change for which it raises is not made.
        """
        _ = self.log
        if self._closed:
            raise errors.BanburyError("the service is shutting down and accepts no more changes.")
        future: Future[Any] = Future()
        self._queue.put(Pending(change, respond, future))
        return future

    def change(self, wanted: Wanted) -> Answer:
        """Makes a change, and waits until it is durable."""
        answer: Answer = self.submit(wanted).result()
        return answer

    @property
    def waiting(self) -> int:
        """How many changes wait to be written."""
        return self._queue.qsize()

    def offer(self, names: Sequence[Any]) -> None:
        """From now on these are classes that rows may be given, though none has them yet."""

        key(list(names))  # raises where JSON cannot hold one

        def told() -> None:
            with self.log.transaction():
                self.log.tell(names=list(names))

        self._in_turn(told)

    def snapshot(self) -> int:
        """Writes the model as it stands, so that a restart begins there; the change as of which it is."""
        self._in_turn(self._snapshot)
        return self.snapshot_at

    def weigh(self, settings: Settings, change: int) -> None:
        """From now on evidence is weighed so, as it was learned as of a change; a snapshot keeps it."""

        def used() -> None:
            self.learner.use(settings.without_forgotten(self.learner.tally()))  # rows may have been forgotten meanwhile
            self.learner.weighed_at = change
            with self.log.transaction():
                self.log.tell(weighed_at=change)
            self._snapshot()

        self._in_turn(used)

    def compact(self) -> None:
        """Drops the history but for the last change of each row, and contents that no row has any more.

        What happened before is not undone any more.
        """

        def compact_log() -> None:
            self._snapshot()  # first, for what is behind a snapshot is needed whole
            with self.log.transaction():
                self.log.compact()
            self.log.scrub(vacuum=True)

        self._in_turn(compact_log)

    def _in_turn(self, work: Callable[[], T]) -> T:
        """Has the writer do something between two commits, and waits for it."""
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(work())
            except BaseException as problem:
                done.set_exception(problem)

        self._queue.put(run)
        return done.result()

    def _write(self) -> None:
        """The one writer: takes all that waits, and commits it together."""
        while True:
            taken = [self._queue.get()]
            with suppress(queue.Empty):
                while len(taken) < MOST_TOGETHER:
                    taken.append(self._queue.get_nowait())
            changes = [task for task in taken if isinstance(task, Pending)]
            if group := [task for task in changes if task.future.set_running_or_notify_cancel()]:
                self._commit(group)
            for task in taken:
                if callable(task):
                    task()
            if None in taken:
                return
            if self.learner.change - max(self.snapshot_at, self._beside_at) >= SNAPSHOT_EVERY:
                self._snapshot_beside()

    def _commit(self, group: Sequence[Pending]) -> None:
        """Makes changes, each completely or not at all, and responds when all of them are durable."""
        before = self.learner.change
        written = None
        try:
            with self.log.transaction():
                outcomes = [self._make(pending) for pending in group]
                if self._renew:
                    written = self._written_snapshot()
        except BaseException as problem:
            self._take_back(0, before)
            self._renew = False
            if written is not None:
                written.unlink(missing_ok=True)
            ours = isinstance(problem, errors.BanburyError)
            for pending in group:
                pending.future.set_exception(problem if ours else DiskFull(f"the change was not made: {problem}."))
            return
        self.commits += 1
        self._undo.clear()
        not_purged = self._purge_deleted_rows(written)
        for pending, outcome in zip(group, outcomes, strict=True):
            if isinstance(outcome, Exception):
                pending.future.set_exception(outcome)
            elif not_purged is not None and isinstance(pending.wanted, Delete):
                pending.future.set_exception(not_purged)
            else:
                pending.future.set_result(outcome)

    def _purge_deleted_rows(self, written: Path | None) -> errors.BanburyError | None:
        """Leaves nothing of deleted rows in any file of the state; returns what went wrong."""
        try:
            if written is not None:
                self._wait_beside()
                self._settle(written)
            if self._scrub:
                self.log.scrub()
            self._scrub = self._renew = False
        except errors.BanburyError as problem:
            return problem
        except OSError as problem:
            return DiskFull(f"not purged yet: {problem}.")
        return None

    def _make(self, pending: Pending) -> Any:
        """Makes one change and returns its response. If anything fails, nothing has changed, and the exception is returned.

        The sums change last, when the log has the change and the response is built, so that hardly anything can fail after
        somebody has seen them.
        """
        self._steps.clear()
        self._new_classes.clear()
        n_undo = len(self._undo)
        before = self.learner.change
        purges = self._scrub, self._renew
        try:
            with self.log.savepoint():
                response = pending.respond(self._answer(pending.wanted))
                for step in self._steps:
                    self._take(step)
                return response
        except DiskFull:
            raise
        except Exception as problem:
            self._take_back(n_undo, before)
            self._scrub, self._renew = purges
            return problem

    def _answer(self, change: Wanted) -> Answer:
        if isinstance(change, Together):
            return {"action": "together", "rows": [self._makes[type(part)](part) for part in change.changes]}
        return self._makes[type(change)](change)

    def _take(self, step: Step) -> None:
        """Has the sums follow a change."""
        with self.learner.lock:
            if (old := step.old) is not None:
                self.learner.forget(old)
                self._undo.append(lambda: self.learner.add(old))
            if (new := step.new) is not None:
                self.learner.add(new)
                self._undo.append(lambda: self.learner.forget(new))
            self.learner.change = step.change

    def _take_back(self, n_undo: int, change: int) -> None:
        """Has the sums go back to an earlier change, and forgets what was derived since: the next change has the same number."""
        if len(self._undo) == n_undo and self.learner.change == change:
            return
        with self.learner.lock:
            while len(self._undo) > n_undo:
                self._undo.pop()()
            self.learner.change = change
            self.learner.use(replace(self.learner.settings))
            self._digest = None

    def _put(self, put: Put) -> Answer:
        id = check_id(put.id)
        kept = self.log.row(put.id, within=True)
        text = key(put.row)
        same = kept is not None and kept.row == text
        label = None if put.label is None else self.learner.rows.label(put.label, self._classes(), put.new_class)
        label_text = None if label is None else key(label)
        if kept is not None and same and kept.label == label_text:
            return {"action": "unchanged", "id": id, "label": label, "change": kept.change}
        old, new = self._count(kept, put.row, label)
        content = kept.content if same and kept is not None else self.log.keep(id, text)
        action = _action(kept, same, label)
        change = self.log.put(id, action, kept, label_text, content, note=put.note)
        self._plan(change, old, new)
        return {"action": action, "id": id, "label": label, "change": change, **({"new": True} if kept is None else {})}

    def _delete(self, delete: Delete) -> Answer:
        id = check_id(delete.id)
        kept = self.log.row(delete.id, within=True)
        if kept is None:
            raise _unknown(id)
        old, _ = self._count(kept, None, None)
        if self.log.first_change(id) <= max(self.snapshot_at, self._beside_at):
            self._renew = True
        self._scrub = True
        change = self.log.purge(id, kept)
        self._plan(change, old, None)
        return {"action": "deleted", "id": id, "change": change}

    def _undone(self, undo: Undo) -> Answer:
        last = self.log.to_undo(None if undo.id is None else check_id(undo.id))
        kept = None if last is None else self.log.row(last.id, within=True)
        if last is None or kept is None:
            text = "there is no change" if undo.id is None else f"there is no change of {undo.id!r}"
            raise UnknownRow(f"{text} to undo.")
        content = kept.content if last.content_before is None else last.content_before
        label = _label(last.label_before)
        old, new = self._count(kept, json.loads(self.log.content(content, within=True)), label)
        change = self.log.put(kept.id, "undone", kept, last.label_before, content, undoes=last.change)
        self._plan(change, old, new)
        return {"action": "undone", "id": kept.id, "label": label, "undoes": last.change, "change": change}

    def _classes(self) -> list[Any]:
        """The classes that rows have, those of the change that is under way among them, and those that are offered."""
        return list(dict.fromkeys((*self.learner.classes, *self._new_classes, *(self.names or []))))

    def _plan(self, change: int, old: Tally | None, new: Tally | None) -> None:
        """Notes what a change takes out of the sums and adds to them."""
        self._steps.append(Step(change, old, new))
        if new is not None:
            self._new_classes.update(dict.fromkeys(new.classes))

    def _count(self, kept: Kept | None, row: Any, label: Any) -> tuple[Tally | None, Tally | None]:
        """A row as it was learned, counted apart, and as it is to be learned; None: it was not, or is not to be."""
        old = None
        if kept is not None and kept.label is not None:
            old = self.learner.part(json.loads(kept.row), json.loads(kept.label))
        if row is not None and label is None:
            self.learner.rows.check(row)
        return old, None if label is None else self.learner.part(row, label)

    # Snapshots

    def _written_snapshot(self) -> Path:
        """The model as it stands, in a file that names the last change."""
        with self.learner.lock:
            tally = self.learner.tally()
            if self._renew:
                self.learner.use(self.learner.settings.without_forgotten(tally))
        return self._save(tally, self.learner.settings, self.learner.change)

    def _save(self, tally: Tally, settings: Settings, change: int) -> Path:
        """The file of a snapshot; of a tally alone where no row is left, or none that has a label."""
        assert self.folder is not None
        path = self.folder / f"snapshot-{change}.banbury"
        kept = tally
        with suppress(errors.EmptyData):
            kept = settings.model(tally)  # type: ignore[assignment]
        save(kept, path)
        return path

    def _settle(self, written: Path) -> None:
        """From now on this is the snapshot."""
        assert self.folder is not None
        self.snapshot_at = int(written.name[9:-8])
        _remove_snapshots(self.folder, but=self.snapshot_at)
        give_back()

    def _snapshot_beside(self) -> None:
        """Has a snapshot written while changes go on; a row that is deleted meanwhile waits for it, and has it replaced."""
        self._wait_beside()
        at = self._beside_at = self.learner.change
        tally = self.learner.tally()
        settings = self.learner.settings

        def write() -> None:
            with suppress(errors.BanburyError, OSError):
                path = self._save(tally, settings, at)
                self._queue.put(lambda: self._finish(path, at))

        self._beside = threading.Thread(target=write, name="banbury-snapshot")
        self._beside.start()

    def _finish(self, path: Path, at: int) -> None:
        """In its turn, the snapshot that was written beside is the one, unless there is a later one by now."""
        with suppress(errors.BanburyError, OSError):
            if at > self.snapshot_at:
                self._settle(path)
            elif at < self.snapshot_at:
                path.unlink(missing_ok=True)

    def _wait_beside(self) -> None:
        if self._beside is not None:
            self._beside.join()
            self._beside = None

    def _snapshot(self) -> None:
        self._wait_beside()
        self._settle(self._written_snapshot())
        self._purge_deleted_rows(None)


T = TypeVar("T")
BASE = "base.banbury"


def check_id(id: str) -> str:
    """The id of a row: a text that can be printed."""
    fits = isinstance(id, str) and 0 < len(id) <= LONGEST_ID and id.isprintable() and "\ufffd" not in id
    if not fits or id in (".", ".."):  # which no address of a row can hold
        raise errors.bad_setting("id", id, f"1 to {LONGEST_ID} printable characters, and not . or ..")
    return id


def _action(kept: Kept | None, same: bool, label: Any) -> str:
    if kept is None or (same and kept.label is None):
        return "kept" if label is None else "learned"
    if not same:
        return "replaced"
    return "unlabelled" if label is None else "moved"


def _as_answer(kept: Kept) -> Answer:
    return {"id": kept.id, "label": _label(kept.label), "row": json.loads(kept.row), "change": kept.change}


def _label(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _of_history(change: Change) -> Answer:
    clock = datetime.fromtimestamp(change.time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    description: Answer = {"change": change.change, "time": clock, "id": change.id, "action": change.action}
    if change.content is None:  # deleted, or of a row that was
        return description
    description |= {"label": _label(change.label), "before": _label(change.label_before)}
    description |= {} if change.undoes is None else {"undoes": change.undoes}
    return description if change.note is None else {**description, "note": change.note}


def _unknown(id: str) -> UnknownRow:
    return UnknownRow(f"row {id!r} does not exist. Learn it first with PUT /rows/{{id}}.", id=id)


# Beginning and restarting ---------------------------------------------------------------------------------------------


def _tally(served: Any) -> Tally:
    tally = served if isinstance(served, Tally) else getattr(served, "tally", None)
    if not isinstance(tally, Tally):
        raise errors.bad_setting("the served file", type(served).__name__, "a model, a multi-label model or a tally")
    return tally


def _begin(
    place: Path,
    log: Log,
    served: Served | Path,
    learned: Callable[[Tally], Iterable[tuple[Any, Any]]] | None,
    threads: int | None,
) -> ServedLearner:
    base = _load_served(served)
    tally = _tally(base)
    settings = settings_of(base, threads)
    if tally.rounded:
        raise errors.forget_before_fading("the model to be served")
    learner = ServedLearner(tally, settings)
    choice = settings.choice
    about: dict[str, Any] = {"how": choice.how, "alpha": choice.alpha, "seed": choice.seed}
    _remove_snapshots(place)
    with log.transaction():
        log.tell(format=FORMAT, settings=about, begun=time.time())
        log.tell(model=_identity(served) if isinstance(served, Path) else None)
        if learned is None:
            _keep_base(served, place)
            return learner
        again = ServedLearner(tally - tally, ModelSettings())
        for number, (row, label) in enumerate(learned(tally), 1):
            again.add(again.part(row, label))
            id = f"{number:07}"
            learner.change = log.put(id, "learned", None, key(label), log.keep(id, key(row)))
        if again.tally() != tally:
            raise errors.SchemaMismatch(
                f"these are not the rows that the model counted: there are {again.n_rows:,g}, but it counted "
                f"{tally.n_rows:,g}. Give the training rows, read with the same options."
            )
        save(tally - tally, place / BASE)
        save(base, place / f"snapshot-{learner.change}.banbury")
    return learner


def _keep_base(served: Served | Path, place: Path) -> None:
    """What the state was begun with; a file is copied, which is quicker than to write it anew."""
    if isinstance(served, Path):
        part = place / f"{BASE}.part"
        with open(served, "rb") as file, open(part, "wb") as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
            copy.flush()
            os.fsync(copy.fileno())
        os.replace(part, place / BASE)
    else:
        save(served, place / BASE)


def _load_served(served: Served | Path) -> Served:
    kept: Any = load(served) if isinstance(served, Path) else served
    tally = _tally(kept)
    for names in (tally.classes, tally.schema.columns):
        key([plain(name) for name in names])  # raises where JSON cannot hold one
    return kept  # type: ignore[no-any-return]


def _restart(place: Path, log: Log, served: Served | Path | None, threads: int | None) -> ServedLearner:
    """The state as of the last change in its log: from the last snapshot that is not ahead of it, or from the base."""
    about = log.about
    last = log.last
    if served is not None and not _is_base(served, place, about):
        raise errors.BadSetting(
            f"the state in {place} was created with another model. Serve it without a model, or create another state."
        )
    fit = [at for at in _snapshots(place) if log.last_purge <= at <= last]
    if not fit:
        _remove_snapshots(place)
        base = load(place / BASE)
        tally = _recount(_tally(base), log.rows(labelled=True))
        return ServedLearner(tally, settings_of(base, threads), last)  # type: ignore[arg-type]
    _remove_snapshots(place, but=max(fit))
    kept: Any = load(place / f"snapshot-{max(fit)}.banbury")
    settings = settings_of(kept, threads)
    if isinstance(kept, Tally):
        chosen = about["settings"]
        settings = replace(settings, choice=choice_of(chosen["how"], chosen["alpha"], chosen["seed"]))
    learner = ServedLearner(_tally(kept), settings, max(fit))
    for change in log.changes(max(fit)):
        for number, label, act in (
            (change.content_before, change.label_before, learner.forget),
            (change.content, change.label, learner.add),
        ):
            if number is not None and label is not None:
                act(learner.part(json.loads(log.content(number)), json.loads(label)))
        learner.change = change.change
    return learner


def _is_base(served: Served | Path, place: Path, about: dict[str, Any]) -> bool:
    """Whether a state was begun with this; of a file its header tells, which has the checksums of all that is in it."""
    if isinstance(served, Path) and about["model"] is not None:
        return bool(_identity(served) == about["model"])
    other = load(served) if isinstance(served, Path) else served
    return _tally(other).digest() == _tally(load(place / BASE)).digest()


def _identity(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return blake2b(file.read(int.from_bytes(file.read(8), "little") & 0xFFFFFFFF)).hexdigest()
    except OSError:
        load(path)  # which says what is wrong
        raise


def _recount(base: Tally, rows: Sequence[Kept]) -> Tally:
    """The sums of the base and of all these rows."""
    learner = ServedLearner(base, ModelSettings())
    for kept in rows:
        assert kept.label is not None
        learner.add(learner.part(json.loads(kept.row), json.loads(kept.label)))
    return learner.tally()


def _snapshots(place: Path) -> list[int]:
    """The changes as of which there are snapshots."""
    return [int(match[1]) for name in os.listdir(place) if (match := SNAPSHOT.fullmatch(name))]


def _remove_snapshots(place: Path, but: int | None = None) -> None:
    for at in _snapshots(place):
        if at != but:
            (place / f"snapshot-{at}.banbury").unlink()


def give_back() -> None:
    """Gives memory that is free again back to the system, where the C library can."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _lock(place: Path, begins: bool) -> Any:
    """The folder for one server alone."""
    try:
        if begins:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = open(place / "lock", "a+b")  # noqa: SIM115 (it is held as long as the state is open)
    except OSError as problem:
        raise errors.bad_file(place, f"a state cannot be created there ({problem.strerror or problem})") from None
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise StateInUse(
            f"another server is using the state in {place}. Stop it first, or use another folder.",
            path=str(place),
        ) from None
    return lock


def _unlock(lock: Any) -> None:
    if lock is not None:
        lock.close()
