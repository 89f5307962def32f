"""Generalized linear rewards: μ_i = h(x_i'θ) with an increasing mean function h."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bestarm.core import Array, Tally, namespace
from bestarm.errors import RewardError
from bestarm.iterate import Work, iterate
from bestarm.linalg import Candidates, leverage, matvec, moment, rank
from bestarm.models.protocols import Fit

FAR = 500.0  # predictors beyond this are at the ends of any mean function, and exp overflows at 709
LONGEST = 8.0  # no Newton step moves a predictor farther


class MeanFunction(Protocol):
    """h with its slope h' and its integral b, b' = h."""

    def value(self, predictor: Array) -> Array: ...

    def slope(self, predictor: Array) -> Array: ...

    def integral(self, predictor: Array) -> Array: ...

    def check(self, tally: Tally) -> None:
        """Raise RewardError unless such rewards can have this mean function."""
        ...


@dataclass(frozen=True)
class Logistic:
    """h(z) = 1 / (1 + e⁻ᶻ): rewards are 0 or 1."""

    def value(self, predictor: Array) -> Array:
        return (1 + namespace(predictor).tanh(predictor / 2)) / 2

    def slope(self, predictor: Array) -> Array:
        return 0.25 / namespace(predictor).cosh(predictor / 2) ** 2

    def integral(self, predictor: Array) -> Array:
        xp = namespace(predictor)
        return xp.logaddexp(predictor, xp.zeros_like(predictor))

    def check(self, tally: Tally) -> None:
        xp = namespace(tally.sums)
        if bool(xp.any(xp.abs(tally.sums - tally.squares) > 1e-9 * (1 + tally.counts))):
            raise RewardError("the logistic model needs rewards that are 0 or 1; others were given")


@dataclass(frozen=True)
class Poisson:
    """h(z) = eᶻ: rewards are counts 0, 1, 2, ..."""

    def value(self, predictor: Array) -> Array:
        return namespace(predictor).exp(predictor)

    slope = value
    integral = value

    def check(self, tally: Tally) -> None:
        xp = namespace(tally.sums)
        if bool(xp.any((tally.sums < 0) | (xp.abs(tally.sums - xp.round(tally.sums)) > 1e-6))):
            raise RewardError("the Poisson model needs rewards that are counts 0, 1, 2, ...; others were given")


@dataclass(frozen=True)
class Identity:
    """h(z) = z: the linear model, any rewards."""

    def value(self, predictor: Array) -> Array:
        return predictor

    def slope(self, predictor: Array) -> Array:
        return namespace(predictor).ones_like(predictor)

    def integral(self, predictor: Array) -> Array:
        return predictor**2 / 2

    def check(self, tally: Tally) -> None:
        return


@dataclass(frozen=True)
class Custom:
    """A person's own increasing, differentiable mean function, given as a vectorised function.

    Its slope is taken by central differences unless given, its integral by Gauss-Legendre quadrature.
    """

    mean: Callable[[Any], Any]
    derivative: Callable[[Any], Any] | None = None

    def value(self, predictor: Array) -> Array:
        return self.mean(predictor)

    def slope(self, predictor: Array) -> Array:
        if self.derivative is not None:
            return self.derivative(predictor)
        step = 1e-5
        return (self.mean(predictor + step) - self.mean(predictor - step)) / (2 * step)

    def integral(self, predictor: Array) -> Array:
        nodes, weights = np.polynomial.legendre.leggauss(24)
        parts = (w / 2 * self.mean(predictor * (node + 1) / 2) for node, w in zip(nodes, weights, strict=True))
        return predictor * sum(parts)

    def check(self, tally: Tally) -> None:
        return


@dataclass(frozen=True)
class GLM:
    """θ solves Σ_i x_i (S_i − n_i h(x_i'θ)) = 0, by batched Newton steps (IRLS) with halving.   Eq. (4)

    `ridge` times the mean information of a coordinate is added to the Hessian: invisible where the maximum-likelihood
    estimate exists, and what keeps it finite under separation or one-class data.

    >>> one = Candidates.of(np.ones((1, 1)))
    >>> GLM().fit(one, Tally(np.array([10.0]), np.array([7.0]), np.array([7.0]))).score.round(4)  # logit 0.7
    array([0.8473])
    """

    link: MeanFunction = Logistic()
    ridge: float = 1e-8
    limit: int = 100

    def fit(self, candidates: Candidates, tally: Tally) -> Fit:
        self.link.check(tally)
        score = matvec(candidates.coordinates, self._solve(candidates.coordinates, tally))
        return Fit(score, self.link.value(self._near(score)))

    def standard_error(self, candidates: Candidates, tally: Tally, fit: Fit, noise_variance: float | None) -> Array:
        z = candidates.coordinates
        xp = namespace(z)
        slope = self.link.slope(self._near(fit.score))
        ridge = self._penalty(z, tally.counts)[..., None, None] * xp.eye(z.shape[-1], dtype=z.dtype)
        H = moment(z, tally.counts * slope, ridge)
        return slope * xp.sqrt(leverage(z, xp.linalg.inv(H)))

    def _penalty(self, z: Array, counts: Array) -> Array:
        xp = namespace(z)
        information = xp.sum(counts * xp.vecdot(z, z), axis=-1)
        one = xp.ones_like(information)
        return self.ridge * xp.maximum(information / xp.maximum(rank(z), one), 1e-3 * one)

    def _near(self, predictor: Array) -> Array:
        return namespace(predictor).clip(predictor, -FAR, FAR)

    def _solve(self, z: Array, tally: Tally) -> Array:
        xp = namespace(z)
        theta = xp.zeros_like(z[..., 0, :])
        penalty = self._penalty(z, tally.counts)
        start = (theta, z, tally.counts, tally.sums, penalty, xp.ones_like(penalty))
        return iterate(start, self._finished, self._newton, self.limit, z.shape[:-2])

    def _finished(self, work: Work) -> Array:
        return work[-1] == 0

    def _newton(self, t: int, work: Work, done: Array | None) -> Work:
        theta, z, counts, sums, penalty, going = work
        xp = namespace(theta)
        predictor = self._near(matvec(z, theta))
        residual = sums - counts * self.link.value(predictor)
        gradient = matvec(xp.matrix_transpose(z), residual) - penalty[:, None] * theta
        total = xp.maximum(xp.sum(counts, axis=-1), xp.ones_like(penalty))
        still = xp.max(xp.abs(gradient), axis=-1) > 1e-12 * total
        still = still if done is None else still & ~done
        ridge = penalty[:, None, None] * xp.eye(theta.shape[-1], dtype=theta.dtype)
        H = moment(z, counts * self.link.slope(predictor), ridge)
        step = _solved(H, gradient)
        reach = xp.max(xp.abs(matvec(z, step)), axis=-1)
        length = xp.minimum(LONGEST / xp.maximum(reach, xp.ones_like(reach)), xp.ones_like(reach))
        before = self._objective(theta, z, counts, sums, penalty)
        slack = 1e-12 * (1 + xp.abs(before))
        for _ in range(40):
            after = self._objective(theta + length[:, None] * step, z, counts, sums, penalty)
            worse = still & ~(after >= before - slack)
            if not bool(xp.any(worse)):
                break
            length = xp.where(worse, length / 2, length)
        moved = xp.where(still[:, None], theta + length[:, None] * step, theta)
        return moved, z, counts, sums, penalty, xp.astype(still, going.dtype)

    def _objective(self, theta: Array, z: Array, counts: Array, sums: Array, penalty: Array) -> Array:
        """Return Σ_i (S_i x_i'θ − n_i b(x_i'θ)) − λ/2 |θ|²."""
        xp = namespace(theta)
        predictor = self._near(matvec(z, theta))
        gain = xp.sum(sums * predictor - counts * self.link.integral(predictor), axis=-1)
        return gain - penalty / 2 * xp.vecdot(theta, theta)


def _solved(H: Array, gradient: Array) -> Array:
    """Return H⁻¹ g, no eigenvalue of H negative but for rounding.

    Where the slopes of the arms differ so much that rounding hides the ridge, H may be singular as it stands.
    """
    xp = namespace(H)
    try:
        return xp.linalg.solve(H, gradient[..., None])[..., 0]
    except np.linalg.LinAlgError:
        if H.ndim > 2:  # one by one, so that no replication depends on its neighbours
            return xp.stack([_solved(H[j, ...], gradient[j, ...]) for j in range(H.shape[0])])
        values, vectors = xp.linalg.eigh(H)
        least = xp.maximum(xp.max(values) * xp.finfo(H.dtype).eps, xp.finfo(H.dtype).smallest_normal)
        return matvec(vectors / xp.maximum(values, least), matvec(xp.matrix_transpose(vectors), gradient))
