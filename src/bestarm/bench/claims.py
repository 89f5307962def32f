"""The paper's sentences in our words, each with the comparison that decides it, judged in three settings.

A sentence is judged as it stands: a trend by the own accuracy of what it speaks of, "always" and "never" over every
figure they cover, "most" by counting cells, "the best" by nobody's paired interval lying above.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bestarm.bench import theory
from bestarm.bench.evidence import CANNOT, FAILS, HOLDS, NOISE, NOT_RUN, Cannot, Found, NotRun, SettingView, sure
from bestarm.bench.judges import (
    SLACK,
    All,
    Always,
    AtLeast,
    Combination,
    Compare,
    Falls,
    Judge,
    MostCells,
    MostlyBest,
    Ranked,
    Sensitive,
    Several,
    Slower,
    alike,
    as_good,
)
from bestarm.bench.paper import (
    BAYES,
    BEST,
    CODE,
    D_OPTIMAL,
    DFORM,
    FIGURES,
    FWG,
    GREEDY,
    GSE,
    LGREEDY,
    LINEAR,
    LINGAPE,
    LOG,
    LOGFWG,
    OD,
    ONCE,
    PEACE,
    PRINTED,
    SETTINGS,
    UCB,
    UCBBEST,
    UCBGLM,
    WYNN,
    Figure,
)
from bestarm.bench.runner import Results
from bestarm.bench.theory import CornerCase, Everywhere, LosesFirst, tighter
from bestarm.simulate.intervals import NORMAL

BOUNDS = "with correct confidence bounds"  # what best effort changes where a rival's radius was the matter
WORDS = {PRINTED: "as printed", CODE: "in the published code", BEST: "in best effort"}


@dataclass(frozen=True)
class Sentence:
    """A sentence of the paper: where it stands, our words for it, what decides it, and what best effort changes."""

    place: str
    text: str
    judge: Judge
    best: str = WORDS[BEST]


@dataclass(frozen=True)
class Claim:
    """A sentence with its findings by setting, the figures it looked at, and whether each verdict stays.

    `firm` is whether the verdict is the same where all intervals of the table hold together; `fine` whether it rests on
    none wider than three points either way.
    """

    number: int
    sentence: Sentence
    findings: Mapping[str, Found]
    firm: Mapping[str, bool]
    fine: Mapping[str, bool]
    seen: tuple[str, ...]

    @property
    def ran(self) -> bool:
        """Whether it could be judged in any setting."""
        return any(finding.verdict not in (NOT_RUN, CANNOT) for finding in self.findings.values())

    @property
    def verdict(self) -> str:
        """The three verdicts as one sentence.

        >>> found = {PRINTED: Found(HOLDS, ""), CODE: Found(HOLDS, ""), BEST: Found(FAILS, "")}
        >>> Claim(1, Sentence("8", "A wins", CLAIMS[0].judge, BOUNDS), found, {}, {}, ()).verdict
        'holds as printed and in the published code; does not hold with correct confidence bounds'
        """
        words = WORDS | {BEST: self.sentence.best}
        groups: dict[str, list[str]] = {}
        for setting, finding in self.findings.items():
            groups.setdefault(finding.verdict, []).append(words[setting])
        if len(groups) == 1:
            return f"{next(iter(groups))} in all three settings".replace(f"{CANNOT} in", "cannot be had in")
        order = sorted(groups, key=(HOLDS, FAILS, NOISE, NOT_RUN, CANNOT).index)
        return "; ".join(
            f"{'cannot be had' if verdict == CANNOT else verdict} {' and '.join(groups[verdict])}" for verdict in order
        )


def _few(value: int) -> bool:
    return value <= 16


def _many(value: int) -> bool:
    return value >= 32


def _narrow(value: float) -> bool:
    return value <= 0.1


def _wide(value: float) -> bool:
    return value >= 0.3


def _gain(label: str) -> All:
    """Return: from Δ ≤ 0.1 to Δ ≥ 0.3 a label gains less than GSE-Lin-FWG does."""
    up = {0.01: -0.25, 0.03: -0.25, 0.05: -0.25, 0.1: -0.25, 0.3: 1 / 3, 0.5: 1 / 3, 1.0: 1 / 3}
    gains = f"gain of {FWG} from Δ ≤ 0.1 to Δ ≥ 0.3 less that of {label}"
    return All((Combination("static", gains, {FWG: 1.0, label: -1.0}, up),))


A, S, R, L, OLD = "adaptive", "static", "randomized", "glm", "od"

CLAIMS: tuple[Sentence, ...] = (
    Sentence("Abstract", "GSE is at least as accurate as BayesGap in linear models", AtLeast(LINEAR, FWG, BAYES),
        BOUNDS),
    Sentence("Abstract", "GSE is at least as accurate as Peace in linear models", AtLeast(LINEAR, FWG, PEACE)),
    Sentence("Abstract", "GSE is at least as accurate as OD-LinBAI in linear models", AtLeast(LINEAR, FWG, OD)),
    Sentence("Abstract", "GSE is at least as accurate as LinUCB in linear models", AtLeast(LINEAR, FWG, UCB), BOUNDS),
    Sentence("Abstract", "GSE is at least as accurate as LinGapE-Greedy in linear models",
        AtLeast(LINEAR, FWG, LGREEDY)),
    Sentence("1", "OD-LinBAI is inaccurate when K is much larger than d: worse than GSE on the sphere from K = 64 on",
        Compare(R, FWG, OD, lambda v: v >= 64)),
    Sentence("4.1", "The bound is tighter for larger B, looser for larger K and d",
        Everywhere("so", theory.moves_as_said, lambda p: 2 * p.dimension <= p.arms)),
    Sentence("4.1", "For plain bandits its exponent is that of the lower bound but for a factor of log K",
        Everywhere("within 8 log K", theory.near_lower, lambda p: p.dimension == p.arms)),
    Sentence("6", "Algorithm 2 finds a G-optimal design", theory.reaches_optimum),
    Sentence("7", "The bound of GSE is tighter than BayesGap's", Everywhere("tighter", tighter(theory.bayesgap))),
    Sentence("7", "GSE always outperforms BayesGap in the linear setting", Always(LINEAR, FWG, BAYES), BOUNDS),
    Sentence("7", "BayesGap does not explore enough and performs poorly: worse than GSE on the sphere",
        Compare(R, FWG, BAYES), BOUNDS),
    Sentence("7", "Peace never performs better than GSE", Always(LINEAR, FWG, PEACE, strict=False)),
    Sentence("7", "(i) Peace's bound is the better one only for K > exp(exp(log d log log d))",
        Everywhere("smaller just there, with a constant of 1 for Peace,", theory.peace_crosses)),
    Sentence("7", "(ii) With a G-optimal design the bound of GSE is tighter than Peace's",
        Everywhere("tighter, with a constant of 1 for Peace,", tighter(theory.peace))),
    Sentence("7", "The bound of GSE is tighter than OD-LinBAI's for K = d² and more",
        Everywhere("tighter", tighter(theory.od), lambda p: p.arms >= p.dimension**2)),
    Sentence("7", "OD-LinBAI's bound is the tighter one for K < d(d+1)/2",
        Everywhere("OD-LinBAI's is the tighter one", lambda s, p: theory.od(p).log < theory.ours(s, p).log,
            lambda p: 2 * p.arms < p.dimension * (p.dimension + 1))),
    Sentence("7", "OD-LinBAI is prone to lose the best arm in its first stage: more than GSE (sphere, K = 64, B = 100)",
        LosesFirst()),
    Sentence("8", "FWG is more accurate than uniform exploration on the adaptive instance", Compare(A, FWG, GSE)),
    Sentence("8", "FWG is more accurate than uniform exploration on the sphere", Compare(R, FWG, GSE)),
    Sentence("8", "FWG is more accurate than uniform exploration on the automobile table",
        Compare("automobile", FWG, GSE)),
    Sentence("8", "FWG is more accurate than uniform exploration on the motor table", Compare("motor", FWG, GSE)),
    Sentence("8.1", "GSE-Lin-FWG is the second-best algorithm for smaller K", Ranked(A, FWG, 2, _few), BOUNDS),
    Sentence("8.1", "GSE-Lin-FWG is the best algorithm for larger K", Ranked(A, FWG, 1, _many), BOUNDS),
    Sentence("8.1", "BayesGap-Lin performs poorly: worse than GSE-Lin-FWG", Compare(A, FWG, BAYES), BOUNDS),
    Sentence("8.1", "LinGapE wins mostly for smaller K", MostCells((A,), LINGAPE, FWG, _few)),
    Sentence("8.1", "LinGapE loses for larger K", Compare(A, FWG, LINGAPE, _many)),
    Sentence("8.1", "LinGapE-Greedy wins mostly for smaller K", MostCells((A,), LGREEDY, FWG, _few)),
    Sentence("8.1", "LinGapE-Greedy loses for larger K", Compare(A, FWG, LGREEDY, _many)),
    Sentence("8.1", "Peace has lower accuracy than several other algorithms", Several(A, PEACE)),
    Sentence("8.1", "Peace takes 30 times the time of the others at K = 16", Slower(A, PEACE, 16, 30)),
    Sentence("8.1", "100 runs of Peace take 14 hours at K = 32", Slower(A, PEACE, 32, seconds=14 * 3600)),
    Sentence("8.1", "OD-LinBAI and GSE have the same number of stages when K is near d", theory.as_many_stages),
    Sentence("8.1", "OD-LinBAI and GSE perform alike", Compare(A, FWG, OD, rule=alike)),
    Sentence("8.1", "An adaptive allocation is better here than a static one", Compare(A, FWG, ONCE)),
    Sentence("8.2", "OD-LinBAI and GSE perform alike on the static instance", Compare(S, FWG, OD, rule=alike)),
    Sentence("8.2", "A static allocation is optimal: as good as GSE-Lin-FWG", Compare(S, ONCE, FWG, rule=as_good)),
    Sentence("8.2", "LinUCB performs the best when Δ is small", Ranked(S, UCB, 1, _narrow), BOUNDS),
    Sentence("8.2", "GSE-Lin-FWG is the second-best when Δ is large", Ranked(S, FWG, 2, _wide), BOUNDS),
    Sentence("8.2", "GSE converges to the optimal static allocation: equal pulls of the arms still in, in every stage",
        theory.shares_evenly),
    Sentence("8.2", "BayesGap-exp cannot take advantage of a larger Δ: it gains less than GSE", _gain(BAYES), BOUNDS),
    Sentence("8.2", "LinGapE cannot take advantage of a larger Δ", _gain(LINGAPE)),
    Sentence("8.2", "LinGapE-Greedy cannot take advantage of a larger Δ", _gain(LGREEDY)),
    Sentence("8.2", "Peace cannot take advantage of a larger Δ", _gain(PEACE)),
    Sentence("8.3", "GSE-Lin-FWG is competitive with LinGapE-Greedy", Compare(R, FWG, LGREEDY, rule=as_good)),
    Sentence("8.3", "GSE-Lin-FWG is competitive with BayesGap", Compare(R, FWG, BAYES, rule=as_good), BOUNDS),
    Sentence("8.3", "GSE-Lin-FWG is competitive with LinUCB", Compare(R, FWG, UCB, rule=as_good), BOUNDS),
    Sentence("8.3", "G-optimal policies perform alike: FWG and Wynn", Compare(R, FWG, WYNN, rule=alike)),
    Sentence("8.3", "G-optimal policies perform alike: FWG and Greedy", Compare(R, FWG, GREEDY, rule=alike)),
    Sentence("8.3", "FWG is slightly better than Wynn", Compare(R, FWG, WYNN)),
    Sentence("8.3", "FWG is slightly better than Greedy", Compare(R, FWG, GREEDY)),
    Sentence("8.3", "LinGapE's performance degrades as K increases, in its greedy form", Falls(R, LGREEDY)),
    Sentence("8.3", "Peace underperforms GSE-Lin-FWG", Compare(R, FWG, PEACE)),
    Sentence("8.3", "OD-LinBAI's performance worsens as K increases", Falls(R, OD)),
    Sentence("8.3", "OD-LinBAI's performance worsens especially for K > d(d+1)/2", Combination(R,
        "OD-LinBAI, fall a doubling of K beyond 32 less that before", {OD: 1.0}, {8: -0.5, 32: 1.0, 128: -0.5})),
    Sentence("8.4", "Logistic models outperform linear ones, G-optimal", Compare(L, LOGFWG, FWG)),
    Sentence("8.4", "Logistic models outperform linear ones, uniform", Compare(L, LOG, GSE)),
    Sentence("8.4", "The linear model only slightly underperforms", Compare(L, FWG, LOGFWG, rule=as_good)),
    Sentence("8.4", "FWG improves on uniform exploration", Compare(L, LOGFWG, LOG)),
    Sentence("8.4", "UCB-GLM shows that such algorithms could fail: worse than GSE-Log-FWG",
        Compare(L, LOGFWG, UCBGLM), BOUNDS),
    Sentence("8.4", "BayesGap-M falls short for B/K = 50: worse than GSE-Log-FWG",
        Compare(L, LOGFWG, BAYES, panels=(2,)), BOUNDS),
    Sentence("8.4", "BayesGap-M fails for large B: from B/K = 20 to 50 it gains less than GSE-Log-FWG", Combination(L,
        f"gain of {LOGFWG} less that of {BAYES}", {LOGFWG: 1.0, BAYES: -1.0}, panels={1: -1.0, 2: 1.0}), BOUNDS),
    Sentence("8.4", "The performance of GSE keeps improving as B increases", Combination(L,
        f"{LOGFWG}, B/K = 50 less B/K = 10", {LOGFWG: 1.0}, panels={0: -1.0, 2: 1.0})),
    Sentence("App. C", "G- and D-optimal allocations perform alike on the adaptive instance",
        Compare(A, FWG, DFORM, rule=alike)),
    Sentence("App. C", "G- and D-optimal allocations perform alike on the sphere", Compare(R, FWG, DFORM, rule=alike)),
    Sentence("App. D", "OD-LinBAI's bound is better for small d, fixed q > 8 and B to infinity",
        CornerCase(lambda n: (4, 10, n**3), below=False)),
    Sentence("App. D", "Ours is better for fixed B and d, q to infinity", CornerCase(lambda n: (4, n, 1000))),
    Sentence("App. D", "Ours is better for fixed B, d and q to infinity", CornerCase(lambda n: (n, n, 1000))),
    Sentence("App. D", "Ours is better for small d, fixed q < 8 (6 here) and B to infinity",
        CornerCase(lambda n: (4, 6, n**3))),
    Sentence("App. D", "Ours is better for fixed d ≥ 3, q and B to infinity alike", CornerCase(lambda n: (4, n, n))),
    Sentence("App. E", "η = K makes it static, which costs accuracy on the adaptive instance", Compare(A, FWG, ONCE)),
    Sentence("App. E", "η = 2 is best on the adaptive instance", Ranked("eta", "η = 2")),
    Sentence("App. E", "BayesGap is sensitive to its kernel on the adaptive instance", Sensitive("kernels"),
        "with a prior variance of 1"),
    Sentence("App. E", "BayesGap is sensitive to its kernel on the sphere", Sensitive("kernels-sphere"),
        "with a prior variance of 1"),
    Sentence("App. E", "Automobile: GSE-Lin-FWG outperforms or competes with LinGapE-Greedy",
        Compare("automobile", FWG, LGREEDY, rule=as_good)),
    Sentence("App. E", "Automobile: nobody is ahead of GSE-Lin-FWG", Ranked("automobile", FWG), BOUNDS),
    Sentence("App. E", "Motor: GSE-Lin-FWG outperforms or competes with LinGapE-Greedy",
        Compare("motor", FWG, LGREEDY, rule=as_good)),
    Sentence("App. E", "Motor: GSE-Lin-FWG has the highest accuracy in most of the cases", MostlyBest(("motor",), FWG),
        BOUNDS),
    Sentence("App. E", "GSE outperforms OD-LinBAI at a small budget (variance 1, B = 100)",
        Compare(OLD, FWG, OD, panels=(0,))),
    Sentence("App. E", "GSE outperforms OD-LinBAI the more the larger K (B = 100)",
        Combination(OLD, f"lead of {FWG} at K ≥ 32 less that at K ≤ 16", {FWG: 1.0, OD: -1.0},
            {8: -0.5, 16: -0.5, 32: 0.5, 64: 0.5}, {0: 1.0})),
    Sentence("App. E", "OD-LinBAI outperforms GSE at B = 500", Compare(OLD, OD, FWG, panels=(2,))),
    Sentence("App. E", "OD-LinBAI outperforms GSE in the corner case", Compare("corner", OD, FWG)),
    Sentence("App. F", "To return the most pulled arm is reasonable: as good as the best estimate",
        Compare("pulled", UCB, UCBBEST, rule=as_good)),
    Sentence("App. F", "LinUCB's bound has d² for d and is looser than ours",
        Everywhere("looser", tighter(theory.linucb))),
    Sentence("App. F", "UCB-GLM's bound decreases in B, slowly", theory.glm_falls),
    Sentence("App. G", "In most cases GSE performs better than LinGapE", MostCells(LINEAR, FWG, LINGAPE)),
    Sentence("App. G", "In most cases GSE performs better than LinGapE-Greedy", MostCells(LINEAR, FWG, LGREEDY)),
    Sentence("App. G", "FWG mostly outperforms the other designs: uniform", MostCells(LINEAR, FWG, GSE)),
    Sentence("App. G", "FWG mostly outperforms the other designs: Wynn", MostCells(LINEAR, FWG, WYNN)),
    Sentence("App. G", "FWG mostly outperforms the other designs: Greedy", MostCells(LINEAR, FWG, GREEDY)),
    Sentence("App. H", "With many arms near e_1 and one e_2, an optimal design gives e_2 half the pulls",
        theory.half_on_the_other),
)  # fmt: skip


def judge_all(results: Mapping[str, Results], figures: Mapping[str, Figure] = FIGURES) -> list[Claim]:
    """Return every sentence with its findings; intervals are also made to hold together for the whole table."""
    plain = [[_found(one, setting, figures, results) for setting in SETTINGS] for one in CLAIMS]
    count = sum(len(finding.leads) for row in plain for finding, _ in row)
    claims = []
    for number, (sentence, row) in enumerate(zip(CLAIMS, plain, strict=True), start=1):
        together = [_found(sentence, setting, figures, results, sure(count)) for setting in SETTINGS]
        findings, firm, fine = {}, {}, {}
        for setting, (finding, _), (wide, _) in zip(SETTINGS, row, together, strict=True):
            findings[setting] = replace(wide, verdict=finding.verdict)
            firm[setting] = wide.verdict == finding.verdict
            fine[setting] = all(NORMAL * lead.error <= SLACK for lead in finding.leads)
        seen = dict.fromkeys(name for _, names in row for name in names)
        claims.append(Claim(number, sentence, findings, firm, fine, tuple(seen)))
    return claims


def _found(
    sentence: Sentence,
    setting: str,
    figures: Mapping[str, Figure],
    results: Mapping[str, Results],
    reach: float = NORMAL,
) -> tuple[Found, tuple[str, ...]]:
    """Return what becomes of a sentence in a setting, and the figures it looked at."""
    view = SettingView(figures, results, setting, reach)
    finding = _judged(sentence.judge, view)
    if setting == PRINTED and DFORM not in finding.told:
        other = _judged(sentence.judge, SettingView(figures, results, setting, reach, D_OPTIMAL))
        if other.verdict in (HOLDS, FAILS, NOISE) and other.verdict != finding.verdict:
            finding = replace(finding, told=f"{finding.told}. With the D-optimal form it {_phrase(other)}")
    return finding, tuple(dict.fromkeys(name for name, _ in view.seen))


def _phrase(other: Found) -> str:
    return f"{'is within noise' if other.verdict == NOISE else other.verdict}: {other.told}"


def _judged(judge: Judge, view: SettingView) -> Found:
    try:
        return judge(view)
    except NotRun as why:
        return Found(NOT_RUN, str(why))
    except Cannot as why:
        return Found(CANNOT, str(why))
