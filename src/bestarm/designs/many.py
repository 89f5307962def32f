"""Designs of many arms: an active set finds the support, and only the support is rounded."""

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from bestarm.core import AnyArray, Random
from bestarm.designs.protocols import Design, Rounding, without_dust
from bestarm.designs.rounding import AutoRound
from bestarm.designs.trim import trim
from bestarm.linalg import Candidates, span_coordinates
from bestarm.tables.source import beside, to_host

if TYPE_CHECKING:
    from bestarm.designs.active import Solution
    from bestarm.designs.reading import Index

AMPLE = 10  # pulls for each row of the support from which rounding costs a tenth at most, however long the support is


@dataclass(frozen=True)
class BySize:
    """One design for up to `switch` arms, another for more.

    An exchange step touches every arm, which is nothing for a thousand arms and all the time for a million.

    >>> from bestarm.designs.spread import Uniform
    >>> few = BySize(Uniform(), Sparse(), switch=3)
    >>> few.allocate(Candidates.of(np.eye(4)[:, :2]), 6, np.random.default_rng(1)).tolist()
    [3, 3, 0, 0]
    """

    few: Design
    many: Design
    switch: int = 5000

    def allocate(self, candidates: Candidates, pulls: int, rng: Random, targets: AnyArray | None = None) -> AnyArray:
        design = self.few if candidates.features.shape[-2] <= self.switch else self.many
        return design.allocate(candidates, pulls, rng, targets)


@dataclass(frozen=True)
class Sparse:
    """The optimal design of `designs.active`, rounded on its support alone, one replication after another.

    Rows without information about anything (all zero) are pulled equally often, from the first on.
    """

    tolerance: float = 1e-2
    rounding: Rounding = AutoRound()

    def allocate(self, candidates: Candidates, pulls: int, rng: Random, targets: AnyArray | None = None) -> AnyArray:
        """Return whole numbers `(..., k)`; `targets` do not change them, since the design covers every direction."""
        from bestarm.designs.active import optimal_design  # which few studies need, and all have in their policy
        from bestarm.tables.memory import ArraySource

        x = to_host(candidates.features)
        stack = x.reshape(prod(x.shape[:-2]), *x.shape[-2:])
        times = np.zeros(stack.shape[:2], dtype=np.int64)
        for one, mine in zip(stack, times, strict=True):
            if one.any():
                found = optimal_design(ArraySource.of(one), self.tolerance)
                rows, few = self.spread(found, pulls, rng)
                mine[rows] = few
            else:
                mine += pulls // len(mine)
                mine[: pulls % len(mine)] += 1
        return beside(times.reshape(x.shape[:-1]), candidates.features)

    def spread(self, found: "Solution", pulls: int, rng: Random) -> "tuple[Index, Index]":
        """Return the rows of a solution that are pulled `(m,)`, ascending, and how often, `pulls` times in all."""
        kept, shares = shortened(found, pulls)
        times = self.rounding.round(span_coordinates(found.features[kept]), shares, pulls, rng)
        some = np.flatnonzero(times)
        return found.rows[kept][some], np.asarray(times[some], dtype=np.int64)


def shortened(found: "Solution", pulls: int) -> "tuple[Index, AnyArray]":
    """Return positions `(m,)` in the support of a solution and their shares of the pulls, sum one.

    Weights on their way to zero are dropped. Where the pulls are few for so long a support, it is brought to r(r + 1)/2
    rows of the same information: rounding up then costs one pull for each of those at most.
    """
    weights = without_dust(found.weights)
    kept = np.flatnonzero(weights)
    corner = found.rank * (found.rank + 1) // 2
    if len(kept) > corner and pulls < AMPLE * len(kept):
        weights[kept] = trim(span_coordinates(found.coordinates[kept]), weights[kept])
        kept = np.flatnonzero(weights)
    shares = weights[kept] if found.costs is None else weights[kept] / found.costs[kept]
    return kept, shares / shares.sum()
