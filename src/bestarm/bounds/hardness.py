"""How hard a problem is: the numbers that bounds divide the budget by. `gaps` are those of the K - 1 other arms."""

from collections.abc import Sequence

import numpy as np

from bestarm.bounds.bound import check, ordered
from bestarm.core import Array
from bestarm.designs.directions import EachArm
from bestarm.designs.transductive import Transductive
from bestarm.linalg import Candidates, moment


def plain_hardness(gaps: Sequence[float]) -> float:
    """Return H = Σ_k Δ_k^-2 over all arms, where the best one has the smallest gap.

    >>> plain_hardness([0.5, 1.0])
    9.0
    """
    near = ordered(gaps)
    return sum(1 / gap / gap for gap in [near[0], *near])


def accuracy_hardness(gaps: Sequence[float], epsilon: float = 0) -> float:
    """Return H_ε = Σ_k max((Δ_k + ε)/2, ε)^-2 over all arms, where the best one has the smallest gap."""
    check(epsilon=epsilon)
    near = ordered(gaps)
    hard = [max((gap + epsilon) / 2, epsilon) for gap in [near[0], *near]]
    return sum(1 / gap / gap for gap in hard)


def linear_hardness(gaps: Sequence[float], last: int) -> float:
    """Return H_2 = max_{2<=i<=last} i / Δ_i² with the gaps in increasing order; H_2,lin where `last` is d.

    >>> linear_hardness([0.5, 1.0, 1.0], 3)
    8.0
    """
    near = ordered(gaps, max(1, last - 1))
    return max(i / gap / gap for i, gap in enumerate(near[: last - 1], start=2))


def peace_hardness(features: Array, means: Array, draws: int = 4000, seed: int = 0) -> tuple[float, float, Array]:
    """Return ρ*, γ*(λ), and the design λ that attains ρ*.   App. D

    ρ* = min_λ max_x ||x_1 - x||²_{V(λ)^-1} / Δ_x², found to within 1 %: 2 ρ* is the T* of `LazyTrackAndStop`.
    γ*(λ) = E (max_x (x_1 - x)'V(λ)^-½ ξ / Δ_x)², ξ standard normal, of so many `draws`. The paper's γ* is the least
    over all designs, so this is an upper bound on it, at most about 2 ln K times ρ*.

    >>> rho, gamma, _ = peace_hardness(np.eye(2), np.array([1.0, 0.0]))
    >>> round(rho, 2)
    4.0
    """
    arms = Candidates.of(features)
    x, best = arms.coordinates, int(np.argmax(means))
    others = np.arange(len(means)) != best
    gaps = (means[best] - means)[others]
    for gap in gaps:
        check(gap=float(gap))
    y = (x[best] - x[others]) / gaps[:, None]
    weights = Transductive(EachArm(), tolerance=1e-2, limit=5000).toward(arms, y)
    inverse = np.linalg.inv(moment(x, weights))
    rho = float(np.max(np.vecdot(y @ inverse, y)))
    noise = np.random.default_rng(seed).standard_normal((draws, x.shape[-1]))
    scores = noise @ (y @ np.linalg.cholesky(inverse)).T
    return rho, float(np.mean(np.max(scores, axis=-1) ** 2)), weights
