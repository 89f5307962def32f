"""Draws of the means under the prior that shrinks (`posterior`), whatever the law of the rewards.

Laplace's approximation at each spread τ of a grid, then weights that correct it. With ℓ the likelihood of the law, w
what a reward says of its predictor (`law`) and P the precision of the prior,

    g = Σ_i (S_i − n_i μ_i) w_i x_i − P θ                                                         (1)
    H = Σ_i n_i h'_i w_i x_i x_i' + P                                                             (2)
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bestarm.core import Array, Tally
from bestarm.iterate import uphill
from bestarm.models.many import FEW, Believed, ManyArms, PartDraws
from bestarm.models.posterior import DrawnPosterior, Effects, choose, grid

if TYPE_CHECKING:
    from bestarm.models.law import Law

FREE = 5.0  # standard deviation of a shift of the predictor, in a generalized linear model: hardly a limit
WORTH = 0.1  # weights must leave the worth of this share of the draws, or they are not used
ROOM = 1 << 21  # predictors held at a time
LARGE = 300  # with more coefficients than this a coarser grid must do


def generalized(
    effects: Effects, law: "Law", tally: Tally, noise_variance: float | None, draws: int, rng: Any
) -> Believed:
    """Return what is known of the means: Laplace's approximation at each spread, then weights that correct it.

    The draws come from the mixture of normals around the modes; weighing each by likelihood times prior over the
    density it came from, and drawing again, removes most of what the approximation missed.
    """
    rng = np.random.default_rng(rng)
    z, r = effects.rows, effects.rank
    data = _Data(z, law, tally, noise_variance) if len(z) <= FEW else _pulled(z, law, tally, noise_variance)
    spread, log_weight = grid(0.03, 30.0, 15 if r <= LARGE else 5)
    P = _precisions(effects, spread**2 / effects.size)
    theta, H = _modes(data, P)
    logdet_prior, logdet = np.linalg.slogdet(P)[1], np.linalg.slogdet(H)[1]
    at_mode = data.likelihood(theta) - _square(theta, P) / 2
    chance, at = choose(log_weight + at_mode + (logdet_prior - logdet) / 2, draws, rng)
    root = np.linalg.inv(np.linalg.cholesky(H)).swapaxes(-1, -2)  # root root' = H⁻¹
    noise = rng.standard_normal((draws, r))
    found = theta[at]
    for g in np.unique(at):
        found[at == g] += noise[at == g] @ root[g].T
    if r <= LARGE:
        from scipy.special import logsumexp

        with np.errstate(divide="ignore"):
            prior = logsumexp(log_weight + logdet_prior / 2 - _squares(found, 0 * theta, P) / 2, axis=1)
            from_here = logsumexp(np.log(chance) + logdet / 2 - _squares(found, theta, H) / 2, axis=1)
        found = found[_again(data.likelihoods(found) + prior - from_here, rng)]
    if len(z) > FEW:
        return ManyArms([PartDraws(np.zeros(len(z)), z, found)], rng, value=lambda at: law.value(law.near(at)))
    drawn = law.value(law.near(found @ z.T))
    return DrawnPosterior(drawn, drawn.mean(axis=0))


@dataclass(frozen=True)
class _Data:
    """Rewards of a law at rows `z`, as coefficients θ `(G, r)` see them."""

    z: Array
    law: "Law"
    tally: Tally
    noise_variance: float | None

    def predictor(self, theta: Array) -> Array:
        return self.law.near(theta @ self.z.T)

    def likelihood(self, theta: Array) -> Array:
        return self.law.likelihood(self.predictor(theta), self.tally, self.noise_variance)

    def likelihoods(self, theta: Array) -> Array:
        """Return the same of many coefficients, some at a time."""
        step = max(1, ROOM // max(len(self.z), 1))
        return np.concatenate([self.likelihood(theta[at : at + step]) for at in range(0, len(theta), step)])

    def gradient(self, theta: Array) -> Array:
        at = self.predictor(theta)
        residual = self.tally.sums - self.tally.counts * self.law.value(at)
        return (residual * self.law.weight(at, self.noise_variance)) @ self.z  # Eq. 1, without Pθ

    def curvature(self, theta: Array) -> Array:
        at = self.predictor(theta)
        information = self.tally.counts * self.law.slope(at) * self.law.weight(at, self.noise_variance)
        return (self.z.T * information[:, None, :]) @ self.z  # Eq. 2, without P


def _pulled(z: Array, law: "Law", tally: Tally, noise_variance: float | None) -> _Data:
    """Return the data of the arms pulled alone, of which there are fewer."""
    pulled = tally.counts > 0
    return _Data(z[pulled], law, tally.each(lambda part: part[pulled]), noise_variance)


def _precisions(effects: Effects, variance: Array) -> Array:
    """Return P, the inverse of τ² I + FREE² c c', c the shift, for each τ² `(G, r, r)`."""
    c, variance = effects.shift, variance[:, None, None]
    return (np.eye(len(c)) - FREE**2 * np.outer(c, c) / (variance + FREE**2 * (c @ c))) / variance


def _modes(data: _Data, P: Array) -> tuple[Array, Array]:
    """Return the most probable coefficients under each prior `(G, r)` and the curvature there `(G, r, r)`."""
    theta = np.zeros(P.shape[:2])

    def objective(theta: Array) -> Array:
        return data.likelihood(theta) - _square(theta, P) / 2

    value = objective(theta)
    for _ in range(100):
        gradient = data.gradient(theta) - (P @ theta[..., None])[..., 0]
        step = np.linalg.solve(data.curvature(theta) + P, gradient[..., None])[..., 0]
        length = 1 / np.maximum(np.abs(step @ data.z.T).max(axis=1, initial=0) / 8, 1)
        theta, value = uphill(objective, theta, value, step, length)
        if np.abs(step).max(initial=0) < 1e-8:
            break
    return theta, data.curvature(theta) + P


def _square(theta: Array, precision: Array) -> Array:
    return np.einsum("gi,gij,gj->g", theta, precision, theta)


def _squares(found: Array, middle: Array, precision: Array) -> Array:
    """Return the squared distances `(n, G)` of draws from each middle, measured by each precision."""
    return np.stack([np.vecdot((found - m) @ P, found - m) for m, P in zip(middle, precision, strict=True)], axis=1)


def _again(log_weight: Array, rng: Any) -> Array:
    """Return positions drawn again by weight, evenly; a weight counts at most √n times the mean (Ionides 2008).

    Where a few draws would carry all the weight, as happens with many coefficients, they stay as they are.
    """
    weight = np.exp(log_weight - log_weight.max())
    weight = np.minimum(weight, weight.mean() * np.sqrt(len(weight)))
    if weight.sum() ** 2 < WORTH * len(weight) * np.sum(weight**2):
        return np.arange(len(weight))
    edges = np.cumsum(weight) / weight.sum()
    return np.minimum(np.searchsorted(edges, (np.arange(len(weight)) + rng.random()) / len(weight)), len(weight) - 1)
