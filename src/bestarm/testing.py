"""The contract of a policy, to hold one's own to: `check_policy(MyPolicy())` is silent, or says which law is broken."""

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from bestarm import spec
from bestarm.bandits import Bandit, Gaussian, Tape
from bestarm.core import Policy, Problem, Pulls, Totals, policy_of
from bestarm.errors import BestArmError, BudgetError

World: TypeAlias = Callable[[Any, np.random.Generator], Bandit]

EMPTY = 1000  # questions without a pull, after which a policy is taken for stuck
SEED = 20220722

AWKWARD: dict[str, Callable[[np.random.Generator], Any]] = {
    "plain": lambda rng: rng.standard_normal((7, 3)),
    "one arm": lambda rng: rng.standard_normal((1, 3)),
    "two arms": lambda rng: rng.standard_normal((2, 2)),
    "fewer arms than features": lambda rng: rng.standard_normal((4, 9)),
    "as many": lambda rng: np.eye(5),
    "duplicates": lambda rng: np.repeat(rng.standard_normal((3, 2)), 3, axis=0),
    "a zero row": lambda rng: np.concatenate([np.zeros((1, 3)), rng.standard_normal((5, 3))]),
    "all zero": lambda rng: np.zeros((4, 2)),
    "rank one": lambda rng: np.outer(rng.standard_normal(6), rng.standard_normal(3)),
    "badly scaled": lambda rng: rng.standard_normal((9, 3)) * np.array([1e-4, 1.0, 1e4]),
    "one feature": lambda rng: rng.standard_normal((5, 1)),
    "odd": lambda rng: rng.standard_normal((13, 4)),
}


def linear(features: Any, rng: np.random.Generator) -> Bandit:
    """Return arms with `features` `(..., K, d)` and means x'θ, θ ~ N(0, I), with normal noise of variance 1."""
    theta = rng.standard_normal((*features.shape[:-2], features.shape[-1], 1))
    return Bandit(features, (features @ theta)[..., 0], Gaussian(1.0))


def check_policy(
    policy: Policy[Any],
    world: World = linear,
    *,
    budgets: tuple[int, ...] = (1, 2, 5, 17),
    replications: int = 4,
) -> None:
    """Raise AssertionError, naming the law and what was found, unless `policy` keeps the contract of policies.

    It is pure and keeps no state of its own; it asks for arms that are there, within the budget, and for None in the
    end; one arm, and fewer pulls than arms, it survives or refuses by BudgetError; it draws `rng.random(size)` alone; a
    batch of replications agrees with single runs (`replications=0`: it plays single runs only); it can be written down
    and read again. `world(features, rng)` makes arms whose rewards it can model.

    >>> from bestarm import policy
    >>> check_policy(policy("gse-lin"))
    >>> check_policy(print)
    Traceback (most recent call last):
    ...
    AssertionError: a policy has the four methods; print is no policy: it has no start, ask, tell, recommend
    """
    try:
        policy_of(policy)
    except BestArmError as error:
        raise AssertionError(f"a policy has the four methods; {error}") from error
    _is_written_down(policy)
    _is_pure(policy, world)
    _takes_less(policy, world)
    for kind, features in AWKWARD.items():
        for budget in budgets:
            rng = np.random.default_rng(SEED)
            _plays(policy, world(features(rng), rng), budget, f"on arms {kind!r} with a budget of {budget}")
    if replications:
        _agrees_with_itself(policy, world, replications)


@dataclass(frozen=True)
class OnlyUniform:
    """All the randomness a policy may draw: uniform numbers, those of the whole batch or of one row of it."""

    seed: tuple[int, ...]
    replications: int | None = None
    row: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rng", np.random.default_rng(self.seed))

    def random(self, size: Any = None, /) -> Any:
        shape = () if size is None else (size,) if isinstance(size, int) else tuple(size)
        if self.replications is None:
            return self.__dict__["_rng"].random(shape)
        return self.__dict__["_rng"].random((self.replications, *shape))[self.row]

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a policy draws rng.random(size) and nothing else; it wants rng.{name}")


@dataclass(frozen=True)
class Exchange:
    """A question and its answer, and the state before."""

    before: Any
    pulls: Pulls
    totals: Totals


@dataclass(frozen=True)
class Transcript:
    """A whole run: its steps, the arm recommended before and after each, pulls by arm `(..., K)`, the last state."""

    steps: list[Exchange]
    arms: list[Any]
    counts: Any
    state: Any


def follow(policy: Any, tape: Any, budget: int, draws: Callable[[int], OnlyUniform], where: str = "") -> Transcript:
    """Play as a person would, question by question, and check each; `draws(step)` is the randomness of a step."""
    problem = Problem(tape.features, budget, tape.noise_variance)
    state, steps = policy.start(problem), list[Exchange]()
    arms, counts = [_arm(policy, state, problem, where)], np.zeros(problem.features.shape[:-1], dtype=np.int64)
    while (pulls := policy.ask(state, draws(len(steps)))) is not None:
        _is_a_question(pulls, problem, where)
        taken = counts.copy()
        np.add.at(counts, (*np.indices(pulls.arms.shape, sparse=True)[:-1], pulls.arms), pulls.times)
        spent = int(counts.sum(axis=-1).max())
        _must(spent <= budget, "a policy keeps its budget", f"it asked for pull {spent} of {budget} {where}")
        _must(len(steps) <= budget + EMPTY, "a policy asks None in the end", f"it still asks {where}")
        steps.append(Exchange(state, pulls, tape.pull(pulls, taken)))
        state = policy.tell(state, pulls, steps[-1].totals)
        arms.append(_arm(policy, state, problem, where))
    return Transcript(steps, arms, counts, state)


def _draws(step: int, replications: int | None = None, row: int = 0) -> OnlyUniform:
    """Return the randomness of a step, the same in every run."""
    return OnlyUniform((SEED, step), replications, row)


def _must(holds: Any, law: str, found: str) -> None:
    if not holds:
        raise AssertionError(f"{law}; {found}")


def _is_written_down(policy: Any) -> None:
    law = "a policy can be written down and read again: a frozen dataclass of plain settings, in a module"
    try:
        text = json.dumps(spec.to_dict(policy), allow_nan=False)
        again = spec.from_dict(json.loads(text), allow=spec.packages_of(policy))
        copied = pickle.loads(pickle.dumps(policy))
    except Exception as error:
        raise AssertionError(f"{law}; {error}") from error
    _must(again == policy, law, f"{policy!r} became {again!r}")
    _must(copied == policy, law, f"pickled, {policy!r} became {copied!r}")


def _is_a_question(pulls: Any, problem: Problem, where: str) -> None:
    law = "a question is Pulls(arms, times), whole numbers of one shape (..., m), replications in front"
    arms, times = np.asarray(pulls.arms), np.asarray(pulls.times)
    found = f"arms {arms.shape} of {arms.dtype}, times {times.shape} of {times.dtype} {where}"
    _must(arms.shape == times.shape and arms.ndim == len(problem.batch) + 1, law, found)
    _must(arms.shape[:-1] == problem.batch and arms.dtype.kind == times.dtype.kind == "i", law, found)
    here = arms.size == 0 or (arms.min() >= 0 and arms.max() < problem.arms)
    _must(here, "arms are counted from 0", f"of {problem.arms} it asked for {np.unique(arms).tolist()[:9]} {where}")
    _must(np.all(times >= 0), "times are not negative", f"it asked for {times.min(initial=0)} {where}")


def _arm(policy: Any, state: Any, problem: Problem, where: str) -> Any:
    arm = np.asarray(policy.recommend(state))
    law = "a recommendation is an arm at any time, one for each replication, also before any reward"
    _must(arm.shape == problem.batch and arm.dtype.kind == "i", law, f"found {arm.shape} of {arm.dtype} {where}")
    _must(np.all((arm >= 0) & (arm < problem.arms)), law, f"of {problem.arms} it recommends {arm} {where}")
    return arm


def _plays(policy: Any, bandit: Bandit, budget: int, where: str) -> None:
    """Check one run, with the budget that the policy asks for where it refuses the one given."""
    try:
        policy.start(Problem(bandit.features, budget, bandit.noise_variance))
    except BudgetError as error:
        law = "a BudgetError says the least budget that would do"
        _must(error.least is not None and error.least > budget, law, f"it says {error.least} {where}")
        budget = error.least or budget
    tape = Tape.draw(bandit, budget, np.random.default_rng(SEED))
    course = follow(policy, tape, budget, _draws, where)
    active = policy_of(policy).describe(course.state).active
    marks = active is None or (np.shape(active) == course.counts.shape and np.any(active))
    _must(marks, "describe marks the arms still in, (..., K), one at least", f"found {active!r} {where}")


def _is_pure(policy: Any, world: World) -> None:
    """Ask and tell everything again after the run, in the reverse order: no answer may depend on what came between."""
    rng = np.random.default_rng(SEED)
    tape, budget = Tape.draw(world(rng.standard_normal((9, 3)), rng), 60, rng), 60
    first, second = (follow(policy, tape, budget, _draws, "in a plain run") for _ in range(2))
    law = "a policy has no state but the one it is handed: the same run twice gives the same"
    _must(np.array_equal(first.counts, second.counts), law, f"pulls were {first.counts}, then {second.counts}")
    _must(first.arms == second.arms, law, f"recommendations were {first.arms}, then {second.arms}")
    for number, step in reversed(list(enumerate(first.steps))):
        pulls = policy.ask(step.before, _draws(number))
        law = f"a state answers the same question the same: question {number + 1} asked again after the run"
        _must(_same(pulls, step.pulls), law, f"it was {step.pulls}, and is {pulls}")
        after = policy.tell(step.before, step.pulls, step.totals)
        law = f"a state takes the same answer the same: answer {number + 1} told again after the run"
        arm = policy.recommend(after)
        _must(np.array_equal(arm, first.arms[number + 1]), law, f"it gave {first.arms[number + 1]}, and gives {arm}")


def _takes_less(policy: Any, world: World) -> None:
    """Answer each question for every other arm it asks for, in the order of arms, as a study does where trials fail."""
    law = "a policy takes other pulls than it asked for: some that could not be made, in the order of arms"
    rng = np.random.default_rng(SEED)
    bandit, budget = world(rng.standard_normal((9, 3)), rng), 60
    problem = Problem(bandit.features, budget, bandit.noise_variance)
    state = policy.start(problem)
    for step in range(budget + EMPTY):
        pulls = policy.ask(state, _draws(step))
        if pulls is None:
            return
        times = np.bincount(pulls.arms, pulls.times, 9).astype(np.int64)
        some = np.flatnonzero(times)[::2]
        made = Pulls(some, times[some])
        try:
            state = policy.tell(state, made, bandit.pull(made, np.zeros(9, dtype=np.int64), rng))
        except Exception as error:
            raise AssertionError(f"{law}; it raised {type(error).__name__}: {error}") from error
        _arm(policy, state, problem, "after answers with arms left out")


def _same(one: Pulls | None, other: Pulls) -> bool:
    return one is not None and np.array_equal(one.arms, other.arms) and np.array_equal(one.times, other.times)


def _agrees_with_itself(policy: Any, world: World, replications: int) -> None:
    """Play a batch of replications, and each of them alone on its own rewards and random numbers."""
    rng = np.random.default_rng(SEED)
    tape, budget = Tape.draw(world(rng.standard_normal((replications, 9, 3)), rng), 60, rng), 60
    law = "a batch of replications, features (R, K, d), plays as each does alone (replications=0: single runs only)"
    try:
        together = follow(policy, tape, budget, _draws, "in a batch")
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"{law}; in a batch it raised {type(error).__name__}: {error}") from error
    for row in range(replications):
        draws = partial(_draws, replications=replications, row=row)
        alone = follow(policy, tape.replication(row), budget, draws, "alone")
        arms = f"{together.arms[-1][row]}, and {alone.arms[-1]} alone"
        _must(together.arms[-1][row] == alone.arms[-1], law, f"replication {row} recommends {arms}")
        pulls = f"{together.counts[row]}, and {alone.counts} alone"
        _must(np.array_equal(together.counts[row], alone.counts), law, f"replication {row} pulls {pulls}")
