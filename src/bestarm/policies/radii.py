"""How wide confidence intervals are: their unit, by how many units a bound lies off the estimate, and the noise."""

from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt
from typing import Protocol

import numpy as np

from bestarm.core import Array, Problem
from bestarm.designs.starts import spanning
from bestarm.errors import InputError
from bestarm.linalg import Candidates, rank
from bestarm.models.law import Law, Logistic
from bestarm.posteriors import root

LEAST = 1e-12  # β² below this counts as this


def known_noise(problem: Problem, given: float | None, name: str, otherwise: str = "") -> float:
    """Return the noise variance: the setting `given`, else the problem's; who needs it says so, and what else helps."""
    noise = given if given is not None else problem.noise_variance
    if noise is None:
        raise InputError(
            f"{name} needs the variance of the noise, and the problem does not tell it; "
            f"give it as the setting noise_variance{otherwise}"
        )
    if not noise >= 0:
        raise InputError(f"noise_variance must not be negative; given {noise}")
    return float(noise)


def reward_range(problem: Problem) -> float:
    """Return b = 2σ, which stands in for the range of rewards in rules for rewards in [0, b]; 1 where σ is not known.

    Both have P(a mean of n is off by b √(a/n)) ≤ exp(−2a) (Hoeffding).
    """
    return 1.0 if problem.noise_variance is None else 2 * problem.noise_variance**0.5


class IntervalWidth(Protocol):
    """How the variance of an estimate becomes the unit of its confidence interval."""

    def of(self, variance: Array) -> Array: ...


@dataclass(frozen=True)
class Deviation:
    """The standard deviation."""

    def of(self, variance: Array) -> Array:
        return root(variance)


@dataclass(frozen=True)
class Variance:
    """The variance itself, as the GSE paper's published code has it."""

    def of(self, variance: Array) -> Array:
        return variance


@dataclass(frozen=True)
class RadiusInputs:
    """What the radius of a confidence interval may depend on; `ridge` is λ, one over the prior variance."""

    problem: Problem
    ridge: float = 1.0
    noise_variance: float | None = None  # None: the problem's

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise."""
        return sqrt(known_noise(self.problem, self.noise_variance, "this radius", ", or take the radius Fixed(..)"))

    @cached_property
    def longest(self) -> Array:
        """The largest |x_i|, `(...)`."""
        x = self.problem.features
        return np.sqrt(np.max(np.vecdot(x, x), axis=-1))

    @cached_property
    def dimension(self) -> Array:
        """The dimension of the span, at least 1, `(...)`."""
        return np.maximum(rank(Candidates.of(self.problem.features).coordinates), 1.0)


class Radius(Protocol):
    """By how many widths an upper confidence bound lies above the estimate."""

    def of(self, given: RadiusInputs, spent: int) -> Array | float:
        """Return the multiple, a number or `(...)`, after `spent` pulls."""
        ...


@dataclass(frozen=True)
class Fixed:
    """A number."""

    value: float = 1.0

    def of(self, given: RadiusInputs, spent: int) -> Array | float:
        return self.value


@dataclass(frozen=True)
class OfNoise:
    """`times` σ, but never below `least`: without noise there would be no reason to look at a second arm.

    >>> OfNoise(2.0).of(RadiusInputs(Problem(np.eye(2), 100, noise_variance=9.0)), 0)
    6.0
    """

    times: float = 2.0
    least: float = 0.5

    def of(self, given: RadiusInputs, spent: int) -> Array | float:
        return max(self.times * given.sigma, self.least)


@dataclass(frozen=True)
class Li2010:
    """1 + √(ln(2/δ)/2) (Li, Chu, Langford and Schapire 2010), for rewards in [0, 1].

    >>> round(Li2010(delta=0.1).of(RadiusInputs(Problem(np.eye(2), 100)), 0), 4)
    2.2239
    """

    delta: float = 0.1

    def of(self, given: RadiusInputs, spent: int) -> Array | float:
        return 1 + sqrt(log(2 / self.delta) / 2)


@dataclass(frozen=True)
class OFUL:
    """σ √(d log((1 + t L²/λ)/δ)) + √λ S, d features, |x| ≤ L and |θ| ≤ S (Abbasi-Yadkori, Pál and Szepesvári 2011)."""

    delta: float = 0.1
    bound: float = 1.0

    def of(self, given: RadiusInputs, spent: int) -> Array | float:
        inside = (1 + spent * given.longest**2 / given.ridge) / self.delta
        return given.sigma * np.sqrt(given.problem.features.shape[-1] * np.log(inside)) + sqrt(given.ridge) * self.bound


@dataclass(frozen=True)
class Li2017:
    """(σ/κ) √((d/2) ln(1 + 2B/d) + ln(1/δ)) (Li, Lu and Zhou 2017, Theorem 2); δ None is 1/B.

    κ is the least slope of the mean function where it matters; 1/4 is the largest slope of the logistic one.
    """

    slope: float = 0.25
    delta: float | None = None

    def of(self, given: RadiusInputs, spent: int) -> Array | float:
        half = given.dimension / 2
        delta = self.delta if self.delta is not None else 1 / given.problem.budget
        return given.sigma / self.slope * np.sqrt(half * np.log(1 + given.problem.budget / half) + log(1 / delta))


@dataclass(frozen=True)
class Filippi2010:
    """α √(ln t), the asymptotic form of GLM-UCB's radius (Filippi, Cappé, Garivier and Szepesvári 2010).

    >>> round(Filippi2010().of(RadiusInputs(Problem(np.eye(1), 100)), 10), 4)
    0.7587
    """

    alpha: float = 0.5

    def of(self, given: RadiusInputs, spent: int) -> Array | float:
        return self.alpha * sqrt(log(max(spent, 1)))


@dataclass(frozen=True)
class Filippi2010Theory:
    """(2 k_h κ R / c_h) √(2 d ln t ln(2 d B/δ)), κ = √(3 + 2 ln(1 + 2 L²/λ_0)), as GLM-UCB's theorem has it.

    k_h and c_h are the largest and the least slope of h on |x'θ| ≤ L S, λ_0 the least eigenvalue of Σ x x' over the
    arms of `spanning`, L the largest |x|, R the range of rewards. At sizes that matter it is larger than any reward.

    >>> float(Filippi2010Theory().of(RadiusInputs(Problem(np.eye(2), 1000)), 100).round(1))
    83.6
    """

    delta: float = 0.05
    bound: float = 1.0
    range: float = 1.0
    law: Law = Logistic()

    def of(self, given: RadiusInputs, spent: int) -> Array | float:
        x, d = given.problem.features, given.dimension
        basis = x * spanning(x)[..., None]
        values = np.linalg.eigvalsh(np.matrix_transpose(basis) @ basis)
        place = x.shape[-1] - d.astype(np.int64)
        least = np.maximum(np.take_along_axis(values, place[..., None], axis=-1)[..., 0], LEAST)
        kappa = np.sqrt(3 + 2 * np.log(1 + 2 * given.longest**2 / least))
        steep = self.law.slope(np.zeros_like(d)) * 2 * kappa * self.range / self.law.slope(given.longest * self.bound)
        return steep * np.sqrt(2 * d * log(max(spent, 1)) * np.log(2 * d * given.problem.budget / self.delta))


class Confidence(IntervalWidth, Protocol):
    """How sure to be: the unit of the confidence intervals, and how many units they are wide."""

    def beta(self, scale: Array, gaps: Array) -> Array:
        """Return β `(...)` from the information at hand `(...)` and the gaps H_k `(..., K)`."""
        ...


@dataclass(frozen=True)
class Hoffman(Deviation):
    """Standard deviations; β² = ((B − K)/σ² + κ/η²) / (4 Σ_k H_k⁻²)."""

    def beta(self, scale: Array, gaps: Array) -> Array:
        squared = scale / (4 * np.sum(1 / (gaps * gaps), axis=-1))
        return np.sqrt(np.maximum(squared, LEAST))


@dataclass(frozen=True)
class Azizi2021(Variance):
    """The GSE paper's published code: variances for deviations, Σ_k H_k for Σ_k H_k⁻², and no square root of β²."""

    def beta(self, scale: Array, gaps: Array) -> Array:
        plain = scale / (4 * np.sum(gaps, axis=-1))
        return np.maximum(plain, LEAST)
