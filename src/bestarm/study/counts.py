"""Counts and summaries of a file by arm: what the file says now, beside what it gave.

Rewards that are told together, n with their successes or with mean and deviation, have no names of their own. A file is
known by its name, and what it gave of an arm is the sum of it: the same sum again counts once, and a larger one is what
came since, if the file holds totals so far.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bestarm.core import Tally
from bestarm.errors import RewardError
from bestarm.study.contents import ACTIVE, GONE, id_in, reason, standing, told_by
from bestarm.study.corrections import among
from bestarm.study.limits import said, totals_of
from bestarm.study.results import Difference, naming
from bestarm.study.state import Result, StudyState
from bestarm.study.storage import Record

NEAR = 1e-9  # relative difference of sums that are the same: spreadsheets keep 15 digits, and means are divided


class Sum(NamedTuple):
    """What rewards of an arm come to."""

    n: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    scatter: float = 0.0

    def plus(self, other: "Sum") -> "Sum":
        """Return both together: W = W₁ + W₂ + n₁ n₂ (ȳ₁ − ȳ₂)² / (n₁ + n₂)."""
        if not (self.n and other.n):
            return self if self.n else other
        n, apart = self.n + other.n, self.total / self.n - other.total / other.n
        scatter = self.scatter + other.scatter + self.n * other.n / n * apart * apart
        return Sum(n, self.total + other.total, self.squares + other.squares, scatter)

    def minus(self, part: "Sum") -> "Sum | None":
        """Return what is there beside a part, None where that cannot be a part of it."""
        n, total = self.n - part.n, self.total - part.total
        if n < 1:
            return None
        rest = Sum(n, total, max(self.squares - part.squares, 0.0), 0.0)
        within = self.scatter - part.plus(rest).scatter
        if self.counts and part.counts:  # successes
            return rest._replace(scatter=total - total * total / n) if 0 <= total <= n else None
        if within < -NEAR * max(self.scatter, 1e-300) - NEAR * self.squares:
            return None
        return rest._replace(scatter=max(within, 0.0), squares=max(within, 0.0) + total * total / n)

    @property
    def counts(self) -> bool:
        """Whether these are successes."""
        return self.total == self.squares and 0 <= self.total <= self.n

    def like(self, other: "Sum") -> bool:
        """Whether two are the same but for rounding."""
        pairs = zip(self[:3], other[:3], strict=True)
        return self.n == other.n and all(math.isclose(a, b, rel_tol=NEAR, abs_tol=1e-12) for a, b in pairs)

    def __str__(self) -> str:
        return f"{self.total:.10g} of {self.n:.10g}" if self.counts else f"mean {self.total / self.n:.6g} of {self.n:g}"


@dataclass(frozen=True)
class Sums:
    """What a file says of its arms now, beside what it gave."""

    name: str
    digest: str
    known: bool  # it said the same when it was told last
    first: bool  # it gave nothing yet
    new: list[tuple[int, Sum]] = field(default_factory=list)
    changed: list[tuple[list[Result], Sum, Sum]] = field(default_factory=list)  # results of an arm, before, now
    gone: list[Result] = field(default_factory=list)
    back: list[Result] = field(default_factory=list)  # gone with an earlier content, and there again
    silent: Sequence[Result] = ()

    @property
    def contradicts(self) -> bool:
        """Whether something that the file gave is otherwise now, or not there any more."""
        return bool(self.changed or self.gone or self.back)

    @property
    def corrected(self) -> int:
        """How many of the rewards that the file says are corrections."""
        return int(sum(now.n for _, _, now in self.changed))

    @property
    def corrections(self) -> int:
        """How many results are put right."""
        return len(self.changed) + len(self.gone) + len(self.back)

    @classmethod
    def of(cls, state: StudyState, name: str, given: Iterable[tuple[int, Record]], cumulative: bool) -> "Sums":
        """Compare a file with what it gave; `cumulative`: what it has more of an arm came since."""
        says: dict[int, Sum] = {}
        for arm, one in given:
            says[arm] = says.get(arm, Sum()).plus(Sum(*totals_of(one)))
        before, digest = told_by(state, name), digest_of(state, says)
        last = state.files.get(name)
        found = cls(name, digest, last is not None and last.digest == digest, not before and last is None)
        for arm in dict.fromkeys([*says, *(one.arm for one in before)]):
            found._compare(state, arm, says.get(arm), [one for one in before if one.arm == arm], cumulative)
        return found

    def _compare(self, state: StudyState, arm: int, now: Sum | None, gave: list[Result], cumulative: bool) -> None:
        there = [one for one in gave if standing(state, one, self.name) != GONE]
        old = Sum()
        for one in there or gave:
            old = old.plus(Sum(one.count, one.sum, one.squares, one.scatter))
        if now is None:
            self.gone.extend(one for one in there if standing(state, one, self.name) == ACTIVE)
        elif not gave:
            self.new.append((arm, now))
        elif not there:
            self.back.extend(gave)
            self.changed.extend([] if now.like(old) else [(gave, old, now)])
        elif not now.like(old):
            rest = now.minus(old) if cumulative else None
            if rest is not None and _allowed(state, rest):
                self.new.append((arm, rest))
            else:
                self.changed.append((there, old, now))

    def differences(self, state: StudyState, additions: bool) -> list[Difference]:
        """Return how the file differs from what it gave; with `additions` also what is new."""
        ids = state.ids
        found = [Difference(some[0].name, ids[some[0].arm], str(old), str(now)) for some, old, now in self.changed]
        found += [Difference(one.name, ids[one.arm], one.sum, None) for one in self.gone]
        if additions:
            found += [Difference(id_in(self.name, ids[arm], 1), ids[arm], None, str(now)) for arm, now in self.new]
        return found

    def records(self, state: StudyState, why: str, result: Callable[[int, Record, str], Record]) -> list[Record]:
        """Return the records by which what the file gave is what it says now; `result` says what a new one is of."""
        told: list[Record] = []
        if self.new or self.contradicts:
            new = [result(arm, said(*now), _free(state, self.name, arm)) for arm, now in self.new]
            told.append({"kind": "tell", "results": new, "file": {"name": self.name, "digest": self.digest}})
        if self.back:
            told.append({"kind": "restore", **among(self.back)})
        if self.changed:
            told.append({"kind": "amend", "results": [_restated(some[0], now) for some, _, now in self.changed]})
        over = [one for some, _, _ in self.changed for one in some[1:] if not one.excluded or one in self.back]
        because = reason(self.name) + (f": {why}" if why else "")
        if self.gone or over:
            told.append({"kind": "exclude", **among([*self.gone, *over]), "why": because})
        return told


def _allowed(state: StudyState, rest: Sum) -> bool:
    """Return whether a model can have such rewards."""
    try:
        state.rewards.law.check(Tally(*np.array(rest)))
    except RewardError:
        return False
    return True


def _restated(result: Result, now: Sum) -> Record:
    return {**(naming(result.of) if result.of else {"id": result.name}), "arm": result.arm, **said(*now)}


def _free(state: StudyState, name: str, arm: int) -> str:
    """Return an id for what a file says of an arm that no result has."""
    which = 1
    while (id := id_in(name, state.ids[arm], which)) in state.results:
        which += 1
    return id


def digest_of(state: StudyState, says: dict[int, Sum]) -> str:
    """Return what tells one content of a file from others, whatever the order of its rows."""
    lines = sorted(
        f"{state.ids[arm]}\t{one.n:.12g}\t{one.total:.12g}\t{one.squares:.9g}\n" for arm, one in says.items()
    )
    return f"sha256:{hashlib.sha256(''.join(lines).encode(errors='surrogatepass')).hexdigest()}"
