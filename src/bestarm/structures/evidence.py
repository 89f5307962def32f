"""How much the rewards say for each hypothesis.

With counts N, means y, the scatter W within arms and A = S + diag(1/N) on the arms pulled, σ² integrated out,

    log evidence = −½ log det A − ½ n log(W + Q) [− ½ log(n + 1) with an intercept],    Q = r' A⁻¹ r,

where r is y less the intercept by generalised least squares. One Cholesky factor of a matrix of the size of the
features, bordered by 1 and y, gives log det A and Q at once.
"""

from dataclasses import dataclass

from bestarm.core import Array, Tally, namespace
from bestarm.linalg import one_hot, raised
from bestarm.structures.bases import Base
from bestarm.structures.hypotheses import Hypothesis, Structures

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
    overall = xp.sum(data.counts * data.means, axis=-1) / xp.maximum(n, xp.ones_like(n))
    centred = data.means - overall[..., None]
    around = data.within + xp.sum(data.counts * centred * centred, axis=-1)
    shared: dict[object, tuple[Array, Array]] = {}
    logs, variances = [], []
    for h in made.hypotheses:
        own = data.own(h.bases, h.scales, h.own)
        exact = not any(bool(xp.any(data.bases[name].missing > 0)) for name in h.bases)
        key = (h.bases, h.own, h.intercept)
        if key not in shared or not exact:
            weight = data.counts / (1 + data.counts * own)
            tail = [xp.ones_like(data.means), centred] if h.intercept else [data.means]
            parts = [data.bases[name].features for name in h.bases] + [column[..., None] for column in tail]
            table = xp.concat(parts, axis=-1)
            gram = xp.matrix_transpose(table) @ (table * weight[..., None])
            shared[key] = gram, xp.sum(xp.log(1 + data.counts * own), axis=-1) / 2
        gram, lost = shared[key]
        extra = 2 if h.intercept else 1
        size = gram.shape[-1] - extra
        total = around if h.intercept else data.squares
        one = xp.ones_like(gram[..., 0, :])
        last = one_hot(xp.asarray(gram.shape[-1] - 1), gram.shape[-1], gram.dtype)
        ridge, volume = _ridge(h, data, xp.zeros_like(one[..., :extra]))
        ridge = ridge + last * (data.within + FLOOR * total + 1e-290)[..., None]
        if h.intercept:  # an intercept no data speak of must not stop the factorisation
            ridge = ridge + 1e-9 * one_hot(xp.asarray(size), gram.shape[-1], gram.dtype)
        pivots = xp.linalg.diagonal(xp.linalg.cholesky(raised(xp.asarray(gram, copy=True), ridge)))
        lost = lost + volume
        left = pivots[..., -1] * pivots[..., -1]  # W + Q
        value = h.log_prior - lost - xp.sum(xp.log(pivots[..., :size]), axis=-1) - n / 2 * xp.log(left)
        if h.intercept:
            value = value - xp.log(n + 1) / 2
        logs.append(value)
        variances.append(left / xp.maximum(n - int(h.intercept), xp.ones_like(n)))
    return xp.stack(logs, axis=-1), xp.stack(variances, axis=-1)


def _ridge(h: Hypothesis, data: Data, border: Array) -> tuple[Array, Array]:
    """Return 1/c for every feature with the `border` `(..., extra)` behind, and Σ ½ log c over the features."""
    xp = namespace(border)
    parts, volume = [], xp.zeros_like(border[..., 0])
    for name, scale in zip(h.bases, h.scales, strict=True):
        width = data.bases[name].features.shape[-1]
        parts.append((1 / scale)[..., None] * xp.ones((width,), dtype=border.dtype))
        volume = volume + width / 2 * xp.log(scale)
    return xp.concat([*parts, border], axis=-1), volume
