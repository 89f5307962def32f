"""One term out of many, nobody knows which: each is weighed by what it would explain."""

from dataclasses import dataclass

from bestarm.core import Array, namespace

NOTHING = 1e-15  # of what is left: a term that explains all of it must not make a logarithm infinite


@dataclass(frozen=True)
class Terms:
    """What the rewards say of p terms of which one counts, f = .. + b t: of each `(..., p)`, and of all `(...)`."""

    weight: Array  # the chance that it is this one
    mean: Array  # of b, if it is
    variance: Array  # of b, in units of σ²
    left: Array  # of the sum of squares, on average
    gain: Array  # log evidence for there being one

    def moments(self, noise: Array) -> tuple[Array, Array]:
        """Return the mean `(..., p)` of all b and their covariance `(..., p, p)` in units of σ², which is `noise`."""
        xp = namespace(self.mean)
        mean = self.weight * self.mean
        square = self.weight * (self.variance + self.mean * self.mean / noise[..., None])
        eye = xp.eye(mean.shape[-1], dtype=mean.dtype)
        return mean, square[..., None] * eye - mean[..., :, None] * (mean / noise[..., None])[..., None, :]


def weighed(some: Array, size: Array, apart: Array, along: Array, left: Array, pulls: Array) -> Terms:
    """Return the terms t with v = t' M t (`apart`) and u = t' M y (`along`) `(..., p)`, b ~ N(0, c σ²), c the `size`.

    M is the precision that everything else leaves, an intercept included, and `left` `(...)` the sum of squares. A term
    explains c u²/(1 + c v) of it, and log evidence is −½ log(1 + c v) − ½ n log of what then is left. Terms are equally
    likely beforehand; only `some` `(..., p)` are terms, the others are 0 for all arms.
    """
    xp = namespace(left)
    c, before = size[..., None], left[..., None]
    shrunk = 1 + c * apart
    after = xp.maximum(before - c * along * along / shrunk, NOTHING * before)
    logs = -xp.log(shrunk) / 2 - pulls[..., None] / 2 * xp.log(after / before)
    most = xp.max(xp.where(some, logs, -xp.inf * xp.ones_like(logs)), axis=-1, keepdims=True)
    most = xp.where(xp.isfinite(most), most, xp.zeros_like(most))
    odds = xp.where(some, xp.exp(xp.where(some, logs - most, xp.zeros_like(logs))), xp.zeros_like(logs))
    count = xp.sum(xp.astype(some, logs.dtype), axis=-1, keepdims=True)
    total = xp.sum(odds, axis=-1, keepdims=True)
    any_at_all = count > 0
    total = xp.where(any_at_all, total, xp.ones_like(total))
    gain = most + xp.log(total) - xp.log(xp.where(any_at_all, count, xp.ones_like(count)))
    weight = odds / total
    mixed = xp.where(any_at_all[..., 0], xp.sum(weight * after, axis=-1), left)
    return Terms(weight, c * along / shrunk, c / shrunk, mixed, gain[..., 0])
