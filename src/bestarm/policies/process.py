"""A Gaussian process over the arms whose scale and noise are fitted to the rewards, and draws from its posterior.

f ~ N(0, g σ² R) with R the correlations by a kernel. With counts N, M = √N R √N = U Λ U', r the sums of rewards less
their mean over all pulls, W the scatter of rewards about the means of their arms and n pulls,

    n σ² = W + Σ (U' N^-½ r)² / (1 + gΛ),                                                             (1)
    log m = −½ Σ log(1 + gΛ) − (n/2) log σ².                                                          (2)
"""

from dataclasses import dataclass, replace
from math import ceil, inf

import numpy as np

from bestarm.core import Array, Pulls, Tally, Totals
from bestarm.kernels import Kernel, Matern, squared_distances
from bestarm.linalg import matvec, pick, tally
from bestarm.posteriors import Full, Normal, symmetric_root

RATIOS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # prior variance in units of the noise variance
AGAIN = 1.5  # the ratio is chosen anew each time there are so many times as many pulls


@dataclass(frozen=True)
class FittedProcess:
    """A Gaussian process over the arms with nothing to set.

    Features are standardised and divided by the median distance of two arms, rewards are centred by their running mean,
    and the prior variance and the noise variance are those of largest marginal likelihood, over a grid and in closed
    form.
    """

    kernel: Kernel = Matern(2.5)

    @property
    def variance(self) -> float:
        return inf  # fitted

    def posterior(self, features: Array, noise: float) -> "FittedPosterior":
        x = _by_distance(features)
        correlation = self.kernel(x, x)
        zero = np.zeros_like(x[..., 0])
        one = np.ones_like(zero[..., 0])
        none, full = Tally(zero, zero, zero), Full(correlation, correlation)
        return FittedPosterior(correlation, symmetric_root(correlation), none, 0, 1, full, one, one)


@dataclass(frozen=True)
class FittedPosterior:
    """What a fitted process says of K means: their correlations, what is known by arm, and the posterior.

    `covariance` is that of the means in units of the noise variance σ², which is `noise`.
    """

    correlation: Array  # R, (..., K, K)
    root: Array  # R^½, (..., K, K)
    tally: Tally
    spent: int
    due: int  # pulls after which the ratio is chosen again
    covariance: Full
    ratio: Array  # prior variance over σ², (...)
    noise: Array  # σ², (...)

    @property
    def counts(self) -> Array:
        """The pulls of each arm, `(..., K)`."""
        return self.tally.counts

    @property
    def mean(self) -> Array:
        """The posterior means `(..., K)`, less that of all rewards."""
        return self.covariance.times(_centred(self.tally)[..., None, :])[..., 0, :]

    @property
    def variance(self) -> Array:
        """Their posterior variances, `(..., K)`."""
        return self.noise[..., None] * self.covariance.variance

    def column(self, arm: Array) -> Array:
        """Return the covariances `(..., K)` of all means with that of `arm` `(...)`."""
        return self.noise[..., None] * self.covariance.direction(arm)

    def after(self, pulls: Pulls, totals: Totals) -> "FittedPosterior":
        """Return what is known after `pulls` gave `totals`."""
        arms = self.counts.shape[-1]
        known = self.tally + tally(pulls, totals, arms)
        spent = self.spent + pulls.total
        after = replace(self, tally=known, spent=spent)
        if spent >= self.due:
            return replace(_fitted(after), due=max(ceil(AGAIN * spent), spent + 1))
        covariance = self.covariance
        columns = pulls.arms.shape[-1]
        if columns > arms:
            return replace(after, covariance=covariance.refit(known.counts, known.sums, 1.0)[0])
        times = np.astype(pulls.times, known.counts.dtype)
        for j in range(columns):
            direction = covariance.direction(pulls.arms[..., j])
            spread = 1 + times[..., j] * pick(direction, pulls.arms[..., j])
            covariance = covariance.less(direction, times[..., j] / spread)
        return replace(after, covariance=covariance)

    def draw(self, count: int, normal: Normal) -> Array:
        """Return draws of the centred means `(..., count, K)`; see Eq. 3 of `posteriors`."""
        *batch, arms = self.counts.shape
        one, two = normal((2, *batch, count, arms))
        counts, sums = self.counts[..., None, :], _centred(self.tally)[..., None, :]
        prior = (self.root @ one.mT).mT * np.sqrt(self.ratio * self.noise)[..., None, None]
        unexplained = sums - counts * prior - np.sqrt(counts * self.noise[..., None, None]) * two
        return prior + self.covariance.times(unexplained)  # Eq. 3 of `posteriors`


def _by_distance(features: Array) -> Array:
    """Return features `(..., K, d)` standardised, the median distance of two arms being 1; equal arms stay equal."""
    x = features - np.mean(features, axis=-2, keepdims=True)
    spread = np.sqrt(np.mean(x * x, axis=-2, keepdims=True))
    size = np.max(np.abs(features), axis=-2, keepdims=True)
    varies = spread > 1e-12 * size
    x = np.where(varies, x / np.where(varies, spread, np.ones_like(spread)), np.zeros_like(x))
    arms = features.shape[-2]
    distances = np.sort(np.reshape(squared_distances(x, x), (*features.shape[:-2], arms * arms)), axis=-1)
    middle = np.sqrt(distances[..., min((arms * arms + arms) // 2, arms * arms - 1)])  # K zeros, then each pair twice
    return x / np.where(middle > 0, middle, np.ones_like(middle))[..., None, None]


def _centred(known: Tally) -> Array:
    """Return the sums `(..., K)` of rewards less their mean over all pulls."""
    count = np.maximum(np.sum(known.counts, axis=-1), np.ones_like(known.counts[..., 0]))
    return known.sums - known.counts * (np.sum(known.sums, axis=-1) / count)[..., None]


def _fitted(state: FittedPosterior) -> FittedPosterior:
    """Return what is known with the ratio g and σ² of largest marginal likelihood, and the posterior they give."""
    known = state.tally
    pulled = known.counts > 0
    counts = np.where(pulled, known.counts, np.ones_like(known.counts))
    within = np.sum(known.squares - known.sums * known.sums / counts, axis=-1)
    weight = np.sqrt(known.counts)
    values, vectors = np.linalg.eigh(state.correlation * weight[..., :, None] * weight[..., None, :])
    values = np.maximum(values, 0.0)
    along = matvec(np.matrix_transpose(vectors), _centred(known) / np.sqrt(counts))
    size = np.sum(known.counts, axis=-1)
    total = np.sum(known.squares, axis=-1)
    least = 1e-12 * np.where(total > 0, total, np.ones_like(total))
    best = None
    for ratio in RATIOS:
        shrunk = 1 + ratio * values
        scatter = np.maximum(np.maximum(within, 0.0) + np.sum(along * along / shrunk, axis=-1), least)  # Eq. 1
        score = -np.sum(np.log(shrunk), axis=-1) - size * np.log(scatter)  # twice Eq. 2, up to a constant
        if best is None:
            best, chosen, noise = score, ratio * np.ones_like(score), scatter / size
            continue
        better = score > best
        best = np.where(better, score, best)
        chosen = np.where(better, ratio * np.ones_like(score), chosen)
        noise = np.where(better, scatter / size, noise)
    prior = state.correlation * chosen[..., None, None]
    covariance = Full(prior, prior).refit(known.counts, known.sums, 1.0)[0]
    # rewards that are all the same say nothing of their scale
    same = noise <= 2 * least / size
    return replace(state, covariance=covariance, ratio=chosen, noise=np.where(same, np.ones_like(noise), noise))
