"""The paper's empirical claims as sentences, each with the comparison that decides it.

A verdict is computed: paired differences of accuracy on the same replications, averaged over the cells a claim is
about, with a 95 % interval. "Better" holds if the interval lies above 0, does not hold if it lies below, and is within
noise otherwise. "As good" allows a loss of 3 points.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bestarm.bench.paper import FIGURES, Figure
from bestarm.bench.runner import Results
from bestarm.simulate.intervals import NORMAL

HOLDS, FAILS, NOISE, NOT_RUN = "holds", "does not hold", "within noise", "not run"
SLACK = 0.03  # how much worse "as good" or "competitive" may be


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, where it stands, what decides it, and the verdict."""

    sentence: str
    place: str
    evidence: str
    verdict: str


@dataclass(frozen=True)
class Lead:
    """A mean difference of accuracies with its 95 % interval, in points."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.mean:+.1f} points [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"


class ClaimEvidence:
    """Outcomes of the cells that were run, by figure, panel, value of x and policy."""

    def __init__(self, figures: Mapping[str, Figure], results: Mapping[str, Results]) -> None:
        self.figures, self.results = figures, results

    def outcomes(self, name: str, panel: int, value: Any, policy: str) -> Any:
        """Return right or wrong in each replication, or None if the cell was not run."""
        if name not in self.results or panel >= len(self.figures[name].panels):
            return None
        figure = self.figures[name]
        if value not in figure.shown(policy) or policy not in figure.policies:
            return None
        chunks = self.results[name].chunks.get(figure.cell(figure.panels[panel], value, policy).key)
        return None if chunks is None else np.concatenate([c.correct for c in chunks]).astype(float)

    def cells(self, name: str, values: Callable[[Any], bool] = bool, panels: Iterable[int] | None = None) -> list[Any]:
        """Return (panel, value) for the cells of a figure a claim is about."""
        if name not in self.results:
            return []
        figure = self.figures[name]
        chosen = range(len(figure.panels)) if panels is None else [p for p in panels if p < len(figure.panels)]
        return [(p, v) for p in chosen for v in figure.values if values(v)]

    def difference(self, name: str, cells: Iterable[Any], one: str, two: str) -> Lead | None:
        """Return how much more often `one` is right than `two`, averaged over cells both were run on."""
        means, variances = [], []
        for panel, value in cells:
            a, b = (self.outcomes(name, panel, value, policy) for policy in (one, two))
            if a is None or b is None:
                continue
            gap = a - b
            means.append(gap.mean())
            variances.append(gap.var(ddof=1) / len(gap))
        if not means:
            return None
        middle, half = float(np.mean(means)), NORMAL * float(np.sqrt(np.sum(variances))) / len(means)
        return Lead(middle, middle - half, middle + half)

    def seconds(self, name: str, value: Any, policy: str) -> float | None:
        """Return CPU seconds per 100 runs, averaged over panels."""
        figure, spent, runs = self.figures[name], 0.0, 0
        for panel in figure.panels:
            chunks = self.results[name].chunks.get(figure.cell(panel, value, policy).key, ())
            spent += sum(c.cpu for c in chunks)
            runs += sum(len(c.correct) for c in chunks)
        return 100 * spent / runs if runs else None


Judge = Callable[[ClaimEvidence], tuple[str, str]]


@dataclass(frozen=True)
class Compare:
    """Decide a claim about two policies by their difference, averaged over some cells of a figure."""

    name: str
    one: str
    two: str
    values: Callable[[Any], bool] = bool
    panels: Iterable[int] | None = None
    allowed = ""

    def verdict(self, gap: Lead) -> str:
        """Return the verdict on `one` less `two`."""
        raise TypeError("a kind of comparison is needed")

    def __call__(self, evidence: ClaimEvidence) -> tuple[str, str]:
        gap = evidence.difference(self.name, evidence.cells(self.name, self.values, self.panels), self.one, self.two)
        return (NOT_RUN, "") if gap is None else (self.verdict(gap), f"{self.one} less {self.two}: {gap}{self.allowed}")


class Better(Compare):
    """`one` is more often right than `two`."""

    def verdict(self, gap: Lead) -> str:
        return HOLDS if gap.low > 0 else FAILS if gap.high < 0 else NOISE


class AsGood(Compare):
    """`one` is at most three points worse than `two`."""

    allowed = f"; a loss of {100 * SLACK:.0f} points is allowed"

    def verdict(self, gap: Lead) -> str:
        return HOLDS if gap.low > -SLACK else FAILS if gap.high < -SLACK else NOISE


class Similar(Compare):
    """`one` and `two` are within three points of each other."""

    allowed = f"; {100 * SLACK:.0f} points are allowed"

    def verdict(self, gap: Lead) -> str:
        inside, outside = gap.low > -SLACK and gap.high < SLACK, gap.low > SLACK or gap.high < -SLACK
        return HOLDS if inside else FAILS if outside else NOISE


def beaten_by_at_most(
    count: int, name: str, one: str, values: Callable[[Any], bool] = bool, panels: Iterable[int] | None = None
) -> Judge:
    """At most `count` rivals that are no variants of `one` are more often right than it."""

    def judge(evidence: ClaimEvidence) -> tuple[str, str]:
        if name not in evidence.results:
            return NOT_RUN, ""
        rivals = [p for p in evidence.figures[name].policies if not p.startswith(("gse-", "g-optimal"))]
        cells = evidence.cells(name, values, panels)
        gaps = {p: evidence.difference(name, cells, p, one) for p in rivals}
        known = {p: gap for p, gap in gaps.items() if gap is not None}
        surely = [p for p, gap in known.items() if gap.low > 0]
        maybe = [p for p, gap in known.items() if gap.mean > 0]
        verdict = FAILS if len(surely) > count else HOLDS if len(maybe) <= count else NOISE
        told = "; ".join(f"{p} {known[p]}" for p in sorted(maybe, key=lambda p: -known[p].mean)) or "none"
        return verdict, f"rivals ahead of {one}: {told}"

    return judge


def widens(
    name: str,
    one: str,
    two: str,
    low: Callable[[Any], bool],
    high: Callable[[Any], bool],
    panels: Iterable[int] | None = None,
) -> Judge:
    """The lead of `one` over `two` is larger at `high` values of x than at `low` ones."""

    def judge(evidence: ClaimEvidence) -> tuple[str, str]:
        few, many = (evidence.difference(name, evidence.cells(name, v, panels), one, two) for v in (low, high))
        if few is None or many is None:
            return NOT_RUN, ""
        change = many.mean - few.mean
        half = float(np.hypot(few.high - few.mean, many.high - many.mean))
        verdict = HOLDS if change > half else FAILS if change < -half else NOISE
        return verdict, f"{one} less {two}: {few} at small x, {many} at large x"

    return judge


def grows(name: str, policy: str, first: int, last: int) -> Judge:
    """`policy` is more often right in the last panel than in the first."""

    def judge(evidence: ClaimEvidence) -> tuple[str, str]:
        if name not in evidence.results or last >= len(evidence.figures[name].panels):
            return NOT_RUN, ""
        values = evidence.figures[name].values
        gaps = [evidence.outcomes(name, last, v, policy) - evidence.outcomes(name, first, v, policy) for v in values]
        middle = float(np.mean([g.mean() for g in gaps]))
        half = NORMAL * float(np.sqrt(sum(g.var(ddof=1) / len(g) for g in gaps))) / len(gaps)
        verdict = HOLDS if middle - half > 0 else FAILS if middle + half < 0 else NOISE
        labels = [evidence.figures[name].panels[p].label for p in (first, last)]
        return verdict, f"{policy}, {labels[1]} less {labels[0]}: {Lead(middle, middle - half, middle + half)}"

    return judge


def slower(name: str, slow: str, value: Any, times: float) -> Judge:
    """`slow` takes more than `times` the CPU time of every other policy at one value of x."""

    def judge(evidence: ClaimEvidence) -> tuple[str, str]:
        if name not in evidence.results:
            return NOT_RUN, ""
        others = [p for p in evidence.figures[name].policies if p != slow and not p.startswith("peace")]
        spent = {p: evidence.seconds(name, value, p) for p in [slow, *others]}
        if spent[slow] is None:
            return NOT_RUN, ""
        known = {p: s for p, s in spent.items() if s is not None}
        rest = max(s for p, s in known.items() if p != slow)
        told = f"{slow} {known[slow]:.2f} s per 100 runs, the slowest other {rest:.2f} s"
        return HOLDS if known[slow] > times * rest else FAILS, told

    return judge


def _small(value: Any) -> bool:
    return bool(value <= 16)


def _large(value: Any) -> bool:
    return bool(value >= 32)


def _wide(value: Any) -> bool:
    return bool(value >= 0.3)


A, S, R, L = "adaptive", "static", "randomized", "glm"
FWG = "gse-lin-fwg"

# (where it stands, the sentence, what decides it)
CLAIMS: tuple[tuple[str, str, Judge], ...] = (
    ("7.1", "GSE-Lin-FWG is at worst second for smaller K", beaten_by_at_most(1, A, FWG, _small)),
    ("7.1", "GSE-Lin-FWG is the best for larger K", beaten_by_at_most(0, A, FWG, _large)),
    ("7.1", "BayesGap-Lin performs poorly: worse than GSE-Lin-FWG", Better(A, FWG, "bayesgap-lin")),
    ("7.1", "LinGapE wins over GSE-Lin-FWG for smaller K", Better(A, "lingape", FWG, _small)),
    ("7.1", "LinGapE loses to GSE-Lin-FWG for larger K", Better(A, FWG, "lingape", _large)),
    ("7.1", "LinGapE-Greedy wins over GSE-Lin-FWG for smaller K", Better(A, "lingape-greedy", FWG, _small)),
    ("7.1", "LinGapE-Greedy loses to GSE-Lin-FWG for larger K", Better(A, FWG, "lingape-greedy", _large)),
    ("7.1", "Peace is less accurate than GSE-Lin-FWG", Better(A, FWG, "peace")),
    ("7.1", "Peace takes 30 times the time of the others at K = 16", slower(A, "peace", 16, 30)),
    ("7.1", "OD-LinBAI and GSE perform alike when K is near d", Similar(A, FWG, "od-linbai")),
    ("7.2", "OD-LinBAI and GSE perform alike on the static instance", Similar(S, FWG, "od-linbai")),
    ("7.2", "LinUCB is better than GSE-Lin-FWG when the gap is small", Better(S, "linucb", FWG, lambda v: v <= 0.1)),
    ("7.2", "GSE-Lin-FWG is at worst second when the gap is large", beaten_by_at_most(1, S, FWG, _wide)),
    ("7.2", "BayesGap-exp gains less from a large gap than GSE", Better(S, FWG, "bayesgap-exp", _wide)),
    ("7.2", "LinGapE-Greedy gains less from a large gap than GSE", Better(S, FWG, "lingape-greedy", _wide)),
    ("7.2", "Peace gains less from a large gap than GSE", Better(S, FWG, "peace", _wide)),
    ("7.3", "GSE-Lin-FWG is competitive with LinGapE-Greedy", AsGood(R, FWG, "lingape-greedy")),
    ("7.3", "GSE-Lin-FWG is competitive with BayesGap-Lin", AsGood(R, FWG, "bayesgap-lin")),
    ("7.3", "GSE-Lin-FWG is competitive with LinUCB", AsGood(R, FWG, "linucb")),
    ("7.3", "G-optimal allocations perform alike: FWG and Wynn", Similar(R, FWG, "gse-lin-wynn")),
    ("7.3", "G-optimal allocations perform alike: FWG and Greedy", Similar(R, FWG, "gse-lin-greedy")),
    ("7.3", "FWG is slightly better than Wynn", Better(R, FWG, "gse-lin-wynn")),
    ("7.3", "FWG is slightly better than Greedy", Better(R, FWG, "gse-lin-greedy")),
    ("7.3", "LinGapE-Greedy falls behind GSE as K grows", widens(R, FWG, "lingape-greedy", _small, _large)),
    ("7.3", "Peace underperforms GSE-Lin-FWG", Better(R, FWG, "peace")),
    ("7.3", "OD-LinBAI falls behind GSE as K grows", widens(R, FWG, "od-linbai", _small, _large)),
    ("7.3", "OD-LinBAI is worse than GSE for K > d(d+1)/2", Better(R, FWG, "od-linbai", lambda v: v > 55)),
    ("7.4", "Logistic models outperform linear ones, G-optimal", Better(L, "gse-log-fwg", FWG)),
    ("7.4", "Logistic models outperform linear ones, uniform", Better(L, "gse-log", "gse-lin")),
    ("7.4", "The linear model is only slightly worse", AsGood(L, FWG, "gse-log-fwg")),
    ("7.4", "FWG improves on uniform exploration with a logistic model", Better(L, "gse-log-fwg", "gse-log")),
    ("7.4", "UCB-GLM fails: worse than GSE-Log-FWG", Better(L, "gse-log-fwg", "ucb-glm")),
    ("7.4", "BayesGap-M falls short for B/K = 50", Better(L, "gse-log-fwg", "bayesgap-matern", panels=(2,))),
    ("7.4", "GSE keeps improving as the budget grows", grows(L, "gse-log-fwg", 0, 2)),
    ("6", "GSE outperforms BayesGap in the linear setting", Better(R, FWG, "bayesgap-lin")),
    ("6", "Peace never performs better than GSE", AsGood(A, FWG, "peace")),
    ("App. C", "G- and D-optimal allocation perform alike", Similar(A, FWG, "gse-lin-fwg-literal")),
    ("App. E", "η = K loses on the adaptive instance", Better(A, FWG, "g-optimal")),
    ("App. E", "Automobile: GSE-Lin-FWG competes with LinGapE-Greedy", AsGood("automobile", FWG, "lingape-greedy")),
    ("App. E", "Automobile: GSE-Lin-FWG competes with BayesGap-exp", AsGood("automobile", FWG, "bayesgap-exp")),
    ("App. E", "Motor: GSE-Lin-FWG is the most accurate", beaten_by_at_most(0, "motor", FWG)),
    ("App. E", "Motor: GSE-Lin-FWG competes with LinGapE-Greedy", AsGood("motor", FWG, "lingape-greedy")),
    ("App. E", "GSE outperforms OD-LinBAI at a small budget", Better("od", FWG, "od-linbai", panels=(0,))),
    ("App. E", "and the more so the larger K", widens("od", FWG, "od-linbai", _small, _large, panels=(0,))),
    ("App. E", "OD-LinBAI outperforms GSE at B = 500", Better("od", "od-linbai", FWG, panels=(2,))),
    ("App. E", "OD-LinBAI outperforms GSE in the corner case", Better("corner", "od-linbai", FWG)),
)  # fmt: skip


def judge_all(results: Mapping[str, Results], figures: Mapping[str, Figure] | None = None) -> list[Claim]:
    """Return every claim with its verdict on these results."""
    evidence = ClaimEvidence(figures or FIGURES, results)
    claims = []
    for place, sentence, judge in CLAIMS:
        verdict, told = judge(evidence)
        claims.append(Claim(sentence, place, told, verdict))
    return claims
