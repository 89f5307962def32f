"""The truth: arms with features, means and noise. Only simulation sees it."""

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from bestarm.core import Array, Pulls, Totals, namespace
from bestarm.errors import ArmsError, InputError
from bestarm.linalg import pick, rows
from bestarm.tables.source import to_host


class Noise(Protocol):
    """How rewards scatter around their mean."""

    @property
    def variance(self) -> float | None: ...

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        """Return the sum of `times` rewards and the sum of their squares, in one draw each."""
        ...

    def at(self, uniform: Any, means: Any, place: Any) -> Any:
        """Return the rewards at the quantiles `uniform`; `place` is the arm's number across all replications."""
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

    def at(self, uniform: Any, means: Any, place: Any = None) -> Any:
        from scipy.special import ndtri

        return means + np.sqrt(self.variance) * ndtri(uniform)


@dataclass(frozen=True)
class Bernoulli:
    """Rewards 0 or 1; at most 1/4 is their variance."""

    variance: float | None = 0.25

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        sums = rng.binomial(times, means).astype(np.float64)
        return sums, sums

    def rewards(self, means: Any, count: int, rng: np.random.Generator) -> Any:
        return (rng.random((*means.shape, count)) < means[..., None]).astype(np.float64)

    def at(self, uniform: Any, means: Any, place: Any = None) -> Any:
        return (uniform > 1 - means).astype(np.float64)


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

    def at(self, uniform: Any, means: Any, place: Any = None) -> Any:
        from scipy.special import pdtr, pdtrik

        low = np.floor(pdtrik(uniform, means))  # a real number between two counts, or next to one
        low = np.maximum(low, 0) - ((low > 0) & (pdtr(np.maximum(low - 1, 0), means) >= uniform))
        return low + (pdtr(low, means) < uniform)


@dataclass(frozen=True)
class Shifted:
    """Another noise, every reward less by a constant: centred rewards for models without an intercept."""

    noise: "Noise"
    by: float

    @property
    def variance(self) -> float | None:
        return self.noise.variance

    def at(self, uniform: Any, means: Any, place: Any = None) -> Any:
        return self.noise.at(uniform, means + self.by, place) - self.by

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        sums, squares = self.noise.totals(means + self.by, times, rng)
        return sums - self.by * times, squares - 2 * self.by * sums + self.by**2 * times

    def rewards(self, means: Any, count: int, rng: np.random.Generator) -> Any:
        return self.noise.rewards(means + self.by, count, rng) - self.by


@dataclass(frozen=True, eq=False)
class Recorded:
    """Rewards drawn again from those recorded: the first `counts` `(..., K)` of `values` `(..., K, m)`.

    `jitter` is the variance of normal noise on top.
    """

    values: Any
    counts: Any
    variance: float | None = None
    jitter: float = 0.0

    def at(self, uniform: Any, means: Any, place: Any = None) -> Any:
        from scipy.special import ndtri

        spot = uniform * self.counts.ravel()[place]
        which = np.floor(spot).astype(np.int64)
        drawn = self.values.reshape(-1, self.values.shape[-1])[place, which]
        if not self.jitter:
            return drawn
        rest = np.clip(spot - which, 1e-16, 1 - 1e-16)  # what the choice of a record left over is uniform again
        return drawn + np.sqrt(self.jitter) * ndtri(rest)

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        raise InputError("recorded rewards are pulled through a Stream, which knows the arms")

    def rewards(self, means: Any, count: int, rng: np.random.Generator) -> Any:
        which = np.floor(rng.random((*means.shape, count)) * self.counts[..., None]).astype(np.int64)
        drawn = np.take_along_axis(self.values, which, axis=-1)
        return drawn + np.sqrt(self.jitter) * rng.standard_normal(drawn.shape) if self.jitter else drawn

    def moved(self, order: Any) -> "Recorded":
        """Return the same records with the arms in another order."""
        values = np.take_along_axis(self.values, order[..., None], axis=-2)
        return replace(self, values=values, counts=np.take_along_axis(self.counts, order, axis=-1))


@dataclass(frozen=True, eq=False)
class Uneven:
    """Normal noise whose variance is another for each arm, `variances` `(..., K)`; what is told is their average.

    `totals` and `rewards` take means in the order of `variances`; `moved` puts both in another.
    """

    variances: Any

    @property
    def variance(self) -> float | None:
        return float(np.mean(self.variances))

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        sums = times * means + np.sqrt(times * self.variances) * rng.standard_normal(times.shape)
        scatter = 2 * self.variances * rng.standard_gamma(np.maximum(times - 1, 0) / 2)
        return sums, scatter + sums**2 / np.maximum(times, 1)

    def rewards(self, means: Any, count: int, rng: np.random.Generator) -> Any:
        noise = rng.standard_normal((*means.shape, count))
        return means[..., None] + np.sqrt(self.variances)[..., None] * noise

    def at(self, uniform: Any, means: Any, place: Any) -> Any:
        from scipy.special import ndtri

        return means + np.sqrt(np.ravel(self.variances)[place]) * ndtri(uniform)

    def moved(self, order: Any) -> "Uneven":
        """Return the same noise for the arms `order` `(..., m)`."""
        return Uneven(np.take_along_axis(self.variances, np.asarray(order), axis=-1))


@dataclass(frozen=True)
class StudentT:
    """Heavy-tailed noise: Student's t with `freedom` ν > 2, scaled to `variance`.

    >>> round(float(StudentT(4.0, freedom=3.0).at(0.975, 1.0)), 3)    # 1 + 2 √(1/3) · 3.182
    4.675
    """

    variance: float = 1.0
    freedom: float = 3.0

    def __post_init__(self) -> None:
        if not self.freedom > 2:
            raise InputError(f"freedom must be more than 2, where the variance is finite; given {self.freedom}")

    @property
    def scale(self) -> float:
        """What Student's t is multiplied by: its own variance is ν / (ν − 2)."""
        return float(np.sqrt(self.variance * (self.freedom - 2) / self.freedom))

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        sums = np.zeros(times.shape)
        squares = np.zeros(times.shape)
        for j in range(int(times.max(initial=0))):  # a sum of t has no short law
            reward = (means + self.scale * rng.standard_t(self.freedom, times.shape)) * (j < times)
            sums, squares = sums + reward, squares + reward**2
        return sums, squares

    def rewards(self, means: Any, count: int, rng: np.random.Generator) -> Any:
        return means[..., None] + self.scale * rng.standard_t(self.freedom, (*means.shape, count))

    def at(self, uniform: Any, means: Any, place: Any = None) -> Any:
        from scipy.special import stdtrit

        return means + self.scale * stdtrit(self.freedom, uniform)


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
        sums, squares = noise.totals(means, np.asarray(pulls.times), rng)
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
            return Totals(reward.reshape(pulls.times.shape), (reward**2).reshape(pulls.times.shape))
        slot = np.repeat(np.arange(times.size), times)
        within = np.arange(slot.size) - np.repeat(np.cumsum(times) - times, times)
        reward = self._rewards(where[slot], first[slot] + within)
        sums, squares = (np.bincount(slot, r, minlength=times.size) for r in (reward, reward**2))
        return Totals(sums.reshape(pulls.times.shape), squares.reshape(pulls.times.shape))

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
    def of(cls, column: Any, noise: Noise, minimize: bool = False) -> "ColumnBandit":
        """Find the best row by one pass, which also checks the column."""
        row, bad = column.sweep(_Extreme(-1.0 if minimize else 1.0), _further)[1:]
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
