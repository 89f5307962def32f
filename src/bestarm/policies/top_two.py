"""Linear top-two: a D-optimal start, then the leader against its closest challenger."""

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Protocol

import numpy as np

from bestarm.core import Array, Problem, Pulls, Random, Totals
from bestarm.designs.optimal import Multiplicative, WolfeAtwood
from bestarm.designs.protocols import Design, Rounded
from bestarm.designs.rounding import AutoRound
from bestarm.errors import InputError
from bestarm.linalg import Candidates, pick
from bestarm.policies.belief import LinearPrior, Prior, root
from bestarm.policies.rules import Answer, BestEstimate, Race, heard, known_noise, once, put, telling_arm


class Challenger(Protocol):
    """Which arm the leader has most to fear from."""

    def against(self, leader: Array, state: Race) -> Array:
        """Return the challenger `(...)` of `leader` `(...)`."""
        ...


@dataclass(frozen=True)
class Closest:
    """argmin (mean_i − mean_j)² / Var(f_i − f_j); arms the belief cannot tell from the leader are not close."""

    def against(self, leader: Array, state: Race) -> Array:
        belief = state.belief
        spread = belief.distances(leader)
        apart = spread > 1e-12 * (belief.variance + pick(belief.variance, leader)[..., None])
        behind = pick(belief.mean, leader)[..., None] - belief.mean
        far = float(np.finfo(spread.dtype).max) * np.ones_like(spread)
        cost = np.where(apart, behind * behind / np.where(apart, spread, np.ones_like(spread)), far)
        return np.argmin(put(cost, leader, np.inf), axis=-1)


@dataclass(frozen=True)
class Optimistic:
    """argmax mean_j + `times` σ sd(f_i − f_j), sd in units of σ; it needs the noise variance."""

    times: float = 2.0
    noise_variance: float | None = None

    def against(self, leader: Array, state: Race) -> Array:
        sigma = sqrt(known_noise(state.problem, self.noise_variance, "the challenger Optimistic"))
        index = state.belief.mean + self.times * sigma * root(state.belief.distances(leader))
        return np.argmax(put(index, leader, -np.inf), axis=-1)


@dataclass(frozen=True)
class TopTwo:
    """Pull what best tells the leader i = argmax mean from its challenger j.

    That is argmax_a (C_ai − C_aj)² / (1 + C_aa), with C the covariance of the belief. The first `share` of the budget
    follows `design`. The prior is in units of the noise variance: only the ratio of the two matters to the estimates,
    so the noise need not be known.

    >>> import numpy as np
    >>> policy = TopTwo()
    >>> state = policy.start(Problem(np.eye(3), budget=20))
    >>> policy.ask(state, np.random.default_rng(0)).total
    4
    >>> totals = Totals(np.array([0.0, 4.0, 1.0]), np.zeros(3))
    >>> state = policy.tell(state, Pulls(np.arange(3), np.array([2, 2, 2])), totals)
    >>> policy.pair(state)  # arm 1 leads, arm 2 is nearer than arm 0
    (np.int64(1), np.int64(2))
    """

    prior: Prior = LinearPrior(0.3)
    share: float = 0.2
    design: Design = Rounded(WolfeAtwood(start=Multiplicative()), AutoRound())
    challenger: Challenger = Closest()
    answer: Answer = BestEstimate()

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InputError(f"share must lie between 0 and 1; given {self.share}")

    def start(self, problem: Problem) -> Race:
        return Race(problem, self.prior.belief(problem.features, 1.0), 0)

    def ask(self, state: Race, rng: Random) -> Pulls | None:
        if state.over:
            return None
        first = ceil(self.share * state.problem.budget)
        if state.spent == 0 and first > 0:
            return self._design(state.problem, first, rng)
        return once(telling_arm(state.belief, *self.pair(state)))

    def tell(self, state: Race, pulls: Pulls, totals: Totals) -> Race:
        return heard(state, pulls, totals)

    def recommend(self, state: Race) -> Array:
        return self.answer.arm(state.belief.counts, state.belief.mean)

    def pair(self, state: Race) -> tuple[Array, Array]:
        """Return the leader and its challenger, each `(...)`."""
        mean = state.belief.mean
        leader = np.argmax(mean, axis=-1)
        return leader, self.challenger.against(leader, state)

    def _design(self, problem: Problem, pulls: int, rng: Random) -> Pulls:
        times = self.design.allocate(Candidates.of(problem.features), pulls, rng)
        return Pulls(np.broadcast_to(np.arange(problem.arms, dtype=np.int64), times.shape), times)
