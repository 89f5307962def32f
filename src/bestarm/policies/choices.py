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
