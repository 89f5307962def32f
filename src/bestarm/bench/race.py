"""A race: one policy judged on a suite against all the others.

After 250, 500, 1000, .. replications rivals that are surely worse than the best of a contest leave it. The best rival
may be chosen by the first replications alone; then only it and the judged policy run on.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from os import PathLike
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bestarm import catalog
from bestarm.bandits import Bernoulli
from bestarm.bench.grid import Cell
from bestarm.bench.runner import Results, run
from bestarm.bench.suite import Contest, Suite
from bestarm.bench.verdict import HALVING, PROCESSES, ContestOutcome, Verdict
from bestarm.errors import InputError
from bestarm.numbers import whole
from bestarm.simulate.chunks import CHUNK
from bestarm.simulate.policies import Named, Ref, named

Go = Callable[..., Results]  # `run` with all but the cells and replications said
STAYING = (*HALVING, "gp-thompson", "bayesgap-exp")  # judged separately, so they never leave


@dataclass(frozen=True)
class Limit:
    """Policies that do not run in a suite with more than so many arms, or pulls, and why."""

    policies: tuple[str, ...]
    arms: float
    why: str
    budget: float = math.inf

    def excludes(self, arms: int, budget: int) -> bool:
        """Return whether a contest is too large for them."""
        return arms > self.arms or budget > self.budget


LIMITS = (
    Limit(("gse-forest",), 0, "a forest is grown for each stage of each replication: 0.2 s a run at 16 arms"),
    Limit(("gse-lin-cluster",), 0, "arms are clustered one replication at a time: 0.2 s a run at 16 arms"),
    Limit(("gse-lin-fwg-literal", "gse-log-fwg-literal", "gse-lin-azizi2021", "gse-lin-fwg-azizi2021",
           "gse-lin-wynn-azizi2021", "bayesgap-azizi2021", "bayesgap-azizi2021-se", "bayesgap-azizi2021-matern",
           "bayesgap-azizi2021-covariance", "lingape-greedy-azizi2021", "linucb-azizi2021", "linucb-li2010",
           "ucb-glm-azizi2021"), 0, "a variant kept for the paper's figures"),
    Limit(("lingape",), 16, "a linear program for each pair that meets: 0.1 s to 0.3 s a run at 64 arms"),
    Limit(("peace", "peace-fresh", "peace-rho", "p1-rage"), 16,
          "a design program for each round: 0.03 s to 0.5 s a run at 64 arms"),
    Limit(("gse-lin-greedy-xy",), 16, "all pairs at every pull: 0.1 s to 0.2 s a run at 64 arms"),
    Limit(("gse-lin-xy", "gse-lin-xy-all", "gse-lin-xy-pooled", "linear-exploration"), 128,
          "designs over all pairs: 0.2 s a run at 256 arms"),
    Limit(PROCESSES, 256, "a covariance of all arms for each of 250 replications: gigabytes at 512 arms"),
    Limit(("xy-adaptive", "lingame-c"), math.inf,
          "all pairs or a saddle point at every pull: 1 s to 5 s a run of 4,000 pulls and more", budget=2000),
)  # fmt: skip


def rivals() -> list[str]:
    """Return every policy of the catalog but the automatic ones, which are what a suite judges."""
    return [name for name in catalog.names() if "auto" not in name.split("-")]


def steps(replications: int) -> list[int]:
    """Return after how many replications rivals may leave: chunks of 250, doubled up to all, in whole chunks.

    >>> steps(2000), steps(600), steps(20)
    ([250, 500, 1000, 2000], [250, 500, 750], [250])
    """
    count = -(-whole(replications, "replications", least=1) // CHUNK) * CHUNK
    doubled = [CHUNK]
    while 2 * doubled[-1] < count:
        doubled.append(2 * doubled[-1])
    return [*doubled, count] if doubled[-1] < count else doubled


def judge(
    suite: Suite,
    judge: Any = "auto",
    policies: Named = None,
    replications: int = 2000,
    n_jobs: int = -1,
    cache: str | PathLike[str] | None = None,
    engine: str | None = None,
    progress: bool = False,
    seed: int | None = None,
    rival_from: int | None = None,
) -> Verdict:
    """Return how the policy `judge` does on a suite against `policies` (None: all that are fit for it), by racing.

    `cache` is a folder of results as `bestarm.bench.run` keeps it, and resumes from. Replications come in whole chunks.
    With `rival_from` the best rival of each contest is chosen by the first so many replications; it is measured on the
    others, on which no other rival runs.
    """
    (judged,) = named(judge)
    refs = named([*named(rivals() if policies is None else policies).values(), *named(judge).values()])
    total, first = _replications(replications, rival_from)
    outcomes = tuple(_entered(contest, refs, judged, everyone=policies is None) for contest in suite.contests)
    seed = suite.seed if seed is None else whole(seed, "seed", least=0)
    with TemporaryDirectory() as scratch:  # each step goes on where the last one stopped
        kept = scratch if cache is None else cache
        go = partial(run, rng=seed, n_jobs=n_jobs, cache=kept, engine=engine, progress=progress)
        _race(outcomes, refs, judged, steps(first or total), go)
        if first:
            _measure(outcomes, refs, judged, first, partial(go, replications=total))
    return Verdict(suite, judged, total, outcomes, first)


def _replications(replications: int, rival_from: int | None) -> tuple[int, int]:
    """Return how many replications there are and how many choose the rival, in whole chunks."""
    total = steps(replications)[-1]
    first = 0 if rival_from is None else steps(whole(rival_from, "rival_from", least=1))[-1]
    if first >= total:
        raise InputError(
            f"rival_from must leave replications to measure with: {first} of {total}, in chunks of {CHUNK}, "
            "choose the rival"
        )
    return total, first


def _race(outcomes: Iterable[ContestOutcome], refs: dict[str, Ref], judged: str, counts: Iterable[int], go: Go) -> None:
    """Let all run, and those leave after each of `counts` that are surely worse than the best."""
    running = [(o, [p for p in refs if p not in o.failed and not o.skipped]) for o in outcomes]
    for count in counts:
        alive = [(o, [p for p in some if p not in o.left]) for o, some in running]
        results = go([o.contest.cell(refs[p]) for o, some in alive for p in some], count)
        for outcome, some in alive:
            _take(outcome, {p: outcome.contest.cell(refs[p]) for p in some}, results)
            outcome.drop((judged, *STAYING))
        running = [(o, [p for p in some if p in o.correct]) for o, some in alive]


def _measure(outcomes: Iterable[ContestOutcome], refs: dict[str, Ref], judged: str, first: int, go: Go) -> None:
    """Choose the best rival of each contest by the `first` replications, and run it and the judged policy on.

    A rival that fails there gives way to the next.
    """
    todo = [outcome for outcome in outcomes if judged in outcome.correct]
    while todo:
        for outcome in todo:
            outcome.rival, outcome.rival_from = outcome.best(judged), first
        pairs = [(o, {p: o.contest.cell(refs[p]) for p in (judged, o.rival) if p is not None}) for o in todo]
        results = go([cell for _, cells in pairs for cell in cells.values()])
        for outcome, cells in pairs:
            _take(outcome, cells, results)
        todo = [o for o in todo if judged in o.correct and o.rival is not None and o.rival not in o.correct]


def _entered(contest: Contest, refs: dict[str, Ref], judged: str, everyone: bool) -> ContestOutcome:
    """Return a contest before it began, with the policies that are not fit for it; those asked for by name all are."""
    try:
        bandit = contest.instance.make(1, 0)
    except InputError as error:
        return ContestOutcome(contest, skipped=str(error))
    failed = {}
    arms = bandit.features.shape[-2]
    for policy, ref in refs.items():
        if policy == judged:
            continue
        if ref.entry.binary and not isinstance(bandit.noise, Bernoulli):
            failed[policy] = "it models rewards 0 and 1, and these are others"
        limit = next((one for one in LIMITS if ref.name in one.policies), None)
        if everyone and limit is not None and limit.excludes(arms, contest.budget):
            failed[policy] = limit.why
    return ContestOutcome(contest, failed=failed)


def _take(outcome: ContestOutcome, cells: dict[str, Cell], results: Results) -> None:
    """Add what was measured to an outcome."""
    for policy, cell in cells.items():
        if cell.key in results.failures:
            outcome.failed[policy] = results.failures[cell.key]
            outcome.correct.pop(policy, None)
            continue
        correct = np.concatenate([chunk.correct for chunk in results.chunks[cell.key]])
        outcome.correct[policy] = correct[: results.replications]
