"""The journal: one lock for one file, whatever its names, and those who wait for it."""

import contextlib
import fcntl
import logging
import multiprocessing
import os
import pickle
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from bestarm.errors import StorageError
from bestarm.study import create_study, load_study
from bestarm.study.storage import Journal, lock
from tests.study.checker import Notes, check, read_notes

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["bestarm.study", "tests.study.storage.test_journal_lock"])

FACTOR = float(os.environ.get("BESTARM_TORTURE", "1"))


def line(i):
    return {"kind": "tell", "i": i}


def numbers(journal, name="a", start=0):
    return [record["i"] for record in journal.read(name, start)]


@pytest.fixture
def journal(tmp_path):
    journal = Journal(tmp_path / "log.jsonl")
    journal.create("a", line(0))
    journal.append("a", [line(1)])
    return journal


def write_much(path, mine, count):
    journal = Journal(path)
    for i in range(count):
        assert journal.append("a", [{"by": mine, "i": i}])


def test_by_whatever_names_processes_write_nothing_is_lost(journal, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "soft").symlink_to(journal.path)
    (tmp_path / "soft").symlink_to("folder/soft")
    os.link(journal.path, tmp_path / "hard")
    (tmp_path / "other").symlink_to(tmp_path / "folder", target_is_directory=True)
    paths = [journal.path, tmp_path / "soft", tmp_path / "hard", tmp_path / "other" / ".." / "hard"]
    writers = [PROCESSES.Process(target=write_much, args=(path, n, 25)) for n, path in enumerate(paths)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        for name in ("log.jsonl.lock", "hard.lock"):  # as older versions had them
            with open(tmp_path / name, "a") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
            os.unlink(tmp_path / name)
        time.sleep(0.005)
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    records = list(journal.read("a"))[2:]
    assert len(records) == 100
    for n in range(4):
        assert [r["i"] for r in records if r["by"] == n] == list(range(25))


def handed(batch):
    return {"trials": [[trial.id, trial.arm] for trial in batch]}


def tell_for(path, name, who, seconds, notes):
    """Ask and tell for some seconds, and note what was acknowledged."""
    notes, study, until = Notes(notes, who), load_study(name, path), time.monotonic() + seconds
    while time.monotonic() < until:
        batch = notes.call("ask", {"n": 1}, lambda: study.ask(1, who), handed)
        values = [(trial.id, time.monotonic()) for trial in batch]
        tell = lambda told=dict(values): study.tell(told, source=who)  # noqa: E731
        assert notes.call("tell", {"values": values}, tell, lambda new: {"new": new}) == 1


@pytest.mark.torture
@pytest.mark.parametrize("other", ["symlink_to", "hardlink_to", "lock"])
def test_by_two_names_no_acknowledged_result_is_lost_in_seconds(other, tmp_path):
    path, second, seconds = tmp_path / "log.jsonl", tmp_path / "second", 6 * FACTOR
    create_study([[1.0, 0.0], [0.0, 1.0]], 100_000, "uniform", storage=path, study_name="s", seed=1)
    if other != "lock":
        getattr(second, other)(path)
    places = [path, path if other == "lock" else second]
    workers = [
        PROCESSES.Process(target=tell_for, args=(place, "s", f"worker {n}", seconds, tmp_path / f"{n}.notes"))
        for n, place in enumerate(places)
    ]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        with open(f"{path}.lock", "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
        os.unlink(f"{path}.lock")
        time.sleep(0.01)
    assert [worker.exitcode for worker in workers] == [0, 0]
    calls = [call for n in range(2) for call in read_notes(tmp_path / f"{n}.notes", f"worker {n}")]
    assert check(list(Journal(path).read("s")), calls) == []
    told = sum(call.verb == "tell" for call in calls)
    print(f"\na journal by two names ({other}), {seconds:g} s: {told} results acknowledged, 0 lost, 0 doubled")


def test_a_lock_file_of_an_older_version_is_in_nobody_s_way(journal):
    with open(f"{journal.path}.lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert Journal(journal.path, timeout=0.1).append("a", [line(2)])


def test_who_waits_for_a_file_that_is_replaced_writes_to_the_new_one(journal):
    other = Journal(journal.path)
    copy = journal.path.with_name("copy")
    with journal.hold("a"):
        waiter = threading.Thread(target=other.append, args=("a", [line(2)]))
        waiter.start()
        time.sleep(0.05)
        shutil.copy(journal.path, copy)
        os.replace(copy, journal.path)
        with pytest.raises(StorageError, match="another file was put in its place"):
            journal.append("a", [line(7)])
    waiter.join()
    assert numbers(Journal(journal.path)) == [0, 1, 2]


def hold_till_told(path, held, go):
    with Journal(path).hold("a"):
        held.set()
        go.poll(60)


@pytest.fixture
def holder(journal):
    """A process that holds the journal till it is told to let go."""
    held, (go, told) = PROCESSES.Event(), PROCESSES.Pipe()
    process = PROCESSES.Process(target=hold_till_told, args=(journal.path, held, told), daemon=True)
    process.start()
    told.close()
    assert held.wait(60)
    yield process, go
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGCONT)
    go.close()
    process.join()


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux says who holds a lock")
def test_who_waits_for_a_stopped_process_says_so_and_gives_up(journal, holder, monkeypatch, caplog):
    process, _ = holder
    os.kill(process.pid, signal.SIGSTOP)
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)
    monkeypatch.setattr(lock, "QUIET", 0.1)
    waiter = Journal(journal.path, timeout=0.4)
    whom = rf"process {process.pid} \(stopped\) on "
    with caplog.at_level(logging.WARNING, "bestarm"), pytest.raises(StorageError, match=rf"waited 0.4 s for {whom}"):
        waiter.append("a", [line(2)])
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    caplog.records[0].getMessage().index(f"waiting for process {process.pid} (stopped)")
    assert numbers(waiter) == [0, 1]


def test_what_was_given_up_is_not_written_later(journal, holder):
    _, go = holder
    waiter = Journal(journal.path, timeout=0.2)
    with pytest.raises(StorageError, match=r"waited 0\.2 s for"):
        waiter.append("a", [line(2)])
    go.send("let go")
    assert Journal(journal.path).append("a", [line(3)], after=2)
    assert waiter.append("a", [line(4)], after=3)
    assert numbers(waiter) == [0, 1, 3, 4]


def test_the_lock_of_a_killed_holder_is_free(journal, holder):
    process, _ = holder
    process.kill()
    assert Journal(journal.path).append("a", [line(2)], after=2)


def test_a_thread_that_holds_too_long_is_named(journal):
    hurried = pickle.loads(pickle.dumps(journal))
    hurried.timeout = 0.1
    found = []

    def try_it(journal):
        with pytest.raises(StorageError) as error:
            journal.append("a", [line(2)])
        found.append(str(error.value))

    for holder, writer, whom in (
        (hurried, hurried, "another thread of this process"),
        (journal, hurried, "another handle, of this process"),
    ):
        with holder.hold("a"):
            thread = threading.Thread(target=try_it, args=(writer,))
            thread.start()
            thread.join()
        assert whom in found.pop()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_a_holder_waits_like_anyone(journal):
    with journal.hold("a"):
        child = os.fork()
        if not child:
            journal.timeout = 0.1
            try:
                journal.append("a", [line(9)])
            except StorageError:
                os._exit(3)
            finally:
                os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        assert journal.append("a", [line(2)], after=2)
    assert numbers(Journal(journal.path)) == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_does_not_keep_the_lock_of_a_parent_that_died(journal):
    out, into = os.pipe()
    parent = os.fork()
    if not parent:
        with journal.hold("a"):
            if not os.fork():
                os.write(into, b"%d" % os.getpid())
                time.sleep(60)
            time.sleep(60)
    child = int(os.read(out, 20))
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    try:
        assert Journal(journal.path, timeout=5.0).append("a", [line(2)])
    finally:
        os.kill(child, signal.SIGKILL)
    os.close(out)
    os.close(into)


class Windows:
    """What `msvcrt` does, by means of this system: one byte of a file is locked, or PermissionError."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self):
        self.spots = []

    def locking(self, file, mode, count):
        self.spots.append((os.lseek(file, 0, os.SEEK_CUR), count))
        try:
            fcntl.flock(file, fcntl.LOCK_UN if mode == self.LK_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None


def test_windows_locks_one_byte_far_behind_the_end(journal, monkeypatch):
    windows = Windows()
    monkeypatch.setattr(lock, "fcntl", None)
    monkeypatch.setattr(lock, "msvcrt", windows)
    other = Journal(journal.path, timeout=0.1)
    with journal.hold("a"):
        with pytest.raises(StorageError, match=r"waited 0\.1 s"):
            other.append("a", [line(9)])
        assert journal.append("a", [line(2)])
    assert other.append("a", [line(3)])
    writers = [threading.Thread(target=write_much, args=(journal.path, n, 10)) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(journal.read("a")) == 34
    assert set(windows.spots) == {(lock.SPOT, 1)}


def test_a_system_without_locks_is_refused(journal, monkeypatch):
    monkeypatch.setattr(lock, "fcntl", None)
    monkeypatch.setattr(lock, "msvcrt", None)
    with pytest.raises(StorageError, match="no locks on files"):
        journal.append("a", [line(2)])
    assert numbers(journal) == [0, 1]
