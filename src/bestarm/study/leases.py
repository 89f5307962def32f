"""Who makes a study's trials: a runner's name, its signs of life, and which of the others have gone.

A runner has gone when it has left; when it was of a process of this machine that has ended; or when its number of signs
of life has stayed the same for its whole lease, by the clock of whoever watches. No clocks are compared.
"""

import hashlib
import logging
import os
import platform
import re
import secrets
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bestarm.study.state import StudyState

LEASE = 600.0  # seconds
SIGNS = 5  # signs of life in a lease
OURS = re.compile(r".+-([0-9a-f]{8})-(\d+)-(\d+)-[0-9a-f]{8}", re.DOTALL)
A_PERSON = ""  # the holder of trials that no runner asked for

log = logging.getLogger("bestarm")
_at_work: set[str] = set()  # runners of this process


def new_runner() -> str:
    """Return a name for a runner that says which process it is of: host, machine, process, its start, and chance."""
    host = re.sub(r"[^\w.-]", "-", socket.gethostname())[:60] or "host"
    return f"{host}-{_machine()}-{os.getpid()}-{_started(os.getpid()) or 0}-{secrets.token_hex(4)}"


def ended(runner: str) -> bool:
    """Return whether a runner was of a process of this machine, and that or the runner itself has ended."""
    found = OURS.fullmatch(runner)
    if found is None or found[1] != _machine():
        return False
    process, start = int(found[2]), int(found[3])
    if process == os.getpid() and start == (_started(process) or 0):
        return runner not in _at_work
    now = _started(process)
    return now is None or (start > 0 and now > 0 and now != start)


@cache
def _machine() -> str:
    """Return what tells this machine, since it was started, and its numbering of processes from all others."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        numbering = os.readlink("/proc/self/ns/pid")
    except OSError:
        boot, numbering = platform.system(), f"{uuid.getnode()}"
    return hashlib.sha256(f"{socket.gethostname()} {boot} {numbering}".encode()).hexdigest()[:8]


def _started(process: int) -> int | None:
    """Return when a process was started, in the system's units, 0 where it does not tell; None: there is none."""
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
        return None if fields[0] in (b"Z", b"X") else int(fields[19])
    if os.name != "posix":  # a signal would end the process there
        return 0
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except (OSError, OverflowError):  # another user's
        return 0
    return 0


class LastSign(NamedTuple):
    """The runners' numbers of signs of life, read between two times."""

    numbers: dict[str, int]
    begun: float
    done: float


@dataclass
class Life:
    """A runner's stay with a study: it gives signs of life, and sees who of the others gives none."""

    storage: Any
    study: str
    lease: float
    clock: Callable[[], float] = time.monotonic
    runner: str = field(default_factory=new_runner)
    look: LastSign | None = None
    known: dict[str, tuple[int | None, float]] = field(default_factory=dict)  # number, and since when it is that
    end: threading.Event = field(default_factory=threading.Event)
    heart: threading.Thread | None = None

    def start(self) -> None:
        """Give signs of life from now on."""
        self.storage.beat(self.study, self.runner)
        _at_work.add(self.runner)
        self.heart = threading.Thread(target=self._beat, name=f"bestarm-{self.runner}", daemon=True)
        self.heart.start()

    def stop(self) -> None:
        """Give no more signs of life."""
        self.end.set()
        _at_work.discard(self.runner)
        if self.heart is not None:
            self.heart.join(1.0)  # it may wait for the storage

    def _beat(self) -> None:
        self.see()
        while not self.end.wait(self.lease / SIGNS):
            self.pulse()

    def pulse(self) -> None:
        """Give a sign of life, and look at those of the others; a storage that fails is tried again next time."""
        try:
            self.storage.beat(self.study, self.runner)
        except Exception as error:
            log.debug("no sign of life of runner %s could be kept: %s", self.runner, error)
        self.see()

    def see(self) -> None:
        """Look at the signs of life of all runners."""
        begun = self.clock()
        with suppress(Exception):
            self.look = LastSign(dict(self.storage.beats(self.study)), begun, self.clock())

    def gone(self, state: StudyState, persons: bool) -> set[str]:
        """Return who has gone of those that hold open trials or have joined; with `persons`, a person has too."""
        holders = {state.holders.get(trial, (A_PERSON, 0.0)) for trial in state.open_trials()}
        leases = dict.fromkeys(state.runners, max(self.lease, LEASE))  # those that hold nothing have not said theirs
        leases |= {name: lease or self.lease for name, lease in holders}
        return {
            name
            for name, lease in leases.items()
            if name != self.runner and (persons if name == A_PERSON else self._has_gone(name, lease, state))
        }

    def forget(self, gone: set[str]) -> None:
        """Forget runners that have gone, and their signs of life."""
        for name in gone - {A_PERSON}:
            self.known.pop(name, None)
            with suppress(Exception):  # only tidying up
                self.storage.unbeat(self.study, name)

    def _has_gone(self, name: str, lease: float, state: StudyState) -> bool:
        left = name not in state.runners and OURS.fullmatch(name) is not None
        return left or ended(name) or self._silent(name, lease)

    def _silent(self, name: str, lease: float) -> bool:
        """Return whether another's number was the same for its whole lease."""
        if self.look is None:
            return False
        number = self.look.numbers.get(name)
        before = self.known.get(name)
        if before is None or before[0] != number:
            self.known[name] = number, self.look.done
            return False
        return self.look.begun - before[1] >= lease
