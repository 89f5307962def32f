"""Best-arm identification without structure: each arm speaks for itself.

Sequential halving is `Elimination(Means(), Equal(), leftover=Dropped())`; the two sequential classics are here.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, fsum
from typing import Protocol

from bestarm.core import Array, Problem, Pulls, Random, Standing, Tally, Totals, namespace
from bestarm.errors import InputError
from bestarm.linalg import Candidates, accumulate, pick, scatter, tally, top
from bestarm.models.means import Means
from bestarm.policies.schedules import Stage


def harmonic(arms: int) -> float:
    """Return 1/2 + Σ_{i=2}^K 1/i, the constant of successive rejects.

    >>> round(harmonic(4), 4)
    1.5833
    """
    return 0.5 + fsum(1 / i for i in range(2, arms + 1))


@lru_cache(maxsize=32)
def _harmonics(arms: int) -> tuple[float, ...]:
    return tuple(harmonic(j) for j in range(arms + 1))


def random_subset(shape: tuple[int, ...], size: int, rng: Random, like: Array) -> Array:
    """Return ones `(..., K)` for a random `size` of the arms, zeros for the others."""
    xp = namespace(like)
    order = xp.argsort(xp.asarray(rng.random(shape)), axis=-1)
    return xp.astype(xp.argsort(order, axis=-1) < size, xp.int64)


@dataclass(frozen=True)
class Equal:
    """The same number ⌊n/k⌋ of pulls for each arm (Karnin, Koren and Somekh 2013); the n mod k left are not spent.

    With fewer pulls than arms, a random n of them have one each: the rule would spend nothing.

    >>> import numpy as np
    >>> Equal().allocate(Candidates.of(np.eye(3)), 8, np.random.default_rng())
    array([2, 2, 2])
    """

    def allocate(self, candidates: Candidates, pulls: int, rng: Random, targets: Array | None = None) -> Array:
        xp = namespace(candidates.features)
        shape = tuple(candidates.features.shape[:-1])
        if pulls < shape[-1]:
            return random_subset(shape, pulls, rng, candidates.features)
        return xp.full(shape, pulls // shape[-1], dtype=xp.int64)


@dataclass(frozen=True)
class ToLastStage:
    """All pulls that do not divide evenly over the stages go to the last one."""

    def extra(self, rest: int, stages: int) -> tuple[int, ...]:
        return (0,) * (stages - 1) + (rest,)


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
class Race:
    """The state of successive rejects: who is still in, and the totals of all K arms so far."""

    problem: Problem
    stages: tuple[Stage, ...]
    stage: int
    active: Array  # (..., k) in increasing order
    known: Tally
    best: Array  # (...)


@dataclass(frozen=True)
class SuccessiveRejects:
    """Drop the arm of the worst mean after each phase (Audibert, Bubeck and Munos 2010)."""

    def start(self, problem: Problem) -> Race:
        xp = namespace(problem.features)
        active = xp.broadcast_to(xp.arange(problem.arms, dtype=xp.int64), problem.features.shape[:-1])
        zero = xp.zeros_like(problem.features[..., 0])
        stages = reject_stages(problem.arms, problem.budget)
        return Race(problem, stages, 0, active, Tally(zero, zero, zero), active[..., 0])

    def ask(self, state: Race, rng: Random) -> Pulls | None:
        if state.stage == len(state.stages):
            return None
        xp = namespace(state.active)
        shape = tuple(state.active.shape)
        each, rest = divmod(state.stages[state.stage].pulls, shape[-1])
        if rest:
            return Pulls(state.active, random_subset(shape, rest, rng, state.active))
        return Pulls(state.active, xp.full(shape, each, dtype=xp.int64))

    def tell(self, state: Race, pulls: Pulls, totals: Totals) -> Race:
        if state.stage == len(state.stages):
            raise InputError("all phases are over: there is nothing left to tell successive rejects")
        xp = namespace(state.active)
        known = state.known + tally(pulls, totals, state.problem.arms)
        mean = xp.take_along_axis(_means(known), state.active, axis=-1)
        places = top(mean, state.stages[state.stage].keep)
        return replace(
            state,
            stage=state.stage + 1,
            active=xp.sort(xp.take_along_axis(state.active, places, axis=-1), axis=-1),
            known=known,
            best=xp.take_along_axis(state.active, places[..., :1], axis=-1)[..., 0],
        )

    def recommend(self, state: Race) -> Array:
        return state.best

    def describe(self, state: Race) -> Standing:
        """Return who is still in, and the phases."""
        active = scatter(state.active, namespace(state.active).ones_like(state.active), state.problem.arms) > 0
        return Standing(active, tuple(stage.pulls for stage in state.stages), state.stage)


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

    def describe(self, state: Field) -> Standing:
        """Return who is still in."""
        return Standing(state.active)


def _means(known: Tally) -> Array:
    """Return sample means `(..., K)`; an arm without pulls has the mean of all pulls."""
    return Means().fit(Candidates(known.sums, known.sums), known).mean
