"""What to be wary of in a study's data: does the model fit, can the arms be told apart, is there enough?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bestarm.core import Tally
from bestarm.errors import BestArmWarning, BudgetWarning, LackOfFitWarning, RankDeficientWarning, SeparationWarning
from bestarm.linalg import Candidates, span_coordinates
from bestarm.models.glm import GLM, Identity, Logistic, Poisson
from bestarm.models.linear import Linear
from bestarm.models.weighed import Weighed

LEVEL = 0.01  # a fit is called bad if data as odd as these come less often than this from a model that holds
EDGE = 8.0  # a fitted logit beyond this, on an arm whose expected rarer outcomes number less than RARE, ran away
RARE = 0.05
FEW = 3  # pulls a coefficient, below which little can be said


@dataclass(frozen=True)
class FitCheck:
    """How well a model fits. `p` is None where the data cannot tell, and `words` say why."""

    words: str
    statistic: float | None = None
    p: float | None = None

    @property
    def bad(self) -> bool:
        return self.p is not None and self.p < LEVEL


@dataclass(frozen=True)
class Finding:
    """A sentence for a person, and the warning it is."""

    kind: type[BestArmWarning]
    words: str


def check_fit(model: Any, features: Any, tally: Tally, noise_variance: float | None) -> FitCheck:
    """Test the model against what repeats of the same arm say.

    Linear: the scatter of the arms' means about the fit against the scatter of repeats, by F, or by χ² where the noise
    is known. Logistic, Poisson: Pearson's χ² over the arms where it can be trusted. Weighed hypotheses: nothing, since
    how far to trust the features is what they learn.
    """
    link = model.link if isinstance(model, GLM) else None
    pulled = tally.counts > 0
    if isinstance(model, Linear) or isinstance(link, Identity):
        fit = model.fit(Candidates.of(features), tally).mean
        return _analysis_of_variance(_rank(features[pulled]), fit, tally, noise_variance)
    if isinstance(link, Logistic | Poisson):
        fit = model.fit(Candidates.of(features), tally).mean
        return _pearson(_rank(features[pulled]), fit, fit * (1 - fit) if isinstance(link, Logistic) else fit, tally)
    if isinstance(model, Weighed):
        return FitCheck("nothing to check: how far the features are to be trusted was learned from the results")
    return FitCheck("nothing to check: no relation between the arms is assumed")


def _rank(features: Any) -> int:
    return int(np.linalg.matrix_rank(features)) if len(features) else 0


def _analysis_of_variance(rank: int, fit: Any, tally: Tally, noise_variance: float | None) -> FitCheck:
    from scipy.stats import chi2, f

    pulled = tally.counts > 0
    counts, sums = tally.counts[pulled], tally.sums[pulled]
    free, repeats = int(pulled.sum()) - rank, float(np.sum(counts - 1))
    if free < 1:
        return FitCheck("cannot be checked: no more arms were measured than there are coefficients")
    seen = float(tally.squares.sum())
    lack = float(np.sum(counts * (sums / counts - fit[pulled]) ** 2))
    if lack <= 1e-12 * seen:
        return FitCheck(f"the {int(pulled.sum())} arms measured lie on the model", 0.0, 1.0)
    if noise_variance is not None and noise_variance > 0:
        p = float(chi2.sf(lack / noise_variance, free))
        return FitCheck(f"χ² = {lack / noise_variance:.3g} on {_degrees(free)}", lack / noise_variance, p)
    if repeats < 1:
        return FitCheck("cannot be checked: no arm was measured twice and the noise is unknown")
    pure = max(float(np.sum(tally.squares[pulled] - sums**2 / counts)), 1e-14 * seen)
    ratio = (lack / free) / (pure / repeats)
    return FitCheck(
        f"F = {ratio:.3g} on {free} and {repeats:.0f} degrees of freedom", ratio, float(f.sf(ratio, free, repeats))
    )


def _pearson(rank: int, fit: Any, variance: Any, tally: Tally) -> FitCheck:
    from scipy.stats import chi2

    enough = tally.counts * variance >= 2.5  # about three of the rarer outcome expected
    free = int(enough.sum()) - rank
    if free < 1:
        return FitCheck("cannot be checked: too few arms were measured often enough")
    apart = (tally.sums - tally.counts * fit)[enough]
    statistic = float(np.sum(apart**2 / (tally.counts * variance)[enough]))
    return FitCheck(f"χ² = {statistic:.3g} on {_degrees(free)}", statistic, float(chi2.sf(statistic, free)))


def findings(model: Any, ids: Sequence[str], features: Any, present: Any, tally: Tally, fit: FitCheck) -> list[Finding]:
    """Return all there is to be wary of, in sentences."""
    structured = isinstance(model, Linear | GLM | Weighed)
    found = []
    if fit.bad:
        found.append(Finding(LackOfFitWarning, _lack_words(model, fit)))
    if structured:
        found += _alike(ids, features, present) + _unmeasured(ids, features, present, tally)
    if isinstance(model, GLM) and isinstance(model.link, Logistic):
        found += _separated(model, ids, features, tally)
    return found + _few(model, ids, features, present, tally, structured)


def _lack_words(model: Any, fit: FitCheck) -> str:
    kind = "linear" if isinstance(model, Linear) or isinstance(model.link, Identity) else "assumed"
    return (
        f"The {kind} model does not fit: results scatter about it more than repeats of the same arm do ({fit.words}, "
        f"p = {fit.p:.2g}). Chances and intervals lean on it. Add features or an intercept, or use a policy without "
        "structure: gse-means or sequential-halving."
    )


def _alike(ids: Sequence[str], features: Any, present: Any) -> list[Finding]:
    groups: dict[bytes, list[str]] = {}
    scale = np.maximum(np.abs(features).max(axis=0, initial=0), 1e-300)
    for arm in np.flatnonzero(present).tolist():
        groups.setdefault((np.round(features[arm] / scale, 9) + 0.0).tobytes(), []).append(ids[arm])
    same = [group for group in groups.values() if len(group) > 1]
    if not same:
        return []
    named = "; ".join(_names(group, " and ") for group in same[:3])
    more = f"; and {len(same) - 3} more groups" if len(same) > 3 else ""
    return [Finding(RankDeficientWarning, f"The features do not tell these arms apart: {named}{more}.")]


def _unmeasured(ids: Sequence[str], features: Any, present: Any, tally: Tally) -> list[Finding]:
    """Name arms that lie outside the span of the arms measured."""
    pulled = tally.counts > 0
    z = span_coordinates(np.asarray(features, dtype=np.float64))
    _, values, right = np.linalg.svd(z[pulled], full_matrices=False)
    kept = right[values > 1e-9]
    outside = np.sum(z**2, axis=1) - np.sum((z @ kept.T) ** 2, axis=1) > 1e-9
    arms = [ids[arm] for arm in np.flatnonzero(outside & present).tolist()]
    if not arms or not pulled.any():
        return []
    told = f"{len(arms)} arms have" if len(arms) > 1 else "One arm has"
    words = f"{told} features that no measured arm has had, so little is known of them: {_names(arms)}."
    return [Finding(RankDeficientWarning, words)]


def _separated(model: GLM, ids: Sequence[str], features: Any, tally: Tally) -> list[Finding]:
    total, won = tally.counts.sum(), tally.sums.sum()
    if total > 0 and won in (0, total):
        words = f"All {total:.0f} results are the same, so nothing tells the arms apart yet."
        return [Finding(SeparationWarning, words)]
    score = np.clip(model.fit(Candidates.of(features), tally).score, -50, 50)
    edge = (tally.counts > 0) & (np.abs(score) > EDGE) & (tally.counts * model.link.slope(score) < RARE)
    if not edge.any():
        return []
    arms = _names([ids[arm] for arm in np.flatnonzero(edge).tolist()])
    words = f"The features separate successes from failures, so the fitted chances of these arms are 0 or 1: {arms}. "
    return [Finding(SeparationWarning, words + "The corrected estimate and the interval are to be trusted instead.")]


def _few(model: Any, ids: Sequence[str], features: Any, present: Any, tally: Tally, structured: bool) -> list[Finding]:
    total = int(tally.counts.sum())
    if structured:
        rank = _rank(features)
        if total < FEW * rank:
            few = f"{total} results for {rank} coefficients are few: take the chances as rough."
            return [Finding(BudgetWarning, few)]
        return []
    never = [ids[arm] for arm in np.flatnonzero(present & (tally.counts == 0)).tolist()]
    if never:
        words = f"{len(never)} of {int(np.sum(present))} arms were never measured: {_names(never)}."
        return [Finding(BudgetWarning, words)]
    if total < FEW * np.sum(present):
        return [Finding(BudgetWarning, f"{total} results for {int(np.sum(present))} arms are few.")]
    return []


def _degrees(free: int) -> str:
    return f"{free} degree{'s' if free > 1 else ''} of freedom"


def _names(ids: Sequence[str], last: str = ", ") -> str:
    shown = last.join(ids[:5])
    return f"{shown} and {len(ids) - 5} more" if len(ids) > 5 else shown
