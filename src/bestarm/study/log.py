"""A study's log where it is kept: reading what is new, and writing what holds even if another was faster."""

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple
from warnings import warn

from bestarm.errors import BestArmWarning, StorageError
from bestarm.study import fold
from bestarm.study.results import names_of
from bestarm.study.state import VERSION, StudyState
from bestarm.study.storage import Record, Storage

PATIENCE = 3  # races that are lost before the study is held for oneself


class Written(NamedTuple):
    """Records that were written, and the number of the first."""

    records: list[Record]
    number: int


class Log:
    """The records of a study in a storage, and the state they tell. Threads may share it."""

    def __init__(self, name: str, storage: Storage, allow: Sequence[str] = (), table: Any = None) -> None:
        self.name, self.storage = name, storage
        self.given: dict[str, Any] = {"allow": tuple(allow), "folder": getattr(storage, "folder", None), "table": table}
        self.state = StudyState(**self.given)
        self.questions: list[Record] = []  # of version 1, to be pinned with the first write
        self.lock = threading.RLock()
        self.new: Sequence[Record] = ()  # what the last look found, from `self.seen` on
        self.seen = 0
        self._kept: tuple[Any, dict[Any, Any]] = (None, {})  # what was made of the log as it was read last
        self.doubt: list[Record] = []  # what a write that raised may have left in the log all the same

    def sync(self) -> StudyState:
        """Read what others have written, and return the state."""
        with self.lock:
            self.seen = self.state.records
            self.new = self.storage.read(self.name, self.seen)
            if not self.new and not self.seen:
                raise StorageError(f"there is no study {self.name!r} here")
            if self.new:
                self._take(self.new)
            return self.state

    def kept(self, what: Hashable, make: Callable[[], Any]) -> Any:
        """Return what `make` gives, or gave before, if the log is still as it was then."""
        with self.lock:
            read = (self.state.mark, self.state.records)
            if self._kept[0] != read:
                self._kept = (read, {})
            found = self._kept[1]
            if what not in found:
                found[what] = make()
            return found[what]

    def _take(self, new: Sequence[Record]) -> None:
        first = None if self.state.records else new[0]
        begins_old = isinstance(first, dict) and first.get("version") == 1
        if self.state.version < VERSION if first is None else begins_old:
            self._read_old(self.storage.read(self.name) if first is None else new, warned=first is None)
        else:
            fold.apply(self.state, new, first)
        self.state.name = self.name

    def _read_old(self, whole: Sequence[Record], warned: bool) -> None:
        from bestarm.study import version1

        fresh = StudyState(**self.given)
        self.questions = version1.apply(fresh, whole)
        self.state = fresh
        if fresh.version < VERSION and fresh.open_trials() and not warned:
            warn(
                f"study {self.name!r} is of version 1: which arms its {len(fresh.open_trials())} open trials are of is "
                "computed again; the next thing written to it, or `bestarm upgrade`, settles that",
                BestArmWarning,
                stacklevel=2,
            )

    def replay(self) -> Iterator[tuple[Record, StudyState]]:
        """Give every record from the first on, each with the state after it."""
        whole = self.storage.read(self.name)
        state = StudyState(**self.given)
        if whole and whole[0].get("version") == 1:
            from bestarm.study import version1

            yield from version1.replay(state, whole)
            return
        for record in whole:
            fold.apply(state, [record])
            yield record, state

    def write(
        self,
        make: Callable[[StudyState], list[Record]],
        source: str | None = None,
        why: str = "",
        alone: Callable[[list[Record]], bool] | None = None,
    ) -> Written | None:
        """Write what `make(state)` gives, asked again where another was faster, and return it.

        None where it gives nothing. Where `alone(records)` is false, what others write meanwhile does not matter.
        """
        with self.lock:
            for attempt in range(1_000_000):
                with self._hold(attempt):
                    state = self.sync()
                    records = [stamped(record, source, why) for record in make(state)]
                    if not records:
                        return None
                    number = self._left(records)
                    if number is not None:
                        records = self.doubt
                    else:
                        after = None if alone is not None and not alone(records) else state.records
                        self.doubt = records
                        number = self._append(records, after)
                self.doubt = []
                if number is not None:
                    return Written(records, number)
            raise StorageError(f"others were always faster to write to study {self.name!r}")

    def _left(self, records: list[Record]) -> int | None:
        """Return the number of what a write that raised left in the log, if these records say the same once more.

        Only results that nobody asked for and nobody named are told twice otherwise: their ids are made anew.
        """
        if not self.doubt or _said(records) != _said(self.doubt):
            return None
        given = self.doubt[0].get("results", ())
        names = [name for one in given if "id" in one or "beyond" in one for name in names_of(one)]
        found = self.state.results.get(names[0]) if names else None
        return None if found is None else found.record

    def _hold(self, attempt: int) -> AbstractContextManager[None]:
        return nullcontext() if attempt < PATIENCE else self.storage.hold(self.name)

    def _append(self, records: list[Record], after: int | None) -> int | None:
        """Write records, and return the number of the first; None if others were faster. Version 1 is pinned first."""
        old = [self.pinned()] if self.state.version < VERSION else []
        before = self.state.records
        if not self.storage.append(self.name, [*old, *records], after=before if old else after):
            return None
        self.sync()
        if after is not None or old:
            return before + len(old)
        return self.seen + list(self.new).index(records[0])

    def pinned(self) -> Record:
        """Return the record with which a log of version 1 goes on in version 2."""
        return stamped({"kind": "upgrade", "version": VERSION, "questions": self.questions}, None, "")

    def upgrade(self) -> bool:
        """Make a log of version 1 one of version 2; return whether there was something to do."""
        with self.lock:
            while self.sync().version < VERSION:
                if self.storage.append(self.name, [self.pinned()], after=self.state.records):
                    self.sync()
                    return True
            return False


def _said(records: list[Record]) -> list[Record]:
    """Return records without their time, the ids that were made for them, and the trials that were found for them."""

    def plain(one: Record) -> Record:
        made = str(one.get("id", "")).startswith("extra-")
        found = ("id", "trial", "trials", "beyond", "cost") if "beyond" in one else ("id",) if made else ()
        return {key: value for key, value in one.items() if key not in found}

    return [
        {
            key: [plain(one) for one in value] if key == "results" else value
            for key, value in record.items()
            if key != "time"
        }
        for record in records
    ]


def stamped(record: Record, source: str | None, why: str) -> Record:
    """Return a record with its time, and who wrote it and why where that was said."""
    by = source or os.environ.get("BESTARM_SOURCE", "")
    more = {key: text for key, text in (("source", by), ("why", why)) if text and key not in record}
    return {"kind": record["kind"], "time": time.time(), **more, **record}
