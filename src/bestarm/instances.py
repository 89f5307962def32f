"""Synthetic worlds: the paper's, some of our own, and ways to bend them. `replications` None gives one, R a stack of R.

Where the paper's text and its published code differ, `variant` "text" (the default) or "published-code" says
which is meant. `deviated`, `bent`, `uneven` and `heavy` turn any of them into one whose features or noise are not what
a policy takes them for.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from bestarm.bandits import Bandit, Bernoulli, Gaussian, Outliers, Poisson, StudentT, Uneven
from bestarm.errors import InputError, UnknownNameError

VARIANTS = ("text", "published-code")
BENDS = ("quadratic", "interaction", "cubic", "steps")
SHAPES = ("linear", "cubic", "product", "tree")
REWARDS = ("normal", "logistic", "poisson")


def _pick(variant: str, text: Any, published_code: Any) -> Any:
    if variant not in VARIANTS:
        raise UnknownNameError("variant", variant, VARIANTS)
    return dict(zip(VARIANTS, (text, published_code), strict=True))[variant]


def _stack(array: Any, replications: int | None) -> Any:
    return array if replications is None else np.broadcast_to(array, (replications, *array.shape))


def _batch(replications: int | None) -> tuple[int, ...]:
    return () if replications is None else (replications,)


def adaptive(
    arms: int = 16, omega: float = 0.1, noise_variance: float = 10.0, replications: int | None = None
) -> Bandit:
    """Return e_1..e_d and (cos ω, sin ω, 0, ..), d = K − 1, θ = e_1 (Soare et al.; paper, section 8.1)."""
    disturbing = np.zeros((1, arms - 1))
    disturbing[0, :2] = np.cos(omega), np.sin(omega)
    features = _stack(np.concatenate([np.eye(arms - 1), disturbing]), replications)
    return Bandit(features, features[..., 0], Gaussian(noise_variance))


def static(
    gap: float = 0.1,
    arms: int = 16,
    noise_variance: float | None = None,
    variant: str = "text",
    replications: int | None = None,
) -> Bandit:
    """Return e_1..e_K with θ = (Δ, 0, ..) (Xu et al.; paper, section 8.2).

    The text gives no noise variance: 1 here. The published code has 10, where every method is near chance.
    """
    features = _stack(np.eye(arms), replications)
    variance = _pick(variant, 1.0, 10.0) if noise_variance is None else noise_variance
    return Bandit(features, gap * features[..., 0], Gaussian(variance))


def randomized(
    arms: int = 16,
    dimension: int = 10,
    noise_variance: float = 10.0,
    variant: str = "text",
    replications: int | None = None,
    rng: Any = None,
) -> Bandit:
    """Return arms uniform on the sphere, θ = x_i + 0.01 (x_j − x_i) for the closest pair (paper, section 8.3).

    The published code draws from a cube and normalises, which favours its corners.
    """
    rng = np.random.default_rng(rng)
    shape = (*_batch(replications), arms, dimension)
    x = _pick(variant, rng.standard_normal, lambda size: 2 * rng.random(size) - 1)(shape)
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    closeness = x @ np.swapaxes(x, -1, -2) - 2 * np.eye(arms)
    pair = np.argmax(closeness.reshape(*closeness.shape[:-2], -1), axis=-1)
    i, j = (np.take_along_axis(x, p[..., None, None], axis=-2)[..., 0, :] for p in divmod(pair, arms))
    theta = i + 0.01 * (j - i)
    return Bandit(x, (x @ theta[..., None])[..., 0], Gaussian(noise_variance))


def logistic(
    arms: int = 8, dimension: int = 5, variant: str = "text", replications: int | None = None, rng: Any = None
) -> Bandit:
    """Return arms uniform in [−½, ½]^d, θ ~ N(0, 3/d I), Bernoulli rewards (paper, section 8.4).

    The published code takes 3/d for the standard deviation.
    """
    rng = np.random.default_rng(rng)
    x = rng.random((*_batch(replications), arms, dimension)) - 0.5
    scale = _pick(variant, np.sqrt(3 / dimension), 3 / dimension)
    theta = scale * rng.standard_normal((*_batch(replications), dimension, 1))
    return Bandit(x, 1 / (1 + np.exp(-(x @ theta)[..., 0])), Bernoulli())


def corner(arms: int = 8, noise_variance: float = 1.0, replications: int | None = None, rng: Any = None) -> Bandit:
    """Return x_1 = θ = e_1, x_K at 3π/4, the others near π/4 (Yang and Tan; paper, appendix)."""
    rng = np.random.default_rng(rng)
    angle = np.pi / 4 + 0.09 * rng.standard_normal((*_batch(replications), arms))
    angle[..., 0], angle[..., -1] = 0.0, 3 * np.pi / 4
    x = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    return Bandit(x, x[..., 0], Gaussian(noise_variance))


def factorial(
    factors: int = 6,
    interactions: int = 0,
    effect: float = 0.3,
    base: float = 0.0,
    replications: int | None = None,
    rng: Any = None,
) -> Bandit:
    """Return all 2^m settings of m factors ±1 as arms, the log odds of a reward 1 additive in them.

    Effects have random signs and sizes uniform in [½, 1½] `effect`; `base` is the log odds in the middle. The first
    `interactions` pairs of factors have an effect too, drawn alike, and the features do not tell of it.
    """
    pairs = [
        (i, j) for gap in range(1, factors) for i, j in zip(range(factors - gap), range(gap, factors), strict=True)
    ]
    if not 1 <= factors <= 12:
        raise InputError(f"factors must be from 1 to 12, which is 4096 arms; given {factors}")
    if not 0 <= interactions <= len(pairs):
        raise InputError(f"{factors} factors have {len(pairs)} interactions of two; given {interactions}")
    rng = np.random.default_rng(rng)
    levels = 1.0 - 2.0 * ((np.arange(2**factors)[:, None] >> np.arange(factors)) & 1)
    products = [levels[:, i] * levels[:, j] for i, j in pairs[:interactions]]
    terms = np.column_stack([levels, *products])
    shape = (*_batch(replications), terms.shape[-1])
    effects = effect * (0.5 + rng.random(shape)) * np.where(rng.random(shape) < 0.5, -1.0, 1.0)
    odds = base + (terms @ effects[..., None])[..., 0]
    return Bandit(_stack(levels, replications), 1 / (1 + np.exp(-odds)), Bernoulli())


def functions(
    arms: int = 64,
    dimension: int = 5,
    shape: str = "linear",
    active: int | None = None,
    clusters: int = 0,
    extra: int = 0,
    copies: int = 0,
    rewards: str = "normal",
    spread: float = 1.0,
    noise_variance: float = 1.0,
    replications: int | None = None,
    rng: Any = None,
) -> Bandit:
    """Return arms in the cube [−1, 1]^d whose means are a random function of the first `active` features (None: all).

    The function, drawn for each replication and scaled to standard deviation `spread` over the arms, is "linear",
    "cubic" (in each feature), "product" (of a line in each) or "tree" (the sum of three of depth three). `clusters`
    puts the arms around that many centres, `extra` adds features that mean nothing, `copies` repeats the first ones.
    `rewards` are "normal", or "logistic" and "poisson", with the function for log odds and log mean.
    """
    for name, value, known in (("shape", shape, SHAPES), ("rewards", rewards, REWARDS)):
        if value not in known:
            raise UnknownNameError(name, value, known)
    active = dimension if active is None else active
    for name, number, most in (
        ("active", active, dimension),
        ("copies", copies, dimension),
        ("clusters", clusters, arms),
    ):
        if not (name == "active") <= number <= most:
            raise InputError(f"{name} must be from {int(name == 'active')} to {most}; given {number}")
    rng = np.random.default_rng(rng)
    batch = _batch(replications)
    x = 2 * rng.random((*batch, arms, dimension)) - 1
    if clusters:
        x = x[..., np.arange(arms) % clusters, :] + 0.15 * rng.standard_normal(x.shape)
    signal = _signal(shape, x[..., :active], rng)
    signal = spread * _scaled(signal, f"shape {shape!r}")
    noise_features = 2 * rng.random((*batch, arms, extra)) - 1
    features = np.concatenate([x, noise_features, x[..., :copies]], axis=-1)
    if rewards == "logistic":
        return Bandit(features, 1 / (1 + np.exp(-signal)), Bernoulli())
    if rewards == "poisson":
        means = np.exp(signal)
        return Bandit(features, means, Poisson(float(np.mean(means))))
    return Bandit(features, signal, Gaussian(noise_variance))


def _signal(shape: str, x: Any, rng: np.random.Generator) -> Any:
    """Return a random function of `x` `(..., K, d)`, `(..., K)`."""
    lead, dimension = x.shape[:-2], x.shape[-1]
    if shape == "tree":
        return sum(_tree(x, 3, rng) for _ in range(3))
    weights = rng.standard_normal((3, *lead, 1, dimension))
    if shape == "linear":
        return np.sum(weights[0] * x, axis=-1)
    if shape == "cubic":
        return np.sum(weights[0] * x + weights[1] * x**2 + weights[2] * x**3, axis=-1)
    return np.prod(1 + np.sign(weights[0]) * x, axis=-1)


def _tree(x: Any, depth: int, rng: np.random.Generator) -> Any:
    """Return the values `(..., K)` of a random tree: each node cuts a random feature at the value of an arm."""
    lead, (arms, dimension) = x.shape[:-2], x.shape[-2:]
    node = np.zeros(x.shape[:-1], dtype=np.int64)
    for level in range(depth):
        feature = rng.integers(dimension, size=(*lead, 2**level))
        middle = np.sort(x, axis=-2)[..., arms // 4 : max(arms // 4 + 1, 3 * arms // 4), :]
        cuts = np.take_along_axis(middle, rng.integers(middle.shape[-2], size=(*lead, 2**level, 1)), axis=-2)
        cut = np.take_along_axis(cuts, feature[..., None], axis=-1)[..., 0]
        mine = np.take_along_axis(feature, node, axis=-1)
        value = np.take_along_axis(x, mine[..., None], axis=-1)[..., 0]
        node = 2 * node + (value > np.take_along_axis(cut, node, axis=-1))
    return np.take_along_axis(rng.standard_normal((*lead, 2**depth)), node, axis=-1)


def _scaled(term: Any, what: str) -> Any:
    """Return `term` `(..., K)` with mean 0 and standard deviation 1 over the arms."""
    term = term - term.mean(axis=-1, keepdims=True)
    spread = term.std(axis=-1, keepdims=True)
    if np.min(spread) <= 1e-12:
        raise InputError(f"{what} is the same for all arms of this world: its features leave no room for it")
    return term / spread


def _changed(bandit: Bandit, by: Any) -> Bandit:
    """Return the bandit with `by(signal)` added to its signal: means, log odds of rewards 0 and 1, or log counts."""
    means = np.asarray(bandit.means)
    if isinstance(bandit.noise, Bernoulli):
        signal = np.log(means) - np.log1p(-means)
        return replace(bandit, means=1 / (1 + np.exp(-(signal + by(signal)))))
    if isinstance(bandit.noise, Poisson):
        signal = np.log(means)
        return replace(bandit, means=np.exp(signal + by(signal)))
    return replace(bandit, means=means + by(means))


def deviated(bandit: Bandit, times: float, rng: Any) -> Bandit:
    """Return the bandit with each mean off by its own N(0, (times σ)²), σ the standard deviation of one pull.

    Where rewards are 0 or 1, or counts, the log odds or log means are off by N(0, times²).
    """
    if not 0 <= times < np.inf:
        raise InputError(f"deviation must be a number from 0; given {times}")
    normal = isinstance(bandit.noise, Gaussian | Uneven | StudentT)
    unit = np.sqrt(bandit.noise.variance or 0.0) if normal else 1.0
    return _changed(bandit, lambda signal: times * unit * np.random.default_rng(rng).standard_normal(signal.shape))


def bent(bandit: Bandit, kind: str, strength: float = 1.0, rng: Any = None) -> Bandit:
    """Return the bandit with a term in its means that its features do not have.

    The term's standard deviation over the arms is `strength` times that of the means before.
    "quadratic" and "cubic" are powers of x'u for a random direction u, "interaction" is the product of two features
    drawn at random, and "steps" a tree of depth three.
    """
    if kind not in BENDS:
        raise UnknownNameError("bend", kind, BENDS)
    if not 0 <= strength < np.inf:
        raise InputError(f"strength must be a number from 0; given {strength}")
    rng = np.random.default_rng(rng)
    x = np.asarray(bandit.features)
    lead, dimension = x.shape[:-2], x.shape[-1]
    if kind == "steps":
        term = _tree(x, 3, rng)
    elif kind == "interaction":
        if dimension < 2:
            raise InputError("bend 'interaction' needs two features; this world has one")
        pair = np.argsort(rng.random((*lead, dimension)), axis=-1)[..., :2]
        chosen = np.take_along_axis(x, np.broadcast_to(pair[..., None, :], (*x.shape[:-1], 2)), axis=-1)
        term = chosen[..., 0] * chosen[..., 1]
    else:
        along = (x @ rng.standard_normal((*lead, dimension, 1)))[..., 0]
        term = along ** {"quadratic": 2, "cubic": 3}[kind]
    term = _scaled(term, f"bend {kind!r}")
    return _changed(bandit, lambda signal: strength * signal.std(axis=-1, keepdims=True) * term)


def _normal_variance(bandit: Bandit, what: str) -> float:
    if not isinstance(bandit.noise, Gaussian):
        raise InputError(f"{what} noise takes the place of normal noise; this world has {type(bandit.noise).__name__}")
    return bandit.noise.variance


def uneven(bandit: Bandit, ratio: float = 9.0, rng: Any = None) -> Bandit:
    """Return the bandit with another noise variance for each arm, the average as before.

    Log variances are evenly spread, in random order, and the largest variance is `ratio` times the least.
    """
    if not 1 <= ratio < np.inf:
        raise InputError(f"ratio must be at least 1; given {ratio}")
    variance = _normal_variance(bandit, "uneven")
    shape = bandit.means.shape
    order = np.argsort(np.random.default_rng(rng).random(shape), axis=-1)
    levels = ratio ** (np.arange(shape[-1]) / max(shape[-1] - 1, 1))
    return replace(bandit, noise=Uneven((variance * levels / levels.mean())[order]))


def heavy(bandit: Bandit, freedom: float = 3.0) -> Bandit:
    """Return the bandit with Student's t noise of the same variance."""
    return replace(bandit, noise=StudentT(_normal_variance(bandit, "heavy"), freedom))


def proportional(bandit: Bandit, ratio: float = 9.0) -> Bandit:
    """Return the bandit with a noise whose standard deviation rises evenly with the mean.

    The average variance, over all arms and replications, is as before; the largest in each replication, that of the
    best arm, is `ratio` times the least.
    """
    if not 1 <= ratio < np.inf:
        raise InputError(f"ratio must be at least 1; given {ratio}")
    variance = _normal_variance(bandit, "proportional")
    means = np.asarray(bandit.means)
    low, high = means.min(axis=-1, keepdims=True), means.max(axis=-1, keepdims=True)
    levels = (1 + (np.sqrt(ratio) - 1) * (means - low) / np.where(high > low, high - low, 1.0)) ** 2
    return replace(bandit, noise=Uneven(variance * levels / levels.mean()))


def noisier(bandit: Bandit, ratio: float = 10.0, rng: Any = None) -> Bandit:
    """Return the bandit with a quarter of the arms, any, of `ratio` times the noise variance of the others."""
    if not 1 <= ratio < np.inf:
        raise InputError(f"ratio must be at least 1; given {ratio}")
    variance = _normal_variance(bandit, "group")
    order = np.argsort(np.random.default_rng(rng).random(bandit.means.shape), axis=-1)
    return replace(bandit, noise=Uneven(np.where(order < max(order.shape[-1] // 4, 1), ratio, 1.0) * variance))


def slipped(bandit: Bandit, share: float = 0.01, times: float = 100.0, either: bool = False) -> Bandit:
    """Return the bandit with a `share` of rewards `times` too large, and half of those of `either` sign."""
    return replace(bandit, noise=Outliers(_normal_variance(bandit, "slips"), share, times, either))


def shifted(bandit: Bandit, by: float) -> Bandit:
    """Return the bandit with `by` added to every reward."""
    if not isinstance(bandit.noise, Gaussian):
        raise InputError(f"an offset is for worlds of normal noise; this one has {type(bandit.noise).__name__}")
    if not np.isfinite(by):
        raise InputError(f"offset must be a finite number; given {by}")
    return replace(bandit, means=np.asarray(bandit.means) + by)
