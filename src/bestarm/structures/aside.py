"""Rewards as they came, and those that are set aside until they are confirmed.

One reward of a hundred times the noise makes all the others look like noise, and every hypothesis like another. So
rewards are kept in the groups in which they came: an arm, pulled so many times at once. With ȳ the mean of a group, m
the median of all ȳ and s = 1.4826 times the median of |ȳ − m|, of all or on the side of m where that is more, each arm
counting once in all, a group is odd where

    |ȳ − m| > 12 s,    or its variance is above 144 max(s², the median variance of groups of several),              (15)

the larger s in the latter: what is skewed is not odd. It is left out of all that is thought, unless its arm has two
groups or more that are odd on the same side, and they are half or more of its groups: then it is really out there.
Rewards 0 and 1 are never odd.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bestarm.core import Array, Pulls, Tally, Totals
from bestarm.linalg import scatter, tally

FAR = 12.0  # robust deviations beyond which a group is odd
DEVIATION = 1.4826  # of a normal distribution, in medians of the distance from its middle
ENOUGH = 12, 8  # groups, and arms, from which there is a middle to speak of
ASKED = 2  # groups of an arm with nothing left, up to which it is asked once more


@dataclass(frozen=True)
class Groups:
    """Rewards in the groups in which they came, `(..., G)`; one of no pulls is none."""

    arms: Array
    times: Array
    sums: Array
    squares: Array
    scatter: Array  # about the mean of the group
    aside: Array  # whether it is left out
    low: Array  # m − 12 s, (...): infinite where there is no middle to speak of
    high: Array  # m + 12 s
    widest: Array  # the largest variance of a group that is not odd, (...)

    @classmethod
    def none(cls, batch: tuple[int, ...]) -> "Groups":
        """Return that nothing came yet."""
        empty, nothing = np.zeros((*batch, 0)), np.zeros(batch)
        return cls(
            empty.astype(np.int64), empty, empty, empty, empty, empty > 0, nothing, nothing + np.inf, nothing + np.inf
        )

    def plus(self, pulls: Pulls, totals: Totals) -> "Groups":
        """Return the same with what pulls gave."""
        times = np.astype(pulls.times, totals.sums.dtype)
        within = Tally(times, totals.sums, totals.squares, totals.scatter).within
        parts: tuple[Array, ...] = (pulls.arms, times, totals.sums, totals.squares, within)
        most = int(np.max(np.sum(times > 0, axis=-1), initial=0))
        if most < times.shape[-1] / 2:  # few of the arms asked for were pulled at all
            order = np.argsort(times <= 0, axis=-1, kind="stable")[..., :most]
            parts = tuple(np.take_along_axis(part, order, axis=-1) for part in parts)
        shape = parts[0].shape
        mine = (self.arms, self.times, self.sums, self.squares, self.scatter, self.aside)
        both = zip(mine, (*parts, np.zeros(shape, dtype=bool)), strict=True)
        found = (np.concat([one, np.broadcast_to(two, shape)], axis=-1) for one, two in both)
        return Groups(*found, self.low, self.high, self.widest)  # type: ignore[call-arg]

    @property
    def means(self) -> Array:
        """The mean of each group `(..., G)`."""
        found: Array = self.sums / np.maximum(self.times, 1.0)
        return found

    @property
    def doubtful(self) -> Array:
        """Where `(...)` what came last, or something of the same arm, may have to be set aside or taken back."""
        last = self.arms[..., -1:]
        far = (self.means[..., -1] > self.high) | (self.means[..., -1] < self.low)
        several = self.scatter[..., -1] > self.widest * np.maximum(self.times[..., -1] - 1, 1.0)
        return far | several | np.any((self.arms == last) & self.aside, axis=-1)

    def each(self, change: Callable[[Array], Array]) -> "Groups":
        """Return the same with `change` made to every part."""
        return Groups(*(change(part) for part in vars(self).values()))

    def of(self, who: Array) -> "Groups":
        """Return those of the replications `who` `(m,)`, of one leading axis."""
        return self.each(lambda part: part[who])

    def where(self, who: Array, other: "Groups") -> "Groups":
        """Return these but for the replications `who` `(m,)`, of one leading axis, which are `other`."""
        parts = [part.copy() for part in vars(self).values()]
        for mine, theirs in zip(parts, vars(other).values(), strict=True):
            mine[who] = theirs
        return Groups(*parts)

    def judged(self, arms: int, ordinary: Array) -> "Groups":
        """Return the same with odd groups set aside, Eq. 15; none where rewards are not `ordinary` `(...)` numbers."""
        there, y = self.times > 0, self.means
        each = _shares(self.arms, there)
        m = _median(y, each)
        off = y - m[..., None]
        every = _median(np.abs(off), each)
        below, above = (
            DEVIATION * np.maximum(every, _median(np.abs(off), np.where(side, each, 0.0)))
            for side in (off < 0, off > 0)
        )
        enough = (np.sum(there, axis=-1) >= ENOUGH[0]) & (np.sum(each, axis=-1) >= ENOUGH[1] - 1e-6)
        enough &= ordinary & (every > 0)
        low, high = np.where(enough, m - FAR * below, -np.inf), np.where(enough, m + FAR * above, np.inf)
        several = self.times > 1
        variance = self.scatter / np.maximum(self.times - 1, 1.0)
        usual = np.sqrt(_median(variance, np.where(several, 1.0, 0.0)))
        widest = np.where(enough, FAR * np.maximum(np.maximum(below, above), usual), np.inf) ** 2
        wide = several & (variance > widest[..., None])
        over, under = (there & ~wide & side for side in (y > high[..., None], y < low[..., None]))
        found = replace(self, aside=wide | over | under, low=low, high=high, widest=widest)
        return found if not np.any(found.aside) else replace(found, aside=found._unconfirmed(over, under, there, arms))

    def _unconfirmed(self, over: Array, under: Array, there: Array, arms: int) -> Array:
        """Return which groups `(..., G)` are aside, without those as far `over` or `under` as others of their arm."""

        def by_arm(which: Array) -> Array:
            return np.take_along_axis(scatter(self.arms, which.astype(np.float64), arms), self.arms, axis=-1)

        aside, total = self.aside, by_arm(there)
        for side in (over, under):
            alike = by_arm(side)
            aside = aside & ~(side & (alike >= 2) & (2 * alike >= total))
        return aside

    def kept(self, arms: int) -> Tally:
        """Return what is known of all arms `(..., K)` from what is not set aside."""
        keep = np.where(self.aside, 0.0, 1.0)
        pulls = Pulls(self.arms, self.times * keep)
        return tally(pulls, Totals(self.sums * keep, self.squares * keep, self.scatter * keep), arms)

    def unsettled(self, arms: int) -> Array:
        """Return which arms `(..., K)` have nothing left but what is far above, and are to be asked once more."""
        came = np.where(self.times > 0, 1.0, 0.0)
        count = scatter(self.arms, came, arms)
        kept = scatter(self.arms, np.where(self.aside, 0.0, came), arms)
        above = scatter(self.arms, np.where(self.means > self.high[..., None], came, 0.0), arms)
        return (above > 0) & (count <= ASKED) & (kept == 0)


def _shares(arms: Array, there: Array) -> Array:
    """Return the weight of each group `(..., G)` with which every arm has 1 in all."""
    order = np.argsort(arms, axis=-1, kind="stable")
    sorted_arms, counted = (np.take_along_axis(a, order, axis=-1) for a in (arms, there.astype(np.float64)))
    upto = np.cumsum(counted, axis=-1)
    first = np.concat([np.ones_like(there[..., :1]), sorted_arms[..., 1:] != sorted_arms[..., :-1]], axis=-1)
    last = np.concat([first[..., 1:], np.ones_like(first[..., :1])], axis=-1)
    before = np.maximum.accumulate(np.where(first, upto - counted, 0.0), axis=-1)
    ends = np.where(last, upto, np.inf)
    after = np.flip(np.minimum.accumulate(np.flip(ends, axis=-1), axis=-1), axis=-1)
    share = counted / np.maximum(after - before, 1.0)
    found = np.empty_like(share)
    np.put_along_axis(found, order, share, axis=-1)
    return found


def _median(values: Array, weights: Array) -> Array:
    """Return the weighted median of `values` `(..., G)`, 0 where nothing has a weight."""
    if not values.shape[-1]:
        return np.zeros(values.shape[:-1])
    order = np.argsort(values, axis=-1, kind="stable")
    values, weights = (np.take_along_axis(a, order, axis=-1) for a in (values, weights))
    upto = np.cumsum(weights, axis=-1)
    place = np.argmax(upto >= upto[..., -1:] / 2, axis=-1)
    found = np.take_along_axis(values, place[..., None], axis=-1)[..., 0]
    return np.where(upto[..., -1] > 0, found, 0.0)
