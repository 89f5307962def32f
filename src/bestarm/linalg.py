"""Linear algebra on stacks of small matrices: rows, spans, moments, leverages.

Everything takes any number of leading axes and keeps to the array-API standard.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from typing import Any

import numpy as np

from bestarm.core import AnyArray, Pulls, Tally, Totals, namespace

FAR = 100  # features beyond 2^±100 are brought to about 1: fourth powers of theirs would be no floats
MANY = 64  # times as many scores as are asked for: then it pays not to sort them all


def rows(features: AnyArray, index: AnyArray) -> AnyArray:
    """Return rows `index` `(..., m)` of `features` `(..., K, d)`, shape `(..., m, d)`."""
    if type(features) is np.ndarray:
        return features[(*_open_grid(index)[:-1], index)] if np.ndim(index) > 1 else features[..., index, :]
    xp = namespace(features, index)
    wide = xp.broadcast_to(index[..., None], (*index.shape, features.shape[-1]))
    return xp.take_along_axis(features, wide, axis=-2)


def row(features: AnyArray, index: AnyArray) -> AnyArray:
    """Return row `index` `(...)` of `features` `(..., K, d)`, shape `(..., d)`."""
    if type(features) is np.ndarray:
        return features[(*_open_grid(index), index)]
    return rows(features, index[..., None])[..., 0, :]


def pick(values: AnyArray, index: AnyArray) -> AnyArray:
    """Return entry `index` `(...)` of `values` `(..., K)`, shape `(...)`."""
    if type(values) is np.ndarray:
        return values[(*_open_grid(index), index)]
    xp = namespace(values)
    return xp.take_along_axis(values, index[..., None], axis=-1)[..., 0]


def entries(values: AnyArray, index: AnyArray) -> AnyArray:
    """Return entries `index` `(..., m)` of `values` `(..., K)`, shape `(..., m)`."""
    if type(values) is np.ndarray:
        return values[(*_open_grid(index)[:-1], index)] if np.ndim(index) > 1 else values[..., index]
    return namespace(values).take_along_axis(values, index, axis=-1)


def _open_grid(index: Any) -> tuple[Any, ...]:
    """Return index arrays for the leading axes; a NumPy gather by them costs a fifth of take_along_axis."""
    if np.ndim(index) == 0:
        return ()
    return (np.arange(index.shape[0]),) if index.ndim == 1 else tuple(np.indices(index.shape, sparse=True))


def one_hot(index: AnyArray, size: int, dtype: Any = None) -> AnyArray:
    """Return the vertex e_index, `(..., size)`.

    >>> one_hot(np.array([2, 0]), 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    xp = namespace(index)
    hot = xp.arange(size, dtype=index.dtype) == index[..., None]
    return xp.astype(hot, dtype if dtype is not None else xp.float64)


def add_at(values: AnyArray, index: AnyArray, step: AnyArray) -> AnyArray:
    """Return `values` `(..., K)` with `step` `(...)` added at `index` `(...)`; `values` stays as it is."""
    if type(values) is np.ndarray:
        values = values.copy()
        values[(*_open_grid(index), index)] += step
        return values
    return values + one_hot(index, values.shape[-1], values.dtype) * step[..., None]


def scatter(index: AnyArray, values: AnyArray, size: int) -> AnyArray:
    """Add `values` `(..., m)` up at `index` `(..., m)`, shape `(..., size)`.

    >>> scatter(np.array([0, 2, 2]), np.array([1.0, 5.0, 2.0]), 4)
    array([1., 0., 7., 0.])
    """
    xp = namespace(index, values)
    if type(values) is np.ndarray:
        batch = values.shape[:-1]
        blocks = np.arange(prod(batch), dtype=np.int64).reshape(*batch, 1) * size
        flat = np.bincount((index + blocks).ravel(), values.ravel(), minlength=blocks.size * size)
        return flat.reshape(*batch, size).astype(values.dtype)
    hot = xp.astype(index[..., None] == xp.arange(size, dtype=index.dtype), values.dtype)
    return xp.sum(hot * values[..., None], axis=-2)


def accumulate(total: AnyArray, index: AnyArray, values: AnyArray) -> AnyArray:
    """Return `total` `(..., K)` with `values` `(..., m)` added at `index`; in place where the library allows it."""
    if type(total) is np.ndarray:
        lead = tuple(np.indices(index.shape, sparse=True))[:-1] if index.ndim > 1 else ()
        np.add.at(total, (*lead, index), values)
        return total
    return total + scatter(index, values, total.shape[-1])


def matvec(matrix: AnyArray, vector: AnyArray) -> AnyArray:
    """Return A x for `(..., m, n)` and `(..., n)`."""
    return (matrix @ vector[..., None])[..., 0]


def add_to_diagonal(matrix: AnyArray, values: AnyArray) -> AnyArray:
    """Return `matrix` `(..., n, n)` with `values` `(..., n)` added to its diagonal."""
    if type(matrix) is np.ndarray:
        matrix = matrix.copy()
        np.einsum("...ii->...i", matrix)[...] += values
        return matrix
    return matrix + values[..., None] * namespace(matrix).eye(matrix.shape[-1], dtype=matrix.dtype)


def power_of_two(size: AnyArray, most: float) -> AnyArray:
    """Return the power of two that brings each size beyond 2^±most to between 1 and 2; 1 for all others and for 0."""
    xp = namespace(size)
    exponent = xp.floor(xp.log2(xp.where(size > 0, size, xp.ones_like(size))))
    far = xp.abs(exponent) > most
    return xp.pow(2 * xp.ones_like(size), xp.where(far, xp.clip(-exponent, -1023.0, 1023.0), xp.zeros_like(size)))


def evened(features: AnyArray, axis: int | tuple[int, ...] = -2) -> AnyArray:
    """Return features `(..., K, d)` as they are, or times a power of two where their products would be no floats.

    By default each column is looked at by itself; with axes (-2, -1) all of them have the same factor.
    """
    xp = namespace(features)
    return features * power_of_two(xp.max(xp.abs(features), axis=axis, keepdims=True), FAR)


def span_coordinates(features: AnyArray, tolerance: float | None = None) -> AnyArray:
    """Return arms in an orthonormal basis of the column space, `(..., k, min(k, d))`.   Alg. 1, line 2

    The columns beyond the rank are zero, so stacks stay rectangular. Replacing features X by X M with M
    invertible only rotates the coordinates: designs, leverages and estimates made from them do not change.

    >>> np.abs(span_coordinates(np.array([[3.0, 0.0], [4.0, 0.0]]))).round(3)
    array([[0.6, 0. ],
           [0.8, 0. ]])
    """
    xp = namespace(features)
    if tolerance is None:
        tolerance = max(features.shape[-2:]) * float(xp.finfo(features.dtype).eps)
    left, values, _ = xp.linalg.svd(features, full_matrices=False)
    kept = values > tolerance * values[..., :1]
    return left * xp.astype(kept, left.dtype)[..., None, :]


def rotated(features: AnyArray) -> AnyArray:
    """Return features with no more columns than arms, rotated where they have more: lengths and angles stay."""
    if features.shape[-1] <= features.shape[-2]:
        return features
    left, values, _ = namespace(features).linalg.svd(features, full_matrices=False)
    return left * values[..., None, :]


@dataclass(frozen=True)
class Candidates:
    """Some arms as a design or a model sees them: as given, and in coordinates of their span."""

    features: AnyArray
    given: AnyArray | None = None  # coordinates, where they are known already

    @classmethod
    def of(cls, features: AnyArray) -> "Candidates":
        """Take arms `(..., k, d)`; they are projected to their span when a part first asks for it."""
        return cls(features)

    @cached_property
    def coordinates(self) -> AnyArray:
        """The arms in an orthonormal basis of their span, `(..., k, min(k, d))`."""
        return span_coordinates(self.features) if self.given is None else self.given


def tally(pulls: Pulls, totals: Totals, arms: int) -> Tally:
    """Add up what pulls gave, by arm, each `(..., K)`; an arm may be named more than once."""
    xp = namespace(pulls.times)
    times = xp.astype(pulls.times, totals.sums.dtype)
    counts, sums, squares = (scatter(pulls.arms, values, arms) for values in (times, totals.sums, totals.squares))
    means = sums / xp.maximum(counts, xp.ones_like(counts))
    here = Tally(times, totals.sums, totals.squares, totals.scatter)
    apart = here.residual(xp.take_along_axis(means, pulls.arms, axis=-1))
    return Tally(counts, sums, squares, scatter(pulls.arms, apart, arms))


def flat(batch: tuple[int, ...]) -> Callable[[AnyArray], AnyArray]:
    """Return what puts the leading axes `batch` of an array in one."""
    return lambda array: array.reshape((-1, *array.shape[len(batch) :]))


def shaped(batch: tuple[int, ...]) -> Callable[[AnyArray], AnyArray]:
    """Return what puts one leading axis into the axes `batch`."""
    return lambda array: array.reshape((*batch, *array.shape[1:]))


def rank(coordinates: AnyArray) -> AnyArray:
    """Return the dimension of the span as a float, `(...)`: orthonormal columns have norm one, the others zero."""
    xp = namespace(coordinates)
    return xp.round(xp.sum(coordinates * coordinates, axis=(-2, -1)))


def dimension(features: AnyArray) -> int:
    """Return the dimension of the span of arms `(..., k, d)`, the largest of all replications.

    >>> dimension(np.ones((2, 5, 3)))
    1
    """
    found = rank(Candidates.of(features).coordinates)
    return int(namespace(found).max(found)) if found.size else 0


def moment(coordinates: AnyArray, weights: AnyArray, filling: AnyArray | None = None) -> AnyArray:
    """Return V = Σ_i w_i x_i x_i', `(..., r, r)`, with ones on the diagonal of columns that are zero.

    The ones make V invertible without touching anything on the span. Loops compute them once, as `filling`.
    """
    xp = namespace(coordinates)
    V = xp.matrix_transpose(coordinates) @ (coordinates * weights[..., None])
    return V + (blank_columns(coordinates) if filling is None else filling)


def blank_columns(coordinates: AnyArray) -> AnyArray:
    """Return the diagonal matrix `(..., r, r)` that has ones where a column is zero."""
    xp = namespace(coordinates)
    blank = xp.all(coordinates == 0, axis=-2)
    eye = xp.eye(coordinates.shape[-1], dtype=coordinates.dtype)
    return eye * xp.astype(blank, coordinates.dtype)[..., None, :]


def leverage(coordinates: AnyArray, inverse: AnyArray) -> AnyArray:
    """Return g_i = x_i' V^{-1} x_i, `(..., k)`."""
    xp = namespace(coordinates)
    return xp.vecdot(coordinates @ inverse, coordinates)


def symmetric_inverse(V: AnyArray, cut: float = 1e-12) -> AnyArray:
    """Return the pseudo-inverse of positive semi-definite V; eigenvalues below `cut` of the largest are zero."""
    xp = namespace(V)
    values, vectors = xp.linalg.eigh(V)
    kept = values > cut * values[..., -1:]
    inverted = xp.where(kept, 1 / xp.where(kept, values, xp.ones_like(values)), xp.zeros_like(values))
    return (vectors * inverted[..., None, :]) @ xp.matrix_transpose(vectors)


def top(score: AnyArray, keep: int) -> AnyArray:
    """Return positions of the `keep` largest scores, best first, ties to the lower position."""
    xp = namespace(score)
    count = score.shape[-1]
    if prod(score.shape[:-1]) == 1 and count >= MANY * keep > 0:
        line = xp.reshape(score, (count,))
        size = count // (4 * keep)
        blocks = xp.reshape(line[: 4 * keep * size], (4 * keep, size))
        least = -xp.sort(-xp.max(blocks, axis=-1))[keep - 1]  # so many blocks have a score as large as this
        some = xp.nonzero(line >= least)[0]
        if some.shape[0] >= keep:  # fewer: a score is not a number
            order = xp.argsort(-xp.take(line, some), stable=True)
            return xp.reshape(xp.take(some, order[:keep]), (*score.shape[:-1], keep))
    return xp.argsort(-score, axis=-1, stable=True)[..., :keep]


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which products use one core: on blocks in cache, threads cost more than they bring."""
    context: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return context


@cache
def _libraries() -> Any:
    from scipy.linalg import lapack  # noqa: F401  has a BLAS of its own, which is known only once it is loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
