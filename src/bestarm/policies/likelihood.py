"""Maximum likelihood in a generalized linear model, tracked pull by pull: what UCB-GLM (Li, Lu and Zhou 2017) knows."""

from dataclasses import dataclass, replace

import numpy as np

from bestarm.core import Array, Pulls, Tally, Totals
from bestarm.linalg import Candidates, matvec, moment, tally
from bestarm.models.law import FAR, LONGEST, Law, Logistic
from bestarm.policies.posteriors import LinearPrior, NormalPosterior


@dataclass(frozen=True)
class MaximumLikelihood:
    """θ of largest likelihood under a mean function h, and the variances x'(V + `ridge` I)⁻¹x with V = Σ x x'.

    Everything is done in coordinates of the span of the arms, so that V can be inverted. Each pull is followed by a few
    Newton steps from the last θ, as many as are needed and at most `steps`.

    >>> prior = MaximumLikelihood()
    >>> posterior = prior.posterior(np.eye(2), noise=1.0)
    >>> posterior = posterior.after(Pulls(np.array([0, 1]), np.array([10, 10])),
    ...     Totals(np.array([7.0, 5.0]), np.array([7.0, 5.0])))
    >>> np.abs(posterior.mean).round(4)  # logit 0.7
    array([0.8473, 0.    ])
    """

    link: Law = Logistic()
    ridge: float = 1e-8
    steps: int = 3

    @property
    def variance(self) -> float:
        return 1 / self.ridge

    def posterior(self, features: Array, noise: float) -> "GLMPosterior":
        z = Candidates.of(features).coordinates
        zero = np.zeros_like(z[..., 0])
        normal = LinearPrior(1 / self.ridge).posterior(z, 1.0)
        return GLMPosterior(self, z, np.zeros_like(z[..., 0, :]), Tally(zero, zero, zero), normal)


@dataclass(frozen=True)
class GLMPosterior:
    """What `MaximumLikelihood` knows of K means after some pulls."""

    prior: MaximumLikelihood
    coordinates: Array  # z, (..., K, r)
    theta: Array  # θ, (..., r)
    tally: Tally
    normal: NormalPosterior  # of variances x'(V + ridge I)⁻¹x

    @property
    def mean(self) -> Array:
        """The linear predictor z'θ, `(..., K)`: it ranks the arms as their means do."""
        return matvec(self.coordinates, self.theta)

    @property
    def variance(self) -> Array:
        """x'(V + ridge I)⁻¹x, `(..., K)`."""
        return self.normal.variance

    @property
    def counts(self) -> Array:
        """The pulls of each arm, `(..., K)`."""
        return self.tally.counts

    def after(self, pulls: Pulls, totals: Totals) -> "GLMPosterior":
        """Return what is known after `pulls` gave `totals`."""
        news = tally(pulls, totals, self.counts.shape[-1])
        self.prior.link.check(news)
        known = self.tally + news
        # a prior this vague cancels badly in rank-one updates, and the Newton steps cost as much as a refit
        after = replace(self, normal=self.normal.refitted(known.counts, known.sums), tally=known)
        return replace(after, theta=after._climb())

    def _climb(self) -> Array:
        """Return θ after Newton steps."""
        theta = self.theta
        size = np.sum(self.counts, axis=-1)
        for _ in range(self.prior.steps):
            gradient, hessian = self._slopes(theta)
            still = np.max(np.abs(gradient), axis=-1) > 1e-9 * size
            if not np.any(still):
                break
            theta = np.where(still[..., None], self._step(theta, gradient, hessian), theta)
        return theta

    def _slopes(self, theta: Array) -> tuple[Array, Array]:
        z, known, ridge, h = self.coordinates, self.tally, self.prior.ridge, self.prior.link
        at = np.clip(matvec(z, theta), -FAR, FAR)
        gradient = matvec(np.matrix_transpose(z), known.sums - known.counts * h.value(at))
        hessian = moment(z, known.counts * h.slope(at)) + ridge * np.eye(z.shape[-1], dtype=z.dtype)
        return gradient - ridge * theta, hessian

    def _step(self, theta: Array, gradient: Array, hessian: Array) -> Array:
        """Return θ after a Newton step, halved until the penalised likelihood does not fall."""
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        reach = np.max(np.abs(matvec(self.coordinates, step)), axis=-1)
        length = np.minimum(LONGEST / np.maximum(reach, 1.0), 1.0)
        before = self._likelihood(theta)
        for _ in range(20):
            ahead = theta + length[..., None] * step
            worse = self._likelihood(ahead) < before - 1e-12 * (1 + np.abs(before))
            if not np.any(worse):
                break
            length = np.where(worse, length / 2, length)
        return ahead

    def _likelihood(self, theta: Array) -> Array:
        at = np.clip(matvec(self.coordinates, theta), -FAR, FAR)
        gain = np.sum(self.tally.sums * at - self.counts * self.prior.link.integral(at), axis=-1)
        return gain - self.prior.ridge / 2 * np.vecdot(theta, theta)
