"""Rewards 0 and 1 on the scale of log odds, where features act additively and nothing is squeezed at 0 and 1.

Around a chance p̃ thought likely, a mean reward y counts as the log odds z = logit p̃ + (y − p̃) / v, v = p̃(1 − p̃), and
a pull as 4v pulls of variance 4: one step of the Newton method that fits a logistic model.
"""

from dataclasses import dataclass

from bestarm.core import Array, Tally, namespace
from bestarm.structures.hypotheses import Kind, Structures
from bestarm.structures.mixture import Mixture, weigh

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

    @classmethod
    def around(cls, chance: Array, binary: Array) -> "Odds":
        """Return how to read rewards of arms with about this `chance` `(..., K)`, where they are `binary` `(...)`."""
        xp = namespace(chance)
        chance = xp.clip(chance, EDGE, 1 - EDGE)
        v = chance * (1 - chance)
        middle = xp.log(chance / (1 - chance)) - 1 / (1 - chance)
        binary, one = binary[..., None], xp.ones_like(chance)
        parts = ((4 * v, one), (middle, xp.zeros_like(one)), (1 / v, one))
        return cls(*(xp.where(binary, odds, plain) for odds, plain in parts))

    def of(self, arms: Array) -> "Odds":
        """Return the same for `arms` `(..., m)` only."""
        xp = namespace(arms)
        return Odds(*(xp.take_along_axis(a, arms, axis=-1) for a in (self.share, self.middle, self.slope)))

    def tally(self, known: Tally) -> Tally:
        """Return what is known of all arms `(..., K)`, read this way."""
        xp = namespace(known.sums)
        means = known.sums / xp.maximum(known.counts, xp.ones_like(known.counts))
        within = xp.maximum(known.squares - known.sums * means, 0.0) * self.share * self.slope * self.slope
        counts, means = known.counts * self.share, self.middle + self.slope * means
        return Tally(counts, counts * means, within + counts * means * means)


def binary(known: Tally) -> Array:
    """Return where `(...)` all rewards so far were 0 or 1."""
    xp = namespace(known.sums)
    return xp.all((known.squares == known.sums) & (known.sums >= 0) & (known.sums <= known.counts), axis=-1)


def read(
    made: Structures, kinds: tuple[Kind, ...], known: Tally, hedge: float, kept: int, many: int
) -> tuple[Mixture, Odds | None]:
    """Return the mixture after the rewards `known` `(..., K)` and how they were read: None as they are.

    Log odds are taken around the mean reward first, then around the chances that this leads to.
    """
    xp = namespace(known.sums)
    where = binary(known)
    if not bool(xp.any(where)):
        return weigh(made, kinds, known, hedge, kept, many), None
    wins, pulls = (xp.sum(a, axis=-1, keepdims=True) for a in (known.sums, known.counts))
    chance = (wins + 1) / (pulls + 2) + xp.zeros_like(known.sums)
    odds = Odds.around(chance, where)
    mixture = weigh(made, kinds, odds.tally(known), hedge, kept, many)
    thought = xp.reshape(mixture.marginals()[0], chance.shape)
    odds = Odds.around(1 / (1 + xp.exp(-xp.clip(thought, -FAR, FAR))), where)
    return weigh(made, kinds, odds.tally(known), hedge, kept, many), odds
