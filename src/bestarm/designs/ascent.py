"""D-optimal designs, which are G-optimal too (Kiefer and Wolfowitz 1960): one loop, whatever the steps.

Maximise log det V over designs π. With rank d, V = Σ_i π_i x_i x_i' and leverages g_i = x_i'V⁻¹x_i, Σ_i π_i g_i = d:

    max_i g_i ≤ (1 + tolerance) d                          certifies π, and ends the loop    (1)
    π ← (α π + β e_j) / (α + β)                            a step towards arm j, away if β < 0    (2)
    V⁻¹ ← (V⁻¹ − σ u u') (α + β) / α                       u = V⁻¹x_j, κ = g_j, σ = β/(α + βκ)    (3)
    g_i ← (g_i − σ (x_i'u)²) (α + β) / α                   (4)

Frank-Wolfe on the G objective (Algorithm 2) picks the vertex j that maximises (x_j'V⁻¹x_m)², m being the arm of
largest leverage. By Cauchy-Schwarz (x_j'V⁻¹x_m)² ≤ g_j g_m ≤ g_m², with equality at j = m: the arm of largest
leverage itself, the same that Wynn's and Fedorov's methods pick. They differ in the length only, γ = β = 1 − α.
"""

from dataclasses import dataclass
from typing import Protocol

from bestarm.core import AnyArray, namespace
from bestarm.designs.starts import KumarYildirim, Start
from bestarm.iterate import Work, iterate
from bestarm.linalg import Candidates, add_at, leverage, matvec, moment, one_hot, pick, rank, row
from bestarm.tables.source import beside

REFRESH = 100  # rank-one updates between two inversions: their error stays near 1e-13
GOLDEN = (5**0.5 - 1) / 2


class Step(Protocol):
    """How the loop moves on from a design π; its state is (π, x, whatever stands for V, g, d, ...)."""

    def begin(self, x: AnyArray, w: AnyArray, d: AnyArray) -> Work:
        """Return the state at weights `w` `(..., k)` of arms `x` `(..., k, r)` of rank `d` `(...)`."""
        ...

    def advance(self, t: int, work: Work, done: AnyArray | None) -> Work:
        """Return the state after step t, as `iterate` asks for it; d = 0 says that no step brings more."""
        ...


class ArmByArm:
    """Steps that change the weight of one arm, the one of largest leverage unless `arm` says otherwise."""

    def arm(self, w: AnyArray, g: AnyArray, d: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return j and κ = g_j `(...)`."""
        j = namespace(g).argmax(g, axis=-1)
        return j, pick(g, j)

    def length(self, t: int, g: AnyArray, along: AnyArray, kappa: AnyArray, d: AnyArray) -> AnyArray:
        """Return γ `(...)`; `along` `(..., k)` is x_i'V⁻¹x_j."""
        raise NotImplementedError

    def mixture(self, t: int, g: AnyArray, along: AnyArray, kappa: AnyArray, d: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return α and β `(...)`."""
        gamma = self.length(t, g, along, kappa, d)
        return 1 - gamma, gamma

    def begin(self, x: AnyArray, w: AnyArray, d: AnyArray) -> Work:
        inverse = namespace(x).linalg.inv(moment(x, w))
        return w, x, inverse, leverage(x, inverse), d

    def advance(self, t: int, work: Work, done: AnyArray | None) -> Work:
        w, x, inverse, g, d = work
        xp = namespace(w)
        j, kappa = self.arm(w, g, d)
        u = matvec(inverse, row(x, j))
        along = matvec(x, u)
        if done is None:
            alpha, beta = self.mixture(t, g, along, kappa, d)
        else:
            kappa = xp.where(done, 2.0, kappa)
            alpha, beta = self.mixture(t, g, along, kappa, xp.where(done, 2.0, d))
            alpha, beta = xp.where(done, 1.0, alpha), xp.where(done, 0.0, beta)
        beta = xp.maximum(beta, -alpha * pick(w, j))  # at the least j leaves the support
        left = xp.where(beta == 0, 0.0, d)
        scale, sigma = alpha + beta, beta / (alpha + beta * kappa)
        w = add_at(w * alpha[..., None], j, beta) / scale[..., None]  # Eq. 2
        if t % REFRESH == REFRESH - 1:
            fresh = xp.linalg.inv(moment(x, w))
            renewed = leverage(x, fresh)
            if done is not None:
                fresh, renewed = xp.where(done[..., None, None], inverse, fresh), xp.where(done[..., None], g, renewed)
            return w, x, fresh, renewed, left
        inverse = inverse - (sigma[..., None] * u)[..., None] * u[..., None, :]
        inverse = inverse * scale[..., None, None] / alpha[..., None, None]  # Eq. 3
        g = (g - sigma[..., None] * along * along) * scale[..., None] / alpha[..., None]  # Eq. 4
        return w, x, inverse, g, left


@dataclass(frozen=True)
class VertexExchange(ArmByArm):
    """β/α = (κ − d)/((d − 1) κ) towards the arm of largest leverage, or away from that of least in the support.

    The maximiser of log det V on the line through the vertex, whichever of the two is farther from d (Wolfe 1970,
    Atwood 1973; algorithms in Todd 2016).
    """

    def arm(self, w: AnyArray, g: AnyArray, d: AnyArray) -> tuple[AnyArray, AnyArray]:
        xp = namespace(w)
        high, low = xp.argmax(g, axis=-1), xp.argmin(xp.where(w > 0, g, xp.inf), axis=-1)
        above, below = pick(g, high), pick(g, low)
        toward = above + below >= 2 * d
        return xp.where(toward, high, low), xp.where(toward, above, below)

    def mixture(self, t: int, g: AnyArray, along: AnyArray, kappa: AnyArray, d: AnyArray) -> tuple[AnyArray, AnyArray]:
        return namespace(d).ones_like(d), (kappa - d) / ((d - 1) * kappa)


@dataclass(frozen=True)
class Fedorov(ArmByArm):
    """γ = (κ/d − 1)/(κ − 1), the maximiser of log det V along the edge (Fedorov 1972)."""

    def length(self, t: int, g: AnyArray, along: AnyArray, kappa: AnyArray, d: AnyArray) -> AnyArray:
        return namespace(kappa).maximum(kappa / d - 1, 0.0) / (kappa - 1)


@dataclass(frozen=True)
class Wynn(ArmByArm):
    """γ_t = 1/(m + 1) where m is the number of virtual pulls so far (Wynn 1970); the start counts as k of them."""

    def length(self, t: int, g: AnyArray, along: AnyArray, kappa: AnyArray, d: AnyArray) -> AnyArray:
        return namespace(kappa).ones_like(kappa) / (g.shape[-1] + t + 1)


@dataclass(frozen=True)
class OpenLoop(ArmByArm):
    """γ_t = 2/(t + 2 + start): no search, hence no stall."""

    start: float = 2.0

    def length(self, t: int, g: AnyArray, along: AnyArray, kappa: AnyArray, d: AnyArray) -> AnyArray:
        return namespace(kappa).ones_like(kappa) * (2 / (t + 2 + self.start))


@dataclass(frozen=True)
class LineSearch(ArmByArm):
    """γ that minimises G((1 − γ) π + γ e_j), as Algorithm 2 has it.

    Stalls at the first design where two arms tie for the largest leverage: progress would need x_i'V⁻¹x_j large for
    both at once. On {e_1..e_d, x_ω} it never leaves the uniform design.
    """

    def length(self, t: int, g: AnyArray, along: AnyArray, kappa: AnyArray, d: AnyArray) -> AnyArray:
        xp = namespace(g)

        def worst(gamma: AnyArray) -> AnyArray:
            sigma = gamma / (1 - gamma + gamma * kappa)
            return xp.max((g - sigma[..., None] * along * along) / (1 - gamma)[..., None], axis=-1)  # Eq. 4

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
        better = worst(gamma) < xp.max(g, axis=-1) * (1 - 1e-10)
        return xp.where(better, gamma, xp.zeros_like(gamma))


@dataclass(frozen=True)
class Ascent:
    """Go up log det V from `start`, step by step, until max_i g_i ≤ (1 + tolerance) d.

    The G-efficiency d / max_i g_i is then at least 1 / (1 + tolerance), and so is the D-efficiency. After `limit`
    steps, or where none brings more, the design is what has been reached.
    `Ascent(LineSearch(), Even(), tolerance=0.0, limit=100)` is the design part of Algorithm 2, literally;
    `Ascent(Newton(), tolerance=1e-9)` is for many digits.

    >>> import numpy as np
    >>> Ascent().weights(Candidates.of(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])))
    array([0.5, 0.5, 0. ])
    """

    step: Step = VertexExchange()
    start: Start = KumarYildirim()
    tolerance: float = 1e-2
    limit: int = 100_000

    def weights(self, candidates: Candidates, targets: AnyArray | None = None) -> AnyArray:
        """Return the design over all arms; `targets` do not change it, since it covers every direction."""
        x = candidates.coordinates
        return self.improve(x, self.start.begin(x), rank(x))

    def improve(self, x: AnyArray, w: AnyArray, d: AnyArray) -> AnyArray:
        """Return better weights than `w` `(..., k)`, which span the space, for arms `x` of rank `d` `(...)`."""
        xp = namespace(x)
        work = self.step.begin(x, w, d)
        w = beside(iterate(work, self._finished, self.step.advance, self.limit, x.shape[:-2]), x)
        alone = one_hot(xp.argmax(xp.sum(x * x, axis=-1), axis=-1), x.shape[-2], x.dtype)
        w = xp.where((d == 1)[..., None], alone, w)
        return xp.where((d == 0)[..., None], xp.ones_like(w) / w.shape[-1], w)

    def _finished(self, work: Work) -> AnyArray:
        g, d = work[3:5]
        return (namespace(g).max(g, axis=-1) <= (1 + self.tolerance) * d) | (d <= 1)  # Eq. 1


def certificate(coordinates: AnyArray, weights: AnyArray) -> AnyArray:
    """Return max_i g_i(π) / d `(...)`: 1 at a D- and G-optimal design, never below (Kiefer and Wolfowitz)."""
    xp = namespace(coordinates)
    g = leverage(coordinates, xp.linalg.inv(moment(coordinates, weights)))
    return xp.max(g, axis=-1) / rank(coordinates)
