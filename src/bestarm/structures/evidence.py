"""How much the rewards say for each hypothesis.

With counts N, means y, the scatter W within arms and A = S + diag(1/N) on the arms pulled, σ² integrated out,

    log evidence = −½ log det A − ½ n log(W + Q) [− ½ log(n + 1) with an intercept],    Q = r' A⁻¹ r,

where r is y less the intercept by generalised least squares. One Cholesky factor of a matrix of the size of the
features, bordered by 1 and y, gives log det A and Q at once.
"""

from dataclasses import dataclass

from bestarm.core import Array, Tally, namespace
from bestarm.linalg import raised
from bestarm.structures.bases import Base
from bestarm.structures.hypotheses import Hypothesis, Structures
from bestarm.structures.terms import weighed

FLOOR = 1e-12  # of the sum of squares: rewards without noise must not make a logarithm infinite


@dataclass(frozen=True)
class Data:
    """What is known of some arms, with the features of those arms in every base."""

    counts: Array
    means: Array
    within: Array  # Σ (reward − mean of its arm)², (...)
    squares: Array  # Σ reward², (...)
    bases: dict[str, Base]

    @classmethod
    def of(cls, known: Tally, bases: dict[str, Base]) -> "Data":
        """Return the data of a tally `(..., K)`."""
        xp = namespace(known.sums)
        means = known.sums / xp.maximum(known.counts, xp.ones_like(known.counts))
        within = xp.maximum(xp.sum(known.squares - known.sums * means, axis=-1), 0.0)
        return cls(known.counts, means, within, xp.sum(known.squares, axis=-1), bases)

    @property
    def pulls(self) -> Array:
        """The number of rewards, `(...)`."""
        return namespace(self.counts).sum(self.counts, axis=-1)

    @property
    def centred(self) -> Array:
        """The means `(..., K)` of arms less that of all rewards."""
        xp = namespace(self.means)
        n = self.pulls
        return self.means - (xp.sum(self.counts * self.means, axis=-1) / xp.maximum(n, xp.ones_like(n)))[..., None]

    def floor(self, intercept: bool) -> Array:
        """Return the least `(...)` the sum of squares left counts as, in proportion to what there was to explain."""
        if not intercept:
            return FLOOR * self.squares + 1e-290
        around = self.within + namespace(self.counts).sum(self.counts * self.centred**2, axis=-1)
        return FLOOR * around + 1e-290

    def own(self, bases: tuple[str, ...], scales: tuple[Array, ...], own: Array | float) -> Array:
        """Return the variance `(..., K)` of what each arm has of its own, in units of σ²."""
        total = namespace(self.counts).zeros_like(self.counts) + own
        for name, scale in zip(bases, scales, strict=True):
            total = total + scale[..., None] * self.bases[name].missing
        return total


def evidence(made: Structures, data: Data) -> tuple[Array, Array]:
    """Return log evidence with log prior, and the estimate of σ², both `(..., hypotheses)`."""
    xp = namespace(data.means)
    n = data.pulls
    centred, floors = data.centred, [data.floor(intercept) for intercept in (False, True)]
    shared: dict[object, tuple[Array, Array, Array]] = {}
    placed: dict[object, Placed] = {}
    settled: dict[object, list[Settled]] = {}
    logs, variances = [], []
    for h in made.hypotheses:
        own = data.own(h.bases, h.scales, h.own)
        exact = not any(bool(xp.any(data.bases[name].missing > 0)) for name in h.bases)
        key = (h.bases, h.own, h.intercept)
        if key not in shared or not exact:
            weight = data.counts / (1 + data.counts * own)
            tail = [xp.ones_like(data.means), centred] if h.intercept else [data.means]
            parts = [data.bases[name].features for name in reversed(h.bases)] + [column[..., None] for column in tail]
            table = xp.concat(parts, axis=-1)
            half = table * xp.sqrt(weight)[..., None]
            gram = xp.matrix_transpose(half) @ half
            shared[key] = gram, xp.sum(xp.log(1 + data.counts * own), axis=-1) / 2, table
        gram, lost, table = shared[key]
        ridge, volume = _ridge(h, data, data.within + floors[h.intercept])
        done = settled.setdefault(key, []) if exact else []
        width = data.bases[h.bases[0]].features.shape[-1] if h.bases else 0
        half, left = _factored(h, width, gram, ridge, done)
        value = h.log_prior - lost - volume - half - n / 2 * xp.log(left)
        if h.term is not None and h.size is not None:
            at = placed.get((h.term, key))
            if at is None or not _same(at.scales, h.scales):
                at = placed[h.term, key] = _placed(h.scales, data.bases[h.term].features, data, table, gram, ridge)
            found = weighed(at.some, h.size, at.apart, at.along, left, n)
            value, left = value + found.gain, found.left
        if h.intercept:
            value = value - xp.log(n + 1) / 2
        logs.append(value)
        variances.append(left / xp.maximum(n - int(h.intercept), xp.ones_like(n)))
    return xp.stack(logs, axis=-1), xp.stack(variances, axis=-1)


@dataclass(frozen=True)
class Placed:
    """Terms t beside bases at these `scales`, M the precision that bases and intercept leave of N; all `(..., p)`."""

    scales: tuple[Array, ...]
    some: Array  # which are terms at all
    apart: Array  # t' M t
    along: Array  # t' M y


def _placed(scales: tuple[Array, ...], t: Array, data: Data, table: Array, gram: Array, ridge: Array) -> Placed:
    """Return the terms t `(..., K, p)` beside the bases; `table` has the bases, 1 and y."""
    xp = namespace(gram)
    weighted = data.counts[..., None] * t
    cross = xp.matrix_transpose(table) @ weighted
    apart, along = xp.sum(weighted * t, axis=-2), cross[..., -1, :]
    width = gram.shape[-1] - 1
    if width > 0:
        solved = xp.linalg.inv(raised(gram, ridge)[..., :width, :width]) @ cross[..., :width, :]
        apart = xp.maximum(apart - xp.sum(cross[..., :width, :] * solved, axis=-2), 0.0)
        along = along - (gram[..., -1:, :width] @ solved)[..., 0, :]
    return Placed(scales, xp.any(t != 0, axis=-2), apart, along)


def _same(one: tuple[Array, ...], two: tuple[Array, ...]) -> bool:
    return all(bool(namespace(a).all(a == b)) for a, b in zip(one, two, strict=True))


@dataclass(frozen=True)
class Settled:
    """A matrix of which all bases but the first are done with, at these `scales`."""

    scales: tuple[Array, ...]
    rest: Array  # what that leaves of the first base and the border
    half: Array  # ½ log det of what is done


def _factored(h: Hypothesis, first: int, gram: Array, ridge: Array, settled: list[Settled]) -> tuple[Array, Array]:
    """Return ½ log det of the features' part of gram + diag(ridge), and what they leave of its last entry, W + Q.

    The first base has `first` features, which stand behind those of the others in the matrix. Hypotheses that differ
    in the scale of their first base only share the work on the others, kept in `settled`.
    """
    xp = namespace(gram)
    extra = 2 if h.intercept else 1
    others = h.scales[1:]
    for one in settled:
        if _same(one.scales, others):
            start = gram.shape[-1] - one.rest.shape[-1]
            pivots = xp.linalg.diagonal(xp.linalg.cholesky(raised(one.rest, ridge[..., start:])))
            return one.half + xp.sum(xp.log(pivots[..., :-extra]), axis=-1), pivots[..., -1] ** 2
    factor = xp.linalg.cholesky(raised(gram, ridge))
    pivots = xp.linalg.diagonal(factor)
    if others:
        start = gram.shape[-1] - extra - first
        corner = factor[..., start:, start:]
        rest = raised(corner @ xp.matrix_transpose(corner), -ridge[..., start:])
        settled.append(Settled(others, rest, xp.sum(xp.log(pivots[..., :start]), axis=-1)))
    return xp.sum(xp.log(pivots[..., :-extra]), axis=-1), pivots[..., -1] ** 2


def _ridge(h: Hypothesis, data: Data, last: Array) -> tuple[Array, Array]:
    """Return what is added to the diagonal, 1/c for each feature and `last` `(...)`; and ½ log c summed over them."""
    xp = namespace(last)
    parts, volume = [], xp.zeros_like(last)
    for name, scale in zip(reversed(h.bases), reversed(h.scales), strict=True):
        width = data.bases[name].features.shape[-1]
        parts.append((1 / scale)[..., None] * xp.ones((width,), dtype=last.dtype))
        volume = volume + width / 2 * xp.log(scale)
    if h.intercept:  # an intercept no data speak of must not stop the factorisation
        parts.append(1e-9 * xp.ones_like(last)[..., None])
    return xp.concat([*parts, last[..., None]], axis=-1), volume
