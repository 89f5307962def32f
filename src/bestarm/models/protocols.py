"""What a reward model is: totals in, estimates out. A model never sees a design."""

from dataclasses import dataclass
from typing import Protocol

from bestarm.core import Array, Tally
from bestarm.linalg import Candidates


@dataclass(frozen=True)
class Fit:
    """What a model makes of the data, for each arm `(..., k)`.

    `score` ranks the arms; `mean` is the estimated mean reward. They differ where the model is linear only behind a
    mean function: the score is x'θ, the mean h(x'θ).
    """

    score: Array
    mean: Array


class Model(Protocol):
    """A reward model: how means follow from features."""

    def fit(self, candidates: Candidates, tally: Tally) -> Fit:
        """Return estimates for all candidates from what was observed of them."""
        ...

    def standard_error(self, candidates: Candidates, tally: Tally, fit: Fit, noise_variance: float | None) -> Array:
        """Return the standard error of each mean `(..., k)`; the noise is estimated when its variance is None."""
        ...
