"""Turns at writing: a lock on the file itself, and a patience that says for whom it waits.

Windows has no `flock`: there one byte far behind the file's end is locked (`msvcrt.locking`). That was tested with a
stand-in only, not on Windows, where a journal must stay below 2 GB.
"""

import contextlib
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bestarm.errors import StorageError

fcntl: Any
msvcrt: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
try:
    import msvcrt
except ImportError:
    msvcrt = None

QUIET = 5.0  # seconds of waiting of which nothing is said
PAUSES = (0.002, 0.05)  # seconds between looks where the system has no queue
SPOT = 0x7FFF_FFFE  # the byte that is locked on Windows

log = logging.getLogger("bestarm")
_held: set[int] = set()  # files locked by this process


class Patience:
    """How long somebody has waited to write: a warning after `QUIET` seconds, StorageError after `timeout`."""

    def __init__(self, place: str, timeout: float, whom: Callable[[], str] = lambda: "another process") -> None:
        self.place, self.timeout, self.whom = place, timeout, whom
        self.begun, self.warned = time.monotonic(), False

    @property
    def waited(self) -> float:
        return time.monotonic() - self.begun

    def step(self) -> float:
        """Return the seconds until there is something to say."""
        until = self.timeout if self.warned else min(QUIET, self.timeout)
        return max(until - self.waited, 0.001)

    def look(self) -> None:
        """Say what there is to say by now."""
        waited = self.waited
        if waited >= self.timeout:
            raise StorageError(f"{self.place}: waited {self.timeout:g} s for {self.whom()}, whose turn to write it is")
        if waited >= QUIET and not self.warned:
            self.warned = True
            left = self.timeout - waited
            log.warning("waiting for %s, whose turn to write %s it is; up to %.0f s", self.whom(), self.place, left)


class Turn:
    """The one of a handle's threads that may write; it may ask again while it is its turn."""

    def __init__(self) -> None:
        self._lock, self.depth, self.process = threading.RLock(), 0, os.getpid()

    @contextlib.contextmanager
    def taken(self, place: str, timeout: float) -> Iterator[bool]:
        """Wait for the turn; say whether it is the outermost time."""
        patience = Patience(place, timeout, lambda: "another thread of this process")
        while not self._lock.acquire(timeout=patience.step()):
            patience.look()
        self.depth += 1
        try:
            yield self.depth == 1
        finally:
            if self.process == os.getpid():  # a child forked meanwhile never had the turn
                self.depth -= 1
                self._lock.release()


class _Waiter(threading.Thread):
    """Waits for a lock in the system's queue, where first come is first served. One may give up on it."""

    def __init__(self, file: int) -> None:
        super().__init__(daemon=True, name="bestarm waits for a lock")
        self.file = os.dup(file)  # the same lock by another number
        _held.add(self.file)
        self.done, self._guard, self._given_up = threading.Event(), threading.Lock(), False
        self.error: OSError | None = None

    def run(self) -> None:
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX)
        except OSError as error:
            self.error = error
        with self._guard:
            if self._given_up and self.error is None:
                fcntl.flock(self.file, fcntl.LOCK_UN)
            _close(self.file)
            self.done.set()

    def give_up(self) -> None:
        with self._guard:
            self._given_up = True


def take(path: str, timeout: float) -> int:
    """Open a file, made if it is not there, wait for the lock on it, and return its descriptor.

    It is the file that has the name by then, whatever became of the one opened first.
    """
    if fcntl is None and msvcrt is None:
        raise StorageError("this system has no locks on files for a journal; use sqlite:///file.db")
    return queue(path, Patience(path, timeout, lambda: holder(path)))


def queue(path: str, patience: Patience, make: bool = True) -> int:
    """Wait for the lock on a file as `take` does; unless it is to be made, FileNotFoundError if it is not there."""
    flags = os.O_RDWR | os.O_CREAT * make | getattr(os, "O_BINARY", 0)
    while True:
        file = os.open(path, flags, 0o666)
        _held.add(file)
        try:
            (_poll if fcntl is None else _queue)(file, patience)
            if has_name(file, path):
                return file
        except BaseException:
            _close(file)
            raise
        give(file)


def give(file: int) -> None:
    """Free a file's lock and close it. What was written is safe by now, so nothing is said of an error."""
    with contextlib.suppress(OSError):
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_UN)
        else:
            os.lseek(file, SPOT, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
    with contextlib.suppress(OSError):
        _close(file)


def _close(file: int) -> None:
    _held.discard(file)
    os.close(file)


def _queue(file: int, patience: Patience) -> None:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    waiter = _Waiter(file)
    try:
        waiter.start()
    except RuntimeError:  # no thread can be had: the interpreter ends, or there are too many
        _close(waiter.file)
        _poll(file, patience)
        return
    try:
        while not waiter.done.wait(patience.step()):
            patience.look()
    except BaseException:
        waiter.give_up()
        raise
    if waiter.error is not None:
        raise waiter.error


def _poll(file: int, patience: Patience) -> None:
    pause = PAUSES[0]
    while not _tried(file):
        patience.look()
        time.sleep(min(pause, patience.step()))
        pause = min(2 * pause, PAUSES[1])


def _tried(file: int) -> bool:
    """Take the lock if it can be had at once."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            os.lseek(file, SPOT, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if isinstance(error, BlockingIOError | PermissionError):
            return False
        raise
    return True


def has_name(file: int, path: str) -> bool:
    """Whether an open file still is the one of that name."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def there(path: str) -> bool:
    """Whether there is a file of that name; StorageError if what is there is no ordinary file."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "no ordinary file"
        raise StorageError(f"{path} is {kind}; the name of a file is expected")
    return True


def locks(file: str | int) -> list[list[str]]:
    """Return the locks on a file that Linux shows, in its words; those who wait have an arrow in front."""
    try:
        end = f":{os.stat(file).st_ino}"
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return []
    return [words for words in lines if words[-3].endswith(end)]


def holder(path: str, kind: str = "FLOCK", byte: int = 0) -> str:
    """Return who has locked a byte of a file, as far as Linux says: in words for a message."""
    for words in locks(path):
        if len(words) != 8 or words[1] != kind or words[3] != "WRITE":
            continue
        if int(words[6]) <= byte and (words[7] == "EOF" or byte <= int(words[7])):
            return _process(int(words[4]))
    return "another process"


def _process(pid: int) -> str:
    if pid == os.getpid():
        return "another thread, or another handle, of this process"
    if pid <= 0:
        return "a process that cannot be seen from here"
    import socket

    state = ""
    with contextlib.suppress(OSError, IndexError):
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        state = " (stopped)" if letter in "Tt" else ""
    return f"process {pid}{state} on {socket.gethostname()}"


def _forked() -> None:
    """Let go, in a child, of its parent's files: else they stayed locked if the parent died."""
    for file in _held:
        with contextlib.suppress(OSError):
            os.close(file)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
