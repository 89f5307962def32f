"""LinGame and LinGame-C (Degenne, Ménard, Shang and Valko 2020), cut at the budget: a game between two learners.

One player spreads pulls w over the arms, the other answers with the alternative λ that these pulls tell least from θ,
under which another arm than the leader i is best. With y_k = x_i − x_k and A(w) = Σ_a w_a x_a x_a',

    k = argmin_{k≠i} (y_k'θ)² / (2 y_k'A(w)⁻¹y_k),   λ = θ − (y_k'θ / y_k'A(w)⁻¹y_k) A(w)⁻¹y_k         (1)
    gain of arm a:   min((|x_a'(θ − λ)| + √(2 c |x_a|²_{V⁻¹}))² / 2, c),   c = ln t,  V = I + Σ x x'      (2)

in units of the noise. The first player is AdaHedge on losses −gain.
"""

from dataclasses import dataclass
from math import log, sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np

from bestarm.core import Array, Random
from bestarm.linalg import Candidates, matvec, moment, one_hot, pick, row
from bestarm.policies.choices import least, put
from bestarm.policies.radii import LEAST, known_noise
from bestarm.policies.sequential import Prior, Rule, SequentialState

RIDGE = 1e-10  # of the mean eigenvalue of A(w), which may be singular
FAINT = 1e-3  # share of a difference that may lie outside what w measures
TWIN = 1e-20  # squared length of a difference that is rounding error, in coordinates of the span


class Hedge(NamedTuple):
    """AdaHedge (de Rooij et al. 2014): p ∝ exp(−η (L − min L)), η = ln n / D."""

    losses: Array  # L, (..., n)
    mixed: Array  # D, (...): what mixing has cost so far

    @classmethod
    def fresh(cls, shape: tuple[int, ...]) -> "Hedge":
        """Return learners that know nothing."""
        return cls(np.zeros(shape), np.full(shape[:-1], 0.01))

    @property
    def rate(self) -> Array:
        """η `(..., 1)`."""
        return (log(self.losses.shape[-1]) / self.mixed)[..., None]

    def play(self) -> Array:
        """Return p `(..., n)`."""
        weights = np.exp(-self.rate * (self.losses - np.min(self.losses, axis=-1, keepdims=True)))
        return weights / np.sum(weights, axis=-1, keepdims=True)

    def after(self, p: Array, loss: Array) -> "Hedge":
        """Return the learners after playing `p` and suffering `loss`, both `(..., n)`."""
        smallest = np.min(loss, axis=-1, keepdims=True)
        inside = np.sum(p * np.exp(-self.rate * (loss - smallest)), axis=-1)
        mix = smallest[..., 0] - np.log(inside) / self.rate[..., 0]
        return Hedge(self.losses + loss, self.mixed + np.maximum(np.vecdot(p, loss) - mix, 0.0))


def worst_alternative(z: Array, w: Array, mean: Array) -> Array:
    """Return x_a'(θ − λ) `(..., K)` for the λ that `w` `(..., K)` tells least from θ; z are coordinates.   Eq. (1)

    Differences that lie outside what w measures are passed over, unless all do; twins of the leader always.

    >>> worst_alternative(np.eye(2), np.array([0.5, 0.5]), np.array([0.5, 0.0]))
    array([ 0.25, -0.25])
    """
    i = np.argmax(mean, axis=-1)
    A = moment(z, w)
    ridge = RIDGE * np.trace(A, axis1=-2, axis2=-1)[..., None] / z.shape[-1]
    y = row(z, i)[..., None, :] - z
    along = y @ np.linalg.inv(A + ridge[..., None] * np.eye(z.shape[-1]))
    squared, norm = np.vecdot(y, y), np.vecdot(along, y)
    differs = squared > TWIN
    gap = pick(mean, i)[..., None] - mean
    cost = np.where(differs, gap * gap / np.where(differs, norm, 1.0), np.inf)
    measured = differs & (norm * ridge <= FAINT * squared)
    some = np.any(measured, axis=-1, keepdims=True)
    k = np.argmin(np.where(measured | ~some, cost, np.inf), axis=-1)
    size = pick(norm, k)
    step = np.where(pick(differs, k), pick(gap, k) / np.where(size > 0, size, 1.0), 0.0)
    return step[..., None] * matvec(z, row(along, k))


class Clip(Protocol):
    """How large a gain may be, and how optimistic."""

    def gains(self, distance: Array, variance: Array, c: float) -> Array:
        """Return gains from |x'(θ − λ)| and |x|²_{V⁻¹}."""
        ...


@dataclass(frozen=True)
class Clipped:
    """At most c = ln t, as the authors' code has it.   Eq. (2)"""

    def gains(self, distance: Array, variance: Array, c: float) -> Array:
        return np.minimum(Unclipped().gains(distance, variance, c), c)


@dataclass(frozen=True)
class Unclipped:
    """As large as they are."""

    def gains(self, distance: Array, variance: Array, c: float) -> Array:
        return (distance + np.sqrt(2 * c * np.maximum(variance, 0.0))) ** 2 / 2


class Played(NamedTuple):
    """What the game keeps: its learners, the sum W of what they played, and what was pulled for it."""

    coordinates: Array  # (..., K, r)
    learners: Hedge
    W: Array | None  # (..., K), or of pairs (..., K, K); None before the first pull
    pairs: Array | None  # pulls counted by pairs of answer and arm, (..., K, K)
    arm: Array  # to pull next, (...)


@dataclass(frozen=True)
class LinGame(Rule):
    """argmin N_a − W_a, W the sum of what the leader's own AdaHedge played against its worst alternative."""

    clip: Clip = Clipped()
    noise_variance: float | None = None

    def begin(self, state: SequentialState, prior: Prior) -> Played:
        self._sigma(state)
        arms = state.problem.arms
        first = np.zeros(state.problem.batch, dtype=np.int64)
        z = Candidates.of(state.problem.features).coordinates
        return Played(z, self._learners((*state.problem.batch, arms)), None, None, first)

    def learn(self, state: SequentialState) -> Played:
        if state.over:
            played: Played = state.memory
            return played
        mean = state.posterior.mean / self._sigma(state)
        return self._round(state.memory, mean, state.posterior, log(max(state.spent, 1)))

    def arm(self, state: SequentialState, rng: Random) -> Array:
        return state.memory.arm

    def _learners(self, shape: tuple[int, ...]) -> Hedge:
        return Hedge.fresh((*shape, shape[-1]))  # one over the arms for each answer

    def _round(self, before: Played, mean: Array, known: Any, c: float) -> Played:
        i = np.argmax(mean, axis=-1)
        own = Hedge(row(before.learners.losses, i), pick(before.learners.mixed, i))
        w = own.play()
        distance = np.abs(worst_alternative(before.coordinates, w, mean))
        own = own.after(w, -self.clip.gains(distance, known.variance, c))
        W = (known.counts if before.W is None else before.W) + w
        learners = Hedge(put(before.learners.losses, i, own.losses), put(before.learners.mixed, i, own.mixed))
        return before._replace(learners=learners, W=W, arm=least(known.counts - W, mean))

    def _sigma(self, state: SequentialState) -> float:
        return sqrt(max(known_noise(state.problem, self.noise_variance, type(self).__name__), LEAST))


@dataclass(frozen=True)
class LinGameC(LinGame):
    """The arm of argmin P − W over pairs of answer and arm, W the sum of what one AdaHedge over the pairs played.

    For the leader λ is as in LinGame, against its own part of the play; for every other answer θ itself is an
    alternative, and λ = θ. P counts the pulls by pairs, from 1.
    """

    def _learners(self, shape: tuple[int, ...]) -> Hedge:
        return Hedge.fresh((*shape[:-1], shape[-1] ** 2))

    def _round(self, before: Played, mean: Array, known: Any, c: float) -> Played:
        arms, i = mean.shape[-1], np.argmax(mean, axis=-1)
        play = before.learners.play()
        shape = (*mean.shape, arms)
        w = np.reshape(play, shape)
        own = row(w, i)
        total = np.sum(own, axis=-1, keepdims=True)
        own = np.where(total > 0, own / np.where(total > 0, total, 1.0), 1 / arms)
        distance = np.abs(worst_alternative(before.coordinates, own, mean))
        everywhere = np.broadcast_to(np.zeros_like(mean)[..., None], shape)
        gains = self.clip.gains(put(everywhere, i, distance), known.variance[..., None, :], c)
        learners = before.learners.after(play, -np.reshape(gains, play.shape))
        W = (1.0 if before.W is None else before.W) + w
        pairs = np.ones(shape) if before.pairs is None else before.pairs
        tied = pairs - W == np.min(pairs - W, axis=(-2, -1), keepdims=True)
        arm = np.argmax(np.where(np.any(tied, axis=-2), mean, -np.inf), axis=-1)
        answer = np.argmax(np.where(row(np.matrix_transpose(tied), arm), mean, -np.inf), axis=-1)
        pairs = pairs + put(np.zeros(shape), answer, one_hot(arm, arms))
        return before._replace(learners=learners, W=W, pairs=pairs, arm=arm)
