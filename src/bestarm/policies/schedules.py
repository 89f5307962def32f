"""How a budget and a set of arms are split into stages. A schedule is data one can check by eye."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, floor, fsum
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from bestarm.core import Array, Random
from bestarm.errors import BudgetError, InputError
from bestarm.linalg import Candidates

SLACK = 1e-9  # ⌈3.0000000001⌉ is 3: what exceeds a whole number by less is rounding error of the design


@dataclass(frozen=True)
class Stage:
    """Pull `pulls` times, as the design rounds them, then keep the best `keep` arms."""

    pulls: int
    keep: int

    @property
    def certain(self) -> tuple[int, ...]:
        """The pulls, which are certain beforehand."""
        return (self.pulls,)

    def times(self, design: Any, arms: Candidates, left: Array, rng: Random, targets: Array | None) -> Array | None:
        """Return pulls of each arm `(..., k)`; the stages together need no more than the budget."""
        return design.allocate(arms, self.pulls, rng, targets)


class Surplus(Protocol):
    """What becomes of pulls that rounding up did not need."""

    def extra(self, rest: Array) -> Array:
        """Return how many of the `rest` `(...)` to add to the last round."""
        ...


@dataclass(frozen=True)
class Unspent:
    """Left over (the paper)."""

    def extra(self, rest: Array) -> Array:
        return np.zeros_like(rest)


@dataclass(frozen=True)
class ToLastRound:
    """Added to the last round."""

    def extra(self, rest: Array) -> Array:
        return rest


@dataclass(frozen=True)
class Share:
    """Pull ⌈`pulls` π_i⌉ times by the design π, then keep the best `keep` arms.

    A round never asks for more than is `left`: where rounding up would, what is left is shared out by π instead.
    """

    pulls: float
    keep: int
    surplus: Surplus = Unspent()

    @property
    def certain(self) -> tuple[int, ...]:
        """Nothing: how much rounding up takes depends on the design."""
        return ()

    def times(self, design: Any, arms: Candidates, left: Array, rng: Random, targets: Array | None) -> Array | None:
        """Return pulls of each arm `(..., k)`; None where nothing is left in any replication."""
        left = np.maximum(left, 0)
        if not np.any(left > 0):
            return None
        weights = design.weights(arms, targets)
        times = np.maximum(np.ceil(self.pulls * weights - SLACK).astype(np.int64), 0)
        short = np.sum(times, axis=-1) > left
        if np.any(short):
            times = np.where(short[..., None], apportion(weights, left), times)
        return times + apportion(weights, self.surplus.extra(left - np.sum(times, axis=-1)))


Stages: TypeAlias = tuple[Stage, ...] | tuple[Share, ...]


class Schedule(Protocol):
    """How a budget is split into stages, known before the first pull."""

    @property
    def ratio(self) -> float | None:
        """η where each stage keeps a 1/η part of the arms, rounded up, as the theorem takes for granted; else None."""
        ...

    def stages(self, arms: int, budget: int, dimension: Callable[[], int]) -> Stages:
        """Return the stages; `dimension` finds that of the span of the arms, for those that ask."""
        ...


# ---------------------------------------------------------------------------------------- stages of equal size


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
    ratio = _fraction(eta if eta != float("inf") else max(arms, 2))
    sizes = [arms]
    while sizes[-1] > 1:
        sizes.append(min(sizes[-1] - 1, ceil(sizes[-1] / ratio)))
    return tuple(sizes)


def _fraction(eta: float) -> Any:
    """Return a number as the fraction that it reads as: 1.1 is 11/10."""
    from fractions import Fraction

    return Fraction(repr(float(eta)))


def floor_sizes(arms: int, eta: float) -> tuple[int, ...]:
    """Return stage sizes with max(1, ⌊k_t/η⌋) survivors, as the paper's published code has it.

    >>> floor_sizes(5, 2)
    (5, 2, 1)
    """
    ratio = _fraction(eta)
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
class ToLastStage:
    """All of them in the last stage."""

    def extra(self, rest: int, stages: int) -> tuple[int, ...]:
        return (0,) * (stages - 1) + (rest,)


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


@dataclass(frozen=True)
class EvenStages:
    """As many pulls in each stage, of which the best ⌈k/η⌉ arms stay; any η ≥ K leaves a single stage.   Alg. 1"""

    eta: float = 2.0
    leftover: Leftover = ToLastStages()

    @property
    def ratio(self) -> float | None:
        return self.eta

    def stages(self, arms: int, budget: int, dimension: Callable[[], int]) -> Stages:
        return even_stages(arms, budget, self.eta, self.leftover)


@dataclass(frozen=True)
class FloorHalving:
    """The paper's published code where it differs: ⌊k/η⌋ survivors, hence at times fewer than s = ⌈log_η K⌉ stages.

    The published code pulls ⌈n π_i⌉ times at every stage and so spends 10 % to 100 % more than B. Here a stage may do
    so too, but what it took is gone: a later stage has only what is left, none at all in the worst case, and then the
    leader of the stage before is the answer. What stages that never happen would have had is not spent.

    >>> FloorHalving().shares(arms=5, budget=90)
    ((30, 2), (30, 1))
    """

    eta: float = 2.0
    leftover: Leftover = ToLastStages()
    surplus: Surplus = Unspent()
    ratio: ClassVar[float | None] = None

    def shares(self, arms: int, budget: int) -> tuple[tuple[int, int], ...]:
        """Return the pulls of each stage and how many arms it keeps."""
        stages = even_stages(arms, budget, self.eta, self.leftover)
        sizes = floor_sizes(arms, self.eta) if stages else (1,)
        return tuple((stage.pulls, keep) for stage, keep in zip(stages, sizes[1:], strict=False))

    def stages(self, arms: int, budget: int, dimension: Callable[[], int]) -> Stages:
        return _rounds(self.shares(arms, budget), self.surplus)


@dataclass(frozen=True)
class FloorStages(FloorHalving):
    """The stages of `FloorHalving`, each with exactly its pulls.

    >>> FloorStages().stages(5, 90, lambda: 5)
    (Stage(pulls=30, keep=2), Stage(pulls=30, keep=1))
    """

    def stages(self, arms: int, budget: int, dimension: Callable[[], int]) -> Stages:
        return tuple(Stage(pulls, keep) for pulls, keep in self.shares(arms, budget))


# ------------------------------------------------------------------------------------ stages of other sizes


@dataclass(frozen=True)
class YangTan:
    """m = (B − min(K, d(d+1)/2) − Σ_{r<R} ⌈d/2^r⌉) / R in each of R = ⌈log₂ d⌉ rounds; round r keeps ⌈d/2^r⌉ arms.

    Since Σ_i ⌈m π_i⌉ ≤ m + |support|, the rounds together never need more than B.

    >>> YangTan().shares(arms=64, dimension=10, budget=100)
    ((8.75, 5), (8.75, 3), (8.75, 2), (8.75, 1))
    """

    surplus: Surplus = Unspent()
    ratio: ClassVar[float | None] = None

    def shares(self, arms: int, dimension: int, budget: int) -> tuple[tuple[float, int], ...]:
        """Return m for each round, and how many arms it keeps."""
        if arms == 1:
            return ()
        d = max(dimension, 1)
        rounds = max(1, (d - 1).bit_length())  # ⌈log₂ d⌉ without rounding error
        keep = [-(-d // 2**r) for r in range(1, rounds + 1)]
        reserve = min(arms, d * (d + 1) // 2) + sum(keep[:-1])
        if budget <= reserve:
            raise BudgetError(
                f"OD-LinBAI sets {reserve} pulls aside for rounding up ({arms} arms, {d} dimensions); "
                f"a budget of {budget} leaves none to share out, at least {reserve + 1} pulls are needed",
                least=reserve + 1,
            )
        return tuple(((budget - reserve) / rounds, k) for k in keep)

    def stages(self, arms: int, budget: int, dimension: Callable[[], int]) -> Stages:
        return _rounds(self.shares(arms, dimension(), budget), self.surplus)


def _rounds(shares: tuple[tuple[float, int], ...], surplus: Surplus) -> tuple[Share, ...]:
    rounds = tuple(Share(pulls, keep) for pulls, keep in shares)
    return (*rounds[:-1], replace(rounds[-1], surplus=surplus)) if rounds else ()


def harmonic(arms: int) -> float:
    """Return logbar(K) = 1/2 + Σ_{i=2}^K 1/i, the constant of successive rejects.

    >>> round(harmonic(4), 4)
    1.5833
    """
    return 0.5 + fsum(1 / i for i in range(2, arms + 1))


def reject_stages(arms: int, budget: int) -> tuple[Stage, ...]:
    """Return the phases of successive rejects: n_k = ⌈(B − K)/(logbar(K) (K + 1 − k))⌉ pulls an arm up to phase k.

    Phases that add no pull are joined to the one before: the worst two go at once. With B ≤ K there is a single
    phase, one pull for each of B arms.

    >>> reject_stages(4, 100)
    (Stage(pulls=64, keep=3), Stage(pulls=15, keep=2), Stage(pulls=20, keep=1))
    """
    if arms == 1:
        return ()
    if budget <= arms:
        return (Stage(budget, 1),)
    unit = (budget - arms) / harmonic(arms)
    stages: list[Stage] = []
    before = 0
    for active in range(arms, 1, -1):
        now = ceil(unit / active * (1 - 1e-12))  # a whole quotient must not be rounded up
        if now == before:
            stages[-1] = replace(stages[-1], keep=active - 1)
        else:
            stages.append(Stage((now - before) * active, active - 1))
        before = now
    return tuple(stages)


@dataclass(frozen=True)
class Rejects:
    """One arm leaves after each of K − 1 phases (Audibert, Bubeck and Munos 2010); see `reject_stages`."""

    ratio: ClassVar[float | None] = None

    def stages(self, arms: int, budget: int, dimension: Callable[[], int]) -> Stages:
        return reject_stages(arms, budget)


def apportion(weights: Array, pulls: Array) -> Array:
    """Return whole numbers `(..., k)` near n π_i that sum to n = `pulls` `(...)`, by largest remainders.

    >>> apportion(np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]), np.array([4, 1]))
    array([[2, 1, 1],
           [1, 0, 0]])
    """
    shares = weights * pulls.astype(weights.dtype)[..., None]
    whole = np.floor(shares + SLACK)
    missing = pulls - np.sum(whole, axis=-1).astype(np.int64)
    place = np.argsort(np.argsort(whole - shares, axis=-1, stable=True), axis=-1, stable=True)
    return whole.astype(np.int64) + (place < missing[..., None]).astype(np.int64)
