"""A file of JSON lines that only grows."""

import json
import os
import threading
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from bestarm.errors import StorageError
from bestarm.study.lock import AVAILABLE, locked
from bestarm.study.records import Record, Records, check_name, check_start, decode, encode, unknown

BLOCK = 1 << 24  # bytes read at a time
STEP = 10_000  # records read at a time
MIDDLE = b',"record":'  # stands in no JSON string, whose quotes have a backslash before them


@dataclass
class Index:
    """Where the lines of one log begin in the file, and a mark made from the first of them."""

    mark: tuple[int, int]
    starts: "array[int]" = field(default_factory=lambda: array("Q"))


class Journal:
    """One file of JSON lines for any number of studies: `{"study":name,"record":record}`; the record null deletes.

    Lines are written in one call and synced before `append` returns; a lock file keeps writers apart. A last line cut
    short by a crash is cut off by the next writer, and ignored by readers, who take no lock. Memory holds only where
    each line begins.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise StorageError(f"a journal is a file; {self.path} is a folder")
        self._forget()

    def __reduce__(self) -> tuple[type["Journal"], tuple[Path]]:
        return Journal, (self.path,)

    def _forget(self) -> None:
        self.read_to, self.file_id = 0, (0, 0)
        self.logs: dict[str, Index] = {}
        self.heads: dict[bytes, str] = {}  # what lines begin with, and the name in it
        self._process, self._guard = os.getpid(), threading.RLock()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Keep the threads of this process apart, with all that is in the file known."""
        if self._process != os.getpid():  # after a fork: the lock may be held by a thread that is not here
            self._forget()
        with self._guard:
            try:
                self._catch_up()
                yield
            except OSError as error:
                raise StorageError(f"the journal {self.path} cannot be used: {error}") from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if not AVAILABLE:
            raise StorageError("this system has no file locks for a journal; use sqlite:///file.db")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with locked(self.path), self._reading():
                yield
        except OSError as error:
            raise StorageError(f"the journal {self.path} cannot be written: {error}") from error

    def _catch_up(self) -> None:
        """Note the whole lines added since the last time."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            self._begin_again((0, 0))
            return
        with file:
            found = os.fstat(file.fileno())
            if (found.st_dev, found.st_ino) != self.file_id or not self._goes_on(file, found.st_size):
                self._begin_again((found.st_dev, found.st_ino))
            size = BLOCK
            while True:
                file.seek(self.read_to)  # half a line is read anew: its writer may have died, and another written there
                block = file.read(size)
                lines, end, _ = block.rpartition(b"\n")
                if end:
                    self._note_all(lines)
                elif len(block) < size:
                    break
                else:
                    size *= 2

    def _begin_again(self, file_id: tuple[int, int]) -> None:
        self.read_to, self.file_id = 0, file_id
        self.logs.clear()

    def _goes_on(self, file: IO[bytes], size: int) -> bool:
        """Whether the file still has, as far as a look can tell, the lines that were read."""
        if size < self.read_to:
            return False
        file.seek(max(self.read_to - 1, 0))
        return self.read_to == 0 or file.read(1) == b"\n"

    def _note_all(self, lines: bytes) -> None:
        """Note many lines: all at once where they are of one study, as they mostly are."""
        first, _, rest = lines.partition(b"\n")
        name = self._note(first)
        if not rest:
            return
        own = _head(name) + MIDDLE
        ends = np.flatnonzero(np.frombuffer(rest + b"\n", np.uint8) == ord("\n"))
        mine = rest.startswith(own) + rest.count(b"\n" + own)
        if name in self.logs and mine == len(ends) and own + b"null" not in rest:
            starts = self.read_to + np.concatenate([[0], ends[:-1] + 1])
            self.logs[name].starts.frombytes(starts.astype(np.uint64).tobytes())
            self.read_to += len(rest) + 1
        else:
            for line in rest.split(b"\n"):
                self._note(line)

    def _note(self, line: bytes) -> str:
        name, body = self._split(line, self.read_to)
        if body == b"null":
            self.logs.pop(name, None)
        else:
            index = self.logs.get(name)
            if index is None:
                index = self.logs[name] = Index((self.read_to, zlib.crc32(line)))
            index.starts.append(self.read_to)
        self.read_to += len(line) + 1
        return name

    def _split(self, line: bytes, at: int) -> tuple[str, bytes]:
        """Return a line's study and its record's text."""
        head, found, body = line.partition(MIDDLE)
        if found and head in self.heads and body[-1:] == b"}":
            return self.heads[head], body[:-1]
        try:
            whole = decode(line)
            name, record = whole["study"], whole["record"]
            if not isinstance(name, str):
                raise TypeError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise StorageError(f"{self.path}, at byte {at}: this is not a line of a journal of bestarm") from None
        if found and head == _head(name):
            self.heads[head] = name
        return name, json.dumps(record).encode()

    def _write(self, name: str, bodies: Sequence[str]) -> None:
        head = _head(name)
        text = b"".join(b"%b%b%b}\n" % (head, MIDDLE, body.encode()) for body in bodies)
        new = not self.path.exists()
        with self.path.open("ab") as file:
            if file.tell() > self.read_to:  # a crash cut the last line
                file.truncate(self.read_to)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if new:
            _sync_folder(self.path.parent)

    def names(self) -> list[str]:
        with self._reading():
            return sorted(self.logs)

    def create(self, name: str, first: Record) -> bool:
        check_name(name)
        body = encode(first)
        with self._writing():
            if name in self.logs:
                return False
            self._write(name, [body])
        return True

    def append(self, name: str, records: Sequence[Record], after: int | None = None) -> bool:
        bodies = [encode(record) for record in records]
        with self._writing():
            if name not in self.logs:
                raise unknown(name, str(self.path))
            if after is not None and len(self.logs[name].starts) != after:
                return False
            self._write(name, bodies)
        return True

    def read(self, name: str, start: int = 0) -> Sequence[Record]:
        with self._reading():
            index = self.logs.get(name)
            length = len(index.starts) if index else 0
            check_start(name, str(self.path), start, length)
            lines: list[bytes] = []
            if index and start < length:
                with self.path.open("rb") as file:
                    for at in range(start, length, STEP):
                        first = index.starts[at]
                        end = index.starts[at + STEP] if at + STEP < length else self.read_to
                        file.seek(first)
                        lines += self._bodies(name, file.read(end - first), first)
                if len(lines) != length - start:
                    raise StorageError(f"the journal {self.path} was changed while it was read")
            return Records(lines, f"{self.path}, study {name!r}", start, index and index.mark)

    def _bodies(self, name: str, data: bytes, at: int) -> list[bytes]:
        """Return the records of one study among these lines."""
        own = _head(name) + MIDDLE
        bodies = data[len(own) : -2].split(b"}\n" + own)
        if data.startswith(own) and data.endswith(b"}\n") and len(bodies) == data.count(b"\n"):
            return bodies  # no other study's lines are among them
        found = (self._split(line, at) for line in data.split(b"\n")[:-1])
        return [body for other, body in found if other == name]

    def delete(self, name: str) -> bool:
        with self._writing():
            if name not in self.logs:
                return False
            self._write(name, ["null"])
        return True


def _head(name: str) -> bytes:
    return b'{"study":%b' % json.dumps(name).encode()


def _sync_folder(folder: Path) -> None:
    """Make a new file's name safe too."""
    handle: Any = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
