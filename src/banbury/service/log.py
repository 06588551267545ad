"""Log: the rows of a state and every change of them, in SQLite. A change that was committed is there after any crash."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from banbury import errors

FORMAT = 2
PRAGMAS = (
    "auto_vacuum=INCREMENTAL",
    "journal_mode=WAL",
    "synchronous=FULL",
    "secure_delete=ON",
    "temp_store=MEMORY",
    "journal_size_limit=67108864",
)
# A change has the label and the content that a row had before and has after it; null: none. Contents are kept apart, so that
# a row may go back to any that it had. What is deleted leaves its number, time and id.
TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS contents (content INTEGER PRIMARY KEY, id TEXT NOT NULL, row TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rows (
    id TEXT PRIMARY KEY, label TEXT, content INTEGER NOT NULL, change INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS changes (
    change INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, id TEXT NOT NULL, action TEXT NOT NULL,
    label_before TEXT, content_before INTEGER, label TEXT, content INTEGER, undoes INTEGER, note TEXT);
CREATE INDEX IF NOT EXISTS changes_of_a_row ON changes (id, change);
CREATE INDEX IF NOT EXISTS contents_of_a_row ON contents (id);
CREATE INDEX IF NOT EXISTS what_undid ON changes (undoes) WHERE undoes IS NOT NULL;
"""


class Kept(NamedTuple):
    """A row as it stands. ``label`` and ``row`` are JSON; without a label, ``label`` is None."""

    id: str
    label: str | None
    content: int
    change: int
    row: str


class Change(NamedTuple):
    """What happened to a row: its labels and contents, by number, before and after."""

    change: int
    time: float
    id: str
    action: str
    label_before: str | None
    content_before: int | None
    label: str | None
    content: int | None
    undoes: int | None
    note: str | None


class DiskFull(errors.BanburyError):
    """A change could not be written, and was not made."""


class Log:
    """The log of one state. One thread writes; others read through a connection of their own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writing, self._reading = self._open(), None
        self._lock = threading.Lock()
        try:
            self._writing.executescript(TABLES)
        except sqlite3.DatabaseError as problem:
            raise errors.bad_file(path, f"it is not the log of a state ({problem})") from None
        if self.about.get("format", FORMAT) != FORMAT:
            raise errors.bad_file(
                path, f"it has format {self.about['format']!r}, but this version reads format {FORMAT}"
            )
        self._reading = self._open()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30.0)
        try:
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
        except sqlite3.DatabaseError as problem:
            connection.close()
            raise errors.bad_file(self.path, f"it is not the log of a state ({problem})") from None
        return connection

    def close(self) -> None:
        if self._reading is not None:
            self._reading.close()
        self._writing.close()

    # Reading

    def _read(self, query: str, *values: Any, within: bool = False) -> list[tuple[Any, ...]]:
        """``within``: as it stands within the transaction."""
        if self._reading is None or within:
            return self._writing.execute(query, values).fetchall()
        with self._lock:
            return self._reading.execute(query, values).fetchall()

    @property
    def about(self) -> dict[str, Any]:
        """What the state was begun with."""
        return {name: json.loads(value) for name, value in self._read("SELECT name, value FROM about")}

    @property
    def last(self) -> int:
        """The number of the last change; 0: there was none."""
        return int(self._read("SELECT coalesce(max(change), 0) FROM changes")[0][0])

    @property
    def last_purge(self) -> int:
        """The number of the last change by which a content went."""
        return int(self.about.get("purged", 0))

    def row(self, id: str, within: bool = False) -> Kept | None:
        records = self._read(f"{ROWS} WHERE id = ?", id, within=within)
        return Kept(*records[0]) if records else None

    def rows(self, after: str = "", n: int = -1, labelled: bool | None = None) -> list[Kept]:
        """Rows in the order of their ids, those behind an id; all of them, or those with a label or without."""
        which = "" if labelled is None else f" AND label IS {'NOT ' * labelled}NULL"
        return [Kept(*record) for record in self._read(f"{ROWS} WHERE id > ?{which} ORDER BY id LIMIT ?", after, n)]

    def n_rows(self) -> tuple[int, int]:
        """How many rows have a label, and how many have none."""
        labelled, every = self._read("SELECT count(label), count(*) FROM rows")[0]
        return labelled, every - labelled

    def content(self, number: int, within: bool = False) -> str:
        return str(self._read("SELECT row FROM contents WHERE content = ?", number, within=within)[0][0])

    def changes(self, after: int) -> Iterator[Change]:
        """The changes behind one, in order."""
        while records := self._read(f"{CHANGES} WHERE change > ? ORDER BY change LIMIT 1000", after):
            yield from map(Change._make, records)
            after = records[-1][0]

    def history(self, id: str | None, before: int, n: int) -> list[Change]:
        """The last changes before one, the latest first: of all rows, or of one."""
        which, values = ("", ()) if id is None else ("id = ? AND ", (id,))
        records = self._read(f"{CHANGES} WHERE {which}change < ? ORDER BY change DESC LIMIT ?", *values, before, n)
        return [Change._make(record) for record in records]

    # Writing: by one thread, within a transaction

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it or nothing; DiskFull where it cannot be written, and then it is nothing."""
        try:
            self._writing.execute("BEGIN IMMEDIATE")
            yield
            self._writing.execute("COMMIT")
        except BaseException as problem:
            if self._writing.in_transaction:
                self._writing.execute("ROLLBACK")
            if isinstance(problem, sqlite3.Error):
                raise _not_written(problem) from None
            raise

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """A part of a transaction: all of it or nothing; DiskFull where it cannot be written."""
        try:
            self._writing.execute("SAVEPOINT part")
            yield
            self._writing.execute("RELEASE part")
        except sqlite3.Error as problem:
            raise _not_written(problem) from None
        except BaseException:
            self._writing.execute("ROLLBACK TO part")
            self._writing.execute("RELEASE part")
            raise

    def tell(self, **about: Any) -> None:
        """Notes what the state was begun with."""
        rows = [(name, json.dumps(value)) for name, value in about.items()]
        self._writing.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows)

    def keep(self, id: str, row: str) -> int:
        """Keeps a content; its number."""
        return int(self._writing.execute("INSERT INTO contents (id, row) VALUES (?, ?)", (id, row)).lastrowid or 0)

    def put(
        self,
        id: str,
        action: str,
        before: Kept | None,
        label: str | None,
        content: int | None,
        undoes: int | None = None,
        note: str | None = None,
    ) -> int:
        """A row from now on has this label and content, or is there no more; the number of the change."""
        was = (None, None) if before is None else (before.label, before.content)
        values = (time.time(), id, action, *was, label, content, undoes, note)
        change = int(
            self._writing.execute(
                "INSERT INTO changes (time, id, action, label_before, content_before, label, content, undoes, note) VALUES (?, "
                "?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            ).lastrowid
            or 0
        )
        if content is None:
            self._writing.execute("DELETE FROM rows WHERE id = ?", (id,))
        else:
            self._writing.execute("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?)", (id, label, content, change))
        return change

    def purge(self, id: str, before: Kept) -> int:
        """Deletes a row and all that was ever said of it but the ids, times and kinds of its changes."""
        change = self.put(id, "deleted", before, None, None)
        self._writing.execute("DELETE FROM contents WHERE id = ?", (id,))
        nothing = "label_before = NULL, content_before = NULL, label = NULL, content = NULL, note = NULL"
        self._writing.execute(f"UPDATE changes SET {nothing} WHERE id = ?", (id,))
        self.tell(purged=change)
        return change

    def first_change(self, id: str) -> int:
        """The number of a row's first change."""
        return int(self._writing.execute("SELECT min(change) FROM changes WHERE id = ?", (id,)).fetchone()[0])

    def to_undo(self, id: str | None) -> Change | None:
        """The last change, of all rows or of one, that was neither undone nor is undoing, and has not been purged."""
        which, values = ("", ()) if id is None else ("c.id = ? AND ", (id,))
        which += f"c.change > {int(self.about.get('compacted', 0))} AND "
        query = f"""{CHANGES} AS c WHERE {which}c.action NOT IN ('undone', 'deleted', 'kept') AND c.content IS NOT NULL AND
            NOT EXISTS (SELECT 1 FROM changes AS u WHERE u.undoes = c.change)
            ORDER BY c.change DESC LIMIT 1"""
        record = self._writing.execute(query, values).fetchone()
        return Change(*record) if record else None

    def compact(self) -> None:
        """Drops all changes but the last of each row, and contents that no row has any more: nothing is undone after it."""
        self._writing.execute("DELETE FROM changes WHERE change NOT IN (SELECT max(change) FROM changes GROUP BY id)")
        self._writing.execute("UPDATE changes SET content_before = NULL, label_before = NULL, undoes = NULL")
        self.tell(compacted=int(self._writing.execute("SELECT coalesce(max(change), 0) FROM changes").fetchone()[0]))
        self._writing.execute("DELETE FROM contents WHERE content NOT IN (SELECT content FROM rows)")

    def scrub(self, vacuum: bool = False) -> None:
        """Brings all into the one file and empties the other, so that nothing of what was deleted is left in either."""
        try:
            if vacuum:
                self._writing.execute("PRAGMA incremental_vacuum").fetchall()
            with self._lock:  # no reader holds the log open
                busy, *_ = self._writing.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error as problem:
            raise DiskFull(
                f"deleted rows could not be purged from the log yet: {problem}. Send the deletion again."
            ) from None
        if busy:
            raise DiskFull(
                "deleted rows could not be purged yet: another program is reading the log. Send the deletion again."
            )


def _not_written(problem: sqlite3.Error) -> DiskFull:
    return DiskFull(f"the change could not be written to the log and was not made: {problem}.")


_ROWS = "SELECT rows.id, label, rows.content, change, row FROM rows JOIN contents USING (content)"
ROWS = f"SELECT * FROM ({_ROWS})"
CHANGES = "SELECT change, time, id, action, label_before, content_before, label, content, undoes, note FROM changes"
