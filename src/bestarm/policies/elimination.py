"""Elimination: explore by a design, estimate by a model, keep the best arms of a schedule's stage, again.

GSE (Azizi, Kveton and Ghavamzadeh 2022, Algorithm 1), OD-LinBAI, sequential halving and successive rejects are this
loop with other parts.
"""

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np

from bestarm.core import Array, Estimates, Problem, Pulls, Random, Standing, Tally, Totals
from bestarm.errors import BudgetError, InputError
from bestarm.linalg import Candidates, dimension, entries, rank, rows, scatter, tally, top
from bestarm.models.protocols import Fit, Model
from bestarm.needs import Need, smallest, wanted_by
from bestarm.policies.schedules import EvenStages, Schedule, Stages

MANY = 5000


@dataclass(frozen=True)
class EliminationState:
    """The state of an elimination: which arms are active, which may be pulled, what is known."""

    problem: Problem
    stages: Stages
    stage: int
    active: Array  # A_t, (..., k_t) in increasing order
    measured: Array  # arms that may be pulled now, (..., m)
    candidates: Candidates  # of the measured arms
    judged: Array  # arms the last fit compared, (..., k_{t-1})
    fit: Fit | None  # what it made of them
    known: Tally  # totals of all K arms the next fit builds on
    spent: Array  # pulls so far, (...)
    best: Array  # (...)
    groups: tuple["RankGroup", ...] = ()  # where the replications have schedules of their own: they stand here, by rank


class RankGroup(NamedTuple):
    """Replications of one rank, as a run of their own."""

    places: Array  # among all of them, counted along the batch as one axis
    state: EliminationState

    def ask(self, policy: "Elimination", rng: Random) -> Pulls:
        """Return what they ask for, by arm `(n, K)`; nothing where their stages are over."""
        zero = np.zeros(self.state.problem.features.shape[:-1], dtype=np.int64)
        pulls = policy.ask(self.state, rng)
        times = zero if pulls is None else scatter(pulls.arms, pulls.times, zero.shape[-1])
        return Pulls(_everyone(self.state.problem), times)

    def tell(self, policy: "Elimination", pulls: Pulls, totals: Totals) -> "RankGroup":
        """Return the group after its part of `pulls` gave its part of `totals`, both `(R, m)`."""
        if self.state.stage == len(self.state.stages):
            return self
        own = Pulls(pulls.arms[self.places, :], pulls.times[self.places, :])
        scatter = None if totals.scatter is None else totals.scatter[self.places, :]
        gave = Totals(totals.sums[self.places, :], totals.squares[self.places, :], scatter)
        return self._replace(state=policy.tell(self.state, own, gave))


class RanksDiffer(Exception):
    """Replications that are played together have features of several ranks, and their schedule goes by the rank."""


class Measure(Protocol):
    """Which arms may be pulled while some are still active."""

    def arms(self, everyone: Array, active: Array) -> Array: ...

    def targets(self, active: Array) -> Array | None:
        """Return the arms whose comparison matters as positions among the measured; None means all of those."""
        ...


@dataclass(frozen=True)
class Survivors:
    """Only arms still active (the paper)."""

    def arms(self, everyone: Array, active: Array) -> Array:
        return active

    def targets(self, active: Array) -> Array | None:
        return None


@dataclass(frozen=True)
class AllArms:
    """Any arm, also an eliminated one, if it tells the survivors apart."""

    def arms(self, everyone: Array, active: Array) -> Array:
        return everyone

    def targets(self, active: Array) -> Array | None:
        return active


class StageMemory(Protocol):
    """What data a stage's fit rests on."""

    def merge(self, before: Tally, now: Tally) -> Tally: ...

    def scope(self, everyone: Array, measured: Array) -> Array:
        """Return the arms the data may be about."""
        ...


@dataclass(frozen=True)
class ThisStage:
    """The stage's own data (the paper: this independence is what its proof uses)."""

    def merge(self, before: Tally, now: Tally) -> Tally:
        return now

    def scope(self, everyone: Array, measured: Array) -> Array:
        return measured


@dataclass(frozen=True)
class AllStages:
    """The data of all stages so far."""

    def merge(self, before: Tally, now: Tally) -> Tally:
        return before + now

    def scope(self, everyone: Array, measured: Array) -> Array:
        return everyone


@dataclass(frozen=True)
class Elimination:
    """Pull the active arms by a design, estimate their means by a model, keep the best; once for each stage.   Alg. 1

    A_{t+1} = the k_{t+1} arms of A_t with the largest μ̂_i, μ̂ fitted to the pulls Π_t of stage t.

    >>> from bestarm.designs.spread import Uniform
    >>> from bestarm.models.means import Means
    >>> halving = Elimination(Means(), Uniform(), EvenStages(eta=2))
    >>> state = halving.start(Problem(np.eye(8), budget=100))
    >>> state.stages
    (Stage(pulls=33, keep=4), Stage(pulls=33, keep=2), Stage(pulls=34, keep=1))
    """

    model: Model
    design: Any  # a Design where stages are rounded by it, else Weights: what the schedule's stages ask
    schedule: Schedule = EvenStages()
    memory: StageMemory = ThisStage()
    measure: Measure = Survivors()

    @property
    def eta(self) -> float | None:
        """The η of the theorem's bound on the error; None where the schedule is none it speaks of."""
        return self.schedule.ratio

    def needs(self, problem: Problem) -> Need:
        return self.needed(problem.arms, dimension(problem.features))

    def needed(self, arms: int, dimension: int) -> Need:
        """Return what the first stage needs so that its model can tell arms apart, and each other stage a pull."""
        each = wanted_by(self.model).need(arms, dimension)

        def first(budget: int) -> int:
            """Return the pulls of the first stage, 0 where the budget is refused; rounding up takes what there is."""
            try:
                stages = self.schedule.stages(arms, budget, lambda: dimension)
            except BudgetError:
                return 0
            return min((budget, *(stages[0].certain if stages else ())))

        pulls = smallest(lambda budget: first(budget) >= each.pulls, each.pulls)
        if not first(max(pulls - 1, 1)):
            return Need(pulls, "with fewer it refuses to begin")
        stages = len(self.schedule.stages(arms, pulls, lambda: dimension))
        return Need(pulls, each.why if stages < 2 else f"{each.why} in the first of {stages} stages")

    def start(self, problem: Problem) -> EliminationState:
        everyone = _everyone(problem)
        candidates = Candidates.of(problem.features)
        groups: tuple[RankGroup, ...] = ()
        try:
            stages = self.schedule.stages(problem.arms, problem.budget, lambda: _common_rank(candidates))
        except RanksDiffer:
            groups = self._by_rank(problem, candidates)
            stages = max((group.state.stages for group in groups), key=len)
        zero = np.zeros_like(problem.features[..., 0])
        return EliminationState(
            problem=problem,
            stages=stages,
            stage=0,
            active=everyone,
            measured=everyone,
            candidates=candidates,
            judged=everyone,
            fit=None,
            known=Tally(zero, zero, zero),
            spent=np.zeros(problem.batch, dtype=np.int64),
            best=everyone[..., 0],
            groups=groups,
        )

    def ask(self, state: EliminationState, rng: Random) -> Pulls | None:
        if state.stage == len(state.stages):
            return None
        if state.groups:
            each = [(group.places, group.ask(self, rng).times) for group in state.groups]
            return Pulls(_everyone(state.problem), _together(each, state.problem.batch))
        left = state.problem.budget - state.spent
        targets = self.measure.targets(state.active)
        times = state.stages[state.stage].times(self.design, state.candidates, left, rng, targets)  # Alg. 1, line 3
        return None if times is None else _asked(state.measured, times)

    def tell(self, state: EliminationState, pulls: Pulls, totals: Totals) -> EliminationState:
        if state.stage == len(state.stages):
            raise InputError("all stages are over: there is nothing left to tell this elimination")
        if state.groups:
            return self._tell_groups(state, pulls, totals)
        everyone = _everyone(state.problem)
        known = self.memory.merge(state.known, tally(pulls, totals, state.problem.arms))
        fit = self._fit(state, known, self.memory.scope(everyone, state.measured))  # Alg. 1, line 4
        places = top(fit.score, state.stages[state.stage].keep)  # Alg. 1, line 5
        ahead = entries(state.active, places)
        active = np.sort(ahead, axis=-1)
        pulled = np.sum(pulls.times, axis=-1)
        measured = self.measure.arms(everyone, active)
        fewer = measured.shape[-1] != state.measured.shape[-1] and state.stage + 1 < len(state.stages)
        return EliminationState(
            problem=state.problem,
            stages=state.stages,
            stage=state.stage + 1,
            active=active,
            measured=measured,
            candidates=self._project(state, measured) if fewer else state.candidates,  # Alg. 1, line 2
            judged=state.active,
            fit=fit,
            known=known,
            spent=state.spent + pulled,
            best=np.where(pulled > 0, ahead[..., 0], state.best)[()],  # a stage that measured nothing has no new leader
        )

    def recommend(self, state: EliminationState) -> Array:
        return state.best

    def standard_error(self, state: EliminationState) -> Array:
        """Return the standard errors of the means `state.fit` holds, in the order of `state.judged`.

        Those arms were compared on what `tell` had then; the same data are still in `state.known`.
        """
        assert state.fit is not None
        everyone = _everyone(state.problem)
        measured = self.measure.arms(everyone, state.judged)
        scope = self.memory.scope(everyone, measured)
        candidates = self._project(state, scope)
        known = _among(state.known, scope)
        fit = self.model.fit(candidates, known)
        error = self.model.standard_error(candidates, known, fit, state.problem.noise_variance)
        if scope.shape[-1] == state.judged.shape[-1]:
            return error
        return entries(error, state.judged)

    def describe(self, state: EliminationState) -> Standing:
        """Return who is still in, the stages, and what the last one made of the arms it compared."""
        if state.groups:
            each = [(group.places, _marks(group.state)) for group in state.groups]
            return Standing(_together(each, state.problem.batch))
        pulls = tuple(count for stage in state.stages for count in stage.certain)
        return Standing(_marks(state), pulls, state.stage, self.eta, partial(self._estimates, state))

    def _by_rank(self, problem: Problem, candidates: Candidates) -> tuple[RankGroup, ...]:
        """Return the replications of each rank at their start, as runs of their own."""
        ranks = np.reshape(rank(candidates.coordinates), -1)
        features = np.reshape(problem.features, (len(ranks), *problem.features.shape[-2:]))
        places = [np.flatnonzero(ranks == one) for one in np.unique(ranks)]
        return tuple(RankGroup(some, self.start(replace(problem, features=features[some]))) for some in places)

    def _tell_groups(self, state: EliminationState, pulls: Pulls, totals: Totals) -> EliminationState:
        """Return the state after each group was told its part; a group whose stages are over stays as it is."""
        size = prod(state.problem.batch)
        parts = (pulls.arms, pulls.times, totals.sums, totals.squares, totals.scatter)
        flat: list[Any] = [None if part is None else np.reshape(part, (size, -1)) for part in parts]
        groups = tuple(group.tell(self, Pulls(*flat[:2]), Totals(*flat[2:])) for group in state.groups)
        best = _together([(group.places, group.state.best) for group in groups], state.problem.batch)
        spent = state.spent + np.sum(pulls.times, axis=-1)
        return replace(state, stage=state.stage + 1, groups=groups, spent=spent, best=best)

    def _estimates(self, state: EliminationState) -> Estimates | None:
        if state.fit is None:
            return None
        order = np.argsort(-state.fit.score, axis=-1, stable=True)
        found = (state.judged, state.fit.mean, self.standard_error(state))
        return Estimates(*(entries(part, order) for part in found))

    def _fit(self, state: EliminationState, known: Tally, scope: Array) -> Fit:
        same = scope.shape[-1] == state.measured.shape[-1]
        candidates = state.candidates if same else self._project(state, scope)
        fit = self.model.fit(candidates, _among(known, scope))
        if scope.shape[-1] == state.active.shape[-1]:
            return fit
        score = entries(fit.score, state.active)
        return Fit(score, score if fit.mean is fit.score else entries(fit.mean, state.active))

    def _project(self, state: EliminationState, arms: Array) -> Candidates:
        features = state.problem.features
        return Candidates.of(features if arms.shape[-1] == state.problem.arms else rows(features, arms))


def _common_rank(candidates: Candidates) -> int:
    """Return the dimension of the span, if all replications have the same; else raise RanksDiffer."""
    dimension = rank(candidates.coordinates)
    least, most = (int(pick(dimension)) if dimension.size else 1 for pick in (np.min, np.max))
    if least != most:
        raise RanksDiffer
    return most


def _marks(state: EliminationState) -> Array:
    """Return who is still in, `(..., K)`."""
    counted: Array = scatter(state.active, np.ones_like(state.active), state.problem.arms)
    return counted > 0


def _together(each: list[tuple[Array, Array]], batch: tuple[int, ...]) -> Array:
    """Return arrays `(n, ...)` of replications at their places, as one array with the axes `batch` in front."""
    places, parts = (np.concatenate(some) for some in zip(*each, strict=True))
    return np.reshape(parts[np.argsort(places)], (*batch, *parts.shape[1:]))


def _asked(arms: Array, times: Array) -> Pulls:
    """Return a request; one run over many arms names only those with a pull, a few of a million."""
    if len(times.shape) > 1 or times.shape[0] <= MANY:
        return Pulls(arms, times)
    some = np.nonzero(times)[0]
    return Pulls(np.take(arms, some), np.take(times, some))


def _everyone(problem: Problem) -> Array:
    return _places(*problem.batch, problem.arms)


@lru_cache(maxsize=4)
def _places(*shape: int) -> Array:
    return np.broadcast_to(np.arange(shape[-1], dtype=np.int64), shape)


def _among(known: Tally, arms: Array) -> Tally:
    if arms.shape[-1] == known.sums.shape[-1]:
        return known
    return known.each(lambda part: entries(part, arms))
