"""What the system says when a file cannot be used, in words that say what to do."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from bestarm.errors import StorageError

REASONS = {
    "ENOSPC": "the disk is full; make room, and try again",
    "EDQUOT": "this user's quota of the disk is used up; make room, and try again",
    "EFBIG": "the file would be larger than the system allows",
    "EROFS": "the disk can only be read; copy the file to one that can be written",
    "EACCES": "this user is not allowed to; its owner can change that",
    "EPERM": "this user is not allowed to; its owner can change that",
    "ENAMETOOLONG": "its name is too long; a shorter one is expected",
    "ENOTDIR": "a part of its path is a file, where a folder is expected",
    "EEXIST": "a part of its path is a file, where a folder is expected",
    "EISDIR": "it is a folder; the name of a file is expected",
    "ELOOP": "its links lead in a circle",
    "EMFILE": "this process has too many files open",
    "ENFILE": "this system has too many files open",
    "ENOLCK": "locks cannot be had where it lies; use a local disk, or sqlite:///file.db there",
    "EOPNOTSUPP": "locks cannot be had where it lies; use a local disk, or sqlite:///file.db there",
    "EIO": "the disk failed",
    "ESTALE": "the server that has the file lost it for a moment; try again",
}
BY_NUMBER = {getattr(errno, name): reason for name, reason in REASONS.items() if hasattr(errno, name)}


def reason(error: OSError) -> str:
    """Return why the system refused."""
    return BY_NUMBER.get(error.errno or 0) or error.strerror or str(error)


def check_path(place: str, kind: str) -> None:
    """Raise StorageError for a path that no file can have."""
    try:
        usable = b"\0" not in os.fsencode(place)
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise StorageError(f"no file can have the name {place!r}; ordinary characters are expected")
    if os.path.isdir(place):
        raise StorageError(f"{kind} is a file; {place} is a folder")


@contextmanager
def in_words(place: str, what: str) -> Iterator[None]:
    """Turn the system's errors into StorageError: this place cannot be read, written, ..., and why."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{place} cannot be {what}: {reason(error)}") from error
