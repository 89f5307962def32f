"""What a hypothesis makes of the rewards: a normal posterior, held in features, for any arms."""

from dataclasses import dataclass, replace

from bestarm.core import Array, namespace
from bestarm.linalg import matvec
from bestarm.structures.bases import Base
from bestarm.structures.evidence import Data
from bestarm.structures.terms import weighed

DIRECTIONS = 4  # of the coefficients of a base, in which an arm's variance is bounded by what it is


@dataclass(frozen=True)
class Posterior:
    """The posterior of one hypothesis, in units of σ², from which that of any arms follows."""

    names: tuple[str, ...]
    roots: tuple[Array, ...]
    inverse: Array | None  # of I + Φ'NΦ, (..., p, p), Φ the features times √c
    slope: Array | None  # what 1 says of the coefficients, (..., p)
    shift: Array | None  # what y says of them
    intercept: Array  # (...)
    spread: Array  # its variance, (...)
    term: "Term | None" = None

    def arms(self, bases: dict[str, Base], counts: Array, means: Array, own: Array) -> "Outlook":
        """Return what is thought of arms with these features, `counts`, `means` and `own` variances `(..., m)`."""
        xp = namespace(counts)
        one = xp.ones_like(counts)
        if self.inverse is None:
            table, smooth, level = None, xp.zeros_like(counts), one
        else:
            table = _table(self.names, self.roots, bases)
            smooth = matvec(table, self.shift)
            level = one - matvec(table, self.slope)
        inverse = self.inverse
        if self.term is not None:
            beside = self.term.beside(bases, table, level)
            smooth = smooth + matvec(beside, self.term.mean)
            table = beside if table is None else namespace(beside).concat([table, beside], axis=-1)
            inverse = self.term.covariance if inverse is None else _blocks(inverse, self.term.covariance)
        kept = 1 / (1 + counts * own)  # the share of the hypothesis in an arm's mean; the rest is its own
        mean = (1 - kept) * means + kept * (smooth + self.intercept[..., None] * level)
        return Outlook(mean, table, inverse, level, self.spread, kept, own * kept)

    def bounds(self, bases: dict[str, Base], counts: Array, means: Array, own: Array) -> tuple[Array, Array]:
        """Return the means `(..., m)` of arms, and what their variances do not exceed, in one pass over the features.

        With λ₁ ≥ λ₂ ≥ .. the eigenvalues of the covariance A of a base's coefficients, v those vectors and x an arm's
        features, x'Ax ≤ Σ_{i ≤ r} (λᵢ − λᵣ₊₁) (vᵢ'x)² + λᵣ₊₁ |x|². Deviations of several bases add up at most.
        """
        if self.term is not None or self.inverse is None or self.shift is None or self.slope is None:
            look = self.arms(bases, counts, means, own)
            return look.mean, look.variance
        xp = namespace(counts)
        smooth, turned, deviation = (xp.zeros_like(counts) for _ in range(3))
        start = 0
        for name, root in zip(self.names, self.roots, strict=True):
            base = bases[name]
            width = base.features.shape[-1]
            part = slice(start, start + width)
            start += width
            values, vectors = xp.linalg.eigh(self.inverse[..., part, part])
            few = min(DIRECTIONS, width - 1)
            rest = values[..., width - few - 1]
            high = xp.sqrt(xp.maximum(values[..., width - few :] - rest[..., None], 0.0))
            columns = [
                self.shift[..., part, None],
                self.slope[..., part, None],
                vectors[..., width - few :] * high[..., None, :],
            ]
            seen = base.features @ (root[..., None, None] * xp.concat(columns, axis=-1))
            smooth, turned = smooth + seen[..., 0], turned + seen[..., 1]
            squared = xp.vecdot(seen[..., 2:], seen[..., 2:]) if few else xp.zeros_like(counts)
            squared = squared + (rest * root * root)[..., None] * base.squared
            deviation = deviation + xp.sqrt(xp.maximum(squared, 0.0))
        level = 1 - turned
        kept = 1 / (1 + counts * own)
        mean = (1 - kept) * means + kept * (smooth + self.intercept[..., None] * level)
        total = self.spread[..., None] * level * level + deviation * deviation
        return mean, kept * kept * total + own * kept


@dataclass(frozen=True)
class Term:
    """What is thought of the coefficients of many terms of which one counts, and what each changes in the rest."""

    name: str
    mean: Array  # (..., p)
    covariance: Array  # (..., p, p)
    slope: Array | None  # what each says of the coefficients of the bases, (..., q, p)
    level: Array  # what it says of the intercept, (..., p)

    def beside(self, bases: dict[str, Base], table: Array | None, level: Array) -> Array:
        """Return the terms `(..., m, p)` less what the bases, and the intercept, make up for."""
        found = bases[self.name].features - level[..., None] * self.level[..., None, :]
        return found if table is None else found - table @ self.slope


def _blocks(one: Array, two: Array) -> Array:
    """Return the matrix with blocks `one` and `two` on its diagonal."""
    xp = namespace(one)
    zero = xp.zeros((*one.shape[:-1], two.shape[-1]), dtype=one.dtype)
    top = xp.concat([one, zero], axis=-1)
    return xp.concat([top, xp.concat([xp.matrix_transpose(zero), two], axis=-1)], axis=-2)


@dataclass(frozen=True)
class Outlook:
    """Means `(..., m)` of some arms, with what their covariance is made of."""

    mean: Array
    table: Array | None
    inverse: Array | None
    level: Array
    spread: Array
    kept: Array
    own: Array

    @property
    def variance(self) -> Array:
        """The variances `(..., m)`."""
        xp = namespace(self.mean)
        total = self.spread[..., None] * self.level * self.level
        if self.table is not None:
            total = total + xp.vecdot(self.table @ self.inverse, self.table)
        return self.kept * self.kept * total + self.own

    @property
    def covariance(self) -> Array:
        """The covariance `(..., m, m)`."""
        xp = namespace(self.mean)
        tilted = self.level * self.kept
        total = (self.spread[..., None] * tilted)[..., :, None] * tilted[..., None, :]
        if self.table is not None:
            table = self.table * self.kept[..., None]
            total = total + (table @ self.inverse) @ xp.matrix_transpose(table)
        return total + self.own[..., None] * xp.eye(self.own.shape[-1], dtype=self.own.dtype)

    @property
    def root(self) -> Array:
        """L `(..., m, p)` for which the covariance is L L' + diag(own): draws need no matrix as large as the arms."""
        xp = namespace(self.mean)
        shift = (xp.sqrt(self.spread)[..., None] * self.level * self.kept)[..., None]
        if self.table is None:
            return shift
        values, vectors = xp.linalg.eigh((self.inverse + xp.matrix_transpose(self.inverse)) / 2)
        half = vectors * xp.sqrt(xp.maximum(values, 0.0))[..., None, :]
        return xp.concat([(self.table * self.kept[..., None]) @ half, shift], axis=-1)


def _table(names: tuple[str, ...], roots: tuple[Array, ...], bases: dict[str, Base]) -> Array:
    pairs = zip(names, roots, strict=True)
    parts = [bases[name].features * root[..., None, None] for name, root in pairs]
    return namespace(parts[0]).concat(parts, axis=-1)


def posterior(
    names: tuple[str, ...],
    scales: tuple[Array, ...],
    own: Array,
    intercept: bool,
    data: Data,
    term: str | None = None,
    size: Array | None = None,
) -> Posterior:
    """Return the posterior of a hypothesis given data; `own` `(..., K)` includes what its bases leave out.

    Where one of many terms counts, it is the normal distribution with the mean and covariance of the mixture over them.
    """
    xp = namespace(data.means)
    weight = data.counts / (1 + data.counts * own)
    one = xp.ones_like(data.means)
    roots = tuple(xp.sqrt(scale) for scale in scales)
    inverse, slope, shift, level, smooth = None, None, None, one, xp.zeros_like(one)
    if names:
        table = _table(names, roots, data.bases)
        weighted = table * weight[..., None]
        transposed = xp.matrix_transpose(weighted)
        inverse = xp.linalg.inv(transposed @ table + xp.eye(table.shape[-1], dtype=table.dtype))
        slope = matvec(inverse, matvec(transposed, one))
        shift = matvec(inverse, matvec(transposed, data.means))
        level, smooth = one - matvec(table, slope), matvec(table, shift)
    zero = xp.zeros_like(data.within)
    level_at, spread = zero, zero
    information = xp.sum(weight * level, axis=-1) + 1e-9
    if intercept:
        level_at, spread = xp.sum(weight * (data.means - smooth), axis=-1) / information, 1 / information
    found = Posterior(names, roots, inverse, slope, shift, level_at, spread)
    if term is None or size is None:
        return found
    t = data.bases[term].features
    beside, turned = t, None
    if names:
        turned = inverse @ (transposed @ t)
        beside = t - table @ turned
    lifted = xp.zeros_like(t[..., 0, :])
    if intercept:
        lifted = xp.sum(weight[..., None] * beside, axis=-2) / information[..., None]
        beside = beside - level[..., None] * lifted[..., None, :]
    off = weight * (data.means - smooth - level * level_at[..., None])
    apart = xp.maximum(xp.sum(weight[..., None] * beside * t, axis=-2), 0.0)
    left = data.within + xp.sum(off * (data.means - level_at[..., None]), axis=-1)
    left = xp.maximum(left, data.floor(intercept))
    terms = weighed(xp.any(t != 0, axis=-2), size, apart, matvec(xp.matrix_transpose(t), off), left, data.pulls)
    noise = terms.left / xp.maximum(data.pulls - int(intercept), xp.ones_like(left))
    return replace(found, term=Term(term, *terms.moments(noise), turned, lifted))
