"""A reward law: the mean function of 0/1 rewards behind a normal threshold."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from bestarm.errors import RewardError


@dataclass(frozen=True)
class Probit:
    """h(z) = Φ(z): rewards are 0 or 1."""

    def value(self, predictor):
        return ndtr(predictor)

    def slope(self, predictor):
        return np.exp(-(predictor**2) / 2) / np.sqrt(2 * np.pi)

    def integral(self, predictor):
        return predictor * ndtr(predictor) + self.slope(predictor)

    def check(self, tally):
        if np.any(np.abs(tally.sums - tally.squares) > 1e-9 * (1 + tally.counts)):
            raise RewardError("the probit model needs rewards that are 0 or 1; others were given")
