"""The truth: arms with features, means and noise. Only simulation sees it."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bestarm.core import Array, Goal, Pulls, Totals, namespace
from bestarm.errors import ArmsError, InputError
from bestarm.linalg import pick, rows
from bestarm.noise import Bernoulli, Gaussian, Noise, Outliers, Poisson, Recorded, Shifted, StudentT, Uneven
from bestarm.tables.source import to_host

__all__ = [
    "Bandit",
    "Bernoulli",
    "Gaussian",
    "Noise",
    "Outliers",
    "Poisson",
    "Recorded",
    "Shifted",
    "Stream",
    "StudentT",
    "Tape",
    "Uneven",
]


def _moved(noise: Any, order: Any) -> Any:
    """Return the noise of the arms `order` `(..., m)`: only some kinds know one arm from another."""
    if isinstance(noise, Shifted):
        return replace(noise, noise=_moved(noise.noise, order))
    return noise.moved(order) if isinstance(noise, Recorded | Uneven) else noise


@dataclass(frozen=True)
class Bandit:
    """Arms with features `(..., K, d)`, means `(..., K)` and noise.

    >>> bandit = Bandit(np.eye(3), np.array([0.0, 1.0, 0.5]), Gaussian(4.0))
    >>> bandit.correct(np.array(1)), float(bandit.regret(np.array(2)))
    (np.True_, 0.5)
    """

    features: Array
    means: Array
    noise: Noise

    def __post_init__(self) -> None:
        if tuple(self.means.shape) != tuple(self.features.shape[:-1]):
            raise InputError(
                f"means must have shape {tuple(self.features.shape[:-1])}, one for each arm; "
                f"given {tuple(self.means.shape)}"
            )

    @property
    def noise_variance(self) -> float | None:
        return self.noise.variance

    def pull(self, pulls: Pulls, taken: Array, rng: np.random.Generator) -> Totals:
        """Return the totals of `pulls`; what was pulled before does not matter."""
        xp = namespace(self.means)
        means = np.asarray(xp.take_along_axis(self.means, pulls.arms, axis=-1))
        noise = _moved(self.noise, np.asarray(pulls.arms))
        return Totals(*(xp.asarray(part) for part in noise.totals(means, np.asarray(pulls.times), rng)))

    def regret(self, arm: Array) -> Array:
        """Return how much worse than the best `arm` is, `(...)`."""
        return namespace(self.means).max(self.means, axis=-1) - pick(self.means, arm)

    def correct(self, arm: Array) -> Array:
        """Return whether `arm` is as good as any: equal means count as right."""
        return self.regret(arm) <= 0

    def shuffled(self, rng: np.random.Generator) -> "Bandit":
        """Return the same bandit with its arms in random order, another for each replication."""
        xp = namespace(self.means)
        order = xp.asarray(np.argsort(rng.random(self.means.shape), axis=-1))
        means = xp.take_along_axis(self.means, order, axis=-1)
        noise = _moved(self.noise, order)
        return replace(self, features=rows(self.features, order), means=means, noise=noise)

    def turned(self, rng: np.random.Generator) -> "Bandit":
        """Return the same bandit with its features in random order, another for each replication."""
        xp = namespace(self.means)
        batch, width = self.means.shape[:-1], self.features.shape[-1]
        order = xp.asarray(np.argsort(rng.random((*batch, 1, width)), axis=-1))
        order = xp.broadcast_to(order, (*self.means.shape, width))
        return replace(self, features=xp.take_along_axis(self.features, order, axis=-1))

    def lowered(self, by: float) -> "Bandit":
        """Return the same bandit with every reward less by a constant."""
        return replace(self, means=self.means - by, noise=Shifted(self.noise, by))


@dataclass(frozen=True)
class Tape:
    """Rewards drawn in advance: the j-th pull of arm i is the same number whoever asks.

    `sums` and `squares` `(..., K, n + 1)` are running totals over the n rewards of each arm, `off` and `scatter` those
    of the rewards less their mean over the arm, where they are known.
    """

    features: Array
    sums: Array
    squares: Array
    noise_variance: float | None = None
    off: Array | None = None
    scatter: Array | None = None

    @classmethod
    def of(cls, features: Array, rewards: Any, noise_variance: float | None = None) -> "Tape":
        """Return the tape of `rewards` `(..., K, n)`."""
        start = np.zeros_like(rewards[..., :1])
        off = rewards - np.mean(rewards, axis=-1, keepdims=True)
        each = (rewards, rewards**2, off, off**2)
        sums, squares, off, scatter = (np.concatenate([start, np.cumsum(r, axis=-1)], axis=-1) for r in each)
        return cls(features, sums, squares, noise_variance, off, scatter)

    @classmethod
    def draw(cls, bandit: Bandit, length: int, rng: np.random.Generator) -> "Tape":
        """Return `length` rewards of each arm of `bandit`."""
        rewards = bandit.noise.rewards(np.asarray(bandit.means), length, rng)
        return cls.of(bandit.features, rewards, bandit.noise_variance)

    def pull(self, pulls: Pulls, taken: Array, rng: Any = None) -> Totals:
        """Return what the next `pulls.times` rewards of each arm add up to."""
        xp = namespace(self.features)
        arms, times, taken = (np.asarray(a) for a in (pulls.arms, pulls.times, taken))
        first = np.take_along_axis(taken, arms, axis=-1)
        grid = np.ix_(*(np.arange(n) for n in arms.shape))[:-1]

        def read(running: Any) -> Array:
            return xp.asarray(running[(*grid, arms, first + times)] - running[(*grid, arms, first)])

        if self.off is None or self.scatter is None:
            return Totals(read(self.sums), read(self.squares))
        scatter = np.maximum(read(self.scatter) - read(self.off) ** 2 / np.maximum(times, 1), 0.0)
        return Totals(read(self.sums), read(self.squares), scatter)

    def replication(self, row: int) -> "Tape":
        """Return the tape of one replication."""
        off, scatter = (None if part is None else part[row] for part in (self.off, self.scatter))
        return Tape(self.features[row], self.sums[row], self.squares[row], self.noise_variance, off, scatter)


GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(x: Any) -> Any:
    """Return the SplitMix64 finaliser of 64-bit words (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@dataclass(frozen=True)
class Stream:
    """A bandit whose j-th pull of arm i in replication r is a fixed number: a tape without the memory.

    Each arm of each replication has its own SplitMix64 stream, keyed by `seed`, r and i, so every policy meets the same
    rewards and differences between policies are paired.
    """

    bandit: Bandit
    seed: int

    def __post_init__(self) -> None:
        arms = self.bandit.means.shape[-1]
        lead = np.arange(int(np.prod(self.bandit.means.shape[:-1])), dtype=np.uint64)
        with np.errstate(over="ignore"):
            keys = _mix(_mix(np.uint64(self.seed) + lead * GOLDEN)[:, None] + np.arange(arms, dtype=np.uint64) * GOLDEN)
        object.__setattr__(self, "keys", keys)

    keys: Any = field(init=False, repr=False, compare=False, default=None)

    @property
    def features(self) -> Array:
        return self.bandit.features

    @property
    def noise_variance(self) -> float | None:
        return self.bandit.noise_variance

    def pull(self, pulls: Pulls, taken: Array, rng: Any = None) -> Totals:
        """Return what the next `pulls.times` rewards of each arm add up to."""
        width = pulls.arms.shape[-1]
        arms, times = (np.reshape(a, (-1, width)) for a in (pulls.arms, pulls.times))
        where = (arms + np.arange(len(arms))[:, None] * self.keys.shape[-1]).ravel()
        times = times.ravel()
        first = np.ravel(taken)[where]
        if times.max(initial=0) <= 1:
            reward = self._rewards(where, first) * times
            return Totals(*(part.reshape(pulls.times.shape) for part in (reward, reward**2, np.zeros_like(reward))))
        slot = np.repeat(np.arange(times.size), times)
        within = np.arange(slot.size) - np.repeat(np.cumsum(times) - times, times)
        reward = self._rewards(where[slot], first[slot] + within)
        sums, squares = (np.bincount(slot, r, minlength=times.size) for r in (reward, reward**2))
        off = reward - (sums / np.maximum(times, 1))[slot]
        scatter = np.bincount(slot, off * off, minlength=times.size)
        return Totals(*(part.reshape(pulls.times.shape) for part in (sums, squares, scatter)))

    def _rewards(self, where: Any, index: Any) -> Any:
        with np.errstate(over="ignore"):
            bits = _mix(self.keys.ravel()[where] + (index.astype(np.uint64) + np.uint64(1)) * GOLDEN)
        uniform = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
        return self.bandit.noise.at(uniform, np.ravel(self.bandit.means)[where], where)


@dataclass(frozen=True)
class ColumnBandit:
    """A truth behind a column of true means of a long table; only those of pulled rows are looked up.

    `best` is the row of the largest mean, or of the smallest, which one pass has found.
    """

    features: Any  # the column, as a source
    noise: Noise
    best: int

    @classmethod
    def of(cls, column: Any, noise: Noise, goal: Goal) -> "ColumnBandit":
        """Find the best row by one pass, which also checks the column."""
        row, bad = column.sweep(_Extreme(goal.sign), _further)[1:]
        if bad >= 0:
            raise ArmsError(f"{column.place(bad)}, column {column.names[0]!r}: expected a finite number to simulate")
        return cls(column, noise, row)

    @property
    def noise_variance(self) -> float | None:
        return self.noise.variance

    def mean(self, row: int) -> float:
        """Return the true mean of a row."""
        return float(self.features.take(np.array([row]))[0, 0])

    def pull(self, pulls: Pulls, taken: Array, rng: Any) -> Totals:
        means = np.zeros(len(pulls.arms))
        some = np.flatnonzero(pulls.times)
        means[some] = self.features.take(pulls.arms[some])[:, 0]
        return Totals(*self.noise.totals(means, pulls.times, rng))


@dataclass(frozen=True)
class _Extreme:
    """Return the largest of a column's values times a sign, its row, and the first row that is not finite or -1."""

    sign: float

    def __call__(self, block: Array, start: int) -> tuple[float, int, int]:
        xp = namespace(block)
        values = self.sign * to_host(xp.astype(block[:, 0], xp.float64))
        bad = np.flatnonzero(~np.isfinite(values))[:1]
        row = int(np.argmax(values))
        return float(values[row]), start + row, start + int(bad[0]) if len(bad) else -1


def _further(one: tuple[float, int, int], other: tuple[float, int, int]) -> tuple[float, int, int]:
    bad = one[2] if one[2] >= 0 else other[2]
    value, row, _ = other if other[0] > one[0] else one
    return value, row, bad
