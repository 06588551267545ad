"""The durable log of a state: its rows and every change to them, in SQLite. A committed change survives any crash."""

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
from banbury.files.checking import JsonObject

FORMAT = 2  # version of the tables
PRAGMAS = (
    "auto_vacuum=INCREMENTAL",
    "journal_mode=WAL",
    "synchronous=FULL",
    "secure_delete=ON",
    "temp_store=MEMORY",
    "journal_size_limit=67108864",
)
# A change stores the label and the content that a row had before it and has after it, or null. Contents have a table of their
# own, so that an undo can restore any of them. Of a deleted row only the numbers, times and ids of its changes remain.
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


class StoredRow(NamedTuple):
    """A row of the state. ``label`` is None if it has none."""

    id: str
    label: str | None  # a JSON text
    content: int  # the number of the content, which is ``row``
    change: int  # the last one of the row
    row: str  # a JSON text


class Change(NamedTuple):
    """A change to a row: its labels (JSON texts) and the numbers of its contents before and after. ``undoes``: the
    change that it undoes.
    """

    change: int  # its number
    time: float  # seconds since 1970
    id: str  # of the row
    action: str  # such as "learned"
    label_before: str | None
    content_before: int | None
    label: str | None
    content: int | None  # None if the row was deleted, by this change or later
    undoes: int | None
    note: str | None  # of the user


class DiskFull(errors.BanburyError):
    """A change could not be written, so it was not made."""


class Log:
    """The log of one state. One thread writes; others read through a second connection."""

    def __init__(self, path: Path) -> None:
        """Opens the log in the file ``path``, or creates it. Raises BadFile if it is no log, or one of another
        version.
        """
        self.path = path
        self._write_connection = self._open()  # used by one thread
        self._read_connection: sqlite3.Connection | None = None  # for all other threads; None until the tables exist
        self._lock = threading.Lock()  # held while the reading connection is used
        try:
            self._write_connection.executescript(TABLES)
        except sqlite3.DatabaseError as error:
            raise errors.bad_file(path, f"it is not the log of a state ({error})") from None
        if self.about.get("format", FORMAT) != FORMAT:
            raise errors.bad_file(
                path, f"it has format {self.about['format']!r}, but this version reads format {FORMAT}"
            )
        self._read_connection = self._open()

    def _open(self) -> sqlite3.Connection:
        """Returns a connection to the log with its settings. Raises BadFile if the file is not a log."""
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30.0)  # seconds
        try:
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
        except sqlite3.DatabaseError as error:
            connection.close()
            raise errors.bad_file(self.path, f"it is not the log of a state ({error})") from None
        return connection

    def close(self) -> None:
        """Closes both connections."""
        if self._read_connection is not None:
            self._read_connection.close()
        self._write_connection.close()

    # Reading

    def _read(self, query: str, *values: Any, in_transaction: bool = False) -> list[tuple[Any, ...]]:
        """Returns the records of a query as tuples; ``values`` stand for its question marks. ``in_transaction``:
        whether to read through the writing connection, which sees the current transaction.
        """
        if self._read_connection is None or in_transaction:
            return self._write_connection.execute(query, values).fetchall()
        with self._lock:
            return self._read_connection.execute(query, values).fetchall()

    @property
    def about(self) -> JsonObject:
        """Facts about the state as a whole, by name: format, settings, and the last purge or compaction."""
        return {name: json.loads(value) for name, value in self._read("SELECT name, value FROM about")}

    @property
    def last(self) -> int:
        """The number of the last change; 0 if there is none."""
        return int(self._read("SELECT coalesce(max(change), 0) FROM changes")[0][0])

    @property
    def last_purge(self) -> int:
        """The number of the last change that deleted the contents of a row; 0 if there is none."""
        return int(self.about.get("purged", 0))

    def row(self, id: str, in_transaction: bool = False) -> StoredRow | None:
        """Returns the row with this id; None if there is none. ``in_transaction``: whether to see it as the current
        transaction does.
        """
        # A tuple of the fields of StoredRow, or none.
        records = self._read(f"{ROWS} WHERE id = ?", id, in_transaction=in_transaction)
        return StoredRow(*records[0]) if records else None

    def rows(self, after: str = "", n: int = -1, labelled: bool | None = None) -> list[StoredRow]:
        """Returns at most ``n`` rows (−1 for all) in the order of their ids, from the one after ``after`` on.
        ``labelled``: True for rows with a label, False for those without, None for both.
        """
        label_condition = "" if labelled is None else f" AND label IS {'NOT ' * labelled}NULL"
        return [
            StoredRow(*record)
            for record in self._read(f"{ROWS} WHERE id > ?{label_condition} ORDER BY id LIMIT ?", after, n)
        ]

    def n_rows(self) -> tuple[int, int]:
        """Returns how many rows have a label, and how many have none."""
        n_labelled, n_all = self._read("SELECT count(label), count(*) FROM rows")[0]
        return n_labelled, n_all - n_labelled

    def content(self, number: int, in_transaction: bool = False) -> str:
        """Returns the content with this number, a row as JSON text. ``in_transaction``: whether to see it as the
        current transaction does.
        """
        return str(
            self._read("SELECT row FROM contents WHERE content = ?", number, in_transaction=in_transaction)[0][0]
        )

    def changes(self, after: int) -> Iterator[Change]:
        """Yields the changes after change number ``after``, in order, read 1,000 at a time."""
        while records := self._read(f"{CHANGES} WHERE change > ? ORDER BY change LIMIT 1000", after):
            yield from map(Change._make, records)
            after = records[-1][0]

    def history(self, id: str | None, before: int, n: int) -> list[Change]:
        """Returns the last ``n`` changes before change number ``before``, latest first; with an id only those of that
        row.
        """
        id_condition, values = ("", ()) if id is None else ("id = ? AND ", (id,))  # SQL, and what it stands for
        records = self._read(
            f"{CHANGES} WHERE {id_condition}change < ? ORDER BY change DESC LIMIT ?", *values, before, n
        )
        return [Change._make(record) for record in records]

    # Writing: by one thread, within a transaction

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits all that is written in it or nothing. Raises DiskFull if it cannot be written."""
        try:
            self._write_connection.execute("BEGIN IMMEDIATE")
            yield
            self._write_connection.execute("COMMIT")
        except BaseException as error:
            if self._write_connection.in_transaction:
                self._write_connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise _write_error(error) from None
            raise

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Opens a nested transaction: keeps all that is written in it or nothing. Raises DiskFull if it cannot be
        written.
        """
        try:
            self._write_connection.execute("SAVEPOINT part")
            yield
            self._write_connection.execute("RELEASE part")
        except sqlite3.Error as error:
            raise _write_error(error) from None
        except BaseException:
            self._write_connection.execute("ROLLBACK TO part")
            self._write_connection.execute("RELEASE part")
            raise

    def set_about(self, **about: Any) -> None:
        """Stores facts about the state as a whole, by name."""
        facts = [(name, json.dumps(value)) for name, value in about.items()]  # names and JSON texts
        self._write_connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", facts)

    def add_content(self, id: str, row: str) -> int:
        """Stores the content ``row``, a JSON text, of the row with this id, and returns the number of the content."""
        return int(
            self._write_connection.execute("INSERT INTO contents (id, row) VALUES (?, ?)", (id, row)).lastrowid or 0
        )

    def put(
        self,
        id: str,
        action: str,
        before: StoredRow | None,
        label: str | None,
        content: int | None,
        undoes: int | None = None,
        note: str | None = None,
    ) -> int:
        """Sets the label and content of the row with this id and records the change; returns the number of the change.

        ``action``: what the change does, in a word; ``before``: the row as it was, None for a new one; ``label``: a
        JSON text, or None; ``content``: the number of its content, None to delete the row; ``undoes``: the number of
        the change that it undoes, or None; ``note``: of the user, or None.
        """
        label_and_content_before = (None, None) if before is None else (before.label, before.content)
        # In the order of the columns below.
        values = (time.time(), id, action, *label_and_content_before, label, content, undoes, note)
        change = int(
            self._write_connection.execute(
                "INSERT INTO changes (time, id, action, label_before, content_before, label, content, undoes, note) VALUES (?, "
                "?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            ).lastrowid
            or 0
        )
        if content is None:
            self._write_connection.execute("DELETE FROM rows WHERE id = ?", (id,))
        else:
            self._write_connection.execute(
                "INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?)", (id, label, content, change)
            )
        return change

    def purge(self, id: str, before: StoredRow) -> int:
        """Deletes a row, its contents and its labels; only ids, times and actions of its changes remain. Returns the
        number of the change that deletes it. ``before``: the row as it was.
        """
        change = self.put(id, "deleted", before, label=None, content=None)
        self._write_connection.execute("DELETE FROM contents WHERE id = ?", (id,))
        cleared_columns = "label_before = NULL, content_before = NULL, label = NULL, content = NULL, note = NULL"
        self._write_connection.execute(f"UPDATE changes SET {cleared_columns} WHERE id = ?", (id,))
        self.set_about(purged=change)
        return change

    def first_change(self, id: str) -> int:
        """Returns the number of the first change of the row with this id."""
        return int(self._write_connection.execute("SELECT min(change) FROM changes WHERE id = ?", (id,)).fetchone()[0])

    def to_undo(self, id: str | None) -> Change | None:
        """Returns the last change that can be undone, of all rows or of the one with this id; None if there is none.
        Not: what is undone already, undos, rows stored without a label, changes of deleted rows, and what is older than
        a compaction.
        """
        conditions, values = ("", ()) if id is None else ("c.id = ? AND ", (id,))  # SQL, and what it stands for
        conditions += f"c.change > {int(self.about.get('compacted', 0))} AND "
        query = f"""{CHANGES} AS c WHERE {conditions}c.action NOT IN ('undone', 'deleted', 'kept') AND c.content IS NOT NULL AND
            NOT EXISTS (SELECT 1 FROM changes AS u WHERE u.undoes = c.change)
            ORDER BY c.change DESC LIMIT 1"""
        record = self._write_connection.execute(query, values).fetchone()
        return Change(*record) if record else None

    def compact(self) -> None:
        """Deletes all changes but the last of each row, and contents that no row has any more. They can no longer be
        undone.
        """
        self._write_connection.execute(
            "DELETE FROM changes WHERE change NOT IN (SELECT max(change) FROM changes GROUP BY id)"
        )
        self._write_connection.execute("UPDATE changes SET content_before = NULL, label_before = NULL, undoes = NULL")
        self.set_about(
            compacted=int(self._write_connection.execute("SELECT coalesce(max(change), 0) FROM changes").fetchone()[0])
        )
        self._write_connection.execute("DELETE FROM contents WHERE content NOT IN (SELECT content FROM rows)")

    def scrub(self, vacuum: bool = False) -> None:
        """Moves everything from the write-ahead log into the database file, so that neither contains deleted rows.
        Raises DiskFull if that fails. ``vacuum``: whether to make the file smaller too.
        """
        try:
            if vacuum:
                self._write_connection.execute("PRAGMA incremental_vacuum").fetchall()
            with self._lock:  # no reader holds the log open
                # Not 0 if another process reads.
                busy, *_ = self._write_connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error as error:
            raise DiskFull(
                f"deleted rows could not be purged from the log yet: {error}. Send the deletion again."
            ) from None
        if busy:
            raise DiskFull(
                "deleted rows could not be purged yet: another program is reading the log. Send the deletion again."
            )


def _write_error(error: sqlite3.Error) -> DiskFull:
    """Returns the error of a change that SQLite could not write."""
    return DiskFull(f"the change could not be written to the log and was not made: {error}.")


# Queries of all rows and changes, with the fields of StoredRow and Change.
ROWS_WITH_CONTENT = "SELECT rows.id, label, rows.content, change, row FROM rows JOIN contents USING (content)"
ROWS = f"SELECT * FROM ({ROWS_WITH_CONTENT})"
CHANGES = "SELECT change, time, id, action, label_before, content_before, label, content, undoes, note FROM changes"
