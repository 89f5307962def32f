"""PostgreSQL: servers that die, connections that are cut, others who are faster, and bytes that are changed."""

import gc
import logging
import multiprocessing
import os
import pickle
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")
psycopg = pytest.importorskip("psycopg")

from bestarm.errors import InputError, StorageError  # noqa: E402
from bestarm.study.storage import connection, postgres  # noqa: E402
from bestarm.study.storage.postgres import Postgres  # noqa: E402

SPAWN = multiprocessing.get_context("spawn")


class OwnServer:
    """A server of the tests' own, in a folder of its own, that can be stopped and hurt."""

    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder
        self.run("initdb", "-D", folder / "data", "-U", "bestarm", "-A", "trust", "--no-sync", "-E", "UTF8")
        rules = folder / "data" / "pg_hba.conf"
        rules.write_text("local all keyed scram-sha-256\n" + rules.read_text())
        self.start()
        with self.admin() as db:
            db.execute("CREATE ROLE keyed LOGIN PASSWORD 'open sesame'")
            db.execute("CREATE ROLE reader LOGIN")

    def run(self, program, *arguments):
        head = ["runuser", "-u", "nobody", "--"] if os.geteuid() == 0 else []
        command = [*head, self.programs / program, *map(str, arguments)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder)

    def start(self):
        given = f"-k {self.folder} -c listen_addresses='' -c fsync=off -c max_connections=60"
        self.run("pg_ctl", "-D", self.folder / "data", "-l", self.folder / "log", "-w", "-o", given, "start")

    def stop(self, how="immediate"):
        self.run("pg_ctl", "-D", self.folder / "data", "-m", how, "-w", "stop")

    def admin(self):
        return psycopg.connect(f"host={self.folder} user=bestarm dbname=postgres", autocommit=True)

    def backends(self):
        """The processes of the server that work for us."""
        with self.admin() as db:
            found = db.execute("SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'bestarm%%'")
            return [pid for (pid,) in found]

    def url(self, database="postgres", user="bestarm", host=None, **query):
        query = {"host": host or self.folder, **query}
        return f"postgresql+psycopg://{user}@/{database}?" + "&".join(f"{key}={query[key]}" for key in query)


@pytest.fixture(scope="module")
def server():
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[4]))
    program = str(found[-1]) if found else shutil.which("pg_ctl")
    if program is None:
        pytest.skip("no PostgreSQL server is installed here")
    folder = Path(tempfile.mkdtemp(prefix="bestarm-", dir="/tmp"))  # a socket's name has 107 bytes at most
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    server = OwnServer(Path(program).resolve().parent, folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture
def database(server):
    name = f"d{uuid.uuid4().hex}"
    with server.admin() as db:
        db.execute(f"CREATE DATABASE {name} STRATEGY file_copy" if db.info.server_version >= 150000 else "")
    return name


@pytest.fixture
def url(server, database):
    return server.url(database, timeout=20)


@pytest.fixture
def storage(url):
    return Postgres(url)


def line(i):
    return {"kind": "tell", "i": i}


def numbers(storage, name, start=0):
    return [record["i"] for record in storage.read(name, start)]


def change(url, statement, *given):
    """What somebody else does to the tables."""
    with connection_to(url) as db:
        return db.execute(statement, given)


def connection_to(url):
    host, database = re.search(r"host=([^&]*)", url)[1], re.search(r"@/(\w+)", url)[1]
    return psycopg.connect(f"host={host} user=bestarm dbname={database}", autocommit=True)


# the contract


def test_a_log_grows_and_is_read_from_a_number_on(storage):
    assert storage.names() == []
    assert storage.create("a ✓", line(0))
    assert not storage.create("a ✓", line(9))
    assert storage.append("a ✓", [line(1), line(2)])
    assert storage.append("a ✓", [])
    assert storage.append("a ✓", [line(3)], after=3)
    assert not storage.append("a ✓", [line(4)], after=3)
    assert not storage.append("a ✓", [line(4)], after=5)
    assert numbers(storage, "a ✓") == [0, 1, 2, 3]
    assert numbers(storage, "a ✓", 2) == [2, 3]
    assert numbers(storage, "a ✓", 4) == []
    assert storage.names() == ["a ✓"]
    with pytest.raises(StorageError, match="made anew"):
        storage.read("a ✓", 5)
    assert storage.salvage("a ✓") == list(enumerate(map(line, range(4))))
    assert list(pickle.loads(pickle.dumps(storage)).read("a ✓", 3)) == [line(3)]


def test_a_name_that_is_not_there(storage):
    assert len(storage.read("a")) == 0
    assert not storage.delete("a")
    assert storage.salvage("a") == []
    for after in (None, 0):
        with pytest.raises(StorageError, match="there is no study 'a'"):
            storage.append("a", [line(0)], after)
    with pytest.raises(InputError, match="name"):
        storage.create("a\0b", line(0))


def test_a_log_made_anew_has_another_mark_and_nothing_of_the_old_one(url, storage):
    other = Postgres(url)
    storage.create("a", line(0))
    storage.append("a", [line(1), line(2)])
    storage.beat("a", "me")
    mark = storage.read("a").mark
    assert other.delete("a")
    assert change(url, "SELECT * FROM bestarm_log").rowcount == 0
    assert change(url, "SELECT * FROM bestarm_beats").rowcount == 0
    with pytest.raises(StorageError, match="there is no study"):
        storage.append("a", [line(3)])
    assert other.create("a", line(7))
    assert storage.append("a", [line(8)])
    assert numbers(storage, "a") == [7, 8]
    assert storage.read("a").mark != mark


def test_batches_larger_than_what_is_prepared(url, storage):
    big = [{"i": i, "text": "ü" * 3000} for i in range(1, 40)]
    storage.create("a", line(0))
    other = Postgres(url)
    for _ in range(3):
        assert storage.append("a", big)
        assert other.append("a", [line(1)])
    assert numbers(storage, "a") == [0] + ([*range(1, 40), 1]) * 3


def test_many_rows_are_read_as_they_were_written(storage, monkeypatch):
    storage.create("a", line(0))
    storage.append("a", [line(i) for i in range(1, 3005)])
    for start in (0, 1, 999, 1000, 2001, 3004, 3005):
        assert numbers(storage, "a", start) == list(range(start, 3005))


def test_signs_of_life(url, storage):
    storage.create("a", line(0))
    assert storage.beats("a") == {}
    for _ in range(3):
        storage.beat("a", "one")
    Postgres(url).beat("a", "two")
    assert storage.beats("a") == {"one": 3, "two": 1}
    storage.unbeat("a", "one")
    assert storage.beats("a") == {"two": 1}
    storage.beat("nothing", "one")
    assert storage.beats("nothing") == {}


# others


def tell(url, name, count, who, gate=None):
    storage = Postgres(url)
    storage.names()
    if gate is not None:
        gate.wait(30)
    for i in range(count):
        assert storage.append(name, [{"by": who, "i": i}])


def win(url, name, wanted, who):
    """Win `wanted` numbers of the log, whatever the others do."""
    storage, won = Postgres(url) if isinstance(url, str) else url, 0
    while won < wanted:
        length = len(storage.read(name))
        won += storage.append(name, [{"n": length, "by": who}], after=length)


def create(url, name, who, gate):
    storage = Postgres(url)
    gate.wait(30)
    os._exit(0 if storage.create(name, {"by": who}) else 3)


def test_of_processes_that_create_a_name_one_wins_and_of_those_that_compare_too(url):
    gate = SPAWN.Barrier(3)
    makers = [SPAWN.Process(target=create, args=(url, "a", who, gate)) for who in range(3)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert sorted(maker.exitcode for maker in makers) == [0, 3, 3]
    storage = Postgres(url)
    assert storage.read("a")[0] == {"by": [maker.exitcode for maker in makers].index(0)}
    workers = [SPAWN.Process(target=win, args=(url, "a", 15, who)) for who in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    records = list(storage.read("a"))[1:]
    assert [worker.exitcode for worker in workers] == [0] * 3
    assert [record["n"] for record in records] == list(range(1, 46))
    assert sorted(record["by"] for record in records) == sorted(list(range(3)) * 15)


@contextmanager
def tellers(url, name, count):
    """Threads that append one record after another, each by a handle of its own; then what each had acknowledged."""
    done, acknowledged, failed = threading.Event(), [[] for _ in range(count)], []

    def work(who):
        storage = Postgres(url)
        try:
            while not done.is_set():
                assert storage.append(name, [{"by": who, "i": len(acknowledged[who])}])
                acknowledged[who].append(len(acknowledged[who]))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield acknowledged
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not failed, failed


def until(condition, seconds=15):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "this took too long"
        time.sleep(0.005)


def everything_is_there_once(storage, name, acknowledged):
    """What each was told is written, in the order it was written, and nothing more."""
    records = list(storage.read(name))[1:]
    for who, mine in enumerate(acknowledged):
        assert [record["i"] for record in records if record["by"] == who] == mine


def test_who_lost_three_races_gets_in(url, storage):
    storage.create("a", line(0))
    with tellers(url, "a", 4) as acknowledged:
        until(lambda: all(acknowledged))
        lost, known = 0, len(storage.read("a"))
        while lost < 3:
            time.sleep(0.005)
            new = len(storage.read("a", known))
            time.sleep(0.005)
            lost += not storage.append("a", [line(-1)], after=known + new)
            known += new
        with storage.hold("a"):
            known += len(storage.read("a", known))
            assert storage.append("a", [{"by": "me"}], after=known)
            assert storage.append("a", [{"by": "me"}, {"by": "me"}])
            assert len(storage.read("a", known)) == 3
            before = [len(mine) for mine in acknowledged]
            assert storage.append("a", [{"by": "me"}])
        until(lambda: all(len(mine) > was + 1 for mine, was in zip(acknowledged, before, strict=True)))
    assert storage.read("a")[known : known + 4] == [{"by": "me"}] * 4
    everything_is_there_once(storage, "a", acknowledged)


def test_hold_lets_nobody_else_in_but_readers(url, storage):
    storage.create("a", line(0))
    storage.create("b", line(0))
    other = Postgres(url)
    tries = [
        lambda: storage.append("a", [line(2)]),  # another thread by the same handle
        lambda: other.append("a", [line(2)]),
        lambda: other.append("a", [line(9)], after=1),
        lambda: other.create("new", line(0)),
        lambda: other.delete("b"),
    ]
    threads = [threading.Thread(target=one) for one in tries]
    with storage.hold("a"), storage.hold("a"), storage.hold("new"), storage.hold("b"):
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        assert all(thread.is_alive() for thread in threads)
        assert numbers(other, "a") == [0]
        assert other.names() == ["a", "b"]
        assert storage.append("a", [line(1)], after=1)
        assert storage.create("new", line(5))
        assert storage.append("new", [line(6)])
        assert storage.delete("b")
        assert storage.create("b", line(7))
        assert storage.append("b", [line(8)])
        assert numbers(other, "b") == [7, 8]
    for thread in threads:
        thread.join()
    assert numbers(storage, "a") == [0, 1, 2, 2]
    assert numbers(storage, "new") == [5, 6]
    assert "b" not in storage.names()


def test_what_fails_inside_hold_ends_it(url, storage):
    storage.create("a", line(0))
    with pytest.raises(ZeroDivisionError), storage.hold("a"):
        raise ZeroDivisionError
    assert Postgres(url, timeout=1).append("a", [line(1)])


def test_who_waits_says_for_whom_and_gives_up(url, storage, monkeypatch, caplog):
    monkeypatch.setattr(connection, "QUIET", 0.4)
    storage.create("a", line(0))
    patient, hasty = Postgres(url), Postgres(url.replace("timeout=20", "timeout=1"))
    me = f"process {os.getpid()} on {socket.gethostname()}"
    with storage.hold("a"):
        began = time.monotonic()
        with caplog.at_level(logging.WARNING, "bestarm"), pytest.raises(StorageError, match="waited 1 s") as error:
            hasty.append("a", [line(1)])
        assert 0.9 < time.monotonic() - began < 3
        assert me in str(error.value)
        assert caplog.text.count("waiting for") == 1
        assert me in caplog.text
        caplog.clear()
        waiting = threading.Thread(target=patient.append, args=("a", [line(1)]))
        waiting.start()
        until(lambda: "waiting for" in caplog.text)
    waiting.join()
    assert numbers(storage, "a") == [0, 1]
    with connection_to(url) as db, patient._server.connected() as mine:
        usual = mine.scalar(connection.sql.text("SHOW lock_timeout"))
        assert usual == "100ms"
        db.execute("BEGIN; LOCK bestarm_log")
        with pytest.raises(StorageError, match=r"waited 1 s for another program \(server process \d+\)"):
            hasty.read("a")


def test_a_holder_whose_connection_is_lost_notices_what_others_wrote(server, url, storage):
    storage.create("a", line(0))
    with storage.hold("a"):
        for pid in server.backends():
            os.kill(pid, signal.SIGTERM)
        assert storage.append("a", [line(1)])
    with storage.hold("a"):
        for pid in server.backends():
            os.kill(pid, signal.SIGTERM)
        Postgres(url).append("a", [line(2)])
        assert not storage.append("a", [line(3)], after=2)
        with pytest.raises(StorageError, match="was lost, and others wrote"):
            storage.append("a", [line(3)])
        assert numbers(storage, "a") == [0, 1, 2]
        assert storage.append("a", [line(3)])
    assert storage.append("a", [line(4)])
    assert numbers(storage, "a") == [0, 1, 2, 3, 4]


def forked(work):
    """Do some work in a child, which is a copy of us, and end it."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_handle_survives_a_fork(storage):
    storage.create("a", {})
    children = [forked(lambda who=who: win(storage, "a", 5, who)) for who in range(2)]
    win(storage, "a", 5, 2)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert [record["n"] for record in storage.read("a")[1:]] == list(range(1, 16))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_does_not_hold_what_its_parent_does(url, storage):
    storage.create("a", line(0))
    holding = storage.hold("a")

    def leave_and_append():
        holding.__exit__(None, None, None)
        gc.collect()
        storage.append("a", [line(2)])

    holding.__enter__()
    child = forked(leave_and_append)
    until(lambda: change(url, "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").rowcount)
    assert storage.append("a", [line(1)])
    assert numbers(storage, "a") == [0, 1]
    holding.__exit__(None, None, None)
    assert os.waitpid(child, 0)[1] == 0
    assert numbers(storage, "a") == [0, 1, 2]


# servers and connections that fail


@pytest.mark.parametrize("how", ["kill -9", "immediate", "fast"])
def test_what_was_acknowledged_is_there_once_whatever_the_server_does(server, url, storage, how):
    storage.create("a", line(0))
    with tellers(url, "a", 4) as acknowledged:
        for _ in range(2):
            before = [len(mine) + 5 for mine in acknowledged]
            until(lambda before=before: all(len(mine) > was for mine, was in zip(acknowledged, before, strict=True)))
            if how == "kill -9":  # the server ends all others and starts anew
                for pid in server.backends()[:2]:
                    with suppress(ProcessLookupError):  # ended with the first
                        os.kill(pid, signal.SIGKILL)
            else:
                server.stop(how)
                server.start()
        before = [len(mine) for mine in acknowledged]
        until(lambda: all(len(mine) > was for mine, was in zip(acknowledged, before, strict=True)))
    everything_is_there_once(storage, "a", acknowledged)


def test_a_handle_that_slept_through_a_restart(server, url, storage):
    storage.create("a", line(0))
    for how in ("immediate", "fast"):
        server.stop(how)
        server.start()
        assert storage.append("a", [line(1)])
    server.stop("fast")
    server.start()
    assert numbers(storage, "a") == [0, 1, 1]


class Wire:
    """What stands between us and the server, and cuts the connection when the words to watch for pass."""

    def __init__(self, server, folder):
        self.behind, self.folder, self.cuts = f"{server.folder}/.s.PGSQL.5432", folder, []
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(f"{folder}/.s.PGSQL.5432")
        self.listening.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.listening.accept()[0]
            except OSError:  # closed
                return
            threading.Thread(target=self.connect, args=(near,), daemon=True).start()

    def connect(self, near):
        with near, socket.socket(socket.AF_UNIX) as far:
            far.connect(self.behind)
            cut = None
            while True:
                ready, _, _ = select.select([near, far], [], [])
                for source, target in ((near, far), (far, near)):
                    if source in ready:
                        data = source.recv(1 << 20)
                        if source is near and self.cuts and self.cuts[0][0] in data:
                            cut = self.cuts.pop(0)[1]
                        if not data or cut == "question" or (cut == "answer" and source is far):
                            return
                        target.sendall(data)


@pytest.fixture
def wire(server):
    folder = Path(tempfile.mkdtemp(prefix="bestarm-", dir="/tmp"))
    wire = Wire(server, folder)
    yield wire
    wire.listening.shutdown(socket.SHUT_RDWR)
    wire.listening.close()
    shutil.rmtree(folder)


@pytest.mark.parametrize("lost", ["question", "answer"])
def test_an_append_whose_answer_is_lost_is_looked_for_and_not_written_twice(server, database, wire, lost):
    storage = Postgres(server.url(database, host=wire.folder, timeout=20))
    storage.names()

    def with_a_cut(words, work, times=1):
        wire.cuts += [(words, lost)] * times
        assert work()
        assert not wire.cuts

    for name in ("a", "b"):
        with_a_cut(b"made AS", lambda name=name: storage.create(name, line(0)))
    with_a_cut(b"longer AS", lambda: storage.append("a", [line(1), line(2)]))
    with_a_cut(b"longer AS", lambda: storage.append("a", [line(3)], after=3), times=2 if lost == "question" else 1)
    with storage.hold("a"):
        with_a_cut(b"longer AS", lambda: storage.append("a", [line(4)]))
    wire.cuts.append((b"pg_advisory_xact_lock", lost))
    with storage.hold("a"):
        assert not wire.cuts
        assert storage.append("a", [])
    with_a_cut(b"DELETE FROM", lambda: storage.delete("b"))
    assert numbers(Postgres(server.url(database)), "a") == [0, 1, 2, 3, 4]
    assert storage.names() == ["a"]


def test_a_lost_answer_is_no_excuse_for_a_lost_race(server, database, wire):
    """Somebody else wrote at that place, by another record: that is not ours."""
    storage, other = Postgres(server.url(database, host=wire.folder, timeout=20)), Postgres(server.url(database))
    storage.create("a", line(0))
    other.append("a", [line(1)])
    wire.cuts.append((b"longer AS", "answer"))
    assert not storage.append("a", [line(2)], after=1)
    assert not wire.cuts
    assert not storage.append("a", [line(2)], after=0)
    assert numbers(other, "a") == [0, 1]


# damage


def test_a_changed_byte_is_named_and_only_its_study_refused(url, storage):
    for name in ("a", "b"):
        storage.create(name, line(0))
        storage.append(name, [{"kind": "tell", "value": 0.5, "i": i} for i in range(1, 4)])
    of_a = "WHERE study = (SELECT id FROM bestarm_studies WHERE name = 'a')"
    for number in range(4):
        text = change(url, f"SELECT record FROM bestarm_log {of_a} AND number = {number}").fetchone()[0]
        for at in (0, len(text) // 2, len(text) - 2, len(text) - 1):
            for letter in {"7", "\n", "é"} - {text[at]}:
                spoiled = text[:at] + letter + text[at + 1 :]
                change(url, f"UPDATE bestarm_log SET record = %s {of_a} AND number = {number}", spoiled)
                with pytest.raises(StorageError, match=rf"study 'a': record {number} is damaged: its CRC"):
                    storage.read("a")
                kept = [found for found in storage.salvage("a") if not isinstance(found[1], str)]
                assert [at for at, _ in kept] == [at for at in range(4) if at != number]
                assert len(storage.read("b")) == 4
        change(url, f"UPDATE bestarm_log SET record = %s {of_a} AND number = {number}", text)
        assert len(storage.read("a")) == 4
    assert storage.names() == ["a", "b"]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM bestarm_log WHERE number = 1", "record 1 is damaged: it is missing"),
        ("DELETE FROM bestarm_log WHERE number = 3", "record 3 is damaged: it is missing"),
        ("DELETE FROM bestarm_log", "record 0 is damaged: it is missing"),
        ("UPDATE bestarm_log SET number = number + 1 WHERE number = 3", "record 3 is damaged: it is missing"),
        ("UPDATE bestarm_log SET crc = NULL WHERE number = 2", "record 2 is damaged: it has no CRC"),
        ("UPDATE bestarm_log SET crc = -crc WHERE number = 2", "record 2 is damaged: its CRC does not fit"),
        ("UPDATE bestarm_studies SET length = 3", "other records than its length"),
        ("UPDATE bestarm_studies SET name = 'b'; UPDATE bestarm_studies SET name = 'a'", None),
        ("UPDATE bestarm_log SET record = record || 'x', crc = NULL", "record 0 is not JSON"),
    ],
)
def test_rows_that_are_missing_or_moved_are_named(url, storage, statement, message):
    storage.create("a", line(0))
    storage.append("a", [line(1), line(2), line(3)])
    change(url, statement)
    if message is None:
        assert len(storage.read("a")) == 4
        return
    with pytest.raises(StorageError, match=message):
        list(storage.read("a"))
    assert storage.names() == ["a"]


def test_a_study_under_another_name_is_refused(url, storage):
    storage.create("a", line(0))
    change(url, "UPDATE bestarm_studies SET name = 'b'")
    with pytest.raises(StorageError, match="record 0 is damaged: its CRC does not fit"):
        storage.read("b")


# databases of version 1, and what a user may not do

VERSION_1 = """
CREATE TABLE bestarm_studies (id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, name TEXT NOT NULL UNIQUE,
                              length BIGINT NOT NULL);
CREATE TABLE bestarm_log (study BIGINT, number BIGINT, record TEXT NOT NULL, PRIMARY KEY (study, number));
INSERT INTO bestarm_studies (name, length) VALUES ('old', 2);
INSERT INTO bestarm_log VALUES (1, 0, '{"i": 0}'), (1, 1, '{"i": 1}');
GRANT SELECT ON bestarm_studies, bestarm_log TO reader
"""


def test_version_1_is_read_and_gets_its_columns(server, database, url):
    change(url, VERSION_1)
    reader = Postgres(server.url(database, user="reader"))
    assert numbers(reader, "old") == [0, 1]
    assert reader.salvage("old") == [(0, {"i": 0}), (1, {"i": 1})]
    assert reader.beats("old") == {}
    assert "version 1" in reader.notes()[0]
    with pytest.raises(StorageError, match="no column crc"):
        reader.append("old", [line(2)])
    storage = Postgres(url)
    assert numbers(storage, "old") == [0, 1]
    assert storage.notes() == []
    assert storage.append("old", [line(2)])
    assert storage.append("old", [line(3)], after=3)
    assert numbers(storage, "old") == [0, 1, 2, 3]
    assert numbers(storage, "old", 2) == [2, 3]
    change(url, "UPDATE bestarm_log SET crc = NULL WHERE number = 3")
    for start in (0, 2, 3):
        with pytest.raises(StorageError, match="record 3 is damaged: it has no CRC"):
            storage.read("old", start)


def test_who_may_only_read_reads_and_is_told_so(server, database, url, storage):
    storage.create("a", line(0))
    change(url, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    reader = Postgres(server.url(database, user="reader"))
    assert numbers(reader, "a") == [0]
    with pytest.raises(StorageError, match="permission denied"):
        reader.append("a", [line(1)])
    change(url, f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    replica = Postgres(url)
    assert numbers(replica, "a") == [0]
    with pytest.raises(StorageError, match="read-only"):
        replica.append("a", [line(1)])


# what is wrong with a place is said, and its password is not


def test_passwords_are_in_no_message(server, database):
    sesame = "open%20sesame"
    right = f"postgresql+psycopg://keyed:{sesame}@/{database}?host={server.folder}"
    wrong = {
        right.replace(sesame, "close%20sesame"): "authentication failed",
        right.replace(database, "nowhere"): "does not exist",
        right + "&sslmode=" + sesame: "sslmode",
        right.replace("keyed", "nobody%20else").replace(str(server.folder), "/nowhere"): "No such file",
        f"postgresql+psycopg://keyed:{sesame}@127.0.0.1:1/none?timeout=0.3": "refused",
        f"postgresql+psycopg://keyed:{sesame}@/none?host=127.0.0.1&port=1&timeout=0.3&password={sesame}": "refused",
    }
    for url, message in wrong.items():
        began = time.monotonic()
        with pytest.raises(StorageError, match=message) as error:
            Postgres(url).names()
        assert "sesame" not in str(error.value) + Postgres(url).place
        assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql+psycopg://me:secret@host:port/none", "number for the port"),
        ("postgresql+psycopg://me:sec@ret@host/none", "%40"),
        ("postgresql+psycopg://me@host:-1/none", "from 1 to 65535; given -1"),
        ("postgresql+psycopg://me@host:0/none", "from 1 to 65535; given 0"),
        ("postgresql+psycopg://host/none?timeout=soon", "timeout"),
        ("postgresql+psycopg://host/none?timeout=-1", "timeout"),
    ],
)
def test_urls_that_name_no_database(url, message):
    with pytest.raises((StorageError, InputError), match=message) as error:
        Postgres(url)
    assert "sec" not in str(error.value).replace("seconds", "")


def test_a_timeout_is_taken_from_the_url():
    assert Postgres("postgresql://me@host/none?timeout=7").timeout == 7
    assert Postgres("postgresql://me@host/none", 9).timeout == 9
    assert pickle.loads(pickle.dumps(Postgres("postgresql://me@host/none", 9))).timeout == 9


def test_locks_are_named_after_studies():
    assert postgres._key("a") != postgres._key("b")
    assert -(2**63) <= postgres._key("a") < 2**63
