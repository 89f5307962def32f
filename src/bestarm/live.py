"""Pulling real arms: a person's function or command, one observation at a time, each logged before the next."""

import errno
import io
import json
import math
import os
import stat
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bestarm.core import Pulls, Totals
from bestarm.errors import InputError, PullError, RewardError, StorageError
from bestarm.numbers import LARGEST_VALUE, fresh_seed, shown, whole
from bestarm.pulling import checked
from bestarm.templates import shortened

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

VERSION = 1
BEGINNING = '{"bestarm": '  # of every log


class LogBusy(StorageError):
    """Another run writes the log."""


@dataclass
class Log:
    """Rewards on disk, one JSON line each, behind a first line that says which run they belong to.

    A file that exists is read: its rewards are given again, arm by arm in their order, before anything new is pulled.
    A last line cut short by a crash is dropped.
    """

    path: Path
    header: dict[str, Any]
    file: io.FileIO
    earlier: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))
    count: int = 0

    @classmethod
    def open(cls, path: Path, about: Mapping[str, Any]) -> "Log":
        """Open or begin the log of the run described by `about`; `about["seed"]` None takes the seed on file.

        It is locked until it is closed: LogBusy is raised while another run has it.
        """
        header = {"bestarm": VERSION, **about}
        log = cls(path, header, _locked(path))
        try:
            if not log._read():
                if header["seed"] is None:
                    header["seed"] = fresh_seed()
                log._append(header)
        except BaseException:
            log.close()
            raise
        return log

    def close(self) -> None:
        """Let others have the log."""
        self.file.close()

    def _read(self) -> bool:
        """Take in what is on file, and return whether there is anything."""
        self.file.seek(0)
        data = self.file.readall()
        *lines, rest = data.decode("utf-8", "replace").split("\n")
        if not lines:  # not even the first one is whole
            if not BEGINNING.startswith(rest[: len(BEGINNING)]):
                raise InputError(f"{self.path} is not a log of bestarm; name another file")
            self.file.truncate(0)
            return False
        self._check(self._record(lines[0], 1))
        for number, line in enumerate(lines[1:], start=2):
            record = self._record(line, number)
            if not isinstance(record.get("reward"), int | float) or not isinstance(record.get("arm"), str):
                raise InputError(f"{self.path}, line {number}: an arm and a reward are expected")
            if not abs(record["reward"]) <= LARGEST_VALUE:
                raise InputError(f"{self.path}, line {number}: a reward within ±{LARGEST_VALUE:g} is expected")
            self.earlier[record["arm"]].append(float(record["reward"]))
            self.count += 1
        if rest:
            self.file.truncate(data.rfind(b"\n") + 1)
        return True

    def _check(self, found: Mapping[str, Any]) -> None:
        """Refuse a first line of another run; where no seed is given, take its."""
        version = found.get("bestarm")
        if not isinstance(version, int):
            raise InputError(f"{self.path} is not a log of bestarm; name another file")
        if version > VERSION:
            raise InputError(f"{self.path} was written by a newer bestarm (log version {version}); update")
        if self.header["seed"] is None:
            self.header["seed"] = whole(found.get("seed"), f"{self.path}, line 1: the seed", least=0)
        for key, wanted in self.header.items():
            if found.get(key) != wanted:
                its, ours = shown(found.get(key)), shown(wanted)
                raise InputError(f"{self.path} belongs to another run: its {key} is {its}, this one's {ours}")

    def _record(self, line: str, number: int) -> dict[str, Any]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:  # a number of thousands of digits is a ValueError
            raise InputError(f"{self.path}, line {number} is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise InputError(f"{self.path}, line {number} is not a JSON object")
        return record

    def _append(self, record: Mapping[str, Any]) -> None:
        line = memoryview(json.dumps(record).encode() + b"\n")
        about = os.fstat(self.file.fileno())
        try:
            if not about.st_nlink:
                raise OSError(errno.ENOENT, "it was deleted")
            while line:
                line = line[self.file.write(line) :]
            os.fsync(self.file.fileno())
        except OSError as error:
            with suppress(OSError):  # half a line is dropped by the next run, too
                self.file.truncate(about.st_size)
            raise StorageError(f"the log {self.path} cannot be written: {error.strerror}") from error

    def write(self, arm: str, reward: float) -> None:
        """Append a reward; it is on disk when this returns."""
        self._append({"arm": arm, "reward": reward})
        self.count += 1


def _locked(path: Path) -> io.FileIO:
    """Open a log, which is made if it is not there, and lock it where the file system has locks."""
    try:
        while True:
            file = path.open("a+b", buffering=0)
            try:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise InputError(f"{path} cannot be a log: it is not a file")
                _lock(file, path)
                if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
                file.close()  # another run was deleted, or moved away, with its log
            except BaseException:
                file.close()
                raise
    except OSError as error:
        raise StorageError(f"the log {path} cannot be opened: {error.strerror}") from error


def _lock(file: io.FileIO, path: Path) -> None:
    try:
        if sys.platform == "win32":  # not tried there
            file.seek(1 << 30)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            raise LogBusy(
                f"the log {path} is in use by {_holder(file)}; wait for its end, or name another file"
            ) from error


def _holder(file: io.FileIO) -> str:
    """Return who has locked an open file, as far as Linux says."""
    about = os.fstat(file.fileno())
    name = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
    with suppress(OSError):
        for words in map(str.split, Path("/proc/locks").read_text().splitlines()):
            if words[1:2] == ["FLOCK"] and words[5:6] == [name] and int(words[4]) > 0:
                return f"another run, process {words[4]}"
    return "another run"


@dataclass
class Live:
    """A bandit behind a function from an arm's id to a reward.

    `better` maps a reward to what is maximised; `allowed` raises RewardError for one the model cannot use.
    """

    features: Any
    ids: Sequence[str]
    observe: Callable[[str], float]
    noise_variance: float | None = None
    better: Callable[[float], float] = float
    allowed: Callable[[float], None] = lambda reward: None
    log: Log | None = None
    tick: Callable[[], None] = lambda: None
    made: int = 0

    def pull(self, pulls: Pulls, taken: Any, rng: Any) -> Totals:
        """Make every observation asked for, arm by arm."""
        rewards = [[self._one(self.ids[a]) for _ in range(n)] for a, n in zip(pulls.arms, pulls.times, strict=True)]
        sums = np.array([math.fsum(r) for r in rewards])
        return Totals(sums, np.array([math.fsum(x * x for x in r) for r in rewards]))

    def _one(self, arm: str) -> float:
        earlier = self.log.earlier[arm] if self.log else None
        if earlier:
            reward = earlier.popleft()
            self.made += 1
        else:
            reward = self._observed(arm)
        self.tick()
        return self.better(reward)

    def _observed(self, arm: str) -> float:
        """Make an observation and log it; errors name the arm and the pull."""
        shown, pull = f"arm {shortened(arm)!r}", f"pull {self.made + 1}"
        try:
            reward = checked(self.observe(arm), shown)
            self.allowed(reward)
        except (PullError, RewardError) as error:
            named = str(error).removeprefix(f"{shown}: ").removeprefix(f"{shown} ")
            raise type(error)(f"{shown}, {pull}: {named}") from error
        self.made += 1
        if self.log:
            try:
                self.log.write(arm, reward)
            except StorageError as error:
                raise PullError(f"{shown}, {pull}: {reward!r} came back, and is not on disk: {error}") from error
        return reward
