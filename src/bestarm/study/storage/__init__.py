"""Where a study's log is kept: append and read, nothing else. State is made from what is read.

A log is a sequence of JSON objects. The first says what the study is; later ones what was asked and told. Nothing is
ever changed or removed, so a reader never sees half a truth, and whoever dies in mid-write has written nothing.
"""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, cast

from bestarm import plugins
from bestarm.errors import BestArmError, InputError, StorageError
from bestarm.study.storage.journal import Journal
from bestarm.study.storage.memory import Memory
from bestarm.study.storage.records import Record, Records, timeout_of
from bestarm.study.storage.sqlite import SQLite

__all__ = ["Journal", "Memory", "Record", "Records", "SQLite", "Storage", "open_storage"]

EXPECTED = "sqlite:///file.db, journal:///file.jsonl, a path or postgresql+psycopg://user@host:port/database"
QUERY = re.compile(r"[?&]?([A-Za-z_]\w*)=([^?&=/]*)")
TIMEOUT = 60.0  # seconds


class Storage(Protocol):
    """Logs by name. Handles may be shared by threads, carried over a fork, and opened on one place many times."""

    timeout: float
    """Seconds to wait for others, and to try again."""
    place: str
    """What to call it in messages; without a password."""

    @property
    def folder(self) -> Path | None:
        """Where the log's file lies; None where it has none."""
        ...

    def names(self) -> list[str]:
        """Return the names of all studies, damaged ones too."""
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

    def read(self, name: str, start: int = 0) -> Records:
        """Return the records from number `start` on; none for a name that is not there.

        A log with fewer records than `start` is not the one that was read before: StorageError. So is a damaged
        record, which is named.
        """
        ...

    def delete(self, name: str) -> bool:
        """Forget a log; return whether there was one."""
        ...

    def mark(self, name: str | None = None) -> str:
        """Return a small text that is another after each change to a study, or to any without a name.

        It costs the same however long the logs are, and signs of life are no changes. Ask for it before reading: what
        changes meanwhile then makes it old. It may become another although nothing of this study changed.
        """
        ...

    def wait(self, mark: str, timeout: float, name: str | None = None) -> str:
        """Return the mark as soon as it is another than the one given; that one after so many seconds without."""
        ...

    def hold(self, name: str) -> AbstractContextManager[None]:
        """Let nobody but this thread, by this handle, write to the study inside."""
        ...

    def beat(self, name: str, runner: str) -> None:
        """Give a sign of life: the runner's number grows."""
        ...

    def beats(self, name: str) -> dict[str, int]:
        """Return the number of every runner of a study that gave a sign of life."""
        ...

    def unbeat(self, name: str, runner: str) -> None:
        """Forget a runner's number."""
        ...

    def salvage(self, name: str) -> list[tuple[int, Record | str]]:
        """Return every record of a study, by number: it, or why it is damaged."""
        ...

    def notes(self) -> list[str]:
        """Return what is worth saying about the storage itself, to whoever asks how it is."""
        ...


def open_storage(url: "str | os.PathLike[str] | Storage | None") -> Storage:
    """Return the storage a URL names: sqlite:///file.db, journal:///file.jsonl or a path, postgresql+psycopg://...

    The schemes of installed packages are known too. None is memory. `?timeout=SECONDS` behind a URL or a path says how
    long to wait for others.
    """
    if url is None:
        return Memory()
    if isinstance(url, os.PathLike):
        return _file(os.fsdecode(url))
    if not isinstance(url, str):
        if not hasattr(url, "append") or not hasattr(url, "names"):
            raise InputError(f"a storage is expected: {EXPECTED}; given {url!r}")
        return url
    scheme, found, rest = url.partition("://")
    if found and scheme.partition("+")[0] == "postgresql":
        return _postgresql(url)
    if found and scheme in plugins.names("storages"):
        return open_storage(_installed(scheme, url))
    if found and scheme not in ("sqlite", "journal"):
        raise StorageError(f"unknown storage {_shown(url)!r}; {EXPECTED} is expected")
    path, timeout = _query(rest if found else url)
    if not found:
        return _file(path, timeout)
    if not path.removeprefix("/"):
        raise StorageError(f"{url!r} names no file; {scheme}:///file is expected")
    kind: Callable[..., Storage] = SQLite if scheme == "sqlite" else Journal
    return kind(path.removeprefix("/"), timeout)


def _file(path: str, timeout: float = TIMEOUT) -> Storage:
    """Return the storage that a file's name stands for."""
    if not path:
        raise StorageError(f"the storage's name is empty; {EXPECTED} is expected")
    return (SQLite if path.endswith((".db", ".sqlite", ".sqlite3")) else Journal)(path, timeout)


def _postgresql(url: str) -> Storage:
    try:
        from bestarm.study.storage import postgres
    except ImportError as error:
        raise StorageError(f"{_shown(url)} needs `pip install 'bestarm-bai[server]'`: {error}") from None
    return postgres.Postgres(url, TIMEOUT)


def _installed(scheme: str, url: str) -> Storage:
    """Return the storage that an installed package makes of a URL with its scheme."""
    make = plugins.part("storages", scheme)
    try:
        return cast(Storage, make(url))
    except BestArmError:
        raise
    except Exception as error:
        raise StorageError(f"{_shown(url)} cannot be opened: {type(error).__name__}: {error}") from error


def _query(text: str) -> tuple[str, float]:
    """Return a path and the timeout behind it. A ? that no word and = come after is part of the path."""
    path, found, query = text.rpartition("?")
    match = QUERY.fullmatch(query)
    if not found or not match:
        return text, TIMEOUT
    key, value = match.groups()
    if key != "timeout":
        raise StorageError(f"unknown option {key!r} in the storage {text!r}; ?timeout=SECONDS is expected")
    return path, timeout_of(value)


def _shown(url: str) -> str:
    """Return a URL without its password."""
    return re.sub(r"(://[^/@:]*):.*@", r"\1:***@", url)
