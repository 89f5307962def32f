"""A reward model: totals in, estimates and their errors out."""

from dataclasses import dataclass

import numpy as np

from bestarm.models.protocols import Fit


@dataclass(frozen=True)
class Pooled:
    """Sample means drawn towards the mean of all rewards, as if that had been seen `weight` times of each arm."""

    weight: float = 1.0

    def fit(self, candidates, tally):
        total = np.maximum(tally.counts.sum(axis=-1, keepdims=True), 1)
        overall = tally.sums.sum(axis=-1, keepdims=True) / total
        mean = (tally.sums + self.weight * overall) / (tally.counts + self.weight)
        return Fit(mean, mean)

    def standard_error(self, candidates, tally, fit, noise_variance):
        variance = 1.0 if noise_variance is None else noise_variance
        return np.sqrt(variance / (tally.counts + self.weight))
