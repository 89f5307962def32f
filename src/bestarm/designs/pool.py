"""Rows held in memory and designs on them: those of a sample to begin with, then a pool of what passes found."""

from dataclasses import dataclass, replace

import numpy as np

from bestarm.designs.ascent import Ascent
from bestarm.designs.newton import Floats, Newton, multiplicative
from bestarm.designs.reading import Index, ReadingPlan
from bestarm.designs.span import Span, distinct
from bestarm.tables.source import Rows

ROUGH = 0.1  # gap to which a sample is solved: it is no more than a start
THIN = 1e-6  # eigenvalues of V below this are directions not spanned; at the optimum none is below 1/r
MIXED = 0.1  # share of the uniform design in V while the rows found so far do not span the space


@dataclass(frozen=True)
class Cache:
    """Rows in memory: where in the table they are, as read `(n, d)` and in coordinates `(n, r)`; a design on them.

    `missing` `(r, q)` are the directions in which V of this design is next to nothing.
    """

    index: Index
    rows: Rows
    x: Floats
    weights: Floats
    missing: Floats

    @property
    def spans(self) -> bool:
        """Whether the rows with a weight span the space."""
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


def sample_design(span: Span, plan: ReadingPlan) -> Cache:
    """Return a rough design on the sample."""
    few = min(len(span.sample), plan.starters)
    picked = np.linspace(0, len(span.sample) - 1, few).astype(np.int64)
    return _begin(span.index, span.rows, span.sample, picked, ROUGH)


def _begin(index: Index, rows: Rows, x: Floats, picked: Index, tolerance: float) -> Cache:
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
            return Cache(index, rows, x, _improved(x, w, tolerance), missing)
    return Cache(index, rows, x, w, missing)


def _improved(x: Floats, w: Floats, tolerance: float) -> Floats:
    return np.asarray(Ascent(Newton(), tolerance=tolerance, limit=200).improve(x, w, np.array(float(x.shape[1]))))


def pool_design(span: Span, cache: Cache, found: tuple[Index, Rows], tolerance: float) -> Cache:
    """Return the design of the rows that carry weight now together with those a pass found (where, and the rows)."""
    kept = np.flatnonzero(cache.weights) if cache.spans else np.arange(len(cache.x))
    new_index, new_rows = found
    index, rows = np.concatenate([cache.index[kept], new_index]), np.concatenate([cache.rows[kept], new_rows])
    first = distinct(rows, index)
    index, rows = index[first], rows[first]
    x = rows.astype(np.float64) @ span.transform
    if not cache.spans:
        return _begin(index, rows, x, np.arange(len(x)), tolerance / 4)
    w = np.zeros(len(x))
    w[: len(kept)] = cache.weights[kept]  # rows with a weight are distinct and come first
    return Cache(index, rows, x, _improved(x, w, tolerance / 4), cache.missing)


def narrowed(span: Span, cache: Cache, tolerance: float) -> tuple[Span, Cache]:
    """Give up directions of which even the extreme rows have next to nothing: they are rounding errors of the span."""
    q = cache.missing.shape[1]
    left = np.linalg.qr(cache.missing, mode="complete")[0][:, q:]
    smaller = replace(span, transform=span.transform @ left, sample=span.sample @ left)
    return smaller, _begin(cache.index, cache.rows, cache.x @ left, np.arange(len(cache.x)), tolerance / 4)
