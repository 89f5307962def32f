"""One pass over a table for the leverages of all rows: the largest, which certifies, and the rows worth holding."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bestarm.core import AnyArray, namespace
from bestarm.designs.newton import Floats, leverages
from bestarm.designs.pool import Cache
from bestarm.designs.reading import Index, Reader, ReadingPlan
from bestarm.designs.span import Span
from bestarm.tables.source import Rows, beside, to_host

COARSE = 1e-5  # relative error up to which leverages in float32 are good enough to choose rows by


@dataclass(frozen=True)
class PassResult:
    """The largest leverage and where it is, at most `2 most` rows of large leverage, and extremes along directions."""

    top: float
    row: int
    most: int
    pieces: tuple[tuple[Index, Rows, Floats], ...]
    count: int
    extremes: tuple[Floats, Index, Rows]

    def __add__(self, other: "PassResult") -> "PassResult":
        top, row = max((self.top, -self.row), (other.top, -other.row))
        pieces, count = self.pieces + other.pieces, self.count + other.count
        better = other.extremes[0] > self.extremes[0]
        extremes = (
            np.where(better, other.extremes[0], self.extremes[0]),
            np.where(better, other.extremes[1], self.extremes[1]),
            np.where(better[:, None], other.extremes[2], self.extremes[2]),
        )
        both = PassResult(top, -row, self.most, pieces, count, extremes)
        return both if count <= 2 * self.most else both.trimmed()

    def trimmed(self) -> "PassResult":
        """Return the `most` rows of largest leverage."""
        index, rows, g = self.pieces_joined()
        best = np.sort(np.argpartition(-g, self.most - 1)[: self.most])
        return replace(self, pieces=((index[best], rows[best], g[best]),), count=len(best))

    def settled(self, cut: float) -> "PassResult":
        """Return the `most` rows above `cut`, and the first in any case: what blocks there were leaves no trace."""
        index, rows, g = (self.trimmed() if self.count > self.most else self).pieces_joined()
        kept = g >= min(cut, self.top)
        return replace(self, pieces=((index[kept], rows[kept], g[kept]),), count=int(kept.sum()))

    def pieces_joined(self) -> tuple[Index, Rows, Floats]:
        """Return where the rows of large leverage are, the rows, and their leverages."""
        index, rows, g = (np.concatenate(some) for some in zip(*self.pieces, strict=True))
        return index, rows, g

    def joined(self) -> tuple[Index, Rows]:
        """Return where all rows are that were kept, extremes included, and the rows `(n, d)` as read."""
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

    def __call__(self, block: AnyArray, start: int) -> PassResult:
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
        return PassResult(top, start + row, self.pool, (piece,), len(above), self._extremes(xp, wide, block, start))

    def _extremes(self, xp: Any, wide: AnyArray, block: AnyArray, start: int) -> tuple[Floats, Index, Rows]:
        if not self.directions.shape[1]:
            return np.zeros(0), np.zeros(0, np.int64), np.zeros((0, block.shape[1]))
        along = xp.abs(wide @ beside(self.directions, wide))
        at = to_host(xp.argmax(along, axis=0)).astype(np.int64)
        values = to_host(xp.max(along, axis=0)).astype(np.float64)
        return values, at + start, to_host(xp.take(block, beside(at, block), axis=0))


def all_leverages(
    reader: Reader, span: Span, plan: ReadingPlan, cache: Cache, tolerance: float
) -> tuple[PassResult, float]:
    """Read the table once and return what was found with max g / r.

    A table of float32 is read again in float64 to certify a design, and where float32 has lost too many digits.
    """
    root = cache.root
    K, narrow = reader.source.rows, reader.source.dtype
    usual = np.sort(leverages(span.sample, root))
    share = plan.pool / K
    share += 2 * np.sqrt(share / len(usual)) + 1 / len(usual)  # too many rows are trimmed, too few would cost a pass
    cut = -1.0 if share >= 1 else float(usual[int((1 - share) * (len(usual) - 1))])
    most = max(64, plan.pool)
    active = int((cache.weights > 0).sum())
    for kind in (narrow, np.dtype(np.float64)):
        kernel = _Leverages(
            span.transform @ root.T, span.transform @ cache.missing, cut, most, plan.pool, np.dtype(kind)
        )
        found: PassResult = reader.sweep(kernel, PassResult.__add__, "leverages", active).settled(cut)
        certificate = found.top / span.rank
        reader.certify(certificate)
        if kind == np.float64 or not cache.spans:
            break
        again = leverages(found.joined()[1].astype(np.float64) @ span.transform, root).max() / span.rank
        if certificate > 1 + max(tolerance, COARSE) and abs(again - certificate) < COARSE * certificate:
            break
    return found, certificate
