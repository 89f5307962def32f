"""Rewards as a person counts them, and as a policy wants them: larger is better."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bestarm.core import Goal, Tally
from bestarm.errors import InputError, RewardError
from bestarm.models.law import Law
from bestarm.models.protocols import model_of


@dataclass(frozen=True)
class Rewards:
    """The law of a model's rewards, and the goal: where the smallest mean is the best, rewards are turned.

    >>> from bestarm.models.glm import GLM
    >>> Rewards(GLM(), Goal("minimize")).better(0.25)
    0.75
    """

    model: Any
    goal: Goal = Goal()

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", model_of(self.model))
        if self.goal.sign < 0 and self.law.turn is None:
            raise InputError(f"the {self.law.named()} model cannot be minimised; use the linear model")

    @property
    def law(self) -> Law:
        law: Law = self.model.law
        return law

    def better(self, reward: Any) -> Any:
        """Return what is maximised."""
        return self.goal.turned(reward, self._about)

    natural = better  # the same turn leads back

    def allowed(self, reward: float) -> None:
        """Raise RewardError for a number the model cannot have produced."""
        if not np.isfinite(reward):
            raise RewardError(f"a finite number is expected; got {reward}")
        try:
            self.law.check(Tally(*np.array([1.0, reward, reward * reward])))
        except RewardError as error:
            raise RewardError(f"{error} ({reward:g})") from None

    def turned(self, tally: Tally) -> Tally:
        """Return sums and squares of rewards as what is maximised: Σ (a − y) and Σ (a − y)²; they scatter as before."""
        if self.goal.sign > 0:
            return tally
        a, n, sums = self._about, tally.counts, tally.sums
        return Tally(n, a * n - sums, a * a * n - 2 * a * sums + tally.squares, tally.within)

    @property
    def _about(self) -> float:
        return self.law.turn or 0.0
