"""Simulated runs: blocks of replications as pure functions, anywhere joblib can go, and the search for a budget."""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from bestarm.bandits import Stream
from bestarm.core import Problem
from bestarm.errors import BestArmError, BudgetError, InputError
from bestarm.planning.answer import Rounds
from bestarm.planning.worlds import Counts, Worlds
from bestarm.play import Round, play

Cell: TypeAlias = tuple[str, int]

BLOCK = 250  # replications a block; part of the definition of a result, since a block shares its random numbers
NUMBERS = 4_000_000  # features in a block at most, 32 MB: tables of many arms are taken in smaller blocks
LONG = 5_000  # from this budget on totals are drawn at once, by the same law: the cost no longer grows
REFINE = 4  # halvings of the last factor of two: the budget is known to 2^(1/16), 4 %
STAGED, SINGLE = 1_000_000, 50_000  # caps on the budget: of policies in stages, and of those with a pull at a time


@dataclass(frozen=True)
class Outcome:
    """What a block of runs came to: wrong answers of `size`, and how many rounds there were."""

    cell: Cell
    wrong: int
    size: int
    rounds: Rounds | None = None
    failure: str | None = None


def run_block(worlds: Worlds, policy: Any, cell: Cell, seed: int, number: int, size: int) -> Outcome:
    """Return the outcome of a block: the same whoever computes it, and where.

    Worlds and rewards depend on the seed and the block only, so that policies are compared on equal ground.
    """
    from threadpoolctl import threadpool_limits

    name, budget = cell
    rng = np.random.default_rng(np.random.SeedSequence([seed, number]))
    key = int(hashlib.sha256(f"{name} {budget}".encode()).hexdigest()[:16], 16)
    asked: list[int] = []

    def watch(round: Round) -> None:
        asked.append(round.pulls.total)

    try:
        with threadpool_limits(1):
            bandit = worlds.draw(size, rng)
            stream = Stream(bandit, int(rng.integers(2**63)))
            whole = budget >= LONG or isinstance(bandit.noise, Counts)  # single counts are slow to draw
            choices = np.random.default_rng(np.random.SeedSequence([seed, number, key]))
            done = play(policy, bandit if whole else stream, budget, choices, None if number else watch)
    except BestArmError as error:
        return Outcome(cell, 0, 0, failure=str(error))
    single = 2 * sum(pulls <= 1 for pulls in asked) > len(asked)  # after a common start, perhaps
    rounds = None if number else Rounds(len(asked), () if single else tuple(asked))
    return Outcome(cell, int(np.sum(~bandit.correct(done.arm))), size, rounds)


@dataclass
class Simulation:
    """Cells simulated so far: a policy with a budget each, wrong answers and rounds."""

    worlds: Worlds
    policies: dict[str, Any]
    replications: int
    seed: int
    n_jobs: int
    error: float
    bar: Any
    wrong: dict[Cell, int] = field(default_factory=dict)
    rounds: dict[Cell, Rounds] = field(default_factory=dict)

    @property
    def sizes(self) -> list[int]:
        """The replications of each block."""
        block = max(1, min(BLOCK, NUMBERS // self.worlds.features.size))
        return [min(block, self.replications - start) for start in range(0, self.replications, block)]

    def run(self, wanted: Iterable[Cell]) -> None:
        """Simulate the cells not yet known, all blocks of all of them at once."""
        from joblib import delayed

        new = [cell for cell in dict.fromkeys(wanted) if cell not in self.wrong]
        jobs = [
            delayed(run_block)(self.worlds, self.policies[cell[0]], cell, self.seed, number, size)
            for cell in new
            for number, size in enumerate(self.sizes)
        ]
        self.bar.total = self.bar.n + len(new) * self.replications
        self.bar.set_description(f"budget {max((b for _, b in new), default=0):,}")
        failures = []
        for outcome in _pool(self.n_jobs)(jobs) if jobs else ():
            if outcome.failure is not None:
                failures.append(f"policy {outcome.cell[0]!r}, budget {outcome.cell[1]}: {outcome.failure}")
            self.wrong[outcome.cell] = self.wrong.get(outcome.cell, 0) + outcome.wrong
            if outcome.rounds is not None:
                self.rounds[outcome.cell] = outcome.rounds
            self.bar.update(outcome.size)
        if failures:
            raise InputError(min(failures))

    def row(self, cell: Cell) -> dict[str, Any]:
        """Return the error of a cell with its 95 % interval of Wilson."""
        from scipy.stats import binomtest

        wrong, count = self.wrong[cell], self.replications
        ends = binomtest(wrong, count).proportion_ci(method="wilson")
        row = {"policy": cell[0], "budget": cell[1], "error": wrong / count}
        return row | {"low": float(ends.low), "high": float(ends.high), "replications": count}

    def enough(self, cell: Cell) -> bool:
        """Return whether the target is shown: the interval ends at or below it."""
        return bool(self.row(cell)["high"] <= self.error)

    def least(self, name: str) -> int:
        """Return the smallest budget a policy starts with."""
        budget = 1
        while True:
            try:
                self.policies[name].start(Problem(self.worlds.features, budget, self.worlds.noise.variance))
                return budget
            except BudgetError as error:
                budget = max(budget + 1, error.least or 2 * budget)


def _pool(n_jobs: int) -> Any:
    """Return a pool that gives outcomes as they come, where it can; their order does not matter."""
    from joblib import Parallel

    # no backend is named: whatever joblib.parallel_config says is used
    try:
        return Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
    except ValueError:  # this backend returns lists only
        return Parallel(n_jobs=n_jobs, batch_size=1)


def search(runs: Simulation, cap: int | None) -> None:
    """Double the budget until the target is shown, then halve the last step again and again, then double once."""
    least = {name: runs.least(name) for name in runs.policies}
    budget, most = 2 * runs.worlds.dimension, dict.fromkeys(runs.policies, cap or STAGED)
    low, high = {name: max(1, least[name] - 1) for name in least}, dict.fromkeys(least, 0)
    going = set(least)
    while going:
        now = [(name, min(budget, most[name])) for name in least if name in going and budget >= least[name]]
        runs.run(now)
        for name, spent in now:
            if cap is None and not runs.rounds[name, spent].pulls and spent > 2 * len(runs.worlds.features):
                most[name] = SINGLE
            if runs.enough((name, spent)):
                high[name] = spent
            else:
                low[name] = spent
            if high[name] or spent >= most[name]:
                going.discard(name)
        budget *= 2
    for _ in range(REFINE):
        halves = {name: round(math.sqrt(low[name] * high[name])) for name in least if low[name] + 1 < high[name]}
        now = [(name, half) for name, half in halves.items() if low[name] < half < high[name]]
        runs.run(now)
        for name, half in now:
            (high if runs.enough((name, half)) else low)[name] = half
    runs.run([(name, 2 * found) for name, found in high.items() if found])
