"""Rules: which arm to pull next, each beside its equation. `Sequential` asks them, a prior tells them what is known.

A posterior has means m `(..., K)` and covariances C; s_k² = C_kk, and n_k counts pulls.
"""

from dataclasses import dataclass, replace
from math import log, pi, sqrt
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from bestarm.core import Array, Problem, Random
from bestarm.errors import InputError
from bestarm.linalg import Candidates, pick, rank
from bestarm.needs import Least
from bestarm.policies.choices import best_other, closest_race, most_telling, put
from bestarm.policies.choosers import Chooser, GreedyArm
from bestarm.policies.radii import (
    LEAST,
    Confidence,
    Deviation,
    Filippi2010,
    Hoffman,
    IntervalWidth,
    OfNoise,
    Radius,
    RadiusInputs,
    known_noise,
)
from bestarm.policies.sequential import Prior, Rule, SequentialState
from bestarm.posteriors import NormalPosterior, root

# --------------------------------------------------------------------------------------- confidence bounds


@dataclass(frozen=True)
class UCB(Rule):
    """argmax_k m_k + radius · width(s_k²): the arm of largest upper confidence bound.

    With RidgePrior(λ) it is LinUCB (Li et al. 2010; Abbasi-Yadkori et al. 2011), A = λI + Σ x x' and s_k = |x_k|_{A⁻¹};
    with SeparatePrior a regression for each arm; with KernelPrior GP-UCB; with MaximumLikelihood UCB-GLM.
    """

    radius: Radius = OfNoise()
    width: IntervalWidth = Deviation()
    noise_variance: float | None = None

    def begin(self, state: SequentialState, prior: Prior) -> RadiusInputs:
        given = RadiusInputs(state.problem, 1 / prior.variance, self.noise_variance)
        self.radius.of(given, 0)  # refuses now what it would refuse later
        return given

    def arm(self, state: SequentialState, rng: Random) -> Array:
        return np.argmax(self.index(state), axis=-1)

    def index(self, state: SequentialState) -> Array:
        """Return the upper confidence bounds `(..., K)`."""
        radius = np.asarray(self.radius.of(state.memory, state.spent))[..., None]
        return state.posterior.mean + self.width.of(state.posterior.variance) * radius


class Exploring(NamedTuple):
    """What `RandomUntil` keeps: who still explores, the dimension of the span, and what the rule after it keeps."""

    on: Array  # (...)
    rank: Array  # (...)
    then: Any


@dataclass(frozen=True)
class RandomUntil(Rule):
    """Random arms until the least eigenvalue of Σ x x' on the span is `least`, at most `share` of B; `then` a rule."""

    then: Rule = UCB()
    least: float = 1.0
    share: float = 0.5

    def noise(self, problem: Problem) -> float:
        return self.then.noise(problem)

    def begin(self, state: SequentialState, prior: Prior) -> Exploring:
        dimension = rank(Candidates.of(state.problem.features).coordinates).astype(np.int64)
        return Exploring(np.ones(state.problem.batch, dtype=np.bool), dimension, self.then.begin(state, prior))

    def learn(self, state: SequentialState) -> Exploring:
        then = self.then.learn(replace(state, memory=state.memory.then))
        return Exploring(self._goes_on(state), state.memory.rank, then)

    def arm(self, state: SequentialState, rng: Random) -> Array:
        arm = self.then.arm(replace(state, memory=state.memory.then), rng)
        if state.spent >= self.share * state.problem.budget:
            return arm
        draws = rng.random((*state.problem.batch, state.problem.arms))
        return np.where(state.memory.on, np.argmax(draws, axis=-1), arm)

    def _goes_on(self, state: SequentialState) -> Array:
        if state.spent >= self.share * state.problem.budget or not np.any(state.memory.on):
            return np.zeros(state.problem.batch, dtype=np.bool)
        x = state.problem.features
        values = np.linalg.eigvalsh(np.matrix_transpose(x) @ (x * state.posterior.counts[..., None]))
        place = np.clip(x.shape[-1] - state.memory.rank, 0, x.shape[-1] - 1)
        return state.memory.on & (np.take_along_axis(values, place[..., None], axis=-1)[..., 0] < self.least)


@dataclass(frozen=True)
class GLMUCB(UCB):
    """argmax_k h(x_k'θ) + radius · |x_k|_{V⁻¹} (Filippi, Cappé, Garivier and Szepesvári 2010).

    The bonus is added to the mean reward, where UCB-GLM adds it to the predictor x'θ. It asks for `MaximumLikelihood`,
    whose law has the mean function h.
    """

    radius: Radius = Filippi2010()

    def index(self, state: SequentialState) -> Array:
        known = state.posterior
        radius = np.asarray(self.radius.of(state.memory, state.spent))[..., None]
        return known.prior.link.value(known.mean) + self.width.of(known.variance) * radius


# ---------------------------------------------------------------------------------------------- BayesGap


class Look(NamedTuple):
    """What BayesGap sees in a posterior: the arms J and j, and the bound B_J on the regret of J; all `(...)`."""

    leader: Array
    rival: Array
    bound: Array
    beta: Array


class LeastBound(NamedTuple):
    """What BayesGap keeps: the arm to pull next, and the arm that had the smallest bound on its regret so far."""

    precision: Array  # Σ_k 1/C_kk a priori, (...)
    arm: Array  # (...)
    bound: Array  # min_t B_J(t), (...)
    best: Array  # J(t) at that t, (...)


@dataclass(frozen=True)
class BayesGap(Rule):
    """The less certain of J, whose regret bound is least, and j, its best rival (Hoffman et al. 2014).

    U, L = m ± β s, B_k = max_{i≠k} U_i − L_k, J = argmin B_k, j = argmax_{k≠J} U_k, with β from the hardness Σ_k H_k⁻²,
    H_k = max((D_k + ε)/2, ε), where D_k bounds the gap of arm k at three deviations.
    """

    wants: ClassVar = Least.ARMS

    epsilon: float = 1e-3
    confidence: Confidence = Hoffman()
    noise_variance: float | None = None

    def noise(self, problem: Problem) -> float:
        return max(known_noise(problem, self.noise_variance, "BayesGap"), LEAST)

    def begin(self, state: SequentialState, prior: Prior) -> LeastBound:
        variance, first = state.posterior.variance, np.zeros(state.problem.batch, dtype=np.int64)
        varies = variance > 0
        precision = np.sum(varies.astype(variance.dtype) / np.where(varies, variance, 1.0), axis=-1)
        none = LeastBound(precision, first, np.zeros(state.problem.batch) + np.inf, first)
        return self.learn(replace(state, memory=none))

    def arm(self, state: SequentialState, rng: Random) -> Array:
        return state.memory.arm

    def learn(self, state: SequentialState) -> LeastBound:
        before: LeastBound = state.memory
        if state.problem.arms == 1:
            return before
        look = self.look(state.posterior, before.precision, state.problem.budget)
        variance = state.posterior.variance
        surer = pick(variance, look.rival) <= pick(variance, look.leader)
        better = look.bound < before.bound
        return LeastBound(
            before.precision,
            np.where(surer, look.leader, look.rival),
            np.where(better, look.bound, before.bound),
            np.where(better, look.leader, before.best),
        )

    def look(self, posterior: NormalPosterior, precision: Array, budget: int) -> Look:
        """Return J, j and B_J as this posterior has them; `precision` is Σ_k 1/C_kk a priori."""
        mean, width = posterior.mean, self.confidence.of(posterior.variance)
        gaps = best_other(mean + 3 * width)
        gaps -= mean
        gaps += 3 * width + self.epsilon
        gaps = np.maximum(gaps / 2, max(self.epsilon, LEAST))
        scale = max(budget - mean.shape[-1], 0) / posterior.noise + precision  # below K pulls the prior is all there is
        beta = self.confidence.beta(scale, gaps)
        return Look(*closest_race(mean, width * beta[..., None]), beta)


@dataclass(frozen=True)
class SmallestBound:
    """J(t) at the t where the bound B_J(t) was smallest; of fewer pulls than arms the largest estimated mean.

    A bound compares with arms never pulled, of which it knows nothing: the least of such bounds says nothing either.
    """

    def arm(self, state: SequentialState) -> Array:
        known = state.problem.budget >= state.problem.arms
        return state.memory.best if known else np.argmax(state.posterior.mean, axis=-1)


# ----------------------------------------------------------------------------------------------- LinGapE


class Prepared(NamedTuple):
    """What LinGapE keeps: λ, and what its chooser wants to remember of the arms."""

    ridge: float
    arms: Any


@dataclass(frozen=True)
class LinGapE(Rule):
    """What best tells leader i = argmax m from rival j = argmax m_j − m_i + C |x_i − x_j|_{A⁻¹} (Xu et al. 2018).

    A = λI + Σ x x' and C = σ √(2 log(K² det(A/λ)^½ / δ)) + √λ S, times `width`. With a fixed budget nothing stops the
    run early, so δ only says how much uncertainty counts against the estimates.
    """

    chooser: Chooser = GreedyArm()
    delta: float = 0.99
    width: float = 1.0
    bound: float = 1.0
    noise_variance: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.delta <= 1:
            raise InputError(f"delta must lie in (0, 1]; given {self.delta}")

    def begin(self, state: SequentialState, prior: Prior) -> Prepared:
        known_noise(state.problem, self.noise_variance, "LinGapE")
        return Prepared(1 / prior.variance, self.chooser.prepare(state.problem.features))

    def arm(self, state: SequentialState, rng: Random) -> Array:
        return self.chooser.choose(state.posterior, state.memory.arms, *self.pair(state))

    def pair(self, state: SequentialState) -> tuple[Array, Array]:
        """Return the leader i and its most ambiguous rival j, each `(...)`."""
        m = state.posterior.mean
        i = np.argmax(m, axis=-1)
        index = root(state.posterior.distances(i))
        index *= self.radius(state)[..., None]
        index += m
        return i, np.argmax(put(index, i, -np.inf), axis=-1)

    def radius(self, state: SequentialState) -> Array:
        """Return C `(...)`, times `width`."""
        sigma = sqrt(known_noise(state.problem, self.noise_variance, "LinGapE"))
        inside = 2 * log(state.problem.arms**2 / self.delta) + state.posterior.information
        return self.width * (sigma * np.sqrt(inside) + sqrt(state.memory.ridge) * self.bound)


# ----------------------------------------------------------------------------------------------- top two


class Challenger(Protocol):
    """Which arm the leader has most to fear from."""

    def against(self, leader: Array, state: SequentialState) -> Array:
        """Return the challenger `(...)` of `leader` `(...)`."""
        ...


@dataclass(frozen=True)
class Closest:
    """argmin_j (m_i − m_j)² / v_j, v_j = Var(f_i − f_j); arms that cannot be told from the leader i are not close."""

    def against(self, leader: Array, state: SequentialState) -> Array:
        m, variance = state.posterior.mean, state.posterior.variance
        v = state.posterior.distances(leader)
        differs = v > 1e-12 * (variance + pick(variance, leader)[..., None])
        gap = pick(m, leader)[..., None] - m
        cost = np.where(differs, gap * gap / np.where(differs, v, 1.0), np.finfo(v.dtype).max)
        return np.argmin(put(cost, leader, np.inf), axis=-1)


@dataclass(frozen=True)
class Optimistic:
    """argmax_j m_j + `times` σ √v_j, v_j = Var(f_i − f_j) in units of σ²; it needs the noise variance."""

    times: float = 2.0
    noise_variance: float | None = None

    def against(self, leader: Array, state: SequentialState) -> Array:
        sigma = sqrt(known_noise(state.problem, self.noise_variance, "the challenger Optimistic"))
        index = state.posterior.mean + self.times * sigma * root(state.posterior.distances(leader))
        return np.argmax(put(index, leader, -np.inf), axis=-1)


@dataclass(frozen=True)
class TopTwo(Rule):
    """What best tells the leader i = argmax m from its challenger j: argmax_a (C_ai − C_aj)² / (1 + C_aa).

    The prior is in units of the noise variance: only the ratio of the two matters to the estimates, so the noise need
    not be known.
    """

    challenger: Challenger = Closest()

    def arm(self, state: SequentialState, rng: Random) -> Array:
        return most_telling(state.posterior, *self.pair(state))

    def pair(self, state: SequentialState) -> tuple[Array, Array]:
        """Return the leader and its challenger, each `(...)`."""
        leader = np.argmax(state.posterior.mean, axis=-1)
        return leader, self.challenger.against(leader, state)


@dataclass(frozen=True)
class Thompson(Rule):
    """argmax_k f_k of one draw f from the posterior (Thompson 1933)."""

    def arm(self, state: SequentialState, rng: Random) -> Array:
        def normal(shape: tuple[int, ...]) -> Array:
            """Return two normal numbers for each two uniform ones (Box and Muller); `shape` is (2, ..., 1, K)."""
            size = (*state.problem.batch, state.problem.arms)
            radius = np.sqrt(-2 * np.log1p(-rng.random(size)))
            angle = 2 * pi * rng.random(size)
            return np.reshape(np.stack([radius * np.cos(angle), radius * np.sin(angle)]), shape)

        return np.argmax(state.posterior.draw(1, normal)[..., 0, :], axis=-1)
