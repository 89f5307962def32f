"""What to be wary of in a study's data: does the model fit, can the arms be told apart, is there enough?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bestarm.core import Tally
from bestarm.errors import BestArmWarning, BudgetWarning, LackOfFitWarning, RankDeficientWarning, SeparationWarning
from bestarm.linalg import Candidates, span_coordinates
from bestarm.models.checks import FitCheck, rank_of
from bestarm.numbers import counted

EDGE = 0.25 / math.cosh(4) ** 2  # a chance of less variance, its logit beyond 8, whose expected rarer outcomes number
RARE = 0.05  # less than this, ran away
FEW = 3  # pulls a coefficient, below which little can be said


@dataclass(frozen=True)
class Finding:
    """A sentence for a person, and the warning it is."""

    kind: type[BestArmWarning]
    words: str


def findings(model: Any, ids: Sequence[str], features: Any, present: Any, tally: Tally, fit: FitCheck) -> list[Finding]:
    """Return all there is to be wary of, in sentences."""
    found = []
    if fit.bad:
        found.append(Finding(LackOfFitWarning, _lack_words(model, fit)))
    if model.structured:
        found += _alike(ids, features, present) + _unmeasured(ids, features, present, tally)
    return found + _separated(model, ids, features, tally) + _few(model, ids, features, present, tally)


def _lack_words(model: Any, fit: FitCheck) -> str:
    return (
        f"The {model.law.named()} model does not fit: results scatter about it more than repeats of the same arm do "
        f"({fit.words}, p = {fit.p:.2g}). Chances and intervals lean on it. Add features or an intercept, or use a "
        "policy without structure: gse-means or sequential-halving."
    )


def _alike(ids: Sequence[str], features: Any, present: Any) -> list[Finding]:
    groups: dict[bytes, list[str]] = {}
    scale = np.maximum(np.abs(features).max(axis=0, initial=0), 1e-300)
    rounded = np.round(features / scale, 9) + 0.0
    for arm in np.flatnonzero(present).tolist():
        groups.setdefault(rounded[arm].tobytes(), []).append(ids[arm])
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


def _separated(model: Any, ids: Sequence[str], features: Any, tally: Tally) -> list[Finding]:
    """Name arms whose chances ran to an end, where means have two ends."""
    low, high = model.law.limits
    if not np.isfinite([low, high]).all():
        return []
    total, seen = tally.counts.sum(), tally.sums.sum()
    if total > 0 and seen in (low * total, high * total):
        same = "There is one result" if total == 1 else f"All {total:.0f} results are the same"
        words = f"{same}, so nothing tells the arms apart yet."
        return [Finding(SeparationWarning, words)]
    score = np.clip(model.fit(Candidates.of(features), tally).score, -50, 50)
    variance = model.law.variance_at(score, None)
    edge = (tally.counts > 0) & (variance < EDGE * (high - low) ** 2) & (tally.counts * variance < RARE)
    if not edge.any():
        return []
    arms = _names([ids[arm] for arm in np.flatnonzero(edge).tolist()])
    words = f"The features separate successes from failures, so the fitted chances of these arms are 0 or 1: {arms}. "
    return [Finding(SeparationWarning, words + "The corrected estimate and the interval are to be trusted instead.")]


def _few(model: Any, ids: Sequence[str], features: Any, present: Any, tally: Tally) -> list[Finding]:
    total = int(tally.counts.sum())
    if model.structured:
        rank = rank_of(features)
        if total < FEW * rank:
            few = f"{counted(total, 'result')} for {counted(rank, 'coefficient')} are few: take the chances as rough."
            return [Finding(BudgetWarning, few)]
        return []
    never = [ids[arm] for arm in np.flatnonzero(present & (tally.counts == 0)).tolist()]
    if never:
        words = f"{len(never)} of {int(np.sum(present))} arms were never measured: {_names(never)}."
        return [Finding(BudgetWarning, words)]
    if total < FEW * np.sum(present):
        return [Finding(BudgetWarning, f"{counted(total, 'result')} for {int(np.sum(present))} arms are few.")]
    return []


def _names(ids: Sequence[str], last: str = ", ") -> str:
    shown = last.join(ids[:5])
    return f"{shown} and {len(ids) - 5} more" if len(ids) > 5 else shown
