"""Halving where arms are not equally noisy: SHVar and SHAdaVar (Lalitha, Kalantari, Ma, Deoras and Kveton 2023).

s = ⌈log₂ K⌉ stages of ⌊B/s⌋ pulls, the last has what is left. With N_k the pulls of the stage among its arms A,

    pull argmax_{k in A} σ_k² / N_k,     where σ_k² is known                                       (1)
    pull argmax_{k in A} U_k / N_k,      U_k = v_k / (1 − 2 √(ln(1/δ) / (N_k − 1)))                (2)

v_k is the sample variance, and U_k exceeds σ_k² with probability 1 − δ for normal rewards. The best ⌈|A|/2⌉ means of
the stage stay.
"""

from dataclasses import dataclass, replace
from math import ceil, inf, log
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from bestarm.core import Array, Problem, Random, Tally
from bestarm.errors import InputError
from bestarm.linalg import one_hot, top
from bestarm.needs import Least
from bestarm.policies.schedules import stage_sizes
from bestarm.policies.sequential import Prior, Rule, SequentialState

SMALLEST = 1e-12  # the sample variance of equal rewards counts as this


class Noisiness(Protocol):
    """How noisy each arm is thought to be."""

    def least(self) -> int:
        """Return how many pulls an arm needs before its variance is thought of."""
        ...

    def variances(self, stage: Tally, everything: Tally) -> Array:
        """Return the variances `(..., K)` from the data of the stage, or from all there are."""
        ...


@dataclass(frozen=True)
class KnownVariances:
    """Told, one for each arm in the order of the arms; none told: all the same.   Eq. (1)"""

    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for place, value in enumerate(self.values):
            if not 0 < value < inf:
                raise InputError(f"variances must be positive and finite; that of arm {place} is {value}")

    def least(self) -> int:
        return 0

    def variances(self, stage: Tally, everything: Tally) -> Array:
        if len(self.values) not in {0, stage.counts.shape[-1]}:
            raise InputError(f"{len(self.values)} variances are given for {stage.counts.shape[-1]} arms")
        return np.ones_like(stage.counts) * (np.asarray(self.values) if self.values else 1.0)


@dataclass(frozen=True)
class OfStage:
    """The pulls of the stage alone (the paper)."""

    def of(self, stage: Tally, everything: Tally) -> Tally:
        return stage


@dataclass(frozen=True)
class OfAllPulls:
    """All pulls of the arm, for small budgets."""

    def of(self, stage: Tally, everything: Tally) -> Tally:
        return everything


@dataclass(frozen=True)
class UpperVariances:
    """U, an upper bound on each variance at confidence 1 − δ.   Eq. (2)

    >>> tally = Tally(np.array([50.0]), np.array([0.0]), np.array([49.0]))  # v = 1
    >>> UpperVariances().variances(tally, tally).round(2), UpperVariances().least()
    (array([1.98]), 13)
    """

    delta: float = 0.05
    data: OfStage | OfAllPulls = OfStage()

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise InputError(f"delta must lie between 0 and 1; given {self.delta}")

    def least(self) -> int:
        return ceil(4 * log(1 / self.delta)) + 1  # z

    def variances(self, stage: Tally, everything: Tally) -> Array:
        known = self.data.of(stage, everything)
        freedom = np.maximum(known.counts - 1, 1.0)
        v = np.maximum(known.within / freedom, SMALLEST)
        below = 1 - 2 * np.sqrt(log(1 / self.delta) / freedom)
        bounded = (below > 0) & (known.counts > 1)
        return np.where(bounded, v / np.where(bounded, below, 1.0), np.inf)


class StageOfPulls(NamedTuple):
    """What halving keeps: who is in, since when, and which stages were too short to think of variances."""

    active: Array  # (..., K)
    stage: int
    before: Tally  # all totals when the stage began
    short: tuple[int, ...] = ()  # stages of equal pulls


@dataclass(frozen=True)
class VarianceHalving(Rule):
    """argmax of variance over pulls of the stage among those in; of equals the one pulled less, then a lower index.

    A stage that cannot give every arm `spread.least()` pulls and one more is uniform, and is noted in `short`; of
    fewer pulls than arms a random few have one each.
    """

    wants: ClassVar = Least.STAGES

    spread: Noisiness = KnownVariances()

    def begin(self, state: SequentialState, prior: Prior) -> StageOfPulls:
        everyone = np.ones((*state.problem.batch, state.problem.arms), dtype=np.bool)
        zero = np.zeros_like(state.problem.features[..., 0])
        nothing = Tally(zero, zero, zero)
        self.spread.variances(nothing, nothing)  # refuses now what it would refuse later
        return StageOfPulls(everyone, 0, nothing, self._short(state, 0))

    def active(self, state: SequentialState) -> Array:
        active: Array = state.memory.active
        return active

    def learn(self, state: SequentialState) -> StageOfPulls:
        known: StageOfPulls = state.memory
        tally = state.posterior.tally
        sizes = _sizes(state.problem)
        if state.spent < self._end(state, known.stage) or known.stage == len(sizes) - 1:
            return known
        now = _less(tally, known.before)
        worst = np.where(known.active & (now.counts > 0), now.sums / np.maximum(now.counts, 1.0), -np.inf)
        mean = np.where(known.active & (now.counts == 0), np.finfo(worst.dtype).min, worst)  # unseen: last of those in
        kept = np.sum(one_hot(top(mean, sizes[known.stage + 1]), state.problem.arms), axis=-2) > 0
        short = known.short + self._short(state, known.stage + 1)
        return StageOfPulls(kept, known.stage + 1, tally, short)

    def arm(self, state: SequentialState, rng: Random) -> Array:
        known = state.memory
        now = _less(state.posterior.tally, known.before)
        seen = now.counts > 0
        variance = self.spread.variances(now, state.posterior.tally)
        if known.stage in known.short:
            variance = np.ones_like(variance)
        index = np.where(seen, variance / np.where(seen, now.counts, 1.0), np.inf)
        index = np.where(known.active, index, -np.inf)
        tied = index == np.max(index, axis=-1, keepdims=True)
        fewest = np.where(tied, now.counts, np.inf)
        if known.stage in known.short:  # an order of its own for each pull: whoever is left out is left out by chance
            fewest = fewest + rng.random(fewest.shape) / 2
        return np.argmin(fewest, axis=-1)

    def _end(self, state: SequentialState, stage: int) -> int:
        """Return after how many pulls a stage is over."""
        stages = len(_sizes(state.problem)) - 1
        pulls = state.problem.budget // stages if stages else 0
        return state.problem.budget if stage + 1 >= stages else (stage + 1) * pulls

    def _short(self, state: SequentialState, stage: int) -> tuple[int, ...]:
        sizes = _sizes(state.problem)
        if stage == len(sizes) - 1:
            return ()
        pulls = self._end(state, stage) - (self._end(state, stage - 1) if stage else 0)
        return (stage,) if pulls < (self.spread.least() + 1) * sizes[stage] else ()


def _sizes(problem: Problem) -> tuple[int, ...]:
    """Return how many arms enter each stage, and the one that is left; of fewer pulls than arms one stage is made."""
    return stage_sizes(problem.arms, 2 if problem.budget >= problem.arms else inf)


def _less(now: Tally, before: Tally) -> Tally:
    """Return what came after `before`; the scatter is what `Tally.__add__` would make that of `now` of."""
    later = Tally(now.counts - before.counts, now.sums - before.sums, now.squares - before.squares)
    between = before.counts * later.counts / np.maximum(now.counts, 1.0) * (later.means - before.means) ** 2
    return replace(later, scatter=np.maximum(now.within - before.within - between, 0.0))
