"""The tables of a SQLite file: those of version 1 and those of now, and records read from them, damaged or not."""

import sqlite3
import zlib
from contextlib import suppress
from typing import Any, NamedTuple

from bestarm.study.storage.records import Record, checksum, salvaged

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS studies (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, "
    "length INTEGER)",
    "CREATE TABLE IF NOT EXISTS log (study INTEGER NOT NULL, number INTEGER NOT NULL, crc INTEGER, "
    "record TEXT NOT NULL, PRIMARY KEY (study, number)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS beats (study INTEGER NOT NULL, runner TEXT NOT NULL, beat INTEGER NOT NULL, "
    "PRIMARY KEY (study, runner)) WITHOUT ROWID",
)
CRC = "ALTER TABLE log ADD COLUMN crc INTEGER"
LENGTH = (
    "ALTER TABLE studies ADD COLUMN length INTEGER",
    "UPDATE studies SET length = (SELECT MAX(number) + 1 FROM log WHERE study = id)",
)
BEAT = (
    "INSERT INTO beats SELECT id, ?, 1 FROM studies WHERE name = ? "
    "ON CONFLICT (study, runner) DO UPDATE SET beat = beat + 1"
)
OURS = 0x42414932  # "BAI2", the application_id of a file whose tables lack nothing
SPARE = 1000  # numbers without a row that are listed as missing


class Layout(NamedTuple):
    """What a file's tables have, in terms of SQL: those of version 1 have no CRC and no length."""

    crc: str = "NULL"
    length: str = "(SELECT MAX(number) + 1 FROM log WHERE study = id)"
    beats: bool = False


CURRENT = Layout("crc", "length", True)


class RowsFound(NamedTuple):
    """A study's number in the file, and how many records it has."""

    id: int
    length: int


def layout_of(db: sqlite3.Connection) -> Layout | None:
    """Return what our tables have; None if there are none."""
    if db.execute("PRAGMA application_id").fetchone() == (OURS,):
        return CURRENT
    query = "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"
    found = {(table, column) for table, column in db.execute(query)}
    if not {(b"log", b"record"), (b"studies", b"name")} <= found:
        return None
    layout = Layout(beats=(b"beats", b"beat") in found)
    if (b"log", b"crc") in found:
        layout = layout._replace(crc="crc")
    return layout._replace(length="length") if (b"studies", b"length") in found else layout


def _prepare(db: sqlite3.Connection, layout: Layout) -> None:
    """Give tables of version 1 what they lack."""
    if layout.crc == "NULL":
        db.execute(CRC)
    if layout.length != "length":
        for statement in LENGTH:
            db.execute(statement)
    if not layout.beats:
        db.execute(SCHEMA[-1])
    db.execute(f"PRAGMA application_id = {OURS}")


def find_to_write(db: sqlite3.Connection | None, name: str) -> RowsFound | None:
    """Return where a study is, in tables that lack nothing."""
    layout = None if db is None else layout_of(db)
    if db is None or layout is None:
        return None
    if layout is not CURRENT:
        _prepare(db, layout)
    return find(db, CURRENT, name)


def names_of(db: sqlite3.Connection) -> list[str]:
    """Return the names in the table and those in its index: they are the same unless one was damaged."""
    found = {name for (name,) in db.execute("SELECT name FROM studies")}
    found |= {name for (name,) in db.execute("SELECT name FROM studies NOT INDEXED")}
    return sorted(name.decode(errors="replace") for name in found if isinstance(name, bytes))


def find(db: sqlite3.Connection, layout: Layout, name: str) -> RowsFound | None:
    """Return where a study is, by the index or, where that is damaged, by the table."""
    for how in ("", "NOT INDEXED"):
        query = f"SELECT id, {layout.length} FROM studies {how} WHERE name = ?"
        row = db.execute(query, (name,)).fetchone()
        if row is not None:
            return RowsFound(row[0], row[1] if isinstance(row[1], int) else 0)
    return None


def lines_of(db: sqlite3.Connection, layout: Layout, name: str, found: RowsFound, start: int) -> list[bytes] | None:
    """Return the texts of a study's records from number `start` on; None if anything is wrong with them."""
    query = f"SELECT number, {layout.crc}, record FROM log WHERE study = ? AND number >= ? ORDER BY number"
    lines: list[bytes] = []
    seed = zlib.crc32(f"{name}\n".encode())
    try:
        old = start == 0 or crc_of(db, layout, found.id, start - 1) is None
        rows = db.execute(query, (found.id, start))
        for expected, (number, crc, text) in enumerate(rows, start):
            if number != expected or type(text) is not bytes or (crc is None and not old):
                return None
            if crc is not None:
                old = False
                if zlib.crc32(text, zlib.crc32(b"%d\n" % number, seed)) != crc:
                    return None
            lines.append(text)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        return None
    return lines if start + len(lines) == found.length else None


def state_of(db: sqlite3.Connection, layout: Layout, name: str | None) -> tuple[object, ...]:
    """Return how many studies there are, the newest, their lengths and the CRCs of their last records."""
    last = f"(SELECT {layout.crc} FROM log WHERE study = id AND number = {layout.length} - 1)"
    query = f"SELECT COUNT(*), MAX(id), SUM({layout.length}), SUM({last}) FROM studies"
    one = db.execute(query) if name is None else db.execute(f"{query} WHERE name = ?", (name,))
    return tuple(one.fetchone())


def crc_of(db: sqlite3.Connection, layout: Layout, study: int, number: int) -> int | None:
    row = db.execute(f"SELECT {layout.crc} FROM log WHERE study = ? AND number = ?", (study, number)).fetchone()
    return row[0] if row and isinstance(row[0], int) else None


def all_of(db: sqlite3.Connection, layout: Layout, name: str, found: RowsFound) -> list[tuple[int, Record | str]]:
    """Return every record of a study that is anywhere in the table, or why it is damaged."""
    rows: dict[int, tuple[str | bytes, Any]] = {}
    columns = f"SELECT number, {layout.crc}, record FROM log"
    for query in (f"{columns} WHERE +study = ?", f"{columns} WHERE study = ? ORDER BY number DESC"):
        with suppress(sqlite3.DatabaseError):
            for number, crc, record in db.execute(query, (found.id,)):
                text = _text(record)
                whole = isinstance(text, str) and crc == checksum(name, number, text)
                if whole or (isinstance(number, int) and 0 <= number < found.length):
                    rows.setdefault(number, (text, crc))
    end = max(rows, default=-1) + 1
    length = found.length if found.length <= end + SPARE else end
    for missing in {*range(length)} - rows.keys():
        with suppress(sqlite3.DatabaseError):
            for number, crc, record in db.execute(f"{columns} WHERE study = ? AND number = ?", (found.id, missing)):
                rows[number] = _text(record), crc
    return salvaged(name, ((number, *rows[number]) for number in sorted(rows)), length)


def _text(record: Any) -> str | Any:
    """Return a row's text; what it is instead, if it is none."""
    with suppress(ValueError, AttributeError):
        return record.decode()
    return record


def wrong_in(db: sqlite3.Connection, _: Layout) -> list[str]:
    """Return what SQLite finds wrong with a file."""
    try:
        found = [said.decode(errors="replace") for (said,) in db.execute("PRAGMA integrity_check(5)")]
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return [str(error)]
    return [said for said in found if said != "ok"]
