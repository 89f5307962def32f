"""Best-arm identification without structure: each arm speaks for itself.

Sequential halving is `Elimination(Means(), Equal(), leftover=Dropped())`; the two sequential classics are here.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np

from bestarm.core import Array, Problem, Pulls, Random, Tally, Totals
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
        count = np.astype(np.count_nonzero(others, axis=-1), mean.dtype)
        return np.sum(np.where(others, mean, np.zeros_like(mean)), axis=-1) / np.maximum(count, np.ones_like(count))


@dataclass(frozen=True)
class WorstOfOthers:
    """The second worst mean: CR-C, the cautious rule."""

    def level(self, mean: Array, others: Array) -> Array:
        return np.min(np.where(others, mean, np.inf), axis=-1)


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
        zero = np.zeros_like(problem.features[..., 0])
        none = np.zeros_like(zero[..., 0])
        return Field(problem, np.ones(zero.shape, dtype=np.bool), zero, zero, none, none, problem.budget)

    def ask(self, state: Field, rng: Random) -> Pulls | None:
        shape = tuple(state.active.shape)
        if state.left == 0 or shape[-1] == 1:
            return None
        if state.left == state.problem.budget:
            everyone = np.broadcast_to(np.arange(shape[-1], dtype=np.int64), shape)
            return Pulls(everyone, random_subset(shape, min(state.left, shape[-1]), rng, state.sums))
        least = np.min(np.where(state.active, state.counts, np.inf), axis=-1, keepdims=True)
        tied = state.active & (state.counts == least)
        mean = state.sums / np.maximum(state.counts, np.ones_like(state.counts))
        arm = np.argmax(np.where(tied, mean, -np.inf), axis=-1)
        return Pulls(arm[..., None], np.ones((*shape[:-1], 1), dtype=np.int64))

    def tell(self, state: Field, pulls: Pulls, totals: Totals) -> Field:
        times = np.astype(pulls.times, totals.sums.dtype)
        counts = accumulate(np.asarray(state.counts, copy=True), pulls.arms, times)
        sums = accumulate(np.asarray(state.sums, copy=True), pulls.arms, totals.sums)
        left = max(state.left - pulls.total, 0)
        return self._reject(replace(state, counts=counts, sums=sums, left=left))

    def recommend(self, state: Field) -> Array:
        mean = _means(Tally(state.counts, state.sums, state.sums))
        return np.argmax(np.where(state.active, mean, -np.inf), axis=-1)

    def _reject(self, state: Field) -> Field:
        mean = state.sums / np.maximum(state.counts, np.ones_like(state.counts))
        worst = np.argmin(np.where(state.active, mean, np.inf), axis=-1)
        pulled = pick(state.counts, worst)
        others = state.active & (np.arange(state.problem.arms, dtype=worst.dtype) != worst[..., None])
        size = np.count_nonzero(others, axis=-1) + 1
        logbar = np.reshape(np.take(np.asarray(_harmonics(state.problem.arms)), np.reshape(size, (-1,))), size.shape)
        inside = np.sum(state.counts, axis=-1) - state.gone
        beta = logbar * np.maximum(inside, np.ones_like(inside)) / (state.problem.budget - state.gone)
        spread = 1.0 if state.problem.noise_variance is None else 2 * state.problem.noise_variance**0.5
        far = self.rival.level(mean, others) - pick(mean, worst) > spread * (1 / np.sqrt(beta) - 1)
        out = far & (pulled > state.bar) & (size > 2)
        if not bool(np.any(out)):
            return state
        return replace(
            state,
            active=np.where(out[..., None], others, state.active),
            gone=np.where(out, state.gone + pulled, state.gone),
            bar=np.where(out, pulled, state.bar),
        )


def _means(known: Tally) -> Array:
    """Return sample means `(..., K)`; an arm without pulls has the mean of all pulls."""
    return Means().fit(Candidates(known.sums, known.sums), known).mean
