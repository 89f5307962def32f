"""The n-th statement for a database fails, or its connection, or its disk fills, for every n of a short study.

What was acknowledged is there, once. What raised is called again, and counts once.
"""

import contextlib
import math
import os
import resource
import shutil
import socket
import sqlite3
import uuid

import pytest

from bestarm.study import delete_study
from bestarm.study.storage import database
from tests.study.storage.faults import Faults, Script, check
from tests.study.storage.test_storage import url_for


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Wait for no disk: nothing here survives because of it."""
    monkeypatch.setattr(database, "SETTINGS", (*database.SETTINGS, "synchronous=OFF"))


# SQLite: statements, and files that may not grow


class Weak(sqlite3.Connection):
    """A connection whose statements may fail, before they took effect or after."""

    faults = None

    def execute(self, *given):
        return self.faults.may_fail(given[0], super().execute)(*given)

    def executemany(self, *given):
        return self.faults.may_fail(given[0], super().executemany)(*given)


CHANGES = ("BEGIN IMM", "INSERT", "UPDATE", "CREATE", "PRAGMA application_id =", "COMMIT", "PRAGMA wal_checkpoint")


class Statements(Faults):
    def may_fail(self, name, real):
        tried = super().may_fail(name, real)
        if not self.effect:
            return tried

        def done_and_failed(*args):
            number = self.calls
            if 0 <= number - self.first < self.times:
                real(*args)
            return tried(*args)

        return done_and_failed

    def error(self):
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = self.code
        return error


@pytest.fixture
def weak_database(monkeypatch):
    """Return what runs the script on a SQLite file whose statements fail as some faults say."""
    connect = sqlite3.connect

    def run(url, faults):
        with monkeypatch.context() as patch:
            patch.setattr(sqlite3, "connect", lambda *args, **given: connect(*args, factory=Weak, **given))
            patch.setattr(Weak, "faults", faults)
            return Script(url, "s").run(faults.heal)

    return run


@pytest.mark.parametrize(
    ("effect", "times"), [(0.0, 1), (1.0, 1), pytest.param(0.0, math.inf, marks=pytest.mark.torture)]
)
def test_each_statement_of_a_database_fails(effect, times, weak_database, tmp_path):
    """Before it took effect, or after, where it has one."""
    faults = Statements()
    check(weak_database(tmp_path / "log.db", faults), tmp_path / "log.db")
    assert len(faults.named) > 100
    for n, statement in enumerate(faults.named):
        if effect and not statement.startswith(CHANGES):
            continue
        url = tmp_path / f"{n}.db"
        script = weak_database(url, Statements(n, times, (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)[n % 2], effect))
        check(script, url)


def test_a_process_dies_at_each_statement_of_a_database(weak_database, tmp_path, monkeypatch):
    """Its files are copied as they are then; a copy goes on."""
    url, left, scripts = tmp_path / "log.db", [], []
    run = Script.run
    monkeypatch.setattr(Script, "run", lambda self, *given: (scripts.append(self), run(self, *given))[1])

    class Copying(Statements):
        def may_fail(self, name, real):
            def done(*args):
                found = real(*args)
                if name.startswith(CHANGES) and url.exists():
                    left.append((tmp_path / str(len(left)), scripts[0].again(None)))
                    left[-1][0].mkdir()
                    for path in tmp_path.glob("log.db*"):
                        if not path.name.endswith("-shm"):
                            shutil.copy(path, left[-1][0])
                return found

            return done

    check(weak_database(url, Copying()), url)
    assert len(left) > 50
    for folder, script in left:
        check(run(script.again(folder / "log.db")), folder / "log.db", unnamed_twice=True)


def test_a_disk_fills_at_each_size_of_a_database(tmp_path):
    """The system writes no byte beyond a size, of the file, its -wal and its -shm."""
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    raised = 0
    for size in range(0, 60_000, 1000):
        url = tmp_path / f"{size}.db"
        script = Script(url, "s")
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, unlimited[1]))
        try:
            script.run(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, unlimited))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        raised += script.raised > 0
        check(script, url)
    assert raised > 20


def test_a_database_that_may_have_no_more_pages(tmp_path, monkeypatch):
    connect, opened, usual = sqlite3.connect, [], database.SETTINGS
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **given: opened.append(connect(*args, **given)) or opened[-1])

    def grow():
        monkeypatch.setattr(database, "SETTINGS", usual)
        for db in opened:
            with contextlib.suppress(sqlite3.ProgrammingError):  # it is closed
                db.execute("PRAGMA max_page_count = 1000000")

    for pages in range(1, 9):
        opened.clear()
        monkeypatch.setattr(database, "SETTINGS", (*usual, f"max_page_count={pages}"))
        script = Script(tmp_path / f"{pages}.db", "s").run(grow)
        assert script.raised or pages > 4
        check(script, script.url)


# PostgreSQL: connections that are dropped


class Dropped:
    """Drops the connection at the n-th statement for a server: before it gets there, or when it is done."""

    def __init__(self, first=math.inf, done=False, times=1):
        self.first, self.done, self.times = first, done, times
        self.named, self.drops = [], 0

    def before(self, db, cursor, statement, *_):
        self.named.append(statement)
        if not self.done:
            self.drop(cursor)

    def after(self, db, cursor, statement, *_):
        if self.done and self.drop(cursor):
            cursor.connection.close()
            raise db.dialect.dbapi.OperationalError("the connection is lost")

    def drop(self, cursor):
        if not 0 <= len(self.named) - 1 - self.first < self.times:
            return False
        self.drops += 1
        with socket.socket(fileno=os.dup(cursor.connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)
        return True


@pytest.fixture
def weak_server(tmp_path):
    """Return what runs the script on a server whose connections are dropped as some faults say."""
    url = url_for("postgresql", tmp_path)
    sql = pytest.importorskip("sqlalchemy")

    def run(faults):
        script = Script(url, f"faults-{uuid.uuid4().hex}")
        sql.event.listen(sql.Engine, "before_cursor_execute", faults.before)
        sql.event.listen(sql.Engine, "after_cursor_execute", faults.after)
        try:
            return script.run()
        finally:
            sql.event.remove(sql.Engine, "before_cursor_execute", faults.before)
            sql.event.remove(sql.Engine, "after_cursor_execute", faults.after)

    return run


@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.torture)])
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_the_connection_is_lost_at_each_statement_for_a_server(done, times, weak_server):
    """Nothing is raised, and all counts once: what was sent is looked for before it is sent again."""
    weak_server(Dropped())  # the first one makes the tables of a new database
    faults = Dropped()
    script = weak_server(faults)
    check(script, script.url)
    assert len(faults.named) > 30
    for n, statement in enumerate(faults.named):
        faults = Dropped(n, done, times)
        script = weak_server(faults)
        assert script.raised == 0, statement
        assert faults.drops >= 1
        assert check(script, script.url).handed == 10
        delete_study(script.name, script.url)
