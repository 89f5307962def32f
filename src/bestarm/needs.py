"""How many pulls a policy needs for its answer to mean anything: fewer are a guess, and somebody should say so."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any


@dataclass(frozen=True)
class Need:
    """The fewest pulls with which an answer means something, and what they are for."""

    pulls: int
    why: str


class Least(Enum):
    """What a part of a policy wants at the least; a part says it as its attribute `wants`, else it is `TWO`.

    >>> Least.ARMS.need(64, 6), Least.DIMENSIONS.need(64, 6).pulls
    (Need(pulls=64, why='a pull of each arm'), 6)
    """

    TWO = "two rewards to compare"
    DIMENSIONS = "a pull for each dimension of the features"
    ARMS = "a pull of each arm"
    STAGES = "a pull of each arm in each stage of halving"

    def need(self, arms: int, dimension: int) -> Need:
        """Return the need with so many `arms` of features that span so many dimensions."""
        each = {
            Least.TWO: min(2, arms),
            Least.DIMENSIONS: max(1, dimension),
            Least.ARMS: arms,
            Least.STAGES: arms * max(1, (arms - 1).bit_length()),  # ⌈log₂ K⌉ stages, the first of all arms
        }
        return Need(each[self], self.value)


def wanted_by(part: Any) -> Least:
    """Return what a part wants."""
    found: Least = getattr(part, "wants", Least.TWO)
    return found


def smallest(enough: Callable[[int], bool], start: int = 1) -> int:
    """Return the smallest whole number from `start` on that is `enough`, which every larger one is too.

    >>> smallest(lambda n: n * n >= 1000)
    32
    """
    low, high = start - 1, start
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
