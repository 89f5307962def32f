"""A reward model that learns from the rewards how much structure to trust.

Its hypotheses (`structures`) have priors of their own; each draw of the posterior is of one of them, chosen by weight.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bestarm.core import Array, Tally
from bestarm.linalg import Candidates
from bestarm.models.checks import FitCheck
from bestarm.models.linear import Linear
from bestarm.models.many import FEW, Believed, ManyArms, PartDraws
from bestarm.models.posterior import LEAST, DrawnPosterior, as_floats, choose, noise_words, rough_variance, unit_of
from bestarm.models.protocols import Fit, Model
from bestarm.structures.hypotheses import KINDS, Kind, Scaling, structures
from bestarm.structures.mixture import Mixture
from bestarm.structures.odds import Odds, binary, read
from bestarm.structures.posterior import Outlook
from bestarm.structures.words import explained


@dataclass(frozen=True)
class Weighed(Model):
    """The mean of a mixture of hypotheses, from linear to no structure at all, weighted by their evidence.

    >>> counts, sums = np.array([50.0, 50.0, 0.0]), np.array([-50.0, 50.0, 0.0])
    >>> known = Tally(counts, sums, np.abs(sums) + 5)
    >>> Weighed().fit(Candidates.of(np.array([[-1.0], [1.0], [0.5]])), known).mean.round(1)
    array([-1. ,  1. ,  0.3])
    """

    hedge: float = 0.5
    kept: int = 3
    kinds: tuple[Kind, ...] = KINDS
    scaling: Scaling = Scaling()
    structured: ClassVar[bool] = True
    confirmed: ClassVar[bool] = True
    otherwise: ClassVar[str] = (
        "The policy ended with {policy}, the arm no single other one is likely to beat; of everything told, "
        "{data} has the largest expected mean: {odds}."
    )

    def fit(self, candidates: Candidates, tally: Tally) -> Fit:
        mixture, odds = self.read(candidates, tally)
        score = self._shaped(tally, mixture.means())
        return Fit(score, score if odds is None else odds.means(score))

    def standard_error(self, candidates: Candidates, tally: Tally, fit: Fit, noise_variance: float | None) -> Array:
        mixture, odds = self.read(candidates, tally)
        error = self._shaped(tally, mixture.marginals()[1])
        return error if odds is None else error * odds.steepness(fit.score)

    def posterior(
        self, features: Array, tally: Tally, noise_variance: float | None, draws: int = 4000, rng: Any = None
    ) -> Believed:
        """Return draws of the means: of one hypothesis each, σ² drawn too where it is not known.

        Wins and losses are judged on the scale of log odds, where their noise is known but for how far it is from
        binomial.
        """
        rng, tally = np.random.default_rng(rng), as_floats(tally)
        unit = 1.0 if binary(tally)[0] else unit_of(tally, tally.level)
        known = tally.scaled(unit)
        mixture, odds = self.read(Candidates.of(np.asarray(features, dtype=np.float64)), known)
        chance, at = choose(np.log(np.maximum(mixture.weight[0], 1e-300)), draws, rng)
        known_noise = None if noise_variance is None or odds is not None else noise_variance / unit / unit
        few, parts = len(tally.counts) <= FEW, []
        found, mean = np.empty((draws * few, len(tally.counts))), np.zeros(len(tally.counts))
        for g, look in enumerate(mixture.outlooks()):
            mine = np.flatnonzero(at == g)
            variance = _variances(mixture.noise[0, g], known, known_noise, odds, len(mine), rng)
            if few:
                found[mine] = look.draw(len(mine), rng.standard_normal, variance[:, None])[0]
            elif len(mine):
                parts.append(_part(look, unit, np.sqrt(variance), rng))
            mean = mean + chance[g] * look.mean[0]
        weights = {kind.name: float(weight) for kind, weight in zip(self.kinds, mixture.kinds[0], strict=True)}
        words = explained(weights) + ("; in log odds" if odds is not None else f"; {noise_words(noise_variance)}")
        score = self._shaped(known, mixture.means())
        fitted = unit * score if odds is None else odds.means(score)  # as `fit`, without weighing all once more
        if not few:
            exact = unit * mean if odds is None else None
            return ManyArms(parts, rng, exact, None if odds is None else odds.means, words, fitted)
        if odds is not None:
            found = odds.means(found)
            return DrawnPosterior(found, found.mean(axis=0), words, fitted)
        return DrawnPosterior(unit * found, unit * mean, words, fitted)

    def check(self, features: Array, tally: Tally, noise_variance: float | None) -> FitCheck:
        return FitCheck("nothing to check: how far the features are to be trusted was learned from the results")

    @property
    def truth(self) -> Model:
        return Linear()  # the first truths it can tell

    def read(self, candidates: Candidates, tally: Tally) -> tuple[Mixture, Odds | None]:
        """Return the hypotheses that matter, weighed by what was observed, all leading axes in one.

        Rewards 0 and 1 are read as log odds; how, is returned too.
        """
        pulls = max(int(np.max(np.sum(tally.counts, axis=-1))), 1)
        made = structures(candidates.features, pulls, self.kinds, self.scaling).for_the_answer()
        return read(made, self.kinds, tally, self.hedge, self.kept, FEW)

    def _shaped(self, tally: Tally, values: Array) -> Array:
        return np.reshape(values, tally.sums.shape)


def _part(look: Outlook, unit: float, noise: Array, rng: np.random.Generator) -> PartDraws:
    """Return draws of one hypothesis, one for each `noise`."""
    root = unit * look.root[0]
    coefficients = noise[:, None] * rng.standard_normal((len(noise), root.shape[1]))
    return PartDraws(unit * look.mean[0], root, coefficients, unit * np.sqrt(look.own[0]), noise)


def _variances(left: Array, known: Tally, noise: float | None, odds: Odds | None, count: int, rng: Any) -> Array:
    """Return draws of the noise variance: as it is known, else what a hypothesis has `left` over a χ² variable."""
    if noise is not None:
        return np.full(count, np.clip(noise, 1e-14, 1e200))
    freedom = max(float(known.counts.sum()) - 1, 0.0)
    extra = max(0.0, LEAST - freedom)
    rough = rough_variance(known) if odds is None else float(odds.noise)
    return (freedom * max(float(left), 1e-14) + extra * rough) / rng.chisquare(freedom + extra, count)
