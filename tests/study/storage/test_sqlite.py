"""SQLite files: one file once all have closed it, what a death leaves, and media without writing."""

import gc
import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from bestarm.cli import main
from bestarm.errors import StorageError
from bestarm.study.storage import SQLite, database

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["bestarm.study", "tests.study.storage.test_sqlite"])
FACTOR = float(os.environ.get("BESTARM_TORTURE", "1"))


def line(i):
    return {"kind": "tell", "i": i}


def numbers(storage, name="a", start=0):
    return [record["i"] for record in storage.read(name, start)]


def alone(path, folder):
    """Copy a database's file, and nothing of what is beside it."""
    folder.mkdir(exist_ok=True)
    return SQLite(shutil.copy(path, folder / path.name))


# one file


def test_when_all_have_closed_it_the_file_alone_holds_everything(tmp_path):
    path = tmp_path / "log.db"
    storage, reader = SQLite(path), SQLite(path)
    storage.create("a", line(0))
    for i in range(1, 30):
        storage.append("a", [line(i)])
        reader.read("a")
    del storage
    gc.collect()
    assert numbers(alone(path, tmp_path / "while one reads")) == list(range(30))
    del reader
    gc.collect()
    assert [one.name for one in tmp_path.glob("log.db*")] == ["log.db"]
    assert numbers(alone(path, tmp_path / "after")) == list(range(30))


def write_some(path, who, wait):
    storage = SQLite(path)
    wait.wait(60)
    for i in range(15):
        assert storage.append("a", [{"by": who, "i": i}])


def test_when_processes_have_ended_the_file_alone_holds_everything(tmp_path):
    path, together = tmp_path / "log.db", PROCESSES.Barrier(3)
    SQLite(path).create("a", line(0))
    writers = [PROCESSES.Process(target=write_some, args=(path, who, together)) for who in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    copied = alone(path, tmp_path / "copy").read("a")
    assert Counter(record.get("by") for record in copied) == {None: 1, 0: 15, 1: 15, 2: 15}


def test_who_reads_for_long_is_in_nobody_s_way(tmp_path):
    """Records wait in the -wal file while somebody reads an older state; the next write after that moves them."""
    path = tmp_path / "log.db"
    storage = SQLite(path)
    storage.create("a", line(0))
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM log").fetchone() == (1,)
    for i in range(1, 6):
        storage.append("a", [line(i)])
    assert Path(f"{path}-wal").stat().st_size > 0
    assert reader.execute("SELECT count(*) FROM log").fetchone() == (1,)
    reader.close()
    storage.append("a", [line(6)])
    assert numbers(alone(path, tmp_path / "copy")) == list(range(7))


# what a death leaves


def die(path):
    """Write without moving the records into the database itself, and die."""
    database._checkpoint = lambda db: None
    storage = SQLite(path)
    if "a" not in storage.names():
        storage.create("a", line(0))
    for i in range(1, 4):
        storage.append("a", [line(i)])
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def left(tmp_path):
    """A database whose only writer was killed: its last records are in its -wal file."""
    path = tmp_path / "log.db"
    SQLite(path).create("a", line(0))
    writer = PROCESSES.Process(target=die, args=(path,))
    writer.start()
    writer.join()
    assert writer.exitcode == -signal.SIGKILL
    assert Path(f"{path}-wal").stat().st_size > 0
    return path


@pytest.mark.parametrize("reads", [True, False])
def test_the_next_to_open_it_says_that_the_wal_file_belongs_to_it(reads, left, tmp_path, caplog):
    assert numbers(alone(left, tmp_path / "copy")) == [0]
    storage = SQLite(left)
    if reads:
        assert numbers(storage) == [0, 1, 2, 3]
    else:
        assert storage.append("a", [line(4)], after=4)
    assert f"{left}-wal belongs to it" in caplog.text
    assert f"{left}-wal belongs to it" in storage.notes()[0]
    caplog.clear()
    assert numbers(SQLite(left), start=1)[:3] == [1, 2, 3]
    assert SQLite(left).notes() == []
    assert not caplog.text
    assert numbers(alone(left, tmp_path / "copy"))[:4] == [0, 1, 2, 3]


def test_doctor_says_that_the_wal_file_belongs_to_it(left):
    shown = CliRunner().invoke(main, ["doctor", "--storage", str(left)])
    assert f"{left}-wal belongs to it" in shown.output
    assert "move or copy both or neither" in shown.output


def test_of_one_that_others_use_nothing_is_said(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(database, "_checkpoint", lambda db: None)
    storage = SQLite(tmp_path / "log.db")
    storage.create("a", line(0))
    assert numbers(SQLite(tmp_path / "log.db")) == [0]
    assert storage.notes() == SQLite(tmp_path / "log.db").notes() == []
    assert not caplog.text


# where nothing can be written

READER = """
import os, sys
from bestarm.errors import BestArmError, StorageError
from bestarm.study.storage import SQLite
if os.geteuid() == 0:
    os.setuid(65534)
for folder, expected in (("clean", 3), ("empty wal", 3), ("left", None)):
    storage = SQLite(os.path.join(sys.argv[1], folder, "log.db"))
    if expected is None:
        for use in (storage.names, lambda: storage.read("a")):
            try:
                use()
            except StorageError as error:
                assert "log.db-wal belongs to it" in str(error), error
            else:
                raise AssertionError(folder)
        continue
    assert storage.names() == ["a"]
    assert len(storage.read("a")) == expected
    assert len(storage.read("a", 2)) == 1
    assert not storage.notes(), storage.notes()
    for use in (lambda: storage.append("a", [{}]), lambda: storage.create("b", {}), lambda: storage.delete("a")):
        try:
            use()
        except StorageError as error:
            assert "readonly" in str(error) or "unable to open" in str(error), error
        else:
            raise AssertionError(folder)
"""


def test_one_that_was_closed_is_read_where_nothing_can_be_written(tmp_path, left):
    for name in ("clean", "empty wal"):
        storage = SQLite(tmp_path / name / "log.db")
        storage.create("a", line(0))
        storage.append("a", [line(1), line(2)])
    del storage
    gc.collect()
    (tmp_path / "empty wal" / "log.db-wal").touch()
    (tmp_path / "left").mkdir()
    for path in tmp_path.glob("log.db*"):
        shutil.copy(path, tmp_path / "left")
    (tmp_path / "left" / "log.db-shm").unlink(missing_ok=True)
    for folder in tmp_path.parents:
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o711)
    shut = [path for name in ("clean", "empty wal", "left") for path in (tmp_path / name, *(tmp_path / name).iterdir())]
    for path in shut:
        path.chmod(0o555 if path.is_dir() else 0o444)
    tmp_path.chmod(0o755)
    try:
        subprocess.run([sys.executable, "-c", READER, tmp_path], check=True, timeout=120)
    finally:
        for path in shut:
            path.chmod(0o755)


# other names


def test_by_a_link_it_is_the_same_database(tmp_path):
    path = tmp_path / "log.db"
    SQLite(path).create("a", line(0))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(path)
    link, storage = SQLite(tmp_path / "folder" / "link"), SQLite(path)
    for i in range(1, 20):
        (link, storage)[i % 2].append("a", [line(i)], after=i)
    assert numbers(link) == numbers(storage) == list(range(20))
    assert [one.name for one in (tmp_path / "folder").iterdir()] == ["link"]


def test_by_a_hard_link_nothing_is_written(tmp_path):
    path = tmp_path / "log.db"
    storage = SQLite(path)
    storage.create("a", line(0))
    os.link(path, tmp_path / "hard")
    for one in (storage, SQLite(tmp_path / "hard")):
        with pytest.raises(StorageError, match="hard link"):
            one.append("a", [line(1)])
        assert "hard link" in one.notes()[-1]
    (tmp_path / "hard").unlink()
    assert storage.append("a", [line(1)], after=1)


WATCHED = """
import os, sys
opened = []
def watch(event, given):
    if event == "open" and isinstance(given[0], (str, bytes, os.PathLike)):
        opened.append(os.path.basename(os.fsdecode(given[0])))
    if event in ("fcntl.flock", "fcntl.lockf", "fcntl.fcntl"):
        fd = given[0] if isinstance(given[0], int) else given[0].fileno()
        opened.append(event + " " + os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
from click.testing import CliRunner
from bestarm.cli import main
from bestarm.study import create_study, load_study, open_storage
sys.addaudithook(watch)
place = sys.argv[1]
study = create_study([[1.0, 0.0], [0.0, 1.0]], 12, storage=place, study_name="s", seed=1)
study.tell(study.ask(2), [1.0, 2.0])
storage = open_storage(place)
with storage.hold("s"):
    load_study("s", storage).ask(1)
storage.beat("s", "r"), storage.beats("s"), storage.salvage("s"), storage.notes()
for command in (["doctor"], ["studies"], ["best"], ["copy-study", "s", "--to", place + ".other"], ["trials"],
                ["doctor", "--salvage", place + ".whole"]):
    done = CliRunner().invoke(main, [*command, "--storage", place])
    assert done.exit_code == 0, (command, done.output)
storage.delete("s")
beside = {name for name in opened if "log.db" in name and not name.endswith("log.db-wal") and ".db." not in name}
assert not beside, beside
assert "log.db-wal" in opened
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux says what an open file is called")
def test_nobody_opens_the_database_beside_sqlite(tmp_path):
    """Whoever closes a file takes away all the locks that his process has on it."""
    subprocess.run([sys.executable, "-c", WATCHED, tmp_path / "log.db"], check=True, timeout=120)
