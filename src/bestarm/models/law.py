"""The law of a reward: how its mean follows from a predictor z = x'θ, and how it scatters about that mean.

    μ = h(z), h increasing                                        (1)
    b(z) = ∫₀ᶻ h                                                  (2)
    v(μ), the variance of a reward of mean μ                      (3)
    w(z) = h'(z) / v, what a reward says of its predictor         (4)
    ℓ(z) = Σ_i ∫ (S_i − n_i μ) dμ / v(μ), up to a constant        (5)

(5) is the quasi-likelihood of Wedderburn (1974), which needs no more of a law than its mean and its variance. Where
h' = v the law is canonical: w = 1 and ℓ = Σ_i S_i z_i − n_i b(z_i).

A law is one object and needs one method, `value`; all else has a default in `Law` for rewards of any size, in
`BinaryLaw` for 0 and 1, in `CountLaw` for counts.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from bestarm.core import Array, Tally
from bestarm.errors import InputError, RewardError
from bestarm.models.checks import FitCheck, pearson, scatter_of_means
from bestarm.models.laplace import generalized
from bestarm.models.many import Believed
from bestarm.models.posterior import Effects, noise_of_repeats, normal
from bestarm.noise import Bernoulli, Counts, Gaussian, Noise
from bestarm.noise import Poisson as PoissonNoise

FAR = 500.0  # predictors beyond this are at the ends of any mean function, and exp overflows at 709
LONGEST = 8.0  # no Newton step moves a predictor farther
STEP = 1e-5  # of a central difference
EDGE = 1e-12  # means are thought to lie at least so far from an end, where a variance would vanish
LARGEST_COUNT = 1e15  # a mean whose Poisson counts fit into 64 bits
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


class Law(Protocol):
    """Rewards of any size about an increasing mean function, with a noise variance of their own.

    `limits` are those of means. `counts_suffice` says that the variance follows from the mean, so that counts and sums
    say all there is to know; elsewhere squares are needed, or a noise variance that is told. A reward r is minimised
    by maximising `turn` − r; None: it cannot be.

    >>> class Cubic(Law):
    ...     def value(self, predictor):
    ...         return predictor**3
    >>> cubic = Cubic()
    >>> [round(float(x), 6) for x in (cubic.slope(2.0), cubic.inverse(8.0), cubic.integral(2.0))]
    [12.0, 2.0, 4.0]
    """

    limits: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    counts_suffice: ClassVar[bool] = False
    turn: ClassVar[float | None] = 0.0

    def value(self, predictor: Array) -> Array:
        """Return the mean reward at each predictor.   Eq. (1)"""
        ...

    def named(self) -> str:
        """Return what to call the model in a sentence."""
        return type(self).__name__

    def near(self, predictor: Array) -> Array:
        """Return predictors within ±FAR."""
        return np.clip(predictor, -FAR, FAR)

    def slope(self, predictor: Array) -> Array:
        """Return h', by central differences."""
        return (self.value(predictor + STEP) - self.value(predictor - STEP)) / (2 * STEP)

    def integral(self, predictor: Array) -> Array:
        """Return b, by Gauss-Legendre quadrature.   Eq. (2)"""
        parts = (w / 2 * self.value(predictor * (node + 1) / 2) for node, w in zip(NODES, WEIGHTS, strict=True))
        return predictor * sum(parts)

    def inverse(self, mean: float) -> float:
        """Return the predictor of a mean, by bisection; infinite where none within ±FAR has it."""
        low, high = -FAR, FAR
        if not float(self.value(np.asarray(low))) <= mean <= float(self.value(np.asarray(high))):
            return math.inf
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if float(self.value(np.asarray(middle))) < mean else (low, middle)
        return high

    def variance(self, mean: Array, noise_variance: Any) -> Array:
        """Return the variance of a reward at each mean.   Eq. (3)"""
        return noise_variance * np.ones_like(mean)

    def variance_at(self, predictor: Array, noise_variance: Any) -> Array:
        """Return the same at each predictor."""
        return self.variance(self.value(predictor), noise_variance)

    def weight(self, predictor: Array, noise_variance: Any) -> Array:
        """Return w.   Eq. (4)"""
        return self.slope(predictor) / np.maximum(self.variance_at(predictor, noise_variance), 1e-300)

    def likelihood(self, predictor: Array, tally: Tally, noise_variance: Any) -> Array:
        """Return the logarithm of the likelihood of predictors `(..., K)`, up to a constant.   Eq. (5)"""
        mean = self.value(predictor)
        return (mean @ tally.sums - mean**2 / 2 @ tally.counts) / max(noise_variance, 1e-300)

    def check(self, tally: Tally) -> None:
        """Raise RewardError unless such rewards can have this law."""
        return

    def noise(self, noise_variance: float | None) -> Noise:
        """Return how rewards scatter about their means, to simulate them."""
        if noise_variance is None:
            raise InputError("noise_variance is needed: the variance of one reward around its mean")
        return Gaussian(float(noise_variance))

    def quick_noise(self, noise_variance: float | None) -> Noise:
        """Return the same where totals of many rewards are drawn at once."""
        return self.noise(noise_variance)

    def check_means(self, means: Array) -> None:
        """Raise InputError unless rewards with these means can be simulated."""
        low, high = self.limits
        if np.min(means) < low or np.max(means) > high:
            raise InputError(f"simulated means must lie between {low:g} and {high:g}; --scale minmax may do that")

    def described(self, rank: int, noise: str) -> str:
        """Return the law with its number of coefficients in words; `noise` says what is known of the noise."""
        return f"{self.named()} in {rank} coefficients" + ("" if self.counts_suffice else f", {noise}")

    def posterior(self, effects: Effects, tally: Tally, noise_variance: float | None, draws: int, rng: Any) -> Believed:
        """Return what is known of the means of all arms, the prior shrinking."""
        if noise_variance is None and not self.counts_suffice:
            noise_variance = noise_of_repeats(tally)
        return generalized(effects, self, tally, noise_variance, draws, rng)

    def lack_of_fit(self, rank: int, mean: Array, tally: Tally, noise_variance: float | None) -> FitCheck:
        """Test fitted means against the rewards."""
        return scatter_of_means(rank, mean, tally, noise_variance)

    def stretch(self, gap: float, base: float, best: Array, second: Array, steps: Array) -> Array:
        """Return the least factor by which means of two predictors from `base` are `gap` apart, infinite if none is.

        It is looked for between the first and the last of `steps` `(m, ...)`, by bisection.
        """

        def between(factor: Array) -> Array:
            return self.value(base + factor * best) - self.value(base + factor * second)

        wide = between(steps) >= gap
        at = np.maximum(wide.argmax(axis=0), 1)
        low, high = (np.take_along_axis(steps, row[None], axis=0)[0] for row in (at - 1, at))
        for _ in range(60):
            middle = (low + high) / 2
            short = between(middle) < gap
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return np.where(wide.any(axis=0), high, np.inf)

    def hardness(self, gap: float | None, predictors: Array) -> Array:
        """Return the gap between the best two predictors `(n, K)` as the theorem takes it, c_min times it.   Thm. 2"""
        two = np.partition(predictors, -2, axis=-1)[..., -2:]
        return (two[..., 1] - two[..., 0]) * self.slope(predictors).min(axis=-1)


class Canonical(Law, Protocol):
    """A law with v = h': then w = 1."""

    def variance_at(self, predictor: Array, noise_variance: Any) -> Array:
        return self.slope(predictor)

    def likelihood(self, predictor: Array, tally: Tally, noise_variance: Any) -> Array:
        return predictor @ tally.sums - self.integral(predictor) @ tally.counts


class BinaryLaw(Law, Protocol):
    """Rewards that are 0 or 1: whatever the mean function, chances and the variance μ (1 − μ)."""

    limits: ClassVar[tuple[float, float]] = (0.0, 1.0)
    counts_suffice: ClassVar[bool] = True
    turn: ClassVar[float | None] = 1.0

    def variance(self, mean: Array, noise_variance: Any) -> Array:
        return mean * (1 - mean)

    def variance_at(self, predictor: Array, noise_variance: Any) -> Array:
        mean = np.clip(self.value(predictor), EDGE, 1 - EDGE)
        return mean * (1 - mean)

    def likelihood(self, predictor: Array, tally: Tally, noise_variance: Any) -> Array:
        mean = np.clip(self.value(predictor), EDGE, 1 - EDGE)
        return np.log(mean) @ tally.sums + np.log1p(-mean) @ (tally.counts - tally.sums)

    def check(self, tally: Tally) -> None:
        if np.any(np.abs(tally.sums - tally.squares) > 1e-9 * (1 + tally.counts)):
            raise RewardError(f"the {self.named()} model needs rewards that are 0 or 1; others were given")

    def noise(self, noise_variance: float | None) -> Noise:
        return Bernoulli()

    def lack_of_fit(self, rank: int, mean: Array, tally: Tally, noise_variance: float | None) -> FitCheck:
        return pearson(rank, mean, self.variance(mean, noise_variance), tally)


class CountLaw(Law, Protocol):
    """Rewards that are counts 0, 1, 2, ...: whatever the mean function, their variance is their mean."""

    limits: ClassVar[tuple[float, float]] = (0.0, math.inf)
    counts_suffice: ClassVar[bool] = True
    turn: ClassVar[float | None] = None

    def variance(self, mean: Array, noise_variance: Any) -> Array:
        return mean

    def variance_at(self, predictor: Array, noise_variance: Any) -> Array:
        return np.maximum(self.value(predictor), EDGE)

    def likelihood(self, predictor: Array, tally: Tally, noise_variance: Any) -> Array:
        mean = np.maximum(self.value(predictor), EDGE)
        return np.log(mean) @ tally.sums - mean @ tally.counts

    def check(self, tally: Tally) -> None:
        if np.any((tally.sums < 0) | (np.abs(tally.sums - np.round(tally.sums)) > 1e-6)):
            raise RewardError(f"the {self.named()} model needs rewards that are counts 0, 1, 2, ...; others were given")

    def noise(self, noise_variance: float | None) -> Noise:
        return PoissonNoise()

    def quick_noise(self, noise_variance: float | None) -> Noise:
        return Counts()

    def check_means(self, means: Array) -> None:
        if np.min(means) < 0:
            raise InputError("a simulated column of mean counts must not be negative")
        if np.max(means) > LARGEST_COUNT:
            raise InputError(f"a simulated column of mean counts must not go beyond {LARGEST_COUNT:g}")

    def lack_of_fit(self, rank: int, mean: Array, tally: Tally, noise_variance: float | None) -> FitCheck:
        return pearson(rank, mean, self.variance(mean, noise_variance), tally)


@dataclass(frozen=True)
class Logistic(Canonical, BinaryLaw):
    """h(z) = 1 / (1 + e⁻ᶻ): rewards are 0 or 1."""

    def named(self) -> str:
        return "logistic"

    def value(self, predictor: Array) -> Array:
        return (1 + np.tanh(predictor / 2)) / 2

    def slope(self, predictor: Array) -> Array:
        return 0.25 / np.cosh(predictor / 2) ** 2

    def integral(self, predictor: Array) -> Array:
        return np.logaddexp(predictor, np.zeros_like(predictor))

    def inverse(self, mean: float) -> float:
        return math.log(mean / (1 - mean)) if 0 < mean < 1 else math.inf

    def check_means(self, means: Array) -> None:
        if np.min(means) < 0 or np.max(means) > 1:
            raise InputError("a simulated column of chances must lie between 0 and 1; --scale minmax would do that")


@dataclass(frozen=True)
class Poisson(Canonical, CountLaw):
    """h(z) = eᶻ: rewards are counts 0, 1, 2, ..."""

    def value(self, predictor: Array) -> Array:
        return np.exp(predictor)

    slope = value
    integral = value

    def inverse(self, mean: float) -> float:
        return math.log(mean) if 0 < mean < math.inf else math.inf


@dataclass(frozen=True)
class Identity(Law):
    """h(z) = z: the linear model, any rewards."""

    def named(self) -> str:
        return "linear"

    def value(self, predictor: Array) -> Array:
        return predictor

    def slope(self, predictor: Array) -> Array:
        return np.ones_like(predictor)

    def integral(self, predictor: Array) -> Array:
        return predictor**2 / 2

    def inverse(self, mean: float) -> float:
        return mean

    def posterior(self, effects: Effects, tally: Tally, noise_variance: float | None, draws: int, rng: Any) -> Believed:
        return normal(effects, tally, noise_variance, draws, rng)

    def stretch(self, gap: float, base: float, best: Array, second: Array, steps: Array) -> Array:
        with np.errstate(all="ignore"):
            return gap / (best - second)

    def hardness(self, gap: float | None, predictors: Array) -> Array:
        return super().hardness(gap, predictors) if gap is None else np.array([gap])


@dataclass(frozen=True)
class Custom(Law):
    """A person's own increasing, differentiable mean function, given as a vectorised function.

    What else there is of a law is as in `Law`; a law of one's own, a class, can be written down in the log of a study,
    and may take other rewards.
    """

    mean: Callable[[Any], Any]
    derivative: Callable[[Any], Any] | None = None

    def value(self, predictor: Array) -> Array:
        return self.mean(predictor)

    def slope(self, predictor: Array) -> Array:
        return super().slope(predictor) if self.derivative is None else self.derivative(predictor)


def law_of(given: Any) -> Law:
    """Return a law as it is; what is none is refused by what it lacks."""
    wanted = [name for name in vars(Law) if not name.startswith("_")]
    missing = [name for name in wanted if not hasattr(given, name)]
    if missing:
        raise InputError(
            f"{type(given).__name__} is no law of rewards: it has no {', '.join(missing)}; a class derived from "
            "bestarm.models.law.Law needs `value` alone, a function goes into Custom(function)"
        )
    low, high = given.value(np.array([-1.0, 1.0]))
    if not low < high:
        raise InputError(f"{type(given).__name__}: value must increase; it is {low:g} at -1 and {high:g} at 1")
    law: Law = given
    return law
