"""Kernels: how alike two arms are, and features that say the same.

A kernel is called with features `(..., n, d)` and `(..., m, d)` and returns their Gram matrix `(..., n, m)`.
r is the Euclidean distance of two rows and l the length scale.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from array_api_compat import device

from bestarm.core import AnyArray, namespace
from bestarm.errors import InputError


class Kernel(Protocol):
    """Whatever turns two stacks of rows into their Gram matrix."""

    def __call__(self, x: AnyArray, y: AnyArray, /) -> AnyArray: ...


class Radial(Kernel, Protocol):
    """A kernel of the distance alone."""

    def at(self, squared: AnyArray) -> AnyArray:
        """Return the kernel at squared distances."""
        ...


@dataclass(frozen=True)
class LinearKernel:
    """Return v x'y: Bayesian linear regression with prior variance v of each coefficient.

    >>> LinearKernel(variance=4.0)(np.array([[1.0, 2.0]]), np.array([[3.0, 0.5]]))
    array([[16.]])
    """

    variance: float = 1.0

    def __post_init__(self) -> None:
        _positive("variance", self.variance)

    def __call__(self, x: AnyArray, y: AnyArray, /) -> AnyArray:
        xp = namespace(x, y)
        return self.variance * (x @ xp.matrix_transpose(y))


@dataclass(frozen=True)
class Exponential:
    """Return exp(-r / l).

    >>> Exponential(length=2.0)(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.3679]])
    """

    length: float = 1.0

    def __post_init__(self) -> None:
        _positive("length", self.length)

    def __call__(self, x: AnyArray, y: AnyArray, /) -> AnyArray:
        return self.at(squared_distances(x, y))

    def at(self, squared: AnyArray) -> AnyArray:
        """Return the kernel at squared distances."""
        xp = namespace(squared)
        return xp.exp(-xp.sqrt(squared) / self.length)


@dataclass(frozen=True)
class SquaredExponential:
    """Return exp(-r² / l), the form in the published code, where the length divides r² and is not squared.

    The usual exp(-r² / (2 λ²)) is l = 2 λ².

    >>> SquaredExponential(length=4.0)(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.3679]])
    """

    length: float = 1.0

    def __post_init__(self) -> None:
        _positive("length", self.length)

    def __call__(self, x: AnyArray, y: AnyArray, /) -> AnyArray:
        xp = namespace(x, y)
        return xp.exp(-squared_distances(x, y) / self.length)


@dataclass(frozen=True)
class Matern:
    """Return p(z) exp(-z) with z = √(2ν) r / l, and p = 1, 1 + z, 1 + z + z²/3 for ν = 1/2, 3/2, 5/2.

    >>> Matern(nu=1.5, length=np.sqrt(3))(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(4)    # 2 / e
    array([[1.    , 0.7358]])
    """

    nu: float = 1.5
    length: float = 1.0

    def __post_init__(self) -> None:
        if self.nu not in _POLYNOMIALS:
            raise InputError(f"nu must be one of 0.5, 1.5 and 2.5; given {self.nu}")
        _positive("length", self.length)

    def __call__(self, x: AnyArray, y: AnyArray, /) -> AnyArray:
        return self.at(squared_distances(x, y))

    def at(self, squared: AnyArray) -> AnyArray:
        """Return the kernel at squared distances."""
        xp = namespace(squared)
        z = math.sqrt(2 * self.nu) / self.length * xp.sqrt(squared)
        polynomial = xp.zeros_like(z)
        for coefficient in reversed(_POLYNOMIALS[self.nu]):
            polynomial = polynomial * z + coefficient
        return polynomial * xp.exp(-z)


# The coefficients of 1, z, z² in p.
_POLYNOMIALS = {0.5: (1.0,), 1.5: (1.0, 1.0), 2.5: (1.0, 1.0, 1 / 3)}


def squared_distances(x: AnyArray, y: AnyArray) -> AnyArray:
    """Return ||x_i - y_j||², `(..., n, m)`, for `(..., n, d)` and `(..., m, d)`.

    Feature by feature: nothing cancels, so equal rows are at distance 0 exactly and close rows keep all their
    digits, which ||x||² + ||y||² - 2 x'y loses; and nothing larger than the answer is held.

    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[25.,  0.]])
    """
    xp = namespace(x, y)
    if x.shape[-1] != y.shape[-1]:
        raise InputError(f"both sides must have the same features; {x.shape[-1]} and {y.shape[-1]} given")
    shape = (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-2])
    total = xp.zeros(shape, dtype=xp.result_type(x, y), device=device(x))
    for j in range(x.shape[-1]):
        apart = x[..., j][..., :, None] - y[..., j][..., None, :]
        total = total + apart * apart
    return total


def kernel_features(gram: AnyArray, rank: int | None = None, tolerance: float = 1e-10) -> AnyArray:
    """Return F `(..., K, r)` with F F' = Gram, so that a linear model of F is the kernel's model.

    The columns are eigenvectors times the roots of their eigenvalues, largest first. Eigenvalues below
    `tolerance` of the largest, negative ones among them, give zero columns, so r = K unless a `rank` below K
    cuts it; then F F' is the nearest Gram matrix of that rank.

    >>> abs(kernel_features(np.array([[4.0, 0.0], [0.0, 9.0]])))
    array([[0., 2.],
           [3., 0.]])
    """
    xp = namespace(gram)
    if rank is not None and rank < 1:
        raise InputError(f"rank must be at least 1; given {rank}")
    values, vectors = xp.linalg.eigh(gram)
    values, vectors = xp.flip(values, axis=-1), xp.flip(vectors, axis=-1)
    kept = (values > tolerance * values[..., :1]) & (values > 0)
    roots = xp.sqrt(xp.where(kept, values, xp.zeros_like(values)))
    size = gram.shape[-1] if rank is None else min(rank, gram.shape[-1])
    return (vectors * roots[..., None, :])[..., :size]


def _positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InputError(f"{name} must be positive and finite; given {value}")
