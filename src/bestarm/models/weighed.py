"""A reward model that learns from the rewards how much structure to trust."""

from dataclasses import dataclass

from bestarm.core import Array, Tally, namespace
from bestarm.linalg import Candidates
from bestarm.models.protocols import Fit
from bestarm.structures.hypotheses import KINDS, Kind, Scaling, structures
from bestarm.structures.mixture import Mixture
from bestarm.structures.odds import Odds, read

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
        mixture, odds = self.read(candidates, tally)
        score = self._shaped(tally, mixture.means())
        return Fit(score, score if odds is None else odds.means(score))

    def standard_error(self, candidates: Candidates, tally: Tally, fit: Fit, noise_variance: float | None) -> Array:
        mixture, odds = self.read(candidates, tally)
        error = self._shaped(tally, mixture.marginals()[1])
        return error if odds is None else error * odds.steepness(fit.score)

    def read(self, candidates: Candidates, tally: Tally) -> tuple[Mixture, Odds | None]:
        """Return the hypotheses that matter, weighed by what was observed, all leading axes in one.

        Rewards 0 and 1 are read as log odds; how, is returned too.
        """
        xp = namespace(tally.counts)
        pulls = max(int(xp.max(xp.sum(tally.counts, axis=-1))), 1)
        made = structures(candidates.features, pulls, self.kinds, self.scaling).for_the_answer()
        return read(made, self.kinds, tally, self.hedge, self.kept, ALL)

    def _shaped(self, tally: Tally, values: Array) -> Array:
        return namespace(values).reshape(values, tally.sums.shape)
