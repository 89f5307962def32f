"""LinGapE (Xu, Honda and Sugiyama 2018) at a fixed budget: compare the leader with its most ambiguous rival."""

from dataclasses import dataclass, field
from math import log, sqrt
from typing import Any, Protocol

import numpy as np

from bestarm.core import Array, Problem, Pulls, Random, Totals
from bestarm.errors import InputError
from bestarm.policies.belief import LinearPrior, root
from bestarm.policies.rules import EachOnce, Race, heard, known_noise, less_pulled, once, put, telling_arm


class Chooser(Protocol):
    """Which arm to pull to tell two arms apart."""

    def prepare(self, features: Array) -> Any:
        """Return what is worth remembering about these arms."""
        ...

    def choose(self, state: "Ambiguity", i: Array, j: Array) -> Array:
        """Return the arm `(...)` to pull for x_i − x_j; where the two are alike, the less pulled of them."""
        ...


@dataclass(frozen=True)
class Ambiguity(Race):
    """The state, with what the chooser remembers: results of a pure function, so no part of what is known."""

    memory: Any = field(repr=False, compare=False)


@dataclass(frozen=True)
class GreedyArm:
    """The arm whose next pull shrinks the variance of the difference y = x_i − x_j most: argmin_a y'(A + x_a x_a')⁻¹ y.

    By the rank-one formula that is argmax_a (x_a'A⁻¹y)² / (1 + x_a'A⁻¹x_a).
    """

    def prepare(self, features: Array) -> Any:
        return None

    def choose(self, state: "Ambiguity", i: Array, j: Array) -> Array:
        return telling_arm(state.belief, i, j)


@dataclass(frozen=True)
class LeastRatio:
    """The arm furthest behind its share of the optimal allocation for x_i − x_j: argmin over p_a > 0 of T_a / p_a.

    p = |w| / |w|_1 for the w of least |w|_1 with Σ_a w_a x_a = x_i − x_j, its signs free; see `least_norm_weights`.
    """

    def prepare(self, features: Array) -> Any:
        return Shares(np.asarray(features))

    def choose(self, state: "Ambiguity", i: Array, j: Array) -> Array:
        counts = state.belief.counts
        shares = np.asarray(state.memory.of(np.asarray(i), np.asarray(j)), dtype=counts.dtype)
        needed = shares > 0
        ratio = counts / np.where(needed, shares, np.ones_like(shares))
        arm = np.argmin(np.where(needed, ratio, np.inf), axis=-1)
        return np.where(np.any(needed, axis=-1), arm, less_pulled(counts, i, j))


@dataclass(frozen=True)
class LinGapE:
    """Leader i = argmax x'θ, rival j = argmax (x_j − x_i)'θ + C |x_i − x_j|_{A⁻¹}; pull what tells them apart.

    A = λI + Σ x x', θ = A⁻¹ Σ x y and C = σ √(2 log(K² det(A/λ)^½ / δ)) + √λ S, times `width`. Every arm is pulled once
    first. With a fixed budget nothing stops the run early, so δ only says how much doubt counts against the estimates.

    >>> policy = LinGapE(noise_variance=1.0)
    >>> state = policy.start(Problem(np.eye(3), budget=4))
    >>> pulls = policy.ask(state, np.random.default_rng(0))
    >>> state = policy.tell(state, pulls, Totals(np.array([0.0, 2.0, -9.0]), np.array([0.0, 4.0, 81.0])))
    >>> policy.ask(state, np.random.default_rng(0)).arms, int(policy.recommend(state))
    (array([0]), 1)
    """

    chooser: Chooser = GreedyArm()
    delta: float = 0.99
    width: float = 1.0
    ridge: float = 1.0
    bound: float = 1.0
    noise_variance: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.delta <= 1:
            raise InputError(f"delta must lie in (0, 1]; given {self.delta}")
        if not self.ridge > 0:
            raise InputError(f"ridge must be positive; given {self.ridge}")

    def start(self, problem: Problem) -> Ambiguity:
        known_noise(problem, self.noise_variance, "LinGapE")
        belief = LinearPrior(1 / self.ridge).belief(problem.features, 1.0)
        return Ambiguity(problem, belief, 0, self.chooser.prepare(problem.features))

    def ask(self, state: Ambiguity, rng: Random) -> Pulls | None:
        if state.over:
            return None
        if state.spent == 0:
            return EachOnce().pulls(state.problem, rng)
        return once(self.chooser.choose(state, *self.pair(state)))

    def tell(self, state: Ambiguity, pulls: Pulls, totals: Totals) -> Ambiguity:
        return heard(state, pulls, totals)

    def recommend(self, state: Ambiguity) -> Array:
        mean = state.belief.mean
        return np.argmax(mean, axis=-1)

    def pair(self, state: Ambiguity) -> tuple[Array, Array]:
        """Return the leader i and its most ambiguous rival j, each `(...)`."""
        belief = state.belief
        i = np.argmax(belief.mean, axis=-1)
        index = root(belief.distances(i))
        index *= self.radius(state)[..., None]
        index += belief.mean
        return i, np.argmax(put(index, i, -np.inf), axis=-1)

    def radius(self, state: Ambiguity) -> Array:
        """Return C `(...)`, times `width`."""
        sigma = sqrt(known_noise(state.problem, self.noise_variance, "LinGapE"))
        doubt = 2 * log(state.problem.arms**2 / self.delta) + state.belief.information
        return self.width * (sigma * np.sqrt(doubt) + sqrt(self.ridge) * self.bound)


def least_norm_weights(features: Any, y: Any) -> Any:
    """Return w `(K,)` of least |w|_1 with Σ_a w_a x_a = y, by linear programming; y must be in the span of the arms.

    >>> least_norm_weights(np.eye(3), np.array([1.0, 0.0, -1.0])) + 0.0
    array([ 1.,  0., -1.])
    """
    from scipy.optimize import linprog

    arms = features.shape[0]
    scale = float(np.abs(features).max()) or 1.0
    x = features.T / scale
    found = linprog(np.ones(2 * arms), A_eq=np.concatenate([x, -x], axis=1), b_eq=y / scale, method="highs")
    if found.x is None:  # features scaled so badly that the solver sees no solution: the least squares will do
        return np.linalg.lstsq(features.T, y, rcond=None)[0]
    return found.x[:arms] - found.x[arms:]


class Shares:
    """p for pairs of arms, solved when first asked for.

    The arms are put in an order of their own, so that replications which hold the same arms in other orders, or the
    same pair the other way round, share one solution.
    """

    def __init__(self, features: Any) -> None:
        *batch, arms, columns = features.shape
        flat = np.reshape(features, (-1, arms, columns))
        self.batch = tuple(batch)
        self.order = np.stack([np.lexsort(x.T[::-1]) for x in flat])  # place -> arm
        self.place = np.argsort(self.order, axis=-1)
        sets = np.take_along_axis(flat, self.order[..., None], axis=-2)
        distinct: dict[bytes, int] = {}
        self.which = np.array([distinct.setdefault(x.tobytes(), len(distinct)) for x in sets])
        first = np.unique(self.which, return_index=True)[1]
        self.sets = sets[first]
        self.solved: dict[int, Any] = {}

    def of(self, i: Any, j: Any) -> Any:
        """Return p `(..., K)` for the pairs `i`, `j` `(...)`; zero where the two arms are alike."""
        arms = self.order.shape[-1]
        runs = np.arange(len(self.which))
        a, b = self.place[runs, np.reshape(i, -1)], self.place[runs, np.reshape(j, -1)]
        low, high = np.minimum(a, b), np.maximum(a, b)
        keys, inverse = np.unique((self.which * arms + low) * arms + high, return_inverse=True)
        ordered = np.stack([self._solve(int(key)) for key in keys])[np.reshape(inverse, -1)]
        return np.reshape(np.take_along_axis(ordered, self.place, axis=-1), (*self.batch, arms))

    def _solve(self, key: int) -> Any:
        if key not in self.solved:
            rest, high = divmod(key, self.order.shape[-1])
            which, low = divmod(rest, self.order.shape[-1])
            x = self.sets[which]
            w = np.abs(least_norm_weights(x, x[low] - x[high]))
            w = np.where(w > 1e-9 * w.max(initial=0.0), w, 0.0)
            self.solved[key] = w / w.sum() if w.any() else w
        return self.solved[key]
