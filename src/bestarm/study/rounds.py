"""One question of the policy, as pulls one by one; and ranges of trials."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bestarm.study.limits import LARGEST

Pairs = Sequence[Sequence[int]]  # arm, times


@dataclass
class StudyRound:
    """A question of the policy: its pulls one by one, the trials handed out, and what came back.

    `plan` has the arm of each slot; slots from `length` on ask again for what failed, and their turn has not come.
    `open` is 1 where a slot is neither told nor given up.
    """

    number: int
    pairs: Pairs  # as logged
    epoch: int  # the round the policy was started for
    begin: Any = None  # how, where this is that round
    trials: list[int] = field(default_factory=list)
    results: list[int | str] = field(default_factory=list)  # what answers it, by name

    def __post_init__(self) -> None:
        self.plan = spread(self.pairs)
        self.length = self.left = len(self.plan)
        self.open = bytearray(b"\1") * self.length

    @property
    def handed(self) -> int:
        """How many slots are handed out."""
        return len(self.trials)

    def shut(self, slot: int) -> bool:
        """Take a slot for told or given up, and return whether it was open."""
        was = self.open[slot]
        self.open[slot] = 0
        self.left -= was
        return bool(was)

    def again(self, slot: int) -> None:
        """Put the arm of a slot at the end of the plan."""
        self.plan.append(self.plan[slot])
        self.open.append(1)
        self.left += 1

    def waiting(self) -> int:
        """Return how many slots ask again for what failed and come after others that are not handed out."""
        return len(self.plan) - self.length if self.handed < self.length else 0

    def coming(self, count: int, repeats: int = 0) -> "array[int]":
        """Return the arms that come next, up to `count`, with the first so many of those that wait put first."""
        if not repeats:
            return self.plan[self.handed : self.handed + count]
        if not 0 < repeats <= self.waiting():
            raise ValueError(f"{repeats} repeats cannot come first, where {self.waiting()} wait")
        slots, waiting = self.plan[self.handed : self.length], self.plan[self.length :]
        return (waiting[:repeats] + slots + waiting[repeats:])[:count]

    def bring_forward(self, repeats: int) -> None:
        """Let the first so many of those that wait be handed out next."""
        self.plan[self.handed :] = self.coming(len(self.plan), repeats)
        self.length += repeats

    def open_slots(self, start: int = 0, stop: int | None = None) -> list[int]:
        """Return the open slots between two numbers."""
        found = np.flatnonzero(np.frombuffer(bytes(self.open[start:stop]), np.uint8))
        return [start + int(slot) for slot in found]


def spread(pairs: Pairs) -> "array[int]":
    """Return pulls one by one: every pair's first before any pair's second.

    >>> list(spread([[7, 2], [4, 1], [5, 3]]))
    [7, 4, 5, 7, 5, 5]
    """
    arms, times = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    plan, done = array("i"), 0
    if np.any((times < 0) | (arms < 0)):
        raise ValueError("a plan has pairs of an arm and how often it is pulled")
    if times.sum(dtype=np.float64) > LARGEST:
        raise ValueError(f"a plan has at most {LARGEST:,} pulls")
    for level in np.unique(times).tolist():
        plan.frombytes(np.tile(arms[times > done].astype(np.intc), level - done).tobytes())
        done = level
    return plan


def turns(pairs: Pairs) -> Iterator[int]:
    """Give the places of a plan's pairs as its pulls are handed out."""
    for turn in range(max((times for _, times in pairs), default=0)):
        yield from (place for place, (_, times) in enumerate(pairs) if times > turn)


def ranges(pairs: Iterable[Sequence[int]]) -> list[int]:
    """Return the numbers that ranges with both ends stand for.

    >>> ranges([[3, 5], [9, 9]])
    [3, 4, 5, 9]
    """
    return [number for low, high in pairs for number in range(low, high + 1)]


def as_ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Return ranges with both ends for numbers, in order.

    >>> as_ranges([9, 3, 4, 5])
    [[3, 5], [9, 9]]
    """
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found
