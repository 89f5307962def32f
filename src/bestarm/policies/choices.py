"""Small choices among arms that rules share."""

from typing import Any

import numpy as np

from bestarm.core import Array
from bestarm.linalg import pick
from bestarm.posteriors import NormalPosterior


def put(values: Array, index: Array, new: Any) -> Array:
    """Return `values` `(..., K)` with `new` (a number, or `(...)`) at `index` `(...)`.

    >>> put(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0]), np.array([8.0, 9.0]))
    array([[1., 8.],
           [9., 4.]])
    """
    changed = values.copy()
    lead = tuple(np.indices(np.shape(index), sparse=True)) if np.ndim(index) else ()
    changed[(*lead, index)] = new
    return changed


def best_other(values: Array) -> Array:
    """Return max_{j ≠ k} values_j for each k, `(..., K)`; there must be two arms or more.

    >>> best_other(np.array([1.0, 5.0, 3.0]))
    array([5., 3., 5.])
    """
    first = np.argmax(values, axis=-1)
    rest = put(values, first, -np.inf)
    second = pick(rest, np.argmax(rest, axis=-1))
    return put(np.broadcast_to(pick(values, first)[..., None], values.shape), first, second)


def least(values: Array, mean: Array) -> Array:
    """Return the arm of least value `(...)`, of several the one of largest `mean`; so that labels do not matter.

    >>> least(np.array([2.0, 1.0, 1.0]), np.array([9.0, 3.0, 5.0]))
    np.int64(2)
    """
    tied = values == np.min(values, axis=-1, keepdims=True)
    return np.argmax(np.where(tied, mean, -np.inf), axis=-1)


def closest_race(mean: Array, reach: Array) -> tuple[Array, Array, Array]:
    """Return J, j and B_J `(...)` of intervals m ± `reach`.

    B_k = max_{i≠k} U_i − L_k, J = argmin_k B_k, j = argmax_{k≠J} U_k.
    """
    upper = mean + reach
    bounds = best_other(upper)
    bounds -= mean
    bounds += reach
    leader = np.argmin(bounds, axis=-1)
    rival = np.argmax(put(upper, leader, -np.inf), axis=-1)
    return leader, rival, pick(bounds, leader)


def less_pulled(counts: Array, i: Array, j: Array) -> Array:
    """Return whichever of arms `i` and `j` `(...)` was pulled less often; i when equally often."""
    return np.where(pick(counts, j) < pick(counts, i), j, i)


def most_telling(posterior: NormalPosterior, i: Array, j: Array) -> Array:
    """Return the arm whose next pull shrinks Var(f_i − f_j) most: argmax_a (C_ai − C_aj)² / (σ² + C_aa).

    Where i and j are the same to this posterior, no arm does, and the less pulled of the two is returned.
    """
    gain = posterior.contrast(i, j)
    gain *= gain
    gain /= posterior.noise + posterior.variance
    arm = np.argmax(gain, axis=-1)
    same = pick(gain, arm) <= 1e-24 * pick(posterior.variance, i)  # the square of a difference that is rounding error
    return np.where(same, less_pulled(posterior.counts, i, j), arm)
