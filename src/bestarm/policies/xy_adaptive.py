"""XY-adaptive (Soare, Lazaric and Munos 2014), cut at the budget: phases that start afresh, each for who is left.

In phase j, with X̂ the arms still in, Ŷ their differences and A = I + Σ x x' over the pulls of the phase alone,

    pull argmin_x max_{y in Ŷ} y'(A + x x')⁻¹y over all arms                                                  (1)
    the phase is over when ρ/n < α ρ_{j−1}/n_{j−1},  ρ = max_{y in Ŷ} y'A⁻¹y,  ρ_0/n_0 = 1/(d(d+1) + 1)       (2)
    x leaves if (x' − x)'θ_j ≥ |x' − x|_{A⁻¹} √(2 ln(π² K² j²/(3δ))) for an x' still in, θ_j = A⁻¹ Σ x r       (3)

in units of the noise.
"""

from dataclasses import dataclass
from math import pi, sqrt
from typing import NamedTuple, Protocol

import numpy as np

from bestarm.core import Array, Random
from bestarm.designs.greedy import tightest
from bestarm.errors import InputError
from bestarm.linalg import Candidates, matvec, rank, rotated
from bestarm.policies.radii import LEAST, known_noise
from bestarm.policies.sequential import Prior, Rule, SequentialState

TWIN = 1e-12  # squared length, relative to those of the arms, of a difference that is rounding error

SLACK = 1e-12  # on basis arms ρ meets its goal exactly


class PhaseLength(Protocol):
    """What must fall by a factor α for a phase to be over."""

    def ratio(self, width: Array, pulls: Array, dimension: Array) -> Array:
        """Return it from ρ, the pulls of the phase and d, all `(...)`."""
        ...


@dataclass(frozen=True)
class LiteralLength:
    """ρ/n with n = d + pulls, ρ not normalised: the pseudo-code and all published programs."""

    def ratio(self, width: Array, pulls: Array, dimension: Array) -> Array:
        return width / (dimension + pulls)


@dataclass(frozen=True)
class NormalisedLength:
    """ρ of the pulls made, which is ρ/n of the design they make up: the text."""

    def ratio(self, width: Array, pulls: Array, dimension: Array) -> Array:
        return width


class Phase(NamedTuple):
    """What XY-adaptive keeps."""

    features: Array  # (..., K, d'), no more columns than arms
    rank: Array  # d, (...)
    active: Array  # X̂, the survivors of the last completed phase, (..., K)
    number: Array  # j, (...)
    goal: Array  # α ρ_{j−1}/n_{j−1}, (...)
    counts: Array  # pulls of each arm before the phase, (..., K)
    sums: Array  # of their rewards
    arm: Array  # to pull next, (...)


@dataclass(frozen=True)
class XYAdaptive(Rule):
    """argmin_x max_y y'(A + x x')⁻¹y over differences y of the arms still in, by phases that each forget the last.

    `alpha` says how far a phase must get, `delta` how sure it must be that an arm leaves. Of arms that tie the one of
    largest leverage is pulled; once a single arm is in, that one.
    """

    delta: float = 0.05
    alpha: float = 0.1
    length: PhaseLength = LiteralLength()
    noise_variance: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("delta", self.delta), ("alpha", self.alpha)):
            if not 0 < value < 1:
                raise InputError(f"{name} must lie between 0 and 1; given {value}")

    def begin(self, state: SequentialState, prior: Prior) -> Phase:
        x = rotated(state.problem.features)
        self._sigma(state)
        d = np.maximum(rank(Candidates.of(x).coordinates), 1.0)
        everyone = np.ones(x.shape[:-1], dtype=np.bool)
        nothing, first = np.zeros_like(x[..., 0]), np.zeros(state.problem.batch, dtype=np.int64)
        fresh = Phase(x, d, everyone, first + 1, self.alpha / (d * (d + 1) + 1), nothing, nothing, first)
        return self._chosen(fresh, nothing)

    def active(self, state: SequentialState) -> Array:
        active: Array = state.memory.active
        return active

    def arm(self, state: SequentialState, rng: Random) -> Array:
        return state.memory.arm

    def learn(self, state: SequentialState) -> Phase:
        phase: Phase = state.memory
        if state.over:  # but who is left after a phase that the last pull completes is told apart as ever
            return self._next(phase, state)
        return self._chosen(self._next(phase, state), state.posterior.counts)

    def _next(self, phase: Phase, state: SequentialState) -> Phase:
        """Return the phase, or the one after it where it is over.   Eqs. (2), (3)"""
        counts, sums = state.posterior.counts, state.posterior.sums
        made = counts - phase.counts
        inverse = _inverse(phase.features, made)
        gram = phase.features @ inverse @ np.matrix_transpose(phase.features)
        width = np.max(_widths(gram, phase.active), axis=(-2, -1))
        ratio = self.length.ratio(width, np.sum(made, axis=-1), phase.rank)
        over = (ratio < phase.goal * (1 - SLACK)) & (np.count_nonzero(phase.active, axis=-1) > 1)
        if not np.any(over):
            return phase
        score = matvec(gram, sums - phase.sums) / self._sigma(state)  # x'θ_j
        left = phase.active & ~self._beaten(phase, score, gram)
        changed = over[..., None]
        return phase._replace(
            active=np.where(changed, left, phase.active),
            number=np.where(over, phase.number + 1, phase.number),
            goal=np.where(over, self.alpha * ratio, phase.goal),
            counts=np.where(changed, counts, phase.counts),
            sums=np.where(changed, sums, phase.sums),
        )

    def _beaten(self, phase: Phase, score: Array, gram: Array) -> Array:
        """Return marks of the arms that an arm still in is sure to be better than, `(..., K)`.   Eq. (3)"""
        arms = score.shape[-1]
        inside = 2 * np.log(pi**2 * arms**2 * phase.number**2 / (3 * self.delta))
        widths = _widths(gram, phase.active)
        gaps = score[..., None, :] - score[..., :, None]  # of the column over the row
        own = np.vecdot(phase.features, phase.features)
        differs = widths > TWIN * (own[..., :, None] + own[..., None, :])
        sure = differs & (gaps > 0) & (gaps >= np.sqrt(widths * inside[..., None, None]))
        return np.any(sure, axis=-1)

    def _chosen(self, phase: Phase, counts: Array) -> Phase:
        """Return the phase with the arm to pull next.   Eq. (1)"""
        x, active = phase.features, phase.active
        inverse = _inverse(x, counts - phase.counts)
        gram = x @ inverse @ np.matrix_transpose(x)
        leverage = np.linalg.diagonal(gram)
        inside = active[..., :, None] & active[..., None, :]
        width = np.where(inside, _widths(gram, active), -1.0)  # a pair that is not in never is the worst
        worst = np.full_like(leverage, -1.0)
        for a in range(active.shape[-1] - 1):  # one arm's pairs at a time: all of them would not fit into a cache
            if np.any(active[..., a]):
                cross = gram[..., a, None, :] - gram[..., a + 1 :, :]
                left = width[..., a, a + 1 :, None] - cross * cross / (1 + leverage)[..., None, :]
                worst = np.maximum(worst, np.max(left, axis=-2))
        arm = tightest(worst, leverage)
        alone = np.count_nonzero(active, axis=-1) == 1
        return phase._replace(arm=np.where(alone, np.argmax(active, axis=-1), arm))

    def _sigma(self, state: SequentialState) -> float:
        return sqrt(max(known_noise(state.problem, self.noise_variance, "XY-adaptive"), LEAST))


def _inverse(features: Array, counts: Array) -> Array:
    """Return A⁻¹, A = I + Σ n_k x_k x_k'."""
    A = np.matrix_transpose(features) @ (features * counts[..., None]) + np.eye(features.shape[-1])
    return np.linalg.inv(A)


def _widths(gram: Array, active: Array) -> Array:
    """Return (x − x')'A⁻¹(x − x') `(..., K, K)` for arms still in, zero for others."""
    own = np.linalg.diagonal(gram)
    both = active[..., :, None] & active[..., None, :]
    return np.where(both, np.maximum(own[..., :, None] + own[..., None, :] - 2 * gram, 0.0), 0.0)
