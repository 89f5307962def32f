"""Peace at a fixed budget (Katz-Samuels, Jain, Karnin and Jamieson 2020): halve a width of the set, not its size."""

from dataclasses import dataclass, replace
from math import prod
from typing import Protocol

import numpy as np

from bestarm.core import Array, Problem, Pulls, Random, Tally, Totals
from bestarm.designs.protocols import Rounding, without_dust
from bestarm.designs.rounding import AutoRound
from bestarm.designs.width import Width, solve_where, spread_out
from bestarm.errors import InputError
from bestarm.linalg import Candidates, dimension, tally
from bestarm.models.linear import Linear
from bestarm.models.protocols import Model
from bestarm.needs import Least, Need
from bestarm.policies.elimination import StageMemory


class Halving(Protocol):
    """How many epochs a width asks for, and how narrow a set must be to go on to the next."""

    def epochs(self, width: Array) -> Array: ...

    def goal(self, width: Array) -> Array: ...


@dataclass(frozen=True)
class Exact:
    """⌈log₂ width⌉ epochs, each of which halves the width (the paper)."""

    def epochs(self, width: Array) -> Array:
        return np.ceil(np.log2(np.maximum(width, 2 * np.ones_like(width))) - 1e-9)

    def goal(self, width: Array) -> Array:
        return width / 2


@dataclass(frozen=True)
class Official:
    """At least two epochs, and no set is asked to be narrower than one (the authors' code)."""

    def epochs(self, width: Array) -> Array:
        return np.ceil(np.log2(np.maximum(width, 4 * np.ones_like(width))) - 1e-9)

    def goal(self, width: Array) -> Array:
        return np.maximum(np.ceil(width / 2), np.ones_like(width))


@dataclass(frozen=True)
class PeaceState:
    """The state: arms in order of promise, how many of them are in, and the design that tells those apart."""

    problem: Problem
    candidates: Candidates  # of all arms
    epoch: int
    epochs: Array  # how many are planned, (...)
    spent: Array  # (...)
    over: Array  # nothing more to pull, (...)
    order: Array  # (..., K), best first; those still in come first
    length: Array  # how many are still in, (...)
    weights: Array  # (..., K)
    width: Array  # (...)
    known: Tally


@dataclass(frozen=True)
class Peace:
    """Measure by the design that makes the width of the set least, then keep the longest prefix of half the width.

    ρ-Peace is `Peace(WorstPair(), Exact(), ThisStage())`; with the Gaussian width and the authors' thresholds it is
    `Peace(GaussianWidth(), Official(), AllStages())`. Any arm may be measured. An epoch has ⌊B/R⌋ pulls. The last one
    has all that is left; it comes sooner where only two arms are in, since no other could follow it. Where a single
    arm is left, what remains of the budget is not spent.
    """

    width: Width
    halving: Halving
    memory: StageMemory
    rounding: Rounding = AutoRound()
    model: Model = Linear()

    def needs(self, problem: Problem) -> Need:
        *_, width = self._whole(problem)
        epochs = max(1, int(np.max(self.halving.epochs(width), initial=1)))
        each = Least.DIMENSIONS.need(problem.arms, dimension(problem.features))
        return Need(epochs * each.pulls, f"{each.why} in each of {epochs} epochs")

    def start(self, problem: Problem) -> PeaceState:
        candidates, order, length, weights, width = self._whole(problem)
        epochs = np.clip(np.astype(self.halving.epochs(width), np.int64), 1, problem.budget)
        zero = np.zeros_like(weights)
        known = Tally(zero, zero, zero)
        spent = np.zeros_like(length)
        return PeaceState(problem, candidates, 0, epochs, spent, length == 1, order, length, weights, width, known)

    def _whole(self, problem: Problem) -> tuple[Candidates, Array, Array, Array, Array]:
        """Return the arms, all of them in, with their design and width."""
        candidates = Candidates.of(problem.features)
        order = np.broadcast_to(np.arange(problem.arms, dtype=np.int64), problem.features.shape[:-1])
        length = np.full(problem.batch, problem.arms, dtype=np.int64)
        return candidates, order, length, *self.width.solve(candidates, order, length)

    def ask(self, state: PeaceState, rng: Random) -> Pulls | None:
        if bool(np.all(state.over)):
            return None
        left = np.maximum(state.problem.budget - state.spent, np.zeros_like(state.spent))
        pulls = np.where(_last(state), left, np.minimum(state.problem.budget // state.epochs, left))
        pulls = np.where(state.over, np.zeros_like(pulls), pulls)
        everyone = np.broadcast_to(np.arange(state.problem.arms, dtype=np.int64), state.order.shape)
        return Pulls(everyone, self._round(state, pulls, rng))

    def tell(self, state: PeaceState, pulls: Pulls, totals: Totals) -> PeaceState:
        if bool(np.all(state.over)):
            raise InputError("all epochs are over: there is nothing left to tell Peace")
        known = self.memory.merge(state.known, tally(pulls, totals, state.problem.arms))
        score = np.take_along_axis(self.model.fit(state.candidates, known).score, state.order, axis=-1)
        within = np.arange(state.problem.arms, dtype=np.int64) < state.length[..., None]
        places = np.argsort(np.where(within, -score, np.inf), axis=-1, stable=True)
        order = np.where(state.over[..., None], state.order, np.take_along_axis(state.order, places, axis=-1))
        spent = state.spent + np.sum(pulls.times, axis=-1)
        over = state.over | _last(state) | (spent >= state.problem.budget)
        after = replace(state, epoch=state.epoch + 1, spent=spent, over=over, order=order, known=known)
        return self._narrow(after)

    def recommend(self, state: PeaceState) -> Array:
        return state.order[..., 0]

    def _narrow(self, state: PeaceState) -> PeaceState:
        """Keep the longest prefix of at most half the width: a wider set is never easier, so bisection finds it."""
        goal = self.halving.goal(state.width) * (1 + self.width.tolerance)
        wanted = ~state.over & (state.width > goal)
        low = np.where(wanted, np.ones_like(state.length), state.length)
        high = np.where(wanted, state.length - 1, state.length)
        weights = np.where(wanted[..., None], np.ones_like(state.weights) / state.problem.arms, state.weights)
        width = np.where(wanted, np.zeros_like(state.width), state.width)
        while bool(np.any(low < high)):
            middle = (low + high + 1) // 2
            w, found = solve_where(self.width, state.candidates, state.order, middle, low < high)
            fits = (low < high) & (found <= goal)
            weights = np.where(fits[..., None], w, weights)
            width = np.where(fits, found, width)
            low, high = np.where(fits, middle, low), np.where(fits | (low == high), high, middle - 1)
        return replace(state, length=low, over=state.over | (low == 1), weights=weights, width=width)

    def _round(self, state: PeaceState, pulls: Array, rng: Random) -> Array:
        """Round replications with the same number of pulls together, `(..., K)`."""
        *batch, arms = state.weights.shape
        size = prod(batch)
        weights = np.reshape(without_dust(state.weights), (size, arms))
        x = np.reshape(state.candidates.coordinates, (size, arms, state.candidates.coordinates.shape[-1]))
        times = np.zeros((size, arms), dtype=np.int64)
        for n in sorted({int(n) for n in np.reshape(pulls, (size,))} - {0}):
            index = np.nonzero(np.reshape(pulls, (size,)) == n)[0]
            some = self.rounding.round(np.take(x, index, axis=0), np.take(weights, index, axis=0), n, rng)
            times = times + spread_out(some, index, (size, arms))
        return np.reshape(times, (*batch, arms))


def _last(state: PeaceState) -> Array:
    return (state.epoch + 1 >= state.epochs) | (state.length <= 2)
