"""Tables of records in a SQLite file."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from bestarm.errors import StorageError
from bestarm.study.storage.database import Database
from bestarm.study.storage.failures import check_path
from bestarm.study.storage.records import (
    WAY_OUT,
    Record,
    Records,
    check_name,
    check_start,
    checksum,
    damaged,
    encode,
    unknown,
)
from bestarm.study.storage.tables import (
    BEAT,
    SCHEMA,
    Layout,
    RowsFound,
    all_of,
    crc_of,
    find,
    find_to_write,
    layout_of,
    lines_of,
    names_of,
    state_of,
    wrong_in,
)
from bestarm.study.storage.watch import NEAR, text_of, until_changed

T = TypeVar("T")


class SQLite:
    """Records in a SQLite file: a write-ahead log, synced before `append` returns, and readers that lock nobody.

    After each write the records are moved from the write-ahead log into the file itself, if nobody is in the way; the
    last connection moves all of them when it is closed, at the end of a process too. The first `create` makes the file;
    one that can only be read can be read.

    `hold` keeps a transaction open. What is appended inside is committed at once, and another transaction begun:
    between the two only a program that is not bestarm can write, and is noticed.
    """

    def __init__(self, path: str | os.PathLike[str], timeout: float = 60.0) -> None:
        self.path, self.place, self.timeout = Path(path), os.fsdecode(path), timeout
        check_path(self.place, "a database")
        self._database = Database(self.path, timeout)
        self._held: dict[str, int] = {}  # studies that are held, and how long each is

    def __reduce__(self) -> tuple[type["SQLite"], tuple[Path, float]]:
        return SQLite, (self.path, self.timeout)

    @property
    def folder(self) -> Path:
        """Where the file itself lies, whatever links lead to it."""
        return Path(os.path.realpath(self.path)).parent

    def _read(self, work: Callable[[sqlite3.Connection, Layout], T], nothing: T) -> T:
        """Do some work that reads; `nothing` if there are no tables of ours."""

        def with_layout(db: sqlite3.Connection) -> T:
            layout = layout_of(db)
            return nothing if layout is None else work(db, layout)

        return self._database.read(with_layout, nothing)

    def names(self) -> list[str]:
        return self._read(lambda db, layout: names_of(db), [])

    def create(self, name: str, first: Record) -> bool:
        check_name(name)
        text = encode(first)
        with self._database.writing(make=True) as db:
            assert db is not None
            for statement in SCHEMA:
                db.execute(statement)
            if find_to_write(db, name):
                return False
            study = db.execute("INSERT INTO studies (name, length) VALUES (?, 1)", (name,)).lastrowid
            self._insert(db, study, name, 0, [text])
        self._saw(name, 1)
        return True

    def append(self, name: str, records: Sequence[Record], after: int | None = None) -> bool:
        check_name(name)
        texts = [encode(record) for record in records]
        with self._database.writing() as db:
            found = find_to_write(db, name)
            if db is None or found is None:
                raise unknown(name, self.place)
            study, length = found
            if after is not None and length != after:
                return False
            if after is None and self._held.get(name, length) != length:
                raise StorageError(f"{self.place}: another program wrote to study {name!r} while it was held")
            if db.execute("SELECT MAX(number) FROM log WHERE study = ?", (study,)).fetchone()[0] != length - 1:
                raise self._other_length(name)
            self._insert(db, study, name, length, texts)
            db.execute("UPDATE studies SET length = ? WHERE id = ?", (length + len(texts), study))
        self._saw(name, length + len(texts))
        return True

    @staticmethod
    def _insert(db: sqlite3.Connection, study: int | None, name: str, first: int, texts: list[str]) -> None:
        rows = ((study, number, checksum(name, number, text), text) for number, text in enumerate(texts, first))
        db.executemany("INSERT INTO log (study, number, crc, record) VALUES (?, ?, ?, ?)", rows)

    def _saw(self, name: str, length: int) -> None:
        if name in self._held:
            self._held[name] = length

    def read(self, name: str, start: int = 0) -> Records:
        check_name(name)
        place = f"{self.place}, study {name!r}"

        def work(db: sqlite3.Connection, layout: Layout) -> Records | None:
            found = find(db, layout, name)
            check_start(name, self.place, start, found.length if found else 0)
            if found is None:
                return Records(place=place)
            lines = lines_of(db, layout, name, found, start)
            if lines is None:
                raise self._damage(db, layout, name, found)
            return Records(lines, place, start, self._mark(db, layout, found))

        records = self._read(work, None)
        if records is not None:
            return records
        check_start(name, self.place, start, 0)
        return Records(place=place)

    def mark(self, name: str | None = None) -> str:
        """Return a mark of the tables: PRAGMA data_version is another for each connection and after a sign of life."""
        return text_of(self._read(lambda db, layout: state_of(db, layout, name), None))

    def wait(self, mark: str, timeout: float, name: str | None = None) -> str:
        return until_changed(lambda: self.mark(name), mark, timeout, NEAR)

    def _mark(self, db: sqlite3.Connection, layout: Layout, found: RowsFound) -> Any:
        """Return what another log of the same name does not have. An id is never used again, but by another file."""
        crc = crc_of(db, layout, found.id, 0)
        return found.id, self._database.file if crc is None else crc

    def _damage(self, db: sqlite3.Connection, layout: Layout, name: str, found: RowsFound) -> StorageError:
        """Return the error that names the first record that is damaged."""
        bad = [(number, one) for number, one in all_of(db, layout, name, found) if isinstance(one, str)]
        return damaged(f"{self.place}, study {name!r}", *bad[0]) if bad else self._other_length(name)

    def _other_length(self, name: str) -> StorageError:
        return StorageError(
            f"{self.place}, study {name!r}: it has other records than its length says; `bestarm doctor --salvage` "
            "takes out what is whole"
        )

    def salvage(self, name: str) -> list[tuple[int, Record | str]]:
        check_name(name)

        def work(db: sqlite3.Connection, layout: Layout) -> list[tuple[int, Record | str]]:
            found = find(db, layout, name)
            return [] if found is None else all_of(db, layout, name, found)

        return self._read(work, [])

    def delete(self, name: str) -> bool:
        check_name(name)
        with self._database.writing() as db:
            found = find_to_write(db, name)
            if db is None or found is None:
                return False
            for table, key in (("log", "study"), ("beats", "study"), ("studies", "id")):
                db.execute(f"DELETE FROM {table} WHERE {key} = ?", (found.id,))
        self._saw(name, 0)
        return True

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Hold the whole file: SQLite has one writer at a time."""
        check_name(name)
        with self._database.alone(make=True) as db:
            assert db is not None
            if name in self._held:
                yield
                return
            layout = layout_of(db)
            found = None if layout is None else find(db, layout, name)
            self._held[name] = found.length if found else 0
            try:
                yield
            finally:
                del self._held[name]

    def beat(self, name: str, runner: str) -> None:
        with self._database.writing() as db:
            if db is not None and find_to_write(db, name):
                db.execute(BEAT, (runner, name))

    def beats(self, name: str) -> dict[str, int]:
        def work(db: sqlite3.Connection, layout: Layout) -> dict[str, int]:
            query = "SELECT runner, beat FROM beats JOIN studies ON id = study WHERE name = ?"
            return {text.decode(): beat for text, beat in db.execute(query, (name,))} if layout.beats else {}

        return self._read(work, {})

    def unbeat(self, name: str, runner: str) -> None:
        with self._database.writing() as db:
            if db is not None and find_to_write(db, name):
                mine = "study = (SELECT id FROM studies WHERE name = ?) AND runner = ?"
                db.execute(f"DELETE FROM beats WHERE {mine}", (name, runner))

    def notes(self) -> list[str]:
        """Look through the whole file, and say what is wrong with it."""
        found: list[str] = self._read(wrong_in, [])
        notes = [f"{self.place} is damaged: {said}; {WAY_OUT}" for said in found]
        if self._database.has_other_names():
            notes.append(f"{self.place} has another name too, a hard link: nothing is written to it by either")
        return notes + [self._database.behind] * bool(self._database.behind)
