"""One arm, nobody knows which, has more than a hypothesis says of all.

f = g + b e_q with b ~ N(0, c σ²) and above 0, q any of K arms, all equally likely beforehand: one that is far worse is
of no interest, and must not make a line look right that is not. C₀ and m₀ are the covariance in units
of σ² and the mean that the rewards leave without such an arm. With N pulls of mean y it explains (Eq. 4 of
docs/algorithms/auto.md with the term e_q)

    v_q = N_q (1 − N_q C₀_qq),    u_q = N_q (y_q − m₀_q),

so that no table of K by K is needed; that b is above 0 takes 2 Φ(b_q / s_q) of its evidence. Of arms not pulled both
are 0: they are as likely as they were. What b is then is left normal.

Let p_q be the chance that it is q, b_q and s_q² σ² what it then has, z = p b and D = p (s² + b²/σ²). Then (Eq. 13)

    E f = m₀ + z − C₀ N z,    Cov f / σ² = C₀ + (I − C₀N) D (I − C₀N)' − d d'/σ²,    d = z − C₀ N z.
"""

from dataclasses import dataclass, replace

import numpy as np

from bestarm.core import Array
from bestarm.linalg import matvec
from bestarm.structures.terms import Each, Terms

LEAST = 1e-12  # variance of what an arm apart has
LEAST_OF_ALL = 1e-290


@dataclass(frozen=True)
class Apart:
    """What the rewards say of an arm apart: all that it takes to say it of any arms again, `(...)` each.

    With P = [Φ h] and A the covariance of its coefficients, C₀ = P A P'.
    """

    size: Array  # c
    left: Array  # the sum of squares without it
    pulls: Array
    scale: Array  # what chances are divided by, as a logarithm
    noise: Array  # σ²
    A: Array  # (..., p, p)
    shift: Array  # A P'N z, (..., p)
    spread: Array  # A P'N D N P A, (..., p, p)

    def of(self, P: Array, counts: Array, means: Array, m0: Array) -> "ApartArms":
        """Return what is thought of arms with these P, counts, means and m₀, `(..., m)`."""
        C0 = np.vecdot(P @ self.A, P)
        v, u = explained(counts, C0, means - m0)
        found = above(self.size, v, u, self.left, self.pulls)
        chance = np.exp(np.minimum(found.logs - self.scale[..., None], 0.0))
        own = found.mean * (1 - counts * C0)
        D = chance * (found.variance + found.mean**2 / self.noise[..., None])
        alone = Alone(chance, m0, own, found.variance * (1 - counts * C0) ** 2)
        z = chance * found.mean
        return ApartArms(alone, D, z, z - matvec(P, self.shift))


@dataclass(frozen=True)
class Alone:
    """Of some arms `(..., m)`, the chance that each is the one apart, its mean if it is not, and what it has if it is.

    The `mean` and the `variance` of what it has are as far as its own rewards leave open; the variance in units of σ².
    """

    chance: Array
    without: Array  # m₀
    mean: Array
    variance: Array

    @classmethod
    def none(cls, like: Array) -> "Alone":
        """Return that no arm is apart, of as many arms."""
        zero = np.zeros_like(like)
        return cls(zero, zero, zero, np.ones_like(zero))

    def ahead(self, best: Array) -> Array:
        """Return the chance that each arm is better than `best`, if it is apart."""
        return normal((self.without + self.mean - best) / np.sqrt(np.maximum(self.variance, LEAST)))


@dataclass(frozen=True)
class ApartArms:
    """What is thought of some arms, of which one may be apart: D, z, and d, by how much the mean is moved."""

    alone: Alone
    own: Array  # D
    more: Array  # z
    moved: Array  # d


def normal(z: Array) -> Array:
    """Return the normal distribution function, to three digits: a logistic curve of a cubic. It is never 0."""
    z = np.clip(z, -8.0, 8.0)
    found: Array = 1 / (1 + np.exp(-z * (1.5957691216 + 0.0713548163 * z * z)))
    return found


def above(c: Array, v: Array, u: Array, left: Array, pulls: Array) -> Each:
    """Return what is said of arms apart `(..., m)` that are better than they would be; see `Each.of`."""
    found = Each.of(c, v, u, left, pulls)
    noise = found.after / np.maximum(pulls, 1.0)[..., None]
    side = 2 * normal(found.mean / np.sqrt(np.maximum(noise * found.variance, LEAST_OF_ALL)))
    return replace(found, logs=found.logs + np.log(side))


def explained(counts: Array, C0: Array, residual: Array) -> tuple[Array, Array]:
    """Return v and u of arms apart, `(..., m)`, their own variance C₀ and the residual y − m₀ given."""
    return counts * np.maximum(1 - counts * C0, 0.0), counts * residual


def fitted(size: Array, some: Terms, P: Array, A: Array, counts: Array, of: tuple[Array, Array, Array]) -> Apart:
    """Return what is thought of an arm apart of variance `size`, the arms being weighed as `some`.

    The rewards are `of` a sum of squares left without it, a number of pulls, and a noise variance.
    """
    left, pulls, noise = of
    D = some.weight * (some.variance + some.mean**2 / noise[..., None])
    shift = matvec(A, matvec(P.mT, counts * some.weight * some.mean))
    lever = P * counts[..., None]
    spread = A @ ((lever * D[..., None]).mT @ lever) @ A
    return Apart(size, left, pulls, some.scale, noise, A, shift, spread)
