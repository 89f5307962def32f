"""ROUND(n, π): whole pulls from a design, always exactly n of them, only on its support."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

from bestarm.core import AnyArray, Random, namespace
from bestarm.linalg import moment, one_hot, rank, row, rows, top

NEGLIGIBLE = 1e-9  # weights and remainders below this are rounding error of the design


@dataclass(frozen=True)
class LargestRemainder:
    """⌊n π_i⌋ each, and one more to the arms with the largest remainders.

    >>> import numpy as np
    >>> LargestRemainder().round(np.eye(3), np.array([0.5, 0.3, 0.2]), 4, np.random.default_rng())
    array([2, 1, 1])
    """

    def round(self, coordinates: AnyArray, weights: AnyArray, pulls: int, rng: Random) -> AnyArray:
        xp = namespace(weights)
        times, rest, missing = _floors(weights, pulls)
        place = xp.argsort(xp.argsort(-rest, axis=-1, stable=True), axis=-1, stable=True)
        return times + xp.astype(place < missing[..., None], xp.int64)


@dataclass(frozen=True)
class Randomised:
    """⌊n π_i⌋ each, the rest by systematic sampling: the expected number of pulls is exactly n π_i."""

    def round(self, coordinates: AnyArray, weights: AnyArray, pulls: int, rng: Random) -> AnyArray:
        xp = namespace(weights)
        times, rest, missing = _floors(weights, pulls)
        chance = xp.cumulative_sum(rest, axis=-1)
        last = xp.maximum(chance[..., -1:], xp.ones_like(chance[..., -1:]) * 1e-300)
        chance = chance * (xp.astype(missing, chance.dtype)[..., None] / last)
        start = xp.asarray(rng.random(weights.shape[:-1]), dtype=weights.dtype)[..., None]
        marks = xp.astype(xp.floor(chance + start), xp.int64)
        marks = xp.concat([marks[..., :-1], missing[..., None]], axis=-1)
        return times + xp.diff(marks, axis=-1, prepend=xp.zeros_like(marks[..., :1]))


@dataclass(frozen=True)
class Multinomial:
    """n independent draws from π, as the GSE paper's published code rounds Wynn's design."""

    def round(self, coordinates: AnyArray, weights: AnyArray, pulls: int, rng: Random) -> AnyArray:
        xp = namespace(weights)
        draws = xp.asarray(rng.random((*weights.shape[:-1], pulls)), dtype=weights.dtype)
        below = draws[..., None] < xp.cumulative_sum(weights, axis=-1)[..., None, :-1]
        reached = xp.concat(
            [xp.sum(xp.astype(below, xp.int64), axis=-2), xp.full_like(weights[..., :1], pulls)], axis=-1
        )
        return xp.diff(xp.astype(reached, xp.int64), axis=-1, prepend=xp.zeros_like(reached[..., :1], dtype=xp.int64))


@dataclass(frozen=True)
class PukelsheimRieder:
    """Efficient apportionment (Pukelsheim and Rieder 1992): ⌈ν π_i⌉ with the ν that gives n in all.

    With support size q ≤ n, every c_i ≥ (1 − q/n) n π_i, so G(c) ≤ G(π)/n / (1 − q/n).

    >>> import numpy as np
    >>> PukelsheimRieder().round(np.eye(3), np.array([0.9, 0.06, 0.04]), 10, np.random.default_rng())
    array([8, 1, 1])
    """

    def round(self, coordinates: AnyArray, weights: AnyArray, pulls: int, rng: Random) -> AnyArray:
        xp = namespace(weights)
        w = xp.where(weights > NEGLIGIBLE, weights, xp.zeros_like(weights))
        w = w / xp.sum(w, axis=-1, keepdims=True)
        low = xp.zeros_like(w[..., :1])
        high = low + pulls
        for _ in range(64):
            middle = (low + high) / 2
            few = xp.sum(xp.ceil(middle * w), axis=-1, keepdims=True) <= pulls
            low, high = xp.where(few, middle, low), xp.where(few, high, middle)
        times, more = (xp.astype(xp.ceil(nu * w), xp.int64) for nu in (low, high))
        missing = pulls - xp.sum(times, axis=-1, keepdims=True)
        tied = xp.astype(more > times, xp.int64)  # equal quotients: in the order of the arms
        return times + tied * xp.astype(xp.cumulative_sum(tied, axis=-1) <= missing, xp.int64)


@dataclass(frozen=True)
class AllenZhu:
    """Regret minimisation over density matrices (Allen-Zhu, Li, Singh and Wang 2017), with repetition.

    Picks one arm at a time: with Z the sum of the picks y y' (y whitened so that n Σ π_i y_i y_i' = I), M = c I + α Z
    and c such that tr M⁻² = 1, the next is the arm with the largest y'M⁻²y / (1 + α y'M⁻¹y). For n > 2d,
    G(c) ≤ G(π)/n / (1 − √(2d/n))².

    `head` first spends ⌊head n π_i⌋ outright and lets the rule place the rest. 0 is the algorithm as published, one
    eigen-decomposition a pull; 1 leaves it only what the floors left over, at almost the same quality.
    """

    head: float = 1.0

    def round(self, coordinates: AnyArray, weights: AnyArray, pulls: int, rng: Random) -> AnyArray:
        xp = namespace(weights)
        times, _, _ = _floors(weights, self.head * pulls)
        missing = pulls - xp.sum(times, axis=-1)
        most = int(xp.max(missing)) if missing.size else 0
        if most == 0:
            return times
        support = int(xp.max(xp.count_nonzero(weights > NEGLIGIBLE, axis=-1)))
        likely = top(weights, support)
        allowed = xp.take_along_axis(weights, likely, axis=-1) > NEGLIGIBLE
        y = rows(coordinates, likely)
        values, vectors = xp.linalg.eigh(pulls * moment(coordinates, weights))
        root = vectors / xp.sqrt(xp.maximum(values, values[..., -1:] * 1e-12))[..., None, :]
        y = y @ root @ xp.matrix_transpose(vectors)
        spent = xp.astype(xp.take_along_axis(times, likely, axis=-1), y.dtype)
        picked = _regret_picks(y, spent, allowed, missing, most, _learning_rate(coordinates, pulls))
        hot = likely[..., None] == xp.arange(weights.shape[-1], dtype=likely.dtype)
        return times + xp.sum(xp.where(hot, picked[..., None], xp.zeros_like(picked[..., None])), axis=-2)


def _learning_rate(coordinates: AnyArray, pulls: int) -> AnyArray:
    """Return α = √(2n)/(1 − √(2d/n)), the one that optimises the guarantee, or 6 √(2n) where there is none."""
    xp = namespace(coordinates)
    d = rank(coordinates)
    guaranteed = pulls > 2.4 * d
    room = 1 - xp.sqrt(xp.where(guaranteed, 2 * d / pulls, xp.zeros_like(d)))
    return sqrt(2 * pulls) * xp.where(guaranteed, 1 / room, 6 * xp.ones_like(d))


def _regret_picks(
    y: AnyArray, spent: AnyArray, allowed: AnyArray, missing: AnyArray, most: int, alpha: AnyArray
) -> AnyArray:
    """Return how often each of `y` `(..., q, r)` is picked, `missing` `(...)` times in all."""
    xp = namespace(y)
    blank = xp.all(y == 0, axis=-2)
    blank = xp.astype(blank & ~xp.all(blank, axis=-1, keepdims=True), y.dtype)
    far = xp.eye(y.shape[-1], dtype=y.dtype) * (1e30 * blank)[..., None, :]  # no part in the trace
    Z = xp.matrix_transpose(y) @ (y * spent[..., None])
    picked = xp.zeros(allowed.shape, dtype=xp.int64)
    for t in range(most):
        values, vectors = xp.linalg.eigh(alpha[..., None, None] * Z + far)
        m = values + _trace_one(values)[..., None]
        along = (y @ vectors) ** 2 / m[..., None, :]
        gain = xp.sum(along / m[..., None, :], axis=-1)
        gain = gain / (1 + alpha[..., None] * xp.sum(along, axis=-1))
        i = xp.argmax(xp.where(allowed, gain, -xp.ones_like(gain)), axis=-1)
        going = t < missing
        picked = picked + one_hot(i, picked.shape[-1], xp.int64) * xp.astype(going, xp.int64)[..., None]
        chosen = row(y, i) * xp.astype(going, y.dtype)[..., None]
        Z = Z + chosen[..., :, None] * chosen[..., None, :]
    return picked


def _trace_one(values: AnyArray) -> AnyArray:
    """Return the c with Σ_j (c + values_j)⁻² = 1, all c + values_j positive.

    h(c) = (Σ_j (c + values_j)⁻²)^{-1/2} is concave and h(1 − min values) ≤ 1, so Newton climbs to h = 1.
    """
    xp = namespace(values)
    c = 1 - values[..., 0]
    for _ in range(12):
        inverse = 1 / (c[..., None] + values)
        square = xp.sum(inverse**2, axis=-1)
        c = c + (xp.sqrt(square) - 1) * square / xp.sum(inverse**3, axis=-1)
    return c


@dataclass(frozen=True)
class AutoRound:
    """Allen-Zhu while pulls are few against the dimension, Pukelsheim-Rieder where the two differ by little."""

    switch: float = 20.0

    def round(self, coordinates: AnyArray, weights: AnyArray, pulls: int, rng: Random) -> AnyArray:
        few = pulls <= self.switch * min(coordinates.shape[-2:])
        rounding = AllenZhu() if few else PukelsheimRieder()
        return rounding.round(coordinates, weights, pulls, rng)


def _floors(weights: AnyArray, pulls: float) -> tuple[Any, Any, Any]:
    """Return ⌊n π_i⌋, the remainders, and how many pulls are missing."""
    xp = namespace(weights)
    shares = xp.where(weights > NEGLIGIBLE, weights * pulls, xp.zeros_like(weights))
    whole = xp.floor(shares + NEGLIGIBLE)
    rest = xp.maximum(shares - whole, xp.zeros_like(shares))
    missing = xp.astype(xp.round(pulls - xp.sum(whole, axis=-1)), xp.int64)
    return xp.astype(whole, xp.int64), rest, missing
