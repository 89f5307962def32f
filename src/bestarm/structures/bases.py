"""Ways in which arms may be alike: features with a scale, which neither a shift nor a unit of the table changes."""

from dataclasses import dataclass

from bestarm.core import Array, namespace
from bestarm.kernels import Kernel, kernel_features
from bestarm.linalg import matvec, row, rows

RANK = 64  # features a kernel is given at most; what they leave out counts as each arm's own
BLOCK = 4096  # rows a kernel is evaluated on at once: they stay in cache
UNEVEN = 0.1  # the relative spread of squared lengths from which arms lie on no sphere
EXACT = 256  # arms up to which those features are eigenvectors, the best there are; beyond, from landmarks
FAR = 100  # features beyond 2^±100 are brought to about 1: fourth powers of theirs would be no floats


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


def power_of_two(size: Array, most: float) -> Array:
    """Return the power of two that brings each size beyond 2^±most to between 1 and 2; 1 for all others and for 0."""
    xp = namespace(size)
    exponent = xp.floor(xp.log2(xp.where(size > 0, size, xp.ones_like(size))))
    far = xp.abs(exponent) > most
    return xp.pow(2 * xp.ones_like(size), xp.where(far, xp.clip(-exponent, -1023.0, 1023.0), xp.zeros_like(size)))


def evened(features: Array, axis: int | tuple[int, ...] = -2) -> Array:
    """Return features `(..., K, d)` as they are, or times a power of two where their products would be no floats.

    By default each column is looked at by itself; with axes (-2, -1) all of them have the same factor.
    """
    xp = namespace(features)
    return features * power_of_two(xp.max(xp.abs(features), axis=axis, keepdims=True), FAR)


def standardised(features: Array) -> Array:
    """Return features `(..., K, d)` with mean 0 and variance 1 over the arms; constant ones become 0."""
    xp = namespace(features)
    features = evened(features)
    centred = features - xp.mean(features, axis=-2, keepdims=True)
    deviation = xp.sqrt(xp.mean(centred * centred, axis=-2, keepdims=True))
    size = xp.max(xp.abs(features), axis=-2, keepdims=True)
    varies = deviation > 1e-9 * size
    return xp.where(varies, centred / xp.where(varies, deviation, xp.ones_like(deviation)), xp.zeros_like(centred))


def sphere_centred(features: Array) -> Array:
    """Return features `(..., K, d)` less the centre of the sphere nearest to the arms.

    The centre c solves 2 x'c = |x|² − mean|x|² in least squares, x less the mean. Arms of equal length are seen from
    where that length is measured, wherever the features were moved to since. A centre far outside the arms means that
    they lie on no sphere: their mean is taken then.
    """
    xp = namespace(features)
    centred = features - xp.mean(features, axis=-2, keepdims=True)
    squared = xp.vecdot(centred, centred)
    radius = xp.mean(squared, axis=-1, keepdims=True)
    centre = matvec(xp.linalg.pinv(2 * centred, rtol=1e-6), squared - radius)
    near = xp.vecdot(centre, centre)[..., None] <= 100 * radius
    return centred - xp.where(near, centre, xp.zeros_like(centre))[..., None, :]


def roundness(features: Array) -> Array:
    """Return from 0 to 1 `(...)` how nearly the arms `(..., K, d)` lie on a sphere about the origin.

    It is 1 where |x|² is the same for all, and 0 from a relative spread of `UNEVEN` on. The origin was fitted to the
    arms, so the spread is that of K − d − 1 of them; up to d + 1 arms lie on some sphere whatever they are.
    """
    xp = namespace(features)
    arms, width = features.shape[-2:]
    squared = xp.vecdot(features, features)
    mean = xp.mean(squared, axis=-1, keepdims=True)
    off = (squared - mean) / xp.where(mean > 0, mean, xp.ones_like(mean))
    spread = xp.sum(off * off, axis=-1) / max(arms - width - 1, 1)
    return xp.maximum(1 - spread / UNEVEN**2, 0.0)


def scaled(round: Array, arms: int, width: int) -> Array:
    """Return 1 `(...)` where the arms lie on a sphere to the last digit, as more than d + 1 do only when put there."""
    exact = namespace(round).astype(round > 1 - 1e-6, round.dtype)
    return exact if arms > width + 1 else 0 * exact


def anchored(features: Array, sphere: Array, round: Array) -> Array:
    """Return features `(..., K, d + 1)` seen from where a line is likely to be 0.

    `sphere` are the features less the centre of a sphere, `round` `(...)` is the roundness of those. On a sphere a
    line is 0 at its centre. Elsewhere it is the middle of where the arms were drawn from: their mean is off it by a
    K-th of their variance, which the last feature, a constant, allows for.
    """
    xp = namespace(features)
    centred = features - xp.mean(features, axis=-2, keepdims=True)
    radius = xp.mean(xp.vecdot(centred, centred), axis=-1)
    slack = xp.sqrt(radius / features.shape[-2])[..., None, None] * xp.ones_like(features[..., :1])
    on_sphere = (round > 0)[..., None, None]
    seen = xp.where(on_sphere, sphere, centred)
    return xp.concat([seen, xp.where(on_sphere, xp.zeros_like(slack), slack)], axis=-1)


def linear_base(features: Array) -> Base:
    """Return the base of a linear model: only inner products matter, so features beyond K are rotated away."""
    xp = namespace(features)
    if features.shape[-1] > features.shape[-2]:
        left, values, _ = xp.linalg.svd(features, full_matrices=False)
        features = left * values[..., None, :]
    return _scaled(features, xp.zeros_like(features[..., 0]))


def two_levels(standard: Array) -> Array:
    """Return 1 `(...)` where every feature of the arms `(..., K, d)` has two levels at most, 0 elsewhere."""
    xp = namespace(standard)
    low, high = (f(standard, axis=-2, keepdims=True) for f in (xp.min, xp.max))
    inside = xp.minimum(standard - low, high - standard)
    return xp.astype(xp.max(inside, axis=(-2, -1)) < 1e-6, standard.dtype)


def products(standard: Array) -> Array:
    """Return all products of two features and all squares `(..., K, d (d + 1) / 2)`, less their means."""
    xp = namespace(standard)
    width = standard.shape[-1]
    parts = [standard[..., j:] * standard[..., j : j + 1] for j in range(width)]
    found = xp.concat(parts, axis=-1)
    return found - xp.mean(found, axis=-2, keepdims=True)


def terms(features: Array) -> Base:
    """Return features `(..., K, p)` of mean square 1 over the arms each, of which one may count; all 0 stays 0."""
    xp = namespace(features)
    size = xp.sqrt(xp.mean(features * features, axis=-2, keepdims=True))
    some = size > 1e-6 * xp.max(size, axis=-1, keepdims=True)
    scaled = xp.where(some, features / xp.where(some, size, xp.ones_like(size)), xp.zeros_like(features))
    zero = xp.zeros_like(features[..., 0])
    return Base(scaled, zero, xp.ones_like(zero[..., 0]), xp.vecdot(scaled, scaled))


def kernel_base(standard: Array, kernel: Kernel) -> Base:
    """Return the base of a kernel on standardised features, at the length of the root mean squared distance."""
    xp = namespace(standard)
    arms = standard.shape[-2]
    # the mean squared distance of two arms is twice the mean squared length of centred features
    length = xp.sqrt(2 * xp.mean(xp.vecdot(standard, standard), axis=-1))[..., None, None]
    z = standard / xp.where(length > 0, length, xp.ones_like(length))
    if arms <= EXACT:
        found = kernel_features(kernel(z, z), min(arms, RANK))
    else:
        landmarks = rows(z, _spread_out(z, RANK))
        root = kernel_features(kernel(landmarks, landmarks))
        squared = xp.vecdot(root, root, axis=-2)[..., None, :]
        turn = root / xp.where(squared > 0, squared, xp.ones_like(squared))
        parts = [z[..., start : start + BLOCK, :] for start in range(0, arms, BLOCK)]
        found = xp.concat([kernel(part, landmarks) @ turn for part in parts], axis=-2)
    missing = xp.maximum(1 - xp.vecdot(found, found), 0.0)
    return _scaled(found - xp.mean(found, axis=-2, keepdims=True), xp.where(missing > 1e-9, missing, 0.0))


def _spread_out(z: Array, count: int) -> Array:
    """Return `count` arms `(..., count)` far from one another: each the farthest from those before it."""
    xp = namespace(z)
    length = xp.vecdot(z, z)
    chosen = [xp.argmax(length, axis=-1)]
    distance = xp.inf * xp.ones_like(length)
    for _ in range(count - 1):
        last = row(z, chosen[-1])
        distance = xp.minimum(distance, length - 2 * matvec(z, last) + xp.vecdot(last, last)[..., None])
        chosen.append(xp.argmax(distance, axis=-1))
    return xp.stack(chosen, axis=-1)


def _scaled(features: Array, missing: Array) -> Base:
    """Return the base with variance 1 over the arms on average, and its dimension (Σλ)²/Σλ² about the mean."""
    xp = namespace(features)
    centred = features - xp.mean(features, axis=-2, keepdims=True)
    arms = features.shape[-2]
    gram = xp.matrix_transpose(centred) @ centred
    trace = xp.sum(xp.linalg.diagonal(gram), axis=-1) + xp.sum(missing, axis=-1)
    some = trace > 0
    trace = xp.where(some, trace, xp.ones_like(trace))
    squared = xp.sum(gram * gram, axis=(-2, -1)) + xp.sum(missing * missing, axis=-1)
    dimension = xp.where(some, trace * trace / xp.where(some, squared, xp.ones_like(squared)), xp.ones_like(trace))
    size = (trace / arms)[..., None]
    features = features / xp.sqrt(size)[..., None]
    return Base(features, missing / size, dimension, xp.vecdot(features, features))


def of_rows(bases: dict[str, Base], arms: Array) -> dict[str, Base]:
    """Return the bases of `arms` `(..., m)` only."""
    xp = namespace(arms)
    found = {}
    for name, base in bases.items():
        missing, squared = (xp.take_along_axis(a, arms, axis=-1) for a in (base.missing, base.squared))
        found[name] = Base(rows(base.features, arms), missing, base.dimension, squared)
    return found


def of_replications(bases: dict[str, Base], who: Array) -> dict[str, Base]:
    """Return the bases `(R, ...)` of the replications `who` `(m,)` only, which are in order and named once each."""
    xp = namespace(who)
    parts = ("features", "missing", "dimension", "squared")
    found = {}
    for name, base in bases.items():
        everyone = who.shape[0] == base.features.shape[0]
        found[name] = base if everyone else Base(*(xp.take(getattr(base, part), who, axis=0) for part in parts))
    return found


def flattened(bases: dict[str, Base]) -> dict[str, Base]:
    """Return the bases with all leading axes in one."""
    found = {}
    for name, base in bases.items():
        xp = namespace(base.features)
        features = xp.reshape(base.features, (-1, *base.features.shape[-2:]))
        missing, squared = (xp.reshape(a, (-1, a.shape[-1])) for a in (base.missing, base.squared))
        found[name] = Base(features, missing, xp.reshape(base.dimension, (-1,)), squared)
    return found
