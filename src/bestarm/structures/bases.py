"""Ways in which arms may be alike: features with a scale, which neither a shift nor a unit of the table changes.

x are the features of K arms as given, z those with mean 0 and variance 1 over the arms. A base is F `(..., K, r)`, of
variance 1 over the arms on average, what F leaves out included, and of dimension (Eq. 2 of docs/algorithms/auto.md)

    D = (Σλ)² / Σλ²,    λ the eigenvalues of the covariance of the arms.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bestarm.core import Array
from bestarm.kernels import Kernel, kernel_features
from bestarm.linalg import entries, evened, matvec, row, rows

RANK = 64  # features a kernel is given at most; what they leave out counts as each arm's own
BLOCK = 4096  # rows a kernel is evaluated on at once: they stay in cache
UNEVEN = 0.1  # the relative spread of squared lengths from which arms lie on no sphere
EXACT = 256  # arms up to which those features are eigenvectors, the best there are; beyond, from landmarks


@dataclass(frozen=True)
class Base:
    """One way in which arms may be alike: features `(..., K, r)` scaled to variance 1 over the arms on average.

    `missing` `(..., K)` is the variance the features leave out, `dimension` `(...)` the effective number of them,
    `squared` `(..., K)` the squared length of an arm's features.
    """

    features: Array
    missing: Array
    dimension: Array
    squared: Array

    def each(self, change: Callable[[Array, int], Array]) -> "Base":
        """Return the base with each part changed, given the part and how many axes of its own it has."""
        return Base(
            change(self.features, 2), change(self.missing, 1), change(self.dimension, 0), change(self.squared, 1)
        )


def standardised(x: Array) -> Array:
    """Return features `(..., K, d)` with mean 0 and variance 1 over the arms; constant ones become 0."""
    x = evened(x)
    centred = x - x.mean(axis=-2, keepdims=True)
    deviation = np.sqrt(np.mean(centred * centred, axis=-2, keepdims=True))
    varies = deviation > 1e-9 * np.max(np.abs(x), axis=-2, keepdims=True)
    return np.where(varies, centred / np.where(varies, deviation, 1.0), 0.0)


def sphere_centred(x: Array) -> Array:
    """Return features `(..., K, d)` less the centre of the sphere nearest to the arms.

    The centre c solves 2 x'c = |x|² − mean|x|² in least squares, x less the mean. Arms of equal length are seen from
    where that length is measured, wherever the features were shifted to since. A centre far outside the arms means that
    they lie on no sphere: their mean is taken then.
    """
    x = x - x.mean(axis=-2, keepdims=True)
    squared = np.vecdot(x, x)
    radius = squared.mean(axis=-1, keepdims=True)
    c = matvec(np.linalg.pinv(2 * x, rtol=1e-6), squared - radius)
    near = np.vecdot(c, c)[..., None] <= 100 * radius
    return x - np.where(near, c, 0.0)[..., None, :]


def roundness(x: Array) -> Array:
    """Return from 0 to 1 `(...)` how nearly the arms `(..., K, d)` lie on a sphere about the origin.

    It is 1 where |x|² is the same for all, and 0 from a relative spread of `UNEVEN` on. The origin was fitted to the
    arms, so the spread is that of K − d − 1 of them; up to d + 1 arms lie on some sphere whatever they are.
    """
    K, d = x.shape[-2:]
    squared = np.vecdot(x, x)
    mean = squared.mean(axis=-1, keepdims=True)
    off = (squared - mean) / np.where(mean > 0, mean, 1.0)
    spread = np.sum(off * off, axis=-1) / max(K - d - 1, 1)
    return np.maximum(1 - spread / UNEVEN**2, 0.0)


def scaled(round: Array, arms: int, width: int) -> Array:
    """Return 1 `(...)` where the arms lie on a sphere to the last digit, as more than d + 1 do only when put there."""
    exact = (round > 1 - 1e-6).astype(round.dtype)
    return exact if arms > width + 1 else 0 * exact


def anchored(x: Array, sphere: Array, round: Array) -> Array:
    """Return features `(..., K, d + 1)` seen from where a line is likely to be 0.

    `sphere` are the features less the centre of a sphere, `round` `(...)` is the roundness of those. On a sphere a
    line is 0 at its centre. Elsewhere it is the middle of where the arms were drawn from: their mean is off it by a
    K-th of their variance, which the last feature, a constant, allows for.
    """
    centred = x - x.mean(axis=-2, keepdims=True)
    variance = np.vecdot(centred, centred).mean(axis=-1)
    slack = np.sqrt(variance / x.shape[-2])[..., None, None] * np.ones_like(x[..., :1])
    on_sphere = (round > 0)[..., None, None]
    return np.concat([np.where(on_sphere, sphere, centred), np.where(on_sphere, 0.0, slack)], axis=-1)


def linear_base(x: Array) -> Base:
    """Return the base of a linear model: only inner products matter, so features beyond K are rotated away."""
    if x.shape[-1] > x.shape[-2]:
        left, values, _ = np.linalg.svd(x, full_matrices=False)
        x = left * values[..., None, :]
    return scaled_base(x, np.zeros_like(x[..., 0]))


def two_levels(z: Array) -> Array:
    """Return 1 `(...)` where every feature of the arms `(..., K, d)` has two levels at most, 0 elsewhere."""
    inside = np.minimum(z - z.min(axis=-2, keepdims=True), z.max(axis=-2, keepdims=True) - z)
    return (inside.max(axis=(-2, -1)) < 1e-6).astype(z.dtype)


def products(z: Array) -> Array:
    """Return all products of two features and all squares `(..., K, d (d + 1) / 2)`, less their means."""
    found = np.concat([z[..., j:] * z[..., j : j + 1] for j in range(z.shape[-1])], axis=-1)
    return found - found.mean(axis=-2, keepdims=True)


def terms(x: Array) -> Base:
    """Return features `(..., K, p)` of mean square 1 over the arms each, of which one may count; all 0 stays 0."""
    size = np.sqrt(np.mean(x * x, axis=-2, keepdims=True))
    some = size > 1e-6 * size.max(axis=-1, keepdims=True)
    t = np.where(some, x / np.where(some, size, 1.0), 0.0)
    zero = np.zeros_like(x[..., 0])
    return Base(t, zero, np.ones_like(zero[..., 0]), np.vecdot(t, t))


def unit_length(z: Array) -> Array:
    """Return standardised features `(..., K, d)` in units of the root mean squared distance of two arms."""
    # the mean squared distance of two arms is twice the mean squared length of centred features
    length = np.sqrt(2 * np.vecdot(z, z).mean(axis=-1))[..., None, None]
    return z / np.where(length > 0, length, 1.0)


def kernel_base(z: Array, kernel: Kernel) -> Base:
    """Return the base of a kernel on standardised features, at the length of the root mean squared distance."""
    K, z = z.shape[-2], unit_length(z)
    if K <= EXACT:
        F = kernel_features(kernel(z, z), min(K, RANK))
    else:
        landmarks = rows(z, spread_out(z, RANK))
        root = kernel_features(kernel(landmarks, landmarks))
        squared = np.vecdot(root.mT, root.mT)[..., None, :]
        turn = root / np.where(squared > 0, squared, 1.0)
        blocks = [z[..., start : start + BLOCK, :] for start in range(0, K, BLOCK)]
        F = np.concat([kernel(block, landmarks) @ turn for block in blocks], axis=-2)
    missing = np.maximum(1 - np.vecdot(F, F), 0.0)
    return scaled_base(F - F.mean(axis=-2, keepdims=True), np.where(missing > 1e-9, missing, 0.0))


def spread_out(z: Array, count: int) -> Array:
    """Return `count` arms `(..., count)` far from one another: each the farthest from those before it."""
    squared = np.vecdot(z, z)
    chosen = [np.argmax(squared, axis=-1)]
    distance = np.inf * np.ones_like(squared)
    for _ in range(count - 1):
        last = row(z, chosen[-1])
        distance = np.minimum(distance, squared - 2 * matvec(z, last) + np.vecdot(last, last)[..., None])
        chosen.append(np.argmax(distance, axis=-1))
    return np.stack(chosen, axis=-1)


def scaled_base(F: Array, missing: Array) -> Base:
    """Return the base of features `(..., K, r)` and the variance `(..., K)` that they leave out, in units of its own.

    With G = F'F about the mean and τ what is missing, Σλ = tr G + Σ τ and Σλ² = |G|² + Σ τ².
    """
    centred = F - F.mean(axis=-2, keepdims=True)
    G = centred.mT @ centred
    total = np.linalg.diagonal(G).sum(axis=-1) + missing.sum(axis=-1)
    some = total > 0
    total = np.where(some, total, 1.0)
    squares = np.sum(G * G, axis=(-2, -1)) + np.sum(missing * missing, axis=-1)
    D = np.where(some, total * total / np.where(some, squares, 1.0), 1.0)  # Eq. 2
    size = (total / F.shape[-2])[..., None]
    F = F / np.sqrt(size)[..., None]
    return Base(F, missing / size, D, np.vecdot(F, F))


def of_rows(bases: dict[str, Base], arms: Array) -> dict[str, Base]:
    """Return the bases of `arms` `(..., m)` only."""
    return {
        name: Base(rows(base.features, arms), entries(base.missing, arms), base.dimension, entries(base.squared, arms))
        for name, base in bases.items()
    }


def of_replications(bases: dict[str, Base], who: Array) -> dict[str, Base]:
    """Return the bases `(R, ...)` of the replications `who` `(m,)` only, which are in order and named once each."""
    return {
        name: base if who.shape[0] == base.features.shape[0] else base.each(lambda part, _: part.take(who, axis=0))
        for name, base in bases.items()
    }


def flattened(bases: dict[str, Base]) -> dict[str, Base]:
    """Return the bases with all leading axes in one."""
    return {
        name: base.each(lambda part, own: part.reshape(-1, *part.shape[part.ndim - own :]))
        for name, base in bases.items()
    }
