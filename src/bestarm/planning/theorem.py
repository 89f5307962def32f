"""The theorem's answer, for the sceptic."""

from dataclasses import dataclass

import numpy as np

from bestarm import bounds
from bestarm.planning.worlds import Worlds

WORLDS = 100  # over which the bound is averaged, where they differ


@dataclass(frozen=True)
class Theorem:
    """The bound on the error of G-optimal elimination, averaged over worlds; none for counts, whose tails are long."""

    worlds: Worlds
    gaps: tuple[float, ...]

    @classmethod
    def of(cls, worlds: Worlds, seed: int) -> "Theorem":
        """Return the bound for worlds drawn from a seed."""
        if worlds.noise.variance is None:
            return cls(worlds, ())
        return cls(worlds, tuple(map(float, worlds.hardness(WORLDS, np.random.default_rng(seed)))))

    def at(self, budget: int) -> float | None:
        """Return the bound with that budget.   Thm. 1, Eq. (3); Thm. 2, Eq. (6)"""
        if not self.gaps:
            return None
        size = len(self.worlds.features), self.worlds.dimension, budget
        noise = self.worlds.noise.variance
        return sum(bounds.gse(*size, gap, noise) if gap > 0 else 1.0 for gap in self.gaps) / len(self.gaps)

    def budget(self, error: float) -> int | None:
        """Return the smallest budget whose bound is at most `error`; None for one beyond 2^60."""
        low, high = 0, 1
        while (bound := self.at(high)) is not None and bound > error:
            low, high = high, 2 * high
            if high > 2**60:
                return None
        if bound is None:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            bound = self.at(middle)
            low, high = (middle, high) if bound is None or bound > error else (low, middle)
        return high

    def points(self, first: int, last: int, error: float) -> tuple[tuple[int, float], ...]:
        """Return the bound from the first budget of a curve to its last, or to where it meets the target."""
        if not self.gaps:
            return ()
        last = max(last, self.budget(error) or 0)
        budgets = np.unique(np.geomspace(first, last, 60).round().astype(np.int64))
        return tuple((int(b), float(self.at(int(b)) or 0.0)) for b in budgets)
