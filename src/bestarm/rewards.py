"""Rewards as a person counts them, and as a policy wants them: larger is better."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bestarm.core import Tally
from bestarm.errors import InputError, RewardError
from bestarm.models.law import Law
from bestarm.models.protocols import model_of


@dataclass(frozen=True)
class Rewards:
    """The law of a model's rewards, and whether the smallest mean is the best: then rewards are turned.

    >>> from bestarm.models.glm import GLM
    >>> Rewards(GLM(), minimize=True).better(0.25)
    0.75
    """

    model: Any
    minimize: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", model_of(self.model))
        if self.minimize and self.law.turn is None:
            raise InputError(f"the {self.law.named()} model cannot be minimised; use the linear model")

    @property
    def law(self) -> Law:
        law: Law = self.model.law
        return law

    def better(self, reward: Any) -> Any:
        """Return what is maximised."""
        return self._about - reward if self.minimize else reward

    natural = better  # the same turn leads back

    def allowed(self, reward: float) -> None:
        """Raise RewardError for a number the model cannot have produced."""
        if not np.isfinite(reward):
            raise RewardError(f"a finite number is expected; got {reward}")
        try:
            self.law.check(Tally(1.0, reward, reward * reward))
        except RewardError as error:
            raise RewardError(f"{error} ({reward:g})") from None

    def totals(self, count: Any, sums: Any, squares: Any) -> tuple[Any, Any]:
        """Return sums and squares of `count` rewards as what is maximised: Σ (a − y) and Σ (a − y)²."""
        if not self.minimize:
            return sums, squares
        a = self._about
        return a * count - sums, a * a * count - 2 * a * sums + squares

    @property
    def _about(self) -> float:
        return self.law.turn or 0.0
