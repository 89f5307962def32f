"""No structure: each arm speaks for itself."""

from dataclasses import dataclass

from bestarm.core import Array, Tally, namespace
from bestarm.linalg import Candidates
from bestarm.models.protocols import Fit


@dataclass(frozen=True)
class Means:
    """Sample means; an arm never pulled is given the mean of all pulls.

    >>> import numpy as np
    >>> tally = Tally(np.array([2.0, 1.0, 0.0]), np.array([2.0, 4.0, 0.0]), np.array([2.0, 16.0, 0.0]))
    >>> Means().fit(Candidates.of(np.eye(3)), tally).mean
    array([1., 4., 2.])
    """

    def fit(self, candidates: Candidates, tally: Tally) -> Fit:
        xp = namespace(tally.sums)
        one = xp.ones_like(tally.counts)
        total = xp.maximum(xp.sum(tally.counts, axis=-1, keepdims=True), one[..., :1])
        overall = xp.sum(tally.sums, axis=-1, keepdims=True) / total
        mean = xp.where(tally.counts > 0, tally.sums / xp.maximum(tally.counts, one), overall * one)
        return Fit(mean, mean)

    def standard_error(self, candidates: Candidates, tally: Tally, fit: Fit, noise_variance: float | None) -> Array:
        xp = namespace(tally.sums)
        if noise_variance is None:
            within = tally.squares - tally.sums * fit.mean
            freedom = xp.maximum(tally.counts - 1, xp.zeros_like(tally.counts))
            scale = _ratio(xp.sum(within, axis=-1), xp.sum(freedom, axis=-1))[..., None]
        else:
            scale = noise_variance * xp.ones_like(tally.counts)
        return xp.sqrt(_ratio(scale * xp.ones_like(tally.counts), tally.counts))


def _ratio(above: Array, below: Array) -> Array:
    """Return above / below, infinite where there is nothing below."""
    xp = namespace(above)
    return xp.where(below > 0, above / xp.where(below > 0, below, xp.ones_like(below)), xp.inf)
