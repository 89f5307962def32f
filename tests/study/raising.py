"""Policies that break at a chosen moment, in a module of their own so that a log can name them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bestarm.core import Pulls

ERRORS = {
    kind.__name__: kind
    for kind in (
        ValueError, ZeroDivisionError, IndexError, RecursionError, np.linalg.LinAlgError, FloatingPointError,
        MemoryError, ImportError, ModuleNotFoundError, KeyboardInterrupt,
    )
}  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """How many questions were answered, the problem, and what was told."""

    problem: Any
    told: int = 0
    spent: int = 0
    largest: float = 0.0


@dataclass(frozen=True)
class Breaks:
    """Pulls every arm once a question, and breaks `where` it is called after `after` answers, or at sums too large.

    `where` is start, ask, tell or recommend; it starts all the same with more than `most` pulls.
    """

    where: str = "never"
    after: int = 0
    error: str = "ValueError"
    beyond: float = float("inf")
    most: int = 10**9

    def _break(self, where: str, told: int) -> None:
        if where == self.where and told >= self.after:
            raise ERRORS[self.error](f"broken in {where} after {told}")

    def start(self, problem):
        if problem.budget <= self.most:
            self._break("start", 0)
        return Seen(problem)

    def ask(self, state, rng):
        self._break("ask", state.told)
        arms = state.problem.arms
        if state.spent + arms > state.problem.budget:
            return None
        return Pulls(np.arange(arms), np.ones(arms, dtype=np.int64))

    def tell(self, state, pulls, totals):
        self._break("tell", state.told)
        largest = max(state.largest, float(np.max(np.abs(totals.sums), initial=0.0)))
        if largest > self.beyond:
            raise FloatingPointError(f"{largest:g} is beyond me")
        return replace(state, told=state.told + 1, spent=state.spent + int(np.sum(pulls.times)), largest=largest)

    def recommend(self, state):
        self._break("recommend", state.told)
        return np.int64(0)


NONSENSE = {
    "an arm that is not there": lambda: Pulls(np.array([99]), np.array([1])),
    "a negative arm": lambda: Pulls(np.array([-1]), np.array([1])),
    "negative times": lambda: Pulls(np.array([0]), np.array([-1])),
    "half a pull": lambda: Pulls(np.array([0]), np.array([0.5])),
    "arms that are no numbers": lambda: Pulls(np.array(["a"]), np.array([1])),
    "NaN times": lambda: Pulls(np.array([0]), np.array([np.nan])),
    "more pulls than can be": lambda: Pulls(np.array([0]), np.array([2**62])),
    "no pulls at all": lambda: Pulls(np.array([0]), np.array([0])),
    "other shapes": lambda: Pulls(np.array([0, 1]), np.array([1])),
    "two axes": lambda: Pulls(np.array([[0, 1]]), np.array([[1, 1]])),
    "a word": lambda: "everything",
    "True": lambda: True,
}


@dataclass(frozen=True)
class Asks:
    """Asks for what no study can hand out, by name; the first `after` questions are in order."""

    what: str
    after: int = 0

    def start(self, problem):
        return Seen(problem)

    def ask(self, state, rng):
        return NONSENSE[self.what]() if state.told >= self.after else Pulls(np.array([0]), np.array([1]))

    def tell(self, state, pulls, totals):
        return replace(state, told=state.told + 1)

    def recommend(self, state):
        return np.float64("nan")
