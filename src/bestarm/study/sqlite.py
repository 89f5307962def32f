"""A table of records in a SQLite file."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from bestarm.errors import StorageError
from bestarm.study.lock import AVAILABLE, locked
from bestarm.study.records import Record, Records, check_name, check_start, encode, unknown

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS studies (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE IF NOT EXISTS log (study INTEGER NOT NULL, number INTEGER NOT NULL, record TEXT NOT NULL, "
    "PRIMARY KEY (study, number)) WITHOUT ROWID",
)
_LEFT_BEHIND: list[Any] = []  # connections a fork brought along: SQLite wants them neither used nor closed


class SQLite:
    """Records in a SQLite file: write-ahead log, a busy timeout, readers that lock nobody.

    An id is never used again, so a study made anew under an old name is not taken for the old one. The file is made by
    the first `create`; one that may only be read can be read.
    """

    def __init__(self, path: str | os.PathLike[str], timeout: float = 60.0) -> None:
        self.path, self.timeout = Path(path), timeout
        if self.path.is_dir():
            raise StorageError(f"a database is a file; {self.path} is a folder")
        self._db: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # the one the connection is to
        self._process, self._guard = os.getpid(), threading.RLock()

    def __reduce__(self) -> tuple[type["SQLite"], tuple[Path, float]]:
        return SQLite, (self.path, self.timeout)

    def __del__(self) -> None:
        db: sqlite3.Connection | None = getattr(self, "_db", None)
        if db is not None and self._process == os.getpid():
            db.close()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if self._process != os.getpid():
            _LEFT_BEHIND.append(self._db)
            self._db, self._process, self._guard = None, os.getpid(), threading.RLock()
        with self._guard:
            try:
                if self._db is None or self._file != self._found():  # a file put in its place is another database
                    self._open()
                assert self._db is not None
                yield self._db
            except (sqlite3.Error, OSError) as error:
                raise StorageError(f"the database {self.path} failed: {error}") from error

    def _open(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db = sqlite3.connect(self.path, timeout=self.timeout, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA synchronous=FULL")
        self._file = self._found()

    def _found(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        turn = locked(self.path) if AVAILABLE else nullcontext()  # SQLite lets those who wait try at random
        with self._connected() as db, turn:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    def _there(self) -> bool:
        """Whether there is a file with our tables."""
        if not self.path.exists():
            return False
        with self._connected() as db:
            return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'log'").fetchone() is not None

    def _make(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"the database {self.path} cannot be made: {error}") from error
        with self._connected() as db:
            until = time.monotonic() + self.timeout
            while True:
                try:
                    db.execute("PRAGMA journal_mode=WAL")  # does not wait its turn when others do the same
                    break
                except sqlite3.OperationalError:
                    if time.monotonic() > until:
                        raise
                    time.sleep(0.01)
        with self._writing() as db:
            for statement in SCHEMA:
                db.execute(statement)

    def names(self) -> list[str]:
        if not self._there():
            return []
        with self._connected() as db:
            return [name for (name,) in db.execute("SELECT name FROM studies ORDER BY name")]

    def create(self, name: str, first: Record) -> bool:
        check_name(name)
        text = encode(first)
        if not self._there():
            self._make()
        with self._writing() as db:
            if self._find(db, name):
                return False
            study = db.execute("INSERT INTO studies (name) VALUES (?)", (name,)).lastrowid
            db.execute("INSERT INTO log VALUES (?, 0, ?)", (study, text))
        return True

    def append(self, name: str, records: Sequence[Record], after: int | None = None) -> bool:
        texts = [encode(record) for record in records]
        if not self._there():
            raise unknown(name, str(self.path))
        with self._writing() as db:
            found = self._find(db, name)
            if found is None:
                raise unknown(name, str(self.path))
            study, length = found
            if after is not None and length != after:
                return False
            rows = [(study, length + i, text) for i, text in enumerate(texts)]
            db.executemany("INSERT INTO log VALUES (?, ?, ?)", rows)
        return True

    def read(self, name: str, start: int = 0) -> Sequence[Record]:
        place = f"{self.path}, study {name!r}"
        if not self._there():
            check_start(name, str(self.path), start, 0)
            return Records([], place)
        with self._connected() as db:
            found = self._find(db, name)
            check_start(name, str(self.path), start, found[1] if found else 0)
            if found is None:
                return Records([], place)
            study, length = found
            query = "SELECT record FROM log WHERE study = ? AND number >= ? AND number < ? ORDER BY number"
            lines = [text for (text,) in db.execute(query, (study, start, length))] if start < length else []
        if len(lines) != length - start:
            raise StorageError(f"{place}: {length - start - len(lines)} records are missing")
        return Records(lines, place, start, study)

    def delete(self, name: str) -> bool:
        if not self._there():
            return False
        with self._writing() as db:
            found = self._find(db, name)
            if found is None:
                return False
            db.execute("DELETE FROM log WHERE study = ?", found[:1])
            db.execute("DELETE FROM studies WHERE id = ?", found[:1])
        return True

    @staticmethod
    def _find(db: sqlite3.Connection, name: str) -> tuple[int, int] | None:
        """Return a study's id and how many records it has."""
        query = "SELECT id, (SELECT MAX(number) FROM log WHERE study = id) FROM studies WHERE name = ?"
        row = db.execute(query, (name,)).fetchone()
        return None if row is None else (row[0], 0 if row[1] is None else row[1] + 1)
