"""Best-arm identification without structure: each arm speaks for itself, by its sample mean."""

from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import ClassVar, Protocol

import numpy as np

from bestarm.core import Array, Problem, Pulls, Random, Tally, Totals
from bestarm.linalg import pick, tally
from bestarm.models.means import sample_means
from bestarm.needs import Least
from bestarm.policies.choices import put
from bestarm.policies.radii import known_noise, reward_range
from bestarm.policies.schedules import harmonic
from bestarm.policies.sequential import Prior, Rule, SequentialState
from bestarm.posteriors import Posterior

SMALLEST = 1e-12  # a variance or a squared gap below this part of the largest counts as this part


@dataclass(frozen=True)
class NoPrior:
    """Nothing is known before, and nothing of one arm from another: sample means."""

    wants: ClassVar = Least.ARMS

    @property
    def variance(self) -> float:
        return inf

    def posterior(self, features: Array, noise: float) -> "SampleMeans":
        zero = np.zeros_like(features[..., 0])
        return SampleMeans(Tally(zero, zero, zero))


@dataclass(frozen=True)
class SampleMeans(Posterior):
    """What each arm gave.

    >>> SampleMeans(Tally(np.array([2.0, 1.0, 0.0]), np.array([2.0, 4.0, 0.0]), np.array([2.0, 16.0, 0.0]))).mean
    array([1., 4., 1.])
    """

    tally: Tally

    @property
    def counts(self) -> Array:
        """The pulls of each arm, `(..., K)`."""
        return self.tally.counts

    @property
    def mean(self) -> Array:
        """The sample means; an arm never pulled is taken to be as bad as the worst one."""
        counts, sums = self.tally.counts, self.tally.sums
        seen = counts > 0
        mean = sums / np.where(seen, counts, 1.0)
        worst = np.min(np.where(seen, mean, np.inf), axis=-1, keepdims=True)
        return np.where(seen, mean, np.where(np.isfinite(worst), worst, 0.0))

    @property
    def variance(self) -> Array:
        """Their variances in units of that of a reward; infinite without pulls."""
        with np.errstate(divide="ignore"):
            return 1 / self.tally.counts

    def after(self, pulls: Pulls, totals: Totals) -> "SampleMeans":
        """Return what is known after `pulls` gave `totals`."""
        return SampleMeans(self.tally + tally(pulls, totals, self.counts.shape[-1]))


# -------------------------------------------------------------------------------- optimal budget allocation


class Scatter(Protocol):
    """Where the noise variances come from."""

    def variances(self, problem: Problem, tally: Tally) -> Array: ...


@dataclass(frozen=True)
class SampleVariances:
    """Each arm's own, shrunk to the pooled one as if by `prior` more pulls: a few equal rewards prove nothing."""

    prior: float = 2.0

    def variances(self, problem: Problem, tally: Tally) -> Array:
        one = np.ones_like(tally.counts)
        square = tally.within
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
class OCBA(Rule):
    """The arm furthest below its share of the pulls (Chen, Lin, Yücesan and Chick 2000): argmax_i N_i (t + 1) − n_i.

    The shares N are those of `shares`, for the sample means and the variances that `scatter` makes of the rewards.
    """

    scatter: Scatter = SampleVariances()

    def arm(self, state: SequentialState, rng: Random) -> Array:
        known = state.posterior
        goal = shares(known.mean, self.scatter.variances(state.problem, known.tally)) * (state.spent + 1)
        return np.argmax(goal - known.counts, axis=-1)


# --------------------------------------------------------------------------------------- continuous rejects


class Rival(Protocol):
    """What the worst arm is compared with."""

    def level(self, mean: Array, others: Array) -> Array:
        """Return the level `(...)` of the arms marked in `others` `(..., K)`."""
        ...


@dataclass(frozen=True)
class AverageOfOthers:
    """The average of the other means: CR-A, the bolder rule."""

    def level(self, mean: Array, others: Array) -> Array:
        count = np.astype(np.count_nonzero(others, axis=-1), mean.dtype)
        return np.sum(np.where(others, mean, np.zeros_like(mean)), axis=-1) / np.maximum(count, np.ones_like(count))


@dataclass(frozen=True)
class WorstOfOthers:
    """The second worst mean: CR-C, the cautious rule."""

    def level(self, mean: Array, others: Array) -> Array:
        return np.min(np.where(others, mean, np.inf), axis=-1)


@dataclass(frozen=True)
class Remaining:
    """What continuous rejects keeps: who is active, and what the rejected arms had cost."""

    active: Array  # marks, (..., K)
    gone: Array  # pulls of rejected arms, (...)
    bar: Array  # most pulls of a rejected arm, (...)


@dataclass(frozen=True)
class ContinuousRejection(Rule):
    """Drop the worst arm as soon as it lies far enough below (Wang, Tzeng and Proutière 2023).

    With C the j arms still active and β = logbar(j) Σ_C N / (B − Σ_{not C} N), the worst arm goes when `rival` exceeds
    it by more than 1/√β − 1, once it has more pulls than any arm dropped before. Then the least pulled arm of C is
    pulled, of several the best. The rule is for rewards of standard deviation 1/2 at most, as in [0, 1]: for others
    the threshold is multiplied by 2σ, where the noise level is known.
    """

    rival: Rival

    def active(self, state: SequentialState) -> Array:
        active: Array = state.memory.active
        return active

    def begin(self, state: SequentialState, prior: Prior) -> Remaining:
        none = np.zeros(state.problem.batch)
        return Remaining(np.ones((*state.problem.batch, state.problem.arms), dtype=np.bool), none, none)

    def arm(self, state: SequentialState, rng: Random) -> Array:
        known, active = state.posterior.tally, state.memory.active
        least = np.min(np.where(active, known.counts, np.inf), axis=-1, keepdims=True)
        tied = active & (known.counts == least)
        return np.argmax(np.where(tied, _means(known), -np.inf), axis=-1)

    def learn(self, state: SequentialState) -> Remaining:
        known, problem = state.posterior.tally, state.problem
        before: Remaining = state.memory
        mean = _means(known)
        worst = np.argmin(np.where(before.active, mean, np.inf), axis=-1)
        pulled = pick(known.counts, worst)
        others = before.active & (np.arange(problem.arms, dtype=worst.dtype) != worst[..., None])
        size = np.count_nonzero(others, axis=-1) + 1
        logbar = np.take(_harmonics(problem.arms), size)
        inside = np.sum(known.counts, axis=-1) - before.gone
        beta = logbar * np.maximum(inside, 1.0) / (problem.budget - before.gone)
        below = self.rival.level(mean, others) - pick(mean, worst) > reward_range(problem) * (1 / np.sqrt(beta) - 1)
        out = below & (pulled > before.bar) & (size > 2)
        if not np.any(out):
            return before
        return Remaining(
            active=np.where(out[..., None], others, before.active),
            gone=np.where(out, before.gone + pulled, before.gone),
            bar=np.where(out, pulled, before.bar),
        )


@dataclass(frozen=True)
class BestRemaining:
    """The active arm of largest mean; an arm without pulls has the mean of all pulls."""

    def arm(self, state: SequentialState) -> Array:
        known = state.posterior.tally
        mean = sample_means(known.counts, known.sums)
        return np.argmax(np.where(state.memory.active, mean, -np.inf), axis=-1)


def _means(known: Tally) -> Array:
    """Return sample means `(..., K)`; 0 of an arm without pulls."""
    return known.sums / np.maximum(known.counts, 1.0)


@lru_cache(maxsize=32)
def _harmonics(arms: int) -> Array:
    return np.array([harmonic(j) for j in range(arms + 1)])
