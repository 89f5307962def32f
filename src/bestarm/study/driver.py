"""The policy's side of a study: only `ask` runs a policy, and whoever wants the policy's own recommendation.

What was asked before stands in the log. The policy's state is made by telling it the logged plans with what came back;
it is not asked again for old rounds, so what it would say today on another machine changes nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from bestarm.core import Problem, Pulls, Standing, Tally, Totals, policy_of
from bestarm.errors import BudgetError, InputError
from bestarm.linalg import tally
from bestarm.study.limits import LARGEST
from bestarm.study.parts import absence
from bestarm.study.plans import Plan, affordable, asked_of, begin_of, evenly, paid, planner, question, size_of
from bestarm.study.state import Result, StudyState
from bestarm.study.storage import Record

EMPTY = 1000  # questions without a pull, after which a policy is taken for stuck


class PolicyFailed(Exception):
    """A policy raised an error; the message says which."""


@dataclass
class Driver:
    """A policy's state after the rounds of an epoch that are over, kept so that each is told once."""

    state: Any = None
    runner: Any = None
    after: tuple[Any, ...] = ()  # what `state` was made of: the log, the epoch, corrections
    told: int = 0  # rounds of the history
    started: tuple[int, Any] | None = None  # pulls and state of the start by which the study was tried

    def question(self, study: StudyState, n: int | None = None, begun: tuple[int, float] | None = None) -> Record:
        """Return the record with the next round's plan, without its trials, or the one that says there is none.

        `n` is how many trials are wanted at once; `begun` the pulls and the budget to start the policy with, where that
        was decided before.
        """
        if study.evenly:
            return question(study, evenly(study), begin_of(study, 0, evenly=True))
        why = absence(study.policy)
        if why is not None:
            raise InputError(
                f"the policy of this study is not here, so nothing can be asked: {why}. Results can be told and the "
                "answer read all the same"
            )
        begin = None if study.epoch is None else study.history[study.epoch].begin
        if begin is None or begin.get("evenly"):
            return self._begun(study, n, begun)
        self.catch_up(study, n)
        plan = None if self.state is None else self._ask(study, study.epoch_arms)
        if plan is None and study.budget > begin["budget"]:  # raised meanwhile
            return self._begun(study, n, None)
        return question(study, plan, None)

    def _begun(self, study: StudyState, n: int | None, begun: tuple[int, float] | None) -> Record:
        """Start the policy on the arms in the race, with what is left of the budget, and ask."""
        pulls, budget = begun or (affordable(study), study.budget)
        if pulls > LARGEST:
            raise InputError(f"a budget of {pulls:,} pulls is beyond what a study can plan, {LARGEST:,}")
        begin = begin_of(study, pulls, budget=budget)
        arms = study.in_race
        if pulls < 1 or not self._start(study, arms, begin, n):  # what is left is too little for this policy
            return question(study, None, None)
        return question(study, self._ask(study, arms), begin)

    def _start(self, study: StudyState, arms: Sequence[int], begin: Record, n: int | None = None) -> bool:
        """Start the policy, and return whether the pulls are enough for it."""
        pulls = int(begin["pulls"])
        self.runner = planner(study, begin, size_of(study, n))
        self.state, self.after = None, ()
        if study.rows is not None and self.started and self.started[0] == pulls:  # which took passes over the table
            self.state = self.started[1]
            return True
        with policy_at_work(), suppress(BudgetError):
            self.state = self.runner.start(_whole(study, arms, pulls))
            self._observe(extras(study, int(begin["begun"]), arms))
        return self.state is not None

    def catch_up(self, study: StudyState, n: int | None = None) -> None:
        """Tell the policy the rounds of this epoch that are over and not told yet; all of them after a correction."""
        assert study.epoch is not None
        begin = study.history[study.epoch].begin
        after = (study.mark, study.epoch, study.corrected, sum(map(len, study.heard.values())))
        if self.after != after:
            self._start(study, study.epoch_arms, begin, n)
            self.after, self.told = after, study.epoch
        self.runner = planner(study, begin, size_of(study, n))
        if self.state is None:
            return
        with policy_at_work():
            for number in range(self.told, study.closed):
                answer, beyond = answers(study, number)
                if answer is not None:
                    self.state = self._told(*answer)
                self._observe(beyond)
                self.told += 1

    def _observe(self, beyond: "Told") -> None:
        if beyond is not None:
            self.state = policy_of(self.runner).observe(self.state, *beyond)

    def _told(self, pulls: Pulls, totals: Totals) -> Any:
        """Return the policy's state after an answer; at its end it need not take what was asked again after it."""
        try:
            return self.runner.tell(self.state, pulls, totals)
        except InputError:
            if self.runner.ask(self.state, np.random.default_rng(0)) is not None:
                raise
            return self.state

    def _ask(self, study: StudyState, arms: Sequence[int]) -> Plan | None:
        """Return the plan of the policy's next question, None at its end or when the money is gone."""
        with policy_at_work():
            for empty in range(EMPTY):
                path = [study.seed, study.rounds + study.skipped] + [empty] * (empty > 0)
                asked = self.runner.ask(self.state, np.random.default_rng(path))
                if asked is None:
                    return None
                plan = asked_of(asked, arms)
                if plan:
                    return paid(study, plan) or None
                nothing = np.zeros(len(asked.arms))
                self.state = self.runner.tell(self.state, asked, Totals(nothing, nothing))
        raise PolicyFailed(f"{EMPTY} questions in a row asked for no pull")

    def described(self, study: StudyState) -> Standing:
        """Return how the policy's run stands; one that has not begun, or cannot be told, stands nowhere."""
        try:
            if self._ready(study):
                with policy_at_work():
                    return policy_of(study.policy if study.rows is not None else self.runner).describe(self.state)
        except (PolicyFailed, InputError):
            pass
        return Standing()

    def standing(self, study: StudyState) -> tuple[str, ...] | None:
        """Return who is in the race by the policy's own state, None where it drops nobody."""
        if study.rows is not None or not self._ready(study):  # a long table has too many to name
            return None
        with policy_at_work():
            active = policy_of(self.runner).describe(self.state).active
            if active is None:
                return None
            return tuple(study.ids[study.epoch_arms[place]] for place in np.flatnonzero(active).tolist())

    def recommended(self, study: StudyState) -> int | None:
        """Return the arm the policy itself would recommend now, None where it was told nothing."""
        if not self._ready(study) or not any(one.results for one in study.history[study.epoch : self.told]):
            return None
        with policy_at_work():
            return study.epoch_arms[int(self.runner.recommend(self.state))]

    def _ready(self, study: StudyState) -> bool:
        """Bring the policy's state up to date, and return whether there is one."""
        begin = None if study.epoch is None else study.history[study.epoch].begin
        if begin is None or begin.get("evenly") or absence(study.policy) is not None:
            return False
        self.catch_up(study)
        return self.state is not None


@contextmanager
def policy_at_work() -> Iterator[None]:
    """Turn what goes wrong in a policy into PolicyFailed; what is missing on this machine is not its failure."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (ImportError, MemoryError) as error:
        raise InputError(f"the policy cannot be run here: {type(error).__name__}: {error}") from error
    except Exception as error:
        raise PolicyFailed(f"{type(error).__name__}: {error}") from error


def _whole(study: StudyState, arms: Sequence[int], pulls: int) -> Any:
    """Return the problem that a policy starts with."""
    if study.rows is None:
        return Problem(study.features_of(arms), pulls, study.noise_variance)
    from bestarm.policies.streamed import BigProblem  # for long tables alone

    return BigProblem(study.rows, pulls, study.noise_variance)


Told: TypeAlias = tuple[Pulls, Totals] | None


def extras(study: StudyState, number: int, arms: Sequence[int]) -> Told:
    """Return what nobody asked for that was told before question `number`, with which a policy starts."""
    told = [study.results[name] for name in study.heard.get(number, ())]
    return _asked_and_rest(study, [(one, 0, 1.0) for one in told if not one.of], arms)[1]


def answers(study: StudyState, number: int) -> tuple[Told, Told]:
    """Return what answered a round, and what went beyond it before the next question; None where nothing did.

    Both in the order of arms, turned so that larger is better. An arm that was asked counts as often as that, with the
    mean of all its rewards; the others are the rest. A trial of several rewards is one pull, and counts as its average.
    """
    told = []
    for name in dict.fromkeys([*study.history[number].results, *study.heard.get(number + 1, ())]):
        result = study.results[name]
        asked = len(result.of) if result.heard < 0 or result.round == number else 0
        share = 1.0 if result.heard >= 0 or result.count == asked else asked / result.count
        told.append((result, asked, share))
    return _asked_and_rest(study, told, study.epoch_arms)


def _asked_and_rest(
    study: StudyState, told: Iterable[tuple[Result, int, float]], arms: Sequence[int]
) -> tuple[Told, Told]:
    """Return shares of results among some arms in two parts: as many as were asked, and the rest."""
    rows = study.rows is not None  # which are their own places
    where: Any = arms if rows else {arm: place for place, arm in enumerate(arms)}
    found = [
        (where[one.arm], asked, *(share * part for part in (one.count, one.sum, one.squares, one.scatter)))
        for one, asked, share in told
        if not one.excluded and one.arm in where
    ]
    if not found:
        return None, None
    every, times, count, *totals = np.array(found, dtype=np.float64).T
    places, which = np.unique(every.astype(np.int64), return_inverse=True)
    known = study.rewards.turned(tally(Pulls(which, count), Totals(*totals), len(places)))
    part = np.minimum(np.bincount(which, times) / np.rint(known.counts), 1.0)
    return _part(places, known, part), _part(places, known, 1.0 - part)


def _part(arms: Any, known: Tally, part: Any) -> Told:
    """Return a part of what is known of some arms, without those of which it is nothing."""
    there = np.rint(part * known.counts) > 0
    if not there.any():
        return None
    some = known.each(lambda of: (part * of)[there])
    return Pulls(arms[there], np.rint(some.counts).astype(np.int64)), Totals(some.sums, some.squares, some.within)
