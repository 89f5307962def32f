"""Where a study's log is kept: append and read, nothing else. State is a fold over what is read.

A log is a sequence of JSON objects. The first says what the study is; later ones what was asked and told. Nothing is
ever changed or removed, so a reader never sees half a truth, and whoever dies in mid-write has written nothing.
"""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from bestarm.errors import StorageError

Record: TypeAlias = Mapping[str, Any]


class Storage(Protocol):
    """Logs by name."""

    def names(self) -> list[str]:
        """Return the names of all studies."""
        ...

    def create(self, name: str, first: Record) -> bool:
        """Begin a log; return False, leaving it alone, if there is one of that name."""
        ...

    def append(self, name: str, records: Sequence[Record], after: int | None = None) -> bool:
        """Add records; they are safe when this returns.

        With `after`, only if the log has exactly that many records: return False, writing nothing, if another was
        faster.
        """
        ...

    def read(self, name: str, start: int = 0) -> list[Record]:
        """Return the records from number `start` on; none for a name that is not there."""
        ...

    def delete(self, name: str) -> bool:
        """Forget a log; return whether there was one."""
        ...


class Memory:
    """Logs that end with the process."""

    def __init__(self) -> None:
        self.logs: dict[str, list[Record]] = {}

    def names(self) -> list[str]:
        return sorted(self.logs)

    def create(self, name: str, first: Record) -> bool:
        return self.logs.setdefault(name, log := [first]) is log

    def append(self, name: str, records: Sequence[Record], after: int | None = None) -> bool:
        log = self.logs[name]
        if after is not None and len(log) != after:
            return False
        log.extend(records)
        return True

    def read(self, name: str, start: int = 0) -> list[Record]:
        return self.logs.get(name, [])[start:]

    def delete(self, name: str) -> bool:
        return self.logs.pop(name, None) is not None


class Journal:
    """One file of JSON lines for all studies of a folder's file: `{"study": name, ...record}`.

    A line is written in one call and synced before `append` returns; a lock file keeps writers apart. A last line cut
    short by a crash is cut off by the next writer, and ignored by readers.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise StorageError(f"a journal is a file; {self.path} is a folder")
        self.read_to = 0
        self.lines: dict[str, list[Record]] = {}

    @contextmanager
    def _locked(self) -> Iterator[None]:
        import fcntl

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path.with_name(self.path.name + ".lock"), "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise StorageError(f"the journal {self.path} cannot be written: {error}") from error

    def _catch_up(self) -> None:
        """Read what has been added since the last time, whole lines only."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.read_to)
                data = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(f"the journal {self.path} cannot be read: {error}") from error
        data = data[: data.rfind(b"\n") + 1]
        for line in data.splitlines():
            try:
                record = json.loads(line)
                name, body = record["study"], record["record"]
            except (ValueError, KeyError, TypeError):
                at = self.read_to
                raise StorageError(f"{self.path}, near byte {at}: this is not a journal of bestarm") from None
            if body is None:
                self.lines.pop(name, None)
            else:
                self.lines.setdefault(name, []).append(body)
        self.read_to += len(data)

    def _write(self, name: str, records: Sequence[Record | None]) -> None:
        text = "".join(json.dumps({"study": name, "record": record}) + "\n" for record in records).encode()
        with self.path.open("ab") as file:
            if file.tell() > self.read_to:  # a crash cut the last line
                file.truncate(self.read_to)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def names(self) -> list[str]:
        self._catch_up()
        return sorted(self.lines)

    def create(self, name: str, first: Record) -> bool:
        with self._locked():
            self._catch_up()
            if name in self.lines:
                return False
            self._write(name, [first])
        return True

    def append(self, name: str, records: Sequence[Record], after: int | None = None) -> bool:
        with self._locked():
            self._catch_up()
            if name not in self.lines:
                raise StorageError(f"there is no study {name!r} in {self.path}")
            if after is not None and len(self.lines[name]) != after:
                return False
            self._write(name, records)
        return True

    def read(self, name: str, start: int = 0) -> list[Record]:
        self._catch_up()
        return self.lines.get(name, [])[start:]

    def delete(self, name: str) -> bool:
        with self._locked():
            self._catch_up()
            if name not in self.lines:
                return False
            self._write(name, [None])
        self._catch_up()
        return True


class SQLite:
    """A table of records in a SQLite file: write-ahead log, a busy timeout, readers that lock nobody."""

    def __init__(self, path: str | os.PathLike[str], timeout: float = 60.0) -> None:
        self.path, self.timeout = Path(path), timeout
        with self._connect() as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute(
                "CREATE TABLE IF NOT EXISTS log (study TEXT, number INTEGER, record TEXT NOT NULL, "
                "PRIMARY KEY (study, number)) WITHOUT ROWID"
            )

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(self.path, timeout=self.timeout, isolation_level=None)
        except (sqlite3.Error, OSError) as error:
            raise StorageError(f"the database {self.path} cannot be opened: {error}") from error
        try:
            db.execute("PRAGMA synchronous=FULL")
            yield db
        except sqlite3.Error as error:
            raise StorageError(f"the database {self.path} failed: {error}") from error
        finally:
            db.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._connect() as db:
            db.execute("BEGIN IMMEDIATE")
            yield db  # closing without COMMIT writes nothing
            db.execute("COMMIT")

    def names(self) -> list[str]:
        with self._connect() as db:
            return [name for (name,) in db.execute("SELECT DISTINCT study FROM log ORDER BY study")]

    def create(self, name: str, first: Record) -> bool:
        with self._writing() as db:
            if self._length(db, name):
                return False
            db.execute("INSERT INTO log VALUES (?, 0, ?)", (name, json.dumps(first)))
        return True

    def append(self, name: str, records: Sequence[Record], after: int | None = None) -> bool:
        with self._writing() as db:
            length = self._length(db, name)
            if length == 0:
                raise StorageError(f"there is no study {name!r} in {self.path}")
            if after is not None and length != after:
                return False
            rows = [(name, length + i, json.dumps(record)) for i, record in enumerate(records)]
            db.executemany("INSERT INTO log VALUES (?, ?, ?)", rows)
        return True

    def read(self, name: str, start: int = 0) -> list[Record]:
        with self._connect() as db:
            query = "SELECT record FROM log WHERE study = ? AND number >= ? ORDER BY number"
            return [json.loads(record) for (record,) in db.execute(query, (name, start))]

    def delete(self, name: str) -> bool:
        with self._writing() as db:
            return db.execute("DELETE FROM log WHERE study = ?", (name,)).rowcount > 0

    @staticmethod
    def _length(db: sqlite3.Connection, name: str) -> int:
        found = db.execute("SELECT MAX(number) FROM log WHERE study = ?", (name,)).fetchone()[0]
        return 0 if found is None else int(found) + 1


def open_storage(url: str | os.PathLike[str] | Storage | None) -> Storage:
    """Return the storage a URL names: sqlite:///file.db, journal:///file.jsonl or a path, postgresql+psycopg://...

    None is memory.
    """
    if url is None:
        return Memory()
    if not isinstance(url, str | os.PathLike):
        return url
    text = os.fspath(url)
    scheme, found, rest = text.partition("://")
    if not found:
        return SQLite(text) if text.endswith((".db", ".sqlite", ".sqlite3")) else Journal(text)
    if scheme == "sqlite":
        return SQLite(rest.removeprefix("/"))
    if scheme == "journal":
        return Journal(rest.removeprefix("/"))
    if scheme.startswith("postgresql"):
        from bestarm.study.postgres import PostgreSQL

        return PostgreSQL(text)
    raise StorageError(
        f"unknown storage {text!r}; sqlite:///file.db, journal:///file.jsonl, a path or postgresql+psycopg://... "
        "is expected"
    )
