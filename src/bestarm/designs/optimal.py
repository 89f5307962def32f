"""D-optimal designs, which are G-optimal too (Kiefer and Wolfowitz 1960), with a certificate."""

from dataclasses import dataclass
from typing import Protocol

from bestarm.core import AnyArray, namespace
from bestarm.iterate import Work, iterate
from bestarm.linalg import Candidates, add_at, blank_columns, leverage, matvec, moment, one_hot, pick, rank, row

REFRESH = 100  # rank-one updates between two inversions: their error stays near 1e-13


class Start(Protocol):
    """Where an iterative design begins: weights that span the space."""

    def begin(self, coordinates: AnyArray) -> AnyArray: ...


@dataclass(frozen=True)
class KumarYildirim:
    """Begin on d arms only; see `kumar_yildirim`."""

    def begin(self, coordinates: AnyArray) -> AnyArray:
        return kumar_yildirim(coordinates)


@dataclass(frozen=True)
class Multiplicative:
    """Begin with a few steps π_i ∝ π_i (g_i/d)^{3/2} from uniform (Titterington 1976), then drop what is small.

    Moves every weight at once, so two dozen steps come within 2 % of the optimum on most sets of arms; an exchange
    method closes the rest. The power 1 would increase det V at every step; 3/2 has the same fixed point and gets
    there in fewer. With hardly more arms than dimensions there is little to move: begin as Kumar and Yıldırım.
    """

    steps: int = 24
    drop: float = 0.1

    def begin(self, coordinates: AnyArray) -> AnyArray:
        xp = namespace(coordinates)
        arms, columns = coordinates.shape[-2:]
        if arms <= 3 * columns:
            return kumar_yildirim(coordinates)
        w = xp.ones_like(coordinates[..., 0]) / arms
        d = xp.maximum(rank(coordinates), xp.ones_like(coordinates[..., 0, 0]))[..., None]
        filling = blank_columns(coordinates)
        for _ in range(self.steps):
            ratio = leverage(coordinates, xp.linalg.inv(moment(coordinates, w, filling))) / d
            w = w * ratio * xp.sqrt(ratio)
            w = w / xp.maximum(xp.sum(w, axis=-1, keepdims=True), xp.ones_like(d) * 1e-300)
        w = xp.where(w >= self.drop * xp.max(w, axis=-1, keepdims=True), w, xp.zeros_like(w))
        w = w / xp.maximum(xp.sum(w, axis=-1, keepdims=True), xp.ones_like(d) * 1e-300)
        spans = xp.min(xp.linalg.eigvalsh(moment(coordinates, w)), axis=-1, keepdims=True) > 1e-10
        return w if bool(xp.all(spans)) else xp.where(spans, w, kumar_yildirim(coordinates))


def kumar_yildirim(coordinates: AnyArray) -> AnyArray:
    """Return the start of Kumar and Yıldırım (2005): 1/d on each of d arms that span the space.

    Each pick is the arm farthest from the span of those before (pivoted Gram-Schmidt), O(k d²) in all.
    """
    xp = namespace(coordinates)
    arms, columns = coordinates.shape[-2:]
    dimension = rank(coordinates)
    left = xp.sum(coordinates * coordinates, axis=-1)
    weights = xp.zeros_like(left)
    basis = xp.zeros_like(coordinates[..., :1, :])
    for t in range(columns):
        going = t < dimension
        j = xp.argmax(left, axis=-1)
        residual = row(coordinates, j)
        for _ in range(2):  # the second pass removes what rounding left of the first
            residual = residual - matvec(xp.matrix_transpose(basis), matvec(basis, residual))
        norm = xp.sqrt(xp.sum(residual * residual, axis=-1))
        unit = xp.where(going, 1 / xp.where(going, norm, xp.ones_like(norm)), xp.zeros_like(norm))
        q = residual * unit[..., None]
        basis = xp.concat([basis, q[..., None, :]], axis=-2)
        weights = weights + one_hot(j, arms, weights.dtype) * xp.astype(going, weights.dtype)[..., None]
        along = matvec(coordinates, q)
        left = xp.where(one_hot(j, arms) > 0, xp.zeros_like(left), left - along * along)
    return weights / xp.maximum(dimension, xp.ones_like(dimension))[..., None]


@dataclass(frozen=True)
class WolfeAtwood:
    """Vertex exchange with away steps on log det V(π) (Wolfe 1970, Atwood 1973; algorithms in Todd 2016).

    Stops when max_i g_i ≤ (1 + tolerance) d: the G-efficiency d / max_i g_i is then at least
    1 / (1 + tolerance), and so is the D-efficiency.

    >>> import numpy as np
    >>> WolfeAtwood().weights(Candidates.of(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])))
    array([0.5, 0.5, 0. ])
    """

    tolerance: float = 1e-2
    start: Start = KumarYildirim()
    limit: int = 100_000

    def weights(self, candidates: Candidates, targets: AnyArray | None = None) -> AnyArray:
        """Return the design over all arms; `targets` do not change it, since it covers every direction."""
        x = candidates.coordinates
        xp = namespace(x)
        start = self.start.begin(x)
        dimension = rank(x)
        inverse = xp.linalg.inv(moment(x, start))
        work = (start, x, inverse, leverage(x, inverse), dimension)
        weights = iterate(work, self._finished, self._advance, self.limit, x.shape[:-2])
        alone = one_hot(xp.argmax(xp.sum(x * x, axis=-1), axis=-1), x.shape[-2], x.dtype)
        uniform = xp.ones_like(weights) / weights.shape[-1]
        weights = xp.where((dimension == 1)[..., None], alone, weights)
        return xp.where((dimension == 0)[..., None], uniform, weights)

    def _finished(self, work: Work) -> AnyArray:
        _, _, _, g, d = work
        xp = namespace(g)
        return (xp.max(g, axis=-1) <= (1 + self.tolerance) * d) | (d <= 1)

    def _advance(self, t: int, work: Work, done: AnyArray | None) -> Work:
        w, x, inverse, g, d = work
        xp = namespace(w)
        high, low = xp.argmax(g, axis=-1), xp.argmin(xp.where(w > 0, g, xp.inf), axis=-1)
        above, below = pick(g, high), pick(g, low)
        toward = above + below >= 2 * d
        j, kappa = xp.where(toward, high, low), xp.where(toward, above, below)
        freedom = d - 1 if done is None else xp.where(done, xp.ones_like(d), d - 1)
        step = xp.maximum((kappa - d) / (freedom * kappa), -pick(w, j))  # clipped: the arm leaves the support
        if done is not None:
            step = xp.where(done, xp.zeros_like(step), step)
        u = matvec(inverse, row(x, j))
        along = matvec(x, u)
        scale, shrink = 1 + step, step / (1 + step * kappa)
        w = xp.maximum(add_at(w, j, step), 0.0) / scale[..., None]
        if t % REFRESH == REFRESH - 1:
            fresh = xp.linalg.inv(moment(x, w))
            renewed = leverage(x, fresh)
            if done is not None:
                fresh, renewed = xp.where(done[..., None, None], inverse, fresh), xp.where(done[..., None], g, renewed)
            return w, x, fresh, renewed, d
        inverse = (inverse - (shrink[..., None] * u)[..., None] * u[..., None, :]) * scale[..., None, None]
        g = (g - shrink[..., None] * along * along) * scale[..., None]
        return w, x, inverse, g, d


def harman_pronzato(leverages: AnyArray, dimension: AnyArray) -> AnyArray:
    """Return which arms `(..., k)` can support no D-optimal design, whatever the design these leverages are of.

    Those with g_i < d (1 + ε/2 − √(ε (4 + ε − 4/d))/2), ε = max_i g_i − d (Harman and Pronzato 2007).

    >>> import numpy as np
    >>> harman_pronzato(np.array([11.0, 10.0, 4.2, 4.3]), np.array(10.0))
    array([False, False,  True, False])
    """
    xp = namespace(leverages)
    excess = xp.max(leverages, axis=-1) - dimension
    excess = xp.maximum(excess, 1e-12 * dimension)  # rounding errors at the optimum must delete nothing
    root = xp.sqrt(excess * xp.maximum(4 + excess - 4 / dimension, xp.zeros_like(excess)))
    return leverages < (dimension * (1 + excess / 2 - root / 2))[..., None]


def certificate(coordinates: AnyArray, weights: AnyArray) -> AnyArray:
    """Return max_i g_i(π) / d `(...)`: 1 at a D- and G-optimal design, never below (Kiefer and Wolfowitz)."""
    xp = namespace(coordinates)
    g = leverage(coordinates, xp.linalg.inv(moment(coordinates, weights)))
    return xp.max(g, axis=-1) / rank(coordinates)
