"""Posteriors of the K means, tracked pull by pull.

A normal posterior is that of f = (f_1, .., f_K) given counts and sums, under a prior f ~ N(0, C_0) and rewards with
variance σ². Pulling arm a c times with sum S moves it by one column of the covariance C:

    mean += C_a (S − c mean_a) / (σ² + c C_aa),    C −= c C_a C_a' / (σ² + c C_aa).

What differs between models is only how C is held: d × d for linear means, K × K for a kernel, K for separate means.
Ridge regression with A = λI + Σ x x' is the linear posterior with σ² = 1 and prior variance 1/λ: then C = X A⁻¹ X'.
"""

from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any, Protocol

import numpy as np

from bestarm.core import Array, Pulls, Totals
from bestarm.errors import InputError
from bestarm.kernels import Kernel
from bestarm.linalg import accumulate, leverage, matvec, one_hot, pick, power_of_two, row

REFRESH = 256  # rank-one updates between two refits; the errors of so many stay near 1e-13
VAGUE = 2.0**20  # standard deviations of the noise that the prior of a coefficient times its feature has at most
PENDING = 16  # columns a kernel posterior holds back before it subtracts them all in one product


class Covariance(Protocol):
    """C, held in some form; `direction` is what that form needs to know of an arm."""

    def direction(self, arm: Array) -> Array: ...

    def difference(self, i: Array, j: Array) -> Array:
        """Return the direction of arm `i` less that of `j`."""
        ...

    def column(self, direction: Array) -> Array:
        """Return C_a `(..., K)` for the `direction` of arm a."""
        ...

    def less(self, direction: Array, scale: Array) -> "Covariance":
        """Return C − scale C_a C_a'."""
        ...

    def due(self, updates: int, columns: int) -> bool:
        """Return whether to refit at the last `columns` of `updates` updates rather than track them."""
        ...

    def refit(self, counts: Array, sums: Array, noise: float) -> tuple["Covariance", Array, Array, Array]:
        """Return C, the means, the variances and log det(I + C_0 N / σ²) given all data, starting from the prior."""
        ...


@dataclass(frozen=True)
class Coefficients:
    """C = X P X' with P `(..., d, d)` the covariance of the coefficients: memory O(d²), a column O(Kd)."""

    features: Array  # X, (..., K, d)
    variance: float  # of a coefficient, a priori
    inverse: Array  # P, the inverse of I/variance + Σ n_i x_i x_i'/σ²

    def direction(self, arm: Array) -> Array:
        return matvec(self.inverse, row(self.features, arm))

    def difference(self, i: Array, j: Array) -> Array:
        return matvec(self.inverse, row(self.features, i) - row(self.features, j))

    def column(self, direction: Array) -> Array:
        return matvec(self.features, direction)

    def less(self, direction: Array, scale: Array) -> "Coefficients":
        inverse = (direction * -scale[..., None])[..., :, None] * direction[..., None, :]
        inverse += self.inverse
        return replace(self, inverse=inverse)

    def due(self, updates: int, columns: int) -> bool:
        early = updates & (updates - 1) == 0  # while a vague prior still dominates, updates cancel badly
        return early or columns > self.features.shape[-1] or updates // REFRESH > (updates - columns) // REFRESH

    def refit(self, counts: Array, sums: Array, noise: float) -> tuple["Coefficients", Array, Array, Array]:
        x = self.features
        transposed = np.matrix_transpose(x)
        ratio = transposed @ (x * (counts * (self.variance / noise))[..., None])  # prior variance times precision
        ratio = ratio + np.eye(x.shape[-1], dtype=x.dtype)
        inverse, information = _inverted(ratio)
        inverse = self.variance * inverse
        mean = matvec(x, matvec(inverse, matvec(transposed, sums / noise)))
        return replace(self, inverse=inverse), mean, leverage(x, inverse), information


@dataclass(frozen=True)
class Full:
    """C itself, `(..., K, K)`, less u u' for the last few columns u: one product for sixteen passes over C."""

    prior: Array
    now: Array
    pending: tuple[Array, ...] = ()

    def direction(self, arm: Array) -> Array:
        column = row(self.now, arm)
        for u in self.pending:
            column = column - u * pick(u, arm)[..., None]
        return column

    def difference(self, i: Array, j: Array) -> Array:
        return self.direction(i) - self.direction(j)

    def column(self, direction: Array) -> Array:
        return direction

    def less(self, direction: Array, scale: Array) -> "Full":
        pending = (*self.pending, direction * np.sqrt(scale)[..., None])
        if len(pending) < PENDING:
            return replace(self, pending=pending)
        u = np.stack(pending, axis=-1)
        return replace(self, now=self.now - u @ np.matrix_transpose(u), pending=())

    def due(self, updates: int, columns: int) -> bool:
        every = 4 * REFRESH  # K³ is dear, and with C itself at hand there is less to lose
        return columns > self.now.shape[-1] or updates // every > (updates - columns) // every

    def refit(self, counts: Array, sums: Array, noise: float) -> tuple["Full", Array, Array, Array]:
        """With W = diag(√n)/σ: C = C_0 − C_0 W (I + W C_0 W)⁻¹ W C_0, which an arm never pulled leaves alone."""
        w = np.sqrt(counts / noise)
        weighted = self.prior * w[..., :, None]  # W C_0
        inner = weighted * w[..., None, :] + np.eye(w.shape[-1], dtype=w.dtype)
        now = self.prior - np.matrix_transpose(weighted) @ np.linalg.solve(inner, weighted)
        variance = np.linalg.diagonal(now)
        return Full(self.prior, now), matvec(now, sums / noise), variance, np.linalg.slogdet(inner)[1]


@dataclass(frozen=True)
class Separate:
    """C is diagonal: what one arm gives says nothing of the others."""

    prior: Array
    now: Array

    def direction(self, arm: Array) -> Array:
        return one_hot(arm, self.now.shape[-1], self.now.dtype) * self.now

    def difference(self, i: Array, j: Array) -> Array:
        return self.direction(i) - self.direction(j)

    def column(self, direction: Array) -> Array:
        return direction

    def less(self, direction: Array, scale: Array) -> "Separate":
        return replace(self, now=self.now - direction * direction * scale[..., None])

    def due(self, updates: int, columns: int) -> bool:
        return columns > 1 or updates % REFRESH == 0

    def refit(self, counts: Array, sums: Array, noise: float) -> tuple["Separate", Array, Array, Array]:
        ratio = 1 + counts * self.prior / noise
        now = self.prior / ratio
        return Separate(self.prior, now), now * sums / noise, now, np.sum(np.log(ratio), axis=-1)


@dataclass(frozen=True)
class NormalPosterior:
    """The normal distribution of K means given some pulls.

    >>> import numpy as np
    >>> posterior = LinearPrior(variance=1.0).posterior(np.eye(2), noise=1.0)
    >>> posterior = posterior.update(np.array([0]), np.array([3]), np.array([6.0]))
    >>> posterior.mean, posterior.variance
    (array([1.5, 0. ]), array([0.25, 1.  ]))
    """

    mean: Array  # (..., K)
    variance: Array  # the diagonal of C, (..., K)
    counts: Array  # pulls of each arm, (..., K)
    sums: Array  # of their rewards, (..., K)
    information: Array  # log det(I + C_0 N / σ²), (...)
    noise: float  # σ²
    covariance: Covariance = field(repr=False)
    updates: int = 0

    @property
    def deviation(self) -> Array:
        """The standard deviation of each mean, `(..., K)`."""
        return root(self.variance)

    def covariances(self, arm: Array) -> Array:
        """Return C_a `(..., K)`, the covariances of all means with that of `arm` `(...)`."""
        return self.covariance.column(self.covariance.direction(arm))

    def distances(self, arm: Array) -> Array:
        """Return Var(f_k − f_arm) for all k, `(..., K)`; rounding may leave it a little below zero."""
        squared = self.covariance.column(-2 * self.covariance.direction(arm))
        squared += self.variance
        squared += pick(self.variance, arm)[..., None]
        return squared

    def contrast(self, i: Array, j: Array) -> Array:
        """Return C_i − C_j `(..., K)`, the covariances of all means with the difference of arms `i` and `j` `(...)`."""
        return self.covariance.column(self.covariance.difference(i, j))

    def update(self, arms: Array, times: Array, sums: Array) -> "NormalPosterior":
        """Return the posterior after `arms` `(..., m)` were pulled `times` `(..., m)` and gave `sums` `(..., m)`."""
        times = np.astype(times, self.mean.dtype)
        counts = accumulate(np.asarray(self.counts, copy=True), arms, times)
        totals = accumulate(np.asarray(self.sums, copy=True), arms, sums)
        columns = arms.shape[-1]
        updates = self.updates + columns
        posterior = replace(self, counts=counts, sums=totals, updates=updates)
        if self.covariance.due(updates, columns):
            return posterior.refitted(counts, totals)
        for j in range(columns):
            posterior = posterior._absorb(arms[..., j], times[..., j], sums[..., j])
        return posterior

    def after(self, pulls: Pulls, totals: Totals) -> "NormalPosterior":
        """Return the posterior after `pulls` gave `totals`."""
        return self.update(pulls.arms, pulls.times, totals.sums)

    def refitted(self, counts: Array, sums: Array) -> "NormalPosterior":
        """Return the posterior given all data `(..., K)`, from the prior: dearer than `update`, and never off."""
        covariance, mean, variance, information = self.covariance.refit(counts, sums, self.noise)
        news = {"covariance": covariance, "mean": mean, "variance": variance, "information": information}
        return replace(self, counts=counts, sums=sums, **news)

    def _absorb(self, arm: Array, times: Array, sum_: Array) -> "NormalPosterior":
        direction = self.covariance.direction(arm)
        column = self.covariance.column(direction)
        spread = self.noise + times * pick(self.variance, arm)
        step = (sum_ - times * pick(self.mean, arm)) / spread
        scale = times / spread
        variance = column * column
        variance *= -scale[..., None]
        variance += self.variance
        mean = column * step[..., None]
        mean += self.mean
        return replace(
            self,
            mean=mean,
            variance=variance,
            information=self.information + np.log(spread / self.noise),
            covariance=self.covariance.less(direction, scale),
        )


@dataclass(frozen=True)
class LinearPrior:
    """f_i = x_i'θ with θ ~ N(0, variance I). Only inner products matter: features beyond K are rotated away."""

    variance: float = 1.0

    def posterior(self, features: Array, noise: float) -> NormalPosterior:
        if features.shape[-1] > features.shape[-2]:
            left, values, _ = np.linalg.svd(features, full_matrices=False)
            features = left * values[..., None, :]
        features = _vague_at_most(features, self.variance, noise)
        identity = np.eye(features.shape[-1], dtype=features.dtype)
        inverse = self.variance * np.broadcast_to(identity, (*features.shape[:-2], *identity.shape))
        variance = self.variance * np.vecdot(features, features)
        return _fresh(Coefficients(features, self.variance, inverse), variance, noise)


@dataclass(frozen=True)
class RidgePrior:
    """Ridge regression with penalty λ: f_i = x_i'θ with θ ~ N(0, I/λ) in units of the noise."""

    ridge: float = 1.0

    def __post_init__(self) -> None:
        if not self.ridge > 0:
            raise InputError(f"ridge must be positive; given {self.ridge}")

    @property
    def variance(self) -> float:
        return 1 / self.ridge

    def posterior(self, features: Array, noise: float) -> NormalPosterior:
        return LinearPrior(self.variance).posterior(features, noise)


@dataclass(frozen=True)
class KernelPrior:
    """f ~ N(0, variance k(x_i, x_j)): arms alike in features are alike in mean, in whatever shape."""

    kernel: Kernel
    variance: float = 1.0

    def posterior(self, features: Array, noise: float) -> NormalPosterior:
        gram = self.variance * self.kernel(features, features)
        return _fresh(Full(gram, gram), np.linalg.diagonal(gram), noise)


@dataclass(frozen=True)
class SeparatePrior:
    """f_i = x_i'θ_i with a θ_i ~ N(0, variance I) of its own for each arm: nothing is shared."""

    variance: float = 1.0

    def posterior(self, features: Array, noise: float) -> NormalPosterior:
        features = _vague_at_most(features, self.variance, noise)
        variance = self.variance * np.vecdot(features, features)
        return _fresh(Separate(variance, variance), variance, noise)


def _inverted(ratio: Array) -> tuple[Array, Array]:
    """Return the inverse and log det of I + A `(..., d, d)`, no eigenvalue of A negative.

    Where A is so large that rounding hides I, the matrix may be singular as it stands: no eigenvalue is below 1 then.
    """
    try:
        return np.linalg.inv(ratio), np.linalg.slogdet(ratio)[1]
    except np.linalg.LinAlgError:
        if ratio.ndim > 2:  # one by one, so that no replication depends on its neighbours
            each = [_inverted(ratio[j, ...]) for j in range(ratio.shape[0])]
            return np.stack([inverse for inverse, _ in each]), np.stack([log_det for _, log_det in each])
        values, vectors = np.linalg.eigh(ratio)
        values = np.maximum(values, np.ones_like(values))
        return (vectors / values) @ np.matrix_transpose(vectors), np.sum(np.log(values))


def _vague_at_most(features: Array, variance: float, noise: float) -> Array:
    """Return features with none so large that the prior is more than VAGUE times as wide as the noise of one pull.

    Beyond, what is known of a mean drowns in the rounding of what was not known before, and its square overflows.
    """
    ratio = np.max(np.abs(features), axis=-2, keepdims=True) * sqrt(variance / noise)
    return features * np.where(ratio > VAGUE, power_of_two(ratio, 0) * VAGUE, np.ones_like(ratio))


def root(variance: Array) -> Array:
    """Return the square root of what is not negative but for rounding."""
    return np.sqrt(np.maximum(variance, 0.0))


def _fresh(covariance: Any, variance: Array, noise: float) -> NormalPosterior:
    zero = np.zeros_like(variance)
    return NormalPosterior(zero, variance, zero, zero, zero[..., 0], noise, covariance)
