"""Worlds: features, the noise variance if it is known, and a pull. No more is needed to play."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from bestarm import Bandit, Bernoulli, Totals


@dataclass(frozen=True)
class Ladder:
    """Arms on a line, each better than the one before by a step."""

    features: Any
    means: Any
    noise_variance: float

    def pull(self, pulls, taken, rng):
        means = np.take_along_axis(self.means, pulls.arms, axis=-1)
        sums = pulls.times * means + np.sqrt(pulls.times * self.noise_variance) * rng.standard_normal(means.shape)
        return Totals(sums, sums**2 / np.maximum(pulls.times, 1))


def ladder(arms: int = 5, step: float = 1.0, noise_variance: float = 0.25, replications: int | None = None) -> Ladder:
    """Return one ladder, or a stack of them."""
    rung = np.arange(float(arms))
    features = np.stack([rung / arms, np.ones(arms)], axis=-1)
    batch = () if replications is None else (replications,)
    return Ladder(
        np.broadcast_to(features, (*batch, *features.shape)),
        np.broadcast_to(step * rung, (*batch, arms)),
        noise_variance,
    )


def coins(arms: int = 5, step: float = 2.0, replications: int | None = None) -> Bandit:
    """Return rewards 0 and 1, whose chances climb the same ladder past a threshold between the last two arms."""
    rungs = ladder(arms, step, replications=replications)
    return Bandit(rungs.features, ndtr(rungs.means - step * (arms - 1.5)), Bernoulli())
