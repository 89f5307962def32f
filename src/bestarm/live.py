"""Pulling real arms: a person's function or command, one observation at a time, each logged before the next."""

import importlib
import json
import math
import os
import shlex
import subprocess
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bestarm.core import Pulls, Totals
from bestarm.errors import InputError, PullError, RewardError

VERSION = 1


def fresh_seed() -> int:
    """Return a seed from the operating system, short enough to type again."""
    return int(np.random.SeedSequence().generate_state(1)[0])


def command(template: str, timeout: float | None = None) -> Callable[[str], float]:
    """Return a function that runs `template` with {id} replaced by an arm's id and reads one number from stdout."""
    if "{id}" not in template:
        raise InputError(f"a pull command must contain {{id}}, where the arm's id goes; given {template!r}")

    def observe(arm: str) -> float:
        line = template.replace("{id}", shlex.quote(arm))
        try:
            done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired as error:
            raise PullError(f"`{line}` did not finish in {timeout} seconds") from error
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()[-1:] or ["nothing on stderr"]
            raise PullError(f"`{line}` failed with exit code {done.returncode}: {said[0]}")
        try:
            return float(done.stdout.strip())
        except ValueError as error:
            shown = done.stdout.strip()[:80]
            raise PullError(f"`{line}` must print one number on stdout; it printed {shown!r}") from error

    return observe


def function(path: str) -> Callable[[str], float]:
    """Return the function named by "module:function", which takes an arm's id and returns a number."""
    module, _, name = path.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(f"a pull function is named module:function; {path!r} cannot be loaded: {error}") from error
    if not callable(found):
        raise InputError(f"{path!r} is not a function")

    def observe(arm: str) -> float:
        try:
            return float(found(arm))
        except Exception as error:
            raise PullError(f"{path}({arm!r}) failed: {type(error).__name__}: {error}") from error

    return observe


@dataclass
class Log:
    """Rewards on disk, one JSON line each, behind a first line that says which run they belong to.

    A file that exists is read: its rewards are given again, arm by arm in their order, before anything new is pulled.
    A last line cut short by a crash is dropped.
    """

    path: Path
    header: dict[str, Any]
    earlier: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))
    count: int = 0

    @classmethod
    def open(cls, path: Path, about: Mapping[str, Any]) -> "Log":
        """Open or begin the log of the run described by `about`; `about["seed"]` None takes the seed on file."""
        header = {"bestarm": VERSION, **about}
        log = cls(path, header)
        if path.exists() and path.stat().st_size:
            log._read()
        else:
            if header["seed"] is None:
                header["seed"] = fresh_seed()
            log._append(header)
        return log

    def _read(self) -> None:
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
        lines = whole.decode("utf-8", "replace").splitlines()
        found = self._record(lines[0] if lines else "", 1)
        if found.get("bestarm") is None:
            raise InputError(f"{self.path} is not a log of bestarm; name another file")
        if found["bestarm"] > VERSION:
            raise InputError(f"{self.path} was written by a newer bestarm (log version {found['bestarm']}); update")
        if self.header["seed"] is None:
            self.header["seed"] = found.get("seed")
        for key, wanted in self.header.items():
            if found.get(key) != wanted:
                raise InputError(
                    f"{self.path} belongs to another run: its {key} is {found.get(key)!r}, this one's {wanted!r}"
                )
        for number, line in enumerate(lines[1:], start=2):
            record = self._record(line, number)
            if not isinstance(record.get("reward"), int | float) or not isinstance(record.get("arm"), str):
                raise InputError(f"{self.path}, line {number}: an arm and a reward are expected")
            self.earlier[record["arm"]].append(float(record["reward"]))
            self.count += 1

    def _record(self, line: str, number: int) -> dict[str, Any]:
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{self.path}, line {number} is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise InputError(f"{self.path}, line {number} is not a JSON object")
        return record

    def _append(self, record: Mapping[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def write(self, arm: str, reward: float) -> None:
        """Append a reward; it is on disk when this returns."""
        self._append({"arm": arm, "reward": reward})
        self.count += 1


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
        else:
            try:
                reward = self.observe(arm)
                if not math.isfinite(reward):
                    raise PullError(f"a finite number is expected of a pull; got {reward}")
                self.allowed(reward)
            except (PullError, RewardError) as error:
                raise type(error)(f"arm {arm!r}, pull {self.made + 1}: {error}") from error
            if self.log:
                self.log.write(arm, reward)
        self.made += 1
        self.tick()
        return self.better(reward)
