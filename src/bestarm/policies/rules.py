"""What policies that pull one arm at a time share: state, first pulls, confidence radii, and the arm they name."""

from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Any, Protocol, TypeVar

import numpy as np

from bestarm.core import Array, Problem, Pulls, Random, Totals
from bestarm.errors import InputError
from bestarm.linalg import pick
from bestarm.policies.belief import Belief, root


@dataclass(frozen=True)
class Race:
    """The state of a policy that pulls one arm at a time: what it believes, and how many pulls it had."""

    problem: Problem
    belief: Belief
    spent: int

    @property
    def over(self) -> bool:
        """Whether nothing is left to pull, or nothing to choose."""
        return self.spent >= self.problem.budget or self.problem.arms == 1


R = TypeVar("R", bound=Race)


def heard(state: R, pulls: Pulls, totals: Totals) -> R:
    """Return `state` after `pulls` gave `totals`."""
    belief = state.belief.update(pulls.arms, pulls.times, totals.sums)
    return replace(state, belief=belief, spent=state.spent + pulls.total)


def once(arm: Array) -> Pulls:
    """Return the request for one pull of `arm` `(...)`."""
    arms = arm[..., None]
    return Pulls(arms, np.ones_like(arms))


def known_noise(problem: Problem, given: float | None, name: str) -> float:
    """Return the noise variance: the setting `given`, else the problem's; a policy that needs it says so."""
    noise = given if given is not None else problem.noise_variance
    if noise is None:
        raise InputError(
            f"{name} needs the variance of the noise, and the problem does not tell it; "
            "give it as the setting noise_variance"
        )
    if not noise >= 0:
        raise InputError(f"noise_variance must not be negative; given {noise}")
    return float(noise)


def put(values: Array, index: Array, new: Any) -> Array:
    """Return `values` `(..., K)` with `new` (a number, or `(...)`) at `index` `(...)`.

    >>> put(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0]), np.array([8.0, 9.0]))
    array([[1., 8.],
           [9., 4.]])
    """
    if type(values) is np.ndarray:
        changed = values.copy()
        lead = tuple(np.indices(np.shape(index), sparse=True)) if np.ndim(index) else ()
        changed[(*lead, index)] = new
        return changed
    there = np.arange(values.shape[-1], dtype=index.dtype) == index[..., None]
    return np.where(there, np.asarray(new, dtype=values.dtype)[..., None], values)


def best_other(values: Array) -> Array:
    """Return max_{j ≠ k} values_j for each k, `(..., K)`; there must be two arms or more.

    >>> best_other(np.array([1.0, 5.0, 3.0]))
    array([5., 3., 5.])
    """
    first = np.argmax(values, axis=-1)
    rest = put(values, first, -np.inf)
    second = pick(rest, np.argmax(rest, axis=-1))
    return put(np.broadcast_to(pick(values, first)[..., None], values.shape), first, second)


def less_pulled(counts: Array, i: Array, j: Array) -> Array:
    """Return whichever of arms `i` and `j` `(...)` was pulled less often; i when equally often."""
    return np.where(pick(counts, j) < pick(counts, i), j, i)


def telling_arm(belief: Belief, i: Array, j: Array) -> Array:
    """Return the arm whose next pull shrinks Var(f_i − f_j) most: argmax_a (C_ai − C_aj)² / (σ² + C_aa).

    Where i and j are the same to this belief, no arm does, and the less pulled of the two is returned.
    """
    gain = belief.contrast(i, j)
    gain *= gain
    gain /= belief.noise + belief.variance
    arm = np.argmax(gain, axis=-1)
    same = pick(gain, arm) <= 1e-24 * pick(belief.variance, i)  # the square of a difference that is rounding error
    return np.where(same, less_pulled(belief.counts, i, j), arm)


class Answer(Protocol):
    """Which arm to recommend."""

    def arm(self, counts: Array, mean: Array) -> Array:
        """Return the arm `(...)`, given pulls and estimates of all arms `(..., K)`."""
        ...


@dataclass(frozen=True)
class BestEstimate:
    """The arm of largest estimated mean.

    >>> BestEstimate().arm(np.array([5, 1, 2]), np.array([0.1, 0.7, 0.2]))
    np.int64(1)
    """

    def arm(self, counts: Array, mean: Array) -> Array:
        return np.argmax(mean, axis=-1)


@dataclass(frozen=True)
class MostPulled:
    """The arm pulled most often; among equals the larger estimate, then the lower index.

    >>> MostPulled().arm(np.array([2, 1, 2]), np.array([0.1, 0.7, 0.2]))
    np.int64(2)
    """

    def arm(self, counts: Array, mean: Array) -> Array:
        most = counts == np.max(counts, axis=-1, keepdims=True)
        return np.argmax(np.where(most, mean, -np.inf), axis=-1)


class FirstPulls(Protocol):
    """What is pulled before the policy's own rule takes over."""

    def pulls(self, problem: Problem, rng: Random) -> Pulls | None: ...


@dataclass(frozen=True)
class NoPulls:
    """Nothing."""

    def pulls(self, problem: Problem, rng: Random) -> Pulls | None:
        return None


@dataclass(frozen=True)
class EachOnce:
    """Each arm once; a random B of them if the budget B is smaller than that."""

    def pulls(self, problem: Problem, rng: Random) -> Pulls | None:
        shape = (*problem.batch, problem.arms)
        if problem.budget >= problem.arms:
            arms = np.broadcast_to(np.arange(problem.arms, dtype=np.int64), shape)
        else:
            arms = np.argsort(rng.random(shape), axis=-1)[..., : problem.budget]
        return Pulls(arms, np.ones_like(arms))


@dataclass(frozen=True)
class EachIfCheap:
    """Each arm once if that is at most half the budget, else nothing."""

    def pulls(self, problem: Problem, rng: Random) -> Pulls | None:
        return EachOnce().pulls(problem, rng) if problem.budget >= 2 * problem.arms else None


class Width(Protocol):
    """How the variance of an estimate becomes the unit of its confidence interval."""

    def of(self, variance: Array) -> Array: ...


@dataclass(frozen=True)
class Deviation:
    """The standard deviation."""

    def of(self, variance: Array) -> Array:
        return root(variance)


@dataclass(frozen=True)
class Variance:
    """The variance itself, as the GSE paper's published code has it."""

    def of(self, variance: Array) -> Array:
        return variance


@dataclass(frozen=True)
class Scene:
    """What the radius of a confidence interval may depend on."""

    noise_variance: float | None
    budget: int
    dimension: Array  # of the features, or of their span, (...)
    ridge: float
    longest: Array  # the largest |x_i|, (...)

    @classmethod
    def of(cls, problem: Problem, ridge: float, noise_variance: float | None = None) -> "Scene":
        x = problem.features
        noise = noise_variance if noise_variance is not None else problem.noise_variance
        longest = np.sqrt(np.max(np.vecdot(x, x), axis=-1))
        return cls(noise, problem.budget, x.shape[-1] * np.ones_like(longest), ridge, longest)

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise."""
        if self.noise_variance is None:
            raise InputError(
                "this radius needs the variance of the noise, and the problem does not tell it; "
                "give it as the setting noise_variance, or take the radius Fixed(..)"
            )
        return sqrt(self.noise_variance)


class Radius(Protocol):
    """By how many widths an upper confidence bound lies above the estimate."""

    def of(self, scene: Scene, spent: int) -> Array | float:
        """Return the multiple, a number or `(...)`, after `spent` pulls."""
        ...


@dataclass(frozen=True)
class Fixed:
    """A number."""

    value: float = 1.0

    def of(self, scene: Scene, spent: int) -> Array | float:
        return self.value


@dataclass(frozen=True)
class OfNoise:
    """`times` σ, but never below `least`: without noise there would be no reason to look at a second arm.

    >>> OfNoise(2.0).of(Scene(9.0, 100, np.array(2.0), 1.0, np.array(1.0)), 0)
    6.0
    """

    times: float = 2.0
    least: float = 0.5

    def of(self, scene: Scene, spent: int) -> Array | float:
        return max(self.times * scene.sigma, self.least)


@dataclass(frozen=True)
class Li2010:
    """1 + √(ln(2/δ)/2) (Li, Chu, Langford and Schapire 2010), for rewards in [0, 1].

    >>> round(Li2010(delta=0.1).of(Scene(None, 100, np.array(2.0), 1.0, np.array(1.0)), 0), 4)
    2.2239
    """

    delta: float = 0.1

    def of(self, scene: Scene, spent: int) -> Array | float:
        return 1 + sqrt(log(2 / self.delta) / 2)


@dataclass(frozen=True)
class OFUL:
    """σ √(d log((1 + t L²/λ)/δ)) + √λ S with |x| ≤ L and |θ| ≤ S (Abbasi-Yadkori, Pál and Szepesvári 2011)."""

    delta: float = 0.1
    bound: float = 1.0

    def of(self, scene: Scene, spent: int) -> Array | float:
        inside = (1 + spent * scene.longest**2 / scene.ridge) / self.delta
        return scene.sigma * np.sqrt(scene.dimension * np.log(inside)) + sqrt(scene.ridge) * self.bound


@dataclass(frozen=True)
class Li2017:
    """(σ/κ) √((d/2) ln(1 + 2B/d) + ln(1/δ)) (Li, Lu and Zhou 2017, Theorem 2); δ None is 1/B.

    κ is the least slope of the mean function where it matters; 1/4 is the largest slope of the logistic one.
    """

    slope: float = 0.25
    delta: float | None = None

    def of(self, scene: Scene, spent: int) -> Array | float:
        half = scene.dimension / 2
        delta = self.delta if self.delta is not None else 1 / scene.budget
        return scene.sigma / self.slope * np.sqrt(half * np.log(1 + scene.budget / half) + log(1 / delta))
