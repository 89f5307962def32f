"""How rewards scatter around their means: normal, 0 and 1, counts, heavy tails, slips, and as recorded.

A noise knows no arm and no mean, so a law of rewards may name the one that goes with it.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from bestarm.errors import InputError


class Noise(Protocol):
    """How rewards scatter around their mean."""

    @property
    def variance(self) -> float | None: ...

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, ...]:
        """Return the sum of `times` rewards and that of their squares, in one draw each; their scatter, if known."""
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

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, ...]:
        sums = times * means + np.sqrt(times * self.variance) * rng.standard_normal(times.shape)
        scatter = 2 * self.variance * rng.standard_gamma(np.maximum(times - 1, 0) / 2)
        return sums, scatter + sums**2 / np.maximum(times, 1), scatter

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
class PoissonNoise:
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


Poisson = PoissonNoise  # as worlds call it, which know no law


@dataclass(frozen=True)
class Counts(PoissonNoise):
    """Poisson rewards whose totals come in one draw: the sum S of n is PoissonNoise, whatever n.

    Given S, the squares add up to S + 2C where C of the S(S − 1)/2 pairs share a reward. Pairs do so with chance 1/n,
    any two of them independently; C is drawn as normal with the mean and the variance that follow.
    """

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        sums = rng.poisson(times * means).astype(np.float64)
        pairs, chance = sums * (sums - 1) / 2, 1 / np.maximum(times, 1)
        shared = pairs * chance + np.sqrt(pairs * chance * (1 - chance)) * rng.standard_normal(sums.shape)
        return sums, sums + 2 * np.maximum(shared, 0.0)


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

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, ...]:
        sums, squares, *scatter = self.noise.totals(means + self.by, times, rng)
        return sums - self.by * times, squares - 2 * self.by * sums + self.by**2 * times, *scatter

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

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, ...]:
        sums = times * means + np.sqrt(times * self.variances) * rng.standard_normal(times.shape)
        scatter = 2 * self.variances * rng.standard_gamma(np.maximum(times - 1, 0) / 2)
        return sums, scatter + sums**2 / np.maximum(times, 1), scatter

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

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, ...]:
        sums, squares, off, scatter = (np.zeros(times.shape) for _ in range(4))
        for j in range(int(times.max(initial=0))):  # a sum of t has no short law
            noise = self.scale * rng.standard_t(self.freedom, times.shape)
            reward, noise = (values * (j < times) for values in (means + noise, noise))
            sums, squares, off, scatter = sums + reward, squares + reward**2, off + noise, scatter + noise**2
        return sums, squares, scatter - off**2 / np.maximum(times, 1)

    def rewards(self, means: Any, count: int, rng: np.random.Generator) -> Any:
        return means[..., None] + self.scale * rng.standard_t(self.freedom, (*means.shape, count))

    def at(self, uniform: Any, means: Any, place: Any = None) -> Any:
        from scipy.special import stdtrit

        return means + self.scale * stdtrit(self.freedom, uniform)


@dataclass(frozen=True)
class Outliers:
    """Normal noise, but a `share` of the rewards is `times` as large: a slip of the decimal point.

    With `either` half of those have the other sign, too. What is told is the variance of the others.
    """

    variance: float = 1.0
    share: float = 0.01
    times: float = 100.0
    either: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise InputError(f"share must be from 0 to below 1; given {self.share}")
        if not np.isfinite(self.times):
            raise InputError(f"times must be a finite number; given {self.times}")

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        sums, squares = np.zeros(times.shape), np.zeros(times.shape)
        for j in range(int(times.max(initial=0))):  # which are slips is drawn for each
            reward = self.at(rng.random(times.shape), means) * (j < times)
            sums, squares = sums + reward, squares + reward**2
        return sums, squares

    def rewards(self, means: Any, count: int, rng: np.random.Generator) -> Any:
        return self.at(rng.random((*means.shape, count)), means[..., None])

    def at(self, uniform: Any, means: Any, place: Any = None) -> Any:
        from scipy.special import ndtri

        slip = uniform < self.share
        rest = np.where(slip, uniform / max(self.share, 1e-300), (uniform - self.share) / (1 - self.share))
        turned = slip & (rest < 0.5) if self.either else np.zeros_like(slip)
        if self.either:  # the half that a slip fell into is used up, what is left of it is uniform again
            rest = np.where(slip, np.where(turned, 2 * rest, 2 * rest - 1), rest)
        reward = means + np.sqrt(self.variance) * ndtri(np.clip(rest, 1e-16, 1 - 1e-16))
        return reward * np.where(slip, self.times, 1.0) * np.where(turned, -1.0, 1.0)
