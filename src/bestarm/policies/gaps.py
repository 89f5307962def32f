"""Rules for plain bandits that weigh the gaps between sample means: UCB-E, adaptive UCB-E and UGapEb.

With sample means m_k of n_k pulls and b the range of the rewards, the intervals are m_k ± b √(a / n_k). The best a
depends on the gaps Δ_k, which nobody knows: it is a number here, or made of the gaps seen so far.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from bestarm.core import Array, Problem, Random
from bestarm.errors import InputError
from bestarm.policies.choices import best_other, closest_race, less_pulled
from bestarm.policies.radii import reward_range
from bestarm.policies.schedules import reject_stages
from bestarm.policies.sequential import Prior, Rule, SequentialState

TINY = 1e-300


def reach(counts: Array, a: Array | float, b: float) -> Array:
    """Return b √(a / n_k) `(..., K)`; infinite for an arm never pulled."""
    seen = counts > 0
    return np.where(seen, b * np.sqrt(a / np.where(seen, counts, 1.0)), np.inf)


def hardness(gaps: Array) -> Array:
    """Return Σ_k gap_k⁻² `(...)`, infinite where a gap is zero."""
    positive = np.all(gaps > 0, axis=-1)
    total = np.sum(1 / np.where(gaps > 0, gaps, 1.0) ** 2, axis=-1)
    return np.where(positive, total, np.inf)


@dataclass(frozen=True)
class UCBE(Rule):
    """argmax_k m_k + b √(a / n_k), after a pull of each (Audibert, Bubeck and Munos 2010, Figure 1).

    `b` None is 2σ, or 1 where the noise is not known.
    """

    a: float = 2.0
    b: float | None = 1.0  # what logs mean that were written before there was a b

    def __post_init__(self) -> None:
        if not self.a >= 0:
            raise InputError(f"a must not be negative; given {self.a}")

    def arm(self, state: SequentialState, rng: Random) -> Array:
        b = reward_range(state.problem) if self.b is None else self.b
        return np.argmax(state.posterior.mean + reach(state.posterior.counts, self.a, b), axis=-1)


class PhaseExploration(NamedTuple):
    """What adaptive UCB-E keeps: how many arms successive rejects would have dropped by now, and the a since then."""

    phase: int
    a: Array  # (...)


@dataclass(frozen=True)
class AdaptiveUCBE(Rule):
    """argmax_k m_k + b √(c B / (H n_k)), H of the gaps at the start of a phase (Audibert et al. 2010, Figure 4).

    Phase k = 1..K−1 begins where phase k of successive rejects ends, with H = max_{K−k+1≤i≤K} i / gap_(i)², gap_(i) the
    i-th smallest of max m − m_k; before, H = K.
    """

    c: float = 1.0
    b: float | None = None

    def __post_init__(self) -> None:
        if not self.c >= 0:
            raise InputError(f"c must not be negative; given {self.c}")

    def begin(self, state: SequentialState, prior: Prior) -> PhaseExploration:
        first = self.c * state.problem.budget / state.problem.arms
        return PhaseExploration(0, np.broadcast_to(np.float64(first), state.problem.batch))

    def learn(self, state: SequentialState) -> PhaseExploration:
        before: PhaseExploration = state.memory
        phase = _phase(state.problem, state.spent)
        if phase == before.phase:
            return before
        mean, arms = state.posterior.mean, state.problem.arms
        gaps = np.sort(np.max(mean, axis=-1, keepdims=True) - mean, axis=-1)[..., arms - phase :]
        place = np.arange(arms - phase + 1, arms + 1)
        # c B / H, with 1 / H = min gap² / i: no gap at all is an infinite H, and nothing is explored
        return PhaseExploration(phase, self.c * state.problem.budget * np.min(gaps * gaps / place, axis=-1))

    def arm(self, state: SequentialState, rng: Random) -> Array:
        b = reward_range(state.problem) if self.b is None else self.b
        index = state.posterior.mean + reach(state.posterior.counts, state.memory.a[..., None], b)
        return np.argmax(index, axis=-1)


def phase_ends(arms: int, budget: int) -> dict[int, int]:
    """Return after how many pulls k arms would be dropped by successive rejects, for each such k.

    >>> phase_ends(4, 100)
    {1: 64, 2: 79, 3: 99}
    """
    ends, spent = {}, 0
    for stage in reject_stages(arms, budget):
        spent += stage.pulls
        ends[arms - stage.keep] = spent
    return ends


def _phase(problem: Problem, spent: int) -> int:
    return max((k for k, end in phase_ends(problem.arms, problem.budget).items() if end <= spent), default=0)


class Exploration(Protocol):
    """How large a is, from sample means and counts."""

    def a(self, problem: Problem, mean: Array, counts: Array, b: float, epsilon: float) -> Array | float:
        """Return a, a number or `(...)`."""
        ...


@dataclass(frozen=True)
class KnownExploration:
    """A number; the theory's is (B − K)/(4 H_ε), see `bounds.ugapeb_exploration`."""

    value: float = 2.0

    def a(self, problem: Problem, mean: Array, counts: Array, b: float, epsilon: float) -> Array | float:
        return self.value


@dataclass(frozen=True)
class GapExploration:
    """c (B − K) / (4 H_ε) with H_ε = Σ_k b² / max((D_k + ε)/2, ε)², D_k = gap_k + b √(1/(2 n_k)).

    gap_k = max m − m_k, and for the leader its distance to the runner-up.
    """

    c: float = 4.0

    def a(self, problem: Problem, mean: Array, counts: Array, b: float, epsilon: float) -> Array | float:
        if b == 0:
            return 0.0  # means are exact, and a is multiplied by b
        gap = np.abs(best_other(mean) - mean) + reach(counts, 0.5, b)
        H = b * b * hardness(np.maximum((gap + epsilon) / 2, epsilon))  # H_ε
        return self.c * max(problem.budget - problem.arms, 0) / (4 * np.maximum(H, TINY))


class SmallestRace(NamedTuple):
    """What UGapEb keeps: the arm to pull next, and the leader when its bound B_J was smallest."""

    arm: Array  # (...)
    bound: Array  # (...)
    best: Array  # (...)


@dataclass(frozen=True)
class UGapE(Rule):
    """The less pulled of J, whose bound B_k = max_{i≠k} U_i − L_k is least, and u = argmax_{k≠J} U_k.

    U, L = m ± b √(a/n) (Gabillon, Ghavamzadeh and Lazaric 2012, one best arm); `exploration` is a. The final part
    `SmallestBound` names J at the round where B_J was least, as printed; `BestEstimate` the largest mean.
    """

    exploration: Exploration = GapExploration()
    epsilon: float = 0.0
    b: float | None = None

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise InputError(f"epsilon must not be negative; given {self.epsilon}")

    def begin(self, state: SequentialState, prior: Prior) -> SmallestRace:
        first = np.zeros(state.problem.batch, dtype=np.int64)
        return SmallestRace(first, np.full(state.problem.batch, np.inf), first)

    def learn(self, state: SequentialState) -> SmallestRace:
        before: SmallestRace = state.memory
        if state.problem.arms == 1:
            return before
        leader, rival, bound = self.look(state)
        better = bound < before.bound
        return SmallestRace(
            less_pulled(state.posterior.counts, leader, rival),
            np.where(better, bound, before.bound),
            np.where(better, leader, before.best),
        )

    def arm(self, state: SequentialState, rng: Random) -> Array:
        return state.memory.arm

    def look(self, state: SequentialState) -> tuple[Array, Array, Array]:
        """Return J, u and B_J `(...)`."""
        problem, mean, counts = state.problem, state.posterior.mean, state.posterior.counts
        b = reward_range(problem) if self.b is None else self.b
        a: Any = self.exploration.a(problem, mean, counts, b, self.epsilon)
        return closest_race(mean, reach(counts, np.asarray(a)[..., None], b))
