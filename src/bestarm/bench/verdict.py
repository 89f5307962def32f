"""What a race says: how far the judged policy is from the best rival of each contest of a suite.

Where the best rival of each contest is chosen by the same data that measure it, its accuracy is biased upward, the more
so the closer the rivals are, and the difference to it is hard on the judged policy. A race may choose it by its first
replications and measure it on the others. The difference to the one rival that is best over a whole group, which is
chosen once for many contests, is given as well.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bestarm.bench import table
from bestarm.bench.suite import Contest, Suite
from bestarm.simulate.intervals import NORMAL, paired, wilson

WORSE = 0.01  # a rival leaves a contest when it is surely worse than the best by this much,
SURELY = 3.290527  # at 99.9 %
FAILING = -0.02  # a contest fails where the whole interval of the difference to the best rival is below this
BY_CHANCE = 0.025  # how often it fails where the true difference is just that
HALVING = ("sequential-halving", "sequential-halving-pooled")
PROCESSES = ("gp-thompson", "bayesgap-exp", "bayesgap-matern", "bayesgap-se")


@dataclass(frozen=True)
class Left:
    """When a policy left a contest, and the policy that was better."""

    after: int
    better: str


@dataclass(eq=False)
class ContestOutcome:
    """What happened in a contest: who was right in which replication `(n,)`, who left, who could not run and why.

    `rival` is the best rival where it was chosen by the first `rival_from` replications and is measured on the others.
    """

    contest: Contest
    correct: dict[str, Any] = field(default_factory=dict)
    left: dict[str, Left] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: str | None = None
    rival: str | None = None
    rival_from: int = 0

    def accuracy(self, policy: str, after: int = 0) -> float:
        """Return how often `policy` was right in the replications `after` so many."""
        return float(np.mean(self.correct[policy][after:]))

    def difference(self, one: str, two: str, after: int = 0) -> tuple[float, float, float]:
        """Return by how much `one` is right more often than `two`, with its 95 % interval, where both ran."""
        count = min(len(self.correct[one]), len(self.correct[two]))
        return paired(self.correct[one][after:count], self.correct[two][after:count])

    def drop(self, staying: Iterable[str]) -> list[str]:
        """Let policies leave that are surely worse than the best of those here, and return them; `staying` never do."""
        here = [policy for policy in self.correct if policy not in self.left]
        if not here:
            return []
        best = max(here, key=self.accuracy)
        gone = []
        for policy in here:
            middle, low, _ = self.difference(policy, best)
            if policy not in staying and middle + (middle - low) * SURELY / NORMAL < -WORSE:
                self.left[policy] = Left(len(self.correct[policy]), best)
                gone.append(policy)
        return gone

    def best(self, judge: str, among: Sequence[str] | None = None) -> str | None:
        """Return the strongest rival of `judge` by paired difference; one that left counts if it lost to the judge."""
        here = [
            policy
            for policy in self.correct
            if policy != judge
            and (among is None or policy in among)
            and (among is not None or policy not in self.left or self.left[policy].better == judge)
        ]
        return max(here, key=lambda policy: (-self.difference(judge, policy)[0], self.accuracy(policy)), default=None)


@dataclass(frozen=True)
class Verdict:
    """How the judged policy did in every contest of a suite."""

    suite: Suite
    judge: str
    replications: int
    outcomes: tuple[ContestOutcome, ...]
    rival_from: int = 0

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One tidy row a contest: accuracies, and differences of the judged policy to others with 95 % intervals.

        `rival` is the best of this contest, `fixed` the best over its group, `halving` the better sequential halving,
        `process` the best Gaussian process. Differences are positive where the judged policy is better. A contest
        `fails` where the whole interval of the difference to `rival` lies below −2 points. Where `rival` was chosen by
        the first replications, the accuracies of it and of the judged policy are those of the others.
        """
        return [self._row(outcome) for outcome in self._judged]

    @property
    def _judged(self) -> list[ContestOutcome]:
        return [outcome for outcome in self.outcomes if self.judge in outcome.correct]

    def _row(self, outcome: ContestOutcome) -> dict[str, Any]:
        contest, first = outcome.contest, outcome.rival_from
        correct = outcome.correct[self.judge][first:]
        low, high = wilson(int(np.sum(correct)), len(correct))
        row: dict[str, Any] = {
            "group": contest.group,
            "params": dict(contest.instance.params),
            "family": contest.family,
            "instance": contest.instance.world,
            "budget": contest.budget,
            "cell": str(contest),
            "replications": len(correct),
            "policy": self.judge,
            "accuracy": outcome.accuracy(self.judge, first),
            "low": low,
            "high": high,
        }
        others = {
            "rival": (outcome.rival if first else outcome.best(self.judge), first),
            "fixed": (self.fixed(contest.group), 0),
            "halving": (outcome.best(self.judge, HALVING), 0),
            "process": (outcome.best(self.judge, PROCESSES), 0),
        }
        for name, (other, after) in others.items():
            ends = outcome.difference(self.judge, other, after) if other is not None else (None, None, None)
            row |= {name: other, f"{name}_accuracy": None if other is None else outcome.accuracy(other, after)}
            row |= dict(zip((f"{name}_difference", f"{name}_low", f"{name}_high"), ends, strict=True))
        return row | {"fails": None if row["rival"] is None else row["rival_high"] < FAILING}

    def fixed(self, group: str | None = None) -> str | None:
        """Return the best rival over a group, or over all, by mean difference: of those that ran in all contests."""
        outcomes = [o for o in self._judged if group in (None, o.contest.group)]
        ran = set.intersection(*(set(o.correct) for o in outcomes)) - {self.judge} if outcomes else set()
        return min(ran, key=lambda p: (sum(o.difference(self.judge, p)[0] for o in outcomes), p), default=None)

    def summary(self) -> list[dict[str, Any]]:
        """Return a row a group and one for all: contests won, those within 1 and 3 points of the best rival, distances.

        A contest counts as within when the upper end of the paired interval reaches it; `.._point` counts by the
        difference itself. `failing` are those wholly below −2 points, `failing_by_chance` how many would be were the
        true difference −2 points in each. Contests that the judged policy could not run are in `failed` and in no
        other number.
        """
        groups = list(dict.fromkeys(outcome.contest.group for outcome in self.outcomes))
        return [self._summary(group) for group in [*groups, None] if group is None or len(groups) > 1]

    def _summary(self, group: str | None) -> dict[str, Any]:
        mine = [o for o in self.outcomes if group in (None, o.contest.group)]
        fixed = self.fixed(group)
        judged = [o for o in self._judged if o in mine]
        to_fixed = [o.difference(self.judge, fixed)[0] for o in judged if fixed is not None]
        failed = sum(self.judge in o.failed for o in mine)
        return distances(self.rows, group) | {
            "fixed": fixed,
            "fixed_mean": _mean(to_fixed),
            "failed": failed,
            "skipped": sum(o.skipped is not None for o in mine),
        }

    def not_run(self) -> list[dict[str, Any]]:
        """Return what was left out and why: contests that cannot be made here, and policies with how many they miss."""
        rows = [{"what": str(o.contest), "contests": 1, "why": o.skipped} for o in self.outcomes if o.skipped]
        reasons: dict[tuple[str, str], int] = {}
        for outcome in self.outcomes:
            for policy, why in outcome.failed.items():
                reasons[policy, why] = reasons.get((policy, why), 0) + 1
        return rows + [{"what": policy, "contests": n, "why": why} for (policy, why), n in sorted(reasons.items())]


def distances(rows: list[dict[str, Any]], group: str | None = None) -> dict[str, Any]:
    """Return how far the judged policy is from its rivals over the rows of a verdict, of a group or of all."""
    mine = [row for row in rows if group in (None, row["group"]) and row["rival"] is not None]
    middle, high = (np.array([row[key] for row in mine]) for key in ("rival_difference", "rival_high"))
    summary: dict[str, Any] = {
        "group": group or "all",
        "contests": len(mine),
        "won": int(np.sum(middle >= 0)),
        "within_1": int(np.sum(high >= -0.01 - 1e-12)),
        "within_3": int(np.sum(high >= -0.03 - 1e-12)),
        "within_1_point": int(np.sum(middle >= -0.01 - 1e-12)),
        "within_3_point": int(np.sum(middle >= -0.03 - 1e-12)),
        "failing": int(np.sum(high < FAILING)),
        "failing_by_chance": BY_CHANCE * len(mine),
        "mean": _mean(middle),
        "worst": float(middle.min()) if mine else None,
        "worst_cell": mine[int(middle.argmin())]["cell"] if mine else None,
    }
    for name in ("halving", "process"):
        known = np.array([row[f"{name}_difference"] for row in mine if row[name] is not None])
        summary |= {f"{name}_mean": _mean(known), f"{name}_worst": float(known.min()) if len(known) else None}
    return summary


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if len(values) else None


def write(verdict: Verdict, folder: Path) -> list[Path]:
    """Write the table of contests, the summary and what was not run; return the files."""
    written = table.write(verdict.rows, folder) if verdict.rows else []
    folder.mkdir(parents=True, exist_ok=True)
    news = {
        "suite": verdict.suite.name,
        "policy": verdict.judge,
        "replications": verdict.replications,
        "rival_from": verdict.rival_from or None,
        "summary": verdict.summary(),
        "not_run": verdict.not_run(),
    }
    path = folder / "summary.json"
    path.write_text(json.dumps(news, indent=1) + "\n", encoding="utf-8")
    return [*written, path]
