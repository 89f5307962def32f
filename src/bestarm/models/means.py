"""No structure: each arm speaks for itself."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bestarm.core import Array, Tally
from bestarm.linalg import Candidates
from bestarm.models.many import Believed
from bestarm.models.protocols import Fit, Model, each_by_itself
from bestarm.needs import Least


@dataclass(frozen=True)
class Means(Model):
    """Sample means; an arm never pulled is given the mean of all pulls.

    >>> tally = Tally(np.array([2.0, 1.0, 0.0]), np.array([2.0, 4.0, 0.0]), np.array([2.0, 16.0, 0.0]))
    >>> Means().fit(Candidates.of(np.eye(3)), tally).mean
    array([1., 4., 2.])
    """

    wants: ClassVar = Least.ARMS

    def fit(self, candidates: Candidates, tally: Tally) -> Fit:
        mean = sample_means(tally.counts, tally.sums)
        return Fit(mean, mean)

    def standard_error(self, candidates: Candidates, tally: Tally, fit: Fit, noise_variance: float | None) -> Array:
        scale: Any = noise_variance
        if noise_variance is None:
            freedom = np.maximum(tally.counts - 1, 0.0)
            scale = _ratio(np.sum(tally.within, axis=-1), np.sum(freedom, axis=-1))[..., None]
        return np.sqrt(_ratio(scale * np.ones_like(tally.counts), tally.counts))

    def posterior(
        self, features: Array, tally: Tally, noise_variance: float | None, draws: int = 4000, rng: Any = None
    ) -> Believed:
        return each_by_itself(tally, noise_variance, draws, rng)

    @property
    def truth(self) -> Model:
        return self

    def distinct(self, features: Array) -> tuple[Array, Array]:
        return np.eye(len(features)), np.arange(len(features))


def sample_means(counts: Array, sums: Array) -> Array:
    """Return the sample means `(..., K)`; the mean of all pulls where an arm has none."""
    mean, pulled = sums / np.maximum(counts, 1.0), counts > 0
    if pulled.all():
        return mean
    total = np.maximum(np.sum(counts, axis=-1, keepdims=True), 1.0)
    return np.where(pulled, mean, np.sum(sums, axis=-1, keepdims=True) / total)


def _ratio(above: Array, below: Array) -> Array:
    """Return above / below, infinite where there is nothing below."""
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), np.inf)
