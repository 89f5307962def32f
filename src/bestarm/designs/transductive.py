"""Transductive designs: measure any arm so that the worst of some directions is known best."""

from dataclasses import dataclass

from bestarm.core import AnyArray, namespace
from bestarm.designs.directions import Directions, EachPair
from bestarm.iterate import Work, iterate
from bestarm.linalg import Candidates, moment, rows

FLOOR = 1e-6  # share spread over all arms, so that V stays invertible where no direction needs it


@dataclass(frozen=True)
class Transductive:
    """min_π max_y y'V(π)⁻¹y over directions y between target arms, any arm being measurable.

    A saddle point in π and in shares s of the directions. With S = Σ_y s_y y y', the gradient in π_i is
    h_i = x_i'V⁻¹SV⁻¹x_i, and both sides move by multiplication: π_i ∝ π_i √h_i, s_y ∝ s_y · y'V⁻¹y. Convexity gives a
    lower bound 2 tr(V⁻¹S) − max_i h_i on the optimum, so the search stops with a certificate: the best design seen is
    within `tolerance` of it.

    >>> import numpy as np
    >>> soare = np.array([[1.0, 0.0], [0.0, 1.0], [np.cos(0.1), np.sin(0.1)]])
    >>> arms = Candidates.of(soare)
    >>> Transductive().weights(arms, targets=np.array([0, 2]))[1].round(2)  # e_1 against x_ω: measure e_2
    np.float64(0.95)
    """

    directions: Directions = EachPair()
    tolerance: float = 2e-2
    limit: int = 500

    def weights(self, candidates: Candidates, targets: AnyArray | None = None) -> AnyArray:
        """Return the design over all arms for the directions between `targets`."""
        x = candidates.coordinates
        return self.toward(candidates, x if targets is None else rows(x, targets))

    def toward(self, candidates: Candidates, vectors: AnyArray) -> AnyArray:
        """Return the design over all arms for the directions made of `vectors` `(..., m, r)` of the span."""
        work = self._begin(candidates, vectors)
        return iterate(work, self._finished, self._advance, self.limit, candidates.coordinates.shape[:-2])

    def certified(self, candidates: Candidates) -> tuple[AnyArray, float]:
        """Return the design of one set of arms, and its worst direction over the lower bound: 1 at the optimum."""
        work: Work = tuple(part[None, ...] for part in self._begin(candidates, candidates.coordinates))
        for t in range(self.limit):
            if bool(self._finished(work)[0]):
                break
            work = self._advance(t, work, None)
        best, lower = (float(bound) for bound in work[-1][0, :])
        return work[0][0, :], best / lower if lower > 0 else float("inf")

    def _begin(self, candidates: Candidates, targeted: AnyArray) -> Work:
        x = candidates.coordinates
        xp = namespace(x)
        batch = x.shape[:-2]
        w = xp.ones_like(x[..., 0]) / x.shape[-2]
        shares = self.directions.widths(targeted @ xp.matrix_transpose(targeted))
        shares = xp.astype(shares > 1e-20, x.dtype)
        axes = tuple(range(len(batch), shares.ndim))
        total = xp.sum(shares, axis=axes, keepdims=True)
        shares = shares / xp.maximum(total, xp.ones_like(total))
        bounds = xp.stack([xp.inf * xp.ones_like(w[..., 0]), xp.zeros_like(w[..., 0])], axis=-1)
        return w, w, shares, x, targeted, bounds

    def _finished(self, work: Work) -> AnyArray:
        best, lower = work[-1][:, 0], work[-1][:, 1]
        return best <= (1 + self.tolerance) * lower

    def _advance(self, t: int, work: Work, done: AnyArray | None) -> Work:
        best, w, shares, x, targeted, bounds = work
        xp = namespace(w)
        inverse = xp.linalg.inv(moment(x, w))
        widths = self.directions.widths(targeted @ inverse @ xp.matrix_transpose(targeted))
        axes = tuple(range(1, widths.ndim))
        worst = xp.max(widths, axis=axes)
        value = xp.sum(shares * widths, axis=axes)
        pulled = x @ inverse
        gradient = xp.vecdot(pulled @ self.directions.mix(targeted, shares), pulled)
        lower = xp.maximum(bounds[:, 1], 2 * value - xp.max(gradient, axis=-1))
        better = worst < bounds[:, 0] if done is None else (worst < bounds[:, 0]) & ~done
        best = xp.where(better[:, None], w, best)
        upper = xp.where(better, worst, bounds[:, 0])
        narrowed = xp.stack([upper, lower], axis=-1)
        bounds = narrowed if done is None else xp.where(done[:, None], bounds, narrowed)
        safe = xp.where(value > 0, value, xp.ones_like(value))
        shares = shares * widths / xp.reshape(safe, (-1, *(1 for _ in axes)))
        moved = w * xp.sqrt(xp.maximum(gradient, xp.zeros_like(gradient)))
        total = xp.sum(moved, axis=-1, keepdims=True)
        moved = xp.where(total > 0, moved / xp.where(total > 0, total, xp.ones_like(total)), w)
        return best, (1 - FLOOR) * moved + FLOOR / w.shape[-1], shares, x, targeted, bounds
