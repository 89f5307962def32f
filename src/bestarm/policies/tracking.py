"""Lazy track-and-stop (Jedra and Proutière 2020), cut at the budget: pull as often as the best allocation would.

With y_k = x_i − x_k for the leader i and A(w) = Σ_a w_a x_a x_a', that allocation is

    w* = argmax_w min_{k≠i} (y_k'θ)² / (2 y_k'A(w)⁻¹y_k).                                         (1)
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bestarm.core import Array, Random
from bestarm.designs.directions import EachArm
from bestarm.designs.starts import spanning
from bestarm.designs.transductive import Transductive
from bestarm.linalg import Candidates, pick, rank, row
from bestarm.policies.choices import least
from bestarm.policies.sequential import Prior, Rule, SequentialState

SLACK = 1e-12  # eigenvalues of arms of length one tie with the threshold


def best_allocation(candidates: Candidates, mean: Array, before: Array, design: Transductive) -> Array:
    """Return w* `(..., K)` for estimated means; `before` where arms that differ tie for the best.   Eq. (1)

    Its reciprocal is 2 min_w max_k z_k'A(w)⁻¹z_k with z_k = y_k / y_k'θ, a transductive design.
    """
    x = candidates.coordinates
    i = np.argmax(mean, axis=-1)
    y = row(x, i)[..., None, :] - x
    gap = pick(mean, i)[..., None] - mean
    differs = np.vecdot(y, y) > SLACK * (np.vecdot(x, x) + pick(np.vecdot(x, x), i)[..., None])
    tie = np.any(differs & (gap <= 0), axis=-1)
    z = np.where(differs[..., None], y, 0.0) / np.where(gap > 0, gap, 1.0)[..., None]
    longest = np.max(np.abs(z), axis=(-2, -1), keepdims=True)
    found = design.toward(candidates, z / np.where(longest > 0, longest, 1.0))
    return np.where((tie | (longest[..., 0, 0] == 0))[..., None], before, found)


class Targets(NamedTuple):
    """What lazy track-and-stop keeps; W is the sum of the allocations w so far."""

    candidates: Candidates
    basis: Array  # A_0, the arms that span in order of length, then all others, (..., K)
    rank: Array  # d, (...)
    threshold: Array  # c_0, (...)
    turn: Array  # i_0, which of the d is forced next, (...)
    w: Array  # (..., K)
    W: Array  # (..., K)
    arm: Array  # to pull next, (...)
    seen: int | None = None  # pulls when w was last looked at


@dataclass(frozen=True)
class LazyTrackAndStop(Rule):
    """argmin N_a − W_a over W_a > 0, W the sum of the w* so far; one of d spanning arms while λ_min(V) < c_0 √t.

    w* is solved for anew whenever t passes a power of two. c_0 = λ_min(Σ x x' over the d arms) / √d, and the d arms
    take turns. The rule knows no δ, and the noise does not matter to it.
    """

    design: Transductive = Transductive(EachArm(), tolerance=1e-2, limit=1000)

    def begin(self, state: SequentialState, prior: Prior) -> Targets:
        x = state.problem.features
        candidates, basis = Candidates.of(x), spanning(x)
        d = np.maximum(rank(candidates.coordinates), 1.0)
        order = np.argsort(-basis * (1 + np.vecdot(x, x)), axis=-1, stable=True)
        zero, first = np.zeros_like(basis), np.zeros(state.problem.batch, dtype=np.int64)
        threshold = least_eigenvalue(x, basis, d) / np.sqrt(d)
        return Targets(candidates, order, d, threshold, first, zero + 1 / state.problem.arms, zero, first)

    def learn(self, state: SequentialState) -> Targets:
        known: Targets = state.memory
        if state.over:
            return known
        t, counts, mean = state.spent, state.posterior.counts, state.posterior.mean
        seen = t - 1 if known.seen is None else known.seen
        w = known.w
        if t.bit_length() > seen.bit_length():
            w = best_allocation(known.candidates, mean, w, self.design)  # Eq. (1)
        W = known.W + w
        weak = least_eigenvalue(state.problem.features, counts, known.rank) < known.threshold * np.sqrt(t) - SLACK
        forced = np.take_along_axis(known.basis, known.turn[..., None], axis=-1)[..., 0]
        tracked = least(np.where(W > 0, counts - W, np.inf), mean)
        turn = np.where(weak, (known.turn + 1) % known.rank.astype(np.int64), known.turn)
        return known._replace(turn=turn, w=w, W=W, arm=np.where(weak, forced, tracked), seen=t)

    def arm(self, state: SequentialState, rng: Random) -> Array:
        return state.memory.arm


def least_eigenvalue(features: Array, counts: Array, dimension: Array) -> Array:
    """Return the least eigenvalue of Σ n_k x_k x_k' on the span, of `dimension` `(...)`."""
    values = np.linalg.eigvalsh(np.matrix_transpose(features) @ (features * counts[..., None]))
    place = np.clip(features.shape[-1] - dimension.astype(np.int64), 0, features.shape[-1] - 1)
    return np.take_along_axis(values, place[..., None], axis=-1)[..., 0]
