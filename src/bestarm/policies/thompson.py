"""Gaussian-process Thompson sampling: pull the arm that is best in one draw from the posterior."""

from dataclasses import dataclass, replace
from math import ceil, pi

import numpy as np

from bestarm.core import Array, Problem, Pulls, Random, Tally, Totals
from bestarm.errors import InputError
from bestarm.kernels import Kernel, Matern, squared_distances
from bestarm.linalg import matvec, pick, tally
from bestarm.policies.belief import Full
from bestarm.policies.rules import once

RATIOS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # prior variance in units of the noise variance
AGAIN = 1.5  # the ratio is chosen anew each time there are so many times as many pulls


@dataclass(frozen=True)
class Process:
    """The state: correlations of the means and their symmetric root, what is known by arm, and the posterior.

    `covariance` is that of the means in units of the noise variance σ², which is `noise`.
    """

    problem: Problem
    correlation: Array  # R, (..., K, K)
    root: Array  # R^½, (..., K, K)
    tally: Tally
    spent: int
    due: int  # pulls after which the ratio is chosen again
    covariance: Full
    ratio: Array  # prior variance over σ², (...)
    noise: Array  # σ², (...)


@dataclass(frozen=True)
class Thompson:
    """Draw f from the posterior of a Gaussian process over the arms, pull argmax f, and name the largest mean.

    Features are standardised and divided by the median distance of two arms, rewards are centred by their running mean,
    and the prior variance and the noise variance are those of largest marginal likelihood, over a grid and in closed
    form. The first `share` of the budget goes to random arms, each at most once. With N the counts, S the centred sums
    and C the posterior covariance, a draw is f_0 + C (S − N f_0 − √N ε)/σ² for a draw f_0 from the prior and noise ε:
    the posterior needs no root of its own (Matheron's rule).

    >>> import numpy as np
    >>> policy = Thompson()
    >>> state = policy.start(Problem(np.array([[0.0], [1.0], [2.0]]), budget=15))
    >>> policy.ask(state, np.random.default_rng(0)).total
    3
    >>> totals = Totals(np.array([0.0, 2.0, 8.0]), np.array([1.0, 3.0, 33.0]))
    >>> state = policy.tell(state, Pulls(np.arange(3), np.array([2, 2, 2])), totals)
    >>> int(policy.recommend(state))
    2
    """

    kernel: Kernel = Matern(2.5)
    share: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InputError(f"share must be more than 0 and at most 1; given {self.share}")

    def start(self, problem: Problem) -> Process:
        x = _by_distance(problem.features)
        correlation = self.kernel(x, x)
        values, vectors = np.linalg.eigh(correlation)
        roots = np.sqrt(np.maximum(values, np.zeros_like(values)))
        root = (vectors * roots[..., None, :]) @ np.matrix_transpose(vectors)
        zero = np.zeros_like(x[..., 0])
        one = np.ones_like(zero[..., 0])
        known = Tally(zero, zero, zero)
        return Process(problem, correlation, root, known, 0, 1, Full(correlation, correlation), one, one)

    def ask(self, state: Process, rng: Random) -> Pulls | None:
        problem = state.problem
        if state.spent >= problem.budget or problem.arms == 1:
            return None
        shape = (*problem.batch, problem.arms)
        if state.spent == 0:
            first = min(problem.arms, ceil(self.share * problem.budget))
            arms = np.argsort(rng.random(shape), axis=-1)[..., :first]
            return Pulls(arms, np.ones_like(arms))
        # Box and Muller: two uniform numbers make two normal ones
        radius = np.sqrt(-2 * np.log1p(-rng.random(shape)))
        angle = 2 * pi * rng.random(shape)
        return once(np.argmax(self.draw(state, radius * np.cos(angle), radius * np.sin(angle)), axis=-1))

    def tell(self, state: Process, pulls: Pulls, totals: Totals) -> Process:
        known = state.tally + tally(pulls, totals, state.problem.arms)
        spent = state.spent + pulls.total
        state = replace(state, tally=known, spent=spent)
        if spent >= state.due:
            return replace(_chosen(state), due=max(ceil(AGAIN * spent), spent + 1))
        covariance = state.covariance
        columns = pulls.arms.shape[-1]
        if columns > state.problem.arms:
            return replace(state, covariance=covariance.refit(known.counts, known.sums, 1.0)[0])
        times = np.astype(pulls.times, known.counts.dtype)
        for j in range(columns):
            direction = covariance.direction(pulls.arms[..., j])
            spread = 1 + times[..., j] * pick(direction, pulls.arms[..., j])
            covariance = covariance.less(direction, times[..., j] / spread)
        return replace(state, covariance=covariance)

    def recommend(self, state: Process) -> Array:
        middle = _times(state.covariance, _centred(state.tally))
        return np.argmax(middle, axis=-1)

    def draw(self, state: Process, one: Array, two: Array) -> Array:
        """Return a draw from the posterior of the centred means `(..., K)`, made of normal numbers `(..., K)` each."""
        known = state.tally
        prior = matvec(state.root, one) * np.sqrt(state.ratio * state.noise)[..., None]
        blur = np.sqrt(known.counts * state.noise[..., None]) * two
        return prior + _times(state.covariance, _centred(known) - known.counts * prior - blur)


def _by_distance(features: Array) -> Array:
    """Return features `(..., K, d)` standardised, the median distance of two arms being 1; equal arms stay equal."""
    x = features - np.mean(features, axis=-2, keepdims=True)
    spread = np.sqrt(np.mean(x * x, axis=-2, keepdims=True))
    size = np.max(np.abs(features), axis=-2, keepdims=True)
    varies = spread > 1e-12 * size
    x = np.where(varies, x / np.where(varies, spread, np.ones_like(spread)), np.zeros_like(x))
    arms = features.shape[-2]
    apart = np.sort(np.reshape(squared_distances(x, x), (*features.shape[:-2], arms * arms)), axis=-1)
    middle = np.sqrt(apart[..., min((arms * arms + arms) // 2, arms * arms - 1)])  # K zeros, then each pair twice
    return x / np.where(middle > 0, middle, np.ones_like(middle))[..., None, None]


def _centred(known: Tally) -> Array:
    """Return the sums `(..., K)` of rewards less their mean over all pulls."""
    count = np.maximum(np.sum(known.counts, axis=-1), np.ones_like(known.counts[..., 0]))
    return known.sums - known.counts * (np.sum(known.sums, axis=-1) / count)[..., None]


def _times(covariance: Full, vector: Array) -> Array:
    """Return C v `(..., K)`."""
    total = matvec(covariance.now, vector)
    for u in covariance.pending:
        total = total - u * np.vecdot(u, vector)[..., None]
    return total


def _chosen(state: Process) -> Process:
    """Return the state with the ratio g and σ² of largest marginal likelihood, and the posterior they give.

    With M = √N R √N = U Λ U' and r the centred sums over √N, log m = −½ Σ log(1 + gΛ) − (n/2) log σ², where
    n σ² = W + Σ (U'r)² / (1 + gΛ) and W is the scatter of rewards about the means of their arms.
    """
    known = state.tally
    pulled = known.counts > 0
    counts = np.where(pulled, known.counts, np.ones_like(known.counts))
    within = np.sum(known.squares - known.sums * known.sums / counts, axis=-1)
    weight = np.sqrt(known.counts)
    values, vectors = np.linalg.eigh(state.correlation * weight[..., :, None] * weight[..., None, :])
    values = np.maximum(values, np.zeros_like(values))
    turned = matvec(np.matrix_transpose(vectors), _centred(known) / np.sqrt(counts))
    size = np.sum(known.counts, axis=-1)
    total = np.sum(known.squares, axis=-1)
    least = 1e-12 * np.where(total > 0, total, np.ones_like(total))
    best = None
    for ratio in RATIOS:
        shrunk = 1 + ratio * values
        scatter = np.maximum(
            np.maximum(within, np.zeros_like(within)) + np.sum(turned * turned / shrunk, axis=-1), least
        )
        score = -np.sum(np.log(shrunk), axis=-1) - size * np.log(scatter)
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
