"""Best-arm identification without structure: each arm speaks for itself.

Sequential halving is `Elimination(Means(), Equal(), leftover=Dropped())`; the two sequential classics are here.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from bestarm.core import Array, Problem, Pulls, Random, Tally, Totals, namespace
from bestarm.designs.spread import random_subset
from bestarm.linalg import Candidates, accumulate, pick
from bestarm.models.means import Means
from bestarm.policies.schedules import harmonic


@lru_cache(maxsize=32)
def _harmonics(arms: int) -> tuple[float, ...]:
    return tuple(harmonic(j) for j in range(arms + 1))


class Rival(Protocol):
    """What the worst arm is compared with."""

    def level(self, mean: Array, others: Array) -> Array:
        """Return the level `(...)` of the arms marked in `others` `(..., K)`."""
        ...


@dataclass(frozen=True)
class AverageOfOthers:
    """The average of the other means: CR-A, the bolder rule."""

    def level(self, mean: Array, others: Array) -> Array:
        xp = namespace(mean)
        count = xp.astype(xp.count_nonzero(others, axis=-1), mean.dtype)
        return xp.sum(xp.where(others, mean, xp.zeros_like(mean)), axis=-1) / xp.maximum(count, xp.ones_like(count))


@dataclass(frozen=True)
class WorstOfOthers:
    """The second worst mean: CR-C, the cautious rule."""

    def level(self, mean: Array, others: Array) -> Array:
        xp = namespace(mean)
        return xp.min(xp.where(others, mean, xp.inf), axis=-1)


@dataclass(frozen=True)
class Field:
    """The state of continuous rejects: who is still in, what is known, and what the rejected arms had cost."""

    problem: Problem
    active: Array  # (..., K), marks
    counts: Array  # (..., K)
    sums: Array  # (..., K)
    gone: Array  # pulls of rejected arms, (...)
    bar: Array  # most pulls of a rejected arm, (...)
    left: int


@dataclass(frozen=True)
class ContinuousRejects:
    """Drop the worst arm as soon as it lies far enough below (Wang, Tzeng and Proutière 2023).

    With C the j arms still in and β = logbar(j) Σ_C N / (B − Σ_{not C} N), the worst arm goes when `rival` exceeds it
    by more than 1/√β − 1, once it has more pulls than any arm dropped before. Then the least pulled arm of C is
    pulled, of several the best. The rule is for rewards of standard deviation 1/2 at most, as in [0, 1]: for others
    the threshold is multiplied by 2σ, where the noise level is known. With B < K, a random B of the arms have a pull.
    """

    rival: Rival

    def start(self, problem: Problem) -> Field:
        xp = namespace(problem.features)
        zero = xp.zeros_like(problem.features[..., 0])
        none = xp.zeros_like(zero[..., 0])
        return Field(problem, xp.ones(zero.shape, dtype=xp.bool), zero, zero, none, none, problem.budget)

    def ask(self, state: Field, rng: Random) -> Pulls | None:
        xp = namespace(state.counts)
        shape = tuple(state.active.shape)
        if state.left == 0 or shape[-1] == 1:
            return None
        if state.left == state.problem.budget:
            everyone = xp.broadcast_to(xp.arange(shape[-1], dtype=xp.int64), shape)
            return Pulls(everyone, random_subset(shape, min(state.left, shape[-1]), rng, state.sums))
        least = xp.min(xp.where(state.active, state.counts, xp.inf), axis=-1, keepdims=True)
        tied = state.active & (state.counts == least)
        mean = state.sums / xp.maximum(state.counts, xp.ones_like(state.counts))
        arm = xp.argmax(xp.where(tied, mean, -xp.inf), axis=-1)
        return Pulls(arm[..., None], xp.ones((*shape[:-1], 1), dtype=xp.int64))

    def tell(self, state: Field, pulls: Pulls, totals: Totals) -> Field:
        xp = namespace(state.counts)
        times = xp.astype(pulls.times, totals.sums.dtype)
        counts = accumulate(xp.asarray(state.counts, copy=True), pulls.arms, times)
        sums = accumulate(xp.asarray(state.sums, copy=True), pulls.arms, totals.sums)
        left = max(state.left - pulls.total, 0)
        return self._reject(replace(state, counts=counts, sums=sums, left=left))

    def recommend(self, state: Field) -> Array:
        xp = namespace(state.counts)
        mean = _means(Tally(state.counts, state.sums, state.sums))
        return xp.argmax(xp.where(state.active, mean, -xp.inf), axis=-1)

    def _reject(self, state: Field) -> Field:
        xp = namespace(state.counts)
        mean = state.sums / xp.maximum(state.counts, xp.ones_like(state.counts))
        worst = xp.argmin(xp.where(state.active, mean, xp.inf), axis=-1)
        pulled = pick(state.counts, worst)
        others = state.active & (xp.arange(state.problem.arms, dtype=worst.dtype) != worst[..., None])
        size = xp.count_nonzero(others, axis=-1) + 1
        logbar = xp.reshape(xp.take(xp.asarray(_harmonics(state.problem.arms)), xp.reshape(size, (-1,))), size.shape)
        inside = xp.sum(state.counts, axis=-1) - state.gone
        beta = logbar * xp.maximum(inside, xp.ones_like(inside)) / (state.problem.budget - state.gone)
        spread = 1.0 if state.problem.noise_variance is None else 2 * state.problem.noise_variance**0.5
        far = self.rival.level(mean, others) - pick(mean, worst) > spread * (1 / xp.sqrt(beta) - 1)
        out = far & (pulled > state.bar) & (size > 2)
        if not bool(xp.any(out)):
            return state
        return replace(
            state,
            active=xp.where(out[..., None], others, state.active),
            gone=xp.where(out, state.gone + pulled, state.gone),
            bar=xp.where(out, pulled, state.bar),
        )


def _means(known: Tally) -> Array:
    """Return sample means `(..., K)`; an arm without pulls has the mean of all pulls."""
    return Means().fit(Candidates(known.sums, known.sums), known).mean
