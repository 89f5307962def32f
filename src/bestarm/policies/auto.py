"""The default policy: learn from the rewards how much structure to trust, and tell the leader from its challenger.

Several hypotheses about the means (`structures`) are held at once, each a normal posterior, weighted by evidence.
The leader i has the largest mixed mean. Whether it is the best arm is decided where it ties with a rival j and no other
arm is above the two: under hypothesis a with means m, covariance C and noise σ², v_j = Var(f_i − f_j), that has density

    t_aj ∝ exp(−(m_i − m_j)² / (2 v_j)) / √v_j · Π_k P(f_k < f_i | f_i = f_j),

and when all pulls are made the answer is wrong in about Σ_a w_a Σ_j t_aj √v_j of all cases. Pulling any arm q c times
takes (C_qi − C_qj)² / (C_qq + σ²/c) off v_j, so the arm pulled is

    q = argmax  Σ_a w_a Σ_j t_aj / √v_j · (C_qi − C_qj)² / (C_qq + σ²/c).
"""

from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from typing import Any

import numpy as np

from bestarm.core import Array, Policy, Problem, Pulls, Random, Standing, Tally, Totals, policy_of
from bestarm.designs.ascent import Ascent
from bestarm.designs.many import BySize, Sparse
from bestarm.designs.protocols import Design, Rounded
from bestarm.designs.rounding import AutoRound
from bestarm.designs.starts import Multiplicative
from bestarm.errors import InputError
from bestarm.linalg import Candidates, one_hot, pick, row, rows, tally, top
from bestarm.models.linear import Linear
from bestarm.models.weighed import Weighed
from bestarm.policies.choices import put
from bestarm.policies.elimination import Elimination
from bestarm.structures.bases import standardised
from bestarm.structures.hypotheses import KINDS, Kind, Scaling, Structures, structures
from bestarm.structures.mixture import Mixture
from bestarm.structures.odds import Odds, chances, read

MANY = 5000  # arms from which a design finds their span by itself
VANISHING = 300.0  # exp(−this) is next to nothing, and its square still a number
REACH = 3.0  # standard deviations an arm's mean is thought to reach up at most


@dataclass(frozen=True)
class Opinion:
    """What is thought of the arms in play: a few hypotheses, each with its weight, and the weight of every kind."""

    arms: Array  # those in play, (..., m)
    weight: Array  # (..., g)
    mean: Array  # (..., g, m)
    covariance: Array  # (..., g, m, m)
    noise: Array  # σ², (..., g)
    kinds: Array  # (..., kinds)
    doubt: Array  # the weight of all nonlinear kinds, (...)
    odds: Odds | None = None  # how rewards of the arms in play are read, if not as they are

    @property
    def mixed(self) -> Array:
        """The mean of the mixture, `(..., m)`."""
        return np.sum(self.weight[..., None] * self.mean, axis=-2)

    def after(self, arm: Array, times: Array, total: Array | None) -> "Opinion":
        """Return the opinion after position `arm` `(...)` was pulled `times` `(...)` with sum `total`; None: unseen."""
        where = np.broadcast_to(arm[..., None], self.weight.shape)
        column = row(self.covariance, where)
        if self.odds is not None:
            share, middle, slope = (pick(a, arm) for a in (self.odds.share, self.odds.middle, self.odds.slope))
            total = None if total is None else share * (middle * times + slope * total)
            times = share * times
        times = times[..., None]
        spread = self.noise + times * pick(column, where)
        u = column * np.sqrt(times / spread)[..., None]
        covariance = (-u)[..., :, None] * u[..., None, :]
        covariance += self.covariance
        if total is None:
            return replace(self, covariance=covariance)
        surprise = (total[..., None] - times * pick(self.mean, where)) / spread
        return replace(self, mean=self.mean + column * surprise[..., None], covariance=covariance)


@dataclass(frozen=True)
class Coverage:
    """How many arms were tried `(...)` and are to be at least, and which of those in play were not `(..., m)`."""

    tried: Array
    wanted: Array
    fresh: Array

    @classmethod
    def of(cls, o: Opinion, counts: Array, budget: int) -> "Coverage":
        """Return the coverage of all arms by `counts` `(..., K)`: doubt in linear means asks for as large a share."""
        tried = np.sum(np.astype(counts > 0, counts.dtype), axis=-1)
        wanted = np.minimum(o.doubt * counts.shape[-1], 0.5 * budget * np.ones_like(o.doubt))
        return cls(tried, wanted, np.take_along_axis(counts, o.arms, axis=-1) == 0)

    def after(self, arm: Array) -> "Coverage":
        """Return the coverage when position `arm` `(...)` was pulled."""
        hot = one_hot(arm, self.fresh.shape[-1], self.tried.dtype) > 0
        new = np.astype(np.any(hot & self.fresh, axis=-1), self.tried.dtype)
        return replace(self, tried=self.tried + new, fresh=self.fresh & ~hot)


@dataclass(frozen=True)
class AutoState:
    """The state: all rewards so far, the hypotheses, and what they make of the rewards."""

    problem: Problem
    made: Structures
    known: Tally
    spent: int
    fresh: int  # pulls when the hypotheses were last weighed
    opinion: Opinion | None = field(repr=False)


@dataclass(frozen=True)
class ByEvidence:
    """Find the best arm with no setting at all: the noise may be unknown, the features may lie.

    The first `share` of the budget is a D-optimal design; the rest is spent in at most `steps` small steps, or in
    `rounds` rounds of several steps planned jointly, the design being the first. Hypotheses are weighed again when the
    pulls have grown by `refresh`; some kinds of them are asked for the answer only. Beyond `working` arms, only that
    many take part between two weighings: the most promising and the most telling.

    >>> policy = ByEvidence()
    >>> state = policy.start(Problem(np.eye(4), budget=40))
    >>> policy.ask(state, np.random.default_rng(0)).total
    4
    """

    rounds: int | None = None
    share: float = 0.1
    first_round: float = 0.2  # with rounds, the share of the first: it is chosen with nothing known
    leading: float = 0.3  # with rounds, the share of one that goes to its leader at most: by its end another may lead
    steps: int = 200
    rivals: int = 12
    hedge: float = 0.15  # the least weight of separate means, in proportion to that of nonlinear kinds
    refresh: float = 1.4
    kept: int = 3  # hypotheses that take part in decisions, the best of each of the weightiest kinds
    kinds: tuple[Kind, ...] = KINDS
    scaling: Scaling = Scaling()
    design: Design = BySize(Rounded(Ascent(start=Multiplicative()), AutoRound()), Sparse())
    working: int = 64

    def __post_init__(self) -> None:
        if self.rounds is not None and (self.rounds < 1 or self.rounds != int(self.rounds)):
            raise InputError(f"rounds must be a whole number, at least 1; given {self.rounds}")
        for name in ("share", "first_round", "leading"):
            if not 0 < getattr(self, name) <= 1:
                raise InputError(f"{name} must lie between 0 and 1; given {getattr(self, name)}")
        for name, least in (("steps", 1), ("rivals", 1), ("kept", 1), ("working", 2)):
            object.__setattr__(self, name, _whole(getattr(self, name), name, least))
        if not self.exploring:
            raise InputError("kinds must have at least one that takes part in choosing pulls; given none")
        if not self.refresh > 1:
            raise InputError(f"refresh must be greater than 1; given {self.refresh}")

    @property
    def model(self) -> Weighed:
        """The reward model it judges by."""
        return Weighed(self.hedge, self.kept, self.kinds, self.scaling)

    @property
    def exploring(self) -> tuple[Kind, ...]:
        """The kinds of hypotheses that take part in choosing pulls; the others are asked for the answer only."""
        return tuple(kind for kind in self.kinds if kind.exploring)

    def start(self, problem: Problem) -> AutoState:
        zero = np.zeros_like(problem.features[..., 0])
        made = structures(problem.features, problem.budget, self.kinds, self.scaling)
        return AutoState(problem, made, Tally(zero, zero, zero), 0, 0, None)

    def ask(self, state: AutoState, rng: Random) -> Pulls | None:
        left = state.problem.budget - state.spent
        if left <= 0 or state.problem.arms == 1:
            return None
        if state.opinion is None:
            return self._first(state.problem, rng)
        chunk = self._chunk(state.problem)
        if self.rounds is None:
            coverage = Coverage.of(state.opinion, state.known.counts, state.problem.budget)
            arm = self._next(state.opinion, coverage, min(chunk, left))
            arms = pick(state.opinion.arms, arm)[..., None]
            return Pulls(arms, np.ones_like(arms) * min(chunk, left))
        return self._round(state, min(left, self._size(state)), chunk)

    def tell(self, state: AutoState, pulls: Pulls, totals: Totals) -> AutoState:
        known = state.known + tally(pulls, totals, state.problem.arms)
        spent = state.spent + pulls.total
        state = replace(state, known=known, spent=spent)
        if spent >= state.problem.budget:  # nothing is left to choose, and the answer is thought over anew
            return state
        opinion, place = state.opinion, None
        if opinion is not None and pulls.arms.shape[-1] <= 1 and spent < self.refresh * state.fresh:
            place = _place(opinion.arms, pulls.arms[..., 0])
        if opinion is None or place is None:
            return replace(state, fresh=spent, opinion=self._opinion(state, state.made, self.exploring))
        times = np.astype(pulls.times[..., 0], totals.sums.dtype)
        return replace(state, opinion=opinion.after(place, times, totals.sums[..., 0]))

    def recommend(self, state: AutoState) -> Array:
        """Return argmax_i min_j P(f_i > f_j), the arm no other is likely to beat."""
        if state.spent == 0:
            return np.zeros(state.known.sums.shape[:-1], dtype=np.int64)
        o = self._opinion(state, state.made.for_the_answer(), self.kinds)
        variance = np.linalg.diagonal(o.covariance)
        apart = variance[..., :, None] + variance[..., None, :] - 2 * o.covariance
        z = (o.mean[..., :, None] - o.mean[..., None, :]) / np.sqrt(np.maximum(apart, 1e-290))
        better = np.sum(o.weight[..., None, None] * _normal(z), axis=-3)
        better = better + np.eye(o.mean.shape[-1], dtype=o.mean.dtype)
        return pick(o.arms, np.argmax(np.min(better, axis=-1), axis=-1))

    def belief(self, state: AutoState) -> dict[str, float]:
        """Return the weight of every kind of hypothesis in a run by itself, the largest first."""
        if state.spent == 0:
            return {}
        found = self._opinion(state, state.made, self.kinds).kinds
        weights = {kind.name: float(found[j]) for j, kind in enumerate(self.kinds)}
        return dict(sorted(weights.items(), key=lambda item: -item[1]))

    @property
    def flexible(self) -> bool:
        """Rounds that it was set to are kept to; small steps, and rounds made of a size, take what comes."""
        return self.rounds is None

    def describe(self, state: AutoState) -> Standing:
        """Return the weights of the kinds of hypotheses."""
        return Standing(weights=partial(self.belief, state))

    def in_rounds(self, n: int) -> "ByEvidence":
        """Return the policy planned for `n` rounds; those it was set to stand."""
        return self if self.rounds is not None else replace(self, rounds=n)

    def in_batches(self, size: int, pulls: int, filled: bool) -> "ByEvidence":
        """Return the policy planned for as many rounds as batches of `size` make of all `pulls`."""
        if size == 1:
            return self
        first = max(size, ceil((self.share if filled else self.first_round) * pulls))
        return self.in_rounds(min(1 + ceil(max(pulls - first, 0) / size), self.steps))

    def _first(self, problem: Problem, rng: Random) -> Pulls:
        """Return the first pulls: a D-optimal design for a linear model with an intercept."""
        one = np.ones_like(problem.features[..., :1])
        x = np.concat([standardised(problem.features), one], axis=-1)
        candidates = Candidates.of(x) if problem.arms <= MANY else Candidates(x, x)  # many are projected by the design
        times = self.design.allocate(candidates, self._opening(problem), rng)
        return Pulls(np.broadcast_to(np.arange(problem.arms, dtype=np.int64), times.shape), times)

    def _opening(self, problem: Problem) -> int:
        share = self.share if self.rounds is None else max(self.first_round, 1 / self.rounds)
        least = min(2 * problem.features.shape[-1], problem.arms, problem.budget // 2 + 1)
        return min(problem.budget, max(ceil(share * problem.budget), int(least)))

    def _chunk(self, problem: Problem) -> int:
        """Return the pulls of one step."""
        return max(1, round((problem.budget - self._opening(problem)) / self.steps))

    def _size(self, state: AutoState) -> int:
        """Return the pulls of the next round: what is left, spread evenly over the rounds that are left.

        One that was not answered whole is made up for later, rather than by a round of a few pulls.
        """
        assert self.rounds is not None
        opening = self._opening(state.problem)
        rest = state.problem.budget - opening
        done = state.spent - opening
        each = ceil(rest / max(self.rounds - 1, 1))
        left = each - done % each
        return left if 2 * left > each else each

    def _round(self, state: AutoState, size: int, chunk: int) -> Pulls:
        """Return a round of `size` pulls: steps planned one after the other, the rewards of none of them seen."""
        assert state.opinion is not None
        opinion, known = state.opinion, state.known
        coverage = Coverage.of(opinion, known.counts, state.problem.budget)
        times = np.zeros(opinion.arms.shape, dtype=np.int64)
        leader = one_hot(np.argmax(opinion.mixed, axis=-1), times.shape[-1], known.counts.dtype) > 0
        most = max(self.leading, 1 / times.shape[-1]) * size
        for done in range(0, size, chunk):
            count = min(chunk, size - done)
            arm = self._next(opinion, coverage, count, leader & (times >= most))
            opinion = opinion.after(arm, np.ones_like(known.counts[..., 0]) * count, None)
            coverage = coverage.after(arm)
            times = times + np.astype(one_hot(arm, times.shape[-1], known.counts.dtype), np.int64) * count
        return Pulls(opinion.arms, times)

    def _next(self, o: Opinion, coverage: Coverage, count: int, barred: Array | None = None) -> Array:
        """Return the position `(...)`, among the arms in play, of the arm to pull `count` times; none `barred`."""
        mixed = o.mixed
        leader = np.argmax(mixed, axis=-1)
        each = np.broadcast_to(leader[..., None], o.weight.shape)
        with_leader = row(o.covariance, each)
        variance = np.linalg.diagonal(o.covariance)
        level = variance + pick(variance, each)[..., None]
        apart = np.maximum(level - 2 * with_leader, 0.0)
        behind = pick(o.mean, each)[..., None] - o.mean
        told = apart > 1e-12 * level
        far = behind * behind / (2 * np.where(told, apart, np.ones_like(apart)))
        tie = o.weight[..., None] * np.exp(_lifted(far, told)) * np.astype(told, far.dtype)
        rivals = top(put(np.sum(tie, axis=-2), leader, -1.0), min(self.rivals, o.arms.shape[-1] - 1))
        wide = np.broadcast_to(rivals[..., None, :], (*o.weight.shape, rivals.shape[-1]))
        telling = with_leader[..., None, :] - rows(o.covariance, wide)
        tie, apart, behind = (np.take_along_axis(a, wide, axis=-1) for a in (tie, apart, behind))
        apart = np.where(apart > 0, apart, np.ones_like(apart))
        shared = np.take_along_axis(telling, np.broadcast_to(each[..., None, None], (*wide.shape, 1)), axis=-1)
        among = np.take_along_axis(telling, np.broadcast_to(wide[..., None, :], (*wide.shape, wide.shape[-1])), axis=-1)
        stake = tie * _unbeaten(behind, apart, shared - among) / apart
        shrunk = np.sum(stake[..., None] * telling * telling, axis=-2)
        count = count if o.odds is None else count * o.odds.share[..., None, :]
        gain = np.sum(shrunk / (variance + o.noise[..., None] / count), axis=-2)
        if barred is not None:
            gain = np.where(barred, -np.ones_like(gain), gain)
        return self._covered(o, coverage, mixed, np.argmax(gain, axis=-1))

    def _covered(self, o: Opinion, coverage: Coverage, mixed: Array, arm: Array) -> Array:
        """Return `arm`, or an arm not pulled yet while fewer were tried than the doubt in linear means asks for."""
        short = coverage.tried < coverage.wanted
        if not bool(np.any(short)):
            return arm
        weight = o.weight[..., None]
        off = o.mean - mixed[..., None, :]
        spread = np.sum(weight * (np.linalg.diagonal(o.covariance) + off * off), axis=-2)
        reach = mixed + REACH * np.sqrt(np.maximum(spread, 0.0))
        best = np.argmax(np.where(coverage.fresh, reach, -np.inf), axis=-1)
        return np.where(short & np.any(coverage.fresh, axis=-1), best, arm)

    def _opinion(self, state: AutoState, made: Structures, kinds: tuple[Kind, ...]) -> Opinion:
        """Return the opinion that all rewards so far lead to, among some kinds of the hypotheses `made`."""
        batch = state.known.sums.shape[:-1]
        mixture, odds = read(made, kinds, state.known, self.hedge, self.kept, self.working)
        arms = self._working(mixture)
        mean, covariance = mixture.moments(arms)
        found = (arms, mixture.weight, mean, covariance, mixture.noise, mixture.kinds, mixture.nonlinear)
        shaped: list[Array] = [np.reshape(part, (*batch, *part.shape[1:])) for part in found]
        opinion = Opinion(*shaped)
        if odds is None:
            return opinion
        return replace(opinion, odds=Odds.around(chances(opinion.mixed), odds.binary, odds.lost))

    def _working(self, mixture: Mixture) -> Array:
        """Return the arms in play: all, or where there are many the most promising and the most pulled."""
        counts = mixture.known.counts
        size, arms = counts.shape
        if arms <= self.working:
            return np.broadcast_to(np.arange(arms, dtype=np.int64), (size, arms))
        most = top(counts, self.working // 4)
        scout = np.any(np.arange(arms, dtype=np.int64) == most[..., None], axis=-2) & (counts > 0)
        return np.sort(mixture.foremost(self.working, REACH, scout), axis=-1)


@dataclass(frozen=True)
class Auto(ByEvidence):
    """`ByEvidence` for up to `most` arms; `beyond` plays with more, where it would be slow.

    >>> policy = Auto()
    >>> state = policy.start(Problem(np.eye(4), budget=40))
    >>> policy.ask(state, np.random.default_rng(0)).total
    4
    """

    most: int = 200_000
    beyond: Policy[Any] = field(default=Elimination(Linear(), Sparse()), metadata={"apart": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "most", _whole(self.most, "most", 1))

    def start(self, problem: Problem) -> Any:
        return self._player(problem).start(problem)

    def ask(self, state: Any, rng: Random) -> Pulls | None:
        pulls: Pulls | None = self._player(state.problem).ask(state, rng)
        return pulls

    def tell(self, state: Any, pulls: Pulls, totals: Totals) -> Any:
        return self._player(state.problem).tell(state, pulls, totals)

    def recommend(self, state: Any) -> Array:
        return self._player(state.problem).recommend(state)

    def belief(self, state: Any) -> dict[str, float]:
        return {} if state.problem.arms > self.most else super().belief(state)

    def describe(self, state: Any) -> Standing:
        """Return how the run of whoever plays stands."""
        return policy_of(self.beyond).describe(state) if state.problem.arms > self.most else super().describe(state)

    def _player(self, problem: Problem) -> Any:
        """Return which of the two plays."""
        return self.beyond if problem.arms > self.most else super()


def _whole(given: Any, name: str, least: int) -> int:
    if given < least or given != int(given):
        raise InputError(f"{name} must be a whole number, at least {least}; given {given}")
    return int(given)


def _place(arms: Array, arm: Array) -> Array | None:
    """Return the position of `arm` `(...)` in `arms` `(..., m)`; None where some replication does not have it."""
    there = arms == arm[..., None]
    return np.argmax(np.astype(there, np.int64), axis=-1) if bool(np.all(np.any(there, axis=-1))) else None


def _lifted(far: Array, told: Array) -> Array:
    """Return −far `(..., g, m)`, or far's least value less far where all odds would vanish: the race is decided then.

    What is largest among the gains is the same; without this, all would be zero and the first arm would be pulled.
    """
    nearest = np.min(np.where(told, far, np.inf), axis=(-2, -1), keepdims=True)
    decided = (nearest > VANISHING) & np.isfinite(nearest)
    return np.minimum(np.where(decided, nearest, np.zeros_like(nearest)) - far, 0.0)


def _unbeaten(behind: Array, apart: Array, shared: Array) -> Array:
    """Return the chance `(..., r)` that no other rival is above the leader and rival j, were these two equal.

    With b = `behind` and v = `apart` `(..., r)` the means and variances of how far rivals are behind the leader, and
    c = `shared` `(..., r, r)` their covariance, k is behind by N(b_k − b_j c_jk / v_j, v_k − c_jk² / v_j) where j is
    not at all. The chances of all k are multiplied.
    """
    share = shared / apart[..., None]
    mean = behind[..., None, :] - share * behind[..., None]
    least = 1e-12 * apart[..., None, :] + 1e-290
    z = mean / np.sqrt(np.maximum(apart[..., None, :] - share * shared, least))
    itself = np.eye(behind.shape[-1], dtype=behind.dtype) > 0
    return np.prod(np.where(itself, np.ones_like(z), _normal(z)), axis=-1)


def _normal(z: Array) -> Array:
    """Return the normal distribution function, to three digits: a logistic curve of a cubic. It is never 0."""
    z = np.clip(z, -8.0, 8.0)
    return 1 / (1 + np.exp(-z * (1.5957691216 + 0.0713548163 * z * z)))
