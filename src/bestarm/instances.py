"""The paper's synthetic worlds. `replications` None gives one, R gives a stack of R.

Where the paper's text and its published code differ, `variant` "text" (the default) or "published-code" says
which is meant.
"""

from typing import Any

import numpy as np

from bestarm.bandits import Bandit, Bernoulli, Gaussian
from bestarm.errors import UnknownNameError

VARIANTS = ("text", "published-code")


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
    """Return e_1..e_d and (cos ω, sin ω, 0, ..), d = K − 1, θ = e_1 (Soare et al.; paper, section 7.1)."""
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
    """Return e_1..e_K with θ = (Δ, 0, ..) (Xu et al.; paper, section 7.2).

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
    """Return arms uniform on the sphere, θ = x_i + 0.01 (x_j − x_i) for the closest pair (paper, section 7.3).

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
    """Return arms uniform in [−½, ½]^d, θ ~ N(0, 3/d I), Bernoulli rewards (paper, section 7.4).

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
