"""The truth: arms with features, means and noise. Only simulation sees it."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from bestarm.core import Array, Pulls, Totals, namespace
from bestarm.errors import InputError
from bestarm.linalg import pick, rows


class Noise(Protocol):
    """How rewards scatter around their mean."""

    @property
    def variance(self) -> float | None: ...

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        """Return the sum of `times` rewards and the sum of their squares, in one draw each."""
        ...

    def rewards(self, means: Any, count: int, rng: np.random.Generator) -> Any:
        """Return `count` rewards for each mean, `(..., count)`."""
        ...


@dataclass(frozen=True)
class Gaussian:
    """Normal noise. The sum of n rewards is N(nμ, nσ²), and their scatter about the mean an independent σ²χ²_{n−1}."""

    variance: float = 1.0

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        sums = times * means + np.sqrt(times * self.variance) * rng.standard_normal(times.shape)
        scatter = 2 * self.variance * rng.standard_gamma(np.maximum(times - 1, 0) / 2)
        return sums, scatter + sums**2 / np.maximum(times, 1)

    def rewards(self, means: Any, count: int, rng: np.random.Generator) -> Any:
        noise = rng.standard_normal((*means.shape, count))
        return means[..., None] + np.sqrt(self.variance) * noise


@dataclass(frozen=True)
class Bernoulli:
    """Rewards 0 or 1; at most 1/4 is their variance."""

    variance: float | None = 0.25

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        sums = rng.binomial(times, means).astype(np.float64)
        return sums, sums

    def rewards(self, means: Any, count: int, rng: np.random.Generator) -> Any:
        return (rng.random((*means.shape, count)) < means[..., None]).astype(np.float64)


@dataclass(frozen=True)
class Poisson:
    """Rewards are counts, their variance is their mean."""

    variance: float | None = None

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        sums = np.zeros(times.shape)
        squares = np.zeros(times.shape)
        for j in range(int(times.max(initial=0))):  # the squares have no short law
            reward = rng.poisson(means) * (j < times)
            sums, squares = sums + reward, squares + reward**2
        return sums, squares

    def rewards(self, means: Any, count: int, rng: np.random.Generator) -> Any:
        return rng.poisson(means[..., None], (*means.shape, count)).astype(np.float64)


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
        sums, squares = self.noise.totals(means, np.asarray(pulls.times), rng)
        return Totals(xp.asarray(sums), xp.asarray(squares))

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
        return replace(self, features=rows(self.features, order), means=means)


@dataclass(frozen=True)
class Tape:
    """Rewards drawn in advance: the j-th pull of arm i is the same number whoever asks.

    `sums` and `squares` `(..., K, n + 1)` are running totals over the n rewards of each arm.
    """

    features: Array
    sums: Array
    squares: Array
    noise_variance: float | None = None

    @classmethod
    def of(cls, features: Array, rewards: Any, noise_variance: float | None = None) -> "Tape":
        """Return the tape of `rewards` `(..., K, n)`."""
        start = np.zeros_like(rewards[..., :1])
        sums, squares = (np.concatenate([start, np.cumsum(r, axis=-1)], axis=-1) for r in (rewards, rewards**2))
        return cls(features, sums, squares, noise_variance)

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

        return Totals(read(self.sums), read(self.squares))
