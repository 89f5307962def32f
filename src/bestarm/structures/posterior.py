"""What a hypothesis makes of the rewards: a normal posterior, held in features, for any arms.

With counts N, means y, n = N / (1 + Nτ), κ = 1 / (1 + Nτ) and Φ the features of all bases times √c, side by side (Eq. 5
of docs/algorithms/auto.md),

    A = (I + Φ'nΦ)⁻¹,    a = AΦ'n1,    b = AΦ'ny,    h = 1 − Φa,    μ = Σ n (y − Φb) / Σ n h,    ω = 1 / Σ n h,

    f ~ N(m, σ² C),    m = (1 − κ) y + κ (Φb + μh),    C = κ (ΦAΦ' + ω h h') κ + diag(κτ).

Without an intercept μ and ω are 0; with one, y is less the mean of all rewards, and m more by it. Sums are over the
arms the data are of; m and C may be of others.
"""

from dataclasses import dataclass, replace

import numpy as np

from bestarm.core import Array
from bestarm.linalg import matvec, row
from bestarm.posteriors import Normal
from bestarm.structures.apart import Alone, Apart, above, explained, fitted
from bestarm.structures.bases import Base
from bestarm.structures.evidence import Data
from bestarm.structures.terms import weighed

DIRECTIONS = 4  # of the coefficients of a base, in which an arm's variance is bounded by what it is


@dataclass(frozen=True)
class HypothesisPosterior:
    """The posterior of one hypothesis, in units of σ², from which that of any arms follows."""

    names: tuple[str, ...]  # of its bases
    roots: tuple[Array, ...]  # √c of each
    A: Array | None  # (..., p, p)
    a: Array | None  # (..., p)
    b: Array | None  # (..., p)
    mu: Array  # (...)
    omega: Array  # (...)
    level: Array  # that the means y are taken less of, (...): what is large in them must not round what is small
    term: "Term | None" = None
    apart: Apart | None = None

    def arms(self, bases: dict[str, Base], counts: Array, means: Array, own: Array) -> "Outlook":
        """Return what is thought of arms with these features, `counts`, `means` and τ, their `own`, `(..., m)`."""
        Phi, A = None, self.A
        smooth, h = np.zeros_like(counts), np.ones_like(counts)
        if A is not None:
            Phi = _features(self.names, self.roots, bases)
            smooth, h = matvec(Phi, self.b), 1 - matvec(Phi, self.a)
        if self.apart is not None and Phi is not None:
            return self._apart(self.apart, Phi, h, counts, means, smooth)
        if self.term is not None:
            beside = self.term.beside(bases, Phi, h)
            smooth = smooth + matvec(beside, self.term.mean)
            Phi = beside if Phi is None else np.concat([Phi, beside], axis=-1)
            A = self.term.covariance if A is None else _blocks(A, self.term.covariance)
        kappa, level = 1 / (1 + counts * own), self.level[..., None]
        m = level + (1 - kappa) * (means - level) + kappa * (smooth + self.mu[..., None] * h)  # Eq. 5
        return Outlook(m, Phi, A, h, self.omega, kappa, own * kappa)

    def _apart(self, apart: Apart, Phi: Array, h: Array, counts: Array, means: Array, smooth: Array) -> "ApartOutlook":
        """Return what is thought of arms one of which may be apart; the bases leave nothing to arms themselves."""
        level = self.level[..., None]
        P = np.concat([Phi, h[..., None]], axis=-1)
        found = apart.of(P, counts, means, level + smooth + self.mu[..., None] * h)
        zero, one = np.zeros_like(self.omega), np.ones_like(counts)
        mean = found.alone.without + found.moved
        wider = apart.A + apart.spread
        parts = (zero, one, found.own, apart.A, counts, found.more, found.moved, apart.noise, found.alone)
        return ApartOutlook(mean, P, wider, h, *parts)

    def bounds(self, bases: dict[str, Base], counts: Array, means: Array, own: Array) -> tuple[Array, Array]:
        """Return the means `(..., m)` of arms, and what their variances do not exceed, in one pass over the features.

        With λ₁ ≥ λ₂ ≥ .. the eigenvalues of the part of A that is a base's, v those vectors, x an arm's features and
        r = 4, x'Ax ≤ Σ_{i ≤ r} (λᵢ − λᵣ₊₁) (vᵢ'x)² + λᵣ₊₁ |x|² (Eq. 12). Deviations of several bases add up at most.
        """
        if self.term is not None or self.apart is not None or self.A is None or self.a is None or self.b is None:
            look = self.arms(bases, counts, means, own)
            return look.mean, look.variance
        smooth, tilt, deviation = (np.zeros_like(counts) for _ in range(3))
        start = 0
        for name, root in zip(self.names, self.roots, strict=True):
            base = bases[name]
            width = base.features.shape[-1]
            part = slice(start, start + width)
            start += width
            values, vectors = np.linalg.eigh(self.A[..., part, part])
            r = min(DIRECTIONS, width - 1)
            rest = values[..., width - r - 1]
            high = np.sqrt(np.maximum(values[..., width - r :] - rest[..., None], 0.0))
            v = vectors[..., width - r :] * high[..., None, :]
            columns = np.concat([self.b[..., part, None], self.a[..., part, None], v], axis=-1)
            seen = base.features @ (root[..., None, None] * columns)
            smooth, tilt = smooth + seen[..., 0], tilt + seen[..., 1]
            squared = np.vecdot(seen[..., 2:], seen[..., 2:]) if r else np.zeros_like(counts)
            squared = squared + (rest * root * root)[..., None] * base.squared  # Eq. 12
            deviation = deviation + np.sqrt(np.maximum(squared, 0.0))
        h = 1 - tilt
        kappa, level = 1 / (1 + counts * own), self.level[..., None]
        m = level + (1 - kappa) * (means - level) + kappa * (smooth + self.mu[..., None] * h)
        total = self.omega[..., None] * h * h + deviation * deviation
        return m, kappa * kappa * total + own * kappa


@dataclass(frozen=True)
class Term:
    """What is thought of the coefficients of many terms of which one counts, and what each changes in the rest."""

    name: str
    mean: Array  # (..., p)
    covariance: Array  # (..., p, p)
    slopes: Array | None  # AΦ'nt, what each says of the coefficients of the bases, (..., q, p)
    levels: Array  # what it says of the intercept, (..., p)

    def beside(self, bases: dict[str, Base], Phi: Array | None, h: Array) -> Array:
        """Return the terms `(..., m, p)` less what the bases, and the intercept, make up for."""
        found = bases[self.name].features - h[..., None] * self.levels[..., None, :]
        return found if Phi is None else found - Phi @ self.slopes


def _blocks(one: Array, two: Array) -> Array:
    """Return the matrix with blocks `one` and `two` on its diagonal."""
    zero = np.zeros((*one.shape[:-1], two.shape[-1]), dtype=one.dtype)
    return np.concat([np.concat([one, zero], axis=-1), np.concat([zero.mT, two], axis=-1)], axis=-2)


@dataclass(frozen=True)
class Outlook:
    """The posterior of some arms in units of σ²: their means `(..., m)`, and what their covariance C is made of."""

    mean: Array
    Phi: Array | None
    A: Array | None
    h: Array
    omega: Array
    kappa: Array
    own: Array  # κτ

    @property
    def variance(self) -> Array:
        """The variances `(..., m)`, the diagonal of C."""
        total = self.omega[..., None] * self.h * self.h
        if self.Phi is not None:
            total = total + np.vecdot(self.Phi @ self.A, self.Phi)
        return self.kappa * self.kappa * total + self.own

    @property
    def covariance(self) -> Array:
        """The covariance C `(..., m, m)`."""
        h = self.h * self.kappa
        C = (self.omega[..., None] * h)[..., :, None] * h[..., None, :]
        if self.Phi is not None:
            Phi = self.Phi * self.kappa[..., None]
            C = C + (Phi @ self.A) @ Phi.mT
        return C + self.own[..., None] * np.eye(self.own.shape[-1], dtype=self.own.dtype)  # Eq. 5

    def column(self, arm: Array) -> Array:
        """Return the covariances `(..., m)` of all means with that of `arm` `(...)`."""
        return row(self.covariance, arm)

    def draw(self, count: int, normal: Normal, noise: Array | float = 1.0) -> Array:
        """Return draws `(..., count, m)` of the means, σ² being `noise`, a number or `(count, 1)`."""
        root, own = self.root, self.own[..., None, :]
        off = normal((*root.shape[:-2], count, root.shape[-1])) @ root.mT
        if np.any(own > 0):
            off += np.sqrt(own) * normal(off.shape)
        return self.mean[..., None, :] + np.sqrt(noise) * off

    @property
    def root(self) -> Array:
        """L `(..., m, p)` for which the covariance is L L' + diag(own): draws need no matrix as large as the arms."""
        level = (np.sqrt(self.omega)[..., None] * self.h * self.kappa)[..., None]
        if self.Phi is None or self.A is None:
            return level
        values, vectors = np.linalg.eigh((self.A + self.A.mT) / 2)
        half = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
        return np.concat([(self.Phi * self.kappa[..., None]) @ half, level], axis=-1)


@dataclass(frozen=True)
class ApartOutlook(Outlook):
    """The same where one arm may be apart.   Eq. 13

    In `root`, which is for very many arms, what an arm has of its own, D, and what that changes in the rest are apart.
    """

    line: Array  # A, without what arms apart change in it
    counts: Array  # N
    more: Array  # z
    moved: Array  # d
    noise: Array  # σ²
    alone: Alone

    @property
    def variance(self) -> Array:
        assert self.Phi is not None
        off = (
            2 * self.own * self.counts * np.vecdot(self.Phi @ self.line, self.Phi)
            + self.moved**2 / self.noise[..., None]
        )
        return np.maximum(super().variance - off, 0.0)

    @property
    def covariance(self) -> Array:
        assert self.Phi is not None
        C0, d = (self.Phi @ self.line) @ self.Phi.mT, self.moved
        crossed = (self.own * self.counts)[..., :, None] * C0
        return super().covariance - crossed - crossed.mT - d[..., :, None] * (d / self.noise[..., None])[..., None, :]

    def draw(self, count: int, normal: Normal, noise: Array | float = 1.0) -> Array:
        """Return draws `(..., count, m)` of the means of all arms there are.

        With e normal and of covariance D − z z'/σ², which all is but for one direction, it is P√A γ + e − P A P'N e.
        """
        assert self.Phi is not None
        line, own = replace(self, A=self.line).root, np.sqrt(self.own)
        s = np.where(self.own > 0, self.more / np.where(self.own > 0, own, 1.0), 0.0) / np.sqrt(self.noise)[..., None]
        size = np.vecdot(s, s)[..., None]  # at most 1
        shrunk = (1 - np.sqrt(np.maximum(1 - size, 0.0))) / np.where(size > 0, size, 1.0)
        off = normal((*line.shape[:-2], count, line.shape[-1])) @ line.mT
        e = normal(off.shape)
        e = own[..., None, :] * (e - (shrunk * matvec(e, s))[..., None] * s[..., None, :])
        e = e - ((e * self.counts[..., None, :]) @ self.Phi @ self.line) @ self.Phi.mT
        return self.mean[..., None, :] + np.sqrt(noise) * (off + e)


def _features(names: tuple[str, ...], roots: tuple[Array, ...], bases: dict[str, Base]) -> Array:
    """Return Φ, the features of some bases times √c side by side."""
    parts = [bases[name].features * root[..., None, None] for name, root in zip(names, roots, strict=True)]
    return np.concat(parts, axis=-1)


def posterior(
    names: tuple[str, ...],
    scales: tuple[Array, ...],
    own: Array,
    intercept: bool,
    data: Data,
    term: str | None = None,
    size: Array | None = None,
    apart: Array | None = None,
) -> HypothesisPosterior:
    """Return the posterior of a hypothesis given data; `own` `(..., K)` is τ, what its bases leave out included.

    Where one of many terms counts, or one arm is apart by a variance `apart`, it is the normal distribution with the
    mean and covariance of the mixture over them.
    """
    y, level = (data.centred, data.level) if intercept else (data.means, np.zeros_like(data.within))
    n = data.counts / (1 + data.counts * own)
    roots = tuple(np.sqrt(c) for c in scales)
    A, a, b, Phi = None, None, None, None
    h, smooth = np.ones_like(y), np.zeros_like(y)
    if names:
        Phi = _features(names, roots, data.bases)
        Phi_n = (Phi * n[..., None]).mT
        A = np.linalg.inv(Phi_n @ Phi + np.eye(Phi.shape[-1], dtype=Phi.dtype))  # Eq. 5, up to ω
        a, b = matvec(A, matvec(Phi_n, np.ones_like(y))), matvec(A, matvec(Phi_n, y))
        h, smooth = 1 - matvec(Phi, a), matvec(Phi, b)
    mu, omega, information = np.zeros_like(data.within), np.zeros_like(data.within), None
    if intercept:
        information = np.sum(n * h, axis=-1) + 1e-9
        mu, omega = np.sum(n * (y - smooth), axis=-1) / information, 1 / information
    found = HypothesisPosterior(names, roots, A, a, b, mu, omega, level)
    r = n * (y - smooth - h * mu[..., None])
    rest = _Fitted(n, Phi, A, h, r, mu, information)
    if apart is not None:
        return replace(found, apart=rest.apart(apart, data))
    if term is None or size is None:
        return found
    return replace(found, term=rest.term(term, size, data))


@dataclass(frozen=True)
class _Fitted:
    """Bases and intercept as fitted to data, from which follows what a term beside them explains."""

    n: Array  # (..., K)
    Phi: Array | None
    A: Array | None
    h: Array
    r: Array  # n times what is left of the means, (..., K)
    mu: Array
    information: Array | None  # 1/ω, with an intercept

    @property
    def _intercept(self) -> bool:
        return self.information is not None

    def left(self, data: Data) -> Array:
        """Return the sum of squares that is left, `(...)`."""
        y = data.centred if self._intercept else data.means
        left = data.within + np.sum(self.r * (y - self.mu[..., None]), axis=-1)
        return data.scattered(np.maximum(left, data.floor(self._intercept)))

    def apart(self, size: Array, data: Data) -> Apart:
        """Return what is thought of an arm apart, of variance `size`."""
        omega = np.zeros_like(size) if self.information is None else 1 / self.information
        P = self.h[..., None] if self.Phi is None else np.concat([self.Phi, self.h[..., None]], axis=-1)
        A = omega[..., None, None] if self.A is None else _blocks(self.A, omega[..., None, None])
        C0, left = np.vecdot(P @ A, P), self.left(data)
        v, _ = explained(self.n, C0, self.r)
        some = above(size, v, self.r, left, data.freedom).mixed(np.ones_like(v) > 0, left, data.unseen)
        noise = data.variance(some.left, self._intercept)
        return fitted(size, some, P, A, self.n, (left, data.freedom, noise))

    def term(self, name: str, size: Array, data: Data) -> Term:
        """Return what is thought of the terms of that name, of variance `size` each."""
        t, n = data.bases[name].features, self.n[..., None]
        beside, slopes = t, None
        if self.Phi is not None:
            slopes = self.A @ ((self.Phi * n).mT @ t)
            beside = t - self.Phi @ slopes
        levels = np.zeros_like(t[..., 0, :])
        if self.information is not None:
            levels = np.sum(n * beside, axis=-2) / self.information[..., None]
            beside = beside - self.h[..., None] * levels[..., None, :]
        v, u = np.maximum(np.sum(n * beside * t, axis=-2), 0.0), matvec(t.mT, self.r)
        terms = weighed(np.any(t != 0, axis=-2), size, v, u, self.left(data), data.freedom)
        noise = data.variance(terms.left, self._intercept)
        return Term(name, *terms.moments(noise), slopes, levels)
