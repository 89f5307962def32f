"""The span of all rows of a table, coordinates in it, and a sample of rows that differ: one pass, seldom more."""

from dataclasses import dataclass

import numpy as np

from bestarm.core import AnyArray, namespace
from bestarm.designs.newton import Floats
from bestarm.designs.reading import Index, Reader, ReadingPlan
from bestarm.errors import ArmsError
from bestarm.tables.source import Rows, beside, to_host

SAFE = 1e-8  # smallest eigenvalue of the scaled X'X whose square root X'X still knows to half of all digits
LEAST = 1e-290  # size of a column up to which coordinates, which divide by it, are floats
VANISHING = 1e-200  # sums of squares below this may have lost digits to underflow


@dataclass(frozen=True)
class Span:
    """Coordinates x T of the span, `T` `(d, r)`, in which Σ_i x_i x_i' / K = I; and a sample of the rows."""

    transform: Floats
    index: Index
    rows: Rows
    sample: Floats

    @classmethod
    def of(cls, reader: Reader, plan: ReadingPlan, rng: np.random.Generator) -> "Span":
        """Return coordinates of the span of all rows, whatever the columns' scales are."""
        source = reader.source
        K, d = source.rows, source.columns
        positions = _positions(K, plan.sample, rng)
        gram, scale, rows = _added_up(reader, positions)
        squares = np.diag(gram)
        used = squares > 0
        if not used.any():
            raise ArmsError(f"{source.place(0)} and all others are zero: there is nothing to tell rows apart by")
        scale = scale * np.sqrt(np.where(used, squares / K, 1.0))
        for j in np.flatnonzero(scale < LEAST)[:1]:
            found = f"expected numbers beyond {LEAST}, found {scale[j]:.1e}; give them in another unit"
            raise ArmsError(f"column {source.names[j]!r}: {found}")
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
        first = distinct(rows)
        return cls(transform, positions[first], rows[first], rows[first].astype(np.float64) @ transform)

    @property
    def rank(self) -> int:
        """The dimension of the span, r."""
        return int(self.transform.shape[1])


def _added_up(reader: Reader, positions: Index) -> tuple[Floats, Floats, Rows]:
    """Return X'X of the columns over their scales, the scales, and the rows at `positions`."""
    source = reader.source
    moments = reader.sweep(_Moments(positions), _Sum.__add__, "moments")
    if moments.bad is not None:
        row, column, value = moments.bad
        name = source.names[column]
        raise ArmsError(f"{source.place(row)}, column {name!r}: expected a finite number, found {value}")
    gram, rows = moments.gram, np.concatenate(moments.rows)
    if np.isfinite(gram).all() and not ((np.diag(gram) < VANISHING) & (moments.peaks > 0)).any():
        return gram, np.ones(len(gram)), rows
    peaks = reader.sweep(_Peaks(), np.maximum, "column scales")
    scale = np.where(peaks > 0, peaks, 1.0)
    return reader.sweep(_Moments(positions[:0], scale), _Sum.__add__, "scaled moments").gram, scale, rows


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

    def __call__(self, block: AnyArray, start: int) -> _Sum:
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


def _not_finite(block: AnyArray, start: int) -> tuple[int, int, float] | None:
    values = to_host(block)
    for row, column in np.argwhere(~np.isfinite(values))[:1]:
        return start + int(row), int(column), float(values[row, column])
    return None


@dataclass(frozen=True)
class _Peaks:
    """Return max |x_j| of each column `(d,)`."""

    def __call__(self, block: AnyArray, start: int) -> Floats:
        xp = namespace(block)
        return np.asarray(to_host(xp.max(xp.abs(block), axis=0)), dtype=np.float64)


@dataclass(frozen=True)
class _Triangle:
    """Return R of the QR factorisation of the scaled rows, which knows the small singular values that X'X forgets."""

    scale: Floats

    def __call__(self, block: AnyArray, start: int) -> Floats:
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
