"""A policy: four pure methods on a frozen dataclass."""

from dataclasses import dataclass

import numpy as np

from bestarm import Pulls, Tally
from bestarm.linalg import tally


@dataclass(frozen=True)
class Bounded:
    """Pull each arm once, then the largest mean + width √(log B / n); the largest mean is the answer."""

    width: float = 1.0

    def start(self, problem):
        zero = np.zeros(problem.features.shape[:-1])
        return problem, Tally(zero, zero, zero), 0

    def ask(self, state, rng):
        problem, known, spent = state
        if spent >= problem.budget:
            return None
        wide = self.width * np.sqrt(np.log(problem.budget + 1) / np.maximum(known.counts, 1))
        bound = np.where(known.counts > 0, self._means(known) + wide, np.inf)
        arm = np.argmax(bound, axis=-1)[..., None]
        return Pulls(arm, np.ones_like(arm))

    def tell(self, state, pulls, totals):
        problem, known, spent = state
        return problem, known + tally(pulls, totals, problem.arms), spent + pulls.total

    def recommend(self, state):
        known = state[1]
        return np.argmax(np.where(known.counts > 0, self._means(known), -np.inf), axis=-1)

    def _means(self, known):
        return known.sums / np.maximum(known.counts, 1)
