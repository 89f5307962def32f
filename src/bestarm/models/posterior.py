"""The prior that shrinks, and what it makes of rewards: draws of every arm's mean.

    μ_i = h(x_i'θ), θ ~ N(0, τ² I), the features each in units of its own standard deviation      (1)
    τ / σ ~ half-Cauchy                                                                           (2)

Where the features allow a common shift of all means, it is left free. The spread τ is not chosen but integrated out; σ
is the noise of one pull, or one unit of the predictor in a generalized linear model. This is what makes the winner's
estimate honest: a posterior mean is not biased by having been picked as the largest.

With normal rewards, N = diag(n), V = X'NX = W diag(v) W', b = W'X'S and a the shift in the basis W:

    e_j = b_j / v_j                                                                               (3)
    γ = W'θ, γ_j ~ N(m a_j, λσ²), m free, so that e_j ~ N(m a_j, σ² (1 + λv_j) / v_j)              (4)
    Q(λ) = Σ_j v_j (e_j − m̂ a_j)² / (1 + λv_j) + the sum of squares the coefficients leave         (5)
    γ_j | m ~ N((λb_j + m a_j) / (1 + λv_j), σ²λ / (1 + λv_j))                                    (6)
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bestarm.core import Array, Tally
from bestarm.models.many import ENDS, FEW, ROUNDING, Believed, ManyArms, PartDraws, tie
from bestarm.posteriors import Normal

SHIFT = 0.9  # the features allow a shift if they explain this share of the constant
LEAST = 2  # degrees of freedom of the noise; repeats that give fewer are filled up with the scatter of all values


@dataclass(frozen=True)
class DrawnPosterior:
    """What is known of K means as draws of them `(n, K)`, larger being better, with their exact or averaged mean."""

    draws: Array
    mean: Array
    words: str = ""
    fitted: Array | None = None

    @property
    def variance(self) -> Array:
        """The variances of the means, `(K,)`."""
        return self.draws.var(axis=0)

    def column(self, arm: int) -> Array:
        """Return the covariances of all means with that of `arm`, `(K,)`."""
        off = self.draws - self.draws.mean(axis=0)
        return off[:, arm] @ off / len(off)

    def draw(self, count: int, normal: Normal) -> Array:
        """Return draws `(count, K)`: those that were made, over again where they are too few."""
        return self.draws[np.arange(count) % len(self.draws)]

    @property
    def chances(self) -> Array:
        """The probability of being best, by arm; ties, such as of arms with the same features, are shared."""
        top = self.draws.max(axis=1, keepdims=True)
        best = self.draws >= top - tie(top, self.scale)
        return (best / best.sum(axis=1, keepdims=True)).mean(axis=0)

    @property
    def ends(self) -> Array:
        """What holds each mean with probability 95 %, `(2, K)`."""
        return np.quantile(self.draws, ENDS, axis=0)

    @property
    def scale(self) -> float:
        """The standard deviation of all draws of all means."""
        return deviation(self.draws)

    @property
    def finite(self) -> bool:
        """Whether all draws are numbers."""
        return bool(np.isfinite(self.draws).all())

    def behind(self, arm: int) -> float:
        """Return how far an arm is behind the best, on average."""
        return float(np.mean(self.draws.max(axis=1) - self.draws[:, arm]))

    def among(self, arms: Array) -> "DrawnPosterior":
        """Return the same for some of the arms only."""
        fitted = None if self.fitted is None else self.fitted[arms]
        return DrawnPosterior(self.draws[:, arms], self.mean[arms], self.words, fitted)

    def called(self, words: str) -> "DrawnPosterior":
        """Return the same, called this in a sentence."""
        return replace(self, words=words)


def deviation(values: Array) -> float:
    """Return the standard deviation of values, also of such whose squares are no numbers."""
    with np.errstate(over="ignore"):
        found = float(np.std(values))
    if math.isfinite(found):
        return found
    most = float(np.abs(values).max())
    return most * float(np.std(values / most))


def as_floats(tally: Tally) -> Tally:
    """Return the same in floating point."""
    return tally.each(lambda part: np.asarray(part, dtype=np.float64))


def noise_words(noise_variance: float | None) -> str:
    """Return what is known of the noise."""
    return "noise estimated from the data" if noise_variance is None else f"noise variance {noise_variance:g}, as told"


@dataclass(frozen=True)
class Effects:
    """Arms as rows `(K, r)` of which independent coefficients of equal variance make the means.

    `shift` `(r,)` are the coefficients that move all arms alike, zeros where there are none; `size` is the mean square
    of what coefficients of variance one make of the arms, a shift not counted.
    """

    rows: Array
    shift: Array
    size: float

    @property
    def rank(self) -> int:
        return int(self.rows.shape[1])

    @property
    def level(self) -> bool:
        """Whether coefficients can move all arms by exactly the same."""
        return bool(np.abs(self.rows @ self.shift - 1).max(initial=0) < 1e-9)

    @classmethod
    def of(cls, features: Array) -> "Effects":
        x = np.asarray(features, dtype=np.float64)
        x = x / np.where((most := np.abs(x).max(axis=0, initial=0)) > 0, most, 1)
        constant = _constant(*_columns(x))
        deviation = np.std(x, axis=0) if np.any(constant) else 0.0
        size = np.sqrt(np.mean(x**2, axis=0))
        unit = np.where(deviation > 1e-6 * size, deviation, np.where(size > 0, size, 1))
        left, values = _columns(x / unit)
        rows = left * values
        shift = _constant(left, values)
        spread = np.var(rows, axis=0) if np.any(shift) else np.mean(rows**2, axis=0)
        return cls(rows, shift, max(float(np.sum(spread)), 1e-12))


def _columns(x: Array) -> tuple[Array, Array]:
    """Return the left singular vectors `(K, r)` and the singular values, as many as the rank."""
    left, values, _ = np.linalg.svd(x, full_matrices=False)
    some = values > max(x.shape) * np.finfo(np.float64).eps * np.max(values, initial=0)
    return left[:, some], values[some]


def _constant(left: Array, values: Array) -> Array:
    """Return the coefficients nearest to the same for all arms `(r,)`, or zeros where nothing comes near."""
    near = left.T @ np.ones(len(left))
    return near / values if near @ near > SHIFT * len(left) else np.zeros_like(near)


def grid(low: float, high: float, size: int) -> tuple[Array, Array]:
    """Return spreads evenly apart on a logarithmic scale and the logarithms of their half-Cauchy weights."""
    spread = np.exp(np.linspace(np.log(low), np.log(high), size))
    return spread, np.log(spread) - np.logaddexp(0, 2 * np.log(spread))


def choose(log_weight: Array, draws: int, rng: Any) -> tuple[Array, Array]:
    """Return the probabilities of the points of a grid, and that many of the points at random."""
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    return weight, rng.choice(len(weight), size=draws, p=weight)


@dataclass(frozen=True)
class _Diagonal:
    """Normal data after the rotation W that makes them diagonal; `basis` is XW, None where each arm has its own θ_i."""

    basis: Array | None
    v: Array
    b: Array
    a: Array
    size: float  # mean square of the arms under coefficients of variance one
    total: float
    rest: float  # sum of squares the coefficients leave
    rough: float  # variance of all values

    @property
    def e(self) -> Array:
        return np.where(self.v > 0, self.b / np.where(self.v > 0, self.v, 1), 0.0)  # Eq. 3

    @property
    def extra(self) -> float:
        return max(0.0, LEAST - max(self.total - np.count_nonzero(self.v), 0))

    @classmethod
    def of(cls, effects: Effects | None, tally: Tally) -> "_Diagonal":
        counts, sums = tally.counts, tally.sums
        total, rough = float(counts.sum()), rough_variance(tally)
        if effects is None:
            found = cls(None, counts, sums, np.ones_like(sums), 1.0, total, 0.0, rough)
        else:
            x = effects.rows
            values, w = np.linalg.eigh(x.T @ (x * counts[:, None]))
            v = np.where(values > 1e-12 * values.max(initial=0), values, 0.0)
            found = cls(x @ w, v, w.T @ (x.T @ sums), w.T @ effects.shift, effects.size, total, 0.0, rough)
        rest = float(tally.squares.sum()) - float(np.sum(found.v * found.e**2))
        return replace(found, rest=max(rest, 1e-14 * max(total, 1.0)))

    def spreads(self, noise: float | None) -> tuple[Array, Array]:
        """Return a grid of spreads, in units of the noise, wide enough for whatever the data can say."""
        least = np.sqrt(min(self.rough if noise is None else noise, self.rest / max(self.total, 1) or 1.0))
        farthest = np.max(np.abs(self.e), initial=1.0)
        return grid(0.03 / np.sqrt(max(self.total, 1)), 30 * max(1.0, farthest / max(least, 1e-7)), 60)


def normal(effects: Effects | None, tally: Tally, noise_variance: float | None, draws: int, rng: Any) -> Believed:
    """Return what is known of the means, for normal rewards; no effects: each arm by itself."""
    rng = np.random.default_rng(rng)
    movable = (effects is None or effects.level) and tally.counts.sum() > 1  # of a single value, size tells the noise
    level = tally.level if movable else 0.0
    unit = unit_of(tally, level)
    d = _Diagonal.of(effects, tally.about(level).scaled(unit))
    noise = None if noise_variance is None else float(np.clip(noise_variance / unit / unit, 1e-14, 1e200))
    spread, log_weight = d.spreads(noise)
    lam = (spread**2 / d.size)[:, None]  # λ
    narrow = 1 + lam * d.v

    w = d.v / narrow
    weight = np.sum(w * d.a**2, axis=1)
    free = bool(np.any(weight > 0))
    divisor = np.where(weight > 0, weight, 1)
    m_hat = np.sum(w * d.a * d.e, axis=1) / divisor
    Q = np.sum(w * (d.e - m_hat[:, None] * d.a) ** 2, axis=1) + d.rest + d.extra * d.rough  # Eq. 5
    freedom = max(d.total - free, 0) + d.extra
    log_weight = log_weight - (np.sum(np.log(narrow), axis=1) + np.log(divisor)) / 2
    log_weight = log_weight - (freedom / 2 * np.log(Q) if noise is None else Q / (2 * noise))

    chance, at = choose(log_weight, draws, rng)
    variance = Q[at] / rng.chisquare(freedom, draws) if noise is None else np.full(draws, noise)
    m = m_hat[at] + free * np.sqrt(variance / divisor[at]) * rng.standard_normal(draws)
    mean = chance @ ((lam * d.b + m_hat[:, None] * d.a) / narrow)
    if d.basis is None and len(mean) > FEW:
        parts = []
        for g in np.unique(at):
            centre, row = level + unit * lam[g] * d.b / narrow[g], (unit * d.a / narrow[g])[:, None]
            own = unit * np.sqrt(lam[g] / narrow[g])
            parts.append(PartDraws(centre, row, m[at == g, None], own, np.sqrt(variance[at == g])))  # Eq. 6
        return ManyArms(parts, rng, level + unit * mean)
    gamma = (lam[at] * d.b + m[:, None] * d.a) / narrow[at]
    gamma += np.sqrt(variance[:, None] * (lam / narrow)[at]) * rng.standard_normal(gamma.shape)  # Eq. 6
    if d.basis is None:
        return DrawnPosterior(level + unit * gamma, level + unit * mean)
    mean = level + unit * (d.basis @ mean)
    if len(mean) > FEW:
        return ManyArms([PartDraws(np.full(len(mean), level), unit * d.basis, gamma)], rng, mean)
    return DrawnPosterior(level + unit * (gamma @ d.basis.T), mean)


def unit_of(tally: Tally, level: Any) -> float:
    """Return a unit in which values less a level are near one; those all the same are near one themselves."""
    apart, whole = _size(tally.about(level)), _size(tally)
    size = apart if apart > ROUNDING * whole else whole
    return size if size > 0 and np.isfinite(size) else 1.0


def _size(tally: Tally) -> float:
    largest = np.max(np.abs(tally.means), initial=0)
    return max(float(np.sqrt(tally.squares.sum() / max(tally.counts.sum(), 1))), float(largest))


def rough_variance(tally: Tally) -> float:
    """Return the variance of all values about their mean; of a single one, its square."""
    total, squares = float(tally.counts.sum()), float(tally.squares.sum())
    if total < 2:
        return max(squares, 1e-12)
    about = float(tally.residual(tally.level).sum())
    return max(about / (total - 1), ROUNDING**2 * squares / total, 1e-14)


def noise_of_repeats(tally: Tally) -> float:
    """Return the noise variance by the scatter of repeats of the same arm, and of all values where those are few."""
    pulled = tally.counts > 0
    free = float(np.sum(tally.counts[pulled] - 1))
    extra, rough = max(0.0, LEAST - free), rough_variance(tally)
    about = float(tally.residual(tally.level).sum())
    return max((float(tally.within.sum()) + extra * rough) / (free + extra), 1e-14 * max(about, 1e-200))
