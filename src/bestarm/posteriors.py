"""What is known of K means, and the normal posteriors that are tracked pull by pull.

f = (f_1, .., f_K) ~ N(0, C_0) beforehand and rewards of variance σ²; with counts N = diag(n) and sums S,

    m = C S / σ²,    C = (C_0⁻¹ + N/σ²)⁻¹.                                                          (1)

Pulling arm a c times with sum s moves both by one column of C:

    m += C_a (s − c m_a) / (σ² + c C_aa),    C −= c C_a C_a' / (σ² + c C_aa).                       (2)

A draw needs no root of C: with f_0 from the prior and noise ε ~ N(0, I), it is (Matheron's rule)

    f = f_0 + C (S − N f_0 − σ √N ε) / σ².                                                          (3)

What differs between models is only how C is held: d × d for linear means, K × K for a kernel, K for separate means.
Ridge regression with A = λI + Σ x x' is the linear posterior with σ² = 1 and prior variance 1/λ: then C = X A⁻¹ X'.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Protocol, TypeAlias

import numpy as np

from bestarm.core import Array, Pulls, Totals
from bestarm.linalg import accumulate, leverage, matvec, one_hot, pick, row

STAND_IN = 1e4  # prior variance of a coefficient beyond which the prior is there only so that inverses exist
REFRESH = 256  # rank-one updates between two refits; the errors of so many stay near 1e-13
PENDING = 16  # columns a kernel posterior holds back before it subtracts them all in one product

Normal: TypeAlias = Callable[[tuple[int, ...]], Array]  # independent standard normal numbers of a shape


class Posterior(Protocol):
    """What is known of K means, whoever made it: policies, models and hypotheses answer to these names.

    Where nothing else is said, the means are independent.
    """

    @property
    def mean(self) -> Array:
        """The expected means, `(..., K)`."""
        ...

    @property
    def variance(self) -> Array:
        """The variance of each, `(..., K)`."""
        ...

    def column(self, arm: Array) -> Array:
        """Return C_a `(..., K)`, the covariances of all means with that of `arm` `(...)`."""
        return one_hot(arm, self.variance.shape[-1]) * self.variance

    def draw(self, count: int, normal: Normal) -> Array:
        """Return that many draws of the means, `(..., count, K)`, made of `normal` numbers."""
        *batch, arms = self.mean.shape
        return self.mean[..., None, :] + root(self.variance)[..., None, :] * normal((*batch, count, arms))


class Covariance(Protocol):
    """C, held in some form; `direction` is what that form needs to know of an arm."""

    def direction(self, arm: Array) -> Array: ...

    def difference(self, i: Array, j: Array) -> Array:
        """Return the direction of arm `i` less that of `j`."""
        return self.direction(i) - self.direction(j)

    def column(self, direction: Array) -> Array:
        """Return C_a `(..., K)` for the `direction` of arm a, which is C_a itself unless C is held otherwise."""
        return direction

    def times(self, vectors: Array) -> Array:
        """Return C v for each of the `vectors` `(..., n, K)`."""
        ...

    def prior_draws(self, normal: Array) -> Array:
        """Return draws f_0 from N(0, C_0), made of as many `normal` numbers `(..., n, K)`."""
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
class Coefficients(Covariance):
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

    def times(self, vectors: Array) -> Array:
        return vectors @ self.features @ self.inverse @ self.features.mT

    def prior_draws(self, normal: Array) -> Array:
        return sqrt(self.variance) * normal[..., : self.features.shape[-1]] @ self.features.mT

    def less(self, direction: Array, scale: Array) -> "Coefficients":
        inverse = (direction * -scale[..., None])[..., :, None] * direction[..., None, :]
        inverse += self.inverse
        return replace(self, inverse=inverse)

    def due(self, updates: int, columns: int) -> bool:
        d = self.features.shape[-1]
        # while a vague prior still dominates, updates cancel badly
        early = updates & (updates - 1) == 0 or (self.variance > STAND_IN and updates <= 4 * d)
        return early or columns > d or updates // REFRESH > (updates - columns) // REFRESH

    def refit(self, counts: Array, sums: Array, noise: float) -> tuple["Coefficients", Array, Array, Array]:
        x = self.features
        transposed = np.matrix_transpose(x)
        ratio = transposed @ (x * (counts * (self.variance / noise))[..., None])  # prior variance times precision
        ratio = ratio + np.eye(x.shape[-1], dtype=x.dtype)
        inverse, information = _inverted(ratio)
        inverse = self.variance * inverse
        mean = matvec(x, matvec(inverse, matvec(transposed, sums / noise)))  # Eq. 1
        return replace(self, inverse=inverse), mean, leverage(x, inverse), information


@dataclass(frozen=True)
class Full(Covariance):
    """C itself, `(..., K, K)`, less u u' for the last few columns u: one product for sixteen passes over C."""

    prior: Array
    now: Array
    pending: tuple[Array, ...] = ()

    def direction(self, arm: Array) -> Array:
        column = row(self.now, arm)
        for u in self.pending:
            column = column - u * pick(u, arm)[..., None]
        return column

    @property
    def variance(self) -> Array:
        """The diagonal of C, `(..., K)`."""
        return np.linalg.diagonal(self.now) - sum(u * u for u in self.pending)

    def times(self, vectors: Array) -> Array:
        total = (self.now @ vectors.mT).mT
        for u in (column[..., None, :] for column in self.pending):
            total = total - u * np.vecdot(u, vectors)[..., None]
        return total

    def prior_draws(self, normal: Array) -> Array:
        return normal @ symmetric_root(self.prior)

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
class Separate(Covariance):
    """C is diagonal: what one arm gives says nothing of the others."""

    prior: Array
    now: Array

    def direction(self, arm: Array) -> Array:
        return one_hot(arm, self.now.shape[-1], self.now.dtype) * self.now

    def times(self, vectors: Array) -> Array:
        return self.now[..., None, :] * vectors

    def prior_draws(self, normal: Array) -> Array:
        return np.sqrt(self.prior)[..., None, :] * normal

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

    >>> from bestarm.policies.posteriors import LinearPrior
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

    def column(self, arm: Array) -> Array:
        return self.covariance.column(self.covariance.direction(arm))

    def draw(self, count: int, normal: Normal) -> Array:
        *batch, arms = self.mean.shape
        one, two = normal((2, *batch, count, arms))
        prior, counts, sums = self.covariance.prior_draws(one), self.counts[..., None, :], self.sums[..., None, :]
        unexplained = sums - counts * prior - np.sqrt(counts * self.noise) * two
        return prior + self.covariance.times(unexplained) / self.noise  # Eq. 3

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
        C, mean, variance, information = self.covariance.refit(counts, sums, self.noise)
        return NormalPosterior(mean, variance, counts, sums, information, self.noise, C, self.updates)

    def _absorb(self, arm: Array, times: Array, sum_: Array) -> "NormalPosterior":
        direction = self.covariance.direction(arm)
        column = self.covariance.column(direction)
        spread = self.noise + times * pick(self.variance, arm)  # Eq. 2
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


def root(variance: Array) -> Array:
    """Return the square root of what is not negative but for rounding."""
    return np.sqrt(np.maximum(variance, 0.0))


def symmetric_root(matrix: Array) -> Array:
    """Return the symmetric root of a matrix `(..., n, n)`, no eigenvalue negative but for rounding."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * root(values)[..., None, :]) @ vectors.mT
