"""One term out of many, nobody knows which: each is weighed by what it would explain.

f = .. + b t with b ~ N(0, c σ²), t one of p terms, all equally likely beforehand. M is the precision that everything
else leaves, an intercept included, and L the sum of squares W + Q that it leaves. With v = t'Mt and u = t'My the term
explains c u² / (1 + c v) of L, and (Eq. 4 of docs/algorithms/auto.md)

    log evidence = −½ log(1 + c v) − ½ n log(1 − c u² / ((1 + c v) L)),    b ~ N(c u / (1 + c v), σ² c / (1 + c v)).
"""

from dataclasses import dataclass

import numpy as np

from bestarm.core import Array

NOTHING = 1e-15  # of what is left: a term that explains all of it must not make a logarithm infinite


@dataclass(frozen=True)
class Terms:
    """What the rewards say of p terms of which one counts, f = .. + b t: of each `(..., p)`, and of all `(...)`."""

    weight: Array  # the chance that it is this one
    mean: Array  # of b, if it is
    variance: Array  # of b, in units of σ²
    left: Array  # of the sum of squares, on average
    gain: Array  # log evidence for there being one
    scale: Array  # the sum of the evidence of all, as a logarithm

    def moments(self, noise: Array) -> tuple[Array, Array]:
        """Return the mean `(..., p)` of all b and their covariance `(..., p, p)` in units of σ², which is `noise`."""
        w, b = self.weight, self.mean
        mean = w * b
        square = w * (self.variance + b * b / noise[..., None])
        scaled = mean / noise[..., None]
        return mean, square[..., None] * np.eye(b.shape[-1], dtype=b.dtype) - mean[..., :, None] * scaled[..., None, :]


@dataclass(frozen=True)
class Each:
    """What the rewards say of each term by itself, `(..., p)`."""

    logs: Array  # log evidence for it
    after: Array  # the sum of squares that it leaves
    mean: Array  # of b
    variance: Array  # of b, in units of σ²

    @classmethod
    def of(cls, c: Array, v: Array, u: Array, left: Array, pulls: Array) -> "Each":
        """Return terms with v = t'Mt and u = t'My, and the `left` sum of squares L after n `pulls`, `(...)`."""
        c, L = c[..., None], left[..., None]
        shrunk = 1 + c * v
        after = np.maximum(L - c * u * u / shrunk, NOTHING * L)
        logs = -np.log(shrunk) / 2 - pulls[..., None] / 2 * np.log(after / L)  # Eq. 4
        return cls(logs, after, c * u / shrunk, c / shrunk)

    def mixed(self, some: Array, left: Array, unseen: int = 0) -> Terms:
        """Return all together; only `some` are terms, the others are 0 for all arms. Nothing was seen of `unseen` more.

        `left` `(...)` is the sum of squares L.
        """
        most = np.max(np.where(some, self.logs, 0.0 if unseen else -np.inf), axis=-1, keepdims=True)
        most = np.where(np.isfinite(most), np.maximum(most, 0.0) if unseen else most, 0.0)
        odds = np.where(some, np.exp(np.where(some, self.logs - most, 0.0)), 0.0)
        rest = unseen * np.exp(-most)
        p = some.astype(self.logs.dtype).sum(axis=-1, keepdims=True) + unseen
        total = np.where(p > 0, odds.sum(axis=-1, keepdims=True) + rest, 1.0)
        scale = most + np.log(total)
        gain = scale - np.log(np.where(p > 0, p, 1.0))
        weight = odds / total
        seen = np.sum(weight * self.after, axis=-1) + (rest / total)[..., 0] * left
        mixed = np.where(p[..., 0] > 0, seen, left)
        return Terms(weight, self.mean, self.variance, mixed, gain[..., 0], scale[..., 0])


def weighed(some: Array, c: Array, v: Array, u: Array, left: Array, pulls: Array) -> Terms:
    """Return what `Each` says of terms, and all together."""
    return Each.of(c, v, u, left, pulls).mixed(some, left)
