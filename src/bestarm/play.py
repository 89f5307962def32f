"""The loop that joins a policy to a bandit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bestarm.core import Array, Policy, Problem, Pullable, Pulls, Totals, namespace
from bestarm.errors import OverspentError
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

    arm: Array
    counts: Array
    state: Any


def play(
    policy: Policy[Any],
    bandit: Pullable,
    budget: int,
    rng: Any = None,
    watch: Callable[[Round], None] | None = None,
) -> Run:
    """Ask `policy`, pull `bandit`, tell, until nothing is left to pull; `watch` sees every round.

    >>> from bestarm import catalog, instances
    >>> run = play(catalog.policy("gse-lin-fwg"), instances.static(gap=3.0), budget=320, rng=1)
    >>> int(run.arm), int(run.counts.sum())
    (0, 320)
    """
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


@dataclass(frozen=True)
class SparseRun:
    """What a run over a big table came to: the row recommended, the rows pulled `(m,)`, how often, the last state."""

    arm: int
    rows: Array
    counts: Array
    state: Any


def play_source(
    policy: Any,
    bandit: Any,
    problem: Any,
    rng: Any = None,
    watch: Callable[[Round], None] | None = None,
) -> SparseRun:
    """Play as `play` does, over the rows of a source (`policies.streamed`): nothing here is as long as the table.

    `bandit.pull` is not told what was pulled before.
    """
    choices, rewards = generator(rng).spawn(2)
    state = policy.start(problem)
    asked: list[Pulls] = []
    spent = 0
    while (pulls := policy.ask(state, choices)) is not None:
        spent += pulls.total
        if spent > problem.budget:
            raise OverspentError(f"{type(policy).__name__} asked for pull {spent} of a budget of {problem.budget}")
        totals = bandit.pull(pulls, None, rewards)
        before, state = state, policy.tell(state, pulls, totals)
        asked.append(pulls)
        if watch is not None:
            watch(Round(before, pulls, totals, state))
    rows = np.concatenate([np.zeros(0, np.int64), *(one.arms for one in asked)])
    times = np.concatenate([np.zeros(0, np.int64), *(one.times for one in asked)])
    some, back = np.unique(rows[times > 0], return_inverse=True)
    return SparseRun(int(policy.recommend(state)), some, np.bincount(back, times[times > 0]).astype(np.int64), state)
