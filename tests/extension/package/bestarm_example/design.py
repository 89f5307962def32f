"""A design: features in, whole pulls out."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ends:
    """Spread pulls evenly over the arms at an end of some feature, the first of them once more where that is uneven."""

    def allocate(self, candidates, pulls, rng, targets=None):
        x = candidates.features
        at_end = (x == x.min(axis=-2, keepdims=True)) | (x == x.max(axis=-2, keepdims=True))
        chosen = at_end.any(axis=-1)
        count = chosen.sum(axis=-1, keepdims=True)
        turn = np.cumsum(chosen, axis=-1) - 1
        return np.where(chosen, pulls // count + (turn < pulls % count), 0)
