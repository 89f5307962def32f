"""D-optimal, hence G-optimal, designs over tables of millions of rows: few passes, and a certificate over all rows.

1. One pass adds up X'X, which gives the span and coordinates in which the uniform design has V = I, and takes a sample.
2. The sample gives a rough design in cache (`newton.multiplicative`).
3. One pass computes all leverages g_i = x_i' V⁻¹ x_i block by block (one product with a d x r matrix, row norms) and
   keeps a pool: the rows of largest leverage, about one in thirty, no more than 8 MiB of them. Its largest
   value over r is the certificate: max_i g_i / r ≥ 1, with equality at the optimum alone (Kiefer and Wolfowitz 1960).
4. The pool is solved in cache (`newton.improve`). Back to 3 until the certificate is at most 1 + tolerance.

With costs c_i the rows are x_i / √c_i, so V(w) = Σ_i w_i x_i x_i' / c_i is information per unit of money, and w_i is
the share of the money that is spent on row i. Its share of the pulls is proportional to w_i / c_i.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bestarm.core import Array, namespace
from bestarm.designs.newton import Floats, improve, leverages, multiplicative
from bestarm.errors import ArmsError, InputError
from bestarm.linalg import Candidates, one_thread
from bestarm.sources.memory import ArraySource
from bestarm.sources.priced import PricedSource
from bestarm.sources.protocols import Rows, Source, beside, to_host

Index: TypeAlias = NDArray[np.int64]
Progress: TypeAlias = Callable[[int, int, int, float], None]

SAMPLE = 4096  # rows that say what leverages are like: enough for a quantile of one in thirty to within 10 %
ROUGH = 0.1  # gap to which a sample is solved: it is no more than a start
POOL_SHARE = 32
LEAST_POOL = 2048
POOL_BYTES = 8 << 20  # measured: a larger pool costs more in cache than the pass it may save
SAFE = 1e-8  # smallest eigenvalue of the scaled X'X whose square root X'X still knows to half of all digits
IDLE = 5  # passes in a row without a better design after which rounding errors are all that is left
VANISHING = 1e-200  # sums of squares below this may have lost digits to underflow
THIN = 1e-6  # eigenvalues of V below this are directions not spanned; at the optimum none is below 1/r
COARSE = 1e-5  # relative error up to which leverages in float32 are good enough to choose rows by
MIXED = 0.1  # share of the uniform design in V while the rows found so far do not span the space


@dataclass(frozen=True)
class Pass:
    """One reading of the table: what for, max g / r (NaN where it is not known), rows in the cache, seconds."""

    purpose: str
    certificate: float
    active: int
    seconds: float


@dataclass(frozen=True)
class Solution:
    """A design over the rows of a table, on its support.

    `rows` `(n,)` ascend; `weights` `(n,)` are shares of the money (of the pulls, without costs); `features` `(n, d)`
    are those rows as given and `coordinates` `(n, r)` in a basis of the span, divided by √cost: `transform` `(d, r)`
    takes rows to them, and Σ x x' / K = I there over all rows; `information` `(d, d)` is V = Σ w x x' / c;
    `certificate` is max_i g_i / r over all rows of the table, in float64, for these very weights.
    """

    rows: Index
    weights: Floats
    certificate: float
    rank: int
    features: Floats
    coordinates: Floats
    transform: Floats
    information: Floats
    costs: Floats | None
    tolerance: float
    trace: tuple[Pass, ...]

    @property
    def passes(self) -> int:
        """How often the table was read."""
        return len(self.trace)

    @property
    def leverage_passes(self) -> int:
        """How often all leverages were computed."""
        return sum(not np.isnan(one.certificate) for one in self.trace)

    @property
    def reached(self) -> bool:
        """Whether the certificate is at most 1 + tolerance."""
        return self.certificate <= 1 + self.tolerance

    @property
    def pulls(self) -> Floats:
        """The share of the pulls `(n,)` of each row: proportional to w / c."""
        share = self.weights if self.costs is None else self.weights / self.costs
        return np.asarray(share / share.sum())


def optimal_design(
    source: Source,
    tolerance: float = 1e-3,
    costs: ArrayLike | None = None,
    progress: Progress | None = None,
    limit: int = 50,
    seed: int = 0,
) -> Solution:
    """Return a design whose largest leverage over all rows is at most (1 + tolerance) times the rank.

    The D-efficiency and the G-efficiency are then at least 1 / (1 + tolerance). `costs` `(K,)` are what a pull of each
    row costs. `progress(pass_number, rows_done, rows_total, gap)` is called after each block, with the last known gap
    max g / r − 1. After `limit` passes, or several that bring nothing, the best design so far is
    returned: `Solution.reached` says whether it is good enough.

    >>> from bestarm.sources import open_source
    >>> found = optimal_design(open_source(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])))
    >>> found.rows, found.weights.round(3), round(found.certificate, 6)
    (array([0, 1]), array([0.5, 0.5]), 1.0)
    """
    if not 0 < tolerance < np.inf:
        raise InputError(f"tolerance must be a positive number; given {tolerance}")
    priced = source if costs is None else PricedSource.of(source, costs)
    with one_thread():
        return _solve(priced, tolerance, progress, limit, seed)


def _solve(priced: Source, tolerance: float, progress: Progress | None, limit: int, seed: int) -> Solution:
    reader = _Reader(priced, progress)
    rng = np.random.default_rng(seed)
    plan = _Plan.of(priced)
    span = _span(reader, plan, rng)
    cache = _sample_design(span, plan)
    best: tuple[float, _Span, _Cache] | None = None
    idle = 0
    for _ in range(limit):
        found, certificate = _all_leverages(reader, span, plan, cache, tolerance)
        idle += 1
        if cache.spans and (best is None or certificate < best[0]):
            best, idle = (certificate, span, cache), 0
        if cache.spans and (certificate <= 1 + tolerance or idle == IDLE):
            break
        before, cache = cache, _pool_design(span, cache, found, tolerance)
        if not cache.spans and cache.missing.shape == before.missing.shape:
            span, cache = _narrowed(span, cache, tolerance)
    if best is None:
        raise ArmsError(f"after {limit} passes no rows that span the space were found; raise limit")
    certificate, span, cache = best
    if certificate > 1 + tolerance and priced.dtype != np.float64:
        _, certificate = _all_leverages(reader, span, plan, cache, np.inf)  # what was found in float32 proves nothing
    return _solution(priced, span, cache, certificate, tolerance, tuple(reader.trace))


@dataclass(frozen=True)
class ActiveSet:
    """The same design as a `Weights`: over arms in memory, one replication after another.

    >>> from bestarm.linalg import Candidates, one_thread
    >>> ActiveSet().weights(Candidates.of(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])))
    array([0.5, 0.5, 0. ])
    """

    tolerance: float = 1e-2

    def weights(self, candidates: Candidates, targets: Array | None = None) -> Array:
        """Return the design over all arms; `targets` do not change it, since it covers every direction."""
        x = to_host(candidates.coordinates)
        stack = x.reshape(-1, *x.shape[-2:])
        weights = np.zeros(stack.shape[:2])
        for one, w in zip(stack, weights, strict=True):
            if not one.any():
                w[:] = 1 / len(w)
                continue
            found = optimal_design(ArraySource.of(one), self.tolerance)
            w[found.rows] = found.weights
        return beside(weights.reshape(x.shape[:-1]), candidates.coordinates)


class _Reader:
    """A source whose passes are counted and timed."""

    def __init__(self, source: Source, progress: Progress | None) -> None:
        self.source, self.progress = source, progress
        self.trace: list[Pass] = []
        self.gap = float("inf")

    def sweep(self, kernel: Any, combine: Any, purpose: str, active: int = 0) -> Any:
        number, rows = len(self.trace) + 1, self.source.rows
        tell = self.progress
        done = None if tell is None else (lambda at: tell(number, at, rows, self.gap))
        start = perf_counter()
        total = self.source.sweep(kernel, combine, done)
        self.trace.append(Pass(purpose, float("nan"), active, perf_counter() - start))
        return total

    def certify(self, certificate: float) -> None:
        self.trace[-1] = replace(self.trace[-1], certificate=certificate)
        self.gap = certificate - 1


@dataclass(frozen=True)
class _Plan:
    """How many rows to sample, to keep of a pass, and to begin with."""

    sample: int
    pool: int
    starters: int

    @classmethod
    def of(cls, source: Source) -> "_Plan":
        K, d = source.rows, source.columns
        corner, least, width = d * (d + 1) // 2, max(4 * d, 256), 8 * d
        budget = max(POOL_BYTES, 2 * corner * width)
        budget = budget if source.memory is None else min(budget, source.memory // 8)
        if budget < least * width:
            raise InputError(
                f"memory: {source.memory} bytes given; at least {8 * least * width} are needed to hold {least} rows of "
                f"{d} columns while a design is solved"
            )
        most = budget // width
        pool = min(max(K // POOL_SHARE, LEAST_POOL, 2 * corner), most)
        return cls(min(K, max(SAMPLE, 3 * corner), most), pool, max(2 * corner, 8 * d))


# ---------------------------------------------------------------------------------------------- the span


@dataclass(frozen=True)
class _Span:
    """Coordinates x T of the span, `T` `(d, r)`, in which Σ_i x_i x_i' / K = I; and a sample of the rows."""

    transform: Floats
    index: Index
    rows: Rows
    sample: Floats

    @property
    def rank(self) -> int:
        return int(self.transform.shape[1])


@dataclass(frozen=True)
class _Sum:
    """A part of X'X, max |x_j| of the columns whose squares vanish, sampled rows, the first row that is not finite."""

    gram: Floats
    peaks: Floats
    rows: tuple[Rows, ...]
    bad: tuple[int, int, float] | None

    def __add__(self, other: "_Sum") -> "_Sum":
        peaks = np.maximum(self.peaks, other.peaks)
        with np.errstate(over="ignore", invalid="ignore"):
            return _Sum(self.gram + other.gram, peaks, self.rows + other.rows, self.bad or other.bad)


@dataclass(frozen=True)
class _Moments:
    """Add up x x' / scale² and take the rows at `positions`, which ascend."""

    positions: Index
    scale: Floats | None = None

    def __call__(self, block: Array, start: int) -> _Sum:
        xp = namespace(block)
        low, high = np.searchsorted(self.positions, [start, start + block.shape[0]])
        picked = to_host(xp.take(block, beside(self.positions[low:high] - start, block), axis=0))
        wide = xp.astype(block, xp.float64, copy=False)
        if self.scale is not None:
            wide = wide / beside(self.scale, wide)
        with np.errstate(over="ignore", invalid="ignore"):
            gram = to_host(xp.matrix_transpose(wide) @ wide)
        bad = None if np.isfinite(gram).all() else _not_finite(block, start)
        quiet = np.diag(gram) < VANISHING
        peaks = np.where(quiet, _Peaks()(block, start), 0.0) if quiet.any() else np.zeros(len(gram))
        return _Sum(gram, peaks, (picked,), bad)


def _not_finite(block: Array, start: int) -> tuple[int, int, float] | None:
    values = to_host(block)
    for row, column in np.argwhere(~np.isfinite(values))[:1]:
        return start + int(row), int(column), float(values[row, column])
    return None


@dataclass(frozen=True)
class _Peaks:
    """Return max |x_j| of each column `(d,)`."""

    def __call__(self, block: Array, start: int) -> Floats:
        xp = namespace(block)
        return np.asarray(to_host(xp.max(xp.abs(block), axis=0)), dtype=np.float64)


@dataclass(frozen=True)
class _Triangle:
    """Return R of the QR factorisation of the scaled rows, which knows the small singular values that X'X forgets."""

    scale: Floats

    def __call__(self, block: Array, start: int) -> Floats:
        xp = namespace(block)
        wide = xp.astype(block, xp.float64, copy=False)
        wide = wide / beside(self.scale, wide)
        if xp is np:
            return np.asarray(np.linalg.qr(wide, mode="r"))
        return np.asarray(to_host(xp.linalg.qr(wide)[1]))


def _join_triangles(one: Floats, other: Floats) -> Floats:
    return np.asarray(np.linalg.qr(np.concatenate([one, other]), mode="r"))


def _positions(K: int, size: int, rng: np.random.Generator) -> Index:
    """Return ascending rows of a sample, one drawn from each of `size` stretches of the table."""
    edges = np.linspace(0, K, size + 1).astype(np.int64)
    return edges[:-1] + (rng.random(size) * np.diff(edges)).astype(np.int64)


def _span(reader: _Reader, plan: _Plan, rng: np.random.Generator) -> _Span:
    """Return coordinates of the span of all rows, whatever the columns' scales are."""
    source = reader.source
    K, d = source.rows, source.columns
    positions = _positions(K, plan.sample, rng)
    moments = reader.sweep(_Moments(positions), _Sum.__add__, "moments")
    if moments.bad is not None:
        row, column, value = moments.bad
        name = source.names[column]
        raise ArmsError(f"{source.place(row)}, column {name!r}: expected a finite number, found {value}")
    gram, scale = moments.gram, np.ones(d)
    squares = np.diag(gram)
    if not np.isfinite(gram).all() or ((squares < VANISHING) & (moments.peaks > 0)).any():
        peaks = reader.sweep(_Peaks(), np.maximum, "column scales")
        scale = np.where(peaks > 0, peaks, 1.0)
        gram = reader.sweep(_Moments(positions[:0], scale), _Sum.__add__, "scaled moments").gram
        squares = np.diag(gram)
    used = squares > 0
    if not used.any():
        raise ArmsError(f"{source.place(0)} and all others are zero: there is nothing to tell rows apart by")
    scale = scale * np.sqrt(np.where(used, squares / K, 1.0))
    unit = np.sqrt(np.where(used, squares, 1.0))
    values, vectors = np.linalg.eigh((gram / unit / unit[:, None])[np.ix_(used, used)])
    sizes = np.sqrt(np.maximum(values, 0.0))
    if values[0] < SAFE * values[-1]:
        triangle = reader.sweep(_Triangle(scale), _join_triangles, "singular values")[:, used]
        _, sizes, right = np.linalg.svd(triangle / np.sqrt(K), full_matrices=False)
        vectors = right.T
    # numbers are rounded once as given, and again in each of K additions, where errors grow as their root
    rounding = max(float(np.finfo(source.dtype).eps), float(np.sqrt(K) * np.finfo(np.float64).eps))
    kept = sizes > 8 * d * rounding * sizes.max()
    transform = np.zeros((d, int(kept.sum())))
    transform[used] = vectors[:, kept] / sizes[kept] / scale[used, None]
    rows = np.concatenate(moments.rows)
    first = distinct(rows)
    return _Span(transform, positions[first], rows[first], rows[first].astype(np.float64) @ transform)


# ---------------------------------------------------------------------------------------------- designs in cache


@dataclass(frozen=True)
class _Cache:
    """Rows in memory: where in the table they are, as read `(n, d)` and in coordinates `(n, r)`; a design on them."""

    index: Index
    rows: Rows
    x: Floats
    weights: Floats
    missing: Floats

    @property
    def spans(self) -> bool:
        return bool(self.missing.shape[1] == 0)

    @property
    def root(self) -> Floats:
        """C⁻¹ of V = C C'; while directions are missing V has a share of the uniform design, which is I."""
        kept = self.weights > 0
        V = (self.x[kept] * self.weights[kept, None]).T @ self.x[kept]
        if not self.spans:
            V = (1 - MIXED) * V + MIXED * np.eye(len(V))
        return np.asarray(np.linalg.inv(np.linalg.cholesky(V)))


def _unspanned(x: Floats, weights: Floats) -> Floats:
    """Return an orthonormal basis `(r, q)` of the directions in which V is next to nothing."""
    values, vectors = np.linalg.eigh((x * weights[:, None]).T @ x)
    return np.asarray(vectors[:, values < THIN])


def _sample_design(span: _Span, plan: _Plan) -> _Cache:
    """Return a rough design on the sample."""
    few = min(len(span.sample), plan.starters)
    picked = np.linspace(0, len(span.sample) - 1, few).astype(np.int64)
    return _begin(span.index, span.rows, span.sample, picked, ROUGH)


def _begin(index: Index, rows: Rows, x: Floats, picked: Index, tolerance: float) -> _Cache:
    """Return a rough design of rows `(n, r)`, begun on those `picked`, or on all where these do not span the space."""
    for some in (picked, np.arange(len(x))):
        w = np.zeros(len(x))
        w[some] = multiplicative(x[some], 10)
        w[w < 0.1 * w.max()] = 0.0
        w /= w.sum()
        missing = _unspanned(x, w)
        if missing.shape[1]:
            w = np.zeros(len(x))
            w[some] = 1 / len(some)
            missing = _unspanned(x, w)
        if not missing.shape[1]:
            return _Cache(index, rows, x, improve(x, w, tolerance)[0], missing)
    return _Cache(index, rows, x, w, missing)


def _pool_design(span: _Span, cache: _Cache, found: "_Found", tolerance: float) -> _Cache:
    """Return the design of the rows that carry weight now together with those a pass found."""
    kept = np.flatnonzero(cache.weights) if cache.spans else np.arange(len(cache.x))
    new_index, new_rows = found.joined()
    index, rows = np.concatenate([cache.index[kept], new_index]), np.concatenate([cache.rows[kept], new_rows])
    first = distinct(rows, index)
    index, rows = index[first], rows[first]
    x = rows.astype(np.float64) @ span.transform
    if not cache.spans:
        return _begin(index, rows, x, np.arange(len(x)), tolerance / 4)
    w = np.zeros(len(x))
    w[: len(kept)] = cache.weights[kept]  # rows with a weight are distinct and come first
    return _Cache(index, rows, x, improve(x, w, tolerance / 4)[0], cache.missing)


def _narrowed(span: _Span, cache: _Cache, tolerance: float) -> tuple[_Span, _Cache]:
    """Give up directions of which even the extreme rows have next to nothing: they are rounding errors of the span."""
    q = cache.missing.shape[1]
    left = np.linalg.qr(cache.missing, mode="complete")[0][:, q:]
    smaller = replace(span, transform=span.transform @ left, sample=span.sample @ left)
    return smaller, _begin(cache.index, cache.rows, cache.x @ left, np.arange(len(cache.x)), tolerance / 4)


def distinct(x: Rows, index: Index | None = None) -> Index:
    """Return the first position of each row `(n, d)` up to sign, in order, and of each index where given.

    >>> distinct(np.array([[1.0, 2.0], [-1.0, -2.0], [1.0, 3.0]]))
    array([0, 2])
    """
    lead = np.argmax(x != 0, axis=1)
    signs = np.sign(x[np.arange(len(x)), lead]).astype(np.float64)
    keys = np.zeros(len(x), np.uint64)
    factors = np.random.default_rng(1).integers(1 << 62, size=(int(x.shape[1]),), dtype=np.uint64)
    for j, odd in enumerate(2 * factors + 1):
        bits = (x[:, j] * signs + 0.0).view(np.uint64)
        for _ in range(2):  # few bits differ between whole numbers, and they are high ones: spread them
            bits = (bits ^ (bits >> np.uint64(29))) * odd
        keys += bits ^ (bits >> np.uint64(32))
    _, first = np.unique(keys, return_index=True)
    first.sort()
    if index is not None:
        _, once = np.unique(index[first], return_index=True)
        once.sort()
        first = first[once]
    return np.asarray(first, dtype=np.int64)


# ---------------------------------------------------------------------------------------------- leverage passes


@dataclass(frozen=True)
class _Found:
    """The largest leverage and where it is, at most `2 most` rows of large leverage, and extremes along directions."""

    top: float
    row: int
    most: int
    pieces: tuple[tuple[Index, Rows, Floats], ...]
    count: int
    extremes: tuple[Floats, Index, Rows]

    def __add__(self, other: "_Found") -> "_Found":
        top, row = max((self.top, -self.row), (other.top, -other.row))
        pieces, count = self.pieces + other.pieces, self.count + other.count
        better = other.extremes[0] > self.extremes[0]
        extremes = (
            np.where(better, other.extremes[0], self.extremes[0]),
            np.where(better, other.extremes[1], self.extremes[1]),
            np.where(better[:, None], other.extremes[2], self.extremes[2]),
        )
        both = _Found(top, -row, self.most, pieces, count, extremes)
        return both if count <= 2 * self.most else both.trimmed()

    def trimmed(self) -> "_Found":
        index, rows, g = self.pieces_joined()
        best = np.sort(np.argpartition(-g, self.most - 1)[: self.most])
        return replace(self, pieces=((index[best], rows[best], g[best]),), count=len(best))

    def settled(self, cut: float) -> "_Found":
        """Return the `most` rows above `cut`, and the first in any case: what blocks there were leaves no trace."""
        index, rows, g = (self.trimmed() if self.count > self.most else self).pieces_joined()
        kept = g >= min(cut, self.top)
        return replace(self, pieces=((index[kept], rows[kept], g[kept]),), count=int(kept.sum()))

    def pieces_joined(self) -> tuple[Index, Rows, Floats]:
        index, rows, g = (np.concatenate(some) for some in zip(*self.pieces, strict=True))
        return index, rows, g

    def joined(self) -> tuple[Index, Rows]:
        indices, rows, _ = zip(*self.pieces, strict=True)
        _, extreme, at = self.extremes
        return np.concatenate([*indices, extreme]), np.concatenate([*rows, at.astype(rows[0].dtype)])


@dataclass(frozen=True)
class _Leverages:
    """Compute |x L|² for each row, `L` `(d, r)`, and keep the rows above `cut`, no more than `most` of a block."""

    transform: Floats
    directions: Floats
    cut: float
    most: int
    pool: int
    dtype: np.dtype[Any]

    def __call__(self, block: Array, start: int) -> _Found:
        xp = namespace(block)
        wide = xp.astype(block, getattr(xp, self.dtype.name), copy=False)
        y = wide @ beside(self.transform, wide)
        # a norm is one reading of y where a product of y with itself would be written first
        g = np.einsum("ij,ij->i", y, y) if xp is np else xp.linalg.vector_norm(y, axis=-1) ** 2
        row = int(xp.argmax(g))
        top = float(g[row])
        above = to_host(xp.nonzero(g >= min(self.cut, top))[0])
        values = to_host(xp.take(g, beside(above, g), axis=0))
        if len(above) > self.most:
            best = np.sort(np.argpartition(-values, self.most - 1)[: self.most])
            above, values = above[best], values[best]
        rows = to_host(xp.take(block, beside(above, block), axis=0))
        piece = above.astype(np.int64) + start, rows, values.astype(np.float64)
        return _Found(top, start + row, self.pool, (piece,), len(above), self._extremes(xp, wide, block, start))

    def _extremes(self, xp: Any, wide: Array, block: Array, start: int) -> tuple[Floats, Index, Rows]:
        if not self.directions.shape[1]:
            return np.zeros(0), np.zeros(0, np.int64), np.zeros((0, block.shape[1]))
        along = xp.abs(wide @ beside(self.directions, wide))
        at = to_host(xp.argmax(along, axis=0)).astype(np.int64)
        values = to_host(xp.max(along, axis=0)).astype(np.float64)
        return values, at + start, to_host(xp.take(block, beside(at, block), axis=0))


def _all_leverages(reader: _Reader, span: _Span, plan: _Plan, cache: _Cache, tolerance: float) -> tuple[_Found, float]:
    """Read the table once and return what was found with max g / r.

    A table of float32 is read again in float64 to certify a design, and where float32 has lost too many digits.
    """
    root = cache.root
    K, narrow = reader.source.rows, reader.source.dtype
    usual = np.sort(leverages(span.sample, root)[1])
    share = plan.pool / K
    share += 2 * np.sqrt(share / len(usual)) + 1 / len(usual)  # too many rows are trimmed, too few would cost a pass
    cut = -1.0 if share >= 1 else float(usual[int((1 - share) * (len(usual) - 1))])
    most = max(64, plan.pool)
    active = int((cache.weights > 0).sum())
    for kind in (narrow, np.dtype(np.float64)):
        kernel = _Leverages(
            span.transform @ root.T, span.transform @ cache.missing, cut, most, plan.pool, np.dtype(kind)
        )
        found: _Found = reader.sweep(kernel, _Found.__add__, "leverages", active).settled(cut)
        certificate = found.top / span.rank
        reader.certify(certificate)
        if kind == np.float64 or not cache.spans:
            break
        again = leverages(found.joined()[1].astype(np.float64) @ span.transform, root)[1].max() / span.rank
        if certificate > 1 + max(tolerance, COARSE) and abs(again - certificate) < COARSE * certificate:
            break
    return found, certificate


def _solution(
    source: Source, span: _Span, cache: _Cache, certificate: float, tolerance: float, trace: tuple[Pass, ...]
) -> Solution:
    kept = np.flatnonzero(cache.weights)
    kept = kept[np.argsort(cache.index[kept])]
    rows, weights, coordinates = cache.index[kept], cache.weights[kept], cache.x[kept]
    scaled = cache.rows[kept].astype(np.float64)
    costs = source.costs(rows)
    features = scaled if costs is None else scaled * np.sqrt(costs)[:, None]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        information = (scaled * weights[:, None]).T @ scaled
    return Solution(
        rows=rows,
        weights=weights,
        certificate=certificate,
        rank=span.rank,
        features=features,
        coordinates=coordinates,
        transform=span.transform,
        information=information,
        costs=costs,
        tolerance=tolerance,
        trace=trace,
    )
