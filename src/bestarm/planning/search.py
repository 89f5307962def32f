"""Simulated runs of a plan: a policy with a budget each, and the search for a budget."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from bestarm.core import Problem
from bestarm.errors import BudgetError, InputError
from bestarm.noise import Counts
from bestarm.planning.answer import Rounds
from bestarm.planning.worlds import Worlds
from bestarm.progress import Meter
from bestarm.simulate import chunks
from bestarm.simulate.chunks import CHUNK, Chunk, Made, Watch, common, fingerprint, seeds
from bestarm.simulate.engines import computed
from bestarm.simulate.intervals import wilson

Cell: TypeAlias = tuple[str, int]

NUMBERS = 4_000_000  # features in a chunk at most, 32 MB: tables of many arms are taken in smaller chunks
LONG = 5_000  # from this budget on totals are drawn at once, by the same law: the cost no longer grows
REFINE = 4  # halvings of the last factor of two: the budget is known to 2^(1/16), 4 %
STAGED, SINGLE = 1_000_000, 50_000  # caps on the budget: of policies in stages, and of those with a pull at a time


def run_chunk(
    worlds: Worlds, policy: Any, cell: Cell, seed: int, number: int, size: int
) -> tuple[Chunk, Rounds | None]:
    """Return a chunk, the same whoever computes it, and where; and of the first its rounds.

    Worlds and rewards depend on the seed and the chunk only, so that policies are compared on equal ground.
    """
    name, budget = cell
    asked: list[int] = []

    def make() -> Made:
        rng = np.random.default_rng(seeds(seed, number))
        bandit = worlds.draw(size, rng)
        stream = common(bandit, rng)
        whole = budget >= LONG or isinstance(bandit.noise, Counts)  # single counts are slow to draw
        return policy, bandit, bandit if whole else stream

    watch: Watch | None = None if number else lambda round: asked.append(round.pulls.total)
    found = chunks.chunk(cell, number, make, budget, seeds(seed, number, fingerprint(f"{name} {budget}")), watch)
    single = 2 * sum(pulls <= 1 for pulls in asked) > len(asked)  # after a common start, perhaps
    return found, None if number else Rounds(len(asked), () if single else tuple(asked))


@dataclass
class Simulation:
    """Cells simulated so far: a policy with a budget each, wrong answers and rounds."""

    worlds: Worlds
    policies: dict[str, Any]
    replications: int
    seed: int
    n_jobs: int
    error: float
    meter: Meter
    wrong: dict[Cell, int] = field(default_factory=dict)
    rounds: dict[Cell, Rounds] = field(default_factory=dict)

    def run(self, wanted: Iterable[Cell]) -> None:
        """Simulate the cells not yet known, all chunks of all of them at once."""
        new = [cell for cell in dict.fromkeys(wanted) if cell not in self.wrong]
        most = max(1, min(CHUNK, NUMBERS // self.worlds.features.size))
        sizes = list(enumerate(chunks.sizes(self.replications, most)))
        tasks = [(self.worlds, self.policies[cell[0]], cell, self.seed, *one) for cell in new for one in sizes]
        self.meter.total = self.meter.done + len(new) * self.replications
        self.meter.words = f"budget {max((b for _, b in new), default=0):,}"
        failures = []
        for chunk, rounds in computed(run_chunk, tasks, self.n_jobs):
            name, budget = chunk.cell
            if chunk.error is not None:
                failures.append(f"policy {name!r}, budget {budget}: {chunk.error}")
            self.wrong[name, budget] = self.wrong.get((name, budget), 0) + int(np.sum(~chunk.correct))
            if rounds is not None:
                self.rounds[name, budget] = rounds
            self.meter.add(len(chunk.correct))
        if failures:
            raise InputError(min(failures))

    def row(self, cell: Cell) -> dict[str, Any]:
        """Return the error of a cell with its 95 % interval of Wilson."""
        wrong, count = self.wrong[cell], self.replications
        low, high = wilson(wrong, count)
        row = {"policy": cell[0], "budget": cell[1], "error": wrong / count}
        return row | {"low": low, "high": high, "replications": count}

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
