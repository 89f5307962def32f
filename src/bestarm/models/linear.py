"""Linear rewards: μ_i = x_i'θ, fitted by least squares on per-arm counts and sums."""

from dataclasses import dataclass
from typing import Protocol

from bestarm.core import Array, Tally, namespace
from bestarm.linalg import Candidates, leverage, matvec, moment, rank, symmetric_inverse
from bestarm.models.protocols import Fit


class Solver(Protocol):
    """How V = Σ_i n_i x_i x_i' is inverted when it may be singular."""

    def invert(self, candidates: Candidates, counts: Array) -> tuple[Array, Array]:
        """Return the features to regress on `(..., k, r)` and V⁻¹ `(..., r, r)` in their terms."""
        ...


@dataclass(frozen=True)
class Projected:
    """Work in coordinates of the span of the arms (the paper's choice).

    Where the arms pulled do not span it, the answer is the least-squares solution of smallest norm in these
    coordinates, which does not depend on how the features are scaled or mixed.
    """

    def invert(self, candidates: Candidates, counts: Array) -> tuple[Array, Array]:
        z = candidates.coordinates
        return z, symmetric_inverse(moment(z, counts))


@dataclass(frozen=True)
class PseudoInverse:
    """Keep the features and take the pseudo-inverse of V (the paper's alternative); equal on valid allocations."""

    def invert(self, candidates: Candidates, counts: Array) -> tuple[Array, Array]:
        x = candidates.features
        return x, symmetric_inverse(namespace(x).matrix_transpose(x) @ (x * counts[..., None]))


@dataclass(frozen=True)
class Ridge:
    """Add `strength` I to V: a prior θ ~ N(0, σ²/strength I) on the features as given."""

    strength: float = 1.0

    def invert(self, candidates: Candidates, counts: Array) -> tuple[Array, Array]:
        x = candidates.features
        xp = namespace(x)
        V = xp.matrix_transpose(x) @ (x * counts[..., None])
        return x, xp.linalg.inv(V + self.strength * xp.eye(x.shape[-1], dtype=x.dtype))


@dataclass(frozen=True)
class Linear:
    """θ = V⁻¹ b with V = Σ_i n_i x_i x_i' and b = Σ_i x_i S_i; μ_i = x_i'θ.   Eq. (1)

    >>> import numpy as np
    >>> arms = Candidates.of(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    >>> tally = Tally(np.array([1.0, 2.0, 0.0]), np.array([3.0, 4.0, 0.0]), np.array([9.0, 8.0, 0.0]))
    >>> Linear().fit(arms, tally).mean.round(9)
    array([3., 2., 5.])
    """

    solver: Solver = Projected()

    def fit(self, candidates: Candidates, tally: Tally) -> Fit:
        z, inverse = self.solver.invert(candidates, tally.counts)
        b = matvec(namespace(z).matrix_transpose(z), tally.sums)
        mean = matvec(z, matvec(inverse, b))
        return Fit(mean, mean)

    def standard_error(self, candidates: Candidates, tally: Tally, fit: Fit, noise_variance: float | None) -> Array:
        xp = namespace(tally.sums)
        z, inverse = self.solver.invert(candidates, tally.counts)
        if noise_variance is None:
            square = tally.squares - 2 * fit.mean * tally.sums + fit.mean**2 * tally.counts
            freedom = xp.sum(tally.counts, axis=-1) - rank(candidates.coordinates)
            enough = freedom > 0
            total = xp.sum(square, axis=-1)
            total = xp.where(total > 0, total, xp.zeros_like(total))  # a perfect fit may round to less than nothing
            scale = total / xp.where(enough, freedom, xp.ones_like(freedom))
            scale = xp.where(enough, scale, xp.inf)[..., None]
        else:
            scale = noise_variance
        return xp.sqrt(scale * xp.maximum(leverage(z, inverse), 1e-290))  # rounding may leave less than nothing
