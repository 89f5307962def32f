"""Fewer support points, the same information: Carathéodory's theorem on Σ_i π_i x_i x_i'."""

from dataclasses import dataclass
from math import prod

from bestarm.core import AnyArray, namespace
from bestarm.designs.protocols import Weights
from bestarm.linalg import Candidates

NEGLIGIBLE = 1e-9  # weights below this are rounding error of the design


def trim(coordinates: AnyArray, weights: AnyArray) -> AnyArray:
    """Return a design `(..., k)` with at most r(r + 1)/2 support points and V at least as large, r the rank.

    The matrices x_i x_i' of more points than that are linearly dependent: Σ_i v_i x_i x_i' = 0. Moving along −v leaves
    V as it is until a weight is zero. With Σ_i v_i ≥ 0 the weights sum to one at most afterwards, so dividing by their
    sum can only raise V. One QR factorisation gives all dependencies; each drop then eliminates one of them.

    >>> import numpy as np
    >>> line = np.array([[1.0, -1.0], [1.0, 0.0], [1.0, 0.5], [1.0, 1.0]])
    >>> int(np.count_nonzero(trim(line, np.full(4, 0.25))))
    3
    """
    xp = namespace(coordinates, weights)
    *batch, arms, columns = coordinates.shape
    flat = xp.reshape(coordinates, (prod(batch), arms, columns))
    w = xp.where(weights > NEGLIGIBLE, weights, xp.zeros_like(weights))
    w = xp.reshape(w / xp.sum(w, axis=-1, keepdims=True), (prod(batch), arms))
    rank = xp.count_nonzero(xp.any(flat != 0, axis=-2), axis=-1)
    most = xp.where(rank > 0, rank * (rank + 1) // 2, arms)
    pieces = [_trim_one(flat[i, :, :], w[i, :], int(most[i])) for i in range(prod(batch))]
    return xp.reshape(xp.stack(pieces), tuple(weights.shape)) if pieces else weights


def _trim_one(x: AnyArray, w: AnyArray, most: int) -> AnyArray:
    """Bring one design `(k,)` to `most` support points, looking at no more than twice as many at a time."""
    xp = namespace(w)
    while (support := xp.nonzero(w > 0)[0]).shape[0] > most:
        some = support[: 2 * most]
        few = _drop(_products(xp.take(x, some, axis=0)), xp.take(w, some, axis=0), some.shape[0] - most)
        hot = some[:, None] == xp.arange(w.shape[0], dtype=some.dtype)
        within = xp.sum(xp.astype(hot, w.dtype) * few[:, None], axis=0)
        w = xp.where(xp.any(hot, axis=0), within, w)
    return w / xp.sum(w)


def _drop(products: AnyArray, w: AnyArray, count: int) -> AnyArray:
    """Set `count` of the weights `(q,)` to zero, Σ_i w_i x_i x_i' unchanged and Σ_i w_i no larger."""
    xp = namespace(w)
    nulls = xp.linalg.qr(products, mode="complete")[0][:, -count:]
    for left in range(count, 0, -1):
        v = nulls[:, 0]
        v = v if float(xp.sum(v)) >= 0 else -v
        falling = v > 1e-12 * xp.max(xp.abs(v))
        ratio = xp.where(falling, w / xp.where(falling, v, xp.ones_like(v)), xp.inf)
        out = xp.argmin(ratio)
        w = xp.maximum(w - ratio[out] * v, xp.zeros_like(w))
        w = xp.where(xp.arange(w.shape[0]) == out, xp.zeros_like(w), w)
        if left > 1:
            nulls = _without(nulls, int(out))
    return w


def _products(x: AnyArray) -> AnyArray:
    """Return the distinct entries of each x_i x_i' in coordinates of the span, `(q, r(r + 1)/2)`."""
    xp = namespace(x)
    size = int(xp.count_nonzero(xp.any(x != 0, axis=0)))
    return xp.concat([x[:, a : a + 1] * x[:, a:size] for a in range(size)], axis=1)


def _without(nulls: AnyArray, out: int) -> AnyArray:
    """Return one dependency fewer, none of which involves the point `out`."""
    xp = namespace(nulls)
    pivot = int(xp.argmax(xp.abs(nulls[out, :])))
    v = nulls[:, pivot]
    others = xp.concat([nulls[:, :pivot], nulls[:, pivot + 1 :]], axis=1)
    others = others - v[:, None] * (others[out, :] / v[out])[None, :]
    others = xp.where((xp.arange(v.shape[0]) == out)[:, None], xp.zeros_like(others), others)
    return others / xp.sqrt(xp.sum(others * others, axis=0))


@dataclass(frozen=True)
class Trimmed:
    """Another design on at most d(d + 1)/2 arms, with the same V: ⌈n π⌉ then costs d(d + 1)/2 pulls more at most."""

    design: Weights

    def weights(self, candidates: Candidates, targets: AnyArray | None = None) -> AnyArray:
        return trim(candidates.coordinates, self.design.weights(candidates, targets))
