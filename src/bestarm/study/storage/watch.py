"""Marks that say whether a study has changed, and waiting until one is another.

A mark is made of what the storage knows without its log: a file's number, size and time, or how many studies there
are and how long. It is text that means the same to every handle and process, so a page may carry it as an ETag.
"""

import os
import time
from collections.abc import Callable, Iterable

NEAR, FAR = 0.1, 0.4  # seconds between two looks at this machine's disk, and at a server


def text_of(numbers: Iterable[object] | None) -> str:
    """Return a mark of some numbers; of a place with nothing in it, an empty one."""
    return "-".join(map(str, numbers)) if numbers is not None else ""


def stamp(path: str | os.PathLike[str]) -> tuple[int, int, int] | None:
    """Return what changes when a file is written to or replaced; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def until_changed(look: Callable[[], str], mark: str, timeout: float, pause: float) -> str:
    """Look again and again until a mark is another than the one given, or the time is up; return the last."""
    until = time.monotonic() + timeout
    while (found := look()) == mark and (left := until - time.monotonic()) > 0:
        time.sleep(min(pause, left))
    return found
