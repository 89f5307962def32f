"""What pulls gave and what is known by arm: counts, sums, and how rewards scatter."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
AnyArray: TypeAlias = Any  # of whatever library, where the array dialect is spoken: algebra, designs, tables


@dataclass(frozen=True)
class Totals:
    """What pulls gave, aligned with them: the sum of the rewards of each arm, and of their squares.

    `scatter` is Σ (y − ȳ)² about the mean of these rewards of the arm, for who knows it: where rewards lie about 1e9
    the squares have no digits left to tell.
    """

    sums: Array
    squares: Array
    scatter: Array | None = None


@dataclass(frozen=True)
class Tally:
    """What is known of some arms `(..., K)`: how often each was pulled, the sum of its rewards y, and of their squares.

    `scatter` is W = Σ (y − ȳ)² about the mean of the arm; None: as the squares say. It loses no digits to where rewards
    lie, which squares do, so whoever needs more than counts and sums takes it from here:

        Σ (y − μ)² = W + n (ȳ − μ)²,    W = W₁ + W₂ + n₁ n₂ (ȳ₁ − ȳ₂)² / (n₁ + n₂) of two tallies together.

    >>> import numpy as np
    >>> one, two = (Tally(np.array([2.0]), np.array([2e9 + s]), np.array([2e18]), np.array([0.5])) for s in (1, 5))
    >>> (one + two).within, (one + two).about(1e9).squares
    (array([5.]), array([14.]))
    """

    counts: Array
    sums: Array
    squares: Array
    scatter: Array | None = None

    def __add__(self, other: "Tally") -> "Tally":
        counts = self.counts + other.counts
        between = self.counts * other.counts / np.maximum(counts, 1.0) * (self.means - other.means) ** 2
        scatter = self.within + other.within + between
        return Tally(counts, self.sums + other.sums, self.squares + other.squares, scatter)

    @property
    def means(self) -> Array:
        """The mean reward of each arm `(..., K)`, 0 of one not pulled."""
        found: Array = self.sums / np.maximum(self.counts, 1.0)
        return found

    @property
    def within(self) -> Array:
        """W, the scatter of each arm's rewards about their mean, `(..., K)`."""
        if self.scatter is not None:
            return self.scatter
        found: Array = np.maximum(self.squares - self.sums * self.means, 0.0)
        return found

    @property
    def level(self) -> Array:
        """The mean of all rewards, `(...)`."""
        found: Array = np.sum(self.sums, axis=-1) / np.maximum(np.sum(self.counts, axis=-1), 1.0)
        return found

    def residual(self, means: Array) -> Array:
        """Return the sum of squares `(..., K)` about these `means` `(..., K)`."""
        found: Array = self.within + self.counts * (self.means - means) ** 2
        return found

    def about(self, value: Array | float) -> "Tally":
        """Return the same of rewards less a `value` for each replication `(...)`."""
        level = np.asarray(value)[..., None]
        return Tally(self.counts, self.sums - self.counts * level, self.residual(level), self.within)

    def scaled(self, unit: float) -> "Tally":
        """Return the same of rewards in another `unit`."""
        squares, scatter = (part / unit / unit for part in (self.squares, self.within))
        return Tally(self.counts, self.sums / unit, squares, scatter)

    def each(self, change: Callable[[Array], Array]) -> "Tally":
        """Return the same with `change` made to every part, such as to take some of the arms."""
        return Tally(*(change(part) for part in (self.counts, self.sums, self.squares, self.within)))


def moments(observation: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """Return count, sum, sum of squares and scatter of an observation of one reward or several, whatever is kept of it.

    value               one reward
    successes, n        so many ones of n rewards that are 0 or 1
    mean, sd, n         of n rewards, sd with n - 1 below the fraction
    sum, squares, n     of n rewards, or of one where n is left out

    >>> moments({"successes": 3, "n": 10}), moments({"mean": 2.0, "sd": 1.0, "n": 5})
    ((10, 3, 3, 2.1), (5, 10.0, 24.0, 4.0))
    """
    n: float = observation.get("n", 1)
    if (value := observation.get("value")) is not None:
        return n, value, value * value, 0.0
    if "mean" in observation:
        mean, sd = observation["mean"], observation.get("sd") or 0.0
        return n, n * mean, n * mean * mean + (n - 1) * sd * sd, (n - 1) * sd * sd
    names = ("successes", "successes") if "successes" in observation else ("sum", "squares")
    total, squares = (observation[name] for name in names)
    return n, total, squares, max(squares - total * total / n, 0.0)
