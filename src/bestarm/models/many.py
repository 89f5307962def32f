"""What is known of very many means: drawn jointly are only those that a draw can make the best.

A draw t belongs to one part of a posterior, in which

    μ_i = h(c_i + r_i'γ_t + s_t o_i ε_ti),    ε standard normal,                                  (1)

γ and s being drawn already. With S the covariance of the γ drawn and ρ the largest |S^−½ (γ_t − γ̄)|, arm i is behind
the leader l of the part in every draw if

    (c_l − c_i) + (r_l − r_i)'γ̄ > ρ |S^½ (r_i − r_l)| + FAR max s √(o_i² + o_l²).                  (2)

Where the noise o is nothing this holds for certain; elsewhere but for normal numbers beyond FAR, and so it is where
there are so many coefficients that ρ is larger. What is not drawn has its mean, and bounds as if it were normal.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from bestarm.core import Array

FEW = 500  # arms that are all drawn, and all kept
KEPT = 100  # arms of the largest mean, and as many of the largest hopes, whose draws are kept among more
FAR = 7.0  # deviations that no normal number is beyond
ENDS = (0.025, 0.975)
NORMAL = 1.959964  # deviations within which a normal number is with probability 95 %
PARTS = 8  # of a posterior, that are not taken for one
HELD = 1 << 20  # numbers drawn at a time
ROUNDING = 1e-14  # of a mean: what it may be off by
NODES = 20  # at which means of normal predictors are integrated


class Believed(Protocol):
    """What is known of K means, larger being better, as an answer asks for it."""

    @property
    def words(self) -> str:
        """What was believed, in a line."""
        ...

    @property
    def mean(self) -> Array:
        """The expected means `(K,)`."""
        ...

    @property
    def fitted(self) -> Array | None:
        """The means the model fits `(K,)`, where they came along; None where `Model.fit` gives them."""
        ...

    @property
    def chances(self) -> Array:
        """The probability of being best, by arm; ties, such as of arms with the same features, are shared."""
        ...

    @property
    def ends(self) -> Array:
        """What holds each mean with probability 95 %, `(2, K)`."""
        ...

    @property
    def scale(self) -> float:
        """How far draws of the means are apart."""
        ...

    @property
    def finite(self) -> bool:
        """Whether all of it are numbers."""
        ...

    def behind(self, arm: int) -> float:
        """Return how far an arm is behind the best, on average."""
        ...

    def among(self, arms: Array) -> "Believed":
        """Return the same for some of the arms only."""
        ...

    def called(self, words: str) -> "Believed":
        """Return the same, called this in a sentence."""
        ...


def tie(top: Array, scale: float) -> Array:
    """Return how far below the best a mean is as good."""
    return np.maximum(ROUNDING * np.abs(top), 1e-9 * scale)


def below(x: Array) -> Array:
    """Return the share of normal numbers below x, to three digits."""
    return (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x))) / 2


@dataclass(frozen=True)
class PartDraws:
    """Draws of one part of a posterior.   Eq. 1"""

    centre: Array  # c, (K,)
    rows: Array  # r, (K, p)
    coefficients: Array  # γ, (n, p)
    own: Array | None = None  # o, (K,)
    noise: Array | None = None  # s, (n,)

    def among(self, arms: Array) -> "PartDraws":
        own = None if self.own is None else self.own[arms]
        return replace(self, centre=self.centre[arms], rows=self.rows[arms], own=own)

    @cached_property
    def finite(self) -> bool:
        return all(np.isfinite(a).all() for a in vars(self).values() if a is not None)

    @cached_property
    def middle(self) -> Array:
        """The expected predictors `(K,)`."""
        return self.centre + self.rows @ self.coefficients.mean(axis=0)

    @cached_property
    def _whitened(self) -> tuple[Array, float]:
        """S^½ r `(K, p)` and ρ."""
        off = self.coefficients - self.coefficients.mean(axis=0)
        values, vectors = np.linalg.eigh(off.T @ off / len(off))
        some = values > 1e-14 * values.max(initial=0)
        root = np.sqrt(values[some])
        farthest = np.linalg.norm(off @ (vectors[:, some] / root), axis=1).max(initial=0)
        return self.rows @ (vectors[:, some] * root), float(farthest)

    @cached_property
    def variance(self) -> Array:
        """The variances of the predictors `(K,)`."""
        spread = np.sum(self._whitened[0] ** 2, axis=1)
        return spread if self.own is None or self.noise is None else spread + self.own**2 * np.mean(self.noise**2)

    def possible(self) -> Array:
        """Return which arms a draw can make the best.   Eq. 2"""
        rows, farthest = self._whitened
        leader = int(np.argmax(self.middle))
        reach = min(farthest, FAR) * np.linalg.norm(rows - rows[leader], axis=1)
        if self.own is not None and self.noise is not None:
            reach = reach + FAR * self.noise.max(initial=0) * np.hypot(self.own, self.own[leader])
        apart = self.middle[leader] - self.middle
        return apart <= reach + 1e-9 * (np.sqrt(self.variance[leader]) + reach)

    def drawn(self, arms: Array, some: slice, rng: np.random.Generator) -> Array:
        """Return some of the draws of the predictors of some arms."""
        found = self.centre[arms] + self.coefficients[some] @ self.rows[arms].T
        if self.own is not None and self.noise is not None:
            found += self.noise[some, None] * self.own[arms] * rng.standard_normal(found.shape)
        return found


@dataclass(frozen=True)
class _Summary:
    """What the draws come to: chances `(K,)`, the mean of the best, and quantiles and means of the arms kept."""

    chances: Array
    top: float
    kept: Array
    ends: Array
    mean: Array


@dataclass(frozen=True)
class ManyArms:
    """What is known of many means, in parts; h is `value`, None where means are their own predictors."""

    parts: Sequence[PartDraws]
    rng: np.random.Generator = field(repr=False)
    exact: Array | None = None  # expected means, where they are known without draws
    value: Callable[[Array], Array] | None = None
    words: str = ""
    fitted: Array | None = None

    def among(self, arms: Array) -> "ManyArms":
        exact, fitted = (None if all_arms is None else all_arms[arms] for all_arms in (self.exact, self.fitted))
        return replace(self, parts=[part.among(arms) for part in self.parts], exact=exact, fitted=fitted)

    def called(self, words: str) -> "ManyArms":
        return replace(self, words=words)

    @property
    def finite(self) -> bool:
        return all(part.finite for part in self.parts) and bool(np.isfinite(self._expected).all())

    @property
    def mean(self) -> Array:
        mean = self._expected.copy()
        if self.exact is None:
            mean[self._summary.kept] = self._summary.mean
        return mean

    @property
    def chances(self) -> Array:
        return self._summary.chances

    @property
    def ends(self) -> Array:
        """Quantiles of draws for the foremost arms; for the others those of normal distributions, one for each part.

        Many parts are taken for one.
        """
        middle, variance = self._moments
        if len(self.parts) > PARTS:
            ends = middle + NORMAL * np.sqrt(variance) * np.array([[-1.0], [1.0]])
        else:
            ends = np.stack([self._quantile(share) for share in ENDS])
        ends = self._means(ends)
        ends[:, self._summary.kept] = self._summary.ends
        return ends

    def _quantile(self, share: float) -> Array:
        """Return what so large a `share` of the mixture of the parts, each normal, is below, by bisection `(K,)`."""
        middle = np.stack([part.middle for part in self.parts])
        deviation = np.sqrt(np.stack([part.variance for part in self.parts]))
        low, high = (middle - FAR * deviation).min(axis=0), (middle + FAR * deviation).max(axis=0)
        deviation = np.maximum(deviation, 1e-300)
        for _ in range(24):
            at = (low + high) / 2
            less = self._weights @ below((at - middle) / deviation) < share
            low, high = np.where(less, at, low), np.where(less, high, at)
        return (low + high) / 2

    @cached_property
    def scale(self) -> float:
        middle, variance = self._moments
        return float(np.std(self._means(middle + np.sqrt(variance) * np.array([[-1.0], [1.0]]))))

    def behind(self, arm: int) -> float:
        found = self._summary
        place = int(np.searchsorted(found.kept, arm))
        kept = place < len(found.kept) and found.kept[place] == arm
        return max(found.top - float(found.mean[place] if kept else self.mean[arm]), 0.0)

    @property
    def draws(self) -> Array:
        """All draws `(n, K)`, made anew, and large."""
        every = np.arange(len(self._expected))
        found = [part.drawn(every, slice(None), self.rng) for part in self.parts]
        return self._means(np.concatenate(found))

    def _means(self, predictor: Array) -> Array:
        return predictor if self.value is None else self.value(predictor)

    @cached_property
    def _weights(self) -> Array:
        sizes = np.array([len(part.coefficients) for part in self.parts])
        return sizes / sizes.sum()

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        """The mean and variance of the predictors, `(K,)` each."""
        each = list(zip(self._weights, self.parts, strict=True))
        middle = np.sum([w * part.middle for w, part in each], axis=0)
        return middle, np.sum([w * (part.variance + (part.middle - middle) ** 2) for w, part in each], axis=0)

    @cached_property
    def _expected(self) -> Array:
        """The expected means `(K,)`: those of normal predictors in each part, where they are not known otherwise."""
        if self.exact is not None:
            return self.exact
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        found: Any = np.zeros_like(self.parts[0].centre)
        for w, part in zip(self._weights, self.parts, strict=True):
            deviation = np.sqrt(part.variance)
            for node, weight in zip(nodes, weights / weights.sum(), strict=True):
                found = found + w * weight * self._means(part.middle + node * deviation)
        return found

    @cached_property
    def _summary(self) -> _Summary:
        middle, variance = self._moments
        hope = middle + NORMAL * np.sqrt(variance)
        kept = np.union1d(*(np.argsort(-ahead, kind="stable")[:KEPT] for ahead in (middle, hope)))
        chances, top, drawn = np.zeros_like(middle), 0.0, []
        for part in self.parts:
            possible = part.possible()
            possible[kept] = True
            arms = np.flatnonzero(possible)
            places = np.searchsorted(arms, kept)
            step = max(1, HELD // len(arms))
            for start in range(0, len(part.coefficients), step):
                means = self._means(part.drawn(arms, slice(start, start + step), self.rng))
                best = means.max(axis=1)
                row, arm = np.nonzero(means >= (best - tie(best, self.scale))[:, None])
                share = 1 / np.bincount(row, minlength=len(means))
                chances[arms] += np.bincount(arm, share[row], minlength=len(arms))
                top += float(best.sum())
                drawn.append(means[:, places])
        found = np.concatenate(drawn)
        n = len(found)
        return _Summary(chances / n, top / n, kept, np.quantile(found, ENDS, axis=0), found.mean(axis=0))
