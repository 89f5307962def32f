"""How much the rewards say for each hypothesis.

With counts N, means y, the scatter W within arms and A = S + diag(1/N) on the arms pulled, σ² integrated out (Eq. 3 of
docs/algorithms/auto.md),

    log evidence = −½ log det A − ½ n log(W + Q) [− ½ log(n + 1) with an intercept],    Q = r' A⁻¹ r,

where r is y less the intercept by generalised least squares. With n_k = N_k / (1 + N_k τ_k), one Cholesky factor of

    G + diag(1/c, ..),    G = [F 1 y]' diag(n_k) [F 1 y],

of the size of the features, bordered by 1 and y, gives log det A and Q at once.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from bestarm.core import Array, Tally
from bestarm.linalg import add_to_diagonal, matvec
from bestarm.structures.apart import above, explained
from bestarm.structures.bases import Base
from bestarm.structures.hypotheses import Hypothesis, Structures
from bestarm.structures.terms import Terms, weighed

FLOOR = 1e-12  # of the sum of squares: rewards without noise must not make a logarithm infinite
ROUNDING = 1e-28  # of the sum of squares about 0: what is left where all rewards are the same


@dataclass(frozen=True)
class Data:
    """What is known of some arms, with the features of those arms in every base."""

    counts: Array
    means: Array
    within: Array  # W = Σ (reward − mean of its arm)², (...)
    squares: Array  # Σ reward², (...)
    bases: dict[str, Base]
    unseen: int = 0  # arms of which nothing is known and that are not among these
    noise: Array | float = 0.0  # what the noise variance is known to be about `(...)`, 0 where it is not known

    @classmethod
    def of(cls, known: Tally, bases: dict[str, Base], unseen: int = 0, noise: Array | float = 0.0) -> "Data":
        """Return the data of a tally `(..., K)`."""
        within, squares = known.within.sum(axis=-1), known.squares.sum(axis=-1)
        return cls(known.counts, known.means, within, squares, bases, unseen, noise)

    @cached_property
    def pulls(self) -> Array:
        """The number of rewards, `(...)`."""
        return self.counts.sum(axis=-1)

    @cached_property
    def freedom(self) -> Array:
        """How many rewards tell of the noise `(...)`: twice as many as there are where it is known about."""
        return self.pulls * np.where(np.asarray(self.noise) > 0, 2.0, 1.0)

    def scattered(self, left: Array) -> Array:
        """Return the sum of squares `left` `(...)` with that of the rewards that stand for what is known of it."""
        return left + self.pulls * self.noise

    def variance(self, left: Array, intercept: bool) -> Array:
        """Return the estimate of σ² `(...)` from what is `left` of the sum of squares."""
        return left / np.maximum(self.freedom - int(intercept), 1.0)

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
        return FLOOR * around + ROUNDING * self.squares + 1e-290

    def own(self, bases: tuple[str, ...], scales: tuple[Array, ...], own: Array | float) -> Array:
        """Return τ, the variance `(..., K)` of what each arm has of its own, in units of σ²."""
        tau = np.zeros_like(self.counts) + own
        for name, c in zip(bases, scales, strict=True):
            tau = tau + c[..., None] * self.bases[name].missing
        return tau


@dataclass(frozen=True)
class LineFit:
    """What bases at some scales leave of the rewards: all that a term, or an arm apart, is weighed against."""

    half: Array  # ½ log det, `(...)`
    left: Array  # the sum of squares W + Q, (...)
    table: Array  # [F 1 y], (..., K, p + 1)
    G: Array
    ridge: Array

    @cached_property
    def inverse(self) -> Array:
        """The inverse of the features' part of G + diag(ridge), `(..., p, p)`."""
        width = self.G.shape[-1] - 1
        return np.linalg.inv(add_to_diagonal(self.G, self.ridge)[..., :width, :width])

    @cached_property
    def _apart(self) -> tuple[Array, Array]:
        """C₀ and the residual y − m₀ of every arm, `(..., K)`."""
        F, y = self.table[..., :-1], self.table[..., -1]
        return np.vecdot(F @ self.inverse, F), y - matvec(F, matvec(self.inverse, self.G[..., :-1, -1]))

    def apart(self, counts: Array) -> tuple[Array, Array]:
        """Return v and u of an arm apart, `(..., K)`."""
        return explained(counts, *self._apart)

    def terms(self, t: Array, counts: Array) -> tuple[Array, Array]:
        """Return v = t'Mt and u = t'My of terms t `(..., K, p)`, M what bases and intercept leave of N."""
        Nt = counts[..., None] * t
        cross = self.table.mT @ Nt
        v, u = np.sum(Nt * t, axis=-2), cross[..., -1, :]
        width = self.G.shape[-1] - 1
        if width > 0:
            solved = self.inverse @ cross[..., :width, :]
            v = np.maximum(v - np.sum(cross[..., :width, :] * solved, axis=-2), 0.0)
            u = u - (self.G[..., -1:, :width] @ solved)[..., 0, :]
        return v, u


@dataclass(frozen=True)
class Schur:
    """The matrix that is left when all bases but the first are eliminated, at these `scales`."""

    scales: tuple[Array, ...]
    rest: Array  # of the first base and the border
    half: Array  # ½ log det of what is eliminated


@dataclass
class Fits:
    """Fits of the bases of hypotheses to data, each made once."""

    data: Data
    floors: tuple[Array, Array]
    bordered: dict[object, tuple[Array, Array, Array]] = field(default_factory=dict)
    eliminated: dict[object, list[Schur]] = field(default_factory=dict)
    made: dict[object, LineFit] = field(default_factory=dict)
    projected: dict[object, tuple[Array, Array]] = field(default_factory=dict)

    def of(self, h: Hypothesis) -> tuple[LineFit, object]:
        """Return the fit of a hypothesis without a term or an arm apart, and what it is kept under."""
        scales = tuple(np.asarray(c).tobytes() for c in h.scales)
        key = (h.bases, h.own, h.intercept, scales)
        if key in self.made:
            return self.made[key], key
        data = self.data
        # what bases leave out weighs pulls by their scales, so the rest is shared by hypotheses with these the same
        partial = tuple(c for name, c in zip(h.bases, scales, strict=True) if np.any(data.bases[name].missing > 0))
        shared = (h.bases, h.own, h.intercept, partial)
        if shared not in self.bordered:
            self.bordered[shared] = _bordered(h, data)
        G, half_own, table = self.bordered[shared]
        ridge, half_scales = _ridge(h, data, data.within + self.floors[h.intercept])
        half, left = _factored(h, data, G, ridge, self.eliminated.setdefault(shared, []))
        self.made[key] = LineFit(half_own + half_scales + half, left, table, G, ridge)
        return self.made[key], key

    def beside(self, h: Hypothesis, fit: LineFit, key: object, left: Array) -> Terms | None:
        """Return what a term or an arm apart explains of what is `left` beside the bases; None where there is none."""
        data = self.data
        if h.apart is not None:
            v, u = fit.apart(data.counts)
            return above(h.apart, v, u, left, data.freedom).mixed(np.ones_like(v) > 0, left, data.unseen)
        if h.term is None or h.size is None:
            return None
        t = data.bases[h.term].features
        if (h.term, key) not in self.projected:
            self.projected[h.term, key] = fit.terms(t, data.counts)
        return weighed(np.any(t != 0, axis=-2), h.size, *self.projected[h.term, key], left, data.freedom)


def evidence(made: Structures, data: Data) -> tuple[Array, Array]:
    """Return log evidence with log prior, and the estimate of σ², both `(..., hypotheses)`."""
    fits = Fits(data, (data.floor(False), data.floor(True)))
    logs, variances = [], []
    for h in made.hypotheses:
        fit, key = fits.of(h)
        left = data.scattered(fit.left)
        value = h.log_prior + h.tested - fit.half - data.freedom / 2 * np.log(left)  # Eq. 3
        found = fits.beside(h, fit, key, left)
        if found is not None:
            value, left = value + found.gain, found.left  # Eq. 4
        if h.intercept:
            value = value - np.log(data.pulls + 1) / 2
        logs.append(value)
        variances.append(data.variance(left, h.intercept))
    return np.stack(logs, axis=-1), np.stack(variances, axis=-1)


def _bordered(h: Hypothesis, data: Data) -> tuple[Array, Array, Array]:
    """Return G, ½ Σ log(1 + Nτ), and the columns [F 1 y] that G is made of."""
    N, tau = data.counts, data.own(h.bases, h.scales, h.own)
    border = [np.ones_like(N), data.centred] if h.intercept else [data.means]
    features = [data.bases[name].features for name in reversed(h.bases)]
    table = np.concat(features + [column[..., None] for column in border], axis=-1)
    half = table * np.sqrt(N / (1 + N * tau))[..., None]
    return half.mT @ half, np.log(1 + N * tau).sum(axis=-1) / 2, table


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
