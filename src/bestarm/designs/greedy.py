"""Sequential greedy allocation (Soare, Lazaric and Munos 2014): one pull at a time, G or XY criterion."""

from dataclasses import dataclass

from bestarm.core import AnyArray, Random, namespace
from bestarm.designs.directions import Directions, EachArm
from bestarm.linalg import Candidates, matvec, one_hot, pick, rank, row, rows


@dataclass(frozen=True)
class Greedy:
    """Pull next the arm x that minimises max_y y'(A + x x')⁻¹ y, n times.

    A starts at ρ I in coordinates of the span, ρ = `ridge` times the mean squared norm. Whenever two directions share
    the maximum every candidate ties, and first-index ties would pull one basis arm for ever: ties go to the candidate
    of largest leverage.

    >>> import numpy as np
    >>> Greedy().allocate(Candidates.of(np.eye(4)), 9, np.random.default_rng())
    array([3, 2, 2, 2])
    """

    directions: Directions = EachArm()
    ridge: float = 1e-3

    def allocate(self, candidates: Candidates, pulls: int, rng: Random, targets: AnyArray | None = None) -> AnyArray:
        x = candidates.coordinates
        xp = namespace(x)
        arms = x.shape[-2]
        y = self.directions.of(x if targets is None else rows(x, targets))
        times = xp.zeros(x.shape[:-1], dtype=xp.int64)
        if y.shape[-2] == 0:
            return times + pulls * one_hot(xp.zeros(x.shape[:-2], dtype=xp.int64), arms, xp.int64)
        rho = self.ridge * xp.maximum(rank(x), xp.ones_like(x[..., 0, 0]))[..., None, None] / arms
        transposed = xp.matrix_transpose(x)
        own, cross = (x @ transposed) / rho, (y @ transposed) / rho
        leverage = xp.vecdot(x, x) / rho[..., 0]
        width = xp.vecdot(y, y) / rho[..., 0]
        for _ in range(pulls):
            left = width[..., :, None] - cross * cross / (1 + leverage)[..., None, :]
            a = tightest(xp.max(left, axis=-2), leverage)
            scale = 1 / (1 + pick(leverage, a))[..., None]
            own_a = row(own, a)
            cross_a = matvec(cross, one_hot(a, arms, x.dtype))
            cross = cross - cross_a[..., :, None] * (own_a * scale)[..., None, :]
            own = own - own_a[..., :, None] * (own_a * scale)[..., None, :]
            leverage = leverage - own_a * own_a * scale
            width = width - cross_a * cross_a * scale
            times = times + one_hot(a, arms, xp.int64)
        return times


def tightest(worst: AnyArray, leverage: AnyArray) -> AnyArray:
    """Return the arm `(...)` of least `worst` = max_y y'(A + x x')⁻¹y `(..., K)`; of several, of largest leverage."""
    xp = namespace(worst)
    best = xp.min(worst, axis=-1, keepdims=True)
    tied = worst <= best * (1 + 1e-9)
    return xp.argmax(xp.where(tied, leverage, -xp.ones_like(leverage)), axis=-1)
