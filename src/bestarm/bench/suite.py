"""Suites: one policy judged against all the others, on a fixed list of instances and budgets kept as plain data.

Rivals race: after 250, 500, 1000, .. replications those that are surely worse than the best of a contest leave it. The
best rival of each contest is chosen by the same data that measure it, so its accuracy is biased upward, the more the
closer the rivals, and the difference to it is hard on the judged policy. The difference to the one rival that is best
over a whole group, which is chosen once for many contests, is given as well.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bestarm import catalog
from bestarm.bandits import Bernoulli
from bestarm.bench.grid import Cell, PolicyRef, grid
from bestarm.bench.runner import BLOCK, Results, run
from bestarm.bench.table import NORMAL, paired, wilson
from bestarm.bench.worlds import Instance, instance
from bestarm.errors import InputError, UnknownNameError

WORSE = 0.01  # a rival leaves a contest when it is surely worse than the best by this much,
SURELY = 3.290527  # at 99.9 %
HALVING = ("sequential-halving", "sequential-halving-pooled")
PROCESSES = ("gp-thompson", "bayesgap-exp", "bayesgap-matern", "bayesgap-se")
STAYING = (*HALVING, "gp-thompson", "bayesgap-exp")  # judged separately, so they never leave


@dataclass(frozen=True)
class Limit:
    """Policies that do not run in a suite with more than so many arms, and why."""

    policies: tuple[str, ...]
    arms: int
    why: str


LIMITS = (
    Limit(("gse-forest",), 0, "a forest is grown for each stage of each replication: 0.2 s a run at 16 arms"),
    Limit(("gse-lin-cluster",), 0, "arms are clustered one replication at a time: 0.2 s a run at 16 arms"),
    Limit(("gse-lin-fwg-literal", "gse-lin-fwg-azizi2021", "bayesgap-azizi2021", "linucb-azizi2021",
           "ucb-glm-azizi2021"), 0, "a variant kept for the paper's figures"),
    Limit(("lingape",), 16, "a linear program for each pair that meets: 0.1 s to 0.3 s a run at 64 arms"),
    Limit(("peace", "peace-rho", "p1-rage"), 16, "a design program for each round: 0.03 s to 0.5 s a run at 64 arms"),
    Limit(("gse-lin-greedy-xy",), 16, "all pairs at every pull: 0.1 s to 0.2 s a run at 64 arms"),
    Limit(("gse-lin-xy", "gse-lin-xy-all", "gse-lin-xy-pooled", "linear-exploration"), 128,
          "designs over all pairs: 0.2 s a run at 256 arms"),
    Limit(PROCESSES, 256, "a covariance of all arms for each of 250 replications: gigabytes at 512 arms"),
)  # fmt: skip


@dataclass(frozen=True)
class Contest:
    """An instance and a budget on which policies meet."""

    group: str
    family: str
    instance: Instance
    budget: int

    def cell(self, policy: PolicyRef) -> Cell:
        """Return what is to be measured of `policy`."""
        return Cell(self.instance, policy, self.budget)

    def __str__(self) -> str:
        hidden = ("file", "arm", "value", "minimize", "skip", "scale", "told")
        shown = [f"{key}={value}" for key, value in self.instance.params if key not in hidden]
        return f"{self.instance.world} {' '.join([*shown, f'B={self.budget}'])}"


@dataclass(frozen=True)
class Suite:
    """A named list of contests, and the seed of all their randomness."""

    name: str
    about: str
    seed: int
    contests: tuple[Contest, ...]


def names() -> list[str]:
    """Return the suites that come with the package.

    >>> names()
    ['chest', 'default', 'heldout', 'sealed', 'unseen', 'vault']
    """
    folder = files("bestarm.bench") / "suites"
    return sorted(file.name.removesuffix(".json") for file in folder.iterdir() if file.name.endswith(".json"))


def load(name: str | PathLike[str]) -> Suite:
    """Return the suite of that name, or of a JSON file of your own.

    >>> len(load("default").contests)
    51
    """
    path = Path(name)
    if str(name) in names():
        text = (files("bestarm.bench") / "suites" / f"{name}.json").read_text(encoding="utf-8")
    elif path.suffix == ".json":
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"suite {path} cannot be read: {error.strerror}") from error
    else:
        raise UnknownNameError("suite", str(name), names())
    try:
        return _suite(json.loads(text), str(name))
    except json.JSONDecodeError as error:
        raise InputError(f"suite {name} is not JSON: line {error.lineno}, {error.msg}") from error


def _suite(data: Any, name: str) -> Suite:
    wanted = {"name": str, "about": str, "seed": int, "cells": list}
    for key, kind in wanted.items():
        if not isinstance(data, dict) or not isinstance(data.get(key), kind):
            raise InputError(f"suite {name} needs {key!r}, a JSON {kind.__name__}")
    contests = tuple(_contest(cell, f"suite {name}, cell {n}") for n, cell in enumerate(data["cells"], 1))
    if not contests:
        raise InputError(f"suite {name} has no cells; at least one is needed")
    met = [(contest.instance, contest.budget) for contest in contests]
    for n, one in enumerate(met):
        if one in met[:n]:
            raise InputError(f"suite {name}, cell {n + 1} is the same as cell {met.index(one) + 1}: {contests[n]}")
    return Suite(data["name"], data["about"], data["seed"], contests)


def _contest(data: Any, where: str) -> Contest:
    known = ("group", "family", "instance", "params", "budget", "budget_per_arm")
    if not isinstance(data, dict):
        raise InputError(f"{where}: an object with {', '.join(known)} is expected; given {data!r}")
    for key in data:
        if key not in known:
            raise InputError(f"{where} has no {key!r}; it has {', '.join(known)}")
    for key in known[:3]:
        if not isinstance(data.get(key), str):
            raise InputError(f"{where} needs {key!r}, a text")
    budgets = [data.get(key) for key in known[4:]]
    if sum(isinstance(b, int | float) and b > 0 for b in budgets) != 1:
        raise InputError(f"{where} needs either a budget or a budget_per_arm, a number above 0")
    try:
        one = instance(data["instance"], data.get("params") or {})
        budget = grid([one], ["uniform"], budgets[0], budgets[1])[0].budget
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    return Contest(data["group"], data["family"], one, budget)


def rivals() -> list[str]:
    """Return every policy of the catalog but the automatic ones, which are what a suite judges."""
    return [name for name in catalog.names() if "auto" not in name.split("-")]


@dataclass(frozen=True)
class Left:
    """When a policy left a contest, and the policy that was better."""

    after: int
    better: str


@dataclass(eq=False)
class Outcome:
    """What happened in a contest: who was right in which replication `(n,)`, who left, who could not run and why."""

    contest: Contest
    correct: dict[str, Any] = field(default_factory=dict)
    left: dict[str, Left] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: str | None = None

    def accuracy(self, policy: str) -> float:
        """Return how often `policy` was right."""
        return float(np.mean(self.correct[policy]))

    def difference(self, one: str, two: str) -> tuple[float, float, float]:
        """Return by how much `one` is right more often than `two`, with its 95 % interval, where both ran."""
        count = min(len(self.correct[one]), len(self.correct[two]))
        return paired(self.correct[one][:count], self.correct[two][:count])

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
    outcomes: tuple[Outcome, ...]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One tidy row a contest: accuracies, and differences of the judged policy to others with 95 % intervals.

        `rival` is the best of this contest, `fixed` the best over its group, `halving` the better sequential halving,
        `process` the best Gaussian process. Differences are positive where the judged policy is better.
        """
        return [self._row(outcome) for outcome in self._judged]

    @property
    def _judged(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if self.judge in outcome.correct]

    def _row(self, outcome: Outcome) -> dict[str, Any]:
        contest, correct = outcome.contest, outcome.correct[self.judge]
        low, high = wilson(int(np.sum(correct)), len(correct))
        row = {
            "group": contest.group,
            "params": dict(contest.instance.params),
            "family": contest.family,
            "instance": contest.instance.world,
            "budget": contest.budget,
            "cell": str(contest),
            "replications": len(correct),
            "policy": self.judge,
            "accuracy": outcome.accuracy(self.judge),
            "low": low,
            "high": high,
        }
        others = {
            "rival": outcome.best(self.judge),
            "fixed": self.fixed(contest.group),
            "halving": outcome.best(self.judge, HALVING),
            "process": outcome.best(self.judge, PROCESSES),
        }
        for name, other in others.items():
            ends = outcome.difference(self.judge, other) if other is not None else (None, None, None)
            row |= {name: other, f"{name}_accuracy": None if other is None else outcome.accuracy(other)}
            row |= dict(zip((f"{name}_difference", f"{name}_low", f"{name}_high"), ends, strict=True))
        return row

    def fixed(self, group: str | None = None) -> str | None:
        """Return the best rival over a group, or over all, by mean difference: of those that ran in all contests."""
        outcomes = [o for o in self._judged if group in (None, o.contest.group)]
        ran = set.intersection(*(set(o.correct) for o in outcomes)) - {self.judge} if outcomes else set()
        return min(ran, key=lambda p: (sum(o.difference(self.judge, p)[0] for o in outcomes), p), default=None)

    def summary(self) -> list[dict[str, Any]]:
        """Return a row a group and one for all: contests won, those within 1 and 3 points of the best rival, distances.

        A contest counts as within when the upper end of the paired interval reaches it; `.._point` counts by the
        difference itself. Contests where the judged policy failed are in `failed` and in no other number.
        """
        groups = list(dict.fromkeys(outcome.contest.group for outcome in self.outcomes))
        return [self._summary(group) for group in [*groups, None] if group is None or len(groups) > 1]

    def _summary(self, group: str | None) -> dict[str, Any]:
        mine = [o for o in self.outcomes if group in (None, o.contest.group)]
        rows = [r for r in self.rows if group in (None, r["group"]) and r["rival"] is not None]
        middle = np.array([r["rival_difference"] for r in rows])
        high = np.array([r["rival_high"] for r in rows])
        fixed = self.fixed(group)
        judged = [o for o in self._judged if o in mine]
        to_fixed = [o.difference(self.judge, fixed)[0] for o in judged if fixed is not None]
        summary: dict[str, Any] = {
            "group": group or "all",
            "contests": len(rows),
            "won": int(np.sum(middle >= 0)),
            "within_1": int(np.sum(high >= -0.01 - 1e-12)),
            "within_3": int(np.sum(high >= -0.03 - 1e-12)),
            "within_1_point": int(np.sum(middle >= -0.01 - 1e-12)),
            "within_3_point": int(np.sum(middle >= -0.03 - 1e-12)),
            "mean": _mean(middle),
            "worst": float(middle.min()) if rows else None,
            "worst_cell": rows[int(middle.argmin())]["cell"] if rows else None,
            "fixed": fixed,
            "fixed_mean": _mean(to_fixed),
        }
        for name in ("halving", "process"):
            known = np.array([r[f"{name}_difference"] for r in rows if r[name] is not None])
            summary |= {f"{name}_mean": _mean(known), f"{name}_worst": float(known.min()) if len(known) else None}
        failed = sum(self.judge in o.failed for o in mine)
        return summary | {"failed": failed, "skipped": sum(o.skipped is not None for o in mine)}

    def not_run(self) -> list[dict[str, Any]]:
        """Return what was left out and why: contests that cannot be made here, and policies with how many they miss."""
        rows = [{"what": str(o.contest), "contests": 1, "why": o.skipped} for o in self.outcomes if o.skipped]
        reasons: dict[tuple[str, str], int] = {}
        for outcome in self.outcomes:
            for policy, why in outcome.failed.items():
                reasons[policy, why] = reasons.get((policy, why), 0) + 1
        return rows + [{"what": policy, "contests": n, "why": why} for (policy, why), n in sorted(reasons.items())]


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if len(values) else None


def steps(replications: int) -> list[int]:
    """Return after how many replications rivals may leave: blocks of 250, doubled up to all, in whole blocks.

    >>> steps(2000), steps(600), steps(20)
    ([250, 500, 1000, 2000], [250, 500, 750], [250])
    """
    if replications < 1:
        raise InputError(f"replications must be at least 1; given {replications}")
    whole = -(-replications // BLOCK) * BLOCK
    doubled = [BLOCK]
    while 2 * doubled[-1] < whole:
        doubled.append(2 * doubled[-1])
    return [*doubled, whole] if doubled[-1] < whole else doubled


def judge(
    suite: Suite,
    judge: str = "auto",
    policies: Iterable[str] | None = None,
    replications: int = 2000,
    n_jobs: int = -1,
    cache: str | PathLike[str] | None = None,
    engine: str | None = None,
    progress: bool = False,
    seed: int | None = None,
) -> Verdict:
    """Return how the policy `judge` does on a suite against `policies` (None: all that are fit for it), by racing.

    `cache` is a folder of results as `bestarm.bench.run` keeps it, and resumes from. Replications come in whole blocks.
    """
    judged = PolicyRef.parse(judge)
    refs = {str(ref): ref for ref in map(PolicyRef.parse, rivals() if policies is None else policies)}
    refs |= {str(judged): judged}
    staying = (str(judged), *STAYING)
    outcomes = tuple(_entered(contest, refs, str(judged), everyone=policies is None) for contest in suite.contests)
    entered = [[p for p in refs if p not in outcome.failed and not outcome.skipped] for outcome in outcomes]
    seed = suite.seed if seed is None else seed
    with TemporaryDirectory() as scratch:  # each step goes on where the last one stopped
        for count in steps(replications):
            alive = [[p for p in e if p not in o.left] for e, o in zip(entered, outcomes, strict=True)]
            cells = [o.contest.cell(refs[p]) for o, some in zip(outcomes, alive, strict=True) for p in some]
            results = run(cells, count, seed, n_jobs, scratch if cache is None else cache, engine, progress)
            for outcome, some in zip(outcomes, alive, strict=True):
                _take(outcome, {p: outcome.contest.cell(refs[p]) for p in some}, results)
                outcome.drop(staying)
            entered = [[p for p in some if p in o.correct] for some, o in zip(alive, outcomes, strict=True)]
    return Verdict(suite, str(judged), steps(replications)[-1], outcomes)


def _entered(contest: Contest, refs: dict[str, PolicyRef], judged: str, everyone: bool) -> Outcome:
    """Return a contest before it began, with the policies that are not fit for it; those asked for by name all are."""
    try:
        bandit = contest.instance.make(1, 0)
    except InputError as error:
        return Outcome(contest, skipped=str(error))
    failed = {}
    arms = bandit.means.shape[-1]
    for policy, ref in refs.items():
        if policy == judged:
            continue
        if catalog.ENTRIES[ref.name].binary and not isinstance(bandit.noise, Bernoulli):
            failed[policy] = "it models rewards 0 and 1, and these are others"
        limit = next((one for one in LIMITS if ref.name in one.policies), None)
        if everyone and limit is not None and arms > limit.arms:
            failed[policy] = limit.why
    return Outcome(contest, failed=failed)


def _take(outcome: Outcome, cells: dict[str, Cell], results: Results) -> None:
    """Add what was measured to an outcome."""
    for policy, cell in cells.items():
        if cell.key in results.failures:
            outcome.failed[policy] = results.failures[cell.key]
            outcome.correct.pop(policy, None)
            continue
        correct = np.concatenate([block.correct for block in results.blocks[cell.key]])
        outcome.correct[policy] = correct[: results.replications]


def write(verdict: Verdict, folder: Path) -> list[Path]:
    """Write the table of contests, the summary and what was not run; return the files."""
    from bestarm.bench import table as tables

    written = tables.write(verdict.rows, folder) if verdict.rows else []
    folder.mkdir(parents=True, exist_ok=True)
    news = {
        "suite": verdict.suite.name,
        "policy": verdict.judge,
        "replications": verdict.replications,
        "summary": verdict.summary(),
        "not_run": verdict.not_run(),
    }
    path = folder / "summary.json"
    path.write_text(json.dumps(news, indent=1) + "\n", encoding="utf-8")
    return [*written, path]
