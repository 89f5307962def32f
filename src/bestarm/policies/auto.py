"""The default policy: learn from the rewards how much structure to trust, and tell the leader from its challenger.

Several hypotheses about the means (`structures`) are held at once, each a normal posterior, weighted by evidence. What
they make of the arms in play, and which arm's pull tells most, is in `opinion`.
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
from bestarm.linalg import Candidates, flat, one_hot, pick, shaped, tally
from bestarm.models.linear import Linear
from bestarm.models.weighed import Weighed
from bestarm.numbers import whole
from bestarm.policies.elimination import Elimination
from bestarm.policies.opinion import Coverage, Opinion
from bestarm.structures.aside import Groups
from bestarm.structures.bases import EXACT, standardised
from bestarm.structures.hypotheses import KINDS, Kind, Scaling, Structures, structures
from bestarm.structures.odds import binary, read

MANY = 5000  # arms from which a design finds their span by itself
MOST = 12  # pulls of a design among very many arms, if that is more than its share of the budget


@dataclass(frozen=True)
class AutoState:
    """The state: all rewards so far, the hypotheses, and what they make of the rewards."""

    problem: Problem
    made: Structures
    known: Tally
    spent: int
    fresh: int  # pulls when the hypotheses were last weighed
    opinion: Opinion | None = field(repr=False)
    groups: Groups = field(repr=False)

    @property
    def judged(self) -> Tally:
        """What is known without what is set aside."""
        aside = self.groups.aside
        some = np.any(aside, axis=-1)
        if not np.any(some):
            return self.known
        kept = self.groups.kept(self.problem.arms)
        one, two = ((each.counts, each.sums, each.squares, each.within) for each in (kept, self.known))
        return Tally(*(np.where(some[..., None], *pair) for pair in zip(one, two, strict=True)))


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
    hedge: float = 0.5  # the least weight of separate means, in proportion to that of nonlinear kinds
    refresh: float = 1.4
    kept: int = 3  # hypotheses that take part in decisions, the best of each of the weightiest kinds
    kinds: tuple[Kind, ...] = KINDS
    scaling: Scaling = Scaling()
    design: Design = BySize(Rounded(Ascent(start=Multiplicative()), AutoRound()), Sparse())
    working: int = 64
    among: int = 200  # arms in play where kernels go through landmarks

    def __post_init__(self) -> None:
        if self.rounds is not None:
            object.__setattr__(self, "rounds", whole(self.rounds, "rounds", least=1))
        for name in ("share", "first_round", "leading"):
            if not 0 < getattr(self, name) <= 1:
                raise InputError(f"{name} must lie between 0 and 1; given {getattr(self, name)}")
        for name, least in (("steps", 1), ("rivals", 1), ("kept", 1), ("working", 2), ("among", 2)):
            object.__setattr__(self, name, whole(getattr(self, name), name, least))
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
        return AutoState(problem, made, Tally(zero, zero, zero), 0, 0, None, Groups.none(zero.shape[:-1]))

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
            arm = self._settling(state, arm)
            arms = pick(state.opinion.arms, arm)[..., None]
            return Pulls(arms, np.ones_like(arms) * min(chunk, left))
        return self._round(state, min(left, self._size(state)), chunk)

    def tell(self, state: AutoState, pulls: Pulls, totals: Totals) -> AutoState:
        known = state.known + tally(pulls, totals, state.problem.arms)
        spent = state.spent + pulls.total
        state = replace(state, known=known, spent=spent, groups=state.groups.plus(pulls, totals))
        if spent >= state.problem.budget:  # nothing is left to choose, and the answer is thought over anew
            return self._settled(state)
        opinion, place = state.opinion, None
        if opinion is not None and pulls.arms.shape[-1] <= 1 and spent < self.refresh * state.fresh:
            place = opinion.place(pulls.arms[..., 0])
        if opinion is None or place is None:
            return self._thought(replace(state, fresh=spent))
        times = np.astype(pulls.times[..., 0], totals.sums.dtype)
        after = replace(state, opinion=opinion.after(place, times, totals.sums[..., 0]))
        return self._doubted(after)

    def observe(self, state: AutoState, pulls: Pulls, totals: Totals) -> AutoState:
        """Return the state that knows more rewards, and has thought over what it had an opinion on."""
        known = state.known + tally(pulls, totals, state.problem.arms)
        state = replace(state, known=known, groups=state.groups.plus(pulls, totals))
        return self._settled(state) if state.opinion is None else self._thought(state)

    def _settled(self, state: AutoState) -> AutoState:
        """Return the state with what is odd set aside."""
        return replace(state, groups=state.groups.judged(state.problem.arms, ~binary(state.known)[0]))

    def _thought(self, state: AutoState) -> AutoState:
        """Return the state with all thought over."""
        state = self._settled(state)
        return replace(state, opinion=self._opinion(state.made, self.exploring, state.judged))

    def _doubted(self, state: AutoState) -> AutoState:
        """Return the state with all thought over anew where a reward has to be set aside, or to be taken back."""
        who = np.flatnonzero(state.groups.doubtful)
        if not len(who):
            return state
        batch, K = state.groups.high.shape, state.problem.arms
        every = state.groups.each(flat(batch))
        before = every.of(who)
        known = state.known.each(lambda part: flat(batch)(part)[who])
        after = before.judged(K, ~binary(known)[0])
        changed = np.any(after.aside != before.aside, axis=-1)
        if not np.any(changed) or state.opinion is None:
            return state
        who, after = who[changed], after.of(changed)
        kept = after.kept(K)
        opinion = self._opinion(state.made.among(who, batch), self.exploring, kept)
        opinion = state.opinion.each(flat(batch)).where(who, opinion)
        groups = every.where(who, after)
        return replace(state, groups=groups.each(shaped(batch)), opinion=opinion.each(shaped(batch)))

    def recommend(self, state: AutoState) -> Array:
        """Return argmax_i min_j P(f_i > f_j), the arm no other is likely to beat."""
        if state.spent == 0:
            return np.zeros(state.known.sums.shape[:-1], dtype=np.int64)
        return self._opinion(state.made.for_the_answer(), self.kinds, state.judged).surest

    @property
    def flexible(self) -> bool:
        """Rounds that it was set to are kept to; small steps, and rounds made of a size, take what comes."""
        return self.rounds is None

    def describe(self, state: AutoState) -> Standing:
        """Return the weights of the kinds of hypotheses."""
        return Standing(weights=partial(self._weights, state))

    def in_rounds(self, n: int) -> "ByEvidence":
        """Return the policy planned for `n` rounds; those it was set to stand."""
        return self if self.rounds is not None else replace(self, rounds=n)

    def in_batches(self, size: int, pulls: int, filled: bool) -> "ByEvidence":
        """Return the policy planned for as many rounds as batches of `size` make of all `pulls`."""
        if size == 1:
            return self
        first = max(size, ceil((self.share if filled else self.first_round) * pulls))
        return self.in_rounds(min(1 + ceil(max(pulls - first, 0) / size), self.steps))

    def _weights(self, state: AutoState) -> dict[str, float]:
        """Return the weight of every kind of hypothesis in a run by itself, the largest first."""
        if state.spent == 0:
            return {}
        found = self._opinion(state.made.for_the_answer(), self.kinds, state.judged).kinds
        weights = {kind.name: float(found[j]) for j, kind in enumerate(self.kinds)}
        return dict(sorted(weights.items(), key=lambda item: -item[1]))

    def _first(self, problem: Problem, rng: Random) -> Pulls:
        """Return the first pulls: a D-optimal design for a linear model with an intercept, beside first looks.

        Each arm is looked at once where that takes no more than the share of the budget, and where not all arms are in
        play half of it: what was never seen cannot be judged from outside. Where there are far more arms, half of the
        pulls are of any arms: a design is all corners.
        """
        n, K = self._opening(problem), problem.arms
        looks = self._looks(problem)
        scattered = n // 2 if K > EXACT and not looks else 0
        designed = n - K * looks - scattered
        times = np.zeros(problem.features.shape[:-1], dtype=np.int64) + looks
        if designed:
            one = np.ones_like(problem.features[..., :1])
            x = np.concat([standardised(problem.features), one], axis=-1)
            candidates = Candidates.of(x) if K <= MANY else Candidates(x, x)  # many are projected by the design
            times = times + self.design.allocate(candidates, designed, rng)
        if scattered:
            order = rng.random(times.shape) - (times == 0)
            times = times + (np.argsort(np.argsort(order, axis=-1), axis=-1) < scattered)
        return Pulls(np.broadcast_to(np.arange(K, dtype=np.int64), times.shape), times)

    def _looks(self, problem: Problem) -> bool:
        """Return whether each arm is looked at once before anything is chosen."""
        return problem.arms <= problem.budget * (self.share if problem.arms <= self.working else 0.5)

    def _opening(self, problem: Problem) -> int:
        share = self.share if self.rounds is None else max(self.first_round, 1 / self.rounds)
        width = problem.features.shape[-1]
        least = min(2 * width if problem.arms <= EXACT else MOST, problem.arms, problem.budget // 2 + 1)
        if self._looks(problem):
            least = max(least, problem.arms)
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
        leader = one_hot(np.argmax(opinion.mean, axis=-1), times.shape[-1], known.counts.dtype) > 0
        most = max(self.leading, 1 / times.shape[-1]) * size
        for done in range(0, size, chunk):
            count = min(chunk, size - done)
            arm = self._next(opinion, coverage, count, leader & (times >= most))
            opinion = opinion.after(arm, np.ones_like(known.counts[..., 0]) * count, None)
            coverage = coverage.after(arm)
            times = times + np.astype(one_hot(arm, times.shape[-1], known.counts.dtype), np.int64) * count
        return Pulls(opinion.arms, times)

    def _settling(self, state: AutoState, arm: Array) -> Array:
        """Return the position `arm`, or that of an arm in play all of whose rewards are set aside: star or accident."""
        assert state.opinion is not None
        if not np.any(state.groups.aside):
            return arm
        asked = np.take_along_axis(state.groups.unsettled(state.problem.arms), state.opinion.arms, axis=-1)
        return np.where(np.any(asked, axis=-1), np.argmax(asked, axis=-1), arm)

    def _next(self, opinion: Opinion, coverage: Coverage, count: int, barred: Array | None = None) -> Array:
        """Return the position `(...)`, among the arms in play, of the arm to pull `count` times; none `barred`."""
        return coverage.instead(opinion, opinion.most_telling(count, self.rivals, barred))

    def _opinion(self, made: Structures, kinds: tuple[Kind, ...], known: Tally) -> Opinion:
        """Return the opinion that rewards lead to, among some kinds of the hypotheses `made`."""
        mixture, odds = read(made, kinds, known, self.hedge, self.kept, self.working)
        batch, arms = known.sums.shape[:-1], known.sums.shape[-1]
        return Opinion.of(mixture, odds, batch, self.working if arms <= EXACT else self.among)


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
        object.__setattr__(self, "most", whole(self.most, "most", least=1))

    def start(self, problem: Problem) -> Any:
        return self._player(problem).start(problem)

    def ask(self, state: Any, rng: Random) -> Pulls | None:
        pulls: Pulls | None = self._player(state.problem).ask(state, rng)
        return pulls

    def tell(self, state: Any, pulls: Pulls, totals: Totals) -> Any:
        return self._player(state.problem).tell(state, pulls, totals)

    def observe(self, state: Any, pulls: Pulls, totals: Totals) -> Any:
        beyond = state.problem.arms > self.most
        return policy_of(self.beyond).observe(state, pulls, totals) if beyond else super().observe(state, pulls, totals)

    def recommend(self, state: Any) -> Array:
        return self._player(state.problem).recommend(state)

    def describe(self, state: Any) -> Standing:
        """Return how the run of whoever plays stands."""
        return policy_of(self.beyond).describe(state) if state.problem.arms > self.most else super().describe(state)

    def _player(self, problem: Problem) -> Any:
        """Return which of the two plays."""
        return self.beyond if problem.arms > self.most else super()
