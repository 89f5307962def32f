"""Rewards 0 and 1 on the scale of log odds, where features act additively and nothing is squeezed at 0 and 1.

Around a chance p̃ thought likely a mean reward y counts as the log odds z, and N pulls as N' (Eq. 6 of
docs/algorithms/auto.md):

    z = logit p̃ + (y − p̃) / v,    N' = 4 v N / u,    v = p̃ (1 − p̃).

This is one step of the Newton method that fits a logistic model. With u the average of 4v over all pulls, there are as
many N' as pulls, each of variance 4/u: what scatters within arms and what is counted then are of one unit. Rewards 0
and −1, losses to be avoided, are 1 and 0 less one.
"""

from dataclasses import dataclass

import numpy as np

from bestarm.core import Array, Tally
from bestarm.linalg import scatter
from bestarm.structures.hypotheses import Kind, Structures
from bestarm.structures.mixture import Mixture, pulled, weigh

FAR = 10.0  # log odds beyond which a chance is 0 or 1
EDGE = 0.02  # chances are thought to lie between this and one less this


@dataclass(frozen=True)
class Odds:
    """How rewards are read, arm by arm: a pull counts as `share` pulls, a mean reward y as `middle` + `slope` y.

    Where rewards are other numbers than 0 and 1 a pull is a pull and a reward is a reward.
    """

    share: Array  # (..., K)
    middle: Array
    slope: Array
    binary: Array  # where rewards are 0 and 1, or 0 and −1, (...)
    lost: Array  # where they are 0 and −1
    unit: Array  # u, (...)

    @classmethod
    def around(cls, chance: Array, counts: Array, binary: Array, lost: Array | None = None) -> "Odds":
        """Return how to read rewards of arms with about this `chance` p̃ `(..., K)`, or `(..., 1)`, if `binary` `(...)`.

        `counts` `(..., K)` are the pulls. Rewards that are `lost` `(...)` are 0 and −1, and `chance` is that of 0.
        """
        p = np.clip(chance, EDGE, 1 - EDGE)
        some = np.maximum(counts, np.where(np.any(counts > 0, axis=-1, keepdims=True), 0.0, 1.0))
        unit = np.sum(4 * p * (1 - p) * some, axis=-1) / np.sum(some, axis=-1)
        return cls._of(p, unit, binary, np.zeros_like(binary) if lost is None else lost)

    def at(self, chance: Array) -> "Odds":
        """Return how to read rewards of other arms, or around other chances `(..., m)`, in the same unit."""
        return self._of(np.clip(chance, EDGE, 1 - EDGE), self.unit, self.binary, self.lost)

    @classmethod
    def none(cls, like: Array) -> "Odds":
        """Return that rewards of arms `(..., m)` are read as they are."""
        one, no = np.ones_like(like), np.zeros(like.shape[:-1], dtype=bool)
        return cls(one, 0 * one, one, no, no, np.ones(like.shape[:-1]))

    @property
    def noise(self) -> Array:
        """The noise variance `(...)` of a pull as it is counted; 0 where rewards are other numbers than 0 and 1."""
        return np.where(self.binary, 4 / self.unit, 0.0)

    @classmethod
    def _of(cls, p: Array, unit: Array, binary: Array, lost: Array) -> "Odds":
        v = p * (1 - p)
        middle = np.log(p / (1 - p)) - 1 / (1 - p) + lost.astype(p.dtype)[..., None] / v  # Eq. 6
        counted = 4 * v / unit[..., None]
        if bool(np.all(binary)):
            return cls(counted, middle, 1 / v, binary, lost, unit)
        share, slope = (np.where(binary[..., None], odds, 1.0) for odds in (counted, 1 / v))
        return cls(share, np.where(binary[..., None], middle, 0.0), slope, binary, lost, unit)

    def means(self, thought: Array) -> Array:
        """Return the mean rewards `(..., K)` where this is `thought` of the arms as rewards are read."""
        wins = chances(thought) - self.lost.astype(thought.dtype)[..., None]
        return np.where(self.binary[..., None], wins, thought)

    def steepness(self, thought: Array) -> Array:
        """Return by how much mean rewards `(..., K)` change with what is `thought`."""
        p = chances(thought)
        return np.where(self.binary[..., None], p * (1 - p), 1.0)

    def tally(self, known: Tally) -> Tally:
        """Return what is known of all arms `(..., K)`, read this way."""
        within = known.within * self.share * self.slope * self.slope
        N, z = known.counts * self.share, self.middle + self.slope * known.means
        return Tally(N, N * z, within + N * z * z, within)


def binary(known: Tally) -> tuple[Array, Array]:
    """Return where `(...)` all rewards so far were 0 or 1, or all 0 or −1, and where they were the latter."""
    won, lost = (
        np.all((known.squares == sums) & (sums >= 0) & (sums <= known.counts), axis=-1)
        for sums in (known.sums, -known.sums)
    )
    return won | lost, lost & ~won


def read(
    made: Structures, kinds: tuple[Kind, ...], known: Tally, h: float, g: int, many: int
) -> tuple[Mixture, Odds | None]:
    """Return the mixture after the rewards `known` `(..., K)` and how they were read: None as they are.

    Log odds are taken around the mean reward first, then around the chances that this leads to; beyond `many` arms,
    around the mean reward for those not pulled, of which there is nothing to read.
    """
    made = made.of(kinds).following(known.counts)
    where, lost = binary(known)
    if not bool(np.any(where)):
        return weigh(made, kinds, known, h, g, many), None
    wins, pulls = (a.sum(axis=-1, keepdims=True) for a in (known.sums, known.counts))
    wins = wins + np.where(lost[..., None], pulls, 0.0)
    chance = (wins + 1) / (pulls + 2)
    odds = Odds.around(chance, known.counts, where, lost)
    mixture = weigh(made, kinds, odds.tally(known), h, g, many, np.reshape(odds.noise, -1))
    if known.sums.shape[-1] <= many:
        chance = chances(mixture.means().reshape(known.sums.shape))
    else:
        arms = pulled(mixture.known.counts)
        thought, arms = (a.reshape(*known.sums.shape[:-1], -1) for a in (mixture.means(arms), arms))
        chance = chance + scatter(arms, chances(thought) - chance, known.sums.shape[-1])
    odds = Odds.around(chance, known.counts, where, lost)
    return weigh(made, kinds, odds.tally(known), h, g, many, np.reshape(odds.noise, -1)), odds


def chances(odds: Array) -> Array:
    """Return the chances of these log odds."""
    return 1 / (1 + np.exp(-np.clip(odds, -FAR, FAR)))
