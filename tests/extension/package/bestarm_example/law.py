"""A law of rewards: the probit."""

from dataclasses import dataclass
from typing import Any

from scipy.special import ndtr

from bestarm.models.law import BinaryLaw


@dataclass(frozen=True)
class Probit(BinaryLaw):
    """h(z) = Φ(z): rewards are 0 or 1."""

    def value(self, predictor: Any) -> Any:
        return ndtr(predictor)
