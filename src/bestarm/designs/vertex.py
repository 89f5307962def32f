"""Vertex-direction methods: move mass to the arm of largest leverage, by several step rules.

Frank-Wolfe on the G objective (Algorithm 2) picks the vertex j that maximises (x_j'V⁻¹x_m)², m being the arm of
largest leverage. By Cauchy-Schwarz (x_j'V⁻¹x_m)² ≤ g_j g_m ≤ g_m², with equality at j = m: the arm of largest
leverage itself, the same that Wynn's and Fedorov's methods pick. They differ in the step length only.
"""

from dataclasses import dataclass
from typing import Protocol

from bestarm.core import AnyArray, namespace
from bestarm.iterate import Work, iterate
from bestarm.linalg import Candidates, add_at, leverage, matvec, moment, one_hot, pick, rank, row

REFRESH = 100
GOLDEN = (5**0.5 - 1) / 2


class Step(Protocol):
    """How far to move from π towards the vertex of largest leverage κ: π ← (1 − γ) π + γ e_j."""

    def length(self, t: int, leverage: AnyArray, along: AnyArray, kappa: AnyArray, dimension: AnyArray) -> AnyArray:
        """Return γ `(R,)`; `along` `(R, k)` is x_i'V⁻¹x_j."""
        ...


@dataclass(frozen=True)
class LineSearch:
    """γ that minimises G((1 − γ) π + γ e_j), as Algorithm 2 has it.

    Stalls at the first design where two arms tie for the largest leverage: progress would need x_i'V⁻¹x_j large for
    both at once. On {e_1..e_d, x_ω} it never leaves the uniform design.
    """

    def length(self, t: int, leverage: AnyArray, along: AnyArray, kappa: AnyArray, dimension: AnyArray) -> AnyArray:
        xp = namespace(leverage)

        def worst(gamma: AnyArray) -> AnyArray:
            return xp.max(_after(leverage, along, kappa, gamma), axis=-1)

        low, high = xp.zeros_like(kappa), xp.ones_like(kappa) * (1 - 1e-12)
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        f_left, f_right = worst(left), worst(right)
        for _ in range(48):
            smaller = f_left < f_right
            low, high = xp.where(smaller, low, left), xp.where(smaller, right, high)
            probe = xp.where(smaller, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
            f_probe = worst(probe)
            left, right = xp.where(smaller, probe, right), xp.where(smaller, left, probe)
            f_left, f_right = xp.where(smaller, f_probe, f_right), xp.where(smaller, f_left, f_probe)
        gamma = (low + high) / 2
        better = worst(gamma) < xp.max(leverage, axis=-1) * (1 - 1e-10)
        return xp.where(better, gamma, xp.zeros_like(gamma))


@dataclass(frozen=True)
class OpenLoop:
    """γ_t = 2 / (t + 2 + start): no search, hence no stall."""

    start: float = 2.0

    def length(self, t: int, leverage: AnyArray, along: AnyArray, kappa: AnyArray, dimension: AnyArray) -> AnyArray:
        xp = namespace(kappa)
        return xp.ones_like(kappa) * (2 / (t + 2 + self.start))


@dataclass(frozen=True)
class Wynn:
    """γ_t = 1 / (m + 1) where m is the number of virtual pulls so far (Wynn 1970); the start counts as k of them."""

    def length(self, t: int, leverage: AnyArray, along: AnyArray, kappa: AnyArray, dimension: AnyArray) -> AnyArray:
        xp = namespace(kappa)
        return xp.ones_like(kappa) / (leverage.shape[-1] + t + 1)


@dataclass(frozen=True)
class Fedorov:
    """γ = (κ/d − 1)/(κ − 1), the maximiser of log det V along the edge (Fedorov 1972)."""

    def length(self, t: int, leverage: AnyArray, along: AnyArray, kappa: AnyArray, dimension: AnyArray) -> AnyArray:
        xp = namespace(kappa)
        return xp.maximum(kappa / dimension - 1, xp.zeros_like(kappa)) / (kappa - 1)


@dataclass(frozen=True)
class VertexDirection:
    """Move from the uniform design towards the arm of largest leverage, `iterations` times at most.

    `VertexDirection(LineSearch(), iterations=100, tolerance=0)` is the design part of Algorithm 2, literally.

    >>> import numpy as np
    >>> arms = Candidates.of(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]))
    >>> VertexDirection(Fedorov(), 1000, 1e-3).weights(arms).round(2)
    array([0.5, 0.5, 0. ])
    """

    step: Step
    iterations: int = 1000
    tolerance: float = 1e-2

    def weights(self, candidates: Candidates, targets: AnyArray | None = None) -> AnyArray:
        """Return the design over all arms; `targets` do not change it."""
        x = candidates.coordinates
        xp = namespace(x)
        start = xp.ones_like(x[..., 0]) / x.shape[-2]
        dimension = rank(x)
        inverse = xp.linalg.inv(moment(x, start))
        stalled = xp.zeros_like(dimension)
        work = (start, x, inverse, leverage(x, inverse), dimension, stalled)
        weights = iterate(work, self._finished, self._advance, self.iterations, x.shape[:-2])
        alone = one_hot(xp.argmax(xp.sum(x * x, axis=-1), axis=-1), x.shape[-2], x.dtype)
        return xp.where((dimension == 1)[..., None], alone, weights)

    def _finished(self, work: Work) -> AnyArray:
        _, _, _, g, d, stalled = work
        xp = namespace(g)
        return (xp.max(g, axis=-1) <= (1 + self.tolerance) * d) | (d <= 1) | (stalled > 0)

    def _advance(self, t: int, work: Work, done: AnyArray | None) -> Work:
        w, x, inverse, g, d, stalled = work
        xp = namespace(w)
        j = xp.argmax(g, axis=-1)
        u = matvec(inverse, row(x, j))
        along = matvec(x, u)
        kappa = pick(g, j) if done is None else xp.where(done, 2 * xp.ones_like(d), pick(g, j))
        gamma = self.step.length(t, g, along, kappa, xp.maximum(d, xp.ones_like(d)))
        if done is None:
            stalled = xp.astype(gamma <= 0, stalled.dtype)
        else:
            stalled = xp.where(done, stalled, xp.astype(gamma <= 0, stalled.dtype))
            gamma = xp.where(done, xp.zeros_like(gamma), gamma)
        w = add_at(w * (1 - gamma)[..., None], j, gamma)
        if t % REFRESH == REFRESH - 1:
            fresh = xp.linalg.inv(moment(x, w))
            renewed = leverage(x, fresh)
            if done is not None:
                fresh, renewed = xp.where(done[..., None, None], inverse, fresh), xp.where(done[..., None], g, renewed)
            return w, x, fresh, renewed, d, stalled
        shrink = gamma / (1 - gamma + gamma * kappa)
        inverse = inverse - (shrink[..., None] * u)[..., None] * u[..., None, :]
        inverse = inverse / (1 - gamma)[..., None, None]
        return w, x, inverse, _after(g, along, kappa, gamma), d, stalled


def _after(leverage: AnyArray, along: AnyArray, kappa: AnyArray, gamma: AnyArray) -> AnyArray:
    """Return the leverages after a step γ towards an arm of leverage κ."""
    shrink = gamma / (1 - gamma + gamma * kappa)
    return (leverage - shrink[..., None] * along * along) / (1 - gamma)[..., None]
