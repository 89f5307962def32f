"""Two designs in one: part of the pulls by each."""

from dataclasses import dataclass

from bestarm.core import AnyArray, Random, namespace
from bestarm.designs.protocols import Design
from bestarm.linalg import Candidates, scatter


@dataclass(frozen=True)
class WithTargets:
    """Leave a `share` of the pulls to `design` and spread the rest evenly over the targets themselves.

    A design for a linear model may never measure the arms it is to compare; where the model errs, nothing else helps.

    >>> import numpy as np
    >>> from bestarm.designs.spread import Uniform
    >>> blend = WithTargets(Uniform(), 0.5)
    >>> times = blend.allocate(Candidates.of(np.eye(4)), 8, np.random.default_rng(1), np.array([1, 2]))
    >>> times
    array([1, 3, 3, 1])
    """

    design: Design
    share: float = 0.5

    def allocate(self, candidates: Candidates, pulls: int, rng: Random, targets: AnyArray | None = None) -> AnyArray:
        first = round(self.share * pulls)
        times = self.design.allocate(candidates, first, rng, targets)
        xp = namespace(times)
        if targets is None:
            targets = xp.broadcast_to(xp.arange(times.shape[-1], dtype=xp.int64), times.shape)
        each, rest = divmod(pulls - first, targets.shape[-1])
        place = xp.argsort(xp.argsort(xp.asarray(rng.random(targets.shape)), axis=-1), axis=-1)
        more = each + xp.astype(place < rest, xp.int64)
        spread = scatter(targets, xp.astype(more, candidates.features.dtype), times.shape[-1])
        return times + xp.astype(xp.round(spread), xp.int64)
