"""The connections of a process to a SQLite file, and its turns at writing to it.

SQLite locks the database and its -shm file, and whoever opens and closes one of these beside SQLite takes its locks
away: that is never done here. Writers queue for a lock on the -wal file, on which SQLite has none. It makes waiting
fair, and nothing else depends on it.
"""

import logging
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from bestarm.errors import StorageError
from bestarm.study.storage.failures import reason
from bestarm.study.storage.lock import Patience, fcntl, give, holder, locks, queue
from bestarm.study.storage.seats import File, Seat, inherited, let_go
from bestarm.study.storage.watch import stamp

T = TypeVar("T")

log = logging.getLogger("bestarm")

SETTINGS = ("synchronous=FULL", "trusted_schema=OFF", "cell_size_check=ON")
PAUSES = (0.001, 0.02)  # seconds between tries to begin, growing
IN_THE_WAY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}  # by others, who will be done soon
NO_WRITING = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}  # what SQLite says where it cannot make its files
SPOTS = (("-shm", "POSIX", 120), ("", "POSIX", 0x4000_0001), ("-wal", "FLOCK", 0))  # what a writer has locked


class Beside(NamedTuple):
    """The files beside a database: number, size and time."""

    wal: tuple[int, int, int] | None
    shm: tuple[int, int, int] | None


class Database:
    """A SQLite file: one connection reads, one writes. Opened when first used, anew if another file has the name."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.place, self.path, self.timeout = os.fsdecode(path), path.absolute(), timeout
        self.behind = ""  # what there is to say of a -wal file that was found
        self._reader, self._writer = Seat(self.place), Seat(self.place)
        weakref.finalize(self, let_go, self._reader, self._writer)

    @property
    def file(self) -> File | None:
        """Which file is read."""
        return self._reader.file

    def read(self, work: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        """Do some work that reads, on one state of the database; `nothing` if there is no file."""
        with self._reader.turn.taken(self.place, self.timeout), self._failing():
            return self._patiently(lambda: self._read(work, nothing), self._patience())

    def _read(self, work: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        db = self._opened(self._reader)
        if db is None:
            return nothing
        before = self._stamp() if self._reader.once else None
        try:
            db.execute("BEGIN")
            return work(db)
        finally:
            _roll_back(self._reader)
            if self._reader.once and before != self._stamp():
                raise StorageError(f"{self.place} was written to while it was read without a lock; try again")

    @contextmanager
    def alone(self, make: bool = False) -> Iterator[sqlite3.Connection | None]:
        """Let nobody else write inside: a transaction is open. None if there is no file, and none is to be made."""
        seat, process = self._writer, os.getpid()
        with seat.turn.taken(self.place, self.timeout) as outermost, self._failing():
            if not outermost:
                if seat.db is None:
                    raise StorageError(f"{self.place}: the connection that held it failed; try again")
                yield seat.db
                return
            db, line = self._begin(make)
            try:
                yield db
            finally:
                if process == os.getpid():  # not in a child forked inside
                    self._end(line)

    @contextmanager
    def writing(self, make: bool = False) -> Iterator[sqlite3.Connection | None]:
        """Lend a connection, as `alone` does; what it wrote is safe at the end, inside of `alone` too."""
        with self.alone(make) as db:
            if db is None:
                yield None
                return
            if not db.in_transaction:
                self._patiently(lambda: db.execute("BEGIN IMMEDIATE"), self._patience())
            try:
                yield db
                self._commit(db)
            finally:
                _roll_back(self._writer)
                if self._writer.turn.depth > 1:
                    with suppress(sqlite3.Error):  # what was written is safe; it is tried again before the next is
                        db.execute("BEGIN IMMEDIATE")

    def _begin(self, make: bool) -> tuple[sqlite3.Connection | None, int | None]:
        """Begin to write to the file that has the name by then; return the connection, and the place in the queue."""
        patience = self._patience()
        while True:
            db = self._patiently(lambda: self._opened(self._writer, make), patience)
            if db is None:
                return None, None
            line = self._queue(patience)
            try:
                self._patiently(lambda db=db: db.execute("BEGIN IMMEDIATE"), patience)  # type: ignore[misc]
                if self._found() == self._writer.file:
                    self._check_links()
                    return db, line
                _roll_back(self._writer)
                patience.look()
            except BaseException:
                self._end(line)
                raise
            self._leave(line)

    def _commit(self, db: sqlite3.Connection) -> None:
        if self._found() != self._writer.file:
            raise StorageError(f"{self.place}: another file has this name since; nothing was written")
        self._patiently(lambda: db.execute("COMMIT"), self._patience())

    def _end(self, line: int | None) -> None:
        """End a turn. If nobody waits for it, first move what was written into the database itself."""
        _roll_back(self._writer)
        if self._writer.db is not None and (line is None or not any(words[1] == "->" for words in locks(line))):
            _checkpoint(self._writer.db)
        self._leave(line)

    def _queue(self, patience: Patience) -> int | None:
        """Wait for those who came before; None where the system has no queue."""
        if fcntl is None:
            return None
        try:
            return queue(f"{self._real()}-wal", patience, make=False)
        except OSError:
            return None

    @staticmethod
    def _leave(line: int | None) -> None:
        if line is not None:
            give(line)

    def _patience(self) -> Patience:
        return Patience(self.place, self.timeout, self._whom)

    def _whom(self) -> str:
        """Return who is writing, as far as the system tells."""
        found = [holder(f"{self._real()}{end}", kind, byte) for end, kind, byte in SPOTS]
        return next((who for who in found if who != "another process"), "another process")

    @staticmethod
    def _patiently(work: Callable[[], T], patience: Patience) -> T:
        """Do some work that others may be in the way of, again until it is done."""
        pause = PAUSES[0]
        while True:
            try:
                return work()
            except sqlite3.OperationalError as error:
                if _code(error) not in IN_THE_WAY:
                    raise
            patience.look()
            time.sleep(min(pause, patience.step()))
            pause = min(1.2 * pause, PAUSES[1])

    def _opened(self, seat: Seat, make: bool = False) -> sqlite3.Connection | None:
        """Return a seat's connection to the file that has the name now; None if there is none and is not to be made."""
        found = self._found()
        if seat.db is not None and seat.file == found and not seat.once:
            return seat.db
        seat.close()
        if found is None and not make:
            return None
        if found in inherited:
            raise StorageError(
                f"{self.place}: this process was forked while its parent was using the database, which SQLite does not "
                "allow; start processes by 'spawn' or 'forkserver'"
            )
        if make:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        before, used = self._beside(), bool(locks(self._real()))
        seat.db, seat.once = self._connected(make, writes=seat is self._writer)
        seat.file = self._found()
        if found is not None and seat.file != found:
            raise StorageError(f"{self.place}: another file was given this name while it was opened; try again")
        if not used:
            self._say_if_left_behind(seat.db, before, self._beside())
        return seat.db

    def _say_if_left_behind(self, db: sqlite3.Connection, before: Beside, after: Beside) -> None:
        """Say that a -wal file was left by somebody who died: it was there, and SQLite began its -shm file anew."""
        if before.wal is not None and after.wal == before.wal and after.shm != before.shm:
            wal = f"{self._real()}-wal"
            self.behind = (
                f"{self.place}: a program that wrote to it died, and {wal} belongs to it: move or copy both or "
                "neither; what it holds is taken in"
            )
            log.warning("%s", self.behind)
            _checkpoint(db)

    def _connected(self, make: bool, writes: bool) -> tuple[sqlite3.Connection, bool]:
        """Connect; where nothing can be written, to what was closed cleanly, and say that it is for one use."""
        try:
            return self._try_to_connect("rwc" if make else "rw", writes), False
        except sqlite3.OperationalError as error:
            if _code(error) not in NO_WRITING or self._found() is None:
                raise
            if writes:
                raise StorageError(
                    f"{self.place} cannot be written where it is ({error}); copy it to a folder that can be written to"
                ) from error
            if self._beside().wal:
                wal = f"{self._real()}-wal"
                raise StorageError(
                    f"{self.place} was not closed: {wal} belongs to it, and cannot be taken in where nothing can be "
                    "written; copy both to a folder that can be written to"
                ) from error
        return self._try_to_connect("ro&immutable=1", writes), True

    def _try_to_connect(self, mode: str, writes: bool) -> sqlite3.Connection:
        uri = f"{self.path.as_uri()}?mode={mode}"
        db = sqlite3.connect(uri, timeout=0, isolation_level=None, check_same_thread=False, uri=True)
        try:
            db.text_factory = bytes
            for setting in SETTINGS:
                db.execute(f"PRAGMA {setting}")
            db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
            if writes:
                db.execute("PRAGMA journal_mode=WAL").fetchone()
        except BaseException:
            db.close()
            raise
        return db

    def _beside(self) -> Beside:
        """Look at the files beside the database; an empty -wal file is none."""
        wal, shm = (stamp(f"{self._real()}{end}") for end in ("-wal", "-shm"))
        return Beside(wal if wal and wal[1] else None, shm)

    def _real(self) -> str:
        """Return what SQLite takes for the file's name, and names its other files after."""
        return os.path.realpath(self.path)

    def _found(self) -> File | None:
        """Return which file has the name."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _stamp(self) -> tuple[int, int]:
        """Return what changes when the file is written to."""
        found = os.stat(self.path)
        return found.st_mtime_ns, found.st_size

    def has_other_names(self) -> bool:
        """Whether the file has two names or more, each of which would have a -wal file of its own."""
        with suppress(FileNotFoundError):
            return os.stat(self.path).st_nlink > 1
        return False

    def _check_links(self) -> None:
        if self.has_other_names():
            raise StorageError(
                f"{self.place} has another name too, a hard link: SQLite loses what is written by two names; make a "
                "copy of it instead, and remove the other name"
            )

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Turn what SQLite and the system say into StorageError."""
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(f"the database {self.place} failed: {error}") from error
        except UnicodeDecodeError as error:  # what SQLite says of a damaged schema quotes it
            raise StorageError(f"the database {self.place} failed: its schema is damaged") from error
        except OSError as error:
            raise StorageError(f"the database {self.place} cannot be used: {reason(error)}") from error


def _code(error: sqlite3.Error) -> int:
    """Return what SQLite calls an error, without the details."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _roll_back(seat: Seat) -> None:
    """End what is open; where that fails, its connection with it."""
    if seat.db is not None and seat.db.in_transaction:
        try:
            seat.db.execute("ROLLBACK")
        except sqlite3.Error:
            seat.close()


def _checkpoint(db: sqlite3.Connection) -> None:
    """Move what the -wal file holds into the database, as far as nobody is in the way; it is safe in either."""
    with suppress(sqlite3.Error):
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
