"""Generalized linear rewards: means h(x_i'θ) with an increasing mean function h, fitted by Newton steps (IRLS).

    0 = g = Σ_i x_i (S_i − n_i h(x_i'θ)) − λθ                                 (1)
    H = Σ_i n_i h'(x_i'θ) x_i x_i' + λI                                       (2)
    L = Σ_i (S_i x_i'θ − n_i b(x_i'θ)) − λ/2 |θ|², whose gradient is g        (3)
    var θ = H⁻¹ + H⁻¹ Σ_i n_i (v_i − h'_i) x_i x_i' H⁻¹                        (4)

v_i is the variance of a reward (`law`). Where it is h', (1) without λ is the score of the likelihood, and var θ = H⁻¹;
elsewhere (1) still has the right θ for its root, and (4) is what its rewards scatter, the sandwich of Huber (1967).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bestarm.core import Array, Tally
from bestarm.iterate import Work, iterate, uphill
from bestarm.linalg import Candidates, leverage, matvec, moment, rank
from bestarm.models.law import LONGEST, Law, Logistic, law_of
from bestarm.models.linear import noise_of
from bestarm.models.protocols import Fit, LawModel
from bestarm.needs import Least


@dataclass(frozen=True)
class GLM(LawModel):
    """θ solves Σ_i x_i (S_i − n_i h(x_i'θ)) = 0, by batched Newton steps with halving.   Eq. (4) of the paper

    `ridge` times the mean information of a coordinate is added to the Hessian: invisible where the maximum-likelihood
    estimate exists, and what keeps it finite under separation or one-class data.

    >>> one = Candidates.of(np.ones((1, 1)))
    >>> GLM().fit(one, Tally(np.array([10.0]), np.array([7.0]), np.array([7.0]))).score.round(4)  # logit 0.7
    array([0.8473])
    """

    wants: ClassVar = Least.DIMENSIONS

    link: Law = Logistic()
    ridge: float = 1e-8
    limit: int = 100

    def __post_init__(self) -> None:
        law_of(self.link)

    @property
    def law(self) -> Law:
        return self.link

    def fit(self, candidates: Candidates, tally: Tally) -> Fit:
        self.link.check(tally)
        score = matvec(candidates.coordinates, self._solve(candidates.coordinates, tally))
        return Fit(score, self.link.value(self.link.near(score)))

    def standard_error(self, candidates: Candidates, tally: Tally, fit: Fit, noise_variance: float | None) -> Array:
        z, near = candidates.coordinates, self.link.near(fit.score)
        slope = self.link.slope(near)
        scale = noise_of(candidates, tally, fit) if noise_variance is None else noise_variance
        beyond = self.link.variance_at(near, scale) - slope
        ridge = self._penalty(z, tally.counts)[..., None, None] * np.eye(z.shape[-1], dtype=z.dtype)
        inverse = np.linalg.inv(moment(z, tally.counts * slope, ridge))  # Eq. 2
        with np.errstate(invalid="ignore"):
            variance = leverage(z, inverse + inverse @ moment(z, tally.counts * beyond, 0.0) @ inverse)  # Eq. 4
        return slope * np.sqrt(np.where(np.isnan(variance), np.inf, variance))

    def _penalty(self, z: Array, counts: Array) -> Array:
        information = np.sum(counts * np.vecdot(z, z), axis=-1)
        return self.ridge * np.maximum(information / np.maximum(rank(z), 1.0), 1e-3)

    def _solve(self, z: Array, tally: Tally) -> Array:
        theta = np.zeros_like(z[..., 0, :])
        penalty = self._penalty(z, tally.counts)
        start = (theta, z, tally.counts, tally.sums, penalty, np.ones_like(penalty))
        return iterate(start, self._finished, self._newton, self.limit, z.shape[:-2])

    def _finished(self, work: Work) -> Array:
        return work[-1] == 0

    def _newton(self, t: int, work: Work, done: Array | None) -> Work:
        theta, z, counts, sums, penalty, going = work
        enough = 1e-12 * np.maximum(np.sum(counts, axis=-1), 1.0)
        after, still = PenalisedLikelihood(self.link, z, counts, sums, penalty).climbed(theta, enough, done)
        return after, z, counts, sums, penalty, still.astype(going.dtype)


@dataclass(frozen=True)
class PenalisedLikelihood:
    """L, of rewards with these `counts` and `sums` at the rows z of the arms; `penalty` is λ."""

    law: Law
    z: Array  # (..., K, r)
    counts: Array  # (..., K)
    sums: Array  # (..., K)
    penalty: Array  # (...)

    def of(self, theta: Array) -> Array:
        """Return L `(...)` at θ `(..., r)`."""
        near = self.law.near(matvec(self.z, theta))
        gain = np.sum(self.sums * near - self.counts * self.law.integral(near), axis=-1)
        return gain - self.penalty / 2 * np.vecdot(theta, theta)  # Eq. 3

    def climbed(self, theta: Array, enough: Array, done: Array | None = None) -> tuple[Array, Array]:
        """Return θ after a Newton step, and where `(...)` one was taken: not where `done`, nor where |g| ≤ `enough`."""
        near = self.law.near(matvec(self.z, theta))
        residual = self.sums - self.counts * self.law.value(near)
        g = matvec(np.matrix_transpose(self.z), residual) - self.penalty[..., None] * theta  # Eq. 1
        still = np.max(np.abs(g), axis=-1) > enough
        still = still if done is None else still & ~done
        if not np.any(still):
            return theta, still
        ridge = self.penalty[..., None, None] * np.eye(theta.shape[-1], dtype=theta.dtype)
        step = _solved(moment(self.z, self.counts * self.law.slope(near), ridge), g)  # Eq. 2
        reach = np.max(np.abs(matvec(self.z, step)), axis=-1)
        length = np.minimum(LONGEST / np.maximum(reach, 1.0), 1.0)
        after, _ = uphill(self.of, theta, self.of(theta), step, length, still)
        return np.where(still[..., None], after, theta), still


def _solved(H: Array, g: Array) -> Array:
    """Return H⁻¹ g, no eigenvalue of H negative but for rounding.

    Where the slopes of the arms differ so much that rounding hides the ridge, H may be singular as it stands.
    """
    try:
        return np.linalg.solve(H, g[..., None])[..., 0]
    except np.linalg.LinAlgError:
        if H.ndim > 2:  # one by one, so that no replication depends on its neighbours
            return np.stack([_solved(H[j], g[j]) for j in range(H.shape[0])])
        values, vectors = np.linalg.eigh(H)
        least = np.maximum(np.max(values) * np.finfo(H.dtype).eps, np.finfo(H.dtype).smallest_normal)
        return matvec(vectors / np.maximum(values, least), matvec(np.matrix_transpose(vectors), g))
