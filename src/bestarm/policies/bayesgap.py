"""BayesGap (Hoffman, Shahriari and de Freitas 2014): shrink the gap between the likely best and its likeliest rival."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from bestarm.core import Array, Problem, Pulls, Random, Totals
from bestarm.linalg import pick
from bestarm.policies.belief import Belief, LinearPrior, Prior, root
from bestarm.policies.rules import EachIfCheap, FirstPulls, Race, best_other, heard, known_noise, once, put

LEAST = 1e-12  # a gap, β² or σ² below this counts as this


@dataclass(frozen=True)
class Duel(Race):
    """The state: the arm to pull next, and the arm that had the smallest bound on its regret so far."""

    precision: Array  # Σ_k 1/C_kk a priori, (...)
    arm: Array  # (...)
    bound: Array  # min_t B_J(t), (...)
    best: Array  # J(t) at that t, (...)


class Confidence(Protocol):
    """How sure to be: the unit of the confidence intervals, and how many units they are wide."""

    def width(self, variance: Array) -> Array: ...

    def beta(self, scale: Array, gaps: Array) -> Array:
        """Return β `(...)` from the information at hand `(...)` and the gaps H_k `(..., K)`."""
        ...


@dataclass(frozen=True)
class Hoffman:
    """Standard deviations; β² = ((B − K)/σ² + κ/η²) / (4 Σ_k H_k⁻²)."""

    def width(self, variance: Array) -> Array:
        return root(variance)

    def beta(self, scale: Array, gaps: Array) -> Array:
        squared = scale / (4 * np.sum(1 / (gaps * gaps), axis=-1))
        return np.sqrt(np.maximum(squared, LEAST))


@dataclass(frozen=True)
class Azizi2021:
    """The GSE paper's published code: variances for deviations, Σ_k H_k for Σ_k H_k⁻², and no square root of β²."""

    def width(self, variance: Array) -> Array:
        return variance

    def beta(self, scale: Array, gaps: Array) -> Array:
        plain = scale / (4 * np.sum(gaps, axis=-1))
        return np.maximum(plain, LEAST)


@dataclass(frozen=True)
class Look:
    """What BayesGap sees in a belief: the arms J and j, and the bound B_J on the regret of J; all `(...)`."""

    leader: Array
    rival: Array
    bound: Array
    beta: Array


@dataclass(frozen=True)
class BayesGap:
    """Pull the less certain of J, whose regret bound B_k = max_{i≠k} U_i − L_k is least, and j, the best rival of J.

    U and L are mean ± β widths, with β from the hardness Σ_k H_k⁻², H_k = max((D_k + ε)/2, ε), where D_k bounds the gap
    of arm k at three widths. The answer is J(t) at the t of smallest B_J(t).

    >>> import numpy as np
    >>> policy = BayesGap(first=EachIfCheap(), noise_variance=1.0)
    >>> state = policy.start(Problem(np.eye(2), budget=4))
    >>> pulls = policy.ask(state, np.random.default_rng(0))
    >>> state = policy.tell(state, pulls, Totals(np.array([0.0, 2.0]), np.array([0.0, 4.0])))
    >>> int(policy.recommend(state))
    1
    """

    prior: Prior = LinearPrior()
    epsilon: float = 1e-3
    first: FirstPulls = EachIfCheap()
    confidence: Confidence = Hoffman()
    noise_variance: float | None = None

    def start(self, problem: Problem) -> Duel:
        noise = max(known_noise(problem, self.noise_variance, "BayesGap"), LEAST)
        belief = self.prior.belief(problem.features, noise)
        apart = belief.variance > 0
        inverse = np.astype(apart, belief.mean.dtype) / np.where(apart, belief.variance, np.ones_like(belief.variance))
        zero = belief.mean[..., 0]
        index = np.zeros(problem.batch, dtype=np.int64)
        state = Duel(problem, belief, 0, np.sum(inverse, axis=-1), index, zero + np.inf, index)
        return self._turned(state)

    def ask(self, state: Duel, rng: Random) -> Pulls | None:
        if state.over:
            return None
        first = self.first.pulls(state.problem, rng) if state.spent == 0 else None
        return first if first is not None else once(state.arm)

    def tell(self, state: Duel, pulls: Pulls, totals: Totals) -> Duel:
        return self._turned(heard(state, pulls, totals))

    def recommend(self, state: Duel) -> Array:
        return state.best

    def look(self, belief: Belief, precision: Array, budget: int) -> Look:
        """Return J, j and B_J as this belief has them; `precision` is Σ_k 1/C_kk a priori."""
        mean, width = belief.mean, self.confidence.width(belief.variance)
        gaps = best_other(mean + 3 * width)
        gaps -= mean
        gaps += 3 * width + self.epsilon
        gaps = np.maximum(gaps / 2, max(self.epsilon, LEAST))
        scale = (budget - mean.shape[-1]) / belief.noise + precision
        beta = self.confidence.beta(scale, gaps)
        reach = width * beta[..., None]
        upper = mean + reach
        bounds = best_other(upper)
        bounds -= mean
        bounds += reach
        leader = np.argmin(bounds, axis=-1)
        rival = np.argmax(put(upper, leader, -np.inf), axis=-1)
        return Look(leader, rival, pick(bounds, leader), beta)

    def _turned(self, state: Duel) -> Duel:
        if state.problem.arms == 1:
            return state
        look = self.look(state.belief, state.precision, state.problem.budget)
        surer = pick(state.belief.variance, look.rival) <= pick(state.belief.variance, look.leader)
        better = look.bound < state.bound
        return replace(
            state,
            arm=np.where(surer, look.leader, look.rival),
            bound=np.where(better, look.bound, state.bound),
            best=np.where(better, look.leader, state.best),
        )
