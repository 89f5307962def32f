"""Synthetic worlds in which features mislead: one arm that no line foresees, a hill in a plain, meaningless features.

`replications` None gives one, R a stack of R.
"""

from typing import Any

import numpy as np

from bestarm.bandits import Bandit, Bernoulli, Gaussian
from bestarm.errors import InputError

STEEP = 4.0  # how far a parabola falls over the length of its feature


def _batch(replications: int | None) -> tuple[int, ...]:
    return () if replications is None else (replications,)


def needle(
    arms: int = 64,
    dimension: int = 4,
    height: float = 3.0,
    second: float = 0.0,
    noise_variance: float = 1.0,
    replications: int | None = None,
    rng: Any = None,
) -> Bandit:
    """Return normal features, means ½ x_1 + 0.3 x_2, one arm `height` above that line, and one `second` if not 0."""
    if dimension < 2 or arms < 2:
        raise InputError(f"a needle needs 2 arms and 2 features at least; given {arms} and {dimension}")
    rng = np.random.default_rng(rng)
    x = rng.standard_normal((*_batch(replications), arms, dimension))
    order = np.argsort(rng.random(x.shape[:-1]), axis=-1)
    above = np.where(order == 0, height, np.where(order == 1, second, 0.0))
    return Bandit(x, 0.5 * x[..., 0] + 0.3 * x[..., 1] + above, Gaussian(noise_variance))


def hill(
    arms: int = 100,
    dimension: int = 3,
    height: float = 2.0,
    width: float = 0.05,
    noise_variance: float = 0.49,
    replications: int | None = None,
    rng: Any = None,
) -> Bandit:
    """Return arms in the cube [0, 1]^d with means `height` exp(−|x − c|² / `width`), c anywhere in the cube."""
    if not width > 0:
        raise InputError(f"width must be above 0; given {width}")
    rng = np.random.default_rng(rng)
    x = rng.random((*_batch(replications), arms, dimension))
    off = x - rng.random((*_batch(replications), 1, dimension))
    return Bandit(x, height * np.exp(-np.vecdot(off, off) / width), Gaussian(noise_variance))


def parabola(arms: int = 60, noise_variance: float = 0.25, replications: int | None = None, rng: Any = None) -> Bandit:
    """Return arms with one feature x in [0, 1] and means −4 (x − c)², c anywhere between 0 and 1."""
    rng = np.random.default_rng(rng)
    x = rng.random((*_batch(replications), arms, 1))
    off = x[..., 0] - rng.random((*_batch(replications), 1))
    return Bandit(x, -STEEP * off * off, Gaussian(noise_variance))


def useless(
    arms: int = 200,
    dimension: int = 5,
    spread: float = 1.0,
    noise_variance: float = 4.0,
    replications: int | None = None,
    rng: Any = None,
) -> Bandit:
    """Return normal features that say nothing of the means, which are N(0, `spread`²)."""
    rng = np.random.default_rng(rng)
    x = rng.standard_normal((*_batch(replications), arms, dimension))
    return Bandit(x, spread * rng.standard_normal(x.shape[:-1]), Gaussian(noise_variance))


def clicks(
    arms: int = 50,
    dimension: int = 6,
    wins: float = 5.0,
    losses: float = 95.0,
    replications: int | None = None,
    rng: Any = None,
) -> Bandit:
    """Return rewards 0 and 1 with rates Beta(`wins`, `losses`), and normal features that say nothing of them."""
    if not (wins > 0 and losses > 0):
        raise InputError(f"wins and losses must be above 0; given {wins} and {losses}")
    rng = np.random.default_rng(rng)
    x = rng.standard_normal((*_batch(replications), arms, dimension))
    return Bandit(x, rng.beta(wins, losses, x.shape[:-1]), Bernoulli())


def families(
    arms: int = 22,
    count: int = 4,
    slope: float = 0.6,
    own: float = 0.4,
    base: float = 0.5,
    replications: int | None = None,
    rng: Any = None,
) -> Bandit:
    """Return graded answers, 0 and 1, of arms that come in families: better with size, but for one surprise.

    Features are the family, one column each, and the size, uniform in [−1, 1]. The log odds of a right answer are
    `base` + `slope` · size + N(0, ½²) for the family + N(0, `own`²) for the arm. The surprise, one of the smaller half,
    has 1.5 more: it is about as good as the best of the large ones, and where the features say little good is.
    """
    if not 1 <= count <= arms:
        raise InputError(f"count must be from 1 to {arms}, a family an arm; given {count}")
    rng = np.random.default_rng(rng)
    batch = _batch(replications)
    size = 2 * rng.random((*batch, arms)) - 1
    family = np.arange(arms) % count
    odds = base + slope * size + 0.5 * rng.standard_normal((*batch, count))[..., family]
    odds = odds + own * rng.standard_normal(odds.shape)
    smaller = np.where(size <= np.median(size, axis=-1, keepdims=True), rng.random(size.shape), -1.0)
    odds = odds + 1.5 * (smaller == smaller.max(axis=-1, keepdims=True))
    x = np.concatenate([np.broadcast_to(np.eye(count)[family], (*batch, arms, count)), size[..., None]], axis=-1)
    return Bandit(x, 1 / (1 + np.exp(-odds)), Bernoulli())
