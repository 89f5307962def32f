"""Generalized Successive Elimination (Algorithm 1): explore, estimate, keep the best 1/η, again."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from bestarm.core import Array, Estimates, Problem, Pulls, Random, Standing, Tally, Totals, namespace
from bestarm.designs.protocols import Design
from bestarm.errors import InputError
from bestarm.linalg import Candidates, rows, scatter, tally, top
from bestarm.models.protocols import Fit, Model
from bestarm.policies.schedules import Leftover, Stage, ToLastStages, even_stages

MANY = 5000


@dataclass(frozen=True)
class Contest:
    """The state of an elimination: who is still in, what may be pulled, what is known."""

    problem: Problem
    stages: tuple[Stage, ...]
    stage: int
    active: Array  # A_t, (..., k_t) in increasing order
    measured: Array  # arms that may be pulled now, (..., m)
    candidates: Candidates  # of the measured arms
    judged: Array  # arms the last fit compared, (..., k_{t-1})
    fit: Fit | None  # what it made of them
    known: Tally  # totals of all K arms the next fit builds on
    best: Array  # (...)


class Measure(Protocol):
    """Which arms may be pulled while some are still in the race."""

    def arms(self, everyone: Array, active: Array) -> Array: ...

    def targets(self, active: Array) -> Array | None:
        """Return the arms whose comparison matters as positions among the measured; None means all of those."""
        ...


@dataclass(frozen=True)
class Survivors:
    """Only arms still in the race (the paper)."""

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


class Memory(Protocol):
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
    """Eliminate arms in stages by a reward model and a design.   Alg. 1

    `eta` = 2 halves the arms at each stage; any η ≥ K (or infinity) leaves a single, static stage.

    >>> import numpy as np
    >>> from bestarm.designs.spread import Uniform
    >>> from bestarm.models.means import Means
    >>> halving = Elimination(Means(), Uniform())
    >>> state = halving.start(Problem(np.eye(8), budget=100))
    >>> state.stages
    (Stage(pulls=33, keep=4), Stage(pulls=33, keep=2), Stage(pulls=34, keep=1))
    """

    model: Model
    design: Design
    eta: float = 2.0
    memory: Memory = ThisStage()
    measure: Measure = Survivors()
    leftover: Leftover = ToLastStages()

    def start(self, problem: Problem) -> Contest:
        xp = namespace(problem.features)
        stages = even_stages(problem.arms, problem.budget, self.eta, self.leftover)
        everyone = _everyone(problem)
        zero = xp.zeros_like(problem.features[..., 0])
        return Contest(
            problem=problem,
            stages=stages,
            stage=0,
            active=everyone,
            measured=everyone,
            candidates=Candidates.of(problem.features),
            judged=everyone,
            fit=None,
            known=Tally(zero, zero, zero),
            best=everyone[..., 0],
        )

    def ask(self, state: Contest, rng: Random) -> Pulls | None:
        if state.stage == len(state.stages):
            return None
        pulls = state.stages[state.stage].pulls
        targets = self.measure.targets(state.active)
        times = self.design.allocate(state.candidates, pulls, rng, targets)  # Alg. 1, line 3
        return _asked(state.measured, times)

    def tell(self, state: Contest, pulls: Pulls, totals: Totals) -> Contest:
        if state.stage == len(state.stages):
            raise InputError("all stages are over: there is nothing left to tell this elimination")
        xp = namespace(state.active)
        everyone = _everyone(state.problem)
        known = self.memory.merge(state.known, tally(pulls, totals, state.problem.arms))
        fit = self._fit(state, known)  # Alg. 1, line 4
        places = top(fit.score, state.stages[state.stage].keep)  # Alg. 1, line 5
        active = xp.sort(xp.take_along_axis(state.active, places, axis=-1), axis=-1)
        best = xp.take_along_axis(state.active, places[..., :1], axis=-1)[..., 0]
        measured = self.measure.arms(everyone, active)
        moved = measured.shape[-1] != state.measured.shape[-1] and state.stage + 1 < len(state.stages)
        return replace(
            state,
            stage=state.stage + 1,
            active=active,
            measured=measured,
            candidates=self._project(state, measured) if moved else state.candidates,  # Alg. 1, line 2
            judged=state.active,
            fit=fit,
            known=known,
            best=best,
        )

    def recommend(self, state: Contest) -> Array:
        return state.best

    def standard_error(self, state: Contest) -> Array:
        """Return the standard errors of the means `state.fit` holds, in the order of `state.judged`.

        Those arms were compared on what `tell` had then; the same data are still in `state.known`.
        """
        assert state.fit is not None
        xp = namespace(state.known.sums)
        everyone = _everyone(state.problem)
        measured = self.measure.arms(everyone, state.judged)
        scope = self.memory.scope(everyone, measured)
        candidates = self._project(state, scope)
        known = _among(state.known, scope)
        fit = self.model.fit(candidates, known)
        error = self.model.standard_error(candidates, known, fit, state.problem.noise_variance)
        if scope.shape[-1] == state.judged.shape[-1]:
            return error
        return xp.take_along_axis(error, state.judged, axis=-1)

    def describe(self, state: Contest) -> Standing:
        """Return who is still in, the stages, and what the last one made of the arms it compared."""
        active = scatter(state.active, namespace(state.active).ones_like(state.active), state.problem.arms) > 0
        pulls = tuple(stage.pulls for stage in state.stages)
        return Standing(active, pulls, state.stage, self.eta, partial(self._estimates, state))

    def _estimates(self, state: Contest) -> Estimates | None:
        if state.fit is None:
            return None
        xp = namespace(state.fit.score)
        order = xp.argsort(-state.fit.score, axis=-1, stable=True)
        found = (state.judged, state.fit.mean, self.standard_error(state))
        return Estimates(*(xp.take_along_axis(part, order, axis=-1) for part in found))

    def _fit(self, state: Contest, known: Tally) -> Fit:
        xp = namespace(known.sums)
        scope = self.memory.scope(_everyone(state.problem), state.measured)
        same = scope.shape[-1] == state.measured.shape[-1]
        candidates = state.candidates if same else self._project(state, scope)
        fit = self.model.fit(candidates, _among(known, scope))
        if scope.shape[-1] == state.active.shape[-1]:
            return fit
        return Fit(*(xp.take_along_axis(a, state.active, axis=-1) for a in (fit.score, fit.mean)))

    def _project(self, state: Contest, arms: Array) -> Candidates:
        features = state.problem.features
        return Candidates.of(features if arms.shape[-1] == state.problem.arms else rows(features, arms))


def _asked(arms: Array, times: Array) -> Pulls:
    """Return a request; one run over many arms names only those with a pull, a few of a million."""
    if len(times.shape) > 1 or times.shape[0] <= MANY:
        return Pulls(arms, times)
    xp = namespace(times)
    some = xp.nonzero(times)[0]
    return Pulls(xp.take(arms, some), xp.take(times, some))


def _everyone(problem: Problem) -> Array:
    xp = namespace(problem.features)
    return xp.broadcast_to(xp.arange(problem.arms, dtype=xp.int64), (*problem.batch, problem.arms))


def _among(known: Tally, arms: Array) -> Tally:
    xp = namespace(known.sums)
    if arms.shape[-1] == known.sums.shape[-1]:
        return known
    parts = (known.counts, known.sums, known.squares)
    return Tally(*(xp.take_along_axis(part, arms, axis=-1) for part in parts))
