"""Linear rewards, fitted by least squares on per-arm counts n and sums S.

θ = V⁻¹ b, V = Σ_i n_i x_i x_i', b = Σ_i x_i S_i; μ_i = x_i'θ                     (1)
σ² = Σ_i (W_i + n_i (ȳ_i − μ_i)²) / (Σ_i n_i − rank), W_i the scatter within arm i (2)
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from bestarm.core import Array, Tally
from bestarm.linalg import Candidates, leverage, matvec, moment, rank, symmetric_inverse
from bestarm.models.protocols import Fit, LawModel
from bestarm.needs import Least


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
        return x, symmetric_inverse(np.matrix_transpose(x) @ (x * counts[..., None]))


@dataclass(frozen=True)
class Ridge:
    """Add `strength` I to V: a prior θ ~ N(0, σ²/strength I) on the features as given."""

    strength: float = 1.0

    def invert(self, candidates: Candidates, counts: Array) -> tuple[Array, Array]:
        x = candidates.features
        V = np.matrix_transpose(x) @ (x * counts[..., None])
        return x, np.linalg.inv(V + self.strength * np.eye(x.shape[-1], dtype=x.dtype))


@dataclass(frozen=True)
class Linear(LawModel):
    """Least squares: μ_i = x_i'V⁻¹ b.   Eq. (1) of the paper

    >>> arms = Candidates.of(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    >>> tally = Tally(np.array([1.0, 2.0, 0.0]), np.array([3.0, 4.0, 0.0]), np.array([9.0, 8.0, 0.0]))
    >>> Linear().fit(arms, tally).mean.round(9)
    array([3., 2., 5.])
    """

    wants: ClassVar = Least.DIMENSIONS

    solver: Solver = Projected()

    def fit(self, candidates: Candidates, tally: Tally) -> Fit:
        z, inverse = self.solver.invert(candidates, tally.counts)
        mean = matvec(z, matvec(inverse, matvec(np.matrix_transpose(z), tally.sums)))  # Eq. 1
        return Fit(mean, mean)

    def standard_error(self, candidates: Candidates, tally: Tally, fit: Fit, noise_variance: float | None) -> Array:
        z, inverse = self.solver.invert(candidates, tally.counts)
        variance = noise_of(candidates, tally, fit) if noise_variance is None else noise_variance
        return np.sqrt(variance * np.maximum(leverage(z, inverse), 1e-290))  # rounding may leave less than nothing


def noise_of(candidates: Candidates, tally: Tally, fit: Fit) -> Array:
    """Return σ² `(..., 1)` by what a fit leaves, infinite where nothing is left over to tell.   Eq. 2"""
    freedom = np.sum(tally.counts, axis=-1) - rank(candidates.coordinates)
    total = np.sum(tally.residual(fit.mean), axis=-1)
    return np.where(freedom > 0, total / np.where(freedom > 0, freedom, 1.0), np.inf)[..., None]
