"""What a design is: features in, whole pulls out. A design never sees a reward."""

from dataclasses import dataclass
from typing import Protocol

from bestarm.core import AnyArray, Random, namespace
from bestarm.linalg import Candidates

DUST = 1e-3


class Design(Protocol):
    """A way to spread n pulls over arms."""

    def allocate(self, candidates: Candidates, pulls: int, rng: Random, targets: AnyArray | None = None) -> AnyArray:
        """Return whole numbers `(..., k)` that sum to `pulls`.

        `targets` `(..., m)` are positions of the arms whose means matter; None means all of them.
        """
        ...


class Weights(Protocol):
    """A way to spread one unit of effort over arms: a point of the simplex."""

    def weights(self, candidates: Candidates, targets: AnyArray | None = None) -> AnyArray:
        """Return π `(..., k)`, non-negative with sum one."""
        ...


class Rounding(Protocol):
    """A way to make whole pulls of a design: ROUND(n, π)."""

    def round(self, coordinates: AnyArray, weights: AnyArray, pulls: int, rng: Random) -> AnyArray:
        """Return whole numbers `(..., k)` that sum to `pulls`, on the support of `weights`."""
        ...


@dataclass(frozen=True)
class Rounded:
    """Solve for a design, then round it.   Alg. 2, last line"""

    design: Weights
    rounding: Rounding

    def allocate(self, candidates: Candidates, pulls: int, rng: Random, targets: AnyArray | None = None) -> AnyArray:
        weights = without_dust(self.design.weights(candidates, targets))
        return self.rounding.round(candidates.coordinates, weights, pulls, rng)


def without_dust(weights: AnyArray) -> AnyArray:
    """Return a design without what was on its way to zero: weights below a thousandth of the largest."""
    xp = namespace(weights)
    kept = xp.where(weights >= DUST * xp.max(weights, axis=-1, keepdims=True), weights, xp.zeros_like(weights))
    return kept / xp.sum(kept, axis=-1, keepdims=True)
