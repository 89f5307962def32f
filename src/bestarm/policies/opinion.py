"""What `auto` makes of the arms in play: hypotheses side by side, and the arm whose pull tells most.

Hypothesis a has the weight w, means m, covariances C and the noise variance σ²; numbers are those of
docs/algorithms/auto.md. The leader i has the largest mixed mean. Whether it is the best arm is decided where it ties
with a rival j and no other arm is above the two. With b_j = m_i − m_j and v_j = Var(f_i − f_j) that has density

    t_aj ∝ exp(−b_j² / (2 v_j)) / √v_j · Π_k P(f_k < f_i | f_i = f_j),                                  (8)

and when all pulls are made the answer is wrong in about Σ_a w_a Σ_j t_aj √v_j of all cases. Pulling any arm q c times
takes (C_qi − C_qj)² / (C_qq + σ²/c) off v_j, so the arm pulled is

    q = argmax  Σ_a w_a Σ_j t_aj / √v_j · (C_qi − C_qj)² / (C_qq + σ²/c).                               (9)

A normal distribution with the moments of a mixture hides the mixture's tail, and where one arm may be apart that is all
there is to learn. With p the chance that it is q, m₀ its mean if it is not, b and s² mean and variance of what it has
more if it is, and L the largest mixed mean, a pull of q also gains

    w_a · 4p (1 − p) · Φ((m₀ + b − L) / s) · (b² + s²) / (b² + s² + σ²/c),                              (14)

how unsure that is, times the chance that it is the best if so, times the share that is resolved.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bestarm.core import Array
from bestarm.linalg import entries, one_hot, pick, row, rows, shaped, top
from bestarm.policies.choices import put
from bestarm.structures.apart import LEAST, Alone, normal
from bestarm.structures.mixture import Mixture
from bestarm.structures.odds import Odds, chances

VANISHING = 300.0  # exp(−this) is next to nothing, and its square still a number
DECIDED = 1e-130  # exp(−VANISHING), about: what a gain is worth that was lifted from there
FAINT = 1e-4  # of the largest weight: a rival of less is none
REACH = 3.0  # standard deviations an arm's mean is thought to reach up at most
CERTAIN = 60.0  # log odds that one step changes a chance by at most


@dataclass(frozen=True)
class Lone:
    """Which arms in play may be apart: the chance of each, its mean if not, what it has more if so, `(..., g, m)`."""

    chance: Array  # p
    without: Array  # m₀
    mean: Array  # b
    variance: Array  # s²
    planned: Array  # pulls of which the rewards are not seen yet, (..., m)

    @classmethod
    def of(cls, alone: Alone) -> "Lone":
        zero = np.zeros_like(alone.chance[..., 0, :])
        return cls(alone.chance, alone.without, alone.mean, np.maximum(alone.variance, LEAST), zero)

    def gain(self, weight: Array, best: Array, noise: Array, pulls: Array) -> Array:
        """Return what `pulls` `(..., m)` of each arm gain, `(..., m)`.   Eq. 14

        `weight` and `noise` are `(..., g)`, `best` `(...)`. Pulls that are planned already count as made.
        """
        ahead = normal((self.without + self.mean - best[..., None, None]) / np.sqrt(self.variance))
        size, noise = self.mean**2 + self.variance, noise[..., None]
        after, before = (n[..., None, :] * size for n in (self.planned + pulls, self.planned))
        share = after / (after + noise) - before / (before + noise)
        return np.sum(weight[..., None] * 4 * self.chance * (1 - self.chance) * ahead * share, axis=-2)

    def after(self, arm: Array, times: Array, total: Array | None, noise: Array) -> "Lone":
        """Return the same after position `arm` `(...)` was pulled `times` `(...)` with sum `total`; None: unseen."""
        hot = one_hot(arm, self.chance.shape[-1], self.chance.dtype)
        if total is None:
            return replace(self, planned=self.planned + hot * times[..., None])
        where = np.broadcast_to(arm[..., None], noise.shape)
        p, m0, b, s2 = (pick(part, where) for part in (self.chance, self.without, self.mean, self.variance))
        scatter = noise / times[..., None]
        r, wide = total[..., None] / times[..., None] - m0, s2 + scatter
        change = (np.log(scatter / wide) + r * r / scatter - (r - b) ** 2 / wide) / 2
        share = s2 / wide
        mean, variance = b + share * (r - b), np.maximum(s2 * scatter / wide, LEAST)
        change = change + np.log(normal(mean / np.sqrt(variance)) / normal(b / np.sqrt(s2)))
        odds = np.exp(np.clip(change, -CERTAIN, CERTAIN))
        mine = hot[..., None, :] > 0
        others = np.sum(np.where(mine, 0.0, self.chance), axis=-1)  # 1 − p has no digits left where p is all but 1
        every = np.maximum(1 - p, others) + p * odds
        chance = np.where(mine, (p * odds)[..., None], self.chance) / every[..., None]
        return replace(
            self,
            chance=chance,
            mean=np.where(mine, mean[..., None], self.mean),
            variance=np.where(mine, variance[..., None], self.variance),
        )


@dataclass(frozen=True)
class Opinion:
    """What is thought of the arms in play: a few hypotheses, each with its weight, and the weight of every kind."""

    arms: Array  # those in play, (..., m)
    weight: Array  # w, (..., g)
    means: Array  # (..., g, m)
    covariance: Array  # C, (..., g, m, m)
    noise: Array  # σ², (..., g)
    kinds: Array  # (..., kinds)
    nonlinear: Array  # the weight of all that doubts a line, (...)
    lone: Lone | None = None  # which of the arms in play may be apart, where a hypothesis has one that is
    odds: Odds | None = None  # how rewards of the arms in play are read, if not as they are

    @classmethod
    def of(cls, mixture: Mixture, odds: Odds | None, batch: tuple[int, ...], working: int) -> "Opinion":
        """Return the opinion of a mixture, of at most so many `working` arms; `odds` are how its rewards were read."""
        arms = _in_play(mixture, working)
        means, covariance, alone = mixture.moments(arms)
        lone = None if alone is None else Lone.of(alone)
        found = cls(arms, mixture.weight, means, covariance, mixture.noise, mixture.kinds, mixture.nonlinear, lone)
        opinion = found.each(shaped(batch))
        return opinion if odds is None else replace(opinion, odds=odds.at(chances(opinion.mean)))

    def where(self, changed: Array, other: "Opinion") -> "Opinion":
        """Return the opinion that is `other` in the replications `changed` `(n,)`; both have one leading axis."""
        mine, theirs = self, other
        if (mine.lone is None) != (theirs.lone is None):
            mine, theirs = (replace(one, lone=one.lone or Lone.of(Alone.none(one.means))) for one in (mine, theirs))
        if (mine.odds is None) != (theirs.odds is None):
            mine, theirs = (replace(one, odds=one.odds or Odds.none(one.mean)) for one in (mine, theirs))
        g = max(mine.weight.shape[-1], theirs.weight.shape[-1])
        found: Opinion = _replaced(mine.padded(g), theirs.padded(g), changed)
        return found

    def padded(self, g: int) -> "Opinion":
        """Return the same with `g` hypotheses, those beyond its own of no weight."""
        more = g - self.weight.shape[-1]
        if more <= 0:
            return self

        def wider(part: Array) -> Array:
            return np.concat([part, np.repeat(part[:, -1:], more, axis=1)], axis=1)

        lone = self.lone
        if lone is not None:
            chance, without, mean, variance = map(wider, (lone.chance, lone.without, lone.mean, lone.variance))
            lone = Lone(chance, without, mean, variance, lone.planned)
        weight = np.concat([self.weight, np.zeros((len(self.weight), more))], axis=1)
        means, covariance, noise = map(wider, (self.means, self.covariance, self.noise))
        return replace(self, weight=weight, means=means, covariance=covariance, noise=noise, lone=lone)

    def each(self, change: Callable[[Array], Array]) -> "Opinion":
        """Return the same with every array in it changed."""
        found: Opinion = _each(self, change)
        return found

    @property
    def mean(self) -> Array:
        """The means of the mixture, `(..., m)`."""
        return np.sum(self.weight[..., None] * self.means, axis=-2)

    @property
    def variance(self) -> Array:
        """The variances of the mixture, `(..., m)`."""
        off = self.means - self.mean[..., None, :]
        return np.sum(self.weight[..., None] * (np.linalg.diagonal(self.covariance) + off * off), axis=-2)

    @property
    def surest(self) -> Array:
        """The arm no other is likely to beat, argmax_i min_j Σ_a w_a P(f_i > f_j), `(...)`."""
        variance = np.linalg.diagonal(self.covariance)
        v = variance[..., :, None] + variance[..., None, :] - 2 * self.covariance
        z = (self.means[..., :, None] - self.means[..., None, :]) / np.sqrt(np.maximum(v, 1e-290))
        better = np.sum(self.weight[..., None, None] * normal(z), axis=-3)
        better = better + np.eye(self.means.shape[-1], dtype=self.means.dtype)
        return pick(self.arms, np.argmax(np.min(better, axis=-1), axis=-1))  # Eq. 11

    def place(self, arm: Array) -> Array | None:
        """Return the position of `arm` `(...)` among those in play; None where some replication does not have it."""
        there = self.arms == arm[..., None]
        return np.argmax(np.astype(there, np.int64), axis=-1) if bool(np.all(np.any(there, axis=-1))) else None

    def after(self, arm: Array, times: Array, total: Array | None) -> "Opinion":
        """Return the opinion after position `arm` `(...)` was pulled `times` `(...)` with sum `total`; None: unseen."""
        where = np.broadcast_to(arm[..., None], self.weight.shape)
        column = row(self.covariance, where)
        if self.odds is not None:
            share, middle, slope = (pick(a, arm) for a in (self.odds.share, self.odds.middle, self.odds.slope))
            total = None if total is None else share * (middle * times + slope * total)
            times = share * times
        lone = None if self.lone is None else self.lone.after(arm, times, total, self.noise)
        times = times[..., None]
        spread = self.noise + times * pick(column, where)
        u = column * np.sqrt(times / spread)[..., None]
        covariance = (-u)[..., :, None] * u[..., None, :]
        covariance += self.covariance
        if total is None:
            return replace(self, covariance=covariance, lone=lone)
        step = (total[..., None] - times * pick(self.means, where)) / spread
        return replace(self, means=self.means + column * step[..., None], covariance=covariance, lone=lone)

    def most_telling(self, count: int, rivals: int, barred: Array | None = None) -> Array:
        """Return the position q `(...)` of the arm to pull `count` times, of ties with `rivals` arms; none `barred`."""
        w, m, C = self.weight[..., None], self.means, self.covariance
        leader = np.argmax(self.mean, axis=-1)  # Eq. 7
        i = np.broadcast_to(leader[..., None], self.weight.shape)
        C_i, variance = row(C, i), np.linalg.diagonal(C)
        most = variance + pick(variance, i)[..., None]
        v = np.maximum(most - 2 * C_i, 0.0)
        b = pick(m, i)[..., None] - m
        differs = v > 1e-12 * most
        exponent = b * b / (2 * np.where(differs, v, np.ones_like(v)))
        lifted, decided = _lifted(exponent, differs)
        t = w * np.exp(lifted) * np.astype(differs, m.dtype)
        nearest, near = _rivals(put(np.sum(t, axis=-2), leader, -1.0), min(rivals, m.shape[-1] - 1))
        j = np.broadcast_to(nearest[..., None, :], (*i.shape, nearest.shape[-1]))
        D = C_i[..., None, :] - rows(C, j)  # C_i − C_j, (..., g, rivals, m)
        t, v, b = (entries(a, j) for a in (t, v, b))
        v = np.where(v > 0, v, 1.0)
        D_i = pick(D, np.broadcast_to(i[..., None], j.shape))
        D_k = entries(D, np.broadcast_to(j[..., None, :], (*j.shape, j.shape[-1])))
        t = np.where(near[..., None, :], t * _unbeaten(b, v, D_i[..., None] - D_k, near[..., None, :]), 0.0)  # Eq. 8
        gain = ((t / v)[..., None, :] @ (D * D))[..., 0, :]
        pulls = count * (np.ones_like(gain[..., 0, :]) if self.odds is None else self.odds.share)
        gain = np.sum(gain / (variance + self.noise[..., None] / pulls[..., None, :]), axis=-2)  # Eq. 9
        if self.lone is not None:
            best = pick(self.mean, leader)
            gain = np.where(decided, DECIDED * gain, gain) + self.lone.gain(self.weight, best, self.noise, pulls)
        return np.argmax(gain if barred is None else np.where(barred, -np.ones_like(gain), gain), axis=-1)


@dataclass(frozen=True)
class Coverage:
    """How many arms were tried `(...)` and are to be at least, and which of those in play were not `(..., m)`."""

    tried: Array
    wanted: Array
    fresh: Array

    @classmethod
    def of(cls, opinion: Opinion, counts: Array, budget: int) -> "Coverage":
        """Return the coverage of all arms by `counts` `(..., K)`: as large a share is asked for as weighs nonlinear."""
        tried = np.sum(np.astype(counts > 0, counts.dtype), axis=-1)
        wanted = np.minimum(opinion.nonlinear * counts.shape[-1], 0.5 * budget * np.ones_like(opinion.nonlinear))
        return cls(tried, wanted, np.take_along_axis(counts, opinion.arms, axis=-1) == 0)

    def after(self, arm: Array) -> "Coverage":
        """Return the coverage when position `arm` `(...)` was pulled."""
        hot = one_hot(arm, self.fresh.shape[-1], self.tried.dtype) > 0
        new = np.astype(np.any(hot & self.fresh, axis=-1), self.tried.dtype)
        return replace(self, tried=self.tried + new, fresh=self.fresh & ~hot)

    def instead(self, opinion: Opinion, arm: Array) -> Array:
        """Return position `arm` `(...)`, or that of an arm not pulled yet while fewer were tried than are wanted."""
        short = self.tried < self.wanted
        if not bool(np.any(short)):
            return arm
        reach = opinion.mean + REACH * np.sqrt(np.maximum(opinion.variance, 0.0))
        best = np.argmax(np.where(self.fresh, reach, -np.inf), axis=-1)
        return np.where(short & np.any(self.fresh, axis=-1), best, arm)


def _in_play(mixture: Mixture, working: int) -> Array:
    """Return the arms in play `(R, m)`: all, or where there are many the most promising and the most pulled."""
    counts = mixture.known.counts
    size, arms = counts.shape
    if arms <= working:
        return np.broadcast_to(np.arange(arms, dtype=np.int64), (size, arms))
    scout = _among(counts, working // 4)
    apart = mixture.apart()
    if apart is not None:
        scout = scout | _among(apart, working // 4)
    return np.sort(mixture.foremost(working, REACH, scout), axis=-1)


def _among(score: Array, count: int) -> Array:
    """Return which arms `(R, K)` have the `count` largest scores above 0."""
    found = np.zeros(score.shape, dtype=bool)
    np.put_along_axis(found, top(score, count), True, axis=-1)
    return found & (score > 0)


def _each(one: Any, change: Callable[[Array], Array]) -> Any:
    """Return a dataclass of arrays, and of such, with every array changed."""
    if one is None:
        return None
    return (
        change(one) if isinstance(one, np.ndarray) else type(one)(*(_each(part, change) for part in vars(one).values()))
    )


def _replaced(one: Any, two: Any, where: Array) -> Any:
    """Return a dataclass of arrays, and of such, that is `two` in some replications."""
    if one is None:
        return None
    if isinstance(one, np.ndarray):
        found = one.copy()
        found[where] = two
        return found
    return type(one)(*(_replaced(a, b, where) for a, b in zip(vars(one).values(), vars(two).values(), strict=True)))


def _lifted(exponent: Array, differs: Array) -> tuple[Array, Array]:
    """Return −`exponent` `(..., g, m)`, or its least value less it where all odds would vanish, and where `(..., 1)`.

    All is decided then. What is largest among the gains is the same; without this, all would be zero and the first arm
    would be pulled.
    """
    nearest = np.min(np.where(differs, exponent, np.inf), axis=(-2, -1), keepdims=True)
    decided = (nearest > VANISHING) & np.isfinite(nearest)
    lifted = np.minimum(np.where(decided, nearest, np.zeros_like(nearest)) - exponent, 0.0)
    return lifted, decided[..., 0]


def _rivals(weight: Array, count: int) -> tuple[Array, Array]:
    """Return the positions `(..., r)` of the `count` rivals of largest `weight` `(..., m)`, and which of them count.

    One of less than `FAINT` of the largest does not; where that leaves fewer in every replication, fewer are returned.
    """
    nearest = top(weight, count)
    size = entries(weight, nearest)
    near = size >= FAINT * size[..., :1]
    most = max(int(np.max(np.sum(near, axis=-1), initial=0)), min(count, 1))
    return nearest[..., :most], near[..., :most]


def _unbeaten(b: Array, v: Array, c: Array, near: Array) -> Array:
    """Return Π_k P(f_k < f_i | f_i = f_j) `(..., r)`, the chance that no other `near` rival is above i and rival j.

    With b and v `(..., r)` the means and variances of how far rivals are below the leader, and c `(..., r, r)` their
    covariance, k is below by N(b_k − b_j c_jk / v_j, v_k − c_jk² / v_j) where j is not at all.
    """
    share = c / v[..., None]
    mean = b[..., None, :] - share * b[..., None]
    least = 1e-12 * v[..., None, :] + 1e-290
    z = mean / np.sqrt(np.maximum(v[..., None, :] - share * c, least))
    beside = near[..., None, :] & ~np.eye(b.shape[-1], dtype=bool)
    return np.prod(normal(np.where(beside, z, np.inf)), axis=-1)
