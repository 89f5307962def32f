"""The laws of marks and of waiting, for all storages alike."""

import math
import os
import shutil
import threading
import time
import uuid
from pathlib import Path

import pytest

from bestarm.study import create_study, load_study, open_storage
from bestarm.study.storage import watch
from tests.study.storage.test_storage import PLACES, PROCESSES, another, in_thread, line, name, storage, url_for

__all__ = ["name", "storage"]

CHANGES = {
    "create": lambda storage, name: storage.create(name, line(0)),
    "append": lambda storage, name: storage.append(name, [line(1)]),
    "append more": lambda storage, name: storage.append(name, [line(2), line(3)]),
    "delete": lambda storage, name: storage.delete(name),
    "create again": lambda storage, name: storage.create(name, line(0)),
}
NO_CHANGES = {
    "create what is there": lambda storage, name: not storage.create(name, line(9)),
    "append too late": lambda storage, name: not storage.append(name, [line(9)], after=0),
    "append nothing": lambda storage, name: storage.append(name, []),
    "delete what is not there": lambda storage, name: not storage.delete(f"{name} never"),
    "beat": lambda storage, name: storage.beat(name, "r") is None,
    "unbeat": lambda storage, name: storage.unbeat(name, "r") is None,
    "read": lambda storage, name: list(storage.read(name)) + storage.names(),
    "salvage": lambda storage, name: storage.salvage(name),
}


@pytest.fixture(scope="module")
def server():
    """A schema of a PostgreSQL server in which nobody else writes."""
    server = url_for("postgresql", None)
    psycopg = pytest.importorskip("psycopg")
    schema = f"watch_{uuid.uuid4().hex}"
    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as db:
        db.execute(f"CREATE SCHEMA {schema}")
        yield f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3D{schema}"
        db.execute(f"DROP SCHEMA {schema} CASCADE")


def place_of(request, tmp_path):
    return request.getfixturevalue("server") if request.param == "postgresql" else url_for(request.param, tmp_path)


place = pytest.fixture(params=PLACES)(place_of)
shared = pytest.fixture(params=PLACES[1:])(place_of)


def marks(storage, name):
    return storage.mark(name), storage.mark()


def test_every_change_gives_another_mark(storage, name):
    """Only of a study that is not there, before and after it was, the mark may be the same."""
    seen = []
    for change in CHANGES.values():
        before = marks(storage, name)
        assert change(storage, name)
        seen.append(marks(storage, name))
        assert not set(before) & set(seen[-1])
    assert len(set(seen)) == len(CHANGES)
    assert len({mark for mark, _ in seen}) == len({mark for _, mark in seen}) == len(CHANGES)


def test_without_a_change_there_is_no_new_mark(storage, name):
    storage.create(name, line(0))
    mark = marks(storage, name)
    for work in NO_CHANGES.values():
        assert work(storage, name)
        assert marks(storage, name) == mark
    with storage.hold(name):
        assert marks(storage, name) == mark
    assert marks(storage, name) == mark


def test_a_mark_is_a_short_text_that_means_the_same_to_every_handle(place, storage, name):
    storage.create(name, line(0))
    storage.append(name, [line(i) for i in range(1, 100)])
    assert marks(another(place, storage, 5.0), name) == marks(storage, name)
    assert all(isinstance(mark, str) and 0 < len(mark) < 80 and mark.isascii() for mark in marks(storage, name))


def test_another_study_s_change_is_one_of_the_storage(storage, name):
    storage.create(name, line(0))
    mark = storage.mark()
    storage.create(f"{name} 2", line(0))
    assert storage.wait(mark, 60.0) == storage.mark() != mark


def test_asking_waits_for_nobody(place, storage, name):
    storage.create(name, line(0))
    other = another(place, storage, 0.05)
    with storage.hold(name):
        storage.append(name, [line(1)])
        thread, found = in_thread(lambda: marks(other, name))
        thread.join()
        assert found == [marks(storage, name)]


# waiting


def test_waiting_ends_at_once_if_the_mark_is_old(storage, name, monkeypatch):
    monkeypatch.setattr(watch.time, "sleep", lambda _: pytest.fail("it waited"))
    old = marks(storage, name)
    storage.create(name, line(0))
    assert storage.wait(old[0], math.inf, name) == storage.mark(name)
    assert storage.wait(old[1], math.inf) == storage.mark()
    assert storage.wait("of another storage", math.inf, name) == storage.mark(name)


@pytest.mark.parametrize("timeout", [-1.0, 0.0, 0.15])
def test_waiting_ends_at_the_timeout_with_the_mark_given(storage, name, timeout):
    storage.create(name, line(0))
    mark = storage.mark(name)
    began = time.monotonic()
    assert storage.wait(mark, timeout, name) == mark
    assert time.monotonic() - began >= timeout


def test_looks_follow_each_other_within_a_second(shared, name, monkeypatch):
    storage, pauses = open_storage(shared), []
    storage.create(name, line(0))
    mark = storage.mark(name)

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 5:
            storage.append(name, [line(1)])

    monkeypatch.setattr(watch.time, "sleep", sleep)
    assert storage.wait(mark, 60.0, name) == storage.mark(name) != mark
    assert len(pauses) == 5
    assert 0 < max(pauses) < 0.5


def tell(url, name, mark):
    """In another process: tell as soon as the study is asked for and the mark is another, by the mark's own wait."""
    storage = open_storage(url)
    assert storage.wait(mark, 60.0, name) != mark
    study = load_study(name, storage)
    study.tell(next(iter(study.pending())), 1.0)


def test_a_tell_in_another_process_is_noticed(shared, name):
    study = create_study([[1.0], [2.0]], 4, storage=shared, study_name=name, seed=0)
    worker = PROCESSES.Process(target=tell, args=(shared, name, study.storage.mark(name)))
    worker.start()
    study.ask()
    mark = study.storage.mark(name)
    all_of_them = study.storage.mark()
    new = study.storage.wait(mark, 60.0, name)
    assert new != mark
    assert study.storage.wait(all_of_them, 60.0) != all_of_them
    assert study.sync().total == 1
    worker.join()
    assert worker.exitcode == 0
    assert study.storage.mark(name) == new


def test_all_who_wait_are_woken(place, storage, name):
    storage.create(name, line(0))
    mark = storage.mark(name)
    waiting = [in_thread(lambda: storage.wait(mark, 60.0, name)) for _ in range(5)]
    another(place, storage, 5.0).append(name, [line(1)])
    for thread, _ in waiting:
        thread.join()
    assert [found for _, found in waiting] == [[storage.mark(name)]] * 5


def test_nothing_told_while_one_looks_and_waits_is_missed(storage, name):
    storage.create(name, line(0))

    def write():
        for i in range(1, 31):
            storage.append(name, [line(i)])

    thread = threading.Thread(target=write)
    thread.start()
    seen = 0
    while seen < 31:
        mark = storage.mark(name)
        found = len(storage.read(name))
        if found == seen:
            assert storage.wait(mark, 60.0, name) != mark
        seen = found
    thread.join()


# files that are replaced


@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_a_file_that_is_not_there_has_a_mark_and_is_not_made(kind, tmp_path):
    storage = open_storage(url_for(kind, tmp_path))
    assert marks(storage, "a") == ("", "")
    assert storage.wait("", 0.0) == ""
    assert not list(tmp_path.iterdir())
    storage.create("a", line(0))
    assert "" not in marks(storage, "a")


@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_a_file_put_in_the_other_s_place_has_another_mark(kind, tmp_path):
    storage = open_storage(url_for(kind, tmp_path))
    (tmp_path / "new").mkdir()
    new = open_storage(url_for(kind, tmp_path / "new"))
    for where, value in ((storage, 1), (new, 2)):
        where.create("a", line(0))
        where.append("a", [line(value)])
    mark = marks(storage, "a")
    os.replace(new.path, storage.path)
    assert storage.read("a")[1] == line(2)
    assert not set(mark) & set(marks(storage, "a"))


def test_a_journal_cut_or_salvaged_in_place_has_another_mark(tmp_path):
    path = tmp_path / "log.jsonl"
    study = create_study([[1.0], [2.0]], 4, storage=path, study_name="a", seed=0)
    for trial in study.ask(2):
        study.tell(trial, 1.0)
    storage, whole = study.storage, path.read_bytes()
    mark = storage.mark("a")
    path.write_bytes(whole[:-20])
    cut = storage.mark("a")
    assert cut != mark
    assert storage.wait(mark, 60.0, "a") == cut
    path.write_bytes(whole.replace(b'"value":1.0', b'"value":7.0', 1))
    from bestarm.study.salvage import salvage

    assert salvage("a", storage, tmp_path / "rescued.jsonl")
    damaged = storage.mark("a")
    shutil.move(tmp_path / "rescued.jsonl", path)
    assert storage.mark("a") not in (mark, cut, damaged)


# what asking costs

IO = Path("/proc/self/io")


def bytes_read(work):
    before = int(IO.read_text().split()[1])
    work()
    return int(IO.read_text().split()[1]) - before


@pytest.mark.skipif(not IO.exists(), reason="the system does not count the bytes that a process reads")
@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_asking_reads_no_log(kind, tmp_path, name):
    url = url_for(kind, tmp_path)
    storage = open_storage(url)
    storage.create(name, line(0))
    for _ in range(10):
        storage.append(name, [{"text": "x" * 1000}] * 1000)
    assert bytes_read(lambda: list(storage.read(name))) > 1e7
    mark = marks(storage, name)
    storage.append(name, [line(1)])
    for handle in (storage, open_storage(url)):
        assert bytes_read(lambda handle=handle: marks(handle, name)) < 250_000
    assert not set(mark) & set(marks(storage, name))


def test_a_server_looks_at_no_log(server, name):
    sql = pytest.importorskip("sqlalchemy")
    from bestarm.study.storage.postgres import MARK

    storage = open_storage(server)
    storage.create(name, line(0))
    for _ in range(5):
        storage.append(name, [line(1)] * 1000)
    looked = sql.text("SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'bestarm_log'")
    with storage._server.connected() as db:
        studies = db.scalar(sql.text("SELECT count(*) FROM bestarm_studies"))
        for query, most in ((f"{MARK} WHERE name = :name", 1), (MARK, studies)):
            db.execute(sql.text("BEGIN"))
            before = db.scalar(looked)
            assert db.execute(sql.text(query.format(crc="crc")), {"name": name}).one()[2] >= 5001
            assert db.scalar(looked) - before <= most
            db.execute(sql.text("COMMIT"))
