"""OD-LinBAI (Yang and Tan 2022): rounds of ⌈m π_i⌉ pulls, the first of which leaves d/2 arms."""

from dataclasses import dataclass, replace
from typing import Protocol

from bestarm.core import Array, Problem, Pulls, Random, Standing, Tally, Totals, namespace
from bestarm.designs.protocols import Weights
from bestarm.errors import BudgetError, InputError
from bestarm.linalg import Candidates, rank, rows, scatter, tally, top
from bestarm.models.linear import Linear
from bestarm.models.protocols import Model

SLACK = 1e-9  # ⌈3.0000000001⌉ is 3: what exceeds a whole number by less is rounding error of the design


@dataclass(frozen=True)
class Share:
    """Pull ⌈`pulls` π_i⌉ times by the design π, then keep the best `keep` arms."""

    pulls: float
    keep: int


class Plan(Protocol):
    """How a budget is split into rounds."""

    def shares(self, arms: int, dimension: int, budget: int) -> tuple[Share, ...]: ...


@dataclass(frozen=True)
class YangTan:
    """m = (B − min(K, d(d+1)/2) − Σ_{r<R} ⌈d/2^r⌉) / R in each of R = ⌈log₂ d⌉ rounds; round r keeps ⌈d/2^r⌉ arms.

    Since Σ_i ⌈m π_i⌉ ≤ m + |support|, the rounds together never need more than B.

    >>> YangTan().shares(arms=64, dimension=10, budget=100)[0]
    Share(pulls=8.75, keep=5)
    >>> [share.keep for share in YangTan().shares(64, 10, 100)]
    [5, 3, 2, 1]
    """

    def shares(self, arms: int, dimension: int, budget: int) -> tuple[Share, ...]:
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
        return tuple(Share((budget - reserve) / rounds, k) for k in keep)


class Surplus(Protocol):
    """What becomes of pulls that rounding up did not need."""

    def extra(self, rest: Array, last: bool) -> Array:
        """Return how many of the `rest` `(...)` to add to this round."""
        ...


@dataclass(frozen=True)
class Unspent:
    """Left over (the paper)."""

    def extra(self, rest: Array, last: bool) -> Array:
        return namespace(rest).zeros_like(rest)


@dataclass(frozen=True)
class ToLastRound:
    """Added to the last round."""

    def extra(self, rest: Array, last: bool) -> Array:
        return rest if last else namespace(rest).zeros_like(rest)


@dataclass(frozen=True)
class Rounds:
    """The state: who is still in, what has been spent, who leads."""

    problem: Problem
    shares: tuple[Share, ...]
    round: int
    active: Array  # (..., k_r) in increasing order
    candidates: Candidates  # of the active arms
    spent: Array  # (...)
    best: Array  # (...)


@dataclass(frozen=True)
class CeilElimination:
    """Eliminate in rounds of ⌈n_r π_i⌉ pulls, each judged by its own data.

    A round never asks for more than is left: where rounding up would, what is left is shared out by π instead, and
    a replication with nothing left keeps the leader of the last round it could measure. `YangTan` never gets there.
    """

    plan: Plan
    design: Weights
    surplus: Surplus = Unspent()
    model: Model = Linear()

    def start(self, problem: Problem) -> Rounds:
        xp = namespace(problem.features)
        active = xp.broadcast_to(xp.arange(problem.arms, dtype=xp.int64), problem.features.shape[:-1])
        candidates = Candidates.of(problem.features)
        dimension = rank(candidates.coordinates)
        least, most = (int(pick(dimension)) if dimension.size else 1 for pick in (xp.min, xp.max))
        if least != most:
            raise InputError(
                f"replications played together must have features of one rank; given ranks {least} to {most}"
            )
        shares = self.plan.shares(problem.arms, most, problem.budget)
        spent = xp.zeros(problem.batch, dtype=xp.int64)
        return Rounds(problem, shares, 0, active, candidates, spent, active[..., 0])

    def ask(self, state: Rounds, rng: Random) -> Pulls | None:
        xp = namespace(state.spent)
        left = xp.maximum(state.problem.budget - state.spent, xp.zeros_like(state.spent))
        if state.round == len(state.shares) or not bool(xp.any(left > 0)):
            return None
        weights = self.design.weights(state.candidates)
        times = xp.astype(xp.ceil(state.shares[state.round].pulls * weights - SLACK), xp.int64)
        times = xp.maximum(times, xp.zeros_like(times))
        short = xp.sum(times, axis=-1) > left
        if bool(xp.any(short)):
            times = xp.where(short[..., None], apportion(weights, left), times)
        rest = left - xp.sum(times, axis=-1)
        extra = self.surplus.extra(rest, state.round + 1 == len(state.shares))
        return Pulls(state.active, times + apportion(weights, extra))

    def tell(self, state: Rounds, pulls: Pulls, totals: Totals) -> Rounds:
        if state.round == len(state.shares):
            raise InputError("all rounds are over: there is nothing left to tell this elimination")
        xp = namespace(state.active)
        now = tally(pulls, totals, state.problem.arms)
        now = Tally(*(xp.take_along_axis(a, state.active, axis=-1) for a in (now.counts, now.sums, now.squares)))
        places = top(self.model.fit(state.candidates, now).score, state.shares[state.round].keep)
        active = xp.sort(xp.take_along_axis(state.active, places, axis=-1), axis=-1)
        best = xp.take_along_axis(state.active, places[..., :1], axis=-1)[..., 0]
        seen = xp.sum(pulls.times, axis=-1)
        return replace(
            state,
            round=state.round + 1,
            active=active,
            candidates=Candidates.of(rows(state.problem.features, active)),
            spent=state.spent + seen,
            best=xp.where(seen > 0, best, state.best),
        )

    def recommend(self, state: Rounds) -> Array:
        return state.best

    def describe(self, state: Rounds) -> Standing:
        """Return who is still in, and how many rounds are over."""
        active = scatter(state.active, namespace(state.active).ones_like(state.active), state.problem.arms) > 0
        return Standing(active, passed=state.round)


def apportion(weights: Array, pulls: Array) -> Array:
    """Return whole numbers `(..., k)` near n π_i that sum to n = `pulls` `(...)`, by largest remainders.

    >>> import numpy as np
    >>> apportion(np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]), np.array([4, 1]))
    array([[2, 1, 1],
           [1, 0, 0]])
    """
    xp = namespace(weights, pulls)
    shares = weights * xp.astype(pulls, weights.dtype)[..., None]
    whole = xp.floor(shares + SLACK)
    missing = pulls - xp.astype(xp.sum(whole, axis=-1), xp.int64)
    place = xp.argsort(xp.argsort(whole - shares, axis=-1, stable=True), axis=-1, stable=True)
    return xp.astype(whole, xp.int64) + xp.astype(place < missing[..., None], xp.int64)
