"""Work on a PostgreSQL server that restarts, refuses and drops: tried again until it is done or the time is up."""

import logging
import math
import os
import random
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeAlias, TypeVar

import sqlalchemy as sql

from bestarm.errors import StorageError
from bestarm.study.storage.records import timeout_of

T = TypeVar("T")
Work: TypeAlias = Callable[[Any, bool], T]

log = logging.getLogger("bestarm")

QUIET = 5.0  # seconds to wait for others before saying so
LOOK = 0.3  # seconds a wait must last before the server can say for whom
GONE = 10.0  # seconds for what a lost connection left behind to end
PAUSES = (0.01, 1.0)  # seconds between tries, growing

LOCKED = "55P03"
READ_ONLY = "25006"  # for a moment in a failover, for ever on a replica
PASSING = {"40001", "40P01", "53300", "53400", "57P03"}  # others will be done soon
MADE = {"23505", "42P07", "42701", "42710"}  # others made the tables meanwhile
LOST = {"57P01", "57P02", "57P05", "25P03"}  # and class 08
FINAL = (  # what is refused before there is a connection, and will be refused again
    "authentication failed",
    "does not exist",
    "no pg_hba.conf entry",
    "no password supplied",
    "permission denied",
    "invalid",
)
NOWHERE = ("not known", "No address", "No such file")  # the same, unless it was there before
BLOCKERS = sql.text(
    "SELECT pid, application_name, client_addr FROM pg_stat_activity WHERE pid = ANY(pg_blocking_pids(:pid)) "
    "ORDER BY wait_event_type IS NOT DISTINCT FROM 'Lock' LIMIT 1"
)
END = sql.text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE pid = ANY(:pids) AND pid <> pg_backend_pid() AND application_name = :mine"
)
WAIT_FOR_LOCKS = sql.text("SELECT set_config('lock_timeout', :ms, false)")
BEGIN, COMMIT = sql.text("BEGIN"), sql.text("COMMIT")
SESSION = (  # a client whose machine is gone is gone for the server within half a minute
    ("default_transaction_isolation", "read committed"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
)
inherited: list[Any] = []  # connections of a parent process: kept, for to close one would end the parent's


def parse(url: str, timeout: float) -> tuple[Any, float]:
    """Return SQLAlchemy's URL and the seconds that `?timeout=` names in it."""
    try:
        found = sql.make_url(url)
    except (ValueError, sql.exc.ArgumentError):
        raise StorageError(
            "this is no database URL; postgresql+psycopg://user:password@host:port/database is expected, "
            "with a number for the port"
        ) from None
    if found.port is not None and not 0 < found.port < 1 << 16:
        raise StorageError(f"the port of a database is a number from 1 to 65535; given {found.port}")
    if "@" in (found.host or ""):
        raise StorageError("an @ in a password is written %40 in a database URL")
    if found.drivername == "postgresql":
        found = found.set(drivername="postgresql+psycopg")
    given = found.query.get("timeout")
    if given is None:
        return found, timeout
    return found.difference_update_query(["timeout"]), timeout_of(given)


class Server:
    """The connections of a process to a database. Threads may share it; after a fork it begins anew."""

    def __init__(self, url: str, timeout: float, prepare: Callable[[Any], None]) -> None:
        self.url, self.timeout = parse(url, timeout)
        self.prepare = prepare
        shown = {key: value for key, value in self.url.query.items() if key in ("host", "port")}
        self.place: str = self.url.set(query=shown).render_as_string(hide_password=True)
        self._begin()

    def _begin(self) -> None:
        self._engine: Any = None
        self._process, self._guard = os.getpid(), threading.RLock()
        self.ready = self.has_written = False
        self.own_name = f"bestarm, process {os.getpid()} on {socket.gethostname()}"[:63]

    def connections(self) -> Any:
        """Return this process's engine."""
        if self._process != os.getpid():
            if self._engine is not None:
                self._engine.dispose(close=False)  # its connections are the parent's
            self._begin()
        with self._guard:
            if self._engine is None:
                self._engine = self._make()
            return self._engine

    def _make(self) -> Any:
        given: dict[str, Any] = {}
        if "psycopg" in self.url.drivername:
            given = {
                "application_name": self.own_name,
                "connect_timeout": max(2, min(10, math.ceil(self.timeout))),
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "tcp_user_timeout": 30_000,
            }
            given = {key: value for key, value in given.items() if key not in self.url.query}
            self.own_name = str(self.url.query.get("application_name", self.own_name))
        try:
            engine = sql.create_engine(
                self.url,
                pool_size=20,
                max_overflow=-1,
                isolation_level="AUTOCOMMIT",
                connect_args=given,
                hide_parameters=True,
            )
        except (ImportError, ValueError, sql.exc.SQLAlchemyError) as error:
            raise StorageError(f"{self.place} cannot be used: {self._hidden(error)}") from None

        settings = [("lock_timeout", self._milliseconds(min(QUIET - LOOK, self.timeout / 2))), *SESSION]
        calls = ", ".join(f"set_config('{key}', '{value}', false)" for key, value in settings)

        @sql.event.listens_for(engine, "connect")  # type: ignore[untyped-decorator]
        def bounded(connection: Any, _: Any) -> None:
            connection.cursor().execute(f"SELECT {calls}")
            connection.commit()

        weakref.finalize(self, _dispose, engine, os.getpid())
        return engine

    @staticmethod
    def _milliseconds(seconds: float) -> str:
        return str(max(1, int(seconds * 1000)))

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Lend a connection; each of its statements is a transaction."""
        with self.connections().connect() as db:
            yield db

    def do(self, work: Work[T], via: Callable[[], AbstractContextManager[Any]] | None = None) -> T:
        """Do some work on a connection, again if others or a lost connection were in its way.

        Its second argument says whether an earlier try may have been done: the connection was lost in it.
        """
        if not self.ready or self._process != os.getpid():
            self._try(lambda db, unsure: self.prepare(db), self.connected)
            self.ready = True
        return self._try(work, via or self.connected)

    @contextmanager
    def lasting(self, work: Callable[[Any], object]) -> Iterator[None]:
        """Do some work in a transaction that is open as long as the context, on a connection of its own."""
        kept: list[Any] = []
        process = os.getpid()

        @contextmanager
        def opened() -> Iterator[Any]:
            db = self.connections().connect()
            try:
                yield db
            except BaseException:
                db.invalidate()
                db.close()
                raise
            kept.append(db)

        def begun(db: Any, unsure: bool) -> None:
            db.execute(BEGIN)
            work(db)

        self.do(begun, opened)
        try:
            yield
        finally:
            if process != os.getpid():
                inherited.append(kept.pop())
            else:
                _end(kept.pop())

    def _try(self, work: Work[T], via: Callable[[], AbstractContextManager[Any]]) -> T:
        attempt = Attempt(self, time.monotonic() + self.timeout)
        while True:
            try:
                with via() as db:
                    return attempt.make(work, db)
            except sql.exc.DBAPIError as error:
                attempt.failed(error)

    def _hidden(self, error: object) -> str:
        told = " ".join(str(error).split())
        password = self.url.password
        return told.replace(password, "***") if password and len(password) > 3 else told


class Attempt:
    """One piece of work, tried again and again till a time."""

    def __init__(self, server: Server, until: float) -> None:
        self.server, self.until = server, until
        self.pause, self.pid = PAUSES[0], 0
        self.lost: list[int] = []  # server processes that may still be at it
        self.unsure = self.patient = self.warned = False
        self.whom = "another process"

    def make(self, work: Work[T], db: Any) -> T:
        self.pid = _server_process(db)
        if self.lost:
            self._end_lost(db)
        waiting: AbstractContextManager[None] = self._patience(db) if self.patient else nullcontext()
        with waiting:
            return work(db, self.unsure)

    def failed(self, error: Any) -> None:
        """Note why a try failed and pause, or raise StorageError if another is of no use."""
        told, left = self.server._hidden(error.orig), self.until - time.monotonic()
        state = state_of(error)
        lost = error.connection_invalidated or state in LOST or state.startswith("08")
        if lost and self.pid:
            self.unsure = True
            self.lost.append(self.pid)
        final = FINAL if self.server.ready else FINAL + NOWHERE
        refused = not self.pid and not state and not any(word in told for word in final)
        again = lost or refused or state in PASSING or "too many clients" in told
        again = again or (state in MADE and not self.server.ready)
        if state == LOCKED:
            again, self.patient = not self.patient, True
            told = f"waited {self.server.timeout:g} s for {self.whom}"
        if state == READ_ONLY:
            again = self.server.has_written  # it could be written before: others will take over soon
        if not again or left <= 0:
            raise StorageError(f"the database {self.server.place} failed: {told}") from None
        if (lost or refused) and self.pause > 0.3 and not self.warned:
            self.warned = True
            log.warning("%s does not answer (%s); tried again for %.0f s", self.server.place, told, left)
        self.pid = 0
        if state != LOCKED:
            time.sleep(min(self.pause * random.uniform(0.5, 1.0), left))
            self.pause = min(self.pause * 1.5, PAUSES[1])

    def _end_lost(self, db: Any) -> None:
        """End what earlier tries left on the server: it must not write after we looked whether it wrote."""
        until = time.monotonic() + GONE
        given = {"pids": self.lost, "mine": self.server.own_name}
        while db.execute(END, given).all():
            if time.monotonic() > until:
                raise StorageError(f"the database {self.server.place} does not end a lost connection's work")
            time.sleep(0.02)
        self.lost.clear()

    @contextmanager
    def _patience(self, db: Any) -> Iterator[None]:
        """Wait for locks as long as there is time, saying for whom."""
        left = max(self.until - time.monotonic(), 0.01)
        before = db.scalar(sql.text("SELECT current_setting('lock_timeout')"))
        db.execute(WAIT_FOR_LOCKS, {"ms": Server._milliseconds(left)})
        look = threading.Timer(min(LOOK, left / 2), self._say_for_whom, (self.pid, left))
        look.daemon = True
        look.start()
        try:
            yield
        finally:
            look.cancel()
            try:
                db.execute(WAIT_FOR_LOCKS, {"ms": before})
            except sql.exc.SQLAlchemyError:
                db.invalidate()

    def _say_for_whom(self, pid: int, left: float) -> None:
        try:
            with self.server.connected() as db:
                found = db.execute(BLOCKERS, {"pid": pid}).first()
        except sql.exc.SQLAlchemyError:
            found = None
        if found is not None:
            where = f" from {found[2]}" if found[2] else ""
            self.whom = f"{found[1] or 'another program'} (server process {found[0]}{where})"
        log.warning("waiting for %s, who is writing to %s; up to %.0f s", self.whom, self.server.place, left)


def state_of(error: Any) -> str:
    """Return what the server calls an error, five letters; none if it did not come from there."""
    return getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None) or ""


def _server_process(db: Any) -> int:
    """Return the number of the server's process behind a connection."""
    info = getattr(db.connection.driver_connection, "info", None)
    return getattr(info, "backend_pid", None) or -1


def _dispose(engine: Any, process: int) -> None:
    """Close the connections of an engine, in the process that opened them."""
    if process == os.getpid():
        engine.dispose()


def _end(db: Any) -> None:
    """End a connection's transaction and give it back; what was lost has ended by itself."""
    try:
        db.execute(COMMIT)
    except sql.exc.SQLAlchemyError:
        db.invalidate()
    except BaseException:
        db.invalidate()
        raise
    finally:
        db.close()
