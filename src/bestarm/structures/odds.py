"""Rewards 0 and 1 on the scale of log odds, where features act additively and nothing is squeezed at 0 and 1.

Around a chance p̃ thought likely, a mean reward y counts as the log odds z = logit p̃ + (y − p̃) / v, v = p̃(1 − p̃), and
a pull as 4v pulls of variance 4: one step of the Newton method that fits a logistic model. Rewards 0 and −1, losses to
be avoided, are 1 and 0 less one.
"""

from dataclasses import dataclass

from bestarm.core import Array, Tally, namespace
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

    @classmethod
    def around(cls, chance: Array, binary: Array, lost: Array | None = None) -> "Odds":
        """Return how to read rewards of arms with about this `chance` `(..., K)`, or `(..., 1)`, if `binary` `(...)`.

        Where they are `lost` `(...)`, they are 0 and −1, and `chance` is that of 0.
        """
        xp = namespace(chance)
        chance = xp.clip(chance, EDGE, 1 - EDGE)
        v = chance * (1 - chance)
        middle = xp.log(chance / (1 - chance)) - 1 / (1 - chance)
        lost = xp.zeros_like(binary) if lost is None else lost
        middle = middle + xp.astype(lost, chance.dtype)[..., None] / v
        if bool(xp.all(binary)):
            return cls(4 * v, middle, 1 / v, binary, lost)
        one = xp.ones_like(chance)
        parts = ((4 * v, one), (middle, xp.zeros_like(one)), (1 / v, one))
        share, middle, slope = (xp.where(binary[..., None], odds, plain) for odds, plain in parts)
        return cls(share, middle, slope, binary, lost)

    def means(self, thought: Array) -> Array:
        """Return the mean rewards `(..., K)` where this is `thought` of the arms as rewards are read."""
        xp = namespace(thought)
        wins = chances(thought) - xp.astype(self.lost, thought.dtype)[..., None]
        return xp.where(self.binary[..., None], wins, thought)

    def steepness(self, thought: Array) -> Array:
        """Return by how much mean rewards `(..., K)` change with what is `thought`."""
        xp = namespace(thought)
        chance = chances(thought)
        return xp.where(self.binary[..., None], chance * (1 - chance), xp.ones_like(chance))

    def tally(self, known: Tally) -> Tally:
        """Return what is known of all arms `(..., K)`, read this way."""
        xp = namespace(known.sums)
        means = known.sums / xp.maximum(known.counts, xp.ones_like(known.counts))
        within = xp.maximum(known.squares - known.sums * means, 0.0) * self.share * self.slope * self.slope
        counts, means = known.counts * self.share, self.middle + self.slope * means
        return Tally(counts, counts * means, within + counts * means * means)


def binary(known: Tally) -> tuple[Array, Array]:
    """Return where `(...)` all rewards so far were 0 or 1, or all 0 or −1, and where they were the latter."""
    xp = namespace(known.sums)
    won, lost = (
        xp.all((known.squares == sums) & (sums >= 0) & (sums <= known.counts), axis=-1)
        for sums in (known.sums, -known.sums)
    )
    return won | lost, lost & ~won


def read(
    made: Structures, kinds: tuple[Kind, ...], known: Tally, hedge: float, kept: int, many: int
) -> tuple[Mixture, Odds | None]:
    """Return the mixture after the rewards `known` `(..., K)` and how they were read: None as they are.

    Log odds are taken around the mean reward first, then around the chances that this leads to; beyond `many` arms,
    around the mean reward for those not pulled, of which there is nothing to read.
    """
    xp = namespace(known.sums)
    where, lost = binary(known)
    if not bool(xp.any(where)):
        return weigh(made, kinds, known, hedge, kept, many), None
    wins, pulls = (xp.sum(a, axis=-1, keepdims=True) for a in (known.sums, known.counts))
    wins = wins + xp.where(lost[..., None], pulls, xp.zeros_like(pulls))
    chance = (wins + 1) / (pulls + 2)
    mixture = weigh(made, kinds, Odds.around(chance, where, lost).tally(known), hedge, kept, many)
    batch, count = known.sums.shape[:-1], known.sums.shape[-1]
    if count <= many:
        chance = chances(xp.reshape(mixture.means(), known.sums.shape))
    else:
        arms = pulled(mixture.known.counts)
        thought, arms = (xp.reshape(a, (*batch, -1)) for a in (mixture.means(arms), arms))
        chance = chance + scatter(arms, chances(thought) - chance, count)
    odds = Odds.around(chance, where, lost)
    return weigh(made, kinds, odds.tally(known), hedge, kept, many), odds


def chances(odds: Array) -> Array:
    """Return the chances of these log odds."""
    xp = namespace(odds)
    return 1 / (1 + xp.exp(-xp.clip(odds, -FAR, FAR)))
