"""A reward model that learns from the rewards how much structure to trust."""

from dataclasses import dataclass

from bestarm.core import Array, Tally, namespace
from bestarm.linalg import Candidates
from bestarm.models.protocols import Fit
from bestarm.structures.hypotheses import KINDS, Kind, Scaling, structures
from bestarm.structures.mixture import Mixture, weigh

ALL = 10**6  # arms up to which the evidence is computed on all of them, pulled or not


@dataclass(frozen=True)
class Weighed:
    """The mean of a mixture of hypotheses, from linear to no structure at all, weighted by their evidence.

    >>> import numpy as np
    >>> counts, sums = np.array([50.0, 50.0, 0.0]), np.array([-50.0, 50.0, 0.0])
    >>> known = Tally(counts, sums, np.abs(sums) + 5)
    >>> Weighed().fit(Candidates.of(np.array([[-1.0], [1.0], [0.5]])), known).mean.round(1)
    array([-1. ,  1. ,  0.5])
    """

    hedge: float = 0.15
    kept: int = 3
    kinds: tuple[Kind, ...] = KINDS
    scaling: Scaling = Scaling()

    def fit(self, candidates: Candidates, tally: Tally) -> Fit:
        mean = self._shaped(tally, self.mixture(candidates, tally).marginals()[0])
        return Fit(mean, mean)

    def standard_error(self, candidates: Candidates, tally: Tally, fit: Fit, noise_variance: float | None) -> Array:
        return self._shaped(tally, self.mixture(candidates, tally).marginals()[1])

    def mixture(self, candidates: Candidates, tally: Tally) -> Mixture:
        """Return the hypotheses that matter, weighed by what was observed, all leading axes in one."""
        xp = namespace(tally.counts)
        pulls = max(int(xp.max(xp.sum(tally.counts, axis=-1))), 1)
        made = structures(candidates.features, pulls, self.kinds, self.scaling)
        return weigh(made, self.kinds, tally, self.hedge, self.kept, ALL)

    def _shaped(self, tally: Tally, values: Array) -> Array:
        return namespace(values).reshape(values, tally.sums.shape)
