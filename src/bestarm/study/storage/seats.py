"""Connections to SQLite files, closed at the end of a process and before it forks.

SQLite keeps in memory which files a process has open. A child has that memory but not the locks that go with it: what
it wrote, by a new connection too, would be lost when its parent closes the file. So a child inherits nothing that is
open, or is told that it cannot use the file.
"""

import os
import sqlite3
import time
import weakref
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from bestarm.errors import StorageError
from bestarm.study.storage.lock import Turn

File: TypeAlias = tuple[int, int]

PATIENCE = 1.0  # seconds that a fork, or the end of a process, waits for those who use a connection

inherited: set[File | None] = set()  # files of which SQLite wrongly believes that this process has them open
_left_alone: list[Any] = []  # the connections to them: to close one could end the parent's
_all: "weakref.WeakSet[Seat]" = weakref.WeakSet()


@dataclass(eq=False)
class Seat:
    """A connection that the threads of a process take turns at."""

    place: str
    db: sqlite3.Connection | None = None
    file: File | None = None  # the one the connection is to
    once: bool = False  # it does not notice what others write, so it is for one use
    turn: Turn = field(default_factory=Turn)
    parted: ExitStack | None = None  # holds the turn while the process forks

    def __post_init__(self) -> None:
        _all.add(self)

    def close(self) -> None:
        db, self.db, self.file = self.db, None, None
        if db is not None:
            db.close()

    def part(self, until: float) -> None:
        """Close the connection and let no thread open it until `join`. Where it is used for longer, leave it."""
        stack = ExitStack()
        with suppress(StorageError):
            outermost = stack.enter_context(self.turn.taken(self.place, max(until - time.monotonic(), 0.01)))
            if outermost:
                self.close()
                self.parted = stack
            else:
                stack.close()

    def join(self, child: bool) -> None:
        """Go on after a fork. A connection that could not be closed is the parent's alone."""
        stack, self.parted = self.parted, None
        if not child:
            if stack is not None:
                stack.close()
            return
        self.turn = Turn()
        if self.db is not None:
            _left_alone.append(self.db)
            inherited.add(self.file)
            self.db = None


def let_go(*seats: Seat) -> None:
    """Close connections, unless they are used: the last to close a database leaves everything in it."""
    for seat in seats:
        with suppress(StorageError), seat.turn.taken(seat.place, PATIENCE):
            seat.close()


def _before_fork() -> None:
    until = time.monotonic() + PATIENCE
    for seat in list(_all):
        seat.part(until)


def _after_fork(child: bool) -> None:
    for seat in list(_all):
        seat.join(child)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(False),
        after_in_child=lambda: _after_fork(True),
    )
