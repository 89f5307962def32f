"""Newton steps that bend towards the multiplicative algorithm.

Maximise log det V(w) − r Σ_i w_i over w ≥ 0, which has the D-optimal design as its solution (sum one included).
With g the leverages, H_ij = (x_i' V⁻¹ x_j)² and the slack s_i = max(r − g_i, 0) of each row, a step δ solves

    (H + diag((s + ν) / w)) δ = g − r    (1)

ν → ∞ gives a short step of the multiplicative algorithm, δ_i ∝ w_i (g_i − r); ν → 0 gives Newton's step on the rows
that stay and sends the others (s_i > 0) to zero quadratically. ν falls after a step that gains and rises otherwise.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bestarm.core import AnyArray
from bestarm.iterate import Work
from bestarm.tables.source import to_host

Floats: TypeAlias = NDArray[np.float64]

DIRECT = 500  # rows up to which a factorisation of H is cheaper than conjugate gradients
TRIES = 30  # values of ν before a design is left as it is
SHRINK = 1e-5  # the least part of a weight that a step leaves, so that a row is not lost to a bad one
GOAL = 1e-3  # squared relative residual at which conjugate gradients stop
HELD = 4  # times the rows at their bound are held and the others solved again
JOIN = 1e-3  # the share of the gap that rows which join begin with
DUST = 1e-5  # rows with a smaller part of the largest weight, and a leverage below r, leave


@dataclass(frozen=True)
class Newton:
    """Move the weights of all rows that have one at once, after the rows of largest leverage have joined them.

    One replication after another, in NumPy. The state is (w, x, y, g, r, ν, −½ log det V) with y = C⁻¹x, V = C C'.

    >>> from bestarm.designs.ascent import Ascent
    >>> from bestarm.linalg import Candidates
    >>> Ascent(Newton()).weights(Candidates.of(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]))).round(6)
    array([0.5, 0.5, 0. ])
    """

    def begin(self, x: AnyArray, w: AnyArray, d: AnyArray) -> Work:
        x = to_host(x).astype(np.float64, copy=False)
        w, d = to_host(w).astype(np.float64), to_host(d).astype(np.float64)
        y, g, value = np.zeros_like(x), np.zeros_like(w), np.zeros_like(d)
        for i in np.ndindex(d.shape):
            if d[i] > 1:
                root = factor(x[i], w[i], int(d[i]))
                if root is None:
                    raise ValueError("the rows with a weight do not span the space")
                value[i] = _whiten(x[i], root, y[i], g[i])
                w[i] /= w[i].sum()
        return w, x, y, g, d, 0.1 * d, value

    def advance(self, t: int, work: Work, done: AnyArray | None) -> Work:
        w, x, y, g, d, nu, value = work  # all but x are the loop's own, and change in place: y is as large as the table
        for i in range(len(w)) if done is None else np.flatnonzero(~done):
            w[i], nu[i], root = _move(w[i], x[i], y[i], g[i], int(d[i]), nu[i], value[i])
            if root is None:
                d[i] = 0
            else:
                value[i] = _whiten(x[i], root, y[i], g[i])
        return work


def factor(x: Floats, weights: Floats, rank: int) -> Floats | None:
    """Return C⁻¹ `(r, r)` with V = Σ w_i x_i x_i' = C C', or None if V is singular; columns from `rank` on are zero."""
    V = (x * weights[:, None]).T @ x
    np.einsum("ii->i", V)[rank:] = 1.0
    try:
        C = np.linalg.cholesky(V)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(np.linalg.inv(C))


def leverages(x: Floats, root: Floats) -> Floats:
    """Return g `(n,)`, the squared norms of C⁻¹ x."""
    y = x @ root.T
    return np.asarray(np.einsum("ij,ij->i", y, y))


def _whiten(x: Floats, root: Floats, y: Floats, g: Floats) -> float:
    """Write C⁻¹ x to `y` and the leverages to `g`; return −½ log det V."""
    np.matmul(x, root.T, out=y)
    np.einsum("ij,ij->i", y, y, out=g)
    return float(np.log(np.diag(root)).sum())


def multiplicative(x: Floats, steps: int, power: float = 1.5) -> Floats:
    """Return a rough design of rows `(n, r)` with V = I in mean: `steps` times w_i ∝ w_i (g_i/r)^power from uniform."""
    w = np.full(len(x), 1 / len(x))
    for _ in range(steps):
        root = factor(x, w, x.shape[1])
        if root is None:
            break
        w = w * (leverages(x, root) / x.shape[1]) ** power
        w /= w.sum()
    return w


def _move(
    w: Floats, x: Floats, y: Floats, g: Floats, r: int, nu: float, value: float
) -> tuple[Floats, float, Floats | None]:
    """Return better weights, the next ν, and C⁻¹ there, or None where no ν tried brings −½ log det V below `value`."""
    w = _join(w, y, g, r)
    nu = min(nu, 0.1 * (g.max() - r))
    active = np.flatnonzero(w)
    xa, ya, ga = x[active], y[active], g[active]
    for _ in range(TRIES):
        moved = w[active] + _direction(ya, ga, w[active], r, nu)
        moved /= moved.sum()
        root = factor(xa, moved, r)
        if root is not None and (np.log(np.diag(root)).sum() < value or nu > 1e8 * r):
            moved[(moved < DUST * moved.max()) & (ga < r)] = 0.0
            w[active] = moved / moved.sum()
            return w, max(nu / 8, 1e-12 * r), factor(xa, w[active], r)
        nu = max(8 * nu, 1e-6 * r)
    return w, nu, None


def _join(w: Floats, y: Floats, g: Floats, r: int) -> Floats:
    """Return the weights after the rows of largest leverage joined, each with a share too small to matter."""
    outside = np.flatnonzero((w == 0) & (g > r))
    if not len(outside):
        return w
    most = 4 * r
    if len(outside) > most:
        outside = outside[_varied(y[outside], g[outside], most)]
    w = w.copy()
    w[outside] = JOIN * (g.max() / r - 1) / len(outside)  # so small that log det V rises, to second order too
    return w


def _varied(y: Floats, g: Floats, most: int) -> NDArray[np.int64]:
    """Return `most` positions of large leverage that point in different directions: the best along each axis, in turn.

    The rows around one peak of the leverage share their longest coordinate, so no peak takes all the places.
    """
    axis = np.argmax(np.abs(y), axis=1)
    order = np.lexsort((-g, axis))
    starts = np.searchsorted(axis[order], np.arange(y.shape[1]))
    turn = np.arange(len(order)) - starts[axis[order]]
    return np.asarray(order[np.lexsort((-g[order], turn))[:most]])


def _direction(y: Floats, g: Floats, w: Floats, r: int, nu: float) -> Floats:
    """Return δ `(n,)` of Eq. 1 with w + δ ≥ SHRINK w; rows that hit the bound are held and the others solved again.

    The variables are u = δ/√w, in which H has trace Σ w_i g_i² whatever the weights are.
    """
    root = np.sqrt(w)
    diagonal = np.maximum(r - g, 0.0) + nu
    right = root * (g - r)
    hessian = _Hessian.of(y, root)
    free = np.ones(len(w), dtype=bool)
    least = (SHRINK - 1) * root
    u = hessian.solve(diagonal, right)
    for _ in range(HELD):
        low = free & (u < least)
        excess = float(root[low] @ (least[low] - u[low]))
        u[low] = least[low]
        if excess <= 0.1 * float(root @ np.abs(u)):
            break
        free &= ~low
        held = np.where(free, 0.0, u)
        u[free] = hessian.within(free).solve(diagonal[free], (right - hessian.times(held))[free])
    return np.asarray(root * np.maximum(u, least))


@dataclass(frozen=True)
class _Hessian:
    """The matrix Z_ij = (z_i' z_j)², z_i = w_i^¼ y_i: held if it is small, else known by its products."""

    z: Floats
    matrix: Floats | None

    @classmethod
    def of(cls, y: Floats, root: Floats) -> "_Hessian":
        z = y * np.sqrt(root)[:, None]
        return cls(z, (z @ z.T) ** 2 if len(z) <= DIRECT else None)

    def within(self, free: NDArray[np.bool_]) -> "_Hessian":
        """Return the matrix of some rows."""
        return _Hessian(self.z[free], None if self.matrix is None else self.matrix[np.ix_(free, free)])

    def times(self, u: Floats) -> Floats:
        """Return Z u."""
        if self.matrix is not None:
            return np.asarray(self.matrix @ u)
        M = (self.z * u[:, None]).T @ self.z
        return np.asarray(np.einsum("ij,ij->i", self.z @ M, self.z))

    def solve(self, diagonal: Floats, right: Floats) -> Floats:
        """Return (Z + diag)⁻¹ right."""
        if self.matrix is None:
            return _conjugate_gradients(self, diagonal, right)
        from scipy.linalg.lapack import dposv

        shifted = self.matrix.copy()
        shifted.ravel()[:: len(right) + 1] += diagonal
        _, u, failed = dposv(shifted, right, lower=1, overwrite_a=1)
        return np.asarray(u) if failed == 0 else _conjugate_gradients(self, diagonal, right)


def _conjugate_gradients(hessian: _Hessian, diagonal: Floats, right: Floats, most: int = 60) -> Floats:
    scale = 1 / (np.einsum("ij,ij->i", hessian.z, hessian.z) ** 2 + diagonal)
    u, left = np.zeros_like(right), right.copy()
    p = scale * left
    direction, size = p, float(left @ p)
    goal = GOAL * size
    for _ in range(most):
        if size <= goal:
            break
        image = hessian.times(direction) + diagonal * direction
        step = size / float(direction @ image)
        u += step * direction
        left -= step * image
        p = scale * left
        size, before = float(left @ p), size
        direction = p + (size / before) * direction
    return u
