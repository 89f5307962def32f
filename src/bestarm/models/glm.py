"""Generalized linear rewards: means h(x_i'θ) with an increasing mean function h, fitted by Newton steps (IRLS).

    0 = g = Σ_i x_i (S_i − n_i h(x_i'θ)) − λθ                                 (1)
    H = Σ_i n_i h'(x_i'θ) x_i x_i' + λI                                       (2)
    L = Σ_i (S_i x_i'θ − n_i b(x_i'θ)) − λ/2 |θ|², whose gradient is g        (3)
    var θ = H⁻¹ + H⁻¹ Σ_i n_i (v_i − h'_i) x_i x_i' H⁻¹                        (4)

v_i is the variance of a reward (`law`). Where it is h', (1) without λ is the score of the likelihood, and var θ = H⁻¹;
elsewhere (1) still has the right θ for its root, and (4) is what its rewards scatter, the sandwich of Huber (1967).
"""

from dataclasses import dataclass

import numpy as np

from bestarm.core import Array, Tally
from bestarm.iterate import Work, iterate
from bestarm.linalg import Candidates, leverage, matvec, moment, rank
from bestarm.models.law import LONGEST, Law, Logistic, law_of
from bestarm.models.linear import noise_of
from bestarm.models.protocols import Fit, LawModel


@dataclass(frozen=True)
class GLM(LawModel):
    """θ solves Σ_i x_i (S_i − n_i h(x_i'θ)) = 0, by batched Newton steps with halving.   Eq. (4) of the paper

    `ridge` times the mean information of a coordinate is added to the Hessian: invisible where the maximum-likelihood
    estimate exists, and what keeps it finite under separation or one-class data.

    >>> one = Candidates.of(np.ones((1, 1)))
    >>> GLM().fit(one, Tally(np.array([10.0]), np.array([7.0]), np.array([7.0]))).score.round(4)  # logit 0.7
    array([0.8473])
    """

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
        near = self.link.near(matvec(z, theta))
        residual = sums - counts * self.link.value(near)
        g = matvec(np.matrix_transpose(z), residual) - penalty[:, None] * theta  # Eq. 1
        total = np.maximum(np.sum(counts, axis=-1), 1.0)
        still = np.max(np.abs(g), axis=-1) > 1e-12 * total
        still = still if done is None else still & ~done
        ridge = penalty[:, None, None] * np.eye(theta.shape[-1], dtype=theta.dtype)
        step = _solved(moment(z, counts * self.link.slope(near), ridge), g)  # Eq. 2
        reach = np.max(np.abs(matvec(z, step)), axis=-1)
        length = np.minimum(LONGEST / np.maximum(reach, 1.0), 1.0)
        before = self._objective(theta, z, counts, sums, penalty)
        slack = 1e-12 * (1 + np.abs(before))
        for _ in range(40):
            after = self._objective(theta + length[:, None] * step, z, counts, sums, penalty)
            worse = still & ~(after >= before - slack)
            if not np.any(worse):
                break
            length = np.where(worse, length / 2, length)
        moved = np.where(still[:, None], theta + length[:, None] * step, theta)
        return moved, z, counts, sums, penalty, still.astype(going.dtype)

    def _objective(self, theta: Array, z: Array, counts: Array, sums: Array, penalty: Array) -> Array:
        near = self.link.near(matvec(z, theta))
        gain = np.sum(sums * near - counts * self.link.integral(near), axis=-1)
        return gain - penalty / 2 * np.vecdot(theta, theta)  # Eq. 3


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
