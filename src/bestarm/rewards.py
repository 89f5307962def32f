"""Rewards as a person counts them, and as a policy wants them: larger is better."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bestarm.core import Tally
from bestarm.errors import InputError, RewardError
from bestarm.models.glm import GLM, Logistic, Poisson


@dataclass(frozen=True)
class Rewards:
    """What rewards a model takes, and whether the smallest mean is the best."""

    model: Any
    minimize: bool = False

    def __post_init__(self) -> None:
        if self.minimize and isinstance(self.link, Poisson):
            raise InputError("the Poisson model cannot be minimised; use the linear model")

    @property
    def link(self) -> Any:
        return self.model.link if isinstance(self.model, GLM) else None

    def better(self, reward: Any) -> Any:
        """Return what is maximised."""
        if not self.minimize:
            return reward
        return 1 - reward if isinstance(self.link, Logistic) else -reward

    natural = better  # the same turn leads back

    def allowed(self, reward: float) -> None:
        """Raise RewardError for a number the model cannot have produced."""
        if not np.isfinite(reward):
            raise RewardError(f"a finite number is expected; got {reward}")
        if self.link is not None:
            one = np.array([1.0])
            try:
                self.link.check(Tally(one, reward * one, reward**2 * one))
            except RewardError as error:
                raise RewardError(f"{error} ({reward:g})") from None

    def totals(self, count: Any, sums: Any, squares: Any) -> tuple[Any, Any]:
        """Return sums and squares of `count` rewards as what is maximised."""
        if not self.minimize:
            return sums, squares
        if isinstance(self.link, Logistic):
            return count - sums, count - 2 * sums + squares
        return -sums, squares
