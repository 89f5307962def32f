"""Policies that pull one arm at a time: a rule names the arm to pull, a prior tracks what rewards say of the means."""

from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, ClassVar, Protocol

import numpy as np

from bestarm.core import Array, Problem, Pulls, Random, Standing, Totals
from bestarm.designs.ascent import Ascent
from bestarm.designs.protocols import Design, Rounded
from bestarm.designs.rounding import AutoRound
from bestarm.designs.spread import random_subset
from bestarm.designs.starts import Multiplicative, spanning
from bestarm.errors import InputError
from bestarm.linalg import Candidates, dimension
from bestarm.needs import Least, Need, wanted_by
from bestarm.policies.posteriors import LinearPrior
from bestarm.posteriors import Posterior


class Tracked(Posterior, Protocol):
    """What is known of the means, tracked pull by pull; rules may ask for more, as a `NormalPosterior` has."""

    @property
    def counts(self) -> Array:
        """The pulls of each arm, `(..., K)`."""
        ...

    def after(self, pulls: Pulls, totals: Totals) -> "Tracked":
        """Return what is known after `pulls` gave `totals`."""
        ...


class Prior(Protocol):
    """What is known of the means before any pull."""

    @property
    def variance(self) -> float:
        """Of a coefficient, or of the mean of an arm with k(x, x) = 1."""
        ...

    def posterior(self, features: Array, noise: float) -> Tracked:
        """Return what is known of arms with `features` `(..., K, d)` whose rewards have variance `noise`."""
        ...


@dataclass(frozen=True)
class SequentialState:
    """The state of a policy that pulls one arm at a time: what is known of the means, and how many pulls it took."""

    problem: Problem
    posterior: Any  # Tracked, and what the rule asks of it
    spent: int
    memory: Any = field(default=None, repr=False, compare=False)  # what the rule keeps

    @property
    def over(self) -> bool:
        """Whether nothing is left to pull, or nothing to choose."""
        return self.spent >= self.problem.budget or self.problem.arms == 1


class Rule:
    """Which arm to pull next. `arm` is all that a rule must have; the other methods are for those that need more."""

    def noise(self, problem: Problem) -> float:
        """Return the variance of a reward in the units of the prior."""
        return 1.0

    def begin(self, state: SequentialState, prior: Prior) -> Any:
        """Return what the rule keeps, before any pull."""
        return None

    def learn(self, state: SequentialState) -> Any:
        """Return what the rule keeps, now that `state.posterior` has changed."""
        return state.memory

    def arm(self, state: SequentialState, rng: Random) -> Array:
        """Return the arm to pull next, `(...)`."""
        raise NotImplementedError

    def active(self, state: SequentialState) -> Array | None:
        """Return marks of the arms still in the race `(..., K)`; None where no arm ever leaves."""
        return None


class FirstPulls(Protocol):
    """What is pulled before the rule takes over."""

    def pulls(self, problem: Problem, rng: Random) -> Pulls | None: ...


class Final(Protocol):
    """Which arm is named."""

    def arm(self, state: SequentialState) -> Array:
        """Return the arm `(...)`."""
        ...


@dataclass(frozen=True)
class NoPulls:
    """Nothing."""

    def pulls(self, problem: Problem, rng: Random) -> Pulls | None:
        return None


@dataclass(frozen=True)
class EachOnce:
    """Each arm once; a random B of them if the budget B is smaller than that."""

    wants: ClassVar = Least.ARMS

    def pulls(self, problem: Problem, rng: Random) -> Pulls | None:
        shape = (*problem.batch, problem.arms)
        if problem.budget >= problem.arms:
            arms = np.broadcast_to(np.arange(problem.arms, dtype=np.int64), shape)
        else:
            arms = np.argsort(rng.random(shape), axis=-1)[..., : problem.budget]
        return Pulls(arms, np.ones_like(arms))


@dataclass(frozen=True)
class EachIfCheap:
    """Each arm once if that is at most half the budget, else nothing."""

    def pulls(self, problem: Problem, rng: Random) -> Pulls | None:
        return EachOnce().pulls(problem, rng) if problem.budget >= 2 * problem.arms else None


@dataclass(frozen=True)
class EachSeveral:
    """Each arm `first` times, or as often as the budget allows."""

    wants: ClassVar = Least.ARMS

    first: int = 5

    def __post_init__(self) -> None:
        if self.first < 1:
            raise InputError(f"first must be at least 1 pull an arm; given {self.first}")

    def pulls(self, problem: Problem, rng: Random) -> Pulls | None:
        once = EachOnce().pulls(problem, rng)
        assert once is not None
        return replace(once, times=once.times * max(1, min(self.first, problem.budget // problem.arms)))


@dataclass(frozen=True)
class RandomSubset:
    """Each arm once; of a smaller budget a random B of them, in the order of the arms."""

    wants: ClassVar = Least.ARMS

    def pulls(self, problem: Problem, rng: Random) -> Pulls | None:
        shape = (*problem.batch, problem.arms)
        everyone = np.broadcast_to(np.arange(problem.arms, dtype=np.int64), shape)
        return Pulls(everyone, random_subset(shape, min(problem.budget, problem.arms), rng, problem.features))


@dataclass(frozen=True)
class SpanningArms:
    """d arms that span the space once each; of a smaller budget B a random B of all arms.

    d is the number of features, at most one an arm. Where the rank is lower the longest of the other arms make it up,
    so that replications of several ranks stay in step.
    """

    wants: ClassVar = Least.DIMENSIONS

    def pulls(self, problem: Problem, rng: Random) -> Pulls | None:
        x, d = problem.features, min(problem.features.shape[-2:])
        if problem.budget < d:
            return RandomSubset().pulls(problem, rng)
        length = np.vecdot(x, x)
        wanted = spanning(x) * (1 + np.max(length, axis=-1, keepdims=True)) + length
        arms = np.argsort(-wanted, axis=-1, stable=True)[..., :d]
        return Pulls(arms, np.ones_like(arms))


@dataclass(frozen=True)
class EachOrSpanning:
    """Each arm once if that is at most half the budget, else d arms that span the space."""

    wants: ClassVar = Least.DIMENSIONS

    def pulls(self, problem: Problem, rng: Random) -> Pulls | None:
        return (EachOnce() if problem.budget >= 2 * problem.arms else SpanningArms()).pulls(problem, rng)


@dataclass(frozen=True)
class RandomShare:
    """A `share` of the budget on random arms, each at most once."""

    share: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InputError(f"share must be more than 0 and at most 1; given {self.share}")

    def pulls(self, problem: Problem, rng: Random) -> Pulls | None:
        first = min(problem.arms, ceil(self.share * problem.budget))
        arms = np.argsort(rng.random((*problem.batch, problem.arms)), axis=-1)[..., :first]
        return Pulls(arms, np.ones_like(arms))


@dataclass(frozen=True)
class ByDesign:
    """A `share` of the budget by a design, D-optimal unless told otherwise."""

    wants: ClassVar = Least.DIMENSIONS

    share: float = 0.2
    design: Design = Rounded(Ascent(start=Multiplicative()), AutoRound())

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InputError(f"share must lie between 0 and 1; given {self.share}")

    def pulls(self, problem: Problem, rng: Random) -> Pulls | None:
        first = ceil(self.share * problem.budget)
        if first == 0:
            return None
        times = self.design.allocate(Candidates.of(problem.features), first, rng)
        return Pulls(np.broadcast_to(np.arange(problem.arms, dtype=np.int64), times.shape), times)


@dataclass(frozen=True)
class BestEstimate:
    """The arm of largest estimated mean."""

    def arm(self, state: SequentialState) -> Array:
        return np.argmax(state.posterior.mean, axis=-1)


@dataclass(frozen=True)
class BestActive:
    """The arm of largest estimated mean among those the rule has not dropped."""

    def arm(self, state: SequentialState) -> Array:
        return np.argmax(np.where(state.memory.active, state.posterior.mean, -np.inf), axis=-1)


@dataclass(frozen=True)
class MostPulled:
    """The arm pulled most often; among equals the larger estimate, then the lower index."""

    def arm(self, state: SequentialState) -> Array:
        counts = state.posterior.counts
        most = counts == np.max(counts, axis=-1, keepdims=True)
        return np.argmax(np.where(most, state.posterior.mean, -np.inf), axis=-1)


@dataclass(frozen=True)
class Sequential:
    """Pull the arm a rule names from what is known of the means, B times; then name the `final` arm.

    >>> from bestarm.policies.rules import UCB
    >>> policy = Sequential(UCB(noise_variance=1.0), final=MostPulled())
    >>> state = policy.start(Problem(np.array([[1.0, 0.0], [0.0, 2.0]]), budget=5))
    >>> policy.ask(state, np.random.default_rng(0)).arms
    array([1])
    """

    rule: Rule
    prior: Prior = LinearPrior()
    first: FirstPulls = NoPulls()
    final: Final = BestEstimate()

    def needs(self, problem: Problem) -> Need:
        """Return the largest need of its parts."""
        spanned = dimension(problem.features)
        each = [wanted_by(part).need(problem.arms, spanned) for part in (self.first, self.prior, self.rule)]
        return max(each, key=lambda need: need.pulls)

    def start(self, problem: Problem) -> SequentialState:
        state = SequentialState(problem, self.prior.posterior(problem.features, self.rule.noise(problem)), 0)
        return replace(state, memory=self.rule.begin(state, self.prior))

    def ask(self, state: SequentialState, rng: Random) -> Pulls | None:
        if state.over:
            return None
        first = self.first.pulls(state.problem, rng) if state.spent == 0 else None
        if first is not None:
            return first
        arms = self.rule.arm(state, rng)[..., None]
        return Pulls(arms, np.ones_like(arms))

    def tell(self, state: SequentialState, pulls: Pulls, totals: Totals) -> SequentialState:
        return self.observe(replace(state, spent=state.spent + pulls.total), pulls, totals)

    def observe(self, state: SequentialState, pulls: Pulls, totals: Totals) -> SequentialState:
        """Return the state with rewards in its posterior, none of them spent."""
        after = replace(state, posterior=state.posterior.after(pulls, totals))
        memory = self.rule.learn(after)
        return after if memory is state.memory else replace(after, memory=memory)

    def recommend(self, state: SequentialState) -> Array:
        return self.final.arm(state)

    def describe(self, state: SequentialState) -> Standing:
        """Return who is still in, where the rule drops arms."""
        return Standing(self.rule.active(state))
