"""The loop that joins a policy to a bandit."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bestarm import catalog
from bestarm.core import AnyArray, Policy, Problem, Pullable, Pulls, Totals, namespace
from bestarm.errors import BudgetWarning, OverspentError
from bestarm.linalg import accumulate
from bestarm.numbers import generator


@dataclass(frozen=True)
class Round:
    """One question and its answer, with the state before and after."""

    before: Any
    pulls: Pulls
    totals: Totals
    after: Any


@dataclass(frozen=True)
class Run:
    """What a run came to: the arm recommended `(...)`, pulls by arm `(..., K)`, and the last state."""

    arm: AnyArray
    counts: AnyArray
    state: Any


def play(
    policy: Policy[Any],
    bandit: Pullable,
    budget: int,
    rng: Any = None,
    watch: Callable[[Round], None] | None = None,
) -> Run:
    """Ask `policy`, pull `bandit`, tell, until nothing is left to pull; `watch` sees every round.

    A budget below what the policy needs is said by a `BudgetWarning`.

    >>> from bestarm import catalog, instances
    >>> run = play(catalog.policy("gse-lin-fwg"), instances.static(gap=3.0), budget=320, rng=1)
    >>> int(run.arm), int(run.counts.sum())
    (0, 320)
    """
    run = played(policy, bandit, budget, rng, watch)
    warn_if_short(policy, Problem(bandit.features, budget, bandit.noise_variance))
    return run


def warn_if_short(policy: Policy[Any], problem: Any) -> None:
    """Warn where the budget is below what a policy needs: the one place that does, for runs and studies."""
    words = catalog.shortage(policy, problem)
    if words is not None:
        warnings.warn(words, BudgetWarning, stacklevel=3)


def played(
    policy: Policy[Any],
    bandit: Pullable,
    budget: int,
    rng: Any = None,
    watch: Callable[[Round], None] | None = None,
) -> Run:
    """Play without a word on the budget, which benchmarks choose small on purpose."""
    choices, rewards = generator(rng).spawn(2)
    problem = Problem(bandit.features, budget, bandit.noise_variance)
    xp = namespace(bandit.features)
    state = policy.start(problem)
    counts = xp.zeros(problem.features.shape[:-1], dtype=xp.int64)
    spent = xp.zeros(problem.batch, dtype=xp.int64)
    while (pulls := policy.ask(state, choices)) is not None:
        spent = spent + xp.sum(pulls.times, axis=-1)
        if bool(xp.any(spent > budget)):
            asked = int(xp.max(spent))
            raise OverspentError(f"{type(policy).__name__} asked for pull {asked} of a budget of {budget}")
        totals = bandit.pull(pulls, counts, rewards)
        before, state = state, policy.tell(state, pulls, totals)
        counts = accumulate(counts, pulls.arms, pulls.times)
        if watch is not None:
            watch(Round(before, pulls, totals, state))
    return Run(policy.recommend(state), counts, state)
