"""All hypotheses weighed, and the few that matter put side by side.

Hypothesis j has the weight exp(log evidence + log prior), normalised, a kind the sum w of its hypotheses. The mixture
over kinds a with means m_a and covariances σ_a² C_a has the mean Σ w_a m_a. Separate means keep at least h times the
weight of the nonlinear kinds (Eq. 10 of docs/algorithms/auto.md).
"""

from dataclasses import dataclass

import numpy as np

from bestarm.core import Array, Tally
from bestarm.linalg import one_hot, pick, top
from bestarm.structures.apart import Alone
from bestarm.structures.bases import Base, of_replications, of_rows
from bestarm.structures.evidence import Data, evidence
from bestarm.structures.hypotheses import Kind, SeparateMeans, Structures
from bestarm.structures.posterior import ApartOutlook, HypothesisPosterior, Outlook, posterior

NEGLIGIBLE = 1e-6  # a hypothesis of no more weight is left out
HEDGED = 2  # pulls an arm, from which separate means have all of their hedge,
LEAST = 0.3  # and this share of it with far fewer
LOOKED = 4  # pulls an arm, from which an arm apart counts among what doubts a line
SCREENED = 2048  # arms from which a bound of their deviations is worth its while


@dataclass(frozen=True)
class Piece:
    """The posterior of one kind, for the replications `who` that chose it; `own` and `scales` are of its hypothesis."""

    who: Array
    posterior: HypothesisPosterior
    own: Array
    scales: tuple[Array, ...]


@dataclass(frozen=True)
class Mixture:
    """In each of R replications, the best hypothesis of each of the weightiest `g` kinds.

    `order` brings the pieces, one after the other, back to replications and their kinds, `(R, g)`.
    """

    known: Tally  # of all arms, (R, K)
    bases: dict[str, Base]
    pieces: tuple[Piece, ...]
    order: Array
    weight: Array  # (R, g)
    noise: Array  # σ², (R, g)
    kinds: Array  # the weight of every kind, (R, kinds)
    nonlinear: Array  # the weight of all that doubts a line, (R,)

    def moments(self, arms: Array) -> tuple[Array, Array, Alone | None]:
        """Return the means `(R, g, m)` and covariances `(R, g, m, m)` of `arms` `(R, m)`, and which may be apart."""
        outlooks = self._outlooks(arms)
        m = self._ordered([one.mean for one in outlooks])
        C = self._ordered([one.covariance for one in outlooks])
        return m, C * self.noise[..., None, None], self._alone(outlooks)

    def _alone(self, outlooks: list[Outlook]) -> Alone | None:
        """Return which arms may be apart `(R, g, m)`; None where no hypothesis has one."""
        if not any(isinstance(one, ApartOutlook) for one in outlooks):
            return None
        each = [one.alone if isinstance(one, ApartOutlook) else Alone.none(one.mean) for one in outlooks]
        chance, without, mean, variance = (
            self._ordered([getattr(one, part) for one in each]) for part in ("chance", "without", "mean", "variance")
        )
        return Alone(chance, without, mean, variance * self.noise[..., None])

    def apart(self) -> Array | None:
        """Return how likely each arm is apart and, if so, the best, `(R, K)`; None where no hypothesis has one."""
        if not any(piece.posterior.apart is not None for piece in self.pieces):
            return None
        alone = self._alone(self._outlooks(None))
        assert alone is not None
        best = np.max(self.means(), axis=-1)[..., None, None]
        return np.sum(self.weight[..., None] * alone.chance * alone.ahead(best), axis=-2)

    def means(self, arms: Array | None = None) -> Array:
        """Return the mean of `arms` `(R, m)`, or of every arm, in the mixture."""
        if arms is not None or self.known.counts.shape[-1] <= SCREENED:
            found = [one.mean for one in self._outlooks(arms)]
        else:
            found = [piece.posterior.bounds(*self._arms(piece, None))[0] for piece in self.pieces]
        return np.sum(self.weight[..., None] * self._ordered(found), axis=-2)

    def marginals(self, arms: Array | None = None) -> tuple[Array, Array]:
        """Return the mean and the standard deviation of `arms` `(R, m)`, or of every arm, in the mixture."""
        return self._mixed([(one.mean, one.variance) for one in self._outlooks(arms)])

    def foremost(self, count: int, z: float, first: Array) -> Array:
        """Return the `count` arms `(R, count)` that reach up most, by mean and `z` deviations; `first` `(R, K)` lead.

        Where there are many, only arms that a bound of their deviation does not rule out are looked at closely.
        """

        def reach(mean: Array, deviation: Array, leading: Array) -> Array:
            return np.where(leading, np.inf, mean + z * deviation)

        if first.shape[-1] <= SCREENED:
            return top(reach(*self.marginals(), first), count)
        bounds = [piece.posterior.bounds(*self._arms(piece, None)) for piece in self.pieces]
        highest = reach(*self._mixed(bounds), first)
        close, possible = 0, count
        while close < possible:  # until no arm that was not looked at can be among them
            close = min(possible, max(4 * close, count))
            arms = top(highest, close)
            known = reach(*self.marginals(arms), np.take_along_axis(first, arms, axis=-1))
            best = top(known, count)
            least = np.take_along_axis(known, best[..., -1:], axis=-1)
            possible = int(np.sum(highest >= least, axis=-1).max())
        return np.take_along_axis(arms, best, axis=-1)

    def outlooks(self) -> list[Outlook]:
        """Return what each hypothesis thinks of all arms `(1, K)`, in units of its σ²; for one replication only."""
        found = self._outlooks(None)
        return [found[int(place)] for place in self.order]

    def _mixed(self, parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        """Return mean and standard deviation of the mixture, from means and variances by piece."""
        w, m = self.weight[..., None], self._ordered([one for one, _ in parts])
        variance = self._ordered([two for _, two in parts]) * self.noise[..., None]
        mixed = np.sum(w * m, axis=-2)
        off = m - mixed[..., None, :]
        return mixed, np.sqrt(np.maximum(np.sum(w * (variance + off * off), axis=-2), 0.0))

    def _ordered(self, parts: list[Array]) -> Array:
        array = np.concat(parts, axis=0)[self.order]
        return array.reshape(*self.weight.shape, *array.shape[1:])

    def _outlooks(self, arms: Array | None) -> list[Outlook]:
        """Return what each piece thinks of `arms` `(R, m)`, or of all."""
        return [piece.posterior.arms(*self._arms(piece, arms)) for piece in self.pieces]

    def _arms(self, piece: Piece, arms: Array | None) -> tuple[dict[str, Base], Array, Array, Array]:
        """Return the bases, counts, means and own variances of `arms` `(R, m)`, or of all, for a piece."""
        names = piece.posterior.names
        term = () if piece.posterior.term is None else (piece.posterior.term.name,)
        bases = of_replications({name: self.bases[name] for name in names + term}, piece.who)
        counts, sums = self.known.counts[piece.who], self.known.sums[piece.who]
        if arms is not None and arms.shape[-1] < counts.shape[-1]:
            mine = arms[piece.who]
            bases = of_rows(bases, mine)
            counts, sums = (np.take_along_axis(a, mine, axis=-1) for a in (counts, sums))
        means = sums / np.maximum(counts, 1.0)
        own = Data(counts, means, piece.own, piece.own, bases).own(names, piece.scales, piece.own[..., None])
        return bases, counts, means, own


def weigh(
    made: Structures,
    kinds: tuple[Kind, ...],
    known: Tally,
    h: float,
    g: int,
    many: int,
    variance: Array | float = 0.0,
) -> Mixture:
    """Return the mixture of the `g` weightiest kinds after the rewards `known` `(..., K)`, leading axes in one.

    Separate means have at least `h` times the weight of nonlinear kinds, less with few pulls: smoothness that served so
    far may fail for the one arm that matters. Beyond `many` arms only those pulled are looked at. `variance` `(R,)` is
    what that of the noise is known to be about, 0 where it is not known.
    """
    made = made.of(kinds).among(None, known.sums.shape[:-1])
    known, bases = known.each(lambda a: a.reshape(-1, a.shape[-1])), made.bases
    data = _of_pulled(known, bases, many, variance)
    logs, noise = evidence(made, data)
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    members = [np.asarray(made.members(kind.name), dtype=np.int64) for kind in kinds]
    each = np.stack([np.take(weights, mine, axis=-1).sum(axis=-1) for mine in members], axis=-1)
    doubt, line, apart = (
        np.sum(each[:, [kind.nonlinear is side for kind in kinds]], axis=-1) for side in (True, False, None)
    )
    floored = _with_separate(each, kinds, h * float(np.clip(made.depth / HEDGED, LEAST, 1.0)) * doubt)
    floored = np.where(floored > NEGLIGIBLE, floored, 0.0)
    chosen = _weightiest(floored, kinds, g)
    weight = np.take_along_axis(floored, chosen, axis=-1)
    weight = weight / weight.sum(axis=-1, keepdims=True)
    pieces, order, variances = _pieces(made, kinds, data, chosen, members, logs, noise)
    doubt = doubt + min(made.depth / LOOKED, 1.0) * apart
    return Mixture(known, bases, pieces, order, weight, variances, each, doubt / np.maximum(doubt + line, NEGLIGIBLE))


def _weightiest(weight: Array, kinds: tuple[Kind, ...], g: int) -> Array:
    """Return the `g` weightiest kinds by `weight` `(R, kinds)`, and beside them the weightiest that takes no side.

    An arm apart stands beside what else may be, not in its place: three kinds that foresee none see all arms.
    """
    found = []
    for sides, most in (((True, False), g), ((None,), 1)):
        these = np.asarray([k for k, kind in enumerate(kinds) if kind.nonlinear in sides], dtype=np.int64)
        count = min(most, int(np.sum(weight[:, these] > 0, axis=-1).max(initial=0)))
        if count:
            found.append(these[top(weight[:, these], count)])
    return np.concat(found, axis=-1)


def _pieces(
    made: Structures,
    kinds: tuple[Kind, ...],
    data: Data,
    chosen: Array,
    members: list[Array],
    logs: Array,
    noise: Array,
) -> tuple[tuple[Piece, ...], Array, Array]:
    """Return the likeliest hypothesis of each of the `chosen` kinds `(R, g)`, their order, and their σ² `(R, g)`.

    Those that are for the answer only do not stand for their kind.
    """
    answer_only = np.stack([h.answer_only * np.ones_like(data.within) for h in made.hypotheses], axis=-1)
    logs = np.where(answer_only > 0, -np.inf, logs)
    pieces, places, variances = [], [], []
    for k, mine in enumerate(members):
        at = np.nonzero(chosen.reshape(-1) == k)[0]
        if len(at):
            who = at // chosen.shape[-1]
            best = np.argmax(logs[who][:, mine], axis=-1)
            pieces.append(_piece(made, kinds[k].name, data, who, best))
            places.append(at)
            variances.append(pick(noise[who][:, mine], best))
    order = np.argsort(np.concat(places))
    return tuple(pieces), order, np.concat(variances)[order].reshape(chosen.shape)


def _of_pulled(known: Tally, bases: dict[str, Base], many: int, noise: Array | float) -> Data:
    """Return the data of all arms; where there are many, of those pulled."""
    if known.counts.shape[-1] <= many:
        return Data.of(known, bases, 0, noise)
    arms = pulled(known.counts)
    unseen = known.counts.shape[-1] - arms.shape[-1]
    return Data.of(known.each(lambda a: np.take_along_axis(a, arms, axis=-1)), of_rows(bases, arms), unseen, noise)


def pulled(counts: Array) -> Array:
    """Return the arms `(R, m)` that were pulled, in order; some that were not, where others pulled more of them."""
    if counts.shape[0] == 1:
        arms = np.nonzero(counts[0] > 0)[0]
        return arms[None, :] if len(arms) else np.zeros((1, 1), dtype=np.int64)
    most = int(np.sum(counts > 0, axis=-1).max())
    return np.sort(top(counts, max(most, 1)), axis=-1)


def _with_separate(each: Array, kinds: tuple[Kind, ...], least: Array) -> Array:
    """Return the weights of kinds with at least `least` `(R,)` on separate means."""
    places = [j for j, kind in enumerate(kinds) if isinstance(kind, SeparateMeans)]
    if not places:
        return each
    floored = np.maximum(each, one_hot(np.asarray(places[0]), each.shape[-1], each.dtype) * least[..., None])  # Eq. 10
    return floored / floored.sum(axis=-1, keepdims=True)


def _piece(made: Structures, kind: str, data: Data, who: Array, best: Array) -> Piece:
    """Return the posterior of the hypothesis `best` `(m,)` of a kind, in the replications `who` `(m,)`."""
    group = [made.hypotheses[j] for j in made.members(kind)]
    names, term, size, apart = group[0].bases, group[0].term, None, None

    def of_best(values: list[Array]) -> Array:
        return pick(np.stack(values, axis=-1)[who], best)

    scales = tuple(of_best([h.scales[p] for h in group]) for p in range(len(names)))
    if term is not None:
        size = of_best([h.size for h in group if h.size is not None])
    if group[0].apart is not None:
        apart = of_best([h.apart for h in group if h.apart is not None])
    own = np.asarray([h.own for h in group], dtype=data.means.dtype)[best]
    needs = names if term is None else (*names, term)
    part = Data(
        data.counts[who],
        data.means[who],
        data.within[who],
        data.squares[who],
        of_replications({name: data.bases[name] for name in needs}, who),
        data.unseen,
        np.broadcast_to(data.noise, data.within.shape)[who],
    )
    tau = part.own(names, scales, own[..., None])
    found = posterior(names, scales, tau, group[0].intercept, part, term, size, apart)
    return Piece(who, found, own, scales)
