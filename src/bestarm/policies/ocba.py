"""Optimal computing budget allocation (Chen, Lin, Yücesan and Chick 2000): sample means, no features."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from bestarm.core import Array, Problem, Pulls, Random, Tally, Totals
from bestarm.errors import InputError
from bestarm.linalg import pick, tally
from bestarm.policies.rules import Answer, BestEstimate, EachOnce, known_noise, once, put

SMALLEST = 1e-12  # a variance or a squared gap below this part of the largest counts as this part


@dataclass(frozen=True)
class Census:
    """The state: what each arm gave, and how many pulls it all took."""

    problem: Problem
    tally: Tally
    spent: int


class Scatter(Protocol):
    """Where the noise variances come from."""

    def variances(self, problem: Problem, tally: Tally) -> Array: ...


@dataclass(frozen=True)
class SampleVariances:
    """Each arm's own, shrunk to the pooled one as if by `prior` more pulls: a few equal rewards prove nothing."""

    prior: float = 2.0

    def variances(self, problem: Problem, tally: Tally) -> Array:
        one = np.ones_like(tally.counts)
        square = tally.squares - tally.sums**2 / np.maximum(tally.counts, one)
        square = np.maximum(square, np.zeros_like(square))
        freedom = np.maximum(tally.counts - 1, np.zeros_like(one))
        total = np.maximum(np.sum(freedom, axis=-1, keepdims=True), np.ones_like(one[..., :1]))
        pooled = np.sum(square, axis=-1, keepdims=True) / total
        pooled = np.where(pooled > 0, pooled, np.ones_like(pooled))
        return (square + self.prior * pooled) / (freedom + self.prior)


@dataclass(frozen=True)
class KnownVariance:
    """The problem's, the same for all arms."""

    def variances(self, problem: Problem, tally: Tally) -> Array:
        noise = known_noise(problem, None, "OCBA with KnownVariance")
        return np.ones_like(tally.sums) * (noise or 1.0)


def shares(mean: Array, variance: Array) -> Array:
    """Return the asymptotically best shares of the budget `(..., K)`, with b the arm of largest `mean`.

    N_i ∝ (σ_i / (μ_b − μ_i))² for i ≠ b and N_b = σ_b √(Σ_{i≠b} N_i²/σ_i²); arms as good as b count as very close.

    >>> import numpy as np
    >>> shares(np.array([2.0, 1.0, 0.0]), np.ones(3)).round(4)  # N_2 = N_1/4 and N_0 = √(1 + 1/16) N_1
    array([0.4519, 0.4384, 0.1096])
    """
    best = np.argmax(mean, axis=-1)
    gap = (pick(mean, best)[..., None] - mean) ** 2
    furthest = np.max(gap, axis=-1, keepdims=True)
    floor = np.where(furthest > 0, SMALLEST * furthest, np.ones_like(furthest))
    ratio = put(variance / np.maximum(gap, floor), best, 0.0)
    ratio = ratio / np.max(ratio, axis=-1, keepdims=True)
    first = np.sqrt(pick(variance, best) * np.sum(ratio**2 / variance, axis=-1))
    ratio = put(ratio, best, first)
    return ratio / np.sum(ratio, axis=-1, keepdims=True)


@dataclass(frozen=True)
class OCBA:
    """Pull each arm `first` times, then always the arm furthest below its share of the pulls; see `shares`.

    >>> import numpy as np
    >>> policy = OCBA(first=2)
    >>> state = policy.start(Problem(np.eye(3), budget=20))
    >>> policy.ask(state, np.random.default_rng(0)).times
    array([2, 2, 2])
    """

    first: int = 5
    scatter: Scatter = SampleVariances()
    answer: Answer = BestEstimate()

    def __post_init__(self) -> None:
        if self.first < 1:
            raise InputError(f"first must be at least 1 pull an arm; given {self.first}")

    def start(self, problem: Problem) -> Census:
        zero = np.zeros_like(problem.features[..., 0])
        return Census(problem, Tally(zero, zero, zero), 0)

    def ask(self, state: Census, rng: Random) -> Pulls | None:
        problem = state.problem
        if state.spent >= problem.budget or problem.arms == 1:
            return None
        if state.spent == 0:
            pulls = EachOnce().pulls(problem, rng)
            assert pulls is not None
            return replace(pulls, times=pulls.times * max(1, min(self.first, problem.budget // problem.arms)))
        counts = state.tally.counts
        goal = shares(self._mean(state), self.scatter.variances(problem, state.tally)) * (state.spent + 1)
        return once(np.argmax(goal - counts, axis=-1))

    def tell(self, state: Census, pulls: Pulls, totals: Totals) -> Census:
        news = tally(pulls, totals, state.problem.arms)
        return replace(state, tally=state.tally + news, spent=state.spent + pulls.total)

    def recommend(self, state: Census) -> Array:
        return self.answer.arm(state.tally.counts, self._mean(state))

    def _mean(self, state: Census) -> Array:
        """Return sample means; an arm never pulled is taken to be as bad as the worst one."""
        counts, sums = state.tally.counts, state.tally.sums
        seen = counts > 0
        mean = sums / np.where(seen, counts, np.ones_like(counts))
        worst = np.min(np.where(seen, mean, np.inf), axis=-1, keepdims=True)
        return np.where(seen, mean, np.where(np.isfinite(worst), worst, np.zeros_like(worst)))
