"""A file of lines of JSON that only grows."""

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import IO, Any

from bestarm.errors import StorageError
from bestarm.study.storage import beats
from bestarm.study.storage.failures import check_path, in_words, reason
from bestarm.study.storage.lines import written
from bestarm.study.storage.lock import Turn, give, has_name, take, there
from bestarm.study.storage.records import (
    WAY_OUT,
    Record,
    Records,
    check_name,
    check_start,
    damaged,
    encode,
    record_or_why,
    unknown,
)
from bestarm.study.storage.scan import Scan
from bestarm.study.storage.walk import again, follow
from bestarm.study.storage.watch import NEAR, stamp, text_of, until_changed


class Journal:
    """A file of lines for any number of studies, as docs/log-format.md describes it.

    Lines are written in one call and synced before `append` returns. Writers take turns by a lock on the file itself,
    by whatever name they opened it; readers take none. Memory holds only where each line begins.
    """

    def __init__(self, path: str | os.PathLike[str], timeout: float = 60.0) -> None:
        self.path, self.place, self.timeout = Path(path), os.fsdecode(path), timeout
        check_path(self.place, "a journal")
        self.generation = 0  # how often the file was found to be another than the one read before
        self._begin()

    def __reduce__(self) -> tuple[type["Journal"], tuple[Path, float]]:
        return Journal, (self.path, self.timeout)

    @property
    def folder(self) -> Path:
        """Where the file itself lies, whatever links lead to it."""
        return Path(os.path.realpath(self.path)).parent

    def _begin(self) -> None:
        self._process, self._guard, self._turn = os.getpid(), RLock(), Turn()
        self._file = -1  # the locked file while it is this handle's turn
        self._scan, self._seen, self._id = Scan(), (0, b""), (0, 0)
        self._in_folder: tuple[int, int] | None = None  # the file whose name is safe in its folder

    def _mine(self) -> None:
        """Begin anew after a fork: locks may be held by threads that are not here."""
        if self._process != os.getpid():
            self._begin()

    @contextmanager
    def _reading(self, name: str | None = None, start: int = 0) -> Iterator[IO[bytes]]:
        """Keep the threads of this process apart, with all that is in the file known, and new records of a study."""
        self._mine()
        with self._guard, in_words(self.place, "read"), self._opened() as file:
            self._catch_up(file, name, start)
            yield file

    def _opened(self) -> IO[bytes]:
        return open(self.path, "rb") if there(self.place) else io.BytesIO()

    def _catch_up(self, file: IO[bytes], name: str | None = None, start: int = 0) -> None:
        """Note the whole lines added since the last time."""
        found = os.fstat(file.fileno()) if not isinstance(file, io.BytesIO) else None
        file_id = (found.st_dev, found.st_ino) if found else (0, 0)
        end, seen = self._seen
        file.seek(end - len(seen))
        goes_on = file.read(len(seen)) == seen
        if file_id != self._id or not goes_on:
            self._scan, self._id = Scan(), file_id
            self.generation += not goes_on
        log = self._scan.logs.get(name or "")
        self._scan.want(name, max(start, log.next if log else 0))
        try:
            self._seen = follow(self._scan, file, self.place)
        except BaseException:  # even the key that interrupts
            self._scan, self._seen = Scan(), (0, b"")
            raise

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        check_name(name)
        self._mine()
        with self._turn.taken(self.place, self.timeout) as outermost:
            if outermost:
                with in_words(self.place, "written"):
                    there(self.place)
                    self._file = take(self.place, self.timeout)
            process = os.getpid()
            try:
                yield
            finally:
                if outermost and process == os.getpid():
                    file, self._file = self._file, -1
                    give(file)

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        with self.hold(name), self._guard, in_words(self.place, "written"):
            if not has_name(self._file, self.place):
                raise StorageError(f"{self.place}: another file was put in its place while it was held")
            with open(self._file, "rb", closefd=False) as file:
                self._catch_up(file)
            yield

    def _write(self, name: str, number: int, texts: Sequence[str]) -> None:
        """Write records at the end, in place of the unfinished line that a crash may have left."""
        end, size = self._scan.at, os.fstat(self._file).st_size
        data = b"".join(written(name, number + i, text) for i, text in enumerate(texts))
        if size < end:  # the last newline is missing or damaged
            end, data = size, b"\n" + data
        try:
            if size > end:
                os.ftruncate(self._file, end)
            os.lseek(self._file, end, os.SEEK_SET)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
            if self._in_folder != self._id:
                _sync(self.folder)
                self._in_folder = self._id
        except BaseException as error:
            self._take_back(end, error)
            raise

    def _take_back(self, end: int, error: BaseException) -> None:
        """Remove what was written in vain."""
        try:
            os.ftruncate(self._file, end)
            os.fsync(self._file)
        except OSError as failure:
            why = reason(error) if isinstance(error, OSError) else f"{type(error).__name__} {error}"
            raise StorageError(
                f"{self.place} cannot be written: {why}; what was written of it could not be removed again "
                f"({reason(failure)}), so it may be found there or not"
            ) from error

    def _check(self, name: str) -> None:
        """Refuse a study with a damaged record."""
        log, where = self._scan.logs.get(name), f"{self.place}, study {name!r}"
        if log is not None and log.damage:
            raise damaged(where, *log.damage)
        doubt = self._scan.doubts(name)
        if doubt:
            raise StorageError(f"{where}: {doubt}; {WAY_OUT}")

    def _length(self, name: str) -> int:
        """Return how many records a study has; StorageError if it is not there or damaged."""
        self._check(name)
        if name not in self._scan.logs:
            raise unknown(name, self.place)
        return self._scan.logs[name].next

    def names(self) -> list[str]:
        with self._reading():
            return sorted(self._scan.logs)

    def create(self, name: str, first: Record) -> bool:
        check_name(name)
        text = encode(first)
        with in_words(self.place, "made"):
            _make_folders(self.folder)
        with self._writing(name):
            if name in self._scan.logs:
                return False
            self._check(name)
            self._write(name, 0, [text])
        return True

    def append(self, name: str, records: Sequence[Record], after: int | None = None) -> bool:
        texts = [encode(record) for record in records]
        if not self._there():
            raise unknown(name, self.place)
        with self._writing(name):
            length = self._length(name)
            if after is not None and length != after:
                return False
            if texts:
                self._write(name, length, texts)
        return True

    def _there(self) -> bool:
        with in_words(self.place, "read"):
            return there(self.place)

    def read(self, name: str, start: int = 0) -> Records:
        with self._reading(name, start) as file:
            lines = self._lines(file, name, start)
            if lines is None:  # what was read before is not there any more
                self._scan, self._seen = Scan(), (0, b"")
                self.generation += 1
                self._catch_up(file, name, start)
                lines = self._lines(file, name, start)
            if lines is None:
                raise StorageError(f"{self.place} was changed while it was read; read it again")
            log = self._scan.logs.get(name)
            self._scan.want(None)
            mark = (log.mark, self.generation) if log else None
            return Records(lines, f"{self.place}, study {name!r}", start, mark)

    def _lines(self, file: IO[bytes], name: str, start: int) -> list[bytes] | None:
        """Return the texts of records, those just kept and those before; None if these are not what they were."""
        self._check(name)
        log = self._scan.logs.get(name)
        length = log.next if log else 0
        check_start(name, self.place, start, length)
        kept = self._scan.texts
        first = length - len(kept)
        if log is None or first <= start:
            return kept[start - first :]
        before = again(file, log, start, first)
        return None if before is None else before + kept

    def mark(self, name: str | None = None) -> str:
        """Return the file's number, size and time: whose the last lines are is not known without reading them."""
        return text_of(stamp(self.path))

    def wait(self, mark: str, timeout: float, name: str | None = None) -> str:
        return until_changed(self.mark, mark, timeout, NEAR)

    def delete(self, name: str) -> bool:
        if not self._there():
            return False
        with self._writing(name):
            log = self._scan.logs.get(name)
            if log is None:
                return False
            self._write(name, log.next, ["null"])
        with suppress(OSError):
            beats.forget(self._beats(), name)
        return True

    def _beats(self) -> Path:
        real = Path(os.path.realpath(self.path))
        return real.with_name(f"{real.name}.beats")

    def beat(self, name: str, runner: str) -> None:
        with in_words(str(self._beats()), "written"):
            beats.beat(self._beats(), name, runner)

    def beats(self, name: str) -> dict[str, int]:
        with in_words(str(self._beats()), "read"):
            return beats.beats(self._beats(), name)

    def unbeat(self, name: str, runner: str) -> None:
        with in_words(str(self._beats()), "written"):
            beats.forget(self._beats(), name, runner)

    def salvage(self, name: str) -> list[tuple[int, Record | str]]:
        events: list[Any] = []
        scan = Scan(name, 0, events)
        with self._reading() as file:
            follow(scan, file, self.place)
        doubt = scan.doubts(name)
        if doubt:
            events.append((scan.logs[name].next if name in scan.logs else 0, doubt))
        found = sorted(events, key=lambda event: event[0])
        return [(number, one if isinstance(one, str) else record_or_why(one)) for number, one in found]

    def notes(self) -> list[str]:
        with self._reading():
            return self._scan.notes(self.place)


def _make_folders(folder: Path) -> None:
    """Make a file's folder and those above it, where they are not there, each name safe."""
    if not folder.is_dir():
        _make_folders(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync(folder.parent)


def _sync(folder: Path) -> None:
    """Make the names in a folder safe."""
    if os.name == "nt":  # which has no way to
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
