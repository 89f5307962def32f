"""A queue of writers, across processes and threads, by a lock on a file beside theirs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

AVAILABLE = fcntl is not None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for one's turn to write `path`, first come first served; the system frees the lock of whoever dies."""
    with open(path.with_name(path.name + ".lock"), "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # closing is not enough: a child forked meanwhile would keep it
