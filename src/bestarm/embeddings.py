"""Embeddings: other features for the same arms, made from the features alone, never from rewards."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bestarm.core import AnyArray, namespace
from bestarm.errors import InputError
from bestarm.estimators import Params, build, describe, freeze
from bestarm.kernels import Kernel, kernel_features


class Embedding(Protocol):
    """Whatever gives arms new features."""

    def embed(self, features: AnyArray) -> AnyArray:
        """Return `(..., K, r)` for features `(..., K, d)`; replications share nothing."""
        ...


@dataclass(frozen=True)
class Projection:
    """Keep the leading right singular directions of the features: X W with W `(d, r)`, r <= components.

    The origin stays, so a linear model without intercept is the same model once r reaches the rank of X.
    Columns beyond the rank are zero, and there are at most min(K, d) in all.

    >>> abs(Projection(1).embed(np.array([[3.0, 0.0], [0.0, 2.0]])))
    array([[3.],
           [0.]])
    """

    components: int

    def __post_init__(self) -> None:
        _whole("components", self.components)

    def embed(self, features: AnyArray) -> AnyArray:
        xp = namespace(features)
        arms, columns = features.shape[-2:]
        left, values, _ = xp.linalg.svd(features, full_matrices=False)
        noise = max(arms, columns) * float(xp.finfo(features.dtype).eps) * values[..., :1]
        values = xp.where(values > noise, values, xp.zeros_like(values))
        return (left * values[..., None, :])[..., : min(self.components, arms, columns)]


@dataclass(frozen=True)
class PCA:
    """Keep the leading principal components: `Projection` of the features less their mean.

    The mean arm becomes the origin, where a linear model without intercept says 0. Use `Projection` where 0
    must keep its place.

    >>> abs(PCA(1).embed(np.array([[3.0, 5.0], [1.0, 5.0]])))
    array([[1.],
           [1.]])
    """

    components: int

    def __post_init__(self) -> None:
        _whole("components", self.components)

    def embed(self, features: AnyArray) -> AnyArray:
        xp = namespace(features)
        return Projection(self.components).embed(features - xp.mean(features, axis=-2, keepdims=True))


@dataclass(frozen=True)
class KernelFeatures:
    """Give arms features whose inner products are the kernel: F F' = k(X, X), see `kernel_features`.

    >>> from bestarm.kernels import LinearKernel
    >>> abs(KernelFeatures(LinearKernel(), components=1).embed(np.array([[3.0, 0.0], [0.0, 2.0]])))
    array([[3.],
           [0.]])
    """

    kernel: Kernel
    components: int | None = None

    def __post_init__(self) -> None:
        if self.components is not None:
            _whole("components", self.components)

    def embed(self, features: AnyArray) -> AnyArray:
        return kernel_features(self.kernel(features, features), self.components)


@dataclass(frozen=True)
class CentredRows:
    """Lower each arm's features by their own mean: inner products are d − 1 times the covariance of two arms' features.

    >>> CentredRows().embed(np.array([[1.0, 3.0], [0.0, 1.0]]))
    array([[-1. ,  1. ],
           [-0.5,  0.5]])
    """

    def embed(self, features: AnyArray) -> AnyArray:
        return features - namespace(features).mean(features, axis=-1, keepdims=True)


@dataclass(frozen=True)
class KernelRows:
    """Take the rows of the kernel's matrix for features, k(x_i, x_1), .., k(x_i, x_K)."""

    kernel: Kernel

    def embed(self, features: AnyArray) -> AnyArray:
        return self.kernel(features, features)


@dataclass(frozen=True)
class Transformer:
    """Apply any transformer of scikit-learn, given by dotted path and parameters. NumPy in, NumPy out.

    It is fitted anew on each replication. Where replications get different numbers of features, zero columns
    fill up. Parameters are kept as sorted pairs; see `bestarm.estimators`.

    >>> Transformer("sklearn.preprocessing.PolynomialFeatures", {"degree": 2}).embed(np.array([[2.0], [3.0]]))
    array([[1., 2., 4.],
           [1., 3., 9.]])
    """

    path: str
    params: Params | Mapping[str, Any] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", freeze(self.params))

    @classmethod
    def wrap(cls, estimator: Any) -> "Transformer":
        """Describe a transformer given as an object, when its parameters are plain data.

        >>> from sklearn.preprocessing import PolynomialFeatures
        >>> Transformer.wrap(PolynomialFeatures(degree=3))
        Transformer(path='sklearn.preprocessing.PolynomialFeatures', params=(('degree', 3),))
        """
        path, params = describe(estimator)
        return cls(path, params)

    def embed(self, features: AnyArray) -> AnyArray:
        *batch, arms, columns = features.shape
        stack = np.reshape(np.asarray(features, dtype=np.float64), (-1, arms, columns))
        parts = [self._one(part) for part in stack]
        widest = max(part.shape[1] for part in parts)
        padded = [np.pad(part, ((0, 0), (0, widest - part.shape[1]))) for part in parts]
        return np.reshape(np.stack(padded), (*batch, arms, widest))

    def _one(self, features: AnyArray) -> AnyArray:
        transformer = build(self.path, self.params)
        if not hasattr(transformer, "fit_transform"):
            raise InputError(f"{self.path} is not a transformer: fit_transform is expected of one")
        try:
            given = transformer.fit_transform(features)
        except (TypeError, ValueError) as error:
            raise InputError(f"{self.path} cannot embed features {features.shape}: {error}") from error
        embedded = np.asarray(given.toarray() if hasattr(given, "toarray") else given, dtype=np.float64)
        if embedded.ndim != 2 or embedded.shape[0] != features.shape[0]:
            raise InputError(f"{self.path} must give a row for each arm; it gave shape {embedded.shape}")
        return embedded


def _whole(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1; given {value!r}")
