"""What a bound is, and what its arguments must be."""

import math
from collections.abc import Sequence
from typing import TypeAlias

from bestarm.errors import InputError
from bestarm.policies.schedules import stage_sizes

Widths: TypeAlias = float | Sequence[float]

# What each argument must be at least; every other one must be positive. All must be finite.
LEAST = {"arms": 2, "dimension": 1, "budget": 1, "efficiency": 0, "epsilon": 0, "radius": 0}


class Bound(float):
    """A bound on a probability, min(1, exp(log)); `log` is not clipped, so any two can be compared.

    >>> Bound(-1000.0), Bound(3.0), Bound(-1000.0).log
    (0.0, 1.0, -1000.0)
    """

    log: float

    def __new__(cls, log: float) -> "Bound":
        bound = super().__new__(cls, math.exp(min(0.0, log)))
        bound.log = log
        return bound

    def __getnewargs__(self) -> tuple[float]:
        return (self.log,)


def stage_count(arms: int, eta: float) -> int:
    # With k - 1 rivals and k' = min(k-1, ⌈k/η⌉) kept, Markov's factor (k-1)/k' is at most η for every η > 1.
    check(arms=arms, eta=eta)
    return len(stage_sizes(arms, eta)) - 1


def widest(widths: Widths, stages: int) -> float:
    listed = [widths] if isinstance(widths, int | float) else list(widths)
    if len(listed) not in {1, stages}:
        raise InputError(f"widths must be one number or {stages}, one a stage; {len(listed)} given")
    for value in listed:
        check(widths=value)
    return max(listed)


def ordered(gaps: Sequence[float], least: int = 1) -> list[float]:
    if len(gaps) < least:
        raise InputError(f"gaps must be those of at least {least} suboptimal arms; {len(gaps)} given")
    for gap in gaps:
        check(gaps=gap)
    return sorted(gaps)


def check(**values: float) -> None:
    for name, value in values.items():
        least = LEAST.get(name)
        if not (value > 0 if least is None else value >= least) or value == math.inf:
            wanted = "positive" if least is None else f"at least {least}"
            raise InputError(f"{name} must be {wanted} and finite; given {value}")
