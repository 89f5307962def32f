"""How much the rewards say for each hypothesis.

With counts N, means y, the scatter W within arms and A = S + diag(1/N) on the arms pulled, σ² integrated out (Eq. 3 of
docs/algorithms/auto.md),

    log evidence = −½ log det A − ½ n log(W + Q) [− ½ log(n + 1) with an intercept],    Q = r' A⁻¹ r,

where r is y less the intercept by generalised least squares. With n_k = N_k / (1 + N_k τ_k), one Cholesky factor of

    G + diag(1/c, ..),    G = [F 1 y]' diag(n_k) [F 1 y],

of the size of the features, bordered by 1 and y, gives log det A and Q at once.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bestarm.core import Array, Tally
from bestarm.linalg import add_to_diagonal
from bestarm.structures.bases import Base
from bestarm.structures.hypotheses import Hypothesis, Structures
from bestarm.structures.terms import weighed

FLOOR = 1e-12  # of the sum of squares: rewards without noise must not make a logarithm infinite


@dataclass(frozen=True)
class Data:
    """What is known of some arms, with the features of those arms in every base."""

    counts: Array
    means: Array
    within: Array  # W = Σ (reward − mean of its arm)², (...)
    squares: Array  # Σ reward², (...)
    bases: dict[str, Base]

    @classmethod
    def of(cls, known: Tally, bases: dict[str, Base]) -> "Data":
        """Return the data of a tally `(..., K)`."""
        return cls(known.counts, known.means, known.within.sum(axis=-1), known.squares.sum(axis=-1), bases)

    @cached_property
    def pulls(self) -> Array:
        """The number of rewards, `(...)`."""
        return self.counts.sum(axis=-1)

    @cached_property
    def level(self) -> Array:
        """The mean of all rewards, `(...)`."""
        return np.sum(self.counts * self.means, axis=-1) / np.maximum(self.pulls, 1.0)

    @cached_property
    def centred(self) -> Array:
        """The means `(..., K)` of arms less that of all rewards."""
        return self.means - self.level[..., None]

    def floor(self, intercept: bool) -> Array:
        """Return the least `(...)` the sum of squares left counts as, in proportion to what there was to explain."""
        if not intercept:
            return FLOOR * self.squares + 1e-290
        around = self.within + np.sum(self.counts * self.centred**2, axis=-1)
        return FLOOR * around + 1e-290

    def own(self, bases: tuple[str, ...], scales: tuple[Array, ...], own: Array | float) -> Array:
        """Return τ, the variance `(..., K)` of what each arm has of its own, in units of σ²."""
        tau = np.zeros_like(self.counts) + own
        for name, c in zip(bases, scales, strict=True):
            tau = tau + c[..., None] * self.bases[name].missing
        return tau


@dataclass(frozen=True)
class TermProducts:
    """Terms t beside bases at these `scales`, M the precision that bases and intercept leave of N; all `(..., p)`."""

    scales: tuple[Array, ...]
    some: Array  # which are terms at all
    v: Array  # t' M t
    u: Array  # t' M y


@dataclass(frozen=True)
class Schur:
    """The matrix that is left when all bases but the first are eliminated, at these `scales`."""

    scales: tuple[Array, ...]
    rest: Array  # of the first base and the border
    half: Array  # ½ log det of what is eliminated


def evidence(made: Structures, data: Data) -> tuple[Array, Array]:
    """Return log evidence with log prior, and the estimate of σ², both `(..., hypotheses)`."""
    n = data.pulls
    floors = [data.floor(intercept) for intercept in (False, True)]
    shared: dict[object, tuple[Array, Array, Array]] = {}
    projected: dict[object, TermProducts] = {}
    eliminated: dict[object, list[Schur]] = {}
    logs, variances = [], []
    for h in made.hypotheses:
        exact = not any(bool(np.any(data.bases[name].missing > 0)) for name in h.bases)
        key = (h.bases, h.own, h.intercept)
        if key not in shared or not exact:
            shared[key] = _bordered(h, data)
        G, half_own, table = shared[key]
        ridge, half_scales = _ridge(h, data, data.within + floors[h.intercept])
        half, left = _factored(h, data, G, ridge, eliminated.setdefault(key, []) if exact else [])
        value = h.log_prior - half_own - half_scales - half - n / 2 * np.log(left)  # Eq. 3
        if h.term is not None and h.size is not None:
            at = projected.get((h.term, key))
            if at is None or not _same(at.scales, h.scales):
                at = projected[h.term, key] = _projected(h.scales, data.bases[h.term].features, data, table, G, ridge)
            found = weighed(at.some, h.size, at.v, at.u, left, n)
            value, left = value + found.gain, found.left  # Eq. 4
        if h.intercept:
            value = value - np.log(n + 1) / 2
        logs.append(value)
        variances.append(left / np.maximum(n - int(h.intercept), 1.0))
    return np.stack(logs, axis=-1), np.stack(variances, axis=-1)


def _bordered(h: Hypothesis, data: Data) -> tuple[Array, Array, Array]:
    """Return G, ½ Σ log(1 + Nτ), and the columns [F 1 y] that G is made of."""
    N, tau = data.counts, data.own(h.bases, h.scales, h.own)
    border = [np.ones_like(N), data.centred] if h.intercept else [data.means]
    features = [data.bases[name].features for name in reversed(h.bases)]
    table = np.concat(features + [column[..., None] for column in border], axis=-1)
    half = table * np.sqrt(N / (1 + N * tau))[..., None]
    return half.mT @ half, np.log(1 + N * tau).sum(axis=-1) / 2, table


def _projected(scales: tuple[Array, ...], t: Array, data: Data, table: Array, G: Array, ridge: Array) -> TermProducts:
    """Return the terms t `(..., K, p)` beside the bases; `table` has the bases, 1 and y."""
    Nt = data.counts[..., None] * t
    cross = table.mT @ Nt
    v, u = np.sum(Nt * t, axis=-2), cross[..., -1, :]
    width = G.shape[-1] - 1
    if width > 0:
        solved = np.linalg.inv(add_to_diagonal(G, ridge)[..., :width, :width]) @ cross[..., :width, :]
        v = np.maximum(v - np.sum(cross[..., :width, :] * solved, axis=-2), 0.0)
        u = u - (G[..., -1:, :width] @ solved)[..., 0, :]
    return TermProducts(scales, np.any(t != 0, axis=-2), v, u)


def _same(one: tuple[Array, ...], two: tuple[Array, ...]) -> bool:
    return all(bool(np.all(a == b)) for a, b in zip(one, two, strict=True))


def _factored(h: Hypothesis, data: Data, G: Array, ridge: Array, eliminated: list[Schur]) -> tuple[Array, Array]:
    """Return ½ log det of the features' part of G + diag(ridge), and what they leave of its last entry, W + Q.

    The features of the first base stand behind those of the others in the matrix. Hypotheses that differ in the scale
    of their first base only share the work on the others, kept in `eliminated`.
    """
    extra = 2 if h.intercept else 1
    others = h.scales[1:]
    for one in eliminated:
        if _same(one.scales, others):
            start = G.shape[-1] - one.rest.shape[-1]
            pivots = np.linalg.diagonal(np.linalg.cholesky(add_to_diagonal(one.rest, ridge[..., start:])))
            return one.half + np.log(pivots[..., :-extra]).sum(axis=-1), pivots[..., -1] ** 2
    factor = np.linalg.cholesky(add_to_diagonal(G, ridge))
    pivots = np.linalg.diagonal(factor)
    if others:
        start = G.shape[-1] - extra - data.bases[h.bases[0]].features.shape[-1]
        corner = factor[..., start:, start:]
        rest = add_to_diagonal(corner @ corner.mT, -ridge[..., start:])
        eliminated.append(Schur(others, rest, np.log(pivots[..., :start]).sum(axis=-1)))
    return np.log(pivots[..., :-extra]).sum(axis=-1), pivots[..., -1] ** 2


def _ridge(h: Hypothesis, data: Data, last: Array) -> tuple[Array, Array]:
    """Return what is added to the diagonal, 1/c for each feature and `last` `(...)`; and ½ log c summed over them."""
    parts, half = [], np.zeros_like(last)
    for name, c in zip(reversed(h.bases), reversed(h.scales), strict=True):
        width = data.bases[name].features.shape[-1]
        parts.append((1 / c)[..., None] * np.ones(width, dtype=last.dtype))
        half = half + width / 2 * np.log(c)
    if h.intercept:  # an intercept no data speak of must not stop the factorisation
        parts.append(1e-9 * np.ones_like(last)[..., None])
    return np.concat([*parts, last[..., None]], axis=-1), half
