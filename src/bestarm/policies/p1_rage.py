"""P1-RAGE (Xiong, Camilleri, Fazel, Jain and Jamieson 2024): random pulls that stay fair if the world drifts."""

from dataclasses import dataclass, replace
from math import ceil, prod

import numpy as np

from bestarm.core import Array, Problem, Pulls, Random, Totals
from bestarm.designs.ascent import Ascent
from bestarm.designs.protocols import Weights
from bestarm.designs.transductive import Transductive
from bestarm.designs.width import Width, WorstPair, solve_where
from bestarm.errors import InputError
from bestarm.linalg import Candidates, dimension, matvec, moment, scatter, tally
from bestarm.needs import Least, Need


@dataclass(frozen=True)
class P1RageState:
    """The state: the design pulls are drawn from, and the sum of the estimates each of them gave."""

    problem: Problem
    candidates: Candidates
    block: int
    steady: Array  # the G-optimal half, (..., K)
    weights: Array  # (..., K)
    estimates: Array  # Σ_s V(π_s)⁻¹ x_s r_s in coordinates of the span, (..., r)


def blocks(first: int, budget: int, growth: float) -> tuple[int, ...]:
    """Return how many pulls are drawn between two designs: their total grows by `growth` each time.

    >>> blocks(10, 100, 2.0)
    (10, 10, 20, 40, 20)
    """
    sizes, total = [min(first, budget)], min(first, budget)
    while total < budget:
        sizes.append(min(max(1, ceil(total * (growth - 1))), budget - total))
        total += sizes[-1]
    return tuple(sizes)


@dataclass(frozen=True)
class P1Rage:
    """Draw each pull from ½ G-optimal + ½ the average of XY designs, and estimate by inverse propensity.

    The XY designs are those an elimination would use: level i tells apart the arms whose estimated gap is at most 2⁻ⁱ
    of the largest. They are solved anew whenever the number of pulls has grown by `growth`, not at every pull; between
    two designs the pulls are independent draws from one distribution, so a block of them is asked for at once.
    """

    levels: int = 5
    growth: float = 2.0
    steady: Weights = Ascent()
    width: Width = WorstPair(Transductive(tolerance=0.1))

    def needs(self, problem: Problem) -> Need:
        return Least.DIMENSIONS.need(problem.arms, dimension(problem.features))

    def start(self, problem: Problem) -> P1RageState:
        candidates = Candidates.of(problem.features)
        steady = self.steady.weights(candidates)
        zero = np.zeros_like(candidates.coordinates[..., 0, :])
        return self._design(P1RageState(problem, candidates, 0, steady, steady, zero))

    def ask(self, state: P1RageState, rng: Random) -> Pulls | None:
        sizes = self._blocks(state)
        if state.block == len(sizes):
            return None
        *batch, arms = state.weights.shape
        count = sizes[state.block]
        draws = np.reshape(rng.random((*batch, count)), (prod(batch), count))
        order = np.argsort(-state.weights, axis=-1, stable=True)  # so that names of arms do not matter
        ladder = np.cumulative_sum(np.take_along_axis(state.weights, order, axis=-1), axis=-1)
        ladder = np.reshape(ladder, (prod(batch), arms))
        drawn = [np.searchsorted(ladder[i, :], draws[i, :], side="right") for i in range(prod(batch))]
        index = np.reshape(np.clip(np.stack(drawn), 0, arms - 1), (*batch, count))
        return Pulls(order, scatter(index, np.ones(index.shape, dtype=np.int64), arms))

    def tell(self, state: P1RageState, pulls: Pulls, totals: Totals) -> P1RageState:
        if state.block == len(self._blocks(state)):
            raise InputError("all pulls are drawn: there is nothing left to tell P1-RAGE")
        x = state.candidates.coordinates
        sums = tally(pulls, totals, state.problem.arms).sums
        inverse = np.linalg.inv(moment(x, state.weights))
        estimates = state.estimates + matvec(inverse, matvec(np.matrix_transpose(x), sums))
        return self._design(replace(state, block=state.block + 1, estimates=estimates))

    def recommend(self, state: P1RageState) -> Array:
        return np.argmax(matvec(state.candidates.coordinates, state.estimates), axis=-1)

    def _blocks(self, state: P1RageState) -> tuple[int, ...]:
        if state.problem.arms == 1:
            return ()
        return blocks(2 * min(state.problem.features.shape[-2:]), state.problem.budget, self.growth)

    def _design(self, state: P1RageState) -> P1RageState:
        """Return the state with the design for its estimates; before any, level 0 is all there is."""
        if state.block >= len(self._blocks(state)):
            return state
        score = matvec(state.candidates.coordinates, state.estimates)
        order = np.argsort(-score, axis=-1, stable=True)
        gap = np.max(score, axis=-1, keepdims=True) - score
        most = np.max(gap, axis=-1, keepdims=True)
        current = total = np.zeros_like(state.weights)
        levels = np.zeros_like(total[..., :1])
        before = np.zeros(state.problem.batch, dtype=np.int64)
        for i in range(self.levels if state.block else 1):
            length = np.astype(np.count_nonzero(gap <= most * 2.0**-i, axis=-1), np.int64)
            fresh = (length != before) & (length > 1)
            solved = solve_where(self.width, state.candidates, order, length, fresh)[0]
            current = np.where(fresh[..., None], solved, current)
            counted = np.astype(length > 1, total.dtype)[..., None]
            total, levels, before = total + counted * current, levels + counted, length
        return replace(state, weights=(state.steady + total / levels) / 2)
