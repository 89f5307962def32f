"""All hypotheses weighed, and the few that matter put side by side."""

from dataclasses import dataclass, replace

from bestarm.core import Array, Tally, namespace
from bestarm.linalg import one_hot, pick, top
from bestarm.structures.bases import Base, flattened, of_replications, of_rows
from bestarm.structures.evidence import Data, evidence
from bestarm.structures.hypotheses import Hypothesis, Kind, SeparateMeans, Structures
from bestarm.structures.posterior import Outlook, Posterior, posterior

HEARD = 1e-6  # the weight from which a hypothesis is listened to at all
SCREENED = 2048  # arms from which a bound of their deviations is worth its while


@dataclass(frozen=True)
class Piece:
    """The posterior of one kind, for the replications `who` that chose it; `own` and `scales` are of its hypothesis."""

    who: Array
    posterior: Posterior
    own: Array
    scales: tuple[Array, ...]


@dataclass(frozen=True)
class Mixture:
    """In each of R replications, the best hypothesis of each of the weightiest `g` kinds.

    `order` brings what the pieces say one after the other back to replications and their kinds, `(R, g)`.
    """

    known: Tally  # of all arms, (R, K)
    bases: dict[str, Base]
    pieces: tuple[Piece, ...]
    order: Array
    weight: Array  # (R, g)
    noise: Array  # σ², (R, g)
    kinds: Array  # the weight of every kind, (R, kinds)
    doubt: Array  # the weight of all nonlinear kinds, (R,)

    def moments(self, arms: Array) -> tuple[Array, Array]:
        """Return the means `(R, g, m)` and covariances `(R, g, m, m)` of `arms` `(R, m)`."""
        looks = self._looks(arms)
        mean = self._ordered([look.mean for look in looks])
        covariance = self._ordered([look.covariance for look in looks])
        return mean, covariance * self.noise[..., None, None]

    def means(self, arms: Array | None = None) -> Array:
        """Return the mean of `arms` `(R, m)`, or of every arm, in the mixture."""
        if arms is not None or self.known.counts.shape[-1] <= SCREENED:
            found = [look.mean for look in self._looks(arms)]
        else:
            found = [piece.posterior.bounds(*self._told(piece, None))[0] for piece in self.pieces]
        return namespace(self.weight).sum(self.weight[..., None] * self._ordered(found), axis=-2)

    def marginals(self, arms: Array | None = None) -> tuple[Array, Array]:
        """Return the mean and the standard deviation of `arms` `(R, m)`, or of every arm, in the mixture."""
        looks = self._looks(arms)
        return self._mixed([(look.mean, look.variance) for look in looks])

    def foremost(self, count: int, far: float, first: Array) -> Array:
        """Return the `count` arms `(R, count)` that reach up most, by mean and `far` deviations; `first` `(R, K)` lead.

        Where there are many, only arms that a bound of their deviation does not rule out are looked at closely.
        """
        xp = namespace(self.weight)

        def reach(mean: Array, deviation: Array, leading: Array) -> Array:
            return xp.where(leading, xp.inf * xp.ones_like(mean), mean + far * deviation)

        if first.shape[-1] <= SCREENED:
            return top(reach(*self.marginals(), first), count)
        bounds = [piece.posterior.bounds(*self._told(piece, None)) for piece in self.pieces]
        highest = reach(*self._mixed(bounds), first)
        close, possible = 0, count
        while close < possible:  # until no arm that was not looked at can be among them
            close = min(possible, max(4 * close, count))
            arms = top(highest, close)
            known = reach(*self.marginals(arms), xp.take_along_axis(first, arms, axis=-1))
            best = top(known, count)
            least = xp.take_along_axis(known, best[..., -1:], axis=-1)
            possible = int(xp.max(xp.sum(xp.astype(highest >= least, xp.int64), axis=-1)))
        return xp.take_along_axis(arms, best, axis=-1)

    def _mixed(self, parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        """Return mean and standard deviation of the mixture, from means and variances by piece."""
        xp = namespace(self.weight)
        mean = self._ordered([one for one, _ in parts])
        variance = self._ordered([two for _, two in parts]) * self.noise[..., None]
        weight = self.weight[..., None]
        mixed = xp.sum(weight * mean, axis=-2)
        off = mean - mixed[..., None, :]
        return mixed, xp.sqrt(xp.maximum(xp.sum(weight * (variance + off * off), axis=-2), 0.0))

    def outlooks(self) -> list[Outlook]:
        """Return what each hypothesis thinks of all arms `(1, K)`, in units of its σ²; for one replication only."""
        looks = self._looks(None)
        return [looks[int(place)] for place in self.order]

    def _ordered(self, parts: list[Array]) -> Array:
        xp = namespace(self.weight)
        array = xp.take(xp.concat(parts, axis=0), self.order, axis=0)
        return xp.reshape(array, (*self.weight.shape, *array.shape[1:]))

    def _looks(self, arms: Array | None) -> list[Outlook]:
        """Return what each piece thinks of `arms` `(R, m)`, or of all."""
        return [piece.posterior.arms(*self._told(piece, arms)) for piece in self.pieces]

    def _told(self, piece: Piece, arms: Array | None) -> tuple[dict[str, Base], Array, Array, Array]:
        """Return the bases, counts, means and own variances of `arms` `(R, m)`, or of all, for a piece."""
        xp = namespace(self.weight)
        names = piece.posterior.names
        term = () if piece.posterior.term is None else (piece.posterior.term.name,)
        bases = of_replications({name: self.bases[name] for name in names + term}, piece.who)
        counts, sums = (xp.take(a, piece.who, axis=0) for a in (self.known.counts, self.known.sums))
        if arms is not None and arms.shape[-1] < counts.shape[-1]:
            mine = xp.take(arms, piece.who, axis=0)
            bases = of_rows(bases, mine)
            counts, sums = (xp.take_along_axis(a, mine, axis=-1) for a in (counts, sums))
        means = sums / xp.maximum(counts, xp.ones_like(counts))
        own = Data(counts, means, piece.own, piece.own, bases).own(names, piece.scales, piece.own[..., None])
        return bases, counts, means, own


def weigh(made: Structures, kinds: tuple[Kind, ...], known: Tally, hedge: float, kept: int, many: int) -> Mixture:
    """Return the mixture of some kinds after the rewards `known` `(..., K)`, its leading axes in one.

    Separate means have at least `hedge` times the weight of nonlinear kinds: smoothness that served so far may fail
    for the one arm that matters. Beyond `many` arms only those pulled are looked at. The likeliest hypothesis of a kind
    stands for it, of those that are not timid.
    """
    xp = namespace(known.sums)
    known = Tally(*(xp.reshape(a, (-1, a.shape[-1])) for a in (known.counts, known.sums, known.squares)))
    bases = flattened(made.bases)
    made = Structures(bases, tuple(_flat(h) for h in made.of(kinds).hypotheses))
    data = _seen(known, bases, many)
    logs, noise = evidence(made, data)
    timid = xp.stack([h.timid * xp.ones_like(data.within) for h in made.hypotheses], axis=-1)
    standing = xp.where(timid > 0, -xp.inf * xp.ones_like(logs), logs)
    weights = xp.exp(logs - xp.max(logs, axis=-1, keepdims=True))
    weights = weights / xp.sum(weights, axis=-1, keepdims=True)
    members = [xp.asarray(made.members(kind.name), dtype=xp.int64) for kind in kinds]
    each = xp.stack([xp.sum(xp.take(weights, mine, axis=-1), axis=-1) for mine in members], axis=-1)
    bent = xp.asarray([float(kind.nonlinear) for kind in kinds], dtype=each.dtype)
    doubt = xp.sum(each * bent, axis=-1)
    held = _hedged(each, kinds, hedge * doubt)
    held = xp.where(held > HEARD, held, xp.zeros_like(held))
    there = xp.asarray([k for k, mine in enumerate(members) if mine.shape[0]], dtype=xp.int64)
    most = min(kept, int(xp.max(xp.sum(xp.astype(held > 0, xp.int64), axis=-1))))
    chosen = xp.reshape(xp.take(there, xp.reshape(top(xp.take(held, there, axis=-1), most), (-1,))), (-1, most))
    weight = xp.take_along_axis(held, chosen, axis=-1)
    weight = weight / xp.sum(weight, axis=-1, keepdims=True)
    slots = xp.reshape(chosen, (-1,))
    pieces, places, noises = [], [], []
    for k, mine in enumerate(members):
        at = xp.nonzero(slots == k)[0]
        if at.shape[0] == 0:
            continue
        who = at // chosen.shape[-1]
        best = xp.argmax(xp.take(xp.take(standing, who, axis=0), mine, axis=-1), axis=-1)
        pieces.append(_piece(made, kinds[k].name, data, who, best))
        places.append(at)
        noises.append(pick(xp.take(xp.take(noise, who, axis=0), mine, axis=-1), best))
    order = xp.argsort(xp.concat(places))
    spread = xp.reshape(xp.take(xp.concat(noises), order, axis=0), chosen.shape)
    return Mixture(known, bases, tuple(pieces), order, weight, spread, each, doubt)


def _flat(h: Hypothesis) -> Hypothesis:
    """Return the hypothesis with all leading axes in one."""
    scales = tuple(namespace(s).reshape(s, (-1,)) for s in h.scales)
    prior, timid = (
        part if isinstance(part, float) else namespace(part).reshape(part, (-1,)) for part in (h.log_prior, h.timid)
    )
    size = None if h.size is None else namespace(h.size).reshape(h.size, (-1,))
    return replace(h, scales=scales, log_prior=prior, size=size, timid=timid)


def _seen(known: Tally, bases: dict[str, Base], many: int) -> Data:
    """Return the data of all arms; where there are many, of those pulled."""
    xp = namespace(known.counts)
    if known.counts.shape[-1] <= many:
        return Data.of(known, bases)
    arms = pulled(known.counts)
    parts = (known.counts, known.sums, known.squares)
    return Data.of(Tally(*(xp.take_along_axis(a, arms, axis=-1) for a in parts)), of_rows(bases, arms))


def pulled(counts: Array) -> Array:
    """Return the arms `(R, m)` that were pulled, in order; some that were not, where others pulled more of them."""
    xp = namespace(counts)
    if counts.shape[0] == 1:
        arms = xp.nonzero(counts[0] > 0)[0]
        return arms[None, :] if arms.shape[0] else xp.zeros((1, 1), dtype=xp.int64)
    most = int(xp.max(xp.sum(xp.astype(counts > 0, xp.int64), axis=-1)))
    return xp.sort(top(counts, max(most, 1)), axis=-1)


def _hedged(each: Array, kinds: tuple[Kind, ...], least: Array) -> Array:
    """Return the weights of kinds with at least `least` `(R,)` on separate means."""
    xp = namespace(each)
    places = [j for j, kind in enumerate(kinds) if isinstance(kind, SeparateMeans)]
    if not places:
        return each
    raised = xp.maximum(each, one_hot(xp.asarray(places[0]), each.shape[-1], each.dtype) * least[..., None])
    return raised / xp.sum(raised, axis=-1, keepdims=True)


def _piece(made: Structures, kind: str, data: Data, who: Array, best: Array) -> Piece:
    """Return the posterior of the hypothesis `best` `(m,)` of a kind, in the replications `who` `(m,)`."""
    xp = namespace(data.means)
    group = [made.hypotheses[j] for j in made.members(kind)]
    names, intercept = group[0].bases, group[0].intercept
    scales = tuple(
        pick(xp.take(xp.stack([h.scales[p] for h in group], axis=-1), who, axis=0), best) for p in range(len(names))
    )
    own = xp.take(xp.asarray([h.own for h in group], dtype=data.means.dtype), best)
    counts, means, within, squares = (
        xp.take(a, who, axis=0) for a in (data.counts, data.means, data.within, data.squares)
    )
    term, size = group[0].term, None
    if term is not None:
        size = pick(xp.take(xp.stack([h.size for h in group], axis=-1), who, axis=0), best)
    needs = names if term is None else (*names, term)
    part = Data(counts, means, within, squares, of_replications({n: data.bases[n] for n in needs}, who))
    found = posterior(names, scales, part.own(names, scales, own[..., None]), intercept, part, term, size)
    return Piece(who, found, own, scales)
