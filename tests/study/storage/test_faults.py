"""The n-th call of the system fails, for every n of a short study in a journal, in each way it may.

What was acknowledged is there, once. What raised is called again, and counts once.
"""

import errno
import math
import os

import pytest

from bestarm.study.storage import journal, lock
from tests.study.storage.faults import Faults, Killed, Script, check


class Module:
    """A module of which some functions may fail."""

    def __init__(self, real, faults, names):
        self._real, self._faults, self._names = real, faults, names

    def __getattr__(self, name):
        found = getattr(self._real, name)
        return self._faults.may_fail(name, found) if name in self._names else found


class File:
    """An open file whose reading may fail."""

    def __init__(self, file, faults):
        self.file, self.read = file, faults.may_fail("read", file.read)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Wait for no disk: nothing here survives because of it."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


WRITING = ("open", "write", "fsync", "ftruncate", "lseek", "mkdir", "flock")


@pytest.fixture
def weak(monkeypatch):
    """Return what runs the script on a journal whose calls fail as some faults say."""

    def run(url, faults, names=WRITING, reading=False):
        with monkeypatch.context() as patch:
            for module in (journal, lock):
                patch.setattr(module, "os", Module(os, faults, names))
            patch.setattr(lock, "fcntl", Module(lock.fcntl, faults, names))
            if reading:
                real = faults.may_fail("open to read", open)
                patch.setattr(journal, "open", lambda *args, **given: File(real(*args, **given), faults), raising=False)
            return Script(url, "s").run(faults.heal)

    return run


def calls_of(weak, url, **given):
    """The names of the calls that may fail, in a script in which none does."""
    faults = Faults()
    check(weak(url, faults, **given), url)
    return faults.named


WRITTEN = [0.0, 0.5, 1.0]  # how much of what a failing write was given is written all the same


def of(n):
    """An error for the n-th call."""
    return (errno.EIO, errno.ENOSPC)[n % 2]


@pytest.mark.parametrize("effect", WRITTEN)
def test_each_call_of_a_journal_s_writing_fails(effect, weak, tmp_path):
    calls = calls_of(weak, tmp_path / "log")
    assert {"open", "write", "fsync", "lseek", "flock"} <= set(calls)
    for n, name in enumerate(calls):
        if effect and name != "write":
            continue
        url = tmp_path / f"{n}.jsonl"
        script = weak(url, Faults(n, 1, of(n), effect))
        assert script.raised == 1 or (script.raised == 0 and name == "flock"), n  # what is freed is free at the close
        assert check(script, url).handed == 10


@pytest.mark.parametrize("effect", WRITTEN)
@pytest.mark.parametrize("times", [2, math.inf], ids=["and the next", "and all others till it raises"])
def test_what_cannot_be_taken_back_counts_once_when_it_is_told_again(effect, times, weak, tmp_path):
    for n, name in enumerate(calls_of(weak, tmp_path / "log")):
        if name in (("write",) if effect else ("write", "fsync", "ftruncate")):
            url = tmp_path / f"{n}.jsonl"
            script = weak(url, Faults(n, times, of(n), effect))
            check(script, url)


@pytest.mark.parametrize("times", [1, math.inf])
def test_each_reading_of_a_journal_fails(times, weak, tmp_path):
    for n, _ in enumerate(calls_of(weak, tmp_path / "log", names=(), reading=True)):
        url = tmp_path / f"{n}.jsonl"
        script = weak(url, Faults(n, times), names=(), reading=True)
        assert script.raised
        check(script, url)


def test_the_power_fails_at_each_call_of_a_journal_s_writing(weak, tmp_path, monkeypatch):
    """Of what was not synced any part may be left; what was acknowledged was synced."""
    safe, scripts = [b""], []
    fsync, run = os.fsync, Script.run
    monkeypatch.setattr(os, "fsync", lambda file: (fsync(file), safe.append(now(url)))[0])
    monkeypatch.setattr(Script, "run", lambda self, *given: (scripts.append(self), run(self, *given))[1])
    url = tmp_path / "log"

    def now(path):
        return path.read_bytes() if path.exists() else b""

    for n, name in enumerate(calls_of(weak, url)):
        for effect in (0.0, 0.7, 1.0) if name == "write" else (0.0,):
            url, safe[:] = tmp_path / f"{n}-{effect}.jsonl", [b""]
            with pytest.raises(Killed):
                weak(url, Faults(n, math.inf, code=0, effect=effect))
            written, least = now(url), len(safe[-1])
            assert written.startswith(safe[-1])
            for length in {least, max(least, len(written) - 1), len(written)}:
                left = tmp_path / f"{n}-{effect}-{length}.jsonl"
                left.write_bytes(written[:length])
                check(run(scripts[-1].again(left)), left, unnamed_twice=True)
