"""Which arm to pull to tell two arms apart: LinGapE's two ways (Xu, Honda and Sugiyama 2018)."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bestarm.core import Array
from bestarm.policies.choices import less_pulled, most_telling
from bestarm.posteriors import NormalPosterior


class Chooser(Protocol):
    """Which arm to pull to tell two arms apart."""

    def prepare(self, features: Array) -> Any:
        """Return what is worth remembering about these arms."""
        ...

    def choose(self, posterior: NormalPosterior, prepared: Any, i: Array, j: Array) -> Array:
        """Return the arm `(...)` to pull for x_i − x_j; where the two are alike, the less pulled of them."""
        ...


@dataclass(frozen=True)
class GreedyArm:
    """The arm whose next pull shrinks the variance of the difference y = x_i − x_j most: argmin_a y'(A + x_a x_a')⁻¹ y.

    By the rank-one formula that is argmax_a (x_a'A⁻¹y)² / (1 + x_a'A⁻¹x_a).
    """

    def prepare(self, features: Array) -> Any:
        return None

    def choose(self, posterior: NormalPosterior, prepared: Any, i: Array, j: Array) -> Array:
        return most_telling(posterior, i, j)


@dataclass(frozen=True)
class LeastRatio:
    """The arm furthest below its share of the optimal allocation for x_i − x_j: argmin over p_a > 0 of T_a / p_a.

    p = |w| / |w|_1 for the w of least |w|_1 with Σ_a w_a x_a = x_i − x_j, its signs free; see `least_norm_weights`.
    """

    def prepare(self, features: Array) -> Any:
        return Shares(np.asarray(features))

    def choose(self, posterior: NormalPosterior, prepared: Any, i: Array, j: Array) -> Array:
        counts = posterior.counts
        shares = np.asarray(prepared.of(np.asarray(i), np.asarray(j)), dtype=counts.dtype)
        needed = shares > 0
        ratio = counts / np.where(needed, shares, np.ones_like(shares))
        arm = np.argmin(np.where(needed, ratio, np.inf), axis=-1)
        return np.where(np.any(needed, axis=-1), arm, less_pulled(counts, i, j))


def least_norm_weights(features: Array, y: Array) -> Array:
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

    def __init__(self, features: Array) -> None:
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
        self.solved: dict[int, Array] = {}

    def of(self, i: Array, j: Array) -> Array:
        """Return p `(..., K)` for the pairs `i`, `j` `(...)`; zero where the two arms are alike."""
        arms = self.order.shape[-1]
        runs = np.arange(len(self.which))
        a, b = self.place[runs, np.reshape(i, -1)], self.place[runs, np.reshape(j, -1)]
        low, high = np.minimum(a, b), np.maximum(a, b)
        keys, inverse = np.unique((self.which * arms + low) * arms + high, return_inverse=True)
        ordered = np.stack([self._solve(int(key)) for key in keys])[np.reshape(inverse, -1)]
        return np.reshape(np.take_along_axis(ordered, self.place, axis=-1), (*self.batch, arms))

    def _solve(self, key: int) -> Array:
        if key not in self.solved:
            rest, high = divmod(key, self.order.shape[-1])
            which, low = divmod(rest, self.order.shape[-1])
            x = self.sets[which]
            w = np.abs(least_norm_weights(x, x[low] - x[high]))
            w = np.where(w > 1e-9 * w.max(initial=0.0), w, 0.0)
            self.solved[key] = w / w.sum() if w.any() else w
        return self.solved[key]
