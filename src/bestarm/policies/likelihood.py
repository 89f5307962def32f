"""Maximum likelihood in a generalized linear model, tracked pull by pull: what UCB-GLM (Li, Lu and Zhou 2017) knows."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bestarm.core import Array, Pulls, Tally, Totals
from bestarm.linalg import Candidates, matvec, tally
from bestarm.models.glm import PenalisedLikelihood
from bestarm.models.law import Law, Logistic
from bestarm.needs import Least
from bestarm.policies.posteriors import LinearPrior
from bestarm.posteriors import Normal, NormalPosterior


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

    wants: ClassVar = Least.DIMENSIONS

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
    normal: NormalPosterior  # of mean 0 and variances x'(V + ridge I)⁻¹x

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

    def column(self, arm: Array) -> Array:
        """Return the covariances `(..., K)` of all predictors with that of `arm` `(...)`."""
        return self.normal.column(arm)

    def draw(self, count: int, normal: Normal) -> Array:
        """Return draws `(..., count, K)` of the predictors, from the normal distribution about their maximum."""
        return self.mean[..., None, :] + self.normal.draw(count, normal)

    def after(self, pulls: Pulls, totals: Totals) -> "GLMPosterior":
        """Return what is known after `pulls` gave `totals`."""
        news = tally(pulls, totals, self.counts.shape[-1])
        self.prior.link.check(news)
        known = self.tally + news
        # a prior this vague cancels badly in rank-one updates, and the Newton steps cost as much as a refit
        normal = self.normal.refitted(known.counts, np.zeros_like(known.sums))
        theta, size = self.theta, np.sum(known.counts, axis=-1)
        ridge = np.full_like(size, self.prior.ridge)
        likelihood = PenalisedLikelihood(self.prior.link, self.coordinates, known.counts, known.sums, ridge)
        for _ in range(self.prior.steps):
            theta, _ = likelihood.climbed(theta, 1e-9 * size)
        return replace(self, theta=theta, tally=known, normal=normal)
