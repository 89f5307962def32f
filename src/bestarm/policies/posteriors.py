"""What is known of the means before any pull: priors of the normal posteriors."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from bestarm.core import Array
from bestarm.errors import InputError
from bestarm.kernels import Kernel
from bestarm.linalg import Candidates, power_of_two, rotated
from bestarm.needs import Least
from bestarm.posteriors import Coefficients, Full, NormalPosterior, Separate

VAGUE = 2.0**20  # standard deviations of the noise that the prior of a coefficient times its feature has at most


@dataclass(frozen=True)
class LinearPrior:
    """f_i = x_i'θ with θ ~ N(0, variance I). Only inner products matter: features beyond K are rotated away."""

    wants: ClassVar = Least.DIMENSIONS

    variance: float = 1.0

    def posterior(self, features: Array, noise: float) -> NormalPosterior:
        features = _vague_at_most(rotated(features), self.variance, noise)
        identity = np.eye(features.shape[-1], dtype=features.dtype)
        inverse = self.variance * np.broadcast_to(identity, (*features.shape[:-2], *identity.shape))
        variance = self.variance * np.vecdot(features, features)
        return _fresh(Coefficients(features, self.variance, inverse), variance, noise)


@dataclass(frozen=True)
class RidgePrior:
    """Ridge regression with penalty λ: f_i = x_i'θ with θ ~ N(0, I/λ) in units of the noise."""

    wants: ClassVar = Least.DIMENSIONS

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
class LeastSquares:
    """Least squares on the span of the arms; a ridge too small to matter stands in until all of it was seen."""

    wants: ClassVar = Least.DIMENSIONS

    ridge: float = 1e-9

    @property
    def variance(self) -> float:
        return 1 / self.ridge

    def posterior(self, features: Array, noise: float) -> NormalPosterior:
        return LinearPrior(self.variance).posterior(Candidates.of(features).coordinates, noise)


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

    wants: ClassVar = Least.ARMS

    variance: float = 1.0

    def posterior(self, features: Array, noise: float) -> NormalPosterior:
        features = _vague_at_most(features, self.variance, noise)
        variance = self.variance * np.vecdot(features, features)
        return _fresh(Separate(variance, variance), variance, noise)


def _vague_at_most(features: Array, variance: float, noise: float) -> Array:
    """Return features with none so large that the prior is more than VAGUE times as wide as the noise of one pull.

    Beyond, what is known of a mean drowns in the rounding of what was not known before, and its square overflows.
    """
    ratio = np.max(np.abs(features), axis=-2, keepdims=True) * sqrt(variance / noise)
    return features * np.where(ratio > VAGUE, power_of_two(ratio, 0) * VAGUE, np.ones_like(ratio))


def _fresh(covariance: Any, variance: Array, noise: float) -> NormalPosterior:
    zero = np.zeros_like(variance)
    return NormalPosterior(zero, variance, zero, zero, zero[..., 0], noise, covariance)
