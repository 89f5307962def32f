"""How a budget and a set of arms are split into stages. A schedule is data one can check by eye."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Protocol

from bestarm.errors import BudgetError, InputError


@dataclass(frozen=True)
class Stage:
    """Pull `pulls` times, then keep the best `keep` arms."""

    pulls: int
    keep: int


def stage_sizes(arms: int, eta: float) -> tuple[int, ...]:
    """Return how many arms enter each stage, and the one that is left: k_{t+1} = min(k_t - 1, ⌈k_t/η⌉).

    The formula ⌈log_η K⌉ for the number of stages is off by one in floating point (K = 125, η = 5) and for
    fractional η; counting is not.

    >>> stage_sizes(16, 2)
    (16, 8, 4, 2, 1)
    >>> stage_sizes(125, 5), stage_sizes(3, 1.5), stage_sizes(7, 7)
    ((125, 25, 5, 1), (3, 2, 1), (7, 1))
    """
    if not eta > 1:
        raise InputError(f"eta must be greater than 1; given {eta}")
    ratio = Fraction(repr(float(eta))) if eta != float("inf") else Fraction(max(arms, 2))
    sizes = [arms]
    while sizes[-1] > 1:
        sizes.append(min(sizes[-1] - 1, ceil(sizes[-1] / ratio)))
    return tuple(sizes)


def floor_sizes(arms: int, eta: float) -> tuple[int, ...]:
    """Return stage sizes with max(1, ⌊k_t/η⌋) survivors, as the paper's published code has it.

    >>> floor_sizes(5, 2)
    (5, 2, 1)
    """
    ratio = Fraction(repr(float(eta)))
    sizes = [arms]
    while sizes[-1] > 1:
        sizes.append(max(1, min(sizes[-1] - 1, floor(sizes[-1] / ratio))))
    return tuple(sizes)


class Leftover(Protocol):
    """What becomes of the B mod s pulls that do not divide evenly over s stages."""

    def extra(self, rest: int, stages: int) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class ToLastStages:
    """One pull more in each of the last stages."""

    def extra(self, rest: int, stages: int) -> tuple[int, ...]:
        return tuple(int(t >= stages - rest) for t in range(stages))


@dataclass(frozen=True)
class Dropped:
    """Unspent, as Algorithm 1 is printed: every stage has ⌊B/s⌋ pulls."""

    def extra(self, rest: int, stages: int) -> tuple[int, ...]:
        return (0,) * stages


def even_stages(arms: int, budget: int, eta: float, leftover: Leftover) -> tuple[Stage, ...]:
    """Return the stages of Algorithm 1: the budget split evenly, a 1/η fraction kept each time.

    >>> even_stages(8, 100, 2, ToLastStages())
    (Stage(pulls=33, keep=4), Stage(pulls=33, keep=2), Stage(pulls=34, keep=1))
    """
    sizes = stage_sizes(arms, eta)
    count = len(sizes) - 1
    if count == 0:
        return ()
    if budget < count:
        raise BudgetError(
            f"a budget of {budget} cannot give each of {count} stages a pull ({arms} arms, eta = {eta:g}); "
            f"at least {count} pulls are needed, or a larger eta",
            least=count,
        )
    pulls, rest = divmod(budget, count)
    extra = leftover.extra(rest, count)
    return tuple(Stage(pulls + more, keep) for more, keep in zip(extra, sizes[1:], strict=True))
