"""Logs that end with the process."""

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from bestarm.errors import StorageError
from bestarm.study.storage.records import Record, Records, check_name, check_start, encode, unknown
from bestarm.study.storage.watch import text_of


@dataclass
class _Log:
    lines: list[str] = field(default_factory=list)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)


class Memory:
    """Logs that end with the process."""

    place, folder = "memory", None

    def __init__(self, timeout: float = 60.0) -> None:
        self.timeout = timeout
        self.logs: dict[str, _Log] = {}
        self.signs: dict[tuple[str, str], int] = {}
        self._guard, self._news = threading.RLock(), threading.Condition()
        self._made, self._changes = uuid.uuid4().hex, 0

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._guard.acquire(timeout=self.timeout):
            raise StorageError(f"another thread has held the studies in memory for {self.timeout:g} s")
        try:
            yield
        finally:
            self._guard.release()

    def names(self) -> list[str]:
        return sorted(self.logs.copy())

    def create(self, name: str, first: Record) -> bool:
        check_name(name)
        log = _Log([encode(first)])
        with self._alone():
            made = self.logs.setdefault(name, log) is log
            self._changed(int(made))
            return made

    def append(self, name: str, records: Sequence[Record], after: int | None = None) -> bool:
        lines = [encode(record) for record in records]
        with self._alone():
            if name not in self.logs:
                raise unknown(name, self.place)
            log = self.logs[name].lines
            if after is not None and len(log) != after:
                return False
            log.extend(lines)
            self._changed(len(lines))
        return True

    def read(self, name: str, start: int = 0) -> Records:
        log = self.logs.get(name) or _Log()
        check_start(name, self.place, start, len(log.lines))
        return Records(log.lines[start:], f"study {name!r} in memory", start, log.mark)

    def delete(self, name: str) -> bool:
        with self._alone():
            self.signs = {key: number for key, number in self.signs.items() if key[0] != name}
            gone = self.logs.pop(name, None) is not None
            self._changed(int(gone))
            return gone

    def _changed(self, times: int) -> None:
        with self._news:
            self._changes += times
            self._news.notify_all()

    def mark(self, name: str | None = None) -> str:
        if name is None:
            return text_of((self._made, self._changes))
        log = self.logs.get(name)
        return text_of((log.mark, len(log.lines)) if log else None)

    def wait(self, mark: str, timeout: float, name: str | None = None) -> str:
        with self._news:
            self._news.wait_for(lambda: self.mark(name) != mark, min(timeout, threading.TIMEOUT_MAX))
        return self.mark(name)

    def hold(self, name: str) -> AbstractContextManager[None]:
        return self._alone()

    def beat(self, name: str, runner: str) -> None:
        with self._alone():
            self.signs[name, runner] = self.signs.get((name, runner), 0) + 1

    def beats(self, name: str) -> dict[str, int]:
        with self._alone():
            return {runner: number for (study, runner), number in self.signs.items() if study == name}

    def unbeat(self, name: str, runner: str) -> None:
        with self._alone():
            self.signs.pop((name, runner), None)

    def salvage(self, name: str) -> list[tuple[int, Record | str]]:
        return list(enumerate(self.read(name)))

    def notes(self) -> list[str]:
        return []
