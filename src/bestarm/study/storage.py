"""Where a study's log is kept: append and read, nothing else. State is a fold over what is read.

A log is a sequence of JSON objects. The first says what the study is; later ones what was asked and told. Nothing is
ever changed or removed, so a reader never sees half a truth, and whoever dies in mid-write has written nothing.
"""

import os
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bestarm.errors import StorageError
from bestarm.study.journal import Journal
from bestarm.study.records import Record, Records, check_name, check_start, encode, unknown
from bestarm.study.sqlite import SQLite

__all__ = ["Journal", "Memory", "Record", "Records", "SQLite", "Storage", "open_storage"]


class Storage(Protocol):
    """Logs by name. Handles may be shared by threads, carried over a fork, and opened on one place many times."""

    def names(self) -> list[str]:
        """Return the names of all studies."""
        ...

    def create(self, name: str, first: Record) -> bool:
        """Begin a log; return False, leaving it alone, if there is one of that name."""
        ...

    def append(self, name: str, records: Sequence[Record], after: int | None = None) -> bool:
        """Add records; they are safe when this returns. A crash before may leave the first of them, each whole.

        With `after`, only if the log has exactly that many records: return False, writing nothing, if another was
        faster. A name that is not there is a StorageError.
        """
        ...

    def read(self, name: str, start: int = 0) -> Sequence[Record]:
        """Return the records from number `start` on; none for a name that is not there.

        A log with fewer records than `start` is not the one that was read before: StorageError.
        """
        ...

    def delete(self, name: str) -> bool:
        """Forget a log; return whether there was one."""
        ...


@dataclass
class _Log:
    lines: list[str] = field(default_factory=list)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)


class Memory:
    """Logs that end with the process."""

    def __init__(self) -> None:
        self.logs: dict[str, _Log] = {}
        self._guard = threading.Lock()

    def names(self) -> list[str]:
        return sorted(self.logs)

    def create(self, name: str, first: Record) -> bool:
        check_name(name)
        log = _Log([encode(first)])
        return self.logs.setdefault(name, log) is log

    def append(self, name: str, records: Sequence[Record], after: int | None = None) -> bool:
        lines = [encode(record) for record in records]
        with self._guard:
            if name not in self.logs:
                raise unknown(name, "memory")
            log = self.logs[name].lines
            if after is not None and len(log) != after:
                return False
            log.extend(lines)
        return True

    def read(self, name: str, start: int = 0) -> Sequence[Record]:
        log = self.logs.get(name) or _Log()
        check_start(name, "memory", start, len(log.lines))
        return Records(log.lines[start:], f"study {name!r} in memory", start, log.mark)

    def delete(self, name: str) -> bool:
        return self.logs.pop(name, None) is not None


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
    if scheme in ("sqlite", "journal"):
        if not rest.removeprefix("/"):
            raise StorageError(f"{text!r} names no file; {scheme}:///file is expected")
        return (SQLite if scheme == "sqlite" else Journal)(rest.removeprefix("/"))
    if scheme == "postgresql" or scheme.startswith("postgresql+"):
        from bestarm.study.postgres import PostgreSQL

        return PostgreSQL(text)
    raise StorageError(
        f"unknown storage {text!r}; sqlite:///file.db, journal:///file.jsonl, a path or postgresql+psycopg://... "
        "is expected"
    )
